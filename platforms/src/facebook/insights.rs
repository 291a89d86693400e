//! Metrics of posts and videos: <https://developers.facebook.com/docs/graph-api/reference/insights>.
//!
//! Meta removes metrics, and one removed name fails the call for all names. Names are then asked for one by one, and
//! what was removed is remembered, so that the calls for other posts leave it out.

use super::{Facebook, feed::Post, get, node};
use crate::{Analytics, Metrics, Result, Session, graph::Insights};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

/// Time for which a removed name is not asked for.
const REMEMBERED: TimeDelta = TimeDelta::days(1);
/// Maximum number of names that are remembered.
const MAX_REMEMBERED: usize = 1000;

/// Times at which names were found to be removed, by the API's address, which is the sandbox's in test mode, and name.
type Removed = HashMap<(String, &'static str), DateTime<Utc>>;

/// The names that this process found to be removed.
static REMOVED: LazyLock<Mutex<Removed>> = LazyLock::new(Mutex::default);

/// Returns metrics by name, without those that Meta has removed.
pub(super) async fn read(cx: &Session<'_>, path: &str, names: &[&'static str]) -> Result<Insights> {
    let ask = |metric: String| get(cx, path).query(&[("metric", metric)]).send::<Insights>();
    let names = asked(cx, names);
    if names.is_empty() {
        return Ok(Insights::default());
    }
    match ask(names.join(",")).await {
        Err(failure) if is_refused(&failure) => {}
        answer => return answer,
    }
    let mut all = Insights::default();
    let (mut refused, mut has_any) = (Vec::new(), false);
    for name in names {
        match ask(name.to_owned()).await {
            Ok(one) => {
                all.join(one);
                has_any = true;
            }
            Err(failure) if is_refused(&failure) => refused.push((name, failure)),
            Err(failure) => return Err(failure),
        }
    }
    let is_there = has_any || refused.iter().any(|(_, failure)| failure.code == ErrorCode::Rejected(400));
    // An object without a single metric may be another one than it seems to be.
    if has_any {
        remember(cx, refused.iter().filter(|(_, failure)| is_removed(failure)).map(|(name, _)| *name));
    }
    match refused.pop().filter(|_| !is_there) {
        Some((_, failure)) => Err(failure),
        None => Ok(all),
    }
}

/// Returns true if the failure may be that of a name. Some objects answer a removed one as if they did not exist.
fn is_refused(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Rejected(400 | 404))
}

/// Returns true if an object that has other metrics refuses a name in the words for one that no object has. For other
/// words, another post may have it.
fn is_removed(failure: &Failure) -> bool {
    let words = ["must be a valid insights metric", "must be one of the following values"];
    failure.code == ErrorCode::Rejected(404) || words.iter().any(|words| failure.message.contains(words))
}

/// Returns the names that were not found to be removed lately.
fn asked(cx: &Session<'_>, names: &[&'static str]) -> Vec<&'static str> {
    let (api, now) = (cx.transport.rewrite_url(super::API), (cx.now)());
    let mut removed = REMOVED.lock().unwrap_or_else(PoisonError::into_inner);
    removed.retain(|_, at| now - *at < REMEMBERED);
    names.iter().copied().filter(|name| !removed.contains_key(&(api.clone(), *name))).collect()
}

/// Remembers removed names.
fn remember(cx: &Session<'_>, names: impl Iterator<Item = &'static str>) {
    let (api, now) = (cx.transport.rewrite_url(super::API), (cx.now)());
    let mut removed = REMOVED.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names {
        if removed.len() < MAX_REMEMBERED {
            removed.insert((api.clone(), name), now);
        }
    }
}

#[async_trait]
impl Analytics for Facebook {
    /// A comment has no figures of its own.
    fn covers_replies(&self) -> bool {
        false
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        if !id.contains('_') {
            return video_metrics(cx, id).await;
        }
        let post: Post = node(cx, id, "id,shares,comments.summary(true).limit(0)").await?;
        let names = [
            "post_media_view",
            "post_total_media_view_unique",
            "post_clicks",
            "post_reactions_by_type_total",
            "post_video_views",
        ];
        let figures = read(cx, &format!("{id}/insights"), &names).await?;
        Ok(Metrics {
            impressions: figures.get("post_media_view"),
            reach: figures.get("post_total_media_view_unique"),
            likes: figures.get("post_reactions_by_type_total"),
            comments: post.comments.map_or(0, |comments| comments.summary.total_count),
            shares: post.shares.map_or(0, |shares| shares.count),
            saves: 0,
            clicks: figures.get("post_clicks"),
            video_views: figures.get("post_video_views"),
        })
    }
}

/// Returns the metrics of a video or reel, else of a story, whose id has the same form.
async fn video_metrics(cx: &Session<'_>, id: &str) -> Result<Metrics> {
    let video: Result<Value> = node(cx, id, "id,length").await;
    match video {
        Ok(_) => {}
        Err(failure) if failure.code == ErrorCode::Rejected(400) => {
            let names = [
                "story_media_view",
                "story_total_media_view_unique",
                "pages_fb_story_replies",
                "pages_fb_story_shares",
            ];
            let figures = read(cx, &format!("{id}/insights"), &names).await?;
            return Ok(Metrics {
                impressions: figures.get("story_media_view"),
                reach: figures.get("story_total_media_view_unique"),
                comments: figures.get("pages_fb_story_replies"),
                shares: figures.get("pages_fb_story_shares"),
                ..Metrics::default()
            });
        }
        Err(failure) => return Err(failure),
    }
    let names = [
        "total_video_views",
        "fb_reels_total_plays",
        "blue_reels_play_count",
        "post_video_likes_by_reaction_type",
        "post_video_social_actions",
    ];
    let figures = read(cx, &format!("{id}/video_insights"), &names).await?;
    let plays = names[..3].iter().map(|name| figures.get(name)).max().unwrap_or(0);
    Ok(Metrics {
        impressions: plays,
        likes: figures.get("post_video_likes_by_reaction_type"),
        comments: figures.part("post_video_social_actions", Some("COMMENT")),
        shares: figures.part("post_video_social_actions", Some("SHARE")),
        video_views: plays,
        ..Metrics::default()
    })
}
