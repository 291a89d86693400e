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
    Choice, ErrorCode, Failure,
    errand::{Keeping, Parting},
};
use std::sync::Arc;
use store::{accounts as facts, disconnect};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::{
    activities::{Checkup, Menu, Voice, definition},
    part_account::TRIES,
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
        voice: Voice,
    ) -> Result<Checkup, ActivityError> {
        let deps = &self.deps;
        let _share = self.shares.admit(voice.owner.org)?;
        let said = voice::ask(deps, &voice, |cx| cx.platform.publisher.health(cx)).await?;
        let at = (deps.now)();
        match (&said.answer, said.version) {
            (Ok(()), Some(version)) => {
                facts::answered(&deps.db, voice.owner, voice.account, version, at).await?;
            }
            // Refused although it is fresh: no further refresh can help.
            (Err(failure), Some(version)) if failure.code == ErrorCode::TokenExpired => {
                voice::lose(deps, &voice, version, failure).await?;
            }
            _ => {}
        }
        Ok(Checkup { failure: said.answer.err(), at })
    }

    #[activity(definition = definition::RevokeGrant)]
    pub(crate) async fn revoke_grant(
        self: Arc<Self>,
        cx: ActivityContext,
        parting: Parting,
    ) -> Result<(), ActivityError> {
        let deps = &self.deps;
        let Some(leaving) = disconnect::leaving(&deps.db, &parting).await? else { return Ok(()) };
        if leaving.in_doubt && cx.info().attempt < TRIES {
            return Err(anyhow::anyhow!("a post of the account is still being looked for").into());
        }
        if leaving.is_shared {
            // A platform that is told ends it for all of them.
            info!(account.id = %parting.account, platform = parting.platform, "Not revoked: others share the login");
            return Ok(());
        }
        let line = match Line::open(deps, parting.owner, &leaving.account).await? {
            Ok(line) => line,
            // There is nobody to tell.
            Err(_) => return Ok(()),
        };
        let session = line.session(&Unkept);
        match session.platform.publisher.revoke(&session).await {
            Ok(()) => Ok(()),
            // It knows nothing of the grant, or wants to hear nothing: asking again changes neither.
            Err(failure) if failure.code.is_permanent() || failure.code == ErrorCode::TokenExpired => {
                info!(account.id = %parting.account, platform = parting.platform, "Not revoked: {failure}");
                Ok(())
            }
            Err(failure) => Err(anyhow::Error::new(failure).into()),
        }
    }

    #[activity(definition = definition::EraseGrant)]
    pub(crate) async fn erase_grant(
        self: Arc<Self>,
        _cx: ActivityContext,
        parting: Parting,
    ) -> Result<(), ActivityError> {
        Ok(disconnect::erase(&self.deps.db, &parting).await?)
    }

    #[activity(definition = definition::RenewGrant)]
    pub(crate) async fn renew_grant(
        self: Arc<Self>,
        _cx: ActivityContext,
        keeping: Keeping,
    ) -> Result<Option<Keeping>, ActivityError> {
        grants::renew(&self.deps, &keeping).await?.map_err(|failure| repeat(&failure, failure.retry_after))
    }

    #[activity(definition = definition::ListOptions)]
    pub(crate) async fn list_options(
        self: Arc<Self>,
        _cx: ActivityContext,
        menu: Menu,
    ) -> Result<Result<Vec<Choice>, Failure>, ActivityError> {
        let _share = self.shares.admit(menu.voice.owner.org)?;
        let said = voice::ask(&self.deps, &menu.voice, |cx| {
            let (kind, parent) = (menu.kind.clone(), menu.parent.clone());
            Box::pin(async move {
                match cx.platform.options {
                    Some(options) => options.options(cx, &kind, parent.as_deref()).await,
                    None => Err(Failure::rejected(404, format!("{} has no such lists", cx.platform.id))),
                }
            })
        })
        .await?;
        Ok(said.answer)
    }
}
