//! Refreshing grants: after a refusal, and ahead of expiry.
//!
//! A rotating refresh token dies when it is used twice, so one process at a time refreshes an account's grant:
//! it takes a lease in the account's row, and the others wait for the result.

use crate::{AccountSession, Engine, NoCheckpoints, Stop};
use domain::{AccountId, ErrorCode, Failure, Owner, outbox::ExpiringGrant};
use platforms::Refresh;
use std::time::Duration;
use store::{
    accounts::grants::{self, AccountGrant, Ends, Lease},
    publishing::{self, TargetKey},
    upkeep::vault,
};
use tokio::time::Instant;

/// Length of the lease: longer than the one or two calls of a refresh and [`STORE_TIMEOUT`] together.
const LEASE: Duration = Duration::from_secs(240);
/// Pause between two looks at a lease that another process holds, and between two tries to store a grant.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest wait for another process's refresh, which occupies a slot of the worker.
const LEASE_TIMEOUT: Duration = Duration::from_secs(90);
/// Longest wait for the database to store a fresh grant. The grant that it replaces may be dead by then.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);

/// A grant that its platform refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedGrant {
    /// Owner of the account.
    pub owner: Owner,
    /// Account.
    pub account: AccountId,
    /// Version of the grant; a later one is not refreshed again.
    pub version: i64,
    /// The target whose timeline reports the refresh, if publishing met the refusal.
    pub target: Option<TargetKey>,
}

/// Why there is no fresh grant.
#[derive(Debug)]
pub enum RefreshError {
    /// There never will be one: the account's status says so already.
    Lost(Failure),
    /// The platform gave no answer, refused for another reason than the grant, or another process still refreshes it.
    Later(Failure),
    /// Fanfare failed: the database or a key.
    Fault(anyhow::Error),
}

impl From<anyhow::Error> for RefreshError {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<store::Error> for RefreshError {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl Engine {
    /// Refreshes a grant, or waits for another process that does.
    ///
    /// # Errors
    ///
    /// See [`RefreshError`].
    pub async fn refresh(&self, refused: RefusedGrant) -> Result<(), RefreshError> {
        let RefusedGrant { owner, account, version, .. } = refused;
        let deadline = Instant::now() + LEASE_TIMEOUT;
        loop {
            match grants::lease(&self.db, owner, account, version, LEASE).await? {
                Lease::Acquired(account) => {
                    let refreshed = self.exchange(refused, &account).await;
                    let result = match &refreshed {
                        Ok(()) => "renewed",
                        Err(RefreshError::Lost(_)) => "refused",
                        Err(RefreshError::Later(_)) => "failed",
                        Err(RefreshError::Fault(_)) => "fault",
                    };
                    telemetry::metrics::renewal(&account.platform, owner.mode.as_str(), result);
                    // The others look again, whatever the result.
                    grants::release(&self.db, account.id, account.grant_version).await?;
                    return refreshed;
                }
                Lease::Refreshed => return Ok(()),
                Lease::Gone => {
                    let failure = Failure::revoked("the account is not connected any more");
                    return Err(RefreshError::Lost(failure));
                }
                Lease::Revoked => {
                    let message = "the platform revoked the grant: the account has to be connected again";
                    return Err(RefreshError::Lost(Failure::revoked(message)));
                }
                Lease::Held if Instant::now() > deadline => {
                    let message = "another refresh of the account is still under way";
                    return Err(RefreshError::Later(Failure::network(message, false)));
                }
                Lease::Held => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Renews a grant ahead of its expiry, unless that was done meanwhile, and returns the current one; `None`
    /// when there is nothing to renew any more: the grant has no end or was lost, or the account was
    /// disconnected.
    ///
    /// # Errors
    ///
    /// A failure when the grant was not renewed; its `retry_after` names the time of the next try where it is
    /// known.
    pub async fn renew(&self, old: &ExpiringGrant) -> Result<Option<ExpiringGrant>, Stop> {
        let ExpiringGrant { owner, account, grant_version: version, .. } = *old;
        let current = grants::expiring(&self.db, owner, account).await?;
        if current.as_ref().is_none_or(|current| current.grant_version > version) {
            return Ok(current);
        }
        let left = (old.expires_at - (self.now)()).to_std().unwrap_or_default();
        if !left.is_zero() && self.lacks_refresh_token(old).await? {
            let failure = Failure::token_expired("nothing renews the grant: it serves until it ends");
            return Err(failure.after(Some(left)).into());
        }
        let refreshed = self.refresh(RefusedGrant { owner, account, version, target: None }).await;
        let current = grants::expiring(&self.db, owner, account).await?;
        match refreshed {
            Err(RefreshError::Fault(error)) => Err(error.into()),
            Err(RefreshError::Lost(failure) | RefreshError::Later(failure))
                if current.as_ref().is_some_and(|current| current.grant_version == version) =>
            {
                Err(failure.into())
            }
            Ok(()) | Err(RefreshError::Lost(_) | RefreshError::Later(_)) => Ok(current),
        }
    }

    /// Returns whether a grant lacks the refresh token that its platform needs for a refresh. LinkedIn gives
    /// most apps none; the grant is valid until it expires.
    async fn lacks_refresh_token(&self, old: &ExpiringGrant) -> anyhow::Result<bool> {
        let refresh = (self.adapters)(&old.platform).map(|platform| platform.auth.refresh());
        if refresh != Some(Refresh::Anytime) {
            return Ok(false);
        }
        let Some(kept) = grants::get(&self.db, old.owner, old.account).await? else { return Ok(false) };
        let grant = self.open_grant(old.owner, old.account, &kept.sealed)?;
        Ok(grant.refresh_token().is_none())
    }

    /// Exchanges a grant for a fresh one and stores it.
    async fn exchange(&self, refused: RefusedGrant, account: &AccountGrant) -> Result<(), RefreshError> {
        let owner = refused.owner;
        let session = AccountSession::open(self, owner, account).await.map_err(|stop| match stop {
            Stop::Failure(failure) => RefreshError::Lost(failure),
            Stop::Fault(error) => RefreshError::Fault(error),
        })?;
        match session.platform.publisher.refresh(&session.session(&NoCheckpoints)).await {
            Ok(mut fresh) => {
                // Some platforms answer without a refresh token, or with an empty one: the old one stays valid.
                if fresh.refresh_token().is_none() {
                    fresh.refresh_token = session.grant.refresh_token.clone();
                }
                if fresh.extra.is_null() {
                    fresh.extra = session.grant.extra.clone();
                }
                let plain = serde_json::to_vec(&fresh).expect("a grant is plain data");
                let sealed = self.sealer.seal(&plain, &vault::aad_grant(owner, account.id));
                let now = (self.now)();
                let deadline = Instant::now() + STORE_TIMEOUT;
                let version = account.grant_version;
                let ends = Ends { token: fresh.expires_at, grant: fresh.ends_at };
                while let Err(error) =
                    grants::replace(&self.db, owner, account.id, &sealed, version, ends, now).await
                {
                    if !store::is_unavailable(&error) || Instant::now() > deadline {
                        return Err(error.into());
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                self.note(refused, "Got a fresh access token").await?;
                Ok(())
            }
            // The platform refused the grant: another try would get the same answer, or burn the grant. Any other refusal
            // says nothing of it, such as that of a Page that is blocked for a while.
            Err(failure) if failure.code == ErrorCode::TokenExpired => {
                self.mark_lost(owner, account.id, account.grant_version, &failure).await?;
                self.note(refused, &format!("Refresh refused: {}", failure.message)).await?;
                Err(RefreshError::Lost(failure))
            }
            Err(failure) => {
                self.note(refused, &format!("Refresh failed, to be repeated: {failure}")).await?;
                Err(RefreshError::Later(failure))
            }
        }
    }

    /// Marks an account's grant as lost, because its platform refused it.
    ///
    /// # Errors
    ///
    /// When the database doesn't answer.
    pub async fn mark_lost(
        &self,
        owner: Owner,
        account: AccountId,
        version: i64,
        failure: &Failure,
    ) -> store::Result<()> {
        grants::mark_lost(&self.db, owner, account, version, failure, (self.now)()).await
    }

    /// Reports a refresh on the timeline of the target that met the refusal.
    async fn note(&self, refused: RefusedGrant, message: &str) -> store::Result<()> {
        match refused.target {
            Some(key) => publishing::note(&self.db, key, "refresh", message, (self.now)()).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_its_refresh() {
        assert!(LEASE > 2 * platforms::TIMEOUT + STORE_TIMEOUT);
    }
}
