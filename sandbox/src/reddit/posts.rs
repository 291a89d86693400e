//! Posts and comments: <https://www.reddit.com/dev/api#section_links_and_comments>.
//!
//! Crossposts are those that PRAW records (`TestSubmission.test_crosspost*`). A post can't be crossposted to its own
//! subreddit: <https://redditwarp.readthedocs.io>. Of a crosspost of a crosspost nothing is documented; it is taken.

use super::{
    Caller, ID, Outcome, Record, Reddit, Request, Response, SOCKETS, Transaction, account, error, listing,
    markdown, media,
    media::{Asset, Notification, Processing},
    next, origin, processing, subreddits,
    subreddits::Subreddit,
};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{
    fake_metrics::figure,
    files::MAX_KEPT_BYTES,
    simulator::{MediaView, PostView, Simulator},
    tokens::random,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Maximum number of characters of a title, text, comment, caption and flair.
const TITLE: usize = 300;
const TEXT: usize = 40_000;
const COMMENT: usize = 10_000;
const CAPTION: usize = 180;
const FLAIR: usize = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Thing {
    /// Id without the prefix of its kind.
    id: String,
    /// Id of the owner.
    pub(super) owner: String,
    place: String,
    made: Kind,
    text: String,
    created_at: DateTime<Utc>,
    /// Time when it becomes visible.
    visible_at: DateTime<Utc>,
    /// True once its author deleted it.
    #[serde(default)]
    is_deleted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Kind {
    Post(Post),
    Comment {
        /// Full name of the post.
        link: String,
        /// Full name of the parent.
        parent: String,
    },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Post {
    title: String,
    kind: String,
    url: Option<String>,
    assets: Vec<String>,
    captions: Vec<String>,
    /// Options of a poll, and its duration in days.
    #[serde(default)]
    poll: Option<(Vec<String>, u64)>,
    flair: Option<String>,
    is_nsfw: bool,
    is_spoiler: bool,
    /// Full name of the post that it crossposts.
    #[serde(default)]
    parent: Option<String>,
}

impl Record for Thing {
    const TABLE: &'static str = "reddit.thing";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns a user's visible posts and comments, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, user: &str) -> impl DoubleEndedIterator<Item = Thing> + use<'a> {
    let (user, now) = (user.to_owned(), tx.now);
    tx.store
        .with_prefix("")
        .filter(move |thing: &Thing| thing.owner == user && thing.visible_at <= now && !thing.is_deleted)
}

/// Returns the post or comment with this full name, if it is visible.
pub(super) fn get(tx: &Transaction, name: &str) -> Option<Thing> {
    find(tx, name).filter(|thing| !thing.is_deleted)
}

/// Returns the post or comment with this full name, deleted or not.
fn find(tx: &Transaction, name: &str) -> Option<Thing> {
    let thing: Thing = tx.store.get(name.get(3..)?)?;
    (thing.name() == name && thing.visible_at <= tx.now).then_some(thing)
}

impl Thing {
    fn name(&self) -> String {
        match &self.made {
            Kind::Post(_) => format!("t3_{}", self.id),
            Kind::Comment { .. } => format!("t1_{}", self.id),
        }
    }

    fn permalink(&self, tx: &Transaction) -> String {
        match &self.made {
            Kind::Post(post) => {
                let slug: Vec<String> = post
                    .title
                    .to_lowercase()
                    .split(|c: char| !c.is_ascii_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .take(6)
                    .map(|word| word.chars().take(20).collect())
                    .collect();
                let slug = if slug.is_empty() { "_".to_owned() } else { slug.join("_") };
                format!("/r/{}/comments/{}/{slug}/", self.place, self.id)
            }
            Kind::Comment { link, .. } => match get(tx, link) {
                Some(post) => format!("{}{}/", post.permalink(tx), self.id),
                None => format!("/r/{}/comments/{}/_/{}/", self.place, &link[3..], self.id),
            },
        }
    }

    /// Returns it as the pages show it.
    pub(super) fn post_view(&self, tx: &Transaction) -> PostView {
        let mut notes = Vec::new();
        let mut card = PostView {
            id: self.name(),
            address: format!("www.reddit.com{}", self.permalink(tx)),
            text: self.text.clone(),
            at: self.created_at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: None,
        };
        match &self.made {
            Kind::Comment { parent, .. } => card.reply_to = Some(parent.clone()),
            Kind::Post(post) => {
                card.text = [post.title.as_str(), &self.text].join("\n\n").trim_end().to_owned();
                notes.push(format!("In r/{}: {}", self.place, post.kind));
                notes.extend(
                    post.url.iter().filter(|_| post.kind == "link").map(|url| format!("Leads to {url}")),
                );
                notes.extend(post.parent.iter().map(|parent| format!("Crosspost of {parent}")));
                notes.extend(
                    post.poll
                        .iter()
                        .map(|(options, days)| format!("Poll for {days} days: {}", options.join(" / "))),
                );
                notes.extend(post.flair.iter().map(|flair| format!("Flair: {flair}")));
                notes.extend(post.is_nsfw.then(|| "NSFW".to_owned()));
                notes.extend(post.is_spoiler.then(|| "Spoiler".to_owned()));
                let assets = post.assets.iter().filter_map(|id| media::get(tx, id)?.upload);
                let captions = post.captions.iter().map(String::as_str).chain(std::iter::repeat(""));
                card.media = assets
                    .zip(captions)
                    .map(|(upload, caption)| MediaView {
                        // Only stored bytes can be shown.
                        files: (upload.size_bytes <= MAX_KEPT_BYTES)
                            .then_some(upload.id)
                            .into_iter()
                            .collect(),
                        mime: upload.mime.unwrap_or_default(),
                        alt: caption.to_owned(),
                    })
                    .collect();
            }
        }
        PostView { notes, ..card }
    }

    fn view(&self, tx: &Transaction, request: &Request) -> Value {
        let author = match self.is_deleted {
            true => Some("[deleted]".to_owned()),
            false => account::by_id(tx.store, ID, &self.owner).map(|account| account.username),
        };
        let age = tx.now - self.created_at;
        let score = 1 + figure(&self.id, "score", age, 900);
        let mut view = json!({
            "id": self.id,
            "name": self.name(),
            "author": author,
            "author_fullname": (!self.is_deleted).then(|| format!("t2_{}", self.owner)),
            "subreddit": self.place,
            "subreddit_name_prefixed": format!("r/{}", self.place),
            "permalink": self.permalink(tx),
            "created_utc": self.created_at.timestamp() as f64,
            "created": self.created_at.timestamp() as f64,
            "score": score,
            "ups": score,
            "downs": 0,
            "edited": false,
            "archived": false,
            "locked": false,
            "stickied": false,
        });
        let escape = |text: &str| match request.query("raw_json") {
            Some("1") => text.to_owned(),
            _ => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
        };
        match &self.made {
            Kind::Comment { link, parent } => {
                view["body"] = json!(escape(&self.text));
                view["body_html"] = json!(escape(&rendered(&self.text)));
                view["link_id"] = json!(link);
                view["parent_id"] = json!(parent);
                view["score_hidden"] = json!(false);
            }
            Kind::Post(post) => {
                let below = tx.store.with_prefix("").filter(
                    |thing: &Thing| matches!(&thing.made, Kind::Comment { link, .. } if *link == self.name()),
                );
                let own = format!("https://www.reddit.com{}", self.permalink(tx));
                let parent = post.parent.as_deref().and_then(|parent| find(tx, parent));
                let of_parent = parent.as_ref().map(|parent| parent.view(tx, request));
                let url = match &of_parent {
                    Some(parent) => parent["url"].as_str().unwrap_or_default().to_owned(),
                    None => post.url.clone().unwrap_or(own),
                };
                let more = json!({
                    "title": escape(&post.title),
                    "selftext": escape(&self.text),
                    "selftext_html": (!self.text.is_empty()).then(|| escape(&rendered(&self.text))),
                    "url": escape(&url),
                    "is_self": post.kind == "self" || post.kind == "poll",
                    "is_video": post.kind.starts_with("video"),
                    "over_18": post.is_nsfw,
                    "spoiler": post.is_spoiler,
                    "link_flair_text": post.flair.as_deref().map(escape),
                    "num_comments": below.count(),
                    "num_crossposts": figure(&self.id, "crossposts", age, 30),
                    "is_crosspostable": !self.is_deleted,
                    "upvote_ratio": 0.97,
                    "view_count": null,
                    "removed_by_category": null,
                    "media": null,
                });
                let Value::Object(more) = more else { return view };
                view.as_object_mut().expect("it is one").extend(more);
                if let Some(parent) = &post.parent {
                    view["crosspost_parent"] = json!(parent);
                    view["crosspost_parent_list"] = json!(of_parent.into_iter().collect::<Vec<_>>());
                }
                if let Some((options, days)) = &post.poll {
                    let end =
                        self.created_at.timestamp_millis() + i64::try_from(days * 86_400_000).unwrap_or(0);
                    let option =
                        |(index, text): (usize, &String)| json!({ "id": index.to_string(), "text": text });
                    view["poll_data"] = json!({
                        "options": options.iter().enumerate().map(option).collect::<Vec<_>>(),
                        "voting_end_timestamp": end,
                        "total_vote_count": 0,
                    });
                }
                let assets: Vec<Asset> = post.assets.iter().filter_map(|id| media::get(tx, id)).collect();
                if post.kind == "gallery" {
                    view["is_gallery"] = json!(true);
                    view["gallery_data"] = gallery(post);
                    view["media_metadata"] =
                        assets.iter().map(|asset| (asset.id.clone(), metadata(asset))).collect();
                } else if post.kind.starts_with("video") {
                    view["media"] = json!({ "reddit_video": {
                        "fallback_url": format!("{url}/DASH_720.mp4?source=fallback"),
                        "is_gif": post.kind == "videogif",
                        "transcoding_status": "completed",
                    } });
                }
            }
        }
        view
    }

    fn listed(&self, tx: &Transaction, request: &Request) -> (String, &'static str, Value) {
        let kind = if matches!(self.made, Kind::Post(_)) { "t3" } else { "t1" };
        (self.name(), kind, self.view(tx, request))
    }
}

/// Returns a text as the API's members for pages have it.
fn rendered(text: &str) -> String {
    format!("<!-- SC_OFF --><div class=\"md\">{}</div><!-- SC_ON -->", markdown::html(text))
}

fn gallery(post: &Post) -> Value {
    let items: Vec<_> = post
        .assets
        .iter()
        .zip(&post.captions)
        .enumerate()
        .map(|(index, (id, caption))| json!({ "media_id": id, "id": index + 1, "caption": caption }))
        .collect();
    json!({ "items": items })
}

fn metadata(asset: &Asset) -> Value {
    let pixels = asset.upload.as_ref().and_then(|upload| upload.pixels);
    let (width, height) = pixels.unwrap_or_default();
    let mime = asset.upload.as_ref().and_then(|upload| upload.mime.clone()).unwrap_or_default();
    let (kind, key) = if mime == "image/gif" { ("AnimatedImage", "gif") } else { ("Image", "u") };
    let mut source = Map::from_iter([("x".to_owned(), json!(width)), ("y".to_owned(), json!(height))]);
    source.insert(key.into(), json!(asset.address()));
    json!({ "status": "valid", "e": kind, "m": mime, "s": source, "id": asset.id, "p": [] })
}

/// Fields of a submission, from a form or a JSON body.
struct Submission<'a> {
    request: &'a Request,
    body: Value,
}

impl Submission<'_> {
    fn text(&self, name: &str) -> &str {
        self.request.field(name).or_else(|| self.body[name].as_str()).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.request.field(name) {
            Some(word) => Some(matches!(word.to_lowercase().as_str(), "true" | "on" | "1" | "yes")),
            None => self.body[name].as_bool(),
        }
    }
}

/// Cause, code, words and field.
type FieldError = (Cause, &'static str, String, &'static str);

fn field_error<T>(
    cause: Cause,
    code: &'static str,
    words: impl Into<String>,
    field: &'static str,
) -> Result<T, FieldError> {
    Err((cause, code, words.into(), field))
}

/// Checks what all submissions have in common.
fn parse_submission(
    tx: &Transaction,
    caller: &Caller,
    form: &Submission<'_>,
    kind: &str,
) -> Result<(Subreddit, Post), FieldError> {
    let name = form.text("sr");
    if name.is_empty() {
        return field_error(Protocol, "SUBREDDIT_REQUIRED", "you must specify a subreddit", "sr");
    }
    let Some(place) = subreddits::find(tx, name) else {
        return field_error(State, "SUBREDDIT_NOEXIST", "that subreddit doesn't exist", "sr");
    };
    if !place.may_post(&caller.account) {
        return field_error(State, "SUBREDDIT_NOTALLOWED", "you aren't allowed to post there.", "sr");
    }
    let title = form.text("title").trim();
    if title.is_empty() {
        return field_error(Content("title_empty"), "NO_TEXT", "we need something here", "title");
    }
    check_length(Content("title_too_long"), title, TITLE, "title")?;
    check_length(Content("text_too_long"), form.text("text"), TEXT, "text")?;
    let flair = flair(&place, form)?;
    let post = Post {
        title: title.to_owned(),
        kind: kind.to_owned(),
        flair,
        is_nsfw: form.flag("nsfw").unwrap_or(false),
        is_spoiler: form.flag("spoiler").unwrap_or(false),
        ..Post::default()
    };
    Ok((place, post))
}

fn check_length(cause: Cause, text: &str, max: usize, field: &'static str) -> Result<(), FieldError> {
    match text.chars().count() > max {
        true => field_error(cause, "TOO_LONG", format!("this is too long (max: {max})"), field),
        false => Ok(()),
    }
}

fn flair(place: &Subreddit, form: &Submission<'_>) -> Result<Option<String>, FieldError> {
    let (id, text) = (form.text("flair_id"), form.text("flair_text"));
    check_length(Content("flair_too_long"), text, FLAIR, "flair_text")?;
    if id.is_empty() {
        return match place.needs_flair() {
            true => field_error(
                State,
                "SUBMIT_VALIDATION_FLAIR_REQUIRED",
                "Your post must contain post flair.",
                "flair",
            ),
            false => Ok(None),
        };
    }
    match place.flairs().into_iter().find(|flair| flair.id == id) {
        None => field_error(State, "BAD_FLAIR_TEMPLATE_ID", "that flair does not exist", "flair"),
        Some(flair) if flair.is_editable && !text.is_empty() => Ok(Some(text.to_owned())),
        Some(flair) => Ok(Some(flair.text.to_owned())),
    }
}

/// Checks and adds the content of a post of one item.
fn add_content(
    tx: &Transaction,
    caller: &Caller,
    form: &Submission<'_>,
    place: &Subreddit,
    post: &mut Post,
) -> Result<(), FieldError> {
    let url = form.text("url");
    let asset = |field: &'static str| match media::stored(tx, form.text(field), &caller.account.id) {
        Some(asset) => Ok(asset),
        None => field_error(State, "BAD_URL", "you should check that url", field),
    };
    match post.kind.as_str() {
        "self" if !place.takes_texts() => {
            field_error(State, "NO_SELFS", "that subreddit doesn't allow text posts", "sr")
        }
        "self" => Ok(()),
        "link" if !place.takes_links() => {
            field_error(State, "NO_LINKS", "that subreddit only allows text posts", "sr")
        }
        "link" if url.is_empty() => field_error(Content("link_empty"), "NO_URL", "a url is required", "url"),
        "link" => {
            let is_address = url::Url::parse(url)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !is_address {
                return field_error(Content("link"), "BAD_URL", "you should check that url", "url");
            }
            let is_there = tx.store.with_prefix("").any(|thing: Thing| {
                thing.place.eq_ignore_ascii_case(&place.name)
                    && matches!(&thing.made, Kind::Post(other) if other.url.as_deref() == Some(url))
            });
            if is_there && form.flag("resubmit") == Some(false) {
                return field_error(State, "ALREADY_SUB", "that link has already been submitted", "url");
            }
            post.url = Some(url.to_owned());
            Ok(())
        }
        "image" if !place.takes_media() => {
            field_error(State, "NO_IMAGES", "that subreddit doesn't allow images", "sr")
        }
        "video" | "videogif" if !place.takes_media() => {
            field_error(State, "NO_VIDEOS", "that subreddit doesn't allow videos", "sr")
        }
        "image" | "video" | "videogif" => {
            let asset = asset("url")?;
            if asset.is_video() == (post.kind == "image") {
                return field_error(State, "BAD_URL", "you should check that url", "url");
            }
            if asset.is_video()
                && media::stored(tx, form.text("video_poster_url"), &caller.account.id).is_none()
            {
                return field_error(
                    Protocol,
                    "MISSING_VIDEO_URLS",
                    "This post is missing a video poster",
                    "video_poster_url",
                );
            }
            post.url = Some(asset.address());
            post.assets = vec![asset.id];
            Ok(())
        }
        "crosspost" => add_crosspost(tx, form, place, post),
        _ => field_error(Protocol, "INVALID_OPTION", "that option is not valid", "kind"),
    }
}

/// Checks and adds the post that is crossposted. Its text is none of the crosspost.
fn add_crosspost(
    tx: &Transaction,
    form: &Submission<'_>,
    place: &Subreddit,
    post: &mut Post,
) -> Result<(), FieldError> {
    let name = form.text("crosspost_fullname");
    let parent = get(tx, name).filter(|parent| !parent.place.eq_ignore_ascii_case(&place.name));
    let Some(Thing { made: Kind::Post(parent), .. }) = &parent else {
        let words = "that isn't a valid crosspost url";
        return field_error(State, "INVALID_CROSSPOST_THING", words, "crosspost_thing");
    };
    if !place.takes_crossposts() {
        return field_error(State, "NO_CROSSPOSTS", "that subreddit doesn't allow crossposts", "sr");
    }
    match parent.kind.as_str() {
        "self" | "poll" if !place.takes_texts() => {
            return field_error(State, "NO_SELFS", "that subreddit doesn't allow text posts", "sr");
        }
        "link" if !place.takes_links() => {
            return field_error(State, "NO_LINKS", "that subreddit only allows text posts", "sr");
        }
        "image" | "gallery" if !place.takes_media() => {
            return field_error(State, "NO_IMAGES", "that subreddit doesn't allow images", "sr");
        }
        "video" | "videogif" if !place.takes_media() => {
            return field_error(State, "NO_VIDEOS", "that subreddit doesn't allow videos", "sr");
        }
        _ => {}
    }
    post.parent = Some(name.to_owned());
    Ok(())
}

fn refuse_field(tx: &Transaction, caller: &Caller, (cause, code, words, field): FieldError) -> Response {
    caller.refuse(tx, cause, code, &words, field)
}

/// `POST /api/submit`.
pub(super) fn submit(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    is_json(tx, caller, request)?;
    let form = Submission { request, body: Value::Null };
    let begun = parse_submission(tx, caller, &form, request.field("kind").unwrap_or_default());
    let (place, mut post) = begun.map_err(|field_error| refuse_field(tx, caller, field_error))?;
    add_content(tx, caller, &form, &place, &mut post)
        .map_err(|field_error| refuse_field(tx, caller, field_error))?;
    caller.write(tx)?;
    let text = if post.parent.is_some() { String::new() } else { form.text("text").trim().to_owned() };
    let fault =
        Reddit.trigger_fault(tx, request, &caller.account.username, &format!("{}\n{text}", post.title))?;
    let end = post
        .assets
        .first()
        .map(|id| media::get(tx, id).map_or(Processing::Failed, |asset| asset.processing()));
    let is_failing =
        post.assets.first().and_then(|id| media::get(tx, id)).is_some_and(|asset| asset.is_failing());
    let mut thing = Thing {
        id: next(tx),
        owner: caller.account.id.clone(),
        place: place.name,
        made: Kind::Post(post),
        text,
        created_at: tx.now,
        visible_at: tx.now,
        is_deleted: false,
    };
    let address = format!("https://www.reddit.com{}", thing.permalink(tx));
    let Some(end) = end else {
        tx.store.put(&thing);
        let data = json!({
            "url": address, "id": thing.id, "name": thing.name(), "drafts_count": 0,
        });
        let body = json!({ "json": { "errors": [], "data": data } });
        return Ok(caller.reply(tx, &body).with_post(thing.name()).with_fault(fault));
    };
    // A post with media appears later, and only its author's socket gets its id.
    thing.visible_at = tx.now + processing(tx);
    let notification = Notification {
        token: random(),
        body: match end {
            Processing::Done => json!({ "type": "success", "payload": { "redirect": address } }),
            Processing::Failed => json!({ "type": "failed", "payload": {} }),
            Processing::Never => Value::Null,
        },
        at: thing.visible_at,
    };
    tx.store.put(&notification);
    let body = json!({ "json": { "errors": [], "data": {
        "user_submitted_page": format!("https://www.reddit.com/user/{}/submitted/", caller.account.username),
        "websocket_url": format!("{}/{}", origin(request, "ws", SOCKETS), notification.token),
    } } });
    let response = caller.reply(tx, &body).with_fault(fault);
    if end != Processing::Done {
        let is_wrong = end == Processing::Failed && !is_failing;
        return Ok(response.because(is_wrong.then_some(Content("media_type"))));
    }
    tx.store.put(&thing);
    Ok(response.with_post(thing.name()))
}

/// Without `api_type=json` the response is for a browser's script.
fn is_json(tx: &Transaction, caller: &Caller, request: &Request) -> Result<(), Response> {
    match request.field("api_type") {
        Some("json") => Ok(()),
        _ => Err(caller.reply(tx, &json!({ "jquery": [], "success": false }))),
    }
}

/// Checks and adds the content of a submission.
type AddContent = fn(&Transaction, &Caller, &Submission<'_>, &Subreddit, &mut Post) -> Result<(), FieldError>;

/// `POST /api/submit_gallery_post.json`.
pub(super) fn submit_gallery(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    submit_document(tx, request, caller, "gallery", add_gallery)
}

/// `POST /api/submit_poll_post.json`.
pub(super) fn submit_poll(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    submit_document(tx, request, caller, "poll", add_poll)
}

/// Publishes a submission whose body is JSON.
fn submit_document(
    tx: &mut Transaction,
    request: &Request,
    caller: &Caller,
    kind: &str,
    add: AddContent,
) -> Outcome {
    let body = request.json().ok().filter(Value::is_object).ok_or_else(|| error(400, "Bad Request"))?;
    let form = Submission { request, body };
    let begun = parse_submission(tx, caller, &form, kind);
    let (place, mut post) = begun.map_err(|field_error| refuse_field(tx, caller, field_error))?;
    add(tx, caller, &form, &place, &mut post).map_err(|field_error| refuse_field(tx, caller, field_error))?;
    caller.write(tx)?;
    let text = form.text("text").trim().to_owned();
    let fault =
        Reddit.trigger_fault(tx, request, &caller.account.username, &format!("{}\n{text}", post.title))?;
    let thing = Thing {
        id: next(tx),
        owner: caller.account.id.clone(),
        place: place.name,
        made: Kind::Post(post),
        text,
        created_at: tx.now,
        visible_at: tx.now,
        is_deleted: false,
    };
    tx.store.put(&thing);
    let address = format!("https://www.reddit.com{}", thing.permalink(tx));
    // Here the id is a full name.
    let body = json!({ "json": { "errors": [], "data": { "url": address, "id": thing.name() } } });
    Ok(caller.reply(tx, &body).with_post(thing.name()).with_fault(fault))
}

/// Checks and adds the options of a poll.
fn add_poll(
    _: &Transaction,
    _: &Caller,
    form: &Submission<'_>,
    place: &Subreddit,
    post: &mut Post,
) -> Result<(), FieldError> {
    if !place.takes_texts() {
        return field_error(State, "INVALID_OPTION", "that subreddit doesn't allow polls", "sr");
    }
    let options: Vec<String> = serde_json::from_value(form.body["options"].clone()).unwrap_or_default();
    if !(2..=6).contains(&options.len()) || options.iter().any(|option| option.trim().is_empty()) {
        return field_error(
            Content("options_of_a_poll"),
            "INVALID_OPTION",
            "a poll has 2 to 6 options",
            "options",
        );
    }
    let Some(days @ 1..=7) = form.body["duration"].as_u64() else {
        return field_error(
            Content("days_of_a_poll"),
            "INVALID_OPTION",
            "a poll lasts 1 to 7 days",
            "duration",
        );
    };
    post.poll = Some((options, days));
    Ok(())
}

/// Checks and adds the images of a gallery.
fn add_gallery(
    tx: &Transaction,
    caller: &Caller,
    form: &Submission<'_>,
    place: &Subreddit,
    post: &mut Post,
) -> Result<(), FieldError> {
    if !place.takes_media() {
        return field_error(State, "GALLERIES_DISABLED", "that subreddit doesn't allow galleries", "sr");
    }
    let items = form.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !(2..=20).contains(&items.len()) {
        return field_error(
            Content("images_of_a_gallery"),
            "INVALID_OPTION",
            "a gallery has 2 to 20 items",
            "items",
        );
    }
    for item in items {
        let asset = media::get(tx, item["media_id"].as_str().unwrap_or_default());
        let asset = asset.filter(|asset| {
            asset.owner == caller.account.id && !asset.is_video() && asset.processing() == Processing::Done
        });
        let Some(asset) = asset else {
            return field_error(
                State,
                "INVALID_OPTION",
                "that media is not there, or could not be processed",
                "items",
            );
        };
        let caption = item["caption"].as_str().unwrap_or_default();
        check_length(Content("caption_too_long"), caption, CAPTION, "items")?;
        post.assets.push(asset.id);
        post.captions.push(caption.to_owned());
    }
    Ok(())
}

/// `POST /api/comment`.
pub(super) fn comment(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    is_json(tx, caller, request)?;
    let parent = request.field("thing_id").unwrap_or_default().to_owned();
    let text = request.field("text").unwrap_or_default().trim().to_owned();
    if text.is_empty() {
        return Err(caller.refuse(tx, Content("empty_comment"), "NO_TEXT", "we need something here", "text"));
    }
    check_length(Content("comment_too_long"), &text, COMMENT, "text")
        .map_err(|field_error| refuse_field(tx, caller, field_error))?;
    let Some(above) = get(tx, &parent) else {
        let (code, words) = match parent.get(..3) {
            Some("t1_") => ("DELETED_COMMENT", "that comment has been deleted"),
            Some("t3_") => ("DELETED_LINK", "the link you are commenting on has been deleted"),
            _ => ("NO_THING_ID", "id not specified"),
        };
        return Err(caller.refuse(tx, State, code, words, "parent"));
    };
    caller.write(tx)?;
    let fault = Reddit.trigger_fault(tx, request, &caller.account.username, &text)?;
    let link = match &above.made {
        Kind::Post(_) => parent.clone(),
        Kind::Comment { link, .. } => link.clone(),
    };
    let thing = Thing {
        id: next(tx),
        owner: caller.account.id.clone(),
        place: above.place,
        made: Kind::Comment { link, parent },
        text,
        created_at: tx.now,
        visible_at: tx.now,
        is_deleted: false,
    };
    tx.store.put(&thing);
    Ok(things(tx, request, caller, &thing).with_post(thing.name()).with_fault(fault))
}

fn things(tx: &Transaction, request: &Request, caller: &Caller, thing: &Thing) -> Response {
    let (_, kind, data) = thing.listed(tx, request);
    let things = json!([{ "kind": kind, "data": data }]);
    caller.reply(tx, &json!({ "json": { "errors": [], "data": { "things": things } } }))
}

/// `POST /api/editusertext`.
pub(super) fn edit(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    is_json(tx, caller, request)?;
    let own = get(tx, request.field("thing_id").unwrap_or_default());
    let Some(mut thing) = own.filter(|thing| thing.owner == caller.account.id) else {
        return Err(caller.refuse(tx, State, "NOT_AUTHOR", "you can't do that", "thing_id"));
    };
    let max = if matches!(thing.made, Kind::Post(_)) { TEXT } else { COMMENT };
    let text = request.field("text").unwrap_or_default().trim();
    check_length(Content("text_too_long"), text, max, "text")
        .map_err(|field_error| refuse_field(tx, caller, field_error))?;
    text.clone_into(&mut thing.text);
    tx.store.put(&thing);
    Ok(things(tx, request, caller, &thing))
}

/// `POST /api/del`, whose response is always the same.
pub(super) fn delete(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let own = get(tx, request.field("id").unwrap_or_default());
    if let Some(thing) = own.filter(|thing| thing.owner == caller.account.id) {
        // Its answers stay, and so does its place above them.
        tx.store.put(&Thing { text: "[deleted]".into(), is_deleted: true, ..thing });
    }
    Ok(caller.reply(tx, &json!({})))
}

/// `GET /api/info`.
pub(super) fn info(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let names = request.query("id").unwrap_or_default().split(',').take(100);
    let found = names.filter_map(|name| find(tx, name)).map(|thing| thing.listed(tx, request)).collect();
    Ok(caller.reply(tx, &listing(request, found)))
}

/// `GET /comments/{id}`: a listing of the post and one of its comments.
pub(super) fn with_comments(tx: &mut Transaction, request: &Request, caller: &Caller, id: &str) -> Outcome {
    let name = format!("t3_{id}");
    let post = find(tx, &name).ok_or_else(|| error(404, "Not Found"))?;
    let below = tx.store.with_prefix("").filter(
        |thing: &Thing| matches!(&thing.made, Kind::Comment { link, parent } if *link == name && *parent == name),
    );
    let below: Vec<Thing> = below.collect();
    let mut both = [vec![post], below]
        .map(|things| listing(request, things.iter().map(|thing| thing.listed(tx, request)).collect()));
    for child in both[1]["data"]["children"].as_array_mut().into_iter().flatten() {
        child["data"]["replies"] = json!("");
    }
    Ok(caller.reply(tx, &json!(both)))
}

/// `GET /user/{name}/submitted`, `/comments` and `/overview`, newest first.
pub(super) fn list(
    tx: &mut Transaction,
    request: &Request,
    caller: &Caller,
    name: &str,
    list: &str,
) -> Outcome {
    let user = account::by_username(tx.store, ID, name).ok_or_else(|| error(404, "Not Found"))?;
    let all = by(tx, &user.id)
        .rev()
        .filter(|thing| match list {
            "submitted" => matches!(thing.made, Kind::Post(_)),
            "comments" => matches!(thing.made, Kind::Comment { .. }),
            _ => true,
        })
        .map(|thing| thing.listed(tx, request))
        .collect();
    Ok(caller.reply(tx, &listing(request, all)))
}
