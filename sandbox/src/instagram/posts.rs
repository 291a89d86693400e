//! Containers, media and comments:
//! <https://developers.facebook.com/docs/instagram-platform/content-publishing> and the references of
//! IG User, IG Media and IG Comment. Codes of refusals are those of the table at
//! <https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/error-codes>.

use super::{Account, Answer, Call, DAY, ID, Instagram, Rule, Turn, account, avatar, graph, page};
use crate::{
    container::{Container, Stands, picture},
    fault,
    figures::figure,
    files::Upload,
    graph::{error, invalid, missing, param},
    host::{Card, Host},
    shelf::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const POSTS: Rule = Rule { name: "instagram.posts", limit: 100, seconds: DAY };
const CONTAINERS: Rule = Rule { name: "instagram.containers", limit: 400, seconds: DAY };

const CAPTION: usize = 2_200;
const HASHTAGS: usize = 30;
const MENTIONS: usize = 20;
const ALT: usize = 1_000;
const COLLABORATORS: usize = 3;
const ITEMS: usize = 10;
const VIDEO_BYTES: u64 = 300 << 20;

/// A post, a reel or a story.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Medium {
    id: String,
    author: String,
    username: String,
    caption: String,
    /// `FEED`, `REELS` or `STORY`.
    product: String,
    created_at: DateTime<Utc>,
    container: String,
    is_commented: bool,
}

impl Record for Medium {
    const SHELF: &'static str = "instagram.media";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// A comment, or a reply to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Comment {
    id: String,
    media: String,
    parent: Option<String>,
    author: String,
    username: String,
    text: String,
    is_hidden: bool,
    created_at: DateTime<Utc>,
}

impl Record for Comment {
    const SHELF: &'static str = "instagram.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Medium {
    fn address(&self) -> String {
        let code = graph::shortcode(&self.id);
        match self.product.as_str() {
            "REELS" => format!("www.instagram.com/reel/{code}/"),
            "STORY" => format!("www.instagram.com/stories/{}/{}/", self.username, self.id),
            _ => format!("www.instagram.com/p/{code}/"),
        }
    }

    fn card(&self, turn: &Turn<'_>) -> Card {
        let container = Container::get(turn, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.given(name));
        let mut notes = vec![self.product.clone()];
        for name in ["collaborators", "location_id", "user_tags", "cover_url", "share_to_feed", "is_ai_generated"] {
            notes.extend(given(name).map(|value| format!("{name}: {value}")));
        }
        Card {
            id: self.id.clone(),
            address: self.address(),
            text: self.caption.clone(),
            at: self.created_at,
            media: container.map(|container| container.pictures(turn)).unwrap_or_default(),
            notes,
            reply_to: None,
        }
    }

    fn node(&self, turn: &Turn<'_>) -> Value {
        let container = Container::get(turn, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.given(name));
        let kind = match &container {
            Some(container) if container.kind == "CAROUSEL" => "CAROUSEL_ALBUM",
            Some(container) if container.is_video => "VIDEO",
            _ => "IMAGE",
        };
        let age = turn.now - self.created_at;
        json!({
            "id": self.id,
            "alt_text": given("alt_text"),
            "caption": (!self.caption.is_empty()).then_some(&self.caption),
            "comments_count": below(turn, &self.id).count(),
            "is_ai_generated": given("is_ai_generated").as_deref() == Some("true"),
            "is_comment_enabled": self.is_commented,
            "is_shared_to_feed": (self.product == "REELS").then(|| given("share_to_feed").as_deref() == Some("true")),
            "like_count": figure(&self.id, "likes", age, 900),
            "media_product_type": self.product,
            "media_type": kind,
            "media_url": container.as_ref().and_then(url),
            "owner": { "id": self.author },
            "permalink": format!("https://{}", self.address()),
            "shortcode": graph::shortcode(&self.id),
            "thumbnail_url": null,
            "timestamp": graph::time(self.created_at),
            "username": self.username,
            "children": container.as_ref().filter(|container| !container.items.is_empty())
                .map(|container| json!({ "data": items(turn, container) })),
        })
    }
}

/// The address of what a container holds.
fn url(container: &Container) -> Option<String> {
    container.file.as_ref().map(|file| format!("https://media.instagram.sandbox/{}", file.id))
}

fn items(turn: &Turn<'_>, container: &Container) -> Vec<Value> {
    let items = container.items.iter().filter_map(|id| Container::get(turn, id));
    items
        .map(|item| {
            json!({
                "id": item.published.clone().unwrap_or_else(|| item.id.clone()),
                "media_type": if item.is_video { "VIDEO" } else { "IMAGE" },
                "media_url": url(&item), "alt_text": item.given("alt_text"), "thumbnail_url": null,
                "timestamp": graph::time(item.created_at),
            })
        })
        .collect()
}

impl Comment {
    fn card(&self, turn: &Turn<'_>) -> Card {
        let post = turn.shelf.get::<Medium>(&self.media).map(|post| post.address()).unwrap_or_default();
        Card {
            id: self.id.clone(),
            address: format!("{post}c/{}/", self.id),
            text: self.text.clone(),
            at: self.created_at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: Some(self.parent.clone().unwrap_or_else(|| self.media.clone())),
        }
    }

    fn node(&self, turn: &Turn<'_>) -> Value {
        let replies: Vec<Value> = below(turn, &self.id).map(|reply| json!({ "id": reply.id })).collect();
        json!({
            "id": self.id,
            "from": { "id": self.author, "username": self.username },
            "hidden": self.is_hidden,
            "like_count": 0,
            "media": turn.shelf.get::<Medium>(&self.media).map(|media| media.node(turn)),
            "parent_id": self.parent,
            "replies": (!replies.is_empty()).then(|| json!({ "data": replies })),
            "text": self.text,
            "timestamp": graph::time(self.created_at),
            "user": { "id": self.author },
            "username": self.username,
        })
    }
}

/// What an account published, newest first, its comments among it.
pub(super) fn cards(turn: &Turn<'_>, author: &str) -> Vec<Card> {
    let media = graph::tied::<Medium>(turn.shelf, "instagram.author", author);
    let mut cards: Vec<Card> = media.map(|post| post.card(turn)).collect();
    let comments = graph::tied::<Comment>(turn.shelf, "instagram.commenter", author);
    cards.extend(comments.map(|comment| comment.card(turn)));
    cards.sort_by(|a, b| b.id.cmp(&a.id));
    cards
}

/// The post whose address has this code.
pub(super) fn coded(turn: &Turn<'_>, code: &str) -> Option<String> {
    graph::tied::<Medium>(turn.shelf, "instagram.code", code).next().map(|post| post.id)
}

/// The page of a post or a comment.
pub(super) fn shown(turn: &Turn<'_>, id: &str) -> Option<String> {
    let medium = turn.shelf.get::<Medium>(id).map(|post| (post.author.clone(), post.card(turn)));
    let comment = || turn.shelf.get::<Comment>(id).map(|one| (one.author.clone(), one.card(turn)));
    let (author, card) = medium.or_else(comment)?;
    let author = account::numbered(turn.shelf, ID, &author)?;
    Some(page::post(&Instagram.identity(&author), ID, &card, &Instagram.posts(turn, &author)))
}

/// The comments right below a post or a comment, oldest first.
fn below<'a>(turn: &'a Turn<'_>, id: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    graph::tied(turn.shelf, "instagram.below", id)
}

/// `GET /me`.
pub(super) fn profile(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    let node = json!({
        "id": graph::number("instagram-app", &me.username, 24_000_000_000_000_000),
        "user_id": me.id,
        "username": me.username,
        "name": me.username,
        "account_type": "BUSINESS",
        "biography": "An account of the sandbox.",
        "followers_count": figure(&me.id, "followers", turn.now - me.created_at, 5_000),
        "follows_count": 0,
        "media_count": graph::tied::<Medium>(turn.shelf, "instagram.author", &me.id).count(),
        "profile_picture_url": avatar(me),
        "website": null,
    });
    Ok(Answer::json(200, &graph::select(&node, &graph::fields(call), "IGUser", &["id"])?))
}

/// `POST /{user}/media`: makes a container.
pub(super) fn fill(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_content_publish"])?;
    let get = |name: &str| param(call, name).filter(|text| !text.is_empty());
    let is_item = graph::is_on(call, "is_carousel_item");
    let kind = match get("media_type").as_deref() {
        None | Some("IMAGE") => "IMAGE",
        Some("VIDEO") if is_item => "VIDEO",
        Some("VIDEO") => return Err(invalid("The VIDEO media type is no longer supported. Use the REELS media type to publish a video.")),
        Some("REELS") if !is_item => "REELS",
        Some("STORIES") if !is_item => "STORIES",
        Some("CAROUSEL") if !is_item => "CAROUSEL",
        Some(_) => return Err(error(400, 100, 2_207_023, "The media type is unknown.")),
    };
    check(call, kind, is_item)?;
    let file = fetched(call, kind)?;
    let items = if kind == "CAROUSEL" { carousel(turn, call, me)? } else { Vec::new() };
    graph::capped(turn, CONTAINERS, &me.id)?;
    let container = Container {
        id: graph::id(turn),
        owner: me.id.clone(),
        is_item,
        is_video: matches!(kind, "VIDEO" | "REELS") || (kind == "STORIES" && get("video_url").is_some()),
        // A story shows no caption.
        text: if kind == "STORIES" { String::new() } else { get("caption").unwrap_or_default() },
        kind: kind.into(),
        file,
        items,
        given: graph::params(call),
        created_at: turn.now,
        published: None,
    };
    turn.shelf.put(&container);
    Ok(Answer::json(200, &json!({ "id": container.id })))
}

/// What a container is made with, its medium apart.
fn check(call: &Call, kind: &str, is_item: bool) -> Result<(), Answer> {
    let get = |name: &str| param(call, name).filter(|text| !text.is_empty());
    let caption = get("caption").unwrap_or_default();
    if caption.chars().count() > CAPTION {
        return Err(error(400, 36_004, 2_207_010, "The caption was too long."));
    }
    let count = |mark: char| caption.split_whitespace().filter(|word| word.starts_with(mark) && word.len() > 1).count();
    if count('#') > HASHTAGS {
        return Err(invalid("The caption has more than 30 hashtags."));
    }
    if count('@') > MENTIONS {
        return Err(error(400, 100, 2_207_040, "Cannot use more than 20 tags per created media."));
    }
    if get("alt_text").is_some_and(|alt| alt.chars().count() > ALT) {
        return Err(invalid("Param alt_text must be at most 1000 characters long."));
    }
    if get("alt_text").is_some() && kind != "IMAGE" {
        return Err(invalid("The param alt_text is only supported for images."));
    }
    let people = graph::list(call, "collaborators");
    if people.len() > COLLABORATORS || (!people.is_empty() && (is_item || kind == "STORIES")) {
        return Err(invalid("The param collaborators is not allowed, or has more than 3 usernames."));
    }
    for name in ["caption", "is_ai_generated", "location_id"] {
        if is_item && get(name).is_some() {
            return Err(invalid(&format!("The param {name} is not allowed on a carousel item.")));
        }
    }
    for name in ["share_to_feed", "thumb_offset", "cover_url", "audio_name", "trial_params"] {
        if kind != "REELS" && get(name).is_some() {
            return Err(invalid(&format!("The param {name} is only supported for reels.")));
        }
    }
    if let Some(offset) = get("thumb_offset")
        && !offset.parse::<u64>().is_ok_and(|offset| offset < 900_000)
    {
        return Err(error(400, 1, 2_207_057, "The thumbnail offset must be within the video's duration."));
    }
    if let Some(place) = get("location_id").filter(|place| !place.bytes().all(|byte| byte.is_ascii_digit())) {
        let message = format!("INSTAGRAM_PLATFORM_API__INVALID_LOCATION_ID: {place} is no place.");
        return Err(invalid(&message));
    }
    if let Some(tags) = get("user_tags") {
        let tags: Vec<Value> = serde_json::from_str(&tags).map_err(|_| invalid("Param user_tags must be an array"))?;
        let is_inside = |tag: &Value, axis: &str| tag[axis].as_f64().is_none_or(|at| (0.0..=1.0).contains(&at));
        if !tags.iter().all(|tag| tag["username"].is_string() && is_inside(tag, "x") && is_inside(tag, "y")) {
            return Err(error(400, 100, 2_207_035, "Tag positions must be between 0.0 and 1.0."));
        }
    }
    Ok(())
}

/// The medium that stood at the address. A picture is judged at once, a video when it is processed.
fn fetched(call: &Call, kind: &str) -> Result<Option<Upload>, Answer> {
    let get = |name: &str| param(call, name).filter(|text| !text.is_empty());
    let place = match (kind, get("video_url")) {
        ("CAROUSEL", _) => return Ok(None),
        ("VIDEO" | "REELS", _) | ("STORIES", Some(_)) => "video_url",
        _ => "image_url",
    };
    let Some(address) = get(place) else {
        return Err(invalid(&format!("The parameter {place} is required")));
    };
    if let Some(cover) = get("cover_url") {
        picture(call, &cover, &["image/jpeg"], 0.01..=10.0)?;
    }
    if place == "image_url" {
        let ratio = if kind == "STORIES" { 0.1..=10.0 } else { 0.79..=1.92 };
        return picture(call, &address, &["image/jpeg"], ratio).map(Some);
    }
    let file = call.at(&address);
    if file.is_some_and(|file| file.size_bytes > VIDEO_BYTES) {
        return Err(error(400, 352, 2_207_026, "The video file is larger than 300 MB."));
    }
    Ok(file.cloned())
}

/// The items of a carousel: finished, the account's own, and each of them an item.
fn carousel(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Vec<String>, Answer> {
    let ids = graph::list(call, "children");
    if !(2..=ITEMS).contains(&ids.len()) {
        return Err(error(400, 100, 2_207_028, "Your post won't work as a carousel. Carousels need at least 2 photos/videos and no more than 10 photos/videos."));
    }
    for id in &ids {
        let item = Container::get(turn, id).filter(|item| item.owner == me.id && item.is_item);
        match item.map(|item| item.stands(turn)) {
            Some(Stands::Finished) => {}
            Some(Stands::InProgress) => return Err(unready()),
            Some(_) | None => return Err(unknown(id)),
        }
    }
    Ok(ids)
}

fn unready() -> Answer {
    error(400, 9007, 2_207_027, "Media ID is not available: the media is not ready for publishing, please wait for a moment.")
}

fn unknown(id: &str) -> Answer {
    let message = format!("The media builder with creation id = {id} does not exist or has been expired.");
    error(400, 24, 2_207_008, &message)
}

/// `POST /{user}/media_publish`.
pub(super) fn publish(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_content_publish"])?;
    let Some(id) = param(call, "creation_id").filter(|id| !id.is_empty()) else {
        return Err(invalid("The parameter creation_id is required"));
    };
    let container = Container::get(turn, &id).filter(|container| container.owner == me.id && !container.is_item);
    let container = container.ok_or_else(|| unknown(&id))?;
    match container.stands(turn) {
        Stands::Finished => {}
        Stands::InProgress => return Err(unready()),
        Stands::Published => return Err(invalid("The container was published already")),
        Stands::Expired => return Err(unknown(&id)),
        Stands::Unfetched | Stands::Failed => {
            return Err(error(400, 24, 2_207_006, "The media could not be found."));
        }
    }
    let fault = match fault::draw(turn, ID, &me.username, &container.text) {
        Ok(fault) => fault,
        Err(fault) => return Ok(Instagram.fail(turn, call, fault)),
    };
    graph::capped(turn, POSTS, &me.id)?;
    let product = match container.kind.as_str() {
        "REELS" => "REELS",
        "STORIES" => "STORY",
        _ => "FEED",
    };
    let medium = Medium {
        id: graph::id(turn),
        author: me.id.clone(),
        username: me.username.clone(),
        caption: container.text.clone(),
        product: product.into(),
        created_at: turn.now,
        container: container.id.clone(),
        is_commented: true,
    };
    turn.shelf.put(&medium);
    graph::tie(turn, "instagram.author", &me.id, &medium.id);
    graph::tie(turn, "instagram.code", &graph::shortcode(&medium.id), &medium.id);
    for item in container.items.iter().filter_map(|id| Container::get(turn, id)).collect::<Vec<_>>() {
        let published = Some(graph::id(turn));
        turn.shelf.put(&Container { published, ..item });
    }
    turn.shelf.put(&Container { published: Some(medium.id.clone()), ..container });
    Ok(Answer::json(200, &json!({ "id": medium.id })).publishing(medium.id).because(fault))
}

/// `GET /{id}`: a container, a post or a comment.
pub(super) fn node(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    let fields = graph::fields(call);
    if let Some(post) = own(turn, me, id) {
        let told = graph::select(&post.node(turn), &fields, "IGMedia", &["id"])?;
        return Ok(Answer::json(200, &told));
    }
    if let Some(comment) = turn.shelf.get::<Comment>(id) {
        let told = graph::select(&comment.node(turn), &fields, "IGComment", &["id", "text", "timestamp"])?;
        return Ok(Answer::json(200, &told));
    }
    let container = Container::get(turn, id).filter(|container| container.owner == me.id);
    let container = container.ok_or_else(|| missing("GET", id))?;
    let (code, status) = match container.stands(turn) {
        Stands::InProgress => ("IN_PROGRESS", "In Progress: Media is still being processed."),
        Stands::Finished => ("FINISHED", "Finished: Media has been uploaded and it is ready to be published."),
        Stands::Published => ("PUBLISHED", "Published: Media has been already published."),
        Stands::Expired => ("EXPIRED", "Expired: Media was not published within 24 hours."),
        Stands::Unfetched => ("ERROR", "Error: Media upload has failed with error code 2207077"),
        Stands::Failed => ("ERROR", "Error: Media upload has failed with error code 2207026"),
    };
    let node = json!({ "id": id, "status_code": code, "status": status });
    Ok(Answer::json(200, &graph::select(&node, &fields, "ShadowIGMediaBuilder", &["id"])?))
}

fn own(turn: &Turn<'_>, me: &Account, id: &str) -> Option<Medium> {
    turn.shelf.get::<Medium>(id).filter(|post| post.author == me.id)
}

/// `POST /{id}`: whether a post may be commented on, or a comment is hidden.
pub(super) fn change(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_comments"])?;
    if let Some(post) = own(turn, me, id) {
        param(call, "comment_enabled").ok_or_else(|| invalid("The parameter comment_enabled is required"))?;
        turn.shelf.put(&Medium { is_commented: graph::is_on(call, "comment_enabled"), ..post });
    } else {
        let comment = turn.shelf.get::<Comment>(id).ok_or_else(|| missing("POST", id))?;
        param(call, "hide").ok_or_else(|| invalid("The parameter hide is required"))?;
        turn.shelf.put(&Comment { is_hidden: graph::is_on(call, "hide"), ..comment });
    }
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `DELETE /{id}`: a comment. With this login posts can't be removed.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_comments"])?;
    let comment = turn.shelf.get::<Comment>(id).ok_or_else(|| missing("DELETE", id))?;
    let is_theirs = comment.author == me.id || own(turn, me, &comment.media).is_some();
    if !is_theirs {
        return Err(missing("DELETE", id));
    }
    turn.shelf.remove::<Comment>(id);
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `GET /{user}/media` and `/stories`, newest first. Stories last a day and are in no other list.
pub(super) fn list(turn: &Turn<'_>, call: &Call, me: &Account, is_stories: bool) -> Result<Answer, Answer> {
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let is_shown = |post: &Medium| {
        let age = turn.now - post.created_at;
        let is_there = match is_stories {
            true => age < TimeDelta::seconds(DAY),
            false => graph::is_within(call, post.created_at),
        };
        (post.product == "STORY") == is_stories && age >= lag && is_there
    };
    let posts = graph::tied::<Medium>(turn.shelf, "instagram.author", &me.id).rev().filter(is_shown);
    let fields = graph::fields(call);
    graph::paged(
        call,
        posts.collect(),
        |post| &post.id,
        |post| graph::select(&post.node(turn), &fields, "IGMedia", &["id"]),
    )
}

/// `GET /{id}/children`.
pub(super) fn children(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    let post = own(turn, me, id).ok_or_else(|| missing("GET", id))?;
    let fields = graph::fields(call);
    let all = Container::get(turn, &post.container).map(|container| items(turn, &container));
    let told = all.unwrap_or_default();
    let told: Result<Vec<_>, _> =
        told.iter().map(|item| graph::select(item, &fields, "IGMedia", &["id"])).collect();
    Ok(Answer::json(200, &json!({ "data": told? })))
}

/// `GET /{id}/comments` and `/replies`, newest first.
pub(super) fn comments(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_comments"])?;
    if own(turn, me, id).is_none() && turn.shelf.get::<Comment>(id).is_none() {
        return Err(missing("GET", id));
    }
    let fields = graph::fields(call);
    graph::paged(
        call,
        below(turn, id).rev().collect(),
        |comment| &comment.id,
        |comment| graph::select(&comment.node(turn), &fields, "IGComment", &["id", "text", "timestamp"]),
    )
}

/// `POST /{media}/comments` and `POST /{comment}/replies`.
pub(super) fn comment(
    turn: &mut Turn<'_>,
    call: &Call,
    me: &Account,
    id: &str,
    is_reply: bool,
) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_comments"])?;
    let above = if is_reply { turn.shelf.get::<Comment>(id) } else { None };
    let media = above.as_ref().map_or(id, |comment| &comment.media);
    let post = own(turn, me, media).filter(|_| above.is_some() == is_reply).ok_or_else(|| missing("POST", id))?;
    let text = param(call, "message").filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| invalid("The parameter message is required"))?;
    if text.chars().count() > CAPTION {
        return Err(invalid("The comment is too long."));
    }
    if !post.is_commented {
        return Err(error(400, 10, 0, "(#10) Comments are turned off for this media"));
    }
    let fault = match fault::draw(turn, ID, &me.username, &text) {
        Ok(fault) => fault,
        Err(fault) => return Ok(Instagram.fail(turn, call, fault)),
    };
    let comment = Comment {
        id: graph::id(turn),
        media: post.id,
        parent: is_reply.then(|| id.to_owned()),
        author: me.id.clone(),
        username: me.username.clone(),
        text,
        is_hidden: false,
        created_at: turn.now,
    };
    turn.shelf.put(&comment);
    graph::tie(turn, "instagram.below", id, &comment.id);
    graph::tie(turn, "instagram.commenter", &me.id, &comment.id);
    Ok(Answer::json(200, &json!({ "id": comment.id })).publishing(comment.id).because(fault))
}

/// `GET /{user}/content_publishing_limit`.
pub(super) fn limits(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    let mut used = graph::used(turn, POSTS, &me.id);
    let node = json!({ "quota_usage": used["usage"].take(), "config": used["config"].take() });
    let told = graph::select(&node, &graph::fields(call), "ContentPublishingLimit", &["quota_usage"])?;
    Ok(Answer::json(200, &json!({ "data": [told] })))
}

/// `GET /{id}/insights`.
pub(super) fn insights(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_insights"])?;
    let post = own(turn, me, id).ok_or_else(|| missing("GET", id))?;
    let names: &[&str] = match post.product.as_str() {
        "STORY" => &["views", "reach", "shares", "replies", "reposts", "total_interactions", "follows", "profile_visits", "navigation"],
        "REELS" => &["views", "reach", "likes", "comments", "saved", "shares", "reposts", "total_interactions", "ig_reels_avg_watch_time", "ig_reels_video_view_total_time", "reels_skip_rate"],
        _ => &["views", "reach", "likes", "comments", "saved", "shares", "reposts", "total_interactions", "follows", "profile_visits", "profile_activity"],
    };
    let age = turn.now - post.created_at;
    let comments = below(turn, id).count();
    let count = |name: &str| match name {
        _ if !names.contains(&name) => None,
        "comments" | "replies" => Some(json!(comments)),
        "views" => Some(json!(figure(id, "views", age, 20_000))),
        "reach" => Some(json!(figure(id, "views", age, 20_000) * 7 / 10)),
        "likes" => Some(json!(figure(id, "likes", age, 900))),
        name => Some(json!(figure(id, name, age, 150))),
    };
    graph::insights(call, id, count, names)
}

/// `GET /{user}/insights`.
pub(super) fn account_insights(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["instagram_business_manage_insights"])?;
    let names = [
        "views", "reach", "likes", "comments", "shares", "saves", "replies", "reposts", "total_interactions",
        "accounts_engaged", "profile_links_taps", "follower_count",
    ];
    let age = turn.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(call, &me.id, count, &names)
}
