//! Pictures in all orientations that cameras store: each part of the service is compared with a reader that shares no
//! code with it.

use crate::{files::shelf, media::until, world};
use ::media::{FileStore, MinRate, StoredFile};
use domain::{Fit, Media, MediaId, MediaKind, Mode, OrgId, Owner, media::DeclaredFile};
use futures::stream;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tests::{
    World,
    photos::{FORMATS, ImageFormat, Photo, disc, orientation},
};
use tokio::sync::watch;
use uuid::Uuid;

pub(crate) fn asset(number: u128) -> StoredFile {
    let owner = Owner { org: OrgId(Uuid::from_u128(1)), mode: Mode::Test };
    let media = MediaId(Uuid::from_u128(number));
    StoredFile { media, owner, filename: "a".to_owned(), rendition: None }
}

/// Stores a file without looking at it.
pub(crate) async fn kept(shelf: &FileStore, number: u128, bytes: &[u8]) {
    let pieces = stream::iter([Ok(bytes.to_vec().into())]);
    let tempo = MinRate { idle_timeout: Duration::from_secs(30), bytes_per_second: 1 };
    shelf.receive(&asset(number), pieces, u64::MAX, &DeclaredFile::default(), tempo).await.unwrap();
    shelf.promote(&asset(number)).await.unwrap();
}

/// Stores a picture, and returns it as it is measured.
pub(crate) async fn stored(shelf: &FileStore, number: u128, bytes: &[u8]) -> Media {
    let (asset, size) = (asset(number), bytes.len() as u64);
    kept(shelf, number, bytes).await;
    let found = shelf.inspect(&asset, size, &DeclaredFile::default()).await.unwrap();
    Media {
        id: asset.media.0,
        kind: found.kind,
        mime: found.content_type.to_owned(),
        filename: asset.filename,
        size_bytes: size,
        width: found.width,
        height: found.height,
        frames: found.frames,
        duration: None,
        alt_text: None,
        facts: None,
        rendition: None,
    }
}

/// Makes a rendition, and returns its file.
async fn fitted(shelf: &FileStore, number: u128, size: u64, fit: &Fit) -> Vec<u8> {
    let stop = watch::Sender::new(false);
    let made = shelf.fit(&asset(number), size, fit, &stop.subscribe()).await.unwrap();
    let rendition = StoredFile { rendition: Some(made.name), ..asset(number) };
    shelf.read(&rendition, 0..made.size).await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_picture_is_measured_and_rendered_as_it_is_displayed() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    let mut number = 0;
    for format in FORMATS {
        for orientation in 1..=8 {
            number += 1;
            let photo = Photo { width: 300, height: 400, orientation, format };
            let bytes = photo.bytes();
            let medium = stored(&shelf, number, &bytes).await;
            assert_eq!((medium.width, medium.height), (Some(300), Some(400)), "{photo:?}");
            // Also in boxes of another shape.
            let boxes = [(150, 200), (200, 150), (300, 400), (400, 300)];
            for (width, height) in boxes {
                let kind = MediaKind::Image;
                let fit =
                    Fit { kind, width, height, shaping: None, max_bytes: 1 << 20, keeps_transparency: true };
                let made = fitted(&shelf, number, medium.size_bytes, &fit).await;
                photo.assert_shown(&made, &format!("in {width}x{height}"));
            }
            let thumbnail = Fit::thumbnail(&medium.mime, 300, 400).unwrap();
            let made = fitted(&shelf, number, medium.size_bytes, &thumbnail).await;
            assert_eq!(photo.assert_shown(&made, "thumbnail"), (300, 400));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_platform_gets_pictures_upright_and_in_their_shape() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    let all = (1..=8).map(|orientation| (orientation, ImageFormat::Jpeg));
    let others = [(6, ImageFormat::Png), (8, ImageFormat::WebP)];
    let mut fits = 0;
    for (number, (orientation, format)) in all.chain(others).enumerate() {
        let photo = Photo { width: 1110, height: 1480, orientation, format };
        let bytes = photo.bytes();
        let number = number as u128;
        let medium = stored(&shelf, number, &bytes).await;
        // More bytes than any platform takes.
        let large = Media { size_bytes: 1 << 40, ..medium.clone() };
        for platform in platforms::all() {
            let Some(fit) = platform.fits(0, &Value::Null, std::slice::from_ref(&large))[0] else { continue };
            let made = fitted(&shelf, number, medium.size_bytes, &fit).await;
            let (width, height) = photo.assert_shown(&made, platform.id);
            assert!(width <= fit.width && height <= fit.height, "{}: {width}x{height}", platform.id);
            fits += 1;
        }
    }
    assert!(fits >= 80, "most platforms take pictures: {fits}");
}

/// Pictures that libheif, libavif and a phone's way of tiling made: a disc on a light ground, 300x400 pixels or, of tiles,
/// 600x800; some stored on their side or mirrored, of 10 bits, of HDR or of a wide gamut.
pub(crate) const MODERN: [(&str, u32, &[u8]); 13] = [
    ("turned-1.heic", 300, include_bytes!("pictures/turned-1.heic")),
    ("turned-2.heic", 300, include_bytes!("pictures/turned-2.heic")),
    ("turned-3.heic", 300, include_bytes!("pictures/turned-3.heic")),
    ("turned-5.heic", 300, include_bytes!("pictures/turned-5.heic")),
    ("turned-6.heic", 300, include_bytes!("pictures/turned-6.heic")),
    ("turned-8.heic", 300, include_bytes!("pictures/turned-8.heic")),
    ("ten.heic", 300, include_bytes!("pictures/ten.heic")),
    ("grid.heic", 600, include_bytes!("pictures/grid.heic")),
    ("plain.avif", 300, include_bytes!("pictures/plain.avif")),
    ("turned.avif", 300, include_bytes!("pictures/turned.avif")),
    ("grid.avif", 600, include_bytes!("pictures/grid.avif")),
    ("hdr.avif", 300, include_bytes!("pictures/hdr.avif")),
    ("wide.avif", 300, include_bytes!("pictures/wide.avif")),
];
/// The lower quarter of these is transparent.
const CLEAR: [&[u8]; 2] = [include_bytes!("pictures/alpha.heic"), include_bytes!("pictures/alpha.avif")];

fn modern(width: u32) -> Photo {
    Photo { width, height: width / 3 * 4, orientation: 1, format: ImageFormat::Png }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_heif_picture_is_measured_and_converted_as_it_is_displayed() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    for (number, (name, width, bytes)) in MODERN.into_iter().enumerate() {
        let photo = modern(width);
        let medium = stored(&shelf, number as u128, bytes).await;
        let mime = if name.ends_with("avif") { "image/avif" } else { "image/heif" };
        assert_eq!(medium.mime, mime, "{name}");
        assert_eq!((medium.width, medium.height), (Some(photo.width), Some(photo.height)), "{name}");
        let thumbnail = Fit::thumbnail(&medium.mime, photo.width, photo.height).unwrap();
        let made = fitted(&shelf, number as u128, medium.size_bytes, &thumbnail).await;
        photo.assert_shown(&made, name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_platform_gets_heif_pictures_converted() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    let (mut fits, photo) = (0, modern(300));
    for (number, index) in [4_usize, 9].into_iter().enumerate() {
        let (name, _, bytes) = MODERN[index];
        let medium = stored(&shelf, number as u128, bytes).await;
        for platform in platforms::all() {
            let media = std::slice::from_ref(&medium);
            let Some(fit) = platform.fits(0, &Value::Null, media)[0] else { continue };
            let made = fitted(&shelf, number as u128, medium.size_bytes, &fit).await;
            photo.assert_shown(&made, &format!("{name} on {}", platform.id));
            fits += 1;
        }
    }
    assert!(fits >= 18, "most platforms take pictures: {fits}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transparent_part_of_a_heif_picture_stays_so() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    for (number, bytes) in CLEAR.into_iter().enumerate() {
        let medium = stored(&shelf, number as u128, bytes).await;
        let kind = MediaKind::Image;
        let fit = |keeps_transparency| Fit {
            kind,
            width: 300,
            height: 400,
            shaping: None,
            max_bytes: 1 << 20,
            keeps_transparency,
        };
        let made = fitted(&shelf, number as u128, medium.size_bytes, &fit(true)).await;
        let image = image::load_from_memory(&made).unwrap().into_rgba8();
        let alpha = [10, 200, 390].map(|y| image.get_pixel(20, y).0[3]);
        assert!(alpha[0] > 250 && alpha[1] > 250 && alpha[2] < 5, "{number}: {alpha:?}");
        let made = fitted(&shelf, number as u128, medium.size_bytes, &fit(false)).await;
        let image = image::load_from_memory(&made).unwrap().into_rgb8();
        assert!(image.get_pixel(20, 390).0.iter().all(|color| *color > 250), "{number}: on white");
    }
}

/// An AVIF picture of a wide gamut has its colors, and one of HDR is neither black nor burned out.
#[tokio::test(flavor = "multi_thread")]
async fn colors_are_converted_for_screens_that_expect_srgb() {
    let shelf = shelf(&tests::directory().join(Uuid::now_v7().to_string()));
    let mut seen = Vec::new();
    for (number, (_, width, bytes)) in MODERN.into_iter().enumerate().skip(8) {
        if width != 300 {
            continue;
        }
        let medium = stored(&shelf, number as u128, bytes).await;
        let thumbnail = Fit::thumbnail(&medium.mime, 300, 400).unwrap();
        let made = fitted(&shelf, number as u128, medium.size_bytes, &thumbnail).await;
        seen.push(image::load_from_memory(&made).unwrap().into_rgb8().get_pixel(280, 20).0);
    }
    let [plain, turned, hdr, wide] = seen[..] else { panic!("{seen:?}") };
    let far = |one: [u8; 3], other: [u8; 3]| one.iter().zip(other).map(|(a, b)| a.abs_diff(b)).max().unwrap();
    assert!(far(plain, turned) <= 3, "{seen:?}");
    // Display P3 has a stronger red, so that the same numbers are more of it.
    assert!(wide[0] >= plain[0] && wide[1] <= plain[1] && far(wide, plain) < 30, "{seen:?}");
    // Light of white paper.
    assert!(hdr.iter().all(|color| (215..=245).contains(color)) && far(hdr, [hdr[0]; 3]) <= 4, "{seen:?}");
}

/// Pictures of phones are ready once they were decoded, which no confirmation waits for, and are published.
#[tokio::test]
async fn a_photo_of_a_phone_is_published_where_its_format_is_not_taken() {
    let platforms = ["instagram", "bluesky"];
    let world = world().platforms(&platforms).approved().start().await;
    let accounts =
        [world.connect("instagram", "ada").await, world.connect("bluesky", "ada.bsky.social").await];
    let photo = modern(300);
    let tiff = Photo { format: ImageFormat::Tiff, orientation: 6, ..photo }.bytes();
    for (name, bytes) in
        [("IMG_0001.HEIC", MODERN[4].2.to_vec()), ("a.avif", MODERN[9].2.to_vec()), ("scan.tif", tiff)]
    {
        let (status, medium) = world.confirm(&world.upload(json!({ "filename": name }), bytes).await).await;
        assert_eq!((status, &medium["status"]), (StatusCode::OK, &json!("uploaded")), "{medium}");
        until(&world, &medium["id"], "ready").await;
        let body = json!({
            "containers": [{ "content": format!("Look at {name}"), "media": [{ "id": medium["id"] }] }], "accounts": accounts,
        });
        let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!(verdict["valid"], true, "{verdict:#}");
        for issue in verdict["issues"].as_array().unwrap() {
            let told = (issue["code"].as_str().unwrap(), issue["message"].as_str().unwrap());
            assert!(told.0 == "media_fitted" && told.1.contains("converted from image/"), "{verdict:#}");
        }
        assert_eq!(verdict["issues"].as_array().unwrap().len(), 2, "{verdict:#}");
        let ended = world.ended(&world.post(body).await).await;
        assert_eq!(ended["status"], "published", "{ended:#}");
        for target in ended["targets"].as_array().unwrap() {
            let bytes = arrived(&world, target).await;
            photo.assert_shown(&bytes, &format!("{name} on {}", target["platform"]));
        }
    }
}

#[tokio::test]
async fn a_photo_that_can_t_be_decoded_is_refused_with_what_helps() {
    let world = world().start().await;
    for (name, bytes) in [("a.heic", MODERN[4].2), ("a.avif", MODERN[8].2)] {
        let mut bytes = bytes.to_vec();
        let at = bytes.windows(4).rposition(|window| window == b"mdat").unwrap() + 4;
        bytes[at..].fill(0xa5);
        let (status, medium) = world.confirm(&world.upload(json!({ "filename": name }), bytes).await).await;
        assert_eq!(status, StatusCode::OK, "{medium}");
        until(&world, &medium["id"], "failed").await;
        let path = format!("/media/{}", medium["id"].as_str().unwrap());
        let failed = world.get(&path).await;
        let told = failed["error"].as_str().unwrap_or_default();
        let is_told = told.contains("can't be converted") && told.ends_with("save it as JPEG or PNG");
        assert!(is_told, "{failed:#}");
    }
}

/// Returns the picture of a published post, as the simulated platform has it.
async fn arrived(world: &World, target: &Value) -> Vec<u8> {
    // TikTok gives no address of a private post, which is on the account's page of the sandbox.
    let page = target["platform_post_url"].as_str().map(str::to_owned);
    let page = page.unwrap_or_else(|| format!("{}/tiktok/ada", world.sandbox_url));
    let page = world.http.get(page).send().await.unwrap();
    let page = page.text().await.unwrap();
    let file = page.split_once("/_media/").unwrap_or_else(|| panic!("no picture: {page}")).1;
    let file = file.split_once('"').unwrap().0;
    let answer = world.http.get(format!("{}/_media/{file}", world.sandbox_url)).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{file}");
    answer.bytes().await.unwrap().to_vec()
}

/// Returns the `aspectRatio` of the picture in a post on Bluesky.
async fn aspect_ratio(world: &World, target: &Value) -> Value {
    let uri = target["platform_post_id"].as_str().unwrap();
    let mut parts = uri.trim_start_matches("at://").split('/');
    let mut part = || parts.next().unwrap();
    let url = format!(
        "{}/bsky.social/xrpc/com.atproto.repo.getRecord?repo={}&collection={}&rkey={}",
        world.sandbox_url,
        part(),
        part(),
        part()
    );
    let record: Value = world.http.get(url).send().await.unwrap().json().await.unwrap();
    record["value"]["embed"]["images"][0]["aspectRatio"].clone()
}

/// Phones store upright photos on their side. Bluesky takes 2 MB, TikTok 1080 pixels across, Instagram no WebP.
#[tokio::test]
async fn an_upright_photo_arrives_upright_in_its_shape() {
    let platforms = ["instagram", "bluesky", "tiktok"];
    let world = world().platforms(&platforms).approved().start().await;
    let accounts = [
        world.connect("instagram", "ada").await,
        world.connect("bluesky", "ada.bsky.social").await,
        world.connect("tiktok", "ada").await,
    ];
    let photo = Photo { width: 1200, height: 1500, orientation: 6, format: ImageFormat::WebP };
    let medium = world.medium("phone.webp", None, photo.bytes()).await;
    assert_eq!((&medium["width"], &medium["height"]), (&json!(1200), &json!(1500)), "{medium}");
    let body = json!({
        "containers": [{ "content": "Look", "media": [{ "id": medium["id"] }] }],
        "accounts": accounts,
        "config": { "tiktok": { "privacy_level": "SELF_ONLY" } },
    });
    let ended = world.ended(&world.post(body).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    for target in ended["targets"].as_array().unwrap() {
        let platform = target["platform"].as_str().unwrap();
        let bytes = arrived(&world, target).await;
        let sides = photo.assert_shown(&bytes, platform);
        if platform == "bluesky" {
            assert!(bytes.len() <= 2_000_000);
            let ratio = aspect_ratio(&world, target).await;
            assert_eq!(ratio, json!({ "width": sides.0, "height": sides.1 }), "of the rendition");
        }
    }

    // A small one is published as it is, and Bluesky is told how it is displayed.
    let photo = Photo { width: 300, height: 400, orientation: 8, format: ImageFormat::Jpeg };
    let medium = world.medium("small.jpg", None, photo.bytes()).await;
    let body = json!({
        "containers": [{ "content": "And here", "media": [{ "id": medium["id"] }] }], "accounts": [accounts[1]],
    });
    let ended = world.ended(&world.post(body).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let target = &ended["targets"][0];
    assert_eq!(orientation(&arrived(&world, target).await), Some(8), "it is the original");
    assert_eq!(aspect_ratio(&world, target).await, json!({ "width": 300, "height": 400 }));
}

/// The shape that counts is the one that is displayed, for `validate` and for the platform. Instagram takes a
/// width over height of 0.56 to 1.92.
#[tokio::test]
async fn the_displayed_shape_is_checked() {
    let world = world().platforms(&["instagram"]).start().await;
    let account = world.connect("instagram", "ada").await;
    for (sides, is_valid) in [((530, 1_000), false), ((1_000, 530), true)] {
        let photo = Photo { width: sides.0, height: sides.1, orientation: 6, format: ImageFormat::Jpeg };
        let medium = world.medium("phone.jpg", None, photo.bytes()).await;
        let body = json!({
            "containers": [{ "content": "Look", "media": [{ "id": medium["id"] }] }], "accounts": [account],
        });
        let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!(verdict["valid"], is_valid, "{sides:?}: {verdict:#}");
        if is_valid {
            let ended = world.ended(&world.post(body).await).await;
            assert_eq!(ended["status"], "published", "{ended:#}");
        } else {
            assert_eq!(verdict["issues"][0]["code"], "media_aspect_ratio", "{verdict:#}");
        }
    }
}

/// A shape that Instagram refuses is published where the author says how it is made to fit, for all accounts or for one.
/// The picture is upright and not distorted, and the same each time.
#[tokio::test]
async fn a_cropped_or_padded_photo_is_not_distorted() {
    let world = world().platforms(&["instagram"]).start().await;
    let accounts = [world.connect("instagram", "ada").await, world.connect("instagram", "bob").await];
    for (orientation, format) in [(6, ImageFormat::Jpeg), (1, ImageFormat::Png), (5, ImageFormat::WebP)] {
        let photo = Photo { width: 1_000, height: 1_900, orientation, format };
        let medium = world.medium("phone", None, photo.bytes()).await;
        let body = |text: &str, config: Value| {
            json!({
                "containers": [{ "content": text, "media": [{ "id": medium["id"] }] }],
                "accounts": accounts,
                "config": { "instagram": config },
            })
        };
        let asked = world.call(Method::POST, "/posts/validate", Some(&body("Look", json!({})))).await.1;
        assert_eq!(asked["valid"], false, "{asked:#}");
        let has_remedy = |issue: &Value| {
            issue["message"].as_str().is_some_and(|told| told.contains("with the setting fit, crop or pad"))
        };
        assert!(asked["issues"].as_array().unwrap().iter().any(has_remedy), "{asked:#}");

        let config = json!({ "fit": "crop", "accounts": { "bob": { "fit": "pad" } } });
        let mut earlier = Vec::new();
        for text in ["Look", "Look again"] {
            let body = body(&format!("{text} {orientation}"), config.clone());
            let asked = world.call(Method::POST, "/posts/validate", Some(&body)).await.1;
            assert_eq!(asked["valid"], true, "{asked:#}");
            let issues = asked["issues"].as_array().unwrap();
            assert!(
                issues.iter().all(|issue| issue["code"] == "media_fitted") && issues.len() == 2,
                "{asked:#}"
            );
            let ended = world.ended(&world.post(body).await).await;
            assert_eq!(ended["status"], "published", "{ended:#}");
            let mut files = Vec::new();
            for account in &accounts {
                let targets = ended["targets"].as_array().unwrap();
                let target = targets.iter().find(|target| target["social_account_id"] == **account).unwrap();
                files.push(arrived(&world, target).await);
            }
            // The disc is at a third of the width and a quarter of the height.
            for (file, sides, [x, y]) in [
                (&files[0], (1_000, 1_333), [333.0, 475.0 - 283.5]),
                (&files[1], (1_425, 1_900), [333.0 + 212.5, 475.0]),
            ] {
                let (middle, found) = disc(file, &format!("{photo:?}"));
                assert_eq!(found, sides, "{photo:?}");
                let is_there = (middle[0] - x).abs() <= 3.0 && (middle[1] - y).abs() <= 3.0;
                assert!(is_there, "{photo:?}: the disc is at {middle:?}");
            }
            assert!(earlier.is_empty() || earlier == files, "another file than before");
            earlier = files;
        }
    }
}
