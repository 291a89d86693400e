//! What each account received and what was accepted, for tests that count.
//!
//! An entry is written in the same turn as what it tells of, so that after a crash the two agree.
//! It holds no token, no query and no body.

use super::shelf::{Record, Shelf};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How many entries are kept; older ones go.
const KEPT: u64 = 200_000;

/// One request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Counts up from 1.
    pub(crate) seq: u64,
    /// When it was processed.
    pub(crate) at: DateTime<Utc>,
    /// The platform.
    pub(crate) platform: String,
    /// Whose request, where it tells.
    pub(crate) account: Option<String>,
    /// The method.
    pub(crate) method: String,
    /// The platform's host that was addressed.
    pub(crate) host: String,
    /// The path there.
    pub(crate) path: String,
    /// The status of the reply; null when there was none.
    pub(crate) status: Option<u16>,
    /// Whether a new post came into being.
    pub(crate) accepted: bool,
    /// Which; the first where there were several.
    pub(crate) post_id: Option<String>,
    /// All of them.
    pub(crate) post_ids: Vec<String>,
    /// The fault or hold that took place.
    pub(crate) fault: Option<String>,
}

impl Record for Entry {
    const SHELF: &'static str = "journal";

    fn key(&self) -> String {
        key(self.seq)
    }
}

fn key(seq: u64) -> String {
    format!("{seq:012}")
}

/// Writes an entry and numbers it.
pub(crate) fn add(shelf: &mut Shelf, entry: &mut Entry) {
    entry.seq = last(shelf) + 1;
    shelf.put(entry);
    if entry.seq > KEPT {
        shelf.remove::<Entry>(&key(entry.seq - KEPT));
    }
}

/// The number of the last entry.
pub(crate) fn last(shelf: &Shelf) -> u64 {
    shelf.under::<Entry>("").next_back().map_or(0, |last| last.seq)
}

/// Notes that the reply to an entry's request never left.
pub(crate) fn lose(shelf: &mut Shelf, seq: u64) {
    if let Some(mut entry) = shelf.get::<Entry>(&key(seq)) {
        entry.status = None;
        shelf.put(&entry);
    }
}

/// Which entries are asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    /// The account's name.
    pub(crate) account: Option<String>,
    /// The platform.
    pub(crate) platform: Option<String>,
    /// How the path begins, with or without the host.
    pub(crate) path: Option<String>,
    /// The method.
    pub(crate) method: Option<String>,
    /// Whether it published.
    pub(crate) accepted: Option<bool>,
    /// The fault.
    pub(crate) fault: Option<String>,
    /// Only entries after this one.
    pub(crate) after: Option<u64>,
}

impl Filter {
    /// The entries that match, oldest first.
    pub(crate) fn entries<'a>(&'a self, shelf: &'a Shelf) -> impl Iterator<Item = Entry> + 'a {
        self.entries_since(shelf, self.after.map_or(0, |after| after + 1))
    }

    /// Those of them from this number on.
    pub(crate) fn entries_since<'a>(
        &'a self,
        shelf: &'a Shelf,
        seq: u64,
    ) -> impl Iterator<Item = Entry> + 'a {
        shelf.since::<Entry>(&key(seq)).filter(|entry| self.admits(entry))
    }

    fn admits(&self, entry: &Entry) -> bool {
        let full = || format!("/{}{}", entry.host, entry.path);
        same(&self.platform, &entry.platform)
            && same(&self.method, &entry.method)
            && self.account.is_none() | entry.account.as_deref().is_some_and(|name| same(&self.account, name))
            && self.fault.is_none() | entry.fault.as_deref().is_some_and(|fault| same(&self.fault, fault))
            && self.accepted.is_none_or(|accepted| accepted == entry.accepted)
            && self
                .path
                .as_deref()
                .is_none_or(|path| entry.path.starts_with(path) || full().starts_with(path))
    }
}

fn same(wanted: &Option<String>, found: &str) -> bool {
    wanted.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
}
