//! What a platform says about an account: whether it can be spoken for, what its settings can be.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{Deps, voice};
use domain::{Choice, ErrorCode, Failure};
use std::sync::Arc;
use store::accounts as facts;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use workflows::activities::{Checkup, Menu, Voice, definition};

/// The activities about accounts.
pub(crate) struct Accounts {
    pub(crate) deps: Arc<Deps>,
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
        let said = voice::ask(deps, &voice, |cx| cx.platform.health(cx)).await?;
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

    #[activity(definition = definition::ListOptions)]
    pub(crate) async fn list_options(
        self: Arc<Self>,
        _cx: ActivityContext,
        menu: Menu,
    ) -> Result<Result<Vec<Choice>, Failure>, ActivityError> {
        let said = voice::ask(&self.deps, &menu.voice, |cx| {
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
