//! Ceilings of a plan: how much of a kind an owner may have.
//!
//! A transaction that creates something locks the organization's row and then counts, so that of two that run at
//! once the second sees the first. The lock is the weak one that foreign keys don't wait for: publishing and all
//! else goes on meanwhile, and only creations of the same organization wait for each other.

use chrono::{DateTime, Utc};
use domain::{OrgId, Owner, member::INVITATION_TTL};
use sqlx::{PgConnection, PgPool};

/// A ceiling that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The ceiling.
    pub limit: u64,
    /// Number in use.
    pub used: u64,
}

/// Numbers of an owner's rows that a plan limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Webhook endpoints.
    pub webhook_endpoints: u64,
    /// API keys that are not revoked, rotated or expired.
    pub api_keys: u64,
    /// Profiles.
    pub profiles: u64,
    /// Members of the organization, and invitations that can be accepted.
    pub team_members: u64,
    /// Posting slots of the organization and its accounts.
    pub slots: u64,
    /// Size of all media files.
    pub storage_bytes: u64,
}

/// Something of which a plan limits the number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    WebhookEndpoints,
    ApiKeys,
    Profiles,
    TeamMembers,
    Slots,
    StorageBytes,
}

/// Locks the organization's row until the transaction ends: what is counted next stays true.
///
/// A statement of its own, so that the next one sees what was created while this one waited.
pub(crate) async fn lock(tx: &mut PgConnection, org: OrgId) -> sqlx::Result<()> {
    sqlx::query!("select from organizations where id = $1 for no key update", org.0).execute(tx).await?;
    Ok(())
}

/// Checks that the owner may have `more` of a kind, and keeps it true until the transaction ends. Costs nothing
/// without a limit.
pub(crate) async fn check(
    tx: &mut PgConnection,
    owner: Owner,
    kind: Kind,
    more: u64,
    limit: Option<u64>,
    now: DateTime<Utc>,
) -> sqlx::Result<Result<(), Exceeded>> {
    let Some(limit) = limit else { return Ok(Ok(())) };
    lock(tx, owner.org).await?;
    let used = count(tx, owner, kind, now).await?;
    Ok(if used.saturating_add(more) > limit { Err(Exceeded { limit, used }) } else { Ok(()) })
}

async fn count(tx: &mut PgConnection, owner: Owner, kind: Kind, now: DateTime<Utc>) -> sqlx::Result<u64> {
    let (org, mode) = (owner.org.0, owner.mode.as_str());
    let counted = match kind {
        Kind::WebhookEndpoints => {
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from webhooks
                   where org_id = $1 and mode = $2 and deleted_at is null"#,
                org,
                mode
            )
            .fetch_one(tx)
            .await
        }
        Kind::ApiKeys => {
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from api_keys
                   where org_id = $1 and mode = $2 and client is null and revoked_at is null
                     and (expires_at is null or expires_at > $3)"#,
                org,
                mode,
                now
            )
            .fetch_one(tx)
            .await
        }
        Kind::Profiles => {
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from profiles where org_id = $1 and mode = $2"#,
                org,
                mode
            )
            .fetch_one(tx)
            .await
        }
        Kind::TeamMembers => {
            sqlx::query_scalar!(
                r#"select count(*) as "count!" from members
                   where org_id = $1 and (status = 'active' or invited_at > $2)"#,
                org,
                now - INVITATION_TTL
            )
            .fetch_one(tx)
            .await
        }
        Kind::Slots => {
            sqlx::query_scalar!(
                r#"select coalesce(sum(jsonb_array_length(s.slots)), 0)::bigint as "count!"
                   from slots s left join accounts a on a.id = s.account_id
                   where s.org_id = $1 and s.mode = $2
                     and (s.account_id is null or a.status <> 'disconnected')"#,
                org,
                mode
            )
            .fetch_one(tx)
            .await
        }
        Kind::StorageBytes => {
            sqlx::query_scalar!(
                r#"select coalesce(sum(stored_bytes(m)), 0)::bigint as "count!" from media m
                   where org_id = $1 and mode = $2 and deleted_at is null"#,
                org,
                mode
            )
            .fetch_one(tx)
            .await
        }
    };
    Ok(u64::try_from(counted?).unwrap_or_default())
}

/// Counts all that a plan limits.
pub async fn counts(db: &PgPool, owner: Owner, now: DateTime<Utc>) -> sqlx::Result<Counts> {
    let mut connection = db.acquire().await?;
    let mut of = async |kind| count(&mut connection, owner, kind, now).await;
    Ok(Counts {
        webhook_endpoints: of(Kind::WebhookEndpoints).await?,
        api_keys: of(Kind::ApiKeys).await?,
        profiles: of(Kind::Profiles).await?,
        team_members: of(Kind::TeamMembers).await?,
        slots: of(Kind::Slots).await?,
        storage_bytes: of(Kind::StorageBytes).await?,
    })
}
