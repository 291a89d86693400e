//! Bluesky's own server (PDS) and a directory of identities, as npm packages, on loopback.
//!
//! `tests/pds/start.mjs` runs them. The tests of a run share one server, which ends with the run.

use crate::{PATIENCE, directory, node, skip};
use anyhow::{Context, ensure};
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tokio::sync::OnceCell;

/// An error is kept too, so that a run tries to install the packages once.
static SHARED: OnceCell<anyhow::Result<Pds>> = OnceCell::const_new();

/// A running server.
pub struct Pds {
    addresses: Addresses,
    http: Client,
    /// Ends with its stdin, which closes with this process.
    _process: Child,
}

#[derive(Deserialize)]
struct Addresses {
    service: String,
    certificate: PathBuf,
    server: String,
    internet: String,
    control: String,
}

/// An account of the server, with the session of its owner.
pub struct PdsAccount {
    /// Identity.
    pub did: String,
    /// Password that the owner created for the service.
    pub app_password: String,
    access_token: String,
}

impl Pds {
    /// Returns the server that the tests of a run share, or `None`, with the reason printed, without Node. The first
    /// call starts it, and installs it if no earlier run has.
    pub async fn shared() -> Option<&'static Self> {
        if let Err(reason) = node() {
            skip(&format!("the tests with Bluesky's own server need Node and npm: {reason:#}"));
            return None;
        }
        let shared = SHARED.get_or_init(Self::start).await;
        Some(shared.as_ref().unwrap_or_else(|error| panic!("Bluesky's own server: {error:#}")))
    }

    async fn start() -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("pds");
        let modules = devstack::npm_packages("pds", &dir, &["better-sqlite3"]).await?;
        let data = directory().join("pds");
        std::fs::create_dir_all(&data).context("creating the server's directory")?;
        let mut process = Command::new("node")
            .args([&dir.join("start.mjs"), &modules, &data])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting node")?;
        let mut output = BufReader::new(process.stdout.take().context("stdout is piped")?);
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            output.read_line(&mut line).map(|_| line)
        });
        let line = tokio::time::timeout(PATIENCE, line).await.context("it does not come up")???;
        let addresses = serde_json::from_str(&line).context("it ended before it was up")?;
        // A kept connection would belong to the runtime of a test that has ended.
        let http = Client::builder().pool_max_idle_per_host(0).build()?;
        Ok(Self { addresses, http, _process: process })
    }

    /// Returns the server's public origin, which has a name below `localhost`.
    pub fn service(&self) -> &str {
        &self.addresses.service
    }

    /// Returns the file with the certificate of the public origin.
    pub fn certificate(&self) -> &str {
        self.addresses.certificate.to_str().expect("the path of a test is text")
    }

    /// Returns the address that stands for the real internet, in the place of the sandbox: it leads to the server, the
    /// directory of identities and the hosts of handles by their real names.
    pub fn internet(&self) -> &str {
        &self.addresses.internet
    }

    /// Creates an account with the handle `{name}.test`.
    pub async fn account(&self, name: &str) -> PdsAccount {
        let body = json!({
            "handle": format!("{name}.test"), "email": format!("{name}@example.com"), "password": "of the owner",
        });
        let created = self.call("com.atproto.server.createAccount", None, &body).await.expect("an account");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let (did, access_token) = (text(&created["did"]), text(&created["accessJwt"]));
        let mut account = PdsAccount { did, app_password: String::new(), access_token };
        let name = json!({ "name": "Fanfare" });
        let made = self.act(&account, "com.atproto.server.createAppPassword", &name).await;
        account.app_password = text(&made["password"]);
        account
    }

    /// Calls a procedure in the name of an account's owner.
    pub async fn act(&self, account: &PdsAccount, method: &str, body: &Value) -> Value {
        self.call(method, Some(&account.access_token), body).await.expect("an answer")
    }

    /// Creates a session with the account's app password, as Fanfare does.
    pub async fn sign_in(&self, account: &PdsAccount) -> Value {
        let body = json!({ "identifier": account.did, "password": account.app_password });
        self.call("com.atproto.server.createSession", None, &body).await.expect("a session")
    }

    /// Ends a session.
    pub async fn sign_out(&self, refresh_token: &str) {
        let method = "com.atproto.server.deleteSession";
        self.call(method, Some(refresh_token), &Value::Null).await.expect("an answer");
    }

    /// Returns the account's posts, oldest first, each with `uri`, `cid` and `value`.
    pub async fn posts(&self, account: &PdsAccount) -> Vec<Value> {
        let path = format!(
            "com.atproto.repo.listRecords?repo={}&collection=app.bsky.feed.post&reverse=true",
            account.did
        );
        let answer = self.http.get(self.address(&path)).send().await.expect("an answer");
        let list: Value = answer.json().await.expect("JSON");
        list["records"].as_array().expect("records").clone()
    }

    /// Loses the answer to the next call of a method, after the server has done what was asked.
    pub async fn lose(&self, method: &str) {
        self.control(&format!("?lose={method}")).await;
    }

    /// Returns the number of calls that reached the public origin.
    pub async fn calls(&self) -> u64 {
        self.control("").await["calls"].as_u64().expect("a number")
    }

    /// Kills the server, not the gateway before it.
    pub async fn kill(&self) {
        self.control("?signal=SIGKILL").await;
    }

    /// Starts the server again, on the same data, after [`Pds::kill`].
    pub async fn start_again(&self) {
        self.control("?start=again").await;
    }

    /// Stops the server, whose connections stay open and get no answer.
    pub async fn pause(&self) {
        self.control("?signal=SIGSTOP").await;
    }

    /// Lets the server go on after [`Pds::pause`].
    pub async fn resume(&self) {
        self.control("?signal=SIGCONT").await;
    }

    async fn control(&self, query: &str) -> Value {
        let url = format!("{}/{query}", self.addresses.control);
        self.http.get(url).send().await.expect("an answer").json().await.expect("JSON")
    }

    fn address(&self, method: &str) -> String {
        format!("{}/xrpc/{method}", self.addresses.server)
    }

    async fn call(&self, method: &str, token: Option<&str>, body: &Value) -> anyhow::Result<Value> {
        let mut request = self.http.request(Method::POST, self.address(method));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status == StatusCode::OK, "{method}: {status}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}
