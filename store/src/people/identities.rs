//! Identities of people at the operator's OpenID provider, beside or instead of passkeys.
//!
//! An identity with which somebody joins for the first time is stored by [`crate::people::join_with`]. One who is
//! signed in already, by a passkey for example, links theirs here.

use crate::people::{
    Identity,
    audit::{self, Action, Actor, Change},
    sessions::IDLE_TTL,
};
use chrono::{DateTime, Utc};
use domain::PersonId;
use serde_json::json;
use sqlx::PgPool;

/// Maximum number of identities of a person.
const MAX_IDENTITIES: i64 = 20;

/// A linked identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The provider.
    pub issuer: String,
    /// The provider's id of the person.
    pub subject: String,
    /// When it was linked.
    pub created_at: DateTime<Utc>,
}

/// The result of linking an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// It signs the person in from now on, or did before.
    Linked,
    /// It belongs to another person.
    Taken,
    /// The person has the maximum number.
    TooMany,
    /// The session in which linking began has ended.
    SignedOut,
}

/// Returns the identities of a person, oldest first.
pub async fn list(db: &PgPool, person: PersonId) -> sqlx::Result<Vec<Linked>> {
    sqlx::query_as!(
        Linked,
        "select issuer, subject, created_at from identities where person_id = $1
         order by created_at, issuer, subject limit $2",
        person.0,
        MAX_IDENTITIES
    )
    .fetch_all(db)
    .await
}

/// Links an identity to the person who began it in the session with this id.
pub async fn link(
    db: &PgPool,
    session: &str,
    person: PersonId,
    identity: &Identity,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Linking> {
    let mut tx = crate::begin(db).await?;
    // Locked, so that of two that are linked concurrently the second sees the first.
    let member = sqlx::query!(
        "select m.id, m.email from people p join members m on m.person_id = p.id
           join sessions s on s.member_id = m.id
         where p.id = $1 and m.status = 'active' and s.digest = $2 and s.expires_at > $3
           and coalesce(s.last_used_at, s.created_at) > $4
         for no key update of p",
        person.0,
        hex::decode(session).unwrap_or_default(),
        now,
        now - IDLE_TTL
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(member) = member else { return Ok(Linking::SignedOut) };
    let owner = sqlx::query_scalar!(
        "select person_id from identities where issuer = $1 and subject = $2",
        identity.issuer,
        identity.subject
    )
    .fetch_optional(&mut *tx)
    .await?;
    match owner {
        Some(owner) if owner == person.0 => return Ok(Linking::Linked),
        Some(_) => return Ok(Linking::Taken),
        None => {}
    }
    let count =
        sqlx::query_scalar!(r#"select count(*) as "count!" from identities where person_id = $1"#, person.0)
            .fetch_one(&mut *tx)
            .await?;
    if count >= MAX_IDENTITIES {
        return Ok(Linking::TooMany);
    }
    let linked = sqlx::query!(
        "insert into identities (issuer, subject, person_id, created_at) values ($1, $2, $3, $4)
         on conflict do nothing",
        identity.issuer,
        identity.subject,
        person.0,
        now
    )
    .execute(&mut *tx)
    .await?;
    if linked.rows_affected() == 0 {
        return Ok(Linking::Taken);
    }
    let by = Actor { member: Some((member.id.into(), member.email)), ..by.clone() };
    let details = json!({ "issuer": identity.issuer });
    let change = Change { action: Action::IdentityLinked, object: person.0, details };
    audit::record_person(&mut tx, person, &by, now, &change).await?;
    tx.commit().await?;
    Ok(Linking::Linked)
}

/// The result of unlinking an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlinking {
    /// It signs nobody in any more.
    Unlinked,
    /// It is the only way for the person to sign in, and stays.
    Last,
    /// The person has no such identity.
    NotFound,
}

/// Unlinks an identity of a person, unless it is their only way to sign in.
pub async fn unlink(
    db: &PgPool,
    person: PersonId,
    issuer: &str,
    subject: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Unlinking> {
    let mut tx = crate::begin(db).await?;
    // Locked, as when a passkey is removed, so that one way to sign in stays.
    sqlx::query!("select from people where id = $1 for no key update", person.0)
        .fetch_optional(&mut *tx)
        .await?;
    let unlinked = sqlx::query!(
        "delete from identities where person_id = $1 and issuer = $2 and subject = $3",
        person.0,
        issuer,
        subject
    )
    .execute(&mut *tx)
    .await?;
    if unlinked.rows_affected() == 0 {
        return Ok(Unlinking::NotFound);
    }
    let has_another = sqlx::query_scalar!(
        r#"select exists (select from passkeys where person_id = $1)
             or exists (select from identities where person_id = $1) as "another!""#,
        person.0
    )
    .fetch_one(&mut *tx)
    .await?;
    if !has_another {
        return Ok(Unlinking::Last);
    }
    let change =
        Change { action: Action::IdentityUnlinked, object: person.0, details: json!({ "issuer": issuer }) };
    audit::record_person(&mut tx, person, by, now, &change).await?;
    tx.commit().await?;
    Ok(Unlinking::Unlinked)
}
