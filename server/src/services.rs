//! The parts of a running service: API with relay, workers, sandbox, and how they end together.

use crate::{
    clock,
    config::{
        Database, Http, MediaUrlConfig, NetworkConfig, Secret, Storage, Temporal, WorkerConfig, client_ids,
    },
    http,
};
use activities::{Deps, worker::Workers};
use anyhow::Context;
use api::app::TemporalUi;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ip_ranges::AllowedRanges, sandbox::Address};
use egress::Egress;
use media::FileStore;
use publishing::{Apps, Engine, Transports};
use starter::{relay::Relay, requests, schedules, sweeper::Sweeper};
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};
use store::Pool;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use url::Url;

/// Which parts one process runs, and what only they are told.
pub(crate) enum Role<'a> {
    /// The API and the relay.
    Api(&'a Http),
    /// The workers.
    Worker(&'a WorkerConfig, &'a MediaUrlConfig),
    /// Both.
    All(&'a Http, &'a WorkerConfig),
}

/// Runs the parts that are configured until a signal ends them.
pub(crate) async fn run(
    database: &Database,
    temporal: &Temporal,
    reach: &NetworkConfig,
    storage: &Storage,
    role: Role<'_>,
) -> anyhow::Result<()> {
    let stop = on_signal()?;
    let db = store::connect_lazy(&database.database_url, database.database_connections)?;
    // Opened ranges count in both modes here; the development command opens more for test mode.
    let opened = Ranges { live: reach.egress_allow.clone(), test: reach.egress_allow.clone() };
    let bind = |http: &Http| {
        let listener = TcpListener::bind(http.listen)
            .with_context(|| format!("the API can't listen on {}", http.listen))?;
        Api::on(listener, db.clone(), temporal.clone(), http, opened.clone(), reach.sandbox(), storage)
    };
    let (api, working, shelf) = match role {
        Role::Api(http) => (Some(bind(http)?), None, None),
        Role::Worker(working, serving) => {
            // Without the API's secret nothing that we sign would be believed.
            let key = serving.secret.map_or_else(rand::random, |Secret(secret)| secret);
            let base_url = serving.secret.and(serving.base_url.clone());
            (None, Some(working), Some(shelf(storage, &key, base_url)?))
        }
        Role::All(http, working) => {
            let mut http = http.clone();
            // A process that has the apps need not be told their names again.
            http.shared_clients.0.extend(working.keys.shared_apps.clients().0);
            let api = bind(&http)?;
            let shelf = api.shelf();
            (Some(api), Some(working), Some(shelf))
        }
    };
    let workers = match working.zip(shelf) {
        Some((working, shelf)) => {
            anyhow::ensure!(store::ready(&db).await, "the database at DATABASE_URL does not answer");
            let client = connect(temporal).await?;
            let files = Files { shelf, retention: storage.keeping.retention() };
            Some(workers(db, client, temporal, working, reach.sandbox(), &opened, files).await?)
        }
        None => None,
    };
    // One line for whoever started us; the log goes to stderr.
    println!("ready");
    run_services(api, workers, stop).await
}

/// Opens the place where media are kept.
fn shelf(storage: &Storage, secret: &[u8; 32], base_url: Option<Url>) -> anyhow::Result<FileStore> {
    let key = media::Key::derive(secret);
    FileStore::open(&storage.place, key, base_url, storage.keeping.media_caps.clone())
        .context("FANFARE_MEDIA")
}

/// The files of media, and how long they are kept.
pub(crate) struct Files {
    pub(crate) shelf: FileStore,
    pub(crate) retention: Option<TimeDelta>,
}

/// Runs API and workers until `stop`, or until one of them fails.
pub(crate) async fn run_services(
    api: Option<Api>,
    workers: Option<Workers>,
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
        let outcome = workers.run().await;
        stop.cancel();
        outcome
    };
    let (served, worked) = tokio::join!(serving, working);
    served.and(worked)
}

/// Cancelled by the first SIGINT or SIGTERM.
pub(crate) fn on_signal() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
    Ok(stop)
}

/// Non-public ranges that are open in each mode.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    pub(crate) live: AllowedRanges,
    pub(crate) test: AllowedRanges,
}

/// Connects to Temporal.
pub(crate) async fn connect(temporal: &Temporal) -> anyhow::Result<Client> {
    let options = ConnectionOptions::new(temporal.temporal_address.0.clone())
        .identity(format!("fanfare-{}", std::process::id()))
        .connect_timeout(Duration::from_secs(5))
        // Compression costs more time than a local network saves.
        .grpc_compression(GrpcCompression::None)
        .build();
    let connection = Connection::connect(options)
        .await
        .with_context(|| format!("Temporal at {} does not answer", temporal.temporal_address))?;
    Ok(Client::new(connection, ClientOptions::new(&temporal.temporal_namespace).build())?)
}

/// How far this machine's clock may be from the database's: what workers write down is compared with it.
const SKEW: Duration = Duration::from_secs(5);

/// Fails when a clock is too far from the database's.
pub(crate) async fn check_clock(db: &Pool, now: fn() -> DateTime<Utc>) -> anyhow::Result<()> {
    let skew = store::skew(db, now).await.context("read the database's clock")?;
    anyhow::ensure!(
        skew <= SKEW,
        "this machine's clock and the database's differ by {} s, {} s are allowed: set them by NTP",
        skew.as_secs(),
        SKEW.as_secs()
    );
    Ok(())
}

/// The workers of this process.
pub(crate) async fn workers(
    db: Pool,
    client: Client,
    temporal: &Temporal,
    working: &WorkerConfig,
    sandbox: Option<Address>,
    opened: &Ranges,
    files: Files,
) -> anyhow::Result<Workers> {
    check_clock(&db, clock::now).await?;
    let keys = &working.keys;
    tokio::spawn(schedule(client.clone(), temporal.clone()));
    let engine = Engine {
        db,
        sealer: keys.open_keys.sealer(),
        opener: keys.open_keys.clone(),
        transports: Transports::new(sandbox)?,
        apps: Apps { live: keys.shared_apps.0.clone(), test: sandbox::apps() },
        media: files.shelf,
        now: clock::now,
        jitter: clock::jitter,
        time_scale: temporal.time_scale(),
    };
    let deps = Deps {
        engine: Arc::new(engine),
        egress: Egress::new(opened.live.clone(), opened.test.clone())?,
        retention: files.retention,
        temporal: client,
    };
    Workers::new(&temporal.task_queue, &working.queues.served(), deps)
}

/// Sets up what the clock starts, as soon as Temporal takes it: publishing does not wait for that.
async fn schedule(client: Client, temporal: Temporal) {
    let every = Duration::from_secs(temporal.collect_every);
    while let Err(error) = schedules::keep(&client, &temporal.task_queue, every).await {
        warn!(error = format!("{error:#}"), "Figures are not collected yet, nor media tidied up");
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// The API, bound to its port and not yet serving.
pub(crate) struct Api {
    listener: TcpListener,
    limits: http::Limits,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    app: api::App,
    temporal: Temporal,
    connected: watch::Sender<Option<Client>>,
}

impl Api {
    /// Serves on a port that was taken before.
    pub(crate) fn on(
        listener: TcpListener,
        db: Pool,
        temporal: Temporal,
        http: &Http,
        opened: Ranges,
        sandbox: Option<Address>,
        storage: &Storage,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let base_url =
            http.base_url.as_ref().map_or_else(|| format!("http://{address}/api/v1"), Url::to_string);
        let media = shelf(storage, &http.secret.0, Some(Url::parse(&base_url).context("FANFARE_BASE_URL")?))?;
        let config = api::Config {
            base_url,
            media,
            cursor_key: http.secret.0,
            sealer: http.seal_key.clone(),
            opened: api::AllowedRanges { live: opened.live, test: opened.test },
            states: api::connect::oauth_state::Key::derive(&http.secret.0),
            shared_clients: http.shared_clients.0.clone(),
            sandbox_clients: client_ids(&sandbox::apps()),
            sandbox,
            limits: http.bounds.rate_limits.clone(),
            plans: http.bounds.pricing.plans.clone(),
            temporal_ui: temporal
                .temporal_ui
                .clone()
                .map(|base| TemporalUi { base, namespace: temporal.temporal_namespace.clone() }),
            trusted_hops: http.bounds.trusted_hops,
            body_timeout: Duration::from_secs(http.bounds.patience.body_timeout),
        };
        let (connected, client) = watch::channel(None);
        let workers = requests::Workers::new(client, &temporal.task_queue);
        let app = api::App { db, workers, config: config.into(), now: clock::now };
        Ok(Self { listener, limits: http.bounds.patience.limits(), address, app, temporal, connected })
    }

    /// The files of media.
    pub(crate) fn shelf(&self) -> FileStore {
        self.app.config.media.clone()
    }

    /// Serves until `stop`. Temporal need not be there: messages wait for it.
    pub(crate) async fn serve(self, stop: CancellationToken) -> anyhow::Result<()> {
        let db = self.app.db.clone();
        let relay = tokio::spawn(relay(db, self.temporal, self.connected));
        info!(address = %self.address, "The API listens on {}", self.address);
        http::serve(self.listener, api::endpoint(self.app), self.limits, stop)
            .await
            .context("the API stopped")?;
        relay.abort();
        Ok(())
    }
}

/// Connects to Temporal, whenever it comes up, for whoever needs it, and carries messages there.
async fn relay(db: Pool, temporal: Temporal, connected: watch::Sender<Option<Client>>) {
    let client = loop {
        match connect(&temporal).await {
            Ok(client) => break client,
            Err(error) => warn!(error = format!("{error:#}"), "The relay waits for Temporal"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    connected.send_replace(Some(client.clone()));
    let time_scale = temporal.time_scale();
    let relay =
        Relay { db: db.clone(), temporal: client, queue: temporal.task_queue, time_scale, now: clock::now };
    let sweeper = Sweeper { db, time_scale };
    tokio::join!(relay.run(), sweeper.run());
}
