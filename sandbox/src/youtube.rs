//! YouTube: Data API v3 and Analytics API v2, as their discovery documents (20261104, 20240707) and
//! <https://developers.google.com/youtube/v3> say.
//!
//! One channel per login. A video is processed for a while after its last byte; its thumbnail and playlists
//! can be set meanwhile. The quota belongs to the project, so all accounts share it. A new app is served as an
//! approved one: the audit of a project is about more quota. A channel whose name begins with `locked` makes every
//! upload private, one that begins with `unverified` takes no thumbnails and no videos of more than 15 minutes, which one
//! that begins with `restricted` can't get either, and one that begins with `denied` has no reports.

mod captions;
mod comments;
mod playlists;
mod related;
mod video;
mod videos;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    google, page,
    rate_limit::RateLimit,
    routes::routes,
    simulator::{Grants, MediaView, PostView, Simulator},
    store::Record,
};
use crate::Identity;
use crate::exchange::Cause::{self, Protocol, State};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use poem::http::Method;
use serde_json::{Map, Value, json};

/// The platform's identifier.
const ID: &str = "youtube";

const DAY: i64 = 86_400;

/// Units of the project per day for all calls except uploads, searches and `videos.batchGetStats`.
const UNITS: RateLimit = RateLimit::new("youtube.units", 10_000, DAY);
/// Units of the project per day for `videos.batchGetStats`: <https://developers.google.com/youtube/v3/revision_history>.
const STATS: RateLimit = RateLimit::new("youtube.stats", 10_000, DAY);

/// Scopes of a connected account.
const SCOPES: [&str; 2] = [
    "https://www.googleapis.com/auth/youtube.force-ssl",
    "https://www.googleapis.com/auth/yt-analytics.readonly",
];

/// Scopes for reading, by their short names.
const READ: &[&str] = &["youtube.readonly", "youtube", "youtube.force-ssl"];
/// Scopes for managing an account.
const MANAGE: &[&str] = &["youtube", "youtube.force-ssl"];
/// Scopes for uploads.
const UPLOAD: &[&str] = &["youtube.upload", "youtube", "youtube.force-ssl"];
/// The only scope for comments and captions.
const COMMENT: &[&str] = &["youtube.force-ssl"];

pub(super) struct YouTube;

impl Simulator for YouTube {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        match host {
            "accounts.google.com"
            | "oauth2.googleapis.com"
            | "youtube.googleapis.com"
            | "youtubeanalytics.googleapis.com"
            | "www.youtube.com"
            | "youtube.com"
            | "m.youtube.com"
            | "youtu.be"
            | "i.ytimg.com"
            | "yt3.ggpht.com" => true,
            "www.googleapis.com" => path.contains("/youtube/") || path.starts_with("/oauth2/"),
            "" => path.contains("/upload/youtube/"),
            _ => false,
        }
    }

    fn resolve_platform(&self, tx: &Transaction, request: &Request) -> Option<&'static dyn Simulator> {
        google::is_login(request)
            .then(|| google::platform(tx, request))
            .flatten()
            .and_then(|id| super::find(&id))
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        if google::is_login(request) {
            return google::body_mode(request);
        }
        let is_upload = request.path.contains("/upload/youtube/");
        let is_related = request.mime() == Some("multipart/related");
        match request.query("uploadType") {
            Some("resumable") if request.method == Method::PUT => BodyMode::Upload,
            // A session begins with a JSON description; all other uploads are bytes.
            Some("media") => BodyMode::Upload,
            None if is_upload && !is_related => BodyMode::Upload,
            _ if is_related => BodyMode::Buffered(64 << 20),
            _ => BodyMode::Buffered(1 << 20),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        google::account(tx, request, ID).or_else(|| {
            // The address of an upload is its credential.
            let channel = videos::uploader(tx, request.query("upload_id")?)?;
            account::by_id(tx.store, ID, &channel).map(|account| account.username)
        })
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        if google::is_login(request) {
            return google::respond(tx, request, self);
        }
        if let Some(response) = site(tx, request) {
            return response;
        }
        let segments = request.segments();
        let path: &[&str] = match segments.as_slice() {
            ["resumable", rest @ ..] => rest,
            all => all,
        };
        api(tx, request, path).unwrap_or_else(|refusal| refusal)
    }

    fn refuse(&self, _tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => refusal(State, 400, "invalidVideoMetadata", "The request metadata is invalid."),
            401 => google::unauthenticated(),
            403 => refusal(State, 403, "forbidden", "The request might not be properly authorized."),
            // The header is not documented; it is sent so that clients retry soon.
            429 => refusal(State, 429, "rateLimitExceeded", "Rate Limit Exceeded").with("retry-after", 2),
            503 => refusal(State, 503, "backendError", "Backend Error"),
            _ => refusal(State, 500, "internalError", "Internal error encountered."),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let rule = "handle on YouTube: 3 to 30 letters, digits, dots, hyphens and underscores";
        account::check_username(username, 3..=30, b"._-", rule).map(str::to_owned)
    }

    fn account_id(&self, username: &str) -> String {
        let digest = account::digest(ID, username);
        format!("UC{}", BASE64_URL_SAFE_NO_PAD.encode(&digest[..16]))
    }

    fn identity(&self, account: &Account) -> Identity {
        account.identity(
            "channel",
            Some(avatar(account)),
            format!("https://www.youtube.com/@{}", account.username),
        )
    }

    fn grants(&self) -> &dyn Grants {
        &google::Google { granted: &SCOPES }
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        let mut views = Vec::new();
        for video in video::by(tx, &account.id).rev() {
            views.extend(comments::under(tx, &video.id).map(|comment| comment.post_view()));
            views.push(post_view(tx, &video));
        }
        // A comment on another account's video is a post of its author.
        let own: Vec<_> = views.iter().map(|card| card.id.clone()).collect();
        views.extend(
            comments::by(tx, &account.id)
                .filter(|comment| !own.contains(&comment.id))
                .map(|comment| comment.post_view()),
        );
        views.sort_by_key(|card| std::cmp::Reverse(card.at));
        views
    }
}

/// Routes a request. Each row names the scopes, one of which is enough, and the units of the daily quota.
fn api(tx: &mut Transaction, request: &Request, path: &[&str]) -> Outcome {
    match (request.method.as_str(), path) {
        _ if request.is_too_large => {
            return Err(refusal(Protocol, 413, "uploadTooLarge", "The request is too large."));
        }
        // Uploads, figures and reports have quotas of their own.
        ("POST", ["upload", "youtube", "v3", "videos"]) => return videos::insert(tx, request),
        ("PUT", ["upload", "youtube", "v3", "videos"]) => return videos::resume(tx, request),
        ("GET", ["youtube", "v3", "videos:batchGetStats"]) => return videos::stats(tx, request),
        ("GET", ["v2", "reports"]) => return videos::report(tx, request),
        _ => {}
    }
    let missing = || Err(refusal(State, 404, "notFound", "The requested URL was not found on this server."));
    routes! { tx, request, path, admit, missing();
        "POST"   ["upload", "youtube", "v3", "thumbnails", "set"] => (UPLOAD, 50)  videos::thumbnail();
        "POST"   ["upload", "youtube", "v3", "captions"]          => (COMMENT, 400) captions::insert();
        "GET"    ["youtube", "v3", "captions"]                    => (COMMENT, 50) captions::list();
        "GET"    ["youtube", "v3", "videos"]                      => (READ, 1)     videos::list();
        "PUT"    ["youtube", "v3", "videos"]                      => (MANAGE, 50)  videos::update();
        "DELETE" ["youtube", "v3", "videos"]                      => (MANAGE, 50)  videos::delete();
        "GET"    ["youtube", "v3", "videoCategories"]             => (READ, 1)     videos::categories();
        "GET"    ["youtube", "v3", "channels"]                    => (READ, 1)     channels();
        "GET"    ["youtube", "v3", "playlists"]                   => (READ, 1)     playlists::list();
        "POST"   ["youtube", "v3", "playlists"]                   => (MANAGE, 50)  playlists::insert();
        "GET"    ["youtube", "v3", "playlistItems"]               => (READ, 1)     playlists::items();
        "POST"   ["youtube", "v3", "playlistItems"]               => (MANAGE, 50)  playlists::add();
        "DELETE" ["youtube", "v3", "playlistItems"]               => (MANAGE, 50)  playlists::remove();
        "GET"    ["youtube", "v3", "commentThreads"]              => (COMMENT, 1)  comments::threads();
        "POST"   ["youtube", "v3", "commentThreads"]              => (COMMENT, 50) comments::begin();
        "GET"    ["youtube", "v3", "comments"]                    => (COMMENT, 1)  comments::list();
        "POST"   ["youtube", "v3", "comments"]                    => (COMMENT, 50) comments::reply();
        "PUT"    ["youtube", "v3", "comments"]                    => (COMMENT, 50) comments::update();
        "DELETE" ["youtube", "v3", "comments"]                    => (COMMENT, 50) comments::delete();
    }
}

/// Pages for browsers: channels, videos, images.
fn site(tx: &Transaction, request: &Request) -> Option<Response> {
    let segments = request.segments();
    let id = match (request.host.as_str(), segments.as_slice()) {
        ("i.ytimg.com" | "yt3.ggpht.com", _) => {
            let video = segments.get(1).and_then(|id| video::get(tx, id));
            let picture = video.and_then(|video| tx.files.read(&video.thumbnail?));
            return Some(match picture {
                Some(bytes) => Response { is_page: true, ..Response::bytes(200, "image/jpeg", bytes) },
                None => page::serve(None),
            });
        }
        ("youtu.be", [id]) => Some((*id).to_owned()),
        ("www.youtube.com" | "youtube.com" | "m.youtube.com", path) => match path {
            ["watch"] => request.query("v").map(str::to_owned),
            ["shorts" | "embed" | "live", id] => Some((*id).to_owned()),
            ["channel", id] => return Some(channel_page(tx, account::by_id(tx.store, ID, id))),
            [handle] => {
                let named = account::by_username(tx.store, ID, handle.trim_start_matches('@'));
                return Some(channel_page(tx, named));
            }
            _ => None,
        },
        _ => return None,
    };
    let shown = id.and_then(|id| video::get(tx, &id)).and_then(|video| {
        let owner = account::by_id(tx.store, ID, &video.channel)?;
        Some(page::post(tx, &YouTube, &owner, &post_view(tx, &video)))
    });
    Some(page::serve(shown))
}

fn channel_page(tx: &Transaction, account: Option<Account>) -> Response {
    let shown = account.map(|account| page::account(tx, &YouTube, &account));
    page::serve(shown)
}

fn post_view(tx: &Transaction, video: &video::Video) -> PostView {
    let mut notes = vec![format!("Title: {}", video.title()), format!("Visible: {}", video.privacy())];
    notes.extend(video.notes());
    notes.extend(playlists::containing(tx, &video.id).map(|title| format!("In the playlist {title}")));
    notes.extend(captions::of(tx, &video.id).filter(captions::Track::is_shown).map(|track| track.note()));
    let mut media = vec![MediaView {
        files: video.files.clone(),
        mime: video.mime.clone(),
        alt: video.title().to_owned(),
    }];
    media.extend(video.thumbnail.iter().map(|file| MediaView {
        files: vec![file.clone()],
        mime: "image/jpeg".into(),
        alt: "Thumbnail".into(),
    }));
    PostView {
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

/// Admits a request: checks its token, for one of the scopes, and spends units of the day's quota.
fn admit(tx: &mut Transaction, request: &Request, scopes: &[&str], units: u64) -> Result<Account, Response> {
    admit_to(tx, request, scopes, (UNITS, units))
}

/// Admits a request that spends units of this quota.
fn admit_to(
    tx: &mut Transaction,
    request: &Request,
    scopes: &[&str],
    (quota, units): (RateLimit, u64),
) -> Result<Account, Response> {
    let token = google::find(tx, request, ID).ok_or_else(google::unauthenticated)?;
    let account = account::by_id(tx.store, ID, &token.user).ok_or_else(google::unauthenticated)?;
    if !token.has_any_scope(scopes) {
        return Err(insufficient());
    }
    spend(tx, quota, "project", units)?;
    Ok(account)
}

/// Spends one of the project's uploads of the day, which are counted by Google's newer service of quotas.
fn spend_insert(tx: &mut Transaction, rule: RateLimit) -> Result<(), Response> {
    let limit = tx.settings.limits.get(rule.name).copied().unwrap_or(rule.limit);
    if tx.spend(rule, "project", 1).is_ok() {
        return Ok(());
    }
    let message = "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:1'.";
    Err(Response::json(
        429,
        &json!({ "error": {
            "code": 429,
            "message": message,
            "errors": [{ "message": message, "domain": "global", "reason": "rateLimitExceeded" }],
            "status": "RESOURCE_EXHAUSTED",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": {
                    "service": "youtube.googleapis.com",
                    "consumer": "projects/1",
                    // A limit of zero is said of a project without access; a test may lower this one to zero.
                    "quota_limit_value": limit.max(1).to_string(),
                },
            }],
        } }),
    )
    .because(State))
}

/// Spends units of the project's quota.
fn spend(tx: &mut Transaction, rule: RateLimit, who: &str, cost: u64) -> Result<(), Response> {
    let message = "The request cannot be completed because you have exceeded your <a href=\"/youtube/v3/getting-started#quota\">quota</a>.";
    match tx.spend(rule, who, cost) {
        Ok(_) => Ok(()),
        Err(_) => Err(error(State, 403, "youtube.quota", "quotaExceeded", message)),
    }
}

fn insufficient() -> Response {
    let message = "Request had insufficient authentication scopes.";
    Response::json(
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
    .because(State)
    .with("www-authenticate", "Bearer realm=\"https://accounts.google.com/\", error=\"insufficient_scope\"")
}

/// Creates a refusal.
fn refusal(cause: Cause, status: u16, reason: &str, message: &str) -> Response {
    error(cause, status, "youtube.api", reason, message)
}

fn error(cause: Cause, status: u16, domain: &str, reason: &str, message: &str) -> Response {
    let inner = json!({ "message": message, "domain": domain, "reason": reason });
    Response::json(status, &json!({ "error": { "code": status, "message": message, "errors": [inner] } }))
        .because(cause)
}

/// Returns the requested parts, which are required.
fn parts(request: &Request, known: &[&str]) -> Result<Vec<String>, Response> {
    let parts: Vec<String> = request
        .query_all("part")
        .flat_map(|value| value.split(','))
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        return Err(error(Protocol, 400, "global", "required", "Required parameter: part"));
    }
    match parts.iter().find(|part| !known.contains(&part.as_str())) {
        Some(part) => Err(error(Protocol, 400, "youtube.part", "unknownPart", &format!("'{part}'"))),
        None => Ok(parts),
    }
}

/// Selects the requested parts of a resource.
fn select_parts(resource: Value, parts: &[String]) -> Value {
    let Value::Object(members) = resource else { return resource };
    let is_kept =
        |name: &str| ["kind", "etag", "id"].contains(&name) || parts.iter().any(|part| part == name);
    Value::Object(members.into_iter().filter(|(name, _)| is_kept(name)).collect::<Map<_, _>>())
}

/// Returns the ids of a parameter, which may be repeated or have several values.
fn ids(request: &Request, name: &str) -> Vec<String> {
    let values = request.query_all(name).flat_map(|value| value.split(','));
    values.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect()
}

/// Returns one page of resources; a page token is the index of its first item.
fn listing(request: &Request, kind: &str, max: usize, all: &[Value]) -> Outcome {
    let wrong =
        |name: &str| error(Protocol, 400, "global", "invalidParameter", &format!("Invalid value for {name}"));
    let size = match request.query("maxResults") {
        None => max.min(5),
        Some(text) => {
            text.parse::<usize>().ok().filter(|size| *size <= max).ok_or_else(|| wrong("maxResults"))?
        }
    };
    let start = match request.query("pageToken") {
        None => 0,
        Some(token) => {
            let place = token.strip_prefix("CAUQ").and_then(|place| place.parse::<usize>().ok());
            place.ok_or_else(|| refusal(State, 400, "invalidPageToken", "The page token is not valid."))?
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
    Ok(Response::json(200, &body))
}

fn etag(value: &Value) -> String {
    use sha2::{Digest, Sha256};
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(value.to_string())[..20])
}

/// Returns the body, which has to be JSON.
fn body(request: &Request) -> Result<Value, Response> {
    request
        .json()
        .map_err(|error| self::error(Protocol, 400, "global", "parseError", &format!("Parse Error: {error}")))
}

fn channels(tx: &mut Transaction, request: &Request, caller: &Account) -> Outcome {
    let parts =
        parts(request, &["id", "snippet", "contentDetails", "statistics", "status", "brandingSettings"])?;
    let filters: Vec<_> = ["id", "mine", "forHandle", "forUsername"]
        .iter()
        .filter(|name| request.query(name).is_some())
        .collect();
    let found: Vec<Account> = match filters.as_slice() {
        [name] => match **name {
            "mine" => vec![caller.clone()],
            "id" => ids(request, "id").iter().filter_map(|id| account::by_id(tx.store, ID, id)).collect(),
            _ => {
                let handle = request.query(name).unwrap_or_default().trim_start_matches('@');
                account::by_username(tx.store, ID, handle).into_iter().collect()
            }
        },
        [] => {
            return Err(refusal(
                Protocol,
                400,
                "missingRequiredParameter",
                "No filter selected. Expected one of: forHandle, id, mine",
            ));
        }
        _ => {
            return Err(refusal(
                Protocol,
                400,
                "invalidCriteria",
                "A maximum of one of the following filters may be specified: forHandle, id, mine",
            ));
        }
    };
    let shown = |account| select_parts(channel(tx, account, caller), &parts);
    let resources: Vec<_> = found.iter().map(shown).collect();
    let mut response = json!({
        "kind": "youtube#channelListResponse",
        "etag": etag(&json!(resources)),
        "pageInfo": { "totalResults": resources.len(), "resultsPerPage": 5 },
    });
    // Without a channel the list is left out.
    if !resources.is_empty() {
        response["items"] = json!(resources);
    }
    Ok(Response::json(200, &response))
}

/// Returns whether a channel may upload videos of more than 15 minutes:
/// <https://developers.google.com/youtube/v3/docs/channels#status.longUploadsStatus>.
fn long_uploads(account: &Account) -> &'static str {
    match account.username.as_str() {
        name if name.starts_with("unverified") => "eligible",
        name if name.starts_with("restricted") => "disallowed",
        _ => "allowed",
    }
}

/// Returns a channel as `caller` sees it.
fn channel(tx: &Transaction, account: &Account, caller: &Account) -> Value {
    let picture = |size: u32| json!({ "url": avatar(account), "width": size, "height": size });
    let mut resource = json!({
        "kind": "youtube#channel",
        "etag": etag(&json!(account.id)),
        "id": account.id,
        "snippet": {
            "title": account.display_name(),
            "description": "",
            "customUrl": format!("@{}", account.username),
            "publishedAt": time(account.created_at),
            "thumbnails": { "default": picture(88), "medium": picture(240), "high": picture(800) },
            "localized": { "title": account.display_name(), "description": "" },
        },
        "contentDetails": { "relatedPlaylists": { "likes": "LL", "uploads": playlists::uploads(&account.id) } },
        "statistics": {
            "viewCount": "0",
            "subscriberCount": "0",
            "hiddenSubscriberCount": false,
            "videoCount": video::by(tx, &account.id).count().to_string(),
        },
        "status": {
            "privacyStatus": "public",
            "isLinked": true,
            "madeForKids": false,
        },
    });
    if account.id == caller.id {
        resource["status"]["longUploadsStatus"] = json!(long_uploads(account));
    }
    resource
}

/// Formats a time as the API does.
fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
