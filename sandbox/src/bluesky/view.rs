//! The public read side: <https://docs.bsky.app/docs/api/app-bsky-feed-get-posts> and its neighbours.
//!
//! It lags behind the repositories, as the real one does.

use super::{
    Account, Outcome, Request, Response, Transaction, account, actor_account, refusal,
    repo::{self, Stored},
    required, time,
};
use crate::exchange::Cause::{Protocol, State};
use crate::fake_metrics::figure;
use serde_json::{Value, json};

/// `getProfile`.
pub(super) fn profile(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = actor_account(tx, required(request, "actor")?)
        .ok_or_else(|| refusal(State, 400, "InvalidRequest", "Profile not found"))?;
    let age = tx.now - account.created_at;
    let mut profile = basic(&account);
    profile["createdAt"] = json!(time(account.created_at));
    profile["indexedAt"] = json!(time(account.created_at));
    profile["description"] = json!("An account of the sandbox.");
    profile["followersCount"] = json!(figure(&account.id, "followers", age, 5_000));
    profile["followsCount"] = json!(0);
    profile["postsCount"] = json!(repo::posts(tx, &account.id).count());
    Ok(Response::json(200, &profile))
}

/// `getPosts`, without missing posts.
pub(super) fn posts(tx: &mut Transaction, request: &Request) -> Outcome {
    let uris: Vec<&str> = request.query_all("uris").collect();
    if uris.is_empty() || uris.len() > 25 {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Error: uris must have 1 to 25 elements"));
    }
    let posts: Vec<Value> = uris
        .iter()
        .filter_map(|uri| repo::at(tx, uri))
        .filter(|post| post.collection == repo::POSTS && is_indexed(tx, post))
        .map(|post| view(tx, &post))
        .collect();
    Ok(Response::json(200, &json!({ "posts": posts })))
}

/// `getPostThread`: a post with the posts above and below it.
pub(super) fn thread(tx: &mut Transaction, request: &Request) -> Outcome {
    let uri = required(request, "uri")?;
    let steps = |name: &str, default: u64| match request.query(name).map(str::parse::<u64>) {
        None => Ok(default),
        Some(Ok(count @ 0..=1_000)) => Ok(count),
        Some(_) => Err(refusal(
            Protocol,
            400,
            "InvalidRequest",
            &format!("Error: {name} can not be greater than 1000"),
        )),
    };
    let (below, above) = (steps("depth", 6)?, steps("parentHeight", 80)?);
    let post =
        indexed(tx, uri).ok_or_else(|| refusal(State, 400, "NotFound", &format!("Post not found: {uri}")))?;
    let mut thread = with_replies(tx, &post, below);
    // Collected from the post upwards, and then put into each other from the top.
    let mut parents = Vec::new();
    let mut parent = post.value["reply"]["parent"]["uri"].as_str().map(str::to_owned);
    while let Some(uri) = parent.take().filter(|_| (parents.len() as u64) < above) {
        let found = indexed(tx, &uri);
        parent =
            found.as_ref().and_then(|post| post.value["reply"]["parent"]["uri"].as_str().map(str::to_owned));
        parents.push(match found {
            Some(post) => json!({ "$type": "app.bsky.feed.defs#threadViewPost", "post": view(tx, &post) }),
            None => json!({ "$type": "app.bsky.feed.defs#notFoundPost", "uri": uri, "notFound": true }),
        });
    }
    let top = parents.into_iter().rev().reduce(|above, mut below| {
        below["parent"] = above;
        below
    });
    if let Some(top) = top {
        thread["parent"] = top;
    }
    Ok(Response::json(200, &json!({ "thread": thread })))
}

fn indexed(tx: &Transaction, uri: &str) -> Option<Stored> {
    repo::at(tx, uri).filter(|post| post.collection == repo::POSTS && is_indexed(tx, post))
}

fn with_replies(tx: &Transaction, post: &Stored, depth: u64) -> Value {
    let mut thread = json!({ "$type": "app.bsky.feed.defs#threadViewPost", "post": view(tx, post) });
    if depth > 0 {
        let replies = repo::links(tx, "reply", &post.uri());
        let replies = replies.iter().filter_map(|uri| indexed(tx, uri));
        thread["replies"] = replies.map(|reply| with_replies(tx, &reply, depth - 1)).collect();
    }
    thread
}

/// `getAuthorFeed`.
pub(super) fn author_feed(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = actor_account(tx, required(request, "actor")?)
        .ok_or_else(|| refusal(State, 400, "InvalidRequest", "Profile not found"))?;
    let max = repo::limit(request, 50)?;
    let filter = request.query("filter").unwrap_or("posts_with_replies");
    let is_wanted = |post: &Stored| {
        let parent = post.value["reply"]["parent"]["uri"].as_str();
        let media = post.value["embed"]["$type"].as_str().unwrap_or_default();
        let nested = post.value["embed"]["media"]["$type"].as_str().unwrap_or_default();
        let has = |kind: &str| media == kind || nested == kind;
        match filter {
            "posts_no_replies" => parent.is_none(),
            "posts_and_author_threads" => {
                parent.is_none_or(|uri| uri.contains(&format!("//{}/", account.id)))
            }
            "posts_with_video" => has("app.bsky.embed.video"),
            "posts_with_media" => ["app.bsky.embed.images", "app.bsky.embed.gallery", "app.bsky.embed.video"]
                .into_iter()
                .any(has),
            _ => true,
        }
    };
    let mut posts: Vec<(String, Stored)> = repo::posts(tx, &account.id)
        .filter(|post| is_indexed(tx, post) && is_wanted(post))
        .map(|post| (place(&post), post))
        .collect();
    posts.sort_by(|a, b| b.0.cmp(&a.0));
    if let Some(cursor) = request.query("cursor") {
        posts.retain(|(place, _)| place.as_str() < cursor);
    }
    let has_more = posts.len() > max;
    posts.truncate(max);
    let feed = posts.iter().map(|(_, post)| {
        let mut item = json!({ "post": view(tx, post) });
        let related = |name: &str| {
            post.value["reply"][name]["uri"].as_str().map(|uri| match repo::at(tx, uri) {
                Some(found) => {
                    let mut view = view(tx, &found);
                    view["$type"] = json!("app.bsky.feed.defs#postView");
                    view
                }
                None => json!({ "$type": "app.bsky.feed.defs#notFoundPost", "uri": uri, "notFound": true }),
            })
        };
        if let (Some(root), Some(parent)) = (related("root"), related("parent")) {
            item["reply"] = json!({ "root": root, "parent": parent });
        }
        item
    });
    let mut body = json!({ "feed": feed.collect::<Vec<_>>() });
    if let Some((place, _)) = posts.last().filter(|_| has_more) {
        body["cursor"] = json!(place);
    }
    Ok(Response::json(200, &body))
}

/// Returns a post's sort time in feeds: the time it claims, but not later than when it was first stored.
fn place(post: &Stored) -> String {
    let seen = time(post.indexed_at);
    let claimed = post.value["createdAt"]
        .as_str()
        .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
        .map(|at| time(at.to_utc()));
    let at = claimed.filter(|claimed| *claimed < seen).unwrap_or(seen);
    format!("{at}::{}", post.rkey)
}

fn is_indexed(tx: &Transaction, post: &Stored) -> bool {
    let lag = tx.settings.lag();
    tx.now - post.indexed_at >= lag
}

fn basic(account: &Account) -> Value {
    json!({
        "did": account.id,
        "handle": account.username,
        "displayName": account.display_name(),
        "labels": [],
        "createdAt": time(account.created_at),
    })
}

fn view(tx: &Transaction, post: &Stored) -> Value {
    let uri = post.uri();
    let age = tx.now - post.indexed_at;
    let author = account::by_id(tx.store, super::ID, &post.did).expect("posts have authors");
    let drawn = |name: &str, ceiling: u64| figure(&uri, name, age, ceiling);
    let mut view = json!({
        "uri": uri,
        "cid": post.cid,
        "author": basic(&author),
        "record": post.value,
        "bookmarkCount": drawn("bookmarks", 40),
        "replyCount": repo::count_links(tx, "reply", &uri),
        "repostCount": drawn("reposts", 90) + repo::count_links(tx, "repost", &uri),
        "likeCount": drawn("likes", 600) + repo::count_links(tx, "like", &uri),
        "quoteCount": repo::count_links(tx, "quote", &uri),
        "indexedAt": time(post.indexed_at),
        "labels": [],
    });
    if let Some(embed) = embed_view(tx, post, &post.value["embed"]) {
        view["embed"] = embed;
    }
    view
}

fn embed_view(tx: &Transaction, post: &Stored, embed: &Value) -> Option<Value> {
    let picture = |blob: &Value, size: &str| {
        let cid = blob["ref"]["$link"].as_str().unwrap_or_default();
        format!("https://cdn.bsky.app/img/{size}/plain/{}/{cid}@jpeg", post.did)
    };
    let pictures = |name: &str, thumb: &str| {
        let items = embed[name].as_array().into_iter().flatten().map(|item| {
            let mut view = json!({
                thumb: picture(&item["image"], "feed_thumbnail"),
                "fullsize": picture(&item["image"], "feed_fullsize"),
                "alt": item["alt"],
            });
            if item["aspectRatio"].is_object() {
                view["aspectRatio"] = item["aspectRatio"].clone();
            }
            view
        });
        items.collect::<Vec<_>>()
    };
    let kind = embed["$type"].as_str()?;
    let mut view = match kind {
        "app.bsky.embed.images" => json!({ "images": pictures("images", "thumb") }),
        "app.bsky.embed.gallery" => {
            let mut items = pictures("items", "thumbnail");
            for item in &mut items {
                item["$type"] = json!("app.bsky.embed.gallery#viewImage");
            }
            json!({ "items": items })
        }
        "app.bsky.embed.external" => {
            let external = &embed["external"];
            let mut card = json!({
                "uri": external["uri"],
                "title": external["title"],
                "description": external["description"],
            });
            if external["thumb"].is_object() {
                card["thumb"] = json!(picture(&external["thumb"], "feed_thumbnail"));
            }
            json!({ "external": card })
        }
        "app.bsky.embed.video" => {
            let cid = embed["video"]["ref"]["$link"].as_str().unwrap_or_default();
            let mut video = json!({
                "cid": cid,
                "playlist": format!("https://video.bsky.app/watch/{}/{cid}/playlist.m3u8", post.did),
                "thumbnail": format!("https://video.bsky.app/watch/{}/{cid}/thumbnail.jpg", post.did),
            });
            for name in ["alt", "aspectRatio", "presentation"] {
                if !embed[name].is_null() {
                    video[name] = embed[name].clone();
                }
            }
            video
        }
        "app.bsky.embed.record" => json!({ "record": quoted(tx, &embed["record"]) }),
        "app.bsky.embed.recordWithMedia" => json!({
            "record": { "$type": "app.bsky.embed.record#view", "record": quoted(tx, &embed["record"]["record"]) },
            "media": embed_view(tx, post, &embed["media"]),
        }),
        _ => return None,
    };
    view["$type"] = json!(format!("{kind}#view"));
    Some(view)
}

fn quoted(tx: &Transaction, reference: &Value) -> Value {
    let uri = reference["uri"].as_str().unwrap_or_default();
    let found =
        repo::at(tx, uri).and_then(|post| Some((account::by_id(tx.store, super::ID, &post.did)?, post)));
    match found {
        Some((author, post)) => json!({
            "$type": "app.bsky.embed.record#viewRecord",
            "uri": uri,
            "cid": post.cid,
            "author": basic(&author),
            "value": post.value,
            "indexedAt": time(post.indexed_at),
        }),
        None => json!({ "$type": "app.bsky.embed.record#viewNotFound", "uri": uri, "notFound": true }),
    }
}
