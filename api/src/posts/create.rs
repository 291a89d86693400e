//! Creating a post.
//!
//! Errors of the body alone are reported together, with 400. Then the idempotency key is looked up; then
//! references and platform limits are checked, with 422. Only then is the post stored, in one transaction.

use crate::{
    accounts::{self, resolve::QUEUED_FROM_ACCOUNT},
    http::{
        caller::Call,
        headers::{self, Header},
        problem::{Code, Issue, Problem},
    },
    media,
    openapi::validate::{Rules, Schema},
    posts::{
        body::{self, Config, NewText, SourcePaths, TopLevel},
        content,
        imports::Imports,
        replying::Parent,
        resolve::{self, Recipients, Request, ResolvedPost, Texts, Time},
        settings, variant,
    },
    slots,
    types::{bounded_string::Text, metadata, timestamp::Timestamp},
};
use domain::PostId;
use poem_openapi::Object;
use serde_json::{Map, Value};
use std::{collections::HashSet, sync::Arc};
use store::posts::{self, CreateError, Created, KeyTaken};
use telemetry::trace;
use uuid::Uuid;

/// Maximum length of an idempotency key, in characters.
const MAX_KEY_LENGTH: usize = 255;

/// A post to create, with either `content` or `containers`. Platform settings are under `config` or in a
/// top-level member named after the platform; `config` takes precedence.
#[derive(Debug, Object)]
pub struct NewPost {
    /// Text of a post with a single container.
    #[oai(validator(min_length = 1, max_length = 100000))]
    pub content: Option<String>,
    /// The main post, its first comment and further replies, in order. A platform that supports fewer replies
    /// publishes as many as it can; the target's `error_message` mentions omitted ones.
    #[oai(validator(min_items = 1, max_items = 10))]
    pub containers: Option<Vec<NewText>>,
    /// Accounts to publish to: ids, usernames or platform-side ids. Required, except with `reply_to`.
    #[oai(validator(min_items = 1, max_items = 1000))]
    pub accounts: Option<Vec<Text<255, 0>>>,
    /// Id of a post to reply to: on each account, this one is published below the last part of that one's thread, or as
    /// a comment on platforms that have no threads, where it has one container. `accounts` defaults to the accounts on
    /// which that post is live or still to be published; each must be one of its accounts. Targets wait until it is
    /// live, and end `dead` if it has failed, was deleted or was unpublished by then. Settings for a post of its own are
    /// not used, and refused where the public would be told or shown something else without them.
    pub reply_to: Option<Uuid>,
    /// Time to publish, in ISO 8601, UTC without an offset; immediately by default.
    pub scheduled_at: Option<Timestamp>,
    /// Publish at the next open posting slot of this account, which must be one of `accounts`.
    #[oai(validator(max_length = 255))]
    pub queued_from_account: Option<String>,
    /// The IANA time zone that the slots are read in; `UTC` by default.
    #[oai(validator(max_length = 64))]
    pub queue_timezone: Option<String>,
    /// Keep the post as a draft until it is released. Platform limits are checked on release.
    #[oai(default)]
    pub is_draft: bool,
    /// Settings by platform.
    pub config: Option<Config>,
    /// Idempotency key; takes precedence over the header `Idempotency-Key`.
    #[oai(validator(min_length = 1, max_length = 255))]
    pub external_ref: Option<String>,
    /// Your own data on the post: up to 50 texts of at most 500 characters, by keys of 1 to 40 of the characters
    /// `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`. It is returned with the post and published nowhere.
    pub metadata: Option<metadata::Changes>,
    /// Platform settings at the top level.
    #[oai(flatten)]
    pub blocks: TopLevel,
}

impl Rules for NewPost {
    const REFUSES_SLIPS: bool = true;

    fn homes() -> Vec<(&'static str, Arc<Schema>)> {
        body::homes()
    }

    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let given = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
        if !given("accounts") && !given("reply_to") {
            issues.push(Issue::wrong_type(&["accounts".into()], "array", "undefined"));
        }
        if !given("content") && !given("containers") {
            issues.push(Issue::custom(["content"], "One of content and containers is required"));
        }
        body::check_combinations(body, issues);
    }
}

/// Creates a post, or returns the one that was created with the same idempotency key.
///
/// # Errors
///
/// If the request is invalid or a platform would reject it. Nothing is stored then.
pub async fn create(call: &Call<'_>, body: NewPost, header: &Header) -> Result<Created, Problem> {
    let key = key(body.external_ref.clone(), header)?;
    if let Some(key) = &key
        && let Some(first) = posts::replay(call.db(), call.access(), key).await?
    {
        return first.map(Created::Replay).map_err(|taken| key_taken(call, taken));
    }
    let resolved = resolve(call, &body).await?;
    // A draft may be unfinished: it is checked when it is released.
    if !body.is_draft {
        resolved.reject_errors()?;
    }
    let new = posts::NewPost {
        is_draft: body.is_draft,
        reply_to: resolved.parent.as_ref().map(Parent::id),
        scheduled_at: resolved.scheduled_at,
        default_config: resolved.default_config,
        external_ref: key,
        imports: resolved.imports.rows(call).await?,
        deviations: variant::deviations(&resolved.variants),
        metadata: body.metadata.unwrap_or_default().apply(posts::Metadata::default()),
        request_id: call.request_id(),
        horizon: call.app.config.horizon,
        containers: resolved.containers,
        accounts: resolved.accounts.into_iter().map(|account| (account.id, account.platform)).collect(),
    };
    let (began, request_id) = (call.now(), call.request_id().unwrap_or_default());
    let created = match &resolved.queue {
        Some(queue) => posts::queue(call.db(), call.access(), new, queue, call.now()).await,
        None => posts::create(call.db(), call.access(), new, call.now()).await,
    };
    match created.map_err(|error| (error, &resolved.queue)) {
        Ok(Created::New(post)) => {
            let attributes =
                [("fanfare.request_id", &*request_id), ("fanfare.mode", call.owner.mode.as_str())];
            trace::created(post.id.0.into_bytes(), began.into(), call.now().into(), &attributes);
            Ok(Created::New(post))
        }
        Ok(replay @ Created::Replay(_)) => Ok(replay),
        Err((CreateError::NoOpenSlot, Some(queue))) => Err(slots::full(queue, QUEUED_FROM_ACCOUNT)),
        Err((CreateError::NoOpenSlot, None)) => unreachable!("only a post for a queue needs a slot"),
        Err((CreateError::MediaMissing, _)) => Err(content::media_not_ready()),
        Err((CreateError::Exceeded(exceeded), _)) => Err(media::no_room(call, exceeded).await),
        Err((CreateError::KeyTaken(taken), _)) => Err(key_taken(call, taken)),
        Err((CreateError::Database(error), _)) => Err(error.into()),
    }
}

/// 409: the idempotency key is the one of a post that the caller does not reach.
fn key_taken(call: &Call<'_>, _: KeyTaken) -> Problem {
    let detail = format!("the idempotency key was used for a post that is not within {}", call.bound);
    Problem::new(Code::Conflict, detail)
}

/// Resolves a new post.
///
/// # Errors
///
/// If an account or a media asset is missing, ambiguous or not ready, or an override can't be applied.
pub(crate) async fn resolve(call: &Call<'_>, body: &NewPost) -> Result<ResolvedPost, Problem> {
    let request = request(body);
    let recipients = recipients(call, body, &request).await?;
    let resolved = resolve::resolve(call, request, recipients).await?;
    resolved.refuse_times()?;
    Ok(resolved)
}

/// Reads a new post.
fn request(body: &NewPost) -> Request {
    let config = body.config.clone().unwrap_or_default();
    let mut imports = Imports::default();
    Request {
        texts: Texts::sent(body.content.clone(), body.containers.clone(), &mut imports),
        source: SourcePaths::of(body.content.is_some(), &body.blocks, &config),
        config: settings::merge(body.blocks.clone(), config),
        takes_defaults: true,
        time: Time::Sent(body.scheduled_at.map(|Timestamp(at)| at)),
        is_reply: body.reply_to.is_some(),
        queue_timezone: body.queue_timezone.clone(),
        own: HashSet::new(),
        imports,
    }
}

/// Finds the accounts of a new post: those that it names, or those of the post that it replies to.
async fn recipients(call: &Call<'_>, body: &NewPost, request: &Request) -> Result<Recipients, Problem> {
    let parent = match body.reply_to {
        Some(id) => Some(Parent::find(call, PostId(id)).await?),
        None => None,
    };
    let named = body::named(body.accounts.as_deref());
    let entries = match (&named, &parent) {
        (None, Some(parent)) => parent.accounts()?,
        _ => named.clone().unwrap_or_default(),
    };
    let queue = body.queued_from_account.as_deref();
    let (accounts, queued) = match accounts::resolve::accounts(call, &entries, queue).await {
        Ok(resolved) => resolved,
        // All issues are reported at once, under the code of the first.
        Err(problem) if !problem.issues.is_empty() => {
            return Err(problem.with_more_issues(request.media_issues(call).await?));
        }
        Err(problem) => return Err(problem),
    };
    if let Some(parent) = &parent {
        parent.check(&accounts, named.as_deref(), body.is_draft)?;
    }
    Ok(Recipients { accounts, queued, parent })
}

/// Returns the idempotency key: the body's, else the header's. Retrying clients add a new header to each call, so
/// one beside the body's key is not even read.
fn key(external_ref: Option<String>, header: &Header) -> Result<Option<String>, Problem> {
    if external_ref.is_some() {
        return Ok(external_ref);
    }
    let (name, Some(key)) = (header.name(), header.text()?) else { return Ok(None) };
    let issue = match key.chars().count() {
        0 => Issue::new([name], "too_small", "The header must not be empty").with("minimum", 1),
        length if length > MAX_KEY_LENGTH => {
            let message = format!("The header must contain at most {MAX_KEY_LENGTH} character(s)");
            Issue::new([name], "too_big", message).with("maximum", MAX_KEY_LENGTH)
        }
        _ => return Ok(Some(key.to_owned())),
    };
    Err(headers::invalid(name, issue.with("type", "string").with("inclusive", true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::Segment;
    use serde_json::json;

    fn faults(body: Value) -> Vec<(Value, String)> {
        let Err(problem) = crate::http::body::read::<NewPost>(body) else { return Vec::new() };
        let fault = |issue: &Issue| {
            let path = issue.path.iter().map(|segment| match segment {
                Segment::Key(key) => json!(key),
                Segment::Index(index) => json!(index),
            });
            (path.collect(), issue.code.clone())
        };
        problem.issues.iter().map(fault).collect()
    }

    #[test]
    fn contradictions_and_types_are_told_together() {
        for (body, expected) in [
            (json!({"content": "a", "accounts": ["b"]}), json!([])),
            (
                json!({"content": "a", "accounts": ["b"], "config": {"x": {"any": 1}}, "tiktok": {}, "other": 1}),
                json!([]),
            ),
            (
                json!({"containers": [{"content": "a", "media": null}], "accounts": ["b"], "content": null}),
                json!([]),
            ),
            (json!({}), json!([[["accounts"], "invalid_type"], [["content"], "custom"]])),
            (json!({"content": "a", "reply_to": "01a1fd4e-61fa-7799-8461-a9bc82ffd5a8"}), json!([])),
            (json!([]), json!([[[], "invalid_type"]])),
            (
                json!({"content": "", "containers": [], "accounts": []}),
                json!([
                    [["content"], "too_small"],
                    [["containers"], "too_small"],
                    [["accounts"], "too_small"],
                    [["containers"], "custom"]
                ]),
            ),
            (
                json!({"containers": [{"content": "a"}, {"content": ""}, {}], "accounts": [7]}),
                json!([
                    [["containers", 2, "content"], "invalid_type"],
                    [["accounts", 0], "invalid_type"],
                    [["containers", 1, "content"], "too_small"]
                ]),
            ),
            (json!({"containers": [{"content": "", "media": [{"id": "m"}]}], "accounts": ["b"]}), json!([])),
            (
                json!({"content": "a", "accounts": ["b"], "queued_from_account": "b", "scheduled_at": "2026-01-02T00:00:00Z", "is_draft": true}),
                json!([[["queued_from_account"], "custom"], [["queued_from_account"], "custom"]]),
            ),
            (
                json!({"content": "a", "accounts": ["b"], "queued_from_account": "b", "is_draft": false}),
                json!([]),
            ),
            (
                json!({"content": "a", "accounts": ["b"], "queue_timezone": "Mars/Olympus"}),
                json!([[["queue_timezone"], "custom"]]),
            ),
            (json!({"content": "a", "accounts": ["b"], "queue_timezone": "Europe/Berlin"}), json!([])),
            (
                json!({"content": "a", "accounts": ["b"], "config": {"twitter": {}, "x": 1}, "youtube": "b"}),
                json!([
                    [["config", "x"], "invalid_type"],
                    [["config"], "unrecognized_keys"],
                    [["youtube"], "invalid_type"]
                ]),
            ),
            (json!({"content": "a", "accounts": ["b"], "external_ref": "r".repeat(255)}), json!([])),
            (
                json!({"content": "a", "accounts": ["b"], "external_ref": "r".repeat(256)}),
                json!([[["external_ref"], "too_big"]]),
            ),
        ] {
            assert_eq!(json!(faults(body.clone())), expected, "{body}");
        }
    }

    #[test]
    fn a_time_that_is_none_is_named_in_the_detail() {
        let body = json!({"content": "a", "accounts": ["b"], "scheduled_at": "tomorrow"});
        let problem = crate::http::body::read::<NewPost>(body).unwrap_err();
        assert_eq!(problem.detail, "scheduled_at must be an ISO 8601 timestamp");
    }

    #[test]
    fn the_bodys_key_takes_precedence_over_the_headers() {
        let key = |body: Option<&str>, lines: &[&[u8]]| {
            let header = Header::of("Idempotency-Key", lines);
            key(body.map(str::to_owned), &header)
                .map_err(|problem| (problem.detail, problem.issues[0].code.clone()))
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        let wrong = |code: &str| Err(("invalid Idempotency-Key header".to_owned(), code.to_owned()));
        assert_eq!(key(None, &[]), Ok(None));
        assert_eq!(key(None, &[b"a"]), some("a"));
        for text in ["commande-été-7".to_owned(), "r".repeat(255), "é".repeat(255)] {
            assert_eq!(key(None, &[text.as_bytes()]), some(&text));
        }
        for (lines, code) in [
            (&[&b""[..]][..], "too_small"),
            (&["r".repeat(256).as_bytes()], "too_big"),
            (&["é".repeat(256).as_bytes()], "too_big"),
            (&[b"\xe9"], "custom"),
            (&[b"a", b"a"], "custom"),
        ] {
            assert_eq!(key(None, lines), wrong(code), "{lines:?}");
            assert_eq!(key(Some("a"), lines), some("a"), "{lines:?}");
        }
        assert_eq!(key(Some("a"), &[]), some("a"));
        assert_eq!(key(Some("a"), &[b"b"]), some("a"));
    }
}
