//! Threads, over its own API: <https://developers.facebook.com/docs/threads>.
//!
//! Posts are published in two steps by containers (see [`crate::graph`]), and Meta fetches media from our
//! URLs: there are no uploads. The first hashtag of a text becomes its topic and loses its hash sign, so the
//! search for a lost post ignores hash signs. A grant is valid for 60 days, can be refreshed only before it
//! expires, and can't be revoked by the API.

use crate::{
    AccountProfile, Adapter, AltTextLimit, Analytics, Auth, Cap, Checkpoint, Code, Committed, Counted,
    Deletion, Encoding, Feature, Grant, History, Idempotency, Identity, LimitUsage, Limits, Located, Media,
    MediaKind, MediaLimit, Metrics, Number, OAuth2, Page, Prepared, Preset, PublishRequest, Publisher,
    Publishing, Refresh, RemotePost, Replies, Reply, Result, Session, Source, TextLimit, Usage, Window,
    check::{ContainerContent, Issue, Severity},
    facets::{self, Meaning},
    fit,
    graph::{self, Containers, Fields, Insights, Listed, Status},
    listing::{self, Listing},
    look_up::{self, Findings, Subject},
    required, schema,
    text::{self, Bare},
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::HashSet, time::Duration};
use unicode_properties::UnicodeEmoji;

/// Threads. <https://developers.facebook.com/docs/threads>
struct Threads;

const API: &str = "https://graph.threads.com/v1.0";
const TOKEN: &str = "https://graph.threads.com/oauth/access_token";
const LONG_LIVED_TOKEN: &str = "https://graph.threads.com/access_token";
const REFRESH: &str = "https://graph.threads.com/refresh_access_token";

/// Maximum number of items of a carousel, of all kinds together.
const MAX_ITEMS: usize = 20;
/// Maximum length of a text.
const MAX_TEXT: usize = 500;
/// Maximum number of different links of a post.
const MAX_LINKS: usize = 5;

const FIELDS: &str = "id,media_type,media_url,permalink,username,text,timestamp,children{media_url},\
                      replied_to,topic_tag";

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "threads",
    name: "Threads",
    limits: Limits {
        text: TextLimit {
            max: 500,
            usual: None,
            unit: "characters (an emoji counts as its UTF-8 bytes)",
            count: length,
            max_bytes: None,
        },
        media: &[
            MediaLimit {
                kind: MediaKind::Image,
                count: 0..=MAX_ITEMS,
                mimes: &["image/jpeg", "image/png"],
                max_bytes: 8_000_000,
                aspect_ratio: Some(0.1..=10.0),
                ..MediaLimit::ANY
            },
            MediaLimit {
                kind: MediaKind::Video,
                count: 0..=MAX_ITEMS,
                mimes: &["video/mp4", "video/quicktime"],
                max_bytes: 1_000_000_000,
                duration: Some(Duration::from_millis(1)..=Duration::from_secs(300)),
                max_width: Some(1920),
                aspect_ratio: Some(0.01..=10.0),
                encoding: Some(Encoding {
                    source: "https://developers.facebook.com/docs/threads/overview",
                    ..graph::ENCODING
                }),
                ..MediaLimit::ANY
            },
        ],
        mixed_media: true,
        alt_text: Some(AltTextLimit { max: 1000, kinds: &[MediaKind::Image, MediaKind::Video] }),
        replies: Replies::Thread,
        reply_settings: &["allowlisted_country_codes", fit::SETTING],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
        // A container is published once and never again.
        idempotency: Idempotency::Idempotent,
        numbers: &[Number::max("links", MAX_LINKS)],
        sources: &[Source { url: "https://developers.facebook.com/docs/threads", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://threads.com/oauth/authorize",
        token: TOKEN,
        scopes: &[
            "threads_basic",
            "threads_content_publish",
            "threads_manage_replies",
            "threads_read_replies",
            "threads_manage_insights",
            "threads_delete",
        ],
        features: &[
            (Feature::Publishing, &[&["threads_basic", "threads_content_publish"]]),
            // A lost reply is looked up among the others.
            (Feature::Replies, &[&["threads_manage_replies", "threads_read_replies"]]),
            (Feature::Analytics, &[&["threads_manage_insights"]]),
            (Feature::Deletion, &[&["threads_delete"]]),
        ],
        presets: &[Preset { name: "publishing", scopes: &["threads_basic", "threads_content_publish"] }],
        separator: ",",
        refresh: Refresh::BeforeExpiry { min_age: graph::MIN_REFRESH_AGE },
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &Threads,
    analytics: Some(&Threads),
    history: Some(&Threads),
    deletion: Some(&Threads),
    editing: Err("Threads lets no app change a post"),
    options: None,
    caps: &[
        Cap {
            name: "posts",
            limit: 250,
            window: Window::Rolling(Duration::from_hours(24)),
            counts: Counted::Posts,
        },
        Cap {
            name: "replies",
            limit: 1000,
            window: Window::Rolling(Duration::from_hours(24)),
            counts: Counted::Replies,
        },
    ],
    usage: Some(&Threads),
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Who can reply.
    reply_control: Option<ReplyControl>,
    /// The post's topic, without #. Defaults to the text's first hashtag.
    #[schemars(length(min = 1, max = 50), regex(pattern = "^[^.&]*$"))]
    topic_tag: Option<Bare>,
    /// The link to show as a preview.
    #[schemars(extend("format" = "uri", "excludes" = ["media", "poll_attachment", "gif_attachment"]))]
    link_attachment: Option<String>,
    /// The post to quote.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    quote_post_id: Option<String>,
    /// A poll of two to four options.
    #[schemars(extend("excludes" = ["media", "gif_attachment"]))]
    poll_attachment: Option<Poll>,
    /// A GIF of a provider's collection.
    #[schemars(extend("excludes" = ["media"]))]
    gif_attachment: Option<Gif>,
    /// A longer text below the post.
    #[schemars(extend("excludes" = ["media", "poll_attachment"]))]
    text_attachment: Option<TextAttachment>,
    /// Parts of the text that are spoilers.
    #[schemars(length(max = 10))]
    text_entities: Option<Vec<TextEntity>>,
    /// Marks the media as a spoiler.
    #[schemars(extend("kinds" = ["image", "images", "video", "gif"]))]
    is_spoiler_media: Option<bool>,
    /// Makes the post disappear after 24 hours. Such a post has a text, with spoilers, and nothing else.
    #[schemars(extend("isPromise" = true, "excludes" = [
        "media", "poll_attachment", "gif_attachment", "text_attachment", "link_attachment", "topic_tag", "quote_post_id",
        "reply_control", "enable_reply_approvals", "location_id", "crossreshare_to_ig",
    ]))]
    is_ghost_post: Option<bool>,
    /// Shows replies only after approval.
    enable_reply_approvals: Option<bool>,
    /// Id of the place to tag. Needs the permission `threads_location_tagging`.
    location_id: Option<String>,
    /// Codes of the only countries in which the post is shown.
    #[schemars(inner(regex(pattern = "^[A-Z]{2}$")))]
    allowlisted_country_codes: Option<Vec<String>>,
    /// How a picture that is more than ten times as wide as high, or as high as wide, is made to fit: `crop` keeps its
    /// middle, `pad` lays it on a white ground. Without, it is refused.
    #[expect(dead_code, reason = "the fitting of pictures reads it")]
    fit: Option<fit::Fitting>,
    /// Also shares the post to the Instagram story. Needs the permission `threads_share_to_instagram`.
    crossreshare_to_ig: Option<bool>,
}

impl Settings {
    /// Returns a setting whose permission is missing, with the permission. Without a list of what was granted,
    /// none is.
    fn forbidden(&self, granted: &[String]) -> Option<(&'static str, &'static str)> {
        let settings = [
            ("location_id", "threads_location_tagging", self.location_id.is_some()),
            ("crossreshare_to_ig", "threads_share_to_instagram", self.crossreshare_to_ig == Some(true)),
        ];
        let is_missing = |scope: &str| !granted.is_empty() && !granted.iter().any(|one| one == scope);
        let mut wanted = settings.into_iter().filter(|(_, scope, is_set)| *is_set && is_missing(scope));
        wanted.next().map(|(setting, scope, _)| (setting, scope))
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReplyControl {
    Everyone,
    AccountsYouFollow,
    MentionedOnly,
    ParentPostAuthorOnly,
    FollowersOnly,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Poll {
    #[schemars(length(min = 1, max = 25))]
    option_a: String,
    #[schemars(length(min = 1, max = 25))]
    option_b: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 25))]
    option_c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 25))]
    option_d: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Gif {
    #[schemars(length(min = 1))]
    gif_id: String,
    provider: Option<Provider>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Provider {
    Giphy,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct TextAttachment {
    #[schemars(length(min = 1, max = 10000))]
    plaintext: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    link_attachment_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_with_styling_info: Option<Vec<Map<String, Value>>>,
}

// In the format that Threads documents, passed on unchanged.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["entity_type", "offset", "length"]))]
struct TextEntity(Map<String, Value>);

/// Returns the length of a text as Threads counts it.
fn length(text: &str) -> usize {
    text.chars()
        .map(|c| if c.is_emoji_char_or_emoji_component() && !c.is_ascii() { c.len_utf8() } else { 1 })
        .sum()
}

#[async_trait]
impl Publisher for Threads {
    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let settings = schema::read::<Settings>(settings).ok();
        let attached = settings.as_ref().and_then(|settings| settings.link_attachment.as_deref());
        let mut found = Vec::new();
        let longer = settings.as_ref().and_then(|settings| settings.text_attachment.as_ref());
        if attached.is_some() && longer.is_some_and(|longer| longer.link_attachment_url.is_some()) {
            let message = "threads takes one link beside a text: link_attachment, or that of text_attachment";
            found.push(Issue::of_setting(
                Severity::Error,
                "settings_conflict",
                ADAPTER.id,
                "link_attachment",
                message.to_owned(),
            ));
        }
        for (index, container) in containers.iter().enumerate() {
            let mut add = |severity, code: &str, member: &str, message: String| {
                let path = vec![json!("containers"), json!(index), json!(member)];
                found.push(Issue { severity, code: code.to_owned(), message, path });
            };
            if let Some(message) = too_many(container.media) {
                add(Severity::Error, "media_too_many", "media", message);
            }
            let links = different_links(container.text, attached.filter(|_| index == 0));
            if links > MAX_LINKS {
                let message = format!("threads takes {MAX_LINKS} different links, and there are {links}");
                add(Severity::Error, "links_too_many", "content", message);
            }
            let bytes = container.text.len();
            if bytes > MAX_TEXT && length(container.text) <= MAX_TEXT {
                let message = format!(
                    "threads takes {MAX_TEXT} characters, and was seen to count bytes, of which the text has {bytes}"
                );
                add(Severity::Warning, "text_may_be_too_long", "content", message);
            }
        }
        found
    }

    fn validate_replies(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        self.validate(containers, settings)
    }

    fn is_definite(&self, reply: &Reply) -> bool {
        graph::is_definite(reply)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        graph::classify(reply)
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        schema::read::<Settings>(&subject.settings).is_ok_and(|settings| settings.quote_post_id.is_some())
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        let Some(quoted) = &settings.quote_post_id else { return Ok(()) };
        let answer = cx.get(format!("{API}/{quoted}")).query(&[("fields", "id")]).send_ok().await;
        match answer {
            // The same answer for a post that does not exist and for one that the permissions don't show.
            Err(failure) if matches!(failure.code, ErrorCode::Rejected(_)) => {
                let message = format!("does not show the account a post {quoted} to quote");
                found.warning(look_up::NOT_FOUND, "quote_post_id", &message);
                Ok(())
            }
            answer => answer,
        }
    }

    async fn exchange(&self, cx: &Session<'_>, code: &Code) -> Result<Grant> {
        graph::exchange(cx, code, TOKEN, (LONG_LIVED_TOKEN, "th_exchange_token")).await
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let me: User =
            graph::read(cx, &format!("{API}/me"), "id,username,name,threads_profile_picture_url").await?;
        Ok(vec![Identity {
            profile: AccountProfile {
                display_name: me.name.filter(|name| !name.is_empty()).unwrap_or_else(|| me.username.clone()),
                profile_url: Some(format!("https://www.threads.com/@{}", me.username)),
                network_unique_id: me.id,
                username: me.username,
                account_type: "profile".to_owned(),
                profile_image_url: me.threads_profile_picture_url,
            },
            grant: None,
        }])
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        graph::read::<Value>(cx, &format!("{API}/me"), "id").await.map(drop)
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        graph::renew(cx, REFRESH, "th_refresh_token").await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let settings: Settings = post.settings()?;
        let forbidden = settings.forbidden(&cx.grant.scopes).filter(|_| post.reply_to.is_none());
        if let Some((setting, scope)) = forbidden {
            let message = format!(
                "{setting} needs the permission {scope}, which the account was connected without: connect it again with this scope"
            );
            return Err(Failure::rejected(403, message));
        }
        graph::prepare(self, cx, post, at).await
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        graph::commit(self, cx, post, at).await
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        graph::locate(self, cx, post, at).await
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        let post: Post = graph::read(cx, &format!("{API}/{id}"), "id,permalink,shortcode,username").await?;
        Ok(post.address(cx))
    }
}

#[async_trait]
impl Containers for Threads {
    const API: &'static str = API;
    const CREATE: &'static str = "threads";
    const PUBLISH: &'static str = "threads_publish";
    const STATUS: &'static str = "id,status,error_message";

    async fn child_fields(&self, cx: &Session<'_>, post: &PublishRequest, index: usize) -> Result<Fields> {
        let mut fields = medium(cx, &post.media[index]).await?;
        fields.push(("is_carousel_item", "true".to_owned()));
        Ok(fields)
    }

    async fn parent_fields(
        &self,
        cx: &Session<'_>,
        post: &PublishRequest,
        items: &[String],
    ) -> Result<Fields> {
        let mut fields = match post.media.as_slice() {
            [] => vec![("media_type", "TEXT".to_owned())],
            [one] => medium(cx, one).await?,
            _ => vec![("media_type", "CAROUSEL".to_owned()), ("children", items.join(","))],
        };
        if !post.text.is_empty() {
            fields.push(("text", post.text.clone()));
        }
        let settings: Settings = post.settings()?;
        match &post.reply_to {
            Some(reply) => fields.push(("reply_to_id", reply.parent.clone())),
            // These settings apply to the first post of a thread.
            None => {
                let gif = settings.gif_attachment.map(|gif| {
                    json!({ "gif_id": gif.gif_id, "provider": gif.provider.unwrap_or(Provider::Giphy) })
                });
                graph::set(&mut fields, "topic_tag", &settings.topic_tag);
                graph::set(&mut fields, "link_attachment", &settings.link_attachment);
                graph::set(&mut fields, "quote_post_id", &settings.quote_post_id);
                graph::set(&mut fields, "poll_attachment", &settings.poll_attachment);
                graph::set(&mut fields, "gif_attachment", &gif);
                graph::set(&mut fields, "text_attachment", &settings.text_attachment);
                graph::set(&mut fields, "text_entities", &settings.text_entities);
                graph::set(&mut fields, "is_spoiler_media", &settings.is_spoiler_media);
                graph::set(&mut fields, "is_ghost_post", &settings.is_ghost_post);
                graph::set(&mut fields, "enable_reply_approvals", &settings.enable_reply_approvals);
                graph::set(&mut fields, "location_id", &settings.location_id);
                graph::set(&mut fields, "crossreshare_to_ig", &settings.crossreshare_to_ig);
                graph::set(&mut fields, "reply_control", &settings.reply_control);
            }
        }
        let countries = settings.allowlisted_country_codes.map(|codes| codes.join(","));
        graph::set(&mut fields, "allowlisted_country_codes", &countries);
        Ok(fields)
    }

    fn status(&self, body: &Value) -> Status {
        match body["status"].as_str() {
            Some("FINISHED") => Status::Finished,
            Some("PUBLISHED") => Status::Published,
            Some("EXPIRED") => Status::Expired,
            Some("ERROR") => {
                let reason = body["error_message"].as_str().unwrap_or("UNKNOWN");
                let message = format!("Threads could not process the media: {reason}");
                Status::Failed(match reason {
                    // Transient: the file may be reachable later, and Meta knows no reason for the other.
                    "FAILED_DOWNLOADING_VIDEO" | "UNKNOWN" => Failure::upstream(502, message).certain(),
                    _ => Failure::rejected(400, message),
                })
            }
            _ => Status::Processing,
        }
    }

    async fn find(&self, cx: &Session<'_>, post: &PublishRequest) -> Result<Located> {
        let edge = if post.reply_to.is_some() { "replies" } else { "threads" };
        listing::locate(&Posts { cx, edge }, post).await
    }

    /// Creates a container, without a topic if the topic is not permitted.
    async fn create(&self, cx: &Session<'_>, mut fields: Fields) -> Result<String> {
        match graph::create::<Self>(cx, &fields).await {
            Err(failure)
                if failure.message.contains("4279071")
                    && fields.iter().any(|(name, _)| *name == "topic_tag") =>
            {
                fields.retain(|(name, _)| *name != "topic_tag");
                graph::create::<Self>(cx, &fields).await
            }
            made => made,
        }
    }
}

/// The account's posts or replies.
struct Posts<'a> {
    cx: &'a Session<'a>,
    edge: &'a str,
}

#[async_trait]
impl Listing for Posts<'_> {
    type Item = Post;

    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Post>> {
        list(self.cx, self.edge, Some(since), cursor).await
    }

    fn id(other: &Post) -> &str {
        &other.id
    }

    fn published_at(other: &Post) -> Option<DateTime<Utc>> {
        other.timestamp
    }

    fn matches(&self, other: &Post, post: &PublishRequest) -> bool {
        other.matches(post)
    }
}

#[async_trait]
impl Analytics for Threads {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let post: Post = graph::read(cx, &format!("{API}/{id}"), "id,media_type").await?;
        let insights: Insights = cx
            .get(format!("{API}/{id}/insights"))
            .query(&[("metric", "views,likes,replies,reposts,quotes,shares")])
            .send()
            .await?;
        let views = insights.get("views");
        Ok(Metrics {
            impressions: views,
            likes: insights.get("likes"),
            comments: insights.get("replies"),
            shares: insights.get("shares") + insights.get("reposts") + insights.get("quotes"),
            video_views: if post.media_type.as_deref() == Some("VIDEO") { views } else { 0 },
            ..Metrics::default()
        })
    }
}

#[async_trait]
impl Usage for Threads {
    async fn usage(&self, cx: &Session<'_>) -> Result<Vec<LimitUsage>> {
        let address = format!("{API}/{}/threads_publishing_limit", cx.account.network_unique_id);
        graph::usage(cx, &address, &[("posts", ""), ("replies", "reply_")]).await
    }
}

#[async_trait]
impl History for Threads {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let mut page = list(cx, "threads", None, cursor).await?;
        // A repost of another account's post is not a post of this account.
        page.items.retain(|post| post.media_type.as_deref() != Some("REPOST_FACADE"));
        Ok(page.map(|post| RemotePost {
            url: post.address(cx),
            media: post.media(),
            text: post.text.unwrap_or_default(),
            published_at: post.timestamp.unwrap_or_default(),
            metrics: Metrics::default(),
            id: post.id,
        }))
    }
}

#[async_trait]
impl Deletion for Threads {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        cx.delete(format!("{API}/{id}")).delete_ok().await
    }
}

/// Returns the number of different links of a text, and of the link to show as a preview.
/// <https://developers.facebook.com/docs/threads/posts>
fn different_links(text: &str, attached: Option<&str>) -> usize {
    let spans = facets::spans(text);
    // "Links count with or without a scheme."
    let written = spans.iter().filter_map(|span| match &span.meaning {
        Meaning::Link(link) => Some(&link[..]),
        _ => None,
    });
    written.chain(attached).collect::<HashSet<_>>().len()
}

/// Checks the number of items of a carousel, which may have several kinds: limits per kind do not cover this.
fn too_many(media: &[Media]) -> Option<String> {
    let count = media.len();
    (count > MAX_ITEMS).then(|| format!("threads takes {MAX_ITEMS} media in all, and there are {count}"))
}

/// Returns the fields of a container of one medium.
async fn medium(cx: &Session<'_>, media: &Media) -> Result<Fields> {
    let (kind, place) = match media.kind {
        MediaKind::Image => ("IMAGE", "image_url"),
        MediaKind::Video => ("VIDEO", "video_url"),
        other => return Err(Failure::rejected(415, format!("Threads takes no media of kind {other}"))),
    };
    let address = cx.media.address(media).await?;
    let mut fields = vec![("media_type", kind.to_owned()), (place, address.into())];
    if let Some(alt) = media.alt_text.as_ref().filter(|alt| !alt.is_empty()) {
        fields.push(("alt_text", alt.clone()));
    }
    Ok(fields)
}

/// Returns one page of the account's posts or replies, newest first.
async fn list(
    cx: &Session<'_>,
    edge: &str,
    since: Option<DateTime<Utc>>,
    cursor: Option<&str>,
) -> Result<Page<Post>> {
    let mut call = cx
        .get(format!("{API}/{}/{edge}", cx.account.network_unique_id))
        .query(&[("fields", FIELDS), ("limit", "50")]);
    if let Some(since) = since {
        call = call.query(&[("since", since.timestamp())]);
    }
    graph::page(call, cursor).await
}

/// Returns the text without hash signs and white space, which Threads changes.
fn canonical_text(text: &str) -> String {
    text::collapse_whitespace(&text.replace('#', ""))
}

#[derive(Deserialize)]
struct User {
    #[serde(deserialize_with = "required::id")]
    id: String,
    username: String,
    name: Option<String>,
    threads_profile_picture_url: Option<String>,
}

#[derive(Deserialize)]
struct Post {
    #[serde(deserialize_with = "required::id")]
    id: String,
    media_type: Option<String>,
    media_url: Option<String>,
    permalink: Option<String>,
    shortcode: Option<String>,
    username: Option<String>,
    text: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    timestamp: Option<DateTime<Utc>>,
    children: Option<Listed<Child>>,
    replied_to: Option<graph::Made>,
}

#[derive(Deserialize)]
struct Child {
    media_url: Option<String>,
}

impl Post {
    /// Returns the public URL; built from the code if the response omits it.
    fn address(&self, cx: &Session<'_>) -> String {
        let name = self.username.as_deref().unwrap_or(&cx.account.username);
        let code = self.shortcode.as_deref().unwrap_or(&self.id);
        let built = || format!("https://www.threads.com/@{name}/post/{code}");
        cx.transport.rewrite_url(&self.permalink.clone().unwrap_or_else(built))
    }

    fn media(&self) -> Vec<String> {
        let children = self.children.iter().flat_map(|children| &children.data);
        let items: Vec<String> = children.filter_map(|child| child.media_url.clone()).collect();
        if items.is_empty() { self.media_url.iter().cloned().collect() } else { items }
    }

    /// Returns true if it has the content of `post`.
    fn matches(&self, post: &PublishRequest) -> bool {
        let kind = match post.media.as_slice() {
            [] => "TEXT_POST",
            [one] if one.kind == MediaKind::Video => "VIDEO",
            [_] => "IMAGE",
            _ => "CAROUSEL_ALBUM",
        };
        let parent_matches = match (&post.reply_to, &self.replied_to) {
            (Some(reply), Some(parent)) => parent.id == reply.parent,
            // The list of replies may omit the parent.
            (Some(_), None) => true,
            (None, parent) => parent.is_none(),
        };
        parent_matches
            && self.media_type.as_deref().is_none_or(|is| is == kind)
            && canonical_text(self.text.as_deref().unwrap_or_default()) == canonical_text(&post.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use domain::ErrorCode;

    #[test]
    fn an_emoji_counts_as_its_bytes() {
        assert_eq!(length("aé1#ß漢"), 6);
        assert_eq!(length("🎉"), 4);
        assert_eq!(length("a🎉b"), 6);
    }

    #[test]
    fn links_are_counted_once_with_the_preview_and_bytes_are_warned_of() {
        let told = |text: &str, settings: Value| -> Vec<_> {
            let issues = check::check(&ADAPTER, &[ContainerContent { text, media: &[] }], &settings);
            issues.into_iter().map(|issue| (issue.severity, issue.code)).collect()
        };
        let links = |count: usize| -> String {
            (0..count).map(|number| format!("see https://example.com/{number}, ")).collect()
        };
        let attached = |number: usize| json!({ "link_attachment": format!("https://example.com/{number}") });
        let too_many = [(Severity::Error, "links_too_many".to_owned())];
        assert_eq!(told(&links(5), attached(4)), []);
        assert_eq!(told(&links(5).repeat(2), json!({})), []);
        assert_eq!(told(&links(5), attached(5)), too_many);
        assert_eq!(told(&links(6), json!({})), too_many);
        // With and without a scheme they are the same.
        assert_eq!(told("a.com b.com c.com https://a.com/ d.com e.org", json!({})), too_many);
        assert_eq!(told("a.com b.com c.com https://a.com d.com e.org", json!({})), []);
        assert_eq!(told(&"a".repeat(500), json!({})), []);
        let quoted = format!("{}’", "a".repeat(498));
        assert_eq!(told(&quoted, json!({})), [(Severity::Warning, "text_may_be_too_long".to_owned())]);
    }

    #[test]
    fn a_post_is_recognized_without_the_hash_sign_of_its_topic() {
        assert_eq!(canonical_text("a #topic and  #more"), canonical_text("a topic and #more"));
        assert_ne!(canonical_text("a topic"), canonical_text("another topic"));
    }

    #[test]
    fn the_status_of_a_container_is_parsed() {
        let status = |word: &str, error: &str| {
            Threads.status(&json!({ "id": "1", "status": word, "error_message": error }))
        };
        assert!(matches!(status("FINISHED", ""), Status::Finished));
        assert!(matches!(status("PUBLISHED", ""), Status::Published));
        assert!(matches!(status("EXPIRED", ""), Status::Expired));
        assert!(matches!(status("IN_PROGRESS", ""), Status::Processing));
        let failed = |error: &str| match status("ERROR", error) {
            Status::Failed(failure) => failure.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed("INVALID_DURATION"), ErrorCode::Rejected(400));
        assert_eq!(failed("FAILED_DOWNLOADING_VIDEO"), ErrorCode::Upstream(502));
        assert_eq!(failed("UNKNOWN"), ErrorCode::Upstream(502));
    }
}
