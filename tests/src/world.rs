//! One test's service: the program, its database, its sandbox, its organization.

use crate::{PATIENCE, database, now, shared};
use domain::{Mode, Owner, scope::Scope};
use futures::FutureExt;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use reqwest::{Client, Method, StatusCode};
use sandbox::{Options, Sandbox};
use serde_json::{Value, json};
use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use store::{
    Pool, accounts, keys, organizations,
    vault::{self, KeyId, Opener, PrivateKey},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
};

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// How a world is to be.
pub struct WorldBuilder {
    pace: f64,
    program: &'static str,
    set: Vec<(String, String)>,
}

impl WorldBuilder {
    /// A factor on every wait; one in a hundred by default.
    pub fn pace(mut self, pace: f64) -> Self {
        self.pace = pace;
        self
    }

    /// Sets a variable, instead of what a world has by itself.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.set.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it.
    pub async fn start(self) -> World {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let shared = shared(self.program).await;
        let (db, database_url) = database(self.program).await;
        let org = organizations::create(&db, "World").await.expect("an organization");
        let owner = Owner { org, mode: Mode::Test };
        let new = keys::NewKey { owner, name: "test".into(), scopes: vec![Scope::All], expires_at: None };
        let (_, key) = keys::create(&db, new, now()).await.expect("a key");

        let sandbox = Sandbox::open(Options { data: None, clock: now }).expect("a sandbox");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (quit, quitting) = oneshot::channel::<()>();
        let serving = sandbox::serve(sandbox.clone(), listener, quitting.map(drop));
        let serving = tokio::spawn(async move { serving.await.expect("the sandbox serves") });

        let private = PrivateKey::generate();
        let opener = Opener::new((KeyId(1), private.clone()), []);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let port = free_port();
        let files = std::env::temp_dir().join(format!("fanfare-media-{}-{number}", std::process::id()));
        let env = [
            ("DATABASE_URL", database_url.clone()),
            ("TEMPORAL_ADDRESS", format!("http://{}", shared.temporal)),
            ("FANFARE_TASK_QUEUE", format!("world-{}-{number}", std::process::id())),
            ("FANFARE_TIME_SCALE", self.pace.to_string()),
            // What nobody asks for shows in no journal, unless a test is about it.
            ("FANFARE_COLLECT_EVERY", "0".to_owned()),
            ("FANFARE_LISTEN", format!("127.0.0.1:{port}")),
            ("FANFARE_SECRET", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned()),
            ("FANFARE_SEAL_KEY", format!("1:{}", private.public())),
            ("FANFARE_OPEN_KEYS", format!("1:{}", private.reveal())),
            ("FANFARE_MEDIA", format!("file://{}", files.display())),
            ("FANFARE_SANDBOX_URL", format!("http://{address}")),
            ("FANFARE_EGRESS_ALLOW", "127.0.0.0/8".to_owned()),
            ("FANFARE_RATE_LIMITS", unlimited()),
            ("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        let mut world = World {
            base: format!("http://127.0.0.1:{port}/api/v1"),
            sandbox_url: format!("http://{address}"),
            http: Client::new(),
            program: self.program,
            db,
            owner,
            key,
            sandbox,
            opener,
            log: None,
            env,
            files,
            children: Vec::new(),
            serving: Some((quit, serving)),
        };
        for (name, value) in self.set {
            world.set(&name, &value);
        }
        world.run("all").await;
        world
    }
}

/// A service of a test's own.
pub struct World {
    /// The API's address, ending with `/api/v1`.
    pub base: String,
    /// The sandbox's address.
    pub sandbox_url: String,
    /// The database.
    pub db: Pool,
    /// The organization, in test mode.
    pub owner: Owner,
    /// Its key.
    pub key: String,
    /// The sandbox.
    pub sandbox: Sandbox,
    /// An HTTP client.
    pub http: Client,
    program: &'static str,
    /// Opens what the service sealed.
    pub opener: Opener,
    log: Option<PathBuf>,
    env: Vec<(String, String)>,
    /// Where the service keeps the bytes of media.
    pub files: PathBuf,
    children: Vec<(&'static str, Child)>,
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl World {
    /// A world whose program is at `program`: `env!("CARGO_BIN_EXE_fanfare-under-test")`.
    pub fn of(program: &'static str) -> WorldBuilder {
        WorldBuilder { pace: 0.01, program, set: Vec::new() }
    }

    /// Starts `fanfare api`, `worker` or `all` beside what runs, and waits until it is up.
    pub async fn run(&mut self, command: &'static str) {
        let mut program = Command::new(self.program);
        program.arg(command);
        self.launch(command, program).await;
    }

    /// As [`World::run`], with so many file descriptors and no more.
    pub async fn run_with_files(&mut self, command: &'static str, files: u32) {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$0\" \"$1\"");
        shell.args(["-c", &script, self.program, command]);
        self.launch(command, shell).await;
    }

    async fn launch(&mut self, command: &'static str, mut program: Command) {
        let log = match &self.log {
            Some(path) => File::options().create(true).append(true).open(path).expect("writable").into(),
            None => Stdio::inherit(),
        };
        let mut child = program
            .stderr(log)
            .envs(self.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("piped");
        let mut lines = BufReader::new(stdout).lines();
        let up = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await.expect("readable") {
                if line == "ready" {
                    return true;
                }
            }
            false
        });
        assert!(up.await.expect("the program comes up"), "fanfare {command} ended before it was up");
        // Keep the pipe open, so that the program can write to it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.children.push((command, child));
    }

    /// Starts another command of the program, to be watched and ended by the test.
    pub fn spawn(&self, args: &[&str], stdout: Stdio) -> Child {
        let mut command = Command::new(self.program);
        command.args(args).envs(self.env.iter().cloned()).stdout(stdout).kill_on_drop(true);
        command.spawn().expect("the program starts")
    }

    /// Runs another command of the program to its end.
    pub async fn command(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.program);
        command.args(args).envs(self.env.iter().cloned()).output().await.expect("the program runs")
    }

    /// Kills every process of a command with SIGKILL.
    pub async fn kill(&mut self, command: &str) {
        for (_, mut child) in self.take(command) {
            child.kill().await.expect("killed");
        }
    }

    /// Asks every process of a command to end, and gives whether all ended well.
    pub async fn stop(&mut self, command: &str) -> bool {
        let mut well = true;
        for (_, mut child) in self.take(command) {
            let pid = child.id().expect("it runs");
            kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), Signal::SIGTERM).expect("signalled");
            let ended =
                tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends").expect("waited for");
            well &= ended.success();
        }
        well
    }

    /// Processes that are started from now on write their log to a file.
    pub fn log_to(&mut self, path: &Path) {
        self.log = Some(path.to_owned());
    }

    fn take(&mut self, command: &str) -> Vec<(&'static str, Child)> {
        let (taken, kept) =
            std::mem::take(&mut self.children).into_iter().partition(|(name, _)| *name == command);
        self.children = kept;
        taken
    }

    /// Sets a variable for the processes that are started from now on, and gives what it was.
    pub fn set(&mut self, name: &str, value: &str) -> Option<String> {
        let before = self.env.iter().position(|(known, _)| known == name);
        let before = before.map(|index| self.env.swap_remove(index).1);
        self.env.push((name.to_owned(), value.to_owned()));
        before
    }

    /// The processes of the service that run.
    pub fn pids(&self) -> Vec<u32> {
        self.children.iter().filter_map(|(_, child)| child.id()).collect()
    }

    /// Connects an account of the sandbox, and gives its id.
    pub async fn connect(&self, platform: &str, username: &str) -> String {
        let connected = self.sandbox.connect(platform, username).expect("a sandbox account");
        let connect = accounts::Connect {
            platform: platform.to_owned(),
            network_unique_id: connected.identity.network_unique_id,
            username: connected.identity.username,
            display_name: connected.identity.display_name,
            account_type: connected.identity.account_type,
            profile_image_url: connected.identity.profile_image_url,
            profile_url: connected.identity.profile_url,
            tenant_id: None,
            social_network_id: None,
            scopes: connected.grant.scopes.clone(),
            token_expires_at: connected.grant.expires_at,
        };
        let mut tx = self.db.begin().await.expect("a transaction");
        let grant = serde_json::to_vec(&connected.grant).expect("plain data");
        let seal = |id| self.opener.sealer().seal(&grant, &vault::aad_grant(self.owner, id));
        let connected = accounts::upsert(&mut tx, self.owner, connect, seal, now()).await.expect("connected");
        tx.commit().await.expect("committed");
        connected.account.id.to_string()
    }

    /// Calls the API with the world's key.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status();
        (status, response.json().await.expect("the answer is JSON"))
    }

    /// Gets something that is there.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "GET {path}: {body}");
        body
    }

    /// Creates a post, and gives it.
    pub async fn post(&self, body: Value) -> Value {
        let (status, post) = self.call(Method::POST, "/posts", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{post}");
        post
    }

    /// Subscribes an endpoint to everything, and gives it with its secret.
    pub async fn subscribe(&self, url: &str) -> Value {
        let body = json!({ "url": url, "events": ["*"] });
        let (status, webhook) = self.call(Method::POST, "/webhooks", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{webhook}");
        webhook
    }

    /// What the sandbox's journal holds for an account.
    pub async fn journal(&self, platform: &str, account: &str) -> Vec<Value> {
        let url = format!("{}/_journal?platform={platform}&account={account}", self.sandbox_url);
        let body: Value = self.http.get(url).send().await.expect("an answer").json().await.expect("JSON");
        body["entries"].as_array().cloned().unwrap_or_default()
    }

    /// How many posts the sandbox accepted from an account.
    pub async fn accepted(&self, platform: &str, account: &str) -> usize {
        self.journal(platform, account).await.iter().filter(|entry| entry["accepted"] == true).count()
    }

    /// Waits until a post is as it should be. The database notifies nobody of a post's state, so this
    /// looks again after each breath.
    pub async fn until(&self, post: &str, what: &str, right: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(&format!("/posts/{post}")).await;
            if right(&found) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "waited in vain for {what}: {found:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the whole thread of a post is live on so many of its accounts.
    pub async fn completed(&self, post: &Value, accounts: usize) {
        let path = format!("/posts/{}/timeline", post["id"].as_str().expect("an id"));
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let timeline = self.get(&path).await;
            let entries = timeline["data"].as_array().expect("entries");
            if entries.iter().filter(|entry| entry["kind"] == "complete").count() >= accounts {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited in vain for the whole thread: {timeline:#}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a post has ended.
    pub async fn ended(&self, post: &Value) -> Value {
        let id = post["id"].as_str().expect("an id");
        self.until(id, "its end", |post| {
            ["published", "partial", "failed", "canceled"].iter().any(|status| post["status"] == *status)
        })
        .await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // There may be none.
        let _ = std::fs::remove_dir_all(&self.files);
        if let Some((quit, serving)) = self.serving.take() {
            // The sandbox may be gone already, with the runtime.
            let _ = quit.send(());
            serving.abort();
        }
    }
}

/// Rate limits that no test reaches which is not about them: a test asks more often than a client may.
pub fn unlimited() -> String {
    let lifted = |name: &str| (name.to_owned(), json!({ "limit": u32::MAX }));
    Value::Object(api::http::rate_limits::Limits::names().map(lifted).collect()).to_string()
}

/// A port that is free now. Bound again at once by the program, and by nobody else on purpose.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}
