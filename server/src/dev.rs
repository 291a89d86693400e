//! `fanfare dev`: the whole product in one process tree, with nothing to configure.
//!
//! Ports are taken before anything is started, so that a taken one leaves nothing half-started. All
//! state lives in the data directory: keys, ports, the Postgres cluster, Temporal's file, the sandbox.
//! The same directory gives the same addresses again, so that links into the sandbox stay good.

use crate::{
    clock,
    commands::{self, NewOrganization},
    config::{
        self, Database, Http, Keys, LimitsConfig, MediaRetention, Queues, SharedApps, Storage, Temporal,
        WorkerConfig,
    },
    services::{self, Api, Files, Ranges},
};
use anyhow::Context;
use devstack::{Lock, Postgres, PostgresOptions, TemporalOptions};
use domain::{Mode, OrgId, Owner, ip_ranges::AllowedRanges};
use media::Location;
use sandbox::{Access, Address, Options, Sandbox};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{self, File},
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};
use store::{Pool, accounts, page, vault};
use tokio_util::sync::CancellationToken;
use url::Url;

/// The name of the first organization.
const ORGANIZATION: &str = "Fanfare";
/// The handle of the accounts that are connected at the first start; a Bluesky handle is a host name.
const HANDLE: &str = "fanfare";

/// Secrets of this installation, made at the first start.
#[derive(Deserialize, Serialize)]
struct Secrets {
    seal_key: String,
    open_key: String,
    secret: String,
    database_password: String,
}

/// The organization that is made at the first start.
#[derive(Deserialize, Serialize)]
struct First {
    org_id: OrgId,
    live_key: String,
    test_key: String,
}

/// Ports of the last start, taken again when they are free.
#[derive(Default, Deserialize, Serialize)]
struct Ports {
    sandbox: u16,
    postgres: u16,
    temporal: u16,
    temporal_ui: u16,
}

/// What other programs need to know; rewritten whenever a child is restarted.
#[derive(Serialize)]
struct Manifest {
    base_url: String,
    mcp_url: String,
    docs_url: String,
    dashboard_url: String,
    temporal_ui_url: String,
    temporal_address: String,
    sandbox_url: String,
    database_url: String,
    org_id: OrgId,
    test_key: String,
    live_key: String,
    pids: Pids,
}

#[derive(Serialize)]
struct Pids {
    server: u32,
    temporal: u32,
    postgres: u32,
}

/// Runs until Ctrl-C.
pub(crate) async fn run(
    data_dir: &Path,
    port: u16,
    bounds: LimitsConfig,
    keeping: MediaRetention,
) -> anyhow::Result<()> {
    let stop = services::on_signal()?;
    let lock = Lock::take(data_dir)?;
    let dir = lock.dir.as_path();
    let api =
        listen(port).with_context(|| format!("port {port} can't be taken: choose another with --port"))?;
    let mut ports: Ports = read(&dir.join("ports.json"))?.unwrap_or_default();
    let sandbox_listener = listen(ports.sandbox).or_else(|_| listen(0)).context("no port for the sandbox")?;
    ports.sandbox = sandbox_listener.local_addr()?.port();
    let secrets = secrets(dir)?;
    let guard = std::env::current_exe().context("finding our own program")?;

    let started = tokio::select! {
        // Fetching and building can take minutes: nobody has to wait for that before leaving.
        () = stop.cancelled() => return Ok(()),
        started = children(dir, &guard, &ports, &secrets) => started?,
    };
    let (postgres, temporal) = started;
    ports.postgres = postgres.port;
    ports.temporal = temporal.port;
    ports.temporal_ui = temporal.ui_port.unwrap_or_default();
    write(&dir.join("ports.json"), &ports)?;

    let storage = Storage { place: Location::Directory(dir.join("media")), keeping };
    let ran =
        serve(dir, &secrets, bounds, &storage, (&postgres, &temporal), (api, sandbox_listener), stop).await;
    // Also when that failed: nothing is left running.
    let ended = temporal.child.end().await.and(postgres.child.end().await);
    ran.and(ended)
}

/// Postgres and Temporal. When this fails or is given up, neither is left running.
async fn children(
    dir: &Path,
    guard: &Path,
    ports: &Ports,
    secrets: &Secrets,
) -> anyhow::Result<(Postgres, devstack::Temporal)> {
    let options = PostgresOptions {
        port: ports.postgres,
        password: secrets.database_password.clone(),
        is_durable: true,
    };
    let postgres = Postgres::start(&dir.join("postgres"), guard, &options).await?;
    let options = TemporalOptions {
        port: ports.temporal,
        ui_port: Some(ports.temporal_ui),
        search_attributes: workflows::attributes::ALL.to_vec(),
        exact_timers: true,
    };
    match devstack::Temporal::start(&dir.join("temporal"), guard, &options).await {
        Ok(temporal) => Ok((postgres, temporal)),
        Err(error) => {
            postgres.child.end().await?;
            Err(error)
        }
    }
}

async fn serve(
    dir: &Path,
    secrets: &Secrets,
    bounds: LimitsConfig,
    storage: &Storage,
    (postgres, temporal): (&Postgres, &devstack::Temporal),
    (api, sandbox_listener): (TcpListener, TcpListener),
    stop: CancellationToken,
) -> anyhow::Result<()> {
    store::create_database(&postgres.url("postgres"), "fanfare").await?;
    let database = Database { database_url: postgres.url("fanfare"), database_connections: 16 };
    let db = store::connect(&database.database_url, database.database_connections).await?;
    store::migrate(&db).await?;

    let address = api.local_addr()?;
    // Nothing else on this machine is fetched, whatever a post's settings name.
    let media = vec![Url::parse(&format!("http://{address}/api/v1/media/"))?];
    let access = Access { media: Some(media), ..Access::default() };
    let options = Options { data: Some(dir.join("sandbox")), clock: clock::now };
    let sandbox = Sandbox::open_with(options, access)?;
    let sandbox_url = format!("http://{}", sandbox_listener.local_addr()?);
    let keys = Keys { open_keys: secrets.open_key.parse()?, shared_apps: SharedApps::default() };
    let first = first(dir, &db).await?;
    connect(&db, &sandbox, &keys, first.org_id).await?;
    let working = WorkerConfig { keys, queues: Queues::all() };

    let settings = Temporal {
        temporal_address: format!("http://{}", temporal.address).parse()?,
        temporal_namespace: "default".to_owned(),
        temporal_ui: temporal.ui_url.as_deref().map(Url::parse).transpose()?,
        task_queue: workflows::queue::DEFAULT.to_owned(),
        time_scale: None,
        pace: None,
        collect_every: config::COLLECT_EVERY,
    };
    let http = Http {
        listen: address,
        base_url: None,
        secret: config::secret(&secrets.secret)?,
        seal_key: secrets.seal_key.parse()?,
        shared_clients: working.keys.shared_apps.clients(),
        bounds,
    };
    // A receiver on one's own machine can be tried in test mode; live mode stays closed.
    let opened = Ranges { live: AllowedRanges::default(), test: AllowedRanges::loopback() };
    let client = services::connect(&settings).await?;
    let sandbox_address = Address::new(Url::parse(&sandbox_url)?, None);
    let api = Api::on(
        api,
        db.clone(),
        settings.clone(),
        &http,
        opened.clone(),
        Some(sandbox_address.clone()),
        storage,
    )?;
    let files = Files { shelf: api.shelf(), retention: storage.keeping.retention() };
    let workers =
        services::workers(db, client, &settings, &working, Some(sandbox_address), &opened, files).await?;

    let origin = format!("http://{address}");
    let manifest = |server: u32, temporal_pid: u32, postgres_pid: u32| Manifest {
        base_url: format!("{origin}/api/v1"),
        mcp_url: format!("{origin}/api/mcp"),
        docs_url: format!("{origin}/docs"),
        dashboard_url: format!("{origin}/dashboard"),
        temporal_ui_url: temporal.ui_url.clone().unwrap_or_default(),
        temporal_address: temporal.address.clone(),
        sandbox_url: sandbox_url.clone(),
        database_url: database.database_url.clone(),
        org_id: first.org_id,
        test_key: first.test_key.clone(),
        live_key: first.live_key.clone(),
        pids: Pids { server, temporal: temporal_pid, postgres: postgres_pid },
    };
    let publish = || -> anyhow::Result<Manifest> {
        let (temporal, postgres) = (*temporal.child.pid().borrow(), *postgres.child.pid().borrow());
        let manifest =
            manifest(std::process::id(), temporal.unwrap_or_default(), postgres.unwrap_or_default());
        write(&dir.join("dev.json"), &manifest)?;
        Ok(manifest)
    };

    let quit = stop.clone();
    let sandbox = tokio::spawn(sandbox::serve(sandbox, sandbox_listener, quit.cancelled_owned()));
    banner(&publish()?, dir);
    let watching = async {
        let (mut temporal, mut postgres) = (temporal.child.pid(), postgres.child.pid());
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                changed = temporal.changed() => changed?,
                changed = postgres.changed() => changed?,
            }
            publish()?;
        }
    };
    let (ran, watched) =
        tokio::join!(services::run_services(Some(api), Some(workers), stop.clone()), watching);
    let served = sandbox.await?;
    ran.and(watched).and(served)
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// The installation's secrets, made at the first start.
fn secrets(dir: &Path) -> anyhow::Result<Secrets> {
    let path = dir.join("secrets.json");
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    let pair = commands::pair(1);
    let fresh = Secrets {
        seal_key: pair.seal,
        open_key: pair.open,
        secret: config::fresh_secret(),
        database_password: config::fresh_secret(),
    };
    write(&path, &fresh)?;
    Ok(fresh)
}

/// The first organization and its keys, made at the first start.
async fn first(dir: &Path, db: &Pool) -> anyhow::Result<First> {
    let path = dir.join("organization.json");
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    let NewOrganization { org, live_key, test_key } =
        commands::create_organization(db, ORGANIZATION, None).await?;
    let first = First { org_id: org, live_key, test_key };
    write(&path, &first)?;
    Ok(first)
}

/// Connects one account per platform in test mode, unless that was done before.
async fn connect(db: &Pool, sandbox: &Sandbox, keys: &Keys, org: OrgId) -> anyhow::Result<()> {
    let owner = Owner { org, mode: Mode::Test };
    for platform in platforms::all() {
        let filter =
            accounts::Filter { platform: Some(platform.id.to_owned()), ..accounts::Filter::default() };
        let known = accounts::list(db, owner, &filter, page::Request { after: None, limit: 1 }).await?;
        if !known.items.is_empty() {
            continue;
        }
        let connected = sandbox.connect(platform.id, &name(platform.id))?;
        let grant = serde_json::to_vec(&connected.grant).context("a grant is plain data")?;
        let connect = accounts::Connect {
            platform: platform.id.to_owned(),
            network_unique_id: connected.identity.network_unique_id,
            username: connected.identity.username,
            display_name: connected.identity.display_name,
            account_type: connected.identity.account_type,
            profile_image_url: connected.identity.profile_image_url,
            profile_url: connected.identity.profile_url,
            tenant_id: None,
            social_network_id: None,
            scopes: connected.grant.scopes,
            token_expires_at: connected.grant.expires_at,
        };
        let sealer = keys.open_keys.sealer();
        let seal = |id| sealer.seal(&grant, &vault::aad_grant(owner, id));
        let mut tx = db.begin().await?;
        accounts::upsert(&mut tx, owner, connect, seal, clock::now()).await?;
        tx.commit().await?;
    }
    Ok(())
}

fn banner(manifest: &Manifest, dir: &Path) {
    let Manifest { base_url, docs_url, dashboard_url, temporal_ui_url, sandbox_url, test_key, .. } = manifest;
    // Those that take a text alone, by the handles that they have.
    let accounts = [HANDLE.to_owned(), format!("{HANDLE}.bsky.social")];
    let body = serde_json::json!({ "content": "Hello from Fanfare", "accounts": accounts });
    println!(
        "
  Fanfare is up.

  API          {base_url}
  Dashboard    {dashboard_url}
  Documents    {docs_url}
  Temporal UI  {temporal_ui_url}
  Sandbox      {sandbox_url}
  Test key     {test_key}
  Everything   {}

  A first post, to the sandbox:

  curl {base_url}/posts -H 'Authorization: Bearer {test_key}' -H 'Content-Type: application/json' -d '{body}'

  Ctrl-C ends it; the next start goes on.
",
        dir.join("dev.json").display()
    );
}

/// The name of the first account of a platform. No two platforms have the same, since a post that
/// names an account by its handle has to mean one.
fn name(platform: &str) -> String {
    match platform {
        // Bluesky's handle goes on with its server's name.
        "x" | "bluesky" => HANDLE.to_owned(),
        // Letters alone are a name everywhere.
        _ => format!("{HANDLE}{}", platform.replace('_', "")),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .with_context(|| format!("{} can't be read: remove it to start anew", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} can't be read", path.display())),
    }
}

/// Written whole or not at all, and readable by its owner only: secrets are in it.
fn write(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let half = path.with_extension("half");
    let unwritable = || format!("{} can't be written", path.display());
    let mut file: File = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&half)
        .with_context(unwritable)?;
    file.write_all(&serde_json::to_vec_pretty(value).context("plain data")?).with_context(unwritable)?;
    fs::rename(&half, path).with_context(unwritable)
}
