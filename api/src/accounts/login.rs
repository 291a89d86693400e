//! What every login needs, by OAuth or password: credentials sealed to the workers, and the plan's limit.

use crate::{
    http::{caller::Call, problem::Problem},
    plans::Plan,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use store::{
    meters::{self, Month},
    vault,
};

/// What somebody logs in with, for a worker's eyes only.
pub(crate) fn seal(call: &Call<'_>, platform: &str, brought: &impl Serialize) -> String {
    let plain = serde_json::to_vec(brought).expect("it is plain data");
    BASE64_STANDARD.encode(call.app.config.sealer.seal(&plain, &vault::aad_login(call.owner, platform)))
}

/// The plan that says how many accounts the owner may have connected.
pub(crate) async fn plan<'a>(call: &Call<'a>) -> Result<&'a Plan, Problem> {
    let used = meters::usage(call.db(), call.owner, Month::of(call.now())).await?;
    let used = used.ok_or_else(|| Problem::not_found("organization"))?;
    Ok(call.app.config.plans.of(&used.plan))
}
