//! Failures as Temporal retries them.

use domain::Failure;
use std::time::Duration;
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_sdk::activities::ActivityError;

/// A failure that Temporal retries after `wait`, or as the activity's retry policy says.
pub(crate) fn retryable(failure: &Failure, wait: Option<Duration>) -> ActivityError {
    // Temporal takes a delay of zero for none, and waits as the policy says.
    let wait = wait.map(|wait| wait.max(Duration::from_millis(1)));
    let error = ApplicationFailure::builder(anyhow::anyhow!(failure.message.clone()))
        .type_name(failure.code.to_string())
        .category(ApplicationErrorCategory::Benign)
        .maybe_next_retry_delay(wait);
    ActivityError::application(error.build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ErrorCode;

    #[test]
    fn a_retry_is_never_without_a_delay() {
        let failure = Failure::new(ErrorCode::NetworkError, "no answer");
        for (wait, delay) in [(0, 1), (1, 1), (40, 40)] {
            let error = retryable(&failure, Some(Duration::from_millis(wait)));
            let ActivityError::Application(error) = error else { panic!("{error:?}") };
            assert_eq!(error.next_retry_delay(), Some(Duration::from_millis(delay)));
        }
    }
}
