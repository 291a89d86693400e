//! X, over its API v2: <https://docs.x.com/x-api>.
//!
//! X has no idempotency key, rejects the same text twice, and lists an author's posts with a lag. After a
//! lost response, the text is searched for among the author's latest posts; the rejection of a duplicate
//! indicates that the post may already exist.

mod captions;
mod tags;

use crate::{
    AccountProfile, Adapter, AltTextLimit, Analytics, Auth, Call, Cap, Checkpoint, Collection, Committed,
    Counted, Deletion, Encoding, Feature, Forms, History, Idempotency, Identity, Limits, Located, Media,
    MediaKind, MediaLimit, Metrics, Number, OAuth2, Page, Prepared, PublishRequest, Publisher, Publishing,
    RemotePost, Replies, Reply, Result, Session, Source, TextLimit, Window,
    check::{ContainerContent, Issue, Severity},
    classify,
    listing::{self, Listing},
    look_up::{self, Findings, Subject},
    required, schema, storage, text,
    upload::{self, Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use reqwest::{
    Body,
    multipart::{Form, Part},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};
use unicode_normalization::UnicodeNormalization;

/// X. <https://docs.x.com/x-api>
struct X;

const API: &str = "https://api.x.com/2";

/// Size of one part of an upload, as in X's own client. X documents parts of up to 5 MB, but refuses requests of
/// 5 MiB. An image of this size or less is uploaded in one request.
const CHUNK_BYTES: u64 = 4 << 20;
/// Default time between two polls of a medium.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum age of a grant that is renewed although nothing needs it: a refresh token is valid for half a year and
/// for one use, so that each renewal is a risk.
const IDLE_RENEWAL: Duration = Duration::from_secs(30 * 24 * 3600);
/// Text of an account without Premium.
const TEXT: TextLimit =
    TextLimit { max: 280, usual: None, unit: "weighted characters", count: text::weighted, max_bytes: None };
/// Text of an account with Premium.
static PREMIUM_TEXT: TextLimit = TextLimit { max: 25_000, ..TEXT };
/// Text of an account that may have Premium or not.
static UNKNOWN_TEXT: TextLimit = TextLimit { max: 25_000, usual: Some(280), ..TEXT };
/// Type of an account with Premium, of one without, and of one of which X does not say it.
const PREMIUM: &str = "premium";
const STANDARD: &str = "profile";
const UNKNOWN: &str = "unknown";
/// Cashtags of a post of an app without a contract.
const MAX_CASHTAGS: usize = 1;
const IMAGES: MediaLimit = MediaLimit {
    kind: MediaKind::Image,
    count: 0..=4,
    mimes: &["image/jpeg", "image/png", "image/webp", "image/gif"],
    max_bytes: 5 << 20,
    ..MediaLimit::ANY
};
const GIFS: MediaLimit = MediaLimit {
    kind: MediaKind::Gif,
    count: 0..=1,
    mimes: &["image/gif"],
    max_bytes: 15 << 20,
    pixels: Some((1..=1280, 1..=1080)),
    max_frames: Some(350),
    max_frame_pixels: Some(300_000_000),
    ..MediaLimit::ANY
};
/// X documents 140 seconds, and decides by account: some without Premium publish longer videos by this API, others are
/// refused when the post is created ("This user is not allowed to post a video longer than 2 minutes"; seen in public
/// code and logs of 2026). Four hours are Premium's maximum (<https://help.x.com/en/using-x/x-videos>).
const VIDEOS: MediaLimit = MediaLimit {
    kind: MediaKind::Video,
    count: 0..=1,
    mimes: &["video/mp4", "video/quicktime"],
    max_bytes: 512 << 20,
    duration: Some(Duration::from_millis(500)..=Duration::from_hours(4)),
    usual_duration: Some(Duration::from_secs(140)),
    // Accounts with Premium get 1080p playback, others 720p.
    pixels: Some((32..=1920, 32..=1200)),
    aspect_ratio: Some(1.0 / 3.0..=3.0),
    encoding: Some(Encoding {
        video_codecs: &["h264"],
        audio_codecs: &["aac"],
        frame_rate: Some(1..=60),
        max_bit_depth: Some(8),
        chroma: &["4:2:0"],
        index_first: false,
        no_edits: false,
        source: "https://docs.x.com/x-api/media/quickstart/best-practices",
        checked: "2026-11",
    }),
    ..MediaLimit::ANY
};
static PREMIUM_MEDIA: &[MediaLimit] = &[IMAGES, GIFS, MediaLimit { usual_duration: None, ..VIDEOS }];
/// Wait after exhausted credits, which can be bought at any time, or a cap, which resets daily or monthly.
const CREDITS_BACKOFF: Duration = Duration::from_secs(3600);
const USAGE_CAP_BACKOFF: Duration = Duration::from_secs(6 * 3600);

const FIELDS: &str =
    "attachments,conversation_id,created_at,entities,note_tweet,public_metrics,referenced_tweets";

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "x",
    name: "X",
    limits: Limits {
        text: TEXT,
        media: &[IMAGES, GIFS, VIDEOS],
        alt_text: Some(AltTextLimit { max: 1000, kinds: &[MediaKind::Image, MediaKind::Gif] }),
        replies: Replies::Thread,
        reply_settings: &["made_with_ai", "paid_partnership", "sensitive_media_warning"],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(600) },
        // X's reads are eventually consistent, within no documented time.
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(30) },
        numbers: &[Number { of: "cashtags", max: None, usual: Some(MAX_CASHTAGS) }],
        sources: &[Source { url: "https://docs.x.com/x-api", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://x.com/i/oauth2/authorize",
        token: "https://api.x.com/2/oauth2/token",
        scopes: &["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"],
        // Without `offline.access` a grant ends after two hours.
        features: &[(
            Feature::Publishing,
            &[&["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"]],
        )],
        pkce: true,
        idle_renewal: IDLE_RENEWAL,
        revoke: Some("https://api.x.com/2/oauth2/revoke"),
        // X rejects an invalid refresh token with `invalid_request` instead of the standard's code.
        revoked_errors: &["invalid_request", "invalid_grant"],
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &X,
    analytics: Some(&X),
    history: Some(&X),
    deletion: Some(&X),
    editing: Err(
        "X replaces an edited post by a new one with another id, for an hour and for subscribers only",
    ),
    options: None,
    // 100 posts in 15 minutes per user.
    caps: &[Cap {
        name: "posts",
        limit: 100,
        window: Window::Rolling(Duration::from_mins(15)),
        counts: Counted::All,
    }],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Who can reply.
    reply_settings: Option<ReplySettings>,
    /// The post to quote.
    #[schemars(regex(pattern = "^[0-9]{1,19}$"), extend("excludes" = ["media", "poll"]))]
    quote_tweet_id: Option<String>,
    /// The community to post to.
    #[schemars(regex(pattern = "^[0-9]{1,19}$"), extend("isPromise" = true))]
    community_id: Option<String>,
    /// Also shows a community post to the author's followers.
    #[schemars(extend("with" = "community_id"))]
    share_with_followers: Option<bool>,
    /// Labels the media as made with AI.
    made_with_ai: Option<bool>,
    /// Labels the post as a paid partnership.
    paid_partnership: Option<bool>,
    /// Content of the media. X covers them with a warning, in each post of a thread.
    #[schemars(length(max = 3), extend("kinds" = ["image", "images", "gif", "video"]))]
    sensitive_media_warning: Option<Vec<SensitiveContent>>,
    /// People to tag in the first post's media: usernames, or ids. A username of digits only begins with @. X leaves out
    /// who does not let others tag them.
    #[schemars(
        length(max = tags::MAX_PEOPLE),
        inner(regex(pattern = "^(@?[A-Za-z0-9_]{1,15}|[0-9]{1,19})$")),
        extend("kinds" = ["image", "images", "gif", "video"])
    )]
    tagged_users: Option<Vec<String>>,
    /// Captions of the first post's video, one file for each language.
    #[schemars(length(max = captions::MAX_TRACKS), extend("kinds" = ["video"]))]
    captions: Option<Vec<captions::Caption>>,
    #[schemars(extend("excludes" = ["media"]))]
    poll: Option<Poll>,
}

impl Settings {
    fn warning(&self) -> &[SensitiveContent] {
        self.sensitive_media_warning.as_deref().unwrap_or_default()
    }
}

#[derive(PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum ReplySettings {
    Everyone,
    Following,
    MentionedUsers,
    Subscribers,
    Verified,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SensitiveContent {
    AdultContent,
    GraphicViolence,
    Other,
}

impl SensitiveContent {
    /// Returns the API's word.
    fn name(self) -> &'static str {
        match self {
            Self::AdultContent => "adult_content",
            Self::GraphicViolence => "graphic_violence",
            Self::Other => "other",
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Poll {
    #[schemars(length(min = 2, max = 4), inner(length(min = 1, max = 25)))]
    options: Vec<String>,
    #[schemars(range(min = 5, max = 10080))]
    duration_minutes: u32,
}

/// Warns of more cashtags than X takes in a post of an app without a contract. Only X knows which contract an app has.
fn cashtag_issues(containers: &[ContainerContent<'_>]) -> Vec<Issue> {
    let issue = |(index, container): (usize, &ContainerContent<'_>)| {
        let count = text::cashtags(container.text);
        (count > MAX_CASHTAGS).then(|| Issue {
            severity: Severity::Warning,
            code: "cashtags_too_many".to_owned(),
            message: format!(
                "x takes {MAX_CASHTAGS} cashtag in a post of an app without an enterprise contract, and there are {count}"
            ),
            path: vec![json!("containers"), json!(index), json!("content")],
        })
    };
    containers.iter().enumerate().filter_map(issue).collect()
}

#[async_trait]
impl Publisher for X {
    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let captions = schema::read(settings).map(|settings| captions::issues(&settings)).unwrap_or_default();
        [cashtag_issues(containers), captions].concat()
    }

    fn validate_replies(&self, containers: &[ContainerContent<'_>], _settings: &Value) -> Vec<Issue> {
        cashtag_issues(containers)
    }

    fn text_limit(&self, account_type: &str) -> Option<&'static TextLimit> {
        match account_type {
            STANDARD => None,
            PREMIUM => Some(&PREMIUM_TEXT),
            _ => Some(&UNKNOWN_TEXT),
        }
    }

    fn media_limits(
        &self,
        account_type: &str,
        _position: usize,
        _settings: &Value,
    ) -> Option<&'static [MediaLimit]> {
        (account_type == PREMIUM).then_some(PREMIUM_MEDIA)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        let errors = reply.body["errors"].as_array();
        let first = errors.and_then(|all| all.first());
        if reply.status.is_success() {
            // A response with errors only is a failure, with any status.
            let says_more = ["data", "meta", "includes"].iter().any(|key| !reply.body[*key].is_null());
            let error = first.filter(|_| !says_more)?;
            let status = error["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            let kind = error["type"].as_str().unwrap_or_default();
            let status = status.unwrap_or(match kind.rsplit('/').next().unwrap_or_default() {
                "resource-not-found" => 404,
                "not-authorized-for-resource" | "not-authorized-for-field" => 403,
                _ => 400,
            });
            return Some(Failure::rejected(status, error_message(reply)));
        }
        let says = |word: &str| reply.text.contains(word);
        let code = first.and_then(|error| error["code"].as_u64());
        let message = error_message(reply);
        match reply.status.as_u16() {
            401 | 403 if is_of_app(reply) => Some(Failure::app_refused(message, Some(CREDITS_BACKOFF))),
            401 => Some(Failure::token_expired(message)),
            // Of the app, whose owner can buy credits, raise the limit of what it may spend, or enrol it, at any time.
            402 => Some(Failure::app_refused(message, Some(CREDITS_BACKOFF))),
            403 | 429 if says("usage-capped") => {
                Some(Failure::app_refused(message, exhausted(reply).or(Some(USAGE_CAP_BACKOFF))))
            }
            429 => Some(Failure::rate_limited(
                message,
                exhausted(reply)
                    .or_else(|| classify::until_epoch(reply, "x-rate-limit-reset"))
                    .or_else(|| classify::retry_after(reply)),
            )),
            // The original may come from an earlier call of ours with a lost response.
            403 if says("duplicate content") || code == Some(187) => {
                Some(Failure::rejected(403, message).ambiguous())
            }
            403 if code == Some(89) => Some(Failure::token_expired(message)),
            // Not permitted, locked, suspended, or without a required scope or enrolment: a new
            // token does not help.
            403 => Some(Failure::rejected(403, message)),
            // By the status, which says less than the body.
            408 | 425 => None,
            status @ 400..=499 => Some(Failure::rejected(status, message)),
            _ => None,
        }
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        schema::read::<Settings>(&subject.settings).is_ok_and(|settings| {
            settings.quote_tweet_id.is_some() || !tags::of(&settings, subject.media.as_deref()).is_empty()
        })
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        if let Some(quoted) = &settings.quote_tweet_id {
            let answer = cx.get(format!("{API}/tweets")).query(&[("ids", quoted)]).send::<Seen>().await;
            if look_up::found(answer)?.is_none_or(|seen| seen.data.is_empty()) {
                let message = format!("has no post {quoted} to quote");
                found.error(look_up::NOT_FOUND, "quote_tweet_id", &message);
            }
        }
        let people = tags::of(&settings, subject.media.as_deref());
        let users = tags::resolve(cx, people).await?;
        if let Some(name) = tags::missing(people, &users) {
            found.error(look_up::NOT_FOUND, "tagged_users", &tags::not_found(name));
        }
        Ok(())
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let me: Data<User> = cx
            .get(format!("{API}/users/me"))
            .query(&[("user.fields", "id,username,name,profile_image_url,subscription_type")])
            .send()
            .await?;
        let me = me.data;
        Ok(vec![Identity {
            profile: AccountProfile {
                profile_url: Some(format!("https://x.com/{}", me.username)),
                // Without its suffix, the URL of the small picture is that of the large one.
                profile_image_url: me.profile_image_url.map(|url| url.replacen("_normal.", ".", 1)),
                network_unique_id: me.id,
                username: me.username,
                display_name: me.name,
                account_type: match me.subscription_type.as_deref() {
                    Some("Basic" | "Premium" | "PremiumPlus") => PREMIUM,
                    Some("None") => STANDARD,
                    _ => UNKNOWN,
                }
                .to_owned(),
            },
            grant: None,
        }])
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        let settings: Settings = post.settings()?;
        step.fit(&settings);
        let people = tags::of(&settings, Some(&post.media));
        if post.reply_to.is_none() && people.iter().any(|person| tags::id(person, &step.users).is_none()) {
            step.users = tags::resolve(cx, people).await?;
            if let Some(name) = tags::missing(people, &step.users) {
                return Err(Failure::rejected(404, format!("X {}", tags::not_found(name))));
            }
            cx.save(&step).await?;
        }
        let uploads = Uploads { warning: settings.warning() };
        let pause = upload::advance(&uploads, cx, &post.media, &mut step, Step::uploads).await?;
        if pause.is_none() && post.reply_to.is_none() {
            captions::upload(cx, &settings, &post.media, &mut step).await?;
        }
        Ok(upload::prepared(&step, pause))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let body = body(post, &post.settings()?, &at.read()?);
        let created: Data<Tweeted> = cx.post(format!("{API}/tweets")).json(&body).send().await?;
        Ok(Committed::Live(created.data.id))
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, _at: &Checkpoint) -> Result<Located> {
        listing::locate(&Posts(cx), post).await
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        Ok(address(cx, id))
    }
}

#[async_trait]
impl Analytics for X {
    /// X charges for each post that is read.
    fn collection(&self) -> Collection {
        Collection::OnRequest
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let ask = |fields: &'static str| {
            let call = cx.get(format!("{API}/tweets")).query(&[
                ("ids", id),
                (POST_FIELDS, fields),
                ("expansions", "attachments.media_keys"),
                ("media.fields", "public_metrics"),
            ]);
            reading(call).send::<Lookup>()
        };
        // Private metrics end after 30 days; a request for them may then fail as a whole.
        let answer = match ask("public_metrics,non_public_metrics").await {
            Err(failure) if failure.code.is_permanent() => ask("public_metrics").await?,
            answer => answer?,
        };
        let Some(tweet) = answer.data.first() else {
            return Err(Failure::rejected(404, format!("post {id} is not there")));
        };
        Ok(tweet.metrics(&answer.includes))
    }
}

#[async_trait]
impl History for X {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let timeline = timeline(cx, &[("exclude", "replies,retweets")], cursor).await?;
        let posts = timeline.data.iter().map(|tweet| RemotePost {
            id: tweet.id.clone(),
            url: address(cx, &tweet.id),
            text: tweet.original_text(),
            media: tweet.attached(&timeline.includes).filter_map(Medium::address).collect(),
            published_at: tweet.created_at.unwrap_or_default(),
            metrics: tweet.metrics(&timeline.includes),
        });
        Ok(Page { items: posts.collect(), next: timeline.meta.next_token })
    }
}

#[async_trait]
impl Deletion for X {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        cx.delete(format!("{API}/tweets/{id}")).delete_ok().await
    }
}

/// Returns the body of the publishing call, without null and empty members, which X rejects.
fn body(post: &PublishRequest, settings: &Settings, step: &Step) -> Value {
    let mut body = Map::new();
    let mut keep = |key: &str, value: Option<Value>| body.extend(value.map(|value| (key.to_owned(), value)));
    let is_on = |setting: Option<bool>| setting.filter(|is_on| *is_on).map(Value::Bool);
    keep("text", Some(post.text.as_str()).filter(|text| !text.is_empty()).map(Value::from));
    let ids: Vec<_> = step.uploads.iter().map(|upload| &upload.ticket).collect();
    let mut media = json!({ "media_ids": ids });
    let tagged = tags::ids(tags::of(settings, Some(&post.media)), &step.users);
    if !tagged.is_empty() && post.reply_to.is_none() {
        media["tagged_user_ids"] = json!(tagged);
    }
    keep("media", (!ids.is_empty()).then_some(media));
    // Disclosures apply to every post of a thread, other settings to its first post.
    keep("made_with_ai", is_on(settings.made_with_ai));
    keep("paid_partnership", is_on(settings.paid_partnership));
    if let Some(reply) = &post.reply_to {
        keep("reply", Some(json!({ "in_reply_to_tweet_id": reply.parent })));
    } else {
        let reply_settings = settings.reply_settings.as_ref().filter(|who| **who != ReplySettings::Everyone);
        keep("reply_settings", reply_settings.map(|who| json!(who)));
        keep("share_with_followers", is_on(settings.share_with_followers));
        keep("quote_tweet_id", settings.quote_tweet_id.as_ref().map(|id| json!(id)));
        keep("community_id", settings.community_id.as_ref().map(|id| json!(id)));
        keep("poll", settings.poll.as_ref().map(|poll| json!(poll)));
    }
    Value::Object(body)
}

/// The upload of a post's media.
struct Uploads<'a> {
    /// Content of the media that X warns of.
    warning: &'a [SensitiveContent],
}

#[async_trait]
impl Upload for Uploads<'_> {
    /// The medium's id.
    type Ticket = String;
    const EXPIRY_MARGIN: TimeDelta = TimeDelta::minutes(10);
    const IS_DESCRIBED: bool = true;

    /// Uploads an image in one call, or begins the upload of a GIF or video in parts.
    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<String>> {
        let category = match media.kind {
            MediaKind::Image => "tweet_image",
            MediaKind::Gif => "tweet_gif",
            MediaKind::Video => "tweet_video",
            MediaKind::Document | MediaKind::Audio => {
                return Err(Failure::rejected(415, format!("X takes no media of kind {}", media.kind)));
            }
        };
        let is_whole = media.kind == MediaKind::Image && media.size_bytes <= CHUNK_BYTES;
        let (created, sent): (Data<Created>, _) = if is_whole {
            let body = Body::wrap_stream(cx.stream(media));
            let part = Part::stream_with_length(body, media.size_bytes).file_name(media.filename.clone());
            let form = Form::new()
                .text("media_category", category)
                .part("media", storage::typed(part, &media.mime)?);
            let created: Data<Created> =
                cx.post(format!("{API}/media/upload")).multipart(form).send().await?;
            let is_processed = created.data.processing_info.is_none();
            let state = if is_processed { Processing::Done } else { Processing::Unchecked };
            (created, Sent::Whole(state))
        } else {
            let request = json!({
                "media_type": media.mime,
                "total_bytes": media.size_bytes,
                "media_category": category,
            });
            let call = cx.post(format!("{API}/media/upload/initialize")).json(&request);
            (call.send().await?, Sent::Next(0))
        };
        let Created { id, expires_after_secs, .. } = created.data;
        let ttl = expires_after_secs.and_then(TimeDelta::try_seconds).unwrap_or(TimeDelta::days(1));
        Ok(Begun { ticket: id, expires_at: Some((cx.now)() + ttl), sent })
    }

    async fn send(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<String>,
        segment: u64,
    ) -> Result<Sent> {
        let start = segment * CHUNK_BYTES;
        let end = (start + CHUNK_BYTES).min(media.size_bytes);
        let part = Part::stream(cx.read(media, start..end).await?).file_name(media.filename.clone());
        let form = Form::new()
            .text("segment_index", segment.to_string())
            .part("media", storage::typed(part, "application/octet-stream")?);
        let id = &upload.ticket;
        cx.post(format!("{API}/media/upload/{id}/append")).multipart(form).send_ok().await?;
        Ok(if end < media.size_bytes { Sent::Next(segment + 1) } else { Sent::All })
    }

    /// Finishes the upload. If an earlier attempt finished it already, its state is returned.
    async fn finish(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<String>,
    ) -> Result<Processing> {
        let address = format!("{API}/media/upload/{}/finalize", upload.ticket);
        let finished: Result<Data<Created>> = cx.post(address).send().await;
        match finished {
            Ok(finished) => Ok(finished.data.state()),
            Err(failure) if failure.code.is_permanent() => {
                self.status(cx, media, upload).await.map_err(|_| failure)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn status(
        &self,
        cx: &Session<'_>,
        _media: &Media,
        upload: &mut Uploaded<String>,
    ) -> Result<Processing> {
        let query = [("command", "STATUS"), ("media_id", &upload.ticket)];
        let now: Data<Created> = cx.get(format!("{API}/media/upload")).query(&query).send().await?;
        Ok(now.data.state())
    }

    /// Sends the alt text, and the warning that X shows before the medium.
    async fn describe(&self, cx: &Session<'_>, media: &Media, id: &String) -> Result<()> {
        let alt = media.alt_text.as_deref().filter(|alt| !alt.is_empty());
        let alt = alt.filter(|_| ADAPTER.limits.supports_alt_text(media.kind));
        let alt = alt.map(|alt| ("alt_text", json!({ "text": alt })));
        let flags: Map<_, _> =
            self.warning.iter().map(|content| (content.name().to_owned(), json!(true))).collect();
        let warning = (!flags.is_empty()).then_some(("sensitive_media_warning", Value::Object(flags)));
        match annotate(cx, id, alt.iter().chain(&warning)).await {
            // A post without its description is better than none; one without its warning is not.
            Err(failure) if alt.is_some() && failure.code.is_permanent() => {
                tracing::warn!(media.id = %media.id, %failure, "X refused the alt text of a medium");
                annotate(cx, id, &warning).await
            }
            described => described,
        }
    }
}

/// Sets metadata of a medium, if there are any.
///
/// <https://docs.x.com/x-api/media/create-media-metadata>
async fn annotate(
    cx: &Session<'_>,
    id: &str,
    metadata: impl IntoIterator<Item = &(&'static str, Value)>,
) -> Result<()> {
    let metadata: Map<_, _> =
        metadata.into_iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if metadata.is_empty() {
        return Ok(());
    }
    let request = json!({ "id": id, "metadata": metadata });
    cx.post(format!("{API}/media/metadata")).json(&request).send_ok().await
}

/// The author's own posts.
struct Posts<'a>(&'a Session<'a>);

#[async_trait]
impl Listing for Posts<'_> {
    type Item = Tweet;

    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Tweet>> {
        let since = since.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let timeline = timeline(self.0, &[("start_time", since.as_str())], cursor).await?;
        Ok(Page { items: timeline.data, next: timeline.meta.next_token })
    }

    fn id(tweet: &Tweet) -> &str {
        &tweet.id
    }

    fn published_at(tweet: &Tweet) -> Option<DateTime<Utc>> {
        tweet.created_at
    }

    fn matches(&self, tweet: &Tweet, post: &PublishRequest) -> bool {
        tweet.matches(post)
    }
}

/// Query parameter with the members of posts to read. X's OpenAPI document 2.167 (2026-08) has [`RENAMED_FIELDS`] only, and
/// its servers took both in September 2026.
const POST_FIELDS: &str = "tweet.fields";
const RENAMED_FIELDS: &str = "post.fields";

/// Repeats a read with the other name of the parameter when X knows it by that only.
fn reading(call: Call) -> Call {
    call.in_forms(Forms {
        key: POST_FIELDS,
        names: [POST_FIELDS, RENAMED_FIELDS].map(str::to_owned).to_vec(),
        apply: |request, name| {
            let renamed = |(other, value): (Cow<'_, str>, Cow<'_, str>)| {
                let name = if other == POST_FIELDS { name.to_owned() } else { other.into_owned() };
                (name, value.into_owned())
            };
            let query: Vec<_> = request.url().query_pairs().map(renamed).collect();
            request.url_mut().query_pairs_mut().clear().extend_pairs(query);
        },
        // The name is refused, and not a value.
        is_unknown: |reply| {
            let named = [format!("[{POST_FIELDS}]"), format!("[{RENAMED_FIELDS}]")];
            reply.status == 400 && named.iter().any(|name| error_message(reply).contains(name))
        },
    })
}

/// Returns one page of the author's own posts, newest first.
async fn timeline(cx: &Session<'_>, query: &[(&str, &str)], page: Option<&str>) -> Result<Timeline> {
    let call = cx
        .get(format!("{API}/users/{}/tweets", cx.account.network_unique_id))
        .query(&[
            ("max_results", "100"),
            (POST_FIELDS, FIELDS),
            ("expansions", "attachments.media_keys"),
            ("media.fields", "public_metrics,url,preview_image_url"),
        ])
        .query(query);
    let call = reading(call);
    match page {
        Some(page) => call.query(&[("pagination_token", page)]).send().await,
        None => call.send().await,
    }
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.transport.rewrite_url(&match cx.account.username.as_str() {
        "" => format!("https://x.com/i/web/status/{id}"),
        name => format!("https://x.com/{name}/status/{id}"),
    })
}

/// Returns X's error message: the detail, and validation errors.
fn error_message(reply: &Reply) -> String {
    let mut message = classify::message(reply);
    for error in reply.body["errors"].as_array().into_iter().flatten() {
        let Some(more) = error["message"].as_str().filter(|more| !message.contains(*more)) else { continue };
        let names: Vec<_> =
            error["parameters"].as_object().into_iter().flatten().map(|(name, _)| &name[..]).collect();
        message = format!("{message} {more}");
        if !names.is_empty() {
            message = format!("{message} ({})", names.join(", "));
        }
    }
    text::clip(&message, domain::failure::MAX_MESSAGE_CHARS)
}

/// Code of an app that is suspended or unknown. <https://developer.x.com/en/support/x-api/error-troubleshooting>
const SUSPENDED: u64 = 416;
/// Code of an endpoint that the app's access level does not have, as seen:
/// <https://github.com/socioboard/Socioboard-5.0/issues/440>.
const NO_ACCESS: u64 = 453;

/// True for a refusal that concerns the contract of the app's owner with X: what the app may spend is spent, which live
/// logs of 2026 have in two forms, both with 403, or the app is in no project, suspended, or without access to the call.
fn is_of_app(reply: &Reply) -> bool {
    let kind = reply.body["type"].as_str().and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
    let code = reply.body.pointer("/errors/0/code").and_then(Value::as_u64);
    ["spend-cap-reached", "credits-depleted", "credits"].contains(&kind)
        || matches!(code, Some(SUSPENDED | NO_ACCESS))
        || reply.body["title"] == "SpendCapReached"
        // A missing scope has this reason, too, but nothing to enrol in.
        || reply.body["reason"] == "client-not-enrolled" && reply.body["required_enrollment"].is_string()
}

/// Returns the time until every exhausted window is reset.
fn exhausted(reply: &Reply) -> Option<Duration> {
    ["x-rate-limit", "x-app-limit-24hour", "x-user-limit-24hour"]
        .iter()
        .filter(|window| reply.header(&format!("{window}-remaining")) == Some("0"))
        .filter_map(|window| classify::until_epoch(reply, &format!("{window}-reset")))
        .max()
}

/// Returns the canonical form in which X compares texts: without the scheme of links, the case of hosts, white
/// space and Unicode form.
fn canonical_text(text: &str) -> String {
    let text: String = text.nfc().collect();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    for link in text::links(&text) {
        plain.push_str(&text[at..link.range.start]);
        let address = &text[link.range.clone()];
        let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
        let host = bare.find(['/', '?']).unwrap_or(bare.len());
        plain.push_str(&bare[..host].to_lowercase());
        plain.push_str(bare[host..].trim_end_matches('/'));
        at = link.range.end;
    }
    plain.push_str(&text[at..]);
    text::collapse_whitespace(&plain)
}

/// Returns a text without the mentions that X puts before a reply.
fn strip_mentions(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some(rest) = text.strip_prefix('@') {
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        text = rest[end..].trim_start();
    }
    text
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Step {
    uploads: Vec<Uploaded<String>>,
    /// The warning of the uploaded media.
    warning: Vec<SensitiveContent>,
    /// Ids of people by their usernames.
    users: BTreeMap<String, String>,
    /// The tracks of the uploaded video, in order.
    captioned: Vec<captions::Captioned>,
}

impl Step {
    fn uploads(&mut self) -> &mut Vec<Uploaded<String>> {
        &mut self.uploads
    }

    /// Drops uploads that were described for other settings, which the author may change between two attempts.
    fn fit(&mut self, settings: &Settings) {
        if self.warning != settings.warning() || !captions::are_asked_for(settings, &self.captioned) {
            self.uploads.clear();
        }
        if self.uploads.is_empty() {
            self.captioned.clear();
        }
        self.warning = settings.warning().to_vec();
    }
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

/// The posts with some ids that the account may see.
#[derive(Deserialize)]
struct Seen {
    #[serde(default)]
    data: Vec<Tweeted>,
}

#[derive(Deserialize)]
struct Tweeted {
    #[serde(deserialize_with = "required::id")]
    id: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(deserialize_with = "required::id")]
    id: String,
    username: String,
    name: String,
    profile_image_url: Option<String>,
    subscription_type: Option<String>,
}

/// A created medium, or its state.
#[derive(Deserialize)]
struct Created {
    #[serde(deserialize_with = "required::id")]
    id: String,
    expires_after_secs: Option<i64>,
    processing_info: Option<ProcessingInfo>,
}

#[derive(Deserialize)]
struct ProcessingInfo {
    state: String,
    check_after_secs: Option<u64>,
    error: Option<Fault>,
}

#[derive(Default, Deserialize)]
struct Fault {
    #[serde(default)]
    name: String,
    #[serde(default)]
    message: String,
}

impl Created {
    fn state(self) -> Processing {
        self.processing_info.map_or(Processing::Done, ProcessingInfo::state)
    }
}

impl ProcessingInfo {
    fn state(self) -> Processing {
        match self.state.as_str() {
            "succeeded" => Processing::Done,
            "failed" => {
                let fault = self.error.unwrap_or_default();
                let message = format!("X could not process the media: {} {}", fault.name, fault.message);
                // Only an internal error is transient.
                Processing::Failed(match fault.name.as_str() {
                    "InternalError" => Failure::upstream(500, message).certain(),
                    _ => Failure::rejected(400, message.trim_end()),
                })
            }
            _ => Processing::Busy(self.check_after_secs.map_or(POLL_INTERVAL, |wait| {
                Duration::from_secs(wait).min(domain::failure::MAX_RETRY_AFTER)
            })),
        }
    }
}

/// The posts with some ids.
#[derive(Deserialize)]
struct Lookup {
    #[serde(default)]
    data: Vec<Tweet>,
    #[serde(default)]
    includes: Includes,
}

/// A page of a timeline. An empty one has no `data`.
#[derive(Deserialize)]
struct Timeline {
    #[serde(default)]
    data: Vec<Tweet>,
    #[serde(default)]
    includes: Includes,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    next_token: Option<String>,
}

#[derive(Default, Deserialize)]
struct Includes {
    #[serde(default)]
    media: Vec<Medium>,
}

#[derive(Deserialize)]
struct Medium {
    media_key: String,
    url: Option<String>,
    preview_image_url: Option<String>,
    #[serde(default)]
    public_metrics: Counts,
}

impl Medium {
    fn address(&self) -> Option<String> {
        self.url.clone().or_else(|| self.preview_image_url.clone())
    }
}

#[derive(Deserialize)]
struct Tweet {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    text: String,
    created_at: Option<DateTime<Utc>>,
    conversation_id: Option<String>,
    #[serde(default)]
    entities: Entities,
    /// X is renaming these members, and may send both names at once.
    note_tweet: Option<Note>,
    note_post: Option<Note>,
    #[serde(default)]
    referenced_tweets: Vec<Referenced>,
    #[serde(default)]
    referenced_posts: Vec<Referenced>,
    #[serde(default)]
    attachments: Attachments,
    #[serde(default)]
    public_metrics: Counts,
    #[serde(default)]
    non_public_metrics: Counts,
}

#[derive(Deserialize)]
struct Note {
    text: String,
    #[serde(default)]
    entities: Entities,
}

#[derive(Default, Deserialize)]
struct Entities {
    #[serde(default)]
    urls: Vec<Short>,
}

#[derive(Deserialize)]
struct Short {
    url: String,
    expanded_url: Option<String>,
    media_key: Option<String>,
}

#[derive(Deserialize)]
struct Referenced {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

#[derive(Default, Deserialize)]
struct Attachments {
    #[serde(default)]
    media_keys: Vec<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Counts {
    impression_count: u64,
    like_count: u64,
    reply_count: u64,
    retweet_count: u64,
    repost_count: u64,
    quote_count: u64,
    bookmark_count: u64,
    url_link_clicks: u64,
    view_count: u64,
}

impl Tweet {
    fn referenced(&self) -> impl Iterator<Item = &Referenced> {
        self.referenced_tweets.iter().chain(&self.referenced_posts)
    }

    /// Returns the text as its author wrote it: with short links expanded and escapes decoded, without the
    /// links that X adds for media and quotes.
    fn original_text(&self) -> String {
        let (text, entities) = match self.note_tweet.as_ref().or(self.note_post.as_ref()) {
            Some(note) => (&note.text, &note.entities),
            None => (&self.text, &self.entities),
        };
        let quoted = self.referenced().find(|other| other.kind == "quoted");
        let mut text = text.clone();
        // Short links don't contain each other, but those of media may be listed without a note's.
        for short in entities.urls.iter().chain(&self.entities.urls) {
            let long = short.expanded_url.as_deref().unwrap_or(&short.url);
            let is_added = short.media_key.is_some()
                || long.contains("/photo/")
                || long.contains("/video/")
                || quoted.is_some_and(|quoted| long.ends_with(&format!("/status/{}", quoted.id)));
            text = if is_added && text.ends_with(&short.url) {
                text[..text.len() - short.url.len()].trim_end().to_owned()
            } else {
                text.replace(&short.url, long)
            };
        }
        // In this order, so that an unescaped ampersand does not create another escape.
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    /// Returns true if it has the content of `post`.
    fn matches(&self, post: &PublishRequest) -> bool {
        let parent = self.referenced().find(|other| other.kind == "replied_to");
        let parent_matches = match (&post.reply_to, parent) {
            (Some(reply), Some(parent)) => parent.id == reply.parent,
            // The list omits the parent, so the conversation must be the same.
            (Some(reply), None) => {
                self.id != reply.root && self.conversation_id.as_ref() == Some(&reply.root)
            }
            (None, parent) => parent.is_none(),
        };
        let text = self.original_text();
        let text_matches = if post.reply_to.is_some() {
            canonical_text(strip_mentions(&text)) == canonical_text(strip_mentions(&post.text))
        } else {
            canonical_text(&text) == canonical_text(&post.text)
        };
        parent_matches && text_matches && self.attachments.media_keys.len() == post.media.len()
    }

    fn attached<'a>(&'a self, includes: &'a Includes) -> impl Iterator<Item = &'a Medium> {
        includes.media.iter().filter(|medium| self.attachments.media_keys.contains(&medium.media_key))
    }

    fn metrics(&self, includes: &Includes) -> Metrics {
        let (public, own) = (self.public_metrics, self.non_public_metrics);
        Metrics {
            impressions: public.impression_count.max(own.impression_count),
            reach: 0,
            likes: public.like_count,
            comments: public.reply_count,
            shares: public.retweet_count.max(public.repost_count) + public.quote_count,
            saves: public.bookmark_count,
            clicks: own.url_link_clicks,
            video_views: self.attached(includes).map(|medium| medium.public_metrics.view_count).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyTo;
    use domain::ErrorCode;

    fn failure(reply: Reply) -> Failure {
        reply.into_result(&ADAPTER).unwrap_err()
    }

    #[test]
    fn each_documented_error_has_its_error_code() {
        for (status, body, code, doubt) in [
            (401, r#"{"title":"Unauthorized","status":401,"detail":"Unauthorized"}"#, "token_expired", false),
            (
                401,
                r#"{"errors":[{"code":89,"message":"Invalid or expired token."}]}"#,
                "token_expired",
                false,
            ),
            (
                401,
                r#"{"errors":[{"code":416,"message":"Invalid / suspended application"}]}"#,
                "app_refused",
                false,
            ),
            (
                403,
                r#"{"errors":[{"code":453,"message":"You currently have access to a subset of X API V2 endpoints"}]}"#,
                "app_refused",
                false,
            ),
            (402, r#"{"title":"CreditsDepleted","detail":"no credits"}"#, "app_refused", false),
            (
                403,
                r#"{"title":"Forbidden","detail":"Your monthly spend cap has been reached.","type":"https://api.x.com/2/problems/spend-cap-reached"}"#,
                "app_refused",
                false,
            ),
            (
                403,
                r#"{"title":"SpendCapReached","detail":"API requests will be blocked until the next cycle begins.","reset_date":"2026-05-12"}"#,
                "app_refused",
                false,
            ),
            (
                403,
                r#"{"title":"Client Forbidden","required_enrollment":"Standard Basic","reason":"client-not-enrolled","type":"https://api.x.com/2/problems/client-forbidden"}"#,
                "app_refused",
                false,
            ),
            (
                403,
                r#"{"detail":"You are not allowed to create a Tweet with duplicate content.","status":403}"#,
                "rejected_403",
                true,
            ),
            (403, r#"{"errors":[{"code":187,"message":"Status is a duplicate."}]}"#, "rejected_403", true),
            (403, r#"{"detail":"You are not permitted to perform this action."}"#, "rejected_403", false),
            (403, r#"{"detail":"user-suspended"}"#, "rejected_403", false),
            (403, r#"{"type":"https://api.x.com/2/problems/client-forbidden"}"#, "rejected_403", false),
            (
                403,
                r#"{"type":"https://api.x.com/2/problems/usage-capped","period":"Monthly"}"#,
                "app_refused",
                false,
            ),
            (400, r#"{"type":"https://api.x.com/2/problems/invalid-request"}"#, "rejected_400", false),
            (429, r#"{"title":"Too Many Requests","status":429}"#, "rate_limited", false),
            (500, "", "upstream_500", true),
            (503, "<html>over capacity</html>", "upstream_503", true),
            (
                200,
                r#"{"errors":[{"type":"https://api.x.com/2/problems/resource-not-found","title":"Not Found"}]}"#,
                "rejected_404",
                false,
            ),
        ] {
            let failure = failure(Reply::of(status, &[], body));
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {body}"
            );
            assert!(!failure.is_revoked());
        }
        assert!(
            Reply::of(200, &[], r#"{"data":{},"errors":[{"title":"partial"}]}"#)
                .into_result(&ADAPTER)
                .is_ok()
        );
        assert!(Reply::of(200, &[], r#"{"meta":{"result_count":0}}"#).into_result(&ADAPTER).is_ok());
    }

    #[test]
    fn a_rate_limit_returns_the_wait_until_its_reset() {
        let window = [("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "1800000090")];
        assert_eq!(failure(Reply::of(429, &window, "")).retry_after, Some(Duration::from_secs(90)));
        let day = [
            ("x-rate-limit-remaining", "12"),
            ("x-rate-limit-reset", "1800000090"),
            ("x-user-limit-24hour-remaining", "0"),
            ("x-user-limit-24hour-reset", "1800050000"),
        ];
        assert_eq!(failure(Reply::of(429, &day, "")).retry_after, Some(Duration::from_secs(50_000)));
        let bare = [("x-rate-limit-reset", "1800000007")];
        assert_eq!(failure(Reply::of(429, &bare, "")).retry_after, Some(Duration::from_secs(7)));
        let capped = failure(Reply::of(429, &[], r#"{"type":"https://api.x.com/2/problems/usage-capped"}"#));
        assert_eq!((capped.code, capped.retry_after), (ErrorCode::AppRefused, Some(USAGE_CAP_BACKOFF)));
    }

    #[test]
    fn a_post_is_recognized_with_shortened_links_and_escaped_text() {
        let tweet: Tweet = serde_json::from_value(json!({
            "id": "2",
            "text": "a &lt;b&gt; &amp;amp; https://t.co/1 and https://t.co/2 https://t.co/3",
            "entities": { "urls": [
                { "url": "https://t.co/1", "expanded_url": "http://Example.com" },
                { "url": "https://t.co/2", "expanded_url": "https://example.org/A?b=c" },
                { "url": "https://t.co/3", "expanded_url": "https://x.com/u/status/2/photo/1", "media_key": "3_1" },
            ] },
            "attachments": { "media_keys": ["3_1"] },
        }))
        .unwrap();
        assert_eq!(
            canonical_text(&tweet.original_text()),
            canonical_text("a <b> &amp; example.com/ and https://example.org/A?b=c")
        );
        assert_eq!(tweet.original_text(), "a <b> &amp; http://Example.com and https://example.org/A?b=c");
    }

    #[test]
    fn renamed_members_are_read_under_either_name_and_under_both() {
        let read = |document: Value| serde_json::from_value::<Tweet>(document).unwrap();
        let quoted = json!([{ "type": "quoted", "id": "7" }]);
        for (note, references, count) in [
            (&["note_tweet"][..], &["referenced_tweets"][..], &["retweet_count"][..]),
            (&["note_post"], &["referenced_posts"], &["repost_count"]),
            (
                &["note_tweet", "note_post"],
                &["referenced_tweets", "referenced_posts"],
                &["retweet_count", "repost_count"],
            ),
        ] {
            let mut document = json!({ "id": "2", "text": "a…", "public_metrics": { "quote_count": 1 } });
            note.iter().for_each(|name| document[*name] = json!({ "text": "all of it" }));
            references.iter().for_each(|name| document[*name] = quoted.clone());
            count.iter().for_each(|name| document["public_metrics"][*name] = json!(4));
            let tweet = read(document);
            assert_eq!(tweet.original_text(), "all of it");
            assert!(tweet.referenced().any(|other| other.id == "7"));
            assert_eq!(tweet.metrics(&Includes::default()).shares, 5);
        }
    }

    #[test]
    fn empty_members_are_omitted() {
        let post = PublishRequest {
            text: "hello".into(),
            settings: json!({
                "reply_settings": "everyone", "made_with_ai": false, "paid_partnership": true,
                "quote_tweet_id": null, "community_id": "7", "other": 1,
                "poll": { "options": ["a", "b"], "duration_minutes": 5, "other": 1 },
            }),
            ..PublishRequest::of_test()
        };
        assert_eq!(
            body(&post, &post.settings().unwrap(), &Step::default()),
            json!({
                "text": "hello", "paid_partnership": true, "community_id": "7",
                "poll": { "options": ["a", "b"], "duration_minutes": 5 },
            })
        );
        let reply = ReplyTo { root: "1".into(), parent: "2".into() };
        let post = PublishRequest { reply_to: Some(reply), ..post };
        assert_eq!(
            body(&post, &post.settings().unwrap(), &Step::default()),
            json!({ "text": "hello", "paid_partnership": true, "reply": { "in_reply_to_tweet_id": "2" } })
        );
    }

    #[test]
    fn the_poll_interval_of_a_medium_is_at_most_a_day() {
        for (said, expected) in
            [(json!(7), 7), (json!(u64::MAX), 86_400), (Value::Null, POLL_INTERVAL.as_secs())]
        {
            let processing = json!({ "state": "pending", "check_after_secs": said });
            let processing: ProcessingInfo = serde_json::from_value(processing).unwrap();
            let Processing::Busy(wait) = processing.state() else {
                panic!("{said}: processing has finished")
            };
            assert_eq!(wait.as_secs(), expected, "{said}");
        }
    }
}
