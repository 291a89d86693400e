//! Pictures that cost much to decode: they delay nobody else's, and end with a reason that people can read.

use crate::{files::shelf, pictures, world};
use ::media::FitError;
use domain::{Fit, MediaKind, Mode, Owner, scope::Scope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use store::people::{
    keys::{self, NewKey},
    organizations,
};
use tests::{
    World, now,
    samples::{blank_webp, flicker, painting},
};
use tokio::sync::watch;
use uuid::Uuid;

/// Longest time in which a worker stops that publishes nothing: much less than its grace period.
const STOP_LIMIT: Duration = Duration::from_secs(40);

/// Creates another organization and makes the world act for it. Returns the key of the first one.
async fn change_tenant(world: &mut World) -> String {
    let owner = Owner { org: organizations::create(&world.db, "Other").await.unwrap(), mode: Mode::Test };
    let new = NewKey { owner, name: "other".to_owned(), scopes: vec![Scope::All], expires_at: None };
    let key = keys::create(&world.db, new, now()).await.unwrap().1;
    world.owner = owner;
    std::mem::replace(&mut world.key, key)
}

fn post(medium: &Value, account: &str) -> Value {
    json!({ "containers": [{ "content": "Look", "media": [{ "id": medium["id"] }] }], "accounts": [account] })
}

/// As many as 5 attempts at a time wait for these pictures, and each upload has a thumbnail to be made.
#[tokio::test]
async fn the_pictures_of_one_organization_delay_no_other() {
    let mut world = world().own().platforms(&["instagram"]).start().await;
    let account = world.connect("instagram", "ada").await;
    let mut posts = Vec::new();
    for number in 0..5 {
        let medium = world.medium(&format!("{number}.webp"), None, blank_webp(10_000, 10_000 - number)).await;
        posts.push(world.post(post(&medium, &account)).await);
    }
    let key = change_tenant(&mut world).await;
    let account = world.connect("instagram", "bob").await;
    for _ in 0..3 {
        // Ready at once, though the others are not.
        let medium = world.medium("a.png", None, painting(400, 400)).await;
        let ended = world.ended(&world.post(post(&medium, &account)).await).await;
        assert_eq!(ended["status"], "published", "{ended:#}");
    }
    world.key = key;
    for post in posts {
        let ended = world.ended(&post).await;
        let target = &ended["targets"][0];
        let reason = target["error_message"].as_str().unwrap_or_default();
        let is_told = target["status"] == "published" || reason.contains("takes more than 30 s of computing");
        assert!(is_told, "{ended:#}");
    }
}

/// X takes animations of 1280 by 1080 pixels, 350 frames and 300 million pixels in all frames together.
#[tokio::test]
async fn an_animation_that_costs_too_much_is_refused_with_the_reason() {
    let world = world().platforms(&["x"]).start().await;
    let account = world.connect("x", "ada").await;
    for (bytes, reason) in [
        (
            flicker(2000, 2000, 249),
            "it is not scaled, since its 249 frames have more than 100 million pixels together",
        ),
        (flicker(100, 100, 351), "takes gif of 350 frames, and this has 351"),
        (
            flicker(1200, 1000, 251),
            "takes gif of 300000000 pixels in all frames together, and this has 301200000",
        ),
    ] {
        let medium = world.medium("a.gif", None, bytes).await;
        let (status, problem) = world.call(Method::POST, "/posts", Some(&post(&medium, &account))).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("content_rejected"))
        );
        let told = problem["errors"].as_array().unwrap();
        let is_told = |issue: &Value| issue["message"].as_str().unwrap().contains(reason);
        assert!(told.iter().any(is_told), "{reason}: {problem:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_the_decoding_of_a_picture() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    let bytes = blank_webp(10_000, 10_000);
    let medium = pictures::stored(&shelf, 1, &bytes).await;
    let fit = Fit {
        kind: MediaKind::Image,
        width: 100,
        height: 100,
        shaping: None,
        max_bytes: 1 << 20,
        keeps_transparency: true,
    };
    let asset = pictures::asset(1);
    let stop = watch::Sender::new(false);
    let fitting = {
        let (shelf, asset, stopped) = (shelf.clone(), asset.clone(), stop.subscribe());
        tokio::spawn(async move { shelf.fit(&asset, medium.size_bytes, &fit, &stopped).await })
    };
    // The file is read, and its decoder begins.
    tokio::task::yield_now().await;
    stop.send_replace(true);
    let ended = fitting.await.unwrap();
    assert!(matches!(ended, Err(FitError::NotNow("the worker stops"))), "{ended:?}");
    // The turn is free for the next file as soon as the decoder has noticed.
    let go_on = watch::Sender::new(false);
    let made = shelf.fit(&asset, medium.size_bytes, &fit, &go_on.subscribe()).await.unwrap();
    assert_eq!((made.width, made.height), (100, 100));
}

/// A process that stops waits for no decoder.
#[tokio::test]
async fn a_worker_stops_while_it_decodes() {
    let mut world = world().own().platforms(&["instagram"]).start().await;
    let account = world.connect("instagram", "ada").await;
    let medium = world.medium("a.webp", None, blank_webp(10_000, 10_000)).await;
    let created = world.post(post(&medium, &account)).await;
    let id = created["id"].as_str().unwrap();
    world.until(id, "the attempt to begin", |post| post["status"] == "publishing").await;
    let stopped = tokio::time::timeout(STOP_LIMIT, world.stop("all")).await;
    assert!(stopped.expect("it does not wait for the picture"));
    world.run("all").await;
    let ended = world.ended(&created).await;
    let status = &ended["targets"][0]["status"];
    assert!(["published", "dead"].iter().any(|end| status == end), "{ended:#}");
}
