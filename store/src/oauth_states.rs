//! Authorizations that are under way at a platform.
//!
//! What an authorization is for is kept here, and only its id travels: some platforms carry no more
//! than 500 characters of `state`. A row is claimed by whoever comes back first; it stays a while
//! after its end, so that a late or repeated return is told what it is and where it belongs.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, NetworkId, Owner, StateId};
use sqlx::PgPool;
use uuid::Uuid;

/// How long an authorization is remembered after its end.
const MEMORY: TimeDelta = TimeDelta::days(1);

/// What an authorization is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationRequest {
    /// The platform.
    pub platform: String,
    /// The OAuth app; `None` for a shared one.
    pub network: Option<NetworkId>,
    /// Where the platform sends its user back to, exactly as it was told.
    pub callback: String,
    /// Where the user goes from there; `None` for our own pages.
    pub redirect_uri: Option<String>,
    /// The end tenant that the account is to belong to.
    pub tenant_id: Option<String>,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    /// The account that is to be connected again.
    pub account: Option<AccountId>,
    /// Who has to come back: the platform's own id of the account.
    pub network_unique_id: Option<String>,
    /// Whether the user has to log in again although the platform knows him.
    pub is_forced: bool,
}

/// What claiming an authorization came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This is the first return.
    First(AuthorizationRequest),
    /// Somebody returned before.
    Repeated(AuthorizationRequest),
}

/// Keeps an authorization until `expires_at` and a while longer; older ones are cleared away.
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
           account_id, network_unique_id, is_forced, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14, $15)",
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
        now - MEMORY,
        now,
        expires_at
    )
    .execute(db)
    .await?;
    Ok(id)
}

/// Claims an authorization. Of all who do, one is the first. `None` when nothing is known of it.
///
/// Whether it has expired is not asked here: whoever read the id out of a state knows.
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

/// What an authorization is for, claimed or not.
pub async fn get(db: &PgPool, owner: Owner, id: StateId) -> sqlx::Result<Option<AuthorizationRequest>> {
    let row = sqlx::query!(
        "select platform, network_id, callback, redirect_uri, tenant_id, scopes, account_id,
           network_unique_id, is_forced
         from oauth_states where id = $1 and org_id = $2 and mode = $3",
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
    }))
}
