//! How many targets are stuck, by platform, organization and cause: the first thing that one on call asks.
//!
//! It reads the open posts that were due and nothing else, so that it does not grow with what was published.

use super::stuck::Filter;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgPool;

/// Maximum groups of each kind.
const GROUPS: i64 = 50;

/// Numbers of targets that were due and have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Id of the platform or organization, or the error code; empty for all, and for targets without a failure.
    pub id: String,
    /// Name of the organization.
    pub name: Option<String>,
    /// All of them.
    pub stuck: i64,
    /// Those whose next step is overdue: nobody works on them.
    pub overdue: i64,
    /// Those that a platform throttled.
    pub throttled: i64,
    /// Those that operators froze.
    pub frozen: i64,
    /// When the oldest was due.
    pub oldest: Option<DateTime<Utc>>,
}

/// Stuck items, summed up. Each list begins with the group that has most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// All together.
    pub all: Load,
    /// By platform.
    pub platforms: Vec<Load>,
    /// By organization.
    pub organizations: Vec<Load>,
    /// By code of the last failure.
    pub causes: Vec<Load>,
}

/// Sums up the targets that a [`Filter`] finds, of any number.
///
/// # Errors
///
/// When the database doesn't answer within seconds: this is for operators, and must not hold up others.
pub async fn summary(db: &PgPool, filter: &Filter) -> sqlx::Result<Summary> {
    let mut tx = crate::begin(db).await?;
    // Unchecked: it has no parameters and no rows.
    sqlx::query("set local statement_timeout = '5s'").execute(&mut *tx).await?;
    let rows = sqlx::query!(
        r#"with due as (
             select t.platform, t.org_id, coalesce(t.error_code, '') as code,
               coalesce(t.scheduled_at, p.scheduled_at, p.created_at) as at,
               coalesce(t.next_attempt_at, greatest(t.scheduled_at, p.scheduled_at, t.updated_at))
                 < now() - make_interval(secs => $1) as is_overdue
             from posts p join targets t on t.post_id = p.id
             where p.status in ('scheduled', 'queued', 'publishing') and t.status in ('pending', 'queued', 'failed')
               and coalesce(p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
               and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
               and ($2::uuid is null or p.org_id = $2) and ($3::text is null or t.platform = $3)
               and ($4::text is null or t.error_code = $4) and ($5::uuid is null or t.account_id = $5)
             union all
             select t.platform, t.org_id, coalesce(t.error_code, ''),
               coalesce(t.scheduled_at, p.scheduled_at, p.created_at),
               t.next_attempt_at < now() - make_interval(secs => $1)
             from targets t join posts p on p.id = t.post_id
             where t.status = 'published' and t.next_attempt_at is not null
               and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) < now() - make_interval(secs => $1)
               and ($2::uuid is null or p.org_id = $2) and ($3::text is null or t.platform = $3)
               and ($4::text is null or t.error_code = $4) and ($5::uuid is null or t.account_id = $5)),
           loads as (
             select grouping(platform, org_id, code) as kind, coalesce(platform, org_id::text, code, '') as id, org_id,
               count(*) as stuck, count(*) filter (where is_overdue) as overdue,
               count(*) filter (where code = 'rate_limited') as throttled,
               count(*) filter (where code = 'frozen') as frozen, min(at) as oldest
             from due group by grouping sets ((), (platform), (org_id), (code))),
           ranked as (
             select *, row_number() over (partition by kind order by stuck desc, id) as place from loads)
           select r.kind as "kind!", r.id as "id!", o.name as "name?", r.stuck as "stuck!", r.overdue as "overdue!",
             r.throttled as "throttled!", r.frozen as "frozen!", r.oldest
           from ranked r left join organizations o on o.id = r.org_id
           where r.place <= $6 order by r.kind, r.place"#,
        filter.patience.as_secs_f64(),
        filter.org(),
        filter.platform,
        filter.code,
        filter.account(),
        GROUPS
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    let mut summary = Summary::default();
    for row in rows {
        let load = Load {
            id: row.id,
            name: row.name,
            stuck: row.stuck,
            overdue: row.overdue,
            throttled: row.throttled,
            frozen: row.frozen,
            oldest: row.oldest,
        };
        // A bit for each column that a group leaves out.
        match row.kind {
            0b011 => summary.platforms.push(load),
            0b101 => summary.organizations.push(load),
            0b110 => summary.causes.push(load),
            _ => summary.all = load,
        }
    }
    Ok(summary)
}
