//! The composition root: parses the configuration, creates the services and runs them.

mod admin;
mod clock;
mod commands;
mod config;
mod console;
mod database;
mod deployment;
mod dev;
mod doctor;
mod health;
mod http;
mod lineage;
mod logging;
mod memory;
mod metrics;
mod migrate;
mod openid;
mod ops;
mod readiness;
mod reseal;
mod retention;
mod roles;
mod secret_files;
mod secrets;
mod services;
mod startup;
pub mod stopping;
mod temporal;
mod traces;

use admin::Admin;
use chrono::{DateTime, Utc};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use config::{
    Http, Keys, MediaUrlConfig, NetworkConfig, Pricing, SandboxAccess, Storage, Temporal, WorkerConfig,
};
use database::Database;
use domain::{AccountId, Email, Mode, OrgId, ProfileId, member::Role, scope::Scope};
use std::{env, net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};
use url::Url;

/// Publishes posts to many social accounts and reports the results
#[derive(Debug, Parser)]
#[command(name = "fanfare", version)]
struct Cli {
    /// Log as JSON lines
    #[arg(long, env = "FANFARE_LOG_JSON", global = true)]
    log_json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything on this machine: Postgres, Temporal, API, worker and sandbox
    Dev {
        /// Directory for all state
        #[arg(long, default_value = ".fanfare")]
        data_dir: PathBuf,
        /// Port of the API; 0 picks a free port
        #[arg(long, default_value_t = 8080)]
        port: u16,
        #[command(flatten)]
        settings: Box<config::DevSettings>,
        #[command(flatten)]
        admin: Admin,
    },
    /// Runs the HTTP API and the outbox relay to Temporal
    Api {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        http: Http,
        #[command(flatten)]
        network: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
        #[command(flatten)]
        admin: Admin,
    },
    /// Runs the workers: publishing, token refresh, webhook delivery
    Worker {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        worker: Box<WorkerConfig>,
        #[command(flatten)]
        network: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
        #[command(flatten)]
        media_url: MediaUrlConfig,
        #[command(flatten)]
        admin: Admin,
    },
    /// Runs API and workers in one process
    All {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        http: Http,
        #[command(flatten)]
        worker: Box<WorkerConfig>,
        #[command(flatten)]
        network: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
        #[command(flatten)]
        admin: Admin,
    },
    /// Prepares Postgres (schema, rights of the processes' roles) and Temporal (namespace, search attributes). Can be
    /// repeated; run it before each new version starts
    Migrate(Box<migrate::Options>),
    /// Requests the URL of a process on this machine, and fails unless the answer is a success: for probes
    Health {
        /// URL to request
        #[arg(default_value = "http://127.0.0.1:8080/healthz")]
        url: Url,
        /// Seconds to wait for the answer
        #[arg(long, default_value_t = 4)]
        timeout: u64,
    },
    /// Runs the sandbox, which emulates the platforms' HTTP APIs
    Sandbox {
        /// Address to listen on
        #[arg(long, env = "FANFARE_SANDBOX_LISTEN", default_value = "127.0.0.1:8090")]
        listen: SocketAddr,
        /// Directory for published posts; in memory by default
        #[arg(long, env = "FANFARE_SANDBOX_DATA")]
        data_dir: Option<PathBuf>,
        /// Standing of the platforms' apps: `new`, with the access of an app that was registered today, or
        /// `approved`, after the platforms' reviews
        #[arg(long, env = "FANFARE_SANDBOX_APP", default_value = "new", value_parser = config::app_status)]
        app: sandbox::AppStatus,
        #[command(flatten)]
        access: SandboxAccess,
    },
    /// Manages organizations
    #[command(subcommand)]
    Org(Org),
    /// Manages encryption keys
    #[command(subcommand)]
    Key(Key),
    /// Chooses the build of the workers that gets tasks, for deploys with Temporal's worker versioning
    #[command(subcommand)]
    Deployment(Box<deployment::Action>),
    /// Shows what is stuck in an installation, and repairs it
    #[command(subcommand)]
    Ops(ops::Ops),
    /// Walks through a platform with a real account, and compares its answers with the simulator's: connects,
    /// publishes with as few readers as possible, looks the post up, deletes it
    Doctor(Box<doctor::Options>),
    /// Prints the OpenAPI document
    Openapi,
    /// Runs a program that dies when its parent does
    #[command(hide = true)]
    Guard(devstack::Guarded),
    /// Decodes one file of a user, confined: started by workers
    #[command(hide = true)]
    MediaWorker {
        /// The job and its limits
        order: String,
    },
}

#[derive(Debug, Subcommand)]
enum Org {
    /// Creates an organization and prints its id and its first API keys
    Create {
        /// Name of the organization
        #[arg(value_parser = org_name)]
        name: String,
        /// E-mail address of the first owner, who gets an invitation
        #[arg(long)]
        owner: Option<Email>,
        #[command(flatten)]
        base: BaseUrl,
        #[command(flatten)]
        database: Database,
    },
    /// Invites a person, who signs in to the dashboard with a passkey, and prints the invitation
    Invite {
        /// Organization id
        org: OrgId,
        /// E-mail address of the person
        email: Email,
        /// Role of the person: `owner`, `admin`, `publisher` or `viewer`, which is the default. One who is invited
        /// again keeps their role
        #[arg(long)]
        role: Option<Role>,
        /// For a member who lost their passkey: ends their sessions, and invites them with the same membership
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        base: BaseUrl,
        #[command(flatten)]
        database: Database,
    },
    /// Creates an API key of an organization and prints it
    Key(Box<NewKey>),
    /// Changes the plan of an organization, effective from its next request
    Plan {
        /// Organization id
        org: OrgId,
        /// Key of the plan
        plan: String,
        #[command(flatten)]
        pricing: Pricing,
        #[command(flatten)]
        database: Database,
    },
}

/// Address of the API.
#[derive(Debug, clap::Args)]
struct BaseUrl {
    /// Public URL of the API, ending with /api/v1, for the invitation
    #[arg(long, env = "FANFARE_BASE_URL", default_value = "http://127.0.0.1:8080/api/v1")]
    base_url: Url,
}

/// Options of an API key to create.
#[derive(Debug, clap::Args)]
struct NewKey {
    /// Organization id
    org: OrgId,
    /// Name of the key
    #[arg(long, default_value = "Created by an operator")]
    name: String,
    /// Data that the key can access: `live` or `test`
    #[arg(long, default_value = "live")]
    mode: Mode,
    /// Scope to grant; `*`, the default, grants all. May be repeated
    #[arg(long = "scope", default_value = "*")]
    scopes: Vec<Scope>,
    /// Time at which the key expires, such as 2027-01-31T00:00:00Z; never by default
    #[arg(long)]
    expires_at: Option<DateTime<Utc>>,
    /// Limits the key to an end tenant
    #[arg(long, group = "bound")]
    tenant: Option<String>,
    /// Limits the key to a profile
    #[arg(long, group = "bound")]
    profile: Option<ProfileId>,
    /// Limits the key to an account. May be repeated
    #[arg(long = "account", group = "bound")]
    accounts: Vec<AccountId>,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Subcommand)]
enum Key {
    /// Generates a key pair: FANFARE_SEAL_KEY for every process, FANFARE_OPEN_KEYS for workers only; with the first one
    /// also FANFARE_SECRET
    Generate {
        /// Key number; use the next one for a rotation
        #[arg(long, default_value_t = commands::FIRST_KEY)]
        id: u32,
    },
    /// Re-encrypts values that are encrypted with an older key of FANFARE_OPEN_KEYS, while services run. To
    /// rotate: give workers "old,new", then "new,old" and every process the new FANFARE_SEAL_KEY; run this;
    /// then remove the old key
    Reseal {
        /// Number of values per batch
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
        batch: u16,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        database: Database,
    },
}

/// Returns the command line with all its settings.
pub fn command() -> clap::Command {
    let mut command = secret_files::document(Cli::command());
    // Builds the full names of the arguments.
    command.build();
    command
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if let Command::Guard(guarded) = cli.command {
        return report(Err(guarded.exec()));
    }
    if let Command::MediaWorker { order } = &cli.command {
        return media::serve(order);
    }
    logging::start(cli.log_json);
    // Two providers are compiled in; without a choice the first TLS connection would panic.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return report(Err(anyhow::anyhow!("a TLS provider is already installed")));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Err(error.into())),
    };
    let outcome = runtime.block_on(run(cli.command));
    // Work on blocking threads can't be stopped, and a runtime that is dropped waits for it.
    runtime.shutdown_timeout(BLOCKING_TIMEOUT);
    report(outcome)
}

/// Time that blocking work has to end, such as the inspection of a file, when everything else has ended.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(2);

/// Parses the command line with the secrets from files, or reports what is wrong with it.
fn parse() -> Result<Cli, ExitCode> {
    let mut command = command();
    let given = secret_files::arguments(&command, env::args_os(), |name| env::var_os(name));
    let given = given.map_err(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })?;
    let matches = command.try_get_matches_from_mut(given);
    matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        match config::malformed(&command, &error) {
            Some(message) => {
                eprintln!("{message}");
                ExitCode::from(2)
            }
            None => match config::source(&command, &error) {
                Some(variable) => {
                    eprint!("{}", error.format(&mut command).render());
                    eprintln!("\nThe value is that of the environment variable {variable}.");
                    ExitCode::from(2)
                }
                None => error.format(&mut command).exit(),
            },
        }
    })
}

/// Parses the name of an organization.
fn org_name(text: &str) -> Result<String, &'static str> {
    let name = text.trim();
    if name.is_empty() || name.contains(char::is_control) {
        Err("a name is needed")
    } else {
        Ok(name.to_owned())
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    let _exporter = traces::Exporter::start()?;
    match command {
        Command::Dev { data_dir, port, settings, admin } => {
            dev::refuse_foreign(&self::command(), |name| env::var_os(name))?;
            dev::run(&data_dir, port, *settings, &admin).await
        }
        Command::Api { database, temporal, http, network, storage, admin } => {
            let role = services::Role::Api(&http);
            services::run(&database, &temporal, &network, &storage, &admin, role).await
        }
        Command::Worker { database, temporal, worker, network, storage, media_url, admin } => {
            let role = services::Role::Worker(&worker, &media_url);
            services::run(&database, &temporal, &network, &storage, &admin, role).await
        }
        Command::All { database, temporal, http, worker, network, storage, admin } => {
            let role = services::Role::All(&http, &worker);
            services::run(&database, &temporal, &network, &storage, &admin, role).await
        }
        Command::Health { url, timeout } => health::check(&url, Duration::from_secs(timeout)).await,
        Command::Migrate(options) => migrate::run(&options).await,
        Command::Sandbox { listen, data_dir, app, access } => {
            commands::sandbox(listen, data_dir, app, access.options()).await
        }
        Command::Org(Org::Create { name, owner, base, database }) => {
            commands::create_org(&database, &name, owner.as_ref(), &base.base_url).await
        }
        Command::Org(Org::Invite { org, email, role, again, base, database }) => {
            commands::invite(&database, org, &email, role, again, &base.base_url).await
        }
        Command::Org(Org::Key(options)) => commands::create_key(*options).await,
        Command::Org(Org::Plan { org, plan, pricing, database }) => {
            commands::set_plan(&database, &pricing, org, &plan).await
        }
        Command::Key(Key::Generate { id }) => {
            commands::generate_key(id);
            Ok(())
        }
        Command::Key(Key::Reseal { batch, keys, database }) => reseal::run(&database, &keys, batch).await,
        Command::Deployment(action) => deployment::run(&action).await,
        Command::Ops(command) => ops::run(command).await,
        Command::Doctor(options) => doctor::run(&options).await,
        Command::Openapi => {
            print!("{}", api::document());
            Ok(())
        }
        Command::Guard(_) | Command::MediaWorker { .. } => unreachable!("main runs it"),
    }
}

/// Prints an error to stderr and returns the exit code.
fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fanfare: {error:#}");
            console::exit_code(&error)
        }
    }
}
