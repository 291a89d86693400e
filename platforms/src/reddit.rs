//! Reddit, over its Data API: <https://www.reddit.com/dev/api>.
//!
//! A post hangs in a subreddit, or on its author's own profile, and always has a title. Errors come
//! with a status of success. Pictures and videos go to a storage first, and a post of one of them gets
//! its id later, over a socket or by the list of the author's posts. That list is also what settles a
//! lost answer: nothing makes the publishing call repeatable. A thread is a chain of comments.
//! <https://github.com/reddit-archive/reddit> tells how the server reads a request.

use crate::{
    check::{Draft, Issue, Severity},
    *,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure, Metrics};
use regex::Regex;
use reqwest::{
    Body,
    multipart::{Form, Part},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock, time::Duration};
use uuid::Uuid;

/// Reddit. <https://www.reddit.com/dev/api>
pub(crate) struct Reddit;

const API: &str = "https://oauth.reddit.com";
const SITE: &str = "https://www.reddit.com";
const TOKEN: &str = "https://www.reddit.com/api/v1/access_token";
const REVOKE: &str = "https://www.reddit.com/api/v1/revoke_token";

/// Between two looks at a post that is being processed.
const POLL: Duration = Duration::from_secs(5);
/// Before the first look: a socket repeats nothing to those who come late.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How long one look listens to the socket.
const LISTEN: Duration = Duration::from_secs(10);
/// How much earlier than our clock's commit a post of ours may seem to Reddit.
const SKEW: TimeDelta = TimeDelta::minutes(5);
/// How long a picture or a video may take to become a post that is listed.
const LISTED: TimeDelta = TimeDelta::minutes(10);
/// Pages of the account's posts that are searched for a lost one.
const PAGES: usize = 4;
/// The longest title, in characters.
const TITLE: usize = 300;
/// The most pictures of a gallery.
const GALLERY: usize = 20;
/// The wait where a quota is used up and no time is told.
const QUOTA: Duration = Duration::from_secs(3600);
/// What a video shows until its author's poster or its own first picture is there.
const POSTER: &[u8] = include_bytes!("poster.png");

static CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::characters(40_000),
    content: Content::TextOrMedia,
    media: &[
        picture(MediaKind::Image, &["image/jpeg", "image/png"]),
        picture(MediaKind::Gif, &["image/gif"]),
        MediaLimit {
            kind: MediaKind::Video,
            count: 0..=1,
            mimes: &["video/mp4", "video/quicktime"],
            max_bytes: 1 << 30,
            duration: Some(Duration::ZERO..=Duration::from_secs(15 * 60)),
            pixels: None,
            aspect_ratio: None,
        },
    ],
    // An image beside a video is its poster, and a gallery takes GIFs.
    mixed_media: true,
    alt_text: None,
    replies: Replies::Thread,
    publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
    repeat: Repeat::Doubles { settling: Duration::from_secs(30) },
    settings,
};

const fn picture(kind: MediaKind, mimes: &'static [&'static str]) -> MediaLimit {
    MediaLimit {
        kind,
        count: 0..=GALLERY,
        mimes,
        max_bytes: 20 << 20,
        duration: None,
        pixels: None,
        aspect_ratio: None,
    }
}

static RULES: Rules = Rules {
    forbidden: &[],
    needs: None,
    comment: Some(Comment {
        text: TextLimit::characters(10_000),
        media: &[],
    }),
};

static CONNECTION: Connection = Connection::OAuth2 {
    authorize: "https://www.reddit.com/api/v1/authorize",
    token: TOKEN,
    scopes: &["identity", "submit", "read", "edit", "flair", "history", "mysubreddits"],
    separator: " ",
    client_id: "client_id",
    // Without it there is no refresh token.
    parameters: &[("duration", "permanent")],
    pkce: false,
};

fn settings() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "subreddit": {
                "type": "string",
                "pattern": "^/?([rRuU]/)?[A-Za-z0-9_-]{2,24}$",
                "description":
                    "Where it is posted, by name; options/subreddits lists them. Without it, the account's own profile.",
            },
            "title": {
                "type": "string",
                "minLength": 1,
                "maxLength": TITLE,
                "description": "Its title; without it the text's first line, which then is not repeated below, or the file's name.",
            },
            "kind": {
                "type": "string",
                "enum": ["self", "link", "image", "gallery", "video", "videogif"],
                "description": "What kind of post it is; its media and url tell unless it is named. A videogif is a video without sound that repeats.",
            },
            "url": {
                "type": "string",
                "maxLength": 2048,
                "pattern": "^https?://",
                "description": "Where a link leads; without it the first link of the text.",
            },
            "flair": {
                "type": "string",
                "minLength": 1,
                "description": "The post's flair, by its id or its text; options/flairs lists those of a subreddit.",
            },
            "flair_text": {
                "type": "string",
                "maxLength": 64,
                "description": "The words of a flair that leaves them to the author.",
            },
            "captions": {
                "type": "array",
                "maxItems": GALLERY,
                "items": { "type": "string", "maxLength": 180 },
                "description": "What stands below the pictures of a gallery, in their order.",
            },
            "nsfw": { "type": "boolean", "description": "Whether it is for adults only." },
            "spoiler": { "type": "boolean", "description": "Whether it gives away a plot." },
            "sendreplies": {
                "type": "boolean",
                "default": true,
                "description": "Whether the author is told of comments.",
            },
            "resubmit": {
                "type": "boolean",
                "default": true,
                "description": "Whether a link may be posted to a subreddit that has it already.",
            },
        },
    })
}

#[async_trait]
impl Platform for Reddit {
    fn id(&self) -> &'static str {
        "reddit"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn connection(&self) -> &'static Connection {
        &CONNECTION
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    fn objections(&self, containers: &[Draft<'_>], settings: &Value) -> Vec<Issue> {
        let Some(main) = containers.first() else { return Vec::new() };
        let objection = Shape::of(main.media, main.text, settings).err();
        let told = |message| {
            Issue::of_main(Severity::Error, "settings_conflict", "media", format!("reddit: {message}"))
        };
        objection.into_iter().map(told).collect()
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        let status = reply.status.as_u16();
        match status {
            200..=299 => refusal(&reply.body),
            400 => {
                let words = reply.body["explanation"].as_str()?;
                let reason = reply.body["reason"].as_str().unwrap_or("BAD_REQUEST");
                Some(Failure::rejected(400, format!("{words} ({reason})")))
            }
            // A scope that is missing, or a place that is closed to the account: a fresh token hears
            // the same.
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
        // The picture's parameters are signed and run out.
        let picture = me.icon_img.as_deref().and_then(|url| url.split('?').next());
        Ok(vec![Identity {
            display_name: title.unwrap_or_else(|| me.name.clone()),
            profile_url: Some(format!("{SITE}/user/{}/", me.name)),
            account_type: "profile".to_owned(),
            profile_image_url: picture.filter(|url| !url.is_empty()).map(str::to_owned),
            network_unique_id: me.id,
            username: me.name,
            grant: None,
        }])
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        match me(cx).await?.is_suspended {
            true => Err(Failure::rejected(403, "Reddit has suspended the account")),
            false => Ok(()),
        }
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        // A dead token has no word of its own, but an app that is not known has its number.
        oauth::refresh(cx, TOKEN, |word| word != "401").await
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        oauth::revoke(cx, REVOKE).await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared> {
        if post.reply_to.is_some() {
            return Ok(Prepared::Ready(at));
        }
        let shape = shape(post)?;
        let mut step: Step = at.read()?;
        if step.flair.is_none()
            && let Some(flair) = setting(post, "flair")
        {
            step.flair = Some(flair_id(cx, &subreddit(cx, post), flair).await?);
        }
        if step.assets.is_empty() && !post.media.is_empty() {
            open(cx, &subreddit(cx, post), &shape).await?;
        }
        for media in &post.media {
            if step.asset(media).is_none() {
                let body = Body::wrap_stream(cx.stream(media));
                let (id, url) = upload(cx, &media.filename, &media.mime, media.size_bytes, body).await?;
                step.assets.push(Asset { media: media.id, id, url });
                cx.save(&step).await?;
            }
        }
        let has_poster = step.poster.is_some() || post.media.iter().any(|media| media.kind == MediaKind::Image);
        if matches!(shape, Shape::Video(_)) && !has_poster {
            let (_, url) = upload(cx, "poster.png", "image/png", POSTER.len() as u64, POSTER.into()).await?;
            step.poster = Some(url);
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        if let Some(reply) = &post.reply_to {
            return comment(cx, &reply.parent, &post.text).await;
        }
        let mut step: Step = at.read()?;
        let shape = shape(post)?;
        let answer = match &shape {
            Shape::Gallery => gallery(cx, post, &step)?,
            _ => single(cx, post, &shape, &step)?,
        }
        .reply()
        .await?;
        let data = &answer.body["json"]["data"];
        // A gallery's id is whole, that of others is told twice.
        if let Some(id) = [&data["name"], &data["id"]].into_iter().find_map(Value::as_str) {
            return Ok(Committed::Live(fullname("t3", id)));
        }
        if !data.is_object() {
            return Err(unreadable());
        }
        step.socket = data["websocket_url"].as_str().map(str::to_owned);
        step.is_accepted = true;
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: AT_ONCE })
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        let begun = post.commit_begun_at.unwrap_or(post.created_at);
        let user = &cx.account.username;
        if let Some(reply) = &post.reply_to {
            let is_ours = |thing: &Thing| {
                thing.parent_id.as_deref() == Some(&reply.parent) && same(&thing.body, &post.text)
            };
            return search(cx, &format!("/user/{user}/comments"), post, begun, is_ours).await;
        }
        let (step, shape): (Step, Shape) = (at.read()?, shape(post)?);
        let (title, text) = words(post);
        let place = subreddit(cx, post);
        let is_ours = |thing: &Thing| {
            thing.subreddit.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(&place))
                && same(&thing.title, &title)
                && thing.is_self == matches!(shape, Shape::Text)
                && thing.is_video == matches!(shape, Shape::Video(_))
                && (!thing.is_self || same(&thing.selftext, &text))
        };
        // The socket knows which post it tells of; a list may hold another that looks the same.
        if let Some(socket) = &step.socket
            && let Some(told) = socket::message(cx, socket, LISTEN).await
        {
            if told["type"] == "failed" {
                let message = "Reddit could not process the medium and does not say why";
                return Err(Failure::rejected(422, message));
            }
            if let Some(id) = told["payload"]["redirect"].as_str().and_then(linked) {
                return Ok(Located::Live(id));
            }
        }
        let located = search(cx, &format!("/user/{user}/submitted"), post, begun, is_ours).await?;
        if matches!(located, Located::Live(_)) {
            return Ok(located);
        }
        let may_come = matches!(shape, Shape::Picture | Shape::Video(_)) && (cx.now)() - begun < LISTED;
        Ok(match step.is_accepted || may_come {
            true => Located::Processing { poll_after: POLL },
            false => located,
        })
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        let thing = thing(cx, id).await?;
        Ok(thing.address(cx))
    }

    fn analytics(&self) -> Option<&dyn Analytics> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn deletion(&self) -> Option<&dyn Deletion> {
        Some(self)
    }

    fn options(&self) -> Option<&dyn Options> {
        Some(self)
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
        let listing = list(cx, &format!("/user/{}/submitted", cx.account.username), cursor).await?;
        let posts = listing.children.into_iter().map(|child| {
            let thing = child.data;
            RemotePost {
                url: thing.address(cx),
                text: thing.text(),
                media: thing.media(),
                published_at: thing.created_at(),
                metrics: thing.metrics(),
                id: thing.name,
            }
        });
        Ok(Page { posts: posts.collect(), next: listing.after })
    }
}

#[async_trait]
impl Deletion for Reddit {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        named(cx, cx.post(format!("{API}/api/del"))).form(&[("id", id)]).done().await
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
                    Ok(flairs.into_iter().map(|flair| SelectOption { id: flair.id, name: flair.text }).collect())
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

/// What kind of post the media and settings make.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Text,
    Link(String),
    Picture,
    Gallery,
    /// With the platform's word for it.
    Video(&'static str),
}

impl Shape {
    /// The shape of a post, or why it can have none.
    fn of(media: &[Media], text: &str, settings: &Value) -> Result<Self, String> {
        let word = |key: &str| settings[key].as_str().filter(|word| !word.is_empty());
        let (kind, url) = (word("kind"), word("url"));
        let videos = media.iter().filter(|medium| medium.kind == MediaKind::Video).count();
        let gifs = media.iter().any(|medium| medium.kind == MediaKind::Gif);
        if url.is_some() && !(media.is_empty() && kind.is_none_or(|kind| kind == "link")) {
            return Err("only a link without media takes a `url`".into());
        }
        let shape = match (media.len(), videos) {
            (0, _) if url.is_some() || kind == Some("link") => {
                let first = || text::links(text).into_iter().find(|link| link.scheme);
                let url = url.or_else(|| first().map(|link| &text[link.range]));
                Self::Link(url.ok_or("a link needs a `url`, or one in its text")?.to_owned())
            }
            (0, _) => Self::Text,
            (1 | 2, 1) if !gifs && kind == Some("videogif") => Self::Video("videogif"),
            (1 | 2, 1) if !gifs => Self::Video("video"),
            (_, 1..) => return Err("a video takes one image beside it, its poster, and nothing else".into()),
            (1, 0) => Self::Picture,
            (2..=GALLERY, 0) => Self::Gallery,
            (count, 0) => return Err(format!("a gallery takes at most {GALLERY} pictures, and there are {count}")),
        };
        match kind {
            Some(kind) if kind != shape.word() => {
                Err(format!("the kind is to be {kind}, and the media make it {}", shape.word()))
            }
            _ => Ok(shape),
        }
    }

    /// The contract's word for it, which is Reddit's own but for a gallery.
    fn word(&self) -> &'static str {
        match self {
            Self::Text => "self",
            Self::Link(_) => "link",
            Self::Picture => "image",
            Self::Gallery => "gallery",
            Self::Video(word) => word,
        }
    }
}

fn shape(post: &Publication) -> Result<Shape> {
    Shape::of(&post.media, &post.text, &post.settings).map_err(|message| Failure::rejected(422, message))
}

/// A setting that says something.
fn setting<'a>(post: &'a Publication, key: &str) -> Option<&'a str> {
    post.settings[key].as_str().filter(|text| !text.trim().is_empty())
}

/// The title, and the text below it.
fn words(post: &Publication) -> (String, Cow<'_, str>) {
    if let Some(title) = setting(post, "title") {
        return (title.trim().to_owned(), Cow::Borrowed(&post.text));
    }
    let text = post.text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim();
    match first.chars().count() {
        0 => {
            let name = post.media.first().map_or("", |media| media.filename.as_str());
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).trim();
            let stem: String = stem.chars().take(TITLE).collect();
            (if stem.is_empty() { "Untitled".to_owned() } else { stem }, Cow::Borrowed(""))
        }
        1..=TITLE => (first.to_owned(), Cow::Borrowed(rest.trim())),
        _ => {
            let begin: String = first.chars().take(TITLE - 1).collect();
            (format!("{}…", begin.trim_end()), Cow::Borrowed(&post.text))
        }
    }
}

/// The name under which Reddit knows a place, however it was written.
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

/// Where a post goes: the subreddit that was named, or the account's own profile.
fn subreddit(cx: &Session<'_>, post: &Publication) -> String {
    setting(post, "subreddit").map_or_else(|| own(cx), place)
}

fn own(cx: &Session<'_>) -> String {
    format!("u_{}", cx.account.username)
}

/// A call in a name of its own: Reddit turns away clients that all share one.
fn named(cx: &Session<'_>, call: Call) -> Call {
    let (version, user) = (env!("CARGO_PKG_VERSION"), &cx.account.username);
    match is_name(user) {
        true => call.header("user-agent", format!("web:fanfare:v{version} (by /u/{user})")),
        false => call.header("user-agent", format!("web:fanfare:v{version}")),
    }
}

/// A read, whose texts come as they were written.
fn read(cx: &Session<'_>, path: &str) -> Call {
    named(cx, cx.get(format!("{API}{path}"))).query(&[("raw_json", "1")])
}

async fn me(cx: &Session<'_>) -> Result<Me> {
    read(cx, "/api/v1/me").send().await
}

/// One page of a list, newest first.
async fn list(cx: &Session<'_>, path: &str, after: Option<&str>) -> Result<Listing> {
    let call = read(cx, path).query(&[("sort", "new"), ("limit", "100")]);
    let page: Envelope = match after {
        Some(after) => call.query(&[("after", after)]).send().await?,
        None => call.send().await?,
    };
    Ok(page.data)
}

/// The thing of a list that was made nearest to a moment, of those that are ours.
async fn search(
    cx: &Session<'_>,
    path: &str,
    post: &Publication,
    begun: DateTime<Utc>,
    is_ours: impl Fn(&Thing) -> bool,
) -> Result<Located> {
    let mut after = None;
    for _ in 0..PAGES {
        let page = list(cx, path, after.as_deref()).await?;
        let is_past = page.children.iter().any(|child| child.data.created_at() < begun - SKEW);
        let ours = page.children.into_iter().map(|child| child.data);
        let ours = ours.filter(|thing| {
            thing.created_at() >= begun - SKEW && is_ours(thing) && !post.is_taken(&thing.name)
        });
        if let Some(thing) = ours.min_by_key(|thing| (thing.created_at() - begun).abs()) {
            return Ok(Located::Live(thing.name));
        }
        after = page.after;
        if is_past || after.is_none() {
            return Ok(Located::Absent);
        }
    }
    // The account posted more since than is read here.
    Ok(Located::Unknown)
}

/// One post or comment that is there.
async fn thing(cx: &Session<'_>, id: &str) -> Result<Thing> {
    let page: Envelope = read(cx, "/api/info").query(&[("id", id)]).send().await?;
    let found = page.data.children.into_iter().map(|child| child.data);
    found
        .into_iter()
        .find(|thing| thing.name == id && thing.author.as_deref() != Some("[deleted]"))
        .ok_or_else(|| Failure::rejected(404, format!("{id} is not there")))
}

/// Whether a subreddit takes what is about to be uploaded, which may be a gigabyte.
async fn open(cx: &Session<'_>, name: &str, shape: &Shape) -> Result<()> {
    if name.eq_ignore_ascii_case(&own(cx)) {
        return Ok(());
    }
    let about: Value = read(cx, &format!("/r/{name}/about")).send().await?;
    let (flag, what) = match shape {
        Shape::Picture => ("allow_images", "images"),
        Shape::Gallery => ("allow_galleries", "galleries"),
        Shape::Video(_) => ("allow_videos", "videos"),
        Shape::Text | Shape::Link(_) => return Ok(()),
    };
    match about["data"][flag].as_bool() {
        Some(false) => Err(Failure::rejected(403, format!("r/{name} takes no {what}"))),
        _ => Ok(()),
    }
}

/// The subreddits that the account reads, behind its own profile.
async fn subreddits(cx: &Session<'_>) -> Result<Vec<SelectOption>> {
    let mut all = vec![SelectOption { id: own(cx), name: format!("u/{}", cx.account.username) }];
    let mut after: Option<String> = None;
    loop {
        let page = list(cx, "/subreddits/mine/subscriber", after.as_deref()).await?;
        let names = page.children.into_iter().filter_map(|child| child.data.display_name);
        all.extend(names.map(|name| SelectOption { name: format!("r/{name}"), id: name }));
        after = page.after;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The flairs of a subreddit that the account may use.
async fn flairs(cx: &Session<'_>, name: &str) -> Result<Vec<Flair>> {
    let answer: Result<Vec<Flair>> = read(cx, &format!("/r/{name}/api/link_flair_v2")).send().await;
    match answer {
        Ok(flairs) => Ok(flairs.into_iter().filter(|flair| !flair.mod_only).collect()),
        // There are none for users.
        Err(failure) if failure.code == ErrorCode::Rejected(403) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// The id of a flair that was named by its id or its text.
async fn flair_id(cx: &Session<'_>, name: &str, flair: &str) -> Result<String> {
    if Uuid::try_parse(flair).is_ok() {
        return Ok(flair.to_owned());
    }
    let all = flairs(cx, name).await?;
    let known: Vec<_> = all.iter().map(|flair| flair.text.as_str()).collect();
    let found = all.iter().find(|known| known.text.trim().eq_ignore_ascii_case(flair.trim()));
    found.map(|flair| flair.id.clone()).ok_or_else(|| {
        let message = match known.is_empty() {
            true => format!("r/{name} has no flairs to choose from"),
            false => format!("r/{name} has no flair {flair:?}, but {}", known.join(", ")),
        };
        Failure::rejected(422, message)
    })
}

/// Sends bytes to Reddit's storage: the asset's id, and the address that a post names it by. What no
/// post is made of goes away by itself.
async fn upload(cx: &Session<'_>, name: &str, mime: &str, length: u64, body: Body) -> Result<(String, String)> {
    let lease: Lease = named(cx, cx.post(format!("{API}/api/media/asset.json")))
        .form(&[("filepath", name), ("mimetype", mime)])
        .send()
        .await?;
    let action = lease.args.action;
    let action = if action.starts_with("//") { format!("https:{action}") } else { action };
    let mut form = Form::new();
    let mut key = String::new();
    // The storage wants the fields as they came, and the file last.
    for field in lease.args.fields {
        if field.name == "key" {
            key.clone_from(&field.value);
        }
        form = form.text(field.name, field.value);
    }
    let part = Part::stream_with_length(body, length)
        .file_name(name.to_owned())
        .mime_str(mime)
        .map_err(|error| Failure::rejected(415, format!("{mime} is no content type: {error}")))?;
    let form = form.part("file", part);
    let reply = cx.post(&action).anonymous().multipart(form).patient(length).any().await?;
    match reply.status.as_u16() {
        200..=299 => Ok((lease.asset.asset_id, format!("{}/{key}", action.trim_end_matches('/')))),
        // Answers in XML. What is too large stays so; a signature that ran out is made anew.
        400 | 413 if reply.text.contains("EntityTooLarge") => {
            Err(Failure::rejected(413, format!("{name} with its {length} bytes is too large for Reddit")))
        }
        status => {
            let message = format!("the upload answered {}", classify::message(&reply));
            let status = if status >= 500 { status } else { 502 };
            Err(Failure { doubt: false, ..Failure::upstream(status, message) })
        }
    }
}

/// The call that publishes a text, a link, a picture or a video.
fn single(cx: &Session<'_>, post: &Publication, shape: &Shape, step: &Step) -> Result<Call> {
    let (title, text) = words(post);
    let mut form = vec![
        ("api_type", "json".to_owned()),
        ("kind", shape.word().to_owned()),
        ("sr", subreddit(cx, post)),
        ("title", title),
        ("validate_on_submit", "true".to_owned()),
    ];
    let of = |kinds: &[MediaKind]| {
        let asset = step.assets.iter().find(|asset| {
            post.media.iter().any(|media| media.id == asset.media && kinds.contains(&media.kind))
        });
        asset.map(|asset| asset.url.clone())
    };
    match shape {
        Shape::Link(url) => form.push(("url", url.clone())),
        Shape::Picture => {
            form.push(("url", of(&[MediaKind::Image, MediaKind::Gif]).ok_or_else(unprepared)?));
        }
        Shape::Video(_) => {
            let poster = of(&[MediaKind::Image]).or_else(|| step.poster.clone());
            form.push(("url", of(&[MediaKind::Video]).ok_or_else(unprepared)?));
            form.push(("video_poster_url", poster.ok_or_else(unprepared)?));
        }
        Shape::Text | Shape::Gallery => {}
    }
    if !text.is_empty() || *shape == Shape::Text {
        form.push(("text", text.into_owned()));
    }
    form.extend(step.flair.clone().map(|flair| ("flair_id", flair)));
    form.extend(setting(post, "flair_text").map(|text| ("flair_text", text.to_owned())));
    form.extend(flags(post).into_iter().map(|(name, value)| (name, value.to_string())));
    Ok(named(cx, cx.post(format!("{API}/api/submit"))).form(&form))
}

/// The call that publishes several pictures.
fn gallery(cx: &Session<'_>, post: &Publication, step: &Step) -> Result<Call> {
    let (title, text) = words(post);
    let items: Result<Vec<Value>> = post
        .media
        .iter()
        .enumerate()
        .map(|(index, media)| {
            let asset = step.asset(media).ok_or_else(unprepared)?;
            let caption = post.settings["captions"][index].as_str().unwrap_or_default();
            Ok(json!({ "media_id": asset.id, "caption": caption, "outbound_url": "" }))
        })
        .collect();
    let mut body = json!({
        "api_type": "json",
        "sr": subreddit(cx, post),
        "title": title,
        "items": items?,
        "show_error_list": true,
        "validate_on_submit": true,
    });
    if !text.is_empty() {
        body["text"] = json!(text);
    }
    if let Some(flair) = &step.flair {
        body["flair_id"] = json!(flair);
    }
    if let Some(text) = setting(post, "flair_text") {
        body["flair_text"] = json!(text);
    }
    for (name, value) in flags(post) {
        body[name] = json!(value);
    }
    Ok(named(cx, cx.post(format!("{API}/api/submit_gallery_post.json"))).json(&body))
}

/// What is either so or not.
fn flags(post: &Publication) -> [(&'static str, bool); 4] {
    let flag = |name: &'static str, usual| (name, post.settings[name].as_bool().unwrap_or(usual));
    [flag("nsfw", false), flag("spoiler", false), flag("sendreplies", true), flag("resubmit", true)]
}

/// The call that publishes a comment below a post or another comment.
async fn comment(cx: &Session<'_>, parent: &str, text: &str) -> Result<Committed> {
    let reply = named(cx, cx.post(format!("{API}/api/comment")))
        .form(&[("api_type", "json"), ("thing_id", parent), ("text", text)])
        .reply()
        .await?;
    let data = &reply.body["json"]["data"]["things"][0]["data"];
    let id = data["name"].as_str().or_else(|| data["id"].as_str()).ok_or_else(unreadable)?;
    Ok(Committed::Live(fullname("t1", id)))
}

/// An id with its kind before it.
fn fullname(kind: &str, id: &str) -> String {
    if id.starts_with("t1_") || id.starts_with("t3_") { id.to_owned() } else { format!("{kind}_{id}") }
}

/// The post that an address of Reddit's leads to.
fn linked(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("/comments/")?;
    let id = rest.split(['/', '?', '#']).next().filter(|id| is_name(id))?;
    Some(fullname("t3", id))
}

fn unreadable() -> Failure {
    Failure::upstream(502, "answered a success that tells nothing")
}

fn unprepared() -> Failure {
    Failure::network("a medium was never uploaded", false)
}

/// Whether two texts differ in white space only, which Reddit does not keep.
fn same(kept: &Option<String>, sent: &str) -> bool {
    kept.as_deref().unwrap_or_default().split_whitespace().eq(sent.split_whitespace())
}

/// What an answer with a status of success refuses, where it does.
fn refusal(body: &Value) -> Option<Failure> {
    let errors = body["json"]["errors"].as_array().filter(|errors| !errors.is_empty())?;
    let code = errors[0][0].as_str().unwrap_or_default();
    let told: Vec<_> = errors
        .iter()
        .map(|error| {
            let word = error[0].as_str().unwrap_or("an error without a name");
            error[1].as_str().map_or_else(|| word.to_owned(), |text| format!("{text} ({word})"))
        })
        .collect();
    let message = told.join("; ");
    Some(match code {
        "RATELIMIT" => {
            let exact = body["json"]["ratelimit"].as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            // Half a second too early is too early.
            let exact = exact.map(|seconds| Duration::from_secs(seconds.ceil() as u64));
            Failure::rate_limited(message.clone(), exact.or_else(|| pause(&message)))
        }
        "QUOTA_FILLED" | "SUBREDDIT_RATELIMIT" => {
            Failure::rate_limited(message.clone(), pause(&message).or(Some(QUOTA)))
        }
        "USER_REQUIRED" => Failure::token_expired(message),
        // It may be ours, whose answer was lost.
        "ALREADY_SUB" => Failure { doubt: true, ..Failure::rejected(409, message) },
        "SUBREDDIT_NOEXIST" | "DELETED_LINK" | "DELETED_COMMENT" | "NO_THING_ID" => Failure::rejected(404, message),
        "SUBREDDIT_NOTALLOWED" | "SUBREDDIT_NO_ACCESS" | "BANNED_FROM_SUBREDDIT" | "IN_TIMEOUT"
        | "THREAD_LOCKED" | "DOMAIN_BANNED" | "USER_BLOCKED" | "GALLERIES_DISABLED" | "NO_IMAGES"
        | "NO_VIDEOS" => Failure::rejected(403, message),
        _ => Failure::rejected(400, message),
    })
}

/// The wait that a sentence asks for, in words only: "Take a break for 4 minutes".
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

/// The wait that the headers ask for: `x-ratelimit-reset` counts seconds until the window ends.
fn wait(reply: &Reply) -> Option<Duration> {
    let reset = || reply.header("x-ratelimit-reset")?.parse().ok().map(Duration::from_secs);
    classify::retry_after(reply).or_else(reset)
}

/// How far preparing has come, and what the commit brought.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Step {
    assets: Vec<Asset>,
    poster: Option<String>,
    flair: Option<String>,
    socket: Option<String>,
    is_accepted: bool,
}

impl Step {
    fn asset(&self, media: &Media) -> Option<&Asset> {
        self.assets.iter().find(|asset| asset.media == media.id)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asset {
    media: Uuid,
    id: String,
    url: String,
}

#[derive(Deserialize)]
struct Me {
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
    id: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    mod_only: bool,
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
    data: Listing,
}

#[derive(Deserialize)]
struct Listing {
    after: Option<String>,
    children: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    data: Thing,
}

/// A post, a comment or a subreddit.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Thing {
    name: String,
    display_name: Option<String>,
    author: Option<String>,
    subreddit: Option<String>,
    title: Option<String>,
    selftext: Option<String>,
    body: Option<String>,
    parent_id: Option<String>,
    permalink: Option<String>,
    url: Option<String>,
    created_utc: Option<f64>,
    is_self: bool,
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
    fn created_at(&self) -> DateTime<Utc> {
        let seconds = self.created_utc.unwrap_or_default();
        DateTime::from_timestamp_millis((seconds * 1_000.0) as i64).unwrap_or_default()
    }

    fn address(&self, cx: &Session<'_>) -> String {
        let id = self.name.trim_start_matches("t3_");
        let path = self.permalink.clone().unwrap_or_else(|| format!("/comments/{id}/"));
        cx.wire.route(&format!("{SITE}{path}"))
    }

    /// Title and text, without what the title only repeats.
    fn text(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        let text = self.selftext.as_deref().unwrap_or_default();
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
    use domain::TargetId;

    fn failure(status: u16, headers: &[(&'static str, &str)], text: &str) -> Failure {
        Reply::of(status, headers, text).judge(&Reddit).unwrap_err()
    }

    #[test]
    fn each_documented_error_leads_to_what_is_to_be_done() {
        let within = |code: &str| json!({ "json": { "errors": [[code, "in words", "field"]] } }).to_string();
        for (status, body, code, doubt) in [
            (200, within("ALREADY_SUB"), "rejected_409", true),
            (200, within("SUBREDDIT_NOEXIST"), "rejected_404", false),
            (200, within("SUBREDDIT_NOTALLOWED"), "rejected_403", false),
            (200, within("THREAD_LOCKED"), "rejected_403", false),
            (200, within("DELETED_COMMENT"), "rejected_404", false),
            (200, within("TOO_LONG"), "rejected_400", false),
            (200, within("SUBMIT_VALIDATION_FLAIR_REQUIRED"), "rejected_400", false),
            (200, within("USER_REQUIRED"), "token_expired", false),
            (200, within("QUOTA_FILLED"), "rate_limited", false),
            (400, r#"{"explanation":"no such words","reason":"SUBMIT_VALIDATION_TITLE"}"#.into(), "rejected_400", false),
            (400, r#"{"message":"Bad Request","error":400}"#.into(), "rejected_400", false),
            (401, r#"{"message":"Unauthorized","error":401}"#.into(), "token_expired", false),
            (403, r#"{"message":"Forbidden","error":403,"reason":"private"}"#.into(), "rejected_403", false),
            (404, r#"{"message":"Not Found","error":404}"#.into(), "rejected_404", false),
            (413, "<html>".into(), "rejected_413", false),
            (429, "<html>".into(), "rate_limited", false),
            (500, "<html>".into(), "upstream_500", true),
            (520, "<html>".into(), "upstream_520", true),
        ] {
            let failure = failure(status, &[], &body);
            assert_eq!((failure.code.to_string().as_str(), failure.doubt), (code, doubt), "{status} {body}");
            assert!(!failure.revoked && !failure.message.is_empty());
        }
        let both = json!({ "json": { "errors": [["NO_TEXT", "we need something here", "title"], ["BAD_URL", null]] } });
        assert_eq!(failure(200, &[], &both.to_string()).message, "we need something here (NO_TEXT); BAD_URL");
    }

    #[test]
    fn a_limit_is_waited_for_as_it_is_told() {
        let told = |text: &str, more: Value| {
            let mut body = json!({ "json": { "errors": [["RATELIMIT", text, "ratelimit"]] } });
            body["json"]["ratelimit"] = more;
            failure(200, &[], &body.to_string()).retry_after
        };
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(told("Take a break for 4 minutes before trying again.", Value::Null), seconds(240));
        assert_eq!(told("you are doing that too much. try again in 9 minutes.", json!(530.2)), seconds(531));
        assert_eq!(told("Take a break for 1 second", Value::Null), seconds(1));
        assert_eq!(told("Take a break for 900 milliseconds", Value::Null), Some(Duration::from_millis(900)));
        assert_eq!(told("Take a break for 2 hours", Value::Null), seconds(7200));
        assert_eq!(told("Take a break", Value::Null), None);
        assert_eq!(failure(429, &[("x-ratelimit-reset", "17")], "").retry_after, seconds(17));
        let both = [("retry-after", "4"), ("x-ratelimit-reset", "17")];
        assert_eq!(failure(429, &both, "").retry_after, seconds(4));
    }

    fn post(text: &str, settings: Value) -> Publication {
        Publication {
            target: TargetId(Uuid::nil()),
            position: 0,
            text: text.to_owned(),
            media: Vec::new(),
            settings,
            reply_to: None,
            created_at: DateTime::UNIX_EPOCH,
            commit_begun_at: None,
            taken: Vec::new(),
        }
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
            duration: None,
            alt_text: None,
        }
    }

    #[test]
    fn a_title_is_what_is_named_or_the_first_line() {
        let long = "l".repeat(TITLE + 1);
        let cut = format!("{}…", "l".repeat(TITLE - 1));
        for (text, settings, title, below) in [
            ("text", json!({ "title": "A title" }), "A title", "text"),
            ("one line", json!({}), "one line", ""),
            ("\n first \n\nsecond\nthird ", json!({}), "first", "second\nthird"),
            (&long, json!({}), &cut, &long),
            ("", json!({}), "Untitled", ""),
        ] {
            let post = post(text, settings);
            assert_eq!(words(&post), (title.to_owned(), Cow::Borrowed(below)), "{text}");
        }
        let mut film = post(" ", json!({}));
        film.media = vec![media(MediaKind::Video)];
        assert_eq!(words(&film).0, "a film.of mine");
    }

    #[test]
    fn media_and_settings_make_the_kind_of_post() {
        use MediaKind::{Gif, Image, Video};
        for (kinds, settings, word) in [
            (&[][..], json!({}), Some("self")),
            (&[], json!({ "kind": "self" }), Some("self")),
            (&[], json!({ "url": "https://example.com" }), Some("link")),
            (&[], json!({ "kind": "link" }), Some("link")),
            (&[], json!({ "kind": "self", "url": "https://example.com" }), None),
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
            let shape = Shape::of(&media, "see https://example.com/a.", &settings);
            assert_eq!(shape.as_ref().ok().map(Shape::word), word, "{kinds:?} {settings} {shape:?}");
        }
        let link = Shape::of(&[], "see https://example.com/a.", &json!({ "kind": "link" }));
        assert_eq!(link, Ok(Shape::Link("https://example.com/a".into())));
        assert!(Shape::of(&[], "see example.com", &json!({ "kind": "link" })).is_err());
    }

    #[test]
    fn a_place_is_known_however_it_is_written() {
        for (written, name) in
            [("rust", "rust"), ("r/rust", "rust"), ("/r/rust", "rust"), ("u/ada", "u_ada"), ("u_ada", "u_ada")]
        {
            assert_eq!(place(written), name);
        }
        let id = linked("https://www.reddit.com/r/test/comments/4bbe4b/a_title/");
        assert_eq!(id.as_deref(), Some("t3_4bbe4b"));
        assert_eq!(linked("https://www.reddit.com/r/test/"), None);
    }

    #[test]
    fn what_was_published_reads_as_it_was_written() {
        let thing = |title: &str, text: &str| Thing {
            title: Some(title.into()),
            selftext: Some(text.into()),
            ..Thing::default()
        };
        assert_eq!(thing("a", "").text(), "a");
        assert_eq!(thing("a", "b").text(), "a\n\nb");
        assert_eq!(thing("aa…", "aaa").text(), "aaa");
    }
}
