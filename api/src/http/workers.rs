//! Requests to the workers on behalf of a caller.

use crate::http::{caller::Call, problem::Problem};
use std::fmt::Display;
use tracing::warn;
use workflows::worker_request::Request;

/// `Retry-After` of a request that got no response, in seconds.
const RETRY_AFTER: u32 = 10;

/// Makes a request to the workers and waits for the response.
///
/// # Errors
///
/// `unavailable` when there is no response in time.
pub(crate) async fn request<R: Request>(call: &Call<'_>, request: R) -> Result<R::Response, Problem> {
    call.app.workers.call(request).await.map_err(unanswered)
}

/// `unavailable`: no worker gave a response that can be used.
pub(crate) fn unanswered(reason: impl Display) -> Problem {
    warn!(%reason, "No response of a worker");
    Problem::away("no worker answered in time; try again later", RETRY_AFTER)
}
