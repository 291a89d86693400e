//! Bluesky's own server (PDS), to which the sandbox is compared: accounts are connected, posts are published, found
//! again and deleted, and sessions are renewed, as in production.
//!
//! In test mode the server, the directory of identities and the hosts of handles are in the place of the sandbox, under
//! their real names. In live mode the server is reached by TLS, as an operator's own server is.

use crate::{
    api::{fail, key, request},
    imports, world,
};
use ::store::{accounts::grants, upkeep::vault};
use domain::{Mode, scope::Scope};
use platforms::{Account, AccountProfile, Grant, Session, Transport};
use publishing::{NoCheckpoints, NoMedia};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tests::{Pds, PdsAccount, World, now, samples::painting};
use url::Url;

const CONNECT: &str = "/social-accounts/bluesky/connect";

/// Starts a world whose test mode publishes to the server.
async fn world_with(pds: &Pds) -> World {
    world().platforms(&["bluesky"]).set("FANFARE_SANDBOX_URL", pds.internet()).start().await
}

/// Connects an account by its handle alone, and returns its id.
async fn connect(world: &World, name: &str, account: &PdsAccount) -> String {
    let body = json!({ "identifier": format!("{name}.test"), "app_password": account.app_password });
    let (status, connected) = world.call(Method::POST, CONNECT, Some(&body)).await;
    assert_eq!(status, StatusCode::CREATED, "{connected}");
    let expected = (json!(account.did), json!(format!("{name}.test")), json!("active"));
    let found = ["network_unique_id", "username", "status"].map(|field| connected[field].clone());
    assert_eq!(<(Value, Value, Value)>::from(found), expected, "{connected}");
    connected["id"].as_str().unwrap().to_owned()
}

/// Publishes a post, and returns it as it ended.
async fn published(world: &World, body: Value) -> Value {
    let post = world.post(body).await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    ended
}

async fn health(world: &World, id: &str) -> Value {
    world.get(&format!("/social-accounts/{id}/health")).await
}

fn profile(name: &str, account: &PdsAccount) -> AccountProfile {
    AccountProfile {
        network_unique_id: account.did.clone(),
        username: format!("{name}.test"),
        display_name: name.to_owned(),
        account_type: "profile".to_owned(),
        profile_image_url: None,
        profile_url: None,
    }
}

/// Returns the words of a record that are marked, with what they are marked as.
fn marks(record: &Value) -> Vec<(&str, Value)> {
    let text = record["text"].as_str().unwrap();
    let facets = record["facets"].as_array().unwrap().iter().map(|facet| {
        let at = |name: &str| usize::try_from(facet["index"][name].as_u64().unwrap()).unwrap();
        let mut feature = facet["features"][0].clone();
        let kind = feature.as_object_mut().unwrap().remove("$type").unwrap();
        assert!(kind.as_str().unwrap().starts_with("app.bsky.richtext.facet#"), "{facet}");
        (&text[at("byteStart")..at("byteEnd")], feature)
    });
    facets.collect()
}

#[tokio::test]
async fn a_thread_with_facets_and_a_picture_is_published_to_a_real_server() {
    let Some(pds) = Pds::shared().await else { return };
    let world = world_with(pds).await;
    let (ada, bob) = (pds.account("ada").await, pds.account("bob").await);
    let wrong = json!({ "identifier": "ada.test", "app_password": "wrong-wrong" });
    fail(request(&world, Method::POST, CONNECT).json(&wrong), 422, "invalid_credentials").await;
    let id = connect(&world, "ada", &ada).await;
    assert_eq!(health(&world, &id).await["healthy"], true);
    let named = json!({
        "identifier": ada.did, "app_password": ada.app_password, "service": pds.service(),
    });
    let (status, again) = world.call(Method::POST, CONNECT, Some(&named)).await;
    assert_eq!((status, &again["id"]), (StatusCode::OK, &json!(id)), "{again}");

    let picture = painting(12, 8);
    let medium = world.medium("square.png", Some("Coloured squares"), picture.clone()).await;
    let first = "Grüße @bob.test @nobody.test: https://example.com/ä und example.org #größe";
    let ended = published(
        &world,
        json!({
            "containers": [
                { "content": first, "media": [{ "id": medium["id"] }] },
                { "content": "Second" },
                { "content": "Third" },
            ],
            "accounts": [id],
        }),
    )
    .await;
    world.completed(&ended, 1).await;
    let posts = pds.posts(&ada).await;
    let texts: Vec<_> = posts.iter().map(|post| post["value"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [first, "Second", "Third"]);
    assert_eq!(ended["targets"][0]["platform_post_id"], posts[0]["uri"], "{ended:#}");
    assert_eq!(
        marks(&posts[0]["value"]),
        [
            ("@bob.test", json!({ "did": bob.did })),
            ("https://example.com/ä", json!({ "uri": "https://example.com/ä" })),
            ("example.org", json!({ "uri": "https://example.org" })),
            ("#größe", json!({ "tag": "größe" })),
        ]
    );
    let image = &posts[0]["value"]["embed"]["images"][0];
    assert_eq!(
        (&image["alt"], &image["aspectRatio"], &image["image"]["mimeType"], &image["image"]["size"]),
        (
            &json!("Coloured squares"),
            &json!({ "width": 12, "height": 8 }),
            &json!("image/png"),
            &json!(picture.len())
        )
    );
    let reference = |index: usize| json!({ "uri": posts[index]["uri"], "cid": posts[index]["cid"] });
    for (index, parent) in [(1, 0), (2, 1)] {
        let expected = json!({ "root": reference(0), "parent": reference(parent) });
        assert_eq!(posts[index]["value"]["reply"], expected, "{index}");
    }
}

#[tokio::test]
async fn a_real_server_whose_answer_is_lost_has_the_post_once() {
    let Some(pds) = Pds::shared().await else { return };
    let world = world_with(pds).await;
    let account = pds.account("carol").await;
    let id = connect(&world, "carol", &account).await;
    pds.lose("com.atproto.repo.putRecord").await;
    let post = published(&world, json!({ "content": "Heard once", "accounts": [id] })).await;
    assert_eq!(post["targets"][0]["attempts"], 2, "{post:#}");
    let posts = pds.posts(&account).await;
    assert_eq!((posts.len(), &posts[0]["uri"]), (1, &post["targets"][0]["platform_post_id"]));

    // The adapter deletes it, and deletes what is gone.
    let platform = platforms::get("bluesky").unwrap();
    let transport = Transport::sandbox(Url::parse(pds.internet()).unwrap()).unwrap();
    let session = Session {
        platform,
        account: &Account {
            network_unique_id: account.did.clone(),
            username: "carol.test".to_owned(),
            account_type: "profile".to_owned(),
        },
        grant: &grant(&world, &id).await,
        app: None,
        now,
        transport: &transport,
        checkpoints: &NoCheckpoints,
        media: Arc::new(NoMedia),
        skew: Arc::default(),
    };
    for _ in 0..2 {
        let deletion = platform.deletion.unwrap();
        deletion.delete(&session, posts[0]["uri"].as_str().unwrap()).await.unwrap();
        assert_eq!(pds.posts(&account).await, [] as [Value; 0]);
    }
}

/// Returns an account's grant.
async fn grant(world: &World, id: &str) -> Grant {
    let id = id.parse().unwrap();
    let stored = grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
    let opened = world.opener.open(&stored.sealed, &vault::aad_grant(world.owner, id)).unwrap();
    serde_json::from_slice(&opened).unwrap()
}

#[tokio::test]
async fn a_session_at_a_real_server_is_renewed_until_the_account_is_deactivated() {
    let Some(pds) = Pds::shared().await else { return };
    let world = world_with(pds).await;
    let account = pds.account("dora").await;
    let id = connect(&world, "dora", &account).await;
    let mut seen = Vec::new();
    for is_signed_out in [false, true] {
        let before = grant(&world, &id).await;
        if is_signed_out {
            // Only the password creates another session.
            pds.sign_out(before.refresh_token.as_deref().unwrap()).await;
        }
        let stale = Grant { access_token: "no.session.token".to_owned(), ..before.clone() };
        assert_eq!(world.keep("bluesky", profile("dora", &account), &stale).await, id);
        let found = health(&world, &id).await;
        assert_eq!(found["healthy"], true, "signed out: {is_signed_out}: {found}");
        let after = grant(&world, &id).await;
        seen.extend([before.refresh_token, after.refresh_token]);
        assert!(after.expires_at > Some(now()));
    }
    seen.dedup();
    assert_eq!(seen.len(), 3, "each renewal has another refresh token");
    published(&world, json!({ "content": "Signed in again", "accounts": [id] })).await;

    pds.act(&account, "com.atproto.server.deactivateAccount", &json!({})).await;
    let found = health(&world, &id).await;
    assert_eq!(found["healthy"], false, "{found}");
    assert!(found["detail"].as_str().unwrap().contains("deactivated"), "{found}");
    let post = world.post(json!({ "content": "Too late", "accounts": [id] })).await;
    assert_eq!(world.ended(&post).await["status"], "failed");
    // A deactivated account has a session, but can't be connected.
    let login = json!({ "identifier": account.did, "app_password": account.app_password });
    let (status, problem) = world.call(Method::POST, CONNECT, Some(&login)).await;
    assert!(status.is_client_error() && problem.to_string().contains("deactivated"), "{status} {problem}");
}

#[tokio::test]
async fn earlier_posts_at_a_real_server_are_imported() {
    let Some(pds) = Pds::shared().await else { return };
    let world = world_with(pds).await;
    let account = pds.account("erin").await;
    let write = async |text: &str, reply: Option<&Value>| {
        let at = now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let mut record = json!({ "$type": "app.bsky.feed.post", "text": text, "createdAt": at });
        if let Some(post) = reply {
            let post = json!({ "uri": post["uri"], "cid": post["cid"] });
            record["reply"] = json!({ "root": post, "parent": post });
        }
        let body = json!({ "repo": account.did, "collection": "app.bsky.feed.post", "record": record });
        pds.act(&account, "com.atproto.repo.createRecord", &body).await
    };
    let first = write("From another client", None).await;
    write("A reply", Some(&first)).await;
    write("The newest", None).await;

    let id = connect(&world, "erin", &account).await;
    let import = imports::begin(&world, &id, json!({})).await;
    let done = imports::ended(&world, &import).await;
    assert_eq!((&done["status"], &done["imported_count"]), (&json!("completed"), &json!(2)), "{done}");
    let posts = imports::imported(&world, &id).await;
    let texts: Vec<_> = posts.iter().map(|post| post["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["The newest", "From another client"]);
    assert_eq!(posts[1]["platform_post_id"], first["uri"]);
}

#[tokio::test]
async fn a_server_on_this_machine_is_reached_only_in_a_range_that_the_operator_added() {
    let Some(pds) = Pds::shared().await else { return };
    let closed = world()
        .platforms(&["bluesky"])
        .set("FANFARE_MODES", "live")
        .set("FANFARE_EGRESS_ALLOW", "")
        .set("SSL_CERT_FILE", pds.certificate());
    let mut world = closed.start().await;
    world.owner.mode = Mode::Live;
    world.key = key(&world, world.owner, &[Scope::All]).await;
    let account = pds.account("frank").await;
    let session = pds.sign_in(&account).await;
    let text = |name: &str| session[name].as_str().unwrap().to_owned();
    let grant = Grant {
        access_token: text("accessJwt"),
        refresh_token: Some(text("refreshJwt")),
        expires_at: None,
        ends_at: None,
        scopes: Vec::new(),
        extra: json!({ "service": pds.service(), "pds": pds.service() }),
    };
    let id = world.keep("bluesky", profile("frank", &account), &grant).await;
    let found = health(&world, &id).await;
    assert_eq!(
        (&found["healthy"], &found["error_code"]),
        (&json!(false), &json!("network_error")),
        "{found}"
    );
    assert!(found["detail"].as_str().unwrap().contains("no address that may be connected to"), "{found}");
    assert_eq!(pds.calls().await, 0);

    assert!(world.stop("all").await);
    world.set("FANFARE_EGRESS_ALLOW", "127.0.0.0/8");
    world.run("all").await;
    let found = health(&world, &id).await;
    assert_eq!(found["healthy"], true, "{found}");
    let post = published(&world, json!({ "content": "From next door", "accounts": [id] })).await;
    let posts = pds.posts(&account).await;
    assert_eq!((posts.len(), &posts[0]["uri"]), (1, &post["targets"][0]["platform_post_id"]));
    assert!(pds.calls().await > 0);
}
