//! Asking a platform something in an account's name, outside of publishing.
//!
//! One call, and once more with a fresh token where the one it had was refused. The whole of it has a
//! time limit, since somebody waits; a refresh goes on behind it all the same, for a rotating refresh
//! token that is used and not kept is lost.

use crate::{
    Deps,
    grants::{self, Line, Refused, Unkept, Unrefreshed},
};
use domain::{ErrorCode, Failure, Owner};
use futures::future::BoxFuture;
use platforms::Session;
use std::sync::Arc;
use store::publishing as facts;
use workflows::{activities::AccountRef, worker_request};

/// What a platform said to an account.
pub(crate) struct Said<T> {
    /// The answer, or the refusal.
    pub(crate) answer: Result<T, Failure>,
    /// Which grant it was said to; `None` when none could be shown.
    pub(crate) version: Option<i64>,
}

/// Asks once, and again with a fresh token where that may help.
pub(crate) async fn ask<T>(
    deps: &Arc<Deps>,
    account_ref: &AccountRef,
    question: impl for<'a> Fn(&'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
) -> anyhow::Result<Said<T>> {
    let asking = async {
        let first = once(deps, account_ref, &question).await?;
        let refused = match (&first.answer, first.version) {
            (Err(failure), Some(version)) if failure.code == ErrorCode::TokenExpired => {
                let (owner, account) = (account_ref.owner, account_ref.account);
                if failure.revoked {
                    lose(deps, account_ref, version, failure).await?;
                    return Ok(first);
                }
                Refused { owner, account, version, target: None }
            }
            _ => return Ok(first),
        };
        let behind = deps.clone();
        let refreshed = tokio::spawn(async move { grants::refresh(&behind, refused).await }).await??;
        match refreshed {
            Ok(()) => once(deps, account_ref, &question).await,
            Err(Unrefreshed::MediaFailure(failure) | Unrefreshed::Later(failure)) => {
                Ok(Said { answer: Err(failure), version: None })
            }
        }
    };
    tokio::time::timeout(worker_request::CALL_TIMEOUT, asking).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", worker_request::CALL_TIMEOUT.as_secs());
        Ok(Said { answer: Err(Failure::network(message, false)), version: None })
    })
}

/// The platform says that the grant it was shown is no good: the account's owner has to know.
pub(crate) async fn lose(
    deps: &Deps,
    account_ref: &AccountRef,
    version: i64,
    failure: &Failure,
) -> store::Result<()> {
    facts::lose_grant(&deps.db, account_ref.owner, account_ref.account, version, failure, (deps.now)()).await
}

async fn once<T>(
    deps: &Deps,
    account_ref: &AccountRef,
    question: &impl for<'a> Fn(&'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
) -> anyhow::Result<Said<T>> {
    let AccountRef { owner, account, .. }: &AccountRef = account_ref;
    let owner: Owner = *owner;
    let Some(account) = facts::account(&deps.db, owner, *account).await? else {
        let failure = Failure::revoked("the account is not connected any more");
        return Ok(Said { answer: Err(failure), version: None });
    };
    let line = match Line::open(deps, owner, &account).await? {
        Ok(line) => line,
        Err(failure) => return Ok(Said { answer: Err(failure), version: None }),
    };
    let session = line.session(&Unkept);
    // Asking publishes nothing, however it ends.
    let answer = question(&session).await.map_err(|failure| Failure { doubt: false, ..failure });
    Ok(Said { answer, version: Some(account.grant_version) })
}
