//! Searches a list for a lost post. A wrong result loses or duplicates a post.
//!
//! Most platforms have no idempotency key. After a lost response, the only evidence is the list of the
//! account's posts. Every such look-up is the same: read pages, select the posts published since the call,
//! compare, take the nearest in time, and return [`Located::Absent`] only when everything since the call was
//! read. It is written and tested here once; an adapter reads a page and recognizes its post.

use crate::{Located, Page, PublishRequest, Result};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

/// Time by which the platform's clock may be behind ours when it dates a post.
pub(crate) const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(5);

/// A list of an account's posts, or of the comments below a post.
#[async_trait]
pub(crate) trait Listing: Sync {
    /// An entry of the list.
    type Item: Send;

    /// Pages that a search reads before it gives up with [`Located::TooMany`]. Only an account that publishes some
    /// hundred posts within [`CLOCK_SKEW`] has more than one or two, and giving up ends its post.
    const MAX_PAGES: usize = 20;

    /// True when entries come newest first, so that one from before the commit ends the search.
    const IS_NEWEST_FIRST: bool = true;

    /// Reads one page. `since` is the earliest time of interest, for platforms that can filter by it.
    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Self::Item>>;

    /// Returns the id that `commit` would have returned.
    fn id(item: &Self::Item) -> &str;

    /// Returns when the entry was published, if the list includes it.
    fn published_at(item: &Self::Item) -> Option<DateTime<Utc>>;

    /// Returns true if the entry has the content of `post`; its time is compared by [`locate`].
    fn matches(&self, item: &Self::Item, post: &PublishRequest) -> bool;
}

/// The result of a search.
#[derive(Debug, PartialEq)]
pub(crate) enum Search<T> {
    /// The post.
    Post(T),
    /// Everything since the commit was read, without a match.
    Absent,
    /// The list is longer than the pages that are read.
    TooMany,
}

/// Finds the id of the post that a commit of `post` may have created, by its text.
///
/// # Errors
///
/// When a page can't be read.
pub(crate) async fn locate<L: Listing>(listing: &L, post: &PublishRequest) -> Result<Located> {
    Ok(match find(listing, post).await? {
        Search::Post(item) => Located::by_text(L::id(&item).to_owned()),
        Search::Absent => Located::Absent,
        Search::TooMany => Located::TooMany,
    })
}

/// Finds the post that a commit of `post` may have created.
///
/// # Errors
///
/// When a page can't be read.
pub(crate) async fn find<L: Listing>(listing: &L, post: &PublishRequest) -> Result<Search<L::Item>> {
    let begun = post.begun();
    let earliest = begun - CLOCK_SKEW;
    let mut cursor: Option<String> = None;
    for _ in 0..L::MAX_PAGES {
        let page = listing.page(earliest, cursor.as_deref()).await?;
        let is_old = |item: &L::Item| L::published_at(item).is_some_and(|at| at < earliest);
        let is_past = L::IS_NEWEST_FIRST && page.items.iter().any(is_old);
        let ours = page
            .items
            .into_iter()
            .filter(|item| !is_old(item) && listing.matches(item, post) && !post.is_taken(L::id(item)));
        // Another post with the same content may have been published at another time.
        let distance = |item: &L::Item| L::published_at(item).map_or(TimeDelta::MAX, |at| (at - begun).abs());
        if let Some(found) = ours.min_by_key(distance) {
            return Ok(Search::Post(found));
        }
        cursor = page.next;
        if is_past || cursor.is_none() {
            return Ok(Search::Absent);
        }
    }
    Ok(Search::TooMany)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Seconds relative to the commit, if the list includes them; the id; the text.
    type Entry = (Option<i64>, &'static str, &'static str);

    struct Scripted<const NEWEST_FIRST: bool> {
        pages: &'static [&'static [Entry]],
        read: AtomicUsize,
    }

    #[async_trait]
    impl<const NEWEST_FIRST: bool> Listing for Scripted<NEWEST_FIRST> {
        type Item = Entry;
        const MAX_PAGES: usize = 3;
        const IS_NEWEST_FIRST: bool = NEWEST_FIRST;

        async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Entry>> {
            assert_eq!(since, begun() - CLOCK_SKEW);
            let index = self.read.fetch_add(1, Ordering::Relaxed);
            assert_eq!(cursor.map(str::to_owned), (index > 0).then(|| index.to_string()));
            let next = (index + 1 < self.pages.len()).then(|| (index + 1).to_string());
            Ok(Page { items: self.pages[index].to_vec(), next })
        }

        fn id(item: &Entry) -> &str {
            item.1
        }

        fn published_at(item: &Entry) -> Option<DateTime<Utc>> {
            item.0.map(|seconds| begun() + TimeDelta::seconds(seconds))
        }

        fn matches(&self, item: &Entry, post: &PublishRequest) -> bool {
            item.2 == post.text
        }
    }

    fn begun() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time")
    }

    async fn search<const NEWEST_FIRST: bool>(pages: &'static [&'static [Entry]]) -> (Located, usize) {
        let post = PublishRequest {
            text: "ours".into(),
            commit_begun_at: Some(begun()),
            taken: vec!["taken".into()],
            ..PublishRequest::of_test()
        };
        let listing = Scripted::<NEWEST_FIRST> { pages, read: AtomicUsize::new(0) };
        let located = locate(&listing, &post).await.expect("the pages can be read");
        (located, listing.read.into_inner())
    }

    fn live(id: &str) -> Located {
        Located::by_text(id.to_owned())
    }

    #[tokio::test]
    async fn the_nearest_in_time_is_the_lost_post() {
        const SAME: &[&[Entry]] =
            &[&[(Some(600), "later", "ours"), (Some(2), "lost", "ours"), (Some(-200), "earlier", "ours")]];
        assert_eq!(search::<true>(SAME).await, (live("lost"), 1));
        const UNDATED: &[&[Entry]] = &[&[(None, "undated", "ours"), (Some(200), "dated", "ours")]];
        assert_eq!(search::<true>(UNDATED).await, (live("dated"), 1));
        assert_eq!(search::<true>(&[&[(None, "undated", "ours")]]).await, (live("undated"), 1));
    }

    #[tokio::test]
    async fn posts_from_before_the_call_or_of_other_targets_are_ignored() {
        assert_eq!(search::<true>(&[&[(Some(-300), "skewed", "ours")]]).await, (live("skewed"), 1));
        assert_eq!(search::<true>(&[&[(Some(-301), "older", "ours")]]).await, (Located::Absent, 1));
        assert_eq!(search::<true>(&[&[(Some(1), "taken", "ours")]]).await, (Located::Absent, 1));
        assert_eq!(search::<true>(&[&[(Some(1), "other", "theirs")]]).await, (Located::Absent, 1));
    }

    #[tokio::test]
    async fn absent_means_that_everything_since_the_call_was_read() {
        const LONG: &[&[Entry]] = &[
            &[(Some(9), "1", "theirs")],
            &[(Some(8), "2", "theirs")],
            &[(Some(7), "3", "theirs")],
            &[(Some(6), "4", "ours")],
        ];
        assert_eq!(search::<true>(LONG).await, (Located::TooMany, 3));
        assert_eq!(search::<true>(&LONG[..2]).await, (Located::Absent, 2));
        const PAST: &[&[Entry]] = &[&[(Some(9), "1", "theirs"), (Some(-301), "2", "theirs")], &[]];
        assert_eq!(search::<true>(PAST).await, (Located::Absent, 1));
        assert_eq!(search::<true>(&[&[]]).await, (Located::Absent, 1));
    }

    #[tokio::test]
    async fn an_old_entry_ends_only_an_ordered_list() {
        const MIXED: &[&[Entry]] = &[&[(Some(-301), "1", "theirs")], &[(Some(1), "2", "ours")]];
        assert_eq!(search::<true>(MIXED).await, (Located::Absent, 1));
        assert_eq!(search::<false>(MIXED).await, (live("2"), 2));
    }
}
