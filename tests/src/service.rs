//! A service under test: the settings of its processes, and the instances that most worlds share.
//!
//! The API serves many organizations, so a test that only calls it needs just an organization of its own. The
//! sandbox also separates accounts, journal and settings by organization, as always if it has a token.

use crate::{
    PATIENCE,
    network::Port,
    now,
    runtime::RUNTIME,
    shared::{self, Servers, directory},
};
use futures::FutureExt;
use sandbox::{Access, Address, AppStatus, Options, Sandbox};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};
use store::upkeep::vault::{KeyId, Opener, PrivateKey};
use tokio::{
    sync::{OnceCell, oneshot},
    task::AbortHandle,
};
use url::Url;

/// Time scales that have a shared service: a hundredth of real time, and real time.
pub(crate) const PACES: [f64; 2] = [0.01, 1.0];

static SHARED: [OnceCell<Service>; PACES.len()] = [const { OnceCell::const_new() }; PACES.len()];

/// Settings of a service, and the addresses of its parts.
#[derive(Clone)]
pub(crate) struct Service {
    /// The API's address, ending with `/api/v1`.
    pub(crate) base: String,
    pub(crate) servers: Servers,
    pub(crate) sandbox: Address,
    /// Stops the sandbox.
    pub(crate) serving: AbortHandle,
    /// Decrypts secrets that the service encrypted.
    pub(crate) opener: Opener,
    /// The directory of media files.
    pub(crate) files: PathBuf,
    /// The environment of its processes.
    pub(crate) env: Vec<(String, String)>,
    /// Log file of its processes; a failed test shows the last lines.
    pub(crate) log: PathBuf,
    /// The API's port, which nobody else gets while it restarts.
    pub(crate) port: Arc<Port>,
}

impl Service {
    /// Prepares a service and starts its sandbox, which separates accounts by organization if there is a
    /// token.
    pub(crate) fn new(servers: Servers, name: &str, pace: f64, token: Option<&str>) -> Self {
        let (sandbox, serving) = start_sandbox(token);
        let sandbox = Address::new(sandbox, token.map(str::to_owned));
        let private = PrivateKey::generate();
        let port = Port::reserve();
        let files = directory().join(format!("media-{name}"));
        let env = [
            ("DATABASE_URL", servers.database_url.clone()),
            // The shared Postgres server does not sync to disk.
            ("FANFARE_UNCHECKED_POSTGRES_SETTINGS", "fsync,full_page_writes,synchronous_commit".to_owned()),
            ("TEMPORAL_ADDRESS", format!("http://{}", servers.temporal)),
            ("FANFARE_TASK_QUEUE", format!("world-{name}")),
            ("FANFARE_TIME_SCALE", pace.to_string()),
            // Metrics collection is off by default: its calls would appear in the journals that tests read.
            ("FANFARE_COLLECT_EVERY", "0".to_owned()),
            ("FANFARE_LISTEN", port.address.to_string()),
            ("FANFARE_SECRET", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
            ("FANFARE_SEAL_KEY", format!("1:{}", private.public())),
            ("FANFARE_OPEN_KEYS", format!("1:{}", private.reveal())),
            ("FANFARE_MEDIA", format!("file://{}", files.display())),
            ("FANFARE_SANDBOX_URL", sandbox.url().to_string()),
            ("FANFARE_EGRESS_ALLOW", "127.0.0.0/8".to_owned()),
            ("FANFARE_RATE_LIMITS", unlimited()),
            ("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned())),
        ];
        let env = env.into_iter().chain(token.map(|token| ("FANFARE_SANDBOX_TOKEN", token.to_owned())));
        Self {
            base: format!("http://{}/api/v1", port.address),
            servers,
            sandbox,
            serving,
            opener: Opener::new((KeyId(1), private), []),
            files,
            env: env.map(|(name, value)| (name.to_owned(), value)).collect(),
            log: directory().join(format!("{name}.log")),
            port: Arc::new(port),
        }
    }
}

/// Opens a log, to append to it.
pub(crate) fn append(log: &Path) -> Stdio {
    File::options().create(true).append(true).open(log).expect("writable").into()
}

/// Returns the service that worlds of one of [`PACES`] share. The first call starts it.
pub(crate) async fn shared_at(program: &'static str, pace: f64) -> Service {
    let index = PACES.iter().position(|shared| *shared == pace).expect("a pace that is shared");
    let start = async || {
        let name = format!("{}-shared-{index}", std::process::id());
        let service = Service::new(shared::servers(program).await, &name, pace, Some("the shared sandbox"));
        let (ready, is_ready) = oneshot::channel();
        let (env, log) = (service.env.clone(), service.log.clone());
        // The process ends with the thread that started it, which lives as long as the test run.
        thread::spawn(move || {
            let mut child = Command::new(program)
                .args(["guard", "--parent", &std::process::id().to_string(), "--", program, "all"])
                .envs(env)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(append(&log))
                .spawn()
                .expect("the program starts");
            let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
            let mut ready = Some(ready);
            for line in lines {
                if line.expect("readable") == "ready"
                    && let Some(ready) = ready.take()
                {
                    // Fails if the test has timed out and dropped the receiver.
                    let _ = ready.send(());
                }
            }
            // Every test that follows would wait in vain.
            eprintln!("the shared service ended: {:?}; its log is {}", child.wait(), log.display());
            std::process::exit(1);
        });
        let up = tokio::time::timeout(PATIENCE, is_ready).await.expect("the shared service comes up");
        up.expect("the shared service comes up");
        service
    };
    SHARED[index].get_or_init(start).await.clone()
}

/// Starts a sandbox in this process, and returns its address and a handle that stops it.
fn start_sandbox(token: Option<&str>) -> (Url, AbortHandle) {
    let access = Access { token: token.map(str::to_owned), ..Access::default() };
    let opened = Sandbox::open_with(Options { data: None, clock: now, app: AppStatus::New }, access)
        .expect("a sandbox");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let serving = sandbox::serve(opened, listener, std::future::pending());
    let serving = RUNTIME.spawn(serving.map(|served| served.expect("the sandbox serves")));
    (Url::parse(&format!("http://{address}")).expect("an address"), serving.abort_handle())
}

/// Returns rate limits that no test reaches, since tests call the API more often than a client may.
pub fn unlimited() -> String {
    let lifted = |name: &str| (name.to_owned(), json!({ "limit": u32::MAX }));
    Value::Object(api::http::rate_limits::Limits::names().map(lifted).collect()).to_string()
}
