//! Simulated platforms: the platforms' own HTTP APIs, served from this machine.
//!
//! Part of the product, not a mock: it responds as the platforms' documentation says, refusals included,
//! stores what was published and shows it, so that an official client library works with it.
//! Its apps are newly registered unless the settings say otherwise ([`AppStatus`]), so that tests meet the access
//! that an operator has on the first day.
//! `https://api.x.com/2/tweets` is `{sandbox}/api.x.com/2/tweets`; a client that uses the sandbox as the
//! platform itself finds `{sandbox}/2/…` and `{sandbox}/xrpc/…` too.
//!
//! # The sandbox's own API
//!
//! | Request | Response |
//! |---|---|
//! | `GET /` | the control panel: the accounts, forms that arm faults, the latest requests, the settings |
//! | `GET /{platform}/{username}` | a page with the account's posts |
//! | `GET /{platform}/{username}/{post}` | a page with one post |
//! | `GET /_journal?account=&platform=&path=&method=&accepted=&fault=&after=` | `{ entries: [{ seq, at, platform, account, method, host, path, status, accepted, post_id, post_ids, fault, rule }] }`: each request of an account, oldest first; `status` is null when no response was sent, `accepted` is true exactly when a post was published, `rule` is the key of the rule about content by which the platform refused the request or reported that processing failed |
//! | `GET /_journal/wait?…&count=1&timeout_ms=30000` | the same once `count` entries match; 408 when they do not in time |
//! | `POST /_accounts` `{ platform, username?, service? }` | 201 `{ identity, grant, app }`; the account is created if there is none, the grant is new; `service` is the address of the account's Bluesky server, `https://bsky.social` by default |
//! | `POST /_accounts/{platform}/{username}/tokens/expire` | 204; access tokens issued so far are refused as expired |
//! | `POST /_accounts/{platform}/{username}/tokens/revoke` (or without `tokens/`) | 204; grants so far can't be refreshed |
//! | `POST /_holds` `{ platform?, account?, path_prefix?, method?, nth?, when: before \| after }` | 201 `{ id }`; the nth matching request (1 by default) is held before it is processed, or after, with its response withheld |
//! | `GET /_holds/{id}` | `{ id, phase }`: `waiting`, `held`, `released`, `dropped` |
//! | `GET /_holds/{id}/wait?phase=held&timeout_ms=30000` | the same once the phase is reached (`held` also when it has passed); 408 when it is not in time |
//! | `DELETE /_holds/{id}` | 204; a held request continues |
//! | `GET`, `POST /_settings` | the [`Settings`]; a POST changes the members that it has |
//! | `GET /_media/{file}` | uploaded bytes |
//! | `GET /_assets/{file}` | style sheet and icons of the pages |
//! | `GET /_health` | 204 |
//!
//! On loopback all of this is open. A sandbox with a token ([`Access`]) requires it for everything but
//! `/_health` (`Authorization: Bearer`, or the password of basic authorization), and each organization has
//! all of the above below `/_orgs/{organization}.{signature}`: the platforms there are open to those who know
//! the address, and control requires the token.
//!
//! # Failures on purpose
//!
//! A word in the text of a post makes the request that publishes it fail: `#sandbox-400`, `-401`, `-403`,
//! `-429`, `-500`, `-503` (refused as the platform would), `#sandbox-slow` (answered late), `#sandbox-stuck`
//! (never answered, not accepted), `#sandbox-drop` (the connection drops, not accepted),
//! `#sandbox-lost-reply` (accepted, the connection drops), `#sandbox-500-after` (accepted, then 500),
//! `#sandbox-garbage` (accepted, with a body that can't be parsed). `x2` after the word limits it to the
//! first two tries. Processing of a media file whose name or description contains `sandbox-stuck` never ends,
//! and with `sandbox-failed` it fails; on platforms that get neither, the word is looked for in the file's
//! first bytes.
//!
//! The control panel arms an account with one of these faults, which then applies to its next tries
//! regardless of their text.

mod access;
mod account;
mod actions;
mod admin_page;
mod assets;
mod bluesky;
mod container;
mod control;
mod exchange;
mod facebook;
mod fake_metrics;
mod fault;
mod fetch;
mod files;
mod gate;
mod google;
mod google_business;
mod graph;
mod hold;
mod instagram;
mod journal;
mod linkedin;
mod login;
mod movie;
mod page;
mod pinterest;
mod pipeline;
mod rate_limit;
mod recorded;
mod reddit;
mod routes;
mod schema;
mod server;
mod settings;
mod simulator;
mod store;
mod threads;
mod tiktok;
mod tokens;
mod unicode;
mod x;
mod youtube;

pub use access::Access;
pub use domain::sandbox::Address;
pub use recorded::Recorded;
pub use server::serve;
pub use settings::{AppStatus, Settings};

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, Utc};
use domain::{App, AppAccess, Grant, Identity};
use files::Files;
use gate::{AccessControl, Orgs};
use hold::Holds;
use poem::Endpoint;
use rate_limit::{Quota, RateLimit, RateWindows};
use simulator::{Simulator, get_or_create_account};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use store::Store;
use tokio::sync::watch;

/// The simulated platforms. The first that claims a request answers it.
static SIMULATORS: &[&dyn Simulator] = &[
    &facebook::Facebook,
    &instagram::Instagram,
    &threads::Threads,
    &x::X,
    &bluesky::Bluesky,
    &youtube::YouTube,
    &tiktok::TikTok,
    &linkedin::LinkedIn,
    &pinterest::Pinterest,
    &google_business::GoogleBusiness,
    &reddit::Reddit,
];

/// Returns the keys of a platform's rules about content that follow from its schemas. Those of its code are arguments of
/// `Content(…)` there.
#[must_use]
pub fn schema_rules(platform: &str) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    match platform {
        "x" => x::schema_rules(&mut rules),
        "bluesky" => bluesky::schema_rules(&mut rules),
        _ => {}
    }
    rules
}

/// Options of a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the data; `None` to keep it in memory.
    pub data: Option<PathBuf>,
    /// Clock of the sandbox.
    pub clock: fn() -> DateTime<Utc>,
    /// Standing of its apps, until `POST /_settings` changes it.
    pub app: AppStatus,
}

/// A sandbox; clones share it.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    files: Files,
    holds: Holds,
    /// Number of the journal's last entry.
    journal: watch::Sender<u64>,
    clock: fn() -> DateTime<Utc>,
    access: Access,
    data: Option<PathBuf>,
    app: AppStatus,
    orgs: Orgs,
    /// Held while the sandbox is open: two processes would overwrite each other's log.
    _lock: Option<File>,
}

struct State {
    store: Store,
    windows: RateWindows,
    settings: Settings,
}

/// A connected account, as after its owner's consent.
#[derive(Clone)]
pub struct Connected {
    /// Identity of the account.
    pub identity: Identity,
    /// Grant for the app.
    pub grant: Grant,
    /// App that it was granted to, if the platform has apps.
    pub app: Option<App>,
}

impl Sandbox {
    /// Opens a sandbox.
    ///
    /// # Errors
    ///
    /// When its folder can't be created or read, or another process has it open.
    pub fn open(options: Options) -> Result<Self> {
        Self::open_with(options, Access::default())
    }

    /// Opens a sandbox with access control.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::open`].
    pub fn open_with(options: Options, access: Access) -> Result<Self> {
        let mut lock = None;
        if let Some(folder) = &options.data {
            std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
            let file = File::create(folder.join("lock")).context("making the sandbox's lock")?;
            file.try_lock()
                .map_err(|error| anyhow!("the sandbox at {} is open elsewhere: {error}", folder.display()))?;
            lock = Some(file);
        }
        let log = options.data.as_ref().map(|folder| folder.join("log.jsonl"));
        let store = Store::open(log.as_deref())?;
        let files = Files::open(options.data.as_ref().map(|folder| folder.join("files")))
            .context("making the files' folder")?;
        let settings = store.get("").unwrap_or(Settings { app: options.app, ..Settings::default() });
        let last = journal::last(&store);
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(State { store, windows: RateWindows::default(), settings }),
            files,
            holds: Holds::default(),
            journal: watch::Sender::new(last),
            clock: options.clock,
            access,
            data: options.data,
            app: options.app,
            orgs: Orgs::default(),
            _lock: lock,
        })))
    }

    /// Returns everything that the sandbox serves as an endpoint. Only [`serve`] can drop a connection on
    /// purpose; another server sends 502 instead.
    pub fn endpoint(&self) -> impl Endpoint + use<> {
        AccessControl { sandbox: self.clone(), inner: control::routes(self.clone()) }
    }

    /// Connects an account, creating it when there is none.
    ///
    /// # Errors
    ///
    /// When the platform is unknown, its rules forbid the name, or the account could not be stored.
    pub fn connect(&self, platform: &str, username: &str) -> Result<Connected> {
        self.connect_at(platform, username, None)
    }

    /// Changes the settings, as `POST /_settings` does.
    ///
    /// # Errors
    ///
    /// When they can't be stored.
    pub fn configure(&self, change: impl FnOnce(&mut Settings)) -> Result<()> {
        self.transaction(|tx| {
            change(tx.settings);
            tx.store.put(&*tx.settings);
        })
    }

    /// Keeps a file, and returns its path below the sandbox's address, from which platforms can fetch it.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn keep(&self, bytes: bytes::Bytes) -> Result<String> {
        Ok(format!("_media/{}", self.0.files.store_bytes(bytes)?.id))
    }

    /// Connects an account and moves it to a server, when one is given.
    fn connect_at(&self, platform: &str, username: &str, server: Option<String>) -> Result<Connected> {
        let simulator = find(platform).ok_or_else(|| anyhow!("the sandbox does not speak {platform}"))?;
        self.transaction(|tx| {
            let mut account = get_or_create_account(tx, simulator, username).map_err(anyhow::Error::msg)?;
            if server.is_some() {
                account.server = server;
                tx.store.put(&account);
            }
            let grant = simulator.grants().grant(tx, &mut account);
            let access = if tx.settings.is_approved() { AppAccess::Full } else { AppAccess::Trial };
            let app = simulator.grants().app().map(|app| App { access, ..app });
            Ok(Connected { identity: simulator.identity(&account), grant, app })
        })?
    }

    /// Runs a transaction: nothing runs between its steps, and its changes go to the log at its end.
    fn transaction<T>(&self, work: impl FnOnce(&mut Transaction) -> T) -> Result<T> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { store, windows, settings } = &mut *state;
        let now = (self.0.clock)();
        let done =
            work(&mut Transaction { store, windows, settings, files: &self.0.files, now, quota: None });
        state.store.commit()?;
        Ok(done)
    }
}

/// Returns the app that the sandbox's grants belong to, if the platform has apps.
pub fn app(platform: &str) -> Option<App> {
    find(platform)?.grants().app()
}

/// Returns the apps that the sandbox's grants belong to, by platform.
pub fn apps() -> BTreeMap<String, App> {
    SIMULATORS
        .iter()
        .filter_map(|simulator| Some((simulator.id().to_owned(), simulator.grants().app()?)))
        .collect()
}

/// Returns the simulator of a platform.
fn find(platform: &str) -> Option<&'static dyn Simulator> {
    SIMULATORS.iter().copied().find(|simulator| simulator.id() == platform)
}

/// Everything that a transaction may read and change.
struct Transaction<'a> {
    store: &'a mut Store,
    windows: &'a mut RateWindows,
    settings: &'a mut Settings,
    files: &'a Files,
    now: DateTime<Utc>,
    /// State of the rate window that the request counts against, for the response's headers.
    quota: Option<Quota>,
}

impl Transaction<'_> {
    /// Spends units of a rate limit. Fails when fewer are left.
    fn spend(&mut self, rule: RateLimit, who: &str, cost: u64) -> Result<Quota, Quota> {
        let limit = self.settings.limits.get(rule.name).copied().unwrap_or(rule.limit);
        self.windows.take(rule, limit, who, cost, self.now)
    }
}
