//! Stored rows, publications and deliveries of a case when all of its work is done.

use super::{
    model::{self, Checked, Model, Row},
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
        let ends = rows.iter().filter(|row| model::is_over(row)).map(|row| row.targets.len()).sum();
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
        for (index, (platform, name, _)) in ACCOUNTS.into_iter().enumerate() {
            let page = self.get(&format!("{platform}/{name}")).await;
            let times = |word: &str, number: usize| {
                page.matches(&format!(r#"<p class="text">{word} {number}."#)).count()
            };
            let mut known = 0;
            for row in rows {
                let post = self.model.posts.iter().find(|post| post.id == row.id).expect("compared before");
                let id = &self.model.accounts[index].id;
                let Some(target) = row.targets.iter().find(|target| target.account_id == *id) else {
                    continue;
                };
                let (text, reply) = (times("Text", post.text), times("Reply", post.text));
                let (message, wanted) = (target.error_message.as_deref(), usize::from(post.has_reply));
                let is_unknown = message.is_some_and(|message| message.contains("it may be live"));
                let is_right = match target.status.as_str() {
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
            }
            let journal =
                self.get(&format!("_journal?platform={platform}&account={name}&accepted=true")).await;
            let journal: Value = serde_json::from_str(&journal).unwrap();
            let entries = journal["entries"].as_array().unwrap().iter();
            let accepted: usize = entries.map(|entry| entry["post_ids"].as_array().map_or(0, Vec::len)).sum();
            // A text before its edit, or of a post that was refused, would be among the accepted ones.
            if known != accepted {
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
        let disconnected = told.0.keys().filter(|(event, _)| event == "account.disconnected").count();
        if disconnected != self.model.disconnected {
            return Err(format!(
                "{disconnected} events of {} disconnected accounts",
                self.model.disconnected
            ));
        }
        let mut count = disconnected;
        for row in rows {
            let (found, expected) = (told.of(row), expected(row));
            if found != expected {
                return Err(format!("events {found:?} instead of {expected:?}: {row:#?}"));
            }
            count += found.len();
            told.check_order(row)?;
            let post = self.model.posts.iter().find(|post| post.id == row.id).expect("compared before");
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
        let surplus = told.0.keys().filter(|(event, _)| event.starts_with("post.")).count();
        if surplus + disconnected != count {
            return Err(format!("events of no post: {:?}", told.0));
        }
        Ok(count)
    }
}

/// An event: its name, and the id of its subject.
type Event = (String, String);

/// Returns the events that a post must have had.
fn expected(row: &Row) -> BTreeSet<Event> {
    let of_target = |target: &model::TargetRow| {
        let event = match target.status.as_str() {
            "published" => "post.target.published",
            "dead" => "post.target.failed",
            _ => return None,
        };
        Some((event.to_owned(), target.id.clone()))
    };
    let mut events: BTreeSet<_> = row.targets.iter().filter_map(of_target).collect();
    if row.targets.iter().any(|target| target.status == "published") {
        events.insert(("post.published".to_owned(), row.id.clone()));
    }
    if row.status == "failed" {
        events.insert(("post.error".to_owned(), row.id.clone()));
    }
    events
}

/// The events that an endpoint received, with their ids, which grow with time.
struct Told(BTreeMap<Event, String>);

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
        let mut told = BTreeMap::new();
        for (id, body) in by_id {
            let body: Value = serde_json::from_slice(&body).unwrap();
            let data = &body["data"];
            // An account may be disconnected several times.
            let subject = data["targetId"].as_str().or(data["postId"].as_str()).unwrap_or(&id).to_owned();
            let event = (body["event"].as_str().unwrap_or_default().to_owned(), subject);
            if let Some(other) = told.insert(event.clone(), id) {
                return Err(format!("there are two events {event:?}, one of them {other}"));
            }
        }
        Ok(Self(told))
    }

    /// Returns the events of a post and its targets.
    fn of(&self, row: &Row) -> BTreeSet<Event> {
        let is_own =
            |subject: &str| subject == row.id || row.targets.iter().any(|target| target.id == subject);
        self.0.keys().filter(|(_, subject)| is_own(subject)).cloned().collect()
    }

    /// Checks that a post was reported as published after its first target, before the others, and as failed
    /// after its last.
    fn check_order(&self, row: &Row) -> Checked {
        let id = |event: &str, subject: &str| self.0.get(&(event.to_owned(), subject.to_owned()));
        let of_targets =
            |event: &str| row.targets.iter().filter_map(|target| id(event, &target.id)).collect::<Vec<_>>();
        let published = id("post.published", &row.id).is_none_or(|at| {
            of_targets("post.target.published").iter().filter(|target| **target < at).count() == 1
        });
        let failed = id("post.error", &row.id)
            .is_none_or(|at| of_targets("post.target.failed").iter().all(|target| *target < at));
        if published && failed { Ok(()) } else { Err(format!("out of order: {:#?} of {row:#?}", self.0)) }
    }
}
