//! The processes of one version are replaced by those of another while posts are under way.

use crate::PROGRAM;
use chrono::TimeDelta;
use domain::{Mode, Owner};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
};
use temporalio_client::WorkflowFetchHistoryOptions;
use temporalio_common::{UntypedWorkflow, protos::temporal::api::history::v1::history_event::Attributes};
use tests::{Hold, Receiver, World, if_right, login, temporal_client, wait_until};
use url::Url;

const ACCOUNTS: [(&str, &str); 2] = [("x", "ada"), ("bluesky", "ada.bsky.social")];
const FAR: &str = "2040-01-01T00:00:00Z";

/// A service whose processes are of two versions.
struct Rollout {
    world: World,
    receiver: Receiver,
    accounts: Vec<String>,
    /// Addresses of the API: of the previous version, and of this one.
    apis: [String; 2],
    /// Posts, with the final status that each must have.
    posts: Vec<(Value, &'static str)>,
    texts: usize,
}

/// Deploys this version over another, and returns what was counted.
pub(crate) async fn run(previous: &str, rounds: usize) -> Vec<(&'static str, String)> {
    let mut rollout = Rollout::start(previous).await;
    rollout.load(0, rounds).await;
    let waiting = rollout.waiting(0).await;
    // A publishing call is on its way while the schema changes and its worker is killed.
    let hold = rollout.hold().await;

    // 1. The schema expands, under the processes that know the earlier one.
    let migrated = rollout.world.command(&["migrate"]).await;
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
    rollout.load(0, rounds).await;
    // A process that crashes now starts again on the new schema.
    rollout.world.kill("previous-worker").await;
    rollout.world.run("previous-worker").await;
    hold.release().await;

    // 2. Both versions side by side.
    rollout.listen(1);
    rollout.world.run("worker").await;
    rollout.world.run("api").await;
    let pids = rollout.world.pids();
    for _ in 0..rounds {
        rollout.load(0, 1).await;
        rollout.load(1, 1).await;
    }
    rollout.once_at_both().await;
    let across = rollout.change(1, &waiting).await;
    let waiting = rollout.waiting(1).await;
    let across = across + rollout.change(0, &waiting).await;

    // 3. The previous version stops, in the middle of its work.
    rollout.load(0, rounds).await;
    rollout.load(1, rounds).await;
    let waiting = rollout.waiting(0).await;
    assert!(rollout.world.stop("previous-worker").await, "the previous version's worker exits with success");
    assert!(rollout.world.stop("previous-api").await, "the previous version's API exits with success");
    rollout.world.base.clone_from(&rollout.apis[1]);
    let across = across + rollout.change(1, &waiting).await;
    rollout.load(1, rounds).await;

    let (posts, events) = rollout.ended().await;
    let (one, both) = rollout.handled(&pids).await;
    vec![
        ("Posts", posts.to_string()),
        ("Events", events.to_string()),
        ("Posts changed through the API of the other version", across.to_string()),
        ("Workflows that one version ran", one.to_string()),
        ("Workflows that one version began and another continued", both.to_string()),
    ]
}

impl Rollout {
    /// Starts the previous version on its own schema.
    async fn start(previous: &str) -> Self {
        let mut world = World::of(program(previous)).running(&[]).platforms(&["x", "bluesky"]).start().await;
        let mut database: Url = world.variable("DATABASE_URL").parse().unwrap();
        let name = format!("rollout_{}", database.path().trim_start_matches('/'));
        let mut server = database.clone();
        server.set_path("/postgres");
        store::create_database(server.as_str(), &name).await.unwrap();
        database.set_path(&name);
        world.set("DATABASE_URL", database.as_str());
        let migrated = world.command(&["previous-migrate"]).await;
        assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        let created = world.command(&["previous-org", "create", "Rollout"]).await;
        let printed = String::from_utf8(created.stdout).unwrap();
        let word = |before: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(before)).expect("a line");
            line.trim().to_owned()
        };
        world.owner = Owner { org: word("organization").parse().unwrap(), mode: Mode::Test };
        world.key = word("test key");
        world.db = store::connect(database.as_str(), 4).await.unwrap();
        let first = world.base.clone();
        let apis = [first, format!("http://{}/api/v1", world.reserve())];
        world.run("previous-api").await;
        world.run("previous-worker").await;
        let limits = json!({ "limits": { "x.posts": 1_000_000, "bluesky.requests": 1_000_000 } });
        world.set_sandbox(limits).await;
        let receiver = Receiver::start().await;
        world.subscribe(&receiver.url).await;
        let accounts = vec![
            login::joined(&world, "x", "ada", json!({})).await,
            by_password(&world, "ada.bsky.social").await,
        ];
        Self { world, receiver, accounts, apis, posts: Vec::new(), texts: 0 }
    }

    /// Sends further calls to one of the APIs, and lets further processes listen at its address.
    fn listen(&mut self, api: usize) {
        let url: Url = self.apis[api].parse().unwrap();
        self.world.base.clone_from(&self.apis[api]);
        self.world.set("FANFARE_LISTEN", &format!("127.0.0.1:{}", url.port().unwrap()));
    }

    fn text(&mut self, fault: &str) -> String {
        self.texts += 1;
        format!("Text {}. {fault}", self.texts)
    }

    async fn create(&mut self, body: Value, ends: &'static str) -> Value {
        let post = self.world.post(body).await;
        self.posts.push((post.clone(), ends));
        post
    }

    /// Creates posts of all kinds through one of the APIs, without waiting for them.
    async fn load(&mut self, api: usize, rounds: usize) {
        self.world.base.clone_from(&self.apis[api]);
        for _ in 0..rounds {
            for (fault, ends) in [
                ("", "published"),
                ("#sandbox-lost-reply", "published"),
                ("#sandbox-503x3", "published"),
                ("#sandbox-slow", "published"),
                ("#sandbox-400", "failed"),
            ] {
                let body = json!({ "content": self.text(fault), "accounts": self.accounts });
                self.create(body, ends).await;
            }
            let thread = json!({
                "containers": [{ "content": self.text("") }, { "content": "Below" }], "accounts": self.accounts,
            });
            self.create(thread, "published").await;
            let due = tests::now() + TimeDelta::seconds(2);
            let body = json!({ "content": self.text(""), "accounts": self.accounts, "scheduled_at": due });
            self.create(body, "published").await;
        }
    }

    /// Holds the next publishing call of X after it was accepted, and creates a post that makes one.
    async fn hold(&mut self) -> Hold {
        let hold = json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "when": "after" });
        let hold = self.world.hold(hold).await;
        let body = json!({ "content": self.text(""), "accounts": self.accounts });
        self.create(body, "published").await;
        hold.until_held().await;
        hold
    }

    /// Creates posts that wait for a call: a draft, two that are scheduled, one that Bluesky throttles.
    async fn waiting(&mut self, api: usize) -> Vec<Value> {
        self.world.base.clone_from(&self.apis[api]);
        let mut posts = Vec::new();
        for (more, ends) in [
            (json!({ "is_draft": true }), "published"),
            (json!({ "scheduled_at": FAR }), "published"),
            (json!({ "scheduled_at": FAR }), "canceled"),
            (json!({}), "published"),
        ] {
            let is_throttled = more == json!({});
            let mut body = json!({
                "content": self.text(if is_throttled { "#sandbox-429x1" } else { "" }), "accounts": [self.accounts[1]],
            });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            posts.push(self.create(body, ends).await);
        }
        let id = posts[3]["id"].as_str().unwrap().to_owned();
        self.world.until(&id, "a failed attempt", |post| post["targets"][0]["status"] == "failed").await;
        posts
    }

    /// Releases, reschedules, deletes and retries the posts that wait, through one of the APIs. Returns their
    /// number.
    async fn change(&mut self, api: usize, waiting: &[Value]) -> usize {
        self.world.base.clone_from(&self.apis[api]);
        let [draft, moved, deleted, throttled] = waiting else { unreachable!("four posts") };
        let path = |post: &Value| format!("/posts/{}", post["id"].as_str().unwrap());
        let retry =
            format!("{}/targets/{}/retry", path(throttled), throttled["targets"][0]["id"].as_str().unwrap());
        let text = self.text("");
        for (method, path, body, expected) in [
            (Method::PATCH, path(draft), Some(json!({ "is_draft": false })), &[200][..]),
            (Method::PATCH, path(moved), Some(json!({ "content": text, "scheduled_at": null })), &[200]),
            (Method::DELETE, path(deleted), None, &[200]),
            // The next attempt may have begun by itself.
            (Method::POST, retry, None, &[202, 409]),
        ] {
            let (status, answer) = self.world.call(method, &path, body.as_ref()).await;
            assert!(expected.contains(&status.as_u16()), "{path}: {answer}");
        }
        waiting.len()
    }

    /// Creates a post with one key through both APIs at once.
    async fn once_at_both(&mut self) {
        let body = json!({ "content": self.text(""), "accounts": self.accounts, "external_ref": "once" });
        let create = async |api: &String| {
            let request =
                self.world.http.post(format!("{api}/posts")).bearer_auth(&self.world.key).json(&body);
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.json::<Value>().await.unwrap())
        };
        let answers = join_all(self.apis.iter().map(create)).await;
        let statuses: BTreeSet<_> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [200, 201].into(), "{answers:?}");
        assert_eq!(answers[0].1["id"], answers[1].1["id"]);
        self.posts.push((answers[0].1.clone(), "published"));
    }

    /// Waits until all posts have ended and everything was delivered, and checks that each ended once. Returns
    /// the numbers of posts and events.
    async fn ended(&self) -> (usize, usize) {
        let (mut texts, mut expected) = (BTreeMap::new(), BTreeSet::new());
        for (post, ends) in &self.posts {
            let id = post["id"].as_str().unwrap();
            if *ends == "canceled" {
                let (status, _) = self.world.call(Method::GET, &format!("/posts/{id}"), None).await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{post:#}");
                continue;
            }
            let ended = self.world.ended(post).await;
            assert_eq!(ended["status"], *ends, "{ended:#}");
            let text =
                ended["containers"][0]["content"].as_str().unwrap().split('.').next().unwrap().to_owned();
            let name = if *ends == "published" { "published" } else { "error" };
            expected.insert((format!("post.{name}"), id.to_owned()));
            for target in ended["targets"].as_array().unwrap() {
                let name = if *ends == "published" { "published" } else { "failed" };
                expected.insert((format!("post.target.{name}"), target["id"].as_str().unwrap().to_owned()));
                if *ends == "published" {
                    texts.insert((text.clone(), target["platform"].as_str().unwrap().to_owned()), ());
                }
            }
        }
        for (platform, name) in ACCOUNTS {
            let url = format!("{}/{platform}/{name}", self.world.sandbox_url);
            let page = self.world.http.get(url).send().await.unwrap().text().await.unwrap();
            let of = texts.keys().filter(|(_, on)| on == platform);
            for (text, _) in of {
                let times = page.matches(&format!(r#"<p class="text">{text}."#)).count();
                assert_eq!(times, 1, "{text} on {platform}");
            }
        }
        let open = "select (select count(*) from outbox) + (select count(*) from deliveries where status <> 'delivered')";
        let look = async || {
            let open: i64 = sqlx::query_scalar(open).fetch_one(&self.world.db).await.unwrap();
            if_right(open, |open| *open == 0)
        };
        wait_until("all deliveries", look).await;
        let mut told = BTreeMap::new();
        for delivery in self.receiver.all().iter().filter(|one| one.event().starts_with("post.")) {
            let body = delivery.json();
            let subject =
                body["data"]["targetId"].as_str().or(body["data"]["postId"].as_str()).unwrap().to_owned();
            let id = delivery.header("x-fanfare-event-id").to_owned();
            let first = told.entry((delivery.event(), subject)).or_insert_with(|| id.clone());
            assert_eq!(*first, id, "an event was sent twice: {body}");
        }
        let missing: Vec<_> = expected.iter().filter(|event| !told.contains_key(event)).collect();
        assert!(missing.is_empty(), "not reported: {missing:?}");
        (self.posts.len(), told.len())
    }

    /// Counts the workflows of posts and targets that workers of one version ran, and those that both did.
    /// `pids` are the processes while both ran: previous API and worker, then this version's.
    async fn handled(&self, pids: &[u32]) -> (usize, usize) {
        let client = temporal_client(&tests::shared(&PROGRAM).await.temporal).await;
        let new = format!("fanfare-{}", pids.last().unwrap());
        let (mut one, mut both) = (0, 0);
        for (post, _) in &self.posts {
            let targets = post["targets"].as_array().unwrap().iter();
            let ids = targets.map(|target| format!("target-{}", target["id"].as_str().unwrap()));
            for id in ids.chain([format!("post-{}", post["id"].as_str().unwrap())]) {
                let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
                let history =
                    handle.fetch_history(WorkflowFetchHistoryOptions::default()).into_events().await;
                // The workflow of a target that was never due does not exist.
                let Ok(events) = history else { continue };
                let workers: BTreeSet<_> = events
                    .iter()
                    .filter_map(|event| match event.attributes.as_ref()? {
                        Attributes::WorkflowTaskCompletedEventAttributes(task) => Some(task.identity == new),
                        Attributes::ActivityTaskStartedEventAttributes(task) => Some(task.identity == new),
                        _ => None,
                    })
                    .collect();
                match workers.len() {
                    2 => both += 1,
                    _ => one += 1,
                }
            }
        }
        (one, both)
    }
}

/// Returns a program that runs this version, and the previous one for commands that begin with `previous-`.
fn program(previous: &str) -> &'static str {
    let path = tests::directory().join("either-version");
    let current = *PROGRAM;
    let script = format!(
        "#!/bin/sh\ncommand=$1\nshift\ncase $command in\n\
         previous-*) exec '{previous}' \"${{command#previous-}}\" \"$@\" ;;\n\
         *) exec '{current}' \"$command\" \"$@\" ;;\nesac\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned().leak()
}

/// Connects an account of Bluesky by its app password, and returns its id.
async fn by_password(world: &World, identifier: &str) -> String {
    let password = world.account("bluesky", identifier).await.grant.extra["app_password"].clone();
    let body = json!({ "identifier": identifier, "app_password": password });
    let (status, account) = world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{account}");
    account["id"].as_str().unwrap().to_owned()
}
