//! The parts of a running service: API with relay, workers, sandbox, and how they end together.

use crate::{
    clock,
    config::{Database, Http, Keys, Reach, Temporal},
};
use activities::{Apps, Deps, Wires, egress::Egress, schedule, worker::Workers};
use anyhow::Context;
use api::{dashboard::TemporalUi, relay::Relay};
use domain::address::Opened;
use platforms::Wire;
use poem::listener::TcpAcceptor;
use std::{
    net::{SocketAddr, TcpListener},
    str::FromStr,
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

/// How long connections under way may take to finish.
const GRACE: Duration = Duration::from_secs(5);

/// Runs the parts that are configured until a signal ends them.
pub(crate) async fn run(
    database: &Database,
    temporal: &Temporal,
    reach: &Reach,
    http: Option<&Http>,
    keys: Option<&Keys>,
) -> anyhow::Result<()> {
    let stop = on_signal()?;
    let db = store::connect_lazy(&database.database_url, database.database_connections)?;
    // Opened ranges count in both modes here; the development command opens more for test mode.
    let opened = Ranges { live: reach.egress_allow.clone(), test: reach.egress_allow.clone() };
    let workers = match keys {
        Some(keys) => {
            anyhow::ensure!(store::ready(&db).await, "the database at DATABASE_URL does not answer");
            let client = connect(temporal).await?;
            Some(workers(db.clone(), client, temporal, keys, reach.sandbox_url.as_ref(), &opened)?)
        }
        None => None,
    };
    let api = match http {
        Some(http) => {
            let mut http = http.clone();
            // A process that has the apps need not be told their names again.
            if let Some(keys) = keys {
                http.shared_clients.0.extend(keys.shared_apps.clients().0);
            }
            Some(Api::bind(db, temporal.clone(), &http, opened, reach.sandbox_url.clone())?)
        }
        None => None,
    };
    // One line for whoever started us; the log goes to stderr.
    println!("ready");
    together(api, workers, stop).await
}

/// Runs API and workers until `stop`, or until one of them fails.
pub(crate) async fn together(
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
    pub(crate) live: Opened,
    pub(crate) test: Opened,
}

/// Connects to Temporal.
pub(crate) async fn connect(temporal: &Temporal) -> anyhow::Result<Client> {
    let address = Url::from_str(&temporal.temporal_address).context("TEMPORAL_ADDRESS is no URL")?;
    let options = ConnectionOptions::new(address)
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

/// The workers of this process.
pub(crate) fn workers(
    db: Pool,
    client: Client,
    temporal: &Temporal,
    keys: &Keys,
    sandbox: Option<&Url>,
    opened: &Ranges,
) -> anyhow::Result<Workers> {
    tokio::spawn(collect(client.clone(), temporal.clone()));
    let deps = Deps {
        db,
        sealer: keys.open_keys.sealer(),
        opener: keys.open_keys.clone(),
        wires: Wires { live: Wire::real()?, test: sandbox.cloned().map(Wire::sandbox).transpose()? },
        apps: Apps { live: keys.shared_apps.0.clone() },
        egress: Egress::new(opened.live.clone(), opened.test.clone())?,
        temporal: client,
        now: clock::now,
        jitter: clock::jitter,
        pace: temporal.pace,
    };
    Workers::new(&temporal.task_queue, deps)
}

/// Has figures collected, as soon as Temporal takes the schedule: publishing does not wait for that.
async fn collect(client: Client, temporal: Temporal) {
    let every = Duration::from_secs(temporal.collect_every);
    while let Err(error) = schedule::keep(&client, &temporal.task_queue, every).await {
        warn!(error = format!("{error:#}"), "Figures are not collected yet");
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// The API, bound to its port and not yet serving.
pub(crate) struct Api {
    acceptor: TcpAcceptor,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    app: api::App,
    temporal: Temporal,
    connected: watch::Sender<Option<Client>>,
}

impl Api {
    /// Takes the port.
    pub(crate) fn bind(
        db: Pool,
        temporal: Temporal,
        http: &Http,
        opened: Ranges,
        sandbox: Option<Url>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(http.listen)
            .with_context(|| format!("the API can't listen on {}", http.listen))?;
        Self::on(listener, db, temporal, http, opened, sandbox)
    }

    /// Serves on a port that was taken before.
    pub(crate) fn on(
        listener: TcpListener,
        db: Pool,
        temporal: Temporal,
        http: &Http,
        opened: Ranges,
        sandbox: Option<Url>,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let base_url =
            http.base_url.as_ref().map_or_else(|| format!("http://{address}/api/v1"), Url::to_string);
        let config = api::Config {
            base_url,
            cursor_key: http.secret.0,
            sealer: http.seal_key.clone(),
            opened: api::Opened { live: opened.live, test: opened.test },
            states: api::state::Key::derive(&http.secret.0),
            shared_clients: http.shared_clients.0.clone(),
            sandbox,
            limits: http.bounds.rate_limits.clone(),
            plans: http.bounds.pricing.plans.clone(),
            temporal_ui: temporal
                .temporal_ui
                .clone()
                .map(|base| TemporalUi { base, namespace: temporal.temporal_namespace.clone() }),
            trusted_hops: http.bounds.trusted_hops,
        };
        let (connected, client) = watch::channel(None);
        let workers = api::ask::Workers::new(client, &temporal.task_queue);
        let app = api::App { db, workers, config: config.into(), now: clock::now };
        Ok(Self { acceptor: TcpAcceptor::from_std(listener)?, address, app, temporal, connected })
    }

    /// Serves until `stop`. Temporal need not be there: errands wait for it.
    pub(crate) async fn serve(self, stop: CancellationToken) -> anyhow::Result<()> {
        let db = self.app.db.clone();
        let relay = tokio::spawn(relay(db, self.temporal, self.connected));
        info!(address = %self.address, "The API listens on {}", self.address);
        let server = poem::Server::new_with_acceptor(self.acceptor);
        server
            .run_with_graceful_shutdown(api::endpoint(self.app), stop.cancelled_owned(), Some(GRACE))
            .await
            .context("the API stopped")?;
        relay.abort();
        Ok(())
    }
}

/// Connects to Temporal, whenever it comes up, for whoever needs it, and carries errands there.
async fn relay(db: Pool, temporal: Temporal, connected: watch::Sender<Option<Client>>) {
    let client = loop {
        match connect(&temporal).await {
            Ok(client) => break client,
            Err(error) => warn!(error = format!("{error:#}"), "The relay waits for Temporal"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    connected.send_replace(Some(client.clone()));
    Relay { db, temporal: client, queue: temporal.task_queue, pace: temporal.pace }.run().await;
}
