//! Google Business Profile: My Business v4 for posts, and the first versions of Account Management and
//! Business Information, as their discovery documents and
//! <https://developers.google.com/my-business/reference/rest/v4/accounts.locations.localPosts> say.
//!
//! A login manages two locations, of which the second is named like the first with a 2 behind. One whose
//! name begins with `unverified` may not post, and a text with `sandbox-rejected` in it does not pass
//! moderation. The quota is a project's, so all accounts share it.

mod posts;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    google,
    host::{Card, Grants, Host, Picture},
    page,
    window::Rule,
};
use crate::Identity;
use serde_json::{Map, Value, json};

/// The platform's identifier.
const ID: &str = "google_business";

const SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/business.manage"];

/// Calls of a project by the minute, counted for each API.
const CALLS: Rule = Rule { name: "google_business.calls", limit: 300, seconds: 60 };

const POSTS: &str = "mybusiness.googleapis.com";
const MANAGEMENT: &str = "mybusinessaccountmanagement.googleapis.com";
const INFORMATION: &str = "mybusinessbusinessinformation.googleapis.com";
const VERIFICATIONS: &str = "mybusinessverifications.googleapis.com";

/// Google Business Profile.
pub(super) struct GoogleBusiness;

impl Host for GoogleBusiness {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            POSTS | MANAGEMENT | INFORMATION | VERIFICATIONS | "local.google.com" | "maps.google.com"
            | "lh3.googleusercontent.com" => true,
            "" => path.starts_with("/v4/accounts/"),
            _ => false,
        }
    }

    fn intake(&self, call: &Call) -> Intake {
        match google::is_login(call) {
            true => google::intake(call),
            false => Intake::Whole(1 << 20),
        }
    }

    fn fetches(&self, call: &Call) -> Vec<String> {
        match call.path.ends_with("/localPosts") {
            true => posts::addresses(&call.json().unwrap_or(Value::Null)),
            false => Vec::new(),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        let login = google::account(turn, call, ID)?;
        // A location's posts are the location's own affair.
        let of_path = match call.segments().as_slice() {
            ["v4", "accounts", account, "locations", location, ..] => {
                account::numbered(turn.shelf, ID, &format!("accounts/{account}/locations/{location}"))
            }
            _ => None,
        };
        Some(of_path.map_or(login, |account| account.username))
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        if google::is_login(call) {
            return google::answer(turn, call, self);
        }
        if let Some(answer) = site(turn, call) {
            return answer;
        }
        let segments = call.segments();
        let answer = match (call.host.as_str(), call.method.as_str(), segments.as_slice()) {
            _ if call.is_too_large => Err(refusal(413, "INVALID_ARGUMENT", "The request is too large.")),
            (MANAGEMENT, "GET", ["v1", "accounts"]) => accounts(turn, call),
            (MANAGEMENT, "GET", ["v1", "accounts", account]) => one_account(turn, call, account),
            (INFORMATION, "GET", ["v1", "accounts", account, "locations"]) => locations(turn, call, account),
            (INFORMATION, "GET", ["v1", "locations", id]) => one_location(turn, call, id),
            (VERIFICATIONS, "GET", ["v1", "locations", id, "VoiceOfMerchantState"]) => voice(turn, call, id),
            (POSTS | "", method, ["v4", "accounts", account, "locations", location, rest @ ..]) => {
                let parent = format!("accounts/{account}/locations/{location}");
                match (method, rest) {
                    ("POST", ["localPosts"]) => posts::create(turn, call, &parent),
                    ("GET", ["localPosts"]) => posts::list(turn, call, &parent),
                    ("GET", ["localPosts", id]) => posts::get(turn, call, &parent, id),
                    ("PATCH", ["localPosts", id]) => posts::patch(turn, call, &parent, id),
                    ("DELETE", ["localPosts", id]) => posts::delete(turn, call, &parent, id),
                    ("GET", ["media"]) => posts::media(turn, call, &parent),
                    _ => Err(missing()),
                }
            }
            _ => Err(missing()),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => invalid(&[(3, "summary", "The text was refused on purpose.")]),
            401 => google::unauthenticated(),
            403 => refusal(403, "PERMISSION_DENIED", "The caller does not have permission"),
            // Nothing is promised about the header; it comes all the same, so that nobody waits long.
            429 => exhausted(300).with("retry-after", 2),
            503 => refusal(503, "UNAVAILABLE", "The service is currently unavailable."),
            _ => refusal(500, "INTERNAL", "Internal error encountered."),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let wish = wish.trim();
        match (1..=80).contains(&wish.chars().count()) && !wish.contains('/') {
            true => Ok(wish.to_owned()),
            false => Err(format!("`{wish}` is no name of a location: 1 to 80 characters, no slash")),
        }
    }

    fn number(&self, username: &str) -> String {
        let digits = |name: &str| {
            let digest = account::digest(ID, name);
            let draw = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"));
            10_000_000_000_000_000_000 | (draw >> 2)
        };
        let login = username.strip_suffix(SECOND).unwrap_or(username);
        format!("accounts/{}/locations/{}", digits(login), digits(&format!("{username}/location")))
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("location", None, maps(account))
    }

    fn grants(&self) -> &dyn Grants {
        &google::Google { granted: &SCOPES }
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        posts::by(turn, &account.id).rev().map(|post| card(turn, &post)).collect()
    }
}

/// What the second location of a login has behind its name.
const SECOND: &str = " 2";

/// The login behind a location: `accounts/1` of `accounts/1/locations/2`.
fn login(id: &str) -> &str {
    id.split_once("/locations/").map_or(id, |(login, _)| login)
}

/// The name of a location without its login: `locations/2`.
fn place(account: &Account) -> &str {
    account.id.find("locations/").map_or(account.id.as_str(), |at| &account.id[at..])
}

/// What a browser finds: places and posts.
fn site(turn: &Turn<'_>, call: &Call) -> Option<Answer> {
    let found = match (call.host.as_str(), call.segments().as_slice()) {
        ("lh3.googleusercontent.com", [_, file]) => {
            return Some(match turn.files.read(file) {
                Some(bytes) => Answer { is_page: true, ..Answer::bytes(200, "image/jpeg", bytes) },
                None => Answer::page(404, page::missing()),
            });
        }
        ("maps.google.com", _) => call
            .query("cid")
            .and_then(|cid| by_place(turn, &format!("locations/{cid}")))
            .map(|account| {
                page::account(&GoogleBusiness.identity(&account), ID, &GoogleBusiness.posts(turn, &account))
            }),
        ("local.google.com", _) => call.query("lpsid").and_then(|id| posts::find(turn, id)).and_then(|post| {
            let account = account::numbered(turn.shelf, ID, post.parent())?;
            let cards = GoogleBusiness.posts(turn, &account);
            Some(page::post(&GoogleBusiness.identity(&account), ID, &card(turn, &post), &cards))
        }),
        _ => return None,
    };
    Some(found.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
}

fn card(turn: &Turn<'_>, post: &posts::Post) -> Card {
    Card {
        id: post.id().to_owned(),
        address: format!("local.google.com/place?use=posts&lpsid={}", post.id()),
        text: post.words().to_owned(),
        at: post.created_at,
        media: post
            .files
            .iter()
            .map(|(file, mime)| Picture { files: vec![file.clone()], mime: mime.clone(), alt: String::new() })
            .collect(),
        notes: post.notes(turn),
        reply_to: None,
    }
}

fn maps(account: &Account) -> String {
    format!("https://maps.google.com/maps?cid={}", place(account).trim_start_matches("locations/"))
}

fn by_place(turn: &Turn<'_>, name: &str) -> Option<Account> {
    turn.shelf.under::<Account>(&format!("{ID}/")).find(|account| place(account) == name)
}

/// Lets a request in: a token that lives, its scope, and room in the rate window.
fn admit(turn: &mut Turn<'_>, call: &Call) -> Result<Account, Answer> {
    let token = google::find(turn, call, ID).ok_or_else(google::unauthenticated)?;
    let account = account::numbered(turn.shelf, ID, &token.user).ok_or_else(google::unauthenticated)?;
    if !token.covers(&["business.manage", "plus.business.manage"]) {
        return Err(insufficient());
    }
    let limit = turn.settings.limits.get(CALLS.name).copied().unwrap_or(CALLS.limit);
    turn.spend(CALLS, &call.host, 1).map_err(|_| exhausted(limit))?;
    Ok(account)
}

/// The location at a path, if the caller manages it.
fn managed(turn: &Turn<'_>, caller: &Account, parent: &str) -> Result<Account, Answer> {
    let account = account::numbered(turn.shelf, ID, parent).ok_or_else(missing)?;
    match login(&account.id) == login(&caller.id) {
        true => Ok(account),
        false => Err(refusal(403, "PERMISSION_DENIED", "The caller does not have permission")),
    }
}

fn insufficient() -> Answer {
    detailed(
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

fn exhausted(limit: u64) -> Answer {
    let message = format!("Quota exceeded for quota metric 'Requests' and limit 'Requests per minute' of service '{POSTS}' for consumer 'project_number:1'.");
    detailed(
        429,
        "RESOURCE_EXHAUSTED",
        &message,
        &json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "RATE_LIMIT_EXCEEDED",
            "domain": "googleapis.com",
            "metadata": { "service": POSTS, "quota_limit_value": limit.to_string() },
        }]),
    )
}

/// What is wrong with a post: code, field and words of each issue.
fn invalid(issues: &[(u32, &str, &str)]) -> Answer {
    let errors: Vec<_> = issues
        .iter()
        .map(|(code, field, message)| match *field {
            "" => json!({ "code": code, "message": message }),
            field => json!({ "code": code, "field": field, "message": message }),
        })
        .collect();
    detailed(
        400,
        "INVALID_ARGUMENT",
        "Request contains an invalid argument.",
        &json!([{ "@type": "type.googleapis.com/google.mybusiness.v4.ValidationError", "errorDetails": errors }]),
    )
}

fn missing() -> Answer {
    refusal(404, "NOT_FOUND", "Requested entity was not found.")
}

fn refusal(status: u16, word: &str, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": { "code": status, "message": message, "status": word } }))
}

fn detailed(status: u16, word: &str, message: &str, details: &Value) -> Answer {
    let error = json!({ "code": status, "message": message, "status": word, "details": details });
    Answer::json(status, &json!({ "error": error }))
}

/// A page of resources under `name`; its token is the place where it begins.
fn page_of(call: &Call, name: &str, usual: usize, most: usize, all: &[Value]) -> Result<Answer, Answer> {
    let wrong = |name: &str| refusal(400, "INVALID_ARGUMENT", &format!("Invalid value for {name}."));
    let size = match call.query("pageSize") {
        None | Some("0") => usual,
        Some(text) => text.parse::<usize>().map_err(|_| wrong("pageSize"))?.min(most),
    };
    let start = match call.query("pageToken") {
        None | Some("") => 0,
        Some(token) => token
            .strip_prefix("Ch")
            .and_then(|place| place.parse::<usize>().ok())
            .ok_or_else(|| wrong("pageToken"))?,
    };
    let items: Vec<_> = all.iter().skip(start).take(size).cloned().collect();
    // What would be empty is left out.
    let mut body = Map::new();
    if !items.is_empty() {
        body.insert(name.to_owned(), Value::Array(items));
    }
    if start + size < all.len() {
        body.insert("nextPageToken".into(), json!(format!("Ch{}", start + size)));
    }
    Ok(Answer::json(200, &Value::Object(body)))
}

/// `GET /v1/accounts`.
fn accounts(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    page_of(call, "accounts", 20, 20, &[account_of(&caller)])
}

fn one_account(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    match login(&caller.id) == format!("accounts/{id}") {
        true => Ok(Answer::json(200, &account_of(&caller))),
        false => Err(missing()),
    }
}

fn account_of(caller: &Account) -> Value {
    json!({
        "name": login(&caller.id),
        "accountName": caller.username.strip_suffix(SECOND).unwrap_or(&caller.username),
        "type": "PERSONAL",
        "verificationState": "UNVERIFIED",
        "vettedState": "NOT_VETTED",
    })
}

/// `GET /v1/accounts/{id}/locations`.
fn locations(turn: &mut Turn<'_>, call: &Call, account: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let mask = mask(call)?;
    if account != "-" && login(&caller.id) != format!("accounts/{account}") {
        return Err(refusal(403, "PERMISSION_DENIED", "The caller does not have permission"));
    }
    let first = caller.username.strip_suffix(SECOND).unwrap_or(&caller.username).to_owned();
    let mut all = Vec::new();
    for name in [first.clone(), format!("{first}{SECOND}")] {
        if let Ok(found) = account::open(turn, &GoogleBusiness, &name) {
            all.push(cut(location(&found), &mask));
        }
    }
    page_of(call, "locations", 10, 100, &all)
}

/// `GET /v1/locations/{id}`.
fn one_location(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let mask = mask(call)?;
    let found = by_place(turn, &format!("locations/{id}")).ok_or_else(missing)?;
    let found = managed(turn, &caller, &found.id)?;
    Ok(Answer::json(200, &cut(location(&found), &mask)))
}

fn voice(turn: &mut Turn<'_>, call: &Call, id: &str) -> Result<Answer, Answer> {
    let caller = admit(turn, call)?;
    let found = by_place(turn, &format!("locations/{id}")).ok_or_else(missing)?;
    let found = managed(turn, &caller, &found.id)?;
    let state = match is_verified(&found) {
        true => json!({ "hasVoiceOfMerchant": true, "hasBusinessAuthority": true }),
        false => json!({ "verify": { "hasPendingVerification": false } }),
    };
    Ok(Answer::json(200, &state))
}

/// The fields that are asked for, which has to be said.
fn mask(call: &Call) -> Result<Vec<String>, Answer> {
    let mask = call.query("readMask").unwrap_or_default();
    let fields: Vec<String> =
        mask.split(',').map(|field| field.trim().to_owned()).filter(|field| !field.is_empty()).collect();
    let known = ["name", "title", "storeCode", "storefrontAddress", "websiteUri", "metadata", "languageCode"];
    let is_known = |field: &String| known.contains(&field.split('.').next().unwrap_or_default());
    if fields.is_empty() || !fields.iter().all(is_known) {
        return Err(detailed(
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

fn cut(resource: Value, mask: &[String]) -> Value {
    let Value::Object(members) = resource else { return resource };
    let is_asked = |name: &str| mask.iter().any(|field| field.split('.').next() == Some(name));
    Value::Object(members.into_iter().filter(|(name, _)| is_asked(name)).collect())
}

fn is_verified(account: &Account) -> bool {
    !account.username.starts_with("unverified")
}

fn location(account: &Account) -> Value {
    let number = place(account).trim_start_matches("locations/");
    json!({
        "name": place(account),
        "title": account.username,
        "storeCode": format!("store-{}", &number[number.len() - 4..]),
        "languageCode": "en",
        "storefrontAddress": {
            "regionCode": "US",
            "postalCode": "94043",
            "administrativeArea": "CA",
            "locality": "Mountain View",
            "addressLines": ["1 Sandbox Way"],
        },
        "websiteUri": "https://example.com/",
        "metadata": {
            "placeId": format!("ChIJ{number}"),
            "mapsUri": maps(account),
            "newReviewUri": format!("https://search.google.com/local/writereview?placeid=ChIJ{number}"),
            "hasVoiceOfMerchant": is_verified(account),
        },
    })
}
