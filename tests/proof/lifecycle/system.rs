//! The system under test: an organization of the real service, driven through its API, the sandbox and Temporal.

use super::{
    callers::{Callers, connect},
    model::{self, Answer, Checked, End, Model, Post, Row, Stage},
    observed,
    outcome::Outcome,
    places::Place,
    steps::{ACCOUNTS, Accounts, Action, Call, Draft, Fault, Plan, Step},
    tenancy::Tenancy,
    who::By,
};
use crate::PROGRAM;
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use std::{cell::RefCell, collections::BTreeMap};
use temporalio_client::{
    Client, WorkflowCancelOptions, WorkflowHandle, WorkflowTerminateOptions,
    errors::WorkflowInteractionError, grpc::WorkflowService, tonic::Request,
};
use temporalio_common::{
    UntypedWorkflow,
    protos::temporal::api::{
        common::v1::WorkflowExecution, enums::v1::EventType,
        workflowservice::v1::ResetWorkflowExecutionRequest,
    },
};
use tests::{Hold, Receiver, World, temporal_client, wait_until};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Most deliveries that a case refuses: fewer than the attempts of one.
const MAX_REFUSED: usize = 6;
/// Number of slots known to the model: more than a sequence has steps.
const SLOTS: i64 = 100;

/// The organization of one case, and what the model knows of it.
pub(super) struct System {
    pub(super) world: World,
    pub(super) model: Model,
    /// Rows that each caller reaches.
    pub(super) tenancy: Tenancy,
    pub(super) callers: Callers,
    /// Takes what is sent to endpoints that steps create.
    pub(super) spare: Receiver,
    /// Receives every event.
    all: Receiver,
    /// Is paused and resumed.
    paused: Receiver,
    /// Path of its endpoint.
    endpoint: String,
    holds: BTreeMap<usize, Hold>,
    /// Steps and answers.
    pub(super) transcript: RefCell<Vec<String>>,
    /// Number of texts and names so far.
    pub(super) texts: usize,
    refused: usize,
    changes: i64,
}

impl System {
    /// Starts a case: an organization with an account on each platform, slots and two webhook endpoints.
    pub(super) async fn start() -> Self {
        static IS_OBSERVED: OnceCell<()> = OnceCell::const_new();
        let world = World::of(&PROGRAM).start().await;
        IS_OBSERVED.get_or_init(|| observed::install(&world.db)).await;
        // A second publication is accepted, so that it shows.
        world.set_sandbox(json!({ "lag_ms": 50, "duplicate_ms": 0, "slow_ms": 300 })).await;
        let spare = Receiver::start().await;
        let (callers, furniture) = Callers::start(&world, &spare.url).await;
        let accounts = furniture.accounts[..ACCOUNTS.len()].to_vec();
        let model = Model::new(accounts, set_slots(&world).await);
        let (all, paused) = (Receiver::start().await, Receiver::start().await);
        world.subscribe(&all.url).await;
        let endpoint = world.subscribe(&paused.url).await;
        let endpoint = format!("/webhooks/{}", endpoint["id"].as_str().unwrap());
        let mut tenancy = Tenancy::new(furniture);
        for (kind, mark) in [("api-keys", "name"), ("team", "email"), ("webhooks", "id")] {
            tenancy.keep(kind, &world.get(&format!("/{kind}?limit=100")).await, mark);
        }
        let (holds, transcript) = (BTreeMap::new(), RefCell::default());
        let (texts, refused, changes) = (0, 0, 0);
        Self {
            world,
            model,
            tenancy,
            callers,
            spare,
            all,
            paused,
            endpoint,
            holds,
            transcript,
            texts,
            refused,
            changes,
        }
    }

    /// Takes a step and checks the answers.
    pub(super) async fn take(&mut self, step: &Step) -> Checked {
        self.transcript.borrow_mut().push(format!("{step:?}"));
        match step {
            Step::One(by, call) => self.by(*by, call).await,
            Step::Walk(places) => self.walk(places).await,
            Step::Both(one, other) => self.both(one, other).await,
            Step::Connect { account } => {
                let (platform, name, ..) = ACCOUNTS[*account];
                // For another end tenant it would be a new account.
                let tenant = self.tenancy.accounts[*account].tenant.clone();
                let id = connect(&self.world, platform, name, tenant.as_deref()).await;
                assert_eq!(id, self.model.accounts[*account].id, "an account keeps its id");
                self.model.connect(*account);
                Ok(())
            }
            Step::Expire { account } => {
                let (platform, name, ..) = ACCOUNTS[*account];
                // Meta's tokens can't be refreshed any more when they have expired.
                if platform == "threads" {
                    self.model.doubt(*account);
                }
                self.world.expire_tokens(platform, name).await;
                Ok(())
            }
            Step::Revoke { account } => {
                self.model.doubt(*account);
                let (platform, name, ..) = ACCOUNTS[*account];
                self.world.revoke_grants(platform, name).await;
                self.world.expire_tokens(platform, name).await;
                Ok(())
            }
            Step::Catch { account, is_accepted, fault } => self.catch(*account, *is_accepted, *fault).await,
            Step::Release => {
                self.release().await;
                Ok(())
            }
            Step::Pause(is_paused) => {
                self.pause(*is_paused).await;
                Ok(())
            }
            Step::RefuseDeliveries(count) => {
                let count = (*count).min(MAX_REFUSED - self.refused);
                self.refused += count;
                self.all.answer(std::iter::repeat_n(500, count));
                Ok(())
            }
            Step::Revive { post } => {
                self.release().await;
                self.wait().await?;
                if !self.model.is_retried(*post) {
                    return Ok(());
                }
                let (row, answer) = self.act(*post, "retry").await;
                self.model.revive(*post, &row, &answer)
            }
            Step::Unpublish { post } => {
                self.release().await;
                self.wait().await?;
                let (row, answer) = self.act(*post, "unpublish").await;
                self.model.unpublish(*post, &row, &answer)
            }
            Step::Operate { post, target, action } => self.operate(*post, *target, *action).await,
            Step::Wait => {
                self.release().await;
                self.wait().await
            }
        }
    }

    /// Takes steps over operations, pages and actions.
    pub(super) async fn walk(&mut self, places: &[Place]) -> Checked {
        for place in places {
            match place {
                Place::Operation(ask) => self.ask(ask).await?,
                Place::Page(visit) => self.visit(visit).await?,
            }
        }
        Ok(())
    }

    /// Checks the changes of statuses since the last check.
    pub(super) async fn check(&mut self) -> Checked {
        let (last, _) = observed::check(&self.world.db, self.world.owner.org.0, self.changes).await?;
        self.changes = last;
        Ok(())
    }

    /// Waits until everything has ended, and checks what the API shows. What replies wait for is deleted before.
    pub(super) async fn finish(&mut self) -> Checked {
        self.release().await;
        for post in self.model.awaited() {
            self.transcript.borrow_mut().push("at the end".to_owned());
            let (call, text) = (Call::Delete { post }, self.next_text());
            let answer = self.call(By::Owner, &call, text).await;
            self.model.apply(&call, text, &answer)?;
        }
        self.wait().await?;
        self.compare_views().await?;
        self.check_api().await
    }

    /// Waits until no message, delivery or workflow is left over. Blocks the thread.
    pub(super) fn drain(self) -> Outcome {
        let Self { world, model, all, paused, callers, .. } = self;
        let (db, org) = (world.db.clone(), world.owner.org.0);
        let (http, sandbox) = (world.http.clone(), world.sandbox_url.clone());
        drop(world);
        drop(callers);
        Outcome { db, org, http, sandbox, model, all, paused }
    }

    /// Returns the steps and answers so far.
    pub(super) fn transcript(&self) -> String {
        self.transcript.borrow().join("\n")
    }

    pub(super) fn next_text(&mut self) -> usize {
        self.texts += 1;
        self.texts
    }

    async fn both(&mut self, one: &Call, other: &Call) -> Checked {
        let texts = [self.next_text(), self.next_text()];
        let answers =
            tokio::join!(self.call(By::Owner, one, texts[0]), self.call(By::Owner, other, texts[1]));
        let [first, second] = [(one, texts[0], &answers.0), (other, texts[1], &answers.1)];
        let rows = self.rows().await;
        let mut failures = Vec::new();
        for order in [[first, second], [second, first]] {
            let mut model = self.model.clone();
            model.is_contended = true;
            let applied = order.iter().try_for_each(|(call, text, answer)| model.apply(call, *text, answer));
            // The answers may allow both orders; what is stored tells which of two edits came last, and which call
            // ended a post.
            match applied {
                Ok(()) if rows.iter().all(|row| model.is_as_ended(row)) => {
                    model.is_contended = false;
                    self.model = model;
                    return Ok(());
                }
                Ok(()) => failures.push(format!("stored is {rows:#?}")),
                Err(failure) => failures.push(failure),
            }
        }
        Err(format!("as if neither call came first: {}", failures.join("; or ")))
    }

    pub(super) async fn call(&self, by: By, call: &Call, text: usize) -> Answer {
        let post = |number: usize| {
            let id = &self.model.post(number).expect("there is a post").id;
            (id.as_str(), format!("/posts/{id}"))
        };
        let mut queue = None;
        let (method, path, body, key) = match call {
            Call::Create(draft) => {
                let key = draft.key.map(|key| format!("key {key}"));
                (Method::POST, "/posts".to_owned(), Some(self.new_post(draft, text)), key)
            }
            Call::Edit { post: number, text: new, plan, accounts } => {
                let mut body = json!({});
                if let Some((fault, has_reply)) = new {
                    body["containers"] = containers(text, *fault, *has_reply);
                }
                if let Some(accounts) = accounts {
                    body["accounts"] = self.ids(accounts.indices());
                }
                if let Some(plan) = plan {
                    let kept = self.model.post(*number).expect("there is a post").targets[0].account;
                    let first =
                        accounts.map_or(kept, |accounts| accounts.indices().next().expect("not empty"));
                    self.plan(&mut body, *plan, first);
                    queue = (*plan == Plan::Slot).then_some(first);
                    if *plan == Plan::Now {
                        body["scheduled_at"] = Value::Null;
                    }
                }
                (Method::PATCH, post(*number).1, Some(body), None)
            }
            Call::Delete { post: number } => (Method::DELETE, post(*number).1, None, None),
            Call::Retry { post: number } => {
                let (id, path) = post(*number);
                (Method::POST, format!("{path}/targets/{}/retry", self.target(id, 0).await.1), None, None)
            }
            Call::Disconnect { account } => {
                let path = format!("/social-accounts/{}", self.model.accounts[*account].id);
                (Method::DELETE, path, None, None)
            }
        };
        Answer { queue, ..self.send(by, method, &path, body, key, text).await }
    }

    /// Acts on a post, or on its first target, and returns it as it was.
    async fn act(&self, number: usize, action: &str) -> (Row, Answer) {
        let id = &self.model.post(number).expect("there is a post").id;
        let rows = self.rows().await;
        let row = rows.into_iter().find(|row| row.id == *id).expect("a post is never gone");
        let path = match action {
            "retry" => format!("/posts/{id}/{action}"),
            _ => format!("/posts/{id}/targets/{}/{action}", row.targets[0].id),
        };
        let answer = self.send(By::Owner, Method::POST, &path, None, None, 0).await;
        (row, answer)
    }

    async fn send(
        &self,
        by: By,
        method: Method,
        path: &str,
        body: Option<Value>,
        key: Option<String>,
        text: usize,
    ) -> Answer {
        let url = format!("{}{path}", self.world.base);
        let mut request = self.world.http.request(method.clone(), url).bearer_auth(self.callers.key(by));
        if let Some(body) = body {
            request = request.json(&body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = request.send().await.unwrap();
        let line = format!("  {method} {path} by {by:?}, text {text}: {}", response.status());
        self.transcript.borrow_mut().push(line);
        let is_replay = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
        let status = response.status().as_u16();
        Answer { status, is_replay, body: response.json().await.unwrap(), queue: None }
    }

    pub(super) fn new_post(&self, draft: &Draft, text: usize) -> Value {
        let mut body = json!({
            "containers": containers(text, draft.fault, draft.has_reply),
            "accounts": self.ids(draft.accounts.indices()),
        });
        self.plan(&mut body, draft.plan, draft.accounts.indices().next().expect("not empty"));
        if let Some(post) = draft.reply_to.and_then(|number| self.model.post(number)) {
            body["reply_to"] = json!(post.id);
        }
        body
    }

    /// Adds to a body when its post is published.
    fn plan(&self, body: &mut Value, plan: Plan, first: usize) {
        body["is_draft"] = json!(plan == Plan::Draft);
        match plan {
            Plan::Draft | Plan::Now => {}
            Plan::Far => body["scheduled_at"] = json!("2040-01-01T00:00:00Z"),
            Plan::Soon => body["scheduled_at"] = json!(tests::now() + TimeDelta::milliseconds(700)),
            Plan::Slot => body["queued_from_account"] = json!(self.model.accounts[first].id),
        }
    }

    fn ids(&self, accounts: impl Iterator<Item = usize>) -> Value {
        accounts.map(|account| self.model.accounts[account].id.as_str()).collect()
    }

    /// Returns the status of a post, and the id of one of its targets.
    pub(super) async fn target(&self, post: &str, number: usize) -> (String, String) {
        let rows = self.rows().await;
        let row = rows.iter().find(|row| row.id == post).expect("a post is never gone");
        (row.status.clone(), row.targets[number % row.targets.len()].id.clone())
    }

    async fn rows(&self) -> Vec<Row> {
        observed::rows(&self.world.db, self.world.owner.org.0).await
    }

    /// Creates a post whose publishing call is held, if its account can publish.
    async fn catch(&mut self, account: usize, is_accepted: bool, fault: Fault) -> Checked {
        if self.holds.is_empty() {
            // Otherwise the call of another post might be held, and this one's never arrive.
            self.wait().await?;
        }
        let is_busy = |post: &Post| {
            post.stage == Stage::Racing && post.targets.iter().any(|target| target.account == account)
        };
        let of = &self.model.accounts[account];
        if !of.is_connected || of.is_doubtful || self.model.posts.iter().any(is_busy) {
            return Ok(());
        }
        let (platform, name, path, _) = ACCOUNTS[account];
        let when = if is_accepted { "after" } else { "before" };
        let hold = json!({
            "platform": platform, "account": name, "method": "POST", "path_prefix": path, "when": when,
        });
        let hold = self.world.hold(hold).await;
        let accounts = Accounts(1 << account);
        let draft = Draft { plan: Plan::Now, accounts, fault, has_reply: false, key: None, reply_to: None };
        let (call, text) = (Call::Create(draft), self.next_text());
        let answer = self.call(By::Owner, &call, text).await;
        self.model.apply(&call, text, &answer)?;
        hold.until_held().await;
        self.holds.insert(account, hold);
        Ok(())
    }

    async fn release(&mut self) {
        for hold in std::mem::take(&mut self.holds).into_values() {
            hold.release().await;
        }
    }

    async fn pause(&mut self, is_paused: bool) {
        // A delivery that is on its way when the endpoint is paused may arrive or not.
        wait_until("all deliveries to the endpoint", async || {
            let open = "select count(*) from deliveries where webhook_id = $1 and status in ('pending', 'delivering')";
            let id: Uuid = self.endpoint.rsplit('/').next().expect("a path").parse().unwrap();
            let open: i64 = sqlx::query_scalar(open).bind(id).fetch_one(&self.world.db).await.unwrap();
            if open == 0 { Ok(()) } else { Err(format!("{open} are open")) }
        })
        .await;
        self.model.pause(is_paused);
        let body = json!({ "is_active": !is_paused });
        let (status, body) = self.world.call(Method::PATCH, &self.endpoint, Some(&body)).await;
        assert_eq!(status, 200, "{body}");
    }

    async fn operate(&mut self, number: usize, target: Option<usize>, action: Action) -> Checked {
        let post = self.model.post(number).expect("there is a post").clone();
        let waits = post.stage == Stage::Waiting;
        let workflow = match target {
            None => format!("post-{}", post.id),
            Some(target) => format!("target-{}", self.target(&post.id, target).await.1),
        };
        let handle = client().await.get_workflow_handle::<UntypedWorkflow>(&workflow);
        if waits && target.is_none() && post.plan != Plan::Draft && !self.is_far_off(&post.id).await {
            // The relay may not have started it yet.
            wait_until("the workflow", async || handle.describe(Default::default()).await).await;
        }
        if !self.acted(&handle, &workflow, action).await {
            return Ok(());
        }
        let is_stopped = post.targets.iter().any(|target| target.ends.contains(&End::Stopped));
        if is_stopped && target.is_none() && action == Action::Reset {
            self.world.leave(&workflow, "a reset forgets the cancellation and waits for the post's time");
        }
        match (post.stage, target, action) {
            (Stage::Racing, Some(_), Action::Terminate | Action::Cancel)
            | (Stage::Racing, None, Action::Cancel) => {
                self.model.stop(number, target);
            }
            (Stage::Waiting, None, Action::Cancel) => {
                // It ends with its result or with its cancellation.
                let _ = handle.get_result(Default::default()).await;
                if self.target(&post.id, 0).await.0 == "failed" {
                    self.model.end_stopped(number);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns true if the post waits in the database only, without a workflow.
    async fn is_far_off(&self, post: &str) -> bool {
        let far_off = "select starts_at is not null from posts where id = $1::text::uuid";
        sqlx::query_scalar(far_off).bind(post).fetch_one(&self.world.db).await.expect("the post is there")
    }

    /// Returns false if there is no such workflow, or it has ended or not begun.
    async fn acted(
        &self,
        handle: &WorkflowHandle<Client, UntypedWorkflow>,
        workflow: &str,
        action: Action,
    ) -> bool {
        let acted = match action {
            Action::Terminate => handle.terminate(WorkflowTerminateOptions::default()).await,
            Action::Cancel => handle.cancel(WorkflowCancelOptions::default()).await,
            Action::Reset => return reset(handle, workflow).await,
        };
        match acted {
            Ok(()) => true,
            Err(WorkflowInteractionError::NotFound(_)) => false,
            Err(error) => panic!("{action:?} {workflow}: {error}"),
        }
    }

    /// Waits until every post that can end has ended, requesting the retries that are not due within seconds.
    async fn wait(&mut self) -> Checked {
        wait_until("all posts to end", async || {
            let rows = self.rows().await;
            let mut open = Vec::new();
            for row in &rows {
                let post = self.model.posts.iter().find(|post| post.id == row.id);
                if post.is_none_or(|post| !self.model.must_end(post)) || model::is_over(row) {
                    continue;
                }
                for target in row.targets.iter().filter(|target| target.is_parked && !row.is_deleted) {
                    let path = format!("/posts/{}/targets/{}/retry", row.id, target.id);
                    // 409 when the attempt has begun meanwhile.
                    self.world.call(Method::POST, &path, None).await;
                }
                open.push(format!("{row:?}"));
            }
            if open.is_empty() { Ok(()) } else { Err(open.join(", ")) }
        })
        .await;
        let rows = self.rows().await;
        observed::compare(&mut self.model, &rows)
    }

    /// Checks that the API shows what is stored, and that each timeline tells each end once.
    async fn check_api(&self) -> Checked {
        for row in self.rows().await {
            let path = format!("/posts/{}", row.id);
            let (status, shown) = self.world.call(Method::GET, &path, None).await;
            if row.is_deleted {
                if status != 404 {
                    return Err(format!("deleted post {} is shown: {shown:#}", row.id));
                }
                continue;
            }
            // Of the others, a status may change between the two looks.
            if !model::is_over(&row) {
                continue;
            }
            let targets = shown["targets"].as_array().unwrap();
            let same = row.targets.iter().all(|stored| {
                let shown = targets.iter().find(|shown| shown["id"] == stored.id.as_str());
                let same = |shown: &Value| {
                    shown["status"] == stored.status.as_str()
                        && shown["error_code"] == json!(stored.error_code)
                };
                shown.is_some_and(same)
            });
            if shown["status"] != row.status.as_str() || !same {
                return Err(format!("{shown:#} is stored as {row:#?}"));
            }
            let timeline = self.world.get(&format!("{path}/timeline")).await;
            let entries = timeline["data"].as_array().unwrap();
            let times: Vec<_> =
                entries.iter().map(|entry| entry["at"].as_str().unwrap_or_default()).collect();
            let post = self.model.posts.iter().find(|post| post.id == row.id).expect("compared before");
            for target in &row.targets {
                let account = |index: usize| self.model.accounts[index].id == target.account_id;
                let retried = post.targets.iter().find(|one| account(one.account));
                let died = retried.map_or(0, |target| target.died_in.len());
                let of = |entry: &&Value| entry["target_id"] == target.id.as_str();
                let ends = entries.iter().filter(of).filter_map(|entry| entry["kind"].as_str());
                let ends: Vec<_> = ends.filter(|kind| ["published", "dead"].contains(kind)).collect();
                let end = Some(target.status.as_str()).filter(|status| *status != "canceled");
                let expected: Vec<_> = std::iter::repeat_n("dead", died).chain(end).collect();
                let is_right = ends == expected;
                if !is_right || !times.is_sorted() {
                    return Err(format!("the timeline of {row:#?} tells other ends: {timeline:#}"));
                }
            }
        }
        Ok(())
    }
}

fn containers(text: usize, fault: Fault, has_reply: bool) -> Value {
    let mut containers = vec![json!({ "content": format!("Text {text}. {}", fault.word()) })];
    containers.extend(has_reply.then(|| json!({ "content": format!("Reply {text}.") })));
    json!(containers)
}

/// Returns the days of the first two slots: in two and in four days, at noon.
fn days() -> [DateTime<Utc>; 2] {
    let noon = tests::now().date_naive().and_hms_opt(12, 0, 0).expect("a time").and_utc();
    [2, 4].map(|days| noon + TimeDelta::days(days))
}

/// Returns a body that sets two slots a week, of an account or of the organization.
pub(super) fn weekly(account: Option<&str>) -> Value {
    let slot = |at: &DateTime<Utc>| {
        let weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        json!({ "weekday": weekdays[at.weekday().num_days_from_monday() as usize], "time": "12:00" })
    };
    json!({ "social_account_id": account, "slots": days().iter().map(slot).collect::<Vec<_>>() })
}

/// Sets the organization's slots, and returns their next times.
async fn set_slots(world: &World) -> Vec<DateTime<Utc>> {
    let (status, set) = world.call(Method::PUT, "/scheduling/slots", Some(&weekly(None))).await;
    assert_eq!(status, 200, "{set}");
    (0..SLOTS / 2).flat_map(|week| days().map(|day| day + TimeDelta::weeks(week))).collect()
}

/// Returns a client of the Temporal server.
async fn client() -> &'static Client {
    static CLIENT: OnceCell<Client> = OnceCell::const_new();
    CLIENT.get_or_init(async || temporal_client(&tests::shared(&PROGRAM).await.temporal).await).await
}

/// Resets a workflow to its first task. Returns false if it has none.
async fn reset(handle: &WorkflowHandle<Client, UntypedWorkflow>, workflow: &str) -> bool {
    let Ok(events) = handle.fetch_history(Default::default()).into_events().await else { return false };
    let first = events.iter().find(|event| event.event_type() == EventType::WorkflowTaskCompleted);
    let Some(first) = first else { return false };
    let request = ResetWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_execution: Some(WorkflowExecution {
            workflow_id: workflow.to_owned(),
            run_id: String::new(),
        }),
        reason: "a test".to_owned(),
        workflow_task_finish_event_id: first.event_id,
        request_id: Uuid::new_v4().to_string(),
        ..Default::default()
    };
    wait_until("the reset", async || {
        let mut client = handle.client().clone();
        match WorkflowService::reset_workflow_execution(&mut client, Request::new(request.clone())).await {
            Ok(_) => Ok(true),
            Err(status) if status.message().contains("busy") => Err(status),
            Err(status) => panic!("reset {workflow}: {status}"),
        }
    })
    .await
}
