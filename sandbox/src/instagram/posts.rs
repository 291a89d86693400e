//! Containers, media and comments:
//! <https://developers.facebook.com/docs/instagram-platform/content-publishing> and the references of
//! IG User, IG Media and IG Comment. Codes of refusals are those of the table at
//! <https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/error-codes>.

use super::{
    Account, DAY, ID, Instagram, Outcome, RateLimit, Request, Response, Transaction, account, graph, page,
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    container::{Container, Status, fetched_image},
    fake_metrics::figure,
    files::Upload,
    graph::{error, invalid, missing, param},
    movie::Movie,
    simulator::{PostView, Simulator},
    store::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const POSTS: RateLimit = RateLimit::new("instagram.posts", 100, DAY);
const CONTAINERS: RateLimit = RateLimit::new("instagram.containers", 400, DAY);

const CAPTION: usize = 2_200;
const HASHTAGS: usize = 30;
const MENTIONS: usize = 20;
const ALT: usize = 1_000;
const COLLABORATORS: usize = 3;
const ITEMS: usize = 10;
const VIDEO_BYTES: u64 = 300 << 20;
const STORY_BYTES: u64 = 100 << 20;

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
    const TABLE: &'static str = "instagram.media";

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
    const TABLE: &'static str = "instagram.comment";

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

    fn post_view(&self, tx: &Transaction) -> PostView {
        let container = Container::get(tx, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.parameter(name));
        let mut notes = vec![self.product.clone()];
        for name in
            ["collaborators", "location_id", "user_tags", "cover_url", "share_to_feed", "is_ai_generated"]
        {
            notes.extend(given(name).map(|value| format!("{name}: {value}")));
        }
        if !self.is_commented {
            notes.push("Comments are off".to_owned());
        }
        let items = container.iter().flat_map(|container| &container.items);
        for (index, item) in items.filter_map(|id| Container::get(tx, id)).enumerate() {
            notes.extend(item.parameter("user_tags").map(|value| format!("user_tags of {index}: {value}")));
        }
        PostView {
            id: self.id.clone(),
            address: self.address(),
            text: self.caption.clone(),
            at: self.created_at,
            media: container.map(|container| container.media_views(tx)).unwrap_or_default(),
            notes,
            reply_to: None,
        }
    }

    fn node(&self, tx: &Transaction) -> Value {
        let container = Container::get(tx, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.parameter(name));
        let kind = match &container {
            Some(container) if container.kind == "CAROUSEL" => "CAROUSEL_ALBUM",
            Some(container) if container.is_video => "VIDEO",
            _ => "IMAGE",
        };
        let age = tx.now - self.created_at;
        json!({
            "id": self.id,
            "alt_text": given("alt_text"),
            "caption": (!self.caption.is_empty()).then_some(&self.caption),
            "comments_count": comments_of(tx, &self.id).count(),
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
                .map(|container| json!({ "data": items(tx, container) })),
        })
    }
}

/// Returns the address of a container's medium.
fn url(container: &Container) -> Option<String> {
    container.file.as_ref().map(|file| format!("https://media.instagram.sandbox/{}", file.id))
}

fn items(tx: &Transaction, container: &Container) -> Vec<Value> {
    let items = container.items.iter().filter_map(|id| Container::get(tx, id));
    items
        .map(|item| {
            json!({
                "id": item.published.clone().unwrap_or_else(|| item.id.clone()),
                "media_type": if item.is_video { "VIDEO" } else { "IMAGE" },
                "media_url": url(&item), "alt_text": item.parameter("alt_text"), "thumbnail_url": null,
                "timestamp": graph::time(item.created_at),
            })
        })
        .collect()
}

impl Comment {
    fn post_view(&self, tx: &Transaction) -> PostView {
        let post = tx.store.get::<Medium>(&self.media).map(|post| post.address()).unwrap_or_default();
        PostView {
            id: self.id.clone(),
            address: format!("{post}c/{}/", self.id),
            text: self.text.clone(),
            at: self.created_at,
            media: Vec::new(),
            notes: Vec::new(),
            reply_to: Some(self.parent.clone().unwrap_or_else(|| self.media.clone())),
        }
    }

    fn node(&self, tx: &Transaction) -> Value {
        let replies: Vec<Value> = comments_of(tx, &self.id).map(|reply| json!({ "id": reply.id })).collect();
        json!({
            "id": self.id,
            "from": { "id": self.author, "username": self.username },
            "hidden": self.is_hidden,
            "like_count": 0,
            "media": tx.store.get::<Medium>(&self.media).map(|media| media.node(tx)),
            "parent_id": self.parent,
            "replies": (!replies.is_empty()).then(|| json!({ "data": replies })),
            "text": self.text,
            "timestamp": graph::time(self.created_at),
            "user": { "id": self.author },
            "username": self.username,
        })
    }
}

/// Returns an account's posts and comments, newest first.
pub(super) fn views(tx: &Transaction, author: &str) -> Vec<PostView> {
    let media = tx.store.linked::<Medium>("instagram.author", author);
    let mut views: Vec<PostView> = media.map(|post| post.post_view(tx)).collect();
    let comments = tx.store.linked::<Comment>("instagram.commenter", author);
    views.extend(comments.map(|comment| comment.post_view(tx)));
    views.sort_by(|a, b| b.id.cmp(&a.id));
    views
}

/// Returns the post whose address has this code.
pub(super) fn by_shortcode(tx: &Transaction, code: &str) -> Option<String> {
    tx.store.linked::<Medium>("instagram.code", code).next().map(|post| post.id)
}

/// Renders the page of a post or a comment.
pub(super) fn post_page(tx: &Transaction, id: &str) -> Option<String> {
    let medium = tx.store.get::<Medium>(id).map(|post| (post.author.clone(), post.post_view(tx)));
    let comment = || tx.store.get::<Comment>(id).map(|one| (one.author.clone(), one.post_view(tx)));
    let (author, card) = medium.or_else(comment)?;
    let author = account::by_id(tx.store, ID, &author)?;
    Some(page::post(tx, &Instagram, &author, &card))
}

/// Returns the direct replies to a post or a comment, oldest first.
fn comments_of<'a>(tx: &'a Transaction, id: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tx.store.linked("instagram.below", id)
}

/// `GET /me`.
pub(super) fn profile(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let node = json!({
        "id": graph::account_id("instagram-app", &me.username, 24_000_000_000_000_000),
        "user_id": me.id,
        "username": me.username,
        "name": me.display_name(),
        "account_type": "BUSINESS",
        "biography": "An account of the sandbox.",
        "followers_count": figure(&me.id, "followers", tx.now - me.created_at, 5_000),
        "follows_count": 0,
        "media_count": tx.store.linked::<Medium>("instagram.author", &me.id).count(),
        "profile_picture_url": graph::avatar(me),
        "website": null,
    });
    Ok(Response::json(200, &graph::select(&node, &graph::fields(request), "IGUser", &["id"])?))
}

/// `POST /{user}/media`: makes a container.
pub(super) fn create_container(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let get = |name: &str| param(request, name).filter(|text| !text.is_empty());
    let is_item = graph::is_true(request, "is_carousel_item");
    let kind = match get("media_type").as_deref() {
        None | Some("IMAGE") => "IMAGE",
        Some("VIDEO") if is_item => "VIDEO",
        Some("VIDEO") => {
            return Err(invalid(
                Protocol,
                "The VIDEO media type is no longer supported. Use the REELS media type to publish a video.",
            ));
        }
        Some("REELS") if !is_item => "REELS",
        Some("STORIES") if !is_item => "STORIES",
        Some("CAROUSEL") if !is_item => "CAROUSEL",
        Some(_) => return Err(error(Protocol, 400, 100, 2_207_023, "The media type is unknown.")),
    };
    check(request, kind, is_item)?;
    let file = fetch_medium(request, kind)?;
    let seconds = file.as_ref().and_then(|file| Movie::read(&tx.files.read(&file.id)?).seconds);
    if let (Some(offset), Some(seconds)) = (get("thumb_offset"), seconds)
        && offset.parse::<f64>().is_ok_and(|offset| offset >= seconds * 1_000.0)
    {
        return Err(late_thumbnail());
    }
    let items = if kind == "CAROUSEL" { carousel(tx, request, me)? } else { Vec::new() };
    graph::spend_cap(tx, CONTAINERS, &me.id)?;
    let container = Container {
        id: graph::next_id(tx),
        owner: me.id.clone(),
        is_item,
        is_video: matches!(kind, "VIDEO" | "REELS") || (kind == "STORIES" && get("video_url").is_some()),
        // Stories have no caption.
        text: if kind == "STORIES" { String::new() } else { get("caption").unwrap_or_default() },
        kind: kind.into(),
        file,
        items,
        given: graph::params(request),
        created_at: tx.now,
        published: None,
    };
    tx.store.put(&container);
    Ok(Response::json(200, &json!({ "id": container.id })))
}

fn late_thumbnail() -> Response {
    error(
        Content("time_of_the_cover"),
        400,
        1,
        2_207_057,
        "The thumbnail offset must be within the video's duration.",
    )
}

/// Checks the parameters of a container but for its medium.
fn check(request: &Request, kind: &str, is_item: bool) -> Result<(), Response> {
    let get = |name: &str| param(request, name).filter(|text| !text.is_empty());
    let caption = get("caption").unwrap_or_default();
    if caption.chars().count() > CAPTION {
        return Err(error(Content("text_too_long"), 400, 36_004, 2_207_010, "The caption was too long."));
    }
    // The reference has the numbers and not what counts. The help says that no special characters work in a hashtag, and
    // nothing that `##a` or `@.` counts. <https://help.instagram.com/351460621611097>
    let begins = |word: &&str| word.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let count = |mark: char| {
        caption.split_whitespace().filter_map(|word| word.strip_prefix(mark)).filter(begins).count()
    };
    if count('#') > HASHTAGS {
        return Err(invalid(Content("hashtags"), "The caption has more than 30 hashtags."));
    }
    if count('@') > MENTIONS {
        return Err(error(
            Content("mentions"),
            400,
            100,
            2_207_040,
            "Cannot use more than 20 tags per created media.",
        ));
    }
    if get("alt_text").is_some_and(|alt| alt.chars().count() > ALT) {
        return Err(invalid(
            Content("alt_text_too_long"),
            "Param alt_text must be at most 1000 characters long.",
        ));
    }
    if get("alt_text").is_some() && kind != "IMAGE" {
        return Err(invalid(
            Content("alt_text_of_a_video"),
            "The param alt_text is only supported for images.",
        ));
    }
    let people = graph::list(request, "collaborators");
    let is_story = kind == "STORIES";
    if people.len() > COLLABORATORS || (!people.is_empty() && (is_item || is_story)) {
        let cause = match () {
            () if is_item => Protocol,
            () if is_story => Content("collaborators_of_a_story"),
            () => Content("collaborators"),
        };
        return Err(invalid(cause, "The param collaborators is not allowed, or has more than 3 usernames."));
    }
    if !people.iter().all(|name| is_username(name)) {
        return Err(no_such_user());
    }
    for name in ["caption", "is_ai_generated", "location_id"] {
        if is_item && get(name).is_some() {
            return Err(invalid(Protocol, &format!("The param {name} is not allowed on a carousel item.")));
        }
    }
    for name in ["share_to_feed", "thumb_offset", "cover_url", "audio_name", "trial_params"] {
        if kind != "REELS" && get(name).is_some() {
            return Err(invalid(
                Content("setting_of_a_reel"),
                &format!("The param {name} is only supported for reels."),
            ));
        }
    }
    if let Some(offset) = get("thumb_offset")
        && !offset.parse::<u64>().is_ok_and(|offset| offset < 900_000)
    {
        return Err(late_thumbnail());
    }
    if let Some(place) = get("location_id").filter(|place| !place.bytes().all(|byte| byte.is_ascii_digit())) {
        let message = format!("INSTAGRAM_PLATFORM_API__INVALID_LOCATION_ID: {place} is no place.");
        return Err(invalid(Content("location"), &message));
    }
    if kind == "CAROUSEL" && get("user_tags").is_some() {
        return Err(invalid(
            Content("people_in_a_carousel"),
            "The param user_tags is not allowed on a carousel; tag users in its items.",
        ));
    }
    if let Some(tags) = get("user_tags") {
        let tags: Vec<Value> =
            serde_json::from_str(&tags).map_err(|_| invalid(Protocol, "Param user_tags must be an array"))?;
        // "The object must contain all three properties (username, x, and y)" for an image; a video's need none.
        let is_optional = kind == "STORIES" || get("image_url").is_none();
        let is_inside =
            |tag: &Value, axis: &str| tag[axis].as_f64().map_or(is_optional, |at| (0.0..=1.0).contains(&at));
        if !tags.iter().all(|tag| tag["username"].is_string() && is_inside(tag, "x") && is_inside(tag, "y")) {
            return Err(error(
                Content("place_of_a_person"),
                400,
                100,
                2_207_035,
                "Tag positions must be between 0.0 and 1.0.",
            ));
        }
        if !tags.iter().filter_map(|tag| tag["username"].as_str()).all(is_username) {
            return Err(no_such_user());
        }
    }
    Ok(())
}

/// Live reports: a handle with `@` is refused as a user who is not found.
fn is_username(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
}

fn no_such_user() -> Response {
    error(Content("username"), 400, 110, 2_207_018, "The user could not be found.")
}

/// Returns the fetched medium. An image is checked at once, a video when it is processed.
fn fetch_medium(request: &Request, kind: &str) -> Result<Option<Upload>, Response> {
    let get = |name: &str| param(request, name).filter(|text| !text.is_empty());
    let place = match (kind, get("video_url")) {
        ("CAROUSEL", _) => return Ok(None),
        ("VIDEO" | "REELS", _) | ("STORIES", Some(_)) => "video_url",
        _ => "image_url",
    };
    let Some(address) = get(place) else {
        return Err(invalid(Protocol, &format!("The parameter {place} is required")));
    };
    if let Some(cover) = get("cover_url") {
        fetched_image(request, &cover, &["image/jpeg"], 0.01..=10.0)?;
    }
    if place == "image_url" {
        // As live posts of 2026 were taken: from 9:16 on, with its rounded pixels, while the page names 4:5.
        let ratio = if kind == "STORIES" { 0.1..=10.0 } else { 0.56..=1.92 };
        return fetched_image(request, &address, &["image/jpeg"], ratio).map(Some);
    }
    let file = request.fetched(&address);
    let most = if kind == "STORIES" { STORY_BYTES } else { VIDEO_BYTES };
    if file.is_some_and(|file| file.size_bytes > most) {
        return Err(error(Content("video_too_large"), 400, 352, 2_207_026, "The video file is too large."));
    }
    Ok(file.cloned())
}

/// Returns the items of a carousel, which have to be finished items of the same account.
fn carousel(tx: &Transaction, request: &Request, me: &Account) -> Result<Vec<String>, Response> {
    let ids = graph::list(request, "children");
    if !(2..=ITEMS).contains(&ids.len()) {
        return Err(error(
            Content("items_of_a_carousel"),
            400,
            100,
            2_207_028,
            "Your post won't work as a carousel. Carousels need at least 2 photos/videos and no more than 10 photos/videos.",
        ));
    }
    for id in &ids {
        let item = Container::get(tx, id).filter(|item| item.owner == me.id && item.is_item);
        match item.map(|item| item.status(tx)) {
            Some(Status::Finished) => {}
            Some(Status::InProgress) => return Err(not_ready()),
            Some(_) | None => return Err(unknown(id)),
        }
    }
    Ok(ids)
}

fn not_ready() -> Response {
    error(
        State,
        400,
        9007,
        2_207_027,
        "Media ID is not available: the media is not ready for publishing, please wait for a moment.",
    )
}

fn unknown(id: &str) -> Response {
    let message = format!("The media builder with creation id = {id} does not exist or has been expired.");
    error(State, 400, 24, 2_207_008, &message)
}

/// `POST /{user}/media_publish`.
pub(super) fn publish(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let Some(id) = param(request, "creation_id").filter(|id| !id.is_empty()) else {
        return Err(invalid(Protocol, "The parameter creation_id is required"));
    };
    let container =
        Container::get(tx, &id).filter(|container| container.owner == me.id && !container.is_item);
    let container = container.ok_or_else(|| unknown(&id))?;
    match container.status(tx) {
        Status::Finished => {}
        Status::InProgress => return Err(not_ready()),
        Status::Published => return Err(invalid(State, "The container was published already")),
        Status::Expired => return Err(unknown(&id)),
        Status::Unfetched | Status::Failed => {
            return Err(error(container.failure(), 400, 24, 2_207_006, "The media could not be found."));
        }
    }
    let fault = Instagram.trigger_fault(tx, request, &me.username, &container.text)?;
    graph::spend_cap(tx, POSTS, &me.id)?;
    let product = match container.kind.as_str() {
        "REELS" => "REELS",
        "STORIES" => "STORY",
        _ => "FEED",
    };
    let medium = Medium {
        id: graph::next_id(tx),
        author: me.id.clone(),
        username: me.username.clone(),
        caption: container.text.clone(),
        product: product.into(),
        created_at: tx.now,
        container: container.id.clone(),
        is_commented: true,
    };
    tx.store.put(&medium);
    tx.store.link("instagram.author", &me.id, &medium.id);
    tx.store.link("instagram.code", &graph::shortcode(&medium.id), &medium.id);
    for item in container.items.iter().filter_map(|id| Container::get(tx, id)).collect::<Vec<_>>() {
        let published = Some(graph::next_id(tx));
        tx.store.put(&Container { published, ..item });
    }
    tx.store.put(&Container { published: Some(medium.id.clone()), ..container });
    Ok(Response::json(200, &json!({ "id": medium.id })).with_post(medium.id).with_fault(fault))
}

/// `GET /{id}`: a container, a post or a comment.
pub(super) fn node(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let fields = graph::fields(request);
    if let Some(post) = own(tx, me, id) {
        let selected = graph::select(&post.node(tx), &fields, "IGMedia", &["id"])?;
        return Ok(Response::json(200, &selected));
    }
    if let Some(comment) = tx.store.get::<Comment>(id) {
        let selected = graph::select(&comment.node(tx), &fields, "IGComment", &["id", "text", "timestamp"])?;
        return Ok(Response::json(200, &selected));
    }
    let container = Container::get(tx, id).filter(|container| container.is_readable(me));
    let container = container.ok_or_else(|| missing("GET", id))?;
    let end = container.status(tx);
    let (code, status) = match end {
        Status::InProgress => ("IN_PROGRESS", "In Progress: Media is still being processed."),
        Status::Finished => {
            ("FINISHED", "Finished: Media has been uploaded and it is ready to be published.")
        }
        Status::Published => ("PUBLISHED", "Published: Media has been already published."),
        Status::Expired => ("EXPIRED", "Expired: Media was not published within 24 hours."),
        Status::Unfetched => ("ERROR", "Error: Media upload has failed with error code 2207077"),
        Status::Failed => ("ERROR", "Error: Media upload has failed with error code 2207026"),
    };
    let node = json!({ "id": id, "status_code": code, "status": status });
    let cause = (end == Status::Failed).then(|| container.failure());
    let selected = graph::select(&node, &fields, "ShadowIGMediaBuilder", &["id"])?;
    Ok(Response::json(200, &selected).because(cause))
}

fn own(tx: &Transaction, me: &Account, id: &str) -> Option<Medium> {
    tx.store.get::<Medium>(id).filter(|post| post.author == me.id)
}

/// `POST /{id}`: allows or forbids comments on a post, or hides a comment.
pub(super) fn change(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    if let Some(post) = own(tx, me, id) {
        let is_commented = match param(request, "comment_enabled").as_deref() {
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(_) => return Err(invalid(Protocol, "Param comment_enabled must be a boolean")),
            None => return Err(invalid(Protocol, "The parameter comment_enabled is required")),
        };
        tx.store.put(&Medium { is_commented, ..post });
    } else {
        let comment = tx.store.get::<Comment>(id).ok_or_else(|| missing("POST", id))?;
        param(request, "hide").ok_or_else(|| invalid(Protocol, "The parameter hide is required"))?;
        tx.store.put(&Comment { is_hidden: graph::is_true(request, "hide"), ..comment });
    }
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `DELETE /{id}`: a comment. With this login posts can't be removed.
pub(super) fn delete(tx: &mut Transaction, _: &Request, me: &Account, id: &str) -> Outcome {
    let comment = tx.store.get::<Comment>(id).ok_or_else(|| missing("DELETE", id))?;
    let is_theirs = comment.author == me.id || own(tx, me, &comment.media).is_some();
    if !is_theirs {
        return Err(missing("DELETE", id));
    }
    tx.store.remove::<Comment>(id);
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `GET /{user}/media` and `/stories`, newest first. Stories last a day and are in no other list.
pub(super) fn list(tx: &Transaction, request: &Request, me: &Account, is_stories: bool) -> Outcome {
    let lag = tx.settings.lag();
    let is_shown = |post: &Medium| {
        let age = tx.now - post.created_at;
        let is_there = match is_stories {
            true => age < TimeDelta::seconds(DAY),
            false => graph::is_within(request, post.created_at),
        };
        (post.product == "STORY") == is_stories && age >= lag && is_there
    };
    let posts = tx.store.linked::<Medium>("instagram.author", &me.id).rev().filter(is_shown);
    let fields = graph::fields(request);
    graph::paged(
        request,
        posts.collect(),
        |post| &post.id,
        |post| graph::select(&post.node(tx), &fields, "IGMedia", &["id"]),
    )
}

/// `GET /{id}/children`.
pub(super) fn children(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let post = own(tx, me, id).ok_or_else(|| missing("GET", id))?;
    let fields = graph::fields(request);
    let all = Container::get(tx, &post.container).map(|container| items(tx, &container));
    let selected = all.unwrap_or_default();
    let selected: Result<Vec<_>, _> =
        selected.iter().map(|item| graph::select(item, &fields, "IGMedia", &["id"])).collect();
    Ok(Response::json(200, &json!({ "data": selected? })))
}

/// `GET /{id}/comments` and `/replies`, newest first.
pub(super) fn comments(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    if own(tx, me, id).is_none() && tx.store.get::<Comment>(id).is_none() {
        return Err(missing("GET", id));
    }
    let fields = graph::fields(request);
    graph::paged(
        request,
        comments_of(tx, id).rev().collect(),
        |comment| &comment.id,
        |comment| graph::select(&comment.node(tx), &fields, "IGComment", &["id", "text", "timestamp"]),
    )
}

/// `POST /{media}/comments` and `POST /{comment}/replies`.
pub(super) fn comment(
    tx: &mut Transaction,
    request: &Request,
    me: &Account,
    id: &str,
    is_reply: bool,
) -> Outcome {
    let above = if is_reply { tx.store.get::<Comment>(id) } else { None };
    let media = above.as_ref().map_or(id, |comment| &comment.media);
    let post =
        own(tx, me, media).filter(|_| above.is_some() == is_reply).ok_or_else(|| missing("POST", id))?;
    let text = param(request, "message").filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| invalid(Content("empty_comment"), "The parameter message is required"))?;
    if text.chars().count() > CAPTION {
        return Err(invalid(Content("comment_too_long"), "The comment is too long."));
    }
    if !post.is_commented {
        return Err(error(State, 400, 10, 0, "(#10) Comments are turned off for this media"));
    }
    let fault = Instagram.trigger_fault(tx, request, &me.username, &text)?;
    let comment = Comment {
        id: graph::next_id(tx),
        media: post.id,
        parent: is_reply.then(|| id.to_owned()),
        author: me.id.clone(),
        username: me.username.clone(),
        text,
        is_hidden: false,
        created_at: tx.now,
    };
    tx.store.put(&comment);
    tx.store.link("instagram.below", id, &comment.id);
    tx.store.link("instagram.commenter", &me.id, &comment.id);
    Ok(Response::json(200, &json!({ "id": comment.id })).with_post(comment.id).with_fault(fault))
}

/// `GET /{user}/content_publishing_limit`.
pub(super) fn limits(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let mut used = graph::quota_usage(tx, POSTS, &me.id);
    let node = json!({ "quota_usage": used["usage"].take(), "config": used["config"].take() });
    let selected = graph::select(&node, &graph::fields(request), "ContentPublishingLimit", &["quota_usage"])?;
    Ok(Response::json(200, &json!({ "data": [selected] })))
}

/// `GET /{id}/insights`.
pub(super) fn insights(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let post = own(tx, me, id).ok_or_else(|| missing("GET", id))?;
    let names: &[&str] = match post.product.as_str() {
        "STORY" => &[
            "views",
            "reach",
            "shares",
            "replies",
            "reposts",
            "total_interactions",
            "follows",
            "profile_visits",
            "navigation",
        ],
        "REELS" => &[
            "views",
            "reach",
            "likes",
            "comments",
            "saved",
            "shares",
            "reposts",
            "total_interactions",
            "ig_reels_avg_watch_time",
            "ig_reels_video_view_total_time",
            "reels_skip_rate",
        ],
        _ => &[
            "views",
            "reach",
            "likes",
            "comments",
            "saved",
            "shares",
            "reposts",
            "total_interactions",
            "follows",
            "profile_visits",
            "profile_activity",
        ],
    };
    let age = tx.now - post.created_at;
    let comments = comments_of(tx, id).count();
    let count = |name: &str| match name {
        _ if !names.contains(&name) => None,
        "comments" | "replies" => Some(json!(comments)),
        "views" => Some(json!(figure(id, "views", age, 20_000))),
        "reach" => Some(json!(figure(id, "views", age, 20_000) * 7 / 10)),
        "likes" => Some(json!(figure(id, "likes", age, 900))),
        name => Some(json!(figure(id, name, age, 150))),
    };
    graph::insights(request, id, count, names)
}

/// `GET /{user}/insights`.
pub(super) fn account_insights(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let names = [
        "views",
        "reach",
        "likes",
        "comments",
        "shares",
        "saves",
        "replies",
        "reposts",
        "total_interactions",
        "accounts_engaged",
        "profile_links_taps",
        "follower_count",
    ];
    let age = tx.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(request, &me.id, count, &names)
}
