//! Passkeys of people, as the API's WebAuthn library encodes them.

use crate::people::{
    audit::{self, Action, Actor, Change},
    sessions,
};
use chrono::{DateTime, Utc};
use domain::PersonId;
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

/// Maximum number of passkeys of a person.
pub const MAX_PASSKEYS: usize = 20;

/// A passkey to store.
#[derive(Clone, Debug)]
pub struct NewPasskey {
    /// Id that the authenticator gave it.
    pub credential_id: Vec<u8>,
    /// Public key and what else never changes.
    pub static_state: Vec<u8>,
    /// Counter and flags.
    pub dynamic_state: Vec<u8>,
    /// Label of the person.
    pub name: String,
}

/// A stored passkey.
#[derive(Clone, Debug)]
pub struct Passkey {
    /// The passkey's id here.
    pub id: Uuid,
    /// The person who has it.
    pub person: PersonId,
    /// Id that the authenticator gave it.
    pub credential_id: Vec<u8>,
    /// Public key and what else never changes.
    pub static_state: Vec<u8>,
    /// Counter and flags.
    pub dynamic_state: Vec<u8>,
    /// Label of the person.
    pub name: String,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When it was last used to sign in.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Adds a passkey. Returns its id; `None` when the credential is known, or the person has the maximum number.
pub async fn add(
    db: &PgPool,
    person: PersonId,
    new: NewPasskey,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Uuid>> {
    let mut tx = crate::begin(db).await?;
    let id = insert(&mut tx, person, new, by, now).await?;
    tx.commit().await?;
    Ok(id)
}

/// Adds a passkey within a transaction.
pub(crate) async fn insert(
    tx: &mut PgConnection,
    person: PersonId,
    new: NewPasskey,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Uuid>> {
    lock(tx, person).await?;
    let added = sqlx::query_scalar!(
        "insert into passkeys (id, person_id, credential_id, static_state, dynamic_state, name, created_at)
         select $1, $2, $3, $4, $5, $6, $7
         where (select count(*) from passkeys where person_id = $2) < $8
         on conflict (credential_id) do nothing
         returning id",
        Uuid::now_v7(),
        person.0,
        new.credential_id,
        new.static_state,
        new.dynamic_state,
        new.name,
        now,
        MAX_PASSKEYS as i64
    )
    .fetch_optional(&mut *tx)
    .await?;
    if let Some(id) = added {
        let change =
            Change { action: Action::PasskeyAdded, object: id, details: json!({ "name": new.name }) };
        audit::record_person(tx, person, by, now, &change).await?;
    }
    Ok(added)
}

/// Locks a person's passkeys until the transaction ends.
async fn lock(tx: &mut PgConnection, person: PersonId) -> sqlx::Result<()> {
    sqlx::query!("select from people where id = $1 for no key update", person.0).fetch_optional(tx).await?;
    Ok(())
}

/// Returns the passkeys of a person, oldest first.
pub async fn list(db: &PgPool, person: PersonId) -> sqlx::Result<Vec<Passkey>> {
    sqlx::query_as!(
        Passkey,
        r#"select id, person_id as person, credential_id, static_state, dynamic_state, name, created_at,
             last_used_at
           from passkeys where person_id = $1 order by created_at, id"#,
        person.0
    )
    .fetch_all(db)
    .await
}

/// Returns the passkey with a credential id.
pub async fn find(db: &PgPool, credential_id: &[u8]) -> sqlx::Result<Option<Passkey>> {
    sqlx::query_as!(
        Passkey,
        r#"select id, person_id as person, credential_id, static_state, dynamic_state, name, created_at,
             last_used_at
           from passkeys where credential_id = $1"#,
        credential_id
    )
    .fetch_optional(db)
    .await
}

/// The result of removing a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It was removed.
    Removed,
    /// It is the only way for the person to sign in, and stays.
    Last,
    /// The person has no such passkey.
    NotFound,
}

/// Removes a passkey of a person, unless it is their only way to sign in, and ends the sessions that it started, which
/// may be on a device that was lost. The session with the id `kept`, in which it is removed, goes on.
pub async fn remove(
    db: &PgPool,
    person: PersonId,
    id: Uuid,
    kept: &str,
    by: &Actor,
    now: DateTime<Utc>,
) -> sqlx::Result<Removal> {
    let mut tx = crate::begin(db).await?;
    lock(&mut tx, person).await?;
    // After the lock, by itself: of two that are removed concurrently, the second must not count the first.
    let others = sqlx::query_scalar!(
        r#"select (select count(*) from passkeys where person_id = $1 and id <> $2)
             + (select count(*) from identities where person_id = $1) as "others!""#,
        person.0,
        id
    )
    .fetch_one(&mut *tx)
    .await?;
    sessions::end_of_passkey(&mut tx, id, kept, by, now).await?;
    let name = sqlx::query_scalar!(
        "delete from passkeys where id = $1 and person_id = $2 returning name",
        id,
        person.0
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(name) = name else { return Ok(Removal::NotFound) };
    if others == 0 {
        return Ok(Removal::Last);
    }
    let change = Change { action: Action::PasskeyRemoved, object: id, details: json!({ "name": name }) };
    audit::record_person(&mut tx, person, by, now, &change).await?;
    tx.commit().await?;
    Ok(Removal::Removed)
}

/// Notes that a challenge was answered, by a digest of it. Returns false when it was answered before.
pub async fn spend(
    db: &PgPool,
    digest: &[u8],
    expires_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> sqlx::Result<bool> {
    let spent = sqlx::query!(
        "with ended as (delete from spent_challenges where expires_at <= $3)
         insert into spent_challenges (digest, expires_at) values ($1, $2) on conflict do nothing",
        digest,
        expires_at,
        now
    )
    .execute(db)
    .await?;
    Ok(spent.rows_affected() > 0)
}

/// Stores the counter and flags of a passkey that was used to sign in.
pub(crate) async fn touch(
    tx: &mut PgConnection,
    id: Uuid,
    dynamic_state: &[u8],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update passkeys set dynamic_state = $2, last_used_at = $3 where id = $1",
        id,
        dynamic_state,
        now
    )
    .execute(tx)
    .await?;
    Ok(())
}
