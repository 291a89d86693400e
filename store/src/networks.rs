//! Social networks: an organization's own OAuth apps, one per platform.
//!
//! The row outlives its removal, for accounts that were connected through the app go on refreshing
//! with its secret. Configured again, it is the same row with everything else as in a fresh one.

use crate::Change;
use chrono::{DateTime, Utc};
use domain::{NetworkId, Owner};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// An OAuth app, without its secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Its identifier.
    pub id: NetworkId,
    /// Its platform.
    pub platform: String,
    /// A label, for people.
    pub display_name: Option<String>,
    /// Its public identifier at the platform.
    pub client_id: Option<String>,
    /// The redirect URI that is registered with the platform.
    pub redirect_uri: Option<String>,
    /// The scopes that are asked for; none for those that publishing needs.
    pub scopes: Vec<String>,
    /// What else is configured; an object.
    pub extra_config: Value,
    /// Whether accounts can be connected through it.
    pub is_enabled: bool,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// What becomes of an app's fields.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// A label, for people.
    pub display_name: Change<String>,
    /// Its public identifier at the platform.
    pub client_id: Change<String>,
    /// The redirect URI that is registered with the platform.
    pub redirect_uri: Change<String>,
    /// The scopes that are asked for.
    pub scopes: Option<Vec<String>>,
    /// What else is configured; an object.
    pub extra_config: Option<Value>,
    /// Whether accounts can be connected through it.
    pub is_enabled: Option<bool>,
}

/// What registering an app came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The app.
    pub network: Network,
    /// Whether there was none for the platform.
    pub is_new: bool,
}

/// What the app names itself with at the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Its public identifier.
    pub client_id: Option<String>,
    /// Its secret, sealed under [`crate::vault::aad_client_secret`].
    pub secret_sealed: Option<Vec<u8>>,
}

/// Registers the app of a platform, or changes the one that is there.
///
/// `seal` gives what becomes of the secret, sealed to the app's id: that is only certain once the row
/// is locked.
pub async fn upsert(
    db: &PgPool,
    owner: Owner,
    platform: &str,
    edit: Edit,
    seal: impl FnOnce(NetworkId) -> Change<Vec<u8>>,
    now: DateTime<Utc>,
) -> sqlx::Result<Saved> {
    let mut tx = db.begin().await?;
    // A fresh row is born removed, so that it and one that was removed are brought to life alike; the
    // lock on it lets the next who registers the platform find a living one.
    let row = sqlx::query!(
        r#"insert into networks (id, org_id, mode, platform, deleted_at) values ($1, $2, $3, $4, $5)
           on conflict on constraint networks_platform_key do update set platform = excluded.platform
           returning id, deleted_at is not null as "is_new!""#,
        Uuid::now_v7(),
        owner.org.0,
        owner.mode.as_str(),
        platform,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    let id = NetworkId(row.id);
    if row.is_new {
        revive(&mut tx, id, now).await?;
    }
    let network = apply(&mut tx, owner, id, edit, seal(id), now).await?.expect("the row is locked and lives");
    tx.commit().await?;
    Ok(Saved { network, is_new: row.is_new })
}

/// Makes a fresh app of a removed one.
async fn revive(tx: &mut PgConnection, id: NetworkId, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update networks
         set display_name = null, client_id = null, secret_sealed = null, redirect_uri = null, scopes = '{}',
           extra_config = $2, is_enabled = true, created_at = $3, deleted_at = null
         where id = $1",
        id.0,
        json!({}),
        now
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Changes an app; `None` when it is not there.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: NetworkId,
    edit: Edit,
    secret: Change<Vec<u8>>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Network>> {
    let mut connection = db.acquire().await?;
    apply(&mut connection, owner, id, edit, secret, now).await
}

async fn apply(
    connection: &mut PgConnection,
    owner: Owner,
    id: NetworkId,
    edit: Edit,
    secret: Change<Vec<u8>>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Network>> {
    sqlx::query_as!(
        Network,
        "update networks set
           display_name = case when $4 then $5 else display_name end,
           client_id = case when $6 then $7 else client_id end,
           redirect_uri = case when $8 then $9 else redirect_uri end,
           secret_sealed = case when $10 then $11 else secret_sealed end,
           scopes = coalesce($12, scopes), extra_config = coalesce($13, extra_config),
           is_enabled = coalesce($14, is_enabled), updated_at = $15
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id, platform, display_name, client_id, redirect_uri, scopes, extra_config, is_enabled,
           created_at, updated_at",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.display_name.is_made(),
        edit.display_name.value(),
        edit.client_id.is_made(),
        edit.client_id.value(),
        edit.redirect_uri.is_made(),
        edit.redirect_uri.value(),
        secret.is_made(),
        secret.value(),
        edit.scopes.as_deref(),
        edit.extra_config,
        edit.is_enabled,
        now
    )
    .fetch_optional(connection)
    .await
}

/// The owner's apps by platform.
pub async fn list(db: &PgPool, owner: Owner) -> sqlx::Result<Vec<Network>> {
    sqlx::query_as!(
        Network,
        "select id, platform, display_name, client_id, redirect_uri, scopes, extra_config, is_enabled,
                created_at, updated_at
         from networks where org_id = $1 and mode = $2 and deleted_at is null order by platform",
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await
}

/// One app.
pub async fn get(db: &PgPool, owner: Owner, id: NetworkId) -> sqlx::Result<Option<Network>> {
    sqlx::query_as!(
        Network,
        "select id, platform, display_name, client_id, redirect_uri, scopes, extra_config, is_enabled,
                created_at, updated_at
         from networks where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// The app of a platform, enabled or not.
pub async fn of(db: &PgPool, owner: Owner, platform: &str) -> sqlx::Result<Option<Network>> {
    sqlx::query_as!(
        Network,
        "select id, platform, display_name, client_id, redirect_uri, scopes, extra_config, is_enabled,
                created_at, updated_at
         from networks where platform = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        platform,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// What an app names itself with, also when it was removed: accounts that were connected through it
/// are not affected by that.
pub async fn credentials(db: &PgPool, owner: Owner, id: NetworkId) -> sqlx::Result<Option<Credentials>> {
    sqlx::query_as!(
        Credentials,
        "select client_id, secret_sealed from networks where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Removes and disables an app; false when it is not there.
pub async fn delete(db: &PgPool, owner: Owner, id: NetworkId, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update networks set deleted_at = $4, is_enabled = false, updated_at = $4
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() > 0)
}
