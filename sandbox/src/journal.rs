//! The journal: each request of an account and whether it published, for tests that count.
//!
//! An entry is written in the same transaction as its request's effects, so that they agree after a crash. It
//! has no token, no query and no body.

use super::store::{Record, Store};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Maximum number of entries; older ones are deleted.
const MAX_ENTRIES: u64 = 200_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Sequence number, from 1.
    pub(crate) seq: u64,
    /// Time of processing.
    pub(crate) at: DateTime<Utc>,
    pub(crate) platform: String,
    /// Username of the account, if known.
    pub(crate) account: Option<String>,
    pub(crate) method: String,
    /// Host of the platform.
    pub(crate) host: String,
    pub(crate) path: String,
    /// Status of the response; null when none was sent.
    pub(crate) status: Option<u16>,
    /// True when a post was published.
    pub(crate) accepted: bool,
    /// Id of the first published post.
    pub(crate) post_id: Option<String>,
    /// Ids of all published posts.
    pub(crate) post_ids: Vec<String>,
    /// Fault or hold that applied.
    pub(crate) fault: Option<String>,
    /// Rule about content by which the platform refused the request, or reported that processing failed.
    #[serde(default)]
    pub(crate) rule: Option<String>,
}

impl Record for Entry {
    const TABLE: &'static str = "journal";

    fn key(&self) -> String {
        key(self.seq)
    }
}

fn key(seq: u64) -> String {
    format!("{seq:012}")
}

/// Numbers an entry and stores it.
pub(crate) fn add(store: &mut Store, entry: &mut Entry) {
    entry.seq = last(store) + 1;
    store.put(entry);
    if entry.seq > MAX_ENTRIES {
        store.remove::<Entry>(&key(entry.seq - MAX_ENTRIES));
    }
}

/// Returns the number of the last entry.
pub(crate) fn last(store: &Store) -> u64 {
    store.with_prefix::<Entry>("").next_back().map_or(0, |last| last.seq)
}

/// Records that no response was sent to an entry's request.
pub(crate) fn mark_unanswered(store: &mut Store, seq: u64) {
    if let Some(mut entry) = store.get::<Entry>(&key(seq)) {
        entry.status = None;
        store.put(&entry);
    }
}

/// Filter of entries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    pub(crate) account: Option<String>,
    pub(crate) platform: Option<String>,
    /// Prefix of the path, with or without the host.
    pub(crate) path: Option<String>,
    pub(crate) method: Option<String>,
    /// True for requests that published.
    pub(crate) accepted: Option<bool>,
    pub(crate) fault: Option<String>,
    /// Only entries after this one.
    pub(crate) after: Option<u64>,
}

impl Filter {
    /// Returns the matching entries, oldest first.
    pub(crate) fn entries<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = Entry> + 'a {
        self.entries_since(store, self.after.map_or(0, |after| after + 1))
    }

    /// Returns the matching entries from this number on.
    pub(crate) fn entries_since<'a>(
        &'a self,
        store: &'a Store,
        seq: u64,
    ) -> impl Iterator<Item = Entry> + 'a {
        store.starting_at::<Entry>(&key(seq)).filter(|entry| self.includes(entry))
    }

    fn includes(&self, entry: &Entry) -> bool {
        let full = || format!("/{}{}", entry.host, entry.path);
        matches(&self.platform, &entry.platform)
            && matches(&self.method, &entry.method)
            && self.account.is_none()
                | entry.account.as_deref().is_some_and(|name| matches(&self.account, name))
            && self.fault.is_none() | entry.fault.as_deref().is_some_and(|fault| matches(&self.fault, fault))
            && self.accepted.is_none_or(|accepted| accepted == entry.accepted)
            && self
                .path
                .as_deref()
                .is_none_or(|path| entry.path.starts_with(path) || full().starts_with(path))
    }
}

fn matches(wanted: &Option<String>, found: &str) -> bool {
    wanted.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(found))
}
