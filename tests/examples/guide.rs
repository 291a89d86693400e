//! The program of docs/guides/rust.md, which has everything below the attributes; `.ci/guides` compares and runs it.
#![expect(clippy::disallowed_methods, reason = "a user's program has a clock and HTTP clients of its own")]

use anyhow::{Context, Result, bail, ensure};
use hmac::{Hmac, KeyInit, Mac};
use poem::{
    EndpointExt, Route, Server, handler,
    http::{HeaderMap, StatusCode},
    listener::{Acceptor, Listener, TcpListener},
    post,
    web::Data,
};
use reqwest::{Client, Method, RequestBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;
use std::{
    env,
    time::{Duration, SystemTime},
};
use tokio::{sync::mpsc, time::sleep};

/// Maximum age of a webhook in seconds.
const TOLERANCE: u64 = 300;

/// The members of a post that this program reads.
#[derive(Deserialize)]
struct Post {
    id: String,
    status: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    platform: String,
    status: String,
    platform_post_url: Option<String>,
    error_message: Option<String>,
}

struct Fanfare {
    http: Client,
    base_url: String,
    key: String,
}

impl Fanfare {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base_url)).bearer_auth(&self.key)
    }

    /// Creates a post. Repeats the request with the same key if the response is lost, which creates it once.
    async fn publish(&self, key: &str, body: &Value) -> Result<Post> {
        for attempt in 0..4 {
            let request = self.request(Method::POST, "/posts").header("Idempotency-Key", key).json(body);
            match request.send().await {
                Ok(response) => return read(response).await,
                Err(error) => eprintln!("attempt {attempt} failed: {error}"),
            }
            sleep(Duration::from_millis(500 << attempt)).await;
        }
        bail!("the service can't be reached")
    }

    /// Waits until a post has ended.
    async fn wait(&self, id: &str) -> Result<Post> {
        loop {
            let post: Post = read(self.request(Method::GET, &format!("/posts/{id}")).send().await?).await?;
            if ["published", "partial", "failed"].contains(&post.status.as_str()) {
                return Ok(post);
            }
            sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Reads a response; an error has a problem document.
async fn read<T: serde::de::DeserializeOwned>(response: reqwest::Response) -> Result<T> {
    let status = response.status();
    let body = response.text().await?;
    ensure!(status.is_success(), "{status}: {body}");
    Ok(serde_json::from_str(&body)?)
}

/// Checks the signature and the age of a webhook.
fn verify(secret: &str, header: &str, body: &[u8], now: u64) -> Result<()> {
    let (mut time, mut signature) = (None, None);
    for field in header.split(',') {
        match field.split_once('=') {
            Some(("t", value)) => time = Some(value),
            Some(("v1", value)) => signature = Some(value),
            _ => {}
        }
    }
    let time = time.context("the signature has no time")?;
    let signature = hex::decode(signature.context("the signature is missing")?)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())?;
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(body);
    // Compares in constant time.
    mac.verify_slice(&signature).context("the signature does not match")?;
    ensure!(now.abs_diff(time.parse()?) <= TOLERANCE, "the signature is too old");
    Ok(())
}

/// The receiver: hands verified events to the program.
#[handler]
async fn receive(
    headers: &HeaderMap,
    body: Vec<u8>,
    state: Data<&(String, mpsc::Sender<Value>)>,
) -> StatusCode {
    let (secret, events) = state.0;
    let header = headers.get("X-Fanfare-Signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs();
    if let Err(error) = verify(secret, header, &body, now) {
        eprintln!("refused a webhook: {error:#}");
        return StatusCode::BAD_REQUEST;
    }
    let Ok(event) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST };
    match events.send(event).await {
        Ok(()) => StatusCode::NO_CONTENT,
        // The program ends; the service repeats the delivery.
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // reqwest without its default TLS library takes the one that the program chooses.
    rustls::crypto::ring::default_provider().install_default().expect("the first one");
    let fanfare = Fanfare {
        http: Client::builder().timeout(Duration::from_secs(60)).build()?,
        base_url: env::var("FANFARE_BASE_URL")?,
        key: env::var("FANFARE_API_KEY")?,
    };

    // Connect an account with an app password.
    let login = json!({ "identifier": "ada.bsky.social", "app_password": env::var("APP_PASSWORD")? });
    let account: Value =
        read(fanfare.request(Method::POST, "/social-accounts/bluesky/connect").json(&login).send().await?)
            .await?;
    println!("connected {}", account["username"]);

    // Start a receiver and register it.
    let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await?;
    let address = acceptor.local_addr().remove(0);
    let url = format!("http://{}/hook", address.as_socket_addr().context("an address")?);
    let endpoint = json!({ "url": url, "events": ["post.published"] });
    let webhook: Value =
        read(fanfare.request(Method::POST, "/webhooks").json(&endpoint).send().await?).await?;
    let secret = webhook["signing_secret"].as_str().context("a secret")?.to_owned();
    let (sender, mut events) = mpsc::channel::<Value>(16);
    let app = Route::new().at("/hook", post(receive)).data((secret, sender));
    tokio::spawn(Server::new_with_acceptor(acceptor).run(app));

    // Upload a picture: create the upload, send the file, confirm.
    let picture = tokio::fs::read("dawn.png").await?;
    let upload = json!({ "filename": "dawn.png", "alt_text": "A bridge at dawn" });
    let upload: Value =
        read(fanfare.request(Method::POST, "/media/upload").json(&upload).send().await?).await?;
    let mut request = fanfare.http.put(upload["upload_url"].as_str().context("a URL")?).body(picture);
    for (name, value) in upload["upload_headers"].as_object().context("headers")? {
        request = request.header(name, value.as_str().context("a text")?);
    }
    request.send().await?.error_for_status()?;
    let id = upload["id"].as_str().context("an id")?;
    let _: Value = read(fanfare.request(Method::POST, &format!("/media/{id}/confirm")).send().await?).await?;
    let asset: Value =
        read(fanfare.request(Method::GET, &format!("/media/{id}?wait=60")).send().await?).await?;
    ensure!(asset["status"] == "ready", "{}", asset["error"]);

    // Check the post against the platforms' limits, and publish it.
    let body = json!({
        "containers": [{ "content": "Good morning from Rust", "media": [{ "id": id }] }],
        "accounts": ["fanfare", "ada.bsky.social"],
    });
    let verdict: Value =
        read(fanfare.request(Method::POST, "/posts/validate").json(&body).send().await?).await?;
    ensure!(verdict["valid"] == true, "{verdict}");
    let created = fanfare.publish("rust-guide-1", &body).await?;
    let post = fanfare.wait(&created.id).await?;
    println!("the post is {}", post.status);
    for target in &post.targets {
        println!("{}: {}", target.platform, target.platform_post_url.as_deref().unwrap_or("no URL"));
    }

    // Read what happened.
    let timeline: Value =
        read(fanfare.request(Method::GET, &format!("/posts/{}/timeline", post.id)).send().await?).await?;
    for entry in timeline["data"].as_array().context("entries")? {
        println!("{} {}", entry["at"], entry["message"]);
    }

    // Wait for the webhook.
    let event = events.recv().await.context("an event")?;
    println!("received {} of {}", event["event"], event["data"]["postId"]);
    ensure!(event["data"]["postId"] == post.id.as_str(), "another post");

    // A platform's refusal: one account fails, with a reason.
    let body = json!({ "content": "Refused #sandbox-400", "accounts": ["fanfare"] });
    let created = fanfare.publish("rust-guide-2", &body).await?;
    let post = fanfare.wait(&created.id).await?;
    println!("the post is {}", post.status);
    for target in &post.targets {
        println!(
            "{} is {}: {}",
            target.platform,
            target.status,
            target.error_message.as_deref().unwrap_or("no reason")
        );
    }
    ensure!(post.status == "failed", "the sandbox refuses the post");
    Ok(())
}
