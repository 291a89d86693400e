//! Rate limits, quotas and usage: one row of counters per organization and mode,
//! so that a test run uses up nothing that live calls need.
//!
//! One statement authenticates a request and counts it in every bucket, locking one row: counts are never
//! partial, no two locks wait for each other, and all processes share the limits. Requests without a valid
//! key are counted by IP address.

use crate::{
    decode::Parsed,
    keys::{self, Key, key},
};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};
use domain::{Bound, Mode, Owner, client::Client, scope::Scope};
use sqlx::{PgPool, types::Json};
use std::net::{IpAddr, Ipv6Addr};

/// Number of expired rows that a request deletes: more than the one that it may leave behind.
const PURGE_LIMIT: i64 = 8;

/// A rate limit: requests per window. Windows start at multiples of their length since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Name of the bucket.
    pub name: &'static str,
    /// Maximum number of requests per window, at least one.
    pub ceiling: u32,
    /// Length of a window in seconds, at least one.
    pub seconds: u32,
}

/// State of a bucket after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The bucket.
    pub bucket: Bucket,
    /// Requests counted in this window; the ceiling plus one when the bucket refused one.
    pub calls: u64,
    /// When the window ends.
    pub ends_at: DateTime<Utc>,
}

/// Maximum requests per month, by plan; a plan that is missing is unlimited.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    plans: Vec<String>,
    most: Vec<i64>,
}

/// An authenticated and counted request.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The caller's key.
    pub key: Key,
    /// Id of the organization's plan.
    pub plan: String,
    /// State of each bucket, in the order of the buckets.
    pub levels: Vec<Level>,
    /// Requests of the key's owner counted this month.
    pub requests: u64,
    /// True if the monthly quota is used up and refuses this request.
    pub is_over_quota: bool,
}

/// A calendar month in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// Start of the month.
    pub start: DateTime<Utc>,
    /// Start of the next month.
    pub end: DateTime<Utc>,
}

/// Usage of an owner in a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Id of the organization's plan.
    pub plan: String,
    /// Requests of the owner.
    pub requests: u64,
    /// Published targets of the owner.
    pub posts: u64,
    /// Accounts of the owner that are connected now.
    pub accounts: u64,
}

impl Bucket {
    /// Returns the start of the window that contains a time, in seconds since 1970.
    fn start(&self, now: DateTime<Utc>) -> i64 {
        let now = now.timestamp();
        now - now.rem_euclid(i64::from(self.seconds))
    }

    fn level(self, start: i64, calls: i64) -> Level {
        let end = start.saturating_add(i64::from(self.seconds));
        let ends_at = DateTime::from_timestamp(end, 0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        Level { bucket: self, calls: to_u64(calls), ends_at }
    }
}

impl Level {
    /// Returns whether the bucket refused the request.
    pub fn is_exceeded(&self) -> bool {
        self.calls > u64::from(self.bucket.ceiling)
    }

    /// Returns the number of further requests in this window.
    pub fn remaining(&self) -> u64 {
        u64::from(self.bucket.ceiling).saturating_sub(self.calls)
    }
}

impl FromIterator<(String, u64)> for Quotas {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(quotas: I) -> Self {
        let saturated = |(plan, most)| (plan, i64::try_from(most).unwrap_or(i64::MAX));
        let (plans, most) = quotas.into_iter().map(saturated).unzip();
        Self { plans, most }
    }
}

impl Month {
    /// Returns the month that contains a time.
    pub fn of(now: DateTime<Utc>) -> Self {
        let first = now.date_naive().with_day(1).expect("every month has a first day");
        let end = first.checked_add_months(Months::new(1)).unwrap_or(NaiveDate::MAX);
        let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        Self { start: midnight(first), end: midnight(end) }
    }
}

/// Authenticates a caller by their key and counts the request. Returns `None` when the key is unknown,
/// revoked or expired. Without `quotas` the request counts in the buckets only.
///
/// A request that a bucket refuses counts in no bucket and in no quota; one that only the quota refuses
/// counts in the buckets. The last use of a key is updated at most once a minute.
pub async fn authenticate_and_count(
    db: &PgPool,
    presented: &str,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Admission>> {
    admit(db, &keys::digests(presented)[..], None, buckets, quotas, now).await
}

/// Counts a request of a caller who was authenticated by other means than a key. Returns `None` when the organization
/// doesn't exist. The result's key is not a key.
pub async fn count_owner(
    db: &PgPool,
    owner: Owner,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Admission>> {
    admit(db, &[], Some(owner), buckets, quotas, now).await
}

/// Counts a request of a key, or else of an owner.
async fn admit(
    db: &PgPool,
    digests: &[Vec<u8>],
    owner: Option<Owner>,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Admission>> {
    let names: Vec<_> = buckets.iter().map(|bucket| bucket.name.to_owned()).collect();
    let ceilings: Vec<_> = buckets.iter().map(|bucket| i64::from(bucket.ceiling)).collect();
    let starts: Vec<_> = buckets.iter().map(|bucket| bucket.start(now)).collect();
    let lengths: Vec<_> = buckets.iter().map(|bucket| i64::from(bucket.seconds)).collect();
    let unlimited = Quotas::default();
    let limited = quotas.unwrap_or(&unlimited);
    // A window or month started by another process, whose clock is slightly ahead, is continued. Losing the
    // latest counts in a crash of Postgres is cheaper than waiting for the disk at every request, hence the
    // `synchronous_commit` at the end.
    let row = sqlx::query!(
        r#"with key as (
             select k.id, k.org_id, k.mode, k.name, k.scopes, k.bound, k.client, k.last_four, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, k.created_by, o.plan
             from api_keys k join organizations o on o.id = k.org_id
             where k.digest = any($1) and (k.revoked_at is null or k.revoked_at > $2)
               and (k.expires_at is null or k.expires_at > $2)
             union all
             select o.id, o.id, $12::text, '', '{}'::text[], null, null, '', null, null, null, $2, null, o.plan
             from organizations o where o.id = $11::uuid
           ), used as (
             update api_keys set last_used_at = $2 from key
             where api_keys.id = key.id
               and (api_keys.last_used_at is null or api_keys.last_used_at < $2 - interval '1 minute')
           ), bucket as (
             select name, ceiling, start, length
             from unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) as b (name, ceiling, start, length)
           ), quota as (
             select most from unnest($7::text[], $8::bigint[]) as q (plan, most) join key using (plan)
           ), metered as (
             insert into mode_usage as m (org_id, mode, month, requests, windows)
             select org_id, mode, $9, $10::boolean::int,
                    (select coalesce(jsonb_object_agg(name, jsonb_build_array(start, 1)), '{}') from bucket)
             from key
             on conflict (org_id, mode) do update set (month, requests, exhausted, windows) = (
               select greatest(m.month, excluded.month),
                      quota.requests + ($10 and not quota.used_up and not buckets.full)::int,
                      $10 and not buckets.full and quota.used_up,
                      m.windows || buckets.windows
               from (
                 select coalesce(bool_or(calls >= ceiling), false) as full,
                        coalesce(jsonb_object_agg(name, jsonb_build_array(start, case
                          when calls >= ceiling then ceiling + 1
                          when any_full then calls
                          else calls + 1 end)), '{}') as windows
                 from (select *, bool_or(calls >= ceiling) over () as any_full from (
                   select name, ceiling,
                          case when runs then begun else start end as start,
                          case when runs then counted else 0 end as calls
                   from bucket, lateral (
                     select (m.windows -> name ->> 0)::bigint as begun, (m.windows -> name ->> 1)::bigint as counted
                   ) known, lateral (select coalesce(begun between start and start + length, false) as runs) state
                 ) level) level
               ) buckets, (
                 select requests, requests >= coalesce((select most from quota), requests + 1) as used_up
                 from (select case when m.month >= excluded.month then m.requests else 0 end as requests) month
               ) quota
             )
             returning requests, exhausted, windows
           )
           select id as "id!", org_id as "org_id!", mode as "mode!: Parsed<Mode>", name as "name!",
                  scopes as "scopes!: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four as "last_four!", expires_at, revoked_at, last_used_at, created_at as "created_at!", created_by,
                  plan as "plan!", requests as "requests!", exhausted as "exhausted!", windows as "windows!"
           from key, metered, set_config('synchronous_commit', 'off', true)"#,
        digests,
        now,
        &names,
        &ceilings,
        &starts,
        &lengths,
        &limited.plans,
        &limited.most,
        Month::of(now).start.date_naive(),
        quotas.is_some(),
        owner.map(|owner| owner.org.0),
        owner.map(|owner| owner.mode.as_str())
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let level = |bucket: &Bucket| {
        let number = |at: usize| row.windows[bucket.name][at].as_i64().unwrap_or_default();
        bucket.level(number(0), number(1))
    };
    Ok(Some(Admission {
        levels: buckets.iter().map(level).collect(),
        key: key!(row),
        plan: row.plan,
        requests: to_u64(row.requests),
        is_over_quota: row.exhausted,
    }))
}

/// Counts a request from an IP address, and deletes some rows of expired windows.
///
/// IPv6 addresses count by their first 64 bits, the network of one subscriber.
pub async fn count(db: &PgPool, bucket: Bucket, address: IpAddr, now: DateTime<Utc>) -> sqlx::Result<Level> {
    let address = match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    };
    let start = bucket.start(now);
    let calls = sqlx::query_scalar!(
        r#"with ended as (
             delete from ip_rate_limits where ctid = any (array(
               select ctid from ip_rate_limits where ends_at <= $4 and (bucket, address) <> ($1, $2)
               limit $5 for update skip locked))
           )
           insert into ip_rate_limits as a (bucket, address, ends_at, calls) values ($1, $2, $3, 1)
           on conflict (bucket, address) do update set
             calls = case when a.ends_at >= excluded.ends_at then a.calls + 1 else 1 end,
             ends_at = greatest(a.ends_at, excluded.ends_at)
           returning calls"#,
        bucket.name,
        address,
        bucket.level(start, 0).ends_at,
        now,
        PURGE_LIMIT
    )
    .fetch_one(db)
    .await?;
    Ok(bucket.level(start, calls))
}

/// Returns the number of stored IP addresses.
pub async fn address_count(db: &PgPool) -> sqlx::Result<u64> {
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from ip_rate_limits"#).fetch_one(db).await?;
    Ok(to_u64(count))
}

/// Returns the usage of an owner in a month; `None` when the organization doesn't exist.
pub async fn read(db: &PgPool, owner: Owner, month: Month) -> sqlx::Result<Option<Usage>> {
    let row = sqlx::query!(
        r#"select o.plan, coalesce(m.requests, 0) as "requests!",
             (select count(*) from targets where org_id = $1 and mode = $2 and status = 'published'
                and published_at >= $4 and published_at < $5) as "posts!",
             (select count(*) from accounts where org_id = $1 and mode = $2 and status <> 'disconnected') as "accounts!"
           from organizations o left join mode_usage m on m.org_id = o.id and m.mode = $2 and m.month = $3
           where o.id = $1"#,
        owner.org.0,
        owner.mode.as_str(),
        month.start.date_naive(),
        month.start,
        month.end
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Usage {
        plan: row.plan,
        requests: to_u64(row.requests),
        posts: to_u64(row.posts),
        accounts: to_u64(row.accounts),
    }))
}

/// Returns how many targets an owner published on each day of a time zone since a time; days without any are not listed.
pub async fn published_by_day(
    db: &PgPool,
    owner: Owner,
    since: DateTime<Utc>,
    zone: &str,
) -> sqlx::Result<Vec<(NaiveDate, u64)>> {
    let rows = sqlx::query!(
        r#"select (published_at at time zone $4)::date as "day!", count(*) as "count!" from targets
           where org_id = $1 and mode = $2 and published_at >= $3 and status = 'published' group by 1 order by 1"#,
        owner.org.0,
        owner.mode.as_str(),
        since,
        zone
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.day, to_u64(row.count))).collect())
}

/// Returns how many requests of the log an owner made on each day of a time zone since a time; days without any are not
/// listed.
pub async fn requests_by_day(
    db: &PgPool,
    owner: Owner,
    since: DateTime<Utc>,
    zone: &str,
) -> sqlx::Result<Vec<(NaiveDate, u64)>> {
    let rows = sqlx::query!(
        r#"select (at at time zone $4)::date as "day!", count(*) as "count!" from request_log
           where org_id = $1 and mode = $2 and at >= $3 group by 1 order by 1"#,
        owner.org.0,
        owner.mode.as_str(),
        since,
        zone
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.day, to_u64(row.count))).collect())
}

fn to_u64(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn windows_are_aligned_to_the_clock() {
        let bucket = Bucket { name: "posts", ceiling: 3, seconds: 60 };
        for (now, end) in [
            ("2026-01-02T03:04:00Z", "2026-01-02T03:05:00Z"),
            ("2026-01-02T03:04:59.999Z", "2026-01-02T03:05:00Z"),
            ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(bucket.level(bucket.start(at(now)), 1).ends_at, at(end), "{now}");
        }
    }

    #[test]
    fn a_month_ends_at_the_start_of_the_next() {
        for (now, start, end) in [
            ("2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(Month::of(at(now)), Month { start: at(start), end: at(end) }, "{now}");
        }
    }
}
