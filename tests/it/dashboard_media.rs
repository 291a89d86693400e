//! The dashboard's media library: uploads by form and by script, thumbnails, and where a file is used.

use crate::{
    browser::{Browser, Page},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use reqwest::{StatusCode, header, multipart};
use serde_json::{Value, json};
use store::people::keys;
use tests::{
    World, now,
    samples::{film, gif, hollow_png, painting, pdf, png},
    wait_until,
};

/// Sends a form with files, as a browser without scripts does.
async fn send(browser: &Browser, form: multipart::Form) -> Page {
    let request = browser.http.post(format!("{}/dashboard/media/files", browser.origin)).multipart(form);
    let request = request.header(header::COOKIE, &browser.cookie);
    Page::of(request.header(header::ORIGIN, &browser.origin).header("sec-fetch-site", "same-origin")).await
}

/// Sends a form as the script that uploads files does.
pub(crate) async fn ask(browser: &Browser, path: &str, form: &[(&str, &str)]) -> Page {
    let request = browser.http.post(format!("{}/dashboard{path}", browser.origin)).form(form);
    let request = request.header(header::COOKIE, &browser.cookie).header("sec-fetch-mode", "cors");
    Page::of(request.header(header::ORIGIN, &browser.origin).header("sec-fetch-site", "same-origin")).await
}

fn part(bytes: Vec<u8>, name: &str, content_type: &str) -> multipart::Part {
    multipart::Part::bytes(bytes).file_name(name.to_owned()).mime_str(content_type).unwrap()
}

/// Returns the newest file.
async fn newest(world: &World) -> Value {
    world.get("/media").await["data"][0].clone()
}

fn id(file: &Value) -> &str {
    file["id"].as_str().unwrap()
}

#[tokio::test]
async fn files_are_uploaded_by_a_form_without_scripts() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let page = browser.open("/media").await;
    assert!(page.contains(r#"enctype="multipart/form-data""#) && page.contains("multiple"), "{page}");

    let form = multipart::Form::new()
        .part("file", part(painting(640, 320), "dawn.png", "image/jpeg"))
        .part("file", part(gif(2), "wave.gif", "application/octet-stream"));
    assert_eq!(send(&browser, form).await.leads(), "/dashboard/media?done=uploaded");
    let page = browser.open("/media?done=uploaded").await;
    for words in
        ["The files were uploaded.", "2 files", "dawn.png", "640\u{a0}×\u{a0}320", "wave.gif", "No post"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    for kind in ["image", "gif"] {
        let page = browser.open(&format!("/media?kind={kind}")).await;
        assert!(page.contains("One file."), "{kind}: {page}");
    }

    // A form without a file, and a file of no type that is stored.
    for (form, words) in [
        (
            multipart::Form::new().part("file", part(Vec::new(), "", "application/octet-stream")),
            "Choose a file first.",
        ),
        (
            multipart::Form::new().part("file", part(b"MZ".to_vec(), "x.exe", "application/x-msdownload")),
            "x.exe: ",
        ),
    ] {
        let page = send(&browser, form).await;
        assert!(page.status.is_client_error() && page.text.contains(words), "{words}: {}", page.text);
    }
    let mut many = multipart::Form::new();
    for _ in 0..21 {
        many = many.part("file", part(png(1, 1), "one.png", "image/png"));
    }
    let page = send(&browser, many).await;
    assert!(page.text.contains("At most 20 files can be uploaded at once"), "{}", page.text);
}

#[tokio::test]
async fn a_form_with_files_is_bounded_and_of_this_origin() {
    let world = world().set("FANFARE_MEDIA_MAX_BYTES", r#"{"image": 4096}"#).start().await;
    let browser = Browser::signed_in(&world).await;
    let form = || multipart::Form::new().part("file", part(painting(640, 320), "dawn.png", "image/png"));
    let page = send(&browser, form()).await;
    assert_eq!(page.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", page.text);
    assert!(page.text.contains("dawn.png: More than 4096 bytes were sent"), "{}", page.text);

    let url = format!("{}/dashboard/media/files", browser.origin);
    let request = browser.http.post(&url).multipart(form()).header(header::COOKIE, &browser.cookie);
    let page = Page::of(request.header(header::ORIGIN, "https://example.com")).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    let page = browser.post("/media/files", &[("file", "dawn.png")]).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text);
    let unknown = Browser { cookie: String::new(), ..browser };
    assert_eq!(send(&unknown, form()).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_script_uploads_a_file_to_its_upload_url() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let picture = painting(96, 64);
    let size = picture.len().to_string();
    let wish = [("filename", "dusk.png"), ("size", size.as_str())];
    let announced = ask(&browser, "/media/uploads", &wish).await;
    let upload: Value = serde_json::from_str(&announced.text).unwrap();
    let url = upload["url"].as_str().unwrap();
    assert!(
        url.starts_with("/api/v1/media/"),
        "the script reaches it by the name that the browser knows: {url}"
    );

    let page = ask(&browser, &format!("/media/{}/confirm", id(&upload)), &[]).await;
    assert_eq!(page.status, StatusCode::CONFLICT, "nothing was uploaded yet: {}", page.text);
    let sent = browser.http.put(format!("{}{url}", browser.origin)).body(picture).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::OK);
    for (form, words) in [(&[][..], "tile\""), (&[("as", "choice")], "name=\"media\"")] {
        let page = ask(&browser, &format!("/media/{}/confirm", id(&upload)), form).await;
        assert!(page.text.contains(words) && page.text.contains("dusk.png"), "{words}: {}", page.text);
    }
    assert_eq!(newest(&world).await["status"], "ready");

    // The type that a browser derives from a name is no declaration: the bytes decide.
    let program = b"MZ\x90\0\x03\0\0\0".to_vec();
    let announced = ask(&browser, "/media/uploads", &[("filename", "x.exe"), ("size", "8")]).await;
    let upload: Value = serde_json::from_str(&announced.text).unwrap();
    let sent = browser.http.put(format!("{}{}", browser.origin, upload["url"].as_str().unwrap()));
    assert_eq!(sent.body(program).send().await.unwrap().status(), StatusCode::OK);
    let refused = ask(&browser, &format!("/media/{}/confirm", id(&upload)), &[]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let reason = "The file type is not supported; accepted are pictures (JPEG, ";
    assert!(refused.text.starts_with(reason), "plain text for the script: {}", refused.text);
    // A script may do nothing else.
    let page = ask(&browser, &format!("/media/{}/delete", id(&upload)), &[]).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
}

/// Sends a file to the dashboard, as the script does that can't send it to the upload URL.
pub(crate) async fn send_through(browser: &Browser, upload: &Value, origin: &str, bytes: Vec<u8>) -> Page {
    let url = format!("{}{}", browser.origin, upload["fallback"].as_str().unwrap());
    let request = browser.http.post(url).body(bytes).header("sec-fetch-mode", "cors");
    Page::of(request.header(header::COOKIE, &browser.cookie).header(header::ORIGIN, origin)).await
}

#[tokio::test]
async fn a_script_sends_a_file_through_the_dashboard_or_gives_it_up() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let picture = painting(96, 64);
    let size = picture.len().to_string();
    let announce = async |size: &str| -> Value {
        let wish = [("filename", "dusk.png"), ("size", size)];
        serde_json::from_str(&ask(&browser, "/media/uploads", &wish).await.text).unwrap()
    };
    let upload = announce(&size).await;
    let foreign = send_through(&browser, &upload, "https://example.com", picture.clone()).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let nobody = Browser { cookie: String::new(), ..Browser::new(&world) };
    let unknown = send_through(&nobody, &upload, &browser.origin, picture.clone()).await;
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    // It is held to what was announced.
    let longer = send_through(&browser, &upload, &browser.origin, [&picture[..], b"x"].concat()).await;
    assert_eq!(longer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(longer.text.starts_with("More than"), "plain text for the script: {}", longer.text);
    let sent = send_through(&browser, &upload, &browser.origin, picture.clone()).await;
    assert_eq!(sent.status, StatusCode::OK, "{}", sent.text);
    let page = ask(&browser, &format!("/media/{}/confirm", id(&upload)), &[]).await;
    assert!(page.text.contains("dusk.png"), "{}", page.text);
    let late = send_through(&browser, &upload, &browser.origin, picture).await;
    assert_eq!(late.status, StatusCode::CONFLICT);

    // Only what was not uploaded can be given up.
    let kept = ask(&browser, &format!("/media/{}/abandon", id(&upload)), &[]).await;
    assert_eq!(kept.status, StatusCode::CONFLICT);
    let canceled = announce("7").await;
    let gone = ask(&browser, &format!("/media/{}/abandon", id(&canceled)), &[]).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    let left = world.get("/media").await;
    assert_eq!((&left["pagination"]["total"], &left["data"][0]["id"]), (&json!(1), &upload["id"]));
}

#[tokio::test]
async fn a_script_is_told_in_plain_text_when_to_go_on() {
    let world = world().set("FANFARE_RATE_LIMITS", r#"{"media": {"limit": 1, "window": 60}}"#).start().await;
    let browser = Browser::signed_in(&world).await;
    let wish = [("filename", "dusk.png"), ("size", "7")];
    assert_eq!(ask(&browser, "/media/uploads", &wish).await.status, StatusCode::OK);
    let refused = ask(&browser, "/media/uploads", &wish).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/plain"));
    let pause: u32 = refused.headers[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&pause), "{pause}");
}

#[tokio::test]
async fn a_video_is_shown_by_its_first_frame_and_other_files_by_their_type() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let bytes = film(90_000, 4000);
    let video = world.medium("film.mp4", Some("A train"), bytes.clone()).await;
    world.medium("wave.gif", None, gif(2)).await;
    world.medium("terms.pdf", None, pdf()).await;
    let page = browser.get("/media").await;
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("media-src 'self'"), "{policy}");
    let path = format!("/dashboard/media/{}/file", id(&video));
    for words in [
        &format!(
            "<video src=\"{path}#t=0.1\" preload=\"metadata\" muted playsinline aria-label=\"A train\">"
        ),
        &format!("<a class=\"player\" href=\"{path}\" data-play aria-label=\"Play film.mp4"),
        "<span class=\"badge\">1:30</span>",
        "<span class=\"badge\">GIF</span>",
        "<span class=\"badge\">PDF</span>",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    assert!(!page.text.contains("autoplay"), "{}", page.text);

    let request =
        browser.http.get(format!("{}{path}", browser.origin)).header(header::COOKIE, &browser.cookie);
    let part = request.header(header::RANGE, "bytes=4-7").send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()[header::CONTENT_TYPE], "video/mp4");
    let policy = part.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert_eq!(policy, "default-src 'none'; media-src 'self'; sandbox allow-same-origin");
    assert_eq!(part.headers()[header::CONTENT_RANGE], format!("bytes 4-7/{}", bytes.len()));
    assert_eq!(part.bytes().await.unwrap(), b"ftyp"[..]);
    let path = path.trim_start_matches("/dashboard");
    assert_eq!(stranger(&world).await.get(path).await.status, StatusCode::NOT_FOUND);
    let nobody = Browser { cookie: String::new(), ..browser };
    assert_eq!(nobody.get(path).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_alt_text_of_a_file_is_changed_by_a_form() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let picture = world.medium("dawn.png", Some("A bridge"), png(8, 8)).await;
    let path = format!("/media/{}/alt", id(&picture));
    let page = browser.open("/media").await;
    assert!(
        page.contains(&format!("action=\"/dashboard{path}\"")) && page.contains("A bridge</textarea>"),
        "{page}"
    );
    let changed = browser.post(&path, &[("alt_text", "A bridge at dawn")]).await;
    assert_eq!(changed.leads(), "/dashboard/media?done=described");
    assert!(browser.open("/media?done=described").await.contains("The alt text was saved."));
    assert_eq!(newest(&world).await["alt_text"], "A bridge at dawn");
    // The form keeps a refused text, so that it can be corrected.
    let long = "é".repeat(5001);
    let refused = browser.post(&path, &[("alt_text", &long)]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(
        refused.text.contains("<details class=\"small\" open>") && refused.text.contains(&long),
        "{}",
        refused.text
    );
    assert_eq!(browser.post(&path, &[("alt_text", "")]).await.leads(), "/dashboard/media?done=described");
    assert_eq!(newest(&world).await["alt_text"], json!(null));
}

#[tokio::test]
async fn pictures_have_thumbnails_that_only_their_owner_sees() {
    let world = world().start().await;
    let browser = Browser::signed_in(&world).await;
    let picture = world.medium("dawn.png", Some("A bridge"), painting(1200, 600)).await;
    let path = format!("/media/{}/thumbnail", id(&picture));
    let page = browser.open("/media").await;
    assert!(page.contains(&format!("src=\"/dashboard{path}\" alt=\"A bridge\"")), "{page}");

    // A worker makes it after the upload is confirmed; until then the page has something to show.
    let response = wait_until("the thumbnail", async || {
        let request = browser.http.get(format!("{}/dashboard{path}", browser.origin));
        let response = request.header(header::COOKIE, &browser.cookie).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let content_type = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        if content_type == "image/jpeg" { Ok(response) } else { Err(content_type) }
    })
    .await;
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert_eq!(policy, "default-src 'none'; sandbox");
    let thumbnail = response.bytes().await.unwrap();
    let sides = imagesize(&thumbnail);
    assert_eq!(sides, (480, 240));

    // A picture that can't be decoded is its own thumbnail if it is small; a video has none.
    let broken = world.medium("broken.png", None, hollow_png(64, 48)).await;
    let page = browser.get(&format!("/media/{}/thumbnail", id(&broken))).await;
    assert_eq!(
        (page.status, page.headers[header::CONTENT_TYPE].to_str().unwrap()),
        (StatusCode::OK, "image/png")
    );
    let video = world.medium("film.mp4", None, film(90_000, 4000)).await;
    assert_eq!(browser.get(&format!("/media/{}/thumbnail", id(&video))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(stranger(&world).await.get(&path).await.status, StatusCode::NOT_FOUND);
    let nobody = Browser { cookie: String::new(), ..browser };
    assert_eq!(nobody.get(&path).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_post_shows_its_pictures_and_a_file_its_posts() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let picture = world.medium("dawn.png", None, painting(64, 48)).await;
    let browser = Browser::signed_in(&world).await;
    let image = format!("/dashboard/media/{}/thumbnail", id(&picture));
    let form = [("text", "Look at this"), ("media", id(&picture)), ("account", x.as_str()), ("key", "once")];
    let preview = browser.post("/compose", &form).await;
    assert!(preview.text.contains(&image), "{}", preview.text);
    let created = browser.post("/compose", &[&form[..], &[("action", "publish")]].concat()).await;
    let path = created.leads().trim_start_matches("/dashboard").split('?').next().unwrap().to_owned();
    assert!(browser.open(&path).await.contains(&image));
    let page = browser.open("/media").await;
    for words in ["One post", "Look at this", &path] {
        assert!(page.contains(words), "{words}: {page}");
    }
    world.ended(&world.get(&path).await).await;
    let body = json!({ "content": "Again", "accounts": [x], "is_draft": true });
    world.post(body).await;
    assert!(browser.open("/media").await.contains("One post"), "a post without the file does not count");
}

/// Returns the browser of another organization.
async fn stranger(world: &World) -> Browser {
    let org = store::people::organizations::create(&world.db, "Other").await.unwrap();
    let owner = Owner { org, mode: Mode::Test };
    let new = keys::NewKey { owner, name: "other".into(), scopes: vec![Scope::All], expires_at: None };
    let (_, text) = keys::create(&world.db, new, now()).await.unwrap();
    let mut stranger = Browser::new(world);
    stranger.sign_in(&text).await;
    stranger
}

/// Returns the sides of a picture.
fn imagesize(bytes: &[u8]) -> (u32, u32) {
    // A baseline JPEG: the marker SOF0 has height and width after length and precision.
    let at = bytes.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    let side = |at: usize| u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    (side(at + 7), side(at + 5))
}
