//! Members of a post's body that the service does not know: a slip must not publish.

use crate::{mcp::refused, world};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::World;

async fn issues(world: &World, method: Method, path: &str, body: &Value) -> (u16, Vec<Value>) {
    let (status, answer) = world.call(method, path, Some(body)).await;
    let errors = answer["errors"].as_array().cloned().unwrap_or_default();
    (status.as_u16(), errors)
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn a_member_that_resembles_a_known_one_is_refused_with_the_right_name() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let scheduled = json!({ "content": "a", "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" });
    let path = format!("/posts/{}", world.post(scheduled).await["id"].as_str().unwrap());
    let base = json!({ "content": "a", "accounts": ["ada"] });
    for (more, path_of, keys, hint) in [
        (json!({ "scheduledAt": "2040-01-01T00:00:00Z" }), json!([]), "scheduledAt", "`scheduled_at`"),
        (json!({ "schedule_at": "2040-01-01T00:00:00Z" }), json!([]), "schedule_at", "`scheduled_at`"),
        (json!({ "isDraft": true }), json!([]), "isDraft", "`is_draft`"),
        (json!({ "draft": true }), json!([]), "draft", "`is_draft`"),
        (json!({ "external-ref": "a" }), json!([]), "external-ref", "`external_ref`"),
        (json!({ "Metadata": {} }), json!([]), "Metadata", "`metadata`"),
        (json!({ "tik_tok": {} }), json!([]), "tik_tok", "`tiktok`"),
        (json!({ "X": {} }), json!([]), "X", "`x`"),
        (json!({ "googleBusiness": {} }), json!([]), "googleBusiness", "`google_business`"),
        (json!({ "media": [{ "id": "a" }] }), json!([]), "media", "`containers`"),
        (json!({ "medias": [] }), json!([]), "medias", "`containers`"),
        (
            json!({ "config": { "x": { "scheduledAt": "2040-01-01T00:00:00Z" } } }),
            json!(["config", "x"]),
            "scheduledAt",
            "`scheduled_at`",
        ),
        (json!({ "x": { "Content": "b" } }), json!(["x"]), "Content", "`content`"),
        (
            json!({ "config": { "x": { "accounts": { "ada": { "contents": "b" } } } } }),
            json!(["config", "x", "accounts", "ada"]),
            "contents",
            "`content`",
        ),
    ] {
        let body = with(base.clone(), &more);
        for (method, path) in
            [(Method::POST, "/posts"), (Method::POST, "/posts/validate"), (Method::PATCH, &*path)]
        {
            let (status, errors) = issues(&world, method, path, &body).await;
            assert_eq!(status, 400, "{more}");
            let [issue] = &errors[..] else { panic!("{more}: {errors:?}") };
            assert_eq!((&issue["path"], &issue["code"]), (&path_of, &json!("unrecognized_keys")), "{issue}");
            assert_eq!(issue["keys"], json!([keys]));
            let message = issue["message"].as_str().unwrap();
            assert!(message.to_lowercase().contains("did you mean") && message.contains(hint), "{message}");
        }
    }
    for (containers, path_of, keys) in [
        (json!([{ "content": "a", "Media": [] }]), json!(["containers", 0]), "Media"),
        (
            json!([{ "content": "a" }, { "content": "b", "contnet": "c" }]),
            json!(["containers", 1]),
            "contnet",
        ),
        (
            json!([{ "content": "a", "media": [{ "url": "https://e.test/a.png", "altText": "b" }] }]),
            json!(["containers", 0, "media", 0]),
            "altText",
        ),
    ] {
        let body = json!({ "containers": containers, "accounts": ["ada"] });
        for (method, path) in
            [(Method::POST, "/posts"), (Method::POST, "/posts/validate"), (Method::PATCH, &*path)]
        {
            let (status, errors) = issues(&world, method, path, &body).await;
            let [issue] = &errors[..] else { panic!("{body}: {errors:?}") };
            assert_eq!((status, &issue["path"], &issue["keys"]), (400, &path_of, &json!([keys])), "{issue}");
        }
        let (_, answer) =
            world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": [body.clone()] }))).await;
        assert_eq!(answer["errors"][0]["errors"][0]["keys"], json!([keys]), "{answer}");
    }
    // Members that belong into each post of a batch publish nothing beside them.
    let batch = json!({ "posts": [with(base, &json!({ "is_draft": true }))], "scheduled_at": "2040-01-01" });
    let (status, errors) = issues(&world, Method::POST, "/posts/batch", &batch).await;
    assert_eq!((status, &errors[0]["keys"]), (400, &json!(["scheduled_at"])), "{errors:?}");
    assert_eq!(world.get("/posts").await["data"].as_array().unwrap().len(), 1, "nothing was created");
}

#[tokio::test]
async fn any_other_member_is_a_warning_of_validate() {
    let world = world().start().await;
    let id = world.connect("x", "ada").await;
    let body = json!({
        "containers": [{ "content": "a", "position": 0, "role": "main" }], "accounts": ["ada"],
        "tenant": "t", "publish_date": "2040-01-01", "labels": ["a"], "config": { "x": {} }, "metadata": { "media": "b" },
    });
    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(true)), "{verdict}");
    let mut found: Vec<_> = verdict["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| {
            assert_eq!((&issue["account"], &issue["platform"]), (&json!(id), &json!("x")), "{issue}");
            (issue["severity"].clone(), issue["code"].clone(), issue["path"].to_string())
        })
        .collect();
    found.sort_by_key(|(.., path)| path.clone());
    let expected = [
        json!(["containers", 0, "position"]),
        json!(["containers", 0, "role"]),
        json!(["labels"]),
        json!(["publish_date"]),
        json!(["tenant"]),
    ];
    let expected = expected.map(|path| (json!("warning"), json!("unknown_member"), path.to_string()));
    assert_eq!(found, expected);
    let post = world.post(with(body, &json!({ "is_draft": true }))).await;

    // A post that was read can be sent back as a whole.
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let (status, edited) = world.call(Method::PATCH, &path, Some(&post)).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    let copy = with(post, &json!({ "accounts": ["ada"] }));
    let (status, copied) = world.call(Method::POST, "/posts", Some(&copy)).await;
    assert_eq!(status, StatusCode::CREATED, "{copied}");
}

#[tokio::test]
async fn other_bodies_that_publish_refuse_slips_as_well() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let failed = json!({ "content": "No #sandbox-400", "accounts": ["ada"] });
    let failed = world.ended(&world.post(failed).await).await;
    let path = format!("/posts/{}", failed["id"].as_str().unwrap());
    // Without it all dead targets would start over.
    let body = json!({ "target": [failed["targets"][0]["id"]] });
    let (status, errors) = issues(&world, Method::POST, &format!("{path}/retry"), &body).await;
    assert_eq!((status, &errors[0]["keys"]), (400, &json!(["target"])), "{errors:?}");
    let target = format!("{path}/targets/{}", failed["targets"][0]["id"].as_str().unwrap());
    let (status, errors) = issues(&world, Method::PATCH, &target, &json!({ "Content": "b" })).await;
    assert!(status == 400 && errors.iter().any(|issue| issue["keys"] == json!(["Content"])), "{errors:?}");
}

#[tokio::test]
async fn tools_take_the_members_of_their_schemas_only() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    let listed = crate::mcp::ask(&world, &world.key, "tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let input = &tool["inputSchema"];
        assert_eq!(input["additionalProperties"], false, "{}", tool["name"]);
        let container = &input["properties"]["containers"]["items"];
        if container.is_object() {
            assert_eq!(container["additionalProperties"], false, "{}", tool["name"]);
            assert_eq!(container["properties"]["media"]["items"]["additionalProperties"], false);
        }
    }
    let post = json!({ "content": "a", "accounts": ["ada"] });
    let deep = json!({ "containers": [{ "content": "a", "title": "b" }], "accounts": ["ada"] });
    for (tool, arguments, path, keys) in [
        (
            "create_post",
            with(post.clone(), &json!({ "media": [{ "url": "https://e.test/a.png" }] })),
            json!([]),
            "media",
        ),
        ("create_post", with(post.clone(), &json!({ "labels": [] })), json!([]), "labels"),
        ("create_post", deep, json!(["containers", 0]), "title"),
        ("validate_post", with(post, &json!({ "labels": [] })), json!([]), "labels"),
        ("list_posts", json!({ "state": "failed" }), json!([]), "state"),
        ("get_post", json!({ "id": "7", "expand": "all" }), json!([]), "expand"),
    ] {
        let problem = refused(&world, &world.key, tool, arguments).await;
        let issue = &problem["errors"][0];
        assert_eq!((&issue["path"], &issue["keys"]), (&path, &json!([keys])), "{tool}: {problem}");
        assert_eq!((&problem["status"], &issue["code"]), (&json!(400), &json!("unrecognized_keys")));
    }
    assert_eq!(world.get("/posts").await["data"], json!([]));
}
