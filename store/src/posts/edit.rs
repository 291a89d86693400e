//! Changing a post that nothing has begun for.
//!
//! The row decides: whoever takes it first, the edit or the first attempt, wins. An edit raises the
//! row's version, so that an attempt which was started for an older one finds that it is stale; the
//! message takes the new job to the workflow. Temporal need not be up for it.

use super::{Container, Post, PostStatus, attached, job, lock};
use crate::{
    media, outbox,
    slots::{self, Queue},
    timeline::{self, Entry},
};
use chrono::{DateTime, SubsecRound, Utc};
use domain::{AccountId, Owner, PostId, event, outbox::Message};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// What a post is to be from now on.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The version of the row that it was drawn up from.
    pub version: i32,
    /// Whether it waits to be released.
    pub is_draft: bool,
    /// When it is to be published; `None` at once.
    pub scheduled_at: Option<DateTime<Utc>>,
    /// Settings by platform; an object.
    pub default_config: Value,
    /// What is published, in order; `None` as it was.
    pub containers: Option<Vec<Container>>,
    /// Where: accounts and their platforms, no account twice; `None` as it was.
    pub accounts: Option<Vec<(AccountId, String)>>,
}

/// What editing came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Edited {
    /// The post as it is now.
    Post(Box<Post>),
    /// Another edit came first: look at the post again.
    Outdated,
    /// Publishing has begun, or the post has ended.
    Begun,
    /// None of its accounts is connected any more.
    NoConnectedAccount,
    /// The queue it was to wait in has no open slot.
    NoOpenSlot,
    /// One of its media was deleted meanwhile.
    MediaMissing,
    /// There is no such post.
    NotFound,
}

/// Changes a post, and tells its workflow. One that held a slot gives it back when it gets another time or
/// leaves the slot's account.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: PostId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<Edited> {
    change(db, owner, id, &edit, None, now).await
}

/// Changes a post and moves it to the next open slot of a queue, whatever time `edit` names. A slot that
/// it holds already is open to it.
pub async fn requeue(
    db: &PgPool,
    owner: Owner,
    id: PostId,
    edit: Edit,
    queue: &Queue,
    now: DateTime<Utc>,
) -> sqlx::Result<Edited> {
    // Whoever loses a slot has lost it to a post that is there now, so this ends with the slots.
    loop {
        match change(db, owner, id, &edit, Some(queue), now).await {
            Err(error) if slots::is_taken(&error) => {}
            changed => return changed,
        }
    }
}

async fn change(
    db: &PgPool,
    owner: Owner,
    id: PostId,
    edit: &Edit,
    queue: Option<&Queue>,
    now: DateTime<Utc>,
) -> sqlx::Result<Edited> {
    let now = now.trunc_subsecs(6);
    let mut tx = db.begin().await?;
    let before = match lock(&mut tx, owner, id).await? {
        None => return Ok(Edited::NotFound),
        Some((status, _)) if !status.is_editable() => return Ok(Edited::Begun),
        Some((_, version)) if version != edit.version => return Ok(Edited::Outdated),
        Some((status, _)) => status,
    };
    let scheduled_at = match queue {
        None => edit.scheduled_at,
        Some(queue) => match slots::reserve(&mut tx, owner, queue, Some(id), now).await? {
            None => return Ok(Edited::NoOpenSlot),
            slot => slot,
        },
    };
    let after = PostStatus::of_plan(edit.is_draft, scheduled_at.is_some());
    let accounts = edit.accounts.as_ref();
    let accounts = accounts.map(|accounts| accounts.iter().map(|(account, _)| account.0).collect::<Vec<_>>());
    sqlx::query!(
        "update posts set status = $2, is_draft = $3, scheduled_at = $4, default_config = $5,
           version = version + 1, updated_at = $6,
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
        accounts.as_deref()
    )
    .execute(&mut *tx)
    .await?;
    if let Some(containers) = &edit.containers {
        let ids = attached(containers.iter().map(|container| &container.media));
        if !media::lock_for_post(&mut tx, owner, &ids).await? {
            return Ok(Edited::MediaMissing);
        }
        replace_containers(&mut tx, owner, id, containers).await?;
    }
    if let Some(accounts) = &edit.accounts {
        replace_targets(&mut tx, owner, id, accounts, now).await?;
    }
    let open = revive(&mut tx, id, now).await?;
    if after != PostStatus::Draft && open == 0 {
        return Ok(Edited::NoConnectedAccount);
    }
    if after == PostStatus::Draft {
        // The workflow that had taken them up finds, when their time comes, that they are stale.
        sqlx::query!("update targets set status = 'pending' where post_id = $1 and status = 'queued'", id.0)
            .execute(&mut *tx)
            .await?;
    }
    let message = match (after, scheduled_at) {
        (PostStatus::Draft, _) => "Edited; waits as a draft".to_owned(),
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
    let entry = Entry { at: now, kind: "edited".into(), message, target_id: None, detail };
    timeline::append(&mut tx, owner, id, entry).await?;
    let post = super::read(&mut tx, owner, id).await?;
    if after != PostStatus::Draft {
        outbox::push(&mut tx, &Message::PostChanged(job(owner, &post))).await?;
    }
    tx.commit().await?;
    Ok(Edited::Post(Box::new(post)))
}

async fn replace_containers(
    tx: &mut PgConnection,
    owner: Owner,
    id: PostId,
    containers: &[Container],
) -> sqlx::Result<()> {
    sqlx::query!("delete from containers where post_id = $1", id.0).execute(&mut *tx).await?;
    sqlx::query!(
        "insert into containers (id, post_id, org_id, mode, position, content, media)
         select c.id, $1, $2, $3, c.position, c.content, c.media
         from unnest($4::uuid[], $5::smallint[], $6::text[], $7::jsonb[]) as c (id, position, content, media)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        &containers.iter().map(|container| container.id.0).collect::<Vec<_>>(),
        &containers.iter().map(|container| container.position.cast_signed()).collect::<Vec<_>>(),
        &containers.iter().map(|container| container.content.clone()).collect::<Vec<_>>(),
        &containers.iter().map(|container| json!(container.media)).collect::<Vec<_>>()
    )
    .execute(tx)
    .await?;
    Ok(())
}

/// A target that was canceled with its account is open again when the account is connected again. Gives
/// how many targets are open.
async fn revive(tx: &mut PgConnection, id: PostId, now: DateTime<Utc>) -> sqlx::Result<i64> {
    sqlx::query!(
        "update targets t set status = 'pending', updated_at = $2
         from accounts a
         where t.post_id = $1 and t.status = 'canceled' and a.id = t.account_id and a.status <> 'disconnected'",
        id.0,
        now
    )
    .execute(&mut *tx)
    .await?;
    sqlx::query_scalar!(
        r#"select count(*) as "open!" from targets where post_id = $1 and status <> 'canceled'"#,
        id.0
    )
    .fetch_one(tx)
    .await
}

/// The targets of accounts that stay keep their ids.
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
        "insert into targets (id, post_id, org_id, mode, account_id, platform, created_at, updated_at)
         select t.id, $1, $2, $3, t.account_id, t.platform, $7, $7
         from unnest($4::uuid[], $5::uuid[], $6::text[]) as t (id, account_id, platform)
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
