//! Metadata of pictures and videos: what a file says about its author is not published.

use crate::{
    api::{fail, key, request},
    world,
};
use domain::{Mode, Owner, scope::Scope};
use regex::Regex;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::{io::Cursor, sync::LazyLock};
use tests::{
    World,
    samples::{boxed, film_head},
};

/// Addresses of files in a page of the sandbox.
static FILES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""([^"]*/_media/[^"]+)""#).unwrap());

/// A segment of a JPEG with EXIF data: these entries, and those of the position.
fn exif(orientation: u8, has_more: bool) -> Vec<u8> {
    let entry = |tag: u16, kind: u16, count: u32, value: [u8; 4]| {
        [&tag.to_be_bytes()[..], &kind.to_be_bytes(), &count.to_be_bytes(), &value].concat()
    };
    let turned = entry(0x0112, 3, 1, [0, orientation, 0, 0]);
    let tiff = if has_more {
        let root =
            [entry(0x010f, 2, 4, *b"Cam\0"), turned, entry(0x8825, 4, 1, 50_u32.to_be_bytes())].concat();
        let gps = [entry(1, 2, 2, *b"N\0\0\0"), entry(2, 5, 3, 80_u32.to_be_bytes())].concat();
        let degrees = [48_u32, 1, 51, 1, 30, 1].map(u32::to_be_bytes).concat();
        [&b"MM\0*\0\0\0\x08\0\x03"[..], &root, &[0; 4], &[0, 2], &gps, &[0; 4], &degrees].concat()
    } else {
        [&b"MM\0*\0\0\0\x08\0\x01"[..], &turned, &[0; 4]].concat()
    };
    let content = [&b"Exif\0\0"[..], &tiff].concat();
    let length = u16::try_from(content.len() + 2).unwrap().to_be_bytes();
    [&[0xff, 0xe1], &length[..], &content].concat()
}

/// A photo as a phone stores it, and without what it tells about its owner.
fn photo() -> (Vec<u8>, Vec<u8>) {
    let picture = image::RgbImage::from_fn(1000, 800, |x, y| image::Rgb([x as u8, y as u8, 90]));
    let mut plain = Cursor::new(Vec::new());
    picture.write_to(&mut plain, image::ImageFormat::Jpeg).unwrap();
    let plain = plain.into_inner();
    let with = |exif: &[u8]| [&plain[..2], exif, &plain[2..]].concat();
    (with(&exif(6, true)), with(&exif(6, false)))
}

/// A video of a phone, and the same with what it tells overwritten.
fn video() -> (Vec<u8>, Vec<u8>) {
    let head = film_head(1280, 720, 5_000);
    let (ftyp, moov) = head.split_at(24);
    let position = boxed(b"\xa9xyz", b"\0\x12\x15\xc7+48.8584+002.2945/");
    let with = |user_data: Vec<u8>| {
        let moov = boxed(b"moov", &[&moov[8..], &user_data].concat());
        [ftyp, &moov, &boxed(b"mdat", &vec![0x2a; 3 << 20])].concat()
    };
    (with(boxed(b"udta", &position)), with(boxed(b"free", &vec![0; position.len()])))
}

/// Returns the files that a published target shows at its platform.
async fn shown(world: &World, target: &Value) -> Vec<Vec<u8>> {
    let url: Url = target["platform_post_url"].as_str().unwrap().parse().unwrap();
    let page = world.http.get(url.clone()).send().await.unwrap().text().await.unwrap();
    let mut files = Vec::new();
    for found in FILES.captures_iter(&page) {
        files.push(
            world
                .http
                .get(url.join(&found[1]).unwrap())
                .send()
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap()
                .to_vec(),
        );
    }
    assert!(!files.is_empty(), "{page}");
    files
}

/// Publishes a file, and returns its asset and the targets.
async fn published(world: &World, name: &str, file: &[u8], accounts: &[String]) -> (Value, Vec<Value>) {
    let medium = world.medium(name, Some("A place"), file.to_vec()).await;
    let body = json!({
        "containers": [{ "content": "Look", "media": [{ "id": medium["id"] }] }], "accounts": accounts,
    });
    let ended = world.ended(&world.post(body).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    (medium, ended["targets"].as_array().unwrap().clone())
}

#[tokio::test]
async fn a_photo_is_published_without_its_position_and_keeps_its_pixels_and_orientation() {
    let platforms =
        ["x", "linkedin", "instagram", "facebook", "threads", "bluesky", "google_business", "reddit"];
    let world = world().approved().platforms(&platforms).start().await;
    let mut accounts = Vec::new();
    for platform in platforms {
        let name = if platform == "bluesky" { "ada.bsky.social" } else { "ada" };
        accounts.push(world.connect(platform, name).await);
    }
    let (original, clean) = photo();
    let (medium, targets) = published(&world, "photo.jpg", &original, &accounts).await;
    assert_eq!(medium["has_location"], true, "{medium:#}");
    for target in &targets {
        for file in shown(&world, target).await {
            assert!(file != original, "{} got the position", target["platform"]);
            assert!(file == clean, "{}: {} bytes", target["platform"], file.len());
        }
    }
    // The owner's own file stays as it is.
    let kept = world.http.get(medium["url"].as_str().unwrap()).send().await.unwrap();
    assert!(kept.bytes().await.unwrap() == original);
    let (medium, _) = published(&world, "clean.jpg", &clean, &accounts[..1]).await;
    assert_eq!(medium["has_location"], false, "{medium:#}");
}

#[tokio::test]
async fn a_video_is_published_without_its_position() {
    let world = world().platforms(&["x", "reddit"]).start().await;
    let accounts = [world.connect("x", "ada").await, world.connect("reddit", "ada").await];
    let (original, clean) = video();
    let (medium, targets) = published(&world, "film.mp4", &original, &accounts).await;
    let medium = world.get(&format!("/media/{}", medium["id"].as_str().unwrap())).await;
    assert_eq!(medium["has_location"], true, "{medium:#}");
    for target in &targets {
        let files = shown(&world, target).await;
        assert!(files.contains(&clean), "{}", target["platform"]);
        assert!(!files.contains(&original), "{}", target["platform"]);
    }
}

#[tokio::test]
async fn an_organization_may_keep_the_metadata_of_its_files() {
    let world = world().platforms(&["x"]).start().await;
    let account = world.connect("x", "ada").await;
    let body = json!({ "strip_metadata": false });
    let settings = "/media/settings";
    assert_eq!(world.get(settings).await, json!({ "strip_metadata": true }));
    fail(request(&world, Method::PATCH, settings).json(&body), 403, "forbidden").await;
    let live = key(&world, Owner { mode: Mode::Live, ..world.owner }, &[Scope::MediaWrite]).await;
    let patch = world.http.patch(format!("{}{settings}", world.base)).bearer_auth(&live).json(&body);
    let set: Value = patch.send().await.unwrap().json().await.unwrap();
    assert_eq!(set, body);
    let entry = &world.get("/account/audit?limit=1").await["data"][0];
    assert_eq!(entry["action"], "media_settings.updated", "{entry}");
    let (original, _) = photo();
    let (_, targets) = published(&world, "photo.jpg", &original, &[account]).await;
    assert!(shown(&world, &targets[0]).await == [original]);
}
