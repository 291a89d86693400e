//! The lineage of a database: whether its rows are the latest that the workers have written.
//!
//! A restored database looks sound, and its rows don't know what was published since the backup. So two things are kept
//! in it that a restore brings back, and compared with what it does not bring back:
//!
//! * The server's identity, its timeline and the database, and the transaction that wrote their row. In a database that
//!   was restored from a dump, copied or restored to a point in time, and after a promotion, they are others. A dump that is
//!   loaded into the very same database writes the row in another transaction.
//! * The time of the last beat. Workers write it every few seconds, and to Temporal as well. A database that was restored
//!   from a copy of its files without another timeline has an earlier one.
//!
//! If they differ, no worker publishes until an operator has run `fanfare ops restored`.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use uuid::Uuid;

/// SQLSTATE of a table that does not exist: the schema is that of an earlier version.
const UNDEFINED_TABLE: &str = "42P01";

/// The last beat of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The installation's id, which a restore brings back.
    pub installation: Uuid,
    /// Time of the beat, by the database's clock; `None` before the first.
    pub at: Option<DateTime<Utc>>,
}

/// Records that the rows are of this server, if nothing is recorded yet.
pub async fn begin(db: &PgPool) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into installation (id, server, written_by, recorded_at)
         values ($1, server_lineage(), pg_current_xact_id(), clock_timestamp())
         on conflict do nothing",
        Uuid::now_v7()
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Records that the rows are of this server, and the latest, from now on.
pub(crate) async fn accept(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "with beat as (
           insert into installation_beats as b (at) values (clock_timestamp())
           on conflict (is_only) do update set at = greatest(b.at + interval '1 microsecond', excluded.at))
         insert into installation (id, server, written_by, recorded_at)
         values ($1, server_lineage(), pg_current_xact_id(), clock_timestamp())
         on conflict (is_only) do update
         set server = excluded.server, written_by = excluded.written_by, recorded_at = excluded.recorded_at",
        Uuid::now_v7()
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns true if the rows were written on another server, timeline or database, or were restored from a dump.
pub async fn is_foreign(connection: &mut PgConnection) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select server <> server_lineage()
             or written_by::text::numeric % 4294967296 <> xmin::text::numeric as "is_foreign!"
           from installation"#
    )
    .fetch_optional(connection)
    .await;
    match found {
        Ok(found) => Ok(found.unwrap_or(false)),
        Err(sqlx::Error::Database(error)) if error.code().is_some_and(|code| code == UNDEFINED_TABLE) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Writes a beat, unless there was one within `interval`. Returns it, for Temporal; `None` without one, or if nothing is
/// recorded.
pub async fn beat(db: &PgPool, interval: Duration) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!(
        "insert into installation_beats as b (at)
         select clock_timestamp() where exists (select from installation)
         on conflict (is_only) do update set at = excluded.at
         where b.at <= excluded.at - make_interval(secs => $1)
         returning at",
        interval.as_secs_f64()
    )
    .fetch_optional(db)
    .await
}

/// Returns the last beat; `None` if nothing is recorded.
pub async fn last_beat(db: &PgPool) -> sqlx::Result<Option<Beat>> {
    let row = sqlx::query!(
        r#"select i.id, b.at as "at?" from installation i left join installation_beats b on true"#
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Beat { installation: row.id, at: row.at }))
}
