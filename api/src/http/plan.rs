//! The plan of a call's organization.

use crate::{
    http::{caller::Call, problem::Problem},
    plans::Plan,
};
use store::people::organizations;

/// Returns the plan of the owner.
///
/// # Errors
///
/// If the organization is gone, or the database.
pub(crate) async fn of<'a>(call: &Call<'a>) -> Result<&'a Plan, Problem> {
    let plan = organizations::plan(call.db(), call.owner.org).await?;
    let plan = plan.ok_or_else(|| Problem::not_found("organization"))?;
    Ok(call.app.config.plans.of(&plan))
}
