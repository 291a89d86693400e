//! Calls to a platform for an account, outside publishing.
//!
//! One call, repeated once with a fresh token if the first token was refused. All of it has a time limit,
//! because a client waits; a refresh is finished in the background all the same, since a rotating refresh token
//! that is used and not stored is lost.

use crate::{AccountSession, Engine, NoCheckpoints, RefreshError, RefusedGrant, Stop};
use domain::{AccountId, ErrorCode, Failure, Owner};
use futures::future::BoxFuture;
use platforms::{Adapter, Session};
use std::{sync::Arc, time::Duration};
use store::accounts::grants;

/// A platform's answer.
#[derive(Debug)]
pub struct CallOutcome<T> {
    /// The answer, or why there is none.
    pub answer: Result<T, Failure>,
    /// Version of the grant that the platform saw; `None` when it saw none.
    pub version: Option<i64>,
}

/// Calls a platform for an account within `limit`; repeats the call once with a fresh token.
///
/// # Errors
///
/// When Fanfare failed: the database or a key.
pub async fn call_as<T>(
    engine: &Arc<Engine>,
    owner: Owner,
    account: AccountId,
    limit: Duration,
    call: impl for<'a> Fn(&'static Adapter, &'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
) -> anyhow::Result<CallOutcome<T>> {
    let calling = async {
        let first = once(engine, owner, account, &call).await?;
        let refused = match (&first.answer, first.version) {
            (Err(failure), Some(version)) if failure.code == ErrorCode::TokenExpired => {
                if failure.is_revoked() {
                    engine.mark_lost(owner, account, version, failure).await?;
                    return Ok(first);
                }
                RefusedGrant { owner, account, version, target: None }
            }
            _ => return Ok(first),
        };
        let background = engine.clone();
        match tokio::spawn(async move { background.refresh(refused).await }).await? {
            Ok(()) => once(engine, owner, account, &call).await,
            Err(RefreshError::Lost(failure) | RefreshError::Later(failure)) => {
                Ok(CallOutcome { answer: Err(failure), version: None })
            }
            Err(RefreshError::Fault(error)) => Err(error),
        }
    };
    tokio::time::timeout(limit, calling).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", limit.as_secs());
        Ok(CallOutcome { answer: Err(Failure::network(message, false)), version: None })
    })
}

async fn once<T>(
    engine: &Engine,
    owner: Owner,
    account: AccountId,
    call: &impl for<'a> Fn(&'static Adapter, &'a Session<'a>) -> BoxFuture<'a, Result<T, Failure>>,
) -> anyhow::Result<CallOutcome<T>> {
    let Some(account) = grants::account(&engine.db, owner, account).await? else {
        let failure = Failure::revoked("the account is not connected any more");
        return Ok(CallOutcome { answer: Err(failure), version: None });
    };
    let account_session = match AccountSession::open(engine, owner, &account).await {
        Ok(session) => session,
        Err(Stop::Failure(failure)) => return Ok(CallOutcome { answer: Err(failure), version: None }),
        Err(Stop::Fault(error)) => return Err(error),
    };
    let session = account_session.session(&NoCheckpoints);
    // Such a call publishes nothing, however it ends.
    let answer = call(account_session.platform, &session).await.map_err(|failure| failure.certain());
    Ok(CallOutcome { answer, version: Some(account.grant_version) })
}
