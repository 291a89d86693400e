//! Bluesky: verification of an account's identity, and what its posts have beside text and media.

use super::{actor, arrived, rejected};
use crate::fixtures::{Actor, Kept, Named, World};
use crate::trials::{self, singles};
use domain::ErrorCode;
use libtest_mimic::Trial;
use platforms::{
    Account, AppPassword, Checkpoint, Grant, Identity, Located, MediaKind, PublishRequest, Result, check,
};
use serde_json::{Value, json};

/// Returns the tests of this module.
pub(super) fn trials() -> Vec<Trial> {
    trials::of(
        "bluesky",
        &singles![
            a_server_cannot_claim_an_account_hosted_elsewhere,
            an_identity_is_verified_by_its_document_and_handle,
            a_did_web_identity_is_resolved_at_its_host,
            a_session_for_another_account_is_treated_as_revoked,
            without_a_service_the_handle_leads_to_the_accounts_server,
            an_unresolvable_login_is_not_taken_for_a_wrong_password,
            a_deactivated_account_is_not_healthy,
            a_session_ends_on_listed_words_alone,
            an_account_unknown_to_the_public_view_is_imported_from_its_server,
            a_link_card_has_the_posts_image,
            replies_and_quotes_are_limited_before_the_post_exists,
            a_gif_is_published_as_a_video,
            videos_of_phones_and_of_ten_minutes_are_published,
            a_refusal_of_the_video_service_does_not_end_the_session,
            the_sandbox_shows_a_post_in_its_thread,
            captions_are_published_with_their_video,
            captions_that_bluesky_refuses_are_found_before_the_post,
            a_worker_crash_after_any_call_leaves_one_track_of_each_language,
            shortened_links_lead_to_the_whole_address,
            a_shortened_text_is_measured_as_it_is_shown,
            a_large_video_is_uploaded_in_parts,
            an_upload_in_parts_that_is_lost_begins_again,
            a_worker_crash_after_any_call_uploads_a_large_video,
        ],
    )
}

const SERVICE: &str = "https://bsky.social";

/// Signs in at a server with the app password, as for connecting an account.
async fn sign_in(actor: &Actor, service: &str) -> Result<(Grant, Identity)> {
    sign_in_as(actor, &actor.account.username, Some(service)).await
}

/// Signs in with an identifier, at a server or at the one that the identifier leads to.
async fn sign_in_as(actor: &Actor, identifier: &str, service: Option<&str>) -> Result<(Grant, Identity)> {
    let account =
        Account { network_unique_id: String::new(), username: String::new(), account_type: String::new() };
    let password = AppPassword {
        identifier: identifier.to_owned(),
        app_password: actor.grant.extra["app_password"].as_str().expect("a password").to_owned(),
        service: service.map(str::to_owned),
    };
    let mut stranger = actor.clone();
    (stranger.account, stranger.grant) = (account, password.grant());
    stranger.grant = stranger.refresh().await?;
    let only = stranger.identities().await?.pop().expect("an identity");
    Ok((stranger.grant, only))
}

fn document(did: &str, pds: &str, handles: &[&str]) -> Value {
    json!({
        "id": did,
        "alsoKnownAs": handles.iter().map(|handle| format!("at://{handle}")).collect::<Vec<_>>(),
        "service": [
            { "id": "#bsky_fg", "type": "BskyFeedGenerator", "serviceEndpoint": "https://feeds.example.com" },
            { "id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": pds },
        ],
    })
}

async fn a_server_cannot_claim_an_account_hosted_elsewhere() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    // The sandbox responds under every host name, including a server that does not host the account.
    let evil = "https://evil.example:8443";
    let failure = sign_in(&ada, evil).await.map(drop).expect_err("another server's account");
    assert_eq!(failure.code, rejected(422), "{failure}");
    assert!(failure.message.contains(evil) && failure.message.contains(SERVICE), "{failure}");
    let mut held = ada.clone();
    held.grant.extra["service"] = json!(evil);
    let failure = held.identities().await.expect_err("a session at another server is no proof");
    assert_eq!(failure.code, rejected(422), "{failure}");
    let (grant, only) = sign_in(&ada, SERVICE).await.on("at its own server");
    assert_eq!(only.profile.network_unique_id, ada.account.network_unique_id);
    assert_eq!((&grant.extra["pds"], only.profile.username), (&json!(SERVICE), ada.account.username.clone()));

    let move_to = |pds: &str| {
        let body = json!({ "platform": "bluesky", "username": ada.account.username, "service": pds });
        ada.http.post(ada.sandbox("_accounts")).json(&body)
    };
    let pds = "https://morel.us-east.host.bsky.network";
    assert_eq!(move_to(pds).send().await.on("moved").status(), 201);
    // The entryway forwards calls to Bluesky's own servers.
    for service in [pds, SERVICE] {
        let (grant, only) = sign_in(&ada, service).await.on(service);
        assert_eq!((&grant.extra["pds"], &grant.extra["service"]), (&json!(pds), &json!(service)));
        assert_eq!(only.profile.network_unique_id, ada.account.network_unique_id);
    }
    let failure = sign_in(&ada, evil).await.map(drop).expect_err("still another server's");
    assert_eq!(failure.code, rejected(422), "{failure}");
}

async fn without_a_service_the_handle_leads_to_the_accounts_server() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let (handle, did) = (ada.account.username.clone(), ada.account.network_unique_id.clone());
    let called = |host: &str, method: &str| {
        let path = format!("/{host}/xrpc/com.atproto.server.{method}");
        world.heard().iter().filter(|call| call.path == path && call.status == 200).count()
    };
    let place = |pds: &str| {
        let body = json!({ "platform": "bluesky", "username": handle, "service": pds });
        ada.http.post(ada.sandbox("_accounts")).json(&body).send()
    };
    let view = "/public.api.bsky.app/xrpc/com.atproto.identity.resolveHandle";
    let unknown = (view, 400, json!({ "error": "InvalidRequest", "message": "Unable to resolve handle" }));
    for (pds, entrance) in [
        (SERVICE, "bsky.social"),
        ("https://morel.us-east.host.bsky.network", "bsky.social"),
        ("https://pds.example.com:8443", "pds.example.com:8443"),
    ] {
        assert_eq!(place(pds).await.on("moved").status(), 201);
        for (identifier, lies) in [
            (&handle, vec![]),
            (&did, vec![]),
            (&handle, vec![unknown.clone()]),
            (&handle.to_uppercase(), vec![]),
        ] {
            world.lie(&lies);
            let before = called(entrance, "createSession");
            let (grant, only) = sign_in_as(&ada, identifier, None).await.on(pds);
            world.lie(&[]);
            assert_eq!((&grant.extra["pds"], &grant.extra["service"]), (&json!(pds), &Value::Null));
            assert_eq!(only.profile.network_unique_id, did);
            assert_eq!(called(entrance, "createSession"), before + 1, "{pds}");
            let mut connected = ada.clone();
            connected.grant = grant;
            let before = called(entrance, "refreshSession");
            connected.grant = connected.refresh().await.on(pds);
            assert_eq!(called(entrance, "refreshSession"), before + 1, "{pds}");
            connected.publish(&connected.post("from the right server")).await.on(pds);
        }
    }
    // An account that moves is found again when its session ends.
    let (grant, _) = sign_in_as(&ada, &handle, None).await.on("at its server");
    assert_eq!(place("https://new.example.com").await.on("moved").status(), 201);
    let mut moved = ada.clone();
    moved.grant = grant;
    moved.grant.refresh_token = None;
    moved.grant = moved.refresh().await.on("moved");
    assert_eq!(moved.grant.extra["pds"], "https://new.example.com");
    let failure = sign_in(&ada, SERVICE).await.map(drop).expect_err("the entryway does not know it");
    assert!(failure.is_revoked(), "{failure}");
}

async fn an_unresolvable_login_is_not_taken_for_a_wrong_password() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let view = "/public.api.bsky.app/xrpc/com.atproto.identity.resolveHandle";
    let host = "/ada.bsky.social/.well-known/atproto-did";
    let directory = format!("/plc.directory/{}", ada.account.network_unique_id);
    let away = json!({ "error": "NotEnoughResources", "message": "later" });
    for lies in [
        vec![(view, 503, away.clone()), (host, 404, json!("User not found"))],
        vec![(directory.as_str(), 503, away.clone())],
    ] {
        world.lie(&lies);
        let before = world.heard().len();
        let failure = sign_in_as(&ada, "ada.bsky.social", None).await.map(drop).expect_err("nobody to ask");
        assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::Upstream(503), false), "{failure}");
        let calls = world.heard().split_off(before);
        assert!(!calls.iter().any(|call| call.path.contains("createSession")), "{calls:?}");
    }
    world.lie(&[]);
    // Bluesky's own service takes e-mail addresses, and judges logins that lead nowhere.
    let (_, only) = sign_in_as(&ada, "ada@sandbox.invalid", None).await.on("by e-mail");
    assert_eq!(only.profile.username, "ada.bsky.social");
    for nobody in ["nobody.bsky.social", "nobody", "127.0.0.1", "did:plc:abcdefghijklmnopqrstuvwx"] {
        let failure = sign_in_as(&ada, nobody, None).await.map(drop).expect_err(nobody);
        assert!(failure.is_revoked(), "{nobody}: {failure}");
    }
}

async fn a_deactivated_account_is_not_healthy() {
    let world = World::start().await;
    let gone = world.named(platforms::get("bluesky").expect("it has an adapter"), "deactivated-one");
    for failure in [
        gone.healthy().await.expect_err("health"),
        gone.identities().await.map(drop).expect_err("connecting"),
    ] {
        assert_eq!((failure.code, failure.is_revoked()), (rejected(403), false), "{failure}");
        assert!(failure.message.contains("deactivated"), "{failure}");
    }
    let failure = gone.publish(&gone.post("too late")).await.expect_err("posting");
    assert_eq!(failure.code, rejected(401), "{failure}");
}

async fn an_account_unknown_to_the_public_view_is_imported_from_its_server() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let view = "/public.api.bsky.app/xrpc/app.bsky.feed.getAuthorFeed";
    let first = ada.publish(&ada.post("words")).await.on("words");
    let second = ada.publish(&ada.post_with("a picture", MediaKind::Image, 1)).await.on("a picture");
    ada.publish(&ada.reply("a reply", std::slice::from_ref(&first))).await.on("a reply");
    // More posts than fit on a page.
    for number in 0..100 {
        ada.publish(&ada.post(&format!("number {number}"))).await.on("one of many");
    }
    let (history, keep) = (ada.platform.history.expect("it has one"), Kept::default());
    let unknown = json!({ "error": "InvalidRequest", "message": "Profile not found" });
    world.lie(&[(view, 400, unknown)]);
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = history.page(&ada.session(&keep), cursor.as_deref()).await.on("a page");
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let old: Vec<_> = found.iter().rev().take(2).map(|post| (&post.id, post.text.as_str())).collect();
    assert_eq!((found.len(), old), (102, vec![(&first, "words"), (&second, "a picture")]));
    let picture = &found[100].media[0];
    assert!(picture.starts_with(&format!("{SERVICE}/xrpc/com.atproto.sync.getBlob?did=did:")), "{picture}");
    // A view that is away is asked again.
    world.lie(&[(view, 503, json!({ "error": "NotEnoughResources", "message": "later" }))]);
    let failure = history.page(&ada.session(&keep), None).await.map(drop).expect_err("away");
    assert_eq!(failure.code, ErrorCode::Upstream(503), "{failure}");
}

async fn an_identity_is_verified_by_its_document_and_handle() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let did = ada.account.network_unique_id.as_str();
    let directory = format!("/plc.directory/{did}");
    let (view, host) = (
        "/public.api.bsky.app/xrpc/com.atproto.identity.resolveHandle",
        "/ada.bsky.social/.well-known/atproto-did",
    );
    let says = |pds: &str, handles: &[&str]| (directory.as_str(), 200, document(did, pds, handles));
    let other = "did:plc:abcdefghijklmnopqrstuvwx";
    let unknown = (view, 400, json!({ "error": "InvalidRequest", "message": "Unable to resolve handle" }));
    let broken = (view, 503, json!({ "error": "NotEnoughResources", "message": "later" }));
    let missing = (host, 404, json!("User not found"));
    for (what, lies, expected) in [
        ("nothing wrong", vec![says(SERVICE, &["ada.bsky.social"])], None),
        ("unknown", vec![(&*directory, 404, json!({ "message": "not registered" }))], Some(rejected(422))),
        ("ended", vec![(&*directory, 410, json!({ "message": "tombstone" }))], Some(rejected(422))),
        ("away", vec![(&*directory, 503, json!({}))], Some(ErrorCode::Upstream(503))),
        (
            "another's",
            vec![(&*directory, 200, document(other, SERVICE, &["ada.bsky.social"]))],
            Some(rejected(422)),
        ),
        ("no server", vec![(&*directory, 200, json!({ "id": did }))], Some(rejected(422))),
        ("an inner server", vec![says("https://10.0.0.1", &["ada.bsky.social"])], Some(rejected(422))),
        ("no https", vec![says("http://bsky.social", &["ada.bsky.social"])], Some(rejected(422))),
        ("no handle", vec![says(SERVICE, &[])], Some(rejected(422))),
        ("no name", vec![says(SERVICE, &["127.0.0.1"])], Some(rejected(422))),
        (
            "another handle first",
            vec![says(SERVICE, &["eve.example", "ada.bsky.social"])],
            Some(rejected(422)),
        ),
        (
            "somebody's handle",
            vec![(view, 200, json!({ "did": other })), (host, 200, json!(other))],
            Some(rejected(422)),
        ),
        ("nobody's handle", vec![unknown.clone(), missing.clone()], Some(rejected(422))),
        ("its host says so", vec![unknown, (host, 200, json!(format!("{did}\n")))], None),
        ("its name says so", vec![missing.clone()], None),
        ("nobody to ask", vec![broken, missing], Some(ErrorCode::Upstream(503))),
    ] {
        world.lie(&lies);
        let ended = sign_in(&ada, SERVICE).await.map(drop).map_err(|failure| failure.code);
        assert_eq!(ended.err(), expected, "{what}");
    }
}

async fn a_did_web_identity_is_resolved_at_its_host() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let of = |did: &str| {
        let session = json!({ "did": did, "handle": "eve.example", "accessJwt": "a", "refreshJwt": "r" });
        vec![
            ("/pds.eve.example/xrpc/com.atproto.server.createSession", 200, session.clone()),
            ("/pds.eve.example/xrpc/com.atproto.server.getSession", 200, session),
            (
                "/pds.eve.example/xrpc/app.bsky.actor.getProfile",
                400,
                json!({ "error": "InvalidRequest", "message": "Profile not found" }),
            ),
        ]
    };
    let (did, service) = ("did:web:eve.example", "https://pds.eve.example");
    let mut lies = of(did);
    lies.extend([
        ("/eve.example/.well-known/did.json", 200, document(did, service, &["eve.example"])),
        ("/eve.example/.well-known/atproto-did", 200, json!(did)),
    ]);
    world.lie(&lies);
    let (_, only) = sign_in(&ada, service).await.on(did);
    assert_eq!(
        (only.profile.network_unique_id.as_str(), only.profile.username.as_str()),
        (did, "eve.example")
    );

    for did in [
        "did:web:localhost",
        "did:web:127.0.0.1",
        "did:web:eve.example%3A8443",
        "did:web:eve.example/a",
        "did:plc:../../x",
        "did:key:zQ3shZc2QzApp2oymGvQbzP8eKheVshBHbU4ZYjeXqwSKEn6N",
    ] {
        world.lie(&of(did));
        let before = world.heard().len();
        let failure = sign_in(&ada, service).await.map(drop).expect_err(did);
        assert_eq!(failure.code, rejected(422), "{did}: {failure}");
        assert_eq!(world.heard().len(), before + 1, "{did}: a request followed the login");
    }
}

async fn a_session_for_another_account_is_treated_as_revoked() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    let mut eve = ada.clone();
    eve.account.network_unique_id = "did:plc:abcdefghijklmnopqrstuvwx".into();
    let failure = eve.healthy().await.expect_err("not its account");
    assert!(failure.is_revoked(), "{failure}");
    let failure = eve.refresh().await.map(drop).expect_err("not its account");
    assert!(failure.is_revoked(), "{failure}");
    ada.healthy().await.on("its own");
}

fn codes(actor: &Actor, post: &PublishRequest) -> Vec<String> {
    let content = check::ContainerContent { text: &post.text, media: &post.media };
    let issues = check::check(actor.platform, &[content], &post.settings);
    issues.into_iter().map(|issue| issue.code).collect()
}

async fn a_link_card_has_the_posts_image() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let link = json!({ "link": { "url": "https://example.com/a", "title": "A page" } });
    for (count, pictures) in [(0, 0), (1, 1)] {
        let mut post = ada.post_with(&format!("a card with {count}"), MediaKind::Image, count);
        post.settings = link.clone();
        assert_eq!(codes(&ada, &post), Vec::<String>::new());
        let page = ada.shown(&ada.publish(&post).await.on("publish")).await;
        assert!(page.contains("Link: https://example.com/a"), "{page}");
        assert_eq!(page.matches("<img src=\"/_media/").count(), pictures, "{page}");
        // A card has none.
        for picture in &mut post.media {
            picture.alt_text = Some("a page".into());
        }
        assert_eq!(codes(&ada, &post), vec!["alt_text_not_supported"; pictures]);
    }
    for (kind, count, size, code) in [
        (MediaKind::Image, 2, None, "settings_conflict"),
        (MediaKind::Video, 1, None, "settings_conflict"),
        (MediaKind::Image, 1, Some(1_000_001), "media_fitted"),
    ] {
        let mut post = ada.post_with("too much", kind, count);
        post.settings = link.clone();
        post.media[0].size_bytes = size.unwrap_or(post.media[0].size_bytes);
        assert_eq!(codes(&ada, &post), [code], "{count} {kind}");
        // A picture that can't be fitted.
        post.media[0].width = None;
        assert_eq!(codes(&ada, &post), [code.replace("fitted", "too_large")], "{count} {kind}");
    }
    // The sandbox refuses a picture that was not fitted.
    let mut post = ada.post_with("too large", MediaKind::Image, 1);
    post.settings = link;
    post.media = vec![ada.sized(&post.media[0], 1_000_001)];
    assert_eq!(ada.publish(&post).await.expect_err("too large").code, rejected(400));
}

async fn replies_and_quotes_are_limited_before_the_post_exists() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    for (settings, words) in [
        (json!({ "allow_replies_from": [] }), vec!["Replies: nobody"]),
        (
            json!({ "allow_replies_from": ["mentioned", "followers"], "disable_quotes": true }),
            vec!["Replies: mentionRule, followerRule", "No quotes"],
        ),
        (json!({ "disable_quotes": false }), vec![]),
    ] {
        let before = world.heard().len();
        let mut post = ada.post(&settings.to_string());
        post.settings = settings.clone();
        let id = ada.publish(&post).await.on("publish");
        let page = ada.shown(&id).await;
        for word in ["Replies:", "No quotes"] {
            assert_eq!(page.contains(word), words.iter().any(|all| all.contains(word)), "{settings}: {page}");
        }
        assert!(words.iter().all(|word| page.contains(word)), "{settings}: {page}");
        let written = world.heard().split_off(before);
        let written: Vec<_> = written.iter().filter_map(|call| call.body["collection"].as_str()).collect();
        assert_eq!(written.iter().position(|name| *name == "app.bsky.feed.post"), Some(words.len()));
        // A reply has the settings of its thread's first post only.
        let mut reply = ada.reply("a reply", &[id]);
        reply.settings = settings;
        let id = ada.publish(&reply).await.on("reply");
        assert!(!ada.shown(&id).await.contains("No quotes"));
    }
}

/// The service got a token of its own, never the session. Bodies of a public client's fixtures, October 2026.
/// The service makes its own file of each video. What is longer than in Bluesky's own app is for the service to judge.
async fn videos_of_phones_and_of_ten_minutes_are_published() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let mut phone = ada.post_with("of a phone", MediaKind::Video, 1);
    phone.media[0].mime = "video/quicktime".into();
    phone.media[0].filename = "film.mov".into();
    ada.rewrite(&phone.media[0], |bytes| [&bytes[..8], &b"qt  "[..], &bytes[12..]].concat());
    assert_eq!(codes(&ada, &phone), [""; 0]);
    ada.publish(&phone).await.on("publish");
    let sent: Vec<_> = world.heard().into_iter().filter(|call| call.path.ends_with("uploadVideo")).collect();
    assert_eq!(sent.iter().map(|call| &*call.mime).collect::<Vec<_>>(), ["video/quicktime"]);

    for (seconds, told) in [(240, None), (600, None), (601, Some(check::Severity::Warning))] {
        let mut post = ada.post_with(&format!("{seconds} s"), MediaKind::Video, 1);
        post.media[0] = ada.lasting(&post.media[0], seconds);
        let content = check::ContainerContent { text: &post.text, media: &post.media };
        let issues = check::check(ada.platform, &[content], &post.settings);
        let found: Vec<_> = issues.iter().map(|issue| (issue.severity, issue.code.as_str())).collect();
        assert_eq!(found, Vec::from_iter(told.map(|severity| (severity, "media_duration"))), "{seconds}");
        ada.publish(&post).await.on("publish");
    }
}

async fn a_refusal_of_the_video_service_does_not_end_the_session() {
    let world = World::tapped().await;
    let actor = actor(&world, "bluesky");
    let post = actor.post_with("moving", MediaKind::Video, 1);
    let service = "/video.bsky.app/xrpc/app.bsky.video";
    let words = "Confirm your email address to upload videos";
    for (call, answer) in [
        ("getUploadLimits", json!({ "canUpload": false, "error": "unconfirmed_email", "message": words })),
        ("uploadVideo", json!({ "did": "", "error": "invalid token: invalid token aud", "message": words })),
    ] {
        world.lie(&[(&format!("{service}.{call}"), 401, answer)]);
        let failure = actor.prepare(&post).await.expect_err("refused");
        assert_eq!(failure.code, ErrorCode::Rejected(401), "{call}: {failure}");
        assert!(failure.message.contains(words), "{call}: {failure}");
    }
    world.lie(&[]);
    for (call, name) in
        [("getUploadLimits", "bluesky.unconfirmed-email"), ("uploadVideo", "bluesky.invalid-token")]
    {
        actor.set(&json!({ "recorded": { format!("{service}.{call}"): name } })).await;
        let failure = actor.prepare(&post).await.expect_err("refused");
        assert_eq!(failure.code, ErrorCode::Rejected(401), "{call}: {failure}");
    }
    actor.set(&json!({ "recorded": {} })).await;
    actor.publish(&post).await.on("publish");
}

async fn a_gif_is_published_as_a_video() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    let mut post = ada.post_with("it moves", MediaKind::Gif, 1);
    post.media[0].alt_text = Some("a circle".into());
    let page = ada.shown(&ada.publish(&post).await.on("publish")).await;
    assert!(page.contains("Shown as a GIF") && page.contains("a circle"), "{page}");
}

async fn the_sandbox_shows_a_post_in_its_thread() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(ada.publish(&ada.reply(&format!("part {number}"), &ids)).await.on("publish"));
    }
    let ask = async |uri: &str, more: &str| {
        let method = ada.sandbox("public.api.bsky.app") + "/xrpc/app.bsky.feed.getPostThread";
        ada.ask("GET", &format!("{method}?uri={uri}{more}")).await["thread"].clone()
    };
    let thread = ask(&ids[2], "").await;
    for (pointer, id) in [
        ("/post/uri", &ids[2]),
        ("/parent/post/uri", &ids[1]),
        ("/parent/parent/post/uri", &ids[0]),
        ("/replies/0/post/uri", &ids[3]),
    ] {
        assert_eq!(thread.pointer(pointer), Some(&json!(id)), "{pointer}: {thread}");
    }
    let thread = ask(&ids[1], "&depth=1&parentHeight=0").await;
    assert_eq!(
        (&thread["parent"], &thread["replies"][0]["replies"]),
        (&Value::Null, &Value::Null),
        "{thread}"
    );
    assert_eq!(ask(&ada.unknown(&ids), "").await, Value::Null);
}

const SUBRIP: &str = "1\n00:00:01,000 --> 00:00:02,500\nTom & <I>Jerry</I> 🎬\n";
const WEBVTT: &str = "WEBVTT\n\n00:01.000 --> 00:02.500\nOlá\n";

/// Returns the records of posts that the sandbox got, without those of gates.
fn records(world: &World) -> Vec<Value> {
    let heard = world.heard().into_iter();
    heard
        .filter(|call| call.body["collection"] == "app.bsky.feed.post")
        .map(|call| call.body["record"].clone())
        .collect()
}

async fn captions_are_published_with_their_video() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let mut post = ada.post_with("with captions", MediaKind::Video, 1);
    post.settings = json!({
        "captions": [{ "language": "EN", "content": SUBRIP }, { "language": "pt-BR", "content": WEBVTT }],
        "languages": ["EN-gb"],
    });
    assert_eq!(codes(&ada, &post), Vec::<String>::new());
    let page = ada.shown(&ada.publish(&post).await.on("publish")).await;
    for line in ["Captions: en<", "Captions: pt-BR<"] {
        assert_eq!(page.matches(&arrived(line)).count(), 1, "{line} {page}");
    }
    let converted = "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500\nTom &amp; <i>Jerry</i> 🎬\n";
    let heard = world.heard();
    let files: Vec<_> = heard.iter().filter(|call| call.mime == "text/vtt").map(|call| &*call.text).collect();
    assert_eq!(files, [converted, WEBVTT]);
    let record = &records(&world)[0];
    assert_eq!(record["embed"]["captions"][0]["file"]["mimeType"], "text/vtt", "{record}");
    assert_eq!(record["langs"], json!(["en-gb"]));

    // The author changes them between two attempts.
    let mut post = ada.post_with("changed captions", MediaKind::Video, 1);
    post.settings = json!({ "captions": [{ "language": "en", "content": SUBRIP }] });
    let at = ada.prepare(&post).await.on("prepare");
    post.settings = json!({ "captions": [{ "language": "fr", "content": SUBRIP }] });
    let at = ada.prepare_from(&post, at).await.on("prepare again");
    ada.commit(&post, &at).await.on("commit");
    let captions = records(&world).pop().expect("a record")["embed"]["captions"].clone();
    assert_eq!((captions[0]["lang"].as_str(), captions.as_array().map(Vec::len)), (Some("fr"), Some(1)));

    // Only a video has captions: nothing is uploaded for a picture, an animation or a text, and the author is told.
    for kind in [MediaKind::Image, MediaKind::Gif] {
        let mut other = ada.post_with("no video", kind, 1);
        other.settings = post.settings.clone();
        assert_eq!(codes(&ada, &other), ["setting_not_used"], "{kind}");
        ada.publish(&other).await.on("publish");
    }
    let vtt = world.heard().iter().filter(|call| call.mime == "text/vtt").count();
    assert_eq!(vtt, 4);
}

async fn captions_that_bluesky_refuses_are_found_before_the_post() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    let mut post = ada.post_with("with captions", MediaKind::Video, 1);
    let lines = |count: usize| format!("{WEBVTT}{}", "a".repeat(count - WEBVTT.len()));
    let english = json!({ "language": "en", "content": SUBRIP });
    for (captions, refused) in [
        (json!([{ "language": "en", "content": "" }]), true),
        (json!([{ "language": "en", "content": "Hello" }]), true),
        (json!([{ "language": "english", "content": SUBRIP }]), true),
        (json!([english, { "language": "EN", "content": WEBVTT }]), true),
        (json!([{ "language": "en", "content": lines(20_000) }]), false),
        (json!([{ "language": "en", "content": lines(20_001) }]), true),
        // It is smaller as SubRip.
        (json!([{ "language": "en", "content": format!("{SUBRIP}{}", "&".repeat(4_000)) }]), true),
        (json!(vec![english.clone(); 21]), true),
    ] {
        post.settings = json!({ "captions": captions });
        let codes = codes(&ada, &post);
        let word = captions.to_string();
        assert_eq!(
            codes.first().is_some_and(|code| code == "setting_invalid"),
            refused,
            "{word:.90} {codes:?}"
        );
        if !refused {
            ada.publish(&post).await.on("publish");
        }
    }
    assert_eq!(ada.accepted().await, 1);
}

async fn a_worker_crash_after_any_call_leaves_one_track_of_each_language() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    for call in 1.. {
        let mut post = ada.post_with(&format!("the {call}. life"), MediaKind::Video, 1);
        post.settings = json!({
            "captions": [{ "language": "en", "content": SUBRIP }, { "language": "pt", "content": WEBVTT }],
        });
        let (located, has_died) = world.publish_mortally(&ada, &post, call).await.on("publish");
        let Located::Live(found) = located else { panic!("{located:?} after call {call}") };
        let page = ada.shown(&found.into_id()).await;
        let counts = ["Captions: en<", "Captions: pt<"].map(|line| page.matches(&arrived(line)).count());
        assert_eq!(counts, [1, 1], "after call {call}");
        if !has_died {
            assert!(call > 7, "there were {call} calls");
            break;
        }
    }
}

async fn shortened_links_lead_to_the_whole_address() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let (long, short) =
        ("https://example.com/a/very/long/path?with=a&query=🎉", "example.com/a/very/long/...");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut post = ada.reply(&format!("🎉 {long} #tag, and ({long})"), &ids);
        post.settings = json!({ "shorten_links": true });
        assert_eq!(codes(&ada, &post), Vec::<String>::new());
        // It is found by what is shown.
        let at = ada.prepare(&post).await.on("prepare");
        ada.commit(&post, &at).await.on("commit");
        let Located::Live(found) = ada.settle(&post, &at).await.on("settle") else { panic!("it is lost") };
        ids.push(found.into_id());
        let record = records(&world).pop().expect("a record");
        let text = record["text"].as_str().expect("a text");
        assert_eq!(text, format!("🎉 {short} #tag, and ({short})"));
        let facets = record["facets"].as_array().expect("facets");
        let parts: Vec<_> = facets
            .iter()
            .map(|facet| {
                let edge = |name: &str| facet["index"][name].as_u64().expect("an edge") as usize;
                (&text[edge("byteStart")..edge("byteEnd")], facet["features"][0]["uri"].as_str())
            })
            .collect();
        assert_eq!(parts, [(short, Some(long)), ("#tag", None), (short, Some(long))]);
    }
    let post = ada.post(&format!("as it is {long}"));
    ada.publish(&post).await.on("publish");
    assert_eq!(records(&world).pop().expect("a record")["text"], post.text);
}

async fn a_shortened_text_is_measured_as_it_is_shown() {
    let world = World::start().await;
    let ada = actor(&world, "bluesky");
    let link = format!("https://example.com/{}", "a".repeat(280));
    // A shown link has 27 graphemes, and a space before it.
    for (letters, is_short, code) in
        [(272, false, Some("text_too_long")), (272, true, None), (273, true, Some("text_too_long"))]
    {
        let mut post = ada.post(&format!("{} {link}", "é".repeat(letters)));
        post.settings = json!({ "shorten_links": is_short });
        assert_eq!(codes(&ada, &post), Vec::from_iter(code.map(str::to_owned)), "{letters} {is_short}");
        let measured = ada.platform.text_length("", 0, &post.text, &post.settings);
        assert_eq!(measured.is_some_and(|length| length <= 300), code.is_none(), "{measured:?}");
        let ended = ada.publish(&post).await;
        assert_eq!(ended.is_ok(), code.is_none(), "{ended:?}");
    }
}

/// Returns how often each method of uploads was called.
fn uploads(world: &World) -> [usize; 4] {
    let heard = world.heard();
    ["startUpload", "uploadPart", "finishUpload", "uploadVideo"].map(|name| {
        let path = format!("/video.bsky.app/xrpc/app.bsky.video.{name}");
        heard.iter().filter(|call| call.path == path).count()
    })
}

async fn a_large_video_is_uploaded_in_parts() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let large = || {
        let mut post = ada.post_with("a large video", MediaKind::Video, 1);
        post.media[0] = ada.sized(&post.media[0], (16 << 20) + 1);
        post
    };
    ada.publish(&ada.post_with("a small video", MediaKind::Video, 1)).await.on("publish");
    assert_eq!(uploads(&world), [0, 0, 0, 1]);
    ada.publish(&large()).await.on("publish");
    assert_eq!(uploads(&world), [1, 3, 1, 1]);
    let heard = world.heard();
    let parts = heard.iter().filter(|call| call.path.ends_with("uploadPart"));
    let parts: Vec<_> = parts.map(|call| (&*call.mime, call.answer["sizeBytes"].as_u64())).collect();
    let mime = "application/octet-stream";
    assert_eq!(parts, [(mime, Some(8 << 20)), (mime, Some(8 << 20)), (mime, Some(1))]);

    // A service without it, one that is overloaded, and one whose plan is none.
    let start = "/video.bsky.app/xrpc/app.bsky.video.startUpload";
    let plan = json!({
        "jobId": "j", "partSizeBytes": 1 << 20, "partCount": 3, "expiresAt": "2100-01-02T03:04:05Z",
    });
    for (count, (status, answer)) in [
        (501, json!({ "error": "MethodNotImplemented", "message": "Method Not Implemented" })),
        (503, json!({ "error": "ServiceOverloaded", "message": "draining" })),
        (200, plan),
    ]
    .into_iter()
    .enumerate()
    {
        world.lie(&[(start, status, answer)]);
        ada.publish(&large()).await.on("publish");
        assert_eq!(uploads(&world), [2 + count, 3, 1, 2 + count], "{status}");
    }
}

async fn an_upload_in_parts_that_is_lost_begins_again() {
    let world = World::tapped().await;
    let ada = actor(&world, "bluesky");
    let mut post = ada.post_with("a large video", MediaKind::Video, 1);
    post.media[0] = ada.sized(&post.media[0], (16 << 20) + 1);
    let service = "/video.bsky.app/xrpc/app.bsky.video";
    for (call, error, counts) in [
        ("uploadPart", "UploadExpired", [1, 1, 0, 0]),
        ("uploadPart", "UploadNotFound", [2, 2, 0, 0]),
        ("finishUpload", "MissingParts", [3, 5, 1, 0]),
    ] {
        world.lie(&[(&format!("{service}.{call}"), 400, json!({ "error": error, "message": "why" }))]);
        let failure = ada.prepare(&post).await.expect_err(error);
        assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::Upstream(502), false), "{failure}");
        assert_eq!(uploads(&world), counts, "{error}");
    }
    // A finish that is still going on is waited for, and its parts are not sent again.
    let busy = json!({ "error": "UploadNotReady", "message": "A finish is in progress" });
    world.lie(&[(&format!("{service}.finishUpload"), 409, busy)]);
    let keep = Kept::default();
    let publisher = ada.platform.publisher;
    let failure =
        publisher.prepare(&ada.session(&keep), &post, Checkpoint::default()).await.expect_err("busy");
    assert_eq!(failure.code, ErrorCode::Upstream(503), "{failure}");
    assert_eq!(uploads(&world), [4, 8, 2, 0]);
    world.lie(&[]);
    let at = ada.prepare_from(&post, keep.last().expect("a checkpoint")).await.on("prepare");
    ada.commit(&post, &at).await.on("commit");
    assert_eq!(uploads(&world), [4, 8, 3, 0]);
}

async fn a_worker_crash_after_any_call_uploads_a_large_video() {
    for call in 1.. {
        // A sandbox keeps a limited number of bytes.
        let world = World::tapped().await;
        let ada = actor(&world, "bluesky");
        let mut post = ada.post_with("a large video", MediaKind::Video, 1);
        post.media[0] = ada.sized(&post.media[0], (16 << 20) + 1);
        let (located, has_died) = world.publish_mortally(&ada, &post, call).await.on("publish");
        assert!(matches!(located, Located::Live(_)), "{located:?} after call {call}");
        // A part that was sent before is repeated once at most.
        let counts = uploads(&world);
        assert!((4..=5).contains(&(counts[0] + counts[1])) && counts[3] == 0, "{counts:?} after call {call}");
        if !has_died {
            assert!(call > 11, "there were {call} calls");
            break;
        }
    }
}

async fn a_session_ends_on_listed_words_alone() {
    let world = World::tapped().await;
    let mut ada = actor(&world, "bluesky");
    let server = ada.grant.extra["pds"].as_str().unwrap_or(SERVICE).trim_start_matches("https://").to_owned();
    let paths =
        |call: &str| ["bsky.social", &server].map(|host| format!("/{host}/xrpc/com.atproto.server.{call}"));
    let page = json!("<html><head><title>403 Forbidden</title></head></html>");
    let refusal = |word: &str| json!({ "error": word, "message": "no" });
    let (refresh, create) = (paths("refreshSession"), paths("createSession"));
    let gone = refusal("ExpiredToken");
    for (what, status, answer, code, is_revoked) in [
        ("a page", 403, page.clone(), ErrorCode::NetworkError, false),
        ("another word", 401, refusal("Unauthorized"), ErrorCode::NetworkError, false),
        ("a takedown", 401, refusal("AccountTakedown"), ErrorCode::Rejected(401), false),
        ("a malformed login", 400, refusal("InvalidRequest"), ErrorCode::Rejected(400), false),
        ("a wrong password", 401, refusal("AuthenticationRequired"), ErrorCode::TokenExpired, true),
        ("a second factor", 401, refusal("AuthFactorTokenRequired"), ErrorCode::TokenExpired, true),
    ] {
        let ended = refresh.iter().map(|path| (path.as_str(), 400, gone.clone()));
        let login = create.iter().map(|path| (path.as_str(), status, answer.clone()));
        world.lie(&ended.chain(login).collect::<Vec<_>>());
        let failure = ada.refresh().await.map(drop).expect_err(what);
        assert_eq!((failure.code, failure.is_revoked()), (code, is_revoked), "{what}: {failure}");
    }

    // The directory's edge does not know the account's server, and the login goes nowhere else.
    ada.grant.extra["service"] = json!("");
    let directory = format!("/plc.directory/{}", ada.account.network_unique_id);
    let mut lies: Vec<_> = refresh.iter().map(|path| (path.as_str(), 400, gone.clone())).collect();
    lies.push((directory.as_str(), 404, page.clone()));
    world.lie(&lies);
    let before = world.heard().len();
    let failure = ada.refresh().await.map(drop).expect_err("no directory");
    assert_eq!((failure.code, failure.is_revoked()), (ErrorCode::NetworkError, false), "{failure}");
    let logins = world.heard().into_iter().skip(before).filter(|call| call.path.contains("createSession"));
    assert_eq!(logins.count(), 0);

    // The password is the rest of the grant; without it, the refresh token is all.
    ada.grant.extra["app_password"] = json!("");
    for (what, status, answer, code, is_revoked) in [
        ("a page", 400, page, ErrorCode::NetworkError, false),
        ("another word", 400, refusal("InvalidRequest"), ErrorCode::Rejected(400), false),
        ("no authorization", 401, refusal("AuthMissing"), ErrorCode::NetworkError, false),
        ("the end", 400, gone, ErrorCode::TokenExpired, true),
        ("a token of another server", 400, refusal("InvalidToken"), ErrorCode::TokenExpired, true),
    ] {
        let lies = refresh.iter().map(|path| (path.as_str(), status, answer.clone()));
        world.lie(&lies.collect::<Vec<_>>());
        let failure = ada.refresh().await.map(drop).expect_err(what);
        assert_eq!((failure.code, failure.is_revoked()), (code, is_revoked), "{what}: {failure}");
    }
    world.lie(&[]);
    ada.grant = ada.refresh().await.on("refresh");
    ada.publish(&ada.post("still signed in")).await.on("publish");
}
