//! Posts, their pages and searches.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_post_reads_back_as_it_was_returned() {
    let db = database().await;
    let owner = owner(&db).await;
    let (x, bluesky) = (
        account(&db, owner, "x", "1", "ada").await,
        account(&db, owner, "bluesky", "did:1", "ada.test").await,
    );
    let new = NewPost { scheduled_at: Some(at(3600)), ..draft_of(&[&x, &bluesky]) };
    let post = create(&db, owner, new).await;
    assert_eq!(posts::get(&db, unbounded(owner), post.id).await.unwrap().unwrap(), post);
    assert_eq!(post.status, PostStatus::Scheduled);
    assert_eq!(post.targets[1].account_id, bluesky.id);
    let [Message::PublishPost(job)] = &messages(&db).await[..] else { panic!("one post, one message") };
    assert_eq!((job.post, job.due, job.targets.len()), (post.id, post.scheduled_at, 2));
    for stranger in [Owner { mode: Mode::Live, ..owner }, Owner { org: OrgId(uuid::Uuid::now_v7()), ..owner }]
    {
        assert_eq!(posts::get(&db, unbounded(stranger), post.id).await.unwrap(), None);
        assert!(!posts::delete(&db, unbounded(stranger), post.id, None, at(30)).await.unwrap());
        assert_eq!(timeline::list(&db, unbounded(stranger), post.id, WHOLE, None).await.unwrap().items, []);
        assert_eq!(accounts::get(&db, unbounded(stranger), x.id).await.unwrap(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_with_one_external_ref_create_one_post() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let new = || NewPost { external_ref: Some("order-1".to_owned()), ..draft_of(&[&account]) };
    let created = join_all((0..16).map(|_| posts::create(&db, unbounded(owner), new(), at(10)))).await;
    let (mut made, mut ids) = (0, HashSet::new());
    for created in created {
        let post = match created.unwrap() {
            Created::New(post) => {
                made += 1;
                post
            }
            Created::Replay(post) => post,
        };
        assert_eq!((post.containers.len(), post.targets.len()), (2, 1));
        ids.insert(post.id);
    }
    assert_eq!((made, ids.len()), (1, 1));
    assert_eq!(messages(&db).await.len(), 1);
    let id = ids.into_iter().next().unwrap();
    assert_eq!(timeline::list(&db, unbounded(owner), id, WHOLE, None).await.unwrap().items.len(), 1);

    assert!(posts::delete(&db, unbounded(owner), id, None, at(20)).await.unwrap());
    let again = posts::create(&db, unbounded(owner), new(), at(30)).await.unwrap();
    assert!(matches!(again, Created::Replay(post) if post.id == id && post.status == PostStatus::Canceled));
    let live = Owner { mode: Mode::Live, ..owner };
    assert!(matches!(posts::create(&db, unbounded(live), new(), at(30)).await.unwrap(), Created::New(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_post_cancels_targets_that_have_not_begun() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    for (is_draft, scheduled_at, tells) in
        [(true, None, false), (false, Some(at(99)), true), (false, None, true)]
    {
        let external_ref = Some(format!("{is_draft} {scheduled_at:?}"));
        let post =
            create(&db, owner, NewPost { is_draft, scheduled_at, external_ref, ..draft_of(&[&account]) })
                .await;
        assert_eq!(messages(&db).await.len(), usize::from(!is_draft));
        assert!(posts::delete(&db, unbounded(owner), post.id, None, at(11)).await.unwrap());
        assert!(!posts::delete(&db, unbounded(owner), post.id, None, at(12)).await.unwrap());
        assert_eq!(posts::get(&db, unbounded(owner), post.id).await.unwrap(), None);
        let post = now_of(&db, owner, &post).await;
        assert_eq!((post.status, statuses(&post)), (PostStatus::Canceled, vec![TargetStatus::Canceled]));
        let reported = messages(&db).await;
        assert_eq!(
            reported,
            if tells { vec![Message::PostCanceled { post: post.id, owner }] } else { vec![] }
        );
        assert!(matches!(begin(&db, owner, &post, 0).await.1, BeginResult::Ended(TargetStatus::Canceled)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_post_cancels_targets_without_a_call_in_flight() {
    let db = database().await;
    let owner = owner(&db).await;
    let (mut accounts, mut refs) = (Vec::new(), Vec::new());
    for number in 0..4 {
        accounts.push(account(&db, owner, "x", &number.to_string(), &format!("ada{number}")).await);
    }
    refs.extend(&accounts);
    let new = NewPost { external_ref: Some("a".to_owned()), ..draft_of(&refs) };
    let post = create(&db, owner, new).await;
    // The first waits for its next attempt, the second is preparing, the third has a call in flight, and the
    // fourth has not begun.
    let (_, BeginResult::Attempt(waiting)) = begin(&db, owner, &post, 0).await else { panic!("it began") };
    let hour = Duration::from_secs(3600);
    publishing::record_failure(&db, &waiting, &Failure::upstream(503, "no"), hour).await.unwrap();
    let (_, BeginResult::Attempt(preparing)) = begin(&db, owner, &post, 1).await else { panic!("it began") };
    let (key, BeginResult::Attempt(calling)) = begin(&db, owner, &post, 2).await else { panic!("it began") };
    assert!(intend(&db, key.target, calling.fence).await);
    messages(&db).await;

    assert!(posts::delete(&db, unbounded(owner), post.id, None, at(21)).await.unwrap());
    let deleted = now_of(&db, owner, &post).await;
    assert_eq!(deleted.status, PostStatus::Publishing);
    let canceled = TargetStatus::Canceled;
    assert_eq!(statuses(&deleted), [canceled, canceled, TargetStatus::Queued, canceled]);
    let reported = messages(&db).await;
    let hurried = |number: usize| {
        reported.contains(&Message::RetryTarget { target: post.targets[number].id, post: post.id, owner })
    };
    assert!(hurried(0) && hurried(2), "workflows that may sleep are woken: {reported:?}");

    // Neither publishes any more, and the result of the call in flight counts.
    assert!(!intend(&db, post.targets[1].id, preparing.fence).await);
    let BeginResult::Attempt(look) = publishing::begin(&db, key, Purpose::Publish).await.unwrap() else {
        panic!("it is open")
    };
    assert_eq!(look.barred, Some(Barred::Deleted));
    assert!(!intend(&db, key.target, look.fence).await);
    let end =
        End::Live { id: "9".to_owned(), url: Some("https://x.com/one/status/9".to_owned()), left_out: None };
    publishing::settle(&db, key, &end, None, at(22)).await.unwrap();
    assert_eq!(now_of(&db, owner, &post).await.status, PostStatus::Partial);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_lists_entries_and_deliveries_in_order() {
    let db = database().await;
    let owner = owner(&db).await;
    let new = NewWebhook {
        url: "https://me:secret@receiver.example:8443/secret?token=secret".to_owned(),
        events: vec!["*".to_owned()],
        description: Some("all".to_owned()),
    };
    let webhook =
        webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, at(1)).await.unwrap().unwrap();
    assert_eq!(webhooks::get(&db, owner, webhook.id).await.unwrap(), Some(webhook.clone()));
    let account = account(&db, owner, "x", "1", "one").await;
    let created = posts::create(&db, unbounded(owner), draft_of(&[&account]), tests::now()).await.unwrap();
    let Created::New(post) = created else { panic!("new") };
    let (key, _) = begin(&db, owner, &post, 0).await;
    let end =
        End::Live { id: "9".to_owned(), url: Some("https://x.com/one/status/9".to_owned()), left_out: None };
    publishing::settle(&db, key, &end, None, tests::now()).await.unwrap();
    let entries =
        timeline::list(&db, unbounded(owner), post.id, WHOLE, unbounded(owner).whole()).await.unwrap().items;
    let reported: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(reported, ["created", "attempt", "published", "delivery", "delivery"]);
    let without = timeline::list(&db, unbounded(owner), post.id, WHOLE, None).await.unwrap().items;
    assert_eq!(without, entries[..3]);
    assert_eq!(entries[1].target_id, Some(post.targets[0].id));
    assert_eq!(entries[3].message, "Delivering post.target.published to receiver.example:8443");
    // When the endpoint is deleted, its workflow ends both deliveries.
    assert!(webhooks::delete(&db, owner, webhook.id, &Actor::OPERATOR, at(23)).await.unwrap());
    let open_from = tests::now() - TimeDelta::days(1);
    assert_eq!(drain::abandon(&db, webhook.id, open_from).await.unwrap(), 2);
    let entries =
        timeline::list(&db, unbounded(owner), post.id, WHOLE, unbounded(owner).whole()).await.unwrap().items;
    assert!(entries[3..].iter().all(|entry| entry.detail["status"] == "failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_neither_skip_nor_repeat_while_posts_arrive() {
    let db = database().await;
    let owner = owner(&db).await;
    let (x, bluesky) = (
        account(&db, owner, "x", "1", "ada").await,
        account(&db, owner, "bluesky", "did:1", "ada.test").await,
    );
    let mut expected = Vec::new();
    for n in 0..23 {
        // Several share a creation time, and some differ by less than a millisecond.
        let made = at(n / 5) + TimeDelta::microseconds(n % 2);
        let account = if n % 3 == 0 { &bluesky } else { &x };
        let Created::New(post) =
            posts::create(&db, unbounded(owner), draft_of(&[account]), made).await.unwrap()
        else {
            panic!("without external_ref, a post is new")
        };
        expected.push((post.created_at, post.id, n % 3 == 0));
    }
    expected.sort_by_key(|(at, id, _)| std::cmp::Reverse((*at, *id)));
    let ids = |only: Option<bool>| {
        let wanted = expected.iter().filter(|(_, _, bluesky)| only.is_none_or(|only| only == *bluesky));
        wanted.map(|(_, id, _)| *id).collect::<Vec<_>>()
    };
    for (filter, expected) in [
        (posts::Filter::default(), ids(None)),
        (posts::Filter { platform: Some("bluesky".to_owned()), ..Default::default() }, ids(Some(true))),
        (posts::Filter { social_account_id: Some(x.id), ..Default::default() }, ids(Some(false))),
    ] {
        let (mut seen, mut after, mut later) = (Vec::new(), None, 1000);
        loop {
            let request = Request { after, limit: 4 };
            let arrive = posts::create(&db, unbounded(owner), draft_of(&[&x, &bluesky]), at(later));
            let created_before = Some(at(1000));
            let filter = posts::Filter { created_before, ..filter.clone() };
            let (page, arrived) = tokio::join!(posts::list(&db, unbounded(owner), &filter, request), arrive);
            arrived.unwrap();
            let page = page.unwrap();
            later += 1;
            seen.extend(page.items.iter().map(|post| post.id));
            assert!(page.items.len() == 4 || page.next.is_none());
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected);
    }
    let all =
        posts::list(&db, unbounded(owner), &posts::Filter::default(), Request { after: None, limit: 1 })
            .await
            .unwrap();
    assert_eq!(all.items[0].status, PostStatus::Queued);
    let none = posts::Filter { status: Some(PostStatus::Draft), ..Default::default() };
    assert_eq!(
        posts::list(&db, unbounded(owner), &none, Request { after: None, limit: 1 }).await.unwrap().items,
        []
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_post_is_due_at_its_slot_and_holds_it_until_rescheduled() {
    let db = database().await;
    let owner = owner(&db).await;
    let (ada, bob) = (account(&db, owner, "x", "1", "ada").await, account(&db, owner, "x", "2", "bob").await);
    let noon = Slot { weekday: Weekday::Monday, time: "12:00".parse().unwrap() };
    slots::set(&db, unbounded(owner), Some(ada.id), vec![noon], None, at(0)).await.unwrap();
    assert_eq!(slots::of(&db, unbounded(owner), ada.id).await.unwrap(), [noon]);
    assert_eq!(slots::of(&db, unbounded(owner), bob.id).await.unwrap(), []);
    let schedule = Schedule { slots: vec![noon], zone: "Asia/Kathmandu".parse().unwrap() };
    let queue = Queue { account: ada.id, schedule };
    let open = slots::open(&db, unbounded(owner), &queue, at(0), 3).await.unwrap();
    let push = async || match posts::queue(&db, unbounded(owner), draft_of(&[&ada, &bob]), &queue, at(0))
        .await
        .unwrap()
    {
        Created::New(post) => post,
        other => panic!("no new post: {other:?}"),
    };
    let (one, two) = (push().await, push().await);
    assert_eq!([one.scheduled_at, two.scheduled_at], [Some(open[0]), Some(open[1])]);
    assert_eq!(posts::get(&db, unbounded(owner), one.id).await.unwrap().unwrap(), one);
    let due: Vec<_> = messages(&db)
        .await
        .into_iter()
        .map(|message| match message {
            Message::PublishPost(job) => (job.post, job.due),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(due, [(one.id, one.scheduled_at), (two.id, two.scheduled_at)]);
    assert_eq!(slots::open(&db, unbounded(owner), &queue, at(0), 1).await.unwrap(), [open[2]]);
    assert!(posts::delete(&db, unbounded(owner), one.id, None, at(1)).await.unwrap());
    assert_eq!(slots::open(&db, unbounded(owner), &queue, at(0), 2).await.unwrap(), [open[0], open[2]]);

    let edit = |post: &Post| Edit {
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
        horizon: HORIZON,
    };
    let posts::EditResult::Updated(moved) =
        posts::requeue(&db, unbounded(owner), two.id, edit(&two), &queue, at(2)).await.unwrap()
    else {
        panic!("it has not begun")
    };
    assert_eq!((moved.scheduled_at, moved.status), (Some(open[0]), PostStatus::Scheduled));
    let stale = posts::requeue(&db, unbounded(owner), two.id, edit(&two), &queue, at(2)).await.unwrap();
    assert_eq!(stale, posts::EditResult::Outdated);
    let posts::EditResult::Updated(moved) =
        posts::edit(&db, unbounded(owner), two.id, edit(&moved), at(3)).await.unwrap()
    else {
        panic!("it has not begun")
    };
    assert_eq!((moved.scheduled_at, moved.status), (None, PostStatus::Queued));
    assert_eq!(slots::open(&db, unbounded(owner), &queue, at(0), 3).await.unwrap(), open);
    let none = Queue { schedule: Schedule { slots: vec![], ..queue.schedule.clone() }, ..queue };
    let refused = posts::queue(&db, unbounded(owner), draft_of(&[&ada]), &none, at(4)).await;
    assert!(matches!(refused, Err(CreateError::NoOpenSlot)), "{refused:?}");
    let crowded = posts::requeue(&db, unbounded(owner), two.id, edit(&moved), &none, at(4)).await.unwrap();
    assert_eq!(crowded, posts::EditResult::NoOpenSlot);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_looks_through_a_bounded_number_of_posts_and_goes_on() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&account])).await;
    let count = i64::from(posts::SEARCHED) + 1;
    // Newer posts, of which the first is as old as the search can see from the newest, and none matches.
    sqlx::query(
        "with made as (
           insert into posts (id, org_id, mode, status, is_draft, created_at)
           select gen_random_uuid(), org_id, mode, 'draft', true, created_at + make_interval(secs => n)
           from posts, generate_series(1, $2) as n where id = $1
           returning id, org_id, mode)
         insert into containers (id, post_id, org_id, mode, position, content, media)
         select gen_random_uuid(), id, org_id, mode, 0, 'other', '[]' from made",
    )
    .bind(post.id.0)
    .bind(count)
    .execute(&db)
    .await
    .unwrap();
    let page = async |text: &str, after, limit| {
        let filter = posts::Filter { text: Some(text.to_owned()), ..Default::default() };
        posts::list(&db, unbounded(owner), &filter, Request { after, limit }).await.unwrap()
    };
    let first = page("MAIN", None, 10).await;
    assert_eq!(first.items, [], "the post is beyond what one page looks through");
    let second = page("MAIN", first.next, 10).await;
    assert_eq!(second.items.iter().map(|post| post.id).collect::<Vec<_>>(), [post.id]);
    assert_eq!(second.next, None);
    // Full pages of matches skip nothing.
    let (mut after, mut seen) = (None, 0);
    loop {
        let page = page("ther", after, 300).await;
        seen += page.items.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, usize::try_from(count).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_looks_through_a_bounded_length_of_text_and_goes_on() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let post = create(&db, owner, draft_of(&[&account])).await;
    // Three newer posts of a megabyte, of which the third is beyond two megabytes.
    sqlx::query(
        "with made as (
           insert into posts (id, org_id, mode, status, is_draft, created_at)
           select gen_random_uuid(), org_id, mode, 'draft', true, created_at + make_interval(secs => n)
           from posts, generate_series(1, 3) as n where id = $1
           returning id, org_id, mode)
         insert into containers (id, post_id, org_id, mode, position, content, media)
         select gen_random_uuid(), id, org_id, mode, 0, repeat('o', 1048576), '[]' from made",
    )
    .bind(post.id.0)
    .execute(&db)
    .await
    .unwrap();
    let page = async |text: &str, after| {
        let filter = posts::Filter { text: Some(text.to_owned()), ..Default::default() };
        posts::list(&db, unbounded(owner), &filter, Request { after, limit: 10 }).await.unwrap()
    };
    let first = page("MAIN", None).await;
    assert_eq!(first.items, [], "the post is beyond what one page looks through");
    let second = page("MAIN", first.next).await;
    assert_eq!(second.items.iter().map(|post| post.id).collect::<Vec<_>>(), [post.id]);
    assert_eq!(second.next, None);
    let long = page("oo", None).await;
    assert_eq!(long.items.len(), 2);
    let rest = page("oo", long.next).await;
    assert_eq!((rest.items.len(), rest.next), (1, None));
}
