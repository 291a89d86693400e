//! Replies that wait for a post, and what they learn of its changes.

use super::*;

fn reply_to(parent: &Post, accounts: &[&Account]) -> NewPost {
    NewPost { reply_to: Some(parent.id), ..draft_of(accounts) }
}

fn edit_of(post: &Post) -> Edit {
    Edit {
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
        horizon: Duration::from_secs(5),
    }
}

async fn edit(db: &Pool, owner: Owner, post: &Post, edit: Edit) -> Post {
    match posts::edit(db, unbounded(owner), post.id, edit, tests::now()).await.unwrap() {
        posts::EditResult::Updated(edited) => *edited,
        refused => panic!("it can be edited: {refused:?}"),
    }
}

/// Returns the targets of a post that the open messages wake.
async fn woken(db: &Pool, post: &Post) -> Vec<TargetId> {
    let wakes = messages(db).await.into_iter().filter_map(|message| match message {
        Message::RetryTarget { target, post: of, .. } if of == post.id => Some(target),
        _ => None,
    });
    wakes.collect()
}

async fn starts_at(db: &Pool, post: &Post) -> Option<DateTime<Utc>> {
    sqlx::query_scalar("select starts_at from posts where id = $1")
        .bind(post.id.0)
        .fetch_one(db)
        .await
        .unwrap()
}

/// Makes so many accounts of an account.
async fn copies(db: &Pool, of: &Account, count: i32) -> Vec<(AccountId, String)> {
    let ids: Vec<uuid::Uuid> = sqlx::query_scalar(
        "insert into accounts
         select (jsonb_populate_record(a, jsonb_build_object(
           'id', gen_random_uuid(), 'network_unique_id', a.id || ' ' || n, 'username', 'copy ' || n))).*
         from accounts a, generate_series(1, $2) n where a.id = $1
         returning id",
    )
    .bind(of.id.0)
    .bind(count)
    .fetch_all(db)
    .await
    .unwrap();
    ids.into_iter().map(|id| (id.into(), of.platform.clone())).collect()
}

/// A target replies to the target of its own account. A message for each of the others would be a million of them for
/// a post with the most accounts and its first comment.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_target_wakes_the_one_reply_to_it() {
    let db = database().await;
    let owner = owner(&db).await;
    for count in [1, 100, 1000] {
        let first = account(&db, owner, "x", &format!("of {count}"), "ada").await;
        let accounts = copies(&db, &first, count).await;
        let parent = create(&db, owner, NewPost { accounts: accounts.clone(), ..draft_of(&[]) }).await;
        let reply = create(&db, owner, NewPost { accounts, ..reply_to(&parent, &[]) }).await;
        messages(&db).await;
        // Enough ends to tell a message for each target from one for each pair.
        for target in parent.targets.iter().take(10) {
            let key = TargetKey { owner, post: parent.id, target: target.id, version: parent.version };
            let failure = Failure::rejected(400, "no");
            let end = End::Dead { failure, source: ErrorSource::User };
            publishing::settle(&db, key, &end, None, at(20)).await.unwrap();
            let own = reply.targets.iter().find(|own| own.account_id == target.account_id).unwrap();
            assert_eq!(woken(&db, &reply).await, [own.id], "of {count}");
        }
        let outbox: i64 = sqlx::query_scalar("select count(*) from outbox").fetch_one(&db).await.unwrap();
        assert_eq!(outbox, 0, "of {count}");
    }
}

/// Whatever its time was when the reply was written, and whatever it becomes.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_waits_for_its_own_time_and_not_for_a_time_of_its_post() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let within = |seconds: i64| (tests::now() + TimeDelta::seconds(seconds)).trunc_subsecs(6);
    let of = |new: NewPost, scheduled_at| NewPost { scheduled_at, horizon: Duration::from_secs(5), ..new };
    let parent = create(&db, owner, of(draft_of(&[&ada]), Some(within(600)))).await;
    let own = within(45);
    let reply = create(&db, owner, of(reply_to(&parent, &[&ada]), Some(own))).await;
    let further = create(&db, owner, of(reply_to(&reply, &[&ada]), Some(within(50)))).await;
    assert_eq!(
        (starts_at(&db, &reply).await, starts_at(&db, &further).await),
        (Some(own), further.scheduled_at)
    );
    messages(&db).await;
    let at_once = create(&db, owner, of(reply_to(&parent, &[&ada]), None)).await;
    assert_eq!(starts_at(&db, &at_once).await, None);
    assert!(matches!(&messages(&db).await[..], [Message::PublishPost(job)] if job.post == at_once.id));

    let parent = edit(&db, owner, &parent, edit_of(&parent)).await;
    assert_eq!((parent.scheduled_at, starts_at(&db, &reply).await), (None, Some(own)));
    let later =
        edit(&db, owner, &parent, Edit { scheduled_at: Some(within(6000)), ..edit_of(&parent) }).await;
    let sooner = within(30);
    edit(&db, owner, &reply, Edit { scheduled_at: Some(sooner), ..edit_of(&reply) }).await;
    assert_eq!(starts_at(&db, &reply).await, Some(sooner));
    assert!(posts::delete(&db, unbounded(owner), later.id, None, tests::now()).await.unwrap());
    assert_eq!(starts_at(&db, &reply).await, Some(sooner), "it is told that its post is gone when it begins");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_wakes_the_replies_whose_post_is_a_draft_or_lost_their_account() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    let far = Some(tests::now() + TimeDelta::days(30));
    let parent = create(&db, owner, NewPost { scheduled_at: far, ..draft_of(&[&ada, &bob]) }).await;
    let reply = create(&db, owner, reply_to(&parent, &[&ada, &bob])).await;
    let later = create(&db, owner, NewPost { scheduled_at: far, ..reply_to(&parent, &[&bob]) }).await;
    let target =
        |account: &Account| reply.targets.iter().find(|own| own.account_id == account.id).unwrap().id;
    for index in [0, 1] {
        let (_, waits) = begin(&db, owner, &reply, index).await;
        assert!(matches!(waits, BeginResult::Early(_)), "{waits:?}");
    }
    messages(&db).await;

    let accounts = vec![(ada.id, "x".to_owned()), (bob.id, "x".to_owned())];
    let same = Edit { scheduled_at: far, accounts: Some(accounts), ..edit_of(&parent) };
    let parent = edit(&db, owner, &parent, same).await;
    assert_eq!(woken(&db, &reply).await, [], "nothing changes for it");
    let without =
        Edit { scheduled_at: far, accounts: Some(vec![(ada.id, "x".to_owned())]), ..edit_of(&parent) };
    let parent = edit(&db, owner, &parent, without).await;
    let left = messages(&db).await;
    let wakes = |post: &Post, target| {
        left.iter().filter(|left| **left == Message::RetryTarget { target, post: post.id, owner }).count()
    };
    assert_eq!((wakes(&reply, target(&bob)), wakes(&reply, target(&ada))), (1, 0), "{left:?}");
    assert_eq!(wakes(&later, later.targets[0].id), 0, "its own time has not come");
    edit(&db, owner, &parent, Edit { is_draft: true, ..edit_of(&parent) }).await;
    assert!(woken(&db, &reply).await.contains(&target(&ada)));
    let draft = begun(begin(&db, owner, &reply, usize::from(reply.targets[0].id != target(&ada))).await.1);
    assert_eq!(draft.barred, Some(Barred::NoParent(NoParent::Draft)));
}

/// Publishes the main container of a post of an account, whose comment is still to come, and returns its key.
async fn live(db: &Pool, owner: Owner, account: &Account) -> (Post, TargetKey, i32) {
    let post = create(db, owner, draft_of(&[account])).await;
    let (key, attempt) = begin(db, owner, &post, 0).await;
    let fence = begun(attempt).fence;
    publish(db, key, 0, fence, &format!("{}-0", post.id)).await;
    tests::sql(db, "update targets set next_attempt_at = now() where next_attempt_at is not null").await;
    (post, key, fence)
}

async fn target_of(db: &Pool, owner: Owner, post: &Post) -> posts::Target {
    posts::get(db, unbounded(owner), post.id).await.unwrap().unwrap().targets.remove(0)
}

async fn hold(db: &Pool, key: TargetKey) -> DateTime<Utc> {
    match publishing::withdraw(db, key.owner, key.post, key.target).await.unwrap() {
        Withdrawn::Live { until, .. } => until,
        refused => panic!("it is live: {refused:?}"),
    }
}

async fn release(db: &Pool, key: TargetKey, until: DateTime<Utc>, is_torn: bool) {
    let TargetKey { owner, post, target, .. } = key;
    publishing::release_withdrawn(db, owner, post, target, until, is_torn, at(31)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_for_or_below_a_target_while_its_posts_are_being_deleted() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let (parent, key, attempt) = live(&db, owner, &ada).await;
    let waiting = create(&db, owner, reply_to(&parent, &[&ada])).await;
    assert!(
        matches!(begin(&db, owner, &waiting, 0).await.1, BeginResult::Early(_)),
        "the comment is to come"
    );
    messages(&db).await;

    let held = hold(&db, key).await;
    assert!(!intend_at(&db, key.target, 1, attempt).await, "the attempt that was under way is fenced off");
    let again = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
    assert!(
        matches!(again, BeginResult::Early(look) if look.pause() <= publishing::UNPUBLISH_LEASE * 2),
        "{again:?}"
    );
    assert!(matches!(begin(&db, owner, &waiting, 0).await.1, BeginResult::Early(_)));
    // The platform refused: the comment is published, and then the reply.
    let other = hold(&db, key).await;
    release(&db, key, held, false).await;
    let again = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
    assert!(matches!(again, BeginResult::Early(_)), "another deletion holds it: {again:?}");
    release(&db, key, other, false).await;
    let wakes = messages(&db).await;
    for (target, post) in [(key.target, parent.id), (waiting.targets[0].id, waiting.id)] {
        assert!(wakes.contains(&Message::RetryTarget { target, post, owner }), "{wakes:?}");
    }
    assert_eq!(target_of(&db, owner, &parent).await.error_message, None, "nothing is given up");
    let fence = begun(publishing::begin(&db, key, Purpose::Publish).await.unwrap()).fence;
    publish(&db, key, 1, fence, "second").await;
    assert!(publishing::mark_complete(&db, key, fence, at(32)).await.unwrap());

    // A reply that had begun makes no call either, until the hold has run out.
    let fence = begun(begin(&db, owner, &waiting, 0).await.1).fence;
    hold(&db, key).await;
    let own = waiting.targets[0].id;
    assert!(!intend(&db, own, fence).await);
    assert!(matches!(begin(&db, owner, &waiting, 0).await.1, BeginResult::Early(_)));
    tests::sql(
        &db,
        "update targets set unpublish_until = now() - interval '2 seconds' where unpublish_until is not null",
    )
    .await;
    let fence = begun(begin(&db, owner, &waiting, 0).await.1).fence;
    assert!(intend(&db, own, fence).await);
    // And while its call is under way, nothing is deleted above it.
    let withdrawn = publishing::withdraw(&db, owner, parent.id, key.target).await.unwrap();
    assert_eq!(withdrawn, Withdrawn::InDoubt);
}

/// It would come after the deletion, below nothing.
#[tokio::test(flavor = "multi_thread")]
async fn no_post_is_deleted_while_a_call_below_it_may_arrive() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let (parent, key, fence) = live(&db, owner, &ada).await;
    let withdraw = async || publishing::withdraw(&db, owner, parent.id, key.target).await.unwrap();
    assert!(intend_at(&db, key.target, 1, fence).await);
    let failure = Failure::new(ErrorCode::Stopped, "an operator stopped it: wrong account");
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &end, None, at(30)).await.unwrap();
    assert_eq!(target_of(&db, owner, &parent).await.next_attempt_at, None, "its part was given up");
    assert_eq!(withdraw().await, Withdrawn::InDoubt);
    let over = async |target: TargetId, seconds: u8| {
        let query = format!(
            "update publications set commit_deadline = now() - interval '{seconds} seconds'
             where target_id = '{target}' and platform_id is null"
        );
        tests::sql(&db, &query).await;
    };
    over(key.target, 3).await;
    assert_eq!(withdraw().await, Withdrawn::InDoubt, "it may have been sent at the last moment");
    over(key.target, 6).await;
    release(&db, key, hold(&db, key).await, false).await;

    // The same of a reply, which is a post of its own.
    let reply = create(&db, owner, reply_to(&parent, &[&ada])).await;
    let (reply_key, attempt) = begin(&db, owner, &reply, 0).await;
    assert!(intend(&db, reply_key.target, begun(attempt).fence).await);
    over(reply_key.target, 3).await;
    assert_eq!(withdraw().await, Withdrawn::InDoubt);
    over(reply_key.target, 6).await;
    hold(&db, key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_thread_is_given_up_when_its_posts_or_a_part_of_them_are_deleted() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    for (is_torn, reason) in [
        (false, "the post was deleted from its platform"),
        (true, "a part of the thread was deleted from its platform"),
    ] {
        let (parent, key, _) = live(&db, owner, &ada).await;
        let waiting = create(&db, owner, reply_to(&parent, &[&ada])).await;
        messages(&db).await;
        let until = hold(&db, key).await;
        if is_torn {
            release(&db, key, until, true).await;
        } else {
            publishing::record_unpublished(&db, owner, parent.id, key.target, at(31)).await.unwrap();
        }
        let target = target_of(&db, owner, &parent).await;
        assert_eq!(target.error_message.as_deref(), Some(reason));
        assert_eq!((target.error_code, target.next_attempt_at), (None, None));
        assert_eq!(target.unpublished_at.is_some(), !is_torn);
        assert_eq!(woken(&db, &waiting).await, [waiting.targets[0].id]);
        let ended = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
        assert!(matches!(ended, BeginResult::Ended(TargetStatus::Published)), "{ended:?}");
    }
}

/// Nobody knows whether the posts are gone, so that nothing is published below them until somebody asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_thread_is_given_up_when_a_deletion_has_no_result() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let (parent, key, _) = live(&db, owner, &ada).await;
    hold(&db, key).await;
    let lease =
        "update targets set unpublish_until = now() - interval '1 second' where unpublish_until is not null";
    tests::sql(&db, lease).await;
    let attempt = begun(publishing::begin(&db, key, Purpose::Publish).await.unwrap());
    assert_eq!(attempt.barred, Some(Barred::MayBeUnpublished));
    let failure = Failure::network("its posts may have been deleted", false);
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &end, Some(attempt.fence), tests::now()).await.unwrap();
    let target = target_of(&db, owner, &parent).await;
    assert_eq!((target.status, target.next_attempt_at), (TargetStatus::Published, None));
    assert_eq!(target.error_code, Some("network_error".to_owned()));

    let revived = publishing::revive(&db, unbounded(owner), parent.id, None, tests::now()).await.unwrap();
    assert_eq!(revived, publishing::Revived::Targets(vec![key.target]));
    let retried = begun(publishing::begin(&db, key, Purpose::Publish).await.unwrap());
    assert_eq!(retried.barred, None);
    // A deletion that goes on holds what is retried.
    hold(&db, key).await;
    publishing::settle(&db, key, &end, None, tests::now()).await.unwrap();
    publishing::revive(&db, unbounded(owner), parent.id, None, tests::now()).await.unwrap();
    let early = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
    assert!(matches!(early, BeginResult::Early(_)), "{early:?}");
}

/// A refusal tells nothing about a deletion that was not answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_deletion_does_not_undo_the_doubt_of_an_earlier_one() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let (parent, key, _) = live(&db, owner, &ada).await;
    let lease =
        "update targets set unpublish_until = now() - interval '1 second' where unpublish_until is not null";
    let barred = async || begun(publishing::begin(&db, key, Purpose::Publish).await.unwrap()).barred;
    // Its worker stops.
    hold(&db, key).await;
    let refused = hold(&db, key).await;
    release(&db, key, refused, false).await;
    let early = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
    assert!(matches!(early, BeginResult::Early(_)), "the first one may be under way: {early:?}");
    tests::sql(&db, lease).await;
    assert_eq!(barred().await, Some(Barred::MayBeUnpublished));
    // The same when it begins later.
    let refused = hold(&db, key).await;
    release(&db, key, refused, false).await;
    tests::sql(&db, lease).await;
    assert_eq!(barred().await, Some(Barred::MayBeUnpublished));
    let failure = Failure::network("its posts may have been deleted", false);
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &end, None, tests::now()).await.unwrap();
    publishing::revive(&db, unbounded(owner), parent.id, None, tests::now()).await.unwrap();
    assert_eq!(barred().await, None, "its user takes the posts for live");
    // A result that is late says nothing: the next attempt may have begun.
    hold(&db, key).await;
    tests::sql(&db, lease).await;
    release(&db, key, tests::now() - TimeDelta::seconds(1), false).await;
    assert_eq!(barred().await, Some(Barred::MayBeUnpublished));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_leaves_no_open_target_is_refused() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    let far = Some(tests::now() + TimeDelta::hours(1));
    let post = create(&db, owner, NewPost { scheduled_at: far, ..draft_of(&[&ada, &bob]) }).await;
    let dead = post.targets.iter().find(|target| target.account_id == ada.id).unwrap();
    let key = TargetKey { owner, post: post.id, target: dead.id, version: post.version };
    let failure = Failure::new(ErrorCode::Stopped, "an operator stopped it: wrong account");
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &end, None, at(20)).await.unwrap();
    let without =
        Edit { scheduled_at: far, accounts: Some(vec![(ada.id, "x".to_owned())]), ..edit_of(&post) };
    let refused = posts::edit(&db, unbounded(owner), post.id, without.clone(), tests::now()).await.unwrap();
    assert_eq!(refused, posts::EditResult::NothingOpen { has_ended: true });
    let kept = posts::get(&db, unbounded(owner), post.id).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.targets.len()), (PostStatus::Scheduled, 2));
    // A draft may wait for other accounts.
    let draft = edit(&db, owner, &post, Edit { is_draft: true, ..without }).await;
    let released = Edit { scheduled_at: far, ..edit_of(&draft) };
    let refused = posts::edit(&db, unbounded(owner), post.id, released, tests::now()).await.unwrap();
    assert_eq!(refused, posts::EditResult::NothingOpen { has_ended: true });
}

/// Whatever went wrong before.
#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_target_and_its_event_say_why() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let bob = account(&db, owner, "x", "2", "bob").await;
    let throttled = async |account: &Account, name: &str| {
        let external_ref = Some(name.to_owned());
        let post = create(&db, owner, NewPost { external_ref, ..draft_of(&[account]) }).await;
        let attempt = begun(begin(&db, owner, &post, 0).await.1);
        let failure = Failure::rate_limited("Too Many Requests", None);
        publishing::record_failure(&db, &attempt, &failure, Duration::from_secs(60)).await.unwrap().unwrap();
        post
    };
    let parted = throttled(&ada, "parted").await;
    let fresh =
        create(&db, owner, NewPost { external_ref: Some("fresh".to_owned()), ..draft_of(&[&ada]) }).await;
    let deleted = throttled(&bob, "deleted").await;
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(30)).await.unwrap());
    assert!(posts::delete(&db, unbounded(owner), deleted.id, None, at(30)).await.unwrap());
    for (post, reason) in [
        (&parted, "the account was disconnected"),
        (&fresh, "the account was disconnected"),
        (&deleted, "the post was deleted"),
    ] {
        let target = now_of(&db, owner, post).await.targets.remove(0);
        assert_eq!(target.status, TargetStatus::Canceled);
        assert_eq!((target.error_code, target.error_message.as_deref()), (None, Some(reason)));
        assert_eq!(target.error_source, Some(ErrorSource::User));
        let told: Value = sqlx::query_scalar(
            "select body::jsonb -> 'data' from events where post_id = $1 and event = 'post.error'",
        )
        .bind(post.id.0)
        .fetch_one(&db)
        .await
        .unwrap();
        assert_eq!(told["socialAccounts"][0]["error"], reason, "{told}");
    }
    // Connected again, a draft's target is open as if nothing had happened.
    let draft = create(&db, owner, NewPost { is_draft: true, ..draft_of(&[&bob]) }).await;
    assert!(disconnect::disconnect(&db, unbounded(owner), bob.id, &Actor::OPERATOR, at(31)).await.unwrap());
    account(&db, owner, "x", "2", "bob").await;
    let released = edit(&db, owner, &draft, edit_of(&draft)).await;
    let target = &released.targets[0];
    assert_eq!(
        (target.status, &target.error_message, target.error_source),
        (TargetStatus::Pending, &None, None)
    );
}
