//! Instagram, over its API with Instagram Login: <https://developers.facebook.com/docs/instagram-platform>.
//!
//! This login is used instead of Facebook's because it needs no Page and its tokens can be refreshed; it has
//! no deletion and no uploads. Posts are published in two steps by containers (see [`crate::graph`]), and Meta
//! fetches media from our URLs. A first comment is a separate call that is not idempotent: after a lost
//! response it is searched for among the post's comments.

use crate::{
    Account, AccountProfile, Adapter, AltTextLimit, Analytics, Auth, Cap, Checkpoint, Code, CommentLimits,
    Committed, Content, Counted, Encoding, Feature, Grant, History, Idempotency, Identity, LimitUsage,
    Limits, Located, Media, MediaKind, MediaLimit, Metrics, Number, OAuth2, Page, Prepared, Preset,
    PublishRequest, Publisher, Publishing, Refresh, RemotePost, Replies, Reply, Result, ScopeSet, Session,
    Shape, Source, TextLimit, Usage, Window,
    check::{ContainerContent, Issue, Severity},
    fit,
    graph::{self, Containers, Fields, Insights, Listed, Made, MediaType, Status},
    listing::{self, Listing},
    required, schema,
    text::{self, Bare, collapse_whitespace},
    versions,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{ops::RangeInclusive, time::Duration};

/// Instagram. <https://developers.facebook.com/docs/instagram-platform>
struct Instagram;

const API: &str = concat!("https://graph.instagram.com/", versions::graph_api!());
const TOKEN: &str = "https://api.instagram.com/oauth/access_token";
const LONG_LIVED_TOKEN: &str = "https://graph.instagram.com/access_token";
const REFRESH: &str = "https://graph.instagram.com/refresh_access_token";

/// Scopes of a post whose comments are turned off.
const COMMENT_SCOPES: ScopeSet =
    &["instagram_business_basic", "instagram_business_content_publish", "instagram_business_manage_comments"];

/// Maximum number of items of a carousel, of all kinds together.
const MAX_ITEMS: usize = 10;
/// Width over height of an image in the feed, with a tolerance for rounded pixels. Meta's page has 4:5 as the tallest
/// (checked 2026-11); 3:4 is the shape of its own grid since 2025, and two products had images up to 9:16 published
/// by this API in 2026. So what is taller than 3:4 is told, and refused only beyond that.
const FEED_SHAPES: RangeInclusive<f64> = 0.56..=1.92;
const USUAL_SHAPE: f64 = 0.74;
/// The shapes that it takes for certain, which the setting `fit` gives.
const SURE_SHAPES: RangeInclusive<f64> = 0.75..=1.91;
/// Form of a username.
const USERNAME: &str = r"^\s*@?[A-Za-z0-9._]{1,30}\s*$";
/// Maximum number of hashtags and of mentions in a caption, and of hashtags that every app may send.
const MAX_HASHTAGS: usize = 30;
const MAX_MENTIONS: usize = 20;
const USUAL_HASHTAGS: usize = 5;
/// Maximum length and size of a story's video.
const MAX_STORY: Duration = Duration::from_secs(60);
const MAX_STORY_BYTES: u64 = 100_000_000;

const FIELDS: &str = "id,caption,media_type,media_product_type,media_url,permalink,timestamp,like_count,\
                      comments_count,children{media_url}";

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "instagram",
    name: "Instagram",
    limits: Limits {
        text: TextLimit::characters(2_200),
        content: Content::Media,
        media: &[
            MediaLimit {
                kind: MediaKind::Image,
                count: 0..=MAX_ITEMS,
                mimes: &["image/jpeg"],
                max_bytes: 8_000_000,
                // Stories may be taller, so Meta itself enforces 4:5 for feed posts.
                aspect_ratio: Some(0.1..=1.91),
                ..MediaLimit::ANY
            },
            MediaLimit {
                kind: MediaKind::Video,
                count: 0..=MAX_ITEMS,
                mimes: &["video/mp4", "video/quicktime"],
                max_bytes: 300_000_000,
                duration: Some(Duration::from_secs(3)..=Duration::from_secs(900)),
                max_width: Some(1920),
                aspect_ratio: Some(0.01..=10.0),
                encoding: Some(Encoding {
                    source: "https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/ig-user/media",
                    ..graph::ENCODING
                }),
                ..MediaLimit::ANY
            },
        ],
        mixed_media: true,
        alt_text: Some(AltTextLimit { max: 1000, kinds: &[MediaKind::Image] }),
        replies: Replies::FirstComment,
        publishing: Publishing::Asynchronous { window: Duration::from_secs(3600) },
        // A container is published once; a repeated comment is a duplicate.
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(15) },
        comment: Some(CommentLimits { text: TextLimit::characters(2_200), media: &[], has_alt_text: false }),
        numbers: &[
            Number { of: "hashtags", max: Some(MAX_HASHTAGS), usual: Some(USUAL_HASHTAGS) },
            Number::max("mentions", MAX_MENTIONS),
        ],
        sources: &[Source {
            url: "https://developers.facebook.com/docs/instagram-platform",
            checked: "2026-11-21",
        }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.instagram.com/oauth/authorize",
        token: TOKEN,
        scopes: &[
            "instagram_business_basic",
            "instagram_business_content_publish",
            "instagram_business_manage_comments",
            "instagram_business_manage_insights",
        ],
        features: &[
            (Feature::Publishing, &[&["instagram_business_basic", "instagram_business_content_publish"]]),
            (Feature::Replies, &[&["instagram_business_manage_comments"]]),
            (Feature::Analytics, &[&["instagram_business_manage_insights"]]),
        ],
        presets: &[Preset {
            name: "publishing",
            scopes: &["instagram_business_basic", "instagram_business_content_publish"],
        }],
        separator: ",",
        // Otherwise the account that the browser is logged in to is connected again.
        force_login: &[("force_reauth", "true")],
        refresh: Refresh::BeforeExpiry { min_age: graph::MIN_REFRESH_AGE },
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &Instagram,
    analytics: Some(&Instagram),
    history: Some(&Instagram),
    deletion: None,
    editing: Err("Instagram lets no app change a caption"),
    options: None,
    caps: &[Cap {
        name: "posts",
        limit: 100,
        window: Window::Rolling(Duration::from_hours(24)),
        counts: Counted::Posts,
    }],
    usage: Some(&Instagram),
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Place where the post is shown. By default a single video is a reel, and everything else goes to the feed. With
    /// STORIES each container of the post is a story of its own, with one medium, and none is a comment.
    media_type: Option<MediaType>,
    /// Usernames of accounts to invite as co-authors.
    #[schemars(length(max = 3), inner(regex(pattern = USERNAME)), extend("kinds" = ["image", "carousel", "reel"]))]
    collaborators: Option<Vec<Bare>>,
    /// Also shows a reel in the feed. Defaults to true.
    #[schemars(extend("kinds" = ["reel"]))]
    share_to_feed: Option<bool>,
    /// Id of the container's image to use as a reel's cover; the container has this image and one video.
    #[schemars(length(min = 1), extend("excludes" = ["cover_url"]))]
    cover: Option<String>,
    /// URL of a reel's cover image, a JPEG.
    #[schemars(extend("kinds" = ["reel"], "format" = "uri"))]
    cover_url: Option<String>,
    /// Moment of a reel to use as its cover, in milliseconds. Ignored with cover and cover_url.
    #[schemars(range(max = 899_999), extend("kinds" = ["reel"]))]
    thumb_offset: Option<u64>,
    /// Name of a reel's original audio.
    #[schemars(extend("kinds" = ["reel"]))]
    audio_name: Option<String>,
    /// Id of the Facebook Page of the place to tag.
    #[schemars(regex(pattern = "^[0-9]+$"), extend("kinds" = ["image", "carousel", "reel"]))]
    location_id: Option<String>,
    /// Accounts to tag in an image, each with its position, in a video, or in one medium of a carousel.
    #[schemars(length(max = 20))]
    user_tags: Option<Vec<UserTag>>,
    /// Shows a reel first to people who do not follow the account.
    #[schemars(extend("kinds" = ["reel"], "isPromise" = true))]
    trial_params: Option<TrialParams>,
    /// Labels the post as made with AI.
    #[schemars(extend("isPromise" = true))]
    is_ai_generated: Option<bool>,
    /// False turns comments off as soon as the post is live; needs the scope instagram_business_manage_comments. A post
    /// without comments has no first comment either. Defaults to true.
    #[schemars(extend("kinds" = ["image", "carousel", "reel"]))]
    comment_enabled: Option<bool>,
    /// How a picture that is taller than 3:4 or wider than 1.91:1 is made to fit in the feed, and one that is taller than
    /// 1:10 or wider than 1.91:1 elsewhere: `crop` keeps its middle, `pad` lays it on a white ground.
    #[expect(dead_code, reason = "the fitting of pictures reads it")]
    fit: Option<fit::Fitting>,
}

impl Settings {
    /// Returns the id of the image for the cover.
    fn cover(&self) -> Option<&str> {
        self.cover.as_deref()
    }

    /// True if comments are turned off. A story has none.
    fn is_silent(&self) -> bool {
        self.comment_enabled == Some(false) && self.media_type != Some(MediaType::Stories)
    }

    /// Returns an error message if the cover does not fit the post's media. Only a reel has one.
    fn uncoverable(&self, media: &[Media]) -> Option<String> {
        let is_story = self.media_type == Some(MediaType::Stories);
        graph::uncoverable(ADAPTER.id, media, self.cover()?, is_story)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct UserTag {
    #[schemars(regex(pattern = USERNAME))]
    username: Bare,
    /// Share of the width, from the left. Required in an image, optional in a story, and not used in a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    x: Option<f64>,
    /// Share of the height, from the top, as x.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    y: Option<f64>,
    /// Index of the medium in a carousel, or of the story of several, from 0. Defaults to the first.
    #[serde(skip_serializing)]
    media_index: Option<usize>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct TrialParams {
    graduation_strategy: GraduationStrategy,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum GraduationStrategy {
    Manual,
    SsPerformance,
}

/// Compares a caption with Instagram's numbers of hashtags and mentions.
///
/// The API's documentation has 30 hashtags (checked 2026-10); two products that publish by it saw five as the most
/// that are taken (2026-09), so that more are told.
fn caption_issues(caption: &str) -> Vec<Issue> {
    let (tags, mentions) = text::hashtags_and_mentions(caption);
    let mut issues = Vec::new();
    let mut add = |severity, code, most: usize, what: &str, number: usize| {
        let message = format!("instagram takes {most} {what} in a caption, and there are {number}");
        issues.push(Issue::of_main(severity, code, "content", message));
    };
    if tags > MAX_HASHTAGS {
        add(Severity::Error, "hashtags_too_many", MAX_HASHTAGS, "hashtags", tags);
    } else if tags > USUAL_HASHTAGS {
        add(Severity::Warning, "hashtags_too_many", USUAL_HASHTAGS, "hashtags from some apps", tags);
    }
    if mentions > MAX_MENTIONS {
        add(Severity::Error, "mentions_too_many", MAX_MENTIONS, "mentions", mentions);
    }
    issues
}

/// Compares containers, each of which is a story, with what Instagram takes and shows as one.
fn story_issues(containers: &[ContainerContent<'_>], settings: &Settings) -> Vec<Issue> {
    let mut issues = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let mut add = |severity, code: &str, member: &str, message: String| {
            let path = vec![json!("containers"), json!(index), json!(member)];
            issues.push(Issue { severity, code: code.to_owned(), message, path });
        };
        let media: Vec<_> = container.media.iter().collect();
        if let Err((code, message)) = PostKind::choose(&media, settings.media_type) {
            add(Severity::Error, code, "media", message);
        }
        if !container.text.trim().is_empty() {
            let message = "instagram shows no text on a story".to_owned();
            add(Severity::Warning, "text_not_shown", "content", message);
        }
        if container.media.iter().any(has_alt_text) {
            let message = "instagram shows no alt text on a story".to_owned();
            add(Severity::Warning, "alt_text_not_supported", "media", message);
        }
    }
    let count = containers.len();
    let astray = settings.user_tags.iter().flatten().find(|tag| tag.media_index.unwrap_or(0) >= count);
    if let Some(tag) = astray {
        let (name, index) = (&tag.username.0, tag.media_index.unwrap_or(0));
        let message =
            format!("instagram tags accounts in stories of the post, and {name} in {index} of {count}");
        let code = "setting_invalid";
        issues.push(Issue::of_setting(Severity::Error, code, ADAPTER.id, "user_tags", message));
    }
    issues
}

fn has_alt_text(media: &Media) -> bool {
    media.alt_text.as_ref().is_some_and(|alt| !alt.is_empty())
}

#[async_trait]
impl Publisher for Instagram {
    fn shape(&self, media: &[Media], index: usize, settings: &Value) -> Option<Shape> {
        let settings: Settings = schema::read(settings).ok()?;
        let shown = graph::shown(media, settings.cover());
        let is_shown = shown.iter().any(|medium| medium.id == media[index].id);
        let is_feed = PostKind::place(&shown, settings.media_type) == PostKind::Feed;
        (is_feed && is_shown).then_some(Shape::Within(SURE_SHAPES))
    }

    fn post_kind(&self, main: &ContainerContent<'_>, settings: &Value) -> Option<&'static str> {
        let settings: Settings = schema::read(settings).ok()?;
        let shown = graph::shown(main.media, settings.cover());
        Some(match PostKind::choose(&shown, settings.media_type).ok()? {
            PostKind::Feed if shown.len() > 1 => "carousel",
            PostKind::Feed => "image",
            PostKind::Reel => "reel",
            PostKind::Story => "story",
        })
    }

    fn is_series(&self, settings: &Value) -> bool {
        settings["media_type"] == "STORIES"
    }

    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        let invalid = |setting: &str, code: &str, message: String| {
            Issue::of_setting(Severity::Error, code, ADAPTER.id, setting, message)
        };
        if let Some(message) = settings.uncoverable(main.media) {
            return vec![invalid("cover", "settings_conflict", message)];
        }
        if settings.media_type == Some(MediaType::Stories) {
            return story_issues(containers, &settings);
        }
        let shown = graph::shown(main.media, settings.cover());
        let kind = match PostKind::choose(&shown, settings.media_type) {
            Err((code, message)) => return vec![Issue::of_main(Severity::Error, code, "media", message)],
            Ok(kind) => kind,
        };
        let mut issues = caption_issues(main.text);
        if settings.is_silent() && containers.len() > 1 {
            let message = "instagram takes no first comment below a post without comments".to_owned();
            issues.push(invalid("comment_enabled", "settings_conflict", message));
        }
        let late = settings.thumb_offset.zip(main.media.iter().find_map(|medium| medium.duration));
        if let Some((offset, duration)) = late
            && kind == PostKind::Reel
            && u128::from(offset) >= duration.as_millis()
        {
            let message = format!(
                "instagram takes thumb_offset within the video of {} ms, and it is {offset}",
                duration.as_millis()
            );
            issues.push(invalid("thumb_offset", "setting_invalid", message));
        }
        let tall = shown.iter().find(|media| shape(media).is_some_and(|shape| shape < USUAL_SHAPE));
        if let (PostKind::Feed, Some(tall)) = (kind, tall) {
            let message = format!(
                "instagram may refuse an image that is taller than 3:4 in the feed, and {} is {}x{}{}",
                tall.filename,
                tall.width.unwrap_or(0),
                tall.height.unwrap_or(0),
                remedy(tall)
            );
            issues.push(Issue::of_main(Severity::Warning, "media_aspect_ratio", "media", message));
        }
        let cover = graph::cover(main.media, settings.cover()).filter(|_| kind == PostKind::Reel);
        if cover.is_some_and(has_alt_text) {
            let message = "instagram shows no alt text on a cover".to_owned();
            issues.push(Issue::of_main(Severity::Warning, "alt_text_not_supported", "media", message));
        }
        issues.extend(
            untaggable(&shown, &settings).map(|message| invalid("user_tags", "setting_invalid", message)),
        );
        if settings.user_tags.iter().flatten().any(|tag| tag.x.or(tag.y).is_some() && is_video(&shown, tag)) {
            let message = "instagram tags an account in a video without a position".to_owned();
            let (severity, code) = (Severity::Warning, "setting_not_used");
            issues.push(Issue::of_setting(severity, code, ADAPTER.id, "user_tags", message));
        }
        issues
    }

    fn scopes(&self, settings: &Value) -> Option<(&'static str, &'static [ScopeSet])> {
        let settings: Settings = schema::read(settings).ok()?;
        settings.is_silent().then_some(("comment_enabled", &[COMMENT_SCOPES]))
    }

    fn is_definite(&self, reply: &Reply) -> bool {
        graph::is_definite(reply)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        graph::classify(reply)
    }

    async fn exchange(&self, cx: &Session<'_>, code: &Code) -> Result<Grant> {
        graph::exchange(cx, code, TOKEN, (LONG_LIVED_TOKEN, "ig_exchange_token")).await
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let fields = "user_id,username,account_type,name,profile_picture_url";
        let answer: Value = graph::read(cx, &format!("{API}/me"), fields).await?;
        // The documentation wraps it in a list, the service does not.
        let me = answer.pointer("/data/0").unwrap_or(&answer);
        let me: User = serde_json::from_value(me.clone())
            .map_err(|error| Failure::upstream(502, format!("the profile can't be read: {error}")))?;
        Ok(vec![Identity {
            profile: AccountProfile {
                display_name: me.name.filter(|name| !name.is_empty()).unwrap_or_else(|| me.username.clone()),
                profile_url: Some(format!("https://www.instagram.com/{}/", me.username)),
                network_unique_id: me.user_id,
                username: me.username,
                account_type: match me.account_type.as_deref() {
                    Some("MEDIA_CREATOR") => "creator".to_owned(),
                    _ => "business".to_owned(),
                },
                profile_image_url: me.profile_picture_url,
            },
            grant: None,
        }])
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        graph::read::<Value>(cx, &format!("{API}/me"), "user_id").await.map(drop)
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        graph::renew(cx, REFRESH, "ig_refresh_token").await
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        if post.reply_to.is_some() {
            return match post.media.is_empty() {
                true => Ok(Prepared::Ready(at)),
                false => Err(Failure::rejected(400, "Instagram takes no media in a comment")),
            };
        }
        PostKind::of(post, &post.settings()?)?;
        graph::prepare(self, cx, post, at).await
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        match &post.reply_to {
            None => graph::commit(self, cx, post, at).await,
            Some(reply) => {
                let made: Made = cx
                    .post(format!("{API}/{}/comments", reply.parent))
                    .form(&[("message", &post.text)])
                    .send()
                    .await?;
                Ok(Committed::Live(made.id))
            }
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        match &post.reply_to {
            None => graph::locate(self, cx, post, at).await,
            Some(reply) => listing::locate(&Comments { cx, parent: &reply.parent }, post).await,
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        let asked: Result<Post> = graph::read(cx, &format!("{API}/{id}"), "id,permalink").await;
        match asked {
            Ok(Post { permalink: Some(address), .. }) => Ok(cx.transport.rewrite_url(&address)),
            Ok(_) => Err(Failure::upstream(502, format!("post {id} has no address"))),
            // A comment has no URL, but the post's URL can show it.
            Err(failure) if failure.code == domain::ErrorCode::Rejected(400) => {
                let comment: Comment = graph::read(cx, &format!("{API}/{id}"), "id,media{permalink}").await?;
                let address = comment.media.and_then(|media| media.permalink).ok_or(failure)?;
                Ok(cx.transport.rewrite_url(&format!("{}/c/{id}/", address.trim_end_matches('/'))))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Returns an error message if an account is tagged in a medium that a carousel does not have, or in an image without
/// a position: "the object must contain all three properties". Videos have none, and a story's is optional.
/// <https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/ig-user/media> (2026-11)
fn untaggable(media: &[&Media], settings: &Settings) -> Option<String> {
    settings.user_tags.iter().flatten().find_map(|tag| {
        let name = &tag.username.0;
        let index = tag.media_index.filter(|_| media.len() > 1).unwrap_or(0);
        let Some(medium) = media.get(index) else {
            return Some(format!(
                "instagram tags accounts in the media of a post, and {name} in medium {index} of {}",
                media.len()
            ));
        };
        let needs_position = medium.kind == MediaKind::Image;
        let lacks_position = tag.x.is_none() || tag.y.is_none();
        (needs_position && lacks_position).then(|| {
            format!("instagram tags an account in an image at x and y, and {name} has no such position")
        })
    })
}

/// Returns true if an account is tagged in a video.
fn is_video(media: &[&Media], tag: &UserTag) -> bool {
    let index = tag.media_index.filter(|_| media.len() > 1).unwrap_or(0);
    media.get(index).is_some_and(|medium| medium.kind == MediaKind::Video)
}

/// Returns the tags in a medium, as it takes them.
fn tags_in(medium: &Media, tags: impl Iterator<Item = UserTag>) -> Option<Vec<UserTag>> {
    let is_still = medium.kind == MediaKind::Image;
    Some(tags.map(|tag| if is_still { tag } else { UserTag { x: None, y: None, ..tag } }).collect())
}

/// Kind of post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostKind {
    Feed,
    Reel,
    Story,
}

/// Width over height of an image.
fn shape(media: &Media) -> Option<f64> {
    let height = media.height.filter(|height| *height > 0 && media.kind == MediaKind::Image)?;
    Some(f64::from(media.width?) / f64::from(height))
}

/// Returns the end of a message about the shape of a picture that the setting `fit` would change.
fn remedy(media: &Media) -> &'static str {
    // With the setting, its shape would not be told.
    if fit::is_readable(media) { fit::REMEDY } else { "" }
}

impl PostKind {
    /// Returns the kind from the setting, else from the media.
    fn place(media: &[&Media], wanted: Option<MediaType>) -> Self {
        match (wanted, media) {
            (Some(MediaType::Stories), _) => Self::Story,
            (Some(MediaType::Reels), _) => Self::Reel,
            // Since November 2023, every single video is a reel.
            (_, [one]) if one.kind == MediaKind::Video => Self::Reel,
            _ => Self::Feed,
        }
    }

    /// Returns the kind from the setting, else from the media; or an issue code and a message.
    fn choose(media: &[&Media], wanted: Option<MediaType>) -> Result<Self, (&'static str, String)> {
        let is_video = media.first().is_some_and(|media| media.kind == MediaKind::Video);
        let count = media.len();
        let place = Self::place(media, wanted);
        let is_odd = |media: &&&Media| shape(media).is_some_and(|shape| !FEED_SHAPES.contains(&shape));
        match place {
            _ if count == 0 => {
                Err(("media_required", "instagram needs media, and there are none".to_owned()))
            }
            Self::Feed if count > MAX_ITEMS => {
                let message =
                    format!("instagram takes {MAX_ITEMS} media in a carousel, and there are {count}");
                Err(("media_too_many", message))
            }
            Self::Feed => match media.iter().find(is_odd) {
                None => Ok(place),
                Some(odd) => {
                    let (width, height) = (odd.width.unwrap_or(0), odd.height.unwrap_or(0));
                    let message = format!(
                        "instagram takes an image with a width over height of 0.56 to 1.91 in the feed, and {} is {width}x{height}{}",
                        odd.filename,
                        remedy(odd)
                    );
                    Err(("media_aspect_ratio", message))
                }
            },
            Self::Reel if count != 1 => Err((
                "media_too_many",
                format!("instagram takes one video as a reel, and there are {count} media"),
            )),
            Self::Reel if !is_video => Err((
                "media_kind_not_supported",
                "instagram takes a video as a reel, and this is an image".to_owned(),
            )),
            Self::Story if count != 1 => Err((
                "media_too_many",
                format!(
                    "instagram takes one medium as a story, and there are {count}: give each a container of its own"
                ),
            )),
            Self::Story if is_video && media[0].size_bytes > MAX_STORY_BYTES => {
                let (most, has) = (MAX_STORY_BYTES / 1_000_000, media[0].size_bytes);
                Err((
                    "media_too_large",
                    format!("instagram takes a story of {most} MB, and this has {has} bytes"),
                ))
            }
            Self::Story => match media[0].duration.filter(|duration| is_video && *duration > MAX_STORY) {
                Some(duration) => {
                    let (most, has) = (MAX_STORY.as_secs(), duration.as_secs_f64());
                    Err((
                        "media_duration",
                        format!("instagram takes a story of {most} seconds, and this has {has}"),
                    ))
                }
                None => Ok(place),
            },
            Self::Reel => Ok(place),
        }
    }

    fn of(post: &PublishRequest, settings: &Settings) -> Result<Self> {
        if let Some(message) = settings.uncoverable(&post.media) {
            return Err(Failure::rejected(400, message));
        }
        let chosen = Self::choose(&graph::shown(&post.media, settings.cover()), settings.media_type);
        chosen.map_err(|(_, message)| Failure::rejected(400, message))
    }

    /// Returns the media product type in lists.
    fn product(self) -> &'static str {
        match self {
            Self::Feed => "FEED",
            Self::Reel => "REELS",
            Self::Story => "STORY",
        }
    }
}

#[async_trait]
impl Containers for Instagram {
    const API: &'static str = API;
    const CREATE: &'static str = "media";
    const PUBLISH: &'static str = "media_publish";
    const STATUS: &'static str = "id,status_code,status";

    fn is_carousel(&self, post: &PublishRequest) -> Result<bool> {
        Ok(graph::shown(&post.media, post.settings::<Settings>()?.cover()).len() > 1)
    }

    async fn child_fields(&self, cx: &Session<'_>, post: &PublishRequest, index: usize) -> Result<Fields> {
        let media = &post.media[index];
        let mut fields = medium(cx, media).await?;
        match media.kind {
            MediaKind::Video => fields.push(("media_type", "VIDEO".to_owned())),
            _ => fields.extend(alt_text(media)),
        }
        let tags = post.settings::<Settings>()?.user_tags.unwrap_or_default();
        let tags = tags.into_iter().filter(|tag| tag.media_index.unwrap_or(0) == index);
        graph::set(&mut fields, "user_tags", &tags_in(media, tags));
        fields.push(("is_carousel_item", "true".to_owned()));
        Ok(fields)
    }

    async fn parent_fields(
        &self,
        cx: &Session<'_>,
        post: &PublishRequest,
        items: &[String],
    ) -> Result<Fields> {
        let settings: Settings = post.settings()?;
        let place = PostKind::of(post, &settings)?;
        let shown = graph::shown(&post.media, settings.cover());
        let mut fields = match shown.as_slice() {
            [one] => medium(cx, one).await?,
            _ => vec![("media_type", "CAROUSEL".to_owned()), ("children", items.join(","))],
        };
        if place != PostKind::Story && !post.text.is_empty() {
            fields.push(("caption", post.text.clone()));
        }
        match place {
            PostKind::Feed => {
                fields.extend(shown.first().filter(|_| shown.len() == 1).and_then(|one| alt_text(one)))
            }
            PostKind::Reel => {
                // Without it the reel would not be shown in the feed.
                let is_shared = settings.share_to_feed.unwrap_or(true);
                fields.push(("media_type", "REELS".to_owned()));
                fields.push(("share_to_feed", is_shared.to_string()));
                match graph::cover(&post.media, settings.cover()) {
                    Some(cover) => fields.push(("cover_url", cx.media.address(cover).await?.into())),
                    None => graph::set(&mut fields, "cover_url", &settings.cover_url),
                }
                graph::set(&mut fields, "thumb_offset", &settings.thumb_offset);
                graph::set(&mut fields, "audio_name", &settings.audio_name);
                graph::set(&mut fields, "trial_params", &settings.trial_params);
            }
            PostKind::Story => fields.push(("media_type", "STORIES".to_owned())),
        }
        if place != PostKind::Story {
            graph::set(&mut fields, "collaborators", &settings.collaborators);
            graph::set(&mut fields, "location_id", &settings.location_id);
        }
        // People are tagged in the items of a carousel, not in the carousel, and in the stories that their tags name.
        if let [one] = shown.as_slice() {
            let is_here = |tag: &UserTag| {
                place != PostKind::Story || tag.media_index.unwrap_or(0) == usize::from(post.position)
            };
            let tags = settings.user_tags.into_iter().flatten().filter(is_here);
            graph::set(&mut fields, "user_tags", &tags_in(one, tags));
        }
        if settings.is_ai_generated == Some(true) {
            fields.push(("is_ai_generated", "true".to_owned()));
        }
        Ok(fields)
    }

    fn status(&self, body: &Value) -> Status {
        match body["status_code"].as_str() {
            Some("FINISHED") => Status::Finished,
            Some("PUBLISHED") => Status::Published,
            Some("EXPIRED") => Status::Expired,
            Some("ERROR") => {
                let reason = body["status"].as_str().unwrap_or("it does not say why");
                let message = format!("Instagram could not process the media: {reason}");
                Status::Failed(match graph::subcodes(reason).any(graph::is_transient) {
                    true => Failure::upstream(502, message).certain(),
                    false => Failure::rejected(400, message),
                })
            }
            _ => Status::Processing,
        }
    }

    async fn find(&self, cx: &Session<'_>, post: &PublishRequest) -> Result<Located> {
        listing::locate(&Posts { cx, kind: PostKind::of(post, &post.settings()?)? }, post).await
    }

    fn has_parts(&self, post: &PublishRequest) -> Result<bool> {
        Ok(post.settings::<Settings>()?.is_silent())
    }

    /// Turns comments off, which no container can say: "comment_enabled" is a parameter of the published media.
    /// <https://developers.facebook.com/documentation/instagram-platform/reference/instagram-media> (2026-06-22)
    async fn complete(&self, cx: &Session<'_>, post: &PublishRequest, id: &str) -> Result<()> {
        if !self.has_parts(post)? {
            return Ok(());
        }
        let call = cx.post(format!("{API}/{id}")).form(&[("comment_enabled", "false")]);
        let answer = call.send_ok().await;
        // Nobody can act on an account whose grant was revoked, and the post is live.
        let is_revoked = answer.as_ref().is_err_and(Failure::is_revoked);
        let is_last = is_revoked || (cx.now)() - post.begun() > graph::PARTS_TIMEOUT;
        let advice = "; it takes the permission instagram_business_manage_comments";
        cx.note_refusal_of("post", answer, "comments turned off", advice, is_last).await
    }
}

/// The account's posts, or its stories in no documented order.
struct Posts<'a> {
    cx: &'a Session<'a>,
    kind: PostKind,
}

#[async_trait]
impl Listing for Posts<'_> {
    type Item = Post;
    const IS_NEWEST_FIRST: bool = false;

    async fn page(&self, since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Post>> {
        match self.kind {
            PostKind::Story => list(self.cx, "stories", None, cursor).await,
            PostKind::Feed | PostKind::Reel => list(self.cx, "media", Some(since), cursor).await,
        }
    }

    fn id(other: &Post) -> &str {
        &other.id
    }

    fn published_at(other: &Post) -> Option<DateTime<Utc>> {
        other.timestamp
    }

    fn matches(&self, other: &Post, post: &PublishRequest) -> bool {
        other.matches(post, self.kind)
    }
}

/// The comments below a post, in no documented order.
struct Comments<'a> {
    cx: &'a Session<'a>,
    parent: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Comment;
    const IS_NEWEST_FIRST: bool = false;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Comment>> {
        let call = self
            .cx
            .get(format!("{API}/{}/comments", self.parent))
            .query(&[("fields", "id,text,timestamp,username,from"), ("limit", "50")]);
        graph::page(call, cursor).await
    }

    fn id(comment: &Comment) -> &str {
        &comment.id
    }

    fn published_at(comment: &Comment) -> Option<DateTime<Utc>> {
        comment.timestamp
    }

    fn matches(&self, comment: &Comment, post: &PublishRequest) -> bool {
        comment.is_by(self.cx.account)
            && collapse_whitespace(comment.text.as_deref().unwrap_or_default())
                == collapse_whitespace(&post.text)
    }
}

#[async_trait]
impl Analytics for Instagram {
    /// A comment has no figures of its own.
    fn covers_replies(&self) -> bool {
        false
    }

    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let fields = "id,media_type,media_product_type,like_count,comments_count";
        let post: Post = graph::read(cx, &format!("{API}/{id}"), fields).await?;
        let is_story = post.media_product_type.as_deref() == Some("STORY");
        // A metric that the kind of post does not have fails the whole call.
        let names =
            if is_story { "views,reach,shares,replies" } else { "views,reach,likes,comments,saved,shares" };
        let asked: Result<Insights> =
            cx.get(format!("{API}/{id}/insights")).query(&[("metric", names)]).send().await;
        let insights = match asked {
            Ok(insights) => insights,
            // Too few views, or the post is too old: only its counters are available.
            Err(failure) if failure.code.is_permanent() => {
                return Ok(Metrics {
                    likes: post.like_count.unwrap_or(0),
                    comments: post.comments_count.unwrap_or(0),
                    ..Metrics::default()
                });
            }
            Err(failure) => return Err(failure),
        };
        let views = insights.get("views");
        Ok(Metrics {
            impressions: views,
            reach: insights.get("reach"),
            likes: insights.get("likes"),
            comments: insights.get(if is_story { "replies" } else { "comments" }),
            shares: insights.get("shares"),
            saves: insights.get("saved"),
            clicks: 0,
            video_views: if post.media_type.as_deref() == Some("VIDEO") { views } else { 0 },
        })
    }
}

#[async_trait]
impl Usage for Instagram {
    async fn usage(&self, cx: &Session<'_>) -> Result<Vec<LimitUsage>> {
        let address = format!("{API}/{}/content_publishing_limit", cx.account.network_unique_id);
        graph::usage(cx, &address, &[("posts", "")]).await
    }
}

#[async_trait]
impl History for Instagram {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        Ok(list(cx, "media", None, cursor).await?.map(|post| RemotePost {
            url: post
                .permalink
                .as_deref()
                .map(|address| cx.transport.rewrite_url(address))
                .unwrap_or_default(),
            media: post.media(),
            metrics: Metrics {
                likes: post.like_count.unwrap_or(0),
                comments: post.comments_count.unwrap_or(0),
                ..Metrics::default()
            },
            text: post.caption.unwrap_or_default(),
            published_at: post.timestamp.unwrap_or_default(),
            id: post.id,
        }))
    }
}

/// Returns the fields of a container of one medium, without its kind.
async fn medium(cx: &Session<'_>, media: &Media) -> Result<Fields> {
    let place = match media.kind {
        MediaKind::Image => "image_url",
        MediaKind::Video => "video_url",
        other => return Err(Failure::rejected(415, format!("Instagram takes no media of kind {other}"))),
    };
    Ok(vec![(place, cx.media.address(media).await?.into())])
}

/// Returns the field with the alt text of an image. Reels and stories have none.
fn alt_text(media: &Media) -> Option<(&'static str, String)> {
    let alt = media.alt_text.as_ref().filter(|alt| media.kind == MediaKind::Image && !alt.is_empty());
    alt.map(|alt| ("alt_text", alt.clone()))
}

/// Returns one page of the account's posts or stories, newest first.
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

#[derive(Deserialize)]
struct User {
    #[serde(deserialize_with = "required::id")]
    user_id: String,
    username: String,
    name: Option<String>,
    account_type: Option<String>,
    profile_picture_url: Option<String>,
}

#[derive(Deserialize)]
struct Post {
    #[serde(deserialize_with = "required::id")]
    id: String,
    caption: Option<String>,
    media_type: Option<String>,
    media_product_type: Option<String>,
    media_url: Option<String>,
    permalink: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    timestamp: Option<DateTime<Utc>>,
    like_count: Option<u64>,
    comments_count: Option<u64>,
    children: Option<Listed<Child>>,
}

#[derive(Deserialize)]
struct Child {
    media_url: Option<String>,
}

impl Post {
    fn media(&self) -> Vec<String> {
        let children = self.children.iter().flat_map(|children| &children.data);
        let items: Vec<String> = children.filter_map(|child| child.media_url.clone()).collect();
        if items.is_empty() { self.media_url.iter().cloned().collect() } else { items }
    }

    /// Returns true if it has the content of `post`. A story has no caption to compare.
    fn matches(&self, post: &PublishRequest, place: PostKind) -> bool {
        let caption = self.caption.as_deref().unwrap_or_default();
        let media_type = match (place, post.media.as_slice()) {
            // With its cover, a reel has two media.
            (PostKind::Reel, _) => "VIDEO",
            (_, [one]) if one.kind == MediaKind::Video => "VIDEO",
            (_, [_]) => "IMAGE",
            _ => "CAROUSEL_ALBUM",
        };
        self.media_product_type.as_deref().is_none_or(|is| is == place.product())
            && self.media_type.as_deref().is_none_or(|is| is == media_type)
            && (place == PostKind::Story || collapse_whitespace(caption) == collapse_whitespace(&post.text))
    }
}

#[derive(Deserialize)]
struct Comment {
    #[serde(deserialize_with = "required::id")]
    id: String,
    text: Option<String>,
    #[serde(default, deserialize_with = "graph::time")]
    timestamp: Option<DateTime<Utc>>,
    username: Option<String>,
    from: Option<Author>,
    media: Option<Post>,
}

#[derive(Deserialize)]
struct Author {
    id: Option<String>,
    username: Option<String>,
}

impl Comment {
    /// Returns true if the account wrote it, or when the list names no author.
    fn is_by(&self, account: &Account) -> bool {
        let from = self.from.as_ref();
        let name = self.username.as_deref().or(from.and_then(|from| from.username.as_deref()));
        match (from.and_then(|from| from.id.as_deref()), name) {
            (Some(id), _) if id == account.network_unique_id => true,
            (_, Some(name)) => name.eq_ignore_ascii_case(&account.username),
            (Some(_), None) => false,
            (None, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{authorization, check};

    fn media(kind: &MediaKind) -> Media {
        Media {
            id: uuid::Uuid::nil(),
            kind: *kind,
            mime: String::new(),
            filename: String::new(),
            size_bytes: 1,
            width: None,
            height: None,
            frames: None,
            duration: Some(Duration::from_secs(61)),
            alt_text: None,
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn the_post_type_follows_from_the_media() {
        use MediaKind::{Image, Video};
        let place = |kinds: &[MediaKind], wanted: Option<MediaType>| {
            let media: Vec<_> = kinds.iter().map(media).collect();
            PostKind::choose(&media.iter().collect::<Vec<_>>(), wanted).map_err(|(code, _)| code)
        };
        assert_eq!(place(&[Image], None), Ok(PostKind::Feed));
        assert_eq!(place(&[Video], None), Ok(PostKind::Reel));
        assert_eq!(place(&[Video], Some(MediaType::Feed)), Ok(PostKind::Reel));
        assert_eq!(place(&[Image, Video], None), Ok(PostKind::Feed));
        assert_eq!(place(&[Image], Some(MediaType::Stories)), Ok(PostKind::Story));
        for (kinds, wanted, code) in [
            (&[Image][..], Some(MediaType::Reels), "media_kind_not_supported"),
            (&[Image, Image], Some(MediaType::Stories), "media_too_many"),
            (&[Video], Some(MediaType::Stories), "media_duration"),
            (&[], None, "media_required"),
            (&[Image; 11], None, "media_too_many"),
        ] {
            assert_eq!(place(kinds, wanted), Err(code), "{kinds:?}");
        }
        let duration = Some(Duration::from_secs(60));
        let large = Media { size_bytes: MAX_STORY_BYTES + 1, duration, ..media(&Video) };
        let story = PostKind::choose(&[&large], Some(MediaType::Stories)).map_err(|(code, _)| code);
        assert_eq!(story, Err("media_too_large"));
    }

    #[test]
    fn another_login_is_forced_only_on_request() {
        let address = |is_forced| {
            let asked = authorization::Authorization {
                client_id: "app",
                redirect_uri: "https://example.com",
                scopes: &[],
                parameters: &std::collections::BTreeMap::new(),
                state: "state",
                verifier: "verifier",
                is_forced,
            };
            authorization::address(&ADAPTER, &asked).unwrap()
        };
        assert!(address(true).contains("force_reauth=true"));
        assert!(!address(false).contains("force_reauth"));
    }

    #[test]
    fn a_story_is_checked_for_text_that_is_not_shown() {
        let mut image = Media { alt_text: Some("described".into()), ..media(&MediaKind::Image) };
        (image.mime, image.filename, image.duration) = ("image/jpeg".into(), "a.jpg".into(), None);
        let codes = |settings: Value| {
            let issues = check::check(
                &ADAPTER,
                &[ContainerContent { text: "a", media: std::slice::from_ref(&image) }],
                &settings,
            );
            issues.into_iter().map(|issue| (issue.severity, issue.code)).collect::<Vec<_>>()
        };
        assert_eq!(codes(json!({})), []);
        let warning = |code: &str| (Severity::Warning, code.to_owned());
        let expected = [warning("text_not_shown"), warning("alt_text_not_supported")];
        assert_eq!(codes(json!({ "media_type": "STORIES" })), expected);
    }

    #[test]
    fn an_account_is_tagged_as_its_medium_takes_it() {
        let of = |media: &[MediaKind], tag: Value| {
            let media: Vec<_> = media.iter().map(self::media).collect();
            let settings = schema::read(&json!({ "user_tags": [tag] })).unwrap();
            untaggable(&media.iter().collect::<Vec<_>>(), &settings).is_none()
        };
        let (image, video) = (MediaKind::Image, MediaKind::Video);
        let bare = |index: Value| json!({ "username": "bob", "media_index": index });
        let placed = |index: Value| json!({ "username": "bob", "x": 0.5, "y": 0, "media_index": index });
        for (media, tag, is_fine) in [
            (&[image][..], bare(json!(null)), false),
            (&[image], placed(json!(null)), true),
            (&[image], json!({ "username": "bob", "x": 0.5 }), false),
            (&[image, video], placed(json!(0)), true),
            (&[image, video], bare(json!(0)), false),
            (&[image, video], bare(json!(1)), true),
            (&[image, video], placed(json!(2)), false),
            (&[video], bare(json!(null)), true),
        ] {
            assert_eq!(of(media, tag.clone()), is_fine, "{media:?} {tag}");
        }
        let tag = UserTag { username: Bare("bob".into()), x: Some(0.5), y: Some(0.5), media_index: None };
        let sent = tags_in(&media(&video), std::iter::once(tag));
        assert_eq!(json!(sent), json!([{ "username": "bob" }]));
    }

    #[test]
    fn a_container_fails_for_a_time_or_for_good_by_its_number() {
        let failed =
            |reason: &str| match Instagram.status(&json!({ "status_code": "ERROR", "status": reason })) {
                Status::Failed(failure) => failure,
                other => panic!("{other:?}"),
            };
        for (number, expected) in [
            (2_207_052, "upstream_502"),
            (2_207_003, "upstream_502"),
            (2_207_077, "upstream_502"),
            (2_207_082, "upstream_502"),
            (2_207_026, "rejected_400"),
            (2_207_009, "rejected_400"),
        ] {
            let failure = failed(&format!("Error: Media upload has failed with error code {number}"));
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (expected, false),
                "{number}"
            );
        }
        assert_eq!(failed("Error").code, domain::ErrorCode::Rejected(400));
    }

    #[test]
    fn every_documented_error_has_its_error_code() {
        // <https://developers.facebook.com/docs/instagram-platform/instagram-graph-api/reference/error-codes>
        for (code, subcode, expected) in [
            (-2, 2_207_003, "upstream_502"),
            (-2, 2_207_020, "upstream_503"),
            (-1, 2_207_001, "upstream_500"),
            (1, 2_207_057, "rejected_400"),
            (4, 2_207_051, "rejected_403"),
            (9, 2_207_042, "rate_limited"),
            (24, 2_207_006, "upstream_503"),
            (24, 2_207_008, "upstream_503"),
            (25, 2_207_050, "rejected_400"),
            (100, 2_207_023, "rejected_400"),
            (100, 2_207_028, "rejected_400"),
            (100, 2_207_040, "rejected_400"),
            (352, 2_207_026, "rejected_400"),
            (9004, 2_207_052, "upstream_502"),
            (9007, 2_207_027, "upstream_503"),
            (36_000, 2_207_004, "rejected_400"),
            (36_001, 2_207_005, "rejected_400"),
            (36_003, 2_207_009, "rejected_400"),
            (36_004, 2_207_010, "rejected_400"),
        ] {
            let body = json!({ "error": { "message": "m", "code": code, "error_subcode": subcode } });
            let reply = Reply::of(400, &[], &body.to_string());
            let failure = reply.into_result(&ADAPTER).unwrap_err();
            assert_eq!(failure.code.to_string(), expected, "{code} {subcode}");
        }
    }
}
