//! Sessions: an account, its opened grant and its app, ready for calls to the platform.

use crate::{Engine, Stop, media::OwnerMedia};
use anyhow::Context;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{AccountId, AppConfig, Failure, Grant, NetworkId, Owner};
use platforms::{Account, Adapter, App, Checkpoint, Checkpoints, Session, Transport};
use std::{borrow::Cow, sync::Arc};
use store::{
    accounts::{
        grants::AccountGrant,
        networks::{self, Credentials},
    },
    upkeep::vault,
};

/// Owner of what a [`Session`] borrows.
pub struct AccountSession<'a> {
    /// The account's platform.
    pub platform: &'static Adapter,
    pub(crate) grant: Grant,
    account: Account,
    app: Option<App>,
    transport: Cow<'a, Transport>,
    now: fn() -> DateTime<Utc>,
    media: Arc<OwnerMedia>,
}

impl<'a> AccountSession<'a> {
    /// Opens an account's grant.
    ///
    /// # Errors
    ///
    /// A failure when the account can't be used: it has no grant, no adapter, or no sandbox. A fault when this
    /// worker's keys don't open the grant.
    pub async fn open(engine: &'a Engine, owner: Owner, account: &AccountGrant) -> Result<Self, Stop> {
        let (platform, transport) = engine.connect(owner, &account.platform)?;
        let sealed = account
            .grant_sealed
            .as_ref()
            .ok_or_else(|| Failure::revoked("the account is not connected any more"))?;
        Ok(Self {
            platform,
            grant: engine.open_grant(owner, account.id, sealed)?,
            account: Account {
                network_unique_id: account.network_unique_id.clone(),
                username: account.username.clone(),
                account_type: account.account_type.clone(),
            },
            app: engine.app(owner, platform.id, account.network).await?,
            transport,
            now: engine.now,
            media: OwnerMedia::of(engine, owner),
        })
    }

    /// Returns a session that stores its checkpoints in `checkpoints`.
    pub fn session(&'a self, checkpoints: &'a dyn Checkpoints) -> Session<'a> {
        Session {
            platform: self.platform,
            account: &self.account,
            grant: &self.grant,
            app: self.app.as_ref(),
            now: self.now,
            transport: &self.transport,
            checkpoints,
            media: self.media.clone(),
            skew: Arc::default(),
        }
    }
}

impl Engine {
    /// Returns a platform's adapter and the connection for an owner's calls.
    ///
    /// # Errors
    ///
    /// When there is no such adapter, or no sandbox for test mode.
    pub fn connect(
        &self,
        owner: Owner,
        platform: &str,
    ) -> Result<(&'static Adapter, Cow<'_, Transport>), Failure> {
        let adapter = (self.adapters)(platform)
            .ok_or_else(|| Failure::rejected(501, format!("{platform} is not supported")))?;
        let transport = self
            .transports
            .of(owner)
            .ok_or_else(|| Failure::rejected(501, "this installation runs no sandbox for test mode"))?;
        Ok((adapter, transport))
    }

    pub(crate) fn open_grant(
        &self,
        owner: Owner,
        account: AccountId,
        sealed: &[u8],
    ) -> anyhow::Result<Grant> {
        let plain = self.opener.open(sealed, &vault::aad_grant(owner, account))?;
        serde_json::from_slice(&plain).context("a grant reads back as written")
    }

    /// Returns the OAuth app that a grant belongs to: the organization's own if the account names one, even a
    /// removed one, else the shared app of the platform.
    ///
    /// # Errors
    ///
    /// When the database doesn't answer, or this worker's keys don't open the client secret.
    pub async fn app(
        &self,
        owner: Owner,
        platform: &str,
        network: Option<NetworkId>,
    ) -> anyhow::Result<Option<App>> {
        let Some(network) = network else { return Ok(self.apps.of(owner.mode, platform)) };
        let credentials = networks::credentials(&self.db, owner, network).await?;
        let Some(Credentials { client_id: Some(client_id), secret_sealed, extra_config }) = credentials
        else {
            return Ok(None);
        };
        let open = |sealed: Vec<u8>| self.opener.open(&sealed, &vault::aad_client_secret(owner, network));
        let secret = secret_sealed.map(open).transpose()?;
        let client_secret = secret.map(String::from_utf8).transpose().context("a client secret is text")?;
        let access = AppConfig::read(&extra_config).access;
        Ok(Some(App { client_id, client_secret, access }))
    }
}

/// Stores no checkpoints: for calls that have no steps.
pub struct NoCheckpoints;

#[async_trait]
impl Checkpoints for NoCheckpoints {
    async fn save(&self, _: &Checkpoint) -> Result<(), Failure> {
        Ok(())
    }
}
