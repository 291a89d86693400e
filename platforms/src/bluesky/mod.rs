//! Bluesky, over the AT Protocol: <https://docs.bsky.app/docs/advanced-guides/posts>.
//!
//! The author chooses the key of a post's record. Deriving it from the target makes `commit` idempotent and
//! `locate` definite, because the account's own server has no read lag. A record is only created, never
//! overwritten.

mod captions;
mod identity;
mod record;
mod video;
mod view;

use self::{
    identity::{
        Document, ENDED_SESSION, REFUSED_LOGIN, Tokens, grant_of, home_server, is_account, named_service,
        pds_endpoint, public_origin, resolve_handle, says_one_of, service_of, session_account,
        session_service, unlisted,
    },
    record::{
        Reference, StrongRef, find_record, gate_records, is_same, record, record_key, split_uri, strong_ref,
    },
    video::Blob,
    view::quoted_post,
};
use crate::{
    AccountProfile, Adapter, AltTextLimit, Auth, Cap, Checkpoint, Committed, Counted, Deletion, Grant,
    Idempotency, Identity, Limits, Located, MediaKind, MediaLimit, Prepared, PublishRequest, Publisher,
    Publishing, Replies, Reply, Result, Session, Source, TextLimit, Window,
    check::{self, ContainerContent, Issue, Severity},
    classify,
    facets::{self, Meaning},
    look_up::{self, Findings, Subject},
    required, schema, text,
    upload::{self, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};

/// Bluesky. <https://docs.bsky.app>
struct Bluesky;

/// The default service of an account.
const SERVICE: &str = "https://bsky.social";
/// The public view of the whole network.
const PUBLIC: &str = "https://public.api.bsky.app";

const POST: &str = "app.bsky.feed.post";

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
impl Deletion for Bluesky {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        let rkey = split_uri(id)?.1;
        cx.post(format!("{}/xrpc/com.atproto.repo.deleteRecord", home_server(cx)?))
            .json(&json!({ "repo": cx.account.network_unique_id, "collection": POST, "rkey": rkey }))
            .send_ok()
            .await
    }
}

/// Returns a language tag whose language is in lower case, which not all implementations of the protocol require.
/// <https://www.rfc-editor.org/rfc/rfc5646#section-2.1.1>
fn language_tag(language: &str) -> String {
    let (first, rest) = language.split_at(language.find('-').unwrap_or(language.len()));
    format!("{}{rest}", first.to_lowercase())
}

fn address(cx: &Session<'_>, id: &str) -> String {
    let (repo, rkey) = split_uri(id).unwrap_or((&cx.account.network_unique_id, id));
    cx.transport.rewrite_url(&format!("https://bsky.app/profile/{repo}/post/{rkey}"))
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    display_name: Option<String>,
    avatar: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(deserialize_with = "required::id")]
    uri: String,
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
