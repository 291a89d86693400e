//! The composition root: reads the configuration, puts the parts together and runs them.

mod clock;
mod commands;
mod config;
mod dev;
mod http;
mod reseal;
mod services;

use clap::{CommandFactory, Parser, Subcommand};
use config::{
    Database, Guarding, Http, Keys, LimitsConfig, MediaRetention, MediaUrlConfig, NetworkConfig, Pricing,
    Storage, Temporal, WorkerConfig,
};
use domain::{Email, OrgId};
use std::{net::SocketAddr, path::PathBuf, process::ExitCode};
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// Publishes one piece of content to many social accounts, and tells what became of it.
#[derive(Debug, Parser)]
#[command(name = "fanfare", version)]
struct Cli {
    /// Logs as JSON lines
    #[arg(long, env = "FANFARE_LOG_JSON", global = true)]
    log_json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything on this machine: Postgres, Temporal, API, worker and sandbox
    Dev {
        /// Where all state lives
        #[arg(long, default_value = ".fanfare")]
        data_dir: PathBuf,
        /// Where the API listens; 0 for any free port
        #[arg(long, default_value_t = 8080)]
        port: u16,
        #[command(flatten)]
        bounds: LimitsConfig,
        #[command(flatten)]
        keeping: MediaRetention,
    },
    /// The HTTP API, and the relay to Temporal
    Api {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        http: Http,
        #[command(flatten)]
        reach: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
    },
    /// The worker: publishes, refreshes tokens, delivers webhooks
    Worker {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        working: WorkerConfig,
        #[command(flatten)]
        reach: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
        #[command(flatten)]
        serving: MediaUrlConfig,
    },
    /// API and worker in one process
    All {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        temporal: Temporal,
        #[command(flatten)]
        http: Http,
        #[command(flatten)]
        working: WorkerConfig,
        #[command(flatten)]
        reach: NetworkConfig,
        #[command(flatten)]
        storage: Storage,
    },
    /// Brings the database's tables up to date
    Migrate {
        #[command(flatten)]
        database: Database,
    },
    /// The platforms' other side: a sandbox that speaks their HTTP APIs
    Sandbox {
        /// Where it listens
        #[arg(long, env = "FANFARE_SANDBOX_LISTEN", default_value = "127.0.0.1:8090")]
        listen: SocketAddr,
        /// Where it keeps what was published; without it, in memory
        #[arg(long, env = "FANFARE_SANDBOX_DATA")]
        data_dir: Option<PathBuf>,
        #[command(flatten)]
        guarding: Guarding,
    },
    /// Organizations
    #[command(subcommand)]
    Org(Org),
    /// Sealing keys
    #[command(subcommand)]
    Key(Key),
    /// Prints the OpenAPI document
    Openapi,
    /// Runs a program that dies when its parent does
    #[command(hide = true)]
    Guard(devstack::Guarded),
}

#[derive(Debug, Subcommand)]
enum Org {
    /// Creates an organization and prints its id and its first keys
    Create {
        /// Its name
        name: String,
        /// The address of its first owner
        #[arg(long)]
        owner: Option<Email>,
        #[command(flatten)]
        database: Database,
    },
    /// Puts an organization on a plan, which counts from its next call on
    Plan {
        /// Its id
        org: OrgId,
        /// The plan's key
        plan: String,
        #[command(flatten)]
        pricing: Pricing,
        #[command(flatten)]
        database: Database,
    },
}

#[derive(Debug, Subcommand)]
enum Key {
    /// Prints a fresh pair: FANFARE_SEAL_KEY for every process, FANFARE_OPEN_KEYS for workers only
    Generate {
        /// The number it goes by; a rotation takes the next
        #[arg(long, default_value_t = 1)]
        id: u32,
    },
    /// Seals everything anew that an older key of FANFARE_OPEN_KEYS sealed, while services run. To rotate:
    /// give workers "old,new", then "new,old" and every process the new FANFARE_SEAL_KEY; run this; then
    /// drop the old key
    Reseal {
        /// How many values are read at a time
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
        batch: u16,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        database: Database,
    },
}

/// The command line with all its settings.
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    // Arguments get their full names here.
    command.build();
    command
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match config::malformed(&command(), &error) {
            Some(message) => {
                eprintln!("{message}");
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    if let Command::Guard(guarded) = cli.command {
        return report(Err(guarded.exec()));
    }
    log(cli.log_json);
    // Two providers are in the tree; without a choice, the first TLS connection would panic.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return report(Err(anyhow::anyhow!("another TLS provider was installed first")));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(Err(error.into())),
    };
    report(runtime.block_on(run(cli.command)))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Dev { data_dir, port, bounds, keeping } => dev::run(&data_dir, port, bounds, keeping).await,
        Command::Api { database, temporal, http, reach, storage } => {
            let role = services::Role::Api(&http);
            services::run(&database, &temporal, &reach, &storage, role).await
        }
        Command::Worker { database, temporal, working, reach, storage, serving } => {
            let role = services::Role::Worker(&working, &serving);
            services::run(&database, &temporal, &reach, &storage, role).await
        }
        Command::All { database, temporal, http, working, reach, storage } => {
            let role = services::Role::All(&http, &working);
            services::run(&database, &temporal, &reach, &storage, role).await
        }
        Command::Migrate { database } => commands::migrate(&database).await,
        Command::Sandbox { listen, data_dir, guarding } => {
            commands::sandbox(listen, data_dir, guarding.access()).await
        }
        Command::Org(Org::Create { name, owner, database }) => {
            commands::create_org(&database, &name, owner.as_ref()).await
        }
        Command::Org(Org::Plan { org, plan, pricing, database }) => {
            commands::set_plan(&database, &pricing, org, &plan).await
        }
        Command::Key(Key::Generate { id }) => {
            commands::generate_key(id);
            Ok(())
        }
        Command::Key(Key::Reseal { batch, keys, database }) => reseal::run(&database, &keys, batch).await,
        Command::Openapi => {
            print!("{}", api::document());
            Ok(())
        }
        Command::Guard(guarded) => Err(guarded.exec()),
    }
}

/// One clear sentence and a non-zero exit.
fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fanfare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn log(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        // A parameter of DATABASE_URL that sqlx does not know would be shown with its value.
        EnvFilter::new(
            "info,temporalio_sdk_core=error,temporalio_sdk=error,temporalio_client=error,sqlx=warn,\
             sqlx_postgres::options=error,poem=warn",
        )
    });
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if json {
        registry.with(layer.json()).init();
    } else {
        registry.with(layer.compact()).init();
    }
}
