//! Batches: each item has the same outcome as in a request of its own.

use crate::world;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn each_item_has_its_own_outcome() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = |content: &str| json!({ "content": content, "accounts": ["ada"], "is_draft": true });
    let first = world.post(json!({ "content": "First", "accounts": ["ada"], "external_ref": "seen" })).await;
    let items = json!([
        draft("One"),
        {},
        { "content": "Two", "accounts": ["nobody"] },
        { "content": "Again", "accounts": ["ada"], "external_ref": "seen" },
        7,
        null,
        { "content": "Now", "accounts": ["ada"], "external_ref": "twice" },
        { "content": "Now again", "accounts": ["ada"], "external_ref": "twice" },
    ]);
    let request = world.http.post(format!("{}/posts/batch", world.base)).bearer_auth(&world.key);
    let response = request.header("Idempotency-Key", "ignored").json(&json!({ "posts": items })).send().await;
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::MULTI_STATUS);
    let body: Value = response.json().await.unwrap();
    let data = body["data"].as_array().unwrap();
    let reported: Vec<_> = data.iter().map(|item| json!([item["index"], item["status"]])).collect();
    assert_eq!(json!(reported), json!([[0, 201], [3, 200], [6, 201], [7, 200]]), "{body:#}");
    assert_eq!((&data[1]["post"]["id"], &data[2]["post"]["id"]), (&first["id"], &data[3]["post"]["id"]));
    assert_eq!(data[0]["post"]["status"], "draft");
    let errors = body["errors"].as_array().unwrap();
    let reported: Vec<_> = errors
        .iter()
        .map(|error| json!([error["index"], error["status"], error["title"], error["code"]]))
        .collect();
    assert_eq!(
        json!(reported),
        json!([
            [1, 400, "Bad Request", "invalid_request"],
            [2, 422, "Unprocessable Entity", "account_not_found"],
            [4, 400, "Bad Request", "invalid_request"],
            [5, 400, "Bad Request", "invalid_request"],
        ]),
        "{body:#}"
    );
    // All errors of an item are returned, with paths relative to the item.
    assert_eq!(errors[0]["errors"].as_array().unwrap().len(), 2, "{body:#}");
    assert_eq!(errors[1]["errors"][0]["path"], json!(["accounts", 0]));
    let now = world.ended(&data[2]["post"]).await;
    assert_eq!(now["status"], "published", "{now:#}");

    // The header is ignored: repeating the call creates the draft again.
    let request = world.http.post(format!("{}/posts/batch", world.base)).bearer_auth(&world.key);
    let again = request.header("Idempotency-Key", "ignored").json(&json!({ "posts": [draft("One")] }));
    let again: Value = again.send().await.unwrap().json().await.unwrap();
    assert_eq!(again["data"][0]["status"], 201, "{again}");
    assert_ne!(again["data"][0]["post"]["id"], data[0]["post"]["id"]);
}

#[tokio::test]
async fn a_malformed_batch_is_rejected_as_a_whole() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let draft = json!({ "content": "One", "accounts": ["ada"], "is_draft": true });
    for (body, path, code) in [
        (json!({}), json!(["posts"]), "invalid_type"),
        (json!([draft]), json!([]), "invalid_type"),
        (json!({ "posts": draft }), json!(["posts"]), "invalid_type"),
        (json!({ "posts": null }), json!(["posts"]), "invalid_type"),
        (json!({ "posts": vec![&draft; 21] }), json!(["posts"]), "too_big"),
    ] {
        let (status, problem) = world.call(Method::POST, "/posts/batch", Some(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {problem}");
        let issue = &problem["errors"][0];
        assert_eq!((&issue["path"], &issue["code"]), (&path, &json!(code)), "{body}");
    }
    let (status, none) = world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": [] }))).await;
    assert_eq!((status, none), (StatusCode::MULTI_STATUS, json!({ "data": [], "errors": [] })));
    let (status, body) =
        world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": vec![&draft; 20] }))).await;
    assert_eq!((status.as_u16(), body["data"].as_array().unwrap().len()), (207, 20));
    assert_eq!(world.get("/posts?limit=100").await["data"].as_array().unwrap().len(), 20);
}
