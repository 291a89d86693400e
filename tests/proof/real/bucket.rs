//! An S3 server.

use super::{Proven, ended, readable, rounds};
use crate::PROGRAM;
use serde_json::{Value, json};
use tests::{World, directory, network::Port, packages::Packages, samples::painting};

/// Kills and stops the server while files are uploaded to it, confirmed and published from it.
pub(super) async fn prove(packages: &Packages) -> Proven {
    let port = Port::reserve();
    let number = port.address.port().to_string();
    let data = directory().join("bucket");
    let start = async || packages.start("bucket.mjs", &[&number, data.to_str().unwrap()]).await;
    let mut server = start().await;
    let world = World::of(&PROGRAM)
        .set("FANFARE_MEDIA", "s3://media/files")
        .set("AWS_ENDPOINT", &format!("http://{}", port.address))
        .set("AWS_ALLOW_HTTP", "true")
        .set("AWS_REGION", "us-east-1")
        .set("AWS_ACCESS_KEY_ID", "S3RVER")
        .set("AWS_SECRET_ACCESS_KEY", "S3RVER")
        .start()
        .await;
    let account = world.connect("x", "ada").await;
    let mut published = 0;
    for round in 0..rounds() {
        let bytes = painting(300, 200 + u32::try_from(round).unwrap());
        let uploaded = world.upload(json!({ "filename": "a.png" }), bytes.clone()).await;
        server.kill().await;
        // Once: `World::call` would repeat it.
        let confirm = format!("{}/media/{}/confirm", world.base, uploaded["id"].as_str().unwrap());
        let answer = world.http.post(confirm).bearer_auth(&world.key).send().await.unwrap();
        assert!(answer.status().is_server_error(), "{answer:?}");
        readable(&answer.json::<Value>().await.unwrap()["detail"]);
        server = start().await;
        // Files that it was sent are still there.
        let (status, medium) = world.confirm(&uploaded).await;
        assert!(status.is_success() && medium["status"] == "ready", "{status} {medium}");
        let fetched = world.http.get(medium["url"].as_str().unwrap()).send().await.unwrap();
        assert!(fetched.bytes().await.unwrap() == bytes, "the file differs");

        // A post needs the file of a server that is gone, and then of one that does not answer.
        let post = |text: &str| {
            let container = json!({ "content": text, "media": [{ "id": medium["id"] }] });
            json!({ "containers": [container], "accounts": [account] })
        };
        server.kill().await;
        let without = world.post(post(&format!("Killed {round}"))).await;
        super::trouble(&world, &without).await;
        server = start().await;
        assert_eq!(ended(&world, &without).await["targets"][0]["status"], "published");

        server.pause();
        let waiting = world.post(post(&format!("Stopped {round}"))).await;
        // Meanwhile others go on.
        let other = world.post(json!({ "content": format!("Words {round}"), "accounts": [account] })).await;
        assert_eq!(world.ended(&other).await["status"], "published");
        server.resume();
        assert_eq!(ended(&world, &waiting).await["targets"][0]["status"], "published");
        published += 3;
    }
    assert_eq!(world.accepted("x", "ada").await, published, "each post once");
    drop(world);
    server.kill().await;
    Proven {
        program: "S3 server (`@20minutes/s3rver`)",
        kills: 2 * rounds(),
        stops: rounds(),
        things: format!("{} files are whole, and {published} posts are live once", rounds()),
    }
}
