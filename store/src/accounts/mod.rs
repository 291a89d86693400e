//! Connected social accounts.
//!
//! A row is a platform account in the hands of one end tenant, also after it was disconnected: connecting it again for
//! that tenant keeps its id, so that scheduled posts survive. Connecting it for another tenant makes another row: posts,
//! profile, slots and keys of the former tenant stay with the former row. Of all rows of a platform account at most one is
//! connected. Its grant is in the same row; see [`crate::accounts::grants`].
//!
//! Tables: `accounts`, `networks`, `profiles`, `oauth_states`, `pending_logins`, `connect_branding`,
//! `connect_branding_previews`, `imports`, `imported_posts`.

pub mod branding;
pub mod connect;
pub mod disconnect;
pub mod grants;
pub mod imports;
pub mod limits;
pub mod networks;
pub mod oauth_states;
pub mod pending_logins;
pub mod profiles;

use crate::{
    Change,
    bounds::{self, Access, Resource},
    decode::{self, Parsed},
    page::{Cursor, Page, Request},
    people::audit::{self, Action, Actor},
};
use chrono::{DateTime, Utc};
use domain::{AccountId, AccountProfile, Bound, Owner, ProfileId};
use serde_json::json;
use sqlx::{PgConnection, PgPool, QueryBuilder};
use std::collections::HashMap;
use uuid::Uuid;

domain::string_enum! {
    /// Connection status of an account.
    AccountStatus, "account status" {
        /// Posts can be published to the account.
        Active = "active",
        /// The access token expired and could not be refreshed.
        TokenExpired = "token_expired",
        /// The platform revoked the grant; the account must be connected again.
        ReauthRequired = "reauth_required",
        /// The account was disconnected by its owner.
        Disconnected = "disconnected",
    }
}

decode::into_inner!(AccountStatus);

/// A connected account, without its grant.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Account {
    /// Account id.
    #[sqlx(try_from = "Uuid")]
    pub id: AccountId,
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// The platform's own id of the account.
    pub network_unique_id: String,
    /// Handle on the platform.
    pub username: String,
    /// Display name; the platform's, unless the owner set one.
    pub display_name: String,
    /// Kind of account, for example `profile` or `page`.
    pub account_type: String,
    /// URL of the avatar.
    pub profile_image_url: Option<String>,
    /// URL of the account's public page.
    pub profile_url: Option<String>,
    /// The owner's end tenant that the account belongs to.
    pub tenant_id: Option<String>,
    /// Profile that groups the account.
    pub profile_id: Option<Uuid>,
    /// The OAuth app that the account was connected through; `None` for a shared one.
    pub social_network_id: Option<Uuid>,
    /// Connection status.
    #[sqlx(try_from = "Parsed<AccountStatus>")]
    pub status: AccountStatus,
    /// Scopes that the platform granted.
    pub scopes: Vec<String>,
    /// Expiry of the access token.
    pub token_expires_at: Option<DateTime<Utc>>,
    /// Time at which the platform ends the grant, if it tells.
    pub grant_expires_at: Option<DateTime<Utc>>,
    /// When the platform last accepted the grant.
    pub last_synced_at: Option<DateTime<Utc>>,
    /// Why the account is not active.
    pub last_error_code: Option<String>,
    /// When the account was first connected.
    pub created_at: DateTime<Utc>,
    /// When the account was last updated.
    pub updated_at: DateTime<Utc>,
}

impl Account {
    /// Returns true if the account is within the bound.
    pub fn is_within(&self, bound: &Bound) -> bool {
        bound.has_account(self.id, self.tenant_id.as_deref(), self.profile_id.map(ProfileId))
    }
}

/// An account to connect, as a login flow returned it.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// Profile on the platform; a display name that the owner set stays.
    pub profile: AccountProfile,
    /// End tenant to assign, unless the account has one.
    pub tenant_id: Option<String>,
    /// The OAuth app that the account is connected through; `None` for a shared one.
    pub social_network_id: Option<Uuid>,
    /// Scopes that the platform granted.
    pub scopes: Vec<String>,
    /// Expiry of the access token.
    pub token_expires_at: Option<DateTime<Utc>>,
    /// Time at which the platform ends the grant, if it tells.
    pub grant_expires_at: Option<DateTime<Utc>>,
}

/// The result of connecting an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The account, now active.
    pub account: Account,
    /// True if this owner had never connected the account for its end tenant before.
    pub is_new: bool,
    /// True if it was connected already.
    pub was_connected: bool,
    /// True if it was connected without an end tenant, and has the login's now.
    pub is_assigned: bool,
}

/// Changes to the fields that the owner of an account sets.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The owner's end tenant that the account belongs to.
    pub tenant_id: Change<String>,
    /// Profile that groups the account.
    pub profile: Change<ProfileId>,
    /// Display name; `None` keeps it.
    pub display_name: Option<String>,
}

/// Filter of a list of accounts; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Account id.
    pub id: Option<AccountId>,
    /// End tenant.
    pub tenant_id: Option<String>,
    /// Profile id.
    pub profile_id: Option<Uuid>,
    /// Platform id.
    pub platform: Option<String>,
    /// Handle on the platform.
    pub username: Option<String>,
    /// The platform's own id of the account.
    pub network_unique_id: Option<String>,
}

/// The account that an entry of a post's `accounts` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Exactly one account matches.
    One(Box<Account>),
    /// No account matches.
    None,
    /// Several accounts match.
    Ambiguous,
}

/// A query for an [`Account`]: what precedes its columns, and what follows them.
macro_rules! query_account {
    ($head:literal, $tail:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            $crate::accounts::Account,
            $head + r#" id, platform, network_unique_id, username, display_name, account_type,
                 profile_image_url, profile_url, tenant_id, profile_id, social_network_id,
                 status as "status: Parsed<AccountStatus>", scopes, token_expires_at, grant_expires_at,
                 last_synced_at, last_error_code, created_at, updated_at "# + $tail,
            $($arg),+
        )
    };
}
pub(crate) use query_account;

/// A row of a platform account; locked.
pub(crate) struct Known {
    id: Uuid,
    tenant_id: Option<String>,
    is_connected: bool,
    updated_at: DateTime<Utc>,
}

/// Locks all rows of a platform account, in an order of their own: until the transaction ends, no other one connects it.
pub(crate) async fn lock(
    tx: &mut PgConnection,
    owner: Owner,
    platform: &str,
    network_unique_id: &str,
) -> sqlx::Result<Vec<Known>> {
    sqlx::query_as!(
        Known,
        r#"select id, tenant_id, status <> 'disconnected' as "is_connected!", updated_at from accounts
           where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = $4
           order by id for no key update"#,
        owner.org.0,
        owner.mode.as_str(),
        platform,
        network_unique_id
    )
    .fetch_all(tx)
    .await
}

/// Connects an account. One that is connected keeps its id, what its owner set and its end tenant, unless it has none;
/// so does one that was disconnected from this tenant. For any other tenant it is a new account.
///
/// `seal` seals the grant to the account's id, which is only certain once the row is locked; until the
/// transaction ends, no other transaction can replace the sealed grant.
// Model: Connect.
pub async fn upsert(
    tx: &mut PgConnection,
    owner: Owner,
    connect: Connect,
    seal: impl FnOnce(AccountId) -> Vec<u8>,
    now: DateTime<Utc>,
) -> sqlx::Result<Connected> {
    let (id, before) = loop {
        let mut rows = lock(tx, owner, &connect.platform, &connect.profile.network_unique_id).await?;
        // The one that is connected; else the one that was last connected for this tenant.
        rows.retain(|row| row.is_connected || row.tenant_id == connect.tenant_id);
        if let Some(row) = rows.into_iter().max_by_key(|row| (row.is_connected, row.updated_at)) {
            break (row.id, Some(row));
        }
        if let Some(id) = insert(tx, owner, &connect, now).await? {
            break (id, None);
        }
        // Another transaction has connected it just now, and its row is found above.
    };
    let was_connected = before.as_ref().is_some_and(|row| row.is_connected);
    let is_assigned = was_connected
        && connect.tenant_id.is_some()
        && before.as_ref().is_some_and(|row| row.tenant_id.is_none());
    make_current(tx, owner, &connect, id).await?;
    let account = query_account!(
        "update accounts
         set username = $2, display_name = case when is_renamed then display_name else $3 end, account_type = $4,
           profile_image_url = $5, profile_url = $6, tenant_id = coalesce(tenant_id, $7),
           profile_id = case when $8 then null else profile_id end, social_network_id = $9, scopes = $10,
           token_expires_at = $11, status = 'active', last_error_code = null, last_synced_at = $12, updated_at = $12,
           grant_sealed = $13, grant_version = grant_version + 1, granted_at = $12, refresh_leased_until = null,
           grant_expires_at = $14, grant_end_told = null
         where id = $1
         returning",
        "",
        id,
        connect.profile.username,
        connect.profile.display_name,
        connect.profile.account_type,
        connect.profile.profile_image_url,
        connect.profile.profile_url,
        connect.tenant_id,
        is_assigned,
        connect.social_network_id,
        &connect.scopes,
        connect.token_expires_at,
        now,
        seal(AccountId(id)),
        connect.grant_expires_at
    )
    .fetch_one(&mut *tx)
    .await?;
    grants::announce(tx, owner, account.id).await?;
    Ok(Connected { account, is_new: before.is_none(), was_connected, is_assigned })
}

/// Inserts the row of an account that was never connected for this tenant. Returns `None` when another transaction has
/// just connected the account.
async fn insert(
    tx: &mut PgConnection,
    owner: Owner,
    connect: &Connect,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Uuid>> {
    let id = Uuid::now_v7();
    retire_others(tx, owner, connect, id).await?;
    sqlx::query_scalar!(
        "insert into accounts
           (id, org_id, mode, platform, network_unique_id, username, display_name, tenant_id, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
         on conflict on constraint accounts_identity_key do nothing
         returning id",
        id,
        owner.org.0,
        owner.mode.as_str(),
        connect.platform,
        connect.profile.network_unique_id,
        connect.profile.username,
        connect.profile.display_name,
        connect.tenant_id,
        now
    )
    .fetch_optional(tx)
    .await
}

/// Leaves a platform account to the row `id`, which may be inserted next.
async fn retire_others(tx: &mut PgConnection, owner: Owner, connect: &Connect, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update accounts set is_current = null
         where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = $4 and is_current and id <> $5",
        owner.org.0,
        owner.mode.as_str(),
        connect.platform,
        connect.profile.network_unique_id,
        id
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Makes a row the current one of its platform account. What holds for the account at its platform holds for the row: a
/// rest that the platform asked for, and the freezes of operators, which connecting it for another tenant must not end.
async fn make_current(tx: &mut PgConnection, owner: Owner, connect: &Connect, id: Uuid) -> sqlx::Result<()> {
    retire_others(tx, owner, connect, id).await?;
    sqlx::query!(
        "with others as (
           select id, rests_until from accounts
           where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = $4 and id <> $5),
         frozen as (
           insert into freezes (id, kind, subject, mode, reason, frozen_by, created_at)
           select gen_random_uuid(), f.kind, $5::uuid::text, f.mode, f.reason, f.frozen_by, f.created_at
           from freezes f
           where f.kind = 'account' and f.released_at is null and f.subject in (select id::text from others)
             and not exists (
               select from freezes own
               where own.kind = 'account' and own.subject = $5::uuid::text and own.released_at is null
                 and own.mode is not distinct from f.mode))
         update accounts
         set is_current = true, rests_until = greatest(rests_until, (select max(rests_until) from others))
         where id = $5",
        owner.org.0,
        owner.mode.as_str(),
        connect.platform,
        connect.profile.network_unique_id,
        id
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Ends what keys were given of an account that has moved to another end tenant, and records the move. The account's row
/// has no profile any more, unless it was given another one.
// Model: HandOver.
pub(crate) async fn hand_over(
    tx: &mut PgConnection,
    owner: Owner,
    id: AccountId,
    (from, to): (Option<&str>, Option<&str>),
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    // A key that names the account was given it as the former tenant's.
    let keys = sqlx::query_scalar!(
        "update api_keys
         set bound = jsonb_build_object('accounts', (bound -> 'accounts') - $1::uuid::text)
         where org_id = $2 and mode = $3 and bound -> 'accounts' ? $1::uuid::text
         returning id",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(&mut *tx)
    .await?;
    let details = json!({ "from": from, "to": to, "keys": keys });
    let change = audit::Change { action: Action::AccountMoved, object: id.0, details };
    audit::record(tx, owner, by, now, change).await
}

/// Returns one page of the accounts that a caller reaches, without disconnected ones.
pub async fn list(
    db: &PgPool,
    access: Access<'_>,
    filter: &Filter,
    page: Request,
) -> sqlx::Result<Page<Account>> {
    let (owner, bound) = access.parts();
    let mut query = QueryBuilder::new(
        "select id, platform, network_unique_id, username, display_name, account_type, profile_image_url,
                profile_url, tenant_id, profile_id, social_network_id, status, scopes, token_expires_at, grant_expires_at,
                last_synced_at, last_error_code, created_at, updated_at
         from accounts where status <> 'disconnected' and org_id = ",
    );
    query.push_bind(owner.org.0).push(" and mode = ").push_bind(owner.mode.as_str());
    if let Some(id) = filter.id {
        query.push(" and id = ").push_bind(id.0);
    }
    if let Some(profile) = filter.profile_id {
        query.push(" and profile_id = ").push_bind(profile);
    }
    let texts = [
        (" and tenant_id = ", &filter.tenant_id),
        (" and platform = ", &filter.platform),
        (" and username = ", &filter.username),
        (" and network_unique_id = ", &filter.network_unique_id),
    ];
    for (condition, value) in texts {
        if let Some(value) = value {
            query.push(condition).push_bind(value.clone());
        }
    }
    query.push(" and ");
    bounds::push_accounts(&mut query, bound);
    page.close(&mut query);
    let rows = query.build_query_as::<Account>().fetch_all(db).await?;
    Ok(page.page(rows, |account| Cursor { created_at: account.created_at, id: account.id.0 }))
}

/// Returns an account, unless it was disconnected.
pub async fn get(db: &PgPool, access: Access<'_>, id: AccountId) -> sqlx::Result<Option<Account>> {
    let Some(owner) = access.reach(db, Resource::Account, id.0).await? else { return Ok(None) };
    query_account!(
        "select",
        "from accounts where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Returns those of the accounts that are connected, in no particular order.
pub async fn get_many(db: &PgPool, access: Access<'_>, ids: &[AccountId]) -> sqlx::Result<Vec<Account>> {
    let ids = ids.iter().map(|id| id.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    query_account!(
        "select",
        "from accounts where id = any($1) and org_id = $2 and mode = $3 and status <> 'disconnected'",
        &ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await
}

/// Returns those of a platform's own ids whose accounts are connected.
pub async fn connected_ids(
    db: &PgPool,
    owner: Owner,
    platform: &str,
    network_unique_ids: &[String],
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select network_unique_id from accounts
         where org_id = $1 and mode = $2 and platform = $3 and network_unique_id = any($4)
           and status <> 'disconnected'",
        owner.org.0,
        owner.mode.as_str(),
        platform,
        network_unique_ids
    )
    .fetch_all(db)
    .await
}

/// Updates an account. One that changes its end tenant leaves its profile, unless it is given one, and the keys that name
/// it. Returns `None` when the account or the profile does not exist.
pub async fn edit(
    db: &PgPool,
    access: Access<'_>,
    id: AccountId,
    edit: Edit,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Account>> {
    let Some(owner) = access.reach(db, Resource::Account, id.0).await? else { return Ok(None) };
    let mut tx = crate::begin(db).await?;
    let before = sqlx::query!(
        "select tenant_id, profile_id from accounts
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected' for no key update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(before) = before else { return Ok(None) };
    let from = before.tenant_id;
    let to = if edit.tenant_id.is_change() { edit.tenant_id.value() } else { from.clone() };
    let is_moved = from != to;
    let edited = query_account!(
        "update accounts set
           tenant_id = $4, profile_id = case when $5 then $6::uuid else profile_id end,
           display_name = coalesce($7, display_name), is_renamed = is_renamed or $7::text is not null,
           updated_at = $8
         where id = $1 and org_id = $2 and mode = $3
           and ($6::uuid is null
             or exists (select from profiles where id = $6 and org_id = $2 and mode = $3))
         returning",
        "",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        to,
        edit.profile.is_change() || is_moved,
        edit.profile.value().map(|profile| profile.0),
        edit.display_name,
        now
    )
    .fetch_optional(&mut *tx)
    .await;
    let edited = match edited {
        // The profile was deleted by a concurrent transaction.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some("accounts_profile") => None,
        edited => edited?,
    };
    let Some(profile) = edited.as_ref().map(|account| account.profile_id) else { return Ok(None) };
    if is_moved {
        hand_over(&mut tx, owner, id, (from.as_deref(), to.as_deref()), by, now).await?;
    }
    if profile != before.profile_id {
        let details = json!({ "from": before.profile_id, "to": profile });
        let change = audit::Change { action: Action::AccountGrouped, object: id.0, details };
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(edited)
}

/// Finds the account that each entry names, of those that the caller reaches: by id, by handle or by the platform's own id.
///
/// An id wins over an equal handle.
pub async fn resolve(db: &PgPool, access: Access<'_>, entries: &[String]) -> sqlx::Result<Vec<Resolution>> {
    let (owner, bound) = access.parts();
    let ids: Vec<Uuid> = entries.iter().filter_map(|entry| entry.parse().ok()).collect();
    let mut accounts = query_account!(
        "select",
        "from accounts where org_id = $1 and mode = $2 and status <> 'disconnected'
           and (id = any($3) or username = any($4) or network_unique_id = any($4))",
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        entries
    )
    .fetch_all(db)
    .await?;
    accounts.retain(|account| account.is_within(bound));
    let mut named: HashMap<&str, Vec<&Account>> = HashMap::new();
    for account in &accounts {
        named.entry(&account.username).or_default().push(account);
        if account.network_unique_id != account.username {
            named.entry(&account.network_unique_id).or_default().push(account);
        }
    }
    let resolve = |entry: &String| {
        let id = entry.parse().ok().map(AccountId);
        if let Some(account) = accounts.iter().find(|account| Some(account.id) == id) {
            return Resolution::One(Box::new(account.clone()));
        }
        match named.get(entry.as_str()).map(Vec::as_slice) {
            None | Some([]) => Resolution::None,
            Some([account]) => Resolution::One(Box::new((*account).clone())),
            Some(_) => Resolution::Ambiguous,
        }
    };
    Ok(entries.iter().map(resolve).collect())
}
