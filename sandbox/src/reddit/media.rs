//! Uploads of images and videos: the lease, the storage, as S3 has it, and the notification about the post.
//! <https://github.com/praw-dev/praw> records these requests; Reddit documents none of them.

use super::{Caller, Outcome, Record, Request, Response, SOCKETS, STORAGES, Transaction, origin};
use crate::exchange::Cause::{self, Content, Protocol, State};
use crate::{exchange::Message, files::Upload, tokens::random};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum sizes of an image and of a video.
const MAX_BYTES: [u64; 2] = [20 << 20, 1 << 30];

/// An upload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asset {
    pub(super) id: String,
    /// Id of the owner.
    pub(super) owner: String,
    /// File name that it was leased for.
    filepath: String,
    mime: String,
    signature: String,
    /// Its bytes, once uploaded.
    pub(super) upload: Option<Upload>,
}

impl Record for Asset {
    const TABLE: &'static str = "reddit.asset";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// Result of processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processing {
    Done,
    Failed,
    Never,
}

impl Asset {
    /// Returns whether it was leased for a video.
    pub(super) fn is_video(&self) -> bool {
        self.mime.starts_with("video/")
    }

    /// Returns whether processing it fails on purpose.
    pub(super) fn is_failing(&self) -> bool {
        self.filepath.contains("sandbox-failed")
            || self.upload.as_ref().is_none_or(|upload| upload.is_failing)
    }

    /// Returns the result of processing it, by its name and bytes.
    pub(super) fn processing(&self) -> Processing {
        let Some(upload) = &self.upload else { return Processing::Failed };
        let kind = if self.is_video() { "video/" } else { "image/" };
        match () {
            () if self.filepath.contains("sandbox-stuck") || upload.is_stuck => Processing::Never,
            () if self.is_failing() => Processing::Failed,
            () if upload.mime.as_deref().is_some_and(|mime| mime.starts_with(kind)) => Processing::Done,
            () => Processing::Failed,
        }
    }

    /// Its public address.
    pub(super) fn address(&self) -> String {
        match self.mime.as_str() {
            _ if self.is_video() => format!("https://v.redd.it/{}", self.id),
            "image/png" => format!("https://i.redd.it/{}.png", self.id),
            "image/gif" => format!("https://i.redd.it/{}.gif", self.id),
            _ => format!("https://i.redd.it/{}.jpg", self.id),
        }
    }

    fn storage(&self) -> &'static str {
        STORAGES[usize::from(self.is_video())]
    }

    fn name(&self) -> String {
        format!("rte_images/{}", self.id)
    }
}

/// Returns the asset with this id.
pub(super) fn get(tx: &Transaction, id: &str) -> Option<Asset> {
    tx.store.get(id)
}

/// Returns the asset at an address in the storage.
pub(super) fn stored(tx: &Transaction, address: &str, owner: &str) -> Option<Asset> {
    let asset = get(tx, address.rsplit('/').next()?)?;
    let is_there = address.contains(asset.storage()) && asset.upload.is_some();
    (is_there && asset.owner == owner).then_some(asset)
}

/// Returns the asset that an upload form is for.
pub(super) fn by_upload_key(tx: &Transaction, request: &Request) -> Option<Asset> {
    get(tx, request.field("key")?.rsplit('/').next()?)
}

/// `POST /api/media/asset.json`.
pub(super) fn lease(tx: &mut Transaction, request: &Request, caller: &Caller) -> Outcome {
    let name = request.field("filepath").filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(caller.refuse(tx, Protocol, "NO_TEXT", "we need something here", "filepath"));
    };
    let mime = request.field("mimetype").unwrap_or_default();
    let known = ["image/png", "image/jpeg", "image/gif", "video/mp4", "video/quicktime"];
    if !known.contains(&mime) {
        return Err(caller.refuse(
            tx,
            Content("file_type"),
            "INVALID_OPTION",
            "that option is not valid",
            "mimetype",
        ));
    }
    // Only letters and digits are used, which fit any address.
    let id: String = random().chars().filter(char::is_ascii_alphanumeric).take(13).collect();
    let asset = Asset {
        id: id.to_lowercase(),
        owner: caller.account.id.clone(),
        filepath: name.to_owned(),
        mime: mime.to_owned(),
        signature: random(),
        upload: None,
    };
    tx.store.put(&asset);
    let field = |name: &str, value: String| json!({ "name": name, "value": value });
    let day = tx.now.format("%Y%m%d");
    // A client that uses the sandbox as Reddit can't reach the storage's real name.
    let action = match request.header("host").filter(|_| request.host.is_empty()) {
        Some(host) => format!("//{host}/{}", asset.storage()),
        None => format!("//{}", asset.storage()),
    };
    let body = json!({
        "args": {
            "action": action,
            "fields": [
                field("acl", "private".into()),
                field("key", asset.name()),
                field("X-Amz-Credential", format!("sandbox/{day}/us-east-1/s3/aws4_request")),
                field("X-Amz-Algorithm", "AWS4-HMAC-SHA256".into()),
                field("X-Amz-Date", tx.now.format("%Y%m%dT%H%M%SZ").to_string()),
                field("success_action_status", "201".into()),
                field("content-type", asset.mime.clone()),
                field("x-amz-storage-class", "STANDARD".into()),
                field("x-amz-meta-ext", name.rsplit('.').next().unwrap_or_default().to_owned()),
                field("policy", "eyJjb25kaXRpb25zIjpbXX0=".into()),
                field("X-Amz-Signature", asset.signature.clone()),
                field("x-amz-security-token", "sandbox".into()),
            ],
        },
        "asset": {
            "asset_id": asset.id,
            "processing_state": "incomplete",
            "payload": { "filepath": name },
            "websocket_url": format!("{}/{}", origin(request, "ws", SOCKETS), asset.id),
        },
    });
    Ok(caller.reply(tx, &body))
}

/// Receives an upload form: `POST https://reddit-uploaded-….s3-accelerate.amazonaws.com`.
pub(super) fn store(tx: &mut Transaction, request: &Request) -> Response {
    let refuse = |cause: Cause, status: u16, code: &str, message: &str, more: &str| {
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
        );
        Response::bytes(status, "application/xml", xml.into()).because(cause)
    };
    if request.header("authorization").is_some() {
        return refuse(Protocol, 400, "InvalidArgument", "Only one auth mechanism allowed", "");
    }
    let Some(mut asset) = by_upload_key(tx, request).filter(|asset| asset.storage() == request.host) else {
        return refuse(
            State,
            403,
            "AccessDenied",
            "Invalid according to Policy: Policy Condition failed",
            "",
        );
    };
    if request.field("X-Amz-Signature") != Some(&asset.signature) || request.field("policy").is_none() {
        return refuse(
            State,
            403,
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match",
            "",
        );
    }
    let Some(upload) = request.upload.clone() else {
        return refuse(
            Protocol,
            400,
            "InvalidArgument",
            "POST requires exactly one file upload per request.",
            "",
        );
    };
    let max = MAX_BYTES[usize::from(asset.is_video())];
    if upload.size_bytes > max {
        let sizes = format!(
            "<ProposedSize>{}</ProposedSize><MaxSizeAllowed>{max}</MaxSizeAllowed>",
            upload.size_bytes
        );
        return refuse(
            Content(if asset.is_video() { "video_too_large" } else { "image_too_large" }),
            400,
            "EntityTooLarge",
            "Your proposed upload exceeds the maximum allowed size",
            &sizes,
        );
    }
    let (storage, key) = (asset.storage(), asset.name());
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PostResponse><Location>https://{storage}/{}</Location><Bucket>{}</Bucket><Key>{key}</Key><ETag>\"{}\"</ETag></PostResponse>",
        key.replace('/', "%2F"),
        storage.split('.').next().unwrap_or_default(),
        &upload.sha256[..32],
    );
    asset.upload = Some(upload);
    tx.store.put(&asset);
    Response::bytes(201, "application/xml", xml.into())
}

/// Responds with the bytes of an image or a video.
pub(super) fn show(tx: &Transaction, name: &str) -> Response {
    let asset = get(tx, name.split('.').next().unwrap_or_default());
    let upload = asset.and_then(|asset| asset.upload);
    let mime = match upload.as_ref().and_then(|upload| upload.mime.as_deref()) {
        Some("image/png") => "image/png",
        Some("image/jpeg") => "image/jpeg",
        Some("image/gif") => "image/gif",
        Some("video/mp4") => "video/mp4",
        _ => "application/octet-stream",
    };
    let bytes = upload.and_then(|upload| tx.files.read(&upload.id));
    bytes.map_or_else(|| Response::empty(404).because(State), |bytes| Response::bytes(200, mime, bytes))
}

/// A message that a WebSocket will send.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Notification {
    /// Token in the socket's address.
    pub(super) token: String,
    /// Body; null for a socket that stays silent.
    pub(super) body: Value,
    /// Time when it is sent.
    pub(super) at: DateTime<Utc>,
}

impl Record for Notification {
    const TABLE: &'static str = "reddit.notification";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// `GET wss://….wss.redditmedia.com/{token}`. A client that connects late gets the message too.
pub(super) fn notify(tx: &Transaction, request: &Request, token: &str) -> Response {
    let Some(notification) = tx.store.get::<Notification>(token) else {
        return Response::empty(404).because(State);
    };
    let after = u64::try_from((notification.at - tx.now).num_milliseconds()).unwrap_or(0);
    let body = Some(notification.body).filter(|body| !body.is_null());
    Response::socket(request, Message { body, after: Duration::from_millis(after) })
}
