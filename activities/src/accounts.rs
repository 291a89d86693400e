//! Calls to platforms for accounts: health checks, values of settings, edits and deletion of published posts, renewal and
//! revocation of grants.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::{
    Deps,
    failure::retryable,
    heartbeat::with_heartbeat,
    share::{self, Shares},
};
use domain::{
    ErrorCode, Failure, LimitUsage, PostId, SelectOption, Subject, TargetId,
    outbox::{Disconnection, ExpiringGrant},
};
use platforms::look_up::Findings;
use publishing::{AccountSession, LiveTarget, NoCheckpoints, Stop};
use std::sync::{Arc, Mutex, PoisonError};
use store::{
    accounts::{disconnect, grants},
    upkeep::vault,
};
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use tracing::info;
use workflows::{
    activities::{
        AccountRef, EditOutcome, EditRequest, HealthReport, LookUpReport, LookUpRequest, OptionsRequest,
        UnpublishRequest, UnpublishResult, definition,
    },
    disconnect_account::REVOKE_TRIES,
    worker_request::{CALL_TIMEOUT, LOOK_UP_TIMEOUT},
};

/// Activities about accounts and their grants.
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
        let outcome = deps.call(&account_ref, |platform, cx| platform.publisher.health(cx)).await?;
        let at = (deps.engine.now)();
        match (&outcome.answer, outcome.version) {
            (Ok(()), Some(version)) => {
                grants::mark_active(&deps.engine.db, account_ref.owner, account_ref.account, version, at)
                    .await?;
            }
            // Refused although it is fresh: another refresh would not help.
            (Err(failure), Some(version)) if failure.code == ErrorCode::TokenExpired => {
                deps.mark_lost(&account_ref, version, failure).await?;
            }
            _ => {}
        }
        Ok(HealthReport { failure: outcome.answer.err(), at })
    }

    #[activity(definition = definition::CancelTargets)]
    pub(crate) async fn cancel_targets(
        self: Arc<Self>,
        cx: ActivityContext,
        disconnection: Disconnection,
    ) -> Result<(), ActivityError> {
        let engine = &self.deps.engine;
        let share = self.shares.take(disconnection.owner.org, (engine.jitter)());
        let _share = share.map_err(|wait| retryable(&share::used_up(), Some(wait)))?;
        let canceling = async {
            let mut last = None;
            loop {
                last = disconnect::cancel_next(&engine.db, &disconnection, last, (engine.now)()).await?;
                if last.is_none() {
                    return Ok(());
                }
            }
        };
        with_heartbeat(&cx, canceling).await
    }

    #[activity(definition = definition::RevokeGrant)]
    pub(crate) async fn revoke_grant(
        self: Arc<Self>,
        cx: ActivityContext,
        disconnection: Disconnection,
    ) -> Result<(), ActivityError> {
        let deps = &self.deps;
        let Some(leaving) = disconnect::grant_to_revoke(&deps.engine.db, &disconnection).await? else {
            return Ok(());
        };
        if leaving.in_doubt && cx.info().attempt < REVOKE_TRIES {
            return Err(anyhow::anyhow!("a post of the account is still being looked for").into());
        }
        if leaving.is_shared {
            // Revoking would end the grant of the other accounts too.
            info!(account.id = %disconnection.account, platform = disconnection.platform, "Not revoked: others share the login");
            return Ok(());
        }
        let account = match AccountSession::open(&deps.engine, disconnection.owner, &leaving.account).await {
            Ok(account) => account,
            // Without a usable grant there is nothing to revoke.
            Err(Stop::Failure(_)) => return Ok(()),
            Err(Stop::Fault(error)) => return Err(error.into()),
        };
        let session = account.session(&NoCheckpoints);
        match account.platform.publisher.revoke(&session).await {
            Ok(()) => Ok(()),
            // The platform does not know the grant, or refuses: another try would not help.
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
        Ok(disconnect::erase(&self.deps.engine.db, &disconnection).await?)
    }

    #[activity(definition = definition::RenewGrant)]
    pub(crate) async fn renew_grant(
        self: Arc<Self>,
        _cx: ActivityContext,
        grant_ref: ExpiringGrant,
    ) -> Result<Option<ExpiringGrant>, ActivityError> {
        let share = self.shares.take(grant_ref.owner.org, (self.deps.engine.jitter)());
        // Repeated for as long as it takes, well before the grant ends.
        let _share = share.map_err(|wait| retryable(&share::used_up(), Some(wait)))?;
        self.deps.engine.renew(&grant_ref).await.map_err(|stop| match stop {
            Stop::Failure(failure) => retryable(&failure, failure.retry_after),
            Stop::Fault(error) => error.into(),
        })
    }

    #[activity(definition = definition::ListOptions)]
    pub(crate) async fn list_options(
        self: Arc<Self>,
        _cx: ActivityContext,
        request: OptionsRequest,
    ) -> Result<Result<Vec<SelectOption>, Failure>, ActivityError> {
        let _share = self.shares.admit(request.account_ref.owner.org)?;
        let outcome = self
            .deps
            .call(&request.account_ref, |platform, cx| {
                let (kind, parent) = (request.kind.clone(), request.parent.clone());
                Box::pin(async move {
                    match platform.options {
                        Some(options) => options.options(cx, &kind, parent.as_deref()).await,
                        None => Err(Failure::rejected(404, format!("{} has no such lists", platform.id))),
                    }
                })
            })
            .await?;
        Ok(outcome.answer)
    }

    #[activity(definition = definition::LookUp)]
    pub(crate) async fn look_up(
        self: Arc<Self>,
        _cx: ActivityContext,
        request: LookUpRequest,
    ) -> Result<LookUpReport, ActivityError> {
        let LookUpRequest { account_ref, subject } = request;
        let _share = self.shares.admit(account_ref.owner.org)?;
        let aad = vault::aad_look_up(account_ref.owner, &account_ref.platform);
        let subject: Subject = self.deps.unseal(&subject, &aad)?;
        let (subject, found) = (Arc::new(subject), Arc::new(Mutex::new(Vec::new())));
        let outcome = self
            .deps
            .call_within(LOOK_UP_TIMEOUT, &account_ref, |platform, cx| {
                let (subject, kept) = (subject.clone(), found.clone());
                Box::pin(async move {
                    let mut found = Findings::of(platform.id);
                    let asked = platform.publisher.look_up(cx, &subject, &mut found).await;
                    // Also what was found before a failure.
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = found.into_issues();
                    asked
                })
            })
            .await?;
        let issues = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(LookUpReport { issues, failure: outcome.answer.err() })
    }

    #[activity(definition = definition::ReadUsage)]
    pub(crate) async fn read_usage(
        self: Arc<Self>,
        _cx: ActivityContext,
        account_ref: AccountRef,
    ) -> Result<Result<Vec<LimitUsage>, Failure>, ActivityError> {
        let _share = self.shares.admit(account_ref.owner.org)?;
        let outcome = self
            .deps
            .call(&account_ref, |platform, cx| {
                Box::pin(async move {
                    match platform.usage {
                        Some(usage) => usage.usage(cx).await,
                        None => Ok(Vec::new()),
                    }
                })
            })
            .await?;
        Ok(outcome.answer)
    }

    #[activity(definition = definition::EditTarget)]
    pub(crate) async fn edit_target(
        self: Arc<Self>,
        _cx: ActivityContext,
        request: EditRequest,
    ) -> Result<EditOutcome, ActivityError> {
        let EditRequest { account_ref, post, target, edit, is_change } = request;
        let _share = self.shares.admit(account_ref.owner.org)?;
        let (engine, live) = (&self.deps.engine, live(account_ref, post, target));
        Ok(publishing::edit_live(engine, &live, edit, is_change, CALL_TIMEOUT).await?)
    }

    #[activity(definition = definition::Unpublish)]
    pub(crate) async fn unpublish(
        self: Arc<Self>,
        _cx: ActivityContext,
        request: UnpublishRequest,
    ) -> Result<UnpublishResult, ActivityError> {
        let UnpublishRequest { account_ref, post, target } = request;
        let _share = self.shares.admit(account_ref.owner.org)?;
        let (engine, live) = (&self.deps.engine, live(account_ref, post, target));
        Ok(publishing::unpublish(engine, &live, CALL_TIMEOUT).await?)
    }
}

/// Returns a live target of an account.
fn live(account: AccountRef, post: PostId, target: TargetId) -> LiveTarget {
    let AccountRef { account, owner, platform } = account;
    LiveTarget { owner, account, platform, post, target }
}
