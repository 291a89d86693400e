//! One case: a post, the workflows that work on it, and an operation that meets one of their steps.

use super::{
    Made, Named, Next, Runner, STEPS, create,
    flows::{Flows, Turn},
    make, new_post,
    operations::{Done, Operation, Tools},
    platform::{self, Answer, Script, Shape},
    waits_for_lock,
};
use domain::{AccountId, Mode, Owner};
use futures::future::{BoxFuture, LocalBoxFuture};
use sqlx::Row;
use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};
use store::{
    Pool,
    people::{audit::Actor, organizations},
    posts::{Container, NewPost},
    publishing::{TargetKey, freezes},
};
use tests::now;

/// Time until operators release what the operation froze.
const FROZEN: Duration = Duration::from_secs(3600);
/// Time until they release what was frozen before the case: longer than the pause between two looks.
const FROZEN_BEFORE: Duration = Duration::from_secs(7 * 3600);

/// How an operation and a step of a workflow meet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meeting {
    /// The operation runs while a step is held at this await point, counted over all steps; after the last step, if there
    /// are fewer.
    During {
        point: usize,
        /// True if the messages that it writes arrive after the step.
        is_late: bool,
    },
    /// The operation begins after this many steps and is held at an await point. Meanwhile the next step is made.
    Around { steps: usize, point: usize, pace: Pace },
}

/// How far a step goes while an operation is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// To its end.
    Whole,
    /// Until its attempt holds the target.
    Begun,
    /// Until its publishing call is on its way.
    Called,
}

/// A post, the platform's answers, and the operation.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) shape: Shape,
    pub(super) answers: Vec<Answer>,
    pub(super) operation: Operation,
    pub(super) meeting: Meeting,
}

/// A finished case.
#[derive(Debug)]
pub(super) struct Outcome {
    /// False if the operation or the steps had fewer await points.
    pub(super) was_reached: bool,
    /// True if the operation came after the last step.
    pub(super) was_last: bool,
    pub(super) is_accepted: bool,
    /// How the target has ended.
    pub(super) ended: String,
    /// Problems that were found.
    pub(super) complaints: Vec<String>,
}

/// State that was known when the operation returned.
pub(super) struct Returned {
    pub(super) done: Done,
    /// Publishing calls that were made.
    pub(super) calls: u32,
    /// Calls whose intent was written, and whose result was unknown: at most as many may follow.
    pub(super) open: u32,
}

/// A post of another organization, to an account of the same id on the platform.
pub(super) struct Neighbor {
    pub(super) account: AccountId,
    /// Digest of its rows.
    pub(super) digest: String,
}

pub(super) struct World<'a> {
    pub(super) runner: &'a Runner,
    pub(super) case: &'a Case,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) network_id: String,
    pub(super) account: AccountId,
    pub(super) key: TargetKey,
    pub(super) neighbor: Neighbor,
    pub(super) flows: Flows,
    /// When operators release what is frozen.
    thaws_at: Option<Duration>,
    /// Publishing calls that were made when they did.
    pub(super) calls_at_thaw: Option<u32>,
    /// Steps made.
    steps: usize,
    /// Await points passed before the operation.
    points: usize,
    pub(super) returned: Option<Returned>,
}

/// Plays a case until everything has ended, and judges it.
pub(super) async fn play(runner: &Runner, case: &Case) -> Outcome {
    let _named = Named(case);
    let mut world = World::begin(runner, case).await;
    let (was_reached, was_last) = world.finish().await;
    let (ended, complaints) = world.judge().await;
    platform::unregister(&world.network_id);
    let is_accepted = world.returned.is_some_and(|returned| returned.done.is_accepted);
    Outcome { was_reached, was_last, is_accepted, ended, complaints }
}

impl<'a> World<'a> {
    pub(super) async fn begin(runner: &'a Runner, case: &'a Case) -> Self {
        let (account, network_id) = runner.connect().await;
        let script = platform::register(&network_id, Script::new(case.shape, &case.answers));
        script.lock().unwrap().changes_fail = case.operation == Operation::UnpublishInVain;
        let neighbor = Neighbor::move_in(runner, &network_id).await;
        let key = runner.create_for(account, case.shape).await;
        let mut thaws_at = None;
        if case.operation == Operation::Release {
            let scope = freezes::Scope::Account(account);
            let frozen = freezes::freeze(&runner.db, &scope, None, "an incident", &Actor::OPERATOR, now());
            assert_eq!(frozen.await.unwrap(), freezes::FreezeResult::Frozen);
            thaws_at = Some(FROZEN_BEFORE);
        }
        let mut flows = Flows::new(runner.engine.clone());
        flows.deliver().await;
        Self {
            runner,
            case,
            script,
            network_id,
            account,
            key,
            neighbor,
            flows,
            thaws_at,
            calls_at_thaw: None,
            steps: 0,
            points: 0,
            returned: None,
        }
    }

    /// Runs until everything has ended. Returns whether the operation met a step at its await point, and whether it came
    /// after the last one.
    pub(super) async fn finish(&mut self) -> (bool, bool) {
        let mut was_reached = self.run().await;
        let was_last = self.returned.is_none();
        if was_last {
            match self.case.meeting {
                Meeting::During { .. } => {
                    let done = self.perform().await;
                    self.take(done).await;
                }
                Meeting::Around { point, pace, .. } => {
                    // Another worker's attempt, which comes too late.
                    let late = make(self.runner.engine.clone(), self.key, Next::Attempt);
                    (_, was_reached) = self.around(self.key, late, point, pace).await;
                }
            }
            self.flows.deliver().await;
            self.run().await;
        }
        // Calls that are on their way arrive.
        self.runner.advance(self.key, &self.script, Duration::from_secs(3600)).await;
        (was_reached, was_last)
    }

    /// Runs until nothing is due any more. Returns true if the operation met a step at its await point.
    async fn run(&mut self) -> bool {
        let meeting = self.case.meeting;
        let mut was_reached = false;
        loop {
            let next = self.flows.earliest();
            let is_thaw = self.thaws_at.is_some_and(|at| next.is_none_or(|(due, _)| at <= due));
            let due = if is_thaw { self.thaws_at } else { next.map(|(due, _)| due) };
            let Some(due) = due else { return was_reached };
            let pause = due.saturating_sub(self.flows.now);
            if !pause.is_zero() {
                self.runner.advance(self.key, &self.script, pause).await;
                self.flows.now = due;
            }
            match next.map(|(_, turn)| turn).filter(|_| !is_thaw) {
                None => self.thaw().await,
                Some(Turn::Leave) => self.flows.leave().await,
                Some(Turn::Step(flow)) => {
                    assert!(self.steps < STEPS, "it does not end");
                    let (key, step) = (self.flows.key(flow), self.flows.begin(flow));
                    let (made, is_met) = match meeting {
                        _ if self.returned.is_some() => (step.await, false),
                        Meeting::During { point, is_late } => self.during(step, point, is_late).await,
                        Meeting::Around { steps, point, pace } if steps == self.steps => {
                            self.around(key, step, point, pace).await
                        }
                        Meeting::Around { .. } => (step.await, false),
                    };
                    was_reached |= is_met;
                    self.steps += 1;
                    self.flows.end(flow, made);
                }
            }
            self.flows.deliver().await;
        }
    }

    /// Releases what is frozen, as operators do.
    async fn thaw(&mut self) {
        self.thaws_at = None;
        self.calls_at_thaw = Some(self.script.lock().unwrap().commits);
        let scope = freezes::Scope::Account(self.account);
        let actor = &Actor::OPERATOR;
        freezes::release(&self.runner.db, &scope, None, Duration::ZERO, actor, now()).await.unwrap();
    }

    fn perform(&self) -> LocalBoxFuture<'static, Done> {
        let tools = Tools {
            engine: self.runner.engine.clone(),
            key: self.key,
            account: self.account,
            network_id: self.network_id.clone(),
        };
        tools.perform(self.case.operation)
    }

    /// Takes the result of the operation.
    async fn take(&mut self, done: Done) {
        let targets: Vec<_> = self.keys(done.reply).iter().map(|key| key.target.0).collect();
        let open = "select count(*) from open_intents where target_id = any($1)";
        let open = sqlx::query_scalar::<_, i64>(open).bind(targets).fetch_one(&self.runner.db).await.unwrap();
        if matches!(self.case.operation, Operation::Freeze | Operation::FreezeAndUnpublish) {
            self.thaws_at = Some(self.flows.now + FROZEN);
        }
        let calls = self.script.lock().unwrap().commits;
        self.returned = Some(Returned { done, calls, open: u32::try_from(open).unwrap() });
    }

    /// Returns the targets of the case: the post's, and that of a reply to it.
    pub(super) fn keys(&self, reply: Option<TargetKey>) -> Vec<TargetKey> {
        std::iter::once(self.key).chain(reply).collect()
    }

    /// Makes a step during which the operation runs. Returns true with its result if the step has the await point.
    async fn during(
        &mut self,
        mut step: BoxFuture<'static, Made>,
        point: usize,
        is_late: bool,
    ) -> (Made, bool) {
        let points = &mut self.points;
        let made = poll_fn(|cx| match step.as_mut().poll(cx) {
            Poll::Ready(made) => Poll::Ready(Some(made)),
            Poll::Pending if *points == point => Poll::Ready(None),
            Poll::Pending => {
                *points += 1;
                Poll::Pending
            }
        });
        if let Some(made) = made.await {
            return (made, false);
        }
        let operation = self.perform();
        (self.go_on(operation, step, is_late).await, true)
    }

    /// Makes an operation, at whose await point a step is made or begun. Returns true with the step's result if the
    /// operation has the await point.
    async fn around(
        &mut self,
        key: TargetKey,
        mut step: BoxFuture<'static, Made>,
        point: usize,
        pace: Pace,
    ) -> (Made, bool) {
        let mut operation = self.perform();
        let mut passed = 0;
        let done = poll_fn(|cx| match operation.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if passed == point => Poll::Ready(None),
            Poll::Pending => {
                passed += 1;
                Poll::Pending
            }
        });
        if let Some(done) = done.await {
            self.take(done).await;
            self.flows.deliver().await;
            return (step.await, false);
        }
        let db = self.runner.db.clone();
        let made = match pace {
            Pace::Whole => tokio::select! {
                made = step.as_mut() => Some(made),
                // The operation has the lock.
                () = waits_for_lock(&db) => None,
            },
            Pace::Begun | Pace::Called => self.advance_step(key, &mut step, pace).await,
        };
        let Some(made) = made else { return (self.go_on(operation, step, false).await, true) };
        let done = operation.await;
        self.take(done).await;
        (made, true)
    }

    /// Lets the operation end, and then the step that is held; both, if the operation waits for the step's lock.
    async fn go_on(
        &mut self,
        mut operation: LocalBoxFuture<'static, Done>,
        step: BoxFuture<'static, Made>,
        is_late: bool,
    ) -> Made {
        let db = self.runner.db.clone();
        let done = tokio::select! {
            done = operation.as_mut() => Some(done),
            () = waits_for_lock(&db) => None,
        };
        match done {
            Some(done) => {
                self.take(done).await;
                if !is_late {
                    self.flows.deliver().await;
                }
                step.await
            }
            None => {
                let (done, made) = futures::join!(operation, step);
                self.take(done).await;
                made
            }
        }
    }

    /// Advances a step until it is where its pace says, or waits for a lock. Returns its result if it ends before.
    async fn advance_step(
        &self,
        key: TargetKey,
        step: &mut BoxFuture<'static, Made>,
        pace: Pace,
    ) -> Option<Made> {
        let calls = self.script.lock().unwrap().commits;
        let (fence, _) = held(&self.runner.db, key).await;
        loop {
            if let Poll::Ready(made) = poll_fn(|cx| Poll::Ready(step.as_mut().poll(cx))).await {
                return Some(made);
            }
            let (now, is_blocked) = held(&self.runner.db, key).await;
            let is_there = match pace {
                Pace::Whole => false,
                Pace::Begun => now > fence,
                Pace::Called => self.script.lock().unwrap().commits > calls,
            };
            if is_there || is_blocked {
                return None;
            }
        }
    }
}

/// Returns the fence of a target, and whether a connection waits for a lock.
async fn held(db: &Pool, key: TargetKey) -> (i32, bool) {
    let query = sqlx::query(
        "select coalesce((select fence from targets where id = $1), 0) as fence, exists (
           select from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock') as is_blocked",
    );
    let row = query.bind(key.target.0).fetch_one(db).await.unwrap();
    (row.get("fence"), row.get("is_blocked"))
}

impl Neighbor {
    /// Connects the account for another organization, and drafts a post to it.
    async fn move_in(runner: &Runner, network_id: &str) -> Self {
        let org = organizations::create(&runner.db, "Neighbor").await.unwrap();
        let owner = Owner { org, mode: Mode::Live };
        let account = runner.connect_for(owner, network_id).await;
        let draft = new_post(account, vec![Container::new(0, "a draft".to_owned(), Vec::new())]);
        create(&runner.db, owner, NewPost { is_draft: true, ..draft }).await;
        Self { account, digest: Self::digest(&runner.db, account).await }
    }

    /// Returns a digest of its rows.
    pub(super) async fn digest(db: &Pool, account: AccountId) -> String {
        sqlx::query_scalar(
            "select coalesce(md5(string_agg(concat_ws('|', a, t, p, c), '|')), 'gone')
             from accounts a join targets t on t.account_id = a.id join posts p on p.id = t.post_id
               join containers c on c.post_id = p.id
             where a.id = $1",
        )
        .bind(account.0)
        .fetch_one(db)
        .await
        .unwrap()
    }
}
