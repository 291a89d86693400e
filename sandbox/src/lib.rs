//! The other side of the wire: the platforms' own HTTP APIs, served from this machine.
//!
//! Part of the product, not a mock: it answers what the platforms' documentation says, refusals
//! included, keeps what was published and shows it, so that an official client library that is
//! pointed here works. `https://api.x.com/2/tweets` is `{sandbox}/api.x.com/2/tweets`; a client that
//! takes the sandbox itself for a platform finds `{sandbox}/2/…` and `{sandbox}/xrpc/…` too.
//!
//! # What can be asked of the sandbox itself
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /` | the accounts, as a page with a control panel: what is to go wrong next, at a click |
//! | `GET /{platform}/{username}` | what the account published, as a page |
//! | `GET /{platform}/{username}/{post}` | one post, as a page |
//! | `GET /_journal?account=&platform=&path=&method=&accepted=&fault=&after=` | `{ entries: [{ seq, at, platform, account, method, host, path, status, accepted, post_id, post_ids, fault }] }`: each request that an account made, oldest first; `status` is null when no reply left, `accepted` is true exactly when a new post came into being |
//! | `GET /_journal/wait?…&count=1&timeout_ms=30000` | the same once `count` entries match; 408 when they don't in time |
//! | `POST /_accounts` `{ platform, username?, service? }` | 201 `{ identity, grant, app }`; the account is made if there is none, the grant is fresh; `service` is the address of the Bluesky server that it is to live on, `https://bsky.social` unless told |
//! | `POST /_accounts/{platform}/{username}/tokens/expire` | 204; access tokens given so far are refused as expired |
//! | `POST /_accounts/{platform}/{username}/tokens/revoke` (or without `tokens/`) | 204; what was granted so far can't be refreshed |
//! | `POST /_holds` `{ platform?, account?, path_prefix?, method?, nth?, when: before \| after }` | 201 `{ id }`; the nth matching request (1 unless told) is held before it is processed, or after, with its reply withheld |
//! | `GET /_holds/{id}` | `{ id, phase }`: `waiting`, `held`, `released`, `dropped` |
//! | `GET /_holds/{id}/wait?phase=held&timeout_ms=30000` | the same once the phase is reached (`held` also when it is past); 408 when it isn't in time |
//! | `DELETE /_holds/{id}` | 204; a held request goes on |
//! | `GET`, `POST /_settings` | the [`Settings`]; a POST changes the members it has |
//! | `GET /_media/{file}` | uploaded bytes |
//! | `GET /_health` | 204 |
//!
//! On loopback all of this is open. Where a sandbox listens beyond and has a token ([`Access`]), everything
//! but `/_health` asks for it (`Authorization: Bearer`, or the password of basic authorization), and each
//! organization has all of the above for itself below `/_orgs/{organization}.{signature}`: there what
//! platforms serve is open to whoever knows that address, and what controls it asks for the token.
//!
//! # Failures on purpose
//!
//! A word in the text of a post, and the call that publishes it fails: `#sandbox-400`, `-401`, `-403`,
//! `-429`, `-500`, `-503` (refused as the platform would), `#sandbox-slow` (answered late),
//! `#sandbox-stuck` (never answered, not accepted), `#sandbox-drop` (the connection drops, not accepted),
//! `#sandbox-lost-reply` (accepted, the connection drops), `#sandbox-500-after` (accepted, then 500),
//! `#sandbox-garbage` (accepted, a body that can't be read). `x2` after the word limits it to the first
//! two tries. A media file whose name or description contains `sandbox-stuck` is processed for ever,
//! and one with `sandbox-failed` fails to be; a platform that is told neither looks for the word in the
//! file's first bytes.
//!
//! The control panel arms an account with one of these: its next tries meet it, whatever their text says.

mod access;
mod account;
mod call;
mod container;
mod control;
mod fault;
mod fetch;
mod figures;
mod files;
mod front;
mod google;
mod graph;
mod hold;
mod host;
mod journal;
mod login;
mod page;
mod panel;
mod schema;
mod server;
mod settings;
mod shelf;
mod tokens;
mod window;

pub use access::Access;
pub use domain::sandbox::Address;
pub use server::serve;
pub use settings::Settings;

use access::{Door, Orgs};
use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, Utc};
use domain::{App, Grant, Identity};
use files::Files;
use hold::Holds;
use host::Host;
use poem::Endpoint;
use shelf::Shelf;
use std::{
    collections::BTreeMap,
    fs::File,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::watch;
use window::{Allowance, Rule, Windows};

macro_rules! hosts {
    ($($module:ident::$host:ident),+ $(,)?) => {
        $(mod $module;)+
        /// The platforms that the sandbox speaks; the first that claims a request has it.
        static HOSTS: &[&dyn Host] = &[$(&$module::$host),+];
    };
}

hosts! {
    facebook::Facebook,
    instagram::Instagram,
    threads::Threads,
    x::X,
    bluesky::Bluesky,
    youtube::YouTube,
    tiktok::TikTok,
    linkedin::LinkedIn,
    pinterest::Pinterest,
    google_business::GoogleBusiness,
    reddit::Reddit,
}

/// How a sandbox is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that keeps what was accepted; `None` for a sandbox that forgets.
    pub data: Option<PathBuf>,
    /// The clock.
    pub clock: fn() -> DateTime<Utc>,
}

/// A sandbox; clones share it.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    files: Files,
    holds: Holds,
    /// The number of the journal's last entry.
    journal: watch::Sender<u64>,
    clock: fn() -> DateTime<Utc>,
    access: Access,
    data: Option<PathBuf>,
    orgs: Orgs,
    /// Held as long as the sandbox is open: two processes would overwrite each other's log.
    _lock: Option<File>,
}

struct State {
    shelf: Shelf,
    windows: Windows,
    settings: Settings,
}

/// An account that was connected, as after its owner's consent.
#[derive(Clone)]
pub struct Connected {
    /// Who it is.
    pub identity: Identity,
    /// What it granted.
    pub grant: Grant,
    /// The app it was granted to, where the platform has apps.
    pub app: Option<App>,
}

impl Sandbox {
    /// Opens a sandbox.
    ///
    /// # Errors
    ///
    /// When its folder can't be made or read, or another process has it open.
    pub fn open(options: Options) -> Result<Self> {
        Self::open_with(options, Access::default())
    }

    /// Opens a sandbox that is protected.
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
        let shelf = Shelf::open(log.as_deref())?;
        let files = Files::open(options.data.as_ref().map(|folder| folder.join("files")))
            .context("making the files' folder")?;
        let settings = shelf.get("").unwrap_or_default();
        let last = journal::last(&shelf);
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(State { shelf, windows: Windows::default(), settings }),
            files,
            holds: Holds::default(),
            journal: watch::Sender::new(last),
            clock: options.clock,
            access,
            data: options.data,
            orgs: Orgs::default(),
            _lock: lock,
        })))
    }

    /// Everything it serves, to be mounted elsewhere. Only [`serve`] can drop a connection on
    /// purpose; under another server that is a 502.
    pub fn endpoint(&self) -> impl Endpoint + use<> {
        Door { sandbox: self.clone(), inner: control::routes(self.clone()) }
    }

    /// Connects an account, which is made if there is none.
    ///
    /// # Errors
    ///
    /// When the sandbox does not speak the platform, the platform would not give anyone that name, or
    /// it could not be kept.
    pub fn connect(&self, platform: &str, username: &str) -> Result<Connected> {
        self.connect_at(platform, username, None)
    }

    /// The same, of an account that moves to a server where one is named.
    fn connect_at(&self, platform: &str, username: &str, server: Option<String>) -> Result<Connected> {
        let host = find(platform).ok_or_else(|| anyhow!("the sandbox does not speak {platform}"))?;
        self.turn(|turn| {
            let mut account = account::open(turn, host, username).map_err(anyhow::Error::msg)?;
            if server.is_some() {
                account.server = server;
                turn.shelf.put(&account);
            }
            let grant = host.grants().grant(turn, &mut account);
            Ok(Connected { identity: host.identity(&account), grant, app: host.grants().app() })
        })?
    }

    /// One step that nothing else comes between, written to the log at its end.
    fn turn<T>(&self, work: impl FnOnce(&mut Turn<'_>) -> T) -> Result<T> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { shelf, windows, settings } = &mut *state;
        let now = (self.0.clock)();
        let done = work(&mut Turn { shelf, windows, settings, files: &self.0.files, now });
        state.shelf.commit()?;
        Ok(done)
    }
}

/// The app that the sandbox's grants are given to, where the platform has apps.
pub fn app(platform: &str) -> Option<App> {
    find(platform)?.grants().app()
}

/// The apps that the sandbox's grants are given to, by platform.
pub fn apps() -> BTreeMap<String, App> {
    HOSTS.iter().filter_map(|host| Some((host.id().to_owned(), host.grants().app()?))).collect()
}

/// The platform of this name.
fn find(platform: &str) -> Option<&'static dyn Host> {
    HOSTS.iter().copied().find(|host| host.id() == platform)
}

/// What a step works on.
struct Turn<'a> {
    shelf: &'a mut Shelf,
    windows: &'a mut Windows,
    settings: &'a mut Settings,
    files: &'a Files,
    now: DateTime<Utc>,
}

impl Turn<'_> {
    /// Takes units of a rate window, or tells that there are not so many left.
    fn spend(&mut self, rule: Rule, who: &str, cost: u64) -> Result<Allowance, Allowance> {
        let limit = self.settings.limits.get(rule.name).copied().unwrap_or(rule.limit);
        self.windows.take(rule, limit, who, cost, self.now)
    }
}
