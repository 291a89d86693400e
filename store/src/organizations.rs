//! Organizations: the tenants everything belongs to.

use chrono::{DateTime, Utc};
use domain::OrgId;
use sqlx::PgPool;
use uuid::Uuid;

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Its identifier.
    pub id: OrgId,
    /// Its name, for people.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Makes an organization.
pub async fn create(db: &PgPool, name: &str) -> sqlx::Result<OrgId> {
    let id = OrgId(Uuid::now_v7());
    sqlx::query!("insert into organizations (id, name) values ($1, $2)", id.0, name).execute(db).await?;
    Ok(id)
}

/// The organization of this name; names are not unique, the oldest wins.
pub async fn find_by_name(db: &PgPool, name: &str) -> sqlx::Result<Option<Organization>> {
    sqlx::query_as!(
        Organization,
        "select id, name, created_at from organizations where name = $1 order by created_at, id limit 1",
        name
    )
    .fetch_optional(db)
    .await
}

/// Every organization, oldest first.
pub async fn list(db: &PgPool) -> sqlx::Result<Vec<Organization>> {
    sqlx::query_as!(Organization, "select id, name, created_at from organizations order by created_at, id")
        .fetch_all(db)
        .await
}

/// Puts an organization on another plan, which counts from its next call on; false when there is none.
pub async fn set_plan(db: &PgPool, id: OrgId, plan: &str) -> sqlx::Result<bool> {
    let done =
        sqlx::query!("update organizations set plan = $2 where id = $1", id.0, plan).execute(db).await?;
    Ok(done.rows_affected() > 0)
}
