//! What an operator can set: flags and environment variables, with one description for both.

use crate::http;
use activities::worker::Served;
use anyhow::Context;
use api::{http::rate_limits::Limits, plans::Plans};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use clap::{
    Args,
    error::{ContextKind, ContextValue},
};
use domain::{App, Mode, TimeScale, ip_ranges::AllowedRanges, sandbox::Address};
use media::{Location, SizeLimits};
use sandbox::Access;
use std::{collections::BTreeMap, error::Error, net::SocketAddr, str::FromStr, time::Duration};
use store::vault::{Opener, Sealer};
use url::Url;

/// How often figures are collected, in seconds, unless the operator says otherwise.
pub(crate) const COLLECT_EVERY: u64 = 15 * 60;

/// The database.
#[derive(Args, Clone, Debug)]
pub(crate) struct Database {
    /// Postgres, for example postgres://fanfare@localhost/fanfare
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_parser = postgres)]
    pub(crate) database_url: String,
    /// Connections this process may hold
    #[arg(long, env = "FANFARE_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub(crate) database_connections: u32,
}

/// Temporal.
#[derive(Args, Clone, Debug)]
pub(crate) struct Temporal {
    /// The server, for example http://localhost:7233
    #[arg(long, env = "TEMPORAL_ADDRESS", hide_env_values = true, default_value = "http://127.0.0.1:7233")]
    pub(crate) temporal_address: ServerAddress,
    /// The namespace
    #[arg(long, env = "TEMPORAL_NAMESPACE", default_value = "default")]
    pub(crate) temporal_namespace: String,
    /// The address of Temporal's own pages, for the dashboard to lead to
    #[arg(long, env = "FANFARE_TEMPORAL_UI", hide_env_values = true)]
    pub(crate) temporal_ui: Option<Url>,
    /// The task queue of posts; those of platforms and webhooks are named after it
    #[arg(long, env = "FANFARE_TASK_QUEUE", default_value = workflows::queue::DEFAULT)]
    pub(crate) task_queue: String,
    /// A factor from 0 to 1 on every wait of publishing and delivery: for demonstrations and tests
    #[arg(long, env = "FANFARE_TIME_SCALE", value_parser = time_scale)]
    pub(crate) time_scale: Option<TimeScale>,
    /// The former name of the time scale
    #[arg(long, env = "FANFARE_PACE", value_parser = time_scale, hide = true)]
    pub(crate) pace: Option<TimeScale>,
    /// Seconds between two rounds of collecting the figures of what was published of late; 0 for none
    #[arg(long, env = "FANFARE_COLLECT_EVERY", default_value_t = COLLECT_EVERY)]
    pub(crate) collect_every: u64,
}

/// HTTP in.
#[derive(Args, Clone, Debug)]
pub(crate) struct Http {
    /// Where the API listens
    #[arg(long, env = "FANFARE_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// The address that clients use, ending with /api/v1; by default that of the listener
    #[arg(long, env = "FANFARE_BASE_URL")]
    pub(crate) base_url: Option<Url>,
    /// 32 bytes in base64url that cursors are signed with; the same for every API process
    #[arg(long, env = "FANFARE_SECRET", hide_env_values = true, value_parser = secret)]
    pub(crate) secret: Secret,
    /// The public key that secrets are sealed to, as `fanfare key generate` prints it
    #[arg(long, env = "FANFARE_SEAL_KEY")]
    pub(crate) seal_key: Sealer,
    /// The public identifiers of the OAuth apps in FANFARE_SHARED_APPS, as JSON by platform: the API
    /// asks for authorizations in their names and never sees their secrets
    #[arg(long, env = "FANFARE_SHARED_CLIENTS", default_value = "")]
    pub(crate) shared_clients: SharedClients,
    #[command(flatten)]
    pub(crate) bounds: LimitsConfig,
}

/// The public identifiers of shared apps.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedClients(pub(crate) BTreeMap<String, String>);

impl FromStr for SharedClients {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let clients = serde_json::from_str(text).context("not of the form {\"x\": \"client id\", …}")?;
        Ok(Self(clients))
    }
}

/// How much may be called, and by whom.
#[derive(Args, Clone, Debug)]
pub(crate) struct LimitsConfig {
    /// Rate limits that differ from the contract's, as JSON by bucket: {"posts": {"limit": 240, "window": 60}}
    #[arg(long, env = "FANFARE_RATE_LIMITS", default_value = "", hide_default_value = true)]
    pub(crate) rate_limits: Limits,
    #[command(flatten)]
    pub(crate) pricing: Pricing,
    /// Proxies in front, each of which appends to X-Forwarded-For: so far from its end the caller stands
    #[arg(long, env = "FANFARE_TRUSTED_HOPS", default_value_t = 0)]
    pub(crate) trusted_hops: usize,
    #[command(flatten)]
    pub(crate) patience: Patience,
}

/// How many connections there may be, and how long their clients may take.
#[derive(Args, Clone, Debug)]
pub(crate) struct Patience {
    /// Connections at a time; more wait, and idle ones are closed to make room for them
    #[arg(long, env = "FANFARE_CONNECTIONS", default_value_t = 1000,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Seconds that the head of a request may take
    #[arg(long, env = "FANFARE_HEAD_TIMEOUT", default_value_t = 15)]
    pub(crate) head_timeout: u64,
    /// Seconds that the body of a request may take; with a file, that none of it may come
    #[arg(long, env = "FANFARE_BODY_TIMEOUT", default_value_t = 30)]
    pub(crate) body_timeout: u64,
    /// Seconds that a connection may be idle: longer than a proxy in front keeps it
    #[arg(long, env = "FANFARE_IDLE_TIMEOUT", default_value_t = 75)]
    pub(crate) idle_timeout: u64,
}

impl Patience {
    /// The limits of connections.
    pub(crate) fn limits(&self) -> http::Limits {
        http::Limits {
            connections: self.connections.into(),
            head: Duration::from_secs(self.head_timeout),
            idle: Duration::from_secs(self.idle_timeout),
            unread: Duration::from_secs(60),
            grace: Duration::from_secs(5),
        }
    }
}

/// What organizations pay for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Pricing {
    /// The plans, as JSON: [{"key", "name", "api_requests", "posts", "social_accounts", "upgrade_url"}]
    #[arg(
        long,
        env = "FANFARE_PLANS",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) plans: Plans,
}

/// What opens sealed secrets. Only workers have it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Keys {
    /// The private keys that open what was sealed, the newest first, separated by commas
    #[arg(long, env = "FANFARE_OPEN_KEYS", hide_env_values = true)]
    pub(crate) open_keys: Opener,
    /// OAuth apps shared with all organizations, as JSON by platform
    #[arg(long, env = "FANFARE_SHARED_APPS", hide_env_values = true, default_value = "")]
    pub(crate) shared_apps: SharedApps,
}

/// What only workers are told.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerConfig {
    #[command(flatten)]
    pub(crate) keys: Keys,
    #[command(flatten)]
    pub(crate) queues: Queues,
}

/// The task queues that the workers of a process serve.
#[derive(Args, Clone, Debug)]
pub(crate) struct Queues {
    /// Platforms whose queues the workers serve, separated by commas; all by default. Each platform needs a
    /// worker that serves it
    #[arg(long, env = "FANFARE_PLATFORMS", default_value = "", hide_default_value = true, value_parser = platforms)]
    pub(crate) platforms: Platforms,
    /// Modes whose queues the workers serve, live or test; both by default
    #[arg(long, env = "FANFARE_MODES", default_value = "", hide_default_value = true, value_parser = modes)]
    pub(crate) modes: Modes,
}

impl Queues {
    /// Every queue.
    pub(crate) fn all() -> Self {
        let platforms = platforms::all().iter().map(|platform| platform.id).collect();
        Self { platforms: Platforms(platforms), modes: Modes(Mode::ALL.to_vec()) }
    }

    /// The queues, for the workers.
    pub(crate) fn served(&self) -> Served {
        Served { modes: self.modes.0.clone(), platforms: self.platforms.0.clone() }
    }
}

/// Platforms, by id.
#[derive(Clone, Debug)]
pub(crate) struct Platforms(Vec<&'static str>);

/// Modes.
#[derive(Clone, Debug)]
pub(crate) struct Modes(Vec<Mode>);

fn platforms(text: &str) -> anyhow::Result<Platforms> {
    if text.is_empty() {
        return Ok(Queues::all().platforms);
    }
    let known = |id: &str| platforms::get(id).map(|platform| platform.id);
    let named = |id: &str| known(id.trim()).with_context(|| format!("{id} is no platform"));
    Ok(Platforms(text.split(',').map(named).collect::<Result<_, _>>()?))
}

fn modes(text: &str) -> anyhow::Result<Modes> {
    if text.is_empty() {
        return Ok(Queues::all().modes);
    }
    Ok(Modes(text.split(',').map(|mode| mode.trim().parse()).collect::<Result<_, _>>()?))
}

/// The OAuth apps that this installation shares with its organizations.
#[derive(Clone, Default)]
pub(crate) struct SharedApps(pub(crate) BTreeMap<String, App>);

impl std::fmt::Debug for SharedApps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl SharedApps {
    /// What the API may know of them.
    pub(crate) fn clients(&self) -> SharedClients {
        SharedClients(client_ids(&self.0))
    }
}

/// The public part of apps, by platform.
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
        }
        if text.is_empty() {
            return Ok(Self::default());
        }
        let apps: BTreeMap<String, Shared> = serde_json::from_str(text)
            .context("not of the form {\"x\": {\"client_id\": …, \"client_secret\": …}}")?;
        let app = |app: Shared| App { client_id: app.client_id, client_secret: app.client_secret };
        Ok(Self(apps.into_iter().map(|(platform, shared)| (platform, app(shared))).collect()))
    }
}

/// Where the bytes of media are kept, and for how long.
#[derive(Args, Clone, Debug)]
pub(crate) struct Storage {
    /// Where media are kept, the same for all processes: file:///path or s3://bucket/prefix. A bucket is
    /// reached as AWS_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
    /// AWS_ALLOW_HTTP and AWS_VIRTUAL_HOSTED_STYLE_REQUEST say
    #[arg(long = "media", env = "FANFARE_MEDIA", hide_env_values = true)]
    pub(crate) place: Location,
    #[command(flatten)]
    pub(crate) keeping: MediaRetention,
}

/// How large media may be, and for how long they are kept.
#[derive(Args, Clone, Debug)]
pub(crate) struct MediaRetention {
    /// The largest size of each kind in bytes, as JSON: {"video": 1073741824}
    #[arg(long, env = "FANFARE_MEDIA_MAX_BYTES", default_value = "", hide_default_value = true)]
    pub(crate) media_caps: SizeLimits,
    /// Days that a file is kept after the last post that uses it has ended; 0 for ever
    #[arg(long, env = "FANFARE_MEDIA_RETENTION", default_value_t = 30)]
    pub(crate) media_retention: u16,
}

impl Temporal {
    /// The factor on every wait; 1 by default.
    pub(crate) fn time_scale(&self) -> TimeScale {
        self.time_scale.or(self.pace).unwrap_or_default()
    }
}

impl MediaRetention {
    /// How long; `None` for ever.
    pub(crate) fn retention(&self) -> Option<TimeDelta> {
        (self.media_retention > 0).then(|| TimeDelta::days(self.media_retention.into()))
    }
}

/// What a worker makes addresses of files with, where they are kept in a directory: the API serves them.
#[derive(Args, Clone, Debug)]
pub(crate) struct MediaUrlConfig {
    /// The API's address, ending with /api/v1, as platforms reach it
    #[arg(long, env = "FANFARE_BASE_URL")]
    pub(crate) base_url: Option<Url>,
    /// The API's secret, for platforms that fetch media from a directory of ours
    #[arg(long, env = "FANFARE_SECRET", hide_env_values = true, value_parser = secret)]
    pub(crate) secret: Option<Secret>,
}

/// Where requests may go.
#[derive(Args, Clone, Debug)]
pub(crate) struct NetworkConfig {
    /// The sandbox that test mode publishes to; without it, test mode can't publish
    #[arg(long, env = "FANFARE_SANDBOX_URL", hide_env_values = true)]
    pub(crate) sandbox_url: Option<Url>,
    /// The sandbox's token, where others than this machine reach it: each organization then has accounts of
    /// its own there
    #[arg(long, env = "FANFARE_SANDBOX_TOKEN", hide_env_values = true, value_parser = token)]
    pub(crate) sandbox_token: Option<Token>,
    /// Ranges (CIDR, separated by commas) that webhooks may be sent to although they are not public
    #[arg(long, env = "FANFARE_EGRESS_ALLOW", default_value = "", value_parser = AllowedRanges::parse)]
    pub(crate) egress_allow: AllowedRanges,
}

impl NetworkConfig {
    /// The sandbox, where one runs.
    pub(crate) fn sandbox(&self) -> Option<Address> {
        let token = self.sandbox_token.clone().map(|Token(token)| token);
        Some(Address::new(self.sandbox_url.clone()?, token))
    }
}

/// How a sandbox is protected that others than its machine reach.
#[derive(Args, Clone, Debug)]
pub(crate) struct Guarding {
    /// Token for the sandbox's control paths; also signs the organizations' addresses in it. The same for API,
    /// workers and sandbox. On loopback the sandbox is open to its machine
    #[arg(long, env = "FANFARE_SANDBOX_TOKEN", hide_env_values = true, value_parser = token)]
    pub(crate) sandbox_token: Option<Token>,
    /// The address that API, workers and browsers know the sandbox by
    #[arg(long, env = "FANFARE_SANDBOX_URL")]
    pub(crate) sandbox_url: Option<Url>,
    /// Prefixes of media addresses that are fetched although they are not public, separated by commas: the
    /// API's address and the bucket's. Without it, addresses of this machine
    #[arg(long, env = "FANFARE_SANDBOX_MEDIA", value_delimiter = ',', value_parser = place)]
    pub(crate) sandbox_media: Option<Vec<Option<Url>>>,
}

impl Guarding {
    pub(crate) fn access(self) -> Access {
        Access {
            token: self.sandbox_token.map(|Token(token)| token),
            url: self.sandbox_url,
            media: self.sandbox_media.map(|places| places.into_iter().flatten().collect()),
        }
    }
}

/// A secret in text form. Prints as `***`.
#[derive(Clone)]
pub(crate) struct Token(pub(crate) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

fn token(text: &str) -> anyhow::Result<Token> {
    anyhow::ensure!(text.len() >= 16, "a token has at least 16 characters");
    Ok(Token(text.to_owned()))
}

/// One of several addresses; between two commas there may be none.
fn place(text: &str) -> Result<Option<Url>, url::ParseError> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.parse()).transpose()
}

/// A server's address. Prints without the user and the password that may stand in it.
#[derive(Clone)]
pub(crate) struct ServerAddress(pub(crate) Url);

impl FromStr for ServerAddress {
    type Err = url::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())?;
        self.0.port().map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl std::fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// 32 secret bytes. Prints as `***`.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Reads a secret from its text form.
pub(crate) fn secret(text: &str) -> anyhow::Result<Secret> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).context("not base64url")?;
    Ok(Secret(bytes.try_into().map_err(|_| anyhow::anyhow!("not 32 bytes long"))?))
}

/// The text form of a fresh secret.
pub(crate) fn fresh_secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Checks an address of Postgres, without a word of what it holds.
fn postgres(text: &str) -> anyhow::Result<String> {
    let url = Url::parse(text).context("not of the form postgres://user:password@host/database")?;
    anyhow::ensure!(
        matches!(url.scheme(), "postgres" | "postgresql"),
        "not of the form postgres://user:password@host/database"
    );
    Ok(text.to_owned())
}

/// Describes a malformed setting that holds a secret. Clap's own message repeats the value, and standard error
/// is kept in logs: this one names the variable instead. `None` for any other error.
pub(crate) fn malformed(command: &clap::Command, error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let setting = secrets(command).into_iter().find(|setting| setting.to_string() == argument)?;
    let variable = setting.get_env()?.to_string_lossy();
    // A reason that quotes the value is left out.
    let reason = error.source().map(ToString::to_string).filter(|reason| !quotes(reason, value));
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let help = setting.get_help().map(ToString::to_string).unwrap_or_default();
    Some(format!("error: {variable} (or {argument}) can't be read{reason}\n\nIt holds: {help}"))
}

/// The settings of a command and its subcommands whose values are shown nowhere.
fn secrets(command: &clap::Command) -> Vec<&clap::Arg> {
    let own = command.get_arguments().filter(|argument| argument.is_hide_env_values_set());
    own.chain(command.get_subcommands().flat_map(secrets)).collect()
}

/// True when a text repeats a part of a value from which the value could be guessed.
fn quotes(text: &str, value: &str) -> bool {
    const PART: usize = 7;
    value.as_bytes().windows(PART).any(|part| text.as_bytes().windows(PART).any(|found| found == part))
}

fn time_scale(text: &str) -> anyhow::Result<TimeScale> {
    text.parse().ok().and_then(TimeScale::new).context("a pace is a number above 0 and up to 1")
}
