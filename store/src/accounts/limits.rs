//! Publications of an account in a window of time, to hold against its platform's limits.

use crate::bounds::{Access, Resource};
use chrono::{DateTime, Utc};
use domain::AccountId;
use sqlx::PgPool;
use std::collections::HashMap;

/// The publications that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Countable<'a> {
    /// Main posts.
    pub posts: bool,
    /// Comments and thread entries.
    pub replies: bool,
    /// Those of all accounts of the platform that were connected through the same app.
    pub of_app: bool,
    /// Only those of posts for which a setting of the platform has this value.
    pub with: Option<(&'a str, &'a str)>,
}

/// Number of publications in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Number, at most the given limit.
    pub used: u64,
    /// The oldest that is counted.
    pub oldest: DateTime<Utc>,
}

/// Returns how many publications of an account count after `since`, at most `limit`, the latest ones; `None` when
/// there is none. What was unpublished counts: the platform has counted it.
pub async fn published(
    db: &PgPool,
    access: Access<'_>,
    account: AccountId,
    counts: Countable<'_>,
    since: DateTime<Utc>,
    limit: u32,
) -> sqlx::Result<Option<Count>> {
    let Some(owner) = access.reach(db, Resource::Account, account.0).await? else { return Ok(None) };
    let row = sqlx::query!(
        r#"select count(*) as "used!", min(at) as oldest from (
             select u.published_at as at
             from accounts own
               -- The platform counts what any tenant has published by the account.
               join accounts a on a.org_id = own.org_id and a.mode = own.mode and a.platform = own.platform
                 and (a.network_unique_id = own.network_unique_id
                   or $5::boolean and a.social_network_id is not distinct from own.social_network_id)
               join targets t on t.account_id = a.id join publications u on u.target_id = t.id
               join posts p on p.id = t.post_id
             where own.id = $1 and own.org_id = $2 and own.mode = $3 and t.org_id = $2 and t.mode = $3
               and t.status = 'published' and u.published_at > $4
               -- A thread is completed within days; the index is on the targets' time.
               and t.published_at > $4 - interval '7 days'
               and case when u.position = 0 and p.reply_to is null then $6::boolean else $7::boolean end
               and ($9::text is null or $10::text = coalesce(
                 p.default_config -> t.platform -> 'accounts' -> t.account_id::text ->> $9,
                 p.default_config -> t.platform ->> $9))
             order by u.published_at desc limit $8
           ) latest"#,
        account.0,
        owner.org.0,
        owner.mode.as_str(),
        since,
        counts.of_app,
        counts.posts,
        counts.replies,
        i64::from(limit),
        counts.with.map(|(setting, _)| setting),
        counts.with.map(|(_, value)| value)
    )
    .fetch_one(db)
    .await?;
    Ok(row.oldest.map(|oldest| Count { used: row.used.unsigned_abs(), oldest }))
}

/// Returns how many main posts each account has published after `since`, or is to publish until `until`; only those for
/// which a setting has a value, if one is given.
pub async fn planned(
    db: &PgPool,
    access: Access<'_>,
    accounts: &[AccountId],
    with: Option<(&str, &str)>,
    since: DateTime<Utc>,
    until: DateTime<Utc>,
) -> sqlx::Result<HashMap<AccountId, u64>> {
    let ids = accounts.iter().map(|account| account.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    let rows = sqlx::query!(
        r#"select account_id as "account_id!", count(*) as "count!" from (
             select t.account_id, t.platform, p.default_config from targets t join posts p on p.id = t.post_id
             where t.org_id = $2 and t.mode = $3 and t.account_id = any($1) and t.published_at > $4
               and t.published_at <= $5 and p.reply_to is null
             union all
             select t.account_id, t.platform, p.default_config from targets t join posts p on p.id = t.post_id
             where t.org_id = $2 and t.mode = $3 and t.account_id = any($1)
               and t.status in ('pending', 'queued', 'failed') and p.status <> 'draft'
               and p.reply_to is null
               and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) > $4
               and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) <= $5
           ) posts
           where $6::text is null or $7::text = coalesce(
             default_config -> platform -> 'accounts' -> account_id::text ->> $6, default_config -> platform ->> $6)
           group by account_id"#,
        &ids,
        owner.org.0,
        owner.mode.as_str(),
        since,
        until,
        with.map(|(setting, _)| setting),
        with.map(|(_, value)| value)
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.account_id.into(), row.count.unsigned_abs())).collect())
}

/// Returns until when accounts rest because their platform throttled them; those that don't are not in the map.
pub async fn rests(
    db: &PgPool,
    access: Access<'_>,
    accounts: &[AccountId],
    now: DateTime<Utc>,
) -> sqlx::Result<HashMap<AccountId, DateTime<Utc>>> {
    let ids = accounts.iter().map(|account| account.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    let rows = sqlx::query!(
        r#"select id, rests_until as "rests_until!" from accounts
           where id = any($1) and org_id = $2 and mode = $3 and rests_until > $4"#,
        &ids,
        owner.org.0,
        owner.mode.as_str(),
        now
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id.into(), row.rests_until)).collect())
}
