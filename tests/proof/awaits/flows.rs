//! The workflows of a case's targets, on virtual time.
//!
//! They do with the result of a step and with a signal what crate `workflows` does, and get from the outbox what the
//! relay sends them. Nothing is swept: a target that no message wakes stays open, and the verdict finds it.

use super::{Made, Next, Step, make, settle};
use domain::{
    Owner, PostId, TargetId, TargetStatus,
    outbox::{Disconnection, Message, PostJob},
    publish::SettleReason,
};
use futures::future::BoxFuture;
use publishing::Engine;
use std::{collections::HashMap, sync::Arc, time::Duration};
use store::{accounts::disconnect, outbox, posts, publishing::TargetKey};
use tests::now;
use workflows::disconnect_account::REVOKE_TRIES;

/// Messages that are taken at once, and their lease.
const BATCH: (i64, Duration) = (64, Duration::from_secs(60));
/// Pause before the second try to revoke a grant; each one after it is twice as long.
const REVOKE_PAUSE: Duration = Duration::from_secs(5);

/// The workflow that works on a target.
#[derive(Debug)]
struct Flow {
    id: usize,
    key: TargetKey,
    /// True while its post's workflow makes the first attempt, which no signal reaches.
    is_first: bool,
    next: Next,
    /// When it is due; `None` while it waits for a newer version of its post.
    due: Option<Duration>,
    /// True if a retry was requested since its last attempt began.
    is_requested: bool,
}

/// The workflow that disconnects an account.
#[derive(Debug)]
struct Leaving {
    disconnection: Disconnection,
    /// Tries to revoke the grant.
    tries: u32,
    due: Duration,
}

/// The next step that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// A step of the workflow with this id.
    Step(usize),
    /// The first workflow that disconnects an account.
    Leave,
}

/// All workflows of a case.
pub(super) struct Flows {
    engine: Arc<Engine>,
    /// Virtual time since the case began.
    pub(super) now: Duration,
    flows: Vec<Flow>,
    leaving: Vec<Leaving>,
    /// Versions of the posts, as their workflows know them.
    versions: HashMap<PostId, i32>,
    last_id: usize,
    /// Messages other than those for webhooks.
    pub(super) messages: usize,
}

impl Flows {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            now: Duration::ZERO,
            flows: Vec::new(),
            leaving: Vec::new(),
            versions: HashMap::new(),
            last_id: 0,
            messages: 0,
        }
    }

    /// Returns what is due first, and when.
    pub(super) fn earliest(&self) -> Option<(Duration, Turn)> {
        let steps = self.flows.iter().filter_map(|flow| Some((flow.due?, Turn::Step(flow.id))));
        let leaving = self.leaving.first().map(|leaving| (leaving.due, Turn::Leave));
        steps.chain(leaving).min_by_key(|(due, _)| *due)
    }

    /// Returns the target that a workflow works on.
    pub(super) fn key(&self, id: usize) -> TargetKey {
        self.flows[self.index(id)].key
    }

    fn index(&self, id: usize) -> usize {
        self.flows.iter().position(|flow| flow.id == id).expect("a workflow that runs")
    }

    /// Begins the next step of a workflow.
    pub(super) fn begin(&mut self, id: usize) -> BoxFuture<'static, Made> {
        let engine = self.engine.clone();
        let index = self.index(id);
        let flow = &mut self.flows[index];
        if matches!(flow.next, Next::Attempt) {
            flow.is_requested = false;
        }
        let (key, next) = (flow.key, flow.next);
        Box::pin(async move {
            match make(engine.clone(), key, next).await {
                Made::Lost(message) => {
                    Made::Step(settle(&engine, key, &SettleReason::GrantLost { message }).await)
                }
                made => made,
            }
        })
    }

    /// Decides what follows from the result of a step.
    pub(super) fn end(&mut self, id: usize, made: Made) {
        let index = self.index(id);
        let key = self.flows[index].key;
        let is_double = self.flows.iter().any(|other| {
            other.id != id && !other.is_first && other.due.is_some() && other.key.target == key.target
        });
        let version = self.versions.get(&key.post).copied();
        let flow = &mut self.flows[index];
        match made {
            // A user has retried the target that was dead.
            Made::Step(Step::Ended(TargetStatus::Dead)) if flow.is_requested && !flow.is_first => {
                (flow.next, flow.due) = (Next::Attempt, Some(self.now));
            }
            Made::Step(Step::Ended(_)) => drop(self.flows.remove(index)),
            // A workflow of its own works on the target already.
            Made::Step(Step::Next(..)) if flow.is_first && is_double => drop(self.flows.remove(index)),
            Made::Step(Step::Next(next, pause)) => {
                // The workflow that follows a first attempt looks at the row at once.
                let is_due = matches!(next, Next::Attempt) && (flow.is_first || flow.is_requested);
                flow.due = Some(if is_due { self.now } else { self.now + pause });
                (flow.next, flow.is_first) = (next, false);
            }
            Made::Stale => {
                (flow.next, flow.is_first, flow.is_requested, flow.due) = (Next::Attempt, true, false, None);
                if let Some(version) = version.filter(|version| *version > key.version) {
                    (flow.key.version, flow.due) = (version, Some(self.now));
                }
            }
            Made::Lost(message) => unreachable!("a lost grant settles the target: {message}"),
        }
    }

    /// Sends what is in the outbox, until nothing is.
    pub(super) async fn deliver(&mut self) {
        let db = self.engine.db.clone();
        loop {
            let claimed = outbox::claim(&db, BATCH.0, BATCH.1).await.unwrap();
            if claimed.is_empty() {
                return;
            }
            let mut started = Vec::new();
            for claimed in &claimed {
                let message = claimed.message.as_ref().unwrap();
                self.messages += usize::from(!matches!(message, Message::DrainEndpoint(_)));
                match message {
                    Message::PublishPost(job) | Message::PostChanged(job) => {
                        started.push(job.post);
                        self.change(job);
                    }
                    Message::PostCanceled { post, .. } => {
                        self.flows.retain(|flow| flow.key.post != *post || flow.due.is_some());
                    }
                    Message::RetryTarget { target, post, owner } => {
                        self.retry_now(*target, *post, *owner).await;
                    }
                    Message::ReviveTarget { target, post, owner, version } => {
                        let (owner, post, version) = (*owner, *post, *version);
                        if !self.wake(target.target) {
                            self.start(TargetKey { owner, post, target: target.target, version }, false);
                        }
                    }
                    Message::DisconnectAccount(disconnection) => {
                        let disconnection = disconnection.clone();
                        self.leaving.push(Leaving { disconnection, tries: 0, due: self.now });
                    }
                    Message::DrainEndpoint(_) => {}
                    Message::ResumePost(_)
                    | Message::ImportPosts(_)
                    | Message::RenewGrant(_)
                    | Message::ProcessMedia(_) => panic!("nothing asks for {message:?}"),
                }
            }
            let ids: Vec<_> = claimed.iter().map(|claimed| claimed.id).collect();
            outbox::complete(&db, &ids, &started).await.unwrap();
        }
    }

    fn start(&mut self, key: TargetKey, is_first: bool) {
        self.last_id += 1;
        let (id, due) = (self.last_id, Some(self.now));
        self.flows.push(Flow { id, key, is_first, next: Next::Attempt, due, is_requested: false });
    }

    /// Has a post's workflow work on those targets of a job that no workflow works on. `is_first` is true if it makes
    /// their first attempts.
    fn work(&mut self, job: &PostJob, is_first: bool) {
        for target in &job.targets {
            let (owner, post, target, version) = (job.owner, job.post, target.target, job.version);
            if self.flows.iter().all(|flow| flow.key.target != target) {
                self.start(TargetKey { owner, post, target, version }, is_first);
            }
        }
    }

    /// Tells a post's workflow of a version of the post. What waits for it goes on.
    fn change(&mut self, job: &PostJob) {
        assert!(!job.is_far_off, "the post is due: {job:?}");
        let known = self.versions.entry(job.post).or_default();
        *known = job.version.max(*known);
        for flow in self.flows.iter_mut().filter(|flow| flow.key.post == job.post && flow.due.is_none()) {
            if job.version > flow.key.version {
                (flow.key.version, flow.due) = (job.version, Some(self.now));
            }
        }
        if self.flows.iter().all(|flow| flow.key.post != job.post) {
            self.work(job, true);
        }
    }

    /// Signals a target's own workflow. Returns false if there is none.
    fn wake(&mut self, target: TargetId) -> bool {
        let mut own = self.flows.iter_mut();
        let Some(flow) = own.find(|flow| flow.key.target == target && !flow.is_first) else { return false };
        flow.is_requested = true;
        // One that waits for a platform is not interrupted.
        if matches!(flow.next, Next::Attempt) {
            flow.due = flow.due.map(|due| due.min(self.now));
        }
        true
    }

    /// Brings the next attempt of a target forward. If it has no workflow of its own, its post's goes on with it.
    async fn retry_now(&mut self, target: TargetId, post: PostId, owner: Owner) {
        if self.wake(target) {
            return;
        }
        let mut connection = self.engine.db.acquire().await.unwrap();
        match posts::resumption(&mut connection, owner, post).await.unwrap() {
            Some(Message::ResumePost(job)) => self.work(&job, false),
            Some(Message::PublishPost(job)) => self.work(&job, true),
            _ => {}
        }
    }

    /// Makes a step of the first workflow that disconnects an account.
    pub(super) async fn leave(&mut self) {
        let db = &self.engine.db;
        let Leaving { disconnection, tries, .. } = self.leaving.remove(0);
        if tries == 0 {
            cancel_all(db, &disconnection).await;
        }
        let leaving = disconnect::grant_to_revoke(db, &disconnection).await.unwrap();
        let tries = tries + 1;
        if leaving.is_some_and(|leaving| leaving.in_doubt) && tries < REVOKE_TRIES {
            let due = self.now + REVOKE_PAUSE * 2_u32.pow(tries - 1);
            self.leaving.push(Leaving { disconnection, tries, due });
            return;
        }
        disconnect::erase(db, &disconnection).await.unwrap();
    }
}

/// Cancels the targets of a disconnected account.
pub(super) async fn cancel_all(db: &store::Pool, disconnection: &Disconnection) {
    let mut last = None;
    loop {
        last = disconnect::cancel_next(db, disconnection, last, now()).await.unwrap();
        if last.is_none() {
            return;
        }
    }
}
