//! The log of requests with an API key, for the organization that sent them.
//!
//! It is written in batches after the responses, and a batch that can't be written is lost: the log must never
//! delay or fail a request.

use crate::page::{Cursor, Page, Request};
use chrono::{DateTime, Utc};
use domain::Owner;
use sqlx::{PgPool, QueryBuilder};
use std::collections::HashSet;
use uuid::Uuid;

/// Requests of an owner that are kept; older ones are deleted.
pub const KEPT: i64 = 10_000;
/// Requests deleted at once.
const PRUNED: i64 = 5_000;

/// A request and its response.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Entry {
    /// The request's id.
    pub id: Uuid,
    /// HTTP method.
    pub method: String,
    /// Pattern of the path, which contains no id and no token.
    pub path: String,
    /// HTTP status of the response.
    pub status: i32,
    /// Time until the response began.
    pub duration_ms: i32,
    /// Last four characters of the API key.
    pub last_four: String,
    /// When the request was received.
    pub at: DateTime<Utc>,
}

/// Appends requests of any owners.
pub async fn append(db: &PgPool, entries: &[(Owner, Entry)]) -> sqlx::Result<()> {
    let column =
        |read: fn(&Entry) -> String| entries.iter().map(|(_, entry)| read(entry)).collect::<Vec<_>>();
    let number = |read: fn(&Entry) -> i32| entries.iter().map(|(_, entry)| read(entry)).collect::<Vec<_>>();
    sqlx::query!(
        "insert into request_log (id, org_id, mode, method, path, status, duration_ms, last_four, at)
         select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::integer[],
           $7::integer[], $8::text[], $9::timestamptz[])",
        &entries.iter().map(|(_, entry)| entry.id).collect::<Vec<_>>(),
        &entries.iter().map(|(owner, _)| owner.org.0).collect::<Vec<_>>(),
        &entries.iter().map(|(owner, _)| owner.mode.as_str().to_owned()).collect::<Vec<_>>(),
        &column(|entry| entry.method.clone()),
        &column(|entry| entry.path.clone()),
        &number(|entry| entry.status),
        &number(|entry| entry.duration_ms),
        &column(|entry| entry.last_four.clone()),
        &entries.iter().map(|(_, entry)| entry.at).collect::<Vec<_>>()
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Deletes requests: of these owners all but the newest [`KEPT`], and of all owners those older than seven days.
pub async fn prune(db: &PgPool, owners: &HashSet<Owner>) -> sqlx::Result<()> {
    for owner in owners {
        sqlx::query!(
            "delete from request_log
             where id in (
               select id from request_log where org_id = $1 and mode = $2
               order by at desc, id desc offset $3 limit $4)",
            owner.org.0,
            owner.mode.as_str(),
            KEPT,
            PRUNED
        )
        .execute(db)
        .await?;
    }
    sqlx::query!(
        "delete from request_log
         where id in (select id from request_log where at < now() - interval '7 days' order by at limit $1)",
        PRUNED
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Filter of a list of requests; all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Lowest status.
    pub min_status: Option<i32>,
    /// Beginning of the path.
    pub path: Option<String>,
}

/// Returns one page of the owner's requests.
pub async fn list(db: &PgPool, owner: Owner, filter: &Filter, page: Request) -> sqlx::Result<Page<Entry>> {
    let mut query = QueryBuilder::new(
        "select id, method, path, status, duration_ms, last_four, at from request_log
         where at > now() - interval '7 days' and org_id = ",
    );
    query.push_bind(owner.org.0).push(" and mode = ").push_bind(owner.mode.as_str());
    if let Some(status) = filter.min_status {
        query.push(" and status >= ").push_bind(status);
    }
    if let Some(path) = &filter.path {
        query.push(" and starts_with(path, ").push_bind(path.clone()).push(")");
    }
    page.close_by("at", &mut query);
    let rows = query.build_query_as::<Entry>().fetch_all(db).await?;
    Ok(page.page(rows, |entry| Cursor { created_at: entry.at, id: entry.id }))
}
