//! YouTube: the settings of a video, and resumable uploads.

use super::{actor, arrived, rejected};
use crate::fixtures::{Kept, Named, World, clock};
use crate::trials::{self, singles};
use chrono::TimeDelta;
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Checkpoint, Committed, Feature, Located, MediaKind,
    check::{AccountKind, ContainerContent, Severity, check, check_for},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "youtube",
        &singles![
            settings_are_applied_to_a_video,
            invalid_settings_are_rejected_before_the_upload,
            an_expired_upload_is_restarted,
            the_daily_quota_returns_the_wait_until_its_reset,
            a_comment_on_a_private_video_is_rejected,
            an_upload_accepts_parts_in_order_with_the_declared_size,
            a_video_in_long_processing_counts_as_published,
            the_owner_is_told_what_youtube_did_otherwise,
            metrics_without_reports_are_the_counters,
            counters_cost_nothing_of_the_units_of_other_calls,
            a_long_video_is_refused_before_its_upload_where_the_channel_may_have_none,
            youtube_rejects_a_long_video_of_a_channel_that_may_have_none,
            captions_are_uploaded_once_the_video_is_live,
            a_worker_crash_after_any_call_leaves_one_track_of_captions,
            invalid_captions_are_rejected_before_the_upload,
            refused_captions_are_told_and_the_video_stays,
            an_app_that_only_uploads_connects_and_publishes,
            made_for_kids_is_asked_for,
            a_video_is_added_to_each_of_its_playlists_once,
            a_worker_crash_after_any_call_adds_to_each_playlist_once,
            a_playlist_that_is_refused_keeps_the_video_out_of_no_other,
            a_playlist_of_somebody_else_is_told_before_the_upload,
            a_video_has_a_title_in_each_language_and_a_recording_date,
            invalid_localizations_and_dates_are_rejected_before_the_upload,
            localizations_at_each_limit_are_taken,
            youtube_needs_the_language_of_the_title_for_others,
            a_video_without_a_text_is_named_after_its_file,
            youtubes_own_names_of_settings_are_taken,
            an_edit_keeps_the_other_languages,
        ],
    )
}

/// Google's verification of an app covers the scopes that it asked for: uploads need no `youtube.force-ssl`.
async fn an_app_that_only_uploads_connects_and_publishes() {
    let world = World::start().await;
    let mut actor = actor(&world, "youtube");
    let scopes =
        actor.platform.auth.oauth().and_then(|oauth| oauth.preset("upload")).expect("a preset").scopes;
    let brought = actor.consent_to(scopes, "allow").await.expect("it has codes");
    actor.grant = actor.exchange(&brought["code"]).await.on("exchange");
    let granted = actor.grant.scopes.clone();
    assert_eq!(granted, scopes, "Google grants what was asked for");
    let closed = actor.platform.closed(&granted).into_iter().map(|missing| missing.feature);
    assert_eq!(closed.collect::<Vec<_>>(), [Feature::Replies, Feature::Deletion, Feature::Editing]);
    assert_eq!(actor.identities().await.on("identities").len(), 1);
    actor.healthy().await.on("health");

    let mut post = actor.post_with("uploaded only", MediaKind::Image, 1);
    post.settings = json!({ "madeForKids": false });
    let contents = [
        ContainerContent { text: &post.text, media: &post.media },
        ContainerContent { text: "first", media: &[] },
    ];
    let codes = |settings: &Value, contents: &[ContainerContent<'_>]| -> Vec<(Severity, String)> {
        let kind = AccountKind { account_type: "channel", scopes: &granted };
        let issues = check_for(actor.platform, kind, contents, settings).into_iter();
        issues.map(|issue| (issue.severity, issue.code)).collect()
    };
    assert_eq!(codes(&post.settings, &contents[..1]), []);
    assert_eq!(codes(&post.settings, &contents), [(Severity::Warning, "replies_not_supported".to_owned())]);
    let captions = json!([{ "language": "en", "content": "1\n00:00:00,000 --> 00:00:01,000\nhi\n" }]);
    for needy in
        [json!({ "playlist": "PL1" }), json!({ "playlists": ["PL1"] }), json!({ "captions": captions })]
    {
        let mut settings = needy.clone();
        settings["madeForKids"] = json!(false);
        let found = codes(&settings, &contents[..1]);
        assert!(found.contains(&(Severity::Error, "scope_missing".to_owned())), "{needy}: {found:?}");
    }
    let id = actor.publish(&post).await.on("publish");
    assert!(actor.shown(&id).await.contains("uploaded only"));
    let keep = Kept::default();
    actor.platform.analytics.expect("it has figures").metrics(&actor.session(&keep), &id).await.on("metrics");
    let history = actor.platform.history.expect("it has lists");
    assert_eq!(history.page(&actor.session(&keep), None).await.on("history").items[0].id, id);

    // Without reads, nothing tells which channel it is.
    let upload = vec![scopes[0].to_owned()];
    assert_eq!(actor.platform.missing(Feature::Publishing, &upload), [scopes[1]]);
}

async fn made_for_kids_is_asked_for() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let post = actor.post("a video");
    for (settings, warned) in [
        (json!({}), true),
        (json!({ "madeForKids": false }), false),
        (json!({ "madeForKids": true }), false),
        (json!({ "selfDeclaredMadeForKids": false }), false),
    ] {
        let contents = [ContainerContent { text: &post.text, media: &post.media }];
        let issues = check(actor.platform, &contents, &settings);
        let found = issues.iter().any(|issue| {
            issue.code == "setting_not_chosen"
                && issue.severity == Severity::Warning
                && issue.path == [json!("config"), json!("youtube"), json!("madeForKids")]
        });
        assert_eq!(found, warned, "{settings}: {issues:?}");
    }
}

async fn settings_are_applied_to_a_video() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let keep = Kept::default();
    let options = actor.platform.options.expect("it has lists");
    let playlists = options.options(&actor.session(&keep), "playlists", None).await.on("playlists");
    let categories = options.options(&actor.session(&keep), "categories", None).await.on("categories");
    assert!(categories.iter().any(|choice| choice.name == "Music") && !playlists.is_empty());

    // The image is the video's thumbnail.
    let mut post = actor.post_with("first line\nsecond", MediaKind::Image, 1);
    post.settings = json!({
        "title": "A title of its own", "privacyStatus": "unlisted", "tags": ["one", "two words"], "category": "10",
        "playlist": playlists[0].id, "isShort": false, "madeForKids": false, "thumbnail": post.media[1].id,
        "paidPromotion": true,
    });
    let id = actor.publish(&post).await.on("publish");
    let page = actor.shown(&id).await;
    for words in [
        "A title of its own",
        "Visible: unlisted",
        "Tags: one, two words",
        "Category 10",
        "Includes paid promotion",
        &format!("In the playlist {}", playlists[0].name),
        "alt=\"Thumbnail\"",
        "first line\nsecond",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    // A further look-up does not add the video to the playlist again.
    let at = json!({ "media": post.media[0].id, "video": id });
    assert_eq!(actor.settle(&post, &Checkpoint(at)).await.on("settle").id(), Some(&*id));
    assert_eq!(actor.shown(&id).await.matches(&arrived("In the playlist")).count(), 1);

    let mut later = actor.post("later");
    later.settings = json!({ "publishAt": "2100-01-02T03:04:05+01:00" });
    let page = actor.shown(&actor.publish(&later).await.on("later")).await;
    assert!(page.contains("Visible: private") && page.contains("2100-01-02T02:04:05Z"), "{page}");
    assert!(page.contains("Title: later") && !page.contains("paid promotion"), "{page}");
}

async fn invalid_settings_are_rejected_before_the_upload() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let checked = |post: &platforms::PublishRequest, comment: Option<&str>| -> Vec<String> {
        let main = ContainerContent { text: &post.text, media: &post.media };
        let contents: Vec<_> =
            [main].into_iter().chain(comment.map(|text| ContainerContent { text, media: &[] })).collect();
        let issues = check(actor.platform, &contents, &post.settings).into_iter();
        let issues = issues.filter(|issue| issue.code != "setting_not_chosen");
        issues.map(|issue| format!("{} {}", issue.code, issue.message)).collect()
    };
    // A comment may contain what a description may not.
    assert_eq!(checked(&actor.post("a video"), Some("I <3 this")), Vec::<String>::new());
    for (settings, word) in [
        (json!({ "privacyStatus": "private" }), "private"),
        (json!({ "publishAt": "2100-01-02T03:04:05Z" }), "publishAt"),
        (json!({ "madeForKids": true }), "kids"),
    ] {
        let mut post = actor.post("a video");
        post.settings = settings;
        assert_eq!(checked(&post, None), Vec::<String>::new());
        let found = checked(&post, Some("first"));
        assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
    }
    for (settings, word) in [
        (json!({ "isShort": true }), "640x360"),
        (json!({ "publishAt": "2100-01-02T03:04:05Z", "privacyStatus": "unlisted" }), "unlisted"),
        (json!({ "playlist": "PLnot-ours" }), "PLnot-ours"),
        (json!({ "thumbnail": "0190c0de-0000-7000-8000-000000000000" }), "0190c0de"),
        (json!({ "tags": vec!["a".repeat(50); 10] }), "509"),
    ] {
        let mut post = actor.post("a video");
        post.settings = settings;
        // Only YouTube knows its playlists.
        if word != "PLnot-ours" {
            let found = checked(&post, None);
            assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
            continue;
        }
        let failure = actor.prepare(&post).await.expect_err(word);
        assert_eq!(failure.code, rejected(422), "{failure}");
        assert!(failure.message.contains(word), "{failure}");
    }
    let mut long = actor.post("a video");
    long.settings = json!({ "isShort": true });
    (long.media[0].width, long.media[0].duration) = (Some(200), Some(Duration::from_secs(181)));
    assert_eq!(checked(&long, None).len(), 1, "too long");
    long.media[0].duration = Some(Duration::from_secs(180));
    actor.publish(&long).await.on("a Short");
}

async fn an_expired_upload_is_restarted() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let post = actor.post("a video");
    let mut at = actor.prepare(&post).await.on("prepare");
    let upload = at.0["upload"].as_str().expect("an address").to_owned();
    at.0["upload"] = json!(upload.replace("upload_id=", "upload_id=gone"));
    let failure = actor.commit(&post, &at).await.expect_err("it is gone");
    assert!(!failure.is_ambiguous() && !failure.code.is_permanent(), "{failure:?}");
    // The query of the upload's state shows that it no longer exists.
    let at = actor.prepare_from(&post, at).await.on("restarted");
    let committed = actor.commit(&post, &at).await.on("commit");
    actor.landed(&post, committed).await.on("landed");
    assert_eq!(actor.accepted().await, 1);
}

async fn the_daily_quota_returns_the_wait_until_its_reset() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    for (limit, longest) in [("youtube.inserts", 24), ("youtube.channel_uploads", 6)] {
        actor.set(&json!({ "limits": { limit: 0 } })).await;
        let failure = actor.publish(&actor.post("a video")).await.expect_err(limit);
        assert_eq!(failure.code, ErrorCode::RateLimited, "{failure}");
        let wait = failure.retry_after.expect("a time");
        assert!(wait > Duration::from_secs(1) && wait <= Duration::from_secs(longest * 3600), "{wait:?}");
        if limit == "youtube.inserts" {
            // Until midnight in California, whose winter time is UTC-8.
            let rest = 86_400 - (clock() - TimeDelta::hours(8)).timestamp().rem_euclid(86_400);
            assert!(rest.abs_diff(wait.as_secs() as i64) < 60, "{wait:?} instead of {rest} s");
        }
    }
}

async fn a_comment_on_a_private_video_is_rejected() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    for settings in [json!({ "privacyStatus": "private" }), json!({ "madeForKids": true })] {
        let mut post = actor.post("a video");
        post.settings = settings;
        let id = actor.publish(&post).await.on("publish");
        let failure = actor.publish(&actor.reply("first", &[id])).await.expect_err("no comments");
        assert_eq!(failure.code, rejected(403), "{failure}");
    }
}

async fn an_upload_accepts_parts_in_order_with_the_declared_size() {
    const GRAIN: usize = 256 << 10;
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let begin = |title: &'static str| {
        let call =
            actor.http.post(actor.url.join("www.googleapis.com/upload/youtube/v3/videos").expect("a URL"));
        call.query(&[("uploadType", "resumable"), ("part", "snippet,status")])
            .bearer_auth(&actor.grant.access_token)
            .json(&json!({ "snippet": { "title": title }, "status": { "privacyStatus": "private" } }))
            .send()
    };
    for (title, reason) in [("", "invalidTitle"), ("a < b", "invalidTitle")] {
        let refused = begin(title).await.expect("an answer");
        assert_eq!(refused.status(), 400);
        let body: Value = refused.json().await.expect("JSON");
        assert_eq!(body["error"]["errors"][0]["reason"], reason);
    }
    let begun = begin("A film").await.expect("an answer");
    let address = begun.headers()["location"].to_str().expect("text").to_owned();
    let put = |range: String, length: usize| {
        let call = actor.http.put(&address).bearer_auth(&actor.grant.access_token);
        call.header("content-range", range).body(vec![7; length]).send()
    };
    let total = GRAIN + 10;
    let range = |answer: &reqwest::Response| {
        answer.headers().get("range").map(|range| range.to_str().expect("text").to_owned())
    };
    for (asked, length, status, stored) in [
        (format!("bytes */{total}"), 0, 308, None),
        (format!("bytes 0-99/{total}"), 100, 400, None),
        (format!("bytes 0-{}/{total}", GRAIN - 1), 100, 400, None),
        (format!("bytes 10-{}/{total}", GRAIN + 9), GRAIN, 308, None),
        (format!("bytes 0-{}/{total}", GRAIN - 1), GRAIN, 308, Some(format!("bytes=0-{}", GRAIN - 1))),
        (format!("bytes {GRAIN}-{}/{}", GRAIN + 9, total + 1), 10, 400, None),
        (format!("bytes */{total}"), 0, 308, Some(format!("bytes=0-{}", GRAIN - 1))),
    ] {
        let answer = put(asked.clone(), length).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), range(&answer)), (status, stored), "{asked}");
    }
    let mut ids = Vec::new();
    for asked in [format!("bytes {GRAIN}-{}/{total}", GRAIN + 9), format!("bytes */{total}")] {
        let length = if asked.contains('*') { 0 } else { 10 };
        let answer = put(asked, length).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        ids.push(answer.json::<Value>().await.expect("JSON")["id"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(actor.accepted().await, 1);
}

async fn a_video_in_long_processing_counts_as_published() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("a long film");
    post.media[0].filename = "sandbox-stuck.mp4".to_owned();
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("processing follows")
    };
    let mut pauses = Vec::new();
    for minutes in [1, 10, 59] {
        let begun = clock() - TimeDelta::minutes(minutes);
        match actor.look(&post, &at, begun).await.on("look") {
            Located::Processing { poll_after } => pauses.push(poll_after),
            other => panic!("{other:?}"),
        }
    }
    // Each look costs quota.
    assert!(pauses.is_sorted() && pauses[2] == Duration::from_secs(300), "{pauses:?}");
    let located = actor.look(&post, &at, clock() - TimeDelta::minutes(61)).await.on("look");
    let Located::Live(found) = located else { panic!("{located:?}") };
    let id = found.into_id();
    assert!(actor.shown(&id).await.contains("a long film"));
}

async fn the_owner_is_told_what_youtube_did_otherwise() {
    let world = World::start().await;
    let platform = platforms::get("youtube").expect("it has an adapter");
    let actor = world.named(platform, "ada");
    let post = actor.post_with("as asked", MediaKind::Image, 1);
    assert_eq!(actor.notes(&post).await.on("publish"), Vec::<String>::new());

    let locked = world.named(platform, "locked.ada");
    let notes = locked.notes(&locked.post("to everybody")).await.on("publish");
    assert!(notes.len() == 1 && notes[0].contains("made the video private"), "{notes:?}");
    let mut post = locked.post("for me");
    post.settings = json!({ "privacyStatus": "private" });
    assert_eq!(locked.notes(&post).await.on("publish"), Vec::<String>::new());

    let unverified = world.named(platform, "unverified.ada");
    let post = unverified.post_with("with a thumbnail", MediaKind::Image, 1);
    let notes = unverified.notes(&post).await.on("publish");
    assert!(notes.len() == 1 && notes[0].contains("thumbnail") && notes[0].contains("verify"), "{notes:?}");
}

async fn metrics_without_reports_are_the_counters() {
    let world = World::start().await;
    let platform = platforms::get("youtube").expect("it has an adapter");
    let denied = world.named(platform, "denied.ada");
    let id = denied.publish(&denied.post("measured")).await.on("publish");
    let analytics = platform.analytics.expect("it has figures");
    let metrics = analytics.metrics(&denied.session(&Kept::default()), &id).await.on("metrics");
    assert_eq!((metrics.shares, metrics.saves, metrics.impressions), (0, 0, 0));
}

async fn counters_cost_nothing_of_the_units_of_other_calls() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let id = actor.publish(&actor.post("measured")).await.on("publish");
    actor.set(&json!({ "limits": { "youtube.units": 0 } })).await;
    let analytics = actor.platform.analytics.expect("it has figures");
    analytics.metrics(&actor.session(&Kept::default()), &id).await.on("metrics");
    let unknown = actor.unknown(std::slice::from_ref(&id));
    let missing = analytics.metrics(&actor.session(&Kept::default()), &unknown).await;
    assert_eq!(missing.expect_err("unknown").code, rejected(404));
    actor.set(&json!({ "limits": { "youtube.stats": 0 } })).await;
    let spent = analytics.metrics(&actor.session(&Kept::default()), &id).await;
    assert_eq!(spent.expect_err("spent").code, ErrorCode::RateLimited);
}

async fn a_long_video_is_refused_before_its_upload_where_the_channel_may_have_none() {
    let world = World::tapped().await;
    let platform = platforms::get("youtube").expect("it has an adapter");
    for (name, advice) in [
        ("ada", None),
        ("unverified.ada", Some("https://www.youtube.com/verify")),
        ("restricted.ada", Some("https://support.google.com/youtube/answer/71673")),
    ] {
        let actor = world.named(platform, name);
        let with = |seconds: u32| {
            let mut post = actor.post("a lecture");
            post.settings = json!({ "madeForKids": false });
            post.media[0] = actor.lasting(&post.media[0], seconds);
            post
        };
        let asked = |from: usize, part: &str| {
            let calls = world.heard().split_off(from);
            calls.iter().filter(|call| call.path.ends_with(part)).count()
        };
        // Nobody is asked about a video that every channel may have.
        let before = world.heard().len();
        let (issues, failure) = actor.look_up(&with(900)).await;
        assert!(issues.is_empty() && failure.is_none(), "{name}: {issues:?} {failure:?}");
        actor.publish(&with(900)).await.on(name);
        assert_eq!(asked(before, "/youtube/v3/channels"), 0, "{name}");

        let long = with(901);
        let (issues, failure) = actor.look_up(&long).await;
        assert!(failure.is_none(), "{name}: {failure:?}");
        let told: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        let Some(advice) = advice else {
            assert_eq!(told, [], "{name}");
            actor.publish(&long).await.on(name);
            continue;
        };
        assert_eq!(told, [(Severity::Error, "reference_not_allowed")], "{name}");
        assert!(issues[0].message.contains(advice), "{issues:?}");
        assert_eq!(issues[0].path, [json!("containers"), json!(0), json!("media")]);
        let before = world.heard().len();
        let failure = actor.prepare(&long).await.map(drop).expect_err(name);
        assert_eq!(failure.code, rejected(422), "{name}");
        assert!(failure.message.contains(advice), "{name}: {failure}");
        assert_eq!(asked(before, "/upload/youtube/v3/videos"), 0, "{name}");

        // YouTube has the last word where its channel can't be read.
        world.lie(&[("/www.googleapis.com/youtube/v3/channels", 500, json!("away"))]);
        let before = world.heard().len();
        actor.prepare(&long).await.map(drop).on(name);
        assert!(asked(before, "/upload/youtube/v3/videos") > 0, "{name}");
        world.lie(&[]);
    }
}

async fn youtube_rejects_a_long_video_of_a_channel_that_may_have_none() {
    let world = World::start().await;
    let platform = platforms::get("youtube").expect("it has an adapter");
    for (name, is_taken) in [("ada", true), ("unverified.ada", false), ("restricted.ada", false)] {
        let actor = world.named(platform, name);
        let mut post = actor.post("a lecture of unknown length");
        post.media[0] = actor.lasting(&post.media[0], 901);
        post.media[0].duration = None;
        let published = actor.publish(&post).await;
        let why = published.as_ref().err().map(|failure| failure.message.contains("length"));
        assert_eq!(why, (!is_taken).then_some(true), "{name}: {published:?}");
    }
}

/// Path of uploads of captions.
const UPLOAD: &str = "/upload/youtube/v3/captions";
const SUBRIP: &str = "1\n00:00:01,000 --> 00:00:02,500\nHello\n";
const WEBVTT: &str = "WEBVTT\n\n00:01.000 --> 00:02.500\nHallo\n";
const SUBVIEWER: &str = "0:00:01.000,0:00:02.500\n>> ADA: Salut\n\n0:00:03.000,0:00:04.500\nAdieu\n";

async fn captions_are_uploaded_once_the_video_is_live() {
    let world = World::tapped().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("with captions");
    post.settings = json!({ "captions": [
        { "language": "en", "content": SUBRIP },
        { "language": "de-CH", "name": "Mundart", "content": WEBVTT },
        { "language": "fr", "content": SUBVIEWER },
    ] });
    let id = actor.publish(&post).await.on("publish");
    let uploads = || world.heard().iter().filter(|call| call.path.ends_with(UPLOAD)).count();
    let tracks = ["Captions: en<", "Captions: de-CH (Mundart)<", "Captions: fr<"].map(arrived);
    let counted = async || {
        let page = actor.shown(&id).await;
        tracks.each_ref().map(|track| page.matches(track).count())
    };
    assert_eq!((uploads(), counted().await), (3, [1; 3]));
    for file in [WEBVTT, SUBVIEWER] {
        assert!(world.heard().iter().any(|call| call.path.ends_with(UPLOAD) && call.text.contains(file)));
    }

    // A worker that died before it saved that all is done looks first.
    let at = Checkpoint(json!({ "media": post.media[0].id, "video": id }));
    assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
    assert_eq!((uploads(), counted().await), (3, [1; 3]));

    // A track that exists although the list lacks it is one that is done.
    let empty = json!({ "kind": "youtube#captionListResponse", "items": [] });
    world.lie(&[("/www.googleapis.com/youtube/v3/captions", 200, empty)]);
    assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
    let statuses = |call: &crate::specs::Heard| call.path.ends_with(UPLOAD).then_some(call.status);
    assert_eq!(world.heard().iter().filter_map(statuses).collect::<Vec<_>>(), [200, 200, 200, 409, 409, 409]);
    assert_eq!(counted().await, [1; 3]);
}

async fn a_worker_crash_after_any_call_leaves_one_track_of_captions() {
    let world = World::tapped().await;
    let actor = actor(&world, "youtube");
    // All lives together take more than a day's quota.
    actor.set(&json!({ "limits": { "youtube.units": 100_000 } })).await;
    for call in 1.. {
        let mut post = actor.post(&format!("the {call}. life"));
        post.settings = json!({ "captions": [{ "language": "en", "content": SUBRIP }] });
        let (located, has_died) = world.publish_mortally(&actor, &post, call).await.on("publish");
        let Located::Live(found) = located else { panic!("{located:?} after call {call}") };
        let id = found.into_id();
        let page = actor.shown(&id).await;
        assert_eq!(page.matches(&arrived("Captions: en<")).count(), 1, "after call {call}");
        if !has_died {
            assert!(call > 5, "there were {call} calls");
            break;
        }
    }
}

async fn invalid_captions_are_rejected_before_the_upload() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let english = json!({ "language": "en", "content": SUBRIP });
    for (captions, path, word) in [
        (
            json!([{ "language": "en", "content": "Hello" }]),
            json!([0]),
            "neither SubRip nor SubViewer nor WebVTT",
        ),
        (
            json!([english, { "language": "EN", "name": " ", "content": WEBVTT }]),
            json!([1]),
            "name of its own",
        ),
        (json!([{ "language": "English language", "content": SUBRIP }]), json!([0, "language"]), "language"),
        (
            json!([{ "language": "en", "name": "n".repeat(151), "content": SUBRIP }]),
            json!([0, "name"]),
            "150",
        ),
        (json!([{ "language": "en", "content": "a".repeat(100_001) }]), json!([0, "content"]), "100000"),
        (json!([{ "language": "en" }]), json!([0]), "content"),
        (json!(vec![english.clone(); 6]), json!([]), "at most 5"),
    ] {
        let mut post = actor.post("a video");
        post.settings = json!({ "captions": captions, "madeForKids": false });
        let issues = check(
            actor.platform,
            &[ContainerContent { text: &post.text, media: &post.media }],
            &post.settings,
        );
        let found: Vec<_> =
            issues.iter().map(|issue| (issue.code.as_str(), json!(issue.path[3..]))).collect();
        assert_eq!(found, [("setting_invalid", path)], "{word}: {issues:?}");
        assert!(issues[0].message.contains(word), "{word}: {issues:?}");
    }
    let mut post = actor.post("a video");
    let captions = json!([english, { "language": "en", "name": "Slang", "content": WEBVTT }]);
    post.settings = json!({ "captions": captions, "madeForKids": false });
    assert_eq!(
        check(actor.platform, &[ContainerContent { text: &post.text, media: &post.media }], &post.settings),
        []
    );
    assert_eq!(actor.accepted().await, 0);
}

async fn refused_captions_are_told_and_the_video_stays() {
    let world = World::tapped().await;
    let mut actor = actor(&world, "youtube");
    let unreadable = format!("{SUBRIP}\nsandbox-failed\n");
    let mut post = actor.post("a video");
    post.settings = json!({ "captions": [
        { "language": "en", "content": unreadable }, { "language": "de", "content": WEBVTT },
    ] });
    let notes = actor.notes(&post).await.on("publish");
    assert!(notes.len() == 1 && notes[0].contains("live without its captions in en"), "{notes:?}");
    assert!(notes[0].contains("processingFailed"), "{notes:?}");

    // The quota of the day is used up.
    let spent =
        json!({ "error": { "code": 403, "message": "used up", "errors": [{ "reason": "quotaExceeded" }] } });
    world.lie(&[("/www.googleapis.com/upload/youtube/v3/captions", 403, spent)]);
    let notes = actor.notes(&post).await.on("publish");
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("used up")), "{notes:?}");
    world.lie(&[]);

    // Everything but comments and captions works with this scope.
    let brought = actor.consent_to(&["https://www.googleapis.com/auth/youtube"], "allow").await;
    actor.grant = actor.exchange(&brought.expect("it has codes")["code"]).await.on("exchange");
    let notes = actor.notes(&post).await.on("publish");
    assert!(notes.len() == 1 && notes[0].contains("its captions: "), "{notes:?}");
    assert!(notes[0].contains("youtube.force-ssl"), "{notes:?}");
    assert_eq!(actor.accepted().await, 3);
}

/// Path of the additions to playlists.
const PLAYLIST_ITEMS: &str = "/www.googleapis.com/youtube/v3/playlistItems";

/// Creates a playlist of the channel and returns its id.
async fn playlist(actor: &crate::fixtures::Actor, title: &str) -> String {
    let address = actor.sandbox("www.googleapis.com/youtube/v3/playlists");
    let call = actor.http.post(address).query(&[("part", "snippet")]).bearer_auth(&actor.grant.access_token);
    let answer = call.json(&json!({ "snippet": { "title": title } })).send().await.expect("an answer");
    let body: Value = answer.json().await.expect("JSON");
    body["id"].as_str().expect("an id").to_owned()
}

async fn a_video_is_added_to_each_of_its_playlists_once() {
    let world = World::tapped().await;
    let actor = actor(&world, "youtube");
    let [first, second] = [playlist(&actor, "Walks").await, playlist(&actor, "Talks").await];
    let mut post = actor.post("in two lists");
    // Twice as the only one's and among the further ones, and with white space around it.
    post.settings = json!({ "playlist": first, "playlists": [second, first, format!(" {second} ")] });
    assert_eq!(actor.look_up(&post).await, (Vec::new(), None));
    let id = actor.publish(&post).await.on("publish");
    let additions = || {
        let is_addition = |call: &&crate::specs::Heard| call.method == "POST" && call.path == PLAYLIST_ITEMS;
        world.heard().iter().filter(is_addition).count()
    };
    let counted = async || {
        let page = actor.shown(&id).await;
        ["Walks", "Talks"].map(|title| page.matches(&arrived(&format!("In the playlist {title}"))).count())
    };
    assert_eq!((additions(), counted().await), (2, [1, 1]));

    // A worker that died before it saved that all is done looks first.
    let at = Checkpoint(json!({ "media": post.media[0].id, "video": id }));
    assert_eq!(actor.settle(&post, &at).await.on("settle").id(), Some(&*id));
    assert_eq!((additions(), counted().await), (2, [1, 1]));
}

async fn a_worker_crash_after_any_call_adds_to_each_playlist_once() {
    let world = World::tapped().await;
    let actor = actor(&world, "youtube");
    let [first, second] = [playlist(&actor, "Walks").await, playlist(&actor, "Talks").await];
    // All lives together take more than a day's quota.
    actor.set(&json!({ "limits": { "youtube.units": 100_000 } })).await;
    for call in 1.. {
        let mut post = actor.post(&format!("the {call}. life"));
        post.settings = json!({ "playlists": [first, second] });
        let (located, has_died) = world.publish_mortally(&actor, &post, call).await.on("publish");
        let Located::Live(found) = located else { panic!("{located:?} after call {call}") };
        let page = actor.shown(&found.into_id()).await;
        for title in ["Walks", "Talks"] {
            let count = page.matches(&arrived(&format!("In the playlist {title}"))).count();
            assert_eq!(count, 1, "{title} after call {call}");
        }
        if !has_died {
            assert!(call > 8, "there were {call} calls");
            break;
        }
    }
}

async fn a_playlist_that_is_refused_keeps_the_video_out_of_no_other() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let stranger = world.named(actor.platform, "grace");
    let [theirs, ours] = [playlist(&stranger, "Not ours").await, playlist(&actor, "Ours").await];
    let mut post = actor.post("a video");
    let at = actor.prepare(&post).await.on("prepare");
    let Committed::Accepted { at, .. } = actor.commit(&post, &at).await.on("commit") else {
        panic!("processing follows")
    };
    // One was given to another channel, and one was deleted, since the upload began.
    post.settings = json!({ "playlists": [theirs, "PLdeleted", ours] });
    post.commit_begun_at = Some(clock());
    let keep = Kept::default();
    let id = loop {
        match actor.platform.publisher.locate(&actor.session(&keep), &post, &at).await.on("locate") {
            Located::Processing { poll_after } => crate::fixtures::pause(poll_after).await,
            located => break located.id().expect("it is live").to_owned(),
        }
    };
    let page = actor.shown(&id).await;
    assert!(page.contains("In the playlist Ours") && !page.contains("Not ours"), "{page}");
    let notes: std::collections::BTreeSet<_> = keep.notes().into_iter().collect();
    for playlist in [&*theirs, "PLdeleted"] {
        let words = format!("live without its place in playlist {playlist}: ");
        assert!(notes.iter().any(|note| note.contains(&words)), "{notes:?}");
    }
    assert_eq!(notes.len(), 2, "{notes:?}");
}

async fn a_playlist_of_somebody_else_is_told_before_the_upload() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let stranger = world.named(actor.platform, "grace");
    let [theirs, ours] = [playlist(&stranger, "Not ours").await, playlist(&actor, "Ours").await];
    let mut post = actor.post("a video");
    post.settings = json!({ "playlist": ours, "playlists": [ours, theirs, "PLnothing"] });
    let (issues, failure) = actor.look_up(&post).await;
    let found: Vec<_> = issues.iter().map(|issue| (&*issue.code, json!(issue.path[2..]))).collect();
    let missing = ("reference_not_found", json!(["playlists"]));
    assert_eq!((found, failure), (vec![missing.clone(), missing], None), "{issues:?}");
    assert!(issues[0].message.contains(&theirs) && issues[1].message.contains("PLnothing"), "{issues:?}");

    let failure = actor.prepare(&post).await.expect_err("it is not ours");
    assert!(failure.code == rejected(422) && failure.message.contains(&theirs), "{failure}");
    assert_eq!(actor.accepted().await, 0);
}

/// Returns a video's resource as YouTube has it.
async fn resource(actor: &crate::fixtures::Actor, id: &str) -> Value {
    let parts = "snippet,localizations,recordingDetails";
    let address = actor.sandbox(&format!("www.googleapis.com/youtube/v3/videos?part={parts}&id={id}"));
    actor.ask("GET", &address).await["items"][0].take()
}

async fn a_video_has_a_title_in_each_language_and_a_recording_date() {
    let world = World::tapped().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("Guten Tag");
    post.settings = json!({
        "defaultLanguage": "de",
        "localizations": [
            { "language": "en", "title": "Hello", "description": "What we\nsay" },
            { "language": "pt-BR", "title": "Olá" },
        ],
        "recordingDate": "2026-05-01",
    });
    let id = actor.publish(&post).await.on("publish");
    let video = resource(&actor, &id).await;
    let titles =
        json!({ "en": { "title": "Hello", "description": "What we\nsay" }, "pt-BR": { "title": "Olá" } });
    assert_eq!(video["localizations"], titles, "{video}");
    assert_eq!(video["snippet"]["defaultLanguage"], "de", "{video}");
    assert_eq!(video["recordingDetails"], json!({ "recordingDate": "2026-05-01T00:00:00Z" }), "{video}");
    // The upload says it all.
    assert!(!world.heard().iter().any(|call| call.method == "PUT"
        && call.path.ends_with("/v3/videos")
        && !call.path.contains("/upload/")));

    // YouTube documents no limit of dates, and videos without these settings have neither.
    for (settings, recorded) in [
        (json!({ "recordingDate": "2026-05-01T23:30:00-02:00" }), json!("2026-05-02T01:30:00Z")),
        (json!({ "recordingDate": "2999-12-31" }), json!("2999-12-31T00:00:00Z")),
        (json!({ "localizations": [] }), Value::Null),
    ] {
        let mut post = actor.post("Guten Abend");
        post.settings = settings;
        let video = resource(&actor, &actor.publish(&post).await.on("publish")).await;
        assert_eq!(video["recordingDetails"]["recordingDate"], recorded, "{video}");
        assert_eq!(video["localizations"], Value::Null, "{video}");
    }
}

async fn invalid_localizations_and_dates_are_rejected_before_the_upload() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let english = json!({ "language": "en", "title": "Hello" });
    let with = |changes: Value| {
        let mut all = english.clone();
        all.as_object_mut().expect("members").extend(changes.as_object().expect("members").clone());
        json!({ "defaultLanguage": "de", "localizations": [all] })
    };
    for (settings, code, path, word) in [
        (
            json!({ "localizations": [english] }),
            "settings_conflict",
            json!(["localizations"]),
            "defaultLanguage",
        ),
        (
            with(json!({ "language": "DE" })),
            "setting_invalid",
            json!(["localizations", 0]),
            "defaultLanguage",
        ),
        (
            json!({ "defaultLanguage": "de", "localizations": [english, { "language": "EN", "title": "Hi" }] }),
            "setting_invalid",
            json!(["localizations", 1]),
            "another",
        ),
        (
            with(json!({ "language": "English" })),
            "setting_invalid",
            json!(["localizations", 0, "language"]),
            "a language",
        ),
        (
            with(json!({ "title": " " })),
            "setting_invalid",
            json!(["localizations", 0, "title"]),
            "at least 1",
        ),
        (
            with(json!({ "title": "é".repeat(101) })),
            "setting_invalid",
            json!(["localizations", 0, "title"]),
            "at most 100",
        ),
        (
            with(json!({ "title": "a < b" })),
            "setting_invalid",
            json!(["localizations", 0, "title"]),
            "without < and >",
        ),
        (with(json!({ "title": null })), "setting_invalid", json!(["localizations", 0]), "title"),
        (
            with(json!({ "description": "é".repeat(2501) })),
            "setting_invalid",
            json!(["localizations", 0]),
            "5002",
        ),
        (
            with(json!({ "description": "<b>" })),
            "setting_invalid",
            json!(["localizations", 0, "description"]),
            "without < and >",
        ),
        (json!({ "recordingDate": "2026-02-30" }), "setting_invalid", json!(["recordingDate"]), "2026-02-30"),
        (
            json!({ "recordingDate": "yesterday" }),
            "setting_invalid",
            json!(["recordingDate"]),
            "a day, or a time with its zone",
        ),
        (
            json!({ "recordingDate": "2026-02-01T25:00:00Z" }),
            "setting_invalid",
            json!(["recordingDate"]),
            "25:00",
        ),
        (json!({ "playlists": ["PL1", " "] }), "setting_invalid", json!(["playlists", 1]), "at least 1"),
        (json!({ "playlists": vec!["PL1"; 21] }), "setting_invalid", json!(["playlists"]), "at most 20"),
    ] {
        let mut post = actor.post("a video");
        post.settings = settings;
        post.settings["madeForKids"] = json!(false);
        let issues = check(
            actor.platform,
            &[ContainerContent { text: &post.text, media: &post.media }],
            &post.settings,
        );
        let found: Vec<_> =
            issues.iter().map(|issue| (issue.code.as_str(), json!(issue.path[2..]))).collect();
        assert_eq!(found, [(code, path)], "{word}: {issues:?}");
        assert!(issues[0].message.contains(word), "{word}: {issues:?}");
    }
}

async fn localizations_at_each_limit_are_taken() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("a video");
    let localization = json!({ "language": "en", "title": "é".repeat(100), "description": "é".repeat(2500) });
    post.settings = json!({ "defaultLanguage": "de", "localizations": [localization], "madeForKids": false });
    let contents = [ContainerContent { text: &post.text, media: &post.media }];
    assert_eq!(check(actor.platform, &contents, &post.settings), []);
    actor.publish(&post).await.on("publish");
    assert_eq!(actor.accepted().await, 1);
}

/// <https://developers.google.com/youtube/v3/docs/videos/insert#errors>
async fn youtube_needs_the_language_of_the_title_for_others() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let snippet = json!({ "title": "Guten Tag", "defaultLanguage": "de" });
    let english = json!({ "en": { "title": "Hello" } });
    for (parts, body, reason) in [
        ("snippet,localizations", json!({ "snippet": snippet, "localizations": english }), None),
        // A part that is not named is not read.
        ("snippet", json!({ "snippet": { "title": "Guten Tag" }, "localizations": english }), None),
        (
            "snippet,localizations",
            json!({ "snippet": { "title": "Guten Tag" }, "localizations": english }),
            Some("defaultLanguageNotSet"),
        ),
        (
            "snippet,localizations",
            json!({ "snippet": snippet, "localizations": { "en": { "title": "a < b" } } }),
            Some("invalidVideoMetadata"),
        ),
        (
            "snippet,localizations",
            json!({ "snippet": snippet, "localizations": { "English": { "title": "Hello" } } }),
            Some("invalidVideoMetadata"),
        ),
        (
            "snippet,recordingDetails",
            json!({ "snippet": snippet, "recordingDetails": { "recordingDate": "2026-05-01" } }),
            Some("invalidRecordingDetails"),
        ),
    ] {
        let call = actor.http.post(actor.sandbox("www.googleapis.com/upload/youtube/v3/videos"));
        let call = call.query(&[("uploadType", "resumable"), ("part", parts)]);
        let answer = call.bearer_auth(&actor.grant.access_token).json(&body).send().await.expect("an answer");
        let status = answer.status().as_u16();
        let answer: Value = answer.json().await.unwrap_or_default();
        let said = answer["error"]["errors"][0]["reason"].as_str();
        assert_eq!((status, said), (if reason.is_some() { 400 } else { 200 }, reason), "{body}");
    }
}

async fn a_video_without_a_text_is_named_after_its_file() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    for (filename, title) in [
        ("Holiday 1.mp4", "Holiday 1"),
        ("a<b>c.tar.mp4", "abc.tar"),
        (" .mp4", "Video"),
        ("< >.mp4", "Video"),
    ] {
        let mut post = actor.post(" ");
        post.media[0].filename = filename.to_owned();
        let page = actor.shown(&actor.publish(&post).await.on(filename)).await;
        assert!(page.contains(&format!("Title: {title}")), "{filename}: {page}");
    }
}

async fn youtubes_own_names_of_settings_are_taken() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let list = playlist(&actor, "Walks").await;
    for category in [json!("10"), json!(10)] {
        let mut post = actor.post("a video");
        post.settings =
            json!({ "categoryId": category, "playlistId": list, "selfDeclaredMadeForKids": true });
        assert_eq!(actor.look_up(&post).await, (Vec::new(), None));
        let page = actor.shown(&actor.publish(&post).await.on("publish")).await;
        assert!(page.contains("Category 10") && page.contains("In the playlist Walks"), "{page}");
    }
    let mut post = actor.post("a video");
    post.settings = json!({ "categoryId": 100_000 });
    let (issues, _) = actor.look_up(&post).await;
    assert!(issues.len() == 1 && issues[0].message.contains("100000"), "{issues:?}");
}

async fn an_edit_keeps_the_other_languages() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("Guten Tag");
    post.settings = json!({
        "defaultLanguage": "de", "localizations": [{ "language": "en", "title": "Hello" }], "recordingDate": "2026-05-01",
    });
    let id = actor.publish(&post).await.on("publish");
    let before = resource(&actor, &id).await;
    let edit = platforms::Edit {
        position: 0,
        of_reply: false,
        has_media: true,
        kinds: vec![MediaKind::Video],
        before: post.text.clone(),
        text: Some("Guten Abend".to_owned()),
        settings: post.settings.clone(),
        names: Vec::new(),
    };
    let editing = actor.platform.editing.expect("it edits");
    editing.edit(&actor.session(&Kept::default()), &id, &edit).await.on("edit");
    let after = resource(&actor, &id).await;
    assert_eq!(after["snippet"]["title"], "Guten Abend", "{after}");
    for part in ["localizations", "recordingDetails"] {
        assert_eq!((&after[part], after[part].is_object()), (&before[part], true), "{part}: {after}");
    }
}
