//! Posts and comments as Reddit lists them, and the search for a post whose id is not known.
//!
//! A post with an image or a video gets its id later: from the socket of its upload, which is certain, or from the list of
//! the author's posts.

use super::{
    POLL_INTERVAL, Reddit, SITE, Settings, Step,
    content::{PostKind, post_kind, title_and_text},
    ids::{linked, short_path},
    markdown,
    media::Asset,
    read, same,
};
use crate::{
    Analytics, History, Located, Page, PublishRequest, RemotePost, Result, Session,
    listing::{self, Listing, Search},
    required, socket,
    upload::Uploaded,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Failure, Metrics};
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// Time limit of waiting on the socket.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until an image or video appears in the lists.
const LISTING_LAG: TimeDelta = TimeDelta::minutes(10);

#[async_trait]
impl Analytics for Reddit {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        Ok(thing(cx, id).await?.metrics())
    }
}

#[async_trait]
impl History for Reddit {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let page = list(cx, &format!("/user/{}/submitted", cx.account.username), cursor).await?;
        Ok(page.map(|thing| RemotePost {
            url: thing.address(cx),
            text: thing.text(),
            media: thing.media(),
            published_at: thing.created_at(),
            metrics: thing.metrics(),
            id: thing.name,
        }))
    }
}

/// Returns one page of a list, newest first.
pub(super) async fn list(cx: &Session<'_>, path: &str, after: Option<&str>) -> Result<Page<Thing>> {
    let call = read(cx, path).query(&[("sort", "new"), ("limit", "100")]);
    let page: Envelope = match after {
        Some(after) => call.query(&[("after", after)]).send().await?,
        None => call.send().await?,
    };
    let things = page.data.children.into_iter().map(|child| child.data);
    Ok(Page { items: things.collect(), next: page.data.after })
}

/// A list of the account's posts, and the values that its entries are compared with.
pub(super) struct Published<'a, F> {
    pub(super) cx: &'a Session<'a>,
    pub(super) list: &'a str,
    pub(super) is_ours: F,
}

#[async_trait]
impl<F: Fn(&Thing) -> bool + Send + Sync> Listing for Published<'_, F> {
    type Item = Thing;
    /// Reddit lists the latest thousand.
    const MAX_PAGES: usize = 10;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Thing>> {
        list(self.cx, &format!("/user/{}/{}", self.cx.account.username, self.list), cursor).await
    }

    fn id(thing: &Thing) -> &str {
        &thing.name
    }

    fn published_at(thing: &Thing) -> Option<DateTime<Utc>> {
        Some(thing.created_at())
    }

    fn matches(&self, thing: &Thing, _post: &PublishRequest) -> bool {
        (self.is_ours)(thing)
    }
}

/// Returns a post or comment; fails if it does not exist.
pub(super) async fn thing(cx: &Session<'_>, id: &str) -> Result<Thing> {
    let page: Envelope = read(cx, "/api/info").query(&[("id", id)]).send().await?;
    let found = page.data.children.into_iter().map(|child| child.data);
    found
        .into_iter()
        .find(|thing| thing.name == id && thing.author.as_deref() != Some("[deleted]"))
        .ok_or_else(|| Failure::rejected(404, format!("{id} is not there")))
}

/// Finds a post whose id is not known yet.
pub(super) async fn find(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Result<Located> {
    let kind = post_kind(post, settings)?;
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let place = settings.subreddit(cx);
    let is_kind = |thing: &Thing| match &kind {
        PostKind::Crosspost(source) => thing.is_crosspost_of(&step.parents_of(source)),
        _ => thing.crosspost_parent.is_none(),
    };
    let is_ours = |thing: &Thing| {
        thing.is_in(&place)
            && same(&thing.title, &title)
            && is_kind(thing)
            && thing.is_self == matches!(kind, PostKind::Text | PostKind::Poll(_))
            && thing.is_video == matches!(kind, PostKind::Video | PostKind::Videogif)
            && (!thing.is_self || settings.is_text(&thing.selftext, &text))
    };
    // The socket belongs to this upload; a list may contain another post with the same content.
    if let Some(socket) = &step.socket
        && let Some(message) = socket::message(cx, socket, SOCKET_TIMEOUT).await
    {
        if message["type"] == "failed" {
            let message = "Reddit could not process the medium and does not say why";
            return Ok(Located::Failed(Failure::rejected(422, message)));
        }
        if let Some(id) = message["payload"]["redirect"].as_str().and_then(linked) {
            return Ok(Located::certain(id));
        }
    }
    let located = match listing::find(&Published { cx, list: "submitted", is_ours }, post).await? {
        Search::Post(found) if found.has_file(&step.assets) => return Ok(Located::certain(found.name)),
        Search::Post(found) => return Ok(Located::by_text(found.name)),
        Search::Absent => Located::Absent,
        Search::TooMany => Located::TooMany,
    };
    let may_come = matches!(kind, PostKind::Picture | PostKind::Video | PostKind::Videogif)
        && (cx.now)() - post.begun() < LISTING_LAG;
    Ok(match step.is_accepted || may_come {
        true => Located::Processing { poll_after: POLL_INTERVAL },
        false => located,
    })
}

/// A listing in its envelope.
#[derive(Deserialize)]
struct Envelope {
    data: Things,
}

#[derive(Deserialize)]
struct Things {
    after: Option<String>,
    children: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    data: Thing,
}

/// A post, a comment or a subreddit.
#[cfg_attr(test, derive(Default))]
#[derive(Deserialize)]
pub(super) struct Thing {
    #[serde(deserialize_with = "required::id")]
    pub(super) name: String,
    pub(super) display_name: Option<String>,
    author: Option<String>,
    pub(super) subreddit: Option<String>,
    pub(super) title: Option<String>,
    selftext: Option<String>,
    pub(super) body: Option<String>,
    pub(super) parent_id: Option<String>,
    pub(super) crosspost_parent: Option<String>,
    pub(super) is_crosspostable: Option<bool>,
    permalink: Option<String>,
    pub(super) url: Option<String>,
    created_utc: Option<f64>,
    #[serde(default)]
    is_self: bool,
    #[serde(default)]
    is_video: bool,
    score: Option<i64>,
    num_comments: Option<u64>,
    num_crossposts: Option<u64>,
    view_count: Option<u64>,
    pub(super) media: Option<Value>,
    gallery_data: Option<Value>,
    media_metadata: Option<BTreeMap<String, Value>>,
}

impl Thing {
    pub(super) fn is_in(&self, subreddit: &str) -> bool {
        self.subreddit.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(subreddit))
    }

    pub(super) fn is_crosspost_of(&self, parents: &[String]) -> bool {
        self.crosspost_parent.as_ref().is_some_and(|parent| parents.contains(parent))
    }

    /// Returns true if it shows a file that was uploaded for one post only: its id is in the address.
    fn has_file(&self, assets: &[Uploaded<Asset>]) -> bool {
        let is_shown = |address: &String| {
            assets.iter().any(|asset| address.split(['/', '.']).any(|part| part == asset.ticket.id))
        };
        self.media().iter().any(is_shown)
    }

    fn created_at(&self) -> DateTime<Utc> {
        let seconds = self.created_utc.unwrap_or_default();
        DateTime::from_timestamp_millis((seconds * 1_000.0) as i64).unwrap_or_default()
    }

    pub(super) fn address(&self, cx: &Session<'_>) -> String {
        let path = self.permalink.clone().unwrap_or_else(|| short_path(&self.name));
        cx.transport.rewrite_url(&format!("{SITE}{path}"))
    }

    /// Returns the title and the text, or only the text if the title repeats its beginning.
    fn text(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let text = self.selftext.as_deref().unwrap_or_default();
        let plain = markdown::unescape(text);
        let text = plain.as_deref().unwrap_or(text);
        match title.strip_suffix('…') {
            _ if text.is_empty() => title.to_owned(),
            Some(begin) if text.starts_with(begin) => text.to_owned(),
            _ => format!("{title}\n\n{text}"),
        }
    }

    fn media(&self) -> Vec<String> {
        if let Some(all) = &self.media_metadata {
            let items = self.gallery_data.as_ref().and_then(|data| data["items"].as_array());
            let ids = items.into_iter().flatten().filter_map(|item| item["media_id"].as_str());
            let address = |id: &str| {
                let source = all.get(id)?.get("s")?;
                ["u", "gif", "mp4"].iter().find_map(|key| source[*key].as_str()).map(str::to_owned)
            };
            return ids.filter_map(address).collect();
        }
        let video = self.media.as_ref().and_then(|media| media["reddit_video"]["fallback_url"].as_str());
        let picture = self.url.as_deref().filter(|url| url.starts_with("https://i.redd.it/"));
        video.or(picture).map(str::to_owned).into_iter().collect()
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            impressions: self.view_count.unwrap_or(0),
            likes: self.score.and_then(|score| u64::try_from(score).ok()).unwrap_or(0),
            comments: self.num_comments.unwrap_or(0),
            shares: self.num_crossposts.unwrap_or(0),
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_post_has_its_original_text() {
        let thing = |title: &str, text: &str| Thing {
            title: Some(title.into()),
            selftext: Some(text.into()),
            ..Thing::default()
        };
        assert_eq!(thing("a", "").text(), "a");
        assert_eq!(thing("a", "b").text(), "a\n\nb");
        assert_eq!(thing("aa…", "aaa").text(), "aaa");
    }
}
