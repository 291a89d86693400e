//! Files that a post names by their addresses.
//!
//! Each becomes a media asset, which is created with the post and fetched like an import. The targets wait for it.

use crate::{
    http::{
        caller::Call,
        outbound_url, plan,
        problem::{Issue, Problem, Segment},
    },
    media,
};
use domain::MediaId;
use futures::future::join_all;
use std::collections::BTreeMap;
use store::media::NewMedia;
use url::Url;
use uuid::Uuid;

/// Maximum number of files that a post can have fetched.
const MAX_IMPORTS: usize = 50;

/// The files of a post to fetch, each with the id of its asset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports {
    by_url: BTreeMap<String, MediaId>,
    faults: BTreeMap<MediaId, Issue>,
}

impl Imports {
    /// Adds a file, and returns the id of its asset: one for each address.
    pub(crate) fn add(&mut self, url: &str) -> MediaId {
        *self.by_url.entry(url.to_owned()).or_insert_with(|| MediaId(Uuid::now_v7()))
    }

    /// Returns whether this is one of the assets that are created with the post.
    pub(crate) fn contains(&self, id: Uuid) -> bool {
        self.by_url.values().any(|known| known.0 == id)
    }

    /// Returns what is wrong with a file's address, found by [`check`](Self::check).
    pub(crate) fn fault(&self, id: Uuid) -> Option<&Issue> {
        self.faults.get(&MediaId(id))
    }

    /// Returns the address of a file.
    pub(crate) fn url(&self, id: Uuid) -> Option<&str> {
        self.by_url.iter().find(|(_, known)| known.0 == id).map(|(url, _)| url.as_str())
    }

    /// Checks all addresses at once, since each may need its host resolved.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(crate) async fn check(&mut self, call: &Call<'_>) -> Result<(), Problem> {
        if self.by_url.len() > MAX_IMPORTS {
            let message = format!("A post can have at most {MAX_IMPORTS} files fetched");
            return Err(Problem::invalid_body(vec![Issue::whole(message).with("maximum", MAX_IMPORTS)]));
        }
        let opened = call.app.config.opened.of(call.owner.mode);
        let checks = self.by_url.iter().map(async |(url, id)| match Url::parse(url) {
            Ok(url) => Some((*id, outbound_url::check(&url, opened).await?)),
            Err(error) => Some((*id, Issue::custom([Segment::from("url")], error.to_string()))),
        });
        self.faults = join_all(checks).await.into_iter().flatten().collect();
        Ok(())
    }

    /// Returns the assets to create, with the plan's ceiling on storage.
    pub(crate) async fn rows(&self, call: &Call<'_>) -> Result<Vec<(MediaId, NewMedia)>, Problem> {
        if self.by_url.is_empty() {
            return Ok(Vec::new());
        }
        let (now, storage_limit) = (call.now(), plan::of(call).await?.storage_bytes);
        let parsed = self.by_url.iter().filter_map(|(url, id)| Some((*id, Url::parse(url).ok()?)));
        let new = |url| NewMedia { storage_limit, ..media::imported(url, None, call.bound.clone(), now) };
        Ok(parsed.map(|(id, url)| (id, new(url))).collect())
    }
}
