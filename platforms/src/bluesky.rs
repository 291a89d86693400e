//! Bluesky, over the AT Protocol: <https://docs.bsky.app/docs/advanced-guides/posts>.
//!
//! The author chooses the key of a post's record. Deriving it from the target makes `commit` idempotent and
//! `locate` definite, because the account's own server has no read lag. A record is only created, never
//! overwritten.

mod captions;
mod video;

use crate::{
    AccountProfile, Adapter, AltTextLimit, Analytics, Auth, Cap, Checkpoint, Committed, Counted, Deletion,
    Grant, History, Idempotency, Identity, Limits, Located, Media, MediaKind, MediaLimit, Metrics, Page,
    Prepared, PublishRequest, Publisher, Publishing, RemotePost, Replies, Reply, Result, Session, Source,
    TextLimit, Window,
    check::{self, ContainerContent, Issue, Severity},
    classify,
    facets::{self, Meaning},
    look_up::{self, Findings, Subject},
    required, schema, text,
    upload::{self, Uploaded},
};
use async_trait::async_trait;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::{ErrorCode, Failure, TargetId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};
use url::{Host, Url};
use uuid::Uuid;

/// Bluesky. <https://docs.bsky.app>
struct Bluesky;

/// The default service of an account.
const SERVICE: &str = "https://bsky.social";
/// The public view of the whole network.
const PUBLIC: &str = "https://public.api.bsky.app";
/// The directory of `did:plc` identifiers: <https://web.plc.directory>.
const DIRECTORY: &str = "https://plc.directory";
const POST: &str = "app.bsky.feed.post";
/// Record that limits the replies to a post.
const THREADGATE: &str = "app.bsky.feed.threadgate";
/// Record that limits the quotes of a post.
const POSTGATE: &str = "app.bsky.feed.postgate";
/// Prefix of the cursors of a list at the account's own server.
const OWN_LIST: &str = "repo:";
const IMAGES: MediaLimit = MediaLimit {
    kind: MediaKind::Image,
    count: 0..=10,
    mimes: &["image/jpeg", "image/png", "image/webp"],
    max_bytes: 2_000_000,
    ..MediaLimit::ANY
};
/// The video service makes a video of it.
const GIFS: MediaLimit = MediaLimit {
    kind: MediaKind::Gif,
    count: 0..=1,
    mimes: &["image/gif"],
    max_bytes: 300_000_000,
    ..MediaLimit::ANY
};
/// The limits of the official app since August 2026, for every account. The service transcodes each video. The app has raised
/// its maximum length twice, from one minute and from three, so a longer video is sent, with a warning.
/// <https://github.com/bluesky-social/social-app/pull/11528>
const VIDEOS: MediaLimit = MediaLimit {
    kind: MediaKind::Video,
    count: 0..=1,
    mimes: &["video/mp4", "video/quicktime", "video/webm"],
    max_bytes: 300_000_000,
    usual_duration: Some(Duration::from_secs(600)),
    ..MediaLimit::ANY
};
/// Media of a post with a link card, whose picture may be smaller only (`thumb` of `app.bsky.embed.external`).
static WITH_CARD: &[MediaLimit] = &[MediaLimit { max_bytes: 1_000_000, ..IMAGES }, GIFS, VIDEOS];

/// Age from which an unused blob is uploaded again, because the server may have deleted it.
const BLOB_TTL: TimeDelta = TimeDelta::minutes(30);

pub(crate) static ADAPTER: Adapter = Adapter {
    id: "bluesky",
    name: "Bluesky",
    limits: Limits {
        text: TextLimit {
            max: 300,
            usual: None,
            unit: "graphemes",
            count: text::graphemes,
            max_bytes: Some(3000),
        },
        media: &[IMAGES, GIFS, VIDEOS],
        // Bluesky's own client allows this much; the protocol has no limit.
        alt_text: Some(AltTextLimit {
            max: 2000,
            kinds: &[MediaKind::Image, MediaKind::Gif, MediaKind::Video],
        }),
        replies: Replies::Thread,
        reply_settings: &["labels", "languages", "shorten_links"],
        publishing: Publishing::Asynchronous { window: Duration::from_secs(600) },
        idempotency: Idempotency::Idempotent,
        sources: &[Source { url: "https://docs.bsky.app/docs/advanced-guides/posts", checked: "2026-11-21" }],
        ..Limits::DEFAULT
    },
    auth: Auth::AppPassword { service: SERVICE },
    settings: schema::of::<Settings>,
    publisher: &Bluesky,
    analytics: Some(&Bluesky),
    history: Some(&Bluesky),
    deletion: Some(&Bluesky),
    editing: Err("Bluesky's apps show a post as it was first published"),
    options: None,
    // 5,000 points an hour and 35,000 a day; creating a record costs 3.
    caps: &[
        Cap {
            name: "posts_hourly",
            limit: 1666,
            window: Window::Rolling(Duration::from_hours(1)),
            counts: Counted::All,
        },
        Cap {
            name: "posts_daily",
            limit: 11666,
            window: Window::Rolling(Duration::from_hours(24)),
            counts: Counted::All,
        },
    ],
    usage: None,
};

#[derive(Deserialize, JsonSchema)]
struct Settings {
    /// Languages of the text (BCP 47).
    #[schemars(length(max = 3), inner(length(min = 2), regex(pattern = schema::LANGUAGE)))]
    languages: Option<Vec<String>>,
    /// Content warnings.
    #[schemars(length(max = 10))]
    labels: Option<Vec<Label>>,
    /// Additional tags, without #.
    #[schemars(length(max = 8), inner(length(min = 1, max = 64)))]
    tags: Option<Vec<text::Bare>>,
    /// A link card below the text of the first post. The post's only image, if there is one, is the card's picture.
    link: Option<Card>,
    /// Who may reply, in addition to the author: accounts that the post mentions (`mentioned`), that follow the
    /// author (`followers`), or that the author follows (`following`). Nobody if the list is empty, everybody
    /// without it.
    #[schemars(length(max = 3))]
    allow_replies_from: Option<Vec<ReplyRule>>,
    /// Prevents quotes of the post.
    disable_quotes: Option<bool>,
    /// The post to quote: its at:// URI or its bsky.app URL.
    #[schemars(regex(pattern = "^(at://|https://bsky\\.app/profile/)[^/]+/[^/]+/[^/]+$"))]
    quote: Option<String>,
    /// Shows links as Bluesky's own app does: without their scheme, and with a long path cut. They lead to the whole
    /// address, and the text's length is that of what is shown.
    shorten_links: Option<bool>,
    /// Captions of the first post's video, one file for each language.
    #[schemars(length(max = captions::MAX_TRACKS), extend("kinds" = ["video"]))]
    captions: Option<Vec<captions::Caption>>,
}

impl Settings {
    /// Returns a text as it is shown, and its links, mentions and tags.
    fn shown<'a>(&self, text: &'a str) -> (Cow<'a, str>, Vec<facets::Span>) {
        if self.shorten_links == Some(true) {
            let (short, spans) = facets::shortened(text);
            return (Cow::Owned(short), spans);
        }
        (Cow::Borrowed(text), facets::spans(text))
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Label {
    Sexual,
    Nudity,
    Porn,
    GraphicMedia,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
// No doc comments: the schema would be a choice of constants, which OpenAPI 3.0 does not have.
enum ReplyRule {
    Mentioned,
    Followers,
    Following,
}

#[derive(Deserialize, JsonSchema)]
struct Card {
    #[schemars(extend("format" = "uri"))]
    url: String,
    title: Option<String>,
    description: Option<String>,
}

#[async_trait]
impl Publisher for Bluesky {
    fn validate(&self, containers: &[ContainerContent<'_>], settings: &Value) -> Vec<Issue> {
        let (Some(main), Ok(settings)) = (containers.first(), schema::read::<Settings>(settings)) else {
            return Vec::new();
        };
        let mut found = captions::issues(&settings);
        match (settings.link, main.media) {
            (None, _) | (_, []) => {}
            (_, [only]) if only.kind == MediaKind::Image => {
                let has_alt_text = only.alt_text.as_ref().is_some_and(|alt| !alt.is_empty());
                let message = || "bluesky shows no alt text of a link card's picture".to_owned();
                found.extend(has_alt_text.then(|| check::alt_text_left_out(0, message())));
            }
            _ => {
                let message = "bluesky takes one image with a link card, its picture".to_owned();
                found.push(Issue::of_main(Severity::Error, "settings_conflict", "media", message));
            }
        }
        found
    }

    fn sent_text<'a>(&self, _position: usize, text: &'a str, settings: &Value) -> Cow<'a, str> {
        match schema::read::<Settings>(settings) {
            Ok(settings) => settings.shown(text).0,
            Err(_) => Cow::Borrowed(text),
        }
    }

    fn media_limits(
        &self,
        _account_type: &str,
        position: usize,
        settings: &Value,
    ) -> Option<&'static [MediaLimit]> {
        let settings = schema::read::<Settings>(settings).ok()?;
        (position == 0 && settings.link.is_some()).then_some(WITH_CARD)
    }

    fn classify(&self, reply: &Reply) -> Option<Failure> {
        if reply.status.is_success() {
            return None;
        }
        let status = reply.status.as_u16();
        let name = reply.body["error"].as_str().unwrap_or_default();
        let message = match reply.body["message"].as_str() {
            Some(message) if !name.is_empty() => format!("{name}: {message}"),
            _ => classify::message(reply),
        };
        match (status, name) {
            // The account itself is disabled; a new token does not help.
            (
                400..=499,
                "AccountTakedown" | "AccountDeactivated" | "AccountSuspended" | "RepoTakendown"
                | "RepoDeactivated" | "RepoSuspended",
            ) => Some(Failure::rejected(status, message)),
            (400, "ExpiredToken" | "InvalidToken") | (401, _) => Some(Failure::token_expired(message)),
            (429, _) => {
                let wait =
                    classify::retry_after(reply).or_else(|| classify::until_epoch(reply, "ratelimit-reset"));
                Some(Failure::rate_limited(message, wait))
            }
            (408 | 425, _) => None,
            (400..=499, _) => Some(Failure::rejected(status, message)),
            _ => None,
        }
    }

    /// Lists the identity that the session's server claims, if its document names that server and its handle
    /// resolves to it: a server may claim any identity.
    async fn identities(&self, cx: &Session<'_>) -> Result<Vec<Identity>> {
        let home = home_server(cx)?;
        let me = session_account(cx, &home).await?;
        let document = Document::of(cx, &me.did).await?;
        document.admit(&home)?;
        let handle = document.handle(cx).await?;
        // A new account may have no profile yet.
        let profile: Profile = match cx
            .get(format!("{home}/xrpc/app.bsky.actor.getProfile"))
            .query(&[("actor", &me.did)])
            .send()
            .await
        {
            Err(failure) if failure.code.is_permanent() => Profile::default(),
            profile => profile?,
        };
        Ok(vec![Identity {
            profile: AccountProfile {
                display_name: profile
                    .display_name
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(|| handle.clone()),
                profile_url: Some(format!("https://bsky.app/profile/{}", me.did)),
                profile_image_url: profile.avatar,
                network_unique_id: me.did,
                username: handle,
                account_type: "profile".to_owned(),
            },
            grant: None,
        }])
    }

    /// Makes one call only: the identity was verified when the account was connected.
    async fn health(&self, cx: &Session<'_>) -> Result<()> {
        let me = session_account(cx, &home_server(cx)?).await?;
        is_account(cx, &me.did)
    }

    /// Refreshes the session, or creates one from the login in `extra`: `identifier`, `app_password` and, if the
    /// user named it, `service`.
    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        let mut refusal = None;
        if let Some(token) = cx.grant.refresh_token() {
            let service = session_service(cx.grant)?;
            let address = format!("{service}/xrpc/com.atproto.server.refreshSession");
            let reply = cx.post(address).bearer(token).send_raw().await?;
            match reply.status.as_u16() {
                200..=299 => {
                    let tokens: Tokens = reply.read_secrets()?;
                    // Only the entryway may move an account, to another of its servers.
                    let moved = pds_endpoint(&tokens.did_doc).filter(|_| service == SERVICE);
                    let pds = moved.map(public_origin).transpose()?;
                    return grant_of(cx, tokens, pds);
                }
                // Refused: the password may still create a new session.
                400..=407 | 409..=424 | 426..=428 | 430..=499 if reply.body.is_object() => {
                    refusal = Some(reply);
                }
                _ => return Err(unlisted(cx, reply)),
            }
        }
        let secret = |key: &str| cx.grant.extra[key].as_str().filter(|value| !value.is_empty());
        let (Some(identifier), Some(password)) = (secret("identifier"), secret("app_password")) else {
            return Err(match refusal {
                Some(reply) if !says_one_of(&reply, &ENDED_SESSION) => unlisted(cx, reply),
                _ => {
                    Failure::revoked("the session has ended, and no app password is stored to begin another")
                }
            });
        };
        let service = match named_service(cx.grant) {
            Some(service) => public_origin(service)?,
            None => service_of(cx, identifier).await?,
        };
        let reply = cx
            .post(format!("{service}/xrpc/com.atproto.server.createSession"))
            .authorized_otherwise()
            .json(&json!({ "identifier": identifier, "password": password }))
            .send_raw()
            .await?;
        match reply.status.as_u16() {
            200..=299 => {
                let tokens: Tokens = reply.read_secrets()?;
                let document = Document::of(cx, &tokens.did).await?;
                document.admit(&service)?;
                grant_of(cx, tokens, Some(document.pds))
            }
            _ if says_one_of(&reply, &REFUSED_LOGIN) => Err(Failure::revoked(classify::message(&reply))),
            _ => Err(unlisted(cx, reply)),
        }
    }

    async fn revoke(&self, cx: &Session<'_>) -> Result<()> {
        let Some(token) = cx.grant.refresh_token.as_deref() else { return Ok(()) };
        let address = format!("{}/xrpc/com.atproto.server.deleteSession", session_service(cx.grant)?);
        match cx.post(address).bearer(token).send_ok().await {
            // The session has expired already.
            Err(failure) if failure.code == ErrorCode::TokenExpired => Ok(()),
            answer => answer,
        }
    }

    fn looks_up(&self, subject: &Subject) -> bool {
        schema::read::<Settings>(&subject.settings).is_ok_and(|settings| settings.quote.is_some())
    }

    async fn look_up(&self, cx: &Session<'_>, subject: &Subject, found: &mut Findings) -> Result<()> {
        let settings: Settings = schema::read(&subject.settings)?;
        if let Some(quote) = &settings.quote
            && quoted_post(cx, &home_server(cx)?, quote).await?.is_none()
        {
            found.error(look_up::NOT_FOUND, "quote", &format!("has no post {quote} to quote"));
        }
        Ok(())
    }

    async fn prepare(&self, cx: &Session<'_>, post: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let home = home_server(cx)?;
        let mut step: Step = at.read()?;
        // Feeds sort by this time, so it is the publishing time. Fixed, so that a repeated call is identical.
        step.created_at.get_or_insert((cx.now)());
        if let (Some(reply), None) = (&post.reply_to, &step.reply) {
            let root = strong_ref(cx, &home, &reply.root).await?;
            let parent = if reply.parent == reply.root {
                root.clone()
            } else {
                strong_ref(cx, &home, &reply.parent).await?
            };
            step.reply = Some(Reference { root, parent });
            cx.save(&step).await?;
        }
        let settings: Settings = post.settings()?;
        if let (None, None, Some(quote)) = (&post.reply_to, &step.quote, &settings.quote) {
            let missing = || Failure::rejected(404, format!("the quoted post {quote} does not exist"));
            step.quote = Some(quoted_post(cx, &home, quote).await?.ok_or_else(missing)?);
            cx.save(&step).await?;
        }
        for span in facets::spans(&post.text) {
            if let Meaning::Mention(handle) = span.meaning
                && !step.mentions.contains_key(&handle)
            {
                let did = resolve_handle(cx, &home, &handle).await?;
                step.mentions.insert(handle, did);
                cx.save(&step).await?;
            }
        }
        if post.reply_to.is_none() && !step.is_gated {
            // Before the post, so that nobody replies to it or quotes it meanwhile.
            let gates = gate_records(cx, post, &settings, &step);
            step.is_gated = !gates.is_empty();
            for (collection, record) in gates {
                cx.post(format!("{home}/xrpc/com.atproto.repo.putRecord"))
                    .json(&json!({
                        "repo": cx.account.network_unique_id,
                        "collection": collection,
                        "rkey": record_key(post),
                        "record": record,
                    }))
                    .send_ok()
                    .await?;
            }
            if step.is_gated {
                cx.save(&step).await?;
            }
        }
        // Last, because blobs without a record are deleted soon.
        let pause = upload::advance(self, cx, &post.media, &mut step, |step| &mut step.blobs).await?;
        if pause.is_none() && post.reply_to.is_none() {
            captions::upload(cx, &home, &settings, &post.media, &mut step).await?;
        }
        Ok(upload::prepared(&step, pause))
    }

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let step: Step = at.read()?;
        let home = home_server(cx)?;
        let record = record(post, &post.settings()?, &step);
        let reply = cx
            .post(format!("{home}/xrpc/com.atproto.repo.putRecord"))
            .json(&json!({
                "repo": cx.account.network_unique_id,
                "collection": POST,
                "rkey": record_key(post),
                "record": record,
                // Only if the record does not exist yet.
                "swapRecord": null,
            }))
            .send_raw()
            .await?;
        match reply.body["error"].as_str() {
            Some("InvalidSwap") => match find_record(cx, &home, &record_key(post)).await? {
                Some(found) if is_same(&found.value, &record) => Ok(Committed::Live(found.uri)),
                _ => Err(Failure::rejected(400, "another record has taken the key of this post")),
            },
            // An upload was dropped before it was used. The next attempt uploads it again.
            Some("BlobNotFound") if !step.blobs.is_empty() => {
                cx.save(&Step { blobs: Vec::new(), captions: Vec::new(), ..step }).await?;
                Err(Failure::upstream(502, classify::message(&reply)).certain())
            }
            _ => {
                let written: Written = reply.into_result(cx.platform)?.read()?;
                Ok(Committed::Live(written.uri))
            }
        }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let step: Step = at.read()?;
        let found = find_record(cx, &home_server(cx)?, &record_key(post)).await?;
        Ok(match found {
            // Nothing else has the key, and without the checkpoint the blobs are unknown.
            Some(found)
                if post.is_restored || is_same(&found.value, &record(post, &post.settings()?, &step)) =>
            {
                Located::certain(found.uri)
            }
            _ => Located::Absent,
        })
    }

    async fn permalink(&self, cx: &Session<'_>, id: &str) -> Result<String> {
        Ok(address(cx, id))
    }
}

#[async_trait]
impl Analytics for Bluesky {
    async fn metrics(&self, cx: &Session<'_>, id: &str) -> Result<Metrics> {
        match get_post(cx, id).await? {
            Some(post) => Ok(post.metrics()),
            None => Err(Failure::rejected(404, format!("post {id} is not there"))),
        }
    }
}

#[async_trait]
impl History for Bluesky {
    async fn page(&self, cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
        if let Some(cursor) = cursor.and_then(|cursor| cursor.strip_prefix(OWN_LIST)) {
            return own_page(cx, Some(cursor)).await;
        }
        let call = cx.get(format!("{PUBLIC}/xrpc/app.bsky.feed.getAuthorFeed")).without_grant().query(&[
            ("actor", cx.account.network_unique_id.as_str()),
            ("limit", "100"),
            ("filter", "posts_no_replies"),
        ]);
        let feed: Result<Feed> = match cursor {
            Some(cursor) => call.query(&[("cursor", cursor)]).send().await,
            None => call.send().await,
        };
        let feed = match feed {
            // The account's server is not part of the public network.
            Err(failure) if cursor.is_none() && failure.code == ErrorCode::Rejected(400) => {
                return own_page(cx, None).await;
            }
            feed => feed?,
        };
        // An item with a reason is a repost, or a post that is listed a second time.
        let own = feed.feed.into_iter().filter(|item| item.reason.is_none()).map(|item| item.post);
        let posts = own.map(|post| RemotePost {
            url: address(cx, &post.uri),
            text: post.record["text"].as_str().unwrap_or_default().to_owned(),
            media: pictures(&post.embed),
            published_at: post.time(),
            metrics: post.metrics(),
            id: post.uri,
        });
        Ok(Page { items: posts.collect(), next: feed.cursor })
    }
}

/// Reads a page of the account's posts from its own server, which has no metrics.
/// <https://docs.bsky.app/docs/api/com-atproto-repo-list-records>
async fn own_page(cx: &Session<'_>, cursor: Option<&str>) -> Result<Page> {
    let did = cx.account.network_unique_id.as_str();
    let home = home_server(cx)?;
    let call = cx.get(format!("{home}/xrpc/com.atproto.repo.listRecords")).without_grant().query(&[
        ("repo", did),
        ("collection", POST),
        ("limit", "100"),
    ]);
    let list: Records = match cursor {
        Some(cursor) => call.query(&[("cursor", cursor)]).send().await?,
        None => call.send().await?,
    };
    let own = list.records.into_iter().filter(|post| post.value["reply"].is_null());
    let posts = own.map(|post| RemotePost {
        url: address(cx, &post.uri),
        text: post.value["text"].as_str().unwrap_or_default().to_owned(),
        media: blobs(&post.value["embed"])
            .map(|cid| format!("{home}/xrpc/com.atproto.sync.getBlob?did={did}&cid={cid}"))
            .collect(),
        published_at: created_at(&post.value).unwrap_or_default(),
        metrics: Metrics::default(),
        id: post.uri,
    });
    Ok(Page { items: posts.collect(), next: list.cursor.map(|cursor| format!("{OWN_LIST}{cursor}")) })
}

#[async_trait]
impl Deletion for Bluesky {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let rkey = split_uri(id)?.1;
        cx.post(format!("{}/xrpc/com.atproto.repo.deleteRecord", home_server(cx)?))
            .json(&json!({ "repo": cx.account.network_unique_id, "collection": POST, "rkey": rkey }))
            .send_ok()
            .await
    }
}

/// Errors of `refreshSession` that end a session.
/// <https://github.com/bluesky-social/atproto/blob/main/lexicons/com/atproto/server/refreshSession.json>
const ENDED_SESSION: [&str; 2] = ["ExpiredToken", "InvalidToken"];
/// Errors of `createSession` after which only the account's owner can log in: a wrong or deleted password, and a second
/// factor, for which app passwords are not asked.
/// <https://github.com/bluesky-social/atproto/blob/main/lexicons/com/atproto/server/createSession.json>
const REFUSED_LOGIN: [&str; 2] = ["AuthenticationRequired", "AuthFactorTokenRequired"];

fn says_one_of(reply: &Reply, words: &[&str]) -> bool {
    reply.status.is_client_error() && reply.body["error"].as_str().is_some_and(|word| words.contains(&word))
}

/// Returns the failure of a refresh or a login that was refused without one of the words that end the grant.
fn unlisted(cx: &Session<'_>, reply: Reply) -> Failure {
    let status = reply.status;
    let failure = reply.into_result(cx.platform).expect_err("it is no success");
    match failure.code {
        ErrorCode::TokenExpired => {
            Failure::network(format!("the server answered {status}: {failure}"), false)
        }
        _ => failure,
    }
}

/// Returns the service that the user named.
fn named_service(grant: &Grant) -> Option<&str> {
    grant.extra["service"].as_str().filter(|service| !service.is_empty())
}

/// Returns the service of the account's session: the one that the user named, else the account's server as it was
/// resolved for the session.
fn session_service(grant: &Grant) -> Result<String> {
    match (named_service(grant), grant.extra["pds"].as_str()) {
        (Some(service), _) => public_origin(service),
        (None, Some(pds)) => Ok(login_service(public_origin(pds)?)),
        (None, None) => Ok(SERVICE.to_owned()),
    }
}

/// Returns the service that creates sessions for a server: Bluesky's own servers have a common one.
fn login_service(pds: String) -> String {
    let host = pds.rsplit("//").next().unwrap_or_default();
    if host.ends_with(".host.bsky.network") { SERVICE.to_owned() } else { pds }
}

/// Resolves the service that creates sessions for a login: a handle leads to an identity, and its document to the
/// account's server. Bluesky's own service takes e-mail addresses, and logins that lead nowhere.
/// <https://atproto.com/guides/identity>
///
/// # Errors
///
/// When the identity can't be resolved now: another service would refuse the login, as if the password were wrong.
async fn service_of(cx: &Session<'_>, identifier: &str) -> Result<String> {
    // A connected account may have another handle by now.
    let known = Some(cx.account.network_unique_id.as_str()).filter(|did| !did.is_empty());
    let did = match known.or(Some(identifier).filter(|text| text.starts_with("did:"))) {
        Some(did) => Some(did.to_owned()),
        None => identity_of(cx, &identifier.to_lowercase()).await?,
    };
    let Some(did) = did else { return Ok(SERVICE.to_owned()) };
    match Document::of(cx, &did).await {
        Ok(document) => Ok(login_service(document.pds)),
        Err(failure) if failure.code.is_permanent() => Ok(SERVICE.to_owned()),
        Err(failure) => Err(failure),
    }
}

/// Returns the identity that a handle leads to, as Bluesky's own view sees it (by DNS or HTTPS) or as the handle's
/// host says.
async fn identity_of(cx: &Session<'_>, handle: &str) -> Result<Option<String>> {
    if !is_name(handle) {
        return Ok(None);
    }
    let seen = resolve_in_view(cx, handle).await;
    match seen {
        Ok(found) => Ok(Some(found.did)),
        Err(failure) => match resolve_at_host(cx, handle).await {
            Some(did) => Ok(Some(did)),
            None if failure.code.is_permanent() => Ok(None),
            None => Err(failure),
        },
    }
}

/// Resolves a handle in Bluesky's own view.
async fn resolve_in_view(cx: &Session<'_>, handle: &str) -> Result<Did> {
    cx.get(format!("{PUBLIC}/xrpc/com.atproto.identity.resolveHandle"))
        .without_grant()
        .query(&[("handle", handle)])
        .send()
        .await
}

/// Resolves a handle at its host.
async fn resolve_at_host(cx: &Session<'_>, handle: &str) -> Option<String> {
    let reply =
        cx.get(format!("https://{handle}/.well-known/atproto-did")).without_grant().send_raw().await.ok()?;
    let did = reply.text.trim();
    (reply.status.is_success() && did.starts_with("did:")).then(|| did.to_owned())
}

/// Returns the server that holds the account's records, as its session named it; until then the service,
/// which passes calls on.
fn home_server(cx: &Session<'_>) -> Result<String> {
    match cx.grant.extra["pds"].as_str() {
        Some(pds) => public_origin(pds),
        None => session_service(cx.grant),
    }
}

/// Returns the origin of an address that a user or their server gave: `https`, and a name to be resolved, so
/// that the resolver judges where it leads.
fn public_origin(address: &str) -> Result<String> {
    let no = |why: &str| Failure::rejected(400, format!("{address} is no service of Bluesky: {why}"));
    let url = Url::parse(address).map_err(|error| no(&error.to_string()))?;
    if url.scheme() != "https" {
        return Err(no("only https is spoken to"));
    }
    match url.host() {
        Some(Host::Domain(name)) if name.contains('.') => Ok(url.origin().ascii_serialization()),
        _ => Err(no("it has no public name")),
    }
}

/// A DID document, read from a place that the account's server does not control.
/// <https://atproto.com/specs/did>
struct Document {
    did: String,
    /// Origin of the server that stores its records.
    pds: String,
    /// Handle that it claims.
    handle: Option<String>,
}

impl Document {
    /// Resolves an identity.
    ///
    /// # Errors
    ///
    /// `rejected_422` when the identity does not exist or names no public server.
    async fn of(cx: &Session<'_>, did: &str) -> Result<Self> {
        let no = |why: &str| unverified(did, why);
        let address = match (did.strip_prefix("did:plc:"), did.strip_prefix("did:web:")) {
            (Some(id), _) if id.len() == 24 && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7')) => {
                format!("{DIRECTORY}/{did}")
            }
            (_, Some(host)) if is_name(host) => format!("https://{host}/.well-known/did.json"),
            _ => return Err(no("it is no identifier of the AT Protocol")),
        };
        let reply = cx.get(address).without_grant().send_raw().await?;
        // A page may be all that an account's own site has to say. The directory answers in JSON.
        let is_blocked = reply.is_block() && did.starts_with("did:plc:");
        if matches!(reply.status.as_u16(), 300..=407 | 409..=424 | 426..=428 | 430..=499) && !is_blocked {
            return Err(no("it does not exist"));
        }
        let body = reply.into_result(cx.platform)?.body;
        if body["id"] != did {
            return Err(no("its document is another's"));
        }
        let pds = pds_endpoint(&body).ok_or_else(|| no("its document names no server"))?;
        let pds = public_origin(pds).map_err(|failure| no(&failure.message))?;
        let names = body["alsoKnownAs"].as_array().into_iter().flatten();
        // Only the first counts: any account may list another account's handle after it.
        let handle = names.filter_map(Value::as_str).find_map(|name| name.strip_prefix("at://"));
        Ok(Self { did: did.to_owned(), pds, handle: handle.map(str::to_lowercase) })
    }

    /// Checks that a server may act for the identity: its own server, or the entryway, which forwards calls.
    ///
    /// # Errors
    ///
    /// `rejected_422` when it may not.
    fn admit(&self, server: &str) -> Result<()> {
        if server == self.pds || server == SERVICE {
            return Ok(());
        }
        Err(unverified(&self.did, &format!("its server is {}, not {server}", self.pds)))
    }

    /// Returns the handle, if it resolves to this identity: in Bluesky's own view (by DNS or HTTPS), or at the
    /// handle's host. <https://atproto.com/specs/handle#handle-resolution>
    ///
    /// # Errors
    ///
    /// `rejected_422` when it resolves to another identity; the view's failure when the view is unavailable.
    async fn handle(self, cx: &Session<'_>) -> Result<String> {
        let no = |why: &str| unverified(&self.did, why);
        let Some(handle) = self.handle.as_deref().filter(|handle| is_name(handle)) else {
            return Err(no("its document names no handle"));
        };
        let seen = resolve_in_view(cx, handle).await;
        if seen.as_ref().is_ok_and(|found| found.did == self.did) {
            return Ok(handle.to_owned());
        }
        if resolve_at_host(cx, handle).await.is_some_and(|did| did == self.did) {
            return Ok(handle.to_owned());
        }
        match seen {
            Err(failure) if !failure.code.is_permanent() => Err(failure),
            _ => Err(no(&format!("the handle {handle} does not lead back to it"))),
        }
    }
}

/// Returns the failure of an identity that could not be verified.
fn unverified(did: &str, why: &str) -> Failure {
    Failure::rejected(422, format!("{did} can't be connected: {why}"))
}

/// Returns true for a bare host name, which may be put into an address.
fn is_name(text: &str) -> bool {
    let url = Url::parse(&format!("https://{text}"));
    url.is_ok_and(|url| url.host_str() == Some(text) && public_origin(url.as_str()).is_ok())
}

/// Returns the server that a document of an identity names.
fn pds_endpoint(document: &Value) -> Option<&str> {
    let mut services = document["service"].as_array().into_iter().flatten();
    let pds = services.find(|service| service["id"].as_str().is_some_and(|id| id.ends_with("#atproto_pds")));
    pds?["serviceEndpoint"].as_str()
}

/// Returns the account of a session, as its server claims.
///
/// # Errors
///
/// `rejected_403` when the account is deactivated, suspended or taken down: it has a session, but can't post.
async fn session_account(cx: &Session<'_>, home: &str) -> Result<Me> {
    let me: Me = cx.get(format!("{home}/xrpc/com.atproto.server.getSession")).send().await?;
    if me.active == Some(false) {
        let status = me.status.as_deref().unwrap_or("inactive");
        return Err(Failure::rejected(403, format!("the account is not active at its server: {status}")));
    }
    Ok(me)
}

/// Checks that an identity is the session's account. Before an account is connected, any identity passes.
fn is_account(cx: &Session<'_>, did: &str) -> Result<()> {
    let ours = &cx.account.network_unique_id;
    if ours.is_empty() || ours == did {
        return Ok(());
    }
    Err(Failure::revoked(format!("its server speaks for {did}, which is another account")))
}

/// Returns the grant of a session, with the account's server `pds` if it was just resolved.
fn grant_of(cx: &Session<'_>, tokens: Tokens, pds: Option<String>) -> Result<Grant> {
    is_account(cx, &tokens.did)?;
    let mut extra = if cx.grant.extra.is_object() { cx.grant.extra.clone() } else { json!({}) };
    if let Some(pds) = pds {
        extra["pds"] = json!(pds);
    }
    Ok(Grant {
        ends_at: None,
        expires_at: expiry(&tokens.access_jwt),
        access_token: tokens.access_jwt,
        refresh_token: Some(tokens.refresh_jwt),
        scopes: cx.grant.scopes.clone(),
        extra,
    })
}

/// Returns the expiry that a token claims. Its signature is not ours to verify.
fn expiry(token: &str) -> Option<DateTime<Utc>> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    DateTime::from_timestamp(claims["exp"].as_i64()?, 0)
}

/// Returns the record of a post. Deterministic for a post and a step.
fn record(post: &PublishRequest, settings: &Settings, step: &Step) -> Value {
    let created_at = step.created_at.unwrap_or(post.created_at);
    let (text, spans) = settings.shown(&post.text);
    let mut record = json!({
        "$type": POST,
        "text": text,
        "createdAt": created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    let facets: Vec<_> = spans
        .into_iter()
        .filter_map(|span| {
            let feature = match span.meaning {
                Meaning::Link(uri) => json!({ "$type": "app.bsky.richtext.facet#link", "uri": uri }),
                Meaning::Tag(tag) => json!({ "$type": "app.bsky.richtext.facet#tag", "tag": tag }),
                // An unknown handle stays plain text.
                Meaning::Mention(handle) => {
                    let did = step.mentions.get(&handle)?.as_ref()?;
                    json!({ "$type": "app.bsky.richtext.facet#mention", "did": did })
                }
            };
            Some(json!({
                "index": { "byteStart": span.range.start, "byteEnd": span.range.end },
                "features": [feature],
            }))
        })
        .collect();
    if !facets.is_empty() {
        record["facets"] = json!(facets);
    }
    if let Some(languages) = settings.languages.as_ref().filter(|all| !all.is_empty()) {
        record["langs"] = languages.iter().map(|language| language_tag(language)).collect();
    }
    if let Some(labels) = settings.labels.as_ref().filter(|all| !all.is_empty()) {
        let values: Vec<_> = labels.iter().map(|label| json!({ "val": label })).collect();
        record["labels"] = json!({ "$type": "com.atproto.label.defs#selfLabels", "values": values });
    }
    if let Some(reply) = &step.reply {
        record["reply"] = json!(reply);
    } else if let Some(tags) = settings.tags.as_ref().filter(|all| !all.is_empty()) {
        record["tags"] = json!(tags);
    }
    if let Some(embed) = embed(post, settings, step) {
        record["embed"] = embed;
    }
    record
}

/// Returns a language tag whose language is in lower case, which not all implementations of the protocol require.
/// <https://www.rfc-editor.org/rfc/rfc5646#section-2.1.1>
fn language_tag(language: &str) -> String {
    let (first, rest) = language.split_at(language.find('-').unwrap_or(language.len()));
    format!("{}{rest}", first.to_lowercase())
}

/// Returns the records that limit replies and quotes, by their collections. Deterministic for a post and a step.
fn gate_records(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &Step,
) -> Vec<(&'static str, Value)> {
    let uri = format!("at://{}/{POST}/{}", cx.account.network_unique_id, record_key(post));
    let at = step.created_at.unwrap_or(post.created_at).to_rfc3339_opts(SecondsFormat::Millis, true);
    let gate = |collection: &'static str, name: &str, rules: Value| {
        let mut record = json!({ "$type": collection, "post": uri, "createdAt": at });
        record[name] = rules;
        (collection, record)
    };
    let replies = settings.allow_replies_from.as_ref().map(|rules| {
        let rule = |rule: &ReplyRule| {
            let name = match rule {
                ReplyRule::Mentioned => "mentionRule",
                ReplyRule::Followers => "followerRule",
                ReplyRule::Following => "followingRule",
            };
            json!({ "$type": format!("{THREADGATE}#{name}") })
        };
        gate(THREADGATE, "allow", rules.iter().map(rule).collect())
    });
    let quotes = settings
        .disable_quotes
        .filter(|is_disabled| *is_disabled)
        .map(|_| gate(POSTGATE, "embeddingRules", json!([{ "$type": format!("{POSTGATE}#disableRule") }])));
    replies.into_iter().chain(quotes).collect()
}

/// Returns the embed below the text: media, or a link's card, or a quoted post, alone or with one of these.
fn embed(post: &PublishRequest, settings: &Settings, step: &Step) -> Option<Value> {
    let link = settings.link.as_ref().filter(|_| post.reply_to.is_none());
    let media = match (post.media.first(), link) {
        (Some(first), _) if first.kind != MediaKind::Image => Some(video_embed(first, step)),
        (_, Some(link)) => Some(link_card(link, step)),
        (Some(_), None) => Some(images_embed(&post.media, step)),
        (None, None) => None,
    };
    match (&step.quote, media) {
        (None, media) => media,
        (Some(quote), None) => Some(json!({ "$type": "app.bsky.embed.record", "record": quote })),
        (Some(quote), Some(media)) => Some(json!({
            "$type": "app.bsky.embed.recordWithMedia",
            "record": { "$type": "app.bsky.embed.record", "record": quote },
            "media": media,
        })),
    }
}

/// Returns the embed of a link, with the post's image as its picture.
fn link_card(link: &Card, step: &Step) -> Value {
    let mut external = json!({
        "uri": link.url,
        "title": link.title.as_deref().unwrap_or_default(),
        "description": link.description.as_deref().unwrap_or_default(),
    });
    if let Some(thumb) = step.blobs.first() {
        external["thumb"] = thumb.ticket.value().clone();
    }
    json!({ "$type": "app.bsky.embed.external", "external": external })
}

/// Returns the embed of the images: up to four side by side, more as a gallery.
fn images_embed(media: &[Media], step: &Step) -> Value {
    let is_gallery = media.len() > 4;
    let items = media.iter().zip(&step.blobs).map(|(media, blob)| {
        let mut item =
            json!({ "image": blob.ticket.value(), "alt": media.alt_text.as_deref().unwrap_or_default() });
        if is_gallery {
            item["$type"] = json!("app.bsky.embed.gallery#image");
        }
        // A gallery requires an aspect ratio.
        let ratio = aspect_ratio(media).or_else(|| is_gallery.then(|| json!({ "width": 1, "height": 1 })));
        if let Some(ratio) = ratio {
            item["aspectRatio"] = ratio;
        }
        item
    });
    let items: Vec<_> = items.collect();
    if is_gallery {
        json!({ "$type": "app.bsky.embed.gallery", "items": items })
    } else {
        json!({ "$type": "app.bsky.embed.images", "images": items })
    }
}

fn video_embed(media: &Media, step: &Step) -> Value {
    let blob = step.blobs.first().map_or(&Value::Null, |blob| blob.ticket.value());
    let mut embed = json!({ "$type": "app.bsky.embed.video", "video": blob });
    if media.kind == MediaKind::Gif {
        embed["presentation"] = json!("gif");
    }
    if !step.captions.is_empty() {
        embed["captions"] = step.captions.iter().map(captions::Track::value).collect();
    }
    if let Some(alt) = media.alt_text.as_deref().filter(|alt| !alt.is_empty()) {
        embed["alt"] = json!(alt);
    }
    if let Some(ratio) = aspect_ratio(media) {
        embed["aspectRatio"] = ratio;
    }
    embed
}

fn aspect_ratio(media: &Media) -> Option<Value> {
    let (width, height) = (media.width.filter(|w| *w > 0)?, media.height.filter(|h| *h > 0)?);
    Some(json!({ "width": width, "height": height }))
}

/// Returns true if the record under our key is ours. The server may have added members to it.
fn is_same(found: &Value, ours: &Value) -> bool {
    ["text", "reply"].iter().all(|key| found[*key] == ours[*key])
}

/// Returns the record key: a timestamp identifier, as the lexicon of posts demands, made from the target
/// alone. Its microseconds are the target's millisecond and, below it, the position; its clock
/// identifier is from the target's random bits. <https://atproto.com/specs/tid>
fn record_key(post: &PublishRequest) -> String {
    const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    let TargetId(target) = post.target;
    let random = target.as_u128() as u64;
    // 11 positions at most, so the keys of 90 targets of one millisecond do not overlap.
    let below = (random >> 10) % 90 * 11 + u64::from(post.position) % 11;
    let tid = ((unix_millis(target) * 1000 + below) << 10 | (random & 0x3ff)) & (u64::MAX >> 1);
    (0..13).rev().map(|digit| ALPHABET[(tid >> (digit * 5)) as usize & 31] as char).collect()
}

/// Returns the timestamp of a UUID of version 7.
fn unix_millis(id: Uuid) -> u64 {
    (id.as_u128() >> 80) as u64
}

/// Returns the repository and the record key of an `at://` address.
fn split_uri(uri: &str) -> Result<(&str, &str)> {
    let mut parts = uri.strip_prefix("at://").unwrap_or_default().split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(repo), Some(_), Some(rkey), None) if !repo.is_empty() && !rkey.is_empty() => Ok((repo, rkey)),
        _ => Err(Failure::rejected(400, format!("{uri} is no address of a post"))),
    }
}

fn address(cx: &Session<'_>, id: &str) -> String {
    let (repo, rkey) = split_uri(id).unwrap_or((&cx.account.network_unique_id, id));
    cx.transport.rewrite_url(&format!("https://bsky.app/profile/{repo}/post/{rkey}"))
}

/// Returns one of the account's own posts, read from the account's server.
async fn find_record(cx: &Session<'_>, home: &str, rkey: &str) -> Result<Option<Found>> {
    let reply = cx
        .get(format!("{home}/xrpc/com.atproto.repo.getRecord"))
        .query(&[("repo", cx.account.network_unique_id.as_str()), ("collection", POST), ("rkey", rkey)])
        .send_raw()
        .await?;
    if reply.body["error"] == "RecordNotFound" {
        return Ok(None);
    }
    reply.into_result(cx.platform)?.read().map(Some)
}

/// Returns a reply's reference to its parent: address and hash of the content.
async fn strong_ref(cx: &Session<'_>, home: &str, uri: &str) -> Result<StrongRef> {
    match find_record(cx, home, split_uri(uri)?.1).await? {
        Some(Found { uri, cid: Some(cid), .. }) => Ok(StrongRef { uri, cid }),
        _ => Err(Failure::rejected(404, format!("{uri}, which this replies to, is not there any more"))),
    }
}

/// Returns the reference to a quoted post, which may belong to any account; `None` if it does not exist.
async fn quoted_post(cx: &Session<'_>, home: &str, quote: &str) -> Result<Option<StrongRef>> {
    let uri = match quote.strip_prefix("https://bsky.app/profile/") {
        None => quote.to_owned(),
        Some(rest) => {
            let Some((actor, rkey)) = rest.split_once("/post/") else { return Ok(None) };
            let did = match actor.starts_with("did:") {
                true => Some(actor.to_owned()),
                false => resolve_handle(cx, home, actor).await?,
            };
            let Some(did) = did else { return Ok(None) };
            format!("at://{did}/{POST}/{rkey}")
        }
    };
    Ok(get_post(cx, &uri).await?.map(|post| StrongRef { uri: post.uri, cid: post.cid }))
}

async fn get_post(cx: &Session<'_>, uri: &str) -> Result<Option<View>> {
    let answer: Views = cx
        .get(format!("{PUBLIC}/xrpc/app.bsky.feed.getPosts"))
        .without_grant()
        .query(&[("uris", uri)])
        .send()
        .await?;
    Ok(answer.posts.into_iter().next())
}

/// Returns the identity behind a handle, or `None` when it can't be resolved.
async fn resolve_handle(cx: &Session<'_>, home: &str, handle: &str) -> Result<Option<String>> {
    let found: Result<Did> = cx
        .get(format!("{home}/xrpc/com.atproto.identity.resolveHandle"))
        .query(&[("handle", handle)])
        .send()
        .await;
    match found {
        Ok(found) => Ok(Some(found.did)),
        // A mentioned user's domain that does not answer must not delay the post.
        Err(failure) if failure.code.is_permanent() || matches!(failure.code, ErrorCode::Upstream(_)) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the addresses of a shown post's pictures and videos.
fn pictures(embed: &Value) -> Vec<String> {
    let embed = if embed["media"].is_object() { &embed["media"] } else { embed };
    let items = ["images", "items"].iter().filter_map(|key| embed[*key].as_array()).flatten();
    let images = items.filter_map(|item| item["fullsize"].as_str());
    images.chain(embed["playlist"].as_str()).map(str::to_owned).collect()
}

/// Returns the hashes of a record's pictures and videos.
fn blobs(embed: &Value) -> impl Iterator<Item = &str> {
    let embed = if embed["media"].is_object() { &embed["media"] } else { embed };
    let items = ["images", "items"].iter().filter_map(|key| embed[*key].as_array()).flatten();
    items.map(|item| &item["image"]).chain([&embed["video"]]).filter_map(|blob| blob["ref"]["$link"].as_str())
}

/// Returns the publishing time that the author of a record claims.
fn created_at(record: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(record["createdAt"].as_str()?).ok().map(|at| at.to_utc())
}

/// The adapter's checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Step {
    created_at: Option<DateTime<Utc>>,
    reply: Option<Reference>,
    quote: Option<StrongRef>,
    /// True once replies and quotes are limited.
    is_gated: bool,
    /// Identities by handle; `None` for an unknown handle.
    mentions: BTreeMap<String, Option<String>>,
    /// One entry per medium, in order.
    blobs: Vec<Uploaded<Blob>>,
    captions: Vec<captions::Track>,
}

/// A medium in the account's repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Blob {
    /// It is being uploaded in parts.
    Parts(Parts),
    /// The video service is processing it, under this job id.
    Job(String),
    /// The reference that a record contains.
    Ready(Value),
}

impl Blob {
    fn value(&self) -> &Value {
        match self {
            Self::Ready(blob) => blob,
            Self::Job(_) | Self::Parts(_) => &Value::Null,
        }
    }
}

/// An upload in parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parts {
    /// The upload's id at the video service.
    job: String,
    /// Size of each part but the last.
    size_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reference {
    root: StrongRef,
    parent: StrongRef,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct StrongRef {
    #[serde(deserialize_with = "required::id")]
    uri: String,
    #[serde(deserialize_with = "required::id")]
    cid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    #[serde(deserialize_with = "required::id")]
    did: String,
    #[serde(deserialize_with = "required::token")]
    access_jwt: String,
    #[serde(deserialize_with = "required::token")]
    refresh_jwt: String,
    #[serde(default)]
    did_doc: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Me {
    #[serde(deserialize_with = "required::id")]
    did: String,
    active: Option<bool>,
    /// Why it is not active.
    status: Option<String>,
    #[serde(default)]
    did_doc: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    display_name: Option<String>,
    avatar: Option<String>,
}

#[derive(Deserialize)]
struct Did {
    did: String,
}

#[derive(Deserialize)]
struct Written {
    #[serde(deserialize_with = "required::id")]
    uri: String,
}

#[derive(Deserialize)]
struct Found {
    #[serde(deserialize_with = "required::id")]
    uri: String,
    cid: Option<String>,
    value: Value,
}

#[derive(Deserialize)]
struct Records {
    records: Vec<Found>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct UploadedBlob {
    blob: Value,
}

#[derive(Deserialize)]
struct Views {
    posts: Vec<View>,
}

#[derive(Deserialize)]
struct Feed {
    feed: Vec<Item>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    post: View,
    reason: Option<Value>,
}

/// A post in the public view.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    #[serde(deserialize_with = "required::id")]
    uri: String,
    cid: String,
    #[serde(default)]
    record: Value,
    #[serde(default)]
    embed: Value,
    indexed_at: Option<DateTime<Utc>>,
    #[serde(default)]
    like_count: u64,
    #[serde(default)]
    reply_count: u64,
    #[serde(default)]
    repost_count: u64,
    #[serde(default)]
    quote_count: u64,
    #[serde(default)]
    bookmark_count: u64,
}

impl View {
    fn metrics(&self) -> Metrics {
        Metrics {
            likes: self.like_count,
            comments: self.reply_count,
            shares: self.repost_count + self.quote_count,
            saves: self.bookmark_count,
            ..Metrics::default()
        }
    }

    /// Returns the publishing time that the author claims, else the time of indexing.
    fn time(&self) -> DateTime<Utc> {
        created_at(&self.record).or(self.indexed_at).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplyTo;

    fn post(text: &str) -> PublishRequest {
        PublishRequest {
            target: TargetId("01936b3e-5c00-7abc-8def-0123456789ab".parse().unwrap()),
            text: text.to_owned(),
            created_at: DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap(),
            ..PublishRequest::of_test()
        }
    }

    fn image() -> Media {
        Media {
            id: Uuid::nil(),
            kind: MediaKind::Image,
            mime: "image/png".into(),
            filename: "a.png".into(),
            size_bytes: 1,
            width: Some(2),
            height: Some(1),
            frames: None,
            duration: None,
            alt_text: Some("a dog".into()),
            facts: None,
            rendition: None,
        }
    }

    #[test]
    fn keys_are_timestamp_identifiers_in_the_order_of_the_thread() {
        let key = |position| record_key(&PublishRequest { position, ..post("") });
        let keys: Vec<_> = (0..10).map(key).collect();
        assert!(keys.is_sorted() && keys.iter().all(|key| key.len() == 13));
        let first = |key: &String| "234567abcdefghij".contains(&key[..1]);
        assert!(keys.iter().all(first));
        assert!(keys.iter().all(|key| key.chars().all(|c| "234567abcdefghijklmnopqrstuvwxyz".contains(c))));
        let mut all = keys.clone();
        all.dedup();
        assert_eq!((all.len(), &keys[0]), (10, &record_key(&post("other text"))));
    }

    fn record_of(post: &PublishRequest, step: &Step) -> Value {
        record(post, &post.settings().expect("the settings of a test"), step)
    }

    #[test]
    fn facets_mark_links_tags_and_known_handles_by_byte_offset() {
        let mentions = [("a.test".into(), Some("did:plc:a".into())), ("b.test".into(), None)];
        let step = Step { mentions: mentions.into(), ..Step::default() };
        let record = record_of(&post("ä @a.test @b.test #t https://e.org."), &step);
        assert_eq!(
            record,
            json!({
                "$type": "app.bsky.feed.post",
                "text": "ä @a.test @b.test #t https://e.org.",
                "createdAt": "2023-11-14T22:13:20.005Z",
                "facets": [
                    {
                        "index": { "byteStart": 3, "byteEnd": 10 },
                        "features": [{ "$type": "app.bsky.richtext.facet#mention", "did": "did:plc:a" }],
                    },
                    {
                        "index": { "byteStart": 19, "byteEnd": 21 },
                        "features": [{ "$type": "app.bsky.richtext.facet#tag", "tag": "t" }],
                    },
                    {
                        "index": { "byteStart": 22, "byteEnd": 35 },
                        "features": [{ "$type": "app.bsky.richtext.facet#link", "uri": "https://e.org" }],
                    },
                ],
            })
        );
    }

    #[test]
    fn settings_apply_to_the_first_post_of_a_thread() {
        let settings = json!({
            "languages": ["en"], "labels": ["nudity"], "tags": ["t"],
            "link": { "url": "https://e.org", "title": "E" }, "unknown": true,
        });
        let quote = StrongRef { uri: "at://did:plc:a/app.bsky.feed.post/1".into(), cid: "bafy".into() };
        let main = PublishRequest { settings, ..post("") };
        let made = record_of(&main, &Step { quote: Some(quote.clone()), ..Step::default() });
        assert_eq!(made["langs"], json!(["en"]));
        assert_eq!(made["labels"]["values"], json!([{ "val": "nudity" }]));
        assert_eq!(made["tags"], json!(["t"]));
        assert_eq!(made["embed"]["$type"], "app.bsky.embed.recordWithMedia");
        assert_eq!(
            made["embed"]["media"]["external"],
            json!({ "uri": "https://e.org", "title": "E", "description": "" })
        );
        let reply = PublishRequest {
            reply_to: Some(ReplyTo { root: quote.uri.clone(), parent: quote.uri.clone() }),
            ..main
        };
        let step = Step { reply: Some(Reference { root: quote.clone(), parent: quote }), ..Step::default() };
        let made = record_of(&reply, &step);
        assert_eq!((&made["tags"], &made["embed"]), (&Value::Null, &Value::Null));
        assert_eq!(made["reply"]["root"]["cid"], "bafy");
    }

    #[test]
    fn more_than_four_images_are_a_gallery() {
        let of = |count: usize| {
            let blob = Uploaded::of_test(Uuid::nil(), Blob::Ready(json!({ "$type": "blob" })));
            let step = Step { blobs: vec![blob; count], ..Step::default() };
            record_of(&PublishRequest { media: vec![image(); count], ..post("") }, &step)["embed"].clone()
        };
        assert_eq!(of(4)["$type"], "app.bsky.embed.images");
        assert_eq!(of(1)["images"][0]["alt"], "a dog");
        let gallery = of(5);
        assert_eq!(gallery["$type"], "app.bsky.embed.gallery");
        assert_eq!(gallery["items"][4]["aspectRatio"], json!({ "width": 2, "height": 1 }));
    }

    #[test]
    fn each_documented_error_has_its_error_code() {
        for (status, name, code, doubt) in [
            (400, "ExpiredToken", "token_expired", false),
            (400, "InvalidToken", "token_expired", false),
            (401, "AuthMissing", "token_expired", false),
            (401, "AuthenticationRequired", "token_expired", false),
            (401, "AccountTakedown", "rejected_401", false),
            (400, "RepoDeactivated", "rejected_400", false),
            (400, "InvalidRequest", "rejected_400", false),
            (400, "InvalidMimeType", "rejected_400", false),
            (403, "Forbidden", "rejected_403", false),
            (413, "PayloadTooLarge", "rejected_413", false),
            (429, "RateLimitExceeded", "rate_limited", false),
            (500, "InternalServerError", "upstream_500", true),
            (502, "UpstreamFailure", "upstream_502", true),
        ] {
            let body = json!({ "error": name, "message": "why" });
            let reply = Reply::of(status, &[("retry-after", "290")], &body.to_string());
            let failure = reply.into_result(&ADAPTER).unwrap_err();
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {name}"
            );
            if status == 429 {
                assert_eq!(failure.retry_after, Some(Duration::from_secs(290)));
            }
        }
    }

    #[test]
    fn only_a_public_host_name_is_a_name() {
        for name in ["ada.bsky.social", "example.com", "xn--bcher-kva.example"] {
            assert!(is_name(name), "{name}");
        }
        for text in [
            "",
            "localhost",
            "127.0.0.1",
            "10.0.0.1",
            "2130706433",
            "[::1]",
            "example.com:8443",
            "example.com%3A8443",
            "example.com/a",
            "example.com?a",
            "example.com#a",
            "ada@example.com",
            "a\\b.example",
            "handle invalid.example",
        ] {
            assert!(!is_name(text), "{text}");
        }
    }

    #[test]
    fn bluesky_creates_the_sessions_of_its_own_servers() {
        let extra = |service: &str, pds: Option<&str>| {
            let extra = json!({ "service": service, "pds": pds });
            service_of_grant(&Grant { extra, ..Grant::default() })
        };
        let own = "https://morel.us-east.host.bsky.network";
        for (service, pds, expected) in [
            ("", None, SERVICE),
            ("", Some(SERVICE), SERVICE),
            ("", Some(own), SERVICE),
            ("", Some("https://pds.example.com"), "https://pds.example.com"),
            ("", Some("https://evilhost.bsky.network.example"), "https://evilhost.bsky.network.example"),
            (own, Some(own), own),
            ("https://pds.example.com", None, "https://pds.example.com"),
        ] {
            assert_eq!(extra(service, pds), expected, "{service} {pds:?}");
        }
    }

    fn service_of_grant(grant: &Grant) -> String {
        session_service(grant).expect("a public name")
    }

    #[test]
    fn only_public_names_are_services() {
        assert_eq!(public_origin("https://pds.example.com/path").unwrap(), "https://pds.example.com");
        for address in
            ["http://pds.example.com", "https://127.0.0.1", "https://[::1]", "https://localhost", "no"]
        {
            assert!(public_origin(address).is_err(), "{address}");
        }
    }
}
