//! Numbers and actions of operators.

use super::*;
use ::store::{
    operators,
    publishing::freezes::{self, Scope as Frozen},
    usage::backlog,
};

/// Makes everything as old as two minutes.
async fn age(db: &Pool) {
    let past = "now() - interval '2 minutes'";
    let age = format!(
        "update posts set created_at = {past}, updated_at = {past}; update targets set updated_at = {past}"
    );
    tests::sql(db, &age).await;
}

async fn overdue_posts(db: &Pool) -> i64 {
    backlog::read(db, &[]).await.unwrap().posts.number
}

/// An alert pages for overdue posts.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_overdue_when_a_target_could_have_been_published() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("one".into()), ..draft_of(&[&ada]) }).await;
    age(&db).await;
    assert_eq!(overdue_posts(&db).await, 1);
    // It has a later time of its own.
    tests::sql(&db, "update targets set scheduled_at = now() + interval '1 hour'").await;
    assert_eq!(overdue_posts(&db).await, 0);
    tests::sql(&db, "update targets set scheduled_at = null").await;
    // It waits, as one does that is frozen or whose account rests.
    freezes::freeze(&db, &Frozen::Account(ada.id), None, "a test", &Actor::OPERATOR, at(1)).await.unwrap();
    assert!(matches!(begin(&db, owner, &post, 0).await.1, BeginResult::Held { .. }));
    assert_eq!(overdue_posts(&db).await, 0);
    tests::sql(&db, "update targets set next_attempt_at = now() - interval '2 minutes'").await;
    assert_eq!(overdue_posts(&db).await, 1);
    // A file of it is still being fetched.
    tests::sql(
        &db,
        "insert into media (id, org_id, mode, status, kind, filename, upload_expires_at)
         select gen_random_uuid(), org_id, mode, 'pending_upload', 'image', 'a.png', now() from posts;
         update containers set media = (select jsonb_build_array(jsonb_build_object('id', id)) from media)
         where position = 0",
    )
    .await;
    assert_eq!(overdue_posts(&db).await, 0);
    tests::sql(&db, "update media set status = 'ready'").await;
    assert_eq!(overdue_posts(&db).await, 1);
}

/// However many rows are overdue and stay so, each has its turn.
#[tokio::test(flavor = "multi_thread")]
async fn no_overdue_row_is_starved_by_older_ones() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let mut posts = HashSet::new();
    for number in 0..9 {
        let external_ref = Some(number.to_string());
        posts.insert(create(&db, owner, NewPost { external_ref, ..draft_of(&[&ada]) }).await.id);
    }
    age(&db).await;
    // One merely waits, and is looked at later.
    let waiting =
        create(&db, owner, NewPost { external_ref: Some("waiting".into()), ..draft_of(&[&ada]) }).await;
    age(&db).await;
    let look =
        format!("update targets set look_at = now() + interval '1 hour' where post_id = '{}'", waiting.id);
    tests::sql(&db, &format!("{look}; delete from outbox")).await;
    let timing = Timing {
        grace: Duration::from_secs(30),
        row_interval: Duration::ZERO,
        horizon: Duration::from_secs(3600),
        renewal_ages: &[],
    };
    for _ in 0..9 {
        sweep::sweep(&db, timing, 2).await.unwrap();
        for message in messages(&db).await {
            if let Message::PublishPost(job) = message {
                posts.remove(&job.post);
                assert_ne!(job.post, waiting.id, "it is not overdue");
            }
        }
    }
    assert_eq!(posts, HashSet::new(), "never swept");
    // The same for live ones whose thread is incomplete.
    let published = "update posts set status = 'published', swept_at = null;
         update targets set status = 'published', next_attempt_at = now() - interval '2 minutes'";
    tests::sql(&db, published).await;
    let mut incomplete = HashSet::new();
    for _ in 0..9 {
        sweep::sweep(&db, timing, 2).await.unwrap();
        incomplete.extend(messages(&db).await.into_iter().filter_map(|message| match message {
            Message::ResumePost(job) => Some(job.post),
            _ => None,
        }));
    }
    assert_eq!(incomplete.len(), 9, "swept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_nothing_ends_is_reported() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    age(&db).await;
    let grace = Duration::from_secs(30);
    let unending = async || sweep::unending(&db, grace, 10).await.unwrap();
    assert_eq!(unending().await, [], "its target is open");
    tests::sql(&db, "update targets set status = 'dead', error_message = 'refused'").await;
    assert_eq!(unending().await, [post.id]);
    let filter = operators::Filter {
        kind: Some(operators::Kind::Post),
        org: Some(owner.org),
        platform: None,
        account: None,
        code: None,
        is_failing: false,
        patience: grace,
        limit: 10,
    };
    let stuck = operators::stuck(&db, &filter, &[]).await.unwrap();
    assert_eq!(stuck[0].post, Some(post.id), "{stuck:?}");
    tests::sql(&db, "update posts set scheduled_at = now() + interval '1 hour'").await;
    assert_eq!(unending().await, [], "it is not due");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_rests_on_when_a_target_is_not_retried() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let until = tests::now() + TimeDelta::hours(1);
    publishing::rest_account(&db, owner, ada.id, until).await.unwrap();
    let rests = async || {
        let rests = sqlx::query_scalar("select rests_until is not null from accounts where id = $1");
        rests.bind(ada.id.0).fetch_one(&db).await.unwrap()
    };
    let target = post.targets[0].id;
    for status in ["published", "canceled"] {
        tests::sql(&db, &format!("update targets set status = '{status}', error_message = 'a test'")).await;
        let retried = operators::retry(&db, target.0, None, &Actor::OPERATOR, at(5)).await.unwrap();
        assert!(matches!(retried[..], [(_, operators::Retried::Unchanged(_))]), "{retried:?}");
        assert!(rests().await, "{status}");
    }
    for status in ["failed", "dead"] {
        publishing::rest_account(&db, owner, ada.id, until).await.unwrap();
        tests::sql(
            &db,
            &format!("update targets set status = '{status}'; update posts set status = 'publishing'"),
        )
        .await;
        operators::retry(&db, target.0, None, &Actor::OPERATOR, at(6)).await.unwrap();
        assert!(!rests().await, "{status}");
    }
}
