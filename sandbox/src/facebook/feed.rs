//! Posts, stories and comments: <https://developers.facebook.com/docs/pages-api/posts> and
//! <https://developers.facebook.com/docs/page-stories-api>.

use super::{
    Account, Facebook, ID, Outcome, Request, Response, Transaction, account, graph, media, page,
    post::{Card, Kind, Post, Visibility, add, audience},
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    fake_metrics::figure,
    graph::{error, invalid, missing, param},
    simulator::{MediaView, PostView, Simulator},
    store::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::Cell;

/// Photos on a page of a list with attachments, beyond which it is refused. The true limit is the time that it takes.
const LISTED_PHOTOS: usize = 25;

const MESSAGE: usize = 63_206;
const COMMENT: usize = 8_000;
/// Characters on a background, as products that publish by this API name them.
const BACKGROUND: usize = 130;
/// Cards of a carousel, and those of one whose order Facebook may choose.
const CARDS: usize = 5;
const OPTIMIZED_CARDS: usize = 10;

const METRICS: [&str; 12] = [
    "post_media_view",
    "post_total_media_view_unique",
    "post_clicks",
    "post_clicks_by_type",
    "post_reactions_by_type_total",
    "post_reactions_like_total",
    "post_reactions_love_total",
    "post_activity_by_action_type",
    "post_video_views",
    "post_video_avg_time_watched",
    "story_media_view",
    "story_total_media_view_unique",
];

/// Metrics of stories that were removed.
const REMOVED: [&str; 2] = ["pages_fb_story_replies", "pages_fb_story_shares"];

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Comment {
    id: String,
    page: String,
    /// Address of the post that it belongs to.
    post: String,
    /// Id of the post or comment that it replies to.
    on: String,
    message: String,
    photo: Option<String>,
    created_at: DateTime<Utc>,
}

impl Record for Comment {
    const TABLE: &'static str = "facebook.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Post {
    fn post_view(&self, tx: &Transaction) -> PostView {
        let photos = self.photos.iter().filter_map(|id| tx.store.get::<media::Photo>(id));
        let mut pictures: Vec<MediaView> = photos.map(|photo| photo.media_view()).collect();
        let video = self.video.as_ref().and_then(|id| tx.store.get::<media::Video>(id));
        pictures
            .extend(video.iter().flat_map(|video| [Some(video.media_view()), video.cover_view()]).flatten());
        let mut notes = self.notes.clone();
        notes.extend(video.iter().flat_map(media::Video::notes));
        notes.extend(self.link.iter().map(|link| format!("Link: {link}")));
        for card in &self.cards {
            let words = [Some(&card.link), card.name.as_ref(), card.description.as_ref()];
            let words: Vec<_> = words.into_iter().flatten().map(String::as_str).collect();
            notes.push(format!("Card: {}", words.join(" · ")));
        }
        if self.kind == Kind::Story {
            notes.push("Story".to_owned());
        }
        // As of an app in development mode.
        if !tx.settings.is_approved() {
            notes.push("Visible to people with a role on the app".to_owned());
        }
        PostView {
            id: self.video.clone().filter(|_| self.kind == Kind::Feed).unwrap_or_else(|| self.id.clone()),
            address: self.address(),
            text: self.message.clone(),
            at: self.created_at,
            media: pictures,
            notes,
            reply_to: None,
        }
    }

    /// Returns the attachment of a carousel of links.
    fn carousel(&self) -> Value {
        let card = |card: &Card| {
            json!({
                "media_type": "link", "type": "share", "url": card.link, "title": card.name,
                "description": card.description, "target": { "url": card.link },
                "media": { "image": { "src": card.picture, "height": 458, "width": 458 } },
            })
        };
        json!({
            "media_type": "album", "type": "multi_share", "url": self.link, "target": { "url": self.link },
            "subattachments": { "data": self.cards.iter().map(card).collect::<Vec<_>>() },
        })
    }

    fn node(&self, tx: &Transaction) -> Value {
        let age = tx.now - self.created_at;
        let shares = figure(&self.id, "shares", age, 90);
        let photos: Vec<media::Photo> = self.photos.iter().filter_map(|id| tx.store.get(id)).collect();
        let one = |photo: &media::Photo| {
            json!({
                "media_type": "photo", "type": "photo", "url": photo.address(), "description": photo.alt,
                "target": { "id": photo.id, "url": photo.address() },
                "media": { "image": { "src": photo.source(), "height": 720, "width": 720 } },
            })
        };
        // The first address in a text has a preview as well.
        let address = || self.message.split_whitespace().find(|word| word.contains("://")).map(str::to_owned);
        let link = self.link.clone().or_else(address);
        let attachment = match (photos.as_slice(), &self.video, &link) {
            ([photo], _, _) => Some(one(photo)),
            ([first, ..], _, _) => {
                let mut album = one(first);
                album["media_type"] = json!("album");
                album["type"] = json!("album");
                album["subattachments"] = json!({ "data": photos.iter().map(one).collect::<Vec<_>>() });
                Some(album)
            }
            ([], Some(video), _) => Some(json!({
                "media_type": "video", "type": "video_inline", "url": format!("https://{}", self.address()),
                "target": { "id": video, "url": format!("https://{}", self.address()) },
                "media": { "image": { "src": null, "height": 720, "width": 720 } },
            })),
            ([], None, _) if !self.cards.is_empty() => Some(self.carousel()),
            ([], None, Some(link)) => {
                let (media_type, kind) = preview(link);
                Some(
                    json!({ "media_type": media_type, "type": kind, "url": link, "target": { "url": link } }),
                )
            }
            ([], None, None) => None,
        };
        // All fields of an attachment are known, whether set or not.
        let attachment = attachment.map(|mut attachment| {
            for name in ["media", "subattachments", "description", "title", "target"] {
                if attachment.get(name).is_none() {
                    attachment[name] = Value::Null;
                }
            }
            attachment
        });
        json!({
            "id": self.id,
            "message": (!self.message.is_empty()).then(|| with_names(tx, &self.message)),
            "story": null,
            "created_time": graph::time(self.created_at),
            "updated_time": graph::time(self.created_at),
            "permalink_url": format!("https://{}", self.address()),
            "from": { "id": self.page, "name": account::by_id(tx.store, ID, &self.page).map(|page| page.display_name()) },
            "is_published": self.is_public(tx.now),
            "scheduled_publish_time": match self.visibility {
                Visibility::Scheduled(at) => Some(at.timestamp()),
                Visibility::Public | Visibility::Never => None,
            },
            "is_hidden": false,
            "is_expired": false,
            "status_type": match (&self.video, photos.is_empty(), &link) {
                (Some(_), _, _) => "added_video",
                (None, false, _) => "added_photos",
                (None, true, Some(_)) => "shared_story",
                (None, true, None) if !self.cards.is_empty() => "shared_story",
                (None, true, None) => "mobile_status_update",
            },
            "full_picture": photos.first().map(media::Photo::source),
            "picture": photos.first().map(media::Photo::source),
            "shares": (shares > 0).then(|| json!({ "count": shares })),
            "attachments": attachment.map(|attachment| json!({ "data": [attachment] })),
            "comments": { "data": [], "summary": { "order": "ranked", "total_count": comments_of(tx, &self.id).count(), "can_comment": true } },
            "reactions": { "data": [], "summary": { "total_count": figure(&self.id, "likes", age, 400) } },
            "likes": { "data": [], "summary": { "total_count": figure(&self.id, "likes", age, 400) } },
            "place": null,
            "privacy": { "value": "EVERYONE" },
        })
    }
}

impl Comment {
    fn address(&self) -> String {
        format!("{}?comment_id={}", self.post, self.id.rsplit('_').next().unwrap_or_default())
    }

    fn node(&self, tx: &Transaction) -> Value {
        json!({
            "id": self.id,
            "message": self.message,
            "created_time": graph::time(self.created_at),
            "from": { "id": self.page, "name": account::by_id(tx.store, ID, &self.page).map(|page| page.display_name()) },
            "permalink_url": format!("https://{}", self.address()),
            "parent": self.on.split_once('_').filter(|_| tx.store.get::<Comment>(&self.on).is_some()).map(|_| json!({ "id": self.on })),
            "comment_count": comments_of(tx, &self.id).count(),
            "like_count": 0,
            "is_hidden": false,
            "attachment": self.photo.as_ref().map(|photo| json!({ "type": "photo", "target": { "id": photo } })),
        })
    }

    fn post_view(&self, tx: &Transaction) -> PostView {
        let photo = self.photo.as_ref().and_then(|id| tx.store.get::<media::Photo>(id));
        PostView {
            id: self.id.clone(),
            address: self.address(),
            text: self.message.clone(),
            at: self.created_at,
            media: photo.map(|photo| photo.media_view()).into_iter().collect(),
            notes: Vec::new(),
            reply_to: Some(self.on.clone()),
        }
    }
}

/// Returns media type and type of a link's preview: a link to a video or an animation has one that plays.
fn preview(link: &str) -> (&'static str, &'static str) {
    let url = url::Url::parse(link).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or_default().trim_start_matches("www.");
    let path = url.as_ref().map(url::Url::path).unwrap_or_default();
    match host {
        "youtube.com" | "youtu.be" => ("video", "video_share_youtube"),
        "vimeo.com" => ("video", "video_share"),
        _ if path.to_lowercase().ends_with(".gif") => ("video", "animated_image_share"),
        _ => ("link", "share"),
    }
}

/// Returns a text with the names of the Pages that it mentions as `@[id]`.
fn with_names(tx: &Transaction, text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@[") {
        shown.push_str(before);
        let mentioned = after.split_once(']').and_then(|(id, after)| {
            let id = id.split(':').next().unwrap_or_default();
            Some((account::by_id(tx.store, ID, id)?.username, after))
        });
        match mentioned {
            Some((name, after)) => {
                shown.push_str(&name);
                rest = after;
            }
            None => {
                shown.push_str("@[");
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

fn by<'a>(tx: &'a Transaction, page: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    tx.store.linked("facebook.page", page)
}

fn comments_of<'a>(tx: &'a Transaction, id: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    tx.store.linked("facebook.below", id)
}

/// Returns a Page's posts and comments, newest first.
pub(super) fn views(tx: &Transaction, page: &str) -> Vec<PostView> {
    let public = by(tx, page).filter(|post| post.is_public(tx.now));
    let mut views: Vec<PostView> = public.map(|post| post.post_view(tx)).collect();
    let comments = tx.store.linked::<Comment>("facebook.commenter", page);
    views.extend(comments.map(|comment| comment.post_view(tx)));
    views.sort_by_key(|card| std::cmp::Reverse(card.at));
    views
}

/// Renders the page of a post, a video, a story or a comment.
pub(super) fn post_page(tx: &Transaction, id: &str) -> Option<String> {
    let post = tx.store.get::<Post>(id).or_else(|| tx.store.linked("facebook.video", id).next());
    let (page, card) = match post {
        Some(post) if !post.is_public(tx.now) => return None,
        Some(post) => (post.page.clone(), post.post_view(tx)),
        None => {
            let comment = tx.store.get::<Comment>(id)?;
            (comment.page.clone(), comment.post_view(tx))
        }
    };
    let author = account::by_id(tx.store, ID, &page)?;
    Some(page::post(tx, &Facebook, &author, &card))
}

/// Returns the photos of `attached_media`, given as a JSON list or as numbered fields.
fn attached(request: &Request) -> Vec<String> {
    let mut items: Vec<Value> = param(request, "attached_media")
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let numbered =
        request.fields.iter().chain(&request.query).filter(|(name, _)| name.starts_with("attached_media["));
    items.extend(numbered.filter_map(|(_, text)| serde_json::from_str(text).ok()));
    let id = |item: &Value| {
        let item =
            item.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| item.clone());
        item["media_fbid"].as_str().map_or_else(|| item["media_fbid"].to_string(), str::to_owned)
    };
    items.iter().map(id).collect()
}

/// `POST /{page}/feed`.
pub(super) fn create(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let message = param(request, "message").unwrap_or_default();
    let link = param(request, "link").filter(|link| !link.is_empty());
    let photos = attached(request);
    check_message(&message)?;
    if message.trim().is_empty() && link.is_none() && photos.is_empty() {
        return Err(invalid(
            Content("empty"),
            "At least one of message, link or attached_media must be specified",
        ));
    }
    link.as_deref().map_or(Ok(()), check_link)?;
    let cards = cards(request)?;
    if !cards.is_empty() && !photos.is_empty() {
        return Err(invalid(
            Content("cards_with_photos"),
            "child_attachments can't be combined with attached_media",
        ));
    }
    let has_more = link.is_some() || !cards.is_empty() || !photos.is_empty();
    let background = background(request, &message, has_more)?;
    check_usable(tx, me, &photos)?;
    let visibility = visibility(tx, request)?;
    let audience = audience(request)?;
    let fault = Facebook.trigger_fault(tx, request, &me.username, &message)?;
    let last = by(tx, &me.id).rfind(|post| post.kind == Kind::Feed);
    let window = tx.settings.duplicate_window();
    let is_double = last.is_some_and(|last| {
        photos.is_empty()
            && last.photos.is_empty()
            && last.video.is_none()
            && last.message == message
            && last.link == link
            && last.cards == cards
            && tx.now - last.created_at < window
    });
    if is_double {
        return Err(error(State, 400, 506, 1_455_006, "(#506) Duplicate status message"));
    }
    let post = Post {
        id: format!("{}_{}", me.id, graph::next_id(tx)),
        page: me.id.clone(),
        kind: Kind::Feed,
        message,
        link,
        cards,
        photos: photos.clone(),
        video: None,
        notes: (param(request, "place").map(|place| format!("Place: {place}")).into_iter())
            .chain(audience)
            .chain(background.map(|background| format!("Background: {background}")))
            .collect(),
        created_at: tx.now,
        visibility,
    };
    media::mark_published(tx, &photos);
    add(tx, &post);
    // The response has the requested fields.
    let selected = graph::select(&post.node(tx), &graph::fields(request), "PagePost", &["id"])?;
    let response = Response::json(200, &selected);
    Ok(match post.visibility {
        Visibility::Public => response.with_post(post.id).with_fault(fault),
        Visibility::Scheduled(_) | Visibility::Never => response.with_fault(fault),
    })
}

/// Refuses an address that no preview can be made of.
fn check_link(link: &str) -> Result<(), Response> {
    let url = url::Url::parse(link).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url.as_ref().and_then(url::Url::host_str) {
        None => {
            Err(error(Content("link"), 400, 100, 1_609_005, "The post's links must direct to a valid URL."))
        }
        Some(host) if host == "facebook.com" || host.ends_with(".facebook.com") => Err(error(
            Content("link_to_facebook"),
            400,
            100,
            1_609_008,
            "Links to Facebook can't be shared this way.",
        )),
        Some(_) => Ok(()),
    }
}

/// Returns the cards of `child_attachments`. "Minimum 2 and maximum of 5 objects. If you set multi_share_optimized to
/// true, you can upload a maximum of 10 objects"; each needs a link and a picture.
/// <https://developers.facebook.com/docs/graph-api/reference/page/feed>
fn cards(request: &Request) -> Result<Vec<Card>, Response> {
    let Some(text) = param(request, "child_attachments") else { return Ok(Vec::new()) };
    let cards: Vec<Card> = serde_json::from_str(&text).map_err(|_| {
        invalid(Protocol, "Param child_attachments must be an array of objects with a link and a picture")
    })?;
    let most = if graph::is_true(request, "multi_share_optimized") { OPTIMIZED_CARDS } else { CARDS };
    if !(2..=most).contains(&cards.len()) {
        return Err(invalid(
            Content("cards"),
            &format!("Param child_attachments must have 2 to {most} objects"),
        ));
    }
    for card in &cards {
        check_link(&card.link)?;
        if !card.picture.starts_with("http") {
            return Err(invalid(
                Content("picture_of_a_card"),
                "A picture of child_attachments must be a URL",
            ));
        }
    }
    Ok(cards)
}

/// Returns the id of a text's background. A post with anything else than a short text has none.
fn background(request: &Request, message: &str, has_more: bool) -> Result<Option<String>, Response> {
    let Some(id) = param(request, "text_format_preset_id") else { return Ok(None) };
    if !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(Content("background_id"), "Param text_format_preset_id must be a number"));
    }
    match has_more || message.trim().is_empty() || message.chars().count() > BACKGROUND {
        true => Err(invalid(
            Content("background"),
            "A text format preset is for a text of at most 130 characters without attachments",
        )),
        false => Ok(Some(id)),
    }
}

/// Returns when a new post is public. A time needs `published=false`, and lies 10 minutes to 30 days ahead.
fn visibility(tx: &Transaction, request: &Request) -> Result<Visibility, Response> {
    let is_hidden = matches!(param(request, "published").as_deref(), Some("false" | "0"));
    match param(request, "unpublished_content_type").as_deref() {
        None => {}
        Some("DRAFT") if is_hidden && param(request, "scheduled_publish_time").is_none() => {}
        Some("SCHEDULED") if is_hidden && param(request, "scheduled_publish_time").is_some() => {}
        Some(other) => {
            let message = format!("Param unpublished_content_type does not fit the publication: {other}");
            return Err(invalid(Protocol, &message));
        }
    }
    let Some(time) = param(request, "scheduled_publish_time") else {
        return Ok(if is_hidden { Visibility::Never } else { Visibility::Public });
    };
    let at = time.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let is_in_range =
        |at: &DateTime<Utc>| (TimeDelta::minutes(10)..=TimeDelta::days(30)).contains(&(*at - tx.now));
    match at.filter(is_in_range) {
        Some(at) if is_hidden => Ok(Visibility::Scheduled(at)),
        Some(_) => Err(invalid(Protocol, "You cannot specify a scheduled publish time on a published post")),
        None => {
            Err(invalid(Content("time_of_publication"), "The specified scheduled publish time is invalid."))
        }
    }
}

fn check_message(message: &str) -> Result<(), Response> {
    match message.chars().count() > MESSAGE {
        true => {
            Err(invalid(Content("text_too_long"), "Param message must be at most 63206 characters long."))
        }
        false => Ok(()),
    }
}

/// Checks that photos belong to the Page and are not published yet.
fn check_usable(tx: &Transaction, me: &Account, photos: &[String]) -> Result<(), Response> {
    for id in photos {
        match tx.store.get::<media::Photo>(id).filter(|photo| photo.page == me.id) {
            None => return Err(missing("POST", id)),
            Some(photo) if photo.is_published => {
                return Err(error(State, 400, 100, 1_366_051, "These photos were already posted."));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// `POST /{page}/photo_stories`.
pub(super) fn photo_story(tx: &mut Transaction, request: &Request, me: &Account) -> Outcome {
    let photo =
        param(request, "photo_id").ok_or_else(|| invalid(Protocol, "The parameter photo_id is required"))?;
    let photos = vec![photo];
    check_usable(tx, me, &photos)?;
    let post = Post {
        id: graph::next_id(tx),
        page: me.id.clone(),
        kind: Kind::Story,
        message: String::new(),
        link: None,
        cards: Vec::new(),
        photos: photos.clone(),
        video: None,
        notes: Vec::new(),
        created_at: tx.now,
        visibility: Visibility::Public,
    };
    media::mark_published(tx, &photos);
    add(tx, &post);
    Ok(Response::json(200, &json!({ "success": true, "post_id": post.id })).with_post(post.id))
}

/// `GET /{page}/published_posts`, `/posts` and `/feed`, newest first.
pub(super) fn list(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let lag = tx.settings.lag();
    let shown = by(tx, &me.id).rev().filter(|post| {
        post.kind == Kind::Feed
            && post.is_public(tx.now)
            && tx.now - post.created_at >= lag
            && media::is_out(tx, post.video.as_deref())
            && graph::is_within(request, post.created_at)
    });
    let fields = graph::fields(request);
    let photos = Cell::new(0);
    let response = graph::paged(
        request,
        shown.collect(),
        |post| &post.id,
        |post: &Post| {
            photos.set(photos.get() + post.photos.len());
            graph::select(&post.node(tx), &fields, "PagePost", &["created_time", "message", "id"])
        },
    )?;
    let has_photos = param(request, "fields").is_some_and(|fields| fields.contains("subattachments"));
    if has_photos && photos.get() > LISTED_PHOTOS {
        let message = "Please reduce the amount of data you're asking for, then retry your request";
        return Err(error(State, 500, 1, 0, message));
    }
    Ok(response)
}

/// `GET /{page}/stories`.
pub(super) fn stories(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let stories = by(tx, &me.id).rev().filter(|post| {
        post.kind == Kind::Story
            && tx.now - post.created_at < TimeDelta::days(1)
            && media::is_out(tx, post.video.as_deref())
    });
    let fields = graph::fields(request);
    graph::paged(
        request,
        stories.collect(),
        |post| &post.id,
        |post| {
            let node = json!({
                "post_id": post.id,
                "status": "published",
                "creation_time": post.created_at.timestamp().to_string(),
                "media_type": if post.video.is_some() { "video" } else { "photo" },
                "media_id": post.video.as_ref().or(post.photos.first()),
                "url": format!("https://{}", post.address()),
            });
            graph::select(
                &node,
                &fields,
                "Stories",
                &["post_id", "status", "creation_time", "media_type", "media_id", "url"],
            )
        },
    )
}

/// `GET /{id}`: a post, a comment, a photo or a video.
pub(super) fn node(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let fields = graph::fields(request);
    if let Some(post) = own(tx, me, id) {
        // A story can't be read by its id.
        if post.kind == Kind::Story {
            return Err(invalid(
                Protocol,
                "Tried accessing nonexisting field (permalink_url) on node type (Story)",
            ));
        }
        let selected =
            graph::select(&post.node(tx), &fields, "PagePost", &["created_time", "message", "id"])?;
        return Ok(Response::json(200, &selected));
    }
    if let Some(comment) = tx.store.get::<Comment>(id) {
        let names = ["created_time", "from", "message", "id"];
        return Ok(Response::json(200, &graph::select(&comment.node(tx), &fields, "Comment", &names)?));
    }
    let (node, kind) = media::node(tx, me, id).ok_or_else(|| missing("GET", id))?;
    let is_wrong = media::is_of_a_wrong_type(tx, id);
    let selected = graph::select(&node, &fields, kind, &["id"])?;
    Ok(Response::json(200, &selected).because(is_wrong.then_some(Content("video_type"))))
}

fn own(tx: &Transaction, me: &Account, id: &str) -> Option<Post> {
    tx.store.get::<Post>(id).filter(|post| post.page == me.id)
}

/// `POST /{post}` and `POST /{comment}`: another text.
pub(super) fn edit(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let message =
        param(request, "message").ok_or_else(|| invalid(Protocol, "The parameter message is required"))?;
    check_message(&message)?;
    if let Some(post) = own(tx, me, id) {
        tx.store.put(&Post { message, ..post });
    } else {
        let comment = tx.store.get::<Comment>(id).filter(|comment| comment.page == me.id);
        tx.store.put(&Comment { message, ..comment.ok_or_else(|| missing("POST", id))? });
    }
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `DELETE /{id}`.
pub(super) fn delete(tx: &mut Transaction, _: &Request, me: &Account, id: &str) -> Outcome {
    let post = own(tx, me, id)
        .or_else(|| tx.store.linked::<Post>("facebook.video", id).next().filter(|post| post.page == me.id));
    let comment = tx.store.get::<Comment>(id).filter(|comment| comment.page == me.id);
    let has_media = media::discard(tx, me, id);
    match (post, comment) {
        (Some(post), _) => {
            tx.store.remove::<Post>(&post.id);
            if let Some(video) = &post.video {
                media::discard(tx, me, video);
            }
        }
        (None, Some(comment)) => tx.store.remove::<Comment>(&comment.id),
        (None, None) if has_media => {}
        (None, None) => return Err(missing("DELETE", id)),
    }
    Ok(Response::json(200, &json!({ "success": true })))
}

/// `GET /{id}/comments`: oldest first by default.
pub(super) fn comments(tx: &Transaction, request: &Request, _: &Account, id: &str) -> Outcome {
    address(tx, id).ok_or_else(|| missing("GET", id))?;
    let mut all: Vec<Comment> = comments_of(tx, id).collect();
    if param(request, "order").as_deref() == Some("reverse_chronological") {
        all.reverse();
    }
    let fields = graph::fields(request);
    let names = ["created_time", "from", "message", "id"];
    graph::paged(request, all, |one| &one.id, |one| graph::select(&one.node(tx), &fields, "Comment", &names))
}

/// Returns the address of the post that a comment on this object belongs to.
fn address(tx: &Transaction, id: &str) -> Option<String> {
    let post = tx.store.get::<Post>(id).or_else(|| tx.store.linked("facebook.video", id).next());
    let post = post.map(|post| {
        let short = post.id.rsplit('_').next().unwrap_or_default();
        format!("www.facebook.com/{}/posts/{short}", post.page)
    });
    post.or_else(|| tx.store.get::<Comment>(id).map(|comment| comment.post))
}

/// `POST /{id}/comments`.
pub(super) fn comment(tx: &mut Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let post = address(tx, id).ok_or_else(|| missing("POST", id))?;
    let message = param(request, "message").unwrap_or_default();
    let photo = param(request, "attachment_id");
    if message.trim().is_empty() && photo.is_none() && param(request, "attachment_url").is_none() {
        return Err(invalid(Content("empty_comment"), "The comment needs a message or an attachment"));
    }
    if message.chars().count() > COMMENT {
        return Err(invalid(Content("comment_too_long"), "The comment is too long."));
    }
    check_usable(tx, me, photo.as_slice())?;
    let fault = Facebook.trigger_fault(tx, request, &me.username, &message)?;
    let short = post.rsplit('/').next().unwrap_or_default().to_owned();
    let comment = Comment {
        id: format!("{short}_{}", graph::next_id(tx)),
        page: me.id.clone(),
        post,
        on: id.to_owned(),
        message,
        photo: photo.clone(),
        created_at: tx.now,
    };
    media::mark_published(tx, photo.as_slice());
    tx.store.put(&comment);
    tx.store.link("facebook.below", id, &comment.id);
    tx.store.link("facebook.commenter", &me.id, &comment.id);
    let selected = graph::select(&comment.node(tx), &graph::fields(request), "Comment", &["id"])?;
    Ok(Response::json(200, &selected).with_post(comment.id).with_fault(fault))
}

/// `GET /{post}/insights`.
pub(super) fn insights(tx: &Transaction, request: &Request, me: &Account, id: &str) -> Outcome {
    let post = own(tx, me, id).ok_or_else(|| missing("GET", id))?;
    // A story answers a removed metric as if it did not exist.
    if post.kind == Kind::Story
        && graph::list(request, "metric").iter().any(|name| REMOVED.contains(&&**name))
    {
        return Err(missing("GET", id));
    }
    let age = tx.now - post.created_at;
    let views = figure(id, "views", age, 15_000);
    let likes = figure(id, "likes", age, 400);
    let count = |name: &str| {
        let is_story = name.starts_with("story_");
        if !METRICS.contains(&name) || is_story != (post.kind == Kind::Story) {
            return None;
        }
        Some(match name {
            "post_media_view" | "story_media_view" => json!(views),
            "post_total_media_view_unique" | "story_total_media_view_unique" => json!(views * 7 / 10),
            "post_clicks" => json!(figure(id, "clicks", age, 250)),
            "post_clicks_by_type" => json!({ "link clicks": figure(id, "clicks", age, 250) }),
            "post_reactions_by_type_total" => json!({ "like": likes - likes / 5, "love": likes / 5 }),
            "post_reactions_like_total" => json!(likes - likes / 5),
            "post_reactions_love_total" => json!(likes / 5),
            "post_activity_by_action_type" => {
                json!({ "like": likes, "comment": comments_of(tx, id).count(), "share": figure(id, "shares", age, 90) })
            }
            _ => json!(if post.video.is_some() { views / 2 } else { 0 }),
        })
    };
    graph::insights(request, id, count, &METRICS)
}

/// `GET /{page}/insights`.
pub(super) fn page_insights(tx: &Transaction, request: &Request, me: &Account) -> Outcome {
    let names = [
        "page_media_view",
        "page_total_media_view_unique",
        "page_post_engagements",
        "page_follows",
        "page_daily_follows",
        "page_daily_follows_unique",
        "page_daily_unfollows_unique",
        "page_views_total",
        "page_total_actions",
        "page_video_views",
    ];
    let age = tx.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(request, &me.id, count, &names)
}
