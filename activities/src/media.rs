//! The bytes of media: taken in, looked at, fetched from where their owner says, handed to adapters, and
//! discarded.
//!
//! What was taken in is never changed any more; only then is it looked at, and only what was looked at is
//! published. A file passes through in pieces, whatever its size.

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
    MediaStatus, Owner,
    outbox::{MediaAction, MediaJob},
};
use futures::TryStreamExt;
use reqwest::{StatusCode, header};
use std::{io, sync::Arc, time::Duration};
use store::media::{Fault, Found, Reason};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use url::Url;
use workflows::activities::{ConfirmResult, MediaFailure, MediaRef, definition};

/// Up to this size a file is read as a whole while its owner waits.
const INLINE_LIMIT: u64 = 32 << 20;
/// How long one that takes a file in is given, beside what a large one takes.
const PROMOTE_TIMEOUT: TimeDelta = TimeDelta::seconds(30);
/// Bytes that a slow store copies in a second.
const COPY_RATE: u64 = 10 << 20;
/// How long bytes are awaited in all.
const UPLOAD_TTL: TimeDelta = TimeDelta::hours(24);
/// After this, what never came to an end is swept away: longer than anything may take.
const ORPHAN_AGE: TimeDelta = TimeDelta::hours(48);
/// Assets that are deleted at once.
const BATCH: i64 = 200;
/// How often a fetch may be sent elsewhere.
const MAX_REDIRECTS: usize = 5;
/// How long an address may say nothing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The slowest average that a file is fetched at, in bytes per second: one that is fetched takes a place
/// that others wait for.
const MIN_RATE: u64 = 64 << 10;
/// How long fetching may take in all.
const FETCH_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// Pause between two looks at a file that another worker moves.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The activities about media.
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
        let _share = self.shares.admit(asset.owner.org)?;
        Ok(self.confirm(asset).await?)
    }

    #[activity(definition = definition::ProcessMedia)]
    pub(crate) async fn process_media(
        self: Arc<Self>,
        cx: ActivityContext,
        job: MediaJob,
    ) -> Result<(), ActivityError> {
        let _share = match (job.what, self.shares.take(job.owner.org, (self.deps.engine.jitter)())) {
            (_, Ok(share)) => Some(share),
            // Short, and what frees storage should not wait.
            (MediaAction::Discard, Err(_)) => None,
            (_, Err(wait)) => return Err(share::crowded(wait)),
        };
        let tending = async {
            match job.what {
                MediaAction::Fetch => self.fetch(&job).await?,
                MediaAction::Probe => self.probe(&job).await?,
                MediaAction::Discard => self.discard(&job).await?,
            }
            Ok(())
        };
        with_heartbeat(&cx, tending).await
    }

    #[activity(definition = definition::FailMedia)]
    pub(crate) async fn fail_media(
        self: Arc<Self>,
        _cx: ActivityContext,
        lost: MediaFailure,
    ) -> Result<(), ActivityError> {
        let job = &lost.job;
        let what = if job.what == MediaAction::Fetch { "fetched" } else { "read" };
        let message = format!("it could not be {what}: {}", lost.message);
        Ok(self.refuse(job, Fault { reason: Reason::Unfetched, message }).await?)
    }

    #[activity(definition = definition::CleanUpMedia)]
    pub(crate) async fn clean_up_media(self: Arc<Self>, _cx: ActivityContext) -> Result<bool, ActivityError> {
        let (deps, now) = (&self.deps, (self.deps.engine.now)());
        let idle = deps.retention.map(|retention| now - retention);
        let expired = store::media::expire(&deps.engine.db, now - UPLOAD_TTL, idle, BATCH, now).await?;
        let swept = deps.engine.media.remove_orphans(now - ORPHAN_AGE).await?;
        if expired + swept > 0 {
            info!(expired, swept, "Deleted {expired} media assets and {swept} strays");
        }
        Ok(expired as i64 == BATCH)
    }
}

impl Media {
    /// Looks at what arrived of an asset.
    async fn confirm(&self, asset: MediaRef) -> anyhow::Result<ConfirmResult> {
        let MediaRef { media, owner } = asset;
        let Some(row) = store::media::get(&self.deps.engine.db, owner, media).await? else {
            return Ok(ConfirmResult::Settled);
        };
        if row.status != MediaStatus::PendingUpload {
            return Ok(ConfirmResult::Settled);
        }
        let file = file(owner, &row);
        match self.deps.engine.media.uploaded_size(&file).await? {
            Some(size) if row.source_url.is_none() => {
                self.judge(owner, &row, &file, size, size <= INLINE_LIMIT).await?;
                Ok(ConfirmResult::Settled)
            }
            _ => Ok(ConfirmResult::Missing),
        }
    }

    /// Finds out what a file is, and writes down whether it is taken; the whole of it, or first only what
    /// its headers say.
    async fn judge(
        &self,
        owner: Owner,
        row: &store::media::Media,
        file: &files::StoredFile,
        size: u64,
        whole: bool,
    ) -> anyhow::Result<()> {
        if whole {
            self.take_in(owner, row, file, size).await?;
        }
        let declared = files::DeclaredFile {
            content_type: row.declared.content_type.clone(),
            size: row.declared.size,
            sha256: row.declared.sha256.clone(),
        };
        let job = MediaJob { what: MediaAction::Probe, media: row.id, owner };
        let found = match self.deps.engine.media.inspect(file, size, &declared).await {
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
        let sha256 = if whole { Some(self.deps.engine.media.digest(file, size).await?) } else { None };
        if let (Some(found), Some(claimed)) = (&sha256, &declared.sha256)
            && found != claimed
        {
            let message = format!("the bytes have the SHA-256 {found}, and {claimed} was announced");
            return self.refuse(&job, Fault { reason: Reason::Unfit, message }).await;
        }
        let found = Found {
            kind: found.kind,
            content_type: found.content_type.to_owned(),
            size,
            width: found.width,
            height: found.height,
            duration_ms: found.duration.and_then(|duration| u64::try_from(duration.as_millis()).ok()),
            sha256,
        };
        if store::media::settle(&self.deps.engine.db, owner, row.id, &found, (self.deps.engine.now)()).await?
        {
            info!(
                media.id = %row.id, org.id = %owner.org, kind = %found.kind, size,
                "Medium {} is a file of {size} bytes, {}", row.id, found.content_type
            );
        }
        Ok(())
    }

    /// Takes a file in, unless that was done. One at a time does it: a second one that came late would
    /// put other bytes in the place of those that the first has looked at. Who finds another at it waits
    /// until he is done, or can be doing it no more.
    async fn take_in(
        &self,
        owner: Owner,
        row: &store::media::Media,
        file: &files::StoredFile,
        size: u64,
    ) -> anyhow::Result<()> {
        let limit = PROMOTE_TIMEOUT + TimeDelta::seconds((size / COPY_RATE).cast_signed());
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
                let taking = self.deps.engine.media.promote(file);
                let taken = tokio::time::timeout(limit.to_std()?, taking).await;
                taken.context("the store did not take the file in in time")??;
            } else if store::media::get(&self.deps.engine.db, owner, row.id).await?.is_none() {
                anyhow::bail!("the asset was deleted");
            } else {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Writes down why an asset can't be used. Its bytes serve nobody then.
    async fn refuse(&self, job: &MediaJob, fault: Fault) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        if store::media::fail(&self.deps.engine.db, owner, media, &fault, (self.deps.engine.now)()).await? {
            info!(media.id = %media, org.id = %owner.org, "Medium {media} is not taken: {}", fault.message);
        }
        if let Some(row) = store::media::find_deleted(&self.deps.engine.db, owner, media).await?
            && row.status == MediaStatus::Failed
        {
            self.deps.engine.media.discard(&file(owner, &row)).await?;
        }
        Ok(())
    }

    /// Looks at the whole of a file whose headers were looked at before.
    async fn probe(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        let Some(row) = store::media::get(&self.deps.engine.db, owner, media).await? else { return Ok(()) };
        if row.status != MediaStatus::Uploaded {
            return Ok(());
        }
        let file = file(owner, &row);
        let Some(size) = self.deps.engine.media.uploaded_size(&file).await? else {
            let message = "its bytes are not there any more".to_owned();
            return self.refuse(job, Fault { reason: Reason::Unfetched, message }).await;
        };
        self.judge(owner, &row, &file, size, true).await
    }

    /// Fetches a file from where its owner says.
    async fn fetch(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        let Some(row) = store::media::get(&self.deps.engine.db, owner, media).await? else { return Ok(()) };
        let (MediaStatus::PendingUpload, Some(source)) = (row.status, &row.source_url) else { return Ok(()) };
        let file = file(owner, &row);
        if !self.deps.engine.media.has(&file).await? {
            let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.download(owner, source, &file)).await;
            let refused = |reason, message| self.refuse(job, Fault { reason, message });
            match fetched {
                Ok(Ok(())) => {}
                Ok(Err(FetchError::Never(reason, message))) => return refused(reason, message).await,
                Ok(Err(FetchError::Later(error))) => return Err(error),
                Err(_) => anyhow::bail!("it did not arrive within {} minutes", FETCH_TIMEOUT.as_secs() / 60),
            }
        }
        let size = self.deps.engine.media.uploaded_size(&file).await?;
        self.judge(owner, &row, &file, size.unwrap_or_default(), true).await
    }

    /// Draws the bytes at an address into the store.
    async fn download(&self, owner: Owner, source: &str, file: &files::StoredFile) -> Result<(), FetchError> {
        let unfetched = |message: String| FetchError::Never(Reason::Unfetched, message);
        let mut url = Url::parse(source).map_err(|error| unfetched(error.to_string()))?;
        for _ in 0..=MAX_REDIRECTS {
            // Each hop is judged anew, and its name again when it is resolved.
            let client = self.deps.egress.client(owner.mode, &url).map_err(unfetched)?;
            let request =
                client.get(url.clone()).header(header::USER_AGENT, AGENT).header(header::ACCEPT, "*/*");
            let sent = tokio::time::timeout(IDLE_TIMEOUT, request.send()).await;
            let answer = match sent {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) if egress::is_blocked(&error) => {
                    return Err(unfetched("the address is not a public one".to_owned()));
                }
                Ok(Err(error)) => return Err(FetchError::Later(error.without_url().into())),
                Err(_) => {
                    return Err(FetchError::Later(anyhow::anyhow!(
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
                    return Err(FetchError::Later(anyhow::anyhow!("it answered {status}")));
                }
                status if status.is_server_error() => {
                    return Err(FetchError::Later(anyhow::anyhow!("it answered {status}")));
                }
                status if !status.is_success() => return Err(unfetched(format!("it answered {status}"))),
                _ => {}
            }
            let length = answer.content_length();
            let most = self.deps.engine.media.size_limits().for_declared(None);
            if let Some(length) = length.filter(|length| *length > most) {
                return Err(FetchError::Never(
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
                .receive(file, pieces, most, &files::DeclaredFile::default(), tempo)
                .await
            {
                Ok(_) => Ok(()),
                Err(error @ UploadError::TooLarge(_)) => {
                    Err(FetchError::Never(Reason::TooLarge, error.to_string()))
                }
                Err(error) => Err(FetchError::Later(error.into())),
            };
        }
        Err(unfetched(format!("it leads elsewhere more than {MAX_REDIRECTS} times")))
    }

    /// Discards the bytes of an asset that was deleted, and then its row.
    async fn discard(&self, job: &MediaJob) -> anyhow::Result<()> {
        let MediaJob { media, owner, .. } = *job;
        if store::media::get(&self.deps.engine.db, owner, media).await?.is_some() {
            return Ok(());
        }
        if let Some(row) = store::media::find_deleted(&self.deps.engine.db, owner, media).await? {
            self.deps.engine.media.discard(&file(owner, &row)).await?;
            store::media::erase(&self.deps.engine.db, owner, media).await?;
        }
        Ok(())
    }
}

/// What we call ourselves where we fetch.
const AGENT: &str = concat!("Fanfare-Media/", env!("CARGO_PKG_VERSION"));

/// Why the bytes at an address are not here.
enum FetchError {
    /// Another try would end the same way.
    Never(Reason, String),
    /// Another try may help.
    Later(anyhow::Error),
}

fn file(owner: Owner, row: &store::media::Media) -> files::StoredFile {
    files::StoredFile { media: row.id, owner, filename: row.filename.clone() }
}
