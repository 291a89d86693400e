//! What the dashboard shows at a glance: what is stuck and why, and what a list of posts is about.
//!
//! These questions are asked again every few seconds by whoever has the page open, so each is
//! answered from an index of the few rows that are in trouble, and none counts further than it shows.

use crate::{
    accounts::{Account, AccountStatus},
    decode::Parsed,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{AccountId, ErrorSource, Owner, PostId, TargetId, TargetStatus, WebhookId};
use serde::Deserialize;
use sqlx::{PgPool, types::Json};
use std::collections::HashMap;
use uuid::Uuid;

/// How many of each kind are told.
const MOST: i64 = 50;
/// How long what has ended badly is told.
const RECENT: TimeDelta = TimeDelta::days(1);
/// How late a target may be before it counts as stuck.
const LATE: TimeDelta = TimeDelta::minutes(1);
/// Characters of a text that a list shows.
const EXCERPT: i32 = 140;

/// A target that has not gone out as it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The target.
    pub target: TargetId,
    /// Its post.
    pub post: PostId,
    /// The beginning of the post's text.
    pub excerpt: String,
    /// The account's platform.
    pub platform: String,
    /// The account's handle.
    pub username: String,
    /// Its state.
    pub status: TargetStatus,
    /// The stable reason of the last failure.
    pub error_code: Option<String>,
    /// The platform's words about it.
    pub error_message: Option<String>,
    /// Who can do something about it.
    pub error_source: Option<ErrorSource>,
    /// Publish attempts begun.
    pub attempts: i32,
    /// When the next one comes.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Since when the platform has been processing.
    pub processing_since: Option<DateTime<Utc>>,
    /// When it should have gone out.
    pub due_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// An endpoint that does not get what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The endpoint.
    pub webhook: WebhookId,
    /// Its address.
    pub url: String,
    /// Whether events are delivered at all.
    pub is_active: bool,
    /// Deliveries of the last day that were given up.
    pub given_up: i64,
    /// Deliveries that wait for another attempt.
    pub waiting: i64,
    /// What went wrong last.
    pub error: String,
    /// When the next attempt comes.
    pub next_attempt_at: Option<DateTime<Utc>>,
}

/// What a post of a list is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostPreview {
    /// The beginning of its text.
    pub excerpt: String,
    /// Its targets, in order.
    pub targets: Vec<Spot>,
}

/// A target of a post of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Spot {
    /// The account's platform.
    pub platform: String,
    /// Its state.
    pub status: TargetStatus,
}

/// An account by the names that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its handle.
    pub username: String,
    /// Its name.
    pub display_name: String,
    /// Whether posts can go to it.
    pub status: AccountStatus,
}

/// Targets that failed and are tried again, that were given up during the last day, or that should be out
/// by now; those that somebody can still do something about first, and the latest of each first.
pub async fn stuck(db: &PgPool, owner: Owner, now: DateTime<Utc>) -> sqlx::Result<Vec<Stuck>> {
    let rows = sqlx::query!(
        r#"with troubled as (
             (select t.* from targets t where t.org_id = $1 and t.mode = $2 and t.status in ('failed', 'dead')
                and t.status = 'failed' order by t.updated_at desc limit $5)
             union all
             (select t.* from targets t where t.org_id = $1 and t.mode = $2 and t.status in ('failed', 'dead')
                and t.status = 'dead' and t.updated_at > $3 order by t.updated_at desc limit $5)
             union all
             (select t.* from targets t join (
                select id, coalesce(scheduled_at, created_at) as due_at from posts
                where org_id = $1 and mode = $2 and deleted_at is null
                  and status in ('scheduled', 'queued', 'publishing') and coalesce(scheduled_at, created_at) < $4
                order by coalesce(scheduled_at, created_at) desc limit $5
              ) p on p.id = t.post_id
              where t.status in ('pending', 'queued') and t.org_id = $1 and t.mode = $2
              order by p.due_at desc limit $5)
           )
           select t.id as "target!", t.post_id as "post!", left(c.content, $6) as "excerpt!",
             t.platform as "platform!", a.username, t.status as "status!: Parsed<TargetStatus>", t.error_code,
             t.error_message, t.error_source as "error_source: Parsed<ErrorSource>", t.attempts as "attempts!",
             t.next_attempt_at, t.processing_since, coalesce(p.scheduled_at, p.created_at) as "due_at!",
             t.updated_at as "updated_at!"
           from troubled t join posts p on p.id = t.post_id and p.deleted_at is null
           join accounts a on a.id = t.account_id
           join containers c on c.post_id = p.id and c.position = 0
           order by t.status = 'dead', t.updated_at desc, t.id limit $5"#,
        owner.org.0,
        owner.mode.as_str(),
        now - RECENT,
        now - LATE,
        MOST,
        EXCERPT
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Stuck {
            target: row.target.into(),
            post: row.post.into(),
            excerpt: row.excerpt,
            platform: row.platform,
            username: row.username,
            status: row.status.0,
            error_code: row.error_code,
            error_message: row.error_message,
            error_source: row.error_source.map(ErrorSource::from),
            attempts: row.attempts,
            next_attempt_at: row.next_attempt_at,
            processing_since: row.processing_since,
            due_at: row.due_at,
            updated_at: row.updated_at,
        })
        .collect())
}

/// Accounts that have to be connected again.
pub async fn refused(db: &PgPool, owner: Owner) -> sqlx::Result<Vec<Account>> {
    sqlx::query_as!(
        Account,
        r#"select id, platform, network_unique_id, username, display_name, account_type, profile_image_url,
             profile_url, tenant_id, profile_id, social_network_id, status as "status: Parsed<AccountStatus>",
             scopes, token_expires_at, last_synced_at, last_error_code, created_at, updated_at
           from accounts where org_id = $1 and mode = $2 and status in ('token_expired', 'reauth_required')
           order by updated_at desc, id limit $3"#,
        owner.org.0,
        owner.mode.as_str(),
        MOST
    )
    .fetch_all(db)
    .await
}

/// Endpoints that refused something during the last day and do not have it yet.
pub async fn failing(db: &PgPool, owner: Owner, now: DateTime<Utc>) -> sqlx::Result<Vec<Failing>> {
    sqlx::query_as!(
        Failing,
        r#"select w.id as webhook, w.url, w.is_active, d.given_up as "given_up!", d.waiting as "waiting!",
             d.error as "error!", d.next_attempt_at
           from webhooks w cross join lateral (
             select count(*) filter (where status = 'failed') as given_up,
               count(*) filter (where status <> 'failed') as waiting,
               (array_agg(error order by created_at desc))[1] as error,
               min(next_attempt_at) as next_attempt_at
             from deliveries where webhook_id = w.id and error is not null and created_at > $3
           ) d
           where w.org_id = $1 and w.mode = $2 and w.deleted_at is null and d.error is not null
           order by w.created_at desc limit $4"#,
        owner.org.0,
        owner.mode.as_str(),
        now - RECENT,
        MOST
    )
    .fetch_all(db)
    .await
}

/// What the posts of a list are about.
pub async fn previews(
    db: &PgPool,
    owner: Owner,
    posts: &[PostId],
) -> sqlx::Result<HashMap<PostId, PostPreview>> {
    let ids: Vec<Uuid> = posts.iter().map(|post| post.0).collect();
    let rows = sqlx::query!(
        r#"select p.id, (select left(content, $4) from containers where post_id = p.id and position = 0) as "excerpt!",
             (select coalesce(json_agg(json_build_object('platform', t.platform, 'status', t.status) order by t.id), '[]')
              from targets t where t.post_id = p.id) as "targets!: Json<Vec<Spot>>"
           from posts p where p.id = any($3) and p.org_id = $1 and p.mode = $2"#,
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        EXCERPT
    )
    .fetch_all(db)
    .await?;
    let glance = |excerpt, targets| PostPreview { excerpt, targets };
    Ok(rows.into_iter().map(|row| (row.id.into(), glance(row.excerpt, row.targets.0))).collect())
}

/// The names of accounts, disconnected ones included.
pub async fn names(
    db: &PgPool,
    owner: Owner,
    accounts: &[AccountId],
) -> sqlx::Result<HashMap<AccountId, Named>> {
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
    let named = |username, display_name, status| Named { username, display_name, status };
    Ok(rows
        .into_iter()
        .map(|row| (row.id.into(), named(row.username, row.display_name, row.status.0)))
        .collect())
}
