//! Queries of the dashboard: stuck targets, accounts to reconnect, failing endpoints, previews of posts.
//!
//! An open dashboard repeats these queries every few seconds, so each is answered from an index of the few
//! rows that need attention, and none counts further than it shows.

use crate::{
    accounts::{Account, AccountStatus, query_account},
    bounds::Whole,
    decode::Parsed,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, PostId, PostStatus, TargetId, TargetStatus, WebhookId};
use serde::Deserialize;
use sqlx::{PgPool, types::Json};
use std::collections::HashMap;
use uuid::Uuid;

/// Maximum number of rows per query.
const LIMIT: i64 = 50;
/// Up to this number, targets that are stuck are counted.
pub const COUNTED: i64 = 5_000;
/// Number of targets of a group that are retried at once.
pub const RETRIED_AT_ONCE: i64 = 200;
/// Number of targets of a group that are returned.
pub const SHOWN_PER_GROUP: i64 = 5;
/// Period for which final failures are shown.
const FAILURES_SHOWN_FOR: TimeDelta = TimeDelta::days(1);
/// Delay after which a target counts as stuck.
const LATE_AFTER: TimeDelta = TimeDelta::minutes(1);
/// Length of an excerpt in characters.
const EXCERPT_CHARS: i32 = 140;

/// Targets that are stuck for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckGroup {
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// Their status.
    pub status: TargetStatus,
    /// Code of their last failure.
    pub error_code: Option<String>,
    /// Their number.
    pub total: i64,
    /// True if there may be more of them: more than [`COUNTED`] targets have their status.
    pub is_partial: bool,
    /// The latest of them, up to [`SHOWN_PER_GROUP`].
    pub latest: Vec<Stuck>,
}

/// A target that failed or is late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Target id.
    pub target: TargetId,
    /// Post of the target.
    pub post: PostId,
    /// Beginning of the post's text.
    pub excerpt: String,
    /// Handle of the account.
    pub username: String,
    /// The platform's message about the last failure.
    pub error_message: Option<String>,
    /// Publish attempts begun.
    pub attempts: i32,
    /// When the next attempt is due; `None` when none is scheduled.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// When the platform began to process the post.
    pub processing_since: Option<DateTime<Utc>>,
    /// When the target was due to be published.
    pub due_at: DateTime<Utc>,
}

/// An endpoint with failed deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingEndpoint {
    /// Endpoint id.
    pub webhook: WebhookId,
    /// URL of the endpoint.
    pub url: String,
    /// True if events are delivered; false for a paused endpoint.
    pub is_active: bool,
    /// Number of deliveries of the last day that failed for good.
    pub given_up: i64,
    /// Number of failed deliveries of the last day that are retried.
    pub waiting: i64,
    /// Latest error.
    pub error: String,
    /// When the next attempt is due.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Since when an endpoint has failed that failed often in a row; `None` for another.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Preview of a post in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostPreview {
    /// Beginning of the post's text.
    pub excerpt: String,
    /// Targets, in order.
    pub targets: Vec<TargetPreview>,
}

/// A target in the preview of its post.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TargetPreview {
    /// Platform id, for example `google_business`.
    pub platform: String,
    /// Target status.
    pub status: TargetStatus,
}

/// Names and status of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountName {
    /// Handle on the platform.
    pub username: String,
    /// Display name.
    pub display_name: String,
    /// Connection status.
    pub status: AccountStatus,
}

/// Returns targets that failed and are retried, that failed for good during the last day, or that are late,
/// grouped by platform, status and code. Groups that can still be published come first, and then the latest.
pub async fn stuck(db: &PgPool, owner: Whole, now: DateTime<Utc>) -> sqlx::Result<Vec<StuckGroup>> {
    let rows = sqlx::query!(
        r#"with troubled as (
             (select t.id, t.post_id, t.account_id, t.platform, t.status, t.error_code, t.updated_at, 1 as kind from targets t
              where t.org_id = $1 and t.mode = $2 and t.status in ('failed', 'dead')
                and t.status = 'failed' order by t.updated_at desc limit $5)
             union all
             (select t.id, t.post_id, t.account_id, t.platform, t.status, t.error_code, t.updated_at, 2 from targets t
              where t.org_id = $1 and t.mode = $2 and t.status in ('failed', 'dead')
                and t.status = 'dead' and t.updated_at > $3 order by t.updated_at desc limit $5)
             union all
             (select t.id, t.post_id, t.account_id, t.platform, t.status, t.error_code, t.updated_at, 3 from targets t
              join (
                select id, coalesce(scheduled_at, created_at) as due_at from posts
                where org_id = $1 and mode = $2 and deleted_at is null
                  and status in ('scheduled', 'queued', 'publishing') and coalesce(scheduled_at, created_at) < $4
                order by coalesce(scheduled_at, created_at) desc limit $5
              ) p on p.id = t.post_id
              where t.status in ('pending', 'queued') and t.org_id = $1 and t.mode = $2
                and (t.scheduled_at is null or t.scheduled_at < $4)
              order by p.due_at desc limit $5)
           ), ranked as (
             select t.*, count(*) over (partition by kind) >= $5 as is_partial, count(*) over cause as total, max(t.updated_at) over cause as latest_at,
               row_number() over (cause order by t.updated_at desc, t.id) as place
             from troubled t join posts p on p.id = t.post_id and p.deleted_at is null
             window cause as (partition by t.platform, t.status, t.error_code)
           )
           select r.id as "target!", r.post_id as "post!", (
               -- One after the other: a plan for all would read every text.
               select left(c.content, $6) from target_containers c
               where c.target_id = r.id and c.position = 0) as "excerpt!", r.total as "total!",
             r.is_partial as "is_partial!", r.platform as "platform!", a.username, r.status as "status!: Parsed<TargetStatus>", r.error_code,
             t.error_message, t.attempts as "attempts!",
             case when t.freeze_id is null then t.next_attempt_at end as next_attempt_at, t.processing_since,
             coalesce(t.scheduled_at, p.scheduled_at, p.created_at) as "due_at!"
           from ranked r join targets t on t.id = r.id join posts p on p.id = r.post_id
           join accounts a on a.id = r.account_id
           where r.place <= $7
           order by r.status = 'dead', r.latest_at desc, r.platform, r.status, r.error_code, r.place"#,
        owner.org.0,
        owner.mode.as_str(),
        now - FAILURES_SHOWN_FOR,
        now - LATE_AFTER,
        COUNTED,
        EXCERPT_CHARS,
        SHOWN_PER_GROUP
    )
    .fetch_all(db)
    .await?;
    let mut groups: Vec<StuckGroup> = Vec::new();
    for row in rows {
        let status = row.status.0;
        let stuck = Stuck {
            target: row.target.into(),
            post: row.post.into(),
            excerpt: row.excerpt,
            username: row.username,
            error_message: row.error_message,
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at,
            processing_since: row.processing_since,
            due_at: row.due_at,
        };
        match groups.last_mut() {
            Some(last)
                if (&last.platform, last.status, &last.error_code)
                    == (&row.platform, status, &row.error_code) =>
            {
                last.latest.push(stuck);
            }
            _ => groups.push(StuckGroup {
                platform: row.platform,
                status,
                error_code: row.error_code,
                total: row.total,
                is_partial: row.is_partial,
                latest: vec![stuck],
            }),
        }
    }
    Ok(groups)
}

/// Returns the latest targets that are stuck for the same reason and can be retried, up to [`RETRIED_AT_ONCE`], each
/// with its post.
pub async fn of_cause(
    db: &PgPool,
    owner: Whole,
    platform: &str,
    status: TargetStatus,
    error_code: Option<&str>,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<(PostId, TargetId)>> {
    let rows = sqlx::query!(
        "select t.post_id, t.id from targets t join posts p on p.id = t.post_id and p.deleted_at is null
         where t.org_id = $1 and t.mode = $2 and t.status in ('failed', 'dead') and t.status = $3 and t.platform = $4
           and t.error_code is not distinct from $5 and (t.status = 'failed' or t.updated_at > $6)
         order by t.updated_at desc limit $7",
        owner.org.0,
        owner.mode.as_str(),
        status.as_str(),
        platform,
        error_code,
        now - FAILURES_SHOWN_FOR,
        RETRIED_AT_ONCE
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.post_id.into(), row.id.into())).collect())
}

/// Steps of an organization on the way to its first published post, in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// It has an API key.
    pub key: bool,
    /// It has connected an account.
    pub account: bool,
    /// It has registered a webhook endpoint.
    pub webhook: bool,
    /// It has created a post.
    pub post: bool,
    /// A post was published.
    pub published: bool,
}

impl Steps {
    /// True if nothing is left to do.
    pub fn are_done(self) -> bool {
        self.key && self.account && self.webhook && self.post && self.published
    }
}

/// Returns which steps an organization has done.
pub async fn steps(db: &PgPool, owner: Whole) -> sqlx::Result<Steps> {
    sqlx::query_as!(
        Steps,
        r#"select
             exists (select from api_keys where org_id = $1 and mode = $2 and revoked_at is null
               and client is null) as "key!",
             exists (select from accounts where org_id = $1 and mode = $2 and status <> 'disconnected') as "account!",
             exists (select from webhooks where org_id = $1 and mode = $2 and deleted_at is null) as "webhook!",
             exists (select from posts where org_id = $1 and mode = $2 and deleted_at is null) as "post!",
             exists (select from targets where org_id = $1 and mode = $2 and published_at is not null) as "published!"
        "#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(db)
    .await
}

/// A post that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// Post id.
    pub post: PostId,
    /// When it is to be published.
    pub scheduled_at: DateTime<Utc>,
}

/// Returns the posts that are published next.
pub async fn upcoming(
    db: &PgPool,
    owner: Whole,
    limit: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Upcoming>> {
    sqlx::query_as!(
        Upcoming,
        r#"select id as post, scheduled_at as "scheduled_at!" from posts
           where org_id = $1 and mode = $2 and deleted_at is null and scheduled_at is not null and scheduled_at > $3
             and status = 'scheduled'
           order by scheduled_at, id limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        now,
        limit
    )
    .fetch_all(db)
    .await
}

/// A post of the calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Place of its day among those asked for.
    pub day: usize,
    /// Post id.
    pub post: PostId,
    /// Its status.
    pub status: PostStatus,
    /// When it is or was to be published.
    pub scheduled_at: DateTime<Utc>,
    /// Number of posts of the day; only up to the limit and one more are counted.
    pub of: i64,
}

/// Returns the posts that are scheduled for days, the first `limit` of each. Days are given by their beginnings, and
/// the end of the last.
pub async fn scheduled(
    db: &PgPool,
    owner: Whole,
    days: &[DateTime<Utc>],
    account: Option<AccountId>,
    limit: i64,
) -> sqlx::Result<Vec<Scheduled>> {
    let (starts, ends) = (&days[..days.len().saturating_sub(1)], days.get(1..).unwrap_or_default());
    let rows = sqlx::query!(
        r#"select d.day as "day!", p.id, p.status as "status: Parsed<PostStatus>", p.scheduled_at as "scheduled_at!",
             count(*) over (partition by d.day) as "of!"
           from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as d (starts, ends, day)
           cross join lateral (
             select id, status, scheduled_at from posts
             where org_id = $1 and mode = $2 and deleted_at is null and scheduled_at is not null
               and scheduled_at >= d.starts and scheduled_at < d.ends
               and ($5::uuid is null or exists (
                 select from targets t where t.post_id = posts.id and t.account_id = $5))
             order by scheduled_at, id limit $6::bigint + 1) p
           order by d.day, p.scheduled_at, p.id"#,
        owner.org.0,
        owner.mode.as_str(),
        starts,
        ends,
        account.map(|account| account.0),
        limit
    )
    .fetch_all(db)
    .await?;
    let scheduled = rows.into_iter().map(|row| Scheduled {
        day: usize::try_from(row.day - 1).unwrap_or(0),
        post: row.id.into(),
        status: row.status.0,
        scheduled_at: row.scheduled_at,
        of: row.of,
    });
    Ok(scheduled.collect())
}

/// A target that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Post of the target.
    pub post: PostId,
    /// Beginning of the text.
    pub excerpt: String,
    /// Platform id.
    pub platform: String,
    /// Handle of the account.
    pub username: String,
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// Address on the platform; `None` if it is not known or the post was removed.
    pub url: Option<String>,
}

/// Returns the targets that were published last, latest first.
pub async fn published(db: &PgPool, owner: Whole, limit: i64) -> sqlx::Result<Vec<Published>> {
    sqlx::query_as!(
        Published,
        r#"select t.post_id as post, left(c.content, $4) as "excerpt!", t.platform, a.username,
             t.published_at as "published_at!",
             case when t.unpublished_at is null then t.platform_post_url end as url
           from (
             select * from targets where org_id = $1 and mode = $2 and published_at is not null
             order by published_at desc limit $3) t
           join accounts a on a.id = t.account_id
           join containers c on c.post_id = t.post_id and c.variant = 0 and c.position = 0
           order by t.published_at desc"#,
        owner.org.0,
        owner.mode.as_str(),
        limit,
        EXCERPT_CHARS
    )
    .fetch_all(db)
    .await
}

/// Numbers of accounts and webhook endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Accounts that can publish.
    pub accounts_active: i64,
    /// Accounts that must be reconnected.
    pub accounts_refused: i64,
    /// Endpoints that receive events.
    pub webhooks_active: i64,
    /// Endpoints that have failed for long.
    pub webhooks_failing: i64,
    /// Endpoints that are paused.
    pub webhooks_paused: i64,
}

/// Returns how many accounts and endpoints work.
pub async fn health(db: &PgPool, owner: Whole) -> sqlx::Result<Health> {
    sqlx::query_as!(
        Health,
        r#"select a.active as "accounts_active!", a.refused as "accounts_refused!", w.active as "webhooks_active!",
             w.failing as "webhooks_failing!", w.paused as "webhooks_paused!"
           from (
             select count(*) filter (where status = 'active') as active,
               count(*) filter (where status in ('token_expired', 'reauth_required')) as refused
             from accounts where org_id = $1 and mode = $2 and status <> 'disconnected') a,
           (select count(*) filter (where is_active and failures < 10) as active,
               count(*) filter (where is_active and failures >= 10) as failing,
               count(*) filter (where not is_active) as paused
             from webhooks where org_id = $1 and mode = $2 and deleted_at is null) w"#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_one(db)
    .await
}

/// Returns accounts whose grant was lost, the latest first.
pub async fn to_reconnect(db: &PgPool, owner: Whole) -> sqlx::Result<Vec<Account>> {
    query_account!(
        "select",
        "from accounts where org_id = $1 and mode = $2 and status in ('token_expired', 'reauth_required')
         order by updated_at desc, id limit $3",
        owner.org.0,
        owner.mode.as_str(),
        LIMIT
    )
    .fetch_all(db)
    .await
}

/// Returns endpoints that failed often in a row, or have deliveries of the last day that failed and were not delivered since.
pub async fn failing(db: &PgPool, owner: Whole, now: DateTime<Utc>) -> sqlx::Result<Vec<FailingEndpoint>> {
    sqlx::query_as!(
        FailingEndpoint,
        r#"select w.id as webhook, w.url, w.is_active, d.given_up as "given_up!", d.waiting as "waiting!",
             coalesce(d.error, 'the endpoint does not answer') as "error!", d.next_attempt_at,
             case when w.failures >= 10 then w.failing_since end as failing_since
           from webhooks w cross join lateral (
             select count(*) filter (where status = 'failed') as given_up,
               count(*) filter (where status <> 'failed') as waiting,
               (array_agg(error order by created_at desc))[1] as error,
               min(next_attempt_at) filter (where status = 'pending') as next_attempt_at
             from deliveries
             where webhook_id = w.id and error is not null and created_at > $3 and id >= uuid_at($3 - interval '1 day')
           ) d
           where w.org_id = $1 and w.mode = $2 and w.deleted_at is null and (d.error is not null or w.failures >= 10)
           order by w.created_at desc limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        now - FAILURES_SHOWN_FOR,
        LIMIT
    )
    .fetch_all(db)
    .await
}

/// Returns previews of posts.
pub async fn previews(
    db: &PgPool,
    owner: Whole,
    posts: &[PostId],
) -> sqlx::Result<HashMap<PostId, PostPreview>> {
    let ids: Vec<Uuid> = posts.iter().map(|post| post.0).collect();
    let rows = sqlx::query!(
        r#"select p.id, (select left(content, $4) from containers where post_id = p.id and variant = 0 and position = 0) as "excerpt!",
             (select coalesce(json_agg(json_build_object('platform', t.platform, 'status', t.status) order by t.id), '[]')
              from targets t where t.post_id = p.id) as "targets!: Json<Vec<TargetPreview>>"
           from posts p where p.id = any($3) and p.org_id = $1 and p.mode = $2"#,
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        EXCERPT_CHARS
    )
    .fetch_all(db)
    .await?;
    let preview = |excerpt, targets| PostPreview { excerpt, targets };
    Ok(rows.into_iter().map(|row| (row.id.into(), preview(row.excerpt, row.targets.0))).collect())
}

/// Returns the names of accounts, disconnected ones included.
pub async fn names(
    db: &PgPool,
    owner: Whole,
    accounts: &[AccountId],
) -> sqlx::Result<HashMap<AccountId, AccountName>> {
    let ids: Vec<Uuid> = accounts.iter().map(|account| account.0).collect();
    let rows = sqlx::query!(
        r#"select id, username, display_name, status as "status: Parsed<AccountStatus>" from accounts
           where id = any($3) and org_id = $1 and mode = $2"#,
        owner.org.0,
        owner.mode.as_str(),
        &ids
    )
    .fetch_all(db)
    .await?;
    let name = |username, display_name, status| AccountName { username, display_name, status };
    Ok(rows
        .into_iter()
        .map(|row| (row.id.into(), name(row.username, row.display_name, row.status.0)))
        .collect())
}

/// Returns the account that was connected first and can publish.
pub async fn first_account(db: &PgPool, owner: Whole) -> sqlx::Result<Option<AccountId>> {
    let id = sqlx::query_scalar!(
        "select id from accounts where org_id = $1 and mode = $2 and status = 'active' order by created_at, id limit 1",
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(id.map(AccountId))
}
