//! Targets that wait for a freeze to be released.

use super::*;
use ::store::publishing::freezes::{self, Scope as Frozen};

/// Freezes an account, and lets a post of it meet the freeze.
async fn frozen(db: &Pool, name: &str) -> (Owner, Account, Post) {
    let owner = owner(db).await;
    let ada = account(db, owner, "x", name, name).await;
    let external_ref = Some(name.to_owned());
    let post = create(db, owner, NewPost { external_ref, ..draft_of(&[&ada]) }).await;
    freezes::freeze(db, &Frozen::Account(ada.id), None, "a test", &Actor::OPERATOR, at(1)).await.unwrap();
    let (_, waits) = begin(db, owner, &post, 0).await;
    assert!(matches!(waits, BeginResult::Held { .. }), "{waits:?}");
    (owner, ada, post)
}

async fn release(db: &Pool, account: AccountId) -> Option<u64> {
    let frozen = Frozen::Account(account);
    freezes::release(db, &frozen, None, Duration::ZERO, &Actor::OPERATOR, at(2)).await.unwrap()
}

async fn edit(db: &Pool, owner: Owner, post: &Post, change: impl FnOnce(&mut Edit)) -> Post {
    let mut edit = Edit {
        version: post.version,
        is_draft: false,
        scheduled_at: None,
        default_config: json!({}),
        metadata: posts::Metadata::default(),
        containers: None,
        accounts: None,
        deviations: posts::Deviations::default(),
        imports: Vec::new(),
        request_id: None,
        horizon: Duration::from_secs(24 * 3600),
    };
    change(&mut edit);
    match posts::edit(db, unbounded(owner), post.id, edit, tests::now()).await.unwrap() {
        posts::EditResult::Updated(edited) => *edited,
        refused => panic!("it has not begun: {refused:?}"),
    }
}

/// Returns the kinds of the entries in a post's timeline.
async fn kinds(db: &Pool, owner: Owner, post: &Post) -> Vec<String> {
    let timeline = timeline::list(db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
    timeline.into_iter().map(|entry| entry.kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_starts_no_post_that_was_made_a_draft_or_moved_far_off() {
    let db = database().await;
    for is_draft in [true, false] {
        let (owner, ada, post) = frozen(&db, if is_draft { "draft" } else { "far-off" }).await;
        let far = tests::now() + TimeDelta::days(30);
        let edited = edit(&db, owner, &post, |edit| {
            edit.is_draft = is_draft;
            edit.scheduled_at = (!is_draft).then_some(far);
        })
        .await;
        messages(&db).await;
        assert_eq!(release(&db, ada.id).await, Some(0), "a draft: {is_draft}");
        assert_eq!(messages(&db).await, [], "a draft: {is_draft}");
        let target = &now_of(&db, owner, &edited).await.targets[0];
        assert_eq!((target.status, target.next_attempt_at), (TargetStatus::Pending, None));
        assert!(!kinds(&db, owner, &post).await.contains(&"released".to_owned()));
        let mut tx = ::store::begin(&db).await.unwrap();
        assert_eq!(posts::resumption(&mut tx, owner, post.id).await.unwrap(), None, "it needs no workflow");
    }
}

/// A release was interrupted after three of five targets, and is continued with the same rate.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_is_continued_keeps_its_rate() {
    const PAUSE: Duration = Duration::from_secs(60);
    let db = database().await;
    let (owner, ada, first) = frozen(&db, "ada").await;
    let mut posts = vec![first];
    for name in ["one", "two", "three", "four"] {
        let post = create(&db, owner, NewPost { external_ref: Some(name.into()), ..draft_of(&[&ada]) }).await;
        assert!(matches!(begin(&db, owner, &post, 0).await.1, BeginResult::Held { .. }));
        posts.push(post);
    }
    let waits = |posts: &[Post]| {
        let ids: Vec<_> = posts.iter().map(|post| format!("'{}'", post.targets[0].id)).collect();
        format!("update targets set freeze_id = (select id from freezes) where id in ({})", ids.join(", "))
    };
    let release = async || {
        let frozen = Frozen::Account(ada.id);
        freezes::release(&db, &frozen, None, PAUSE, &Actor::OPERATOR, at(2)).await.unwrap()
    };
    tests::sql(&db, "update targets set freeze_id = null").await;
    tests::sql(&db, &waits(&posts[..3])).await;
    assert_eq!(release().await, Some(3));
    tests::sql(&db, &waits(&posts[3..])).await;
    assert_eq!(release().await, Some(2));
    let query =
        "select extract(epoch from next_attempt_at - min(next_attempt_at) over ())::float8 from targets
         order by next_attempt_at";
    let turns: Vec<f64> = sqlx::query_scalar(query).fetch_all(&db).await.unwrap();
    let turns: Vec<_> = turns.into_iter().map(f64::round).collect();
    assert_eq!(turns, [0.0, 60.0, 120.0, 180.0, 240.0]);
}

/// Between the edit and the next attempt, which would find the freeze again.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_was_edited_while_frozen_goes_on_after_a_release() {
    let db = database().await;
    let (owner, ada, post) = frozen(&db, "ada").await;
    let edited = edit(&db, owner, &post, |_| ()).await;
    release(&db, ada.id).await;
    let (_, begun) = begin(&db, owner, &edited, 0).await;
    assert!(matches!(begun, BeginResult::Attempt(_)), "{begun:?}");
}

/// The rest of a live post met the freeze, and was given up when the post was deleted from its platform.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_resumes_nothing_of_a_post_that_was_unpublished_while_frozen() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("ada".into()), ..draft_of(&[&ada]) }).await;
    let (key, attempt) = begin(&db, owner, &post, 0).await;
    publish(&db, key, 0, begun(attempt).fence, "main").await;
    tests::sql(&db, "update targets set next_attempt_at = now()").await;
    freezes::freeze(&db, &Frozen::Account(ada.id), None, "a test", &Actor::OPERATOR, at(1)).await.unwrap();
    let (_, waits) = begin(&db, owner, &post, 0).await;
    assert!(matches!(waits, BeginResult::Held { .. }), "{waits:?}");
    let withdrawn = publishing::withdraw(&db, owner, post.id, key.target).await.unwrap();
    assert!(matches!(withdrawn, Withdrawn::Live { .. }), "{withdrawn:?}");
    publishing::record_unpublished(&db, owner, post.id, key.target, at(30)).await.unwrap();
    assert_eq!(release(&db, ada.id).await, Some(0));
    let target = &now_of(&db, owner, &post).await.targets[0];
    assert_eq!((target.is_frozen, target.next_attempt_at), (false, None));
    assert_eq!(target.error_message.as_deref(), Some("the post was deleted from its platform"));
    let (_, ended) = begin(&db, owner, &post, 0).await;
    assert!(matches!(ended, BeginResult::Ended(TargetStatus::Published)), "{ended:?}");
}

/// A target that waited for the release when its account was disconnected has ended, and for a reason of its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_leaves_the_reason_of_a_target_that_was_canceled_while_frozen() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let bob = account(&db, owner, "x", "2", "bob").await;
    let post = create(&db, owner, draft_of(&[&ada, &bob])).await;
    freezes::freeze(&db, &Frozen::Account(ada.id), None, "a test", &Actor::OPERATOR, at(1)).await.unwrap();
    assert!(matches!(begin(&db, owner, &post, 0).await.1, BeginResult::Held { .. }));
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(2)).await.unwrap());
    let edited = edit(&db, owner, &post, |_| ()).await;
    let target = &edited.targets[0];
    assert_eq!((target.status, target.error_source), (TargetStatus::Canceled, Some(ErrorSource::User)));
    assert_eq!(target.error_message.as_deref(), Some("the account was disconnected"));
    // Connected again, it waits for nothing of what it waited for then.
    account(&db, owner, "x", "1", "ada").await;
    let edited = edit(&db, owner, &edited, |_| ()).await;
    assert_eq!((edited.targets[0].status, &edited.targets[0].error_message), (TargetStatus::Pending, &None));
    let waits: bool = sqlx::query_scalar("select freeze_id is not null from targets where id = $1")
        .bind(post.targets[0].id.0)
        .fetch_one(&db)
        .await
        .unwrap();
    assert!(!waits);
}

/// A target that waits for the post's version before the edit sleeps for hours, and its workflow with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_wakes_the_targets_that_wait_for_an_attempt() {
    let db = database().await;
    let (owner, _, post) = frozen(&db, "ada").await;
    tests::sql(&db, "update posts set created_at = now()").await;
    messages(&db).await;
    let bob = account(&db, owner, "x", "bob", "bob").await;
    edit(&db, owner, &post, |edit| edit.accounts = Some(vec![(bob.id, "x".to_owned())])).await;
    let woken = messages(&db).await.into_iter().find_map(|message| match message {
        Message::RetryTarget { target, .. } => Some(target),
        _ => None,
    });
    assert_eq!(woken, Some(post.targets[0].id));

    // None waits before its time.
    let later = Some(tests::now() + TimeDelta::hours(1));
    let scheduled = NewPost { scheduled_at: later, ..draft_of(&[&bob]) };
    let scheduled = create(&db, owner, NewPost { external_ref: Some("later".into()), ..scheduled }).await;
    messages(&db).await;
    edit(&db, owner, &scheduled, |edit| edit.scheduled_at = later).await;
    let sent = messages(&db).await;
    assert!(matches!(sent[..], [Message::PostChanged(_)]), "{sent:?}");
}

/// An attempt that began after the release has nothing to wait for any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_leaves_a_target_alone_whose_attempt_begins_meanwhile() {
    let db = database().await;
    let (owner, ada, post) = frozen(&db, "ada").await;
    // As `begin` does.
    let mut attempt = ::store::begin(&db).await.unwrap();
    let begins =
        "update targets set freeze_id = null, next_attempt_at = null, fence = fence + 1 where id = $1";
    sqlx::query(begins).bind(post.targets[0].id.0).execute(&mut *attempt).await.unwrap();
    let releasing = tokio::spawn({
        let db = db.clone();
        async move { release(&db, ada.id).await }
    });
    concurrent::until_waiting(&db, 1).await;
    attempt.commit().await.unwrap();
    assert_eq!(releasing.await.unwrap(), Some(0));
    assert_eq!(now_of(&db, owner, &post).await.targets[0].next_attempt_at, None);
    assert!(!kinds(&db, owner, &post).await.contains(&"released".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_keeps_a_reason_of_each_end_without_publication() {
    let db = database().await;
    let (owner, _, post) = frozen(&db, "ada").await;
    for status in ["canceled", "dead"] {
        let change = format!("update targets set status = '{status}', error_message = null");
        let refused = sqlx::query(sqlx::AssertSqlSafe(change)).execute(&db).await;
        let refused = refused.unwrap_err().into_database_error().unwrap();
        assert_eq!(refused.constraint(), Some("targets_end_has_reason"), "{status}: {refused}");
    }
    let ended = "update targets set status = 'canceled', error_message = 'deleted', error_source = 'user'";
    tests::sql(&db, ended).await;
    let target = &now_of(&db, owner, &post).await.targets[0];
    assert_eq!(target.error_message.as_deref(), Some("deleted"));
}

/// A wait of a target before it was frozen or edited does not count: its next wait has all of its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_was_released_or_edited_waits_anew() {
    let db = database().await;
    for is_edited in [false, true] {
        let (owner, ada, mut post) = frozen(&db, if is_edited { "edited" } else { "released" }).await;
        tests::sql(
            &db,
            "update targets set throttled_since = now() - interval '3 days', wait_reason = 'file',
               wait_since = now() - interval '3 days', wait_until = now() - interval '2 days'",
        )
        .await;
        if is_edited {
            post = edit(&db, owner, &post, |_| {}).await;
        }
        assert_eq!(release(&db, ada.id).await, Some(u64::from(!is_edited)));
        let until = tests::now() + TimeDelta::hours(1);
        publishing::rest_account(&db, owner, ada.id, until).await.unwrap();
        let (_, rests) = begin(&db, owner, &post, 0).await;
        let is_resting = matches!(rests, BeginResult::Held { code: ErrorCode::RateLimited, .. });
        assert!(is_resting, "edited: {is_edited}: {rests:?}");
    }
}
