//! Meta's simulated platforms from outside: their refusals and wording.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says so by panicking")]

extern crate fanfare_sandbox as sandbox;

use chrono::{DateTime, Utc};
use reqwest::{Client, Method};
use sandbox::{AppStatus, Connected, Options, Sandbox, serve};
use serde_json::{Value, json};
use std::net::TcpListener;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[expect(clippy::disallowed_methods, reason = "a test is a composition root of its own")]
fn clock() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}

struct World {
    sandbox: Sandbox,
    root: String,
    http: Client,
}

impl World {
    async fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let sandbox = Sandbox::open(Options { data: None, clock, app: AppStatus::New }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(sandbox.clone(), listener, std::future::pending()));
        #[expect(clippy::disallowed_methods, reason = "the test stands outside, as a client library does")]
        let http = Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let world = Self { sandbox, root, http };
        world.settings(json!({ "processing_ms": 0, "lag_ms": 0 })).await;
        world
    }

    async fn settings(&self, settings: Value) {
        let reply = self.http.post(format!("{}/_settings", self.root)).json(&settings).send().await.unwrap();
        assert_eq!(reply.status(), 200);
    }

    fn user(&self, platform: &str, host: &'static str) -> User<'_> {
        let connected = self.sandbox.connect(platform, "ada").unwrap();
        User { world: self, host, token: connected.grant.access_token.clone(), connected }
    }
}

struct User<'a> {
    world: &'a World,
    host: &'static str,
    token: String,
    connected: Connected,
}

impl User<'_> {
    async fn ask(&self, method: Method, path: &str, form: &[(&str, &str)]) -> (u16, Value) {
        let call = self.world.http.request(method, format!("{}/{}{path}", self.world.root, self.host));
        let call = call.query(&[("access_token", &self.token)]);
        let reply = if form.is_empty() { call } else { call.form(form) }.send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, &[]).await.1
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        self.ask(Method::POST, path, form).await.1
    }

    fn app(&self) -> (String, String) {
        let app = self.connected.app.clone().unwrap();
        (app.client_id, app.client_secret.unwrap())
    }
}

/// Serves these bytes and returns their address.
async fn offer(bytes: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/file", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut line, _)) = listener.accept().await {
            let mut request = vec![0; 8 * 1024];
            let _ = line.read(&mut request).await;
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
            let _ = line.write_all(&[head.as_bytes(), bytes].concat()).await;
        }
    });
    address
}

/// Returns the first bytes of a JPEG of this size; no more is inspected.
fn jpeg(width: u16, height: u16) -> &'static [u8] {
    let (w, h) = (width.to_be_bytes(), height.to_be_bytes());
    let frame = [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, h[0], h[1], w[0], w[1], 1, 1, 0x11, 0, 0xff, 0xd9];
    Box::leak(Box::new(frame))
}

/// Returns code and subcode of an error.
fn code(answer: &Value) -> (Value, u64) {
    (answer["error"]["code"].clone(), answer["error"]["error_subcode"].as_u64().unwrap_or(0))
}

fn id(answer: &Value) -> String {
    answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn threads_publishes_a_container_once() {
    let world = World::new().await;
    let ada = world.user("threads", "graph.threads.net/v1.0");
    let made = id(&ada.post("/me/threads", &[("media_type", "TEXT"), ("text", "a #topic here")]).await);
    assert_eq!(ada.get(&format!("/{made}/?fields=status,error_message")).await["status"], "FINISHED");
    let live = id(&ada.post("/me/threads_publish", &[("creation_id", &made)]).await);
    assert_eq!(ada.get(&format!("/{made}?fields=status")).await["status"], "PUBLISHED");
    assert_eq!(code(&ada.post("/me/threads_publish", &[("creation_id", &made)]).await), (json!(100), 0));
    let post = ada.get(&format!("/{live}?fields=text,topic_tag,permalink,shortcode")).await;
    assert_eq!((&post["text"], &post["topic_tag"]), (&json!("a topic here"), &json!("topic")));
    let page = post["permalink"].as_str().unwrap().replace("https:/", &world.root);
    assert_eq!(world.http.get(page).send().await.unwrap().status(), 200);

    let reply = [("media_type", "TEXT"), ("text", "and on"), ("reply_to_id", live.as_str())];
    let reply = id(&ada.post("/me/threads", &reply).await);
    let reply = id(&ada.post("/me/threads_publish", &[("creation_id", &reply)]).await);
    assert_eq!(ada.get(&format!("/{live}/replies?fields=text")).await["data"][0]["id"], reply);
    let own = ada.get("/me/replies?fields=replied_to,root_post").await;
    assert_eq!(own["data"][0]["replied_to"]["id"], live);
    let list = ada.get("/me/threads?fields=id&limit=1").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    let after = list["paging"]["cursors"]["after"].as_str().unwrap();
    assert_eq!(ada.get(&format!("/me/threads?after={after}")).await, json!({ "data": [] }));
    let gone = ada.ask(Method::DELETE, &format!("/{live}"), &[]).await;
    assert_eq!(gone, (200, json!({ "success": true, "deleted_id": live })));
    assert_eq!(code(&ada.get(&format!("/{live}")).await), (json!(100), 33));
}

#[tokio::test]
async fn threads_refuses_what_it_documents() {
    let world = World::new().await;
    let ada = world.user("threads", "graph.threads.net");
    let long = "a".repeat(501);
    let links: Vec<String> = (0..6).map(|n| format!("https://example.com/{n}")).collect();
    let text = ("media_type", "TEXT");
    let image = ("media_type", "IMAGE");
    for (form, expected) in [
        (vec![("text", "a")], (json!(100), 0)),
        (vec![text], (json!(100), 0)),
        (vec![text, ("text", long.as_str())], (json!(100), 0)),
        (vec![text, ("text", &links.join(" "))], (json!("THREADS_API__LINK_LIMIT_EXCEEDED"), 0)),
        (vec![text, ("text", "a"), ("topic_tag", "a.b")], (json!(100), 0)),
        (vec![text, ("text", "a"), ("topic_tag", "sandbox-forbidden")], (json!(100), 4_279_071)),
        (vec![text, ("text", "a"), ("reply_control", "nobody")], (json!(100), 0)),
        (vec![text, ("text", "a"), ("reply_to_id", "17")], (json!(100), 33)),
        (vec![image, ("text", "a")], (json!(100), 0)),
        (vec![image, ("image_url", "http://127.0.0.1:1/a.png")], (json!(9004), 2_207_052)),
        (vec![image, ("image_url", "ftp://example.com/a.png")], (json!(9004), 2_207_052)),
        (vec![("media_type", "CAROUSEL"), ("children", "1")], (json!(100), 0)),
        (vec![("media_type", "CAROUSEL"), ("children", "1,2")], (json!(100), 33)),
    ] {
        let (status, answer) = ada.ask(Method::POST, "/me/threads", &form).await;
        assert_eq!((status, code(&answer)), (400, expected), "{form:?}: {answer}");
    }
    assert_eq!(
        code(&ada.post("/me/threads_publish", &[("creation_id", "17")]).await),
        (json!(24), 4_279_009)
    );
    assert_eq!(code(&ada.get("/me?fields=nonsense").await), (json!(100), 0));

    // A video that can't be fetched fails while it is processed.
    let video = [("media_type", "VIDEO"), ("video_url", "http://127.0.0.1:1/a.mp4")];
    let video = id(&ada.post("/me/threads", &video).await);
    let stands = ada.get(&format!("/{video}?fields=status,error_message")).await;
    assert_eq!(
        (&stands["status"], &stands["error_message"]),
        (&json!("ERROR"), &json!("FAILED_DOWNLOADING_VIDEO"))
    );
    world.settings(json!({ "processing_ms": 60_000 })).await;
    assert_eq!(ada.get(&format!("/{video}?fields=status")).await["status"], "IN_PROGRESS");
    assert_eq!(
        code(&ada.post("/me/threads_publish", &[("creation_id", &video)]).await),
        (json!(24), 4_279_009)
    );

    world.settings(json!({ "limits": { "threads.posts": 1 } })).await;
    for expected in [Value::Null, json!(9)] {
        let made = id(&ada.post("/me/threads", &[text, ("text", "a")]).await);
        let answer = ada.post("/me/threads_publish", &[("creation_id", &made)]).await;
        assert_eq!(answer["error"]["code"], expected, "{answer}");
    }
    let limits = ada.get("/me/threads_publishing_limit?fields=quota_usage,config,reply_quota_usage").await;
    let quota = json!({ "quota_total": 1, "quota_duration": 86_400 });
    assert_eq!(limits["data"][0], json!({ "quota_usage": 1, "config": quota, "reply_quota_usage": 0 }));
}

#[tokio::test]
async fn a_token_of_metas_is_told_dead_by_its_subcode() {
    let world = World::new().await;
    let ada = world.user("threads", "graph.threads.net");
    let renew = "/refresh_access_token?grant_type=th_refresh_token";
    let fresh = ada.get(renew).await;
    assert_eq!(fresh["token_type"], "bearer");
    let young =
        User { token: fresh["access_token"].as_str().unwrap().to_owned(), ..world.user("threads", ada.host) };
    assert_eq!(code(&young.get(renew).await), (json!(10), 0), "it is not a day old");
    let (client, secret) = ada.app();
    let form = [
        ("client_id", client.as_str()),
        ("client_secret", secret.as_str()),
        ("grant_type", "authorization_code"),
        ("redirect_uri", "https://example.com"),
        ("code", "made-up"),
    ];
    let refused = ada.post("/oauth/access_token", &form).await;
    assert_eq!((&refused["error_type"], &refused["code"]), (&json!("OAuthException"), &json!(400)));

    for (what, subcode) in [("expire", 463), ("revoke", 458)] {
        let path = format!("{}/_accounts/threads/ada/tokens/{what}", world.root);
        assert_eq!(world.http.post(path).send().await.unwrap().status(), 204);
        let url = format!("{}/graph.threads.net/me", world.root);
        let reply = world.http.get(url).bearer_auth(&ada.token).send().await.unwrap();
        assert!(reply.headers()["www-authenticate"].to_str().unwrap().contains("invalid_token"));
        assert_eq!(code(&reply.json().await.unwrap()), (json!(190), subcode));
        assert_eq!(code(&ada.get(renew).await), (json!(190), subcode));
    }
    let stranger = User { token: "made-up".into(), ..world.user("threads", ada.host) };
    assert_eq!(code(&stranger.get("/me").await), (json!(190), 0));
}

#[tokio::test]
async fn instagram_publishes_a_container_once() {
    let world = World::new().await;
    let ada = world.user("instagram", "graph.instagram.com/v25.0");
    let picture = offer(jpeg(1080, 1080)).await;
    let me = ada.get("/me?fields=user_id,username,account_type").await;
    assert_eq!(me["user_id"], ada.connected.identity.profile.network_unique_id);
    let item = [("image_url", picture.as_str()), ("is_carousel_item", "true"), ("alt_text", "gray")];
    let items = [id(&ada.post("/me/media", &item).await), id(&ada.post("/me/media", &item).await)];
    let whole = [("media_type", "CAROUSEL"), ("children", &items.join(",")), ("caption", "two of them")];
    let whole = id(&ada.post("/me/media", &whole).await);
    assert_eq!(ada.get(&format!("/{whole}?fields=status_code")).await["status_code"], "FINISHED");
    let live = id(&ada.post("/me/media_publish", &[("creation_id", &whole)]).await);
    assert_eq!(ada.get(&format!("/{whole}?fields=status_code")).await["status_code"], "PUBLISHED");
    assert_eq!(code(&ada.post("/me/media_publish", &[("creation_id", &whole)]).await), (json!(100), 0));
    let post =
        ada.get(&format!("/{live}?fields=caption,media_type,permalink,children{{media_url,alt_text}}")).await;
    assert_eq!((&post["caption"], &post["media_type"]), (&json!("two of them"), &json!("CAROUSEL_ALBUM")));
    assert_eq!(post["children"]["data"][1]["alt_text"], "gray");
    let file = post["children"]["data"][0]["media_url"].as_str().unwrap().replace("https:/", &world.root);
    assert_eq!(world.http.get(file).send().await.unwrap().bytes().await.unwrap().len(), 17);
    let page = post["permalink"].as_str().unwrap().replace("https:/", &world.root);
    assert_eq!(world.http.get(page).send().await.unwrap().status(), 200);

    let comment = id(&ada.post(&format!("/{live}/comments"), &[("message", "first")]).await);
    let told = ada.get(&format!("/{comment}?fields=text,from,media{{permalink}}")).await;
    assert_eq!((&told["text"], &told["media"]["permalink"]), (&json!("first"), &post["permalink"]));
    assert_eq!(ada.get(&format!("/{live}/comments")).await["data"][0]["id"], comment);
    let insights = ada.get(&format!("/{live}/insights?metric=[\"comments\",\"reach\"]")).await;
    assert_eq!(insights["data"][0]["values"][0]["value"], 1);
    assert_eq!(code(&ada.get(&format!("/{live}/insights?metric=views,impressions")).await), (json!(100), 0));
    let (_, kept) = ada.ask(Method::DELETE, &format!("/{live}"), &[]).await;
    assert_eq!(code(&kept), (json!(100), 33), "this login can't remove posts");
}

#[tokio::test]
async fn instagram_refuses_what_it_documents() {
    let world = World::new().await;
    let ada = world.user("instagram", "graph.instagram.com");
    let (square, wide) = (offer(jpeg(1080, 1080)).await, offer(jpeg(2000, 500)).await);
    let png = offer(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x06\0\0\0").await;
    let long = "a".repeat(2_201);
    let image = ("image_url", square.as_str());
    for (form, expected) in [
        (vec![("caption", "a")], (100, 0)),
        (vec![("image_url", png.as_str())], (36_001, 2_207_005)),
        (vec![("image_url", wide.as_str())], (36_003, 2_207_009)),
        (vec![("image_url", "http://127.0.0.1:1/a.jpg")], (9004, 2_207_052)),
        (vec![image, ("caption", long.as_str())], (36_004, 2_207_010)),
        (vec![image, ("collaborators", r#"["a","b","c","d"]"#)], (100, 0)),
        (vec![image, ("is_carousel_item", "true"), ("caption", "a")], (100, 0)),
        (vec![image, ("user_tags", r#"[{"username":"bob","x":2}]"#)], (100, 2_207_035)),
        (vec![("media_type", "VIDEO"), ("video_url", "http://127.0.0.1:1/a.mp4")], (100, 0)),
        (vec![("media_type", "CAROUSEL"), ("children", "1")], (100, 2_207_028)),
        (vec![("media_type", "CAROUSEL"), ("children", r#"["1","2"]"#)], (24, 2_207_008)),
        (vec![("media_type", "FILM")], (100, 2_207_023)),
    ] {
        let (status, answer) = ada.ask(Method::POST, "/me/media", &form).await;
        let (code, subcode) = expected;
        assert_eq!((status, self::code(&answer)), (400, (json!(code), subcode)), "{form:?}: {answer}");
    }
    let reel = [("media_type", "REELS"), ("video_url", "http://127.0.0.1:1/a.mp4")];
    let reel = id(&ada.post("/me/media", &reel).await);
    let stands = ada.get(&format!("/{reel}?fields=status_code,status")).await;
    assert_eq!(stands["status_code"], "ERROR");
    assert!(stands["status"].as_str().unwrap().contains("2207077"), "{stands}");
    world.settings(json!({ "processing_ms": 60_000 })).await;
    assert_eq!(
        code(&ada.post("/me/media_publish", &[("creation_id", &reel)]).await),
        (json!(9007), 2_207_027)
    );
    assert_eq!(code(&ada.post("/me/media_publish", &[("creation_id", "17")]).await), (json!(24), 2_207_008));

    world.settings(json!({ "limits": { "instagram.posts": 1 } })).await;
    for expected in [Value::Null, json!(9)] {
        let made = id(&ada.post("/me/media", &[image]).await);
        let answer = ada.post("/me/media_publish", &[("creation_id", &made)]).await;
        assert_eq!(answer["error"]["code"], expected, "{answer}");
    }
    let limits = ada.get("/me/content_publishing_limit?fields=quota_usage,config").await;
    assert_eq!(limits["data"][0]["quota_usage"], 1);
}

/// Logs in at Facebook's dialog, grants these Pages, and returns the code.
async fn login(world: &World, pages: &str, scope: &str) -> String {
    let dialog = format!("{}/www.facebook.com/v26.0/dialog/oauth", world.root);
    let form = [
        ("client_id", "1000000000000001"),
        ("redirect_uri", "https://example.com/back"),
        ("scope", scope),
        ("state", "s"),
        ("username", pages),
        ("decision", "allow"),
    ];
    let reply = world.http.post(dialog).form(&form).send().await.unwrap();
    assert_eq!(reply.status(), 302, "{:?}", reply.text().await);
    let location = reply.headers()["location"].to_str().unwrap().to_owned();
    let url = reqwest::Url::parse(&location).unwrap();
    assert!(location.ends_with("#_=_"));
    url.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned()
}

#[tokio::test]
async fn facebook_gives_a_token_for_each_page_that_was_ticked() {
    let world = World::new().await;
    let scopes = "pages_show_list,pages_manage_posts,pages_read_engagement";
    let code = login(&world, "ada, bob", scopes).await;
    let nobody = User { token: String::new(), ..world.user("facebook", "graph.facebook.com/v26.0") };
    let (client, secret) = nobody.app();
    let ask = |redirect: &str, code: &str| {
        format!(
            "/oauth/access_token?client_id={client}&client_secret={secret}&redirect_uri={redirect}&code={code}"
        )
    };
    let other = nobody.get(&ask("https://example.com/other", &code)).await;
    assert_eq!(self::code(&other), (json!(100), 36_008));
    let short = nobody.get(&ask("https://example.com/back", &code)).await;
    let used = nobody.get(&ask("https://example.com/back", &code)).await;
    assert_eq!(self::code(&used), (json!(100), 36_009));
    let exchange = format!(
        "/oauth/access_token?grant_type=fb_exchange_token&client_id={client}&client_secret={secret}&fb_exchange_token={}",
        short["access_token"].as_str().unwrap()
    );
    let long = nobody.get(&exchange).await;
    assert!(long["expires_in"].as_i64().unwrap() > 5_000_000, "{long}");
    let person =
        User { token: long["access_token"].as_str().unwrap().into(), ..world.user("facebook", nobody.host) };
    let inspect = format!("/debug_token?input_token={}&access_token={client}|{secret}", person.token);
    let inspected = nobody.get(&inspect).await;
    let chosen = inspected["data"]["granular_scopes"][1].clone();
    assert_eq!(
        (&chosen["scope"], chosen["target_ids"].as_array().unwrap().len()),
        (&json!("pages_manage_posts"), 2)
    );
    let closed = person.get("/me/businesses").await;
    assert_eq!(self::code(&closed), (json!(200), 0), "it needs business_management");
    let allowed = person.get("/me/permissions").await;
    assert_eq!(allowed["data"][0], json!({ "permission": "pages_show_list", "status": "granted" }));
    let pages = person.get("/me/accounts?fields=id,name,access_token,tasks&limit=1").await;
    assert_eq!(pages["data"][0]["name"], "ada Åkesson");
    assert!(pages["data"][0]["tasks"].as_array().unwrap().contains(&json!("CREATE_CONTENT")));
    // The address of the next page is complete, as Meta's SDK expects it.
    let next = pages["paging"]["next"].as_str().unwrap();
    let next: Value = world.http.get(next).send().await.unwrap().json().await.unwrap();
    assert_eq!(next["data"][0]["name"], "bob Åkesson");
    let id = next["data"][0]["id"].as_str().unwrap();
    let refused = person.post(&format!("/{id}/feed"), &[("message", "a")]).await;
    assert_eq!(self::code(&refused), (json!(200), 0), "a person is no Page");
    let bob = User {
        token: next["data"][0]["access_token"].as_str().unwrap().into(),
        ..world.user("facebook", nobody.host)
    };
    let made = bob.post("/me/feed?fields=permalink_url", &[("message", "from bob")]).await;
    assert!(made["permalink_url"].as_str().unwrap().contains("/posts/"), "{made}");
    let comment = bob.post(&format!("/{}/comments", self::id(&made)), &[("message", "a")]).await;
    assert_eq!(self::code(&comment), (json!(10), 0), "not what was allowed");
    assert_eq!(self::code(&bob.get("/me/accounts").await), (json!(100), 0));
    let wrong = bob.get("/me?appsecret_proof=00").await;
    assert_eq!(self::code(&wrong), (json!(100), 0));
}

#[tokio::test]
async fn facebook_publishes_posts_and_comments() {
    let world = World::new().await;
    let ada = world.user("facebook", "graph.facebook.com/v26.0");
    let picture = offer(jpeg(720, 720)).await;
    let photo = [("url", picture.as_str()), ("published", "false"), ("alt_text_custom", "gray")];
    let photos = [id(&ada.post("/me/photos", &photo).await), id(&ada.post("/me/photos", &photo).await)];
    let attached = [
        ("message", "two"),
        ("attached_media[0]", &format!(r#"{{"media_fbid":"{}"}}"#, photos[0])),
        ("attached_media[1]", &format!(r#"{{"media_fbid":"{}"}}"#, photos[1])),
    ];
    let album = id(&ada.post("/me/feed", &attached).await);
    let told =
        ada.get(&format!("/{album}?fields=attachments{{media_type,subattachments}},status_type")).await;
    assert_eq!(told["attachments"]["data"][0]["subattachments"]["data"][1]["target"]["id"], photos[1]);
    assert_eq!(code(&ada.post("/me/feed", &attached).await), (json!(100), 1_366_051));
    let single = ada.post("/me/photos", &[("url", picture.as_str()), ("message", "one")]).await;
    assert!(single["post_id"].is_string(), "{single}");

    for (form, expected) in [
        (vec![("message", " ")], (100, 0)),
        (vec![("link", "nonsense")], (100, 1_609_005)),
        (vec![("link", "https://www.facebook.com/ada")], (100, 1_609_008)),
        (vec![("attached_media", r#"[{"media_fbid":"17"}]"#)], (100, 33)),
    ] {
        let answer = ada.post("/me/feed", &form).await;
        assert_eq!(code(&answer), (json!(expected.0), expected.1), "{form:?}: {answer}");
    }
    let text = id(&ada.post("/me/feed", &[("message", "twice")]).await);
    assert_eq!(code(&ada.post("/me/feed", &[("message", "twice")]).await), (json!(506), 1_455_006));
    let comment = id(&ada.post(&format!("/{text}/comments"), &[("message", "first")]).await);
    let told = ada.get(&format!("/{text}?fields=comments.summary(true).limit(0),shares")).await;
    assert_eq!(told["comments"]["summary"]["total_count"], 1);
    let permalink = ada.get(&format!("/{comment}?fields=permalink_url")).await["permalink_url"].clone();
    let page = permalink.as_str().unwrap().replace("https:/", &world.root);
    assert!(world.http.get(page).send().await.unwrap().text().await.unwrap().contains("first"));
    let dead = ada.get(&format!("/{text}/insights?metric=post_media_view,post_impressions")).await;
    assert_eq!(code(&dead), (json!(100), 0));
    let figures = ada.get(&format!("/{text}/insights?metric=post_media_view,post_clicks")).await;
    assert_eq!(figures["data"].as_array().unwrap().len(), 2);
    assert_eq!(ada.ask(Method::DELETE, &format!("/{text}/"), &[]).await.1["success"], true);
    assert_eq!(code(&ada.get(&format!("/{text}")).await), (json!(100), 33));
    let list = ada.get("/me/published_posts?fields=message&limit=100").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 2, "{list}");

    let soon = (clock().timestamp() + 3_600).to_string();
    let late = (clock().timestamp() + 40 * 86_400).to_string();
    let time = |time: &'static str| ("scheduled_publish_time", time);
    let (soon, late): (&'static str, &'static str) = (soon.leak(), late.leak());
    for form in
        [vec![("message", "a"), time(soon)], vec![("message", "b"), ("published", "false"), time(late)]]
    {
        assert_eq!(code(&ada.post("/me/feed", &form).await), (json!(100), 0), "{form:?}");
    }
    for form in [
        vec![("message", "c"), ("published", "false")],
        vec![("message", "d"), ("published", "false"), time(soon)],
    ] {
        let hidden = id(&ada.post("/me/feed", &form).await);
        let told = ada.get(&format!("/{hidden}?fields=is_published,permalink_url")).await;
        assert_eq!(told["is_published"], false, "{told}");
        let page = told["permalink_url"].as_str().unwrap().replace("https:/", &world.root);
        assert_eq!(world.http.get(page).send().await.unwrap().status(), 404);
    }
    let list = ada.get("/me/published_posts?fields=message&limit=100").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 2, "{list}");
    let link = [("message", "e"), ("link", "https://youtu.be/abc")];
    let link = id(&ada.post("/me/feed", &link).await);
    let told = ada.get(&format!("/{link}?fields=attachments{{media_type,type}}")).await;
    let preview = json!({ "media_type": "video", "type": "video_share_youtube" });
    assert_eq!(told["attachments"]["data"][0], preview);

    world.settings(json!({ "limits": { "facebook.calls": 100 } })).await;
    let url = format!("{}/{}/me?access_token={}", world.root, ada.host, ada.token);
    let reply = world.http.get(url).send().await.unwrap();
    let usage: Value =
        serde_json::from_slice(reply.headers()["x-business-use-case-usage"].as_bytes()).unwrap();
    let usage = &usage[&ada.connected.identity.profile.network_unique_id][0];
    assert_eq!((&usage["type"], &usage["estimated_time_to_regain_access"]), (&json!("pages"), &json!(0)));
    assert!(usage["call_count"].as_u64().unwrap() > 10, "{usage}");
}

/// Backgrounds, carousels of links and drafts, of <https://developers.facebook.com/docs/graph-api/reference/page/feed>.
#[tokio::test]
async fn facebook_judges_what_a_post_in_the_feed_is_made_of() {
    let world = World::new().await;
    let ada = world.user("facebook", "graph.facebook.com/v26.0");
    let card = |n: usize| json!({ "link": format!("https://example.com/{n}"), "picture": "https://example.com/a.jpg" });
    let cards = |count: usize| json!((0..count).map(card).collect::<Vec<_>>()).to_string();
    let (one, five, six, eleven) = (cards(1), cards(5), cards(6), cards(11));
    let own = five.replace("https://example.com/4", "https://www.facebook.com/ada");
    let bare = five.replace(r#","picture":"https://example.com/a.jpg""#, "");
    let (fits, long) = ("é".repeat(130), "é".repeat(131));
    let (background, attached) = (("text_format_preset_id", "106018623298955"), "child_attachments");
    let (hidden, draft) = (("published", "false"), ("unpublished_content_type", "DRAFT"));
    let optimized = ("multi_share_optimized", "true");
    for (form, expected) in [
        (vec![("message", fits.as_str()), background], None),
        (vec![("message", long.as_str()), background], Some(0)),
        (vec![("message", "a"), ("text_format_preset_id", "purple")], Some(0)),
        (vec![("message", "b"), ("link", "https://example.com"), background], Some(0)),
        (vec![("message", "c"), (attached, five.as_str()), background], Some(0)),
        (vec![("message", "d"), (attached, five.as_str())], None),
        (vec![("message", "e"), (attached, one.as_str())], Some(0)),
        (vec![("message", "f"), (attached, six.as_str())], Some(0)),
        (vec![("message", "g"), (attached, six.as_str()), optimized], None),
        (vec![("message", "h"), (attached, eleven.as_str()), optimized], Some(0)),
        (vec![("message", "i"), (attached, own.as_str())], Some(1_609_008)),
        (vec![("message", "j"), (attached, bare.as_str())], Some(0)),
        (vec![("message", "k"), hidden, draft], None),
        (vec![("message", "l"), draft], Some(0)),
        (vec![("message", "m"), hidden, ("unpublished_content_type", "SCHEDULED")], Some(0)),
        // Not a link to Facebook.
        (vec![("message", "n"), ("link", "https://notfacebook.com")], None),
    ] {
        let answer = ada.post("/me/feed", &form).await;
        match expected {
            None => drop(id(&answer)),
            Some(subcode) => assert_eq!(code(&answer), (json!(100), subcode), "{form:?}: {answer}"),
        }
    }
    let list = ada.get("/me/published_posts?fields=message,attachments{type,subattachments}&limit=100").await;
    let list = list["data"].as_array().unwrap();
    let texts: Vec<_> = list.iter().map(|post| post["message"].as_str().unwrap()).collect();
    assert_eq!(texts, ["n", "g", "d", &fits], "no draft is public");
    let carousel = &list[2]["attachments"]["data"][0];
    assert_eq!(carousel["type"], "multi_share");
    assert_eq!(carousel["subattachments"]["data"][4]["url"], "https://example.com/4");
}

/// Comments of a published post: <https://developers.facebook.com/docs/instagram-platform/reference/instagram-media>.
#[tokio::test]
async fn instagram_turns_comments_off_and_on() {
    let world = World::new().await;
    let ada = world.user("instagram", "graph.instagram.com/v26.0");
    let picture = offer(jpeg(720, 720)).await;
    let container = id(&ada.post("/me/media", &[("image_url", picture.as_str())]).await);
    let post = id(&ada.post("/me/media_publish", &[("creation_id", container.as_str())]).await);
    let (path, comments) = (format!("/{post}"), format!("/{post}/comments"));
    for odd in [("message", "a"), ("comment_enabled", "no")] {
        assert_eq!(code(&ada.post(&path, &[odd]).await), (json!(100), 0), "{odd:?}");
    }
    let enabled = || async {
        ada.get(&format!("/{post}?fields=is_comment_enabled")).await["is_comment_enabled"].clone()
    };
    assert_eq!(enabled().await, true);
    assert_eq!(ada.post(&path, &[("comment_enabled", "false")]).await["success"], true);
    assert_eq!(enabled().await, false);
    assert_eq!(code(&ada.post(&comments, &[("message", "a")]).await), (json!(10), 0));
    assert_eq!(ada.post(&path, &[("comment_enabled", "true")]).await["success"], true);
    id(&ada.post(&comments, &[("message", "a")]).await);
}

#[tokio::test]
async fn facebook_takes_a_reel_from_where_it_broke_off() {
    let world = World::new().await;
    let ada = world.user("facebook", "graph.facebook.com/v26.0");
    let begun = ada.post("/me/video_reels", &[("upload_phase", "start")]).await;
    let video = begun["video_id"].as_str().unwrap().to_owned();
    let url = begun["upload_url"].as_str().unwrap().replace("https:/", &world.root);
    let film = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x08free";
    let upload = async |offset: usize, bytes: &'static [u8], token: &str| -> Value {
        let call = world.http.post(&url).header("authorization", format!("OAuth {token}"));
        let call = call.header("offset", offset).header("file_size", film.len());
        call.body(bytes).send().await.unwrap().json().await.unwrap()
    };
    let finish = [
        ("upload_phase", "finish"),
        ("video_id", video.as_str()),
        ("video_state", "PUBLISHED"),
        ("description", "a reel"),
    ];
    assert_eq!(upload(0, &film[..20], "made-up").await["debug_info"]["retriable"], false);
    assert_eq!(upload(0, &film[..20], &ada.token).await, json!({ "success": true }));
    assert_eq!(
        ada.get(&format!("/{video}?fields=status")).await["status"]["uploading_phase"]["bytes_transfered"],
        20
    );
    assert_eq!(code(&ada.post("/me/video_reels", &finish).await), (json!(6000), 1_363_030));
    assert_eq!(upload(0, &film[..20], &ada.token).await["debug_info"]["type"], "OffsetInvalidError");
    assert_eq!(upload(20, &film[20..], &ada.token).await, json!({ "success": true }));
    world.settings(json!({ "processing_ms": 60_000 })).await;
    assert_eq!(ada.post("/me/video_reels", &finish).await, json!({ "success": true }));
    assert_eq!(code(&ada.post("/me/video_reels", &finish).await), (json!(100), 0));
    let status = async || ada.get(&format!("/{video}?fields=status,permalink_url")).await;
    assert_eq!(status().await["status"]["video_status"], "processing");
    assert_eq!(ada.get("/me/published_posts").await["data"], json!([]));
    world.settings(json!({ "processing_ms": 0 })).await;
    let done = status().await;
    assert_eq!(done["status"]["publishing_phase"]["publish_status"], "published");
    assert_eq!(done["permalink_url"], format!("/reel/{video}/"));
    let page = format!("{}/www.facebook.com/reel/{video}/", world.root);
    assert!(world.http.get(page).send().await.unwrap().text().await.unwrap().contains("a reel"));

    let start = [("upload_phase", "start"), ("file_size", "40")];
    let begun = ada.post("/me/videos", &start).await;
    assert_eq!((&begun["start_offset"], &begun["end_offset"]), (&json!("0"), &json!("40")));
    let session = begun["upload_session_id"].as_str().unwrap();
    let url = format!("{}/{}/me/videos?access_token={}", world.root, ada.host, ada.token);
    let send = async |bytes: Vec<u8>| -> Value {
        let piece = reqwest::multipart::Part::bytes(bytes).file_name("a.mp4");
        let form = reqwest::multipart::Form::new()
            .text("upload_phase", "transfer")
            .text("upload_session_id", session.to_owned())
            .text("start_offset", "0")
            .part("video_file_chunk", piece);
        world.http.post(&url).multipart(form).send().await.unwrap().json().await.unwrap()
    };
    let short = send(vec![7; 39]).await;
    assert_eq!(code(&short), (json!(6001), 1_363_037), "not what was asked for: {short}");
    assert_eq!(short["error"]["error_data"], json!({ "start_offset": "0", "end_offset": "40" }));
    let early = [("upload_phase", "finish"), ("upload_session_id", session)];
    assert_eq!(code(&ada.post("/me/videos", &early).await), (json!(6000), 1_363_030));
}
