//! Pinterest: API v5, as its OpenAPI description 5.23 says (<https://github.com/pinterest/api-description>).
//!
//! Served as to an app with Standard access. Refresh tokens are renewed with each use; videos are
//! uploaded to a storage of its own, by a form that it signs, and processed for a while. An account
//! begins with one board.

mod boards;
mod media;
mod pins;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host, Picture},
    login::{Login, Refusal},
    tokens::{self, Rotation, Terms},
    page,
    shelf::Record,
    window::{Allowance, Rule},
};
use crate::Identity;
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "pinterest";

/// The host that takes the bytes of videos.
const STORAGE: &str = "pinterest-media-upload.s3-accelerate.amazonaws.com";

const READ: Rule = Rule { name: "pinterest.org_read", limit: 1_000, seconds: 60 };
const WRITE: Rule = Rule { name: "pinterest.org_write", limit: 100, seconds: 60 };
const ANALYTICS: Rule = Rule { name: "pinterest.org_analytics", limit: 60, seconds: 60 };

const SCOPES: &[&str] = &["user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write"];

static LOGIN: Login = Login {
    terms: Terms {
        host: &Pinterest,
        client: "1480001",
        granted: SCOPES,
        code_seconds: 600,
        access: ("pina_", 2_592_000),
        refresh: ("pinr.", 5_184_000),
        rotation: Rotation::Renewed,
    },
    scopes: SCOPES,
    lasts: |_| true,
    denied: "access_denied",
    fragment: "",
};

/// Pinterest.
pub(super) struct Pinterest;

/// Who was let in.
struct Caller {
    account: Account,
    allowance: Allowance,
}

impl Host for Pinterest {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "api.pinterest.com" | "api-sandbox.pinterest.com" | "www.pinterest.com" | "pinterest.com"
            | "i.pinimg.com" | STORAGE => true,
            "" => path.starts_with("/v5/"),
            _ => false,
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.segments().as_slice() {
            _ if call.host == STORAGE && call.mime() == Some("multipart/form-data") => Intake::Form("file"),
            // Five pictures of 20 MB in base64.
            ["v5", "pins"] if call.method == Method::POST => Intake::Whole(140 << 20),
            _ => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        match (call.method.as_str(), call.segments().as_slice()) {
            ("POST", ["v5", "pins"]) => pins::addresses(call),
            _ => Vec::new(),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        if call.host == STORAGE {
            let owner = media::keyed(turn, call)?.owner;
            return account::numbered(turn.shelf, ID, &owner).map(|account| account.username);
        }
        tokens::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        let segments = call.segments();
        match call.host.as_str() {
            STORAGE => return media::store(turn, call),
            "i.pinimg.com" => return pins::picture(turn, segments.last().copied().unwrap_or_default()),
            "www.pinterest.com" | "pinterest.com" => return site(turn, call, &segments),
            _ => {}
        }
        let path = segments.strip_prefix(&["v5"]).unwrap_or_default();
        let answer = match (call.method.as_str(), path) {
            ("POST", ["oauth", "token"]) => token(turn, call),
            ("POST", ["oauth", "token", "revoke"]) => revoke(call),
            _ if call.is_too_large => Err(error(413, 1, "The request is too large.")),
            ("GET", ["user_account"]) => me(turn, call),
            ("GET", ["boards"]) => boards::list(turn, call),
            ("POST", ["boards"]) => boards::create(turn, call),
            ("GET", ["boards", board]) => boards::show(turn, call, board),
            ("GET", ["boards", board, "sections"]) => boards::sections(turn, call, board),
            ("POST", ["boards", board, "sections"]) => boards::divide(turn, call, board),
            ("GET", ["boards", board, "pins"]) => pins::list(turn, call, Some(board)),
            ("GET", ["pins"]) => pins::list(turn, call, None),
            ("POST", ["pins"]) => pins::create(turn, call),
            ("GET", ["pins", pin]) => pins::show(turn, call, pin),
            ("PATCH", ["pins", pin]) => pins::change(turn, call, pin),
            ("DELETE", ["pins", pin]) => pins::delete(turn, call, pin),
            ("GET", ["pins", pin, "analytics"]) => pins::analytics(turn, call, pin),
            ("GET", ["media"]) => media::list(turn, call),
            ("POST", ["media"]) => media::register(turn, call),
            ("GET", ["media", media]) => media::show(turn, call, media),
            (_, ["oauth", "token"] | ["user_account"] | ["boards" | "pins" | "media", ..]) => {
                Err(error(405, 5, "Method not allowed."))
            }
            _ => Err(error(404, 404, "The requested resource was not found.")),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => invalid("the pin was refused on purpose"),
            401 => unauthorized(),
            403 => forbidden(),
            429 => throttled(
                Allowance {
                    limit: WRITE.limit,
                    remaining: 0,
                    reset: turn.now + chrono::TimeDelta::seconds(1),
                    seconds: WRITE.seconds,
                },
                turn.now,
            ),
            503 => error(503, 4197, "The endpoint is temporarily unavailable."),
            _ => error(500, 0, "Sorry! Something went wrong on our end."),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (3..=30).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name
            .then(|| wish.to_lowercase())
            .ok_or_else(|| format!("`{wish}` is no name on Pinterest: 3 to 30 letters, digits and underscores"))
    }

    fn number(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        let draw = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"));
        (100_000_000_000_000_000 + draw % 800_000_000_000_000_000).to_string()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("business", Some(avatar(account)), format!("https://www.pinterest.com/{}/", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN.terms
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        pins::by(turn, &account.id).rev().map(|pin| card(turn, &pin)).collect()
    }
}

/// What a browser finds: the login, profiles and pins.
fn site(turn: &mut Turn<'_>, call: &Call, segments: &[&str]) -> Answer {
    let found = match segments {
        ["oauth"] => return LOGIN.dialog(turn, call),
        ["pin", id] => pins::get(turn, id).and_then(|pin| {
            let owner = account::numbered(turn.shelf, ID, &pin.owner)?;
            let cards = Pinterest.posts(turn, &owner);
            Some(page::post(&Pinterest.identity(&owner), ID, &card(turn, &pin), &cards))
        }),
        [username] => account::named(turn.shelf, ID, username).map(|account| {
            page::account(&Pinterest.identity(&account), ID, &Pinterest.posts(turn, &account))
        }),
        _ => None,
    };
    found.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn card(turn: &Turn<'_>, pin: &pins::Pin) -> Card {
    let mut notes = vec![format!(
        "On the board {}",
        boards::get(turn, &pin.board).map_or_else(|| pin.board.clone(), |board| board.name)
    )];
    notes.extend(pin.title.iter().map(|title| format!("Title: {title}")));
    notes.extend(pin.link.iter().map(|link| format!("Leads to {link}")));
    let alt = pin.alt.clone().unwrap_or_default();
    Card {
        id: pin.id.clone(),
        address: format!("www.pinterest.com/pin/{}/", pin.id),
        text: pin.description.clone().unwrap_or_default(),
        at: pin.created_at,
        media: pin
            .files
            .iter()
            .map(|file| Picture {
                files: vec![file.id.clone()],
                mime: file.mime.clone().unwrap_or_default(),
                alt: alt.clone(),
            })
            .collect(),
        notes,
        reply_to: None,
    }
}

fn avatar(account: &Account) -> String {
    format!("https://i.pinimg.com/600x600_R/{}.jpg", account.id)
}

/// `POST /v5/oauth/token`.
fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !LOGIN.is_signed(call) {
        return Err(unauthorized());
    }
    let kind = call.field("grant_type").unwrap_or_default().to_owned();
    let issued = LOGIN.token(turn, call).map_err(|refusal| match refusal {
        Refusal::Code => error(400, 283, "The authorization grant is invalid"),
        Refusal::Refresh => unauthorized(),
        Refusal::Kind => invalid("grant_type has to be authorization_code or refresh_token"),
    })?;
    Ok(Answer::json(
        200,
        &json!({
            "response_type": kind,
            "access_token": issued.access,
            "token_type": "bearer",
            "expires_in": issued.access_seconds,
            "scope": issued.scopes.join(" "),
            "refresh_token": issued.refresh,
            "refresh_token_expires_in": issued.refresh_seconds,
            "refresh_token_expires_at": turn.now.timestamp() + issued.refresh_seconds,
        }),
    ))
}

/// `POST /v5/oauth/token/revoke`, which is there for system users only.
fn revoke(call: &Call) -> Result<Answer, Answer> {
    if !LOGIN.is_signed(call) {
        return Err(unauthorized());
    }
    Err(error(403, 29, "You are not permitted to access that resource."))
}

/// `GET /v5/user_account`.
fn me(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["user_accounts:read"], READ)?;
    let account = &caller.account;
    let body = json!({
        "id": account.id,
        "username": account.username,
        "account_type": "BUSINESS",
        "business_name": account.username,
        "profile_image": avatar(account),
        "website_url": "",
        "about": "",
        "follower_count": 12,
        "following_count": 3,
        "board_count": boards::of(turn, &account.id).len(),
        "pin_count": pins::by(turn, &account.id).count(),
        "monthly_views": 163,
    });
    Ok(caller.reply(turn, 200, &body))
}

/// Lets a request in: a token that lives, the scopes it needs, and room in the rate window.
fn admit(turn: &mut Turn<'_>, call: &Call, scopes: &[&str], rule: Rule) -> Result<Caller, Answer> {
    let token = call.bearer().and_then(|token| tokens::find(turn, ID, token));
    let token = token.filter(|token| token.lives(turn.now)).ok_or_else(unauthorized)?;
    let account = account::numbered(turn.shelf, ID, &token.user).ok_or_else(unauthorized)?;
    if let Some(scope) = token.lacks(scopes) {
        return Err(error(
            401,
            3,
            &format!("Your token does not have the required scopes: it lacks {scope}."),
        ));
    }
    let now = turn.now;
    let allowance = turn.spend(rule, &account.id, 1).map_err(|spent| throttled(spent, now))?;
    boards::found(turn, &account);
    Ok(Caller { account, allowance })
}

impl Caller {
    /// An answer with the headers that tell how the window stands.
    fn reply(&self, turn: &Turn<'_>, status: u16, body: &Value) -> Answer {
        let answer = if status == 204 { Answer::empty(204) } else { Answer::json(status, body) };
        windowed(answer, self.allowance, turn.now)
    }
}

fn windowed(answer: Answer, allowance: Allowance, now: DateTime<Utc>) -> Answer {
    // Whole seconds that have to pass.
    let reset = (allowance.reset - now).num_milliseconds().max(0) as u64;
    answer
        .with("x-ratelimit-limit", format!("{0}, {0};w={1}", allowance.limit, allowance.seconds))
        .with("x-ratelimit-remaining", allowance.remaining)
        .with("x-ratelimit-reset", reset.div_ceil(1_000))
}

fn throttled(allowance: Allowance, now: DateTime<Utc>) -> Answer {
    windowed(error(429, 8, "This request exceeded a rate limit."), allowance, now)
}

fn unauthorized() -> Answer {
    error(401, 2, "Authentication failed.")
}

fn forbidden() -> Answer {
    error(403, 29, "You are not permitted to access that resource.")
}

fn invalid(what: &str) -> Answer {
    error(400, 1, &format!("Invalid request: {what}"))
}

fn error(status: u16, code: u32, message: &str) -> Answer {
    Answer::json(status, &json!({ "status": "failure", "code": code, "message": message }))
}

/// A body of JSON.
fn body(call: &Call) -> Result<Value, Answer> {
    let value = call.json().map_err(|error| invalid(&format!("the body is no JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(invalid("the body has to be an object")) }
}

/// A text member within its length.
fn text(body: &Value, name: &str, most: usize) -> Result<Option<String>, Answer> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) if text.chars().count() > most => {
            Err(invalid(&format!("'{name}' is too long, constraint: maxLength={most}")))
        }
        Value::String(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        other => Err(invalid(&format!("'{name}': {other} is not of type 'string'"))),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An id in a body.
fn number(body: &Value, name: &str) -> Result<Option<String>, Answer> {
    match text(body, name, 64)? {
        Some(id) if !is_number(&id) => Err(invalid(&format!("'{id}' does not match '^\\d+$'"))),
        id => Ok(id),
    }
}

/// One page of a list, and the bookmark of the next. Items come in the order they are listed in.
fn paged<T>(call: &Call, all: Vec<T>, id: impl Fn(&T) -> &str) -> Result<(Vec<T>, Option<String>), Answer> {
    let size = match call.query("page_size").map(str::parse::<usize>) {
        None => 25,
        Some(Ok(size @ 1..=250)) => size,
        Some(_) => return Err(invalid("page_size has to be 1 to 250")),
    };
    let skip = match call.query("bookmark") {
        None => 0,
        Some(mark) => {
            let last = mark.strip_prefix("b1.").ok_or_else(|| invalid("the bookmark is none of ours"))?;
            all.iter().position(|item| id(item) == last).map_or(0, |at| at + 1)
        }
    };
    let is_more = all.len() > skip + size;
    let page: Vec<T> = all.into_iter().skip(skip).take(size).collect();
    let bookmark = page.last().filter(|_| is_more).map(|last| format!("b1.{}", id(last)));
    Ok((page, bookmark))
}

/// The next id. Two in a row differ in more than their last digit, so that a slip names nothing.
fn next(turn: &mut Turn<'_>) -> String {
    let last = turn.shelf.get::<Last>("").map_or(0, |last| last.count) + 1;
    turn.shelf.put(&Last { count: last });
    (813_744_000_000_000_007 + last * 10).to_string()
}

/// How many ids were given.
#[derive(Serialize, Deserialize)]
struct Last {
    count: u64,
}

impl Record for Last {
    const SHELF: &'static str = "pinterest.last";

    fn key(&self) -> String {
        String::new()
    }
}

/// Timestamps as the API writes them: without a zone.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S").to_string()
}
