//! Content, media, times and settings of a post for one platform or one account.

use crate::world;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use tests::{World, samples::jpeg};

/// Returns the sandbox's page of a target's post.
async fn page(world: &World, post: &Value, account: &str) -> String {
    let url = target(post, account)["platform_post_url"].as_str().unwrap();
    world.http.get(url).send().await.unwrap().text().await.unwrap()
}

fn target<'a>(post: &'a Value, account: &str) -> &'a Value {
    let targets = post["targets"].as_array().unwrap();
    targets.iter().find(|target| target["social_account_id"] == account).unwrap()
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

/// The workflow would wait for years: the world's end finds it.
#[tokio::test]
async fn a_post_that_is_deleted_between_the_times_of_its_accounts_leaves_no_workflow() {
    let world = world().platforms(&["x", "bluesky"]).start().await;
    let (ada, sky) = (world.connect("x", "ada").await, world.connect("bluesky", "ada.bsky.social").await);
    let later = json!({ "bluesky": { "scheduled_at": "2999-01-02T03:04:05Z" } });
    let body = json!({ "content": "Hello", "accounts": [ada, sky], "config": later });
    let post = world.post(body).await;
    let id = post["id"].as_str().unwrap();
    world.until(id, "its first account", |post| target(post, &ada)["status"] == "published").await;
    let (status, deleted) = world.call(Method::DELETE, &format!("/posts/{id}"), None).await;
    assert!(status.is_success(), "{deleted}");
    assert_eq!(world.accepted("bluesky", "ada.bsky.social").await, 0);
}

#[tokio::test]
async fn each_platform_and_account_gets_its_own_content() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let picture = world.medium("a.jpg", None, jpeg(60, 40)).await;
    let body = json!({
        "containers": [{ "content": "For all" }, { "content": "A reply for all" }],
        "accounts": [ada, bob, sky],
        "config": {
            "x": {
                "content": "For X", "reply_settings": "following",
                "accounts": { "bob": { "content": "For Bob", "reply_settings": "mentionedUsers" } },
            },
            "bluesky": { "media": [{ "id": picture["id"], "alt_text": "A picture" }] },
        },
    });

    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(true)), "{verdict:#}");
    let of = |account: &str| {
        let targets = verdict["targets"].as_array().unwrap().iter();
        let mut own =
            targets.filter(|target| target["accounts"].as_array().unwrap().contains(&json!(account)));
        own.next().unwrap().clone()
    };
    let containers = |account: &str| {
        let number = &of(account)["variant"];
        let mut own =
            verdict["variants"].as_array().unwrap().iter().filter(|variant| variant["variant"] == *number);
        own.next().map_or(Value::Null, |own| own["containers"].clone())
    };
    let reply = json!({ "content": "A reply for all", "media": [] });
    assert_eq!(containers(&ada), json!([{ "content": "For X", "media": [] }, reply]));
    assert_eq!(of(&ada)["settings"], json!({ "reply_settings": "following" }));
    assert_eq!(containers(&bob), json!([{ "content": "For Bob", "media": [] }, reply]));
    assert_eq!(of(&bob)["settings"], json!({ "reply_settings": "mentionedUsers" }));
    let media = json!([{ "id": picture["id"], "url": null, "alt_text": "A picture" }]);
    assert_eq!(containers(&sky), json!([{ "content": "For all", "media": media }, reply]));
    assert_eq!(of(&sky)["settings"], json!({}));

    let post = world.post(body).await;
    assert_eq!(post["default_config"]["x"]["accounts"][&bob]["content"], "For Bob");
    assert_eq!(post["containers"][0]["content"], "For all");
    let text = |account: &str| {
        let variant = target(&post, account)["variant"].as_u64().unwrap();
        let variants = post["variants"].as_array().unwrap().iter();
        let mut own = variants.filter(|known| known["variant"] == variant);
        own.next().unwrap()["containers"][0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!([text(&ada), text(&bob), text(&sky)], ["For X", "For Bob", "For all"]);

    world.completed(&post, 3).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published");
    for (account, own) in [(&ada, "For X"), (&bob, "For Bob"), (&sky, "For all")] {
        let page = page(&world, &ended, account).await;
        for text in ["For X", "For Bob", "For all"] {
            assert_eq!(page.contains(text), text == own, "{own}: {page}");
        }
        assert_eq!(page.contains("A picture"), own == "For all", "{page}");
    }
    for (platform, account) in [("x", "ada"), ("x", "bob"), ("bluesky", "ada.bsky.social")] {
        assert_eq!(world.accepted(platform, account).await, 2, "the text and its reply");
    }
    assert_eq!(world.get("/posts?q=For%20Bob").await["data"][0]["id"], post["id"]);
}

#[tokio::test]
async fn limits_are_judged_on_what_each_platform_gets() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let long = "a".repeat(350);
    let body = |config: Value| json!({ "content": long, "accounts": [ada, sky], "config": config });
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body(json!({})))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2, "{problem}");
    // A short text for each of them, and the long one is published nowhere.
    let short = json!({ "x": { "content": "Short" }, "bluesky": { "containers": [{ "content": "Short" }] } });
    let post = world.post(body(short)).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    // An override that is too long is named where it is.
    let cases = [
        (
            json!({ "x": { "content": long }, "bluesky": { "content": "b" } }),
            json!(["config", "x", "content"]),
        ),
        (
            json!({ "x": { "content": "b", "accounts": { "ada": { "content": long } } }, "bluesky": { "content": "b" } }),
            json!(["config", "x", "accounts", "ada", "content"]),
        ),
        (
            json!({ "x": { "content": "b" }, "bluesky": { "containers": [{ "content": "b" }, { "content": long }] } }),
            json!(["config", "bluesky", "containers", 1, "content"]),
        ),
        (
            json!({ "x": { "content": "b", "accounts": { "ada": { "reply_settings": "nobody" } } },
                    "bluesky": { "content": "b" } }),
            json!(["config", "x", "accounts", "ada", "reply_settings"]),
        ),
    ];
    for (config, path) in cases {
        let (status, problem) = world.call(Method::POST, "/posts", Some(&body(config))).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("content_rejected"))
        );
        let paths: Vec<_> =
            problem["errors"].as_array().unwrap().iter().map(|issue| &issue["path"]).collect();
        assert_eq!(paths, [&path], "{problem}");
    }
}

#[tokio::test]
async fn overrides_that_cannot_be_applied_are_refused_with_their_path() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let asset = uuid::Uuid::nil();
    let soon = Utc::now() + TimeDelta::hours(1);
    let invalid = StatusCode::BAD_REQUEST;
    let refused = StatusCode::UNPROCESSABLE_ENTITY;
    let cases = [
        (json!({ "content": 1 }), invalid, json!(["config", "x", "content"])),
        (json!({ "scheduled_at": "soon" }), invalid, json!(["config", "x", "scheduled_at"])),
        (
            json!({ "content": "a", "containers": [{ "content": "b" }] }),
            invalid,
            json!(["config", "x", "containers"]),
        ),
        (json!({ "accounts": [] }), invalid, json!(["config", "x", "accounts"])),
        (json!({ "accounts": { "ada": 1 } }), invalid, json!(["config", "x", "accounts", "ada"])),
        (
            json!({ "accounts": { "ada": { "media": [{}] } } }),
            invalid,
            json!(["config", "x", "accounts", "ada", "media", 0, "id"]),
        ),
        (json!({ "content": "" }), refused, json!(["config", "x", "content"])),
        (json!({ "accounts": { "eve": {} } }), refused, json!(["config", "x", "accounts", "eve"])),
        (
            json!({ "accounts": { "ada": {}, ada.as_str(): {} } }),
            refused,
            json!(["config", "x", "accounts", "ada"]),
        ),
        (json!({ "media": [{ "id": asset }] }), refused, json!(["config", "x", "media", 0, "id"])),
        (json!({ "scheduled_at": soon }), refused, json!(["config", "x", "scheduled_at"])),
    ];
    for (block, status, path) in cases {
        let body = json!({
            "content": "a", "accounts": ["ada"], "scheduled_at": soon + TimeDelta::hours(1), "config": { "x": block },
        });
        for operation in ["/posts", "/posts/validate"] {
            let (answered, problem) = world.call(Method::POST, operation, Some(&body)).await;
            assert_eq!(answered, status, "{body} {problem}");
            let last = &problem["errors"].as_array().unwrap()[0];
            assert_eq!(last["path"], path, "{problem}");
        }
    }
    // A profile has settings only.
    let profile = json!({ "name": "a", "default_config": { "x": { "content": "a" } } });
    let (status, problem) = world.call(Method::POST, "/profiles", Some(&profile)).await;
    assert_eq!(
        (status, &problem["errors"][0]["path"]),
        (invalid, &json!(["default_config", "x", "content"]))
    );
}

#[tokio::test]
async fn each_target_is_published_at_its_own_time() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let start = Utc::now();
    let (soon, late) = (start + TimeDelta::seconds(3), start + TimeDelta::seconds(5));
    let post = world
        .post(json!({
            "content": "At its own time", "accounts": [ada, bob, sky],
            "config": { "x": { "scheduled_at": soon, "accounts": { "bob": { "scheduled_at": late } } } },
        }))
        .await;
    // One of the targets is published at once.
    assert_eq!((&post["status"], &post["scheduled_at"]), (&json!("queued"), &Value::Null));
    assert_eq!(target(&post, &bob)["next_attempt_at"], target(&post, &bob)["scheduled_at"]);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let published = |account: &str| time(&target(&ended, account)["published_at"]);
    assert!(published(&sky) < soon, "{} is after {soon}", published(&sky));
    assert!(published(&ada) >= soon && published(&ada) < late, "{}, {soon}", published(&ada));
    assert!(published(&bob) >= late, "{}, {late}", published(&bob));
    for account in [&ada, &bob, &sky] {
        assert_eq!(target(&ended, account)["attempts"], 1);
    }
}

#[tokio::test]
async fn a_post_whose_targets_all_have_a_time_is_scheduled_for_the_earliest() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let at = |seconds| Utc::now() + TimeDelta::seconds(seconds);
    let (day, later) = (at(86_400), at(90_000));
    let timed = |x: DateTime<Utc>, bluesky: DateTime<Utc>| json!({ "x": { "scheduled_at": x }, "bluesky": { "scheduled_at": bluesky } });
    let post =
        world.post(json!({ "content": "a", "accounts": [ada, sky], "config": timed(day, later) })).await;
    assert_eq!(post["status"], "scheduled");
    assert_eq!(time(&post["scheduled_at"]).timestamp_millis(), day.timestamp_millis());
    // An edit moves both, the earliest decides again, and the workflow follows.
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let (soon, then) = (at(2), at(4));
    let edit = json!({ "config": timed(then, soon) });
    let (status, edited) = world.call(Method::PATCH, &path, Some(&edit)).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!(time(&edited["scheduled_at"]).timestamp_millis(), soon.timestamp_millis());
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published");
    assert!(time(&target(&ended, &ada)["published_at"]) >= then);
    assert!(time(&target(&ended, &sky)["published_at"]) >= soon);
}

#[tokio::test]
async fn a_deleted_post_is_not_published_at_a_later_time_of_a_target() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let due = Utc::now() + TimeDelta::seconds(4);
    let post = world
        .post(json!({ "content": "a", "accounts": [ada, sky], "config": { "x": { "scheduled_at": due } } }))
        .await;
    let id = post["id"].as_str().unwrap();
    world.until(id, "the first target", |post| target(post, &sky)["status"] == "published").await;
    let path = format!("/posts/{id}");
    // Publishing has begun, so its content and times are fixed.
    let (status, _) = world.call(Method::PATCH, &path, Some(&json!({ "content": "b" }))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    // A later post of the same account shows that the canceled one's time has passed.
    let after = due + TimeDelta::seconds(1);
    let next = world.post(json!({ "content": "Next", "accounts": [ada], "scheduled_at": after })).await;
    world.ended(&next).await;
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn an_edit_changes_overrides_with_their_block() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let config = json!({ "x": { "content": "For X", "accounts": { "bob": { "content": "For Bob" } } } });
    let body = json!({ "content": "For all", "accounts": [ada, bob], "is_draft": true, "config": config });
    let post = world.post(body).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let patch = async |body: Value| {
        let (status, post) = world.call(Method::PATCH, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{post}");
        let texts = |post: &Value| -> Vec<Option<String>> {
            let variant = |target: &Value| {
                let index = usize::try_from(target["variant"].as_u64()?).unwrap() - 1;
                Some(post["variants"][index]["containers"][0]["content"].as_str()?.to_owned())
            };
            [&ada, &bob]
                .map(|account| {
                    let targets = post["targets"].as_array().unwrap().iter();
                    targets
                        .filter(|target| target["social_account_id"] == *account.as_str())
                        .find_map(variant)
                })
                .to_vec()
        };
        texts(&post)
    };
    let own = |text: &str| Some(text.to_owned());
    // The text of all is not what these accounts get.
    assert_eq!(patch(json!({ "content": "Changed" })).await, [own("For X"), own("For Bob")]);
    assert_eq!(patch(json!({ "x": { "content": "Again" } })).await, [own("Again"), own("Again")]);
    let bobs = json!({ "config": { "x": { "accounts": { "bob": { "content": "His" } } } } });
    assert_eq!(patch(bobs).await, [None, own("His")]);
    // An account that is removed takes its overrides with it.
    assert_eq!(patch(json!({ "accounts": [ada] })).await, [None, None]);
    assert_eq!(world.get(&path).await["variants"], json!([]));
    let bobs = json!({ "config": { "x": { "accounts": { "bob": { "content": "His" } } } } });
    let (status, problem) = world.call(Method::PATCH, &path, Some(&bobs)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("unprocessable")));
}

#[tokio::test]
async fn a_post_for_an_open_slot_has_no_other_times() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let slots = json!({ "social_account_id": ada, "slots": [{ "day_of_week": 1, "time": "09:00" }] });
    world.call(Method::PUT, "/scheduling/slots", Some(&slots)).await;
    let body = json!({
        "content": "a", "accounts": [ada], "queued_from_account": ada,
        "config": { "x": { "scheduled_at": Utc::now() } },
    });
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    assert_eq!(problem["errors"][0]["path"], json!(["queued_from_account"]));
}

#[tokio::test]
async fn what_the_accounts_get_has_a_bounded_size() {
    let world = world().running(&["api"]).start().await;
    let mut accounts = Vec::new();
    for number in 0..70 {
        accounts.push(world.connect("x", &format!("ada{number}")).await);
    }
    // Each account gets the long text or the long setting once more, or its text is checked once more.
    let long = "a".repeat(90_000);
    let each = |member: Value| -> Value {
        accounts.iter().map(|account| (account.clone(), member.clone())).collect::<Map<_, _>>().into()
    };
    let containers: Vec<_> = (0..10).map(|_| json!({ "content": long })).collect();
    let texts = json!({
        "containers": containers, "accounts": accounts,
        "config": { "x": { "accounts": each(json!({ "content": "own" })) } },
    });
    let own = &each(json!({ "reply_settings": "following" }));
    let settings = json!({
        "content": "For all", "accounts": accounts,
        "config": { "x": { "made_up": "a".repeat(60_000), "accounts": own } },
    });
    let objects = json!({
        "content": "For all", "accounts": accounts,
        "config": { "x": { "made_up": vec![json!({ "a": 1 }); 7000], "accounts": own } },
    });
    let shared = json!({
        "containers": containers, "accounts": accounts, "config": { "x": { "accounts": own } },
    });
    for mut body in [texts, settings, objects, shared] {
        body["is_draft"] = json!(true);
        for path in ["/posts/validate", "/posts"] {
            let (status, problem) = world.call(Method::POST, path, Some(&body)).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
            let issue = &problem["errors"][0];
            assert_eq!(
                (&issue["path"], &issue["code"]),
                (&json!(["config"]), &json!("too_big")),
                "{problem}"
            );
        }
        let few = &body["config"]["x"]["accounts"].as_object().unwrap();
        let few: Map<_, _> = few.iter().take(3).map(|(id, own)| (id.clone(), own.clone())).collect();
        body["config"]["x"]["accounts"] = few.into();
        let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{verdict}");
    }
}
