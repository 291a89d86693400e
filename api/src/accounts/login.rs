//! Shared by OAuth and password logins: encrypting credentials for the workers, and the plan's limit.

use crate::{
    http::{caller::Call, problem::Problem},
    plans::Plan,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use store::{organizations, vault};

/// Encrypts a user's credentials for the workers.
pub(crate) fn seal(call: &Call<'_>, platform: &str, brought: &impl Serialize) -> String {
    let plain = serde_json::to_vec(brought).expect("it is plain data");
    BASE64_STANDARD.encode(call.app.config.sealer.seal(&plain, &vault::aad_login(call.owner, platform)))
}

/// Returns the owner's plan, which limits the number of accounts.
pub(crate) async fn plan<'a>(call: &Call<'a>) -> Result<&'a Plan, Problem> {
    let plan = organizations::plan(call.db(), call.owner.org).await?;
    let plan = plan.ok_or_else(|| Problem::not_found("organization"))?;
    Ok(call.app.config.plans.of(&plan))
}
