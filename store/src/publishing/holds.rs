//! Apps that a platform refuses: a spending limit is reached, a project has no access, an app is suspended.
//!
//! That concerns neither the content nor the account, and every post with the app would meet it. So they wait together,
//! at no cost to their budget, and one of them at a time looks whether the platform takes the app again. What is
//! published ends the hold. A publishing call that was begun before is still looked up.
//!
//! If the platform refuses the app for some posts only, each of them waits for itself: its row has the target's id
//! after the app, so that it holds no other post, and operators are told as of any other.

use super::{Attempt, TargetKey};
use crate::bounds::{Access, Resource};
use chrono::{DateTime, Utc};
use domain::{AccountId, Holds, TargetId};
use sqlx::{PgConnection, PgPool};
use std::{collections::HashMap, time::Duration};

/// Time for which the post that looks keeps the others waiting, if it has no answer.
const LOOK: Duration = Duration::from_secs(120);
/// Time after its last look from which a hold is of no interest.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Returns when the hold of an app ends for a target that would begin an attempt; `None` if it is the one that looks. That
/// one may begin several until it has an answer, such as after the refresh of a token.
pub(super) async fn wait_or_look(
    tx: &mut PgConnection,
    app: &str,
    target: TargetId,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let is_first = sqlx::query!(
        "update app_holds set until = clock_timestamp() + make_interval(secs => $2), looker = $3
         where app = $1 and (until <= clock_timestamp() or looker = $3)",
        app,
        LOOK.as_secs_f64(),
        target.0
    )
    .execute(&mut *tx)
    .await?
    .rows_affected()
        > 0;
    if is_first {
        return Ok(None);
    }
    sqlx::query_scalar!("select until from app_holds where app = $1", app).fetch_optional(tx).await
}

/// Holds the posts with the app of a target's account for a time, or the target alone. Returns true if they were not held
/// before.
// Model: HoldApp.
pub async fn hold(
    db: &PgPool,
    key: TargetKey,
    holds: Holds,
    message: &str,
    pause: Duration,
) -> sqlx::Result<bool> {
    let is_new = sqlx::query_scalar!(
        r#"with forgotten as (delete from app_holds where until < now() - make_interval(secs => $4))
           insert into app_holds as h (app, platform, mode, message, since, until)
           select app_of(a.platform, a.mode, a.org_id, a.social_network_id) || case when $5 then '/' || t.id else '' end,
             a.platform, a.mode, $2, clock_timestamp(), clock_timestamp() + make_interval(secs => $3)
           from targets t join accounts a on a.id = t.account_id where t.id = $1
           on conflict (app) do update set message = excluded.message, until = excluded.until, looker = null
           returning (h.xmax = 0) as "is_new!""#,
        key.target.0,
        message,
        pause.as_secs_f64(),
        FORGOTTEN_AFTER.as_secs_f64(),
        holds == Holds::Post
    )
    .fetch_optional(db)
    .await?;
    Ok(is_new.unwrap_or(false))
}

/// Ends the hold of the app that an attempt has published with, and that of its target.
pub async fn lift(db: &PgPool, attempt: &Attempt) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from app_holds h using accounts a
         where a.id = $1 and h.app in (
           app_of(a.platform, a.mode, a.org_id, a.social_network_id),
           app_of(a.platform, a.mode, a.org_id, a.social_network_id) || '/' || $2::uuid)",
        attempt.account.id.0,
        attempt.key.target.0
    )
    .execute(db)
    .await?;
    Ok(())
}

/// An app that its platform refuses.
#[derive(Clone, Debug)]
pub struct Held {
    /// Since when.
    pub since: DateTime<Utc>,
    /// Message of the platform.
    pub message: String,
}

/// Returns those of the accounts whose app its platform refuses.
pub async fn held(
    db: &PgPool,
    access: Access<'_>,
    accounts: &[AccountId],
) -> sqlx::Result<HashMap<AccountId, Held>> {
    let ids = accounts.iter().map(|account| account.0).collect();
    let (owner, ids) = access.reach_all(db, Resource::Account, ids).await?;
    let rows = sqlx::query!(
        "select a.id, h.since, h.message
         from accounts a join app_holds h on h.app = app_of(a.platform, a.mode, a.org_id, a.social_network_id)
         where a.id = any($1) and a.org_id = $2 and a.mode = $3 and h.until > now() - make_interval(secs => $4)",
        &ids,
        owner.org.0,
        owner.mode.as_str(),
        FORGOTTEN_AFTER.as_secs_f64()
    )
    .fetch_all(db)
    .await?;
    let held = rows.into_iter().map(|row| (row.id.into(), Held { since: row.since, message: row.message }));
    Ok(held.collect())
}
