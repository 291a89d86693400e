//! Reddit, over its Data API: <https://www.reddit.com/dev/api>.
//!
//! A post belongs to a subreddit or to its author's profile, and always has a title. Errors are returned with
//! a status of success. Media are uploaded to a storage service first, and a post with an image or video gets
//! its id later, over a socket or from the list of the author's posts. After a lost response that list is
//! searched too, because there is no idempotency key. A thread is a chain of comments. Texts are Markdown, and
//! plain ones are written so that they are shown as they are ([`markdown`]). A post may be crossposted to further
//! subreddits once it is live ([`crosspost`]).
//! <https://github.com/reddit-archive/reddit> shows how the server parses a request.

mod content;
mod crosspost;
mod errors;
mod ids;
mod markdown;
mod media;
mod posts;
mod rules;
mod submit;
mod subreddit;

use self::{
    content::{PostKind, post_kind, title_and_text},
    errors::{refusal, wait},
    ids::{fullname, is_name, short_path},
    media::{Asset, send},
    posts::{Published, Thing, find, thing},
    rules::open,
    submit::{comment, gallery, poll, single},
    subreddit::{flair_id, own, place},
};
use crate::{
    AccountProfile, Adapter, Auth, Call, Checkpoint, CommentLimits, Committed, Deletion, Edit, Editing,
    Feature, Idempotency, Identity, LimitUsage, Limits, Located, Media, MediaKind, MediaLimit, Number,
    OAuth2, Prepared, Preset, PublishRequest, Publisher, Publishing, Replies, Reply, Result, Session, Source,
    TextLimit, Usage,
    check::{ContainerContent, Issue, Severity},
    classify, listing,
    look_up::{Findings, Subject},
    required, schema, storage, text,
    upload::{self, Uploaded},
};
use async_trait::async_trait;
use chrono::TimeDelta;
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{borrow::Cow, time::Duration};

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

/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 300;
/// Maximum number of images in a gallery.
const MAX_GALLERY: usize = 20;

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

/// Adds a user agent in Reddit's form: Reddit rejects those of HTTP libraries.
fn named(cx: &Session<'_>, call: Call) -> Call {
    call.header("user-agent", agent(&cx.account.username))
}

/// Returns the user agent: <https://github.com/reddit-archive/reddit/wiki/API>.
fn agent(user: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match is_name(user) {
        true => format!("web:fanfare:v{version} (by /u/{user})"),
        false => format!("web:fanfare:v{version}"),
    }
}

/// Creates a read request whose response contains unescaped texts.
fn read(cx: &Session<'_>, path: &str) -> Call {
    named(cx, cx.get(format!("{API}{path}"))).query(&[("raw_json", "1")])
}

async fn me(cx: &Session<'_>) -> Result<Me> {
    read(cx, "/api/v1/me").send().await
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
