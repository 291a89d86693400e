//! Pinterest: boards, and the settings of a pin.

use super::{actor, rejected};
use crate::fixtures::{Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{Checkpoint, MediaKind, Prepared};
use serde_json::{Value, json};

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "pinterest",
        &singles![
            a_pin_is_created_on_the_only_board_or_the_selected_one,
            a_missing_scope_is_rejected_without_a_token_refresh,
            a_refresh_token_can_be_used_once,
            a_video_is_uploaded_once_while_it_is_polled,
        ],
    )
}

async fn a_pin_is_created_on_the_only_board_or_the_selected_one() {
    let world = World::start().await;
    let actor = actor(&world, "pinterest");
    let keep = Kept::default();
    let options = actor.platform.options.expect("it has lists");
    let boards = options.options(&actor.session(&keep), "boards", None).await.on("boards");
    assert_eq!(boards.len(), 1);
    let page = actor.shown(&actor.publish(&actor.post("on the only one")).await.on("one")).await;
    assert!(page.contains(&format!("On the board {}", boards[0].name)), "{page}");

    let make = |path: String, body: Value| {
        let url = actor.sandbox("api.pinterest.com/v5") + &path;
        let call = actor.http.post(url).bearer_auth(&actor.grant.access_token).json(&body);
        async move { call.send().await.expect("an answer").json::<Value>().await.expect("JSON") }
    };
    let board = make("/boards".into(), json!({ "name": "Recipes" })).await;
    let board = board["id"].as_str().expect("an id").to_owned();
    let section = make(format!("/boards/{board}/sections"), json!({ "name": "Soups" })).await;
    let section = section["id"].as_str().expect("an id").to_owned();

    let failure = actor.publish(&actor.post("on which?")).await.expect_err("ambiguous");
    assert_eq!(failure.code, rejected(422));
    assert!(failure.message.contains("board_id"), "{failure}");

    let listed = options.options(&actor.session(&keep), "boards", None).await.on("boards");
    assert!(listed.iter().any(|choice| choice.id == board && choice.name == "Recipes"));
    let sections =
        options.options(&actor.session(&keep), "board_sections", Some(&board)).await.on("sections");
    assert_eq!(sections[0].id, section);
    let failure =
        options.options(&actor.session(&keep), "board_sections", None).await.expect_err("no parent");
    assert_eq!(failure.code, rejected(422));

    let mut post = actor.post("soup");
    post.settings = json!({
        "board_id": board, "board_section_id": section, "title": "A soup", "link": "https://example.com/soup",
    });
    let page = actor.shown(&actor.publish(&post).await.on("named")).await;
    for words in ["On the board Recipes", "Title: A soup", "Leads to https://example.com/soup"] {
        assert!(page.contains(words), "{words}: {page}");
    }

    post.settings = json!({ "board_id": "1" });
    let failure = actor.publish(&post).await.expect_err("no such board");
    assert_eq!(failure.code, rejected(404));
}

async fn a_missing_scope_is_rejected_without_a_token_refresh() {
    let world = World::start().await;
    let mut actor = actor(&world, "pinterest");
    let scopes = ["user_accounts:read", "boards:read", "pins:read"];
    let brought = actor.consent_to(&scopes, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    assert_eq!(actor.grant.scopes, scopes);
    let failure = actor.publish(&actor.post("not permitted")).await.expect_err("a scope is missing");
    assert_eq!((failure.code, failure.is_revoked()), (rejected(401), false));
}

async fn a_refresh_token_can_be_used_once() {
    let world = World::start().await;
    let mut actor = actor(&world, "pinterest");
    let old = actor.grant.clone();
    actor.grant = actor.refresh().await.on("refresh");
    assert_ne!(actor.grant.refresh_token, old.refresh_token);
    actor.grant = old;
    let failure = actor.refresh().await.expect_err("used up");
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::TokenExpired, true));
}

async fn a_video_is_uploaded_once_while_it_is_polled() {
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("a film", MediaKind::Video, 1);
    post.settings = json!({ "cover_image_key_frame_time": 2 });
    let Prepared::Processing { at, .. } =
        actor.prepare_once(&post, Checkpoint::default()).await.on("prepare")
    else {
        panic!("the video is not being processed");
    };
    assert!(!at.0.to_string().contains("signature"), "{at:?}");
    let at = actor.prepare_from(&post, at).await.on("goes on");
    actor.commit(&post, &at).await.on("commit");
    let heard = world.heard();
    let uploads = heard.iter().filter(|call| call.path.contains("s3-accelerate"));
    assert_eq!(uploads.count(), 1);
    let pin = heard.iter().find(|call| call.path.ends_with("/pins") && call.method == "POST").expect("a pin");
    assert_eq!(pin.body["media_source"]["cover_image_key_frame_time"], 2);
}
