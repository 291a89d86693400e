//! Validating a post reports the same issues as creating it.

use crate::world;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn validation_reports_each_account_and_stores_nothing() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let sky = world.connect("bluesky", "ada.bsky.social").await;
    let validate = async |body: &Value| world.call(Method::POST, "/posts/validate", Some(body)).await;
    let fit = json!({ "content": "Fits", "accounts": [ada, bob, sky], "external_ref": "ref" });
    let (status, verdict) = validate(&fit).await;
    assert_eq!((status, &verdict["valid"], &verdict["issues"]), (StatusCode::OK, &json!(true), &json!([])));

    // 290 characters fit on Bluesky but not on X, whose accounts are reported one by one.
    let long = json!({
        "containers": [{ "content": "Fits" }, { "content": "a".repeat(290) }],
        "accounts": [ada, sky, bob],
        "x": { "reply_settings": "nobody" },
    });
    let (status, verdict) = validate(&long).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(false)), "{verdict:#}");
    let mut reported: Vec<_> = verdict["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| {
            json!([issue["account"], issue["platform"], issue["severity"], issue["code"], issue["path"]])
        })
        .collect();
    reported.sort_by_key(Value::to_string);
    let mut expected: Vec<_> = [&ada, &bob]
        .into_iter()
        .flat_map(|account| {
            [
                json!([account, "x", "error", "text_too_long", ["containers", 1, "content"]]),
                json!([account, "x", "error", "setting_invalid", ["x", "reply_settings"]]),
            ]
        })
        .collect();
    expected.sort_by_key(Value::to_string);
    assert_eq!(reported, expected, "{verdict:#}");
    let (status, problem) = world.call(Method::POST, "/posts", Some(&long)).await;
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (422, &json!("content_rejected")),
        "creating it fails too"
    );

    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({ "content": "a", "accounts": ["nobody"] }), 422, "account_not_found"),
        (
            json!({ "containers": [{ "content": "", "media": [{ "id": "none" }] }], "accounts": [ada] }),
            422,
            "media_not_ready",
        ),
    ] {
        let (found, problem) = validate(&body).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(world.get("/posts").await["data"], json!([]));
    assert_eq!(world.post(fit).await["external_ref"], "ref", "validating stored no ref");
}
