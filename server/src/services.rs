//! The services of a process: API with relay, and workers. They stop together.

use crate::{
    admin::Admin,
    clock,
    config::{Http, MediaUrlConfig, NetworkConfig, Scheduling, Storage, Temporal, WorkerConfig, client_ids},
    database::Database,
    http,
    lineage::{self, Guard},
    memory,
    readiness::{self, Probes},
    secrets::Secret,
    startup, stopping,
};
use activities::{
    Deps,
    worker::{Lifecycle, Workers},
};
use anyhow::Context;
use api::app::TemporalUi;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{request_proof::Key, sandbox::Address};
use egress::Egress;
use media::{FileStore, Location};
use platforms::versions::{self, DatedVersion, Month};
use publishing::{Apps, Engine, Transports};
use starter::{housekeeper::Housekeeper, relay::Relay, requests, schedules, sweeper::Sweeper};
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};
use store::{
    Pool,
    upkeep::durability::{self, Purpose},
};
use telemetry::{health::Health, metrics};
use temporalio_client::Client;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use url::{Host, Url};

/// The services that a process runs, with their configuration.
pub(crate) enum Role<'a> {
    /// API and relay.
    Api(&'a Http),
    /// Workers.
    Worker(&'a WorkerConfig, &'a MediaUrlConfig),
    /// Both.
    All(&'a Http, &'a WorkerConfig),
}

/// Runs the services of a role until SIGINT or SIGTERM.
pub(crate) async fn run(
    database: &Database,
    temporal: &Temporal,
    network: &NetworkConfig,
    storage: &Storage,
    admin: &Admin,
    role: Role<'_>,
) -> anyhow::Result<()> {
    let probes = Probes::of(match &role {
        Role::Api(_) => "api",
        Role::Worker(..) => "worker",
        Role::All(..) => "all",
    });
    let health = &probes.health;
    let drain = match &role {
        Role::Api(http) | Role::All(http, _) => http.limits.connections.drain(),
        Role::Worker(..) => Duration::ZERO,
    };
    let stop = on_signal(health.clone(), drain)?;
    let Database { database_url, database_connections, unchecked_postgres_settings: unchecked } = database;
    let purpose = match &role {
        Role::Api(_) => Purpose::Serve,
        Role::Worker(..) | Role::All(..) => Purpose::Publish,
    };
    let db = durability::connect_lazy(database_url, *database_connections, unchecked, purpose)?;
    probes.watch_database(&db, !matches!(role, Role::Worker(..)));
    lineage::watch(health, database_url, purpose)?;
    // The ranges apply to both modes; only `fanfare dev` allows more in test mode.
    let allowed =
        api::AllowedRanges { live: network.egress_allow.clone(), test: network.egress_allow.clone() };
    let bind = |http: &Http| {
        let http = &Http { openid: network.openid.name(), ..http.clone() };
        let listener = TcpListener::bind(http.listen)
            .with_context(|| format!("the API can't listen on {}", http.listen))?;
        Api::new(listener, db.clone(), temporal.clone(), http, allowed.clone(), network.sandbox(), storage)
    };
    let (api, worker, shared) = match role {
        Role::Api(http) => (Some(bind(http)?), None, None),
        Role::Worker(worker, media_url) => {
            // Without the API's secret the API would refuse signed URLs.
            let key = media_url.secret.map_or_else(rand::random, |Secret(secret)| secret);
            let base_url = media_url.secret.and(media_url.base_url.clone());
            if let (Location::Directory(_), Some(url)) = (&storage.location, &base_url)
                && is_this_machine(url)
            {
                warn!(
                    "FANFARE_BASE_URL is {url}: platforms that fetch media themselves, and a sandbox on another \
                     machine or in a container, can't fetch files from this machine's own address"
                );
            }
            let request_key = media_url.secret.map(|Secret(secret)| Key::derive(&secret));
            (None, Some(worker), Some((open_files(storage, &key, base_url)?, request_key)))
        }
        Role::All(http, worker) => {
            let mut http = http.clone();
            // A process that has the apps knows their client ids.
            http.shared_clients.0.extend(worker.keys.shared_apps.clients().0);
            let api = bind(&http)?;
            let shared = (api.files(), Some(Key::derive(&http.secret.0)));
            (Some(api), Some(worker), Some(shared))
        }
    };
    let api = api.map(|api| api.observed(health, worker.is_none()));
    let connected = watch::Sender::new(None);
    if worker.is_some() {
        probes.watch_workers();
        readiness::watch_temporal(health, connected.subscribe(), true);
    }
    let files = match (&api, &shared) {
        (Some(api), _) => Some(api.files()),
        (None, Some((files, _))) => Some(files.clone()),
        (None, None) => None,
    };
    if let Some(files) = &files {
        readiness::watch_media(health, files.clone(), worker.is_some());
    }
    // Before anything is waited for, so that the probes tell what is missing.
    admin.serve(&probes)?;
    if let Some(files) = &files {
        check_media(files).await?;
    }
    let (client, guard) = match worker {
        Some(worker) => {
            if let Some(files) = &files {
                check_decoders(files).await?;
            }
            let found = stop.run_until_cancelled(prerequisites(&db, database, temporal, worker)).await;
            let Some(found) = found else { return Ok(()) };
            let (client, guard) = found?;
            connected.send_replace(Some(client.clone()));
            (Some(client), Some(guard))
        }
        None => (None, None),
    };
    check_durability(database, purpose).await?;
    let workers = match worker.zip(shared).zip(client) {
        Some(((worker, (files, request_key)), client)) => {
            let resources = Resources { files, retention: storage.limits.retention(), request_key };
            let mut worker = worker.clone();
            worker.openid.issuer = network.openid.oidc_issuer.clone();
            Some(workers(db, client, temporal, &worker, network.sandbox(), &allowed, resources).await?)
        }
        None => None,
    };
    // Tells the parent process that startup is complete; the log goes to stderr.
    println!("ready");
    let limit = worker.and_then(|worker| worker.lifetime.memory_limit);
    let services = run_services(api, workers, &probes, stop.clone());
    memory::bounded(limit, stop.clone(), lineage::guarded(guard, stop, services)).await
}

/// Returns true if a URL leads to the machine that resolves it, whichever that is. A name below `localhost` may be that
/// of a container.
fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Opens the file store.
fn open_files(storage: &Storage, secret: &[u8; 32], base_url: Option<Url>) -> anyhow::Result<FileStore> {
    let key = media::Key::derive(secret);
    FileStore::open(&storage.location(), key, base_url, storage.limits.media_caps.clone())
        .context("FANFARE_MEDIA")
}

/// Fails if media files can't be written until an operator changes that. A storage that does not answer may do so soon,
/// and posts without files do without it.
pub(crate) async fn check_media(files: &FileStore) -> anyhow::Result<()> {
    let Err(error) = files.probe().await else { return Ok(()) };
    let lasts = media::needs_operator(&error);
    let error = anyhow::Error::new(error).context("FANFARE_MEDIA can't be written");
    if lasts {
        return Err(error);
    }
    warn!(error = format!("{error:#}"), "The media storage does not work");
    Ok(())
}

/// Fails if the processes that decode media can't run here, and logs if they are confined by less than they could be: by a
/// kernel or a container without landlock, for example.
pub(crate) async fn check_decoders(files: &FileStore) -> anyhow::Result<()> {
    let found = files.decoders().confinement().await.context("a process that decodes media does not work")?;
    if !found.is_complete() {
        warn!("Processes that decode media are confined by less than they could be: {found}");
    }
    Ok(())
}

/// Resources that workers share with the API.
pub(crate) struct Resources {
    /// The file store.
    pub(crate) files: FileStore,
    /// How long files are kept; `None` for without limit.
    pub(crate) retention: Option<TimeDelta>,
    /// The key with which the API proves its requests, if the worker has it.
    pub(crate) request_key: Option<Key>,
}

/// Waits until a worker can run, and connects to Temporal. Returns the guard that looks whether it still can.
async fn prerequisites(
    db: &Pool,
    database: &Database,
    temporal: &Temporal,
    worker: &WorkerConfig,
) -> anyhow::Result<(Client, Guard)> {
    let limit = Duration::from_secs(worker.start_timeout);
    startup::wait_for(limit, async || startup::check_database(db, database).await).await?;
    startup::wait_for(limit, async || startup::check_restored(db).await).await?;
    let asked = Instant::now();
    let client = startup::wait_for(limit, async || startup::connect(&temporal.server, asked).await).await?;
    let guard = Guard::new(db, &client, temporal);
    startup::wait_for(limit, async || guard.check().await).await?;
    Ok((client, guard))
}

/// Runs API and workers until `stop`, or until one of them fails.
pub(crate) async fn run_services(
    api: Option<Api>,
    workers: Option<Workers>,
    probes: &Probes,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let serving = async {
        let outcome = match api {
            Some(api) => api.serve(stop.clone()).await,
            None => Ok(()),
        };
        if outcome.is_err() {
            stop.cancel();
        }
        outcome
    };
    let working = async {
        let Some(mut workers) = workers else { return Ok(()) };
        let stopper = workers.stopper();
        let waiting = stop.clone();
        tokio::spawn(async move {
            waiting.cancelled().await;
            stopper();
        });
        let outcome = probes.polling(workers.run()).await;
        stop.cancel();
        outcome
    };
    let pulse = readiness::main_pulse(&probes.health);
    tokio::select! {
        (served, worked) = async { tokio::join!(serving, working) } => served.and(worked),
        never = pulse.keep() => never,
    }
}

/// Returns a token that the first SIGINT or SIGTERM cancels: the process becomes unready, and stops after `drain` or
/// with the second signal.
pub(crate) fn on_signal(health: Health, drain: Duration) -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        health.stop();
        tokio::select! {
            () = tokio::time::sleep(drain) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
    Ok(stop)
}

/// Maximum difference to the database's clock, whose times are compared with those that workers write.
const MAX_SKEW: Duration = Duration::from_secs(5);

/// Fails if a clock differs too much from the database's.
pub(crate) async fn check_clock(db: &Pool, now: fn() -> DateTime<Utc>) -> anyhow::Result<()> {
    let skew = store::skew(db, now).await.context("read the database's clock")?;
    anyhow::ensure!(
        skew <= MAX_SKEW,
        "this machine's clock and the database's differ by {} s, the maximum is {} s: synchronize them with NTP",
        skew.as_secs(),
        MAX_SKEW.as_secs()
    );
    Ok(())
}

/// Fails if Postgres may lose commits or accepts no writes. An API starts while it doesn't answer or is a standby: every
/// connection is checked again.
async fn check_durability(database: &Database, purpose: Purpose) -> anyhow::Result<()> {
    let checked = durability::check(&database.database_url, &database.unchecked_postgres_settings, purpose);
    let allowed = match checked.await {
        Err(error) if durability::may_recover(&error) && purpose == Purpose::Serve => {
            warn!(error = format!("{error:#}"), "Postgres can't be used yet");
            return Ok(());
        }
        checked => checked?,
    };
    if !allowed.is_empty() {
        let allowed: Vec<_> = allowed.iter().map(|setting| setting.as_str()).collect();
        let allowed = allowed.join(", ");
        warn!("Postgres may lose commits, as FANFARE_UNCHECKED_POSTGRES_SETTINGS allows: see {allowed}");
    }
    Ok(())
}

/// Creates the workers of this process.
pub(crate) async fn workers(
    db: Pool,
    client: Client,
    temporal: &Temporal,
    worker: &WorkerConfig,
    sandbox: Option<Address>,
    allowed: &api::AllowedRanges,
    resources: Resources,
) -> anyhow::Result<Workers> {
    check_clock(&db, clock::now).await?;
    let (keys, linkedin_version) = (&worker.keys, worker.versions.linkedin_version);
    tokio::spawn(watch_versions(linkedin_version));
    tokio::spawn(keep_schedules(client.clone(), temporal.clone()));
    tokio::spawn(notify_relays(db.clone()));
    let stop = watch::Sender::new(false);
    let engine = Engine {
        db,
        sealer: keys.open_keys.sealer(),
        opener: keys.open_keys.clone(),
        adapters: platforms::get,
        transports: Transports::new(sandbox, allowed.live.clone())?.with_linkedin_version(linkedin_version),
        apps: Apps { live: keys.shared_apps.0.clone(), test: sandbox::apps() },
        media: resources.files,
        now: clock::now,
        jitter: clock::jitter,
        time_scale: temporal.time_scale(),
        stop: stop.subscribe(),
    };
    let deps = Deps {
        engine: Arc::new(engine),
        egress: Egress::new(allowed.live.clone(), allowed.test.clone())?,
        retention: resources.retention,
        openid: worker.openid.provider()?,
        temporal: client,
        request_key: resources.request_key,
    };
    let (recycle_after, version) = (worker.lifetime.recycle_after, worker.deployment.version());
    let lifecycle = Lifecycle { stop, recycle_after, version };
    Workers::new(&temporal.scheduling.task_queue, &worker.queues.served(), lifecycle, deps)
}

/// Interval at which the ends of versions are told.
const VERSIONS_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Tells how long the platforms will serve the versions of their APIs, at once and every day.
async fn watch_versions(linkedin: Option<Month>) {
    let mut days = tokio::time::interval(VERSIONS_INTERVAL);
    loop {
        days.tick().await;
        let now = clock::now();
        for version in versions::dated(linkedin) {
            let days = version.days_left(now);
            if version.is_ending(now) {
                let (name, DatedVersion { version, ends, source, .. }) =
                    (platforms::display_name(version.platform), &version);
                warn!("{name} serves version {version} of its API until {ends}: update Fanfare ({source})");
            }
            metrics::version_days(version.platform, version.version, days);
        }
    }
}

/// Notifies relays of other processes, with retries.
async fn notify_relays(db: Pool) {
    let mut commits = store::Commits::subscribe();
    while let Err(error) = store::notify_relays(&db, &mut commits).await {
        warn!(%error, "The relays were not notified of new messages; they poll");
        tokio::time::sleep(store::NOTIFY_INTERVAL).await;
    }
}

/// Interval at which a worker looks whether the Temporal schedules exist.
const SCHEDULES_INTERVAL: Duration = Duration::from_secs(600);
/// Lower limit of a scaled [`SCHEDULES_INTERVAL`].
const MIN_SCHEDULES_INTERVAL: Duration = Duration::from_secs(10);

/// Creates or updates the Temporal schedules, and creates them again when they are gone. Publishing does not wait for
/// that.
async fn keep_schedules(client: Client, temporal: Temporal) {
    let Scheduling { task_queue: queue, collect_every, .. } = &temporal.scheduling;
    let every = Duration::from_secs(*collect_every);
    let interval = temporal.time_scale().scale(SCHEDULES_INTERVAL).max(MIN_SCHEDULES_INTERVAL);
    let mut is_new = true;
    loop {
        let kept = async {
            if is_new || !schedules::are_kept(&client, queue, every).await? {
                schedules::apply(&client, queue, every).await?;
            }
            anyhow::Ok(())
        };
        match kept.await {
            Ok(()) => is_new = false,
            Err(error) => warn!(
                error = format!("{error:#}"),
                "The schedules of metrics collection and media clean-up could not be set; retrying"
            ),
        }
        tokio::time::sleep(if is_new { interval.min(Duration::from_secs(30)) } else { interval }).await;
    }
}

/// The API, bound to its port but not yet serving.
pub(crate) struct Api {
    listener: TcpListener,
    limits: http::Limits,
    retention: store::upkeep::retention::Retention,
    /// Address that it listens on.
    pub(crate) address: SocketAddr,
    app: api::App,
    temporal: Temporal,
    connected: watch::Sender<Option<Client>>,
}

impl Api {
    /// Creates the API on a bound listener.
    pub(crate) fn new(
        listener: TcpListener,
        db: Pool,
        temporal: Temporal,
        http: &Http,
        allowed: api::AllowedRanges,
        sandbox: Option<Address>,
        storage: &Storage,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let base_url =
            http.base_url.as_ref().map_or_else(|| format!("http://{address}/api/v1"), Url::to_string);
        let media =
            open_files(storage, &http.secret.0, Some(Url::parse(&base_url).context("FANFARE_BASE_URL")?))?;
        let config = api::Config {
            base_url,
            media,
            media_retention: storage.limits.retention(),
            horizon: temporal.horizon()?,
            cursor_key: api::connect::oauth_state::expand(&http.secret.0, b"fanfare cursors 1"),
            sealer: http.seal_key.clone(),
            opened: allowed,
            seal: api::seal::Key::new(api::connect::oauth_state::expand(&http.secret.0, b"fanfare seal 1")),
            states: api::connect::oauth_state::Key::derive(&http.secret.0),
            openid: http.openid.clone(),
            request_key: Key::derive(&http.secret.0),
            shared_clients: http.shared_clients.0.clone(),
            sandbox_clients: client_ids(&sandbox::apps()),
            sandbox,
            limits: http.limits.rate_limits.clone(),
            plans: http.limits.pricing.plans.clone(),
            operator_token: http.operator_token.clone(),
            temporal_ui: temporal
                .temporal_ui
                .clone()
                .map(|base| TemporalUi { base, namespace: temporal.server.namespace.clone() }),
            trusted_hops: http.limits.trusted_hops,
            body_timeout: Duration::from_secs(http.limits.connections.body_timeout),
        };
        let (connected, client) = watch::channel(None);
        let workers = requests::Workers::new(client, &temporal.scheduling.task_queue);
        let health = Health::default();
        let app = api::App { db, workers, config: config.into(), health, now: clock::now };
        let (limits, retention) = (http.limits.connections.limits(), http.limits.retention.retention());
        Ok(Self { listener, limits, retention, address, app, temporal, connected })
    }

    /// Shows the state of the process, and adds the API's own. `is_alone` is true if no workers run beside it.
    pub(crate) fn observed(mut self, health: &Health, is_alone: bool) -> Self {
        if is_alone {
            readiness::watch_temporal(health, self.connected.subscribe(), false);
        }
        self.app.health = health.clone();
        self
    }

    /// Returns the file store.
    pub(crate) fn files(&self) -> FileStore {
        self.app.config.media.clone()
    }

    /// Serves until `stop`. Temporal may be down: messages wait in the outbox.
    pub(crate) async fn serve(self, stop: CancellationToken) -> anyhow::Result<()> {
        let (db, horizon) = (self.app.db.clone(), self.app.config.horizon);
        let handover = CancellationToken::new();
        let health = self.app.health.clone();
        let housekeeper = Housekeeper { db: db.clone(), retention: self.retention };
        let housekeeping = tokio::spawn(housekeeper.run());
        let relay = tokio::spawn(relay(db, self.temporal, horizon, self.connected, health, handover.clone()));
        info!(address = %self.address, "The API listens on {}", self.address);
        http::serve(self.listener, api::endpoint(self.app, dashboard::endpoint()), self.limits, stop)
            .await
            .context("the API stopped")?;
        handover.cancel();
        housekeeping.abort();
        if tokio::time::timeout(stopping::HANDOVER, relay).await.is_err() {
            warn!("Temporal is slow: some messages are sent when their lease has expired");
        }
        Ok(())
    }
}

/// Connects to Temporal with retries, then runs the outbox relay and the sweeper until `stop`.
async fn relay(
    db: Pool,
    temporal: Temporal,
    horizon: Duration,
    connected: watch::Sender<Option<Client>>,
    health: Health,
    stop: CancellationToken,
) {
    let pulse = readiness::loop_pulse(&health, "relay");
    let connecting = async {
        let mut wait = startup::Wait::begin();
        loop {
            pulse.beat();
            match temporal.server.connect().await {
                Ok(client) => {
                    wait.end();
                    break client;
                }
                Err(fault) => wait.pause(format!("{:#}", fault.into_error())).await,
            }
        }
    };
    let Some(client) = stop.run_until_cancelled(connecting).await else { return };
    connected.send_replace(Some(client.clone()));
    // Temporal refuses workflows until then, and refused messages would be parked.
    if stop.run_until_cancelled(startup::prepared(&temporal.server, &client, || pulse.beat())).await.is_none()
    {
        return;
    }
    let time_scale = temporal.time_scale();
    let relay = Relay {
        db: db.clone(),
        temporal: client,
        queue: temporal.scheduling.task_queue,
        time_scale,
        now: clock::now,
        pulse: pulse.clone(),
    };
    let sweeper = Sweeper { db, time_scale, horizon, pulse: readiness::loop_pulse(&health, "sweeper") };
    tokio::select! {
        () = relay.run(stop) => {}
        () = sweeper.run() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_told_from_one_that_others_reach() {
        for (url, expected) in [
            ("http://localhost:8080/api/v1", true),
            ("http://127.0.0.1:8080/api/v1", true),
            ("http://[::1]:8080/api/v1", true),
            ("http://fanfare.localhost:8080/api/v1", false),
            ("https://fanfare.example.com/api/v1", false),
            ("http://10.0.0.7/api/v1", false),
        ] {
            assert_eq!(is_this_machine(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
