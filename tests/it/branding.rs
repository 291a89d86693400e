//! The branding of the connect pages, from the views of the organization that sets it and of its users.

use crate::{
    api::{fail, key, request},
    world,
};
use ::api::connect::oauth_state::{Key, State};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::{TimeDelta, Timelike};
use domain::{Mode, Owner, StateId, scope::Scope};
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::accounts::{
    oauth_states::Begun,
    pending_logins::{self, Digest, Pending},
};
use tests::{
    World,
    login::{arrive, begin, browser, decide, location, walk},
    now,
};
use url::Url;
use uuid::Uuid;

const PATH: &str = "/connect/branding";
/// The pages, and those with a button.
const PAGES: [&str; 6] = ["begin", "choice", "confirm", "success", "failure", "expired"];
const FORMS: [&str; 2] = ["begin", "choice"];

/// Texts for each page, all different, around `text`.
fn pages(text: &str) -> Value {
    let mut pages = json!({});
    for page in PAGES {
        pages[page] = json!({
            "heading": format!("{page} heading {text}"),
            "description": format!("{page} description {text}"),
        });
        if FORMS.contains(&page) {
            pages[page]["button"] = json!(format!("{page} {text}"));
        }
    }
    pages
}

fn acme() -> Value {
    json!({
        "name": "Acme Social",
        "logo_url": "https://cdn.acme.example:8443/logo.svg?v=2",
        "accent_color": "#ffcc00",
        "support_url": "https://acme.example/help",
        "imprint_url": "https://acme.example/imprint",
        "pages": pages("für Sie"),
    })
}

/// Nothing set.
fn default() -> Value {
    let mut pages = json!({});
    for page in PAGES {
        pages[page] = json!({ "heading": null, "description": null });
        if FORMS.contains(&page) {
            pages[page]["button"] = Value::Null;
        }
    }
    json!({
        "name": null, "logo_url": null, "accent_color": null, "support_url": null, "imprint_url": null, "pages": pages,
    })
}

async fn set(world: &World, branding: Value) -> Value {
    let (status, answer) = world.call(Method::PUT, PATH, Some(&branding)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// A page as a browser gets it.
struct Page {
    /// The part of the branding that its texts are from.
    kind: &'static str,
    status: u16,
    policy: String,
    html: String,
}

impl Page {
    async fn of(kind: &'static str, response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let html = response.text().await.unwrap();
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8", "{html}");
        assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
        assert_eq!(headers[header::CACHE_CONTROL], "no-store");
        assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        Self { kind, status, policy, html }
    }

    /// Checks that the policy allows this page's style and the images of one origin, if any, and nothing else.
    fn allows_images_of(&self, origin: Option<&str>) {
        let style = self.html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let style = BASE64_STANDARD.encode(Sha256::digest(style));
        let images = origin.map(|origin| format!("; img-src {origin}")).unwrap_or_default();
        let expected = format!("default-src 'none'; style-src 'sha256-{style}'{images}; form-action 'self'");
        let rest =
            self.policy.strip_prefix(&expected).unwrap_or_else(|| panic!("{}: {}", self.kind, self.policy));
        assert!(rest.ends_with("; base-uri 'none'; frame-ancestors 'none'"), "{rest}");
        assert_eq!(rest.matches(';').count(), 2, "{rest}");
    }
}

/// Visits every page of the connect flow. The name of the platform's user is `ada`.
async fn visit(world: &World) -> Vec<Page> {
    let mut seen = Vec::new();
    let show = async |url: Url| browser().get(url).send().await.unwrap();
    let choose = |token: &str| Url::parse(&format!("{}/connect/choose/{token}", world.base)).unwrap();

    let hosted = begin(world, "x", json!({ "hosted": true, "tenant_id": "t-1" })).await;
    seen.push(Page::of("begin", show(hosted.clone()).await).await);
    // Back in another browser than the one in which the button was pressed.
    let origin = Url::parse(&world.base).unwrap().origin().ascii_serialization();
    let pressed =
        browser().post(hosted).header("sec-fetch-site", "same-origin").header(header::ORIGIN, origin);
    let pressed = pressed.send().await.unwrap();
    let asked: Url = pressed.headers()[header::LOCATION].to_str().unwrap().parse().unwrap();
    let elsewhere = decide(&asked, "ada", "allow").await.unwrap();
    seen.push(Page::of("failure", arrive(&elsewhere).await).await);

    let end = async |platform: &str, names: &str, decision: &str| {
        let asked = begin(world, platform, json!({})).await;
        arrive(&decide(&asked, names, decision).await.unwrap()).await
    };
    seen.push(Page::of("success", end("x", "ada", "allow").await).await);
    seen.push(Page::of("failure", end("x", "ada", "deny").await).await);

    let choice = location(&end("facebook", "ada,bob", "allow").await);
    let shown = Page::of("choice", show(choice.clone()).await).await;
    let offers = shown.html.split("name=\"page\" value=\"").skip(1);
    let ids: Vec<_> = offers.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    seen.push(shown);
    let submit = async |ids: &[&str]| {
        let form: Vec<_> = ids.iter().map(|id| ("page", *id)).collect();
        browser().post(choice.clone()).form(&form).send().await.unwrap()
    };
    seen.push(Page::of("choice", submit(&[]).await).await);
    seen.push(Page::of("success", submit(&[&ids[0]]).await).await);
    seen.push(Page::of("failure", submit(&[&ids[1]]).await).await);

    let confirmed = walk(world, "x", "ada", json!({ "confirm": true })).await;
    seen.push(Page::of("confirm", show(choose(&confirmed["token"])).await).await);

    // A state and a selection whose time is over.
    let ended = (now() - TimeDelta::seconds(1)).with_nanosecond(0).unwrap();
    let state = |is_hosted: bool| {
        let id = StateId(Uuid::now_v7());
        Key::derive(&[0; 32]).seal(&State { id, owner: world.owner, expires_at: ended, is_hosted })
    };
    let late = format!("{}/connect/begin/{}", world.base, state(true)).parse().unwrap();
    seen.push(Page::of("expired", show(late).await).await);
    let late = format!("{}/connect/callback?code=a&state={}", world.base, state(false)).parse().unwrap();
    seen.push(Page::of("expired", show(late).await).await);
    let token = Uuid::now_v7().to_string();
    let login = Pending {
        owner: world.owner,
        platform: "facebook".into(),
        network: None,
        tenant_id: None,
        redirect_uri: None,
        offers: Vec::new(),
        selection: None,
        confirm: false,
        account: None,
        begun: Begun::default(),
        expires_at: ended,
    };
    let begun = ended - TimeDelta::minutes(30);
    pending_logins::store(&world.db, Digest::of(&token), &login, &[], begun).await.unwrap();
    // Each new one has old ones deleted.
    let next = Pending { expires_at: now() + TimeDelta::minutes(30), ..login };
    let other = Digest::of(&Uuid::now_v7().to_string());
    pending_logins::store(&world.db, other, &next, &[], now()).await.unwrap();
    seen.push(Page::of("expired", show(choose(&token)).await).await);
    seen
}

#[tokio::test]
async fn a_branding_is_set_read_and_replaced() {
    let world = world().start().await;
    assert_eq!(world.get(PATH).await, default());
    let answer = set(&world, acme()).await;
    assert_eq!(answer, acme());
    assert_eq!(world.get(PATH).await, answer);
    // An answer that was read can be set.
    assert_eq!(set(&world, answer.clone()).await, answer);

    let some = json!({
        "name": "  Acme ", "accent_color": "#FFcc0A", "logo_url": null,
        "pages": { "begin": { "heading": "Hi", "description": " ", "button": "" }, "confirm": null },
    });
    let mut expected = default();
    expected["name"] = json!("Acme");
    expected["accent_color"] = json!("#ffcc0a");
    expected["pages"]["begin"]["heading"] = json!("Hi");
    assert_eq!(set(&world, some).await, expected);
    assert_eq!(world.get(PATH).await, expected);
    assert_eq!(set(&world, json!({})).await, default());
    assert_eq!(world.get(PATH).await, default());
}

#[tokio::test]
async fn each_page_shows_the_branding_of_its_organization() {
    let (ours, theirs) = (world().start().await, world().start().await);
    let branding = set(&ours, acme()).await;
    for page in visit(&ours).await {
        let Page { kind, status, html, .. } = &page;
        let texts = &branding["pages"][kind];
        for (name, text) in texts.as_object().unwrap() {
            let text = text.as_str().unwrap();
            assert!(html.contains(text), "{kind}: {name}: {html}");
        }
        let heading = texts["heading"].as_str().unwrap();
        assert!(html.contains(&format!("<h1 dir=\"auto\">{heading}</h1>")), "{kind}: {html}");
        assert!(html.contains(&format!("{heading} · Acme Social</title>")), "{kind}: {html}");
        let logo = "<img src=\"https://cdn.acme.example:8443/logo.svg?v=2\" alt=\"Acme Social\">";
        assert!(html.contains(logo), "{kind}: {html}");
        for link in ["help", "imprint"] {
            assert!(html.contains(&format!("<a href=\"https://acme.example/{link}\"")), "{kind}: {html}");
        }
        // Black on yellow; the yellow of links is darkened on white paper and stays on dark one.
        let colors = [
            "--lead:#ffcc00;--on-lead:#000000;--link:#8c7000;",
            "(prefers-color-scheme:dark){:root{--link:#ffcc00}}",
        ];
        for color in colors {
            assert!(html.contains(color), "{kind}: {html}");
        }
        page.allows_images_of(Some("https://cdn.acme.example:8443"));
        // Texts that protect the person stay.
        let (expected, fact): (&[u16], &str) = match *kind {
            "begin" => {
                (&[200], "<b dir=\"auto\">Acme Social</b> asks for access to an account of yours on X")
            }
            "choice" => (&[200, 400], "Nothing is connected until you press the button."),
            "confirm" => (&[403], ""),
            "success" => (&[200], "<b>ada"),
            "failure" => (&[400, 409], ""),
            "expired" => (&[400, 404], ""),
            _ => panic!("{kind}"),
        };
        assert!(expected.contains(status) && html.contains(fact), "{kind}: {status} {html}");
    }
    for page in visit(&theirs).await {
        for word in ["Acme", "acme", "für Sie", "<img", "<a ", "ffcc00"] {
            assert!(!page.html.contains(word), "{}: {word}: {}", page.kind, page.html);
        }
        page.allows_images_of(None);
    }
}

#[tokio::test]
async fn a_page_says_what_happened_whatever_the_branding_is() {
    let world = world().start().await;
    let plain: Vec<_> = visit(&world).await;
    set(&world, json!({ "name": "Acme", "pages": pages("") })).await;
    let branded = visit(&world).await;
    let has = |pages: &[Page], kind: &str, words: &str| {
        pages.iter().filter(|page| page.kind == kind && page.html.contains(words)).count()
    };
    for (kind, words, count) in [
        ("begin", "If somebody sent you this link, close the page", 1),
        ("begin", "The account will be connected for <b>t-1</b>", 1),
        ("failure", "access_denied", 1),
        ("failure", "Access was not allowed on X.", 1),
        ("failure", "they wanted to connect your account for themselves", 1),
        ("failure", "Other accounts were selected before", 1),
        ("expired", "state_expired", 2),
        ("choice", "Choose at least one account.", 1),
        ("choice", "Accounts on Facebook", 2),
    ] {
        for pages in [&plain, &branded] {
            assert_eq!(has(pages, kind, words), count, "{kind}: {words}");
        }
    }
    // The name stands above pages without a logo.
    for page in &branded {
        assert!(page.html.contains("<header dir=\"auto\">Acme</header>"), "{}", page.html);
        page.allows_images_of(None);
    }
}

#[tokio::test]
async fn what_an_organization_writes_is_text() {
    let world = world().start().await;
    for attack in [
        "<script>alert(1)</script>",
        "</title></style><script src=//x>",
        "\"><img src=x>",
        "' onload='a",
        "\" onload=\"a",
        "{{ 7*7 }}",
        "&lt;script&gt;",
        "&#60;script",
    ] {
        let mut branding = acme();
        branding["name"] = json!(attack);
        branding["pages"] = pages("");
        for page in PAGES {
            for (_, text) in branding["pages"][page].as_object_mut().unwrap() {
                *text = json!(attack);
            }
        }
        for name in ["logo_url", "support_url", "imprint_url"] {
            branding[name] = json!(format!("https://acme.example/{attack}?{attack}#{attack}"));
        }
        set(&world, branding).await;
        let escaped = attack
            .replace('&', "&#38;")
            .replace('<', "&#60;")
            .replace('>', "&#62;")
            .replace('"', "&#34;")
            .replace('\'', "&#39;");
        let hosted = begin(&world, "x", json!({ "hosted": true })).await;
        let denied = begin(&world, "x", json!({})).await;
        let denied = decide(&denied, "ada", "deny").await.unwrap();
        let pages = [
            Page::of("begin", browser().get(hosted).send().await.unwrap()).await,
            Page::of("failure", arrive(&denied).await).await,
        ];
        for page in pages {
            let html = &page.html;
            // In the title, as the heading and the description, and in the logo's description.
            assert!(html.matches(&escaped).count() >= 4, "{escaped}: {html}");
            assert!(
                !html.contains("<script") && !html.contains("onload=\"") && !html.contains("onload='"),
                "{html}"
            );
            assert_eq!((html.matches("<img").count(), html.matches("<a ").count()), (1, 2), "{html}");
            assert_eq!(html.matches("</style>").count() + html.matches("</title>").count(), 2, "{html}");
            page.allows_images_of(Some("https://acme.example"));
        }
    }
}

#[tokio::test]
async fn an_invalid_branding_is_refused_and_changes_nothing() {
    let world = world().start().await;
    let before = set(&world, acme()).await;
    let long = |length: usize| "ä".repeat(length);
    let on = |page: &str, name: &str, text: &str| json!({ "pages": { page: { name: text } } });
    for (body, path, code) in [
        (json!({ "name": long(61) }), json!(["name"]), "too_big"),
        (json!({ "name": 7 }), json!(["name"]), "invalid_type"),
        (json!({ "name": "a\u{0}" }), json!(["name"]), "custom"),
        (json!({ "name": "a\nb" }), json!(["name"]), "custom"),
        (json!({ "name": "a\u{9b}b" }), json!(["name"]), "custom"),
        (json!({ "name": "\u{202e}emcA" }), json!(["name"]), "custom"),
        (json!({ "name": "a\u{2067}b" }), json!(["name"]), "custom"),
        (json!({ "accent_color": "" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "accent_color": "red" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "accent_color": "#fff" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "accent_color": "#ff00000" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "accent_color": "#ffcc00;}" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "accent_color": "url(//x)" }), json!(["accent_color"]), "invalid_string"),
        (json!({ "logo_url": "" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "/logo.png" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "http://acme.example/a.png" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "data:image/png;base64,AA" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "https://a@acme.example/" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "https://*/" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "https://acme.example;script-src/" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "https://10.0.0.1/a.png" }), json!(["logo_url"]), "invalid_string"),
        (json!({ "logo_url": "https://acme.example/a\nb" }), json!(["logo_url"]), "custom"),
        (
            json!({ "logo_url": format!("https://acme.example/{}", long(2048)) }),
            json!(["logo_url"]),
            "too_big",
        ),
        (json!({ "support_url": "javascript:alert(1)" }), json!(["support_url"]), "invalid_string"),
        (json!({ "support_url": "mailto:a@acme.example" }), json!(["support_url"]), "invalid_string"),
        (json!({ "imprint_url": "http://acme.example" }), json!(["imprint_url"]), "invalid_string"),
        (on("begin", "heading", &long(121)), json!(["pages", "begin", "heading"]), "too_big"),
        (on("expired", "description", &long(501)), json!(["pages", "expired", "description"]), "too_big"),
        (on("choice", "button", &long(41)), json!(["pages", "choice", "button"]), "too_big"),
        (on("failure", "heading", "a\u{202a}"), json!(["pages", "failure", "heading"]), "custom"),
        (on("success", "description", "a\u{1b}[1m"), json!(["pages", "success", "description"]), "custom"),
        (on("choice", "button", "a\rb"), json!(["pages", "choice", "button"]), "custom"),
    ] {
        let (_, problem) = fail(request(&world, Method::PUT, PATH).json(&body), 400, "invalid_request").await;
        let issues = problem["errors"].as_array().unwrap();
        assert_eq!(
            (issues.len(), &issues[0]["path"], issues[0]["code"].as_str().unwrap()),
            (1, &path, code),
            "{body}: {problem}"
        );
    }
    assert_eq!(world.get(PATH).await, before);
    // A page without a button has no words for one.
    assert_eq!(set(&world, on("success", "button", "Go")).await, default());
    // The longest texts, and characters that languages need.
    let texts = json!({ "heading": long(120), "description": long(500), "button": long(40) });
    let most = json!({ "name": "א\u{200f} 👩\u{200d}💻", "pages": { "begin": texts } });
    let answer = set(&world, most).await;
    assert_eq!(answer["pages"]["begin"], texts);
}

#[tokio::test]
async fn only_a_key_of_the_whole_organization_changes_the_branding() {
    let world = world().start().await;
    let before = set(&world, acme()).await;
    let ask = |method: Method, key: &str| {
        let request = world.http.request(method.clone(), format!("{}{PATH}", world.base)).bearer_auth(key);
        if method == Method::PUT { request.json(&json!({ "name": "Evil" })) } else { request }
    };
    let limited = json!({ "name": "Limited", "scopes": ["*"], "tenant_id": "mine" });
    let (_, limited) = world.call(Method::POST, "/api-keys", Some(&limited)).await;
    let client = json!({ "tenant_id": "mine" });
    let (_, client) = world.call(Method::POST, "/client-tokens", Some(&client)).await;
    for (token, code) in [(&limited["key"], "forbidden"), (&client["token"], "insufficient_scope")] {
        for method in [Method::GET, Method::PUT] {
            fail(ask(method, token.as_str().unwrap()), 403, code).await;
        }
    }
    let reader = key(&world, world.owner, &[Scope::NetworksRead]).await;
    assert_eq!(ask(Method::GET, &reader).send().await.unwrap().status(), StatusCode::OK);
    fail(ask(Method::PUT, &reader), 403, "insufficient_scope").await;
    let writer = key(&world, world.owner, &[Scope::AccountsWrite, Scope::NetworksWrite]).await;
    fail(ask(Method::GET, &writer), 403, "insufficient_scope").await;
    fail(ask(Method::PUT, "sk_test_unknown"), 401, "unauthorized").await;
    assert_eq!(world.get(PATH).await, before);
    assert_eq!(ask(Method::PUT, &writer).send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(world.get(PATH).await["name"], "Evil");
}

#[tokio::test]
async fn a_test_key_sets_a_preview_and_a_live_key_the_branding() {
    let world = world().start().await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::All]).await;
    let ask = async |method: Method, body: Value| {
        let request = world.http.request(method, format!("{}{PATH}", world.base)).bearer_auth(&live);
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.json::<Value>().await.unwrap()
    };
    let shown = async || {
        let url = begin(&world, "x", json!({ "hosted": true, "tenant_id": "t-1" })).await;
        Page::of("begin", browser().get(url).send().await.unwrap()).await.html
    };
    ask(Method::PUT, json!({ "name": "Acme", "support_url": "https://acme.example/help" })).await;
    assert!(shown().await.contains("https://acme.example/help"), "test mode shows it too");
    // A person who finds a test key puts no link on the pages of live mode.
    set(&world, json!({ "name": "Evil", "support_url": "https://evil.example/help" })).await;
    let page = shown().await;
    assert!(page.contains("https://evil.example/help") && !page.contains("acme.example"), "{page}");
    let seen = ask(Method::GET, Value::Null).await;
    assert_eq!((&seen["name"], &seen["support_url"]), (&json!("Acme"), &json!("https://acme.example/help")));
    let entries = world.get("/account/audit?action=connect_branding.updated").await;
    let previews =
        entries["data"].as_array().unwrap().iter().map(|entry| entry["details"]["is_preview"].clone());
    assert_eq!(previews.collect::<Value>(), json!([true, false]));
    // The next branding ends the preview.
    ask(Method::PUT, json!({ "name": "Acme 2" })).await;
    assert_eq!(world.get(PATH).await["name"], "Acme 2");
}
