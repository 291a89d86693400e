//! Opening a grant for a session, and exchanging one that was refused or will end for a fresh one.
//!
//! A rotating refresh token dies when it is used twice, so one process at a time refreshes an
//! account: it takes a lease in the account's row, and the others wait for what it brings.

use crate::{Deps, media};
use anyhow::Context;
use domain::{AccountId, ErrorCode, Failure, NetworkId, Owner, outbox::ExpiringGrant};
use platforms::{App, Checkpoint, Checkpoints, Grant, Platform, Renewal, Session, Wire};
use std::{borrow::Cow, sync::Arc, time::Duration};
use store::{
    accounts, keeping,
    networks::{self, Credentials},
    publishing::{self as facts, Account, Key, Lease},
    vault,
};

/// How long a refresh may take before another process may try: longer than its one or two calls and
/// [`KEEPING`] together.
const LEASE: Duration = Duration::from_secs(240);
/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(250);
/// How long they look before they give their worker's slot back.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long the database may be away before a fresh grant is given up: what it replaces may be dead by now.
const KEEPING: Duration = Duration::from_secs(60);

/// An account, its platform and its opened grant: what a [`Session`] borrows.
pub(crate) struct Line<'a> {
    pub(crate) platform: &'static dyn Platform,
    account: platforms::Account,
    grant: Grant,
    app: Option<App>,
    wire: Cow<'a, Wire>,
    now: fn() -> chrono::DateTime<chrono::Utc>,
    media: Arc<media::OwnerMedia>,
}

impl<'a> Line<'a> {
    /// Opens an account's grant.
    ///
    /// # Errors
    ///
    /// A failure when the account can't be spoken for: no grant, no adapter, no sandbox. A fault when
    /// the grant can't be opened with the keys of this worker.
    pub(crate) async fn open(
        deps: &'a Deps,
        owner: Owner,
        account: &Account,
    ) -> anyhow::Result<Result<Self, Failure>> {
        let Some(platform) = platforms::get(&account.platform) else {
            return Ok(Err(Failure::rejected(501, format!("{} is not supported", account.platform))));
        };
        let Some(wire) = deps.wires.of(owner) else {
            return Ok(Err(Failure::rejected(501, "this installation runs no sandbox for test mode")));
        };
        let Some(sealed) = &account.grant_sealed else {
            return Ok(Err(Failure::revoked("the account is not connected any more")));
        };
        let grant = opened(deps, owner, account.id, sealed)?;
        Ok(Ok(Self {
            platform,
            account: platforms::Account {
                network_unique_id: account.network_unique_id.clone(),
                username: account.username.clone(),
                account_type: account.account_type.clone(),
            },
            grant,
            app: app(deps, owner, platform.id(), account.network).await?,
            wire,
            now: deps.now,
            media: media::OwnerMedia::of(deps, owner),
        }))
    }

    /// The session, keeping its checkpoints where it is told.
    pub(crate) fn session(&'a self, checkpoints: &'a dyn Checkpoints) -> Session<'a> {
        Session {
            platform: self.platform,
            account: &self.account,
            grant: &self.grant,
            app: self.app.as_ref(),
            now: self.now,
            wire: &self.wire,
            checkpoints,
            media: self.media.clone(),
        }
    }
}

fn opened(deps: &Deps, owner: Owner, account: AccountId, sealed: &[u8]) -> anyhow::Result<Grant> {
    let plain = deps.opener.open(sealed, &vault::aad_grant(owner, account))?;
    serde_json::from_slice(&plain).context("a grant reads back as written")
}

/// The app that a grant was or will be given to: the organization's own where there is one, removed or
/// not, else a shared one.
pub(crate) async fn app(
    deps: &Deps,
    owner: Owner,
    platform: &str,
    network: Option<NetworkId>,
) -> anyhow::Result<Option<App>> {
    let Some(network) = network else { return Ok(deps.apps.of(owner.mode, platform)) };
    let credentials = networks::credentials(&deps.db, owner, network).await?;
    let Some(Credentials { client_id: Some(client_id), secret_sealed }) = credentials else {
        return Ok(None);
    };
    let open = |sealed: Vec<u8>| deps.opener.open(&sealed, &vault::aad_client_secret(owner, network));
    let secret = secret_sealed.map(open).transpose()?;
    let client_secret = secret.map(String::from_utf8).transpose().context("a client secret is text")?;
    Ok(Some(App { client_id, client_secret }))
}

/// A grant that its platform refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) owner: Owner,
    pub(crate) account: AccountId,
    /// Which grant it was: a later one need not be refreshed again.
    pub(crate) version: i64,
    /// The target that met the refusal, where it was one: its timeline tells what became of it.
    pub(crate) target: Option<Key>,
}

/// How refreshing ended when it did not bring a grant.
pub(crate) enum Unrefreshed {
    /// It never will: the account's state says so already.
    MediaFailure(Failure),
    /// Not now.
    Later(Failure),
}

/// Brings a fresh grant, or waits for the one that somebody else is bringing.
pub(crate) async fn refresh(deps: &Deps, refused: Refused) -> anyhow::Result<Result<(), Unrefreshed>> {
    let Refused { owner, account, version, .. } = refused;
    let patience = tokio::time::Instant::now() + PATIENCE;
    loop {
        match facts::lease(&deps.db, owner, account, version, LEASE).await? {
            Lease::Ours(account) => {
                let outcome = exchange(deps, refused, &account).await;
                // Those who wait look again, whatever came of it.
                facts::release(&deps.db, account.id, account.grant_version).await?;
                return outcome;
            }
            Lease::Fresh => return Ok(Ok(())),
            Lease::Gone => {
                return Ok(Err(Unrefreshed::MediaFailure(Failure::revoked(
                    "the account is not connected any more",
                ))));
            }
            Lease::Revoked => {
                let message = "the platform took back what it granted: the account has to be connected again";
                return Ok(Err(Unrefreshed::MediaFailure(Failure::revoked(message))));
            }
            Lease::Taken if tokio::time::Instant::now() > patience => {
                let failure = Failure::network("another refresh of the account is still under way", false);
                return Ok(Err(Unrefreshed::Later(failure)));
            }
            Lease::Taken => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Renews a grant ahead of its end, unless that was done meanwhile. Gives the grant that is there then;
/// `None` when there is none to keep: it has no end, was lost, or the account was disconnected.
pub(crate) async fn renew(
    deps: &Deps,
    old: &ExpiringGrant,
) -> anyhow::Result<Result<Option<ExpiringGrant>, Failure>> {
    let ExpiringGrant { owner, account, grant_version: version, .. } = *old;
    let found = keeping::find(&deps.db, owner, account).await?;
    if found.as_ref().is_none_or(|found| found.grant_version > version) {
        return Ok(Ok(found));
    }
    let left = (old.expires_at - (deps.now)()).to_std().unwrap_or_default();
    if !left.is_zero() && is_barren(deps, old).await? {
        let failure = Failure::token_expired("nothing renews the grant: it serves until it ends");
        return Ok(Err(Failure { retry_after: Some(left), ..failure }));
    }
    let refreshed = refresh(deps, Refused { owner, account, version, target: None }).await?;
    let found = keeping::find(&deps.db, owner, account).await?;
    Ok(match refreshed {
        Err(Unrefreshed::MediaFailure(failure) | Unrefreshed::Later(failure))
            if found.as_ref().is_some_and(|found| found.grant_version == version) =>
        {
            Err(failure)
        }
        _ => Ok(found),
    })
}

/// Whether a grant came without a refresh token where one is needed: LinkedIn gives most apps none. It is
/// good until its end all the same.
async fn is_barren(deps: &Deps, old: &ExpiringGrant) -> anyhow::Result<bool> {
    let renewal = platforms::get(&old.platform).map(Platform::renewal);
    if renewal != Some(Renewal::Anytime) {
        return Ok(false);
    }
    let Some(kept) = accounts::grant(&deps.db, old.owner, old.account).await? else { return Ok(false) };
    let grant = opened(deps, old.owner, old.account, &kept.sealed)?;
    Ok(grant.refresh_token.is_none_or(|token| token.is_empty()))
}

async fn exchange(
    deps: &Deps,
    refused: Refused,
    account: &Account,
) -> anyhow::Result<Result<(), Unrefreshed>> {
    let owner = refused.owner;
    let line = match Line::open(deps, owner, account).await? {
        Ok(line) => line,
        Err(failure) => return Ok(Err(Unrefreshed::MediaFailure(failure))),
    };
    match line.platform.refresh(&line.session(&Unkept)).await {
        Ok(mut fresh) => {
            // Some platforms answer without a refresh token, or with an empty one, and mean: keep yours.
            if fresh.refresh_token.as_deref().is_none_or(str::is_empty) {
                fresh.refresh_token = line.grant.refresh_token.clone();
            }
            if fresh.extra.is_null() {
                fresh.extra = line.grant.extra.clone();
            }
            let plain = serde_json::to_vec(&fresh).expect("a grant is plain data");
            let sealed = deps.sealer.seal(&plain, &vault::aad_grant(owner, account.id));
            let now = (deps.now)();
            let patience = tokio::time::Instant::now() + KEEPING;
            let (version, ends) = (account.grant_version, fresh.expires_at);
            while let Err(error) =
                accounts::store_grant(&deps.db, owner, account.id, &sealed, version, ends, now).await
            {
                if !store::is_unavailable(&error) || tokio::time::Instant::now() > patience {
                    return Err(error.into());
                }
                tokio::time::sleep(LOOK).await;
            }
            note(deps, refused, "Got a fresh access token").await?;
            Ok(Ok(()))
        }
        // The platform was asked and said no: another try would say the same, or worse, burn the grant.
        Err(failure) if failure.code == ErrorCode::TokenExpired || failure.code.is_permanent() => {
            let now = (deps.now)();
            facts::lose_grant(&deps.db, owner, account.id, account.grant_version, &failure, now).await?;
            note(deps, refused, &format!("Refresh refused: {}", failure.message)).await?;
            Ok(Err(Unrefreshed::MediaFailure(failure)))
        }
        Err(failure) => {
            note(deps, refused, &format!("Refresh failed, to be repeated: {failure}")).await?;
            Ok(Err(Unrefreshed::Later(failure)))
        }
    }
}

/// Tells the target that met the refusal, where it was one.
async fn note(deps: &Deps, refused: Refused, message: &str) -> store::Result<()> {
    match refused.target {
        Some(key) => facts::note(&deps.db, key, "refresh", message, (deps.now)()).await,
        None => Ok(()),
    }
}

/// What has no steps to keep: everything but publishing.
pub(crate) struct Unkept;

#[async_trait::async_trait]
impl Checkpoints for Unkept {
    async fn save(&self, _: &Checkpoint) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_what_it_is_for() {
        assert!(LEASE > 2 * platforms::TIMEOUT + KEEPING);
    }
}
