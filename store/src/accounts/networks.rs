//! Social networks: an organization's own OAuth apps, one per platform.
//!
//! A deleted app keeps its row, because accounts that were connected through it still refresh their grants
//! with its secret. Registering the platform again resets every other column of that row.

use crate::{
    Change,
    people::audit::{self, Action, Actor},
};
use chrono::{DateTime, Utc};
use domain::{NetworkId, Owner};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// An OAuth app, without its secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Network id.
    pub id: NetworkId,
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// Label for the dashboard.
    pub display_name: Option<String>,
    /// OAuth client id.
    pub client_id: Option<String>,
    /// Redirect URI registered with the platform.
    pub redirect_uri: Option<String>,
    /// Scopes to request; empty for those that publishing needs.
    pub scopes: Vec<String>,
    /// Platform-specific configuration, a JSON object.
    pub extra_config: Value,
    /// True if accounts can be connected through the app.
    pub is_enabled: bool,
    /// When the app was registered.
    pub created_at: DateTime<Utc>,
    /// When the app was last updated.
    pub updated_at: DateTime<Utc>,
}

/// Changes to an app.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Label for the dashboard.
    pub display_name: Change<String>,
    /// OAuth client id.
    pub client_id: Change<String>,
    /// Redirect URI registered with the platform.
    pub redirect_uri: Change<String>,
    /// Scopes to request; `None` keeps them.
    pub scopes: Option<Vec<String>>,
    /// Platform-specific configuration, a JSON object; `None` keeps it.
    pub extra_config: Option<Value>,
    /// True if accounts can be connected through the app; `None` keeps it.
    pub is_enabled: Option<bool>,
}

/// The result of registering an app.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The app, as stored.
    pub network: Network,
    /// True if the owner had no app for the platform.
    pub is_new: bool,
}

/// Client credentials of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// OAuth client id.
    pub client_id: Option<String>,
    /// Client secret, sealed under [`crate::upkeep::vault::aad_client_secret`].
    pub secret_sealed: Option<Vec<u8>>,
    /// Platform-specific configuration, a JSON object.
    pub extra_config: Value,
}

/// Registers a platform's app, or updates the registered one.
///
/// `seal` returns the change of the secret, sealed to the app's id, which is only certain once the row is
/// locked.
pub async fn upsert(
    db: &PgPool,
    owner: Owner,
    platform: &str,
    edit: Edit,
    seal: impl FnOnce(NetworkId) -> Change<Vec<u8>>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Saved> {
    let mut tx = crate::begin(db).await?;
    // A new row is inserted as deleted, so that new and deleted apps are reset by the same statement. Its
    // lock makes a concurrent registration of the platform find the reset app.
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
        reset(&mut tx, id, now).await?;
    }
    let secret = seal(id);
    let change = change(id, platform, &changed(&edit, &secret), row.is_new);
    let network =
        apply(&mut tx, owner, id, edit, secret, now).await?.expect("the row is locked and not deleted");
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok(Saved { network, is_new: row.is_new })
}

/// Resets a deleted app to a new one. Its credentials and configuration stay until others are sent: grants that were
/// obtained through it are refreshed with them.
async fn reset(tx: &mut PgConnection, id: NetworkId, now: DateTime<Utc>) -> sqlx::Result<()> {
    sqlx::query!(
        "update networks
         set display_name = null, redirect_uri = null, scopes = '{}', is_enabled = true, created_at = $2,
           deleted_at = null
         where id = $1",
        id.0,
        now
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Updates an app. Returns `None` when it doesn't exist.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: NetworkId,
    edit: Edit,
    secret: Change<Vec<u8>>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Network>> {
    let mut tx = crate::begin(db).await?;
    let changed = changed(&edit, &secret);
    let network = apply(&mut tx, owner, id, edit, secret, now).await?;
    if let Some(network) = &network {
        let change = change(id, &network.platform, &changed, false);
        audit::record(&mut tx, owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(network)
}

/// The names of the members that are given.
fn changed(edit: &Edit, secret: &Change<Vec<u8>>) -> Vec<&'static str> {
    let given = [
        ("display_name", edit.display_name.is_change()),
        ("client_id", edit.client_id.is_change()),
        ("client_secret", secret.is_change()),
        ("redirect_uri", edit.redirect_uri.is_change()),
        ("scopes", edit.scopes.is_some()),
        ("extra_config", edit.extra_config.is_some()),
        ("is_enabled", edit.is_enabled.is_some()),
    ];
    given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
}

fn change(id: NetworkId, platform: &str, changed: &[&str], is_new: bool) -> audit::Change {
    let action = if is_new { Action::NetworkCreated } else { Action::NetworkUpdated };
    audit::Change { action, object: id.0, details: json!({ "platform": platform, "changed": changed }) }
}

async fn apply(
    connection: &mut PgConnection,
    owner: Owner,
    id: NetworkId,
    edit: Edit,
    secret: Change<Vec<u8>>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Network>> {
    // A statement of its own: the API's role sets secrets and can't read them, not even to keep one.
    if secret.is_change() {
        sqlx::query!(
            "update networks set secret_sealed = $4
             where id = $1 and org_id = $2 and mode = $3 and deleted_at is null",
            id.0,
            owner.org.0,
            owner.mode.as_str(),
            secret.value()
        )
        .execute(&mut *connection)
        .await?;
    }
    sqlx::query_as!(
        Network,
        "update networks set
           display_name = case when $4 then $5 else display_name end,
           client_id = case when $6 then $7 else client_id end,
           redirect_uri = case when $8 then $9 else redirect_uri end,
           scopes = coalesce($10, scopes), extra_config = coalesce($11, extra_config),
           is_enabled = coalesce($12, is_enabled), updated_at = $13
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning id, platform, display_name, client_id, redirect_uri, scopes, extra_config, is_enabled,
           created_at, updated_at",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.display_name.is_change(),
        edit.display_name.value(),
        edit.client_id.is_change(),
        edit.client_id.value(),
        edit.redirect_uri.is_change(),
        edit.redirect_uri.value(),
        edit.scopes.as_deref(),
        edit.extra_config,
        edit.is_enabled,
        now
    )
    .fetch_optional(connection)
    .await
}

/// Returns the owner's apps, ordered by platform.
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

/// Returns an app.
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

/// Returns the app of a platform, enabled or not.
pub async fn get_by_platform(db: &PgPool, owner: Owner, platform: &str) -> sqlx::Result<Option<Network>> {
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

/// Returns the credentials of an app, deleted or not, because accounts that were connected through a
/// deleted app still use them.
pub async fn credentials(db: &PgPool, owner: Owner, id: NetworkId) -> sqlx::Result<Option<Credentials>> {
    sqlx::query_as!(
        Credentials,
        "select client_id, secret_sealed, extra_config from networks where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await
}

/// Deletes and disables an app. Returns false when it doesn't exist.
pub async fn delete(
    db: &PgPool,
    owner: Owner,
    id: NetworkId,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    let deleted = sqlx::query_scalar!(
        "update networks set deleted_at = $4, is_enabled = false, updated_at = $4
         where id = $1 and org_id = $2 and mode = $3 and deleted_at is null
         returning platform",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(platform) = deleted else { return Ok(false) };
    let details = json!({ "platform": platform });
    let change = audit::Change { action: Action::NetworkDeleted, object: id.0, details };
    audit::record(&mut tx, owner, by, now, change).await?;
    tx.commit().await?;
    Ok(true)
}
