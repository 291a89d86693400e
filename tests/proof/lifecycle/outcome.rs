//! Stored rows, publications and deliveries of a case when all of its work is done.

use super::{
    model::{Checked, Model, Post, Row, is_over},
    observed,
    steps::ACCOUNTS,
};
use reqwest::Client;
use serde_json::Value;
use sqlx::types::Uuid;
use std::collections::{BTreeMap, BTreeSet};
use store::Pool;
use tests::Receiver;

/// Numbers of a case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Posts created.
    pub(super) posts: usize,
    /// Targets that ended.
    pub(super) ends: usize,
    /// Changes of a status.
    pub(super) changes: usize,
    /// Publications at the sandbox.
    pub(super) publications: usize,
    /// Events received, without repetitions.
    pub(super) events: usize,
}

/// A case whose work is done.
pub(super) struct Outcome {
    /// The database.
    pub(super) db: Pool,
    /// The organization.
    pub(super) org: Uuid,
    /// An HTTP client.
    pub(super) http: Client,
    /// Address of the sandbox.
    pub(super) sandbox: String,
    /// The model.
    pub(super) model: Model,
    /// The endpoint that was never paused.
    pub(super) all: Receiver,
    /// The endpoint that was paused and resumed.
    pub(super) paused: Receiver,
}

impl Outcome {
    /// Checks everything.
    pub(super) async fn check(mut self) -> Result<Tally, String> {
        let (_, changes) = observed::check(&self.db, self.org, 0).await?;
        let rows = observed::rows(&self.db, self.org).await;
        observed::compare(&mut self.model, &rows)?;
        self.check_keys().await?;
        let publications = self.check_publications(&rows).await?;
        let events = self.check_events(&rows)?;
        let posts = rows.len();
        let ends = rows.iter().filter(|row| is_over(row)).map(|row| row.targets.len()).sum();
        Ok(Tally { posts, ends, changes, publications, events })
    }

    /// Checks that no key has two posts.
    async fn check_keys(&self) -> Checked {
        let twice: Vec<String> = sqlx::query_scalar(
            "select external_ref from posts where org_id = $1 and external_ref is not null
             group by external_ref having count(*) > 1",
        )
        .bind(self.org)
        .fetch_all(&self.db)
        .await
        .unwrap();
        if twice.is_empty() { Ok(()) } else { Err(format!("keys with several posts: {twice:?}")) }
    }

    /// Checks that each published text is on its platform once, and no other text at all. Returns the number of
    /// publications.
    async fn check_publications(&self, rows: &[Row]) -> Result<usize, String> {
        let mut publications = 0;
        for (index, (platform, name, ..)) in ACCOUNTS.into_iter().enumerate() {
            let page = self.get(&format!("{platform}/{name}")).await;
            let times = |word: &str, number: usize| {
                page.matches(&format!(r#"<p class="text">{word} {number}."#)).count()
            };
            let (mut known, mut lost) = (0, 0);
            for row in rows {
                let post = self.model.posts.iter().find(|post| post.id == row.id).expect("compared before");
                let id = &self.model.accounts[index].id;
                let Some(target) = row.targets.iter().find(|target| target.account_id == *id) else {
                    continue;
                };
                let (text, reply) = (times("Text", post.text), times("Reply", post.text));
                let modeled = post.targets.iter().find(|one| self.model.accounts[one.account].id == *id);
                let is_unpublished = modeled.is_some_and(|target| target.is_unpublished);
                let (message, wanted) = (target.error_message.as_deref(), usize::from(post.has_reply));
                let is_unknown = message.is_some_and(|message| message.contains("it may be live"));
                let is_right = match target.status.as_str() {
                    "published" if is_unpublished => text == 0 && reply == 0,
                    // The rest of a thread may be given up, for a reason.
                    "published" if row.is_deleted || target.error_code.is_some() => {
                        text == 1 && reply <= wanted
                    }
                    "published" => text == 1 && reply == wanted,
                    "dead" if is_unknown => text <= 1 && reply == 0,
                    _ => text == 0 && reply == 0,
                };
                if !is_right {
                    return Err(format!(
                        "text {} is {text} times on {platform}, its reply {reply} times: {target:#?} of {post:#?}",
                        post.text
                    ));
                }
                known += text + reply;
                if is_unpublished {
                    // Its parts, given up or not, are gone as well.
                    (known, lost) = (known + 1, lost + wanted);
                }
            }
            let journal =
                self.get(&format!("_journal?platform={platform}&account={name}&accepted=true")).await;
            let journal: Value = serde_json::from_str(&journal).unwrap();
            let entries = journal["entries"].as_array().unwrap().iter();
            let accepted: usize = entries.map(|entry| entry["post_ids"].as_array().map_or(0, Vec::len)).sum();
            // A text before its edit, or of a post that was refused, would be among the accepted ones.
            if !(known..=known + lost).contains(&accepted) {
                return Err(format!("{platform} accepted {accepted} posts, of which {known} are known"));
            }
            publications += known;
        }
        Ok(publications)
    }

    async fn get(&self, path: &str) -> String {
        let url = format!("{}/{path}", self.sandbox);
        self.http.get(url).send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    }

    /// Checks that each event was delivered once, apart from repetitions of refused deliveries, in order, and to
    /// the paused endpoint as far as it was not paused. Returns the number of events.
    fn check_events(&self, rows: &[Row]) -> Result<usize, String> {
        let (told, told_to_paused) = (Told::by(&self.all)?, Told::by(&self.paused)?);
        let disconnected = told.0.keys().filter(|(event, ..)| event == "account.disconnected").count();
        if disconnected != self.model.disconnected {
            return Err(format!(
                "{disconnected} events of {} disconnected accounts",
                self.model.disconnected
            ));
        }
        let mut count = disconnected;
        for row in rows {
            let post = self.model.posts.iter().find(|post| post.id == row.id).expect("compared before");
            let (found, expected) = (told.of(row), self.expected(row, post, &told));
            if found != expected {
                return Err(format!("events {found:?} instead of {expected:?}: {row:#?}"));
            }
            count += found.len();
            told.check_order(row)?;
            let found = told_to_paused.of(row);
            let is_right = match post.is_paused {
                Some(true) => found.is_empty(),
                Some(false) => found == expected,
                None => found.is_subset(&expected),
            };
            if !is_right {
                return Err(format!("events {found:?} of {expected:?} to the paused endpoint: {post:#?}"));
            }
        }
        let surplus = told.0.keys().filter(|(event, ..)| event.starts_with("post.")).count();
        if surplus + disconnected != count {
            return Err(format!("events of no post: {:?}", told.0));
        }
        Ok(count)
    }

    /// Returns the events that a post must have had: one of its first outcome, and one of each retry.
    fn expected(&self, row: &Row, post: &Post, told: &Told) -> BTreeSet<Event> {
        let mut events = BTreeSet::new();
        for target in &row.targets {
            let modeled =
                post.targets.iter().find(|one| self.model.accounts[one.account].id == target.account_id);
            let modeled = modeled.expect("compared before");
            let mut tell = |event: &str, round| {
                events.insert((event.to_owned(), target.id.clone(), round));
            };
            modeled.died_in.iter().for_each(|round| tell("post.target.failed", *round));
            match target.status.as_str() {
                "published" => {
                    let live_in = modeled.torn_in.first().copied().unwrap_or(modeled.round);
                    tell("post.target.published", live_in);
                    // The first loss may be told together with the publication.
                    let is_told = |round| round == live_in && told.tells_missing(&target.id, round);
                    let torn_in = modeled.torn_in.iter().copied();
                    let torn_in = torn_in.chain(target.is_incomplete.then_some(modeled.round));
                    torn_in
                        .filter(|round| !is_told(*round))
                        .for_each(|round| tell("post.target.incomplete", round));
                    if modeled.round > live_in && !target.is_incomplete {
                        tell("post.target.published", modeled.round);
                    }
                }
                "dead" => tell("post.target.failed", modeled.round),
                _ => {}
            }
        }
        let mut tell = |event: &str, round| {
            events.insert((event.to_owned(), row.id.clone(), round));
        };
        if post.has_failed
            || row.status == "failed" && !row.targets.iter().any(|one| one.status == "published")
        {
            tell("post.error", 0);
        } else if row.targets.iter().any(|target| target.status == "published") {
            tell("post.published", 0);
        }
        (1..=post.rounds).for_each(|round| tell("post.retried", round));
        events
    }
}

/// An event: its name, the id of its subject, and the round of retries.
type Event = (String, String, usize);

/// The events that an endpoint received, with their ids, which grow with time, and those that name missing parts.
struct Told(BTreeMap<Event, String>, BTreeSet<Event>);

impl Told {
    /// Fails if there were two events of one subject, other than of an account.
    fn by(receiver: &Receiver) -> Result<Self, String> {
        let mut by_id = BTreeMap::new();
        for delivery in receiver.all() {
            let id = delivery.header("x-fanfare-event-id").to_owned();
            if by_id.insert(id.clone(), delivery.body.clone()).is_some_and(|before| before != delivery.body) {
                return Err(format!("event {id} was repeated with another body"));
            }
        }
        let (mut told, mut incomplete) = (BTreeMap::new(), BTreeSet::new());
        for (id, body) in by_id {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let data = &body["data"];
            // An account may be disconnected several times.
            let subject = data["targetId"].as_str().or(data["postId"].as_str()).unwrap_or(&id).to_owned();
            let round = data["round"].as_u64().map_or(0, |round| usize::try_from(round).expect("a few"));
            let event = (body["event"].as_str().unwrap_or_default().to_owned(), subject, round);
            if data["missing"].is_array() {
                incomplete.insert(event.clone());
            }
            if let Some(other) = told.insert(event.clone(), id) {
                return Err(format!("there are two events {event:?}, one of them {other}"));
            }
        }
        Ok(Self(told, incomplete))
    }

    /// Returns whether a target was told as published with parts missing.
    fn tells_missing(&self, target: &str, round: usize) -> bool {
        self.1.contains(&("post.target.published".to_owned(), target.to_owned(), round))
    }

    /// Returns the events of a post and its targets.
    fn of(&self, row: &Row) -> BTreeSet<Event> {
        let is_own =
            |subject: &str| subject == row.id || row.targets.iter().any(|target| target.id == subject);
        self.0.keys().filter(|(_, subject, _)| is_own(subject)).cloned().collect()
    }

    /// Checks that a post was reported as published after its first target, before the others, and as failed
    /// after its last.
    fn check_order(&self, row: &Row) -> Checked {
        let id =
            |event: &str, subject: &str, round| self.0.get(&(event.to_owned(), subject.to_owned(), round));
        let of_targets = |event: &str, round| {
            row.targets.iter().filter_map(|target| id(event, &target.id, round)).collect::<Vec<_>>()
        };
        let published = id("post.published", &row.id, 0).is_none_or(|at| {
            of_targets("post.target.published", 0).iter().filter(|target| **target < at).count() == 1
        });
        let failed = id("post.error", &row.id, 0)
            .is_none_or(|at| of_targets("post.target.failed", 0).iter().all(|target| *target < at));
        let last = |round| id("post.retried", &row.id, round);
        let rounds = (1..).map_while(|round| last(round).map(|at| (round, at)));
        let retried = rounds.into_iter().all(|(round, at)| {
            let ends = ["post.target.published", "post.target.failed", "post.target.incomplete"];
            ends.iter().flat_map(|event| of_targets(event, round)).all(|target| target < at)
        });
        if published && failed && retried {
            Ok(())
        } else {
            Err(format!("out of order: {:#?} of {row:#?}", self.0))
        }
    }
}
