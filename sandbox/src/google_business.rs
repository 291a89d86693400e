//! Google Business Profile: My Business v4 for posts and photos, and the first versions of Account Management and
//! Business Information, as their discovery documents and
//! <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts> say.
//!
//! A login manages two locations; the second has the name of the first with a 2 appended. A location whose
//! name begins with `unverified` may not post, and a text that contains `sandbox-rejected` does not pass
//! moderation. The locations of a login whose name begins with `chain` have the same title, and one that begins
//! with `agency` belongs to a group of locations too, which it may not read. The quota belongs to the project, so
//! all accounts share it; that of a new app is zero until Google has granted access.

mod photos;
mod posts;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    google, page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, MediaView, PostView, Simulator, get_or_create_account},
};
use crate::Identity;
use crate::exchange::Cause::{self, Protocol, State};
use serde_json::{Map, Value, json};

/// The platform's identifier.
const ID: &str = "google_business";

const SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/business.manage"];

/// Calls of a project per minute, counted per API.
const CALLS: RateLimit = RateLimit::new("google_business.calls", 300, 60);

const POSTS: &str = "mybusiness.googleapis.com";
const MANAGEMENT: &str = "mybusinessaccountmanagement.googleapis.com";
const INFORMATION: &str = "mybusinessbusinessinformation.googleapis.com";
const VERIFICATIONS: &str = "mybusinessverifications.googleapis.com";

pub(super) struct GoogleBusiness;

impl Simulator for GoogleBusiness {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            POSTS
            | MANAGEMENT
            | INFORMATION
            | VERIFICATIONS
            | "local.google.com"
            | "maps.google.com"
            | "lh3.googleusercontent.com" => true,
            "" => path.starts_with("/v4/accounts/"),
            _ => false,
        }
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match google::is_login(request) {
            true => google::body_mode(request),
            false => BodyMode::Buffered(1 << 20),
        }
    }

    fn media_urls(&self, request: &Request) -> Vec<String> {
        let body = || request.json().unwrap_or(Value::Null);
        match request.segments().last() {
            Some(&"localPosts") => posts::media_urls(&body()),
            Some(&"media") => photos::media_urls(&body()),
            _ => Vec::new(),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        let login = google::account(tx, request, ID)?;
        // Requests for a location's posts belong to the location's account.
        let of_path = match request.segments().as_slice() {
            ["v4", "accounts", account, "locations", location, ..] => {
                account::by_id(tx.store, ID, &format!("accounts/{account}/locations/{location}"))
            }
            _ => None,
        };
        Some(of_path.map_or(login, |account| account.username))
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        if google::is_login(request) {
            return google::respond(tx, request, self);
        }
        if let Some(response) = site(tx, request) {
            return response;
        }
        api(tx, request).unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => invalid(&[(State, 3, "summary", "The text was refused on purpose.")]),
            401 => google::unauthenticated(),
            403 => refusal(State, 403, "PERMISSION_DENIED", "The caller does not have permission"),
            // The header is not documented; it is sent so that clients retry soon.
            429 => exhausted(300).with("retry-after", 2),
            503 => refusal(State, 503, "UNAVAILABLE", "The service is currently unavailable."),
            _ => refusal(State, 500, "INTERNAL", "Internal error encountered."),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let username = username.trim();
        match (1..=80).contains(&username.chars().count()) && !username.contains('/') {
            true => Ok(username.to_owned()),
            false => Err(format!("`{username}` is no name of a location: 1 to 80 characters, no slash")),
        }
    }

    fn account_id(&self, username: &str) -> String {
        let digits = |name: &str| {
            let draw = account::digest_number(ID, name);
            10_000_000_000_000_000_000 | (draw >> 2)
        };
        let login = username.strip_suffix(SECOND_SUFFIX).unwrap_or(username);
        format!("accounts/{}/locations/{}", digits(login), digits(&format!("{username}/location")))
    }

    fn identity(&self, account: &Account) -> Identity {
        let mut identity = account.identity("location", None, maps_url(account));
        // A location has no handle, and its title is its name.
        identity.profile.display_name.clone_from(&account.username);
        identity
    }

    fn grants(&self) -> &dyn Grants {
        &google::Google { granted: &SCOPES }
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        let posts = posts::by(tx, &account.id).map(|post| post_view(tx, &post));
        let photos = photos::by(tx, &account.id).map(|photo| photo.post_view(account));
        let mut all: Vec<_> = posts.chain(photos).collect();
        all.sort_by_key(|view| view.at);
        all.reverse();
        all
    }
}

fn api(tx: &mut Transaction, request: &Request) -> Outcome {
    if request.is_too_large {
        return Err(refusal(Protocol, 413, "INVALID_ARGUMENT", "The request is too large."));
    }
    let (host, segments) = (request.host.as_str(), request.segments());
    if let (POSTS | "", ["v4", "accounts", account, "locations", location, path @ ..]) =
        (host, segments.as_slice())
    {
        let parent = format!("accounts/{account}/locations/{location}");
        return routes! { tx, request, path, admit, Err(missing());
            "POST"   ["localPosts"]     => () posts::create(&parent);
            "GET"    ["localPosts"]     => () posts::list(&parent);
            "GET"    ["localPosts", id] => () posts::get(&parent, id);
            "PATCH"  ["localPosts", id] => () posts::patch(&parent, id);
            "DELETE" ["localPosts", id] => () posts::delete(&parent, id);
            "POST"   ["media"]          => () photos::create(&parent);
            "GET"    ["media"]          => () photos::list(&parent);
            "GET"    ["media", id]      => () photos::get(&parent, id);
            "DELETE" ["media", id]      => () photos::delete(&parent, id);
        };
    }
    routes! { tx, request, (host, segments.as_slice()), admit, Err(missing());
        "GET" (MANAGEMENT, ["v1", "accounts"])                                 => () accounts();
        "GET" (MANAGEMENT, ["v1", "accounts", account])                        => () one_account(account);
        "GET" (INFORMATION, ["v1", "accounts", account, "locations"])          => () locations(account);
        "GET" (INFORMATION, ["v1", "locations", id])                           => () one_location(id);
        "GET" (VERIFICATIONS, ["v1", "locations", id, "VoiceOfMerchantState"]) => () voice_of_merchant(id);
    }
}

/// Suffix of the name of a login's second location.
const SECOND_SUFFIX: &str = " 2";

/// Returns the login of a location: `accounts/1` of `accounts/1/locations/2`.
fn login(id: &str) -> &str {
    id.split_once("/locations/").map_or(id, |(login, _)| login)
}

/// Returns the name of a location without its login: `locations/2`.
fn location_name(account: &Account) -> &str {
    account.id.find("locations/").map_or(account.id.as_str(), |at| &account.id[at..])
}

/// Pages for browsers: locations and posts.
fn site(tx: &Transaction, request: &Request) -> Option<Response> {
    let found = match (request.host.as_str(), request.segments().as_slice()) {
        ("lh3.googleusercontent.com", [_, file]) => {
            return Some(match tx.files.read(file) {
                Some(bytes) => Response { is_page: true, ..Response::bytes(200, "image/jpeg", bytes) },
                None => page::serve(None),
            });
        }
        ("maps.google.com", _) => request
            .query("cid")
            .and_then(|cid| by_location(tx, &format!("locations/{cid}")))
            .map(|account| page::account(tx, &GoogleBusiness, &account)),
        ("local.google.com", _) => {
            request.query("lpsid").and_then(|id| posts::find(tx, id)).and_then(|post| {
                let account = account::by_id(tx.store, ID, post.parent())?;
                Some(page::post(tx, &GoogleBusiness, &account, &post_view(tx, &post)))
            })
        }
        _ => return None,
    };
    Some(page::serve(found))
}

fn post_view(tx: &Transaction, post: &posts::Post) -> PostView {
    PostView {
        id: post.id().to_owned(),
        address: format!("local.google.com/place?use=posts&lpsid={}", post.id()),
        text: post.text().to_owned(),
        at: post.created_at,
        media: post
            .files
            .iter()
            .map(|(file, mime)| MediaView {
                files: vec![file.clone()],
                mime: mime.clone(),
                alt: String::new(),
            })
            .collect(),
        notes: post.notes(tx),
        reply_to: None,
    }
}

fn maps_url(account: &Account) -> String {
    format!("https://maps.google.com/maps?cid={}", location_name(account).trim_start_matches("locations/"))
}

fn by_location(tx: &Transaction, name: &str) -> Option<Account> {
    tx.store.with_prefix::<Account>(&format!("{ID}/")).find(|account| location_name(account) == name)
}

/// Admits a request: checks its token, its scope and the rate limit.
fn admit(tx: &mut Transaction, request: &Request) -> Result<Account, Response> {
    let token = google::find(tx, request, ID).ok_or_else(google::unauthenticated)?;
    let account = account::by_id(tx.store, ID, &token.user).ok_or_else(google::unauthenticated)?;
    if !token.has_any_scope(&["business.manage", "plus.business.manage"]) {
        return Err(insufficient());
    }
    if !tx.settings.is_approved() {
        return Err(exhausted(0));
    }
    let limit = tx.settings.limits.get(CALLS.name).copied().unwrap_or(CALLS.limit);
    tx.spend(CALLS, &request.host, 1).map_err(|_| exhausted(limit))?;
    Ok(account)
}

/// Returns the location at a path, if the caller manages it.
fn managed(tx: &Transaction, caller: &Account, parent: &str) -> Result<Account, Response> {
    let account = account::by_id(tx.store, ID, parent).ok_or_else(missing)?;
    match login(&account.id) == login(&caller.id) {
        true => Ok(account),
        false => Err(refusal(State, 403, "PERMISSION_DENIED", "The caller does not have permission")),
    }
}

fn insufficient() -> Response {
    detailed(
        State,
        403,
        "PERMISSION_DENIED",
        "Request had insufficient authentication scopes.",
        &json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            "domain": "googleapis.com",
            "metadata": { "service": POSTS },
        }]),
    )
}

fn exhausted(limit: u64) -> Response {
    let message = format!(
        "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{POSTS}' for consumer 'project_number:1'."
    );
    detailed(
        State,
        429,
        "RESOURCE_EXHAUSTED",
        &message,
        &json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "RATE_LIMIT_EXCEEDED",
            "domain": "googleapis.com",
            "metadata": {
                "service": POSTS,
                "consumer": "projects/1",
                "quota_limit": "DefaultRequestsPerMinutePerProject",
                "quota_limit_value": limit.to_string(),
            },
        }]),
    )
}

/// An issue of a post: its cause, code, field and message.
type Issue = (Cause, u32, &'static str, &'static str);

/// Creates the refusal of an invalid post. Its cause is that of the first issue.
fn invalid(issues: &[Issue]) -> Response {
    let errors: Vec<_> = issues
        .iter()
        .map(|(_, code, field, message)| match *field {
            "" => json!({ "code": code, "message": message }),
            field => json!({ "code": code, "field": field, "message": message }),
        })
        .collect();
    detailed(
        issues.first().map_or(State, |(cause, ..)| cause.clone()),
        400,
        "INVALID_ARGUMENT",
        "Request contains an invalid argument.",
        &json!([{ "@type": "type.googleapis.com/google.mybusiness.v4.ValidationError", "errorDetails": errors }]),
    )
}

fn missing() -> Response {
    refusal(State, 404, "NOT_FOUND", "Requested entity was not found.")
}

fn refusal(cause: Cause, status: u16, word: &str, message: &str) -> Response {
    Response::json(status, &json!({ "error": { "code": status, "message": message, "status": word } }))
        .because(cause)
}

fn detailed(cause: Cause, status: u16, word: &str, message: &str, details: &Value) -> Response {
    let error = json!({ "code": status, "message": message, "status": word, "details": details });
    Response::json(status, &json!({ "error": error })).because(cause)
}

/// Returns a page of resources under `name`; a page token is the index of its first item.
fn page_of(request: &Request, name: &str, usual: usize, max: usize, all: &[Value]) -> Outcome {
    let wrong =
        |name: &str| refusal(Protocol, 400, "INVALID_ARGUMENT", &format!("Invalid value for {name}."));
    let size = match request.query("pageSize") {
        None | Some("0") => usual,
        Some(text) => text.parse::<usize>().map_err(|_| wrong("pageSize"))?.min(max),
    };
    let start = match request.query("pageToken") {
        None | Some("") => 0,
        Some(token) => token
            .strip_prefix("Ch")
            .and_then(|place| place.parse::<usize>().ok())
            .ok_or_else(|| wrong("pageToken"))?,
    };
    let items: Vec<_> = all.iter().skip(start).take(size).cloned().collect();
    // Empty members are left out.
    let mut body = Map::new();
    if !items.is_empty() {
        body.insert(name.to_owned(), Value::Array(items));
    }
    if start + size < all.len() {
        body.insert("nextPageToken".into(), json!(format!("Ch{}", start + size)));
    }
    Ok(Response::json(200, &Value::Object(body)))
}

/// `GET /v1/accounts`.
fn accounts(_: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let mut all = vec![account_of(caller)];
    if caller.username.starts_with("agency") {
        let number = account::digest_number(ID, &format!("{}/group", login(&caller.id)));
        all.push(json!({
            "name": format!("accounts/{number}"),
            "accountName": "A group of locations",
            "type": "LOCATION_GROUP",
            "role": "MANAGER",
            "verificationState": "UNVERIFIED",
            "vettedState": "NOT_VETTED",
        }));
    }
    page_of(request, "accounts", 20, 20, &all)
}

fn one_account(_: &mut Transaction, _: &Request, caller: &Account, id: &str) -> Outcome {
    match login(&caller.id) == format!("accounts/{id}") {
        true => Ok(Response::json(200, &account_of(caller))),
        false => Err(missing()),
    }
}

fn account_of(caller: &Account) -> Value {
    json!({
        "name": login(&caller.id),
        "accountName": caller.username.strip_suffix(SECOND_SUFFIX).unwrap_or(&caller.username),
        "type": "PERSONAL",
        "verificationState": "UNVERIFIED",
        "vettedState": "NOT_VETTED",
    })
}

/// `GET /v1/accounts/{id}/locations`.
fn locations(tx: &mut Transaction, request: &Request, caller: &Account, account: &str) -> Outcome {
    let mask = mask(request)?;
    if account != "-" && login(&caller.id) != format!("accounts/{account}") {
        return Err(refusal(State, 403, "PERMISSION_DENIED", "The caller does not have permission"));
    }
    let first = caller.username.strip_suffix(SECOND_SUFFIX).unwrap_or(&caller.username).to_owned();
    let mut all = Vec::new();
    for name in [first.clone(), format!("{first}{SECOND_SUFFIX}")] {
        if let Ok(found) = get_or_create_account(tx, &GoogleBusiness, &name) {
            all.push(select_fields(location(&found), &mask));
        }
    }
    page_of(request, "locations", 10, 100, &all)
}

/// `GET /v1/locations/{id}`.
fn one_location(tx: &mut Transaction, request: &Request, caller: &Account, id: &str) -> Outcome {
    let mask = mask(request)?;
    let found = by_location(tx, &format!("locations/{id}")).ok_or_else(missing)?;
    let found = managed(tx, caller, &found.id)?;
    Ok(Response::json(200, &select_fields(location(&found), &mask)))
}

fn voice_of_merchant(tx: &mut Transaction, _: &Request, caller: &Account, id: &str) -> Outcome {
    let found = by_location(tx, &format!("locations/{id}")).ok_or_else(missing)?;
    let found = managed(tx, caller, &found.id)?;
    let state = match is_verified(&found) {
        true => json!({ "hasVoiceOfMerchant": true, "hasBusinessAuthority": true }),
        // False members are left out.
        false => json!({ "verify": {} }),
    };
    Ok(Response::json(200, &state))
}

/// Returns the fields of the read mask, which is required.
fn mask(request: &Request) -> Result<Vec<String>, Response> {
    let mask = request.query("readMask").unwrap_or_default();
    let fields: Vec<String> =
        mask.split(',').map(|field| field.trim().to_owned()).filter(|field| !field.is_empty()).collect();
    let known = ["name", "title", "storeCode", "storefrontAddress", "websiteUri", "metadata", "languageCode"];
    let is_known = |field: &String| known.contains(&field.split('.').next().unwrap_or_default());
    if fields.is_empty() || !fields.iter().all(is_known) {
        return Err(detailed(
            State,
            400,
            "INVALID_ARGUMENT",
            "Request contains an invalid argument.",
            &json!([{
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{ "field": "read_mask", "description": "Invalid field mask provided" }],
            }]),
        ));
    }
    Ok(fields)
}

fn select_fields(resource: Value, mask: &[String]) -> Value {
    let Value::Object(members) = resource else { return resource };
    let is_asked = |name: &str| mask.iter().any(|field| field.split('.').next() == Some(name));
    Value::Object(members.into_iter().filter(|(name, _)| is_asked(name)).collect())
}

fn is_verified(account: &Account) -> bool {
    !account.username.starts_with("unverified")
}

fn location(account: &Account) -> Value {
    let number = location_name(account).trim_start_matches("locations/");
    let first = account.username.strip_suffix(SECOND_SUFFIX);
    let mut metadata = json!({
        "placeId": format!("ChIJ{number}"),
        "mapsUri": maps_url(account),
        "newReviewUri": format!("https://search.google.com/local/writereview?placeid=ChIJ{number}"),
    });
    // Only true flags are sent, as proto3 is encoded in JSON.
    if is_verified(account) {
        metadata["hasVoiceOfMerchant"] = json!(true);
    }
    json!({
        "name": location_name(account),
        "title": first.filter(|name| name.starts_with("chain")).unwrap_or(&account.username),
        "storeCode": format!("store-{}", &number[number.len() - 4..]),
        "languageCode": "en",
        "storefrontAddress": {
            "regionCode": "US",
            "postalCode": "94043",
            "administrativeArea": "CA",
            "locality": "Mountain View",
            "addressLines": [format!("{} Sandbox Way", if first.is_some() { 2 } else { 1 })],
        },
        "websiteUri": "https://example.com/",
        "metadata": metadata,
    })
}
