//! YouTube: the settings of a video, and resumable uploads.

use super::{actor, rejected};
use crate::fixtures::{Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{Checkpoint, Located, MediaKind};
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
        ],
    )
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
    });
    let id = actor.publish(&post).await.on("publish");
    let page = actor.shown(&id).await;
    for words in [
        "A title of its own",
        "Visible: unlisted",
        "Tags: one, two words",
        "Category 10",
        &format!("In the playlist {}", playlists[0].name),
        "alt=\"Thumbnail\"",
        "first line\nsecond",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    // A further look-up does not add the video to the playlist again.
    let at = json!({ "media": post.media[0].id, "video": id });
    assert_eq!(actor.settle(&post, &Checkpoint(at)).await.on("settle"), Located::Live(id.clone()));
    assert_eq!(actor.shown(&id).await.matches("In the playlist").count(), 1);

    let mut later = actor.post("later");
    later.settings = json!({ "publishAt": "2100-01-02T03:04:05+01:00" });
    let page = actor.shown(&actor.publish(&later).await.on("later")).await;
    assert!(page.contains("Visible: private") && page.contains("2100-01-02T02:04:05Z"), "{page}");
    assert!(page.contains("Title: later"), "{page}");
}

async fn invalid_settings_are_rejected_before_the_upload() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    for (settings, word) in [
        (json!({ "isShort": true }), "640x360"),
        (json!({ "publishAt": "2100-01-02T03:04:05Z", "privacyStatus": "unlisted" }), "unlisted"),
        (json!({ "playlist": "PLnot-ours" }), "PLnot-ours"),
        (json!({ "thumbnail": "0190c0de-0000-7000-8000-000000000000" }), "0190c0de"),
        (json!({ "tags": vec!["a".repeat(50); 10] }), "509"),
    ] {
        let mut post = actor.post("a video");
        post.settings = settings;
        let failure = actor.prepare(&post).await.expect_err(word);
        assert_eq!(failure.code, rejected(422), "{failure}");
        assert!(failure.message.contains(word), "{failure}");
    }
    let mut long = actor.post("a video");
    long.settings = json!({ "isShort": true });
    (long.media[0].width, long.media[0].duration) = (Some(200), Some(Duration::from_secs(181)));
    assert_eq!(actor.prepare(&long).await.expect_err("too long").code, rejected(422));
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
    }
}

async fn a_comment_on_a_private_video_is_rejected() {
    let world = World::start().await;
    let actor = actor(&world, "youtube");
    let mut post = actor.post("a video");
    post.settings = json!({ "privacyStatus": "private" });
    let id = actor.publish(&post).await.on("publish");
    let failure = actor.publish(&actor.reply("first", &[id])).await.expect_err("private");
    assert_eq!(failure.code, rejected(403), "{failure}");
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
