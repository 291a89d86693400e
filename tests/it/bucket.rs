//! Media in a bucket: the API signs URLs, and clients upload and download without it.
//!
//! The bucket here implements the part of S3 that is used, over HTTP, and rejects unsigned requests.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html>

use crate::{
    api::{fail, request},
    browser::Browser,
    dashboard_media::{ask, send_through},
    media::until,
    world,
};
use bytes::Bytes;
use poem::{
    Endpoint, Request, Response,
    http::{StatusCode, header},
};
use reqwest::Method;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tests::{
    World,
    network::{Proxy, State},
    samples::{film, jpeg, painting, png},
};
use tests::{if_right, wait_until};
use tokio::sync::Notify;
use url::Url;

/// A bucket called `media`. Cloning shares it.
#[derive(Clone, Default)]
struct Bucket(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    objects: BTreeMap<String, Bytes>,
    /// Parts of unfinished uploads, by upload id and part number.
    parts: BTreeMap<(String, u32), Bytes>,
    uploads: usize,
    /// Deletions that it refuses.
    refused_deletions: usize,
    /// Holds copies until it is notified.
    gate: Option<Arc<Notify>>,
}

impl Bucket {
    /// Serves the bucket and returns its URL.
    async fn serve(&self) -> String {
        format!("http://{}", tests::serve(self.clone()).await)
    }

    fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().objects.keys().cloned().collect()
    }

    fn answer(&self, request: &Request, body: Bytes) -> Response {
        let url = Url::parse(&format!("http://bucket{}", request.uri())).unwrap();
        let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        let signed =
            request.header(header::AUTHORIZATION).is_some_and(|text| text.starts_with("AWS4-HMAC-SHA256 "));
        if !signed && !query.contains_key("X-Amz-Signature") {
            return StatusCode::FORBIDDEN.into();
        }
        let Some(key) = url.path().strip_prefix("/media").map(|key| key.trim_start_matches('/').to_owned())
        else {
            return StatusCode::NOT_FOUND.into();
        };
        let mut contents = self.0.lock().unwrap();
        let upload = query.get("uploadId").cloned();
        match (request.method().as_str(), upload) {
            ("POST", None) if query.contains_key("delete") && contents.refused_deletions > 0 => {
                contents.refused_deletions -= 1;
                StatusCode::FORBIDDEN.into()
            }
            ("POST", None) if query.contains_key("delete") => {
                let body = String::from_utf8(body.to_vec()).unwrap();
                let keys = body.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap());
                let gone: String = keys
                    .inspect(|key| drop(contents.objects.remove(*key)))
                    .map(|key| format!("<Deleted><Key>{key}</Key></Deleted>"))
                    .collect();
                xml(&format!("<DeleteResult>{gone}</DeleteResult>"))
            }
            ("POST", None) => {
                contents.uploads += 1;
                let id = contents.uploads;
                xml(&format!(
                    "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                ))
            }
            ("PUT", Some(id)) => {
                contents.parts.insert((id, query["partNumber"].parse().unwrap()), body);
                Response::builder().header(header::ETAG, "\"part\"").finish()
            }
            ("POST", Some(id)) => {
                let parts = std::mem::take(&mut contents.parts);
                let (mine, others): (BTreeMap<_, _>, _) =
                    parts.into_iter().partition(|((of, _), _)| *of == id);
                contents.parts = others;
                let whole: Vec<_> = mine.into_values().flatten().collect();
                contents.objects.insert(key, whole.into());
                xml("<CompleteMultipartUploadResult><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>")
            }
            ("DELETE", Some(id)) => {
                contents.parts.retain(|(of, _), _| *of != id);
                StatusCode::NO_CONTENT.into()
            }
            ("PUT", None) => {
                let source = request.header("x-amz-copy-source");
                let bytes = match source {
                    Some(source) => {
                        let source = source.trim_start_matches('/').strip_prefix("media/");
                        source.and_then(|source| contents.objects.get(source).cloned())
                    }
                    None => Some(body),
                };
                let Some(bytes) = bytes else { return StatusCode::NOT_FOUND.into() };
                contents.objects.insert(key, bytes);
                match source {
                    Some(_) => xml("<CopyObjectResult><ETag>\"whole\"</ETag></CopyObjectResult>"),
                    None => Response::builder().header(header::ETAG, "\"whole\"").finish(),
                }
            }
            ("GET", None) if query.contains_key("list-type") => {
                let listed = contents.objects.iter().filter(|(key, _)| key.starts_with(&query["prefix"]));
                let listed: String = listed
                    .map(|(key, bytes)| {
                        let size = bytes.len();
                        format!(
                            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                             <ETag>\"whole\"</ETag><Size>{size}</Size></Contents>"
                        )
                    })
                    .collect();
                xml(&format!("<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"))
            }
            ("GET" | "HEAD", _) => match contents.objects.get(&key) {
                Some(bytes) => object(request, &query, bytes),
                None => StatusCode::NOT_FOUND.into(),
            },
            (method, _) => panic!("{method} {}", request.uri()),
        }
    }
}

fn xml(text: &str) -> Response {
    Response::builder().content_type("application/xml").body(text.to_owned())
}

/// Returns an object, or a range of it.
fn object(request: &Request, query: &BTreeMap<String, String>, bytes: &Bytes) -> Response {
    let range = request.header(header::RANGE).and_then(|range| {
        let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
        let end: usize = end.parse().ok()?;
        Some((start.parse().ok()?, end.min(bytes.len() - 1)))
    });
    let (status, part) = match range {
        Some((start, end)) => (StatusCode::PARTIAL_CONTENT, bytes.slice(start..=end)),
        None => (StatusCode::OK, bytes.clone()),
    };
    let mime = query.get("response-content-type").map_or("binary/octet-stream", String::as_str);
    let mut response = Response::builder()
        .status(status)
        .content_type(mime)
        .header(header::ETAG, "\"whole\"")
        .header(header::LAST_MODIFIED, "Thu, 01 Jan 2026 00:00:00 GMT")
        .header(header::CONTENT_LENGTH, part.len());
    if let Some((start, end)) = range {
        response = response.header(header::CONTENT_RANGE, format!("bytes {start}-{end}/{}", bytes.len()));
    }
    response.body(part)
}

impl Endpoint for Bucket {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let body = request.take_body().into_bytes().await?;
        let gate = request.header("x-amz-copy-source").and_then(|_| self.0.lock().unwrap().gate.clone());
        if let Some(gate) = gate {
            gate.notified().await;
        }
        Ok(self.answer(&request, body))
    }
}

/// Starts a world that stores media in a bucket, and returns it with the bucket's URL.
async fn world_of(bucket: &Bucket) -> (World, String) {
    world_on(bucket, "").await
}

/// Starts a world with these plans that stores media in a bucket.
async fn world_on(bucket: &Bucket, plans: &str) -> (World, String) {
    let address = bucket.serve().await;
    (world_at(&address, plans).await, address)
}

/// Starts a world with these plans that stores media in the bucket at an address.
async fn world_at(address: &str, plans: &str) -> World {
    let secret = tests::directory().join("bucket-secret");
    std::fs::write(&secret, "secret\n").unwrap();
    world()
        .set("FANFARE_MEDIA", "s3://media/fan/fare")
        .set("AWS_ENDPOINT", address)
        .set("AWS_ALLOW_HTTP", "true")
        .set("AWS_REGION", "eu-central-1")
        .set("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        .set("AWS_SECRET_ACCESS_KEY_FILE", secret.to_str().unwrap())
        .set("FANFARE_PLANS", plans)
        .set("FANFARE_MEDIA_MAX_BYTES", r#"{"image": 1000000}"#)
        .platforms(&["x", "instagram"])
        .start()
        .await
}

#[tokio::test]
async fn with_a_bucket_uploads_and_downloads_bypass_the_api() {
    let bucket = Bucket::default();
    let (world, _) = world_of(&bucket).await;
    let bytes = jpeg(640, 640);
    let reported = world.upload(json!({ "filename": "a b.jpg" }), bytes.clone()).await;
    let upload = Url::parse(reported["upload_url"].as_str().unwrap()).unwrap();
    let parameters: BTreeMap<_, _> = upload.query_pairs().into_owned().collect();
    let life: u32 = parameters["X-Amz-Expires"].parse().unwrap();
    assert!((43_190..=43_200).contains(&life), "{life}");
    assert_eq!(bucket.keys().len(), 1);
    let (status, medium) = world.confirm(&reported).await;
    assert_eq!(
        (status, &medium["status"], &medium["width"]),
        (StatusCode::OK, &json!("ready"), &json!(640)),
        "{medium}"
    );

    // A declared size is signed, so that the bucket takes a file of no other size.
    let sized = world.declare(json!({ "filename": "a.jpg", "size": bytes.len() })).await;
    let sized = Url::parse(sized["upload_url"].as_str().unwrap()).unwrap();
    let signed = |url: &Url| {
        let names = url.query_pairs().find(|(name, _)| name == "X-Amz-SignedHeaders");
        names.map(|(_, names)| names.into_owned())
    };
    assert_eq!(signed(&sized).as_deref(), Some("content-length;host"));
    assert_eq!(signed(&upload).as_deref(), Some("host"));

    // An upload after the confirmation does not change the confirmed file.
    let sent = world.http.put(upload).body(png(9, 9)).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    let answer = world.http.get(medium["url"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"image/jpeg".parse().unwrap())
    );
    assert_eq!(answer.bytes().await.unwrap(), bytes);
    // The API's own upload URL is disabled.
    let shut = format!("{}/media/{}/content?pass=A", world.base, reported["id"].as_str().unwrap());
    assert_eq!(world.http.put(shut).body("x").send().await.unwrap().status(), 404);

    // The bucket accepts any file; the confirmation checks its type and size.
    for (bytes, expected) in [(vec![7; 100], 422), ([png(9, 9), vec![0; 1_000_000]].concat(), 413)] {
        let reported = world.upload(json!({ "filename": "a.png" }), bytes).await;
        assert_eq!(world.confirm(&reported).await.0, expected);
    }

    // X is sent the bytes; Instagram fetches them from a URL.
    let film = world.upload(json!({ "filename": "a.mp4" }), film(8_000, 3 << 20)).await;
    let (status, film) = world.confirm(&film).await;
    assert_eq!((status, &film["status"]), (StatusCode::OK, &json!("ready")), "{film}");
    // A PNG is fitted to Instagram; its rendition is in the bucket too.
    let drawing = world.medium("a.png", None, painting(400, 400)).await;
    for (platform, medium) in [("x", &film), ("instagram", &medium), ("instagram", &drawing)] {
        let account = world.connect(platform, "ada").await;
        let container = json!({ "content": "Look", "media": [{ "id": medium["id"] }] });
        let post = world.post(json!({ "containers": [container], "accounts": [account] })).await;
        let ended = world.ended(&post).await;
        assert_eq!(ended["status"], "published", "{ended:#}");
    }

    // Beside the thumbnails of the two pictures, that of the drawing in the same size.
    let renditions = || bucket.keys().into_iter().filter(|key| key.contains("/renditions/")).count();
    wait_until("the renditions", async || if_right(renditions(), |made| *made == 3)).await;
    for medium in [&medium, &film, &drawing] {
        let path = format!("/media/{}", medium["id"].as_str().unwrap());
        assert_eq!(world.call(Method::DELETE, &path, None).await.0, 200);
    }
    let emptied = async || if_right(bucket.keys().join(", "), String::is_empty);
    wait_until("the bucket to be empty", emptied).await;
}

#[tokio::test]
async fn no_upload_is_left_beside_its_file_when_its_deletion_failed() {
    let bucket = Bucket::default();
    let (world, _) = world_of(&bucket).await;
    let reported = world.upload(json!({ "filename": "a.jpg" }), jpeg(640, 640)).await;
    bucket.0.lock().unwrap().refused_deletions = 1;
    // The service may repeat by itself what failed.
    let confirmed = async || match world.confirm(&reported).await {
        (StatusCode::OK, medium) => Ok(medium),
        (status, problem) => Err(format!("{status} {problem}")),
    };
    let medium = wait_until("the asset to be ready", confirmed).await;
    assert_eq!(medium["status"], "ready", "{medium}");
    assert_eq!(bucket.0.lock().unwrap().refused_deletions, 0, "a deletion was refused");
    let staged: Vec<_> = bucket.keys().into_iter().filter(|key| key.contains("/staging/")).collect();
    assert_eq!(staged, [] as [String; 0]);
}

/// The client that waited is gone; the copy goes on, and the next one finds its file.
#[tokio::test]
async fn a_confirmation_that_took_too_long_is_finished_for_the_next_one() {
    let bucket = Bucket::default();
    let (world, _) = world_of(&bucket).await;
    let reported = world.upload(json!({ "filename": "a.jpg" }), jpeg(640, 640)).await;
    let gate = Arc::new(Notify::new());
    bucket.0.lock().unwrap().gate = Some(gate.clone());
    let (status, problem) = world.confirm(&reported).await;
    assert!(status.is_server_error(), "{status} {problem}");
    bucket.0.lock().unwrap().gate = None;
    gate.notify_waiters();
    let (status, medium) = world.confirm(&reported).await;
    assert_eq!((status, &medium["status"]), (StatusCode::OK, &json!("ready")), "{medium}");
}

#[tokio::test]
async fn an_imported_file_is_uploaded_to_the_bucket_in_parts() {
    let bucket = Bucket::default();
    let (world, address) = world_of(&bucket).await;
    // Several parts, the last of them small; the source is in the bucket itself.
    let bytes = film(8_000, (17 << 20) + 1);
    bucket.0.lock().unwrap().objects.insert("film.mp4".to_owned(), bytes.clone().into());
    let url = format!("{address}/media/film.mp4?X-Amz-Signature=1");
    let (status, reported) = world.call(Method::POST, "/media/import", Some(&json!({ "url": url }))).await;
    assert_eq!(status, 202, "{reported}");
    let medium = until(&world, &reported["id"], "ready").await;
    assert_eq!((&medium["size"], &medium["filename"]), (&json!(bytes.len()), &json!("film.mp4")));
    let fetched =
        world.http.get(medium["url"].as_str().unwrap()).send().await.unwrap().bytes().await.unwrap();
    assert!(fetched == bytes);
    assert!(bucket.keys().iter().any(|key| key.starts_with("fan/fare/test/")), "{:?}", bucket.keys());
}

/// Browsers send a file to the bucket, or through the dashboard if the bucket's CORS rules don't let them.
#[tokio::test]
async fn the_dashboard_uploads_to_a_bucket_and_through_itself() {
    let bucket = Bucket::default();
    let (world, address) = world_of(&bucket).await;
    let browser = Browser::signed_in(&world).await;
    for path in ["/media", "/compose"] {
        let page = browser.get(path).await;
        let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains(&format!("connect-src 'self' {address};")), "{path}: {policy}");
    }
    let bytes = film(8_000, 3 << 20);
    let size = bytes.len().to_string();
    for is_direct in [true, false] {
        let wish = [("filename", "a.mp4"), ("type", "video/mp4"), ("size", size.as_str())];
        let upload = ask(&browser, "/media/uploads", &wish).await;
        let upload: serde_json::Value = serde_json::from_str(&upload.text).unwrap();
        let (id, url) = (upload["id"].as_str().unwrap(), upload["url"].as_str().unwrap());
        assert!(url.starts_with(&address), "{url}");
        if is_direct {
            assert_eq!(world.http.put(url).body(bytes.clone()).send().await.unwrap().status(), 200);
        } else {
            let sent = send_through(&browser, &upload, &browser.origin, bytes.clone()).await;
            assert_eq!(sent.status, StatusCode::OK, "{}", sent.text);
        }
        let page = ask(&browser, &format!("/media/{id}/confirm"), &[]).await;
        assert!(page.text.contains("a.mp4"), "{}", page.text);
        // Pages get it from their own origin.
        let file = browser.http.get(format!("{}/dashboard/media/{id}/file", browser.origin));
        let file = file.header(header::COOKIE, &browser.cookie).header(header::RANGE, "bytes=4-7");
        assert_eq!(file.send().await.unwrap().bytes().await.unwrap(), b"ftyp"[..]);
        assert!(
            bucket.keys().iter().any(|key| key.contains(id) && key.ends_with("a.mp4")),
            "{:?}",
            bucket.keys()
        );
    }
}

/// A bucket takes what the signature allows, without asking the API whether there is room.
#[tokio::test]
async fn on_a_plan_with_a_ceiling_on_storage_an_upload_to_a_bucket_declares_its_size() {
    let bucket = Bucket::default();
    let bytes = png(64, 64);
    let plan = json!([{ "key": "default", "name": "Small", "storage_bytes": bytes.len() }]);
    let (world, _) = world_on(&bucket, &plan.to_string()).await;
    let upload = request(&world, Method::POST, "/media/upload").json(&json!({ "filename": "a.png" }));
    let (_, problem) = fail(upload, 400, "invalid_request").await;
    assert_eq!(problem["errors"][0]["path"], json!(["size"]), "{problem}");
    let sized = json!({ "filename": "a.png", "size": bytes.len() });
    let reported = world.upload(sized.clone(), bytes).await;
    let (status, problem) = world.call(Method::POST, "/media/upload", Some(&sized)).await;
    assert_eq!(status, 402, "{problem}");
    assert_eq!(world.confirm(&reported).await.0, 200);
}

/// A bucket that is silent keeps its connections open, and may answer again.
#[tokio::test]
async fn a_silent_bucket_holds_up_what_needs_it_for_half_a_minute_and_nothing_else() {
    let bucket = Url::parse(&Bucket::default().serve().await).unwrap();
    let proxy = Proxy::to(bucket.socket_addrs(|| None).unwrap()[0]);
    proxy.set(State::Frozen);
    let world = world_at(&format!("http://{}", proxy.address()), "").await;
    let account = world.connect("x", "ada").await;
    let post = world.post(json!({ "content": "Without files", "accounts": [account] })).await;
    assert_eq!(world.ended(&post).await["status"], "published");

    proxy.set(State::Open);
    let bytes = painting(640, 480);
    let medium = world.medium("a.png", None, bytes.clone()).await;
    let browser = Browser::signed_in(&world).await;
    proxy.set(State::Frozen);
    let thumbnail = format!("/media/{}/thumbnail", medium["id"].as_str().unwrap());
    let size = bytes.len().to_string();
    let wish = [("filename", "b.png"), ("type", "image/png"), ("size", size.as_str())];
    let upload = ask(&browser, "/media/uploads", &wish).await;
    let upload: serde_json::Value = serde_json::from_str(&upload.text).unwrap();
    let sending = send_through(&browser, &upload, &browser.origin, bytes.clone());
    let began = Instant::now();
    for page in <[_; 2]>::from(tokio::join!(browser.get(&thumbnail), sending)) {
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "{}", page.text);
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());

    proxy.set(State::Open);
    let sent = send_through(&browser, &upload, &browser.origin, bytes).await;
    assert_eq!(sent.status, StatusCode::OK, "{}", sent.text);
    assert_eq!(browser.get(&thumbnail).await.status, StatusCode::OK);
}
