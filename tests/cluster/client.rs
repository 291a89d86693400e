//! A client of both APIs, and of the sandbox.

use domain::{OrgId, sandbox::Address};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{PATIENCE, cluster::Cluster, login};
use url::Url;

/// A client with the test key of an organization of its own.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) http: reqwest::Client,
    /// Addresses of the APIs, called in turns.
    bases: Vec<String>,
    key: String,
    /// The organization's address in the sandbox.
    pub(crate) sandbox: String,
}

/// An account of the sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) platform: &'static str,
    pub(crate) username: String,
}

impl Client {
    /// Creates an organization with a client.
    pub(crate) async fn new(cluster: &Cluster, name: &str) -> Self {
        let organization = cluster.create_organization(name).await.unwrap();
        let token = cluster.env["FANFARE_SANDBOX_TOKEN"].clone();
        let address = Address::new(Url::parse(&cluster.sandbox).unwrap(), Some(token));
        let org: OrgId = organization.id.parse().unwrap();
        let client = Self {
            http: reqwest::Client::builder().timeout(PATIENCE).build().unwrap(),
            bases: cluster.bases.clone(),
            key: organization.test_key,
            sandbox: address.of(org).to_string(),
        };
        let settings = json!({ "app": "approved", "limits": tests::lifted_limits() });
        let settings = client.http.post(format!("{}/_settings", client.sandbox)).json(&settings);
        assert_eq!(settings.send().await.unwrap().status(), StatusCode::OK);
        client
    }

    /// Returns a request of one of the APIs, which `turn` selects.
    pub(crate) fn request(&self, turn: usize, method: Method, path: &str) -> reqwest::RequestBuilder {
        let base = &self.bases[turn % self.bases.len()];
        self.http.request(method, format!("{base}{path}")).bearer_auth(&self.key)
    }

    /// Calls an API that answers.
    pub(crate) async fn once(
        &self,
        turn: usize,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let answer = self.request(turn, method, path).json(body).send().await.expect("an answer");
        (answer.status(), answer.json().await.expect("the answer is JSON"))
    }

    /// Gets a resource that exists.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.request(0, Method::GET, path).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.json().await.unwrap()
    }

    /// Connects an account on three platforms by their logins, each begun at one API and often ended at another.
    pub(crate) async fn connect_three(&self) -> Vec<Account> {
        vec![self.connect(0, "x").await, self.connect(1, "threads").await, self.connect(2, "bluesky").await]
    }

    /// Connects an account by the platform's login.
    pub(crate) async fn connect(&self, turn: usize, platform: &'static str) -> Account {
        if platform == "bluesky" {
            return self.connect_bluesky(turn).await;
        }
        self.connect_as(turn, platform, "ada").await
    }

    async fn connect_as(&self, turn: usize, platform: &'static str, username: &str) -> Account {
        let path = format!("/social-networks/{platform}/auth-url");
        let (status, begun) =
            self.once(turn, Method::POST, &path, &json!({ "redirect_uri": login::BACK })).await;
        assert_eq!(status, StatusCode::OK, "{platform}: {begun}");
        let asked: Url = begun["auth_url"].as_str().unwrap().parse().unwrap();
        let back = login::decide(&asked, username, "allow").await.expect("the platform knows the username");
        let reported = login::reported(&login::location(&login::arrive(&back).await));
        let id = match reported["status"].as_str() {
            "connected" => reported["account_ids"].split(',').next().unwrap().to_owned(),
            _ => self.finalize(turn, &reported["token"]).await,
        };
        Account { id, platform, username: username.to_owned() }
    }

    /// Connects the first account that a login covers.
    async fn finalize(&self, turn: usize, token: &str) -> String {
        let path = format!("/social-accounts/pending/{token}");
        let offered = self.get(&path).await;
        let chosen = json!({ "page_ids": [offered["data"][0]["id"]] });
        let (status, connected) =
            self.once(turn + 1, Method::POST, &format!("{path}/finalize"), &chosen).await;
        assert_eq!(status, StatusCode::CREATED, "{connected}");
        connected["account_ids"][0].as_str().unwrap().to_owned()
    }

    async fn connect_bluesky(&self, turn: usize) -> Account {
        let username = "ada.bsky.social";
        let wanted = json!({ "platform": "bluesky", "username": username });
        let made = self.http.post(format!("{}/_accounts", self.sandbox)).json(&wanted).send().await.unwrap();
        let made: Value = made.json().await.unwrap();
        let password = &made["grant"]["extra"]["app_password"];
        let body = json!({ "identifier": username, "app_password": password });
        let (status, connected) =
            self.once(turn, Method::POST, "/social-accounts/bluesky/connect", &body).await;
        assert!(status.is_success(), "{connected}");
        Account {
            id: connected["id"].as_str().unwrap().to_owned(),
            platform: "bluesky",
            username: username.to_owned(),
        }
    }

    /// Creates posts to X, and makes the sandbox hold the calls that publish them.
    pub(crate) async fn hold(&self, accounts: &[Account], count: usize) -> Held {
        // An account of its own: the calls of the load are not held.
        let account = self.connect_as(0, "x", "grace").await;
        assert!(accounts.iter().all(|other| other.id != account.id));
        let holds = format!("{}/_holds", self.sandbox);
        let (mut ids, mut texts) = (Vec::new(), Vec::new());
        for number in 0..count {
            let hold = json!({
                "platform": "x", "account": "grace", "path_prefix": "/2/tweets", "method": "POST",
                "nth": number + 1, "when": "before",
            });
            let made = self.http.post(&holds).json(&hold).send().await.unwrap();
            assert_eq!(made.status(), StatusCode::CREATED);
            ids.push(made.json::<Value>().await.unwrap()["id"].clone());
        }
        for number in 0..count {
            let text = format!("held {number}");
            let body = json!({ "content": text, "accounts": [account.id] });
            let (status, post) = self.once(number, Method::POST, "/posts", &body).await;
            assert_eq!(status, StatusCode::CREATED, "{post}");
            texts.push(text);
        }
        Held { ids, texts, account }
    }

    /// Returns the texts that the sandbox shows on an account's page.
    pub(crate) async fn published(&self, account: &Account) -> Vec<String> {
        let page = format!("{}/{}/{}", self.sandbox, account.platform, account.username);
        let page = self.http.get(page).send().await.unwrap().text().await.unwrap();
        let texts = page.split("<p class=\"text\">").skip(1);
        texts.map(|rest| rest.split("</p>").next().unwrap().to_owned()).collect()
    }

    /// Returns the number of publications that the sandbox's journal has accepted for an account.
    pub(crate) async fn accepted(&self, account: &Account) -> usize {
        let Account { platform, username, .. } = account;
        let url = format!("{}/_journal?platform={platform}&account={username}", self.sandbox);
        let journal: Value = self.http.get(url).send().await.unwrap().json().await.unwrap();
        let entries = journal["entries"].as_array().unwrap().iter();
        entries
            .filter(|entry| entry["accepted"] == true)
            .map(|entry| entry["post_ids"].as_array().unwrap().len())
            .sum()
    }
}

/// Publishing calls that the sandbox holds.
pub(crate) struct Held {
    ids: Vec<Value>,
    /// Texts of the posts.
    pub(crate) texts: Vec<String>,
    pub(crate) account: Account,
}

impl Held {
    /// Waits until all calls have arrived.
    pub(crate) async fn until_all_are_held(&self, client: &Client) {
        for id in &self.ids {
            let limit = PATIENCE.as_millis();
            let url = format!("{}/_holds/{id}/wait?phase=held&timeout_ms={limit}", client.sandbox);
            let hold: Value = client.http.get(url).send().await.unwrap().json().await.unwrap();
            assert_ne!(hold["phase"], "waiting", "a call does not arrive");
        }
    }

    /// Returns the number of calls whose worker has hung up.
    pub(crate) async fn dropped(&self, client: &Client) -> usize {
        let mut dropped = 0;
        for id in &self.ids {
            let url = format!("{}/_holds/{id}", client.sandbox);
            let hold: Value = client.http.get(url).send().await.unwrap().json().await.unwrap();
            dropped += usize::from(hold["phase"] == "dropped");
        }
        dropped
    }

    /// Lets the calls continue.
    pub(crate) async fn release(&self, client: &Client) {
        for id in &self.ids {
            client.http.delete(format!("{}/_holds/{id}", client.sandbox)).send().await.unwrap();
        }
    }
}
