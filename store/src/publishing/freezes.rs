//! Freezes: orders of operators that no publishing call begins for a platform, an account or an organization.
//!
//! Nothing is lost: a target that would be published waits, see `publishing::frozen`. Everything else goes on:
//! look-ups of calls that were begun, webhooks, imports, edits of live posts and unpublishing.

use crate::{
    bounds::{Access, Resource},
    decode::Parsed,
    outbox,
    people::audit::{self, Action, Actor, Change},
};
use chrono::{DateTime, Utc};
use domain::{AccountId, Mode, OrgId, Owner, outbox::Message};
use serde::Serialize;
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use std::{collections::HashSet, fmt, time::Duration};
use uuid::Uuid;

/// Key of the lock that intents share and a freeze has alone: a statement that writes an intent sees no freeze that is
/// committed after it began.
const LOCK: i64 = 0x6672_7a65;
/// Maximum number of targets that one transaction releases.
const BATCH: i64 = 500;

/// Subject of a freeze.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that is published to a platform, given by its id.
    Platform(String),
    /// One account.
    Account(AccountId),
    /// All accounts of an organization.
    Organization(OrgId),
}

impl Scope {
    fn kind(&self) -> &'static str {
        match self {
            Self::Platform(_) => "platform",
            Self::Account(_) => "account",
            Self::Organization(_) => "organization",
        }
    }

    fn subject(&self) -> String {
        match self {
            Self::Platform(id) => id.clone(),
            Self::Account(id) => id.to_string(),
            Self::Organization(id) => id.to_string(),
        }
    }

    /// Returns the id of the audit entry's object: the installation for a platform.
    fn object(&self) -> Uuid {
        match self {
            Self::Platform(_) => Uuid::nil(),
            Self::Account(id) => id.0,
            Self::Organization(id) => id.0,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.subject())
    }
}

/// A freeze.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Freeze {
    /// The freeze's id.
    pub id: Uuid,
    /// `platform`, `account` or `organization`.
    pub kind: String,
    /// Id of the platform, account or organization.
    pub subject: String,
    /// The mode that is frozen, `live` or `test`; `None` for both.
    pub mode: Option<String>,
    /// Why, as the owners of the posts are told.
    pub reason: String,
    /// Who froze it.
    pub frozen_by: String,
    /// Since when.
    pub created_at: DateTime<Utc>,
    /// Number of targets that wait.
    pub waiting: i64,
}

/// The result of freezing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeResult {
    /// It is frozen from now on.
    Frozen,
    /// It was frozen before.
    Already,
    /// There is no such account or organization.
    Missing,
}

/// Returns the organization that a scope concerns, [`audit::INSTALLATION`] for a platform; `None` if there is no such
/// account or organization.
async fn organization(tx: &mut PgConnection, scope: &Scope) -> sqlx::Result<Option<OrgId>> {
    let found = match scope {
        Scope::Platform(_) => Some(audit::INSTALLATION.0),
        Scope::Account(id) => {
            sqlx::query_scalar!("select org_id from accounts where id = $1", id.0).fetch_optional(tx).await?
        }
        Scope::Organization(id) => {
            sqlx::query_scalar!("select id from organizations where id = $1", id.0).fetch_optional(tx).await?
        }
    };
    Ok(found.map(OrgId))
}

/// Locks against freezes to the end of the transaction: one that begins meanwhile waits.
pub(super) async fn hold_off(tx: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock_shared($1)", LOCK).execute(tx).await?;
    Ok(())
}

/// Freezes publishing, from the next publishing call on: none begins after this has returned.
// Model: Freeze.
pub async fn freeze(
    db: &PgPool,
    scope: &Scope,
    mode: Option<Mode>,
    reason: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<FreezeResult> {
    let mut tx = crate::begin(db).await?;
    let Some(org) = organization(&mut tx, scope).await? else { return Ok(FreezeResult::Missing) };
    sqlx::query!("select pg_advisory_xact_lock($1)", LOCK).execute(&mut *tx).await?;
    let frozen = sqlx::query!(
        "insert into freezes (id, kind, subject, mode, reason, frozen_by, created_at)
         select $1, $2, $3, $4, $5, $6, $7
         where not exists (
           select from freezes
           where kind = $2 and subject = $3 and mode is not distinct from $4 and released_at is null)",
        Uuid::now_v7(),
        scope.kind(),
        scope.subject(),
        mode.map(Mode::as_str),
        reason,
        by.operator.as_deref().unwrap_or("an operator"),
        now
    )
    .execute(&mut *tx)
    .await?;
    if frozen.rows_affected() == 0 {
        return Ok(FreezeResult::Already);
    }
    let details = json!({ "kind": scope.kind(), "subject": scope.subject(), "mode": mode.map(Mode::as_str),
        "reason": reason });
    let change = Change { action: Action::Frozen, object: scope.object(), details };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    Ok(FreezeResult::Frozen)
}

/// Releases what was frozen, and returns the number of targets that go on; `None` if nothing was frozen. `pause` is the
/// time between two of their attempts, which are due in the order in which the targets were; without it, all are due
/// now. Releasing again continues one that was interrupted.
// Model: Release.
pub async fn release(
    db: &PgPool,
    scope: &Scope,
    mode: Option<Mode>,
    pause: Duration,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<u64>> {
    let mut tx = crate::begin(db).await?;
    let org = organization(&mut tx, scope).await?.unwrap_or(audit::INSTALLATION);
    let ids = sqlx::query_scalar!(
        "update freezes set released_at = coalesce(released_at, $4)
         where kind = $1 and subject = $2 and mode is not distinct from $3
           and (released_at is null or exists (select from targets where freeze_id = freezes.id))
         returning id",
        scope.kind(),
        scope.subject(),
        mode.map(Mode::as_str),
        now
    )
    .fetch_all(&mut *tx)
    .await?;
    if ids.is_empty() {
        return Ok(None);
    }
    let details = json!({ "kind": scope.kind(), "subject": scope.subject(), "mode": mode.map(Mode::as_str),
        "seconds_between": pause.as_secs_f64() });
    let change = Change { action: Action::Released, object: scope.object(), details };
    audit::record_shared(&mut tx, org, by, now, change).await?;
    tx.commit().await?;
    let mut released = 0;
    while let Some(batch) = release_batch(db, &ids, pause).await? {
        released += batch;
    }
    Ok(Some(released))
}

/// Writes the time of the next attempt of some released targets, after those of earlier ones, and wakes them. Returns
/// their number; `None` when none waits.
async fn release_batch(db: &PgPool, freezes: &[Uuid], pause: Duration) -> sqlx::Result<Option<u64>> {
    let mut tx = crate::begin(db).await?;
    let waiting = sqlx::query_scalar!(
        "select t.id from targets t join posts p on p.id = t.post_id
         where t.freeze_id = any($1)
         order by coalesce(t.scheduled_at, p.scheduled_at, p.created_at), t.id limit $2",
        freezes,
        BATCH
    )
    .fetch_all(&mut *tx)
    .await?;
    if waiting.is_empty() {
        return Ok(None);
    }
    // By itself: an attempt or an edit that holds a row may end its wait, which the next statement must see.
    sqlx::query!("select id from targets where id = any($1) order by id for no key update", &waiting)
        .fetch_all(&mut *tx)
        .await?;
    let released = sqlx::query!(
        r#"with turns as (
             -- The turn after the last one that was given, by an earlier batch or before an interruption.
             select greatest(clock_timestamp(), max(next_turn_at)) as first from freezes where id = any($1)),
           waiting as (
             select t.id, row_number() over (order by coalesce(t.scheduled_at, p.scheduled_at, p.created_at), t.id) as n
             from targets t join posts p on p.id = t.post_id
             where t.id = any($2) and t.freeze_id = any($1)),
           released as (
             update targets t
             set freeze_id = null, updated_at = clock_timestamp(),
                 next_attempt_at = turns.first + make_interval(secs => (n - 1) * $3::float8),
                 -- What it waited for before was not awaited meanwhile.
                 throttled_since = null, wait_reason = null, wait_since = null, wait_until = null, look_at = null,
                 error_message = 'publishing was frozen by an operator of the service and has been released'
             from waiting w, turns where t.id = w.id and t.status not in ('dead', 'canceled')
             returning t.id, t.post_id, t.org_id, t.mode, t.next_attempt_at),
           ended as (
             update targets t set freeze_id = null from waiting w
             where t.id = w.id and t.status in ('dead', 'canceled')
             returning t.id, t.post_id, t.org_id, t.mode),
           given as (
             update freezes set next_turn_at = (
               select first + make_interval(secs => (select count(*) from waiting) * $3::float8) from turns)
             where id = any($1)),
           logged as (
             insert into timeline (org_id, mode, post_id, target_id, at, kind, message, detail)
             select org_id, mode, post_id, id, clock_timestamp(), 'released',
               'An operator of the service released what was frozen',
               jsonb_build_object('next_attempt_at', json_time(next_attempt_at))
             from released)
           -- The workflow of one that has ended ends now.
           select id as "id!", post_id as "post_id!", org_id as "org_id!", mode as "mode!: Parsed<Mode>"
           from (select id, post_id, org_id, mode from released union all table ended) woken"#,
        freezes,
        &waiting,
        pause.as_secs_f64()
    )
    .fetch_all(&mut *tx)
    .await?;
    let messages: Vec<_> = released
        .iter()
        .map(|row| {
            let owner = Owner { org: row.org_id.into(), mode: row.mode.0 };
            Message::RetryTarget { target: row.id.into(), post: row.post_id.into(), owner }
        })
        .collect();
    outbox::push_all(&mut tx, &messages).await?;
    tx.commit().await?;
    Ok(Some(released.len() as u64))
}

/// Returns which of these accounts are frozen, each by itself or with its platform or organization.
pub async fn frozen(
    db: &PgPool,
    access: Access<'_>,
    accounts: &[AccountId],
) -> sqlx::Result<HashSet<AccountId>> {
    let ids = accounts.iter().map(|account| account.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    let frozen = sqlx::query_scalar!(
        "select a.id from accounts a where a.id = any($1) and a.org_id = $2 and a.mode = $3
           and exists (select from open_freezes(a.platform, a.id, a.org_id, a.mode))",
        &ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await?;
    Ok(frozen.into_iter().map(AccountId).collect())
}

/// Returns everything that is frozen, latest first.
pub async fn list(db: &PgPool) -> sqlx::Result<Vec<Freeze>> {
    sqlx::query_as!(
        Freeze,
        r#"select id, kind, subject, mode, reason, frozen_by, created_at,
             (select count(*) from targets where freeze_id = freezes.id) as "waiting!"
           from freezes where released_at is null order by created_at desc, id"#
    )
    .fetch_all(db)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_names_its_kind_and_subject_and_the_object_of_its_audit_entry() {
        let id = Uuid::from_u128(7);
        for (scope, kind, subject, object) in [
            (Scope::Platform("x".to_owned()), "platform", "x".to_owned(), Uuid::nil()),
            (Scope::Account(AccountId(id)), "account", id.to_string(), id),
            (Scope::Organization(OrgId(id)), "organization", id.to_string(), id),
        ] {
            assert_eq!((scope.kind(), scope.subject(), scope.object()), (kind, subject.clone(), object));
            assert_eq!(scope.to_string(), format!("{kind} {subject}"));
        }
    }
}
