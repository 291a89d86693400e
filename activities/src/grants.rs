//! Opening a grant for a session, and exchanging a refused one for a fresh one.
//!
//! A rotating refresh token dies when it is used twice, so one process at a time refreshes an
//! account: it takes a lease in the account's row, and the others wait for what it brings.

use crate::{Deps, media};
use anyhow::Context;
use domain::{AccountId, ErrorCode, Failure, NetworkId, Owner};
use platforms::{App, Checkpoint, Checkpoints, Grant, Platform, Session, Wire};
use std::{sync::Arc, time::Duration};
use store::{
    accounts,
    networks::{self, Credentials},
    publishing::{self as facts, Account, Key, Lease},
    vault,
};

/// How long a refresh may take before another process may try: longer than its one or two calls.
const LEASE: Duration = Duration::from_secs(150);
/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(250);
/// How long they look before they give their worker's slot back.
const PATIENCE: Duration = Duration::from_secs(90);

/// An account, its platform and its opened grant: what a [`Session`] borrows.
pub(crate) struct Line<'a> {
    pub(crate) platform: &'static dyn Platform,
    account: platforms::Account,
    grant: Grant,
    app: Option<App>,
    wire: &'a Wire,
    now: fn() -> chrono::DateTime<chrono::Utc>,
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
        let Some(wire) = deps.wires.of(owner.mode) else {
            return Ok(Err(Failure::rejected(501, "this installation runs no sandbox for test mode")));
        };
        let Some(sealed) = &account.grant_sealed else {
            return Ok(Err(Failure::revoked("the account is not connected any more")));
        };
        let opened = deps.opener.open(sealed, &vault::aad_grant(owner, account.id))?;
        let grant = serde_json::from_slice(&opened).context("a grant reads back as written")?;
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
            wire: self.wire,
            checkpoints,
            media: Arc::new(media::Empty),
        }
    }
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
    Lost(Failure),
    /// Not now.
    Later(Failure),
}

/// Brings a fresh grant, or waits for the one that somebody else is bringing.
pub(crate) async fn refresh(deps: &Deps, refused: Refused) -> anyhow::Result<Result<(), Unrefreshed>> {
    let Refused { owner, account, version, .. } = refused;
    let patience = tokio::time::Instant::now() + PATIENCE;
    loop {
        match facts::lease(&deps.db, owner, account, version, LEASE, (deps.now)()).await? {
            Lease::Ours(account) => return exchange(deps, refused, &account).await,
            Lease::Fresh => return Ok(Ok(())),
            Lease::Gone => {
                return Ok(Err(Unrefreshed::Lost(Failure::revoked("the account is not connected any more"))));
            }
            Lease::Taken if tokio::time::Instant::now() > patience => {
                let failure = Failure::network("another refresh of the account is still under way", false);
                return Ok(Err(Unrefreshed::Later(failure)));
            }
            Lease::Taken => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn exchange(
    deps: &Deps,
    refused: Refused,
    account: &Account,
) -> anyhow::Result<Result<(), Unrefreshed>> {
    let owner = refused.owner;
    let line = match Line::open(deps, owner, account).await? {
        Ok(line) => line,
        Err(failure) => return Ok(Err(Unrefreshed::Lost(failure))),
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
            accounts::store_grant(
                &deps.db,
                owner,
                account.id,
                &sealed,
                account.grant_version,
                fresh.expires_at,
                now,
            )
            .await?;
            note(deps, refused, "Got a fresh access token").await?;
            Ok(Ok(()))
        }
        // The platform was asked and said no: another try would say the same, or worse, burn the grant.
        Err(failure) if failure.code == ErrorCode::TokenExpired || failure.code.is_permanent() => {
            let now = (deps.now)();
            facts::lose_grant(&deps.db, owner, account.id, account.grant_version, &failure, now).await?;
            note(deps, refused, &format!("Refresh refused: {}", failure.message)).await?;
            Ok(Err(Unrefreshed::Lost(failure)))
        }
        Err(failure) => {
            facts::release(&deps.db, account.id, account.grant_version).await?;
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
