//! The queries of `store`, tested on a real Postgres.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod concurrent;
mod live_edits;
mod operating;
mod parked;
mod releasing;
mod replies;
mod timelines;

use crate::{WHOLE, database};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::{
    AccountId, Bound, ErrorCode, ErrorSource, Failure, Holds, Metrics, Missing, Mode, OrgId, Owner,
    PostStatus, TargetId, TargetStatus, Then, Wait, WaitReason, WebhookId,
    event::EventName,
    outbox::Message,
    scope::Scope,
    slot::{Schedule, Slot, Weekday},
};
use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::PgConnection;
use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::Duration,
};
use store::{
    Pool,
    accounts::{self, Account, AccountStatus, Connect, Resolution, disconnect, grants},
    bounds::unbounded,
    operators, outbox,
    page::{Cursor, Request},
    people::{
        audit::Actor,
        keys::{self, NewKey},
        organizations,
    },
    posts::{
        self, Container, CreateError, Created, Edit, NewPost, Post,
        slots::{self, Queue},
        timeline,
    },
    publishing::{
        self, Attempt, Barred, BeginResult, End, LeftOut, NoParent, Parent, Place, Purpose, Settled,
        TargetKey, Withdrawn,
        sweep::{self, Timing},
    },
    usage::{
        self, Authenticated, Bucket, Quotas,
        metrics::{self, CollectionSchedule, Snapshot},
        requests,
    },
    webhooks::{
        self, NewWebhook,
        deliveries::{self, DeliveryStatus, RedeliverResult, Response},
        drain::{self, Claim},
        events::{self, NewEvent},
    },
};

/// Every post of these tests is due within it.
const HORIZON: Duration = Duration::from_secs(u32::MAX as u64);

/// Returns a time, in seconds after an arbitrary one.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 123_456_789).unwrap()
}

/// Claims all open deliveries of an endpoint, whose times are not the database's.
async fn claim(db: &Pool, webhook: WebhookId) -> Vec<Claim> {
    tests::sql(db, "update deliveries set created_at = now()").await;
    let open_from = tests::now() - TimeDelta::days(1);
    drain::claim(db, webhook, open_from, 9, Duration::from_secs(60)).await.unwrap().claims
}

async fn owner(db: &Pool) -> Owner {
    Owner { org: organizations::create(db, "Acme").await.unwrap(), mode: Mode::Test }
}

fn connect(platform: &str, network_unique_id: &str, username: &str) -> Connect {
    Connect {
        platform: platform.to_owned(),
        profile: domain::AccountProfile {
            network_unique_id: network_unique_id.to_owned(),
            username: username.to_owned(),
            display_name: username.to_owned(),
            account_type: "profile".to_owned(),
            profile_image_url: None,
            profile_url: None,
        },
        tenant_id: None,
        social_network_id: None,
        scopes: vec!["write".to_owned()],
        token_expires_at: None,
        grant_expires_at: None,
    }
}

async fn account(db: &Pool, owner: Owner, platform: &str, id: &str, username: &str) -> Account {
    let mut tx = ::store::begin(db).await.unwrap();
    let seal = |id: AccountId| id.to_string().into_bytes();
    let connected =
        accounts::upsert(&mut tx, owner, connect(platform, id, username), seal, at(0)).await.unwrap();
    tx.commit().await.unwrap();
    connected.account
}

fn draft_of(accounts: &[&Account]) -> NewPost {
    NewPost {
        is_draft: false,
        reply_to: None,
        scheduled_at: None,
        default_config: json!({ "x": { "reply_settings": "following" } }),
        external_ref: None,
        metadata: posts::Metadata::default(),
        containers: vec![
            Container::new(0, "main".to_owned(), vec![]),
            Container::new(1, "comment".to_owned(), vec![]),
        ],
        accounts: accounts.iter().map(|account| (account.id, account.platform.clone())).collect(),
        deviations: posts::Deviations::default(),
        imports: Vec::new(),
        request_id: None,
        horizon: HORIZON,
    }
}

async fn create(db: &Pool, owner: Owner, new: NewPost) -> Post {
    match posts::create(db, unbounded(owner), new, at(10)).await.unwrap() {
        Created::New(post) => post,
        Created::Replay(post) => panic!("{} already existed", post.id),
    }
}

async fn begin(db: &Pool, owner: Owner, post: &Post, target: usize) -> (TargetKey, BeginResult) {
    let key = TargetKey { owner, post: post.id, target: post.targets[target].id, version: post.version };
    (key, publishing::begin(db, key, Purpose::Publish).await.unwrap())
}

/// Records the intent of a call that may take a minute, and returns whether it was accepted.
async fn intend(db: &Pool, target: TargetId, fence: i32) -> bool {
    intend_at(db, target, 0, fence).await
}

/// Does the same for the container at a position.
async fn intend_at(db: &Pool, target: TargetId, position: u16, fence: i32) -> bool {
    let (step, limit) = (json!({ "step": 1 }), Duration::from_secs(60));
    publishing::intend(db, target, position, fence, &step, limit).await.unwrap().is_some()
}

async fn messages(db: &Pool) -> Vec<Message> {
    let claimed = outbox::claim(db, 100, Duration::from_secs(60)).await.unwrap();
    outbox::complete(db, &claimed.iter().map(|message| message.id).collect::<Vec<_>>(), &[]).await.unwrap();
    claimed.into_iter().map(|claimed| claimed.message.expect("readable")).collect()
}

/// Returns the current state of a post, deleted or not.
async fn now_of(db: &Pool, owner: Owner, post: &Post) -> Post {
    let key = post.external_ref.as_deref().unwrap();
    posts::replay(db, unbounded(owner), key).await.unwrap().unwrap().expect("nothing limits who asks")
}

fn statuses(post: &Post) -> Vec<TargetStatus> {
    post.targets.iter().map(|target| target.status).collect()
}

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
async fn an_entry_names_an_account_by_id_handle_or_platform_id() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "100", "ada").await;
    let same = account(&db, owner, "bluesky", "did:plc:1", "same").await;
    account(&db, owner, "threads", "200", "same").await;
    let twice = account(&db, owner, "reddit", "bob", "bob").await;
    let gone = account(&db, owner, "x", "300", "gone").await;
    let stranger = account(&db, Owner { mode: Mode::Live, ..owner }, "x", "400", "stranger").await;
    for transition in [true, false] {
        assert_eq!(
            disconnect::disconnect(&db, unbounded(owner), gone.id, &Actor::OPERATOR, at(5)).await.unwrap(),
            transition
        );
    }
    let expected = [
        (ada.id.to_string(), Some(&ada)),
        (ada.id.to_string().to_uppercase(), Some(&ada)),
        ("ada".to_owned(), Some(&ada)),
        ("100".to_owned(), Some(&ada)),
        ("did:plc:1".to_owned(), Some(&same)),
        ("bob".to_owned(), Some(&twice)),
        ("Ada".to_owned(), None),
        (gone.id.to_string(), None),
        ("gone".to_owned(), None),
        ("300".to_owned(), None),
        (stranger.id.to_string(), None),
        ("stranger".to_owned(), None),
        (String::new(), None),
    ];
    let entries: Vec<_> = expected.iter().map(|(entry, _)| entry.clone()).collect();
    let found = accounts::resolve(&db, unbounded(owner), &entries).await.unwrap();
    for ((entry, expected), found) in expected.iter().zip(found) {
        let expected =
            expected.map_or(Resolution::None, |account| Resolution::One(Box::new(account.clone())));
        assert_eq!(found, expected, "{entry}");
    }
    let found =
        accounts::resolve(&db, unbounded(owner), &["same".to_owned(), "ada".to_owned()]).await.unwrap();
    assert!(matches!(&found[..], [Resolution::Ambiguous, Resolution::One(_)]));
    assert_eq!(accounts::resolve(&db, unbounded(owner), &[]).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnecting_keeps_the_id_and_reactivates_the_account() {
    let db = database().await;
    let owner = owner(&db).await;
    let first = account(&db, owner, "x", "1", "ada").await;
    let read = grants::get(&db, owner, first.id).await.unwrap().unwrap();
    grants::mark_lost(&db, owner, first.id, read.version, &Failure::revoked("Revoked"), at(1)).await.unwrap();
    let lost = accounts::get(&db, unbounded(owner), first.id).await.unwrap().unwrap();
    assert_eq!(lost.status, AccountStatus::ReauthRequired);
    assert_eq!(lost.last_error_code.as_deref(), Some("token_expired"));
    let mut tx = ::store::begin(&db).await.unwrap();
    let renamed = Connect { tenant_id: Some("t".to_owned()), ..connect("x", "1", "lovelace") };
    let seal = |id: AccountId| format!("second:{id}").into_bytes();
    let again = accounts::upsert(&mut tx, owner, renamed, seal, at(2)).await.unwrap();
    let kept = accounts::upsert(&mut tx, owner, connect("x", "1", "lovelace"), seal, at(3)).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!again.is_new);
    assert_eq!((again.account.id, again.account.created_at), (first.id, first.created_at));
    assert_eq!((again.account.status, again.account.last_error_code), (AccountStatus::Active, None));
    assert_eq!(again.account.username, "lovelace");
    assert_eq!(kept.account.tenant_id.as_deref(), Some("t"));
    let grant = grants::get(&db, owner, first.id).await.unwrap().unwrap();
    assert_eq!((grant.sealed, grant.version), (format!("second:{}", first.id).into_bytes(), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_keeps_its_tenant_until_it_is_disconnected() {
    let db = database().await;
    let owner = owner(&db).await;
    let tenant = async |tenant_id: Option<&str>| {
        let mut tx = ::store::begin(&db).await.unwrap();
        let connect = Connect { tenant_id: tenant_id.map(str::to_owned), ..connect("x", "1", "ada") };
        let connected = accounts::upsert(&mut tx, owner, connect, |_| Vec::new(), at(1)).await.unwrap();
        tx.commit().await.unwrap();
        (connected.account.id, connected.account.tenant_id)
    };
    let of = |tenant: &str| Some(tenant.to_owned());
    assert_eq!(tenant(None).await.1, None);
    assert_eq!(tenant(Some("one")).await.1, of("one"));
    assert_eq!(tenant(Some("two")).await.1, of("one"));
    let (id, kept) = tenant(None).await;
    assert_eq!(kept, of("one"));
    let mut tx = ::store::begin(&db).await.unwrap();
    for (from, to) in [(None, "three"), (Some("three"), "three"), (Some("one"), "two")] {
        let by = &Actor::OPERATOR;
        store::accounts::connect::move_to_tenant(&mut tx, owner, id, (from, to), by, at(1)).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(tenant(None).await.1, of("two"));
    // From then on each tenant has an account of its own, and returns to it; no login takes that of another one.
    let leave = async |id| {
        assert!(disconnect::disconnect(&db, unbounded(owner), id, &Actor::OPERATOR, at(2)).await.unwrap())
    };
    leave(id).await;
    let (third, found) = tenant(Some("three")).await;
    assert_eq!((third == id, found), (false, of("three")));
    leave(third).await;
    assert_eq!(tenant(Some("two")).await, (id, of("two")));
    assert_eq!(tenant(Some("three")).await, (id, of("two")));
    leave(id).await;
    let (none, found) = tenant(None).await;
    assert_eq!((none == id || none == third, found), (false, None));
    leave(none).await;
    assert_eq!(tenant(Some("three")).await, (third, of("three")));
    let current: Vec<uuid::Uuid> =
        sqlx::query_scalar("select id from accounts where is_current").fetch_all(&db).await.unwrap();
    assert_eq!(current, [third.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_refreshes_of_a_grant_is_kept() {
    let db = database().await;
    let owner = owner(&db).await;
    let account = account(&db, owner, "x", "1", "ada").await;
    let read = grants::get(&db, owner, account.id).await.unwrap().unwrap();
    let store = async |sealed: &[u8], version| {
        grants::replace(
            &db,
            owner,
            account.id,
            sealed,
            version,
            grants::Ends { token: Some(at(99)), grant: None },
            at(9),
        )
        .await
        .unwrap()
    };
    let (one, other) = tokio::join!(store(b"one", read.version), store(b"other", read.version));
    assert!(one != other, "one is kept");
    let kept = grants::get(&db, owner, account.id).await.unwrap().unwrap();
    assert_eq!(kept.sealed, if one { &b"one"[..] } else { b"other" });
    assert_eq!(kept.version, read.version + 1);
    assert!(
        disconnect::disconnect(&db, unbounded(owner), account.id, &Actor::OPERATOR, at(10)).await.unwrap()
    );
    assert!(!store(b"late", kept.version).await, "the account stays disconnected");
    assert_eq!(grants::get(&db, owner, account.id).await.unwrap(), None);
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
async fn a_reconciliation_and_its_entry_of_the_audit_trail_are_one() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    create(&db, owner, draft_of(&[&ada])).await;
    let parked = outbox::claim(&db, 10, Duration::ZERO).await.unwrap();
    outbox::park(&db, parked[0].id, "refused").await.unwrap();
    let past = "now() - interval '1 minute'";
    tests::sql(
        &db,
        &format!("update posts set created_at = {past}, updated_at = {past}; update targets set updated_at = {past}"),
    )
    .await;
    let waiting = async || -> (i64, i64) {
        let counts = "select count(*) filter (where parked_at is null), (select count(*) from audit_entries
           where action = 'installation.reconciled') from outbox";
        sqlx::query_as(counts).fetch_one(&db).await.unwrap()
    };
    let reconcile = async || {
        let by = Actor { operator: Some("ada".to_owned()), ..Actor::OPERATOR };
        operators::reconcile(&db, &[], true, Some("a test"), &by, Utc::now()).await
    };
    tests::sql(
        &db,
        "alter table audit_entries add constraint refused check (action <> 'installation.reconciled')",
    )
    .await;
    assert!(reconcile().await.is_err());
    assert_eq!(waiting().await, (0, 0), "nothing is resumed without an entry");
    tests::sql(&db, "alter table audit_entries drop constraint refused").await;
    let done = reconcile().await.unwrap();
    assert_eq!((done.resumed, done.unparked, waiting().await), (1, 1, (2, 1)));
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

/// An idle grant of some platforms is renewed long after its access token has expired.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_overdue_only_at_the_age_at_which_its_platform_renews_it() {
    let db = database().await;
    let owner = owner(&db).await;
    account(&db, owner, "x", "1", "ada").await;
    let day = Duration::from_secs(24 * 3600);
    tests::sql(
        &db,
        "update accounts set granted_at = now() - interval '3 days', token_expires_at = now() - interval '2 days'",
    )
    .await;
    messages(&db).await;
    for (ages, overdue) in [(&[("x", day * 4)][..], 0), (&[("reddit", day * 4), ("x", day * 2)], 1)] {
        let timing = Timing {
            grace: Duration::ZERO,
            row_interval: Duration::ZERO,
            horizon: Duration::ZERO,
            renewal_ages: ages,
        };
        assert_eq!(sweep::sweep(&db, timing, 10).await.unwrap().overdue, overdue, "{ages:?}");
    }
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

/// As it does when its clock is set while a transaction is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_the_database_ends_is_an_outage() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let (one, other) = (store::connect(&url, 1).await.unwrap(), store::connect(&url, 1).await.unwrap());
    let mut tx = store::begin(&one).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *tx).await.unwrap();
    sqlx::query("set idle_in_transaction_session_timeout = '1ms'").execute(&mut *tx).await.unwrap();
    tests::wait_until("the session to end", async || {
        let is_open = sqlx::query_scalar("select exists (select from pg_stat_activity where pid = $1)");
        let is_open: bool = is_open.bind(pid).fetch_one(&other).await.unwrap();
        if is_open { Err("it is open") } else { Ok(()) }
    })
    .await;
    let error = sqlx::query("select 1").execute(&mut *tx).await.unwrap_err();
    assert!(store::is_unavailable(&error), "{error:?}");
}

/// A client hangs up, or a worker ends an activity, while a transaction begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_begin_leaves_no_transaction_open() {
    let url = tests::database_url(&crate::PROGRAM).await;
    let (one, other) = (store::connect(&url, 1).await.unwrap(), store::connect(&url, 1).await.unwrap());
    for polls in 0..20 {
        let mut begin = Box::pin(store::begin(&one));
        let mut left = polls;
        let was_dropped = std::future::poll_fn(|cx| match begin.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending if left == 0 => Poll::Ready(true),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        });
        let was_dropped = was_dropped.await;
        drop(begin);
        let org = organizations::create(&one, "Acme").await.unwrap();
        let is_committed = sqlx::query_scalar("select exists (select from organizations where id = $1)");
        let is_committed: bool = is_committed.bind(org.0).fetch_one(&other).await.unwrap();
        assert!(is_committed, "a write after {polls} polls was not committed");
        if !was_dropped {
            return;
        }
    }
    panic!("a transaction begins after a few polls");
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

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_is_measured() {
    let db = database().await;
    assert!(::store::skew(&db, tests::now).await.unwrap() < Duration::from_secs(5));
    let ahead = || tests::now() + TimeDelta::seconds(60);
    let behind = || tests::now() - TimeDelta::seconds(60);
    for distance in [::store::skew(&db, ahead).await.unwrap(), ::store::skew(&db, behind).await.unwrap()] {
        assert!(distance > Duration::from_secs(50), "{distance:?}");
    }
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
async fn accounts_are_listed_by_every_filter_at_once() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let other = account(&db, owner, "bluesky", "did:1", "ada").await;
    let list = async |filter: accounts::Filter, limit| {
        let page =
            accounts::list(&db, unbounded(owner), &filter, Request { after: None, limit }).await.unwrap();
        (page.items, page.next.is_some())
    };
    assert_eq!(list(accounts::Filter::default(), 1).await, (vec![other.clone()], true));
    let username = Some("ada".to_owned());
    let both = accounts::Filter { username: username.clone(), ..Default::default() };
    assert_eq!(list(both, 25).await, (vec![other, ada.clone()], false));
    let one = accounts::Filter {
        id: Some(ada.id),
        platform: Some("x".to_owned()),
        username,
        network_unique_id: Some("1".to_owned()),
        tenant_id: None,
        profile_id: None,
    };
    assert_eq!(list(one.clone(), 25).await, (vec![ada], false));
    assert_eq!(list(accounts::Filter { tenant_id: Some("t".to_owned()), ..one }, 25).await, (vec![], false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_authenticates_until_it_expires_or_is_revoked() {
    let db = database().await;
    let owner = owner(&db).await;
    let new =
        |expires_at| NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::PostsWrite], expires_at };
    let (key, text) = keys::create(&db, new(Some(at(100))), at(0)).await.unwrap();
    let random = text.strip_prefix("sk_test_").unwrap();
    assert!(random.len() == 40 && random.chars().all(|c| c.is_ascii_alphanumeric()));
    assert!(text.ends_with(&key.last_four));
    let open = async |text: &str, now| {
        let opened = usage::authenticate_and_count(&db, text, &[], None, now).await.unwrap();
        opened.and_then(Authenticated::counted).map(|admission| admission.key)
    };
    assert_eq!(open(&text, at(1)).await, Some(key.clone()));
    // The first use is recorded; others within the same minute are not.
    let first = open(&text, at(60)).await.unwrap().last_used_at;
    assert_eq!(first.unwrap().timestamp(), at(1).timestamp());
    assert_eq!(open(&text, at(62)).await.unwrap().last_used_at, first);
    assert_eq!(open(&text, at(63)).await.unwrap().last_used_at.unwrap().timestamp(), at(62).timestamp());
    assert_eq!(open(&text, at(100)).await, None);
    assert_eq!(open(&text.replace("test", "live"), at(1)).await, None);
    assert_eq!(open("", at(1)).await, None);
    let (other, text) = keys::create(&db, new(None), at(1)).await.unwrap();
    assert!(
        !keys::revoke(&db, Owner { mode: Mode::Live, ..owner }, other.id, &Actor::OPERATOR, at(50))
            .await
            .unwrap()
    );
    assert!(keys::revoke(&db, owner, other.id, &Actor::OPERATOR, at(50)).await.unwrap());
    assert!(open(&text, at(49)).await.is_some());
    assert_eq!(open(&text, at(50)).await, None);
    assert_eq!(keys::list(&db, owner, at(49), WHOLE).await.unwrap().items.len(), 2);
    assert_eq!(
        keys::list(&db, owner, at(50), WHOLE).await.unwrap().items,
        [keys::get(&db, owner, key.id, at(50)).await.unwrap().unwrap()]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_rotations_creates_a_key() {
    let db = database().await;
    let owner = owner(&db).await;
    let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: Some(at(500)) };
    let (old, _) = keys::create(&db, new, at(0)).await.unwrap();
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert!(keys::rotate(&db, stranger, old.id, at(10), &Actor::OPERATOR, at(10)).await.unwrap().is_none());
    assert!(keys::rotate(&db, owner, old.id, at(500), &Actor::OPERATOR, at(500)).await.unwrap().is_none());
    let rotated =
        join_all((0..16).map(|_| keys::rotate(&db, owner, old.id, at(100), &Actor::OPERATOR, at(10)))).await;
    let mut made = rotated.into_iter().filter_map(Result::unwrap);
    let ((new, _), None) = (made.next().unwrap(), made.next()) else { panic!("rotated twice") };
    assert_eq!((new.name, new.scopes, new.expires_at), (old.name, old.scopes, old.expires_at));
    assert_eq!(keys::list(&db, owner, at(99), WHOLE).await.unwrap().items.len(), 2);
    assert_eq!(keys::list(&db, owner, at(100), WHOLE).await.unwrap().items.len(), 1);
}

const GLOBAL: Bucket = Bucket { name: "global", ceiling: 5, seconds: 60 };
const POSTS: Bucket = Bucket { name: "posts", ceiling: 3, seconds: 60 };

/// Creates a key, and returns its text.
async fn key(db: &Pool, owner: Owner) -> String {
    let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: None };
    keys::create(db, new, at(0)).await.unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_counts_in_all_its_buckets_or_in_none() {
    let db = database().await;
    let owner = owner(&db).await;
    let text = key(&db, owner).await;
    let live = key(&db, Owner { mode: Mode::Live, ..owner }).await;
    let quotas: Quotas = [("default".to_owned(), 6), ("other".to_owned(), 1)].into_iter().collect();
    let call = async |text: &str, buckets: &[Bucket], second: i64| {
        let admitted = usage::authenticate_and_count(&db, text, buckets, Some(&quotas), at(second)).await;
        let admission = admitted.unwrap().and_then(Authenticated::counted).unwrap();
        let calls: Vec<_> = admission.levels.iter().map(|level| level.calls).collect();
        let refused = admission.levels.iter().any(usage::Level::is_exceeded);
        (calls, refused, admission.requests, admission.is_over_quota)
    };
    for (text, buckets, second, expected) in [
        (&text, &[GLOBAL, POSTS][..], 0, (vec![1, 1], false, 1, false)),
        (&text, &[POSTS, GLOBAL], 1, (vec![2, 2], false, 2, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 3], false, 3, false)),
        // The bucket of posts is full: the other bucket and the month stay unchanged.
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 4], true, 3, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![3, 4], true, 3, false)),
        // The organization's other mode has buckets and a month of its own.
        (&live, &[GLOBAL], 59, (vec![1], false, 1, false)),
        (&text, &[GLOBAL], 59, (vec![4], false, 4, false)),
        (&text, &[GLOBAL], 59, (vec![5], false, 5, false)),
        (&text, &[GLOBAL], 59, (vec![6], true, 5, false)),
        // The next window. A process whose clock is slightly behind counts in it as well.
        (&text, &[GLOBAL, POSTS], 60, (vec![1, 1], false, 6, false)),
        (&text, &[GLOBAL, POSTS], 59, (vec![2, 2], false, 6, true)),
        // The quota is used up, but calls still count in the buckets.
        (&text, &[GLOBAL, POSTS], 61, (vec![3, 3], false, 6, true)),
        (&text, &[GLOBAL, POSTS], 61, (vec![3, 4], true, 6, false)),
        // Next month.
        (&text, &[GLOBAL], 40 * 86_400, (vec![1], false, 1, false)),
    ] {
        assert_eq!(call(text, buckets, second).await, expected, "at {second}");
    }
    // Another organization is counted separately, and a call without quotas is not counted in the month.
    let other = key(&db, self::owner(&db).await).await;
    assert_eq!(call(&other, &[GLOBAL], 61).await, (vec![1], false, 1, false));
    let free = usage::authenticate_and_count(&db, &other, &[GLOBAL], None, at(61)).await.unwrap();
    let free = free.and_then(Authenticated::counted).unwrap();
    assert_eq!((free.levels[0].calls, free.requests), (2, 1));
    // A plan without a limit is never exceeded.
    assert!(organizations::set_plan(&db, owner.org, "gone").await.unwrap());
    let (_, _, requests, is_over) = call(&text, &[], 40 * 86_400).await;
    assert_eq!((requests, is_over), (2, false));
    assert!(!organizations::set_plan(&db, OrgId(uuid::Uuid::now_v7()), "gone").await.unwrap());
}

/// Keys with a bound and client tokens share buckets and a part of the quota, and leave the organization's alone.
#[tokio::test(flavor = "multi_thread")]
async fn limited_callers_count_beside_the_organizations_keys() {
    let db = database().await;
    let owner = owner(&db).await;
    let own = key(&db, owner).await;
    let limited = async |tenant: &str| {
        let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: None };
        let bound = Bound::Tenant(tenant.to_owned());
        keys::create_within(&db, new, bound, None, &Actor::OPERATOR, at(0)).await.unwrap().unwrap().1
    };
    let limited = [limited("one").await, limited("other").await];
    let quotas: Quotas = [("default".to_owned(), 6)].into_iter().collect();
    let call = async |text: &str, second: i64| {
        let admitted = usage::authenticate_and_count(&db, text, &[GLOBAL], Some(&quotas), at(second)).await;
        let admission = match admitted.unwrap().unwrap() {
            Authenticated::Counted(admission) => admission,
            Authenticated::Limited(found) => {
                assert!(found.bound.is_limited());
                let counted = usage::count_limited(&db, text, &[GLOBAL], Some(&quotas), at(second)).await;
                counted.unwrap().unwrap()
            }
        };
        (admission.levels[0].calls, admission.requests, admission.is_over_quota)
    };
    for (text, second, expected) in [
        (&limited[0], 0, (1, 1, false)),
        (&limited[1], 0, (2, 2, false)),
        (&limited[0], 0, (3, 3, false)),
        (&own, 0, (1, 1, false)),
        (&own, 0, (2, 2, false)),
        (&limited[0], 0, (4, 4, false)),
        // Both together have used the quota up: limited callers are refused, the organization is not.
        (&limited[1], 0, (5, 4, true)),
        (&limited[1], 0, (6, 4, false)),
        (&own, 0, (3, 3, false)),
        (&own, 60, (1, 4, false)),
    ] {
        assert_eq!(call(text, second).await, expected, "at {second}");
    }
    let month = usage::Month::of(at(0));
    assert_eq!(usage::read(&db, owner, month).await.unwrap().unwrap().requests, 8);
    assert!(usage::count_limited(&db, &own, &[GLOBAL], None, at(0)).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_exceed_no_limit() {
    let db = database().await;
    let owner = owner(&db).await;
    let keys = [key(&db, owner).await, key(&db, owner).await];
    let buckets = [Bucket { ceiling: 100, ..GLOBAL }, Bucket { ceiling: 30, ..POSTS }];
    let quotas: Quotas = [("default".to_owned(), 80)].into_iter().collect();
    // Every other call is a write, and every other write lists the buckets in reverse.
    let calls = (0..240).map(|number: usize| {
        let buckets = match number % 4 {
            0 => vec![buckets[0], buckets[1]],
            2 => vec![buckets[1], buckets[0]],
            _ => vec![buckets[0]],
        };
        let (db, quotas, key) = (&db, &quotas, &keys[number / 4 % 2]);
        async move {
            let admitted = usage::authenticate_and_count(db, key, &buckets, Some(quotas), at(0)).await;
            (number % 2, admitted.unwrap().and_then(Authenticated::counted).unwrap())
        }
    });
    let (mut passed, mut writes, mut over) = (0, 0, 0);
    for (odd, admission) in join_all(calls).await {
        if !admission.levels.iter().any(usage::Level::is_exceeded) {
            passed += 1;
            writes += usize::from(odd == 0);
            over += usize::from(admission.is_over_quota);
        }
    }
    assert_eq!((passed, over), (100, 20));
    assert!(writes <= 30, "{writes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn address_counts_are_deleted_after_their_window() {
    let db = database().await;
    let count = async |address: &str, second| {
        usage::count(&db, GLOBAL, address.parse().unwrap(), at(second)).await.unwrap().calls
    };
    for (address, second, calls) in [
        ("192.0.2.1", 0, 1),
        ("192.0.2.1", 1, 2),
        ("::ffff:192.0.2.1", 2, 3),
        ("192.0.2.2", 3, 1),
        ("2001:db8::1", 4, 1),
        ("2001:db8::2:3:4:5", 5, 2),
        ("2001:db8:0:1::1", 5, 1),
        ("192.0.2.1", 60, 1),
    ] {
        assert_eq!(count(address, second).await, calls, "{address} at {second}");
    }
    let addresses: Vec<_> = (0..50).map(|number| format!("192.0.3.{}", number % 5)).collect();
    let counted = join_all(addresses.iter().map(|address| count(address, 120))).await;
    assert_eq!(counted.iter().sum::<u64>(), 5 * (1..=10).sum::<u64>());
    // Counts of windows that have ended are deleted.
    assert_eq!(usage::address_count(&db).await.unwrap(), 5);
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
    // What ended stands in nobody's way, though it may have published.
    let (dead, dead_begun) = begun(&ada).await;
    assert!(publishing::accept(&db, dead.target, 0, dead_begun, &json!({ "handle": 0 })).await.unwrap());
    let survivor = doubt(begun(&ada).await).await;
    assert!(!publishing::adopt(&db, survivor, 0, "6", true).await.unwrap(), "the other is accepted");
    tests::sql(
        &db,
        &format!(
            "update targets set status = 'dead', error_message = 'refused' where id = '{}'",
            dead.target
        ),
    )
    .await;
    assert!(publishing::adopt(&db, survivor, 0, "6", true).await.unwrap(), "the other has ended");
    // Before reads show its own post, a target takes none that another one may have published.
    let (early, rival) = (doubt(begun(&ada).await).await, doubt(begun(&ada).await).await);
    assert!(!publishing::adopt(&db, early, 0, "5", false).await.unwrap(), "its own may come");
    assert!(publishing::adopt(&db, early, 0, "5", true).await.unwrap(), "it is not there");
    // One that was accepted takes nothing from one that would publish again.
    let (accepted, accepted_begun) = begun(&ada).await;
    assert!(
        publishing::accept(&db, accepted.target, 0, accepted_begun, &json!({ "handle": 2 })).await.unwrap()
    );
    assert!(!publishing::adopt(&db, accepted, 0, "4", true).await.unwrap(), "the rival would publish again");
    publishing::capture(&db, rival, 0, "3").await.unwrap();
    assert!(publishing::adopt(&db, accepted, 0, "4", true).await.unwrap(), "nobody else waits");
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
async fn disconnecting_an_account_cancels_only_targets_that_have_not_begun() {
    let db = database().await;
    let owner = owner(&db).await;
    let ada = account(&db, owner, "x", "1", "ada").await;
    let bob = account(&db, owner, "x", "2", "bob").await;
    let keyed = |key: &str, of: NewPost| NewPost { external_ref: Some(key.to_owned()), ..of };
    let waiting = create(&db, owner, keyed("waiting", draft_of(&[&ada]))).await;
    let shared = create(&db, owner, keyed("shared", draft_of(&[&ada, &bob]))).await;
    let draft = create(&db, owner, keyed("draft", NewPost { is_draft: true, ..draft_of(&[&ada]) })).await;
    let preparing = create(&db, owner, keyed("preparing", draft_of(&[&ada]))).await;
    let begun = create(&db, owner, keyed("begun", draft_of(&[&ada]))).await;
    let live = create(&db, owner, keyed("live", draft_of(&[&ada]))).await;
    let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &preparing, 0).await else {
        panic!("it began")
    };
    let (begun_key, BeginResult::Attempt(other)) = begin(&db, owner, &begun, 0).await else {
        panic!("it began")
    };
    assert!(intend(&db, begun.targets[0].id, other.fence).await);
    let (live_key, BeginResult::Attempt(third)) = begin(&db, owner, &live, 0).await else {
        panic!("it began")
    };
    assert!(intend(&db, live.targets[0].id, third.fence).await);
    publishing::capture(&db, live_key, 0, "77").await.unwrap();
    messages(&db).await;

    let stranger = Owner { mode: Mode::Live, ..owner };
    assert!(
        !disconnect::disconnect(&db, unbounded(stranger), ada.id, &Actor::OPERATOR, at(30)).await.unwrap()
    );
    assert!(disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(30)).await.unwrap());
    assert!(
        !disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(31)).await.unwrap(),
        "once"
    );

    for (post, status, targets) in [
        (&waiting, PostStatus::Failed, vec![TargetStatus::Canceled]),
        (&shared, PostStatus::Queued, vec![TargetStatus::Canceled, TargetStatus::Pending]),
        (&draft, PostStatus::Draft, vec![TargetStatus::Canceled]),
        (&preparing, PostStatus::Failed, vec![TargetStatus::Canceled]),
        (&begun, PostStatus::Publishing, vec![TargetStatus::Queued]),
        (&live, PostStatus::Publishing, vec![TargetStatus::Queued]),
    ] {
        let now = now_of(&db, owner, post).await;
        assert_eq!((now.status, statuses(&now)), (status, targets), "{:?}", post.external_ref);
    }
    // The attempt that was preparing can no longer publish; the one in doubt can be looked up.
    assert!(!intend(&db, preparing.targets[0].id, attempt.fence).await);
    // The one in doubt cannot publish either.
    assert!(!intend(&db, begun.targets[0].id, other.fence).await);
    let BeginResult::Attempt(look) = publishing::begin(&db, begun_key, Purpose::Publish).await.unwrap()
    else {
        panic!("it is open")
    };
    assert!(!intend(&db, begun.targets[0].id, look.fence).await);
    assert!(
        look.barred == Some(Barred::Disconnected)
            && look.is_in_doubt()
            && look.account.grant_sealed.is_some()
    );
    let end = End::Live { id: "77".to_owned(), url: None, left_out: None };
    let settled = publishing::settle(&db, live_key, &end, None, at(34)).await.unwrap();
    assert_eq!(settled, Settled::Ended(TargetStatus::Published));

    let left = messages(&db).await;
    let partings: Vec<_> = left
        .iter()
        .filter_map(|left| if let Message::DisconnectAccount(it) = left { Some(it) } else { None })
        .collect();
    let [parting] = partings[..] else { panic!("{left:?}") };
    for (post, reported) in [(&waiting, 1), (&shared, 0), (&draft, 0), (&preparing, 0), (&begun, 0)] {
        let canceled = Message::PostCanceled { post: post.id, owner };
        assert_eq!(
            left.iter().filter(|left| **left == canceled).count(),
            reported,
            "{:?}",
            post.external_ref
        );
    }
    assert!(left.contains(&Message::RetryTarget { target: begun.targets[0].id, post: begun.id, owner }));

    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().unwrap().in_doubt);
    let failure = Failure::rejected(400, "no");
    let end = End::Dead { source: failure.code.source(), failure };
    publishing::settle(&db, begun_key, &end, None, at(35)).await.unwrap();
    assert!(!disconnect::grant_to_revoke(&db, parting).await.unwrap().unwrap().in_doubt);
    let outdated =
        domain::outbox::Disconnection { grant_version: parting.grant_version - 1, ..parting.clone() };
    disconnect::erase(&db, &outdated).await.unwrap();
    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().is_some(), "it is of an older grant");
    disconnect::erase(&db, parting).await.unwrap();
    assert!(disconnect::grant_to_revoke(&db, parting).await.unwrap().is_none());

    // Reconnecting restores the same account, and the old disconnection does not affect the new grant.
    assert_eq!(account(&db, owner, "x", "1", "ada").await.id, ada.id);
    disconnect::erase(&db, parting).await.unwrap();
    assert!(grants::get(&db, owner, ada.id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_and_a_disconnection_are_serialized() {
    let db = database().await;
    let owner = owner(&db).await;
    for round in 0..20 {
        let (id, name) = (format!("{round}"), format!("ada{round}"));
        let ada = account(&db, owner, "x", &id, &name).await;
        let new = NewPost { external_ref: Some(name), ..draft_of(&[&ada]) };
        let post = create(&db, owner, new).await;
        let (_, BeginResult::Attempt(attempt)) = begin(&db, owner, &post, 0).await else {
            panic!("it began")
        };
        let (intended, gone) = tokio::join!(
            intend(&db, post.targets[0].id, attempt.fence),
            disconnect::disconnect(&db, unbounded(owner), ada.id, &Actor::OPERATOR, at(21))
        );
        assert!(gone.unwrap());
        let status = statuses(&now_of(&db, owner, &post).await)[0];
        let expected = if intended { TargetStatus::Queued } else { TargetStatus::Canceled };
        assert_eq!(status, expected, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_collected_in_turns_of_organizations() {
    let db = database().await;
    let (greedy, other) = (owner(&db).await, owner(&db).await);
    for number in 0..5 {
        let ada = account(&db, greedy, "x", &number.to_string(), "ada").await;
        live(&db, greedy, &[&ada], &format!("greedy-{number}"), 0).await;
    }
    let bob = account(&db, other, "x", "9", "bob").await;
    live(&db, other, &[&bob], "other", 10).await;
    let schedule = CollectionSchedule {
        max_age: TimeDelta::days(30),
        min_interval: Duration::from_secs(3600),
        per_hour: Duration::from_secs(600),
        per_account: 2,
        per_platform: 2,
    };
    let due = metrics::due(&db, "x", true, schedule, at(7200)).await.unwrap();
    let owners: Vec<_> = due.iter().map(|due| due.owner).collect();
    assert_eq!(owners, [greedy, other], "one each, although five waited longer");
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

/// Creates a post, and publishes it on its accounts at this time.
async fn live(db: &Pool, owner: Owner, accounts: &[&Account], external_ref: &str, when: i64) -> Post {
    let post =
        create(db, owner, NewPost { external_ref: Some(external_ref.to_owned()), ..draft_of(accounts) })
            .await;
    for target in 0..accounts.len() {
        let (key, _) = begin(db, owner, &post, target).await;
        let end = End::Live { id: format!("{external_ref}-{target}"), url: None, left_out: None };
        publishing::settle(db, key, &end, None, at(when)).await.unwrap();
    }
    post
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_collected_less_often_as_a_post_ages() {
    let db = database().await;
    let owner = owner(&db).await;
    let (one, other) =
        (account(&db, owner, "x", "1", "one").await, account(&db, owner, "x", "2", "other").await);
    let post = live(&db, owner, &[&one, &other], "a", 0).await;
    let rhythm = CollectionSchedule {
        max_age: TimeDelta::days(30),
        min_interval: Duration::from_secs(3600),
        per_hour: Duration::from_secs(600),
        per_account: 2,
        per_platform: 3,
    };
    let (hour, day) = (3600, 86_400);
    let due = async |when: i64| -> Vec<String> {
        let due = metrics::due(&db, "x", true, rhythm, at(when)).await.unwrap();
        assert!(due.iter().all(|due| due.owner == owner));
        due.into_iter().map(|due| due.platform_post_id).collect()
    };
    let ask = async |target: usize, when: i64| {
        metrics::mark_requested(&db, owner, post.targets[target].id, rhythm, at(when)).await.unwrap();
    };
    assert_eq!(due(hour - 1).await, [""; 0]);
    assert_eq!(due(hour).await.len(), 2);
    ask(0, hour).await;
    assert_eq!(due(hour).await, ["a-1"]);
    // Hourly while it is younger than six hours, then after a sixth of its age.
    ask(1, hour).await;
    assert_eq!((due(2 * hour - 1).await.len(), due(2 * hour).await.len()), (0, 2));
    for target in [0, 1] {
        ask(target, 10 * day).await;
    }
    assert_eq!((due(12 * day - 1).await.len(), due(12 * day).await.len()), (0, 2));
    // After a month nothing is due, and nothing is due on another platform.
    assert_eq!(due(30 * day).await, [""; 0]);
    assert_eq!(metrics::due(&db, "bluesky", true, rhythm, at(12 * day)).await.unwrap(), []);

    // A round is limited per account and per platform, and takes those first that waited longest.
    for (name, when) in [("b", 3), ("c", 2), ("d", 1)] {
        live(&db, owner, &[&one, &other], name, when).await;
    }
    let round = due(12 * day).await;
    assert_eq!((round.len(), &round[2][..1]), (3, "c"));
    assert!(round[..2].iter().all(|id| id.starts_with('d')), "{round:?}");

    // Targets of deleted posts and of accounts with a lost grant are not due.
    assert!(posts::delete(&db, unbounded(owner), post.id, None, at(20)).await.unwrap());
    let failure = Failure::revoked("gone");
    grants::mark_lost(&db, owner, other.id, 1, &failure, at(30)).await.unwrap();
    assert_eq!(due(12 * day).await, ["d-0", "c-0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_snapshots_are_downsampled_and_then_deleted() {
    let db = database().await;
    let owner = owner(&db).await;
    let one = account(&db, owner, "x", "1", "one").await;
    let (post, other) = (live(&db, owner, &[&one], "a", 0).await, live(&db, owner, &[&one], "b", 0).await);
    let target = post.targets[0].id;
    // From midnight on, so that hours and days align with their buckets.
    let midnight = at(0).date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
    let hour = |hours: i64, minutes: i64| midnight + TimeDelta::hours(hours) + TimeDelta::minutes(minutes);
    let times = [hour(0, 0), hour(0, 10), hour(0, 50), hour(1, 0), hour(23, 59), hour(24, 0), hour(24, 30)];
    for (likes, captured_at) in (1..).zip(times) {
        for target in [target, other.targets[0].id] {
            let snapshot = Snapshot { target, metrics: Metrics { likes, ..Metrics::default() }, captured_at };
            assert!(metrics::record(&db, owner, &snapshot).await.unwrap());
        }
    }
    let likes = async |post: &Post| -> Vec<u64> {
        let series = metrics::series(&db, unbounded(owner), post.id, 10).await.unwrap();
        series.into_iter().map(|snapshot| snapshot.metrics.likes).collect()
    };
    let thin = async |now| metrics::downsample(&db, owner, target, now).await.unwrap();
    assert_eq!((thin(hour(24, 0)).await, likes(&post).await), (0, vec![1, 2, 3, 4, 5, 6, 7]));
    assert_eq!((thin(hour(25, 0)).await, likes(&post).await), (2, vec![3, 4, 5, 6, 7]));
    assert_eq!((thin(hour(48, 15)).await, likes(&post).await), (1, vec![3, 4, 5, 7]));
    assert_eq!((thin(hour(32 * 24, 0)).await, likes(&post).await), (2, vec![5, 7]));
    assert_eq!(likes(&other).await, [1, 2, 3, 4, 5, 6, 7], "others are unchanged");
    let latest = metrics::series(&db, unbounded(owner), other.id, 2).await.unwrap();
    assert_eq!(latest.iter().map(|snapshot| snapshot.metrics.likes).collect::<Vec<_>>(), [6, 7]);
    let stranger = Owner { mode: Mode::Live, ..owner };
    assert_eq!(metrics::series(&db, unbounded(stranger), post.id, 10).await.unwrap(), []);
    assert_eq!(metrics::downsample(&db, stranger, other.targets[0].id, hour(900, 0)).await.unwrap(), 0);

    let late = hour(24, 15) + TimeDelta::days(730);
    assert_eq!(metrics::prune(&db, 2, late).await.unwrap(), 2);
    assert_eq!(metrics::prune(&db, 100, late).await.unwrap(), 5);
    assert_eq!((likes(&post).await, likes(&other).await), (vec![7], vec![7]));
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

/// Appends an event with a number, as of a time.
async fn report(tx: &mut PgConnection, owner: Owner, number: u64, at: DateTime<Utc>) {
    let data = json!({ "number": number });
    let new = NewEvent { name: EventName::AccountConnected, post: None, target: None, account: None, data };
    events::append(tx, owner, at, &new).await.unwrap();
}

/// Returns the numbers of the events after a cursor, and the next cursor.
async fn read_numbers(db: &Pool, owner: Owner, after: Option<Cursor>, limit: u32) -> (Vec<u64>, Cursor) {
    let batch = events::read(db, unbounded(owner), &[], Request { after, limit }).await.unwrap();
    let number = |event: &events::Event| {
        let body: Value = serde_json::from_str(&event.body).unwrap();
        body["data"]["number"].as_u64().unwrap()
    };
    (batch.events.iter().map(number).collect(), batch.next)
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

#[tokio::test(flavor = "multi_thread")]
async fn the_request_log_is_bounded_in_time_and_number() {
    let db = database().await;
    let (owner, other) = (owner(&db).await, owner(&db).await);
    let entry = |at| requests::Entry {
        id: uuid::Uuid::now_v7(),
        method: "GET".to_owned(),
        path: "/api/v1/posts".to_owned(),
        status: 200,
        duration_ms: 7,
        last_four: "abcd".to_owned(),
        at,
    };
    let count = async |owner: Owner| {
        let query = sqlx::query_scalar::<_, i64>("select count(*) from request_log where org_id = $1");
        query.bind(owner.org.0).fetch_one(&db).await.unwrap()
    };
    let now = tests::now();
    let owners = [owner, other].into();
    requests::append(&db, &[(other, entry(now)), (other, entry(now - TimeDelta::days(8)))]).await.unwrap();
    requests::prune(&db, &owners).await.unwrap();
    assert_eq!(count(other).await, 1, "seven days");
    let many: Vec<_> =
        (0..requests::KEPT + 3).map(|second| (owner, entry(now - TimeDelta::seconds(second)))).collect();
    requests::append(&db, &many).await.unwrap();
    requests::prune(&db, &owners).await.unwrap();
    assert_eq!((count(owner).await, count(other).await), (requests::KEPT, 1));
    let newest =
        requests::list(&db, owner, &Default::default(), Request { after: None, limit: 1 }).await.unwrap();
    assert_eq!(newest.items[0].id, many[0].1.id);
    assert!(newest.next.is_some());
}

/// Publishes the container at a position of a target that an attempt holds.
async fn publish(db: &Pool, key: TargetKey, position: u16, fence: i32, id: &str) {
    assert!(intend_at(db, key.target, position, fence).await);
    publishing::capture(db, key, position, id).await.unwrap();
    if position == 0 {
        let end =
            End::Live { id: id.to_owned(), url: Some(format!("https://example.com/{id}")), left_out: None };
        publishing::settle(db, key, &end, Some(fence), at(20)).await.unwrap();
    }
}

/// Returns the attempt that begins.
fn begun(result: BeginResult) -> Box<Attempt> {
    match result {
        BeginResult::Attempt(attempt) => attempt,
        other => panic!("no attempt began: {other:?}"),
    }
}

fn below(root: &str, last: &str) -> Place {
    Place::Below(Parent { root: root.to_owned(), last: last.to_owned() })
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
    // What the post gets later changes nothing for a reply that has begun.
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
