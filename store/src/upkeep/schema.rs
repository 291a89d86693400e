//! The version of the schema.

use sqlx::{PgPool, migrate::Migrator};
use std::collections::BTreeSet;

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";

/// State of a database's schema, compared with the one that this version needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// All migrations of this version are applied.
    Current,
    /// The database has no schema.
    Missing,
    /// A migration of this version is missing, or was not finished.
    Behind {
        /// Number of the first one.
        missing: i64,
    },
}

/// Returns the migrations of this version.
pub(crate) fn migrations() -> Migrator {
    sqlx::migrate!("./migrations")
}

/// Compares the schema with the one that this version needs. Migrations that a newer version added don't count.
///
/// # Errors
///
/// When the database doesn't answer.
pub async fn state(db: &PgPool) -> sqlx::Result<Schema> {
    // Unchecked: the table is sqlx's own, and not part of the schema.
    let applied =
        sqlx::query_scalar("select version from _sqlx_migrations where success").fetch_all(db).await;
    let applied: BTreeSet<i64> = match applied {
        Ok(applied) => applied.into_iter().collect(),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => {
            return Ok(Schema::Missing);
        }
        Err(error) => return Err(error),
    };
    let migrations = migrations();
    let missing =
        migrations.iter().map(|migration| migration.version).find(|version| !applied.contains(version));
    Ok(missing.map_or(Schema::Current, |missing| Schema::Behind { missing }))
}
