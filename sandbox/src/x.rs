//! X: API v2 with OAuth 2.0, as <https://docs.x.com> and its OpenAPI description 2.167 say.
//!
//! Served as to a self-serve app: replies only where the author was mentioned or replies to itself,
//! one cashtag a post. All accounts are without Premium, so 280 weighted characters are the end.

mod media;
mod oauth;
mod posts;
mod text;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host, Picture},
    page,
    schema::Issue,
    shelf::Record,
    window::{Allowance, Rule},
    tokens,
};
use crate::Identity;
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "x";

/// Quarter of an hour, the length of all documented windows.
const QUARTER: i64 = 900;

/// X.
pub(super) struct X;

/// Who was let in.
struct Caller {
    account: Account,
    allowance: Allowance,
}

impl Host for X {
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

    fn intake(&self, call: &Call) -> Intake {
        let is_form = call.mime() == Some("multipart/form-data");
        match call.segments().as_slice() {
            ["2", "media", "upload", ..] if is_form => Intake::Form("media"),
            // The documentation shows forms; twitter-api-v2 sends JSON, so X presumably reads that too.
            ["2" | "i", "oauth2", ..] if call.mime() == Some("application/json") => Intake::Members(1 << 16),
            // Bytes in base64, for the images that fit one request.
            ["2", "media", "upload", ..] => Intake::Whole(32 << 20),
            _ => Intake::Whole(1 << 20),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        tokens::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        let segments = call.segments();
        if let Some(answer) = site(turn, call, &segments) {
            return answer;
        }
        let path = segments.strip_prefix(&["2"]).unwrap_or(&segments);
        let answer = match (call.method.as_str(), path) {
            ("GET", ["oauth2", "authorize"]) => oauth::ask(call),
            ("POST", ["oauth2", "authorize"]) => oauth::consent(turn, call),
            ("POST", ["oauth2", "token"]) => oauth::token(turn, call),
            ("POST", ["oauth2", "revoke"]) => oauth::revoke(turn, call),
            _ if call.is_too_large => Err(problem(413, "Payload Too Large", "The request is too large.")),
            ("GET", ["users", "me"]) => posts::me(turn, call),
            ("GET", ["users", id, "tweets"]) => posts::timeline(turn, call, id),
            ("GET", ["tweets", "analytics"]) => posts::analytics(turn, call),
            ("POST", ["tweets"]) => posts::create(turn, call),
            ("GET", ["tweets"]) => posts::lookup(turn, call, None),
            ("GET", ["tweets", id]) => posts::lookup(turn, call, Some(id)),
            ("DELETE", ["tweets", id]) => posts::delete(turn, call, id),
            ("POST", ["media", "upload"]) => media::upload(turn, call),
            ("GET", ["media", "upload"]) => media::status(turn, call),
            ("POST", ["media", "upload", "initialize"]) => media::initialize(turn, call),
            ("POST", ["media", "upload", id, "append"]) => media::append(turn, call, id),
            ("POST", ["media", "upload", id, "finalize"]) => media::finalize(turn, call, id),
            ("POST", ["media", "metadata"]) => media::metadata(turn, call),
            ("POST", ["media", "subtitles"]) => media::subtitles(turn, call),
            _ => Err(Answer::json(
                404,
                &json!({
                    "title": "Not Found", "type": "about:blank", "status": 404, "detail": "Not Found",
                }),
            )),
        };
        answer.unwrap_or_else(|refusal| refusal).with("api-version", "2.167")
    }

    fn refuse(&self, turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => invalid("text", "", "The text was refused on purpose."),
            401 => unauthorized(),
            403 => not_permitted(),
            429 => throttled(Allowance {
                limit: posts::CREATE.limit,
                remaining: 0,
                // Whole seconds: one more than the next is between one and two seconds away.
                reset: turn.now + chrono::TimeDelta::seconds(2),
                seconds: QUARTER,
            }),
            503 => problem(503, "Service Unavailable", "Service Unavailable"),
            _ => problem(
                500,
                "Internal Server Error",
                "Something is broken. This is usually a temporary error.",
            ),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (1..=15).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name
            .then(|| wish.to_owned())
            .ok_or_else(|| format!("`{wish}` is no name on X: 1 to 15 letters, digits and underscores"))
    }

    fn number(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        let draw = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"));
        // Nineteen digits, and within an i64.
        (1_000_000_000_000_000_000 + draw % 8_000_000_000_000_000_000).to_string()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), format!("https://x.com/{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &oauth::TERMS
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        posts::by(turn, &account.id).rev().map(|post| card(turn, account, &post)).collect()
    }
}

/// What a browser finds: the consent page, profiles, posts, media.
fn site(turn: &mut Turn<'_>, call: &Call, segments: &[&str]) -> Option<Answer> {
    match (call.method.as_str(), segments) {
        ("GET", ["i", "oauth2", "authorize"]) => Some(oauth::ask(call).unwrap_or_else(|refusal| refusal)),
        ("POST", ["i", "oauth2", "authorize"]) => {
            Some(oauth::consent(turn, call).unwrap_or_else(|refusal| refusal))
        }
        _ if call.host.ends_with("twimg.com") => Some(media::serve(turn, segments.last()?)),
        _ if call.method != Method::GET
            || matches!(call.host.as_str(), "" | "api.x.com" | "api.twitter.com") =>
        {
            None
        }
        (_, ["i", "web", "status", id] | [_, "status", id]) => {
            let shown = posts::get(turn, id).and_then(|post| {
                let author = account::numbered(turn.shelf, ID, &post.author)?;
                let cards = X.posts(turn, &author);
                Some(page::post(&X.identity(&author), ID, &card(turn, &author, &post), &cards))
            });
            Some(shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
        }
        (_, [username]) => {
            let shown = account::named(turn.shelf, ID, username)
                .map(|account| page::account(&X.identity(&account), ID, &X.posts(turn, &account)));
            Some(shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
        }
        _ => Some(Answer::page(404, page::missing())),
    }
}

fn card(turn: &Turn<'_>, author: &Account, post: &posts::Post) -> Card {
    let mut notes = Vec::new();
    if let Some(poll) = &post.poll {
        notes.push(format!("Poll: {}", poll.options.join(" / ")));
    }
    if let Some(quote) = &post.quote {
        notes.push(format!("Quotes {quote}"));
    }
    let media = post.media.iter().filter_map(|id| media::get(turn, id)).map(|media| Picture {
        files: media.parts.values().map(|part| part.id.clone()).collect(),
        mime: media.mime.clone().unwrap_or_else(|| media.category.clone()),
        alt: media.alt.clone().unwrap_or_default(),
    });
    Card {
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

/// Lets a request in: a token that lives, the scopes it needs, and room in the rate window.
fn admit(turn: &mut Turn<'_>, call: &Call, scopes: &[&str], rule: Rule) -> Result<Caller, Answer> {
    if call.header("authorization").is_some_and(|value| value.starts_with("OAuth ")) {
        return Err(Answer::json(
            403,
            &json!({
                "title": "Unsupported Authentication",
                "detail": "Authenticating with OAuth 1.0a User Context is forbidden for this endpoint. Supported authentication types are [OAuth 2.0 User Context].",
                "type": "https://api.x.com/2/problems/unsupported-authentication",
                "status": 403,
            }),
        ));
    }
    let token =
        call.bearer().and_then(|token| tokens::find(turn, ID, token)).filter(|token| token.lives(turn.now));
    let account = token.as_ref().and_then(|token| account::numbered(turn.shelf, ID, &token.user));
    let (Some(token), Some(account)) = (token, account) else { return Err(unauthorized()) };
    if scopes.iter().any(|scope| !token.scopes.iter().any(|granted| granted == scope)) {
        return Err(Answer::json(
            403,
            &json!({
                "title": "Client Forbidden",
                "detail": format!("This request needs the scopes: {}.", scopes.join(" ")),
                "reason": "client-not-enrolled",
                "type": "https://api.x.com/2/problems/client-forbidden",
                "status": 403,
            }),
        ));
    }
    let allowance = turn.spend(rule, &account.id, 1).map_err(throttled)?;
    Ok(Caller { account, allowance })
}

impl Caller {
    /// A success, with the headers that tell how the window stands.
    fn reply(&self, status: u16, body: &Value) -> Answer {
        self.window(Answer::json(status, body))
    }

    fn window(&self, answer: Answer) -> Answer {
        windowed(answer, self.allowance)
    }
}

fn windowed(answer: Answer, allowance: Allowance) -> Answer {
    answer
        .with("x-rate-limit-limit", allowance.limit)
        .with("x-rate-limit-remaining", allowance.remaining)
        .with("x-rate-limit-reset", allowance.reset.timestamp())
}

fn throttled(allowance: Allowance) -> Answer {
    windowed(problem(429, "Too Many Requests", "Too Many Requests"), allowance)
}

fn unauthorized() -> Answer {
    problem(401, "Unauthorized", "Unauthorized")
}

fn not_permitted() -> Answer {
    problem(403, "Forbidden", "You are not permitted to perform this action.")
}

fn problem(status: u16, title: &str, detail: &str) -> Answer {
    let body = json!({ "title": title, "detail": detail, "type": "about:blank", "status": status });
    Answer { mime: "application/problem+json", ..Answer::json(status, &body) }
}

fn invalid(parameter: &str, value: &str, message: &str) -> Answer {
    let body = json!({
        "errors": [{ "parameters": { parameter: [value] }, "message": message }],
        "title": "Invalid Request",
        "detail": "One or more parameters to your request was invalid.",
        "type": "https://api.x.com/2/problems/invalid-request",
        "status": 400,
    });
    Answer { mime: "application/problem+json", ..Answer::json(400, &body) }
}

impl From<Issue> for Answer {
    fn from(issue: Issue) -> Self {
        invalid(&issue.member, &issue.value, &issue.message)
    }
}

/// A JSON body that its schema admits.
fn body(call: &Call, schema: &Value) -> Result<Value, Answer> {
    if call.mime() != Some("application/json") {
        return Err(invalid(
            "content-type",
            call.mime().unwrap_or_default(),
            "The body has to be application/json.",
        ));
    }
    let value = call.json().map_err(|error| invalid("body", "", &format!("The body is no JSON: {error}")))?;
    super::schema::check(schema, &value)?;
    Ok(value)
}

/// The next id: the milliseconds since X's epoch, then a sequence, and never one twice.
fn snowflake(turn: &mut Turn<'_>) -> String {
    const EPOCH: i64 = 1_288_834_974_657;
    let last = turn.shelf.get::<Last>("").map_or(0, |last| last.id);
    let id = u64::try_from(turn.now.timestamp_millis() - EPOCH).unwrap_or(0) << 22;
    let id = id.max(last + 1);
    turn.shelf.put(&Last { id });
    id.to_string()
}

/// The last id that was given.
#[derive(Serialize, Deserialize)]
struct Last {
    id: u64,
}

impl Record for Last {
    const SHELF: &'static str = "x.last";

    fn key(&self) -> String {
        String::new()
    }
}

/// Timestamps as the API writes them.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
