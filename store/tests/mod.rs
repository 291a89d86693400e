//! The queries of `store`, tested on a real Postgres: the one that all tests of `tests/it` share, of whose binary this is a
//! module.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account_rows;
mod attempts;
mod callers;
pub(crate) mod concurrent;
mod connections;
mod ends;
mod event_rows;
mod figures;
mod live_edits;
mod messages;
mod operating;
mod parked;
mod post_rows;
mod releasing;
mod replies;
mod rests;
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

/// Creates a key, and returns its text.
async fn key(db: &Pool, owner: Owner) -> String {
    let new = NewKey { owner, name: "CI".to_owned(), scopes: vec![Scope::All], expires_at: None };
    keys::create(db, new, at(0)).await.unwrap().1
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
