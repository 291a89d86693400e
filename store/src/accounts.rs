//! Connected social accounts and what their platforms granted.
//!
//! A platform account is one row per owner for ever: connecting it again keeps its id, so that
//! scheduled posts survive. The grant is sealed; whoever replaces it says which version he read, so
//! that of two refreshes at the same time one wins and the other reads again.

use crate::{
    Change,
    decode::Parsed,
    grants,
    page::{Cursor, Page, Request},
};
use chrono::{DateTime, Utc};
use domain::{AccountId, AccountProfile, Owner, ProfileId};
use sqlx::{PgConnection, PgPool, QueryBuilder};
use std::collections::HashMap;
use uuid::Uuid;

domain::string_enum! {
    /// Whether posts can go to an account.
    AccountStatus, "account status" {
        /// They can.
        Active = "active",
        /// The token expired and could not be refreshed.
        TokenExpired = "token_expired",
        /// The platform says that the grant is gone.
        ReauthRequired = "reauth_required",
        /// It was removed.
        Disconnected = "disconnected",
    }
}

/// A connected account, without its grant.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Account {
    /// Its identifier.
    #[sqlx(try_from = "Uuid")]
    pub id: AccountId,
    /// Its platform.
    pub platform: String,
    /// The platform's own id of it.
    pub network_unique_id: String,
    /// Its handle there.
    pub username: String,
    /// Its name, for people.
    pub display_name: String,
    /// What it is there, for example `profile` or `page`.
    pub account_type: String,
    /// Its picture.
    pub profile_image_url: Option<String>,
    /// Its public page.
    pub profile_url: Option<String>,
    /// The end tenant it belongs to.
    pub tenant_id: Option<String>,
    /// The profile it is grouped under.
    pub profile_id: Option<Uuid>,
    /// The OAuth app it was connected through.
    pub social_network_id: Option<Uuid>,
    /// Whether posts can go to it.
    #[sqlx(try_from = "Parsed<AccountStatus>")]
    pub status: AccountStatus,
    /// What the platform allows.
    pub scopes: Vec<String>,
    /// When the access token ends.
    pub token_expires_at: Option<DateTime<Utc>>,
    /// When the platform last answered for it.
    pub last_synced_at: Option<DateTime<Utc>>,
    /// Why it is not active.
    pub last_error_code: Option<String>,
    /// When it was first connected.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// What a connect flow learned about an account.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Its platform.
    pub platform: String,
    /// Profile on the platform; a display name that the owner set stays.
    pub profile: AccountProfile,
    /// The end tenant it is to belong to, unless it belongs to one already.
    pub tenant_id: Option<String>,
    /// The OAuth app it was connected through.
    pub social_network_id: Option<Uuid>,
    /// What the platform allows.
    pub scopes: Vec<String>,
    /// When the access token ends.
    pub token_expires_at: Option<DateTime<Utc>>,
}

/// What connecting an account came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The account.
    pub account: Account,
    /// Whether this owner had never connected it before.
    pub is_new: bool,
}

/// What becomes of the fields that an account's owner sets.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The end tenant it belongs to.
    pub tenant_id: Change<String>,
    /// The profile it is grouped under.
    pub profile: Change<ProfileId>,
    /// Its name, for people.
    pub display_name: Option<String>,
}

/// Which accounts to list; every condition that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this one.
    pub id: Option<AccountId>,
    /// Those of this end tenant.
    pub tenant_id: Option<String>,
    /// Those of this profile.
    pub profile_id: Option<Uuid>,
    /// Those of this platform.
    pub platform: Option<String>,
    /// Those of this handle.
    pub username: Option<String>,
    /// Those of this platform-side id.
    pub network_unique_id: Option<String>,
}

/// What an entry of a post's `accounts` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// This account.
    One(Box<Account>),
    /// No account.
    None,
    /// More than one.
    Ambiguous,
}

macro_rules! select {
    ($tail:literal, $($arg:expr),+ $(,)?) => {
        sqlx::query_as!(
            Account,
            r#"select id, platform, network_unique_id, username, display_name, account_type,
                      profile_image_url, profile_url, tenant_id, profile_id, social_network_id,
                      status as "status: Parsed<AccountStatus>", scopes, token_expires_at, last_synced_at,
                      last_error_code, created_at, updated_at
               from accounts "# + $tail,
            $($arg),+
        )
    };
}

/// Connects an account, or connects it again: then it keeps its id and what its owner set, and is active
/// once more. It also keeps its end tenant, unless it was disconnected.
///
/// `seal` seals the grant to the account's id, which is only certain once the row is locked; until
/// the transaction ends nobody else can replace what it returns.
pub async fn upsert(
    tx: &mut PgConnection,
    owner: Owner,
    connect: Connect,
    seal: impl FnOnce(AccountId) -> Vec<u8>,
    now: DateTime<Utc>,
) -> sqlx::Result<Connected> {
    let fresh = Uuid::now_v7();
    let id = sqlx::query_scalar!(
        "insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name,
           account_type, profile_image_url, profile_url, tenant_id, social_network_id, scopes,
           token_expires_at, last_synced_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $15)
         on conflict on constraint accounts_identity_key do update set
           username = excluded.username,
           display_name = case when accounts.is_renamed then accounts.display_name else excluded.display_name end,
           account_type = excluded.account_type, profile_image_url = excluded.profile_image_url,
           profile_url = excluded.profile_url,
           tenant_id = case when accounts.status = 'disconnected'
             then coalesce(excluded.tenant_id, accounts.tenant_id)
             else coalesce(accounts.tenant_id, excluded.tenant_id) end,
           social_network_id = excluded.social_network_id, scopes = excluded.scopes,
           token_expires_at = excluded.token_expires_at, status = 'active', last_error_code = null,
           last_synced_at = excluded.last_synced_at, updated_at = excluded.updated_at
         returning id",
        fresh,
        owner.org.0,
        owner.mode.as_str(),
        connect.platform,
        connect.profile.network_unique_id,
        connect.profile.username,
        connect.profile.display_name,
        connect.profile.account_type,
        connect.profile.profile_image_url,
        connect.profile.profile_url,
        connect.tenant_id,
        connect.social_network_id,
        &connect.scopes,
        connect.token_expires_at,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    let account = sqlx::query_as!(
        Account,
        r#"update accounts
           set grant_sealed = $2, grant_version = grant_version + 1, granted_at = $3,
             refresh_leased_until = null
           where id = $1
           returning id, platform, network_unique_id, username, display_name, account_type,
             profile_image_url, profile_url, tenant_id, profile_id, social_network_id,
             status as "status: Parsed<AccountStatus>", scopes, token_expires_at, last_synced_at,
             last_error_code, created_at, updated_at"#,
        id,
        seal(AccountId(id)),
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    grants::announce(tx, owner, account.id).await?;
    Ok(Connected { account, is_new: id == fresh })
}

/// One page of the owner's accounts, without those that were disconnected.
pub async fn list(db: &PgPool, owner: Owner, filter: &Filter, page: Request) -> sqlx::Result<Page<Account>> {
    let mut query = QueryBuilder::new(
        "select id, platform, network_unique_id, username, display_name, account_type, profile_image_url,
                profile_url, tenant_id, profile_id, social_network_id, status, scopes, token_expires_at,
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
    page.close(&mut query);
    let rows = query.build_query_as::<Account>().fetch_all(db).await?;
    Ok(page.page(rows, |account| Cursor { created_at: account.created_at, id: account.id.0 }))
}

/// One account, unless it was disconnected.
pub async fn get(db: &PgPool, owner: Owner, id: AccountId) -> sqlx::Result<Option<Account>> {
    select!(
        "where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Those of some accounts that are connected, in no order.
pub async fn get_many(db: &PgPool, owner: Owner, ids: &[AccountId]) -> sqlx::Result<Vec<Account>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
    select!(
        "where id = any($1) and org_id = $2 and mode = $3 and status <> 'disconnected'",
        &ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await
}

/// Those of some ids of a platform that are connected.
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

/// Changes an account; `None` when the account or the profile is not there.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: AccountId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Account>> {
    let edited = sqlx::query_as!(
        Account,
        r#"update accounts set
             tenant_id = case when $4 then $5 else tenant_id end,
             profile_id = case when $6 then $7::uuid else profile_id end,
             display_name = coalesce($8, display_name), is_renamed = is_renamed or $8::text is not null,
             updated_at = $9
           where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'
             and ($7::uuid is null
               or exists (select from profiles where id = $7 and org_id = $2 and mode = $3))
           returning id, platform, network_unique_id, username, display_name, account_type,
             profile_image_url, profile_url, tenant_id, profile_id, social_network_id,
             status as "status: Parsed<AccountStatus>", scopes, token_expires_at, last_synced_at,
             last_error_code, created_at, updated_at"#,
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.tenant_id.is_made(),
        edit.tenant_id.value(),
        edit.profile.is_made(),
        edit.profile.value().map(|profile| profile.0),
        edit.display_name,
        now
    )
    .fetch_optional(db)
    .await;
    match edited {
        // The profile was removed at the same moment.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some("accounts_profile") => Ok(None),
        edited => edited,
    }
}

/// What each entry stands for: an account's id, its handle or its platform-side id.
///
/// An id names its account whatever handles look like it.
pub async fn resolve(db: &PgPool, owner: Owner, entries: &[String]) -> sqlx::Result<Vec<Resolution>> {
    let ids: Vec<Uuid> = entries.iter().filter_map(|entry| entry.parse().ok()).collect();
    let accounts = select!(
        "where org_id = $1 and mode = $2 and status <> 'disconnected'
           and (id = any($3) or username = any($4) or network_unique_id = any($4))",
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        entries
    )
    .fetch_all(db)
    .await?;
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

/// Moves an account to another status; true only when that changed something, so that whoever hears
/// true tells the webhooks, and nobody else does.
///
/// A disconnected account stays so until it is connected again, and its grant is erased.
pub async fn set_status(
    tx: &mut PgConnection,
    owner: Owner,
    id: AccountId,
    status: AccountStatus,
    last_error_code: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update accounts set status = $4, last_error_code = $5, updated_at = $6,
           grant_sealed = case when $4 = 'disconnected' then null else grant_sealed end
         where id = $1 and org_id = $2 and mode = $3 and status not in ($4, 'disconnected')",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        status.as_str(),
        last_error_code,
        now
    )
    .execute(tx)
    .await?;
    Ok(done.rows_affected() > 0)
}
