//! The work of Postgres for one call or one step does not grow with the number of rows.

use crate::{PROGRAM, WHOLE, database};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Bound, Mode, Owner, PostStatus, ProfileId, event::EventName, outbox::Disconnection};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use store::{
    Commits, Listener, NOTIFY_INTERVAL, Pool,
    accounts::disconnect,
    bounds::{Access, unbounded},
    operators, outbox,
    page::{Cursor, Request},
    people::audit::{self, Actor},
    posts::{self, Filter, timeline},
    publishing::{
        self, Barred, BeginResult, Purpose, TargetKey, freezes,
        sweep::{self, Timing},
    },
    upkeep::retention::{self, Retention},
    usage::{
        backlog,
        metrics::{self, CollectionSchedule},
    },
    webhooks::{deliveries, drain, events},
};
use uuid::Uuid;

/// Posts of the organization; each has a target, and one in [`RARE`] a second one, on another platform.
const POSTS: i64 = 60_000;
/// One post in so many failed, and one is on a rare platform.
const RARE: i64 = 3000;
/// Rows that a list may read: a page of 25 posts of each of ten accounts, with what is checked for each.
const MOST: i64 = 2000;

/// Tables whose rows are never deleted, so that a reference to them needs no index.
const KEPT: [&str; 5] = ["accounts", "imports", "networks", "organizations", "webhooks"];

/// The organization with all the rows.
const OWNER: Owner = Owner { org: domain::OrgId(id(0, 1)), mode: Mode::Live };

/// Returns the id of a row of the data, by kind and number.
const fn id(kind: u128, number: u128) -> Uuid {
    Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + (kind << 40) + number)
}

fn now() -> DateTime<Utc> {
    tests::now()
}

/// Creates a database with the function `id`, the counterpart of [`id`]. The reads of a pool with one connection can be
/// counted.
async fn numbered(connections: u32) -> Pool {
    let db = store::connect(&tests::database_url(&PROGRAM).await, connections).await.unwrap();
    let function = "create function id(kind bigint, number bigint) returns uuid language sql immutable as
      $$ select ('01900000-0000-7000-8000-' || lpad(to_hex((kind << 40) + number), 12, '0'))::uuid $$";
    tests::sql(&db, function).await;
    db
}

/// Creates a database with the rows of a busy organization. Its pool has one connection, whose reads are counted.
async fn busy() -> Pool {
    let db = numbered(1).await;
    tests::sql(
        &db,
        &format!(
            "insert into organizations (id, name) values ('{org}', 'Acme');
             insert into profiles (id, org_id, mode, name, timezone)
             select id(1, n), '{org}', 'live', n, 'UTC' from generate_series(1, 2) n;
             -- Ten accounts with many posts, in the first profile, and one with few, in the second.
             insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name, profile_id,
               tenant_id)
             select id(2, n), '{org}', 'live', case when n <= 10 then 'x' else 'reddit' end, n, n, n,
               id(1, n / 11 + 1), case when n <= 10 then 'busy' else 'quiet' end
             from generate_series(1, 11) n;
             insert into posts (id, org_id, mode, status, is_draft, created_at, updated_at)
             select id(3, n), '{org}', 'live', case when n % {RARE} = 0 then 'failed' else 'published' end, false, at, at
             from generate_series(1, {POSTS}) n, lateral (select now() - {POSTS} * interval '10 s'
               + n * interval '10 s' as at) t;
             insert into targets (id, post_id, org_id, mode, account_id, platform, status, platform_post_id,
               published_at, created_at)
             select id(4, n), id(3, n), '{org}', 'live', id(2, n % 10 + 1), 'x', 'published', n, p.created_at,
               p.created_at
             from generate_series(1, {POSTS}) n join posts p on p.id = id(3, n);
             insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_message, created_at)
             select id(5, n), id(3, n), '{org}', 'live', id(2, 11), 'reddit', 'dead', 'refused', p.created_at
             from generate_series({RARE}, {POSTS}, {RARE}) n join posts p on p.id = id(3, n);
             insert into webhooks (id, org_id, mode, url, events, secret_sealed)
             values (id(6, 1), '{org}', 'live', 'https://example.com', '{{*}}', '');
             insert into events (id, org_id, mode, event, post_id, body, created_at, streamed_at)
             select id(7, n), '{org}', 'live', 'post.published', id(3, n), '{{}}', p.created_at, p.created_at
             from generate_series(1, {POSTS}) n join posts p on p.id = id(3, n);
             insert into deliveries (id, event_id, webhook_id, org_id, mode, event, status, created_at, error)
             select id(8, n), id(7, n), id(6, 1), '{org}', 'live', 'post.published',
               case when n % {RARE} = 0 then 'failed' else 'delivered' end, p.created_at,
               case when n % {RARE} = 0 then 'refused' end
             from generate_series(1, {POSTS}) n join posts p on p.id = id(3, n);
             insert into timeline (org_id, mode, post_id, at, kind, message)
             select '{org}', 'live', id(3, n), now(), 'created', '' from generate_series(1, {POSTS}) n;
             -- Nearly all by one key, on one object.
             insert into audit_entries (id, org_id, mode, at, actor, key_id, member_id, action, object_id, details)
             select id(10, n), '{org}', 'live', now() - n * interval '10 s', 'session',
               id(11, case when n % {RARE} = 0 then 2 else 1 end), id(12, case when n % {RARE} = 0 then 2 else 1 end),
               case when n % {RARE} = 0 then 'member.removed' else 'session.started' end,
               id(13, case when n % {RARE} = 0 then 2 else 1 end), '{{}}'
             from generate_series(1, {POSTS}) n;
             insert into outbox (org_id, message) select '{org}', '{{}}' from generate_series(1, {POSTS});
             analyze;",
            org = OWNER.org
        ),
    )
    .await;
    db
}

/// Returns the number of rows and index entries read since the database was created.
async fn read(db: &Pool) -> i64 {
    // The counts of a connection are published when the statement after this one begins.
    tests::sql(db, "select pg_stat_force_next_flush()").await;
    sqlx::query_scalar(
        "select ((select sum(seq_tup_read) from pg_stat_user_tables)
           + (select sum(idx_tup_read) from pg_stat_user_indexes))::bigint",
    )
    .fetch_one(db)
    .await
    .unwrap()
}

/// Asserts that a call reads at most so many rows, also when the plan of its statements is for any parameters, and
/// returns what it returns.
async fn reads<T>(db: &Pool, most: i64, name: &str, mut call: impl AsyncFnMut() -> store::Result<T>) -> T {
    // Postgres keeps a plan for any parameters after five with the given ones, if it seems no worse.
    for _ in 0..6 {
        call().await.unwrap();
    }
    let before = read(db).await;
    let found = call().await.unwrap();
    let rows = read(db).await - before;
    assert!(rows <= most, "{name}: {rows} rows were read, of {most}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_reads_a_bounded_number_of_rows() {
    let db = busy().await;
    let all = Filter::default();
    let account = |number| Some(domain::AccountId(id(2, number)));
    let profile = |number| Some(id(1, number));
    let bound = Bound::Profile(ProfileId(id(1, 1)));
    let platform = |name: &str| Some(name.to_owned());
    let (full, few) = (25, usize::try_from(POSTS / RARE).unwrap());
    let middle = now() - TimeDelta::seconds(POSTS * 5);
    let filters = [
        ("all", all.clone(), full),
        ("a common status", Filter { status: Some(PostStatus::Published), ..all.clone() }, full),
        ("a rare status", Filter { status: Some(PostStatus::Failed), ..all.clone() }, few),
        ("a status of none", Filter { status: Some(PostStatus::Queued), ..all.clone() }, 0),
        ("a common platform", Filter { platform: platform("x"), ..all.clone() }, full),
        ("a rare platform", Filter { platform: platform("reddit"), ..all.clone() }, few),
        ("a platform of none", Filter { platform: platform("threads"), ..all.clone() }, 0),
        ("a busy account", Filter { social_account_id: account(3), ..all.clone() }, full),
        ("a quiet account", Filter { social_account_id: account(11), ..all.clone() }, few),
        ("an unknown account", Filter { social_account_id: account(12), ..all.clone() }, 0),
        ("a busy profile", Filter { profile_id: profile(1), ..all.clone() }, full),
        ("a quiet profile", Filter { profile_id: profile(2), ..all.clone() }, few),
        ("a busy tenant", Filter { tenant_id: platform("busy"), ..all.clone() }, full),
        ("a quiet tenant", Filter { tenant_id: platform("quiet"), ..all.clone() }, few),
        ("a time", Filter { created_before: Some(middle), ..all.clone() }, full),
        (
            "a rare status on a common platform",
            Filter { status: Some(PostStatus::Failed), platform: platform("x"), ..all.clone() },
            few,
        ),
    ];
    let after = Cursor { created_at: middle, id: Uuid::max() };
    let filters = filters.map(|(name, filter, count)| (name, unbounded(OWNER), filter, count));
    let limited = ("a busy bound", Access::new(OWNER, &bound), all, full);
    for (name, access, filter, count) in filters.into_iter().chain([limited]) {
        let first = Request { after: None, limit: 25 };
        let page = reads(&db, MOST, name, async || posts::list(&db, access, &filter, first).await).await;
        assert_eq!(page.items.len(), count, "{name}");
        assert!(page.items.is_sorted_by(|one, next| one.created_at > next.created_at), "{name}");
        let next = Request { after: Some(after), ..first };
        let page = reads(&db, MOST, name, async || posts::list(&db, access, &filter, next).await).await;
        assert!(page.items.iter().all(|post| post.created_at < middle), "{name}");
    }
    let (first, webhook) = (Request { after: None, limit: 25 }, domain::WebhookId(id(6, 1)));
    reads(&db, MOST, "deliveries", async || {
        deliveries::list(&db, OWNER, webhook, &deliveries::Filter::default(), first).await
    })
    .await;
    reads(&db, MOST, "events", async || {
        let page = Request { after: Some(Cursor { created_at: middle, id: Uuid::nil() }), limit: 25 };
        events::read(&db, unbounded(OWNER), &[], page).await
    })
    .await;
    let trail = audit::Filter::default;
    let action = |name: &str| audit::Filter { action: Some(name.to_owned()), ..trail() };
    let key = |number| audit::Filter { key: Some(id(11, number)), ..trail() };
    let member = |number| audit::Filter { member: Some(id(12, number)), ..trail() };
    let object = |number| audit::Filter { object: Some(id(13, number)), ..trail() };
    let filters = [
        ("a common action", action("session.started"), full),
        ("a rare action", action("member.removed"), few),
        ("an action of none", action("member.joined"), 0),
        ("a common key", key(1), full),
        ("a rare key", key(2), few),
        ("an unknown key", key(3), 0),
        ("a common member", member(1), full),
        ("a rare member", member(2), few),
        ("an unknown member", member(3), 0),
        ("a common object", object(1), full),
        ("a rare object", object(2), few),
        ("an unknown object", object(3), 0),
        ("a time of the trail", audit::Filter { to: Some(middle), ..trail() }, full),
    ];
    for (name, filter, count) in filters {
        let page =
            reads(&db, MOST, name, async || audit::list(&db, OWNER, filter.clone(), first).await).await;
        assert_eq!(page.items.len(), count, "{name}");
    }
    reads(&db, MOST, "a timeline", async || {
        timeline::list(&db, unbounded(OWNER), id(3, 7).into(), WHOLE, None).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_events_are_found_without_reading_the_others() {
    let db = busy().await;
    // Of these weeks, by the id.
    let moved = "update events set id = (left(uuid_at(created_at)::text, 24) || right(id::text, 12))::uuid";
    for statement in [moved, "vacuum analyze events"] {
        tests::sql(&db, statement).await;
    }
    let names = EventName::ALL;
    let whole = || unbounded(OWNER).whole().unwrap();
    let all = reads(&db, MOST, "events", async || events::newest(&db, whole(), names, None, 25).await).await;
    assert_eq!(all.len(), 25);
    let last = all.last().map(|event| event.id);
    let next = reads(&db, MOST, "older", async || events::newest(&db, whole(), names, last, 25).await).await;
    assert!(next.len() == 25 && next[0].created_at < all[24].created_at, "{next:#?}");
    let rare = [EventName::WebhookFailing];
    let none = reads(&db, MOST, "rare", async || events::newest(&db, whole(), &rare, None, 25).await).await;
    assert_eq!(none, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_periodic_query_reads_a_bounded_number_of_rows() {
    let db = busy().await;
    let schedule = CollectionSchedule {
        max_age: TimeDelta::days(30),
        min_interval: Duration::from_secs(3600),
        per_hour: Duration::from_secs(600),
        per_account: 20,
        per_platform: 100,
    };
    // Nearly all targets are due.
    let due = reads(&db, 5000, "metrics", async || metrics::due(&db, "x", true, schedule, now()).await).await;
    assert_eq!(due.len(), 100);
    let timing = Timing {
        grace: Duration::from_secs(30),
        row_interval: Duration::from_secs(60),
        horizon: Duration::from_secs(24 * 3600),
        renewal_ages: &[("x", Duration::from_secs(60))],
    };
    reads(&db, MOST, "sweep", async || sweep::sweep(&db, timing, 100).await).await;
    let kept = Retention { events: TimeDelta::days(30), timelines: TimeDelta::hours(1) };
    let deleted =
        reads(&db, 5000, "old timelines", async || retention::delete_timelines(&db, kept).await).await;
    assert!(deleted > 0);
    reads(&db, MOST, "old entries of the audit trail", async || audit::prune(&db, 100).await).await;
    reads(&db, MOST, "old snapshots", async || metrics::prune(&db, 100, now()).await).await;
    reads(&db, MOST, "messages", async || outbox::claim(&db, 64, Duration::from_secs(60)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_of_a_dead_endpoint_is_not_read_through() {
    const BACKLOG: i64 = 50_000;
    let db = busy().await;
    let sql = format!(
        "truncate outbox;
         insert into webhooks (id, org_id, mode, url, events, secret_sealed, failures, failing_since, probe_at, open_from)
         values (id(6, 2), '{org}', 'live', 'https://example.com', '{{*}}', '', 10, now() - interval '3 hours',
           now() + interval '10 minutes', now() - interval '3 hours');
         insert into deliveries (id, event_id, webhook_id, org_id, mode, event, status, created_at)
         select overlay(id(9, n)::text placing left(uuid_at(at)::text, 13) from 1 for 13)::uuid, id(7, n), id(6, 2),
           '{org}', 'live', 'post.published', 'pending', at
         from generate_series(1, {BACKLOG}) n, lateral (select now() - interval '2 hours' + n * interval '1 ms' as at) t;
         analyze;",
        org = OWNER.org
    );
    tests::sql(&db, &sql).await;
    let (dead, lease, most) = (domain::WebhookId(id(6, 2)), Duration::from_secs(60), 500);
    let state =
        reads(&db, most, "waking", async || drain::wake(&db, OWNER, dead, lease).await).await.unwrap();
    assert!(state.health.probe_in.is_some());
    let claimed =
        reads(&db, most, "a probe", async || drain::claim(&db, dead, state.open_from, 1, lease).await).await;
    assert_eq!(claimed.claims.len(), 1);
    let report = drain::Report {
        failures: 1,
        has_succeeded: false,
        error: None,
        patience: domain::retry::delivery_schedule(),
        probe_interval: lease,
    };
    let report = async || drain::report(&db, OWNER, dead, report, now()).await;
    assert_eq!(reads(&db, most, "a failed probe", report).await.health.probe_in, Some(lease));
    let sleep = reads(&db, most, "sleeping", async || drain::sleep(&db, dead).await).await;
    assert!(matches!(sleep, drain::Sleep::Until { .. }), "{sleep:?}");
    let day = Duration::from_secs(24 * 3600);
    let expire = async || drain::expire(&db, dead, state.open_from, day).await;
    assert_eq!(reads(&db, most, "expiring", expire).await, 0);
    let backlog = reads(&db, most, "metrics", async || backlog::read(&db, &[]).await).await;
    assert_eq!(backlog.deliveries.number, 0, "they wait for their receiver");
    let timing = Timing {
        grace: Duration::from_secs(30),
        row_interval: Duration::from_secs(60),
        horizon: Duration::from_secs(24 * 3600),
        renewal_ages: &[],
    };
    tests::sql(&db, "update webhooks set awake_until = null").await;
    reads(&db, MOST, "sweeping", async || sweep::sweep(&db, timing, 500).await).await;
}

/// Open targets of the test below, which were due and have not ended.
const OPEN: i64 = 300;

#[tokio::test(flavor = "multi_thread")]
async fn what_operators_ask_on_call_reads_only_what_is_open() {
    let db = busy().await;
    // Together with those of the busy organization a hundred thousand posts. The open ones are of ten organizations.
    tests::sql(
        &db,
        &format!(
            "insert into organizations (id, name) select id(10, n), 'Organization ' || n from generate_series(1, 10) n;
             insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name)
             select id(12, n), id(10, n), 'live', case when n % 2 = 0 then 'x' else 'threads' end, n, n, n
             from generate_series(1, 10) n;
             insert into posts (id, org_id, mode, status, is_draft, created_at, updated_at)
             select id(13, n), id(10, n % 10 + 1), 'live', case when n <= {OPEN} then 'publishing' else 'published' end,
               false, now() - interval '1 hour', now() - interval '1 hour'
             from generate_series(1, 40000) n;
             insert into targets (id, post_id, org_id, mode, account_id, platform, status, error_code, next_attempt_at,
               freeze_id, updated_at)
             select id(14, n), id(13, n), id(10, n % 10 + 1), 'live', id(12, n % 10 + 1),
               case when n % 10 % 2 = 1 then 'x' else 'threads' end,
               case when n <= {OPEN} then 'failed' else 'published' end,
               case when n <= {OPEN} then case n % 3 when 0 then 'rate_limited' when 1 then 'frozen' end end,
               case when n <= {OPEN} then case n % 3 when 2 then now() - interval '10 minutes'
                 else now() + interval '1 hour' end end, null, now() - interval '1 hour'
             from generate_series(1, 40000) n;
             analyze;"
        ),
    )
    .await;
    let all = operators::Filter {
        kind: Some(operators::Kind::Target),
        org: None,
        platform: None,
        account: None,
        code: None,
        is_failing: false,
        patience: Duration::from_secs(300),
        limit: 100,
    };
    let few = 20 * OPEN;
    let summary = reads(&db, few, "the summary", async || operators::summary(&db, &all).await).await;
    let numbers = (summary.all.stuck, summary.all.overdue, summary.all.throttled, summary.all.frozen);
    assert_eq!(numbers, (OPEN, OPEN / 3, OPEN / 3, OPEN / 3));
    let of = |loads: &[operators::Load]| {
        loads.iter().map(|load| (load.id.clone(), load.stuck)).collect::<Vec<_>>()
    };
    assert_eq!(of(&summary.platforms), [("threads".to_owned(), OPEN / 2), ("x".to_owned(), OPEN / 2)]);
    assert!(
        summary.organizations.len() == 10 && summary.organizations.iter().all(|one| one.stuck == OPEN / 10)
    );
    assert!(summary.organizations[0].name.as_ref().is_some_and(|name| name.starts_with("Organization ")));
    assert_eq!(summary.causes.len(), 3, "{:?}", summary.causes);
    let x = operators::Filter { platform: Some("x".to_owned()), ..all.clone() };
    assert_eq!(operators::summary(&db, &x).await.unwrap().all.stuck, OPEN / 2);

    let stuck = reads(&db, few, "the list", async || operators::stuck(&db, &all, &[]).await).await;
    assert_eq!(stuck.len(), 100);
    let account = domain::AccountId(id(12, 3));
    let one = operators::Filter { account: Some(account), code: Some("frozen".to_owned()), ..all.clone() };
    let stuck = reads(&db, few, "a filtered list", async || operators::stuck(&db, &one, &[]).await).await;
    assert!(!stuck.is_empty() && stuck.iter().all(|item| item.account == Some(account.0)), "{stuck:?}");
    reads(&db, few, "what may be live", async || operators::may_be_live(&db, &all, TimeDelta::days(7)).await)
        .await;
    reads(&db, few, "what is frozen", async || freezes::list(&db).await).await;
    reads(&db, few, "an id", async || operators::locate(&db, id(14, 7)).await).await;
}

/// A post that waits for weeks may be retried as often as its owner likes.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_reads_the_timeline_of_its_target_once() {
    const ENTRIES: i64 = 1000;
    let db = numbered(1).await;
    tests::sql(
        &db,
        &format!(
            "insert into organizations (id, name) values ('{org}', 'Acme');
             insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name)
             values (id(2, 1), '{org}', 'live', 'x', 1, 'ada', 'Ada');
             insert into posts (id, org_id, mode, status, is_draft)
             select id(3, n), '{org}', 'live', 'publishing', false from generate_series(1, 2000) n;
             insert into targets (id, post_id, org_id, mode, account_id, platform, status, wait_reason, wait_since,
               next_attempt_at)
             select id(4, n), id(3, n), '{org}', 'live', id(2, 1), 'x', 'queued', 'rest', now(), now() + interval '1 hour'
             from generate_series(1, 2000) n;
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
             select '{org}', 'live', id(3, n), id(4, n), now(), 'rest', ''
             from generate_series(1, 2000) n, generate_series(1, 5);
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
             select '{org}', 'live', id(3, 1), id(4, 1), now(), case n % 2 when 0 then 'rest' else 'retry' end, ''
             from generate_series(1, {ENTRIES}) n;
             analyze;",
            org = OWNER.org
        ),
    )
    .await;
    let key = TargetKey { owner: OWNER, post: id(3, 1).into(), target: id(4, 1).into(), version: 1 };
    let begin = async || publishing::begin(&db, key, Purpose::Publish).await;
    let begun = reads(&db, ENTRIES + 100, "an attempt", begin).await;
    assert!(matches!(begun, BeginResult::Early(_)), "{begun:?}");
}

#[tokio::test]
async fn deleting_a_row_scans_no_table() {
    let db = database().await;
    let unindexed: Vec<(String, String, String)> = sqlx::query_as(
        "select c.conrelid::regclass::text, a.attname::text, c.confrelid::regclass::text
         from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
         where c.contype = 'f' and c.conparentid = 0 and not exists (
           select from pg_index i
           where i.indrelid = c.conrelid and i.indisvalid and i.indkey[0] = a.attnum
             and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = format('(%s IS NOT NULL)', a.attname)))",
    )
    .fetch_all(&db)
    .await
    .unwrap();
    for (table, column, parent) in unindexed {
        assert!(KEPT.contains(&parent.as_str()), "{table}.{column} refers to {parent} and has no index");
    }
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.sqlx")).unwrap() {
        let file: BTreeMap<String, Value> =
            serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        let query = file["query"].as_str().unwrap();
        for parent in KEPT {
            assert!(
                !query.contains(&format!("delete from {parent} ")),
                "a row of {parent} is deleted:\n{query}"
            );
        }
    }
}

/// Pushes a message and commits it.
async fn push(db: &Pool) {
    let mut tx = store::begin(db).await.unwrap();
    let message = domain::outbox::Message::PostCanceled { post: id(3, 1).into(), owner: OWNER };
    outbox::push(&mut tx, &message).await.unwrap();
    tx.commit().await.unwrap();
}

/// Sends a notification that no process sends, and returns how many came before it.
async fn notified(db: &Pool, listener: &mut Listener) -> u32 {
    tests::sql(db, "select pg_notify('outbox', 'last')").await;
    let mut notified = 0;
    while listener.recv().await.unwrap().payload() != "last" {
        notified += 1;
    }
    notified
}

#[tokio::test(flavor = "multi_thread")]
async fn many_transactions_notify_relays_a_few_times() {
    const TRANSACTIONS: u32 = 300;
    let db = database().await;
    tests::sql(&db, &format!("insert into organizations (id, name) values ('{}', 'Acme')", OWNER.org)).await;
    let mut listener = Listener::connect_with(&db).await.unwrap();
    listener.listen(outbox::CHANNEL).await.unwrap();
    // A relay of the same process is woken without a notification.
    let mut commits = Commits::subscribe();
    push(&db).await;
    commits.next().await;
    assert_eq!(notified(&db, &mut listener).await, 0, "the transaction itself notified");

    let begun = Instant::now();
    let notifying = tokio::spawn({
        let (db, mut commits) = (db.clone(), Commits::subscribe());
        async move { store::notify_relays(&db, &mut commits).await }
    });
    futures::future::join_all((0..TRANSACTIONS).map(|_| push(&db))).await;
    // The relay of another process hears of the last one.
    listener.recv().await.unwrap();
    let notified = 1 + notified(&db, &mut listener).await;
    let most = begun.elapsed().div_duration_f64(NOTIFY_INTERVAL) + 2.0;
    assert!(f64::from(notified) <= most, "{notified} notifications in the time of {most}");
    assert!(!notifying.is_finished(), "it goes on");
    notifying.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_many_posts_is_removed_in_parts() {
    const POSTS: i64 = 1050;
    let db = numbered(4).await;
    tests::sql(
        &db,
        &format!(
            "insert into organizations (id, name) values ('{org}', 'Acme');
             insert into accounts (id, org_id, mode, platform, network_unique_id, username, display_name, grant_version,
               grant_sealed)
             select id(2, n), '{org}', 'live', 'x', n, n, n, 7, '' from generate_series(1, 2) n;
             insert into posts (id, org_id, mode, status, is_draft, scheduled_at)
             select id(3, n), '{org}', 'live', 'scheduled', false, now() + interval '1 day'
             from generate_series(1, {POSTS}) n;
             insert into containers (id, post_id, org_id, mode, position, content)
             select id(9, n), id(3, n), '{org}', 'live', 0, 'hello' from generate_series(1, {POSTS}) n;
             insert into targets (id, post_id, org_id, mode, account_id, platform)
             select id(4, n), id(3, n), '{org}', 'live', id(2, 1), 'x' from generate_series(1, {POSTS}) n;
             -- Every tenth post has another account.
             insert into targets (id, post_id, org_id, mode, account_id, platform)
             select id(5, n), id(3, n), '{org}', 'live', id(2, 2), 'x' from generate_series(10, {POSTS}, 10) n;",
            org = OWNER.org
        ),
    )
    .await;
    let canceled = async || -> (i64, i64) {
        // Rows that one transaction wrote have its number.
        sqlx::query_as(
            "select coalesce(sum(rows), 0)::bigint, coalesce(max(rows), 0)
             from (select count(*) as rows from targets where status = 'canceled' group by xmin::text) t",
        )
        .fetch_one(&db)
        .await
        .unwrap()
    };
    let account = domain::AccountId(id(2, 1));
    let by = Actor::OPERATOR;
    assert!(disconnect::disconnect(&db, unbounded(OWNER), account, &by, now()).await.unwrap());
    assert_eq!(canceled().await, (disconnect::BATCH, disconnect::BATCH));

    // A target that is not canceled yet is not published: an attempt finds the account disconnected.
    let last = u128::try_from(POSTS - 1).unwrap();
    let key = TargetKey { owner: OWNER, post: id(3, last).into(), target: id(4, last).into(), version: 1 };
    tests::sql(&db, &format!("update targets set next_attempt_at = null where id = '{}'", id(4, last))).await;
    let BeginResult::Attempt(attempt) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("no attempt");
    };
    assert_eq!(attempt.barred, Some(Barred::Disconnected));

    let disconnection = Disconnection { account, owner: OWNER, platform: "x".to_owned(), grant_version: 7 };
    let (mut after, mut parts) = (None, 0);
    while let Some(post) = disconnect::cancel_next(&db, &disconnection, after, now()).await.unwrap() {
        (after, parts) = (Some(post), parts + 1);
        assert!(canceled().await.1 <= disconnect::BATCH);
    }
    assert_eq!((canceled().await.0, parts), (POSTS, POSTS / disconnect::BATCH));
    let statuses: Vec<(String, i64)> =
        sqlx::query_as("select status, count(*) from posts group by status order by status")
            .fetch_all(&db)
            .await
            .unwrap();
    assert_eq!(statuses, [("failed".to_owned(), POSTS - POSTS / 10), ("scheduled".to_owned(), POSTS / 10)]);

    // An account that is connected again loses nothing more.
    tests::sql(
        &db,
        &format!(
            "update targets set status = 'pending' where account_id = '{account}';
             update accounts set status = 'active', grant_version = 8 where id = '{account}';"
        ),
    )
    .await;
    assert_eq!(disconnect::cancel_next(&db, &disconnection, None, now()).await.unwrap(), None);
    assert_eq!(canceled().await.0, 0);
}
