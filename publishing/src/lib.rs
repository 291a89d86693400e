//! The publishing engine: each post is published at most once, whatever fails.
//!
//! The protocol is the same for all platforms:
//!
//! 1. A captured id is final: no platform is called again for it.
//! 2. An intent without outcome is looked up before anything else ([`Engine::look`]).
//! 3. `prepare` continues from the checkpoint in the row.
//! 4. The intent is written under the attempt's fence; then `commit` is called; then the id is captured, before
//!    anything else can happen.
//! 5. One transaction settles the target and appends its events.
//!
//! Failures between the steps, and the reason why none of them publishes twice:
//!
//! | Failure | The next attempt finds | and |
//! |---|---|---|
//! | the worker dies before the intent | no intent | publishes |
//! | … between intent and call, or during the call | an intent without outcome | looks it up: live is captured; absent is published, but is believed only when the call can't be on its way any more and the platform's reads have caught up |
//! | the answer is lost, is a 5xx or unreadable | an ambiguous intent | the same |
//! | the worker dies between answer and capture | an intent without outcome | the same |
//! | … after capture | an id | settles, calls nobody |
//! | another post of the account has the same text | an id of another target | passes over it: an id belongs to one target of an account |
//! | … and has no id yet | a post that may be that one's | claims it only if nobody is published twice, nor reported by another's post; else waits for it to get an id or end, and then ends `dead`, "it may be live" |
//! | the account published so much since that the look-up ran out of pages | "unknown" | ends `dead`, "it may be live" |
//! | two attempts at once (the first seemed dead) | another fence | the slower one can neither write an intent nor end the target; the answer to its call still counts |
//! | the post is deleted, the account disconnected, or an operator stops or freezes it | an intent, or none | looks up what was begun, publishes nothing |
//! | the platform can't tell | | ends `dead`, "it may be live" |
//! | a user retries a dead target | the intent that its end left open | looks it up |
//! | Postgres is restored from a backup | an intent without outcome, which `store::upkeep::restored` writes | looks it up without the checkpoint, which may be missing |
//!
//! Crate `model` explores every interleaving of these steps; a comment `Model: …` names each transition at the
//! function that makes it.
//!
//! An adapter says how a look-up found a post. [`platforms::Found::Certain`] is the post of this very call, by its
//! handle or key. [`platforms::Found::ByText`] may be another target's and has to be claimed, also by a target whose
//! call was accepted; `store::publishing::adopt` has the rules, and `model::Claims` explores them.
//!
//! [`platforms::Idempotency`] says what a repeated commit does. On Bluesky it has no effect: the record's key is
//! derived from the target. On X it may publish twice, so that a look-up waits until the author's timeline shows
//! every earlier write.
//!
//! The intent names the deadline of the call, and the call is ended then. An attempt whose worker died may
//! still have a call on its way; a look-up's "absent" is believed only after that deadline.
//!
//! Replies to a live main container (a first comment, a thread) are retried separately: the target is
//! `published` from the moment its main container is live, and `error_code` says why a reply is missing.
//! Containers that the platform has no place for are left out from the start; the target's `error_message` says
//! so, without an `error_code`.
//!
//! # The row decides
//!
//! Budget, polling window, time of the next attempt, ambiguity and deadlines are in the row and measured by the
//! database's clock; a worker whose clock differs by more than 5 s does not start. They and the platform's answer
//! decide the next step, never how often or why the caller runs it:
//!
//! - `begin` counts an attempt, unless it continues one that the platform was processing. A failure ends the
//!   continuation, so that ten attempts are ten on the asynchronous path too.
//! - A throttled attempt costs nothing of the budget for a day: platforms count over a day at most, and the post is
//!   not at fault. Its account rests: `begin` lets the other targets wait as long, and a little longer;
//!   where the platform throttles some posts only, the failure says so ([`domain::Holds`]) and the account does not rest.
//! - The polling window opens with the platform's first "still processing" and ends with the next intent. The last
//!   look comes when it closes; a post that is still processing then ends `dead`, `poll_timeout`.
//! - What an operator froze waits by the time in its row, and costs nothing: `begin` lets only look-ups through, and
//!   `intend` refuses a call that was prepared before.
//! - An attempt that sent nothing costs nothing, and returns only with a [`domain::Wait`], which its row contains: what
//!   for, until when, and the next look. It is too early to say that nothing is live, a file is not ready, another target
//!   may own what was found, the worker stops, or the service itself failed. The wait ends as the target does when its
//!   time is over, so that no result of an attempt comes again and again.
//! - An attempt or a look that has no result because its worker stopped is counted apart, whatever it costs of the budget:
//!   after thirteen in a row the target ends. What is to be looked up, or prepared again and again, may be what stops them.
//! - "Dead" and "canceled" count only for the attempt that holds the fence, and a target that has ended keeps its
//!   end. A post that is found live after that is reported on the timeline and in the log.
//!
//! So every method may be called again at any time, from any process: the engine knows no workflow, no queue and
//! no HTTP server.

mod attempt;
mod call;
mod checkpoints;
mod commit;
mod grants;
mod live;
mod lookup;
mod media;
mod session;
mod settle;

pub use call::{CallOutcome, call_as};
pub use grants::{RefreshError, RefusedGrant};
pub use live::{LiveTarget, edit_live, unpublish};
pub use lookup::READ_LAG_FLOOR;
pub use media::NoMedia;
pub use session::{AccountSession, NoCheckpoints};

use chrono::{DateTime, Utc};
use domain::{App, Failure, Mode, Owner, TimeScale, ip_ranges::AllowedRanges, sandbox::Address};
use platforms::{Adapter, Transport, versions::Month};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};
use store::{Pool, upkeep::vault};
use tokio::sync::watch;

/// Everything that publishing and calling a platform need. Stateless: all state is in the database.
pub struct Engine {
    /// Database.
    pub db: Pool,
    /// Seals fresh grants.
    pub sealer: vault::Sealer,
    /// Opens sealed grants and client secrets; only a worker has it.
    pub opener: vault::Opener,
    /// Returns a platform's adapter by its id: [`platforms::get`], or those of a test.
    pub adapters: fn(&str) -> Option<&'static Adapter>,
    /// Connections to the platforms.
    pub transports: Transports,
    /// OAuth apps that the installation shares.
    pub apps: Apps,
    /// Files of media assets.
    pub media: ::media::FileStore,
    /// Clock.
    pub now: fn() -> DateTime<Utc>,
    /// Returns a random number from 0..1, for jitter.
    pub jitter: fn() -> f64,
    /// Scale of all waits.
    pub time_scale: TimeScale,
    /// Becomes true when the process stops: preparations end, and calls that may publish go on.
    pub stop: watch::Receiver<bool>,
}

impl Engine {
    /// Waits until the process stops.
    pub(crate) async fn stopping(&self) {
        if self.stop.clone().wait_for(|stop| *stop).await.is_err() {
            // Nothing can stop it any more.
            std::future::pending::<()>().await;
        }
    }
}

/// Why a call of the engine ended without a result.
#[derive(Debug)]
pub enum Error {
    /// The attempt failed, and its row says so and when the next one is due: repeat the call after `pause`.
    Failed {
        /// The failure, with the number of the attempt in its message.
        failure: Failure,
        /// Time to wait.
        pause: Duration,
        /// False if the attempt before failed with the same code.
        is_new: bool,
    },
    /// Repeat the call after `pause`; no attempt failed.
    Repeat {
        /// Reason, for people.
        failure: Failure,
        /// Time to wait.
        pause: Duration,
    },
    /// Fanfare failed: the database, the file store or a key.
    Fault(anyhow::Error),
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Why something that needs a platform stopped: the platform's failure, or Fanfare's own.
#[derive(Debug)]
pub enum Stop {
    /// The platform, or the connection to it, failed.
    Failure(Failure),
    /// Fanfare failed: the database, the file store or a key.
    Fault(anyhow::Error),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<store::Error> for Stop {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

/// Connections to the platforms, by mode.
pub struct Transports {
    /// To the real platforms.
    live: Transport,
    /// To the sandbox; `None` without one.
    test: Option<(Transport, Address)>,
}

impl Transports {
    /// Prepares connections to the real platforms, and to the sandbox if there is one. A server that a user names
    /// may also have an address in `allowed`.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn new(sandbox: Option<Address>, allowed: AllowedRanges) -> reqwest::Result<Self> {
        let test = sandbox.map(|at| Ok((Transport::sandbox(at.url().clone())?, at))).transpose()?;
        Ok(Self { live: Transport::real_within(allowed)?, test })
    }

    /// Returns the same connections, whose calls to LinkedIn name this version of its API first.
    #[must_use]
    pub fn with_linkedin_version(self, version: Option<Month>) -> Self {
        let test = self.test.map(|(transport, at)| (transport.with_linkedin_version(version), at));
        Self { live: self.live.with_linkedin_version(version), test }
    }

    /// Returns the connection for an owner's calls; `None` in test mode without a sandbox.
    pub fn of(&self, owner: Owner) -> Option<Cow<'_, Transport>> {
        match (owner.mode, &self.test) {
            (Mode::Live, _) => Some(Cow::Borrowed(&self.live)),
            (Mode::Test, Some((transport, at))) => Some(Cow::Owned(transport.toward(at.of(owner.org)))),
            (Mode::Test, None) => None,
        }
    }
}

/// OAuth apps of an installation, by platform id.
#[derive(Default)]
pub struct Apps {
    /// Shared apps at the real platforms.
    pub live: BTreeMap<String, App>,
    /// Apps at the sandbox.
    pub test: BTreeMap<String, App>,
}

impl Apps {
    fn of(&self, mode: Mode, platform: &str) -> Option<App> {
        let apps = match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        };
        apps.get(platform).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_has_its_own_apps() {
        let app =
            |id: &str| App { client_id: id.to_owned(), client_secret: None, access: Default::default() };
        let of = |mode: &str| BTreeMap::from([("x".to_owned(), app(mode))]);
        let apps = Apps { live: of("live"), test: of("test") };
        let id = |mode, platform| apps.of(mode, platform).map(|app| app.client_id);
        for mode in [Mode::Live, Mode::Test] {
            assert_eq!(id(mode, "x").as_deref(), Some(mode.as_str()));
            assert_eq!(id(mode, "threads"), None);
        }
    }
}
