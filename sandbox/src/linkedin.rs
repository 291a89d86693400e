//! LinkedIn: the versioned REST API, as <https://learn.microsoft.com/en-us/linkedin/> says; it has no
//! machine-readable description.
//!
//! Each member administers one page. Features for approved apps only (listing a member's posts, reading a
//! member's metrics) need the restricted scopes. An unescaped reserved character truncates a text without an
//! error, as on LinkedIn.
//!
//! The scopes that an app may ask for follow from its products ([`oauth::Products`]): a newly registered app has
//! those of self-service, an approved one all. A second app ([`oauth::COMMUNITY_CLIENT`]) has the Community
//! Management API as it is for new apps: as an app's only product, and with scopes of their own for comments
//! (`*_social_feed`), which the others may use and need not.

mod directory;
mod media;
mod oauth;
mod posts;
mod text;

use super::{
    Transaction,
    account::{self, Account, FAMILY_NAME},
    exchange::{BodyMode, Outcome, Request, Response},
    page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, MediaView, PostView, Simulator},
    store::Record,
    tokens,
};
use crate::Identity;
use crate::exchange::Cause::{self, Protocol, State};
use chrono::{DateTime, Datelike, Months, Utc};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "linkedin";

/// The newest version that the documentation names; the clock may be behind it.
const DOCUMENTED_VERSION: u32 = 202_608;

/// Months for which a version is active; after them it gets 426.
const VERSION_MONTHS: u32 = 12;

/// Calls of a member. The real limits are shown in the developer portal only.
const CALLS: RateLimit = RateLimit::new("linkedin.calls", 100_000, 86_400);
const CREATES: RateLimit = RateLimit::new("linkedin.creates", 150, 86_400);

pub(super) struct LinkedIn;

/// An admitted caller.
struct Caller {
    account: Account,
    scopes: Vec<String>,
    /// True if its app comments, and reads comments, with the scopes for them only.
    has_feed_scopes: bool,
}

impl Simulator for LinkedIn {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "api.linkedin.com" | "www.linkedin.com" | "linkedin.com" | "media.licdn.com" => true,
            "" => ["/rest/", "/dms-uploads/", "/oauth/v2/", "/v2/userinfo", "/v2/me", "/v2/socialActions/"]
                .iter()
                .any(|prefix| path.starts_with(prefix)),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match request.segments().as_slice() {
            ["dms-uploads", ..] => BodyMode::Upload,
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        match request.segments().as_slice() {
            ["dms-uploads", "sandbox", id, ..] => {
                let owner = media::get(tx, id)?.owner;
                account::by_id(tx.store, ID, &owner).map(|account| account.username)
            }
            _ => tokens::owner(tx, ID, request),
        }
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        let segments = request.segments();
        match (request.method.as_str(), segments.as_slice()) {
            ("GET" | "POST", ["oauth", "v2", "authorization"]) => oauth::authorize(tx, request),
            ("GET", ["feed", "update", urn]) => post_page(tx, request, urn),
            ("GET", ["in" | "company", name]) => profile(tx, name),
            (_, path) => api(tx, request, path).unwrap_or_else(|refusal| refusal),
        }
    }

    fn refuse(&self, _tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => invalid(State, "The post was refused on purpose."),
            401 => expired(),
            403 => forbidden("posts.CREATE"),
            429 => error(State, 429, "TOO_MANY_REQUESTS", 101, "Too many requests, try again in a moment.")
                .with("retry-after", 1),
            503 => error(State, 503, "SERVICE_UNAVAILABLE", 0, "Service Unavailable"),
            _ => error(State, 500, "INTERNAL_SERVER_ERROR", 0, "Internal Server Error"),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "name on LinkedIn: 3 to 100 letters, digits and hyphens";
        account::check_username(username, 3..=100, b"-", rule).map(str::to_lowercase)
    }

    fn account_id(&self, username: &str) -> String {
        hex::encode(account::digest(ID, username))[..10].to_owned()
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "profile",
            Some(avatar(account)),
            format!("https://www.linkedin.com/in/{}", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &oauth::Granting
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        let mut views: Vec<PostView> = posts::by(tx, &account.id).map(|post| post_view(tx, &post)).collect();
        views.extend(posts::comments_by(tx, &account.id).map(|comment| comment_view(tx, &comment)));
        views.sort_by_key(|card| std::cmp::Reverse(card.at));
        views
    }
}

const PROFILE: &[&str] = &["openid", "profile"];
const BASIC_PROFILE: &[&str] = &["r_basicprofile"];
const ADMIN: &[&str] = &["rw_organization_admin"];
const READ_PAGE: &[&str] = &["r_organization_social"];
const MEMBER_ANALYTICS: &[&str] = &["r_member_postAnalytics"];

/// Any token. The scope depends on the author, a member or a page, so the handler checks it.
const ANY: &[&str] = &[];

fn api(tx: &mut Transaction, request: &Request, path: &[&str]) -> Outcome {
    match (request.method.as_str(), path) {
        ("POST", ["oauth", "v2", "accessToken"]) => return oauth::token(tx, request),
        ("POST", ["oauth", "v2", "introspectToken"]) => return oauth::introspect(tx, request),
        ("POST", ["oauth", "v2", "revoke"]) => return oauth::revoke(tx, request),
        ("PUT" | "POST", ["dms-uploads", "sandbox", id, part]) => {
            return media::receive(tx, request, id, part);
        }
        (_, ["rest", ..]) => check_version(tx.now, request)?,
        _ => {}
    }
    routes! { tx, request, path, admit, not_routed(request, path);
        "GET"    ["v2", "userinfo"]                                        => (PROFILE)          userinfo();
        "GET"    ["v2", "me"]                                              => (BASIC_PROFILE)    me();
        "GET"    ["rest", "organizationAcls"]                              => (ANY)              roles();
        "GET"    ["rest", "organizations"]
            if request.query("q").is_some()                                => (ANY)              directory::find();
        "GET"    ["rest", "organizations"]                                 => (ANY)              organizations();
        "GET"    ["rest", "organizationsLookup"]                           => (ANY)              directory::lookup();
        "GET"    ["rest", "peopleTypeahead"]                               => (ANY)              directory::followers();
        "GET"    ["rest", "organizations", id]                             => (ANY)              organization(id);
        "POST"   ["rest", "posts"]                                         => (ANY)              posts::create();
        "GET"    ["rest", "posts"]                                         => (ANY)              posts::list();
        "GET"    ["rest", "posts", urn]                                    => (ANY)              posts::show(urn);
        "POST"   ["rest", "posts", urn]                                    => (ANY)              posts::change(urn);
        "DELETE" ["rest", "posts", urn]                                    => (ANY)              posts::delete(urn);
        "GET"    ["rest", "socialActions", urn]                            => (ANY)              posts::actions(urn);
        "GET"    ["rest", "socialActions", urn, "comments"]                => (ANY)              posts::comments(urn);
        "POST"   ["rest", "socialActions", urn, "comments"]                => (ANY)              posts::comment(urn);
        "GET"    ["rest", "socialActions", _, "comments", id]              => (ANY)              posts::show_comment(id);
        "DELETE" ["rest", "socialActions", _, "comments", id]              => (ANY)              posts::delete_comment(id);
        "POST"   [_, "socialActions", _, "comments", id]                   => (ANY)              posts::change_comment(id);
        "GET"    ["v2", "socialActions", urn]                              => (ANY)              posts::actions_for_members(urn);
        "POST"   ["v2", "socialActions", urn, "comments"]                  => (ANY)              posts::comment(urn);
        "DELETE" ["v2", "socialActions", _, "comments", id]                => (ANY)              posts::delete_comment(id);
        "GET"    ["rest", "organizationalEntityShareStatistics"]           => (ADMIN)            posts::page_statistics();
        "GET"    ["rest", "memberCreatorPostAnalytics"]                    => (MEMBER_ANALYTICS) posts::member_statistics();
        "GET"    ["rest", "videoAnalytics"]                                => (READ_PAGE)        posts::video_views();
        "POST"   ["rest", kind]
            if media::action(request, kind) == Some("initializeUpload") => (ANY) media::begin(kind);
        "POST"   ["rest", "videos"]
            if media::action(request, "videos") == Some("finalizeUpload") => (ANY) media::finalize();
        "GET"    ["rest", kind @ ("images" | "videos" | "documents"), urn] => (ANY)              media::show(kind, urn);
    }
}

fn not_routed(request: &Request, path: &[&str]) -> Outcome {
    Err(match path {
        ["rest", "images" | "videos" | "documents"] if request.method == "POST" => {
            invalid(Protocol, &format!("there is no action {}", request.query("action").unwrap_or_default()))
        }
        ["rest", ..] => missing("No virtual resource found"),
        _ => missing("There is no such resource."),
    })
}

/// Checks the version, which every call has to name: one of the last twelve months. LinkedIn releases none in December:
/// <https://learn.microsoft.com/en-us/linkedin/marketing/integrations/migrations>.
fn check_version(now: DateTime<Utc>, request: &Request) -> Result<(), Response> {
    let Some(version) = request.header("linkedin-version") else {
        return Err(error(
            State,
            400,
            "VERSION_MISSING",
            0,
            "A version must be present. Please specify a version by adding the LinkedIn-Version header.",
        ));
    };
    let of = |at: DateTime<Utc>| at.year().unsigned_abs() * 100 + at.month();
    let newest = of(now).max(DOCUMENTED_VERSION);
    let oldest = of(now.checked_sub_months(Months::new(VERSION_MONTHS - 1)).unwrap_or(now));
    let number = version.parse::<u32>().ok().filter(|_| version.len() == 6);
    match number {
        Some(number) if (oldest..=newest).contains(&number) && (1..=11).contains(&(number % 100)) => Ok(()),
        _ => {
            let message = format!("Requested version {version} is not active");
            Err(error(State, 426, "NONEXISTENT_VERSION", 0, &message))
        }
    }
}

/// Responds with the page of a post or of a comment on it.
fn post_page(tx: &Transaction, request: &Request, urn: &str) -> Response {
    let found = match request.query("commentUrn") {
        Some(comment) => {
            posts::comment_at(tx, comment).map(|comment| (comment.owner.clone(), comment_view(tx, &comment)))
        }
        None => posts::at(tx, urn).map(|post| (post.owner.clone(), post_view(tx, &post))),
    };
    let html = found.and_then(|(owner, card)| {
        let owner = account::by_id(tx.store, ID, &owner)?;
        Some(page::post(tx, &LinkedIn, &owner, &card))
    });
    page::serve(html)
}

fn profile(tx: &Transaction, name: &str) -> Response {
    let name = name.strip_suffix("-works").unwrap_or(name);
    page::serve(account::by_username(tx.store, ID, name).map(|owner| page::account(tx, &LinkedIn, &owner)))
}

fn post_view(tx: &Transaction, post: &posts::Post) -> PostView {
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
        let media = media::at(tx, &urn)?;
        Some(MediaView { files: media.files(), mime: media.mime(), alt })
    });
    PostView {
        id: post.urn.clone(),
        address: format!("www.linkedin.com/feed/update/{}/", post.urn),
        text: text::plain(&post.commentary),
        at: post.created_at,
        media: pictures.collect(),
        notes,
        reply_to: None,
    }
}

fn comment_view(tx: &Transaction, comment: &posts::Comment) -> PostView {
    let picture = comment.image.as_deref().and_then(|urn| media::at(tx, urn));
    PostView {
        id: comment.urn.clone(),
        address: format!("www.linkedin.com/feed/update/{}?commentUrn={}", comment.post, comment.urn),
        text: comment.text.clone(),
        at: comment.created_at,
        media: picture
            .map(|media| MediaView { files: media.files(), mime: media.mime(), alt: String::new() })
            .into_iter()
            .collect(),
        notes: comment
            .mentions()
            .into_iter()
            .map(|mention| format!("Mentions {}: {}", mention.urn, mention.words))
            .collect(),
        reply_to: Some(comment.post.clone()),
    }
}

fn avatar(account: &Account) -> String {
    format!("https://media.licdn.com/dms/image/{}/profile-displayphoto", account.id)
}

/// `GET /v2/userinfo`.
fn userinfo(_: &mut Transaction, _: &Request, caller: &Caller) -> Outcome {
    let account = &caller.account;
    Ok(Response::json(
        200,
        &json!({
            "sub": account.id,
            "name": account.display_name(),
            "given_name": account.given_name(),
            "family_name": FAMILY_NAME,
            "picture": avatar(account),
            "locale": { "country": "US", "language": "en" },
        }),
    ))
}

/// `GET /v2/me`. A picture has its addresses only if the projection resolves them.
fn me(_: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let account = &caller.account;
    let mut picture = json!({ "displayImage": format!("urn:li:digitalmediaAsset:{}", account.id) });
    if request.query("projection").is_some_and(|projection| projection.contains("displayImage~")) {
        picture["displayImage~"] =
            json!({ "elements": [{ "identifiers": [{ "identifier": avatar(account) }] }] });
    }
    Ok(Response::json(
        200,
        &json!({
            "id": account.id,
            "vanityName": account.username,
            "localizedFirstName": account.given_name(),
            "localizedLastName": FAMILY_NAME,
            "profilePicture": picture,
        }),
    ))
}

/// Returns the id of the page that a member administers.
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
fn roles(_: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    caller.check_may(&["rw_organization_admin", "r_organization_admin"], "organizationAcls")?;
    if request.query("q") != Some("roleAssignee") {
        return Err(invalid(Protocol, "q has to be roleAssignee"));
    }
    let role = request.query("role").unwrap_or("ADMINISTRATOR");
    let is_theirs = role == "ADMINISTRATOR" && request.query("state").unwrap_or("APPROVED") == "APPROVED";
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
    paged(request, elements)
}

/// `GET /rest/organizations/{id}`.
fn organization(_: &mut Transaction, _: &Request, caller: &Caller, id: &str) -> Outcome {
    caller.check_may(&["rw_organization_admin", "r_organization_admin"], "organizations")?;
    if page_of(&caller.account) != id {
        return Err(missing("Organization not found"));
    }
    Ok(Response::json(200, &view(&caller.account)))
}

/// `GET /rest/organizations?ids=List(…)`.
fn organizations(_: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    caller.check_may(&["rw_organization_admin", "r_organization_admin"], "organizations")?;
    let id = page_of(&caller.account);
    let asked = request.query("ids").and_then(|ids| ids.strip_prefix("List(")?.strip_suffix(')'));
    let asked = asked.ok_or_else(|| invalid(Protocol, "ids has to be List(…)"))?;
    let results: serde_json::Map<String, Value> = asked
        .split(',')
        .filter(|one| *one == id)
        .map(|one| (one.to_owned(), view(&caller.account)))
        .collect();
    Ok(Response::json(200, &json!({ "results": results, "statuses": {}, "errors": {} })))
}

/// Admits a request: checks its token, its scopes and the day's limit.
fn admit(tx: &mut Transaction, request: &Request, scopes: &[&str]) -> Result<Caller, Response> {
    let token = request.bearer().and_then(|token| tokens::find(tx, ID, token));
    let token =
        token.ok_or_else(|| error(State, 401, "INVALID_ACCESS_TOKEN", 65_600, "Invalid access token"))?;
    if token.is_revoked {
        return Err(error(
            State,
            401,
            "REVOKED_ACCESS_TOKEN",
            65_601,
            "The token used in the request has been revoked by the user",
        ));
    }
    if !token.is_valid(tx.now) {
        return Err(expired());
    }
    if token.missing_scope(scopes).is_some() {
        return Err(forbidden(request.path.trim_start_matches('/')));
    }
    let account = account::by_id(tx.store, ID, &token.user).ok_or_else(expired)?;
    tx.spend(CALLS, &account.id, 1).map_err(|_| throttled())?;
    let has_feed_scopes = oauth::has_feed_scopes(tx, &token);
    Ok(Caller { account, scopes: token.scopes, has_feed_scopes })
}

impl Caller {
    fn may(&self, scopes: &[&str]) -> bool {
        scopes.iter().any(|scope| self.scopes.iter().any(|granted| granted == scope))
    }

    fn check_may(&self, scopes: &[&str], what: &str) -> Result<(), Response> {
        if self.may(scopes) { Ok(()) } else { Err(forbidden(what)) }
    }

    /// Returns true if the caller may act as an author: with the first scope as the member, with the second as their
    /// page.
    fn may_as(&self, author: &str, member: &str, page: &str) -> Result<bool, Response> {
        match author.rsplit_once(':') {
            Some(("urn:li:person", id)) => Ok(id == self.account.id && self.may(&[member])),
            Some(("urn:li:organization", id)) => Ok(id == page_of(&self.account) && self.may(&[page])),
            _ => Err(invalid(State, &format!("\"{author}\" is no author"))),
        }
    }

    /// Checks that the caller may write posts as an author.
    fn check_writes_as(&self, author: &str) -> Result<(), Response> {
        let may = self.may_as(author, "w_member_social", "w_organization_social")?;
        if may { Ok(()) } else { Err(forbidden("posts.CREATE.20260601")) }
    }

    /// Checks that the caller may read an author's posts.
    fn check_reads(&self, author: &str) -> Result<(), Response> {
        let may = self.may_as(author, "r_member_social", "r_organization_social")?;
        if may { Ok(()) } else { Err(forbidden("posts.FINDER-author")) }
    }

    /// Checks that the caller may comment as an author. Without the scopes for comments, the versioned API belongs
    /// to the Community Management API, and the unversioned one is open to apps of self-service.
    fn check_comments_as(&self, request: &Request, author: &str) -> Result<(), Response> {
        let is_open = !request.path.trim_start_matches('/').starts_with("rest/")
            || self.may(&["w_organization_social", "r_organization_social"]);
        let may = self.may_as(author, "w_member_social_feed", "w_organization_social_feed")?
            || (!self.has_feed_scopes
                && is_open
                && self.may_as(author, "w_member_social", "w_organization_social")?);
        if may { Ok(()) } else { Err(forbidden("socialActions/comments.CREATE.20260601")) }
    }

    /// Checks that the caller may read the comments on an author's posts.
    fn check_reads_comments(&self, author: &str) -> Result<(), Response> {
        let may = self.may_as(author, "r_member_social_feed", "r_organization_social_feed")?
            || (!self.has_feed_scopes && self.may_as(author, "r_member_social", "r_organization_social")?);
        if may { Ok(()) } else { Err(forbidden("socialActions/comments.GET_ALL.20260601")) }
    }
}

fn expired() -> Response {
    error(State, 401, "EXPIRED_ACCESS_TOKEN", 65_602, "The token used in the request has expired")
}

fn forbidden(what: &str) -> Response {
    error(State, 403, "ACCESS_DENIED", 100, &format!("Not enough permissions to access: {what}"))
}

fn throttled() -> Response {
    let message =
        "Resource level throttle APPLICATION_AND_MEMBER DAY limit for calls to this resource is reached.";
    error(State, 429, "TOO_MANY_REQUESTS", 101, message)
}

fn missing(message: &str) -> Response {
    error(State, 404, "NOT_FOUND", 0, message)
}

fn invalid(cause: Cause, message: &str) -> Response {
    error(cause, 400, "ILLEGAL_ARGUMENT", 0, message)
}

fn error(cause: Cause, status: u16, code: &str, service: u32, message: &str) -> Response {
    let mut body = json!({ "status": status, "code": code, "message": message });
    if service > 0 {
        body["serviceErrorCode"] = json!(service);
    }
    Response::json(status, &body).because(cause)
}

/// Returns the body, which has to be JSON.
fn body(request: &Request) -> Result<Value, Response> {
    request
        .json()
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| invalid(Protocol, "Cannot parse request entity"))
}

/// Returns one page of a list.
fn paged(request: &Request, all: Vec<Value>) -> Outcome {
    let number = |name: &str, otherwise: usize| match request.query(name).map(str::parse::<usize>) {
        None => Ok(otherwise),
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => Err(invalid(Protocol, &format!("{name} has to be a number"))),
    };
    let (start, count) = (number("start", 0)?, number("count", 10)?.clamp(1, 100));
    let total = all.len();
    let page: Vec<_> = all.into_iter().skip(start).take(count).collect();
    let mut links = Vec::new();
    if start + page.len() < total {
        let href = format!("{}?start={}&count={count}", request.path, start + page.len());
        links.push(json!({ "type": "application/json", "rel": "next", "href": href }));
    }
    let paging = json!({ "start": start, "count": count, "links": links, "total": total });
    Ok(Response::json(200, &json!({ "paging": paging, "elements": page })))
}

/// Returns the next number: the milliseconds, then a sequence; none is given twice.
fn next(tx: &mut Transaction) -> u64 {
    let now = u64::try_from(tx.now.timestamp_millis()).unwrap_or(0) << 22;
    // Two in a row differ in more than their last digit, so that a typing error matches nothing.
    tx.store.advance("linkedin", |last| now.max(last + 64))
}
