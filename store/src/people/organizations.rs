//! Organizations: the tenants that own everything else.

use crate::people::audit::{self, Action, Actor, Change};
use chrono::{DateTime, Utc};
use domain::OrgId;
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Organization id.
    pub id: OrgId,
    /// Name; not unique.
    pub name: String,
    /// When the organization was created.
    pub created_at: DateTime<Utc>,
}

/// Creates an organization on the default plan.
pub async fn create(db: &PgPool, name: &str) -> sqlx::Result<OrgId> {
    let id = OrgId(Uuid::now_v7());
    sqlx::query!("insert into organizations (id, name) values ($1, $2)", id.0, name).execute(db).await?;
    Ok(id)
}

/// Returns the name of an organization's plan; `None` when the organization doesn't exist.
pub async fn plan(db: &PgPool, id: OrgId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select plan from organizations where id = $1", id.0).fetch_optional(db).await
}

/// Returns the name of an organization; `None` when it doesn't exist.
pub async fn name(db: &PgPool, id: OrgId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select name from organizations where id = $1", id.0).fetch_optional(db).await
}

/// Returns all organizations, oldest first.
pub async fn list(db: &PgPool) -> sqlx::Result<Vec<Organization>> {
    sqlx::query_as!(Organization, "select id, name, created_at from organizations order by created_at, id")
        .fetch_all(db)
        .await
}

/// Returns organizations whose names contain a text, in any case, oldest first, at most `limit`.
pub async fn search(db: &PgPool, text: &str, limit: i64) -> sqlx::Result<Vec<Organization>> {
    sqlx::query_as!(
        Organization,
        "select id, name, created_at from organizations where position(lower($1) in lower(name)) > 0
         order by created_at, id limit $2",
        text,
        limit
    )
    .fetch_all(db)
    .await
}

/// Returns true if metadata are removed from an organization's media before they are published.
pub async fn strips_metadata(db: &PgPool, id: OrgId) -> sqlx::Result<bool> {
    let strips = sqlx::query_scalar!("select strip_metadata from organizations where id = $1", id.0);
    Ok(strips.fetch_optional(db).await?.unwrap_or(true))
}

/// Sets whether metadata are removed from an organization's media before they are published.
pub async fn set_strip_metadata(
    db: &PgPool,
    id: OrgId,
    strip_metadata: bool,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    sqlx::query!("update organizations set strip_metadata = $2 where id = $1", id.0, strip_metadata)
        .execute(&mut *tx)
        .await?;
    let details = json!({ "strip_metadata": strip_metadata });
    let change = Change { action: Action::MediaSettingsUpdated, object: id.0, details };
    audit::record_shared(&mut tx, id, by, now, change).await?;
    tx.commit().await
}

/// Moves an organization to another plan, effective from its next request. Returns false when it doesn't
/// exist.
pub async fn set_plan(db: &PgPool, id: OrgId, plan: &str) -> sqlx::Result<bool> {
    let done =
        sqlx::query!("update organizations set plan = $2 where id = $1", id.0, plan).execute(db).await?;
    Ok(done.rows_affected() > 0)
}
