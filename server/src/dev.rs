//! `fanfare dev`: the whole system in one process tree, without configuration.
//!
//! Ports are bound before anything is started, so that a port in use leaves nothing half-started. All state is
//! in the data directory: keys, ports, the Postgres cluster, Temporal's database, the sandbox. The next start
//! uses the same ports, so that links into the sandbox stay valid.

use crate::{
    admin::Admin,
    clock,
    commands::{self, NewOrganization},
    config::{self, Http, Keys, Temporal, WorkerConfig},
    database::Database,
    deployment, memory,
    openid::OpenIdClient,
    readiness::{self, Probes},
    secret_files, secrets,
    services::{self, Api, Resources},
    startup,
    temporal::{Fault, Server},
};
use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use devstack::{Lock, Postgres, PostgresOptions, TemporalOptions};
use domain::{Mode, OrgId, Owner, ip_ranges::AllowedRanges, request_proof::Key};
use media::Location;
use sandbox::{Access, Address, Options, Sandbox};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File},
    io::Write,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};
use store::{
    Pool, accounts,
    bounds::unbounded,
    page,
    upkeep::{durability::Unchecked, vault},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Name of the first organization.
const ORGANIZATION: &str = "Fanfare";
/// Handle of the accounts that are connected at the first start; a Bluesky handle is a host name.
const HANDLE: &str = "fanfare";

/// Secrets of this installation, created at the first start.
#[derive(Deserialize, Serialize)]
struct Secrets {
    seal_key: String,
    open_key: String,
    secret: String,
    database_password: String,
}

/// The organization that is created at the first start.
#[derive(Deserialize, Serialize)]
struct FirstOrganization {
    org_id: OrgId,
    live_key: String,
    test_key: String,
}

/// Ports of the last start, used again if they are free.
#[derive(Default, Deserialize, Serialize)]
struct Ports {
    /// Of the API, for `--port 0`: bookmarks and receivers' settings outlive a restart.
    #[serde(default)]
    api: u16,
    sandbox: u16,
    postgres: u16,
    temporal: u16,
    temporal_ui: u16,
}

/// Content of `dev.json`, for other programs; rewritten whenever a child is restarted.
#[derive(Serialize)]
struct Manifest {
    base_url: String,
    mcp_url: String,
    docs_url: String,
    dashboard_url: String,
    /// Signs in with the test key: the page takes it from the fragment, which no request has.
    sign_in_url: String,
    operator_token: String,
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

/// The commands whose processes `fanfare dev` stands for.
const PARTS: [&str; 5] = ["api", "worker", "all", "migrate", "sandbox"];

/// Fails if a setting of one of the parts is in the environment that has no effect here, because `fanfare dev`
/// determines it itself: its own servers, addresses and secrets.
///
/// # Errors
///
/// If there are such settings, with their names.
pub(crate) fn refuse_foreign(
    command: &clap::Command,
    variable: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<()> {
    let variables = |name: &str| -> BTreeSet<String> {
        let arguments = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
        arguments.flat_map(secret_files::variables).collect()
    };
    let own = variables("dev");
    let parts = PARTS.into_iter().flat_map(variables);
    let is_set = |name: &String| variable(name).is_some_and(|value| !value.is_empty());
    let foreign: BTreeSet<_> = parts.filter(|name| !own.contains(name)).filter(is_set).collect();
    let foreign: Vec<_> = foreign.iter().map(String::as_str).collect();
    ensure!(
        foreign.is_empty(),
        "`fanfare dev` would ignore {}: it starts Postgres, Temporal and the sandbox itself, with addresses and \
         secrets of its own (--port sets the API's port). Unset them, or run `fanfare all`",
        foreign.join(", ")
    );
    Ok(())
}

/// Runs everything until SIGINT or SIGTERM.
pub(crate) async fn run(
    data_dir: &Path,
    port: u16,
    settings: config::DevSettings,
    admin: &Admin,
) -> anyhow::Result<()> {
    let probes = Probes::of("all");
    let stop = services::on_signal(probes.health.clone(), settings.limits.connections.drain())?;
    probes.watch_workers();
    admin.serve(&probes)?;
    let lock = Lock::take(data_dir)?;
    let dir = lock.dir.as_path();
    let mut ports: Ports = read(&dir.join("ports.json"))?.unwrap_or_default();
    let api = match port {
        0 => listen(ports.api).or_else(|_| listen(0)),
        port => listen(port),
    };
    let api = api.with_context(|| format!("port {port} is not available: choose another with --port"))?;
    ports.api = api.local_addr()?.port();
    let sandbox_listener =
        listen(ports.sandbox).or_else(|_| listen(0)).context("no port is free for the sandbox")?;
    ports.sandbox = sandbox_listener.local_addr()?.port();
    let secrets = secrets(dir)?;
    let guard = std::env::current_exe().context("finding the path of this program")?;

    let started = tokio::select! {
        // Downloads and builds can take minutes and must not delay a stop.
        () = stop.cancelled() => return Ok(()),
        started = children(dir, &guard, &ports, &secrets) => started?,
    };
    let (postgres, temporal) = started;
    ports.postgres = postgres.port;
    ports.temporal = temporal.port;
    ports.temporal_ui = temporal.ui_port.unwrap_or_default();
    write(&dir.join("ports.json"), &ports)?;

    let listeners = (api, sandbox_listener);
    let served = serve(dir, &secrets, settings, (&postgres, &temporal), listeners, (&probes, stop)).await;
    // Also after a failure: no process is left running.
    let ended = temporal.child.end().await.and(postgres.child.end().await);
    served.and(ended)
}

/// Starts Postgres and Temporal. On failure or cancellation neither is left running.
async fn children(
    dir: &Path,
    guard: &Path,
    ports: &Ports,
    secrets: &Secrets,
) -> anyhow::Result<(Postgres, devstack::Temporal)> {
    let options = PostgresOptions {
        port: ports.postgres,
        password: secrets.database_password.clone(),
        ..PostgresOptions::default()
    };
    let postgres = Postgres::start(&dir.join("postgres"), guard, &options).await?;
    let options = TemporalOptions {
        port: ports.temporal,
        ui_port: Some(ports.temporal_ui),
        search_attributes: workflows::attributes::ALL.to_vec(),
        settings: Vec::new(),
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
    settings: config::DevSettings,
    (postgres, temporal): (&Postgres, &devstack::Temporal),
    (api, sandbox_listener): (TcpListener, TcpListener),
    (probes, stop): (&Probes, CancellationToken),
) -> anyhow::Result<()> {
    // Without `..`, so that no setting is left out.
    let config::DevSettings {
        database_connections,
        scheduling,
        limits,
        storage,
        queues,
        lifetime,
        versions,
        shared_apps,
        egress_allow,
        openid,
        openid_client,
        app,
    } = settings;
    let storage = &storage.or(Location::Directory(dir.join("media")));
    store::create_database(&postgres.url("postgres"), "fanfare").await?;
    let database = Database {
        database_url: postgres.url("fanfare"),
        database_connections,
        unchecked_postgres_settings: Unchecked::default(),
    };
    let db = store::connect(&database.database_url, database.database_connections).await?;
    store::migrate(&db).await?;
    probes.watch_database(&db, true);

    let address = api.local_addr()?;
    let origin = local(address);
    let base_url = Url::parse(&format!("{origin}/api/v1"))?;
    // The sandbox fetches no other local URL, regardless of a post's settings; a bucket may be on this machine, too.
    let media = match storage.location {
        Location::Directory(_) => Some(vec![Url::parse(&format!("{base_url}/media/"))?]),
        Location::Bucket { .. } => None,
    };
    let access = Access { media, ..Access::default() };
    let options = Options { data: Some(dir.join("sandbox")), clock: clock::now, app };
    let sandbox = Sandbox::open_with(options, access)?;
    let sandbox_url = local(sandbox_listener.local_addr()?);
    let keys = Keys { open_keys: secrets.open_key.parse()?, shared_apps };
    let first = first(dir, &db).await?;
    connect(&db, &sandbox, &Url::parse(&sandbox_url)?, &keys, first.org_id).await?;
    let worker = WorkerConfig {
        keys,
        queues,
        start_timeout: startup::START_TIMEOUT,
        lifetime,
        versions,
        openid: OpenIdClient { issuer: openid.oidc_issuer.clone(), ..openid_client },
        deployment: deployment::Settings::default(),
    };

    let settings = Temporal {
        server: Server::local(&temporal.address)?,
        temporal_ui: temporal.ui_url.as_deref().map(Url::parse).transpose()?,
        scheduling,
    };
    let secret = secrets::secret(&secrets.secret)?;
    // The same after a restart.
    let operator_token = api::connect::oauth_state::expand(&secret.0, b"fanfare dev operators 1");
    let operator_token = URL_SAFE_NO_PAD.encode(operator_token);
    let http = Http {
        listen: address,
        base_url: Some(base_url.clone()),
        secret,
        seal_key: secrets.seal_key.parse()?,
        shared_clients: worker.keys.shared_apps.clients(),
        operator_token: Some(operator_token.parse().map_err(anyhow::Error::msg)?),
        limits,
        openid: openid.name(),
    };
    // Test mode may send webhooks to receivers on this machine, live mode may not.
    let test = AllowedRanges::loopback().and(&egress_allow);
    let allowed = api::AllowedRanges { live: egress_allow, test };
    let client = settings.server.connect().await.map_err(Fault::into_error)?;
    let sandbox_address = Address::new(Url::parse(&sandbox_url)?, None);
    let api = Api::new(
        api,
        db.clone(),
        settings.clone(),
        &http,
        allowed.clone(),
        Some(sandbox_address.clone()),
        storage,
    )?;
    let api = api.observed(&probes.health, false);
    readiness::watch_media(&probes.health, api.files(), true);
    services::check_media(&api.files()).await?;
    services::check_decoders(&api.files()).await?;
    readiness::watch_temporal(&probes.health, watch::Sender::new(Some(client.clone())).subscribe(), true);
    let resources = Resources {
        files: api.files(),
        retention: storage.limits.retention(),
        request_key: Some(Key::derive(&http.secret.0)),
    };
    let workers =
        services::workers(db, client, &settings, &worker, Some(sandbox_address), &allowed, resources).await?;

    let manifest = |server: u32, temporal_pid: u32, postgres_pid: u32| Manifest {
        base_url: base_url.to_string(),
        mcp_url: format!("{origin}/api/mcp"),
        docs_url: format!("{origin}/docs"),
        dashboard_url: format!("{origin}/dashboard"),
        sign_in_url: format!("{origin}/dashboard/sign-in#key={}", first.test_key),
        operator_token: operator_token.clone(),
        temporal_ui_url: temporal.ui_url.clone().unwrap_or_default(),
        temporal_address: temporal.address.clone(),
        sandbox_url: sandbox_url.clone(),
        database_url: database.database_url.clone(),
        org_id: first.org_id,
        test_key: first.test_key.clone(),
        live_key: first.live_key.clone(),
        pids: Pids { server, temporal: temporal_pid, postgres: postgres_pid },
    };
    let write_manifest = || -> anyhow::Result<Manifest> {
        let (temporal, postgres) = (*temporal.child.pid().borrow(), *postgres.child.pid().borrow());
        let manifest =
            manifest(std::process::id(), temporal.unwrap_or_default(), postgres.unwrap_or_default());
        write(&dir.join("dev.json"), &manifest)?;
        Ok(manifest)
    };

    let quit = stop.clone();
    let sandbox = tokio::spawn(sandbox::serve(sandbox, sandbox_listener, quit.cancelled_owned()));
    banner(&write_manifest()?, dir);
    let watching = async {
        let (mut temporal, mut postgres) = (temporal.child.pid(), postgres.child.pid());
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                changed = temporal.changed() => changed?,
                changed = postgres.changed() => changed?,
            }
            write_manifest()?;
        }
    };
    let running = services::run_services(Some(api), Some(workers), probes, stop.clone());
    let running = memory::bounded(worker.lifetime.memory_limit, stop.clone(), running);
    let (ran, watched) = tokio::join!(running, watching);
    let served = sandbox.await?;
    ran.and(watched).and(served)
}

/// The origin of a listener. One name for all, because a browser sends no cookie of one name to another, and has
/// passkeys for names only.
fn local(address: SocketAddr) -> String {
    format!("http://localhost:{}", address.port())
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// Returns the installation's secrets, which are created at the first start.
fn secrets(dir: &Path) -> anyhow::Result<Secrets> {
    let path = dir.join("secrets.json");
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    let pair = commands::pair(1);
    let fresh = Secrets {
        seal_key: pair.seal,
        open_key: pair.open,
        secret: secrets::fresh_secret(),
        database_password: secrets::fresh_secret(),
    };
    write(&path, &fresh)?;
    Ok(fresh)
}

/// Returns the first organization and its keys, which are created at the first start.
async fn first(dir: &Path, db: &Pool) -> anyhow::Result<FirstOrganization> {
    let path = dir.join("organization.json");
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    let NewOrganization { org, live_key, test_key } = commands::create_organization(db, ORGANIZATION).await?;
    let first = FirstOrganization { org_id: org, live_key, test_key };
    write(&path, &first)?;
    Ok(first)
}

/// Connects one account per platform in test mode, unless there is one.
async fn connect(
    db: &Pool,
    sandbox: &Sandbox,
    sandbox_url: &Url,
    keys: &Keys,
    org: OrgId,
) -> anyhow::Result<()> {
    let owner = Owner { org, mode: Mode::Test };
    for platform in platforms::all() {
        let filter =
            accounts::Filter { platform: Some(platform.id.to_owned()), ..accounts::Filter::default() };
        let known =
            accounts::list(db, unbounded(owner), &filter, page::Request { after: None, limit: 1 }).await?;
        if !known.items.is_empty() {
            continue;
        }
        let connected = sandbox.connect(platform.id, &name(platform.id))?;
        let grant = serde_json::to_vec(&connected.grant).context("a grant is plain data")?;
        let mut profile = connected.identity.profile;
        // The real platform's page of this name is a stranger's.
        profile.profile_url = profile.profile_url.map(|url| platforms::in_sandbox(sandbox_url, &url));
        let connect = accounts::Connect {
            platform: platform.id.to_owned(),
            profile,
            tenant_id: None,
            social_network_id: None,
            scopes: connected.grant.scopes,
            token_expires_at: connected.grant.expires_at,
            grant_expires_at: connected.grant.ends_at,
        };
        let sealer = keys.open_keys.sealer();
        let seal = |id| sealer.seal(&grant, &vault::aad_grant(owner, id));
        let mut tx = store::begin(db).await?;
        accounts::upsert(&mut tx, owner, connect, seal, clock::now()).await?;
        tx.commit().await?;
    }
    Ok(())
}

fn banner(manifest: &Manifest, dir: &Path) {
    let Manifest { base_url, docs_url, sign_in_url, temporal_ui_url, sandbox_url, test_key, .. } = manifest;
    // The platforms that accept a post of text only.
    let accounts = [HANDLE.to_owned(), format!("{HANDLE}.bsky.social")];
    let body = serde_json::json!({ "content": "Hello from Fanfare", "accounts": accounts });
    println!(
        "
  Fanfare is up.

  Dashboard    {sign_in_url}
  API          {base_url}
  API docs     {docs_url}
  Test key     {test_key}
  Sandbox      {sandbox_url} (stands for the platforms: shows what was published, and fails on request)
  Temporal UI  {temporal_ui_url} (the workflow behind each post)
  All of these {}

  Publish a first post to the sandbox:

  curl {base_url}/posts -H 'Authorization: Bearer {test_key}' -H 'Content-Type: application/json' -d '{body}'

  Press Ctrl-C to stop; the next start keeps all data.
",
        dir.join("dev.json").display()
    );
}

/// Returns the handle of a platform's first account. Handles differ between platforms, so that a post can
/// select one account by handle.
fn name(platform: &str) -> String {
    match platform {
        // A Bluesky handle ends with the server's name.
        "x" | "bluesky" => HANDLE.to_owned(),
        // Every platform accepts a handle of letters.
        _ => format!("{HANDLE}{}", platform.replace('_', "")),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .with_context(|| format!("{} can't be parsed: delete it to create a new one", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} can't be read", path.display())),
    }
}

/// Writes a file atomically, readable by its owner only because it holds secrets.
fn write(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let temporary = path.with_extension("half");
    let unwritable = || format!("{} can't be written", path.display());
    let mut file: File = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)
        .with_context(unwritable)?;
    file.write_all(&serde_json::to_vec_pretty(value).context("plain data")?).with_context(unwritable)?;
    fs::rename(&temporary, path).with_context(unwritable)
}
