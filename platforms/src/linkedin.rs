//! LinkedIn, over its versioned REST API: <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-api>.
//!
//! A login covers the member and the pages that the member may speak for; a page is an account of its
//! own under the same grant. What a member posted can be listed only by apps that LinkedIn lets do so.
//! Everybody else is helped by LinkedIn's refusal of duplicates, which names the post that is there:
//! after a lost answer the same call is made again, and the post it names is ours if it is as young as
//! the doubt. Texts are "little text", in which reserved characters cut a post short unless escaped.

use crate::{
    check::{Draft, Issue, Severity},
    *,
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure, Metrics};
use regex::Regex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{collections::HashMap, sync::LazyLock, time::Duration};

/// LinkedIn. <https://learn.microsoft.com/en-us/linkedin/marketing/>
pub(crate) struct LinkedIn;

const REST: &str = "https://api.linkedin.com/rest";
const V2: &str = "https://api.linkedin.com/v2";
const TOKEN: &str = "https://www.linkedin.com/oauth/v2/accessToken";
const REVOKE: &str = "https://www.linkedin.com/oauth/v2/revoke";

/// The version that is spoken. Each lives for a year, then LinkedIn answers 426.
const VERSION: &str = "202606";

/// Between two looks at a medium that is being processed.
const POLL: Duration = Duration::from_secs(5);
/// An upload is not gone on with when its addresses die within this time.
const MARGIN: TimeDelta = TimeDelta::minutes(5);
/// How much earlier than our clock's commit a post of ours may seem to LinkedIn.
const SKEW: TimeDelta = TimeDelta::minutes(5);
/// Pages of the author's posts that are searched for a lost one.
const PAGES: usize = 3;
/// The most pages that are asked about at once.
const BATCH: usize = 50;
/// Fewer pixels than this may be in a picture.
const PIXELS: u64 = 36_152_320;
/// Characters that mean something in little text.
const RESERVED: &str = r"|{}@[]()<>#\*_~";

const IMAGES: MediaLimit = MediaLimit {
    kind: MediaKind::Image,
    count: 0..=20,
    mimes: &["image/jpeg", "image/png", "image/gif"],
    max_bytes: 8 << 20,
    duration: None,
    pixels: None,
    aspect_ratio: None,
};

static CAPABILITIES: Capabilities = Capabilities {
    text: TextLimit::characters(3000),
    content: Content::TextOrMedia,
    media: &[
        IMAGES,
        MediaLimit { kind: MediaKind::Gif, count: 0..=1, mimes: &["image/gif"], ..IMAGES },
        MediaLimit {
            kind: MediaKind::Video,
            count: 0..=1,
            mimes: &["video/mp4"],
            max_bytes: 500 << 20,
            duration: Some(Duration::from_secs(3)..=Duration::from_secs(30 * 60)),
            ..IMAGES
        },
        MediaLimit {
            kind: MediaKind::Document,
            count: 0..=1,
            mimes: &[
                "application/pdf",
                "application/msword",
                "application/vnd.ms-powerpoint",
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ],
            max_bytes: 100 << 20,
            ..IMAGES
        },
    ],
    mixed_media: false,
    alt_text: Some(4086),
    replies: Replies::Thread,
    publishing: Publishing::Asynchronous { window: Duration::from_secs(1800) },
    repeat: Repeat::Doubles { settling: Duration::from_secs(15) },
    settings,
};

/// What follows a post are comments below it.
static RULES: Rules = Rules {
    comment: Some(Comment {
        text: TextLimit::characters(1250),
        media: &[MediaLimit { count: 0..=1, ..IMAGES }],
    }),
    ..Rules::NONE
};

/// A login is all or nothing: an app that lacks a product names its own scopes in the network's record.
static CONNECTION: Connection = Connection::OAuth2 {
    authorize: "https://www.linkedin.com/oauth/v2/authorization",
    token: TOKEN,
    scopes: &[
        "openid",
        "profile",
        "r_basicprofile",
        "w_member_social",
        "w_organization_social",
        "r_organization_social",
        "rw_organization_admin",
    ],
    separator: " ",
    client_id: "client_id",
    parameters: &[],
    pkce: false,
};

fn settings() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "visibility": {
                "type": "string",
                "enum": ["PUBLIC", "CONNECTIONS", "LOGGED_IN"],
                "description": "Who can see it; a page's posts are public.",
            },
            "organization_id": {
                "type": "string",
                "pattern": "^[0-9]+$",
                "description": "The page that a member's account posts for, instead of the member.",
            },
            "isReshareDisabledByAuthor": {
                "type": "boolean",
                "description": "Whether nobody can share it further.",
            },
            "title": {
                "type": "string",
                "minLength": 1,
                "maxLength": 400,
                "description": "The title of its video or document; a document's file name unless told.",
            },
            "link": {
                "type": "object",
                "excludes": ["poll", "reshare"],
                "required": ["url", "title"],
                "properties": {
                    "url": { "type": "string", "pattern": "^https?://", "maxLength": 8192 },
                    "title": { "type": "string", "minLength": 1, "maxLength": 400 },
                    "description": { "type": "string", "maxLength": 4086 },
                },
                "description": "A link with a card. LinkedIn looks nothing up; the post's picture is the card's.",
            },
            "poll": {
                "type": "object",
                "excludes": ["media", "link", "reshare"],
                "required": ["question", "options"],
                "properties": {
                    "question": { "type": "string", "minLength": 1, "maxLength": 140 },
                    "options": {
                        "type": "array",
                        "minItems": 2,
                        "maxItems": 4,
                        "items": { "type": "string", "minLength": 1, "maxLength": 30 },
                    },
                    "duration": {
                        "type": "string",
                        "enum": ["ONE_DAY", "THREE_DAYS", "SEVEN_DAYS", "FOURTEEN_DAYS"],
                    },
                },
                "description": "A poll; it lasts for three days unless told.",
            },
            "reshare": {
                "type": "string",
                "excludes": ["media", "poll", "link"],
                "pattern": "^urn:li:(share|ugcPost):[0-9]+$",
                "description": "The post that is shared with this text.",
            },
        },
    })
}

#[async_trait]
impl Platform for LinkedIn {
    fn id(&self) -> &'static str {
        "linkedin"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn connection(&self) -> &'static Connection {
        &CONNECTION
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    fn objections(&self, containers: &[Draft<'_>], settings: &Value) -> Vec<Issue> {
        let objections = containers.iter().enumerate().filter_map(|(index, container)| {
            let settings = if index == 0 { settings } else { &Value::Null };
            let (code, message) = fits(container.media, settings).err()?;
            let path = vec![json!("containers"), json!(index), json!("media")];
            Some(Issue { severity: Severity::Error, code: code.to_owned(), message, path })
        });
        objections.collect()
    }

    fn describes(&self, kind: MediaKind) -> bool {
        is_picture(kind)
    }

    fn credentials(&self) -> Credentials {
        Credentials::Body
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        if reply.status.is_success() {
            return None;
        }
        let message = words(reply);
        let says = |word: &str| reply.text.contains(word);
        match reply.status.as_u16() {
            // Also what LinkedIn calls revoked: it says so of tokens that are seconds old as well. The
            // refresh that follows tells which it is.
            401 => Some(Failure::token_expired(message)),
            // A scope or a role that is missing: a fresh token hears the same.
            403 => Some(Failure::rejected(403, message)),
            // The post that is there may be that of an earlier call whose answer was lost.
            422 if duplicate(reply).is_some() || says("DUPLICATE_POST") => {
                Some(Failure { doubt: true, ..Failure::rejected(422, message) })
            }
            400 | 422 if says("MEDIA_ASSET_PROCESSING") || says("is not ready") => Some(Failure {
                doubt: false,
                retry_after: Some(POLL * 2),
                ..Failure::upstream(503, message)
            }),
            429 if says(" DAY ") => Some(Failure::rate_limited(message, Some(until_midnight(reply.at)))),
            _ => None,
        }
    }

    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let me: Member = cx.get(format!("{V2}/userinfo")).send().await?;
        let name = me.name.filter(|name| !name.is_empty()).unwrap_or_else(|| me.sub.clone());
        // Only some apps may ask for it, and nothing depends on it.
        let vanity = match has(cx, &["r_basicprofile"]) {
            true => cx.get(format!("{V2}/me")).send::<Vanity>().await.ok().and_then(|me| me.vanity_name),
            false => None,
        };
        let mut all = vec![Identity {
            profile_url: vanity.as_ref().map(|vanity| format!("https://www.linkedin.com/in/{vanity}")),
            username: vanity.unwrap_or_else(|| me.sub.clone()),
            network_unique_id: me.sub,
            display_name: name,
            account_type: "profile".to_owned(),
            profile_image_url: me.picture,
            grant: None,
        }];
        if has(cx, &["rw_organization_admin", "r_organization_admin"]) {
            all.extend(pages(cx).await?);
        }
        Ok(all)
    }

    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        match is_page(cx) {
            true => page(cx, &cx.account.network_unique_id).await.map(drop),
            false => cx.get(format!("{V2}/userinfo")).done().await,
        }
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        oauth::refresh(cx, TOKEN, |word| matches!(word, "invalid_grant" | "invalid_request")).await
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        // A page speaks with its member's grant, and so may other accounts.
        if is_page(cx) {
            return Ok(());
        }
        let reply = oauth::request(cx, REVOKE, &[("token", &cx.grant.access_token)])?.any().await?;
        match reply.status.as_u16() {
            // What is gone already is refused, and that is as good.
            200..=299 | 400 | 401 => Ok(()),
            _ => Err(classify::by_status(&reply)),
        }
    }

    async fn prepare(&self, cx: &Session<'_>, post: &Publication, at: Checkpoint) -> Result<Prepared> {
        let mut step: Step = at.read()?;
        let settings = if post.reply_to.is_none() { &post.settings } else { &Value::Null };
        fits(&post.media, settings).map_err(|(_, message)| Failure::rejected(400, message))?;
        step.doubt(post.commit_begun_at);
        let author = author(cx, post);
        let usable = step.uploads.iter().zip(&post.media).take_while(|(upload, media)| upload.media == media.id);
        let usable = usable.count();
        step.uploads.truncate(usable);
        let mut is_busy = false;
        for (index, media) in post.media.iter().enumerate() {
            if step.uploads.get(index).is_some_and(|upload| upload.is_stale((cx.now)())) {
                step.uploads.truncate(index);
            }
            if step.uploads.len() == index {
                step.uploads.push(begin(cx, media, &author).await?);
                cx.save(&step).await?;
            }
            while let Stage::Parts { parts, tags, token, .. } = &step.uploads[index].stage {
                match parts.get(tags.len()) {
                    Some(part) => {
                        let tag = send_part(cx, media, part).await?;
                        if let Stage::Parts { tags, .. } = &mut step.uploads[index].stage {
                            tags.push(tag);
                        }
                    }
                    None => {
                        finalize(cx, &step.uploads[index].urn, token, tags).await?;
                        step.uploads[index].stage = Stage::Sent;
                    }
                }
                cx.save(&step).await?;
            }
            if step.uploads[index].stage == Stage::Sent {
                match status(cx, media.kind, &step.uploads[index].urn).await? {
                    Status::Ready => {
                        step.uploads[index].stage = Stage::Ready;
                        cx.save(&step).await?;
                    }
                    Status::Busy => is_busy = true,
                    Status::Failed(reason) => {
                        // So that another attempt uploads it anew.
                        step.uploads.truncate(index);
                        cx.save(&step).await?;
                        let message = format!("LinkedIn could not process the {}: {reason}", media.kind);
                        return Err(Failure::rejected(400, message));
                    }
                }
            }
        }
        let at = Checkpoint::of(&step);
        Ok(if is_busy { Prepared::Processing { at, poll_after: POLL } } else { Prepared::Ready(at) })
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        let mut step: Step = at.read()?;
        let author = author(cx, post);
        if let Some(reply) = &post.reply_to {
            let made: Made = rest(cx.post(format!("{REST}/socialActions/{}/comments", encode(&reply.root))))
                .json(&comment(&author, post, &reply.root, &step))
                .send()
                .await?;
            return Ok(Committed::Live(made.comment_urn));
        }
        let reply = rest(cx.post(format!("{REST}/posts"))).json(&body(&author, post, &step)).any().await?;
        // What is there is ours if a call of ours was in doubt when it came into being.
        step.doubt(post.commit_begun_at);
        if let (Some(begun), Some(urn)) = (step.doubted, duplicate(&reply))
            && made_at(&urn).is_some_and(|at| at >= begun - SKEW)
            && !post.is_taken(&urn)
        {
            return Ok(Committed::Live(urn));
        }
        let reply = reply.judge(self)?;
        match reply.header("x-restli-id").or_else(|| reply.header("x-linkedin-id")) {
            Some(urn) => Ok(Committed::Live(urn.to_owned())),
            None => Err(Failure::upstream(502, "LinkedIn took the post and named no id")),
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        let begun = post.commit_begun_at.unwrap_or(post.created_at);
        let author = author(cx, post);
        let found = match &post.reply_to {
            Some(reply) => find_comment(cx, post, &author, &reply.root, begun).await,
            None => find(cx, post, &author, begun).await,
        };
        match found {
            Ok(located) => Ok(located),
            // The list is closed to this app. A post that is made again is refused and named.
            Err(failure) if is_closed(&failure) && post.reply_to.is_none() => {
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

    fn analytics(&self) -> Option<&dyn Analytics> {
        Some(self)
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn deletion(&self) -> Option<&dyn Deletion> {
        Some(self)
    }

    fn options(&self) -> Option<&dyn Options> {
        Some(self)
    }
}

#[async_trait]
impl Analytics for LinkedIn {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        let mut metrics = Metrics::default();
        let actions: Result<Actions> =
            rest(cx.get(format!("{REST}/socialActions/{}", encode(id)))).send().await;
        let closed = match actions {
            Ok(actions) => {
                metrics.likes = actions.likes.total;
                metrics.comments = actions.comments.all.max(actions.comments.first_level);
                None
            }
            // A member's post may be closed to this app, and its figures not.
            Err(failure) if is_closed(&failure) => Some(failure),
            Err(failure) => return Err(failure),
        };
        let more = if is_page(cx) {
            page_metrics(cx, id, &mut metrics).await
        } else {
            member_metrics(cx, id, &mut metrics).await
        };
        match (more, closed) {
            (Ok(()), _) => Ok(metrics),
            // What this app may not read stays at what is known, if anything is.
            (Err(failure), None) if is_closed(&failure) => Ok(metrics),
            (Err(failure), Some(closed)) if is_closed(&failure) => Err(closed),
            (Err(failure), _) => Err(failure),
        }
    }
}

async fn page_metrics(cx: &Session<'_>, id: &str, metrics: &mut Metrics) -> Result<()> {
    let page = encode(&format!("urn:li:organization:{}", cx.account.network_unique_id));
    let list = if id.contains(":ugcPost:") { "ugcPosts" } else { "shares" };
    let address = format!(
        "{REST}/organizationalEntityShareStatistics?q=organizationalEntity&organizationalEntity={page}&{list}=List({})",
        encode(id)
    );
    let answer: Elements<Statistics> = finder(cx.get(address)).send().await?;
    // A post that nobody saw yet is left out.
    if let Some(Statistics { total }) = answer.elements.into_iter().next() {
        let count = |figure: i64| u64::try_from(figure).unwrap_or(0);
        *metrics = Metrics {
            impressions: count(total.impression_count),
            reach: count(total.unique_impressions_count),
            likes: count(total.like_count).max(metrics.likes),
            comments: count(total.comment_count).max(metrics.comments),
            shares: count(total.share_count),
            clicks: count(total.click_count),
            ..*metrics
        };
    }
    if id.contains(":ugcPost:") {
        let address = format!(
            "{REST}/videoAnalytics?q=entity&entity={}&type=VIDEO_VIEW&aggregation=ALL",
            encode(id)
        );
        let views: Elements<Count> = finder(cx.get(address)).send().await?;
        metrics.video_views = views.elements.first().map_or(0, Count::number);
    }
    Ok(())
}

async fn member_metrics(cx: &Session<'_>, id: &str, metrics: &mut Metrics) -> Result<()> {
    if !has(cx, &["r_member_postAnalytics"]) {
        return Err(Failure::rejected(403, "the figures of a member's posts need r_member_postAnalytics"));
    }
    let kind = if id.contains(":ugcPost:") { "ugc" } else { "share" };
    let entity = format!("({kind}:{})", encode(id));
    let one = async |query: &str| -> Result<u64> {
        let address = format!(
            "{REST}/memberCreatorPostAnalytics?q=entity&entity={entity}&queryType={query}&aggregation=TOTAL"
        );
        let answer: Elements<Count> = finder(cx.get(address)).send().await?;
        Ok(answer.elements.first().map_or(0, Count::number))
    };
    metrics.impressions = one("IMPRESSION").await?;
    metrics.reach = one("MEMBERS_REACHED").await?;
    metrics.shares = one("RESHARE").await?;
    metrics.likes = one("REACTION").await?.max(metrics.likes);
    metrics.comments = one("COMMENT").await?.max(metrics.comments);
    // Known to newer versions only.
    for (query, figure) in [("POST_SAVE", &mut metrics.saves), ("LINK_CLICKS", &mut metrics.clicks)] {
        *figure = match one(query).await {
            Err(failure) if is_closed(&failure) => return Ok(()),
            answer => answer?,
        };
    }
    Ok(())
}

#[async_trait]
impl History for LinkedIn {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        let start = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let page = list(cx, &own(cx), start, 100).await?;
        let next = page.next(start).map(|next| next.to_string());
        let posts = page.elements.into_iter().map(|post| RemotePost {
            url: address(cx, &post.id),
            text: plain(&post.commentary),
            media: Vec::new(),
            published_at: post.at().unwrap_or_default(),
            metrics: Metrics::default(),
            id: post.id,
        });
        Ok(Page { posts: posts.collect(), next })
    }
}

#[async_trait]
impl Deletion for LinkedIn {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let address = match comment_parts(id) {
            Some((post, comment)) => {
                let address = format!("{REST}/socialActions/{}/comments/{comment}", encode(post));
                // The page's own word is needed where the member commented for it.
                let actor = match rest(cx.get(&address)).send::<Made>().await {
                    Ok(comment) => comment.actor,
                    Err(failure) if failure.code == ErrorCode::Rejected(404) => return Ok(()),
                    Err(failure) if is_closed(&failure) => own(cx),
                    Err(failure) => return Err(failure),
                };
                format!("{address}?actor={}", encode(&actor))
            }
            None => format!("{REST}/posts/{}", encode(id)),
        };
        match rest(cx.delete(address)).header("X-RestLi-Method", "DELETE").done().await {
            Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(()),
            answer => answer,
        }
    }
}

#[async_trait]
impl Options for LinkedIn {
    fn kinds(&self) -> &'static [&'static str] {
        &["organizations"]
    }

    async fn options(&self, cx: &Session<'_>, kind: &str, _parent: Option<&str>) -> Result<Vec<SelectOption>> {
        match kind {
            "organizations" => Ok(pages(cx)
                .await?
                .into_iter()
                .map(|page| SelectOption { id: page.network_unique_id, name: page.display_name })
                .collect()),
            _ => Err(Failure::rejected(422, format!("LinkedIn has no list of {kind}"))),
        }
    }
}

/// The headers that every versioned call carries.
fn rest(call: Call) -> Call {
    call.header("LinkedIn-Version", VERSION).header("X-Restli-Protocol-Version", "2.0.0")
}

fn finder(call: Call) -> Call {
    rest(call).header("X-RestLi-Method", "FINDER")
}

/// A URN as it stands in a path or a query; the parentheses around it stay as they are.
fn encode(urn: &str) -> String {
    url::form_urlencoded::byte_serialize(urn.as_bytes()).collect()
}

fn has(cx: &Session<'_>, scopes: &[&str]) -> bool {
    scopes.iter().any(|scope| cx.grant.scopes.iter().any(|granted| granted == scope))
}

fn is_page(cx: &Session<'_>) -> bool {
    cx.account.account_type == "organization"
}

/// Whether a list is not for this app, or not for anyone.
fn is_closed(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::Rejected(400 | 403))
}

/// The account's own URN.
fn own(cx: &Session<'_>) -> String {
    let kind = if is_page(cx) { "organization" } else { "person" };
    format!("urn:li:{kind}:{}", cx.account.network_unique_id)
}

/// Who a post is by: the account, or the page that it posts for.
fn author(cx: &Session<'_>, post: &Publication) -> String {
    match setting(post, "organization_id") {
        Some(page) => format!("urn:li:organization:{page}"),
        None => own(cx),
    }
}

/// The pages that the member may post for.
async fn pages(cx: &Session<'_>) -> Result<Vec<Identity>> {
    const ROLES: [&str; 5] = [
        "ADMINISTRATOR",
        "CONTENT_ADMINISTRATOR",
        "CONTENT_ADMIN",
        "DIRECT_SPONSORED_CONTENT_POSTER",
        "RECRUITING_POSTER",
    ];
    let (mut start, mut ids) = (0, Vec::new());
    loop {
        let address =
            format!("{REST}/organizationAcls?q=roleAssignee&state=APPROVED&start={start}&count=100");
        let found: Elements<Role> = finder(cx.get(address)).send().await?;
        let next = found.next(start);
        for role in found.elements.into_iter().filter(|role| ROLES.contains(&role.role.as_str())) {
            if let Some(id) = role.organization.rsplit(':').next().map(str::to_owned)
                && !ids.contains(&id)
            {
                ids.push(id);
            }
        }
        match next {
            Some(next) => start = next,
            None => break,
        }
    }
    let mut all = Vec::new();
    for ids in ids.chunks(BATCH) {
        let address = format!("{REST}/organizations?ids=List({})", ids.join(","));
        let call = rest(cx.get(address)).header("X-RestLi-Method", "BATCH_GET");
        let mut pages: Batch<Organization> = call.send().await?;
        // One that LinkedIn does not describe to this role can be posted for all the same.
        all.extend(ids.iter().map(|id| pages.results.remove(id).unwrap_or_default().identity(id)));
    }
    Ok(all)
}

async fn page(cx: &Session<'_>, id: &str) -> Result<Organization> {
    rest(cx.get(format!("{REST}/organizations/{id}"))).send().await
}

fn setting<'a>(post: &'a Publication, key: &str) -> Option<&'a str> {
    post.settings[key].as_str().filter(|text| !text.is_empty())
}

fn is_picture(kind: MediaKind) -> bool {
    matches!(kind, MediaKind::Image | MediaKind::Gif)
}

/// What no table can say about a container: a stable name of what is wrong, and words for people.
fn fits(media: &[Media], settings: &Value) -> Result<(), (&'static str, String)> {
    for media in media.iter().filter(|media| is_picture(media.kind)) {
        let pixels = u64::from(media.width.unwrap_or(0)) * u64::from(media.height.unwrap_or(0));
        if pixels >= PIXELS {
            let message = format!("linkedin takes pictures of less than {PIXELS} pixels, and this has {pixels}");
            return Err(("media_dimensions", message));
        }
    }
    if settings["link"].is_object() && (media.len() > 1 || !media.iter().all(|media| is_picture(media.kind))) {
        let message = "linkedin takes one picture with a link, for its card, and no other media";
        return Err(("settings_conflict", message.to_owned()));
    }
    Ok(())
}

/// The body of the publishing call.
fn body(author: &str, post: &Publication, step: &Step) -> Value {
    let is_by_page = author.contains(":organization:");
    let visibility = setting(post, "visibility").filter(|_| !is_by_page).unwrap_or("PUBLIC");
    let mut body = json!({
        "author": author,
        "commentary": little(&post.text),
        "visibility": visibility,
        "distribution": {
            "feedDistribution": "MAIN_FEED",
            "targetEntities": [],
            "thirdPartyDistributionChannels": [],
        },
        "lifecycleState": "PUBLISHED",
        "isReshareDisabledByAuthor": post.settings["isReshareDisabledByAuthor"] == true,
    });
    if let Some(content) = content(post, step) {
        body["content"] = content;
    }
    if let Some(parent) = setting(post, "reshare") {
        body["reshareContext"] = json!({ "parent": parent });
    }
    body
}

fn content(post: &Publication, step: &Step) -> Option<Value> {
    let alt = |media: &Media| media.alt_text.clone().filter(|alt| !alt.is_empty());
    let link = &post.settings["link"];
    if link.is_object() {
        let mut article = Map::new();
        for (key, name) in [("url", "source"), ("title", "title"), ("description", "description")] {
            if let Some(text) = link[key].as_str().filter(|text| !text.is_empty()) {
                article.insert(name.into(), json!(text));
            }
        }
        if let (Some(media), Some(upload)) = (post.media.first(), step.uploads.first()) {
            article.insert("thumbnail".into(), json!(upload.urn));
            article.extend(alt(media).map(|alt| ("thumbnailAltText".into(), json!(alt))));
        }
        return Some(json!({ "article": article }));
    }
    let poll = &post.settings["poll"];
    if poll.is_object() {
        let options = poll["options"].as_array().into_iter().flatten();
        return Some(json!({ "poll": {
            "question": poll["question"],
            "options": options.map(|text| json!({ "text": text })).collect::<Vec<_>>(),
            "settings": { "duration": poll["duration"].as_str().unwrap_or("THREE_DAYS") },
        } }));
    }
    let described = |media: &Media, upload: &Upload| {
        let mut one = json!({ "id": upload.urn });
        if let Some(alt) = alt(media) {
            one["altText"] = json!(alt);
        }
        one
    };
    match (post.media.as_slice(), step.uploads.as_slice()) {
        ([media], [upload]) => {
            let mut one = match media.kind {
                kind if is_picture(kind) => described(media, upload),
                _ => json!({ "id": upload.urn }),
            };
            let title = setting(post, "title").map(str::to_owned);
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

fn comment(author: &str, post: &Publication, root: &str, step: &Step) -> Value {
    let mut body = json!({ "actor": author, "object": root, "message": { "text": post.text } });
    if let Some(upload) = step.uploads.first() {
        body["content"] = json!([{ "entity": { "image": upload.urn } }]);
    }
    body
}

/// What LinkedIn has for a kind of media.
fn collection(kind: MediaKind) -> Result<(&'static str, &'static str)> {
    match kind {
        MediaKind::Image | MediaKind::Gif => Ok(("images", "image")),
        MediaKind::Video => Ok(("videos", "video")),
        MediaKind::Document => Ok(("documents", "document")),
        MediaKind::Audio => Err(Failure::rejected(415, "LinkedIn takes no media of kind audio")),
    }
}

/// Begins an upload; what is not a video is sent right away, in one piece.
async fn begin(cx: &Session<'_>, media: &Media, author: &str) -> Result<Upload> {
    let (plural, name) = collection(media.kind)?;
    let mut request = json!({ "owner": author });
    if media.kind == MediaKind::Video {
        request["fileSizeBytes"] = json!(media.size_bytes);
        request["uploadCaptions"] = json!(false);
        request["uploadThumbnail"] = json!(false);
    }
    let begun: Begun = rest(cx.post(format!("{REST}/{plural}?action=initializeUpload")))
        .json(&json!({ "initializeUploadRequest": request }))
        .send()
        .await?;
    let value = begun.value;
    let urn = value[name].as_str();
    let nameless = || {
        let message = format!("LinkedIn began the upload of a {name} and gave nothing to send it to");
        Failure { doubt: false, ..Failure::upstream(502, message) }
    };
    let urn = urn.ok_or_else(nameless)?.to_owned();
    let stage = if media.kind == MediaKind::Video {
        let ends = value["uploadUrlsExpireAt"].as_i64().and_then(DateTime::from_timestamp_millis);
        let parts: Vec<Part> = serde_json::from_value(value["uploadInstructions"].clone())
            .map_err(|error| Failure { doubt: false, ..Failure::upstream(502, error.to_string()) })?;
        let token = value["uploadToken"].as_str().unwrap_or_default().to_owned();
        Stage::Parts { parts, tags: Vec::new(), token, ends }
    } else {
        let address = value["uploadUrl"].as_str().ok_or_else(nameless)?;
        cx.put(address).upload(&media.mime, media.size_bytes, cx.stream(media)).done().await?;
        Stage::Sent
    };
    Ok(Upload { media: media.id, urn, stage })
}

/// Sends one piece of a video, and gives the tag that names it when the upload is ended.
async fn send_part(cx: &Session<'_>, media: &Media, part: &Part) -> Result<String> {
    let end = (part.last + 1).min(media.size_bytes);
    let length = end.saturating_sub(part.first);
    let body = cx.slice(media, part.first..end);
    let call = cx.put(&part.address).anonymous();
    let reply = call.upload("application/octet-stream", length, body).reply().await?;
    let tag = reply.header("etag").map(|tag| tag.trim_matches('"').to_owned());
    let tag = tag.filter(|tag| !tag.is_empty());
    tag.ok_or_else(|| Failure { doubt: false, ..Failure::upstream(502, "a piece of the video got no ETag") })
}

async fn finalize(cx: &Session<'_>, urn: &str, token: &str, tags: &[String]) -> Result<()> {
    rest(cx.post(format!("{REST}/videos?action=finalizeUpload")))
        .json(&json!({ "finalizeUploadRequest": {
            "video": urn, "uploadToken": token, "uploadedPartIds": tags,
        } }))
        .done()
        .await
}

async fn status(cx: &Session<'_>, kind: MediaKind, urn: &str) -> Result<Status> {
    let (plural, _) = collection(kind)?;
    let now: Result<Processing> = rest(cx.get(format!("{REST}/{plural}/{}", encode(urn)))).send().await;
    match now {
        Ok(Processing { status, reason }) => Ok(match status.as_str() {
            "AVAILABLE" => Status::Ready,
            "PROCESSING_FAILED" => Status::Failed(reason.unwrap_or_else(|| "it does not say why".into())),
            _ => Status::Busy,
        }),
        // Who may only write may not look; a post that comes too early is refused and comes again.
        Err(failure) if failure.code == ErrorCode::Rejected(403) => Ok(Status::Ready),
        Err(failure) => Err(failure),
    }
}

/// One page of an author's posts, newest first.
async fn list(cx: &Session<'_>, author: &str, start: usize, count: usize) -> Result<Elements<Post>> {
    let author = encode(author);
    let address = format!("{REST}/posts?author={author}&q=author&count={count}&start={start}&sortBy=CREATED");
    finder(cx.get(address)).send().await
}

async fn find(
    cx: &Session<'_>,
    post: &Publication,
    author: &str,
    begun: DateTime<Utc>,
) -> Result<Located> {
    let wanted = squeeze(&post.text);
    let mut start = 0;
    for _ in 0..PAGES {
        let page = list(cx, author, start, 50).await?;
        let next = page.next(start);
        let is_past = page.elements.iter().any(|other| other.at().is_some_and(|at| at < begun - SKEW));
        let ours = page.elements.into_iter().filter(|other| {
            other.at().is_some_and(|at| at >= begun - SKEW)
                && squeeze(&plain(&other.commentary)) == wanted
                && other.has_media() == (!post.media.is_empty() || post.settings["link"].is_object())
                && !post.is_taken(&other.id)
        });
        let nearest =
            ours.min_by_key(|other| other.at().map_or(TimeDelta::MAX, |at| (at - begun).abs()));
        if let Some(other) = nearest {
            return Ok(Located::Live(other.id));
        }
        match next.filter(|_| !is_past) {
            Some(next) => start = next,
            None => return Ok(Located::Absent),
        }
    }
    // The author posted more since than is read here.
    Ok(Located::Unknown)
}

async fn find_comment(
    cx: &Session<'_>,
    post: &Publication,
    author: &str,
    root: &str,
    begun: DateTime<Utc>,
) -> Result<Located> {
    let mut start = 0;
    for _ in 0..PAGES {
        let address = format!("{REST}/socialActions/{}/comments?start={start}&count=100", encode(root));
        let page: Elements<Made> = rest(cx.get(address)).send().await?;
        let next = page.next(start);
        let ours = page.elements.into_iter().filter(|other| {
            other.actor == author
                && squeeze(&other.message.text) == squeeze(&post.text)
                && other.created.at().is_some_and(|at| at >= begun - SKEW)
                && !post.is_taken(&other.comment_urn)
        });
        let nearest =
            ours.min_by_key(|other| other.created.at().map_or(TimeDelta::MAX, |at| (at - begun).abs()));
        if let Some(other) = nearest {
            return Ok(Located::Live(other.comment_urn));
        }
        match next {
            Some(next) => start = next,
            None => return Ok(Located::Absent),
        }
    }
    // There are more comments than are read here, in no order that is documented.
    Ok(Located::Unknown)
}

fn address(cx: &Session<'_>, id: &str) -> String {
    cx.wire.route(&match comment_parts(id) {
        Some((post, _)) => {
            format!("https://www.linkedin.com/feed/update/{post}?commentUrn={}", encode(id))
        }
        None => format!("https://www.linkedin.com/feed/update/{id}/"),
    })
}

/// The post and the number of a comment's URN: `urn:li:comment:(urn:li:activity:1,2)`.
fn comment_parts(id: &str) -> Option<(&str, &str)> {
    id.strip_prefix("urn:li:comment:(")?.strip_suffix(')')?.split_once(',')
}

/// The post that a refusal as a duplicate names.
fn duplicate(reply: &Reply) -> Option<String> {
    static NAMED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"duplicate of (urn:li:(?:share|ugcPost):[0-9]+)").expect("a pattern"));
    (reply.status == 422).then(|| Some(NAMED.captures(&reply.text)?[1].to_owned())).flatten()
}

/// When a post came into being: its number begins with the milliseconds.
fn made_at(urn: &str) -> Option<DateTime<Utc>> {
    let number: i64 = urn.rsplit(':').next()?.parse().ok()?;
    DateTime::from_timestamp_millis(number >> 22)
}

/// LinkedIn's own words, with what its details add.
fn words(reply: &Reply) -> String {
    let message = classify::message(reply);
    let more = reply.body.pointer("/errorDetails/inputErrors/0/description").and_then(Value::as_str);
    match more.filter(|more| !message.contains(*more)) {
        Some(more) => format!("{message} ({more})"),
        None => message,
    }
}

/// Daily limits end at midnight UTC.
fn until_midnight(now: DateTime<Utc>) -> Duration {
    let midnight = (now.date_naive() + TimeDelta::days(1)).and_time(chrono::NaiveTime::MIN).and_utc();
    (midnight - now).to_std().unwrap_or_default()
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What stays as it is in little text: mentions in LinkedIn's own form. And hashtags, which have a form.
static ELEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    let mention = r"@\[[^\]\[\n]+\]\(urn:li:(?:person|organization):[A-Za-z0-9_-]+\)";
    Regex::new(&format!(r"(?P<mention>{mention})|#(?P<tag>[\p{{L}}\p{{N}}]+)")).expect("a pattern")
});

/// A text as little text.
/// <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/little-text-format>
fn little(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for found in ELEMENTS.captures_iter(text) {
        let whole = found.get(0).expect("a match is whole");
        // In the middle of a word it is no hashtag.
        let before = text[..whole.start()].chars().next_back();
        if found.name("tag").is_some() && before.is_some_and(|c| c.is_alphanumeric() || c == '/' || c == '&') {
            continue;
        }
        escape(&text[at..whole.start()], &mut out);
        match found.name("tag") {
            Some(tag) => out.push_str(&format!(r"{{hashtag|\#|{}}}", tag.as_str())),
            None => out.push_str(whole.as_str()),
        }
        at = whole.end();
    }
    escape(&text[at..], &mut out);
    out
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if RESERVED.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// A text that came as little text.
fn plain(text: &str) -> String {
    static HASHTAG: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{hashtag\|\\?#\|([^}]*)\}").expect("a pattern"));
    let text = HASHTAG.replace_all(text, r"\#${1}");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.extend(rest.next()),
            c => out.push(c),
        }
    }
    out
}

/// How far preparing has come: one entry per medium, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Step {
    #[serde(default)]
    uploads: Vec<Upload>,
    /// When the first call was begun whose answer was lost.
    #[serde(default)]
    doubted: Option<DateTime<Utc>>,
}

impl Step {
    /// Keeps in mind that a call was begun then. An earlier one stays: the post may be that one's.
    fn doubt(&mut self, begun: Option<DateTime<Utc>>) {
        self.doubted = self.doubted.into_iter().chain(begun).min();
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Upload {
    media: uuid::Uuid,
    urn: String,
    stage: Stage,
}

impl Upload {
    /// Whether it can't be gone on with.
    fn is_stale(&self, now: DateTime<Utc>) -> bool {
        matches!(&self.stage, Stage::Parts { ends: Some(ends), .. } if *ends < now + MARGIN)
    }
}

/// What is to be done next with an upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// A video's pieces, and the tags of those that are there.
    Parts { parts: Vec<Part>, tags: Vec<String>, token: String, ends: Option<DateTime<Utc>> },
    Sent,
    Ready,
}

/// A piece of a video, and where it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Part {
    #[serde(rename = "uploadUrl")]
    address: String,
    #[serde(rename = "firstByte")]
    first: u64,
    #[serde(rename = "lastByte")]
    last: u64,
}

enum Status {
    Ready,
    Busy,
    Failed(String),
}

#[derive(Deserialize)]
struct Begun {
    value: Value,
}

#[derive(Deserialize)]
struct Processing {
    status: String,
    #[serde(rename = "processingFailureReason")]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Member {
    sub: String,
    name: Option<String>,
    picture: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vanity {
    vanity_name: Option<String>,
}

#[derive(Deserialize)]
struct Role {
    organization: String,
    role: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Organization {
    localized_name: Option<String>,
    vanity_name: Option<String>,
}

impl Organization {
    /// The account that it is, under this id.
    fn identity(self, id: &str) -> Identity {
        let username = self.vanity_name.filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_owned());
        Identity {
            network_unique_id: id.to_owned(),
            display_name: self.localized_name.unwrap_or_else(|| username.clone()),
            profile_url: Some(format!("https://www.linkedin.com/company/{username}")),
            username,
            account_type: "organization".to_owned(),
            profile_image_url: None,
            grant: None,
        }
    }
}

/// What was found of what was asked for, by id.
#[derive(Deserialize)]
struct Batch<T> {
    results: HashMap<String, T>,
}

/// A list; where more follows, it links to it.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Elements<T> {
    #[serde(default = "Vec::new")]
    elements: Vec<T>,
    #[serde(default)]
    paging: Paging,
}

#[derive(Default, Deserialize)]
struct Paging {
    total: Option<usize>,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    rel: String,
}

impl<T> Elements<T> {
    /// Where the next page begins.
    fn next(&self, start: usize) -> Option<usize> {
        let next = start + self.elements.len();
        let is_more = self.paging.links.iter().any(|link| link.rel == "next")
            || self.paging.total.is_some_and(|total| total > next);
        (is_more && next > start).then_some(next)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Post {
    id: String,
    #[serde(default)]
    commentary: String,
    #[serde(default)]
    content: Value,
    created_at: Option<i64>,
    published_at: Option<i64>,
}

impl Post {
    fn at(&self) -> Option<DateTime<Utc>> {
        self.published_at.or(self.created_at).and_then(DateTime::from_timestamp_millis)
    }

    fn has_media(&self) -> bool {
        ["media", "multiImage", "article"].iter().any(|kind| !self.content[*kind].is_null())
    }
}

/// A comment, as it was made or is listed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    comment_urn: String,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    message: Message,
    #[serde(default)]
    created: Stamp,
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
    fn at(&self) -> Option<DateTime<Utc>> {
        self.time.and_then(DateTime::from_timestamp_millis)
    }
}

#[derive(Deserialize)]
struct Actions {
    #[serde(default, rename = "likesSummary")]
    likes: Likes,
    #[serde(default, rename = "commentsSummary")]
    comments: Comments,
}

#[derive(Default, Deserialize)]
struct Likes {
    #[serde(default, rename = "totalLikes")]
    total: u64,
}

#[derive(Default, Deserialize)]
struct Comments {
    #[serde(default, rename = "totalFirstLevelComments")]
    first_level: u64,
    #[serde(default, rename = "aggregatedTotalComments")]
    all: u64,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(rename = "totalShareStatistics")]
    total: Totals,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Totals {
    impression_count: i64,
    unique_impressions_count: i64,
    click_count: i64,
    like_count: i64,
    comment_count: i64,
    share_count: i64,
}

/// A figure, under either of the names that it goes by.
#[derive(Deserialize)]
struct Count {
    count: Option<u64>,
    value: Option<u64>,
}

impl Count {
    fn number(&self) -> u64 {
        self.count.or(self.value).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUPLICATE: &str = r#"{"errorDetailType":"com.linkedin.common.error.BadRequest","message":"com.linkedin.content.common.exception.BadRequestResponseException: Content is a duplicate of urn:li:share:7141138937766391808","errorDetails":{"inputErrors":[{"description":"Duplicate post is detected","input":{},"code":"DUPLICATE_POST"}]},"status":422}"#;

    #[test]
    fn each_documented_error_leads_to_what_is_to_be_done() {
        for (status, body, code, doubt) in [
            (401, r#"{"serviceErrorCode":65602,"message":"expired","status":401}"#, "token_expired", false),
            (401, r#"{"serviceErrorCode":65601,"code":"REVOKED_ACCESS_TOKEN"}"#, "token_expired", false),
            (401, r#"{"serviceErrorCode":65600,"message":"Invalid access token"}"#, "token_expired", false),
            (403, r#"{"serviceErrorCode":100,"code":"ACCESS_DENIED"}"#, "rejected_403", false),
            (422, DUPLICATE, "rejected_422", true),
            (422, r#"{"code":"FIELD_LENGTH_TOO_LONG"}"#, "rejected_422", false),
            (400, r#"{"message":"urn:li:video:1 is not ready"}"#, "upstream_503", false),
            (426, r#"{"code":"NONEXISTENT_VERSION"}"#, "rejected_426", false),
            (429, r#"{"serviceErrorCode":101,"code":"TOO_MANY_REQUESTS"}"#, "rate_limited", false),
            (500, "", "upstream_500", true),
            (504, "", "upstream_504", true),
        ] {
            let failure = Reply::of(status, &[], body).judge(&LinkedIn).unwrap_err();
            assert_eq!((failure.code.to_string().as_str(), failure.doubt), (code, doubt), "{status} {body}");
            assert!(!failure.revoked);
        }
    }

    #[test]
    fn a_daily_limit_is_waited_for_until_midnight() {
        let text = r#"{"code":"TOO_MANY_REQUESTS","message":"Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this resource is reached."}"#;
        let failure = Reply::of(429, &[], text).judge(&LinkedIn).unwrap_err();
        // 2027-01-15, 08:00.
        assert_eq!(failure.retry_after, Some(Duration::from_secs(16 * 3600)));
    }

    #[test]
    fn a_duplicate_names_its_original_and_that_its_age() {
        let urn = duplicate(&Reply::of(422, &[], DUPLICATE)).unwrap();
        assert_eq!(urn, "urn:li:share:7141138937766391808");
        assert_eq!(made_at(&urn).unwrap().date_naive().to_string(), "2023-12-14");
        assert_eq!(duplicate(&Reply::of(400, &[], DUPLICATE)), None);
    }

    #[test]
    fn little_text_escapes_what_is_reserved_and_keeps_hashtags_and_mentions() {
        for (text, expected) in [
            ("plain. text, & more!", "plain. text, & more!"),
            (r"a (b) [c] {d} <e> |*_~\", r"a \(b\) \[c\] \{d\} \<e\> \|\*\_\~\\"),
            ("#one and #zwei_drei", r"{hashtag|\#|one} and {hashtag|\#|zwei}\_drei"),
            ("a#b https://a.example/#c # d", r"a\#b https://a.example/\#c \# d"),
            ("me@example.com", r"me\@example.com"),
            (
                "with @[Some One](urn:li:person:aB_1-x) here",
                "with @[Some One](urn:li:person:aB_1-x) here",
            ),
        ] {
            assert_eq!(little(text), expected);
            assert_eq!(plain(&little(text)), text);
        }
        assert_eq!(plain("{hashtag|#|one}"), "#one");
    }

    #[test]
    fn a_post_carries_what_its_settings_say() {
        let post = Publication {
            target: domain::TargetId(uuid::Uuid::nil()),
            position: 0,
            text: "hello".into(),
            media: Vec::new(),
            settings: json!({
                "visibility": "CONNECTIONS", "isReshareDisabledByAuthor": true, "other": 1,
                "poll": { "question": "?", "options": ["a", "b"], "other": 1 },
            }),
            reply_to: None,
            created_at: DateTime::UNIX_EPOCH,
            commit_begun_at: None,
            taken: Vec::new(),
        };
        let sent = body("urn:li:person:1", &post, &Step::default());
        assert_eq!((&sent["visibility"], &sent["isReshareDisabledByAuthor"]), (&json!("CONNECTIONS"), &json!(true)));
        assert_eq!(
            sent["content"],
            json!({ "poll": {
                "question": "?", "options": [{ "text": "a" }, { "text": "b" }], "settings": { "duration": "THREE_DAYS" },
            } })
        );
        assert_eq!(body("urn:li:organization:1", &post, &Step::default())["visibility"], "PUBLIC");
    }
}
