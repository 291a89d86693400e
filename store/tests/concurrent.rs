//! Calls that wait for each other's locks.

use super::*;
use ::store::{
    people::passkeys::{self, NewPasskey, Removal},
    publishing::freezes,
};
use domain::PersonId;
use sqlx::PgConnection;
use tests::wait_until;
use uuid::Uuid;

/// Waits until this number of sessions of the test's database wait for a lock.
pub(crate) async fn until_waiting(db: &Pool, sessions: i64) {
    wait_until("sessions to wait for a lock", async || {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(db).await.unwrap();
        if waiting == sessions { Ok(()) } else { Err(waiting) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_passkeys_that_are_removed_at_once_one_stays() {
    let db = database().await;
    let person = PersonId(Uuid::now_v7());
    let insert = "insert into people (id, created_at) values ($1, now())";
    sqlx::query(insert).bind(person.0).execute(&db).await.unwrap();
    let mut ids = Vec::new();
    for number in [1, 2] {
        let new = NewPasskey {
            credential_id: vec![number],
            static_state: Vec::new(),
            dynamic_state: Vec::new(),
            name: format!("Key {number}"),
        };
        ids.push(passkeys::add(&db, person, new, &Actor::OPERATOR, at(0)).await.unwrap().unwrap());
    }
    // Both begin, and wait for the same row.
    let mut tx = ::store::begin(&db).await.unwrap();
    let lock = "select from people where id = $1 for update";
    sqlx::query(lock).bind(person.0).execute(&mut *tx).await.unwrap();
    let removals = ids.iter().map(|id| {
        let (db, id) = (db.clone(), *id);
        tokio::spawn(
            async move { passkeys::remove(&db, person, id, "", &Actor::OPERATOR, at(1)).await.unwrap() },
        )
    });
    let removals: Vec<_> = removals.collect();
    until_waiting(&db, 2).await;
    tx.commit().await.unwrap();
    let mut results = Vec::new();
    for removal in removals {
        results.push(removal.await.unwrap());
    }
    let count = |result| results.iter().filter(|found| **found == result).count();
    assert_eq!((count(Removal::Removed), count(Removal::Last)), (1, 1), "{results:?}");
    assert_eq!(passkeys::list(&db, person).await.unwrap().len(), 1);
}

/// Clients repeat a call that gets 503.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_an_outage() {
    let db = database().await;
    for name in ["one", "two"] {
        organizations::create(&db, name).await.unwrap();
    }
    let lock = async |tx: &mut PgConnection, name: &str| {
        let lock = "select from organizations where name = $1 for update";
        sqlx::query(lock).bind(name).execute(tx).await
    };
    let mut first = ::store::begin(&db).await.unwrap();
    let mut second = ::store::begin(&db).await.unwrap();
    lock(&mut first, "one").await.unwrap();
    lock(&mut second, "two").await.unwrap();
    let (one, two) = tokio::join!(
        async {
            let locked = lock(&mut first, "two").await;
            drop(first);
            locked
        },
        async {
            let locked = lock(&mut second, "one").await;
            drop(second);
            locked
        }
    );
    let error = one.and(two).unwrap_err();
    assert!(store::is_unavailable(&error), "{error:?}");
}

/// `pg_dump` reads the tables for as long as it runs, and a migration that changes one waits for it. Writes into that
/// table would wait for the migration.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waits_for_a_backup_does_not_keep_others_waiting() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let db = store::connect(&url, 4).await.unwrap();
    // Stands for a migration that changes the outbox: no file of the first release changes a table.
    let undo = "drop function open_freezes;
                drop table freezes, operator_sessions, restoring_posts, installation, installation_beats;
                drop function server_lineage;
                delete from _sqlx_migrations where version = 9;
                create function change_outbox() returns trigger language plpgsql as $$ begin
                  lock table outbox in access exclusive mode;
                  return new;
                end $$;
                create trigger change_outbox before insert on _sqlx_migrations
                  for each row execute function change_outbox()";
    tests::sql(&db, undo).await;
    let mut backup = ::store::begin(&db).await.unwrap();
    sqlx::raw_sql("lock table outbox in access share mode").execute(&mut *backup).await.unwrap();
    let migrating = async { store::migrate(&db).await.expect("it waits for the backup's end") };
    let writing = async {
        until_waiting(&db, 1).await;
        let org = organizations::create(&db, "Acme").await.unwrap();
        let write = sqlx::query("insert into outbox (org_id, message) values ($1, '{}')").bind(org.0);
        write.execute(&db).await.expect("it does not wait for the end of the backup");
        backup.commit().await.unwrap();
    };
    tokio::join!(migrating, writing);
    assert_eq!(store::upkeep::schema::state(&db).await.unwrap(), store::upkeep::schema::Schema::Current);
}

/// A migration changes a table, or its rows are very many.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_swept_do_not_keep_others_from_it() {
    let url = tests::database_url(&crate::PROGRAM).await;
    // Sweeps that are given up hold their connections until the server ends their statements.
    let db = store::connect(&url, 20).await.unwrap();
    let owner = owner(&db).await;
    account(&db, owner, "x", "1", "ada").await;
    let overdue = "update accounts set granted_at = now() - interval '3 days', token_expires_at = now() - interval '2 days'";
    tests::sql(&db, overdue).await;
    messages(&db).await;
    let mut tx = ::store::begin(&db).await.unwrap();
    // Grants come after it.
    let lock = "set local idle_in_transaction_session_timeout = 0; lock table media in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut *tx).await.unwrap();
    let timing = Timing {
        grace: Duration::ZERO,
        row_interval: Duration::ZERO,
        horizon: Duration::ZERO,
        renewal_ages: &[("x", Duration::from_secs(3600))],
    };
    wait_until("the message of the grant", async || {
        let swept = tokio::time::timeout(Duration::from_secs(2), sweep::sweep(&db, timing, 10)).await;
        let sent = messages(&db).await;
        if matches!(sent[..], [Message::RenewGrant(_)]) {
            Ok(())
        } else {
            Err(format!("{swept:?}, {sent:?}"))
        }
    })
    .await;
}

/// The statement that writes an intent sees no freeze that is committed after it began.
#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_waits_for_the_intents_that_are_being_written() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, attempt) = begin(&db, owner, &post, 0).await;
    let fence = begun(attempt).fence;
    let mut tx = ::store::begin(&db).await.unwrap();
    let lock = "select from targets where id = $1 for update";
    sqlx::query(lock).bind(key.target.0).execute(&mut *tx).await.unwrap();
    let intending = tokio::spawn({
        let db = db.clone();
        async move { intend(&db, key.target, fence).await }
    });
    until_waiting(&db, 1).await;
    let freezing = tokio::spawn({
        let db = db.clone();
        async move {
            let scope = freezes::Scope::Account(ada.id);
            freezes::freeze(&db, &scope, None, "an outage", &Actor::OPERATOR, at(1)).await.unwrap()
        }
    });
    until_waiting(&db, 2).await;
    tx.commit().await.unwrap();
    assert!(intending.await.unwrap(), "it began before the freeze");
    assert_eq!(freezing.await.unwrap(), freezes::FreezeResult::Frozen);
    assert!(!intend(&db, key.target, fence).await, "none begins after the freeze");
}
