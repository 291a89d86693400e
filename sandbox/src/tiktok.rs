//! TikTok: Login Kit, Display API and Content Posting API, version 2, as
//! <https://developers.tiktok.com/doc/overview> says.
//!
//! A new app is one that TikTok has not audited: it posts for five private accounts a day, and only what their
//! creators alone can see. An account whose name begins with `private` is private; one whose name begins with
//! `strict` allows neither comments, duets nor stitches, at most a minute of video, and no parts of a video that
//! fits into one. The address of an upload is its credential, as on TikTok.

mod oauth;
mod publish;
mod videos;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, MediaView, PostView, Simulator},
    tokens,
};
use crate::Identity;
use crate::exchange::Cause::{self, Protocol, State};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "tiktok";

const MINUTE: i64 = 60;

pub(super) struct TikTok;

impl Simulator for TikTok {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "open.tiktokapis.com"
            | "open-upload.tiktokapis.com"
            | "www.tiktok.com"
            | "tiktok.com"
            | "p16-sign.tiktokcdn.com" => true,
            "" => ["/v2/post/publish/", "/v2/oauth/", "/v2/user/info/", "/v2/video/", "/v2/auth/authorize"]
                .iter()
                .any(|start| path.starts_with(start)),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.host.as_str() {
            "open-upload.tiktokapis.com" => BodyMode::Upload,
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        match request.path.contains("/post/publish/") {
            true => publish::media_urls(&request.json().unwrap_or(Value::Null)),
            false => Vec::new(),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        if request.host != "open-upload.tiktokapis.com" {
            return tokens::owner(tx, ID, request);
        }
        let user = publish::uploader(tx, request.query("upload_id")?)?;
        account::by_id(tx.store, ID, &user).map(|account| account.username)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        let segments = request.segments();
        if let Some(response) = site(tx, request, &segments) {
            return response;
        }
        if request.host == "open-upload.tiktokapis.com" {
            return publish::put(tx, request);
        }
        let path = segments.strip_prefix(&["v2"]).unwrap_or(&segments);
        api(tx, request, path).unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _tx: &mut Transaction, request: &Request, status: u16) -> Response {
        if request.host == "open-upload.tiktokapis.com" {
            return Response::empty(status).because(State);
        }
        match status {
            400 => refusal(State, 400, "invalid_param", "The request was refused on purpose."),
            401 => unauthorized(),
            403 => refusal(
                State,
                403,
                "spam_risk_user_banned_from_posting",
                "The user is banned from making new posts.",
            ),
            // The header is not documented; it is sent so that clients retry soon.
            429 => throttled().with("retry-after", 2),
            _ => refusal(State, status, "internal_error", "Something went wrong. Please try again later."),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let username = username.to_lowercase();
        let is_name = (2..=24).contains(&username.len())
            && username.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
            && !username.ends_with('.');
        match is_name {
            true => Ok(username),
            false => Err(format!(
                "`{username}` is no name on TikTok: 2 to 24 letters, digits, underscores and dots, none of them at the end"
            )),
        }
    }

    fn account_id(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        format!("-000{}", BASE64_URL_SAFE_NO_PAD.encode(&digest[..24]))
    }

    fn identity(&self, account: &Account) -> Identity {
        let mut identity = account.identity("profile", Some(avatar(account)), profile(account));
        identity.profile.display_name = nickname(account);
        identity
    }

    fn grants(&self) -> &dyn Grants {
        &oauth::TOKENS
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        publish::by(tx, &account.id).rev().filter_map(|post| post_view(account, &post)).collect()
    }
}

const PROFILE: &[&str] = &["user.info.basic"];
const LIST: &[&str] = &["video.list"];
const DIRECT: &[&str] = &["video.publish"];
const DRAFT: &[&str] = &["video.upload"];
const EITHER: &[&str] = &["video.publish", "video.upload"];

const DISPLAY: RateLimit = RateLimit::new("tiktok.display", 600, MINUTE);
const CREATORS: RateLimit = RateLimit::new("tiktok.creators", 20, MINUTE);
const INITS: RateLimit = RateLimit::new("tiktok.inits", 6, MINUTE);
const STATUSES: RateLimit = RateLimit::new("tiktok.statuses", 30, MINUTE);

fn api(tx: &mut Transaction, request: &Request, path: &[&str]) -> Outcome {
    match (request.method.as_str(), path) {
        ("GET", ["auth", "authorize"]) => return oauth::consent_page(tx, request),
        ("POST", ["auth", "authorize"]) => return oauth::decide(tx, request),
        ("POST", ["oauth", "token"]) => return oauth::token(tx, request),
        ("POST", ["oauth", "revoke"]) => return oauth::revoke(tx, request),
        _ if request.is_too_large => {
            return Err(refusal(Protocol, 400, "invalid_params", "The request is too large."));
        }
        // Its scope depends on its body.
        ("POST", ["post", "publish", "content", "init"]) => return publish::photos(tx, request),
        _ => {}
    }
    routes! { tx, request, path, admit, Err(refusal(Protocol, 404, "unsupported_path", "Unsupported path(Janus)"));
        "GET"    ["user", "info"]                              => (PROFILE, DISPLAY) me();
        "POST"   ["video", "list"]                             => (LIST, DISPLAY)    videos::list();
        "POST"   ["video", "query"]                            => (LIST, DISPLAY)    videos::query();
        "POST"   ["post", "publish", "creator_info", "query"]  => (DIRECT, CREATORS) publish::creator();
        "POST"   ["post", "publish", "video", "init"]          => (DIRECT, INITS)    publish::video(false);
        "POST"   ["post", "publish", "inbox", "video", "init"] => (DRAFT, INITS)     publish::video(true);
        "POST"   ["post", "publish", "status", "fetch"]        => (EITHER, STATUSES) publish::status();
        "POST"   ["post", "publish", "cancel"]                 => (EITHER, STATUSES) publish::cancel();
    }
}

/// Pages for browsers: the consent page, profiles, posts.
fn site(tx: &mut Transaction, request: &Request, segments: &[&str]) -> Option<Response> {
    match (request.host.as_str(), request.method.as_str(), segments) {
        ("www.tiktok.com" | "tiktok.com" | "", "GET", ["v2", "auth", "authorize"]) => {
            Some(oauth::consent_page(tx, request).unwrap_or_else(|refusal| refusal))
        }
        ("www.tiktok.com" | "tiktok.com" | "", "POST", ["v2", "auth", "authorize"]) => {
            Some(oauth::decide(tx, request).unwrap_or_else(|refusal| refusal))
        }
        ("www.tiktok.com" | "tiktok.com", _, [handle, "video" | "photo", id]) => {
            let shown = named(tx, handle).and_then(|account| {
                let views = TikTok.posts(tx, &account);
                let card = views.iter().find(|card| card.id == *id)?;
                Some(page::post(tx, &TikTok, &account, card))
            });
            Some(page::serve(shown))
        }
        ("www.tiktok.com" | "tiktok.com", _, [handle]) => {
            let shown = named(tx, handle).map(|account| page::account(tx, &TikTok, &account));
            Some(page::serve(shown))
        }
        ("www.tiktok.com" | "tiktok.com" | "p16-sign.tiktokcdn.com", _, _) => Some(page::serve(None)),
        _ => None,
    }
}

fn named(tx: &Transaction, handle: &str) -> Option<Account> {
    account::by_username(tx.store, ID, handle.strip_prefix('@')?)
}

fn post_view(account: &Account, post: &publish::Publish) -> Option<PostView> {
    let at = post.published_at()?;
    let kind = if post.is_video { "video" } else { "photo" };
    let mut notes = vec![match post.is_draft {
        true => "In the inbox of TikTok's app".to_owned(),
        false => format!("Visible: {}", post.privacy()),
    }];
    notes.extend(post.notes());
    let media = post.files.iter().map(|(file, mime)| MediaView {
        files: vec![file.clone()],
        mime: mime.clone(),
        alt: String::new(),
    });
    Some(PostView {
        id: post.post.clone(),
        address: format!("www.tiktok.com/@{}/{kind}/{}", account.username, post.post),
        text: post.text().to_owned(),
        at,
        media: media.collect(),
        notes,
        reply_to: None,
    })
}

/// Returns the display name, which is no handle: several creators may have the same.
fn nickname(account: &Account) -> String {
    let word = account.username.split(['.', '_']).find(|word| !word.is_empty()).unwrap_or_default();
    let (first, rest) = word.split_at(word.len().min(1));
    format!("{}{rest} Creator", first.to_uppercase())
}

fn avatar(account: &Account) -> String {
    format!("https://p16-sign.tiktokcdn.com/{}~c5_168x168.jpeg", account.id)
}

fn profile(account: &Account) -> String {
    format!("https://www.tiktok.com/@{}", account.username)
}

/// Admits a request: checks its token, for one of the scopes, and the rate limit.
fn admit(
    tx: &mut Transaction,
    request: &Request,
    scopes: &[&str],
    rule: RateLimit,
) -> Result<Account, Response> {
    let token =
        request.bearer().and_then(|token| tokens::find(tx, ID, token)).filter(|token| token.is_valid(tx.now));
    let account = token.as_ref().and_then(|token| account::by_id(tx.store, ID, &token.user));
    let (Some(token), Some(account)) = (token, account) else { return Err(unauthorized()) };
    if !scopes.iter().any(|scope| token.scopes.iter().any(|granted| granted == scope)) {
        return Err(refusal(
            State,
            401,
            "scope_not_authorized",
            &format!(
                "The user did not authorize the scope required for completing this request: {}.",
                scopes.join(" or ")
            ),
        ));
    }
    tx.spend(rule, &account.id, 1).map_err(|_| throttled())?;
    Ok(account)
}

fn unauthorized() -> Response {
    refusal(State, 401, "access_token_invalid", "The access token is invalid or not found in the request.")
}

fn throttled() -> Response {
    refusal(State, 429, "rate_limit_exceeded", "The API rate limit was exceeded. Please try again later.")
}

/// Creates a refusal in the shape of all data calls.
fn refusal(cause: Cause, status: u16, code: &str, message: &str) -> Response {
    let error = json!({ "code": code, "message": message, "log_id": log() });
    Response::json(status, &json!({ "data": {}, "error": error })).because(cause)
}

/// Creates a success in the shape of all data calls.
fn success(data: &Value) -> Response {
    Response::json(200, &json!({ "data": data, "error": { "code": "ok", "message": "", "log_id": log() } }))
}

fn log() -> String {
    format!("2026{:030X}", rand::random::<u64>())
}

/// Returns the JSON body; an empty body is an empty object.
fn body(request: &Request, wrong: &str) -> Result<Value, Response> {
    if request.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    if request.mime() != Some("application/json") {
        return Err(refusal(Protocol, 400, wrong, "Content-Type has to be application/json."));
    }
    request
        .json()
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| refusal(Protocol, 400, wrong, "The request body is no JSON object."))
}

/// `GET /v2/user/info/`: the requested fields, each with its own scope.
fn me(tx: &mut Transaction, request: &Request, account: &Account) -> Outcome {
    let token = request.bearer().and_then(|token| tokens::find(tx, ID, token)).ok_or_else(unauthorized)?;
    let fields = request.query("fields").unwrap_or_default();
    if fields.is_empty() {
        return Err(refusal(Protocol, 400, "invalid_params", "The fields parameter is required."));
    }
    let mut user = json!({});
    for field in fields.split(',').map(str::trim) {
        let (scope, value) = match field {
            "open_id" => ("user.info.basic", json!(account.id)),
            "union_id" => ("user.info.basic", json!(account.id.replacen("-000", "union-", 1))),
            "avatar_url" | "avatar_url_100" | "avatar_large_url" => {
                ("user.info.basic", json!(avatar(account)))
            }
            "display_name" => ("user.info.basic", json!(nickname(account))),
            "username" => ("user.info.profile", json!(account.username)),
            "bio_description" => ("user.info.profile", json!("")),
            "profile_deep_link" => ("user.info.profile", json!(profile(account))),
            "is_verified" => ("user.info.profile", json!(false)),
            "follower_count" | "following_count" | "likes_count" => ("user.info.stats", json!(0)),
            "video_count" => ("user.info.stats", json!(publish::by(tx, &account.id).count())),
            _ => {
                return Err(refusal(
                    Protocol,
                    400,
                    "invalid_params",
                    &format!("Field {field} is not supported."),
                ));
            }
        };
        if !token.scopes.iter().any(|granted| granted == scope) {
            return Err(refusal(
                State,
                401,
                "scope_not_authorized",
                &format!("The user did not authorize the scope required for {field}: {scope}."),
            ));
        }
        user[field] = value;
    }
    Ok(success(&json!({ "user": user })))
}
