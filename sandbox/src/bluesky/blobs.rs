//! Blobs: <https://docs.bsky.app/docs/api/com-atproto-repo-upload-blob>.
//!
//! Their CIDs are real, so that a client can compute them.

use super::{
    Outcome, Request, Response, Transaction, lexicon, metered, refusal, required, session::admit, throttled,
};
use crate::{
    exchange::Cause::{Content, State},
    files::Upload,
    rate_limit::RateLimit,
    store::Record,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The largest blob that a server takes.
pub(super) const BLOB_BYTES: u64 = 52_428_800;

const BLOBS_DAY: RateLimit = RateLimit { name: "bluesky.blobs_day", limit: 1_000, seconds: 86_400 };

/// An uploaded blob.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Blob {
    pub(super) did: String,
    pub(super) cid: String,
    /// Content type.
    pub(super) mime: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Ids of the files that hold its bytes, in order.
    pub(super) files: Vec<String>,
    /// Job that has to finish before the blob exists.
    pub(super) job: Option<String>,
}

impl Record for Blob {
    const TABLE: &'static str = "bluesky.blob";

    fn key(&self) -> String {
        format!("{}/{}", self.did, self.cid)
    }
}

impl Blob {
    /// Returns the reference that records use.
    pub(super) fn reference(&self) -> Value {
        json!({ "$type": "blob", "ref": { "$link": self.cid }, "mimeType": self.mime, "size": self.size })
    }
}

/// Returns the files that a blob is made of.
pub(super) fn files(tx: &Transaction, did: &str, cid: &str) -> Vec<String> {
    tx.store.get::<Blob>(&format!("{did}/{cid}")).map(|blob| blob.files).unwrap_or_default()
}

/// `uploadBlob`. The detected content type takes precedence over the declared one.
pub(super) fn upload(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let upload = request.upload.as_ref().expect("the body of this method is an upload");
    if upload.size_bytes > BLOB_BYTES {
        tx.files.discard(&upload.id);
        return Err(refusal(Content("file_too_large"), 413, "PayloadTooLarge", "request entity too large"));
    }
    let quota = tx.spend(BLOBS_DAY, &account.id, 1).map_err(|quota| throttled(tx, quota))?;
    let blob = keep(tx, &account.id, upload);
    Ok(metered(Response::json(200, &json!({ "blob": blob.reference() })), quota))
}

fn keep(tx: &mut Transaction, did: &str, upload: &Upload) -> Blob {
    let declared = upload.declared.clone().unwrap_or_else(|| "application/octet-stream".into());
    let blob = Blob {
        did: did.to_owned(),
        cid: lexicon::raw_cid(&hex::decode(&upload.sha256).expect("a digest is hex")),
        mime: upload.mime.clone().unwrap_or(declared),
        size: upload.size_bytes,
        files: vec![upload.id.clone()],
        job: None,
    };
    tx.store.put(&blob);
    blob
}

/// `com.atproto.sync.getBlob`.
pub(super) fn blob(tx: &mut Transaction, request: &Request) -> Outcome {
    let (did, cid) = (required(request, "did")?, required(request, "cid")?);
    let response = picture(tx, did, cid);
    if response.status.is_success() {
        return Ok(Response { is_page: false, ..response });
    }
    Err(refusal(State, 400, "BlobNotFound", "Blob not found"))
}

/// Returns the bytes of a blob.
pub(super) fn picture(tx: &Transaction, did: &str, cid: &str) -> Response {
    let mut bytes = Vec::new();
    for file in files(tx, did, cid) {
        match tx.files.read(&file) {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => bytes.clear(),
        }
    }
    if bytes.is_empty() {
        return Response { is_page: true, ..Response::empty(404) }.because(State);
    }
    let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
    let response = Response::bytes(200, mime, bytes.into())
        .with("x-content-type-options", "nosniff")
        .with("content-security-policy", "default-src 'none'; sandbox");
    Response { is_page: true, ..response }
}

/// Stores the parts of an upload as one blob.
pub(super) fn joined(parts: &BTreeMap<u32, Upload>) -> Vec<String> {
    parts.values().map(|part| part.id.clone()).collect()
}
