//! Posting slots: the accounts that they belong to, and when a post takes or frees one.

use crate::{
    api::{fail, key, request},
    world,
};
use chrono::{DateTime, Datelike, Days, NaiveDate, TimeDelta, Timelike, Utc, Weekday};
use domain::{Mode, Owner, scope::Scope};
use futures::{StreamExt, future::join_all, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::people::organizations;
use tests::World;

const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Returns a slot in every hour of the week. The next is half an hour ahead, so none passes during a test.
fn hourly() -> Value {
    let minute = (Utc::now() + TimeDelta::minutes(30)).minute();
    let time = |hour: u32| format!("{hour:02}:{minute:02}");
    let slots =
        DAYS.iter().flat_map(|day| (0..24).map(move |hour| json!({ "weekday": day, "time": time(hour) })));
    slots.collect()
}

async fn set(world: &World, account: Option<&str>, slots: &Value) -> Value {
    let body = json!({ "social_account_id": account, "slots": slots });
    let (status, set) = world.call(Method::PUT, "/scheduling/slots", Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    set
}

/// Returns the next open slots of an account.
async fn open(world: &World, account: &str, count: usize) -> Vec<String> {
    let found = world.get(&format!("/scheduling/find-slot?account={account}&count={count}")).await;
    assert_eq!(found["slot"], found["slots"][0]);
    let slots = found["slots"].as_array().unwrap().iter();
    slots.map(|slot| slot.as_str().unwrap().to_owned()).collect()
}

fn queued(account: &str) -> Value {
    json!({ "content": "Queued", "accounts": [account], "queued_from_account": account })
}

async fn queue(world: &World, account: &str) -> Value {
    let post = world.post(queued(account)).await;
    assert_eq!((&post["status"], &post["is_draft"]), (&json!("scheduled"), &json!(false)), "{post}");
    post
}

async fn patch(world: &World, post: &Value, body: Value) -> Value {
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let (status, post) = world.call(Method::PATCH, &path, Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{post}");
    post
}

fn time(text: &Value) -> DateTime<Utc> {
    text.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_account_uses_its_own_slots_or_else_the_organizations() {
    let world = world().start().await;
    let (ada, bob) = (world.connect("x", "ada").await, world.connect("bluesky", "bob.bsky.social").await);
    assert_eq!(world.get("/scheduling/slots").await, json!({ "data": [] }));
    let slots = json!([{ "weekday": "friday", "time": "23:59" }, { "weekday": "monday", "time": "00:00" }]);
    let all = set(&world, None, &slots).await;
    assert_eq!((&all["social_account_id"], &all["slots"]), (&Value::Null, &slots), "in the given order");
    assert_eq!(all["created_at"], all["updated_at"]);
    let next: Vec<_> = all["next_slots"].as_array().unwrap().iter().map(time).collect();
    assert_eq!(next.len(), 5);
    assert!(next[0] > Utc::now() && next.is_sorted() && next[4] - next[0] == TimeDelta::weeks(2), "{all}");
    for at in next {
        let expected = if at.weekday() == Weekday::Fri { (23, 59) } else { (0, 0) };
        assert_eq!((at.hour(), at.minute()), expected, "{at}");
    }
    assert_eq!(open(&world, "ada", 5).await, open(&world, &bob, 5).await);

    let own = set(&world, Some(&ada), &json!([{ "weekday": "tuesday", "time": "12:30", "zone": 1 }])).await;
    assert_eq!(own["social_account_id"], json!(ada));
    assert_eq!(world.get("/scheduling/slots").await, json!({ "data": [all, own] }));
    assert!(open(&world, "ada", 3).await.iter().all(|at| at.ends_with("T12:30:00.000Z")));
    assert!(!open(&world, "bob.bsky.social", 3).await.iter().any(|at| at.ends_with("T12:30:00.000Z")));

    // Setting replaces the slots. With an empty set, the account uses the organization's slots again.
    let none = set(&world, Some(&ada), &json!([])).await;
    assert_eq!((&none["id"], &none["slots"], &none["next_slots"]), (&own["id"], &json!([]), &json!([])));
    assert_eq!(none["created_at"], own["created_at"]);
    assert_ne!(none["updated_at"], own["updated_at"]);
    assert_eq!(open(&world, "ada", 5).await, open(&world, "bob.bsky.social", 5).await);
    let gone = json!({ "social_account_id": null, "slots": [] });
    assert_eq!(world.call(Method::PUT, "/scheduling/slots", Some(&gone)).await.0, StatusCode::OK);
    let find =
        |account: &str| request(&world, Method::GET, &format!("/scheduling/find-slot?account={account}"));
    let (_, problem) = fail(find("ada"), 422, "no_open_slot").await;
    assert_eq!(problem["errors"][0]["path"], json!(["account"]), "{problem}");

    // An account's slots are hidden while it is disconnected, and return when it reconnects.
    let own = set(&world, Some(&ada), &hourly()).await;
    assert_eq!(world.get("/scheduling/slots").await["data"][1], own);
    world.call(Method::DELETE, &format!("/social-accounts/{ada}"), None).await;
    assert_eq!(world.get("/scheduling/slots").await["data"].as_array().unwrap().len(), 1);
    fail(find(&ada), 422, "account_not_found").await;
    let body = json!({ "social_account_id": ada, "slots": [] });
    let put = request(&world, Method::PUT, "/scheduling/slots").json(&body);
    let (_, problem) = fail(put, 422, "account_not_found").await;
    assert_eq!(problem["errors"][0]["path"], json!(["social_account_id"]));
    assert_eq!(world.connect("x", "ada").await, ada);
    assert_eq!(world.get("/scheduling/slots").await["data"][1]["id"], own["id"]);
}

#[tokio::test]
async fn invalid_slots_are_reported() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let one = |weekday: Value, time: Value| json!({ "slots": [{ "weekday": weekday, "time": time }] });
    let at = |time: &str| one(json!("monday"), json!(time));
    let noon = json!({ "weekday": "monday", "time": "12:00" });
    let bad_time = || json!([[["slots", 0, "time"], "invalid_string"]]);
    for (body, expected) in [
        (json!({}), json!([[["slots"], "invalid_type"]])),
        (json!({ "slots": null }), json!([[["slots"], "invalid_type"]])),
        (
            json!({ "slots": [7, {}] }),
            json!([
                [["slots", 0], "invalid_type"],
                [["slots", 1, "weekday"], "invalid_type"],
                [["slots", 1, "time"], "invalid_type"],
            ]),
        ),
        (json!({ "slots": vec![&noon; 169] }), Value::Null),
        (json!({ "slots": [noon, noon] }), json!([[["slots", 1], "custom"]])),
        (at("24:00"), bad_time()),
        (at("9:00"), bad_time()),
        (at("09:60"), bad_time()),
        (at("09:00:00"), bad_time()),
        (
            at("09:00\u{0}"),
            json!([[["slots", 0, "time"], "invalid_string"], [["slots", 0, "time"], "custom"]]),
        ),
        (at(""), bad_time()),
        (one(json!("Monday"), json!("09:00")), json!([[["slots", 0, "weekday"], "invalid_enum_value"]])),
        (
            one(json!(1), json!(900)),
            json!([[["slots", 0, "weekday"], "invalid_type"], [["slots", 0, "time"], "invalid_type"],]),
        ),
        (
            json!({ "slots": [], "social_account_id": "ada" }),
            json!([[["social_account_id"], "invalid_string"]]),
        ),
    ] {
        let mut body = body;
        body.as_object_mut().unwrap().entry("social_account_id").or_insert(Value::Null);
        let put = request(&world, Method::PUT, "/scheduling/slots").json(&body);
        let (_, problem) = fail(put, 400, "invalid_request").await;
        let reported = problem["errors"].as_array().unwrap().iter();
        let reported: Value = reported.map(|issue| json!([issue["path"], issue["code"]])).collect();
        assert!(
            reported == expected || expected.is_null() && reported[0] == json!([["slots"], "too_big"]),
            "{problem}"
        );
    }
    let put = |body: Value| request(&world, Method::PUT, "/scheduling/slots").json(&body);
    let (_, problem) = fail(put(at("24:00")), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["validation"], "time");
    // A misspelled member does not replace the organization's slots.
    let misspelled = json!({ "account_id": "ada", "slots": [noon] });
    let (_, problem) = fail(put(misspelled), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["social_account_id"]), "{problem}");
    assert_eq!(world.get("/scheduling/slots").await, json!({ "data": [] }));

    set(&world, None, &hourly()).await;
    for (query, path) in [
        ("", "account"),
        ("?account=", "account"),
        ("?account=ada&account=ada", "account"),
        ("?account=ada&timezone=Mars/Olympus", "timezone"),
        ("?account=ada&timezone=", "timezone"),
        ("?account=ada&after=soon", "after"),
        ("?account=ada&after=2030-13-01", "after"),
        ("?account=ada&count=many", "count"),
    ] {
        let find = request(&world, Method::GET, &format!("/scheduling/find-slot{query}"));
        let (_, problem) = fail(find, 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], json!([path]), "{query}: {problem}");
    }
    for (count, found) in [("0", 1), ("-7", 1), ("7", 7), ("100", 100), ("99999999999999999999", 100)] {
        let found_slots = world.get(&format!("/scheduling/find-slot?account=ada&count={count}")).await;
        assert_eq!(found_slots["slots"].as_array().unwrap().len(), found, "{count}");
    }
    let mut zoneless = queued("ada");
    zoneless["queue_timezone"] = json!("Berlin");
    let (_, problem) =
        fail(request(&world, Method::POST, "/posts").json(&zoneless), 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["queue_timezone"]));
}

#[tokio::test]
async fn finding_a_slot_respects_its_parameters_and_takes_no_slot() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let slots = json!([
        { "weekday": "sunday", "time": "02:30" },
        { "weekday": "sunday", "time": "03:30" },
        { "weekday": "monday", "time": "09:00" },
    ]);
    set(&world, None, &slots).await;
    let find = async |after: &str, zone: &str, count: usize| {
        let query = format!("account={ada}&after={after}&timezone={zone}&count={count}");
        let found = world.get(&format!("/scheduling/find-slot?{query}")).await;
        assert_eq!((&found["timezone"], &found["slot"]), (&json!(zone), &found["slots"][0]));
        found["slots"].clone()
    };
    // On 31 March 2030 the clocks of Berlin go from 02:00 to 03:00: both slots of that night coincide.
    let spring = ["2030-03-31T01:30:00.000Z", "2030-04-01T07:00:00.000Z", "2030-04-07T00:30:00.000Z"];
    // On 27 October they go from 03:00 back to 02:00: the first 02:30 counts.
    let autumn = ["2030-10-27T00:30:00.000Z", "2030-10-27T02:30:00.000Z", "2030-10-28T08:00:00.000Z"];
    for _ in 0..2 {
        assert_eq!(find("2030-03-30T00:00:00Z", "Europe/Berlin", 3).await, json!(spring));
        assert_eq!(find("2030-10-26T00:00:00Z", "Europe/Berlin", 3).await, json!(autumn));
    }
    assert_eq!(find("2030-03-30T00:00:00Z", "UTC", 1).await, json!(["2030-03-31T02:30:00.000Z"]));
    assert_eq!(find("2030-03-31T02:30:00Z", "UTC", 1).await, json!(["2030-03-31T03:30:00.000Z"]), "after");
    assert_eq!(
        find("2001-01-01T00:00:00Z", "UTC", 4).await,
        json!(open(&world, "ada", 4).await),
        "not before now"
    );
    let last = request(&world, Method::GET, "/scheduling/find-slot?account=ada&after=9999-12-31T23:00:00Z");
    fail(last, 422, "no_open_slot").await;
    assert_eq!(world.get("/posts").await["data"], json!([]));
}

/// Returns the day on which Central Europe changes its clocks: the last Sunday of the month.
fn change(year: i32, month: u32) -> NaiveDate {
    let mut day = NaiveDate::from_ymd_opt(year, month, 31).unwrap();
    while day.weekday() != Weekday::Sun {
        day = day - Days::new(1);
    }
    day
}

#[tokio::test]
async fn queued_posts_keep_local_time_and_fill_at_most_a_year() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    set(&world, Some(&ada), &json!([{ "weekday": "sunday", "time": "02:30" }])).await;
    let mut post = queued("ada");
    post["queue_timezone"] = json!("Europe/Berlin");
    let mut taken = BTreeSet::new();
    for _ in 0..3 {
        let batch = json!({ "posts": vec![&post; 20] });
        let (status, outcomes) = world.call(Method::POST, "/posts/batch", Some(&batch)).await;
        assert_eq!(status, StatusCode::MULTI_STATUS);
        for done in outcomes["data"].as_array().unwrap() {
            assert_eq!((&done["status"], &done["post"]["status"]), (&json!(201), &json!("scheduled")));
            let id = done["post"]["id"].as_str().unwrap();
            taken.insert(time(&world.get(&format!("/posts/{id}")).await["scheduled_at"]));
        }
        for failed in outcomes["errors"].as_array().unwrap() {
            assert_eq!(
                (&failed["status"], &failed["code"]),
                (&json!(422), &json!("no_open_slot")),
                "{failed}"
            );
        }
    }
    // 365 days are 52 weeks and a day, which may be a Sunday.
    assert!((52..=53).contains(&taken.len()), "{taken:?}");
    let dates: Vec<_> = taken.iter().map(DateTime::date_naive).collect();
    assert!(dates.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::weeks(1)), "{dates:?}");
    for at in &taken {
        let date = at.date_naive();
        let (spring, autumn) = (change(date.year(), 3), change(date.year(), 10));
        // On the night without 02:30 the slot is at 03:30, which is 01:30 in UTC, as in winter.
        let hour = if date > spring && date <= autumn { 0 } else { 1 };
        assert_eq!((date.weekday(), at.hour(), at.minute()), (Weekday::Sun, hour, 30), "{at}");
    }
    let (_, problem) = fail(request(&world, Method::POST, "/posts").json(&post), 422, "no_open_slot").await;
    assert_eq!(problem["errors"][0]["path"], json!(["queued_from_account"]), "{problem}");
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&post)).await;
    let issue = &verdict["issues"][0];
    assert_eq!((&verdict["valid"], &issue["code"]), (&json!(false), &json!("no_open_slot")), "{verdict}");
    assert_eq!((&issue["account"], &issue["path"]), (&json!(ada), &json!(["queued_from_account"])));

    // One of many calls gets the last slot, and calls with the same external_ref get its post.
    let newest = world.get("/posts?limit=1").await["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.call(Method::DELETE, &format!("/posts/{newest}"), None).await.0, StatusCode::OK);
    let create = async |number: usize| {
        let mut post = post.clone();
        post["external_ref"] = json!(format!("ref-{}", number % 3));
        world.call(Method::POST, "/posts", Some(&post)).await.0.as_u16()
    };
    let mut statuses = join_all((0..12).map(create)).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 201, 422, 422, 422, 422, 422, 422, 422, 422]);
}

#[tokio::test]
async fn a_hundred_concurrent_posts_to_two_processes_take_a_hundred_slots() {
    let mut world = world().own().start().await;
    let ada = world.connect("x", "ada").await;
    set(&world, None, &hourly()).await;
    let bases = [world.base.clone(), world.run_another_api().await];
    let expected = open(&world, "ada", 100).await;
    let create = async |number: usize, external_ref: Option<&str>| {
        let mut body = queued(&ada);
        body["external_ref"] = json!(external_ref);
        let url = format!("{}/posts", bases[number % 2]);
        let response = world.http.post(url).bearer_auth(&world.key).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    // More at once than both processes have database connections, but too few to time out waiting for one.
    let answers: Vec<_> =
        stream::iter(0..100).map(|number| create(number, None)).buffer_unordered(40).collect().await;
    let mut taken = BTreeSet::new();
    for (status, post) in &answers {
        assert_eq!((*status, &post["status"]), (201, &json!("scheduled")), "{post}");
        taken.insert(post["scheduled_at"].as_str().unwrap().to_owned());
    }
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), expected, "the next hundred, and none left out");

    // Of many calls with one external_ref, one creates a post and takes a slot, any of those that they tried.
    let next = open(&world, "ada", 31).await;
    let answers = join_all((0..30).map(|number| create(number, Some("once")))).await;
    let created = answers.iter().filter(|(status, _)| *status == 201).count();
    assert!(created == 1 && answers.iter().all(|(status, _)| matches!(status, 200 | 201)), "{answers:?}");
    let at = &answers[0].1["scheduled_at"];
    assert!(answers.iter().all(|(_, post)| post["scheduled_at"] == *at));
    let left: Vec<_> = next.into_iter().filter(|slot| at != slot.as_str()).collect();
    assert_eq!(open(&world, "ada", 30).await, left, "one is taken, the others are free");
}

#[tokio::test]
async fn deleting_or_rescheduling_a_post_frees_its_slot() {
    let world = world().start().await;
    let (ada, bob) = (world.connect("x", "ada").await, world.connect("x", "bob").await);
    set(&world, None, &hourly()).await;
    let slots = open(&world, "ada", 4).await;
    let first = async || open(&world, "ada", 1).await.remove(0);
    let (one, two) = (queue(&world, "ada").await, queue(&world, &ada).await);
    assert_eq!(json!([one["scheduled_at"], two["scheduled_at"]]), json!(slots[..2]));
    // Each account has the organization's slots to itself.
    assert_eq!(queue(&world, "bob").await["scheduled_at"], json!(slots[0]));
    // A post with an explicit time takes no slot, and neither does validation.
    world.post(json!({ "content": "At", "accounts": ["ada"], "scheduled_at": slots[2] })).await;
    let mut other = queued("ada");
    other["content"] = json!("Another text");
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&other)).await;
    assert_eq!((&verdict["valid"], &verdict["issues"]), (&json!(true), &json!([])));
    assert_eq!(first().await, slots[2]);

    let path = format!("/posts/{}", one["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    assert_eq!(first().await, slots[0]);
    let three = queue(&world, "ada").await;
    assert_eq!(three["scheduled_at"], json!(slots[0]));

    // Setting another time frees the slot; queuing again takes the next open one.
    let moved = patch(&world, &three, json!({ "scheduled_at": "2040-01-01T00:00:00Z" })).await;
    assert_eq!((&moved["status"], first().await), (&json!("scheduled"), slots[0].clone()));
    let back = patch(&world, &three, json!({ "queued_from_account": "ada" })).await;
    assert_eq!((&back["status"], &back["scheduled_at"]), (&json!("scheduled"), &json!(slots[0])));
    // A post may take the slot that it already has, and setting the same time keeps the slot.
    let same = patch(&world, &three, json!({ "queued_from_account": ada })).await;
    assert_eq!(same["scheduled_at"], json!(slots[0]));
    let edit = json!({ "content": "Other", "scheduled_at": slots[0], "accounts": ["bob", "ada"] });
    patch(&world, &three, edit).await;
    assert_eq!(first().await, slots[2]);
    // Moving to another queue frees the slot.
    let other = patch(&world, &three, json!({ "queued_from_account": "bob" })).await;
    assert_eq!((&other["scheduled_at"], first().await), (&json!(slots[1]), slots[0].clone()));
    assert_eq!(open(&world, &bob, 1).await, [slots[2].clone()]);
    // Removing the queue's account frees the slot.
    let left = patch(&world, &three, json!({ "accounts": ["ada"] })).await;
    assert_eq!(
        (&left["scheduled_at"], open(&world, &bob, 1).await),
        (&json!(slots[1]), vec![slots[1].clone()])
    );
    patch(&world, &three, json!({ "scheduled_at": "2040-01-01T00:00:00Z" })).await;

    // A post that becomes a draft keeps its time, so it keeps its slot; a draft cannot take one.
    let draft = patch(&world, &two, json!({ "is_draft": true })).await;
    assert_eq!((&draft["status"], &draft["scheduled_at"]), (&json!("draft"), &json!(slots[1])));
    assert_eq!(open(&world, "ada", 2).await, [slots[0].clone(), slots[2].clone()]);
    let edit = request(&world, Method::PATCH, &format!("/posts/{}", two["id"].as_str().unwrap()));
    let (_, problem) = fail(edit.json(&json!({ "queued_from_account": "ada" })), 422, "unprocessable").await;
    assert_eq!(problem["errors"][0]["path"], json!(["queued_from_account"]));
    let released = patch(&world, &two, json!({ "queued_from_account": "ada", "is_draft": false })).await;
    assert_eq!((&released["status"], &released["scheduled_at"]), (&json!("scheduled"), &json!(slots[0])));
    let at_once = patch(&world, &two, json!({ "scheduled_at": null })).await;
    assert_eq!(at_once["scheduled_at"], Value::Null);
    world.ended(&two).await;
    assert_eq!(open(&world, "ada", 2).await, slots[..2]);

    // An edit that finds no slot changes nothing.
    set(&world, None, &json!([])).await;
    let before = world.get(&format!("/posts/{}", three["id"].as_str().unwrap())).await;
    let edit = request(&world, Method::PATCH, &format!("/posts/{}", three["id"].as_str().unwrap()));
    fail(edit.json(&json!({ "queued_from_account": "ada", "content": "No" })), 422, "no_open_slot").await;
    assert_eq!(world.get(&format!("/posts/{}", three["id"].as_str().unwrap())).await, before);
}

#[tokio::test]
async fn concurrent_moves_into_a_queue_take_a_slot_each() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    set(&world, None, &hourly()).await;
    let slots = open(&world, "ada", 24).await;
    let at = json!({ "content": "At", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let posts = join_all((0..12).map(|_| world.post(at.clone()))).await;
    let queue = json!({ "queued_from_account": "ada" });
    let moves = join_all(posts.iter().map(|post| patch(&world, post, queue.clone())));
    let creations = join_all((0..12).map(|_| world.post(queued("ada"))));
    let (moved, created) = futures::join!(moves, creations);
    let taken: BTreeSet<_> =
        moved.iter().chain(&created).map(|post| post["scheduled_at"].as_str().unwrap().to_owned()).collect();
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), slots);
    // Queuing again, each keeps its slot or takes an earlier one, and no two share one.
    let moved = join_all(posts.iter().map(|post| patch(&world, post, queue.clone()))).await;
    let taken: BTreeSet<_> =
        moved.iter().chain(&created).map(|post| post["scheduled_at"].as_str().unwrap().to_owned()).collect();
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), slots);
}

#[tokio::test]
async fn slots_of_other_owners_are_not_visible() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let own = set(&world, Some(&ada), &hourly()).await;
    let taken = queue(&world, "ada").await;
    let stranger = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [Owner { mode: Mode::Live, ..world.owner }, Owner { org: stranger, ..world.owner }] {
        let theirs = key(&world, owner, &[Scope::All]).await;
        let call = |method, path: &str| {
            world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&theirs)
        };
        let put = |body: Value| call(Method::PUT, "/scheduling/slots").json(&body);
        fail(put(json!({ "social_account_id": ada, "slots": [] })), 422, "account_not_found").await;
        assert!(
            put(json!({ "social_account_id": null, "slots": [] }))
                .send()
                .await
                .unwrap()
                .status()
                .is_success()
        );
        let listed: Value =
            call(Method::GET, "/scheduling/slots").send().await.unwrap().json().await.unwrap();
        assert!(listed["data"].as_array().unwrap().iter().all(|set| set["social_account_id"].is_null()));
        let find = format!("/scheduling/find-slot?account={ada}");
        fail(call(Method::GET, &find), 422, "account_not_found").await;
        fail(call(Method::POST, "/posts").json(&queued(&ada)), 422, "account_not_found").await;
    }
    assert_eq!(world.get("/scheduling/slots").await, json!({ "data": [own] }));
    assert_ne!(json!(open(&world, "ada", 1).await[0]), taken["scheduled_at"]);

    let reader = key(&world, world.owner, &[Scope::SchedulingRead]).await;
    let writer = key(&world, world.owner, &[Scope::SchedulingWrite]).await;
    for (key, method, path, body, lacking) in [
        (&reader, Method::PUT, "/scheduling/slots", Some("{"), "scheduling:write"),
        (&writer, Method::GET, "/scheduling/slots", None, "scheduling:read"),
        (&writer, Method::GET, "/scheduling/find-slot?account=ada", None, "scheduling:read"),
    ] {
        let call = world.http.request(method, format!("{}{path}", world.base)).bearer_auth(key);
        let call = call.body(body.unwrap_or_default());
        let (_, problem) = fail(call, 403, "insufficient_scope").await;
        assert!(problem["detail"].as_str().unwrap().contains(lacking), "{problem}");
    }
    // A username that two accounts share is ambiguous.
    world.connect("threads", "eve").await;
    world.connect("x", "eve").await;
    let find = request(&world, Method::GET, "/scheduling/find-slot?account=eve");
    let (_, problem) = fail(find, 422, "ambiguous_account").await;
    assert_eq!(problem["errors"][0]["path"], json!(["account"]));
}
