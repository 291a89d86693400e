//! YouTube, over its Data API v3: <https://developers.google.com/youtube/v3>.
//!
//! A video comes into being with its last byte, so all but the last piece is uploaded while preparing,
//! and that piece is the publishing call. The upload's own address tells ever after whether the video
//! is there, which settles every doubt; what is processed then, what gets its thumbnail and its place
//! in a playlist, exists already. A first comment has no such handle and is looked for.

use crate::*;
use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tracing::warn;
use uuid::Uuid;

/// YouTube. <https://developers.google.com/youtube/v3/docs>
pub(crate) struct YouTube;

const API: &str = "https://www.googleapis.com/youtube/v3";
const UPLOAD: &str = "https://www.googleapis.com/upload/youtube/v3";
const REPORTS: &str = "https://youtubeanalytics.googleapis.com/v2/reports";

/// One piece of an upload: a multiple of 256 KiB.
const CHUNK: u64 = 8 << 20;
/// How much earlier than our clock's commit a comment or video of ours may seem to YouTube.
const SKEW: TimeDelta = TimeDelta::minutes(5);
/// Before a video can be in the lists, an upload that is gone tells nothing.
const LISTED: TimeDelta = TimeDelta::minutes(2);
/// Pages of a list that are searched for what was lost.
const PAGES: usize = 5;
/// The longest title, in characters.
const TITLE: usize = 100;
/// The longest a Short plays.
const SHORT: Duration = Duration::from_secs(180);
/// The most characters of all tags together.
const TAGS: usize = 500;
/// The category of a video whose author names none: people and blogs.
const CATEGORY: &str = "22";
/// The first day that a report can be asked about: YouTube's own.
const EPOCH: NaiveDate = NaiveDate::from_ymd_opt(2005, 2, 14).expect("a date");

static CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit { max: 5000, unit: "bytes", count: str::len, max_bytes: None },
    content: Content::Media,
    media: &[
        MediaLimit {
            kind: MediaKind::Video,
            count: 1..=1,
            mimes: &[
                "video/mp4",
                "video/quicktime",
                "video/webm",
                "video/x-matroska",
                "video/x-msvideo",
                "video/mpeg",
                "video/x-flv",
                "video/3gpp",
                "video/x-m4v",
            ],
            max_bytes: 256 << 30,
            duration: Some(Duration::ZERO..=Duration::from_secs(12 * 3600)),
            pixels: None,
            aspect_ratio: None,
        },
        // The thumbnail.
        MediaLimit {
            kind: MediaKind::Image,
            count: 0..=1,
            mimes: &["image/jpeg", "image/png"],
            max_bytes: 50 << 20,
            duration: None,
            pixels: None,
            aspect_ratio: None,
        },
    ],
    mixed_media: true,
    alt_text: None,
    replies: Replies::FirstComment,
    publishing: Publishing::Asynchronous { window: Duration::from_secs(6 * 3600) },
    // Of a video nothing doubles; of a comment it does.
    repeat: Repeat::Doubles { settling: Duration::from_secs(30) },
    settings,
};

static RULES: Rules = Rules {
    forbidden: &['<', '>'],
    needs: Some(MediaKind::Video),
    comment: Some(Comment {
        text: TextLimit::characters(10_000),
        media: &[],
    }),
};

static CONNECTION: Connection = Connection::OAuth2 {
    authorize: google::AUTHORIZE,
    token: google::TOKEN,
    // The first covers uploading, reading and comments; no narrower one does for comments.
    scopes: &[
        "https://www.googleapis.com/auth/youtube.force-ssl",
        "https://www.googleapis.com/auth/yt-analytics.readonly",
    ],
    separator: " ",
    client_id: "client_id",
    parameters: google::PARAMETERS,
    pkce: true,
};

fn settings() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "title": {
                "type": "string",
                "minLength": 1,
                "maxLength": TITLE,
                "pattern": "^[^<>]*$",
                "description": "The video's title; without it the text's first line, or the file's name.",
            },
            "privacyStatus": {
                "type": "string",
                "enum": ["public", "unlisted", "private"],
                "default": "public",
                "description": "Who can watch it.",
            },
            "publishAt": {
                "type": "string",
                "format": "date-time",
                "pattern": r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$",
                "description": "When YouTube makes it public; it is private until then.",
            },
            "isShort": {
                "type": "boolean",
                "description": "Whether it has to be fit for a Short: square or upright, and three minutes at most.",
            },
            "tags": {
                "type": "array",
                "items": { "type": "string", "minLength": 1, "pattern": "^[^<>,]*$" },
                "description": "Its keywords, of 500 characters together.",
            },
            "category": {
                "type": "string",
                "pattern": "^[0-9]+$",
                "default": CATEGORY,
                "description": "The id of its category; options/categories lists them.",
            },
            "playlist": {
                "type": "string",
                "minLength": 1,
                "description": "The id of a playlist that it is added to; options/playlists lists them.",
            },
            "thumbnail": {
                "type": "string",
                "description": "Which of the container's media is the thumbnail, by its id; without it the image there.",
            },
            "madeForKids": { "type": "boolean", "description": "Whether it is made for children." },
            "containsSyntheticMedia": {
                "type": "boolean",
                "description": "Whether it shows what is made or changed by AI and looks real.",
            },
            "notifySubscribers": { "type": "boolean", "default": true, "description": "Whether subscribers are told." },
            "license": { "type": "string", "enum": ["youtube", "creativeCommon"], "description": "Its license." },
            "embeddable": { "type": "boolean", "description": "Whether other sites may embed it." },
            "publicStatsViewable": { "type": "boolean", "description": "Whether its figures are public." },
            "defaultLanguage": { "type": "string", "description": "The language of title and text (BCP 47)." },
            "defaultAudioLanguage": { "type": "string", "description": "The language spoken in it (BCP 47)." },
        },
    })
}

#[async_trait]
impl Platform for YouTube {
    fn id(&self) -> &'static str {
        "youtube"
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

    fn credentials(&self) -> Credentials {
        Credentials::Body
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        google::classify(reply)
    }

    fn relogin(&self) -> &'static [(&'static str, &'static str)] {
        google::RELOGIN
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let channels: List<Channel> = cx
            .get(format!("{API}/channels"))
            .query(&[("part", "snippet"), ("mine", "true"), ("maxResults", "50")])
            .send()
            .await?;
        Ok(channels.items.into_iter().map(Channel::identity).collect())
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        let ours = &cx.account.network_unique_id;
        match self.identities(cx).await?.iter().any(|channel| channel.network_unique_id == *ours) {
            true => Ok(()),
            false => Err(Failure::rejected(404, format!("the login no longer leads to channel {ours}"))),
        }
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        google::refresh(cx).await
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        google::revoke(cx).await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared> {
        if post.reply_to.is_some() {
            return Ok(Prepared::Ready(at));
        }
        let video = video(post)?;
        let mut step: Step = at.read()?;
        if step.media != Some(video.id) {
            step = Step { media: Some(video.id), ..Step::default() };
        }
        if step.video.is_some() {
            return Ok(Prepared::Ready(Checkpoint::of(&step)));
        }
        let body = resource(post, video)?;
        thumbnail(post)?;
        // An earlier attempt may have died between sending a piece and keeping that.
        if let Some(upload) = step.upload.clone() {
            match probe(cx, &upload, video.size_bytes).await? {
                Stored::Bytes(count) => step.sent = count,
                Stored::Video(id) => step.video = Some(id),
                Stored::Nothing => step = Step { media: Some(video.id), ..Step::default() },
            }
        }
        if step.upload.is_none() {
            if let Some(playlist) = setting(post, &["playlist", "playlistId"]) {
                own_playlist(cx, &playlist).await?;
            }
            step.upload = Some(begin(cx, post, video, &body).await?);
            cx.save(&step).await?;
        }
        while step.video.is_none() && step.sent + CHUNK < video.size_bytes {
            let upload = step.upload.as_deref().expect("it was begun above");
            match send(cx, video, upload, step.sent).await? {
                Stored::Bytes(count) if count > step.sent => step.sent = count,
                Stored::Bytes(count) => return Err(stalled(count)),
                Stored::Video(id) => step.video = Some(id),
                Stored::Nothing => {
                    cx.save(&Step::default()).await?;
                    return Err(ended());
                }
            }
            cx.save(&step).await?;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        if let Some(reply) = &post.reply_to {
            return Ok(Committed::Live(comment(cx, &reply.root, &post.text).await?));
        }
        let video = video(post)?;
        let mut step: Step = at.read()?;
        while step.video.is_none() {
            let Some(upload) = step.upload.as_deref() else {
                return Err(Failure::network("the video was never begun to be uploaded", false));
            };
            match send(cx, video, upload, step.sent).await? {
                Stored::Video(id) => step.video = Some(id),
                Stored::Bytes(count) if count > step.sent => step.sent = count,
                Stored::Bytes(count) => return Err(stalled(count)),
                Stored::Nothing => {
                    cx.save(&Step::default()).await?;
                    return Err(ended());
                }
            }
        }
        Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: Duration::from_secs(5) })
    }

    /// The last piece of a video is what publishes it.
    fn commit_limit(&self, post: &Publication) -> Duration {
        match (&post.reply_to, video(post)) {
            (None, Ok(video)) => allowance(video.size_bytes.min(CHUNK)),
            _ => TIMEOUT,
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        let begun = post.commit_begun_at.unwrap_or(post.created_at);
        if let Some(reply) = &post.reply_to {
            return found_comment(cx, post, &reply.root, begun).await;
        }
        let video = video(post)?;
        let mut step: Step = at.read()?;
        if step.video.is_none() {
            let Some(upload) = step.upload.as_deref() else { return Ok(Located::Absent) };
            step.video = match probe(cx, upload, video.size_bytes).await? {
                Stored::Video(id) => Some(id),
                Stored::Bytes(_) => return Ok(Located::Absent),
                Stored::Nothing => match found_video(cx, post, &title(post, video), begun).await? {
                    Located::Live(id) => Some(id),
                    located if (cx.now)() - begun > LISTED => return Ok(located),
                    _ => return Ok(Located::Processing { poll_after: Duration::from_secs(30) }),
                },
            };
        }
        let id = step.video.clone().expect("found above");
        if !step.is_adorned {
            adorn(cx, post, &id).await?;
            step.is_adorned = true;
            cx.save(&step).await?;
        }
        let videos: List<Video> = cx
            .get(format!("{API}/videos"))
            .query(&[("part", "status,processingDetails"), ("id", &id)])
            .send()
            .await?;
        // Looked at seldom once it takes long: each look costs of the day's quota.
        let busy = Located::Processing {
            poll_after: Duration::from_secs(((cx.now)() - begun).num_seconds().clamp(0, 480) as u64 / 8)
                .max(Duration::from_secs(5)),
        };
        match videos.items.into_iter().next() {
            Some(video) => Ok(match video.is_processed()? {
                true => Located::Live(id),
                false => busy,
            }),
            None => Ok(busy),
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        if !is_comment(id) {
            return Ok(address(cx, id));
        }
        let threads: List<Thread> = cx
            .get(format!("{API}/commentThreads"))
            .query(&[("part", "snippet"), ("id", id)])
            .send()
            .await?;
        let video = threads.items.into_iter().find_map(|thread| thread.snippet.video_id);
        let video = video.ok_or_else(|| Failure::rejected(404, format!("comment {id} is not there")))?;
        Ok(format!("{}&lc={id}", address(cx, &video)))
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
impl Analytics for YouTube {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let videos: List<Video> =
            cx.get(format!("{API}/videos")).query(&[("part", "statistics"), ("id", id)]).send().await?;
        let Some(video) = videos.items.into_iter().next() else {
            return Err(Failure::rejected(404, format!("video {id} is not there")));
        };
        let mut metrics = video.statistics.metrics();
        // The counters are of this minute; what only reports tell is some days old, and not everybody
        // has granted it. Impressions are told by a query of their own, and not for every channel.
        let told = report(cx, id, "shares,videosAddedToPlaylists").await?;
        metrics.shares = told.first().copied().unwrap_or(0);
        metrics.saves = told.get(1).copied().unwrap_or(0);
        metrics.impressions =
            report(cx, id, "videoThumbnailImpressions").await?.first().copied().unwrap_or(0);
        Ok(metrics)
    }
}

/// Figures of one video over all its time, in the order of their names; none where they are not told.
async fn report(cx: &Session<'_>, id: &str, metrics: &str) -> Result<Vec<u64>> {
    let table: Result<Table> = cx
        .get(REPORTS)
        .query(&[
            ("ids", "channel==MINE"),
            ("startDate", &EPOCH.to_string()),
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
        let listed = listing(cx, &list, cursor).await?;
        let ids: Vec<_> = listed.items.iter().map(|item| item.content_details.video_id.clone()).collect();
        if ids.is_empty() {
            return Ok(Page { posts: Vec::new(), next: listed.next_page_token });
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
        Ok(Page { posts: posts.collect(), next: listed.next_page_token })
    }
}

#[async_trait]
impl Deletion for YouTube {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let kind = if is_comment(id) { "comments" } else { "videos" };
        match cx.delete(format!("{API}/{kind}")).query(&[("id", id)]).done().await {
            Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(()),
            answer => answer,
        }
    }
}

#[async_trait]
impl Options for YouTube {
    fn kinds(&self) -> &'static [&'static str] {
        &["playlists", "categories", "privacy_levels"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        let choice = |(id, name): (&str, &str)| SelectOption { id: id.to_owned(), name: name.to_owned() };
        match kind {
            "playlists" => {
                let mut all = Vec::new();
                let mut page: Option<String> = None;
                loop {
                    let call = cx.get(format!("{API}/playlists")).query(&[
                        ("part", "snippet"),
                        ("mine", "true"),
                        ("maxResults", "50"),
                    ]);
                    let found: List<Titled> = paged(call, page.as_deref()).send().await?;
                    all.extend(found.items.iter().map(|item| choice((&item.id, &item.snippet.title))));
                    page = found.next_page_token;
                    if page.is_none() {
                        return Ok(all);
                    }
                }
            }
            "categories" => {
                let found: List<Titled> = cx
                    .get(format!("{API}/videoCategories"))
                    .query(&[("part", "snippet"), ("regionCode", parent.unwrap_or("US"))])
                    .send()
                    .await?;
                let open = found.items.iter().filter(|item| item.snippet.assignable != Some(false));
                Ok(open.map(|item| choice((&item.id, &item.snippet.title))).collect())
            }
            "privacy_levels" => {
                let levels = [("public", "Public"), ("unlisted", "Unlisted"), ("private", "Private")];
                Ok(levels.into_iter().map(choice).collect())
            }
            _ => Err(Failure::rejected(404, format!("YouTube has no list of {kind}"))),
        }
    }
}

/// The post's video.
fn video(post: &Publication) -> Result<&Media> {
    let video = post.media.iter().find(|medium| medium.kind == MediaKind::Video && medium.size_bytes > 0);
    video.ok_or_else(|| Failure::rejected(422, "YouTube needs a video, and the post has none"))
}

/// The image that is to be the thumbnail.
fn thumbnail(post: &Publication) -> Result<Option<&Media>> {
    let mut images = post.media.iter().filter(|medium| medium.kind == MediaKind::Image);
    match setting(post, &["thumbnail"]) {
        None => Ok(images.next()),
        Some(id) => match images.find(|image| Uuid::try_parse(&id).is_ok_and(|id| id == image.id)) {
            Some(image) => Ok(Some(image)),
            None => {
                let message = format!("the thumbnail {id} is none of the images of the post's first container");
                Err(Failure::rejected(422, message))
            }
        },
    }
}

/// A setting under any of its names, as text.
fn setting(post: &Publication, names: &[&str]) -> Option<String> {
    let value = names.iter().find_map(|name| post.settings[*name].as_str());
    value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The title: as it was set, else the text's first line, else the file's name.
fn title(post: &Publication, video: &Media) -> String {
    let line = || post.text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
    let stem = || video.filename.rsplit_once('.').map_or(video.filename.as_str(), |(stem, _)| stem);
    let title = setting(post, &["title"]).or_else(line).unwrap_or_else(|| stem().replace(['<', '>'], ""));
    match title.chars().count() > TITLE {
        true => title.chars().take(TITLE).collect::<String>().trim_end().to_owned(),
        false if title.is_empty() => "Video".to_owned(),
        false => title,
    }
}

/// The video's resource, as it is to be. Refused here is what YouTube would take for something else.
fn resource(post: &Publication, video: &Media) -> Result<Value> {
    let set = |name: &str| post.settings.get(name).filter(|value| !value.is_null());
    if set("isShort") == Some(&json!(true)) {
        let shape = video.width.zip(video.height).filter(|(width, height)| width > height);
        if let Some((width, height)) = shape {
            let message = format!("a Short is square or upright, and the video has {width}x{height}");
            return Err(Failure::rejected(422, message));
        }
        if let Some(length) = video.duration.filter(|length| *length > SHORT) {
            let message =
                format!("a Short plays {} seconds at most, and the video {}", SHORT.as_secs(), length.as_secs());
            return Err(Failure::rejected(422, message));
        }
    }
    let mut snippet = Map::new();
    snippet.insert("title".into(), json!(title(post, video)));
    snippet.insert("description".into(), json!(post.text));
    let category = setting(post, &["category", "categoryId"]);
    snippet.insert("categoryId".into(), json!(category.as_deref().unwrap_or(CATEGORY)));
    if let Some(tags) = set("tags").and_then(Value::as_array).filter(|tags| !tags.is_empty()) {
        // YouTube counts a tag with a space as if it stood in quotes, and what separates them.
        let weight = |tag: &str| tag.chars().count() + if tag.contains(' ') { 2 } else { 0 };
        let length: usize = tags.iter().filter_map(Value::as_str).map(weight).sum();
        let length = length + tags.len() - 1;
        if length > TAGS {
            let message = format!("YouTube takes {TAGS} characters of tags, and there are {length}");
            return Err(Failure::rejected(422, message));
        }
        snippet.insert("tags".into(), json!(tags));
    }
    for name in ["defaultLanguage", "defaultAudioLanguage"] {
        snippet.extend(setting(post, &[name]).map(|value| (name.to_owned(), json!(value))));
    }

    let mut status = Map::new();
    let privacy = setting(post, &["privacyStatus"]);
    match (setting(post, &["publishAt"]), privacy.as_deref()) {
        (Some(_), Some("unlisted")) => {
            let message = "publishAt makes a video public, and privacyStatus is to be unlisted";
            return Err(Failure::rejected(422, message));
        }
        (Some(at), _) => {
            status.insert("privacyStatus".into(), json!("private"));
            status.insert("publishAt".into(), json!(at));
        }
        (None, privacy) => {
            status.insert("privacyStatus".into(), json!(privacy.unwrap_or("public")));
        }
    }
    for (name, field) in [
        ("madeForKids", "selfDeclaredMadeForKids"),
        ("selfDeclaredMadeForKids", "selfDeclaredMadeForKids"),
        ("containsSyntheticMedia", "containsSyntheticMedia"),
        ("license", "license"),
        ("embeddable", "embeddable"),
        ("publicStatsViewable", "publicStatsViewable"),
    ] {
        status.extend(set(name).map(|value| (field.to_owned(), value.clone())));
    }
    Ok(json!({ "snippet": snippet, "status": status }))
}

/// Begins an upload and gives its address. What is wrong with the resource is told here.
async fn begin(cx: &Session<'_>, post: &Publication, video: &Media, body: &Value) -> Result<String> {
    let mut query = vec![("uploadType", "resumable"), ("part", "snippet,status")];
    if post.settings["notifySubscribers"] == json!(false) {
        query.push(("notifySubscribers", "false"));
    }
    let mut call = cx
        .post(format!("{UPLOAD}/videos"))
        .query(&query)
        .header("x-upload-content-type", &video.mime)
        .header("x-upload-content-length", video.size_bytes.to_string());
    // The file's name; a header holds nothing but ASCII.
    if video.filename.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        call = call.header("slug", &video.filename);
    }
    let reply = call.json(body).reply().await?;
    let address = reply.header("location").map(str::to_owned);
    address.ok_or_else(|| Failure::upstream(502, "YouTube began an upload and gave it no address"))
}

/// What an upload's address tells.
enum Stored {
    /// So many bytes are there.
    Bytes(u64),
    /// All are, and this is the video.
    Video(String),
    /// There is no such upload any more.
    Nothing,
}

/// Sends the piece that begins at `from`.
async fn send(cx: &Session<'_>, video: &Media, upload: &str, from: u64) -> Result<Stored> {
    let total = video.size_bytes;
    let end = (from + CHUNK).min(total);
    let piece = cx.read(video, from..end).await?;
    let range = format!("bytes {from}-{}/{total}", end - 1);
    stored(cx, cx.put(upload).header("content-range", range).bytes(&video.mime, piece).any().await?)
}

/// Asks how far an upload has come.
async fn probe(cx: &Session<'_>, upload: &str, total: u64) -> Result<Stored> {
    let call = cx.put(upload).header("content-range", format!("bytes */{total}")).header("content-length", "0");
    stored(cx, call.any().await?)
}

fn stored(cx: &Session<'_>, reply: Reply) -> Result<Stored> {
    match reply.status.as_u16() {
        308 => {
            let last = reply.header("range").and_then(|range| range.rsplit_once('-')?.1.parse::<u64>().ok());
            Ok(Stored::Bytes(last.map_or(0, |last| last + 1)))
        }
        404 | 410 => Ok(Stored::Nothing),
        _ => {
            let video: Created = reply.judge(cx.platform)?.read()?;
            Ok(Stored::Video(video.id))
        }
    }
}

fn stalled(count: u64) -> Failure {
    let message = format!("YouTube keeps no more than {count} bytes of the upload");
    Failure { doubt: false, ..Failure::upstream(503, message) }
}

/// Nothing is published before the last byte, so the video is simply uploaded anew.
fn ended() -> Failure {
    let message = "the upload ended before its last byte; it is begun anew";
    Failure { doubt: false, ..Failure::upstream(503, message) }
}

/// Tells a playlist that the video can't go into before anything is uploaded.
async fn own_playlist(cx: &Session<'_>, id: &str) -> Result<()> {
    let found: List<Titled> =
        cx.get(format!("{API}/playlists")).query(&[("part", "snippet"), ("id", id)]).send().await?;
    let ours = Some(cx.account.network_unique_id.as_str());
    match found.items.iter().any(|item| item.snippet.channel_id.as_deref() == ours) {
        true => Ok(()),
        false => Err(Failure::rejected(422, format!("the channel has no playlist {id}"))),
    }
}

/// Gives a video its thumbnail and its place in a playlist. The video is live by now, so that what is
/// refused here for good is given up and not the post.
async fn adorn(cx: &Session<'_>, post: &Publication, id: &str) -> Result<()> {
    if let Some(image) = thumbnail(post)? {
        let set = cx
            .post(format!("{UPLOAD}/thumbnails/set"))
            .query(&[("videoId", id), ("uploadType", "media")])
            .upload(&image.mime, image.size_bytes, cx.stream(image))
            .done()
            .await;
        forgive(set, id, "thumbnail")?;
    }
    if let Some(playlist) = setting(post, &["playlist", "playlistId"]) {
        forgive(enlist(cx, id, &playlist).await, id, "place in its playlist")?;
    }
    Ok(())
}

async fn enlist(cx: &Session<'_>, id: &str, playlist: &str) -> Result<()> {
    let there: List<Value> = cx
        .get(format!("{API}/playlistItems"))
        .query(&[("part", "id"), ("playlistId", playlist), ("videoId", id)])
        .send()
        .await?;
    if !there.items.is_empty() {
        return Ok(());
    }
    let resource = json!({ "kind": "youtube#video", "videoId": id });
    cx.post(format!("{API}/playlistItems"))
        .query(&[("part", "snippet")])
        .json(&json!({ "snippet": { "playlistId": playlist, "resourceId": resource } }))
        .done()
        .await
}

/// Lets go of what is refused for good, or until another day.
fn forgive(answer: Result<()>, id: &str, what: &str) -> Result<()> {
    match answer {
        Err(failure) if failure.code.is_permanent() || failure.code == ErrorCode::RateLimited => {
            warn!(video.id = id, error.code = %failure.code, "Video {id} is live without its {what}: {failure}");
            Ok(())
        }
        answer => answer,
    }
}

/// Comments on a video and gives the comment's id.
async fn comment(cx: &Session<'_>, video: &str, text: &str) -> Result<String> {
    let comment = json!({ "snippet": { "textOriginal": text } });
    let snippet = json!({
        "channelId": cx.account.network_unique_id,
        "videoId": video,
        "topLevelComment": comment,
    });
    let created: Created = cx
        .post(format!("{API}/commentThreads"))
        .query(&[("part", "snippet")])
        .json(&json!({ "snippet": snippet }))
        .send()
        .await?;
    Ok(created.id)
}

/// Looks for a comment of ours among a video's latest.
async fn found_comment(
    cx: &Session<'_>,
    post: &Publication,
    video: &str,
    begun: DateTime<Utc>,
) -> Result<Located> {
    let ours = &cx.account.network_unique_id;
    let mut page: Option<String> = None;
    for _ in 0..PAGES {
        let call = cx.get(format!("{API}/commentThreads")).query(&[
            ("part", "snippet"),
            ("videoId", video),
            ("order", "time"),
            ("textFormat", "plainText"),
            ("maxResults", "100"),
        ]);
        let threads: List<Thread> = paged(call, page.as_deref()).send().await?;
        for thread in &threads.items {
            let said = &thread.snippet.top_level_comment.snippet;
            if said.published_at.is_some_and(|at| at < begun - SKEW) {
                return Ok(Located::Absent);
            }
            let is_ours = said.author_channel_id.value == *ours;
            // The original is told to its author only.
            let words = said.text_original.as_deref().unwrap_or(&said.text_display);
            if is_ours && words.trim() == post.text.trim() && !post.is_taken(&thread.id) {
                return Ok(Located::Live(thread.id.clone()));
            }
        }
        page = threads.next_page_token;
        if page.is_none() {
            return Ok(Located::Absent);
        }
    }
    // There are more comments since than are read here.
    Ok(Located::Unknown)
}

/// Looks for a video of ours among the channel's latest.
async fn found_video(
    cx: &Session<'_>,
    post: &Publication,
    title: &str,
    begun: DateTime<Utc>,
) -> Result<Located> {
    let Some(list) = uploads(cx).await? else { return Ok(Located::Absent) };
    let listed = listing(cx, &list, None).await?;
    let is_recent = |item: &Item| item.snippet.published_at.is_some_and(|at| at > begun - SKEW);
    // The channel uploaded more since than is read here.
    let otherwise = match listed.next_page_token.is_some() && listed.items.iter().all(is_recent) {
        true => Located::Unknown,
        false => Located::Absent,
    };
    let ours = listed.items.into_iter().find(|item| {
        item.snippet.title == title && is_recent(item) && !post.is_taken(&item.content_details.video_id)
    });
    Ok(ours.map_or(otherwise, |item| Located::Live(item.content_details.video_id)))
}

/// The list of all that the channel uploaded.
async fn uploads(cx: &Session<'_>) -> Result<Option<String>> {
    let channels: List<Channel> = cx
        .get(format!("{API}/channels"))
        .query(&[("part", "contentDetails"), ("mine", "true")])
        .send()
        .await?;
    let ours = channels.items.into_iter().find(|channel| channel.id == cx.account.network_unique_id);
    Ok(ours.and_then(|channel| channel.content_details).map(|details| details.related_playlists.uploads))
}

async fn listing(cx: &Session<'_>, list: &str, page: Option<&str>) -> Result<List<Item>> {
    let call = cx.get(format!("{API}/playlistItems")).query(&[
        ("part", "snippet,contentDetails"),
        ("playlistId", list),
        ("maxResults", "50"),
    ]);
    match paged(call, page).send().await {
        // A channel that never uploaded has no such list yet.
        Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(List::default()),
        answer => answer,
    }
}

fn paged(call: Call, page: Option<&str>) -> Call {
    match page {
        Some(page) => call.query(&[("pageToken", page)]),
        None => call,
    }
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.wire.route(&format!("https://www.youtube.com/watch?v={id}"))
}

/// Whether an id is a comment's: those are longer than a video's eleven characters.
fn is_comment(id: &str) -> bool {
    id.len() > 11
}

/// How far preparing has come. The upload's address is good for this one video only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    /// The medium that it is about.
    media: Option<Uuid>,
    upload: Option<String>,
    #[serde(default)]
    sent: u64,
    video: Option<String>,
    /// Whether thumbnail and playlist are done.
    #[serde(default)]
    is_adorned: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    // Where there is nothing the member is missing.
    #[serde(default = "Vec::new")]
    items: Vec<T>,
    next_page_token: Option<String>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next_page_token: None }
    }
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Channel {
    id: String,
    #[serde(default)]
    snippet: Snippet,
    content_details: Option<ChannelDetails>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChannelDetails {
    related_playlists: Related,
}

#[derive(Deserialize)]
struct Related {
    uploads: String,
}

impl Channel {
    fn identity(self) -> Identity {
        let handle = self.snippet.custom_url.as_deref().map(|handle| handle.trim_start_matches('@'));
        let profile_url = match handle.filter(|handle| !handle.is_empty()) {
            Some(handle) => format!("https://www.youtube.com/@{handle}"),
            None => format!("https://www.youtube.com/channel/{}", self.id),
        };
        Identity {
            // A channel may have no handle.
            username: handle.filter(|handle| !handle.is_empty()).unwrap_or(&self.id).to_owned(),
            display_name: if self.snippet.title.is_empty() { self.id.clone() } else { self.snippet.title },
            account_type: "channel".to_owned(),
            profile_image_url: self.snippet.thumbnails.largest(),
            profile_url: Some(profile_url),
            network_unique_id: self.id,
            grant: None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Snippet {
    title: String,
    description: String,
    custom_url: Option<String>,
    published_at: Option<DateTime<Utc>>,
    thumbnails: Thumbnails,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Thumbnails {
    default: Option<Picture>,
    medium: Option<Picture>,
    high: Option<Picture>,
    standard: Option<Picture>,
    maxres: Option<Picture>,
}

#[derive(Clone, Deserialize)]
struct Picture {
    url: String,
}

impl Thumbnails {
    fn largest(&self) -> Option<String> {
        [&self.maxres, &self.standard, &self.high, &self.medium, &self.default]
            .into_iter()
            .find_map(|picture| Some(picture.as_ref()?.url.clone()))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Video {
    #[serde(default)]
    id: String,
    #[serde(default)]
    snippet: Snippet,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    statistics: Statistics,
    #[serde(default)]
    processing_details: Processing,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    upload_status: String,
    failure_reason: Option<String>,
    rejection_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Processing {
    processing_status: String,
    processing_failure_reason: Option<String>,
}

impl Video {
    /// Whether it can be watched by now; fails when it never will be.
    fn is_processed(&self) -> Result<bool> {
        let no = |what: &str, why: Option<&str>| {
            Err(Failure::rejected(422, format!("YouTube {what} the video: {}", why.unwrap_or("it does not say why"))))
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

/// Counters; YouTube writes them as text, and leaves out what is hidden.
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
    video_id: String,
    video_published_at: Option<DateTime<Utc>>,
}

/// A playlist or a category.
#[derive(Deserialize)]
struct Titled {
    id: String,
    snippet: Naming,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Naming {
    #[serde(default)]
    title: String,
    channel_id: Option<String>,
    assignable: Option<bool>,
}

#[derive(Deserialize)]
struct Thread {
    id: String,
    snippet: ThreadSnippet,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadSnippet {
    video_id: Option<String>,
    top_level_comment: Said,
}

#[derive(Deserialize)]
struct Said {
    snippet: Words,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Words {
    #[serde(default)]
    text_display: String,
    text_original: Option<String>,
    published_at: Option<DateTime<Utc>>,
    #[serde(default)]
    author_channel_id: Author,
}

#[derive(Default, Deserialize)]
struct Author {
    #[serde(default)]
    value: String,
}
