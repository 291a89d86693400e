//! LinkedIn: the versioned REST API, as <https://learn.microsoft.com/en-us/linkedin/> says; it has no
//! machine-readable description.
//!
//! Each member administers one page. What only approved apps may do (list a member's posts, read a
//! member's figures) needs the scopes that LinkedIn keeps closed. A reserved character that was not
//! escaped ends a text, silently, as there.

mod media;
mod posts;
mod text;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host, Picture},
    login::{Login, Refusal},
    tokens::{self, Rotation, SECRET, Terms},
    page,
    shelf::Record,
    window::Rule,
};
use crate::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "linkedin";

/// Versions before this one are answered with 426.
const OLDEST: u32 = 202_511;

/// Calls of a member; real numbers are told in the developer portal only.
const CALLS: Rule = Rule { name: "linkedin.calls", limit: 100_000, seconds: 86_400 };
const CREATES: Rule = Rule { name: "linkedin.creates", limit: 150, seconds: 86_400 };

const SCOPES: &[&str] = &[
    "openid",
    "profile",
    "email",
    "r_basicprofile",
    "w_member_social",
    "w_organization_social",
    "r_organization_social",
    "rw_organization_admin",
    "r_organization_admin",
    "r_member_social",
    "r_member_postAnalytics",
];

static LOGIN: Login = Login {
    terms: Terms {
        host: &LinkedIn,
        client: "fanfaresandbox",
        granted: SCOPES,
        code_seconds: 1_800,
        access: ("", 5_184_000),
        refresh: ("", 31_536_000),
        rotation: Rotation::Never,
    },
    scopes: SCOPES,
    lasts: |_| true,
    denied: "user_cancelled_authorize",
    fragment: "",
};

/// LinkedIn.
pub(super) struct LinkedIn;

/// Who was let in.
struct Caller {
    account: Account,
    scopes: Vec<String>,
}

impl Host for LinkedIn {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "api.linkedin.com" | "www.linkedin.com" | "linkedin.com" | "media.licdn.com" => true,
            "" => ["/rest/", "/dms-uploads/", "/oauth/v2/", "/v2/userinfo", "/v2/me"]
                .iter()
                .any(|prefix| path.starts_with(prefix)),
            _ => false,
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match call.segments().as_slice() {
            ["dms-uploads", ..] => Intake::Bytes,
            _ => Intake::Whole(1 << 20),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        match call.segments().as_slice() {
            ["dms-uploads", "sandbox", id, ..] => {
                let owner = media::get(turn, id)?.owner;
                account::numbered(turn.shelf, ID, &owner).map(|account| account.username)
            }
            _ => tokens::owner(turn, ID, call),
        }
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        let segments = call.segments();
        let answer = match (call.method.as_str(), segments.as_slice()) {
            ("GET" | "POST", ["oauth", "v2", "authorization"]) => return LOGIN.dialog(turn, call),
            ("POST", ["oauth", "v2", "accessToken"]) => token(turn, call),
            ("POST", ["oauth", "v2", "introspectToken"]) => introspect(turn, call),
            ("POST", ["oauth", "v2", "revoke"]) => revoke(turn, call),
            ("PUT" | "POST", ["dms-uploads", "sandbox", id, part]) => media::receive(turn, call, id, part),
            ("GET", ["v2", "userinfo"]) => userinfo(turn, call),
            ("GET", ["v2", "me"]) => me(turn, call),
            ("GET", ["feed", "update", urn]) => return shown(turn, call, urn),
            ("GET", ["in" | "company", name]) => return profile(turn, name),
            (_, ["rest", path @ ..]) => versioned(call).and_then(|()| rest(turn, call, path)),
            _ => Err(missing("There is no such resource.")),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => invalid("The post was refused on purpose."),
            401 => expired(),
            403 => forbidden("posts.CREATE"),
            429 => error(429, "TOO_MANY_REQUESTS", 101, "Too many requests, try again in a moment.")
                .with("retry-after", 1),
            503 => error(503, "SERVICE_UNAVAILABLE", 0, "Service Unavailable"),
            _ => error(500, "INTERNAL_SERVER_ERROR", 0, "Internal Server Error"),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (3..=100).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name
            .then(|| wish.to_lowercase())
            .ok_or_else(|| format!("`{wish}` is no name on LinkedIn: 3 to 100 letters, digits and hyphens"))
    }

    fn number(&self, username: &str) -> String {
        hex::encode(account::digest(ID, username))[..10].to_owned()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("profile", Some(avatar(account)), format!("https://www.linkedin.com/in/{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &LOGIN.terms
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        let mut cards: Vec<Card> = posts::by(turn, &account.id).map(|post| card(turn, &post)).collect();
        cards.extend(posts::comments_by(turn, &account.id).map(|comment| comment_card(turn, &comment)));
        cards.sort_by_key(|card| std::cmp::Reverse(card.at));
        cards
    }
}

fn rest(turn: &mut Turn<'_>, call: &Call, path: &[&str]) -> Result<Answer, Answer> {
    match (call.method.as_str(), path) {
        ("GET", ["organizationAcls"]) => roles(turn, call),
        ("GET", ["organizations"]) => organizations(turn, call),
        ("GET", ["organizations", id]) => organization(turn, call, id),
        ("POST", ["posts"]) => posts::create(turn, call),
        ("GET", ["posts"]) => posts::list(turn, call),
        ("GET", ["posts", urn]) => posts::show(turn, call, urn),
        ("POST", ["posts", urn]) => posts::change(turn, call, urn),
        ("DELETE", ["posts", urn]) => posts::delete(turn, call, urn),
        ("GET", ["socialActions", urn]) => posts::actions(turn, call, urn),
        ("GET", ["socialActions", urn, "comments"]) => posts::comments(turn, call, urn),
        ("POST", ["socialActions", urn, "comments"]) => posts::comment(turn, call, urn),
        ("GET", ["socialActions", _, "comments", id]) => posts::remark(turn, call, id),
        ("DELETE", ["socialActions", _, "comments", id]) => posts::uncomment(turn, call, id),
        ("GET", ["organizationalEntityShareStatistics"]) => posts::page_statistics(turn, call),
        ("GET", ["memberCreatorPostAnalytics"]) => posts::member_statistics(turn, call),
        ("GET", ["videoAnalytics"]) => posts::views(turn, call),
        ("POST", [kind @ ("images" | "videos" | "documents")]) => media::act(turn, call, kind),
        ("GET", [kind @ ("images" | "videos" | "documents"), urn]) => media::show(turn, call, kind, urn),
        _ => Err(missing("No virtual resource found")),
    }
}

/// The version that each call has to name.
fn versioned(call: &Call) -> Result<(), Answer> {
    let Some(version) = call.header("linkedin-version") else {
        return Err(error(400, "VERSION_MISSING", 0, "A version must be present. Please specify a version by adding the LinkedIn-Version header."));
    };
    match version.parse::<u32>() {
        Ok(number @ OLDEST..) if (1..=12).contains(&(number % 100)) && version.len() == 6 => Ok(()),
        _ => {
            let message = format!("Requested version {version} is not active");
            Err(error(426, "NONEXISTENT_VERSION", 0, &message))
        }
    }
}

/// The page of a post, or of a comment below it.
fn shown(turn: &Turn<'_>, call: &Call, urn: &str) -> Answer {
    let found = match call.query("commentUrn") {
        Some(comment) => posts::comment_at(turn, comment)
            .map(|comment| (comment.owner.clone(), comment_card(turn, &comment))),
        None => posts::at(turn, urn).map(|post| (post.owner.clone(), card(turn, &post))),
    };
    let html = found.and_then(|(owner, card)| {
        let owner = account::numbered(turn.shelf, ID, &owner)?;
        Some(page::post(&LinkedIn.identity(&owner), ID, &card, &LinkedIn.posts(turn, &owner)))
    });
    html.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn profile(turn: &Turn<'_>, name: &str) -> Answer {
    let name = name.strip_suffix("-works").unwrap_or(name);
    match account::named(turn.shelf, ID, name) {
        Some(owner) => {
            let cards = LinkedIn.posts(turn, &owner);
            Answer::page(200, page::account(&LinkedIn.identity(&owner), ID, &cards))
        }
        None => Answer::page(404, page::missing()),
    }
}

fn card(turn: &Turn<'_>, post: &posts::Post) -> Card {
    let mut notes = vec![format!("By {}, visible: {}", post.author, post.visibility)];
    for (pointer, label) in [
        ("/article/title", "Card"),
        ("/article/source", "Leads to"),
        ("/media/title", "Title"),
        ("/poll/question", "Poll"),
    ] {
        if let Some(text) = post.content.pointer(pointer).and_then(Value::as_str) {
            notes.push(format!("{label}: {text}"));
        }
    }
    notes.extend(post.reshares.iter().map(|urn| format!("Shares {urn}")));
    let pictures = post.pictures().into_iter().filter_map(|(urn, alt)| {
        let media = media::at(turn, &urn)?;
        Some(Picture { files: media.files(), mime: media.mime(), alt })
    });
    Card {
        id: post.urn.clone(),
        address: format!("www.linkedin.com/feed/update/{}/", post.urn),
        text: text::plain(&post.commentary),
        at: post.created_at,
        media: pictures.collect(),
        notes,
        reply_to: None,
    }
}

fn comment_card(turn: &Turn<'_>, comment: &posts::Comment) -> Card {
    let picture = comment.image.as_deref().and_then(|urn| media::at(turn, urn));
    Card {
        id: comment.urn.clone(),
        address: format!("www.linkedin.com/feed/update/{}?commentUrn={}", comment.post, comment.urn),
        text: comment.text.clone(),
        at: comment.created_at,
        media: picture
            .map(|media| Picture { files: media.files(), mime: media.mime(), alt: String::new() })
            .into_iter()
            .collect(),
        notes: Vec::new(),
        reply_to: Some(comment.post.clone()),
    }
}

fn avatar(account: &Account) -> String {
    format!("https://media.licdn.com/dms/image/{}/profile-displayphoto", account.id)
}

fn is_app(call: &Call) -> bool {
    call.field("client_id") == Some(LOGIN.terms.client) && call.field("client_secret") == Some(SECRET)
}

fn oauth_error(status: u16, word: &str, description: &str) -> Answer {
    Answer::json(status, &json!({ "error": word, "error_description": description }))
}

/// `POST /oauth/v2/accessToken`.
fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !is_app(call) {
        return Err(oauth_error(401, "invalid_client", "Client authentication failed"));
    }
    let issued = LOGIN.token(turn, call).map_err(|refusal| match refusal {
        Refusal::Code => oauth_error(
            400,
            "invalid_request",
            "Unable to retrieve access token: appid/redirect uri/code verifier does not match authorization code. Or authorization code expired. Or external member binding exists",
        ),
        Refusal::Refresh => oauth_error(
            400,
            "invalid_grant",
            "The provided authorization grant or refresh token is invalid, expired or revoked.",
        ),
        Refusal::Kind => oauth_error(400, "unsupported_grant_type", "The grant type is not supported"),
    })?;
    Ok(Answer::json(
        200,
        &json!({
            "access_token": issued.access,
            "expires_in": issued.access_seconds,
            "refresh_token": issued.refresh,
            "refresh_token_expires_in": issued.refresh_seconds,
            "scope": issued.scopes.join(","),
        }),
    ))
}

/// `POST /oauth/v2/introspectToken`.
fn introspect(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !is_app(call) {
        return Err(oauth_error(401, "invalid_client", "Client authentication failed"));
    }
    let token = call.field("token").and_then(|token| tokens::find(turn, ID, token));
    let token = token.ok_or_else(|| oauth_error(400, "invalid_request", "Invalid token"))?;
    let status = match (token.is_revoked, token.lives(turn.now)) {
        (true, _) => "revoked",
        (_, true) => "active",
        _ => "expired",
    };
    Ok(Answer::json(
        200,
        &json!({
            "active": status == "active",
            "status": status,
            "client_id": LOGIN.terms.client,
            "expires_at": token.expires_at.timestamp(),
            "scope": token.scopes.join(","),
            "auth_type": "3L",
        }),
    ))
}

/// `POST /oauth/v2/revoke`.
fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if !is_app(call) {
        return Err(oauth_error(401, "invalid_client", "Client authentication failed"));
    }
    let token = call.field("token").unwrap_or_default();
    if tokens::find(turn, ID, token).is_none() {
        return Err(oauth_error(400, "invalid_request", "Invalid access token"));
    }
    tokens::revoke(turn, ID, token);
    Ok(Answer::json(200, &json!({})))
}

/// `GET /v2/userinfo`.
fn userinfo(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["profile"])?;
    let account = &caller.account;
    Ok(Answer::json(
        200,
        &json!({
            "sub": account.id,
            "name": account.username,
            "given_name": account.username,
            "family_name": "",
            "picture": avatar(account),
            "locale": { "country": "US", "language": "en" },
        }),
    ))
}

/// `GET /v2/me`.
fn me(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, &["r_basicprofile"])?;
    let account = &caller.account;
    Ok(Answer::json(
        200,
        &json!({
            "id": account.id,
            "vanityName": account.username,
            "localizedFirstName": account.username,
            "localizedLastName": "",
        }),
    ))
}

/// The page of a member, which is there as soon as the member is.
fn page_of(account: &Account) -> String {
    let digest = account::digest(ID, &format!("{}/page", account.username));
    let draw = u32::from_be_bytes(digest[..4].try_into().expect("four bytes of a digest"));
    (10_000_000 + u64::from(draw) % 80_000_000).to_string()
}

fn view(account: &Account) -> Value {
    let id = page_of(account);
    json!({
        "id": id.parse::<u64>().unwrap_or_default(),
        "localizedName": format!("{} Works", account.username),
        "vanityName": format!("{}-works", account.username),
        "logoV2": { "original": format!("urn:li:digitalmediaAsset:{id}") },
    })
}

/// `GET /rest/organizationAcls?q=roleAssignee`.
fn roles(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit_any(turn, call, &["rw_organization_admin", "r_organization_admin"], "organizationAcls")?;
    if call.query("q") != Some("roleAssignee") {
        return Err(invalid("q has to be roleAssignee"));
    }
    let role = call.query("role").unwrap_or("ADMINISTRATOR");
    let is_theirs = role == "ADMINISTRATOR" && call.query("state").unwrap_or("APPROVED") == "APPROVED";
    let elements: Vec<_> = is_theirs
        .then(|| {
            json!({
                "organization": format!("urn:li:organization:{}", page_of(&caller.account)),
                "role": "ADMINISTRATOR",
                "roleAssignee": format!("urn:li:person:{}", caller.account.id),
                "state": "APPROVED",
            })
        })
        .into_iter()
        .collect();
    paged(call, elements)
}

/// `GET /rest/organizations/{id}`.
fn organization(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit_any(turn, call, &["rw_organization_admin", "r_organization_admin"], "organizations")?;
    if page_of(&caller.account) != id {
        return Err(missing("Organization not found"));
    }
    Ok(Answer::json(200, &view(&caller.account)))
}

/// `GET /rest/organizations?ids=List(…)`.
fn organizations(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit_any(turn, call, &["rw_organization_admin", "r_organization_admin"], "organizations")?;
    let id = page_of(&caller.account);
    let asked = call.query("ids").and_then(|ids| ids.strip_prefix("List(")?.strip_suffix(')'));
    let asked = asked.ok_or_else(|| invalid("ids has to be List(…)"))?;
    let results: serde_json::Map<String, Value> = asked
        .split(',')
        .filter(|one| *one == id)
        .map(|one| (one.to_owned(), view(&caller.account)))
        .collect();
    Ok(Answer::json(200, &json!({ "results": results, "statuses": {}, "errors": {} })))
}

/// Lets a request in: a token that lives, the scopes it needs, and room in the day's window.
fn admit(turn: &mut Turn<'_>, call: &Call, scopes: &[&str]) -> Result<Caller, Answer> {
    let token = call.bearer().and_then(|token| tokens::find(turn, ID, token));
    let token = token.ok_or_else(|| error(401, "INVALID_ACCESS_TOKEN", 65_600, "Invalid access token"))?;
    if token.is_revoked {
        return Err(error(
            401,
            "REVOKED_ACCESS_TOKEN",
            65_601,
            "The token used in the request has been revoked by the user",
        ));
    }
    if !token.lives(turn.now) {
        return Err(expired());
    }
    if token.lacks(scopes).is_some() {
        return Err(forbidden(call.path.trim_start_matches('/')));
    }
    let account = account::numbered(turn.shelf, ID, &token.user).ok_or_else(expired)?;
    turn.spend(CALLS, &account.id, 1).map_err(|_| throttled())?;
    Ok(Caller { account, scopes: token.scopes })
}

/// The same where one scope of several is enough.
fn admit_any(turn: &mut Turn<'_>, call: &Call, scopes: &[&str], what: &str) -> Result<Caller, Answer> {
    let caller = admit(turn, call, &[])?;
    if caller.may(scopes) { Ok(caller) } else { Err(forbidden(what)) }
}

impl Caller {
    fn may(&self, scopes: &[&str]) -> bool {
        scopes.iter().any(|scope| self.scopes.iter().any(|granted| granted == scope))
    }

    /// Whether it may write as this author.
    fn writes_as(&self, author: &str) -> Result<(), Answer> {
        let may = match author.rsplit_once(':') {
            Some(("urn:li:person", id)) => id == self.account.id && self.may(&["w_member_social"]),
            Some(("urn:li:organization", id)) => {
                id == page_of(&self.account) && self.may(&["w_organization_social"])
            }
            _ => return Err(invalid(&format!("\"{author}\" is no author"))),
        };
        if may { Ok(()) } else { Err(forbidden("posts.CREATE.20260601")) }
    }

    /// Whether it may read what this author wrote.
    fn reads(&self, author: &str) -> Result<(), Answer> {
        let may = match author.rsplit_once(':') {
            Some(("urn:li:person", id)) => id == self.account.id && self.may(&["r_member_social"]),
            Some(("urn:li:organization", id)) => {
                id == page_of(&self.account) && self.may(&["r_organization_social"])
            }
            _ => return Err(invalid(&format!("\"{author}\" is no author"))),
        };
        if may { Ok(()) } else { Err(forbidden("posts.FINDER-author")) }
    }
}

fn expired() -> Answer {
    error(401, "EXPIRED_ACCESS_TOKEN", 65_602, "The token used in the request has expired")
}

fn forbidden(what: &str) -> Answer {
    error(403, "ACCESS_DENIED", 100, &format!("Not enough permissions to access: {what}"))
}

fn throttled() -> Answer {
    let message =
        "Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this resource is reached.";
    error(429, "TOO_MANY_REQUESTS", 101, message)
}

fn missing(message: &str) -> Answer {
    error(404, "NOT_FOUND", 0, message)
}

fn invalid(message: &str) -> Answer {
    error(400, "ILLEGAL_ARGUMENT", 0, message)
}

fn error(status: u16, code: &str, service: u32, message: &str) -> Answer {
    let mut body = json!({ "status": status, "code": code, "message": message });
    if service > 0 {
        body["serviceErrorCode"] = json!(service);
    }
    Answer::json(status, &body)
}

/// A body of JSON.
fn body(call: &Call) -> Result<Value, Answer> {
    call.json().ok().filter(Value::is_object).ok_or_else(|| invalid("Cannot parse request entity"))
}

/// One page of a list.
fn paged(call: &Call, all: Vec<Value>) -> Result<Answer, Answer> {
    let number = |name: &str, otherwise: usize| match call.query(name).map(str::parse::<usize>) {
        None => Ok(otherwise),
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(invalid(&format!("{name} has to be a number"))),
    };
    let (start, count) = (number("start", 0)?, number("count", 10)?.clamp(1, 100));
    let total = all.len();
    let page: Vec<_> = all.into_iter().skip(start).take(count).collect();
    let mut links = Vec::new();
    if start + page.len() < total {
        let href = format!("{}?start={}&count={count}", call.path, start + page.len());
        links.push(json!({ "type": "application/json", "rel": "next", "href": href }));
    }
    let paging = json!({ "start": start, "count": count, "links": links, "total": total });
    Ok(Answer::json(200, &json!({ "paging": paging, "elements": page })))
}

/// The next number: the milliseconds, then a sequence, and never one twice.
fn next(turn: &mut Turn<'_>) -> u64 {
    let last = turn.shelf.get::<Last>("").map_or(0, |last| last.number);
    let number = u64::try_from(turn.now.timestamp_millis()).unwrap_or(0) << 22;
    // Two in a row differ in more than their last digit, so that a slip names nothing.
    let number = number.max(last + 64);
    turn.shelf.put(&Last { number });
    number
}

/// The last number that was given.
#[derive(Serialize, Deserialize)]
struct Last {
    number: u64,
}

impl Record for Last {
    const SHELF: &'static str = "linkedin.last";

    fn key(&self) -> String {
        String::new()
    }
}
