//! Actions of operators, who see all organizations: retry, end, repeat a delivery, end sessions.
//!
//! Each is a change of rows with its entry of the audit trail and its message in one transaction, so that it takes
//! effect while services run, and when Temporal comes back if it is away.
//!
//! Table: `operator_sessions`.

mod rates;
pub mod sessions;
mod story;
mod stuck;
mod summary;

use crate::{
    decode::Parsed,
    outbox,
    people::audit::{self, Action, Actor, Change},
    publishing::{
        self, End, Revived, Settled, TargetKey,
        sweep::{self, Timing},
    },
    webhooks::{
        deliveries::{self, DeliveryStatus, RedeliverResult},
        drain,
    },
};
use chrono::{DateTime, Utc};
use domain::{
    DeliveryId, ErrorCode, Failure, KeyId, Mode, OrgId, Owner, PostId, PostStatus, TargetId, TargetStatus,
    WebhookId, outbox::Message,
};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use std::time::Duration;
use uuid::Uuid;

pub use rates::{Rate, Rates, SAMPLED, rates};
pub use story::{Story, story};
pub use stuck::{Filter, Item, Kind, Renewals, may_be_live, stuck};
pub use summary::{Load, Summary, summary};

/// Time for which a row that a reconciliation resumed is left alone.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum rows of each kind that one reconciliation resumes.
const RECONCILE_LIMIT: i64 = 10_000;

/// A target and what decides about its next step.
struct Found {
    target: TargetId,
    post: PostId,
    owner: Owner,
    status: TargetStatus,
    /// True if operators froze it, so that its next attempt publishes nothing. A call to be looked up is.
    is_frozen: bool,
}

/// Returns the target with this id, or the targets of the post with this id.
async fn find(db: &PgPool, id: Uuid) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query!(
        r#"select t.id, t.post_id, t.org_id, t.mode as "mode: Parsed<Mode>", t.status as "status: Parsed<TargetStatus>",
             exists (select from open_freezes(t.platform, t.account_id, t.org_id, t.mode))
             and not exists (select from open_intents i where i.target_id = t.id) as "is_frozen!"
           from targets t join posts p on p.id = t.post_id
           where (t.id = $1 or t.post_id = $1) and p.deleted_at is null order by t.id"#,
        id
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Found {
            target: row.id.into(),
            post: row.post_id.into(),
            owner: Owner { org: row.org_id.into(), mode: row.mode.0 },
            status: row.status.0,
            is_frozen: row.is_frozen,
        })
        .collect())
}

/// The result of retrying a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// Its next attempt is due now.
    BroughtForward,
    /// It was dead, and starts over.
    Revived,
    /// It was dead, and starts over when what operators froze is released.
    RevivedFrozen,
    /// It waits until what operators froze is released.
    Frozen,
    /// It doesn't wait for an attempt, and is not dead.
    Unchanged(TargetStatus),
    /// It is dead, and its account is disconnected.
    Disconnected,
}

impl Retried {
    /// Returns whether something was done.
    pub fn is_done(self) -> bool {
        matches!(self, Self::BroughtForward | Self::Revived | Self::RevivedFrozen)
    }
}

/// Retries a target, or all targets of a post, as the API does: a waiting one at once, a dead one from the start. One
/// that is frozen goes on waiting. Returns the targets; none if there is no such target or post.
pub async fn retry(
    db: &PgPool,
    id: Uuid,
    reason: Option<&str>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<(TargetId, Retried)>> {
    let mut results = Vec::new();
    for Found { target, post, owner, status, is_frozen } in find(db, id).await? {
        let waits = status == TargetStatus::Queued || status == TargetStatus::Failed;
        if is_frozen && waits {
            results.push((target, Retried::Frozen));
            continue;
        }
        publishing::end_rests(db, owner, post, Some(&[target]), status == TargetStatus::Dead).await?;
        let mut tx = crate::begin(db).await?;
        let retried = if status == TargetStatus::Dead {
            match publishing::revive_in(&mut tx, owner, post, Some(&[target]), now).await? {
                Revived::Targets(_) if is_frozen => Retried::RevivedFrozen,
                Revived::Targets(_) => Retried::Revived,
                Revived::Disconnected => Retried::Disconnected,
                Revived::NoneDead | Revived::Missing => Retried::Unchanged(status),
            }
        } else if publishing::retry_now_in(&mut tx, owner, post, target, None, now).await? {
            Retried::BroughtForward
        } else {
            Retried::Unchanged(status)
        };
        if retried.is_done() {
            let details = with_reason(json!({ "post": post }), reason);
            let change = Change { action: Action::TargetRetried, object: target.0, details };
            audit::record(&mut tx, owner, by, now, change).await?;
            tx.commit().await?;
        }
        results.push((target, retried));
    }
    Ok(results)
}

/// Adds the reason that an operator gave to the details of an audit entry.
fn with_reason(mut details: Value, reason: Option<&str>) -> Value {
    if let Some(reason) = reason {
        details["reason"] = reason.into();
    }
    details
}

/// The result of ending a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndResult {
    /// The target has this final status.
    Ended(TargetStatus),
    /// Its publishing call has no known result: a worker looks it up, and ends the target then.
    LookingUp,
    /// The target had ended before.
    Already(TargetStatus),
    /// The post is a draft.
    Draft,
    /// There is no such target.
    Missing,
}

/// Ends a target with a reason that its owner is told: nothing more is published for it. One whose publishing call
/// has no known result is looked up first, unless `may_be_live`: then it ends as "it may be live" at once.
// Model: Stop. What follows is the settling of a target outside an attempt.
pub async fn end(
    db: &PgPool,
    target: TargetId,
    reason: &str,
    may_be_live: bool,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<EndResult> {
    let mut tx = crate::begin(db).await?;
    let Some(post) = sqlx::query_scalar!("select post_id from targets where id = $1", target.0)
        .fetch_optional(&mut *tx)
        .await?
    else {
        return Ok(EndResult::Missing);
    };
    let row = sqlx::query!(
        r#"select p.org_id, p.mode as "mode: Parsed<Mode>", p.version, p.status as "post_status: Parsed<PostStatus>",
             t.status as "status: Parsed<TargetStatus>", t.next_attempt_at is not null as "has_next!"
           from posts p join targets t on t.post_id = p.id
           where p.id = $1 and t.id = $2 for no key update of p, t"#,
        post,
        target.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(EndResult::Missing) };
    let status = row.status.0;
    if row.post_status.0 == PostStatus::Draft {
        return Ok(EndResult::Draft);
    }
    if status.is_terminal() && !(status == TargetStatus::Published && row.has_next) {
        return Ok(EndResult::Already(status));
    }
    let (owner, post) = (Owner { org: row.org_id.into(), mode: row.mode.0 }, PostId(post));
    let key = TargetKey { owner, post, target, version: row.version };
    // From here on an attempt that is under way neither begins a publishing call nor ends the target.
    let in_doubt = sqlx::query_scalar!(
        r#"update targets set stop_reason = $2, fence = fence + 1, next_attempt_at = $3, freeze_id = null,
             is_continuation = false, updated_at = $3
           where id = $1
           returning exists (select from open_intents i where i.target_id = $1) as "in_doubt!""#,
        target.0,
        reason,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    let message = format!("An operator of the service ends it: {reason}");
    publishing::note(&mut *tx, key, "stop", &message, now).await?;
    let details = json!({ "post": post, "reason": reason, "may_be_live": may_be_live && in_doubt });
    let change = Change { action: Action::TargetStopped, object: target.0, details };
    audit::record(&mut tx, owner, by, now, change).await?;
    outbox::push(&mut tx, &Message::RetryTarget { target, post, owner }).await?;
    tx.commit().await?;
    if in_doubt && !may_be_live {
        return Ok(EndResult::LookingUp);
    }
    let mut message = format!("an operator stopped it: {reason}");
    if in_doubt {
        message.push_str(domain::MAY_BE_LIVE);
    }
    let failure = Failure::new(ErrorCode::Stopped, message);
    let end = End::Dead { source: failure.code.source(), failure };
    Ok(match publishing::settle(db, key, &end, None, now).await? {
        Settled::Ended(status) | Settled::Late(status) => {
            cancel_workflow(db, owner, post).await?;
            EndResult::Ended(status)
        }
        // An edit came between the two; the next attempt ends it.
        Settled::Superseded | Settled::Stale => EndResult::LookingUp,
    })
}

/// Ends the workflow of a post whose targets have all ended, which may still wait for the post's time.
async fn cancel_workflow(db: &PgPool, owner: Owner, post: PostId) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let has_open = sqlx::query_scalar!(
        r#"select exists (
             select from targets where post_id = $1 and org_id = $2 and mode = $3
               and status not in ('published', 'dead', 'canceled')) as "has_open!""#,
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(&mut *tx)
    .await?;
    if !has_open {
        outbox::push(&mut tx, &Message::PostCanceled { post, owner }).await?;
    }
    tx.commit().await
}

/// Deliveries to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deliveries {
    /// One delivery.
    One(DeliveryId),
    /// The deliveries to an endpoint, of events since a time, that failed or wait.
    Endpoint(WebhookId, Option<DateTime<Utc>>),
}

/// Deliveries that were to be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redelivered {
    /// Number of those that are.
    pub queued: usize,
    /// The others, with the reason.
    pub refused: Vec<(DeliveryId, RedeliverResult)>,
}

/// Repeats deliveries: those that failed with a new retry budget, oldest event first, and those that wait for their next
/// attempt now; of each up to `limit`. Returns `None` if there is no such delivery or endpoint.
pub async fn redeliver(
    db: &PgPool,
    which: Deliveries,
    limit: i64,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Redelivered>> {
    let mut redelivered = Redelivered::default();
    let (one, endpoint, since) = match which {
        Deliveries::One(id) => (Some(id.0), None, None),
        Deliveries::Endpoint(endpoint, since) => {
            let Some(hurried) = hurry(db, endpoint, since, limit, by, now).await? else { return Ok(None) };
            redelivered.queued = hurried;
            (None, Some(endpoint.0), since)
        }
    };
    let found = sqlx::query!(
        r#"select id, webhook_id, org_id, mode as "mode: Parsed<Mode>" from deliveries
           where id = $1 or webhook_id = $2 and status = $3 and created_at >= coalesce($4, '-infinity'::timestamptz)
           order by created_at, id limit $5"#,
        one,
        endpoint,
        DeliveryStatus::Failed.as_str(),
        since,
        limit
    )
    .fetch_all(db)
    .await?;
    if one.is_some() && found.is_empty() {
        return Ok(None);
    }
    for row in found {
        let (id, webhook) = (DeliveryId(row.id), WebhookId(row.webhook_id));
        let owner = Owner { org: row.org_id.into(), mode: row.mode.0 };
        let mut tx = crate::begin(db).await?;
        match deliveries::redeliver_in(&mut tx, owner, webhook, id).await? {
            RedeliverResult::Queued(_) => {
                audit::record(&mut tx, owner, by, now, repetition(webhook, id)).await?;
                tx.commit().await?;
                redelivered.queued += 1;
            }
            refusal => redelivered.refused.push((id, refusal)),
        }
    }
    Ok(Some(redelivered))
}

/// Has up to `limit` waiting deliveries of an endpoint attempted now. Returns their number; `None` if there is no such
/// endpoint.
async fn hurry(
    db: &PgPool,
    webhook: WebhookId,
    since: Option<DateTime<Utc>>,
    limit: i64,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<usize>> {
    let found =
        sqlx::query!(r#"select org_id, mode as "mode: Parsed<Mode>" from webhooks where id = $1"#, webhook.0)
            .fetch_optional(db)
            .await?;
    let Some(found) = found else { return Ok(None) };
    let owner = Owner { org: found.org_id.into(), mode: found.mode.0 };
    let mut tx = crate::begin(db).await?;
    let hurried = drain::hurry(&mut tx, owner, webhook, since, limit).await?;
    for delivery in &hurried {
        audit::record(&mut tx, owner, by, now, repetition(webhook, *delivery)).await?;
    }
    tx.commit().await?;
    Ok(Some(hurried.len()))
}

fn repetition(webhook: WebhookId, delivery: DeliveryId) -> Change {
    Change { action: Action::Redelivered, object: delivery.0, details: json!({ "webhook": webhook }) }
}

/// Ends the dashboard sessions of an organization, or of all. Returns how many ended.
pub async fn end_sessions(
    db: &PgPool,
    org: Option<OrgId>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<u64> {
    let mut tx = crate::begin(db).await?;
    let ended =
        sqlx::query!("delete from sessions where $1::uuid is null or org_id = $1", org.map(|org| org.0))
            .execute(&mut *tx)
            .await?
            .rows_affected();
    let org = org.unwrap_or(audit::INSTALLATION);
    let change = Change { action: Action::SessionsEnded, object: org.0, details: json!({ "ended": ended }) };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    Ok(ended)
}

/// Resource that an id leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// A post: its own id, or that of a target.
    Post(PostId),
    /// An organization: its own id, or that of an account, endpoint or API key.
    Organization(OrgId),
}

/// Returns what an id leads to; `None` if nothing has it.
pub async fn locate(db: &PgPool, id: Uuid) -> sqlx::Result<Option<Located>> {
    let row = sqlx::query!(
        r#"select id as post, null::uuid as org from posts where id = $1
           union all select post_id, null from targets where id = $1
           union all select null, id from organizations where id = $1
           union all select null, org_id from accounts where id = $1
           union all select null, org_id from webhooks where id = $1
           union all select null, org_id from api_keys where id = $1
           limit 1"#,
        id
    )
    .fetch_optional(db)
    .await?;
    Ok(row.and_then(|row| match (row.post, row.org) {
        (Some(post), _) => Some(Located::Post(PostId(post))),
        (None, org) => org.map(|org| Located::Organization(OrgId(org))),
    }))
}

/// Returns the owner of an API key, of any organization.
pub async fn owner_of_key(db: &PgPool, key: KeyId) -> sqlx::Result<Option<Owner>> {
    let row = sqlx::query!(
        r#"select org_id, mode as "mode: Parsed<Mode>" from api_keys where id = $1 and client is null"#,
        key.0
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Owner { org: row.org_id.into(), mode: row.mode.0 }))
}

/// Result of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// Number of messages that were written for overdue rows.
    pub resumed: usize,
    /// Number of parked messages that are sent again.
    pub unparked: u64,
}

/// Resumes everything that is overdue now, as the sweeper of every API process does periodically, and with `parked`
/// also sends messages again that Temporal refused. One transaction, which locks the rows until its end: there is
/// neither a row that was resumed without an entry of the audit trail nor an entry of what was not done.
pub async fn reconcile(
    db: &PgPool,
    renewals: Renewals<'_>,
    parked: bool,
    reason: Option<&str>,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Reconciled> {
    let timing = Timing {
        grace: Duration::ZERO,
        row_interval: RECONCILE_INTERVAL,
        // The API starts what is due later.
        horizon: Duration::ZERO,
        renewal_ages: renewals,
    };
    loop {
        let mut tx = crate::begin(db).await?;
        let unparked = match if parked { unpark(&mut tx).await } else { Ok(0) } {
            // A sweep has written another message meanwhile, which the next turn sees.
            Err(error) if error.as_database_error().is_some_and(|error| error.is_unique_violation()) => {
                continue;
            }
            unparked => unparked?,
        };
        let resumed = sweep::sweep_in(&mut tx, timing, RECONCILE_LIMIT).await?.total();
        let details = with_reason(json!({ "resumed": resumed, "unparked": unparked }), reason);
        let change = Change { action: Action::Reconciled, object: audit::INSTALLATION.0, details };
        audit::record_shared(&mut tx, audit::INSTALLATION, by, now, change).await?;
        tx.commit().await?;
        return Ok(Reconciled { resumed, unparked });
    }
}

/// Records an action of an operator that concerns the whole installation.
pub async fn record(
    db: &PgPool,
    action: Action,
    details: Value,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let change = Change { action, object: audit::INSTALLATION.0, details };
    audit::record_shared(&mut tx, audit::INSTALLATION, by, now, change).await?;
    tx.commit().await
}

/// Lets parked messages be sent again, one for each overdue row. Returns how many.
pub async fn unpark(tx: &mut PgConnection) -> sqlx::Result<u64> {
    let unparked = sqlx::query!(
        "with latest as (
               select distinct on (coalesce(overdue::text, id::text)) id
               from outbox parked
               where parked_at is not null
                 -- Another message of the same row waits already.
                 and not exists (
                   select from outbox other where other.overdue = parked.overdue and other.parked_at is null)
               order by coalesce(overdue::text, id::text), id desc),
             superseded as (
               delete from outbox
               where parked_at is not null and overdue is not null and id not in (select id from latest))
             update outbox set parked_at = null, error = null, attempts = 0, available_at = now()
             where id in (select id from latest)"
    )
    .execute(tx)
    .await?;
    Ok(unparked.rows_affected())
}
