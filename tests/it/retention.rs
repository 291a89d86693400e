//! Old events, deliveries and timelines are deleted, without holding up what is written meanwhile.

use crate::{WHOLE, database};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, OrgId, Owner};
use futures::future::join_all;
use sqlx::AssertSqlSafe;
use std::collections::BTreeMap;
use store::{
    Pool,
    bounds::unbounded,
    page::Request,
    posts::timeline,
    upkeep::retention::{self, Report, Retention},
    webhooks::events,
};
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
const RETENTION: Retention = Retention { events: TimeDelta::days(30), timelines: TimeDelta::days(365) };

fn now() -> DateTime<Utc> {
    tests::now()
}

fn weeks(weeks: i64) -> DateTime<Utc> {
    now() + TimeDelta::weeks(weeks)
}

async fn organization() -> Pool {
    let db = database().await;
    tests::sql(&db, &format!("insert into organizations (id, name) values ('{ORG}', 'Acme')")).await;
    db
}

/// Writes an event with a delivery, as of a process whose clock shows `at`.
async fn happen(db: &Pool, at: DateTime<Utc>) {
    tests::sql(
        db,
        &format!(
            "with event as (
               insert into events (id, org_id, mode, event, body)
               select (left(uuid_at('{at}')::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid,
                 '{ORG}', 'live', 'post.published', '{{}}' returning id)
             insert into deliveries (id, event_id, webhook_id, org_id, mode, event)
             select id, id, gen_random_uuid(), '{ORG}', 'live', 'post.published' from event"
        ),
    )
    .await;
}

async fn partition(db: &Pool, at: DateTime<Utc>) -> Report {
    retention::partition(db, RETENTION, Some(at)).await.unwrap()
}

/// Returns the number of rows of each partition that has some.
async fn rows(db: &Pool, table: &str) -> BTreeMap<String, i64> {
    let query = format!("select tableoid::regclass::text, count(*) from {table} group by 1");
    let rows: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(query)).fetch_all(db).await.unwrap();
    rows.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_week_has_a_partition_and_old_ones_are_dropped() {
    let db = organization().await;
    let report = partition(&db, now()).await;
    assert_eq!((report.detached, report.discarded, report.is_partial), (0, 0, false));
    assert!(report.until >= weeks(4), "the migration and this call make the next weeks");
    // Nothing is old yet.
    let longer = Retention { events: TimeDelta::days(365), ..RETENTION };
    assert!(retention::partition(&db, longer, Some(weeks(12))).await.unwrap().created >= 2 * 11);
    for week in 0..12 {
        happen(&db, weeks(week)).await;
    }
    for table in ["events", "deliveries"] {
        let found = rows(&db, table).await;
        assert_eq!(found.len(), 12, "{found:?}");
        assert!(!found.contains_key(&format!("{table}_default")), "{found:?}");
    }
    // A stream is read across partitions.
    let owner = Owner { org: ORG, mode: Mode::Live };
    let page = Request { after: None, limit: 100 };
    assert_eq!(events::read(&db, unbounded(owner), &[], page).await.unwrap().events.len(), 12);

    // Thirty days before week 12 is in week 7 or 8, and what is as old as that may be in the same partition.
    let report = partition(&db, weeks(12)).await;
    assert!(report.detached >= 2 * 5 && report.discarded >= report.detached, "{report:?}");
    let kept: i64 = rows(&db, "events").await.values().sum();
    assert!((4..=5).contains(&kept), "{kept} are kept");
    assert_eq!(rows(&db, "deliveries").await.values().sum::<i64>(), kept);
    let oldest: DateTime<Utc> = sqlx::query_scalar("select uuid_time(id) from events order by id limit 1")
        .fetch_one(&db)
        .await
        .unwrap();
    assert!(oldest <= weeks(12) - RETENTION.events + TimeDelta::weeks(1), "no younger one is missing");
    let leftover: i64 = sqlx::query_scalar("select count(*) from pg_class where relname like '%detached%'")
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(leftover, 0);
    let again = partition(&db, weeks(12)).await;
    assert_eq!((again.created, again.detached, again.discarded), (0, 0, 0));
}

/// As when a week had too many rows in the default partition for them to be moved.
#[tokio::test(flavor = "multi_thread")]
async fn a_week_without_a_partition_is_reported_and_its_rows_are_deleted_in_one_pass() {
    let db = organization().await;
    let longer = Retention { events: TimeDelta::days(365), ..RETENTION };
    retention::partition(&db, longer, Some(weeks(12))).await.unwrap();
    let bounds = "select name, uuid_time(upper_bound) from partitions('events')
                  where uuid_time(upper_bound) > now() + interval '5 weeks' order by upper_bound limit 2";
    let bounds: Vec<(String, DateTime<Utc>)> = sqlx::query_as(bounds).fetch_all(&db).await.unwrap();
    let [(_, begin), (missing, end)] = &bounds[..] else { panic!("two weeks: {bounds:?}") };
    tests::sql(&db, &format!("alter table events detach partition {missing}; drop table {missing}")).await;
    let report = retention::partition(&db, longer, Some(now())).await.unwrap();
    assert_eq!((report.until, report.default_bytes), (*begin, 0));
    let rows_of_week = format!(
        "insert into events (id, org_id, mode, event, body)
         select (left(uuid_at('{begin}')::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid,
           '{ORG}', 'live', 'post.published', '{{}}' from generate_series(1, 1200)"
    );
    tests::sql(&db, &rows_of_week).await;
    assert_eq!(rows(&db, "events").await, BTreeMap::from([("events_default".to_owned(), 1200)]));
    let report = partition(&db, *end + RETENTION.events + TimeDelta::weeks(1)).await;
    assert!(report.discarded >= 1200, "{report:?}");
    assert_eq!(rows(&db, "events").await, BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_partition_was_made_for_is_moved_into_it_later() {
    let db = organization().await;
    // A clock that is ahead, or housekeeping that did not happen.
    happen(&db, weeks(10)).await;
    happen(&db, weeks(3000)).await;
    assert_eq!(rows(&db, "events").await, BTreeMap::from([("events_default".to_owned(), 2)]));
    let report = partition(&db, weeks(9)).await;
    assert!(report.created > 0 && !report.is_partial, "{report:?}");
    let found = rows(&db, "events").await;
    assert_eq!((found.len(), found["events_default"]), (2, 1), "{found:?}");
    assert_eq!(rows(&db, "deliveries").await.len(), 2);

    assert_eq!(partition(&db, weeks(9)).await.default_bytes, 2 * 8192, "a page of each table");

    // Rows that stay in the default partition are deleted one by one when they are old.
    tests::sql(
        &db,
        "update events set id = uuid_at(now() + interval '9 weeks') where id > uuid_at('2050-01-01')",
    )
    .await;
    happen(&db, weeks(30)).await;
    assert_eq!(rows(&db, "events").await["events_default"], 1);
    tests::sql(&db, "select partition_discard('events', now() + interval '31 weeks', 100)").await;
    assert!(!rows(&db, "events").await.contains_key("events_default"));
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_partition_at_once_make_each_partition_once() {
    let db = organization().await;
    let reports = join_all((0..8).map(|_| partition(&db, weeks(20)))).await;
    assert!(reports.iter().any(|report| report.created > 0), "{reports:?}");
    let last = partition(&db, weeks(20)).await;
    assert!(last.until >= weeks(24) && !last.is_partial, "{last:?}");
    let names: Vec<(String,)> =
        sqlx::query_as("select name from partitions('events')").fetch_all(&db).await.unwrap();
    let created: i32 = reports.iter().chain([&last]).map(|report| report.created).sum();
    // Two more exist by the migration.
    assert!(created >= 2 * 19 && names.len() <= 30, "{created}, {names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_partition_waits_for_nobody_and_holds_up_nobody() {
    let db = organization().await;
    partition(&db, now()).await;
    happen(&db, weeks(0)).await;
    let mut reader = store::begin(&db).await.unwrap();
    sqlx::query("select count(*) from events").fetch_one(&mut *reader).await.unwrap();
    let report = partition(&db, weeks(20)).await;
    assert!(
        report.is_partial && rows(&db, "events").await.len() == 1,
        "a transaction uses the table: {report:?}"
    );
    happen(&db, weeks(0)).await;
    reader.rollback().await.unwrap();
    let report = partition(&db, weeks(20)).await;
    assert!(report.detached > 0 && !report.is_partial, "{report:?}");
    assert_eq!(rows(&db, "events").await, BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_is_kept_for_a_year_after_the_end_of_its_post() {
    let db = organization().await;
    let owner = Owner { org: ORG, mode: Mode::Live };
    let posts = [
        ("published", 366, 400, 0),
        ("failed", 367, 800, 0),
        ("published", 364, 400, 1),
        // Scheduled two years ahead, and a draft that nobody finished.
        ("scheduled", 700, 700, 1),
        ("draft", 700, 700, 1),
    ];
    let mut ids = Vec::new();
    for (status, ended, created, entries) in posts {
        let id = Uuid::now_v7();
        tests::sql(
            &db,
            &format!(
                "insert into posts (id, org_id, mode, status, is_draft, created_at, updated_at)
                 values ('{id}', '{ORG}', 'live', '{status}', false, now() - interval '{created} days',
                   now() - interval '{ended} days');
                 insert into timeline (org_id, mode, post_id, at, kind, message)
                 values ('{ORG}', 'live', '{id}', now() - interval '{created} days', 'created', '')"
            ),
        )
        .await;
        ids.push((id, entries));
    }
    assert_eq!(retention::delete_timelines(&db, RETENTION).await.unwrap(), 2);
    assert_eq!(retention::delete_timelines(&db, RETENTION).await.unwrap(), 0);
    for (id, entries) in ids {
        assert_eq!(
            timeline::list(&db, unbounded(owner), id.into(), WHOLE, None).await.unwrap().items.len(),
            entries
        );
    }
}
