//! Requests that are held, so that a test can do something between two calls.
//!
//! A test says which request it means, waits until it is here, and knows then exactly how far the
//! client has come: before the platform did anything, or after, with the reply not yet sent.

use serde::Deserialize;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::watch;

/// Which request is held, and when.
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
    /// After, with the reply withheld.
    After,
}

/// How a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The request has not come.
    Waiting,
    /// It is here.
    Held,
    /// It was let go.
    Released,
    /// Its connection dropped.
    Dropped,
}

impl Phase {
    /// Its name on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Released => "released",
            Self::Dropped => "dropped",
        }
    }
}

/// A request as holds see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    /// The platform.
    pub(crate) platform: &'a str,
    /// The account's name and id.
    pub(crate) account: Option<(&'a str, &'a str)>,
    /// The method.
    pub(crate) method: &'a str,
    /// The host.
    pub(crate) host: &'a str,
    /// The path on that host.
    pub(crate) path: &'a str,
}

/// One hold.
pub(crate) struct Hold {
    /// Its id.
    pub(crate) id: u64,
    spec: Spec,
    seen: AtomicU64,
    phase: watch::Sender<Phase>,
}

impl Hold {
    /// How it stands, now and from now on.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Keeps the caller until it is let go.
    pub(crate) async fn keep(&self) {
        struct Gone<'a>(&'a Hold);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                self.0.pass(Phase::Held, Phase::Dropped);
            }
        }
        self.pass(Phase::Waiting, Phase::Held);
        let _gone = Gone(self);
        let mut phase = self.phase.subscribe();
        // The sender is a field of `self`, so it outlives the wait.
        let _ = phase.wait_for(|phase| *phase == Phase::Released).await;
    }

    fn pass(&self, from: Phase, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_due = *phase == from;
            if is_due {
                *phase = to;
            }
            is_due
        });
    }

    fn is_for(&self, when: When, request: Passing<'_>) -> bool {
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

/// All holds.
#[derive(Default)]
pub(crate) struct Holds {
    last: AtomicU64,
    all: Mutex<Vec<Arc<Hold>>>,
}

impl Holds {
    /// Adds one.
    pub(crate) fn add(&self, spec: Spec) -> u64 {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let hold = Hold { id, spec, seen: AtomicU64::new(0), phase: watch::Sender::new(Phase::Waiting) };
        self.lock().push(Arc::new(hold));
        id
    }

    /// The one with this id.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Hold>> {
        self.lock().iter().find(|hold| hold.id == id).cloned()
    }

    /// Ends one; a request that it keeps goes on.
    pub(crate) fn release(&self, id: u64) -> Option<Arc<Hold>> {
        let mut all = self.lock();
        let at = all.iter().position(|hold| hold.id == id)?;
        let hold = all.remove(at);
        hold.pass(Phase::Waiting, Phase::Released);
        hold.pass(Phase::Held, Phase::Released);
        Some(hold)
    }

    /// The hold that this request runs into; every hold that means it counts it.
    pub(crate) fn meet(&self, when: When, request: Passing<'_>) -> Option<Arc<Hold>> {
        let mut met = None;
        for hold in self.lock().iter().filter(|hold| hold.is_for(when, request)) {
            if hold.seen.fetch_add(1, Ordering::Relaxed) + 1 == hold.spec.nth {
                met.get_or_insert_with(|| hold.clone());
            }
        }
        met
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Hold>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
