//! Requests to the workers on behalf of a caller.

use crate::{
    app::App,
    http::{caller::Call, problem::Problem},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
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
pub async fn request<R: Request>(call: &Call<'_>, request: R) -> Result<R::Response, Problem> {
    call.app.workers.call(request).await.map_err(unanswered)
}

/// Seals a value that goes to the workers in a request, so that readers of workflow histories can't read it. `aad` names
/// its purpose.
pub fn seal(app: &App, value: &impl Serialize, aad: &[u8]) -> String {
    let plain = serde_json::to_vec(value).expect("it is plain data");
    BASE64_STANDARD.encode(app.config.sealer.seal(&plain, aad))
}

/// `unavailable`: no worker gave a response that can be used.
pub(crate) fn unanswered(reason: impl Display) -> Problem {
    warn!(%reason, "No response of a worker");
    Problem::away("no worker answered in time; try again later", RETRY_AFTER)
}
