//! Bluesky's own server.

use super::{Proven, ended, rounds, trouble};
use crate::PROGRAM;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tests::{Pds, World};

/// Kills and stops the server while posts are published to it.
pub(super) async fn prove() -> Option<Proven> {
    let pds = Pds::shared().await?;
    let world =
        World::of(&PROGRAM).platforms(&["bluesky"]).set("FANFARE_SANDBOX_URL", pds.internet()).start().await;
    let account = pds.account("ada").await;
    let login = json!({ "identifier": "ada.test", "app_password": account.app_password });
    let (status, connected) =
        world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&login)).await;
    assert_eq!(status, StatusCode::CREATED, "{connected}");
    let mut expected = Vec::new();
    let mut publish = async |text: String| {
        let post = world.post(json!({ "content": text, "accounts": [connected["id"]] })).await;
        expected.push(text);
        post
    };
    for round in 0..rounds() {
        // Nobody listens.
        pds.kill().await;
        let post = publish(format!("Killed {round}")).await;
        trouble(&world, &post).await;
        pds.start_again().await;
        assert_eq!(ended(&world, &post).await["status"], "published");

        // The call is at the server, which does not answer; then it is killed, or goes on.
        for is_killed in [true, false] {
            pds.pause().await;
            let post = publish(format!("Stopped {round} {is_killed}")).await;
            let path = format!("/posts/{}", post["id"].as_str().unwrap());
            let begun = |post: &serde_json::Value| post["targets"][0]["attempts"].as_u64() >= Some(1);
            world.until_at(&path, "the attempt", begun).await;
            if is_killed {
                pds.kill().await;
                pds.start_again().await;
            } else {
                pds.resume().await;
            }
            assert_eq!(ended(&world, &post).await["targets"][0]["status"], "published");
        }

        // It has the post, and its answer is lost.
        pds.lose("com.atproto.repo.putRecord").await;
        let post = publish(format!("Lost {round}")).await;
        assert_eq!(ended(&world, &post).await["status"], "published");
    }
    let posts = pds.posts(&account).await;
    let mut found: Vec<_> = posts.iter().map(|post| post["value"]["text"].as_str().unwrap()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "each post once");
    Some(Proven {
        program: "Bluesky's server (`@atproto/pds`)",
        kills: 2 * rounds(),
        stops: 2 * rounds(),
        things: format!("{} posts are there once", expected.len()),
    })
}
