//! The video service: <https://docs.bsky.app/docs/tutorials/video>.
//!
//! A video is uploaded with a token that the account's server issued, is processed as a job whose state
//! depends on the clock, and becomes a blob of the account's repository. Bytes come in one request, or in
//! parts of a fixed size that may be sent again.

use super::{
    Account, ID, Outcome, Request, Response, Transaction, account, actor_account, blobs, input, lexicon,
    refusal, required, session::admit_service,
};
use crate::exchange::Cause::{Content, Protocol, State};
use crate::{
    files::{MAX_KEPT_BYTES, Upload},
    store::Record,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The service's name as an audience of tokens.
const DID: &str = "did:web:video.bsky.app";

const VIDEO_BYTES: u64 = 300_000_000;
const PART_BYTES: u64 = 8 << 20;
const DAILY_VIDEOS: u64 = 25;
const DAILY_BYTES: u64 = 10_000_000_000;
const UPLOAD_HOURS: i64 = 24;

const STATES: [&str; 7] = [
    "JOB_STATE_CREATED",
    "JOB_STATE_ENCODING",
    "JOB_STATE_ENCODED",
    "JOB_STATE_SCANNING",
    "JOB_STATE_SCANNED",
    "JOB_STATE_UPLOADING",
    "JOB_STATE_UPLOADED",
];

/// A video being processed.
#[derive(Clone, Serialize, Deserialize)]
struct Job {
    id: String,
    did: String,
    cid: String,
    size_bytes: u64,
    is_video: bool,
    is_stuck: bool,
    is_failing: bool,
    started_at: DateTime<Utc>,
}

impl Record for Job {
    const TABLE: &'static str = "bluesky.job";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// An upload in parts.
#[derive(Clone, Serialize, Deserialize)]
struct Parts {
    id: String,
    did: String,
    size_bytes: u64,
    mime: String,
    name: Option<String>,
    parts: BTreeMap<u32, Upload>,
    expires_at: DateTime<Utc>,
    is_aborted: bool,
    job: Option<String>,
}

impl Record for Parts {
    const TABLE: &'static str = "bluesky.parts";

    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Parts {
    fn count(&self) -> u32 {
        u32::try_from(self.size_bytes.div_ceil(PART_BYTES)).unwrap_or(u32::MAX)
    }

    fn length(&self, number: u32) -> u64 {
        let before = u64::from(number - 1) * PART_BYTES;
        (self.size_bytes - before).min(PART_BYTES)
    }

    fn state(&self, tx: &Transaction) -> &'static str {
        match () {
            () if self.job.is_some() => "completed",
            () if self.is_aborted => "aborted",
            () if self.expires_at <= tx.now => "expired",
            () => "created",
        }
    }
}

/// Returns whether a job has ended well.
pub(super) fn is_done(tx: &Transaction, job: &str) -> bool {
    tx.store.get::<Job>(job).is_some_and(|job| job.state(tx).0 == "JOB_STATE_COMPLETED")
}

impl Job {
    /// Returns the job's state and its progress in percent.
    fn state(&self, tx: &Transaction) -> (&'static str, u64) {
        if self.is_stuck {
            return ("JOB_STATE_ENCODING", 50);
        }
        let spent = u64::try_from((tx.now - self.started_at).num_milliseconds()).unwrap_or(0);
        let needed = tx.settings.processing_ms;
        if spent < needed {
            // Seven states share the processing time evenly.
            let at = spent * STATES.len() as u64 * 100 / needed;
            let index = usize::try_from(at / 100).unwrap_or(0).min(STATES.len() - 1);
            return (STATES[index], at % 100);
        }
        let is_bad = self.is_failing || !self.is_video;
        (if is_bad { "JOB_STATE_FAILED" } else { "JOB_STATE_COMPLETED" }, 100)
    }

    fn status(&self, tx: &Transaction) -> Value {
        let (state, progress) = self.state(tx);
        let mut status = json!({ "jobId": self.id, "did": self.did, "state": state });
        match state {
            "JOB_STATE_COMPLETED" => {
                let blob = tx.store.get::<blobs::Blob>(&format!("{}/{}", self.did, self.cid));
                status["blob"] = blob.map_or(Value::Null, |blob| blob.reference());
                status["message"] = json!("Video processed successfully");
            }
            "JOB_STATE_FAILED" => {
                status["error"] = json!("unsupported video");
                status["failureCode"] =
                    json!(if self.is_video { "encoding_failure" } else { "validation_failure" });
                status["message"] = json!("The video could not be processed");
            }
            _ => status["progress"] = json!(progress),
        }
        status
    }
}

/// `getUploadLimits`.
pub(super) fn limits(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit_service(tx, request, &[DID], &["app.bsky.video.getUploadLimits"])?;
    let (videos, bytes) = used(tx, &account.id);
    let can_upload = videos < DAILY_VIDEOS && bytes < DAILY_BYTES;
    Ok(Response::json(
        200,
        &json!({
            "canUpload": can_upload,
            "remainingDailyVideos": DAILY_VIDEOS.saturating_sub(videos),
            "remainingDailyBytes": DAILY_BYTES.saturating_sub(bytes),
            "message": if can_upload { "User is able to upload videos" } else { "User has reached the daily limit" },
        }),
    ))
}

/// `uploadVideo`: all bytes in one request.
pub(super) fn upload(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let did = required(request, "did")?;
    if did != account.id {
        return Err(refusal(State, 403, "Forbidden", "The token is another account's"));
    }
    let upload = request.upload.as_ref().expect("the body of this method is an upload");
    if upload.size_bytes == 0 || upload.size_bytes > VIDEO_BYTES {
        tx.files.discard(&upload.id);
        return Err(refusal(
            Content("video_too_large"),
            400,
            "VideoTooLarge",
            "The file has to be of 1 to 300,000,000 bytes",
        ));
    }
    allow(tx, &account)?;
    let name = request.query("name").or(upload.name.as_deref()).unwrap_or_default().to_owned();
    let digest = hex::decode(&upload.sha256).expect("a digest is hex");
    let (job, is_known) =
        begin(tx, &account, &digest, upload, vec![upload.id.clone()], upload.size_bytes, &name);
    let mut status = job.status(tx);
    if is_known {
        status["error"] = json!("already_exists");
        status["message"] = json!("Video already processed");
        return Err(Response::json(409, &status).because(State));
    }
    Ok(Response::json(200, &wrapped(status)))
}

/// `getJobStatus`, which anyone may ask for.
pub(super) fn status(tx: &mut Transaction, request: &Request) -> Outcome {
    let job: Option<Job> = tx.store.get(required(request, "jobId")?);
    let job = job.ok_or_else(|| refusal(State, 400, "InvalidRequest", "Job not found"))?;
    let has_failed = job.state(tx).0 == "JOB_STATE_FAILED";
    let cause = (has_failed && !job.is_video).then_some(Content("video_unreadable"));
    Ok(Response::json(200, &json!({ "jobStatus": job.status(tx) })).because(cause))
}

/// Returns the account whose job a request without a token asks for.
pub(super) fn job_owner(tx: &Transaction, request: &Request) -> Option<Account> {
    let job: Job = tx.store.get(request.query("jobId")?)?;
    account::by_id(tx.store, ID, &job.did)
}

/// `startUpload`.
pub(super) fn start(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let body = input(request)?;
    let integer = |name: &str| body[name].as_u64();
    let Some(size_bytes) = integer("sizeBytes").filter(|size| *size > 0) else {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Input must have the property \"sizeBytes\""));
    };
    let mime = super::member(&body, "mimeType")?;
    if !matches!(mime, "video/mp4" | "video/quicktime" | "video/webm" | "video/mpeg" | "image/gif") {
        return Err(refusal(
            Content("video_type"),
            400,
            "UnsupportedContentType",
            &format!("{mime} is not supported"),
        ));
    }
    if size_bytes > VIDEO_BYTES {
        return Err(refusal(
            Content("video_too_large"),
            400,
            "VideoTooLarge",
            "The file may have 300,000,000 bytes at most",
        ));
    }
    if integer("durationMs").is_some_and(|duration| duration > 600_000) {
        return Err(refusal(
            Content("video_too_long"),
            400,
            "VideoTooLong",
            "The video may last ten minutes at most",
        ));
    }
    allow(tx, &account)?;
    let open = tx
        .store
        .with_prefix::<Parts>("")
        .filter(|parts| parts.did == account.id && parts.state(tx) == "created");
    if open.count() >= 10 {
        return Err(refusal(State, 400, "TooManyOpenUploads", "Finish or abort an upload first"));
    }
    let parts = Parts {
        id: identifier(),
        did: account.id,
        size_bytes,
        mime: mime.to_owned(),
        name: body["name"].as_str().map(str::to_owned),
        parts: BTreeMap::new(),
        expires_at: tx.now + TimeDelta::hours(UPLOAD_HOURS),
        is_aborted: false,
        job: None,
    };
    tx.store.put(&parts);
    Ok(Response::json(
        200,
        &json!({
            "jobId": parts.id,
            "partSizeBytes": PART_BYTES,
            "partCount": parts.count(),
            "expiresAt": super::time(parts.expires_at),
        }),
    ))
}

/// `uploadPart`. A part may be sent again.
pub(super) fn part(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let upload = request.upload.as_ref().expect("the body of this method is an upload").clone();
    let mut parts = open(tx, &account, required(request, "jobId")?)?;
    let number = required(request, "partNumber")?
        .parse::<u32>()
        .ok()
        .filter(|number| (1..=parts.count()).contains(number));
    let number = number.ok_or_else(|| {
        refusal(Protocol, 400, "InvalidPartNumber", &format!("partNumber has to be 1 to {}", parts.count()))
    })?;
    if upload.size_bytes != parts.length(number) {
        tx.files.discard(&upload.id);
        let message =
            format!("part {number} has to have {} bytes, got {}", parts.length(number), upload.size_bytes);
        return Err(refusal(Protocol, 400, "PartSizeMismatch", &message));
    }
    let size_bytes = upload.size_bytes;
    if let Some(replaced) = parts.parts.insert(number, upload) {
        tx.files.discard(&replaced.id);
    }
    tx.store.put(&parts);
    Ok(Response::json(200, &json!({ "partNumber": number, "sizeBytes": size_bytes })))
}

/// `finishUpload`, which may be repeated.
pub(super) fn finish(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let body = input(request)?;
    let id = super::member(&body, "jobId")?;
    let done = own(tx, &account, id)?.job;
    let job = match done {
        Some(job) => tx.store.get::<Job>(&job).expect("a finished upload has a job"),
        None => {
            let mut parts = open(tx, &account, id)?;
            let missing: Vec<String> = (1..=parts.count())
                .filter(|number| !parts.parts.contains_key(number))
                .map(|number| number.to_string())
                .collect();
            if !missing.is_empty() {
                return Err(refusal(
                    Protocol,
                    400,
                    "MissingParts",
                    &format!("missing parts: {}", missing.join(", ")),
                ));
            }
            let mut hash = Sha256::new();
            for part in parts.parts.values() {
                let bytes = tx.files.read(&part.id);
                hash.update(bytes.ok_or_else(|| refusal(State, 400, "UploadFailed", "a part was not kept"))?);
            }
            let first = parts.parts.values().next().expect("at least one part").clone();
            let files = blobs::joined(&parts.parts);
            let name = parts.name.clone().unwrap_or_default();
            let (job, _) = begin(tx, &account, &hash.finalize(), &first, files, parts.size_bytes, &name);
            if parts.size_bytes > MAX_KEPT_BYTES {
                parts.parts.values().for_each(|part| tx.files.discard(&part.id));
            }
            parts.job = Some(job.id.clone());
            tx.store.put(&parts);
            job
        }
    };
    Ok(Response::json(200, &json!({ "completedJobId": job.id, "jobStatus": job.status(tx) })))
}

/// `getUploadStatus`.
pub(super) fn upload_status(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let parts = own(tx, &account, required(request, "jobId")?)?;
    let mut status = json!({
        "jobId": parts.id,
        "partSizeBytes": PART_BYTES,
        "partCount": parts.count(),
        "receivedParts": parts.parts.keys().collect::<Vec<_>>(),
        "expiresAt": super::time(parts.expires_at),
        "state": parts.state(tx),
    });
    if let Some(job) = parts.job.and_then(|id| tx.store.get::<Job>(&id)) {
        status["completedJobId"] = json!(job.id);
        status["jobStatus"] = job.status(tx);
    }
    Ok(Response::json(200, &status))
}

/// `abortUpload`.
pub(super) fn abort(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = uploader(tx, request)?;
    let body = input(request)?;
    let mut parts = own(tx, &account, super::member(&body, "jobId")?)?;
    if parts.state(tx) == "created" {
        parts.is_aborted = true;
        parts.parts.values().for_each(|part| tx.files.discard(&part.id));
        tx.store.put(&parts);
    }
    let mut reply = json!({ "state": parts.state(tx) });
    if let Some(job) = parts.job {
        reply["completedJobId"] = json!(job);
    }
    Ok(Response::json(200, &reply))
}

/// Starts a job, or returns the earlier job of the same bytes.
fn begin(
    tx: &mut Transaction,
    account: &Account,
    digest: &[u8],
    first: &Upload,
    files: Vec<String>,
    size_bytes: u64,
    name: &str,
) -> (Job, bool) {
    let cid = lexicon::raw_cid(digest);
    let earlier = tx.store.with_prefix::<Job>("").find(|job| job.did == account.id && job.cid == cid);
    if let Some(job) = earlier.filter(|job| job.state(tx).0 == "JOB_STATE_COMPLETED") {
        return (job, true);
    }
    let mime = first.mime.clone().unwrap_or_default();
    let job = Job {
        id: identifier(),
        did: account.id.clone(),
        cid: cid.clone(),
        size_bytes,
        // An animated image becomes a video.
        is_video: mime.starts_with("video/") || mime == "image/gif",
        is_stuck: name.contains("sandbox-stuck"),
        is_failing: name.contains("sandbox-failed"),
        started_at: tx.now,
    };
    tx.store.put(&job);
    // The service's output is always an MP4.
    tx.store.put(&blobs::Blob {
        did: account.id.clone(),
        cid,
        mime: "video/mp4".into(),
        size: size_bytes,
        files,
        job: Some(job.id.clone()),
    });
    (job, false)
}

/// Returns the documentation wraps a job's status, the service does not; clients read one or the other.
fn wrapped(status: Value) -> Value {
    let mut both = status.clone();
    both["jobStatus"] = status;
    both
}

/// Admits an upload. The token is issued for the account's server, which the service uploads to.
fn uploader(tx: &Transaction, request: &Request) -> Result<Account, Response> {
    let own = super::method(request);
    let account =
        admit_service(tx, request, &[super::SERVICE_DID, DID], &["com.atproto.repo.uploadBlob", own])?;
    match request.query("did").map(|did| actor_account(tx, did)) {
        Some(Some(named)) if named.id != account.id => {
            Err(refusal(State, 403, "Forbidden", "The token is another account's"))
        }
        _ => Ok(account::by_id(tx.store, ID, &account.id).unwrap_or(account)),
    }
}

fn used(tx: &Transaction, did: &str) -> (u64, u64) {
    let today = tx
        .store
        .with_prefix::<Job>("")
        .filter(|job| job.did == did && tx.now - job.started_at < TimeDelta::days(1));
    today.fold((0, 0), |(videos, bytes), job| (videos + 1, bytes + job.size_bytes))
}

fn allow(tx: &Transaction, account: &Account) -> Result<(), Response> {
    let limit = |name: &str, documented: u64| tx.settings.limits.get(name).copied().unwrap_or(documented);
    let (videos, bytes) = used(tx, &account.id);
    if videos >= limit("bluesky.videos_day", DAILY_VIDEOS) || bytes >= DAILY_BYTES {
        return Err(refusal(State, 400, "DailyLimitExceeded", "User has reached the daily limit"));
    }
    Ok(())
}

fn own(tx: &Transaction, account: &Account, id: &str) -> Result<Parts, Response> {
    let parts: Option<Parts> = tx.store.get(id);
    parts
        .filter(|parts| parts.did == account.id)
        .ok_or_else(|| refusal(State, 400, "UploadNotFound", "Upload not found"))
}

fn open(tx: &Transaction, account: &Account, id: &str) -> Result<Parts, Response> {
    let parts = own(tx, account, id)?;
    match parts.state(tx) {
        "completed" => Err(refusal(State, 400, "UploadAlreadyCompleted", "The upload is complete")),
        "aborted" => Err(refusal(State, 400, "UploadAborted", "The upload was aborted")),
        "expired" => Err(refusal(State, 400, "UploadExpired", "The upload has expired")),
        _ => Ok(parts),
    }
}

fn identifier() -> String {
    hex::encode(rand::random::<[u8; 12]>())
}
