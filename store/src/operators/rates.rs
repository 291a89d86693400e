//! How publishing goes, by platform and organization: what was published and what failed in a time, how long it took
//! from when it was due, and how much of it was throttled.
//!
//! It reads the latest targets of each platform that have ended, a bounded number, by the indexes on the time: its cost
//! does not grow with what is published.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use std::time::Duration;

/// The latest targets of a platform that are read, published ones and failed ones each.
pub const SAMPLED: i64 = 1_000;
/// Maximum organizations.
const ORGANIZATIONS: i64 = 50;

/// How publishing went.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Id of the platform or organization.
    pub id: String,
    /// Name of the organization.
    pub name: Option<String>,
    /// Targets that were published.
    pub published: i64,
    /// Targets that failed for good.
    pub failed: i64,
    /// Those of both that the platform throttled at least once.
    pub throttled: i64,
    /// Seconds from when a target was due until it was live, the median.
    pub median_seconds: Option<f64>,
    /// The same, of the slowest twentieth the fastest.
    pub slow_seconds: Option<f64>,
    /// Since when, if there were more than [`SAMPLED`] in the time.
    pub since: Option<DateTime<Utc>>,
}

/// The rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// By platform.
    pub platforms: Vec<Rate>,
    /// By organization, that with most failures first.
    pub organizations: Vec<Rate>,
}

/// Returns the rates of a time that ends now.
///
/// # Errors
///
/// When the database doesn't answer within seconds: this is for operators, and must not hold up others.
pub async fn rates(db: &PgPool, platforms: &[&str], time: Duration) -> sqlx::Result<Rates> {
    let mut tx = crate::begin(db).await?;
    // Unchecked: it has no parameters and no rows.
    sqlx::query("set local statement_timeout = '5s'").execute(&mut *tx).await?;
    let platforms: Vec<_> = platforms.iter().map(|&id| id.to_owned()).collect();
    let rows = sqlx::query!(
        r#"with live as materialized (
             select t.* from unnest($1::text[]) as named (name) cross join lateral (
               select platform, org_id, post_id, scheduled_at, published_at as ended_at, free_attempts
               from targets
               where platform = named.name and status = 'published' and published_at > now() - make_interval(secs => $2)
               order by published_at desc limit $3) t),
           -- A platform with more is judged since the oldest of them that is read, its failures as well.
           spans as (
             select platform, case when count(*) >= $3 then min(ended_at) end as since from live group by platform),
           dead as materialized (
             select d.* from (
               select platform, org_id, updated_at, free_attempts from targets
               where status = 'dead' and updated_at > now() - make_interval(secs => $2)
               order by updated_at desc limit $3 * cardinality($1::text[])) d
             left join spans s on s.platform = d.platform
             where s.since is null or d.updated_at > s.since),
           ended as (
             select l.platform, l.org_id, true as is_live, l.free_attempts > 0 as is_throttled,
               -- One post after the other: a plan for all would read the whole table.
               extract(epoch from l.ended_at - coalesce(l.scheduled_at, (
                 select coalesce(p.scheduled_at, p.created_at) from posts p where p.id = l.post_id)))::float8 as took
             from live l
             union all
             select platform, org_id, false, free_attempts > 0, null from dead),
           rates as (
             select grouping(platform, org_id) as kind, platform, org_id, count(*) filter (where is_live) as published,
               count(*) filter (where not is_live) as failed, count(*) filter (where is_throttled) as throttled,
               percentile_cont(0.5) within group (order by took) as median,
               percentile_cont(0.95) within group (order by took) as slow
             from ended group by grouping sets ((platform), (org_id))),
           ranked as (
             select *, row_number() over (partition by kind order by failed desc, published desc, org_id, platform) as place
             from rates)
         select r.kind as "kind!", coalesce(r.platform, r.org_id::text) as "id!", o.name as "name?",
           r.published as "published!", r.failed as "failed!", r.throttled as "throttled!", r.median, r.slow, s.since
         from ranked r left join organizations o on o.id = r.org_id left join spans s on s.platform = r.platform
         where r.platform is not null or r.place <= $4 order by r.kind, r.place"#,
        &platforms,
        time.as_secs_f64(),
        SAMPLED,
        ORGANIZATIONS
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    let mut rates = Rates::default();
    for row in rows {
        let rate = Rate {
            id: row.id,
            name: row.name,
            published: row.published,
            failed: row.failed,
            throttled: row.throttled,
            median_seconds: row.median,
            slow_seconds: row.slow,
            since: row.since,
        };
        // The bit of the column that a group leaves out.
        if row.kind == 0b01 { rates.platforms.push(rate) } else { rates.organizations.push(rate) }
    }
    Ok(rates)
}
