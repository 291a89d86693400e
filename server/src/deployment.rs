//! Worker versioning: which build of the workers gets tasks.
//!
//! Optional, because workers of a deployment get no task until somebody makes their version the current one. All
//! workflows move to the current version on their own (auto-upgrade): they are long-lived, their code is guarded by
//! patches, and the recorded histories of every version are replayed in the tests. Pinning them would leave a
//! scheduled post to a version that nobody runs any more. <https://docs.temporal.io/worker-versioning>

use crate::{
    startup::{START_TIMEOUT, wait_for},
    temporal::{Fault, Server},
};
use activities::worker::Version;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use starter::status::shown;
use std::time::Duration;
use temporalio_client::{
    Client,
    grpc::WorkflowService,
    tonic::{Code, IntoRequest, Status},
};
use temporalio_common::{
    protos::temporal::api::{
        deployment::v1::{WorkerDeploymentInfo, WorkerDeploymentVersion},
        enums::v1::VersionDrainageStatus,
        workflowservice::v1::{
            DescribeWorkerDeploymentRequest, SetWorkerDeploymentCurrentVersionRequest,
            SetWorkerDeploymentRampingVersionRequest,
        },
    },
    worker::build_id_from_current_exe,
};

/// Version of the workers of a process.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Name of the worker deployment, which turns worker versioning on: workers then get no task until `fanfare
    /// deployment current` names their build
    #[arg(long, env = "FANFARE_DEPLOYMENT")]
    deployment: Option<String>,
    /// Id of this build in the deployment; by default the version and a checksum of the program
    #[arg(long, env = "FANFARE_BUILD_ID")]
    build_id: Option<String>,
}

impl Settings {
    /// Returns the version of the workers; `None` without versioning.
    pub(crate) fn version(&self) -> Option<Version> {
        let deployment = self.deployment.clone().filter(|name| !name.is_empty())?;
        Some(Version { deployment, build_id: self.build_id() })
    }

    fn build_id(&self) -> String {
        let configured = self.build_id.clone().filter(|id| !id.is_empty());
        configured.unwrap_or_else(|| format!("{}-{}", env!("CARGO_PKG_VERSION"), build_id_from_current_exe()))
    }
}

/// Decides which build of a worker deployment gets tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Lists the builds of the deployment, with their share of new work
    Show(Target),
    /// Gives all work to a build, which must be running
    Current(Target),
    /// Gives a part of new workflows to a build, which must be running
    Ramp {
        /// Part in percent, 0 to 100
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: u8,
        #[command(flatten)]
        target: Target,
    },
    /// Gives all work to workers without versioning, to turn it off
    Off(Target),
}

/// A build of a deployment.
#[derive(Args, Debug)]
pub(crate) struct Target {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    server: Server,
    /// Seconds to wait for Temporal, and for workers of the build
    #[arg(long, env = "FANFARE_START_TIMEOUT", default_value_t = START_TIMEOUT)]
    start_timeout: u64,
}

/// Runs an action, and prints the deployment afterwards.
pub(crate) async fn run(action: &Action) -> anyhow::Result<()> {
    let (Action::Show(target) | Action::Current(target) | Action::Off(target) | Action::Ramp { target, .. }) =
        action;
    let version = target.settings.version();
    let Version { deployment, build_id } = version.ok_or_else(|| anyhow!("FANFARE_DEPLOYMENT is not set"))?;
    let (server, limit) = (&target.server, Duration::from_secs(target.start_timeout));
    let client = wait_for(limit, async || server.connect().await).await?;
    // Until the workers of a build have polled, Temporal does not know it, or refuses it.
    wait_for(limit, async || match action {
        Action::Show(_) => Ok(()),
        Action::Current(_) => set_current(server, &client, &deployment, &build_id).await,
        Action::Off(_) => set_current(server, &client, &deployment, "").await,
        Action::Ramp { percent, .. } => ramp(server, &client, &deployment, &build_id, *percent).await,
    })
    .await?;
    let request = DescribeWorkerDeploymentRequest {
        namespace: server.namespace.clone(),
        deployment_name: deployment.clone(),
    };
    let mut client = client;
    let described = WorkflowService::describe_worker_deployment(&mut client, request.into_request()).await;
    let described = described.map_err(|status| match status.code() {
        Code::NotFound => anyhow!("there is no deployment {deployment}: no worker of it has run"),
        _ => server.judge(&status).into_error(),
    })?;
    print!("{}", describe(&described.into_inner().worker_deployment_info.unwrap_or_default()));
    Ok(())
}

async fn set_current(server: &Server, client: &Client, deployment: &str, build: &str) -> Result<(), Fault> {
    let request = SetWorkerDeploymentCurrentVersionRequest {
        namespace: server.namespace.clone(),
        deployment_name: deployment.to_owned(),
        build_id: build.to_owned(),
        identity: client.connection().identity().to_owned(),
        ..SetWorkerDeploymentCurrentVersionRequest::default()
    };
    let mut client = client.clone();
    let set =
        WorkflowService::set_worker_deployment_current_version(&mut client, request.into_request()).await;
    set.map(drop).map_err(|status| unset(server, &status, build))
}

async fn ramp(
    server: &Server,
    client: &Client,
    deployment: &str,
    build: &str,
    percent: u8,
) -> Result<(), Fault> {
    let request = SetWorkerDeploymentRampingVersionRequest {
        namespace: server.namespace.clone(),
        deployment_name: deployment.to_owned(),
        build_id: build.to_owned(),
        percentage: percent.into(),
        identity: client.connection().identity().to_owned(),
        ..SetWorkerDeploymentRampingVersionRequest::default()
    };
    let mut client = client.clone();
    let set =
        WorkflowService::set_worker_deployment_ramping_version(&mut client, request.into_request()).await;
    set.map(drop).map_err(|status| unset(server, &status, build))
}

/// Explains why a version could not be set.
fn unset(server: &Server, status: &Status, build: &str) -> Fault {
    match status.code() {
        Code::NotFound | Code::FailedPrecondition => {
            Fault::Away(anyhow!("build {build} does not serve all task queues yet: {}", status.message()))
        }
        Code::Unimplemented => Fault::Refused(anyhow!(
            "Temporal at {} has no worker versioning: it needs version 1.28 or newer",
            server.address()
        )),
        _ => match server.judge(status) {
            Fault::Away(error) => Fault::Away(error),
            Fault::Refused(error) => Fault::Refused(error.context(shown(status))),
        },
    }
}

/// Returns a line per build.
fn describe(deployment: &WorkerDeploymentInfo) -> String {
    let routing = deployment.routing_config.clone().unwrap_or_default();
    let is = |version: &Option<WorkerDeploymentVersion>, build: &str| {
        version.as_ref().is_some_and(|version| version.build_id == build)
    };
    let mut text = format!("deployment {}\n", deployment.name);
    if routing.current_deployment_version.is_none() {
        text.push_str("workers without versioning are current\n");
    }
    for version in &deployment.version_summaries {
        let build = version.deployment_version.as_ref().map_or("", |version| version.build_id.as_str());
        let state = if is(&routing.current_deployment_version, build) {
            "current".to_owned()
        } else if is(&routing.ramping_deployment_version, build) {
            format!("gets {} % of new workflows", routing.ramping_version_percentage)
        } else {
            let drainage = version.drainage_info.as_ref().map(|drainage| drainage.status());
            match drainage.unwrap_or_default() {
                VersionDrainageStatus::Draining => "draining: workflows of it still run".to_owned(),
                VersionDrainageStatus::Drained => "drained: its workers can be stopped".to_owned(),
                VersionDrainageStatus::Unspecified => "never got work".to_owned(),
            }
        };
        text.push_str(&format!("build {build}: {state}\n"));
    }
    text
}
