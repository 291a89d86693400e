//! Google Business Profile: topics of posts, locations, and moderation.

use super::{actor, rejected};
use crate::fixtures::{Kept, Named, World};
use crate::trials::{self, singles};
use libtest_mimic::Trial;
use platforms::MediaKind;
use serde_json::json;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "google_business",
        &singles![
            settings_determine_the_topic_of_a_post,
            every_location_of_a_login_can_be_chosen,
            posts_that_google_rejects_fail_with_its_reason,
        ],
    )
}

async fn settings_determine_the_topic_of_a_post() {
    let world = World::start().await;
    let actor = actor(&world, "google_business");
    let event = json!({ "title": "Opening", "start": "2100-12-01", "end": "2100-12-02T18:30" });
    for (settings, words) in [
        (json!({}), vec!["STANDARD LIVE"]),
        (json!({ "event": event }), vec!["EVENT LIVE", "Event: Opening, 2100-12-1 to 2100-12-2"]),
        (
            json!({ "event": event, "offer": { "couponCode": "SAVE", "redeemOnlineUrl": "https://example.com/r" } }),
            vec!["OFFER LIVE", "Coupon: SAVE", "Redeem at https://example.com/r"],
        ),
        (
            json!({ "callToAction": { "actionType": "BOOK", "url": "https://example.com/b" } }),
            vec!["Button: BOOK https://example.com/b"],
        ),
        (json!({ "callToAction": { "actionType": "CALL", "url": "ignored" } }), vec!["Button: CALL"]),
        (json!({ "alertType": "COVID_19" }), vec!["ALERT LIVE"]),
        (json!({ "scheduledTime": "2100-01-02T03:04:05Z" }), vec!["STANDARD SCHEDULED"]),
    ] {
        let mut post = actor.post_with("come and see", MediaKind::Image, 1);
        post.settings = settings.clone();
        let id = actor.publish(&post).await.on("publish");
        assert!(id.starts_with(&actor.account.network_unique_id), "{id}");
        let page = actor.shown(&id).await;
        for word in words.iter().chain(&["come and see", "<img"]) {
            assert!(page.contains(word), "{settings}: {word} {page}");
        }
    }
    let accepted = actor.accepted().await;
    for settings in [
        json!({ "topicType": "EVENT" }),
        json!({ "topicType": "OFFER", "offer": {} }),
        json!({ "event": { "title": "Opening" } }),
        json!({ "callToAction": { "actionType": "BOOK" } }),
    ] {
        let mut post = actor.post("come and see");
        post.settings = settings.clone();
        let failure = actor.prepare(&post).await.expect_err("a required setting is missing");
        assert_eq!(failure.code, rejected(422), "{settings} {failure}");
    }
    assert_eq!(actor.accepted().await, accepted);
}

async fn every_location_of_a_login_can_be_chosen() {
    let world = World::start().await;
    let actor = actor(&world, "google_business");
    let all = actor.identities().await.on("identities");
    let names: Vec<_> = all.iter().map(|one| one.profile.display_name.as_str()).collect();
    assert_eq!(names, ["ada", "ada 2"]);
    let keep = Kept::default();
    let options = actor.platform.options.expect("it has lists");
    let choices = options.options(&actor.session(&keep), "locations", None).await.on("locations");
    assert_eq!(choices[1].id, all[1].profile.network_unique_id);

    // The login's grant covers the second location too, and each location has its own posts.
    let mut second = actor.clone();
    second.account.network_unique_id.clone_from(&all[1].profile.network_unique_id);
    second.account.username.clone_from(&all[1].profile.username);
    second.publish(&second.post("in the second")).await.on("publish");
    assert_eq!((actor.accepted().await, second.accepted().await), (0, 1));
    second.healthy().await.on("health");

    let mut stranger = actor.clone();
    stranger.account.network_unique_id = world.named(actor.platform, "grace").account.network_unique_id;
    let failure = stranger.publish(&stranger.post("in hers")).await.expect_err("another account's location");
    assert_eq!(failure.code, rejected(403), "{failure}");
}

async fn posts_that_google_rejects_fail_with_its_reason() {
    let world = World::start().await;
    let actor = actor(&world, "google_business");
    let failure = actor.publish(&actor.post("sandbox-rejected words")).await.expect_err("rejected");
    assert!(failure.code == rejected(422) && failure.message.contains("content policy"), "{failure}");

    let mut gone = actor.post_with("a picture", MediaKind::Image, 1);
    gone.media[0].id = uuid::Uuid::now_v7();
    let failure = actor.publish(&gone).await.expect_err("the image does not exist");
    assert!(failure.code == rejected(400) && failure.message.contains("Fetching image failed."), "{failure}");

    let closed = world.named(actor.platform, "unverified place");
    let failure = closed.publish(&closed.post("too early")).await.expect_err("not verified");
    assert!(failure.code == rejected(403) && failure.message.contains("not verified"), "{failure}");
    assert!(closed.identities().await.on("identities").is_empty());
    assert!(closed.healthy().await.is_err());
    assert_eq!(actor.accepted().await + closed.accepted().await, 0);
}
