//! The rest of a live target: the parts that were to follow its main container.
//!
//! A target is told as published when its main container is live. What becomes of the rest is told later, once: parts
//! that are given up by `post.target.incomplete`. Their user may retry them, which is a round of retries of a target that
//! stays live; it ends with the same event, or with `post.target.published` of that round.

use super::{TargetKey, lock_post, note};
use crate::{
    bounds::{Access, Resource},
    media,
    posts::{Attachment, Container, finish, insert_containers, timeline},
    webhooks::events::{self, NewEvent},
};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, ErrorSource, Missing, Part, PostId, TargetId,
    event::{self, EventAccount, EventName},
    missing::given_up,
};
use sqlx::{PgConnection, PgPool, types::Json};
use std::{borrow::Cow, collections::BTreeMap};

/// Why a target, or the rest of its thread, is not published.
pub(super) struct Shortfall<'a> {
    /// `None` if nothing failed.
    pub(super) code: Option<ErrorCode>,
    pub(super) message: Cow<'a, str>,
    pub(super) source: ErrorSource,
}

/// Gives up what is missing of a live target, and fences off an attempt under way. Returns what is missing; nothing if
/// all of the target is live that its platform has a place for.
pub(super) async fn mark_incomplete(
    tx: &mut PgConnection,
    key: TargetKey,
    why: &Shortfall<'_>,
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<Missing>> {
    let known = sqlx::query_scalar!(
        r#"select missing as "missing: Json<Vec<Missing>>" from targets where id = $1 for no key update"#,
        key.target.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let left_out = known.flatten().map_or_else(Vec::new, |known| known.0).into_iter();
    let left_out: Vec<_> = left_out.filter(|part| part.is_left_out).collect();
    let parts = sqlx::query!(
        r#"select c.position as "position!", exists (
             select from open_containers o where o.target_id = $1 and o.position = c.position) as "is_open!"
           from target_containers c where c.target_id = $1 order by c.position"#,
        key.target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let count = u16::try_from(parts.len()).expect("a post has few containers");
    let is_awaited = |position: &u16| left_out.iter().all(|part| part.position != *position);
    let open = parts.iter().filter(|part| part.is_open).map(|part| part.position.cast_unsigned());
    let open: Vec<_> = open.filter(is_awaited).collect();
    let message = match (why.code, open.first()) {
        (Some(_), Some(&position)) => Part { position, count }.name(&why.message),
        _ => why.message.clone().into_owned(),
    };
    let mut missing = given_up(&open, count, why.code, &why.message);
    let is_missing = !missing.is_empty();
    if is_missing {
        missing.extend(left_out);
    }
    let told = match why.code {
        Some(code) => format!("The rest of the thread failed for good: {code}: {message}"),
        None => format!("The rest of the thread was given up: {message}"),
    };
    sqlx::query!(
        "update targets
         set error_code = case when $6 then $2 else error_code end,
             error_message = case when $6 then $3 else error_message end,
             error_source = case when $6 then $4 else error_source end,
             missing = case when $6 then $7 else missing end,
             next_attempt_at = null, processing_since = null, is_continuation = false, unanswered = 0,
             fence = fence + 1,
             wait_reason = null, wait_since = null, wait_until = null, look_at = null, freeze_id = null,
             updated_at = $5
         where id = $1",
        key.target.0,
        why.code.map(|code| code.to_string()),
        message,
        why.source.as_str(),
        now,
        is_missing,
        Json(&missing) as _
    )
    .execute(&mut *tx)
    .await?;
    if is_missing {
        note(&mut *tx, key, "incomplete", &told, now).await?;
    }
    Ok(missing)
}

/// Tells that parts of a live target, which was told as published, will not follow.
pub(super) async fn tell_incomplete(
    tx: &mut PgConnection,
    key: TargetKey,
    missing: &[Missing],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    if missing.is_empty() {
        return tell_resumed(tx, key, &[], now).await;
    }
    tell(&mut *tx, key, EventName::TargetIncomplete, missing, now).await?;
    end_round(tx, key, now).await
}

/// Tells that what was missing of a live target is published now, except for `missing`, if that was a round of retries.
pub(super) async fn tell_resumed(
    tx: &mut PgConnection,
    key: TargetKey,
    missing: &[Missing],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let is_resumed = sqlx::query_scalar!(
        r#"select resumed_round is not null as "is_resumed!" from targets where id = $1"#,
        key.target.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    if is_resumed == Some(true) {
        tell(&mut *tx, key, EventName::TargetPublished, missing, now).await?;
        end_round(tx, key, now).await?;
    }
    Ok(())
}

/// Appends an event of a live target.
async fn tell(
    tx: &mut PgConnection,
    key: TargetKey,
    name: EventName,
    missing: &[Missing],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let row = sqlx::query!(
        "select t.account_id, t.platform, a.username, t.platform_post_id, t.platform_post_url, t.round
         from targets t join accounts a on a.id = t.account_id where t.id = $1",
        key.target.0
    )
    .fetch_one(&mut *tx)
    .await?;
    let subject =
        EventAccount { account: row.account_id.into(), network: row.platform, username: row.username };
    let id = row.platform_post_id.unwrap_or_default();
    let live = (id.as_str(), row.platform_post_url.as_deref());
    let data = event::target_published(key.post, key.target, key.owner.org, &subject, live, missing);
    let data = event::in_round(row.round.unsigned_abs(), data);
    let event = NewEvent { name, post: Some(key.post), target: Some(key.target), account: None, data };
    events::append(tx, key.owner, now, &event).await
}

/// Ends a target's round of retries of what was missing, if it is in one, and tells the end of the post's if no other
/// target is left. The post's row is locked.
async fn end_round(tx: &mut PgConnection, key: TargetKey, now: DateTime<Utc>) -> sqlx::Result<()> {
    let ended = sqlx::query!(
        "update targets set resumed_round = null where id = $1 and resumed_round is not null",
        key.target.0
    )
    .execute(&mut *tx)
    .await?;
    if ended.rows_affected() == 0 {
        return Ok(());
    }
    finish(tx, key.owner, key.post, now).await?;
    Ok(())
}

/// New content of parts that are missing, by position.
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// Texts.
    pub texts: BTreeMap<u16, String>,
    /// Media, of those of the parts whose media change.
    pub media: BTreeMap<u16, Vec<Attachment>>,
}

/// The result of changing missing parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// The parts are changed.
    Done,
    /// The part at this position is live, or still to be published.
    NotMissing(u16),
    /// The part at this position may be live: its publishing call has no known result.
    MayBeLive(u16),
    /// The target was edited since the caller read it.
    Changed,
    /// An edit of what is live is being made.
    Busy,
    /// A media asset was deleted in the meantime.
    NoMedia,
    /// The target doesn't exist.
    Missing,
}

/// Changes parts that are missing of a live target, which was last edited at `seen`. Nothing is published: a retry publishes
/// the new content.
///
/// A part that may be live keeps its text, by which it would be looked up.
// Model: Rewrite.
pub async fn rewrite(
    db: &PgPool,
    access: Access<'_>,
    (post, target): (PostId, TargetId),
    new: &Rewrite,
    seen: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> sqlx::Result<Rewritten> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(Rewritten::Missing) };
    let key = TargetKey { owner, post, target, version: 0 };
    let mut tx = crate::begin(db).await?;
    // Its targets may get further variants of it.
    lock_post(&mut tx, key).await?;
    let row = sqlx::query!(
        r#"select edited_at, variant, coalesce(edit_until > clock_timestamp(), false) as "is_held!",
             status = 'published' and next_attempt_at is null and unpublished_at is null
               and error_code is not null as "is_torn!"
           from targets where id = $1 and post_id = $2 and org_id = $3 and mode = $4
           for no key update"#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(Rewritten::Missing) };
    if row.is_held {
        return Ok(Rewritten::Busy);
    }
    if row.edited_at != seen {
        return Ok(Rewritten::Changed);
    }
    let begun = sqlx::query!(
        "select position, platform_id is not null as \"is_live!\" from publications
         where target_id = $1 and (platform_id is not null or commit_begun_at is not null)",
        target.0
    )
    .fetch_all(&mut *tx)
    .await?;
    for position in new.texts.keys().copied() {
        let found = begun.iter().find(|row| row.position.cast_unsigned() == position);
        match found.map(|row| row.is_live) {
            None if row.is_torn => {}
            None | Some(true) => return Ok(Rewritten::NotMissing(position)),
            Some(false) => return Ok(Rewritten::MayBeLive(position)),
        }
    }
    let files: Vec<_> = new.media.values().flatten().map(|attached| attached.id).collect();
    if !media::lock_for_post(&mut tx, owner, &files).await? {
        return Ok(Rewritten::NoMedia);
    }
    if !new.media.is_empty() {
        change_media(&mut tx, key, row.variant, &new.media).await?;
    }
    let count = sqlx::query_scalar!(
        r#"update targets
           set edits = jsonb_build_object(
                 'containers', coalesce(edits -> 'containers', '{}') || $2,
                 'config', coalesce(edits -> 'config', '{}')),
               edited_at = $3, updated_at = $3
           where id = $1
           returning (select count(*) from target_containers c where c.target_id = $1) as "count!""#,
        target.0,
        Json(&new.texts) as _,
        now
    )
    .fetch_one(&mut *tx)
    .await?;
    for position in new.texts.keys().copied() {
        let part = Part { position, count: u16::try_from(count).expect("a post has few containers") };
        note(&mut *tx, key, "edited", &format!("Changed {part}, which is not published"), now).await?;
    }
    timeline::reopen(&mut tx, post, now).await?;
    tx.commit().await?;
    Ok(Rewritten::Done)
}

/// Changes the media of parts of a target in its variant of the post, which becomes one of its own.
async fn change_media(
    tx: &mut PgConnection,
    key: TargetKey,
    variant: i16,
    media: &BTreeMap<u16, Vec<Attachment>>,
) -> sqlx::Result<()> {
    let own = sqlx::query!(
        r#"select c.position as "position!", c.content as "content!", c.media as "media!: Json<Vec<Attachment>>"
           from containers c
           where c.post_id = $1 and c.variant = $3 and ($3 = 0 or exists (
             select from targets t where t.post_id = $1 and t.variant = $3 and t.id <> $2))
           order by c.position"#,
        key.post.0,
        key.target.0,
        variant
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut variant = variant;
    if !own.is_empty() {
        let last = sqlx::query_scalar!(
            r#"select coalesce(max(variant), 0::smallint) as "last!" from containers where post_id = $1"#,
            key.post.0
        )
        .fetch_one(&mut *tx)
        .await?;
        variant = last + 1;
        let copy =
            own.into_iter().map(|row| Container::new(row.position.cast_unsigned(), row.content, row.media.0));
        insert_containers(&mut *tx, key.owner, key.post, variant, &[copy.collect()]).await?;
        sqlx::query!("update targets set variant = $2 where id = $1", key.target.0, variant)
            .execute(&mut *tx)
            .await?;
    }
    for (position, media) in media {
        sqlx::query!(
            "update containers set media = $4 where post_id = $1 and variant = $2 and position = $3",
            key.post.0,
            variant,
            position.cast_signed(),
            Json(media) as _
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}

/// Records that everything of a live target is live, once. Returns false, and does nothing, when another
/// attempt has begun since. A URL that is still unknown stays due.
// Model: MarkComplete.
pub async fn mark_complete(
    db: &PgPool,
    key: TargetKey,
    fence: i32,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let mut tx = crate::begin(db).await?;
    lock_post(&mut tx, key).await?;
    let is_held = sqlx::query_scalar!(
        r#"with target as (
           update targets set error_code = null, error_message = null, error_source = null, missing = null,
             next_attempt_at = case when platform_post_url is null then next_attempt_at end,
             processing_since = null, is_continuation = false, unanswered = 0, updated_at = $2,
             wait_reason = null, wait_since = null, wait_until = null, look_at = null
           where id = $1 and fence = $6 returning id),
         logged as (
           insert into timeline (org_id, mode, post_id, target_id, at, kind, message)
           select $3, $4, $5, id, $2, 'complete', 'The whole thread is live' from target
           where exists (select from target_containers where target_id = $1 and position > 0) and not exists (
             select from timeline t where t.post_id = $5 and t.target_id = $1 and t.kind = 'complete'))
         select exists (select from target) as "is_held!""#,
        key.target.0,
        now,
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.post.0,
        fence
    )
    .fetch_one(&mut *tx)
    .await?;
    if is_held {
        tell_resumed(&mut tx, key, &[], now).await?;
    }
    super::wake_replies(&mut tx, key.owner, key.post, super::Replies::To(key.target)).await?;
    tx.commit().await?;
    Ok(is_held)
}
