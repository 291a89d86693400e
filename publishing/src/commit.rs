//! Publishing one container: look-up of an open intent, preparation, intent, commit, capture.

use crate::{
    Engine,
    attempt::{Interrupt, Run},
};
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure, retry};
use platforms::{Adapter, Checkpoint, Committed, Found, Located, Prepared, PublishRequest, Session};
use std::time::Duration;
use store::{
    accounts::grants,
    publishing::{self, Attempt, Entry},
};
use tokio::time::Instant;
use tracing::{error, warn};

/// Least time limit of a publishing call under a time scale: a slow call is not a lost one.
const CALL_FLOOR: Duration = Duration::from_secs(8);
/// Pause between two tries to store what must not be lost.
const STORE_INTERVAL: Duration = Duration::from_millis(200);

impl Engine {
    /// Publishes one container, unless an earlier attempt did, and returns the platform's id of it.
    pub(crate) async fn publish(
        &self,
        platform: &Adapter,
        cx: &Session<'_>,
        run: &Run,
        entry: &Entry,
        post: &PublishRequest,
    ) -> Result<String, Interrupt> {
        let attempt = &run.attempt;
        let (target, position, fence) = (attempt.key.target, entry.container.position, attempt.fence);
        let at = Checkpoint(entry.checkpoint.clone());
        if entry.commit_begun_at.is_some() {
            match self.locate(platform, cx, run, entry, post).await? {
                Some(id) => return Ok(self.capture(attempt, position, &id).await?),
                None => publishing::clear_intent(&self.db, target, position, fence).await?,
            }
        }
        if let Some(barred) = attempt.barred {
            return Err(Interrupt::Barred(barred));
        }
        if attempt.spent() > retry::ATTEMPTS {
            return Err(Interrupt::Undecidable(spent(attempt)));
        }
        // Preparing can't publish, however its call ended.
        let prepared = tokio::select! {
            // Media that are ready are published.
            biased;
            prepared = platform.publisher.prepare(cx, post, at) => prepared,
            // An upload may take many minutes; another worker goes on at the checkpoint.
            () = self.stopping() => {
                return Err(self.hand_over(run));
            }
        };
        let at = match prepared.map_err(|failure| failure.certain())? {
            Prepared::Ready(at) => at,
            Prepared::Processing { at, poll_after } => {
                cx.checkpoints.save(&at).await?;
                return Err(Interrupt::Processing(poll_after));
            }
        };
        let limit = self.commit_limit(platform, post);
        let asked = Instant::now();
        let Some(begun) = publishing::intend(&self.db, target, position, fence, &at.0, limit).await? else {
            // In between an operator may have frozen it.
            return Err(if publishing::is_frozen(&self.db, attempt.key).await? {
                self.frozen(run)
            } else {
                Interrupt::Superseded
            });
        };
        // The limit is measured from before the intent was written, so that the call has ended when the row says
        // so. After a stall of the worker or the database it is not made at all: another attempt may have looked
        // it up already.
        let left = limit.saturating_sub(asked.elapsed());
        if left.is_zero() {
            publishing::void_intent(&self.db, target, position, begun).await?;
            let message = "the time for the publishing call was over before it was made";
            return Err(Interrupt::Failure(Failure::network(message, false)));
        }
        // From here until the answer the post may be live.
        // Model: Commit.
        run.call();
        let call = tokio::time::timeout(left, platform.publisher.commit(cx, post, &at));
        let answer = call.await.unwrap_or_else(|_| {
            let message = format!("{} did not answer within {} s", platform.id, limit.as_secs());
            Err(Failure::network(message, true))
        });
        match answer {
            Ok(Committed::Live(id)) => {
                let id = self.capture(attempt, position, &id).await?;
                self.note_success(attempt).await;
                Ok(id)
            }
            Ok(Committed::Accepted { at, poll_after }) => {
                self.accept(attempt, position, begun, &at).await?;
                self.note_success(attempt).await;
                Err(Interrupt::Processing(poll_after))
            }
            Err(failure) if failure.is_ambiguous() && !failure.code.is_permanent() => {
                publishing::record_ambiguous(&self.db, target, position, begun, failure.code).await?;
                Err(Interrupt::Failure(failure))
            }
            Err(failure) => match post.commit_begun_at {
                // The platform says that it has the post already, and an earlier call may have brought it.
                Some(_) if failure.is_ambiguous() => {
                    let code = entry.ambiguous_error_code.unwrap_or(ErrorCode::NetworkError);
                    publishing::record_ambiguous(&self.db, target, position, begun, code).await?;
                    let found = platform.locate(cx, post, &at).await;
                    if let Ok(Located::Live(found)) = found
                        && self.claim(attempt, entry, &found, false).await?
                    {
                        return Ok(self.capture(attempt, position, found.id()).await?);
                    }
                    // The target's own call is the likeliest original: its post will show up in the reads.
                    let wait = Some(self.read_lag(platform, attempt.key.owner.mode));
                    Err(Interrupt::Failure(Failure::new(code, failure.message).ambiguous().after(wait)))
                }
                // The original is another post, or the refusal is plain.
                _ => {
                    publishing::void_intent(&self.db, target, position, begun).await?;
                    Err(Interrupt::Failure(failure.certain()))
                }
            },
        }
    }

    /// Marks the account of an attempt active, and releases the posts with its app: the platform took a post, so its
    /// grant is good, and the app. Nothing of the post depends on this.
    async fn note_success(&self, attempt: &Attempt) {
        let (owner, account) = (attempt.key.owner, &attempt.account);
        let was_refused =
            attempt.last_failure.as_ref().is_some_and(|last| last.code == ErrorCode::AppRefused);
        if (attempt.is_app_held || was_refused)
            && let Err(error) = publishing::lift(&self.db, attempt).await
        {
            warn!(account.id = %account.id, org.id = %owner.org, %error, "The app of account {} publishes and is held", account.id);
        }
        if attempt.is_account_active {
            return;
        }
        let marked =
            grants::mark_active(&self.db, owner, account.id, account.grant_version, (self.now)()).await;
        if let Err(error) = marked {
            warn!(account.id = %account.id, org.id = %owner.org, %error, "Account {} publishes and is not marked active", account.id);
        }
    }

    /// Time limit of a publishing call. A time scale leaves a slow call its time.
    pub(crate) fn commit_limit(&self, platform: &Adapter, post: &PublishRequest) -> Duration {
        let limit = platform.publisher.commit_limit(post);
        self.time_scale.scale(limit).max(CALL_FLOOR.min(limit))
    }

    /// Stores an id before anything else can happen. Every database error is retried for as long as the attempt
    /// lives, because a later look-up may have no way to find the post.
    pub(crate) async fn capture(
        &self,
        attempt: &Attempt,
        position: u16,
        id: &str,
    ) -> Result<String, store::Error> {
        let captured = persist(attempt, "the id of a published post", || {
            publishing::capture(&self.db, attempt.key, position, id)
        })
        .await?;
        let kept = captured.platform_id;
        if captured.is_shared {
            error!(
                target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "Target {} and another one of its account have the same post: {kept}", attempt.key.target
            );
        }
        if kept != id {
            error!(
                target.id = %attempt.key.target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "A second post was found for target {}: {id} beside {kept}", attempt.key.target
            );
        }
        Ok(kept)
    }

    /// Claims what a look-up found, for `capture` to store; false when it may be another target's. What a handle or an
    /// idempotent key led to needs no claim. `is_settled` is true when reads show what the call has published.
    pub(crate) async fn claim(
        &self,
        attempt: &Attempt,
        entry: &Entry,
        found: &Found,
        is_settled: bool,
    ) -> Result<bool, store::Error> {
        let id = match found {
            Found::Certain(_) => return Ok(true),
            Found::ByText(id) => id,
        };
        persist(attempt, "the id of a post that was found", || {
            publishing::adopt(&self.db, attempt.key, entry.container.position, id, is_settled)
        })
        .await
    }

    /// Stores the handle that a platform returned instead of an id, in the same way: there is no other.
    async fn accept(
        &self,
        attempt: &Attempt,
        position: u16,
        begun: DateTime<Utc>,
        at: &Checkpoint,
    ) -> Result<(), store::Error> {
        let target = attempt.key.target;
        let accept = || publishing::accept(&self.db, target, position, begun, &at.0);
        if !persist(attempt, "an accepted post", accept).await? {
            error!(
                target.id = %target, post.id = %attempt.key.post, org.id = %attempt.key.owner.org,
                platform = attempt.account.platform,
                "Target {target} was accepted under an intent that the row holds no more"
            );
        }
        Ok(())
    }
}

/// The failure of a target whose attempts are used up, and whose last one has published nothing.
fn spent(attempt: &Attempt) -> Failure {
    match &attempt.last_failure {
        Some(last) => {
            let message = format!("{} (nothing was published, and no attempt is left)", last.message);
            Failure::new(last.code, message).certain()
        }
        None => {
            let message =
                "the workers that made the attempts stopped before they were answered; nothing was published";
            Failure::network(message, false)
        }
    }
}

/// Writes what must not be lost, for as long as it takes: any error of the database may pass, except for a
/// missing row.
async fn persist<T, F: Future<Output = store::Result<T>>>(
    attempt: &Attempt,
    what: &str,
    write: impl Fn() -> F,
) -> store::Result<T> {
    loop {
        match write().await {
            Err(store::Error::RowNotFound) => return Err(store::Error::RowNotFound),
            Err(error) => {
                warn!(target.id = %attempt.key.target, %error, "Waiting for the database to store {what}");
                tokio::time::sleep(STORE_INTERVAL).await;
            }
            Ok(kept) => return Ok(kept),
        }
    }
}
