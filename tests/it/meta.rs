//! Meta's platforms through the whole service: publishing in two steps, and tokens without a refresh token.

use crate::world;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::Receiver;

fn target<'a>(post: &'a Value, platform: &str) -> &'a Value {
    post["targets"].as_array().unwrap().iter().find(|target| target["platform"] == platform).unwrap()
}

#[tokio::test]
async fn a_post_and_its_first_comment_are_published_to_threads_and_to_a_page() {
    let world = world().start().await;
    let (threads, page) = (world.connect("threads", "ada").await, world.connect("facebook", "ada").await);
    let post = world
        .post(json!({
            "containers": [{ "content": "The post" }, { "content": "Its comment" }],
            "accounts": [threads, page],
            "config": { "threads": { "reply_control": "mentioned_only" } },
        }))
        .await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    world.completed(&post, 2).await;
    for platform in ["threads", "facebook"] {
        let url = target(&ended, platform)["platform_post_url"].as_str().unwrap();
        let shown = world.http.get(url).send().await.unwrap();
        assert_eq!(shown.status(), StatusCode::OK, "{url}");
        let shown = shown.text().await.unwrap();
        assert!(shown.contains("The post") && shown.contains("Its comment"), "{platform}: {shown}");
        assert_eq!(world.accepted(platform, "ada").await, 2, "{platform}");
    }
}

#[tokio::test]
async fn a_lost_reply_from_meta_publishes_once() {
    let world = world().start().await;
    let accounts = [world.connect("threads", "ada").await, world.connect("facebook", "ada").await];
    let post = world.post(json!({ "content": "Heard once #sandbox-lost-reply", "accounts": accounts })).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    for platform in ["threads", "facebook"] {
        assert_eq!(world.accepted(platform, "ada").await, 1, "{platform}");
        let url = target(&ended, platform)["platform_post_url"].as_str().unwrap();
        assert_eq!(world.http.get(url).send().await.unwrap().status(), StatusCode::OK, "{url}");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_refreshed_fails_the_target_and_asks_to_reconnect() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    for (platform, is_expired, event, status) in [
        ("facebook", true, "account.token_expired", "token_expired"),
        ("threads", false, "account.reauth_required", "reauth_required"),
    ] {
        let account = world.connect(platform, "ada").await;
        match is_expired {
            true => world.expire_tokens(platform, "ada").await,
            false => world.revoke_grants(platform, "ada").await,
        }
        let post = world.post(json!({ "content": "Too late", "accounts": [account] })).await;
        let ended = world.ended(&post).await;
        assert_eq!(target(&ended, platform)["error_code"], "token_expired", "{ended:#}");
        receiver.events(&[event, "post.target.failed", "post.error"]).await;
        let account = world.get(&format!("/social-accounts/{account}")).await;
        assert_eq!(account["status"], status, "{account}");
    }
}
