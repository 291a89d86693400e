//! Validates the adapters' requests against the platforms' machine-readable descriptions.
//!
//! The descriptions belong to the platforms and are not in this repository. `FANFARE_SPECS` names a directory
//! with these files; without it, the tests that compare with them pass without checking anything:
//!
//! - X's OpenAPI document: `x-api-v2-openapi*.json`, <https://api.x.com/2/openapi.json>
//! - Pinterest's: `pinterest-v5-openapi.yaml`, <https://github.com/pinterest/api-description>
//! - Bluesky's lexicons: `atproto-lexicons/`, <https://github.com/bluesky-social/atproto/tree/main/lexicons>
//! - Meta's collection of Threads requests: `meta-threads-api.postman_collection.json`,
//!   <https://github.com/fbsamples/threads_api>
//! - An extract of Meta's SDK: `meta-graph-v26-sdk-extract.json`, from
//!   <https://github.com/facebook/facebook-python-business-sdk>
//! - Google's discovery documents: `google-*.discovery.json`, <https://developers.google.com/discovery>

mod collection;
mod discovery;
mod faults;
mod lexicon;
mod openapi;
mod schemas;
mod sdk;

use crate::{
    fixtures::{Actor, Kept, Named, World, pause},
    trials::{self, singles},
};
use chrono::NaiveDateTime;
use faults::{
    a_collection_finds_each_fault, a_discovery_document_finds_each_fault, a_lexicon_finds_each_fault,
    an_extract_of_an_sdk_finds_each_fault, an_openapi_document_finds_each_fault,
    an_openapi_document_finds_each_fault_of_a_form,
};
use libtest_mimic::Trial;
use platforms::Replies;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Returns the tests of this module.
pub(crate) fn trials() -> Vec<Trial> {
    trials::of(
        "specs",
        &singles![
            requests_to_x_match_its_openapi_document,
            calls_to_pinterest_match_its_openapi_document,
            requests_to_bluesky_match_its_lexicons,
            requests_to_threads_match_metas_collection,
            the_sandbox_serves_metas_collection_of_threads_requests,
            requests_to_instagram_match_metas_sdk,
            requests_to_facebook_match_metas_sdk,
            calls_to_youtube_match_its_discovery_documents,
            calls_to_google_business_match_its_discovery_documents,
            an_openapi_document_finds_each_fault,
            an_openapi_document_finds_each_fault_of_a_form,
            a_discovery_document_finds_each_fault,
            a_lexicon_finds_each_fault,
            a_collection_finds_each_fault,
            an_extract_of_an_sdk_finds_each_fault,
        ],
    )
}

/// A request that a platform received.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) method: String,
    /// Path without the sandbox's origin: `/api.x.com/2/tweets`.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) mime: String,
    /// The body as JSON; `null` if it is not JSON.
    pub(crate) body: Value,
    /// The beginning of the body as text; invalid UTF-8 is replaced.
    pub(crate) text: String,
    /// Status of the response.
    pub(crate) status: u16,
    /// The response as JSON; `null` if it is not JSON.
    pub(crate) answer: Value,
}

async fn requests_to_x_match_its_openapi_document() {
    let Some(folder) = folder() else { return };
    let document = openapi::Document::open(&folder, "x-api-v2-openapi", "/api.x.com");
    let settings = json!({
        "reply_settings": "following", "made_with_ai": true, "paid_partnership": true, "community_id": "1",
        "share_with_followers": true,
    });
    let mut heard = walk(
        "x",
        &[json!({}), settings, json!({ "poll": { "options": ["a", "b"], "duration_minutes": 60 } })],
    )
    .await;
    let captions = json!([{ "language": "en", "content": "1\n00:00:01,000 --> 00:00:02,500\nHello\n" }]);
    let of_media = json!({
        "sensitive_media_warning": ["adult_content"], "tagged_users": ["ada", "12"], "captions": captions,
    });
    heard.extend(walk_media("x", &[of_media]).await);
    let calls = heard.iter().filter(|call| document.covers(call) && !call.path.contains("/oauth2/"));
    let faults: Vec<_> = calls.flat_map(|call| document.faults(call)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for path in ["tweets", "media/upload/initialize", "media/metadata", "media/subtitles", "users/by"] {
        let path = format!("/api.x.com/2/{path}");
        assert!(heard.iter().any(|call| call.path == path), "{path} was never called");
    }
}

async fn calls_to_pinterest_match_its_openapi_document() {
    let Some(folder) = folder() else { return };
    trials::approve();
    let document = openapi::Document::open(&folder, "pinterest-v5-openapi", "/api.pinterest.com/v5");
    let settings = json!({
        "title": "A title", "link": "https://example.com/a?b=c", "dominant_color": "#6E7874",
        "ai_disclosures": ["AI_MODIFIED"],
    });
    let mut heard = walk("pinterest", &[json!({}), settings, json!({ "board_id": "1" })]).await;
    let slots =
        json!({ "carousel_slots": [{ "title": "a", "description": "b", "link": "https://a.example" }] });
    heard.extend(walk_several("pinterest", platforms::MediaKind::Image, &slots).await);
    heard.iter_mut().for_each(|call| name_zones(&mut call.answer));
    let calls = heard.iter().filter(|call| document.covers(call));
    let faults: Vec<_> = calls.flat_map(|call| document.faults(call)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for path in ["/pins", "/boards", "/media", "/user_account", "/oauth/token"] {
        assert!(heard.iter().any(|call| call.path.ends_with(path)), "{path} was never called");
    }
}

/// Adds the zone to times of Pinterest that have none: the service leaves it out, as answers that people quote show, and
/// its description, for which each is a `date-time`, does not say so.
fn name_zones(answer: &mut Value) {
    match answer {
        Value::Array(items) => items.iter_mut().for_each(name_zones),
        Value::Object(members) => members.values_mut().for_each(name_zones),
        Value::String(text) if text.parse::<NaiveDateTime>().is_ok() => text.push('Z'),
        _ => {}
    }
}

async fn requests_to_bluesky_match_its_lexicons() {
    let Some(folder) = folder() else { return };
    let lexicons = lexicon::Lexicons::open(&folder);
    let settings = json!({
        "languages": ["en", "de-CH"], "labels": ["nudity"], "tags": ["one"],
        "link": { "url": "https://example.com", "title": "A", "description": "B" },
        "allow_replies_from": ["mentioned", "followers", "following"], "disable_quotes": true,
    });
    let mut heard = walk("bluesky", &[json!({}), settings]).await;
    let captions = json!([{ "language": "en", "content": "1\n00:00:01,000 --> 00:00:02,500\nHello\n" }]);
    heard.extend(walk_media("bluesky", &[json!({ "captions": captions, "shorten_links": true })]).await);
    assert!(heard.iter().any(|call| call.mime == "text/vtt"));
    let faults: Vec<_> = heard
        .iter()
        .filter(|call| call.path.contains("/xrpc/"))
        .flat_map(|call| lexicons.faults(call))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for nsid in
        ["com.atproto.repo.putRecord", "app.bsky.video.uploadVideo", "com.atproto.server.refreshSession"]
    {
        assert!(heard.iter().any(|call| call.path.ends_with(nsid)), "{nsid} was never called");
    }
}

async fn requests_to_threads_match_metas_collection() {
    let Some(folder) = folder() else { return };
    let collection = collection::Collection::open(&folder.join("meta-threads-api.postman_collection.json"));
    let settings = json!({ "reply_control": "mentioned_only", "topic_tag": "Rust" });
    let poll = json!({ "poll_attachment": { "option_a": "a", "option_b": "b" }, "link_attachment": "https://a.example" });
    let heard = walk("threads", &[json!({}), settings, poll]).await;
    let faults: Vec<_> = heard
        .iter()
        .filter(|call| call.path.starts_with("/graph.threads.com/"))
        .flat_map(|call| collection.faults(call))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for edge in ["/threads", "/threads_publish", "/insights", "/refresh_access_token"] {
        assert!(heard.iter().any(|call| call.path.ends_with(edge)), "{edge} was never called");
    }
}

async fn the_sandbox_serves_metas_collection_of_threads_requests() {
    let Some(folder) = folder() else { return };
    let collection = collection::Collection::open(&folder.join("meta-threads-api.postman_collection.json"));
    let world = World::start().await;
    let mut actor: Actor = world.named(platforms::get("threads").expect("it is there"), "ada");
    let code = actor.consent("allow").await.expect("it has codes");
    let app = actor.app.clone().expect("it has an app");
    let mut variables = collection.variables();
    for (name, value) in [
        ("api_host", actor.sandbox("graph.threads.net")),
        ("app_id", app.client_id),
        ("app_secret", app.client_secret.expect("it has a secret")),
        ("code", code["code"].clone()),
        ("redirect_uri", crate::fixtures::RETURN.to_owned()),
        ("image_url", actor.offer(platforms::MediaKind::Image)),
        ("video_url", actor.offer(platforms::MediaKind::Video)),
        ("reply_control", "everyone".to_owned()),
        ("input_token", actor.grant.access_token.clone()),
    ] {
        variables.insert(name.to_owned(), value);
    }
    // The sandbox has no profiles of others, no places and no embeds.
    let beyond = [
        "Public",
        "Retrieve Threads Location",
        "Embed a Threads Post",
        "Hide Replies",
        "Delete Threads Post",
    ];
    let mut items = Vec::new();
    for request in collection.requests() {
        if beyond.iter().any(|part| request.name.contains(part)) {
            continue;
        }
        let answer = actor.ask(&request.method, &request.filled(&variables)).await;
        assert_eq!(answer["error"], Value::Null, "{}: {answer}", request.name);
        assert_eq!(answer["error_message"], Value::Null, "{}: {answer}", request.name);
        let id = answer["id"].as_str().unwrap_or_default().to_owned();
        if ["Exchange the Code", "Long-Lived", "Refresh"].iter().any(|part| request.name.contains(part)) {
            actor.grant.access_token = answer["access_token"].as_str().expect("a token").to_owned();
            continue;
        }
        if request.method != "POST" || id.is_empty() {
            continue;
        }
        if request.name.contains("Item Container") {
            items.push(id.clone());
            variables.insert("carousel_children_ids".into(), items.join(","));
        }
        if !request.name.contains("Publish") && !request.name.contains("Repost") {
            let status = format!("{}/{id}?fields=status", variables["api_host"]);
            while actor.ask("GET", &status).await["status"] == "IN_PROGRESS" {
                pause(std::time::Duration::from_millis(50)).await;
            }
            variables.insert("container_id".into(), id);
        } else {
            for name in ["thread_id", "reply_thread_id", "quote_post_id"] {
                variables.insert(name.into(), id.clone());
            }
        }
    }
    assert_eq!(items.len(), 2);
}

async fn requests_to_instagram_match_metas_sdk() {
    let Some(folder) = folder() else { return };
    let sdk = sdk::Sdk::open(
        &folder,
        &["IGUserForIGOnlyAPI", "IGMediaForIGOnlyAPI", "IGComment", "ShadowIGMediaBuilder"],
    );
    let settings = json!({
        "collaborators": ["bob"], "user_tags": [{ "username": "bob", "x": 0.5, "y": 0.5 }],
        "location_id": "123", "is_ai_generated": true,
    });
    let (quiet, story) = (json!({ "comment_enabled": false }), json!({ "media_type": "STORIES" }));
    let heard = walk("instagram", &[json!({}), settings, quiet, story]).await;
    let calls = heard.iter().filter(|call| call.path.starts_with("/graph.instagram.com/v"));
    let faults: Vec<_> = calls.flat_map(|call| sdk.faults(call)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for edge in ["/media", "/media_publish", "/comments", "/insights", "/refresh_access_token"] {
        assert!(heard.iter().any(|call| call.path.ends_with(edge)), "{edge} was never called");
    }
}

async fn requests_to_facebook_match_metas_sdk() {
    let Some(folder) = folder() else { return };
    let sdk = sdk::Sdk::open(
        &folder,
        &["Page", "PagePost", "Photo", "AdVideo", "Comment", "Stories", "VideoStatus", "User"],
    );
    let settings = [
        json!({}),
        json!({ "link": "https://example.com", "place": "123" }),
        json!({ "text_format_preset_id": "106018623298955" }),
        json!({ "child_attachments": vec![json!({
            "link": "https://example.com", "picture": "https://example.com/a.jpg", "name": "A",
        }); 6] }),
        json!({ "draft": true }),
        json!({ "media_type": "REELS", "title": "A", "is_ai_generated": true }),
        json!({ "media_type": "STORIES" }),
    ];
    let mut heard = walk("facebook", &settings).await;
    heard.extend(walk_media("facebook", &settings[5..]).await);
    let hosts = ["/graph.facebook.com/v", "/graph-video.facebook.com/v"];
    let calls = heard.iter().filter(|call| hosts.iter().any(|host| call.path.starts_with(host)));
    let faults: Vec<_> = calls.flat_map(|call| sdk.faults(call)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    for edge in
        ["/feed", "/photos", "/videos", "/video_reels", "/video_stories", "/photo_stories", "/comments"]
    {
        assert!(heard.iter().any(|call| call.path.ends_with(edge)), "{edge} was never called");
    }
    assert!(heard.iter().any(|call| call.path.starts_with("/rupload.facebook.com/video-upload/v26.0/")));
}

async fn calls_to_youtube_match_its_discovery_documents() {
    let Some(folder) = folder() else { return };
    let data = discovery::Document::open(&folder, "google-youtube.v3");
    let reports = discovery::Document::open(&folder, "google-youtubeAnalytics.v2");
    let login = discovery::Document::open(&folder, "google-oauth2.v2");
    let settings = json!({
        "title": "A title", "privacyStatus": "unlisted", "tags": ["one", "two"], "category": "10",
        "madeForKids": false, "containsSyntheticMedia": true, "license": "creativeCommon", "embeddable": true,
        "publicStatsViewable": false, "notifySubscribers": false, "defaultLanguage": "en",
        "defaultAudioLanguage": "de", "paidPromotion": true, "recordingDate": "2026-05-01",
        "localizations": [{ "language": "de", "title": "Ein Titel", "description": "Ein Text" }],
    });
    let captions = json!({ "captions": [
        { "language": "en", "name": "English", "content": "1\n00:00:01,000 --> 00:00:02,500\nHello\n" },
    ] });
    let timed = json!({ "publishAt": "2100-01-02T03:04:05Z" });
    let heard = walk("youtube", &[json!({}), settings, captions, timed]).await;
    let mut faults = Vec::new();
    for call in &heard {
        let Some((host, path)) = call.path.trim_start_matches('/').split_once('/') else { continue };
        match host {
            "youtubeanalytics.googleapis.com" => faults.extend(reports.faults(call, path)),
            "www.googleapis.com" if path.starts_with("oauth2/") => faults.extend(login.faults(call, path)),
            "www.googleapis.com" => faults.extend(data.faults(call, path)),
            _ => {}
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    for path in [
        "upload/youtube/v3/videos",
        "upload/youtube/v3/thumbnails/set",
        "upload/youtube/v3/captions",
        "youtube/v3/commentThreads",
    ] {
        assert!(heard.iter().any(|call| call.path.ends_with(path)), "{path} was never called");
    }
}

async fn calls_to_google_business_match_its_discovery_documents() {
    let Some(folder) = folder() else { return };
    // The published document of the posts' API is outdated; what it contains still applies.
    let documents = [
        ("mybusiness.googleapis.com", "google-mybusiness.v4p4"),
        ("mybusinessaccountmanagement.googleapis.com", "google-mybusinessaccountmanagement.v1"),
        ("mybusinessbusinessinformation.googleapis.com", "google-mybusinessbusinessinformation.v1"),
    ]
    .map(|(host, name)| (host, discovery::Document::open(&folder, name)));
    let event = json!({ "title": "A day", "start": "2100-01-02", "end": "2100-01-02T18:00" });
    let settings = [
        json!({}),
        json!({ "event": event, "languageCode": "en" }),
        json!({ "event": event, "offer": { "couponCode": "A", "redeemOnlineUrl": "https://example.com", "termsConditions": "B" } }),
        json!({ "callToAction": { "actionType": "LEARN_MORE", "url": "https://example.com" } }),
        json!({ "callToAction": { "actionType": "CALL" } }),
    ];
    let mut heard = walk("google_business", &settings).await;
    let added = ["photo", "video"].map(|setting| json!({ setting: { "category": "EXTERIOR" } }));
    heard.extend(walk_media("google_business", &added).await);
    for format in ["PHOTO", "VIDEO"] {
        let is_added = |call: &Heard| call.path.ends_with("/media") && call.body["mediaFormat"] == format;
        assert!(heard.iter().any(|call| is_added(call) && call.status == 200), "no {format} was added");
    }
    let mut faults = Vec::new();
    for call in &heard {
        let Some((host, path)) = call.path.trim_start_matches('/').split_once('/') else { continue };
        if let Some((_, document)) = documents.iter().find(|(known, _)| *known == host) {
            faults.extend(document.faults(call, path));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    for (host, _) in documents {
        assert!(
            heard.iter().any(|call| call.path.starts_with(&format!("/{host}/"))),
            "{host} was never called"
        );
    }
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FANFARE_SPECS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("did not run: FANFARE_SPECS names no folder with the platforms' descriptions");
    }
    folder
}

/// Uses every ability of an adapter and returns the requests that the platform received.
async fn walk(platform: &str, settings: &[Value]) -> Vec<Heard> {
    let world = World::tapped().await;
    // An approved app makes the most calls.
    let approved = world.http().post(world.url("_settings")).json(&json!({ "app": "approved" }));
    assert!(approved.send().await.expect("an answer").status().is_success());
    let mut actor: Actor = world.named(platforms::get(platform).expect("it is there"), "ada");
    let keep = Kept::default();
    actor.identities().await.on(platform);
    actor.grant = actor.refresh().await.on(platform);
    let mut ids = Vec::new();
    for (n, settings) in settings.iter().enumerate() {
        let mut post = actor.post(&format!("number {n} #tag @ada.bsky.social https://example.com/ä?b=c"));
        post.settings = settings.clone();
        // A rejected request was sent too, so it is validated as well.
        match actor.publish(&post).await {
            Ok(id) => ids.push(id),
            Err(failure) => assert!(failure.code.is_permanent(), "{platform}: {failure}"),
        }
    }
    if actor.limits().replies != Replies::None {
        let mut reply = actor.reply("a reply", &ids[..1]);
        reply.settings = settings.last().cloned().unwrap_or_default();
        actor.publish(&reply).await.on(platform);
    }
    for limit in actor.limits().media {
        for count in [1, *limit.count.end()] {
            let mut post = actor.post_with(&format!("{count} of {}", limit.kind), limit.kind, count);
            post.media.iter_mut().for_each(|medium| medium.alt_text = Some("described".into()));
            actor.publish(&post).await.on(platform);
        }
    }
    let post = actor.post("looked for");
    let at = actor.prepare(&post).await.on(platform);
    actor.settle(&post, &at).await.on(platform);
    if let Some(analytics) = actor.platform.analytics {
        analytics.metrics(&actor.session(&keep), &ids[0]).await.on(platform);
    }
    if let Some(history) = actor.platform.history {
        history.page(&actor.session(&keep), None).await.on(platform);
    }
    if let Some(options) = actor.platform.options {
        for kind in options.kinds() {
            // Some lists require a parent.
            match options.options(&actor.session(&keep), kind, None).await {
                Ok(_) => {}
                Err(failure) => assert!(failure.code.is_permanent(), "{platform}: {kind} {failure}"),
            }
        }
    }
    if let Ok(editing) = actor.platform.editing {
        let post = actor.post("to be edited\nsoon");
        let id = actor.publish(&post).await.on(platform);
        let edit = crate::edit_of(&post, "to be edited\nonce");
        editing.edit(&actor.session(&keep), &id, &edit).await.on(platform);
    }
    if let Some(deletion) = actor.platform.deletion {
        deletion.delete(&actor.session(&keep), &ids[0]).await.on(platform);
    }
    actor.platform.publisher.revoke(&actor.session(&keep)).await.on(platform);
    world.heard()
}

/// Publishes several media of a kind with these settings, and returns the requests that the platform received.
async fn walk_several(platform: &str, kind: platforms::MediaKind, settings: &Value) -> Vec<Heard> {
    let world = World::tapped().await;
    let actor = world.named(platforms::get(platform).expect("it is there"), "ada");
    let mut post = actor.post_with("several", kind, 2);
    post.settings = settings.clone();
    actor.publish(&post).await.on(platform);
    world.heard()
}

/// Publishes one medium of each kind with each of these settings, and returns the requests that the
/// platform received.
async fn walk_media(platform: &str, settings: &[Value]) -> Vec<Heard> {
    let world = World::tapped().await;
    let actor = world.named(platforms::get(platform).expect("it is there"), "ada");
    actor.set(&json!({ "app": "approved" })).await;
    for settings in settings {
        for limit in actor.platform.media_limits(&actor.account.account_type, 0, settings) {
            let mut post = actor.post_with("", limit.kind, 1);
            post.settings = settings.clone();
            match actor.publish(&post).await {
                Ok(id) => drop(actor.permalink(&id).await),
                Err(failure) => assert!(failure.code.is_permanent(), "{platform}: {failure}"),
            }
        }
    }
    world.heard()
}
