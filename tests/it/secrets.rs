//! Secrets open for workers only, with keys that can be changed.

use crate::{
    connect::{finalize, several},
    world,
};
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::process::Stdio;
use store::{
    accounts,
    vault::{self, KeyId, Opener, PrivateKey},
};
use tests::{Receiver, World};
use tokio::io::{AsyncBufReadExt, BufReader};

/// A client secret of an OAuth app.
const CLIENT_SECRET: &str = "planted-client-secret-5dbd1b2c";

async fn publishes(world: &World, content: &str, account: &str) {
    let post = world.post(json!({ "content": content, "accounts": [account] })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{content}: {ended:#}");
}

#[tokio::test]
async fn the_api_serves_without_the_key_that_opens() {
    let mut world = world().start().await;
    let account = world.connect("x", "ada").await;
    assert!(world.stop("all").await);
    let ring = world.set("FANFARE_OPEN_KEYS", "").unwrap();
    world.run("api").await;
    world.get(&format!("/social-accounts/{account}")).await;
    let app = json!({ "platform": "youtube", "client_id": "id", "client_secret": CLIENT_SECRET });
    assert_eq!(world.call(Method::POST, "/social-networks", Some(&app)).await.0, StatusCode::CREATED);
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let post = world.post(json!({ "content": "Sealed", "accounts": ["ada"] })).await;
    let refused = world.command(&["worker"]).await;
    assert!(!refused.status.success(), "a worker can do nothing without it");
    world.set("FANFARE_OPEN_KEYS", &ring);
    world.run("worker").await;
    assert_eq!(world.ended(&post).await["status"], "published");
    receiver.events(&["post.published"]).await;
}

#[tokio::test]
async fn keys_are_changed_while_everything_runs() {
    let mut world = world().start().await;
    let receiver = Receiver::start().await;
    let webhook = world.subscribe(&receiver.url).await;
    let app = json!({ "platform": "youtube", "client_id": "id", "client_secret": CLIENT_SECRET });
    assert_eq!(world.call(Method::POST, "/social-networks", Some(&app)).await.0, StatusCode::CREATED);
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(world.connect("x", &format!("user{n}")).await);
    }
    ids.sort_unstable();
    let token = several(&world, "google_business", "ada").await;
    publishes(&world, "With the old key", "user0").await;

    // Workers learn the new key before anybody seals with it.
    let new = PrivateKey::generate();
    let old = world.set("FANFARE_OPEN_KEYS", "").unwrap();
    world.set("FANFARE_OPEN_KEYS", &format!("2:{},{old}", new.reveal()));
    world.set("FANFARE_SEAL_KEY", &format!("2:{}", new.public()));
    assert!(world.stop("all").await);
    world.run("all").await;
    publishes(&world, "With both keys", "user1").await;

    // Half-way through the accounts it meets a row that is in use, and is killed there.
    let middle = ids[6].parse().unwrap();
    let mut busy = world.db.begin().await.unwrap();
    let status = accounts::AccountStatus::TokenExpired;
    assert!(accounts::set_status(&mut busy, world.owner, middle, status, None, tests::now()).await.unwrap());
    let mut child = world.spawn(&["key", "reseal", "--batch", "2"], Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it runs until it is killed");
        if line.contains("6 sealed anew, about 6 left") {
            break;
        }
    }
    publishes(&world, "Between the keys", "user2").await;
    child.kill().await.unwrap();
    let only_new = Opener::new((KeyId(2), new.clone()), []);
    assert_eq!(opened(&world, &only_new, &ids).await, 6);
    busy.rollback().await.unwrap();

    let done = world.command(&["key", "reseal", "--batch", "2"]).await;
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    // Six accounts, the client secret, the signing secret and the login that waits for a choice. What the
    // killed one was waiting to write, Postgres may have written all the same.
    assert!(["Sealed 9 values anew", "Sealed 8 values anew"].iter().any(|end| said.contains(end)), "{said}");
    assert_eq!(opened(&world, &only_new, &ids).await, 12);
    let again = world.command(&["key", "reseal"]).await;
    assert!(String::from_utf8(again.stdout).unwrap().contains("Sealed 0 values anew"));

    // The old key is gone: all that was kept is still good.
    world.set("FANFARE_OPEN_KEYS", &format!("2:{}", new.reveal()));
    assert!(world.stop("all").await);
    world.run("all").await;
    let (_, offered) = world.call(Method::GET, &format!("/social-accounts/pending/{token}"), None).await;
    let (status, chosen) = finalize(&world, &token, &[offered["data"][0]["id"].as_str().unwrap()]).await;
    assert_eq!(status, StatusCode::CREATED, "{chosen}");
    let before = receiver.all().len();
    for n in [0, 6, 11] {
        publishes(&world, "With the new key", &format!("user{n}")).await;
    }
    let arrived = receiver.until("signed deliveries", |all| all.len() >= before + 6).await;
    let secret = webhook["signing_secret"].as_str().unwrap();
    assert!(arrived.iter().all(|delivery| delivery.signed(secret).is_some()));
}

#[tokio::test]
async fn a_key_that_is_missing_is_told_and_what_it_sealed_is_left_alone() {
    let mut world = world().start().await;
    let account = world.connect("x", "ada").await;
    let stranger = PrivateKey::generate();
    let ring = world.set("FANFARE_OPEN_KEYS", &format!("7:{}", stranger.reveal())).unwrap();
    let refused = world.command(&["key", "reseal"]).await;
    let (said, why) =
        (String::from_utf8(refused.stdout).unwrap(), String::from_utf8(refused.stderr).unwrap());
    assert!(!refused.status.success());
    assert!(said.contains(&account) && said.contains("key 1, which is not in the ring"), "{said}");
    assert!(why.contains("1 still need another key"), "{why}");
    world.set("FANFARE_OPEN_KEYS", &ring);
    publishes(&world, "As before", "ada").await;
}

/// How many of the accounts' grants this ring opens.
async fn opened(world: &World, opener: &Opener, ids: &[String]) -> usize {
    let mut count = 0;
    for id in ids {
        let id = id.parse().unwrap();
        let grant = accounts::grant(&world.db, world.owner, id).await.unwrap().unwrap();
        count += usize::from(opener.open(&grant.sealed, &vault::aad_grant(world.owner, id)).is_ok());
    }
    count
}
