//! Profiles: groups of accounts, each account in one at most.
//!
//! Whoever changes a group locks the profile first and then all accounts that join or leave it, in
//! the order of their ids, so that two changes at the same moment wait for each other and nothing worse.

use crate::Change;
use chrono::{DateTime, Utc};
use domain::{AccountId, Owner, ProfileId};
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use std::collections::HashMap;
use uuid::Uuid;

/// A group of accounts.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its identifier.
    pub id: ProfileId,
    /// Its name, for people.
    pub name: String,
    /// The end tenant it belongs to.
    pub tenant_id: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// Its IANA time zone.
    pub timezone: String,
    /// Settings by platform; an object.
    pub default_config: Value,
    /// Its accounts, the oldest first.
    pub social_account_ids: Vec<Uuid>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// What a new profile is to be.
#[derive(Clone, Debug)]
pub struct NewProfile {
    /// Its name, for people.
    pub name: String,
    /// The end tenant it belongs to.
    pub tenant_id: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// Its IANA time zone.
    pub timezone: String,
    /// Settings by platform; an object.
    pub default_config: Value,
    /// Its accounts, none twice.
    pub accounts: Vec<AccountId>,
}

/// What becomes of a profile's fields.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Its name, for people.
    pub name: Option<String>,
    /// The end tenant it belongs to.
    pub tenant_id: Change<String>,
    /// What it is, for people.
    pub description: Change<String>,
    /// Its IANA time zone.
    pub timezone: Option<String>,
    /// Settings by platform; an object.
    pub default_config: Option<Value>,
    /// Its accounts, none twice: these and no others.
    pub accounts: Option<Vec<AccountId>>,
}

/// What writing a profile came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Saved {
    /// It is as it was asked for.
    Done(Profile),
    /// Nothing was written, for these accounts are not the owner's.
    Strangers(Vec<AccountId>),
}

/// Makes a profile. Its accounts leave the profiles that they were in.
pub async fn create(db: &PgPool, owner: Owner, new: NewProfile, now: DateTime<Utc>) -> sqlx::Result<Saved> {
    let mut tx = db.begin().await?;
    let id = ProfileId(Uuid::now_v7());
    sqlx::query!(
        "insert into profiles
           (id, org_id, mode, name, tenant_id, description, timezone, default_config, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        new.name,
        new.tenant_id,
        new.description,
        new.timezone,
        new.default_config,
        now
    )
    .execute(&mut *tx)
    .await?;
    let strangers = group(&mut tx, owner, id, &new.accounts, now).await?;
    if !strangers.is_empty() {
        tx.rollback().await?;
        return Ok(Saved::Strangers(strangers));
    }
    let profile = find(&mut tx, owner, id).await?.expect("it was just written");
    tx.commit().await?;
    Ok(Saved::Done(profile))
}

/// The owner's profiles, newest first.
pub async fn list(db: &PgPool, owner: Owner) -> sqlx::Result<Vec<Profile>> {
    sqlx::query_as!(
        Profile,
        r#"select id, name, tenant_id, description, timezone, default_config,
             array(select id from accounts
                   where accounts.profile_id = profiles.id and status <> 'disconnected'
                   order by created_at, id) as "social_account_ids!",
             created_at, updated_at
           from profiles where org_id = $1 and mode = $2 order by created_at desc, id desc"#,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await
}

/// One profile.
pub async fn get(db: &PgPool, owner: Owner, id: ProfileId) -> sqlx::Result<Option<Profile>> {
    let mut connection = db.acquire().await?;
    find(&mut connection, owner, id).await
}

async fn find(connection: &mut PgConnection, owner: Owner, id: ProfileId) -> sqlx::Result<Option<Profile>> {
    sqlx::query_as!(
        Profile,
        r#"select id, name, tenant_id, description, timezone, default_config,
             array(select id from accounts
                   where accounts.profile_id = profiles.id and status <> 'disconnected'
                   order by created_at, id) as "social_account_ids!",
             created_at, updated_at
           from profiles where id = $1 and org_id = $2 and mode = $3"#,
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(connection)
    .await
}

/// The settings of the profiles with these ids, those of other owners left out.
pub async fn configs(db: &PgPool, owner: Owner, ids: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Value>> {
    let rows = sqlx::query!(
        "select id, default_config from profiles where id = any($1) and org_id = $2 and mode = $3",
        ids,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.default_config)).collect())
}

/// Changes a profile; `None` when it is not there.
pub async fn edit(
    db: &PgPool,
    owner: Owner,
    id: ProfileId,
    edit: Edit,
    now: DateTime<Utc>,
) -> sqlx::Result<Option<Saved>> {
    let mut tx = db.begin().await?;
    let done = sqlx::query!(
        "update profiles set
           name = coalesce($4, name),
           tenant_id = case when $5 then $6 else tenant_id end,
           description = case when $7 then $8 else description end,
           timezone = coalesce($9, timezone), default_config = coalesce($10, default_config), updated_at = $11
         where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str(),
        edit.name,
        edit.tenant_id.is_made(),
        edit.tenant_id.value(),
        edit.description.is_made(),
        edit.description.value(),
        edit.timezone,
        edit.default_config,
        now
    )
    .execute(&mut *tx)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(None);
    }
    if let Some(accounts) = edit.accounts {
        let strangers = group(&mut tx, owner, id, &accounts, now).await?;
        if !strangers.is_empty() {
            tx.rollback().await?;
            return Ok(Some(Saved::Strangers(strangers)));
        }
    }
    let profile = find(&mut tx, owner, id).await?.expect("it is locked");
    tx.commit().await?;
    Ok(Some(Saved::Done(profile)))
}

/// Makes `accounts` the profile's accounts, and gives those that are not the owner's; the caller then
/// undoes what was done.
async fn group(
    tx: &mut PgConnection,
    owner: Owner,
    profile: ProfileId,
    accounts: &[AccountId],
    now: DateTime<Utc>,
) -> sqlx::Result<Vec<AccountId>> {
    let ids: Vec<_> = accounts.iter().map(|account| account.0).collect();
    let locked = sqlx::query!(
        r#"select id, status <> 'disconnected' as "is_connected!" from accounts
           where org_id = $1 and mode = $2 and (id = any($3) or profile_id = $4)
           order by id for update"#,
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        profile.0
    )
    .fetch_all(&mut *tx)
    .await?;
    let is_known = |id: &Uuid| locked.iter().any(|row| row.is_connected && row.id == *id);
    let strangers: Vec<_> = ids.iter().filter(|id| !is_known(id)).copied().map(AccountId).collect();
    if !strangers.is_empty() {
        return Ok(strangers);
    }
    sqlx::query!(
        "update accounts set profile_id = case when id = any($3) then $4::uuid end, updated_at = $5
         where org_id = $1 and mode = $2 and (id = any($3) or profile_id = $4)
           and profile_id is distinct from case when id = any($3) then $4::uuid end",
        owner.org.0,
        owner.mode.as_str(),
        &ids,
        profile.0,
        now
    )
    .execute(tx)
    .await?;
    Ok(Vec::new())
}

/// Removes a profile and leaves its accounts without one; false when it is not there.
pub async fn delete(db: &PgPool, owner: Owner, id: ProfileId, now: DateTime<Utc>) -> sqlx::Result<bool> {
    let mut tx = db.begin().await?;
    let found = sqlx::query_scalar!(
        "select id from profiles where id = $1 and org_id = $2 and mode = $3 for update",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(&mut *tx)
    .await?;
    if found.is_none() {
        return Ok(false);
    }
    group(&mut tx, owner, id, &[], now).await?;
    sqlx::query!(
        "delete from profiles where id = $1 and org_id = $2 and mode = $3",
        id.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
}
