//! Draining: the deliveries of one endpoint, sent by one workflow.
//!
//! A worker claims what is due, in the order in which it became due, which for first attempts is the order of
//! creation. A claim counts as an attempt and holds the delivery for a lease; the outcome is written only by its
//! claim. So two workers never make the same attempt, and one of a lost worker is followed by the next.
//!
//! **No wake-up is lost, and few are sent.** While a worker drains an endpoint, the endpoint is *awake*, and a
//! transaction that adds a delivery sends nothing. Otherwise it sends a message that wakes the endpoint. A transaction
//! reads whether the endpoint is awake under a shared advisory lock that it keeps to its end; a worker puts the
//! endpoint to sleep under the exclusive one, after it has seen that nothing is due ([`sleep`]). So a delivery is
//! committed before the worker looks, or its transaction sees the endpoint asleep. Writers never wait: they share the
//! lock, and a worker that doesn't get it at once stays awake.
//!
//! **Each delivery has its own times**, regardless of the others to the same endpoint. Only an endpoint that has
//! failed without a success for longer than a whole schedule ([`domain::retry::delivery_schedule`]), and has more than
//! [`KEPT_BACKLOG`] deliveries waiting, is dead, and then **costs nearly nothing**: one attempt at a time is made, a
//! probe, at an interval, and new deliveries wake nobody until the next probe (`probe_at`). Each failed probe decides
//! again. What was due for longer than [`domain::retry::FAILING_AFTER`] fails then, and can be repeated from a time on
//! ([`replay`]).
//!
//! Open deliveries are those whose status is `not in ('delivered', 'failed')`, in the words of the indexes of this: by
//! those of the older index on the time, which has the deliveries of all endpoints, Postgres would read through it.
//!
//! `deliveries` and `events` are partitioned by week of the id. A statement names ids, or the endpoint's `open_from`,
//! before which none is open, so that only the weeks that matter are looked at.

use crate::{
    decode::Parsed,
    webhooks::{
        self,
        deliveries::{KEPT_ANSWERS, Response},
        events::{self, NewEvent},
        wake::{message, revive},
    },
};
use chrono::{DateTime, Utc};
use domain::{
    DeliveryId, EventId, Mode, OrgId, Owner, PostId, WebhookId,
    event::{self, EventName},
    outbox::Message,
    retry,
};
use sqlx::{PgConnection, PgPool};
use std::{collections::HashMap, time::Duration};
use uuid::Uuid;

/// Failures in a row after which the owner of an endpoint is told.
pub const TOLD_AFTER: u32 = 10;

/// Deliveries that keep their own times however long their endpoint has failed.
pub const KEPT_BACKLOG: i64 = 100;

/// Maximum number of deliveries that are repeated, or attempted before their time, at once.
pub const MAX_REPLAYED: i64 = 10_000;

/// Deliveries that one statement fails.
pub const PART: i64 = 500;

/// State of an endpoint when its worker begins, or goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endpoint {
    /// True unless the endpoint is paused or deleted.
    pub is_open: bool,
    /// How it has answered lately.
    pub health: Health,
    /// No open delivery is older than this.
    pub open_from: DateTime<Utc>,
}

/// How an endpoint has answered lately.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// True if its latest attempt failed.
    pub is_failing: bool,
    /// Time until the next probe of a dead endpoint, to which only probes are sent; `None` for another.
    pub probe_in: Option<Duration>,
}

/// A claimed delivery: one attempt to make.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Delivery id.
    pub id: DeliveryId,
    /// Event id, the same on each attempt.
    pub event: EventId,
    /// Post that the event is about.
    pub post: Option<PostId>,
    /// URL of the endpoint.
    pub url: String,
    /// Signing secret of the endpoint, sealed.
    pub secret_sealed: Vec<u8>,
    /// The exact bytes to send.
    pub body: String,
    /// Number of the attempt in its round, from 1.
    pub attempt: u32,
    round: i32,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub struct Outcome {
    /// Claim of the attempt.
    pub claim: Claim,
    /// Response of the endpoint.
    pub response: Response,
    /// Wait before the next attempt, if this one failed; without it the delivery failed.
    pub retry_in: Option<Duration>,
}

/// Deliveries that are claimed at once.
#[derive(Debug, Default)]
pub struct Claimed {
    /// Those to send.
    pub claims: Vec<Claim>,
    /// Number of deliveries that failed without an attempt, because their last one was lost.
    pub failed: usize,
}

/// The result of putting an endpoint to sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sleep {
    /// Nothing is left.
    Done,
    /// Something is due later.
    Until {
        /// Time until then.
        wait: Duration,
        /// Number of deliveries that wait, up to a hundred.
        deliveries: u32,
    },
    /// Something is due: the endpoint stays awake.
    Due,
    /// Deliveries are being written: the endpoint stays awake.
    Busy,
    /// The endpoint is paused or deleted and has open deliveries: it stays awake.
    Closed,
}

/// Marks an endpoint as awake for `lease`. Returns its state; `None` if there is no such endpoint.
pub async fn wake(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    lease: Duration,
) -> sqlx::Result<Option<Endpoint>> {
    let row = sqlx::query!(
        r#"update webhooks
           set awake_until = now() + make_interval(secs => $4),
               open_from = coalesce(open_from, now() - interval '1 day')
           where id = $1 and org_id = $2 and mode = $3
           returning is_active and deleted_at is null as "is_open!", failures > 0 as "is_failing!",
             open_from as "open_from!", extract(epoch from probe_at - now())::float8 as probe_in"#,
        webhook.0,
        owner.org.0,
        owner.mode.as_str(),
        lease.as_secs_f64()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Endpoint {
        is_open: row.is_open,
        health: Health { is_failing: row.is_failing, probe_in: row.probe_in.map(seconds) },
        open_from: row.open_from,
    }))
}

/// Claims up to `limit` due deliveries of an endpoint for `lease`; none while it is paused or deleted.
pub async fn claim(
    db: &PgPool,
    webhook: WebhookId,
    open_from: DateTime<Utc>,
    limit: usize,
    lease: Duration,
) -> sqlx::Result<Claimed> {
    let mut rows = sqlx::query!(
        r#"update deliveries
           set status = case when attempts < $5 then 'delivering' else 'failed' end,
               attempts = least(attempts + 1, $5),
               next_attempt_at = case when attempts < $5 then now() + make_interval(secs => $4) end,
               error = case when attempts < $5 then error else 'the last attempt was interrupted' end
           where id = any(array(
             select id from deliveries
             where webhook_id = $1 and status not in ('delivered', 'failed')
               and coalesce(next_attempt_at, created_at) <= now() and id >= uuid_at($2)
               and exists (select from webhooks where id = $1 and is_active and deleted_at is null)
             order by coalesce(next_attempt_at, created_at), id limit $3 for update skip locked))
           returning id, event_id, round, attempts, status = 'delivering' as "is_claimed!""#,
        webhook.0,
        open_from,
        i64::try_from(limit).unwrap_or(i64::MAX),
        lease.as_secs_f64(),
        i32::try_from(retry::DELIVERY_ATTEMPTS).unwrap_or(i32::MAX)
    )
    .fetch_all(db)
    .await?;
    let all = rows.len();
    rows.retain(|row| row.is_claimed);
    if rows.is_empty() {
        return Ok(Claimed { claims: Vec::new(), failed: all });
    }
    // Ids are in order of creation.
    rows.sort_by_key(|row| row.id);
    let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
    let events = sqlx::query!(
        "select e.id, e.body, e.post_id, w.url, w.secret_sealed from events e cross join webhooks w
         where e.id = any($1) and w.id = $2",
        &ids,
        webhook.0
    )
    .fetch_all(db)
    .await?;
    let mut events: HashMap<_, _> = events.into_iter().map(|event| (event.id, event)).collect();
    let claim = |row: (Uuid, Uuid, i32, i32)| {
        let (id, event, round, attempts) = row;
        // An event goes after its deliveries, when its week is over.
        let event = events.remove(&event)?;
        Some(Claim {
            id: id.into(),
            event: event.id.into(),
            post: event.post_id.map(Into::into),
            url: event.url,
            secret_sealed: event.secret_sealed,
            body: event.body,
            attempt: attempts.unsigned_abs(),
            round,
        })
    };
    let claims: Vec<_> =
        rows.iter().map(|row| (row.id, row.event_id, row.round, row.attempts)).filter_map(claim).collect();
    Ok(Claimed { failed: all - claims.len(), claims })
}

/// Writes the outcomes of attempts, by one statement. Those whose claim was lost are passed over.
pub async fn settle(db: &PgPool, outcomes: &[Outcome], now: DateTime<Utc>) -> sqlx::Result<()> {
    let ids: Vec<_> = outcomes.iter().map(|outcome| outcome.claim.id.0).collect();
    let rounds: Vec<_> = outcomes.iter().map(|outcome| outcome.claim.round).collect();
    let attempts: Vec<_> =
        outcomes.iter().map(|outcome| i32::try_from(outcome.claim.attempt).unwrap_or(i32::MAX)).collect();
    let waits: Vec<_> =
        outcomes.iter().map(|outcome| outcome.retry_in.map(|wait| wait.as_secs_f64())).collect();
    let responses = || outcomes.iter().map(|outcome| &outcome.response);
    let statuses: Vec<_> = responses().map(|response| response.status).collect();
    let excerpts: Vec<_> = responses().map(|response| response.excerpt.clone()).collect();
    let latencies: Vec<_> =
        responses().map(|response| i32::try_from(response.latency.as_millis()).unwrap_or(i32::MAX)).collect();
    let errors: Vec<_> = responses().map(|response| response.error.clone()).collect();
    sqlx::query!(
        "update deliveries d
         set status = case when o.error is null then 'delivered' when o.wait is null then 'failed' else 'pending' end,
             delivered_at = case when o.error is null then $9 else delivered_at end,
             next_attempt_at = case when o.error is not null then now() + make_interval(secs => o.wait) end,
             response_status = o.status, response_excerpt = o.excerpt, latency_ms = o.latency, error = o.error,
             -- Most succeed at once, and then the columns say it all.
             answers = case when o.error is not null or d.answers is not null then
               case when jsonb_array_length(d.answers) >= $10 then d.answers - 0 else coalesce(d.answers, '[]') end
                 || jsonb_build_object('at', $9::timestamptz, 'status', o.status, 'excerpt', o.excerpt,
                   'latency_ms', o.latency, 'error', o.error) end
         from unnest($1::uuid[], $2::int[], $3::int[], $4::float8[], $5::int[], $6::text[], $7::int[], $8::text[])
           as o (id, round, attempt, wait, status, excerpt, latency, error)
         where d.id = any($1) and d.id = o.id and d.status = 'delivering' and d.round = o.round
           and d.attempts = o.attempt",
        &ids,
        &rounds,
        &attempts,
        &waits as &[Option<f64>],
        &statuses as &[Option<i32>],
        &excerpts as &[Option<String>],
        &latencies,
        &errors as &[Option<String>],
        now,
        KEPT_ANSWERS
    )
    .execute(db)
    .await?;
    Ok(())
}

/// How an endpoint has answered its latest attempts.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Attempts that failed, since the last of them that succeeded.
    pub failures: u32,
    /// True if one of the attempts succeeded: its failures count from now on.
    pub has_succeeded: bool,
    /// Reason of the last failure.
    pub error: Option<&'a str>,
    /// Time of failures without a success after which it may be dead.
    pub patience: Duration,
    /// Interval of its probes, if it is dead.
    pub probe_interval: Duration,
}

/// Result of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// How the endpoint answers now.
    pub health: Health,
    /// Since when it fails; `None` if it answers well.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Writes how an endpoint answers, and decides whether it is dead. When it has failed [`TOLD_AFTER`] times in a row, the
/// organization's other endpoints are told.
pub async fn report(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    report: Report<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<Reported> {
    let mut tx = crate::begin(db).await?;
    let reported = sqlx::query!(
        r#"with before as (select failures from webhooks where id = $1 for no key update)
           update webhooks
           set failures = least(case when $3 then 0 else before.failures end + $2::bigint, 1000000),
               failing_since = case when $2 > 0 then case when $3 then now() else coalesce(failing_since, now()) end end,
               probe_at = case when $2 > 0 and not $3 and failing_since < now() - make_interval(secs => $4) and (
                 select count(*) from (
                   select from deliveries
                   where webhook_id = $1 and status not in ('delivered', 'failed')
                     and id >= uuid_at(coalesce(webhooks.open_from, now() - interval '1 day'))
                   limit $5::bigint + 1) open) > $5
                 then now() + make_interval(secs => $6) end
           from before where id = $1
           returning failing_since, probe_at is not null as "is_dead!", webhooks.failures > 0 as "is_failing!",
             before.failures < $7 and webhooks.failures >= $7 as "is_news!", is_active and deleted_at is null as "is_open!""#,
        webhook.0,
        i64::from(report.failures),
        report.has_succeeded,
        report.patience.as_secs_f64(),
        KEPT_BACKLOG,
        report.probe_interval.as_secs_f64(),
        TOLD_AFTER.cast_signed()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(reported) = reported else {
        return Ok(Reported { health: Health::default(), failing_since: None });
    };
    if let (true, true, Some(since)) = (reported.is_news, reported.is_open, reported.failing_since) {
        let mut others = events::subscribers(&mut tx, owner).await?;
        others.retain(|other| other.id != webhook);
        let data = event::webhook_failing(owner.org, webhook, since, report.error.unwrap_or_default());
        let new = NewEvent { name: EventName::WebhookFailing, post: None, target: None, account: None, data };
        events::append_for(&mut tx, owner, now, &new, &others).await?;
    }
    tx.commit().await?;
    let probe_in = reported.is_dead.then_some(report.probe_interval);
    let health = Health { is_failing: reported.is_failing, probe_in };
    Ok(Reported { health, failing_since: reported.failing_since })
}

/// Fails up to [`PART`] deliveries that were due for longer than `age`. Returns their number.
pub async fn expire(
    db: &PgPool,
    webhook: WebhookId,
    open_from: DateTime<Utc>,
    age: Duration,
) -> sqlx::Result<u64> {
    let expired = sqlx::query!(
        "update deliveries set status = 'failed', next_attempt_at = null,
           error = coalesce(error || '; ', '') || 'the endpoint does not answer'
         where id = any(array(
           select id from deliveries
           where webhook_id = $1 and status not in ('delivered', 'failed')
             and coalesce(next_attempt_at, created_at) < now() - make_interval(secs => $3) and id >= uuid_at($2)
           order by coalesce(next_attempt_at, created_at), id limit $4 for update skip locked))",
        webhook.0,
        open_from,
        age.as_secs_f64(),
        PART
    )
    .execute(db)
    .await?;
    Ok(expired.rows_affected())
}

/// Fails up to [`PART`] open deliveries of an endpoint that is paused or deleted. Returns their number.
pub async fn abandon(db: &PgPool, webhook: WebhookId, open_from: DateTime<Utc>) -> sqlx::Result<u64> {
    let abandoned = sqlx::query!(
        "update deliveries d set status = 'failed', next_attempt_at = null,
           error = case when w.deleted_at is null then 'endpoint paused' else 'endpoint deleted' end
         from webhooks w
         where w.id = $1 and not (w.is_active and w.deleted_at is null) and d.id = any(array(
           select id from deliveries
           where webhook_id = $1 and status not in ('delivered', 'failed') and id >= uuid_at($2)
           order by coalesce(next_attempt_at, created_at), id limit $3 for update skip locked))",
        webhook.0,
        open_from,
        PART
    )
    .execute(db)
    .await?;
    Ok(abandoned.rows_affected())
}

/// Puts an endpoint to sleep, unless something is due now.
pub async fn sleep(db: &PgPool, webhook: WebhookId) -> sqlx::Result<Sleep> {
    let mut tx = crate::begin(db).await?;
    let is_alone = sqlx::query_scalar!(
        r#"select pg_try_advisory_xact_lock(hashtext('drain'), hashtext($1::uuid::text)) as "locked!""#,
        webhook.0
    )
    .fetch_one(&mut *tx)
    .await?;
    let locked = sqlx::query!(
        r#"select coalesce(extract(epoch from probe_at - now()), 0)::float8 as "probe_in!",
             is_active and deleted_at is null as "is_open!", coalesce(open_from, now() - interval '1 day') as "open_from!"
           from webhooks where id = $1 for no key update"#,
        webhook.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(endpoint) = locked else { return Ok(Sleep::Done) };
    // A dead one with open deliveries is woken by nobody before its next probe, which a workflow waits for.
    let is_probed = endpoint.probe_in > 0.0;
    if !is_alone && !is_probed {
        tx.rollback().await?;
        return Ok(Sleep::Busy);
    }
    // A statement of its own, which sees what was committed before the locks were taken.
    let next = sqlx::query!(
        r#"select count(*) as "deliveries!",
             extract(epoch from min(coalesce(next_attempt_at, created_at)) - now())::float8 as due_in
           from (select next_attempt_at, created_at from deliveries
                 where webhook_id = $1 and status not in ('delivered', 'failed') and id >= uuid_at($2)
                 order by coalesce(next_attempt_at, created_at) limit 100) open"#,
        webhook.0,
        endpoint.open_from
    )
    .fetch_one(&mut *tx)
    .await?;
    let wait = next.due_in.map(|due_in| seconds(due_in.max(endpoint.probe_in)));
    let sleep = match wait {
        None if !is_alone => Sleep::Busy,
        None => Sleep::Done,
        Some(_) if !endpoint.is_open => Sleep::Closed,
        Some(Duration::ZERO) => Sleep::Due,
        Some(wait) => Sleep::Until { wait, deliveries: u32::try_from(next.deliveries).unwrap_or(u32::MAX) },
    };
    if !matches!(sleep, Sleep::Done | Sleep::Until { .. }) {
        // At once, for the sake of the lock.
        tx.rollback().await?;
        return Ok(sleep);
    }
    // Without a delivery it is not dead: the next one has its own times.
    sqlx::query!(
        "update webhooks
         set awake_until = null, probe_at = case when not $2 then probe_at end, open_from = case when not $2 then open_from end
         where id = $1",
        webhook.0,
        sleep == Sleep::Done
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(sleep)
}

/// Has up to `limit` deliveries of an endpoint attempted now that wait for their next attempt or for a probe, of events
/// since a time, oldest first, each in its round. Returns them; none while the endpoint is paused.
pub(crate) async fn hurry(
    tx: &mut PgConnection,
    owner: Owner,
    webhook: WebhookId,
    since: Option<DateTime<Utc>>,
    limit: i64,
) -> sqlx::Result<Vec<DeliveryId>> {
    if webhooks::lock(&mut *tx, owner, webhook).await? != Some(true) {
        return Ok(Vec::new());
    }
    let mut ids = sqlx::query_scalar!(
        "update deliveries set next_attempt_at = null
         where id = any(array(
           select d.id from deliveries d join webhooks w on w.id = d.webhook_id
           where d.webhook_id = $1 and d.status not in ('delivered', 'failed') and d.status = 'pending'
             and d.id >= uuid_at(coalesce(w.open_from, now() - interval '1 day'))
             and d.created_at >= coalesce($2, '-infinity'::timestamptz)
             and (d.next_attempt_at > now() or w.probe_at > now())
           order by d.id limit $3 for no key update of d skip locked))
         returning id",
        webhook.0,
        since,
        limit
    )
    .fetch_all(&mut *tx)
    .await?;
    ids.sort_unstable();
    let ids: Vec<_> = ids.into_iter().map(DeliveryId).collect();
    if let Some(oldest) = ids.first() {
        revive(&mut *tx, owner, webhook, Some(*oldest)).await?;
    }
    Ok(ids)
}

/// Has what waits for an endpoint whose owner was told that it fails attempted now, since it has answered a test.
pub async fn answered(db: &PgPool, owner: Owner, webhook: WebhookId) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let is_failing = sqlx::query_scalar!(
        r#"select exists (
             select from webhooks where id = $1 and org_id = $2 and mode = $3 and failures >= $4) as "is_failing!""#,
        webhook.0,
        owner.org.0,
        owner.mode.as_str(),
        TOLD_AFTER.cast_signed()
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_failing {
        hurry(&mut tx, owner, webhook, None, MAX_REPLAYED).await?;
    }
    tx.commit().await
}

/// Deliveries to repeat, of events in a time.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    /// Time of the first event.
    pub since: DateTime<Utc>,
    /// Time before which the events happened, and before which what is repeated was delivered.
    pub until: DateTime<Utc>,
    /// True to repeat delivered ones too, beside those that failed.
    pub with_delivered: bool,
}

/// Repeats the oldest deliveries of an endpoint that were created in a time and are over, in order, up to
/// [`MAX_REPLAYED`]. Called again, it goes on, and passes over what it has repeated. Returns their number; `None` when
/// the endpoint is paused or doesn't exist.
pub async fn replay(
    db: &PgPool,
    owner: Owner,
    webhook: WebhookId,
    replay: Replay,
) -> sqlx::Result<Option<u64>> {
    let mut tx = crate::begin(db).await?;
    let is_active = webhooks::lock(&mut tx, owner, webhook).await?;
    if is_active != Some(true) {
        return Ok(None);
    }
    // Failed ones are in an index of their own (deliveries_troubled).
    let ids = if replay.with_delivered {
        sqlx::query_scalar!(
            "select id from deliveries
             where webhook_id = $1 and created_at >= $2 and created_at < $3 and id >= uuid_at($2 - interval '1 day')
               and (status = 'failed' or status = 'delivered' and delivered_at < $3)
             order by created_at, id limit $4 for update",
            webhook.0,
            replay.since,
            replay.until,
            MAX_REPLAYED
        )
        .fetch_all(&mut *tx)
        .await?
    } else {
        sqlx::query_scalar!(
            "select id from deliveries
             where webhook_id = $1 and created_at >= $2 and created_at < $3 and id >= uuid_at($2 - interval '1 day')
               and status = 'failed' and error is not null
             order by created_at, id limit $4 for update",
            webhook.0,
            replay.since,
            replay.until,
            MAX_REPLAYED
        )
        .fetch_all(&mut *tx)
        .await?
    };
    let Some(oldest) = ids.iter().min() else { return Ok(Some(0)) };
    sqlx::query!(
        "update deliveries
         set status = 'pending', round = round + 1, attempts = 0, response_status = null,
             response_excerpt = null, latency_ms = null, error = null, next_attempt_at = null, delivered_at = null,
             answers = case when answers is null and response_status is not null then jsonb_build_array(jsonb_build_object(
               'at', delivered_at, 'status', response_status, 'excerpt', response_excerpt, 'latency_ms', latency_ms,
               'error', error)) else answers end
         where id = any($1)",
        &ids
    )
    .execute(&mut *tx)
    .await?;
    revive(&mut tx, owner, webhook, Some(DeliveryId(*oldest))).await?;
    tx.commit().await?;
    Ok(Some(ids.len() as u64))
}

/// Returns messages for endpoints with overdue deliveries that no worker drains.
pub(crate) async fn overdue(
    tx: &mut PgConnection,
    grace: f64,
    interval: f64,
    limit: i64,
) -> sqlx::Result<Vec<Message>> {
    let swept = sqlx::query!(
        r#"with overdue as (
             select w.id from endpoints_open open join webhooks w on w.id = open.webhook_id
             where (w.awake_until is null or w.awake_until < now())
               and (w.probe_at is null or w.probe_at < now() - make_interval(secs => $1))
               and (w.swept_at is null or w.swept_at < now() - make_interval(secs => $2))
               and exists (
                 select from deliveries d
                 where d.webhook_id = w.id and d.status not in ('delivered', 'failed')
                   and coalesce(d.next_attempt_at, d.created_at) < now() - make_interval(secs => $1))
             limit $3 for no key update of w skip locked)
           update webhooks w
           set swept_at = now(),
               -- Nothing may have woken it for longer than the day that is looked back at.
               open_from = coalesce(w.open_from, (
                 select uuid_time(min(d.id::text)::uuid) - interval '1 second' from deliveries d
                 where d.webhook_id = w.id and d.status not in ('delivered', 'failed')))
           from overdue where w.id = overdue.id
           returning w.id, w.org_id, w.mode as "mode: Parsed<Mode>""#,
        grace,
        interval,
        limit
    )
    .fetch_all(tx)
    .await?;
    let of = |row: (Uuid, Mode, Uuid)| message(Owner { org: OrgId(row.0), mode: row.1 }, row.2.into());
    Ok(swept.into_iter().map(|row| of((row.org_id, row.mode.into(), row.id))).collect())
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}
