//! The posts of the matrix, and the calls that publishing them makes.

use crate::PROGRAM;
use chrono::{DateTime, TimeDelta, Utc};
use platforms::{Adapter, Content, MediaKind, Refresh};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    fmt,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tests::{
    World,
    samples::{film, jpeg},
    wait_within,
};
use uuid::Uuid;

/// Longest wait for posts to end. A refresh that died holds its lease for four minutes.
const PATIENCE: Duration = Duration::from_secs(900);

/// A kind of post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text.
    Text,
    /// An image; with a video where the platform needs one.
    Image,
    /// A video.
    Video,
    /// A thread of three; of two where the platform takes one comment.
    Thread,
    /// A post whose first call is refused, so that the token is refreshed.
    ExpiredToken,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Text, Self::Image, Self::Video, Self::Thread, Self::ExpiredToken];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Video => "video",
            Self::Thread => "thread",
            Self::ExpiredToken => "expired token",
        })
    }
}

/// A call to a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Method, host and path, without ids.
    pub(super) name: String,
    /// True if it published something.
    pub(super) has_published: bool,
    /// Time since the first call.
    pub(super) at: TimeDelta,
}

/// The calls of an undisturbed publish, in order.
#[derive(Clone)]
pub(super) struct Sequence {
    pub(super) platform: &'static Adapter,
    pub(super) kind: Kind,
    /// Number of containers.
    pub(super) containers: usize,
    pub(super) calls: Vec<Call>,
}

/// A post from an account of its own.
#[derive(Clone)]
pub(super) struct Post {
    pub(super) platform: &'static Adapter,
    pub(super) account: Uuid,
    pub(super) username: String,
    pub(super) post: Uuid,
    pub(super) target: Uuid,
}

/// The world in which posts are published, and their media.
pub(super) struct Posts {
    pub(super) world: World,
    image: Value,
    video: Value,
    accounts: AtomicU32,
}

impl Posts {
    /// Starts an API and a worker for all platforms.
    pub(super) async fn start(pace: f64) -> Self {
        let all: Vec<_> = platforms::all().iter().map(|platform| platform.id).collect();
        let mut world = World::of(&PROGRAM).approved().running(&[]).platforms(&all).pace(pace).start().await;
        // Some platforms fetch media from the API.
        let base = world.base.clone();
        world.set("FANFARE_BASE_URL", &base);
        world.run("api").await;
        // Many writes are blocked at the same time.
        world.set("FANFARE_DATABASE_CONNECTIONS", "64");
        world.run("worker").await;
        // Google takes no image below 10 KB.
        let picture = [jpeg(1080, 1080), vec![0; 16 << 10]].concat();
        let image = world.medium("picture.jpg", None, picture).await["id"].clone();
        let video = world.medium("film.mp4", None, film(5000, 4096)).await["id"].clone();
        Self { world, image, video, accounts: AtomicU32::new(0) }
    }

    /// Connects a new account, and returns its id and username.
    pub(super) async fn account(&self, platform: &str) -> (String, String) {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        let username = match platform {
            "bluesky" => format!("case{number}.bsky.social"),
            _ => format!("case{number}"),
        };
        (self.world.connect(platform, &username).await, username)
    }

    /// Creates a post of a kind.
    pub(super) async fn create(
        &self,
        platform: &'static Adapter,
        kind: Kind,
        account: (String, String),
    ) -> Post {
        let (account, username) = account;
        if kind == Kind::ExpiredToken {
            self.world.expire_tokens(platform.id, &username).await;
        }
        let body = json!({ "containers": self.containers(platform, kind), "accounts": [account] });
        let post = self.world.post(body).await;
        let id = |value: &Value| value["id"].as_str().unwrap().parse().unwrap();
        let target = id(&post["targets"][0]);
        Post { platform, account: account.parse().unwrap(), username, post: id(&post), target }
    }

    fn containers(&self, platform: &Adapter, kind: Kind) -> Vec<Value> {
        let limits = &platform.limits;
        let text = |content: &str| json!({ "content": content });
        let with = |kind: MediaKind| {
            let required = limits.required_media.filter(|required| *required != kind);
            let media = required.into_iter().chain([kind]).map(|kind| match kind {
                MediaKind::Image => json!({ "id": self.image }),
                _ => json!({ "id": self.video }),
            });
            json!({ "content": "The first container", "media": media.collect::<Vec<_>>() })
        };
        let simplest = || match limits.content {
            Content::Media => with(limits.required_media.unwrap_or(limits.media[0].kind)),
            Content::Text | Content::TextOrMedia => text("The first container"),
        };
        match kind {
            Kind::Text => vec![text("The first container")],
            Kind::Image => vec![with(MediaKind::Image)],
            Kind::Video => vec![with(MediaKind::Video)],
            Kind::Thread => {
                let mut thread = vec![simplest(), text("The second container"), text("The third container")];
                thread.truncate(limits.replies.containers());
                thread
            }
            Kind::ExpiredToken => vec![simplest()],
        }
    }

    /// Returns why a platform doesn't have a kind of post.
    pub(super) async fn unsupported(&self, platform: &'static Adapter, kind: Kind) -> Option<String> {
        let containers = self.containers(platform, kind);
        if kind == Kind::Thread && containers.len() == 1 {
            return Some(format!("{} {}", platform.id, platform.limits.replies.left_out(2)));
        }
        if kind == Kind::ExpiredToken && platform.auth.refresh() != Refresh::Anytime {
            return Some(format!("{} refreshes no expired token", platform.id));
        }
        let (account, _) = self.account(platform.id).await;
        let body = json!({ "containers": containers, "accounts": [account] });
        let (status, verdict) = self.world.call(Method::POST, "/posts/validate", Some(&body)).await;
        assert_eq!(status, StatusCode::OK, "{verdict}");
        let mut issues = verdict["issues"].as_array().unwrap().iter();
        let error = issues.find(|issue| issue["severity"] == "error")?;
        Some(error["message"].as_str().unwrap().to_owned())
    }

    /// Publishes a post of each kind, and returns the calls.
    pub(super) async fn undisturbed(&self, kinds: &[(&'static Adapter, Kind)]) -> Vec<Sequence> {
        let mut all = Vec::new();
        for (platform, kind) in kinds {
            let account = self.account(platform.id).await;
            all.push((*kind, self.create(platform, *kind, account).await));
        }
        self.ended(all.iter().map(|(_, post)| post)).await;
        let mut sequences = Vec::new();
        for (kind, post) in all {
            let platform = post.platform;
            let path = format!("/posts/{}", post.post);
            let published = self.world.get(&path).await;
            assert_eq!(published["status"], "published", "{} {kind}: {published:#}", platform.id);
            let journal = self.world.journal(platform.id, &post.username).await;
            let first = at(&journal[0]);
            let calls = journal.iter().map(|entry| Call {
                name: name(entry),
                has_published: entry["accepted"] == true,
                at: at(entry) - first,
            });
            let containers = self.containers(platform, kind).len();
            sequences.push(Sequence { platform, kind, containers, calls: calls.collect() });
        }
        sequences
    }

    /// Waits until posts have ended on their platform, with all their containers.
    pub(super) async fn ended(&self, posts: impl IntoIterator<Item = &Post>) {
        let posts: Vec<_> = posts.into_iter().map(|post| post.post).collect();
        wait_within(PATIENCE, "the posts to end", async || {
            let open = self.open(&posts).await;
            if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
        })
        .await;
    }

    /// Returns those posts that have not ended.
    pub(super) async fn open(&self, posts: &[Uuid]) -> Vec<Uuid> {
        sqlx::query_scalar(
            "select t.post_id from targets t
             where t.post_id = any($1) and t.status not in ('dead', 'canceled') and not (
               t.status = 'published' and (
                 (select count(*) from containers c where c.post_id = t.post_id and c.variant = 0) = 1
                 or exists (
                   select from timeline e
                   where e.post_id = t.post_id and e.target_id = t.id and e.kind in ('complete', 'incomplete'))))",
        )
        .bind(posts)
        .fetch_all(&self.world.db)
        .await
        .unwrap()
    }
}

/// Returns the method, host and path of a journal entry, without ids.
pub(super) fn name(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap();
    let is_id = |segment: &str| segment.len() > 6 && segment.contains(|c: char| c.is_ascii_digit());
    let segments: Vec<_> =
        text("path").split('/').map(|segment| if is_id(segment) { "{id}" } else { segment }).collect();
    format!("{} {}{}", text("method"), text("host"), segments.join("/"))
}

fn at(entry: &Value) -> DateTime<Utc> {
    entry["at"].as_str().unwrap().parse().unwrap()
}
