//! Accounts that rest, and apps that their platform refuses.

use super::*;

/// The platform throttles a post of an account. Its other posts wait as long, and cost no attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_account_rests_for_all_its_targets() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    let post = async |name: &str| {
        let external_ref = Some(name.to_owned());
        create(&db, owner, NewPost { external_ref, ..draft_of(&[&ada, &bob]) }).await
    };
    let (one, two, three) = (post("one").await, post("two").await, post("three").await);
    let (_, BeginResult::Attempt(begun)) = begin(&db, owner, &three, 0).await else { panic!("it began") };
    assert!(intend(&db, begun.key.target, begun.fence).await);
    let (key, BeginResult::Attempt(first)) = begin(&db, owner, &one, 0).await else { panic!("it began") };
    let throttled = Failure::rate_limited("too fast", None);
    let hour = Duration::from_secs(3600);
    publishing::free_attempt(&db, &first).await.unwrap();
    let next = publishing::record_failure(&db, &first, &throttled, hour).await.unwrap().expect("it is held");
    publishing::rest_account(&db, owner, ada.id, next).await.unwrap();
    // A shorter wait of another attempt ends nothing.
    publishing::rest_account(&db, owner, ada.id, tests::now()).await.unwrap();

    let (other, resting) = begin(&db, owner, &two, 0).await;
    let BeginResult::Held { pause: wait, code: ErrorCode::RateLimited, is_new: true } = resting else {
        panic!("{resting:?}")
    };
    assert!(wait > hour.mul_f64(0.99) && wait < hour.mul_f64(1.11), "{wait:?}");
    let target = &now_of(&db, owner, &two).await.targets[0];
    assert_eq!((target.status, target.attempts), (TargetStatus::Queued, 0));
    assert_eq!(target.error_code.as_deref(), Some("rate_limited"));
    assert!(target.next_attempt_at.is_some_and(|at| at >= next), "{target:?}");
    let timeline = timeline::list(&db, unbounded(owner), two.id, WHOLE, None).await.unwrap().items;
    assert_eq!(timeline.iter().filter(|entry| entry.kind == "rest").count(), 1);
    // The time is in the row: further tries find it and write nothing.
    assert!(matches!(begin(&db, owner, &two, 0).await.1, BeginResult::Early(_)));
    assert_eq!(
        timeline::list(&db, unbounded(owner), two.id, WHOLE, None).await.unwrap().items.len(),
        timeline.len()
    );
    // Another account does not rest, and a call that was made is looked up.
    assert!(matches!(begin(&db, owner, &two, 1).await.1, BeginResult::Attempt(_)));
    let (_, BeginResult::Attempt(look)) = begin(&db, owner, &three, 0).await else { panic!("in doubt") };
    assert_eq!(look.spent(), 2);

    // Someone who knows better.
    assert!(
        publishing::retry_now(&db, unbounded(owner), one.id, key.target, None, tests::now()).await.unwrap()
    );
    let BeginResult::Attempt(second) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("it is due")
    };
    assert_eq!((second.attempts, second.spent()), (2, 1));
    assert!(second.throttled_since.is_some_and(|since| since >= first.begun_at));
    publishing::record_failure(&db, &second, &Failure::upstream(500, "no"), Duration::ZERO).await.unwrap();
    let BeginResult::Attempt(third) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("it is due")
    };
    assert_eq!((third.attempts, third.spent(), third.throttled_since), (3, 2, None));
    // The account rests no longer, but the row of the other target keeps its time.
    let kept = publishing::begin(&db, other, Purpose::Publish).await.unwrap();
    assert!(matches!(kept, BeginResult::Early(_)), "{kept:?}");
    assert!(
        publishing::retry_now(&db, unbounded(owner), two.id, other.target, None, tests::now()).await.unwrap()
    );
    let retried = publishing::begin(&db, other, Purpose::Publish).await.unwrap();
    assert!(matches!(retried, BeginResult::Attempt(_)), "{retried:?}");
}

/// An account goes on being throttled by the posts that wait for it. Each of them has an end of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_rests_with_its_account_for_two_days_at_most() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let day = Duration::from_secs(24 * 3600);
    for rest in 0..3 {
        publishing::rest_account(&db, owner, ada.id, tests::now() + day).await.unwrap();
        let (_, resting) = begin(&db, owner, &post, 0).await;
        assert!(
            matches!(resting, BeginResult::Held { code: ErrorCode::RateLimited, .. }),
            "{rest}: {resting:?}"
        );
        // Less than two days pass, since the rest is up to a tenth longer.
        tests::sql(
            &db,
            "update accounts set rests_until = rests_until - interval '15 hours';
             update targets set next_attempt_at = null, throttled_since = throttled_since - interval '15 hours',
               wait_since = wait_since - interval '15 hours', wait_until = wait_until - interval '15 hours'",
        )
        .await;
    }
    let entries = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
    assert_eq!(entries.iter().filter(|entry| entry.kind == "rest").count(), 1, "{entries:?}");
    tests::sql(&db, "update targets set throttled_since = throttled_since - interval '4 hours'").await;
    let (_, BeginResult::Attempt(last)) = begin(&db, owner, &post, 0).await else { panic!("it ends") };
    assert_eq!((last.waited_in_vain, last.attempts), (Some(WaitReason::Rest), 0));
}

/// A retry tells that the app's owner may have acted.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_lets_one_post_look_whether_an_app_is_taken_again() {
    let db = database().await;
    let owner = owner(&db).await;
    let mut posts = Vec::new();
    for (id, network) in [("1", None), ("2", None), ("3", Some(uuid::Uuid::now_v7()))] {
        let account = account(&db, owner, "x", id, "ada").await;
        let connected = "update accounts set social_network_id = $2 where id = $1";
        sqlx::query(connected).bind(account.id.0).bind(network).execute(&db).await.unwrap();
        posts.push(create(&db, owner, draft_of(&[&account])).await);
    }
    let key =
        |post: &Post| TargetKey { owner, post: post.id, target: post.targets[0].id, version: post.version };
    let hour = Duration::from_secs(3600);
    assert!(publishing::hold(&db, key(&posts[0]), Holds::App, "spent", hour).await.unwrap());
    assert!(!publishing::hold(&db, key(&posts[0]), Holds::App, "still spent", hour).await.unwrap());
    for post in &posts[..2] {
        let (_, held) = begin(&db, owner, post, 0).await;
        assert!(matches!(held, BeginResult::Held { code: ErrorCode::AppRefused, .. }), "{held:?}");
    }
    // Neither an app of an organization's own, nor that of another organization's tests, nor the live one is held.
    let (_, BeginResult::Attempt(own)) = begin(&db, owner, &posts[2], 0).await else { panic!("another app") };
    assert!(!own.is_app_held);
    for other in [self::owner(&db).await, Owner { mode: Mode::Live, ..owner }] {
        let account = account(&db, other, "x", "4", "ada").await;
        let post = create(&db, other, draft_of(&[&account])).await;
        let (_, begun) = begin(&db, other, &post, 0).await;
        assert!(matches!(begun, BeginResult::Attempt(_)), "{other:?}: {begun:?}");
    }
    for post in &posts[..2] {
        let (target, now) = (post.targets[0].id, tests::now());
        assert!(publishing::retry_now(&db, unbounded(owner), post.id, target, None, now).await.unwrap());
    }
    let (_, BeginResult::Attempt(looks)) = begin(&db, owner, &posts[1], 0).await else { panic!("it looks") };
    assert!(looks.is_app_held);
    let (_, held) = begin(&db, owner, &posts[0], 0).await;
    assert!(matches!(held, BeginResult::Held { code: ErrorCode::AppRefused, .. }), "{held:?}");
    // The one that looks may begin again, with a token that was refreshed first, until it has its answer.
    let (_, again) = begin(&db, owner, &posts[1], 0).await;
    assert!(matches!(again, BeginResult::Attempt(_)), "{again:?}");
    assert!(!publishing::hold(&db, key(&posts[1]), Holds::App, "still spent", hour).await.unwrap());
    let (_, held) = begin(&db, owner, &posts[1], 0).await;
    assert!(matches!(held, BeginResult::Held { code: ErrorCode::AppRefused, .. }), "{held:?}");
    publishing::lift(&db, &looks).await.unwrap();
    let (target, now) = (posts[0].targets[0].id, tests::now());
    assert!(publishing::retry_now(&db, unbounded(owner), posts[0].id, target, None, now).await.unwrap());
    let (_, BeginResult::Attempt(goes_on)) = begin(&db, owner, &posts[0], 0).await else {
        panic!("it goes on")
    };
    assert!(!goes_on.is_app_held);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_of_a_requested_retry_is_told_though_the_post_waits_as_before() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&account])).await;
    let target = post.targets[0].id;
    let told = async || {
        let entries = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
        entries.iter().filter(|entry| ["waiting", "rest"].contains(&entry.kind.as_str())).count()
    };
    let refuse = async || {
        let (key, begun) = begin(&db, owner, &post, 0).await;
        let BeginResult::Attempt(attempt) = begun else { panic!("{begun:?}") };
        let failure = Failure::app_refused("spent", None);
        let wait = Wait {
            reason: WaitReason::App,
            look_after: Duration::ZERO,
            until: tests::now() + TimeDelta::hours(1),
            then: Then::GiveUp(failure.clone()),
            failure: Some(failure),
        };
        let waits = publishing::wait(&db, &attempt, wait).await.unwrap();
        assert!(matches!(waits, publishing::Waits::Until(_)), "{waits:?}");
        key
    };
    let key = refuse().await;
    assert_eq!(told().await, 1);
    refuse().await;
    assert_eq!(told().await, 1, "a look is not told");
    let retry =
        async || publishing::retry_now(&db, unbounded(owner), post.id, target, None, tests::now()).await;
    assert!(retry().await.unwrap());
    refuse().await;
    assert_eq!(told().await, 2, "what comes of the retry is told");
    refuse().await;
    assert_eq!(told().await, 2);
    // Also where another post looks.
    publishing::hold(&db, key, Holds::App, "spent", Duration::from_secs(3600)).await.unwrap();
    let held = async || matches!(begin(&db, owner, &post, 0).await.1, BeginResult::Held { .. });
    assert!(held().await);
    assert_eq!(told().await, 2);
    assert!(retry().await.unwrap());
    let another_looks = "update app_holds set until = now() + interval '1 hour'";
    sqlx::query(another_looks).execute(&db).await.unwrap();
    assert!(held().await);
    assert_eq!(told().await, 3);
}

/// Other posts are published meanwhile, and do not end the hold that operators are told of.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_refused_for_one_post_holds_no_other() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "tiktok", "1", "ada").await;
    let (photo, video) =
        (create(&db, owner, draft_of(&[&account])).await, create(&db, owner, draft_of(&[&account])).await);
    let held = async || {
        let count = "select count(*) from app_holds where platform = 'tiktok'";
        sqlx::query_scalar::<_, i64>(count).fetch_one(&db).await.unwrap()
    };
    let (key, BeginResult::Attempt(refused)) = begin(&db, owner, &photo, 0).await else {
        panic!("it begins")
    };
    let hour = Duration::from_secs(3600);
    assert!(publishing::hold(&db, key, Holds::Post, "not verified", hour).await.unwrap());
    assert!(!publishing::hold(&db, key, Holds::Post, "still not verified", hour).await.unwrap());
    assert_eq!(held().await, 1);
    let (_, BeginResult::Attempt(other)) = begin(&db, owner, &video, 0).await else {
        panic!("it is not held")
    };
    assert!(!other.is_app_held);
    publishing::lift(&db, &other).await.unwrap();
    assert_eq!(held().await, 1, "by another post");
    publishing::lift(&db, &refused).await.unwrap();
    assert_eq!(held().await, 0);
}
