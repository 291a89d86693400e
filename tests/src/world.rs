//! One test's organization, and the service that it calls.

use crate::{
    PATIENCE,
    leftovers::Leftovers,
    metrics::Samples,
    network::Port,
    now,
    service::{self, Service},
    shared::{self, Servers},
    wait::{if_right, wait_until},
};
use domain::{Mode, Owner, scope::Scope};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platforms::{AccountProfile, Grant, Identity};
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use store::{
    Pool, accounts,
    people::{keys, organizations},
    upkeep::vault::{self, Opener},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::AbortHandle,
};

/// Default factor on every wait of the service.
const PACE: f64 = 0.01;

/// Lines of the service's log that a failed test shows.
const SHOWN_LINES: usize = 100;

static WORLDS: AtomicU32 = AtomicU32::new(0);

/// The settings of a world.
pub struct WorldBuilder {
    program: &'static str,
    pace: f64,
    set: Vec<(String, String)>,
    /// Servers of the world's own processes; `None` for the shared ones.
    servers: Option<Servers>,
    /// Commands of the world's own processes; `None` for a world without processes of its own.
    commands: Option<Vec<&'static str>>,
    /// Variables that limit the queues served by the world's own processes.
    served: Vec<(&'static str, String)>,
    /// True if the platforms have reviewed its apps.
    is_approved: bool,
}

impl WorldBuilder {
    /// Sets the factor on every wait; 0.01 by default.
    pub fn pace(mut self, pace: f64) -> Self {
        self.pace = pace;
        self
    }

    /// Sets an environment variable of the world's own process.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.set.push((name.to_owned(), value.to_owned()));
        self.own()
    }

    /// Gives the world a process, a database and a sandbox of its own, for a test that stops or kills
    /// processes, or reads data that belongs to no organization.
    pub fn own(self) -> Self {
        self.running(&["all"])
    }

    /// Like [`WorldBuilder::own`], with one process for each command instead of one for all.
    pub fn running(mut self, commands: &[&'static str]) -> Self {
        self.commands.get_or_insert_with(|| commands.to_vec());
        self
    }

    /// Gives the world other servers than the shared ones, for a test that stops or cuts them off.
    pub fn on(mut self, servers: Servers) -> Self {
        self.servers = Some(servers);
        self.own()
    }

    /// Makes the world's own processes serve these platforms in test mode, instead of X and Bluesky. Each
    /// platform starts workers, which poll for as long as the world lives.
    pub fn platforms(mut self, platforms: &[&str]) -> Self {
        self.served = vec![("FANFARE_PLATFORMS", platforms.join(",")), ("FANFARE_MODES", "test".to_owned())];
        self
    }

    /// Makes the world's own processes serve all platforms, in both modes.
    pub fn everywhere(mut self) -> Self {
        self.served.clear();
        self
    }

    /// Gives the world apps that the platforms have reviewed, for a test of features that a newly registered app
    /// does not have.
    pub fn approved(mut self) -> Self {
        self.is_approved = true;
        self
    }

    /// Starts the world.
    pub async fn start(self) -> World {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let is_shared = service::PACES.contains(&self.pace) && self.commands.is_none();
        let (service, commands) = if is_shared {
            (service::shared_at(self.program, self.pace).await, Vec::new())
        } else {
            let number = WORLDS.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let servers = match self.servers {
                Some(servers) => servers,
                None => shared::servers(self.program).await,
            };
            let service = Service::new(servers, &name, self.pace, None);
            (service, self.commands.unwrap_or_else(|| vec!["all"]))
        };
        // A server of its own may still start, and a busy machine may need longer than the service waits for it.
        let url = &service.servers.database_url;
        let db = wait_until("a connection", async || store::connect(url, 4).await).await;
        let org = wait_until("an organization", async || organizations::create(&db, "World").await).await;
        let owner = Owner { org, mode: Mode::Test };
        let new = keys::NewKey { owner, name: "test".into(), scopes: vec![Scope::All], expires_at: None };
        let (_, key) = keys::create(&db, new, now()).await.expect("a key");
        let sandbox_url = service.sandbox.of(org);
        let Servers { database_url, temporal } = service.servers;
        let leftovers = Leftovers { database_url, temporal, org, allowed: Vec::new() };
        let mut world = World {
            base: service.base,
            sandbox_url: sandbox_url.as_str().trim_end_matches('/').to_owned(),
            http: Client::new(),
            program: self.program,
            db,
            owner,
            key,
            opener: service.opener,
            log_start: std::fs::metadata(&service.log).map_or(0, |log| log.len()),
            log: service.log,
            env: service.env,
            env_of: Vec::new(),
            files: service.files,
            serving: service.serving,
            leftovers: Some(leftovers),
            is_shared,
            children: Vec::new(),
            ports: vec![service.port],
        };
        if !is_shared {
            for (name, value) in &self.served {
                world.set(name, value);
            }
        }
        for (name, value) in &self.set {
            world.set(name, value);
        }
        for command in commands {
            world.run(command).await;
        }
        if self.is_approved {
            world.set_sandbox(json!({ "app": "approved" })).await;
        }
        world
    }
}

/// A test's organization, on a shared service or on one of its own.
pub struct World {
    /// The API's address, ending with `/api/v1`.
    pub base: String,
    /// The address of the sandbox that has the organization's accounts.
    pub sandbox_url: String,
    /// The database.
    pub db: Pool,
    /// The organization, in test mode.
    pub owner: Owner,
    /// The organization's API key.
    pub key: String,
    /// An HTTP client.
    pub http: Client,
    program: &'static str,
    /// Decrypts secrets that the service encrypted.
    pub opener: Opener,
    /// Log file of the service's processes.
    log: PathBuf,
    /// Length of the log in bytes when the world began.
    log_start: u64,
    env: Vec<(String, String)>,
    /// Variables of the processes of one command only.
    env_of: Vec<(&'static str, String, String)>,
    /// The directory of the service's media files.
    pub files: PathBuf,
    serving: AbortHandle,
    leftovers: Option<Leftovers>,
    is_shared: bool,
    children: Vec<(&'static str, Child)>,
    /// The ports that its processes listen on.
    ports: Vec<Arc<Port>>,
}

/// A request that the sandbox holds, or will hold when it arrives.
pub struct Hold {
    url: String,
    http: Client,
}

impl Hold {
    /// Waits until the request has arrived.
    pub async fn until_held(&self) {
        assert_ne!(self.phase("held", PATIENCE).await, "waiting", "the request to be held did not arrive");
    }

    /// Waits up to `limit` for a phase, and returns the current one: `waiting`, `held`, `released` or `dropped`,
    /// when the client has hung up.
    pub async fn phase(&self, awaited: &str, limit: Duration) -> String {
        let url = format!("{}/wait?phase={awaited}&timeout_ms={}", self.url, limit.as_millis());
        let hold: Value =
            self.http.get(url).send().await.expect("an answer").json().await.expect("the answer is JSON");
        hold["phase"].as_str().expect("a phase").to_owned()
    }

    /// Releases the request.
    pub async fn release(self) {
        let status = self.http.delete(&self.url).send().await.expect("an answer").status();
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
}

/// An account of the sandbox, as connected after its owner's consent.
#[derive(Deserialize)]
pub struct SandboxAccount {
    /// The account's identity.
    pub identity: Identity,
    /// The grant of access to the account.
    pub grant: Grant,
}

impl World {
    /// Returns the settings of a world that runs `program`: `env!("CARGO_BIN_EXE_fanfare-under-test")`.
    pub fn of(program: &'static str) -> WorldBuilder {
        let world = WorldBuilder {
            program,
            pace: PACE,
            set: Vec::new(),
            servers: None,
            commands: None,
            served: Vec::new(),
            is_approved: false,
        };
        world.platforms(&["x", "bluesky"])
    }

    /// Starts another `fanfare api`, `worker` or `all` process, and waits until it is ready.
    pub async fn run(&mut self, command: &'static str) {
        let mut program = Command::new(self.program);
        program.arg(command);
        self.launch(command, program).await;
    }

    /// Starts another `fanfare api`, at a port of its own, and returns its address, ending with `/api/v1`. Processes
    /// that are started later listen there too.
    pub async fn run_another_api(&mut self) -> String {
        let address = self.reserve();
        self.set("FANFARE_LISTEN", &address.to_string());
        self.run("api").await;
        format!("http://{address}/api/v1")
    }

    /// Reserves an address for one of the world's processes.
    pub fn reserve(&mut self) -> SocketAddr {
        let port = Port::reserve();
        let address = port.address;
        self.ports.push(Arc::new(port));
        address
    }

    /// Like [`World::run`], with an operator's listener of its own, whose URL it returns.
    pub async fn run_watched(&mut self, command: &'static str) -> String {
        let port = Port::reserve();
        self.set("FANFARE_ADMIN_LISTEN", &port.address.to_string());
        self.run(command).await;
        format!("http://{}", port.address)
    }

    /// Reads the metrics of a process by the URL of its operator's listener.
    pub async fn metrics(&self, url: &str) -> Samples {
        let answer = self.http.get(format!("{url}/metrics")).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        Samples::parse(&answer.text().await.expect("text"))
    }

    /// Like [`World::run`], limited to `files` file descriptors.
    pub async fn run_with_files(&mut self, command: &'static str, files: u32) {
        let mut shell = Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$0\" \"$1\"");
        shell.args(["-c", &script, self.program, command]);
        self.launch(command, shell).await;
    }

    /// Like [`World::run`], by a command line of one's own that becomes the process.
    pub async fn launch(&mut self, command: &'static str, mut program: Command) {
        assert!(!self.is_shared, "build the world with .own() to start processes");
        let mut child = program
            .stderr(service::append(&self.log))
            .envs(self.env.iter().cloned())
            .envs(self.env_of.iter().filter(|(of, ..)| *of == command).map(|(_, name, value)| (name, value)))
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

    /// Starts another command of the program, which the test must watch and end.
    pub fn spawn(&self, args: &[&str], stdout: Stdio) -> Child {
        let mut command = Command::new(self.program);
        command.args(args).envs(self.env.iter().cloned()).stdout(stdout).stderr(service::append(&self.log));
        command.kill_on_drop(true).spawn().expect("the program starts")
    }

    /// Allows unfinished work described by `what`, a workflow type or an id, to outlive the world.
    pub fn leave(&mut self, what: &str, _reason: &'static str) {
        self.leftovers.as_mut().expect("a world is dropped once").allowed.push(what.to_owned());
    }

    /// Allows a post and its targets to outlive the world.
    pub fn leave_post(&mut self, post: &Value, reason: &'static str) {
        for part in post["targets"].as_array().expect("targets").iter().chain([post]) {
            self.leave(part["id"].as_str().expect("an id"), reason);
        }
    }

    /// Runs another command of the program, and returns its output.
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

    /// Stops every process of a command with SIGTERM, and returns whether all exited successfully.
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

    /// Waits until every process of a command has ended by itself, and returns whether all exited successfully.
    pub async fn ended_by_itself(&mut self, command: &str) -> bool {
        let mut well = true;
        for (_, mut child) in self.take(command) {
            let ended =
                tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends").expect("waited for");
            well &= ended.success();
        }
        well
    }

    /// Writes the log of processes started from now on to a file.
    pub fn log_to(&mut self, path: &Path) {
        (self.log, self.log_start) = (path.to_owned(), 0);
    }

    fn take(&mut self, command: &str) -> Vec<(&'static str, Child)> {
        assert!(!self.is_shared, "build the world with .own() to end processes");
        let (taken, kept) =
            std::mem::take(&mut self.children).into_iter().partition(|(name, _)| *name == command);
        self.children = kept;
        taken
    }

    /// Returns the environment of the world's processes.
    pub fn environment(&self) -> &[(String, String)] {
        &self.env
    }

    /// Returns an environment variable of the world's processes.
    pub fn variable(&self, name: &str) -> &str {
        let found = self.env.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).expect("a variable that every world has")
    }

    /// Sets a variable for processes started from now on, and returns its previous value.
    pub fn set(&mut self, name: &str, value: &str) -> Option<String> {
        let before = self.env.iter().position(|(known, _)| known == name);
        let before = before.map(|index| self.env.swap_remove(index).1);
        self.env.push((name.to_owned(), value.to_owned()));
        before
    }

    /// Sets a variable for processes of one command only, started from now on.
    pub fn set_of(&mut self, command: &'static str, name: &str, value: &str) {
        self.env_of.retain(|(of, known, _)| *of != command || known != name);
        self.env_of.push((command, name.to_owned(), value.to_owned()));
    }

    /// Returns the ids of the service's running processes.
    pub fn pids(&self) -> Vec<u32> {
        assert!(!self.is_shared, "build the world with .own() to watch processes");
        self.children.iter().filter_map(|(_, child)| child.id()).collect()
    }

    /// Returns an account of the sandbox with a new grant, creating the account if it does not exist.
    pub async fn account(&self, platform: &str, username: &str) -> SandboxAccount {
        let url = format!("{}/_accounts", self.sandbox_url);
        let wanted = json!({ "platform": platform, "username": username });
        let response = self.http.post(url).json(&wanted).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::CREATED, "{platform} account {username}");
        response.json().await.expect("a sandbox account")
    }

    /// Connects an account of the sandbox, and returns its id.
    pub async fn connect(&self, platform: &str, username: &str) -> String {
        let served = self.env.iter().find(|(name, _)| name == "FANFARE_PLATFORMS");
        let is_served = served.is_none_or(|(_, served)| served.split(',').any(|served| served == platform));
        assert!(is_served, "build the world with .platforms() to serve {platform}");
        let SandboxAccount { identity, grant } = self.account(platform, username).await;
        self.keep(platform, identity.profile, &grant).await
    }

    /// Stores an account with its grant, as after a login, and returns its id.
    pub async fn keep(&self, platform: &str, profile: AccountProfile, grant: &Grant) -> String {
        self.keep_for(platform, profile, grant, None).await
    }

    /// Connects an account of the sandbox for an end tenant, and returns its id.
    pub async fn connect_for(&self, platform: &str, username: &str, tenant: &str) -> String {
        let SandboxAccount { identity, grant } = self.account(platform, username).await;
        self.keep_for(platform, identity.profile, &grant, Some(tenant)).await
    }

    async fn keep_for(
        &self,
        platform: &str,
        profile: AccountProfile,
        grant: &Grant,
        tenant: Option<&str>,
    ) -> String {
        let connect = accounts::Connect {
            platform: platform.to_owned(),
            profile,
            tenant_id: tenant.map(str::to_owned),
            social_network_id: None,
            scopes: grant.scopes.clone(),
            token_expires_at: grant.expires_at,
            grant_expires_at: grant.ends_at,
        };
        let mut tx = store::begin(&self.db).await.expect("a transaction");
        let grant = serde_json::to_vec(grant).expect("plain data");
        let seal = |id| self.opener.sealer().seal(&grant, &vault::aad_grant(self.owner, id));
        let connected = accounts::upsert(&mut tx, self.owner, connect, seal, now()).await.expect("connected");
        tx.commit().await.expect("committed");
        connected.account.id.to_string()
    }

    /// Calls the API with the world's key, and again if it had to ask a worker and none answered in time, as happens on a
    /// busy machine.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, answer) = self.call_once(method.clone(), path, body).await;
            let is_late = answer["detail"] == "no worker answered in time; try again later";
            if !is_late || Instant::now() > deadline {
                return (status, answer);
            }
        }
    }

    /// Calls the API with the world's key.
    async fn call_once(&self, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status();
        (status, response.json().await.expect("the answer is JSON"))
    }

    /// Gets a resource that exists.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "GET {path}: {body}");
        body
    }

    /// Creates a post, and returns it.
    pub async fn post(&self, body: Value) -> Value {
        let (status, post) = self.call(Method::POST, "/posts", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{post}");
        post
    }

    /// Declares a file to upload, and returns the asset with its upload URL.
    pub async fn declare(&self, body: Value) -> Value {
        let (status, medium) = self.call(Method::POST, "/media/upload", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{medium}");
        medium
    }

    /// Declares a file and uploads it without an API key, and returns the asset with its upload URL.
    pub async fn upload(&self, body: Value, bytes: Vec<u8>) -> Value {
        let medium = self.declare(body).await;
        let url = medium["upload_url"].as_str().expect("a URL");
        let answer = self.http.put(url).body(bytes).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "{url}");
        medium
    }

    /// Confirms an upload, and returns the answer.
    pub async fn confirm(&self, medium: &Value) -> (StatusCode, Value) {
        let path = format!("/media/{}/confirm", medium["id"].as_str().expect("an id"));
        self.call(Method::POST, &path, None).await
    }

    /// Uploads a file, and returns the asset, which is ready.
    pub async fn medium(&self, filename: &str, alt_text: Option<&str>, bytes: Vec<u8>) -> Value {
        let declared = json!({ "filename": filename, "alt_text": alt_text });
        let (status, medium) = self.confirm(&self.upload(declared, bytes).await).await;
        assert_eq!((status, &medium["status"]), (StatusCode::OK, &json!("ready")), "{medium}");
        medium
    }

    /// Subscribes an endpoint to all events, and returns it with its signing secret.
    pub async fn subscribe(&self, url: &str) -> Value {
        let body = json!({ "url": url, "events": ["*"] });
        let (status, webhook) = self.call(Method::POST, "/webhooks", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{webhook}");
        webhook
    }

    /// Expires the access tokens that the sandbox issued for an account so far.
    pub async fn expire_tokens(&self, platform: &str, username: &str) {
        self.end_tokens(platform, username, "expire").await;
    }

    /// Revokes the grants that the sandbox gave for an account so far.
    pub async fn revoke_grants(&self, platform: &str, username: &str) {
        self.end_tokens(platform, username, "revoke").await;
    }

    async fn end_tokens(&self, platform: &str, username: &str, what: &str) {
        let url = format!("{}/_accounts/{platform}/{username}/tokens/{what}", self.sandbox_url);
        let status = self.http.post(url).send().await.expect("an answer").status();
        assert_eq!(status, StatusCode::NO_CONTENT, "{what} {platform} {username}");
    }

    /// Makes the next calls of an account end with a fault, as a click on its page in the sandbox does.
    pub async fn arm(&self, platform: &str, username: &str, word: &str, tries: u32) {
        let url = format!("{}/_panel/faults", self.sandbox_url);
        let form =
            [("platform", platform), ("username", username), ("word", word), ("tries", &tries.to_string())];
        let status = self.http.post(url).form(&form).send().await.expect("an answer").status();
        assert!(status.is_success() || status.is_redirection(), "{word} for {username}: {status}");
    }

    /// Changes settings of the sandbox, as its documentation describes.
    pub async fn set_sandbox(&self, settings: Value) {
        let url = format!("{}/_settings", self.sandbox_url);
        let answer = self.http.post(url).json(&settings).send().await.expect("an answer");
        let status = answer.status();
        assert_eq!(status, StatusCode::OK, "{settings}: {:?}", answer.text().await);
    }

    /// Makes the sandbox hold a request, as its documentation describes.
    pub async fn hold(&self, request: Value) -> Hold {
        let holds = format!("{}/_holds", self.sandbox_url);
        let response = self.http.post(&holds).json(&request).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::CREATED, "{request}");
        let hold: Value = response.json().await.expect("JSON");
        Hold { url: format!("{holds}/{}", hold["id"]), http: self.http.clone() }
    }

    /// Returns the sandbox's journal entries for an account.
    pub async fn journal(&self, platform: &str, account: &str) -> Vec<Value> {
        let url = format!("{}/_journal?platform={platform}&account={account}", self.sandbox_url);
        let body: Value = self.http.get(url).send().await.expect("an answer").json().await.expect("JSON");
        body["entries"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the number of posts that the sandbox accepted from an account.
    pub async fn accepted(&self, platform: &str, account: &str) -> usize {
        self.journal(platform, account).await.iter().filter(|entry| entry["accepted"] == true).count()
    }

    /// Waits until the resource at a path satisfies `right`, and returns it.
    pub async fn until_at(&self, path: &str, what: &str, right: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, async || if_right(self.get(path).await, &right)).await
    }

    /// Waits until a post satisfies `right`, and returns it.
    pub async fn until(&self, post: &str, what: &str, right: impl Fn(&Value) -> bool) -> Value {
        self.until_at(&format!("/posts/{post}"), what, right).await
    }

    /// Waits until the whole thread of a post is live on this number of its accounts.
    pub async fn completed(&self, post: &Value, accounts: usize) {
        let path = format!("/posts/{}/timeline", post["id"].as_str().expect("an id"));
        let is_complete = |timeline: &Value| {
            let entries = timeline["data"].as_array().expect("entries");
            entries.iter().filter(|entry| entry["kind"] == "complete").count() >= accounts
        };
        self.until_at(&path, "the whole thread to be live", is_complete).await;
    }

    /// Waits until a post is published, partial, failed or canceled, and returns it.
    pub async fn ended(&self, post: &Value) -> Value {
        let id = post["id"].as_str().expect("an id");
        self.until(id, "the post to end", |post| {
            ["published", "partial", "failed", "canceled"].iter().any(|status| post["status"] == *status)
        })
        .await
    }
}

impl World {
    /// Returns the last lines of the log since the world began.
    fn last_lines(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = log.get(usize::try_from(self.log_start).unwrap_or_default()..).unwrap_or_default();
        let log = String::from_utf8_lossy(log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("-- the end of {}\n{}", self.log.display(), self.last_lines());
        }
        let runs = |part| self.children.iter().any(|(command, _)| ["all", part].contains(command));
        // Without its processes, no work finishes.
        let can_end = self.is_shared || (runs("api") && runs("worker"));
        if let Some(leftovers) = self.leftovers.take()
            && can_end
            && !std::thread::panicking()
        {
            leftovers.wait();
        }
        if !self.is_shared {
            // The directory may not exist.
            let _ = std::fs::remove_dir_all(&self.files);
            self.serving.abort();
        }
    }
}
