//! Messages that Temporal refused.

use super::*;
use ::store::operators;

/// Creates a post that is overdue, so that each sweep writes a message for it unless one waits.
async fn overdue(db: &Pool) {
    let owner = owner(db).await;
    let ada = account(db, owner, "x", "1", "ada").await;
    create(db, owner, draft_of(&[&ada])).await;
    messages(db).await;
    let past = "now() - interval '1 minute'";
    let age = format!(
        "update posts set created_at = {past}, updated_at = {past}; update targets set updated_at = {past}"
    );
    tests::sql(db, &age).await;
}

async fn sweep(db: &Pool) -> usize {
    let timing = Timing {
        grace: Duration::ZERO,
        row_interval: Duration::ZERO,
        horizon: Duration::ZERO,
        renewal_ages: &[],
    };
    sweep::sweep(db, timing, 10).await.unwrap().total()
}

/// Returns the number of messages that are parked, and of those that are not.
async fn counts(db: &Pool) -> (i64, i64) {
    let count = "select count(*) filter (where parked_at is not null), count(*) filter (where parked_at is null) from outbox";
    sqlx::query_as(count).fetch_one(db).await.unwrap()
}

async fn park(db: &Pool) {
    let claimed = outbox::claim(db, 10, Duration::ZERO).await.unwrap();
    assert_eq!(claimed.len(), 1);
    outbox::park(db, claimed[0].id, "refused").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_one_parked_message_however_often_temporal_refuses_it() {
    let db = database().await;
    overdue(&db).await;
    for _ in 0..3 {
        assert_eq!(sweep(&db).await, 1);
        park(&db).await;
    }
    assert_eq!(counts(&db).await, (1, 0));
    assert_eq!(operators::unpark(&mut db.acquire().await.unwrap()).await.unwrap(), 1);
    assert_eq!((counts(&db).await, messages(&db).await.len()), ((0, 1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_messages_of_one_row_are_sent_again_as_one() {
    let db = database().await;
    overdue(&db).await;
    sweep(&db).await;
    park(&db).await;
    let copy = "insert into outbox (org_id, message, overdue, parked_at, error)
                select org_id, message, overdue, parked_at, error from outbox";
    tests::sql(&db, copy).await;
    let other = "insert into outbox (org_id, message, parked_at, error)
                 select org_id, message, parked_at, error from outbox limit 1";
    tests::sql(&db, other).await;
    assert_eq!(
        operators::unpark(&mut db.acquire().await.unwrap()).await.unwrap(),
        2,
        "one of the row, and one that belongs to none"
    );
    assert_eq!(counts(&db).await, (0, 2));

    // While another message of the row waits, the parked one is not needed.
    messages(&db).await;
    sweep(&db).await;
    park(&db).await;
    assert_eq!(sweep(&db).await, 1);
    assert_eq!(operators::unpark(&mut db.acquire().await.unwrap()).await.unwrap(), 0);
    assert_eq!(counts(&db).await, (0, 1));
}
