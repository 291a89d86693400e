//! `fanfare ops`: what operators see and do in all organizations.

use crate::{browser::Browser, replay, webhooks, world};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::people::audit;
use tests::{Receiver, World, wait_until};

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

fn target(post: &Value) -> &Value {
    &post["targets"][0]
}

/// Runs a command; returns its exit code, output and errors.
async fn ops(world: &World, args: &[&str]) -> (i32, String, String) {
    let output = world.command(&[&["ops"], args].concat()).await;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Runs a command that succeeds, and returns its output.
pub(crate) async fn done(world: &World, args: &[&str]) -> String {
    let (code, output, errors) = ops(world, args).await;
    assert_eq!(code, 0, "{args:?}: {output}{errors}");
    output
}

/// Returns what is stuck in the world's organization, without a minimal wait.
async fn stuck(world: &World, args: &[&str]) -> Vec<Value> {
    let org = world.owner.org.to_string();
    let output = done(world, &[&["stuck", "--json", "--after", "0", "--org", &org], args].concat()).await;
    let found: Value = serde_json::from_str(&output).unwrap();
    found["stuck"].as_array().unwrap().clone()
}

/// Returns the actions of operators in the world's organization, newest first, with the operators' names.
async fn trail(world: &World) -> Vec<(String, String)> {
    sqlx::query_as("select action, operator from audit_entries where org_id = $1 and operator is not null order by at desc")
        .bind(world.owner.org.0)
        .fetch_all(&world.db)
        .await
        .unwrap()
}

/// Seconds for which X throttles: a failed attempt is looked at before the next one, also on a busy machine.
const THROTTLE: u32 = 60;

async fn failed(world: &World, content: &str) -> Value {
    world.set_sandbox(json!({ "throttle_seconds": THROTTLE })).await;
    let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
    let post = world.until(id(&post), "a failed attempt", |post| target(post)["status"] == "failed").await;
    replay::backs_off(&post).await;
    post
}

#[tokio::test]
async fn what_is_stuck_is_listed_with_the_reason_and_the_next_step() {
    let mut world = world().pace(1.0).running(&["api"]).platforms(&["x", "threads"]).start().await;
    world.connect("x", "ada").await;
    // The message that renews the account's grant is on its way.
    wait_until("nothing to be stuck", async || {
        let found = stuck(&world, &[]).await;
        if found.is_empty() { Ok(()) } else { Err(json!(found)) }
    })
    .await;
    let receiver = Receiver::start().await;
    receiver.answer([500]);
    world.subscribe(&receiver.url).await;
    world.set_sandbox(json!({ "throttle_seconds": THROTTLE })).await;
    let post = world.post(json!({ "content": "Refused #sandbox-429", "accounts": ["ada"] })).await;
    world.until(id(&post), "a started workflow", |post| target(post)["status"] == "queued").await;
    // Nobody works on it: no worker runs.
    let org = world.owner.org.to_string();
    let found = stuck(&world, &["--kind", "target"]).await;
    let [waiting] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(
        (&waiting["id"], &waiting["post"], &waiting["platform"], &waiting["mode"], &waiting["is_overdue"]),
        (&target(&post)["id"], &post["id"], &json!("x"), &json!("test"), &json!(true)),
    );
    assert_eq!(waiting["why"], "no worker has begun it; its next step is overdue");
    assert_eq!(
        done(&world, &["stuck", "--org", &org, "--failing"]).await,
        "Nothing is stuck.\n",
        "it was not begun"
    );
    world.run("worker").await;
    let post = world.until(id(&post), "a failed attempt", |post| target(post)["status"] == "failed").await;
    let found = stuck(&world, &["--platform", "x", "--code", "rate_limited"]).await;
    let [waiting] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((&waiting["code"], &waiting["is_overdue"]), (&json!("rate_limited"), &json!(false)));
    let why = waiting["why"].as_str().unwrap();
    assert!(why.starts_with("attempt 1: rate_limited: "), "{why}");
    assert_eq!(
        waiting["next_at"].as_str().unwrap()[..19],
        target(&post)["next_attempt_at"].as_str().unwrap()[..19]
    );
    assert_eq!(stuck(&world, &["--platform", "threads"]).await, Vec::<Value>::new());
    assert_eq!(stuck(&world, &["--code", "token_expired"]).await, Vec::<Value>::new());
    // For people: a row per thing, and no row for what waits a normal time.
    let table = done(&world, &["stuck", "--org", &org, "--after", "0"]).await;
    assert!(table.starts_with("SINCE") && table.contains(id(target(&post))), "{table}");
    let said = done(&world, &["stuck", "--org", &org]).await;
    assert!(
        said.starts_with("Nothing has waited for more than 5m. For less: 1 of kind target since "),
        "{said}"
    );
    let found: Value =
        serde_json::from_str(&done(&world, &["stuck", "--org", &org, "--json"]).await).unwrap();
    assert_eq!((&found["stuck"], &found["waiting"][0]["number"]), (&json!([]), &json!(1)), "{found}");
    // A retry is under way, however short the wait.
    let failing = done(&world, &["stuck", "--org", &org, "--failing"]).await;
    assert!(
        failing.contains(id(target(&post))) && failing.contains("attempt 1: rate_limited: "),
        "{failing}"
    );
    assert_eq!(
        done(&world, &["stuck", "--org", &org, "--failing", "--platform", "threads"]).await,
        "Nothing is stuck.\n"
    );

    // A delivery that the receiver refused, and a message that nobody sends.
    done(&world, &["end", id(target(&post)), "--reason", "a test"]).await;
    receiver.until("an attempt", |all| !all.is_empty()).await;
    let look = async || match &stuck(&world, &["--kind", "delivery"]).await[..] {
        [delivery, ..] if delivery["next_at"].is_string() => Ok(delivery["why"].clone()),
        found => Err(format!("{found:?}")),
    };
    let why = wait_until("a refused delivery", look).await;
    assert!(why.as_str().unwrap().contains("attempt 1"), "{why}");
    tests::sql(
        &world.db,
        &format!(
            "insert into outbox (org_id, message, available_at, parked_at, error)
             values ('{org}', '{{\"type\": \"unknown_type\"}}', now(), now(), 'refused by a test')"
        ),
    )
    .await;
    let found = stuck(&world, &["--kind", "message"]).await;
    assert_eq!(found[0]["why"], "unknown_type can't be sent: refused by a test");
    tests::sql(&world.db, "delete from outbox where parked_at is not null").await;
}

#[tokio::test]
async fn the_story_of_a_post_has_everything_but_secrets() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&format!("{}?token=t0p-s3cret", receiver.url)).await;
    let post = failed(&world, "Refused #sandbox-429").await;
    let shown = done(&world, &["show", id(target(&post))]).await;
    let story: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&story["post"]["id"], &story["targets"][0]["id"]), (&post["id"], &target(&post)["id"]));
    assert_eq!(story["containers"][0]["content"], "Refused #sandbox-429");
    assert_eq!(story["targets"][0]["account"]["username"], "ada");
    assert!(story["timeline"].as_array().unwrap().iter().any(|entry| entry["kind"] == "failure"), "{shown}");
    let workflow = |id: &str| {
        let all = story["workflows"].as_array().unwrap();
        all.iter().find(|workflow| workflow["id"] == id).unwrap_or_else(|| panic!("{id}: {shown}")).clone()
    };
    assert_eq!(workflow(&format!("post-{}", id(&post)))["state"], "running");
    let own = workflow(&format!("target-{}", id(target(&post))));
    let pending = &own["pending_activities"][0];
    assert!(pending["last_failure"].as_str().unwrap().starts_with("attempt 1 of 10: "), "{own:#}");
    done(&world, &["end", id(target(&post)), "--reason", "a test"]).await;
    world.ended(&post).await;
    let shown = done(&world, &["show", id(&post)]).await;
    let story: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(story["events"].as_array().unwrap().len(), 2);
    assert_eq!(story["deliveries"][0]["webhook_id"], webhook["id"]);
    let endpoint = json!(format!("endpoint-{}", webhook["id"].as_str().unwrap()));
    assert!(
        story["workflows"].as_array().unwrap().iter().any(|workflow| workflow["id"] == endpoint),
        "{shown}"
    );
    assert_eq!(story["audit"][0]["action"], "target.stopped");
    for secret in
        ["t0p-s3cret", "grant_sealed", "\"checkpoint\"", webhook["signing_secret"].as_str().unwrap()]
    {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    // Without Temporal it is told from the rows.
    let shown = done(&world, &["show", id(&post), "--temporal-address", "http://127.0.0.1:9"]).await;
    let story: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&story["post"]["status"], &story["workflows"][0]["state"]), (&json!("failed"), &Value::Null));
    let (code, _, errors) = ops(&world, &["show", &uuid::Uuid::nil().to_string()]).await;
    assert!(code == 3 && errors.contains("there is no post or target"), "{errors}");
}

#[tokio::test]
async fn an_operator_retries_what_waits_and_what_is_dead() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let post = failed(&world, "Refused #sandbox-429x1").await;
    let output = done(&world, &["retry", id(target(&post))]).await;
    assert_eq!(output, format!("target {} the next attempt begins now\n", id(target(&post))));
    assert_eq!(world.ended(&post).await["status"], "published");
    let (code, output, _) = ops(&world, &["retry", id(&post)]).await;
    assert!(code == 4 && output.contains("nothing to retry"), "{output}");

    let post = world.post(json!({ "content": "Rejected #sandbox-400x1", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    let output = done(&world, &["retry", id(&post)]).await;
    assert_eq!(output, format!("target {} was dead and starts over\n", id(target(&post))));
    world.until(id(&post), "the retry", |post| post["status"] == "published").await;
    assert_eq!(world.accepted("x", "ada").await, 2);

    let (code, _, errors) = ops(&world, &["retry", &uuid::Uuid::nil().to_string()]).await;
    assert!(code == 3 && errors.contains("there is no target or post"), "{errors}");
    let trail = trail(&world).await;
    assert_eq!(trail.len(), 2);
    for (action, operator) in &trail {
        assert!(action == "target.retried" && operator.contains('@'), "{operator}: {action}");
    }
    // Its owner is told that an operator did it, and not who.
    let entries = world.get("/account/audit").await;
    assert_eq!(
        (&entries["data"][0]["actor"], &entries["data"][0]["action"]),
        (&json!("operator"), &json!("target.retried"))
    );
    assert!(!entries.to_string().contains(&trail[0].1), "{entries}");
}

#[tokio::test]
async fn a_target_that_an_operator_ends_says_so() {
    let world = world().pace(1.0).start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = failed(&world, "Refused #sandbox-429").await;
    let output = done(&world, &["end", id(target(&post)), "--reason", "The customer asked for it"]).await;
    assert_eq!(output, format!("target {} has ended: dead\n", id(target(&post))));
    let ended = world.ended(&post).await;
    let found = target(&ended);
    assert_eq!(
        (&found["status"], &found["error_code"], &found["error_source"]),
        (&json!("dead"), &json!("stopped"), &json!("service"))
    );
    assert_eq!(found["error_message"], "an operator stopped it: The customer asked for it");
    receiver.events(&["post.target.failed", "post.error"]).await;
    let (code, _, errors) = ops(&world, &["end", id(target(&post)), "--reason", "again"]).await;
    assert!(code == 4 && errors.contains("had ended before: dead"), "{errors}");
    let (code, _, errors) = ops(&world, &["end", id(target(&post)), "--reason", " "]).await;
    assert!(code == 2 && errors.contains("give a reason"), "{errors}");
    // A user may retry it, and it is published when it is due, not before.
    let scheduled = json!({ "content": "Later", "accounts": ["ada"], "scheduled_at": tests::soon() });
    let post = world.post(scheduled).await;
    done(&world, &["end", id(target(&post)), "--reason", "not now"]).await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    let (status, _) =
        world.call(Method::POST, &format!("/posts/{}/retry", id(&post)), Some(&json!({}))).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let workflow = format!("target-{}", id(target(&post)));
    let client = replay::client().await;
    wait_until("its workflow to wait", async || {
        let history = replay::history(&client, &workflow).await.to_lowercase().replace('_', "");
        if history.contains("timerstarted") { Ok(()) } else { Err("not yet") }
    })
    .await;
    assert_eq!(world.accepted("x", "ada").await, 0, "it is not due");
    tests::sql(&world.db, &format!("update posts set scheduled_at = now() where id = '{}'", id(&post))).await;
    tests::temporal(&crate::PROGRAM, &["workflow", "signal", "-w", &workflow, "--name", "retry_now"]).await;
    world.until(id(&post), "the retry", |post| post["status"] == "published").await;
}

#[tokio::test]
async fn a_target_whose_call_is_under_way_is_looked_up_before_it_ends() {
    let world = world().own().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let hold = json!({ "platform": "x", "account": "ada", "nth": 1, "when": "after" });
    let hold = world.hold(hold).await;
    let post = world.post(json!({ "content": "On its way", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let output = done(&world, &["end", id(target(&post)), "--reason", "a test"]).await;
    assert!(output.contains("may be live: a worker looks it up"), "{output}");
    hold.release().await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    receiver.events(&["post.target.published", "post.published"]).await;
    assert_eq!(world.accepted("x", "ada").await, 1);

    // Ended at once, its end stays, and says what is not known.
    let hold = world.hold(json!({ "platform": "x", "account": "ada", "nth": 1, "when": "after" })).await;
    let post = world.post(json!({ "content": "On its way, too", "accounts": ["ada"] })).await;
    hold.until_held().await;
    let output = done(&world, &["end", id(target(&post)), "--reason", "a test", "--may-be-live"]).await;
    assert!(output.ends_with("has ended: dead\n"), "{output}");
    let found = stuck(&world, &["--may-be-live"]).await;
    assert_eq!(
        (found.len(), &found[0]["id"], &found[0]["code"]),
        (1, &target(&post)["id"], &json!("stopped"))
    );
    hold.release().await;
    let ended = world.ended(&post).await;
    let message = target(&ended)["error_message"].as_str().unwrap();
    assert!(message.ends_with("it may be live: look before posting again"), "{message}");
    let is_late =
        |timeline: &Value| timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "late");
    world.until_at(&format!("/posts/{}/timeline", id(&post)), "the late answer", is_late).await;
    assert_eq!(target(&world.get(&format!("/posts/{}", id(&post))).await)["status"], "dead");
}

#[tokio::test]
async fn what_is_overdue_is_resumed_on_request() {
    // The sweeper of the API leaves a row alone for the first half minute.
    let world = world().pace(1.0).own().start().await;
    world.connect("x", "ada").await;
    let post = failed(&world, "Refused #sandbox-429x1").await;
    for workflow in [format!("post-{}", id(&post)), format!("target-{}", id(target(&post)))] {
        for what in ["terminate", "delete"] {
            tests::temporal(&crate::PROGRAM, &["workflow", what, "-w", &workflow]).await;
        }
    }
    let now = format!(
        "update targets set next_attempt_at = now() where id = '{}';
         update posts set updated_at = now() - interval '1 second'",
        id(target(&post))
    );
    tests::sql(&world.db, &now).await;
    let output = done(&world, &["reconcile"]).await;
    assert_eq!(output, "1 messages for overdue rows were written; 0 parked messages are sent again\n");
    assert_eq!(world.ended(&post).await["status"], "published");
    let (actions,): (i64,) = sqlx::query_as(
        "select count(*) from audit_entries where org_id = $1 and action = 'installation.reconciled'",
    )
    .bind(audit::INSTALLATION.0)
    .fetch_one(&world.db)
    .await
    .unwrap();
    assert_eq!(actions, 1);
}

#[tokio::test]
async fn what_is_frozen_waits_and_is_released_at_the_chosen_rate() {
    let world = world().own().platforms(&["threads", "x"]).start().await;
    let ada = world.connect("threads", "ada").await;
    world.connect("x", "bob").await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let reason = "Threads has an outage";
    let output = done(&world, &["freeze", "platform", "threads", "--mode", "test", "--reason", reason]).await;
    assert_eq!(output, "platform threads is frozen in test mode\n");
    let mut posts = Vec::new();
    for number in 0..3 {
        let body = json!({ "content": format!("Number {number}"), "accounts": ["ada", "bob"] });
        posts.push(world.post(body).await);
    }
    let of = |post: &Value, platform: &str| {
        let targets = post["targets"].as_array().unwrap();
        targets.iter().find(|target| target["platform"] == platform).unwrap().clone()
    };
    for post in &posts {
        let post = world.until(id(post), "its freeze", |post| {
            of(post, "threads")["error_code"] == "frozen" && of(post, "x")["status"] == "published"
        });
        let frozen = of(&post.await, "threads");
        assert_eq!((&frozen["status"], &frozen["attempts"]), (&json!("queued"), &json!(0)), "{frozen:#}");
        let message = frozen["error_message"].as_str().unwrap();
        assert!(message.contains(reason) && message.contains("publishing to threads"), "{message}");
        // Nobody knows when it is released.
        assert_eq!(frozen["next_attempt_at"], Value::Null, "{frozen:#}");
    }
    let timeline = world.get(&format!("/posts/{}/timeline", id(&posts[0]))).await;
    let entries = timeline["data"].as_array().unwrap();
    let frozen: Vec<_> = entries.iter().filter(|entry| entry["kind"] == "frozen").collect();
    assert!(frozen.len() == 1 && frozen[0]["message"].as_str().unwrap().contains(reason), "{timeline:#}");
    assert_eq!(world.accepted("threads", "ada").await, 0);
    // A retry of its owner does not break the freeze.
    let waiting = of(&posts[0], "threads");
    let path = format!("/posts/{}/targets/{}/retry", id(&posts[0]), id(&waiting));
    assert_eq!(world.call(Method::POST, &path, None).await.0, StatusCode::ACCEPTED);
    wait_until("to be frozen again", async || {
        let looks_later: bool = sqlx::query_scalar(
            "select next_attempt_at > now() + interval '1 hour' from targets where id = $1::uuid",
        )
        .bind(id(&waiting))
        .fetch_one(&world.db)
        .await
        .unwrap();
        if looks_later { Ok(()) } else { Err("not yet") }
    })
    .await;
    let again = of(&world.get(&format!("/posts/{}", id(&posts[0]))).await, "threads");
    assert_eq!(
        (&again["error_code"], &again["next_attempt_at"]),
        (&json!("frozen"), &Value::Null),
        "{again:#}"
    );
    let listed = done(&world, &["frozen"]).await;
    assert!(listed.contains(reason) && listed.contains("(3 targets wait)"), "{listed}");
    let (code, _, errors) =
        ops(&world, &["freeze", "platform", "threads", "--mode", "test", "--reason", "again"]).await;
    assert!(code == 4 && errors.contains("was frozen"), "{errors}");
    let (code, _, errors) = ops(&world, &["release", "platform", "threads"]).await;
    assert!(code == 4 && errors.contains("is not frozen in both modes"), "{errors}");

    // Two a minute, in their order: the first now, the others at their times.
    let output = done(&world, &["release", "platform", "threads", "--mode", "test", "--rate", "2"]).await;
    assert_eq!(output, "platform threads is released in test mode; 3 targets go on\n");
    world.until(id(&posts[0]), "the first", |post| of(post, "threads")["status"] == "published").await;
    let mut times = Vec::new();
    for post in &posts[1..] {
        let waiting = of(&world.get(&format!("/posts/{}", id(post))).await, "threads");
        assert_eq!((&waiting["status"], &waiting["attempts"]), (&json!("queued"), &json!(0)), "{waiting:#}");
        times.push(
            waiting["next_attempt_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap(),
        );
    }
    let apart = (times[1] - times[0]).num_milliseconds();
    assert!((29_900..=30_100).contains(&apart), "{apart} ms");
    assert_eq!(world.accepted("threads", "ada").await, 1);
    for post in &posts[1..] {
        done(&world, &["retry", id(&of(post, "threads"))]).await;
        let ended = world.ended(post).await;
        assert_eq!((&ended["status"], &of(&ended, "threads")["attempts"]), (&json!("published"), &json!(1)));
        assert_eq!(of(&ended, "threads")["error_code"], Value::Null);
    }
    assert_eq!(world.accepted("threads", "ada").await, 3);

    // One account, one organization.
    let org = world.owner.org.to_string();
    for [kind, what] in [["account", ada.as_str()], ["organization", org.as_str()]] {
        done(&world, &["freeze", kind, what, "--reason", "it was taken over"]).await;
        let post = world.post(json!({ "content": format!("The {kind}"), "accounts": ["ada", "bob"] })).await;
        world.until(id(&post), "its freeze", |post| of(post, "threads")["error_code"] == "frozen").await;
        let other = if kind == "account" { "published" } else { "queued" };
        world
            .until(id(&post), "the other account", |post| {
                let other_target = of(post, "x");
                other_target["status"] == other
                    && (kind == "account" || other_target["error_code"] == "frozen")
            })
            .await;
        done(&world, &["release", kind, what]).await;
        assert_eq!(world.ended(&post).await["status"], "published");
    }
    let (code, _, errors) =
        ops(&world, &["freeze", "account", &uuid::Uuid::nil().to_string(), "--reason", "a test"]).await;
    assert!(code == 3 && errors.contains("there is no account"), "{errors}");
}

#[tokio::test]
async fn a_freeze_stops_an_attempt_that_is_about_to_publish_and_costs_nothing() {
    let world = world().own().platforms(&["threads"]).start().await;
    let account = world.connect("threads", "ada").await;
    // Its container is being created; the publishing call comes after that.
    let hold =
        world.hold(json!({ "platform": "threads", "account": "ada", "nth": 1, "when": "before" })).await;
    let post = world.post(json!({ "content": "In the middle", "accounts": ["ada"] })).await;
    hold.until_held().await;
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    hold.release().await;
    let post = world.until(id(&post), "its freeze", |post| target(post)["error_code"] == "frozen").await;
    assert_eq!(target(&post)["attempts"], 0, "{post:#}");
    assert_eq!(world.accepted("threads", "ada").await, 0);
    done(&world, &["release", "account", &account]).await;
    let actions: Vec<_> = trail(&world).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["publishing.released", "publishing.frozen"]);
    let ended = world.ended(&post).await;
    assert_eq!(
        (&ended["status"], &target(&ended)["attempts"]),
        (&json!("published"), &json!(1)),
        "{ended:#}"
    );
    assert_eq!(world.accepted("threads", "ada").await, 1);
}

#[tokio::test]
async fn what_is_frozen_while_it_is_published_is_not_crossposted() {
    let world = world().own().platforms(&["reddit"]).start().await;
    let account = world.connect("reddit", "ada").await;
    let submit =
        json!({ "platform": "reddit", "method": "POST", "path_prefix": "/api/submit", "when": "before" });
    let hold = world.hold(submit).await;
    let config = json!({ "reddit": { "subreddit": "test", "crosspost_to": ["news", "pics"] } });
    let post = world.post(json!({ "content": "A title", "accounts": ["ada"], "config": config })).await;
    hold.until_held().await;
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    hold.release().await;
    // The call was under way, and its post is live.
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let timeline = world.get(&format!("/posts/{}/timeline", id(&post))).await;
    for subreddit in ["news", "pics"] {
        let note = format!(
            "The post is live without its crosspost to r/{subreddit}: nothing more may be published for it"
        );
        let entries = timeline["data"].as_array().unwrap();
        assert_eq!(entries.iter().filter(|entry| entry["message"] == note).count(), 1, "{timeline:#}");
    }
    assert_eq!(world.accepted("reddit", "ada").await, 1);
    done(&world, &["release", "account", &account]).await;
}

#[tokio::test]
async fn a_call_in_doubt_is_looked_up_although_its_account_is_frozen() {
    let mut world = world().running(&["api", "worker"]).start().await;
    let account = world.connect("x", "ada").await;
    // The reply was lost, and the look-up is under way when the worker dies.
    let look = json!({ "platform": "x", "method": "GET", "path_prefix": "/2/users/", "when": "before" });
    let hold = world.hold(look).await;
    let post = world.post(json!({ "content": "In doubt #sandbox-lost-reply", "accounts": ["ada"] })).await;
    hold.until_held().await;
    world.kill("worker").await;
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    hold.release().await;
    world.run("worker").await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn retrying_what_is_frozen_says_that_it_waits_for_the_release() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    let dead = world.post(json!({ "content": "Rejected #sandbox-400x1", "accounts": ["ada"] })).await;
    assert_eq!(world.ended(&dead).await["status"], "failed");
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    let post = world.post(json!({ "content": "Waits", "accounts": ["ada"] })).await;
    let frozen = |post: &Value| target(post)["error_code"] == "frozen";
    let before = world.until(id(&post), "its freeze", frozen).await;
    let (code, output, errors) = ops(&world, &["retry", id(&post)]).await;
    let says = format!("target {} is frozen by an operator and waits for the release\n", id(target(&post)));
    assert_eq!((code, output, errors.contains("nothing was retried")), (4, says, true), "{errors}");
    let after = world.get(&format!("/posts/{}", id(&post))).await;
    assert_eq!(target(&after)["next_attempt_at"], target(&before)["next_attempt_at"]);
    let output = done(&world, &["retry", id(target(&dead)), "--reason", "they ask"]).await;
    let says = "was dead and starts over when what is frozen is released";
    assert_eq!(output, format!("target {} {says}\n", id(target(&dead))));
    world.until(id(&dead), "its freeze", frozen).await;
    assert_eq!(world.accepted("x", "ada").await, 0);
    done(&world, &["release", "account", &account]).await;
    for post in [&post, &dead] {
        world.until(id(post), "its publication", |post| post["status"] == "published").await;
    }
    let trail = trail(&world).await;
    assert_eq!(trail.iter().filter(|(action, _)| action == "target.retried").count(), 1, "{trail:?}");
}

#[tokio::test]
async fn a_frozen_target_can_be_ended_and_deleted() {
    let world = world().start().await;
    let account = world.connect("x", "ada").await;
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    let frozen = |post: &Value| target(post)["error_code"] == "frozen";
    let one = world.post(json!({ "content": "One", "accounts": ["ada"] })).await;
    let two = world.post(json!({ "content": "Two", "accounts": ["ada"] })).await;
    for post in [&one, &two] {
        world.until(id(post), "its freeze", frozen).await;
    }
    done(&world, &["end", id(target(&one)), "--reason", "never"]).await;
    assert_eq!(target(&world.ended(&one).await)["error_code"], "stopped");
    assert_eq!(world.call(Method::DELETE, &format!("/posts/{}", id(&two)), None).await.0, StatusCode::OK);
    done(&world, &["release", "account", &account]).await;
    assert_eq!(world.accepted("x", "ada").await, 0);
}

/// A target that meets a freeze looks at it again after hours.
#[tokio::test]
async fn an_edit_of_a_frozen_post_takes_effect_at_once() {
    let world = world().own().start().await;
    let account = world.connect("x", "ada").await;
    world.connect("bluesky", "bob.bsky.social").await;
    done(&world, &["freeze", "account", &account, "--reason", "it was taken over"]).await;
    let frozen = |post: &Value| target(post)["error_code"] == "frozen";
    let edit = async |post: &Value, body: Value| {
        let path = format!("/posts/{}", id(post));
        let (status, edited) = world.call(Method::PATCH, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
    };
    let mut posts = Vec::new();
    for content in ["Moved", "Changed", "Withdrawn"] {
        let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
        posts.push(world.until(id(&post), "its freeze", frozen).await);
    }
    let [moved, changed, withdrawn] = &posts[..] else { unreachable!() };
    edit(moved, json!({ "accounts": ["bob.bsky.social"] })).await;
    assert_eq!(world.ended(moved).await["status"], "published", "it does not wait for the frozen account");
    edit(changed, json!({ "content": "After the edit" })).await;
    edit(withdrawn, json!({ "is_draft": true })).await;
    world.until(id(changed), "its freeze", frozen).await;
    assert_eq!(world.accepted("x", "ada").await, 0);

    done(&world, &["release", "account", &account]).await;
    let ended = world.ended(changed).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(ended["containers"][0]["content"], "After the edit");
    let draft = world.get(&format!("/posts/{}", id(withdrawn))).await;
    assert_eq!((&draft["status"], &target(&draft)["status"]), (&json!("draft"), &json!("pending")));
    assert_eq!(world.accepted("x", "ada").await, 1);
    edit(withdrawn, json!({ "is_draft": false })).await;
    assert_eq!(world.ended(withdrawn).await["status"], "published");
    assert_eq!(world.accepted("x", "ada").await, 2);
}

#[tokio::test]
async fn an_operator_repeats_deliveries() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Told", "accounts": ["ada"] })).await;
    world.ended(&post).await;
    receiver.events(&["post.target.published", "post.published"]).await;
    let path = format!("/webhooks/{}/deliveries", id(&webhook));
    let delivered = |list: &Value| {
        list["data"].as_array().unwrap().iter().filter(|one| one["status"] == "delivered").count() == 2
    };
    let deliveries = world.until_at(&path, "both deliveries", delivered).await;
    let (code, _, errors) = ops(&world, &["redeliver", "--endpoint", id(&webhook)]).await;
    assert!(code == 4 && errors.contains("nothing was repeated"), "{errors}");
    let nobody = uuid::Uuid::nil().to_string();
    let (code, _, errors) = ops(&world, &["redeliver", "--endpoint", &nobody]).await;
    assert!(code == 3 && errors.contains("there is no endpoint"), "{errors}");
    let (code, _, errors) = ops(&world, &["redeliver", &nobody]).await;
    assert!(code == 3 && errors.contains("there is no delivery"), "{errors}");
    let one = id(&deliveries["data"][0]);
    assert_eq!(done(&world, &["redeliver", one]).await, "1 deliveries are repeated\n");
    receiver.until("the repetition", |all| all.len() == 3).await;
    world.until_at(&path, "its end", delivered).await;
    tests::sql(
        &world.db,
        &format!("update deliveries set status = 'failed' where webhook_id = '{}'", id(&webhook)),
    )
    .await;
    let later = (tests::now() + chrono::TimeDelta::hours(1)).to_rfc3339();
    let (code, ..) = ops(&world, &["redeliver", "--endpoint", id(&webhook), "--since", &later]).await;
    assert_eq!(code, 4);
    let output = done(&world, &["redeliver", "--endpoint", id(&webhook)]).await;
    assert_eq!(output, "2 deliveries are repeated\n");
    receiver.until("both repetitions", |all| all.len() == 5).await;
    world.until_at(&path, "their end", delivered).await;
    let (code, ..) = ops(&world, &["redeliver"]).await;
    assert_eq!(code, 2);
    let trail = trail(&world).await;
    assert!(trail.len() == 3 && trail.iter().all(|(action, _)| action == "delivery.repeated"), "{trail:?}");
}

#[tokio::test]
async fn an_operator_sees_at_once_what_waits_for_a_failing_endpoint_and_sends_it() {
    const EVENTS: usize = 12;
    let world = world().pace(1.0).start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    receiver.answer([503; EVENTS]);
    webhooks::append(&world, 0..EVENTS).await;
    let path = format!("/webhooks/{}/deliveries?status=pending", id(&webhook));
    let waits = |list: &Value| {
        let all = list["data"].as_array().unwrap();
        all.len() == EVENTS && all.iter().all(|one| one["next_attempt_at"].is_string())
    };
    world.until_at(&path, "all to wait", waits).await;
    let org = world.owner.org.to_string();
    let table = done(&world, &["stuck", "--kind", "delivery", "--org", &org]).await;
    assert_eq!(table.matches("the endpoint has accepted nothing since").count(), EVENTS, "{table}");
    let output = done(&world, &["redeliver", "--endpoint", id(&webhook)]).await;
    assert_eq!(output, format!("{EVENTS} deliveries are repeated\n"));
    // A delivery that is being sent is not listed as pending.
    receiver.until("all once more", |all| all.len() >= 2 * EVENTS).await;
    world.until_at(&path, "their end", |list| list["data"] == json!([])).await;
    assert_eq!(receiver.all().len(), 2 * EVENTS);
    assert_eq!(trail(&world).await.len(), EVENTS);
}

#[tokio::test]
async fn an_operator_issues_and_revokes_keys_and_ends_sessions() {
    let world = world().start().await;
    let org = world.owner.org.to_string();
    let output = done(&world, &["keys", "issue", &org, "--mode", "test", "--name", "For the rescue"]).await;
    let text = output.lines().last().unwrap();
    assert!(text.starts_with("sk_test_"), "{output}");
    let listed: Value = serde_json::from_str(&done(&world, &["keys", "list", &org, "--json"]).await).unwrap();
    let keys = listed["keys"].as_array().unwrap();
    let issued = keys.iter().find(|key| key["name"] == "For the rescue").unwrap();
    assert_eq!((keys.len(), &issued["last_four"]), (2, &json!(text[text.len() - 4..])));
    let table = done(&world, &["keys", "list", &org]).await;
    assert!(table.contains("For the rescue") && !table.contains(text), "{table}");

    let signed_in = Browser::signed_in(&world).await;
    signed_in.open("/usage").await;
    assert_eq!(done(&world, &["sessions", "end", "--org", &org]).await, "1 sessions have ended\n");
    assert_eq!(signed_in.get("/usage").await.status, StatusCode::UNAUTHORIZED);
    let (code, ..) = ops(&world, &["sessions", "end"]).await;
    assert_eq!(code, 2);

    let output = done(&world, &["keys", "revoke", id(issued)]).await;
    assert_eq!(output, format!("key {} of organization {org} is revoked\n", id(issued)));
    let call = world.http.get(format!("{}/account/usage", world.base)).bearer_auth(text);
    assert_eq!(call.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let (code, ..) = ops(&world, &["keys", "revoke", id(issued)]).await;
    assert_eq!(code, 4);
    let (code, ..) = ops(&world, &["keys", "list", &uuid::Uuid::nil().to_string()]).await;
    assert_eq!(code, 3);
    let actions: Vec<_> = trail(&world).await.into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["api_key.revoked", "sessions.ended", "api_key.created"]);
}
