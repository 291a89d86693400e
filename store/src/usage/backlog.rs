//! Rows that wait in the whole installation, for the operators' metrics.

use crate::{decode::Parsed, publishing::FORGOTTEN_AFTER};
use domain::Mode;
use sqlx::{PgConnection, PgPool};
use std::time::Duration;

/// Time after which a step that was due is overdue.
const GRACE: Duration = Duration::from_secs(60);

/// The number of rows that wait, and the seconds since the oldest was due; 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Number.
    pub number: i64,
    /// Age of the oldest.
    pub age_seconds: f64,
}

/// A number of one platform and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Platform id.
    pub platform: String,
    /// The mode.
    pub mode: Mode,
    /// Number.
    pub number: i64,
}

/// Rows that wait, of all organizations and modes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backlog {
    /// Messages that are not parked, since they were written.
    pub outbox: Waiting,
    /// Parked messages.
    pub parked: i64,
    /// Posts with a target that was due over a minute ago, and whose publishing has not begun. One that waits is not
    /// late: it is frozen, its account rests, it is a reply, or its files are being fetched.
    pub posts: Waiting,
    /// Targets whose next attempt was due over a minute ago.
    pub targets: Waiting,
    /// Deliveries whose next attempt was due over a minute ago, but not those that wait for the probe of a dead endpoint;
    /// up to a thousand of each endpoint.
    pub deliveries: Waiting,
    /// Active accounts on one of the given platforms with nine tenths of their grant's life behind them.
    pub unrenewed: i64,
    /// Apps that a platform refuses, by platform and mode: their posts wait.
    pub held_apps: Vec<Count>,
    /// Targets that are due now and not begun, by platform and mode; none of a queue that is empty. One that waits for
    /// something else than a worker does not count, as in `posts`.
    pub due: Vec<Count>,
}

/// Reads the backlog. `renewed` are the platforms whose grants are renewed ahead of expiry.
///
/// # Errors
///
/// When the database doesn't answer within seconds: these statements are for operators, and must not hold up others.
pub async fn read(db: &PgPool, renewed: &[String]) -> sqlx::Result<Backlog> {
    let mut tx = crate::begin(db).await?;
    // Unchecked: it has no parameters and no rows.
    sqlx::query("set local statement_timeout = '2s'").execute(&mut *tx).await?;
    let row = sqlx::query!(
        r#"select outbox.number as "messages!", extract(epoch from now() - outbox.oldest)::float8 as message_age,
             (select count(*) from outbox where parked_at is not null) as "parked!",
             posts.number as "posts!", extract(epoch from now() - posts.oldest)::float8 as post_age,
             targets.number as "targets!", extract(epoch from now() - targets.oldest)::float8 as target_age,
             deliveries.number as "deliveries!",
             extract(epoch from now() - deliveries.oldest)::float8 as delivery_age,
             (select count(*) from granted_accounts
              where status = 'active' and token_expires_at is not null and platform = any($2)
                and now() > coalesce(granted_at, updated_at)
                  + (token_expires_at - coalesce(granted_at, updated_at)) * 0.9) as "unrenewed!"
           from (select count(*) as number, min(created_at) as oldest from outbox where parked_at is null) outbox,
             (select count(*) as number, min(late.since) as oldest
              from posts p cross join lateral (
                select min(coalesce(t.next_attempt_at, t.scheduled_at, p.scheduled_at, p.created_at)) as since
                from targets t
                where t.post_id = p.id and t.status in ('pending', 'queued')
                  and not exists (
                    select from target_containers c
                    cross join lateral jsonb_array_elements(c.media) as attached
                    join media m on m.id = (attached->>'id')::uuid
                    where c.target_id = t.id and m.status in ('pending_upload', 'uploaded')
                      and m.deleted_at is null)) late
              where p.status in ('scheduled', 'queued') and p.reply_to is null
                and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
                and late.since < now() - make_interval(secs => $1)) posts,
             (select count(*) as number, min(t.next_attempt_at) as oldest
              from posts p join targets t on t.post_id = p.id
              where p.status in ('scheduled', 'queued', 'publishing')
                and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
                and t.status in ('pending', 'queued', 'failed')
                and t.next_attempt_at < now() - make_interval(secs => $1)) targets,
             -- Of each endpoint that is not dead, whose deliveries wait for it and not for us; up to a thousand.
             (select count(*) as number, min(due) as oldest from (
                select late.due from endpoints_open open join webhooks w on w.id = open.webhook_id
                cross join lateral (
                  select coalesce(next_attempt_at, created_at) as due from deliveries
                  where webhook_id = w.id and status not in ('delivered', 'failed')
                    and coalesce(next_attempt_at, created_at) < now() - make_interval(secs => $1)
                  order by coalesce(next_attempt_at, created_at) limit 1000) late
                where w.probe_at is null or w.probe_at < now() - make_interval(secs => $1)) late) deliveries"#,
        GRACE.as_secs_f64(),
        renewed
    )
    .fetch_one(&mut *tx)
    .await?;
    let (due, held_apps) = (due(&mut tx).await?, held_apps(&mut tx).await?);
    tx.commit().await?;
    let waiting =
        |number, age: Option<f64>| Waiting { number, age_seconds: age.unwrap_or_default().max(0.0) };
    Ok(Backlog {
        outbox: waiting(row.messages, row.message_age),
        parked: row.parked,
        posts: waiting(row.posts, row.post_age),
        targets: waiting(row.targets, row.target_age),
        deliveries: waiting(row.deliveries, row.delivery_age),
        unrenewed: row.unrenewed,
        held_apps,
        due,
    })
}

/// Returns the targets that are due and not begun. An attempt that begins counts itself and clears the time of the next
/// one.
async fn due(tx: &mut PgConnection) -> sqlx::Result<Vec<Count>> {
    let rows = sqlx::query!(
        r#"select t.platform, t.mode as "mode: Parsed<Mode>", count(*) as "number!"
           from posts p join targets t on t.post_id = p.id
           where p.status in ('scheduled', 'queued', 'publishing') and coalesce(p.scheduled_at, p.created_at) <= now()
             and t.status in ('pending', 'queued', 'failed') and t.freeze_id is null
             and case when t.next_attempt_at is not null then t.next_attempt_at <= now()
                   else t.attempts = 0 and p.reply_to is null
                     and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) <= now() end
             and not exists (
               select from target_containers c
               cross join lateral jsonb_array_elements(c.media) as attached
               join media m on m.id = (attached->>'id')::uuid
               where c.target_id = t.id and m.status in ('pending_upload', 'uploaded') and m.deleted_at is null)
           group by t.platform, t.mode"#
    )
    .fetch_all(tx)
    .await?;
    let due = rows.into_iter();
    Ok(due.map(|row| Count { platform: row.platform, mode: row.mode.0, number: row.number }).collect())
}

/// Returns the apps that a platform refuses.
async fn held_apps(tx: &mut PgConnection) -> sqlx::Result<Vec<Count>> {
    let rows = sqlx::query!(
        r#"select platform, mode as "mode: Parsed<Mode>", count(*) as "number!" from app_holds
           where until > now() - make_interval(secs => $1)
           group by platform, mode"#,
        FORGOTTEN_AFTER.as_secs_f64()
    )
    .fetch_all(tx)
    .await?;
    let held = rows.into_iter();
    Ok(held.map(|row| Count { platform: row.platform, mode: row.mode.0, number: row.number }).collect())
}
