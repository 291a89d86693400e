//! TikTok, over its Content Posting API v2:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>.
//!
//! A video is published once its last part is uploaded, so that part is the publishing call; the publish id of
//! the upload identifies its state. TikTok fetches photos itself: the call with their URLs publishes, and
//! after a lost response only the public list of posts can show the result. The creator's options are read
//! before each post, as TikTok requires.

use crate::{listing::Listing, *};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// TikTok. <https://developers.tiktok.com/doc/content-posting-api-get-started>
struct TikTok;

const API: &str = "https://open.tiktokapis.com/v2";

/// Size of one part of an upload. The last part also contains the remainder, so it has up to twice this size.
const CHUNK_BYTES: u64 = 5 << 20;
/// An upload is valid for an hour; one that expires within the margin is not used any more.
const UPLOAD_TTL: TimeDelta = TimeDelta::minutes(60);
const UPLOAD_EXPIRY_MARGIN: TimeDelta = TimeDelta::minutes(5);
/// Wait after a rate limit, whose window is a minute.
const RATE_BACKOFF: Duration = Duration::from_secs(60);
/// Wait after a creator's daily cap, whose window is rolling.
const DAILY_CAP_BACKOFF: Duration = Duration::from_secs(6 * 3600);
/// Time limit of waiting for a complete post's id; moderation may take hours.
const MODERATION_TIMEOUT: TimeDelta = TimeDelta::minutes(5);

const FIELDS: &str =
    "id,create_time,title,video_description,cover_image_url,like_count,comment_count,share_count,view_count";

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "tiktok",
    name: "TikTok",
    limits: Limits {
        text: TextLimit { max: 2200, unit: "UTF-16 code units", count: units, max_bytes: None },
        content: Content::Media,
        media: &[
            MediaLimit {
                kind: MediaKind::Video,
                count: 1..=1,
                mimes: &["video/mp4", "video/quicktime", "video/webm"],
                max_bytes: 4_000_000_000,
                // Each creator has a lower limit of their own.
                duration: Some(Duration::ZERO..=Duration::from_secs(600)),
                pixels: Some((360..=4096, 360..=4096)),
                ..MediaLimit::ANY
            },
            MediaLimit {
                kind: MediaKind::Image,
                count: 1..=35,
                mimes: &["image/jpeg", "image/webp"],
                max_bytes: 20_000_000,
                pixels: Some((1..=1920, 1..=1920)),
                ..MediaLimit::ANY
            },
        ],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(30 * 60) },
        // True for uploads. Photos with an unknown result are never published again.
        idempotency: Idempotency::Idempotent,
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.tiktok.com/v2/auth/authorize/",
        token: "https://open.tiktokapis.com/v2/oauth/token/",
        scopes: &["user.info.basic", "user.info.profile", "video.list", "video.publish"],
        features: &[
            (Feature::Publishing, &[&["user.info.basic", "video.publish"]]),
            (Feature::Analytics, &[&["video.list"]]),
            (Feature::Import, &[&["video.list"]]),
        ],
        presets: &[Preset { name: "publishing", scopes: &["user.info.basic", "video.publish"] }],
        separator: ",",
        client_id: "client_key",
        // No PKCE: web apps don't need it, and TikTok's challenge is not the standard one.
        client_auth: ClientAuth::Body,
        force_login: &[("disable_auto_auth", "1")],
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &TikTok,
    analytics: Some(&TikTok),
    history: Some(&TikTok),
    deletion: None,
    options: Some(&TikTok),
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Who can see the post; options/privacy_levels lists the levels that the creator may choose. Defaults to the
    /// widest of them.
    privacy_level: Option<PrivacyLevel>,
    /// Disables comments.
    disable_comment: Option<bool>,
    /// Disables duets with the video.
    disable_duet: Option<bool>,
    /// Disables stitches of the video.
    disable_stitch: Option<bool>,
    /// Moment of the video to use as its cover, in milliseconds.
    #[schemars(range(max = i32::MAX))]
    video_cover_timestamp_ms: Option<u32>,
    /// Labels the post as a paid partnership.
    brand_content_toggle: Option<bool>,
    /// Labels the post as promoting the creator's own business.
    brand_organic_toggle: Option<bool>,
    /// Labels the post as made with AI.
    is_aigc: Option<bool>,
    /// Title of a photo post; the text is its description.
    #[schemars(length(max = 90))]
    title: Option<String>,
    /// Lets TikTok add music to photos.
    auto_add_music: Option<bool>,
    /// Index of the photo to use as the cover, from 0.
    #[schemars(range(max = 34))]
    photo_cover_index: Option<u32>,
}

domain::string_enum! {
    /// Privacy level, from the widest to the narrowest.
    #[derive(JsonSchema)]
    PrivacyLevel, "privacy level" {
        Public = "PUBLIC_TO_EVERYONE",
        Followers = "FOLLOWER_OF_CREATOR",
        Friends = "MUTUAL_FOLLOW_FRIENDS",
        Private = "SELF_ONLY",
    }
}

impl PrivacyLevel {
    /// Returns the name in TikTok's app.
    fn name(self) -> &'static str {
        match self {
            Self::Public => "Everyone",
            Self::Followers => "Followers",
            Self::Friends => "Friends",
            Self::Private => "Only me",
        }
    }
}

/// Returns the length in UTF-16 code units, as TikTok counts.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

#[async_trait]
impl Publisher for TikTok {
    fn classify(&self, reply: &Reply) -> Option<Failure> {
        let code = reply.body.pointer("/error/code").and_then(Value::as_str).unwrap_or("ok");
        if ["ok", ""].contains(&code) {
            return None;
        }
        let said = reply.body.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        let message = if said.is_empty() { code.to_owned() } else { format!("{said} ({code})") };
        let status = reply.status.as_u16();
        // Some refusals come with a status of success.
        let refused = if (400..500).contains(&status) { status } else { 400 };
        let wait = |usual: Duration| classify::retry_after(reply).or(Some(usual));
        Some(match code {
            "access_token_invalid" => Failure::token_expired(message),
            "rate_limit_exceeded" => Failure::rate_limited(message, wait(RATE_BACKOFF)),
            "spam_risk_too_many_posts" | "spam_risk_too_many_pending_share" | "reached_active_user_cap" => {
                Failure::rate_limited(message, wait(DAILY_CAP_BACKOFF))
            }
            "internal_error" => Failure::upstream(status.max(500), message),
            _ if status >= 500 => return None,
            _ => Failure::rejected(refused, message),
        })
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        // A field without its scope fails the whole request.
        let is_profiled =
            cx.grant.scopes.is_empty() || cx.grant.scopes.iter().any(|scope| scope == "user.info.profile");
        let fields = match is_profiled {
            true => "open_id,avatar_url,display_name,username,profile_deep_link",
            false => "open_id,avatar_url,display_name",
        };
        let me: Data<Me> = cx.get(format!("{API}/user/info/")).query(&[("fields", fields)]).send().await?;
        let me = me.data.user;
        let named = |text: Option<String>| text.filter(|text| !text.is_empty());
        let display = named(me.display_name);
        let username = named(me.username).or_else(|| display.clone()).unwrap_or_else(|| me.open_id.clone());
        Ok(vec![Identity {
            profile: AccountProfile {
                profile_url: named(me.profile_deep_link)
                    .or_else(|| is_profiled.then(|| format!("https://www.tiktok.com/@{username}"))),
                display_name: display.unwrap_or_else(|| username.clone()),
                username,
                account_type: "profile".to_owned(),
                profile_image_url: named(me.avatar_url),
                network_unique_id: me.open_id,
            },
            grant: None,
        }])
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        let form = [("token", cx.grant.access_token.as_str())];
        let reply = oauth::request(cx, &format!("{API}/oauth/revoke/"), &form)?.send_raw().await?;
        match reply.status.as_u16() {
            // The rejection of a token that is already revoked counts as success.
            200..=299 | 400 | 401 => Ok(()),
            _ => Err(classify::by_status(&reply)),
        }
    }

    // Not by `crate::upload`: a video's last part publishes it, so that `prepare` and `commit` share one loop,
    // and `locate` queries the upload's publish id.
    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        let first = post.media.first().ok_or_else(|| Failure::rejected(422, "TikTok needs media"))?;
        if step.media != Some(first.id)
            || step.expires_at.is_some_and(|at| at < (cx.now)() + UPLOAD_EXPIRY_MARGIN)
        {
            step = Step { media: Some(first.id), ..Step::default() };
        }
        if step.info.is_null() {
            step.info = info(cx, post, first).await?;
            cx.save(&step).await?;
        }
        if first.kind == MediaKind::Image {
            return Ok(Prepared::Ready(Checkpoint::of(&step)));
        }
        let pieces = Pieces::of(first.size_bytes);
        if step.upload.is_none() {
            let begun: Data<Begun> = cx
                .post(format!("{API}/post/publish/video/init/"))
                .json(&json!({
                    "post_info": step.info,
                    "source_info": {
                        "source": "FILE_UPLOAD",
                        "video_size": first.size_bytes,
                        "chunk_size": pieces.size,
                        "total_chunk_count": pieces.count,
                    },
                }))
                .send()
                .await?;
            step.publish = Some(begun.data.publish_id);
            step.upload = begun.data.upload_url;
            step.expires_at = Some((cx.now)() + UPLOAD_TTL);
            cx.save(&step).await?;
        }
        while step.sent + 1 < pieces.count {
            match send(cx, first, &step).await? {
                Sent::Pieces(count) => step.sent = count,
                Sent::All => step.sent = pieces.count,
                Sent::Gone => return Err(ended(cx).await),
            }
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        let mut step: Step = at.read()?;
        let first = post.media.first().ok_or_else(|| Failure::rejected(422, "TikTok needs media"))?;
        if first.kind == MediaKind::Image {
            step.publish = Some(post_photos(cx, post, &step.info).await?);
        } else {
            let count = Pieces::of(first.size_bytes).count;
            // More than one is left if TikTok told an earlier attempt to resume at an earlier part.
            while step.sent < count {
                match send(cx, first, &step).await? {
                    Sent::Pieces(count) => step.sent = count,
                    Sent::All => break,
                    Sent::Gone => return Err(ended(cx).await),
                }
            }
        }
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::from_secs(3) })
    }

    /// Returns the time limit for the last part of a video, which has up to twice the usual size.
    fn commit_limit(&self, post: &Publication) -> Duration {
        let video = post.media.iter().find(|media| media.kind == MediaKind::Video);
        video.map_or(TIMEOUT, |video| timeout_for(video.size_bytes.min(2 * CHUNK_BYTES)))
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        let step: Step = at.read()?;
        let begun = post.begun();
        let total = post.media.first().filter(|first| first.kind == MediaKind::Video).map(|v| v.size_bytes);
        let Some(publish) = step.publish.filter(|_| !post.is_restored) else {
            return match total {
                // No upload was begun.
                Some(_) if !post.is_restored => Ok(Located::Absent),
                _ => Ok(match listing::locate(&Posts(cx), post).await? {
                    Located::Live(id) => Located::Live(id),
                    // The post may be in moderation, or not public.
                    _ => Located::Unknown,
                }),
            };
        };
        let status = status(cx, &publish).await?;
        let age = (cx.now)() - begun;
        let poll_after = Duration::from_secs(age.num_seconds().clamp(12, 120) as u64 / 4);
        match status.status.as_str() {
            "PUBLISH_COMPLETE" => match status.post_id() {
                Some(id) => Ok(Located::Live(id)),
                // A post that is not public, or is in moderation for long, has no id.
                None if step.info["privacy_level"] != "PUBLIC_TO_EVERYONE" || age > MODERATION_TIMEOUT => {
                    Ok(Located::Live(publish))
                }
                None => Ok(Located::Processing { poll_after }),
            },
            "SEND_TO_USER_INBOX" => Ok(Located::Live(publish)),
            "FAILED" => Err(failed(status.fail_reason.as_deref().unwrap_or("internal"))),
            "PROCESSING_UPLOAD" if status.uploaded_bytes.zip(total).is_some_and(|(has, of)| has < of) => {
                Ok(Located::Absent)
            }
            _ => Ok(Located::Processing { poll_after }),
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        Ok(address(cx, id))
    }
}

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
        Ok(list(cx, cursor).await?.map(|video| RemotePost {
            url: address(cx, &video.id),
            text: video.caption().to_owned(),
            media: video.cover_image_url.clone().into_iter().collect(),
            published_at: video.at(),
            metrics: video.metrics(),
            id: video.id,
        }))
    }
}

#[async_trait]
impl Options for TikTok {
    fn kinds(&self) -> &'static [&'static str] {
        &["privacy_levels"]
    }

    async fn options(
        &self,
        cx: &Session<'_>,
        kind: &str,
        _parent: Option<&str>,
    ) -> Result<Vec<SelectOption>> {
        if kind != "privacy_levels" {
            return Err(Failure::rejected(404, format!("TikTok has no list of {kind}")));
        }
        let levels = creator(cx).await?.privacy_level_options;
        let name = |level: &str| {
            level.parse().map_or(level.to_owned(), |known: PrivacyLevel| known.name().to_owned())
        };
        let levels = levels.into_iter().filter(|level| required::is_id(level));
        Ok(levels.map(|level| SelectOption { name: name(&level), id: level }).collect())
    }
}

/// Reads the creator's options and limits.
async fn creator(cx: &Session<'_>) -> Result<Creator> {
    ask(cx, "post/publish/creator_info/query/", &json!({})).await
}

/// Returns the `post_info` of a post, within its creator's options.
async fn info(cx: &Session<'_>, post: &Publication, first: &Media) -> Result<Value> {
    let creator = creator(cx).await?;
    let settings: Settings = post.settings()?;
    let is_on = |setting: Option<bool>| setting == Some(true);
    let allowed = &creator.privacy_level_options;
    let is_allowed = |level: PrivacyLevel| allowed.iter().any(|other| other == level.as_str());
    let privacy = match settings.privacy_level {
        Some(wanted) if is_allowed(wanted) => wanted,
        Some(wanted) => {
            let message = format!(
                "the creator may choose a privacy_level of {}, and it is {wanted}",
                allowed.join(", ")
            );
            return Err(Failure::rejected(422, message));
        }
        None => {
            let widest = PrivacyLevel::ALL.iter().copied().find(|level| is_allowed(*level));
            widest.unwrap_or(PrivacyLevel::Private)
        }
    };
    let mut info = Map::new();
    info.insert("privacy_level".into(), json!(privacy));
    info.insert("disable_comment".into(), json!(is_on(settings.disable_comment) || creator.comment_disabled));
    info.insert("brand_content_toggle".into(), json!(is_on(settings.brand_content_toggle)));
    info.insert("brand_organic_toggle".into(), json!(is_on(settings.brand_organic_toggle)));
    if first.kind == MediaKind::Image {
        let title = settings.title.filter(|title| !title.is_empty());
        info.extend(title.map(|title| ("title".to_owned(), json!(title))));
        info.insert("description".into(), json!(post.text));
        info.insert("auto_add_music".into(), json!(is_on(settings.auto_add_music)));
        return Ok(Value::Object(info));
    }
    let longest = creator.max_video_post_duration_sec.map(Duration::from_secs);
    if let Some((length, most)) = first.duration.zip(longest).filter(|(length, most)| length > most) {
        let message = format!(
            "the creator may post videos of {} seconds, and this has {}",
            most.as_secs(),
            length.as_secs_f64()
        );
        return Err(Failure::rejected(422, message));
    }
    info.insert("title".into(), json!(post.text));
    info.insert("disable_duet".into(), json!(is_on(settings.disable_duet) || creator.duet_disabled));
    info.insert("disable_stitch".into(), json!(is_on(settings.disable_stitch) || creator.stitch_disabled));
    info.insert("is_aigc".into(), json!(is_on(settings.is_aigc)));
    let cover = settings.video_cover_timestamp_ms;
    info.extend(cover.map(|cover| ("video_cover_timestamp_ms".to_owned(), json!(cover))));
    Ok(Value::Object(info))
}

/// Posts photos by their URLs and returns the publish id.
async fn post_photos(cx: &Session<'_>, post: &Publication, info: &Value) -> Result<String> {
    let settings: Settings = post.settings()?;
    let mut photos = Vec::with_capacity(post.media.len());
    for medium in &post.media {
        let address = cx.media.address(medium).await;
        photos.push(address.map_err(|failure| failure.certain())?.to_string());
    }
    let cover = settings.photo_cover_index.filter(|index| (*index as usize) < photos.len());
    let begun: Data<Begun> = cx
        .post(format!("{API}/post/publish/content/init/"))
        .json(&json!({
            "media_type": "PHOTO",
            "post_mode": "DIRECT_POST",
            "post_info": info,
            "source_info": {
                "source": "PULL_FROM_URL",
                "photo_images": photos,
                "photo_cover_index": cover.unwrap_or(0),
            },
            "is_aigc": settings.is_aigc == Some(true),
        }))
        .send()
        .await?;
    Ok(begun.data.publish_id)
}

/// The parts of a file: all of one size, the last with the remainder.
struct Pieces {
    size: u64,
    count: u64,
}

impl Pieces {
    fn of(total: u64) -> Self {
        let size = CHUNK_BYTES.min(total).max(1);
        Self { size, count: (total / size).max(1) }
    }
}

/// The result of sending a part.
enum Sent {
    /// Number of parts that are stored.
    Pieces(u64),
    /// All parts are stored.
    All,
    /// The upload no longer exists.
    Gone,
}

/// Sends the next part of an upload.
async fn send(cx: &Session<'_>, video: &Media, step: &Step) -> Result<Sent> {
    let (Some(upload), Some(publish)) = (&step.upload, &step.publish) else { return Ok(Sent::Gone) };
    let (total, pieces) = (video.size_bytes, Pieces::of(video.size_bytes));
    let start = step.sent * pieces.size;
    let end = if step.sent + 1 == pieces.count { total } else { start + pieces.size };
    let reply = cx
        .put(upload)
        // The URL itself is the credential.
        .anonymous()
        .header("content-range", format!("bytes {start}-{}/{total}", end - 1))
        .upload(&video.mime, end - start, cx.slice(video, start..end))
        .send_raw()
        .await?;
    match reply.status.as_u16() {
        201 => Ok(Sent::All),
        200..=299 => Ok(Sent::Pieces(step.sent + 1)),
        403 | 404 => Ok(Sent::Gone),
        // TikTok expects another part, as after a lost response.
        416 => match status(cx, publish).await?.uploaded_bytes {
            Some(has) if has >= total => Ok(Sent::All),
            Some(has) if has / pieces.size != step.sent => Ok(Sent::Pieces(has / pieces.size)),
            _ => Err(classify::by_status(&reply)),
        },
        _ => Err(classify::by_status(&reply)),
    }
}

/// Drops an upload that can't be resumed. Nothing is posted before its last byte, so that the
/// video can be uploaded again.
async fn ended(cx: &Session<'_>) -> Failure {
    let message = "the upload ended before its last byte; it begins again";
    match cx.save(&Step::default()).await {
        Ok(()) => Failure::upstream(503, message).certain(),
        Err(unsaved) => unsaved,
    }
}

async fn status(cx: &Session<'_>, publish: &str) -> Result<Status> {
    ask(cx, "post/publish/status/fetch/", &json!({ "publish_id": publish })).await
}

async fn ask<T: DeserializeOwned>(cx: &Session<'_>, path: &str, body: &Value) -> Result<T> {
    let answer: Data<T> = cx.post(format!("{API}/{path}")).json(body).send().await?;
    Ok(answer.data)
}

/// The creator's public posts. Only the latest are searched, since absence from them proves nothing.
struct Posts<'a>(&'a Session<'a>);

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

    fn at(video: &Video) -> Option<DateTime<Utc>> {
        Some(video.at())
    }

    fn is(&self, video: &Video, post: &Publication) -> bool {
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

/// Returns the failure of a post, which TikTok does not retry.
fn failed(reason: &str) -> Failure {
    let message = format!("TikTok could not post it: {reason}");
    match reason {
        "auth_removed" => Failure::revoked(message),
        spam if spam.starts_with("spam_risk") => Failure::rejected(403, message),
        _ => Failure::rejected(422, message),
    }
}

fn address(cx: &Session<'_>, id: &str) -> String {
    let username = &cx.account.username;
    cx.transport.rewrite_url(&match is_publish(id) {
        // A post without an id is only on its creator's page.
        true => format!("https://www.tiktok.com/@{username}"),
        false => format!("https://www.tiktok.com/@{username}/video/{id}"),
    })
}

/// Returns true for a publish id; a post's id is a number.
fn is_publish(id: &str) -> bool {
    !id.bytes().all(|byte| byte.is_ascii_digit())
}

/// The adapter's checkpoint. The upload's address is valid for an hour and for this video only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// The uploaded medium.
    media: Option<Uuid>,
    /// The `post_info` of the publishing call.
    #[serde(default)]
    info: Value,
    publish: Option<String>,
    upload: Option<String>,
    /// Number of parts that are stored.
    #[serde(default)]
    sent: u64,
    expires_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

#[derive(Deserialize)]
struct Me {
    user: User,
}

#[derive(Deserialize)]
struct User {
    #[serde(deserialize_with = "required::id")]
    open_id: String,
    avatar_url: Option<String>,
    display_name: Option<String>,
    username: Option<String>,
    profile_deep_link: Option<String>,
}

#[derive(Deserialize)]
struct Creator {
    #[serde(default)]
    privacy_level_options: Vec<String>,
    #[serde(default)]
    comment_disabled: bool,
    #[serde(default)]
    duet_disabled: bool,
    #[serde(default)]
    stitch_disabled: bool,
    max_video_post_duration_sec: Option<u64>,
}

#[derive(Deserialize)]
struct Begun {
    #[serde(deserialize_with = "required::id")]
    publish_id: String,
    upload_url: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    status: String,
    fail_reason: Option<String>,
    uploaded_bytes: Option<u64>,
    // The API's own spelling.
    #[serde(default)]
    publicaly_available_post_id: Vec<Value>,
}

impl Status {
    /// Returns the id of the public post: a number that a float can't represent, or a string.
    fn post_id(&self) -> Option<String> {
        let id = self.publicaly_available_post_id.first()?;
        let text = id.as_str().filter(|id| required::is_id(id));
        id.as_u64().map(|id| id.to_string()).or_else(|| text.map(str::to_owned))
    }
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
struct Video {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    create_time: i64,
    #[serde(default)]
    title: String,
    #[serde(default)]
    video_description: String,
    cover_image_url: Option<String>,
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
    fn at(&self) -> DateTime<Utc> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_into_the_parts_tiktok_documents() {
        for (total, size, count) in [
            (1, 1, 1),
            (CHUNK_BYTES - 1, CHUNK_BYTES - 1, 1),
            (CHUNK_BYTES, CHUNK_BYTES, 1),
            (2 * CHUNK_BYTES - 1, CHUNK_BYTES, 1),
            (50_000_123, CHUNK_BYTES, 9),
        ] {
            let pieces = Pieces::of(total);
            assert_eq!((pieces.size, pieces.count), (size, count), "{total}");
            assert_eq!(pieces.count, total / pieces.size, "{total}");
        }
    }

    #[test]
    fn an_id_larger_than_a_float_is_parsed_exactly() {
        let text =
            r#"{ "status": "PUBLISH_COMPLETE", "publicaly_available_post_id": [7512345678901234567] }"#;
        let status: Status = serde_json::from_str(text).unwrap();
        assert_eq!(status.post_id().as_deref(), Some("7512345678901234567"));
        let none: Status = serde_json::from_str(r#"{ "status": "PUBLISH_COMPLETE" }"#).unwrap();
        assert_eq!(none.post_id(), None);
    }
}
