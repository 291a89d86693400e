//! Profiles: groups of accounts; an account belongs to at most one.
//!
//! An update of a group locks the profile first and then all accounts that join or leave it, ordered by id,
//! so that concurrent updates wait for each other without a deadlock.

use crate::{
    Change,
    bounds::{self, Access, Resource},
    page::{Cursor, Page, Request},
    people::audit::{self, Action, Actor},
    usage::ceilings::{self, Exceeded, Kind},
};
use chrono::{DateTime, Utc};
use domain::{AccountId, Owner, ProfileId};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool, QueryBuilder};
use std::collections::{BTreeSet, HashMap};
use uuid::Uuid;

/// Accounts that leave a deleted profile in one transaction.
const BATCH: i64 = 500;
/// Size of the settings of all profiles on a page, in bytes.
const PAGE_BYTES: i64 = 2 << 20;
/// Profiles of a page that one statement reads.
const PAGE_PART: u32 = 50;
/// Blocks of settings that one statement reads. Each may have 64 KiB.
const BLOCKS: usize = 64;

/// A group of accounts.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct Profile {
    /// Profile id.
    #[sqlx(try_from = "Uuid")]
    pub id: ProfileId,
    /// Name of the profile.
    pub name: String,
    /// The owner's end tenant that the profile belongs to.
    pub tenant_id: Option<String>,
    /// Free text for the owner's use.
    pub description: Option<String>,
    /// IANA time zone, for example `Europe/Berlin`.
    pub timezone: String,
    /// Default settings by platform, a JSON object.
    pub default_config: Value,
    /// Accounts of the profile, oldest first.
    pub social_account_ids: Vec<Uuid>,
    /// When the profile was created.
    pub created_at: DateTime<Utc>,
    /// When the profile was last updated.
    pub updated_at: DateTime<Utc>,
}

/// A profile to create.
#[derive(Clone, Debug)]
pub struct NewProfile {
    /// Name of the profile.
    pub name: String,
    /// The owner's end tenant that the profile belongs to.
    pub tenant_id: Option<String>,
    /// Free text for the owner's use.
    pub description: Option<String>,
    /// IANA time zone, for example `Europe/Berlin`.
    pub timezone: String,
    /// Default settings by platform, a JSON object.
    pub default_config: Value,
    /// Accounts of the profile, without duplicates.
    pub accounts: Vec<AccountId>,
}

/// Changes to a profile.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Name of the profile; `None` keeps it.
    pub name: Option<String>,
    /// The owner's end tenant that the profile belongs to.
    pub tenant_id: Change<String>,
    /// Free text for the owner's use.
    pub description: Change<String>,
    /// IANA time zone; `None` keeps it.
    pub timezone: Option<String>,
    /// Default settings by platform, a JSON object; `None` keeps them.
    pub default_config: Option<Value>,
    /// All accounts of the profile, without duplicates; `None` keeps them.
    pub accounts: Option<Vec<AccountId>>,
}

/// The result of creating a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Created {
    /// The profile, as stored.
    Stored(Profile),
    /// Nothing was written, because these accounts are not connected accounts of the owner.
    UnknownAccounts(Vec<AccountId>),
    /// Nothing was written, because there may be no more profiles.
    Exceeded(Exceeded),
}

/// The result of updating a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// The profile, as stored.
    Stored(Profile),
    /// Nothing was written, because these accounts are not connected accounts of the owner.
    UnknownAccounts(Vec<AccountId>),
}

/// Creates a profile, unless that would exceed the `limit` of profiles. Its accounts leave their previous profiles.
pub async fn create(
    db: &PgPool,
    owner: Owner,
    new: NewProfile,
    limit: Option<u64>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Created> {
    let mut tx = crate::begin(db).await?;
    if let Err(exceeded) = ceilings::check(&mut tx, owner, Kind::Profiles, 1, limit, now).await? {
        return Ok(Created::Exceeded(exceeded));
    }
    let id = ProfileId(Uuid::now_v7());
    sqlx::query!(
        "insert into profiles
           (id, org_id, mode, name, tenant_id, description, timezone, default_config, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        new.name,
        new.tenant_id,
        new.description,
        new.timezone,
        new.default_config,
        now
    )
    .execute(&mut *tx)
    .await?;
    let accounts = match set_accounts(&mut tx, owner, id, &new.accounts, now).await? {
        Ok(accounts) => accounts,
        Err(unknown) => {
            tx.rollback().await?;
            return Ok(Created::UnknownAccounts(unknown));
        }
    };
    let profile = find(&mut tx, owner, id).await?.expect("the row was just inserted");
    record(&mut tx, owner, by, now, Action::ProfileCreated, &profile, &accounts).await?;
    tx.commit().await?;
    Ok(Created::Stored(profile))
}

/// Returns a page of the profiles that a caller reaches, newest first. It ends early with the one by which their settings
/// have two megabytes or more.
pub async fn list(db: &PgPool, access: Access<'_>, page: Request) -> sqlx::Result<Page<Profile>> {
    let (mut items, mut left, mut after) = (Vec::new(), PAGE_BYTES, page.after);
    loop {
        let room = page.limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        let part = Request { after, limit: room.min(PAGE_PART) };
        let mut rows = read_part(db, access, part, left).await?;
        let found = rows.first().map_or(0, |row| row.found);
        let (is_cut, has_more) = (found > rows.len() as i64, found > i64::from(part.limit));
        rows.truncate(part.limit as usize);
        left -= rows.iter().map(|row| row.size).sum::<i64>();
        after = rows.last().map(|row| Cursor { created_at: row.profile.created_at, id: row.profile.id.0 });
        items.extend(rows.into_iter().map(|row| row.profile));
        if !is_cut && !has_more {
            return Ok(Page { items, next: None });
        }
        if is_cut || left <= 0 || items.len() >= page.limit as usize {
            return Ok(Page { items, next: after });
        }
    }
}

/// A profile of a list.
#[derive(sqlx::FromRow)]
struct Listed {
    #[sqlx(flatten)]
    profile: Profile,
    /// Size of its settings.
    size: i64,
    /// Number of profiles that were looked at.
    found: i64,
}

/// Reads profiles from a place of the list, up to the one whose settings reach a size; one more than a page has, if it is
/// not reached.
async fn read_part(db: &PgPool, access: Access<'_>, part: Request, most: i64) -> sqlx::Result<Vec<Listed>> {
    let (owner, bound) = access.parts();
    // A member takes far more memory than its text.
    let mut query = QueryBuilder::new(
        "select * from (
           select page.*, count(*) over () as found,
             (sum(size) over (order by created_at desc, id desc))::bigint as total
           from (
             select id, name, tenant_id, description, timezone, default_config,
               array(select id from accounts
                     where accounts.profile_id = profiles.id and status <> 'disconnected'
                     order by created_at, id) as social_account_ids,
               created_at, updated_at,
               (select octet_length(text) + 64 * (length(text) - length(replace(text, ':', '')))
                from (select default_config::text offset 0) config (text))::bigint as size
             from profiles where org_id = ",
    );
    query.push_bind(owner.org.0).push(" and mode = ").push_bind(owner.mode.as_str()).push(" and ");
    bounds::push_profiles(&mut query, bound);
    part.close(&mut query);
    query.push(") page) sized where total - size < ").push_bind(most);
    query.push(" order by created_at desc, id desc");
    query.build_query_as().fetch_all(db).await
}

/// Returns a profile.
pub async fn get(db: &PgPool, access: Access<'_>, id: ProfileId) -> sqlx::Result<Option<Profile>> {
    let Some(owner) = access.reach(db, Resource::Profile, id.0).await? else { return Ok(None) };
    let mut connection = db.acquire().await?;
    find(&mut connection, owner, id).await
}

async fn find(connection: &mut PgConnection, owner: Owner, id: ProfileId) -> sqlx::Result<Option<Profile>> {
    sqlx::query_as!(
        Profile,
        r#"select id, name, tenant_id, description, timezone, default_config,
             array(select id from accounts
                   where accounts.profile_id = profiles.id and status <> 'disconnected'
                   order by created_at, id) as "social_account_ids!",
             created_at, updated_at
           from profiles where id = $1 and org_id = $2 and mode = $3"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(connection)
    .await
}

/// Returns the default settings that profiles of the owner have for platforms, each as JSON; `None` if they have more than
/// `limit` bytes together, which ends the reading.
pub async fn blocks(
    db: &PgPool,
    owner: Owner,
    wanted: &BTreeSet<(Uuid, &str)>,
    limit: usize,
) -> sqlx::Result<Option<HashMap<(Uuid, String), String>>> {
    let wanted: Vec<_> = wanted.iter().copied().collect();
    let (mut blocks, mut size) = (HashMap::new(), 0);
    for part in wanted.chunks(BLOCKS) {
        let (profiles, platforms): (Vec<_>, Vec<_>) =
            part.iter().map(|(profile, platform)| (*profile, (*platform).to_owned())).unzip();
        // A number such as 1e308 is longer when it is written than it was when it was read and counted.
        let rows = sqlx::query!(
            r#"with found as materialized (
                 select p.id, w.platform, (p.default_config -> w.platform)::text as block
                 from unnest($1::uuid[], $2::text[]) as w (profile, platform) join profiles p on p.id = w.profile
                 where p.org_id = $3 and p.mode = $4 and p.default_config ? w.platform)
               select id as "id!", platform as "platform!",
                 case when (select sum(octet_length(block)) from found) <= $5 then block end as block
               from found"#,
            &profiles,
            &platforms,
            owner.org.0,
            owner.mode.as_str(),
            i64::try_from(limit - size).expect("a limit of memory") as _
        )
        .fetch_all(db)
        .await?;
        for row in rows {
            let Some(block) = row.block else { return Ok(None) };
            size += block.len();
            blocks.insert((row.id, row.platform), block);
        }
    }
    Ok(Some(blocks))
}

/// Updates a profile. Returns `None` when it doesn't exist.
pub async fn edit(
    db: &PgPool,
    access: Access<'_>,
    id: ProfileId,
    edit: Edit,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Saved>> {
    let Some(owner) = access.reach(db, Resource::Profile, id.0).await? else { return Ok(None) };
    let mut tx = crate::begin(db).await?;
    let done = sqlx::query!(
        "update profiles set
           name = coalesce($4, name),
           tenant_id = case when $5 then $6 else tenant_id end,
           description = case when $7 then $8 else description end,
           timezone = coalesce($9, timezone), default_config = coalesce($10, default_config), updated_at = $11
         where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.name,
        edit.tenant_id.is_change(),
        edit.tenant_id.value(),
        edit.description.is_change(),
        edit.description.value(),
        edit.timezone,
        edit.default_config,
        now
    )
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(None);
    }
    let accounts = match edit.accounts {
        Some(accounts) => set_accounts(&mut tx, owner, id, &accounts, now).await?,
        None => Ok(Regrouped::default()),
    };
    let accounts = match accounts {
        Ok(accounts) => accounts,
        Err(unknown) => {
            tx.rollback().await?;
            return Ok(Some(Saved::UnknownAccounts(unknown)));
        }
    };
    let profile = find(&mut tx, owner, id).await?.expect("the row is locked");
    record(&mut tx, owner, by, now, Action::ProfileUpdated, &profile, &accounts).await?;
    tx.commit().await?;
    Ok(Some(Saved::Stored(profile)))
}

/// Accounts that joined or left a profile.
#[derive(Debug, Default)]
struct Regrouped {
    joined: Vec<Uuid>,
    left: Vec<Uuid>,
}

/// Records a change, and the accounts that keys of the profile have or lose by it.
async fn record(
    tx: &mut PgConnection,
    owner: Owner,
    by: &Actor,
    now: DateTime<Utc>,
    action: Action,
    profile: &Profile,
    accounts: &Regrouped,
) -> sqlx::Result<()> {
    let details = json!({
        "name": profile.name, "tenant_id": profile.tenant_id, "joined": accounts.joined, "left": accounts.left,
    });
    audit::record(tx, owner, by, now, audit::Change { action, object: profile.id.0, details }).await
}

/// Sets the profile's accounts. Fails with those that are not connected accounts of the owner, in which case
/// nothing is changed and the caller rolls back.
async fn set_accounts(
    tx: &mut PgConnection,
    owner: Owner,
    profile: ProfileId,
    accounts: &[AccountId],
    now: DateTime<Utc>,
) -> sqlx::Result<Result<Regrouped, Vec<AccountId>>> {
    let ids: Vec<_> = accounts.iter().map(|account| account.0).collect();
    let locked = sqlx::query!(
        r#"select id, status <> 'disconnected' as "is_connected!" from accounts
           where org_id = $1 and mode = $2 and (id = any($3) or profile_id = $4)
           order by id for update"#,
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        profile.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let is_known = |id: &Uuid| locked.iter().any(|row| row.is_connected && row.id == *id);
    let unknown: Vec<_> = ids.iter().filter(|id| !is_known(id)).copied().map(AccountId).collect();
    if !unknown.is_empty() {
        return Ok(Err(unknown));
    }
    let changed = sqlx::query!(
        "update accounts set profile_id = case when id = any($3) then $4::uuid end, updated_at = $5
         where org_id = $1 and mode = $2 and (id = any($3) or profile_id = $4)
           and profile_id is distinct from case when id = any($3) then $4::uuid end
         returning id, profile_id",
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        profile.0,
        now
    )
    .fetch_all(tx)
    .await?;
    let mut accounts = Regrouped::default();
    for row in changed {
        let list = if row.profile_id.is_some() { &mut accounts.joined } else { &mut accounts.left };
        list.push(row.id);
    }
    Ok(Ok(accounts))
}

/// Deletes a profile; its accounts are then in none. Returns false when it doesn't exist.
///
/// Most accounts leave it before, in transactions of bounded size, so that none is locked for long. If that is
/// interrupted, the profile has fewer accounts, and is deleted by the next call.
pub async fn delete(
    db: &PgPool,
    access: Access<'_>,
    id: ProfileId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let Some(owner) = access.reach(db, Resource::Profile, id.0).await? else { return Ok(false) };
    loop {
        let left = sqlx::query!(
            "update accounts set profile_id = null, updated_at = $4
             where id in (
               select id from accounts where org_id = $1 and mode = $2 and profile_id = $3 order by id limit $5)",
            owner.org.0,
            owner.mode.as_str(),
            id.0,
            now,
            BATCH
        )
        .execute(db)
        .await?;
        if left.rows_affected() < BATCH.unsigned_abs() {
            break;
        }
    }
    let mut tx = crate::begin(db).await?;
    let found = sqlx::query_scalar!(
        "select name from profiles where id = $1 and org_id = $2 and mode = $3 for update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(name) = found else { return Ok(false) };
    let left = set_accounts(&mut tx, owner, id, &[], now).await?.unwrap_or_default().left;
    sqlx::query!(
        "delete from profiles where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .execute(&mut *tx)
    .await?;
    let change = audit::Change {
        action: Action::ProfileDeleted,
        object: id.0,
        details: json!({ "name": name, "left": left }),
    };
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok(true)
}
