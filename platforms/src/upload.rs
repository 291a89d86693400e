//! Uploading media ahead of a post: the loop that survives a crash, written once.
//!
//! Platforms differ in their calls and agree in the shape: begin, send parts, finish, wait for processing,
//! describe. Each step is checkpointed before the next, so that an interrupted upload resumes; what
//! expired, failed, or belongs to other media is uploaded again. The model is opendal's `MultipartWrite`:
//! <https://docs.rs/opendal/latest/opendal/raw/oio/trait.MultipartWrite.html>.

use crate::{Checkpoint, Media, Prepared, Result, Session};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;
use uuid::Uuid;

/// The calls by which a platform takes a medium.
#[async_trait]
pub(crate) trait Upload: Sync {
    /// The platform's handle of an upload; small plain data.
    type Ticket: Serialize + DeserializeOwned + Send + Sync;

    /// An upload that expires within this time is not used any more.
    const EXPIRY_MARGIN: TimeDelta = TimeDelta::zero();

    /// Whether [`Upload::describe`] is to be called.
    const IS_DESCRIBED: bool = false;

    /// Begins an upload; a medium that goes in one call is sent here.
    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Self::Ticket>>;

    /// Sends one part, counted from 0.
    async fn send(
        &self,
        _cx: &Session<'_>,
        _media: &Media,
        _upload: &mut Uploaded<Self::Ticket>,
        _part: u64,
    ) -> Result<Sent> {
        Ok(Sent::All)
    }

    /// Ends an upload in parts.
    async fn finish(
        &self,
        _cx: &Session<'_>,
        _media: &Media,
        _upload: &mut Uploaded<Self::Ticket>,
    ) -> Result<Processing> {
        Ok(Processing::Done)
    }

    /// Asks how far processing is.
    async fn status(
        &self,
        _cx: &Session<'_>,
        _media: &Media,
        _upload: &mut Uploaded<Self::Ticket>,
    ) -> Result<Processing> {
        Ok(Processing::Done)
    }

    /// Sends the alt text.
    async fn describe(&self, _cx: &Session<'_>, _media: &Media, _ticket: &Self::Ticket) -> Result<()> {
        Ok(())
    }
}

/// A new upload.
pub(crate) struct Begun<T> {
    pub(crate) ticket: T,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) sent: Sent,
}

/// Progress after a call that sent bytes.
pub(crate) enum Sent {
    /// This part is next.
    Next(u64),
    /// All parts are sent; the upload is to be finished.
    All,
    /// The medium is there as a whole, and there is nothing to finish.
    Whole(Processing),
}

/// State of a medium on the platform.
pub(crate) enum Processing {
    /// It can be used.
    Done,
    /// It is being processed; poll after the pause.
    Busy(Duration),
    /// Not known yet; poll at once.
    Unchecked,
    /// It never can be used.
    Failed(Failure),
}

/// A medium's upload, as a checkpoint keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uploaded<T> {
    media: Uuid,
    pub(crate) ticket: T,
    #[serde(default)]
    pub(crate) expires_at: Option<DateTime<Utc>>,
    stage: Stage,
}

impl<T> Uploaded<T> {
    /// True when it is this medium's.
    pub(crate) fn is_of(&self, media: &Media) -> bool {
        self.media == media.id
    }

    /// A finished upload, for tests.
    #[cfg(test)]
    pub(crate) fn of_test(media: Uuid, ticket: T) -> Self {
        Self { media, ticket, expires_at: None, stage: Stage::Ready }
    }
}

/// The next thing to do with an upload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Send(u64),
    Finish,
    Process,
    Describe,
    Ready,
}

/// What a call made of an upload.
enum Next {
    Stage(Stage),
    Wait(Duration),
    Failed(Failure),
}

impl Next {
    fn after_sending<U: Upload>(sent: Sent) -> Self {
        match sent {
            Sent::Next(part) => Self::Stage(Stage::Send(part)),
            Sent::All => Self::Stage(Stage::Finish),
            Sent::Whole(processing) => Self::after_processing::<U>(processing),
        }
    }

    fn after_processing<U: Upload>(processing: Processing) -> Self {
        match processing {
            Processing::Done if U::IS_DESCRIBED => Self::Stage(Stage::Describe),
            Processing::Done => Self::Stage(Stage::Ready),
            Processing::Unchecked => Self::Stage(Stage::Process),
            Processing::Busy(wait) => Self::Wait(wait),
            Processing::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// Uploads `media` as far as possible now. `uploads` is the part of `step` that keeps them, one per medium
/// in order; `step` is saved after each call. Returns the pause until the next poll, or `None` when all
/// media can be used.
///
/// # Errors
///
/// When a call fails, or the platform could not process a medium; that upload is dropped, so that another
/// attempt begins again.
pub(crate) async fn advance<U: Upload, S: Serialize + Send + Sync>(
    platform: &U,
    cx: &Session<'_>,
    media: &[Media],
    step: &mut S,
    uploads: fn(&mut S) -> &mut Vec<Uploaded<U::Ticket>>,
) -> Result<Option<Duration>> {
    let soon = (cx.now)() + U::EXPIRY_MARGIN;
    let all = uploads(step).iter().zip(media);
    let usable = all.take_while(|(one, media)| one.is_of(media) && one.expires_at.is_none_or(|at| at > soon));
    let usable = usable.count();
    uploads(step).truncate(usable);
    let mut pause: Option<Duration> = None;
    for (index, media) in media.iter().enumerate() {
        if uploads(step).len() == index {
            let Begun { ticket, expires_at, sent } = platform.begin(cx, media).await?;
            let (stage, wait) = match Next::after_sending::<U>(sent) {
                Next::Stage(stage) => (stage, None),
                Next::Wait(wait) => (Stage::Process, Some(wait)),
                Next::Failed(failure) => return Err(failure),
            };
            uploads(step).push(Uploaded { media: media.id, ticket, expires_at, stage });
            cx.save(step).await?;
            if wait.is_some() {
                pause = pause.max(wait);
                continue;
            }
        }
        loop {
            let upload = &mut uploads(step)[index];
            let stage = upload.stage;
            let next = match stage {
                Stage::Send(part) => Next::after_sending::<U>(platform.send(cx, media, upload, part).await?),
                Stage::Finish => Next::after_processing::<U>(platform.finish(cx, media, upload).await?),
                Stage::Process => Next::after_processing::<U>(platform.status(cx, media, upload).await?),
                Stage::Describe => {
                    platform.describe(cx, media, &upload.ticket).await?;
                    Next::Stage(Stage::Ready)
                }
                Stage::Ready => break,
            };
            match next {
                Next::Stage(next) => uploads(step)[index].stage = next,
                Next::Wait(wait) => {
                    pause = pause.max(Some(wait));
                    if stage != Stage::Process {
                        uploads(step)[index].stage = Stage::Process;
                        cx.save(step).await?;
                    }
                    break;
                }
                Next::Failed(failure) => {
                    uploads(step).truncate(index);
                    cx.save(step).await?;
                    return Err(failure);
                }
            }
            cx.save(step).await?;
        }
    }
    Ok(pause)
}

/// The state after `prepare`: ready, or to be polled after the pause.
pub(crate) fn prepared(step: &impl Serialize, pause: Option<Duration>) -> Prepared {
    let at = Checkpoint::of(step);
    match pause {
        Some(poll_after) => Prepared::Processing { at, poll_after },
        None => Prepared::Ready(at),
    }
}
