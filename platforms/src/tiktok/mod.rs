//! TikTok, over its Content Posting API v2:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>.
//!
//! A video is published once its last part is uploaded, so that part is the publishing call; the publish id of
//! the upload identifies its state. TikTok fetches photos itself: the call with their URLs publishes, and
//! after a lost response only the public list of posts can show the result. The creator's options are read
//! before each post, as TikTok requires. An app that TikTok has not audited posts for private accounts only, and
//! what only their creators can see: <https://developers.tiktok.com/doc/content-sharing-guidelines>. Any app may
//! send a post to the inbox of TikTok's app instead, where the creator finishes and posts it:
//! <https://developers.tiktok.com/doc/content-posting-api-reference-upload-video>.

mod creator;
mod errors;
mod init;
mod upload;
mod videos;

use self::{
    creator::{creator, current_handle, handle, is_profiled},
    errors::{advice, code, failed},
    init::{begin, inbox_info, inbox_warnings, info, post_photos},
    upload::{Pieces, Sent, ended, has_failed, send},
    videos::Posts,
};
use crate::{
    AccountProfile, Adapter, Auth, Cap, Checkpoint, ClientAuth, Committed, Content, Counted, Encoding,
    Feature, Idempotency, Identity, Limits, Located, MediaKind, MediaLimit, Number, OAuth2, Prepared, Preset,
    PublishRequest, Publisher, Publishing, Reply, Result, ScopeSet, Session, Source, TIMEOUT, TextLimit,
    Window,
    check::{ContainerContent, Issue, Severity},
    classify, listing,
    look_up::{self, Findings, Subject},
    oauth, required, schema, text, timeout_for,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// TikTok. <https://developers.tiktok.com/doc/content-posting-api-get-started>
struct TikTok;

const API: &str = "https://open.tiktokapis.com/v2";

/// Maximum length of a photo post's title, in UTF-16 code units.
const MAX_TITLE: usize = 90;
/// Hashtags that TikTok's app takes since August 2025. TikTok says nothing of its API, so that more are told.
/// <https://www.netinfluencer.com/?p=37510>
const USUAL_HASHTAGS: usize = 5;
/// An upload is valid for an hour; one that expires within the margin is not used any more.
const UPLOAD_TTL: TimeDelta = TimeDelta::minutes(60);
const UPLOAD_EXPIRY_MARGIN: TimeDelta = TimeDelta::minutes(5);
/// Wait after a rate limit, whose window is a minute.
const RATE_BACKOFF: Duration = Duration::from_secs(60);
/// Wait after a creator's daily cap, whose window is rolling.
const DAILY_CAP_BACKOFF: Duration = Duration::from_secs(6 * 3600);
/// Time limit of waiting for a complete post's id; moderation may take hours.
const MODERATION_TIMEOUT: TimeDelta = TimeDelta::minutes(5);

const NARROWED: &str = "TikTok has not audited the app: only the creator sees the post (SELF_ONLY)";

/// Told about a post in the inbox, which TikTok does not show to anybody else.
const IN_INBOX: &str =
    "The post waits in the inbox of TikTok's app, and is published when the creator finishes it there";

/// Scopes of a post that TikTok publishes, and of one that its creator finishes.
const DIRECT_SCOPES: ScopeSet = &["user.info.basic", "video.publish"];
const INBOX_SCOPES: ScopeSet = &["user.info.basic", "video.upload"];

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "tiktok",
    name: "TikTok",
    limits: Limits {
        text: TextLimit { max: 2200, usual: None, unit: "UTF-16 code units", count: units, max_bytes: None },
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
                encoding: Some(Encoding {
                    video_codecs: &["h264", "hevc", "vp8", "vp9"],
                    audio_codecs: &[],
                    frame_rate: Some(23..=60),
                    max_bit_depth: None,
                    chroma: &[],
                    index_first: false,
                    no_edits: false,
                    source: "https://developers.tiktok.com/doc/content-posting-api-media-transfer-guide",
                    checked: "2026-11",
                }),
                ..MediaLimit::ANY
            },
            MediaLimit {
                kind: MediaKind::Image,
                count: 1..=35,
                max_text: Some(4000),
                mimes: &["image/jpeg", "image/webp"],
                max_bytes: 20_000_000,
                pixels: Some((1..=1920, 1..=1080)),
                ..MediaLimit::ANY
            },
        ],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(30 * 60) },
        // True for uploads. Photos with an unknown result are never published again.
        idempotency: Idempotency::Idempotent,
        numbers: &[
            Number { of: "hashtags", max: None, usual: Some(USUAL_HASHTAGS) },
            Number::max("UTF-16 units of a photo post's title", MAX_TITLE),
        ],
        sources: &[
            Source {
                url: "https://developers.tiktok.com/doc/content-posting-api-reference-direct-post",
                checked: "2026-11-21",
            },
            Source {
                url: "https://developers.tiktok.com/doc/content-posting-api-reference-upload-video",
                checked: "2026-11-21",
            },
        ],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.tiktok.com/v2/auth/authorize/",
        token: "https://open.tiktokapis.com/v2/oauth/token/",
        // Of the products Login Kit and Content Posting API. TikTok refuses a whole login for one scope that the app
        // does not have, and those of the Display API are not open to every app.
        scopes: DIRECT_SCOPES,
        features: &[
            (Feature::Publishing, &[DIRECT_SCOPES, INBOX_SCOPES]),
            (Feature::Analytics, &[&["video.list"]]),
            (Feature::Import, &[&["video.list"]]),
        ],
        presets: &[
            Preset { name: "publishing", scopes: DIRECT_SCOPES },
            Preset { name: "inbox", scopes: INBOX_SCOPES },
            Preset {
                name: "display",
                scopes: &["user.info.basic", "user.info.profile", "video.list", "video.publish"],
            },
        ],
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
    editing: Err("TikTok lets no app change a post"),
    options: Some(&TikTok),
    // About 15 posts a day per creator; TikTok tells no usage. What the creator has finished in the app leaves the inbox
    // earlier, which TikTok does not tell either.
    caps: &[
        Cap {
            name: "posts",
            limit: 15,
            window: Window::Rolling(Duration::from_hours(24)),
            counts: Counted::Posts,
        },
        Cap {
            name: "inbox_posts",
            limit: 5,
            window: Window::Rolling(Duration::from_hours(24)),
            counts: Counted::PostsWith { setting: "post_mode", value: "MEDIA_UPLOAD" },
        },
    ],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// DIRECT_POST publishes the post. MEDIA_UPLOAD sends it to the inbox of TikTok's app, where the creator finishes
    /// and publishes it; this needs the scope video.upload. The inbox takes photos with their text, title,
    /// photo_cover_index and is_aigc, and a video with nothing else.
    #[schemars(extend("default" = "DIRECT_POST"))]
    post_mode: Option<PostMode>,
    /// Who can see the post; options/privacy_levels lists the levels that the creator may choose. TikTok requires
    /// that the creator chooses one. Defaults to the widest of them, and to SELF_ONLY for an app that TikTok has not
    /// audited.
    #[schemars(extend(
        "kinds" = ["video", "photos"],
        "isPromise" = ["FOLLOWER_OF_CREATOR", "MUTUAL_FOLLOW_FRIENDS", "SELF_ONLY"]
    ))]
    privacy_level: Option<PrivacyLevel>,
    /// Disables comments.
    #[schemars(extend("kinds" = ["video", "photos"]))]
    disable_comment: Option<bool>,
    /// Disables duets with the video.
    #[schemars(extend("kinds" = ["video"]))]
    disable_duet: Option<bool>,
    /// Disables stitches of the video.
    #[schemars(extend("kinds" = ["video"]))]
    disable_stitch: Option<bool>,
    /// Moment of the video to use as its cover, in milliseconds. TikTok takes the first frame instead of one that the
    /// video does not have.
    #[schemars(range(max = i32::MAX), extend("kinds" = ["video"]))]
    video_cover_timestamp_ms: Option<u32>,
    /// Labels the post as a paid partnership.
    #[schemars(extend("kinds" = ["video", "photos"], "isPromise" = true))]
    brand_content_toggle: Option<bool>,
    /// Labels the post as promoting the creator's own business.
    #[schemars(extend("kinds" = ["video", "photos"], "isPromise" = true))]
    brand_organic_toggle: Option<bool>,
    /// Labels the post as made with AI.
    #[schemars(extend("kinds" = ["video", "photos", "inbox photos"], "isPromise" = true))]
    is_aigc: Option<bool>,
    /// Title of a photo post; the text is its description.
    #[schemars(length(max = MAX_TITLE), extend("kinds" = ["photos", "inbox photos"]))]
    title: Option<String>,
    /// Lets TikTok add music to photos.
    #[schemars(extend("kinds" = ["photos"]))]
    auto_add_music: Option<bool>,
    /// Index of the photo to use as the cover, from 0.
    #[schemars(range(max = 34), extend("kinds" = ["photos", "inbox photos"]))]
    photo_cover_index: Option<u32>,
}

domain::string_enum! {
    /// Way in which a post reaches TikTok.
    #[derive(JsonSchema)]
    PostMode, "post mode" {
        Direct = "DIRECT_POST",
        Inbox = "MEDIA_UPLOAD",
    }
}

impl Settings {
    /// Returns true if the creator finishes the post in TikTok's app.
    fn is_for_inbox(&self) -> bool {
        self.post_mode == Some(PostMode::Inbox)
    }
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
    fn post_kind(&self, main: &ContainerContent<'_>, settings: &Value) -> Option<&'static str> {
        let settings: Settings = schema::read(settings).ok()?;
        let is_photos = main.media.first()?.kind == MediaKind::Image;
        // In the inbox the creator chooses most of what settings say.
        Some(match (is_photos, settings.is_for_inbox()) {
            (true, false) => "photos",
            (false, false) => "video",
            (true, true) => "inbox photos",
            (false, true) => "inbox video",
        })
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let Ok(settings) = schema::read::<Settings>(settings) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let issue = |severity, code: &str, setting: &str, message: String| {
            Issue::of_setting(severity, code, ADAPTER.id, setting, message)
        };
        if let Some(length) = settings.title.as_deref().map(units).filter(|length| *length > MAX_TITLE) {
            let message =
                format!("tiktok takes a title of {MAX_TITLE} UTF-16 code units, and this has {length}");
            found.push(issue(Severity::Error, "setting_invalid", "title", message));
        }
        if !settings.is_for_inbox()
            && settings.brand_content_toggle == Some(true)
            && settings.privacy_level == Some(PrivacyLevel::Private)
        {
            let message = "tiktok takes no paid partnership that only its creator can see".to_owned();
            found.push(issue(Severity::Error, "settings_conflict", "brand_content_toggle", message));
        }
        let photos = containers.first().map_or(0, |main| main.media.len());
        let is_photos = containers.iter().flat_map(|main| main.media).any(|one| one.kind == MediaKind::Image);
        if let Some(index) = settings.photo_cover_index.filter(|index| is_photos && *index as usize >= photos)
        {
            let message =
                format!("tiktok takes photo_cover_index from 0 to {}, and it is {index}", photos - 1);
            found.push(issue(Severity::Error, "setting_invalid", "photo_cover_index", message));
        }
        let video = containers.first().and_then(|main| main.media.first());
        if let (Some(at), Some(length)) =
            (settings.video_cover_timestamp_ms, video.and_then(|video| video.duration))
            && !settings.is_for_inbox()
            && Duration::from_millis(at.into()) >= length
        {
            let message = format!(
                "tiktok shows the first frame as the cover: video_cover_timestamp_ms is {at}, and the video has {} ms",
                length.as_millis()
            );
            found.push(issue(Severity::Warning, "setting_not_used", "video_cover_timestamp_ms", message));
        }
        let is_text_sent = !settings.is_for_inbox() || is_photos;
        let (tags, _) = containers.first().map_or((0, 0), |main| text::hashtags_and_mentions(main.text));
        if is_text_sent && tags > USUAL_HASHTAGS {
            let message = format!("tiktok takes {USUAL_HASHTAGS} hashtags in its app, and there are {tags}");
            found.push(Issue::of_main(Severity::Warning, "hashtags_too_many", "content", message));
        }
        if settings.is_for_inbox() {
            found.extend(containers.first().into_iter().flat_map(inbox_warnings));
        } else if settings.privacy_level.is_none() {
            let message = "tiktok requires that the creator chooses who can see the post; without privacy_level \
                           it is shown to as many as TikTok allows";
            let message = message.to_owned();
            found.push(issue(Severity::Warning, "setting_not_chosen", "privacy_level", message));
        }
        found
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        // The creator finishes a post in the inbox there.
        schema::read::<Settings>(&subject.settings).is_ok_and(|settings| !settings.is_for_inbox())
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let (settings, creator): (Settings, _) = (schema::read(&subject.settings)?, creator(cx).await?);
        if let Some(message) = settings.privacy_level.and_then(|wanted| creator.refuses_level(wanted)) {
            found.error(look_up::NOT_ALLOWED, "privacy_level", &format!("says: {message}"));
        }
        let first = subject.media.as_ref().and_then(|media| media.first());
        if let Some(message) = first.and_then(|first| creator.refuses_length(first)) {
            found.media_error(look_up::NOT_ALLOWED, &format!("says: {message}"));
        }
        Ok(())
    }

    fn scopes(&self, settings: &Value) -> Option<(&'static str, &'static [ScopeSet])> {
        let settings: Settings = schema::read(settings).ok()?;
        Some(("post_mode", if settings.is_for_inbox() { &[INBOX_SCOPES] } else { &[DIRECT_SCOPES] }))
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        let code = code(reply);
        if ["ok", ""].contains(&code) {
            return None;
        }
        let said = reply.body.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        let message = if said.is_empty() { code.to_owned() } else { format!("{said} ({code})") };
        let message = match advice(code) {
            Some(advice) => format!("{message}: {advice}"),
            None => message,
        };
        let status = reply.status.as_u16();
        // Some refusals come with a status of success.
        let refused = if (400..500).contains(&status) { status } else { 400 };
        let wait = |usual: Duration| classify::retry_after(reply).or(Some(usual));
        Some(match code {
            "access_token_invalid" => Failure::token_expired(message),
            "rate_limit_exceeded" => Failure::rate_limited(message, wait(RATE_BACKOFF)),
            "spam_risk_too_many_posts" => Failure::rate_limited(message, wait(DAILY_CAP_BACKOFF)),
            // The inbox is full, and other posts are taken.
            "spam_risk_too_many_pending_share" => {
                Failure::rate_limited_for_post(message, wait(DAILY_CAP_BACKOFF))
            }
            // The app's owner has to have it audited. The accounts that have published today may go on.
            "reached_active_user_cap" => Failure::app_refused_for_post(message, wait(DAILY_CAP_BACKOFF)),
            // The app's owner has to verify the domain that photos are fetched from. Videos are sent.
            "url_ownership_unverified" => Failure::app_refused_for_post(message, None),
            "internal_error" => Failure::upstream(status.max(500), message),
            _ if status >= 500 => return None,
            _ => Failure::rejected(refused, message),
        })
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        // A field without its scope fails the whole request.
        let fields = match is_profiled(cx) {
            true => "open_id,avatar_url,display_name,username,profile_deep_link",
            false => "open_id,avatar_url,display_name",
        };
        let me: Data<Me> = cx.get(format!("{API}/user/info/")).query(&[("fields", fields)]).send().await?;
        let me = me.data.user;
        let named = |text: Option<String>| text.filter(|text| !text.is_empty());
        let handle = match named(me.username) {
            None => current_handle(cx).await?,
            handle => handle,
        };
        // A display name is not unique, and is no handle. Without a handle the id is the account's name.
        let username = handle.clone().unwrap_or_else(|| me.open_id.clone());
        let page = handle.map(|handle| format!("https://www.tiktok.com/@{handle}"));
        Ok(vec![Identity {
            profile: AccountProfile {
                profile_url: named(me.profile_deep_link).or(page),
                display_name: named(me.display_name).unwrap_or_else(|| username.clone()),
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
            400 | 401 if !reply.is_block() => Ok(()),
            _ => reply.into_result(cx.platform).map(drop),
        }
    }

    // Not by `crate::upload`: a video's last part publishes it, so that `prepare` and `commit` share one loop,
    // and `locate` queries the upload's publish id.
    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        if let Some((_, message)) = ADAPTER.uncovered(&post.settings, &cx.grant.scopes) {
            return Err(Failure::rejected(403, format!("TikTok {message}")));
        }
        let settings: Settings = post.settings()?;
        let is_for_inbox = settings.is_for_inbox();
        let first = post.media.first().ok_or_else(|| Failure::rejected(422, "TikTok needs media"))?;
        let pieces = Pieces::of(first.size_bytes);
        let is_over = step.expires_at.is_some_and(|at| at < (cx.now)() + UPLOAD_EXPIRY_MARGIN);
        let is_other = step.media != Some(first.id)
            || (step.upload.is_some() && step.chunk_bytes != pieces.size)
            || (post.commit_begun_at.is_some() && has_failed(cx, &step).await?);
        if is_over || is_other {
            let is_begun = step.upload.is_some();
            step = Step { media: Some(first.id), ..Step::default() };
            // The next attempt may not know why.
            if is_begun {
                cx.save(&step).await?;
            }
        }
        if step.info.is_null() {
            step.info = match is_for_inbox {
                true => inbox_info(post, settings, first),
                false => info(cx, post, settings, first).await?,
            };
            cx.save(&step).await?;
        }
        if first.kind == MediaKind::Image {
            return Ok(Prepared::Ready(Checkpoint::of(&step)));
        }
        if step.upload.is_none() {
            let source = json!({
                "source": "FILE_UPLOAD",
                "video_size": first.size_bytes,
                "chunk_size": pieces.size,
                "total_chunk_count": pieces.count,
            });
            let begun = match is_for_inbox {
                true => {
                    begin(cx, post, &mut step, "inbox/video", |_| json!({ "source_info": source })).await?
                }
                false => {
                    let body = |info: &Value| json!({ "post_info": info, "source_info": source });
                    begin(cx, post, &mut step, "video", body).await?
                }
            };
            step.publish = Some(begun.publish_id);
            step.upload = begun.upload_url;
            step.chunk_bytes = pieces.size;
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

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let mut step: Step = at.read()?;
        let first = post.media.first().ok_or_else(|| Failure::rejected(422, "TikTok needs media"))?;
        if first.kind == MediaKind::Image {
            step.publish = Some(post_photos(cx, post, &mut step).await?);
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
        step.is_accepted = true;
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::from_secs(3) })
    }

    /// Returns the time limit for the last part of a video, or for the only one.
    fn commit_limit(&self, post: &PublishRequest) -> Duration {
        let video = post.media.iter().find(|media| media.kind == MediaKind::Video);
        video.map_or(TIMEOUT, |video| timeout_for(Pieces::of(video.size_bytes).last(video.size_bytes)))
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let step: Step = at.read()?;
        let begun = post.begun();
        let total = post.media.first().filter(|first| first.kind == MediaKind::Video).map(|v| v.size_bytes);
        let Some(publish) = step.publish.clone().filter(|_| !post.is_restored) else {
            return match total {
                // No upload was begun.
                Some(_) if !post.is_restored => Ok(Located::Absent),
                // TikTok lists public posts only.
                _ if post.settings::<Settings>()?.is_for_inbox() => Ok(Located::Unknown),
                _ => Ok(match listing::locate(&Posts(cx), post).await? {
                    live @ Located::Live(_) => live,
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
                Some(id) => Ok(Located::certain(id)),
                // A post that is not public, or is in moderation for long, has no id.
                None if step.info["privacy_level"] != "PUBLIC_TO_EVERYONE" || age > MODERATION_TIMEOUT => {
                    if step.is_narrowed {
                        cx.note(NARROWED).await?;
                    }
                    Ok(Located::certain(publish))
                }
                None => Ok(Located::Processing { poll_after }),
            },
            "SEND_TO_USER_INBOX" => {
                cx.note(IN_INBOX).await?;
                Ok(Located::certain(publish))
            }
            // After a lost response the next attempt posts it again, since nothing was published.
            "FAILED" if !step.is_accepted => Ok(Located::Absent),
            "FAILED" => Ok(Located::Failed(failed(status.fail_reason.as_deref().unwrap_or("internal")))),
            "PROCESSING_UPLOAD" if status.uploaded_bytes.zip(total).is_some_and(|(has, of)| has < of) => {
                Ok(Located::Absent)
            }
            _ => Ok(Located::Processing { poll_after }),
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        let handle = handle(cx).await?.ok_or_else(|| {
            let needed =
                "TikTok tells the handle to accounts that granted video.publish or user.info.profile";
            Failure::rejected(404, needed)
        })?;
        Ok(address(cx, &handle, id))
    }
}

async fn status(cx: &Session<'_>, publish: &str) -> Result<Status> {
    ask(cx, "post/publish/status/fetch/", &json!({ "publish_id": publish })).await
}

async fn ask<T: DeserializeOwned>(cx: &Session<'_>, path: &str, body: &Value) -> Result<T> {
    let answer: Data<T> = cx.post(format!("{API}/{path}")).json(body).send().await?;
    Ok(answer.data)
}

fn address(cx: &Session<'_>, username: &str, id: &str) -> String {
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
    /// Size of a part as announced.
    #[serde(default)]
    chunk_bytes: u64,
    /// True when TikTok has confirmed that it has everything.
    #[serde(default)]
    is_accepted: bool,
    /// True when only the creator sees the post, because the app is not audited.
    #[serde(default)]
    is_narrowed: bool,
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

#[cfg(test)]
mod tests {
    use super::*;

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
