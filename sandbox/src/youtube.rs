//! YouTube: Data API v3 and Analytics API v2, as their discovery documents (20261104, 20240707) and
//! <https://developers.google.com/youtube/v3> say.
//!
//! One channel per login. A video is processed for a while after its last byte; its thumbnail and its
//! places in playlists can be given meanwhile. The quota is a project's, so all accounts share it.

mod comments;
mod playlists;
mod videos;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    google,
    host::{Card, Grants, Host, Picture},
    page,
    shelf::Record,
    window::Rule,
};
use crate::Identity;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The platform's identifier.
const ID: &str = "youtube";

const DAY: i64 = 86_400;

/// The project's units of a day, for everything but uploads and searches.
const UNITS: Rule = Rule { name: "youtube.units", limit: 10_000, seconds: DAY };

/// What a connected account granted.
const SCOPES: [&str; 2] = [
    "https://www.googleapis.com/auth/youtube.force-ssl",
    "https://www.googleapis.com/auth/yt-analytics.readonly",
];

/// Scopes that read, by their short names.
const READ: &[&str] = &["youtube.readonly", "youtube", "youtube.force-ssl"];
/// Scopes that manage an account.
const MANAGE: &[&str] = &["youtube", "youtube.force-ssl"];
/// Scopes that upload.
const UPLOAD: &[&str] = &["youtube.upload", "youtube", "youtube.force-ssl"];
/// The only scope for comments.
const TALK: &[&str] = &["youtube.force-ssl"];

/// YouTube.
pub(super) struct YouTube;

impl Host for YouTube {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "accounts.google.com" | "oauth2.googleapis.com" | "youtube.googleapis.com"
            | "youtubeanalytics.googleapis.com" | "www.youtube.com" | "youtube.com" | "m.youtube.com"
            | "youtu.be" | "i.ytimg.com" | "yt3.ggpht.com" => true,
            "www.googleapis.com" => path.contains("/youtube/") || path.starts_with("/oauth2/"),
            "" => path.contains("/upload/youtube/"),
            _ => false,
        }
    }

    fn meant(&self, turn: &Turn<'_>, call: &Call) -> Option<&'static dyn Host> {
        google::is_login(call).then(|| google::platform(turn, call)).flatten().and_then(|id| super::find(&id))
    }

    fn intake(&self, call: &Call) -> Intake {
        if google::is_login(call) {
            return google::intake(call);
        }
        let is_upload = call.path.contains("/upload/youtube/");
        let is_related = call.mime() == Some("multipart/related");
        match call.query("uploadType") {
            Some("resumable") if call.method == Method::PUT => Intake::Bytes,
            // A session is begun with a description; all else that is uploaded is bytes.
            Some("media") => Intake::Bytes,
            None if is_upload && !is_related => Intake::Bytes,
            _ if is_related => Intake::Whole(64 << 20),
            _ => Intake::Whole(1 << 20),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        google::account(turn, call, ID).or_else(|| {
            // The address of an upload is all that it takes.
            let channel = videos::uploader(turn, call.query("upload_id")?)?;
            account::numbered(turn.shelf, ID, &channel).map(|account| account.username)
        })
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        if google::is_login(call) {
            return google::answer(turn, call, self);
        }
        if let Some(answer) = site(turn, call) {
            return answer;
        }
        let segments = call.segments();
        let path: &[&str] = match segments.as_slice() {
            ["resumable", rest @ ..] => rest,
            all => all,
        };
        let answer = match (call.method.as_str(), path) {
            _ if call.is_too_large => Err(refusal(413, "uploadTooLarge", "The request is too large.")),
            ("POST", ["upload", "youtube", "v3", "videos"]) => videos::insert(turn, call),
            ("PUT", ["upload", "youtube", "v3", "videos"]) => videos::resume(turn, call),
            ("POST", ["upload", "youtube", "v3", "thumbnails", "set"]) => videos::thumbnail(turn, call),
            ("GET", ["youtube", "v3", "videos"]) => videos::list(turn, call),
            ("PUT", ["youtube", "v3", "videos"]) => videos::update(turn, call),
            ("DELETE", ["youtube", "v3", "videos"]) => videos::delete(turn, call),
            ("GET", ["youtube", "v3", "videoCategories"]) => videos::categories(turn, call),
            ("GET", ["youtube", "v3", "channels"]) => channels(turn, call),
            ("GET", ["youtube", "v3", "playlists"]) => playlists::list(turn, call),
            ("POST", ["youtube", "v3", "playlists"]) => playlists::insert(turn, call),
            ("GET", ["youtube", "v3", "playlistItems"]) => playlists::items(turn, call),
            ("POST", ["youtube", "v3", "playlistItems"]) => playlists::add(turn, call),
            ("DELETE", ["youtube", "v3", "playlistItems"]) => playlists::remove(turn, call),
            ("GET", ["youtube", "v3", "commentThreads"]) => comments::threads(turn, call),
            ("POST", ["youtube", "v3", "commentThreads"]) => comments::begin(turn, call),
            ("GET", ["youtube", "v3", "comments"]) => comments::list(turn, call),
            ("POST", ["youtube", "v3", "comments"]) => comments::reply(turn, call),
            ("DELETE", ["youtube", "v3", "comments"]) => comments::delete(turn, call),
            ("GET", ["v2", "reports"]) => videos::report(turn, call),
            _ => Err(refusal(404, "notFound", "The requested URL was not found on this server.")),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => refusal(400, "invalidVideoMetadata", "The request metadata is invalid."),
            401 => google::unauthenticated(),
            403 => refusal(403, "forbidden", "The request might not be properly authorized."),
            // Nothing is promised about the header; it comes all the same, so that nobody waits long.
            429 => refusal(429, "rateLimitExceeded", "Rate Limit Exceeded").with("retry-after", 2),
            503 => refusal(503, "backendError", "Backend Error"),
            _ => refusal(500, "internalError", "Internal error encountered."),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let is_name = (3..=30).contains(&wish.len())
            && wish.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        is_name.then(|| wish.to_owned()).ok_or_else(|| {
            format!("`{wish}` is no handle on YouTube: 3 to 30 letters, digits, dots, hyphens and underscores")
        })
    }

    fn number(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        format!("UC{}", BASE64_URL_SAFE_NO_PAD.encode(&digest[..16]))
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity("channel", Some(avatar(account)), format!("https://www.youtube.com/@{}", account.username))
    }

    fn grants(&self) -> &dyn Grants {
        &google::Google { granted: &SCOPES }
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        let mut cards = Vec::new();
        for video in videos::by(turn, &account.id).rev() {
            cards.extend(comments::under(turn, &video.id).map(|comment| comment.card()));
            cards.push(card(turn, &video));
        }
        // A comment below somebody else's video is a post of its author as well.
        let own: Vec<_> = cards.iter().map(|card| card.id.clone()).collect();
        cards.extend(
            comments::by(turn, &account.id)
                .filter(|comment| !own.contains(&comment.id))
                .map(|comment| comment.card()),
        );
        cards.sort_by_key(|card| std::cmp::Reverse(card.at));
        cards
    }
}

/// What a browser finds: channels, videos, pictures.
fn site(turn: &Turn<'_>, call: &Call) -> Option<Answer> {
    let segments = call.segments();
    let id = match (call.host.as_str(), segments.as_slice()) {
        ("i.ytimg.com" | "yt3.ggpht.com", _) => {
            let video = segments.get(1).and_then(|id| videos::get(turn, id));
            let picture = video.and_then(|video| turn.files.read(&video.thumbnail?));
            return Some(match picture {
                Some(bytes) => Answer { is_page: true, ..Answer::bytes(200, "image/jpeg", bytes) },
                None => Answer::page(404, page::missing()),
            });
        }
        ("youtu.be", [id]) => Some((*id).to_owned()),
        ("www.youtube.com" | "youtube.com" | "m.youtube.com", path) => match path {
            ["watch"] => call.query("v").map(str::to_owned),
            ["shorts" | "embed" | "live", id] => Some((*id).to_owned()),
            ["channel", id] => return Some(channel_page(turn, account::numbered(turn.shelf, ID, id))),
            [handle] => {
                let named = account::named(turn.shelf, ID, handle.trim_start_matches('@'));
                return Some(channel_page(turn, named));
            }
            _ => None,
        },
        _ => return None,
    };
    let shown = id.and_then(|id| videos::get(turn, &id)).and_then(|video| {
        let owner = account::numbered(turn.shelf, ID, &video.channel)?;
        let cards = YouTube.posts(turn, &owner);
        Some(page::post(&YouTube.identity(&owner), ID, &card(turn, &video), &cards))
    });
    Some(shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html)))
}

fn channel_page(turn: &Turn<'_>, account: Option<Account>) -> Answer {
    let shown =
        account.map(|account| page::account(&YouTube.identity(&account), ID, &YouTube.posts(turn, &account)));
    shown.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

fn card(turn: &Turn<'_>, video: &videos::Video) -> Card {
    let mut notes = vec![format!("Title: {}", video.title()), format!("Visible: {}", video.privacy())];
    notes.extend(video.notes());
    notes.extend(playlists::holding(turn, &video.id).map(|title| format!("In the playlist {title}")));
    let mut media =
        vec![Picture { files: video.files.clone(), mime: video.mime.clone(), alt: video.title().to_owned() }];
    media.extend(video.thumbnail.iter().map(|file| Picture {
        files: vec![file.clone()],
        mime: "image/jpeg".into(),
        alt: "Thumbnail".into(),
    }));
    Card {
        id: video.id.clone(),
        address: format!("www.youtube.com/watch?v={}", video.id),
        text: video.description().to_owned(),
        at: video.uploaded_at,
        media,
        notes,
        reply_to: None,
    }
}

fn avatar(account: &Account) -> String {
    format!("https://yt3.ggpht.com/{}=s800", account.id)
}

/// Lets a request in: a token that lives, one of the scopes, and units of the day's quota.
fn admit(turn: &mut Turn<'_>, call: &Call, scopes: &[&str], units: u64) -> Result<Account, Answer> {
    let token = google::find(turn, call, ID).ok_or_else(google::unauthenticated)?;
    let account = account::numbered(turn.shelf, ID, &token.user).ok_or_else(google::unauthenticated)?;
    if !token.covers(scopes) {
        return Err(insufficient());
    }
    spend(turn, UNITS, "project", units)?;
    Ok(account)
}

/// Takes of the project's quota.
fn spend(turn: &mut Turn<'_>, rule: Rule, who: &str, cost: u64) -> Result<(), Answer> {
    let message = "The request cannot be completed because you have exceeded your <a href=\"/youtube/v3/getting-started#quota\">quota</a>.";
    match turn.spend(rule, who, cost) {
        Ok(_) => Ok(()),
        Err(_) => Err(error(403, "youtube.quota", "quotaExceeded", message)),
    }
}

fn insufficient() -> Answer {
    let message = "Request had insufficient authentication scopes.";
    Answer::json(
        403,
        &json!({ "error": {
            "code": 403,
            "message": message,
            "errors": [{
                "message": "Insufficient Permission",
                "domain": "global",
                "reason": "insufficientPermissions",
            }],
            "status": "PERMISSION_DENIED",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
                "domain": "googleapis.com",
                "metadata": { "service": "youtube.googleapis.com" },
            }],
        } }),
    )
    .with("www-authenticate", "Bearer realm=\"https://accounts.google.com/\", error=\"insufficient_scope\"")
}

/// A refusal in the API's shape.
fn refusal(status: u16, reason: &str, message: &str) -> Answer {
    error(status, "youtube.api", reason, message)
}

fn error(status: u16, domain: &str, reason: &str, message: &str) -> Answer {
    let inner = json!({ "message": message, "domain": domain, "reason": reason });
    Answer::json(status, &json!({ "error": { "code": status, "message": message, "errors": [inner] } }))
}

/// The parts that are asked for; a parameter that is required everywhere.
fn parts(call: &Call, known: &[&str]) -> Result<Vec<String>, Answer> {
    let parts: Vec<String> = call
        .all("part")
        .flat_map(|value| value.split(','))
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        return Err(error(400, "global", "required", "Required parameter: part"));
    }
    match parts.iter().find(|part| !known.contains(&part.as_str())) {
        Some(part) => Err(error(400, "youtube.part", "unknownPart", &format!("'{part}'"))),
        None => Ok(parts),
    }
}

/// A resource cut down to its parts.
fn cut(resource: Value, parts: &[String]) -> Value {
    let Value::Object(members) = resource else { return resource };
    let is_kept = |name: &str| ["kind", "etag", "id"].contains(&name) || parts.iter().any(|part| part == name);
    Value::Object(members.into_iter().filter(|(name, _)| is_kept(name)).collect::<Map<_, _>>())
}

/// The ids of a parameter that may be repeated or hold several.
fn ids(call: &Call, name: &str) -> Vec<String> {
    let values = call.all(name).flat_map(|value| value.split(','));
    values.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect()
}

/// One page of resources; a page's token is the place where it begins.
fn listing(call: &Call, kind: &str, most: usize, all: &[Value]) -> Result<Answer, Answer> {
    let wrong = |name: &str| error(400, "global", "invalidParameter", &format!("Invalid value for {name}"));
    let size = match call.query("maxResults") {
        None => most.min(5),
        Some(text) => text.parse::<usize>().ok().filter(|size| *size <= most).ok_or_else(|| wrong("maxResults"))?,
    };
    let start = match call.query("pageToken") {
        None => 0,
        Some(token) => {
            let place = token.strip_prefix("CAUQ").and_then(|place| place.parse::<usize>().ok());
            place.ok_or_else(|| refusal(400, "invalidPageToken", "The page token is not valid."))?
        }
    };
    let items: Vec<_> = all.iter().skip(start).take(size).cloned().collect();
    let mut body = json!({
        "kind": kind,
        "etag": etag(&json!(items)),
        "pageInfo": { "totalResults": all.len(), "resultsPerPage": size },
    });
    if size > 0 && start + size < all.len() {
        body["nextPageToken"] = json!(format!("CAUQ{}", start + size));
    }
    body["items"] = Value::Array(items);
    Ok(Answer::json(200, &body))
}

fn etag(value: &Value) -> String {
    use sha2::{Digest, Sha256};
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(value.to_string())[..20])
}

/// A body that has to be JSON.
fn body(call: &Call) -> Result<Value, Answer> {
    call.json().map_err(|error| self::error(400, "global", "parseError", &format!("Parse Error: {error}")))
}

fn channels(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, READ, 1)?;
    let parts =
        parts(call, &["id", "snippet", "contentDetails", "statistics", "status", "brandingSettings"])?;
    let filters: Vec<_> =
        ["id", "mine", "forHandle", "forUsername"].iter().filter(|name| call.query(name).is_some()).collect();
    let found: Vec<Account> = match filters.as_slice() {
        [name] => match **name {
            "mine" => vec![caller],
            "id" => ids(call, "id").iter().filter_map(|id| account::numbered(turn.shelf, ID, id)).collect(),
            _ => {
                let handle = call.query(name).unwrap_or_default().trim_start_matches('@');
                account::named(turn.shelf, ID, handle).into_iter().collect()
            }
        },
        [] => return Err(refusal(400, "missingRequiredParameter", "No filter selected. Expected one of: forHandle, id, mine")),
        _ => return Err(refusal(400, "invalidCriteria", "A maximum of one of the following filters may be specified: forHandle, id, mine")),
    };
    let resources: Vec<_> = found.iter().map(|account| cut(channel(turn, account), &parts)).collect();
    let mut answer = json!({
        "kind": "youtube#channelListResponse",
        "etag": etag(&json!(resources)),
        "pageInfo": { "totalResults": resources.len(), "resultsPerPage": 5 },
    });
    // Without a channel there is no list.
    if !resources.is_empty() {
        answer["items"] = json!(resources);
    }
    Ok(Answer::json(200, &answer))
}

fn channel(turn: &Turn<'_>, account: &Account) -> Value {
    let picture = |size: u32| json!({ "url": avatar(account), "width": size, "height": size });
    json!({
        "kind": "youtube#channel",
        "etag": etag(&json!(account.id)),
        "id": account.id,
        "snippet": {
            "title": account.username,
            "description": "",
            "customUrl": format!("@{}", account.username),
            "publishedAt": time(account.created_at),
            "thumbnails": { "default": picture(88), "medium": picture(240), "high": picture(800) },
            "localized": { "title": account.username, "description": "" },
        },
        "contentDetails": { "relatedPlaylists": { "likes": "LL", "uploads": playlists::uploads(&account.id) } },
        "statistics": {
            "viewCount": "0",
            "subscriberCount": "0",
            "hiddenSubscriberCount": false,
            "videoCount": videos::by(turn, &account.id).count().to_string(),
        },
        "status": {
            "privacyStatus": "public",
            "isLinked": true,
            "longUploadsStatus": "allowed",
            "madeForKids": false,
        },
    })
}

/// The next number: things that come into being are listed in its order.
fn next(turn: &mut Turn<'_>) -> u64 {
    let number = turn.shelf.get::<Last>("").map_or(0, |last| last.number) + 1;
    turn.shelf.put(&Last { number });
    number
}

/// The last number that was given.
#[derive(Serialize, Deserialize)]
struct Last {
    number: u64,
}

impl Record for Last {
    const SHELF: &'static str = "youtube.last";

    fn key(&self) -> String {
        String::new()
    }
}

/// The way from what things hang on to the things, in the order in which they came.
#[derive(Serialize, Deserialize)]
struct Tie {
    kind: String,
    of: String,
    number: u64,
    id: String,
}

impl Record for Tie {
    const SHELF: &'static str = "youtube.tie";

    fn key(&self) -> String {
        format!("{}/{}/{:020}", self.kind, self.of, self.number)
    }
}

fn tie(turn: &mut Turn<'_>, kind: &str, of: &str, id: &str) {
    let number = next(turn);
    turn.shelf.put(&Tie { kind: kind.into(), of: of.into(), number, id: id.into() });
}

fn tied<'a>(
    turn: &'a Turn<'_>,
    kind: &str,
    of: &str,
) -> impl DoubleEndedIterator<Item = String> + use<'a> {
    turn.shelf.under::<Tie>(&format!("{kind}/{of}/")).map(|tie| tie.id)
}

fn untie(turn: &mut Turn<'_>, kind: &str, of: &str, id: &str) {
    let keys: Vec<_> = turn
        .shelf
        .under::<Tie>(&format!("{kind}/{of}/"))
        .filter(|tie| tie.id == id)
        .map(|tie| tie.key())
        .collect();
    for key in keys {
        turn.shelf.remove::<Tie>(&key);
    }
}

/// Timestamps as the API writes them.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
