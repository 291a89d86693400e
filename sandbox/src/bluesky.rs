//! Bluesky: the AT Protocol over XRPC (<https://atproto.com/specs/xrpc>), as its lexicons say.
//!
//! One process plays the entryway and personal data server (`bsky.social`), the public read side
//! (`public.api.bsky.app`) and the video service (`video.bsky.app`), the directory of identities
//! (`plc.directory`), and the hosts of its accounts' handles. XRPC is answered on any host that is no other
//! platform's, because an account may live on a server of its own; the directory tells on which it does.

mod lexicon;
mod repo;
mod session;
mod video;
mod view;

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Card, Grants, Host, Picture},
    page,
    window::{Allowance, Rule},
};
use crate::{App, Grant, Identity};
use serde_json::{Value, json};

/// The platform's identifier.
const ID: &str = "bluesky";

/// The server that accounts live on.
const SERVICE: &str = "https://bsky.social";

/// Where a handle's host says whose it is.
const WELL_KNOWN: &str = "/.well-known/atproto-did";

/// Its name as an audience of tokens.
const SERVICE_DID: &str = "did:web:bsky.social";

/// Requests of any kind. Documented per address; here all addresses are one, so it is per account.
const REQUESTS: Rule = Rule { name: "bluesky.requests", limit: 3_000, seconds: 300 };

/// Bluesky.
pub(super) struct Bluesky;

impl Host for Bluesky {
    fn id(&self) -> &'static str {
        ID
    }

    fn claims(&self, host: &str, path: &str) -> bool {
        path.starts_with("/xrpc/")
            || path == WELL_KNOWN
            || matches!(host, "bsky.app" | "cdn.bsky.app" | "plc.directory")
    }

    fn intake(&self, call: &Call) -> Intake {
        match method(call) {
            "com.atproto.repo.uploadBlob" | "app.bsky.video.uploadVideo" | "app.bsky.video.uploadPart" => {
                Intake::Bytes
            }
            _ => Intake::Whole(1_000_000),
        }
    }

    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String> {
        session::owner(turn, call).map(|account| account.username)
    }

    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        if let Some(answer) = site(turn, call) {
            return answer;
        }
        let who = session::owner(turn, call).map_or_else(|| call.peer.clone(), |account| account.id);
        let allowance = match turn.spend(REQUESTS, &who, 1) {
            Ok(allowance) => allowance,
            Err(allowance) => return throttled(turn, allowance),
        };
        let answer = route(turn, call).unwrap_or_else(|refusal| refusal);
        // A method with a window of its own has told of that one already.
        match answer.headers.iter().any(|(name, _)| *name == "ratelimit-limit") {
            true => answer,
            false => metered(answer, allowance),
        }
    }

    fn refuse(&self, turn: &mut Turn<'_>, _call: &Call, status: u16) -> Answer {
        match status {
            400 => refusal(400, "InvalidRequest", "Refused on purpose"),
            // What other platforms answer with 401.
            401 => refusal(400, "ExpiredToken", "Token has expired"),
            403 => refusal(403, "Forbidden", "Forbidden"),
            429 => {
                let reset = turn.now + chrono::TimeDelta::seconds(2);
                throttled(
                    turn,
                    Allowance { limit: REQUESTS.limit, remaining: 0, reset, seconds: REQUESTS.seconds },
                )
            }
            503 => refusal(503, "NotEnoughResources", "Not Enough Resources"),
            _ => refusal(500, "InternalServerError", "Internal Server Error"),
        }
    }

    fn name(&self, wish: &str) -> Result<String, String> {
        let wish = wish.trim_start_matches('@').to_lowercase();
        let handle = if wish.contains('.') { wish } else { format!("{wish}.bsky.social") };
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

    fn number(&self, username: &str) -> String {
        const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let digest = account::digest(ID, username);
        let id: String = digest[..24].iter().map(|byte| char::from(BASE32[usize::from(byte % 32)])).collect();
        format!("did:plc:{id}")
    }

    fn identity(&self, account: &Account) -> Identity {
        Identity {
            network_unique_id: account.id.clone(),
            username: account.username.clone(),
            display_name: view::display_name(account),
            account_type: "profile".into(),
            profile_image_url: None,
            profile_url: Some(format!("https://bsky.app/profile/{}", account.username)),
            grant: None,
        }
    }

    fn grants(&self) -> &dyn Grants {
        self
    }

    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card> {
        repo::posts(turn, &account.id).map(|post| card(turn, &post)).collect()
    }
}

impl Grants for Bluesky {
    fn grant(&self, turn: &mut Turn<'_>, account: &mut Account) -> Grant {
        session::grant(turn, account)
    }

    fn app(&self) -> Option<App> {
        None
    }

    fn expire(&self, turn: &mut Turn<'_>, account: &mut Account) {
        account.era += 1;
        turn.shelf.put(account);
    }

    fn revoke(&self, turn: &mut Turn<'_>, account: &mut Account) {
        session::revoke_all(turn, account);
    }
}

fn route(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    if call.is_too_large {
        return Err(refusal(413, "PayloadTooLarge", "request entity too large"));
    }
    match (call.method.as_str(), method(call)) {
        ("POST", "com.atproto.server.createSession") => session::create(turn, call),
        ("POST", "com.atproto.server.refreshSession") => session::refresh(turn, call),
        ("GET", "com.atproto.server.getSession") => session::show(turn, call),
        ("POST", "com.atproto.server.deleteSession") => session::delete(turn, call),
        ("GET", "com.atproto.server.getServiceAuth") => session::service_auth(turn, call),
        ("GET", "com.atproto.server.describeServer") => Ok(Answer::json(
            200,
            &json!({
                "did": SERVICE_DID,
                "availableUserDomains": [".bsky.social"],
                "inviteCodeRequired": false,
                "blobUploadLimit": repo::BLOB_BYTES,
            }),
        )),
        ("GET", "com.atproto.identity.resolveHandle") => {
            let handle = required(call, "handle")?;
            let account = account::named(turn.shelf, ID, handle)
                .ok_or_else(|| refusal(400, "InvalidRequest", "Unable to resolve handle"))?;
            Ok(Answer::json(200, &json!({ "did": account.id })))
        }
        ("GET", "com.atproto.repo.describeRepo") => repo::describe(turn, call),
        ("POST", "com.atproto.repo.uploadBlob") => repo::upload(turn, call),
        ("GET", "com.atproto.sync.getBlob") => repo::blob(turn, call),
        ("POST", "com.atproto.repo.createRecord") => repo::create(turn, call),
        ("POST", "com.atproto.repo.putRecord") => repo::put(turn, call),
        ("POST", "com.atproto.repo.deleteRecord") => repo::delete(turn, call),
        ("POST", "com.atproto.repo.applyWrites") => repo::apply(turn, call),
        ("GET", "com.atproto.repo.getRecord") => repo::get(turn, call),
        ("GET", "com.atproto.repo.listRecords") => repo::list(turn, call),
        ("GET", "app.bsky.actor.getProfile") => view::profile(turn, call),
        ("GET", "app.bsky.feed.getPosts") => view::posts(turn, call),
        ("GET", "app.bsky.feed.getAuthorFeed") => view::author_feed(turn, call),
        ("GET", "app.bsky.video.getUploadLimits") => video::limits(turn, call),
        ("POST", "app.bsky.video.uploadVideo") => video::upload(turn, call),
        ("GET", "app.bsky.video.getJobStatus") => video::status(turn, call),
        ("POST", "app.bsky.video.startUpload") => video::start(turn, call),
        ("POST", "app.bsky.video.uploadPart") => video::part(turn, call),
        ("POST", "app.bsky.video.finishUpload") => video::finish(turn, call),
        ("GET", "app.bsky.video.getUploadStatus") => video::upload_status(turn, call),
        ("POST", "app.bsky.video.abortUpload") => video::abort(turn, call),
        _ => Err(refusal(501, "MethodNotImplemented", "Method Not Implemented")),
    }
}

/// What is no XRPC: pages, pictures, and the directory of identities.
fn site(turn: &Turn<'_>, call: &Call) -> Option<Answer> {
    let segments = call.segments();
    match (call.host.as_str(), segments.as_slice()) {
        ("plc.directory", [did]) => Some(match account::numbered(turn.shelf, ID, did) {
            Some(account) => Answer::json(200, &document(&account)),
            None => Answer::json(404, &json!({ "message": format!("DID not registered: {did}") })),
        }),
        (handle, [".well-known", "atproto-did"]) => Some(match account::named(turn.shelf, ID, handle) {
            Some(account) => Answer::bytes(200, "text/plain; charset=utf-8", account.id.into()),
            None => Answer::bytes(404, "text/plain; charset=utf-8", "User not found".into()),
        }),
        ("cdn.bsky.app", ["img", _, "plain", did, name]) => {
            Some(repo::picture(turn, did, name.split('@').next().unwrap_or_default()))
        }
        ("bsky.app", ["profile", actor]) => {
            Some(shown(actor_account(turn, actor).map(|account| {
                page::account(&Bluesky.identity(&account), ID, &Bluesky.posts(turn, &account))
            })))
        }
        ("bsky.app", ["profile", actor, "post", rkey]) => {
            Some(shown(actor_account(turn, actor).and_then(|account| {
                let cards = Bluesky.posts(turn, &account);
                let card = cards.iter().find(|card| card.id == *rkey)?;
                Some(page::post(&Bluesky.identity(&account), ID, card, &cards))
            })))
        }
        ("bsky.app" | "cdn.bsky.app" | "plc.directory", _) if !call.path.starts_with("/xrpc/") => {
            Some(Answer::page(404, page::missing()))
        }
        _ => None,
    }
}

fn shown(html: Option<String>) -> Answer {
    html.map_or_else(|| Answer::page(404, page::missing()), |html| Answer::page(200, html))
}

/// The account that a handle or a DID names.
fn actor_account(turn: &Turn<'_>, actor: &str) -> Option<Account> {
    if actor.starts_with("did:") {
        account::numbered(turn.shelf, ID, actor)
    } else {
        account::named(turn.shelf, ID, actor.trim_start_matches('@'))
    }
}

fn card(turn: &Turn<'_>, post: &repo::Stored) -> Card {
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
            pictures.push(Picture {
                files: repo::files(turn, &post.did, cid),
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
    let parent = post.value["reply"]["parent"]["uri"].as_str();
    Card {
        id: post.rkey.clone(),
        address: format!("bsky.app/profile/{}/post/{}", post.did, post.rkey),
        text: post.value["text"].as_str().unwrap_or_default().to_owned(),
        at: post.indexed_at,
        media: pictures,
        notes,
        reply_to: parent.and_then(|uri| uri.rsplit('/').next()).map(str::to_owned),
    }
}

/// The document of an identity (<https://atproto.com/specs/did>).
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

/// The server that an account lives on.
fn server(account: &Account) -> &str {
    account.server.as_deref().unwrap_or(SERVICE)
}

/// The method that is called.
fn method(call: &Call) -> &str {
    call.path.strip_prefix("/xrpc/").unwrap_or_default()
}

fn refusal(status: u16, error: &str, message: &str) -> Answer {
    Answer::json(status, &json!({ "error": error, "message": message }))
}

fn metered(answer: Answer, allowance: Allowance) -> Answer {
    answer
        .with("ratelimit-limit", allowance.limit)
        .with("ratelimit-remaining", allowance.remaining)
        .with("ratelimit-reset", allowance.reset.timestamp())
        .with("ratelimit-policy", format!("{};w={}", allowance.limit, allowance.seconds))
}

fn throttled(turn: &Turn<'_>, allowance: Allowance) -> Answer {
    let wait = (allowance.reset - turn.now).num_seconds().max(1);
    metered(refusal(429, "RateLimitExceeded", "Rate Limit Exceeded"), allowance).with("retry-after", wait)
}

/// A query parameter that can't be left out.
fn required<'a>(call: &'a Call, name: &str) -> Result<&'a str, Answer> {
    call.query(name).ok_or_else(|| {
        refusal(400, "InvalidRequest", &format!("Error: Params must have the property \"{name}\""))
    })
}

/// The JSON body of a procedure.
fn input(call: &Call) -> Result<Value, Answer> {
    match call.mime() {
        Some("application/json") => {}
        Some(mime) => {
            let message = format!("Wrong request encoding (Content-Type): {mime}");
            return Err(refusal(400, "InvalidRequest", &message));
        }
        None => {
            return Err(refusal(
                400,
                "InvalidRequest",
                "Request encoding (Content-Type) required but not provided",
            ));
        }
    }
    let value = call.json().map_err(|error| refusal(400, "InvalidRequest", &error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(refusal(400, "InvalidRequest", "Input must be an object")) }
}

/// A text member of an input that can't be left out.
fn member<'a>(input: &'a Value, name: &str) -> Result<&'a str, Answer> {
    match &input[name] {
        Value::String(text) => Ok(text),
        Value::Null => {
            Err(refusal(400, "InvalidRequest", &format!("Input must have the property \"{name}\"")))
        }
        _ => Err(refusal(400, "InvalidRequest", &format!("Input/{name} must be a string"))),
    }
}

/// Timestamps as the AT Protocol writes them.
fn time(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
