//! Connecting accounts, from the views of the platform's user and of the client.

use crate::{
    api::{fail, key, request},
    replay, world,
};
use api::connect::oauth_state::{Key, State};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{DateTime, TimeDelta, Timelike};
use domain::{Owner, StateId, scope::Scope};
use futures::{StreamExt, future::join};
use platforms::{Adapter, Feature};
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use store::{
    accounts::{
        networks, oauth_states,
        pending_logins::{Digest, Pending},
    },
    upkeep::vault,
};
use temporalio_client::{UntypedWorkflow, WorkflowFetchHistoryOptions};
use tests::{
    Receiver, World,
    login::{
        BACK, arrive, begin, browser, consented, decide, joined, location, parameters, reported, several,
        walk,
    },
    wait_until,
};
use url::{Url, form_urlencoded};
use uuid::Uuid;

/// Returns the platforms whose accounts are connected by OAuth.
fn platforms() -> impl Iterator<Item = &'static Adapter> {
    let is_oauth = |platform: &&Adapter| platform.auth.oauth().is_some();
    platforms::all().iter().copied().filter(is_oauth)
}

pub(crate) async fn finalize(world: &World, token: &str, ids: &[&str]) -> (StatusCode, Value) {
    let url = format!("{}/social-accounts/pending/{token}/finalize", world.base);
    let answer = browser().post(url).json(&json!({ "page_ids": ids })).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn pending(world: &World, token: &str) -> (StatusCode, Value) {
    let url = format!("{}/social-accounts/pending/{token}", world.base);
    let answer = browser().get(url).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

async fn account(world: &World, id: &str) -> Value {
    world.get(&format!("/social-accounts/{id}")).await
}

async fn is_healthy(world: &World, id: &str) -> bool {
    world.get(&format!("/social-accounts/{id}/health")).await["healthy"] == true
}

/// Checks the headers and markup of a hosted page, and returns its status and HTML.
async fn page(response: Response) -> (u16, String) {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let html = response.text().await.unwrap();
    assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8", "{html}");
    assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
    assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
    assert_eq!(headers[header::CACHE_CONTROL], "no-store");
    assert!(
        html.contains("<html lang=\"en\">") && html.contains("<h1 ") && !html.contains("<script"),
        "{html}"
    );
    (status, html)
}

#[tokio::test]
async fn a_login_on_each_platform_connects_a_healthy_account() {
    let world = world().approved().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let mut connected = Vec::new();
    for platform in platforms().map(|platform| platform.id) {
        let asked = begin(&world, platform, json!({ "redirect_uri": BACK, "tenant_id": "t/1 & co" })).await;
        let back = decide(&asked, "ada", "allow").await.unwrap();
        assert!(back.as_str().starts_with(&format!("{}/connect/callback?", world.base)), "{back}");
        let response = arrive(&back).await;
        assert_eq!(response.headers()[header::REFERRER_POLICY], "no-referrer");
        let reported = reported(&location(&response));
        assert_eq!((reported["platform"].as_str(), reported["tenant_id"].as_str()), (platform, "t/1 & co"));
        let id = match reported["status"].as_str() {
            "connected" => reported["account_ids"].clone(),
            _ => {
                let (_, offered) = pending(&world, &reported["token"]).await;
                let first = offered["data"][0]["id"].as_str().unwrap();
                let (status, chosen) = finalize(&world, &reported["token"], &[first]).await;
                assert_eq!(status, StatusCode::CREATED, "{platform}: {chosen}");
                chosen["account_ids"][0].as_str().unwrap().to_owned()
            }
        };
        let found = account(&world, &id).await;
        assert_eq!(
            (&found["platform"], &found["status"], &found["tenant_id"], &found["social_network_id"]),
            (&json!(platform), &json!("active"), &json!("t/1 & co"), &Value::Null),
            "{found}"
        );
        assert!(found["username"].as_str().is_some_and(|name| !name.is_empty()), "{found}");
        assert!(!found["scopes"].as_array().unwrap().is_empty(), "{found}");
        // The real platform's page of this name is a stranger's.
        if let Some(profile) = found["profile_url"].as_str() {
            assert!(profile.starts_with(&world.sandbox_url), "{platform}: {profile}");
            let page = world.http.get(profile).send().await.unwrap().text().await.unwrap();
            assert!(page.contains(&format!("<main class=\"wall {platform}\">")), "{platform}: {page}");
        }
        assert!(is_healthy(&world, &id).await, "{platform}");
        connected.push(found);
    }
    assert!(connected.len() >= 8, "only {} platforms were tested", connected.len());
    let events = receiver.events(&vec!["account.connected"; connected.len()]).await;
    assert_eq!(events.len(), connected.len(), "one event per account");
    for account in connected {
        let is_it = |event: &&tests::Delivery| event.json()["data"]["accountId"] == account["id"];
        let event = events.iter().find(is_it).unwrap().json();
        let expected = json!({
            "orgId": world.owner.org, "accountId": account["id"], "network": account["platform"],
            "username": account["username"], "tenantId": "t/1 & co",
        });
        assert_eq!((&event["event"], &event["data"]), (&json!("account.connected"), &expected));
    }
}

#[tokio::test]
async fn reconnecting_keeps_the_id_and_the_owners_settings() {
    let world = world().start().await;
    let id = joined(&world, "x", "ada", json!({ "tenant_id": "t-1" })).await;
    let body = json!({ "name": "Brand" });
    let profile = world.call(Method::POST, "/profiles", Some(&body)).await.1["id"].clone();
    let named = account(&world, &id).await["display_name"].clone();
    let patch = json!({ "profile_id": profile, "display_name": "Ours" });
    let path = format!("/social-accounts/{id}");
    assert_eq!(world.call(Method::PATCH, &path, Some(&patch)).await.0, StatusCode::OK);
    world.revoke_grants("x", "ada").await;
    assert!(!is_healthy(&world, &id).await);

    let again = json!({ "reconnect_account_id": id });
    assert_eq!(joined(&world, "x", "ada", again.clone()).await, id);
    let found = account(&world, &id).await;
    assert_eq!(
        (&found["status"], &found["tenant_id"], &found["profile_id"], &found["display_name"]),
        (&json!("active"), &json!("t-1"), &profile, &json!("Ours")),
        "{found}"
    );
    assert!(is_healthy(&world, &id).await);

    // A disconnected account keeps its display name; one that was never renamed has the platform's name.
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    assert_eq!(joined(&world, "x", "ada", json!({ "tenant_id": "t-1" })).await, id);
    assert_eq!(account(&world, &id).await["display_name"], "Ours");
    let other = joined(&world, "x", "bob", json!({})).await;
    assert_eq!(joined(&world, "x", "bob", json!({ "tenant_id": "t-2" })).await, other);
    let other = account(&world, &other).await;
    assert_eq!(other["tenant_id"], "t-2");
    assert!(named.is_string() && other["display_name"] != "Ours");
}

#[tokio::test]
async fn a_login_without_a_refresh_token_keeps_the_stored_one() {
    let world = world().start().await;
    let id = joined(&world, "x", "ada", json!({})).await;
    let grant = async || -> Value {
        let owner = world.owner;
        let kept =
            store::accounts::grants::get(&world.db, owner, id.parse().unwrap()).await.unwrap().unwrap();
        let aad = vault::aad_grant(owner, id.parse().unwrap());
        serde_json::from_slice(&world.opener.open(&kept.sealed, &aad).unwrap()).unwrap()
    };
    let before = grant().await;
    // The sandbox's YouTube issues one on the first consent only, as Google does without `prompt=consent`.
    assert!(before["refresh_token"].as_str().is_some_and(|token| !token.is_empty()));
    let tube = joined(&world, "youtube", "ada", json!({})).await;
    let kept = async || -> Value {
        let id = tube.parse().unwrap();
        let kept = store::accounts::grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
        let opened = world.opener.open(&kept.sealed, &vault::aad_grant(world.owner, id)).unwrap();
        serde_json::from_slice(&opened).unwrap()
    };
    let first = kept().await;
    let mut asked = begin(&world, "youtube", json!({ "redirect_uri": BACK })).await;
    let without: Vec<_> = asked.query_pairs().into_owned().filter(|(name, _)| name != "prompt").collect();
    asked.query_pairs_mut().clear().extend_pairs(without);
    let back = decide(&asked, "ada", "allow").await.unwrap();
    assert_eq!(reported(&location(&arrive(&back).await))["account_ids"], tube);
    let second = kept().await;
    assert_ne!(second["access_token"], first["access_token"]);
    assert_eq!(second["refresh_token"], first["refresh_token"]);
    world.expire_tokens("youtube", "ada").await;
    assert!(is_healthy(&world, &tube).await, "the token can be refreshed");
}

#[tokio::test]
async fn a_denied_login_redirects_with_access_denied_once() {
    let world = world().start().await;
    for platform in platforms().map(|platform| platform.id) {
        let asked = begin(&world, platform, json!({ "redirect_uri": BACK })).await;
        let back = decide(&asked, "ada", "deny").await.unwrap();
        let first = reported(&location(&arrive(&back).await));
        assert_eq!(
            (first["status"].as_str(), first["error"].as_str(), first["platform"].as_str()),
            ("error", "access_denied", platform),
            "{first:?}"
        );
        assert!(!first["error_description"].is_empty() && !first.contains_key("tenant_id"), "{first:?}");
        let second = reported(&location(&arrive(&back).await));
        assert_eq!((second["status"].as_str(), second["error"].as_str()), ("error", "state_used"));
    }
    assert_eq!(world.get("/social-accounts").await["data"], json!([]));
}

#[tokio::test]
async fn an_expired_forged_or_malformed_callback_connects_nothing() {
    let world = world().start().await;
    let callback = format!("{}/connect/callback", world.base);
    let state = parameters(&begin(&world, "x", json!({ "redirect_uri": BACK })).await)["state"].clone();
    let mut changed = state.clone().into_bytes();
    changed[40] ^= 1;
    let changed = String::from_utf8_lossy(&changed).into_owned();
    for query in [
        "".to_owned(),
        "code=a".into(),
        "code=a&state=".into(),
        "code=a&state=%00".into(),
        format!("code=a&state={changed}"),
        format!("error=access_denied&state={changed}"),
        "state=<script>&error_description=<script>".into(),
    ] {
        let (status, html) = page(browser().get(format!("{callback}?{query}")).send().await.unwrap()).await;
        assert_eq!(status, 400, "{query}");
        assert!(html.contains("not valid") && !html.contains(&changed), "{query}: {html}");
    }
    let posted = browser().post(&callback).send().await.unwrap();
    assert_eq!(
        (posted.status().as_u16(), posted.headers()[header::ALLOW].to_str().unwrap()),
        (405, "GET, HEAD")
    );

    // An unknown code, no code, and errors of the platform that have no code of their own here.
    let come_back = async |query: &str| {
        let state = parameters(&begin(&world, "x", json!({ "redirect_uri": BACK })).await)["state"].clone();
        let url: Url = format!("{callback}?state={state}&{query}").parse().unwrap();
        reported(&location(&arrive(&url).await))
    };
    for (query, error) in [
        ("code=made-up", "exchange_failed"),
        ("", "exchange_failed"),
        ("error=temporarily_unavailable&error_description=Try%0D%0Alater", "exchange_failed"),
        ("error=invalid_scope", "insufficient_scope"),
        ("error=user_cancelled_login&code=a", "access_denied"),
    ] {
        let reported = come_back(query).await;
        assert_eq!(
            (reported["status"].as_str(), reported["error"].as_str()),
            ("error", error),
            "{query}: {reported:?}"
        );
        assert!(reported["error_description"].chars().all(|c| !c.is_control()), "{reported:?}");
    }
    // An expired state with a redirect URI, an expired one without, and one that is not stored.
    let key = Key::derive(&[0; 32]);
    let ended = (tests::now() - TimeDelta::seconds(1)).with_nanosecond(0).unwrap();
    let late = async |redirect_uri: Option<&str>, expires_at: DateTime<chrono::Utc>| {
        let intent = oauth_states::AuthorizationRequest {
            platform: "x".into(),
            network: None,
            callback: callback.clone(),
            redirect_uri: redirect_uri.map(str::to_owned),
            tenant_id: Some("t-1".into()),
            scopes: Vec::new(),
            account: None,
            network_unique_id: None,
            is_forced: false,
            confirm: false,
            begun: oauth_states::Begun::default(),
        };
        let begun = ended - TimeDelta::minutes(15);
        let id = oauth_states::store(&world.db, world.owner, &intent, begun, expires_at).await.unwrap();
        arrive(&of(&key, &callback, world.owner, id, expires_at)).await
    };
    let reported = reported(&location(&late(Some(BACK), ended).await));
    assert_eq!(
        (reported["error"].as_str(), reported["tenant_id"].as_str()),
        ("state_expired", "t-1"),
        "{reported:?}"
    );
    let (status, html) = page(late(None, ended).await).await;
    assert!(status == 400 && html.contains("state_expired"), "{html}");
    let unknown = of(&key, &callback, world.owner, StateId(Uuid::now_v7()), ended + TimeDelta::hours(1));
    assert_eq!(page(arrive(&unknown).await).await.0, 400);
    assert_eq!(world.get("/social-accounts").await["data"], json!([]));
}

/// Returns a callback URL with a state that is sealed with the service's key.
fn of(key: &Key, callback: &str, owner: Owner, id: StateId, expires_at: DateTime<chrono::Utc>) -> Url {
    let state = key.seal(&State { id, owner, expires_at, is_hosted: false });
    format!("{callback}?code=a&state={state}").parse().unwrap()
}

#[tokio::test]
async fn of_two_concurrent_callbacks_one_connects() {
    let world = world().start().await;
    for round in 0..3 {
        let back = consented(&world, "x", "ada").await;
        let (one, other) = join(arrive(&back), arrive(&back)).await;
        let mut ends = [one, other].map(|end| {
            let reported = reported(&location(&end));
            reported.get("error").unwrap_or(&reported["status"]).clone()
        });
        ends.sort();
        assert_eq!(ends, ["connected", "state_used"], "{round}");
    }
    assert_eq!(world.get("/social-accounts").await["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn reconnecting_as_another_account_is_rejected() {
    let world = world().start().await;
    let ada = joined(&world, "x", "ada", json!({})).await;
    let before = account(&world, &ada).await;
    let reported = walk(&world, "x", "bob", json!({ "reconnect_account_id": ada })).await;
    assert_eq!(
        (reported["status"].as_str(), reported["error"].as_str()),
        ("error", "wrong_account"),
        "{reported:?}"
    );
    let expected = json!({ "expected_network_unique_id": before["network_unique_id"] });
    assert_eq!(walk(&world, "x", "bob", expected.clone()).await["error"], "wrong_account");
    assert_eq!(account(&world, &ada).await, before);
    assert_eq!(joined(&world, "x", "ada", expected).await, ada);
    assert_eq!(world.get("/social-accounts").await["data"].as_array().unwrap().len(), 1);

    // Of a login that covers several accounts, the expected one is connected without a selection.
    let token = several(&world, "facebook", "ada,bob").await;
    let (_, offered) = pending(&world, &token).await;
    let second = &offered["data"][1]["id"];
    let body = json!({ "expected_network_unique_id": second });
    let id = joined(&world, "facebook", "ada,bob", body).await;
    assert_eq!(account(&world, &id).await["network_unique_id"], *second);
}

#[tokio::test]
async fn a_login_without_the_publishing_scopes_is_rejected() {
    let world = world().start().await;
    let mut tried = 0;
    for platform in platforms() {
        let Some(scopes) = platform.auth.oauth().map(|oauth| oauth.scopes) else { continue };
        let last = scopes[scopes.len() - 1];
        let missing = platform.missing(Feature::Publishing, &[last.to_owned()]);
        if missing.is_empty() {
            continue;
        }
        // Scopes of the call are judged before the login.
        let path = format!("/social-networks/{}/auth-url", platform.id);
        let asked = request(&world, Method::POST, &path).json(&json!({ "scopes": [last] }));
        let (_, problem) = fail(asked, 422, "unprocessable").await;
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains(missing[0]), "{problem}");

        let app = sandbox::app(platform.id).unwrap();
        let body = json!({
            "platform": platform.id, "client_id": app.client_id, "client_secret": app.client_secret,
            "scopes": [last],
        });
        let (status, network) = world.call(Method::POST, "/social-networks", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{network}");
        let reported = walk(&world, platform.id, "ada", json!({})).await;
        assert_eq!(
            (reported["status"].as_str(), reported["error"].as_str()),
            ("error", "insufficient_scope"),
            "{}: {reported:?}",
            platform.id
        );
        assert!(reported["error_description"].contains(missing[0]), "{reported:?}");
        tried += 1;
    }
    assert!(tried >= 7, "only {tried} platforms were tried");
    assert_eq!(world.get("/social-accounts").await["data"], json!([]));
}

/// An app that may only publish, as an operator has it before further reviews.
#[tokio::test]
async fn an_app_with_few_scopes_connects_publishes_and_names_what_is_off() {
    let world = world().platforms(&["threads", "linkedin"]).start().await;
    for (platform, preset, off) in [
        ("threads", "publishing", json!(["replies", "analytics", "deletion"])),
        ("linkedin", "self_service", json!(["import"])),
    ] {
        let app = sandbox::app(platform).unwrap();
        let body = json!({
            "platform": platform, "client_id": app.client_id, "client_secret": app.client_secret,
            "extra_config": { "preset": preset, "authorize_parameters": { "hint": "a b" } },
        });
        let (status, network) = world.call(Method::POST, "/social-networks", Some(&body)).await;
        assert_eq!(status, StatusCode::CREATED, "{network}");
        let asked = parameters(&begin(&world, platform, json!({})).await);
        assert_eq!(asked["hint"], "a b");
        let expected = platforms::get(platform).unwrap().auth.oauth().unwrap().preset(preset).unwrap().scopes;
        let mut scopes: Vec<_> = asked["scope"].split([' ', ',']).collect();
        assert_eq!(scopes, expected);

        let id = joined(&world, platform, "ada", json!({})).await;
        let found = account(&world, &id).await;
        let mut granted: Vec<_> =
            found["scopes"].as_array().unwrap().iter().map(|scope| scope.as_str().unwrap()).collect();
        granted.sort_unstable();
        scopes.sort_unstable();
        assert_eq!(granted, scopes, "{platform}");
        let features: Vec<_> =
            found["unavailable"].as_array().unwrap().iter().map(|one| &one["feature"]).collect();
        assert_eq!(json!(features), off, "{found}");
        let post = world.post(json!({ "content": "Only publishing", "accounts": [id] })).await;
        assert_eq!(world.ended(&post).await["status"], "published", "{platform}");
        leaves_out_what_is_off(&world, platform, &id, post["id"].as_str().unwrap()).await;
    }
    let full = joined(&world, "x", "ada", json!({})).await;
    assert_eq!(account(&world, &full).await["unavailable"], json!([]));
}

/// X takes longer posts of people who pay; others get the usual limit.
#[tokio::test]
async fn the_length_of_a_post_depends_on_its_account() {
    let world = world().platforms(&["x"]).start().await;
    let short = joined(&world, "x", "ada", json!({})).await;
    let long = joined(&world, "x", "premium_ada", json!({})).await;
    let text = "long text ".repeat(100);
    let max = async |id: &str| {
        world.get(&format!("/social-accounts/{id}/capabilities")).await["text"]["max_length"].clone()
    };
    assert_eq!([max(&short).await, max(&long).await], [json!(280), json!(25_000)]);
    let post = world.post(json!({ "content": text, "accounts": [long] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let both = json!({ "content": text, "accounts": [short, long] });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&both)).await;
    let issues = verdict["issues"].as_array().unwrap().iter();
    let found: Vec<_> = issues.map(|issue| json!([issue["account"], issue["code"]])).collect();
    // The second account published it a moment ago.
    let expected = [json!([short, "text_too_long"]), json!([long, "duplicate_text"])];
    assert_eq!(found, expected, "{verdict}");
    let (status, problem) = world.call(Method::POST, "/posts", Some(&both)).await;
    assert_eq!((status, problem["errors"].as_array().unwrap().len()), (StatusCode::UNPROCESSABLE_ENTITY, 1));
    // An edit is judged by the accounts that the post has.
    let draft = world.post(json!({ "content": "short", "is_draft": true, "accounts": [short] })).await;
    let edited = json!({ "content": text, "is_draft": false });
    let path = format!("/posts/{}", draft["id"].as_str().unwrap());
    assert_eq!(world.call(Method::PATCH, &path, Some(&edited)).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let moved = json!({ "content": text, "is_draft": false, "accounts": [long] });
    assert_eq!(world.call(Method::PATCH, &path, Some(&moved)).await.0, StatusCode::OK);
}

/// No feature that is off is tried: the platform gets no call that it would refuse.
async fn leaves_out_what_is_off(world: &World, platform: &str, id: &str, post: &str) {
    let path = format!("/social-accounts/{id}");
    let can = world.get(&format!("{path}/capabilities")).await;
    // With the scope to post alone, LinkedIn deletes posts and tells their likes and comments.
    let is_linkedin = json!(platform == "linkedin");
    assert_eq!((&can["analytics"], &can["deletion"]), (&is_linkedin, &is_linkedin), "{can}");
    let calls = world.journal(platform, "ada").await.len();
    if platform == "linkedin" {
        assert_eq!(can["history"], json!(false));
        let (status, problem) = world.call(Method::POST, &format!("{path}/imports"), Some(&json!({}))).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            status == StatusCode::UNPROCESSABLE_ENTITY && detail.contains("r_organization_social"),
            "{problem}"
        );
        assert_eq!(world.journal(platform, "ada").await.len(), calls);
        return;
    }
    let figures = world.get(&format!("/posts/{post}/analytics")).await;
    assert_eq!(figures["metrics_by_account"], json!([]), "{figures}");
    assert_eq!(world.journal(platform, "ada").await.len(), calls);
    assert_eq!(can["replies"], "none");
    let body =
        json!({ "containers": [{ "content": "Alone" }, { "content": "A comment" }], "accounts": [id] });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    let [warning] = &verdict["issues"].as_array().unwrap()[..] else { panic!("{verdict}") };
    assert_eq!(
        (&warning["severity"], &warning["code"]),
        (&json!("warning"), &json!("replies_not_supported"))
    );
    let ended = world.ended(&world.post(body).await).await;
    let target = &ended["targets"][0];
    assert_eq!((&target["status"], &target["error_code"]), (&json!("published"), &Value::Null), "{target}");
    for message in [&warning["message"], &target["error_message"]] {
        assert!(
            message.as_str().unwrap().contains("threads_manage_replies, threads_read_replies"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn the_selected_accounts_of_a_login_are_connected() {
    let world = world().approved().start().await;
    let mut tried = 0;
    for platform in platforms().map(|platform| platform.id) {
        let asked = begin(&world, platform, json!({ "redirect_uri": BACK, "tenant_id": "t-1" })).await;
        let back = match decide(&asked, "ada,bob", "allow").await {
            Some(back) => back,
            None => decide(&asked, "ada", "allow").await.unwrap(),
        };
        let reported = reported(&location(&arrive(&back).await));
        if reported["status"] != "pending" {
            continue;
        }
        tried += 1;
        let token = &reported["token"];
        let (status, offered) = pending(&world, token).await;
        assert_eq!((status, &offered["platform"]), (StatusCode::OK, &json!(platform)));
        assert_eq!(offered["tenant_id"], "t-1");
        let left =
            offered["expires_at"].as_str().unwrap().parse::<DateTime<chrono::Utc>>().unwrap() - tests::now();
        assert!(left > TimeDelta::minutes(28) && left <= TimeDelta::minutes(30), "{left}");
        let data = offered["data"].as_array().unwrap();
        assert!(data.len() > 1 && data.iter().all(|one| one["already_connected"] == false), "{offered}");
        let ids: Vec<_> = data.iter().map(|one| one["id"].as_str().unwrap()).collect();

        for (wrong, status, code) in [
            (json!({ "page_ids": [ids[0], "none"] }), 422, "unprocessable"),
            (json!({ "page_ids": [] }), 400, "invalid_request"),
            (json!({}), 400, "invalid_request"),
        ] {
            let url = format!("{}/social-accounts/pending/{token}/finalize", world.base);
            let (_, problem) = fail(browser().post(url).json(&wrong), status, code).await;
            assert_eq!(problem["errors"][0]["path"][0], "page_ids", "{problem}");
        }
        let (status, first) = finalize(&world, token, &[ids[1], ids[0], ids[1]]).await;
        assert_eq!(status, StatusCode::CREATED, "{first}");
        let accounts = first["account_ids"].as_array().unwrap();
        assert_eq!((accounts.len(), first["data"].as_array().unwrap().len()), (2, 2));
        for (account, id) in first["data"].as_array().unwrap().iter().zip([ids[1], ids[0]]) {
            assert_eq!((&account["network_unique_id"], &account["tenant_id"]), (&json!(id), &json!("t-1")));
            assert!(is_healthy(&world, account["id"].as_str().unwrap()).await, "{platform}");
        }
        let (status, second) = finalize(&world, token, &[ids[0], ids[1]]).await;
        assert_eq!((status, &second["account_ids"]), (StatusCode::OK, &first["account_ids"]));
        assert_eq!(finalize(&world, token, &[ids[0]]).await.1["code"], "conflict");
        let (_, offered) = pending(&world, token).await;
        assert!(offered["data"].as_array().unwrap().iter().all(|one| one["already_connected"] == true));

        // Disconnecting one account does not revoke a login that other accounts use.
        let [one, other] = [&accounts[0], &accounts[1]].map(|id| id.as_str().unwrap());
        assert_eq!(
            world.call(Method::DELETE, &format!("/social-accounts/{one}"), None).await.0,
            StatusCode::OK
        );
        replay::replay(&world, "disconnect_account", &format!("disconnect-{one}-1")).await;
        assert!(is_healthy(&world, other).await, "{platform}");
        assert_eq!(finalize(&world, token, &[ids[0], ids[1]]).await.1["data"].as_array().unwrap().len(), 1);
    }
    assert!(tried >= 2, "only {tried} platforms have logins that cover several");
    assert_eq!(pending(&world, "nonsense").await.1["code"], "not_found");
}

#[tokio::test]
async fn a_pending_login_expires() {
    let world = world().start().await;
    let choose = format!("{}/connect/choose", world.base);
    for (token, left, status) in [("in-time", 60, 200), ("too-late", 0, 404)] {
        let offer = domain::AccountProfile {
            network_unique_id: "1".into(),
            username: "ada".into(),
            display_name: "Ada".into(),
            account_type: "page".into(),
            profile_image_url: None,
            profile_url: None,
        };
        let login = Pending {
            owner: world.owner,
            platform: "facebook".into(),
            network: None,
            tenant_id: None,
            redirect_uri: None,
            offers: vec![offer],
            selection: None,
            confirm: false,
            account: None,
            begun: oauth_states::Begun::default(),
            expires_at: tests::now() + TimeDelta::seconds(left),
        };
        let begun = login.expires_at - TimeDelta::minutes(30);
        store::accounts::pending_logins::store(&world.db, Digest::of(token), &login, &[], begun)
            .await
            .unwrap();
        assert_eq!(pending(&world, token).await.0.as_u16(), status, "{token}");
        let page = page(browser().get(format!("{choose}/{token}")).send().await.unwrap()).await;
        assert_eq!(page.0, status, "{token}: {}", page.1);
        // An id that was not offered is rejected before a worker is asked.
        let expected = if status == 200 { "unprocessable" } else { "not_found" };
        assert_eq!(finalize(&world, token, &["2"]).await.1["code"], expected, "{token}");
    }
}

#[tokio::test]
async fn without_a_redirect_uri_the_hosted_pages_are_shown() {
    let world = world().start().await;
    let come_back = async |platform: &str, username: &str, decision: &str| {
        let asked = begin(&world, platform, json!({})).await;
        arrive(&decide(&asked, username, decision).await.unwrap()).await
    };
    let (status, html) = page(come_back("x", "ada", "allow").await).await;
    assert!(status == 200 && html.contains("Your account is connected") && html.contains("ada"), "{html}");
    let (status, html) = page(come_back("x", "ada", "deny").await).await;
    assert!(status == 400 && html.contains("access_denied"), "{html}");

    let choice = location(&come_back("facebook", "ada,bob,eve", "allow").await);
    assert!(choice.as_str().starts_with(&format!("{}/connect/choose/", world.base)), "{choice}");
    let (status, html) = page(arrive(&choice).await).await;
    assert!(status == 200 && html.contains("<form method=\"post\">") && html.contains("<legend>"), "{html}");
    let ids: Vec<_> =
        html.split("name=\"page\" value=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!((ids.len(), html.matches("checked>").count()), (3, 0), "{html}");
    let submit = async |ids: &[&str]| {
        let form: Vec<_> = ids.iter().map(|id| ("page", *id)).collect();
        browser().post(choice.clone()).form(&form).send().await.unwrap()
    };
    for wrong in [&[][..], &["none"]] {
        let (status, html) = page(submit(wrong).await).await;
        assert!((400..=422).contains(&status) && html.contains("role=\"alert\""), "{html}");
    }
    assert_eq!(
        page(browser().post(choice.clone()).body(vec![b'a'; 300 << 10]).send().await.unwrap()).await.0,
        400
    );
    for _ in 0..2 {
        let (status, html) = page(submit(&[ids[0], ids[2]]).await).await;
        assert!(status == 200 && html.contains("Your accounts are connected"), "{html}");
    }
    assert_eq!(page(submit(&[ids[1]]).await).await.0, 409);
    assert!(page(arrive(&choice).await).await.1.contains("Your accounts are connected"));
    assert_eq!(world.get("/social-accounts?platform=facebook").await["data"].as_array().unwrap().len(), 2);

    // A client with a redirect URI may use the hosted page too.
    let token = several(&world, "facebook", "ada,bob").await;
    let url = format!("{}/connect/choose/{token}", world.base);
    let shown = browser().get(&url).send().await.unwrap();
    let policy = shown.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.contains("form-action 'self' http://localhost:3000;"), "{policy}");
    let form = form_urlencoded::Serializer::new(String::new()).append_pair("page", ids[0]).finish();
    let reported = reported(&location(&browser().post(&url).body(form).send().await.unwrap()));
    assert_eq!(
        (reported["status"].as_str(), reported["tenant_id"].as_str()),
        ("connected", "t-1"),
        "{reported:?}"
    );
}

#[tokio::test]
async fn an_app_password_connects_a_bluesky_account() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let grant = world.account("bluesky", "ada.bsky.social").await.grant;
    let password = grant.extra["app_password"].as_str().unwrap();
    let path = "/social-accounts/bluesky/connect";
    let body =
        |identifier: &str| json!({ "identifier": identifier, "app_password": password, "tenant_id": "t-1" });
    let (status, first) = world.call(Method::POST, path, Some(&body("@ada.bsky.social"))).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    assert_eq!(
        (&first["platform"], &first["username"], &first["tenant_id"], &first["status"]),
        (&json!("bluesky"), &json!("ada.bsky.social"), &json!("t-1"), &json!("active")),
        "{first}"
    );
    let (status, second) = world.call(Method::POST, path, Some(&body("ada.bsky.social"))).await;
    assert_eq!((status, &second["id"]), (StatusCode::OK, &first["id"]), "{second}");
    let id = first["id"].as_str().unwrap();
    assert!(is_healthy(&world, id).await);
    // When the session expires, the password creates the next one.
    world.expire_tokens("bluesky", "ada.bsky.social").await;
    assert!(is_healthy(&world, id).await);
    let events = receiver.events(&["account.connected"; 2]).await;
    assert!(events.iter().all(|event| event.json()["data"]["accountId"] == *id), "{events:?}");
    let post = world.post(json!({ "content": "Hello", "accounts": [id] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");

    let wrong = json!({ "identifier": "ada.bsky.social", "app_password": "wrong-wrong" });
    let (_, problem) =
        fail(request(&world, Method::POST, path).json(&wrong), 422, "invalid_credentials").await;
    assert!(!problem.to_string().contains("wrong-wrong"), "{problem}");
    let nobody = json!({ "identifier": "nobody.bsky.social", "app_password": password });
    fail(request(&world, Method::POST, path).json(&nobody), 422, "invalid_credentials").await;
    let elsewhere = |service: &str| {
        let mut body = body("ada.bsky.social");
        body["service"] = json!(service);
        request(&world, Method::POST, path).json(&body)
    };
    let (_, problem) = fail(elsewhere("https://api.x.com"), 422, "unprocessable").await;
    assert_eq!(problem["errors"][0]["path"], json!(["service"]), "{problem}");
    for service in [
        "http://bsky.social",
        "https://127.0.0.1",
        "https://localhost",
        "https://bsky.social/a",
        "bsky.social",
    ] {
        let (_, problem) = fail(elsewhere(service), 400, "invalid_request").await;
        assert_eq!(problem["errors"][0]["path"], json!(["service"]), "{service}: {problem}");
    }
    assert_eq!(elsewhere("https://bsky.social/").send().await.unwrap().status(), StatusCode::OK);
    assert!(is_healthy(&world, id).await);
    let (_, problem) = fail(
        request(&world, Method::POST, path).json(&json!({ "identifier": " @ " })),
        400,
        "invalid_request",
    )
    .await;
    let fields: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|issue| &issue["path"][0]).collect();
    assert_eq!(fields, ["app_password", "identifier"], "{problem}");
    let reader = key(&world, world.owner, &[Scope::AccountsRead]).await;
    let call = world.http.post(format!("{}{path}", world.base)).bearer_auth(reader).json(&body("a"));
    fail(call, 403, "insufficient_scope").await;
}

#[tokio::test]
async fn a_server_that_does_not_host_the_account_connects_nothing() {
    let world = world().start().await;
    let path = "/social-accounts/bluesky/connect";
    let login = async |username: &str, own: Option<&str>, service: &str| {
        let mut wish = json!({ "platform": "bluesky", "username": username });
        if let Some(own) = own {
            wish["service"] = json!(own);
        }
        let made = world.http.post(format!("{}/_accounts", world.sandbox_url)).json(&wish).send().await;
        let made: Value = made.unwrap().json().await.unwrap();
        let password = &made["grant"]["extra"]["app_password"];
        json!({ "identifier": username, "app_password": password, "service": service })
    };
    let body = login("ada.bsky.social", None, "https://bsky.social").await;
    let (_, first) = world.call(Method::POST, path, Some(&body)).await;
    let id = first["id"].as_str().unwrap();
    let grant = async || {
        let id = id.parse().unwrap();
        store::accounts::grants::get(&world.db, world.owner, id).await.unwrap().unwrap().version
    };
    let version = grant().await;

    // A server may claim any account: the account's DID document names its server.
    let mut claimed = login("ada.bsky.social", None, "https://evil.example").await;
    claimed["tenant_id"] = json!("evil");
    let (_, problem) = fail(request(&world, Method::POST, path).json(&claimed), 422, "unprocessable").await;
    assert_eq!(problem["errors"][0]["path"], json!(["service"]), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("https://bsky.social") && detail.contains("https://evil.example"), "{problem}");
    let found = account(&world, id).await;
    assert_eq!((&found["tenant_id"], &found["status"]), (&Value::Null, &json!("active")), "{found}");
    assert_eq!(grant().await, version, "the grant is unchanged");
    assert!(is_healthy(&world, id).await);

    // Without a service, the handle leads to the account's server.
    let own = "https://pds.example.com:8443";
    for service in [json!(own), Value::Null] {
        let mut body = login("eve.example.com", Some(own), own).await;
        body["service"] = service.clone();
        let (status, eve) = world.call(Method::POST, path, Some(&body)).await;
        assert!(status.is_success(), "{service}: {eve}");
        assert_eq!(eve["username"], "eve.example.com");
        assert!(is_healthy(&world, eve["id"].as_str().unwrap()).await, "{service}");
    }
    // Bluesky's own service does not know accounts of other servers.
    let body = login("eve.example.com", Some(own), "https://bsky.social").await;
    fail(request(&world, Method::POST, path).json(&body), 422, "invalid_credentials").await;
    let post = world.post(json!({ "content": "Hello", "accounts": ["eve.example.com"] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
}

#[tokio::test]
async fn an_account_of_another_tenant_is_not_taken_over() {
    let world = world().start().await;
    let of = |tenant: &str| json!({ "tenant_id": tenant });
    let tenant = async |id: &str| account(&world, id).await["tenant_id"].clone();
    let id = joined(&world, "x", "ada", of("t-1")).await;
    let before = account(&world, &id).await;
    let reported = walk(&world, "x", "ada", of("t-2")).await;
    assert_eq!(
        (reported["status"].as_str(), reported["error"].as_str()),
        ("error", "wrong_account"),
        "{reported:?}"
    );
    assert_eq!(account(&world, &id).await, before);
    assert_eq!(joined(&world, "x", "ada", json!({})).await, id);
    assert_eq!(tenant(&id).await, "t-1");
    let wish = json!({ "tenant_id": "t-2", "reconnect_account_id": id });
    assert_eq!(joined(&world, "x", "ada", wish).await, id);
    assert_eq!(tenant(&id).await, "t-2");
    // Once it is disconnected, another tenant can connect it, as an account of its own.
    assert_eq!(world.call(Method::DELETE, &format!("/social-accounts/{id}"), None).await.0, StatusCode::OK);
    let other = joined(&world, "x", "ada", of("t-1")).await;
    assert!(other != id);
    assert_eq!(tenant(&other).await, "t-1");

    // A selection is connected as a whole or not at all.
    let choose = async |tenant: &str| {
        let token = walk(&world, "facebook", "ada,bob", of(tenant)).await["token"].clone();
        let (_, offered) = pending(&world, &token).await;
        let ids = (0..2).map(|index| offered["data"][index]["id"].as_str().unwrap().to_owned());
        (token, ids.collect::<Vec<_>>())
    };
    let (token, ids) = choose("t-1").await;
    assert_eq!(finalize(&world, &token, &[&ids[0]]).await.0, StatusCode::CREATED);
    let (token, ids) = choose("t-2").await;
    let (status, problem) = finalize(&world, &token, &[&ids[1], &ids[0]]).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("unprocessable")), "{problem}");
    assert_eq!(problem["errors"][0]["path"], json!(["page_ids", 1]), "{problem}");
    let url = format!("{}/connect/choose/{token}", world.base);
    let form = [("page", ids[0].as_str())];
    let (status, html) = page(browser().post(&url).form(&form).send().await.unwrap()).await;
    assert!(status == 422 && html.contains("belongs to another tenant"), "{html}");
    let pages = world.get("/social-accounts?platform=facebook").await;
    assert_eq!((pages["data"].as_array().unwrap().len(), &pages["data"][0]["tenant_id"]), (1, &json!("t-1")));
    assert_eq!(finalize(&world, &token, &[&ids[1]]).await.0, StatusCode::CREATED);

    let password = &world.account("bluesky", "ada.bsky.social").await.grant.extra["app_password"];
    let path = "/social-accounts/bluesky/connect";
    let body = |tenant: Option<&str>| json!({ "identifier": "ada.bsky.social", "app_password": password, "tenant_id": tenant });
    assert_eq!(world.call(Method::POST, path, Some(&body(Some("t-1")))).await.0, StatusCode::CREATED);
    let login = request(&world, Method::POST, path).json(&body(Some("t-2")));
    let (_, problem) = fail(login, 422, "unprocessable").await;
    assert_eq!(problem["errors"][0]["path"], json!(["tenant_id"]), "{problem}");
    let (status, again) = world.call(Method::POST, path, Some(&body(None))).await;
    assert_eq!((status, &again["tenant_id"]), (StatusCode::OK, &json!("t-1")), "{again}");
}

#[tokio::test]
async fn an_organizations_own_app_authorizes_exchanges_and_refreshes() {
    let world = world().start().await;
    let app = sandbox::app("x").unwrap();
    let register = async |secret: &str| {
        let body = json!({ "platform": "x", "client_id": app.client_id, "client_secret": secret });
        world.call(Method::POST, "/social-networks", Some(&body)).await.1["id"].clone()
    };
    let network = register(app.client_secret.as_deref().unwrap()).await;
    let id = joined(&world, "x", "ada", json!({})).await;
    assert_eq!(account(&world, &id).await["social_network_id"], network);
    world.expire_tokens("x", "ada").await;
    assert!(is_healthy(&world, &id).await, "the refresh uses the organization's own app");

    // With a wrong secret neither the exchange nor the refresh succeeds.
    register("of somebody else").await;
    assert_eq!(walk(&world, "x", "ada", json!({})).await["error"], "exchange_failed");
    world.expire_tokens("x", "ada").await;
    assert!(!is_healthy(&world, &id).await);
    // That is the operator's to correct, and no reason to connect the account again.
    assert_eq!(account(&world, &id).await["status"], "active");

    // A deleted app is still used for the accounts that were connected through it.
    register(app.client_secret.as_deref().unwrap()).await;
    assert_eq!(joined(&world, "x", "ada", json!({ "reconnect_account_id": id })).await, id);
    let path = format!("/social-networks/{}", network.as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    let kept = networks::credentials(&world.db, world.owner, network.as_str().unwrap().parse().unwrap());
    assert!(kept.await.unwrap().unwrap().secret_sealed.is_some());
    world.expire_tokens("x", "ada").await;
    assert!(is_healthy(&world, &id).await);
    assert_eq!(account(&world, &id).await["social_network_id"], network);
}

#[tokio::test]
async fn a_plan_limits_the_number_of_accounts() {
    let plans = json!([{ "key": "default", "name": "Small", "social_accounts": 2, "upgrade_url": "https://example.com/up" }]);
    let world = world().set("FANFARE_PLANS", &plans.to_string()).platforms(&["x", "bluesky", "facebook"]);
    let world = world.start().await;
    let token = several(&world, "facebook", "ada,bob,eve").await;
    let (_, offered) = pending(&world, &token).await;
    let ids: Vec<_> =
        offered["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let id = joined(&world, "x", "ada", json!({})).await;

    let (status, problem) = finalize(&world, &token, &ids[..2]).await;
    assert_eq!(status, StatusCode::PAYMENT_REQUIRED, "{problem}");
    let member = |name: &str| problem[name].clone();
    assert_eq!(
        [member("code"), member("reason"), member("limit"), member("used"), member("upgradeUrl")],
        [
            json!("quota_exceeded"),
            json!("quota_exceeded"),
            json!(2),
            json!(1),
            json!("https://example.com/up")
        ]
    );
    let url = format!("{}/connect/choose/{token}", world.base);
    let form: Vec<_> = ids.iter().map(|id| ("page", *id)).collect();
    let (status, html) = page(browser().post(&url).form(&form).send().await.unwrap()).await;
    assert!(
        status == 402 && html.contains("role=\"alert\"") && html.matches("checked>").count() == 3,
        "{html}"
    );
    assert_eq!(finalize(&world, &token, &ids[..1]).await.0, StatusCode::CREATED);

    let reported = walk(&world, "x", "bob", json!({})).await;
    assert_eq!(
        (reported["status"].as_str(), reported["error"].as_str()),
        ("error", "quota_exceeded"),
        "{reported:?}"
    );
    let login = async |name: &str| {
        let grant = world.account("bluesky", name).await.grant;
        json!({ "identifier": name, "app_password": grant.extra["app_password"] })
    };
    let path = "/social-accounts/bluesky/connect";
    let body = login("ada.bsky.social").await;
    let (_, problem) = fail(request(&world, Method::POST, path).json(&body), 402, "quota_exceeded").await;
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(2), &json!(2)));
    // A connected account does not count again, and disconnecting frees one place for two concurrent logins.
    assert_eq!(joined(&world, "x", "ada", json!({})).await, id);
    assert_eq!(world.call(Method::DELETE, &format!("/social-accounts/{id}"), None).await.0, StatusCode::OK);
    let other = login("bob.bsky.social").await;
    let (one, two) =
        join(world.call(Method::POST, path, Some(&body)), world.call(Method::POST, path, Some(&other))).await;
    let mut statuses = [one.0.as_u16(), two.0.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 402]);
    assert_eq!(
        world.get("/account/usage").await["usage"]["social_accounts"],
        json!({ "current": 2, "limit": 2 })
    );
}

#[tokio::test]
async fn without_a_worker_a_login_fails() {
    let world = world().running(&["api"]).start().await;
    let back = consented(&world, "x", "ada").await;
    let body = json!({ "identifier": "ada.bsky.social", "app_password": "a" });
    let login = request(&world, Method::POST, "/social-accounts/bluesky/connect").json(&body);
    let (end, (headers, _)) = join(arrive(&back), fail(login, 503, "unavailable")).await;
    assert!(headers.contains_key(header::RETRY_AFTER));
    assert_eq!(reported(&location(&end))["error"], "exchange_failed");
}

#[tokio::test]
async fn login_credentials_appear_in_no_response_history_or_log() {
    let mut world = world()
        .approved()
        .running(&[])
        .platforms(&["x", "google_business", "facebook", "bluesky"])
        .start()
        .await;
    let log = std::env::temp_dir().join(format!("fanfare-log-{}", Uuid::now_v7()));
    world.set("RUST_LOG", "debug,h2=info,hyper=info");
    world.log_to(&log);
    world.run("all").await;
    let mut answers = String::new();
    let mut secrets = Vec::new();

    let app = sandbox::app("x").unwrap();
    let own = json!({ "platform": "x", "client_id": app.client_id, "client_secret": app.client_secret });
    answers += &world.call(Method::POST, "/social-networks", Some(&own)).await.1.to_string();
    secrets.extend(app.client_secret);
    for (platform, username) in [("x", "ada"), ("google_business", "ada"), ("facebook", "ada,bob")] {
        let back = consented(&world, platform, username).await;
        secrets.push(parameters(&back)["code"].clone());
        let end = location(&arrive(&back).await);
        answers += end.as_str();
        if let Some(token) = reported(&end).get("token") {
            let (_, offered) = pending(&world, token).await;
            let ids: Vec<_> =
                offered["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
            answers += &offered.to_string();
            answers += &finalize(&world, token, &ids).await.1.to_string();
        }
    }
    let grant = world.account("bluesky", "ada.bsky.social").await.grant;
    let password = grant.extra["app_password"].as_str().unwrap().to_owned();
    let body = json!({ "identifier": "ada.bsky.social", "app_password": password });
    answers += &world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&body)).await.1.to_string();
    secrets.push(password);
    let wrong = json!({ "identifier": "ada.bsky.social", "app_password": "a-wrong-password" });
    answers +=
        &world.call(Method::POST, "/social-accounts/bluesky/connect", Some(&wrong)).await.1.to_string();
    secrets.push("a-wrong-password".to_owned());
    let accounts = world.get("/social-accounts?limit=100").await;
    answers += &accounts.to_string();
    let accounts = accounts["data"].as_array().unwrap();
    assert_eq!(accounts.len(), 6, "{accounts:?}");
    for account in accounts {
        let id = account["id"].as_str().unwrap().parse().unwrap();
        let kept = store::accounts::grants::get(&world.db, world.owner, id).await.unwrap().unwrap();
        let opened = world.opener.open(&kept.sealed, &vault::aad_grant(world.owner, id)).unwrap();
        let grant: Value = serde_json::from_slice(&opened).unwrap();
        secrets.extend(
            ["access_token", "refresh_token"]
                .iter()
                .filter_map(|name| Some(grant[name].as_str()?.to_owned())),
        );
    }
    assert!(secrets.len() > 12 && secrets.iter().all(|secret| secret.len() > 8), "{}", secrets.len());

    let client = replay::client().await;
    let query = format!("WorkflowType = 'WorkerRequest' and FanfareOrg = '{}'", world.owner.org);
    // Three callbacks, two selections, two passwords; Temporal's list is eventually consistent.
    let list = async || {
        let found: Vec<_> = client.list_workflows(query.clone(), Default::default()).collect().await;
        if found.len() >= 7 { Ok(found) } else { Err(found.len()) }
    };
    let asked = wait_until("seven requests in Temporal's list", list).await;
    let asked: Vec<_> = asked.into_iter().map(|found| found.unwrap().id().to_owned()).collect();
    let mut histories = String::new();
    for id in asked {
        let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
        let history = handle.fetch_history(WorkflowFetchHistoryOptions::default()).to_json().await.unwrap();
        histories += &String::from_utf8_lossy(&history);
    }
    let logged = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    assert!(logged.contains("DEBUG") && logged.contains("Connected account"));
    for (place, text) in [("answers", &answers), ("histories", &histories), ("log", &logged)] {
        // The payloads of a history are JSON in base64.
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "a secret in the {place}");
            assert!(!decoded(text).contains(secret.as_str()), "a secret in the {place}");
        }
    }
}

/// Returns the decoded base64 parts of a text.
fn decoded(text: &str) -> String {
    let pieces = text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c));
    let long = pieces.filter(|piece| piece.len() >= 12);
    long.filter_map(|piece| BASE64_STANDARD.decode(piece).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned() + "\n")
        .collect()
}
