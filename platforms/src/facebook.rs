//! Facebook Pages, over the Graph API: <https://developers.facebook.com/docs/pages-api>.
//!
//! Photos are uploaded unpublished and videos in parts, so that one last call publishes the feed post, reel
//! or story. After a lost response, a video's status shows the result; a feed post is searched for among the
//! Page's latest posts, preferably by its photo ids. The cover of a video, and the invitations of other Pages to a
//! reel, need its id and follow once it is published. A draft is in no list that is documented, so that a lost one stays
//! undecided. A Page's token does not expire and can't be refreshed.
//! It is not revoked, because that would revoke the person's whole grant, with all their Pages.

mod insights;
mod pages;

use crate::{
    Adapter, AltTextLimit, Analytics, Auth, Call, Cap, Checkpoint, Code, CommentLimits, Committed, Counted,
    Deletion, Edit, Editing, Feature, Grant, History, Idempotency, Identity, Limits, Located, Media,
    MediaKind, MediaLimit, Metrics, Number, OAuth2, Page, Prepared, Preset, PublishRequest, Publisher,
    Publishing, Refresh, RemotePost, Replies, Reply, Result, Session, Source, TextLimit, Window,
    check::{ContainerContent, Issue, Severity},
    graph::{self, Fields, Insights, Listed, Made, MediaType},
    listing::{self, Listing},
    oauth, required, schema, storage,
    text::{self, collapse_whitespace},
    upload::{self, Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use hmac::{Hmac, KeyInit, Mac};
use regex::Regex;
use reqwest::{
    Body,
    multipart::{Form, Part},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use std::{sync::LazyLock, time::Duration};
use url::Url;

/// Facebook. <https://developers.facebook.com/docs/pages-api>
struct Facebook;

const API: &str = concat!("https://graph.facebook.com/", graph::version!());
/// Host of videos that are uploaded in parts.
const VIDEO_API: &str = concat!("https://graph-video.facebook.com/", graph::version!());
const UPLOADS: &str = concat!("https://rupload.facebook.com/video-upload/", graph::version!());
const TOKEN: &str = concat!("https://graph.facebook.com/", graph::version!(), "/oauth/access_token");
const SITE: &str = "https://www.facebook.com";

/// Maximum number of photos. Meta documents none; this number is known to work.
const MAX_PHOTOS: usize = 10;
/// Play time of a reel, and of a story.
const REEL_DURATION: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(90));
const MAX_STORY: Duration = Duration::from_secs(60);
/// Size of one part of a video, if Facebook does not say which bytes are next.
const CHUNK_BYTES: u64 = 4 << 20;
/// Posts per page of a list. Facebook refuses a page with too much data, so it is halved then.
const PAGE_POSTS: u32 = 50;
/// Lifetime of an unpublished upload; Meta keeps it for about a day.
const UPLOAD_TTL: TimeDelta = TimeDelta::hours(20);
/// Maximum length of a text on a colored background. Meta documents none; two products that publish by this API name it.
/// <https://help.leadconnectorhq.com/support/solutions/articles/155000008005-facebook-text-background-posts-reference> (2026-11)
const MAX_BACKGROUND_TEXT: usize = 130;
/// Number of cards that Facebook shows, whatever it takes; with more it has to be told that it may choose.
/// <https://developers.facebook.com/docs/graph-api/reference/page/feed> (v26.0)
const SHOWN_CARDS: usize = 5;
/// Told about a draft, which Facebook shows to nobody.
const IN_DRAFTS: &str =
    "The post is a draft of the Page, and is published when somebody publishes it in Meta Business Suite";
/// Pause before a draft's owner is told.
const DRAFT_PAUSE: Duration = Duration::from_secs(1);
/// Meta's reads are up to two minutes behind.
const READ_LAG: Duration = Duration::from_secs(120);

const FIELDS: &str = "id,message,created_time,permalink_url,shares,full_picture,status_type,\
                      attachments{media_type,type,media,target,subattachments}";

const UNEDITABLE: &str =
    "Facebook lets apps change the text of a post in the feed, not of a video or a story";

const PHOTO: MediaLimit = MediaLimit {
    kind: MediaKind::Image,
    count: 0..=1,
    mimes: &["image/jpeg", "image/png", "image/bmp"],
    max_bytes: 10_000_000,
    ..MediaLimit::ANY
};

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "facebook",
    name: "Facebook",
    limits: Limits {
        text: TextLimit::characters(63_206),
        media: &[
            MediaLimit { count: 0..=MAX_PHOTOS, ..PHOTO },
            MediaLimit {
                kind: MediaKind::Video,
                count: 0..=1,
                mimes: &["video/mp4", "video/quicktime", "video/webm", "video/x-matroska", "video/x-msvideo"],
                max_bytes: 10_000_000_000,
                duration: Some(Duration::from_secs(1)..=Duration::from_secs(240 * 60)),
                ..MediaLimit::ANY
            },
        ],
        // A video with its cover.
        mixed_media: true,
        alt_text: Some(AltTextLimit { max: 1000, kinds: &[MediaKind::Image] }),
        replies: Replies::FirstComment,
        publishing: Publishing::Asynchronous { window: Duration::from_secs(3600) },
        idempotency: Idempotency::MayDuplicate { read_lag: READ_LAG },
        comment: Some(CommentLimits {
            text: TextLimit::characters(8_000),
            media: &[PHOTO],
            has_alt_text: true,
        }),
        numbers: &[Number::max("characters on a background", MAX_BACKGROUND_TEXT)],
        sources: &[Source { url: "https://developers.facebook.com/docs/pages-api", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: concat!("https://www.facebook.com/", graph::version!(), "/dialog/oauth"),
        token: TOKEN,
        // Without `business_management`, a Page of a business portfolio is found only if the person chose it in the
        // dialog (see `pages`).
        scopes: &[
            "business_management",
            "pages_show_list",
            "pages_manage_posts",
            "pages_read_engagement",
            "pages_manage_engagement",
            "pages_read_user_content",
            "read_insights",
        ],
        features: &[
            (Feature::Publishing, &[&["pages_show_list", "pages_manage_posts", "pages_read_engagement"]]),
            // A lost comment is looked up among those of other users.
            (Feature::Replies, &[&["pages_manage_engagement", "pages_read_user_content"]]),
            (Feature::Analytics, &[&["read_insights"]]),
        ],
        presets: &[Preset {
            name: "publishing",
            scopes: &["pages_show_list", "pages_manage_posts", "pages_read_engagement"],
        }],
        // Of Facebook Login for Business.
        configuration: Some("config_id"),
        separator: ",",
        // Without it, the dialog never asks again for what a person has declined once.
        // <https://developers.facebook.com/docs/facebook-login/guides/permissions/request-revoke>
        authorize_parameters: &[("auth_type", "rerequest")],
        refresh: Refresh::Never,
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &Facebook,
    analytics: Some(&Facebook),
    history: Some(&Facebook),
    deletion: Some(&Facebook),
    editing: Ok(&Facebook),
    options: None,
    // <https://developers.facebook.com/docs/video-api/guides/reels-publishing>
    caps: &[Cap {
        name: "reels",
        limit: 30,
        window: Window::Rolling(Duration::from_hours(24)),
        counts: Counted::PostsWith { setting: "media_type", value: "REELS" },
    }],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Where the post is shown. Defaults to the feed.
    media_type: Option<MediaType>,
    /// The link to show as a preview, or behind the last of the cards in child_attachments.
    #[schemars(extend("format" = "uri", "excludes" = ["media"]))]
    link: Option<String>,
    /// Title of a video or a reel.
    #[schemars(length(max = 255), extend("kinds" = ["video", "reel"]))]
    title: Option<String>,
    /// Id of the container's image to use as the cover of its video or reel; the container has this image and one
    /// video.
    #[schemars(length(min = 1))]
    cover: Option<String>,
    /// Ids of the Pages to invite to publish a reel as well. Facebook takes ten invitations a day.
    #[schemars(length(max = 10), inner(regex(pattern = "^[0-9]+$")))]
    collaborators: Option<Vec<String>>,
    /// Id of the Page of the place to tag.
    #[schemars(regex(pattern = "^[0-9]+$"), extend("kinds" = ["text", "photos", "reel"]))]
    place: Option<String>,
    /// Labels the video as made with AI.
    #[schemars(extend("kinds" = ["video", "reel"], "isPromise" = true))]
    is_ai_generated: Option<bool>,
    /// Codes of the only countries in which the post is shown. A story can't be limited.
    #[schemars(length(min = 1, max = 25), inner(regex(pattern = "^[A-Z]{2}$")), extend("kinds" = ["text", "photos", "video", "reel"], "isPromise" = true))]
    countries: Option<Vec<String>>,
    /// Id of the colored background of a text of at most 130 characters, one of those that Facebook's own composer has.
    #[schemars(regex(pattern = "^[0-9]{1,20}$"), extend("kinds" = ["text"], "excludes" = ["media", "link", "child_attachments"]))]
    text_format_preset_id: Option<String>,
    /// Cards with links beside each other. Facebook shows the first five.
    #[schemars(length(min = 2, max = 10), extend("kinds" = ["text"], "excludes" = ["media"], "isPromise" = true))]
    child_attachments: Option<Vec<Card>>,
    /// Keeps a text, a link or photos as a draft of the Page, which somebody finishes and publishes in Meta Business Suite.
    #[schemars(extend("isPromise" = true))]
    draft: Option<bool>,
}

/// A card of a carousel of links.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Card {
    /// Address that the card leads to.
    #[schemars(extend("format" = "uri"))]
    link: String,
    /// Address of the card's picture, a square of at least 458 pixels.
    #[schemars(extend("format" = "uri"))]
    picture: String,
    /// Title; by default that of the linked page. Facebook shows about 35 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// A price, a discount or a site's name; by default taken from the linked page. Facebook shows about 30 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl Settings {
    /// Returns the audience of the post, if it is limited.
    fn targeting(&self) -> Option<Value> {
        self.countries.as_ref().map(|countries| json!({ "geo_locations": { "countries": countries } }))
    }

    /// Returns the id of the image for the cover.
    fn cover(&self) -> Option<&str> {
        self.cover.as_deref()
    }

    fn is_draft(&self) -> bool {
        self.draft == Some(true)
    }

    /// Returns the cards of a carousel of links.
    fn cards(&self) -> &[Card] {
        self.child_attachments.as_deref().unwrap_or_default()
    }

    /// Returns the setting that has a link to Facebook itself, which it takes no preview of (error 1609008).
    fn own_link(&self) -> Option<&'static str> {
        if self.link.as_deref().is_some_and(is_own_address) {
            return Some("link");
        }
        self.cards().iter().any(|card| is_own_address(&card.link)).then_some("child_attachments")
    }

    /// Returns a setting that does not fit the media or the kind of post, with the reason.
    fn objection(&self, media: &[Media]) -> Option<(&'static str, String)> {
        let is_story = self.media_type == Some(MediaType::Stories);
        let of_cover = |id| graph::uncoverable(ADAPTER.id, media, id, is_story);
        if let Some(message) = self.cover().and_then(of_cover) {
            return Some(("cover", message));
        }
        let is_film = media.iter().any(|medium| medium.kind == MediaKind::Video);
        let is_feed = !is_film && self.media_type.is_none_or(|kind| kind == MediaType::Feed);
        if self.is_draft() && !is_feed {
            return Some(("draft", "facebook takes a text, a link or photos as a draft".to_owned()));
        }
        let is_shared = self.collaborators.as_ref().is_some_and(|pages| !pages.is_empty());
        let message = || "facebook takes collaborators for a reel only".to_owned();
        (is_shared && self.media_type != Some(MediaType::Reels)).then(|| ("collaborators", message()))
    }
}

/// True for an address of Facebook itself.
fn is_own_address(link: &str) -> bool {
    let host = Url::parse(link).ok().and_then(|link| link.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "facebook.com" || host.ends_with(".facebook.com"))
}

/// Compares a post in the feed with what its background takes and its cards show, and a draft with what is kept of it.
fn feed_issues(containers: &[ContainerContent<'_>], settings: &Settings) -> Vec<Issue> {
    let mut issues = Vec::new();
    let mut add = |severity, code: &str, setting: &str, message: String| {
        issues.push(Issue::of_setting(severity, code, ADAPTER.id, setting, message));
    };
    let length = containers.first().map_or(0, |main| main.text.chars().count());
    if settings.text_format_preset_id.is_some() && !settings.is_draft() && length > MAX_BACKGROUND_TEXT {
        let message = format!(
            "facebook takes {MAX_BACKGROUND_TEXT} characters on a background, and the text has {length}"
        );
        add(Severity::Error, "text_too_long", "text_format_preset_id", message);
    }
    let count = settings.cards().len();
    if count > SHOWN_CARDS {
        let message = format!("facebook shows {SHOWN_CARDS} cards, and there are {count}");
        add(Severity::Warning, "cards_not_shown", "child_attachments", message);
    }
    if settings.is_draft() {
        if containers.len() > 1 {
            let message = "facebook takes no comment below a draft".to_owned();
            add(Severity::Error, "settings_conflict", "draft", message);
        }
        let message = "facebook keeps the post as a draft, and shows it to nobody until it is published in Meta Business Suite";
        add(Severity::Warning, "post_waits_in_drafts", "draft", message.to_owned());
    }
    issues
}

#[async_trait]
impl Publisher for Facebook {
    fn post_kind(&self, main: &ContainerContent<'_>, settings: &Value) -> Option<&'static str> {
        let settings: Settings = schema::read(settings).ok()?;
        let shown = graph::shown(main.media, settings.cover());
        Some(match PostKind::choose(&shown, settings.media_type).ok()? {
            PostKind::Feed if settings.is_draft() => "draft",
            PostKind::Feed if shown.is_empty() => "text",
            PostKind::Feed => "photos",
            PostKind::Video => "video",
            PostKind::Reel => "reel",
            PostKind::PhotoStory | PostKind::VideoStory => "story",
            PostKind::Comment => return None,
        })
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        let invalid = |setting: &str, code: &str, message: String| {
            Issue::of_setting(Severity::Error, code, ADAPTER.id, setting, message)
        };
        if let Some((setting, message)) = settings.objection(main.media) {
            return vec![invalid(setting, "settings_conflict", message)];
        }
        if let Some(setting) = settings.own_link() {
            let message = "facebook takes no link to facebook.com".to_owned();
            return vec![invalid(setting, "setting_invalid", message)];
        }
        let shown = graph::shown(main.media, settings.cover());
        let kind = match PostKind::choose(&shown, settings.media_type) {
            Err((code, message)) => return vec![Issue::of_main(Severity::Error, code, "media", message)],
            Ok(kind) => kind,
        };
        let is_story = matches!(kind, PostKind::PhotoStory | PostKind::VideoStory);
        let mut issues = feed_issues(containers, &settings);
        if is_story && !main.text.trim().is_empty() {
            let message = "facebook shows no text on a story".to_owned();
            issues.push(Issue::of_main(Severity::Warning, "text_not_shown", "content", message));
        }
        let cover = graph::cover(main.media, settings.cover());
        if cover.and_then(|cover| cover.alt_text.as_ref()).is_some_and(|alt| !alt.is_empty()) {
            let message = "facebook shows no alt text on a cover".to_owned();
            issues.push(Issue::of_main(Severity::Warning, "alt_text_not_supported", "media", message));
        }
        issues
    }

    fn is_definite(&self, reply: &Reply) -> bool {
        graph::is_definite(reply)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        graph::classify(reply)
    }

    async fn exchange(&self, cx: &Session<'_>, code: &Code) -> Result<Grant> {
        let (id, secret) = graph::app(cx)?;
        let app = [("client_id", id), ("client_secret", secret)];
        let own =
            [("redirect_uri", code.redirect_uri.as_str()), ("code", code.code.trim_end_matches("#_=_"))];
        let exchange = cx.get(TOKEN).authorized_otherwise().query(&app).query(&own).hiding(&code.code);
        let short: Token = exchange.send_for_secrets().await?;
        let own = [("grant_type", "fb_exchange_token"), ("fb_exchange_token", &short.access_token)];
        let exchange = cx.get(TOKEN).authorized_otherwise().query(&app).query(&own).hiding(&code.code);
        let long: Token = exchange.hiding(&short.access_token).send_for_secrets().await?;
        // A person may grant fewer scopes than requested.
        let allowed: Listed<Permission> = cx
            .get(format!("{API}/me/permissions"))
            .bearer(&long.access_token)
            .hiding(&code.code)
            .query(&proof_of(secret, &long.access_token))
            .send()
            .await?;
        let allowed = allowed.data.into_iter().filter(|permission| permission.status == "granted");
        Ok(Grant {
            access_token: long.access_token,
            refresh_token: None,
            ends_at: None,
            expires_at: oauth::end((cx.now)(), long.expires_in),
            scopes: allowed.map(|permission| permission.permission).collect(),
            extra: Value::Null,
        })
    }

    /// Returns the Pages that a person's grant covers, each with its own token; for a Page's token
    /// itself.
    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        pages::identities(cx).await
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        node::<Value>(cx, "me", "id").await.map(drop)
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        self.health(cx).await?;
        Ok(cx.grant.clone())
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let settings: Settings = post.settings()?;
        let kind = PostKind::of(post, &settings)?;
        let mut step: Step = at.read()?;
        let uploads = Uploads { kind, is_resumed: !step.uploads.is_empty() };
        // The cover is sent when the video is live. A comment has no cover, and may show the same image.
        let cover = settings.cover().filter(|_| kind != PostKind::Comment);
        let media: Vec<Media> = graph::shown(&post.media, cover).into_iter().cloned().collect();
        let pause = upload::advance(&uploads, cx, &media, &mut step, |step| &mut step.uploads).await?;
        Ok(upload::prepared(&step, pause))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let (settings, step): (Settings, Step) = (post.settings()?, at.read()?);
        let kind = PostKind::of(post, &settings)?;
        let own = &cx.account.network_unique_id;
        match kind {
            PostKind::Feed => {
                let made: Made =
                    send(cx, &format!("{own}/feed"), &feed_fields(post, &settings, &step)).send().await?;
                if !settings.is_draft() {
                    return Ok(Committed::Live(made.id));
                }
                // The look-up tells its owner where it is.
                let at = Checkpoint::of(&Step { draft: Some(made.id), ..step });
                Ok(Committed::Accepted { at, poll_after: DRAFT_PAUSE })
            }
            PostKind::Comment => {
                let parent = &post.reply_to.as_ref().expect("a comment has a parent").parent;
                let mut fields: Fields = vec![("message", post.text.clone())];
                fields.extend(step.first().map(|photo| ("attachment_id", photo.id.clone())));
                let made: Made = send(cx, &format!("{parent}/comments"), &fields).send().await?;
                Ok(Committed::Live(made.id))
            }
            PostKind::PhotoStory => {
                let photo = step.first().ok_or_else(unprepared)?;
                let fields: Fields = vec![("photo_id", photo.id.clone())];
                let done: Done = send(cx, &format!("{own}/photo_stories"), &fields).send().await?;
                match done.post_id {
                    Some(id) => Ok(Committed::Live(id)),
                    None => Ok(accepted(&step)),
                }
            }
            PostKind::Reel | PostKind::Video | PostKind::VideoStory => {
                let video = step.first().cloned().ok_or_else(unprepared)?;
                let fields = finish_fields(kind, post, &settings, &video);
                let done: Result<Done> = send_video(cx, kind, &fields).send().await;
                match done {
                    Ok(done) => {
                        let story = done.post_id.filter(|_| kind == PostKind::VideoStory);
                        Ok(accepted(&Step { story, ..step }))
                    }
                    // An earlier call with a lost response may have published it.
                    Err(failure) if !failure.is_ambiguous() && failure.code != ErrorCode::TokenExpired => {
                        match state(cx, &video.id).await {
                            Ok((State::Published | State::Processing, _)) => Ok(accepted(&step)),
                            _ => Err(failure),
                        }
                    }
                    Err(failure) => Err(failure),
                }
            }
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let settings: Settings = post.settings()?;
        let kind = PostKind::of(post, &settings)?;
        let mut step = if post.is_restored { Step::default() } else { at.read()? };
        let begun = post.begun();
        match kind {
            PostKind::Feed if settings.is_draft() => match step.draft {
                Some(id) => {
                    cx.note(IN_DRAFTS).await?;
                    Ok(Located::certain(id))
                }
                None => Ok(Located::Unknown),
            },
            PostKind::Feed => listing::locate(&FeedPosts { cx, step: &step }, post).await,
            PostKind::Comment => {
                let parent = &post.reply_to.as_ref().expect("a comment has a parent").parent;
                listing::locate(&Comments { cx, parent }, post).await
            }
            // Only the checkpoint names a photo or video, and no list has the text of all of them.
            _ if post.is_restored => Ok(Located::Unknown),
            PostKind::PhotoStory => match step.first() {
                None => Ok(Located::Absent),
                Some(photo) => Ok(story(cx, &photo.id).await?.map_or(Located::Absent, Located::certain)),
            },
            PostKind::Reel | PostKind::Video | PostKind::VideoStory => {
                let Some(video) = step.first().cloned() else { return Ok(Located::Absent) };
                let (state, throttle) = state(cx, &video.id).await?;
                match state {
                    State::Waiting => Ok(Located::Absent),
                    State::Processing => {
                        let pause = graph::pause(begun, (cx.now)(), true);
                        Ok(Located::Processing { poll_after: throttle.unwrap_or_default().max(pause) })
                    }
                    State::Failed(failure) => Ok(Located::Failed(failure)),
                    State::Published if kind == PostKind::VideoStory => {
                        let found = story(cx, &video.id).await?.or(step.story);
                        Ok(found.map_or(Located::Unknown, Located::certain))
                    }
                    State::Published => {
                        complete(cx, post, &settings, &video.id, &mut step).await?;
                        Ok(Located::certain(video.id))
                    }
                }
            }
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        // Only a post in the feed can be a draft; a comment, a video or a story does not know the field.
        let is_feed = id.split_once('_').is_some_and(|(page, _)| page == cx.account.network_unique_id);
        let fields = if is_feed { "id,permalink_url,is_published" } else { "id,permalink_url" };
        let post: Result<Post> = node(cx, id, fields).await;
        match post {
            Ok(Post { is_published: Some(false), .. }) => {
                Err(Failure::rejected(404, "it is a draft, which has no address that others can open"))
            }
            Ok(Post { permalink_url: Some(url), .. }) => Ok(address(cx, &url)),
            Ok(_) => Ok(cx.transport.rewrite_url(&format!("{SITE}/{id}"))),
            // Only the list of stories contains a story's URL.
            Err(failure) if failure.code.is_permanent() => {
                let all = stories(cx).await.unwrap_or_default();
                let url = all.into_iter().find(|story| story.post_id == id).and_then(|story| story.url);
                url.map(|url| address(cx, &url)).ok_or(failure)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Kind of post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostKind {
    Feed,
    Video,
    Reel,
    PhotoStory,
    VideoStory,
    Comment,
}

impl PostKind {
    /// Returns the kind from the setting, else from the media; or an issue code and a message.
    fn choose(media: &[&Media], wanted: Option<MediaType>) -> Result<Self, (&'static str, String)> {
        let count = media.len();
        if media.iter().any(|medium| medium.kind != media[0].kind) {
            let message = "facebook takes media of one kind at a time, but for the cover of a video";
            return Err(("media_mixed", message.to_owned()));
        }
        let video = media.first().filter(|media| media.kind == MediaKind::Video);
        let seconds = video.and_then(|media| media.duration);
        let number = |what: &str| {
            let message = format!("facebook takes one {what}, and there are {count} media");
            Err((if count == 0 { "media_required" } else { "media_too_many" }, message))
        };
        let length = |what: &str, least: Duration, most: Duration| {
            let odd = seconds.filter(|time| !(least..=most).contains(time));
            odd.map(|time| {
                let (least, most, has) = (least.as_secs(), most.as_secs(), time.as_secs_f64());
                let message =
                    format!("facebook takes a {what} of {least} to {most} seconds, and this has {has}");
                ("media_duration", message)
            })
        };
        match (wanted, video) {
            (Some(MediaType::Reels), _) if count != 1 => number("video as a reel"),
            (Some(MediaType::Reels), None) => Err((
                "media_kind_not_supported",
                "facebook takes a video as a reel, and this is none".to_owned(),
            )),
            (Some(MediaType::Reels), Some(_)) => {
                length("reel", REEL_DURATION.0, REEL_DURATION.1).map_or(Ok(Self::Reel), Err)
            }
            (Some(MediaType::Stories), _) if count != 1 => number("medium as a story"),
            (Some(MediaType::Stories), None) => Ok(Self::PhotoStory),
            (Some(MediaType::Stories), Some(_)) => {
                length("story", Duration::from_secs(1), MAX_STORY).map_or(Ok(Self::VideoStory), Err)
            }
            (_, Some(_)) => Ok(Self::Video),
            (_, None) => Ok(Self::Feed),
        }
    }

    fn of(post: &PublishRequest, settings: &Settings) -> Result<Self> {
        let chosen = match (&post.reply_to, post.media.as_slice()) {
            (None, media) => match settings.objection(media) {
                Some((_, message)) => Err(("settings_conflict", message)),
                None => Self::choose(&graph::shown(media, settings.cover()), settings.media_type),
            },
            (Some(_), []) => Ok(Self::Comment),
            (Some(_), [one]) if one.kind == MediaKind::Image => Ok(Self::Comment),
            (Some(_), _) => {
                Err(("media_too_many", "facebook takes one image in a comment, and nothing else".to_owned()))
            }
        };
        chosen.map_err(|(_, message)| Failure::rejected(400, message))
    }

    /// Returns the Page's edge that receives a video.
    fn edge(self) -> &'static str {
        match self {
            Self::Reel => "video_reels",
            Self::VideoStory => "video_stories",
            _ => "videos",
        }
    }
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    #[serde(default)]
    uploads: Vec<Uploaded<Ticket>>,
    /// The story's id, from the response of the publishing call.
    #[serde(default)]
    story: Option<String>,
    /// True when the cover is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_covered: bool,
    /// The Pages that were invited as collaborators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    invited: Vec<String>,
    /// The draft's id, from the response of the call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    draft: Option<String>,
}

/// A photo or a video that is not published.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ticket {
    id: String,
    /// The upload session of a video that is uploaded in parts.
    session: Option<String>,
    /// End of the next part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
}

impl Step {
    fn first(&self) -> Option<&Ticket> {
        self.uploads.first().map(|upload| &upload.ticket)
    }
}

/// Returns a call for an object of the API, with the app secret proof that Meta requires if the app is
/// configured so:
/// <https://developers.facebook.com/docs/graph-api/guides/secure-requests>.
fn get(cx: &Session<'_>, path: &str) -> Call {
    cx.get(format!("{API}/{path}")).query(&proof(cx))
}

fn send(cx: &Session<'_>, path: &str, fields: &Fields) -> Call {
    cx.post(format!("{API}/{path}")).query(&proof(cx)).form(fields)
}

/// Returns a call to the Page's edge that receives a video.
fn send_video(cx: &Session<'_>, kind: PostKind, fields: &Fields) -> Call {
    let path = format!("{}/{}", cx.account.network_unique_id, kind.edge());
    let api = if kind == PostKind::Video { VIDEO_API } else { API };
    cx.post(format!("{api}/{path}")).query(&proof(cx)).form(fields)
}

async fn node<T: serde::de::DeserializeOwned>(cx: &Session<'_>, path: &str, fields: &str) -> Result<T> {
    get(cx, path).query(&[("fields", fields)]).send().await
}

fn proof(cx: &Session<'_>) -> Vec<(&'static str, String)> {
    let secret = cx.app.and_then(|app| app.client_secret.as_deref());
    proof_of(secret.unwrap_or_default(), &cx.grant.access_token)
}

fn proof_of(secret: &str, token: &str) -> Vec<(&'static str, String)> {
    if secret.is_empty() || token.is_empty() {
        return Vec::new();
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
    mac.update(token.as_bytes());
    vec![("appsecret_proof", hex::encode(mac.finalize().into_bytes()))]
}

fn accepted(step: &Step) -> Committed {
    Committed::Accepted { at: Checkpoint::of(step), poll_after: Duration::from_secs(5) }
}

fn unprepared() -> Failure {
    Failure::rejected(409, "nothing was prepared that could be published")
}

/// Returns the fields of a feed post's publishing call.
fn feed_fields(post: &PublishRequest, settings: &Settings, step: &Step) -> Fields {
    let mut fields = Fields::new();
    if !post.text.is_empty() {
        fields.push(("message", post.text.clone()));
    }
    // A carousel needs a link as well, which follows its cards.
    let first = settings.cards().first().map(|card| card.link.clone());
    graph::set(&mut fields, "link", &settings.link.clone().or(first));
    if settings.is_draft() {
        fields.push(("published", "false".to_owned()));
        fields.push(("unpublished_content_type", "DRAFT".to_owned()));
    } else {
        graph::set(&mut fields, "place", &settings.place);
        graph::set(&mut fields, "targeting", &settings.targeting());
        graph::set(&mut fields, "text_format_preset_id", &settings.text_format_preset_id);
        graph::set(&mut fields, "child_attachments", &settings.child_attachments);
        if settings.cards().len() > SHOWN_CARDS {
            fields.push(("multi_share_optimized", "true".to_owned()));
        }
    }
    if !step.uploads.is_empty() {
        let photos = step.uploads.iter().map(|photo| json!({ "media_fbid": photo.ticket.id }));
        let photos: Vec<Value> = photos.collect();
        fields.push(("attached_media", Value::from(photos).to_string()));
    }
    fields
}

/// Returns the fields of a video's publishing call.
fn finish_fields(kind: PostKind, post: &PublishRequest, settings: &Settings, video: &Ticket) -> Fields {
    let mut fields: Fields = vec![("upload_phase", "finish".to_owned())];
    match &video.session {
        Some(session) if kind == PostKind::Video => fields.push(("upload_session_id", session.clone())),
        _ => fields.push(("video_id", video.id.clone())),
    }
    if kind == PostKind::VideoStory {
        return fields;
    }
    if kind == PostKind::Reel {
        fields.push(("video_state", "PUBLISHED".to_owned()));
        graph::set(&mut fields, "place", &settings.place);
    } else {
        fields.push(("published", "true".to_owned()));
    }
    if !post.text.is_empty() {
        fields.push(("description", post.text.clone()));
    }
    graph::set(&mut fields, "title", &settings.title);
    graph::set(&mut fields, "targeting", &settings.targeting());
    if settings.is_ai_generated == Some(true) {
        fields.push(("is_ai_generated", "true".to_owned()));
    }
    fields
}

/// Uploads for a kind of post.
struct Uploads {
    kind: PostKind,
    /// True when an earlier attempt began to upload.
    is_resumed: bool,
}

#[async_trait]
impl Upload for Uploads {
    type Ticket = Ticket;

    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Ticket>> {
        let (ticket, sent) = match self.kind {
            PostKind::Feed | PostKind::PhotoStory | PostKind::Comment => {
                let id = photo(cx, media).await?;
                (Ticket { id, session: None, end: None }, Sent::Whole(Processing::Done))
            }
            PostKind::Reel | PostKind::Video | PostKind::VideoStory => {
                let mut fields: Fields = vec![("upload_phase", "start".to_owned())];
                if self.kind == PostKind::Video {
                    fields.push(("file_size", media.size_bytes.to_string()));
                }
                let started: Started = send_video(cx, self.kind, &fields).send().await?;
                let end = started.end_offset.as_ref().and_then(number);
                (Ticket { id: started.video_id, session: started.upload_session_id, end }, Sent::Next(0))
            }
        };
        Ok(Begun { ticket, expires_at: Some((cx.now)() + UPLOAD_TTL), sent })
    }

    /// Sends a part, which is identified by its offset.
    async fn send(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<Ticket>,
        offset: u64,
    ) -> Result<Sent> {
        let next = match self.kind {
            PostKind::Video => send_part(cx, media, &mut upload.ticket, offset).await?,
            _ => {
                let offset = if self.is_resumed { received(cx, &upload.ticket.id).await? } else { offset };
                send_rest(cx, media, &upload.ticket, offset).await?;
                media.size_bytes
            }
        };
        Ok(if next < media.size_bytes { Sent::Next(next) } else { Sent::Whole(Processing::Done) })
    }
}

/// Uploads a photo that stays invisible until a post is published with it.
async fn photo(cx: &Session<'_>, media: &Media) -> Result<String> {
    let part = Part::stream_with_length(Body::wrap_stream(cx.stream(media)), media.size_bytes);
    let mut form = Form::new().text("published", "false");
    if let Some(alt) = media.alt_text.as_ref().filter(|alt| !alt.is_empty()) {
        form = form.text("alt_text_custom", alt.clone());
    }
    let form = form.part("source", storage::typed(part.file_name(media.filename.clone()), &media.mime)?);
    let path = format!("{API}/{}/photos", cx.account.network_unique_id);
    let made: Made = cx.post(path).query(&proof(cx)).multipart(form).send().await?;
    Ok(made.id)
}

/// Sends a reel or story from `offset` to the end of the file, in one request.
async fn send_rest(cx: &Session<'_>, media: &Media, video: &Ticket, offset: u64) -> Result<()> {
    if offset >= media.size_bytes {
        return Ok(());
    }
    cx.post(format!("{UPLOADS}/{}", video.id))
        .authorized_otherwise()
        .header("authorization", format!("OAuth {}", cx.grant.access_token))
        .header("offset", offset.to_string())
        .header("file_size", media.size_bytes.to_string())
        .upload(
            "application/octet-stream",
            media.size_bytes - offset,
            cx.slice(media, offset..media.size_bytes),
        )
        .send_ok()
        .await
}

/// Returns the number of bytes of a video that Facebook has received.
async fn received(cx: &Session<'_>, id: &str) -> Result<u64> {
    let video: VideoNode = node(cx, id, "status").await?;
    Ok(video.status.uploading_phase.received())
}

/// Sends the part of a video that Facebook asked for. The response contains the next part, and so does
/// the rejection of one that was already received or ends elsewhere.
async fn send_part(cx: &Session<'_>, media: &Media, video: &mut Ticket, offset: u64) -> Result<u64> {
    let asked = video.end.filter(|end| *end > offset);
    let end = asked.unwrap_or(offset + CHUNK_BYTES).min(media.size_bytes);
    let length = end.saturating_sub(offset);
    let part = Part::stream_with_length(Body::wrap_stream(cx.slice(media, offset..end)), length)
        .file_name(media.filename.clone());
    let form = Form::new()
        .text("upload_phase", "transfer")
        .text("upload_session_id", video.session.clone().unwrap_or_default())
        .text("start_offset", offset.to_string())
        .part("video_file_chunk", storage::typed(part, "application/octet-stream")?);
    let path = format!("{VIDEO_API}/{}/videos", cx.account.network_unique_id);
    let call = cx.post(path).query(&proof(cx)).multipart(form).timeout_for_body(length);
    let reply = call.send_raw().await?;
    let place = |name: &str| {
        let places = [format!("/{name}"), format!("/error/error_data/{name}")];
        places.iter().find_map(|place| number(reply.body.pointer(place)?))
    };
    let (next, next_end) = (place("start_offset"), place("end_offset"));
    let refused = reply.into_result(cx.platform).err();
    video.end = next_end.filter(|end| next.is_some_and(|next| *end > next));
    match (next, refused) {
        // Never the same part twice, which could loop without end.
        (Some(next), _)
            if next <= media.size_bytes && (next != offset || (asked.is_none() && video.end.is_some())) =>
        {
            Ok(next)
        }
        (_, Some(failure)) => Err(failure),
        _ => Err(Failure::upstream(502, "Facebook does not say which part is next")),
    }
}

/// Parses a number, or a string that contains one.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Processing state of a video.
enum State {
    /// Uploaded, not published.
    Waiting,
    Processing,
    Published,
    Failed(Failure),
}

/// Returns the state of a video, with a pause if few calls are left.
async fn state(cx: &Session<'_>, id: &str) -> Result<(State, Option<Duration>)> {
    let reply = get(cx, id).query(&[("fields", "status,published")]).reply().await?;
    let video: VideoNode = reply.read()?;
    Ok((video.status.state(video.published), graph::throttle(&reply)))
}

/// Sets the cover of a live video and invites its collaborators. A refusal is told to the owner and does not fail
/// the post.
async fn complete(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    video: &str,
    step: &mut Step,
) -> Result<()> {
    let is_late = || (cx.now)() - post.begun() > graph::PARTS_TIMEOUT;
    if let Some(cover) = graph::cover(&post.media, settings.cover()).filter(|_| !step.is_covered) {
        let set = set_cover(cx, video, cover).await;
        let advice = "; it takes the permissions pages_manage_engagement and pages_read_user_content";
        cx.note_refusal(set, "its own cover", advice, is_late()).await?;
        step.is_covered = true;
        cx.save(step).await?;
    }
    for page in settings.collaborators.iter().flatten() {
        if step.invited.contains(page) {
            continue;
        }
        let invited = send(cx, &format!("{video}/collaborators"), &vec![("target_id", page.clone())]);
        let invited = invited.send_ok().await;
        cx.note_refusal(invited, &format!("the collaborator {page}"), "", is_late()).await?;
        step.invited.push(page.clone());
        cx.save(step).await?;
    }
    Ok(())
}

/// Adds an image to those that Facebook offers for a video, and prefers it to the others.
/// <https://developers.facebook.com/docs/graph-api/reference/video/thumbnails>
async fn set_cover(cx: &Session<'_>, video: &str, image: &Media) -> Result<()> {
    let part = Part::stream_with_length(Body::wrap_stream(cx.stream(image)), image.size_bytes);
    let part = storage::typed(part.file_name(image.filename.clone()), &image.mime)?;
    let form = Form::new().text("is_preferred", "true").part("source", part);
    let path = format!("{API}/{video}/thumbnails");
    cx.post(path).query(&proof(cx)).multipart(form).send_ok().await
}

/// The Page's posts; `step` has the ids of the photos.
struct FeedPosts<'a> {
    cx: &'a Session<'a>,
    step: &'a Step,
}

#[async_trait]
impl Listing for FeedPosts<'_> {
    type Item = Post;

    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Post>> {
        list(self.cx, Some(since), cursor).await
    }

    fn id(other: &Post) -> &str {
        &other.id
    }

    fn published_at(other: &Post) -> Option<DateTime<Utc>> {
        other.created_time
    }

    fn matches(&self, other: &Post, post: &PublishRequest) -> bool {
        other.matches(post, self.step)
    }
}

/// The comments below a post.
struct Comments<'a> {
    cx: &'a Session<'a>,
    parent: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Comment;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Comment>> {
        let call = get(self.cx, &format!("{}/comments", self.parent)).query(&[
            ("fields", "id,message,created_time,from"),
            ("order", "reverse_chronological"),
            ("limit", "50"),
        ]);
        graph::page(call, cursor).await
    }

    fn id(comment: &Comment) -> &str {
        &comment.id
    }

    fn published_at(comment: &Comment) -> Option<DateTime<Utc>> {
        comment.created_time
    }

    fn matches(&self, comment: &Comment, post: &PublishRequest) -> bool {
        comment.from.as_ref().is_none_or(|from| from.id == self.cx.account.network_unique_id)
            && collapse_whitespace(comment.message.as_deref().unwrap_or_default())
                == collapse_whitespace(&post.text)
    }
}

/// Returns the story of a photo or video.
async fn story(cx: &Session<'_>, media: &str) -> Result<Option<String>> {
    let all = stories(cx).await?;
    Ok(all.into_iter().find(|story| story.media_id.as_deref() == Some(media)).map(|story| story.post_id))
}

async fn stories(cx: &Session<'_>) -> Result<Vec<Story>> {
    let path = format!("{}/stories", cx.account.network_unique_id);
    let listed: Listed<Story> = get(cx, &path)
        .query(&[("fields", "post_id,status,creation_time,media_type,media_id,url"), ("limit", "100")])
        .send()
        .await?;
    Ok(listed.data)
}

/// Returns one page of the Page's posts, newest first.
async fn list(cx: &Session<'_>, since: Option<DateTime<Utc>>, cursor: Option<&str>) -> Result<Page<Post>> {
    let path = format!("{}/published_posts", cx.account.network_unique_id);
    let mut limit = PAGE_POSTS;
    loop {
        let mut call = get(cx, &path).query(&[("fields", FIELDS)]).query(&[("limit", limit)]);
        if let Some(since) = since {
            call = call.query(&[("since", since.timestamp())]);
        }
        match graph::page(call, cursor).await {
            Err(failure) if limit > 1 && is_too_much_data(&failure) => limit /= 2,
            page => return page,
        }
    }
}

/// Returns true if a list was refused because a page of it has too much data.
fn is_too_much_data(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Upstream(_)) && failure.message.contains("reduce the amount of data")
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
        let figures = insights::read(cx, &format!("{id}/insights"), &names).await?;
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
            let figures = insights::read(cx, &format!("{id}/insights"), &names).await?;
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
    let figures = insights::read(cx, &format!("{id}/video_insights"), &names).await?;
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

#[async_trait]
impl History for Facebook {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        Ok(list(cx, None, cursor).await?.map(|post| RemotePost {
            // A video is identified by its own id, as when it is published here.
            id: post.video().unwrap_or_else(|| post.id.clone()),
            url: post.permalink_url.as_deref().map(|url| address(cx, url)).unwrap_or_default(),
            media: post.full_picture.iter().cloned().collect(),
            metrics: Metrics {
                shares: post.shares.as_ref().map_or(0, |shares| shares.count),
                ..Metrics::default()
            },
            text: post.message.unwrap_or_default(),
            published_at: post.created_time.unwrap_or_default(),
        }))
    }
}

#[async_trait]
impl Deletion for Facebook {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        cx.delete(format!("{API}/{id}")).query(&proof(cx)).delete_ok().await
    }
}

/// <https://developers.facebook.com/docs/pages/publishing>
#[async_trait]
impl Editing for Facebook {
    fn objection(&self, edit: &Edit) -> Option<String> {
        let kind = schema::read::<Settings>(&edit.settings).ok().and_then(|settings| settings.media_type);
        let is_feed =
            !edit.kinds.contains(&MediaKind::Video) && kind.is_none_or(|kind| kind == MediaType::Feed);
        (!edit.is_reply() && !is_feed).then(|| UNEDITABLE.to_owned())
    }

    // A message that is set again is the same message.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        let Some(text) = &edit.text else { return Ok(()) };
        // The id of a post or a comment names its parent as well; that of a video or story does not.
        if !id.contains('_') {
            return Err(Failure::rejected(422, UNEDITABLE));
        }
        let fields: Fields = vec![("message", text.clone())];
        send(cx, id, &fields).send_ok().await
    }
}

/// Returns an absolute URL; Meta omits the host of some.
fn address(cx: &Session<'_>, url: &str) -> String {
    match url.strip_prefix('/') {
        Some(rest) => cx.transport.rewrite_url(&format!("{SITE}/{rest}")),
        None => cx.transport.rewrite_url(url),
    }
}

#[derive(Deserialize)]
struct Token {
    #[serde(deserialize_with = "required::token")]
    access_token: String,
    expires_in: Option<i64>,
}

#[derive(Deserialize)]
struct Permission {
    permission: String,
    status: String,
}

#[derive(Deserialize)]
struct Started {
    #[serde(deserialize_with = "required::id")]
    video_id: String,
    upload_session_id: Option<String>,
    end_offset: Option<Value>,
}

#[derive(Deserialize)]
struct Done {
    #[serde(default, deserialize_with = "required::id_if_any")]
    post_id: Option<String>,
}

#[derive(Deserialize)]
struct VideoNode {
    status: Progress,
    #[serde(default)]
    published: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Progress {
    video_status: String,
    uploading_phase: Phase,
    processing_phase: Phase,
    publishing_phase: Phase,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    status: String,
    publish_status: String,
    // The documentation and the service spell it differently.
    bytes_transfered: u64,
    bytes_transferred: u64,
    errors: Vec<Fault>,
    error: Option<Fault>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    message: String,
}

impl Phase {
    fn received(&self) -> u64 {
        self.bytes_transfered.max(self.bytes_transferred)
    }
}

impl Progress {
    /// Returns the state; `published` is the video's own member, if the response has it. A video that was not
    /// uploaded as a reel may have no phases.
    fn state(self, published: Option<bool>) -> State {
        let phases = [&self.uploading_phase, &self.processing_phase, &self.publishing_phase];
        let is_broken = phases.iter().any(|phase| phase.status == "error" || phase.publish_status == "error");
        if is_broken || ["error", "expired", "upload_failed"].contains(&self.video_status.as_str()) {
            let faults = phases.iter().flat_map(|phase| phase.errors.iter().chain(&phase.error));
            let messages: Vec<&str> =
                faults.map(|fault| fault.message.as_str()).filter(|text| !text.is_empty()).collect();
            let reason = if messages.is_empty() { self.video_status } else { messages.join(" ") };
            return State::Failed(Failure::rejected(
                400,
                format!("Facebook could not process the video: {reason}"),
            ));
        }
        let publishing = &self.publishing_phase;
        let is_ready = self.video_status == "ready" && published != Some(false);
        match (publishing.publish_status.as_str(), publishing.status.as_str()) {
            ("published", "complete" | "completed") => State::Published,
            ("", "" | "complete" | "completed") if is_ready => State::Published,
            ("published" | "scheduled", _) | (_, "in_progress" | "complete" | "completed") => {
                State::Processing
            }
            _ if matches!(self.processing_phase.status.as_str(), "in_progress")
                || self.video_status == "processing" =>
            {
                State::Processing
            }
            _ => State::Waiting,
        }
    }
}

#[derive(Deserialize)]
struct Post {
    #[serde(deserialize_with = "required::id")]
    id: String,
    message: Option<String>,
    permalink_url: Option<String>,
    is_published: Option<bool>,
    full_picture: Option<String>,
    status_type: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    created_time: Option<DateTime<Utc>>,
    shares: Option<Shares>,
    comments: Option<CommentCount>,
    attachments: Option<Listed<Attachment>>,
}

#[derive(Deserialize)]
struct Shares {
    count: u64,
}

#[derive(Deserialize)]
struct CommentCount {
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    total_count: u64,
}

#[derive(Deserialize)]
struct Attachment {
    media_type: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    target: Option<Target>,
    subattachments: Option<Listed<Attachment>>,
}

#[derive(Deserialize)]
struct Target {
    id: Option<String>,
}

impl Attachment {
    fn targets(&self) -> Vec<&str> {
        let below = self.subattachments.iter().flat_map(|list| &list.data).flat_map(Self::targets);
        self.target.iter().filter_map(|target| target.id.as_deref()).chain(below).collect()
    }

    /// Returns true if it is a photo or a video of the Page. The preview of a link to a video has the media type
    /// of a video too.
    fn is_upload(&self) -> bool {
        matches!(self.media_type.as_deref(), Some("photo" | "album" | "video"))
            && !self.kind.as_deref().is_some_and(|kind| kind.contains("share"))
    }
}

impl Post {
    /// Returns the id of the post's video.
    fn video(&self) -> Option<String> {
        let attachment = self.attachments.as_ref()?.data.first()?;
        // The video of a shared post belongs to another Page.
        let is_own = self.status_type.as_deref().is_none_or(|kind| kind != "shared_story");
        let is_video = attachment.media_type.as_deref() == Some("video") && attachment.is_upload() && is_own;
        attachment.target.as_ref().filter(|_| is_video)?.id.clone().filter(|id| required::is_id(id))
    }

    /// Returns true if it has the content of `post`: the same photos if there are any, else the same text.
    fn matches(&self, post: &PublishRequest, step: &Step) -> bool {
        let attachments = self.attachments.as_ref().map(|list| list.data.as_slice()).unwrap_or_default();
        let targets: Vec<&str> = attachments.iter().flat_map(Attachment::targets).collect();
        if !step.uploads.is_empty() && !targets.is_empty() {
            return step.uploads.iter().any(|photo| targets.contains(&photo.ticket.id.as_str()));
        }
        let has_media = attachments.iter().any(Attachment::is_upload);
        has_media != post.media.is_empty()
            && is_same_text(&post.text, self.message.as_deref().unwrap_or_default())
    }
}

/// Returns true if Facebook shows the text `sent` as `shown`. It shows a mention, `@[id]`, as the name of the
/// Page that is mentioned.
fn is_same_text(sent: &str, shown: &str) -> bool {
    static MENTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"@\[\d+(:[^\]]*)?\]").expect("a valid pattern"));
    let (sent, shown) = (collapse_whitespace(sent), collapse_whitespace(shown));
    let parts: Vec<&str> = MENTION.split(&sent).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return sent == shown };
    let between = shown.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    between.is_some_and(|mut rest| {
        middle.iter().all(|part| {
            let at = rest.find(part);
            rest = at.map_or("", |at| &rest[at + part.len()..]);
            at.is_some()
        })
    })
}

#[derive(Deserialize)]
struct Comment {
    #[serde(deserialize_with = "required::id")]
    id: String,
    message: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    created_time: Option<DateTime<Utc>>,
    from: Option<Made>,
}

#[derive(Deserialize)]
struct Story {
    #[serde(deserialize_with = "required::id")]
    post_id: String,
    media_id: Option<String>,
    url: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use uuid::Uuid;

    #[test]
    fn the_state_of_a_video_follows_from_its_phases() {
        let state = |status: Value| match serde_json::from_value::<Progress>(status).unwrap().state(None) {
            State::Waiting => "waiting",
            State::Processing => "processing",
            State::Published => "published",
            State::Failed(failure) if failure.code == ErrorCode::Rejected(400) => "failed",
            State::Failed(_) => "broken",
        };
        let alone = |published: Option<bool>| {
            let status: Progress = serde_json::from_value(json!({ "video_status": "ready" })).unwrap();
            matches!(status.state(published), State::Published)
        };
        assert!(alone(Some(true)) && alone(None) && !alone(Some(false)));
        let phase = |status: &str, publish: &str| json!({ "status": status, "publish_status": publish });
        assert_eq!(state(json!({ "video_status": "upload_complete" })), "waiting");
        assert_eq!(
            state(json!({ "video_status": "ready", "publishing_phase": phase("not_started", "draft") })),
            "waiting"
        );
        assert_eq!(state(json!({ "video_status": "processing" })), "processing");
        assert_eq!(
            state(json!({ "video_status": "ready", "publishing_phase": phase("in_progress", "") })),
            "processing"
        );
        for spelling in ["complete", "completed"] {
            for publish in ["published", ""] {
                let status = json!({ "video_status": "ready", "publishing_phase": phase(spelling, publish) });
                assert_eq!(state(status), "published");
            }
        }
        assert_eq!(state(json!({ "video_status": "error" })), "failed");
        assert_eq!(
            state(
                json!({ "processing_phase": { "status": "error", "errors": [{ "code": 1, "message": "m" }] } })
            ),
            "failed"
        );
    }

    #[test]
    fn a_lost_post_is_recognized_by_its_photos() {
        let post: Post = serde_json::from_value(json!({
            "id": "1_2", "message": "a  b", "created_time": "2026-09-28T17:05:11+0000",
            "attachments": { "data": [{
                "media_type": "album", "target": { "id": "7" },
                "subattachments": { "data": [{ "target": { "id": "8" } }, { "target": { "id": "9" } }] },
            }] },
        }))
        .unwrap();
        let media = Media {
            id: Uuid::nil(),
            kind: MediaKind::Image,
            mime: String::new(),
            filename: String::new(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        };
        let ours = PublishRequest { text: "a b".into(), media: vec![media], ..PublishRequest::of_test() };
        let photo =
            |id: &&str| Uploaded::of_test(Uuid::nil(), Ticket { id: (*id).into(), session: None, end: None });
        let step = |photos: &[&str]| Step { uploads: photos.iter().map(photo).collect(), ..Step::default() };
        assert!(post.matches(&ours, &step(&["9"])));
        assert!(!post.matches(&ours, &step(&["10"])), "other photos with the same text");
        assert!(post.matches(&ours, &step(&[])));
        assert!(!post.matches(&PublishRequest { media: vec![], ..ours.clone() }, &step(&[])));
    }

    #[test]
    fn unsupported_media_for_a_post_type_fail_the_check() {
        let medium = |kind, seconds| Media {
            id: Uuid::nil(),
            kind,
            mime: if kind == MediaKind::Video { "video/mp4".into() } else { "image/jpeg".into() },
            filename: String::new(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: Some(Duration::from_secs(seconds)),
            alt_text: None,
            facts: None,
            rendition: None,
        };
        let (video, long) = (medium(MediaKind::Video, 10), medium(MediaKind::Video, 91));
        let image = medium(MediaKind::Image, 0);
        for (media, word, text, expected) in [
            (vec![video.clone()], "REELS", "a", vec![]),
            (vec![long.clone()], "FEED", "a", vec![]),
            (vec![long.clone()], "REELS", "a", vec!["media_duration"]),
            (vec![long], "STORIES", "", vec!["media_duration"]),
            (vec![image.clone()], "REELS", "a", vec!["media_kind_not_supported"]),
            (vec![], "REELS", "a", vec!["media_required"]),
            (vec![image.clone(), image.clone()], "STORIES", "", vec!["media_too_many"]),
            (vec![image.clone()], "STORIES", "a", vec!["text_not_shown"]),
            (vec![image.clone(), image.clone()], "FEED", "a", vec![]),
        ] {
            let content = ContainerContent { text, media: &media };
            let issues = check::check(&ADAPTER, &[content], &json!({ "media_type": word }));
            let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
            assert_eq!(codes, expected, "{word} {}", media.len());
        }
        let content = ContainerContent { text: "", media: &[image] };
        let settings = json!({ "media_type": "STORIES", "countries": ["AT"] });
        let issues = check::check(&ADAPTER, &[content], &settings);
        assert_eq!(issues.iter().map(|issue| &*issue.code).collect::<Vec<_>>(), ["setting_not_used"]);
    }

    #[test]
    fn a_mention_is_shown_as_a_name() {
        for (sent, shown, is_same) in [
            ("a  b", "a b", true),
            ("a", "a b", false),
            ("with @[123] today", "with Our Page today", true),
            ("@[123]", "Our Page", true),
            ("@[1] and @[2:1:Name]!", "One and Two!", true),
            ("@[1] and @[2]", "One or Two", false),
            ("with @[123] today", "with Our Page tomorrow", false),
            ("aba @[1] aba", "aba", false),
        ] {
            assert_eq!(is_same_text(sent, shown), is_same, "{sent}");
        }
    }

    #[test]
    fn the_preview_of_a_link_is_no_upload() {
        let post = |attachment: Value, status: &str| -> Post {
            let post = json!({
                "id": "1_2", "message": "a", "status_type": status, "attachments": { "data": [attachment] },
            });
            serde_json::from_value(post).unwrap()
        };
        let ours = PublishRequest { text: "a".into(), ..PublishRequest::of_test() };
        let target = json!({ "id": "7" });
        for kind in ["video_share_youtube", "video_share", "animated_image_share", "share"] {
            let attachment = json!({ "media_type": "video", "type": kind, "target": target });
            let post = post(attachment, "shared_story");
            assert!(post.matches(&ours, &Step::default()) && post.video().is_none(), "{kind}");
        }
        let film = json!({ "media_type": "video", "type": "video_inline", "target": target });
        let own = post(film.clone(), "added_video");
        assert!(!own.matches(&ours, &Step::default()));
        assert_eq!(own.video().as_deref(), Some("7"));
        assert_eq!(post(film, "shared_story").video(), None, "of another Page");
    }

    #[test]
    fn the_app_secret_proof_is_computed_as_documented() {
        let proof = proof_of("secret", "token");
        assert_eq!(proof[0].1, "e941110e3d2bfe82621f0e3e1434730d7305d106c5f68c87165d0b27a4611a4a");
        assert!(proof_of("", "token").is_empty());
    }
}
