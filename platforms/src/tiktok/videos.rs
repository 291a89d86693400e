//! The creator's public posts, with their figures: <https://developers.tiktok.com/doc/tiktok-api-v2-video-list>.

use super::{API, Data, TikTok, address, creator::handle, is_publish, status};
use crate::{
    Analytics, History, Metrics, Page, PublishRequest, RemotePost, Result, Session, listing::Listing,
    required,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::Failure;
use serde::Deserialize;
use serde_json::json;

const FIELDS: &str = "id,create_time,title,video_description,cover_image_url,share_url,like_count,comment_count,share_count,view_count";

#[async_trait]
impl Analytics for TikTok {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        // A post may have received its id since it was published.
        let id = match is_publish(id) {
            true => status(cx, id).await?.post_id().ok_or_else(|| {
                Failure::rejected(404, format!("TikTok has no figures of {id}, which is not public"))
            })?,
            false => id.to_owned(),
        };
        let found: Data<Videos> = cx
            .post(format!("{API}/video/query/"))
            .query(&[("fields", FIELDS)])
            .json(&json!({ "filters": { "video_ids": [id] } }))
            .send()
            .await?;
        let video = found.data.videos.into_iter().find(|video| video.id == id);
        video
            .map(|video| video.metrics())
            .ok_or_else(|| Failure::rejected(404, format!("video {id} is not there")))
    }
}

#[async_trait]
impl History for TikTok {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let found = list(cx, cursor).await?;
        let handle = handle(cx).await?;
        Ok(found.map(|video| RemotePost {
            url: match (&handle, &video.share_url) {
                (Some(handle), _) => address(cx, handle, &video.id),
                (None, shared) => cx.transport.rewrite_url(shared.as_deref().unwrap_or_default()),
            },
            text: video.caption().to_owned(),
            media: video.cover_image_url.clone().into_iter().collect(),
            published_at: video.published_at(),
            metrics: video.metrics(),
            id: video.id,
        }))
    }
}

/// The creator's public posts. Only the latest are searched, since absence from them proves nothing.
pub(super) struct Posts<'a>(pub(super) &'a Session<'a>);

#[async_trait]
impl Listing for Posts<'_> {
    type Item = Video;
    const MAX_PAGES: usize = 1;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Video>> {
        list(self.0, cursor).await
    }

    fn id(video: &Video) -> &str {
        &video.id
    }

    fn published_at(video: &Video) -> Option<DateTime<Utc>> {
        Some(video.published_at())
    }

    fn matches(&self, video: &Video, post: &PublishRequest) -> bool {
        let text = post.text.trim();
        !text.is_empty() && (video.title.trim() == text || video.video_description.trim() == text)
    }
}

async fn list(cx: &Session<'_>, cursor: Option<&str>) -> Result<Page<Video>> {
    let mut body = json!({ "max_count": 20 });
    if let Some(cursor) = cursor.and_then(|cursor| cursor.parse::<i64>().ok()) {
        body["cursor"] = json!(cursor);
    }
    let list: Data<Videos> =
        cx.post(format!("{API}/video/list/")).query(&[("fields", FIELDS)]).json(&body).send().await?;
    let Videos { videos, cursor, has_more } = list.data;
    Ok(Page { items: videos, next: cursor.filter(|_| has_more).map(|cursor| cursor.to_string()) })
}

#[derive(Deserialize)]
struct Videos {
    #[serde(default)]
    videos: Vec<Video>,
    cursor: Option<i64>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
pub(super) struct Video {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    #[serde(default)]
    create_time: i64,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    video_description: String,
    cover_image_url: Option<String>,
    share_url: Option<String>,
    #[serde(default)]
    like_count: u64,
    #[serde(default)]
    comment_count: u64,
    #[serde(default)]
    share_count: u64,
    #[serde(default)]
    view_count: u64,
}

impl Video {
    fn published_at(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(self.create_time, 0).unwrap_or_default()
    }

    fn caption(&self) -> &str {
        if self.video_description.is_empty() { &self.title } else { &self.video_description }
    }

    /// Returns the metrics. Plays count as impressions, because TikTok reports no other.
    fn metrics(&self) -> Metrics {
        Metrics {
            impressions: self.view_count,
            video_views: self.view_count,
            likes: self.like_count,
            comments: self.comment_count,
            shares: self.share_count,
            ..Metrics::default()
        }
    }
}
