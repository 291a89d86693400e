//! Connections and transactions.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_reconciliation_and_its_entry_of_the_audit_trail_are_one() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    create(&db, owner, draft_of(&[&ada])).await;
    let parked = outbox::claim(&db, 10, Duration::ZERO).await.unwrap();
    outbox::park(&db, parked[0].id, "refused").await.unwrap();
    let past = "now() - interval '1 minute'";
    tests::sql(
        &db,
        &format!("update posts set created_at = {past}, updated_at = {past}; update targets set updated_at = {past}"),
    )
    .await;
    let waiting = async || -> (i64, i64) {
        let counts = "select count(*) filter (where parked_at is null), (select count(*) from audit_entries
           where action = 'installation.reconciled') from outbox";
        sqlx::query_as(counts).fetch_one(&db).await.unwrap()
    };
    let reconcile = async || {
        let by = Actor { operator: Some("ada".to_owned()), ..Actor::OPERATOR };
        operators::reconcile(&db, &[], true, Some("a test"), &by, Utc::now()).await
    };
    tests::sql(
        &db,
        "alter table audit_entries add constraint refused check (action <> 'installation.reconciled')",
    )
    .await;
    assert!(reconcile().await.is_err());
    assert_eq!(waiting().await, (0, 0), "nothing is resumed without an entry");
    tests::sql(&db, "alter table audit_entries drop constraint refused").await;
    let done = reconcile().await.unwrap();
    assert_eq!((done.resumed, done.unparked, waiting().await), (1, 1, (2, 1)));
}

/// As it does when its clock is set while a transaction is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_the_database_ends_is_an_outage() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let (one, other) = (store::connect(&url, 1).await.unwrap(), store::connect(&url, 1).await.unwrap());
    let mut tx = store::begin(&one).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *tx).await.unwrap();
    sqlx::query("set idle_in_transaction_session_timeout = '1ms'").execute(&mut *tx).await.unwrap();
    tests::wait_until("the session to end", async || {
        let is_open = sqlx::query_scalar("select exists (select from pg_stat_activity where pid = $1)");
        let is_open: bool = is_open.bind(pid).fetch_one(&other).await.unwrap();
        if is_open { Err("it is open") } else { Ok(()) }
    })
    .await;
    let error = sqlx::query("select 1").execute(&mut *tx).await.unwrap_err();
    assert!(store::is_unavailable(&error), "{error:?}");
}

/// A client hangs up, or a worker ends an activity, while a transaction begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_begin_leaves_no_transaction_open() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let (one, other) = (store::connect(&url, 1).await.unwrap(), store::connect(&url, 1).await.unwrap());
    for polls in 0..20 {
        let mut begin = Box::pin(store::begin(&one));
        let mut left = polls;
        let was_dropped = std::future::poll_fn(|cx| match begin.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending if left == 0 => Poll::Ready(true),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        });
        let was_dropped = was_dropped.await;
        drop(begin);
        let org = organizations::create(&one, "Acme").await.unwrap();
        let is_committed = sqlx::query_scalar("select exists (select from organizations where id = $1)");
        let is_committed: bool = is_committed.bind(org.0).fetch_one(&other).await.unwrap();
        assert!(is_committed, "a write after {polls} polls was not committed");
        if !was_dropped {
            return;
        }
    }
    panic!("a transaction begins after a few polls");
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_is_measured() {
    let db = database().await;
    assert!(::store::skew(&db, tests::now).await.unwrap() < Duration::from_secs(5));
    let ahead = || tests::now() + TimeDelta::seconds(60);
    let behind = || tests::now() - TimeDelta::seconds(60);
    for distance in [::store::skew(&db, ahead).await.unwrap(), ::store::skew(&db, behind).await.unwrap()] {
        assert!(distance > Duration::from_secs(50), "{distance:?}");
    }
}
