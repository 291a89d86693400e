//! Videos and animations, over the service that makes them playable: <https://docs.bsky.app/docs/tutorials/video>.
//!
//! The service processes a video as a job, and puts the result into the account's repository. As Bluesky's own app does, a
//! large video is uploaded in parts, each of which may be repeated; a service that has no such upload gets it in one
//! request. <https://github.com/bluesky-social/atproto/blob/main/lexicons/app/bsky/video/startUpload.json>

use super::{
    BLOB_TTL, Bluesky,
    identity::{home_server, pds_endpoint, public_origin, session_account},
};
use crate::{
    Media, MediaKind, Reply, Result, Session, classify, required,
    upload::{Begun, Processing, Sent, Upload, Uploaded},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// The video service.
const VIDEO: &str = "https://video.bsky.app";
/// The video service's name in service tokens.
const VIDEO_DID: &str = "did:web:video.bsky.app";
/// Lifetime of the token that the video service gets.
const SERVICE_TOKEN_TTL: TimeDelta = TimeDelta::minutes(30);
/// Time between two polls of a video.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Wait after the daily video quota is used up.
const VIDEO_QUOTA_BACKOFF: Duration = Duration::from_secs(6 * 3600);
/// Size from which a video is uploaded in parts, as by Bluesky's own app: a part has 8 MiB.
const LEAST_IN_PARTS: u64 = 16 << 20;

#[async_trait]
impl Upload for Bluesky {
    type Ticket = Blob;

    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Blob>> {
        let home = home_server(cx)?;
        let blob = match media.kind {
            MediaKind::Image => {
                let call = cx.post(format!("{home}/xrpc/com.atproto.repo.uploadBlob"));
                let call = call.upload(&media.mime, media.size_bytes, cx.stream(media));
                Blob::Ready(call.send::<UploadedBlob>().await?.blob)
            }
            MediaKind::Video | MediaKind::Gif => {
                check_upload_limits(cx, &home, media).await?;
                if media.size_bytes >= LEAST_IN_PARTS
                    && let Some(begun) = start_in_parts(cx, &home, media).await
                {
                    return Ok(begun);
                }
                upload_whole(cx, &home, media).await?
            }
            kind => return Err(Failure::rejected(415, format!("Bluesky takes no media of kind {kind}"))),
        };
        let state = match &blob {
            Blob::Ready(_) => Processing::Done,
            Blob::Job(_) | Blob::Parts(_) => Processing::Busy(POLL_INTERVAL),
        };
        Ok(Begun { ticket: blob, expires_at: Some((cx.now)() + BLOB_TTL), sent: Sent::Whole(state) })
    }

    async fn send(
        &self,
        cx: &Session<'_>,
        media: &Media,
        upload: &mut Uploaded<Blob>,
        part: u64,
    ) -> Result<Sent> {
        let Blob::Parts(parts) = &upload.ticket else { return Ok(Sent::All) };
        let start = part * parts.size_bytes;
        let end = (start + parts.size_bytes).min(media.size_bytes);
        let number = (part + 1).to_string();
        let token = upload_token(cx, &home_server(cx)?).await?;
        let reply = cx
            .post(format!("{VIDEO}/xrpc/app.bsky.video.uploadPart"))
            .query(&[("jobId", parts.job.as_str()), ("partNumber", number.as_str())])
            .without_grant()
            .bearer(&token)
            .upload("application/octet-stream", end - start, cx.slice(media, start..end))
            .send_raw()
            .await?;
        match reply.body["error"].as_str() {
            // An earlier attempt finished the upload, which can be repeated.
            Some("UploadAlreadyCompleted") => return Ok(Sent::All),
            Some(error) if is_lost(error) => return Ok(Sent::Whole(begin_again(&reply))),
            _ => {}
        }
        reply.into_result(cx.platform)?;
        Ok(if end < media.size_bytes { Sent::Next(part + 1) } else { Sent::All })
    }

    async fn finish(
        &self,
        cx: &Session<'_>,
        _media: &Media,
        upload: &mut Uploaded<Blob>,
    ) -> Result<Processing> {
        let Blob::Parts(parts) = &upload.ticket else { return Ok(Processing::Done) };
        let token = upload_token(cx, &home_server(cx)?).await?;
        let reply = cx
            .post(format!("{VIDEO}/xrpc/app.bsky.video.finishUpload"))
            .without_grant()
            .bearer(&token)
            .json(&json!({ "jobId": parts.job }))
            .send_raw()
            .await?;
        match reply.body["error"].as_str() {
            // An earlier call is at it. It is asked again, and answers the job once there is one.
            Some("UploadNotReady") => {
                return Err(Failure::upstream(503, classify::message(&reply)).certain());
            }
            Some(error) if error == "MissingParts" || is_lost(error) => return Ok(begin_again(&reply)),
            _ => {}
        }
        let reply = reply.into_result(cx.platform)?;
        // The same bytes may have been processed before, by another job.
        let job = reply.body["completedJobId"].as_str().unwrap_or(&parts.job).to_owned();
        let status = read_job(&reply)?;
        upload.expires_at = Some((cx.now)() + BLOB_TTL);
        let (ticket, state) = match status.blob {
            Some(blob) => (Blob::Ready(blob), Processing::Done),
            None => (Blob::Job(job), Processing::Busy(POLL_INTERVAL)),
        };
        upload.ticket = ticket;
        Ok(state)
    }

    async fn status(
        &self,
        cx: &Session<'_>,
        _media: &Media,
        upload: &mut Uploaded<Blob>,
    ) -> Result<Processing> {
        let Blob::Job(job) = &upload.ticket else { return Ok(Processing::Done) };
        Ok(match job_state(cx, job).await? {
            Job::Done(blob) => {
                upload.ticket = Blob::Ready(blob);
                upload.expires_at = Some((cx.now)() + BLOB_TTL);
                Processing::Done
            }
            Job::Busy => Processing::Busy(POLL_INTERVAL),
            Job::Failed(failure) => Processing::Failed(failure),
        })
    }
}

/// Asks the service whether the account may upload a video now.
async fn check_upload_limits(cx: &Session<'_>, home: &str, media: &Media) -> Result<()> {
    let token = service_token(cx, home, VIDEO_DID, "app.bsky.video.getUploadLimits").await?;
    let limits: UploadLimits = cx
        .get(format!("{VIDEO}/xrpc/app.bsky.video.getUploadLimits"))
        .without_grant()
        .bearer(&token)
        .send()
        .await?;
    if !limits.can_upload {
        let message =
            limits.message.or(limits.error).unwrap_or_else(|| "no video may be uploaded".to_owned());
        let is_used_up = limits.remaining_daily_videos.is_some_and(|left| left <= 0)
            || limits.remaining_daily_bytes.is_some_and(|left| left < media.size_bytes as i64);
        return Err(match is_used_up {
            true => Failure::rate_limited(message, Some(VIDEO_QUOTA_BACKOFF)),
            false => Failure::rejected(403, message),
        });
    }
    Ok(())
}

/// Begins an upload in parts; `None` if that fails for any reason, since the upload in one request has the last word.
async fn start_in_parts(cx: &Session<'_>, home: &str, media: &Media) -> Option<Begun<Blob>> {
    let token = upload_token(cx, home).await.ok()?;
    let request = json!({ "sizeBytes": media.size_bytes, "mimeType": media.mime, "name": file_name(media) });
    let call = cx.post(format!("{VIDEO}/xrpc/app.bsky.video.startUpload")).without_grant().bearer(&token);
    let started: Result<Started> = call.json(&request).send().await;
    let Started { job_id, part_size_bytes, part_count, expires_at } = match started {
        Ok(started) => started,
        Err(failure) => {
            tracing::debug!(media.id = %media.id, %failure, "Bluesky takes no upload in parts now");
            return None;
        }
    };
    let is_plan = part_size_bytes > 0 && media.size_bytes.div_ceil(part_size_bytes) == part_count;
    is_plan.then_some(Begun {
        ticket: Blob::Parts(Parts { job: job_id, size_bytes: part_size_bytes }),
        expires_at: Some(expires_at),
        sent: Sent::Next(0),
    })
}

/// Returns true for an error of an upload that no call can complete.
fn is_lost(error: &str) -> bool {
    ["UploadNotFound", "UploadExpired", "UploadFailed", "UploadAborted"].contains(&error)
}

/// Drops an upload, so that the next attempt begins another.
fn begin_again(reply: &Reply) -> Processing {
    Processing::Failed(Failure::upstream(502, classify::message(reply)).certain())
}

/// Returns the name of the file at the service.
fn file_name(media: &Media) -> String {
    if media.filename.is_empty() { format!("{}.mp4", media.id) } else { media.filename.clone() }
}

/// Returns a token with which the service stores the result in the account's name: one for the account's server.
async fn upload_token(cx: &Session<'_>, home: &str) -> Result<String> {
    let pds = resolved_pds(cx, home).await?;
    let audience = format!("did:web:{}", pds.strip_prefix("https://").unwrap_or(&pds).replace(':', "%3A"));
    service_token(cx, home, &audience, "com.atproto.repo.uploadBlob").await
}

/// Sends a video in one request.
async fn upload_whole(cx: &Session<'_>, home: &str, media: &Media) -> Result<Blob> {
    let token = upload_token(cx, home).await?;
    let name = file_name(media);
    let reply = cx
        .post(format!("{VIDEO}/xrpc/app.bsky.video.uploadVideo"))
        .query(&[("did", cx.account.network_unique_id.as_str()), ("name", name.as_str())])
        .without_grant()
        .bearer(&token)
        .upload(&media.mime, media.size_bytes, cx.stream(media))
        .send_raw()
        .await?;
    // The same bytes were uploaded before: the result of the first job is used.
    let exists = reply.status.as_u16() == 409 && reply.body["error"] == "already_exists";
    let reply = if exists { reply } else { reply.into_result(cx.platform)? };
    let job = read_job(&reply)?;
    match job.blob {
        Some(blob) => Ok(Blob::Ready(blob)),
        None => Ok(Blob::Job(job.job_id)),
    }
}

/// Returns the job in a response. The lexicon wraps it; the production service does not.
fn read_job(reply: &Reply) -> Result<JobStatus> {
    let status = match &reply.body["jobStatus"] {
        Value::Null => &reply.body,
        wrapped => wrapped,
    };
    serde_json::from_value(status.clone()).map_err(|error| {
        Failure::upstream(502, format!("the video service answered what can't be read: {error}")).certain()
    })
}

async fn job_state(cx: &Session<'_>, job_id: &str) -> Result<Job> {
    let reply = cx
        .get(format!("{VIDEO}/xrpc/app.bsky.video.getJobStatus"))
        .without_grant()
        .query(&[("jobId", job_id)])
        .reply()
        .await?;
    let status = read_job(&reply)?;
    if let Some(blob) = status.blob {
        return Ok(Job::Done(blob));
    }
    if status.state != "JOB_STATE_FAILED" {
        return Ok(Job::Busy);
    }
    let code = status.failure_code.unwrap_or_default();
    let reason = status.message.or(status.error).unwrap_or_else(|| code.clone());
    let message = format!("Bluesky could not process the video: {reason}");
    Ok(Job::Failed(match code.as_str() {
        // An internal error of the service is transient; an error of the video is permanent.
        "pds_upload_failure" | "generic_failure" | "" => Failure::upstream(500, message).certain(),
        _ => Failure::rejected(400, message),
    }))
}

/// Returns a token with which another service may make one kind of call in the account's name.
async fn service_token(cx: &Session<'_>, home: &str, audience: &str, method: &str) -> Result<String> {
    let until = ((cx.now)() + SERVICE_TOKEN_TTL).timestamp().to_string();
    let granted: ServiceToken = cx
        .get(format!("{home}/xrpc/com.atproto.server.getServiceAuth"))
        .query(&[("aud", audience), ("lxm", method), ("exp", until.as_str())])
        .send()
        .await?;
    Ok(granted.token)
}

/// Returns the account's own server; requests it if the grant does not contain it.
async fn resolved_pds(cx: &Session<'_>, home: &str) -> Result<String> {
    if cx.grant.extra["pds"].is_string() {
        return Ok(home.to_owned());
    }
    let me = session_account(cx, home).await?;
    match pds_endpoint(&me.did_doc) {
        Some(pds) => public_origin(pds),
        None => Ok(home.to_owned()),
    }
}

enum Job {
    Busy,
    Done(Value),
    Failed(Failure),
}

#[derive(Deserialize)]
struct ServiceToken {
    #[serde(deserialize_with = "required::token")]
    token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UploadLimits {
    can_upload: bool,
    remaining_daily_videos: Option<i64>,
    remaining_daily_bytes: Option<i64>,
    message: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobStatus {
    job_id: String,
    #[serde(default)]
    state: String,
    blob: Option<Value>,
    error: Option<String>,
    failure_code: Option<String>,
    message: Option<String>,
}

/// A new upload in parts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    #[serde(deserialize_with = "required::id")]
    job_id: String,
    part_size_bytes: u64,
    part_count: u64,
    expires_at: DateTime<Utc>,
}

/// A medium in the account's repository.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Blob {
    /// It is being uploaded in parts.
    Parts(Parts),
    /// The video service is processing it, under this job id.
    Job(String),
    /// The reference that a record contains.
    Ready(Value),
}

impl Blob {
    pub(super) fn value(&self) -> &Value {
        match self {
            Self::Ready(blob) => blob,
            Self::Job(_) | Self::Parts(_) => &Value::Null,
        }
    }
}

/// An upload in parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Parts {
    /// The upload's id at the video service.
    job: String,
    /// Size of each part but the last.
    size_bytes: u64,
}

#[derive(Deserialize)]
pub(super) struct UploadedBlob {
    pub(super) blob: Value,
}
