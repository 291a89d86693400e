//! Events, and their deliveries to webhooks.

use super::*;

/// Returns the numbers of the events after a cursor, and the next cursor.
async fn read_numbers(db: &Pool, owner: Owner, after: Option<Cursor>, limit: u32) -> (Vec<u64>, Cursor) {
    let batch = events::read(db, unbounded(owner), &[], Request { after, limit }).await.unwrap();
    let number = |event: &events::Event| {
        let body: Value = serde_json::from_str(&event.body).unwrap();
        body["data"]["number"].as_u64().unwrap()
    };
    (batch.events.iter().map(number).collect(), batch.next)
}

/// Appends an event with a number, as of a time.
async fn report(tx: &mut PgConnection, owner: Owner, number: u64, at: DateTime<Utc>) {
    let data = json!({ "number": number });
    let new = NewEvent { name: EventName::AccountConnected, post: None, target: None, account: None, data };
    events::append(tx, owner, at, &new).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_keeps_its_last_answers() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let new =
        NewWebhook { url: "https://8.8.8.8/".to_owned(), events: vec!["*".to_owned()], description: None };
    let webhook =
        webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, at(0)).await.unwrap().unwrap();
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(1)).await.unwrap());
    let answer = async |status: i32, error: Option<&str>| {
        let claim = claim(&db, webhook.id).await.remove(0);
        let (id, excerpt) = (claim.id, Some(format!("body of {status}")));
        let response = Response {
            status: Some(status),
            excerpt,
            error: error.map(str::to_owned),
            ..Response::default()
        };
        drain::settle(&db, &[drain::Outcome { claim, response, retry_in: None }], at(2)).await.unwrap();
        let queued = deliveries::redeliver(&db, owner, webhook.id, id).await.unwrap();
        assert!(matches!(queued, RedeliverResult::Queued(_)), "{queued:?}");
        id
    };
    let kept = async |id| {
        let details = deliveries::get(&db, owner, webhook.id, id).await.unwrap().unwrap();
        details.answers.into_iter().map(|answer| answer.status.unwrap()).collect::<Vec<_>>()
    };
    let id = answer(200, None).await;
    assert_eq!(kept(id).await, [200], "the earlier round is kept");
    for status in 500..524 {
        answer(status, Some("no")).await;
    }
    let expected: Vec<_> = (504..524).collect();
    assert_eq!(kept(id).await, expected);
    let details = deliveries::get(&db, owner, webhook.id, id).await.unwrap().unwrap();
    assert_eq!(details.answers[0].excerpt.as_deref(), Some("body of 504"));
    assert_eq!((details.answers[0].at.unwrap().timestamp(), details.post), (at(2).timestamp(), None));
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert_eq!(deliveries::get(&db, stranger, webhook.id, id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_of_an_earlier_round_does_not_change_a_delivery() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let new =
        NewWebhook { url: "https://8.8.8.8/".to_owned(), events: vec!["*".to_owned()], description: None };
    let webhook =
        webhooks::create(&db, owner, new, |_| vec![1], None, &Actor::OPERATOR, at(0)).await.unwrap().unwrap();
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(1)).await.unwrap());
    let claim = async || {
        let mut claimed = claim(&db, webhook.id).await;
        assert_eq!(claimed.len(), 1);
        claimed.remove(0)
    };
    let settle = async |claim: &Claim, response: Response| {
        let outcome = drain::Outcome { claim: claim.clone(), response, retry_in: None };
        drain::settle(&db, &[outcome], at(2)).await.unwrap();
    };
    let refused = || Response { status: Some(500), error: Some("no".to_owned()), ..Response::default() };
    let page = Request { after: None, limit: 9 };
    let listed = deliveries::list(&db, owner, webhook.id, &Default::default(), page).await.unwrap();
    let id = listed.items[0].id;
    let again = || deliveries::redeliver(&db, owner, webhook.id, id);
    assert_eq!(again().await.unwrap(), RedeliverResult::InProgress);
    let first = claim().await;
    assert_eq!(again().await.unwrap(), RedeliverResult::InProgress);
    settle(&first, refused()).await;

    messages(&db).await;
    let RedeliverResult::Queued(queued) = again().await.unwrap() else { panic!("it was given up") };
    assert_eq!((queued.status, queued.attempts), (DeliveryStatus::Pending, 0));
    assert!(matches!(&messages(&db).await[..], [Message::DrainEndpoint(_)]));
    let second = claim().await;
    assert_eq!((second.event, second.attempt), (first.event, 1));
    settle(&first, Response::default()).await;
    assert_eq!(again().await.unwrap(), RedeliverResult::InProgress, "the first round is over");
    settle(&second, Response::default()).await;
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert_eq!(
        deliveries::redeliver(&db, stranger, webhook.id, id).await.unwrap(),
        RedeliverResult::NotFound
    );
    let both = join_all([again(), again()]).await;
    let queued = both.iter().filter(|one| matches!(one, Ok(RedeliverResult::Queued(_)))).count();
    assert_eq!(queued, 1, "one of two calls queues it: {both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_committed_late_is_not_skipped() {
    let db = database().await;
    let owner = owner(&db).await;
    let stranger = Owner { mode: Mode::Live, ..owner };
    let mut early = ::store::begin(&db).await.unwrap();
    let mut late = ::store::begin(&db).await.unwrap();
    // The first event has the smaller id, the earlier time and the older transaction, and is committed last.
    report(&mut early, owner, 1, tests::now()).await;
    report(&mut late, owner, 2, tests::now()).await;
    late.commit().await.unwrap();
    let (seen, after) = read_numbers(&db, owner, None, 10).await;
    assert_eq!(seen, [2]);
    let (seen, after) = read_numbers(&db, owner, Some(after), 10).await;
    assert!(seen.is_empty(), "it is not committed, and nobody waits for it");
    early.commit().await.unwrap();
    let (seen, after) = read_numbers(&db, owner, Some(after), 10).await;
    assert_eq!(seen, [1], "a cursor past a later event does not hide it");
    assert!(read_numbers(&db, owner, Some(after), 10).await.0.is_empty());
    assert_eq!(read_numbers(&db, owner, None, 10).await.0, [2, 1], "the order stays");
    assert!(read_numbers(&db, stranger, None, 10).await.0.is_empty(), "of one owner only");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_readers_of_a_stream_see_every_event_once() {
    const WRITERS: u64 = 8;
    const EVENTS: u64 = 20;
    let db = database().await;
    let owner = owner(&db).await;
    let written = AtomicU64::new(0);
    let write = async |writer: u64| {
        for number in 0..EVENTS {
            let mut tx = ::store::begin(&db).await.unwrap();
            report(&mut tx, owner, writer * EVENTS + number, tests::now()).await;
            tx.commit().await.unwrap();
            written.fetch_add(1, Ordering::SeqCst);
        }
    };
    let follow = async || {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let is_last = written.load(Ordering::SeqCst) == WRITERS * EVENTS;
            let (page, next) = read_numbers(&db, owner, after, 7).await;
            if page.is_empty() && is_last {
                break seen;
            }
            seen.extend(page);
            after = Some(next);
        }
    };
    let (_, one, other) = tokio::join!(join_all((0..WRITERS).map(write)), follow(), follow());
    assert_eq!(one, other, "all readers see the same order");
    let mut sorted = one;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..WRITERS * EVENTS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_for_thirty_days() {
    let db = database().await;
    let owner = owner(&db).await;
    let days = |days| tests::now() - TimeDelta::days(days);
    let mut tx = ::store::begin(&db).await.unwrap();
    report(&mut tx, owner, 1, days(31)).await;
    report(&mut tx, owner, 2, days(29)).await;
    tx.commit().await.unwrap();
    assert_eq!(read_numbers(&db, owner, None, 10).await.0, [2]);
}
