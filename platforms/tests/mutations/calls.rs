//! The calls of an adapter, recorded against the sandbox.

use super::stage::{Exchange, Stage};
use crate::fixtures::{Actor, Kept, Named, clock, pause};
use chrono::TimeDelta;
use platforms::{
    Checkpoint, Committed, Content, Edit, Grant, Identity, Located, MediaKind, Page, Prepared,
    PublishRequest, Replies, Result, SelectOption,
};
use serde_json::json;

/// A call of an adapter, with its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Exchange(String),
    Refresh,
    Revoke,
    Identities,
    Health,
    Prepare(PublishRequest, Checkpoint),
    Commit(PublishRequest, Checkpoint),
    Locate(PublishRequest, Checkpoint),
    Permalink(String),
    Metrics(String),
    History(Option<String>),
    Options(&'static str, Option<String>),
    Delete(String),
    Edit(String, Edit),
}

impl Call {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Exchange(_) => "exchange",
            Self::Refresh => "refresh",
            Self::Revoke => "revoke",
            Self::Identities => "identities",
            Self::Health => "health",
            Self::Prepare(..) => "prepare",
            Self::Commit(..) => "commit",
            Self::Locate(..) => "locate",
            Self::Permalink(_) => "permalink",
            Self::Metrics(_) => "metrics",
            Self::History(_) => "history",
            Self::Options(..) => "options",
            Self::Delete(_) => "delete",
            Self::Edit(..) => "edit",
        }
    }

    /// Makes the call.
    pub(crate) async fn run(&self, actor: &Actor) -> Result<Outcome> {
        let keep = Kept::default();
        let cx = actor.session(&keep);
        let (platform, publisher) = (actor.platform, actor.platform.publisher);
        Ok(match self {
            Self::Exchange(code) => Outcome::Grant(actor.exchange(code).await?),
            Self::Refresh => Outcome::Grant(publisher.refresh(&cx).await?),
            Self::Revoke => Outcome::Done(publisher.revoke(&cx).await?),
            Self::Identities => Outcome::Identities(publisher.identities(&cx).await?),
            Self::Health => Outcome::Done(publisher.health(&cx).await?),
            Self::Prepare(post, at) => Outcome::Prepared(publisher.prepare(&cx, post, at.clone()).await?),
            Self::Commit(post, at) => Outcome::Committed(publisher.commit(&cx, post, at).await?),
            Self::Locate(post, at) => Outcome::Located(publisher.locate(&cx, post, at).await?),
            Self::Permalink(id) => Outcome::Url(publisher.permalink(&cx, id).await?),
            Self::Metrics(id) => {
                let analytics = platform.analytics.expect("recorded only if the platform has it");
                Outcome::Done(analytics.metrics(&cx, id).await.map(drop)?)
            }
            Self::History(cursor) => {
                let history = platform.history.expect("recorded only if the platform has it");
                Outcome::Page(history.page(&cx, cursor.as_deref()).await?)
            }
            Self::Options(kind, parent) => {
                let options = platform.options.expect("recorded only if the platform has it");
                Outcome::Options(options.options(&cx, kind, parent.as_deref()).await?)
            }
            Self::Delete(id) => {
                let deletion = platform.deletion.expect("recorded only if the platform has it");
                Outcome::Done(deletion.delete(&cx, id).await?)
            }
            Self::Edit(id, edit) => {
                let editing = platform.editing.expect("recorded only if the platform has it");
                Outcome::Done(editing.edit(&cx, id, edit).await?)
            }
        })
    }
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Done(()),
    Grant(Grant),
    Identities(Vec<Identity>),
    Prepared(Prepared),
    Committed(Committed),
    Located(Located),
    Url(String),
    Page(Page),
    Options(Vec<SelectOption>),
}

/// A call with the answers that it received.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) call: Call,
    /// True if the sandbox accepted the call.
    pub(crate) has_succeeded: bool,
    pub(crate) exchanges: Vec<Exchange>,
}

/// Largest medium, in bytes: the answers do not depend on the size.
const MEDIUM_BYTES: usize = 64 << 10;

/// Records the calls of an account, one after another.
pub(crate) struct Recorder<'a> {
    actor: &'a Actor,
    stage: &'a Stage,
    pub(crate) all: Vec<Recorded>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(actor: &'a Actor, stage: &'a Stage) -> Self {
        Self { actor, stage, all: Vec::new() }
    }

    async fn record(&mut self, call: Call) -> Result<Outcome> {
        self.stage.recorded();
        let outcome = call.run(self.actor).await;
        let mut exchanges = self.stage.recorded();
        if let Ok(Outcome::Located(Located::Live(found))) = &outcome {
            // Messages of a socket pass the server unseen; this is Reddit's only one.
            let post = found.id().trim_start_matches("t3_");
            let message = json!({
                "type": "success",
                "payload": { "redirect": format!("https://www.reddit.com/r/u_ada/comments/{post}/changed/") },
            });
            for exchange in exchanges.iter_mut().filter(|exchange| exchange.answer.status == 101) {
                exchange.answer.body = message.to_string().into_bytes();
            }
        }
        if !exchanges.is_empty() {
            self.all.push(Recorded { call, has_succeeded: outcome.is_ok(), exchanges });
        }
        outcome
    }

    /// Records every call that the platform has, with content of every kind.
    pub(crate) async fn record_all(&mut self) {
        let (actor, platform) = (self.actor, self.actor.platform);
        let mut posts = Vec::new();
        for limit in platform.limits.media {
            posts.push(actor.post_with("changed", limit.kind, (*limit.count.start()).max(1)));
        }
        if platform.limits.content != Content::Media {
            posts.push(actor.post("changed in text"));
        }
        let mut ids = Vec::new();
        for post in posts {
            ids.push(self.publish(post).await);
        }
        if platform.limits.replies != Replies::None {
            let reply = actor.reply("changed in reply", &ids[ids.len() - 1..]);
            ids.push(self.publish(reply).await);
        }
        self.refused().await;
        let id = ids.swap_remove(0);
        self.record(Call::Health).await.on(platform.id);
        self.record(Call::Identities).await.on(platform.id);
        if platform.analytics.is_some() {
            self.record(Call::Metrics(id.clone())).await.on(platform.id);
        }
        if platform.history.is_some() {
            self.record(Call::History(None)).await.on(platform.id);
        }
        self.options().await;
        if platform.editing.is_ok() {
            let edit = crate::edit_of(&actor.post("changed"), "changed once more");
            self.record(Call::Edit(id.clone(), edit)).await.on(platform.id);
        }
        if platform.deletion.is_some() {
            self.record(Call::Delete(id)).await.on(platform.id);
        }
        if let Some(allowed) = actor.consent("allow").await {
            self.record(Call::Exchange(allowed["code"].clone())).await.on(platform.id);
        }
        // The last, because they end the grant. A refresh may be too early.
        let _ = self.record(Call::Refresh).await;
        self.record(Call::Revoke).await.on(platform.id);
    }

    /// Records the lists of options. Those that need a parent get each option of the lists before.
    async fn options(&mut self) {
        let mut known: Vec<String> = Vec::new();
        for kind in self.actor.platform.options.map_or(&[][..], |options| options.kinds()) {
            let mut listed = self.record(Call::Options(kind, None)).await;
            for parent in &known {
                if listed.is_err() {
                    listed = self.record(Call::Options(kind, Some(parent.clone()))).await;
                }
            }
            if let Outcome::Options(options) = listed.on(self.actor.name()) {
                known.extend(options.into_iter().map(|option| option.id));
            }
        }
    }

    /// Records the calls that publish a post, and returns its id.
    async fn publish(&mut self, mut post: PublishRequest) -> String {
        let name = self.actor.name();
        for medium in &mut post.media {
            if medium.size_bytes > MEDIUM_BYTES as u64 {
                *medium = self.actor.sized(medium, MEDIUM_BYTES);
            }
        }
        let at = self.prepare(&post).await.on(name);
        let begun = clock() - TimeDelta::seconds(5);
        let Outcome::Committed(committed) =
            self.record(Call::Commit(post.clone(), at.clone())).await.on(name)
        else {
            unreachable!("a commit")
        };
        let lost = PublishRequest { commit_begun_at: Some(begun), ..post };
        let id = match committed {
            Committed::Live(id) => id,
            Committed::Accepted { at, .. } => match self.locate(&lost, &at).await.on(name) {
                Located::Live(found) => found.into_id(),
                other => panic!("{name}: accepted, and then {other:?}"),
            },
        };
        // As if the answer had been lost.
        self.locate(&lost, &at).await.on(name);
        self.record(Call::Permalink(id.clone())).await.on(name);
        id
    }

    async fn prepare(&mut self, post: &PublishRequest) -> Result<Checkpoint> {
        let mut at = Checkpoint::default();
        loop {
            match self.record(Call::Prepare(post.clone(), at)).await? {
                Outcome::Prepared(Prepared::Ready(at)) => return Ok(at),
                Outcome::Prepared(Prepared::Processing { at: next, poll_after }) => {
                    pause(poll_after).await;
                    at = next;
                }
                _ => unreachable!("a preparation"),
            }
        }
    }

    async fn locate(&mut self, post: &PublishRequest, at: &Checkpoint) -> Result<Located> {
        loop {
            match self.record(Call::Locate(post.clone(), at.clone())).await? {
                Outcome::Located(Located::Processing { poll_after }) => pause(poll_after).await,
                Outcome::Located(located) => return Ok(located),
                _ => unreachable!("a look-up"),
            }
        }
    }

    /// Records the platform's own refusals of the publishing call.
    async fn refused(&mut self) {
        for status in [400, 401, 403, 429, 500, 503] {
            let mut post = self.actor.post(&format!("#sandbox-{status}"));
            for medium in &mut post.media {
                if medium.kind == MediaKind::Video {
                    *medium = self.actor.sized(medium, MEDIUM_BYTES);
                }
            }
            // Some platforms refuse the preparation.
            if let Ok(at) = self.prepare(&post).await {
                let _ = self.record(Call::Commit(post, at)).await;
            }
        }
    }
}
