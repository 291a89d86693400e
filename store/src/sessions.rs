//! Who is signed in to the dashboard.
//!
//! A session is as good as the key that it was begun with: it is looked up together with it, so that
//! revoking the key, its expiry and its rotation end the session with the next request. What the cookie
//! holds is far beyond guessing, so a plain SHA-256 digest is all that is kept of it.

use crate::{
    decode::{self, Parsed},
    keys::{self, Key},
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{Mode, Owner, scope::Scope};
use rand::distr::{Alphanumeric, SampleString};
use sqlx::PgPool;

/// How long a session lasts, whatever is done in it.
pub const LIFE: TimeDelta = TimeDelta::hours(12);
/// Random characters of a session's text: 256 bits.
const LENGTH: usize = 43;

/// Begins a session and gives its text, here and never again. Sessions that have ended go.
pub async fn begin(db: &PgPool, key: &Key, now: DateTime<Utc>) -> sqlx::Result<String> {
    // `rand::rng()` is a cryptographically secure generator, seeded by the operating system.
    let text = Alphanumeric.sample_string(&mut rand::rng(), LENGTH);
    sqlx::query!(
        "with ended as (delete from sessions where expires_at <= $5)
         insert into sessions (digest, org_id, mode, key_id, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6)",
        keys::digest(&text),
        key.owner.org.0,
        key.owner.mode.as_str(),
        key.id.0,
        now,
        now + LIFE
    )
    .execute(db)
    .await?;
    Ok(text)
}

/// Whoever is signed in.
#[derive(Clone, Debug)]
pub struct Session {
    /// The key that the session was begun with.
    pub key: Key,
    /// The name of its organization.
    pub organization: String,
}

/// The session that a text stands for; `None` when it has ended, or its key has.
pub async fn find(db: &PgPool, text: &str, now: DateTime<Utc>) -> sqlx::Result<Option<Session>> {
    let row = sqlx::query!(
        r#"select k.id, k.org_id, k.mode as "mode: Parsed<Mode>", k.name, k.scopes as "scopes: Vec<Parsed<Scope>>",
             k.last_four, k.expires_at, k.revoked_at, k.last_used_at, k.created_at, o.name as organization
           from sessions s
           join api_keys k on k.id = s.key_id and k.org_id = s.org_id and k.mode = s.mode
           join organizations o on o.id = k.org_id
           where s.digest = $1 and s.expires_at > $2
             and (k.revoked_at is null or k.revoked_at > $2) and (k.expires_at is null or k.expires_at > $2)"#,
        keys::digest(text),
        now
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Session {
        key: Key {
            id: row.id.into(),
            owner: Owner { org: row.org_id.into(), mode: row.mode.0 },
            name: row.name,
            scopes: decode::unwrap(row.scopes),
            last_four: row.last_four,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            created_at: row.created_at,
        },
        organization: row.organization,
    }))
}

/// Ends a session.
pub async fn end(db: &PgPool, text: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from sessions where digest = $1", keys::digest(text)).execute(db).await?;
    Ok(())
}
