//! LinkedIn, over its versioned REST API:
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>.
//!
//! A login covers the member and the pages that the member may post for; a page is a separate account with
//! the same grant. Only apps approved by LinkedIn can list a member's posts. Other apps rely on LinkedIn's
//! rejection of duplicates, which contains the existing post's id: after a lost response the call is
//! repeated, and the existing post is ours if it is no older than the first call. Texts are "little text",
//! in which unescaped reserved characters truncate a post.

mod document;
mod identities;
mod media;
mod mentions;
mod metrics;
mod text;

use self::{
    identities::{member, organizations, page},
    media::{Ticket, Uploads},
    text::{little, message, plain},
};
use crate::{
    Adapter, AltTextLimit, Auth, Call, Checkpoint, ClientAuth, CommentLimits, Committed, Deletion, Edit,
    Editing, Feature, Forms, History, Idempotency, Identity, Limits, Located, Media, MediaKind, MediaLimit,
    OAuth2, Options, Page, Prepared, Preset, PublishRequest, Publisher, Publishing, RemotePost, Replies,
    Reply, Result, SelectOption, Session, Source, TextLimit,
    check::{self, ContainerContent, Issue, Severity},
    classify,
    listing::{self, Listing},
    look_up::{self, Findings, Subject},
    oauth, required, schema,
    text::collapse_whitespace,
    upload::{self, Uploaded},
    versions::{self, Month},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure, Metrics};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{sync::LazyLock, time::Duration};

/// LinkedIn. <https://learn.microsoft.com/en-us/linkedin/marketing/>
struct LinkedIn;

const REST: &str = "https://api.linkedin.com/rest";
const V2: &str = "https://api.linkedin.com/v2";
const REVOKE: &str = "https://www.linkedin.com/oauth/v2/revoke";

/// Type of account of a page.
const PAGE: &str = "organization";
/// Time between two polls of a medium.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Time within which a new post can be commented on. Until then its comments are answered with 404.
const ACTIVITY_DELAY: TimeDelta = TimeDelta::minutes(10);
/// Wait before the next call when LinkedIn refuses the version, which only the operator can change.
const VERSION_RETRY: Duration = Duration::from_secs(3600);
const IMAGES: MediaLimit = MediaLimit {
    kind: MediaKind::Image,
    count: 0..=20,
    mimes: &["image/jpeg", "image/png", "image/gif"],
    max_bytes: 8 << 20,
    // "less than 36152320 pixels": learn.microsoft.com/linkedin/marketing/community-management/shares/images-api
    max_pixels: Some(36_152_319),
    ..MediaLimit::ANY
};
const VIDEO: MediaLimit = MediaLimit {
    kind: MediaKind::Video,
    count: 0..=1,
    mimes: &["video/mp4"],
    max_bytes: 500 << 20,
    duration: Some(Duration::from_secs(3)..=Duration::from_secs(30 * 60)),
    max_pixels: None,
    ..IMAGES
};
const DOCUMENT: MediaLimit = MediaLimit {
    kind: MediaKind::Document,
    count: 0..=1,
    mimes: &[
        "application/pdf",
        "application/msword",
        "application/vnd.ms-powerpoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ],
    max_bytes: document::MAX_BYTES,
    ..IMAGES
};

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "linkedin",
    name: "LinkedIn",
    limits: Limits {
        text: TextLimit::characters(3000),
        media: &[
            IMAGES,
            MediaLimit { kind: MediaKind::Gif, count: 0..=1, mimes: &["image/gif"], ..IMAGES },
            VIDEO,
            DOCUMENT,
        ],
        alt_text: Some(AltTextLimit { max: 4086, kinds: &[MediaKind::Image, MediaKind::Gif] }),
        replies: Replies::Thread,
        reply_settings: &["organization_id"],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
        idempotency: Idempotency::MayDuplicate { read_lag: Duration::from_secs(15) },
        comment: Some(CommentLimits {
            text: TextLimit::characters(1250),
            media: &[MediaLimit { count: 0..=1, ..IMAGES }],
            // <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/comments-api>
            has_alt_text: false,
        }),
        sources: &[Source {
            url: "https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api",
            checked: "2026-11-21",
        }],
        ..Limits::DEFAULT
    },
    auth: Auth::OAuth2(OAuth2 {
        authorize: "https://www.linkedin.com/oauth/v2/authorization",
        token: "https://www.linkedin.com/oauth/v2/accessToken",
        // The self-service products "Share on LinkedIn" and "Sign In with LinkedIn using OpenID Connect". LinkedIn
        // refuses a whole login for one scope that the app does not have.
        scopes: &["openid", "profile", "w_member_social"],
        features: &[
            (
                Feature::Publishing,
                &[
                    &["openid", "profile", "w_member_social"],
                    &["r_basicprofile", "w_member_social"],
                    &["r_basicprofile", "w_organization_social", "rw_organization_admin"],
                ],
            ),
            // Apps of newer products have scopes for comments, and others comment with those for posts. The granted
            // scopes do not show which an app is, so either will do.
            (
                Feature::Replies,
                &[
                    &["w_member_social"],
                    &["w_organization_social"],
                    &["w_member_social_feed"],
                    &["w_organization_social_feed"],
                ],
            ),
            // Of the others, with the first one alone likes and comments.
            (
                Feature::Analytics,
                &[&["w_member_social"], &["rw_organization_admin"], &["r_member_postAnalytics"]],
            ),
            (Feature::Import, &[&["r_organization_social"], &["r_member_social"]]),
        ],
        presets: &[
            Preset { name: "self_service", scopes: &["openid", "profile", "w_member_social"] },
            // LinkedIn allows no other product beside this one, so that there is no `openid`.
            Preset {
                name: "community_management",
                scopes: &[
                    "r_basicprofile",
                    "w_member_social",
                    "w_organization_social",
                    "r_organization_social",
                    "rw_organization_admin",
                ],
            },
            // The same for apps with scopes of their own for comments. Others would be refused for asking for them.
            Preset {
                name: "community_management_feed",
                scopes: &[
                    "r_basicprofile",
                    "w_member_social",
                    "w_member_social_feed",
                    "w_organization_social",
                    "w_organization_social_feed",
                    "r_organization_social",
                    "r_organization_social_feed",
                    "rw_organization_admin",
                ],
            },
            Preset {
                name: "advertising",
                scopes: &[
                    "openid",
                    "profile",
                    "r_basicprofile",
                    "w_member_social",
                    "w_organization_social",
                    "r_organization_social",
                    "rw_organization_admin",
                ],
            },
        ],
        client_auth: ClientAuth::Body,
        revoked_errors: &["invalid_grant", "invalid_request"],
        ..OAuth2::STANDARD
    }),
    settings: schema::of::<Settings>,
    publisher: &LinkedIn,
    analytics: Some(&LinkedIn),
    history: Some(&LinkedIn),
    deletion: Some(&LinkedIn),
    editing: Ok(&LinkedIn),
    options: Some(&LinkedIn),
    caps: &[],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Who can see the post. A page's posts are always public: anything else is refused for them.
    #[schemars(extend("default" = "PUBLIC", "isPromise" = ["CONNECTIONS", "LOGGED_IN"]))]
    visibility: Option<Visibility>,
    /// The page to post for, instead of the member.
    #[schemars(regex(pattern = "^[0-9]+$"))]
    organization_id: Option<String>,
    /// Prevents others from sharing the post.
    #[serde(rename = "isReshareDisabledByAuthor")]
    is_reshare_disabled_by_author: Option<bool>,
    /// Title of the video or document. Defaults to the file name for a document.
    #[schemars(length(min = 1, max = 400), extend("kinds" = ["video", "document"]))]
    title: Option<String>,
    /// A link with a card. LinkedIn reads nothing from the page; the post's image becomes the card's.
    #[schemars(extend("excludes" = ["poll", "reshare"]))]
    link: Option<Link>,
    /// A poll. Lasts three days by default.
    #[schemars(extend("excludes" = ["media", "link", "reshare"]))]
    poll: Option<Poll>,
    /// Publishes the pictures as the pages of a PDF, which LinkedIn shows as a carousel. A page shows no alt text.
    #[schemars(extend("kinds" = ["image", "images"], "excludes" = ["link", "poll", "reshare"]))]
    document: Option<PictureDocument>,
    /// The post to share with this text.
    #[schemars(
        regex(pattern = "^urn:li:(share|ugcPost):[0-9]+$"),
        extend("excludes" = ["media", "poll", "link"])
    )]
    reshare: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Visibility {
    Public,
    Connections,
    LoggedIn,
}

#[derive(Deserialize, JsonSchema)]
struct Link {
    #[schemars(length(max = 8192), extend("format" = "uri"))]
    url: String,
    #[schemars(length(min = 1, max = 400))]
    title: String,
    #[schemars(length(max = 4086))]
    description: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct PictureDocument {
    #[schemars(length(min = 1, max = 400))]
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Poll {
    #[schemars(length(min = 1, max = 140))]
    question: String,
    #[schemars(length(min = 2, max = 4), inner(length(min = 1, max = 30)))]
    options: Vec<String>,
    duration: Option<PollDuration>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum PollDuration {
    OneDay,
    ThreeDays,
    SevenDays,
    FourteenDays,
}

#[async_trait]
impl Publisher for LinkedIn {
    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let Ok(settings) = schema::read::<Settings>(settings) else { return Vec::new() };
        let mut issues = misfits(containers, settings.link.as_ref());
        if let Some(main) = containers.first().filter(|main| document::is_made_of(main.media, &settings)) {
            issues.extend(main.media.iter().enumerate().filter_map(unheard));
        }
        issues
    }

    /// <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>
    fn unused_setting(&self, account_type: &str, settings: &Value) -> Option<(&'static str, &'static str)> {
        let is_by_page = account_type == PAGE || settings["organization_id"].is_string();
        is_by_page
            .then_some(("visibility", "shows a page's posts to everybody, and takes no other visibility"))
    }

    /// Pictures that become the pages of a document are JPEGs.
    fn media_limits(
        &self,
        _account_type: &str,
        position: usize,
        settings: &Value,
    ) -> Option<&'static [MediaLimit]> {
        const MEDIA: &[MediaLimit] = &[document::PAGE, VIDEO, DOCUMENT];
        (position == 0 && settings["document"].is_object()).then_some(MEDIA)
    }

    fn validate_replies(&self, containers: &[ContainerContent<'_>], _settings: &Value) -> Vec<Issue> {
        misfits(containers, None)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        if reply.status.is_success() {
            return None;
        }
        let message = error_message(reply);
        let says = |word: &str| reply.text.contains(word);
        match reply.status.as_u16() {
            // Also where LinkedIn calls the token revoked, which it does for tokens that are seconds old. The
            // refresh that follows shows which it is.
            401 => Some(Failure::token_expired(message)),
            // A medium that is not distributed yet. Nothing was published.
            403 if is_undistributed(&message) => {
                Some(Failure::upstream(503, message).certain().after(Some(POLL_INTERVAL * 2)))
            }
            // A missing scope or role: a new token does not help.
            403 => Some(Failure::rejected(403, message)),
            // The post exists, and its activity, to which comments belong, does not yet.
            404 if says("Unable to obtain activity") => {
                Some(Failure::upstream(503, message).certain().after(Some(POLL_INTERVAL)))
            }
            // The existing post may belong to an earlier call with a lost response.
            422 if duplicate(reply).is_some() => Some(Failure::rejected(422, message).ambiguous()),
            // None of the versions that were tried is served, which is for the operator to mend.
            426 => {
                let message = format!(
                    "LinkedIn no longer serves the versions of its API that Fanfare knows: update Fanfare, or name one \
                     in FANFARE_LINKEDIN_VERSION ({message})"
                );
                Some(Failure::app_refused(message, Some(VERSION_RETRY)))
            }
            // Posted before the asset is available. An asset whose processing has failed never is, and is sent again once:
            // MEDIA_ASSET_PROCESSING_FAILED.
            400 | 422 if says("MEDIA_ASSET_WAITING_UPLOAD") || says("is not ready") => {
                Some(Failure::upstream(503, message).certain().after(Some(POLL_INTERVAL * 2)))
            }
            429 if says(" DAY ") => Some(Failure::rate_limited(message, Some(until_midnight(reply.at)))),
            // By the status, which says less than the body.
            408 | 425 | 429 => None,
            status @ 400..=499 => Some(Failure::rejected(status, message)),
            _ => None,
        }
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        schema::read::<Settings>(&subject.settings)
            .is_ok_and(|settings| settings.reshare.or(settings.organization_id).is_some())
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        if let Some(page) = &settings.organization_id
            && !organizations(cx).await?.iter().any(|one| one.profile.network_unique_id == *page)
        {
            let message = format!("lets the member post for no organization {page}");
            found.error(look_up::NOT_ALLOWED, "organization_id", &message);
        }
        if let Some(urn) = &settings.reshare {
            // Only some apps may read posts, and those of others may be hidden from them.
            let answer = rest(cx, cx.get(format!("{REST}/posts/{}", encode(urn)))).send_ok().await;
            if look_up::found(answer)?.is_none() {
                found.warning(look_up::NOT_FOUND, "reshare", &format!("shows the account no post {urn}"));
            }
        }
        Ok(())
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let mut all = vec![member(cx).await?];
        if has(cx, &["rw_organization_admin", "r_organization_admin"]) {
            all.extend(organizations(cx).await?);
        }
        Ok(all)
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        match is_page(cx) {
            true => page(cx, &cx.account.network_unique_id).await.map(drop),
            false if has_openid(cx) => cx.get(format!("{V2}/userinfo")).send_ok().await,
            false => cx.get(format!("{V2}/me")).send_ok().await,
        }
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        // A page uses its member's grant, and so may other accounts.
        if is_page(cx) {
            return Ok(());
        }
        let reply = oauth::request(cx, REVOKE, &[("token", &cx.grant.access_token)])?.send_raw().await?;
        match reply.status.as_u16() {
            // The rejection of a token that is already revoked counts as success.
            400 | 401 if !reply.is_block() => Ok(()),
            _ => reply.into_result(cx.platform).map(drop),
        }
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        let settings: Settings = post.settings()?;
        step.doubt(post.commit_begun_at);
        let uploads = Uploads { owner: author(cx, &settings), pages: document::pages(post, &settings) };
        let made = (!uploads.pages.is_empty()).then(|| document::medium(uploads.pages));
        let media = made.as_ref().map_or(post.media.as_slice(), std::slice::from_ref);
        let pause = upload::advance(&uploads, cx, media, &mut step, |step| &mut step.uploads).await?;
        Ok(upload::prepared(&step, pause))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let (mut step, settings): (Step, Settings) = (at.read()?, post.settings()?);
        let author = author(cx, &settings);
        if let Some(reply) = &post.reply_to {
            let body = comment(&author, post, &reply.root, &step);
            return create_comment(cx, &reply.root, &body).await.map(Committed::Live);
        }
        let reply = rest(cx, cx.post(format!("{REST}/posts")))
            .json(&body(&author, post, &settings, &step))
            .send_raw()
            .await?;
        // The existing post is ours if it was created after the start of our call with a lost response.
        step.doubt(post.commit_begun_at);
        if let (Some(begun), Some(urn)) = (step.doubted, duplicate(&reply))
            && made_at(&urn).is_some_and(|at| at >= begun - listing::CLOCK_SKEW)
            && !post.is_taken(&urn)
        {
            return Ok(Committed::Live(urn));
        }
        // Nothing was published. Processing may succeed with the same bytes, sent once more.
        if reply.status.is_client_error()
            && reply.text.contains("MEDIA_ASSET_PROCESSING_FAILED")
            && !step.uploads.is_empty()
            && !step.was_resent
        {
            let failure = Failure::upstream(503, error_message(&reply)).certain();
            cx.save(&Step { uploads: Vec::new(), was_resent: true, ..step }).await?;
            return Err(failure);
        }
        // One that it names by another URN than the post's may be ours too.
        let is_unnamed = reply.status == 422 && reply.text.contains("DUPLICATE_POST");
        let reply = match reply.into_result(cx.platform) {
            Err(failure) if is_unnamed && step.doubted.is_some() => return Err(failure.ambiguous()),
            reply => reply?,
        };
        let id = reply.header("x-restli-id").or_else(|| reply.header("x-linkedin-id"));
        match id.filter(|urn| required::is_id(urn)) {
            Some(urn) => Ok(Committed::Live(urn.to_owned())),
            None => Err(Failure::upstream(502, "LinkedIn took the post and named no id")),
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let begun = post.begun();
        let settings: Settings = post.settings()?;
        let author = author(cx, &settings);
        let found = match &post.reply_to {
            Some(reply) => listing::locate(&Comments { cx, author: &author, root: &reply.root }, post).await,
            None => {
                let step: Step = at.read()?;
                let posts = Posts { cx, author: &author, settings: &settings, uploads: &step.uploads };
                listing::locate(&posts, post).await
            }
        };
        match found {
            Ok(located) => Ok(located),
            // This app can't read the list. A repeated post is rejected with the id of the first.
            Err(failure) if is_closed(&failure) && post.reply_to.is_none() && !post.is_restored => {
                let mut step: Step = at.read()?;
                step.doubt(Some(begun));
                cx.save(&step).await?;
                Ok(Located::Absent)
            }
            Err(failure) if is_closed(&failure) => Ok(Located::Unknown),
            Err(failure) => Err(failure),
        }
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        Ok(address(cx, id))
    }
}

#[async_trait]
impl History for LinkedIn {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let start = offset(cursor);
        let page = list(cx, &own(cx), start, 100).await?.page(start);
        Ok(page.map(|post| RemotePost {
            url: address(cx, &post.id),
            text: plain(&post.commentary),
            media: Vec::new(),
            published_at: post.published_at().unwrap_or_default(),
            metrics: Metrics::default(),
            id: post.id,
        }))
    }
}

#[async_trait]
impl Deletion for LinkedIn {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let address = match comment_parts(id) {
            Some((post, comment)) => {
                let path = match comment_path(cx, post, comment).await {
                    Err(failure) if failure.code == ErrorCode::Rejected(404) => return Ok(()),
                    path => path?,
                };
                let delete = |api: &str| {
                    let call = social(cx, api, cx.delete(format!("{api}/{path}")));
                    call.header("X-RestLi-Method", "DELETE").delete_ok()
                };
                return match delete(REST).await {
                    Err(failure) if failure.code == ErrorCode::Rejected(403) => delete(V2).await,
                    deleted => deleted,
                };
            }
            None => format!("{REST}/posts/{}", encode(id)),
        };
        rest(cx, cx.delete(address)).header("X-RestLi-Method", "DELETE").delete_ok().await
    }
}

/// <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>
#[async_trait]
impl Editing for LinkedIn {
    // A text that is set again is the same text.
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        let Some(text) = &edit.text else { return Ok(()) };
        let Some((post, comment)) = comment_parts(id) else {
            let body = json!({ "patch": { "$set": { "commentary": little(text) } } });
            let call = rest(cx, cx.post(format!("{REST}/posts/{}", encode(id))));
            return call.header("X-RestLi-Method", "PARTIAL_UPDATE").json(&body).send_ok().await;
        };
        let path = comment_path(cx, post, comment).await?;
        let body = json!({ "patch": { "message": { "$set": message(text) } } });
        let edit = |api: &str| {
            let call = social(cx, api, cx.post(format!("{api}/{path}")));
            call.header("X-RestLi-Method", "PARTIAL_UPDATE").json(&body).send_ok()
        };
        // As when it was created.
        match edit(REST).await {
            Err(failure) if failure.code == ErrorCode::Rejected(403) => edit(V2).await,
            edited => edited,
        }
    }
}

/// Returns the path of a comment, with its author.
async fn comment_path(cx: &Session<'_>, post: &str, comment: &str) -> Result<String> {
    let path = format!("socialActions/{}/comments/{comment}", encode(post));
    // Required if the member commented for the page.
    let actor = match rest(cx, cx.get(format!("{REST}/{path}"))).send::<Made>().await {
        Ok(comment) => comment.actor,
        Err(failure) if is_closed(&failure) => own(cx),
        Err(failure) => return Err(failure),
    };
    Ok(format!("{path}?actor={}", encode(&actor)))
}

#[async_trait]
impl Options for LinkedIn {
    fn kinds(&self) -> &'static [&'static str] {
        &["organizations", "mentions"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, parent: Option<&str>) -> Result<Vec<SelectOption>> {
        match (kind, parent) {
            ("organizations", _) => Ok(organizations(cx)
                .await?
                .into_iter()
                .map(|page| SelectOption {
                    id: page.profile.network_unique_id,
                    name: page.profile.display_name,
                })
                .collect()),
            ("mentions", Some(text)) => mentions::find(cx, text).await,
            ("mentions", None) => {
                Err(Failure::rejected(422, "mentions are looked up by a name: give it as parent"))
            }
            _ => Err(Failure::rejected(422, format!("LinkedIn has no list of {kind}"))),
        }
    }
}

/// Adds the headers of every versioned call. A version that LinkedIn does not serve is followed by others.
fn rest(cx: &Session<'_>, call: Call) -> Call {
    let now = (cx.now)();
    let versions = Month::candidates(Month::at(now), now);
    call.header("X-Restli-Protocol-Version", "2.0.0").in_forms(Forms {
        key: versions::LINKEDIN,
        names: versions.iter().map(ToString::to_string).collect(),
        apply: |request, version| {
            if let Ok(version) = version.parse() {
                request.headers_mut().insert("linkedin-version", version);
            }
        },
        is_unknown: |reply| reply.status == 426,
    })
}

/// Adds the headers of a call to the likes and comments of one of the two APIs.
fn social(cx: &Session<'_>, api: &str, call: Call) -> Call {
    if api == REST { rest(cx, call) } else { call.header("X-Restli-Protocol-Version", "2.0.0") }
}

fn finder(cx: &Session<'_>, call: Call) -> Call {
    rest(cx, call).header("X-RestLi-Method", "FINDER")
}

/// Encodes a URN for a path or query, without the parentheses around it.
fn encode(urn: &str) -> String {
    url::form_urlencoded::byte_serialize(urn.as_bytes()).collect()
}

fn has(cx: &Session<'_>, scopes: &[&str]) -> bool {
    scopes.iter().any(|scope| cx.grant.scopes.iter().any(|granted| granted == scope))
}

fn is_page(cx: &Session<'_>) -> bool {
    cx.account.account_type == PAGE
}

/// Returns true if the app, or any app, may not read a list.
fn is_closed(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Rejected(400 | 403))
}

/// Returns true if the app has OpenID Connect, which the Community Management API excludes.
fn has_openid(cx: &Session<'_>) -> bool {
    has(cx, &["openid"]) || !has(cx, &["r_basicprofile"])
}

/// Returns true if a failure's message says that a medium can't be used yet, which LinkedIn reports with 403.
fn is_undistributed(message: &str) -> bool {
    message.contains("resource is forbidden")
}

/// Creates a comment and returns its URN.
///
/// The versioned API takes comments from apps with the Community Management API; those of self-service get 403
/// there, and use the unversioned one. Apps of newer products comment with the scopes `w_member_social_feed` and
/// `w_organization_social_feed` only.
/// <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/comments-api>
async fn create_comment(cx: &Session<'_>, root: &str, body: &Value) -> Result<String> {
    let post = async |api: &str| {
        let address = format!("{api}/socialActions/{}/comments", encode(root));
        social(cx, api, cx.post(address)).json(body).send::<Made>().await
    };
    let made = match post(REST).await {
        Err(failure) if failure.code == ErrorCode::Rejected(403) => post(V2).await,
        made => made,
    };
    let is_by_page = body["actor"].as_str().is_some_and(|actor| actor.contains(":organization:"));
    let scope = if is_by_page { "w_organization_social_feed" } else { "w_member_social_feed" };
    match made {
        Ok(made) => made.urn(),
        Err(failure) if failure.code == ErrorCode::Rejected(403) && !has(cx, &[scope]) => {
            let message = format!(
                "{} (the account was connected without {scope}, which apps of newer products need for comments)",
                failure.message
            );
            Err(Failure { message, ..failure })
        }
        Err(failure) if failure.message.contains("Unable to obtain activity") => {
            let is_old = made_at(root).is_some_and(|at| (cx.now)() - at > ACTIVITY_DELAY);
            Err(if is_old { Failure::rejected(404, failure.message) } else { failure })
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the account's own URN.
fn own(cx: &Session<'_>) -> String {
    let kind = if is_page(cx) { "organization" } else { "person" };
    format!("urn:li:{kind}:{}", cx.account.network_unique_id)
}

/// Returns the author of a post: the account, or the page that it posts for.
fn author(cx: &Session<'_>, settings: &Settings) -> String {
    match &settings.organization_id {
        Some(page) => format!("urn:li:organization:{page}"),
        None => own(cx),
    }
}

fn is_picture(kind: MediaKind) -> bool {
    matches!(kind, MediaKind::Image | MediaKind::Gif)
}

/// Returns the media that LinkedIn would refuse; the first container has the link.
fn misfits(containers: &[ContainerContent<'_>], link: Option<&Link>) -> Vec<Issue> {
    let validate = containers.iter().enumerate().filter_map(|(index, container)| {
        let link = link.filter(|_| index == 0);
        let (code, message) = fits(container.media, link).err()?;
        let path = vec![json!("containers"), json!(index), json!("media")];
        Some(Issue { severity: Severity::Error, code: code.to_owned(), message, path })
    });
    validate.collect()
}

/// Says that the alt text of a picture that becomes a page is not shown.
fn unheard((index, media): (usize, &Media)) -> Option<Issue> {
    media.alt_text.as_deref().filter(|alt| !alt.is_empty())?;
    let message =
        format!("linkedin shows no alt text of the pages of a document, and picture {} has one", index + 1);
    Some(check::alt_text_left_out(index, message))
}

/// Checks of a container that no table can express; an issue code and a message.
fn fits(media: &[Media], link: Option<&Link>) -> Result<(), (&'static str, String)> {
    if link.is_some() && (media.len() > 1 || !media.iter().all(|media| is_picture(media.kind))) {
        let message = "linkedin takes one picture with a link, for its card, and no other media";
        return Err(("settings_conflict", message.to_owned()));
    }
    Ok(())
}

/// Returns the body of the publishing call.
fn body(author: &str, post: &PublishRequest, settings: &Settings, step: &Step) -> Value {
    let mut body = json!({
        "author": author,
        "commentary": little(&post.text),
        "visibility": settings.visibility.unwrap_or(Visibility::Public),
        "distribution": {
            "feedDistribution": "MAIN_FEED",
            "targetEntities": [],
            "thirdPartyDistributionChannels": [],
        },
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": settings.is_reshare_disabled_by_author == Some(true),
    });
    if let Some(content) = content(post, settings, step) {
        body["content"] = content;
    }
    if let Some(parent) = &settings.reshare {
        body["reshareContext"] = json!({ "parent": parent });
    }
    body
}

fn content(post: &PublishRequest, settings: &Settings, step: &Step) -> Option<Value> {
    let alt = |media: &Media| media.alt_text.clone().filter(|alt| !alt.is_empty());
    if let Some(Link { url, title, description }) = &settings.link {
        let mut article = json!({ "source": url, "title": title });
        if let Some(description) = description.as_ref().filter(|description| !description.is_empty()) {
            article["description"] = json!(description);
        }
        if let (Some(media), Some(upload)) = (post.media.first(), step.uploads.first()) {
            article["thumbnail"] = json!(upload.ticket.urn);
            if let Some(alt) = alt(media) {
                article["thumbnailAltText"] = json!(alt);
            }
        }
        return Some(json!({ "article": article }));
    }
    if let (Some(PictureDocument { title }), [_, ..], [upload]) =
        (&settings.document, document::pages(post, settings), step.uploads.as_slice())
    {
        return Some(json!({ "media": { "id": upload.ticket.urn, "title": title } }));
    }
    if let Some(poll) = &settings.poll {
        let options: Vec<_> = poll.options.iter().map(|text| json!({ "text": text })).collect();
        return Some(json!({ "poll": {
            "question": poll.question,
            "options": options,
            "settings": { "duration": poll.duration.unwrap_or(PollDuration::ThreeDays) },
        } }));
    }
    let described = |media: &Media, upload: &Uploaded<Ticket>| {
        let mut one = json!({ "id": upload.ticket.urn });
        if let Some(alt) = alt(media) {
            one["altText"] = json!(alt);
        }
        one
    };
    match (post.media.as_slice(), step.uploads.as_slice()) {
        ([media], [upload]) => {
            let mut one = match media.kind {
                kind if is_picture(kind) => described(media, upload),
                _ => json!({ "id": upload.ticket.urn }),
            };
            let title = settings.title.clone();
            let title = title.or_else(|| (media.kind == MediaKind::Document).then(|| media.filename.clone()));
            if let Some(title) = title {
                one["title"] = json!(title);
            }
            Some(json!({ "media": one }))
        }
        (media @ [_, _, ..], uploads) => {
            let images: Vec<_> =
                media.iter().zip(uploads).map(|(media, upload)| described(media, upload)).collect();
            Some(json!({ "multiImage": { "images": images } }))
        }
        _ => None,
    }
}

fn comment(author: &str, post: &PublishRequest, root: &str, step: &Step) -> Value {
    let mut body = json!({ "actor": author, "object": root, "message": message(&post.text) });
    if let Some(upload) = step.uploads.first() {
        body["content"] = json!([{ "entity": { "image": upload.ticket.urn } }]);
    }
    body
}

/// Returns one page of an author's posts, newest first.
async fn list(cx: &Session<'_>, author: &str, start: usize, count: usize) -> Result<Elements<Post>> {
    let author = encode(author);
    let address = format!("{REST}/posts?author={author}&q=author&count={count}&start={start}&sortBy=CREATED");
    finder(cx, cx.get(address)).send().await
}

/// An author's posts.
struct Posts<'a> {
    cx: &'a Session<'a>,
    author: &'a str,
    /// Settings of the post to find.
    settings: &'a Settings,
    /// Its uploads, as far as the checkpoint has them.
    uploads: &'a [Uploaded<Ticket>],
}

#[async_trait]
impl Listing for Posts<'_> {
    type Item = Post;
    const MAX_PAGES: usize = 3;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Post>> {
        let start = offset(cursor);
        Ok(list(self.cx, self.author, start, 50).await?.page(start))
    }

    fn id(other: &Post) -> &str {
        &other.id
    }

    fn published_at(other: &Post) -> Option<DateTime<Utc>> {
        other.published_at()
    }

    fn matches(&self, other: &Post, post: &PublishRequest) -> bool {
        collapse_whitespace(&plain(&other.commentary)) == collapse_whitespace(&post.text)
            && other.has_media() == (!post.media.is_empty() || self.settings.link.is_some())
            && other.has(self.settings, self.uploads)
    }
}

/// The comments below a post, in no documented order.
struct Comments<'a> {
    cx: &'a Session<'a>,
    author: &'a str,
    root: &'a str,
}

#[async_trait]
impl Listing for Comments<'_> {
    type Item = Made;
    const MAX_PAGES: usize = 3;
    const IS_NEWEST_FIRST: bool = false;

    async fn page(&self, _since: DateTime<Utc>, cursor: Option<&str>) -> Result<Page<Made>> {
        let (root, start) = (encode(self.root), offset(cursor));
        let address = format!("{REST}/socialActions/{root}/comments?start={start}&count=100");
        let page: Elements<Made> = rest(self.cx, self.cx.get(address)).send().await?;
        page.elements.iter().try_for_each(|comment| comment.urn().map(drop))?;
        Ok(page.page(start))
    }

    fn id(comment: &Made) -> &str {
        comment.id()
    }

    fn published_at(comment: &Made) -> Option<DateTime<Utc>> {
        comment.created.time()
    }

    fn matches(&self, comment: &Made, post: &PublishRequest) -> bool {
        comment.actor == self.author
            && collapse_whitespace(&comment.message.text) == collapse_whitespace(&message(&post.text).text)
    }
}

/// Parses a cursor, which is an offset.
fn offset(cursor: Option<&str>) -> usize {
    cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0)
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.transport.rewrite_url(&match comment_parts(id) {
        Some((post, _)) => {
            format!("https://www.linkedin.com/feed/update/{post}?commentUrn={}", encode(id))
        }
        None => format!("https://www.linkedin.com/feed/update/{id}/"),
    })
}

/// Returns the post and the number in a comment's URN: `urn:li:comment:(urn:li:activity:1,2)`.
fn comment_parts(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix("urn:li:comment:(")?.strip_suffix(')')?.split_once(',')
}

/// Returns the URN of the original in a rejection as a duplicate.
fn duplicate(reply: &Reply) -> Option<String> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"duplicate of (urn:li:(?:share|ugcPost|activity):[0-9]+)").expect("a pattern")
    });
    (reply.status == 422).then(|| Some(NAMED.captures(&reply.text)?[1].to_owned())).flatten()
}

/// Returns the creation time of a post, with which its number begins.
fn made_at(urn: &str) -> Option<DateTime<Utc>> {
    let number: i64 = urn.rsplit(':').next()?.parse().ok()?;
    DateTime::from_timestamp_millis(number >> 22)
}

/// Returns LinkedIn's error message with its details.
fn error_message(reply: &Reply) -> String {
    let mut message = classify::message(reply);
    for error in reply.body["errorDetails"]["inputErrors"].as_array().into_iter().flatten() {
        let Some(more) = error["description"].as_str().filter(|more| !message.contains(*more)) else {
            continue;
        };
        message = match error["input"]["inputPath"]["fieldPath"].as_str() {
            Some(field) => format!("{message} ({field}: {more})"),
            None => format!("{message} ({more})"),
        };
    }
    crate::text::clip(&message, domain::failure::MAX_MESSAGE_CHARS)
}

/// Returns the wait until midnight UTC, when daily limits reset.
fn until_midnight(now: DateTime<Utc>) -> Duration {
    let midnight = (now.date_naive() + TimeDelta::days(1)).and_time(chrono::NaiveTime::MIN).and_utc();
    (midnight - now).to_std().unwrap_or_default()
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    #[serde(default)]
    uploads: Vec<Uploaded<Ticket>>,
    /// Start of the first call with a lost response.
    #[serde(default)]
    doubted: Option<DateTime<Utc>>,
    /// True once the files were sent again, because their processing failed.
    #[serde(default)]
    was_resent: bool,
}

impl Step {
    /// Records an ambiguous call, unless there is an earlier one, which may have created the post.
    fn doubt(&mut self, begun: Option<DateTime<Utc>>) {
        self.doubted = self.doubted.into_iter().chain(begun).min();
    }
}

/// A list, with a link to the next page if there is one.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Elements<T> {
    elements: Vec<T>,
    #[serde(default)]
    paging: Paging,
}

#[derive(Default, Deserialize)]
struct Paging {
    total: Option<usize>,
    #[serde(default)]
    links: Vec<PageLink>,
}

#[derive(Deserialize)]
struct PageLink {
    #[serde(default)]
    rel: String,
}

impl<T> Elements<T> {
    /// Returns the page, which began at this offset.
    fn page(self, start: usize) -> Page<T> {
        let next = start + self.elements.len();
        let is_more = self.paging.links.iter().any(|link| link.rel == "next")
            || self.paging.total.is_some_and(|total| total > next);
        let next = (is_more && next > start).then(|| next.to_string());
        Page { items: self.elements, next }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Post {
    #[serde(deserialize_with = "required::id")]
    id: String,
    #[serde(default)]
    commentary: String,
    #[serde(default)]
    content: Value,
    #[serde(rename = "reshareContext")]
    reshare: Option<Reshare>,
    created_at: Option<i64>,
    published_at: Option<i64>,
}

impl Post {
    fn published_at(&self) -> Option<DateTime<Utc>> {
        self.published_at.or(self.created_at).and_then(DateTime::from_timestamp_millis)
    }

    /// Returns true unless a link, a poll, a shared post or an upload shows that it is another post. Details that
    /// the list omits decide nothing.
    fn has(&self, settings: &Settings, uploads: &[Uploaded<Ticket>]) -> bool {
        let agrees = |pointer: &str, expected: Option<&str>| {
            let found = self.content.pointer(pointer).and_then(Value::as_str);
            found.zip(expected).is_none_or(|(found, expected)| found == expected)
        };
        let uploaded = |index: usize| uploads.get(index).map(|upload| upload.ticket.urn.as_str());
        let parent = self.reshare.as_ref().and_then(|reshare| reshare.parent.as_deref());
        agrees("/article/source", settings.link.as_ref().map(|link| link.url.as_str()))
            && agrees("/poll/question", settings.poll.as_ref().map(|poll| poll.question.as_str()))
            && agrees("/media/id", uploaded(0))
            && agrees("/multiImage/images/0/id", uploaded(0))
            && agrees("/multiImage/images/1/id", uploaded(1))
            && parent.is_none_or(|parent| settings.reshare.as_deref() == Some(parent))
    }

    fn has_media(&self) -> bool {
        ["media", "multiImage", "article"].iter().any(|kind| !self.content[*kind].is_null())
    }
}

#[derive(Deserialize)]
struct Reshare {
    parent: Option<String>,
}

/// A comment, as created or listed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    comment_urn: Option<String>,
    /// The URN where LinkedIn does not name it otherwise.
    #[serde(rename = "$URN")]
    own_urn: Option<String>,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    created: Stamp,
}

impl Made {
    fn id(&self) -> &str {
        self.comment_urn.as_deref().or(self.own_urn.as_deref()).unwrap_or_default()
    }

    /// Returns the URN.
    ///
    /// # Errors
    ///
    /// `upstream_502` when there is none: the comment may exist.
    fn urn(&self) -> Result<String> {
        let urn = Some(self.id()).filter(|urn| required::is_id(urn));
        urn.map(str::to_owned)
            .ok_or_else(|| Failure::upstream(502, "LinkedIn took the comment and named no id"))
    }
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    text: String,
}

#[derive(Default, Deserialize)]
struct Stamp {
    time: Option<i64>,
}

impl Stamp {
    fn time(&self) -> Option<DateTime<Utc>> {
        self.time.and_then(DateTime::from_timestamp_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUPLICATE: &str = r#"{"errorDetailType":"com.linkedin.common.error.BadRequest","message":"com.linkedin.content.common.exception.BadRequestResponseException: Content is a duplicate of urn:li:share:7141138937766391808","errorDetails":{"inputErrors":[{"description":"Duplicate post is detected","input":{},"code":"DUPLICATE_POST"}]},"status":422}"#;

    #[test]
    fn each_documented_error_has_its_error_code() {
        for (status, body, code, doubt) in [
            (401, r#"{"serviceErrorCode":65602,"message":"expired","status":401}"#, "token_expired", false),
            (401, r#"{"serviceErrorCode":65601,"code":"REVOKED_ACCESS_TOKEN"}"#, "token_expired", false),
            (401, r#"{"serviceErrorCode":65600,"message":"Invalid access token"}"#, "token_expired", false),
            (403, r#"{"serviceErrorCode":100,"code":"ACCESS_DENIED"}"#, "rejected_403", false),
            (422, DUPLICATE, "rejected_422", true),
            (422, r#"{"code":"FIELD_LENGTH_TOO_LONG"}"#, "rejected_422", false),
            (400, r#"{"message":"urn:li:video:1 is not ready"}"#, "upstream_503", false),
            (
                400,
                r#"{"code":"MEDIA_ASSET_WAITING_UPLOAD","message":"Media asset is waiting upload"}"#,
                "upstream_503",
                false,
            ),
            (
                400,
                r#"{"code":"MEDIA_ASSET_PROCESSING_FAILED","message":"Media asset failed processing"}"#,
                "rejected_400",
                false,
            ),
            (403, r#"{"message":"Accessing this video resource is forbidden."}"#, "upstream_503", false),
            (
                404,
                r#"{"message":"Unable to obtain activity for urn: 'urn:li:share:1'","status":404}"#,
                "upstream_503",
                false,
            ),
            (404, r#"{"code":"NOT_FOUND","message":"Entity does not exist"}"#, "rejected_404", false),
            (426, r#"{"code":"NONEXISTENT_VERSION"}"#, "app_refused", false),
            (429, r#"{"serviceErrorCode":101,"code":"TOO_MANY_REQUESTS"}"#, "rate_limited", false),
            (500, "", "upstream_500", true),
            (504, "", "upstream_504", true),
        ] {
            let failure = Reply::of(status, &[], body).into_result(&ADAPTER).unwrap_err();
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {body}"
            );
            assert!(!failure.is_revoked());
        }
    }

    #[test]
    fn a_refusal_names_each_field_with_its_reason() {
        let body = json!({
            "errorDetailType": "com.linkedin.common.error.BadRequest",
            "message": "Multiple errors occurred during the input validation. Please see errorDetails for more information.",
            "errorDetails": { "inputErrors": [
                {
                    "description": "Invalid value for field; wrong type or other syntax error",
                    "input": { "inputPath": { "fieldPath": "commentary" } },
                },
                { "description": "Invalid argument", "input": {} },
            ] },
            "status": 400,
        });
        let failure = Reply::of(400, &[], &body.to_string()).into_result(&ADAPTER).unwrap_err();
        assert_eq!(failure.code, ErrorCode::Rejected(400));
        let expected = "Multiple errors occurred during the input validation. Please see errorDetails for more information. \
                        (commentary: Invalid value for field; wrong type or other syntax error) (Invalid argument)";
        assert_eq!(failure.message, expected);
    }

    #[test]
    fn a_daily_limit_is_waited_for_until_midnight() {
        let text = r#"{"code":"TOO_MANY_REQUESTS","message":"Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this resource is reached."}"#;
        let failure = Reply::of(429, &[], text).into_result(&ADAPTER).unwrap_err();
        // 2027-01-15, 08:00.
        assert_eq!(failure.retry_after, Some(Duration::from_secs(16 * 3600)));
    }

    #[test]
    fn a_duplicate_error_identifies_the_original_and_its_age() {
        let urn = duplicate(&Reply::of(422, &[], DUPLICATE)).unwrap();
        assert_eq!(urn, "urn:li:share:7141138937766391808");
        assert_eq!(made_at(&urn).unwrap().date_naive().to_string(), "2023-12-14");
        assert_eq!(duplicate(&Reply::of(400, &[], DUPLICATE)), None);
    }

    #[test]
    fn settings_are_in_the_body_of_a_post() {
        let post = PublishRequest {
            text: "hello".into(),
            settings: json!({
                "visibility": "CONNECTIONS", "isReshareDisabledByAuthor": true, "other": 1,
                "poll": { "question": "?", "options": ["a", "b"], "other": 1 },
            }),
            ..PublishRequest::of_test()
        };
        let settings = post.settings().unwrap();
        let sent = body("urn:li:person:1", &post, &settings, &Step::default());
        assert_eq!(
            (&sent["visibility"], &sent["isReshareDisabledByAuthor"]),
            (&json!("CONNECTIONS"), &json!(true))
        );
        assert_eq!(
            sent["content"],
            json!({ "poll": {
                "question": "?", "options": [{ "text": "a" }, { "text": "b" }], "settings": { "duration": "THREE_DAYS" },
            } })
        );
    }
}
