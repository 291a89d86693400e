//! Pages of a list, newest first.
//!
//! A page begins after a row, not after a count of rows, so that rows which arrive while somebody
//! pages are neither skipped nor shown twice. The row is named by what the list is ordered by, with
//! the microseconds that Postgres keeps. How a cursor travels is the API's business.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

/// The last row of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// When it was made, or what else its list is ordered by, to the microsecond.
    pub created_at: DateTime<Utc>,
    /// The row.
    pub id: Uuid,
}

/// Which page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The last row of the page before; `None` for the first page.
    pub after: Option<Cursor>,
    /// How many rows at most.
    pub limit: u32,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Its rows.
    pub items: Vec<T>,
    /// Where the next page begins; `None` when there is none.
    pub next: Option<Cursor>,
}

impl Request {
    /// Ends a query with the page's bounds and order. One row more than asked for tells whether
    /// there is another page. A first page gets no condition at all: one with `or` could not use the
    /// index once the statement's plan is generic.
    pub(crate) fn close(&self, query: &mut QueryBuilder<Postgres>) {
        self.close_by("created_at", query);
    }

    /// The same for a list that is ordered by another time.
    pub(crate) fn close_by(&self, time: &'static str, query: &mut QueryBuilder<Postgres>) {
        if let Some(after) = self.after {
            query.push(" and (").push(time).push(", id) < (").push_bind(after.created_at);
            query.push(", ").push_bind(after.id).push(")");
        }
        query
            .push(" order by ")
            .push(time)
            .push(" desc, id desc limit ")
            .push_bind(i64::from(self.limit) + 1);
    }

    /// Makes a page of the rows that such a query found.
    pub(crate) fn page<T>(&self, mut rows: Vec<T>, cursor: impl FnOnce(&T) -> Cursor) -> Page<T> {
        let limit = self.limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(cursor) } else { None };
        Page { items: rows, next }
    }
}
