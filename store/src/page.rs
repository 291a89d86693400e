//! Pages of a list, newest first.
//!
//! A page starts after a row, not after a number of rows, so that rows inserted while a client pages are
//! neither skipped nor repeated. The cursor is that row's sort key, with the microseconds that Postgres
//! stores. The API decides how a cursor is encoded.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

/// Sort key of the last row of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// When the row was created, or another time that its list is ordered by, to the microsecond.
    pub created_at: DateTime<Utc>,
    /// Row id.
    pub id: Uuid,
}

impl Cursor {
    /// Comes before all rows.
    pub(crate) const FIRST: Self = Self { created_at: DateTime::UNIX_EPOCH, id: Uuid::nil() };
}

/// A time later than all that are stored: the last second of the year 9999.
const LAST: DateTime<Utc> = match DateTime::from_timestamp(253_402_300_799, 0) {
    Some(last) => last,
    None => panic!("a time of four-digit years"),
};

/// A request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Last row of the previous page; `None` for the first page.
    pub after: Option<Cursor>,
    /// Maximum number of rows.
    pub limit: u32,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Rows of the page.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// A page without rows, the last one.
    pub(crate) const fn empty() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl Request {
    /// Appends the page's bounds and order to a query. It reads one row more than requested, to know whether
    /// there is another page. A first page gets no condition at all: one with `or` could not use the index
    /// once the statement's plan is generic.
    pub(crate) fn close(&self, query: &mut QueryBuilder<Postgres>) {
        self.close_by("created_at", query);
    }

    /// Does the same for a list ordered by another time.
    pub(crate) fn close_by(&self, time: &'static str, query: &mut QueryBuilder<Postgres>) {
        self.close_at(time, "id", query);
    }

    /// Does the same for a list ordered by a time and an id of these names.
    pub(crate) fn close_at(&self, time: &str, id: &str, query: &mut QueryBuilder<Postgres>) {
        if let Some(after) = self.after {
            query.push(format_args!(" and ({time}, {id}) < (")).push_bind(after.created_at);
            query.push(", ").push_bind(after.id).push(")");
        }
        query.push(format_args!(" order by {time} desc, {id} desc limit ")).push_bind(self.rows());
    }

    /// Returns the row that all rows of the page come before, newest first: one later than all on the first page. For a
    /// statement with a fixed text, `(created_at, id) < ($1, $2)`.
    pub(crate) fn before(&self) -> Cursor {
        self.after.unwrap_or(Cursor { created_at: LAST, id: Uuid::max() })
    }

    /// Returns the row that all rows of the page come after, oldest first: one earlier than all on the first page.
    pub(crate) fn beyond(&self) -> Cursor {
        self.after.unwrap_or(Cursor::FIRST)
    }

    /// Returns the number of rows to read: one more than requested, to know whether there is another page.
    pub(crate) fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// Creates the page from the rows of such a query.
    pub(crate) fn page<T>(&self, rows: Vec<T>, cursor: impl FnOnce(&T) -> Cursor) -> Page<T> {
        let found = rows.len() as i64;
        self.part(rows, found, cursor)
    }

    /// Creates the page from the first rows of such a query: it found more, which would have made the page too large.
    pub(crate) fn part<T>(&self, mut rows: Vec<T>, found: i64, cursor: impl FnOnce(&T) -> Cursor) -> Page<T> {
        let limit = self.limit as usize;
        let more = rows.len() > limit || found > rows.len() as i64;
        rows.truncate(limit);
        let next = if more { rows.last().map(cursor) } else { None };
        Page { items: rows, next }
    }
}
