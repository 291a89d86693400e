//! Every byte that leaves the service leaves from here.
//!
//! The bodies of the activities that `workflows` declares: publishing (the at-most-once protocol),
//! connecting accounts, refreshing grants, reading what platforms tell, importing what is there, delivering
//! webhooks. They may be repeated at any time; what must not be is preceded by an intent and settled by a
//! look-up.

mod accounts;
mod connecting;
mod grants;
mod imports;
mod media;
mod metrics;
mod publishing;
mod share;
mod voice;
mod webhooks;
pub mod worker;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{App, Mode, Owner, TimeScale, sandbox::Address};
use egress::Egress;
use platforms::Wire;
use std::{borrow::Cow, collections::BTreeMap};
use store::{Pool, vault};
use temporalio_client::Client;

/// What the activities work with.
pub struct Deps {
    /// The facts.
    pub db: Pool,
    /// Seals what is kept.
    pub sealer: vault::Sealer,
    /// Opens what was sealed: only a worker can.
    pub opener: vault::Opener,
    /// The ways to the platforms.
    pub wires: Wires,
    /// The OAuth apps that accounts were connected through.
    pub apps: Apps,
    /// The way to addresses that users gave.
    pub egress: Egress,
    /// The bytes of media.
    pub media: ::media::FileStore,
    /// How long a medium is kept that no post needs; `None` for ever.
    pub retention: Option<TimeDelta>,
    /// To tell a workflow that its attempts are failing.
    pub temporal: Client,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
    /// A random number from 0..1, for jitter.
    pub jitter: fn() -> f64,
    /// How fast the waits run.
    pub time_scale: TimeScale,
}

/// The way to the platforms in each mode.
pub struct Wires {
    /// To the real ones.
    live: Wire,
    /// To the sandbox; `None` where none runs.
    test: Option<(Wire, Address)>,
}

impl Wires {
    /// The ways to the real platforms and to the sandbox, where one runs.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn new(sandbox: Option<Address>) -> reqwest::Result<Self> {
        let test = sandbox.map(|at| Ok((Wire::sandbox(at.url().clone())?, at))).transpose()?;
        Ok(Self { live: Wire::real()?, test })
    }

    /// The way that an owner's calls take; `None` for test mode where no sandbox runs.
    fn of(&self, owner: Owner) -> Option<Cow<'_, Wire>> {
        match (owner.mode, &self.test) {
            (Mode::Live, _) => Some(Cow::Borrowed(&self.live)),
            (Mode::Test, Some((wire, at))) => Some(Cow::Owned(wire.toward(at.of(owner.org)))),
            (Mode::Test, None) => None,
        }
    }
}

/// The OAuth apps of an installation, by platform.
#[derive(Default)]
pub struct Apps {
    /// Shared apps at the real platforms.
    pub live: BTreeMap<String, App>,
    /// The sandbox's apps.
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
