//! X: API v2 with OAuth 2.0, as <https://docs.x.com> and its OpenAPI description 2.167 say.
//!
//! A new app is a self-serve one: replies and quotes only of mentions and of own posts, one cashtag per post; an
//! approved app has an enterprise agreement. Posts have at most 280 weighted characters, and videos of at most
//! 140 seconds, except those of accounts whose name begins with `premium`.

mod media;
mod oauth;
mod posts;
mod text;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    page,
    rate_limit::{Quota, RateLimit},
    routes::routes,
    schema::Issue,
    simulator::{Grants, MediaView, PostView, Simulator},
    store::Record,
    tokens,
};
use crate::Identity;
use crate::exchange::Cause::{self, Protocol, State};
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "x";

/// A quarter of an hour, the length of all documented windows.
const QUARTER: i64 = 900;

pub(super) struct X;

impl Simulator for X {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "api.x.com" | "api.twitter.com" | "x.com" | "twitter.com" | "www.x.com" | "pbs.twimg.com"
            | "video.twimg.com" => true,
            "" => path.starts_with("/2/") || path.starts_with("/i/oauth2/"),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        let is_form = request.mime() == Some("multipart/form-data");
        match request.segments().as_slice() {
            ["2", "media", "upload", ..] if is_form => BodyMode::Multipart("media"),
            // The documentation shows forms; twitter-api-v2 sends JSON, so X presumably accepts both.
            ["2" | "i", "oauth2", ..] if request.mime() == Some("application/json") => {
                BodyMode::JsonFields(1 << 16)
            }
            // Bytes in base64, for the images that fit one request.
            ["2", "media", "upload", ..] => BodyMode::Buffered(32 << 20),
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        tokens::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        let segments = request.segments();
        if let Some(response) = site(tx, request, &segments) {
            return response;
        }
        let path = segments.strip_prefix(&["2"]).unwrap_or(&segments);
        let response = match (api(tx, request, path), tx.quota) {
            (Ok(response), Some(quota)) => rate_limited(response, quota),
            // A fault's response has no rate limit headers.
            (Err(refusal), Some(quota)) if refusal.fault.is_none() => rate_limited(refusal, quota),
            (Ok(response) | Err(response), _) => response,
        };
        response.with("api-version", "2.167")
    }

    fn refuse(&self, tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => invalid(State, "text", "", "The text was refused on purpose."),
            401 => unauthorized(),
            403 => not_permitted(State),
            429 => throttled(Quota {
                limit: CREATE.limit,
                remaining: 0,
                reset: tx.now + tx.settings.throttle(),
                seconds: QUARTER,
            }),
            503 => problem(State, 503, "Service Unavailable", "Service Unavailable"),
            _ => problem(
                State,
                500,
                "Internal Server Error",
                "Something is broken. This is usually a temporary error.",
            ),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name on X: 1 to 15 letters, digits and underscores";
        account::check_username(username, 1..=15, b"_", rule).map(str::to_owned)
    }

    fn account_id(&self, username: &str) -> String {
        let draw = account::digest_number(ID, username);
        // Nineteen digits, and within an i64.
        (1_000_000_000_000_000_000 + draw % 8_000_000_000_000_000_000).to_string()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), format!("https://x.com/{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &oauth::TOKENS
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        posts::by(tx, &account.id).rev().map(|post| post_view(tx, account, &post)).collect()
    }
}

const READ: &[&str] = &["tweet.read", "users.read"];
const WRITE: &[&str] = &["tweet.read", "tweet.write", "users.read"];
const MEDIA: &[&str] = &["media.write"];

const ME: RateLimit = RateLimit::new("x.me", 75, QUARTER);
/// <https://docs.x.com/x-api/users/lookup/migrate/overview>
const USERS: RateLimit = RateLimit::new("x.users", 900, QUARTER);
const TIMELINE: RateLimit = RateLimit::new("x.timeline", 900, QUARTER);
const ANALYTICS: RateLimit = RateLimit::new("x.analytics", 300, QUARTER);
const CREATE: RateLimit = RateLimit::new("x.posts", 100, QUARTER);
const LOOKUP: RateLimit = RateLimit::new("x.lookup", 5_000, QUARTER);
const DELETE: RateLimit = RateLimit::new("x.deletes", 50, QUARTER);
const UPLOAD: RateLimit = RateLimit::new("x.uploads", 500, QUARTER);
const STATUS: RateLimit = RateLimit::new("x.status", 1_000, QUARTER);
const INITIALIZE: RateLimit = RateLimit::new("x.initializes", 1_875, QUARTER);
const APPEND: RateLimit = RateLimit::new("x.appends", 1_875, QUARTER);
const FINALIZE: RateLimit = RateLimit::new("x.finalizes", 1_875, QUARTER);
const METADATA: RateLimit = RateLimit::new("x.metadata", 500, QUARTER);

fn api(tx: &mut Transaction, request: &Request, path: &[&str]) -> Outcome {
    match (request.method.as_str(), path) {
        ("GET", ["oauth2", "authorize"]) => return oauth::consent_page(request),
        ("POST", ["oauth2", "authorize"]) => return oauth::decide(tx, request),
        ("POST", ["oauth2", "token"]) => return oauth::token(tx, request),
        ("POST", ["oauth2", "revoke"]) => return oauth::revoke(tx, request),
        _ if request.is_too_large => {
            return Err(problem(Protocol, 413, "Payload Too Large", "The request is too large."));
        }
        _ => {}
    }
    routes! { tx, request, path, admit, Err(not_found());
        "GET"    ["users", "me"]                     => (READ, ME)          posts::me();
        "GET"    ["users", "by"]                     => (READ, USERS)       posts::users_by();
        "GET"    ["users", id, "tweets"]             => (READ, TIMELINE)    posts::timeline(id);
        "GET"    ["tweets", "analytics"]             => (READ, ANALYTICS)   posts::analytics();
        "POST"   ["tweets"]                          => (WRITE, CREATE)     posts::create();
        "GET"    ["tweets"]                          => (READ, LOOKUP)      posts::lookup(None);
        "GET"    ["tweets", id]                      => (READ, LOOKUP)      posts::lookup(Some(id));
        "DELETE" ["tweets", id]                      => (WRITE, DELETE)     posts::delete(id);
        "POST"   ["media", "upload"]                 => (MEDIA, UPLOAD)     media::upload();
        "GET"    ["media", "upload"]                 => (MEDIA, STATUS)     media::status();
        "POST"   ["media", "upload", "initialize"]   => (MEDIA, INITIALIZE) media::initialize();
        "POST"   ["media", "upload", id, "append"]   => (MEDIA, APPEND)     media::append(id);
        "POST"   ["media", "upload", id, "finalize"] => (MEDIA, FINALIZE)   media::finalize(id);
        "POST"   ["media", "metadata"]               => (MEDIA, METADATA)   media::metadata();
        "POST"   ["media", "subtitles"]              => (MEDIA, METADATA)   media::subtitles();
    }
}

/// Pages for browsers: the consent page, profiles, posts, media.
fn site(tx: &mut Transaction, request: &Request, segments: &[&str]) -> Option<Response> {
    match (request.method.as_str(), segments) {
        ("GET", ["i", "oauth2", "authorize"]) => {
            Some(oauth::consent_page(request).unwrap_or_else(|refusal| refusal))
        }
        ("POST", ["i", "oauth2", "authorize"]) => {
            Some(oauth::decide(tx, request).unwrap_or_else(|refusal| refusal))
        }
        _ if request.host.ends_with("twimg.com") => Some(media::serve(tx, segments.last()?)),
        _ if request.method != Method::GET
            || matches!(request.host.as_str(), "" | "api.x.com" | "api.twitter.com") =>
        {
            None
        }
        (_, ["i", "web", "status", id] | [_, "status", id]) => {
            Some(page::serve(posts::get(tx, id).and_then(|post| {
                let author = account::by_id(tx.store, ID, &post.author)?;
                Some(page::post(tx, &X, &author, &post_view(tx, &author, &post)))
            })))
        }
        (_, [username]) => {
            let found = account::by_username(tx.store, ID, username);
            Some(page::serve(found.map(|account| page::account(tx, &X, &account))))
        }
        _ => Some(page::serve(None)),
    }
}

fn post_view(tx: &Transaction, author: &Account, post: &posts::Post) -> PostView {
    let mut notes = Vec::new();
    if let Some(poll) = &post.poll {
        notes.push(format!("Poll: {}", poll.options.join(" / ")));
    }
    if let Some(quote) = &post.quote {
        notes.push(format!("Quotes {quote}"));
    }
    // X does not say who is left out, and creates the post.
    for person in post.tagged.iter().filter_map(|id| account::by_id(tx.store, ID, id)) {
        notes.push(format!("Tags @{}", person.username));
    }
    let media: Vec<_> = post.media.iter().filter_map(|id| media::get(tx, id)).collect();
    for medium in &media {
        if !medium.warnings.is_empty() {
            notes.push(format!("Content warning: {}", medium.warnings.join(", ")));
        }
        let subtitles = medium.subtitles.iter();
        notes.extend(subtitles.map(|track| format!("Captions: {} ({})", track.language, track.name)));
    }
    let media = media.into_iter().map(|media| MediaView {
        files: media.parts.values().map(|part| part.id.clone()).collect(),
        mime: media.mime.clone().unwrap_or_else(|| media.category.clone()),
        alt: media.alt.clone().unwrap_or_default(),
    });
    PostView {
        id: post.id.clone(),
        address: format!("x.com/{}/status/{}", author.username, post.id),
        text: post.text.clone(),
        at: post.created_at,
        media: media.collect(),
        notes,
        reply_to: post.reply_to.clone(),
    }
}

fn avatar(account: &Account) -> String {
    format!("https://pbs.twimg.com/profile_images/{}/sandbox_normal.jpg", account.id)
}

/// Admits a request: checks its token, its scopes and the rate limit.
fn admit(
    tx: &mut Transaction,
    request: &Request,
    scopes: &[&str],
    rule: RateLimit,
) -> Result<Account, Response> {
    if request.header("authorization").is_some_and(|value| value.starts_with("OAuth ")) {
        return Err(Response::json(
            403,
            &json!({
                "title": "Unsupported Authentication",
                "detail": "Authenticating with OAuth 1.0a User Context is forbidden for this endpoint. Supported authentication types are [OAuth 2.0 User Context].",
                "type": "https://api.x.com/2/problems/unsupported-authentication",
                "status": 403,
            }),
        ).because(State));
    }
    let token =
        request.bearer().and_then(|token| tokens::find(tx, ID, token)).filter(|token| token.is_valid(tx.now));
    let account = token.as_ref().and_then(|token| account::by_id(tx.store, ID, &token.user));
    let (Some(token), Some(account)) = (token, account) else { return Err(unauthorized()) };
    if scopes.iter().any(|scope| !token.scopes.iter().any(|granted| granted == scope)) {
        return Err(Response::json(
            403,
            &json!({
                "title": "Client Forbidden",
                "detail": format!("This request needs the scopes: {}.", scopes.join(" ")),
                "reason": "client-not-enrolled",
                "type": "https://api.x.com/2/problems/client-forbidden",
                "status": 403,
            }),
        )
        .because(State));
    }
    tx.quota = Some(tx.spend(rule, &account.id, 1).map_err(throttled)?);
    Ok(account)
}

fn rate_limited(response: Response, quota: Quota) -> Response {
    response
        .with("x-rate-limit-limit", quota.limit)
        .with("x-rate-limit-remaining", quota.remaining)
        .with("x-rate-limit-reset", quota.reset.timestamp())
}

fn throttled(quota: Quota) -> Response {
    rate_limited(problem(State, 429, "Too Many Requests", "Too Many Requests"), quota)
}

fn not_found() -> Response {
    Response::json(
        404,
        &json!({ "title": "Not Found", "type": "about:blank", "status": 404, "detail": "Not Found" }),
    )
    .because(State)
}

fn unauthorized() -> Response {
    problem(State, 401, "Unauthorized", "Unauthorized")
}

fn not_permitted(cause: Cause) -> Response {
    problem(cause, 403, "Forbidden", "You are not permitted to perform this action.")
}

/// The refusal of a reply to or a quote of another's post; recorded in July and October 2026.
fn uninvited() -> Response {
    Response::json(
        403,
        &json!({
            "title": "Authorization Error",
            "detail": "You can only reply to or quote posts where you are mentioned or are the author.",
            "type": "https://api.x.com/2/problems/not-authorized-for-resource",
        }),
    )
    .because(State)
}

fn problem(cause: Cause, status: u16, title: &str, detail: &str) -> Response {
    let body = json!({ "title": title, "detail": detail, "type": "about:blank", "status": status });
    Response { mime: "application/problem+json", ..Response::json(status, &body) }.because(cause)
}

fn invalid(cause: Cause, parameter: &str, value: &str, message: &str) -> Response {
    let body = json!({
        "errors": [{ "parameters": { parameter: [value] }, "message": message }],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": "https://api.x.com/2/problems/invalid-request",
        "status": 400,
    });
    Response { mime: "application/problem+json", ..Response::json(400, &body) }.because(cause)
}

/// Adds the keys of the rules about content in the schemas.
pub(super) fn schema_rules(rules: &mut std::collections::BTreeSet<String>) {
    posts::rules(rules);
    media::rules(rules);
}

impl From<Issue> for Response {
    fn from(issue: Issue) -> Self {
        invalid(issue.cause, &issue.member, &issue.value, &issue.message)
    }
}

/// Returns the JSON body after checking it against a schema.
fn body(request: &Request, schema: &Value) -> Result<Value, Response> {
    if request.mime() != Some("application/json") {
        return Err(invalid(
            Protocol,
            "content-type",
            request.mime().unwrap_or_default(),
            "The body has to be application/json.",
        ));
    }
    let value = request
        .json()
        .map_err(|error| invalid(Protocol, "body", "", &format!("The body is no JSON: {error}")))?;
    super::schema::check(schema, &value)?;
    Ok(value)
}

/// Returns the next id: the milliseconds since X's epoch, then a sequence; none is given twice.
fn snowflake(tx: &mut Transaction) -> String {
    const EPOCH: i64 = 1_288_834_974_657;
    let id = u64::try_from(tx.now.timestamp_millis() - EPOCH).unwrap_or(0) << 22;
    tx.store.advance("x", |last| id.max(last + 1)).to_string()
}

/// Formats a time as the API does.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
