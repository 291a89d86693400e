//! The look-up of a commit at a platform whose clock differs from ours.
//!
//! If our clock is ahead of the platform's, the post is dated earlier than our commit, and a search that goes back to
//! our commit does not reach it. The session knows the difference from the replies.

use crate::{
    Result,
    adapter::{Adapter, Located, PublishRequest},
    checkpoint::{Checkpoint, Checkpoints},
    session::Session,
};
use async_trait::async_trait;
use chrono::TimeDelta;
use std::sync::{Mutex, PoisonError};

/// Time by which our clock may be ahead of a platform's without any effect: replies are dated to the second, and
/// searches reach five minutes back.
const MAX_SKEW: TimeDelta = TimeDelta::minutes(1);

impl Adapter {
    /// Looks up the result of a commit ([`crate::Publisher::locate`]). A look-up that did not find it is repeated with
    /// the platform's time if our clock is ahead.
    ///
    /// # Errors
    ///
    /// When the look-up fails.
    pub async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        let saved = LastSaved { inner: cx.checkpoints, last: Mutex::default() };
        let first = Session { checkpoints: &saved, ..cx.clone() };
        let located = self.publisher.locate(&first, post, at).await?;
        let ahead = cx.skew.ahead();
        if matches!(located, Located::Live(_)) || ahead <= MAX_SKEW {
            return Ok(located);
        }
        let begun = Some(post.begun() - ahead);
        // It goes on where the first one got to.
        let at = saved.last().unwrap_or_else(|| at.clone());
        self.publisher.locate(cx, &PublishRequest { commit_begun_at: begun, ..post.clone() }, &at).await
    }
}

/// Remembers the last checkpoint that was stored.
struct LastSaved<'a> {
    inner: &'a dyn Checkpoints,
    last: Mutex<Option<Checkpoint>>,
}

impl LastSaved<'_> {
    fn last(&self) -> Option<Checkpoint> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Checkpoints for LastSaved<'_> {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.inner.save(checkpoint).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(checkpoint.clone());
        Ok(())
    }

    async fn note(&self, message: &str) -> Result<()> {
        self.inner.note(message).await
    }

    async fn may_publish(&self) -> Result<bool> {
        self.inner.may_publish().await
    }
}
