//! TikTok: Login Kit, Display API and Content Posting API, version 2, as
//! <https://developers.tiktok.com/doc/overview> says.
//!
//! Served as to an audited app. An account whose name begins with `private` is a private one; one whose
//! name begins with `strict` allows neither comments, duets nor stitches and no more than a minute of
//! video. The address of an upload is its credential, as on the real one.

mod oauth;
mod publish;
mod videos;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host, Picture},
    page,
    window::Rule,
    tokens,
};
use crate::Identity;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "tiktok";

const MINUTE: i64 = 60;

/// Calls of the Display API that a token may make.
const DISPLAY: Rule = Rule { name: "tiktok.display", limit: 600, seconds: MINUTE };

/// TikTok.
pub(super) struct TikTok;

impl Host for TikTok {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "open.tiktokapis.com" | "open-upload.tiktokapis.com" | "www.tiktok.com" | "tiktok.com"
            | "p16-sign.tiktokcdn.com" => true,
            "" => ["/v2/post/publish/", "/v2/oauth/", "/v2/user/info/", "/v2/video/", "/v2/auth/authorize"]
                .iter()
                .any(|start| path.starts_with(start)),
            _ => false,
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.host.as_str() {
            "open-upload.tiktokapis.com" => Intake::Bytes,
            _ => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        match call.path.contains("/post/publish/") {
            true => publish::addresses(&call.json().unwrap_or(Value::Null)),
            false => Vec::new(),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        if call.host != "open-upload.tiktokapis.com" {
            return tokens::owner(turn, ID, call);
        }
        let user = publish::uploader(turn, call.query("upload_id")?)?;
        account::numbered(turn.shelf, ID, &user).map(|account| account.username)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        let segments = call.segments();
        if let Some(answer) = site(turn, call, &segments) {
            return answer;
        }
        if call.host == "open-upload.tiktokapis.com" {
            return publish::put(turn, call);
        }
        let path = segments.strip_prefix(&["v2"]).unwrap_or(&segments);
        let answer = match (call.method.as_str(), path) {
            ("GET", ["auth", "authorize"]) => oauth::ask(call),
            ("POST", ["auth", "authorize"]) => oauth::consent(turn, call),
            ("POST", ["oauth", "token"]) => oauth::token(turn, call),
            ("POST", ["oauth", "revoke"]) => oauth::revoke(turn, call),
            _ if call.is_too_large => Err(refusal(400, "invalid_params", "The request is too large.")),
            ("GET", ["user", "info"]) => me(turn, call),
            ("POST", ["video", "list"]) => videos::list(turn, call),
            ("POST", ["video", "query"]) => videos::query(turn, call),
            ("POST", ["post", "publish", "creator_info", "query"]) => publish::creator(turn, call),
            ("POST", ["post", "publish", "video", "init"]) => publish::video(turn, call, false),
            ("POST", ["post", "publish", "inbox", "video", "init"]) => publish::video(turn, call, true),
            ("POST", ["post", "publish", "content", "init"]) => publish::photos(turn, call),
            ("POST", ["post", "publish", "status", "fetch"]) => publish::status(turn, call),
            ("POST", ["post", "publish", "cancel"]) => publish::cancel(turn, call),
            _ => Err(refusal(404, "unsupported_path", "Unsupported path(Janus)")),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _turn: &mut Turn<'_>, call: &Call, status: u16) -> Answer {
        if call.host == "open-upload.tiktokapis.com" {
            return Answer::empty(status);
        }
        match status {
            400 => refusal(400, "invalid_param", "The request was refused on purpose."),
            401 => unauthorized(),
            403 => refusal(403, "spam_risk_user_banned_from_posting", "The user is banned from making new posts."),
            // Nothing is promised about the header; it comes all the same, so that nobody waits long.
            429 => throttled().with("retry-after", 2),
            _ => refusal(status, "internal_error", "Something went wrong. Please try again later."),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let wish = wish.to_lowercase();
        let is_name = (2..=24).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
            && !wish.ends_with('.');
        match is_name {
            true => Ok(wish),
            false => Err(format!(
                "`{wish}` is no name on TikTok: 2 to 24 letters, digits, underscores and dots, none of them at the end"
            )),
        }
    }

    fn number(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        format!("-000{}", BASE64_URL_SAFE_NO_PAD.encode(&digest[..24]))
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), profile(account))
    }

    fn grants(&self) -> &dyn Grants {
        &oauth::TERMS
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        publish::by(turn, &account.id).rev().filter_map(|post| card(account, &post)).collect()
    }
}

/// What a browser finds: the consent page, profiles, posts.
fn site(turn: &mut Turn<'_>, call: &Call, segments: &[&str]) -> Option<Answer> {
    match (call.host.as_str(), call.method.as_str(), segments) {
        ("www.tiktok.com" | "tiktok.com" | "", "GET", ["v2", "auth", "authorize"]) => {
            Some(oauth::ask(call).unwrap_or_else(|refusal| refusal))
        }
        ("www.tiktok.com" | "tiktok.com" | "", "POST", ["v2", "auth", "authorize"]) => {
            Some(oauth::consent(turn, call).unwrap_or_else(|refusal| refusal))
        }
        ("www.tiktok.com" | "tiktok.com", _, [handle, "video" | "photo", id]) => {
            let shown = named(turn, handle).and_then(|account| {
                let cards = TikTok.posts(turn, &account);
                let card = cards.iter().find(|card| card.id == *id)?;
                Some(page::post(&TikTok.identity(&account), ID, card, &cards))
            });
            Some(shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
        }
        ("www.tiktok.com" | "tiktok.com", _, [handle]) => {
            let shown = named(turn, handle)
                .map(|account| page::account(&TikTok.identity(&account), ID, &TikTok.posts(turn, &account)));
            Some(shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
        }
        ("www.tiktok.com" | "tiktok.com" | "p16-sign.tiktokcdn.com", _, _) => {
            Some(Answer::page(404, page::missing()))
        }
        _ => None,
    }
}

fn named(turn: &Turn<'_>, handle: &str) -> Option<Account> {
    account::named(turn.shelf, ID, handle.strip_prefix('@')?)
}

fn card(account: &Account, post: &publish::Publish) -> Option<Card> {
    let at = post.came_into_being()?;
    let kind = if post.is_video { "video" } else { "photo" };
    let mut notes = vec![format!("Visible: {}", post.privacy())];
    notes.extend(post.notes());
    let media = post.files.iter().map(|(file, mime)| Picture {
        files: vec![file.clone()],
        mime: mime.clone(),
        alt: String::new(),
    });
    Some(Card {
        id: post.post.clone(),
        address: format!("www.tiktok.com/@{}/{kind}/{}", account.username, post.post),
        text: post.words().to_owned(),
        at,
        media: media.collect(),
        notes,
        reply_to: None,
    })
}

fn avatar(account: &Account) -> String {
    format!("https://p16-sign.tiktokcdn.com/{}~c5_168x168.jpeg", account.id)
}

fn profile(account: &Account) -> String {
    format!("https://www.tiktok.com/@{}", account.username)
}

/// Lets a request in: a token that lives, one of the scopes, and room in the rate window.
fn admit(turn: &mut Turn<'_>, call: &Call, scopes: &[&str], rule: Rule) -> Result<Account, Answer> {
    let token =
        call.bearer().and_then(|token| tokens::find(turn, ID, token)).filter(|token| token.lives(turn.now));
    let account = token.as_ref().and_then(|token| account::numbered(turn.shelf, ID, &token.user));
    let (Some(token), Some(account)) = (token, account) else { return Err(unauthorized()) };
    if !scopes.iter().any(|scope| token.scopes.iter().any(|granted| granted == scope)) {
        return Err(refusal(
            401,
            "scope_not_authorized",
            &format!("The user did not authorize the scope required for completing this request: {}.", scopes.join(" or ")),
        ));
    }
    turn.spend(rule, &account.id, 1).map_err(|_| throttled())?;
    Ok(account)
}

fn unauthorized() -> Answer {
    refusal(401, "access_token_invalid", "The access token is invalid or not found in the request.")
}

fn throttled() -> Answer {
    refusal(429, "rate_limit_exceeded", "The API rate limit was exceeded. Please try again later.")
}

/// A refusal in the shape of all data calls.
fn refusal(status: u16, code: &str, message: &str) -> Answer {
    let error = json!({ "code": code, "message": message, "log_id": log() });
    Answer::json(status, &json!({ "data": {}, "error": error }))
}

/// A success in that shape.
fn success(data: &Value) -> Answer {
    Answer::json(200, &json!({ "data": data, "error": { "code": "ok", "message": "", "log_id": log() } }))
}

fn log() -> String {
    format!("2026{:030X}", rand::random::<u64>())
}

/// A JSON body; an empty one is an empty object.
fn body(call: &Call, wrong: &str) -> Result<Value, Answer> {
    if call.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    if call.mime() != Some("application/json") {
        return Err(refusal(400, wrong, "Content-Type has to be application/json."));
    }
    call.json()
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| refusal(400, wrong, "The request body is no JSON object."))
}

/// `GET /v2/user/info/`: the fields that are asked for, each with a scope of its own.
fn me(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call, &["user.info.basic"], DISPLAY)?;
    let token = call.bearer().and_then(|token| tokens::find(turn, ID, token)).ok_or_else(unauthorized)?;
    let fields = call.query("fields").unwrap_or_default();
    if fields.is_empty() {
        return Err(refusal(400, "invalid_params", "The fields parameter is required."));
    }
    let mut user = json!({});
    for field in fields.split(',').map(str::trim) {
        let (scope, value) = match field {
            "open_id" => ("user.info.basic", json!(account.id)),
            "union_id" => ("user.info.basic", json!(account.id.replacen("-000", "union-", 1))),
            "avatar_url" | "avatar_url_100" | "avatar_large_url" => {
                ("user.info.basic", json!(avatar(&account)))
            }
            "display_name" => ("user.info.basic", json!(account.username)),
            "username" => ("user.info.profile", json!(account.username)),
            "bio_description" => ("user.info.profile", json!("")),
            "profile_deep_link" => ("user.info.profile", json!(profile(&account))),
            "is_verified" => ("user.info.profile", json!(false)),
            "follower_count" | "following_count" | "likes_count" => ("user.info.stats", json!(0)),
            "video_count" => ("user.info.stats", json!(publish::by(turn, &account.id).count())),
            _ => return Err(refusal(400, "invalid_params", &format!("Field {field} is not supported."))),
        };
        if !token.scopes.iter().any(|granted| granted == scope) {
            return Err(refusal(
                401,
                "scope_not_authorized",
                &format!("The user did not authorize the scope required for {field}: {scope}."),
            ));
        }
        user[field] = value;
    }
    Ok(success(&json!({ "user": user })))
}
