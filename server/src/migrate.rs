//! `fanfare migrate`: prepares Postgres and Temporal for this version.
//!
//! Every step is idempotent, and processes that run at the same time do not disturb each other, so that each
//! deploy runs it and nobody has to remember what an earlier one did.

use crate::{
    database::postgres,
    roles::DatabaseRoles,
    startup::{START_TIMEOUT, wait_for},
    temporal::{Fault, Namespace, Server, is_away},
};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use starter::status::shown;
use std::{collections::HashMap, str::FromStr, time::Duration};
use temporalio_client::{
    Client,
    grpc::{OperatorService, WorkflowService},
    tonic::{Code, IntoRequest, Status},
};
use temporalio_common::protos::temporal::api::{
    enums::v1::IndexedValueType,
    operatorservice::v1::{AddSearchAttributesRequest, ListSearchAttributesRequest},
    workflowservice::v1::RegisterNamespaceRequest,
};
use workflows::attributes;

/// Options of `fanfare migrate`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Prepare only one of the two. By default Postgres, and Temporal if TEMPORAL_ADDRESS is set
    #[arg(long)]
    only: Option<Part>,
    /// URL of the Postgres database, for example postgres://fanfare@localhost/fanfare
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_parser = postgres)]
    database_url: Option<String>,
    #[command(flatten)]
    roles: DatabaseRoles,
    #[command(flatten)]
    server: Server,
    /// Time that a new Temporal namespace keeps closed workflows, such as 72h or 30d. An existing namespace is left
    /// as it is
    #[arg(long, env = "FANFARE_RETENTION", default_value = "72h")]
    retention: Retention,
    /// Seconds to wait for Postgres and for Temporal to answer and to know what was created
    #[arg(long, env = "FANFARE_START_TIMEOUT", default_value_t = START_TIMEOUT)]
    start_timeout: u64,
}

/// A part of the installation to prepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The schema.
    Postgres,
    /// The namespace and its search attributes.
    Temporal,
}

/// Retention of closed workflows.
#[derive(Clone, Copy, Debug)]
struct Retention {
    hours: u64,
}

impl FromStr for Retention {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected hours or days, such as 72h or 30d";
        let (number, hours) = match (text.strip_suffix('h'), text.strip_suffix('d')) {
            (Some(number), _) => (number, 1),
            (_, Some(number)) => (number, 24),
            _ => return Err(EXPECTED),
        };
        let number: u32 = number.parse().ok().filter(|number| *number > 0).ok_or(EXPECTED)?;
        Ok(Self { hours: u64::from(number) * hours })
    }
}

/// Prepares Postgres and Temporal, and prints what was done.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let limit = Duration::from_secs(options.start_timeout);
    if options.only != Some(Part::Temporal) {
        let url = options.database_url.as_deref();
        let url = url.context("DATABASE_URL is not set; `--only temporal` needs none")?;
        let db = store::connect_lazy(url, 2)?;
        wait_for(limit, async || store::upkeep::reach::check(url).await.map_err(Fault::Away)).await?;
        store::migrate(&db).await?;
        // Of a restored database something is recorded, which stays.
        store::upkeep::lineage::begin(&db).await?;
        store::upkeep::roles::grant(&db, options.roles.roles()).await?;
        println!("Postgres: the schema is current");
    }
    match options.only {
        Some(Part::Postgres) => {}
        None if options.server.address.is_none() => {
            println!("Temporal: not prepared, since TEMPORAL_ADDRESS is not set");
        }
        _ => prepare(&options.server, options.retention, limit).await?,
    }
    Ok(())
}

/// Creates the namespace and the search attributes as far as they are missing, and waits until Temporal knows them: its
/// services read namespaces from a cache, so that a new one is unknown to some for seconds.
async fn prepare(server: &Server, retention: Retention, limit: Duration) -> anyhow::Result<()> {
    let client = wait_for(limit, async || server.connect().await).await?;
    let namespace = &server.namespace;
    wait_for(limit, async || {
        match server.check(&client).await? {
            Namespace::Ready => return Ok(()),
            Namespace::Missing => register(server, &client, retention).await?,
            Namespace::Incomplete => complete(server, &client).await?,
            Namespace::Unknown => {
                return Err(Fault::Away(anyhow!(
                    "Temporal lets no search attributes of {namespace} be searched for"
                )));
            }
        }
        // A namespace or search attribute is not known at once after its creation.
        Err(Fault::Away(anyhow!("Temporal does not know all of the namespace {namespace} yet")))
    })
    .await?;
    println!("Temporal: the namespace {namespace} has all search attributes");
    Ok(())
}

async fn register(server: &Server, client: &Client, retention: Retention) -> Result<(), Fault> {
    let namespace = &server.namespace;
    let request = RegisterNamespaceRequest {
        namespace: namespace.clone(),
        description: "Posts of Fanfare".to_owned(),
        workflow_execution_retention_period: Duration::from_hours(retention.hours).try_into().ok(),
        ..RegisterNamespaceRequest::default()
    };
    match WorkflowService::register_namespace(&mut client.clone(), request.into_request()).await {
        Ok(_) => {
            println!(
                "Temporal: created the namespace {namespace}, which keeps closed workflows for {} h",
                retention.hours
            );
            Ok(())
        }
        Err(status) => match status.code() {
            // A service that has not read it yet answered before.
            Code::AlreadyExists => Ok(()),
            Code::PermissionDenied | Code::Unimplemented => Err(Fault::Refused(anyhow!(
                "Temporal at {} has no namespace {namespace} and lets this client create none: create it, in \
                 Temporal Cloud at https://cloud.temporal.io, and run `fanfare migrate` again",
                server.address()
            ))),
            _ => Err(failed(server, &status, "create the namespace")),
        },
    }
}

async fn complete(server: &Server, client: &Client) -> Result<(), Fault> {
    let namespace = server.namespace.clone();
    let request = ListSearchAttributesRequest { namespace: namespace.clone() };
    let listed = OperatorService::list_search_attributes(&mut client.clone(), request.into_request()).await;
    let known = match listed {
        Ok(listed) => listed.into_inner().custom_attributes,
        // Its service does not know the namespace yet.
        Err(status) if status.code() == Code::NotFound => return Ok(()),
        Err(status) => return Err(manual(server, &status)),
    };
    let missing: HashMap<_, _> = attributes::ALL
        .iter()
        .filter(|(name, _)| !known.contains_key(*name))
        .map(|(name, _)| ((*name).to_owned(), IndexedValueType::Keyword.into()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut names: Vec<_> = missing.keys().cloned().collect();
    names.sort_unstable();
    let request = AddSearchAttributesRequest { search_attributes: missing, namespace };
    match OperatorService::add_search_attributes(&mut client.clone(), request.into_request()).await {
        Ok(_) => {
            println!("Temporal: created the search attributes {}", names.join(", "));
            Ok(())
        }
        // Another process was faster, or the service does not know the namespace yet.
        Err(status) if matches!(status.code(), Code::AlreadyExists | Code::NotFound) => Ok(()),
        Err(status) => Err(manual(server, &status)),
    }
}

/// Explains how to create search attributes where this client may not.
fn manual(server: &Server, status: &Status) -> Fault {
    if !matches!(status.code(), Code::PermissionDenied | Code::Unimplemented | Code::Unauthenticated) {
        return failed(server, status, "create the search attributes");
    }
    let arguments: String =
        attributes::ALL.iter().map(|(name, kind)| format!(" --search-attribute \"{name}={kind}\"")).collect();
    Fault::Refused(anyhow!(
        "Temporal at {} lets this client create no search attributes. In Temporal Cloud run\n  \
         tcld namespace search-attributes add --namespace {}{arguments}\nand then `fanfare migrate` again",
        server.address(),
        server.namespace,
    ))
}

/// Explains a call that failed: one that Temporal can't answer now is repeated.
fn failed(server: &Server, status: &Status, what: &str) -> Fault {
    match (server.judge(status), status.code()) {
        (Fault::Away(error), code) if is_away(code) => Fault::Away(error.context(format!("can't {what}"))),
        (fault, _) => Fault::Refused(fault.into_error().context(format!("can't {what}: {}", shown(status)))),
    }
}
