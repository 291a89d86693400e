//! Posts and comments: <https://www.reddit.com/dev/api#section_links_and_comments>.

use super::{
    Answer, Call, Caller, ID, Record, SOCKETS, Turn, account, admit, error,
    listing, media,
    media::{Asset, End, News},
    next, origin, places,
    places::Place,
    processing,
};
use crate::{
    fault::{self, Fault},
    figures::figure,
    files::KEPT_BYTES,
    host::{Card, Host, Picture},
    tokens::random,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The longest title, text, comment, caption and flair, in characters.
const TITLE: usize = 300;
const TEXT: usize = 40_000;
const COMMENT: usize = 10_000;
const CAPTION: usize = 180;
const FLAIR: usize = 64;

/// A post or a comment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Thing {
    /// Its id, without its kind.
    id: String,
    /// Whose it is.
    pub(super) owner: String,
    place: String,
    made: Made,
    text: String,
    created_at: DateTime<Utc>,
    /// When it is there for others.
    visible_at: DateTime<Utc>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Made {
    Post(Post),
    Comment {
        /// The whole id of the post.
        link: String,
        /// The whole id of what it answers.
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
    flair: Option<String>,
    is_nsfw: bool,
    is_spoiler: bool,
}

impl Record for Thing {
    const SHELF: &'static str = "reddit.thing";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// What a user wrote and everybody sees, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, user: &str) -> impl DoubleEndedIterator<Item = Thing> + use<'a> {
    let (user, now) = (user.to_owned(), turn.now);
    turn.shelf.under("").filter(move |thing: &Thing| thing.owner == user && thing.visible_at <= now)
}

/// The thing with this whole id, where everybody sees it.
pub(super) fn get(turn: &Turn<'_>, name: &str) -> Option<Thing> {
    let thing: Thing = turn.shelf.get(name.get(3..)?)?;
    (thing.name() == name && thing.visible_at <= turn.now).then_some(thing)
}

impl Thing {
    fn name(&self) -> String {
        match &self.made {
            Made::Post(_) => format!("t3_{}", self.id),
            Made::Comment { .. } => format!("t1_{}", self.id),
        }
    }

    fn permalink(&self, turn: &Turn<'_>) -> String {
        match &self.made {
            Made::Post(post) => {
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
            Made::Comment { link, .. } => match get(turn, link) {
                Some(post) => format!("{}{}/", post.permalink(turn), self.id),
                None => format!("/r/{}/comments/{}/_/{}/", self.place, &link[3..], self.id),
            },
        }
    }

    /// As a page shows it.
    pub(super) fn card(&self, turn: &Turn<'_>) -> Card {
        let mut notes = Vec::new();
        let mut card = Card {
            id: self.name(),
            address: format!("www.reddit.com{}", self.permalink(turn)),
            text: self.text.clone(),
            at: self.created_at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: None,
        };
        match &self.made {
            Made::Comment { parent, .. } => card.reply_to = Some(parent.clone()),
            Made::Post(post) => {
                card.text = [post.title.as_str(), &self.text].join("\n\n").trim_end().to_owned();
                notes.push(format!("In r/{}: {}", self.place, post.kind));
                notes.extend(post.url.iter().filter(|_| post.kind == "link").map(|url| format!("Leads to {url}")));
                notes.extend(post.flair.iter().map(|flair| format!("Flair: {flair}")));
                notes.extend(post.is_nsfw.then(|| "NSFW".to_owned()));
                notes.extend(post.is_spoiler.then(|| "Spoiler".to_owned()));
                let assets = post.assets.iter().filter_map(|id| media::get(turn, id)?.upload);
                let captions = post.captions.iter().map(String::as_str).chain(std::iter::repeat(""));
                card.media = assets
                    .zip(captions)
                    .map(|(upload, caption)| Picture {
                        // Only what was kept can be shown.
                        files: (upload.size_bytes <= KEPT_BYTES).then_some(upload.id).into_iter().collect(),
                        mime: upload.mime.unwrap_or_default(),
                        alt: caption.to_owned(),
                    })
                    .collect();
            }
        }
        Card { notes, ..card }
    }

    fn view(&self, turn: &Turn<'_>, call: &Call) -> Value {
        let author = account::numbered(turn.shelf, ID, &self.owner).map(|account| account.username);
        let age = turn.now - self.created_at;
        let score = 1 + figure(&self.id, "score", age, 900);
        let mut view = json!({
            "id": self.id,
            "name": self.name(),
            "author": author,
            "author_fullname": format!("t2_{}", self.owner),
            "subreddit": self.place,
            "subreddit_name_prefixed": format!("r/{}", self.place),
            "permalink": self.permalink(turn),
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
        let escape = |text: &str| match call.query("raw_json") {
            Some("1") => text.to_owned(),
            _ => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
        };
        match &self.made {
            Made::Comment { link, parent } => {
                view["body"] = json!(escape(&self.text));
                view["link_id"] = json!(link);
                view["parent_id"] = json!(parent);
                view["score_hidden"] = json!(false);
            }
            Made::Post(post) => {
                let below = turn.shelf.under("").filter(|thing: &Thing| {
                    matches!(&thing.made, Made::Comment { link, .. } if *link == self.name())
                });
                let own = format!("https://www.reddit.com{}", self.permalink(turn));
                let url = post.url.clone().unwrap_or(own);
                let more = json!({
                    "title": escape(&post.title),
                    "selftext": escape(&self.text),
                    "url": escape(&url),
                    "is_self": post.kind == "self",
                    "is_video": post.kind.starts_with("video"),
                    "over_18": post.is_nsfw,
                    "spoiler": post.is_spoiler,
                    "link_flair_text": post.flair.as_deref().map(escape),
                    "num_comments": below.count(),
                    "num_crossposts": figure(&self.id, "crossposts", age, 30),
                    "upvote_ratio": 0.97,
                    "view_count": null,
                    "removed_by_category": null,
                    "media": null,
                });
                let Value::Object(more) = more else { return view };
                view.as_object_mut().expect("it is one").extend(more);
                let assets: Vec<Asset> = post.assets.iter().filter_map(|id| media::get(turn, id)).collect();
                if post.kind == "gallery" {
                    view["is_gallery"] = json!(true);
                    view["gallery_data"] = gallery(post);
                    view["media_metadata"] = assets.iter().map(|asset| (asset.id.clone(), metadata(asset))).collect();
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

    fn listed(&self, turn: &Turn<'_>, call: &Call) -> (String, &'static str, Value) {
        let kind = if matches!(self.made, Made::Post(_)) { "t3" } else { "t1" };
        (self.name(), kind, self.view(turn, call))
    }
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

/// The words of a submission, from a form or a body of JSON.
struct Wish<'a> {
    call: &'a Call,
    body: Value,
}

impl Wish<'_> {
    fn text(&self, name: &str) -> &str {
        self.call.field(name).or_else(|| self.body[name].as_str()).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.call.field(name) {
            Some(word) => Some(matches!(word.to_lowercase().as_str(), "true" | "on" | "1" | "yes")),
            None => self.body[name].as_bool(),
        }
    }
}

type Complaint = (&'static str, String, &'static str);

fn complaint<T>(code: &'static str, words: impl Into<String>, field: &'static str) -> Result<T, Complaint> {
    Err((code, words.into(), field))
}

/// Where a post goes, and what every post has.
fn begin(turn: &Turn<'_>, caller: &Caller, wish: &Wish<'_>, kind: &str) -> Result<(Place, Post), Complaint> {
    let name = wish.text("sr");
    if name.is_empty() {
        return complaint("SUBREDDIT_REQUIRED", "you must specify a subreddit", "sr");
    }
    let Some(place) = places::find(turn, name) else {
        return complaint("SUBREDDIT_NOEXIST", "that subreddit doesn't exist", "sr");
    };
    if !place.admits(&caller.account) {
        return complaint("SUBREDDIT_NOTALLOWED", "you aren't allowed to post there.", "sr");
    }
    let title = wish.text("title").trim();
    if title.is_empty() {
        return complaint("NO_TEXT", "we need something here", "title");
    }
    within(title, TITLE, "title")?;
    within(wish.text("text"), TEXT, "text")?;
    let flair = flair(&place, wish)?;
    let post = Post {
        title: title.to_owned(),
        kind: kind.to_owned(),
        flair,
        is_nsfw: wish.flag("nsfw").unwrap_or(false),
        is_spoiler: wish.flag("spoiler").unwrap_or(false),
        ..Post::default()
    };
    Ok((place, post))
}

fn within(text: &str, most: usize, field: &'static str) -> Result<(), Complaint> {
    match text.chars().count() > most {
        true => complaint("TOO_LONG", format!("this is too long (max: {most})"), field),
        false => Ok(()),
    }
}

fn flair(place: &Place, wish: &Wish<'_>) -> Result<Option<String>, Complaint> {
    let (id, text) = (wish.text("flair_id"), wish.text("flair_text"));
    within(text, FLAIR, "flair_text")?;
    if id.is_empty() {
        return match place.needs_flair() {
            true => complaint("SUBMIT_VALIDATION_FLAIR_REQUIRED", "Your post must contain post flair.", "flair"),
            false => Ok(None),
        };
    }
    match place.flairs().into_iter().find(|flair| flair.id == id) {
        None => complaint("BAD_FLAIR_TEMPLATE_ID", "that flair does not exist", "flair"),
        Some(flair) if flair.is_editable && !text.is_empty() => Ok(Some(text.to_owned())),
        Some(flair) => Ok(Some(flair.text.to_owned())),
    }
}

/// What a post of one piece is made of.
fn fill(
    turn: &Turn<'_>,
    caller: &Caller,
    wish: &Wish<'_>,
    place: &Place,
    post: &mut Post,
) -> Result<(), Complaint> {
    let url = wish.text("url");
    let asset = |field: &'static str| match media::stored(turn, wish.text(field), &caller.account.id) {
        Some(asset) => Ok(asset),
        None => complaint("BAD_URL", "you should check that url", field),
    };
    match post.kind.as_str() {
        "self" if !place.takes_texts() => {
            complaint("NO_SELFS", "that subreddit doesn't allow text posts", "sr")
        }
        "self" => Ok(()),
        "link" if !place.takes_links() => complaint("NO_LINKS", "that subreddit only allows text posts", "sr"),
        "link" if url.is_empty() => complaint("NO_URL", "a url is required", "url"),
        "link" => {
            let is_address = url::Url::parse(url)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !is_address {
                return complaint("BAD_URL", "you should check that url", "url");
            }
            let is_there = turn.shelf.under("").any(|thing: Thing| {
                thing.place.eq_ignore_ascii_case(&place.name)
                    && matches!(&thing.made, Made::Post(other) if other.url.as_deref() == Some(url))
            });
            if is_there && wish.flag("resubmit") == Some(false) {
                return complaint("ALREADY_SUB", "that link has already been submitted", "url");
            }
            post.url = Some(url.to_owned());
            Ok(())
        }
        "image" if !place.takes_media() => complaint("NO_IMAGES", "that subreddit doesn't allow images", "sr"),
        "video" | "videogif" if !place.takes_media() => {
            complaint("NO_VIDEOS", "that subreddit doesn't allow videos", "sr")
        }
        "image" | "video" | "videogif" => {
            let asset = asset("url")?;
            if asset.is_video() == (post.kind == "image") {
                return complaint("BAD_URL", "you should check that url", "url");
            }
            if asset.is_video() && media::stored(turn, wish.text("video_poster_url"), &caller.account.id).is_none() {
                return complaint("MISSING_VIDEO_URLS", "This post is missing a video poster", "video_poster_url");
            }
            post.url = Some(asset.address());
            post.assets = vec![asset.id];
            Ok(())
        }
        _ => complaint("INVALID_OPTION", "that option is not valid", "kind"),
    }
}

fn told(turn: &Turn<'_>, caller: &Caller, (code, words, field): Complaint) -> Answer {
    caller.refuse(turn, code, &words, field)
}

/// Lets a fault that the words ask for take place.
fn drawn(turn: &mut Turn<'_>, call: &Call, caller: &Caller, words: &str) -> Result<Option<Fault>, Answer> {
    fault::draw(turn, ID, &caller.account.username, words)
        .map_err(|fault| super::Reddit.fail(turn, call, fault))
}

/// `POST /api/submit`.
pub(super) fn submit(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "submit")?;
    is_json(turn, &caller, call)?;
    let wish = Wish { call, body: Value::Null };
    let begun = begin(turn, &caller, &wish, call.field("kind").unwrap_or_default());
    let (place, mut post) = begun.map_err(|complaint| told(turn, &caller, complaint))?;
    fill(turn, &caller, &wish, &place, &mut post).map_err(|complaint| told(turn, &caller, complaint))?;
    caller.write(turn)?;
    let text = wish.text("text").trim().to_owned();
    let fault = drawn(turn, call, &caller, &format!("{}\n{text}", post.title))?;
    let end = post.assets.first().map(|id| media::get(turn, id).map_or(End::Failed, |asset| asset.end()));
    let mut thing = Thing {
        id: next(turn),
        owner: caller.account.id.clone(),
        place: place.name,
        made: Made::Post(post),
        text,
        created_at: turn.now,
        visible_at: turn.now,
    };
    let address = format!("https://www.reddit.com{}", thing.permalink(turn));
    let Some(end) = end else {
        turn.shelf.put(&thing);
        let data = json!({
            "url": address, "id": thing.id, "name": thing.name(), "drafts_count": 0,
        });
        let body = json!({ "json": { "errors": [], "data": data } });
        return Ok(caller.reply(turn, &body).publishing(thing.name()).because(fault));
    };
    // What is made of bytes comes into being later, and only its author's socket tells its id.
    thing.visible_at = turn.now + processing(turn);
    let news = News {
        token: random(),
        body: match end {
            End::Done => json!({ "type": "success", "payload": { "redirect": address } }),
            End::Failed => json!({ "type": "failed", "payload": {} }),
            End::Never => Value::Null,
        },
        at: thing.visible_at,
    };
    turn.shelf.put(&news);
    let body = json!({ "json": { "errors": [], "data": {
        "user_submitted_page": format!("https://www.reddit.com/user/{}/submitted/", caller.account.username),
        "websocket_url": format!("{}/{}", origin(call, "ws", SOCKETS), news.token),
    } } });
    let answer = caller.reply(turn, &body).because(fault);
    if end != End::Done {
        return Ok(answer);
    }
    turn.shelf.put(&thing);
    Ok(answer.publishing(thing.name()))
}

/// Without `api_type=json` the answer is for a browser's script, and of no use to a client.
fn is_json(turn: &Turn<'_>, caller: &Caller, call: &Call) -> Result<(), Answer> {
    match call.field("api_type") {
        Some("json") => Ok(()),
        _ => Err(caller.reply(turn, &json!({ "jquery": [], "success": false }))),
    }
}

/// `POST /api/submit_gallery_post.json`.
pub(super) fn submit_gallery(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "submit")?;
    let body = call.json().ok().filter(Value::is_object).ok_or_else(|| error(400, "Bad Request"))?;
    let wish = Wish { call, body };
    let begun = begin(turn, &caller, &wish, "gallery");
    let (place, mut post) = begun.map_err(|complaint| told(turn, &caller, complaint))?;
    arrange(turn, &caller, &wish, &place, &mut post).map_err(|complaint| told(turn, &caller, complaint))?;
    caller.write(turn)?;
    let text = wish.text("text").trim().to_owned();
    let fault = drawn(turn, call, &caller, &format!("{}\n{text}", post.title))?;
    let thing = Thing {
        id: next(turn),
        owner: caller.account.id.clone(),
        place: place.name,
        made: Made::Post(post),
        text,
        created_at: turn.now,
        visible_at: turn.now,
    };
    turn.shelf.put(&thing);
    let address = format!("https://www.reddit.com{}", thing.permalink(turn));
    // Here the id has its kind before it.
    let body = json!({ "json": { "errors": [], "data": { "url": address, "id": thing.name() } } });
    Ok(caller.reply(turn, &body).publishing(thing.name()).because(fault))
}

/// The pictures of a gallery.
fn arrange(
    turn: &Turn<'_>,
    caller: &Caller,
    wish: &Wish<'_>,
    place: &Place,
    post: &mut Post,
) -> Result<(), Complaint> {
    if !place.takes_media() {
        return complaint("GALLERIES_DISABLED", "that subreddit doesn't allow galleries", "sr");
    }
    let items = wish.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !(2..=20).contains(&items.len()) {
        return complaint("INVALID_OPTION", "a gallery has 2 to 20 items", "items");
    }
    for item in items {
        let asset = media::get(turn, item["media_id"].as_str().unwrap_or_default());
        let asset = asset.filter(|asset| {
            asset.owner == caller.account.id && !asset.is_video() && asset.end() == End::Done
        });
        let Some(asset) = asset else {
            return complaint("INVALID_OPTION", "that media is not there, or could not be processed", "items");
        };
        let caption = item["caption"].as_str().unwrap_or_default();
        within(caption, CAPTION, "items")?;
        post.assets.push(asset.id);
        post.captions.push(caption.to_owned());
    }
    Ok(())
}

/// `POST /api/comment`.
pub(super) fn comment(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "submit")?;
    is_json(turn, &caller, call)?;
    let parent = call.field("thing_id").unwrap_or_default().to_owned();
    let text = call.field("text").unwrap_or_default().trim().to_owned();
    if text.is_empty() {
        return Err(caller.refuse(turn, "NO_TEXT", "we need something here", "text"));
    }
    within(&text, COMMENT, "text").map_err(|complaint| told(turn, &caller, complaint))?;
    let Some(above) = get(turn, &parent) else {
        let (code, words) = match parent.get(..3) {
            Some("t1_") => ("DELETED_COMMENT", "that comment has been deleted"),
            Some("t3_") => ("DELETED_LINK", "the link you are commenting on has been deleted"),
            _ => ("NO_THING_ID", "id not specified"),
        };
        return Err(caller.refuse(turn, code, words, "parent"));
    };
    caller.write(turn)?;
    let fault = drawn(turn, call, &caller, &text)?;
    let link = match &above.made {
        Made::Post(_) => parent.clone(),
        Made::Comment { link, .. } => link.clone(),
    };
    let thing = Thing {
        id: next(turn),
        owner: caller.account.id.clone(),
        place: above.place,
        made: Made::Comment { link, parent },
        text,
        created_at: turn.now,
        visible_at: turn.now,
    };
    turn.shelf.put(&thing);
    Ok(things(turn, call, &caller, &thing).publishing(thing.name()).because(fault))
}

fn things(turn: &Turn<'_>, call: &Call, caller: &Caller, thing: &Thing) -> Answer {
    let (_, kind, data) = thing.listed(turn, call);
    let things = json!([{ "kind": kind, "data": data }]);
    caller.reply(turn, &json!({ "json": { "errors": [], "data": { "things": things } } }))
}

/// `POST /api/editusertext`.
pub(super) fn edit(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "edit")?;
    is_json(turn, &caller, call)?;
    let own = get(turn, call.field("thing_id").unwrap_or_default());
    let Some(mut thing) = own.filter(|thing| thing.owner == caller.account.id) else {
        return Err(caller.refuse(turn, "NOT_AUTHOR", "you can't do that", "thing_id"));
    };
    let most = if matches!(thing.made, Made::Post(_)) { TEXT } else { COMMENT };
    let text = call.field("text").unwrap_or_default().trim();
    within(text, most, "text").map_err(|complaint| told(turn, &caller, complaint))?;
    text.clone_into(&mut thing.text);
    turn.shelf.put(&thing);
    Ok(things(turn, call, &caller, &thing))
}

/// `POST /api/del`, which answers the same whatever it is given.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "edit")?;
    let own = get(turn, call.field("id").unwrap_or_default());
    if let Some(thing) = own.filter(|thing| thing.owner == caller.account.id) {
        turn.shelf.remove::<Thing>(&thing.id);
    }
    Ok(caller.reply(turn, &json!({})))
}

/// `GET /api/info`.
pub(super) fn named(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "read")?;
    let names = call.query("id").unwrap_or_default().split(',').take(100);
    let found = names.filter_map(|name| get(turn, name)).map(|thing| thing.listed(turn, call)).collect();
    Ok(caller.reply(turn, &listing(call, found)))
}

/// `GET /user/{name}/submitted`, `/comments` and `/overview`, newest first.
pub(super) fn list(turn: &mut Turn<'_>, call: &Call, name: &str, list: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "history")?;
    let user = account::named(turn.shelf, ID, name).ok_or_else(|| error(404, "Not Found"))?;
    let all = by(turn, &user.id)
        .rev()
        .filter(|thing| match list {
            "submitted" => matches!(thing.made, Made::Post(_)),
            "comments" => matches!(thing.made, Made::Comment { .. }),
            _ => true,
        })
        .map(|thing| thing.listed(turn, call))
        .collect();
    Ok(caller.reply(turn, &listing(call, all)))
}
