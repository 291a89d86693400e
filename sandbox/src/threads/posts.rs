//! Containers, posts and replies: <https://developers.facebook.com/docs/threads/posts>.
//!
//! The first hashtag of a text becomes the post's topic and loses its mark. Undocumented refusals, such as
//! publishing a container twice, are worded like the Graph API's refusals of invalid parameters.

use super::{Account, DAY, Outcome, RateLimit, Request, Response, Transaction, graph};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    container::{Container, Status, fetched_image},
    fake_metrics::figure,
    graph::{error, invalid, missing, param},
    simulator::{PostView, Simulator},
    store::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

const POSTS: RateLimit = RateLimit::new("threads.posts", 250, DAY);
const REPLIES: RateLimit = RateLimit::new("threads.replies", 1_000, DAY);
const DELETES: RateLimit = RateLimit::new("threads.deletes", 100, DAY);
const SEARCHES: RateLimit = RateLimit::new("threads.searches", 500, DAY);

const KINDS: [&str; 4] = ["TEXT", "IMAGE", "VIDEO", "CAROUSEL"];
const CONTROLS: [&str; 5] =
    ["everyone", "accounts_you_follow", "mentioned_only", "parent_post_author_only", "followers_only"];
const METRICS: [&str; 6] = ["views", "likes", "replies", "reposts", "quotes", "shares"];

const TEXT: usize = 500;
const ALT: usize = 1_000;
const LINKS: usize = 5;
const ITEMS: usize = 20;
const VIDEO_BYTES: u64 = 1 << 30;

/// A post or a reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    id: String,
    /// The author's id.
    pub(super) author: String,
    username: String,
    text: String,
    topic: Option<String>,
    created_at: DateTime<Utc>,
    container: String,
    reply_to: Option<String>,
    root: Option<String>,
    is_hidden: bool,
    repost_of: Option<String>,
}

impl Record for Post {
    const TABLE: &'static str = "threads.post";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Returns the posts of an author, oldest first.
pub(super) fn by<'a>(tx: &'a Transaction, author: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    tx.store.linked("threads.author", author)
}

/// Stores a new post.
fn add(tx: &mut Transaction, post: &Post) {
    tx.store.put(post);
    tx.store.link("threads.author", &post.author, &post.id);
    tx.store.link("threads.code", &graph::shortcode(&post.id), &post.id);
    for (kind, of) in [("threads.parent", &post.reply_to), ("threads.root", &post.root)] {
        if let Some(of) = of {
            tx.store.link(kind, of, &post.id);
        }
    }
}

/// Returns the post whose address has this code.
pub(super) fn by_shortcode(tx: &Transaction, code: &str) -> Option<Post> {
    tx.store.linked("threads.code", code).next()
}

impl Post {
    fn address(&self) -> String {
        format!("www.threads.com/@{}/post/{}", self.username, graph::shortcode(&self.id))
    }

    /// Returns the post as a page shows it.
    pub(super) fn post_view(&self, tx: &Transaction) -> PostView {
        let container = Container::get(tx, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.parameter(name));
        let mut notes: Vec<String> = self.topic.iter().map(|topic| format!("Topic: {topic}")).collect();
        for (name, label) in [
            ("link_attachment", "Link"),
            ("poll_attachment", "Poll"),
            ("gif_attachment", "GIF"),
            ("text_attachment", "Text"),
            ("quote_post_id", "Quotes"),
            ("reply_control", "Replies"),
        ] {
            notes.extend(given(name).map(|value| format!("{label}: {value}")));
        }
        notes.extend(self.repost_of.iter().map(|id| format!("Repost of {id}")));
        PostView {
            id: self.id.clone(),
            address: self.address(),
            text: self.text.clone(),
            at: self.created_at,
            media: container.map(|container| container.media_views(tx)).unwrap_or_default(),
            notes,
            reply_to: self.reply_to.clone(),
        }
    }

    fn node(&self, tx: &Transaction, me: &str) -> Value {
        let container = Container::get(tx, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.parameter(name));
        let object = |name: &str| given(name).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let url = |container: &Container| {
            let file = container.file.as_ref()?;
            Some(format!("https://media.threads.sandbox/{}", file.id))
        };
        let kind = match (&self.repost_of, container.as_ref().map(|container| container.kind.as_str())) {
            (Some(_), _) => "REPOST_FACADE",
            (_, Some("CAROUSEL")) => "CAROUSEL_ALBUM",
            (_, Some("TEXT") | None) => "TEXT_POST",
            (_, Some("VIDEO")) => "VIDEO",
            (_, Some(_)) => "IMAGE",
        };
        let items: Vec<Value> = container
            .iter()
            .flat_map(|container| &container.items)
            .filter_map(|id| Container::get(tx, id))
            .map(|item| {
                json!({
                    "id": item.published.clone().unwrap_or_else(|| item.id.clone()),
                    "media_type": item.kind, "media_url": url(&item), "alt_text": item.parameter("alt_text"),
                    "permalink": null, "thumbnail_url": null, "timestamp": graph::time(item.created_at),
                })
            })
            .collect();
        let reference = |id: &Option<String>| id.as_ref().map(|id| json!({ "id": id }));
        let poll = object("poll_attachment").map(|mut poll| {
            for option in ["a", "b", "c", "d"] {
                if poll.get(format!("option_{option}")).is_some() {
                    poll[format!("option_{option}_votes_percentage")] = json!(0.0);
                }
            }
            poll["expiration_timestamp"] = json!(graph::time(self.created_at + TimeDelta::days(1)));
            poll
        });
        json!({
            "id": self.id,
            "media_product_type": "THREADS",
            "media_type": kind,
            "media_url": container.as_ref().and_then(url),
            "gif_url": null,
            "permalink": format!("https://{}", self.address()),
            "owner": { "id": self.author },
            "username": self.username,
            "text": (!self.text.is_empty()).then_some(&self.text),
            "timestamp": graph::time(self.created_at),
            "shortcode": graph::shortcode(&self.id),
            "thumbnail_url": null,
            "children": (!items.is_empty()).then(|| json!({ "data": items })),
            "is_quote_post": given("quote_post_id").is_some(),
            "quoted_post": reference(&given("quote_post_id")),
            "reposted_post": reference(&self.repost_of),
            "has_replies": tx.store.linked::<Post>("threads.parent", &self.id).next().is_some(),
            "alt_text": given("alt_text"),
            "link_attachment_url": given("link_attachment"),
            "is_reply": self.reply_to.is_some(),
            "is_reply_owned_by_me": self.reply_to.is_some() && self.author == me,
            "root_post": reference(&self.root),
            "replied_to": reference(&self.reply_to),
            "hide_status": if self.is_hidden { "HIDDEN" } else { "NOT_HUSHED" },
            "reply_audience": given("reply_control").unwrap_or_else(|| "everyone".into()).to_uppercase(),
            "poll_attachment": poll,
            "gif_attachment": object("gif_attachment"),
            "text_attachment": object("text_attachment"),
            "text_entities": object("text_entities"),
            "is_spoiler_media": given("is_spoiler_media").as_deref() == Some("true"),
            "location_id": given("location_id"),
            "location": reference(&given("location_id")),
            "topic_tag": self.topic,
            "is_verified": false,
            "profile_picture_url": null,
            "ghost_post_status": null,
        })
    }
}

/// `GET /me`.
pub(super) fn profile(_: &Transaction, request: &Request, me: &Account) -> Outcome {
    let node = json!({
        "id": me.id,
        "username": me.username,
        "name": me.display_name(),
        "threads_profile_picture_url": graph::avatar(me),
        "threads_biography": "An account of the sandbox.",
        "is_verified": false,
        "is_eligible_for_geo_gating": false,
        "recently_searched_keywords": null,
    });
    Ok(Response::json(200, &graph::select(&node, &graph::fields(request), "ThreadsUser", &["id"])?))
}

/// `POST /{user}/threads`: makes a container.
pub(super) fn create_container(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let get = |name: &str| param(request, name).filter(|text| !text.is_empty());
    let kind = get("media_type").unwrap_or_default();
    if !KINDS.contains(&kind.as_str()) {
        return Err(invalid(Protocol, &format!("Param media_type must be one of {{{}}}", KINDS.join(", "))));
    }
    let is_item = graph::is_true(request, "is_carousel_item");
    let text = get("text").unwrap_or_default();
    check_text(&kind, is_item, &text, get("link_attachment").as_deref())?;
    if let Some(control) = get("reply_control").filter(|control| !CONTROLS.contains(&control.as_str())) {
        let all = CONTROLS.join(", ");
        return Err(invalid(
            Protocol,
            &format!("Param reply_control must be one of {{{all}}} - got {control:?}"),
        ));
    }
    if get("alt_text").is_some_and(|alt| alt.chars().count() > ALT) {
        return Err(invalid(
            Content("alt_text_too_long"),
            "Param alt_text must be at most 1000 characters long.",
        ));
    }
    for name in ["link_attachment", "poll_attachment", "gif_attachment", "text_attachment", "is_ghost_post"] {
        if kind != "TEXT" && get(name).is_some() {
            return Err(invalid(
                Content("attachment_beside_media"),
                &format!("Param {name} can only be used with media_type TEXT"),
            ));
        }
    }
    let longer = get("text_attachment").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let is_linked = longer.is_some_and(|longer| longer["link_attachment_url"].is_string());
    if is_linked && get("link_attachment").is_some() {
        return Err(invalid(
            Content("two_links"),
            "Param link_attachment can't be used with a link_attachment_url",
        ));
    }
    if let Some(poll) = get("poll_attachment") {
        check_poll(&poll)?;
    }
    // "The only feature supported with ghost posts is text spoilers."
    let beside = [
        "poll_attachment",
        "gif_attachment",
        "text_attachment",
        "link_attachment",
        "topic_tag",
        "reply_control",
    ];
    if graph::is_true(request, "is_ghost_post") && beside.iter().any(|name| get(name).is_some()) {
        return Err(invalid(
            Content("ghost_post_with_more"),
            "Param is_ghost_post can't be used with other features than text spoilers",
        ));
    }
    if let Some(tag) = get("topic_tag") {
        check_topic(&tag)?;
    }
    for (name, scope) in
        [("location_id", "threads_location_tagging"), ("crossreshare_to_ig", "threads_share_to_instagram")]
    {
        if get(name).is_some_and(|value| value != "false") {
            super::admit(tx, request, &[scope])?;
        }
    }
    // A new post is not found at once.
    let lag = tx.settings.lag();
    let is_found = |id: &String| tx.store.get::<Post>(id).is_some_and(|post| tx.now - post.created_at >= lag);
    for name in ["reply_to_id", "quote_post_id"] {
        if let Some(id) = get(name).filter(|id| !is_found(id)) {
            return Err(missing("POST", &id));
        }
    }
    let file = fetch_medium(request, &kind)?;
    let items = if kind == "CAROUSEL" { children(tx, request, me)? } else { Vec::new() };
    let container = Container {
        id: graph::next_id(tx),
        owner: me.id.clone(),
        is_item,
        is_video: kind == "VIDEO",
        kind,
        text,
        file,
        items,
        given: graph::params(request),
        created_at: tx.now,
        published: None,
    };
    tx.store.put(&container);
    if graph::is_true(request, "auto_publish_text") && container.kind == "TEXT" {
        return publish_container(tx, request, me, container);
    }
    Ok(Response::json(200, &json!({ "id": container.id })))
}

fn check_topic(tag: &str) -> Result<(), Response> {
    if !(1..=50).contains(&tag.chars().count()) || tag.contains(['.', '&']) {
        return Err(invalid(
            Content("topic_tag"),
            "Param topic_tag must be 1 to 50 characters long, without periods and ampersands",
        ));
    }
    if tag.contains("sandbox-forbidden") {
        return Err(error(State, 400, 100, 4_279_071, "Topic Tag Not Permitted"));
    }
    Ok(())
}

fn check_text(kind: &str, is_item: bool, text: &str, link: Option<&str>) -> Result<(), Response> {
    let is_emoji = |c: char| crate::unicode::is_emoji(c) && !c.is_ascii();
    let length: usize = text.chars().map(|c| if is_emoji(c) { c.len_utf8() } else { 1 }).sum();
    if length > TEXT {
        return Err(invalid(Content("text_too_long"), "Param text must be at most 500 characters long."));
    }
    if kind == "TEXT" && text.is_empty() {
        return Err(invalid(Content("empty"), "The parameter text is required"));
    }
    if is_item && (kind == "TEXT" || kind == "CAROUSEL") {
        return Err(invalid(Protocol, "A carousel item must be of media_type IMAGE or VIDEO"));
    }
    let mut links: HashSet<&str> = links(text).collect();
    links.extend(link.map(without_scheme));
    if links.len() > LINKS {
        let message = "The post has more than 5 unique links.";
        return Err(error(Content("links"), 400, "THREADS_API__LINK_LIMIT_EXCEEDED", 0, message));
    }
    Ok(())
}

/// Returns the addresses in a text, which count with or without a scheme, without the scheme and the punctuation around
/// them.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let word = word.trim_matches(['.', ',', ':', ';', '!', '?', '(', ')', '"', '\'']);
        match word.find("http://").or_else(|| word.find("https://")) {
            Some(start) => Some(without_scheme(&word[start..])),
            None => is_host(word.split(['/', '?', '#']).next()?).then_some(word),
        }
    })
}

fn without_scheme(address: &str) -> &str {
    address.split_once("://").map_or(address, |(_, rest)| rest)
}

/// Returns whether a word is surely the host of an address.
fn is_host(word: &str) -> bool {
    let mut labels = word.rsplit('.');
    let is_known = labels.next().is_some_and(|last| ["com", "org", "net", "example"].contains(&last));
    let rest: Vec<_> = labels.collect();
    let is_label =
        |label: &&str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_known && !rest.is_empty() && rest.iter().all(is_label)
}

fn check_poll(text: &str) -> Result<(), Response> {
    let poll: Value = serde_json::from_str(text)
        .map_err(|_| invalid(Protocol, "Param poll_attachment must be an object"))?;
    let option = |name: &str| poll[format!("option_{name}")].as_str().unwrap_or_default().to_owned();
    let is_long = ["a", "b", "c", "d"].iter().any(|name| option(name).chars().count() > 25);
    if option("a").is_empty() || option("b").is_empty() || is_long {
        return Err(invalid(
            Content("options_of_a_poll"),
            "Param poll_attachment needs option_a and option_b, each of at most 25 characters",
        ));
    }
    Ok(())
}

/// Returns the fetched medium. An image is checked at once, a video when it is processed.
fn fetch_medium(request: &Request, kind: &str) -> Result<Option<crate::files::Upload>, Response> {
    let place = match kind {
        "IMAGE" => "image_url",
        "VIDEO" => "video_url",
        _ => return Ok(None),
    };
    let Some(address) = param(request, place).filter(|text| !text.is_empty()) else {
        return Err(invalid(Protocol, &format!("The parameter {place} is required")));
    };
    if kind == "IMAGE" {
        return fetched_image(request, &address, &["image/jpeg", "image/png"], 0.1..=10.0).map(Some);
    }
    let file = request.fetched(&address);
    if file.is_some_and(|file| file.size_bytes > VIDEO_BYTES) {
        return Err(invalid(Content("video_too_large"), "The video file is larger than 1 GB"));
    }
    Ok(file.cloned())
}

/// Returns the items of a carousel, which have to be finished items of the same account.
fn children(tx: &Transaction, request: &Request, me: &Account) -> Result<Vec<String>, Response> {
    let ids = graph::list(request, "children");
    if !(2..=ITEMS).contains(&ids.len()) {
        return Err(invalid(
            Content("items_of_a_carousel"),
            "Param children must have between 2 and 20 items",
        ));
    }
    for id in &ids {
        let item = Container::get(tx, id).filter(|item| item.owner == me.id && item.is_item);
        match item.map(|item| item.status(tx)) {
            Some(Status::Finished) => {}
            Some(_) => return Err(not_ready(id)),
            None => return Err(missing("POST", id)),
        }
    }
    Ok(ids)
}

fn not_ready(id: &str) -> Response {
    error(
        State,
        400,
        24,
        4_279_009,
        &format!(
            "The requested resource does not exist. Media Not Found: the media with id {id} cannot be found."
        ),
    )
}

/// `POST /{user}/threads_publish`.
pub(super) fn publish(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let Some(id) = param(request, "creation_id").filter(|id| !id.is_empty()) else {
        return Err(invalid(Protocol, "The parameter creation_id is required"));
    };
    let container = Container::get(tx, &id).filter(|container| container.owner == me.id);
    let container = container.filter(|container| !container.is_item).ok_or_else(|| not_ready(&id))?;
    match container.status(tx) {
        Status::Finished => publish_container(tx, request, me, container),
        Status::Published => Err(invalid(State, "The container was published already")),
        Status::Expired => Err(error(
            State,
            400,
            24,
            2_207_008,
            "The media builder with the given creation id does not exist or has expired.",
        )),
        Status::InProgress | Status::Unfetched | Status::Failed => Err(not_ready(&id)),
    }
}

/// Publishes a finished container.
fn publish_container(tx: &mut Transaction, request: &Request, me: &Account, container: Container) -> Outcome {
    let fault = super::Threads.trigger_fault(tx, request, &me.username, &container.text)?;
    let reply_to = container.parameter("reply_to_id");
    let parent = match &reply_to {
        None => None,
        Some(id) => Some(tx.store.get::<Post>(id).ok_or_else(|| missing("POST", id))?),
    };
    graph::spend_cap(tx, if reply_to.is_some() { REPLIES } else { POSTS }, &me.id)?;
    let explicit = container.parameter("topic_tag");
    let (text, topic) = match explicit {
        Some(topic) => (container.text.clone(), Some(topic)),
        None => extract_topic(&container.text),
    };
    let post = Post {
        id: graph::next_id(tx),
        author: me.id.clone(),
        username: me.username.clone(),
        text,
        topic,
        created_at: tx.now,
        container: container.id.clone(),
        root: parent.map(|parent| parent.root.unwrap_or(parent.id)),
        reply_to,
        is_hidden: false,
        repost_of: None,
    };
    add(tx, &post);
    for item in container.items.iter().filter_map(|id| Container::get(tx, id)).collect::<Vec<_>>() {
        let published = Some(graph::next_id(tx));
        tx.store.put(&Container { published, ..item });
    }
    tx.store.put(&Container { published: Some(post.id.clone()), ..container });
    Ok(Response::json(200, &json!({ "id": post.id })).with_post(post.id).with_fault(fault.clone()))
}

/// Returns a text without the mark of its first hashtag, and that hashtag as the topic.
fn extract_topic(text: &str) -> (String, Option<String>) {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '#' && !before.is_alphanumeric() {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| c.is_whitespace() || ".&#".contains(c)).unwrap_or(rest.len());
            let topic = &rest[..end];
            if (1..=50).contains(&topic.chars().count()) {
                return (format!("{}{rest}", &text[..at]), Some(topic.to_owned()));
            }
        }
        before = c;
    }
    (text.to_owned(), None)
}

/// `GET /{id}`: a container or a post.
pub(super) fn node(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    if let Some(post) = tx.store.get::<Post>(id) {
        let selected =
            graph::select(&post.node(tx, &me.id), &graph::fields(request), "ThreadsMedia", &["id"])?;
        return Ok(Response::json(200, &selected));
    }
    let container = Container::get(tx, id).filter(|container| container.is_readable(me));
    let container = container.ok_or_else(|| missing("GET", id))?;
    let end = container.status(tx);
    let (status, message) = match end {
        Status::InProgress => ("IN_PROGRESS", None),
        Status::Finished => ("FINISHED", None),
        Status::Published => ("PUBLISHED", None),
        Status::Expired => ("EXPIRED", None),
        Status::Unfetched => ("ERROR", Some("FAILED_DOWNLOADING_VIDEO")),
        Status::Failed => ("ERROR", Some("FAILED_PROCESSING_VIDEO")),
    };
    let node = json!({ "id": id, "status": status, "error_message": message });
    let cause = (end == Status::Failed).then(|| container.failure());
    let selected = graph::select(&node, &graph::fields(request), "ThreadsContainer", &["id"])?;
    Ok(Response::json(200, &selected).because(cause))
}

/// `GET /{user}/threads` and `/replies`: the account's own, newest first.
pub(super) fn list(tx: &Transaction, request: &Request, me: &Account, is_replies: bool) -> Outcome {
    let lag = tx.settings.lag();
    let shown = by(tx, &me.id).rev().filter(|post| {
        post.reply_to.is_some() == is_replies
            && tx.now - post.created_at >= lag
            && graph::is_within(request, post.created_at)
    });
    list_page(tx, request, &me.id, shown.collect())
}

/// `GET /{id}/replies` and `/conversation`.
pub(super) fn replies(
    tx: &Transaction,
    request: &Request,
    me: &Account,
    id: &str,
    is_direct: bool,
) -> Outcome {
    tx.store.get::<Post>(id).ok_or_else(|| missing("GET", id))?;
    let kind = if is_direct { "threads.parent" } else { "threads.root" };
    let mut shown: Vec<Post> = tx.store.linked(kind, id).collect();
    if param(request, "reverse").as_deref() != Some("false") {
        shown.reverse();
    }
    list_page(tx, request, &me.id, shown)
}

fn list_page(tx: &Transaction, request: &Request, me: &str, posts: Vec<Post>) -> Outcome {
    let fields = graph::fields(request);
    graph::paged(
        request,
        posts,
        |post| &post.id,
        |post| graph::select(&post.node(tx, me), &fields, "ThreadsMedia", &["id"]),
    )
}

/// `DELETE /{id}`.
pub(super) fn delete(tx: &mut Transaction, _: &Request, me: &Account, id: &str) -> Outcome {
    let post = tx.store.get::<Post>(id).filter(|post| post.author == me.id);
    let post = post.ok_or_else(|| missing("DELETE", id))?;
    tx.spend(DELETES, &me.id, 1)
        .map_err(|_| error(State, 400, 9, 2_207_042, "(#9) You reached the maximum number of deletions"))?;
    tx.store.remove::<Post>(&post.id);
    Ok(Response::json(200, &json!({ "success": true, "deleted_id": post.id })))
}

/// `POST /{id}/repost`.
pub(super) fn repost(tx: &mut Transaction, _: &Request, me: &Account, id: &str) -> Outcome {
    tx.store.get::<Post>(id).ok_or_else(|| missing("POST", id))?;
    graph::spend_cap(tx, POSTS, &me.id)?;
    let post = Post {
        id: graph::next_id(tx),
        author: me.id.clone(),
        username: me.username.clone(),
        text: String::new(),
        topic: None,
        created_at: tx.now,
        container: String::new(),
        reply_to: None,
        root: None,
        is_hidden: false,
        repost_of: Some(id.to_owned()),
    };
    add(tx, &post);
    Ok(Response::json(200, &json!({ "id": post.id })).with_post(post.id))
}

/// `POST /{id}/manage_reply`: hides a reply to one's own post, or shows it again.
pub(super) fn hide(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let reply = tx.store.get::<Post>(id).ok_or_else(|| missing("POST", id))?;
    let root = reply.root.as_ref().and_then(|root| tx.store.get::<Post>(root));
    root.filter(|root| root.author == me.id).ok_or_else(|| missing("POST", id))?;
    tx.store.put(&Post { is_hidden: graph::is_true(request, "hide"), ..reply });
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `GET /{user}/threads_publishing_limit`.
pub(super) fn limits(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let mut node = json!({});
    for (prefix, rule) in
        [("", POSTS), ("reply_", REPLIES), ("delete_", DELETES), ("location_search_", SEARCHES)]
    {
        let mut used = graph::quota_usage(tx, rule, &me.id);
        node[format!("{prefix}quota_usage")] = used["usage"].take();
        node[format!("{prefix}config")] = used["config"].take();
    }
    let selected = graph::select(&node, &graph::fields(request), "ThreadsPublishingLimit", &["quota_usage"])?;
    Ok(Response::json(200, &json!({ "data": [selected] })))
}

/// `GET /{id}/insights`.
pub(super) fn insights(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let post = tx.store.get::<Post>(id).filter(|post| post.author == me.id);
    let post = post.ok_or_else(|| missing("GET", id))?;
    if post.repost_of.is_some() {
        return Ok(Response::json(200, &json!({ "data": [] })));
    }
    let age = tx.now - post.created_at;
    // For a reply only direct replies count.
    let kind = if post.reply_to.is_some() { "threads.parent" } else { "threads.root" };
    let replies = tx.store.linked::<Post>(kind, id).count();
    let count = |name: &str| match name {
        "views" => Some(json!(figure(id, name, age, 12_000))),
        "replies" => Some(json!(replies)),
        name if METRICS.contains(&name) => Some(json!(figure(id, name, age, 300))),
        _ => None,
    };
    graph::insights(request, id, count, &METRICS)
}

/// `GET /{user}/threads_insights`.
pub(super) fn account_insights(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let names = [
        "views",
        "likes",
        "replies",
        "reposts",
        "quotes",
        "clicks",
        "followers_count",
        "follower_demographics",
    ];
    let age = tx.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(request, &me.id, count, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hashtag_becomes_the_topic() {
        assert_eq!(extract_topic("a #one and #two"), ("a one and #two".into(), Some("one".into())));
        assert_eq!(extract_topic("no # tag, C#m"), ("no # tag, C#m".into(), None));
        assert_eq!(extract_topic("#sandbox-429x2"), ("sandbox-429x2".into(), Some("sandbox-429x2".into())));
    }
}
