//! Videos as YouTube lists them: state, figures, and the channel's uploads.
//! <https://developers.google.com/youtube/v3/docs/videos/list>
//!
//! Lists cost quota that all accounts of an app share, so that a look-up reads one page of the channel's uploads.

use super::{API, List, YouTube, address, channel::channel, snippet::Snippet};
use crate::{
    Analytics, History, Located, Metrics, Page, PublishRequest, RemotePost, Result, Session, google,
    listing::{self, Listing},
    required,
};
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use serde_json::Value;

const REPORTS: &str = "https://youtubeanalytics.googleapis.com/v2/reports";

/// First day of reports: YouTube's founding.
const FIRST_REPORT_DAY: NaiveDate = NaiveDate::from_ymd_opt(2005, 2, 14).expect("a date");

#[async_trait]
impl Analytics for YouTube {
    /// A comment has no figures of its own.
    fn covers_replies(&self) -> bool {
        false
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        // It costs nothing of the 10,000 units that all other calls of the project share:
        // <https://developers.google.com/youtube/v3/docs/videos/batchGetStats>
        let videos: List<Video> = cx
            .get(format!("{API}/videos:batchGetStats"))
            .query(&[("part", "statistics"), ("id", id)])
            .send()
            .await?;
        let Some(video) = videos.items.into_iter().next() else {
            return Err(Failure::rejected(404, format!("video {id} is not there")));
        };
        let mut metrics = video.statistics.metrics();
        // The counters are current; reports lag by some days, and not every grant covers them.
        // Impressions need a separate query, and not every channel has them.
        let figures = report(cx, id, "shares,videosAddedToPlaylists").await?;
        metrics.shares = figures.first().copied().unwrap_or(0);
        metrics.saves = figures.get(1).copied().unwrap_or(0);
        metrics.impressions =
            report(cx, id, "videoThumbnailImpressions").await?.first().copied().unwrap_or(0);
        Ok(metrics)
    }
}

/// Returns all-time metrics of a video in the order of `metrics`; none if the grant does not cover reports.
async fn report(cx: &Session<'_>, id: &str, metrics: &str) -> Result<Vec<u64>> {
    let table: Result<Table> = cx
        .get(REPORTS)
        .query(&[
            ("ids", "channel==MINE"),
            ("startDate", &FIRST_REPORT_DAY.to_string()),
            ("endDate", &(cx.now)().date_naive().to_string()),
            ("metrics", metrics),
            ("filters", &format!("video=={id}")),
        ])
        .send()
        .await;
    match table {
        Ok(table) => {
            let row = table.rows.into_iter().next().unwrap_or_default();
            Ok(row.iter().map(|value| value.as_f64().unwrap_or(0.0).max(0.0) as u64).collect())
        }
        Err(failure) if failure.code.is_permanent() => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

#[async_trait]
impl History for YouTube {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let Some(list) = uploads(cx).await? else { return Ok(Page::default()) };
        let listed = uploaded(cx, &list, cursor).await?;
        let ids: Vec<_> = listed.items.iter().map(|item| item.content_details.video_id.clone()).collect();
        if ids.is_empty() {
            return Ok(Page { items: Vec::new(), next: listed.next });
        }
        let videos: List<Video> = cx
            .get(format!("{API}/videos"))
            .query(&[("part", "snippet,statistics"), ("id", &ids.join(","))])
            .send()
            .await?;
        let posts = listed.items.into_iter().filter_map(|item| {
            let video = videos.items.iter().find(|video| video.id == item.content_details.video_id)?;
            Some(RemotePost {
                url: address(cx, &video.id),
                id: video.id.clone(),
                text: match video.snippet.description.as_str() {
                    "" => video.snippet.title.clone(),
                    text => text.to_owned(),
                },
                media: video.snippet.thumbnails.largest().into_iter().collect(),
                published_at: item
                    .content_details
                    .video_published_at
                    .or(video.snippet.published_at)
                    .unwrap_or_default(),
                metrics: video.statistics.metrics(),
            })
        });
        Ok(Page { items: posts.collect(), next: listed.next })
    }
}

/// The channel's uploads, newest first. One page is read, because lists cost quota.
struct Uploads<'a> {
    cx: &'a Session<'a>,
    playlist: &'a str,
    title: &'a str,
}

#[async_trait]
impl Listing for Uploads<'_> {
    type Item = Item;
    const MAX_PAGES: usize = 1;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Item>> {
        uploaded(self.cx, self.playlist, cursor).await
    }

    fn id(item: &Item) -> &str {
        &item.content_details.video_id
    }

    fn published_at(item: &Item) -> Option<DateTime<Utc>> {
        item.snippet.published_at
    }

    fn matches(&self, item: &Item, _post: &PublishRequest) -> bool {
        item.snippet.title == self.title
    }
}

/// Finds a video among the channel's latest uploads.
pub(super) async fn found_video(cx: &Session<'_>, post: &PublishRequest, title: &str) -> Result<Located> {
    match uploads(cx).await? {
        Some(playlist) => listing::locate(&Uploads { cx, playlist: &playlist, title }, post).await,
        None => Ok(Located::Absent),
    }
}

/// Returns the id of the playlist with the channel's uploads.
async fn uploads(cx: &Session<'_>) -> Result<Option<String>> {
    let details = channel(cx, "contentDetails").await?.and_then(|channel| channel.content_details);
    Ok(details.map(|details| details.related_playlists.uploads))
}

/// Returns one page of an uploads playlist, newest first.
async fn uploaded(cx: &Session<'_>, list: &str, page: Option<&str>) -> Result<Page<Item>> {
    let call = cx.get(format!("{API}/playlistItems")).query(&[
        ("part", "snippet,contentDetails"),
        ("playlistId", list),
        ("maxResults", "50"),
    ]);
    match google::paged(call, page).send::<List<Item>>().await {
        Ok(list) => Ok(list.page()),
        // A channel without uploads has no such playlist.
        Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(Page::default()),
        Err(failure) => Err(failure),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Video {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) snippet: Snippet,
    #[serde(default)]
    pub(super) status: Status,
    #[serde(default)]
    statistics: Statistics,
    #[serde(default)]
    processing_details: Processing,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    upload_status: String,
    pub(super) privacy_status: Option<String>,
    pub(super) failure_reason: Option<String>,
    rejection_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Processing {
    processing_status: String,
    processing_failure_reason: Option<String>,
}

impl Video {
    /// Returns true if processing has finished; fails if it failed.
    pub(super) fn is_processed(&self) -> Result<bool> {
        let no = |what: &str, why: Option<&str>| {
            Err(Failure::rejected(
                422,
                format!("YouTube {what} the video: {}", why.unwrap_or("it does not say why")),
            ))
        };
        let details = &self.processing_details;
        match (self.status.upload_status.as_str(), details.processing_status.as_str()) {
            ("failed", _) => no("could not process", self.status.failure_reason.as_deref()),
            ("rejected", _) => no("rejected", self.status.rejection_reason.as_deref()),
            ("deleted", _) => no("deleted", Some("it was removed")),
            ("processed", _) => Ok(true),
            (_, "failed" | "terminated") => {
                no("could not process", details.processing_failure_reason.as_deref())
            }
            _ => Ok(false),
        }
    }
}

/// Counters, encoded as strings. YouTube omits hidden ones.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statistics {
    view_count: Option<String>,
    like_count: Option<String>,
    comment_count: Option<String>,
}

impl Statistics {
    fn metrics(&self) -> Metrics {
        let count = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        Metrics {
            video_views: count(&self.view_count),
            likes: count(&self.like_count),
            comments: count(&self.comment_count),
            ..Metrics::default()
        }
    }
}

#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    rows: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    snippet: Snippet,
    content_details: ItemDetails,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemDetails {
    #[serde(deserialize_with = "required::id")]
    video_id: String,
    video_published_at: Option<DateTime<Utc>>,
}
