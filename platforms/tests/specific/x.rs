//! X: media in parts, long texts, and what a self-serve app may do.

use super::{actor, arrived, rejected};
use crate::fixtures::{Actor, Kept, Named, World, pause};
use crate::trials::{self, singles};
use domain::failure::ErrorCode;
use libtest_mimic::Trial;
use platforms::{Checkpoint, Collection, Located, MediaKind, Prepared, PublishRequest, check};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "x",
        &singles![
            upright_and_full_hd_videos_are_published,
            a_large_image_is_uploaded_in_parts,
            the_sandbox_refuses_segments_that_the_edge_refuses,
            a_refused_alt_text_does_not_fail_the_post,
            a_premium_account_publishes_long_texts,
            a_longer_video_is_for_x_to_decide,
            a_self_serve_app_quotes_only_posts_that_invite_it,
            reading_and_renewing_wait_until_they_are_needed,
            renamed_fields_are_read,
            a_limit_of_the_apps_contract_ends_neither_post_nor_grant,
            metadata_have_the_members_of_the_description,
            a_warning_covers_all_media_of_a_thread,
            media_are_not_published_without_their_warning,
            people_are_tagged_by_username_and_by_id,
            people_whom_nobody_knows_are_found_before_the_post,
            captions_belong_to_the_video_before_the_post_exists,
            captions_that_x_refuses_are_told_before_or_after,
            a_worker_crash_after_any_call_leaves_one_track_of_each_language,
            settings_of_media_can_change_between_attempts,
            subtitles_have_the_form_of_the_description,
            users_are_looked_up_by_username,
        ],
    )
}

async fn renamed_fields_are_read() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let id = actor.publish(&actor.post("read again")).await.on("publish");
    actor.set(&json!({ "has_renamed_fields": true })).await;
    let names = || -> Vec<&'static str> {
        let heard = world.heard();
        let queries = heard.iter().flat_map(|call| &call.query);
        let names =
            queries.map(|(name, _)| ["tweet.fields", "post.fields"].into_iter().find(|known| known == name));
        names.flatten().collect()
    };
    let before = names().len();
    let keep = Kept::default();
    let history = actor.platform.history.expect("it has lists");
    let read = history.page(&actor.session(&keep), None).await.on("history");
    assert_eq!((&*read.items[0].id, &*read.items[0].text), (&*id, "read again"));
    actor.platform.analytics.expect("figures").metrics(&actor.session(&keep), &id).await.on("metrics");
    let asked = names().split_off(before);
    assert_eq!(asked[..2], ["tweet.fields", "post.fields"], "the refused name is followed by the other");
    assert!(asked[2..].iter().all(|name| *name == "post.fields"), "it is remembered: {asked:?}");
}

async fn upright_and_full_hd_videos_are_published() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    for (width, height) in [(720, 1280), (1080, 1920), (1920, 1080)] {
        let mut post = actor.post_with("from a phone", MediaKind::Video, 1);
        (post.media[0].width, post.media[0].height) = (Some(width), Some(height));
        let content = check::ContainerContent { text: &post.text, media: &post.media };
        assert_eq!(check::check(actor.platform, &[content], &json!({})), [], "{width}x{height}");
        actor.publish(&post).await.on("publish");
    }
}

async fn a_large_image_is_uploaded_in_parts() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let mut post = actor.post_with("large and small", MediaKind::Image, 2);
    post.media[0] = actor.sized(&post.media[0], (9 << 20) / 2);
    let id = actor.publish(&post).await.on("publish");
    let count = |path: &str| world.heard().iter().filter(|call| call.path.ends_with(path)).count();
    let calls = ["/upload", "/initialize", "/append", "/finalize"].map(count);
    assert_eq!(calls, [1, 1, 2, 1]);
    assert!(actor.shown(&id).await.contains("large and small"));
}

async fn the_sandbox_refuses_segments_that_the_edge_refuses() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let upload = actor.sandbox("api.x.com") + "/2/media/upload";
    let post =
        |path: &str| actor.http.post(format!("{upload}/{path}")).bearer_auth(&actor.grant.access_token);
    let wish = json!({ "media_type": "video/mp4", "total_bytes": 10 << 20, "media_category": "tweet_video" });
    let made: Value = post("initialize").json(&wish).send().await.on("made").json().await.on("made");
    let id = made["data"]["id"].as_str().expect("an id");
    for (size, status) in [(5 << 20, 413), (4 << 20, 200)] {
        let form = reqwest::multipart::Form::new()
            .text("segment_index", "0")
            .part("media", reqwest::multipart::Part::bytes(vec![7; size]));
        let answer = post(&format!("{id}/append")).multipart(form).send().await.on("append");
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(answer.bytes().await.on("append").is_empty(), status == 413);
    }
    let answer = post(&format!("{id}/finalize")).json(&json!([])).send().await.on("finalize");
    assert_eq!(answer.status(), 400);
}

async fn a_refused_alt_text_does_not_fail_the_post() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let metadata = "/api.x.com/2/media/metadata";
    for (kind, calls, status, outcome) in [
        (MediaKind::Video, 0, 400, Ok(())),
        (MediaKind::Image, 1, 400, Ok(())),
        (MediaKind::Image, 1, 503, Err(ErrorCode::Upstream(503))),
    ] {
        world.lie(&[(
            metadata,
            status,
            json!({ "title": "Invalid Request", "detail": "no", "status": status }),
        )]);
        let before = world.heard().iter().filter(|call| call.path == metadata).count();
        let mut post = actor.post_with(&format!("{kind} at {status}"), kind, 1);
        post.media[0].alt_text = Some("what it shows".into());
        let ended = actor.publish(&post).await;
        assert_eq!(ended.map(drop).map_err(|failure| failure.code), outcome, "{kind} at {status}");
        let after = world.heard().iter().filter(|call| call.path == metadata).count();
        assert_eq!(after - before, calls, "{kind} at {status}");
    }
}

async fn a_premium_account_publishes_long_texts() {
    let world = World::start().await;
    let platform = platforms::get("x").expect("it has an adapter");
    let mut types = Vec::new();
    for name in ["ada", "premium_ada"] {
        let actor = world.named(platform, name);
        types.push(actor.identities().await.on(name).remove(0).profile.account_type);
    }
    assert_eq!(types, ["profile", "premium"]);
    let text = format!("{} #sandbox-lost-reply https://example.com <end>", "long text ".repeat(200));
    let errors = |text: &str, account_type: &str| {
        let content = check::ContainerContent { text, media: &[] };
        let account = check::AccountKind { account_type, scopes: &[] };
        check::check_for(platform, account, &[content], &json!({})).len()
    };
    assert_eq!((errors(&text, "profile"), errors(&text, "premium")), (1, 0));
    assert_eq!(errors(&"a".repeat(25_001), "premium"), 1);
    // X may not say what an account has.
    for (account_type, length, severity) in [
        ("profile", 281, check::Severity::Error),
        ("unknown", 281, check::Severity::Warning),
        ("unknown", 25_001, check::Severity::Error),
    ] {
        let (text, account) = ("a".repeat(length), check::AccountKind { account_type, scopes: &[] });
        let content = check::ContainerContent { text: &text, media: &[] };
        let issues = check::check_for(platform, account, &[content], &json!({}));
        assert_eq!(
            issues.iter().map(|issue| issue.severity).collect::<Vec<_>>(),
            [severity],
            "{account_type}"
        );
    }

    let ada = world.named(platform, "ada");
    assert_eq!(ada.publish(&ada.post(&text)).await.expect_err("too long").code, rejected(403));
    let premium = world.named(platform, "premium_ada");
    let post = premium.post(&text);
    let at = premium.prepare(&post).await.on("prepare");
    assert!(premium.commit(&post, &at).await.expect_err("lost").is_ambiguous());
    assert!(matches!(premium.settle(&post, &at).await.on("settle"), Located::Live(_)));
    let keep = Kept::default();
    let listed = premium.platform.history.expect("it has one").page(&premium.session(&keep), None).await;
    assert_eq!(listed.on("history").items[0].text, text);
    assert_eq!(premium.accepted().await, 1);
}

/// Above the standard limits X decides by account: nothing is refused before it is asked, and its words are kept.
async fn a_longer_video_is_for_x_to_decide() {
    let world = World::start().await;
    let platform = platforms::get("x").expect("it has an adapter");
    for (name, seconds, told, outcome) in [
        ("ada", 140, &[][..], Ok(())),
        ("ada", 141, &[(check::Severity::Warning, "media_duration")], Err(rejected(403))),
        ("premium_ada", 3_000, &[], Ok(())),
        ("premium_ada", 14_401, &[(check::Severity::Error, "media_duration")], Ok(())),
    ] {
        let actor = world.named(platform, name);
        let mut post = actor.post_with(&format!("{seconds} s by {name}"), MediaKind::Video, 1);
        post.media[0] = actor.lasting(&post.media[0], seconds);
        let account_type = actor.identities().await.on(name).remove(0).profile.account_type;
        let account = check::AccountKind { account_type: &account_type, scopes: &[] };
        let content = check::ContainerContent { text: &post.text, media: &post.media };
        let issues = check::check_for(platform, account, &[content], &json!({}));
        let issues: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        assert_eq!(issues, told, "{seconds} s by {name}");
        let ended = actor.publish(&post).await;
        if let Err(failure) = &ended {
            assert!(
                failure.message.contains("not allowed to post a video longer than 2 minutes"),
                "{failure}"
            );
            assert!(!failure.is_ambiguous());
        }
        assert_eq!(ended.map(drop).map_err(|failure| failure.code), outcome, "{seconds} s by {name}");
    }
}

async fn a_self_serve_app_quotes_only_posts_that_invite_it() {
    let world = World::start().await;
    let (ada, eve) = (actor(&world, "x"), world.named(platforms::get("x").expect("it is there"), "eve"));
    let (own, other) = (
        ada.publish(&ada.post("my own")).await.on("own"),
        eve.publish(&eve.post("not yours")).await.on("other"),
    );
    let invited = eve.publish(&eve.post("what do you think, @ada?")).await.on("invited");
    let quote = |id: &str, words: &str| {
        let mut post = ada.post(words);
        post.settings = json!({ "quote_tweet_id": id });
        post
    };
    ada.publish(&quote(&own, "myself")).await.on("its own");
    ada.publish(&quote(&invited, "I agree")).await.on("invited");
    let failure = ada.publish(&quote(&other, "look at this")).await.expect_err("not invited");
    assert_eq!(failure.code, rejected(403), "{failure}");
    assert!(failure.message.contains("where you are mentioned or are the author"), "{failure}");
    // Only X knows the app's contract.
    let warning = (check::Severity::Warning, "cashtags_too_many".to_owned(), json!(["content"]));
    assert_eq!(told(&ada, &[&ada.post("$TSLA and $AAPL")], &json!({})), [warning]);
    assert_eq!(told(&ada, &[&ada.post("$TSLA for $5")], &json!({})), []);
    for (text, code, words) in [
        ("$TSLA and $AAPL", 403, "maximum of one cashtag"),
        ("see https://sandbox-invalid.example", 400, "contains an invalid URL"),
    ] {
        let failure = ada.publish(&ada.post(text)).await.expect_err(text);
        assert!(failure.code == rejected(code) && failure.message.contains(words), "{failure}");
    }
    ada.set(&json!({ "app": "approved" })).await;
    ada.publish(&quote(&other, "look at this")).await.on("approved");
    ada.publish(&ada.post("$TSLA and $AAPL")).await.on("approved");
}

/// X charges for each read, and a refresh token is valid for one use.
async fn reading_and_renewing_wait_until_they_are_needed() {
    for platform in platforms::all() {
        let is_x = platform.id == "x";
        let is_on_request =
            platform.analytics.is_some_and(|analytics| analytics.collection() == Collection::OnRequest);
        assert_eq!(is_on_request, is_x, "{}", platform.id);
        let is_idle = platform.auth.oauth().is_some_and(|oauth| !oauth.idle_renewal.is_zero());
        assert_eq!(is_idle, is_x, "{}", platform.id);
    }
}

async fn a_limit_of_the_apps_contract_ends_neither_post_nor_grant() {
    let world = World::start().await;
    let mut actor = actor(&world, "x");
    for name in ["x.spend-cap-reached", "x.spend-cap-until", "x.credits-depleted", "x.access-level"] {
        for path in ["/2/tweets", "/2/oauth2/token"] {
            actor.set(&json!({ "recorded": { path: name } })).await;
            let failure = match path {
                "/2/tweets" => actor.publish(&actor.post("too expensive")).await.map(drop),
                _ => actor.refresh().await.map(drop),
            };
            let failure = failure.expect_err(name);
            assert!(
                failure.code == ErrorCode::AppRefused && !failure.message.is_empty(),
                "{path}: {failure:?}"
            );
        }
    }
    actor.set(&json!({ "recorded": {} })).await;
    actor.grant = actor.refresh().await.on("refresh");
    actor.publish(&actor.post("paid")).await.on("paid");
}

async fn metadata_have_the_members_of_the_description() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let post = actor.post_with("with a picture", MediaKind::Image, 1);
    let at = actor.prepare(&post).await.on("prepare").0.to_string();
    let id = at.split('"').find(|word| word.len() > 15 && word.bytes().all(|b| b.is_ascii_digit()));
    let url = actor.sandbox("api.x.com") + "/2/media/metadata";
    for (metadata, status) in [
        (json!({ "sensitive_media_warning": { "adult_content": true, "other": false } }), 200),
        (json!({ "sensitive_media_warning": { "adult_content": "yes" } }), 400),
        (json!({ "sensitive_media_warning": { "violence": true } }), 400),
        (json!({ "management_info": { "managed": true }, "upload_source": { "upload_source": "web" } }), 200),
        (json!({ "management_info": {} }), 400),
        (json!({ "nothing": {} }), 400),
    ] {
        let call = actor.http.post(&url).bearer_auth(&actor.grant.access_token);
        let body = json!({ "id": id.expect("an id"), "metadata": metadata });
        assert_eq!(call.json(&body).send().await.expect("an answer").status(), status, "{body}");
    }
}

const METADATA: &str = "/api.x.com/2/media/metadata";
const SUBRIP: &str = "1\n00:00:01,000 --> 00:00:02,500\nHello 🎬\n";
const WEBVTT: &str = "WEBVTT\n\n00:01.000 --> 00:02.500\nHallo\n";

/// Returns severity, code and path below the platform's settings of each issue.
fn told(
    actor: &Actor,
    containers: &[&PublishRequest],
    settings: &Value,
) -> Vec<(check::Severity, String, Value)> {
    let contents: Vec<_> = containers
        .iter()
        .map(|post| check::ContainerContent { text: &post.text, media: &post.media })
        .collect();
    let issues = check::check(actor.platform, &contents, settings);
    issues.into_iter().map(|issue| (issue.severity, issue.code, json!(issue.path[2..]))).collect()
}

async fn a_warning_covers_all_media_of_a_thread() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let warned = json!({ "sensitive_media_warning": ["graphic_violence", "other"] });
    let mut post = actor.post_with("a film", MediaKind::Video, 1);
    post.settings = warned.clone();
    assert_eq!(told(&actor, &[&post], &warned), []);
    let id = actor.publish(&post).await.on("publish");
    let mark = &arrived("Content warning: graphic_violence, other<");
    assert_eq!(actor.shown(&id).await.matches(mark).count(), 1);
    // Beside alt text, for each picture of a reply.
    let mut reply = actor.reply("pictures", &[id]);
    reply.media = actor.post_with("", MediaKind::Image, 2).media;
    reply.media[0].alt_text = Some("a fall".into());
    reply.settings = warned.clone();
    let page = actor.shown(&actor.publish(&reply).await.on("reply")).await;
    assert!(page.matches(mark).count() == 2 && page.contains("a fall"), "{page}");

    // A promise that nothing would keep is refused, and one that a reply keeps is not.
    let text = actor.post("text only");
    // Without media there is nothing to warn of.
    let refused =
        (check::Severity::Warning, "setting_not_used".to_owned(), json!(["sensitive_media_warning"]));
    assert_eq!(told(&actor, &[&text], &warned), std::slice::from_ref(&refused));
    assert_eq!(told(&actor, &[&text, &reply], &warned), []);
    let content = check::ContainerContent { text: "a reply", media: &[] };
    let issues = check::check_reply(actor.platform, check::AccountKind::default(), &[content], &warned);
    assert_eq!(issues.iter().map(|issue| &*issue.code).collect::<Vec<_>>(), ["setting_not_used"]);
    assert_eq!(told(&actor, &[&text], &json!({ "sensitive_media_warning": [] })).len(), 1);
    let unknown = told(&actor, &[&post], &json!({ "sensitive_media_warning": ["🔞"] }));
    assert_eq!(unknown[0].1, "setting_invalid");
}

async fn media_are_not_published_without_their_warning() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let mut post = actor.post_with("warned", MediaKind::Image, 1);
    post.settings = json!({ "sensitive_media_warning": ["adult_content"] });
    post.media[0].alt_text = Some("what it shows".into());
    let no = json!({ "title": "Invalid Request", "detail": "no", "status": 400 });
    world.lie(&[(METADATA, 400, no)]);
    assert_eq!(actor.publish(&post).await.expect_err("not warned").code, rejected(400));
    let asked = |member: &str| -> usize {
        let heard = world.heard();
        heard.iter().filter(|call| call.path == METADATA && call.body["metadata"][member].is_object()).count()
    };
    // The alt text alone may be at fault.
    assert_eq!((asked("alt_text"), asked("sensitive_media_warning")), (1, 2));
    assert_eq!(actor.accepted().await, 0);
    world.lie(&[]);
    actor.publish(&post).await.on("publish");
}

async fn people_are_tagged_by_username_and_by_id() {
    let world = World::tapped().await;
    let platform = platforms::get("x").expect("it is there");
    let (ada, eve) = (world.named(platform, "ada"), world.named(platform, "Eve_1"));
    let digits = world.named(platform, "12345");
    let mut post = ada.post_with("at the sea", MediaKind::Image, 2);
    // The same person three times, and one whose username is of digits only.
    let id = &eve.account.network_unique_id;
    post.settings = json!({ "tagged_users": ["@Eve_1", "Eve_1", id, "@12345"] });
    assert_eq!(told(&ada, &[&post], &post.settings), []);
    assert_eq!(ada.look_up(&post).await, (vec![], None));
    let page = ada.shown(&ada.publish(&post).await.on("publish")).await;
    for person in ["Tags @Eve_1<", "Tags @12345<"] {
        assert_eq!(page.matches(&arrived(person)).count(), 1, "{page}");
    }
    let heard = world.heard();
    let created = heard.iter().find(|call| call.method == "POST" && call.path == "/api.x.com/2/tweets");
    let tagged = &created.expect("a post").body["media"]["tagged_user_ids"];
    assert_eq!(tagged, &json!([id, digits.account.network_unique_id]));

    // Nothing is asked for where nobody is tagged.
    for (mut post, setting) in
        [(ada.post("no media"), json!(["@Eve_1"])), (ada.post_with("nobody", MediaKind::Image, 1), json!([]))]
    {
        let before = world.heard().len();
        post.settings = json!({ "tagged_users": setting });
        let unused: Vec<_> = told(&ada, &[&post], &post.settings).into_iter().map(|(how, ..)| how).collect();
        assert_eq!(unused.is_empty(), !post.media.is_empty(), "{unused:?}");
        assert!(!unused.contains(&check::Severity::Error));
        ada.publish(&post).await.on("publish");
        let calls = world.heard().split_off(before);
        assert!(calls.iter().all(|call| !call.path.ends_with("/users/by")), "{calls:?}");
        assert!(calls.iter().all(|call| call.body["media"]["tagged_user_ids"].is_null()), "{calls:?}");
    }
}

async fn people_whom_nobody_knows_are_found_before_the_post() {
    let world = World::start().await;
    let ada = actor(&world, "x");
    let mut post = ada.post_with("at the sea", MediaKind::Image, 1);
    for (people, path) in [
        (json!(["@ada🎉"]), json!(["tagged_users", 0])),
        (json!(["ada", "a b"]), json!(["tagged_users", 1])),
        (json!([""]), json!(["tagged_users", 0])),
        (json!(["x".repeat(16)]), json!(["tagged_users", 0])),
        (json!(vec!["ada"; 11]), json!(["tagged_users"])),
    ] {
        let told = told(&ada, &[&post], &json!({ "tagged_users": people }));
        let expected = (check::Severity::Error, "setting_invalid".to_owned(), path);
        assert_eq!(told, [expected], "{people}");
    }
    for people in [json!(["@nobody_here"]), json!(["ada", "nobody_here"])] {
        post.settings = json!({ "tagged_users": people });
        let (issues, failure) = ada.look_up(&post).await;
        let codes: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
        assert_eq!((codes, failure), (vec!["reference_not_found"], None), "{people}");
        assert!(issues[0].message.contains("@nobody_here"), "{issues:?}");
        let failure = ada.publish(&post).await.expect_err("nobody");
        assert_eq!(failure.code, rejected(404), "{failure}");
    }
    assert_eq!(ada.accepted().await, 0);
}

async fn captions_belong_to_the_video_before_the_post_exists() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let mut post = actor.post_with("with captions", MediaKind::Video, 1);
    post.settings = json!({ "captions": [
        { "language": "en", "name": "English", "content": SUBRIP }, { "language": "de", "content": WEBVTT },
        { "language": "fr", "content": "0:00:01.000,0:00:02.500\nTom & Ada\n" },
    ] });
    assert_eq!(told(&actor, &[&post], &post.settings), []);
    let id = actor.publish(&post).await.on("publish");
    let page = actor.shown(&id).await;
    for line in ["Captions: EN (English)<", "Captions: DE (DE)<", "Captions: FR (FR)<"] {
        assert_eq!(page.matches(&arrived(line)).count(), 1, "{line}: {page}");
    }
    let heard = world.heard();
    let last = |path: &str| heard.iter().rposition(|call| call.method == "POST" && call.path.ends_with(path));
    assert!(last("/media/subtitles") < last("/2/tweets"));
    // X takes no SubViewer.
    let converted = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nTom &amp; Ada\n";
    for file in [SUBRIP, converted] {
        assert!(
            heard.iter().any(|call| call.path.ends_with("/append") && call.text.contains(file)),
            "{file}"
        );
    }
    let types: Vec<_> = heard.iter().filter_map(|call| call.body["media_type"].as_str()).collect();
    assert_eq!(types, ["video/mp4", "text/srt", "text/vtt", "text/vtt"]);

    // A picture has none, and its author is told.
    let mut photo = actor.post_with("a picture", MediaKind::Image, 1);
    photo.settings = post.settings.clone();
    let unused = (check::Severity::Warning, "setting_not_used".to_owned(), json!(["captions"]));
    assert_eq!(told(&actor, &[&photo], &photo.settings), [unused]);
    let before = world.heard().len();
    actor.publish(&photo).await.on("publish");
    assert!(world.heard().split_off(before).iter().all(|call| !call.path.ends_with("/subtitles")));
}

async fn captions_that_x_refuses_are_told_before_or_after() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    let mut post = actor.post_with("with captions", MediaKind::Video, 1);
    let english = json!({ "language": "en", "content": SUBRIP });
    for (captions, path) in [
        (json!([{ "language": "en", "content": "" }]), json!(["captions", 0, "content"])),
        (json!([{ "language": "en", "content": "Hello" }]), json!(["captions", 0])),
        (json!([{ "language": "en", "content": "WEBVTT\n" }]), json!(["captions", 0])),
        (json!([english, { "language": "EN", "name": "Slang", "content": WEBVTT }]), json!(["captions", 1])),
        (json!([{ "language": "en-US", "content": SUBRIP }]), json!(["captions", 0])),
        (json!([{ "language": "gsw", "content": SUBRIP }]), json!(["captions", 0])),
        (json!([{ "language": "🇩🇪", "content": SUBRIP }]), json!(["captions", 0, "language"])),
    ] {
        let told = told(&actor, &[&post], &json!({ "captions": captions }));
        assert_eq!(told, [(check::Severity::Error, "setting_invalid".to_owned(), path)], "{captions}");
    }
    assert_eq!(actor.accepted().await, 0);

    // Captions that X refuses when they are due do not fail the post; temporary failures are retried.
    post.settings = json!({ "captions": [english, { "language": "de", "content": WEBVTT }] });
    let no = json!({ "title": "Invalid Request", "detail": "The subtitle file is invalid.", "status": 400 });
    world.lie(&[("/api.x.com/2/media/subtitles", 400, no)]);
    let keep = Kept::default();
    let mut at = Checkpoint::default();
    let publisher = actor.platform.publisher;
    let at = loop {
        match publisher.prepare(&actor.session(&keep), &post, at).await.on("prepare") {
            Prepared::Ready(at) => break at,
            Prepared::Processing { at: next, .. } => at = next,
        }
        pause(Duration::from_millis(50)).await;
    };
    let notes = keep.notes();
    assert!(notes.len() == 2 && notes[1].contains("without its captions in de: "), "{notes:?}");
    assert!(notes[0].contains("The subtitle file is invalid"), "{notes:?}");
    let committed = actor.commit(&post, &at).await.on("commit");
    actor.landed(&post, committed).await.on("landed");

    let mut post = actor.post_with("later", MediaKind::Video, 1);
    post.settings = json!({ "captions": [english] });
    let away = json!({ "title": "Service Unavailable", "status": 503 });
    world.lie(&[("/api.x.com/2/media/subtitles", 503, away)]);
    assert_eq!(actor.publish(&post).await.expect_err("away").code, ErrorCode::Upstream(503));
    assert_eq!(actor.accepted().await, 1);
}

async fn a_worker_crash_after_any_call_leaves_one_track_of_each_language() {
    let world = World::tapped().await;
    let actor = actor(&world, "x");
    for call in 1.. {
        let mut post = actor.post_with(&format!("the {call}. life"), MediaKind::Video, 1);
        post.settings = json!({
            "captions": [{ "language": "en", "content": SUBRIP }, { "language": "de", "content": WEBVTT }],
        });
        let (located, has_died) = world.publish_mortally(&actor, &post, call).await.on("publish");
        let Located::Live(found) = located else { panic!("{located:?} after call {call}") };
        let page = actor.shown(&found.into_id()).await;
        let counts = ["Captions: EN", "Captions: DE"].map(|line| page.matches(&arrived(line)).count());
        assert_eq!(counts, [1, 1], "after call {call}");
        if !has_died {
            assert!(call > 9, "there were {call} calls");
            break;
        }
    }
}

async fn settings_of_media_can_change_between_attempts() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let mut post = actor.post_with("changed", MediaKind::Video, 1);
    let track = |language: &str, content: &str| json!({ "language": language, "content": content });
    let mut at = Checkpoint::default();
    for (warning, people, captions) in [
        (json!([]), json!(["@ada"]), json!([])),
        (json!([]), json!(["@ada"]), json!([track("en", SUBRIP)])),
        (json!([]), json!([]), json!([track("en", SUBRIP), track("fr", SUBRIP)])),
        (json!(["other"]), json!(["ada"]), json!([track("fr", WEBVTT)])),
    ] {
        post.settings =
            json!({ "sensitive_media_warning": warning, "tagged_users": people, "captions": captions });
        at = actor.prepare_from(&post, at).await.on("prepare");
    }
    let committed = actor.commit(&post, &at).await.on("commit");
    let page = actor.shown(&actor.landed(&post, committed).await.on("landed")).await;
    for (note, count) in
        [("Content warning: other<", 1), ("Tags @ada<", 1), ("Captions: EN", 0), ("Captions: FR", 1)]
    {
        assert_eq!(page.matches(&arrived(note)).count(), count, "{note} {page}");
    }
}

async fn subtitles_have_the_form_of_the_description() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let api = actor.sandbox("api.x.com") + "/2/media";
    let call = |path: &str| actor.http.post(format!("{api}/{path}")).bearer_auth(&actor.grant.access_token);
    let upload = async |content: &str, mime: &str, category: &str| -> String {
        let wish = json!({ "media_type": mime, "total_bytes": content.len(), "media_category": category });
        let made = call("upload/initialize").json(&wish).send().await.on("initialize");
        let made: Value = made.json().await.on("initialize");
        let id = made["data"]["id"].as_str().expect("an id").to_owned();
        let form = reqwest::multipart::Form::new()
            .text("segment_index", "0")
            .part("media", reqwest::multipart::Part::bytes(content.as_bytes().to_vec()));
        assert_eq!(
            call(&format!("upload/{id}/append")).multipart(form).send().await.on("append").status(),
            200
        );
        assert_eq!(call(&format!("upload/{id}/finalize")).send().await.on("finalize").status(), 200);
        id
    };
    let video = upload("a film", "video/mp4", "tweet_video").await;
    let (srt, vtt) =
        (upload(SUBRIP, "text/srt", "subtitles").await, upload(WEBVTT, "text/vtt", "subtitles").await);
    let wrong = upload(WEBVTT, "text/srt", "subtitles").await;
    let text = upload("Hello", "text/srt", "subtitles").await;
    for (id, category, file, language, status) in [
        (&video, "TweetVideo", &srt, "EN", 200),
        (&video, "TweetVideo", &vtt, "EN", 200),
        (&video, "TweetVideo", &srt, "en", 400),
        (&video, "TweetVideo", &srt, "en-US", 400),
        (&video, "AmplifyVideo", &srt, "EN", 400),
        (&video, "tweet_video", &srt, "EN", 400),
        (&srt, "TweetVideo", &srt, "EN", 400),
        (&video, "TweetVideo", &video, "EN", 400),
        (&video, "TweetVideo", &text, "EN", 400),
        (&video, "TweetVideo", &wrong, "EN", 400),
    ] {
        let subtitles = json!({ "id": file, "language_code": language, "display_name": "English" });
        let body = json!({ "id": id, "media_category": category, "subtitles": subtitles });
        let answer = call("subtitles").json(&body).send().await.on("subtitles");
        assert_eq!(answer.status(), status, "{body}");
        let answer: Value = answer.json().await.on("subtitles");
        assert_eq!(answer["data"]["associated_subtitles"].is_object(), status == 200, "{answer}");
    }
}

async fn users_are_looked_up_by_username() {
    let world = World::start().await;
    let actor = actor(&world, "x");
    let ask = async |names: &str| -> Value {
        actor.ask("GET", &format!("{}/2/users/by?usernames={names}", actor.sandbox("api.x.com"))).await
    };
    let both = ask("ada,nobody").await;
    assert_eq!(both["data"][0]["id"], json!(actor.account.network_unique_id), "{both}");
    assert_eq!(both["errors"][0]["title"], "Not Found Error", "{both}");
    let none = ask("nobody").await;
    assert!(none["data"].is_null() && none["errors"].is_array(), "{none}");
    for names in ["", "a-b", "abcdefghijklmnop"] {
        assert_eq!(ask(names).await["status"], 400, "{names}");
    }
}
