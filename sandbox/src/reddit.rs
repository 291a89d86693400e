//! Reddit: its Data API, as its reference (<https://www.reddit.com/dev/api>), its last public server
//! source (<https://github.com/reddit-archive/reddit>) and what PRAW records of it say.
//!
//! Errors of what was sent come with a status of success. Refresh tokens stay the same. Any name is a
//! subreddit's but those that begin with `missing`; a few are special, see [`places`].

mod media;
mod places;
mod posts;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host},
    login::{Login, Refusal},
    tokens::{self, Rotation, Terms},
    page,
    shelf::Record,
    window::{Allowance, Rule},
};
use crate::Identity;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "reddit";

/// The hosts that take bytes: of pictures, and of videos.
const STORAGES: [&str; 2] = [
    "reddit-uploaded-media.s3-accelerate.amazonaws.com",
    "reddit-uploaded-video.s3-accelerate.amazonaws.com",
];

/// The host that tells what became of an upload.
const SOCKETS: &str = "ws-05ba9e4989f78959d.wss.redditmedia.com";

const REQUESTS: Rule = Rule { name: "reddit.requests", limit: 1_000, seconds: 600 };
/// How much one may post at a time is told nobody; an account in good standing meets no limit.
const POSTS: Rule = Rule { name: "reddit.posts", limit: 300, seconds: 600 };

const SCOPES: &[&str] = &[
    "identity",
    "submit",
    "read",
    "edit",
    "flair",
    "history",
    "mysubreddits",
    "vote",
    "save",
    "subscribe",
];

static LOGIN: Login = Login {
    terms: Terms {
        host: &Reddit,
        client: "fanfare-sandbox-reddit",
        granted: SCOPES,
        code_seconds: 600,
        access: ("eyJ.sandbox.", 86_400),
        refresh: ("sandbox.", 0),
        rotation: Rotation::Never,
    },
    scopes: SCOPES,
    lasts: |fields| fields.iter().any(|(name, value)| name == "duration" && value == "permanent"),
    denied: "access_denied",
    fragment: "#_",
};

/// Reddit.
pub(super) struct Reddit;

/// Who was let in.
struct Caller {
    account: Account,
    allowance: Allowance,
}

impl Host for Reddit {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "www.reddit.com" | "oauth.reddit.com" | "reddit.com" | "old.reddit.com" | "i.redd.it"
            | "v.redd.it" | SOCKETS => true,
            "" => ["/api/", "/r/", "/user/", "/subreddits/"].iter().any(|start| path.starts_with(start)),
            _ => STORAGES.contains(&host),
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match STORAGES.contains(&call.host.as_str()) && call.mime() == Some("multipart/form-data") {
            true => Intake::Form("file"),
            false => Intake::Whole(1 << 20),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        if STORAGES.contains(&call.host.as_str()) {
            let owner = media::keyed(turn, call)?.owner;
            return account::numbered(turn.shelf, ID, &owner).map(|account| account.username);
        }
        tokens::owner(turn, ID, call)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        let segments = call.segments();
        match call.host.as_str() {
            SOCKETS => return media::tell(turn, call, segments.last().copied().unwrap_or_default()),
            "i.redd.it" | "v.redd.it" => {
                return media::show(turn, segments.first().copied().unwrap_or_default());
            }
            host if STORAGES.contains(&host) => return media::store(turn, call),
            _ => {}
        }
        let is_site = call.host != "oauth.reddit.com";
        let answer = match (call.method.as_str(), segments.as_slice()) {
            (_, ["api", "v1", "authorize" | "authorize.compact"]) if is_site => {
                return LOGIN.dialog(turn, call);
            }
            ("POST", ["api", "v1", "access_token"]) if is_site => token(turn, call),
            ("POST", ["api", "v1", "revoke_token"]) if is_site => revoke(turn, call),
            _ if is_site && !call.host.is_empty() => return site(turn, &segments),
            _ if is_nobody(call) => Err(throttled(1)),
            _ if call.is_too_large => Err(Answer::page(413, page::notice("Too large", "Payload Too Large"))),
            ("GET", ["api", "v1", "me"]) => me(turn, call),
            ("GET", ["api", "v1", place, "post_requirements"]) => places::requirements(turn, call, place),
            ("GET", ["r", place, "about"]) => places::about(turn, call, place),
            ("GET", ["r", place, "api", "link_flair_v2"]) => places::flairs(turn, call, place),
            ("GET", ["subreddits", "mine", "subscriber"]) => places::mine(turn, call),
            ("GET", ["subreddits", "search"]) => places::search(turn, call, "q"),
            ("GET", ["api", "subreddit_autocomplete_v2"]) => places::search(turn, call, "query"),
            ("POST", ["api", "media", "asset" | "asset.json"]) => media::lease(turn, call),
            ("POST", ["api", "submit"]) => posts::submit(turn, call),
            ("POST", ["api", "submit_gallery_post" | "submit_gallery_post.json"]) => {
                posts::submit_gallery(turn, call)
            }
            ("POST", ["api", "comment"]) => posts::comment(turn, call),
            ("POST", ["api", "editusertext"]) => posts::edit(turn, call),
            ("POST", ["api", "del"]) => posts::delete(turn, call),
            ("GET", ["api", "info"]) => posts::named(turn, call),
            ("GET", ["user", name, list @ ("submitted" | "comments" | "overview")]) => {
                posts::list(turn, call, name, list)
            }
            _ => Err(error(404, "Not Found")),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => Answer::json(
                400,
                &json!({
                    "fields": ["title"],
                    "explanation": "this title has words that this community does not take",
                    "message": "Bad Request",
                    "error_type": "SUBMIT_VALIDATION_ERROR",
                    "reason": "SUBMIT_VALIDATION_TITLE_BLACKLISTED_STRING",
                }),
            ),
            401 => unauthorized(),
            403 => forbidden(None),
            429 => throttled(1),
            status => Answer::bytes(
                status,
                "text/html; charset=utf-8",
                "<!doctype html><title>Ow!</title><h2>all of our servers are busy right now</h2>".into(),
            ),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (3..=20).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        is_name.then(|| wish.to_owned()).ok_or_else(|| {
            format!("`{wish}` is no name on Reddit: 3 to 20 letters, digits, underscores and hyphens")
        })
    }

    fn number(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        let draw = u64::from(u32::from_be_bytes(digest[..4].try_into().expect("four bytes of a digest")));
        base36(60_466_176 + draw)
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), format!("https://www.reddit.com/user/{}/", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN.terms
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        posts::by(turn, &account.id).rev().map(|thing| thing.card(turn)).collect()
    }
}

/// What a browser finds: profiles, posts and comments.
fn site(turn: &Turn<'_>, segments: &[&str]) -> Answer {
    let thing = |id: &str| {
        let thing = posts::get(turn, id)?;
        let owner = account::numbered(turn.shelf, ID, &thing.owner)?;
        let cards = Reddit.posts(turn, &owner);
        Some(page::post(&Reddit.identity(&owner), ID, &thing.card(turn), &cards))
    };
    let found = match segments {
        [.., "comments", _, _, comment] => thing(&format!("t1_{comment}")),
        [.., "comments", post] | [.., "comments", post, _] => thing(&format!("t3_{post}")),
        ["user" | "u", name] => account::named(turn.shelf, ID, name).map(|account| {
            page::account(&Reddit.identity(&account), ID, &Reddit.posts(turn, &account))
        }),
        _ => None,
    };
    found.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn avatar(account: &Account) -> String {
    format!("https://styles.redditmedia.com/t5_{}/styles/profileIcon.png", account.id)
}

/// `POST /api/v1/access_token`.
fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !LOGIN.is_signed(call) {
        return Err(error(401, "Unauthorized"));
    }
    let issued = LOGIN.token(turn, call).map_err(|refusal| match refusal {
        Refusal::Code => Answer::json(200, &json!({ "error": "invalid_grant" })),
        Refusal::Kind => Answer::json(200, &json!({ "error": "unsupported_grant_type" })),
        Refusal::Refresh => error(400, "Bad Request"),
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
    Ok(Answer::json(200, &body))
}

/// `POST /api/v1/revoke_token` (RFC 7009); a token that nobody knows is a success too.
fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !LOGIN.is_signed(call) {
        return Err(error(401, "Unauthorized"));
    }
    let token = call.field("token").ok_or_else(|| error(400, "Bad Request"))?;
    tokens::revoke(turn, ID, token);
    Ok(Answer::empty(200))
}

/// `GET /api/v1/me`.
fn me(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "identity")?;
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
            "title": account.username,
            "subreddit_type": "user",
        },
    });
    Ok(caller.reply(turn, &body))
}

/// Whether a client has no name of its own, but its library's.
fn is_nobody(call: &Call) -> bool {
    let agent = call.header("user-agent").unwrap_or_default().to_lowercase();
    ["python-requests/", "python-urllib/", "java/", "curl/", "go-http-client/"]
        .iter()
        .any(|name| agent.starts_with(name))
}

/// Lets a request in: a token that lives, the scope it needs, and room in the window.
fn admit(turn: &mut Turn<'_>, call: &Call, scope: &str) -> Result<Caller, Answer> {
    let token = call.bearer().and_then(|token| tokens::find(turn, ID, token));
    let token = token.filter(|token| token.lives(turn.now)).ok_or_else(unauthorized)?;
    let account = account::numbered(turn.shelf, ID, &token.user).ok_or_else(unauthorized)?;
    if token.lacks(&[scope]).is_some() {
        return Err(error(403, "Forbidden")
            .with("www-authenticate", "Bearer realm=\"reddit\", error=\"insufficient_scope\""));
    }
    let allowance = turn.spend(REQUESTS, &account.id, 1).map_err(|spent| {
        let rest = seconds(spent, turn);
        windowed(throttled(rest), spent, rest)
    })?;
    Ok(Caller { account, allowance })
}

impl Caller {
    /// An answer with the headers that tell how the window stands.
    fn reply(&self, turn: &Turn<'_>, body: &Value) -> Answer {
        windowed(Answer::json(200, body), self.allowance, seconds(self.allowance, turn))
    }

    /// What was sent is refused, with a status of success.
    fn refuse(&self, turn: &Turn<'_>, code: &str, words: &str, field: &str) -> Answer {
        self.reply(turn, &json!({ "json": { "errors": [[code, words, field]] } }))
    }

    /// Takes one of the posts and comments that the account may write for now.
    fn write(&self, turn: &mut Turn<'_>) -> Result<(), Answer> {
        let Err(spent) = turn.spend(POSTS, &self.account.id, 1) else { return Ok(()) };
        let rest = seconds(spent, turn);
        let time = match rest {
            1 => "1 second".to_owned(),
            2..60 => format!("{rest} seconds"),
            60..120 => "1 minute".to_owned(),
            _ => format!("{} minutes", rest / 60),
        };
        let words = format!(
            "Looks like you've been doing that a lot. Take a break for {time} before trying again."
        );
        Err(self.reply(
            turn,
            &json!({ "json": { "ratelimit": rest as f64, "errors": [["RATELIMIT", words, "ratelimit"]] } }),
        ))
    }
}

/// Whole seconds until a window ends.
fn seconds(allowance: Allowance, turn: &Turn<'_>) -> u64 {
    u64::try_from((allowance.reset - turn.now).num_milliseconds()).unwrap_or(0).div_ceil(1_000).max(1)
}

fn windowed(answer: Answer, allowance: Allowance, rest: u64) -> Answer {
    answer
        .with("x-ratelimit-used", allowance.limit - allowance.remaining)
        .with("x-ratelimit-remaining", format!("{}.0", allowance.remaining))
        .with("x-ratelimit-reset", rest)
}

fn throttled(rest: u64) -> Answer {
    let html = "<!doctype html><title>Too Many Requests</title><h1>whoa there, pardner!</h1>";
    Answer::bytes(429, "text/html; charset=utf-8", html.into()).with("retry-after", rest)
}

fn unauthorized() -> Answer {
    error(401, "Unauthorized").with("www-authenticate", "Bearer realm=\"reddit\", error=\"invalid_token\"")
}

fn forbidden(reason: Option<&str>) -> Answer {
    let mut body = json!({ "message": "Forbidden", "error": 403 });
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
    }
    Answer::json(403, &body)
}

fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, &json!({ "message": message, "error": status }))
}

/// Things of a kind, in the envelope of a list. They come newest first, and `after` names the last that
/// was seen.
fn listing(call: &Call, all: Vec<(String, &'static str, Value)>) -> Value {
    let size = call.query("limit").and_then(|limit| limit.parse().ok()).unwrap_or(25_usize).clamp(1, 100);
    let after = call.query("after").filter(|after| !after.is_empty());
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

/// How long processing takes, as the settings say.
fn processing(turn: &Turn<'_>) -> TimeDelta {
    TimeDelta::milliseconds(i64::try_from(turn.settings.processing_ms).unwrap_or(i64::MAX / 2))
}

/// Where a client of this sandbox finds a host of Reddit's.
fn origin(call: &Call, scheme: &str, host: &str) -> String {
    match call.header("host") {
        Some(own) => format!("{scheme}://{own}/{host}"),
        None => format!("{scheme}s://{host}"),
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Last {
    count: u64,
}

impl Record for Last {
    const SHELF: &'static str = "reddit.last";

    fn key(&self) -> String {
        String::new()
    }
}

/// The next id, in base 36 and of seven characters. Two in a row differ in more than their last digit,
/// so that a slip names nothing.
fn next(turn: &mut Turn<'_>) -> String {
    let count = turn.shelf.get::<Last>("").unwrap_or_default().count + 1;
    turn.shelf.put(&Last { count });
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
