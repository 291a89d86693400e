//! Pending OAuth authorization requests.
//!
//! The request is stored here and only its id is sent as `state`, because some platforms allow no more than
//! 500 characters there. The first callback claims the row. The row is kept for a day after it expires, so
//! that a late or repeated callback can be explained and sent to the right redirect URI.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, KeyId, NetworkId, Owner, StateId};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, types::Json};
use uuid::Uuid;

/// Retention of an authorization request after its expiry.
const RETENTION: TimeDelta = TimeDelta::days(1);

/// Who began a login, and what it may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Begun {
    /// The API key or client token; `None` for a session of the dashboard.
    pub with: Option<KeyId>,
    /// True if the caller was limited to a part of the organization's data: the login then changes no end tenant.
    pub is_limited: bool,
    /// End tenant of the account to connect again, at that time: the login takes it from no other one.
    pub account_tenant: Option<String>,
}

/// A request to authorize Fanfare on a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationRequest {
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// The OAuth app; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// Redirect URI sent to the platform, byte for byte.
    pub callback: String,
    /// URL to redirect the user to after the callback; `None` for Fanfare's own pages.
    pub redirect_uri: Option<String>,
    /// End tenant to assign to the account.
    pub tenant_id: Option<String>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// The account to connect again.
    pub account: Option<AccountId>,
    /// The platform's own id of the account that must be authorized.
    pub network_unique_id: Option<String>,
    /// True if the platform must ask for a login even if the user has a session there.
    pub is_forced: bool,
    /// True if the login is only connected by a call with an API key.
    pub confirm: bool,
    /// Who began it.
    pub begun: Begun,
}

/// The result of claiming an authorization request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The first callback.
    First(AuthorizationRequest),
    /// A repeated callback.
    Repeated(AuthorizationRequest),
}

/// Stores an authorization request until a day after `expires_at`, and deletes older ones.
pub async fn store(
    db: &PgPool,
    owner: Owner,
    intent: &AuthorizationRequest,
    now: DateTime<Utc>,
    expires_at: DateTime<Utc>,
) -> sqlx::Result<StateId> {
    let id = StateId(Uuid::now_v7());
    sqlx::query!(
        "with old as (
           delete from oauth_states
           where id in (select id from oauth_states where expires_at < $13 limit 100 for update skip locked)
         )
         insert into oauth_states (id, org_id, mode, platform, network_id, callback, redirect_uri, tenant_id, scopes,
           account_id, network_unique_id, is_forced, created_at, expires_at, confirm, begun)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14, $15, $16, $17)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        intent.platform,
        intent.network.map(|network| network.0),
        intent.callback,
        intent.redirect_uri,
        intent.tenant_id,
        &intent.scopes,
        intent.account.map(|account| account.0),
        intent.network_unique_id,
        intent.is_forced,
        now - RETENTION,
        now,
        expires_at,
        intent.confirm,
        Json(&intent.begun) as _
    )
    .execute(db)
    .await?;
    Ok(id)
}

/// Claims an authorization request. Of concurrent callers, one is the first. Returns `None` when it is
/// unknown.
///
/// Expiry is not checked: the caller reads it from the `state`.
pub async fn claim(db: &PgPool, owner: Owner, id: StateId) -> sqlx::Result<Option<Claim>> {
    let claims = sqlx::query_scalar!(
        "update oauth_states set claims = claims + 1 where id = $1 and org_id = $2 and mode = $3 returning claims",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    let Some(claims) = claims else { return Ok(None) };
    let intent = get(db, owner, id).await?;
    Ok(intent.map(|intent| if claims == 1 { Claim::First(intent) } else { Claim::Repeated(intent) }))
}

/// Returns an authorization request, claimed or not.
pub async fn get(db: &PgPool, owner: Owner, id: StateId) -> sqlx::Result<Option<AuthorizationRequest>> {
    let row = sqlx::query!(
        r#"select platform, network_id, callback, redirect_uri, tenant_id, scopes, account_id,
             network_unique_id, is_forced, confirm, begun as "begun: Json<Begun>"
           from oauth_states where id = $1 and org_id = $2 and mode = $3"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| AuthorizationRequest {
        platform: row.platform,
        network: row.network_id.map(NetworkId),
        callback: row.callback,
        redirect_uri: row.redirect_uri,
        tenant_id: row.tenant_id,
        scopes: row.scopes,
        account: row.account_id.map(AccountId),
        network_unique_id: row.network_unique_id,
        is_forced: row.is_forced,
        confirm: row.confirm,
        begun: row.begun.map(|Json(begun)| begun).unwrap_or_default(),
    }))
}
