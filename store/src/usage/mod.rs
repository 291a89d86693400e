//! Rate limits, quotas and usage: one row of counters per organization and mode,
//! so that a test run uses up nothing that live calls need.
//!
//! One statement authenticates a request and counts it in every bucket, locking one row: counts are never
//! partial, no two locks wait for each other, and all processes share the limits. Requests without a valid
//! key are counted by IP address.
//!
//! Keys with a bound and client tokens are given to others, who may be an attacker's: they count in a row of their own
//! and, before that, in a bucket of each, so that they use up nothing that the organization's keys need.
//!
//! Tables: `usage_counters`, `limited_usage`, `ip_rate_limits`, `request_log`, `metric_snapshots`, `metric_days`.

pub mod backlog;
pub mod ceilings;
pub mod metrics;
pub mod requests;

use crate::{
    decode::Parsed,
    people::keys::{self, Key, key},
};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};
use domain::{Bound, Mode, Owner, client::Client, scope::Scope};
use sqlx::{PgPool, types::Json};
use std::net::{IpAddr, Ipv6Addr};
use uuid::Uuid;

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
    /// Requests counted this month: of the organization's keys and people, or of its limited callers.
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

/// The outcome of authenticating a caller by a key.
#[derive(Clone, Debug)]
pub enum Authenticated {
    /// By a key of the organization, with which the request was counted.
    Counted(Admission),
    /// By a key with a bound or a client token. Nothing was counted yet: [`count_limited`] does.
    Limited(Key),
}

impl Authenticated {
    /// Returns the request as it was counted; `None` if it was not.
    pub fn counted(self) -> Option<Admission> {
        match self {
            Self::Counted(admission) => Some(admission),
            Self::Limited(_) => None,
        }
    }
}

/// Authenticates a caller by their key, and counts the request if the key is of the whole organization. Returns `None`
/// when the key is unknown, revoked or expired. Without `quotas` the request counts in the buckets only.
///
/// A request that a bucket refuses counts in no bucket and in no quota; one that only the quota refuses
/// counts in the buckets. The last use of a key is updated at most once a minute.
pub async fn authenticate_and_count(
    db: &PgPool,
    presented: &str,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Authenticated>> {
    count_own(db, Some(keys::digest(presented)), None, buckets, quotas, now).await
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
    let counted = count_own(db, None, Some(owner), buckets, quotas, now).await?;
    Ok(counted.and_then(Authenticated::counted))
}

/// Parameters of the statement that counts a request.
struct Parameters {
    names: Vec<String>,
    ceilings: Vec<i64>,
    starts: Vec<i64>,
    lengths: Vec<i64>,
    quotas: Quotas,
    month: NaiveDate,
}

impl Parameters {
    fn new(buckets: &[Bucket], quotas: Option<&Quotas>, now: DateTime<Utc>) -> Self {
        Self {
            names: buckets.iter().map(|bucket| bucket.name.to_owned()).collect(),
            ceilings: buckets.iter().map(|bucket| i64::from(bucket.ceiling)).collect(),
            starts: buckets.iter().map(|bucket| bucket.start(now)).collect(),
            lengths: buckets.iter().map(|bucket| i64::from(bucket.seconds)).collect(),
            quotas: quotas.cloned().unwrap_or_default(),
            month: Month::of(now).start.date_naive(),
        }
    }
}

/// The statement that authenticates a key and counts a request in a table, for keys that meet a condition, beside what
/// is counted elsewhere for the same quota.
///
/// A window or month started by another process, whose clock is slightly ahead, is continued. Losing the latest counts in
/// a crash of Postgres is cheaper than waiting for the disk at every request, hence the `synchronous_commit` at the end.
macro_rules! count {
    ($table:literal, $keys:literal, $beside:literal, $digest:expr, $owner:expr, $of:expr, $is_metered:expr, $now:expr $(,)?) => {
        sqlx::query!(
        r#"with key as (
             select k.id, k.org_id, k.mode, k.name, k.scopes, k.bound, k.client, k.last_four, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, k.created_by, o.plan
             from api_keys k join organizations o on o.id = k.org_id
             where k.digest = $1 and (k.revoked_at is null or k.revoked_at > $2)
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
             insert into "# + $table + r#" as m (org_id, mode, month, requests, windows)
             select org_id, mode, $9, $10::boolean::int,
                    (select coalesce(jsonb_object_agg(name, jsonb_build_array(start, 1)), '{}') from bucket)
             from key where "# + $keys + r#"
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
                 select requests,
                        requests + beside >= coalesce((select most from quota), requests + beside + 1) as used_up
                 from (select case when m.month >= excluded.month then m.requests else 0 end as requests,
                              "# + $beside + r#" as beside) month
               ) quota
             )
             returning requests, exhausted, windows
           )
           select id as "id!", org_id as "org_id!", mode as "mode!: Parsed<Mode>", name as "name!",
                  scopes as "scopes!: Vec<Parsed<Scope>>", bound as "bound: Json<Bound>", client as "client: Json<Client>", last_four as "last_four!", expires_at, revoked_at, last_used_at, created_at as "created_at!", created_by,
                  plan as "plan!", requests as "requests?", exhausted as "exhausted?", windows as "windows?"
           from key left join metered on true cross join set_config('synchronous_commit', 'off', true)"#,
            $digest,
            $now,
            &$of.names,
            &$of.ceilings,
            &$of.starts,
            &$of.lengths,
            &$of.quotas.plans,
            &$of.quotas.most,
            $of.month,
            $is_metered,
            $owner.map(|owner: Owner| owner.org.0),
            $owner.map(|owner: Owner| owner.mode.as_str())
        )
    };
}

/// Reads an [`Admission`] from a row of [`count`].
macro_rules! admission {
    ($row:expr, $buckets:expr, $windows:expr) => {{
        let level = |bucket: &Bucket| {
            let number = |at: usize| $windows[bucket.name][at].as_i64().unwrap_or_default();
            bucket.level(number(0), number(1))
        };
        Admission {
            levels: $buckets.iter().map(level).collect(),
            requests: to_u64($row.requests.unwrap_or_default()),
            is_over_quota: $row.exhausted.unwrap_or_default(),
            plan: $row.plan,
            key: key!($row),
        }
    }};
}

/// Counts a request of a key of the organization, or else of an owner.
async fn count_own(
    db: &PgPool,
    digest: Option<Vec<u8>>,
    owner: Option<Owner>,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Authenticated>> {
    let of = Parameters::new(buckets, quotas, now);
    let row = count!("usage_counters", "key.bound is null", "0", digest, owner, of, quotas.is_some(), now)
        .fetch_optional(db)
        .await?;
    Ok(row.map(|mut row| match row.windows.take() {
        Some(windows) => Authenticated::Counted(admission!(row, buckets, windows)),
        None => Authenticated::Limited(key!(row)),
    }))
}

/// Counts a request of a key with a bound, or of a client token, beside those of the organization's keys. It needs quota
/// that neither they nor other limited callers have used. Returns `None` when the key has ended meanwhile.
pub async fn count_limited(
    db: &PgPool,
    presented: &str,
    buckets: &[Bucket],
    quotas: Option<&Quotas>,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Admission>> {
    let of = Parameters::new(buckets, quotas, now);
    let row = count!(
        "limited_usage",
        "key.bound is not null",
        "coalesce((select own.requests from usage_counters own
                   where own.org_id = m.org_id and own.mode = m.mode and own.month = $9), 0)",
        keys::digest(presented),
        None,
        of,
        quotas.is_some(),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.and_then(|mut row| {
        let windows = row.windows.take()?;
        Some(admission!(row, buckets, windows))
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
    count_from(db, bucket, address, now).await
}

/// Counts a request of one key, or of one member, in a bucket that no other fills.
pub async fn count_one(db: &PgPool, bucket: Bucket, caller: Uuid, now: DateTime<Utc>) -> sqlx::Result<Level> {
    count_from(db, bucket, caller.to_string(), now).await
}

/// Counts a request from an address, or of the caller whose id is in its place.
async fn count_from(db: &PgPool, bucket: Bucket, address: String, now: DateTime<Utc>) -> sqlx::Result<Level> {
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
        r#"select o.plan, coalesce(m.requests, 0) + coalesce(l.requests, 0) as "requests!",
             (select count(*) from targets where org_id = $1 and mode = $2 and status = 'published'
                and published_at >= $4 and published_at < $5) as "posts!",
             (select count(*) from accounts where org_id = $1 and mode = $2 and status <> 'disconnected') as "accounts!"
           from organizations o left join usage_counters m on m.org_id = o.id and m.mode = $2 and m.month = $3
             left join limited_usage l on l.org_id = o.id and l.mode = $2 and l.month = $3
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
    fn a_bucket_refuses_beyond_its_ceiling() {
        let bucket = Bucket { name: "posts", ceiling: 3, seconds: 60 };
        for (calls, remaining, is_exceeded) in
            [(0, 3, false), (2, 1, false), (3, 0, false), (4, 0, true), (-1, 3, false)]
        {
            let level = bucket.level(0, calls);
            assert_eq!((level.remaining(), level.is_exceeded()), (remaining, is_exceeded), "{calls}");
        }
        assert_eq!(bucket.level(i64::MAX, 0).ends_at, DateTime::<Utc>::MAX_UTC);
    }

    #[test]
    fn a_quota_beyond_all_numbers_of_the_database_is_its_largest() {
        let quotas: Quotas = [("small".to_owned(), 5), ("large".to_owned(), u64::MAX)].into_iter().collect();
        assert_eq!(
            (quotas.plans, quotas.most),
            (vec!["small".to_owned(), "large".to_owned()], vec![5, i64::MAX])
        );
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
