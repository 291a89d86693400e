//! Configuration of the operator: flags and environment variables, with one description for both.

use crate::{
    deployment, http,
    openid::{OpenId, OpenIdClient},
    retention::RetentionConfig,
    secret_files,
    secrets::{Secret, Token, any, secret, token},
    startup::START_TIMEOUT,
    stopping, temporal,
};
use activities::worker::Served;
use anyhow::Context;
use api::{OperatorToken, http::rate_limits::Limits, plans::Plans};
use chrono::TimeDelta;
use clap::{
    Args,
    error::{ContextKind, ContextValue},
};
use domain::{App, AppAccess, Mode, TimeScale, ip_ranges::AllowedRanges, sandbox::Address};
use media::{Credentials, Location, SizeLimits};
use platforms::versions::Month;
use sandbox::{Access, AppStatus};
use starter::sweeper;
use std::{collections::BTreeMap, env, error::Error, net::SocketAddr, str::FromStr, time::Duration};
use store::upkeep::vault::{Opener, Sealer};
use url::Url;

/// Default scheduling horizon, in seconds.
pub(crate) const SCHEDULING_HORIZON: u32 = 24 * 3600;
/// Default interval of metrics collection, in seconds.
pub(crate) const COLLECT_EVERY: u64 = 15 * 60;

/// Default number of activities after which a worker is replaced. It bounds what the SDK keeps to some 10 MB per task
/// queue.
pub(crate) const RECYCLE_AFTER: u64 = 25_000;

/// Connection to Temporal, and scheduling.
#[derive(Args, Clone, Debug)]
pub(crate) struct Temporal {
    #[command(flatten)]
    pub(crate) server: temporal::Server,
    /// URL of Temporal's UI, for links in the dashboard
    #[arg(long, env = "FANFARE_TEMPORAL_UI", hide_env_values = true)]
    pub(crate) temporal_ui: Option<Url>,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
}

/// Task queues and waits.
#[derive(Args, Clone, Debug)]
pub(crate) struct Scheduling {
    /// Task queue of posts; the names of the other task queues begin with it
    #[arg(long, env = "FANFARE_TASK_QUEUE", default_value = workflows::queue::DEFAULT)]
    pub(crate) task_queue: String,
    /// Factor from 0 to 1 on every wait of publishing and delivery, for demonstrations and tests
    #[arg(long, env = "FANFARE_TIME_SCALE", value_parser = time_scale)]
    pub(crate) time_scale: Option<TimeScale>,
    /// Time before a post is due at which its workflow is started, in seconds; until then the post waits in the
    /// database only. It must be the same for all API processes
    #[arg(long, env = "FANFARE_SCHEDULING_HORIZON", default_value_t = SCHEDULING_HORIZON)]
    pub(crate) scheduling_horizon: u32,
    /// Seconds between metrics collection runs; 0 disables collection
    #[arg(long, env = "FANFARE_COLLECT_EVERY", default_value_t = COLLECT_EVERY)]
    pub(crate) collect_every: u64,
}

/// The HTTP API.
#[derive(Args, Clone, Debug)]
pub(crate) struct Http {
    /// Address to listen on
    #[arg(long, env = "FANFARE_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Public URL of the API, ending with /api/v1; the listener's address by default
    #[arg(long, env = "FANFARE_BASE_URL")]
    pub(crate) base_url: Option<Url>,
    /// Secret from which signing keys are derived: 32 bytes in base64url, the same for every API process
    #[arg(long, env = "FANFARE_SECRET", hide_env_values = true, value_parser = secret)]
    pub(crate) secret: Secret,
    /// Public key that encrypts secrets, as `fanfare key generate` prints it
    #[arg(long, env = "FANFARE_SEAL_KEY", hide_env_values = true)]
    pub(crate) seal_key: Sealer,
    /// Client ids of the OAuth apps in FANFARE_SHARED_APPS, as JSON by platform: the API needs them for
    /// authorization URLs and never sees the client secrets
    #[arg(long, env = "FANFARE_SHARED_CLIENTS", default_value = "")]
    pub(crate) shared_clients: SharedClients,
    /// Token of at least 32 characters that opens the operators' pages at /dashboard/operators, which see and change
    /// the posts of all organizations; without it there are none
    #[arg(long, env = "FANFARE_OPERATOR_TOKEN", hide_env_values = true)]
    pub(crate) operator_token: Option<OperatorToken>,
    #[command(flatten)]
    pub(crate) limits: LimitsConfig,
    /// Name of the OpenID provider, which the settings of both API and workers have.
    #[arg(skip)]
    pub(crate) openid: Option<String>,
}

/// Client ids of shared OAuth apps, by platform.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedClients(pub(crate) BTreeMap<String, String>);

impl FromStr for SharedClients {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let clients = serde_json::from_str(text).context("expected JSON such as {\"x\": \"client id\"}")?;
        Ok(Self(clients))
    }
}

/// Limits of requests and connections.
#[derive(Args, Clone, Debug)]
pub(crate) struct LimitsConfig {
    /// Rate limits that replace the defaults, as JSON by bucket: {"posts": {"limit": 240, "window": 60}}
    #[arg(long, env = "FANFARE_RATE_LIMITS", default_value = "", hide_default_value = true)]
    pub(crate) rate_limits: Limits,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Number of trusted proxies that append to X-Forwarded-For; 0 ignores the header
    #[arg(long, env = "FANFARE_TRUSTED_HOPS", default_value_t = 0)]
    pub(crate) trusted_hops: usize,
    #[command(flatten)]
    pub(crate) connections: ConnectionLimits,
    #[command(flatten)]
    pub(crate) retention: RetentionConfig,
}

/// Limits and timeouts of connections.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectionLimits {
    /// Maximum connections; further ones wait, and idle ones are closed to make room for them
    #[arg(long, env = "FANFARE_CONNECTIONS", default_value_t = 1000,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Seconds for receiving the head of a request
    #[arg(long, env = "FANFARE_HEAD_TIMEOUT", default_value_t = 15)]
    pub(crate) head_timeout: u64,
    /// Seconds for receiving the body of a request; for a file upload, maximum seconds without data
    #[arg(long, env = "FANFARE_BODY_TIMEOUT", default_value_t = 30)]
    pub(crate) body_timeout: u64,
    /// Seconds that a connection may be idle; should exceed the idle timeout of a proxy in front
    #[arg(long, env = "FANFARE_IDLE_TIMEOUT", default_value_t = 75)]
    pub(crate) idle_timeout: u64,
    /// Seconds between SIGTERM, when /readyz turns to 503, and the end of accepting connections: the time that a
    /// load balancer needs to notice
    #[arg(long, env = "FANFARE_DRAIN", default_value_t = 0)]
    pub(crate) drain: u64,
}

impl ConnectionLimits {
    /// Returns the time between the signal to stop and the end of accepting connections.
    pub(crate) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }

    /// Returns the limits for the HTTP server.
    pub(crate) fn limits(&self) -> http::Limits {
        http::Limits {
            connections: self.connections.into(),
            head: Duration::from_secs(self.head_timeout),
            idle: Duration::from_secs(self.idle_timeout),
            unread: Duration::from_secs(60),
            grace: stopping::OPEN_REQUESTS,
        }
    }
}

/// Plans of organizations.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pricing {
    /// Plans, as JSON: [{"key", "name", "api_requests", "posts", "social_accounts", "webhook_endpoints", "api_keys", "profiles", "team_members", "slots", "storage_bytes", "upgrade_url"}]
    #[arg(
        long,
        env = "FANFARE_PLANS",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) plans: Plans,
}

/// Keys that decrypt secrets. Only workers have them.
#[derive(Args, Clone, Debug)]
pub(crate) struct Keys {
    /// Private keys that decrypt secrets, newest first, separated by commas
    #[arg(long, env = "FANFARE_OPEN_KEYS", hide_env_values = true)]
    pub(crate) open_keys: Opener,
    /// OAuth apps shared with all organizations, as JSON by platform; access "trial" marks one with trial access
    #[arg(long, env = "FANFARE_SHARED_APPS", hide_env_values = true, default_value = "")]
    pub(crate) shared_apps: SharedApps,
}

/// Configuration of workers.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerConfig {
    #[command(flatten)]
    pub(crate) keys: Keys,
    #[command(flatten)]
    pub(crate) queues: Queues,
    #[command(flatten)]
    pub(crate) openid: OpenIdClient,
    /// Seconds that a starting worker waits for Postgres, its schema and Temporal before it exits
    #[arg(long, env = "FANFARE_START_TIMEOUT", default_value_t = START_TIMEOUT)]
    pub(crate) start_timeout: u64,
    #[command(flatten)]
    pub(crate) lifetime: WorkerLifetime,
    #[command(flatten)]
    pub(crate) versions: ApiVersions,
    #[command(flatten)]
    pub(crate) deployment: deployment::Settings,
}

/// Versions of the platforms' APIs.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApiVersions {
    /// Version of LinkedIn's API that calls name first, such as 202606; by default the one that this release was made
    /// for, and a later one shortly before LinkedIn ends that. If LinkedIn does not serve it, others are tried
    #[arg(long, env = "FANFARE_LINKEDIN_VERSION")]
    pub(crate) linkedin_version: Option<Month>,
}

/// When workers are replaced.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerLifetime {
    /// Activities after which the worker of a task queue is replaced while the process runs, because Temporal's SDK
    /// keeps some memory of each; 0 for never
    #[arg(long, env = "FANFARE_RECYCLE_AFTER", default_value_t = RECYCLE_AFTER)]
    pub(crate) recycle_after: u64,
    /// MiB of resident memory beyond which the process finishes what it has begun and ends with an error, for its
    /// supervisor to start it again. No limit by default
    #[arg(long, env = "FANFARE_MEMORY_LIMIT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) memory_limit: Option<u64>,
}

/// Task queues that the workers of a process poll.
#[derive(Args, Clone, Debug)]
pub(crate) struct Queues {
    /// Platforms whose queues the workers poll, separated by commas; all by default. Each platform needs a
    /// worker
    #[arg(long, env = "FANFARE_PLATFORMS", default_value = "", hide_default_value = true, value_parser = platforms)]
    pub(crate) platforms: Platforms,
    /// Modes whose queues the workers poll, live or test; both by default
    #[arg(long, env = "FANFARE_MODES", default_value = "", hide_default_value = true, value_parser = modes)]
    pub(crate) modes: Modes,
}

impl Queues {
    /// Returns all platforms and modes.
    pub(crate) fn all() -> Self {
        let platforms = platforms::all().iter().map(|platform| platform.id).collect();
        Self { platforms: Platforms(platforms), modes: Modes(Mode::ALL.to_vec()) }
    }

    /// Returns the queues for the workers.
    pub(crate) fn served(&self) -> Served {
        Served { modes: self.modes.0.clone(), platforms: self.platforms.0.clone() }
    }
}

/// Platform ids.
#[derive(Clone, Debug)]
pub(crate) struct Platforms(Vec<&'static str>);

/// A list of modes.
#[derive(Clone, Debug)]
pub(crate) struct Modes(Vec<Mode>);

fn platforms(text: &str) -> anyhow::Result<Platforms> {
    if text.is_empty() {
        return Ok(Queues::all().platforms);
    }
    let known = |id: &str| platforms::get(id).map(|platform| platform.id);
    let named = |id: &str| known(id.trim()).with_context(|| format!("unknown platform {id}"));
    Ok(Platforms(text.split(',').map(named).collect::<Result<_, _>>()?))
}

fn modes(text: &str) -> anyhow::Result<Modes> {
    if text.is_empty() {
        return Ok(Queues::all().modes);
    }
    Ok(Modes(text.split(',').map(|mode| mode.trim().parse()).collect::<Result<_, _>>()?))
}

/// OAuth apps that this installation shares with its organizations, by platform.
#[derive(Clone, Default)]
pub(crate) struct SharedApps(pub(crate) BTreeMap<String, App>);

impl std::fmt::Debug for SharedApps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl SharedApps {
    /// Returns the client ids, which the API may know.
    pub(crate) fn clients(&self) -> SharedClients {
        SharedClients(client_ids(&self.0))
    }
}

/// Returns the client ids of apps, by platform.
pub(crate) fn client_ids(apps: &BTreeMap<String, App>) -> BTreeMap<String, String> {
    apps.iter().map(|(platform, app)| (platform.clone(), app.client_id.clone())).collect()
}

impl FromStr for SharedApps {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Shared {
            client_id: String,
            client_secret: Option<String>,
            #[serde(default)]
            access: AppAccess,
        }
        if text.is_empty() {
            return Ok(Self::default());
        }
        let apps: BTreeMap<String, Shared> = serde_json::from_str(text)
            .context("expected JSON such as {\"x\": {\"client_id\": …, \"client_secret\": …}}")?;
        let app = |app: Shared| App {
            client_id: app.client_id,
            client_secret: app.client_secret,
            access: app.access,
        };
        Ok(Self(apps.into_iter().map(|(platform, shared)| (platform, app(shared))).collect()))
    }
}

/// Storage of media files.
#[derive(Args, Clone, Debug)]
pub(crate) struct Storage {
    /// Location of media files, the same for all processes: file:///path or s3://bucket/prefix. A bucket is
    /// configured with AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_ALLOW_HTTP and AWS_VIRTUAL_HOSTED_STYLE_REQUEST
    #[arg(long = "media", env = "FANFARE_MEDIA", hide_env_values = true)]
    pub(crate) location: Location,
    #[command(flatten)]
    pub(crate) credentials: BucketCredentials,
    #[command(flatten)]
    pub(crate) limits: MediaLimits,
}

impl Storage {
    /// Returns the location with its credentials.
    pub(crate) fn location(&self) -> Location {
        let BucketCredentials { access_key_id, secret_access_key, session_token } = self.credentials.clone();
        let text = |token: Option<Token>| token.map(|Token(text)| text).filter(|text| !text.is_empty());
        self.location.clone().with_credentials(Credentials {
            access_key_id: text(access_key_id),
            secret_access_key: text(secret_access_key),
            session_token: text(session_token),
        })
    }
}

/// Settings of `fanfare dev`: those of API, workers, sandbox and `migrate` that it does not determine itself. It refuses
/// the others, so that none is ignored.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevSettings {
    /// Maximum database connections of this process
    #[arg(long, env = "FANFARE_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub(crate) database_connections: u32,
    #[command(flatten)]
    pub(crate) scheduling: Scheduling,
    #[command(flatten)]
    pub(crate) limits: LimitsConfig,
    #[command(flatten)]
    pub(crate) storage: DevStorage,
    #[command(flatten)]
    pub(crate) queues: Queues,
    #[command(flatten)]
    pub(crate) lifetime: WorkerLifetime,
    #[command(flatten)]
    pub(crate) versions: ApiVersions,
    /// OAuth apps shared with all organizations, as JSON by platform; access "trial" marks one with trial access
    #[arg(long, env = "FANFARE_SHARED_APPS", hide_env_values = true, default_value = "")]
    pub(crate) shared_apps: SharedApps,
    /// Non-public IP ranges that webhooks may be sent to and users' own servers may be in, as CIDR separated by
    /// commas; in test mode this machine's own addresses always
    #[arg(long, env = "FANFARE_EGRESS_ALLOW", default_value = "", value_parser = AllowedRanges::parse)]
    pub(crate) egress_allow: AllowedRanges,
    #[command(flatten)]
    pub(crate) openid: OpenId,
    #[command(flatten)]
    pub(crate) openid_client: OpenIdClient,
    /// Standing of the platforms' apps in the sandbox: `approved`, after the platforms' reviews, or `new`, with the
    /// access of an app that was registered today
    #[arg(long, env = "FANFARE_SANDBOX_APP", default_value = "approved", value_parser = app_status)]
    pub(crate) app: AppStatus,
}

/// Storage of the media files of `fanfare dev`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevStorage {
    /// Location of media files, to try a bucket; a directory in the data directory by default
    #[arg(long = "media", env = "FANFARE_MEDIA", hide_env_values = true)]
    location: Option<Location>,
    #[command(flatten)]
    credentials: BucketCredentials,
    #[command(flatten)]
    limits: MediaLimits,
}

impl DevStorage {
    /// Returns the storage, which is at `location` unless the settings name another.
    pub(crate) fn or(self, location: Location) -> Storage {
        let Self { location: other, credentials, limits } = self;
        Storage { location: other.unwrap_or(location), credentials, limits }
    }
}

/// Credentials of a bucket.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BucketCredentials {
    /// Id of the bucket's access key
    #[arg(long = "aws-access-key-id", env = "AWS_ACCESS_KEY_ID", hide_env_values = true, value_parser = any)]
    pub(crate) access_key_id: Option<Token>,
    /// Secret of the bucket's access key
    #[arg(
        long = "aws-secret-access-key",
        env = "AWS_SECRET_ACCESS_KEY",
        hide_env_values = true,
        value_parser = any
    )]
    pub(crate) secret_access_key: Option<Token>,
    /// Session token of temporary credentials
    #[arg(long = "aws-session-token", env = "AWS_SESSION_TOKEN", hide_env_values = true, value_parser = any)]
    pub(crate) session_token: Option<Token>,
}

/// Maximum sizes and retention of media files.
#[derive(Args, Clone, Debug)]
pub(crate) struct MediaLimits {
    /// Maximum size of each media kind in bytes, as JSON: {"video": 1073741824}
    #[arg(long, env = "FANFARE_MEDIA_MAX_BYTES", default_value = "", hide_default_value = true)]
    pub(crate) media_caps: SizeLimits,
    /// Days that a file is kept after the last post that uses it has ended; 0 keeps files without limit
    #[arg(long, env = "FANFARE_MEDIA_RETENTION", default_value_t = 30)]
    pub(crate) media_retention: u16,
}

impl Temporal {
    /// Returns the factor on every wait; 1 by default.
    pub(crate) fn time_scale(&self) -> TimeScale {
        self.scheduling.time_scale.unwrap_or_default()
    }

    /// Returns the scheduling horizon.
    ///
    /// # Errors
    ///
    /// If it is too short for posts to be found in time.
    pub(crate) fn horizon(&self) -> anyhow::Result<Duration> {
        let horizon = Duration::from_secs(self.scheduling.scheduling_horizon.into());
        let least = sweeper::least_horizon(self.time_scale());
        anyhow::ensure!(
            horizon >= least,
            "FANFARE_SCHEDULING_HORIZON is {} s, and must be at least {} s for posts to be found before they are due",
            horizon.as_secs(),
            least.as_secs_f64().ceil()
        );
        Ok(horizon)
    }
}

impl MediaLimits {
    /// Returns the retention time; `None` keeps files without limit.
    pub(crate) fn retention(&self) -> Option<TimeDelta> {
        (self.media_retention > 0).then(|| TimeDelta::days(self.media_retention.into()))
    }
}

/// Settings of a worker that creates URLs of files in a directory, which the API serves.
#[derive(Args, Clone, Debug)]
pub(crate) struct MediaUrlConfig {
    /// Public URL of the API, ending with /api/v1
    #[arg(long, env = "FANFARE_BASE_URL")]
    pub(crate) base_url: Option<Url>,
    /// The API's secret: for platforms that fetch media files from a directory, and to tell requests of the API from
    /// others when a signing secret is revealed
    #[arg(long, env = "FANFARE_SECRET", hide_env_values = true, value_parser = secret)]
    pub(crate) secret: Option<Secret>,
}

/// Destinations of outgoing requests.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetworkConfig {
    /// URL of the sandbox that test mode publishes to; without it, test mode can't publish
    #[arg(long, env = "FANFARE_SANDBOX_URL", hide_env_values = true)]
    pub(crate) sandbox_url: Option<Url>,
    /// Token of a sandbox that is reachable from other machines: each organization then has its own accounts
    /// there
    #[arg(long, env = "FANFARE_SANDBOX_TOKEN", hide_env_values = true, value_parser = token)]
    pub(crate) sandbox_token: Option<Token>,
    /// Non-public IP ranges that webhooks may be sent to and users' own servers may be in, as CIDR separated by
    /// commas
    #[arg(long, env = "FANFARE_EGRESS_ALLOW", default_value = "", value_parser = AllowedRanges::parse)]
    pub(crate) egress_allow: AllowedRanges,
    #[command(flatten)]
    pub(crate) openid: OpenId,
}

impl NetworkConfig {
    /// Returns the sandbox's address, if one is configured.
    pub(crate) fn sandbox(&self) -> Option<Address> {
        let token = self.sandbox_token.clone().map(|Token(token)| token);
        Some(Address::new(self.sandbox_url.clone()?, token))
    }
}

/// Parses the id of a platform.
pub(crate) fn platform(text: &str) -> Result<&'static str, String> {
    platforms::get(text)
        .map(|platform| platform.id)
        .ok_or_else(|| format!("use one of {}", platforms::IDS.join(", ")))
}

/// Reads the standing of the sandbox's apps.
pub(crate) fn app_status(text: &str) -> Result<AppStatus, String> {
    match text {
        "new" => Ok(AppStatus::New),
        "approved" => Ok(AppStatus::Approved),
        _ => Err("use `new` or `approved`".to_owned()),
    }
}

/// Access to a sandbox from other machines.
#[derive(Args, Clone, Debug)]
pub(crate) struct SandboxAccess {
    /// Token for the sandbox's control paths, which also signs the organizations' paths. The same for API,
    /// workers and sandbox. Optional on loopback
    #[arg(long, env = "FANFARE_SANDBOX_TOKEN", hide_env_values = true, value_parser = token)]
    pub(crate) sandbox_token: Option<Token>,
    /// URL at which API, workers and browsers reach the sandbox
    #[arg(long, env = "FANFARE_SANDBOX_URL")]
    pub(crate) sandbox_url: Option<Url>,
    /// Prefixes of non-public media URLs that the sandbox may fetch, separated by commas: the API's and the
    /// bucket's. Loopback addresses by default
    #[arg(long, env = "FANFARE_SANDBOX_MEDIA", value_delimiter = ',', value_parser = prefix)]
    pub(crate) sandbox_media: Option<Vec<Option<Url>>>,
}

impl SandboxAccess {
    pub(crate) fn options(self) -> Access {
        Access {
            token: self.sandbox_token.map(|Token(token)| token),
            url: self.sandbox_url,
            media: self.sandbox_media.map(|prefixes| prefixes.into_iter().flatten().collect()),
        }
    }
}

/// Parses one URL of a list; empty entries are allowed.
fn prefix(text: &str) -> Result<Option<Url>, url::ParseError> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.parse()).transpose()
}

/// Describes a malformed setting that holds a secret. Clap's own message repeats the value, and standard error
/// is kept in logs: this one names the variable instead. `None` for any other error.
pub(crate) fn malformed(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let (argument, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    let setting = secrets(command).into_iter().find(|setting| setting.to_string() == argument)?;
    let variable = secret_files::source(setting, |name| env::var_os(name))?;
    // A reason that quotes the value is left out.
    let reason = error.source().map(ToString::to_string).filter(|reason| !quotes(reason, value));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let help = setting.get_help().map(ToString::to_string).unwrap_or_default();
    Some(format!("error: {variable} (or {argument}) is invalid{reason}\n\n{variable}: {help}"))
}

/// Returns the environment variable that an invalid value comes from: clap's message names the argument only.
pub(crate) fn source(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let (argument, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    let all = settings(command);
    let mut variables =
        all.iter().filter(|setting| setting.to_string() == argument).filter_map(|setting| setting.get_env());
    let variable = variables.find(|name| env::var_os(name).is_some_and(|set| set == value))?;
    Some(variable.to_string_lossy().into_owned())
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the settings of a command and its subcommands.
fn settings(command: &clap::Command) -> Vec<&clap::Arg> {
    command.get_arguments().chain(command.get_subcommands().flat_map(settings)).collect()
}

/// Returns those of them whose values are secret.
fn secrets(command: &clap::Command) -> Vec<&clap::Arg> {
    settings(command).into_iter().filter(|argument| argument.is_hide_env_values_set()).collect()
}

/// Returns true if a text contains a part of a value that is long enough to disclose it.
fn quotes(text: &str, value: &str) -> bool {
    const PART: usize = 7;
    value.as_bytes().windows(PART).any(|part| text.as_bytes().windows(PART).any(|found| found == part))
}

fn time_scale(text: &str) -> anyhow::Result<TimeScale> {
    text.parse().ok().and_then(TimeScale::new).context("a time scale is a number above 0 and up to 1")
}
