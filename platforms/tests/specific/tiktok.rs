//! TikTok: options of a creator, uploads in parts, and photos that TikTok fetches.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World, clock};
use crate::trials::{self, singles};
use chrono::TimeDelta;
use domain::{ErrorCode, Holds};
use libtest_mimic::Trial;
use platforms::{
    Committed, Feature, Located, MediaKind, PublishRequest,
    check::{AccountKind, ContainerContent, Severity, check, check_for},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "tiktok",
        &singles![
            the_creators_options_limit_the_settings,
            a_large_video_is_uploaded_in_parts_and_resumes_after_each,
            an_expired_upload_is_restarted,
            settings_are_applied_to_photos,
            photos_with_a_lost_response_are_found_or_left_unresolved,
            the_daily_limit_of_a_creator_returns_the_wait,
            an_invalid_part_is_rejected_as_documented,
            a_commit_of_photos_returns_its_id_later,
            an_app_that_is_not_audited_posts_for_its_creator_alone,
            an_unverified_domain_holds_photos_alone,
            photos_have_sizes_and_texts_of_their_own,
            a_post_that_tiktok_gave_up_is_posted_again,
            a_renamed_creator_keeps_working_links,
            a_post_for_the_inbox_waits_there_for_its_creator,
            a_worker_crash_after_any_call_leaves_one_post_in_the_inbox,
            photos_for_the_inbox_with_a_lost_response_are_left_unresolved,
            an_inbox_takes_five_posts_a_day,
            settings_that_the_inbox_does_not_take_are_told,
            each_post_mode_needs_its_own_scope,
            a_display_name_is_no_handle,
            a_scope_that_was_taken_back_ends_the_grant,
            the_default_scopes_are_those_of_every_app,
            a_cover_is_a_frame_of_the_video,
        ],
    )
}

/// Returns the account `ada`, and has the app audited.
async fn audited(world: &World) -> Actor {
    let actor = actor(world, "tiktok");
    actor.set(&json!({ "app": "approved" })).await;
    actor
}

async fn the_creators_options_limit_the_settings() {
    let world = World::start().await;
    let platform = audited(&world).await.platform;
    let private = world.named(platform, "private.ada");
    let keep = Kept::default();
    let options = platform.options.expect("it has lists");
    let levels = options.options(&private.session(&keep), "privacy_levels", None).await.on("levels");
    assert_eq!(levels.first().map(|level| level.id.as_str()), Some("FOLLOWER_OF_CREATOR"));
    let properties = options.options(&private.session(&keep), "creator", None).await.on("properties");
    let property = |id: &str| properties.iter().find(|one| one.id == id).map(|one| one.name.as_str());
    assert_eq!(property("creator_nickname"), Some("Private Creator"));
    assert_eq!(property("creator_username"), Some("private.ada"));
    assert_eq!((property("comment_disabled"), property("duet_disabled")), (Some("false"), Some("false")));
    assert_eq!(property("max_video_post_duration_sec"), Some("600"));

    let mut post = private.post("to everybody");
    post.settings = json!({ "privacy_level": "PUBLIC_TO_EVERYONE" });
    let failure = private.prepare(&post).await.expect_err("not an option of this creator");
    assert_eq!(failure.code, rejected(422), "{failure}");
    assert!(failure.message.contains("FOLLOWER_OF_CREATOR"), "{failure}");

    // The default is the widest level. A post that is not public has no id.
    post.settings = json!({});
    let id = private.publish(&post).await.on("publish");
    assert!(id.contains('~'), "{id}");
    let page = private.shown(&id).await;
    assert!(page.contains("Visible: FOLLOWER_OF_CREATOR") && page.contains("to everybody"), "{page}");
    let analytics = platform.analytics.expect("it has figures");
    let failure = analytics.metrics(&private.session(&keep), &id).await.expect_err("not public");
    assert_eq!(failure.code, rejected(404));

    let strict = world.named(platform, "strict.ada");
    let page = strict.shown(&strict.publish(&strict.post("a video")).await.on("publish")).await;
    for note in ["No comments", "No duets", "No stitches"] {
        assert!(page.contains(note), "{note}: {page}");
    }
    let mut long = strict.post("a long video");
    long.media[0].duration = Some(Duration::from_secs(61));
    let failure = strict.prepare(&long).await.expect_err("too long for this creator");
    assert!(failure.code == rejected(422) && failure.message.contains("60 seconds"), "{failure}");
}

async fn a_large_video_is_uploaded_in_parts_and_resumes_after_each() {
    let world = World::start().await;
    let actor = audited(&world).await;
    for broken in [2, 3] {
        let mut post = actor.post("a large video");
        post.media[0] = actor.sized(&post.media[0], 65_000_011);
        let (mut at, was_interrupted) = actor.prepare_interrupted(&post, broken).await.on("prepare");
        assert!(was_interrupted);
        assert_eq!(at.0["sent"], 5, "all but the last of six: {at:?}");
        if broken == 3 {
            // As after a lost response: TikTok returns its offset.
            at.0["sent"] = json!(1);
        }
        assert_eq!(actor.settle(&post, &at).await.on("settle"), Located::Absent);
        let committed = actor.commit(&post, &at).await.on("commit");
        let id = actor.landed(&post, committed).await.on("landed");
        assert!(actor.shown(&id).await.contains("a large video"));
    }
    assert_eq!(actor.accepted().await, 2);
}

async fn an_expired_upload_is_restarted() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let post = actor.post("a video");
    let mut at = actor.prepare(&post).await.on("prepare");
    let upload = at.0["upload"].as_str().expect("an address").to_owned();
    at.0["upload"] = json!(upload.replace("upload_token=", "upload_token=wrong"));
    let failure = actor.commit(&post, &at).await.expect_err("it is gone");
    assert!(!failure.is_ambiguous() && !failure.code.is_permanent(), "{failure:?}");
    // An upload URL that is about to expire is not used.
    at.0["expires_at"] = json!(clock() + TimeDelta::minutes(1));
    let fresh = actor.prepare_from(&post, at.clone()).await.on("restarted");
    assert_ne!(fresh.0["publish"], at.0["publish"]);
    let committed = actor.commit(&post, &fresh).await.on("commit");
    actor.landed(&post, committed).await.on("landed");
    assert_eq!(actor.accepted().await, 1);
}

async fn settings_are_applied_to_photos() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let mut post = actor.post_with("the description", MediaKind::Image, 3);
    post.settings = json!({
        "title": "A title", "disable_comment": true, "brand_organic_toggle": true, "is_aigc": true,
        "photo_cover_index": 2, "auto_add_music": true,
    });
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    for words in ["the description", "Title: A title", "No comments", "own business", "Made with AI"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("<img src=\"/_media/").count(), 3, "{page}");

    let mut gone = actor.post_with("of nothing", MediaKind::Image, 1);
    gone.media[0].id = uuid::Uuid::now_v7();
    let failure = actor.publish(&gone).await.expect_err("the photo does not exist");
    assert!(!failure.code.is_permanent() && failure.message.contains("photo_pull_failed"), "{failure}");
}

async fn photos_with_a_lost_response_are_found_or_left_unresolved() {
    let world = World::start().await;
    let actor = audited(&world).await;
    actor.set(&json!({ "processing_ms": 0 })).await;
    for (level, text) in
        [("PUBLIC_TO_EVERYONE", "public #sandbox-lost-reply"), ("SELF_ONLY", "mine #sandbox-lost-reply")]
    {
        let mut post = actor.post_with(text, MediaKind::Image, 2);
        post.settings = json!({ "privacy_level": level });
        let at = actor.prepare(&post).await.on("prepare");
        let failure = actor.commit(&post, &at).await.expect_err("lost");
        assert!(failure.is_ambiguous(), "{failure:?}");
        let located = actor.settle(&post, &at).await.on("settle");
        match level {
            "SELF_ONLY" => assert_eq!(located, Located::Unknown),
            _ => assert!(matches!(located, Located::Live(_)), "{located:?}"),
        }
    }
}

async fn the_daily_limit_of_a_creator_returns_the_wait() {
    let world = World::start().await;
    let actor = audited(&world).await;
    for (limit, least) in [("tiktok.posts", 3600), ("tiktok.inits", 60)] {
        actor.set(&json!({ "limits": { limit: 0 } })).await;
        let failure = actor.publish(&actor.post("a video")).await.expect_err(limit);
        assert_eq!(failure.code, ErrorCode::RateLimited, "{failure}");
        assert!(failure.retry_after.is_some_and(|wait| wait >= Duration::from_secs(least)), "{failure:?}");
    }
}

async fn an_invalid_part_is_rejected_as_documented() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let call = |path: &str, body: Value| {
        let call = actor.http.post(actor.url.join(&format!("open.tiktokapis.com/v2/{path}")).expect("a URL"));
        call.bearer_auth(&actor.grant.access_token).json(&body).send()
    };
    let init = |size: u64, chunk: u64, count: u64| {
        call(
            "post/publish/video/init/",
            json!({
                "post_info": { "privacy_level": "SELF_ONLY", "title": "raw" },
                "source_info": {
                    "source": "FILE_UPLOAD", "video_size": size, "chunk_size": chunk, "total_chunk_count": count,
                },
            }),
        )
    };
    // The example of the guide, and values next to it.
    for (size, chunk, count, status) in [
        (50_000_123, 10_000_000, 5, 200),
        (50_000_123, 10_000_000, 6, 400),
        (50_000_123, 4_000_000, 12, 400),
        (4_000_000, 4_000_000, 1, 200),
        (4_000_000, 2_000_000, 2, 400),
        // A single part is the whole file.
        (9_000_000, 5_000_000, 1, 400),
        (9_000_000, 9_000_000, 1, 200),
        (64_000_000, 64_000_000, 1, 200),
        (64_000_001, 64_000_001, 1, 400),
        (0, 0, 0, 400),
    ] {
        let answer = init(size, chunk, count).await.expect("an answer");
        assert_eq!(answer.status(), status, "{size} {chunk} {count}");
    }
    let begun: Value = init(11_000_000, 5_000_000, 2).await.expect("an answer").json().await.expect("JSON");
    let address = begun["data"]["upload_url"].as_str().expect("an address").to_owned();
    assert!(address.len() <= 256);
    let put = |range: &str, length: usize| {
        let call =
            actor.http.put(&address).header("content-type", "video/mp4").header("content-range", range);
        call.body(vec![7; length]).send()
    };
    for (range, length, status) in [
        ("bytes 0-4999999/11000000", 10, 400),
        ("bytes 0-9/11000000", 10, 400),
        ("bytes 5000000-10999999/11000000", 6_000_000, 416),
        ("bytes 0-4999999/11000000", 5_000_000, 206),
        ("bytes 0-4999999/11000000", 5_000_000, 416),
        ("bytes 5000000-10999999/11000000", 6_000_000, 201),
    ] {
        let answer = put(range, length).await.expect("an answer");
        assert_eq!(answer.status(), status, "{range} {length}");
        if status == 206 {
            assert_eq!(answer.headers()["content-range"], "bytes 0-4999999/11000000");
        }
    }
    let ended = call("post/publish/status/fetch/", json!({ "publish_id": "v_pub_file~nothing" })).await;
    assert_eq!(ended.expect("an answer").status(), 400);
    let level = call(
        "post/publish/video/init/",
        json!({ "post_info": { "privacy_level": "FOLLOWER_OF_CREATOR" }, "source_info": { "source": "FILE_UPLOAD" } }),
    );
    assert_eq!(level.await.expect("an answer").status(), 403);
}

async fn a_commit_of_photos_returns_its_id_later() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let post = actor.post_with("photos", MediaKind::Image, 1);
    let at = actor.prepare(&post).await.on("prepare");
    let committed = actor.commit(&post, &at).await.on("commit");
    assert!(matches!(committed, Committed::Accepted { .. }), "{committed:?}");
    let id = actor.landed(&post, committed).await.on("landed");
    assert!(id.bytes().all(|byte| byte.is_ascii_digit()), "{id}");
}

async fn an_app_that_is_not_audited_posts_for_its_creator_alone() {
    let world = World::start().await;
    let platform = platforms::get("tiktok").expect("it has an adapter");
    let private = world.named(platform, "private.ada");
    for kind in [MediaKind::Video, MediaKind::Image] {
        // Without a choice.
        let mut post = private.post_with(&format!("a {kind} for me"), kind, 1);
        let notes = private.notes(&post).await.on("publish");
        assert!(notes.len() == 1 && notes[0].contains("SELF_ONLY"), "{notes:?}");
        let page = private.shown("v~").await;
        assert!(page.contains("Visible: SELF_ONLY") && page.contains(&post.text), "{page}");

        post.settings = json!({ "privacy_level": "SELF_ONLY" });
        assert_eq!(private.notes(&post).await.on("as chosen"), Vec::<String>::new());

        // A choice is never changed.
        post.settings = json!({ "privacy_level": "FOLLOWER_OF_CREATOR" });
        let failure = private.publish(&post).await.expect_err("for others");
        assert_eq!(failure.code, rejected(403), "{failure}");
        assert!(failure.message.contains("not audited") && !failure.is_ambiguous(), "{failure}");

        // A post for the creator alone is refused on a public account too.
        let public = world.named(platform, "ada");
        for settings in [json!({}), json!({ "privacy_level": "SELF_ONLY" })] {
            let mut post = public.post_with("for me", kind, 1);
            post.settings = settings;
            let failure = public.publish(&post).await.expect_err("a public account");
            assert!(
                failure.code == rejected(403) && failure.message.contains("private accounts"),
                "{failure}"
            );
        }
        assert_eq!(public.accepted().await, 0);
    }
    assert_eq!(private.accepted().await, 4);

    for name in ["private.b", "private.c", "private.d", "private.e"] {
        let other = world.named(platform, name);
        other.publish(&other.post("mine")).await.on(name);
    }
    let sixth = world.named(platform, "private.f");
    let failure = sixth.publish(&sixth.post("mine")).await.expect_err("five accounts a day");
    assert!(failure.code == ErrorCode::AppRefused && failure.message.contains("five accounts"), "{failure}");
    // The others publish as before, so that their posts do not wait.
    assert_eq!(failure.holds, Holds::Post);
    private.publish(&private.post("again")).await.on("one of the five");
}

/// TikTok fetches photos from domains that the operator has verified, and is sent videos.
async fn an_unverified_domain_holds_photos_alone() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let mut photo = actor.post_with("fetched", MediaKind::Image, 1);
    let name = std::mem::replace(&mut photo.media[0].filename, "unverified.jpg".to_owned());
    let failure = actor.publish(&photo).await.expect_err("not verified");
    assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::AppRefused, false), "{failure}");
    assert!(failure.message.contains("has to be verified"), "{failure}");
    assert_eq!(failure.holds, Holds::Post);
    actor.publish(&actor.post_with("sent", MediaKind::Video, 1)).await.on("a video");
    photo.media[0].filename = name;
    actor.publish(&photo).await.on("verified");
}

async fn photos_have_sizes_and_texts_of_their_own() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let checked = |post: &PublishRequest| {
        let issues = check(
            actor.platform,
            &[ContainerContent { text: &post.text, media: &post.media }],
            &post.settings,
        );
        let (errors, warnings): (Vec<_>, Vec<_>) =
            issues.into_iter().partition(|issue| issue.severity == Severity::Error);
        let codes = |issues: Vec<platforms::check::Issue>| -> Vec<String> {
            issues.into_iter().map(|issue| issue.code).collect()
        };
        (codes(errors), codes(warnings))
    };
    for (width, height, is_taken) in
        [(1080, 1920, true), (1920, 1080, true), (1080, 1080, true), (1086, 1448, false), (1200, 1200, false)]
    {
        let mut post = actor.post_with("a photo", MediaKind::Image, 1);
        post.media[0] = actor.resized(&post.media[0], width, height);
        // A post's picture is fitted before it is published; this one is not.
        let (errors, warnings) = checked(&post);
        assert_eq!(errors, Vec::<String>::new(), "{width}x{height}");
        assert_eq!(!warnings.iter().any(|code| code == "media_fitted"), is_taken, "{width}x{height}");
        match actor.publish(&post).await {
            Ok(_) => assert!(is_taken, "{width}x{height}"),
            Err(failure) => {
                assert!(!is_taken && failure.message.contains("picture_size_check_failed"), "{failure}");
            }
        }
    }

    for (kind, longest) in [(MediaKind::Image, 4000), (MediaKind::Video, 2200)] {
        let mut post = actor.post_with(&"ä".repeat(longest), kind, 1);
        assert_eq!(checked(&post).0, Vec::<String>::new(), "{kind}");
        actor.publish(&post).await.on("the longest text");
        post.text.push('a');
        assert_eq!(checked(&post).0, ["text_too_long"], "{kind}");
    }

    let mut post = actor.post_with("a photo", MediaKind::Image, 1);
    assert_eq!(checked(&post).1, ["setting_not_chosen"], "nobody chose who sees it");
    // An emoji counts as two.
    for (title, errors) in [("🙂".repeat(45), vec![]), ("🙂".repeat(46), vec!["setting_invalid"])] {
        post.settings = json!({ "title": title, "privacy_level": "SELF_ONLY" });
        assert_eq!(checked(&post), (errors.into_iter().map(str::to_owned).collect(), vec![]));
    }
}

async fn a_post_that_tiktok_gave_up_is_posted_again() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let post = actor.post("sandbox-internal");
    let at = actor.prepare(&post).await.on("prepare");
    // The response is lost, and with it the checkpoint.
    actor.commit(&post, &at).await.on("commit");
    assert_eq!(actor.settle(&post, &at).await.on("settle"), Located::Absent);
    let again = PublishRequest { commit_begun_at: Some(clock()), ..post.clone() };
    let fresh = actor.prepare_from(&again, at.clone()).await.on("again");
    assert_ne!(fresh.0["publish"], at.0["publish"]);
    let committed = actor.commit(&again, &fresh).await.on("commit");
    actor.landed(&again, committed).await.on("landed");
    assert_eq!(actor.accepted().await, 1);

    let failure = actor.publish(&actor.post("sandbox-internal again")).await.expect_err("given up");
    assert!(!failure.code.is_permanent() && !failure.is_ambiguous(), "{failure:?}");
}

async fn a_renamed_creator_keeps_working_links() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let id = actor.publish(&actor.post("under a new name")).await.on("publish");
    let mut renamed = actor.clone();
    renamed.account.username = "formerly.ada".to_owned();
    assert!(renamed.permalink(&id).await.contains("/@ada/video/"));
    assert!(renamed.shown(&id).await.contains("under a new name"));
    let history = actor.platform.history.expect("it has lists");
    let page = history.page(&renamed.session(&Kept::default()), None).await.on("history");
    assert_eq!(page.items[0].url, renamed.permalink(&id).await);
}

/// Any app may fill the inbox, also that of a public account.
async fn a_post_for_the_inbox_waits_there_for_its_creator() {
    let world = World::tapped().await;
    let actor = actor(&world, "tiktok");
    for (kind, is_texted) in [(MediaKind::Video, false), (MediaKind::Image, true)] {
        let mut post = actor.post_with(&format!("a {kind} to finish"), kind, 1);
        post.settings = json!({
            "post_mode": "MEDIA_UPLOAD", "privacy_level": "SELF_ONLY", "brand_content_toggle": true,
            "title": "A title", "is_aigc": true,
        });
        let notes = actor.notes(&post).await.on("publish");
        assert!(notes.len() == 1 && notes[0].contains("waits in the inbox"), "{notes:?}");
        let page = actor.shown("v~").await;
        assert!(page.contains("In the inbox") && !page.contains("Visible:"), "{page}");
        assert_eq!(page.contains(&post.text) && page.contains("Title: A title"), is_texted, "{page}");
    }
    let bodies: Vec<Value> = world
        .heard()
        .into_iter()
        .filter(|call| call.path.ends_with("/init/"))
        .map(|call| call.body)
        .collect();
    assert_eq!(bodies.len(), 2);
    let members: Vec<_> =
        bodies[0].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    assert_eq!(members, ["source_info"]);
    assert_eq!(bodies[1]["post_mode"], "MEDIA_UPLOAD");
    assert_eq!(bodies[1]["post_info"], json!({ "title": "A title", "description": "a image to finish" }));
    assert_eq!(actor.accepted().await, 2);
    // It is not public, so that no list has it.
    let history = actor.platform.history.expect("it has lists");
    assert_eq!(history.page(&actor.session(&Kept::default()), None).await.on("history").items, []);
}

async fn a_worker_crash_after_any_call_leaves_one_post_in_the_inbox() {
    let world = World::tapped().await;
    let actor = actor(&world, "tiktok");
    // All lives together take more than a day's.
    let limits = json!({ "tiktok.pending": 1_000, "tiktok.inits": 1_000, "tiktok.statuses": 10_000 });
    actor.set(&json!({ "limits": limits })).await;
    for call in 1.. {
        let mut post = actor.post("a video");
        post.settings = json!({ "post_mode": "MEDIA_UPLOAD" });
        let before = actor.accepted().await;
        let (located, has_died) = world.publish_mortally(&actor, &post, call).await.on("publish");
        assert!(matches!(located, Located::Live(_)), "{located:?} after call {call}");
        assert_eq!(actor.accepted().await, before + 1, "after call {call}");
        if !has_died {
            assert!(call > 2, "there were {call} calls");
            break;
        }
    }
}

async fn photos_for_the_inbox_with_a_lost_response_are_left_unresolved() {
    let world = World::start().await;
    let actor = audited(&world).await;
    actor.set(&json!({ "processing_ms": 0 })).await;
    let mut post = actor.post_with("the same words #sandbox-lost-reply", MediaKind::Image, 1);
    // A public post that a search would take for it.
    actor.publish(&post).await.expect_err("lost");
    post.settings = json!({ "post_mode": "MEDIA_UPLOAD" });
    let at = actor.prepare(&post).await.on("prepare");
    let failure = actor.commit(&post, &at).await.expect_err("lost");
    assert!(failure.is_ambiguous(), "{failure:?}");
    assert_eq!(actor.settle(&post, &at).await.on("settle"), Located::Unknown);
}

async fn an_inbox_takes_five_posts_a_day() {
    let world = World::start().await;
    let actor = actor(&world, "tiktok");
    // The suite raises the limit.
    actor
        .set(&json!({ "limits": { "tiktok.pending": 5, "tiktok.inits": 1_000, "tiktok.statuses": 10_000 } }))
        .await;
    let mut post = actor.post_with("a photo", MediaKind::Image, 1);
    post.settings = json!({ "post_mode": "MEDIA_UPLOAD" });
    for _ in 0..5 {
        actor.publish(&post).await.on("publish");
    }
    let failure = actor.publish(&post).await.expect_err("the sixth");
    assert!(failure.code == ErrorCode::RateLimited && failure.message.contains("inbox"), "{failure}");
    assert!(failure.retry_after.is_some_and(|wait| wait >= Duration::from_secs(3600)), "{failure:?}");
    assert_eq!(actor.accepted().await, 5);
}

async fn settings_that_the_inbox_does_not_take_are_told() {
    let world = World::start().await;
    let actor = actor(&world, "tiktok");
    let told = |kind: MediaKind, text: &str, level: &str| -> Vec<(Severity, String, String)> {
        let post = actor.post_with(text, kind, 1);
        let settings = json!({
            "post_mode": "MEDIA_UPLOAD", "privacy_level": level, "disable_comment": true,
            "brand_content_toggle": false, "brand_organic_toggle": true, "is_aigc": true, "title": "A title",
            "photo_cover_index": 0, "auto_add_music": true,
        });
        let issues = check(actor.platform, &[ContainerContent { text, media: &post.media }], &settings);
        let last = |issue: &platforms::check::Issue| issue.path.last()?.as_str().map(str::to_owned);
        issues
            .iter()
            .map(|issue| (issue.severity, issue.code.clone(), last(issue).expect("a name")))
            .collect()
    };
    let (warning, error) = (Severity::Warning, Severity::Error);
    let expected = |unused: &[(Severity, &str)], has_text: bool| -> Vec<(Severity, String, String)> {
        let unused = unused.iter().map(|(severity, setting)| (*severity, "setting_not_used", *setting));
        let waits = [(warning, "post_waits_in_inbox", "post_mode")];
        let text = has_text.then_some((warning, "text_ignored", "content"));
        let all = unused.chain(waits).chain(text);
        all.map(|(severity, code, member)| (severity, code.to_owned(), member.to_owned())).collect()
    };
    let of_photos = [
        (warning, "auto_add_music"),
        (warning, "brand_content_toggle"),
        (error, "brand_organic_toggle"),
        (warning, "disable_comment"),
        (error, "privacy_level"),
    ];
    assert_eq!(told(MediaKind::Image, "a text", "SELF_ONLY"), expected(&of_photos, false));
    let of_video = [
        (warning, "auto_add_music"),
        (warning, "brand_content_toggle"),
        (error, "brand_organic_toggle"),
        (warning, "disable_comment"),
        (error, "is_aigc"),
        (warning, "photo_cover_index"),
        // Everybody is no audience that the creator could widen.
        (warning, "privacy_level"),
        (warning, "title"),
    ];
    assert_eq!(told(MediaKind::Video, "", "PUBLIC_TO_EVERYONE"), expected(&of_video, false));
    assert_eq!(told(MediaKind::Video, "a text", "PUBLIC_TO_EVERYONE"), expected(&of_video, true));
    // Nobody has to choose who sees it.
    let settings = json!({ "post_mode": "MEDIA_UPLOAD" });
    let post = actor.post("");
    let issues = check(actor.platform, &[ContainerContent { text: "", media: &post.media }], &settings);
    let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
    assert_eq!(codes, ["post_waits_in_inbox"]);
}

/// Returns an account that granted these scopes.
async fn limited(actor: &Actor, scopes: &[&str]) -> Actor {
    let brought = actor.consent_to(scopes, "allow").await.expect("it has codes");
    let mut limited = actor.clone();
    limited.grant = actor.exchange(&brought["code"]).await.on("exchange");
    limited
}

/// Of the creator's options, `video.publish` opens the handle; `video.upload` opens none.
async fn a_display_name_is_no_handle() {
    let world = World::start().await;
    let platform = audited(&world).await.platform;
    let profile = async |actor: &Actor| {
        let identities = actor.identities().await.on("identities");
        identities.into_iter().next().expect("one account").profile
    };
    let mut names = Vec::new();
    for username in ["ada.one", "ada.two"] {
        let ada = world.named(platform, username);
        for scopes in [&["user.info.basic", "video.publish"][..], &["user.info.basic", "user.info.profile"]] {
            let told = profile(&limited(&ada, scopes).await).await;
            assert_eq!((&*told.username, &*told.display_name), (username, "Ada Creator"));
            assert_eq!(told.profile_url, Some(format!("https://www.tiktok.com/@{username}")));
        }
        let mut inbox = limited(&ada, &["user.info.basic", "video.upload"]).await;
        let told = profile(&inbox).await;
        assert_eq!((&*told.username, &*told.display_name), (&*told.network_unique_id, "Ada Creator"));
        assert_eq!(told.profile_url, None, "nobody knows the page");
        // Also of an account whose display name was stored as its name.
        inbox.account.username = "ada".to_owned();
        let mut post = inbox.post("a draft");
        post.settings = json!({ "post_mode": "MEDIA_UPLOAD" });
        let id = inbox.publish(&post).await.on("publish");
        let keep = Kept::default();
        let asked = platform.publisher.permalink(&inbox.session(&keep), &id).await;
        assert_eq!(asked.expect_err("no handle").code, rejected(404), "{id}");
        names.push(told.username);
    }
    assert_ne!(names[0], names[1], "creators with one display name are told apart");
}

/// TikTok's answer to a call whose scope the creator took back after the login: the stored scopes still have it.
async fn a_scope_that_was_taken_back_ends_the_grant() {
    let world = World::start().await;
    let ada = audited(&world).await;
    for (granted, settings, kind) in [
        ("video.upload", json!({}), MediaKind::Video),
        ("video.upload", json!({}), MediaKind::Image),
        ("video.publish", json!({ "post_mode": "MEDIA_UPLOAD" }), MediaKind::Video),
        ("video.publish", json!({ "post_mode": "MEDIA_UPLOAD" }), MediaKind::Image),
    ] {
        let mut actor = limited(&ada, &["user.info.basic", granted]).await;
        actor.grant.scopes = ["user.info.basic", "video.publish", "video.upload"].map(str::to_owned).to_vec();
        let mut post = actor.post_with("refused", kind, 1);
        post.settings = settings.clone();
        let failure = actor.publish(&post).await.expect_err("a scope is missing");
        assert!(failure.is_revoked() && !failure.is_ambiguous(), "{granted} {kind}: {failure}");
        assert!(failure.message.contains("scope_not_authorized"), "{failure}");
        assert_eq!(actor.accepted().await, 0);
        // A call that publishes nothing says nothing of the grant.
        let keep = Kept::default();
        let asked = actor.platform.history.expect("lists").page(&actor.session(&keep), None).await;
        assert_eq!(asked.expect_err("no video.list").code, rejected(401));
    }
}

async fn the_default_scopes_are_those_of_every_app() {
    let world = World::start().await;
    let mut actor = actor(&world, "tiktok");
    actor.set(&json!({ "app": "new" })).await;
    let oauth = actor.platform.auth.oauth().expect("it has logins");
    actor.account.username = "private.ada".to_owned();
    let limited = limited(&actor, oauth.scopes).await;
    assert_eq!(limited.platform.missing(Feature::Publishing, &limited.grant.scopes), Vec::<&str>::new());
    limited.publish(&limited.post("of a new app")).await.on("publish");
    let display = oauth.preset("display").expect("a preset").scopes;
    assert_eq!(actor.status_of_login(display).await, 400, "one scope of another product refuses the login");
    actor.set(&json!({ "app": "approved" })).await;
    assert_eq!(actor.status_of_login(display).await, 200);
}

async fn each_post_mode_needs_its_own_scope() {
    let world = World::start().await;
    let ada = audited(&world).await;
    for (scope, settings, other, missing) in [
        ("video.upload", json!({ "post_mode": "MEDIA_UPLOAD" }), json!({}), "video.publish"),
        ("video.publish", json!({}), json!({ "post_mode": "MEDIA_UPLOAD" }), "video.upload"),
    ] {
        let brought = ada.consent_to(&["user.info.basic", scope], "allow").await.expect("it has codes");
        let mut actor = ada.clone();
        actor.grant = ada.exchange(&brought["code"]).await.on("exchange");
        let granted = &actor.grant.scopes;
        assert_eq!(actor.platform.missing(Feature::Publishing, granted), Vec::<&str>::new());
        actor.identities().await.on("identities");
        for kind in [MediaKind::Video, MediaKind::Image] {
            let before = actor.accepted().await;
            let mut post = actor.post_with("a post", kind, 1);
            let errors = |post: &PublishRequest| -> Vec<String> {
                let kind = AccountKind { account_type: "profile", scopes: granted };
                let contents = [ContainerContent { text: &post.text, media: &post.media }];
                let issues = check_for(actor.platform, kind, &contents, &post.settings).into_iter();
                let errors = issues.filter(|issue| issue.severity == Severity::Error);
                errors.map(|issue| format!("{} {}", issue.code, issue.message)).collect()
            };
            post.settings = settings.clone();
            assert_eq!(errors(&post), Vec::<String>::new(), "{scope}");
            let id = actor.publish(&post).await.on(scope);
            if scope == "video.publish" {
                assert_eq!(actor.status(&actor.permalink(&id).await).await, 200, "{scope}");
            }
            post.settings = other.clone();
            let found = errors(&post);
            assert!(found.len() == 1 && found[0].contains("scope_missing"), "{found:?}");
            assert!(found[0].contains(missing) && found[0].contains("post_mode"), "{found:?}");
            let failure = actor.publish(&post).await.expect_err(missing);
            assert!(failure.code == rejected(403) && failure.message.contains(missing), "{failure}");
            assert_eq!(actor.accepted().await, before + 1, "{scope}");
        }
    }
}

/// TikTok takes the first frame instead of one that is not there.
/// <https://developers.tiktok.com/doc/content-posting-api-reference-direct-post>
async fn a_cover_is_a_frame_of_the_video() {
    let world = World::start().await;
    let actor = audited(&world).await;
    let mut post = actor.post("with a cover");
    let length = post.media[0].duration.expect("a length").as_millis();
    let told = |at: u128, mode: &str| -> Vec<(Severity, String)> {
        let settings = json!({
            "video_cover_timestamp_ms": at, "privacy_level": "SELF_ONLY", "post_mode": mode,
        });
        let issues =
            check(actor.platform, &[ContainerContent { text: &post.text, media: &post.media }], &settings);
        let of_cover =
            issues.into_iter().filter(|issue| issue.path.last() == Some(&json!("video_cover_timestamp_ms")));
        of_cover.map(|issue| (issue.severity, issue.code)).collect()
    };
    let unused = (Severity::Warning, "setting_not_used".to_owned());
    assert_eq!(told(length - 1, "DIRECT_POST"), []);
    assert_eq!(told(length, "DIRECT_POST"), std::slice::from_ref(&unused));
    assert_eq!(told(u128::from(i32::MAX.unsigned_abs()), "DIRECT_POST"), std::slice::from_ref(&unused));
    // The creator chooses the cover in TikTok's app.
    assert_eq!(told(length, "MEDIA_UPLOAD"), [unused]);
    post.settings = json!({ "video_cover_timestamp_ms": length - 1 });
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains(&format!("Cover: {} ms", length - 1)), "{page}");
}
