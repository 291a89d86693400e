//! Pictures and videos on their way: leased, stored as S3 does, and what is told of the post that is
//! made of them. <https://github.com/praw-dev/praw> records these calls; Reddit describes none of them.

use super::{Answer, Call, Record, SOCKETS, STORAGES, Turn, admit, origin};
use crate::{call::Message, files::Upload, tokens::random};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// The most bytes of a picture, and of a video.
const MOST_BYTES: [u64; 2] = [20 << 20, 1 << 30];

/// Bytes on their way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Asset {
    /// Its id.
    pub(super) id: String,
    /// Whose it is.
    pub(super) owner: String,
    /// Its name, as it was leased for.
    filepath: String,
    mime: String,
    signature: String,
    /// Its bytes, as soon as they are there.
    pub(super) upload: Option<Upload>,
}

impl Record for Asset {
    const SHELF: &'static str = "reddit.asset";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// How processing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Failed,
    Never,
}

impl Asset {
    /// Whether it was leased for a video.
    pub(super) fn is_video(&self) -> bool {
        self.mime.starts_with("video/")
    }

    /// How processing it ends, as its name and bytes say.
    pub(super) fn end(&self) -> End {
        let Some(upload) = &self.upload else { return End::Failed };
        let kind = if self.is_video() { "video/" } else { "image/" };
        match () {
            () if self.filepath.contains("sandbox-stuck") || upload.is_stuck => End::Never,
            () if self.filepath.contains("sandbox-failed") || upload.is_failing => End::Failed,
            () if upload.mime.as_deref().is_some_and(|mime| mime.starts_with(kind)) => End::Done,
            () => End::Failed,
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

/// The asset with this id.
pub(super) fn get(turn: &Turn<'_>, id: &str) -> Option<Asset> {
    turn.shelf.get(id)
}

/// The asset that a post names by its address in the storage.
pub(super) fn stored(turn: &Turn<'_>, address: &str, owner: &str) -> Option<Asset> {
    let asset = get(turn, address.rsplit('/').next()?)?;
    let is_there = address.contains(asset.storage()) && asset.upload.is_some();
    (is_there && asset.owner == owner).then_some(asset)
}

/// The asset that a form for the storage is about.
pub(super) fn keyed(turn: &Turn<'_>, call: &Call) -> Option<Asset> {
    get(turn, call.field("key")?.rsplit('/').next()?)
}

/// `POST /api/media/asset.json`.
pub(super) fn lease(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let caller = admit(turn, call, "submit")?;
    let name = call.field("filepath").filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(caller.refuse(turn, "NO_TEXT", "we need something here", "filepath"));
    };
    let mime = call.field("mimetype").unwrap_or_default();
    let known = ["image/png", "image/jpeg", "image/gif", "video/mp4", "video/quicktime"];
    if !known.contains(&mime) {
        return Err(caller.refuse(turn, "INVALID_OPTION", "that option is not valid", "mimetype"));
    }
    // The letters of a base64 digest are fit for an address of any kind.
    let id: String = random().chars().filter(char::is_ascii_alphanumeric).take(13).collect();
    let asset = Asset {
        id: id.to_lowercase(),
        owner: caller.account.id.clone(),
        filepath: name.to_owned(),
        mime: mime.to_owned(),
        signature: random(),
        upload: None,
    };
    turn.shelf.put(&asset);
    let field = |name: &str, value: String| json!({ "name": name, "value": value });
    let day = turn.now.format("%Y%m%d");
    // A client that takes the sandbox for Reddit can't reach the storage's real name.
    let action = match call.header("host").filter(|_| call.host.is_empty()) {
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
                field("X-Amz-Date", turn.now.format("%Y%m%dT%H%M%SZ").to_string()),
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
            "websocket_url": format!("{}/{}", origin(call, "ws", SOCKETS), asset.id),
        },
    });
    Ok(caller.reply(turn, &body))
}

/// The form that the storage takes: `POST https://reddit-uploaded-….s3-accelerate.amazonaws.com`.
pub(super) fn store(turn: &mut Turn<'_>, call: &Call) -> Answer {
    let refuse = |status: u16, code: &str, message: &str, more: &str| {
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
        );
        Answer::bytes(status, "application/xml", xml.into())
    };
    if call.header("authorization").is_some() {
        return refuse(400, "InvalidArgument", "Only one auth mechanism allowed", "");
    }
    let Some(mut asset) = keyed(turn, call).filter(|asset| asset.storage() == call.host) else {
        return refuse(403, "AccessDenied", "Invalid according to Policy: Policy Condition failed", "");
    };
    if call.field("X-Amz-Signature") != Some(&asset.signature) || call.field("policy").is_none() {
        return refuse(403, "SignatureDoesNotMatch", "The request signature we calculated does not match", "");
    }
    let Some(upload) = call.upload.clone() else {
        return refuse(400, "InvalidArgument", "POST requires exactly one file upload per request.", "");
    };
    let most = MOST_BYTES[usize::from(asset.is_video())];
    if upload.size_bytes > most {
        let sizes = format!(
            "<ProposedSize>{}</ProposedSize><MaxSizeAllowed>{most}</MaxSizeAllowed>",
            upload.size_bytes
        );
        return refuse(
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
    turn.shelf.put(&asset);
    Answer::bytes(201, "application/xml", xml.into())
}

/// A picture's or video's bytes.
pub(super) fn show(turn: &Turn<'_>, name: &str) -> Answer {
    let asset = get(turn, name.split('.').next().unwrap_or_default());
    let upload = asset.and_then(|asset| asset.upload);
    let mime = match upload.as_ref().and_then(|upload| upload.mime.as_deref()) {
        Some("image/png") => "image/png",
        Some("image/jpeg") => "image/jpeg",
        Some("image/gif") => "image/gif",
        Some("video/mp4") => "video/mp4",
        _ => "application/octet-stream",
    };
    let bytes = upload.and_then(|upload| turn.files.read(&upload.id));
    bytes.map_or_else(|| Answer::empty(404), |bytes| Answer::bytes(200, mime, bytes))
}

/// What a socket will tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct News {
    /// Where.
    pub(super) token: String,
    /// What; null where nothing ever is.
    pub(super) body: Value,
    /// When.
    pub(super) at: DateTime<Utc>,
}

impl Record for News {
    const SHELF: &'static str = "reddit.news";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// `GET wss://….wss.redditmedia.com/{token}`. Whoever comes late is told all the same.
pub(super) fn tell(turn: &Turn<'_>, call: &Call, token: &str) -> Answer {
    let Some(news) = turn.shelf.get::<News>(token) else { return Answer::empty(404) };
    let after = u64::try_from((news.at - turn.now).num_milliseconds()).unwrap_or(0);
    let body = Some(news.body).filter(|body| !body.is_null());
    Answer::socket(call, Message { body, after: Duration::from_millis(after) })
}
