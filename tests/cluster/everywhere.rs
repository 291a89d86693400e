//! All platforms publish: media by a directory that the processes share, uploaded at one API, confirmed at the other,
//! inspected by either worker, and fetched through the API.

use crate::client::Client;
use doctor::{Attachment, Trial, medium};
use platforms::MediaKind;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{cluster::Cluster, if_right, now, samples::film, wait_until};

/// Publishes a post to an account of each platform: those of the doctor.
pub(crate) async fn every_platform_publishes(cluster: &Cluster) {
    let client = Client::new(cluster, "Everywhere").await;
    let picture = Attachment::picture(None).unwrap().bytes.to_vec();
    let picture = upload(&client, "picture.jpg", picture).await;
    let video = upload(&client, "film.mp4", film(6000, 4096)).await;
    let mut posts = Vec::new();
    for (turn, platform) in platforms::all().iter().enumerate() {
        let account = client.connect(turn, platform.id).await;
        let trial = Trial::new(platform, &account.username, "", &json!({}));
        let media = medium(platform).map(|kind| if kind == MediaKind::Image { &picture } else { &video });
        let media: Vec<_> = media.into_iter().map(|id| json!({ "id": id })).collect();
        let mut body = json!({
            "containers": [{ "content": trial.text, "media": media }], "accounts": [account.id], "config": {},
        });
        body["config"][platform.id] = trial.settings;
        let (status, post) = client.once(turn, Method::POST, "/posts", &body).await;
        assert_eq!(status, StatusCode::CREATED, "{}: {post}", platform.id);
        posts.push((platform.id, post["id"].as_str().unwrap().to_owned()));
    }
    for (platform, post) in &posts {
        let path = format!("/posts/{post}");
        wait_until(&format!("{platform} to publish"), async || {
            if_right(client.get(&path).await, |post| post["status"] == "published")
        })
        .await;
    }
    eprintln!("{} {} platforms published", now().format("%T"), posts.len());
}

/// Uploads a file at one API, and confirms it at the other.
async fn upload(client: &Client, filename: &str, bytes: Vec<u8>) -> String {
    let (status, medium) =
        client.once(0, Method::POST, "/media/upload", &json!({ "filename": filename })).await;
    assert_eq!(status, StatusCode::CREATED, "{medium}");
    let put = client.http.put(medium["upload_url"].as_str().unwrap()).body(bytes).send().await.unwrap();
    assert_eq!(put.status(), StatusCode::OK);
    let id = medium["id"].as_str().unwrap().to_owned();
    let (status, medium) = client.once(1, Method::POST, &format!("/media/{id}/confirm"), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{medium}");
    id
}
