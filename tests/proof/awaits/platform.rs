//! A platform whose answers are scripted, one script per account.
//!
//! Each call has two await points: the request has not left, and the answer has not arrived. What it does in
//! between is done by then, so that an attempt that is dropped at the first made no call, and one that is dropped
//! at the second made one whose answer is lost.

use async_trait::async_trait;
use domain::Failure;
use platforms::{
    Adapter, Auth, Checkpoint, Committed, Grant, Idempotency, Identity, Limits, Located, Prepared,
    Publication, Publisher, Publishing, Replies, Result, Session,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};

/// Time until a post shows up in reads.
pub(crate) const READ_LAG: Duration = Duration::from_secs(5);
/// Time within which the platform must finish processing.
pub(crate) const WINDOW: Duration = Duration::from_secs(600);
/// Wait that the platform asks for when it throttles.
const THROTTLE: Duration = Duration::from_secs(3600);
const POLL: Duration = Duration::from_secs(20);

/// A platform's answer to a publishing call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// Published; the answer arrives.
    Heard,
    /// Published; the connection breaks before the answer.
    Lost,
    /// Published; the answer can't be read.
    Garbage,
    /// Published shortly before the call's deadline, if the attempt has gone by then.
    Late,
    /// Published; no list shows it.
    Invisible,
    /// Accepted, and published after some looks.
    Processing,
    /// Accepted, and given up after some looks; nothing is published.
    GivenUp,
    /// Accepted, and given up after some looks, each time.
    GivenUpEachTime,
    /// Accepted, and never published.
    ProcessingForever,
    /// Not published: a server error, which says nothing about that.
    ServerError,
    /// Not published: a server error, each time.
    ServerErrors,
    /// Refused for good.
    Refused,
    /// Refused for an hour.
    Throttled,
    /// Refused for an hour, each time.
    ThrottledForever,
    /// Refused because of the token.
    TokenRefused,
}

/// A kind of post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Shape {
    Text,
    Image,
    /// A video that the platform processes before it is published, and after.
    Video,
    /// A post and its first comment.
    FirstComment,
    /// A thread of three.
    Thread,
    /// A text whose publishing call has no time left when it would be made.
    Stalled,
}

impl Shape {
    pub(crate) fn containers(self) -> u16 {
        match self {
            Self::Text | Self::Image | Self::Video | Self::Stalled => 1,
            Self::FirstComment => 2,
            Self::Thread => 3,
        }
    }
}

/// The text of a [`Shape::Stalled`].
pub(crate) const STALLED: &str = "stalled";

/// A publication at the platform.
#[derive(Debug)]
struct Published {
    position: u16,
    at: Duration,
    is_listed: bool,
}

/// The platform, as one account sees it.
#[derive(Debug)]
pub(crate) struct Script {
    shape: Shape,
    answers: VecDeque<Answer>,
    last: Answer,
    /// Virtual time that passed, in addition to the time since `begun`.
    skipped: Duration,
    begun: Instant,
    published: Vec<Published>,
    /// Calls that publish at a time, unless it has not come.
    on_their_way: Vec<(u16, Duration)>,
    /// Looks until accepted content is published or given up.
    looks: u32,
    gives_up: bool,
    /// Access tokens that are refused.
    refused_tokens: Vec<String>,
    pub(crate) commits: u32,
}

impl Script {
    /// Creates a script whose first publishing calls get these answers.
    pub(crate) fn new(shape: Shape, answers: &[Answer]) -> Self {
        let last = match answers.last() {
            Some(
                last @ (Answer::ServerErrors
                | Answer::GivenUpEachTime
                | Answer::ProcessingForever
                | Answer::ThrottledForever),
            ) => *last,
            _ => Answer::Heard,
        };
        Self {
            shape,
            answers: answers.iter().copied().collect(),
            last,
            skipped: Duration::ZERO,
            begun: Instant::now(),
            published: Vec::new(),
            on_their_way: Vec::new(),
            looks: 2,
            gives_up: false,
            refused_tokens: Vec::new(),
            commits: 0,
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.skipped += by;
        let now = self.now();
        let landed = self.on_their_way.extract_if(.., |(_, at)| *at <= now);
        self.published.extend(landed.map(|(position, at)| Published { position, at, is_listed: true }));
    }

    /// Returns the virtual time.
    pub(crate) fn now(&self) -> Duration {
        self.skipped + self.begun.elapsed()
    }

    /// Returns how often a container was published.
    pub(crate) fn count(&self, position: u16) -> usize {
        self.published.iter().filter(|published| published.position == position).count()
    }

    fn publish(&mut self, position: u16, is_listed: bool) -> String {
        self.published.push(Published { position, at: self.now(), is_listed });
        format!("{position}-{}", self.published.len() - 1)
    }

    fn find(&self, position: u16) -> Option<String> {
        let is_shown = |published: &Published| {
            published.position == position && published.is_listed && published.at + READ_LAG <= self.now()
        };
        let found = self.published.iter().position(is_shown)?;
        Some(format!("{position}-{found}"))
    }
}

static SCRIPTS: LazyLock<Mutex<HashMap<String, Arc<Mutex<Script>>>>> = LazyLock::new(Mutex::default);

/// Registers an account's script.
pub(crate) fn register(account: &str, script: Script) -> Arc<Mutex<Script>> {
    let script = Arc::new(Mutex::new(script));
    SCRIPTS.lock().unwrap().insert(account.to_owned(), script.clone());
    script
}

/// Removes an account's script.
pub(crate) fn unregister(account: &str) {
    SCRIPTS.lock().unwrap().remove(account);
}

fn script(cx: &Session<'_>) -> Arc<Mutex<Script>> {
    SCRIPTS.lock().unwrap()[&cx.account.network_unique_id].clone()
}

/// One end of a call: the other one is not reached when the attempt is dropped here.
async fn travel() {
    tokio::task::yield_now().await;
}

#[derive(Default, Serialize, Deserialize)]
struct Step {
    uploaded: bool,
    processed: bool,
    accepted: bool,
}

struct Scripted;

#[async_trait]
impl Publisher for Scripted {
    async fn identities(&self, _: &Session<'_>) -> Result<Vec<Identity>> {
        Ok(Vec::new())
    }

    async fn refresh(&self, cx: &Session<'_>) -> Result<Grant> {
        travel().await;
        let fresh = Grant { access_token: format!("{}+", cx.grant.access_token), ..cx.grant.clone() };
        travel().await;
        Ok(fresh)
    }

    async fn prepare(&self, cx: &Session<'_>, _: &Publication, at: Checkpoint) -> Result<Prepared> {
        let script = script(cx);
        let shape = script.lock().unwrap().shape;
        let mut step: Step = at.read()?;
        if matches!(shape, Shape::Image | Shape::Video) && !step.uploaded {
            travel().await;
            step.uploaded = true;
            cx.checkpoints.save(&Checkpoint::of(&step)).await?;
            travel().await;
            if shape == Shape::Video {
                return Ok(Prepared::Processing { at: Checkpoint::of(&step), poll_after: POLL });
            }
        }
        if shape == Shape::Video && !step.processed {
            travel().await;
            step.processed = true;
        }
        Ok(Prepared::Ready(Checkpoint::of(&step)))
    }

    async fn commit(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Committed> {
        let script = script(cx);
        script.lock().unwrap().commits += 1;
        travel().await;
        let (answer, is_video) = {
            let mut script = script.lock().unwrap();
            let token = &cx.grant.access_token;
            if script.refused_tokens.contains(token) {
                (Answer::TokenRefused, false)
            } else {
                let last = script.last;
                (script.answers.pop_front().unwrap_or(last), script.shape == Shape::Video)
            }
        };
        let mut step: Step = at.read()?;
        let publish = |is_listed| script.lock().unwrap().publish(post.position, is_listed);
        let answered = match answer {
            Answer::Heard if is_video => {
                publish(true);
                step.accepted = true;
                Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: POLL })
            }
            Answer::Heard => Ok(Committed::Live(publish(true))),
            Answer::Lost => {
                publish(true);
                Err(Failure::network("the connection broke", true))
            }
            Answer::Garbage => {
                publish(true);
                Err(Failure::upstream(502, "the answer can't be read").ambiguous())
            }
            Answer::Invisible => {
                publish(false);
                Err(Failure::network("the connection broke", true))
            }
            Answer::Late => {
                /// Publishes late when the attempt is dropped.
                struct Landing(Arc<Mutex<Script>>, u16, bool);
                impl Drop for Landing {
                    fn drop(&mut self) {
                        let mut script = self.0.lock().unwrap();
                        let at = script.now() + platforms::TIMEOUT - Duration::from_secs(1);
                        if self.2 {
                            script.on_their_way.push((self.1, at));
                        }
                    }
                }
                let mut landing = Landing(script.clone(), post.position, true);
                travel().await;
                landing.2 = false;
                publish(true);
                Err(Failure::network("the connection broke", true))
            }
            Answer::Processing | Answer::GivenUp | Answer::GivenUpEachTime | Answer::ProcessingForever => {
                step.accepted = true;
                let mut script = script.lock().unwrap();
                script.looks = if answer == Answer::ProcessingForever { u32::MAX } else { 2 };
                script.gives_up = matches!(answer, Answer::GivenUp | Answer::GivenUpEachTime);
                Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: POLL })
            }
            Answer::ServerError | Answer::ServerErrors => Err(Failure::upstream(503, "try again")),
            Answer::Refused => Err(Failure::rejected(400, "no such words here")),
            Answer::Throttled | Answer::ThrottledForever => {
                Err(Failure::rate_limited("too fast", Some(THROTTLE)))
            }
            Answer::TokenRefused => {
                script.lock().unwrap().refused_tokens.push(cx.grant.access_token.clone());
                Err(Failure::token_expired("the token has expired"))
            }
        };
        travel().await;
        answered
    }

    fn commit_limit(&self, post: &Publication) -> Duration {
        if post.text == STALLED { Duration::ZERO } else { platforms::TIMEOUT }
    }

    async fn locate(&self, cx: &Session<'_>, post: &Publication, at: &Checkpoint) -> Result<Located> {
        travel().await;
        let script = script(cx);
        let located = {
            let mut script = script.lock().unwrap();
            let step: Step = at.read()?;
            let hidden = script.published.iter().any(|one| one.position == post.position && !one.is_listed);
            match script.find(post.position) {
                Some(id) => Located::Live(id),
                None if hidden => Located::Unknown,
                None if step.accepted && script.count(post.position) == 0 => {
                    script.looks = script.looks.saturating_sub(1);
                    match script.looks {
                        0 if script.gives_up => {
                            Located::Failed(Failure::upstream(503, "an error of its own").certain())
                        }
                        0 => Located::Live(script.publish(post.position, true)),
                        _ => Located::Processing { poll_after: POLL },
                    }
                }
                None if step.accepted => Located::Processing { poll_after: POLL },
                None => Located::Absent,
            }
        };
        travel().await;
        Ok(located)
    }

    async fn permalink(&self, _: &Session<'_>, id: &str) -> Result<String> {
        travel().await;
        Ok(format!("https://scripted.example/{id}"))
    }
}

/// The scripted platform's adapter.
pub(crate) static ADAPTER: Adapter = Adapter {
    id: "scripted",
    name: "Scripted",
    limits: Limits {
        replies: Replies::Thread,
        publishing: Publishing::Asynchronous { window: WINDOW },
        idempotency: Idempotency::MayDuplicate { read_lag: READ_LAG },
        ..Limits::DEFAULT
    },
    auth: Auth::AppPassword { service: "https://scripted.example" },
    settings: || json!({}),
    publisher: &Scripted,
    analytics: None,
    history: None,
    deletion: None,
    editing: Err("the scripted platform changes no post"),
    options: None,
    caps: &[],
    usage: None,
};
