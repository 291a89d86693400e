//! Holds: requests that are blocked, so that a test can act between two requests.
//!
//! A test describes a request and waits until it arrives. The client's progress is then known exactly: before
//! the platform did anything, or after, with the response not yet sent.

use serde::Deserialize;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::watch;

/// Selects the request to hold, and the moment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    platform: Option<String>,
    account: Option<String>,
    path_prefix: Option<String>,
    method: Option<String>,
    #[serde(default = "first")]
    nth: u64,
    when: When,
}

fn first() -> u64 {
    1
}

/// When a request is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    /// Before it is processed.
    Before,
    /// After it is processed, with the response withheld.
    After,
}

/// Phase of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for its request.
    Waiting,
    /// Holds the request.
    Held,
    /// Released.
    Released,
    /// The request's connection dropped.
    Dropped,
}

impl Phase {
    /// Returns its name in the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Released => "released",
            Self::Dropped => "dropped",
        }
    }
}

/// The properties of a request that holds match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest<'a> {
    pub(crate) platform: &'a str,
    /// Username and id of the account.
    pub(crate) account: Option<(&'a str, &'a str)>,
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
}

pub(crate) struct Hold {
    pub(crate) id: u64,
    spec: Spec,
    seen: AtomicU64,
    phase: watch::Sender<Phase>,
}

impl Hold {
    /// Returns a watch on its phase.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Blocks until the hold is released.
    pub(crate) async fn block(&self) {
        struct OnDrop<'a>(&'a Hold);
        impl Drop for OnDrop<'_> {
            fn drop(&mut self) {
                self.0.advance(Phase::Held, Phase::Dropped);
            }
        }
        self.advance(Phase::Waiting, Phase::Held);
        let _on_drop = OnDrop(self);
        let mut phase = self.phase.subscribe();
        // The sender is a field of `self`, so it outlives the wait.
        let _ = phase.wait_for(|phase| *phase == Phase::Released).await;
    }

    fn advance(&self, from: Phase, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_due = *phase == from;
            if is_due {
                *phase = to;
            }
            is_due
        });
    }

    fn is_for(&self, when: When, request: PendingRequest<'_>) -> bool {
        let spec = &self.spec;
        let full = format!("/{}{}", request.host, request.path);
        spec.when == when
            && spec.platform.as_deref().is_none_or(|platform| platform == request.platform)
            && spec.account.as_deref().is_none_or(|wanted| {
                request.account.is_some_and(|(name, id)| wanted.eq_ignore_ascii_case(name) || wanted == id)
            })
            && spec.method.as_deref().is_none_or(|method| method.eq_ignore_ascii_case(request.method))
            && spec
                .path_prefix
                .as_deref()
                .is_none_or(|prefix| request.path.starts_with(prefix) || full.starts_with(prefix))
    }
}

#[derive(Default)]
pub(crate) struct Holds {
    last: AtomicU64,
    all: Mutex<Vec<Arc<Hold>>>,
}

impl Holds {
    pub(crate) fn add(&self, spec: Spec) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let hold = Hold { id, spec, seen: AtomicU64::new(0), phase: watch::Sender::new(Phase::Waiting) };
        self.lock().push(Arc::new(hold));
        id
    }

    /// Returns the hold with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Hold>> {
        self.lock().iter().find(|hold| hold.id == id).cloned()
    }

    /// Removes a hold and lets its request go on.
    pub(crate) fn release(&self, id: u64) -> Option<Arc<Hold>> {
        let mut all = self.lock();
        let at = all.iter().position(|hold| hold.id == id)?;
        let hold = all.remove(at);
        hold.advance(Phase::Waiting, Phase::Released);
        hold.advance(Phase::Held, Phase::Released);
        Some(hold)
    }

    /// Returns the hold that applies to a request; every matching hold counts it.
    pub(crate) fn find(&self, when: When, request: PendingRequest<'_>) -> Option<Arc<Hold>> {
        let mut found = None;
        for hold in self.lock().iter().filter(|hold| hold.is_for(when, request)) {
            if hold.seen.fetch_add(1, Ordering::Relaxed) + 1 == hold.spec.nth {
                found.get_or_insert_with(|| hold.clone());
            }
        }
        found
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Hold>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
