//! Google Business Profile: topics of posts, locations, and moderation.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Located, MediaKind, PublishRequest,
    check::{ContainerContent, check},
};
use serde_json::json;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "google_business",
        &singles![
            settings_determine_the_topic_of_a_post,
            every_location_of_a_login_can_be_chosen,
            posts_that_google_rejects_fail_with_its_reason,
            a_project_without_access_is_told_so,
            locations_with_the_same_title_are_told_apart,
            an_account_that_refuses_is_left_out,
            a_picture_is_added_to_the_photos_of_the_location,
            a_lost_photo_is_found_among_the_photos,
            a_photo_needs_a_picture_and_no_parts_of_a_post,
            a_video_is_added_to_the_videos_of_the_location,
            a_video_that_google_would_refuse_is_told_before,
            a_picture_of_too_few_bytes_is_told_before,
        ],
    )
}

/// Returns the account `ada`, and has Google grant the project access.
async fn granted(world: &World) -> Actor {
    let actor = actor(world, "google_business");
    actor.set(&json!({ "app": "approved" })).await;
    actor
}

async fn a_project_without_access_is_told_so() {
    let world = World::start().await;
    let actor = actor(&world, "google_business");
    let refusals = [
        actor.publish(&actor.post("too early")).await.expect_err("no access"),
        actor.identities().await.expect_err("no access"),
        actor.healthy().await.expect_err("no access"),
    ];
    for failure in refusals {
        assert_eq!(failure.code, ErrorCode::AppRefused, "{failure}");
        assert!(failure.message.contains("not granted"), "{failure}");
    }
    actor.set(&json!({ "app": "approved", "limits": { "google_business.calls": 1 } })).await;
    actor.healthy().await.on("the first call");
    let failure = actor.healthy().await.expect_err("more than a minute's calls");
    assert_eq!(failure.code, ErrorCode::RateLimited, "{failure}");
}

async fn locations_with_the_same_title_are_told_apart() {
    let world = World::start().await;
    let platform = granted(&world).await.platform;
    let chain = world.named(platform, "chain of shops");
    let all = chain.identities().await.on("identities");
    let titles: Vec<_> = all.iter().map(|one| one.profile.username.as_str()).collect();
    assert_eq!(titles, ["chain of shops", "chain of shops"]);
    let names: Vec<_> = all.iter().map(|one| one.profile.display_name.as_str()).collect();
    for (name, address) in names.iter().zip(["1 Sandbox Way", "2 Sandbox Way"]) {
        assert!(name.starts_with(&format!("chain of shops, {address}, Mountain View (store-")), "{names:?}");
    }
}

async fn an_account_that_refuses_is_left_out() {
    let world = World::start().await;
    let platform = granted(&world).await.platform;
    let agency = world.named(platform, "agency");
    let names: Vec<_> =
        agency.identities().await.on("identities").into_iter().map(|one| one.profile.display_name).collect();
    assert_eq!(names, ["agency", "agency 2"]);
    // An outage is no refusal: the list would be incomplete.
    agency.set(&json!({ "refusals": { "/mybusinessbusinessinformation.googleapis.com": 503 } })).await;
    assert_eq!(agency.identities().await.expect_err("an outage").code, ErrorCode::Upstream(503));
}

async fn settings_determine_the_topic_of_a_post() {
    let world = World::start().await;
    let actor = granted(&world).await;
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
    let actor = granted(&world).await;
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

/// Returns a post that adds its picture to the location's photos.
fn photo(actor: &Actor, text: &str, category: &str) -> PublishRequest {
    let settings = json!({ "photo": { "category": category } });
    PublishRequest { settings, ..actor.post_with(text, MediaKind::Image, 1) }
}

async fn a_picture_is_added_to_the_photos_of_the_location() {
    let world = World::tapped().await;
    let actor = granted(&world).await;
    let id = actor.publish(&photo(&actor, "our new sign", "EXTERIOR")).await.on("publish");
    assert!(id.starts_with(&format!("{}/media/", actor.account.network_unique_id)), "{id}");
    let page = actor.shown(&id).await;
    for words in ["our new sign", "PHOTO of the location: EXTERIOR", "<img"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    actor.publish(&photo(&actor, "", "FOOD_AND_DRINK")).await.on("without a text");
    assert!(actor.shown(&id).await.contains("FOOD_AND_DRINK"));
    assert!(!world.heard().iter().any(|call| call.path.ends_with("/localPosts")), "a photo is no post");

    // Deleted as often as anybody asks, and the other one stays.
    let deletion = actor.platform.deletion.expect("it has one");
    let keep = Kept::default();
    for _ in 0..2 {
        deletion.delete(&actor.session(&keep), &id).await.on("delete");
    }
    let page = actor.shown(&id).await;
    assert!(!page.contains("our new sign") && page.contains("FOOD_AND_DRINK"), "{page}");

    let mut gone = photo(&actor, "a picture", "INTERIOR");
    gone.media[0].id = uuid::Uuid::now_v7();
    let failure = actor.publish(&gone).await.expect_err("the image does not exist");
    assert!(failure.message.contains("Fetching image failed."), "{failure}");
    assert_eq!(
        (failure.code, failure.is_ambiguous()),
        (ErrorCode::Upstream(502), false),
        "it is tried again"
    );
}

async fn a_lost_photo_is_found_among_the_photos() {
    let world = World::start().await;
    let actor = granted(&world).await;
    let lost = photo(&actor, "the kitchen #sandbox-lost-reply", "INTERIOR");
    let at = actor.prepare(&lost).await.on("prepare");
    assert_eq!(actor.settle(&lost, &at).await.on("settle"), Located::Absent);
    actor.commit(&lost, &at).await.expect_err("the answer is lost");
    let Located::Live(found) = actor.settle(&lost, &at).await.on("settle") else { panic!("it is live") };
    let id = found.into_id();
    assert!(id.contains("/media/"), "{id}");
    // Another target has it, or it is another photo.
    let taken = PublishRequest { taken: vec![id], ..lost.clone() };
    assert_eq!(actor.settle(&taken, &at).await.on("settle"), Located::Absent);
    let settings = json!({ "photo": { "category": "EXTERIOR" } });
    let elsewhere = PublishRequest { settings, ..lost.clone() };
    assert_eq!(actor.settle(&elsewhere, &at).await.on("settle"), Located::Absent);
    let mut other = lost.clone();
    other.media[0].filename = "another.png".into();
    assert_eq!(actor.settle(&other, &at).await.on("settle"), Located::Absent);
    assert_eq!(actor.accepted().await, 1);
}

async fn a_photo_needs_a_picture_and_no_parts_of_a_post() {
    let world = World::start().await;
    let actor = granted(&world).await;
    let mut post = photo(&actor, "a photo", "TEAMS");
    let codes = |post: &PublishRequest| -> Vec<String> {
        let issues = check(
            actor.platform,
            &[ContainerContent { text: &post.text, media: &post.media }],
            &post.settings,
        );
        issues.into_iter().map(|issue| issue.code).collect()
    };
    assert_eq!(codes(&post), [""; 0]);
    post.settings["callToAction"] = json!({ "actionType": "CALL" });
    assert_eq!(codes(&post), ["settings_conflict"]);
    post.settings = json!({ "photo": { "category": "PROFILE" } });
    assert_eq!(codes(&post), ["setting_invalid"]);
    post.settings = json!({ "photo": { "category": "TEAMS" } });
    post.media.clear();
    assert_eq!(codes(&post), ["media_required"]);
    assert_eq!(actor.prepare(&post).await.expect_err("no picture").code, rejected(422));
}

/// Returns a post that adds its video to the location's videos.
fn video(actor: &Actor, text: &str, category: &str) -> PublishRequest {
    let settings = json!({ "video": { "category": category } });
    let mut post = PublishRequest { settings, ..actor.post_with(text, MediaKind::Video, 1) };
    (post.media[0].width, post.media[0].height) = (Some(1280), Some(720));
    post
}

fn codes(actor: &Actor, post: &PublishRequest) -> Vec<String> {
    let issues =
        check(actor.platform, &[ContainerContent { text: &post.text, media: &post.media }], &post.settings);
    issues.into_iter().map(|issue| issue.code).collect()
}

async fn a_video_is_added_to_the_videos_of_the_location() {
    let world = World::tapped().await;
    let actor = granted(&world).await;
    let post = video(&actor, "a walk through the shop", "INTERIOR");
    assert_eq!(codes(&actor, &post), [""; 0]);
    let id = actor.publish(&post).await.on("publish");
    assert!(id.starts_with(&format!("{}/media/", actor.account.network_unique_id)), "{id}");
    let page = actor.shown(&id).await;
    for words in ["a walk through the shop", "VIDEO of the location: INTERIOR", "<video"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!world.heard().iter().any(|call| call.path.ends_with("/localPosts")), "a video is no post");

    // Of a lost answer the video is found, and no photo with the same words and category.
    let mut lost = video(&actor, "the kitchen #sandbox-lost-reply", "INTERIOR");
    lost.media[0].filename = "kitchen".into();
    let mut beside = photo(&actor, &lost.text, "INTERIOR");
    beside.media[0].filename = "kitchen".into();
    let [at, at_beside] =
        [actor.prepare(&lost).await, actor.prepare(&beside).await].map(|at| at.on("prepare"));
    actor.commit(&beside, &at_beside).await.expect_err("the answer is lost");
    assert_eq!(actor.settle(&lost, &at).await.on("settle"), Located::Absent);
    actor.commit(&lost, &at).await.expect_err("the answer is lost");
    assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)));
    assert_eq!(actor.accepted().await, 3);

    let deletion = actor.platform.deletion.expect("it has one");
    for _ in 0..2 {
        deletion.delete(&actor.session(&Kept::default()), &id).await.on("delete");
    }
    assert!(!actor.shown(&id).await.contains("a walk through the shop"));
}

async fn a_video_that_google_would_refuse_is_told_before() {
    let world = World::start().await;
    let actor = granted(&world).await;
    let post = video(&actor, "a video", "TEAMS");
    let with = |change: &dyn Fn(&mut PublishRequest)| {
        let mut post = post.clone();
        change(&mut post);
        codes(&actor, &post)
    };
    let seconds = |seconds| Some(std::time::Duration::from_secs(seconds));
    assert_eq!(with(&|post| post.media[0].duration = seconds(30)), [""; 0]);
    assert_eq!(with(&|post| post.media[0].duration = seconds(31)), ["media_duration"]);
    assert_eq!(with(&|post| post.media[0].size_bytes = (75 << 20) + 1), ["media_too_large"]);
    assert_eq!(with(&|post| post.media[0].height = Some(719)), ["media_dimensions"]);
    assert_eq!(with(&|post| post.media[0].mime = "video/webm".into()), ["media_type_not_supported"]);
    assert_eq!(with(&|post| post.media.push(post.media[0].clone())), ["media_too_many"]);
    assert_eq!(with(&|post| post.media.clear()), ["media_required"]);
    assert_eq!(with(&|post| post.settings = json!({})), ["media_kind_not_supported"]);
    assert!(
        with(&|post| post.settings["video"]["category"] = json!("COVER")).contains(&"setting_invalid".into())
    );
    assert_eq!(
        with(&|post| post.settings["photo"] = json!({ "category": "TEAMS" })),
        ["media_kind_not_supported", "settings_conflict"]
    );
    assert_eq!(with(&|post| post.settings["fit"] = json!("crop")), ["setting_not_used"]);
    let picture = PublishRequest { media: photo(&actor, "", "TEAMS").media, ..post.clone() };
    assert_eq!(codes(&actor, &picture), ["media_kind_not_supported"]);

    // Google sees for itself: a file that is longer than it was measured, one of another kind, and a post with a video.
    let long = post.clone();
    actor.rewrite(&long.media[0], |file| {
        let [usual, longer] =
            [5_000_u32, 31_000].map(|length| [1_000, length].map(u32::to_be_bytes).concat());
        let at = file.windows(8).position(|part| part == usual).expect("a movie header");
        [&file[..at], &longer, &file[at + 8..]].concat()
    });
    let no_video = PublishRequest { settings: post.settings.clone(), ..photo(&actor, "", "TEAMS") };
    for (post, words) in [(long, "30 seconds"), (no_video.clone(), "format is not supported")] {
        let failure = actor.publish(&post).await.expect_err(words);
        assert!(failure.code == rejected(400) && failure.message.contains(words), "{failure}");
    }
    let failure =
        actor.prepare(&PublishRequest { media: Vec::new(), ..no_video }).await.expect_err("no video");
    assert_eq!(failure.code, rejected(422), "{failure}");
    assert_eq!(actor.accepted().await, 0);
}

async fn a_picture_of_too_few_bytes_is_told_before() {
    let world = World::start().await;
    let actor = granted(&world).await;
    let mut post = actor.post_with("a picture", MediaKind::Image, 1);
    let picture = actor.picture(720, 720);
    for (bytes, expected) in [(10_240, &[][..]), (10_239, &["media_too_small"])] {
        post.media = vec![actor.sized(&picture, bytes)];
        assert_eq!(codes(&actor, &post), expected, "{bytes}");
        let published = actor.publish(&post).await;
        assert_eq!(published.is_ok(), expected.is_empty(), "{bytes}: {published:?}");
    }
}

async fn posts_that_google_rejects_fail_with_its_reason() {
    let world = World::start().await;
    let actor = granted(&world).await;
    let failure = actor.publish(&actor.post("sandbox-rejected words")).await.expect_err("rejected");
    assert!(failure.code == rejected(422) && failure.message.contains("content policy"), "{failure}");

    let mut gone = actor.post_with("a picture", MediaKind::Image, 1);
    gone.media[0].id = uuid::Uuid::now_v7();
    let failure = actor.publish(&gone).await.expect_err("the image does not exist");
    assert!(failure.message.contains("Fetching image failed."), "{failure}");
    assert_eq!(
        (failure.code, failure.is_ambiguous()),
        (ErrorCode::Upstream(502), false),
        "it is tried again"
    );

    let closed = world.named(actor.platform, "unverified place");
    let failure = closed.publish(&closed.post("too early")).await.expect_err("not verified");
    assert!(failure.code == rejected(403) && failure.message.contains("not verified"), "{failure}");
    assert!(closed.identities().await.on("identities").is_empty());
    assert!(closed.healthy().await.is_err());
    assert_eq!(actor.accepted().await + closed.accepted().await, 0);
}
