//! Rate limits that all processes share, the headers that report them, and quotas.

use crate::{browser::Browser, world};
use chrono::TimeDelta;
use domain::{Mode, Owner, client::Client, scope::Scope};
use futures::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, Response, StatusCode, header::HeaderMap};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use store::people::{audit::Actor, keys, organizations};
use tests::{World, if_right, now, wait_until};

/// A day, so that no window ends during a test, except at midnight.
const DAY: u32 = 86_400;

fn limits(of: Value) -> String {
    let windowed =
        |(name, limit): (&String, &Value)| (name.clone(), json!({ "limit": limit, "window": DAY }));
    Value::Object(of.as_object().unwrap().iter().map(windowed).collect()).to_string()
}

async fn limited(of: Value) -> World {
    world().set("FANFARE_RATE_LIMITS", &limits(of)).start().await
}

async fn key(world: &World, owner: Owner, scopes: &[Scope]) -> String {
    let new = keys::NewKey { owner, name: "another".into(), scopes: scopes.to_vec(), expires_at: None };
    keys::create(&world.db, new, now()).await.unwrap().1
}

fn request(world: &World, method: Method, path: &str) -> RequestBuilder {
    world.http.request(method, format!("{}{path}", world.base)).bearer_auth(&world.key)
}

/// Returns the limit and the remaining calls, as reported in the headers.
fn levels(headers: &HeaderMap) -> Option<(u64, u64)> {
    let number = |name| headers.get(name).map(|value| value.to_str().unwrap().parse().unwrap());
    Some((number("x-ratelimit-limit")?, number("x-ratelimit-remaining")?))
}

async fn send(request: RequestBuilder) -> (u16, Option<(u64, u64)>, Value) {
    let response = request.send().await.unwrap();
    let (status, levels) = (response.status().as_u16(), levels(response.headers()));
    (status, levels, response.json().await.unwrap())
}

fn refused(response: &Response) {
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: i64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=i64::from(DAY)).contains(&wait), "{wait}");
}

#[tokio::test]
async fn every_authenticated_call_reports_its_tightest_bucket() {
    let world = limited(json!({ "global": 100, "posts": 50, "webhooks": 60 })).await;
    let reader = key(&world, world.owner, &[Scope::AccountsRead]).await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let elsewhere = organizations::create(&world.db, "Elsewhere").await.unwrap();
    let elsewhere = key(&world, Owner { org: elsewhere, ..world.owner }, &[Scope::All]).await;
    let draft = json!({ "content": "a", "accounts": ["nobody"] });
    let own = |method, path: &str| request(&world, method, path);
    let with = |key: &str, path: &str| world.http.get(format!("{}{path}", world.base)).bearer_auth(key);
    for (request, status, expected) in [
        (own(Method::GET, "/posts"), 200, Some((100, 99))),
        (own(Method::GET, "/posts/7"), 404, Some((100, 98))),
        (own(Method::GET, "/posts?cursor=7"), 400, Some((100, 97))),
        (own(Method::POST, "/posts").body("{"), 400, Some((50, 49))),
        (own(Method::POST, "/posts").json(&draft), 422, Some((50, 48))),
        (own(Method::DELETE, "/posts/7"), 404, Some((50, 47))),
        (own(Method::DELETE, "/webhooks/7"), 404, Some((60, 59))),
        (with(&reader, "/posts"), 403, Some((100, 92))),
        // Each mode of an organization has its own buckets, and another organization has its own.
        (with(&live, "/posts"), 200, Some((100, 99))),
        (with(&elsewhere, "/posts"), 200, Some((100, 99))),
        // Calls without a valid key or a route pass no limiter.
        (with("sk_test_unknown", "/posts"), 401, None),
        (world.http.get(format!("{}/posts", world.base)), 401, None),
        (own(Method::GET, "/nowhere"), 404, None),
        (own(Method::PUT, "/posts"), 405, None),
        // Another spelling of a path does not bypass its bucket.
        (own(Method::POST, "/%70osts").json(&draft), 404, None),
        (own(Method::POST, "//posts").json(&draft), 404, None),
        (own(Method::GET, "/posts"), 200, Some((100, 91))),
    ] {
        let asked = format!("{request:?}");
        let (found, levels, body) = send(request).await;
        assert_eq!((found, levels), (status, expected), "{asked}: {body}");
    }
}

/// Checks the default limits, used if the operator sets none.
#[tokio::test]
async fn default_rate_limits_match_the_contract() {
    let world = world().set("FANFARE_RATE_LIMITS", "").start().await;
    let own = |method, path: &str| request(&world, method, path);
    let anyone = |method, path: &str| world.http.request(method, format!("{}{path}", world.base));
    let root = world.base.trim_end_matches("/api/v1");
    let sign_in = || world.http.post(format!("{root}/dashboard/sign-in")).form(&[("key", "sk_test_guess")]);
    let sign_in = || sign_in().header("origin", root).header("sec-fetch-site", "same-origin");
    for (request, ceiling) in [
        (own(Method::GET, "/posts"), 600),
        (own(Method::POST, "/posts").body("{"), 120),
        (own(Method::PATCH, "/posts/7").body("{"), 120),
        (own(Method::DELETE, "/posts/7"), 120),
        (own(Method::POST, "/media/upload").body("{"), 60),
        (own(Method::DELETE, "/media/7"), 60),
        (own(Method::DELETE, "/social-accounts/7"), 20),
        (own(Method::POST, "/social-accounts/7/imports").body("{"), 20),
        (own(Method::POST, "/social-accounts/bluesky/connect").body("{"), 10),
        (own(Method::PUT, "/scheduling/slots").body("{"), 60),
        (own(Method::POST, "/team").body("{"), 30),
        (own(Method::DELETE, "/team/7"), 30),
        (own(Method::PATCH, "/team/7").body("{"), 600),
        (own(Method::POST, "/profiles").body("{"), 30),
        (own(Method::PATCH, "/profiles/7").body("{"), 30),
        (own(Method::DELETE, "/profiles/7"), 30),
        (own(Method::POST, "/webhooks").body("{"), 60),
        (own(Method::PATCH, "/webhooks/7").body("{"), 60),
        (own(Method::DELETE, "/webhooks/7"), 60),
        // Reads, and routes that are not in the table, count in the global bucket alone.
        (own(Method::GET, "/webhooks"), 600),
        (own(Method::PATCH, "/social-accounts/7").body("{"), 600),
        (own(Method::POST, "/api-keys").body("{"), 600),
        // Limited by address, without a key.
        (world.http.post(format!("{root}/api/mcp")), 120),
        (anyone(Method::GET, "/social-accounts/pending/none"), 300),
        (sign_in(), 20),
    ] {
        let asked = format!("{request:?}");
        let response = request.send().await.unwrap();
        let (found, left) = levels(response.headers()).unwrap_or_else(|| panic!("{asked}: no headers"));
        assert_eq!(found, ceiling, "{asked}");
        assert!(left < ceiling, "{asked}");
    }
    // The window is a minute, part of which has passed.
    let connect = || own(Method::POST, "/social-accounts/bluesky/connect").body("{");
    let mut passed = 0;
    let refusal = loop {
        let response = connect().send().await.unwrap();
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            break response;
        }
        passed += 1;
        assert!(passed < 20, "more calls passed than two windows allow");
    };
    let wait: u64 = refusal.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[tokio::test]
async fn two_processes_admit_600_of_700_concurrent_calls() {
    let mut world = limited(json!({ "global": 600 })).await;
    let bases = [world.base.clone(), world.run_another_api().await];
    let call = |number: usize| {
        let url = format!("{}/social-accounts/{number}", bases[number % 2]);
        world.http.get(url).bearer_auth(&world.key).send()
    };
    // More at once than both have database connections, but too few to time out waiting for one.
    let answers: Vec<_> = stream::iter((0..700).map(call)).buffer_unordered(40).collect().await;
    let mut statuses = HashMap::<u16, usize>::new();
    for answer in answers {
        let answer = answer.unwrap();
        *statuses.entry(answer.status().as_u16()).or_default() += 1;
        if answer.status() != StatusCode::NOT_FOUND {
            refused(&answer);
            assert_eq!(levels(answer.headers()), Some((600, 0)));
        }
    }
    assert_eq!(statuses, HashMap::from([(404, 600), (429, 100)]));
}

#[tokio::test]
async fn a_refused_call_counts_in_no_bucket_and_passes_in_the_next_window() {
    let limits = json!({ "global": { "limit": 50, "window": DAY }, "posts": { "limit": 2, "window": 3 } });
    let world = world().set("FANFARE_RATE_LIMITS", &limits.to_string()).start().await;
    let post = || request(&world, Method::POST, "/posts").body("{");
    // The calls span two windows at most, and the third call in one window is refused.
    let mut passed = 0;
    let refusal = loop {
        let response = post().send().await.unwrap();
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            break response;
        }
        passed += 1;
        assert!(passed <= 4, "nothing was refused");
    };
    let wait: u64 = refusal.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    assert_eq!(levels(refusal.headers()), Some((2, 0)));
    let problem: Value = refusal.json().await.unwrap();
    assert_eq!((&problem["code"], &problem["title"]), (&json!("rate_limited"), &json!("Too Many Requests")));
    assert!(problem["detail"].as_str().unwrap().contains("rate limit exceeded"), "{problem}");
    assert_eq!(problem.get("retry_after"), None);
    let (_, level, _) = send(request(&world, Method::GET, "/posts")).await;
    assert_eq!(level, Some((50, 50 - passed - 1)));
    // The call passes in the next window, which `Retry-After` announced.
    let refused = Instant::now();
    wait_until("the next window", async || if_right(send(post()).await.0, |status| *status == 400)).await;
    assert!(refused.elapsed() + Duration::from_secs(1) > Duration::from_secs(wait), "{wait}");
}

#[tokio::test]
async fn a_used_up_quota_refuses_calls_until_the_plan_is_upgraded() {
    let plans = json!([
        { "key": "free", "name": "Free", "api_requests": 3, "upgrade_url": "https://example.com/plans" },
        { "key": "pro", "name": "Pro", "api_requests": 1000 },
    ]);
    let world = world().set("FANFARE_PLANS", &plans.to_string()).start().await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let browser = Browser::signed_in(&world).await;
    let spare = async || {
        let new = keys::NewKey {
            owner: world.owner,
            name: "spare".into(),
            scopes: vec![Scope::PostsRead],
            expires_at: None,
        };
        keys::create(&world.db, new, now()).await.unwrap().0.id
    };
    let (leaked, other) = (spare().await, spare().await);
    let list = || request(&world, Method::GET, "/posts");
    // The built-in plan has no limit.
    assert_eq!(send(list()).await.0, 200);
    let usage = world.get("/account/usage").await["usage"].clone();
    assert_eq!(usage["plan"], json!({ "key": "default", "name": "default" }));
    assert_eq!(usage["api_requests"], json!({ "current": 1, "limit": null }));

    let org = world.owner.org.to_string();
    let on = async |plan: &str| world.command(&["org", "plan", &org, plan]).await;
    assert!(on("free").await.status.success());
    assert_eq!(send(list()).await.0, 200);
    let with = |key: &str| world.http.get(format!("{}/posts", world.base)).bearer_auth(key);
    assert_eq!(send(with("sk_test_unknown")).await.0, 401);
    assert_eq!(send(list()).await.0, 200);
    for _ in 0..3 {
        let (status, levels, problem) = send(list()).await;
        assert_eq!(status, 402, "{problem}");
        // The call passed the limiter.
        assert!(levels.is_some());
        let (detail, id) = (problem["detail"].clone(), problem["request_id"].clone());
        assert!(detail.is_string() && id.is_string());
        assert_eq!(
            problem,
            json!({
                "type": "about:blank", "title": "Payment Required", "status": 402, "detail": detail,
                "request_id": id, "code": "quota_exceeded", "reason": "quota_exceeded", "limit": 3, "used": 3,
                "upgradeUrl": "https://example.com/plans",
            })
        );
    }
    let usage = world.get("/account/usage").await["usage"].clone();
    assert_eq!(usage["api_requests"], json!({ "current": 3, "limit": 3 }));
    assert_eq!(send(request(&world, Method::POST, "/api-keys").body("{")).await.0, 402);
    // Reading the usage is allowed, and ending the access of a key or a person that was lost.
    for (path, status) in
        [(format!("/api-keys/{leaked}"), 200), ("/client-tokens/7".into(), 404), ("/team/7".into(), 404)]
    {
        let (found, levels, body) = send(request(&world, Method::DELETE, &path)).await;
        assert_eq!((found, levels.is_some()), (status, true), "{path}: {body}");
    }
    let form = [("name", "x"), ("scope", "posts:read")];
    assert_eq!(browser.post("/keys", &form).await.status, StatusCode::PAYMENT_REQUIRED);
    for (path, status) in [
        (format!("/keys/{other}/revoke"), StatusCode::SEE_OTHER),
        ("/team/7/remove".into(), StatusCode::NOT_FOUND),
        ("/me/sessions/others/end".into(), StatusCode::SEE_OTHER),
    ] {
        let page = browser.post(&path, &[]).await;
        assert_eq!(page.status, status, "{path}: {}", page.text);
    }
    let usage = world.get("/account/usage").await["usage"].clone();
    assert_eq!(usage["api_requests"], json!({ "current": 3, "limit": 3 }));

    assert!(!on("gold").await.status.success());
    // Requests with a test key take nothing from live mode.
    assert_eq!(send(with(&live)).await.0, 200);
    let url = format!("{}/account/usage", world.base);
    let usage = send(world.http.get(&url).bearer_auth(&live)).await.2["usage"].clone();
    assert_eq!(
        (&usage["mode"], &usage["api_requests"]),
        (&json!("live"), &json!({ "current": 1, "limit": 3 }))
    );

    let stranger = uuid::Uuid::now_v7().to_string();
    assert!(!world.command(&["org", "plan", &stranger, "pro"]).await.status.success());
    assert!(on("pro").await.status.success());
    assert_eq!(send(list()).await.0, 200);
    let usage = world.get("/account/usage").await["usage"].clone();
    assert_eq!(usage["api_requests"], json!({ "current": 4, "limit": 1000 }));
}

#[tokio::test]
async fn what_limited_callers_use_up_is_not_the_organizations() {
    let world = limited(json!({ "global": 6, "client-token": 4, "bound-key": 3 })).await;
    let create = async |path: &str, body: Value| {
        let made = request(&world, Method::POST, path).json(&body).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED, "{path}");
        made.json::<Value>().await.unwrap()
    };
    let token = create("/client-tokens", json!({ "tenant_id": "a" })).await;
    let bound = json!({ "name": "Bound", "scopes": ["*"], "tenant_id": "a" });
    let bound = create("/api-keys", bound).await;
    let with = |key: &Value| {
        let url = format!("{}/social-accounts", world.base);
        world.http.get(url).bearer_auth(key.as_str().unwrap())
    };
    for left in [3, 2, 1, 0] {
        let (status, levels, answer) = send(with(&token["token"])).await;
        assert_eq!((status, levels), (200, Some((4, left))), "{answer}");
    }
    refused(&with(&token["token"]).send().await.unwrap());
    // Two are left of what both have together.
    for left in [1, 0] {
        let (status, levels, answer) = send(with(&bound["key"])).await;
        assert_eq!((status, levels), (200, Some((6, left))), "{answer}");
    }
    refused(&with(&bound["key"]).send().await.unwrap());
    // The organization has used two, and has four left.
    for left in [3, 2, 1, 0] {
        let (status, levels, answer) = send(request(&world, Method::GET, "/posts")).await;
        assert_eq!((status, levels), (200, Some((6, left))), "{answer}");
    }
    refused(&request(&world, Method::GET, "/posts").send().await.unwrap());
}

#[tokio::test]
async fn an_access_is_ended_and_the_usage_read_whatever_is_used_up() {
    let plans = json!([{ "key": "default", "name": "Small", "api_requests": 8 }]);
    let limits = limits(json!({ "global": 8, "team": 1, "dashboard": 3 }));
    let world =
        world().set("FANFARE_PLANS", &plans.to_string()).set("FANFARE_RATE_LIMITS", &limits).start().await;
    let create = async |path: &str, body: Value| {
        let made = request(&world, Method::POST, path).json(&body).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED, "{path}");
        made.json::<Value>().await.unwrap()
    };
    let token = create("/client-tokens", json!({ "tenant_id": "a" })).await;
    let [leaked, rotated, other] = [
        create("/api-keys", json!({ "name": "Leaked", "scopes": ["*"] })).await,
        create("/api-keys", json!({ "name": "Rotated", "scopes": ["posts:read"] })).await,
        create("/api-keys", json!({ "name": "Other", "scopes": ["posts:read"] })).await,
    ];
    let member = create("/team", json!({ "email": "me@example.com", "role": "viewer" })).await;
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    let mut thief = Browser::new(&world);
    assert_eq!(thief.sign_in(leaked["key"].as_str().unwrap()).await.status, StatusCode::SEE_OTHER);
    for _ in 0..3 {
        thief.open("/posts").await;
    }
    assert_eq!(thief.get("/posts").await.status, StatusCode::TOO_MANY_REQUESTS);
    let steal = || {
        let url = format!("{}/posts", world.base);
        world.http.get(url).bearer_auth(leaked["key"].as_str().unwrap())
    };
    wait_until("the leaked key to use everything up", async || {
        if_right(send(steal()).await.0, |status| *status == 429)
    })
    .await;
    refused(&request(&world, Method::GET, "/posts").send().await.unwrap());
    for (method, path, status) in [
        (Method::GET, "/account/usage".to_owned(), 200),
        (Method::DELETE, format!("/client-tokens/{}", id(&token)), 200),
        (Method::POST, format!("/api-keys/{}/rotate", id(&rotated)), 201),
        (Method::DELETE, format!("/team/{}", id(&member)), 200),
    ] {
        let (found, levels, answer) = send(request(&world, method.clone(), &path)).await;
        assert_eq!((found, levels.is_some()), (status, true), "{method} {path}: {answer}");
    }
    // The pages of each who is signed in count apart.
    let browser = Browser::signed_in(&world).await;
    assert!(browser.open("/keys").await.contains(&id(&other)));
    let revoked = browser.post(&format!("/keys/{}/revoke", id(&other)), &[]).await;
    assert_eq!(revoked.status, StatusCode::SEE_OTHER, "{}", revoked.text);
    let (status, _, answer) =
        send(request(&world, Method::DELETE, &format!("/api-keys/{}", id(&leaked)))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(send(steal()).await.0, 401);
}

#[tokio::test]
async fn usage_reports_the_current_month() {
    let plans = json!([{ "key": "default", "name": "Small", "posts": 1, "social_accounts": 5 }]);
    let world = world().set("FANFARE_PLANS", &plans.to_string()).start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let accounts = ["ada", "ada.bsky.social"];
    world.post(json!({ "content": "Later", "accounts": accounts, "is_draft": true })).await;
    let post = world.post(json!({ "content": "Now", "accounts": accounts })).await;
    world.ended(&post).await;
    let before = world.get("/account/usage").await["usage"].clone();
    assert_eq!(send(request(&world, Method::GET, "/posts")).await.0, 200);
    let usage = world.get("/account/usage").await["usage"].clone();
    let requests = [&before, &usage].map(|usage| usage["api_requests"]["current"].as_u64().unwrap());
    assert_eq!(requests[1], requests[0] + 1, "reading the usage is not counted");
    assert_eq!(usage["mode"], "test");
    assert_eq!(usage["plan"], json!({ "key": "default", "name": "Small" }));
    assert_eq!(usage["posts"], json!({ "current": 2, "included": 1, "overage": 1 }));
    assert_eq!(usage["social_accounts"], json!({ "current": 2, "limit": 5 }));
    let month = store::usage::Month::of(now());
    let period = [month.start, month.end].map(domain::event::timestamp);
    assert_eq!(usage["billing_period"], json!({ "start": period[0], "end": period[1] }));

    // Posts published to the sandbox are not part of the live usage.
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::UsageRead]).await;
    let url = format!("{}/account/usage", world.base);
    let (_, _, body) = send(world.http.get(&url).bearer_auth(live)).await;
    assert_eq!(body["usage"]["mode"], "live");
    assert_eq!(body["usage"]["posts"], json!({ "current": 0, "included": 1, "overage": 0 }));
    assert_eq!(body["usage"]["social_accounts"]["current"], 0);
    let narrow = key(&world, world.owner, &[Scope::PostsRead]).await;
    let (status, _, problem) = send(world.http.get(&url).bearer_auth(narrow)).await;
    assert_eq!((status, &problem["code"]), (403, &json!("insufficient_scope")));
}

#[tokio::test]
async fn logins_without_a_key_are_counted_by_address() {
    let world = limited(json!({ "global": 100, "connect": 5 })).await;
    let call = |method: Method, path: &str| world.http.request(method, format!("{}{path}", world.base));
    let finalize = || call(Method::POST, "/social-accounts/pending/none/finalize").body("{");
    let (status, levels, problem) = send(call(Method::GET, "/social-accounts/pending/none")).await;
    assert_eq!((status, levels, &problem["code"]), (404, Some((5, 4)), &json!("not_found")));
    // An invalid body is not read if the pending login does not exist.
    let (status, levels, problem) = send(finalize()).await;
    assert_eq!((status, levels, &problem["code"]), (404, Some((5, 3)), &json!("not_found")));
    for (method, path, status) in [
        (Method::GET, "/connect/callback?state=none", 400),
        (Method::GET, "/connect/choose/none", 404),
        (Method::POST, "/connect/choose/none", 404),
    ] {
        let response = call(method, path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
    }
    refused(&finalize().send().await.unwrap());
    refused(&call(Method::GET, "/social-accounts/pending/none").send().await.unwrap());
    for (method, path) in [
        (Method::GET, "/connect/callback?state=none"),
        (Method::GET, "/connect/choose/none"),
        (Method::POST, "/connect/choose/none"),
    ] {
        let response = call(method, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
    // Calls with a key are counted by the key.
    assert_eq!(send(request(&world, Method::GET, "/posts")).await.0, 200);
}

#[tokio::test]
async fn the_mcp_endpoint_counts_addresses_before_checking_the_key() {
    let mut world = limited(json!({ "global": 100, "mcp": 3 })).await;
    let url = world.base.replace("/api/v1", "/api/mcp");
    let (http, key) = (world.http.clone(), world.key.clone());
    let knock = |method: Method, from: &str| http.request(method, &url).header("X-Forwarded-For", from);
    assert_eq!(send(knock(Method::POST, "9.9.9.1")).await.0, 401);
    let (status, levels, problem) = send(knock(Method::GET, "9.9.9.2").bearer_auth(&key)).await;
    assert_eq!((status, levels, &problem["code"]), (405, Some((3, 1)), &json!("method_not_allowed")));
    assert_eq!(send(knock(Method::POST, "9.9.9.3").bearer_auth("sk_test_wrong")).await.0, 401);
    // A caller cannot change their address with a header, and a valid key does not lift the limit.
    let refusal = knock(Method::POST, "9.9.9.4").bearer_auth(&key).send().await.unwrap();
    refused(&refusal);
    assert_eq!(self::levels(refusal.headers()), Some((3, 0)));
    // The API itself does not count this address.
    assert_eq!(send(request(&world, Method::GET, "/posts")).await.0, 200);

    // Behind a proxy, the address is the one that the proxy saw.
    world.kill("all").await;
    world.set("FANFARE_TRUSTED_HOPS", "1");
    world.run("all").await;
    for _ in 0..3 {
        assert_eq!(send(knock(Method::POST, "1.1.1.1, 9.9.9.9")).await.0, 401);
    }
    refused(&knock(Method::POST, "2.2.2.2, 9.9.9.9").send().await.unwrap());
    assert_eq!(send(knock(Method::POST, "9.9.9.9, 9.9.9.8")).await.0, 401);
}

#[tokio::test]
async fn unknown_keys_are_counted_by_address_and_only_they_are_refused() {
    let world = limited(json!({ "unknown-keys": 3 })).await;
    let with = async |key: &str| {
        let call = world.http.get(format!("{}/posts", world.base)).bearer_auth(key);
        call.send().await.unwrap()
    };
    let unknown = |n: usize| format!("sk_test_{n:040}");
    // A text that is no key is refused without a look-up, and does not count.
    for text in
        ["x", "sk_test_short", &unknown(0)[1..], &format!("{}0", unknown(0)), &unknown(0).replace('0', "-")]
    {
        assert_eq!(with(text).await.status(), StatusCode::UNAUTHORIZED, "{text}");
    }
    for n in 0..3 {
        assert_eq!(with(&unknown(n)).await.status(), StatusCode::UNAUTHORIZED);
    }
    let answer = with(&unknown(3)).await;
    refused(&answer);
    assert_eq!(levels(answer.headers()), Some((3, 0)));
    assert_eq!(with(&world.key).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn client_tokens_that_have_ended_are_counted_like_unknown_keys() {
    let world = limited(json!({ "unknown-keys": 2 })).await;
    let (client, then) = (Client { platforms: Vec::new(), redirect_uri: None }, now() - TimeDelta::hours(1));
    let expired = keys::create_client(&world.db, world.owner, "a", &client, then, &Actor::OPERATOR, then);
    let (_, expired) = expired.await.unwrap();
    let with = |key: &str| world.http.get(format!("{}/social-accounts", world.base)).bearer_auth(key);
    for _ in 0..2 {
        let (status, _, problem) = send(with(&expired)).await;
        assert_eq!(status, 401, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("expired"), "{problem}");
    }
    refused(&with(&expired).send().await.unwrap());
    assert_eq!(send(with(&world.key)).await.0, 200);
}
