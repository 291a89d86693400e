//! Ceilings of a plan: how much an organization has at a time.

use crate::{
    api::{fail, request},
    media::until,
    world,
};
use bytes::Bytes;
use futures::{StreamExt, channel::mpsc, future::join_all};
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};
use std::io;
use tests::{World, samples::png, wait_until};

const UPGRADE: &str = "https://example.com/up";

/// Starts a world on a plan with these ceilings.
async fn on_plan(ceilings: Value) -> World {
    let mut plan = json!({ "key": "default", "name": "Small", "upgrade_url": UPGRADE });
    plan.as_object_mut().unwrap().extend(ceilings.as_object().unwrap().clone());
    world().set("FANFARE_PLANS", &json!([plan]).to_string()).start().await
}

#[tokio::test]
async fn a_plan_limits_what_an_organization_has_even_when_much_is_created_at_once() {
    let world =
        on_plan(json!({ "webhook_endpoints": 3, "api_keys": 4, "profiles": 3, "team_members": 3 })).await;
    for (member, path, limit, body) in [
        ("webhook_endpoints", "/webhooks", 3, json!({ "url": "http://127.0.0.1:9/hook", "events": ["*"] })),
        // One of them is the caller's.
        ("api_keys", "/api-keys", 4, json!({ "name": "Another", "scopes": ["posts:read"] })),
        ("profiles", "/profiles", 3, json!({ "name": "Brand" })),
        ("team_members", "/team", 3, json!({ "role": "viewer" })),
    ] {
        let make = async |number: usize| {
            let mut body = body.clone();
            if path == "/team" {
                body["email"] = json!(format!("person-{number}@example.com"));
            }
            world.call(Method::POST, path, Some(&body)).await
        };
        let all = join_all((0..12).map(make)).await;
        let (made, refused): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(status, _)| *status == StatusCode::CREATED);
        assert_eq!(made.len(), limit - usize::from(path == "/api-keys"), "{path}");
        for (status, problem) in refused {
            let said =
                ["code", "reason", "upgradeUrl"].map(|name| problem[name].as_str().unwrap_or_default());
            assert_eq!(
                (status.as_u16(), said),
                (402, ["quota_exceeded", "quota_exceeded", UPGRADE]),
                "{problem}"
            );
            assert_eq!((&problem["limit"], &problem["used"]), (&json!(limit), &json!(limit)), "{problem}");
        }
        let usage = world.get("/account/usage").await["usage"][member].clone();
        assert_eq!(usage, json!({ "current": limit, "limit": limit }), "{member}");
        let path = format!("{path}/{}", made[0].1["id"].as_str().unwrap());
        assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
        assert_eq!([make(20).await.0, make(21).await.0], [StatusCode::CREATED, StatusCode::PAYMENT_REQUIRED]);
    }
    // At the limit, an invitation of a member still gets 409, and a key can be rotated.
    let (_, team) = world.call(Method::GET, "/team", None).await;
    let body = json!({ "email": team["data"][0]["email"], "role": "viewer" });
    fail(request(&world, Method::POST, "/team").json(&body), 409, "conflict").await;
    let (_, keys) = world.call(Method::GET, "/api-keys", None).await;
    let rotate = format!("/api-keys/{}/rotate", keys["data"][0]["id"].as_str().unwrap());
    assert_eq!(world.call(Method::POST, &rotate, None).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn endpoints_and_keys_are_limited_without_plans() {
    let world = world().start().await;
    let usage = world.get("/account/usage").await["usage"].clone();
    for (member, limit) in [
        ("webhook_endpoints", json!(20)),
        ("api_keys", json!(100)),
        ("profiles", json!(1000)),
        ("team_members", json!(1000)),
        ("slots", Value::Null),
        ("storage_bytes", Value::Null),
    ] {
        assert_eq!(usage[member]["limit"], limit, "{usage}");
    }
    let body = json!({ "url": "http://127.0.0.1:9/hook", "events": ["*"] });
    let all = join_all((0..30).map(|_| world.call(Method::POST, "/webhooks", Some(&body)))).await;
    assert_eq!(all.iter().filter(|(status, _)| *status == StatusCode::CREATED).count(), 20);
}

#[tokio::test]
async fn a_plan_limits_the_slots_of_all_accounts_together() {
    let world = on_plan(json!({ "slots": 3 })).await;
    let ada = world.connect("x", "ada").await;
    let slot = |hour: usize| json!({ "weekday": "monday", "time": format!("{hour:02}:00") });
    let set = async |account: Option<&str>, count: usize| {
        let slots: Vec<_> = (0..count).map(slot).collect();
        let body = json!({ "social_account_id": account, "slots": slots });
        world.call(Method::PUT, "/scheduling/slots", Some(&body)).await
    };
    assert_eq!(set(None, 2).await.0, StatusCode::OK);
    let (status, problem) = set(Some(&ada), 2).await;
    assert_eq!(
        (status.as_u16(), &problem["limit"], &problem["used"]),
        (402, &json!(3), &json!(2)),
        "{problem}"
    );
    assert_eq!(set(Some(&ada), 1).await.0, StatusCode::OK);
    // Replaced slots do not count, and removing slots is always possible.
    assert_eq!([set(None, 2).await.0, set(None, 3).await.0], [StatusCode::OK, StatusCode::PAYMENT_REQUIRED]);
    assert_eq!(set(None, 0).await.0, StatusCode::OK);
    let usage = world.get("/account/usage").await["usage"]["slots"].clone();
    assert_eq!(usage, json!({ "current": 1, "limit": 3 }));
}

#[tokio::test]
async fn a_plan_limits_the_storage_of_media() {
    let picture = png(64, 64);
    let size = picture.len();
    let world = on_plan(json!({ "storage_bytes": 3 * size })).await;
    let used = async || world.get("/account/usage").await["usage"]["storage_bytes"]["current"].clone();
    let declare = async |body: Value| world.call(Method::POST, "/media/upload", Some(&body)).await;
    let put = async |upload: &Value, body: Body| {
        let answer = world.http.put(upload["upload_url"].as_str().unwrap()).body(body).send().await.unwrap();
        (answer.status(), answer.json::<Value>().await.unwrap_or_default())
    };
    // A declared size counts at once, also of ten announcements side by side.
    let sized = json!({ "filename": "a.png", "size": size });
    let all = join_all((0..10).map(|_| declare(sized.clone()))).await;
    let made: Vec<_> = all.iter().filter(|(status, _)| *status == StatusCode::CREATED).collect();
    assert_eq!((made.len(), used().await), (3, json!(3 * size)));
    let refused = all.iter().find(|(status, _)| *status != StatusCode::CREATED).unwrap();
    assert_eq!((refused.0.as_u16(), &refused.1["code"]), (402, &json!("quota_exceeded")), "{}", refused.1);
    for (_, upload) in &made {
        let path = format!("/media/{}", upload["id"].as_str().unwrap());
        assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    }
    assert_eq!(used().await, json!(0));

    // An undeclared size counts from its upload on.
    world.medium("a.png", None, picture.clone()).await;
    world.medium("b.png", None, picture.clone()).await;
    assert_eq!(used().await, json!(2 * size));
    let undeclared =
        [declare(json!({ "filename": "a.png" })).await.1, declare(json!({ "filename": "b.png" })).await.1];
    let twice = [picture.clone(), picture.clone()].concat();
    let (status, problem) = put(&undeclared[0], twice.clone().into()).await;
    assert_eq!(
        (status.as_u16(), &problem["limit"], &problem["used"]),
        (402, &json!(3 * size), &json!(2 * size))
    );
    // Nor is more taken of a body without a length.
    let pieces = futures::stream::iter([Ok::<_, io::Error>(Bytes::from(twice))]);
    let (status, problem) = put(&undeclared[0], Body::wrap_stream(pieces)).await;
    assert_eq!((status.as_u16(), used().await), (413, json!(2 * size)), "{problem}");
    assert_eq!(put(&undeclared[0], picture.clone().into()).await.0, StatusCode::OK);
    assert_eq!(used().await, json!(3 * size), "a file counts before it is confirmed");
    assert_eq!(put(&undeclared[1], picture.clone().into()).await.0, StatusCode::PAYMENT_REQUIRED);
    assert_eq!(world.confirm(&undeclared[0]).await.0, StatusCode::OK);

    // A file that is fetched is measured on its arrival.
    let path = format!("/media/{}", undeclared[0]["id"].as_str().unwrap());
    let url = world.get(&path).await["url"].clone();
    let import = async || world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
    assert_eq!(import().await.0, StatusCode::PAYMENT_REQUIRED, "the storage is full");
    tests::sql(
        &world.db,
        &format!("update media set size = size - 1 where id = '{}'", undeclared[0]["id"].as_str().unwrap()),
    )
    .await;
    let (status, medium) = import().await;
    assert_eq!(status, StatusCode::ACCEPTED, "{medium}");
    let failed = until(&world, &medium["id"], "failed").await;
    assert_eq!((failed["status"].as_str(), used().await), (Some("failed"), json!(3 * size - 1)), "{failed}");
}

#[tokio::test]
async fn a_plan_limits_the_storage_of_files_that_posts_name() {
    let picture = png(64, 64);
    let size = picture.len();
    let world = on_plan(json!({ "storage_bytes": size + 1 })).await;
    let account = world.connect("x", "ada").await;
    let medium = world.medium("a.png", None, picture).await;
    let body = |external_ref: &str, is_draft: bool| {
        let container = json!({ "content": "Look", "media": [{ "url": medium["url"] }] });
        json!({
            "containers": [container], "accounts": [account], "external_ref": external_ref,
            "is_draft": is_draft,
        })
    };
    // There is room for a byte, so that the file may be fetched, but not for all of it.
    let post = world.post(body("first", false)).await;
    let asset = &post["containers"][0]["media"][0]["id"];
    let failed = until(&world, asset, "failed").await;
    assert_eq!(world.ended(&post).await["status"], "failed", "{failed}");
    let used = async || world.get("/account/usage").await["usage"]["storage_bytes"]["current"].clone();
    assert_eq!(used().await, json!(size));

    let fill = format!("update media set size = size + 1 where id = '{}'", medium["id"].as_str().unwrap());
    tests::sql(&world.db, &fill).await;
    let call = async |method, path: &str, body: Value| world.call(method, path, Some(&body)).await;
    let draft = json!({ "content": "Look", "accounts": [account], "is_draft": true });
    let draft = format!("/posts/{}", world.post(draft).await["id"].as_str().unwrap());
    let containers = json!({ "containers": body("", true)["containers"] });
    for (method, path, body) in [
        (Method::POST, "/posts", body("second", false)),
        (Method::POST, "/posts", body("third", true)),
        (Method::PATCH, &draft, containers),
    ] {
        let (status, problem) = call(method, path, body).await;
        assert_eq!(
            (status.as_u16(), &problem["limit"], &problem["used"]),
            (402, &json!(size + 1), &json!(size + 1)),
            "{path}: {problem}"
        );
    }
    // A repeated call creates nothing, so that it is answered.
    let (status, again) = call(Method::POST, "/posts", body("first", false)).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &post["id"]), "{again}");
}

#[tokio::test]
async fn one_upload_of_a_file_runs_at_a_time() {
    let world = world().start().await;
    let picture = png(64, 64);
    let upload = world.declare(json!({ "filename": "a.png" })).await;
    let url = upload["upload_url"].as_str().unwrap().to_owned();
    let put = async |body: Body| world.http.put(&url).body(body).send().await.unwrap().status();
    let begin = || {
        let (more, pieces) = mpsc::unbounded::<io::Result<Bytes>>();
        more.unbounded_send(Ok(Bytes::copy_from_slice(&picture[..10]))).unwrap();
        (more, tokio::spawn(world.http.put(&url).body(Body::wrap_stream(pieces.map(|piece| piece))).send()))
    };
    let runs = async |is_expected: bool| {
        let query = "select count(*) > 0 from media where upload_id is not null and org_id = $1";
        let look = async || {
            let found: bool =
                sqlx::query_scalar(query).bind(world.owner.org.0).fetch_one(&world.db).await.unwrap();
            if found == is_expected { Ok(()) } else { Err(found) }
        };
        wait_until("a running upload to begin or end", look).await;
    };
    let (more, first) = begin();
    runs(true).await;
    assert_eq!(put(picture.clone().into()).await, StatusCode::CONFLICT);
    more.unbounded_send(Ok(Bytes::copy_from_slice(&picture[10..]))).unwrap();
    drop(more);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    // One whose client hangs up makes way.
    let (_more, second) = begin();
    runs(true).await;
    second.abort();
    runs(false).await;
    assert_eq!(put(picture.clone().into()).await, StatusCode::OK);
    assert_eq!(world.confirm(&upload).await.0, StatusCode::OK);
}
