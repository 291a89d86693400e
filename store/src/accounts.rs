//! Connected social accounts.
//!
//! A platform account is one row per owner, also after it was disconnected: connecting it again keeps its
//! id, so that scheduled posts survive. Its grant is in the same row; see [`crate::grants`].

use crate::{
    Change, bounds,
    decode::Parsed,
    grants,
    page::{Cursor, Page, Request},
};
use chrono::{DateTime, Utc};
use domain::{AccountId, AccountProfile, Bound, Owner, ProfileId};
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
}

/// The result of connecting an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The account, now active.
    pub account: Account,
    /// True if this owner had never connected the account before.
    pub is_new: bool,
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
    /// Bound of the caller's key.
    pub bound: Bound,
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
                 status as "status: Parsed<AccountStatus>", scopes, token_expires_at,
                 last_synced_at, last_error_code, created_at, updated_at "# + $tail,
            $($arg),+
        )
    };
}
pub(crate) use query_account;

/// Connects an account. One that was connected before keeps its id and what its owner set, and becomes
/// active; unless it was disconnected, it also keeps its end tenant.
///
/// `seal` seals the grant to the account's id, which is only certain once the row is locked; until the
/// transaction ends, no other transaction can replace the sealed grant.
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
    let account = query_account!(
        "update accounts
         set grant_sealed = $2, grant_version = grant_version + 1, granted_at = $3,
           refresh_leased_until = null
         where id = $1
         returning",
        "",
        id,
        seal(AccountId(id)),
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    grants::announce(tx, owner, account.id).await?;
    Ok(Connected { account, is_new: id == fresh })
}

/// Returns one page of the owner's accounts, without disconnected ones.
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
    query.push(" and ");
    bounds::push_accounts(&mut query, &filter.bound);
    page.close(&mut query);
    let rows = query.build_query_as::<Account>().fetch_all(db).await?;
    Ok(page.page(rows, |account| Cursor { created_at: account.created_at, id: account.id.0 }))
}

/// Returns an account, unless it was disconnected.
pub async fn get(db: &PgPool, owner: Owner, id: AccountId) -> sqlx::Result<Option<Account>> {
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
pub async fn get_many(db: &PgPool, owner: Owner, ids: &[AccountId]) -> sqlx::Result<Vec<Account>> {
    let ids: Vec<_> = ids.iter().map(|id| id.0).collect();
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

/// Updates an account. Returns `None` when the account or the profile does not exist.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: AccountId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Account>> {
    let edited = query_account!(
        "update accounts set
           tenant_id = case when $4 then $5 else tenant_id end,
           profile_id = case when $6 then $7::uuid else profile_id end,
           display_name = coalesce($8, display_name), is_renamed = is_renamed or $8::text is not null,
           updated_at = $9
         where id = $1 and org_id = $2 and mode = $3 and status <> 'disconnected'
           and ($7::uuid is null
             or exists (select from profiles where id = $7 and org_id = $2 and mode = $3))
         returning",
        "",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.tenant_id.is_change(),
        edit.tenant_id.value(),
        edit.profile.is_change(),
        edit.profile.value().map(|profile| profile.0),
        edit.display_name,
        now
    )
    .fetch_optional(db)
    .await;
    match edited {
        // The profile was deleted by a concurrent transaction.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some("accounts_profile") => Ok(None),
        edited => edited,
    }
}

/// Finds the account that each entry names, of those within the bound: by id, by handle or by the platform's own id.
///
/// An id wins over an equal handle.
pub async fn resolve(
    db: &PgPool,
    owner: Owner,
    bound: &Bound,
    entries: &[String],
) -> sqlx::Result<Vec<Resolution>> {
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
