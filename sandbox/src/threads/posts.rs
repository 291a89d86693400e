//! Containers, posts and replies: <https://developers.facebook.com/docs/threads/posts>.
//!
//! The first hashtag of a text becomes the post's topic and loses its mark. What the sandbox can't
//! know, such as how a container that was published is refused when it is published again, is answered
//! as the Graph API answers what is wrong with a parameter.

use super::{Account, Answer, Call, DAY, ID, Rule, Turn, avatar, graph};
use crate::{
    container::{Container, Stands, picture},
    fault,
    figures::figure,
    graph::{error, invalid, missing, param},
    host::{Card, Host},
    shelf::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

const POSTS: Rule = Rule { name: "threads.posts", limit: 250, seconds: DAY };
const REPLIES: Rule = Rule { name: "threads.replies", limit: 1_000, seconds: DAY };
const DELETES: Rule = Rule { name: "threads.deletes", limit: 100, seconds: DAY };
const SEARCHES: Rule = Rule { name: "threads.searches", limit: 500, seconds: DAY };

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
    const SHELF: &'static str = "threads.post";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// The posts of an author, oldest first.
pub(super) fn by<'a>(turn: &'a Turn<'_>, author: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    graph::tied(turn.shelf, "threads.author", author)
}

/// Keeps a new post.
fn add(turn: &mut Turn<'_>, post: &Post) {
    turn.shelf.put(post);
    graph::tie(turn, "threads.author", &post.author, &post.id);
    graph::tie(turn, "threads.code", &graph::shortcode(&post.id), &post.id);
    for (kind, of) in [("threads.parent", &post.reply_to), ("threads.root", &post.root)] {
        if let Some(of) = of {
            graph::tie(turn, kind, of, &post.id);
        }
    }
}

/// The post whose address has this code.
pub(super) fn coded(turn: &Turn<'_>, code: &str) -> Option<Post> {
    graph::tied(turn.shelf, "threads.code", code).next()
}

impl Post {
    fn address(&self) -> String {
        format!("www.threads.com/@{}/post/{}", self.username, graph::shortcode(&self.id))
    }

    /// The post as a page shows it.
    pub(super) fn card(&self, turn: &Turn<'_>) -> Card {
        let container = Container::get(turn, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.given(name));
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
        Card {
            id: self.id.clone(),
            address: self.address(),
            text: self.text.clone(),
            at: self.created_at,
            media: container.map(|container| container.pictures(turn)).unwrap_or_default(),
            notes,
            reply_to: self.reply_to.clone(),
        }
    }

    fn node(&self, turn: &Turn<'_>, me: &str) -> Value {
        let container = Container::get(turn, &self.container);
        let given = |name: &str| container.as_ref().and_then(|container| container.given(name));
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
            .filter_map(|id| Container::get(turn, id))
            .map(|item| {
                json!({
                    "id": item.published.clone().unwrap_or_else(|| item.id.clone()),
                    "media_type": item.kind, "media_url": url(&item), "alt_text": item.given("alt_text"),
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
            "has_replies": graph::tied::<Post>(turn.shelf, "threads.parent", &self.id).next().is_some(),
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
pub(super) fn profile(call: &Call, me: &Account) -> Result<Answer, Answer> {
    let node = json!({
        "id": me.id,
        "username": me.username,
        "name": me.username,
        "threads_profile_picture_url": avatar(me),
        "threads_biography": "An account of the sandbox.",
        "is_verified": false,
        "is_eligible_for_geo_gating": false,
        "recently_searched_keywords": null,
    });
    Ok(Answer::json(200, &graph::select(&node, &graph::fields(call), "ThreadsUser", &["id"])?))
}

/// `POST /{user}/threads`: makes a container.
pub(super) fn fill(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_content_publish"])?;
    let get = |name: &str| param(call, name).filter(|text| !text.is_empty());
    let kind = get("media_type").unwrap_or_default();
    if !KINDS.contains(&kind.as_str()) {
        return Err(invalid(&format!("Param media_type must be one of {{{}}}", KINDS.join(", "))));
    }
    let is_item = graph::is_on(call, "is_carousel_item");
    let text = get("text").unwrap_or_default();
    check_text(&kind, is_item, &text, get("link_attachment").as_deref())?;
    if let Some(control) = get("reply_control").filter(|control| !CONTROLS.contains(&control.as_str())) {
        let all = CONTROLS.join(", ");
        return Err(invalid(&format!("Param reply_control must be one of {{{all}}} - got {control:?}")));
    }
    if get("alt_text").is_some_and(|alt| alt.chars().count() > ALT) {
        return Err(invalid("Param alt_text must be at most 1000 characters long."));
    }
    for name in ["link_attachment", "poll_attachment", "gif_attachment", "text_attachment", "is_ghost_post"] {
        if kind != "TEXT" && get(name).is_some() {
            return Err(invalid(&format!("Param {name} can only be used with media_type TEXT")));
        }
    }
    if let Some(poll) = get("poll_attachment") {
        check_poll(&poll)?;
    }
    if let Some(tag) = get("topic_tag") {
        if !(1..=50).contains(&tag.chars().count()) || tag.contains(['.', '&']) {
            return Err(invalid("Param topic_tag must be 1 to 50 characters long, without periods and ampersands"));
        }
        if tag.contains("sandbox-forbidden") {
            return Err(error(400, 100, 4_279_071, "Topic Tag Not Permitted"));
        }
    }
    for name in ["reply_to_id", "quote_post_id"] {
        if let Some(id) = get(name).filter(|id| turn.shelf.get::<Post>(id).is_none()) {
            return Err(missing("POST", &id));
        }
    }
    let file = fetched(call, &kind)?;
    let items = if kind == "CAROUSEL" { children(turn, call, me)? } else { Vec::new() };
    let container = Container {
        id: graph::id(turn),
        owner: me.id.clone(),
        is_item,
        is_video: kind == "VIDEO",
        kind,
        text,
        file,
        items,
        given: graph::params(call),
        created_at: turn.now,
        published: None,
    };
    turn.shelf.put(&container);
    if graph::is_on(call, "auto_publish_text") && container.kind == "TEXT" {
        return live(turn, call, me, container);
    }
    Ok(Answer::json(200, &json!({ "id": container.id })))
}

fn check_text(kind: &str, is_item: bool, text: &str, link: Option<&str>) -> Result<(), Answer> {
    let is_emoji = |c: char| unicode_properties::UnicodeEmoji::is_emoji_char(c) && !c.is_ascii();
    let length: usize = text.chars().map(|c| if is_emoji(c) { c.len_utf8() } else { 1 }).sum();
    if length > TEXT {
        return Err(invalid("Param text must be at most 500 characters long."));
    }
    if kind == "TEXT" && text.is_empty() {
        return Err(invalid("The parameter text is required"));
    }
    if is_item && (kind == "TEXT" || kind == "CAROUSEL") {
        return Err(invalid("A carousel item must be of media_type IMAGE or VIDEO"));
    }
    let mut links: HashSet<&str> = links(text).collect();
    links.extend(link);
    if links.len() > LINKS {
        let message = "The post has more than 5 unique links.";
        return Err(error(400, "THREADS_API__LINK_LIMIT_EXCEEDED", 0, message));
    }
    Ok(())
}

/// The addresses in a text that begin with a scheme, without the punctuation around them.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let start = word.find("http://").or_else(|| word.find("https://"))?;
        Some(word[start..].trim_end_matches(['.', ',', ':', ';', '!', '?', ')', '"', '\'']))
    })
}

fn check_poll(text: &str) -> Result<(), Answer> {
    let poll: Value = serde_json::from_str(text).map_err(|_| invalid("Param poll_attachment must be an object"))?;
    let option = |name: &str| poll[format!("option_{name}")].as_str().unwrap_or_default().to_owned();
    let is_long = ["a", "b", "c", "d"].iter().any(|name| option(name).chars().count() > 25);
    if option("a").is_empty() || option("b").is_empty() || is_long {
        return Err(invalid("Param poll_attachment needs option_a and option_b, each of at most 25 characters"));
    }
    Ok(())
}

/// The medium that stood at the address. A picture is judged at once, a video when it is processed.
fn fetched(call: &Call, kind: &str) -> Result<Option<crate::files::Upload>, Answer> {
    let place = match kind {
        "IMAGE" => "image_url",
        "VIDEO" => "video_url",
        _ => return Ok(None),
    };
    let Some(address) = param(call, place).filter(|text| !text.is_empty()) else {
        return Err(invalid(&format!("The parameter {place} is required")));
    };
    if kind == "IMAGE" {
        return picture(call, &address, &["image/jpeg", "image/png"], 0.1..=10.0).map(Some);
    }
    let file = call.at(&address);
    if file.is_some_and(|file| file.size_bytes > VIDEO_BYTES) {
        return Err(invalid("The video file is larger than 1 GB"));
    }
    Ok(file.cloned())
}

/// The items of a carousel: finished, the account's own, and each of them an item.
fn children(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Vec<String>, Answer> {
    let ids = graph::list(call, "children");
    if !(2..=ITEMS).contains(&ids.len()) {
        return Err(invalid("Param children must have between 2 and 20 items"));
    }
    for id in &ids {
        let item = Container::get(turn, id).filter(|item| item.owner == me.id && item.is_item);
        match item.map(|item| item.stands(turn)) {
            Some(Stands::Finished) => {}
            Some(_) => return Err(unready(id)),
            None => return Err(missing("POST", id)),
        }
    }
    Ok(ids)
}

fn unready(id: &str) -> Answer {
    error(400, 24, 4_279_009, &format!("The requested resource does not exist. Media Not Found: the media with id {id} cannot be found."))
}

/// `POST /{user}/threads_publish`.
pub(super) fn publish(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_content_publish"])?;
    let Some(id) = param(call, "creation_id").filter(|id| !id.is_empty()) else {
        return Err(invalid("The parameter creation_id is required"));
    };
    let container = Container::get(turn, &id).filter(|container| container.owner == me.id);
    let container = container.filter(|container| !container.is_item).ok_or_else(|| unready(&id))?;
    match container.stands(turn) {
        Stands::Finished => live(turn, call, me, container),
        Stands::Published => Err(invalid("The container was published already")),
        Stands::Expired => Err(error(400, 24, 2_207_008, "The media builder with the given creation id does not exist or has expired.")),
        Stands::InProgress | Stands::Unfetched | Stands::Failed => Err(unready(&id)),
    }
}

/// Publishes a container that is finished.
fn live(turn: &mut Turn<'_>, call: &Call, me: &Account, container: Container) -> Result<Answer, Answer> {
    let fault = match fault::draw(turn, ID, &me.username, &container.text) {
        Ok(fault) => fault,
        Err(fault) => return Ok(super::Threads.fail(turn, call, fault)),
    };
    let reply_to = container.given("reply_to_id");
    let parent = match &reply_to {
        None => None,
        Some(id) => Some(turn.shelf.get::<Post>(id).ok_or_else(|| missing("POST", id))?),
    };
    graph::capped(turn, if reply_to.is_some() { REPLIES } else { POSTS }, &me.id)?;
    let explicit = container.given("topic_tag");
    let (text, topic) = match explicit {
        Some(topic) => (container.text.clone(), Some(topic)),
        None => tagged(&container.text),
    };
    let post = Post {
        id: graph::id(turn),
        author: me.id.clone(),
        username: me.username.clone(),
        text,
        topic,
        created_at: turn.now,
        container: container.id.clone(),
        root: parent.map(|parent| parent.root.unwrap_or(parent.id)),
        reply_to,
        is_hidden: false,
        repost_of: None,
    };
    add(turn, &post);
    for item in container.items.iter().filter_map(|id| Container::get(turn, id)).collect::<Vec<_>>() {
        let published = Some(graph::id(turn));
        turn.shelf.put(&Container { published, ..item });
    }
    turn.shelf.put(&Container { published: Some(post.id.clone()), ..container });
    Ok(Answer::json(200, &json!({ "id": post.id })).publishing(post.id).because(fault.clone()))
}

/// A text whose first hashtag has become the topic, and lost its mark.
fn tagged(text: &str) -> (String, Option<String>) {
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
pub(super) fn node(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    if let Some(post) = turn.shelf.get::<Post>(id) {
        let told = graph::select(&post.node(turn, &me.id), &graph::fields(call), "ThreadsMedia", &["id"])?;
        return Ok(Answer::json(200, &told));
    }
    let container = Container::get(turn, id).filter(|container| container.owner == me.id);
    let container = container.ok_or_else(|| missing("GET", id))?;
    let (status, message) = match container.stands(turn) {
        Stands::InProgress => ("IN_PROGRESS", None),
        Stands::Finished => ("FINISHED", None),
        Stands::Published => ("PUBLISHED", None),
        Stands::Expired => ("EXPIRED", None),
        Stands::Unfetched => ("ERROR", Some("FAILED_DOWNLOADING_VIDEO")),
        Stands::Failed => ("ERROR", Some("FAILED_PROCESSING_VIDEO")),
    };
    let node = json!({ "id": id, "status": status, "error_message": message });
    Ok(Answer::json(200, &graph::select(&node, &graph::fields(call), "ThreadsContainer", &["id"])?))
}

/// `GET /{user}/threads` and `/replies`: the account's own, newest first.
pub(super) fn list(turn: &Turn<'_>, call: &Call, me: &Account, is_replies: bool) -> Result<Answer, Answer> {
    if is_replies {
        graph::admit(turn, ID, call, &["threads_read_replies"])?;
    }
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let shown = by(turn, &me.id).rev().filter(|post| {
        post.reply_to.is_some() == is_replies
            && turn.now - post.created_at >= lag
            && graph::is_within(call, post.created_at)
    });
    told(turn, call, &me.id, shown.collect())
}

/// `GET /{id}/replies` and `/conversation`.
pub(super) fn replies(turn: &Turn<'_>, call: &Call, id: &str, is_direct: bool) -> Result<Answer, Answer> {
    let token = graph::admit(turn, ID, call, &["threads_read_replies"])?;
    turn.shelf.get::<Post>(id).ok_or_else(|| missing("GET", id))?;
    let kind = if is_direct { "threads.parent" } else { "threads.root" };
    let mut shown: Vec<Post> = graph::tied(turn.shelf, kind, id).collect();
    if param(call, "reverse").as_deref() != Some("false") {
        shown.reverse();
    }
    told(turn, call, &token.user, shown)
}

fn told(turn: &Turn<'_>, call: &Call, me: &str, posts: Vec<Post>) -> Result<Answer, Answer> {
    let fields = graph::fields(call);
    graph::paged(
        call,
        posts,
        |post| &post.id,
        |post| graph::select(&post.node(turn, me), &fields, "ThreadsMedia", &["id"]),
    )
}

/// `DELETE /{id}`.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_delete"])?;
    let post = turn.shelf.get::<Post>(id).filter(|post| post.author == me.id);
    let post = post.ok_or_else(|| missing("DELETE", id))?;
    turn.spend(DELETES, &me.id, 1)
        .map_err(|_| error(400, 9, 2_207_042, "(#9) You reached the maximum number of deletions"))?;
    turn.shelf.remove::<Post>(&post.id);
    Ok(Answer::json(200, &json!({ "success": true, "deleted_id": post.id })))
}

/// `POST /{id}/repost`.
pub(super) fn repost(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_content_publish"])?;
    turn.shelf.get::<Post>(id).ok_or_else(|| missing("POST", id))?;
    graph::capped(turn, POSTS, &me.id)?;
    let post = Post {
        id: graph::id(turn),
        author: me.id.clone(),
        username: me.username.clone(),
        text: String::new(),
        topic: None,
        created_at: turn.now,
        container: String::new(),
        reply_to: None,
        root: None,
        is_hidden: false,
        repost_of: Some(id.to_owned()),
    };
    add(turn, &post);
    Ok(Answer::json(200, &json!({ "id": post.id })).publishing(post.id))
}

/// `POST /{id}/manage_reply`: hides a reply to one's own post, or shows it again.
pub(super) fn hide(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_manage_replies"])?;
    let reply = turn.shelf.get::<Post>(id).ok_or_else(|| missing("POST", id))?;
    let root = reply.root.as_ref().and_then(|root| turn.shelf.get::<Post>(root));
    root.filter(|root| root.author == me.id).ok_or_else(|| missing("POST", id))?;
    turn.shelf.put(&Post { is_hidden: graph::is_on(call, "hide"), ..reply });
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `GET /{user}/threads_publishing_limit`.
pub(super) fn limits(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    let mut node = json!({});
    for (prefix, rule) in
        [("", POSTS), ("reply_", REPLIES), ("delete_", DELETES), ("location_search_", SEARCHES)]
    {
        let mut used = graph::used(turn, rule, &me.id);
        node[format!("{prefix}quota_usage")] = used["usage"].take();
        node[format!("{prefix}config")] = used["config"].take();
    }
    let told = graph::select(&node, &graph::fields(call), "ThreadsPublishingLimit", &["quota_usage"])?;
    Ok(Answer::json(200, &json!({ "data": [told] })))
}

/// `GET /{id}/insights`.
pub(super) fn insights(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_manage_insights"])?;
    let post = turn.shelf.get::<Post>(id).filter(|post| post.author == me.id);
    let post = post.ok_or_else(|| missing("GET", id))?;
    if post.repost_of.is_some() {
        return Ok(Answer::json(200, &json!({ "data": [] })));
    }
    let age = turn.now - post.created_at;
    // Of a reply only what answers it directly is counted.
    let kind = if post.reply_to.is_some() { "threads.parent" } else { "threads.root" };
    let replies = graph::tied::<Post>(turn.shelf, kind, id).count();
    let count = |name: &str| match name {
        "views" => Some(json!(figure(id, name, age, 12_000))),
        "replies" => Some(json!(replies)),
        name if METRICS.contains(&name) => Some(json!(figure(id, name, age, 300))),
        _ => None,
    };
    graph::insights(call, id, count, &METRICS)
}

/// `GET /{user}/threads_insights`.
pub(super) fn account_insights(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["threads_manage_insights"])?;
    let names = [
        "views", "likes", "replies", "reposts", "quotes", "clicks", "followers_count", "follower_demographics",
    ];
    let age = turn.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(call, &me.id, count, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hashtag_becomes_the_topic() {
        assert_eq!(tagged("a #one and #two"), ("a one and #two".into(), Some("one".into())));
        assert_eq!(tagged("no # tag, C#m"), ("no # tag, C#m".into(), None));
        assert_eq!(tagged("#sandbox-429x2"), ("sandbox-429x2".into(), Some("sandbox-429x2".into())));
    }
}
