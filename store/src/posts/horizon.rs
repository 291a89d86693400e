//! The scheduling horizon.
//!
//! A post that is due later than the horizon waits in the database only: `starts_at` has its time, and it has no
//! workflow and no message. When its time has come within the horizon, [`crate::publishing::sweep`] clears `starts_at` and pushes
//! its message in one transaction. So each row is started once, whatever happens to the message then: the row that is
//! due and not published is swept like that of any lost workflow. An edit or a deletion notifies a workflow only if
//! `starts_at` is null, that is, if there may be one.

use crate::decode::Parsed;
use domain::{
    Mode, OrgId, Owner, PostId,
    outbox::{Message, PostJob, TargetRef},
};
use sqlx::{PgConnection, types::Json};
use std::time::Duration;
use uuid::Uuid;

/// Lets a post wait in the database if it is due beyond the horizon, and otherwise marks it as started. Returns whether
/// it waits. A reply waits for its own time only: the time of the post that it replies to is that post's, and may change.
pub(super) async fn wait(tx: &mut PgConnection, id: PostId, horizon: Duration) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"update posts
           set starts_at = case when scheduled_at > clock_timestamp() + make_interval(secs => $2) then scheduled_at end
           where id = $1
           returning starts_at is not null as "waits!""#,
        id.0,
        horizon.as_secs_f64()
    )
    .fetch_one(tx)
    .await
}

/// A post with open targets.
pub(crate) struct Open {
    /// Its open targets.
    pub(crate) job: PostJob,
    /// True if its publishing has begun, so that its targets may have workflows of their own.
    has_begun: bool,
}

impl Open {
    /// Returns the message that resumes the post, whose workflows may be gone.
    pub(crate) fn resumption(self) -> Message {
        if self.has_begun { Message::ResumePost(self.job) } else { Message::PublishPost(self.job) }
    }
}

/// Returns posts with open targets that are no drafts and not beyond the horizon. With `grace`, only overdue targets of
/// those whose publishing has begun.
pub(crate) async fn open(
    tx: &mut PgConnection,
    ids: &[Uuid],
    grace: Option<Duration>,
) -> sqlx::Result<Vec<Open>> {
    let rows = sqlx::query!(
        r#"select p.id, p.org_id, p.mode as "mode: Parsed<Mode>", p.version, p.scheduled_at,
             p.status not in ('scheduled', 'queued') as "has_begun!",
             (select json_agg(json_build_object(
                'target', t.id, 'account', t.account_id, 'platform', t.platform, 'due', t.scheduled_at
              ) order by t.id)
              from targets t
              where t.post_id = p.id
                and (t.status in ('pending', 'queued', 'failed') or t.next_attempt_at is not null)
                and ($2::float8 is null or p.status in ('scheduled', 'queued')
                  or coalesce(greatest(t.next_attempt_at, t.look_at), t.updated_at) < now() - make_interval(secs => $2))
             ) as "targets: Json<Vec<TargetRef>>"
           from posts p where p.id = any($1) and not p.is_draft and p.starts_at is null"#,
        ids,
        grace.map(|grace| grace.as_secs_f64())
    )
    .fetch_all(tx)
    .await?;
    let job = |post: Uuid, owner, version, due, targets: Json<Vec<TargetRef>>| PostJob {
        post: post.into(),
        owner,
        version,
        due,
        is_far_off: false,
        targets: targets.0,
    };
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let owner = Owner { org: OrgId(row.org_id), mode: row.mode.into() };
            let job = job(row.id, owner, row.version, row.scheduled_at, row.targets?);
            Some(Open { job, has_begun: row.has_begun })
        })
        .collect())
}
