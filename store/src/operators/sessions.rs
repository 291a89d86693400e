//! Sessions of operators on their pages, apart from those of people.
//!
//! A session ends with sign-out, after a time without use, after a time in any case, and with the token that it was
//! begun with. The cookie contains 256 random bits, so a plain SHA-256 digest of it is stored.

use crate::people::{
    audit::{self, Action, Actor, Change},
    keys,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgPool;

/// Lifetime of a session; use doesn't extend it.
pub const TTL: TimeDelta = TimeDelta::hours(8);
/// Time without use after which a session ends.
pub const IDLE_TTL: TimeDelta = TimeDelta::hours(1);
/// Number of random characters in a session's token: 256 bits.
const LENGTH: usize = 43;

/// Begins a session and returns its token, which can't be read again. `credential` identifies the operators' token
/// that was shown; `by` has the operator's name. Deletes expired sessions.
pub async fn begin(db: &PgPool, credential: &[u8], by: &Actor, now: DateTime<Utc>) -> sqlx::Result<String> {
    let token = keys::random_text(LENGTH);
    let mut tx = crate::begin(db).await?;
    sqlx::query!(
        "with ended as (delete from operator_sessions where expires_at <= $4)
         insert into operator_sessions
           (digest, credential, operator, created_at, expires_at, last_used_at, address, user_agent)
         values ($1, $2, $3, $4, $5, $4, ($6::text)::inet, $7)",
        keys::digest(&token),
        credential,
        by.operator.as_deref().unwrap_or_default(),
        now,
        now + TTL,
        by.address.map(|address| address.to_canonical().to_string()),
        by.agent
    )
    .execute(&mut *tx)
    .await?;
    let change =
        Change { action: Action::OperatorSignedIn, object: audit::INSTALLATION.0, details: json!({}) };
    audit::record_shared(&mut tx, audit::INSTALLATION, by, now, change).await?;
    tx.commit().await?;
    Ok(token)
}

/// Returns the name of the operator whose session it is; `None` if there is no such session, or it has ended. `is_use`
/// counts as a use, to the minute.
pub async fn find(
    db: &PgPool,
    token: &str,
    credential: &[u8],
    is_use: bool,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<String>> {
    let digest = keys::digest(token);
    let row = sqlx::query!(
        r#"select operator, last_used_at < $3::timestamptz - interval '1 minute' as "is_stale!" from operator_sessions
           where digest = $1 and credential = $2 and expires_at > $3 and last_used_at > $4"#,
        digest,
        credential,
        now,
        now - IDLE_TTL
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if is_use && row.is_stale {
        sqlx::query!("update operator_sessions set last_used_at = $2 where digest = $1", digest, now)
            .execute(db)
            .await?;
    }
    Ok(Some(row.operator))
}

/// Ends a session.
pub async fn end(db: &PgPool, token: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from operator_sessions where digest = $1", keys::digest(token)).execute(db).await?;
    Ok(())
}
