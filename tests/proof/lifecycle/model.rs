//! The reference model: what the contract says about posts, without the product's code.
//!
//! The service works while the model waits, so the model is not deterministic: for each target it knows the
//! ends that are possible, and an answer or an observed row narrows them down. Where the contract leaves no
//! choice, one end is possible.

use super::steps::{Accounts, Call, Draft, Fault, Plan};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Final statuses of a target.
const TERMINAL: [&str; 3] = ["published", "dead", "canceled"];
/// Year of [`Plan::Far`].
const FAR: i32 = 2040;
/// Statuses of a post that can be edited.
const EDITABLE: [&str; 3] = ["draft", "scheduled", "queued"];

/// Why a target ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The platform accepted it.
    Published,
    /// The platform refused the content.
    Rejected,
    /// The platform refused the token, and no fresh one was to be had.
    TokenRefused,
    /// An operator stopped its workflow.
    Stopped,
    /// Its post was deleted before it was published.
    Deleted,
    /// Its account was disconnected before it was published.
    Disconnected,
    /// A call was begun, and nobody can say any more whether it published.
    Unknown,
    /// The post that it replies to was not published to its account, or is there no more.
    NoParent,
}

impl End {
    /// Returns whether a target ended for this reason, and says so.
    fn explains(self, target: &TargetRow) -> bool {
        let (code, message) = (target.error_code.as_deref(), target.error_message.as_deref());
        let says = |part: &str| message.is_some_and(|message| message.contains(part));
        match self {
            Self::Published => target.status == "published" && target.platform_post_id.is_some(),
            Self::Rejected => target.status == "dead" && code == Some("rejected_400") && message.is_some(),
            Self::TokenRefused => {
                target.status == "dead" && code == Some("token_expired") && message.is_some()
            }
            Self::Stopped => target.status == "dead" && code.is_some() && says("an operator stopped it"),
            Self::Deleted => target.status == "canceled" && message == Some("the post was deleted"),
            Self::Disconnected => {
                target.status == "canceled" && message == Some("the account was disconnected")
                    || target.status == "dead" && code.is_some() && says("not connected any more")
            }
            Self::Unknown => target.status == "dead" && code.is_some() && says("it may be live"),
            Self::NoParent => {
                target.status == "dead" && code == Some("rejected_422") && says("the post that it replies to")
            }
        }
    }
}

/// Stage of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A draft, or scheduled for a time far away: nothing happens unless somebody acts.
    Waiting,
    /// Publishing begins, or has begun.
    Racing,
    /// Every target has ended.
    Ended,
}

/// A target: one account of a post.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Index of the account.
    pub(super) account: usize,
    /// Possible ends.
    pub(super) ends: BTreeSet<End>,
    /// The round that it is in: how often its post had been retried when it was.
    pub(super) round: usize,
    /// Rounds in which it ended dead and was retried later.
    pub(super) died_in: Vec<usize>,
    /// Rounds in which it ended without its reply and was retried later.
    pub(super) torn_in: Vec<usize>,
    /// True once its posts were deleted from their platform.
    pub(super) is_unpublished: bool,
}

/// A post.
#[derive(Clone, Debug)]
pub(super) struct Post {
    /// Id of the post.
    pub(super) id: String,
    /// When it is to be published.
    pub(super) plan: Plan,
    /// Stage of the post.
    pub(super) stage: Stage,
    /// True once it was deleted.
    pub(super) is_deleted: bool,
    /// Number of its text; each create and each edit with a text has its own.
    pub(super) text: usize,
    /// Behavior of the platform for the text.
    pub(super) fault: Fault,
    /// True if the text has a reply.
    pub(super) has_reply: bool,
    /// The slot that it holds, with the index of the account.
    pub(super) slot: Option<(usize, DateTime<Utc>)>,
    /// Its targets.
    pub(super) targets: Vec<Target>,
    /// Index of the post that it replies to.
    pub(super) parent: Option<usize>,
    /// True once it was a draft or had other accounts, so that a reply may have found nothing to wait for.
    pub(super) was_withdrawn: bool,
    /// How often its dead targets were retried.
    pub(super) rounds: usize,
    /// True if it had failed before it was retried.
    pub(super) has_failed: bool,
    /// Final status; checked to stay.
    pub(super) ended_as: Option<String>,
    /// True if the second webhook endpoint was paused for the post's whole life, false if it never was; `None` if
    /// that changed.
    pub(super) is_paused: Option<bool>,
}

/// An account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Id of the account.
    pub(super) id: String,
    /// False while it is disconnected.
    pub(super) is_connected: bool,
    /// True if its grant may be lost.
    pub(super) is_doubtful: bool,
}

/// The model of an organization.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Posts, in the order of their creation.
    pub(super) posts: Vec<Post>,
    /// Accounts.
    pub(super) accounts: Vec<Account>,
    /// The next times of the organization's slots.
    pub(super) slots: Vec<DateTime<Utc>>,
    /// True while the second webhook endpoint is paused.
    pub(super) is_paused: bool,
    /// Number of accounts disconnected so far.
    pub(super) disconnected: usize,
    /// True while two calls are made at the same moment.
    pub(super) is_contended: bool,
    keys: BTreeMap<u8, usize>,
}

/// An answer of the API.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// HTTP status.
    pub(super) status: u16,
    /// True if it has the header of a replay.
    pub(super) is_replay: bool,
    /// Body.
    pub(super) body: Value,
    /// Index of the account whose queue the request named.
    pub(super) queue: Option<usize>,
}

/// A post as stored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    /// Id of the post.
    pub(super) id: String,
    /// Status of the post.
    pub(super) status: String,
    /// True if it was deleted.
    pub(super) is_deleted: bool,
    /// True for a draft.
    pub(super) is_draft: bool,
    /// Text of its main container.
    pub(super) content: String,
    /// Year of its time.
    pub(super) year: Option<i32>,
    /// True if it holds a slot.
    pub(super) is_slot: bool,
    /// Its targets.
    pub(super) targets: Vec<TargetRow>,
}

/// A target as stored.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TargetRow {
    /// Id of the target.
    pub(super) id: String,
    /// Id of its account.
    pub(super) account_id: String,
    /// Status of the target.
    pub(super) status: String,
    /// Platform's id of the post.
    pub(super) platform_post_id: Option<String>,
    /// Code of the failure.
    pub(super) error_code: Option<String>,
    /// Message of the failure.
    pub(super) error_message: Option<String>,
    /// True if it is live, and its reply or its address is still to come.
    pub(super) is_due: bool,
    /// True if it is live, and its reply was given up.
    pub(super) is_incomplete: bool,
    /// True if a retry of the post publishes what is missing of it.
    pub(super) is_torn: bool,
    /// True if the next attempt is not due within seconds.
    pub(super) is_parked: bool,
}

/// Result of a check; the error says what broke the contract.
pub(super) type Checked = Result<(), String>;

impl Model {
    /// Returns the model of an organization without posts.
    pub(super) fn new(accounts: Vec<String>, slots: Vec<DateTime<Utc>>) -> Self {
        let accounts = accounts.into_iter();
        let accounts = accounts.map(|id| Account { id, is_connected: true, is_doubtful: false }).collect();
        Self {
            posts: Vec::new(),
            accounts,
            slots,
            is_paused: false,
            disconnected: 0,
            is_contended: false,
            keys: BTreeMap::new(),
        }
    }

    /// Returns a post by the number in a step, which may exceed the posts that there are.
    pub(super) fn post(&self, number: usize) -> Option<&Post> {
        (!self.posts.is_empty()).then(|| &self.posts[number % self.posts.len()])
    }

    fn index(&self, number: usize) -> usize {
        number % self.posts.len()
    }

    /// Checks the answer to a call, and changes the model accordingly. `text` is the number of its text.
    pub(super) fn apply(&mut self, call: &Call, text: usize, answer: &Answer) -> Checked {
        match call {
            Call::Create(draft) => self.create(draft, text, answer),
            Call::Edit { post, text: new, plan, accounts } => {
                let new = new.map(|(fault, has_reply)| (text, fault, has_reply));
                self.edit(self.index(*post), new, *plan, *accounts, answer)
            }
            Call::Delete { post } => self.delete(self.index(*post), answer),
            Call::Retry { post } => self.retry(self.index(*post), answer),
            Call::Disconnect { account } => self.disconnect(*account, answer),
        }
    }

    fn create(&mut self, draft: &Draft, text: usize, answer: &Answer) -> Checked {
        if let Some(first) = draft.key.and_then(|key| self.keys.get(&key)) {
            expect(answer, &[200])?;
            ensure(answer.is_replay, || "a replay says that it is one".to_owned())?;
            let id = &self.posts[*first].id;
            return ensure(answer.body["id"] == id.as_str(), || format!("the key belongs to post {id}"));
        }
        let named: Vec<_> = draft.accounts.indices().collect();
        if named.iter().any(|index| !self.accounts[*index].is_connected) {
            return expect(answer, &[422]);
        }
        let parent = draft.reply_to.map(|number| self.index(number));
        match parent.map(|parent| self.takes_replies(parent, &named, draft.plan == Plan::Draft)) {
            Some(Some(false)) => return expect(answer, &[422]),
            Some(None) if answer.status == 422 => return Ok(()),
            _ => {}
        }
        expect(answer, &[201])?;
        ensure(!answer.is_replay, || "a new post is no replay".to_owned())?;
        let slot = match draft.plan {
            Plan::Slot => Some((named[0], self.next_slot(named[0], None, answer))),
            _ => None,
        };
        check_plan(answer, draft.plan, slot)?;
        let shown = answer.body["targets"].as_array().map_or(0, Vec::len);
        ensure(shown == named.len(), || format!("{shown} targets for {} accounts", named.len()))?;
        if let Some(key) = draft.key {
            self.keys.insert(key, self.posts.len());
        }
        let targets: Vec<_> = named.into_iter().map(|account| self.target(account, draft.fault)).collect();
        let targets =
            if parent.is_some() { targets.into_iter().map(Target::replying).collect() } else { targets };
        self.posts.push(Post {
            id: answer.body["id"].as_str().unwrap_or_default().to_owned(),
            plan: draft.plan,
            stage: stage_of(draft.plan),
            is_deleted: false,
            text,
            fault: draft.fault,
            has_reply: draft.has_reply,
            slot,
            targets,
            parent,
            was_withdrawn: draft.plan == Plan::Draft,
            rounds: 0,
            has_failed: false,
            ended_as: None,
            is_paused: Some(self.is_paused),
        });
        Ok(())
    }

    /// The target of an account, as it is when a post is created or edited.
    fn target(&self, account: usize, fault: Fault) -> Target {
        let Account { is_connected, is_doubtful, .. } = self.accounts[account];
        if !is_connected {
            return Target::new(account, [End::Disconnected]);
        }
        let end = match fault {
            Fault::Rejected => End::Rejected,
            Fault::TokenRefused => End::TokenRefused,
            _ => End::Published,
        };
        let doubt = is_doubtful.then_some([End::TokenRefused, End::Unknown]);
        Target::new(account, doubt.into_iter().flatten().chain([end]))
    }

    /// Returns whether accounts can reply to a post; `None` if that depends on how far it is.
    fn takes_replies(&self, parent: usize, accounts: &[usize], is_draft: bool) -> Option<bool> {
        let post = &self.posts[parent];
        if post.is_deleted || post.plan == Plan::Draft && post.stage == Stage::Waiting && !is_draft {
            return Some(false);
        }
        let found = accounts.iter().map(|account| {
            let target = post.targets.iter().find(|target| target.account == *account);
            let Some(target) = target.filter(|target| !target.is_unpublished) else { return Some(false) };
            let may_be_live = target.ends.contains(&End::Published);
            match post.stage {
                // It waits for its time, or its account was disconnected.
                Stage::Waiting => Some(target.ends != BTreeSet::from([End::Disconnected])),
                Stage::Racing => None,
                Stage::Ended if target.ends == BTreeSet::from([End::Published]) => Some(true),
                Stage::Ended if may_be_live => None,
                Stage::Ended => Some(false),
            }
        });
        let found: Vec<_> = found.collect();
        if found.contains(&Some(false)) {
            Some(false)
        } else if found.contains(&None) {
            None
        } else {
            Some(true)
        }
    }

    /// The slot that a call gets: the account's first one that no post holds, other than the post itself. A call
    /// that fails at the same moment may have kept it from others.
    fn next_slot(&self, account: usize, post: Option<usize>, answer: &Answer) -> DateTime<Utc> {
        let held = self.posts.iter().enumerate().filter(|(index, other)| {
            Some(*index) != post && !other.is_deleted && other.ended_as.as_deref() != Some("canceled")
        });
        let held: BTreeSet<_> = held
            .filter_map(|(_, other)| other.slot)
            .filter(|(of, _)| *of == account)
            .map(|(_, at)| at)
            .collect();
        let mut open = self.slots.iter().copied().filter(|slot| !held.contains(slot));
        let first = open.next().expect("more slots than posts");
        let second =
            open.next().filter(|slot| self.is_contended && answer.body["scheduled_at"] == text(*slot));
        second.unwrap_or(first)
    }

    fn edit(
        &mut self,
        index: usize,
        text: Option<(usize, Fault, bool)>,
        plan: Option<Plan>,
        accounts: Option<Accounts>,
        answer: &Answer,
    ) -> Checked {
        let post = &self.posts[index];
        if post.is_deleted {
            return expect(answer, &[404]);
        }
        let after = plan.unwrap_or(post.plan);
        let own = || post.targets.iter().map(|target| target.account).collect::<Vec<_>>();
        let targeted = accounts.map_or_else(own, |accounts| accounts.indices().collect());
        let is_connected = |account: &usize| self.accounts[*account].is_connected;
        // Accounts that the body names, and those of a post that moves to a slot, must be connected.
        let is_named = accounts.is_some() || plan == Some(Plan::Slot);
        let is_refused = is_named && !targeted.iter().all(is_connected)
            || after != Plan::Draft && !targeted.iter().any(is_connected)
            // Another edit may have replaced the accounts at the same moment.
            || answer.queue.is_some_and(|queue| !targeted.contains(&queue));
        // A target that ended before its post was published may be the only one left.
        let may_have_ended = post
            .targets
            .iter()
            .any(|target| target.ends.contains(&End::Stopped) || target.ends.contains(&End::NoParent));
        let allowed: &[u16] = match (post.stage, is_refused) {
            (Stage::Racing, false) if may_have_ended => &[200, 409, 422],
            (Stage::Ended, _) => &[409],
            (Stage::Waiting, true) => &[422],
            (Stage::Waiting, false) => &[200],
            (Stage::Racing, true) => &[409, 422],
            (Stage::Racing, false) => &[200, 409],
        };
        // A reply is checked against the post that it replies to once more.
        let can_reply = post
            .parent
            .map(|parent| self.takes_replies(parent, &targeted, after == Plan::Draft) == Some(true));
        if can_reply == Some(false) && answer.status == 422 {
            return Ok(());
        }
        expect(answer, allowed)?;
        if answer.status != 200 {
            return Ok(());
        }
        let slot = match plan {
            Some(Plan::Slot) => {
                let queue = answer.queue.expect("the request named a queue");
                Some((queue, self.next_slot(queue, Some(index), answer)))
            }
            // A draft keeps its time, and with it its slot.
            None | Some(Plan::Draft) => post.slot.filter(|(account, _)| targeted.contains(account)),
            Some(_) => None,
        };
        check_plan(answer, after, slot)?;
        let (number, fault, has_reply) = text.unwrap_or((post.text, post.fault, post.has_reply));
        // An operator who cancels while the post is edited may stop it in its new form.
        let is_stopped = post.stage == Stage::Racing
            && post.targets.iter().any(|target| target.ends.contains(&End::Stopped));
        let mut targets: Vec<_> = targeted.into_iter().map(|account| self.target(account, fault)).collect();
        if post.parent.is_some() {
            targets = targets.into_iter().map(Target::replying).collect();
        }
        let was_withdrawn = after == Plan::Draft || accounts.is_some();
        if is_stopped {
            targets.iter_mut().for_each(|target| target.ends.extend([End::Stopped]));
        }
        let post = &mut self.posts[index];
        post.stage = if is_stopped { Stage::Racing } else { stage_of(after) };
        (post.plan, post.text, post.fault, post.has_reply) = (after, number, fault, has_reply);
        (post.slot, post.targets) = (slot, targets);
        post.was_withdrawn |= was_withdrawn;
        Ok(())
    }

    /// Checks the answer to a retry of a post whose targets have ended as in `row`.
    pub(super) fn revive(&mut self, number: usize, row: &Row, answer: &Answer) -> Checked {
        let index = self.index(number);
        let post = &self.posts[index];
        if post.is_deleted {
            return expect(answer, &[404]);
        }
        let dead = post.targets.iter().enumerate().filter(|(_, target)| {
            self.stored(row, target).status == "dead" && self.accounts[target.account].is_connected
        });
        let dead: Vec<_> =
            dead.map(|(at, target)| (at, self.target(target.account, post.fault).ends)).collect();
        let torn = post.targets.iter().enumerate().filter(|(_, target)| {
            self.stored(row, target).is_torn && self.accounts[target.account].is_connected
        });
        let torn: Vec<_> = torn.map(|(at, _)| at).collect();
        if dead.is_empty() && torn.is_empty() {
            return expect(answer, &[409]);
        }
        expect(answer, &[202])?;
        let is_paused = self.is_paused;
        let post = &mut self.posts[index];
        post.rounds += 1;
        post.has_failed |= row.status == "failed";
        for at in torn {
            let target = &mut post.targets[at];
            target.torn_in.push(target.round);
            target.round = post.rounds;
        }
        for (at, ends) in dead {
            let target = &mut post.targets[at];
            target.died_in.push(target.round);
            target.round = post.rounds;
            let is_in_doubt = target.ends.contains(&End::Unknown).then_some(End::Unknown);
            let has_no_parent = post.parent.map(|_| End::NoParent);
            target.ends = ends.into_iter().chain(is_in_doubt).chain(has_no_parent).collect();
        }
        (post.stage, post.ended_as) = (Stage::Racing, None);
        post.is_paused = post.is_paused.filter(|was| *was == is_paused);
        Ok(())
    }

    /// Checks the answer to the deletion of a post's first target, which is as in `row`, from its platform.
    pub(super) fn unpublish(&mut self, number: usize, row: &Row, answer: &Answer) -> Checked {
        let index = self.index(number);
        let post = &self.posts[index];
        if post.is_deleted {
            return expect(answer, &[404]);
        }
        let first = &row.targets[0];
        let accounts = &self.accounts;
        let at = post.targets.iter().position(|target| accounts[target.account].id == first.account_id);
        let at = at.expect("compared before");
        let Account { is_connected, is_doubtful, .. } = accounts[post.targets[at].account];
        match first.status.as_str() {
            "published" if post.targets[at].is_unpublished => expect(answer, &[200])?,
            "published" if !is_connected => return expect(answer, &[404, 422]),
            "published" if is_doubtful && answer.status != 200 => return expect(answer, &[422, 503]),
            "published" => expect(answer, &[200])?,
            _ => return expect(answer, &[409]),
        }
        self.posts[index].targets[at].is_unpublished = true;
        Ok(())
    }

    /// Returns whether a retry of a post is compared: all of it has ended, and its time has come.
    pub(super) fn is_retried(&self, number: usize) -> bool {
        let post = &self.posts[self.index(number)];
        post.stage == Stage::Ended && stage_of(post.plan) == Stage::Racing
    }

    /// Checks the ends of a reply's targets against those that they reply to.
    pub(super) fn check_reply(&self, row: &Row, rows: &[Row]) -> Checked {
        let Some(post) = self.posts.iter().find(|post| post.id == row.id) else { return Ok(()) };
        let Some(parent) = post.parent.map(|parent| &self.posts[parent]) else { return Ok(()) };
        let above = rows.iter().find(|row| row.id == parent.id);
        for target in &row.targets {
            let of =
                |above: &Row| above.targets.iter().find(|one| one.account_id == target.account_id).cloned();
            let live = above.and_then(of).filter(|above| above.status == "published");
            let was_dead = parent.rounds > 0;
            let is_gone = parent.is_deleted
                || parent.was_withdrawn
                || was_dead
                || live.is_none()
                || parent.targets.iter().any(|target| target.is_unpublished);
            let fail = |why: &str| Err(format!("{why}: {target:#?} of {row:#?}, above it {above:#?}"));
            if target.status == "published" && live.is_none() {
                return fail("a reply is live below what is not");
            }
            if End::NoParent.explains(target) && !is_gone {
                return fail("a reply found nothing to reply to");
            }
        }
        Ok(())
    }

    /// Returns whether a post ends by itself: a reply does when what it replies to does, or is there no more.
    pub(super) fn must_end(&self, post: &Post) -> bool {
        let is_answered = |parent: &Post| {
            parent.stage == Stage::Ended
                || parent.is_deleted
                || parent.stage == Stage::Waiting && parent.plan == Plan::Draft
                || self.must_end(parent)
        };
        post.ends_itself() && post.parent.is_none_or(|parent| is_answered(&self.posts[parent]))
    }

    /// Returns the numbers of the posts that wait although others reply to them.
    pub(super) fn awaited(&self) -> Vec<usize> {
        let is_awaited = |index: &usize| {
            let post = &self.posts[*index];
            post.stage == Stage::Waiting && self.posts.iter().any(|other| other.parent == Some(*index))
        };
        (0..self.posts.len()).filter(is_awaited).collect()
    }

    fn delete(&mut self, index: usize, answer: &Answer) -> Checked {
        let post = &mut self.posts[index];
        if post.is_deleted {
            return expect(answer, &[404]);
        }
        expect(answer, &[200])?;
        ensure(answer.body["canceled"] == true, || "a deletion says so".to_owned())?;
        post.is_deleted = true;
        match post.stage {
            Stage::Waiting => post.end(End::Deleted, "canceled"),
            Stage::Racing => post.may_end([End::Deleted, End::Unknown]),
            Stage::Ended => {}
        }
        Ok(())
    }

    fn retry(&self, index: usize, answer: &Answer) -> Checked {
        let post = &self.posts[index];
        // An edit at the same moment may have removed the target.
        if self.is_contended && answer.status == 404 {
            return Ok(());
        }
        expect(
            answer,
            match post {
                Post { is_deleted: true, .. } => &[404],
                Post { stage: Stage::Racing, .. } => &[202, 409],
                // Its reply may wait for an attempt of its own.
                Post { has_reply: true, stage: Stage::Ended, .. } => &[202, 409],
                _ => &[409],
            },
        )
    }

    fn disconnect(&mut self, account: usize, answer: &Answer) -> Checked {
        if !self.accounts[account].is_connected {
            return expect(answer, &[404]);
        }
        expect(answer, &[200])?;
        self.accounts[account].is_connected = false;
        self.disconnected += 1;
        for post in &mut self.posts {
            let Some(target) = post.targets.iter_mut().find(|target| target.account == account) else {
                continue;
            };
            match post.stage {
                Stage::Waiting => target.ends = BTreeSet::from([End::Disconnected]),
                Stage::Racing => target.ends.extend([End::Disconnected, End::TokenRefused, End::Unknown]),
                Stage::Ended => {}
            }
            let is_lost = |target: &Target| target.ends == BTreeSet::from([End::Disconnected]);
            if post.stage == Stage::Waiting && post.plan != Plan::Draft && post.targets.iter().all(is_lost) {
                post.end(End::Disconnected, "failed");
            }
        }
        Ok(())
    }

    /// An account was connected again, with a new grant.
    pub(super) fn connect(&mut self, account: usize) {
        self.accounts[account].is_connected = true;
        self.accounts[account].is_doubtful = false;
        // A target that was about to fail may be published now.
        let ends: Vec<_> = self.posts.iter().map(|post| self.target(account, post.fault).ends).collect();
        for (post, ends) in self.posts.iter_mut().zip(ends) {
            let open = post.targets.iter_mut().filter(|target| target.account == account);
            open.filter(|_| post.stage == Stage::Racing).for_each(|target| target.ends.extend(ends.clone()));
        }
    }

    /// The grant of an account may be lost from now on.
    pub(super) fn doubt(&mut self, account: usize) {
        self.accounts[account].is_doubtful = true;
        for post in self.posts.iter_mut().filter(|post| post.stage != Stage::Ended) {
            let targets = post.targets.iter_mut();
            let of = targets
                .filter(|target| target.account == account && target.ends != [End::Disconnected].into());
            of.for_each(|target| target.ends.extend([End::TokenRefused, End::Unknown]));
        }
    }

    /// The second webhook endpoint was paused or resumed.
    pub(super) fn pause(&mut self, is_paused: bool) {
        if self.is_paused != is_paused {
            let open = self.posts.iter_mut().filter(|post| post.stage != Stage::Ended);
            open.for_each(|post| post.is_paused = None);
        }
        self.is_paused = is_paused;
    }

    /// Checks a stored post against its stage: one that waits has not begun, one that ended stays as it is, and
    /// one that has just ended has done so for a possible reason.
    pub(super) fn observe(&mut self, row: &Row) -> Checked {
        let post = self.posts.iter().position(|post| post.id == row.id);
        let index = post.ok_or_else(|| format!("post {} was created by no call", row.id))?;
        let post = &self.posts[index];
        let fail = |why: String| Err(format!("{why}: {row:#?} is not {post:#?}"));
        if row.is_deleted != post.is_deleted {
            return fail("deleted".to_owned());
        }
        if !self.is_as_written(row) {
            return fail("other text or accounts".to_owned());
        }
        let is_over = is_over(row);
        match post.stage {
            Stage::Racing if !is_over => return Ok(()),
            Stage::Waiting => {
                let open = |target: &Target| target.ends != BTreeSet::from([End::Disconnected]);
                for target in &post.targets {
                    let stored = self.stored(row, target);
                    let is_right = if open(target) {
                        ["pending", "queued"].contains(&stored.status.as_str())
                    } else {
                        stored.status == "canceled"
                    };
                    if !is_right {
                        return fail("a target of a post that waits".to_owned());
                    }
                }
                let status = status_of(post.plan);
                return if row.status == status { Ok(()) } else { fail(format!("status, not {status}")) };
            }
            Stage::Racing | Stage::Ended => {}
        }
        if let Some(stored) = self.unexplained(row, post) {
            return fail(format!("end of target {}", stored.id));
        }
        if post.ended_as.as_ref().is_some_and(|status| *status != row.status) {
            return fail("changed after its end".to_owned());
        }
        let doubtful = self.posts[index].targets.iter().filter(|target| {
            self.posts[index].fault == Fault::TokenRefused && self.stored(row, target).status == "dead"
        });
        let doubtful: Vec<_> = doubtful.map(|target| target.account).collect();
        let post = &self.posts[index];
        let explain = |target: &Target| {
            let stored = self.stored(row, target);
            target.ends.iter().copied().filter(|end| end.explains(stored)).collect::<BTreeSet<_>>()
        };
        let narrowed: Vec<_> = post.targets.iter().map(explain).collect();
        let post = &mut self.posts[index];
        post.targets.iter_mut().zip(narrowed).for_each(|(target, ends)| target.ends = ends);
        if post.stage == Stage::Racing {
            post.stage = Stage::Ended;
            post.ended_as = Some(row.status.clone());
            doubtful.into_iter().for_each(|account| self.doubt(account));
        }
        Ok(())
    }

    /// Returns whether a stored post is what the last call wrote.
    fn is_as_written(&self, row: &Row) -> bool {
        let Some(post) = self.posts.iter().find(|post| post.id == row.id) else { return false };
        let accounts: BTreeSet<_> = row.targets.iter().map(|target| target.account_id.as_str()).collect();
        let expected = post.targets.iter().map(|target| self.accounts[target.account].id.as_str());
        // A draft keeps the time that it had.
        let is_planned = match post.plan {
            Plan::Draft => row.is_draft,
            Plan::Now => !row.is_draft && row.year.is_none(),
            Plan::Far => !row.is_draft && row.year == Some(FAR),
            Plan::Soon => !row.is_draft && row.year.is_some_and(|year| year < FAR) && !row.is_slot,
            Plan::Slot => !row.is_draft && row.year.is_some_and(|year| year < FAR),
        };
        // A slot is released with the post's end.
        let has_slot = post.stage != Stage::Waiting || row.is_slot == post.slot.is_some();
        row.content.starts_with(&format!("Text {}.", post.text))
            && is_planned
            && has_slot
            && accounts == expected.collect()
    }

    /// Returns whether a stored post is what the last calls wrote, and ended as they make it end.
    pub(super) fn is_as_ended(&self, row: &Row) -> bool {
        let ended = |post: &&Post| post.id == row.id && post.stage == Stage::Ended;
        self.is_as_written(row)
            && self.posts.iter().find(ended).is_none_or(|post| self.unexplained(row, post).is_none())
    }

    /// Returns a target of a stored post that ended in none of the modeled ways.
    fn unexplained<'a>(&self, row: &'a Row, post: &Post) -> Option<&'a TargetRow> {
        let mut targets = post.targets.iter().map(|target| (&target.ends, self.stored(row, target)));
        let found = targets.find(|(ends, stored)| !ends.iter().any(|end| end.explains(stored)));
        found.map(|(_, stored)| stored)
    }

    fn stored<'a>(&self, row: &'a Row, target: &Target) -> &'a TargetRow {
        let id = &self.accounts[target.account].id;
        row.targets.iter().find(|stored| stored.account_id == *id).expect("compared before")
    }

    /// Ends of a racing post's targets that an operator made possible; of one target, or of all.
    pub(super) fn stop(&mut self, number: usize, target: Option<usize>) {
        let index = self.index(number);
        let targets = &mut self.posts[index].targets;
        let count = targets.len();
        let meant = targets.iter_mut().enumerate();
        let meant = meant.filter(|(index, _)| target.is_none_or(|target| target % count == *index));
        meant.for_each(|(_, target)| target.ends.extend([End::Stopped, End::Unknown]));
    }

    /// An operator canceled the workflow of a post that waited, and the post ended.
    pub(super) fn end_stopped(&mut self, number: usize) {
        let index = self.index(number);
        self.posts[index].end(End::Stopped, "failed");
    }
}

impl Target {
    fn new(account: usize, ends: impl IntoIterator<Item = End>) -> Self {
        let ends = ends.into_iter().collect();
        Self { account, ends, round: 0, died_in: Vec::new(), torn_in: Vec::new(), is_unpublished: false }
    }

    /// A target of a reply.
    fn replying(mut self) -> Self {
        if self.ends != BTreeSet::from([End::Disconnected]) {
            self.ends.insert(End::NoParent);
        }
        self
    }
}

impl Post {
    /// Returns true if it ends by itself. One that was edited to a later time may also be stopped by an operator who
    /// canceled it in its earlier form.
    fn ends_itself(&self) -> bool {
        self.stage == Stage::Racing && stage_of(self.plan) == Stage::Racing
    }

    /// Ends all targets that were open.
    fn end(&mut self, end: End, status: &str) {
        for target in &mut self.targets {
            if target.ends != BTreeSet::from([End::Disconnected]) {
                target.ends = BTreeSet::from([end]);
            }
        }
        self.stage = Stage::Ended;
        self.ended_as = Some(status.to_owned());
    }

    fn may_end(&mut self, ends: impl IntoIterator<Item = End> + Clone) {
        self.targets.iter_mut().for_each(|target| target.ends.extend(ends.clone()));
    }
}

/// Returns whether a stored post and all its targets have ended.
pub(super) fn is_over(row: &Row) -> bool {
    let has_ended =
        |target: &TargetRow| TERMINAL.contains(&target.status.as_str()) && (row.is_deleted || !target.is_due);
    row.targets.iter().all(has_ended)
        && !EDITABLE.contains(&row.status.as_str())
        && row.status != "publishing"
}

/// Returns whether the contract allows a change of a target's status. `post` is the post's status.
pub(super) fn target_may_change(before: Option<&str>, after: &str, post: &str) -> bool {
    let is_editable = EDITABLE.contains(&post);
    match (before, after) {
        (None, "pending") => true,
        (Some("pending"), "queued") => true,
        // An edit: to a draft, or with the account connected again.
        (Some("queued" | "canceled"), "pending") => is_editable,
        (Some("pending" | "queued"), "published" | "failed" | "dead" | "canceled") => true,
        (Some("failed"), "published" | "dead" | "canceled") => true,
        // A retry.
        (Some("dead"), "queued") => !is_editable,
        _ => false,
    }
}

/// Returns whether the contract allows a change of a post's status.
pub(super) fn post_may_change(before: Option<&str>, after: &str) -> bool {
    match (before, after) {
        (None, "draft" | "scheduled" | "queued") => true,
        (Some("draft" | "scheduled" | "queued"), "draft" | "scheduled" | "queued" | "canceled") => true,
        // `failed` without an attempt: every account was disconnected, or an operator stopped it.
        (Some("scheduled" | "queued"), "publishing" | "failed") => true,
        (Some("publishing"), "published" | "partial" | "failed") => true,
        // A retry.
        (Some("partial" | "failed"), "publishing") => true,
        _ => false,
    }
}

/// Returns whether a post's status agrees with its targets'.
pub(super) fn rolls_up(post: &str, targets: &[String]) -> bool {
    let count = |status: &str| targets.iter().filter(|target| *target == status).count();
    let (live, canceled) = (count("published"), count("canceled"));
    let open = targets.len() - live - canceled - count("dead");
    match post {
        "draft" => open + canceled == targets.len(),
        // Before an attempt, a target ends by a disconnection or by an operator who stops one after the other.
        "scheduled" | "queued" => open > 0 && live == 0,
        "publishing" => open > 0,
        "canceled" => canceled == targets.len(),
        "published" => live == targets.len(),
        "partial" => open == 0 && live > 0 && live < targets.len(),
        "failed" => open == 0 && live == 0,
        _ => false,
    }
}

fn status_of(plan: Plan) -> &'static str {
    match plan {
        Plan::Draft => "draft",
        Plan::Now => "queued",
        Plan::Far | Plan::Soon | Plan::Slot => "scheduled",
    }
}

fn stage_of(plan: Plan) -> Stage {
    match plan {
        Plan::Draft | Plan::Far | Plan::Slot => Stage::Waiting,
        Plan::Now | Plan::Soon => Stage::Racing,
    }
}

fn check_plan(answer: &Answer, plan: Plan, slot: Option<(usize, DateTime<Utc>)>) -> Checked {
    let status = status_of(plan);
    ensure(answer.body["status"] == status, || format!("the status is {status}"))
        .and_then(|()| match slot {
            Some((_, at)) if plan == Plan::Slot => {
                let at = text(at);
                ensure(answer.body["scheduled_at"] == at, || format!("the next open slot is {at}"))
            }
            _ => Ok(()),
        })
        .map_err(|error| format!("{error}: {:#}", answer.body))
}

/// Returns a time as the API writes it.
fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Fails unless an answer has one of these statuses.
pub(super) fn expect(answer: &Answer, allowed: &[u16]) -> Checked {
    ensure(allowed.contains(&answer.status), || {
        format!("status {} instead of {allowed:?}: {:#}", answer.status, answer.body)
    })
}

/// Fails with a rule that is broken.
pub(super) fn ensure(is_right: bool, rule: impl FnOnce() -> String) -> Checked {
    if is_right { Ok(()) } else { Err(rule()) }
}
