//! Ends of targets, and of their posts.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_live_together_with_what_was_left_out_of_it() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&ada]) }).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let message = "without the first comment".to_owned();
    let left_out = Some(LeftOut { from: 1, message: message.clone() });
    let end = End::Live { id: "9".to_owned(), url: None, left_out };
    publishing::settle(&db, key, &end, Some(attempt.fence), at(22)).await.unwrap();
    let target = now_of(&db, owner, &post).await.targets.remove(0);
    assert_eq!((target.status, target.error_code), (TargetStatus::Published, None));
    assert_eq!(target.error_message, Some(message));
}

/// An operator stops a target after its main container was captured and before it was settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_target_with_a_live_main_container_reports_its_missing_reply() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&ada]) }).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, attempt.fence).await);
    publishing::capture(&db, key, 0, "9").await.unwrap();
    let failure = Failure::network("an operator stopped it", false);
    let dead = End::Dead { source: failure.code.source(), failure };
    let settled = publishing::settle(&db, key, &dead, None, at(22)).await.unwrap();
    assert_eq!(settled, Settled::Ended(TargetStatus::Published));
    let target = &now_of(&db, owner, &post).await.targets[0];
    assert_eq!(target.platform_post_id.as_deref(), Some("9"));
    assert_eq!(target.error_code.as_deref(), Some("network_error"));
    assert_eq!(target.error_message.as_deref(), Some("part 2 of 2: an operator stopped it"));
    let missing = [Missing {
        position: 1,
        error_code: Some("network_error".to_owned()),
        error_message: "an operator stopped it".to_owned(),
        is_left_out: false,
    }];
    assert_eq!(target.missing, missing);
    let events = sqlx::query_as::<_, (String, sqlx::types::Json<Value>)>(
        "select event, (body::jsonb -> 'data' -> 'missing') from events where target_id = $1",
    );
    let told = events.bind(key.target.0).fetch_all(&db).await.unwrap();
    let part = json!({
        "position": 1, "error_code": "network_error", "error_message": "an operator stopped it",
    });
    assert_eq!(
        told,
        [("post.target.published".to_owned(), sqlx::types::Json(json!([part])))],
        "known from the start"
    );
    // The attempt that was under way publishes no reply, and a late look schedules none.
    assert!(!intend_at(&db, key.target, 1, attempt.fence).await);
    for purpose in [Purpose::Look, Purpose::Publish] {
        let late = publishing::begin(&db, key, purpose).await.unwrap();
        assert!(matches!(late, BeginResult::Ended(TargetStatus::Published)), "{late:?}");
    }
    assert_eq!(now_of(&db, owner, &post).await.targets[0].next_attempt_at, None);
}

/// An operator cancels the workflow of a scheduled post that was made a draft meanwhile, or edited.
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_post_is_not_ended_by_the_workflow_of_an_earlier_version() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    for is_draft in [true, false] {
        let external_ref = Some(format!("a draft: {is_draft}"));
        let post = create(&db, owner, NewPost { external_ref, ..draft_of(&[&ada, &bob]) }).await;
        let key = TargetKey { owner, post: post.id, target: post.targets[0].id, version: post.version };
        let edit = Edit {
            version: post.version,
            is_draft,
            scheduled_at: None,
            default_config: json!({}),
            metadata: posts::Metadata::default(),
            containers: None,
            accounts: None,
            deviations: posts::Deviations::default(),
            imports: Vec::new(),
            request_id: None,
            horizon: HORIZON,
        };
        let edited = posts::edit(&db, unbounded(owner), post.id, edit, at(2)).await.unwrap();
        let posts::EditResult::Updated(edited) = edited else { panic!("it has not begun: {edited:?}") };
        let failure = Failure::network("an operator stopped it", false);
        let dead = End::Dead { source: failure.code.source(), failure };
        let settled = publishing::settle(&db, key, &dead, None, at(3)).await.unwrap();
        assert_eq!(settled, Settled::Stale);
        let after = now_of(&db, owner, &post).await;
        assert_eq!((after.status, statuses(&after)), (edited.status, statuses(&edited)));
        let key = TargetKey { version: edited.version, ..key };
        let settled = publishing::settle(&db, key, &dead, None, at(4)).await.unwrap();
        assert_eq!(settled, Settled::Ended(TargetStatus::Dead), "of the version that is stored");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_target_is_not_settled_again() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&ada]) }).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, attempt.fence).await);
    let failure = Failure::network("an operator stopped it", true);
    let dead = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &dead, None, at(22)).await.unwrap();
    publishing::capture(&db, key, 0, "9").await.unwrap();
    let live = End::Live { id: "9".to_owned(), url: None, left_out: None };
    let late = publishing::settle(&db, key, &live, Some(attempt.fence), at(23)).await.unwrap();
    assert_eq!(late, Settled::Late(TargetStatus::Dead));
    let after = now_of(&db, owner, &post).await;
    assert_eq!((after.status, statuses(&after)), (PostStatus::Failed, vec![TargetStatus::Dead]));
    let entries = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
    assert!(entries.iter().any(|entry| entry.kind == "late" && entry.message.contains('9')), "{entries:?}");
}

/// After a rollback there are codes that only the later version knows.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_error_code_stops_no_attempt() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, attempt.fence).await);
    let later =
        "update publications set commit_ended_at = now(), ambiguous_error_code = 'of_a_later_version';
                 update targets set error_code = 'of_a_later_version'";
    tests::sql(&db, later).await;
    let state = publishing::target_state(&db, key).await.unwrap().unwrap();
    assert_eq!((state.error_code, state.in_doubt), (None, true));
    let (_, again) = begin(&db, owner, &post, 0).await;
    let BeginResult::Attempt(again) = again else { panic!("{again:?}") };
    assert_eq!(again.entries[0].ambiguous_error_code, None);
    let failure = Failure::network("an operator stopped it", true);
    let dead = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &dead, None, at(22)).await.unwrap();
    tests::sql(&db, later).await;
    let (_, ended) = begin(&db, owner, &post, 0).await;
    assert!(matches!(ended, BeginResult::Ended(TargetStatus::Dead)), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_platform_id_is_reported_and_the_first_is_kept() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&ada])).await;
    let (key, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    assert!(intend(&db, key.target, attempt.fence).await);
    for _ in 0..2 {
        assert_eq!(publishing::capture(&db, key, 0, "1").await.unwrap().platform_id, "1");
    }
    let reported = |entries: Vec<timeline::Entry>| {
        entries.into_iter().filter(|entry| entry.kind == "duplicate").collect::<Vec<_>>()
    };
    assert_eq!(
        reported(timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items),
        []
    );
    assert_eq!(publishing::capture(&db, key, 0, "2").await.unwrap().platform_id, "1");
    let [reported] =
        &reported(timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items)[..]
    else {
        panic!("one entry")
    };
    assert!(reported.message.contains("2 beside 1"), "{}", reported.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn canceling_the_last_target_of_a_failing_post_reports_the_failure() {
    let db = database().await;
    let owner = owner(&db).await;
    let new = NewWebhook {
        url: "https://receiver.example/".to_owned(),
        events: vec!["post.error".to_owned()],
        description: None,
    };
    let webhook =
        webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, at(1)).await.unwrap().unwrap();
    let (one, other) =
        (account(&db, owner, "x", "1", "one").await, account(&db, owner, "x", "2", "other").await);
    let new = NewPost { external_ref: Some("a".to_owned()), ..draft_of(&[&one, &other]) };
    let post = create(&db, owner, new).await;
    let (key, _) = begin(&db, owner, &post, 0).await;
    let failure = Failure::rejected(400, "too long");
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, key, &end, None, at(21)).await.unwrap();
    messages(&db).await;
    assert!(posts::delete(&db, unbounded(owner), post.id, None, at(22)).await.unwrap());
    let deleted = now_of(&db, owner, &post).await;
    assert_eq!(deleted.status, PostStatus::Failed);
    assert_eq!(statuses(&deleted), [TargetStatus::Dead, TargetStatus::Canceled]);
    let sent = messages(&db).await;
    // The workflow may wait for a time that the canceled target had of its own.
    let [Message::DrainEndpoint(endpoint), Message::PostCanceled { post: canceled, .. }] = &sent[..] else {
        panic!("one event and one end of the post, a message each: {sent:?}")
    };
    assert_eq!((endpoint.webhook, *canceled), (webhook.id, post.id));
    let claimed = claim(&db, webhook.id).await;
    let [claim] = &claimed[..] else { panic!("one delivery: {claimed:?}") };
    assert!(claim.body.contains("\"post.error\""), "{}", claim.body);
    assert!(webhooks::delete(&db, owner, webhook.id, &Actor::OPERATOR, at(23)).await.unwrap());
    assert!(!webhooks::delete(&db, owner, webhook.id, &Actor::OPERATOR, at(24)).await.unwrap());
    assert_eq!(webhooks::list(&db, owner, WHOLE).await.unwrap().items, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_that_settle_concurrently_end_their_post() {
    let db = database().await;
    let owner = owner(&db).await;
    let (one, other) =
        (account(&db, owner, "x", "1", "one").await, account(&db, owner, "x", "2", "other").await);
    for round in 0..100 {
        let new = NewPost { external_ref: Some(round.to_string()), ..draft_of(&[&one, &other]) };
        let post = create(&db, owner, new).await;
        let (first, _) = begin(&db, owner, &post, 0).await;
        let (second, _) = begin(&db, owner, &post, 1).await;
        let settle = |key: TargetKey| {
            let db = db.clone();
            let end = End::Live { id: "9".to_owned(), url: None, left_out: None };
            tokio::spawn(async move { publishing::settle(&db, key, &end, None, at(22)).await.unwrap() })
        };
        for settled in join_all([settle(first), settle(second)]).await {
            assert_eq!(settled.unwrap(), Settled::Ended(TargetStatus::Published));
        }
        assert_eq!(now_of(&db, owner, &post).await.status, PostStatus::Published, "round {round}");
    }
}
