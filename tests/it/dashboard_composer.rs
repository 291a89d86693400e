//! The dashboard's composer: texts, media and settings of single platforms, previews, and errors beside their fields.

use crate::{browser::Browser, dashboard_media::ask, world};
use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{World, samples::painting};

/// Submits the form to publish, and returns the post.
async fn publish(world: &World, browser: &Browser, form: &[(&str, &str)]) -> Value {
    let page = browser.post("/compose", &[form, &[("action", "draft")]].concat()).await;
    let path = page.leads().trim_start_matches("/dashboard").split('?').next().unwrap().to_owned();
    world.get(&path).await
}

#[tokio::test]
async fn texts_media_and_settings_of_one_platform_are_sent_as_the_api_takes_them() {
    let world = world().start().await;
    let [x, bluesky] = [world.connect("x", "ada").await, world.connect("bluesky", "ada").await];
    let [one, two] = [
        world.medium("one.png", Some("One"), painting(64, 48)).await,
        world.medium("two.png", None, painting(48, 64)).await,
    ];
    let [one, two] = [one["id"].as_str().unwrap(), two["id"].as_str().unwrap()];
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/compose").await;
    for words in ["name=\"text:x\"", "set:x:reply_settings", "set:bluesky:labels", "data-of=\"bluesky\""] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("set:youtube:"), "no account of it is connected");

    let (alt, without) = (format!("alt-{two}"), format!("without-{one}"));
    let form = [
        ("text", "For all"),
        ("account", x.as_str()),
        ("account", &bluesky),
        ("media", one),
        ("media", two),
        (&alt, "Dusk"),
        (&without, "x"),
        ("text:bluesky", "For the sky"),
        ("text:x", ""),
        ("set:x:reply_settings", "following"),
        ("set:x:made_with_ai", "true"),
        ("set:x:paid_partnership", "false"),
        ("set:bluesky:labels", "nudity"),
        ("settings", r#"{"x": {"made_with_ai": false}}"#),
        ("key", "own"),
    ];
    let post = publish(&world, &browser, &form).await;
    let config = &post["default_config"];
    assert_eq!(config["x"]["reply_settings"], "following", "{post:#}");
    assert_eq!(config["x"]["made_with_ai"], true, "a field comes before the JSON");
    assert_eq!(config["x"]["paid_partnership"], false, "no is another choice than none");
    assert_eq!(config["x"]["media"], json!([{ "id": two, "alt_text": "Dusk" }]));
    assert_eq!(
        (&config["x"]["content"], &config["bluesky"]["content"]),
        (&Value::Null, &json!("For the sky"))
    );
    assert_eq!(config["bluesky"]["labels"], json!(["nudity"]));
    assert!(config["bluesky"]["media"].is_null(), "all of them");
    let media = post["containers"][0]["media"].as_array().unwrap();
    assert_eq!((&media[0]["id"], &media[1]["alt_text"]), (&json!(one), &json!("Dusk")));

    // A duplicate shows the same in the same fields.
    let page = browser.open(&format!("/compose?from={}", post["id"].as_str().unwrap())).await;
    for words in [
        "For the sky",
        "Dusk",
        "value=\"following\" selected",
        "value=\"nudity\" checked",
        "value=\"false\" selected",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[tokio::test]
async fn files_are_put_in_order_and_removed_without_scripts() {
    let world = world().start().await;
    let one = world.medium("one.png", None, painting(64, 48)).await;
    let two = world.medium("two.png", None, painting(48, 64)).await;
    let [one, two] = [one["id"].as_str().unwrap(), two["id"].as_str().unwrap()];
    let browser = Browser::signed_in(&world).await;
    let order = async |action: &str| {
        let form = [("text", "Look"), ("media", one), ("media", two), ("action", action)];
        let page = browser.post("/compose", &form).await.text;
        let at = |id: &str| page.find(&format!("id=\"chosen-{id}\""));
        (at(one), at(two))
    };
    let (first, second) = order("edit").await;
    assert!(first.unwrap() < second.unwrap());
    for action in [format!("later:{one}"), format!("earlier:{two}")] {
        let (first, second) = order(&action).await;
        assert!(first.unwrap() > second.unwrap(), "{action}");
    }
    for action in [format!("earlier:{one}"), format!("later:{two}"), "later:nothing".to_owned()] {
        let (first, second) = order(&action).await;
        assert!(first.unwrap() < second.unwrap(), "{action}");
    }
    let (first, second) = order(&format!("remove:{one}")).await;
    assert!(first.is_none() && second.is_some());
}

/// The file of a post that has ended may be deleted.
#[tokio::test]
async fn a_post_whose_file_was_deleted_is_written_again_with_its_text() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let file = world.medium("one.png", None, painting(64, 48)).await;
    let id = file["id"].as_str().unwrap();
    let container = json!({ "content": "With a picture", "media": [{ "id": id }] });
    let post = world.post(json!({ "containers": [container], "accounts": [x] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");
    let (status, _) = world.call(Method::DELETE, &format!("/media/{id}"), None).await;
    assert_eq!(status, StatusCode::OK);
    let browser = Browser::signed_in(&world).await;
    let page = browser.open(&format!("/compose?from={}", post["id"].as_str().unwrap())).await;
    assert!(page.contains("With a picture</textarea>"), "{page}");
    assert!(
        page.contains("A file has been deleted since") && !page.contains(&format!("chosen-{id}")),
        "{page}"
    );
}

#[tokio::test]
async fn an_error_stands_beside_its_field() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let browser = Browser::signed_in(&world).await;
    let beside = |page: &str, field: &str, words: &str| {
        let (_, rest) =
            page.split_once(&format!("id=\"{field}\"")).unwrap_or_else(|| panic!("{field}: {page}"));
        let (part, _) = rest.split_once("class=\"field\"").unwrap_or((rest, ""));
        assert!(part.contains(words), "{field}: {words}: {part}");
    };
    let form = [
        ("text", "Hello"),
        ("account", x.as_str()),
        ("set:x:poll.options", "Only one"),
        ("set:x:poll.duration_minutes", "soon"),
        ("set:x:community_id", "no number"),
        ("action", "publish"),
    ];
    let page = browser.post("/compose", &form).await;
    assert!(page.status.is_client_error(), "{}", page.text);
    for field in ["set:x:poll.duration_minutes", "set:x:community_id"] {
        beside(&page.text, field, "role=\"alert\"");
    }
    assert!(page.text.contains("data-of=\"x\" open"), "what has an error is open");
    assert!(page.text.contains("value=\"no number\""), "what was written is there");
    let form = [("text", "Hello"), ("account", x.as_str()), ("scheduled_at", "soon"), ("action", "publish")];
    beside(&browser.post("/compose", &form).await.text, "scheduled_at", "role=\"alert\"");
}

#[tokio::test]
async fn a_script_asks_for_previews_and_counts_while_one_types() {
    let world = world().everywhere().start().await;
    let mut form =
        vec![("text".to_owned(), "Ein Satz \u{1f600} https://example.com/a-long-address".to_owned())];
    let names = [
        ("x", "ada"),
        ("linkedin", "ada"),
        ("instagram", "ada"),
        ("tiktok", "ada"),
        ("youtube", "ada"),
        ("facebook", "ada"),
        ("threads", "ada"),
        ("bluesky", "ada.bsky.social"),
        ("pinterest", "ada"),
        ("google_business", "ada"),
        ("reddit", "ada"),
    ];
    for (platform, name) in names {
        form.push(("account".to_owned(), world.connect(platform, name).await));
    }
    let browser = Browser::signed_in(&world).await;
    let pairs: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let page = ask(&browser, "/compose/preview", &pairs).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    for (platform, _) in names {
        assert!(page.text.contains(&format!("class=\"mock {platform}")), "{platform}: {}", page.text);
    }
    // X counts an emoji as two and each link as 23, Bluesky graphemes.
    for words in ["35 of 280", "45 of 300", "Refused:"] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    // Unfinished posts have a preview as well.
    let page = ask(&browser, "/compose/preview", &[("text", "")]).await;
    assert!(page.text.contains("Choose at least one account."), "{}", page.text);
    let page = ask(&browser, "/compose/preview", &[("text", ""), pairs[1]]).await;
    assert!(
        page.text.contains("Write something, or add media.") && page.text.contains("0 of 280"),
        "{}",
        page.text
    );
    // It publishes nothing, whatever is asked for.
    ask(&browser, "/compose/preview", &[&pairs[..2], &[("action", "publish")]].concat()).await;
    assert_eq!(world.get("/posts").await["data"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_preview_asks_the_platforms_for_what_only_they_know() {
    let world = world().platforms(&["x"]).start().await;
    let account = world.connect("x", "ada").await;
    let browser = Browser::signed_in(&world).await;
    let fields = [("text", "A post"), ("account", &account), ("set:x:quote_tweet_id", "1")];
    let page = ask(&browser, "/compose/preview", &fields).await.text;
    assert!(!page.contains("Refused:"), "{page}");
    assert!(
        world.journal("x", "ada").await.is_empty(),
        "only when the script says so, some time after the last change"
    );
    let page = ask(&browser, "/compose/preview", &[&fields[..], &[("look_up", "true")]].concat()).await.text;
    assert!(page.contains("Refused:") && page.contains("quote_tweet_id"), "{page}");
    assert_eq!(world.accepted("x", "ada").await, 0, "it only reads");
}

/// It may have been disconnected since the form was opened.
#[tokio::test]
async fn a_preview_leaves_out_an_account_that_is_gone() {
    let world = world().platforms(&["x"]).start().await;
    let [gone, account] = [world.connect("x", "ada").await, world.connect("x", "bob").await];
    let browser = Browser::signed_in(&world).await;
    let (status, _) = world.call(Method::DELETE, &format!("/social-accounts/{gone}"), None).await;
    assert!(status.is_success(), "{status}");
    let fields = [("text", "A post"), ("account", &*gone), ("account", &*account)];
    let page = ask(&browser, "/compose/preview", &fields).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("@bob") && !page.text.contains("@ada"), "{}", page.text);
}

#[tokio::test]
async fn a_picture_is_shown_in_the_shape_that_is_published() {
    let world = world().platforms(&["instagram"]).start().await;
    let account = world.connect("instagram", "ada").await;
    let medium = world.medium("tall.png", Some("A tower"), painting(40, 400)).await;
    let medium = medium["id"].as_str().unwrap();
    let browser = Browser::signed_in(&world).await;
    let form = browser.get("/compose").await.text;
    assert!(form.contains("set:instagram:fit"), "it can be chosen: {form}");
    for (fit, shown) in [
        ("", None),
        ("crop", Some(("0 0 40 53", "xMidYMid slice"))),
        ("pad", Some(("0 0 300 400", "xMidYMid meet"))),
    ] {
        let fields = [("text", "Look"), ("account", &account), ("media", medium), ("set:instagram:fit", fit)];
        let page = ask(&browser, "/compose/preview", &fields).await.text;
        assert_eq!(page.contains("Refused:"), shown.is_none(), "{fit}: {page}");
        match shown {
            None => assert!(!page.contains("mock-fitted") && page.contains("with the setting fit"), "{page}"),
            Some((shape, how)) => assert!(page.contains(shape) && page.contains(how), "{fit}: {page}"),
        }
    }
}

#[tokio::test]
async fn every_account_can_be_chosen_however_many_there_are() {
    let world = world().own().platforms(&["bluesky"]).start().await;
    let connect = async |number| world.connect("bluesky", &format!("ada{number}.bsky.social")).await;
    let accounts: Vec<String> = stream::iter(0..101).map(connect).buffer_unordered(8).collect().await;
    let browser = Browser::signed_in(&world).await;
    for place in ["/compose", "/posts", "/calendar", "/analytics"] {
        let page = browser.open(place).await;
        for account in &accounts {
            assert!(page.contains(&format!("value=\"{account}\"")), "{place} offers no {account}");
        }
    }
}
