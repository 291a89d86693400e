//! Posts that are live, of any account, with their figures.
//!
//! The public view of the network knows every post and its figures. An account whose server is not part of that network is
//! listed from the server itself, which has none.

use super::{
    Bluesky, POST, PUBLIC, address,
    identity::{home_server, resolve_handle},
    record::{Found, StrongRef},
};
use crate::{Analytics, History, Metrics, Page, RemotePost, Result, Session, required};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use serde_json::Value;

/// Prefix of the cursors of a list at the account's own server.
const OWN_LIST: &str = "repo:";

#[async_trait]
impl Analytics for Bluesky {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        match get_post(cx, id).await? {
            Some(post) => Ok(post.metrics()),
            None => Err(Failure::rejected(404, format!("post {id} is not there"))),
        }
    }
}

#[async_trait]
impl History for Bluesky {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        if let Some(cursor) = cursor.and_then(|cursor| cursor.strip_prefix(OWN_LIST)) {
            return own_page(cx, Some(cursor)).await;
        }
        let call = cx.get(format!("{PUBLIC}/xrpc/app.bsky.feed.getAuthorFeed")).without_grant().query(&[
            ("actor", cx.account.network_unique_id.as_str()),
            ("limit", "100"),
            ("filter", "posts_no_replies"),
        ]);
        let feed: Result<Feed> = match cursor {
            Some(cursor) => call.query(&[("cursor", cursor)]).send().await,
            None => call.send().await,
        };
        let feed = match feed {
            // The account's server is not part of the public network.
            Err(failure) if cursor.is_none() && failure.code == ErrorCode::Rejected(400) => {
                return own_page(cx, None).await;
            }
            feed => feed?,
        };
        // An item with a reason is a repost, or a post that is listed a second time.
        let own = feed.feed.into_iter().filter(|item| item.reason.is_none()).map(|item| item.post);
        let posts = own.map(|post| RemotePost {
            url: address(cx, &post.uri),
            text: post.record["text"].as_str().unwrap_or_default().to_owned(),
            media: pictures(&post.embed),
            published_at: post.time(),
            metrics: post.metrics(),
            id: post.uri,
        });
        Ok(Page { items: posts.collect(), next: feed.cursor })
    }
}

/// Reads a page of the account's posts from its own server, which has no metrics.
/// <https://docs.bsky.app/docs/api/com-atproto-repo-list-records>
async fn own_page(cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
    let did = cx.account.network_unique_id.as_str();
    let home = home_server(cx)?;
    let call = cx.get(format!("{home}/xrpc/com.atproto.repo.listRecords")).without_grant().query(&[
        ("repo", did),
        ("collection", POST),
        ("limit", "100"),
    ]);
    let list: Records = match cursor {
        Some(cursor) => call.query(&[("cursor", cursor)]).send().await?,
        None => call.send().await?,
    };
    let own = list.records.into_iter().filter(|post| post.value["reply"].is_null());
    let posts = own.map(|post| RemotePost {
        url: address(cx, &post.uri),
        text: post.value["text"].as_str().unwrap_or_default().to_owned(),
        media: blobs(&post.value["embed"])
            .map(|cid| format!("{home}/xrpc/com.atproto.sync.getBlob?did={did}&cid={cid}"))
            .collect(),
        published_at: created_at(&post.value).unwrap_or_default(),
        metrics: Metrics::default(),
        id: post.uri,
    });
    Ok(Page { items: posts.collect(), next: list.cursor.map(|cursor| format!("{OWN_LIST}{cursor}")) })
}

/// Returns the reference to a quoted post, which may belong to any account; `None` if it does not exist.
pub(super) async fn quoted_post(cx: &Session<'_>, home: &str, quote: &str) -> Result<Option<StrongRef>> {
    let uri = match quote.strip_prefix("https://bsky.app/profile/") {
        None => quote.to_owned(),
        Some(rest) => {
            let Some((actor, rkey)) = rest.split_once("/post/") else { return Ok(None) };
            let did = match actor.starts_with("did:") {
                true => Some(actor.to_owned()),
                false => resolve_handle(cx, home, actor).await?,
            };
            let Some(did) = did else { return Ok(None) };
            format!("at://{did}/{POST}/{rkey}")
        }
    };
    Ok(get_post(cx, &uri).await?.map(|post| StrongRef { uri: post.uri, cid: post.cid }))
}

async fn get_post(cx: &Session<'_>, uri: &str) -> Result<Option<View>> {
    let answer: Views = cx
        .get(format!("{PUBLIC}/xrpc/app.bsky.feed.getPosts"))
        .without_grant()
        .query(&[("uris", uri)])
        .send()
        .await?;
    Ok(answer.posts.into_iter().next())
}

/// Returns the addresses of a shown post's pictures and videos.
fn pictures(embed: &Value) -> Vec<String> {
    let embed = if embed["media"].is_object() { &embed["media"] } else { embed };
    let items = ["images", "items"].iter().filter_map(|key| embed[*key].as_array()).flatten();
    let images = items.filter_map(|item| item["fullsize"].as_str());
    images.chain(embed["playlist"].as_str()).map(str::to_owned).collect()
}

/// Returns the hashes of a record's pictures and videos.
fn blobs(embed: &Value) -> impl Iterator<Item = &str> {
    let embed = if embed["media"].is_object() { &embed["media"] } else { embed };
    let items = ["images", "items"].iter().filter_map(|key| embed[*key].as_array()).flatten();
    items.map(|item| &item["image"]).chain([&embed["video"]]).filter_map(|blob| blob["ref"]["$link"].as_str())
}

/// Returns the publishing time that the author of a record claims.
fn created_at(record: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(record["createdAt"].as_str()?).ok().map(|at| at.to_utc())
}

#[derive(Deserialize)]
struct Records {
    records: Vec<Found>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Views {
    posts: Vec<View>,
}

#[derive(Deserialize)]
struct Feed {
    feed: Vec<Item>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    post: View,
    reason: Option<Value>,
}

/// A post in the public view.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    #[serde(deserialize_with = "required::id")]
    uri: String,
    cid: String,
    #[serde(default)]
    record: Value,
    #[serde(default)]
    embed: Value,
    indexed_at: Option<DateTime<Utc>>,
    #[serde(default)]
    like_count: u64,
    #[serde(default)]
    reply_count: u64,
    #[serde(default)]
    repost_count: u64,
    #[serde(default)]
    quote_count: u64,
    #[serde(default)]
    bookmark_count: u64,
}

impl View {
    fn metrics(&self) -> Metrics {
        Metrics {
            likes: self.like_count,
            comments: self.reply_count,
            shares: self.repost_count + self.quote_count,
            saves: self.bookmark_count,
            ..Metrics::default()
        }
    }

    /// Returns the publishing time that the author claims, else the time of indexing.
    fn time(&self) -> DateTime<Utc> {
        created_at(&self.record).or(self.indexed_at).unwrap_or_default()
    }
}
