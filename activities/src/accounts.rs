//! What a platform says about an account: whether it can be spoken for, what its settings can be; and
//! what it is told when the account leaves.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    grants::{self, Line, Unkept},
    publishing::repeat,
    share::Shares,
    voice,
};
use domain::{
    ErrorCode, Failure, SelectOption,
    outbox::{Disconnection, ExpiringGrant},
};
use std::sync::Arc;
use store::{accounts as facts, disconnect};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::{
    activities::{AccountRef, HealthReport, OptionsRequest, definition},
    disconnect_account::TRIES,
};

/// The activities about accounts.
pub(crate) struct Accounts {
    pub(crate) deps: Arc<Deps>,
    pub(crate) shares: Arc<Shares>,
}

#[activities]
impl Accounts {
    #[activity(definition = definition::CheckHealth)]
    pub(crate) async fn check_health(
        self: Arc<Self>,
        _cx: ActivityContext,
        account_ref: AccountRef,
    ) -> Result<HealthReport, ActivityError> {
        let deps = &self.deps;
        let _share = self.shares.admit(account_ref.owner.org)?;
        let said = voice::ask(deps, &account_ref, |cx| cx.platform.health(cx)).await?;
        let at = (deps.now)();
        match (&said.answer, said.version) {
            (Ok(()), Some(version)) => {
                facts::answered(&deps.db, account_ref.owner, account_ref.account, version, at).await?;
            }
            // Refused although it is fresh: no further refresh can help.
            (Err(failure), Some(version)) if failure.code == ErrorCode::TokenExpired => {
                voice::lose(deps, &account_ref, version, failure).await?;
            }
            _ => {}
        }
        Ok(HealthReport { failure: said.answer.err(), at })
    }

    #[activity(definition = definition::RevokeGrant)]
    pub(crate) async fn revoke_grant(
        self: Arc<Self>,
        cx: ActivityContext,
        disconnection: Disconnection,
    ) -> Result<(), ActivityError> {
        let deps = &self.deps;
        let Some(leaving) = disconnect::leaving(&deps.db, &disconnection).await? else { return Ok(()) };
        if leaving.in_doubt && cx.info().attempt < TRIES {
            return Err(anyhow::anyhow!("a post of the account is still being looked for").into());
        }
        if leaving.is_shared {
            // A platform that is told ends it for all of them.
            info!(account.id = %disconnection.account, platform = disconnection.platform, "Not revoked: others share the login");
            return Ok(());
        }
        let line = match Line::open(deps, disconnection.owner, &leaving.account).await? {
            Ok(line) => line,
            // There is nobody to tell.
            Err(_) => return Ok(()),
        };
        let session = line.session(&Unkept);
        match session.platform.revoke(&session).await {
            Ok(()) => Ok(()),
            // It knows nothing of the grant, or wants to hear nothing: asking again changes neither.
            Err(failure) if failure.code.is_permanent() || failure.code == ErrorCode::TokenExpired => {
                info!(account.id = %disconnection.account, platform = disconnection.platform, "Not revoked: {failure}");
                Ok(())
            }
            Err(failure) => Err(anyhow::Error::new(failure).into()),
        }
    }

    #[activity(definition = definition::EraseGrant)]
    pub(crate) async fn erase_grant(
        self: Arc<Self>,
        _cx: ActivityContext,
        disconnection: Disconnection,
    ) -> Result<(), ActivityError> {
        Ok(disconnect::erase(&self.deps.db, &disconnection).await?)
    }

    #[activity(definition = definition::RenewGrant)]
    pub(crate) async fn renew_grant(
        self: Arc<Self>,
        _cx: ActivityContext,
        grant_ref: ExpiringGrant,
    ) -> Result<Option<ExpiringGrant>, ActivityError> {
        grants::renew(&self.deps, &grant_ref).await?.map_err(|failure| repeat(&failure, failure.retry_after))
    }

    #[activity(definition = definition::ListOptions)]
    pub(crate) async fn list_options(
        self: Arc<Self>,
        _cx: ActivityContext,
        menu: OptionsRequest,
    ) -> Result<Result<Vec<SelectOption>, Failure>, ActivityError> {
        let _share = self.shares.admit(menu.account_ref.owner.org)?;
        let said = voice::ask(&self.deps, &menu.account_ref, |cx| {
            let (kind, parent) = (menu.kind.clone(), menu.parent.clone());
            Box::pin(async move {
                match cx.platform.options() {
                    Some(options) => options.options(cx, &kind, parent.as_deref()).await,
                    None => Err(Failure::rejected(404, format!("{} has no such lists", cx.platform.id()))),
                }
            })
        })
        .await?;
        Ok(said.answer)
    }
}
