//! Media: upload, import, inspection, publishing and deletion, including malicious files.

use crate::{
    analytics::{every, scheduled, triggered},
    browser::Browser,
    database,
    replay::{client, replay},
    world,
};
use ::media::{Key, Permission, SignedToken};
use ::store::{
    bounds::unbounded,
    media::{DeleteResult, Filter, Inspected, NewMedia, SettleResult},
    people::{
        keys::{self, NewKey},
        organizations,
    },
};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    Bound, MediaId, MediaKind, MediaStatus, Mode, OrgId, Owner,
    media::{DeclaredFile, Facts},
    scope::Scope,
};
use futures::{StreamExt, stream};
use poem::{
    Endpoint, Request, Response, Server,
    listener::{Acceptor, Listener, TcpListener},
};
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    time::Duration,
};
use tests::{
    Receiver, World,
    samples::{
        arithmetic_jpeg, avi, blank_webp, bmp, boxed, docx, edited_film, encoded_film, film, film_head, gif,
        hollow_png, jpeg, locked_pdf, painting, pdf, png, ppt, wav, webm,
    },
};
use tests::{if_right, wait_until, wait_within};
use tokio::task::JoinHandle;
use uuid::Uuid;
use workflows::clean_up_media;

/// The content type of a Word document.
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Uploads bytes to an upload URL, without an API key.
async fn put(world: &World, url: &str, bytes: impl Into<Body>) -> StatusCode {
    world.http.put(url).body(bytes).send().await.unwrap().status()
}

/// Waits until an asset has this status.
pub(crate) async fn until(world: &World, id: &Value, status: &str) -> Value {
    let path = format!("/media/{}", id.as_str().unwrap());
    let look = async || if_right(world.get(&path).await, |medium| medium["status"] == status);
    wait_within(patience(), status, look).await
}

#[tokio::test]
async fn a_file_is_declared_uploaded_confirmed_and_downloaded() {
    let world = world().start().await;
    let bytes = png(1200, 675);
    let declared =
        json!({ "filename": "a b.png", "content_type": "image/png", "size": bytes.len(), "alt_text": "Ada" });
    let reported = world.declare(declared).await;
    assert_eq!(
        (
            &reported["status"],
            &reported["kind"],
            &reported["url"],
            &reported["upload_method"],
            &reported["upload_headers"]
        ),
        (
            &json!("pending_upload"),
            &json!("image"),
            &Value::Null,
            &json!("PUT"),
            &json!({ "Content-Type": "image/png" })
        )
    );
    let (status, problem) = world.confirm(&reported).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));

    let url = reported["upload_url"].as_str().unwrap();
    // The upload may be repeated until the file is confirmed.
    assert_eq!(put(&world, url, vec![7; bytes.len()]).await, StatusCode::OK);
    assert_eq!(put(&world, url, bytes.clone()).await, StatusCode::OK);
    let (status, medium) = world.confirm(&reported).await;
    assert_eq!(status, StatusCode::OK, "{medium}");
    let facts = json!({
        "id": reported["id"], "kind": "image", "filename": "a b.png", "content_type": "image/png", "size": bytes.len(),
        "width": 1200, "height": 675, "duration_ms": null, "alt_text": "Ada", "status": "ready", "error": null,
    });
    for (key, value) in facts.as_object().unwrap() {
        assert_eq!(&medium[key], value, "{key}");
    }
    assert_eq!(medium["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(world.confirm(&reported).await.0, StatusCode::OK);
    assert_eq!(put(&world, url, bytes.clone()).await, StatusCode::CONFLICT);

    let url = medium["url"].as_str().unwrap();
    assert!(url.ends_with("/a_b.png"), "{url}");
    let answer = world.http.get(url).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert!(!answer.headers().contains_key("content-disposition"), "shown in pages");
    assert_eq!(answer.bytes().await.unwrap(), bytes);
    let answer = world.http.get(url).header("range", "bytes=1-3").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(answer.headers()["content-range"], format!("bytes 1-3/{}", bytes.len()));
    assert_eq!(answer.bytes().await.unwrap(), b"PNG"[..]);
    let answer = world.http.get(url).header("range", format!("bytes={}-", bytes.len())).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let answer = world.http.head(url).send().await.unwrap();
    assert_eq!((answer.status(), &answer.headers()["content-length"]), (StatusCode::OK, &bytes.len().into()));

    let path = format!("/media/{}", reported["id"].as_str().unwrap());
    let (status, gone) = world.call(Method::DELETE, &path, None).await;
    assert_eq!((status, gone), (StatusCode::OK, json!({ "id": reported["id"], "deleted": true })));
    assert_eq!(world.call(Method::GET, &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.http.get(url).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_media_type_is_detected_from_the_bytes() {
    let world = world().start().await;
    let hdr = film(8_000, 64);
    // The `moov` box may follow the media data.
    let tail = {
        let head = film_head(640, 360, 8_000);
        let (ftyp, moov) = head.split_at(24);
        [ftyp.to_vec(), boxed(b"mdat", &[1; 4096]), moov.to_vec()].concat()
    };
    for (filename, bytes, kind, content_type, measures) in [
        ("a.gif", gif(1), "image", "image/gif", json!([1, 1, null])),
        ("a.gif", gif(3), "gif", "image/gif", json!([1, 1, 300])),
        ("a.bin", png(7, 5), "image", "image/png", json!([7, 5, null])),
        ("a.mp4", hdr, "video", "video/mp4", json!([640, 360, 8000])),
        ("a.mov", tail, "video", "video/mp4", json!([640, 360, 8000])),
        ("a.webm", webm(), "video", "video/webm", json!([640, 360, 2000])),
        ("a.docx", docx(u32::MAX - 1), "document", DOCX, json!([null, null, null])),
        // The index is behind what is looked at first.
        ("a.ppt", ppt(100_000), "document", "application/vnd.ms-powerpoint", json!([null, null, null])),
        ("a.wav", wav(32_000), "audio", "audio/wav", json!([null, null, 2000])),
        ("a.pdf", pdf(), "document", "application/pdf", json!([null, null, null])),
    ] {
        let medium = world.medium(filename, None, bytes).await;
        assert_eq!(
            (&medium["kind"], &medium["content_type"]),
            (&json!(kind), &json!(content_type)),
            "{filename}"
        );
        let found = json!([medium["width"], medium["height"], medium["duration_ms"]]);
        assert_eq!(found, measures, "{filename} {kind}");
    }
}

/// A browser guesses the declared type by the name, and cameras, programs and people name files as they like.
#[tokio::test]
async fn a_declared_type_is_a_hint_and_the_type_of_the_bytes_is_stored() {
    let world = world().start().await;
    let film = film(8_000, 64);
    let quicktime = [&film[..8], b"qt  ", &film[12..]].concat();
    let mobile = [&film[..8], b"3gp4", &film[12..]].concat();
    let matroska = {
        let (webm, name) = (webm(), b"\x42\x82\x40\x04webm");
        let at = webm.windows(name.len()).position(|part| part == name).unwrap();
        // The header grows by the four letters that the name is longer.
        [b"\x1a\x45\xdf\xa3\x40\x0c\x42\x82\x40\x08matroska", &webm[at + name.len()..]].concat()
    };
    for (filename, declared, bytes, kind, content_type) in [
        ("a.jpg", "image/jpeg", png(7, 5), "image", "image/png"),
        ("a.png", "image/png", jpeg(8, 8), "image", "image/jpeg"),
        ("a.jfif", "image/pjpeg", jpeg(8, 8), "image", "image/jpeg"),
        ("a.png", "image/png", gif(3), "gif", "image/gif"),
        ("a.gif", "image/gif", png(7, 5), "image", "image/png"),
        ("a.MP4", "video/mp4", quicktime, "video", "video/quicktime"),
        ("a.mov", "video/quicktime", film.clone(), "video", "video/mp4"),
        ("a.3gp", "video/3gpp", mobile, "video", "video/mp4"),
        ("a.mp4", "video/mp4", webm(), "video", "video/webm"),
        ("a.mkv", "video/x-matroska", matroska, "video", "video/x-matroska"),
        ("a.mp4", "video/mp4", avi(640, 360, 50), "video", "video/x-msvideo"),
        ("a.png", "image/png", bmp(7, 5), "image", "image/bmp"),
        ("a.aac", "audio/vnd.dlna.adts", wav(1600), "audio", "audio/wav"),
        ("a.txt", "application/msword", pdf(), "document", "application/pdf"),
        // Types and names that nobody here knows.
        ("Interview with Dr.Smith", "image/x-of-tomorrow", png(7, 5), "image", "image/png"),
        ("x.exe", "text/html", png(7, 5), "image", "image/png"),
        ("a.svg", "image/svg+xml", png(7, 5), "image", "image/png"),
    ] {
        let body = json!({ "filename": filename, "content_type": declared });
        let (status, medium) = world.confirm(&world.upload(body, bytes).await).await;
        assert_eq!(status, StatusCode::OK, "{filename}: {medium}");
        let found = (&medium["kind"], &medium["content_type"], &medium["status"]);
        assert_eq!(found, (&json!(kind), &json!(content_type), &json!("ready")), "{filename}");
    }
    let refused = world.upload(json!({ "filename": "a.psd" }), b"8BPS\0\x01\0\0".to_vec()).await;
    let (_, problem) = world.confirm(&refused).await;
    let detail = problem["detail"].as_str().unwrap();
    for part in ["pictures (JPEG, PNG, ", "videos (MP4, MOV, ", "audio (MP3, ", "documents (PDF, "] {
        assert!(detail.contains(part), "{detail}");
    }
}

#[tokio::test]
async fn the_encoding_of_a_file_is_shown_and_judged_per_platform() {
    let world = world().start().await;
    let facts = |medium: &Value| medium["facts"].clone();
    let nothing = json!({
        "video_codec": null, "audio_codec": null, "frame_rate": null, "bit_depth": null, "chroma": null,
        "index_first": null, "is_fragmented": null, "has_edits": null, "is_locked": null, "is_truncated": null,
        "undecodable": null, "uncleanable": null,
    });
    let with = |some: Value| {
        let mut facts = nothing.clone();
        facts.as_object_mut().unwrap().extend(some.as_object().unwrap().clone());
        facts
    };
    let film = world.medium("a.mp4", None, encoded_film(64)).await;
    let expected = json!({
        "video_codec": "h264", "audio_codec": "aac", "frame_rate": 24.0, "bit_depth": 10, "chroma": "4:2:0",
        "index_first": false, "is_fragmented": false, "has_edits": false,
    });
    assert_eq!(facts(&film), with(expected));
    let edited = world.medium("b.mp4", None, edited_film(64)).await;
    assert_eq!((&edited["facts"]["chroma"], &edited["facts"]["has_edits"]), (&json!("4:2:2"), &json!(true)));
    // A chunk that claims more bytes than follow it.
    let mut webp = [&blank_webp(64, 64)[..], b"XMP \xff\0\0\0"].concat();
    let length = u32::try_from(webp.len() - 8).unwrap();
    webp[4..8].copy_from_slice(&length.to_le_bytes());
    let unclean = world.medium("a.webp", None, webp).await;
    assert!(unclean["facts"]["uncleanable"].is_string(), "{unclean}");
    let cut = world.medium("a.gif", None, gif(3)[..80].to_vec()).await;
    assert_eq!((&cut["kind"], facts(&cut)), (&json!("gif"), with(json!({ "is_truncated": true }))));
    let pdf = world.medium("a.pdf", None, locked_pdf()).await;
    assert_eq!(facts(&pdf), with(json!({ "is_locked": true })));
    assert_eq!(facts(&world.medium("b.pdf", None, tests::samples::pdf()).await), nothing);
    assert_eq!(facts(&world.medium("a.png", None, png(7, 5)).await), nothing);
    let announced = world.declare(json!({ "filename": "a.mp4" })).await;
    assert_eq!(facts(&announced), Value::Null, "nobody has looked yet");

    let validate = async |platform: &str, medium: &Value| {
        let name = if platform == "bluesky" { "ada.bsky.social" } else { "ada" };
        let account = world.connect(platform, name).await;
        let containers = json!([{ "content": "Dawn", "media": [{ "id": medium["id"] }] }]);
        let body = json!({ "containers": containers, "accounts": [account] });
        world.call(Method::POST, "/posts/validate", Some(&body)).await.1
    };
    for (platform, medium, code, words) in [
        ("x", &film, "media_encoding", "8 bits per color and not 10"),
        ("instagram", &film, "media_encoding", "an index before the samples"),
        ("linkedin", &pdf, "media_locked", "save it without a password"),
        ("instagram", &edited, "media_encoding", "4:2:0 chroma subsampling and not 4:2:2"),
        ("threads", &edited, "media_encoding", "no edit list"),
        ("x", &edited, "media_encoding", "4:2:0 chroma subsampling and not 4:2:2"),
        ("x", &cut, "media_truncated", "ends before the last frame"),
        ("x", &unclean, "media_uncleanable", "its position and metadata can't be removed"),
    ] {
        let verdict = validate(platform, medium).await;
        assert_eq!(verdict["valid"], true, "{verdict:#}");
        let issue = verdict["issues"].as_array().unwrap().iter().find(|issue| issue["code"] == code);
        let issue = issue.unwrap_or_else(|| panic!("{code}: {verdict:#}"));
        assert_eq!(issue["severity"], "warning", "{verdict:#}");
        assert!(issue["message"].as_str().unwrap().contains(words), "{verdict:#}");
    }
    let verdict = validate("bluesky", &film).await;
    assert_eq!(verdict["issues"], json!([]), "it names no encoding");
}

/// The API's document says so.
#[test]
fn no_platform_takes_audio() {
    for platform in platforms::all() {
        let comment = platform.limits.comment.iter().flat_map(|comment| comment.media);
        let mut kinds = platform.limits.media.iter().chain(comment).map(|limit| limit.kind);
        assert!(kinds.all(|kind| kind != MediaKind::Audio), "{}", platform.id);
    }
}

#[test]
fn every_type_that_a_platform_takes_can_be_uploaded() {
    for platform in platforms::all() {
        let comment = platform.limits.comment.iter().flat_map(|comment| comment.media);
        for limit in platform.limits.media.iter().chain(comment) {
            for mime in limit.mimes {
                let stored = ::media::format(mime).map(|format| format.mime);
                assert_eq!(stored, Some(*mime), "{} takes {mime}, which no asset has", platform.id);
            }
        }
    }
}

#[tokio::test]
async fn mismatched_and_malformed_files_are_refused_permanently() {
    let world = world().set("FANFARE_MEDIA_MAX_BYTES", r#"{"image": 2000, "gif": 1000}"#).start().await;
    let png = png(8, 8);
    let zip = [&png[..], b"PK\x05\x06", &[0; 18]].concat();
    let bomb = [b"\x89PNG\r\n\x1a\n".to_vec(), hollow_png(60_000, 60_000)[8..].to_vec()].concat();
    let moving = |length: usize| [gif(1)[..19].to_vec(), gif(length / 20)[19..].to_vec()].concat();
    for (body, bytes, status) in [
        // Not of the declared kind.
        (json!({ "filename": "a.mp4", "content_type": "video/mp4" }), png.clone(), 422),
        (json!({ "filename": "a.png", "content_type": "image/png" }), film(1000, 64), 422),
        (json!({ "filename": "a.png", "content_type": "image/png" }), pdf(), 422),
        (json!({ "filename": "a.pdf", "content_type": "application/pdf" }), png.clone(), 422),
        (json!({ "filename": "a.wav", "content_type": "audio/wav" }), film(1000, 64), 422),
        // Of no type that is stored, whatever it is declared as.
        (json!({ "filename": "a.html", "content_type": "text/html" }), b"<!DOCTYPE html>".to_vec(), 422),
        (json!({ "filename": "x.exe", "content_type": "image/png" }), b"MZ\x90\0\x03\0\0\0".to_vec(), 422),
        (json!({ "filename": "a.psd" }), b"8BPS\0\x01\0\0\0\0\0\0".to_vec(), 422),
        (
            json!({ "filename": "a.png" }),
            b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>".to_vec(),
            422,
        ),
        (json!({ "filename": "a.png" }), b"MZ\x90\0\x03\0\0\0".to_vec(), 422),
        (json!({ "filename": "a.png" }), b"<!DOCTYPE html><script>alert(1)</script>".to_vec(), 422),
        (json!({ "filename": "a" }), b"plain text".to_vec(), 422),
        (json!({ "filename": "a.png" }), Vec::new(), 422),
        // Two formats in one file.
        (json!({ "filename": "a.png" }), zip, 422),
        (json!({ "filename": "a.gif" }), [&gif(1)[..13], b"<script>alert(1)</script>"].concat(), 422),
        // Truncated.
        (json!({ "filename": "a.png" }), png[..png.len() - 6].to_vec(), 422),
        (json!({ "filename": "a.png" }), png[..20].to_vec(), 422),
        (json!({ "filename": "a.gif" }), gif(2)[..40].to_vec(), 422),
        (json!({ "filename": "a.mp4" }), film(1000, 400)[..300].to_vec(), 422),
        (json!({ "filename": "a.mp4" }), film(1000, 0)[..24].to_vec(), 422),
        (json!({ "filename": "a.wav" }), b"RIFF\xff\xff\0\0WAVEfmt \x10\0\0\0".to_vec(), 422),
        (json!({ "filename": "a.mp3" }), b"ID3\x04\0\0\x7f\x7f\x7f\x7f".to_vec(), 422),
        (json!({ "filename": "a.webm" }), b"\x1aE\xdf\xa3\xff\xff\xff\xff".to_vec(), 422),
        // Dimensions that are too large to decode.
        (json!({ "filename": "a.png" }), bomb, 422),
        // A box that exceeds the file, and one that is shorter than its own header.
        (
            json!({ "filename": "a.mp4" }),
            b"\0\0\0\x18ftypisom\0\0\x02\0isommp42\xff\xff\xff\xffmoov".to_vec(),
            422,
        ),
        (json!({ "filename": "a.mp4" }), b"\0\0\0\x18ftypisom\0\0\x02\0isommp42\0\0\0\x02moov".to_vec(), 422),
        // An animated GIF has a size limit of its own.
        (json!({ "filename": "a.gif" }), moving(1500), 413),
    ] {
        let reported = world.declare(body.clone()).await;
        let what = format!("{body} {}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
        let url = reported["upload_url"].as_str().unwrap();
        assert_eq!(put(&world, url, bytes).await, StatusCode::OK, "{what}");
        for _ in 0..2 {
            let (answered, problem) = world.confirm(&reported).await;
            assert_eq!(answered.as_u16(), status, "{what}: {problem}");
            let code = if status == 413 { "payload_too_large" } else { "unprocessable" };
            assert_eq!(problem["code"], code, "{what}");
        }
        let medium = world.get(&format!("/media/{}", reported["id"].as_str().unwrap())).await;
        assert_eq!((&medium["status"], &medium["url"]), (&json!("failed"), &Value::Null), "{what}");
        assert!(medium["error"].is_string(), "{what}");
    }
    // An invalid declaration is refused immediately.
    for (body, status) in [
        (json!({ "filename": "a.png", "size": 2001 }), 413),
        (json!({ "filename": "a.png", "sha256": "z".repeat(64) }), 400),
        (json!({ "filename": "a\nb.png" }), 400),
        (json!({ "filename": "a\u{7f}.png" }), 400),
        (json!({ "filename": "a.png", "content_type": "image/png\r\nX: y" }), 400),
        (json!({ "filename": "a.png", "alt_text": "a\u{b}b" }), 400),
        (json!({ "filename": "a.png", "alt_text": "a\nb" }), 201),
    ] {
        let (answered, problem) = world.call(Method::POST, "/media/upload", Some(&body)).await;
        assert_eq!(answered.as_u16(), status, "{body}: {problem}");
    }
    // Nor is one taken later, of which posts that were accepted would die.
    let described = world.medium("a.png", Some("a b"), png.clone()).await;
    let path = format!("/media/{}", described["id"].as_str().unwrap());
    let wrong = json!({ "alt_text": "a\u{7}" });
    assert_eq!(world.call(Method::PATCH, &path, Some(&wrong)).await.0.as_u16(), 400);
    let fetched = json!({ "url": "https://example.com/a.png", "alt_text": "a\u{7}" });
    assert_eq!(world.call(Method::POST, "/media/import", Some(&fetched)).await.0.as_u16(), 400);
}

#[tokio::test]
async fn uploads_must_match_the_declared_size_and_digest() {
    let world = world().set("FANFARE_MEDIA_MAX_BYTES", r#"{"image": 100000, "gif": 1000}"#).start().await;
    let bytes = png(8, 8);
    let digest = world.medium("a.png", None, bytes.clone()).await["sha256"].clone();
    let right = json!({ "filename": "a.png", "size": bytes.len(), "sha256": digest.as_str().unwrap().to_uppercase() });
    assert_eq!(world.confirm(&world.upload(right.clone(), bytes.clone()).await).await.0, StatusCode::OK);
    for (body, sent, expected) in [
        (json!({ "filename": "a.png", "size": bytes.len() + 1 }), bytes.clone(), 422),
        (json!({ "filename": "a.png", "size": bytes.len() - 1 }), bytes.clone(), 422),
        (json!({ "filename": "a.png", "sha256": "0".repeat(64) }), bytes.clone(), 422),
        (json!({ "filename": "a.png" }), vec![0; 100_001], 413),
    ] {
        let reported = world.declare(body.clone()).await;
        let url = reported["upload_url"].as_str().unwrap();
        assert_eq!(put(&world, url, sent.clone()).await.as_u16(), expected, "{body}");
        // Also without a `Content-Length`.
        let pieces = stream::iter(
            sent.chunks(1000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>(),
        );
        assert_eq!(put(&world, url, Body::wrap_stream(pieces)).await.as_u16(), expected, "{body}");
        // No bytes were kept, and the reason is known.
        let (status, problem) = world.confirm(&reported).await;
        assert_eq!(status.as_u16(), expected, "{body}: {problem}");
        assert!(!problem["detail"].as_str().unwrap().contains("PUT"), "{problem}");
        let path = format!("/media/{}", reported["id"].as_str().unwrap());
        let asset = world.get(&path).await;
        assert_eq!(
            (&asset["status"], &asset["error"]),
            (&json!("pending_upload"), &problem["detail"]),
            "{asset}"
        );
    }
    // A file that is sent then is taken, and confirmed.
    let reported = world.declare(json!({ "filename": "a.png" })).await;
    let url = reported["upload_url"].as_str().unwrap();
    assert_eq!(put(&world, url, vec![0; 100_001]).await.as_u16(), 413);
    let (status, problem) = world.confirm(&reported).await;
    assert_eq!((status.as_u16(), &problem["code"]), (413, &json!("payload_too_large")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("100000"), "the cap: {problem}");
    assert_eq!(put(&world, url, bytes).await.as_u16(), 200);
    assert_eq!(world.confirm(&reported).await.0, StatusCode::OK);
}

/// A client that reads nothing before it has sent everything, as those of Python's standard library.
#[tokio::test]
async fn a_client_that_sends_a_whole_oversized_file_sees_the_refusal() {
    let world = world().set("FANFARE_MEDIA_MAX_BYTES", r#"{"image": 100000}"#).start().await;
    let reported = world.declare(json!({ "filename": "a.png" })).await;
    let url: url::Url = reported["upload_url"].as_str().unwrap().parse().unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        let size = 40 << 20;
        let address = (url.host_str().unwrap(), url.port().unwrap());
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let path = &url[url::Position::BeforePath..];
        let head = format!(
            "PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![0; size]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("payload_too_large"), "{answer}");
}

#[tokio::test]
async fn a_signed_url_permits_one_action_on_one_file_until_it_expires() {
    let world = world().start().await;
    let (one, other) = (
        world.declare(json!({ "filename": "a.png" })).await,
        world.declare(json!({ "filename": "b.png" })).await,
    );
    let url = one["upload_url"].as_str().unwrap();
    let id = |reported: &Value| reported["id"].as_str().unwrap().to_owned();
    let stranger = url.replace(&id(&one), &id(&other));
    let key = Key::derive(&[0; 32]);
    let media: MediaId = id(&one).parse().unwrap();
    let now = Utc::now();
    let pass = |right, owner, expires_at| key.write(right, &SignedToken { media, owner, expires_at });
    let at = |pass: &str| format!("{}/media/{media}/content?pass={pass}", world.base);
    let live = Owner { mode: Mode::Live, ..world.owner };
    let hour = TimeDelta::hours(1);
    for (url, expected) in [
        (stranger, 403),
        (at(""), 403),
        (at("AAAA"), 403),
        (format!("{}/media/{media}/content", world.base), 403),
        (at(&pass(Permission::Get, world.owner, now + hour)), 403),
        (at(&pass(Permission::Put, world.owner, now - TimeDelta::seconds(2))), 403),
        (at(&pass(Permission::Put, live, now + hour)), 404),
        (
            at(&Key::derive(&[1; 32])
                .write(Permission::Put, &SignedToken { media, owner: world.owner, expires_at: now + hour })),
            403,
        ),
        (format!("{}/media/none/content?pass=A", world.base), 404),
    ] {
        assert_eq!(put(&world, &url, png(8, 8)).await.as_u16(), expected, "{url}");
    }
    assert_eq!(world.confirm(&one).await.0, StatusCode::CONFLICT);
    assert_eq!(
        put(&world, &at(&pass(Permission::Put, world.owner, now + hour)), png(8, 8)).await,
        StatusCode::OK
    );
    // A pass for uploading does not permit downloading, and other methods are not allowed.
    let put_pass = pass(Permission::Put, world.owner, now + hour);
    let fetched = world
        .http
        .get(format!("{}/media/{media}/content/{put_pass}/a.png", world.base))
        .send()
        .await
        .unwrap();
    assert_eq!(fetched.status(), StatusCode::FORBIDDEN);
    let posted = world.http.post(url).body("x").send().await.unwrap();
    assert_eq!(
        (posted.status(), &posted.headers()["allow"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"PUT".parse().unwrap())
    );
    // Media of another owner are not found.
    let org = organizations::create(&world.db, "Stranger").await.unwrap();
    for owner in [live, Owner { org, ..world.owner }] {
        let key = keys::create(
            &world.db,
            NewKey { owner, name: "stranger".to_owned(), scopes: vec![Scope::All], expires_at: None },
            now,
        )
        .await
        .unwrap()
        .1;
        for (method, path) in
            [(Method::GET, ""), (Method::PATCH, ""), (Method::DELETE, ""), (Method::POST, "/confirm")]
        {
            let request = world.http.request(method, format!("{}/media/{media}{path}", world.base));
            let request = request.json(&json!({ "alt_text": "A stranger's" }));
            assert_eq!(
                request.bearer_auth(&key).send().await.unwrap().status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn an_image_and_a_video_are_published_with_alt_text() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let bluesky = world.connect("bluesky", "ada.bsky.social").await;
    let picture = world.medium("a.png", Some("A bridge at dawn"), png(64, 64)).await;
    let film = world.medium("a.mp4", None, film(8_000, 3 << 20)).await;
    let call = json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "when": "before" });
    let hold = world.hold(call).await;
    let post = world
        .post(json!({
            "containers": [
                { "content": "Look", "media": [{ "id": picture["id"] }] },
                { "content": "And watch", "media": [{ "id": film["id"], "alt_text": "A train on a bridge" }] },
            ],
            "accounts": [x, bluesky],
        }))
        .await;
    // Media of a post that is being published cannot be deleted.
    hold.until_held().await;
    let path = format!("/media/{}", picture["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::CONFLICT);
    hold.release().await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    world.completed(&post, 2).await;
    for target in ended["targets"].as_array().unwrap() {
        let page = world.http.get(target["platform_post_url"].as_str().unwrap()).send().await.unwrap();
        let page = page.text().await.unwrap();
        assert!(page.contains("A bridge at dawn"), "{page}");
    }
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
}

/// Sends a change of an asset.
async fn describe(world: &World, medium: &Value, body: Value) -> (StatusCode, Value) {
    world.call(Method::PATCH, &format!("/media/{}", medium["id"].as_str().unwrap()), Some(&body)).await
}

#[tokio::test]
async fn an_alt_text_is_changed_and_removed() {
    let world = world().start().await;
    let picture = world.medium("a.png", Some("Ada"), png(8, 8)).await;
    for (body, alt_text) in [
        (json!({ "alt_text": "A bridge" }), json!("A bridge")),
        (json!({ "alt_text": "A bridge" }), json!("A bridge")),
        (json!({}), json!("A bridge")),
        (json!({ "alt_text": "é".repeat(5000) }), json!("é".repeat(5000))),
        (json!({ "alt_text": null }), json!(null)),
    ] {
        let (status, changed) = describe(&world, &picture, body.clone()).await;
        assert_eq!((status, &changed["alt_text"]), (StatusCode::OK, &alt_text), "{body}");
        let mut expected = world.get(&format!("/media/{}", picture["id"].as_str().unwrap())).await;
        // The download URL is signed for a moment.
        expected["url"] = changed["url"].clone();
        assert_eq!(changed, expected);
        assert_eq!((&changed["status"], &changed["size"]), (&picture["status"], &picture["size"]));
    }
    for body in [json!({ "alt_text": "a".repeat(5001) }), json!({ "alt_text": 7 }), json!([])] {
        let (status, problem) = describe(&world, &picture, body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
    }
    // Before the file is there, too.
    let declared = world.declare(json!({ "filename": "b.png" })).await;
    let (status, changed) = describe(&world, &declared, json!({ "alt_text": "Later" })).await;
    assert_eq!((status, &changed["alt_text"]), (StatusCode::OK, &json!("Later")), "{changed}");

    let path = format!("/media/{}", picture["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    for gone in [picture, json!({ "id": Uuid::now_v7().to_string() }), json!({ "id": "none" })] {
        let (status, problem) = describe(&world, &gone, json!({ "alt_text": "x" })).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")), "{gone}");
    }
}

#[tokio::test]
async fn a_post_is_published_with_the_alt_text_that_its_file_has_then() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let picture = world.medium("a.png", Some("Before"), png(64, 64)).await;
    let container = |alt: Option<&str>| match alt {
        Some(alt) => json!({ "content": "Look", "media": [{ "id": picture["id"], "alt_text": alt }] }),
        None => json!({ "content": "See", "media": [{ "id": picture["id"] }] }),
    };
    let mut drafts = Vec::new();
    for alt in [None, Some("Its own")] {
        let body = json!({ "containers": [container(alt)], "accounts": [x], "is_draft": true });
        drafts.push(world.post(body).await);
    }
    let (status, changed) = describe(&world, &picture, json!({ "alt_text": "After" })).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let mut pages = Vec::new();
    for (draft, expected) in drafts.iter().zip(["After", "Its own"]) {
        let path = format!("/posts/{}", draft["id"].as_str().unwrap());
        let (status, released) = world.call(Method::PATCH, &path, Some(&json!({ "is_draft": false }))).await;
        assert_eq!(status, StatusCode::OK, "{released}");
        let ended = world.ended(draft).await;
        let url = ended["targets"][0]["platform_post_url"].as_str().unwrap().to_owned();
        let page = world.http.get(&url).send().await.unwrap().text().await.unwrap();
        assert!(page.contains(expected) && !page.contains("Before"), "{page}");
        pages.push(url);
    }
    // A published post keeps its text.
    assert_eq!(describe(&world, &picture, json!({ "alt_text": "Much later" })).await.0, StatusCode::OK);
    let page = world.http.get(&pages[0]).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("After"), "{page}");
}

/// A look-up may search a platform for the text that was sent.
#[tokio::test]
async fn an_alt_text_stays_while_its_file_is_being_published() {
    let world = world().start().await;
    let x = world.connect("x", "ada").await;
    let picture = world.medium("a.png", Some("Before"), png(64, 64)).await;
    let call = json!({ "platform": "x", "method": "POST", "path_prefix": "/2/tweets", "when": "before" });
    let hold = world.hold(call).await;
    let container = json!({ "content": "Look", "media": [{ "id": picture["id"] }] });
    let post = world.post(json!({ "containers": [container], "accounts": [x] })).await;
    hold.until_held().await;
    let after = || describe(&world, &picture, json!({ "alt_text": "After" }));
    let (status, problem) = after().await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    hold.release().await;
    let ended = world.ended(&post).await;
    let page =
        world.http.get(ended["targets"][0]["platform_post_url"].as_str().unwrap()).send().await.unwrap();
    assert!(page.text().await.unwrap().contains("Before"));
    assert_eq!(after().await.0, StatusCode::OK);

    // A target that ended in doubt is looked up before it is published again.
    let target: Uuid = ended["targets"][0]["id"].as_str().unwrap().parse().unwrap();
    let doubt = "update publications set platform_id = null, commit_begun_at = now(), commit_deadline = now()
                 where target_id = $1";
    sqlx::query(doubt).bind(target).execute(&world.db).await.unwrap();
    assert_eq!(after().await.0, StatusCode::CONFLICT);
}

/// Instagram takes JPEG only, and Bluesky 2 MB.
#[tokio::test]
async fn a_picture_is_fitted_to_each_platform() {
    let world = world().platforms(&["instagram", "bluesky", "x"]).start().await;
    let accounts = [
        world.connect("instagram", "ada").await,
        world.connect("bluesky", "ada.bsky.social").await,
        world.connect("x", "ada").await,
    ];
    let original = painting(1300, 900);
    assert!(original.len() > 2_000_000 && original.len() < 5 << 20);
    let picture = world.medium("painting.png", Some("Noise"), original.clone()).await;
    let body = json!({
        "containers": [{ "content": "Look", "media": [{ "id": picture["id"] }] }], "accounts": accounts,
    });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    let told: Vec<_> = verdict["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| (issue["platform"].as_str().unwrap(), issue["code"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("instagram", "media_fitted"), ("bluesky", "media_fitted")], "{verdict:#}");
    assert_eq!(verdict["valid"], true);
    let ended = world.ended(&world.post(body).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    // The original stays as it is.
    let path = format!("/media/{}", picture["id"].as_str().unwrap());
    let kept = world.get(&path).await;
    assert_eq!((&kept["content_type"], &kept["size"]), (&picture["content_type"], &json!(original.len())));
    let renditions = || {
        let directory = std::path::Path::new(world.variable("FANFARE_MEDIA").trim_start_matches("file://"))
            .join("renditions/test")
            .join(world.owner.org.to_string())
            .join(picture["id"].as_str().unwrap());
        std::fs::read_dir(directory).map_or(0, |found| found.map(Result::unwrap).count())
    };
    // One for each platform that needs one, and the thumbnail.
    wait_until("the thumbnail", async || if_right(renditions(), |made| *made == 3)).await;
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    wait_until("the renditions to be deleted", async || if_right(renditions(), |left| *left == 0)).await;
}

/// Bluesky takes 2 MB, and 1 MB as the picture of a link card.
#[tokio::test]
async fn the_picture_of_a_link_card_is_fitted_to_the_card() {
    let world = world().platforms(&["bluesky"]).start().await;
    let account = world.connect("bluesky", "ada.bsky.social").await;
    let original = painting(800, 500);
    assert!((1_000_001..2_000_000).contains(&original.len()));
    let picture = world.medium("painting.png", Some("Noise"), original).await;
    let body = json!({
        "containers": [{ "content": "Look", "media": [{ "id": picture["id"] }] }],
        "accounts": [account],
        "config": { "bluesky": { "link": { "url": "https://example.com/a", "title": "A page" } } },
    });
    let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body)).await;
    assert_eq!(verdict["issues"][0]["code"], "media_fitted", "{verdict:#}");
    assert_eq!(verdict["valid"], true);
    let ended = world.ended(&world.post(body).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
}

/// Waits until a picture could not be decoded, and returns the reason.
async fn undecodable(world: &World, medium: &Value) -> String {
    let path = format!("/media/{}", medium["id"].as_str().unwrap());
    let told = wait_until("the picture to be decoded", async || {
        if_right(world.get(&path).await, |medium| medium["facts"]["undecodable"].is_string())
    });
    told.await["facts"]["undecodable"].as_str().unwrap().to_owned()
}

/// The inspection reads headers only; a worker decodes a picture when it is ready, and nobody waits for that.
#[tokio::test]
async fn a_picture_that_can_t_be_decoded_is_told_before_it_is_published() {
    let world = world().start().await;
    let accounts = [world.connect("x", "ada").await, world.connect("instagram", "ada").await];
    // An arithmetic-coded JPEG may be shown by a platform. Instagram takes no PNG.
    let coded = world.medium("coded.jpg", None, arithmetic_jpeg(640, 640)).await;
    let empty = world.medium("empty.png", None, hollow_png(640, 640)).await;
    let mut reasons = Vec::new();
    for medium in [&coded, &empty] {
        assert_eq!(medium["status"], "ready");
        let reason = undecodable(&world, medium).await;
        assert!(reason.starts_with("it can't be read: "), "{reason}");
        reasons.push(reason);
    }
    let body = |medium: &Value| {
        let containers = json!([{ "content": "Look", "media": [{ "id": medium["id"] }] }]);
        json!({ "containers": containers, "accounts": accounts })
    };
    let issues = async |medium: &Value| {
        let (_, verdict) = world.call(Method::POST, "/posts/validate", Some(&body(medium))).await;
        let issues = verdict["issues"].as_array().unwrap().iter();
        let told = issues.filter(|issue| issue["code"] == "media_undecodable").map(|issue| {
            assert!(
                reasons.iter().any(|reason| issue["message"].as_str().unwrap().contains(reason)),
                "{issue}"
            );
            json!([issue["platform"], issue["severity"]])
        });
        (verdict["valid"].clone(), told.collect::<Vec<_>>())
    };
    let warned = [json!(["x", "warning"]), json!(["instagram", "warning"])];
    assert_eq!(issues(&coded).await, (json!(true), warned.to_vec()));
    let refused = [json!(["x", "warning"]), json!(["instagram", "error"])];
    assert_eq!(issues(&empty).await, (json!(false), refused.to_vec()));
    let (status, problem) = world.call(Method::POST, "/posts", Some(&body(&empty))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    let page = Browser::signed_in(&world).await.open("/media").await;
    assert_eq!(page.matches("can\u{2019}t be decoded").count(), 2, "{page}");
}

#[tokio::test]
async fn a_picture_that_can_t_be_fitted_ends_dead_with_the_reason() {
    let world = world().start().await;
    let account = world.connect("instagram", "ada").await;
    let picture = world.medium("empty.png", None, hollow_png(640, 640)).await;
    undecodable(&world, &picture).await;
    // As one of which a process in a hurry knew nothing.
    let id: Uuid = picture["id"].as_str().unwrap().parse().unwrap();
    let forget = "update media set facts = facts - 'undecodable' where id = $1";
    sqlx::query(forget).bind(id).execute(&world.db).await.unwrap();
    let post = world
        .post(json!({
            "containers": [{ "content": "Look", "media": [{ "id": picture["id"] }] }], "accounts": [account],
        }))
        .await;
    let ended = world.ended(&post).await;
    let target = &ended["targets"][0];
    assert_eq!(
        (&target["status"], &target["error_code"]),
        (&json!("dead"), &json!("rejected_422")),
        "{target}"
    );
    assert!(target["error_message"].as_str().unwrap().contains("can't be fitted"), "{target}");
}

#[tokio::test]
async fn a_platform_can_download_the_file() {
    let world = world().start().await;
    let account = world.connect("instagram", "ada").await;
    let jpeg = jpeg(640, 640);
    let picture = world.medium("a.jpg", None, jpeg).await;
    let post = world
        .post(json!({
            "containers": [{ "content": "Look", "media": [{ "id": picture["id"] }] }], "accounts": [account],
        }))
        .await;
    let ended = world.ended(&post).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
}

#[tokio::test]
async fn browsers_save_documents_and_do_not_open_them() {
    let world = world().start().await;
    let document = world.medium("a.pdf", None, pdf()).await;
    let answer = world.http.get(document["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(answer.headers()["content-disposition"], "attachment");
}

#[tokio::test]
async fn a_post_accepts_only_media_that_can_be_published() {
    let world = world().start().await;
    world.connect("x", "ada").await;
    world.connect("bluesky", "ada.bsky.social").await;
    let awaited = world.declare(json!({ "filename": "a.png" })).await;
    let picture = world.medium("a.png", None, png(8, 8)).await;
    let document = world.medium("a.pdf", None, pdf()).await;
    let of = |ids: &[&Value]| {
        let media: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
        json!({ "containers": [{ "content": "Look", "media": media }], "accounts": ["ada"], "scheduled_at": "2040-01-01T00:00:00Z" })
    };
    let body = of(&[&picture["id"], &awaited["id"], &json!(Uuid::nil()), &json!("none")]);
    for path in ["/posts", "/posts/validate"] {
        let (status, problem) = world.call(Method::POST, path, Some(&body)).await;
        assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("media_not_ready")), "{problem}");
        let paths: Vec<_> =
            problem["errors"].as_array().unwrap().iter().map(|issue| issue["path"].clone()).collect();
        assert_eq!(json!(paths), json!([1, 2, 3].map(|at| json!(["containers", 0, "media", at, "id"]))));
    }
    // Platforms validate the inspected file.
    let (status, problem) = world.call(Method::POST, "/posts", Some(&of(&[&document["id"]]))).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("content_rejected")), "{problem}");
    let post = world.post(of(&[&picture["id"]])).await;
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    let edit = json!({ "containers": of(&[&document["id"]])["containers"] });
    let (status, problem) = world.call(Method::PATCH, &path, Some(&edit)).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("content_rejected")), "{problem}");
    // Media that the post keeps are validated again for new accounts.
    let (status, problem) =
        world.call(Method::PATCH, &path, Some(&json!({ "accounts": ["ada.bsky.social"] }))).await;
    assert_eq!(status, StatusCode::OK, "{problem}");

    // Media of a scheduled post cannot be deleted.
    let medium = format!("/media/{}", picture["id"].as_str().unwrap());
    let (status, problem) = world.call(Method::DELETE, &medium, None).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    assert_eq!(world.call(Method::DELETE, &medium, None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn media_are_listed_newest_first_by_offset() {
    let world = world().start().await;
    let mut ids = Vec::new();
    for index in 0..5 {
        ids.push(world.declare(json!({ "filename": format!("{index}.png") })).await["id"].clone());
    }
    let film = world.declare(json!({ "filename": "a.mp4" })).await["id"].clone();
    let named = |page: &Value| {
        page["data"].as_array().unwrap().iter().map(|medium| medium["id"].clone()).collect::<Vec<_>>()
    };
    let page = world.get("/media?limit=2&offset=1").await;
    assert_eq!(page["pagination"], json!({ "limit": 2, "offset": 1, "total": 6 }));
    assert_eq!(named(&page), [ids[4].clone(), ids[3].clone()]);
    assert_eq!(named(&world.get("/media?kind=video&status=pending_upload").await), [film]);
    let page = world.get("/media?status=ready&limit=999&offset=-7").await;
    assert_eq!(page, json!({ "data": [], "pagination": { "limit": 100, "offset": 0, "total": 0 } }));
    assert_eq!(
        world.get("/media?offset=99").await["pagination"],
        json!({ "limit": 25, "offset": 99, "total": 6 })
    );
    let (status, problem) = world.call(Method::GET, "/media?kind=film&status=gone&limit=x", None).await;
    assert_eq!((status.as_u16(), problem["errors"].as_array().unwrap().len()), (400, 3), "{problem}");
}

/// Serves a file, redirects and faulty responses, by path.
struct Origin(Vec<u8>);

impl Endpoint for Origin {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let path = request.uri().path().to_owned();
        Ok(match path.as_str() {
            "/a.png" => Response::builder().body(self.0.clone()),
            "/twice" => Response::builder().status(StatusCode::FOUND).header("location", "/a.png").finish(),
            "/inside" => Response::builder()
                .status(StatusCode::FOUND)
                .header("location", "http://10.0.0.1/a.png")
                .finish(),
            "/name" => {
                let inside = "https://localhost/latest";
                Response::builder().status(StatusCode::FOUND).header("location", inside).finish()
            }
            "/round" => Response::builder().status(StatusCode::FOUND).header("location", "/round").finish(),
            "/page" => Response::builder().body("<!DOCTYPE html><html></html>"),
            "/endless" => {
                let pieces = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0xff; 1 << 16])).boxed();
                Response::builder().body(poem::Body::from_bytes_stream(pieces))
            }
            _ => Response::builder().status(StatusCode::NOT_FOUND).finish(),
        })
    }
}

/// Starts an [`Origin`] at 127.0.0.2, which is not the address of `localhost`, and returns its URL.
pub(crate) async fn serve(file: Vec<u8>) -> (String, JoinHandle<std::io::Result<()>>) {
    let acceptor = TcpListener::bind("127.0.0.2:0").into_acceptor().await.unwrap();
    let origin = format!("http://{}", acceptor.local_addr()[0].as_socket_addr().unwrap());
    (origin, tokio::spawn(Server::new_with_acceptor(acceptor).run(Origin(file))))
}

#[tokio::test]
async fn an_import_downloads_only_from_allowed_addresses() {
    let caps =
        r#"{"image": 1000000, "gif": 1000000, "video": 1000000, "audio": 1000000, "document": 1000000}"#;
    let world = world()
        .set("FANFARE_MEDIA_MAX_BYTES", caps)
        .set("FANFARE_EGRESS_ALLOW", "127.0.0.2/32")
        .start()
        .await;
    let (origin, serving) = serve(png(30, 20)).await;
    let import = async |path: &str| {
        let body = json!({ "url": format!("{origin}{path}"), "alt_text": "Ada" });
        let (status, reported) = world.call(Method::POST, "/media/import", Some(&body)).await;
        assert_eq!(
            (status, &reported["status"]),
            (StatusCode::ACCEPTED, &json!("pending_upload")),
            "{reported}"
        );
        reported["id"].clone()
    };
    for path in ["/a.png", "/twice"] {
        let medium = until(&world, &import(path).await, "ready").await;
        assert_eq!(
            (&medium["kind"], &medium["width"], &medium["alt_text"]),
            (&json!("image"), &json!(30), &json!("Ada"))
        );
        assert_eq!(medium["filename"], path.trim_start_matches('/'));
        assert_eq!(
            world.http.get(medium["url"].as_str().unwrap()).send().await.unwrap().status(),
            StatusCode::OK
        );
    }
    for (path, reason) in [
        ("/inside", "not a public address"),
        ("/name", "not a public one"),
        ("/round", "elsewhere"),
        ("/none", "404"),
        ("/page", "not supported"),
        ("/endless", "more than"),
    ] {
        let medium = until(&world, &import(path).await, "failed").await;
        assert!(medium["error"].as_str().unwrap().contains(reason), "{path}: {medium}");
    }
    // A URL that is obviously not allowed is refused immediately.
    for url in
        ["http://10.0.0.1/a.png", "https://169.254.169.254/latest", "ftp://example.com/a", "https://[::1]/a"]
    {
        let (status, problem) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
        assert_eq!(
            (status.as_u16(), &problem["errors"][0]["path"]),
            (400, &json!(["url"])),
            "{url}: {problem}"
        );
    }
    serving.abort();
}

#[tokio::test]
async fn a_client_waits_for_a_file_and_is_notified_of_the_result() {
    let world = world().start().await;
    let receiver = Receiver::start().await;
    let body = json!({ "url": receiver.url, "events": ["media.ready", "media.failed"] });
    assert_eq!(world.call(Method::POST, "/webhooks", Some(&body)).await.0, StatusCode::CREATED);
    let address = tests::serve(Origin(png(30, 20))).await;
    for (path, status) in [("a.png", "ready"), ("none", "failed")] {
        let body = json!({ "url": format!("http://{address}/{path}") });
        let (accepted, medium) = world.call(Method::POST, "/media/import", Some(&body)).await;
        assert_eq!(accepted, StatusCode::ACCEPTED, "{medium}");
        let medium = world.get(&format!("/media/{}?wait=60", medium["id"].as_str().unwrap())).await;
        assert_eq!(medium["status"], status, "{medium}");
        let name = format!("media.{status}");
        let told = receiver.until(&name, |all| all.iter().any(|told| told.event() == name)).await;
        let told = told.iter().find(|told| told.event() == name).unwrap().json();
        assert_eq!(told["data"]["mediaId"], medium["id"], "{told}");
        assert_eq!((&told["data"]["kind"], &told["data"]["filename"]), (&medium["kind"], &json!(path)));
        assert_eq!(told["data"]["orgId"], world.owner.org.to_string());
        assert_eq!(told["data"].get("error"), Some(&medium["error"]).filter(|error| !error.is_null()));
    }
    receiver.events(&["media.ready", "media.failed"]).await;
    // An asset without a file is returned unchanged when the wait is over.
    let declared = world.declare(json!({ "filename": "a.png" })).await;
    let path = format!("/media/{}", declared["id"].as_str().unwrap());
    assert_eq!(world.get(&format!("{path}?wait=1")).await["status"], "pending_upload");
    for wait in ["61", "-1", "long"] {
        let (status, problem) = world.call(Method::GET, &format!("{path}?wait={wait}"), None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
    }
}

/// Returns the highest peak resident memory of the service's processes, in bytes.
pub(crate) fn peak(world: &World) -> u64 {
    let of = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    world.pids().into_iter().map(of).max().unwrap()
}

/// Returns the size of the video below in MiB. `FANFARE_FILM_MIB=2048` tests the full promise.
fn film_mib() -> usize {
    std::env::var("FANFARE_FILM_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(96)
}

/// Returns the time limit for processing a video of this size on a slow machine.
fn patience() -> Duration {
    tests::PATIENCE * u32::try_from(1 + film_mib() / 256).unwrap()
}

#[tokio::test]
async fn memory_does_not_grow_with_the_size_of_a_video() {
    let world = world().own().platforms(&["youtube"]).start().await;
    world.connect("youtube", "ada").await;
    // Warm up, so that memory needed for any post is not measured.
    let small = world.medium("a.mp4", None, film(8_000, 1 << 20)).await;
    let post = |id: &Value| json!({ "containers": [{ "content": "Watch", "media": [{ "id": id }] }], "accounts": ["ada"] });
    world.ended(&world.post(post(&small["id"])).await).await;
    let before = peak(&world);

    let length = film_mib() << 20;
    let head = [film_head(640, 360, 8_000), boxed(b"mdat", &[])[4..].to_vec()].concat();
    let size = u32::try_from(length + 8).unwrap().to_be_bytes();
    let at = head.len() - 4;
    let head = [&head[..at], &size, &head[at..]].concat();
    let piece = Bytes::from(vec![0x2a; 1 << 20]);
    let pieces =
        stream::iter(std::iter::once(Bytes::from(head)).chain(std::iter::repeat_n(piece, length >> 20)));
    let reported = world.declare(json!({ "filename": "long.mp4", "content_type": "video/mp4" })).await;
    let url = reported["upload_url"].as_str().unwrap();
    assert_eq!(
        put(&world, url, Body::wrap_stream(pieces.map(Ok::<_, std::io::Error>))).await,
        StatusCode::OK
    );
    let (status, medium) = world.confirm(&reported).await;
    // Only its headers were inspected; the rest is read in the background.
    assert_eq!(
        (status, &medium["status"], &medium["duration_ms"]),
        (StatusCode::OK, &json!("uploaded"), &json!(8000)),
        "{medium}"
    );
    let created = world.post(post(&medium["id"])).await;
    until(&world, &medium["id"], "ready").await;
    let path = format!("/posts/{}", created["id"].as_str().unwrap());
    let look = async || if_right(world.get(&path).await, |post| post["status"] == "published");
    wait_within(patience(), "the post to be published", look).await;
    let grown = peak(&world).saturating_sub(before) >> 20;
    eprintln!("A video of {} MiB took {grown} MiB of memory", film_mib());
    assert!(grown <= 64, "a video of {} MiB took {grown} MiB of memory", film_mib());
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

fn new(kind: MediaKind) -> NewMedia {
    let filename = format!("a.{kind}");
    let (claim, upload_expires_at) = (DeclaredFile::default(), at(3600));
    NewMedia {
        kind,
        filename,
        declared: claim,
        alt_text: None,
        source_url: None,
        upload_expires_at,
        bound: Bound::Organization,
        storage_limit: None,
    }
}

fn found(sha256: Option<&str>) -> Inspected {
    Inspected {
        kind: MediaKind::Image,
        content_type: "image/png".to_owned(),
        size: 1000,
        width: Some(3),
        height: Some(4),
        frames: None,
        duration_ms: None,
        facts: Facts::default(),
        sha256: sha256.map(str::to_owned),
        metadata: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asset_is_settled_once_and_visible_only_to_its_owner() {
    let db = database().await;
    let org = organizations::create(&db, "One").await.unwrap();
    let owner = Owner { org, mode: Mode::Test };
    let asset = store::media::create(&db, owner, new(MediaKind::Video), at(0)).await.unwrap().unwrap();
    for stranger in [Owner { mode: Mode::Live, ..owner }, Owner { org: OrgId(Uuid::from_u128(9)), ..owner }] {
        assert!(store::media::get(&db, unbounded(stranger), asset.id).await.unwrap().is_none());
        assert!(store::media::find(&db, unbounded(stranger), &[asset.id.0]).await.unwrap().is_empty());
        let settled = store::media::settle(&db, stranger, asset.id, &found(Some("a")), at(1)).await.unwrap();
        assert_eq!(settled, SettleResult::WasSettled);
        assert_eq!(
            store::media::delete(&db, unbounded(stranger), asset.id, at(1)).await.unwrap(),
            DeleteResult::NotFound
        );
        assert_eq!(
            store::media::list(&db, unbounded(stranger), Filter::default(), 9, 0).await.unwrap().total,
            0
        );
    }
    // One claim at a time is valid, until it is stale.
    assert!(store::media::claim_processing(&db, owner, asset.id, at(0), at(10)).await.unwrap());
    assert!(!store::media::claim_processing(&db, owner, asset.id, at(0), at(20)).await.unwrap());
    assert!(store::media::claim_processing(&db, owner, asset.id, at(15), at(20)).await.unwrap());

    let settle =
        async |found: Inspected, now| store::media::settle(&db, owner, asset.id, &found, now).await.unwrap();
    assert_eq!(settle(found(None), at(30)).await, SettleResult::Settled);
    assert_eq!(
        store::media::get(&db, unbounded(owner), asset.id).await.unwrap().unwrap().status,
        MediaStatus::Uploaded
    );
    assert_eq!(settle(found(None), at(31)).await, SettleResult::WasSettled);
    let whole = Inspected { size: 5 << 30, ..found(Some("a")) };
    assert_eq!(settle(whole, at(32)).await, SettleResult::Settled);
    let fault = store::media::Fault { reason: store::media::Reason::Unfit, message: "late".to_owned() };
    assert!(!store::media::fail(&db, owner, asset.id, &fault, at(33)).await.unwrap());
    let row = store::media::get(&db, unbounded(owner), asset.id).await.unwrap().unwrap();
    assert_eq!((row.status, row.kind, row.size), (MediaStatus::Ready, MediaKind::Image, Some(5 << 30)));
    assert_eq!(row.fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_media_expire_and_media_in_use_are_kept() {
    let world = world().own().start().await;
    let account = world.connect("x", "ada").await;
    let (db, owner) = (&world.db, world.owner);
    let make = async |sent: bool, created: DateTime<Utc>| {
        let asset = store::media::create(db, owner, new(MediaKind::Image), created).await.unwrap().unwrap();
        if sent {
            store::media::settle(db, owner, asset.id, &found(Some("a")), created).await.unwrap();
        }
        asset.id
    };
    let long_ago = Utc::now() - TimeDelta::days(100);
    let (awaited, idle, needed, fresh) = (
        make(false, at(0)).await,
        make(true, at(0)).await,
        make(true, long_ago).await,
        make(true, at(0)).await,
    );
    let draft = json!({
        "containers": [{ "content": "Later", "media": [{ "id": needed.0 }] }], "accounts": [account], "is_draft": true,
    });
    let post = world.post(draft).await;
    assert_eq!(store::media::delete(db, unbounded(owner), needed, at(2)).await.unwrap(), DeleteResult::InUse);
    // An asset is deleted after the time that is shown, not at it.
    let (retention, moment) = (Some(TimeDelta::days(30)), TimeDelta::microseconds(1));
    let shown = async |asset: MediaId| world.get(&format!("/media/{}", asset.0)).await["expires_at"].clone();
    let time = |shown: &Value| shown.as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let uploads = time(&shown(awaited).await);
    assert_eq!(uploads, at(0) + store::media::UPLOAD_TTL);
    assert_eq!(store::media::expire(db, None, 10, uploads).await.unwrap(), 0);
    assert_eq!(store::media::expire(db, None, 10, uploads + moment).await.unwrap(), 1);
    assert!(store::media::get(db, unbounded(owner), awaited).await.unwrap().is_none());
    store::media::delete(db, unbounded(owner), fresh, at(6)).await.unwrap();
    let ends = time(&shown(idle).await);
    assert_eq!(ends, at(0) + TimeDelta::days(30));
    assert_eq!(store::media::expire(db, None, 10, ends + moment).await.unwrap(), 0, "kept without limit");
    assert_eq!(store::media::expire(db, retention, 10, ends).await.unwrap(), 0);
    assert_eq!(store::media::expire(db, retention, 10, ends + moment).await.unwrap(), 1);
    assert!(store::media::get(db, unbounded(owner), idle).await.unwrap().is_none());
    assert!(store::media::get(db, unbounded(owner), needed).await.unwrap().is_some());
    // One that an unfinished post uses has no such time, in lists either.
    assert_eq!(shown(needed).await, Value::Null);
    let listed = world.get("/media").await;
    assert_eq!(
        (&listed["data"][0]["id"], &listed["data"][0]["expires_at"]),
        (&json!(needed.0), &Value::Null)
    );
    // Media of a post that has ended are kept for the retention period.
    let path = format!("/posts/{}", post["id"].as_str().unwrap());
    assert_eq!(world.call(Method::DELETE, &path, None).await.0, StatusCode::OK);
    let ends = store::media::expiry(db, unbounded(owner), &[needed.0], retention).await.unwrap()[&needed];
    assert!(ends > Utc::now() + TimeDelta::days(29), "counted from the post's end, not from the upload");
    assert_eq!(shown(needed).await, domain::event::timestamp(ends));
    assert_eq!(store::media::expire(db, retention, 10, ends).await.unwrap(), 0);
    assert_eq!(store::media::expire(db, retention, 10, ends + moment).await.unwrap(), 1);
    assert!(store::media::get(db, unbounded(owner), needed).await.unwrap().is_none());
}

#[tokio::test]
async fn a_schedule_deletes_unconfirmed_uploads() {
    let world = world().own().everywhere().start().await;
    let temporal = client().await;
    let handle = temporal.get_schedule_handle(clean_up_media::id(world.variable("FANFARE_TASK_QUEUE")));
    scheduled(&handle, |found| every(found) == Some(3600)).await;

    // Created more than a day ago, and never confirmed.
    let (media, now) = (
        store::media::create(
            &world.db,
            world.owner,
            new(MediaKind::Image),
            Utc::now() - TimeDelta::hours(25),
        )
        .await
        .unwrap()
        .unwrap()
        .id,
        Utc::now(),
    );
    let pass = SignedToken { media, owner: world.owner, expires_at: now + TimeDelta::hours(1) };
    let pass = Key::derive(&[0; 32]).write(Permission::Put, &pass);
    let url = format!("{}/media/{media}/content?pass={pass}", world.base);
    assert_eq!(put(&world, &url, png(8, 8)).await, StatusCode::OK);
    let awaited = world.declare(json!({ "filename": "a.png" })).await;
    assert_eq!(put(&world, awaited["upload_url"].as_str().unwrap(), png(8, 8)).await, StatusCode::OK);
    let files = || {
        let arriving = world.files.join(format!("staging/test/{}", world.owner.org));
        let names = std::fs::read_dir(arriving).unwrap().map(|file| file.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 2);

    replay(&world, "clean_up_media", &triggered(&handle).await).await;
    replay(&world, "process_media-cleaned_up", &format!("discard-{media}")).await;
    assert_eq!(json!(files()), json!([awaited["id"]]));
    assert_eq!(store::media::find_deleted(&world.db, world.owner, media).await.unwrap(), None);
    assert_eq!(world.confirm(&awaited).await.0, StatusCode::OK);
}
