//! Instagram: stories, tags in a carousel, comments that are turned off, and containers that can't be read.

use super::{actor, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use chrono::TimeDelta;
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Checkpoint, Committed, Located, Media, MediaKind, PublishRequest,
    check::{AccountKind, ContainerContent, check, check_for, check_reply},
};
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "instagram",
        &singles![
            an_image_story_is_published_without_its_alt_text,
            each_container_of_a_post_is_a_story,
            a_story_that_fails_leaves_the_others,
            a_lost_story_is_none_of_the_others,
            several_stories_are_checked_each,
            accounts_are_tagged_in_the_images_of_a_carousel,
            a_reel_is_covered_by_a_picture_of_the_post,
            a_cover_that_does_not_fit_the_media_is_rejected,
            a_container_that_can_t_be_read_is_published_after_two_more,
            a_container_that_is_gone_is_made_anew,
            a_thumbnail_after_the_end_of_its_video_is_refused,
            comments_are_turned_off_once_the_post_is_live,
            a_post_stays_live_if_its_comments_can_t_be_turned_off,
            a_post_without_comments_takes_no_first_comment_and_needs_its_scope,
            the_check_counts_no_fewer_hashtags_and_mentions_than_instagram,
            the_limit_of_the_app_names_no_wait_and_the_cap_of_posts_a_long_one,
        ],
    )
}

async fn an_image_story_is_published_without_its_alt_text() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let mut post = actor.post_with("", MediaKind::Image, 1);
    post.media[0].alt_text = Some("described".into());
    post.settings = json!({ "media_type": "STORIES" });
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("STORY") && !page.contains("described"), "{page}");
}

async fn the_check_counts_no_fewer_hashtags_and_mentions_than_instagram() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    for (word, is_counted) in [
        ("#a", true),
        ("#été", true),
        ("#_", true),
        ("#²", true),
        ("#Ⓐ", true),
        ("@ada", true),
        ("@_", true),
        ("##a", false),
        ("#!", false),
        ("@.", false),
        ("@@ada", false),
        ("a#b", false),
    ] {
        let text = vec![word; 31].join(" ");
        let post = actor.post_with(&text, MediaKind::Image, 1);
        let content = ContainerContent { text: &post.text, media: &post.media };
        let issues = check(actor.platform, &[content], &json!({}));
        let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
        assert_eq!(codes.iter().any(|code| code.ends_with("_too_many")), is_counted, "{word}: {codes:?}");
        let published = actor.publish(&post).await;
        assert_eq!(published.is_err(), is_counted, "{word}: {published:?}");
    }
}

async fn accounts_are_tagged_in_the_images_of_a_carousel() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let mut post = actor.post_with("together", MediaKind::Image, 3);
    post.settings = json!({ "user_tags": [
        { "username": "bob", "x": 0.5, "y": 0.25 },
        { "username": "eve", "x": 0.1, "y": 0.2, "media_index": 2 },
    ] });
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    for tag in [
        r#"user_tags of 0: [{"username":"bob","x":0.5,"y":0.25}]"#,
        r#"user_tags of 2: [{"username":"eve","x":0.1,"y":0.2}]"#,
    ] {
        assert!(page.contains(tag), "{tag}: {page}");
    }
    assert!(!page.contains("user_tags of 1"), "{page}");
}

async fn a_reel_is_covered_by_a_picture_of_the_post() {
    let world = World::tapped().await;
    let actor = actor(&world, "instagram");
    let mut post = actor.post_with("covered", MediaKind::Image, 1);
    post.media.extend(actor.post_with("", MediaKind::Video, 1).media);
    post.settings = json!({ "cover": post.media[0].id });
    let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
    assert!(page.contains("REELS") && page.contains("covered"), "{page}");
    let heard = world.heard();
    let made: Vec<_> =
        heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/media")).collect();
    let [reel] = made.as_slice() else { panic!("there is one container") };
    let given: HashMap<_, _> = url::form_urlencoded::parse(reel.text.as_bytes()).into_owned().collect();
    assert_eq!(given["media_type"], "REELS");
    assert!(given["cover_url"].contains(&post.media[0].id.to_string()), "{given:?}");
    assert!(given["video_url"].contains(&post.media[1].id.to_string()), "{given:?}");

    // It is looked for as a reel, not as a carousel.
    post.text = "covered #sandbox-lost-reply".into();
    let at = actor.prepare(&post).await.on("prepare");
    actor.commit(&post, &at).await.expect_err("the answer is lost");
    let located = actor.settle(&post, &at).await.on("settle");
    assert!(matches!(located, Located::Live(_)), "{located:?}");
}

async fn a_cover_that_does_not_fit_the_media_is_rejected() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let pictures = actor.post_with("", MediaKind::Image, 2).media;
    let films = actor.post_with("", MediaKind::Video, 2).media;
    let (picture, film) = (&pictures[0], &films[0]);
    for (media, settings) in [
        (vec![film, picture], json!({ "cover": "0190c0de-0000-7000-8000-000000000000" })),
        (vec![film, picture], json!({ "cover": film.id })),
        (vec![picture], json!({ "cover": picture.id })),
        (vec![film, picture, &films[1]], json!({ "cover": picture.id })),
        (vec![film, picture, &pictures[1]], json!({ "cover": picture.id })),
        (vec![film, picture], json!({ "cover": picture.id, "media_type": "STORIES" })),
    ] {
        let mut post = actor.post_with("a reel", MediaKind::Image, 0);
        post.media = media.into_iter().cloned().collect();
        post.settings = settings;
        let issues =
            check(actor.platform, &[ContainerContent { text: "a reel", media: &post.media }], &post.settings);
        let [issue] = issues.as_slice() else { panic!("{}: {issues:?}", post.settings) };
        assert_eq!(issue.code, "settings_conflict", "{issue:?}");
        assert_eq!(issue.path, ["config", "instagram", "cover"], "{issue:?}");
        let failure = actor.prepare(&post).await.expect_err("the cover does not fit");
        assert_eq!(failure.code, ErrorCode::Rejected(400), "{failure}");
    }
    let media = [film.clone(), picture.clone()];
    let codes = |settings| {
        let issues = check(actor.platform, &[ContainerContent { text: "a reel", media: &media }], &settings);
        issues.into_iter().map(|issue| issue.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(json!({ "cover": picture.id })), [""; 0]);
    let both = json!({ "cover": picture.id, "cover_url": "https://example.com/a.jpg" });
    assert_eq!(codes(both), ["settings_conflict"]);
}

async fn a_container_that_can_t_be_read_is_published_after_two_more() {
    let world = World::tapped().await;
    let platform = platforms::get("instagram").expect("it has an adapter");
    let actor = world.named(platform, "unreadable.ada");
    let post = actor.post_with("unseen", MediaKind::Image, 1);
    let id = actor.publish(&post).await.on("publish");
    assert!(actor.shown(&id).await.contains("unseen"));
    let heard = world.heard();
    let made = heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/media"));
    assert_eq!(made.count(), 3);
    assert_eq!(actor.accepted().await, 1);
}

/// "Generate a new container ID and use it to try again." Not while an earlier call is in doubt: its container tells its
/// outcome, and can be published once only.
async fn a_container_that_is_gone_is_made_anew() {
    let world = World::tapped().await;
    let actor = actor(&world, "instagram");
    let address = format!("/graph.instagram.com/v26.0/{}/media_publish", actor.account.network_unique_id);
    let gone = json!({ "error": {
        "message": "The media builder with creation id = 1 does not exist or has been expired.",
        "code": 24, "error_subcode": 2_207_008,
    } });
    let refused = async |post: &PublishRequest, at: &Checkpoint| {
        let keep = Kept::default();
        let refused = actor.platform.publisher.commit(&actor.session(&keep), post, at).await;
        let failure = refused.expect_err("no container");
        assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::Upstream(503), false), "{failure}");
        keep.last()
    };
    let post = actor.post_with("lost and made again", MediaKind::Image, 1);
    let mut at = actor.prepare(&post).await.on("prepare");
    world.lie(&[(&address, 400, gone)]);
    let doubtful = PublishRequest { commit_begun_at: Some((actor.now)()), ..post.clone() };
    for _ in 0..3 {
        assert_eq!(refused(&doubtful, &at).await, None, "the container stays");
    }
    for _ in 0..2 {
        at = refused(&post, &at).await.expect("it is counted");
    }
    world.lie(&[]);
    let at = actor.prepare_from(&post, at).await.on("prepare again");
    let committed = actor.commit(&post, &at).await.on("publish");
    let id = actor.landed(&post, committed).await.on("look");
    assert!(actor.shown(&id).await.contains("lost and made again"));
    let heard = world.heard();
    assert_eq!(heard.iter().filter(|call| call.method == "POST" && call.path.ends_with("/media")).count(), 2);
    assert_eq!(actor.accepted().await, 1);
}

async fn the_limit_of_the_app_names_no_wait_and_the_cap_of_posts_a_long_one() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let post = actor.post("too much");
    actor.set(&json!({ "limits": { "instagram.posts": 0 } })).await;
    let failure = actor.publish(&post).await.expect_err("the cap");
    assert_eq!(failure.code, ErrorCode::RateLimited, "{failure}");
    // The cap counts a day; the attempts of a post last longer.
    let attempts = domain::retry::ATTEMPTS - 1;
    let longest = failure.retry_after.map(|wait| wait * attempts);
    assert!(longest.is_some_and(|longest| longest > Duration::from_secs(24 * 3600)), "{failure:?}");
    actor.set(&json!({ "limits": { "instagram.calls": 0 } })).await;
    let failure = actor.publish(&post).await.expect_err("the limit");
    assert_eq!((failure.code, failure.retry_after), (ErrorCode::RateLimited, None), "{failure}");
}

async fn a_thumbnail_after_the_end_of_its_video_is_refused() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let mut post = actor.post_with("a reel of five seconds", MediaKind::Video, 1);
    // The platform measures the file, whatever the request's author believes.
    post.media[0].duration = Some(Duration::from_mins(1));
    for (offset, is_taken) in [(5_000, false), (30_000, false), (4_999, true)] {
        post.settings = json!({ "thumb_offset": offset });
        match actor.publish(&post).await {
            Ok(_) => assert!(is_taken, "{offset}"),
            Err(failure) => assert!(!is_taken && failure.code == rejected(400), "{offset}: {failure}"),
        }
    }
}

async fn comments_are_turned_off_once_the_post_is_live() {
    let world = World::tapped().await;
    let actor = actor(&world, "instagram");
    let quiet = |text: &str, kind, count| PublishRequest {
        settings: json!({ "comment_enabled": false }),
        ..actor.post_with(text, kind, count)
    };
    for post in [
        quiet("one quiet picture", MediaKind::Image, 1),
        quiet("three quiet pictures", MediaKind::Image, 3),
        quiet("a quiet reel", MediaKind::Video, 1),
        // The answer to the publication is lost, so that the list shows its id.
        quiet("a quiet loss #sandbox-lost-reply", MediaKind::Image, 1),
    ] {
        let at = actor.prepare(&post).await.on("prepare");
        let id = match actor.commit(&post, &at).await {
            Ok(committed) => actor.landed(&post, committed).await.on("look"),
            Err(failure) => {
                assert!(failure.is_ambiguous() && post.text.contains("lost"), "{failure}");
                let located = actor.settle(&post, &at).await.on("settle");
                located.id().expect("it is live").to_owned()
            }
        };
        let page = actor.shown(&id).await;
        assert!(page.contains("Comments are off") && page.contains(&post.text), "{page}");
        let heard = world.heard();
        let path = format!("/graph.instagram.com/v26.0/{id}");
        let change = heard.iter().rposition(|call| call.method == "POST" && call.path == path);
        let publication = heard.iter().rposition(|call| call.path.ends_with("/media_publish"));
        assert!(change > publication, "{change:?} {publication:?}");
        assert_eq!(heard[change.expect("a change")].text, "comment_enabled=false");
        let refused = actor.publish(&actor.reply("first", &[id])).await.expect_err("no comments");
        assert_eq!(refused.code, rejected(403), "{refused}");
    }
    assert_eq!(actor.accepted().await, 4);
    let loud = PublishRequest {
        settings: json!({ "comment_enabled": true }),
        ..actor.post_with("a loud picture", MediaKind::Image, 1)
    };
    let page = actor.shown(&actor.publish(&loud).await.on("publish")).await;
    assert!(!page.contains("Comments are off"), "{page}");
}

async fn a_post_stays_live_if_its_comments_can_t_be_turned_off() {
    let world = World::tapped().await;
    let actor = actor(&world, "instagram");
    let mut post = actor.post_with("it stays", MediaKind::Image, 1);
    post.settings = json!({ "comment_enabled": false });
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("its comments are still to be turned off")
    };
    let id = at.0["live"].as_str().expect("an id").to_owned();
    let path = format!("/graph.instagram.com/v26.0/{id}");
    let answer = |code: u64| json!({ "error": { "message": "Not now.", "code": code } });
    let look = async |age: TimeDelta| {
        let keep = Kept::default();
        let post = PublishRequest { commit_begun_at: Some((actor.now)() - age), ..post.clone() };
        let located = actor.platform.publisher.locate(&actor.session(&keep), &post, &at).await;
        (located, keep.notes())
    };
    world.lie(&[(&path, 503, answer(2))]);
    let (located, notes) = look(TimeDelta::seconds(5)).await;
    assert!(located.is_err() && notes.is_empty(), "it is tried again: {located:?} {notes:?}");
    let told = "The post is live without comments turned off: Not now";
    let (located, notes) = look(TimeDelta::minutes(16)).await;
    assert_eq!(located.on("look"), Located::certain(id.clone()));
    assert!(notes[0].starts_with(told), "{notes:?}");
    world.lie(&[(&path, 403, answer(10))]);
    let (located, notes) = look(TimeDelta::seconds(5)).await;
    assert_eq!(located.on("look"), Located::certain(id.clone()));
    assert!(
        notes[0].starts_with(told) && notes[0].contains("instagram_business_manage_comments"),
        "{notes:?}"
    );
    let gone = json!({ "error": { "message": "Not now.", "code": 190, "error_subcode": 458 } });
    world.lie(&[(&path, 400, gone)]);
    let (located, notes) = look(TimeDelta::seconds(5)).await;
    assert_eq!(located.on("look"), Located::certain(id.clone()));
    assert!(notes[0].starts_with(told), "{notes:?}");
    world.lie(&[]);
    let (located, notes) = look(TimeDelta::seconds(5)).await;
    assert_eq!((located.on("look"), notes), (Located::certain(id.clone()), Vec::new()));
    assert!(actor.shown(&id).await.contains("Comments are off"));
    assert_eq!(actor.accepted().await, 1);
}

async fn a_post_without_comments_takes_no_first_comment_and_needs_its_scope() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let picture = actor.post_with("", MediaKind::Image, 1).media;
    let publishing = ["instagram_business_basic", "instagram_business_content_publish"];
    let all = [&publishing[..], &["instagram_business_manage_comments"]].concat();
    let codes = |containers: usize, scopes: &[&str], settings| {
        let main = ContainerContent { text: "quiet", media: &picture };
        let contents = [main, ContainerContent { text: "first", media: &[] }];
        let scopes: Vec<_> = scopes.iter().map(ToString::to_string).collect();
        let account = AccountKind { account_type: "business", scopes: &scopes };
        let issues = check_for(actor.platform, account, &contents[..containers], &settings);
        issues.into_iter().map(|issue| issue.code).collect::<Vec<_>>()
    };
    let quiet = json!({ "comment_enabled": false });
    assert_eq!(codes(1, &all, quiet.clone()), [""; 0]);
    assert_eq!(codes(2, &all, quiet.clone()), ["settings_conflict"]);
    assert_eq!(codes(1, &publishing, quiet.clone()), ["scope_missing"]);
    // Without the scope there is no first comment anyway.
    assert_eq!(codes(2, &publishing, quiet), ["replies_not_supported", "scope_missing"]);
    assert_eq!(codes(2, &all, json!({ "comment_enabled": true })), [""; 0]);
    assert_eq!(codes(1, &publishing, json!({ "comment_enabled": true })), [""; 0]);
    let story = json!({ "comment_enabled": false, "media_type": "STORIES" });
    assert_eq!(codes(1, &publishing, story), ["setting_not_used", "text_not_shown"]);
}

/// Returns the stories of a post, each as the engine publishes it: with its position, and as no reply.
fn stories<const N: usize>(actor: &Actor, texts: [&str; N], settings: &Value) -> [PublishRequest; N] {
    let mut position = 0;
    texts.map(|text| {
        let mut story = actor.post_with(text, MediaKind::Image, 1);
        (story.position, story.settings) = (position, settings.clone());
        position += 1;
        story
    })
}

async fn each_container_of_a_post_is_a_story() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let tags = json!([{ "username": "bob" }, { "username": "eve", "media_index": 2 }]);
    let settings = json!({ "media_type": "STORIES", "user_tags": tags });
    let tagged = [r#"[{"username":"bob"}]"#, "", r#"[{"username":"eve"}]"#];
    for (story, tagged) in stories(&actor, ["", "", ""], &settings).iter().zip(tagged) {
        let page = actor.shown(&actor.publish(story).await.on("publish")).await;
        assert!(page.contains("STORY"), "{page}");
        assert_eq!(page.contains("user_tags"), !tagged.is_empty(), "{page}");
        assert!(page.contains(tagged), "{page}");
    }
    assert_eq!(actor.accepted().await, 3);
}

async fn a_story_that_fails_leaves_the_others() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let [first, mut second, third] = stories(&actor, ["", "", ""], &json!({ "media_type": "STORIES" }));
    let film = actor.post_with("", MediaKind::Video, 1).media.remove(0);
    second.media = vec![actor.broken(&film)];
    let mut ids = vec![actor.publish(&first).await.on("publish")];
    let failure = actor.publish(&second).await.expect_err("its video is broken");
    assert!(failure.code.is_permanent() && !failure.is_ambiguous(), "{failure}");
    ids.push(actor.publish(&third).await.on("publish"));
    for id in ids {
        assert!(actor.shown(&id).await.contains("STORY"));
    }
    assert_eq!(actor.accepted().await, 2);
}

/// A story has no text, so that those of the same post are told apart by their ids.
async fn a_lost_story_is_none_of_the_others() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let [first, second] = stories(&actor, ["", ""], &json!({ "media_type": "STORIES" }));
    let id = actor.publish(&first).await.on("publish");
    let second = PublishRequest { taken: vec![id.clone()], ..second };
    let at = actor.prepare(&second).await.on("prepare");
    let unpublished = actor.settle(&second, &at).await.on("settle");
    assert_eq!(unpublished, Located::Absent, "its container was not published");
    let other = actor.landed(&second, actor.commit(&second, &at).await.on("commit")).await.on("look");
    // The same look-up after a lost answer: the container says that it was published, and the list what as.
    let located = actor.settle(&second, &at).await.on("settle");
    assert_eq!(located.id(), Some(&*other), "not {id}");
    assert_eq!(actor.accepted().await, 2);
}

async fn several_stories_are_checked_each() {
    let world = World::start().await;
    let actor = actor(&world, "instagram");
    let media = actor.post_with("", MediaKind::Image, 3).media;
    let film = actor.lasting(&actor.post_with("", MediaKind::Video, 1).media[0], 61);
    let [one, two] = [std::slice::from_ref(&media[0]), &media[..2]];
    let scopes: Vec<_> =
        ["instagram_business_basic", "instagram_business_content_publish"].map(str::to_owned).into();
    let issues = |containers: &[(&str, &[Media])], settings: &Value| {
        let contents: Vec<_> =
            containers.iter().map(|(text, media)| ContainerContent { text, media }).collect();
        let account = AccountKind { account_type: "business", scopes: &scopes };
        let issues = check_for(actor.platform, account, &contents, settings);
        issues.into_iter().map(|issue| (issue.code, json!(issue.path))).collect::<Vec<_>>()
    };
    let story = json!({ "media_type": "STORIES" });
    let expected = |code: &str, path: Value| vec![(code.to_owned(), path)];
    // They are no replies, for which the account lacks the scope, and as many as the author likes.
    assert_eq!(issues(&[("", one); 5], &story), []);
    assert_eq!(
        issues(&[("", one); 2], &json!({})),
        expected("replies_not_supported", json!(["containers", 1]))
    );
    assert_eq!(
        issues(&[("", one), ("", two)], &story),
        expected("media_too_many", json!(["containers", 1, "media"]))
    );
    let film = [film];
    assert_eq!(
        issues(&[("", one), ("", &film[..])], &story),
        expected("media_duration", json!(["containers", 1, "media"]))
    );
    assert_eq!(
        issues(&[("", one), ("unseen", one)], &story),
        expected("text_not_shown", json!(["containers", 1, "content"]))
    );
    // A text without a medium, which was a first comment before, is no story.
    assert_eq!(
        issues(&[("", one), ("a comment", &[][..])], &story)[0],
        ("media_required".to_owned(), json!(["containers", 1, "media"]))
    );
    let tags = |index: usize| json!({ "media_type": "STORIES", "user_tags": [{ "username": "bob", "media_index": index }] });
    assert_eq!(issues(&[("", one); 2], &tags(1)), []);
    let path = json!(["config", "instagram", "user_tags"]);
    assert_eq!(issues(&[("", one); 2], &tags(2)), expected("setting_invalid", path));
    let list = check(actor.platform, &[ContainerContent { text: "", media: two }], &story);
    assert!(list[0].message.contains("a container of its own"), "{list:?}");

    // Below a live post they are comments as ever.
    let reply = check_reply(
        actor.platform,
        AccountKind::default(),
        &[ContainerContent { text: "", media: one }],
        &story,
    );
    let codes: Vec<_> = reply.iter().map(|issue| &*issue.code).collect();
    assert!(
        codes.contains(&"setting_not_for_replies") && codes.contains(&"media_kind_not_supported"),
        "{codes:?}"
    );
}
