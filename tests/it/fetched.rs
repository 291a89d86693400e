//! Files that a post names by their addresses.

use crate::world;
use poem::{
    Endpoint, Request, Response, Server,
    http::Method as HttpMethod,
    listener::{Acceptor, Listener, TcpListener},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tests::{World, samples::png};
use tokio::{sync::Semaphore, task::JoinHandle};

/// A server of files, which answers when it is let: a picture at `/a.png`, a page at `/page`, else 404.
#[derive(Clone)]
struct Origin {
    picture: Vec<u8>,
    permits: Arc<Semaphore>,
}

impl Endpoint for Origin {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        assert_eq!(request.method(), HttpMethod::GET);
        let _permit = self.permits.acquire().await.expect("an open semaphore");
        Ok(match request.uri().path() {
            "/a.png" => Response::builder().body(self.picture.clone()),
            "/page" => Response::builder().body("<!DOCTYPE html><html></html>"),
            _ => Response::builder().status(StatusCode::NOT_FOUND).finish(),
        })
    }
}

/// Starts an [`Origin`] that answers nothing yet, at an address that only `FANFARE_EGRESS_ALLOW` opens.
pub(crate) async fn serve() -> (String, Arc<Semaphore>, JoinHandle<std::io::Result<()>>) {
    let acceptor = TcpListener::bind("127.0.0.2:0").into_acceptor().await.unwrap();
    let url = format!("http://{}", acceptor.local_addr()[0].as_socket_addr().unwrap());
    let permits = Arc::new(Semaphore::new(0));
    let origin = Origin { picture: png(30, 20), permits: Arc::clone(&permits) };
    (url, permits, tokio::spawn(Server::new_with_acceptor(acceptor).run(origin)))
}

pub(crate) async fn start() -> World {
    world().set("FANFARE_EGRESS_ALLOW", "127.0.0.2/32").start().await
}

async fn assets(world: &World) -> usize {
    world.get("/media").await["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_post_waits_for_a_file_at_an_address() {
    let world = start().await;
    world.connect("x", "ada").await;
    let (origin, permits, serving) = serve().await;
    let url = format!("{origin}/a.png");
    let body = json!({
        "containers": [{ "content": "With a picture", "media": [{ "url": url, "alt_text": "A cup" }] }],
        "accounts": ["ada"], "external_ref": "once",
    });
    let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!((status, &verdict["valid"]), (StatusCode::OK, &json!(true)), "{verdict}");
    let issue = &verdict["issues"][0];
    assert_eq!((&issue["severity"], &issue["code"]), (&json!("warning"), &json!("media_not_checked")));
    assert_eq!(issue["path"], json!(["containers", 0, "media"]));
    assert_eq!((&verdict["variants"], &verdict["targets"][0]["variant"]), (&json!([]), &json!(0)));
    let mut own = body.clone();
    own["config"] = json!({ "x": { "media": [{ "url": url, "alt_text": "A mug" }] } });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&own)).await;
    let shown = &verdict["variants"][0]["containers"][0]["media"];
    assert_eq!((&shown[0]["url"], &shown[0]["alt_text"]), (&json!(url), &json!("A mug")), "{verdict}");
    assert_eq!(assets(&world).await, 0, "validating stores nothing");

    let post = world.post(body.clone()).await;
    let asset = post["containers"][0]["media"][0]["id"].as_str().unwrap();
    let (status, again) = world.call(Method::POST, "/posts", Some(&body)).await;
    assert_eq!((status, &again["containers"]), (StatusCode::OK, &post["containers"]));
    assert_eq!(assets(&world).await, 1, "a repeated call fetches nothing again");

    let timeline = format!("/posts/{}/timeline", post["id"].as_str().unwrap());
    let waits = |timeline: &Value| {
        timeline["data"].as_array().unwrap().iter().any(|entry| entry["kind"] == "waiting")
    };
    world.until_at(&timeline, "the target to wait", waits).await;
    let waiting = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    let target = &waiting["targets"][0];
    assert_eq!((&target["status"], &target["attempts"]), (&json!("queued"), &json!(0)), "{waiting}");
    assert_eq!(target["error_code"], Value::Null);
    assert_eq!(world.accepted("x", "ada").await, 0);

    permits.add_permits(1);
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert_eq!(ended["targets"][0]["attempts"], 1, "waiting is no attempt");
    assert_eq!(world.get(&format!("/media/{asset}")).await["status"], "ready");
    let page = ended["targets"][0]["platform_post_url"].as_str().unwrap();
    let page = world.http.get(page).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("A cup"), "{page}");
    serving.abort();
}

#[tokio::test]
async fn a_file_that_cannot_be_published_ends_the_target_with_its_reason() {
    let world = start().await;
    world.connect("x", "ada").await;
    let (origin, permits, serving) = serve().await;
    permits.add_permits(1);
    for (path, reason) in [("/none", "404"), ("/page", "not supported")] {
        let media = json!([{ "url": format!("{origin}{path}") }]);
        let body =
            json!({ "containers": [{ "content": "With a file", "media": media }], "accounts": ["ada"] });
        let ended = world.ended(&world.post(body).await).await;
        let target = &ended["targets"][0];
        assert_eq!((&ended["status"], &target["status"]), (&json!("failed"), &json!("dead")), "{ended:#}");
        assert!(target["error_message"].as_str().unwrap().contains(reason), "{path}: {target}");
    }
    assert!(world.journal("x", "ada").await.is_empty(), "nothing was asked of the platform");
    serving.abort();
}

#[tokio::test]
async fn a_fetched_file_is_held_to_the_platforms_limits_before_anything_is_published() {
    let world = world().platforms(&["youtube"]).set("FANFARE_EGRESS_ALLOW", "127.0.0.2/32").start().await;
    world.connect("youtube", "ada").await;
    let (origin, permits, serving) = serve().await;
    let media = json!([{ "url": format!("{origin}/a.png") }]);
    let body = json!({ "containers": [{ "content": "A video?", "media": media }], "accounts": ["ada"] });
    let post = world.post(body).await;
    permits.add_permits(1);
    let ended = world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("rejected_422")),
        "{ended:#}"
    );
    let message = target["error_message"].as_str().unwrap();
    assert!(message.contains("would refuse the post"), "{message}");
    assert_eq!(world.accepted("youtube", "ada").await, 0);
    serving.abort();
}

/// Which kind of post it becomes is known with the file: a label that this kind has no place for is refused then, not
/// before, and not dropped.
#[tokio::test]
async fn a_setting_for_some_kinds_of_post_is_checked_with_the_file() {
    let world = world().platforms(&["facebook"]).set("FANFARE_EGRESS_ALLOW", "127.0.0.2/32").start().await;
    world.connect("facebook", "ada").await;
    let (origin, permits, serving) = serve().await;
    let media = json!([{ "url": format!("{origin}/a.png") }]);
    let body = json!({
        "containers": [{ "content": "A picture", "media": media }], "accounts": ["ada"],
        "config": { "facebook": { "is_ai_generated": true } },
    });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(verdict["valid"], true, "{verdict:#}");
    assert_eq!(verdict["issues"].as_array().unwrap().len(), 1, "{verdict:#}");
    let post = world.post(body).await;
    permits.add_permits(1);
    let target = &world.ended(&post).await["targets"][0];
    let message = target["error_message"].as_str().unwrap();
    assert!(message.contains("is_ai_generated"), "{target:#}");
    assert_eq!(world.accepted("facebook", "ada").await, 0);
    serving.abort();
}

#[tokio::test]
async fn addresses_are_checked_and_each_is_fetched_once() {
    let world = start().await;
    world.connect("x", "ada").await;
    let (origin, permits, serving) = serve().await;
    let create = async |media: Value| {
        let body = json!({ "containers": [{ "content": "a", "media": media }], "accounts": ["ada"], "is_draft": true });
        world.call(Method::POST, "/posts", Some(&body)).await
    };
    let id = uuid::Uuid::nil();
    for (media, member) in [
        (json!([{ "url": "http://10.0.0.1/a.png" }]), "url"),
        (json!([{ "url": "ftp://example.com/a.png" }]), "url"),
        (json!([{ "url": "a.png" }]), "url"),
        (json!([{ "url": format!("{origin}/a.png"), "id": id }]), "url"),
        (json!([{ "alt_text": "a" }]), "id"),
    ] {
        let (status, problem) = create(media).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        assert_eq!(problem["errors"][0]["path"], json!(["containers", 0, "media", 0, member]), "{problem}");
    }
    assert_eq!(assets(&world).await, 0);
    let many: Vec<_> = (0..51).map(|n| json!({ "url": format!("{origin}/{n}") })).collect();
    assert_eq!(create(json!(many)).await.0, StatusCode::BAD_REQUEST);

    // One file for two containers and an override, which shows the asset's id from then on.
    let item = json!({ "url": format!("{origin}/a.png") });
    let body = json!({
        "containers": [{ "content": "a", "media": [item] }, { "content": "b", "media": [item] }],
        "accounts": ["ada"], "is_draft": true, "config": { "x": { "media": [item] } },
    });
    let draft = world.post(body).await;
    let asset = &draft["containers"][0]["media"][0]["id"];
    assert_eq!(draft["containers"][1]["media"][0]["id"], *asset);
    assert_eq!(draft["variants"][0]["containers"][0]["media"][0]["id"], *asset);
    assert_eq!(draft["default_config"]["x"]["media"], json!([{ "id": asset }]));
    assert_eq!(assets(&world).await, 1);
    // An edit keeps what is still being fetched, and adds a file of its own.
    let path = format!("/posts/{}", draft["id"].as_str().unwrap());
    let edit = json!({ "config": {}, "is_draft": false });
    let (status, edited) = world.call(Method::PATCH, &path, Some(&edit)).await;
    assert_eq!((status, &edited["variants"]), (StatusCode::OK, &json!([])), "{edited}");
    permits.add_permits(1);
    assert_eq!(world.ended(&draft).await["status"], "published");
    let other = json!({ "url": format!("{origin}/a.png?2") });
    let other = json!({ "containers": [{ "content": "c", "media": [other] }], "accounts": ["ada"], "is_draft": true });
    let other = world.post(other).await;
    let path = format!("/posts/{}", other["id"].as_str().unwrap());
    let replaced =
        json!({ "containers": [{ "content": "c", "media": [{ "url": format!("{origin}/a.png?3") }] }] });
    let (status, edited) = world.call(Method::PATCH, &path, Some(&replaced)).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    let (old, new) = (&other["containers"][0]["media"][0]["id"], &edited["containers"][0]["media"][0]["id"]);
    assert_ne!(old, new);
    for asset in [old, new] {
        let path = format!("/media/{}?wait=30", asset.as_str().unwrap());
        world.until_at(&path, "the file", |asset| asset["status"] == "ready").await;
    }
    serving.abort();
}
