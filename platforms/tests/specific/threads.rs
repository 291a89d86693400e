//! Threads: replies to new posts, permissions of settings, and people without a role on a new app.

use super::{actor, rejected};
use crate::fixtures::{Kept, Named, RETURN, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Checkpoint, MediaKind, Prepared,
    check::{ContainerContent, check},
};
use serde_json::json;
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "threads",
        &singles![
            a_reply_waits_until_its_parent_is_found,
            a_setting_without_its_permission_is_rejected_before_a_request,
            the_audience_of_replies_is_set_on_the_first_post_only,
            a_container_that_can_t_be_read_is_published_after_two_more,
            a_container_that_is_twice_not_found_is_made_anew,
            polls_are_rare_when_a_limit_is_nearly_used_up,
            a_person_without_a_role_can_log_in_to_a_reviewed_app_only,
            a_refusal_of_the_content_is_final_whatever_its_status,
            links_exclude_each_other_and_count_without_their_scheme,
        ],
    )
}

async fn a_reply_waits_until_its_parent_is_found() {
    let world = World::start().await;
    let actor = actor(&world, "threads");
    actor.set(&json!({ "lag_ms": 600_000 })).await;
    let root = actor.publish(&actor.post("the first")).await.on("root");
    let reply = actor.reply("the second", &[root]);
    let prepared = actor.prepare_once(&reply, Checkpoint::default()).await.on("prepare");
    let Prepared::Processing { at, poll_after } = prepared else { panic!("{prepared:?}") };
    assert!(poll_after >= Duration::from_secs(1));
    actor.set(&json!({ "lag_ms": 0 })).await;
    let at = actor.prepare_from(&reply, at).await.on("later");
    actor.commit(&reply, &at).await.on("commit");
    assert_eq!(actor.accepted().await, 2);
}

async fn a_container_that_is_twice_not_found_is_made_anew() {
    let world = World::tapped().await;
    let actor = actor(&world, "threads");
    let own = format!("/graph.threads.com/v1.0/{}", actor.account.network_unique_id);
    let gone = json!({ "error": {
        "message": "The requested resource does not exist", "type": "OAuthException", "code": 24,
        "error_subcode": 4_279_009,
    } });
    let post = actor.post_with("lost and made again", MediaKind::Image, 1);
    let mut at = actor.prepare(&post).await.on("prepare");
    world.lie(&[(&format!("{own}/threads_publish"), 400, gone)]);
    for _ in 0..2 {
        let keep = Kept::default();
        let refused = actor.platform.publisher.commit(&actor.session(&keep), &post, &at).await;
        let failure = refused.expect_err("no container");
        assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::Upstream(503), false), "{failure}");
        at = keep.last().expect("it is counted");
    }
    world.lie(&[]);
    let at = actor.prepare_from(&post, at).await.on("prepare again");
    actor.commit(&post, &at).await.on("publish");
    let made = world
        .heard()
        .into_iter()
        .filter(|call| call.method == "POST" && call.path == format!("{own}/threads"));
    assert_eq!(made.count(), 2);
    assert_eq!(actor.accepted().await, 1);
}

async fn a_setting_without_its_permission_is_rejected_before_a_request() {
    let world = World::start().await;
    let mut actor = actor(&world, "threads");
    let mut post = actor.post("from here");
    for (settings, scope) in [
        (json!({ "location_id": "123" }), "threads_location_tagging"),
        (json!({ "crossreshare_to_ig": true }), "threads_share_to_instagram"),
    ] {
        post.settings = settings;
        let failure = actor.publish(&post).await.expect_err(scope);
        assert!(failure.code == rejected(403) && failure.message.contains(scope), "{failure}");
    }
    assert_eq!(actor.heard().await, 0);

    let scopes = ["threads_basic", "threads_content_publish", "threads_share_to_instagram"];
    let brought = actor.consent_to(&scopes, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    actor.publish(&post).await.on("with the permission");
    // Without a list of scopes, Threads itself decides.
    post.settings = json!({ "location_id": "123" });
    assert_eq!(actor.publish(&post).await.expect_err("not granted").code, rejected(403));
}

async fn the_audience_of_replies_is_set_on_the_first_post_only() {
    let world = World::start().await;
    let actor = actor(&world, "threads");
    let mut ids = Vec::new();
    for text in ["the first", "the second"] {
        let mut post = actor.reply(text, &ids);
        post.settings = json!({ "reply_control": "mentioned_only" });
        ids.push(actor.publish(&post).await.on(text));
    }
    for (id, expected) in ids.iter().zip(["MENTIONED_ONLY", "EVERYONE"]) {
        let url = actor.sandbox(&format!("graph.threads.com/v1.0/{id}?fields=reply_audience"));
        assert_eq!(actor.ask("GET", &url).await["reply_audience"], expected);
    }
}

async fn a_container_that_can_t_be_read_is_published_after_two_more() {
    let world = World::tapped().await;
    let platform = platforms::get("threads").expect("it has an adapter");
    let actor = world.named(platform, "unreadable.ada");
    actor.publish(&actor.post("unseen")).await.on("publish");
    let heard = world.heard();
    let made = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/threads"));
    assert_eq!((made.count(), actor.accepted().await), (3, 1));

    // A video gets time to be processed.
    let film = actor.post_with("a film", MediaKind::Video, 1);
    let mut at = Checkpoint::default();
    for _ in 0..4 {
        match actor.prepare_once(&film, at).await.on("prepare") {
            Prepared::Processing { at: next, .. } => at = next,
            Prepared::Ready(at) => panic!("too early: {at:?}"),
        }
    }
    let heard = world.heard();
    let made = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/threads"));
    assert_eq!(made.count(), 6, "no more than three for a post");
}

async fn polls_are_rare_when_a_limit_is_nearly_used_up() {
    let world = World::start().await;
    let actor = actor(&world, "threads");
    let film = actor.post_with("a film", MediaKind::Video, 1);
    for (limit, is_rare) in [(100, false), (5, true)] {
        actor.set(&json!({ "processing_ms": 60_000, "limits": { "threads.calls": limit } })).await;
        let prepared = actor.prepare_once(&film, Checkpoint::default()).await.on("prepare");
        let Prepared::Processing { poll_after, .. } = prepared else { panic!("{prepared:?}") };
        assert_eq!(poll_after >= Duration::from_secs(300), is_rare, "{limit}: {poll_after:?}");
    }
}

async fn a_person_without_a_role_can_log_in_to_a_reviewed_app_only() {
    for name in ["facebook", "instagram", "threads"] {
        let world = World::start().await;
        let platform = platforms::get(name).expect("it has an adapter");
        let stranger = world.named(platform, "stranger.ada");
        let oauth = platform.auth.oauth().expect("it has logins");
        let app = stranger.app.as_ref().expect("it has an app");
        let dialog = stranger.sandbox(oauth.authorize.trim_start_matches("https://"));
        let form = [
            ("client_id", app.client_id.as_str()),
            ("redirect_uri", RETURN),
            ("response_type", "code"),
            ("scope", &oauth.scopes.join(",")),
            ("username", "stranger.ada"),
            ("decision", "allow"),
        ];
        let answer = stranger.http.post(&dialog).form(&form).send().await.expect("an answer");
        assert_eq!(answer.status(), 400, "{name}");
        stranger.set(&json!({ "app": "approved" })).await;
        let brought = stranger.consent("allow").await.expect("it has codes");
        stranger.exchange(&brought["code"]).await.on(name);
    }
}

async fn a_refusal_of_the_content_is_final_whatever_its_status() {
    let world = World::start().await;
    let actor = actor(&world, "threads");
    for status in [400, 500] {
        actor.set(&json!({ "meta_refusal_status": status })).await;
        let failure = actor.publish(&actor.post(&"a".repeat(501))).await.expect_err("too long");
        assert!(failure.code == rejected(400) && !failure.is_ambiguous(), "{status}: {failure:?}");
        assert!(failure.message.contains("500 characters"), "{failure}");
    }
}

async fn links_exclude_each_other_and_count_without_their_scheme() {
    let world = World::start().await;
    let actor = actor(&world, "threads");
    let many = "www.a.com b.com c.org, d.net and https://e.com or f.com";
    let both = json!({
        "link_attachment": "https://a.com",
        "text_attachment": { "plaintext": "more", "link_attachment_url": "https://b.com" },
    });
    for (text, settings, code) in
        [(many, json!({}), "links_too_many"), ("two links", both, "settings_conflict")]
    {
        let mut post = actor.post(text);
        post.settings = settings.clone();
        assert_eq!(actor.publish(&post).await.expect_err(text).code, rejected(400), "{text}");
        let found = check(actor.platform, &[ContainerContent { text, media: &[] }], &settings);
        let found: Vec<_> = found.iter().map(|issue| issue.code.as_str()).collect();
        assert_eq!(found, [code], "{text}");
    }
    let post = actor.post("https://a.com a.com b.com c.org d.net e.com");
    actor.publish(&post).await.on("five links");
}
