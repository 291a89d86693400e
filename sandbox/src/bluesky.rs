//! Bluesky: the AT Protocol over XRPC (<https://atproto.com/specs/xrpc>), as its lexicons say.
//!
//! One process simulates the entryway and personal data server (`bsky.social`), the public read side
//! (`public.api.bsky.app`), the video service (`video.bsky.app`), the directory of identities
//! (`plc.directory`) and the hosts of its accounts' handles. XRPC is answered on any host that is not another
//! platform's, because an account may have a server of its own, which the directory names.

mod blobs;
mod lexicon;
mod repo;
mod session;
mod video;
mod view;

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    page,
    rate_limit::{Quota, RateLimit},
    simulator::{Grants, MediaView, PostView, Simulator},
};
use crate::exchange::Cause::{self, Protocol, State};
use crate::{App, Grant, Identity};
use domain::AccountProfile;
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "bluesky";

/// Default server of accounts.
const SERVICE: &str = "https://bsky.social";

/// Path where a handle's host names the account's DID.
const WELL_KNOWN: &str = "/.well-known/atproto-did";

/// The service as an audience of tokens.
const SERVICE_DID: &str = "did:web:bsky.social";

/// Requests of any kind. Documented per IP address; all clients here share one, so the limit is per account.
const REQUESTS: RateLimit = RateLimit { name: "bluesky.requests", limit: 3_000, seconds: 300 };

pub(super) struct Bluesky;

impl Simulator for Bluesky {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        path.starts_with("/xrpc/")
            || path == WELL_KNOWN
            || matches!(host, "bsky.app" | "cdn.bsky.app" | "plc.directory")
    }

    fn body_mode(&self, request: &Request) -> BodyMode {
        match method(request) {
            "com.atproto.repo.uploadBlob" | "app.bsky.video.uploadVideo" | "app.bsky.video.uploadPart" => {
                BodyMode::Upload
            }
            _ => BodyMode::Buffered(1_000_000),
        }
    }

    fn account(&self, tx: &Transaction, request: &Request) -> Option<String> {
        let owner = session::owner(tx, request).or_else(|| video::job_owner(tx, request));
        owner.map(|account| account.username)
    }

    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response {
        if let Some(response) = site(tx, request) {
            return response;
        }
        let who = session::owner(tx, request).map_or_else(|| request.peer.clone(), |account| account.id);
        let quota = match tx.spend(REQUESTS, &who, 1) {
            Ok(quota) => quota,
            Err(quota) => return throttled(tx, quota),
        };
        let response = route(tx, request).unwrap_or_else(|refusal| refusal);
        // A method with a window of its own has set the headers.
        match response.headers.iter().any(|(name, _)| *name == "ratelimit-limit") {
            true => response,
            false => metered(response, quota),
        }
    }

    fn refuse(&self, tx: &mut Transaction, _request: &Request, status: u16) -> Response {
        match status {
            400 => refusal(State, 400, "InvalidRequest", "Refused on purpose"),
            // The counterpart of other platforms' 401.
            401 => refusal(State, 400, "ExpiredToken", "Token has expired"),
            403 => refusal(State, 403, "Forbidden", "Forbidden"),
            429 => {
                let reset = tx.now + tx.settings.throttle();
                throttled(tx, Quota { limit: REQUESTS.limit, remaining: 0, reset, seconds: REQUESTS.seconds })
            }
            503 => refusal(State, 503, "NotEnoughResources", "Not Enough Resources"),
            _ => refusal(State, 500, "InternalServerError", "Internal Server Error"),
        }
    }

    fn validate_username(&self, username: &str) -> Result<String, String> {
        let name = username.trim_start_matches('@').to_lowercase();
        let handle = if name.contains('.') { name } else { format!("{name}.bsky.social") };
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let is_handle = handle.len() <= 253 && handle.split('.').all(is_label);
        if is_handle {
            Ok(handle)
        } else {
            Err(format!("`{handle}` is no handle: it has to be a domain name"))
        }
    }

    fn account_id(&self, username: &str) -> String {
        const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let digest = account::digest(ID, username);
        let id: String = digest[..24].iter().map(|byte| char::from(BASE32[usize::from(byte % 32)])).collect();
        format!("did:plc:{id}")
    }

    fn identity(&self, account: &Account) -> Identity {
        Identity {
            profile: AccountProfile {
                network_unique_id: account.id.clone(),
                username: account.username.clone(),
                display_name: account.display_name(),
                account_type: "profile".into(),
                profile_image_url: None,
                profile_url: Some(format!("https://bsky.app/profile/{}", account.username)),
            },
            grant: None,
        }
    }

    fn grants(&self) -> &dyn Grants {
        self
    }

    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView> {
        repo::posts(tx, &account.id).map(|post| post_view(tx, &post)).collect()
    }
}

impl Grants for Bluesky {
    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        session::grant(tx, account)
    }

    fn app(&self) -> Option<App> {
        None
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        account.era += 1;
        tx.store.put(account);
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        session::revoke_all(tx, account);
    }
}

fn route(tx: &mut Transaction, request: &Request) -> Outcome {
    if request.is_too_large {
        return Err(refusal(Protocol, 413, "PayloadTooLarge", "request entity too large"));
    }
    match (request.method.as_str(), method(request)) {
        ("POST", "com.atproto.server.createSession") => session::create(tx, request),
        ("POST", "com.atproto.server.refreshSession") => session::refresh(tx, request),
        ("GET", "com.atproto.server.getSession") => session::show(tx, request),
        ("POST", "com.atproto.server.deleteSession") => session::delete(tx, request),
        ("GET", "com.atproto.server.getServiceAuth") => session::service_auth(tx, request),
        ("GET", "com.atproto.server.describeServer") => Ok(Response::json(
            200,
            &json!({
                "did": SERVICE_DID,
                "availableUserDomains": [".bsky.social"],
                "inviteCodeRequired": false,
                "blobUploadLimit": blobs::BLOB_BYTES,
            }),
        )),
        ("GET", "com.atproto.identity.resolveHandle") => {
            let handle = required(request, "handle")?;
            let account = account::by_username(tx.store, ID, handle)
                .ok_or_else(|| refusal(State, 400, "InvalidRequest", "Unable to resolve handle"))?;
            Ok(Response::json(200, &json!({ "did": account.id })))
        }
        ("GET", "com.atproto.repo.describeRepo") => repo::describe(tx, request),
        ("POST", "com.atproto.repo.uploadBlob") => blobs::upload(tx, request),
        ("GET", "com.atproto.sync.getBlob") => blobs::blob(tx, request),
        ("POST", "com.atproto.repo.createRecord") => repo::create(tx, request),
        ("POST", "com.atproto.repo.putRecord") => repo::put(tx, request),
        ("POST", "com.atproto.repo.deleteRecord") => repo::delete(tx, request),
        ("POST", "com.atproto.repo.applyWrites") => repo::apply(tx, request),
        ("GET", "com.atproto.repo.getRecord") => repo::get(tx, request),
        ("GET", "com.atproto.repo.listRecords") => repo::list(tx, request),
        ("GET", "app.bsky.actor.getProfile") => view::profile(tx, request),
        ("GET", "app.bsky.feed.getPosts") => view::posts(tx, request),
        ("GET", "app.bsky.feed.getPostThread") => view::thread(tx, request),
        ("GET", "app.bsky.feed.getAuthorFeed") => view::author_feed(tx, request),
        ("GET", "app.bsky.video.getUploadLimits") => video::limits(tx, request),
        ("POST", "app.bsky.video.uploadVideo") => video::upload(tx, request),
        ("GET", "app.bsky.video.getJobStatus") => video::status(tx, request),
        ("POST", "app.bsky.video.startUpload") => video::start(tx, request),
        ("POST", "app.bsky.video.uploadPart") => video::part(tx, request),
        ("POST", "app.bsky.video.finishUpload") => video::finish(tx, request),
        ("GET", "app.bsky.video.getUploadStatus") => video::upload_status(tx, request),
        ("POST", "app.bsky.video.abortUpload") => video::abort(tx, request),
        _ => Err(refusal(Protocol, 501, "MethodNotImplemented", "Method Not Implemented")),
    }
}

/// Responds to requests outside XRPC: pages, images, and the directory of identities.
fn site(tx: &Transaction, request: &Request) -> Option<Response> {
    let segments = request.segments();
    match (request.host.as_str(), segments.as_slice()) {
        ("plc.directory", [did]) => Some(match account::by_id(tx.store, ID, did) {
            Some(account) => Response::json(200, &document(&account)),
            None => Response::json(404, &json!({ "message": format!("DID not registered: {did}") }))
                .because(State),
        }),
        (handle, [".well-known", "atproto-did"]) => Some(match account::by_username(tx.store, ID, handle) {
            Some(account) => Response::bytes(200, "text/plain; charset=utf-8", account.id.into()),
            None => Response::bytes(404, "text/plain; charset=utf-8", "User not found".into()).because(State),
        }),
        ("cdn.bsky.app", ["img", _, "plain", did, name]) => {
            Some(blobs::picture(tx, did, name.split('@').next().unwrap_or_default()))
        }
        ("bsky.app", ["profile", actor]) => {
            Some(shown(actor_account(tx, actor).map(|account| page::account(tx, &Bluesky, &account))))
        }
        ("bsky.app", ["profile", actor, "post", rkey]) => {
            Some(shown(actor_account(tx, actor).and_then(|account| {
                let views = Bluesky.posts(tx, &account);
                let card = views.iter().find(|card| card.id == *rkey)?;
                Some(page::post(tx, &Bluesky, &account, card))
            })))
        }
        ("bsky.app" | "cdn.bsky.app" | "plc.directory", _) if !request.path.starts_with("/xrpc/") => {
            Some(page::serve(None))
        }
        _ => None,
    }
}

fn shown(html: Option<String>) -> Response {
    page::serve(html)
}

/// Returns the account that a handle or a DID names.
fn actor_account(tx: &Transaction, actor: &str) -> Option<Account> {
    if actor.starts_with("did:") {
        account::by_id(tx.store, ID, actor)
    } else {
        account::by_username(tx.store, ID, actor.trim_start_matches('@'))
    }
}

fn post_view(tx: &Transaction, post: &repo::Stored) -> PostView {
    let embed = &post.value["embed"];
    let media = if embed["media"].is_object() { &embed["media"] } else { embed };
    let mut pictures = Vec::new();
    let listed = media["images"].as_array().or_else(|| media["items"].as_array());
    let blobs = listed.into_iter().flatten().map(|item| (&item["image"], &item["alt"])).chain([
        (&media["video"], &media["alt"]),
        (&media["external"]["thumb"], &media["external"]["title"]),
    ]);
    for (blob, alt) in blobs {
        if let Some(cid) = blob["ref"]["$link"].as_str() {
            pictures.push(MediaView {
                files: blobs::files(tx, &post.did, cid),
                mime: blob["mimeType"].as_str().unwrap_or_default().to_owned(),
                alt: alt.as_str().unwrap_or_default().to_owned(),
            });
        }
    }
    let mut notes = Vec::new();
    if let Some(uri) = media["external"]["uri"].as_str() {
        notes.push(format!("Link: {uri}"));
    }
    let quoted = embed["record"]["record"]["uri"].as_str().or_else(|| embed["record"]["uri"].as_str());
    if let Some(uri) = quoted {
        notes.push(format!("Quotes {uri}"));
    }
    if media["presentation"] == "gif" {
        notes.push("Shown as a GIF".to_owned());
    }
    let tracks = media["captions"].as_array().into_iter().flatten();
    notes.extend(tracks.filter_map(|track| Some(format!("Captions: {}", track["lang"].as_str()?))));
    let gate = |kind: &str| repo::at(tx, &format!("at://{}/app.bsky.feed.{kind}/{}", post.did, post.rkey));
    if let Some(gate) = gate("threadgate") {
        let rules = gate.value["allow"].as_array().into_iter().flatten();
        let rules: Vec<_> = rules.filter_map(|rule| rule["$type"].as_str()?.split('#').next_back()).collect();
        notes.push(format!(
            "Replies: {}",
            if rules.is_empty() { "nobody".to_owned() } else { rules.join(", ") }
        ));
    }
    if gate("postgate").is_some() {
        notes.push("No quotes".to_owned());
    }
    let parent = post.value["reply"]["parent"]["uri"].as_str();
    PostView {
        id: post.rkey.clone(),
        address: format!("bsky.app/profile/{}/post/{}", post.did, post.rkey),
        text: post.value["text"].as_str().unwrap_or_default().to_owned(),
        at: post.indexed_at,
        media: pictures,
        notes,
        reply_to: parent.and_then(|uri| uri.rsplit('/').next()).map(str::to_owned),
    }
}

/// Returns the document of an identity (<https://atproto.com/specs/did>).
fn document(account: &Account) -> Value {
    json!({
        "@context": ["https://www.w3.org/ns/did/v1"],
        "id": account.id,
        "alsoKnownAs": [format!("at://{}", account.username)],
        "service": [{
            "id": "#atproto_pds",
            "type": "AtprotoPersonalDataServer",
            "serviceEndpoint": server(account),
        }],
    })
}

/// Returns the server that hosts an account.
fn server(account: &Account) -> &str {
    account.server.as_deref().unwrap_or(SERVICE)
}

/// Returns the XRPC method of a request.
fn method(request: &Request) -> &str {
    request.path.strip_prefix("/xrpc/").unwrap_or_default()
}

fn refusal(cause: Cause, status: u16, error: &str, message: &str) -> Response {
    Response::json(status, &json!({ "error": error, "message": message })).because(cause)
}

fn metered(response: Response, quota: Quota) -> Response {
    response
        .with("ratelimit-limit", quota.limit)
        .with("ratelimit-remaining", quota.remaining)
        .with("ratelimit-reset", quota.reset.timestamp())
        .with("ratelimit-policy", format!("{};w={}", quota.limit, quota.seconds))
}

fn throttled(tx: &Transaction, quota: Quota) -> Response {
    let wait = (quota.reset - tx.now).num_seconds().max(1);
    metered(refusal(State, 429, "RateLimitExceeded", "Rate Limit Exceeded"), quota).with("retry-after", wait)
}

/// Adds the keys of the rules about content in the lexicons.
pub(super) fn schema_rules(rules: &mut std::collections::BTreeSet<String>) {
    lexicon::rules(rules);
}

/// Returns a required query parameter.
fn required<'a>(request: &'a Request, name: &str) -> Result<&'a str, Response> {
    request.query(name).ok_or_else(|| {
        refusal(Protocol, 400, "InvalidRequest", &format!("Error: Params must have the property \"{name}\""))
    })
}

/// Returns the JSON body of a procedure.
fn input(request: &Request) -> Result<Value, Response> {
    match request.mime() {
        Some("application/json") => {}
        Some(mime) => {
            let message = format!("Wrong request encoding (Content-Type): {mime}");
            return Err(refusal(Protocol, 400, "InvalidRequest", &message));
        }
        None => {
            return Err(refusal(
                Protocol,
                400,
                "InvalidRequest",
                "Request encoding (Content-Type) required but not provided",
            ));
        }
    }
    let value =
        request.json().map_err(|error| refusal(Protocol, 400, "InvalidRequest", &error.to_string()))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(refusal(Protocol, 400, "InvalidRequest", "Input must be an object"))
    }
}

/// Returns a required text member of an input.
fn member<'a>(input: &'a Value, name: &str) -> Result<&'a str, Response> {
    match &input[name] {
        Value::String(text) => Ok(text),
        Value::Null => {
            Err(refusal(Protocol, 400, "InvalidRequest", &format!("Input must have the property \"{name}\"")))
        }
        _ => Err(refusal(Protocol, 400, "InvalidRequest", &format!("Input/{name} must be a string"))),
    }
}

/// Formats a time as the AT Protocol does.
fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
