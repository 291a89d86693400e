//! A platform whose answers are scripted, one script per account.
//!
//! Each call has two await points: the request has not left, and the answer has not arrived. What it does in
//! between is done by then, so that an attempt that is dropped at the first made no call, and one that is dropped
//! at the second made one whose answer is lost.

use async_trait::async_trait;
use domain::{Edit, Failure, MediaKind, TargetId};
use platforms::{
    Adapter, Auth, Checkpoint, Committed, Deletion, Editing, Grant, Idempotency, Identity, Limits, Located,
    MediaLimit, Prepared, PublishRequest, Publisher, Publishing, Replies, Result, Session, TextLimit,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};
use store::Pool;

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
    /// Accepted, and published; no handle tells which post it is.
    Unnamed,
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
    /// Refused because of the app, for an hour.
    AppRefused,
    /// Refused because of the app, each time.
    AppRefusedForever,
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
#[derive(Clone, Debug)]
pub(crate) struct Published {
    target: TargetId,
    position: u16,
    pub(crate) text: String,
    at: Duration,
    is_listed: bool,
    /// True once it was deleted.
    pub(crate) is_deleted: bool,
}

impl Published {
    fn new(post: &PublishRequest, at: Duration, is_listed: bool) -> Self {
        let text = post.text.clone();
        Self { target: post.target, position: post.position, text, at, is_listed, is_deleted: false }
    }
}

/// A call that was accepted, whose handle leads to its result.
#[derive(Debug)]
struct Accepted {
    /// Looks until it is published or given up.
    looks: u32,
    gives_up: bool,
}

/// The platform, as one account sees it.
#[derive(Debug)]
pub(crate) struct Script {
    shape: Shape,
    answers: VecDeque<Answer>,
    /// First answers of a target, where several have the account.
    of_targets: HashMap<TargetId, Answer>,
    last: Answer,
    /// Virtual time that passed, in addition to the time since `begun`.
    skipped: Duration,
    begun: Instant,
    published: Vec<Published>,
    /// Calls that publish at a time, unless it has not come.
    on_their_way: Vec<Published>,
    accepted: HashMap<(TargetId, u16), Accepted>,
    /// Access tokens that are refused.
    refused_tokens: Vec<String>,
    /// A statement that is executed during each call that prepares a post.
    meanwhile: Option<(Pool, &'static str)>,
    /// The answer to each look-up, if it fails.
    look_failure: Option<Failure>,
    pub(crate) commits: u32,
    /// Calls to publish below what was deleted.
    pub(crate) orphans: u32,
    /// True if it fails to change what is live.
    pub(crate) changes_fail: bool,
}

impl Script {
    /// Creates a script whose first publishing calls get these answers.
    pub(crate) fn new(shape: Shape, answers: &[Answer]) -> Self {
        let last = match answers.last() {
            Some(
                last @ (Answer::ServerErrors
                | Answer::GivenUpEachTime
                | Answer::ProcessingForever
                | Answer::ThrottledForever
                | Answer::AppRefusedForever),
            ) => *last,
            _ => Answer::Heard,
        };
        Self {
            shape,
            answers: answers.iter().copied().collect(),
            of_targets: HashMap::new(),
            last,
            skipped: Duration::ZERO,
            begun: Instant::now(),
            published: Vec::new(),
            on_their_way: Vec::new(),
            accepted: HashMap::new(),
            refused_tokens: Vec::new(),
            meanwhile: None,
            look_failure: None,
            commits: 0,
            orphans: 0,
            changes_fail: false,
        }
    }

    /// Lets a statement be executed while a post is prepared.
    pub(crate) fn meanwhile(&mut self, db: &Pool, statement: &'static str) {
        self.meanwhile = Some((db.clone(), statement));
    }

    /// Lets each look-up fail.
    pub(crate) fn refuse_looks(&mut self, failure: Failure) {
        self.look_failure = Some(failure);
    }

    /// Lets the first call of a target get this answer.
    pub(crate) fn answer(&mut self, target: TargetId, answer: Answer) {
        self.of_targets.insert(target, answer);
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.skipped += by;
        let now = self.now();
        self.published.extend(self.on_their_way.extract_if(.., |published| published.at <= now));
    }

    /// Returns the virtual time.
    pub(crate) fn now(&self) -> Duration {
        self.skipped + self.begun.elapsed()
    }

    /// Returns how often a container was published.
    pub(crate) fn count(&self, position: u16) -> usize {
        self.published.iter().filter(|published| published.position == position).count()
    }

    /// Returns what a target has published at a position, also what was deleted since, each with its id.
    pub(crate) fn publications(&self, target: TargetId, position: u16) -> Vec<(String, Published)> {
        let published = self.published.iter().enumerate();
        let own = published.filter(|(_, one)| (one.target, one.position) == (target, position));
        own.map(|(index, one)| (id(position, index), one.clone())).collect()
    }

    /// Publishes what a target has published once more.
    pub(crate) fn repeat(&mut self, target: TargetId) {
        let own: Vec<_> = self.published.iter().filter(|one| one.target == target).cloned().collect();
        self.published.extend(own);
    }

    /// Deletes what a target has published, unasked.
    pub(crate) fn lose(&mut self, target: TargetId) {
        self.published.iter_mut().filter(|one| one.target == target).for_each(|one| one.is_deleted = true);
    }

    /// Returns a post by its id, unless it was deleted.
    fn by_id(&mut self, wanted: &str) -> Option<&mut Published> {
        let found = self.published.iter_mut().enumerate();
        let mut found = found.filter(|(index, one)| id(one.position, *index) == wanted && !one.is_deleted);
        found.next().map(|(_, one)| one)
    }

    /// Finds a post to change, as the platform answers it.
    fn change(&mut self, wanted: &str) -> Result<&mut Published> {
        if self.changes_fail {
            return Err(Failure::rejected(403, "not now"));
        }
        self.by_id(wanted).ok_or_else(|| Failure::rejected(404, "there is no such post"))
    }

    fn publish(&mut self, post: &PublishRequest, is_listed: bool) -> String {
        self.published.push(Published::new(post, self.now(), is_listed));
        id(post.position, self.published.len() - 1)
    }

    /// Finds a post by its position and text.
    fn find(&self, post: &PublishRequest) -> Option<String> {
        let is_shown = |(index, published): &(usize, &Published)| {
            published.position == post.position
                && published.text == post.text
                && published.is_listed
                && !published.is_deleted
                && published.at + READ_LAG <= self.now()
                && !post.is_taken(&id(post.position, *index))
        };
        let (found, _) = self.published.iter().enumerate().find(is_shown)?;
        Some(id(post.position, found))
    }

    /// Asks by the handle of an accepted call; `None` if it has none.
    fn follow(&mut self, post: &PublishRequest) -> Option<Located> {
        let key = (post.target, post.position);
        let accepted = self.accepted.get_mut(&key)?;
        let is_own =
            |published: &Published| (published.target, published.position) == key && !published.is_deleted;
        if let Some(own) = self.published.iter().position(is_own) {
            return Some(Located::certain(id(post.position, own)));
        }
        accepted.looks = accepted.looks.saturating_sub(1);
        Some(match accepted.looks {
            0 if accepted.gives_up => {
                Located::Failed(Failure::upstream(503, "an error of its own").certain())
            }
            0 => Located::certain(self.publish(post, true)),
            _ => Located::Processing { poll_after: POLL },
        })
    }
}

fn id(position: u16, index: usize) -> String {
    format!("{position}-{index}")
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

/// Returns an account's script.
pub(crate) fn script_of(account: &str) -> Arc<Mutex<Script>> {
    SCRIPTS.lock().unwrap()[account].clone()
}

fn script(cx: &Session<'_>) -> Arc<Mutex<Script>> {
    script_of(&cx.account.network_unique_id)
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

    async fn prepare(&self, cx: &Session<'_>, _: &PublishRequest, at: Checkpoint) -> Result<Prepared> {
        let script = script(cx);
        let (shape, meanwhile) = {
            let script = script.lock().unwrap();
            (script.shape, script.meanwhile.clone())
        };
        if let Some((db, statement)) = meanwhile {
            sqlx::query(statement).execute(&db).await.unwrap();
        }
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

    async fn commit(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Committed> {
        let script = script(cx);
        script.lock().unwrap().commits += 1;
        travel().await;
        let (answer, is_video) = {
            let mut script = script.lock().unwrap();
            let above = post.reply_to.iter().flat_map(|to| [&to.root, &to.parent]);
            if above.into_iter().any(|id| script.by_id(id).is_none()) {
                script.orphans += 1;
                return Err(Failure::rejected(404, "the post to reply to does not exist"));
            }
            let token = &cx.grant.access_token;
            if script.refused_tokens.contains(token) {
                (Answer::TokenRefused, false)
            } else {
                let last = script.last;
                let own = script.of_targets.remove(&post.target);
                let answer = own.or_else(|| script.answers.pop_front()).unwrap_or(last);
                (answer, script.shape == Shape::Video)
            }
        };
        let mut step: Step = at.read()?;
        let publish = |is_listed| script.lock().unwrap().publish(post, is_listed);
        let answered = match answer {
            Answer::Unnamed => {
                publish(true);
                step.accepted = true;
                Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: POLL })
            }
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
                struct Landing(Arc<Mutex<Script>>, Published, bool);
                impl Drop for Landing {
                    fn drop(&mut self) {
                        let mut script = self.0.lock().unwrap();
                        let at = script.now() + platforms::TIMEOUT - Duration::from_secs(1);
                        if self.2 {
                            script.on_their_way.push(Published { at, ..self.1.clone() });
                        }
                    }
                }
                let published = Published::new(post, Duration::ZERO, true);
                let mut landing = Landing(script.clone(), published, true);
                travel().await;
                landing.2 = false;
                publish(true);
                Err(Failure::network("the connection broke", true))
            }
            Answer::Processing | Answer::GivenUp | Answer::GivenUpEachTime | Answer::ProcessingForever => {
                step.accepted = true;
                let looks = if answer == Answer::ProcessingForever { u32::MAX } else { 2 };
                let gives_up = matches!(answer, Answer::GivenUp | Answer::GivenUpEachTime);
                let accepted = Accepted { looks, gives_up };
                script.lock().unwrap().accepted.insert((post.target, post.position), accepted);
                Ok(Committed::Accepted { at: Checkpoint::of(&step), poll_after: POLL })
            }
            Answer::ServerError | Answer::ServerErrors => Err(Failure::upstream(503, "try again")),
            Answer::Refused => Err(Failure::rejected(400, "no such words here")),
            Answer::Throttled | Answer::ThrottledForever => {
                Err(Failure::rate_limited("too fast", Some(THROTTLE)))
            }
            Answer::AppRefused | Answer::AppRefusedForever => {
                Err(Failure::app_refused("the cap is reached", Some(THROTTLE)))
            }
            Answer::TokenRefused => {
                script.lock().unwrap().refused_tokens.push(cx.grant.access_token.clone());
                Err(Failure::token_expired("the token has expired"))
            }
        };
        travel().await;
        answered
    }

    fn commit_limit(&self, post: &PublishRequest) -> Duration {
        if post.text == STALLED { Duration::ZERO } else { platforms::TIMEOUT }
    }

    async fn locate(&self, cx: &Session<'_>, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        travel().await;
        let script = script(cx);
        let failure = script.lock().unwrap().look_failure.clone();
        if let Some(failure) = failure {
            travel().await;
            return Err(failure);
        }
        let located = {
            let mut script = script.lock().unwrap();
            let step: Step = at.read()?;
            let hidden = script.published.iter().any(|one| one.position == post.position && !one.is_listed);
            match (step.accepted.then(|| script.follow(post)).flatten(), script.find(post)) {
                (Some(followed), _) => followed,
                (None, Some(id)) => Located::by_text(id),
                (None, None) if hidden => Located::Unknown,
                (None, None) if step.accepted => Located::Processing { poll_after: POLL },
                (None, None) => Located::Absent,
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

#[async_trait]
impl Deletion for Scripted {
    async fn delete(&self, cx: &Session<'_>, id: &str) -> Result<()> {
        travel().await;
        let deleted = script(cx).lock().unwrap().change(id).map(|post| post.is_deleted = true);
        travel().await;
        deleted
    }
}

#[async_trait]
impl Editing for Scripted {
    async fn edit(&self, cx: &Session<'_>, id: &str, edit: &Edit) -> Result<()> {
        travel().await;
        let edited = script(cx).lock().unwrap().change(id).map(|post| post.text = edit.after().to_owned());
        travel().await;
        edited
    }
}

/// Returns the limits of media of a kind, of which it takes any.
const fn media(kind: MediaKind) -> MediaLimit {
    MediaLimit { kind, count: 0..=10, mimes: &["image/png"], ..MediaLimit::ANY }
}

/// The scripted platform's adapter.
pub(crate) static ADAPTER: Adapter = Adapter {
    id: "scripted",
    name: "Scripted",
    limits: Limits {
        text: TextLimit::characters(10_000),
        media: &[media(MediaKind::Image), media(MediaKind::Video)],
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
    deletion: Some(&Scripted),
    editing: Ok(&Scripted),
    options: None,
    caps: &[],
    usage: None,
};
