//! Posts in the Page's feed, comments and stories, as they are published and as Facebook lists them.
//! <https://developers.facebook.com/docs/graph-api/reference/page/feed>
//!
//! A lost post is recognized by its photos, else by its text, of which Facebook shows mentions as names.

use super::{ADAPTER, Facebook, Settings, Step, address, get};
use crate::{
    History, Metrics, Page, PublishRequest, RemotePost, Result, Session,
    check::{ContainerContent, Issue, Severity},
    graph::{self, Fields, Listed, Made},
    listing::Listing,
    required,
    text::collapse_whitespace,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Posts per page of a list. Facebook refuses a page with too much data, so it is halved then.
const PAGE_POSTS: u32 = 50;

/// Maximum length of a text on a colored background. Meta documents none; two products that publish by this API name it.
/// <https://help.leadconnectorhq.com/support/solutions/articles/155000008005-facebook-text-background-posts-reference> (2026-11)
pub(super) const MAX_BACKGROUND_TEXT: usize = 130;
/// Number of cards that Facebook shows, whatever it takes; with more it has to be told that it may choose.
/// <https://developers.facebook.com/docs/graph-api/reference/page/feed> (v26.0)
const SHOWN_CARDS: usize = 5;

const FIELDS: &str = "id,message,created_time,permalink_url,shares,full_picture,status_type,\
                      attachments{media_type,type,media,target,subattachments}";

/// Compares a post in the feed with what its background takes and its cards show, and a draft with what is kept of it.
pub(super) fn feed_issues(containers: &[ContainerContent<'_>], settings: &Settings) -> Vec<Issue> {
    let mut issues = Vec::new();
    let mut add = |severity, code: &str, setting: &str, message: String| {
        issues.push(Issue::of_setting(severity, code, ADAPTER.id, setting, message));
    };
    let length = containers.first().map_or(0, |main| main.text.chars().count());
    if settings.text_format_preset_id.is_some() && !settings.is_draft() && length > MAX_BACKGROUND_TEXT {
        let message = format!(
            "facebook takes {MAX_BACKGROUND_TEXT} characters on a background, and the text has {length}"
        );
        add(Severity::Error, "text_too_long", "text_format_preset_id", message);
    }
    let count = settings.cards().len();
    if count > SHOWN_CARDS {
        let message = format!("facebook shows {SHOWN_CARDS} cards, and there are {count}");
        add(Severity::Warning, "cards_not_shown", "child_attachments", message);
    }
    if settings.is_draft() {
        if containers.len() > 1 {
            let message = "facebook takes no comment below a draft".to_owned();
            add(Severity::Error, "settings_conflict", "draft", message);
        }
        let message = "facebook keeps the post as a draft, and shows it to nobody until it is published in Meta Business Suite";
        add(Severity::Warning, "post_waits_in_drafts", "draft", message.to_owned());
    }
    issues
}

/// Returns the fields of a feed post's publishing call.
pub(super) fn feed_fields(post: &PublishRequest, settings: &Settings, step: &Step) -> Fields {
    let mut fields = Fields::new();
    if !post.text.is_empty() {
        fields.push(("message", post.text.clone()));
    }
    // A carousel needs a link as well, which follows its cards.
    let first = settings.cards().first().map(|card| card.link.clone());
    graph::set(&mut fields, "link", &settings.link.clone().or(first));
    if settings.is_draft() {
        fields.push(("published", "false".to_owned()));
        fields.push(("unpublished_content_type", "DRAFT".to_owned()));
    } else {
        graph::set(&mut fields, "place", &settings.place);
        graph::set(&mut fields, "targeting", &settings.targeting());
        graph::set(&mut fields, "text_format_preset_id", &settings.text_format_preset_id);
        graph::set(&mut fields, "child_attachments", &settings.child_attachments);
        if settings.cards().len() > SHOWN_CARDS {
            fields.push(("multi_share_optimized", "true".to_owned()));
        }
    }
    if !step.uploads.is_empty() {
        let photos = step.uploads.iter().map(|photo| json!({ "media_fbid": photo.ticket.id }));
        let photos: Vec<Value> = photos.collect();
        fields.push(("attached_media", Value::from(photos).to_string()));
    }
    fields
}

/// The Page's posts; `step` has the ids of the photos.
pub(super) struct FeedPosts<'a> {
    pub(super) cx: &'a Session<'a>,
    pub(super) step: &'a Step,
}

#[async_trait]
impl Listing for FeedPosts<'_> {
    type Item = Post;

    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Post>> {
        list(self.cx, Some(since), cursor).await
    }

    fn id(other: &Post) -> &str {
        &other.id
    }

    fn published_at(other: &Post) -> Option<DateTime<Utc>> {
        other.created_time
    }

    fn matches(&self, other: &Post, post: &PublishRequest) -> bool {
        other.matches(post, self.step)
    }
}

/// The comments below a post.
pub(super) struct Comments<'a> {
    pub(super) cx: &'a Session<'a>,
    pub(super) parent: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Comment;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Comment>> {
        let call = get(self.cx, &format!("{}/comments", self.parent)).query(&[
            ("fields", "id,message,created_time,from"),
            ("order", "reverse_chronological"),
            ("limit", "50"),
        ]);
        graph::page(call, cursor).await
    }

    fn id(comment: &Comment) -> &str {
        &comment.id
    }

    fn published_at(comment: &Comment) -> Option<DateTime<Utc>> {
        comment.created_time
    }

    fn matches(&self, comment: &Comment, post: &PublishRequest) -> bool {
        comment.from.as_ref().is_none_or(|from| from.id == self.cx.account.network_unique_id)
            && collapse_whitespace(comment.message.as_deref().unwrap_or_default())
                == collapse_whitespace(&post.text)
    }
}

/// Returns the story of a photo or video.
pub(super) async fn story(cx: &Session<'_>, media: &str) -> Result<Option<String>> {
    let all = stories(cx).await?;
    Ok(all.into_iter().find(|story| story.media_id.as_deref() == Some(media)).map(|story| story.post_id))
}

pub(super) async fn stories(cx: &Session<'_>) -> Result<Vec<Story>> {
    let path = format!("{}/stories", cx.account.network_unique_id);
    let listed: Listed<Story> = get(cx, &path)
        .query(&[("fields", "post_id,status,creation_time,media_type,media_id,url"), ("limit", "100")])
        .send()
        .await?;
    Ok(listed.data)
}

/// Returns one page of the Page's posts, newest first.
async fn list(cx: &Session<'_>, since: Option<DateTime<Utc>>, cursor: Option<&str>) -> Result<Page<Post>> {
    let path = format!("{}/published_posts", cx.account.network_unique_id);
    let mut limit = PAGE_POSTS;
    loop {
        let mut call = get(cx, &path).query(&[("fields", FIELDS)]).query(&[("limit", limit)]);
        if let Some(since) = since {
            call = call.query(&[("since", since.timestamp())]);
        }
        match graph::page(call, cursor).await {
            Err(failure) if limit > 1 && is_too_much_data(&failure) => limit /= 2,
            page => return page,
        }
    }
}

/// Returns true if a list was refused because a page of it has too much data.
fn is_too_much_data(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Upstream(_)) && failure.message.contains("reduce the amount of data")
}

#[async_trait]
impl History for Facebook {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        Ok(list(cx, None, cursor).await?.map(|post| RemotePost {
            // A video is identified by its own id, as when it is published here.
            id: post.video().unwrap_or_else(|| post.id.clone()),
            url: post.permalink_url.as_deref().map(|url| address(cx, url)).unwrap_or_default(),
            media: post.full_picture.iter().cloned().collect(),
            metrics: Metrics {
                shares: post.shares.as_ref().map_or(0, |shares| shares.count),
                ..Metrics::default()
            },
            text: post.message.unwrap_or_default(),
            published_at: post.created_time.unwrap_or_default(),
        }))
    }
}

#[derive(Deserialize)]
pub(super) struct Post {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    pub(super) message: Option<String>,
    pub(super) permalink_url: Option<String>,
    pub(super) is_published: Option<bool>,
    full_picture: Option<String>,
    status_type: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    created_time: Option<DateTime<Utc>>,
    pub(super) shares: Option<Shares>,
    pub(super) comments: Option<CommentCount>,
    attachments: Option<Listed<Attachment>>,
}

#[derive(Deserialize)]
pub(super) struct Shares {
    pub(super) count: u64,
}

#[derive(Deserialize)]
pub(super) struct CommentCount {
    pub(super) summary: Summary,
}

#[derive(Deserialize)]
pub(super) struct Summary {
    pub(super) total_count: u64,
}

#[derive(Deserialize)]
struct Attachment {
    media_type: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    target: Option<Target>,
    subattachments: Option<Listed<Attachment>>,
}

#[derive(Deserialize)]
struct Target {
    id: Option<String>,
}

impl Attachment {
    fn targets(&self) -> Vec<&str> {
        let below = self.subattachments.iter().flat_map(|list| &list.data).flat_map(Self::targets);
        self.target.iter().filter_map(|target| target.id.as_deref()).chain(below).collect()
    }

    /// Returns true if it is a photo or a video of the Page. The preview of a link to a video has the media type
    /// of a video too.
    fn is_upload(&self) -> bool {
        matches!(self.media_type.as_deref(), Some("photo" | "album" | "video"))
            && !self.kind.as_deref().is_some_and(|kind| kind.contains("share"))
    }
}

impl Post {
    /// Returns the id of the post's video.
    fn video(&self) -> Option<String> {
        let attachment = self.attachments.as_ref()?.data.first()?;
        // The video of a shared post belongs to another Page.
        let is_own = self.status_type.as_deref().is_none_or(|kind| kind != "shared_story");
        let is_video = attachment.media_type.as_deref() == Some("video") && attachment.is_upload() && is_own;
        attachment.target.as_ref().filter(|_| is_video)?.id.clone().filter(|id| required::is_id(id))
    }

    /// Returns true if it has the content of `post`: the same photos if there are any, else the same text.
    fn matches(&self, post: &PublishRequest, step: &Step) -> bool {
        let attachments = self.attachments.as_ref().map(|list| list.data.as_slice()).unwrap_or_default();
        let targets: Vec<&str> = attachments.iter().flat_map(Attachment::targets).collect();
        if !step.uploads.is_empty() && !targets.is_empty() {
            return step.uploads.iter().any(|photo| targets.contains(&photo.ticket.id.as_str()));
        }
        let has_media = attachments.iter().any(Attachment::is_upload);
        has_media != post.media.is_empty()
            && is_same_text(&post.text, self.message.as_deref().unwrap_or_default())
    }
}

/// Returns true if Facebook shows the text `sent` as `shown`. It shows a mention, `@[id]`, as the name of the
/// Page that is mentioned.
fn is_same_text(sent: &str, shown: &str) -> bool {
    static MENTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"@\[\d+(:[^\]]*)?\]").expect("a valid pattern"));
    let (sent, shown) = (collapse_whitespace(sent), collapse_whitespace(shown));
    let parts: Vec<&str> = MENTION.split(&sent).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return sent == shown };
    let between = shown.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    between.is_some_and(|mut rest| {
        middle.iter().all(|part| {
            let at = rest.find(part);
            rest = at.map_or("", |at| &rest[at + part.len()..]);
            at.is_some()
        })
    })
}

#[derive(Deserialize)]
pub(super) struct Comment {
    #[serde(deserialize_with = "required::id")]
    pub(super) id: String,
    pub(super) message: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    created_time: Option<DateTime<Utc>>,
    from: Option<Made>,
}

#[derive(Deserialize)]
pub(super) struct Story {
    #[serde(deserialize_with = "required::id")]
    pub(super) post_id: String,
    media_id: Option<String>,
    pub(super) url: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::Ticket;
    use super::*;
    use crate::{Media, MediaKind, upload::Uploaded};
    use uuid::Uuid;

    #[test]
    fn a_lost_post_is_recognized_by_its_photos() {
        let post: Post = serde_json::from_value(json!({
            "id": "1_2", "message": "a  b", "created_time": "2026-09-28T17:05:11+0000",
            "attachments": { "data": [{
                "media_type": "album", "target": { "id": "7" },
                "subattachments": { "data": [{ "target": { "id": "8" } }, { "target": { "id": "9" } }] },
            }] },
        }))
        .unwrap();
        let media = Media {
            id: Uuid::nil(),
            kind: MediaKind::Image,
            mime: String::new(),
            filename: String::new(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        };
        let ours = PublishRequest { text: "a b".into(), media: vec![media], ..PublishRequest::of_test() };
        let photo =
            |id: &&str| Uploaded::of_test(Uuid::nil(), Ticket { id: (*id).into(), session: None, end: None });
        let step = |photos: &[&str]| Step { uploads: photos.iter().map(photo).collect(), ..Step::default() };
        assert!(post.matches(&ours, &step(&["9"])));
        assert!(!post.matches(&ours, &step(&["10"])), "other photos with the same text");
        assert!(post.matches(&ours, &step(&[])));
        assert!(!post.matches(&PublishRequest { media: vec![], ..ours.clone() }, &step(&[])));
    }

    #[test]
    fn a_mention_is_shown_as_a_name() {
        for (sent, shown, is_same) in [
            ("a  b", "a b", true),
            ("a", "a b", false),
            ("with @[123] today", "with Our Page today", true),
            ("@[123]", "Our Page", true),
            ("@[1] and @[2:1:Name]!", "One and Two!", true),
            ("@[1] and @[2]", "One or Two", false),
            ("with @[123] today", "with Our Page tomorrow", false),
            ("aba @[1] aba", "aba", false),
        ] {
            assert_eq!(is_same_text(sent, shown), is_same, "{sent}");
        }
    }

    #[test]
    fn the_preview_of_a_link_is_no_upload() {
        let post = |attachment: Value, status: &str| -> Post {
            let post = json!({
                "id": "1_2", "message": "a", "status_type": status, "attachments": { "data": [attachment] },
            });
            serde_json::from_value(post).unwrap()
        };
        let ours = PublishRequest { text: "a".into(), ..PublishRequest::of_test() };
        let target = json!({ "id": "7" });
        for kind in ["video_share_youtube", "video_share", "animated_image_share", "share"] {
            let attachment = json!({ "media_type": "video", "type": kind, "target": target });
            let post = post(attachment, "shared_story");
            assert!(post.matches(&ours, &Step::default()) && post.video().is_none(), "{kind}");
        }
        let film = json!({ "media_type": "video", "type": "video_inline", "target": target });
        let own = post(film.clone(), "added_video");
        assert!(!own.matches(&ours, &Step::default()));
        assert_eq!(own.video().as_deref(), Some("7"));
        assert_eq!(post(film, "shared_story").video(), None, "of another Page");
    }
}
