//! Files of media assets: promoted from the upload area, inspected, downloaded and deleted.
//!
//! An upload arrives in an area of its own. `confirm` moves it to where no PUT reaches it, and only then inspects
//! it: headers within bounds, never pixels. A file that could be two things, ends too early or contradicts what was
//! declared is refused for good. Up to [`INLINE_LIMIT`] the whole file is hashed while the client waits; of a larger
//! one the headers are inspected, and the workflow `ProcessMedia` does the rest. The same workflow makes the thumbnail
//! of a picture that is ready, downloads imports, redirect by redirect, and deletes files of deleted assets. Files are
//! streamed, whatever their size.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    heartbeat::with_heartbeat,
    share::{self, Shares},
};
use ::media::{self as files, UploadError};
use anyhow::Context;
use chrono::TimeDelta;
use domain::{
    Fit, MediaStatus, Owner,
    media::{DeclaredFile, Metadata},
    outbox::{MediaAction, MediaJob},
};
use futures::TryStreamExt;
use reqwest::{StatusCode, header};
use std::{io, sync::Arc, time::Duration};
use store::{
    bounds::unbounded,
    media::{Fault, Inspected, Reason, SettleResult},
    usage::ceilings::Exceeded,
};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::{info, warn};
use url::Url;
use workflows::{
    activities::{ConfirmResult, MediaFailure, MediaRef, definition},
    worker_request::CALL_TIMEOUT,
};

/// Largest file that is hashed while the client waits, in bytes.
const INLINE_LIMIT: u64 = 32 << 20;
/// Time limit of a confirmation, before its client gives up.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(20);
const _: () = assert!(CONFIRM_TIMEOUT.as_secs() < CALL_TIMEOUT.as_secs());
/// Time limit of promoting a file, plus its size at [`COPY_RATE`].
const PROMOTE_TIMEOUT: TimeDelta = TimeDelta::seconds(30);
/// Copy rate of a slow store, in bytes per second.
const COPY_RATE: u64 = 10 << 20;
/// Age at which an unfinished upload is deleted: longer than any may take.
const ORPHAN_AGE: TimeDelta = TimeDelta::hours(48);
/// Number of assets that one batch deletes.
const BATCH: i64 = 200;
/// Most redirects of a download.
const MAX_REDIRECTS: usize = 5;
/// Longest pause of a download.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Least average rate of a download, in bytes per second: each download uses a slot that others wait for.
const MIN_RATE: u64 = 64 << 10;
/// Time limit of a download.
const FETCH_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// Wait for a worker that has time to decode a picture.
const DECODING_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks at a file that another worker moves.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Activities on files of media assets.
pub(crate) struct Media {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Shares,
}

#[activities]
impl Media {
    #[activity(definition = definition::ConfirmMedia)]
    pub(crate) async fn confirm_media(
        self: Arc<Self>,
        _cx: ActivityContext,
        asset: MediaRef,
    ) -> Result<ConfirmResult, ActivityError> {
        Ok(self.shares.serve(asset.owner.org, CONFIRM_TIMEOUT, self.confirm(asset)).await?)
    }

    #[activity(definition = definition::ProcessMedia)]
    pub(crate) async fn process_media(
        self: Arc<Self>,
        cx: ActivityContext,
        job: MediaJob,
    ) -> Result<(), ActivityError> {
        let _share = match (job.what, self.shares.take(job.owner.org, (self.deps.engine.jitter)())) {
            (_, Ok(share)) => Some(share),
            // Short, and it frees storage.
            (MediaAction::Discard, Err(_)) => None,
            (_, Err(wait)) => return Err(share::crowded(wait)),
        };
        let work = async {
            let (name, done) = match job.what {
                MediaAction::Fetch => ("fetch", self.fetch(&job).await),
                MediaAction::Probe => ("probe", self.probe(&job).await),
                MediaAction::Discard => ("discard", self.discard(&job).await),
            };
            telemetry::metrics::media_job(name, done.is_ok());
            done.map_err(|error| match error.downcast_ref() {
                // Waits in the workflow, without a slot.
                Some(files::FitError::NotNow(_)) => share::crowded(DECODING_WAIT),
                _ => error.into(),
            })?;
            if job.what == MediaAction::Probe {
                self.make_thumbnail(&job).await?;
            }
            Ok(())
        };
        with_heartbeat(&cx, work).await
    }

    #[activity(definition = definition::FailMedia)]
    pub(crate) async fn fail_media(
        self: Arc<Self>,
        _cx: ActivityContext,
        failure: MediaFailure,
    ) -> Result<(), ActivityError> {
        let job = &failure.job;
        let what = if job.what == MediaAction::Fetch { "fetched" } else { "read" };
        let message = format!("it could not be {what}: {}", failure.message);
        Ok(self.refuse(job, Fault { reason: Reason::Unfetched, message }).await?)
    }

    #[activity(definition = definition::CleanUpMedia)]
    pub(crate) async fn clean_up_media(self: Arc<Self>, _cx: ActivityContext) -> Result<bool, ActivityError> {
        let (deps, now) = (&self.deps, (self.deps.engine.now)());
        let expired = store::media::expire(&deps.engine.db, deps.retention, BATCH, now).await?;
        let swept = deps.engine.media.remove_orphans(now - ORPHAN_AGE).await?;
        if expired + swept > 0 {
            info!(expired, swept, "Deleted {expired} media assets and {swept} strays");
        }
        Ok(expired as i64 == BATCH)
    }
}

impl Media {
    /// Inspects the uploaded file of an asset.
    async fn confirm(&self, asset: MediaRef) -> anyhow::Result<ConfirmResult> {
        let MediaRef { media, owner } = asset;
        let Some(row) = store::media::get(&self.deps.engine.db, unbounded(owner), media).await? else {
            return Ok(ConfirmResult::Settled);
        };
        if row.status != MediaStatus::PendingUpload {
            return Ok(ConfirmResult::Settled);
        }
        let file = file(owner, &row);
        match self.deps.engine.media.uploaded_size(&file).await? {
            Some(size) if row.source_url.is_none() => {
                let is_whole = size <= INLINE_LIMIT;
                self.accept_or_refuse(owner, &row, &file, size, is_whole.then_some(Patience::Client)).await?;
                Ok(ConfirmResult::Settled)
            }
            _ => Ok(ConfirmResult::Missing),
        }
    }

    /// Inspects a file and accepts or refuses it: as a whole, or at first only its headers. No client waits until a picture
    /// is decoded.
    async fn accept_or_refuse(
        &self,
        owner: Owner,
        row: &store::media::Media,
        file: &files::StoredFile,
        size: u64,
        whole: Option<Patience>,
    ) -> anyhow::Result<()> {
        if whole.is_some() {
            self.promote_file(owner, row, file, size).await?;
        }
        let job = MediaJob { what: MediaAction::Probe, media: row.id, owner };
        let found = match self.deps.engine.media.inspect(file, size, &row.declared).await {
            Ok(found) => found,
            Err(files::Fault::Refused(refusal)) => {
                let reason = match refusal {
                    files::Refusal::TooLarge(_) => Reason::TooLarge,
                    files::Refusal::Unfit(_) => Reason::Unfit,
                };
                return self.refuse(&job, Fault { reason, message: refusal.to_string() }).await;
            }
            Err(files::Fault::Store(error)) => return Err(error.into()),
        };
        let is_converted = Fit::CONVERTED.contains(&found.content_type);
        let is_whole = whole.is_some_and(|patience| !is_converted || patience == Patience::Workflow);
        let sha256 = if is_whole { Some(self.deps.engine.media.digest(file, size).await?) } else { None };
        if let (Some(found), Some(claimed)) = (&sha256, &row.declared.sha256)
            && found != claimed
        {
            let message = format!("the bytes have the SHA-256 {found}, and {claimed} was announced");
            return self.refuse(&job, Fault { reason: Reason::Unfit, message }).await;
        }
        if is_whole
            && is_converted
            && let Some(reason) = self.decode(file, &found, size).await?
        {
            let message = format!("the picture can't be converted: {reason}; save it as JPEG or PNG");
            return self.refuse(&job, Fault { reason: Reason::Unfit, message }).await;
        }
        let mut found = inspected(found, size, sha256);
        if is_whole {
            match self.find_metadata(file, size, &found.content_type).await? {
                Ok(metadata) => found.metadata = metadata,
                Err(reason) => found.facts.uncleanable = Some(reason),
            }
        }
        let db = &self.deps.engine.db;
        match store::media::settle(db, owner, row.id, &found, (self.deps.engine.now)()).await? {
            SettleResult::Settled => info!(
                media.id = %row.id, org.id = %owner.org, kind = %found.kind, size,
                "Medium {} is a file of {size} bytes, {}", row.id, found.content_type
            ),
            SettleResult::WasSettled => {}
            SettleResult::Exceeded(Exceeded { limit, used }) => {
                let message = format!(
                    "it has {size} bytes, and {used} of the {limit} bytes that the plan has room for are in use"
                );
                return self.refuse(&job, Fault { reason: Reason::TooLarge, message }).await;
            }
        }
        Ok(())
    }

    /// Tries to decode a picture of which every platform gets renditions only, and returns why it can't be. The thumbnail
    /// that is made of it is kept.
    async fn decode(
        &self,
        file: &files::StoredFile,
        found: &files::FileProperties,
        size: u64,
    ) -> anyhow::Result<Option<String>> {
        let engine = &self.deps.engine;
        let (width, height) = (found.width.unwrap_or_default(), found.height.unwrap_or_default());
        let Some(fit) = Fit::thumbnail(found.content_type, width, height) else {
            return Ok(Some(format!("it has more than {} million pixels", Fit::MAX_PIXELS / 1_000_000)));
        };
        match engine.media.fit(file, size, &fit, &engine.stop).await {
            Ok(_) => Ok(None),
            Err(files::FitError::Undecodable(reason) | files::FitError::Unfit(reason)) => Ok(Some(reason)),
            Err(error @ (files::FitError::NotNow(_) | files::FitError::Store(_))) => Err(error.into()),
        }
    }

    /// Finds what a file holds besides its content, or returns why its metadata can't be removed.
    async fn find_metadata(
        &self,
        file: &files::StoredFile,
        size: u64,
        content_type: &str,
    ) -> anyhow::Result<Result<Option<Metadata>, String>> {
        match self.deps.engine.media.metadata(file, size, content_type).await {
            Ok(metadata) => Ok(Ok(metadata)),
            Err(files::FitError::Undecodable(reason) | files::FitError::Unfit(reason)) => {
                info!(media.id = %file.media, "Medium {} can't be cleaned: {reason}", file.media);
                Ok(Err(reason))
            }
            Err(error @ (files::FitError::NotNow(_) | files::FitError::Store(_))) => Err(error.into()),
        }
    }

    /// Makes the picture that stands for a file in lists, if the file is one that has it: nobody waits for it, and who
    /// shows the file does without it. That a file can't be decoded is found out here, and kept with it.
    async fn make_thumbnail(&self, job: &MediaJob) -> Result<(), ActivityError> {
        let engine = &self.deps.engine;
        let row = store::media::get(&engine.db, unbounded(job.owner), job.media).await?;
        let Some(row) = row.filter(|row| row.status == MediaStatus::Ready) else { return Ok(()) };
        let mime = row.content_type.as_deref().unwrap_or_default();
        let fit = row.width.zip(row.height).and_then(|(width, height)| Fit::thumbnail(mime, width, height));
        let (Some(fit), Some(size)) = (fit, row.size) else { return Ok(()) };
        let (media, file) = (job.media, file(job.owner, &row));
        match engine.media.fit(&file, size, &fit, &engine.stop).await {
            // Deleted meanwhile, and its files perhaps before this one was there.
            Ok(_) if store::media::get(&engine.db, unbounded(job.owner), media).await?.is_none() => {
                Ok(engine.media.discard(&file).await.map_err(anyhow::Error::from)?)
            }
            Ok(_) => Ok(()),
            Err(files::FitError::Undecodable(reason)) => {
                info!(media.id = %media, "Medium {media} can't be decoded: {reason}");
                let (db, now) = (&engine.db, (engine.now)());
                Ok(store::media::note_undecodable(db, job.owner, media, &reason, now)
                    .await
                    .map_err(anyhow::Error::from)?)
            }
            Err(files::FitError::Unfit(reason)) => {
                info!(media.id = %media, "Medium {media} has no thumbnail: {reason}");
                Ok(())
            }
            Err(files::FitError::NotNow(_)) => Err(share::crowded(DECODING_WAIT)),
            Err(files::FitError::Store(error)) => Err(anyhow::Error::from(error).into()),
        }
    }

    /// Promotes a file, unless that was done. One worker at a time does it: a second one that came late would
    /// replace bytes that the first has inspected. If another worker holds the claim, waits until it finishes or
    /// the claim expires. So that it finishes, it goes on when nobody waits for it any more.
    async fn promote_file(
        &self,
        owner: Owner,
        row: &store::media::Media,
        file: &files::StoredFile,
        size: u64,
    ) -> anyhow::Result<()> {
        let limit = PROMOTE_TIMEOUT + TimeDelta::seconds((size / COPY_RATE).cast_signed());
        let mut is_moved = false;
        while !self.deps.engine.media.has(file).await? {
            let now = (self.deps.engine.now)();
            if store::media::claim_processing(
                &self.deps.engine.db,
                owner,
                row.id,
                now - limit - PROMOTE_TIMEOUT,
                now,
            )
            .await?
            {
                let (store, file, limit) = (self.deps.engine.media.clone(), file.clone(), limit.to_std()?);
                let taking = async move { tokio::time::timeout(limit, store.promote(&file)).await };
                let taken = tokio::spawn(taking).await.context("the file was not taken in")?;
                taken.context("the store did not take the file in in time")??;
                is_moved = true;
            } else if store::media::get(&self.deps.engine.db, unbounded(owner), row.id).await?.is_none() {
                anyhow::bail!("the asset was deleted");
            } else {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        if !is_moved {
            // Its worker may have stopped between the copy and this. What stays is deleted with the asset.
            if let Err(error) = self.deps.engine.media.unstage(file).await {
                warn!(media.id = %row.id, "The upload of medium {} was not deleted: {error}", row.id);
            }
        }
        Ok(())
    }

    /// Marks an asset as failed and deletes its file.
    async fn refuse(&self, job: &MediaJob, fault: Fault) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        if store::media::fail(&self.deps.engine.db, owner, media, &fault, (self.deps.engine.now)()).await? {
            info!(media.id = %media, org.id = %owner.org, "Medium {media} was refused: {}", fault.message);
        }
        if let Some(row) = store::media::find_deleted(&self.deps.engine.db, owner, media).await?
            && row.status == MediaStatus::Failed
        {
            self.deps.engine.media.discard(&file(owner, &row)).await?;
        }
        Ok(())
    }

    /// Inspects the whole of a file whose headers were inspected before.
    async fn probe(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        let Some(row) = store::media::get(&self.deps.engine.db, unbounded(owner), media).await? else {
            return Ok(());
        };
        if row.status != MediaStatus::Uploaded {
            return Ok(());
        }
        let file = file(owner, &row);
        let Some(size) = self.deps.engine.media.uploaded_size(&file).await? else {
            let message = "its bytes are not there any more".to_owned();
            return self.refuse(job, Fault { reason: Reason::Unfetched, message }).await;
        };
        self.accept_or_refuse(owner, &row, &file, size, Some(Patience::Workflow)).await
    }

    /// Downloads the file of an import.
    async fn fetch(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        let Some(row) = store::media::get(&self.deps.engine.db, unbounded(owner), media).await? else {
            return Ok(());
        };
        let (MediaStatus::PendingUpload, Some(source)) = (row.status, &row.source_url) else { return Ok(()) };
        let file = file(owner, &row);
        if !self.deps.engine.media.has(&file).await? {
            let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.download(owner, source, &file)).await;
            let refused = |reason, message| self.refuse(job, Fault { reason, message });
            match fetched {
                Ok(Ok(())) => {}
                Ok(Err(FetchError::Permanent(reason, message))) => return refused(reason, message).await,
                Ok(Err(FetchError::Transient(error))) => return Err(error),
                Err(_) => anyhow::bail!("it did not arrive within {} minutes", FETCH_TIMEOUT.as_secs() / 60),
            }
        }
        let size = self.deps.engine.media.uploaded_size(&file).await?;
        self.accept_or_refuse(owner, &row, &file, size.unwrap_or_default(), Some(Patience::Workflow)).await
    }

    /// Downloads the file at an address into the store.
    async fn download(&self, owner: Owner, source: &str, file: &files::StoredFile) -> Result<(), FetchError> {
        let unfetched = |message: String| FetchError::Permanent(Reason::Unfetched, message);
        let mut url = Url::parse(source).map_err(|error| unfetched(error.to_string()))?;
        for _ in 0..=MAX_REDIRECTS {
            // Each redirect is checked, and its host name again when it is resolved.
            let client = self.deps.egress.client(owner.mode, &url).map_err(unfetched)?;
            let request =
                client.get(url.clone()).header(header::USER_AGENT, USER_AGENT).header(header::ACCEPT, "*/*");
            let sent = tokio::time::timeout(IDLE_TIMEOUT, request.send()).await;
            let answer = match sent {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) if egress::is_blocked(&error) => {
                    return Err(unfetched("the address is not a public one".to_owned()));
                }
                Ok(Err(error)) => return Err(FetchError::Transient(error.without_url().into())),
                Err(_) => {
                    return Err(FetchError::Transient(anyhow::anyhow!(
                        "no answer within {} s",
                        IDLE_TIMEOUT.as_secs()
                    )));
                }
            };
            let status = answer.status();
            if status.is_redirection() {
                let next = answer.headers().get(header::LOCATION).and_then(|next| next.to_str().ok());
                let next = next.and_then(|next| url.join(next).ok());
                url = next.ok_or_else(|| unfetched(format!("it answered {status} and leads nowhere")))?;
                continue;
            }
            match status {
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                    return Err(FetchError::Transient(anyhow::anyhow!("it answered {status}")));
                }
                status if status.is_server_error() => {
                    return Err(FetchError::Transient(anyhow::anyhow!("it answered {status}")));
                }
                status if !status.is_success() => return Err(unfetched(format!("it answered {status}"))),
                _ => {}
            }
            let length = answer.content_length();
            let room = store::media::room(&self.deps.engine.db, owner, file.media).await;
            let room = room.map_err(|error| FetchError::Transient(error.into()))?;
            let most = self.deps.engine.media.size_limits().for_declared(None).min(room.unwrap_or(u64::MAX));
            if let Some(length) = length.filter(|length| *length > most) {
                return Err(FetchError::Permanent(
                    Reason::TooLarge,
                    format!("it has {length} bytes, and at most {most} are taken"),
                ));
            }
            let pieces = answer.bytes_stream().map_err(io::Error::other);
            let tempo = files::MinRate { idle_timeout: IDLE_TIMEOUT, bytes_per_second: MIN_RATE };
            return match self
                .deps
                .engine
                .media
                .receive(file, pieces, most, &DeclaredFile::default(), tempo)
                .await
            {
                Ok(_) => Ok(()),
                Err(error @ UploadError::TooLarge(_)) => {
                    Err(FetchError::Permanent(Reason::TooLarge, error.to_string()))
                }
                Err(error) => Err(FetchError::Transient(error.into())),
            };
        }
        Err(unfetched(format!("it leads elsewhere more than {MAX_REDIRECTS} times")))
    }

    /// Deletes the file of a deleted asset, and then its row.
    async fn discard(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        if store::media::get(&self.deps.engine.db, unbounded(owner), media).await?.is_some() {
            return Ok(());
        }
        if let Some(row) = store::media::find_deleted(&self.deps.engine.db, owner, media).await? {
            self.deps.engine.media.discard(&file(owner, &row)).await?;
            store::media::erase(&self.deps.engine.db, owner, media).await?;
        }
        Ok(())
    }
}

/// `User-Agent` of downloads.
const USER_AGENT: &str = concat!("Fanfare-Media/", env!("CARGO_PKG_VERSION"));

/// Who waits until a whole file is inspected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// A client that confirms an upload.
    Client,
    /// A workflow.
    Workflow,
}

/// Why a download failed.
enum FetchError {
    /// Another try would fail too.
    Permanent(Reason, String),
    /// Another try may succeed.
    Transient(anyhow::Error),
}

fn inspected(found: files::FileProperties, size: u64, sha256: Option<String>) -> Inspected {
    Inspected {
        kind: found.kind,
        content_type: found.content_type.to_owned(),
        size,
        width: found.width,
        height: found.height,
        frames: found.frames,
        duration_ms: found.duration.and_then(|duration| u64::try_from(duration.as_millis()).ok()),
        facts: found.facts,
        sha256,
        metadata: None,
    }
}

fn file(owner: Owner, row: &store::media::Media) -> files::StoredFile {
    files::StoredFile { media: row.id, owner, filename: row.filename.clone(), rendition: None }
}
