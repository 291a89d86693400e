//! The verdict on a case whose workflows have nothing left to do: what the rows say is what the platform shows.

use super::{
    Runner,
    operations::{Done, EDITED, Operation},
    platform::{self, Answer, Script, Shape},
    world::{Case, Meeting, Neighbor, Returned, World},
};
use domain::{MAY_BE_LIVE, TargetStatus, post::roll_up};
use sqlx::{Row, types::Json};
use std::collections::BTreeMap;
use store::{outbox, publishing::TargetKey};

/// Messages to workflows that a case may need: what it takes does not grow with the looks at a row.
const MESSAGES: usize = 16;

/// A part of a target.
#[derive(Debug, serde::Deserialize)]
struct Part {
    position: u16,
    /// Its text, with the edits since it was published.
    text: String,
    /// Id on the platform.
    id: Option<String>,
    has_intent: bool,
}

/// An event of the target's post.
#[derive(Debug, serde::Deserialize)]
struct Event {
    name: String,
    round: i32,
    has_missing: bool,
}

/// A target as its rows show it.
#[derive(Debug)]
struct Seen {
    status: TargetStatus,
    code: Option<String>,
    message: String,
    /// True if a step, a freeze or a deletion from the platform is awaited.
    is_awaited: bool,
    is_unpublished: bool,
    /// The main container's id on the platform.
    id: Option<String>,
    /// Positions of the parts that are given up.
    missing: Vec<u16>,
    round: i32,
    is_own_account: bool,
    post_status: String,
    is_deleted: bool,
    reply_parent: Option<String>,
    parts: Vec<Part>,
    events: Vec<Event>,
    /// Number of the events' deliveries to the one endpoint.
    deliveries: i64,
    /// Kinds of the entries of the post's timeline.
    entries: Vec<String>,
    /// Rows of the post that another organization has.
    foreign: i64,
}

const SEEN: &str = "
    select t.status, t.error_code, coalesce(t.error_message, '') as message,
      t.next_attempt_at is not null or t.freeze_id is not null
        or coalesce(t.unpublish_until > clock_timestamp(), false) as is_awaited,
      t.unpublished_at is not null as is_unpublished, t.platform_post_id, t.round, t.account_id = $2 as is_own_account,
      coalesce((select jsonb_agg(part -> 'position') from jsonb_array_elements(t.missing) part), '[]') as missing,
      p.status as post_status, p.deleted_at is not null as is_deleted, t.reply_parent,
      (select coalesce(jsonb_agg(jsonb_build_object('position', c.position, 'text', c.content, 'id', o.platform_id,
         'has_intent', o.commit_begun_at is not null) order by c.position), '[]')
       from target_containers c left join publications o on o.target_id = t.id and o.position = c.position
       where c.target_id = t.id) as parts,
      (select coalesce(jsonb_agg(jsonb_build_object('name', e.event, 'round', coalesce((d.data ->> 'round')::int, 0),
         'has_missing', d.data ? 'missing') order by e.id), '[]')
       from events e, lateral (select e.body::jsonb -> 'data' as data) d where e.post_id = p.id) as events,
      (select count(*) from events e join deliveries d on d.event_id = e.id where e.post_id = p.id) as deliveries,
      (select coalesce(jsonb_agg(l.kind), '[]') from timeline l where l.post_id = p.id) as entries,
      (p.org_id <> $3)::int + (t.org_id <> $3)::int
        + (select count(*) from containers c where c.post_id = p.id and c.org_id <> $3)
        + (select count(*) from publications o where o.target_id = t.id and o.org_id <> $3)
        + (select count(*) from events e where e.post_id = p.id and e.org_id <> $3)
        + (select count(*) from timeline l where l.post_id = p.id and l.org_id <> $3) as of_others
    from targets t join posts p on p.id = t.post_id where t.id = $1";

impl Seen {
    async fn read(world: &World<'_>, key: TargetKey) -> Self {
        let row = sqlx::query(SEEN).bind(key.target.0).bind(world.account.0).bind(world.key.owner.org.0);
        let row = row.fetch_one(&world.runner.db).await.unwrap();
        Self {
            status: row.get::<String, _>("status").parse().unwrap(),
            code: row.get("error_code"),
            message: row.get("message"),
            is_awaited: row.get("is_awaited"),
            is_unpublished: row.get("is_unpublished"),
            id: row.get("platform_post_id"),
            missing: row.get::<Json<_>, _>("missing").0,
            round: row.get("round"),
            is_own_account: row.get("is_own_account"),
            post_status: row.get("post_status"),
            is_deleted: row.get("is_deleted"),
            reply_parent: row.get("reply_parent"),
            parts: row.get::<Json<_>, _>("parts").0,
            events: row.get::<Json<_>, _>("events").0,
            deliveries: row.get("deliveries"),
            entries: row.get::<Json<_>, _>("entries").0,
            foreign: row.get("of_others"),
        }
    }

    /// True if its owner is told that more may be live than is known.
    fn is_doubtful(&self) -> bool {
        self.message.contains(MAY_BE_LIVE)
    }

    fn count(&self, name: &str, round: i32) -> usize {
        self.events.iter().filter(|event| event.name == name && event.round == round).count()
    }

    /// Returns how it has ended, for the figures.
    fn ended(&self) -> String {
        match self.status {
            TargetStatus::Published if self.is_unpublished => {
                "published, and deleted from the platform".to_owned()
            }
            TargetStatus::Published if !self.missing.is_empty() => "published, a reply is missing".to_owned(),
            TargetStatus::Dead if self.is_doubtful() => "dead, and may be live".to_owned(),
            status => status.to_string(),
        }
    }
}

/// Problems of a case.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    fn expect(&mut self, is_right: bool, complaint: impl Into<String>) {
        if !is_right {
            self.0.push(complaint.into());
        }
    }
}

impl World<'_> {
    /// Returns how the target has ended, and what is wrong.
    pub(super) async fn judge(&self) -> (String, Vec<String>) {
        let mut found = Complaints::default();
        let done = self.returned.as_ref().map_or(Done::REFUSED, |returned| returned.done);
        let mut ended = String::new();
        for (index, key) in self.keys(done.reply).into_iter().enumerate() {
            let seen = Seen::read(self, key).await;
            let mut of_target = Complaints::default();
            {
                let script = self.script.lock().unwrap();
                judge_parts(&mut of_target, &seen, key, &script);
            }
            judge_end(&mut of_target, &seen);
            judge_events(&mut of_target, &seen);
            if index == 0 {
                ended = seen.ended();
                self.judge_operation(&mut of_target, &seen, done);
            } else {
                self.judge_reply(&mut of_target, &seen).await;
            }
            let name = if index == 0 { "target" } else { "reply" };
            found.0.extend(of_target.0.into_iter().map(|complaint| format!("{name}: {complaint}: {seen:?}")));
        }
        if let Some(returned) = &self.returned {
            self.judge_calls(&mut found, returned);
        }
        self.judge_account(&mut found, done).await;
        self.judge_trail(&mut found, done).await;
        let left = outbox::len(&self.runner.db).await.unwrap();
        found.expect(left == 0, format!("{left} messages are left in the outbox"));
        let messages = self.flows.messages;
        found.expect(messages <= MESSAGES, format!("{messages} messages"));
        let orphans = self.script.lock().unwrap().orphans;
        found.expect(orphans == 0, "a call was made below a post that was deleted from the platform");
        let digest = Neighbor::digest(&self.runner.db, self.neighbor.account).await;
        found.expect(digest == self.neighbor.digest, "another organization's rows have changed");
        (ended, found.0)
    }

    /// Judges that the post is as the operation left it.
    fn judge_operation(&self, found: &mut Complaints, seen: &Seen, done: Done) {
        let operation = self.case.operation;
        let unpublishes = matches!(operation, Operation::Unpublish | Operation::FreezeAndUnpublish);
        found.expect(seen.is_own_account, "it belongs to another account");
        found.expect(
            seen.is_deleted == (done.is_accepted && operation == Operation::Delete),
            "the post is deleted, or not, against the operation's result",
        );
        found.expect(
            seen.is_unpublished == (done.is_accepted && unpublishes),
            "it is unpublished, or not, against the operation's result",
        );
        let is_retried = matches!(operation, Operation::Retry | Operation::StopAndRetry);
        found.expect(
            seen.round == i32::from(done.is_accepted && is_retried),
            "it is in another round than the operation's result says",
        );
        let is_edit = matches!(operation, Operation::Edit | Operation::EditLive);
        let is_edited = seen.parts.iter().any(|part| part.text == EDITED);
        found.expect(
            is_edited == (done.is_accepted && is_edit),
            "it has the new text, or not, against the operation's result",
        );
        let kind = match operation {
            Operation::Edit | Operation::EditLive => "edited",
            Operation::Unpublish | Operation::FreezeAndUnpublish => "unpublished",
            Operation::Retry | Operation::StopAndRetry | Operation::RetryNow => "retry",
            _ => return,
        };
        let entries = seen.entries.iter().filter(|entry| *entry == kind).count();
        found.expect(
            entries == usize::from(done.is_accepted),
            format!("{entries} entries of kind {kind} in the timeline"),
        );
    }

    /// Judges that no call began after an operation that forbids it.
    fn judge_calls(&self, found: &mut Complaints, returned: &Returned) {
        let until = match self.case.operation {
            Operation::Freeze => self.calls_at_thaw,
            Operation::Disconnect
            | Operation::Delete
            | Operation::Unpublish
            | Operation::FreezeAndUnpublish => Some(self.script.lock().unwrap().commits),
            _ => None,
        };
        if let Some(until) = until.filter(|_| returned.done.is_accepted) {
            let calls = until - returned.calls;
            found.expect(
                calls <= returned.open,
                format!("{calls} publishing calls after the operation, which left {} open", returned.open),
            );
        }
    }

    /// Judges a reply: it is below the last live part of the post, or ended with a reason.
    async fn judge_reply(&self, found: &mut Complaints, seen: &Seen) {
        if seen.status != TargetStatus::Published {
            return;
        }
        let last: Option<String> = sqlx::query_scalar(
            "select platform_id from publications where target_id = $1 and platform_id is not null
             order by position desc limit 1",
        )
        .bind(self.key.target.0)
        .fetch_optional(&self.runner.db)
        .await
        .unwrap();
        found.expect(last.is_some() && seen.reply_parent == last, format!("it is not below {last:?}"));
    }

    /// Judges the account, and the one that it was handed over to.
    async fn judge_account(&self, found: &mut Complaints, done: Done) {
        let row = sqlx::query(
            "select a.status, a.grant_sealed is not null as has_grant, o.status as other_status,
               o.grant_sealed is not null as other_has_grant, o.id <> a.id as is_other,
               (select count(*) from publications p where p.account_id = o.id and o.id <> a.id) as taken
             from accounts a join accounts o on o.id = coalesce($2, a.id) where a.id = $1",
        )
        .bind(self.account.0)
        .bind(done.connected.map(|account| account.0))
        .fetch_one(&self.runner.db)
        .await
        .unwrap();
        let (status, has_grant): (String, bool) = (row.get("status"), row.get("has_grant"));
        let (other_status, other_has_grant): (String, bool) =
            (row.get("other_status"), row.get("other_has_grant"));
        let leaves = matches!(self.case.operation, Operation::Disconnect | Operation::HandOver);
        if done.is_accepted && leaves {
            found.expect(
                status == "disconnected" && !has_grant,
                "the account is not disconnected, or has a grant",
            );
        } else {
            found.expect(has_grant, "the account has no grant");
        }
        if done.connected.is_some() {
            let is_connected = other_status == "active" && other_has_grant;
            found.expect(is_connected, format!("the account that was connected is {other_status}"));
            let is_other = self.case.operation == Operation::HandOver;
            found.expect(row.get::<bool, _>("is_other") == is_other, "the account has a row for each tenant");
            found.expect(row.get::<i64, _>("taken") == 0, "the other tenant has what was published");
        }
    }

    /// Judges the audit trail: an entry for each change of the account, and no other.
    async fn judge_trail(&self, found: &mut Complaints, done: Done) {
        let objects: Vec<_> =
            [Some(self.account), done.connected].into_iter().flatten().map(|id| id.0).collect();
        let trail: Json<BTreeMap<String, i64>> = sqlx::query_scalar(
            "select coalesce(jsonb_object_agg(action, entries), '{}') from (
               select action, count(*) as entries from audit_entries
               where object_id = any($1) and org_id = $2 group by action) trail",
        )
        .bind(objects)
        .bind(self.key.owner.org.0)
        .fetch_one(&self.runner.db)
        .await
        .unwrap();
        let expected: &[&str] = match self.case.operation {
            // Released by the operation, or later.
            Operation::Release | Operation::Freeze | Operation::FreezeAndUnpublish => {
                &["publishing.frozen", "publishing.released"]
            }
            _ if !done.is_accepted => &[],
            Operation::Disconnect => &["social_account.disconnected"],
            Operation::Reconnect | Operation::HandOver => {
                &["social_account.connected", "social_account.disconnected"]
            }
            _ => &[],
        };
        let expected: BTreeMap<_, _> = expected.iter().map(|action| ((*action).to_owned(), 1)).collect();
        found.expect(trail.0 == expected, format!("the audit trail has {:?}", trail.0));
    }
}

/// Judges each part of a target by what the platform shows.
fn judge_parts(found: &mut Complaints, seen: &Seen, key: TargetKey, script: &Script) {
    let below = u16::from(seen.reply_parent.is_some());
    for part in &seen.parts {
        let position = part.position;
        let all = script.publications(key.target, position + below);
        let live: Vec<_> = all.iter().filter(|(_, one)| !one.is_deleted).collect();
        let part_of = |complaint: &str| format!("part {position} {complaint}: {all:?}");
        found.expect(all.len() <= 1, part_of("was published twice"));
        match &part.id {
            Some(id) => {
                found.expect(all.iter().any(|(own, _)| own == id), part_of("has an id that is not its own"));
                found.expect(
                    live.is_empty() == seen.is_unpublished,
                    part_of("is live, or not, against what its target says"),
                );
                let is_right = live.iter().all(|(_, one)| one.text == part.text);
                found.expect(is_right, part_of("has another text"));
            }
            None => {
                found.expect(all.is_empty() || seen.is_doubtful(), part_of("is live, and not known"));
                let is_open = part.has_intent && !seen.is_doubtful();
                found.expect(!is_open, part_of("may be live, and is not told so"));
                let is_told = seen.status != TargetStatus::Published || seen.missing.contains(&position);
                found.expect(is_told, part_of("is not live, and not told as missing"));
            }
        }
        let is_missing = seen.missing.contains(&position) && part.id.is_some();
        found.expect(!is_missing, part_of("is live, and told as missing"));
    }
}

/// Judges the end of a target and of its post.
fn judge_end(found: &mut Complaints, seen: &Seen) {
    found.expect(seen.status.is_terminal(), "it has not ended, and nothing wakes it");
    found.expect(!seen.is_awaited, "it has ended, and awaits something");
    let main = seen.parts.first().and_then(|part| part.id.as_ref());
    match seen.status {
        TargetStatus::Published => {
            let is_right = main.is_some() && main == seen.id.as_ref();
            found.expect(is_right, "its id is not that of its main part");
        }
        TargetStatus::Dead => {
            found.expect(main.is_none() || seen.is_doubtful(), "it is dead, and its main part is live");
            found.expect(seen.code.is_some() && !seen.message.is_empty(), "it is dead without a reason");
        }
        TargetStatus::Canceled => {
            found.expect(seen.parts.iter().all(|part| part.id.is_none()), "it is canceled, and live");
            found.expect(!seen.is_doubtful(), "it is canceled, and may be live");
            found.expect(!seen.message.is_empty(), "it is canceled without a reason");
        }
        _ => {}
    }
    let expected = roll_up(&[seen.status]).map(|status| status.to_string());
    // A post that is deleted before it is published is canceled itself.
    let is_canceled =
        seen.is_deleted && seen.status == TargetStatus::Canceled && seen.post_status == "canceled";
    found.expect(is_canceled || expected == Some(seen.post_status.clone()), "its post has another status");
    found.expect(seen.foreign == 0, format!("{} of its rows are another organization's", seen.foreign));
}

/// Judges that each end is told by one event, and once to each endpoint.
fn judge_events(found: &mut Complaints, seen: &Seen) {
    let names = || seen.events.iter().map(|event| (&*event.name, event.round)).collect::<Vec<_>>();
    let [published, failed, incomplete] =
        ["post.target.published", "post.target.failed", "post.target.incomplete"];
    for round in 0..=seen.round {
        let ends = seen.count(published, round) + seen.count(failed, round);
        let losses = seen.count(incomplete, round);
        let is_canceled = round == seen.round && seen.status == TargetStatus::Canceled;
        let is_right = match (round, is_canceled) {
            (_, true) => ends + losses == 0,
            (0, false) => ends == 1 && losses <= 1,
            // A round of a live target ends with the rest, or without it.
            (_, false) => ends <= 1 && losses <= 1 && ends + losses >= 1,
        };
        found.expect(is_right, format!("round {round} is told by {:?}", names()));
        let retried = seen.count("post.retried", round);
        found.expect(retried == usize::from(round > 0), format!("round {round} is told by {:?}", names()));
    }
    let last = seen.events.iter().rev().find(|event| [published, failed].contains(&&*event.name));
    let expected = match seen.status {
        TargetStatus::Published => Some(published),
        TargetStatus::Dead => Some(failed),
        _ => None,
    };
    if expected.is_some() {
        found.expect(last.map(|event| &*event.name) == expected, format!("its end is told by {:?}", names()));
    }
    let first = seen.events.iter().filter(|event| ["post.published", "post.error"].contains(&&*event.name));
    let first = first.count();
    let is_told = seen.post_status != "canceled";
    found.expect(first == usize::from(is_told), format!("the post's end is told by {:?}", names()));
    let is_missing = !seen.missing.is_empty();
    let tells_missing = seen.events.iter().any(|event| event.has_missing || event.name == incomplete);
    found.expect(!is_missing || tells_missing, "missing parts are not told");
    let count = i64::try_from(seen.events.len()).unwrap();
    found.expect(seen.deliveries == count, format!("{count} events, {} deliveries", seen.deliveries));
}

/// Statements on the target with this id, its post or its account, that make a published post with a first comment wrong,
/// each with a part of the complaint. Its account was frozen and released.
const WRONG_ROWS: &[(&str, &str)] = &[
    ("nothing wakes it", "update targets set status = 'failed' where id = $1"),
    ("awaits something", "update targets set next_attempt_at = now() where id = $1"),
    ("awaits something", "update targets set freeze_id = gen_random_uuid() where id = $1"),
    ("is live, or not", "update targets set unpublished_at = now() where id = $1"),
    (
        "an id that is not its own",
        "update publications set platform_id = '7-7' where target_id = $1 and position = 1",
    ),
    ("not that of its main part", "update targets set platform_post_id = '7-7' where id = $1"),
    (
        "is live, and not known",
        "update publications set platform_id = null where target_id = $1 and position = 1",
    ),
    ("is not told so", "update publications set platform_id = null where target_id = $1 and position = 1"),
    ("not told as missing", "delete from publications where target_id = $1 and position = 1"),
    ("is live, and told as missing", "update targets set missing = '[{\"position\": 1}]' where id = $1"),
    (
        "has another text",
        "update containers set content = 'other'
         where post_id = (select post_id from targets where id = $1)",
    ),
    (
        "dead, and its main part is live",
        "update targets set status = 'dead', error_code = 'network_error', error_message = 'no' where id = $1",
    ),
    (
        "its end is told by",
        "update targets set status = 'dead', error_code = 'network_error', error_message = 'no' where id = $1",
    ),
    ("canceled, and live", "update targets set status = 'canceled', error_message = 'no' where id = $1"),
    (
        "another status",
        "update posts set status = 'publishing' where id = (select post_id from targets where id = $1)",
    ),
    (
        "rows are another organization's",
        "update publications set org_id = (select id from organizations where name = 'Neighbor' limit 1)
         where target_id = $1",
    ),
    ("round 0 is told by", "delete from events where target_id = $1 and event = 'post.target.published'"),
    (
        "round 0 is told by",
        "insert into events (id, org_id, mode, event, post_id, target_id, body)
         select gen_random_uuid(), org_id, mode, event, post_id, target_id, body
         from events where target_id = $1 and event = 'post.target.published'",
    ),
    (
        "the post's end is told by",
        "delete from events where event = 'post.published'
           and post_id = (select post_id from targets where id = $1)",
    ),
    ("deliveries", "delete from deliveries where event_id in (select id from events where target_id = $1)"),
    (
        "belongs to another account",
        "update targets set account_id = (
           select id from accounts where id <> targets.account_id order by id desc limit 1)
         where id = $1",
    ),
    (
        "the audit trail",
        "delete from audit_entries where object_id = (select account_id from targets where id = $1)",
    ),
    (
        "messages are left",
        "insert into outbox (org_id, message) select org_id, '{}' from targets where id = $1",
    ),
    (
        "the account has no grant",
        "update accounts set grant_sealed = null where id = (select account_id from targets where id = $1)",
    ),
    (
        "another organization's rows have changed",
        "update posts set updated_at = now()
         where is_draft and org_id <> (select org_id from targets where id = $1)",
    ),
];

/// A change at the platform.
type Change = fn(&mut Script, TargetKey);

/// Changes at the platform that make a case wrong, after an operation.
const WRONG_AT_PLATFORM: &[(&str, Operation, Change)] = &[
    ("was published twice", Operation::Freeze, |script, key| script.repeat(key.target)),
    ("is live, or not", Operation::Freeze, |script, key| script.lose(key.target)),
    ("below a post that was deleted", Operation::Freeze, |script, _| script.orphans += 1),
    ("publishing calls after the operation", Operation::Unpublish, |script, _| script.commits += 1),
];

/// Plays a post with a first comment, and an operation after it, both of which are right. `change` makes them wrong.
async fn notices(
    runner: &Runner,
    complaint: &str,
    operation: Operation,
    change: impl AsyncFnOnce(&World<'_>),
) {
    let (shape, answers) = (Shape::FirstComment, vec![Answer::Heard]);
    let meeting = Meeting::During { point: usize::MAX, is_late: false };
    let case = Case { shape, answers, operation, meeting };
    let mut world = World::begin(runner, &case).await;
    world.finish().await;
    let (_, found) = world.judge().await;
    assert!(found.is_empty(), "{case:?}: {found:?}");
    change(&world).await;
    let (_, found) = world.judge().await;
    assert!(found.iter().any(|one| one.contains(complaint)), "{complaint}: not among {found:?}");
    sqlx::query("delete from outbox").execute(&runner.db).await.unwrap();
    platform::unregister(&world.network_id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_outcome_is_noticed() {
    let runner = Runner::start(310).await;
    for (complaint, statement) in WRONG_ROWS {
        notices(&runner, complaint, Operation::Freeze, async |world: &World<'_>| {
            let changed = sqlx::query(*statement).bind(world.key.target.0).execute(&world.runner.db).await;
            assert!(changed.unwrap().rows_affected() > 0, "{complaint}: nothing was changed");
        })
        .await;
    }
    for (complaint, operation, change) in WRONG_AT_PLATFORM {
        notices(&runner, complaint, *operation, async |world: &World<'_>| {
            change(&mut world.script.lock().unwrap(), world.key);
        })
        .await;
    }
}
