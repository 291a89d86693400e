//! Posts, stories and comments: <https://developers.facebook.com/docs/pages-api/posts> and
//! <https://developers.facebook.com/docs/page-stories-api>.

use super::{Account, Answer, Call, Facebook, ID, Turn, account, graph, media, page};
use crate::{
    fault,
    figures::figure,
    graph::{error, invalid, missing, param},
    host::{Card, Host, Picture},
    shelf::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const MESSAGE: usize = 63_206;
const COMMENT: usize = 8_000;

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

/// What a post is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Of text, a link, photos or a video.
    Feed,
    /// A story, which lasts a day.
    Story,
}

/// A post or a story.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Post {
    /// Its id; of a post the Page's with it.
    pub(super) id: String,
    /// The Page.
    pub(super) page: String,
    /// What it is.
    pub(super) kind: Kind,
    /// Its text.
    pub(super) message: String,
    /// Its link.
    pub(super) link: Option<String>,
    /// Its photos.
    pub(super) photos: Vec<String>,
    /// Its video.
    pub(super) video: Option<String>,
    /// What else is shown of it.
    pub(super) notes: Vec<String>,
    /// When it was published.
    pub(super) created_at: DateTime<Utc>,
}

impl Record for Post {
    const SHELF: &'static str = "facebook.post";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// A comment.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Comment {
    id: String,
    page: String,
    /// The address of the post that it is below.
    post: String,
    /// What it hangs on.
    on: String,
    message: String,
    photo: Option<String>,
    created_at: DateTime<Utc>,
}

impl Record for Comment {
    const SHELF: &'static str = "facebook.comment";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Post {
    fn address(&self) -> String {
        match (&self.video, self.kind) {
            (_, Kind::Story) => format!("www.facebook.com/stories/{}/{}", self.page, self.id),
            (Some(video), _) => format!("www.facebook.com/reel/{video}"),
            (None, _) => {
                format!("www.facebook.com/{}/posts/{}", self.page, self.id.rsplit('_').next().unwrap_or_default())
            }
        }
    }

    fn card(&self, turn: &Turn<'_>) -> Card {
        let photos = self.photos.iter().filter_map(|id| turn.shelf.get::<media::Photo>(id));
        let mut pictures: Vec<Picture> = photos.map(|photo| photo.picture()).collect();
        pictures.extend(self.video.as_ref().and_then(|id| turn.shelf.get::<media::Video>(id)).map(|video| video.picture()));
        let mut notes = self.notes.clone();
        notes.extend(self.link.iter().map(|link| format!("Link: {link}")));
        if self.kind == Kind::Story {
            notes.push("Story".to_owned());
        }
        Card {
            id: self.video.clone().filter(|_| self.kind == Kind::Feed).unwrap_or_else(|| self.id.clone()),
            address: self.address(),
            text: self.message.clone(),
            at: self.created_at,
            media: pictures,
            notes,
            reply_to: None,
        }
    }

    fn node(&self, turn: &Turn<'_>) -> Value {
        let age = turn.now - self.created_at;
        let shares = figure(&self.id, "shares", age, 90);
        let photos: Vec<media::Photo> = self.photos.iter().filter_map(|id| turn.shelf.get(id)).collect();
        let one = |photo: &media::Photo| {
            json!({
                "media_type": "photo", "type": "photo", "url": photo.address(), "description": photo.alt,
                "target": { "id": photo.id, "url": photo.address() },
                "media": { "image": { "src": photo.source(), "height": 720, "width": 720 } },
            })
        };
        let attachment = match (photos.as_slice(), &self.video, &self.link) {
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
            ([], None, Some(link)) => {
                Some(json!({ "media_type": "link", "type": "share", "url": link, "target": { "url": link } }))
            }
            ([], None, None) => None,
        };
        // What an attachment may have is known, whether it has it or not.
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
            "message": (!self.message.is_empty()).then_some(&self.message),
            "story": null,
            "created_time": graph::time(self.created_at),
            "updated_time": graph::time(self.created_at),
            "permalink_url": format!("https://{}", self.address()),
            "from": { "id": self.page, "name": account::numbered(turn.shelf, ID, &self.page).map(|page| page.username) },
            "is_published": true,
            "is_hidden": false,
            "is_expired": false,
            "status_type": match (&self.video, photos.is_empty(), &self.link) {
                (Some(_), _, _) => "added_video",
                (None, false, _) => "added_photos",
                (None, true, Some(_)) => "shared_story",
                (None, true, None) => "mobile_status_update",
            },
            "full_picture": photos.first().map(media::Photo::source),
            "picture": photos.first().map(media::Photo::source),
            "shares": (shares > 0).then(|| json!({ "count": shares })),
            "attachments": attachment.map(|attachment| json!({ "data": [attachment] })),
            "comments": { "data": [], "summary": { "order": "ranked", "total_count": below(turn, &self.id).count(), "can_comment": true } },
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

    fn node(&self, turn: &Turn<'_>) -> Value {
        json!({
            "id": self.id,
            "message": self.message,
            "created_time": graph::time(self.created_at),
            "from": { "id": self.page, "name": account::numbered(turn.shelf, ID, &self.page).map(|page| page.username) },
            "permalink_url": format!("https://{}", self.address()),
            "parent": self.on.split_once('_').filter(|_| turn.shelf.get::<Comment>(&self.on).is_some()).map(|_| json!({ "id": self.on })),
            "comment_count": below(turn, &self.id).count(),
            "like_count": 0,
            "is_hidden": false,
            "attachment": self.photo.as_ref().map(|photo| json!({ "type": "photo", "target": { "id": photo } })),
        })
    }

    fn card(&self, turn: &Turn<'_>) -> Card {
        let photo = self.photo.as_ref().and_then(|id| turn.shelf.get::<media::Photo>(id));
        Card {
            id: self.id.clone(),
            address: self.address(),
            text: self.message.clone(),
            at: self.created_at,
            media: photo.map(|photo| photo.picture()).into_iter().collect(),
            notes: Vec::new(),
            reply_to: Some(self.on.clone()),
        }
    }
}

/// Keeps a new post.
pub(super) fn add(turn: &mut Turn<'_>, post: &Post) {
    turn.shelf.put(post);
    graph::tie(turn, "facebook.page", &post.page, &post.id);
    if let Some(video) = &post.video {
        graph::tie(turn, "facebook.video", video, &post.id);
    }
}

fn by<'a>(turn: &'a Turn<'_>, page: &str) -> impl DoubleEndedIterator<Item = Post> + use<'a> {
    graph::tied(turn.shelf, "facebook.page", page)
}

fn below<'a>(turn: &'a Turn<'_>, id: &str) -> impl DoubleEndedIterator<Item = Comment> + use<'a> {
    graph::tied(turn.shelf, "facebook.below", id)
}

/// What a Page published, newest first, its comments among it.
pub(super) fn cards(turn: &Turn<'_>, page: &str) -> Vec<Card> {
    let mut cards: Vec<Card> = by(turn, page).map(|post| post.card(turn)).collect();
    let comments = graph::tied::<Comment>(turn.shelf, "facebook.commenter", page);
    cards.extend(comments.map(|comment| comment.card(turn)));
    cards.sort_by_key(|card| std::cmp::Reverse(card.at));
    cards
}

/// The page of a post, a video, a story or a comment.
pub(super) fn shown(turn: &Turn<'_>, id: &str) -> Option<String> {
    let post = turn.shelf.get::<Post>(id).or_else(|| graph::tied(turn.shelf, "facebook.video", id).next());
    let (page, card) = match post {
        Some(post) => (post.page.clone(), post.card(turn)),
        None => {
            let comment = turn.shelf.get::<Comment>(id)?;
            (comment.page.clone(), comment.card(turn))
        }
    };
    let author = account::numbered(turn.shelf, ID, &page)?;
    Some(page::post(&Facebook.identity(&author), ID, &card, &Facebook.posts(turn, &author)))
}

/// The photos of `attached_media`, as a list in JSON or as numbered fields.
fn attached(call: &Call) -> Vec<String> {
    let mut items: Vec<Value> = param(call, "attached_media")
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let numbered = call.fields.iter().chain(&call.query).filter(|(name, _)| name.starts_with("attached_media["));
    items.extend(numbered.filter_map(|(_, text)| serde_json::from_str(text).ok()));
    let id = |item: &Value| {
        let item = item.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| item.clone());
        item["media_fbid"].as_str().map_or_else(|| item["media_fbid"].to_string(), str::to_owned)
    };
    items.iter().map(id).collect()
}

/// `POST /{page}/feed`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts", "pages_read_engagement"])?;
    let message = param(call, "message").unwrap_or_default();
    let link = param(call, "link").filter(|link| !link.is_empty());
    let photos = attached(call);
    check_message(&message)?;
    if message.trim().is_empty() && link.is_none() && photos.is_empty() {
        return Err(invalid("At least one of message, link or attached_media must be specified"));
    }
    if let Some(link) = &link {
        let url = url::Url::parse(link).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        match url.as_ref().and_then(url::Url::host_str) {
            None => return Err(error(400, 100, 1_609_005, "The post's links must direct to a valid URL.")),
            Some(host) if host.ends_with("facebook.com") => {
                return Err(error(400, 100, 1_609_008, "Links to Facebook can't be shared this way."));
            }
            Some(_) => {}
        }
    }
    usable(turn, me, &photos)?;
    let fault = match fault::draw(turn, ID, &me.username, &message) {
        Ok(fault) => fault,
        Err(fault) => return Ok(Facebook.fail(turn, call, fault)),
    };
    let last = by(turn, &me.id).rfind(|post| post.kind == Kind::Feed);
    let window = TimeDelta::milliseconds(i64::try_from(turn.settings.duplicate_ms).unwrap_or(i64::MAX));
    let is_double = last.is_some_and(|last| {
        photos.is_empty()
            && last.photos.is_empty()
            && last.video.is_none()
            && last.message == message
            && last.link == link
            && turn.now - last.created_at < window
    });
    if is_double {
        return Err(error(400, 506, 1_455_006, "(#506) Duplicate status message"));
    }
    let post = Post {
        id: format!("{}_{}", me.id, graph::id(turn)),
        page: me.id.clone(),
        kind: Kind::Feed,
        message,
        link,
        photos: photos.clone(),
        video: None,
        notes: param(call, "place").map(|place| format!("Place: {place}")).into_iter().collect(),
        created_at: turn.now,
    };
    media::use_up(turn, &photos);
    add(turn, &post);
    // What is asked for is told at once.
    let told = graph::select(&post.node(turn), &graph::fields(call), "PagePost", &["id"])?;
    Ok(Answer::json(200, &told).publishing(post.id).because(fault))
}

fn check_message(message: &str) -> Result<(), Answer> {
    match message.chars().count() > MESSAGE {
        true => Err(invalid("Param message must be at most 63206 characters long.")),
        false => Ok(()),
    }
}

/// Whether photos may be published: the Page's own, and not published yet.
fn usable(turn: &Turn<'_>, me: &Account, photos: &[String]) -> Result<(), Answer> {
    for id in photos {
        match turn.shelf.get::<media::Photo>(id).filter(|photo| photo.page == me.id) {
            None => return Err(missing("POST", id)),
            Some(photo) if photo.is_published => {
                return Err(error(400, 100, 1_366_051, "These photos were already posted."));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// `POST /{page}/photo_stories`.
pub(super) fn photo_story(turn: &mut Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts", "pages_read_engagement"])?;
    let photo = param(call, "photo_id").ok_or_else(|| invalid("The parameter photo_id is required"))?;
    let photos = vec![photo];
    usable(turn, me, &photos)?;
    let post = Post {
        id: graph::id(turn),
        page: me.id.clone(),
        kind: Kind::Story,
        message: String::new(),
        link: None,
        photos: photos.clone(),
        video: None,
        notes: Vec::new(),
        created_at: turn.now,
    };
    media::use_up(turn, &photos);
    add(turn, &post);
    Ok(Answer::json(200, &json!({ "success": true, "post_id": post.id })).publishing(post.id))
}

/// `GET /{page}/published_posts` and its like, newest first.
pub(super) fn list(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_read_engagement"])?;
    let lag = TimeDelta::milliseconds(i64::try_from(turn.settings.lag_ms).unwrap_or(i64::MAX));
    let shown = by(turn, &me.id).rev().filter(|post| {
        post.kind == Kind::Feed
            && turn.now - post.created_at >= lag
            && media::is_out(turn, post.video.as_deref())
            && graph::is_within(call, post.created_at)
    });
    let fields = graph::fields(call);
    graph::paged(
        call,
        shown.collect(),
        |post| &post.id,
        |post| graph::select(&post.node(turn), &fields, "PagePost", &["created_time", "message", "id"]),
    )
}

/// `GET /{page}/stories`.
pub(super) fn stories(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_read_engagement"])?;
    let stories = by(turn, &me.id).rev().filter(|post| {
        post.kind == Kind::Story
            && turn.now - post.created_at < TimeDelta::days(1)
            && media::is_out(turn, post.video.as_deref())
    });
    let fields = graph::fields(call);
    graph::paged(call, stories.collect(), |post| &post.id, |post| {
        let node = json!({
            "post_id": post.id,
            "status": "published",
            "creation_time": post.created_at.timestamp().to_string(),
            "media_type": if post.video.is_some() { "video" } else { "photo" },
            "media_id": post.video.as_ref().or(post.photos.first()),
            "url": format!("https://{}", post.address()),
        });
        graph::select(&node, &fields, "Stories", &["post_id", "status", "creation_time", "media_type", "media_id", "url"])
    })
}

/// `GET /{id}`: a post, a comment, a photo or a video.
pub(super) fn node(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    let fields = graph::fields(call);
    if let Some(post) = own(turn, me, id) {
        // A story is no post that could be read by its id.
        if post.kind == Kind::Story {
            return Err(invalid("Tried accessing nonexisting field (permalink_url) on node type (Story)"));
        }
        let told = graph::select(&post.node(turn), &fields, "PagePost", &["created_time", "message", "id"])?;
        return Ok(Answer::json(200, &told));
    }
    if let Some(comment) = turn.shelf.get::<Comment>(id) {
        let names = ["created_time", "from", "message", "id"];
        return Ok(Answer::json(200, &graph::select(&comment.node(turn), &fields, "Comment", &names)?));
    }
    let (node, kind) = media::node(turn, me, id).ok_or_else(|| missing("GET", id))?;
    Ok(Answer::json(200, &graph::select(&node, &fields, kind, &["id"])?))
}

fn own(turn: &Turn<'_>, me: &Account, id: &str) -> Option<Post> {
    turn.shelf.get::<Post>(id).filter(|post| post.page == me.id)
}

/// `POST /{post}` and `POST /{comment}`: another text.
pub(super) fn edit(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts"])?;
    let message = param(call, "message").ok_or_else(|| invalid("The parameter message is required"))?;
    check_message(&message)?;
    if let Some(post) = own(turn, me, id) {
        turn.shelf.put(&Post { message, ..post });
    } else {
        let comment = turn.shelf.get::<Comment>(id).filter(|comment| comment.page == me.id);
        turn.shelf.put(&Comment { message, ..comment.ok_or_else(|| missing("POST", id))? });
    }
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `DELETE /{id}`.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_posts"])?;
    let post = own(turn, me, id).or_else(|| {
        graph::tied::<Post>(turn.shelf, "facebook.video", id).next().filter(|post| post.page == me.id)
    });
    let comment = turn.shelf.get::<Comment>(id).filter(|comment| comment.page == me.id);
    let has_media = media::discard(turn, me, id);
    match (post, comment) {
        (Some(post), _) => {
            turn.shelf.remove::<Post>(&post.id);
            if let Some(video) = &post.video {
                media::discard(turn, me, video);
            }
        }
        (None, Some(comment)) => turn.shelf.remove::<Comment>(&comment.id),
        (None, None) if has_media => {}
        (None, None) => return Err(missing("DELETE", id)),
    }
    Ok(Answer::json(200, &json!({ "success": true })))
}

/// `GET /{id}/comments`: oldest first unless told.
pub(super) fn comments(turn: &Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_read_engagement"])?;
    address(turn, id).ok_or_else(|| missing("GET", id))?;
    let mut all: Vec<Comment> = below(turn, id).collect();
    if param(call, "order").as_deref() == Some("reverse_chronological") {
        all.reverse();
    }
    let fields = graph::fields(call);
    let names = ["created_time", "from", "message", "id"];
    graph::paged(call, all, |one| &one.id, |one| graph::select(&one.node(turn), &fields, "Comment", &names))
}

/// The address of the post that a comment on this object is below.
fn address(turn: &Turn<'_>, id: &str) -> Option<String> {
    let post = turn.shelf.get::<Post>(id).or_else(|| graph::tied(turn.shelf, "facebook.video", id).next());
    let post = post.map(|post| {
        let short = post.id.rsplit('_').next().unwrap_or_default();
        format!("www.facebook.com/{}/posts/{short}", post.page)
    });
    post.or_else(|| turn.shelf.get::<Comment>(id).map(|comment| comment.post))
}

/// `POST /{id}/comments`.
pub(super) fn comment(turn: &mut Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["pages_manage_engagement"])?;
    let post = address(turn, id).ok_or_else(|| missing("POST", id))?;
    let message = param(call, "message").unwrap_or_default();
    let photo = param(call, "attachment_id");
    if message.trim().is_empty() && photo.is_none() && param(call, "attachment_url").is_none() {
        return Err(invalid("The comment needs a message or an attachment"));
    }
    if message.chars().count() > COMMENT {
        return Err(invalid("The comment is too long."));
    }
    usable(turn, me, photo.as_slice())?;
    let fault = match fault::draw(turn, ID, &me.username, &message) {
        Ok(fault) => fault,
        Err(fault) => return Ok(Facebook.fail(turn, call, fault)),
    };
    let short = post.rsplit('/').next().unwrap_or_default().to_owned();
    let comment = Comment {
        id: format!("{short}_{}", graph::id(turn)),
        page: me.id.clone(),
        post,
        on: id.to_owned(),
        message,
        photo: photo.clone(),
        created_at: turn.now,
    };
    media::use_up(turn, photo.as_slice());
    turn.shelf.put(&comment);
    graph::tie(turn, "facebook.below", id, &comment.id);
    graph::tie(turn, "facebook.commenter", &me.id, &comment.id);
    let told = graph::select(&comment.node(turn), &graph::fields(call), "Comment", &["id"])?;
    Ok(Answer::json(200, &told).publishing(comment.id).because(fault))
}

/// `GET /{post}/insights`.
pub(super) fn insights(turn: &Turn<'_>, call: &Call, me: &Account, id: &str) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["read_insights", "pages_read_engagement"])?;
    let post = own(turn, me, id).ok_or_else(|| missing("GET", id))?;
    let age = turn.now - post.created_at;
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
                json!({ "like": likes, "comment": below(turn, id).count(), "share": figure(id, "shares", age, 90) })
            }
            _ => json!(if post.video.is_some() { views / 2 } else { 0 }),
        })
    };
    graph::insights(call, id, count, &METRICS)
}

/// `GET /{page}/insights`.
pub(super) fn page_insights(turn: &Turn<'_>, call: &Call, me: &Account) -> Result<Answer, Answer> {
    graph::admit(turn, ID, call, &["read_insights"])?;
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
    let age = turn.now - me.created_at;
    let count = |name: &str| names.contains(&name).then(|| json!(figure(&me.id, name, age, 5_000)));
    graph::insights(call, &me.id, count, &names)
}
