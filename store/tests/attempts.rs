//! Attempts at targets, their intents and what they know of earlier ones.

use super::*;

fn below(root: &str, last: &str) -> Place {
    Place::Below(Parent { root: root.to_owned(), last: last.to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superseded_attempt_settles_nothing() {
    let db = database().await;
    let owner = owner(&db).await;
    let new =
        NewWebhook { url: "https://8.8.8.8/".to_owned(), events: vec!["*".to_owned()], description: None };
    webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, at(0)).await.unwrap().unwrap();
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&ada]) }).await;
    let (key, BeginResult::Attempt(slow)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let (_, BeginResult::Attempt(fast)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    messages(&db).await;
    let failure = Failure::rejected(400, "there already");
    let dead = End::Dead { source: failure.code.source(), failure };
    let refused = publishing::settle(&db, key, &dead, Some(slow.fence), at(22)).await.unwrap();
    assert_eq!(refused, Settled::Superseded);
    let wait = Duration::from_secs(1);
    assert_eq!(
        publishing::record_failure(&db, &slow, &Failure::upstream(503, "late"), wait).await.unwrap(),
        None
    );
    let spent = domain::retry::Spent { attempts: 1, token_attempts: 0 };
    publishing::refund_attempts(&db, key.target, Some(slow.fence), spent).await.unwrap();

    assert!(intend(&db, key.target, fast.fence).await);
    publishing::capture(&db, key, 0, "9").await.unwrap();
    let live = End::Live { id: "9".to_owned(), url: None, left_out: None };
    publishing::settle(&db, key, &live, None, at(23)).await.unwrap();
    let target = &now_of(&db, owner, &post).await.targets[0];
    assert_eq!((target.status, target.attempts), (TargetStatus::Published, 2));
    assert_eq!(messages(&db).await.len(), 2, "post.target.published and post.published, once each");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_from_the_future_is_looked_up_from_a_day_ago() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, attempt.fence).await);
    // The database's clock was an hour ahead, and is set back.
    let ahead = "with p as (update publications set commit_begun_at = commit_begun_at + interval '1 hour',
          commit_deadline = commit_deadline + interval '1 hour' where target_id = $1)
        update targets set next_attempt_at = clock_timestamp() + interval '1 hour' where id = $1";
    sqlx::query(ahead).bind(key.target.0).execute(&db).await.unwrap();
    for time in ["first", "second"] {
        let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else {
            panic!("it began")
        };
        let entry = &attempt.entries[0];
        let intent = entry.commit_begun_at.unwrap();
        assert!(intent <= attempt.begun_at - TimeDelta::days(1), "{time}: {intent}");
        let left = entry.commit_deadline.unwrap() - attempt.begun_at;
        assert!(left <= TimeDelta::seconds(60) && left > TimeDelta::zero(), "{time}: {left}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_is_due_in_an_hour_is_made_at_once() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "threads", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let (since, pause) = (Some(attempt.begun_at), Some(Duration::from_secs(60)));
    publishing::record_processing(&db, key.target, attempt.fence, since, pause).await.unwrap();
    let (_, early) = begin(&db, owner, &post, 0).await;
    assert!(
        matches!(early, BeginResult::Early(look) if look.pause() <= Duration::from_secs(60)),
        "{early:?}"
    );
    // The database's clock was an hour ahead, and is set back.
    let ahead = "update targets set next_attempt_at = next_attempt_at + interval '1 hour' where id = $1";
    sqlx::query(ahead).bind(key.target.0).execute(&db).await.unwrap();
    let (_, due) = begin(&db, owner, &post, 0).await;
    assert!(matches!(due, BeginResult::Attempt(_)), "{due:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_only_looks_up_another_is_told_once() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(first)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, first.fence).await);
    for _ in 0..2 {
        let BeginResult::Attempt(look) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
            panic!("it is open")
        };
        assert_eq!(look.attempts, 2);
        // It was too early to tell.
        let spent = domain::retry::Spent { attempts: 1, token_attempts: 0 };
        publishing::refund_attempts(&db, key.target, Some(look.fence), spent).await.unwrap();
    }
    let entries = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
    let begun: Vec<_> =
        entries.iter().filter(|entry| entry.kind == "attempt").map(|entry| &entry.message).collect();
    assert_eq!(begun, ["Attempt 1 begins", "Attempt 2 begins"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_records_the_deadline_of_its_call() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(first)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let (step, limit) = (json!({}), Duration::from_secs(90));
    let begun = publishing::intend(&db, key.target, 0, first.fence, &step, limit).await.unwrap().unwrap();
    let look = async || match publishing::begin(&db, key, Purpose::Look).await.unwrap() {
        BeginResult::Attempt(attempt) => attempt,
        other => panic!("{other:?}"),
    };
    let second = look().await;
    assert!(!second.is_counted && second.attempts == first.attempts);
    let entry = &second.entries[0];
    assert_eq!((entry.commit_begun_at, entry.commit_deadline), (Some(begun), Some(begun + limit)));
    assert!((begun - second.begun_at).abs() < TimeDelta::seconds(60), "both times are from one clock");

    // A call's response belongs to its intent, even after another attempt has begun.
    assert!(publishing::accept(&db, key.target, 0, begun, &json!({ "id": 7 })).await.unwrap());
    assert!(look().await.entries[0].accepted);
    // A look-up finds nothing: the start of the first call is kept beyond the next intent.
    let third = look().await;
    publishing::clear_intent(&db, key.target, 0, third.fence).await.unwrap();
    let again = publishing::intend(&db, key.target, 0, third.fence, &step, limit).await.unwrap().unwrap();
    let entry = &look().await.entries[0];
    assert_eq!((entry.commit_begun_at, entry.doubted_since), (Some(again), Some(begun)));
    assert!(!publishing::accept(&db, key.target, 0, begun, &json!({})).await.unwrap(), "another intent");
    // The intent of a call that certainly published nothing is removed.
    publishing::void_intent(&db, key.target, 0, again).await.unwrap();
    let entry = &look().await.entries[0];
    assert_eq!((entry.commit_begun_at, entry.doubted_since), (None, Some(begun)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_continues_after_processing_and_counts_after_a_failure() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(first)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let since = first.begun_at;
    publishing::record_processing(&db, key.target, first.fence, Some(since), Some(Duration::ZERO))
        .await
        .unwrap();
    let BeginResult::Attempt(second) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("it is open")
    };
    assert_eq!((second.attempts, second.is_counted), (1, false));
    assert_eq!(second.processing_since, Some(since));
    assert!(intend(&db, key.target, second.fence).await);
    // The publishing call failed: next is another attempt, whose processing phase has a window of its own.
    publishing::record_failure(&db, &second, &Failure::upstream(500, "no"), Duration::ZERO).await.unwrap();
    let BeginResult::Attempt(third) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("it is open")
    };
    assert_eq!((third.attempts, third.is_counted, third.processing_since), (2, true, None));
    // No attempt begins before the time in the row, regardless of how the workflow was started.
    publishing::record_failure(&db, &third, &Failure::upstream(500, "no"), Duration::from_secs(600))
        .await
        .unwrap();
    let early = publishing::begin(&db, key, Purpose::Publish).await.unwrap();
    let BeginResult::Failed { pause, failure, number: 2 } = early else { panic!("{early:?}") };
    assert!(pause > Duration::from_secs(500), "{pause:?}");
    assert_eq!((failure.code, &*failure.message), (ErrorCode::Upstream(500), "no"));
    assert!(
        publishing::retry_now(&db, unbounded(owner), post.id, key.target, None, tests::now()).await.unwrap()
    );
    assert!(matches!(publishing::begin(&db, key, Purpose::Publish).await.unwrap(), BeginResult::Attempt(_)));
}

/// Workers that stopped left no result; what they did may be what stops them.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_without_a_result_are_counted_until_one_has_one() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, first) = begin(&db, owner, &post, 0).await;
    assert_eq!(begun(first).unanswered, 0);
    let look = async || begun(publishing::begin(&db, key, Purpose::Look).await.unwrap());
    let vain = || Then::GiveUp(Failure::network("in vain", false));
    for result in ["failed", "processing", "waits", "looked up", "retried"] {
        for _ in 0..2 {
            look().await;
        }
        let attempt = look().await;
        assert!(attempt.unanswered >= 2, "{result}: {}", attempt.unanswered);
        let (target, fence, now) = (key.target, attempt.fence, tests::now());
        let failure = Failure::upstream(503, "try again");
        match result {
            "failed" => {
                let failed = publishing::record_failure(&db, &attempt, &failure, Duration::ZERO).await;
                assert!(failed.unwrap().is_some());
            }
            "processing" => {
                let pause = Some(Duration::ZERO);
                publishing::record_processing(&db, target, fence, Some(now), pause).await.unwrap();
            }
            "waits" => {
                let until = now + TimeDelta::hours(1);
                let (reason, look_after) = (WaitReason::Reads, Duration::ZERO);
                let wait = Wait { reason, look_after, until, failure: None, then: vain() };
                let waits = publishing::wait(&db, &attempt, wait).await.unwrap();
                assert!(matches!(waits, publishing::Waits::Until(_)), "{waits:?}");
            }
            "looked up" => publishing::note_answer(&db, target, fence).await.unwrap(),
            _ => {
                let end = End::Dead { source: failure.code.source(), failure };
                publishing::settle(&db, key, &end, None, now).await.unwrap();
                publishing::revive(&db, unbounded(owner), post.id, None, now).await.unwrap();
            }
        }
        assert_eq!(look().await.unanswered, 0, "{result}");
    }
}

/// An account is disconnected while a call of it is under way, and connected for another end tenant, who publishes the same
/// text. A look-up finds one post: it may be the former tenant's.
#[tokio::test(flavor = "multi_thread")]
async fn a_platforms_post_is_not_told_as_that_of_another_end_tenant() {
    let db = database().await;
    let owner = owner(&db).await;
    let connected = async |tenant: &str| {
        let mut tx = ::store::begin(&db).await.unwrap();
        let connect = Connect { tenant_id: Some(tenant.to_owned()), ..connect("x", "1", "ada") };
        let connected = accounts::upsert(&mut tx, owner, connect, |_| Vec::new(), at(1)).await.unwrap();
        tx.commit().await.unwrap();
        connected.account
    };
    let begun = async |account: &Account| {
        let post = create(&db, owner, draft_of(&[account])).await;
        let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else {
            panic!("it began")
        };
        let (step, limit) = (json!({ "step": 1 }), Duration::from_secs(60));
        let begun = publishing::intend(&db, key.target, 0, attempt.fence, &step, limit).await.unwrap();
        (key, begun.expect("it may publish"))
    };
    let one = connected("one").await;
    let (first, first_begun) = begun(&one).await;
    assert!(disconnect::disconnect(&db, unbounded(owner), one.id, &Actor::OPERATOR, at(2)).await.unwrap());
    let two = connected("two").await;
    assert_ne!(one.id, two.id);
    let (second, second_begun) = begun(&two).await;
    publishing::record_ambiguous(&db, second.target, 0, second_begun, ErrorCode::NetworkError).await.unwrap();
    assert!(!publishing::adopt(&db, second, 0, "9", true).await.unwrap(), "the call of the first is open");
    publishing::record_ambiguous(&db, first.target, 0, first_begun, ErrorCode::NetworkError).await.unwrap();
    assert!(!publishing::adopt(&db, second, 0, "9", true).await.unwrap(), "the first may have published it");
    let dead = "update targets set status = 'dead', error_message = 'lost' where id = ";
    tests::sql(&db, &format!("{dead}'{}'", first.target)).await;
    assert!(!publishing::adopt(&db, second, 0, "9", true).await.unwrap(), "the first may be retried");
    publishing::capture(&db, first, 0, "9").await.unwrap();
    assert!(!publishing::adopt(&db, second, 0, "9", true).await.unwrap(), "it is the first one's");
    assert!(publishing::adopt(&db, second, 0, "8", true).await.unwrap(), "this one is not");
}

/// Their texts differ, so that neither keeps the other waiting.
#[tokio::test(flavor = "multi_thread")]
async fn two_end_tenants_do_not_take_one_post_at_once() {
    let db = database().await;
    let owner = owner(&db).await;
    for round in 0..20 {
        let network_id = format!("shared {round}");
        let lost = async |tenant: &str| {
            let mut tx = ::store::begin(&db).await.unwrap();
            let login =
                Connect { tenant_id: Some(tenant.to_owned()), ..connect("x", &network_id, &network_id) };
            let account =
                accounts::upsert(&mut tx, owner, login, |_| Vec::new(), at(1)).await.unwrap().account;
            tx.commit().await.unwrap();
            let containers = vec![Container::new(0, format!("by {tenant}"), vec![])];
            let post = create(&db, owner, NewPost { containers, ..draft_of(&[&account]) }).await;
            let (key, attempt) = begin(&db, owner, &post, 0).await;
            let (step, limit) = (json!({ "step": 1 }), Duration::from_secs(60));
            let fence = begun(attempt).fence;
            let begun = publishing::intend(&db, key.target, 0, fence, &step, limit).await.unwrap().unwrap();
            publishing::record_ambiguous(&db, key.target, 0, begun, ErrorCode::NetworkError).await.unwrap();
            (account.id, key)
        };
        let (one, first) = lost("one").await;
        assert!(disconnect::disconnect(&db, unbounded(owner), one, &Actor::OPERATOR, at(2)).await.unwrap());
        let (two, second) = lost("two").await;
        assert_ne!(one, two);
        let adopt = |key: TargetKey| {
            let db = db.clone();
            tokio::spawn(async move { publishing::adopt(&db, key, 0, "9", true).await.unwrap() })
        };
        let adopted: Vec<_> =
            join_all([adopt(first), adopt(second)]).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(adopted.iter().filter(|is_ours| **is_ours).count(), 1, "round {round}: {adopted:?}");
    }
}

/// Two targets of one account are in doubt, and look-ups find one post on the platform.
#[tokio::test(flavor = "multi_thread")]
async fn a_platforms_post_belongs_to_one_target() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    let begun = async |account: &Account| {
        let post = create(&db, owner, draft_of(&[account])).await;
        let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else {
            panic!("it began")
        };
        let (step, limit) = (json!({ "step": 1 }), Duration::from_secs(60));
        let begun = publishing::intend(&db, key.target, 0, attempt.fence, &step, limit).await.unwrap();
        (key, begun.expect("it may publish"))
    };
    let doubt = async |(key, begun): (TargetKey, DateTime<Utc>)| {
        publishing::record_ambiguous(&db, key.target, 0, begun, ErrorCode::NetworkError).await.unwrap();
        key
    };
    let end = async |key: TargetKey| {
        let dead = "update targets set status = 'dead', error_message = 'refused' where id = ";
        tests::sql(&db, &format!("{dead}'{}'", key.target)).await;
    };
    // A target that has ended does not keep others waiting for its handle.
    let (dead, dead_begun) = begun(&ada).await;
    assert!(publishing::accept(&db, dead.target, 0, dead_begun, &json!({ "handle": 0 })).await.unwrap());
    let survivor = doubt(begun(&ada).await).await;
    assert!(!publishing::adopt(&db, survivor, 0, "6", true).await.unwrap(), "the other is accepted");
    end(dead).await;
    assert!(!publishing::adopt(&db, survivor, 0, "6", false).await.unwrap(), "the other may be retried");
    assert!(publishing::adopt(&db, survivor, 0, "6", true).await.unwrap(), "the other has ended");
    publishing::capture(&db, dead, 0, "2").await.unwrap();
    // Before reads show its own post, a target takes none that another one may have published.
    let (early, rival) = (doubt(begun(&ada).await).await, doubt(begun(&ada).await).await);
    assert!(!publishing::adopt(&db, early, 0, "5", false).await.unwrap(), "its own may come");
    end(rival).await;
    assert!(!publishing::adopt(&db, early, 0, "5", false).await.unwrap(), "the rival may be retried");
    assert!(publishing::adopt(&db, early, 0, "5", true).await.unwrap(), "it is not there");
    // One that was accepted takes nothing from one that would publish again.
    let (accepted, accepted_begun) = begun(&ada).await;
    assert!(
        publishing::accept(&db, accepted.target, 0, accepted_begun, &json!({ "handle": 2 })).await.unwrap()
    );
    assert!(!publishing::adopt(&db, accepted, 0, "4", true).await.unwrap(), "the rival would publish again");
    publishing::capture(&db, rival, 0, "3").await.unwrap();
    assert!(publishing::adopt(&db, accepted, 0, "4", true).await.unwrap(), "nobody else waits");
    // A look-up finds no post of a call that ended long before.
    let (old, (late, late_begun)) = (doubt(begun(&ada).await).await, begun(&ada).await);
    assert!(publishing::accept(&db, late.target, 0, late_begun, &json!({ "handle": 3 })).await.unwrap());
    end(old).await;
    assert!(!publishing::adopt(&db, late, 0, "12", true).await.unwrap(), "the dead one may be retried");
    let age = format!(
        "update publications set commit_begun_at = commit_begun_at - interval '2 hours',
           commit_ended_at = commit_ended_at - interval '2 hours' where target_id = '{}'",
        old.target
    );
    tests::sql(&db, &age).await;
    assert!(publishing::adopt(&db, late, 0, "12", true).await.unwrap(), "its call ended long before");
    publishing::capture(&db, old, 0, "13").await.unwrap();
    let taken = async |key: TargetKey, account: &Account| {
        publishing::captured_ids(&db, key, 0, account.id, Utc::now()).await.unwrap()
    };
    let (one, two, other) = (begun(&ada).await, begun(&ada).await, begun(&bob).await);
    let (one, other) = (doubt(one).await, doubt(other).await);
    // The post may belong to the other target, whose call is in flight or was accepted.
    assert!(!publishing::adopt(&db, one, 0, "9", true).await.unwrap(), "it may belong to another");
    let open = two.1;
    assert!(publishing::accept(&db, two.0.target, 0, open, &json!({ "handle": 1 })).await.unwrap());
    assert!(!publishing::adopt(&db, one, 0, "9", true).await.unwrap(), "it may belong to another");
    publishing::capture(&db, two.0, 0, "8").await.unwrap();
    let (third, two) = (doubt(begun(&ada).await).await, doubt(begun(&ada).await).await);
    assert!(publishing::adopt(&db, third, 0, "7", true).await.unwrap(), "no other call is open");
    // Of two concurrent look-ups that find the same post, one adopts it.
    let adopt = |key: TargetKey| {
        let db = db.clone();
        tokio::spawn(async move { publishing::adopt(&db, key, 0, "9", true).await.unwrap() })
    };
    let adopted: Vec<_> = join_all([adopt(one), adopt(two)]).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(adopted.iter().filter(|is_ours| **is_ours).count(), 1, "{adopted:?}");
    let (winner, loser) = if adopted[0] { (one, two) } else { (two, one) };
    assert!(publishing::adopt(&db, winner, 0, "9", true).await.unwrap(), "it stays the winner's");
    assert!(taken(loser, &ada).await.contains(&"9".to_owned()), "another target's");
    assert!(!taken(winner, &ada).await.contains(&"9".to_owned()), "its own");
    // A post of another account may have the same id.
    assert!(taken(other, &bob).await.is_empty());
    assert!(publishing::adopt(&db, other, 0, "9", true).await.unwrap());

    // An id from the platform's response is always kept, and a shared one is reported.
    let captured = publishing::capture(&db, winner, 0, "9").await.unwrap();
    assert_eq!((captured.platform_id.as_str(), captured.is_shared), ("9", false));
    let captured = publishing::capture(&db, loser, 0, "9").await.unwrap();
    assert_eq!((captured.platform_id.as_str(), captured.is_shared), ("9", true));
    let reported = timeline::list(&db, unbounded(owner), loser.post, WHOLE, None).await.unwrap().items;
    assert_eq!(reported.iter().filter(|entry| entry.kind == "shared").count(), 1, "{reported:?}");
    let (third, _) = begun(&ada).await;
    let captured = publishing::capture(&db, third, 0, "10").await.unwrap();
    assert_eq!((captured.platform_id.as_str(), captured.is_shared), ("10", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_waits_for_the_whole_thread_and_keeps_what_it_found() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let reply_to = |parent: &Post| NewPost { reply_to: Some(parent.id), ..draft_of(&[&ada]) };
    let parent = create(&db, owner, draft_of(&[&ada])).await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    let waits = async || matches!(begin(&db, owner, &reply, 0).await.1, BeginResult::Early(_));
    assert!(waits().await, "nothing is live");
    let (key, attempt) = begin(&db, owner, &parent, 0).await;
    let attempt = begun(attempt);
    assert_eq!(attempt.place, Place::Own);
    messages(&db).await;
    publish(&db, key, 0, attempt.fence, "1").await;
    let woken = async || {
        let is_wake =
            |message: &Message| matches!(message, Message::RetryTarget { post, .. } if *post == reply.id);
        messages(&db).await.iter().any(is_wake)
    };
    assert!(woken().await, "the end of the post wakes what waits for it");
    assert!(waits().await, "the comment is still to come");
    publish(&db, key, 1, attempt.fence, "2").await;
    assert!(publishing::mark_complete(&db, key, attempt.fence, at(21)).await.unwrap());
    assert!(woken().await);

    let (reply_key, first) = begin(&db, owner, &reply, 0).await;
    let first = begun(first);
    assert_eq!((&first.place, first.attempts), (&below("1", "2"), 1), "waiting is no attempt");
    let entries = timeline::list(&db, unbounded(owner), reply.id, WHOLE, None).await.unwrap().items;
    assert_eq!(entries.iter().filter(|entry| entry.kind == "waiting").count(), 1, "{entries:?}");
    // A later id of the post changes nothing for a reply that has begun.
    sqlx::query("update publications set platform_id = 'other' where target_id = $1 and position = 1")
        .bind(key.target.0)
        .execute(&db)
        .await
        .unwrap();
    let second = begun(begin(&db, owner, &reply, 0).await.1);
    assert_eq!(second.place, below("1", "2"));
    publish(&db, reply_key, 0, second.fence, "3").await;
    publish(&db, reply_key, 1, second.fence, "4").await;
    publishing::mark_complete(&db, reply_key, second.fence, at(22)).await.unwrap();
    let target = posts::get(&db, unbounded(owner), reply.id).await.unwrap().unwrap().targets.remove(0);
    assert_eq!(target.reply_parent.as_deref(), Some("2"));
    // A reply of the reply belongs to the same thread.
    let next = create(&db, owner, reply_to(&reply)).await;
    assert_eq!(begun(begin(&db, owner, &next, 0).await.1).place, below("1", "4"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_intended_below_a_post_that_is_gone() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let bob = account(&db, owner, "x", "2", "bob").await;
    let live = async || {
        let post = create(&db, owner, draft_of(&[&ada])).await;
        let (key, attempt) = begin(&db, owner, &post, 0).await;
        let fence = begun(attempt).fence;
        publish(&db, key, 0, fence, &format!("{}-0", post.id)).await;
        publish(&db, key, 1, fence, &format!("{}-1", post.id)).await;
        publishing::mark_complete(&db, key, fence, at(21)).await.unwrap();
        post
    };
    let reply_to = |parent: &Post| NewPost { reply_to: Some(parent.id), ..draft_of(&[&ada]) };
    let barred = async |reply: &Post| {
        let attempt = begun(begin(&db, owner, reply, 0).await.1);
        let Some(barred @ Barred::NoParent(reason)) = attempt.barred else { panic!("{:?}", attempt.barred) };
        (reason, attempt.is_over(barred))
    };

    // Unpublished between the beginning of an attempt and its call.
    let parent = live().await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    let (key, attempt) = begin(&db, owner, &reply, 0).await;
    let target = parent.targets[0].id;
    publishing::record_unpublished(&db, owner, parent.id, target, at(30)).await.unwrap();
    assert!(!intend(&db, key.target, begun(attempt).fence).await);
    assert_eq!(barred(&reply).await, (NoParent::Unpublished, true));

    // A call that was made before is looked up.
    let parent = live().await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    let (key, attempt) = begin(&db, owner, &reply, 0).await;
    assert!(intend(&db, key.target, begun(attempt).fence).await);
    posts::delete(&db, unbounded(owner), parent.id, None, at(30)).await.unwrap();
    assert_eq!(barred(&reply).await, (NoParent::Deleted, false));
    let place = begun(begin(&db, owner, &reply, 0).await.1).place;
    assert_eq!(place, below(&format!("{}-0", parent.id), &format!("{}-1", parent.id)));

    // A post that is deleted wakes what waits for it.
    let parent = create(&db, owner, draft_of(&[&ada])).await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    assert!(matches!(begin(&db, owner, &reply, 0).await.1, BeginResult::Early(_)));
    messages(&db).await;
    posts::delete(&db, unbounded(owner), parent.id, None, at(30)).await.unwrap();
    let is_wake =
        |message: &Message| matches!(message, Message::RetryTarget { post, .. } if *post == reply.id);
    assert!(messages(&db).await.iter().any(is_wake));
    assert_eq!(barred(&reply).await, (NoParent::Deleted, true));

    let parent = create(&db, owner, draft_of(&[&bob])).await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    assert_eq!(barred(&reply).await, (NoParent::NoTarget, true));
    let parent = create(&db, owner, draft_of(&[&ada])).await;
    let reply = create(&db, owner, reply_to(&parent)).await;
    let (key, _) = begin(&db, owner, &parent, 0).await;
    let failure = Failure::rejected(400, "no");
    let end = End::Dead { failure, source: ErrorSource::User };
    publishing::settle(&db, key, &end, None, at(30)).await.unwrap();
    assert_eq!(barred(&reply).await, (NoParent::Dead, true));
}
