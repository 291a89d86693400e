//! Who calls, and how much was called: one row of counters per organization.
//!
//! A call is recognized and counted in every bucket by one statement, which locks one row: nothing is
//! counted half, no lock waits for another, and however many processes serve, they share the ceilings.
//! Callers that nobody knows yet are counted by address.

use crate::{
    decode::{self, Parsed},
    keys::{self, Key},
};
use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};
use domain::{Mode, Owner, scope::Scope};
use sqlx::PgPool;
use std::net::{IpAddr, Ipv6Addr};

/// How many ended rows a call removes: more than the one it may leave behind.
const SWEEP: i64 = 8;

/// A ceiling on calls in windows that begin at whole multiples of their length since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: &'static str,
    /// How many calls a window takes, at least one.
    pub ceiling: u32,
    /// How long a window is, in seconds, at least one.
    pub seconds: u32,
}

/// How full a bucket is after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The bucket.
    pub bucket: Bucket,
    /// The calls it counted in this window; one more than its ceiling once it refused one.
    pub calls: u64,
    /// When the window ends.
    pub ends_at: DateTime<Utc>,
}

/// Calls per month by plan; a plan that is not among them has no such limit.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    plans: Vec<String>,
    most: Vec<i64>,
}

/// A known caller, counted.
#[derive(Clone, Debug)]
pub struct Admission {
    /// The key.
    pub key: Key,
    /// The key of the organization's plan.
    pub plan: String,
    /// How full each bucket is, in the order in which they were given.
    pub levels: Vec<Level>,
    /// The calls of the month.
    pub requests: u64,
    /// Whether the quota had no room for this call.
    pub is_over_quota: bool,
}

/// A calendar month, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month {
    /// Its first moment.
    pub start: DateTime<Utc>,
    /// The first moment after it.
    pub end: DateTime<Utc>,
}

/// What an owner used in a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The key of the organization's plan.
    pub plan: String,
    /// The organization's calls.
    pub requests: u64,
    /// The owner's targets that were published.
    pub posts: u64,
    /// The accounts that the owner has connected now.
    pub accounts: u64,
}

impl Bucket {
    /// When the window begins that a moment lies in, in seconds since 1970.
    fn start(&self, now: DateTime<Utc>) -> i64 {
        let now = now.timestamp();
        now - now.rem_euclid(i64::from(self.seconds))
    }

    fn level(self, start: i64, calls: i64) -> Level {
        let end = start.saturating_add(i64::from(self.seconds));
        let ends_at = DateTime::from_timestamp(end, 0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        Level { bucket: self, calls: unsigned(calls), ends_at }
    }
}

impl Level {
    /// Whether it had no room for the call.
    pub fn is_exceeded(&self) -> bool {
        self.calls > u64::from(self.bucket.ceiling)
    }

    /// How many calls it still takes.
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
    /// The month that a moment lies in.
    pub fn of(now: DateTime<Utc>) -> Self {
        let first = now.date_naive().with_day(1).expect("every month has a first day");
        let end = first.checked_add_months(Months::new(1)).unwrap_or(NaiveDate::MAX);
        let midnight = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_utc();
        Self { start: midnight(first), end: midnight(end) }
    }
}

/// Recognizes a caller by the text of its key and counts the call; `None` when the key is unknown,
/// revoked or expired. Without `quotas` the call counts in the buckets only.
///
/// A call that some bucket has no room for counts in none of them and in no quota; one that only the
/// quota has no room for counts in the buckets. A key's last use is noted at most once a minute.
pub async fn authenticate_and_count(
    db: &PgPool,
    presented: &str,
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
    // A window or a month that another process, whose clock is a little ahead, has begun already is
    // gone on with. Losing the last moment's counts in a crash of Postgres is cheaper than waiting
    // for the disk at every call, so this one statement does not.
    let row = sqlx::query!(
        r#"with key as (
             select k.id, k.org_id, k.mode, k.name, k.scopes, k.last_four, k.expires_at, k.revoked_at,
                    k.last_used_at, k.created_at, o.plan
             from api_keys k join organizations o on o.id = k.org_id
             where k.digest = $1 and (k.revoked_at is null or k.revoked_at > $2)
               and (k.expires_at is null or k.expires_at > $2)
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
             insert into usage_counters as m (org_id, month, requests, windows)
             select org_id, $9, $10::boolean::int,
                    (select coalesce(jsonb_object_agg(name, jsonb_build_array(start, 1)), '{}') from bucket)
             from key
             on conflict (org_id) do update set (month, requests, exhausted, windows) = (
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
                  scopes as "scopes!: Vec<Parsed<Scope>>", last_four as "last_four!", expires_at, revoked_at, last_used_at, created_at as "created_at!",
                  plan as "plan!", requests as "requests!", exhausted as "exhausted!", windows as "windows!"
           from key, metered, set_config('synchronous_commit', 'off', true)"#,
        keys::digest(presented),
        now,
        &names,
        &ceilings,
        &starts,
        &lengths,
        &limited.plans,
        &limited.most,
        Month::of(now).start.date_naive(),
        quotas.is_some()
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
        key: Key {
            id: row.id.into(),
            owner: Owner { org: row.org_id.into(), mode: row.mode.0 },
            name: row.name,
            scopes: decode::unwrap(row.scopes),
            last_four: row.last_four,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            created_at: row.created_at,
        },
        plan: row.plan,
        requests: unsigned(row.requests),
        is_over_quota: row.exhausted,
    }))
}

/// Counts a call from an address, and removes some rows of windows that have ended.
///
/// Addresses of IPv6 count by their first 64 bits: that is what one subscriber has.
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
        SWEEP
    )
    .fetch_one(db)
    .await?;
    Ok(bucket.level(start, calls))
}

/// How many addresses are remembered.
pub async fn address_count(db: &PgPool) -> sqlx::Result<u64> {
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from ip_rate_limits"#).fetch_one(db).await?;
    Ok(unsigned(count))
}

/// What an owner used in a month; `None` when there is no such organization.
pub async fn read(db: &PgPool, owner: Owner, month: Month) -> sqlx::Result<Option<Usage>> {
    let row = sqlx::query!(
        r#"select o.plan, coalesce(m.requests, 0) as "requests!",
             (select count(*) from targets where org_id = $1 and mode = $2 and status = 'published'
                and published_at >= $4 and published_at < $5) as "posts!",
             (select count(*) from accounts where org_id = $1 and mode = $2 and status <> 'disconnected') as "accounts!"
           from organizations o left join usage_counters m on m.org_id = o.id and m.month = $3
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
        requests: unsigned(row.requests),
        posts: unsigned(row.posts),
        accounts: unsigned(row.accounts),
    }))
}

fn unsigned(count: i64) -> u64 {
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
    fn a_month_ends_where_the_next_begins() {
        for (now, start, end) in [
            ("2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"),
            ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ] {
            assert_eq!(Month::of(at(now)), Month { start: at(start), end: at(end) }, "{now}");
        }
    }
}
