//! Messages in the outbox, and sweeps, which write them again.

use super::*;

/// While Temporal is away, sweeps would otherwise fill the outbox, which delays every post when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn an_overdue_row_has_one_message_however_often_it_is_swept() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    create(&db, owner, draft_of(&[&ada])).await;
    messages(&db).await;
    let past = "now() - interval '1 minute'";
    tests::sql(
        &db,
        &format!("update posts set created_at = {past}, updated_at = {past}; update targets set updated_at = {past}"),
    )
    .await;
    let timing = Timing {
        grace: Duration::ZERO,
        row_interval: Duration::ZERO,
        horizon: Duration::ZERO,
        renewal_ages: &[],
    };
    let sweep = async || sweep::sweep(&db, timing, 10).await.unwrap().overdue;
    assert_eq!([sweep().await, sweep().await, sweep().await], [1, 0, 0]);
    assert_eq!(messages(&db).await.len(), 1);
    assert_eq!(sweep().await, 1, "the message was sent");
    let parked = outbox::claim(&db, 10, Duration::ZERO).await.unwrap();
    outbox::park(&db, parked[0].id, "refused").await.unwrap();
    assert_eq!(sweep().await, 1, "the message is parked");
}

/// The workflow that a retry starts would wait until the time of a post that has ended.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_the_workflow_of_a_post_waits_for_a_retry_that_may_start_it() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    messages(&db).await;
    let mut tx = store::begin(&db).await.unwrap();
    let retry = Message::RetryTarget { target: post.targets[0].id, post: post.id, owner };
    outbox::push(&mut tx, &retry).await.unwrap();
    tx.commit().await.unwrap();
    let later = async || outbox::starts_later(&db, i64::MAX, owner.org, post.id).await.unwrap();
    assert!(later().await);
    messages(&db).await;
    assert!(!later().await, "it was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_does_not_wait_until_a_clock_that_was_set_back_shows_its_time_again() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    create(&db, owner, draft_of(&[&ada])).await;
    let claimed = async || outbox::claim(&db, 10, Duration::from_secs(60)).await.unwrap().len();
    assert_eq!([claimed().await, claimed().await], [1, 0], "the message is leased");
    tests::sql(&db, "update outbox set available_at = available_at + interval '1 hour'").await;
    assert_eq!(claimed().await, 1, "no lease lasts an hour");
}

/// Temporal's data may be lost at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_target_whose_reply_is_missing_is_swept_until_it_is_complete() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    messages(&db).await;
    let timing = Timing {
        grace: Duration::ZERO,
        row_interval: Duration::ZERO,
        horizon: Duration::ZERO,
        renewal_ages: &[],
    };
    let swept = async || {
        sweep::sweep(&db, timing, 10).await.unwrap();
        messages(&db).await.iter().filter(|message| matches!(message, Message::ResumePost(_))).count()
    };
    assert!(intend(&db, key.target, attempt.fence).await);
    publishing::capture(&db, key, 0, "9").await.unwrap();
    let live = End::Live { id: "9".to_owned(), url: Some("https://x.com/9".to_owned()), left_out: None };
    publishing::settle(&db, key, &live, Some(attempt.fence), Utc::now()).await.unwrap();
    assert_eq!(swept().await, 1, "the reply was not begun");
    let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert_eq!(swept().await, 1, "an attempt was under way");
    let (failure, wait) = (Failure::upstream(503, "later"), Duration::from_secs(60));
    let next = publishing::record_failure(&db, &attempt, &failure, wait).await.unwrap().unwrap();
    assert!(next > Utc::now(), "the next attempt is due at {next}");
    assert_eq!(swept().await, 0, "the next attempt is not due");
    publishing::record_processing(&db, key.target, attempt.fence, None, None).await.unwrap();
    assert_eq!(swept().await, 1, "the platform has processed the reply, and no attempt has taken that up");
    let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend_at(&db, key.target, 1, attempt.fence).await);
    publishing::capture(&db, key, 1, "10").await.unwrap();
    assert_eq!(swept().await, 1, "the thread is live, and its row still names a failure");
    let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(!publishing::mark_complete(&db, key, attempt.fence - 1, Utc::now()).await.unwrap());
    assert_eq!(swept().await, 1, "an attempt that lost the target completes nothing");
    assert!(publishing::mark_complete(&db, key, attempt.fence, Utc::now()).await.unwrap());
    assert_eq!(swept().await, 0, "nothing is left to do");
    let (_, BeginResult::Ended(TargetStatus::Published)) = begin(&db, owner, &post, 0).await else {
        panic!("the target has ended");
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_message_delays_only_itself() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let unreadable =
        r#"insert into outbox (org_id, message) select id, '{"type": "of_tomorrow"}' from organizations"#;
    tests::sql(&db, unreadable).await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let claimed = outbox::claim(&db, 64, Duration::from_secs(60)).await.unwrap();
    let [unreadable, readable] = &claimed[..] else { panic!("{claimed:?}") };
    assert!(unreadable.message.as_ref().unwrap_err().contains("of_tomorrow"));
    assert!(matches!(&readable.message, Ok(Message::PublishPost(job)) if job.post == post.id));
    outbox::park(&db, unreadable.id, "no").await.unwrap();
    outbox::postpone(&db, readable.id, Duration::ZERO).await.unwrap();
    let claimed = outbox::claim(&db, 64, Duration::from_secs(60)).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), [readable.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn organizations_take_turns_in_the_outbox() {
    let db = database().await;
    let (noisy, quiet) = (owner(&db).await, owner(&db).await);
    let ada = account(&db, noisy, "x", "1", "ada").await;
    for _ in 0..20 {
        create(&db, noisy, draft_of(&[&ada])).await;
    }
    let bob = account(&db, quiet, "x", "2", "bob").await;
    let post = create(&db, quiet, draft_of(&[&bob])).await;
    let claimed = outbox::claim(&db, 4, Duration::from_secs(60)).await.unwrap();
    let of_quiet = |claimed: &outbox::Claimed| matches!(&claimed.message, Ok(Message::PublishPost(job)) if job.post == post.id);
    assert_eq!((claimed.len(), claimed.iter().filter(|one| of_quiet(one)).count()), (4, 1));
}
