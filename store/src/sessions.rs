//! Dashboard sessions.
//!
//! A session is found together with the API key that it was started with, so that revoking, expiring or
//! rotating the key ends the session at the next request. The cookie contains 256 random bits, so a plain
//! SHA-256 digest of it is stored.

use crate::{
    audit::{self, Action, Actor, Change},
    decode::Parsed,
    keys::{self, Key, key},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Bound, Mode, client::Client, scope::Scope};
use serde_json::json;
use sqlx::{PgPool, types::Json};

/// Lifetime of a session; activity doesn't extend it.
pub const TTL: TimeDelta = TimeDelta::hours(12);
/// Number of random characters in a session's token: 256 bits.
const LENGTH: usize = 43;

/// Starts a session and returns its token, which can't be read again. Deletes expired sessions.
pub async fn begin(db: &PgPool, key: &Key, by: &Actor, now: DateTime<Utc>) -> sqlx::Result<String> {
    let token = keys::random_text(LENGTH);
    let mut tx = crate::begin(db).await?;
    sqlx::query!(
        "with ended as (delete from sessions where expires_at <= $5)
         insert into sessions (digest, org_id, mode, key_id, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6)",
        keys::digest(&token),
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.id.0,
        now,
        now + TTL
    )
    .execute(&mut *tx)
    .await?;
    let change =
        Change { action: Action::SessionStarted, object: key.id.0, details: json!({ "key": key.name }) };
    audit::record(&mut tx, key.owner, by, now, change).await?;
    tx.commit().await?;
    Ok(token)
}

/// A session of the dashboard.
#[derive(Clone, Debug)]
pub struct Session {
    /// The API key that the session was started with.
    pub key: Key,
    /// Name of the key's organization.
    pub organization: String,
}

/// Returns the session of a token; `None` when it has ended, or its key is no longer valid.
pub async fn find(db: &PgPool, token: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Session>> {
    let row = sqlx::query!(
        r#"select k.id, k.org_id, k.mode as "mode: Parsed<Mode>", k.name, k.scopes as "scopes: Vec<Parsed<Scope>>",
             k.bound as "bound: Json<Bound>", k.client as "client: Json<Client>", k.last_four, k.expires_at, k.revoked_at, k.last_used_at, k.created_at, o.name as organization
           from sessions s
           join api_keys k on k.id = s.key_id and k.org_id = s.org_id and k.mode = s.mode
           join organizations o on o.id = k.org_id
           where s.digest = $1 and s.expires_at > $2
             and (k.revoked_at is null or k.revoked_at > $2) and (k.expires_at is null or k.expires_at > $2)"#,
        keys::digest(token),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Session { key: key!(row), organization: row.organization }))
}

/// Ends a session of a key.
pub async fn end(db: &PgPool, token: &str, key: &Key, by: &Actor, now: DateTime<Utc>) -> sqlx::Result<()> {
    let mut tx = crate::begin(db).await?;
    let ended =
        sqlx::query!("delete from sessions where digest = $1", keys::digest(token)).execute(&mut *tx).await?;
    if ended.rows_affected() > 0 {
        let change =
            Change { action: Action::SessionEnded, object: key.id.0, details: json!({ "key": key.name }) };
        audit::record(&mut tx, key.owner, by, now, change).await?;
    }
    tx.commit().await?;
    Ok(())
}
