//! Reddit: its Data API, as its reference (<https://www.reddit.com/dev/api>), its last public server
//! source (<https://github.com/reddit-archive/reddit>) and what PRAW records of it say.
//!
//! Validation errors have status 200. Refresh tokens stay the same. There is a subreddit of every name,
//! except names that begin with `missing`; a few are special, see [`subreddits`].

pub(super) mod markdown;
mod media;
mod posts;
mod subreddits;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    login::{Login, TokenError},
    page,
    rate_limit::{Quota, RateLimit},
    routes::routes,
    simulator::{Grants, PostView, Simulator},
    store::Record,
    tokens::{self, Rotation, TokenPolicy},
};
use crate::Identity;
use crate::exchange::Cause::{self, State};
use chrono::TimeDelta;
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "reddit";

/// Hosts that receive bytes: of images, and of videos.
const STORAGES: [&str; 2] = [
    "reddit-uploaded-media.s3-accelerate.amazonaws.com",
    "reddit-uploaded-video.s3-accelerate.amazonaws.com",
];

/// Host that reports the results of uploads.
const SOCKETS: &str = "ws-05ba9e4989f78959d.wss.redditmedia.com";

const REQUESTS: RateLimit = RateLimit::new("reddit.requests", 1_000, 600);
/// Posts of an account. The real limit is not published; an account in good standing does not reach it.
const POSTS: RateLimit = RateLimit::new("reddit.posts", 300, 600);

const SCOPES: &[&str] =
    &["identity", "submit", "read", "edit", "flair", "history", "mysubreddits", "vote", "save", "subscribe"];

static LOGIN: Login = Login {
    tokens: TokenPolicy {
        simulator: &Reddit,
        client: "fanfare-sandbox-reddit",
        granted: SCOPES,
        code_seconds: 600,
        access: ("eyJ.sandbox.", 86_400),
        refresh: ("sandbox.", 0),
        rotation: Rotation::Never,
    },
    scopes: SCOPES,
    has_refresh_token: |fields| fields.iter().any(|(name, value)| name == "duration" && value == "permanent"),
    denied_error: "access_denied",
    fragment: "#_",
};

pub(super) struct Reddit;

/// An admitted caller.
struct Caller {
    account: Account,
    quota: Quota,
}

impl Simulator for Reddit {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "www.reddit.com" | "oauth.reddit.com" | "reddit.com" | "old.reddit.com" | "i.redd.it"
            | "v.redd.it" | SOCKETS => true,
            "" => ["/api/", "/r/", "/user/", "/subreddits/", "/comments/"]
                .iter()
                .any(|start| path.starts_with(start)),
            _ => STORAGES.contains(&host),
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match STORAGES.contains(&request.host.as_str()) && request.mime() == Some("multipart/form-data") {
            true => BodyMode::Multipart("file"),
            false => BodyMode::Buffered(1 << 20),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        if STORAGES.contains(&request.host.as_str()) {
            let owner = media::by_upload_key(tx, request)?.owner;
            return account::by_id(tx.store, ID, &owner).map(|account| account.username);
        }
        tokens::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        let segments = request.segments();
        match request.host.as_str() {
            SOCKETS => return media::notify(tx, request, segments.last().copied().unwrap_or_default()),
            "i.redd.it" | "v.redd.it" => {
                return media::show(tx, segments.first().copied().unwrap_or_default());
            }
            host if STORAGES.contains(&host) => return media::store(tx, request),
            _ => {}
        }
        let is_site = request.host != "oauth.reddit.com";
        match (request.method.as_str(), segments.as_slice()) {
            (_, ["api", "v1", "authorize" | "authorize.compact"]) if is_site => LOGIN.dialog(tx, request),
            (_, path) => api(tx, request, path, is_site).unwrap_or_else(|refusal| refusal),
        }
    }

    fn refuse(&self, _tx: &mut Transaction, request: &Request, status: u16) -> Response {
        match status {
            403 if is_token_path(&request.segments()) => blocked(),
            400 => Response::json(
                400,
                &json!({
                    "fields": ["title"],
                    "explanation": "this title has words that this community does not take",
                    "message": "Bad Request",
                    "error_type": "SUBMIT_VALIDATION_ERROR",
                    "reason": "SUBMIT_VALIDATION_TITLE_BLACKLISTED_STRING",
                }),
            )
            .because(State),
            401 => unauthorized(),
            403 => forbidden(None),
            429 => throttled(1),
            status => Response::bytes(
                status,
                "text/html; charset=utf-8",
                "<!doctype html><title>Ow!</title><h2>all of our servers are busy right now</h2>".into(),
            )
            .because(State),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name on Reddit: 3 to 20 letters, digits, underscores and hyphens";
        account::check_username(username, 3..=20, b"_-", rule).map(str::to_owned)
    }

    fn account_id(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        let draw = u64::from(u32::from_be_bytes(digest[..4].try_into().expect("four bytes of a digest")));
        base36(60_466_176 + draw)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "profile",
            Some(avatar(account)),
            format!("https://www.reddit.com/user/{}/", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN.tokens
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        posts::by(tx, &account.id).rev().map(|thing| thing.post_view(tx)).collect()
    }
}

fn api(tx: &mut Transaction, request: &Request, path: &[&str], is_site: bool) -> Outcome {
    match (request.method.as_str(), path) {
        _ if is_token_path(path) && !has_own_agent(request) => return Err(blocked()),
        ("POST", ["api", "v1", "access_token"]) if is_site => return token(tx, request),
        ("POST", ["api", "v1", "revoke_token"]) if is_site => return revoke(tx, request),
        _ if is_site && !request.host.is_empty() => return Ok(site(tx, path)),
        _ if has_generic_agent(request) => return Err(throttled(1)),
        _ if request.is_too_large => {
            return Err(Response::page(413, page::notice("Too large", "Payload Too Large")));
        }
        _ => {}
    }
    routes! { tx, request, path, admit, Err(error(404, "Not Found"));
        "GET"    ["api", "v1", "me"]                                            => ("identity")     me();
        "GET"    ["api", "v1", name, "post_requirements"]                       => ("submit")       subreddits::requirements(name);
        "GET"    ["r", name, "about"]                                           => ("read")         subreddits::about(name);
        "GET"    ["r", name, "api", "link_flair_v2"]                            => ("flair")        subreddits::flairs(name);
        "GET"    ["subreddits", "mine", "subscriber"]                           => ("mysubreddits") subreddits::mine();
        "GET"    ["subreddits", "search"]                                       => ("read")         subreddits::search("q");
        "GET"    ["api", "subreddit_autocomplete_v2"]                           => ("read")         subreddits::search("query");
        "POST"   ["api", "media", "asset" | "asset.json"]                       => ("submit")       media::lease();
        "POST"   ["api", "submit"]                                              => ("submit")       posts::submit();
        "POST"   ["api", "submit_gallery_post" | "submit_gallery_post.json"]    => ("submit")       posts::submit_gallery();
        "POST"   ["api", "submit_poll_post" | "submit_poll_post.json"]          => ("submit")       posts::submit_poll();
        "POST"   ["r", name, "api", "flairselector"]                            => ("flair")        subreddits::flair_selector(name);
        "POST"   ["api", "comment"]                                             => ("submit")       posts::comment();
        "POST"   ["api", "editusertext"]                                        => ("edit")         posts::edit();
        "POST"   ["api", "del"]                                                 => ("edit")         posts::delete();
        "GET"    ["api", "info"]                                                => ("read")         posts::info();
        "GET"    ["comments", id]                                               => ("read")         posts::with_comments(id);
        "GET"    ["user", name, list @ ("submitted" | "comments" | "overview")] => ("history")      posts::list(name, list);
    }
}

/// Pages for browsers: profiles, posts and comments.
fn site(tx: &Transaction, segments: &[&str]) -> Response {
    let thing = |id: &str| {
        let thing = posts::get(tx, id)?;
        let owner = account::by_id(tx.store, ID, &thing.owner)?;
        Some(page::post(tx, &Reddit, &owner, &thing.post_view(tx)))
    };
    let found = match segments {
        [.., "comments", _, _, comment] => thing(&format!("t1_{comment}")),
        [.., "comments", post] | [.., "comments", post, _] => thing(&format!("t3_{post}")),
        ["user" | "u", name] => {
            account::by_username(tx.store, ID, name).map(|account| page::account(tx, &Reddit, &account))
        }
        _ => None,
    };
    page::serve(found)
}

fn avatar(account: &Account) -> String {
    format!("https://styles.redditmedia.com/t5_{}/styles/profileIcon.png", account.id)
}

/// `POST /api/v1/access_token`.
fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    if !LOGIN.has_client_credentials(request) {
        return Err(error(401, "Unauthorized"));
    }
    let issued = LOGIN.token(tx, request).map_err(|refusal| match refusal {
        TokenError::InvalidCode => Response::json(200, &json!({ "error": "invalid_grant" })),
        TokenError::UnsupportedGrantType => {
            Response::json(200, &json!({ "error": "unsupported_grant_type" }))
        }
        TokenError::InvalidRefreshToken => error(400, "Bad Request"),
    })?;
    let mut body = json!({
        "access_token": issued.access,
        "token_type": "bearer",
        "expires_in": issued.access_seconds,
        "scope": issued.scopes.join(" "),
    });
    if let Some(refresh) = issued.refresh {
        body["refresh_token"] = json!(refresh);
    }
    Ok(Response::json(200, &body))
}

/// `POST /api/v1/revoke_token` (RFC 7009); an unknown token is a success too.
fn revoke(tx: &mut Transaction, request: &Request) -> Outcome {
    if !LOGIN.has_client_credentials(request) {
        return Err(error(401, "Unauthorized"));
    }
    let token = request.field("token").ok_or_else(|| error(400, "Bad Request"))?;
    tokens::revoke(tx, ID, token);
    Ok(Response::empty(200))
}

/// `GET /api/v1/me`.
fn me(tx: &mut Transaction, _: &Request, caller: &Caller) -> Outcome {
    let account = &caller.account;
    let body = json!({
        "id": account.id,
        "name": account.username,
        "icon_img": format!("{}?width=256&s=0123456789abcdef", avatar(account)),
        "created_utc": account.created_at.timestamp(),
        "is_suspended": account.username.to_lowercase().starts_with("suspended"),
        "has_verified_email": true,
        "link_karma": 1_200,
        "comment_karma": 340,
        "over_18": false,
        "subreddit": {
            "display_name": format!("u_{}", account.username),
            "title": account.display_name(),
            "subreddit_type": "user",
        },
    });
    Ok(caller.reply(tx, &body))
}

/// Returns whether a client sends the user agent of its HTTP library.
fn has_generic_agent(request: &Request) -> bool {
    let agent = request.header("user-agent").unwrap_or_default().to_lowercase();
    ["python-requests/", "python-urllib/", "java/", "curl/", "go-http-client/"]
        .iter()
        .any(|name| agent.starts_with(name))
}

fn is_token_path(path: &[&str]) -> bool {
    matches!(path, ["api", "v1", "access_token" | "revoke_token"])
}

/// Returns whether a client describes itself, as Reddit's rules demand, instead of only naming a product.
fn has_own_agent(request: &Request) -> bool {
    let agent = request.header("user-agent").unwrap_or_default();
    agent.contains([' ', ':']) && !has_generic_agent(request)
}

/// The page of Reddit's edge, which blocks networks and user agents before the API sees the request.
fn blocked() -> Response {
    let html = "<!doctype html><body class=theme-beta><h1>whoa there, pardner!</h1><p>You've been blocked by \
                network security.</p>";
    Response::bytes(403, "text/html; charset=utf-8", html.into()).because(State)
}

/// Admits a request: checks its token, its scope and the rate limit.
fn admit(tx: &mut Transaction, request: &Request, scope: &str) -> Result<Caller, Response> {
    let token = request.bearer().and_then(|token| tokens::find(tx, ID, token));
    let token = token.filter(|token| token.is_valid(tx.now)).ok_or_else(unauthorized)?;
    let account = account::by_id(tx.store, ID, &token.user).ok_or_else(unauthorized)?;
    if token.missing_scope(&[scope]).is_some() {
        return Err(error(403, "Forbidden")
            .with("www-authenticate", "Bearer realm=\"reddit\", error=\"insufficient_scope\""));
    }
    let quota = tx.spend(REQUESTS, &account.id, 1).map_err(|spent| {
        let rest = seconds(spent, tx);
        windowed(throttled(rest), spent, rest)
    })?;
    Ok(Caller { account, quota })
}

impl Caller {
    /// Creates a response with the rate limit headers.
    fn reply(&self, tx: &Transaction, body: &Value) -> Response {
        windowed(Response::json(200, body), self.quota, seconds(self.quota, tx))
    }

    /// Creates a refusal of the request's content, which has status 200.
    fn refuse(&self, tx: &Transaction, cause: Cause, code: &str, words: &str, field: &str) -> Response {
        self.reply(tx, &json!({ "json": { "errors": [[code, words, field]] } })).because(cause)
    }

    /// Spends one of the account's posts and comments.
    fn write(&self, tx: &mut Transaction) -> Result<(), Response> {
        let Err(spent) = tx.spend(POSTS, &self.account.id, 1) else { return Ok(()) };
        let rest = seconds(spent, tx);
        let time = match rest {
            1 => "1 second".to_owned(),
            2..60 => format!("{rest} seconds"),
            60..120 => "1 minute".to_owned(),
            _ => format!("{} minutes", rest / 60),
        };
        let words =
            format!("Looks like you've been doing that a lot. Take a break for {time} before trying again.");
        Err(self.reply(
            tx,
            &json!({ "json": { "ratelimit": rest as f64, "errors": [["RATELIMIT", words, "ratelimit"]] } }),
        ))
    }
}

/// Returns the whole seconds until a window ends.
fn seconds(quota: Quota, tx: &Transaction) -> u64 {
    u64::try_from((quota.reset - tx.now).num_milliseconds()).unwrap_or(0).div_ceil(1_000).max(1)
}

fn windowed(response: Response, quota: Quota, rest: u64) -> Response {
    response
        .with("x-ratelimit-used", quota.limit - quota.remaining)
        .with("x-ratelimit-remaining", format!("{}.0", quota.remaining))
        .with("x-ratelimit-reset", rest)
}

fn throttled(rest: u64) -> Response {
    let html = "<!doctype html><title>Too Many Requests</title><h1>whoa there, pardner!</h1>";
    Response::bytes(429, "text/html; charset=utf-8", html.into()).because(State).with("retry-after", rest)
}

fn unauthorized() -> Response {
    error(401, "Unauthorized").with("www-authenticate", "Bearer realm=\"reddit\", error=\"invalid_token\"")
}

fn forbidden(reason: Option<&str>) -> Response {
    let mut body = json!({ "message": "Forbidden", "error": 403 });
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
    }
    Response::json(403, &body).because(State)
}

fn error(status: u16, message: &str) -> Response {
    Response::json(status, &json!({ "message": message, "error": status })).because(State)
}

/// Returns one page of a listing, newest first; `after` names the last item of the page before.
fn listing(request: &Request, all: Vec<(String, &'static str, Value)>) -> Value {
    let size = request.query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(25_usize).clamp(1, 100);
    let after = request.query("after").filter(|after| !after.is_empty());
    let skip = match after {
        None => 0,
        Some(last) => all.iter().position(|(name, ..)| name == last).map_or(all.len(), |at| at + 1),
    };
    let is_more = all.len() > skip + size;
    let page: Vec<_> = all.into_iter().skip(skip).take(size).collect();
    let next = page.last().filter(|_| is_more).map(|(name, ..)| name.clone());
    let children: Vec<_> =
        page.into_iter().map(|(_, kind, data)| json!({ "kind": kind, "data": data })).collect();
    json!({
        "kind": "Listing",
        "data": {
            "after": next, "before": null, "dist": children.len(), "modhash": null, "geo_filter": "",
            "children": children,
        },
    })
}

/// Returns the processing time of the settings.
fn processing(tx: &Transaction) -> TimeDelta {
    TimeDelta::milliseconds(i64::try_from(tx.settings.processing_ms).unwrap_or(i64::MAX / 2))
}

/// Returns the address of one of Reddit's hosts for a client of this sandbox.
fn origin(request: &Request, scheme: &str, host: &str) -> String {
    match request.header("host") {
        Some(own) => format!("{scheme}://{own}/{host}"),
        None => format!("{scheme}s://{host}"),
    }
}

/// Returns the next id, seven characters in base 36. Two in a row differ in more than their last digit, so
/// that a typing error matches nothing.
fn next(tx: &mut Transaction) -> String {
    let count = tx.store.advance("reddit", |last| last + 1);
    base36(2_500_000_000 + count * 1_297)
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        let digit = u32::try_from(number % 36).expect("a digit");
        digits.push(char::from_digit(digit, 36).expect("a digit"));
        number /= 36;
    }
    digits.iter().rev().collect()
}
