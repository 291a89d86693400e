//! Reddit, over its Data API: <https://www.reddit.com/dev/api>.
//!
//! A post belongs to a subreddit or to its author's profile, and always has a title. Errors are returned with
//! a status of success. Media are uploaded to a storage service first, and a post with an image or video gets
//! its id later, over a socket or from the list of the author's posts. After a lost response that list is
//! searched too, because there is no idempotency key. A thread is a chain of comments. Texts are Markdown, and
//! plain ones are written so that they are shown as they are ([`markdown`]). A post may be crossposted to further
//! subreddits once it is live ([`crosspost`]).
//! <https://github.com/reddit-archive/reddit> shows how the server parses a request.

mod crosspost;
mod markdown;
mod rules;

use crate::{
    AccountProfile, Adapter, Analytics, Auth, Call, Checkpoint, CommentLimits, Committed, Deletion, Edit,
    Editing, Feature, History, Idempotency, Identity, LimitUsage, Limits, Located, Media, MediaKind,
    MediaLimit, Number, OAuth2, Options, Page, Prepared, Preset, PublishRequest, Publisher, Publishing,
    RemotePost, Replies, Reply, Result, SelectOption, Session, Source, TextLimit, Usage,
    check::{ContainerContent, Issue, Severity},
    classify,
    listing::{self, Listing, Search},
    look_up::{Findings, Subject},
    pages, required, schema, socket, storage, text,
    upload::{self, Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure, Metrics};
use regex::Regex;
use reqwest::Body;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock, time::Duration};
use uuid::Uuid;

/// Reddit. <https://www.reddit.com/dev/api>
struct Reddit;

const API: &str = "https://oauth.reddit.com";
const SITE: &str = "https://www.reddit.com";

/// Time between two polls of a post.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Time before the first poll: the socket does not repeat a message.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(100);
/// Length of the window of the rate limit.
const RATE_WINDOW: Duration = Duration::from_mins(10);
/// Time limit of waiting on the socket.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(10);
/// Time until an image or video appears in the lists.
const LISTING_LAG: TimeDelta = TimeDelta::minutes(10);
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 300;
/// Maximum number of images in a gallery.
const MAX_GALLERY: usize = 20;
/// Duration of a poll, in days.
const POLL_DAYS: u8 = 3;
/// Wait after a quota without a reset time.
const QUOTA_BACKOFF: Duration = Duration::from_secs(3600);
/// Poster of a video without an image.
const POSTER: &[u8] = include_bytes!("poster.png");

const fn picture(kind: MediaKind, mimes: &'static [&'static str]) -> MediaLimit {
    MediaLimit { kind, count: 0..=MAX_GALLERY, mimes, max_bytes: 20 << 20, ..MediaLimit::ANY }
}

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "reddit",
    name: "Reddit",
    limits: Limits {
        text: TextLimit::characters(40_000),
        media: &[
            picture(MediaKind::Image, &["image/jpeg", "image/png"]),
            picture(MediaKind::Gif, &["image/gif"]),
            MediaLimit {
                kind: MediaKind::Video,
                count: 0..=1,
                mimes: &["video/mp4", "video/quicktime"],
                max_bytes: 1 << 30,
                duration: Some(Duration::ZERO..=Duration::from_secs(15 * 60)),
                ..MediaLimit::ANY
            },
        ],
        // An image with a video is its poster, and a gallery accepts GIFs.
        mixed_media: true,
        replies: Replies::Thread,
        publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(30) },

        comment: Some(CommentLimits { text: TextLimit::characters(10_000), media: &[], has_alt_text: false }),
        reply_settings: &["text_format"],
        numbers: &[Number::max("characters of a title", MAX_TITLE)],
        sources: &[Source { url: "https://www.reddit.com/dev/api", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.reddit.com/api/v1/authorize",
        token: "https://www.reddit.com/api/v1/access_token",
        scopes: &["identity", "submit", "read", "edit", "flair", "history", "mysubreddits"],
        // A lost post is looked up in the user's history.
        features: &[
            (Feature::Publishing, &[&["identity", "submit", "read", "history"]]),
            (Feature::Deletion, &[&["edit"]]),
            (Feature::Editing, &[&["edit"]]),
        ],
        presets: &[Preset { name: "publishing", scopes: &["identity", "submit", "read", "history"] }],
        // Without it there is no refresh token.
        authorize_parameters: &[("duration", "permanent")],
        revoke: Some("https://www.reddit.com/api/v1/revoke_token"),
        // A revoked token has no error code of its own, only the number of the status.
        revoked_errors: &["400", "invalid_grant"],
        user_agent: Some(agent),
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &Reddit,
    analytics: Some(&Reddit),
    history: Some(&Reddit),
    deletion: Some(&Reddit),
    editing: Ok(&Reddit),
    options: Some(&Reddit),
    caps: &[],
    usage: Some(&Reddit),
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Name of the subreddit; options/subreddits lists them. Defaults to the account's own profile.
    #[schemars(regex(pattern = SUBREDDIT))]
    subreddit: Option<String>,
    /// Id or URL of a post on Reddit to crosspost into the subreddit. The crosspost has a title, and no text of its own.
    #[schemars(
        length(min = 1, max = 2048),
        extend("kinds" = ["crosspost"], "excludes" = ["media", "url", "poll"])
    )]
    crosspost: Option<String>,
    /// Further subreddits that the post is crossposted to, with the same title, once it is live. What one of them refuses is
    /// told in the post's timeline. A crosspost of another post is crossposted as that one is.
    #[schemars(length(max = crosspost::MAX_SUBREDDITS), inner(regex(pattern = SUBREDDIT)))]
    crosspost_to: Option<Vec<String>>,
    /// Title of the post. Defaults to the text's first line, which then is not repeated below, or to the file name.
    #[schemars(length(min = 1, max = MAX_TITLE))]
    title: Option<String>,
    /// Format of the text, and of comments. `plain` shows a text as it is written; `markdown` lets Reddit read its
    /// Markdown, where single line breaks are none and `#` begins a heading. The title is plain in both.
    #[schemars(extend("default" = "plain"))]
    text_format: Option<TextFormat>,
    /// Kind of post. Defaults to what media and url imply. A videogif is a video without sound that repeats.
    kind: Option<Kind>,
    /// URL of a link post. Defaults to the first link of the text.
    #[schemars(length(max = 2048), extend("kinds" = ["link"], "format" = "uri"))]
    url: Option<String>,
    /// Id or text of the post's flair; options/flairs lists those of a subreddit.
    #[schemars(length(min = 1))]
    flair: Option<String>,
    /// Text of a flair that the author may edit.
    #[schemars(length(max = 64), extend("with" = "flair"))]
    flair_text: Option<String>,
    /// A poll, for a post without media.
    #[schemars(extend("kinds" = ["poll"], "excludes" = ["media", "url"]))]
    poll: Option<Poll>,
    /// Captions of a gallery's images, in order.
    #[schemars(length(max = MAX_GALLERY), inner(length(max = 180)), extend("kinds" = ["gallery"]))]
    captions: Option<Vec<String>>,
    /// Marks the post as for adults only.
    nsfw: Option<bool>,
    /// Marks the post as a spoiler.
    spoiler: Option<bool>,
    /// Notifies the author of comments.
    #[schemars(extend("default" = true))]
    sendreplies: Option<bool>,
    /// Allows a link that the subreddit has already.
    #[schemars(extend("kinds" = ["link"], "default" = true))]
    resubmit: Option<bool>,
}

/// Name of a subreddit or a profile, with or without `r/` or `u/`.
const SUBREDDIT: &str = "^/?([rRuU]/)?[A-Za-z0-9_-]{2,24}$";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
struct Poll {
    #[schemars(length(min = 2, max = 6), inner(length(min = 1, max = 120)))]
    options: Vec<String>,
    /// Time to vote, in days; 3 without it.
    #[schemars(range(min = 1, max = 7))]
    duration_days: Option<u8>,
}

domain::string_enum! {
    /// Kind of post, by Reddit's names; `gallery` and `poll` are our own.
    #[derive(JsonSchema)]
    Kind, "kind of post" {
        Text = "self",
        Link = "link",
        Crosspost = "crosspost",
        Image = "image",
        Gallery = "gallery",
        Poll = "poll",
        Video = "video",
        Videogif = "videogif",
    }
}

domain::string_enum! {
    /// Format of a text.
    #[derive(JsonSchema)]
    TextFormat, "format of a text" {
        Plain = "plain",
        Markdown = "markdown",
    }
}

impl Settings {
    /// Returns a text as Reddit gets it.
    fn format<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        match (self.text_format, text.into()) {
            (Some(TextFormat::Markdown), text) => text,
            (None | Some(TextFormat::Plain), text) => Cow::Owned(markdown::escape(&text)),
        }
    }

    /// Returns true if Reddit keeps this text as it was sent.
    fn is_text(&self, kept: &Option<String>, text: &str) -> bool {
        same(kept, &self.format(text))
    }

    /// Returns the subreddit, or the account's own profile.
    fn subreddit(&self, cx: &Session<'_>) -> String {
        self.subreddit.as_deref().map_or_else(|| own(cx), place)
    }

    /// Returns the boolean settings with their defaults.
    fn flags(&self) -> [(&'static str, bool); 4] {
        [
            ("nsfw", self.nsfw.unwrap_or(false)),
            ("spoiler", self.spoiler.unwrap_or(false)),
            ("sendreplies", self.sendreplies.unwrap_or(true)),
            ("resubmit", self.resubmit.unwrap_or(true)),
        ]
    }
}

/// Returns a setting that is not blank.
fn given(setting: &Option<String>) -> Option<&str> {
    setting.as_deref().filter(|text| !text.trim().is_empty())
}

#[async_trait]
impl Publisher for Reddit {
    fn post_kind(&self, main: &ContainerContent<'_>, settings: &Value) -> Option<&'static str> {
        let settings: Settings = schema::read(settings).ok()?;
        Some(PostKind::of(main.media, main.text, &settings).ok()?.kind().as_str())
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        let objection = PostKind::of(main.media, main.text, &settings).err();
        let issue = |message| {
            Issue::of_main(Severity::Error, "settings_conflict", "media", format!("reddit: {message}"))
        };
        let mut issues: Vec<_> = objection.into_iter().map(issue).collect();
        issues.extend(crosspost::objections(&settings).into_iter().map(|(path, message)| {
            let message = format!("{} {message}", ADAPTER.id);
            let path = ["config".into(), ADAPTER.id.into()].into_iter().chain(path).collect();
            Issue { path, ..Issue::of_setting(Severity::Error, "setting_invalid", ADAPTER.id, "", message) }
        }));
        let (captions, pictures) = (settings.captions.as_ref().map_or(0, Vec::len), main.media.len());
        if pictures > 1 && captions > pictures {
            let message =
                format!("reddit takes a caption for each picture, and there are {captions} for {pictures}");
            issues.push(Issue::of_setting(
                Severity::Error,
                "setting_invalid",
                ADAPTER.id,
                "captions",
                message,
            ));
        }
        if settings.crosspost.is_some()
            && let (title, text) = title_and_text(main.text, &[], &settings)
            && !text.trim().is_empty()
            && text.trim() != title
        {
            let message = "reddit shows no text below the title of a crosspost".to_owned();
            issues.push(Issue::of_main(Severity::Warning, "text_not_shown", "content", message));
        }
        let first = main.text.trim().lines().next().unwrap_or_default().trim();
        if given(&settings.title).is_none()
            && let (cut, true) = text::shorten(first, MAX_TITLE)
        {
            let source = ("content", "the text's first line");
            issues.push(Issue::title_cut(ADAPTER.id, MAX_TITLE, source, &cut));
        }
        issues
    }

    fn sent_text<'a>(&self, position: usize, text: &'a str, settings: &Value) -> Cow<'a, str> {
        let Ok(settings) = schema::read::<Settings>(settings) else { return Cow::Borrowed(text) };
        match position {
            0 => settings.format(title_and_text(text, &[], &settings).1),
            _ => settings.format(text),
        }
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        let settings = schema::read::<Settings>(&subject.settings);
        settings.is_ok_and(|settings| {
            settings.subreddit.is_some()
                || given(&settings.flair).is_some()
                || settings.crosspost.is_some()
                || !settings.crosspost_to().is_empty()
        })
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings = schema::read(&subject.settings)?;
        rules::look_up(cx, subject, &settings, found).await?;
        crosspost::look_up(cx, subject, &settings, found).await
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        let status = reply.status.as_u16();
        match status {
            200..=299 => refusal(&reply.body),
            400 => {
                let message = reply.body["explanation"].as_str()?;
                let reason = reply.body["reason"].as_str().unwrap_or("BAD_REQUEST");
                Some(Failure::rejected(400, format!("{message} ({reason})")))
            }
            // Requests for an unknown subreddit are sent to the search.
            300..=399 if reply.header("location").is_some_and(|to| to.contains("/subreddits/search")) => {
                Some(Failure::rejected(404, "there is no subreddit of this name"))
            }
            // Reddit's edge blocks networks and user agents, for minutes or for good, with a page.
            403 if !reply.body.is_object() => Some(Failure::network(
                "Reddit's network security blocked the request: the operator's network or user agent is not welcome",
                false,
            )),
            403 if reply.header("www-authenticate").is_some_and(|why| why.contains("insufficient_scope")) => {
                let message =
                    "the account was connected without a permission that this needs; connect it again";
                Some(Failure::rejected(403, message))
            }
            // A subreddit that is closed to the account: a new token does not help.
            403 => {
                let message = match reply.body["reason"].as_str() {
                    Some(reason) => format!("{} ({reason})", classify::message(reply)),
                    None => classify::message(reply),
                };
                Some(Failure::rejected(403, message))
            }
            429 => Some(Failure::rate_limited(classify::message(reply), wait(reply))),
            _ => None,
        }
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let me = me(cx).await?;
        let title = me.subreddit.and_then(|own| own.title).filter(|title| !title.trim().is_empty());
        // The image's parameters are signed and expire.
        let picture = me.icon_img.as_deref().and_then(|url| url.split('?').next());
        Ok(vec![Identity {
            profile: AccountProfile {
                display_name: title.unwrap_or_else(|| me.name.clone()),
                profile_url: Some(format!("{SITE}/user/{}/", me.name)),
                account_type: "profile".to_owned(),
                profile_image_url: picture.filter(|url| !url.is_empty()).map(str::to_owned),
                network_unique_id: me.id,
                username: me.name,
            },
            grant: None,
        }])
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        match me(cx).await?.is_suspended {
            true => Err(Failure::rejected(403, "Reddit has suspended the account")),
            false => Ok(()),
        }
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        if post.reply_to.is_some() {
            return Ok(Prepared::Ready(at));
        }
        let (mut step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        let kind = post_kind(post, &settings)?;
        if step.flair.is_none()
            && let Some(flair) = given(&settings.flair)
        {
            step.flair = Some(flair_id(cx, &settings.subreddit(cx), flair).await?);
        }
        if let PostKind::Crosspost(source) = &kind
            && step.parents.is_empty()
        {
            // A list may show a crosspost as one of its original.
            step.parents = [Some(source.clone()), thing(cx, source).await?.crosspost_parent]
                .into_iter()
                .flatten()
                .collect();
            cx.save(&step).await?;
        }
        if step.assets.is_empty() && !post.media.is_empty() {
            open(cx, &settings.subreddit(cx), &kind).await?;
        }
        upload::advance(self, cx, &post.media, &mut step, |step| &mut step.assets).await?;
        let has_poster =
            step.poster.is_some() || post.media.iter().any(|media| media.kind == MediaKind::Image);
        if matches!(kind, PostKind::Video | PostKind::Videogif) && !has_poster {
            let (name, mime) = ("poster.png", "image/png");
            let file = storage::File { name, mime, length: POSTER.len() as u64, body: POSTER.into() };
            step.poster = Some(send(cx, file).await?.url);
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        if let Some(reply) = &post.reply_to {
            let text = post.settings::<Settings>()?.format(post.text.as_str());
            return comment(cx, &reply.parent, &text).await;
        }
        let (mut step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        let kind = post_kind(post, &settings)?;
        let answer = match &kind {
            PostKind::Gallery => gallery(cx, post, &settings, &step)?,
            PostKind::Poll(question) => poll(cx, post, &settings, question, &step),
            _ => single(cx, post, &settings, &kind, &step)?,
        }
        .reply()
        .await?;
        let data = &answer.body["json"]["data"];
        // A gallery has a full id, others have a name as well.
        let id = [&data["name"], &data["id"]].into_iter().find_map(Value::as_str);
        if let Some(id) = id.filter(|id| required::is_id(id)).map(|id| fullname("t3", id)) {
            if settings.crosspost_to().is_empty() {
                return Ok(Committed::Live(id));
            }
            step.post = Some(id);
            return Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::ZERO });
        }
        if !data.is_object() {
            return Err(unreadable());
        }
        step.socket = data["websocket_url"].as_str().map(str::to_owned);
        step.is_accepted = true;
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: FIRST_POLL_DELAY })
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let (step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        if let Some(reply) = &post.reply_to {
            let is_ours = |thing: &Thing| {
                thing.parent_id.as_deref() == Some(&reply.parent) && settings.is_text(&thing.body, &post.text)
            };
            return listing::locate(&Published { cx, list: "comments", is_ours }, post).await;
        }
        let located = match step.post.clone().filter(|_| !post.is_restored) {
            Some(id) => Located::certain(id),
            None => find(cx, post, &settings, &step).await?,
        };
        crosspost::follow(cx, post, &settings, step, located).await
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        match thing(cx, id).await {
            Ok(thing) => Ok(thing.address(cx)),
            // Leads to the post as well.
            Err(failure) if failure.code.is_permanent() && id.starts_with("t3_") => {
                Ok(cx.transport.rewrite_url(&format!("{SITE}{}", short_path(id))))
            }
            Err(failure) => Err(failure),
        }
    }
}

#[async_trait]
impl Analytics for Reddit {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        Ok(thing(cx, id).await?.metrics())
    }
}

#[async_trait]
impl History for Reddit {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let page = list(cx, &format!("/user/{}/submitted", cx.account.username), cursor).await?;
        Ok(page.map(|thing| RemotePost {
            url: thing.address(cx),
            text: thing.text(),
            media: thing.media(),
            published_at: thing.created_at(),
            metrics: thing.metrics(),
            id: thing.name,
        }))
    }
}

#[async_trait]
impl Deletion for Reddit {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        named(cx, cx.post(format!("{API}/api/del"))).form(&[("id", id)]).send_ok().await
    }
}

/// <https://www.reddit.com/dev/api#POST_api_editusertext>
#[async_trait]
impl Editing for Reddit {
    fn objection(&self, edit: &Edit) -> Option<String> {
        let settings = schema::read::<Settings>(&edit.settings).ok().filter(|_| !edit.is_reply())?;
        let kind = PostKind::of(&[], &edit.before, &settings);
        if edit.has_media || kind != Ok(PostKind::Text) {
            return Some(
                "Reddit lets apps change the text of a text post or a comment, and of no other post"
                    .to_owned(),
            );
        }
        let [before, after] =
            [&edit.before, edit.after()].map(|text: &str| title_and_text(text, &[], &settings).0);
        (before != after).then(|| {
            format!("Reddit lets nobody change a title, which is the text's first line here: it has to stay {before:?}")
        })
    }

    // A text that is set again is the same text.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        let Some(text) = &edit.text else { return Ok(()) };
        let body = self.sent_text(usize::from(edit.is_reply()), text, &edit.settings);
        named(cx, cx.post(format!("{API}/api/editusertext")))
            .form(&[("api_type", "json"), ("thing_id", id), ("text", &body)])
            .send_ok()
            .await
    }
}

#[async_trait]
impl Usage for Reddit {
    /// Reads the headers that every answer has. Reddit documents no number of posts.
    async fn usage(&self, cx: &Session<'_>) -> Result<Vec<LimitUsage>> {
        let reply = read(cx, "/api/v1/me").reply().await?;
        // Values may have a fraction: `599.0`.
        let header = |name: &str| {
            let text = reply.headers.get(name)?.to_str().ok()?;
            text.split('.').next()?.trim().parse::<u32>().ok()
        };
        let [used, left, rest] =
            ["x-ratelimit-used", "x-ratelimit-remaining", "x-ratelimit-reset"].map(header);
        let (Some(used), Some(left), Some(rest)) = (used, left, rest) else { return Ok(Vec::new()) };
        Ok(vec![LimitUsage {
            name: "requests".to_owned(),
            used: used.into(),
            limit: u64::from(used) + u64::from(left),
            window_seconds: RATE_WINDOW.as_secs(),
            resets_at: Some(reply.at + TimeDelta::seconds(rest.into())),
            is_observed: true,
        }])
    }
}

#[async_trait]
impl Options for Reddit {
    fn kinds(&self) -> &'static [&'static str] {
        &["subreddits", "flairs"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        match (kind, parent) {
            ("subreddits", _) => subreddits(cx).await,
            ("flairs", Some(parent)) => match place(parent) {
                name if is_name(&name) => {
                    let flairs = flairs(cx, &name).await?;
                    Ok(flairs
                        .into_iter()
                        .filter(|flair| !flair.mod_only)
                        .map(|flair| SelectOption { id: flair.id, name: flair.text })
                        .collect())
                }
                _ => Err(Failure::rejected(422, format!("{parent:?} is no subreddit's name"))),
            },
            ("flairs", None) => {
                Err(Failure::rejected(422, "flairs belong to a subreddit: name it as parent"))
            }
            _ => Err(Failure::rejected(422, format!("Reddit has no list of {kind}"))),
        }
    }
}

/// Kind of post, by media and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PostKind {
    Text,
    Link(String),
    /// A crosspost of the post with this full name.
    Crosspost(String),
    Picture,
    Gallery,
    Poll(Poll),
    Video,
    /// A video without sound that repeats.
    Videogif,
}

impl PostKind {
    /// Returns the kind of a post, or an error message.
    fn of(media: &[Media], text: &str, settings: &Settings) -> Result<Self, String> {
        let (wanted, url) = (settings.kind, settings.url.as_deref());
        let videos = media.iter().filter(|medium| medium.kind == MediaKind::Video).count();
        let gifs = media.iter().any(|medium| medium.kind == MediaKind::Gif);
        if settings.poll.is_some() && !(media.is_empty() && url.is_none()) {
            return Err("a poll takes neither media nor a `url`".into());
        }
        if url.is_some() && !(media.is_empty() && wanted.is_none_or(|kind| kind == Kind::Link)) {
            return Err("only a link without media takes a `url`".into());
        }
        let kind = match (media.len(), videos) {
            // An invalid one is told by itself.
            _ if settings.crosspost.is_some() => {
                let written = settings.crosspost.as_deref().unwrap_or_default();
                Self::Crosspost(named_post(written).unwrap_or_default())
            }
            (0, _) if settings.poll.is_none() && (url.is_some() || wanted == Some(Kind::Link)) => {
                let links = || text::links(text).into_iter().filter(|link| link.scheme);
                let first = || links().map(|link| &text[link.range]).find(|url| text::is_web_address(url));
                let url = url.or_else(first);
                Self::Link(url.ok_or("a link needs a `url`, or a valid one in its text")?.to_owned())
            }
            (0, _) if wanted == Some(Kind::Crosspost) => {
                return Err("a crosspost needs `crosspost`".into());
            }
            (0, _) if wanted == Some(Kind::Poll) && settings.poll.is_none() => {
                return Err("a poll needs options".into());
            }
            (0, _) => settings.poll.clone().map_or(Self::Text, Self::Poll),
            (1 | 2, 1) if !gifs && wanted == Some(Kind::Videogif) => Self::Videogif,
            (1 | 2, 1) if !gifs => Self::Video,
            (_, 1..) => return Err("a video takes one image beside it, its poster, and nothing else".into()),
            (1, 0) => Self::Picture,
            (2..=MAX_GALLERY, 0) => Self::Gallery,
            (count, 0) => {
                return Err(format!("a gallery takes at most {MAX_GALLERY} pictures, and there are {count}"));
            }
        };
        match wanted {
            Some(wanted) if wanted != kind.kind() => {
                Err(format!("the kind is to be {wanted}, and the media make it {}", kind.kind()))
            }
            _ => Ok(kind),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Text => Kind::Text,
            Self::Link(_) => Kind::Link,
            Self::Crosspost(_) => Kind::Crosspost,
            Self::Picture => Kind::Image,
            Self::Gallery => Kind::Gallery,
            Self::Poll(_) => Kind::Poll,
            Self::Video => Kind::Video,
            Self::Videogif => Kind::Videogif,
        }
    }
}

fn post_kind(post: &PublishRequest, settings: &Settings) -> Result<PostKind> {
    PostKind::of(&post.media, &post.text, settings).map_err(|message| Failure::rejected(422, message))
}

/// Returns the title, and the text below it.
fn title_and_text<'a>(whole: &'a str, media: &[Media], settings: &Settings) -> (String, Cow<'a, str>) {
    if let Some(title) = given(&settings.title) {
        return (title.trim().to_owned(), Cow::Borrowed(whole));
    }
    let text = whole.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim();
    match first.chars().count() {
        0 => {
            let name = media.first().map_or("", |media| media.filename.as_str());
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).trim();
            let stem = if stem.is_empty() { "Untitled" } else { stem };
            (text::shorten(stem, MAX_TITLE).0.into_owned(), Cow::Borrowed(""))
        }
        1..=MAX_TITLE => (first.to_owned(), Cow::Borrowed(rest.trim())),
        _ => (text::shorten(first, MAX_TITLE).0.into_owned(), Cow::Borrowed(whole)),
    }
}

/// Returns the canonical name of a subreddit.
fn place(written: &str) -> String {
    let name = written.trim().trim_start_matches('/');
    match name.split_once('/') {
        Some(("u" | "U", user)) => format!("u_{user}"),
        Some(("r" | "R", name)) => name.to_owned(),
        _ => name.to_owned(),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn own(cx: &Session<'_>) -> String {
    format!("u_{}", cx.account.username)
}

/// Adds a user agent in Reddit's form: Reddit rejects those of HTTP libraries.
fn named(cx: &Session<'_>, call: Call) -> Call {
    call.header("user-agent", agent(cx))
}

/// Returns the user agent: <https://github.com/reddit-archive/reddit/wiki/API>.
fn agent(cx: &Session<'_>) -> String {
    let (version, user) = (env!("CARGO_PKG_VERSION"), &cx.account.username);
    match is_name(user) {
        true => format!("web:fanfare:v{version} (by /u/{user})"),
        false => format!("web:fanfare:v{version}"),
    }
}

/// Returns the path of a post that leads to it without its subreddit and title.
fn short_path(id: &str) -> String {
    format!("/comments/{}/", id.trim_start_matches("t3_"))
}

/// Creates a read request whose response contains unescaped texts.
fn read(cx: &Session<'_>, path: &str) -> Call {
    named(cx, cx.get(format!("{API}{path}"))).query(&[("raw_json", "1")])
}

async fn me(cx: &Session<'_>) -> Result<Me> {
    read(cx, "/api/v1/me").send().await
}

/// Returns one page of a list, newest first.
async fn list(cx: &Session<'_>, path: &str, after: Option<&str>) -> Result<Page<Thing>> {
    let call = read(cx, path).query(&[("sort", "new"), ("limit", "100")]);
    let page: Envelope = match after {
        Some(after) => call.query(&[("after", after)]).send().await?,
        None => call.send().await?,
    };
    let things = page.data.children.into_iter().map(|child| child.data);
    Ok(Page { items: things.collect(), next: page.data.after })
}

/// A list of the account's posts, and the values that its entries are compared with.
struct Published<'a, F> {
    cx: &'a Session<'a>,
    list: &'a str,
    is_ours: F,
}

#[async_trait]
impl<F: Fn(&Thing) -> bool + Send + Sync> Listing for Published<'_, F> {
    type Item = Thing;
    /// Reddit lists the latest thousand.
    const MAX_PAGES: usize = 10;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Thing>> {
        list(self.cx, &format!("/user/{}/{}", self.cx.account.username, self.list), cursor).await
    }

    fn id(thing: &Thing) -> &str {
        &thing.name
    }

    fn published_at(thing: &Thing) -> Option<DateTime<Utc>> {
        Some(thing.created_at())
    }

    fn matches(&self, thing: &Thing, _post: &PublishRequest) -> bool {
        (self.is_ours)(thing)
    }
}

/// Returns a post or comment; fails if it does not exist.
async fn thing(cx: &Session<'_>, id: &str) -> Result<Thing> {
    let page: Envelope = read(cx, "/api/info").query(&[("id", id)]).send().await?;
    let found = page.data.children.into_iter().map(|child| child.data);
    found
        .into_iter()
        .find(|thing| thing.name == id && thing.author.as_deref() != Some("[deleted]"))
        .ok_or_else(|| Failure::rejected(404, format!("{id} is not there")))
}

/// Finds a post whose id is not known yet.
async fn find(cx: &Session<'_>, post: &PublishRequest, settings: &Settings, step: &Step) -> Result<Located> {
    let kind = post_kind(post, settings)?;
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let place = settings.subreddit(cx);
    let is_kind = |thing: &Thing| match &kind {
        PostKind::Crosspost(source) => thing.is_crosspost_of(&step.parents_of(source)),
        _ => thing.crosspost_parent.is_none(),
    };
    let is_ours = |thing: &Thing| {
        thing.is_in(&place)
            && same(&thing.title, &title)
            && is_kind(thing)
            && thing.is_self == matches!(kind, PostKind::Text | PostKind::Poll(_))
            && thing.is_video == matches!(kind, PostKind::Video | PostKind::Videogif)
            && (!thing.is_self || settings.is_text(&thing.selftext, &text))
    };
    // The socket belongs to this upload; a list may contain another post with the same content.
    if let Some(socket) = &step.socket
        && let Some(message) = socket::message(cx, socket, SOCKET_TIMEOUT).await
    {
        if message["type"] == "failed" {
            let message = "Reddit could not process the medium and does not say why";
            return Ok(Located::Failed(Failure::rejected(422, message)));
        }
        if let Some(id) = message["payload"]["redirect"].as_str().and_then(linked) {
            return Ok(Located::certain(id));
        }
    }
    let located = match listing::find(&Published { cx, list: "submitted", is_ours }, post).await? {
        Search::Post(found) if found.has_file(&step.assets) => return Ok(Located::certain(found.name)),
        Search::Post(found) => return Ok(Located::by_text(found.name)),
        Search::Absent => Located::Absent,
        Search::TooMany => Located::TooMany,
    };
    let may_come = matches!(kind, PostKind::Picture | PostKind::Video | PostKind::Videogif)
        && (cx.now)() - post.begun() < LISTING_LAG;
    Ok(match step.is_accepted || may_come {
        true => Located::Processing { poll_after: POLL_INTERVAL },
        false => located,
    })
}

/// Checks that a subreddit accepts this kind of post, before up to a gigabyte is uploaded.
async fn open(cx: &Session<'_>, name: &str, kind: &PostKind) -> Result<()> {
    if name.eq_ignore_ascii_case(&own(cx)) {
        return Ok(());
    }
    let about: Value = read(cx, &format!("/r/{name}/about")).send().await?;
    match rules::closed_to(&about, kind) {
        Some(what) => Err(Failure::rejected(403, format!("r/{name} takes no {what}"))),
        None => Ok(()),
    }
}

/// Returns the account's own profile and the subreddits that it subscribes to.
async fn subreddits(cx: &Session<'_>) -> Result<Vec<SelectOption>> {
    let own = SelectOption { id: own(cx), name: format!("u/{}", cx.account.username) };
    let read = pages(|after: Option<String>| async move {
        list(cx, "/subreddits/mine/subscriber", after.as_deref()).await
    })
    .await?;
    let names = read.into_iter().filter_map(|subreddit| subreddit.display_name);
    let names = names.filter(|name| required::is_id(name));
    let choices = names.map(|name| SelectOption { name: format!("r/{name}"), id: name });
    Ok(std::iter::once(own).chain(choices).collect())
}

/// Returns the flairs of a subreddit, those for its moderators too.
async fn flairs(cx: &Session<'_>, name: &str) -> Result<Vec<Flair>> {
    let answer = read(cx, &format!("/r/{name}/api/link_flair_v2")).reply().await;
    match answer.and_then(|reply| reply.read_list::<Flair>()) {
        Ok(flairs) => Ok(flairs),
        // Profiles have no flairs.
        Err(failure) if failure.code == ErrorCode::Rejected(403) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// Returns the id of a flair, given by its id or text.
async fn flair_id(cx: &Session<'_>, name: &str, flair: &str) -> Result<String> {
    if Uuid::try_parse(flair).is_ok() {
        return Ok(flair.to_owned());
    }
    let mut all = flairs(cx, name).await?;
    all.retain(|flair| !flair.mod_only);
    let known: Vec<_> = all.iter().map(|flair| flair.text.as_str()).collect();
    let found = all.iter().find(|known| known.has_text(flair));
    found.map(|flair| flair.id.clone()).ok_or_else(|| {
        let message = match known.is_empty() {
            true => format!("r/{name} has no flairs to choose from"),
            false => format!("r/{name} has no flair {flair:?}, but {}", known.join(", ")),
        };
        Failure::rejected(422, message)
    })
}

#[async_trait]
impl Upload for Reddit {
    type Ticket = Asset;

    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Asset>> {
        let body = Body::wrap_stream(cx.stream(media));
        let file = storage::File { name: &media.filename, mime: &media.mime, length: media.size_bytes, body };
        let ticket = send(cx, file).await?;
        Ok(Begun { ticket, expires_at: None, sent: Sent::Whole(Processing::Done) })
    }
}

/// Sends a file to Reddit's storage. An asset that no post uses expires.
async fn send(cx: &Session<'_>, file: storage::File<'_>) -> Result<Asset> {
    let lease: Lease = named(cx, cx.post(format!("{API}/api/media/asset.json")))
        .form(&[("filepath", file.name), ("mimetype", file.mime)])
        .send()
        .await?;
    let action = lease.args.action;
    let action = if action.starts_with("//") { format!("https:{action}") } else { action };
    let key = lease.args.fields.iter().find(|field| field.name == "key");
    let key = key.map(|field| field.value.clone()).unwrap_or_default();
    let fields = lease.args.fields.into_iter().map(|field| (field.name, field.value));
    storage::send(cx, &action, fields, file).await?;
    Ok(Asset { id: lease.asset.asset_id, url: format!("{}/{key}", action.trim_end_matches('/')) })
}

/// Returns the call that publishes a text, link, image or video.
fn single(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    kind: &PostKind,
    step: &Step,
) -> Result<Call> {
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let flair = step.flair.clone().map(|flair| ("flair_id", flair));
    let flair =
        flair.into_iter().chain(given(&settings.flair_text).map(|text| ("flair_text", text.to_owned())));
    if let PostKind::Crosspost(source) = kind {
        let mut form = crosspost::form(settings, settings.subreddit(cx), title, source);
        form.extend(flair);
        return Ok(named(cx, cx.post(format!("{API}/api/submit"))).form(&form));
    }
    let mut form = vec![
        ("api_type", "json".to_owned()),
        ("kind", kind.kind().to_string()),
        ("sr", settings.subreddit(cx)),
        ("title", title),
        ("validate_on_submit", "true".to_owned()),
    ];
    let of = |kinds: &[MediaKind]| {
        let media = post.media.iter().find(|media| kinds.contains(&media.kind))?;
        Some(step.asset(media)?.url.clone())
    };
    match kind {
        PostKind::Link(url) => form.push(("url", url.clone())),
        PostKind::Picture => {
            form.push(("url", of(&[MediaKind::Image, MediaKind::Gif]).ok_or_else(unprepared)?));
        }
        PostKind::Video | PostKind::Videogif => {
            let poster = of(&[MediaKind::Image]).or_else(|| step.poster.clone());
            form.push(("url", of(&[MediaKind::Video]).ok_or_else(unprepared)?));
            form.push(("video_poster_url", poster.ok_or_else(unprepared)?));
        }
        PostKind::Text | PostKind::Crosspost(_) | PostKind::Gallery | PostKind::Poll(_) => {}
    }
    if !text.is_empty() || *kind == PostKind::Text {
        form.push(("text", settings.format(text).into_owned()));
    }
    form.extend(flair);
    form.extend(settings.flags().into_iter().map(|(name, value)| (name, value.to_string())));
    Ok(named(cx, cx.post(format!("{API}/api/submit"))).form(&form))
}

/// Returns the call that publishes several images.
fn gallery(cx: &Session<'_>, post: &PublishRequest, settings: &Settings, step: &Step) -> Result<Call> {
    let items: Result<Vec<Value>> = post
        .media
        .iter()
        .enumerate()
        .map(|(index, media)| {
            let asset = step.asset(media).ok_or_else(unprepared)?;
            let caption = settings.captions.as_ref().and_then(|captions| captions.get(index));
            Ok(json!({ "media_id": asset.id, "caption": caption.map_or("", String::as_str), "outbound_url": "" }))
        })
        .collect();
    let body = document(cx, post, settings, step, json!({ "items": items?, "show_error_list": true }));
    Ok(named(cx, cx.post(format!("{API}/api/submit_gallery_post.json"))).json(&body))
}

/// Returns the call that publishes a poll.
fn poll(cx: &Session<'_>, post: &PublishRequest, settings: &Settings, poll: &Poll, step: &Step) -> Call {
    let question = json!({ "options": poll.options, "duration": poll.duration_days.unwrap_or(POLL_DAYS) });
    let body = document(cx, post, settings, step, question);
    named(cx, cx.post(format!("{API}/api/submit_poll_post.json"))).json(&body)
}

/// Returns the body of a submission in JSON, with its content.
fn document(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
    content: Value,
) -> Value {
    let (title, text) = title_and_text(&post.text, &post.media, settings);
    let mut body = content;
    body["api_type"] = json!("json");
    body["sr"] = json!(settings.subreddit(cx));
    body["title"] = json!(title);
    body["validate_on_submit"] = json!(true);
    if !text.is_empty() {
        body["text"] = json!(settings.format(text));
    }
    if let Some(flair) = &step.flair {
        body["flair_id"] = json!(flair);
    }
    if let Some(text) = given(&settings.flair_text) {
        body["flair_text"] = json!(text);
    }
    for (name, value) in settings.flags() {
        body[name] = json!(value);
    }
    body
}

/// Publishes a comment below a post or another comment.
async fn comment(cx: &Session<'_>, parent: &str, text: &str) -> Result<Committed> {
    let reply = named(cx, cx.post(format!("{API}/api/comment")))
        .form(&[("api_type", "json"), ("thing_id", parent), ("text", text)])
        .reply()
        .await?;
    let data = &reply.body["json"]["data"]["things"][0]["data"];
    let id = data["name"].as_str().or_else(|| data["id"].as_str());
    let id = id.filter(|id| required::is_id(id)).ok_or_else(unreadable)?;
    Ok(Committed::Live(fullname("t1", id)))
}

/// Returns an id with the prefix of its kind.
fn fullname(kind: &str, id: &str) -> String {
    if id.starts_with("t1_") || id.starts_with("t3_") { id.to_owned() } else { format!("{kind}_{id}") }
}

/// Returns the id of the post in a URL of Reddit.
fn linked(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("/comments/")?;
    let id = rest.split(['/', '?', '#']).next().filter(|id| is_name(id))?;
    Some(fullname("t3", id))
}

/// Returns the id in a URL of Reddit, without its prefix. In test mode Reddit's host is a part of the path.
fn linked_host(address: &str) -> Option<&str> {
    let mut parts = address.split(['/', '?', '#']);
    let is_host = |part: &&str| *part == "redd.it" || *part == "reddit.com" || part.ends_with(".reddit.com");
    match parts.find(is_host)? {
        "redd.it" => parts.next(),
        _ => parts.find(|part| ["comments", "gallery"].contains(part)).and_then(|_| parts.next()),
    }
}

/// Returns the full name of a post, given by its id or URL.
fn named_post(written: &str) -> Option<String> {
    let written = written.trim();
    let id = match written.contains('/') {
        false => written.strip_prefix("t3_").unwrap_or(written),
        true => linked_host(written)?,
    };
    let is_id = (1..=13).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| format!("t3_{}", id.to_ascii_lowercase()))
}

fn unreadable() -> Failure {
    Failure::upstream(502, "answered with a success that names no post")
}

fn unprepared() -> Failure {
    Failure::network("a medium was never uploaded", false)
}

/// Returns true if two texts differ in white space only, which Reddit does not keep.
fn same(kept: &Option<String>, sent: &str) -> bool {
    kept.as_deref().unwrap_or_default().split_whitespace().eq(sent.split_whitespace())
}

/// Returns the failure in a response with a status of success.
fn refusal(body: &Value) -> Option<Failure> {
    let errors = body["json"]["errors"].as_array().filter(|errors| !errors.is_empty())?;
    let code = errors[0][0].as_str().unwrap_or_default();
    let messages: Vec<_> = errors
        .iter()
        .map(|error| {
            let word = error[0].as_str().unwrap_or("an error without a name");
            error[1].as_str().map_or_else(|| word.to_owned(), |text| format!("{text} ({word})"))
        })
        .collect();
    let message = messages.join("; ");
    Some(match code {
        "RATELIMIT" => {
            let exact =
                body["json"]["ratelimit"].as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            // Rounded up: half a second too early is rejected.
            let exact = exact.map(|seconds| Duration::from_secs(seconds.ceil() as u64));
            Failure::rate_limited(message.clone(), exact.or_else(|| pause(&message)))
        }
        "QUOTA_FILLED" | "SUBREDDIT_RATELIMIT" => {
            Failure::rate_limited(message.clone(), pause(&message).or(Some(QUOTA_BACKOFF)))
        }
        "USER_REQUIRED" => Failure::token_expired(message),
        // It may be ours, from a call with a lost response.
        "ALREADY_SUB" => Failure::rejected(409, message).ambiguous(),
        "SUBREDDIT_NOEXIST" | "DELETED_LINK" | "DELETED_COMMENT" | "NO_THING_ID" => {
            Failure::rejected(404, message)
        }
        "SUBREDDIT_NOTALLOWED"
        | "SUBREDDIT_NO_ACCESS"
        | "BANNED_FROM_SUBREDDIT"
        | "IN_TIMEOUT"
        | "THREAD_LOCKED"
        | "DOMAIN_BANNED"
        | "USER_BLOCKED"
        | "GALLERIES_DISABLED"
        | "NO_CROSSPOSTS"
        | "NO_IMAGES"
        | "NO_VIDEOS" => Failure::rejected(403, message),
        _ => Failure::rejected(400, message),
    })
}

/// Returns the wait in a message: "Take a break for 4 minutes".
fn pause(message: &str) -> Option<Duration> {
    static WAIT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(\d+) (millisecond|second|minute|hour)s?").expect("the pattern is well-formed")
    });
    let found = WAIT.captures(message)?;
    let count: u64 = found[1].parse().ok()?;
    Some(match &found[2] {
        "millisecond" => Duration::from_millis(count),
        "second" => Duration::from_secs(count),
        "minute" => Duration::from_secs(count.saturating_mul(60)),
        _ => Duration::from_secs(count.saturating_mul(3600)),
    })
}

/// Returns the wait in the headers: `x-ratelimit-reset` counts seconds until the window ends.
fn wait(reply: &Reply) -> Option<Duration> {
    let reset = || reply.header("x-ratelimit-reset")?.parse().ok().map(Duration::from_secs);
    classify::retry_after(reply).or_else(reset)
}

/// The adapter's checkpoint: progress of preparing, and the result of the commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Step {
    assets: Vec<Uploaded<Asset>>,
    poster: Option<String>,
    flair: Option<String>,
    socket: Option<String>,
    is_accepted: bool,
    /// The posts as whose crosspost a crosspost may be listed: the one that is to be crossposted, and its own original.
    parents: Vec<String>,
    /// The published post.
    post: Option<String>,
    crossposts: Vec<crosspost::Crosspost>,
}

impl Step {
    /// Returns the posts as whose crossposts those of the post with this id may be listed.
    fn parents_of(&self, id: &str) -> Vec<String> {
        if self.parents.is_empty() { vec![id.to_owned()] } else { self.parents.clone() }
    }

    fn asset(&self, media: &Media) -> Option<&Asset> {
        Some(&self.assets.iter().find(|asset| asset.is_of(media))?.ticket)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asset {
    id: String,
    url: String,
}

#[derive(Deserialize)]
struct Me {
    #[serde(deserialize_with = "required::id")]
    id: String,
    name: String,
    icon_img: Option<String>,
    #[serde(default)]
    is_suspended: bool,
    subreddit: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    title: Option<String>,
}

#[derive(Deserialize)]
struct Flair {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    mod_only: bool,
}

impl Flair {
    /// Returns true for the flair's text as an author may write it.
    fn has_text(&self, written: &str) -> bool {
        self.text.trim().eq_ignore_ascii_case(written.trim())
    }
}

#[derive(Deserialize)]
struct Lease {
    args: Args,
    asset: Leased,
}

#[derive(Deserialize)]
struct Args {
    action: String,
    fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Leased {
    asset_id: String,
}

/// A listing in its envelope.
#[derive(Deserialize)]
struct Envelope {
    data: Things,
}

#[derive(Deserialize)]
struct Things {
    after: Option<String>,
    children: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    data: Thing,
}

/// A post, a comment or a subreddit.
#[cfg_attr(test, derive(Default))]
#[derive(Deserialize)]
struct Thing {
    #[serde(deserialize_with = "required::id")]
    name: String,
    display_name: Option<String>,
    author: Option<String>,
    subreddit: Option<String>,
    title: Option<String>,
    selftext: Option<String>,
    body: Option<String>,
    parent_id: Option<String>,
    crosspost_parent: Option<String>,
    is_crosspostable: Option<bool>,
    permalink: Option<String>,
    url: Option<String>,
    created_utc: Option<f64>,
    #[serde(default)]
    is_self: bool,
    #[serde(default)]
    is_video: bool,
    score: Option<i64>,
    num_comments: Option<u64>,
    num_crossposts: Option<u64>,
    view_count: Option<u64>,
    media: Option<Value>,
    gallery_data: Option<Value>,
    media_metadata: Option<BTreeMap<String, Value>>,
}

impl Thing {
    fn is_in(&self, subreddit: &str) -> bool {
        self.subreddit.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(subreddit))
    }

    fn is_crosspost_of(&self, parents: &[String]) -> bool {
        self.crosspost_parent.as_ref().is_some_and(|parent| parents.contains(parent))
    }

    /// Returns true if it shows a file that was uploaded for one post only: its id is in the address.
    fn has_file(&self, assets: &[Uploaded<Asset>]) -> bool {
        let is_shown = |address: &String| {
            assets.iter().any(|asset| address.split(['/', '.']).any(|part| part == asset.ticket.id))
        };
        self.media().iter().any(is_shown)
    }

    fn created_at(&self) -> DateTime<Utc> {
        let seconds = self.created_utc.unwrap_or_default();
        DateTime::from_timestamp_millis((seconds * 1_000.0) as i64).unwrap_or_default()
    }

    fn address(&self, cx: &Session<'_>) -> String {
        let path = self.permalink.clone().unwrap_or_else(|| short_path(&self.name));
        cx.transport.rewrite_url(&format!("{SITE}{path}"))
    }

    /// Returns the title and the text, or only the text if the title repeats its beginning.
    fn text(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let text = self.selftext.as_deref().unwrap_or_default();
        let plain = markdown::unescape(text);
        let text = plain.as_deref().unwrap_or(text);
        match title.strip_suffix('…') {
            _ if text.is_empty() => title.to_owned(),
            Some(begin) if text.starts_with(begin) => text.to_owned(),
            _ => format!("{title}\n\n{text}"),
        }
    }

    fn media(&self) -> Vec<String> {
        if let Some(all) = &self.media_metadata {
            let items = self.gallery_data.as_ref().and_then(|data| data["items"].as_array());
            let ids = items.into_iter().flatten().filter_map(|item| item["media_id"].as_str());
            let address = |id: &str| {
                let source = all.get(id)?.get("s")?;
                ["u", "gif", "mp4"].iter().find_map(|key| source[*key].as_str()).map(str::to_owned)
            };
            return ids.filter_map(address).collect();
        }
        let video = self.media.as_ref().and_then(|media| media["reddit_video"]["fallback_url"].as_str());
        let picture = self.url.as_deref().filter(|url| url.starts_with("https://i.redd.it/"));
        video.or(picture).map(str::to_owned).into_iter().collect()
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            impressions: self.view_count.unwrap_or(0),
            likes: self.score.and_then(|score| u64::try_from(score).ok()).unwrap_or(0),
            comments: self.num_comments.unwrap_or(0),
            shares: self.num_crossposts.unwrap_or(0),
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&'static str, &str)], text: &str) -> Failure {
        Reply::of(status, headers, text).into_result(&ADAPTER).unwrap_err()
    }

    #[test]
    fn each_documented_error_has_its_error_code() {
        let within = |code: &str| json!({ "json": { "errors": [[code, "in words", "field"]] } }).to_string();
        for (status, body, code, doubt) in [
            (200, within("ALREADY_SUB"), "rejected_409", true),
            (200, within("SUBREDDIT_NOEXIST"), "rejected_404", false),
            (200, within("SUBREDDIT_NOTALLOWED"), "rejected_403", false),
            (200, within("THREAD_LOCKED"), "rejected_403", false),
            (200, within("NO_CROSSPOSTS"), "rejected_403", false),
            (200, within("INVALID_CROSSPOST_THING"), "rejected_400", false),
            (200, within("DELETED_COMMENT"), "rejected_404", false),
            (200, within("TOO_LONG"), "rejected_400", false),
            (200, within("SUBMIT_VALIDATION_FLAIR_REQUIRED"), "rejected_400", false),
            (200, within("USER_REQUIRED"), "token_expired", false),
            (200, within("QUOTA_FILLED"), "rate_limited", false),
            (
                400,
                r#"{"explanation":"no such words","reason":"SUBMIT_VALIDATION_TITLE"}"#.into(),
                "rejected_400",
                false,
            ),
            (400, r#"{"message":"Bad Request","error":400}"#.into(), "rejected_400", false),
            (401, r#"{"message":"Unauthorized","error":401}"#.into(), "token_expired", false),
            (403, r#"{"message":"Forbidden","error":403,"reason":"private"}"#.into(), "rejected_403", false),
            (404, r#"{"message":"Not Found","error":404}"#.into(), "rejected_404", false),
            (403, "<html>blocked by network security".into(), "network_error", false),
            (413, "<html>".into(), "rejected_413", false),
            (429, "<html>".into(), "rate_limited", false),
            (500, "<html>".into(), "upstream_500", true),
            (520, "<html>".into(), "upstream_520", true),
        ] {
            let failure = failure(status, &[], &body);
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {body}"
            );
            assert!(!failure.is_revoked() && !failure.message.is_empty());
        }
        let search = [("location", "https://www.reddit.com/subreddits/search?q=nothing")];
        assert_eq!(failure(302, &search, "").code, ErrorCode::Rejected(404));
        assert_eq!(failure(302, &[], "").code, ErrorCode::Upstream(502));
        let both = json!({ "json": { "errors": [["NO_TEXT", "we need something here", "title"], ["BAD_URL", null]] } });
        assert_eq!(failure(200, &[], &both.to_string()).message, "we need something here (NO_TEXT); BAD_URL");
    }

    #[test]
    fn a_rate_limit_returns_the_wait_from_the_response() {
        let wait_of = |text: &str, more: Value| {
            let mut body = json!({ "json": { "errors": [["RATELIMIT", text, "ratelimit"]] } });
            body["json"]["ratelimit"] = more;
            failure(200, &[], &body.to_string()).retry_after
        };
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(wait_of("Take a break for 4 minutes before trying again.", Value::Null), seconds(240));
        assert_eq!(
            wait_of("you are doing that too much. try again in 9 minutes.", json!(530.2)),
            seconds(531)
        );
        assert_eq!(wait_of("Take a break for 1 second", Value::Null), seconds(1));
        assert_eq!(
            wait_of("Take a break for 900 milliseconds", Value::Null),
            Some(Duration::from_millis(900))
        );
        assert_eq!(wait_of("Take a break for 2 hours", Value::Null), seconds(7200));
        assert_eq!(wait_of("Take a break", Value::Null), None);
        assert_eq!(failure(429, &[("x-ratelimit-reset", "17")], "").retry_after, seconds(17));
        let both = [("retry-after", "4"), ("x-ratelimit-reset", "17")];
        assert_eq!(failure(429, &both, "").retry_after, seconds(4));
    }

    fn post(text: &str, settings: Value) -> PublishRequest {
        PublishRequest { text: text.to_owned(), settings, ..PublishRequest::of_test() }
    }

    fn media(kind: MediaKind) -> Media {
        Media {
            id: Uuid::nil(),
            kind,
            mime: String::new(),
            filename: "a film.of mine.mp4".into(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn the_title_is_the_setting_or_the_first_line() {
        let long = "l".repeat(MAX_TITLE + 1);
        let cut = format!("{}…", "l".repeat(MAX_TITLE - 1));
        for (text, settings, title, below) in [
            ("text", json!({ "title": "A title" }), "A title", "text"),
            ("one line", json!({}), "one line", ""),
            ("\n first \n\nsecond\nthird ", json!({}), "first", "second\nthird"),
            (&long, json!({}), &cut, &long),
            ("", json!({}), "Untitled", ""),
        ] {
            let post = post(text, settings);
            assert_eq!(
                title_and_text(&post.text, &post.media, &post.settings().unwrap()),
                (title.to_owned(), Cow::Borrowed(below)),
                "{text}"
            );
        }
        let mut film = post(" ", json!({}));
        film.media = vec![media(MediaKind::Video)];
        assert_eq!(title_and_text(&film.text, &film.media, &film.settings().unwrap()).0, "a film.of mine");
    }

    #[test]
    fn the_kind_of_a_post_follows_from_media_and_settings() {
        use MediaKind::{Gif, Image, Video};
        let kind = |media: &[Media], text: &str, settings: &Value| {
            PostKind::of(media, text, &schema::read(settings).expect("the settings of a test"))
        };
        for (kinds, settings, word) in [
            (&[][..], json!({}), Some("self")),
            (&[], json!({ "kind": "self" }), Some("self")),
            (&[], json!({ "url": "https://example.com" }), Some("link")),
            (&[], json!({ "kind": "link" }), Some("link")),
            (&[], json!({ "kind": "self", "url": "https://example.com" }), None),
            (&[], json!({ "crosspost": "4bbe4b" }), Some("crosspost")),
            (&[], json!({ "crosspost": "4bbe4b", "kind": "crosspost" }), Some("crosspost")),
            (&[], json!({ "crosspost": "4bbe4b", "kind": "self" }), None),
            (&[], json!({ "kind": "crosspost" }), None),
            (&[], json!({ "poll": { "options": ["a", "b"] } }), Some("poll")),
            (&[], json!({ "kind": "poll" }), None),
            (&[], json!({ "kind": "self", "poll": { "options": ["a", "b"] } }), None),
            (&[], json!({ "url": "https://example.com", "poll": { "options": ["a", "b"] } }), None),
            (&[Image], json!({ "poll": { "options": ["a", "b"] } }), None),
            (&[], json!({ "kind": "image" }), None),
            (&[Image], json!({}), Some("image")),
            (&[Gif], json!({ "kind": "image" }), Some("image")),
            (&[Image], json!({ "kind": "gallery" }), None),
            (&[Image], json!({ "url": "https://example.com" }), None),
            (&[Image, Gif], json!({}), Some("gallery")),
            (&[Image; 21], json!({}), None),
            (&[Video], json!({}), Some("video")),
            (&[Video], json!({ "kind": "videogif" }), Some("videogif")),
            (&[Video, Image], json!({}), Some("video")),
            (&[Video, Gif], json!({}), None),
            (&[Video, Image, Image], json!({}), None),
            (&[Video], json!({ "kind": "self" }), None),
        ] {
            let media: Vec<_> = kinds.iter().copied().map(media).collect();
            let kind = kind(&media, "see https://example.com/a.", &settings);
            assert_eq!(
                kind.as_ref().ok().map(|kind| kind.kind().as_str()),
                word,
                "{kinds:?} {settings} {kind:?}"
            );
        }
        let link = kind(&[], "see https://example.com/a.", &json!({ "kind": "link" }));
        assert_eq!(link, Ok(PostKind::Link("https://example.com/a".into())));
        assert!(kind(&[], "see example.com", &json!({ "kind": "link" })).is_err());
        // There is no such port.
        let text = "see https://example.com:99999/a";
        assert!(kind(&[], text, &json!({ "kind": "link" })).is_err());
        let link = kind(&[], &format!("{text} https://example.com/b"), &json!({ "kind": "link" }));
        assert_eq!(link, Ok(PostKind::Link("https://example.com/b".into())));
    }

    #[test]
    fn a_subreddit_is_recognized_in_every_spelling() {
        for (written, name) in [
            ("rust", "rust"),
            ("r/rust", "rust"),
            ("/r/rust", "rust"),
            ("u/ada", "u_ada"),
            ("u_ada", "u_ada"),
        ] {
            assert_eq!(place(written), name);
        }
        let id = linked("https://www.reddit.com/r/test/comments/4bbe4b/a_title/");
        assert_eq!(id.as_deref(), Some("t3_4bbe4b"));
        assert_eq!(linked("https://www.reddit.com/r/test/"), None);
    }

    #[test]
    fn a_published_post_has_its_original_text() {
        let thing = |title: &str, text: &str| Thing {
            title: Some(title.into()),
            selftext: Some(text.into()),
            ..Thing::default()
        };
        assert_eq!(thing("a", "").text(), "a");
        assert_eq!(thing("a", "b").text(), "a\n\nb");
        assert_eq!(thing("aa…", "aaa").text(), "aaa");
    }

    #[test]
    fn a_post_is_named_by_its_id_or_url() {
        for (written, id) in [
            ("4bbe4b", Some("t3_4bbe4b")),
            (" t3_4BBE4B ", Some("t3_4bbe4b")),
            ("https://www.reddit.com/r/test/comments/4bbe4b/a_title/?utm_source=share", Some("t3_4bbe4b")),
            ("https://old.reddit.com/user/ada/comments/4bbe4b", Some("t3_4bbe4b")),
            ("reddit.com/comments/4bbe4b#a", Some("t3_4bbe4b")),
            ("https://www.reddit.com/gallery/4bbe4b", Some("t3_4bbe4b")),
            ("https://redd.it/4bbe4b", Some("t3_4bbe4b")),
            ("http://localhost:8080/www.reddit.com/r/test/comments/4bbe4b/a_title/", Some("t3_4bbe4b")),
            // Reddit alone knows where it leads.
            ("https://www.reddit.com/r/test/s/AbCdEf", None),
            ("https://www.reddit.com/r/test/", None),
            ("https://example.com/r/test/comments/4bbe4b/", None),
            ("https://evilreddit.com/comments/4bbe4b/", None),
            ("t1_4bbe4b", None),
            ("a title", None),
            ("", None),
        ] {
            assert_eq!(named_post(written).as_deref(), id, "{written}");
        }
    }
}
