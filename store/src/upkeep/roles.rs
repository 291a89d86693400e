//! Database roles of the processes.
//!
//! Migrations run as the owner of the database. The API and the workers have roles of their own, which change
//! rows and no table; the API's can't read sealed values, so that a fault in the API discloses none. They are
//! granted again after each migration, because a new table is accessible to its owner only. Tables that change, as
//! partitions do, are changed by functions that run as the owner.

use anyhow::Context;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool, Row};

/// Names of the processes' roles, which must exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles<'a> {
    /// Role of the API; `None` if it connects as the owner.
    pub api: Option<&'a str>,
    /// Role of the workers; `None` if they connect as the owner.
    pub worker: Option<&'a str>,
}

/// Ending of the names of columns with sealed values.
const SEALED: &str = "_sealed";
/// Table of the applied migrations, which a process may read.
const MIGRATIONS: &str = "_sqlx_migrations";

/// Grants the roles what their processes need, and revokes everything else.
///
/// # Errors
///
/// If a role does not exist, or the connection is not the owner's.
pub async fn grant(db: &PgPool, roles: Roles<'_>) -> anyhow::Result<()> {
    let mut db = db.acquire().await.context("Postgres doesn't answer")?;
    if roles.api.is_some() || roles.worker.is_some() {
        let closing: String = sqlx::query_scalar(NO_TEMPORARY_TABLES).fetch_one(&mut *db).await?;
        sqlx::raw_sql(AssertSqlSafe(closing))
            .execute(&mut *db)
            .await
            .context("temporary tables can't be revoked")?;
    }
    for (role, reads_sealed) in [(roles.api, false), (roles.worker, true)] {
        let Some(role) = role else { continue };
        // One transaction: a process with this role never finds a privilege missing.
        let mut tx = db.begin().await?;
        let statements = statements(&mut tx, role, reads_sealed).await?;
        sqlx::raw_sql(AssertSqlSafe(statements))
            .execute(&mut *tx)
            .await
            .with_context(|| format!("the role {role} can't be granted its privileges"))?;
        tx.commit().await?;
    }
    Ok(())
}

/// Makes the statement that lets only the owner create temporary tables, which any role of a new database may.
const NO_TEMPORARY_TABLES: &str =
    "select format('revoke temporary on database %I from public', current_database())";

/// Returns the statements for one role.
async fn statements(db: &mut PgConnection, role: &str, reads_sealed: bool) -> anyhow::Result<String> {
    let role = quoted(role);
    let mut statements = format!(
        "revoke all on all tables in schema public from {role};
         grant usage on schema public to {role};
         grant usage, select on all sequences in schema public to {role};
         grant select on {MIGRATIONS} to {role};"
    );
    let functions = "select oid::regprocedure::text from pg_proc
                     where prosecdef and pronamespace = 'public'::regnamespace order by 1";
    for function in sqlx::query_scalar::<_, String>(functions).fetch_all(&mut *db).await? {
        statements.push_str(&format!("grant execute on function {function} to {role};"));
    }
    let columns = sqlx::query(
        "select c.relname::text, array_agg(a.attname::text order by a.attnum)
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname <> $1
         group by c.relname order by c.relname",
    );
    for row in columns.bind(MIGRATIONS).fetch_all(db).await? {
        let (table, columns): (String, Vec<String>) = (row.get(0), row.get(1));
        let (sealed, open): (Vec<_>, Vec<_>) = columns.iter().partition(|name| name.ends_with(SEALED));
        let table = quoted(&table);
        statements.push_str(&format!("grant insert, update, delete on {table} to {role};"));
        if sealed.is_empty() || reads_sealed {
            statements.push_str(&format!("grant select on {table} to {role};"));
        } else {
            let open = open.into_iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            statements.push_str(&format!("grant select ({open}) on {table} to {role};"));
        }
    }
    Ok(statements)
}

/// Quotes an identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
