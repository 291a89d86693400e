//! Facebook Pages, over the Graph API: <https://developers.facebook.com/docs/pages-api>.
//!
//! Photos are uploaded unpublished and videos in parts, so that one last call publishes the feed post, reel
//! or story. After a lost response, a video's status shows the result; a feed post is searched for among the
//! Page's latest posts, preferably by its photo ids. The cover of a video, and the invitations of other Pages to a
//! reel, need its id and follow once it is published. A draft is in no list that is documented, so that a lost one stays
//! undecided. A Page's token does not expire and can't be refreshed.
//! It is not revoked, because that would revoke the person's whole grant, with all their Pages.

mod feed;
mod insights;
mod kind;
mod media;
mod pages;

use self::{
    feed::{Comments, FeedPosts, MAX_BACKGROUND_TEXT, Post, feed_fields, feed_issues, stories, story},
    kind::PostKind,
    media::{State, Uploads, complete, finish_fields, send_video, state},
};
use crate::{
    Adapter, AltTextLimit, Auth, Call, Cap, Checkpoint, Code, CommentLimits, Committed, Counted, Deletion,
    Edit, Editing, Feature, Grant, Idempotency, Identity, Limits, Located, Media, MediaKind, MediaLimit,
    Number, OAuth2, Prepared, Preset, PublishRequest, Publisher, Publishing, Refresh, Replies, Reply, Result,
    Session, Source, TextLimit, Window,
    check::{ContainerContent, Issue, Severity},
    graph::{self, Fields, Listed, Made, MediaType},
    listing, oauth, required, schema,
    upload::{self, Uploaded},
    versions,
};
use async_trait::async_trait;
use domain::{ErrorCode, Failure};
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;
use url::Url;

/// Facebook. <https://developers.facebook.com/docs/pages-api>
struct Facebook;

const API: &str = concat!("https://graph.facebook.com/", versions::graph_api!());

const TOKEN: &str = concat!("https://graph.facebook.com/", versions::graph_api!(), "/oauth/access_token");
const SITE: &str = "https://www.facebook.com";

/// Maximum number of photos. Meta documents none; this number is known to work.
const MAX_PHOTOS: usize = 10;

/// Told about a draft, which Facebook shows to nobody.
const IN_DRAFTS: &str =
    "The post is a draft of the Page, and is published when somebody publishes it in Meta Business Suite";
/// Pause before a draft's owner is told.
const DRAFT_PAUSE: Duration = Duration::from_secs(1);
/// Meta's reads are up to two minutes behind.
const READ_LAG: Duration = Duration::from_secs(120);

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
        authorize: concat!("https://www.facebook.com/", versions::graph_api!(), "/dialog/oauth"),
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
    /// Place where the post is shown. Defaults to the feed.
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
struct Done {
    #[serde(default, deserialize_with = "required::id_if_any")]
    post_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_app_secret_proof_is_computed_as_documented() {
        let proof = proof_of("secret", "token");
        assert_eq!(proof[0].1, "e941110e3d2bfe82621f0e3e1434730d7305d106c5f68c87165d0b27a4611a4a");
        assert!(proof_of("", "token").is_empty());
    }
}
