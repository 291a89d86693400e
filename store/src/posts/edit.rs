//! Editing a post before its first attempt.
//!
//! The edit and the first attempt compete for the post's row: the first to lock it wins. An edit raises the
//! row's version, so that an attempt started for an older one is stale; the outbox message brings the new
//! job to the workflow, if there may be one: a post beyond the scheduling [`horizon`] has none. Targets whose workflows may
//! sleep until the next attempt are woken, and end as stale. Temporal doesn't need to be up for an edit.

use super::{
    Container, Deviations, Locked, Metadata, Post, PostStatus, horizon, insert_containers, lock, media_ids,
    to_job,
};
use crate::{
    bounds::{Access, Resource},
    decode::Parsed,
    media::{self, NewMedia},
    outbox,
    posts::{
        slots::{self, Queue},
        timeline::{self, Entry},
    },
    publishing::{Replies, wake_replies},
    usage::ceilings::Exceeded,
};
use chrono::{DateTime, SubsecRound, Utc};
use domain::{
    AccountId, MediaId, Owner, PostId, TargetId, TargetStatus, event,
    outbox::{Message, PostJob},
};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use std::{slice, time::Duration};
use uuid::Uuid;

/// The new state of a post.
#[derive(Clone, Debug)]
pub struct Edit {
    /// Version of the row that the edit is based on.
    pub version: i32,
    /// True if the post is a draft, which is not published until it is released.
    pub is_draft: bool,
    /// When to publish; `None` for immediately.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// Settings by platform, a JSON object.
    pub default_config: Value,
    /// The caller's own data.
    pub metadata: Metadata,
    /// Containers, in order; `None` keeps them.
    pub containers: Option<Vec<Container>>,
    /// Accounts to publish to, with their platforms, no account twice; `None` keeps them.
    pub accounts: Option<Vec<(AccountId, String)>>,
    /// Deviations of targets from the post, which replace the stored ones.
    pub deviations: Deviations,
    /// Assets of the containers to create with the edit: files that are fetched.
    pub imports: Vec<(MediaId, NewMedia)>,
    /// Id of the request that edits the post, for its timeline.
    pub request_id: Option<String>,
    /// Time before the post is due at which its workflow is started.
    pub horizon: Duration,
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum EditResult {
    /// The post, as stored.
    Updated(Box<Post>),
    /// The post has another version than the edit is based on.
    Outdated,
    /// Publishing has begun, or the post has finished; it has this status.
    Begun(PostStatus),
    /// None of the post's targets would be open.
    NothingOpen {
        /// True if a target has ended, false if only no account is connected.
        has_ended: bool,
    },
    /// The queue has no open slot.
    NoOpenSlot,
    /// A media asset is missing or was deleted by a concurrent transaction.
    MediaMissing,
    /// The storage has no room for the files to fetch.
    Exceeded(Exceeded),
    /// There is no such post.
    NotFound,
}

/// Edits a post, and notifies its workflow. The post releases its slot when it gets another time or no
/// longer has the slot's account.
// Model: Edit.
pub async fn edit(
    db: &PgPool,
    access: Access<'_>,
    id: PostId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<EditResult> {
    apply(db, access, id, &edit, None, now).await
}

/// Edits a post and moves it to the next open slot of a queue, which replaces `scheduled_at`. The slot that
/// the post holds is open to it.
pub async fn requeue(
    db: &PgPool,
    access: Access<'_>,
    id: PostId,
    edit: Edit,
    queue: &Queue,
    now: DateTime<Utc>,
) -> sqlx::Result<EditResult> {
    // A slot is lost only to another post that was committed, so the loop ends when the slots run out.
    loop {
        match apply(db, access, id, &edit, Some(queue), now).await {
            Err(error) if slots::is_taken(&error) => {}
            changed => return changed,
        }
    }
}

async fn apply(
    db: &PgPool,
    access: Access<'_>,
    id: PostId,
    edit: &Edit,
    queue: Option<&Queue>,
    now: DateTime<Utc>,
) -> sqlx::Result<EditResult> {
    let Some(owner) = access.reach(db, Resource::Post, id.0).await? else {
        return Ok(EditResult::NotFound);
    };
    let now = now.trunc_subsecs(6);
    let mut tx = crate::begin(db).await?;
    let Locked { status: before, may_have_workflow, .. } = match lock(&mut tx, owner, id).await? {
        None => return Ok(EditResult::NotFound),
        Some(post) if !post.status.is_editable() => return Ok(EditResult::Begun(post.status)),
        Some(post) if post.version != edit.version => return Ok(EditResult::Outdated),
        Some(post) => post,
    };
    let scheduled_at = match queue {
        None => edit.scheduled_at,
        Some(queue) => match slots::reserve(&mut tx, owner, queue, Some(id), now).await? {
            None => return Ok(EditResult::NoOpenSlot),
            slot => slot,
        },
    };
    let after = PostStatus::of_plan(edit.is_draft, scheduled_at.is_some());
    let woken = if may_have_workflow { due_targets(&mut tx, id).await? } else { Vec::new() };
    let accounts = edit.accounts.as_ref();
    let accounts = accounts.map(|accounts| accounts.iter().map(|(account, _)| account.0).collect::<Vec<_>>());
    sqlx::query!(
        "update posts set status = $2, is_draft = $3, scheduled_at = $4, default_config = $5,
           version = version + 1, updated_at = $6, metadata = $9,
           -- A draft keeps what its workflow waits for, if it has one.
           starts_at = case when $3 and not $10 then 'infinity'::timestamptz end,
           slot_account_id = case
             when $7::uuid is not null then $7
             when scheduled_at = $4 and ($8::uuid[] is null or slot_account_id = any($8)) then slot_account_id
           end
         where id = $1",
        id.0,
        after.as_str(),
        edit.is_draft,
        scheduled_at,
        edit.default_config,
        now,
        queue.map(|queue| queue.account.0),
        accounts.as_deref(),
        json!(edit.metadata),
        may_have_workflow
    )
    .execute(&mut *tx)
    .await?;
    let is_far_off = after != PostStatus::Draft && horizon::wait(&mut tx, id, edit.horizon).await?;
    for (id, import) in &edit.imports {
        media::insert(&mut tx, owner, *id, import, now).await?;
    }
    let variants = &edit.deviations.variants;
    let ids = media_ids(edit.containers.iter().flatten().chain(variants.iter().flatten()));
    if !media::lock_for_post(&mut tx, owner, &ids).await? {
        return Ok(EditResult::MediaMissing);
    }
    if let Some(containers) = &edit.containers {
        sqlx::query!("delete from containers where post_id = $1 and variant = 0", id.0)
            .execute(&mut *tx)
            .await?;
        insert_containers(&mut tx, owner, id, 0, slice::from_ref(containers)).await?;
    }
    if let Some(accounts) = &edit.accounts {
        replace_targets(&mut tx, owner, id, accounts, now).await?;
    }
    sqlx::query!("delete from containers where post_id = $1 and variant > 0", id.0).execute(&mut *tx).await?;
    insert_containers(&mut tx, owner, id, 1, variants).await?;
    deviate(&mut tx, id, &edit.deviations).await?;
    thaw(&mut tx, id).await?;
    let statuses = reopen_targets(&mut tx, id, now).await?;
    if after != PostStatus::Draft && statuses.iter().all(|status| status.is_terminal()) {
        let has_ended = statuses.iter().any(|status| *status != TargetStatus::Canceled);
        return Ok(EditResult::NothingOpen { has_ended });
    }
    if after == PostStatus::Draft || is_far_off {
        // A workflow started for these targets finds, when they are due, that it is stale, or is asked to end.
        sqlx::query!(
            "update targets
             set status = 'pending', next_attempt_at = scheduled_at, error_code = null, error_message = null,
                 error_source = null
             where post_id = $1 and status = 'queued'",
            id.0
        )
        .execute(&mut *tx)
        .await?;
    }
    let message = match (after, scheduled_at) {
        (PostStatus::Draft, _) => "Edited as a draft".to_owned(),
        (_, Some(at)) => format!("Edited; scheduled for {}", event::timestamp(at)),
        (_, None) => "Edited; to be published at once".to_owned(),
    };
    let detail = json!({
        "from": before,
        "to": after,
        "scheduled_at": scheduled_at.map(event::timestamp),
        "content": edit.containers.is_some(),
        "accounts": edit.accounts.is_some(),
    });
    let detail = timeline::caused_by(edit.request_id.as_deref(), detail);
    let entry = Entry { at: now, kind: "edited".into(), message, target_id: None, detail };
    timeline::append(&mut *tx, owner, id, entry).await?;
    let post = super::read(&mut tx, owner, id).await?;
    // The workflow of a target of the earlier version ends; the post's workflow waits for that before it goes on.
    let woken: Vec<_> =
        woken.into_iter().map(|target| Message::RetryTarget { target, post: id, owner }).collect();
    outbox::push_all(&mut tx, &woken).await?;
    match (after, &edit.accounts) {
        (PostStatus::Draft, _) => wake_replies(&mut tx, owner, id, Replies::All).await?,
        (_, Some(_)) => wake_replies(&mut tx, owner, id, Replies::Orphaned).await?,
        (_, None) => {}
    }
    let may_start = after != PostStatus::Draft && !is_far_off;
    if may_start || is_far_off && may_have_workflow {
        let job = PostJob { is_far_off, ..to_job(owner, &post) };
        outbox::push(&mut tx, &Message::PostChanged(job)).await?;
    }
    if let Err(exceeded) = media::check_room(&mut tx, owner, &edit.imports, now).await? {
        return Ok(EditResult::Exceeded(exceeded));
    }
    tx.commit().await?;
    Ok(EditResult::Updated(Box::new(post)))
}

/// Returns the targets whose time has come: their workflows may sleep until the next attempt for hours, because the
/// account rests or is frozen, or the target waits for the post that it replies to.
async fn due_targets(tx: &mut PgConnection, id: PostId) -> sqlx::Result<Vec<TargetId>> {
    let due = sqlx::query_scalar!(
        "select t.id from targets t join posts p on p.id = t.post_id
         where p.id = $1 and t.status in ('pending', 'queued')
           -- Temporal's clock may be ahead.
           and coalesce(t.scheduled_at, p.scheduled_at, p.created_at) < clock_timestamp() + interval '1 minute'
         order by t.id",
        id.0
    )
    .fetch_all(tx)
    .await?;
    Ok(due.into_iter().map(TargetId).collect())
}

/// Lets targets that were frozen wait for their time again. The next attempt finds out whether they are still frozen. One
/// that ended while it was frozen keeps the reason of its end.
async fn thaw(tx: &mut PgConnection, id: PostId) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets
         set freeze_id = null, next_attempt_at = scheduled_at, error_code = null, error_message = null,
             error_source = null
         where post_id = $1 and freeze_id is not null and status not in ('dead', 'canceled')",
        id.0
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Sets the variants and times of a post's targets.
async fn deviate(tx: &mut PgConnection, id: PostId, deviations: &Deviations) -> sqlx::Result<()> {
    let targets = &deviations.targets;
    sqlx::query!(
        "update targets t
         set variant = coalesce(d.variant, 0), scheduled_at = d.at,
             -- An attempt before the target's own time is refused by this.
             next_attempt_at = case when t.scheduled_at is distinct from d.at then d.at else t.next_attempt_at end,
             -- What it waited for was its former version's.
             throttled_since = null, wait_reason = null, wait_since = null, wait_until = null, look_at = null
         from targets o
         left join unnest($2::uuid[], $3::smallint[], $4::timestamptz[]) as d (account_id, variant, at)
           on d.account_id = o.account_id
         where t.post_id = $1 and o.id = t.id",
        id.0,
        &targets.keys().map(|account| account.0).collect::<Vec<_>>(),
        &targets.values().map(|target| target.variant.cast_signed()).collect::<Vec<_>>(),
        &targets.values().map(|target| target.scheduled_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>]
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// Reopens the targets that were canceled with their account, if the account is connected again. Returns the
/// statuses of all targets.
async fn reopen_targets(
    tx: &mut PgConnection,
    id: PostId,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<TargetStatus>> {
    sqlx::query!(
        "update targets t
         set status = 'pending', error_code = null, error_message = null, error_source = null, freeze_id = null,
             updated_at = $2
         from accounts a
         where t.post_id = $1 and t.status = 'canceled' and a.id = t.account_id and a.status <> 'disconnected'",
        id.0,
        now
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query!(r#"select status as "status: Parsed<TargetStatus>" from targets where post_id = $1"#, id.0)
        .map(|row| row.status.0)
        .fetch_all(tx)
        .await
}

/// Replaces the targets. Those of accounts that stay keep their ids.
async fn replace_targets(
    tx: &mut PgConnection,
    owner: Owner,
    id: PostId,
    accounts: &[(AccountId, String)],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let ids: Vec<_> = accounts.iter().map(|(account, _)| account.0).collect();
    sqlx::query!("delete from targets where post_id = $1 and account_id <> all($2)", id.0, &ids)
        .execute(&mut *tx)
        .await?;
    sqlx::query!(
        // With the post's time of creation, by which its targets are listed.
        "insert into targets (id, post_id, org_id, mode, account_id, platform, created_at, updated_at)
         select t.id, p.id, $2, $3, t.account_id, t.platform, p.created_at, $7
         from posts p, unnest($4::uuid[], $5::uuid[], $6::text[]) as t (id, account_id, platform)
         where p.id = $1
         on conflict (post_id, account_id) do nothing",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        &accounts.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        &ids,
        &accounts.iter().map(|(_, platform)| platform.clone()).collect::<Vec<_>>(),
        now
    )
    .execute(tx)
    .await?;
    Ok(())
}
