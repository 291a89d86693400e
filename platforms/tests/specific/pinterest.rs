//! Pinterest: boards, and the settings of a pin.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    AppAccess, Checkpoint, Located, MediaKind, Prepared, PublishRequest,
    check::{ContainerContent, Severity, check},
};
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
            an_app_with_trial_access_creates_pins_in_the_api_sandbox,
            a_wrong_client_secret_costs_no_account,
            pictures_of_different_sizes_are_no_carousel,
            pictures_that_are_too_large_together_are_fetched,
            a_look_up_reads_no_figures,
            a_picture_beside_a_video_is_its_cover,
            a_video_has_one_cover,
            a_pin_declares_ai_or_is_not_created,
            each_of_several_pictures_has_its_own_title_and_link,
            slots_are_those_of_several_pictures,
            alt_texts_that_a_pin_has_no_room_for_are_told,
        ],
    )
}

async fn a_pin_is_created_on_the_only_board_or_the_selected_one() {
    trials::approve();
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
    trials::approve();
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

async fn an_app_with_trial_access_creates_pins_in_the_api_sandbox() {
    let world = World::tapped().await;
    let mut actor = actor(&world, "pinterest");
    let brought = actor.consent("allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    actor.grant = actor.refresh().await.on("refresh");
    actor.healthy().await.on("health");
    // An account has no board in the API sandbox. The first pin gets one, and so do the others.
    for text in ["a first pin", "a second pin"] {
        let page = actor.shown(&actor.publish(&actor.post(text)).await.on("publish")).await;
        assert!(page.contains("On the board Fanfare") && page.contains("In the API sandbox"), "{page}");
    }
    let heard = world.heard();
    assert!(heard.iter().filter(|call| !call.path.starts_with("/_")).all(|call| {
        call.path.starts_with("/api-sandbox.pinterest.com/v5/")
            || call.path.starts_with("/www.pinterest.com/")
    }));
    let boards = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/boards"));
    assert_eq!(boards.count(), 1);
    // There are no video pins.
    let failure = actor.publish(&actor.post_with("a film", MediaKind::Video, 1)).await.expect_err("a video");
    assert_eq!(failure.code, rejected(403));
    assert!(!world.heard().iter().any(|call| call.path.ends_with("/media")));

    // Not set up for trial access, it learns the way.
    actor.app.as_mut().expect("it has apps").access = AppAccess::Full;
    assert_eq!(actor.healthy().await.expect_err("another realm's token").code, ErrorCode::TokenExpired);
    let brought = actor.consent_to(actor.platform.auth.oauth().expect("it has").scopes, "allow").await;
    actor.grant = actor.exchange(&brought.expect("it has codes")["code"]).await.on("exchange");
    let failure = actor.publish(&actor.post("in production")).await.expect_err("trial access");
    assert_eq!(failure.code, ErrorCode::AppRefused);
    assert!(failure.message.contains("extra_config.access"), "{failure}");
    assert_eq!(actor.accepted().await, 2);
}

async fn a_wrong_client_secret_costs_no_account() {
    let world = World::start().await;
    let mut actor = actor(&world, "pinterest");
    let secret = actor.app.as_mut().expect("it has apps").client_secret.replace("rotated".into());
    let failure = actor.refresh().await.expect_err("another secret");
    assert!(!failure.is_revoked(), "{failure:?}");
    actor.app.as_mut().expect("it has apps").client_secret = secret;
    actor.refresh().await.on("refresh");
}

async fn pictures_of_different_sizes_are_no_carousel() {
    let world = World::start().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("two", MediaKind::Image, 2);
    let codes = |media: &[platforms::Media]| -> Vec<String> {
        let issues = check(actor.platform, &[ContainerContent { text: "two", media }], &json!({}));
        issues.into_iter().map(|issue| issue.code).collect()
    };
    assert_eq!(codes(&post.media), [""; 0]);
    post.media[1].height = post.media[1].height.map(|height| height * 2);
    assert_eq!(codes(&post.media), ["media_dimensions"]);
    assert_eq!(codes(&post.media[1..]), [""; 0]);
}

async fn pictures_that_are_too_large_together_are_fetched() {
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    for count in [2, 1] {
        let mut post = actor.post_with("large", MediaKind::Image, count);
        for medium in &mut post.media {
            *medium = actor.sized(medium, (26 << 20) / count);
        }
        // Alone it is too large for Pinterest, too; the answer shows that it was fetched.
        match actor.publish(&post).await {
            Ok(id) => drop(actor.shown(&id).await),
            Err(failure) => assert!(count == 1 && failure.message.contains("bytes"), "{failure}"),
        }
        let heard = world.heard();
        let pins: Vec<_> = heard.iter().filter(|call| call.path.ends_with("/pins")).collect();
        let [.., refused, fetched] = pins.as_slice() else { panic!("there are two calls") };
        assert_eq!(refused.status, 413);
        let kind = if count == 1 { "image_url" } else { "multiple_image_urls" };
        assert_eq!(fetched.body["media_source"]["source_type"], kind);
    }
    assert_eq!(actor.accepted().await, 1);
}

async fn a_picture_beside_a_video_is_its_cover() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("covered", MediaKind::Image, 1);
    post.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("covered") && page.contains("alt=\"Cover\""), "{page}");
    let sources = || -> Vec<Value> {
        let heard = world.heard();
        let pins = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/pins"));
        pins.map(|call| call.body["media_source"].clone()).collect()
    };
    let [source] = &sources()[..] else { panic!("there is one call") };
    assert_eq!(
        (&source["source_type"], &source["cover_image_content_type"]),
        (&json!("video_id"), &json!("image/png"))
    );
    assert!(source["cover_image_data"].is_string() && source["cover_image_key_frame_time"].is_null());
    let uploads = world.heard().iter().filter(|call| call.path.ends_with("/media")).count();
    assert_eq!(uploads, 1, "the cover is sent with the pin");

    // It is looked for as a video.
    let lost = PublishRequest { text: "covered #sandbox-lost-reply".into(), ..post.clone() };
    let at = actor.prepare(&lost).await.on("prepare");
    actor.commit(&lost, &at).await.expect_err("the answer is lost");
    let located = actor.settle(&lost, &at).await.on("settle");
    assert!(matches!(located, Located::Live(_)), "{located:?}");

    // One that is too large for the call is fetched; then it is too large for Pinterest, too.
    post.media[0] = actor.sized(&post.media[0], 26 << 20);
    let failure = actor.publish(&post).await.expect_err("too large");
    assert!(failure.message.contains("bytes"), "{failure}");
    let fetched = sources().pop().expect("a call");
    let address = fetched["cover_image_url"].as_str().expect("an address");
    assert!(
        address.contains(&post.media[0].id.to_string()) && fetched["source_type"] == "video_id",
        "{fetched}"
    );
}

async fn a_video_has_one_cover() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("a film", MediaKind::Image, 2);
    post.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    // An image may have another size than its video.
    post.media[1].height = post.media[1].height.map(|height| height * 2);
    let codes = |post: &PublishRequest| -> Vec<String> {
        let issues = check(
            actor.platform,
            &[ContainerContent { text: &post.text, media: &post.media }],
            &post.settings,
        );
        issues.into_iter().map(|issue| issue.code).collect()
    };
    assert_eq!(codes(&post), ["media_mixed"]);
    post.media.remove(0);
    assert_eq!(codes(&post), [""; 0]);
    for settings in [
        json!({ "cover_image_url": "https://example.com/a.png" }),
        json!({ "cover_image_key_frame_time": 2 }),
    ] {
        post.settings = settings;
        assert_eq!(codes(&post), ["settings_conflict"]);
    }
}

async fn a_look_up_reads_no_figures() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let post = actor.post_with("a film", MediaKind::Video, 1);
    let id = actor.publish(&post).await.on("publish");
    let at = actor.prepare(&post).await.on("prepare");
    assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
    let heard = world.heard();
    let list =
        heard.iter().rfind(|call| call.method == "GET" && call.path.ends_with("/pins")).expect("a list");
    assert!(!list.query.iter().any(|(name, _)| name == "pin_metrics"), "{:?}", list.query);
    // The figures of a video are not all whole numbers.
    let keep = Kept::default();
    actor.platform.analytics.expect("it has figures").metrics(&actor.session(&keep), &id).await.on("metrics");
    actor.platform.history.expect("it has one").page(&actor.session(&keep), None).await.on("history");
}

/// Returns the code, severity and path of each issue with a post.
fn issues(actor: &Actor, post: &PublishRequest) -> Vec<(String, Severity, Value)> {
    let contents = [ContainerContent { text: &post.text, media: &post.media }];
    let issues = check(actor.platform, &contents, &post.settings).into_iter();
    issues.map(|issue| (issue.code, issue.severity, Value::Array(issue.path))).collect()
}

/// Returns the bodies of the calls that create pins.
fn pins(world: &World) -> Vec<Value> {
    let heard = world.heard().into_iter();
    heard.filter(|call| call.method == "POST" && call.path.ends_with("/pins")).map(|call| call.body).collect()
}

async fn a_pin_declares_ai_or_is_not_created() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let label = json!({ "ai_disclosures": ["AI_MODIFIED"] });
    for (kind, count) in [(MediaKind::Image, 1), (MediaKind::Image, 2), (MediaKind::Video, 1)] {
        let mut post = actor.post_with("made", kind, count);
        post.settings = label.clone();
        assert_eq!(issues(&actor, &post), []);
        let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
        assert!(page.contains("Declared: AI_MODIFIED"), "{page}");
    }
    // An empty list declares nothing, and Pinterest takes none.
    let mut post = actor.post("by hand");
    post.settings = json!({ "ai_disclosures": [] });
    let page = actor.shown(&actor.publish(&post).await.on("without")).await;
    assert!(!page.contains("Declared"), "{page}");
    let sent: Vec<_> = pins(&world).iter().map(|body| body["ai_disclosures"].clone()).collect();
    let values = json!({ "values": ["AI_MODIFIED"] });
    assert_eq!(sent, [values.clone(), values.clone(), values, Value::Null]);
    for (wrong, place) in [(json!(["AI_GENERATED"]), json!(0)), (json!("AI_MODIFIED"), Value::Null)] {
        post.settings = json!({ "ai_disclosures": wrong });
        let [(code, Severity::Error, path)] = &issues(&actor, &post)[..] else { panic!("{wrong} is taken") };
        assert_eq!((code.as_str(), &path[3]), ("setting_invalid", &place));
    }

    // If Pinterest refuses the declaration, no pin is created without it.
    let words = "Invalid request: Additional properties are not allowed ('ai_disclosures' was unexpected)";
    world.lie(&[("/api.pinterest.com/v5/pins", 400, json!({ "code": 1, "message": words }))]);
    let before = pins(&world).len();
    post.settings = label;
    let at = actor.prepare(&post).await.on("prepare");
    let failure = actor.commit(&post, &at).await.expect_err("it is refused");
    assert_eq!((failure.code, failure.is_ambiguous()), (rejected(400), false));
    assert!(failure.message.contains("ai_disclosures"), "{failure}");
    assert_eq!(pins(&world).len(), before + 1);
}

async fn each_of_several_pictures_has_its_own_title_and_link() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("three", MediaKind::Image, 3);
    post.settings = json!({ "link": "https://example.com/all", "carousel_slots": [
        { "title": "First \"one\"", "description": "d", "link": "https://example.com/1" }, {}, { "title": "Third" },
    ] });
    assert_eq!(issues(&actor, &post), []);
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    for words in [
        "Title of picture 1: First \"one\"",
        "Picture 1 leads to https://example.com/1",
        "Title of picture 3: Third",
        "Leads to https://example.com/all",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("picture 2") && !page.contains("Picture 2"), "{page}");
    let source = pins(&world).remove(0)["media_source"].clone();
    assert_eq!(
        (&source["source_type"], &source["items"][0]["description"]),
        (&json!("multiple_image_base64"), &json!("d"))
    );
    assert_eq!(source["items"][1].as_object().expect("an item").len(), 2, "a type and bytes");

    // One link for three pictures is the first one's.
    post.settings = json!({ "carousel_slots": [{ "link": "https://example.com/first" }] });
    assert_eq!(issues(&actor, &post), []);
    let page = actor.shown(&actor.publish(&post).await.on("one link")).await;
    assert!(page.contains("Picture 1 leads to https://example.com/first"), "{page}");
    assert!(!page.contains("Picture 2") && !page.contains("Picture 3"), "{page}");

    // Pictures that Pinterest fetches keep theirs.
    for medium in &mut post.media {
        *medium = actor.sized(medium, 10 << 20);
    }
    let page = actor.shown(&actor.publish(&post).await.on("fetched")).await;
    assert!(page.contains("Picture 1 leads to https://example.com/first"), "{page}");
    let source = pins(&world).pop().expect("a call")["media_source"].clone();
    assert_eq!(source["source_type"], "multiple_image_urls");

    // A pin that is looked up after a lost response is told apart by the links of its pictures.
    let mut lost = actor.post_with("the same #sandbox-lost-reply", MediaKind::Image, 2);
    lost.settings = json!({ "carousel_slots": [{ "link": "https://example.com/a" }] });
    let other = PublishRequest {
        settings: json!({ "carousel_slots": [{ "link": "https://example.com/b" }] }),
        ..lost.clone()
    };
    let at = actor.prepare(&lost).await.on("prepare");
    actor.commit(&lost, &at).await.expect_err("the answer is lost");
    assert_eq!(actor.settle(&other, &at).await.on("another"), Located::Absent);
    assert!(matches!(actor.settle(&lost, &at).await.on("settle"), Located::Live(_)));
}

async fn slots_are_those_of_several_pictures() {
    trials::approve();
    let world = World::start().await;
    let actor = actor(&world, "pinterest");
    let at = |member: &str| json!(["config", "pinterest", member]);
    let slots = |count: usize| json!({ "carousel_slots": vec![json!({ "title": "a" }); count] });
    let conflict = ("settings_conflict".to_owned(), Severity::Error, at("carousel_slots"));
    let unused = ("setting_not_used".to_owned(), Severity::Warning, at("carousel_slots"));
    let mut mixed = actor.post_with("mixed", MediaKind::Image, 1);
    mixed.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    for (media, count, expected) in [
        (actor.post_with("", MediaKind::Image, 2).media, 3, vec![conflict]),
        (actor.post_with("", MediaKind::Image, 3).media, 1, vec![]),
        (actor.post_with("", MediaKind::Image, 1).media, 1, vec![unused.clone()]),
        (actor.post_with("", MediaKind::Video, 1).media, 1, vec![unused.clone()]),
        (mixed.media.clone(), 2, vec![unused]),
    ] {
        let post = PublishRequest { media, settings: slots(count), ..mixed.clone() };
        assert_eq!(issues(&actor, &post), expected, "{count} for {} media", post.media.len());
    }
    // Slots that are not used are not sent.
    for media in [actor.post_with("", MediaKind::Image, 1).media, mixed.media.clone()] {
        let post = PublishRequest { media, settings: slots(1), ..mixed.clone() };
        let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
        assert!(!page.contains("Title of picture"), "{page}");
    }
    let wrong = PublishRequest {
        media: actor.post_with("", MediaKind::Image, 2).media,
        settings: json!({ "carousel_slots": [{ "link": "example.com" }] }),
        ..mixed
    };
    assert_eq!(issues(&actor, &wrong)[0].0, "setting_invalid");
}

async fn alt_texts_that_a_pin_has_no_room_for_are_told() {
    trials::approve();
    let world = World::tapped().await;
    let actor = actor(&world, "pinterest");
    let mut post = actor.post_with("described", MediaKind::Image, 4);
    for (medium, alt) in post.media.iter_mut().zip(["a".repeat(300), "b".repeat(300), "c".into(), "c".into()])
    {
        medium.alt_text = Some(alt);
    }
    let left_out = json!(["containers", 0, "media", 1, "alt_text"]);
    assert_eq!(issues(&actor, &post), [("alt_text_not_supported".into(), Severity::Warning, left_out)]);
    actor.publish(&post).await.on("publish");
    assert_eq!(pins(&world)[0]["alt_text"], format!("{}\nc", "a".repeat(300)));
    // A pin with a video has one as well, of the video and its cover.
    let mut film = actor.post_with("a film", MediaKind::Image, 1);
    film.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    for (medium, alt) in film.media.iter_mut().zip(["the cover", "the film"]) {
        medium.alt_text = Some(alt.into());
    }
    assert_eq!(issues(&actor, &film), []);
    actor.publish(&film).await.on("publish");
    assert_eq!(pins(&world)[1]["alt_text"], "the cover\nthe film");
}
