//! Health checks, capabilities, option lists and disconnection of accounts.

use crate::{
    api::{fail, key, request},
    world,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, Owner, outbox::Disconnection, scope::Scope};
use reqwest::Method;
use serde_json::{Value, json};
use store::accounts::disconnect;
use tests::{Receiver, World, samples::film, wait_until};

async fn health(world: &World, id: &str) -> Value {
    world.get(&format!("/social-accounts/{id}/health")).await
}

#[tokio::test]
async fn the_health_of_an_account_is_checked_on_the_platform() {
    let world = world().start().await;
    for (platform, username) in [("x", "ada"), ("bluesky", "ada.bsky.social")] {
        let id = world.connect(platform, username).await;
        let before = world.get(&format!("/social-accounts/{id}")).await;
        // An expired token is refreshed, so that the account stays healthy.
        for _ in 0..2 {
            let found = health(&world, &id).await;
            assert_eq!(
                (&found["healthy"], &found["status"], &found["error_code"], &found["detail"]),
                (&json!(true), &json!("active"), &Value::Null, &Value::Null),
                "{platform}: {found}"
            );
            let account = world.get(&format!("/social-accounts/{id}")).await;
            assert!(account["last_synced_at"].as_str() > before["last_synced_at"].as_str(), "{platform}");
            assert_eq!(found["checked_at"], account["last_synced_at"]);
            world.expire_tokens(platform, username).await;
        }
    }
}

#[tokio::test]
async fn a_revoked_grant_changes_health_and_status_and_sends_one_event() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;
    let id = world.connect("x", "ada").await;
    world.revoke_grants("x", "ada").await;
    for _ in 0..2 {
        let found = health(&world, &id).await;
        assert_eq!(
            (&found["healthy"], &found["status"]),
            (&json!(false), &json!("reauth_required")),
            "{found}"
        );
        assert_eq!(found["error_code"], "token_expired");
        assert!(found["detail"].is_string());
    }
    let reported = receiver.events(&["account.reauth_required"]).await;
    assert_eq!(reported.len(), 1, "one event");
    assert_eq!(reported[0].json()["data"]["accountId"], json!(id));

    // Reconnecting makes the account healthy.
    assert_eq!(world.connect("x", "ada").await, id);
    let found = health(&world, &id).await;
    assert_eq!((&found["healthy"], &found["status"]), (&json!(true), &json!("active")));
}

#[tokio::test]
async fn a_temporary_platform_error_leaves_the_account_active() {
    let world = world().start().await;
    let id = world.connect("x", "ada").await;
    world.set_sandbox(json!({ "limits": { "x.me": 0 } })).await;
    let found = health(&world, &id).await;
    assert_eq!((&found["healthy"], &found["status"]), (&json!(false), &json!("active")), "{found}");
    assert_eq!(found["error_code"], "rate_limited");
}

#[tokio::test]
async fn capabilities_are_the_limits_that_posts_are_validated_against() {
    let world = world().start().await;
    for platform in platforms::all() {
        let id = world.connect(platform.id, "ada").await;
        let reported = world.get(&format!("/social-accounts/{id}/capabilities")).await;
        let can = &platform.limits;
        assert_eq!(reported["platform"], platform.id);
        assert_eq!(reported["text"]["max_length"], can.text.max);
        assert_eq!(reported["text"]["unit"], can.text.unit);
        assert_eq!(reported["config_schema"], platforms::check::schema(platform));
        let account = world.get(&format!("/social-accounts/{id}")).await;
        let is_closed = |feature: &str| {
            account["unavailable"].as_array().unwrap().iter().any(|closed| closed["feature"] == feature)
        };
        for (member, feature, is_there) in [
            ("analytics", "analytics", platform.analytics.is_some()),
            ("history", "import", platform.history.is_some()),
            ("deletion", "deletion", platform.deletion.is_some()),
        ] {
            assert_eq!(reported[member], is_there && !is_closed(feature), "{} {member}", platform.id);
        }
        let editing = &reported["editing"];
        let can_edit = platform.editing.is_ok() && !is_closed("editing");
        assert_eq!(editing["is_supported"], can_edit, "{}", platform.id);
        assert_eq!(editing["reason"].is_string(), !can_edit, "{}", platform.id);
        let settings = platform.editing.map_or(&[][..], |editing| editing.settings());
        assert_eq!(editing["settings"], json!(settings), "{}", platform.id);
        let kinds: Vec<_> =
            reported["media"].as_array().unwrap().iter().map(|medium| &medium["kind"]).collect();
        assert_eq!(kinds, can.media.iter().map(|limit| limit.kind.as_str()).collect::<Vec<_>>());
        let options = platform.options.map_or(&[][..], |options| options.kinds());
        assert_eq!(reported["options"], json!(options));
    }
    let ada = world.get("/social-accounts?platform=x").await["data"][0]["id"].as_str().unwrap().to_owned();
    let reported = world.get(&format!("/social-accounts/{ada}/capabilities")).await;
    assert_eq!((&reported["text"]["max_length"], &reported["replies"]), (&json!(280), &json!("thread")));
    assert_eq!(reported["content"], "text_or_media");
    assert_eq!(reported["publishing"], json!({ "is_asynchronous": true, "window_seconds": 600 }));
}

#[tokio::test]
async fn an_option_list_that_a_platform_does_not_have_is_404() {
    let world = world().start().await;
    for platform in platforms::all() {
        let id = world.connect(platform.id, "ada").await;
        let kinds = platform.options.map_or(&[][..], |options| options.kinds());
        for kind in ["nonsense", "%00", "boards%20"] {
            let path = format!("/social-accounts/{id}/options/{kind}");
            let (_, problem) = fail(request(&world, Method::GET, &path), 404, "not_found").await;
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.contains(platform.id) && kinds.iter().all(|kind| detail.contains(kind)),
                "{detail}"
            );
        }
        for kind in kinds {
            let path = format!("/social-accounts/{id}/options/{kind}");
            let (status, body) = world.call(Method::GET, &path, None).await;
            // A list that belongs to a parent requires the `parent` parameter, and an app that has no access gets none.
            let is_refused = status == 422 && body["code"] == "unprocessable"
                || status == 503 && body["detail"].as_str().unwrap().contains("refuses the app");
            assert!(status == 200 || is_refused, "{path}: {body}");
            for query in
                ["parent=", "parent=a&parent=b", "parent=%00", &format!("parent={}", "p".repeat(256))]
            {
                fail(request(&world, Method::GET, &format!("{path}?{query}")), 400, "invalid_request").await;
            }
        }
    }
}

#[tokio::test]
async fn accounts_require_the_scope_and_the_owner() {
    let world = world().start().await;
    let id = world.connect("x", "ada").await;
    let unscoped = key(&world, world.owner, &[Scope::PostsRead]).await;
    let other = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let path = format!("/social-accounts/{id}");
    let reader = key(&world, world.owner, &[Scope::AccountsRead]).await;
    let url = format!("{}{path}", world.base);
    fail(world.http.delete(&url).bearer_auth(&reader), 403, "insufficient_scope").await;
    fail(world.http.delete(&url).bearer_auth(&other), 404, "not_found").await;
    fail(request(&world, Method::DELETE, "/social-accounts/7"), 404, "not_found").await;
    world.get(&path).await;
    for what in ["health", "capabilities", "options/boards"] {
        let url = format!("{}/social-accounts/{id}/{what}", world.base);
        fail(world.http.get(&url).bearer_auth(&unscoped), 403, "insufficient_scope").await;
        fail(world.http.get(&url).bearer_auth(&other), 404, "not_found").await;
        for nobody in ["7", &uuid::Uuid::now_v7().to_string()] {
            let path = format!("/social-accounts/{nobody}/{what}");
            fail(request(&world, Method::GET, &path), 404, "not_found").await;
        }
    }
}

#[tokio::test]
async fn without_temporal_the_api_responds_and_health_checks_return_503() {
    let mut world = world().running(&[]).start().await;
    let id = world.connect("x", "ada").await;
    world.set("TEMPORAL_ADDRESS", "http://127.0.0.1:1");
    world.run("api").await;
    world.get(&format!("/social-accounts/{id}/capabilities")).await;
    let path = format!("/social-accounts/{id}/health");
    let (headers, _) = fail(request(&world, Method::GET, &path), 503, "unavailable").await;
    assert!(headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
}

/// Waits until the grant of a disconnected account is erased.
async fn erased(world: &World, id: &str) {
    let parting = Disconnection {
        account: id.parse().unwrap(),
        owner: world.owner,
        platform: "x".to_owned(),
        grant_version: 1,
    };
    let is_gone = async || match disconnect::grant_to_revoke(&world.db, &parting).await.unwrap() {
        None => Ok(()),
        Some(_) => Err("the grant is still stored"),
    };
    wait_until("the grant to be erased", is_gone).await;
}

fn target<'a>(post: &'a Value, platform: &str) -> &'a Value {
    post["targets"].as_array().unwrap().iter().find(|target| target["platform"] == platform).unwrap()
}

#[tokio::test]
async fn a_disconnected_account_is_revoked_erased_and_can_be_reconnected() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let both = json!(["ada", "ada.bsky.social"]);
    let live = world.post(json!({ "content": "Live", "accounts": both })).await;
    assert_eq!(world.ended(&live).await["status"], "published");
    let later = tests::now() + TimeDelta::hours(12);
    let alone = world.post(json!({ "content": "Alone", "accounts": [ada], "scheduled_at": later })).await;
    let shared = world.post(json!({ "content": "Shared", "accounts": both, "scheduled_at": later })).await;
    let draft = world.post(json!({ "content": "Draft", "accounts": [ada], "is_draft": true })).await;
    let receiver = Receiver::start().await;
    world.subscribe(&receiver.url).await;

    let path = format!("/social-accounts/{ada}");
    let (status, body) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status.as_u16(), body), (200, json!({ "id": ada, "deleted": true })));
    fail(request(&world, Method::DELETE, &path), 404, "not_found").await;
    for gone in [path.clone(), format!("{path}/health"), format!("{path}/capabilities")] {
        fail(request(&world, Method::GET, &gone), 404, "not_found").await;
    }
    assert_eq!(world.get("/social-accounts?platform=x").await["data"], json!([]));
    let (_, problem) = fail(
        request(&world, Method::POST, "/posts").json(&json!({ "content": "No", "accounts": [ada] })),
        422,
        "account_not_found",
    )
    .await;
    assert_eq!(problem["errors"][0]["path"], json!(["accounts", 0]));

    let of = async |post: &Value| world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    for (post, status, target_status) in [
        (&live, "published", "published"),
        (&alone, "failed", "canceled"),
        (&shared, "scheduled", "canceled"),
        (&draft, "draft", "canceled"),
    ] {
        let now = of(post).await;
        assert_eq!(
            (&now["status"], &target(&now, "x")["status"]),
            (&json!(status), &json!(target_status)),
            "{now:#}"
        );
    }
    let is_queued = |post: &Value| target(post, "bluesky")["status"] == "queued";
    world.until(shared["id"].as_str().unwrap(), "the other target to be queued", is_queued).await;
    let reported = receiver.events(&["account.disconnected", "post.error"]).await;
    assert_eq!(reported.len(), 2, "{reported:?}");
    for delivery in &reported {
        let data = delivery.json()["data"].clone();
        if delivery.event() == "post.error" {
            assert_eq!(data["postId"], alone["id"]);
            assert_eq!(data["socialAccounts"][0]["error"], "the account was disconnected");
        } else {
            let expected = json!({
                "orgId": world.owner.org, "accountId": ada, "network": "x", "username": "ada", "tenantId": null,
            });
            assert_eq!(data, expected);
        }
    }
    erased(&world, &ada).await;
    let revoked = |entry: &Value| entry.to_string().contains("oauth2/revoke");
    assert!(world.journal("x", "ada").await.iter().any(revoked), "{:#?}", world.journal("x", "ada").await);

    // Nothing was published, and nothing says so.
    let gone = format!("/posts/{}", alone["id"].as_str().unwrap());
    let edited = request(&world, Method::PATCH, &gone).json(&json!({ "content": "Later" }));
    let (_, problem) = fail(edited, 409, "publishing_started").await;
    let reason = "the post has failed (the account was disconnected) and can't be changed any more; create another one";
    assert_eq!(problem["detail"], reason);
    let own = format!("{gone}/targets/{}/retry", target(&alone, "x")["id"].as_str().unwrap());
    for retried in [own, format!("{gone}/retry")] {
        let (_, problem) = fail(request(&world, Method::POST, &retried), 409, "conflict").await;
        assert!(problem["detail"].as_str().unwrap().contains("(the account was disconnected)"), "{problem}");
    }

    // A draft whose only account is disconnected can not be released.
    let release = json!({ "is_draft": false });
    let draft_path = format!("/posts/{}", draft["id"].as_str().unwrap());
    fail(request(&world, Method::PATCH, &draft_path).json(&release), 422, "account_not_found").await;
    assert_eq!(world.connect("x", "ada").await, ada, "reconnecting keeps the id");
    let (status, released) = world.call(Method::PATCH, &draft_path, Some(&release)).await;
    assert_eq!(status, 200, "{released}");
    assert_eq!(world.ended(&released).await["status"], "published");
}

/// Disconnects an account after the worker that was publishing to it was killed.
async fn removed_while_publishing(when: &str) -> (World, Value) {
    let mut world = world().running(&["api", "worker"]).start().await;
    let id = world.connect("x", "ada").await;
    let hold = json!({ "platform": "x", "account": "ada", "method": "POST", "path_prefix": "/2/tweets", "when": when });
    let hold = world.hold(hold).await;
    let post = world.post(json!({ "content": "Under way", "accounts": ["ada"] })).await;
    hold.until_held().await;
    world.kill("worker").await;
    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{id}"), None).await;
    assert_eq!(status, 200);
    let open = world.get(&format!("/posts/{}", post["id"].as_str().unwrap())).await;
    assert_eq!(open["status"], "publishing", "a target that may be live is not canceled: {open:#}");
    hold.release().await;
    world.run("worker").await;
    let ended = world.ended(&post).await;
    erased(&world, &id).await;
    (world, ended)
}

#[tokio::test]
async fn a_post_published_while_its_account_is_disconnected_is_located() {
    let (world, ended) = removed_while_publishing("after").await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    assert!(ended["targets"][0]["platform_post_url"].is_string());
    assert_eq!(world.accepted("x", "ada").await, 1);
}

#[tokio::test]
async fn a_post_not_sent_before_its_account_is_disconnected_is_never_published() {
    let (world, ended) = removed_while_publishing("before").await;
    assert_eq!(
        (&ended["status"], &ended["targets"][0]["status"]),
        (&json!("failed"), &json!("dead")),
        "{ended:#}"
    );
    assert_eq!(world.accepted("x", "ada").await, 0);
}

#[tokio::test]
async fn the_limits_of_an_account_are_told_by_its_platform_or_counted() {
    let world = world().approved().platforms(&["threads", "reddit", "x"]).start().await;
    let threads = world.connect("threads", "ada").await;
    let reddit = world.connect("reddit", "ada").await;
    let x = world.connect("x", "ada").await;
    let limits = async |account: &str| world.get(&format!("/social-accounts/{account}/limits")).await;
    let named = |limits: &Value, name: &str| {
        let all = limits["limits"].as_array().unwrap();
        all.iter().find(|limit| limit["name"] == name).unwrap().clone()
    };
    let before = limits(&threads).await;
    assert_eq!((&before["rests_until"], &before["next_possible_at"]), (&Value::Null, &Value::Null));
    let shown = |limit: &Value| {
        ["used", "limit", "remaining", "window_seconds", "source"].map(|name| limit[name].clone())
    };
    let posts = named(&before, "posts");
    assert_eq!(shown(&posts), [json!(0), json!(250), json!(250), json!(86_400), json!("platform")]);
    assert_eq!(posts["resets_at"], Value::Null);
    assert_eq!(shown(&named(&before, "replies"))[1], 1000);
    let requests = named(&limits(&reddit).await, "requests");
    assert_eq!((&requests["source"], &requests["window_seconds"]), (&json!("observed"), &json!(600)));
    assert!(requests["resets_at"].is_string() && requests["used"].as_u64().unwrap() > 0, "{requests:#}");

    let post = world.post(json!({ "content": "One of a few", "accounts": [threads, x] })).await;
    world.ended(&post).await;
    let posts = named(&limits(&threads).await, "posts");
    assert_eq!(shown(&posts)[..3], [json!(1), json!(250), json!(249)]);
    assert!(posts["resets_at"].is_string(), "known from our own count: {posts:#}");
    let counted = limits(&x).await;
    let posts = named(&counted, "posts");
    assert_eq!(shown(&posts), [json!(1), json!(100), json!(99), json!(900), json!("counted")]);
    assert_eq!(counted["next_possible_at"], Value::Null);

    // The limit is used up by what was published within the window.
    let more = format!(
        "insert into publications (target_id, position, org_id, mode, platform_id, published_at)
         select u.target_id, n, u.org_id, u.mode, n::text, u.published_at from publications u
           join targets t on t.id = u.target_id, generate_series(1, 99) n where t.account_id = '{x}'"
    );
    tests::sql(&world.db, &more).await;
    let full = limits(&x).await;
    let posts = named(&full, "posts");
    assert_eq!(shown(&posts)[..3], [json!(100), json!(100), json!(0)]);
    assert_eq!(full["next_possible_at"], posts["resets_at"]);

    // A platform that refuses is a problem document.
    world.revoke_grants("threads", "ada").await;
    let path = format!("/social-accounts/{threads}/limits");
    let (status, problem) = world.call(Method::GET, &path, None).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("unprocessable")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("threads") && detail.contains("connect it again"), "{detail}");
    let nobody = format!("/social-accounts/{}/limits", uuid::Uuid::now_v7());
    assert_eq!(world.call(Method::GET, &nobody, None).await.0.as_u16(), 404);
}

#[tokio::test]
async fn an_account_that_can_take_no_post_at_the_wanted_time_is_a_warning() {
    let world = world().start().await;
    let ada = world.connect("x", "ada").await;
    let bob = world.connect("x", "bob").await;
    let warned = async |at: DateTime<Utc>| {
        let body = json!({ "content": "Soon", "accounts": [ada, bob], "scheduled_at": domain::event::timestamp(at) });
        let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!((status.as_u16(), &verdict["valid"]), (200, &json!(true)), "{verdict:#}");
        let issues = verdict["issues"].as_array().unwrap().clone();
        for issue in &issues {
            assert_eq!(
                (&issue["severity"], &issue["code"]),
                (&json!("warning"), &json!("account_exhausted"))
            );
            assert_eq!((&issue["account"], &issue["path"]), (&json!(ada), &json!(["accounts", 0])));
        }
        issues.len()
    };
    let now = tests::now();
    assert_eq!(warned(now).await, 0);
    let until = now + TimeDelta::hours(2);
    store::publishing::rest_account(&world.db, world.owner, ada.parse().unwrap(), until).await.unwrap();
    assert_eq!((warned(now).await, warned(until + TimeDelta::minutes(1)).await), (1, 0));
    let limits = world.get(&format!("/social-accounts/{ada}/limits")).await;
    let until: Value = json!(domain::event::timestamp(until));
    assert_eq!((&limits["rests_until"], &limits["next_possible_at"]), (&until, &until));

    // As many posts as X takes in 15 minutes are planned.
    let due = now + TimeDelta::days(400);
    let times = [due, due - TimeDelta::days(1)].map(domain::event::timestamp);
    // Every other post has a time of its own on X.
    let post = |n: usize| {
        json!({
            "content": format!("Post {n}"), "accounts": [ada], "scheduled_at": times[n % 2],
            "config": { "x": { "scheduled_at": times[0] } },
        })
    };
    for batch in 0..5 {
        let posts: Vec<_> = (0..20).map(|n| post(20 * batch + n)).collect();
        let (status, _) = world.call(Method::POST, "/posts/batch", Some(&json!({ "posts": posts }))).await;
        assert_eq!(status.as_u16(), 207);
        let expected = usize::from(batch == 4);
        assert_eq!(warned(due + TimeDelta::minutes(14)).await, expected, "{batch}");
    }
    assert_eq!(
        (warned(due - TimeDelta::minutes(1)).await, warned(due + TimeDelta::minutes(15)).await),
        (0, 0)
    );
}

/// TikTok's inbox takes five posts a day, while its limit of all posts is far away.
#[tokio::test]
async fn a_limit_of_some_posts_concerns_those_only() {
    let world = world().approved().platforms(&["tiktok"]).start().await;
    // TikTok begins six posts a minute; here all of them count for the limit of the day.
    world.set_sandbox(json!({ "limits": { "tiktok.inits": 1000 } })).await;
    let ada = world.connect("tiktok", "ada").await;
    let medium = world.medium("a.mp4", None, film(4000, 64 << 10)).await;
    let post = |settings: Value| {
        let own = json!({ "tiktok": settings });
        let container = json!({ "content": "Dawn", "media": [{ "id": medium["id"] }] });
        json!({ "containers": [container], "accounts": [ada], "config": own })
    };
    let inbox = post(json!({ "post_mode": "MEDIA_UPLOAD" }));
    let direct = post(json!({ "privacy_level": "PUBLIC_TO_EVERYONE" }));
    let is_warned = async |body: &Value| {
        let (status, verdict) = world.call(Method::POST, "/posts/validate", Some(body)).await;
        assert_eq!((status.as_u16(), &verdict["valid"]), (200, &json!(true)), "{verdict:#}");
        let issues = verdict["issues"].as_array().unwrap().iter();
        let told: Vec<_> = issues.filter(|issue| issue["code"] == "account_exhausted").collect();
        assert!(
            told.iter().all(|issue| issue["message"].as_str().unwrap().contains("5 inbox posts")),
            "{told:?}"
        );
        !told.is_empty()
    };
    let inbox_posts = async || {
        let limits = world.get(&format!("/social-accounts/{ada}/limits")).await;
        assert_eq!(limits["next_possible_at"], Value::Null, "{limits:#}");
        let all = limits["limits"].as_array().unwrap();
        let limit = all.iter().find(|limit| limit["name"] == "inbox_posts").unwrap();
        (limit["used"].as_u64().unwrap(), limit["remaining"].as_u64().unwrap())
    };
    assert!(!is_warned(&inbox).await && inbox_posts().await == (0, 5));

    // A setting of the account makes one for the inbox as well.
    let of_account = post(json!({ "accounts": { ada.as_str(): { "post_mode": "MEDIA_UPLOAD" } } }));
    for one in [&direct, &of_account, &inbox] {
        assert_eq!(world.ended(&world.post(one.clone()).await).await["status"], "published");
    }
    assert_eq!(inbox_posts().await, (2, 3));
    let soon = domain::event::timestamp(tests::now() + TimeDelta::hours(1));
    for nth in 0..3 {
        let mut planned = inbox.clone();
        planned["scheduled_at"] = json!(soon);
        planned["containers"][0]["content"] = json!(format!("Dawn {nth}"));
        world.post(planned).await;
    }
    let at_the_time = |body: &Value| {
        let mut body = body.clone();
        body["scheduled_at"] = json!(soon);
        body
    };
    for one in [&inbox, &of_account] {
        assert!(is_warned(&at_the_time(one)).await && !is_warned(one).await, "{one:#}");
    }
    assert!(!is_warned(&at_the_time(&direct)).await);

    // With five in the inbox there is still room for other posts.
    for nth in 3..6 {
        let mut more = inbox.clone();
        more["containers"][0]["content"] = json!(format!("Dusk {nth}"));
        assert_eq!(world.ended(&world.post(more).await).await["status"], "published");
    }
    assert_eq!(inbox_posts().await, (5, 0));
    assert!(is_warned(&inbox).await && !is_warned(&direct).await);

    // One too many waits by itself.
    let mut more = inbox.clone();
    more["containers"][0]["content"] = json!("One too many");
    let path = format!("/posts/{}", world.post(more).await["id"].as_str().unwrap());
    let is_full = |post: &Value| {
        let target = &post["targets"][0];
        target["error_code"] == "rate_limited"
            && target["error_message"].as_str().unwrap().contains("pending shares")
    };
    world.until_at(&path, "a full inbox", is_full).await;
    let mut other = direct.clone();
    other["containers"][0]["content"] = json!("Not for the inbox");
    assert_eq!(world.ended(&world.post(other).await).await["status"], "published");
    let limits = world.get(&format!("/social-accounts/{ada}/limits")).await;
    assert_eq!(limits["rests_until"], Value::Null, "{limits:#}");
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, 200);
}
