//! Settling a target outside an attempt: its attempts gave no answer, its grant is lost, or an operator stopped
//! its workflow.

use crate::Engine;
use domain::{
    ErrorCode, ErrorSource, Failure, MAY_BE_LIVE, TargetStatus,
    publish::{SettleReason, SettleResult},
    retry::{self, Spent},
};
use store::publishing::{self, End, Settled, TargetKey};

impl Engine {
    /// Ends a target, or returns when to try again if its budget allows that.
    ///
    /// # Errors
    ///
    /// When Fanfare failed: the database or a key.
    // Model: SettleOutside.
    pub async fn settle(&self, key: TargetKey, reason: &SettleReason) -> anyhow::Result<SettleResult> {
        let now = (self.now)();
        let Some(state) = publishing::target_state(&self.db, key).await? else {
            return Ok(SettleResult::Ended { status: TargetStatus::Canceled });
        };
        let incomplete = match state.status {
            TargetStatus::Dead | TargetStatus::Canceled => {
                return Ok(SettleResult::Ended { status: state.status });
            }
            // Only what should have followed the main container is lost.
            TargetStatus::Published => state.error_message.clone(),
            _ => None,
        };
        let again = |attempt: u32| {
            let wait = retry::ceiling(attempt).mul_f64((self.jitter)());
            SettleResult::RetryAfter { pause: self.time_scale.scale(wait) }
        };
        let (code, mut message, source) = match reason {
            SettleReason::GrantLost { message } => (ErrorCode::TokenExpired, message.clone(), None),
            SettleReason::RefreshFailed { message, code } if state.spent < retry::ATTEMPTS => {
                // The grant was not at fault: this costs an attempt, and none of those for the token.
                let spent = Spent { attempts: 0, token_attempts: 1 };
                publishing::refund_attempts(&self.db, key.target, None, spent).await?;
                let message = format!("No fresh token yet: {message}");
                publishing::note(&self.db, key, "refresh", &message, now).await?;
                if *code == ErrorCode::AppRefused {
                    self.hold_posts(key, "its platform", &Failure::app_refused(message, None)).await?;
                }
                let freed = match code {
                    ErrorCode::RateLimited | ErrorCode::AppRefused => {
                        let limit = self.time_scale.scale(retry::THROTTLED_FREE);
                        publishing::free_throttled_refresh(&self.db, key, limit).await?
                    }
                    _ => None,
                };
                return Ok(again(freed.unwrap_or(state.spent)));
            }
            SettleReason::RefreshFailed { message, code } => (*code, message.clone(), None),
            SettleReason::Unanswered { .. } if state.spent < retry::ATTEMPTS => {
                return Ok(again(state.spent));
            }
            SettleReason::Unanswered { .. } if state.in_doubt && state.spent < retry::MAX_UNANSWERED => {
                return Ok(again(1));
            }
            SettleReason::Unanswered { message } => (
                state.error_code.unwrap_or(ErrorCode::NetworkError),
                incomplete.or(state.error_message).unwrap_or_else(|| message.clone()),
                Some(ErrorSource::Service),
            ),
            SettleReason::Stopped => {
                if let Some(settled) = self.look_up_stopped(key).await? {
                    return Ok(settled);
                }
                (ErrorCode::Stopped, "an operator stopped it in Temporal".to_owned(), None)
            }
        };
        let in_doubt = publishing::target_state(&self.db, key).await?.is_some_and(|state| state.in_doubt);
        if in_doubt {
            message.push_str(MAY_BE_LIVE);
        }
        let failure = Failure::new(code, message);
        let source = source.unwrap_or(code.source());
        match publishing::settle(&self.db, key, &End::Dead { failure, source }, None, now).await? {
            Settled::Ended(status) | Settled::Late(status) => Ok(SettleResult::Ended { status }),
            // The workflow of an earlier version was stopped; the edited post has a workflow of its own.
            Settled::Stale if *reason == SettleReason::Stopped => {
                Ok(SettleResult::Ended { status: TargetStatus::Canceled })
            }
            // The next attempt finds that it is stale.
            Settled::Superseded | Settled::Stale => Ok(again(1)),
        }
    }
}
