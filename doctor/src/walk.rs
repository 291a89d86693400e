//! The walk through a platform: connect, publish, look up, delete.

use crate::{
    Shape,
    shape::template,
    trial::{Attachment, Trial},
};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{ErrorCode, Failure, TargetId};
use platforms::{
    Account, Adapter, App, AppPassword, Checkpoint, Checkpoints, Code, Committed, Feature, Grant,
    Idempotency, Identity, Located, Media, MediaStore, Observer, Prepared, PublishRequest, Publishing, Reply,
    Result, Session, Transport,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use url::Url;
use uuid::Uuid;

/// Shortest pause between two polls of a simulator.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Pause before figures that are not there yet are read again.
const FIGURES_RETRY: Duration = Duration::from_secs(2);
/// Polls until a platform that answers at once is given up.
const MAX_POLLS: usize = 10;

/// Names of the steps, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// Exchange of the code, the refresh token or the app password for a grant.
    Connect,
    /// List of the accounts that the grant covers.
    Accounts,
    /// Health check of the account.
    Health,
    /// Publication of the post.
    Publish,
    /// Look-up of the post, as after a lost response.
    LookUp,
    /// Figures of the post.
    Figures,
    /// First page of the account's posts.
    History,
    /// Deletion of the post.
    Delete,
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Accounts => "accounts",
            Self::Health => "health",
            Self::Publish => "publish",
            Self::LookUp => "look up",
            Self::Figures => "figures",
            Self::History => "history",
            Self::Delete => "delete",
        })
    }
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should be.
    Done,
    /// Failed, with the failure's code or a word.
    Failed(String),
}

/// Calls with the same method and address within a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Method.
    pub method: String,
    /// The platform's address, without query, with `{id}` in place of ids.
    pub address: String,
    /// Statuses of the replies.
    pub statuses: BTreeSet<u16>,
    /// Shapes of the replies together.
    pub shape: Shape,
}

/// A step of the walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name.
    pub name: StepName,
    /// Result.
    pub outcome: Outcome,
    /// Calls, by first occurrence.
    pub calls: Vec<Call>,
    /// Details for people: the account, the failure's message. Not part of a recording.
    #[serde(skip)]
    pub detail: String,
}

/// How the doctor gets a grant.
#[derive(Clone)]
pub enum Login {
    /// An authorization code.
    Code(Code),
    /// An app password.
    Password(AppPassword),
    /// A grant with a refresh token, which is exchanged for a new one.
    Refresh(Grant),
    /// A grant that is used as it is.
    Grant(Grant),
}

impl Login {
    /// Returns the kind.
    pub fn kind(&self) -> LoginKind {
        match self {
            Self::Code(_) => LoginKind::Code,
            Self::Password(password) if password.service.is_some() => LoginKind::PasswordAtService,
            Self::Password(_) => LoginKind::Password,
            Self::Refresh(_) => LoginKind::Refresh,
            Self::Grant(_) => LoginKind::Grant,
        }
    }
}

/// Kinds of logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    /// An authorization code.
    Code,
    /// An app password of an account whose service is looked up.
    Password,
    /// An app password with its service.
    PasswordAtService,
    /// A refresh token.
    Refresh,
    /// A grant.
    Grant,
}

/// One visit of a platform or of its simulator.
pub struct Visit<'a> {
    /// The platform.
    pub platform: &'static Adapter,
    /// Transport to the platform or to the simulator.
    pub transport: Transport,
    /// The app, if the platform has apps.
    pub app: Option<App>,
    /// The login.
    pub login: Login,
    /// Id or handle of the account to visit; the first one if it is `None`.
    pub account: Option<&'a str>,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
    /// True to wait as long as the platform asks for; false for a simulator that answers at once.
    pub is_patient: bool,
}

/// A walk in progress: the connected account and the steps so far.
pub struct Walk {
    platform: &'static Adapter,
    transport: Transport,
    app: Option<App>,
    grant: Grant,
    account: Account,
    now: fn() -> DateTime<Utc>,
    is_patient: bool,
    recorder: Arc<Recorder>,
    steps: Vec<Step>,
}

impl Walk {
    /// Connects an account: a login, the list of its accounts, and a health check.
    ///
    /// # Errors
    ///
    /// When one of them failed: the steps so far.
    pub async fn connect(visit: Visit<'_>) -> std::result::Result<Self, Vec<Step>> {
        let Visit { platform, transport, app, login, account, now, is_patient } = visit;
        let recorder = Arc::new(Recorder::default());
        let transport = transport.observed_by(recorder.clone());
        let mut walk = Self {
            platform,
            transport,
            app,
            grant: Grant::default(),
            account: Account {
                network_unique_id: String::new(),
                username: String::new(),
                account_type: String::new(),
            },
            now,
            is_patient,
            recorder,
            steps: Vec::new(),
        };
        let is_connected = walk.log_in(login).await && walk.choose(account).await && walk.check().await;
        if is_connected { Ok(walk) } else { Err(walk.steps) }
    }

    /// Returns the account.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Publishes the post, looks it up, reads what the platform shows of it, and deletes it; returns all steps of
    /// the walk.
    pub async fn publish(mut self, trial: &Trial, file: Option<&Attachment>) -> Vec<Step> {
        let files = Arc::new(Files(file.cloned()));
        let kept = Kept::default();
        let media = file.map(|file| file.media.clone()).into_iter().collect();
        let post = PublishRequest {
            target: TargetId(Uuid::now_v7()),
            position: 0,
            text: trial.text.clone(),
            media,
            settings: trial.settings.clone(),
            reply_to: None,
            created_at: (self.now)(),
            commit_begun_at: None,
            taken: Vec::new(),
            is_restored: false,
        };
        let (at, begun, result) = self.publish_once(&post, files.clone(), &kept).await;
        let id = match result {
            Ok(id) => {
                let notes = kept.notes();
                self.end(StepName::Publish, Outcome::Done, notes.join("; "));
                id
            }
            Err(failure) => {
                self.fail(StepName::Publish, &failure);
                return self.steps;
            }
        };
        let post = PublishRequest { commit_begun_at: Some(begun), ..post };
        if self.has(Feature::Import, StepName::LookUp) {
            self.look_up(&post, &at, &id, files).await;
        }
        if let Some(analytics) = self.platform.analytics
            && self.has(Feature::Analytics, StepName::Figures)
        {
            let mut read = analytics.metrics(&self.session(), &id).await;
            for _ in 0..MAX_POLLS {
                // Figures of a new post may come later than the post.
                if !matches!(&read, Err(failure) if failure.code == ErrorCode::Rejected(404)) {
                    break;
                }
                self.pause(FIGURES_RETRY).await;
                read = analytics.metrics(&self.session(), &id).await;
            }
            self.record(StepName::Figures, read.map(|_| String::new()));
        }
        if let Some(history) = self.platform.history
            && self.has(Feature::Import, StepName::History)
        {
            let read = history.page(&self.session(), None).await;
            self.record(StepName::History, read.map(|page| format!("{} posts", page.items.len())));
        }
        match self.platform.deletion {
            Some(deletion) => {
                let deleted = deletion.delete(&self.session(), &id).await;
                self.record(StepName::Delete, deleted.map(|()| String::new()));
            }
            None => {
                let session = self.session();
                let url = self.platform.publisher.permalink(&session, &id).await;
                let at = url.unwrap_or_else(|_| id.clone());
                let detail =
                    format!("{} deletes no post for an app: delete it by hand, {at}", self.platform.name);
                self.end(StepName::Delete, Outcome::Done, detail);
            }
        }
        self.steps
    }

    /// Returns the steps so far, for a walk that publishes nothing.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    async fn log_in(&mut self, login: Login) -> bool {
        let publisher = self.platform.publisher;
        let granted = match login {
            Login::Grant(grant) => {
                self.grant = grant;
                return true;
            }
            Login::Code(code) => publisher.exchange(&self.session(), &code).await,
            Login::Password(password) => {
                self.grant = password.grant();
                publisher.refresh(&self.session()).await
            }
            Login::Refresh(grant) => {
                self.grant = grant;
                publisher.refresh(&self.session()).await
            }
        };
        let granted = granted.map(|grant| {
            let old = std::mem::replace(&mut self.grant, grant);
            // Without a new refresh token, the old one stays valid.
            self.grant.refresh_token = self.grant.refresh_token.take().or(old.refresh_token);
            let scopes = if self.grant.scopes.is_empty() { &old.scopes } else { &self.grant.scopes };
            self.grant.scopes = scopes.clone();
            match self.grant.scopes.as_slice() {
                [] => String::new(),
                scopes => format!("scopes {}", scopes.join(" ")),
            }
        });
        self.record(StepName::Connect, granted)
    }

    async fn choose(&mut self, wanted: Option<&str>) -> bool {
        let session = self.session();
        let found = self.platform.publisher.identities(&session).await;
        drop(session);
        let identities = match found {
            Ok(identities) => identities,
            Err(failure) => return self.fail(StepName::Accounts, &failure),
        };
        let is_wanted = |identity: &&Identity| {
            wanted.is_none_or(|wanted| {
                identity.profile.network_unique_id == wanted
                    || identity.profile.username == wanted.trim_start_matches('@')
            })
        };
        let names = identities.iter().map(|one| one.profile.username.as_str()).collect::<Vec<_>>().join(", ");
        let Some(chosen) = identities.iter().find(is_wanted) else {
            let detail = format!("the login covers no such account, but: {names}");
            return self.end(StepName::Accounts, Outcome::Failed("no such account".to_owned()), detail);
        };
        self.account = Account {
            network_unique_id: chosen.profile.network_unique_id.clone(),
            username: chosen.profile.username.clone(),
            account_type: chosen.profile.account_type.clone(),
        };
        if let Some(own) = &chosen.grant {
            self.grant = own.clone();
        }
        self.end(StepName::Accounts, Outcome::Done, names)
    }

    async fn check(&mut self) -> bool {
        let session = self.session();
        let healthy = self.platform.publisher.health(&session).await;
        drop(session);
        let closed = self.platform.closed(&self.grant.scopes);
        let off =
            closed.iter().map(|missing| format!("{} lacks {}", missing.feature, missing.scopes.join(", ")));
        let detail = off.collect::<Vec<_>>().join("; ");
        self.record(StepName::Health, healthy.map(|()| detail))
    }

    /// Publishes, and returns the checkpoint before the publishing call, the time of the call and the post's id.
    async fn publish_once(
        &self,
        post: &PublishRequest,
        files: Arc<Files>,
        kept: &Kept,
    ) -> (Checkpoint, DateTime<Utc>, Result<String>) {
        let session = self.publishing_session(kept, files);
        let publisher = self.platform.publisher;
        let mut at = Checkpoint::default();
        let mut begun = (self.now)();
        let mut pauses = self.pauses();
        let published = async {
            loop {
                match publisher.prepare(&session, post, at.clone()).await? {
                    Prepared::Ready(ready) => {
                        at = ready;
                        break;
                    }
                    Prepared::Processing { at: next, poll_after } => {
                        at = next;
                        pauses.wait(poll_after).await?;
                    }
                }
            }
            begun = (self.now)();
            let (mut next, mut poll_after) = match publisher.commit(&session, post, &at).await? {
                Committed::Live(id) => return Ok(id),
                Committed::Accepted { at, poll_after } => (at, poll_after),
            };
            let post = PublishRequest { commit_begun_at: Some(begun), ..post.clone() };
            loop {
                pauses.wait(poll_after).await?;
                match self.platform.locate(&session, &post, &next).await? {
                    Located::Live(found) => return Ok(found.into_id()),
                    Located::Processing { poll_after: after } => poll_after = after,
                    other => return Err(unexpected(other)),
                }
                next = kept.last().unwrap_or(next);
            }
        };
        let published = published.await;
        (at, begun, published)
    }

    async fn look_up(&mut self, post: &PublishRequest, at: &Checkpoint, id: &str, files: Arc<Files>) {
        if let Idempotency::MayDuplicate { read_lag } = self.platform.limits.idempotency {
            self.pause(read_lag).await;
        }
        let kept = Kept::default();
        let session = self.publishing_session(&kept, files);
        let mut pauses = self.pauses();
        let found = async {
            loop {
                match self.platform.locate(&session, post, at).await? {
                    Located::Live(found) if found.id() == id => return Ok(String::new()),
                    Located::Processing { poll_after } => pauses.wait(poll_after).await?,
                    other => return Err(unexpected(other)),
                }
            }
        };
        let found = found.await;
        drop(session);
        self.record(StepName::LookUp, found);
    }

    /// Returns a session for calls that publish nothing.
    fn session(&self) -> Session<'_> {
        self.publishing_session(&Nowhere, Arc::new(Files(None)))
    }

    fn publishing_session<'a>(&'a self, kept: &'a dyn Checkpoints, files: Arc<Files>) -> Session<'a> {
        Session {
            platform: self.platform,
            account: &self.account,
            grant: &self.grant,
            app: self.app.as_ref(),
            now: self.now,
            transport: &self.transport,
            checkpoints: kept,
            media: files,
            skew: Arc::default(),
        }
    }

    /// Returns true if the grant opens a feature; otherwise the step is left out, and says why.
    fn has(&mut self, feature: Feature, step: StepName) -> bool {
        match self.platform.explain(feature, &self.grant.scopes) {
            Some(why) => !self.end(step, Outcome::Done, format!("left out: {why}")),
            None => true,
        }
    }

    fn pauses(&self) -> Pauses<'_> {
        let window = match self.platform.limits.publishing {
            Publishing::Immediate => None,
            Publishing::Asynchronous { window } => Some(window),
        };
        Pauses { walk: self, left: window, polls: 0 }
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(if self.is_patient { time } else { MIN_PAUSE }).await;
    }

    /// Ends a step with a result whose success has a detail; true if it is one.
    fn record(&mut self, name: StepName, result: Result<String>) -> bool {
        match result {
            Ok(detail) => self.end(name, Outcome::Done, detail),
            Err(failure) => self.fail(name, &failure),
        }
    }

    fn fail(&mut self, name: StepName, failure: &Failure) -> bool {
        self.end(name, Outcome::Failed(failure.code.to_string()), failure.message.clone())
    }

    fn end(&mut self, name: StepName, outcome: Outcome, detail: String) -> bool {
        let is_done = outcome == Outcome::Done;
        self.steps.push(Step { name, outcome, calls: self.recorder.take(), detail });
        is_done
    }
}

/// Returns the failure of a look-up that did not find the post.
fn unexpected(located: Located) -> Failure {
    let what = match located {
        Located::Live(_) => "it found another post",
        Located::Processing { .. } => "the post is still being processed",
        Located::Failed(failure) => return failure,
        Located::Absent => "it found nothing",
        Located::Unknown => "the platform does not tell",
        Located::TooMany => "the account has too many posts",
    };
    Failure::upstream(502, format!("the post was published, and the look-up says otherwise: {what}"))
}

/// The pauses of a poll, within the platform's window.
struct Pauses<'a> {
    walk: &'a Walk,
    left: Option<Duration>,
    polls: usize,
}

impl Pauses<'_> {
    async fn wait(&mut self, pause: Duration) -> Result<()> {
        self.polls += 1;
        let is_over = match &mut self.left {
            Some(left) => {
                *left = left.saturating_sub(pause);
                left.is_zero()
            }
            None => self.polls > MAX_POLLS,
        };
        if is_over {
            return Err(Failure::upstream(504, "the platform's processing takes longer than its window"));
        }
        self.walk.pause(pause).await;
        Ok(())
    }
}

/// Collects the calls of a step.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Call>>);

impl Recorder {
    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Recorder {
    fn observe(&self, method: &str, address: &str, reply: &Reply) {
        let address = address.strip_prefix("https://").unwrap_or(address);
        let address = address.split('/').map(template).collect::<Vec<_>>().join("/");
        let (status, shape) = (reply.status.as_u16(), Shape::of(&reply.body));
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = calls.iter_mut().find(|call| call.method == method && call.address == address);
        match same {
            Some(call) => {
                call.statuses.insert(status);
                call.shape.merge(shape);
            }
            None => {
                calls.push(Call { method: method.to_string(), address, statuses: [status].into(), shape });
            }
        }
    }
}

/// For calls that have no checkpoints.
struct Nowhere;

#[async_trait]
impl Checkpoints for Nowhere {
    async fn save(&self, _checkpoint: &Checkpoint) -> Result<()> {
        Ok(())
    }
}

/// Checkpoints and notes in memory.
#[derive(Default)]
struct Kept {
    last: Mutex<Option<Checkpoint>>,
    notes: Mutex<Vec<String>>,
}

impl Kept {
    fn last(&self) -> Option<Checkpoint> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Checkpoints for Kept {
    async fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(checkpoint.clone());
        Ok(())
    }

    async fn note(&self, message: &str) -> Result<()> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
        Ok(())
    }
}

/// The file of the post.
struct Files(Option<Attachment>);

impl Files {
    fn file(&self) -> Result<&Attachment> {
        self.0.as_ref().ok_or_else(|| Failure::rejected(422, "the post has no file"))
    }
}

#[async_trait]
impl MediaStore for Files {
    async fn read(&self, _media: &Media, range: Range<u64>) -> Result<Bytes> {
        let bytes = &self.file()?.bytes;
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(at(range.start)..at(range.end)))
    }

    async fn address(&self, _media: &Media) -> Result<Url> {
        let message = "the platform fetches the file itself: give its public address with --media-url";
        self.file()?.address.clone().ok_or_else(|| Failure::rejected(422, message))
    }
}
