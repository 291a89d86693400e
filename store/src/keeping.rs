//! Grants that are to be renewed before they end.
//!
//! Whoever brings an account a grant leaves a message for it in the same transaction. A grant without an
//! end needs nobody; one that was lost has to be given again by its owner.

use crate::outbox;
use domain::{
    AccountId, Owner,
    outbox::{ExpiringGrant, Message},
};
use sqlx::{PgConnection, PgExecutor};

/// The grant of an active account, where it has an end.
pub async fn find(
    db: impl PgExecutor<'_>,
    owner: Owner,
    account: AccountId,
) -> sqlx::Result<Option<ExpiringGrant>> {
    let row = sqlx::query!(
        r#"select platform, grant_version, coalesce(granted_at, updated_at) as "granted_at!",
             token_expires_at as "expires_at!"
           from accounts
           where id = $1 and org_id = $2 and mode = $3 and status = 'active' and grant_sealed is not null
             and token_expires_at is not null"#,
        account.0,
        owner.org.0,
        owner.mode.as_str()
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| ExpiringGrant {
        account,
        owner,
        platform: row.platform,
        grant_version: row.grant_version,
        granted_at: row.granted_at,
        expires_at: row.expires_at,
    }))
}

/// Leaves word that an account has another grant, or may be spoken for again.
pub(crate) async fn tell(tx: &mut PgConnection, owner: Owner, account: AccountId) -> sqlx::Result<()> {
    match find(&mut *tx, owner, account).await? {
        Some(keeping) => outbox::push(tx, &Message::RenewGrant(keeping)).await,
        None => Ok(()),
    }
}
