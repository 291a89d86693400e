//! Edits of a live target's posts on their platform.
//!
//! The API stores what an edit sets and gives it an id; a worker reads it by that and makes the calls. So histories of
//! workflows have no texts.
//!
//! An edit sets values, so that the same one may be made twice. Two different ones may not overlap: the platform could
//! keep the one, and the row the other. So one edit holds the target until it has ended, or for [`EDIT_LEASE`]. Two of
//! the same hold it until both have.

use super::{TargetKey, note};
use crate::{
    bounds::{Access, Resource},
    decode::Parsed,
    posts::timeline,
};
use chrono::{DateTime, Utc};
use domain::{Edit, EditId, Owner, PostId, TargetId, TargetStatus};
use serde_json::{Map, Value, json};
use sqlx::{PgExecutor, PgPool, types::Json};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

/// Time after which an edit without a known result no longer keeps others waiting: longer than a worker is waited for
/// (35 s: 30 for the request, 3 to start it, 2 for the way back), and longer than its calls take once it has taken the
/// edit.
pub const EDIT_LEASE: Duration = Duration::from_secs(40);

/// New values of a live target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New texts, by the position of the container.
    pub texts: BTreeMap<u16, String>,
    /// New settings of the platform.
    pub settings: Map<String, Value>,
}

impl Changes {
    /// Returns the values that edits set.
    pub fn of(edits: &[Edit]) -> Self {
        let mut changes = Self::default();
        for edit in edits {
            changes.texts.extend(edit.text.clone().map(|text| (edit.position, text)));
            let settings = edit.names.iter().map(|name| (name.clone(), edit.settings[name].clone()));
            changes.settings.extend(settings);
        }
        changes
    }

    fn texts(&self) -> Value {
        self.texts
            .iter()
            .map(|(position, text)| (position.to_string(), json!(text)))
            .collect::<Map<_, _>>()
            .into()
    }

    /// Returns a text that two edits have in common only if they set the same values.
    fn content(&self) -> String {
        json!([self.texts(), self.settings]).to_string()
    }
}

/// The result of an edit's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditResult {
    /// Changes that the platform has made for sure: all of the edit, or its first part.
    pub made: Changes,
    /// True if every call was made.
    pub is_whole: bool,
    /// True if the last call has no known result: it may still take effect after a later one.
    pub is_in_doubt: bool,
}

/// The result of beginning an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginEdit {
    /// The edit is stored and holds the target.
    Begun {
        /// Names the edit to the worker that makes it.
        edit: EditId,
        /// True unless the same edit is being made already.
        is_first: bool,
    },
    /// Nothing is live: the target has this status.
    NotLive(TargetStatus),
    /// The posts were deleted from the platform.
    Unpublished,
    /// The reply at this position is not live.
    NoReply(u16),
    /// Another edit is being made.
    Busy,
    /// The target was edited since the caller read it.
    Changed,
    /// The target doesn't exist.
    Missing,
}

/// Begins an edit of a live target that was last edited at `seen`: stores what it sets, and holds the target.
// Model: BeginEdit.
pub async fn begin_edit(
    db: &PgPool,
    access: Access<'_>,
    (post, target): (PostId, TargetId),
    edits: &[Edit],
    seen: Option<DateTime<Utc>>,
) -> sqlx::Result<BeginEdit> {
    let Some(owner) = access.reach(db, Resource::Post, post.0).await? else { return Ok(BeginEdit::Missing) };
    let content = Changes::of(edits).content();
    let mut tx = crate::begin(db).await?;
    let row = sqlx::query!(
        r#"select status as "status: Parsed<TargetStatus>", unpublished_at, edited_at,
             coalesce(edit_until > clock_timestamp(), false) as "is_held!",
             coalesce(edit_digest = md5($5), false) as "is_same!"
           from targets where id = $1 and post_id = $2 and org_id = $3 and mode = $4
           for no key update"#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        content
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok(BeginEdit::Missing) };
    match row.status.0 {
        TargetStatus::Published if row.unpublished_at.is_some() => return Ok(BeginEdit::Unpublished),
        TargetStatus::Published => {}
        status => return Ok(BeginEdit::NotLive(status)),
    }
    if !row.is_same && row.is_held {
        return Ok(BeginEdit::Busy);
    }
    // The same edit may have been recorded, and its result lost on the way to the caller.
    if !row.is_same && row.edited_at != seen {
        return Ok(BeginEdit::Changed);
    }
    let live = platform_ids(&mut *tx, target).await?;
    if let Some(missing) = edits.iter().find(|edit| !live.contains_key(&edit.position)) {
        return Ok(BeginEdit::NoReply(missing.position));
    }
    let edit = sqlx::query_scalar!(
        r#"update targets
           set edit_changes = $2, edit_digest = md5($3),
             edit_id = case when edit_digest = md5($3) then edit_id else $5 end,
             edit_until = clock_timestamp() + make_interval(secs => $4)
           where id = $1
           returning edit_id as "edit!""#,
        target.0,
        Json(edits) as _,
        content,
        EDIT_LEASE.as_secs_f64(),
        Uuid::now_v7()
    )
    .fetch_one(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(BeginEdit::Begun { edit: EditId(edit), is_first: !row.is_held })
}

/// Lets other edits of a target begin: this one, the first of its kind, was given to no worker.
pub async fn give_up_edit(db: &PgPool, owner: Owner, target: TargetId, edit: EditId) -> sqlx::Result<()> {
    sqlx::query!(
        "update targets set edit_until = null where id = $1 and org_id = $2 and mode = $3 and edit_id = $4",
        target.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.0
    )
    .execute(db)
    .await?;
    Ok(())
}

/// An edit that a worker makes.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenEdit {
    /// The edit.
    pub edit: EditId,
    /// Time until which it holds the target.
    pub until: DateTime<Utc>,
    /// The changes, the main post first; none if all are made already.
    pub edits: Vec<Edit>,
    /// Ids of the live containers on the platform, by position. Each change has one.
    pub platform_ids: BTreeMap<u16, String>,
}

/// Takes an edit by its id, and holds the target for the time of its calls. `None` if another edit has begun since, or
/// the posts were deleted.
// Model: TakeEdit.
pub async fn take_edit(
    db: &PgPool,
    owner: Owner,
    (post, target): (PostId, TargetId),
    edit: EditId,
) -> sqlx::Result<Option<TakenEdit>> {
    let row = sqlx::query!(
        r#"update targets set edit_until = clock_timestamp() + make_interval(secs => $6)
           where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and edit_id = $5
             and status = 'published' and unpublished_at is null
           returning edit_until as "until!", edit_changes as "edits: Json<Vec<Edit>>""#,
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.0,
        EDIT_LEASE.as_secs_f64()
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let edits = row.edits.map(|Json(edits)| edits).unwrap_or_default();
    // A container that was live when the edit began keeps its id.
    let platform_ids = platform_ids(db, target).await?;
    Ok(Some(TakenEdit { edit, until: row.until, edits, platform_ids }))
}

async fn platform_ids(db: impl PgExecutor<'_>, target: TargetId) -> sqlx::Result<BTreeMap<u16, String>> {
    let publications = sqlx::query!(
        r#"select position, platform_id as "platform_id!" from publications
           where target_id = $1 and platform_id is not null"#,
        target.0
    )
    .fetch_all(db)
    .await?;
    let ids = publications.into_iter().map(|row| (row.position.cast_unsigned(), row.platform_id));
    Ok(ids.collect())
}

/// Records what an edit has changed, and lets other edits begin unless its last call is in doubt or the same edit was
/// taken once more. Returns false if another edit has begun since.
// Model: RecordEdit.
pub async fn record_edit(
    db: &PgPool,
    owner: Owner,
    (post, target): (PostId, TargetId),
    taken: &TakenEdit,
    result: &EditResult,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let EditResult { made, is_whole, is_in_doubt } = result;
    let mut tx = crate::begin(db).await?;
    let is_empty = *made == Changes::default();
    let recorded = sqlx::query!(
        "update targets
         set edits = case when $8 then edits else jsonb_build_object(
               'containers', coalesce(edits -> 'containers', '{}') || $5,
               'config', coalesce(edits -> 'config', '{}') || $6) end,
             edited_at = case when $8 then edited_at else $7 end,
             updated_at = case when $8 then updated_at else $7 end,
             edit_until = case when $10 or edit_until <> $11 then edit_until end,
             edit_changes = case when not $12 or edit_until <> $11 then edit_changes end
         where id = $1 and post_id = $2 and org_id = $3 and mode = $4 and edit_id = $9
         returning platform",
        target.0,
        post.0,
        owner.org.0,
        owner.mode.as_str(),
        made.texts(),
        Json(&made.settings) as _,
        now,
        is_empty,
        taken.edit.0,
        is_in_doubt,
        taken.until,
        is_whole
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(row) = recorded.as_ref().filter(|_| !is_empty) {
        let key = TargetKey { owner, post, target, version: 0 };
        note(&mut *tx, key, "edited", &format!("Changed on {}", row.platform), now).await?;
        timeline::reopen(&mut tx, post, now).await?;
    }
    tx.commit().await?;
    Ok(recorded.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(position: u16, text: Option<&str>, settings: Value, names: &[&str]) -> Edit {
        Edit {
            position,
            of_reply: false,
            has_media: false,
            kinds: Vec::new(),
            before: String::new(),
            text: text.map(str::to_owned),
            settings,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn an_edit_is_the_texts_and_settings_that_it_sets() {
        let edits = [
            edit(0, Some("a"), json!({ "title": "b", "privacy": "public" }), &["title"]),
            edit(2, None, json!({}), &[]),
            edit(10, Some("c"), json!({}), &[]),
        ];
        let changes = Changes::of(&edits);
        assert_eq!(changes.texts, BTreeMap::from([(0, "a".to_owned()), (10, "c".to_owned())]));
        assert_eq!(Value::from(changes.settings.clone()), json!({ "title": "b" }));
        assert_eq!(changes.content(), r#"[{"0":"a","10":"c"},{"title":"b"}]"#);
        // One that sets something else has another name.
        for other in [
            edit(0, Some("b"), json!({ "title": "b" }), &["title"]),
            edit(1, Some("a"), json!({ "title": "b" }), &["title"]),
            edit(0, Some("a"), json!({ "title": "c" }), &["title"]),
            edit(0, Some("a"), json!({}), &[]),
        ] {
            assert_ne!(Changes::of(&[other, edits[2].clone()]).content(), changes.content());
        }
        assert_eq!(Changes::of(&[]), Changes::default());
    }
}
