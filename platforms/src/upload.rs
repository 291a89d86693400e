//! Uploads media before a post is published, in a resumable loop shared by the adapters.
//!
//! Platforms have different calls with the same sequence: begin, send parts, finish, wait for processing,
//! describe. Each step is checkpointed before the next, so that an interrupted upload resumes. An upload that
//! expired, failed or belongs to other media is repeated. The model is opendal's `MultipartWrite`:
//! <https://docs.rs/opendal/latest/opendal/raw/oio/trait.MultipartWrite.html>.

use crate::{Checkpoint, Media, Prepared, Result, Session};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::time::Duration;
use uuid::Uuid;

/// The upload calls of a platform.
#[async_trait]
pub(crate) trait Upload: Sync {
    /// The platform's handle of an upload; small plain data.
    type Ticket: Serialize + DeserializeOwned + Send + Sync;

    /// An upload that expires within this time is not used.
    const EXPIRY_MARGIN: TimeDelta = TimeDelta::zero();

    /// True when [`Upload::describe`] is called.
    const IS_DESCRIBED: bool = false;

    /// Begins an upload. Sends the medium if the platform takes it in one call.
    async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<Self::Ticket>>;

    /// Sends the part that [`Sent::Next`] identifies by index or offset.
    async fn send(
        &self,
        _cx: &Session<'_>,
        _media: &Media,
        _upload: &mut Uploaded<Self::Ticket>,
        _part: u64,
    ) -> Result<Sent> {
        Ok(Sent::All)
    }

    /// Finishes an upload in parts.
    async fn finish(
        &self,
        _cx: &Session<'_>,
        _media: &Media,
        _upload: &mut Uploaded<Self::Ticket>,
    ) -> Result<Processing> {
        Ok(Processing::Done)
    }

    /// Returns the processing state.
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
    /// All parts are sent; finish the upload.
    All,
    /// The upload is complete without a finishing call.
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
    /// It can never be used.
    Failed(Failure),
}

/// A medium's upload, as stored in the checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uploaded<T> {
    media: Uuid,
    pub(crate) ticket: T,
    #[serde(default)]
    pub(crate) expires_at: Option<DateTime<Utc>>,
    stage: Stage,
}

impl<T> Uploaded<T> {
    /// Returns true if it is the upload of this medium.
    pub(crate) fn is_of(&self, media: &Media) -> bool {
        self.media == media.id
    }

    /// Returns a finished upload, for tests.
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

/// State of an upload after a call.
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

/// Returns the state after `prepare`: ready, or to be polled after the pause.
pub(crate) fn prepared(step: &impl Serialize, pause: Option<Duration>) -> Prepared {
    let at = Checkpoint::of(step);
    match pause {
        Some(poll_after) => Prepared::Processing { at, poll_after },
        None => Prepared::Ready(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, Checkpoints, Grant, MediaKind, MediaStore, Transport};
    use bytes::Bytes;
    use std::{
        ops::Range,
        sync::{Arc, Mutex},
    };
    use url::Url;

    /// A platform that receives three parts, processes for one poll, and accepts an alt text.
    #[derive(Default)]
    struct Scripted {
        calls: Mutex<Vec<String>>,
        is_broken: bool,
    }

    impl Scripted {
        fn called(&self, call: &str, media: &Media) {
            self.calls.lock().expect("no test panicked").push(format!("{call} {}", media.filename));
        }
    }

    #[async_trait]
    impl Upload for Scripted {
        /// Number of polls.
        type Ticket = u32;
        const EXPIRY_MARGIN: TimeDelta = TimeDelta::minutes(1);
        const IS_DESCRIBED: bool = true;

        async fn begin(&self, cx: &Session<'_>, media: &Media) -> Result<Begun<u32>> {
            self.called("begin", media);
            let expires_at = Some((cx.now)() + TimeDelta::minutes(5));
            Ok(Begun { ticket: 0, expires_at, sent: Sent::Next(0) })
        }

        async fn send(
            &self,
            _cx: &Session<'_>,
            media: &Media,
            _upload: &mut Uploaded<u32>,
            part: u64,
        ) -> Result<Sent> {
            self.called(&format!("send {part}"), media);
            Ok(if part < 2 { Sent::Next(part + 1) } else { Sent::All })
        }

        async fn finish(
            &self,
            _cx: &Session<'_>,
            media: &Media,
            _upload: &mut Uploaded<u32>,
        ) -> Result<Processing> {
            self.called("finish", media);
            Ok(Processing::Busy(Duration::from_secs(7)))
        }

        async fn status(
            &self,
            _cx: &Session<'_>,
            media: &Media,
            _upload: &mut Uploaded<u32>,
        ) -> Result<Processing> {
            self.called("status", media);
            Ok(match self.is_broken {
                true => Processing::Failed(Failure::rejected(400, "broken")),
                false => Processing::Done,
            })
        }

        async fn describe(&self, _cx: &Session<'_>, media: &Media, _ticket: &u32) -> Result<()> {
            self.called("describe", media);
            Ok(())
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Step {
        uploads: Vec<Uploaded<u32>>,
    }

    #[derive(Default)]
    struct Saved(Mutex<Vec<Step>>);

    #[async_trait]
    impl Checkpoints for Saved {
        async fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
            self.0.lock().expect("no test panicked").push(checkpoint.read()?);
            Ok(())
        }
    }

    struct NoMedia;

    #[async_trait]
    impl MediaStore for NoMedia {
        async fn read(&self, _media: &Media, _range: Range<u64>) -> Result<Bytes> {
            Err(Failure::network("no media in this test", false))
        }

        async fn address(&self, _media: &Media) -> Result<Url> {
            Err(Failure::network("no media in this test", false))
        }
    }

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time")
    }

    fn media(name: &str) -> Media {
        Media {
            id: Uuid::from_u128(u128::from(name.as_bytes()[0])),
            kind: MediaKind::Video,
            mime: "video/mp4".into(),
            filename: name.into(),
            size_bytes: 3,
            width: None,
            height: None,
            frames: None,
            duration: None,
            alt_text: None,
            facts: None,
            rendition: None,
        }
    }

    /// Advances once and returns the result, the calls and the saved steps.
    async fn run(
        is_broken: bool,
        step: &mut Step,
        media: &[Media],
    ) -> (Result<Option<Duration>>, Vec<String>, Vec<Step>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let account = Account {
            network_unique_id: String::new(),
            username: String::new(),
            account_type: String::new(),
        };
        let grant = Grant::default();
        let (saved, platform) = (Saved::default(), Scripted { is_broken, ..Scripted::default() });
        let cx = Session {
            platform: crate::get("x").expect("a platform"),
            account: &account,
            grant: &grant,
            app: None,
            now,
            transport: &Transport::real().expect("a client"),
            checkpoints: &saved,
            media: Arc::new(NoMedia),
            skew: Arc::default(),
        };
        let ended = advance(&platform, &cx, media, step, |step| &mut step.uploads).await;
        let calls = platform.calls.into_inner().expect("no test panicked");
        (ended, calls, saved.0.into_inner().expect("no test panicked"))
    }

    #[tokio::test]
    async fn an_upload_resumes_after_each_step() {
        let media = [media("a")];
        let mut step = Step::default();
        let (ended, first, mut saved) = run(false, &mut step, &media).await;
        assert_eq!(ended.unwrap(), Some(Duration::from_secs(7)));
        assert_eq!(first, ["begin a", "send 0 a", "send 1 a", "send 2 a", "finish a"]);
        let (ended, second, rest) = run(false, &mut step, &media).await;
        assert_eq!((ended.unwrap(), &second), (None, &vec!["status a".to_owned(), "describe a".to_owned()]));
        saved.extend(rest);
        let all = [first, second].concat();
        assert_eq!(saved.len(), all.len(), "each call is followed by a checkpoint");
        // After a crash, no call from before the checkpoint is repeated.
        for (index, mut step) in saved.into_iter().enumerate() {
            let (_, mut calls, _) = run(false, &mut step, &media).await;
            calls.extend(run(false, &mut step, &media).await.1);
            assert_eq!(calls, all[index + 1..], "after {}", all[index]);
        }
    }

    #[tokio::test]
    async fn failed_expired_and_replaced_media_are_uploaded_again() {
        let both = [media("a"), media("b")];
        let mut step = Step::default();
        for _ in 0..2 {
            run(false, &mut step, &both).await.0.unwrap();
        }
        let ready = step.clone();
        assert_eq!(run(false, &mut step, &both).await.1, Vec::<String>::new());
        // A different second medium.
        let calls = run(false, &mut step, &[media("a"), media("c")]).await.1;
        assert_eq!(calls[0], "begin c");
        // An upload that expires within the margin is repeated with all after it.
        let mut expiring = ready.clone();
        expiring.uploads[0].expires_at = Some(now() + TimeDelta::minutes(1));
        let calls = run(false, &mut expiring, &both).await.1;
        assert_eq!(calls.iter().filter(|call| call.starts_with("begin")).count(), 2);
        // An upload that can't be processed is dropped, and the error is returned.
        let mut busy = Step::default();
        run(true, &mut busy, &both[..1]).await.0.unwrap();
        let (ended, _, saved) = run(true, &mut busy, &both[..1]).await;
        assert_eq!(ended.unwrap_err().message, "broken");
        assert_eq!((saved, busy), (vec![Step::default()], Step::default()));
    }
}
