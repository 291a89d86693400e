//! Pinterest: API v5, as its OpenAPI description 5.23 says (<https://github.com/pinterest/api-description>), and
//! declarations about AI as of 5.28 (<https://github.com/oapicf/pinterest-sdk>).
//!
//! Refresh tokens are replaced with each use; videos are uploaded to a separate storage by a signed form, and
//! processed for a while. An account begins with one board.
//!
//! A new app has trial access: it creates pins in the API sandbox only, another host with tokens, boards and pins
//! of its own, which has no video pins (<https://developers.pinterest.com/docs/developer-tools/sandbox/>). There
//! an account begins without a board.

mod access;
mod board;
mod boards;
mod media;
mod pins;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    login::TokenError,
    page,
    rate_limit::{Quota, RateLimit},
    routes::routes,
    simulator::{Grants, MediaView, PostView, Simulator},
    store::Record,
    tokens,
};
use crate::exchange::Cause::{self, Protocol, State};
use crate::{Identity, files::Upload};
use access::Realm;
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "pinterest";

/// Host that receives the bytes of videos.
const STORAGE: &str = "pinterest-media-upload.s3-accelerate.amazonaws.com";

const READ: RateLimit = RateLimit::new("pinterest.org_read", 1_000, 60);
const WRITE: RateLimit = RateLimit::new("pinterest.org_write", 100, 60);
const ANALYTICS: RateLimit = RateLimit::new("pinterest.org_analytics", 60, 60);

/// Largest body that the API's edge lets through, in bytes.
const EDGE_BYTES: usize = 32 << 20;

pub(super) struct Pinterest;

impl Simulator for Pinterest {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "api.pinterest.com"
            | "api-sandbox.pinterest.com"
            | "www.pinterest.com"
            | "pinterest.com"
            | "i.pinimg.com"
            | STORAGE => true,
            "" => path.starts_with("/v5/"),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.segments().as_slice() {
            _ if request.host == STORAGE && request.mime() == Some("multipart/form-data") => {
                BodyMode::Multipart("file")
            }
            ["v5", "pins"] if request.method == Method::POST => BodyMode::Buffered(EDGE_BYTES),
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        match (request.method.as_str(), request.segments().as_slice()) {
            ("POST", ["v5", "pins"]) => pins::media_urls(request),
            _ => Vec::new(),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        if request.host == STORAGE {
            let owner = media::by_upload_key(tx, request)?.owner;
            return account::by_id(tx.store, ID, &owner).map(|account| account.username);
        }
        tokens::owner(tx, ID, request)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        let segments = request.segments();
        match request.host.as_str() {
            STORAGE => return media::store(tx, request),
            "i.pinimg.com" => return pins::picture(tx, segments.last().copied().unwrap_or_default()),
            "www.pinterest.com" | "pinterest.com" => return site(tx, request, &segments),
            _ => {}
        }
        let path = segments.strip_prefix(&["v5"]).unwrap_or_default();
        match (api(tx, request, path), tx.quota) {
            (Ok(response), Some(quota)) => rate_limited(response, quota, tx.now),
            (Ok(response) | Err(response), _) => response,
        }
    }

    fn refuse(&self, tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => invalid(State, "the pin was refused on purpose"),
            401 => unauthorized(),
            403 => forbidden(),
            429 => throttled(
                Quota {
                    limit: WRITE.limit,
                    remaining: 0,
                    reset: tx.now + chrono::TimeDelta::seconds(1),
                    seconds: WRITE.seconds,
                },
                tx.now,
            ),
            503 => error(State, 503, 4197, "The endpoint is temporarily unavailable."),
            _ => error(State, 500, 0, "Sorry! Something went wrong on our end."),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name on Pinterest: 3 to 30 letters, digits and underscores";
        account::check_username(username, 3..=30, b"_", rule).map(str::to_lowercase)
    }

    fn account_id(&self, username: &str) -> String {
        let draw = account::digest_number(ID, username);
        (100_000_000_000_000_000 + draw % 800_000_000_000_000_000).to_string()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "business",
            Some(avatar(account)),
            format!("https://www.pinterest.com/{}/", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &access::Granting
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        pins::by(tx, &account.id).rev().map(|pin| post_view(tx, &pin)).collect()
    }
}

const ACCOUNT: &[&str] = &["user_accounts:read"];
const BOARDS: &[&str] = &["boards:read"];
const EDIT_BOARDS: &[&str] = &["boards:read", "boards:write"];
const PINS: &[&str] = &["boards:read", "pins:read"];
const EDIT_PINS: &[&str] = &["boards:read", "boards:write", "pins:read", "pins:write"];
const MEDIA: &[&str] = &["pins:read"];
const EDIT_MEDIA: &[&str] = &["pins:read", "pins:write"];

fn api(tx: &mut Transaction, request: &Request, path: &[&str]) -> Outcome {
    match (request.method.as_str(), path) {
        ("POST", ["oauth", "token"]) => return token(tx, request),
        ("POST", ["oauth", "token", "revoke"]) => return revoke(request),
        // The answer of the edge, not of the API.
        _ if request.is_too_large => {
            let html = "<html><head><title>413 Request Entity Too Large</title></head></html>";
            return Err(Response::bytes(413, "text/html", html.into()).because(Protocol));
        }
        _ => {}
    }
    routes! { tx, request, path, admit, not_routed(path);
        "GET"    ["user_account"]              => (ACCOUNT, READ)      me();
        "GET"    ["boards"]                    => (BOARDS, READ)       boards::list();
        "POST"   ["boards"]                    => (EDIT_BOARDS, WRITE) boards::create();
        "GET"    ["boards", board]             => (BOARDS, READ)       boards::show(board);
        "GET"    ["boards", board, "sections"] => (BOARDS, READ)       boards::sections(board);
        "POST"   ["boards", board, "sections"] => (EDIT_BOARDS, WRITE) boards::create_section(board);
        "GET"    ["boards", board, "pins"]     => (PINS, READ)         pins::list(Some(board));
        "GET"    ["pins"]                      => (PINS, READ)         pins::list(None);
        "POST"   ["pins"]                      => (EDIT_PINS, WRITE)   pins::create();
        "GET"    ["pins", pin]                 => (PINS, READ)         pins::show(pin);
        "PATCH"  ["pins", pin]                 => (EDIT_PINS, WRITE)   pins::change(pin);
        "DELETE" ["pins", pin]                 => (EDIT_PINS, WRITE)   pins::delete(pin);
        "GET"    ["pins", pin, "analytics"]    => (PINS, ANALYTICS)    pins::analytics(pin);
        "GET"    ["media"]                     => (MEDIA, READ)        media::list();
        "POST"   ["media"]                     => (EDIT_MEDIA, WRITE)  media::register();
        "GET"    ["media", media]              => (MEDIA, READ)        media::show(media);
    }
}

fn not_routed(path: &[&str]) -> Outcome {
    Err(match path {
        ["oauth", "token"] | ["user_account"] | ["boards" | "pins" | "media", ..] => {
            error(State, 405, 5, "Method not allowed.")
        }
        _ => error(State, 404, 404, "The requested resource was not found."),
    })
}

/// Pages for browsers: the login, profiles and pins.
fn site(tx: &mut Transaction, request: &Request, segments: &[&str]) -> Response {
    let found = match segments {
        ["oauth"] => return Realm::Production.login().dialog(tx, request),
        ["pin", id] => pins::get(tx, id).and_then(|pin| {
            let owner = account::by_id(tx.store, ID, &pin.owner)?;
            Some(page::post(tx, &Pinterest, &owner, &post_view(tx, &pin)))
        }),
        [username] => account::by_username(tx.store, ID, username)
            .map(|account| page::account(tx, &Pinterest, &account)),
        _ => None,
    };
    page::serve(found)
}

fn post_view(tx: &Transaction, pin: &pins::Pin) -> PostView {
    let mut notes = vec![format!(
        "On the board {}",
        board::get(tx, &pin.board).map_or_else(|| pin.board.clone(), |board| board.name)
    )];
    notes
        .extend((pin.realm == Realm::Sandbox).then(|| "In the API sandbox, visible to its owner".to_owned()));
    notes.extend(pin.title.iter().map(|title| format!("Title: {title}")));
    notes.extend(pin.link.iter().map(|link| format!("Leads to {link}")));
    notes.extend(pin.disclosures.iter().map(|declared| format!("Declared: {declared}")));
    for (index, slot) in pin.slots.iter().enumerate() {
        let number = index + 1;
        notes.extend(slot.title.iter().map(|title| format!("Title of picture {number}: {title}")));
        notes.extend(slot.link.iter().map(|link| format!("Picture {number} leads to {link}")));
    }
    let alt = pin.alt.clone().unwrap_or_default();
    let one = |file: &Upload, alt: String| MediaView {
        files: vec![file.id.clone()],
        mime: file.mime.clone().unwrap_or_default(),
        alt,
    };
    let media = pin.files.iter().map(|file| one(file, alt.clone()));
    let cover = pin.cover.iter().map(|cover| one(cover, "Cover".to_owned()));
    PostView {
        id: pin.id.clone(),
        address: format!("www.pinterest.com/pin/{}/", pin.id),
        text: pin.description.clone().unwrap_or_default(),
        at: pin.created_at,
        media: media.chain(cover).collect(),
        notes,
        reply_to: None,
    }
}

fn avatar(account: &Account) -> String {
    format!("https://i.pinimg.com/600x600_R/{}.jpg", account.id)
}

/// `POST /v5/oauth/token`.
fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    let login = Realm::of(request).login();
    if !login.has_client_credentials(request) {
        return Err(unauthorized());
    }
    let kind = request.field("grant_type").unwrap_or_default().to_owned();
    let issued = login.token(tx, request).map_err(|refusal| match refusal {
        TokenError::InvalidCode => error(State, 400, 283, "The authorization grant is invalid"),
        TokenError::InvalidRefreshToken => error(State, 401, 283, "The authorization grant is invalid"),
        TokenError::UnsupportedGrantType => {
            invalid(Protocol, "grant_type has to be authorization_code or refresh_token")
        }
    })?;
    Ok(Response::json(
        200,
        &json!({
            "response_type": kind,
            "access_token": issued.access,
            "token_type": "bearer",
            "expires_in": issued.access_seconds,
            "scope": issued.scopes.join(" "),
            "refresh_token": issued.refresh,
            "refresh_token_expires_in": issued.refresh_seconds,
            "refresh_token_expires_at": tx.now.timestamp() + issued.refresh_seconds,
        }),
    ))
}

/// `POST /v5/oauth/token/revoke`, which exists for system users only.
fn revoke(request: &Request) -> Outcome {
    if !Realm::of(request).login().has_client_credentials(request) {
        return Err(unauthorized());
    }
    Err(error(State, 403, 29, "You are not permitted to access that resource."))
}

/// `GET /v5/user_account`.
fn me(tx: &mut Transaction, request: &Request, account: &Account) -> Outcome {
    let realm = Realm::of(request);
    let body = json!({
        "id": account.id,
        "username": account.username,
        "account_type": "BUSINESS",
        "business_name": account.display_name(),
        "profile_image": avatar(account),
        "website_url": "",
        "about": "",
        "follower_count": 12,
        "following_count": 3,
        "board_count": board::of(tx, &account.id, realm).len(),
        "pin_count": pins::by(tx, &account.id).filter(|pin| pin.realm == realm).count(),
        "monthly_views": 163,
    });
    Ok(Response::json(200, &body))
}

/// Admits a request: checks its token, its scopes and the rate limit.
fn admit(
    tx: &mut Transaction,
    request: &Request,
    scopes: &[&str],
    rule: RateLimit,
) -> Result<Account, Response> {
    let realm = Realm::of(request);
    let token = request.bearer().filter(|token| realm.has_issued(token));
    let token = token.and_then(|token| tokens::find(tx, ID, token));
    let token = token.filter(|token| token.is_valid(tx.now)).ok_or_else(unauthorized)?;
    let account = account::by_id(tx.store, ID, &token.user).ok_or_else(unauthorized)?;
    if let Some(scope) = token.missing_scope(scopes) {
        return Err(error(
            State,
            401,
            3,
            &format!("Your token does not have the required scopes: it lacks {scope}."),
        ));
    }
    let now = tx.now;
    tx.quota = Some(tx.spend(rule, &account.id, 1).map_err(|spent| throttled(spent, now))?);
    if realm == Realm::Production {
        board::ensure_first(tx, &account);
    }
    Ok(account)
}

fn rate_limited(response: Response, quota: Quota, now: DateTime<Utc>) -> Response {
    // Whole seconds until the reset.
    let reset = (quota.reset - now).num_milliseconds().max(0) as u64;
    response
        .with("x-ratelimit-limit", format!("{0}, {0};w={1}", quota.limit, quota.seconds))
        .with("x-ratelimit-remaining", quota.remaining)
        .with("x-ratelimit-reset", reset.div_ceil(1_000))
}

fn throttled(quota: Quota, now: DateTime<Utc>) -> Response {
    rate_limited(error(State, 429, 8, "This request exceeded a rate limit."), quota, now)
}

fn unauthorized() -> Response {
    error(State, 401, 2, "Authentication failed.")
}

fn forbidden() -> Response {
    error(State, 403, 29, "You are not permitted to access that resource.")
}

fn invalid(cause: Cause, what: &str) -> Response {
    error(cause, 400, 1, &format!("Invalid request: {what}"))
}

fn error(cause: Cause, status: u16, code: u32, message: &str) -> Response {
    Response::json(status, &json!({ "status": "failure", "code": code, "message": message })).because(cause)
}

/// Returns the body, which has to be JSON.
fn body(request: &Request) -> Result<Value, Response> {
    let value =
        request.json().map_err(|error| invalid(Protocol, &format!("the body is no JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(invalid(Protocol, "the body has to be an object")) }
}

/// Returns a text member after checking its length, whose excess has this cause.
fn text(body: &Value, name: &str, max: usize, cause: Cause) -> Result<Option<String>, Response> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) if text.chars().count() > max => {
            Err(invalid(cause, &format!("'{name}' is too long, constraint: maxLength={max}")))
        }
        Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        other => Err(invalid(Protocol, &format!("'{name}': {other} is not of type 'string'"))),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns an id of a body, whose wrong form has this cause.
fn number(body: &Value, name: &str, cause: Cause) -> Result<Option<String>, Response> {
    match text(body, name, 64, cause.clone())? {
        Some(id) if !is_number(&id) => Err(invalid(cause, &format!("'{id}' does not match '^\\d+$'"))),
        id => Ok(id),
    }
}

/// Returns one page of a list, and the bookmark of the next.
fn paged<T>(
    request: &Request,
    all: Vec<T>,
    id: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), Response> {
    let size = match request.query("page_size").map(str::parse::<usize>) {
        None => 25,
        Some(Ok(size @ 1..=250)) => size,
        Some(_) => return Err(invalid(Protocol, "page_size has to be 1 to 250")),
    };
    let skip = match request.query("bookmark") {
        None => 0,
        Some(mark) => {
            let last =
                mark.strip_prefix("b1.").ok_or_else(|| invalid(State, "the bookmark is none of ours"))?;
            all.iter().position(|item| id(item) == last).map_or(0, |at| at + 1)
        }
    };
    let is_more = all.len() > skip + size;
    let page: Vec<T> = all.into_iter().skip(skip).take(size).collect();
    let bookmark = page.last().filter(|_| is_more).map(|last| format!("b1.{}", id(last)));
    Ok((page, bookmark))
}

/// Returns the next id. Two in a row differ in more than their last digit, so that a typing error matches
/// nothing.
fn next(tx: &mut Transaction) -> String {
    let count = tx.store.advance("pinterest", |last| last + 1);
    (813_744_000_000_000_007 + count * 10).to_string()
}

/// Formats a time as the API does: without a zone.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}
