//! Usage of a plan.
//!
//! Everything is counted per mode: a test run takes nothing from live calls, sandbox posts are free, and a test
//! key sees no live data.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, UsageRead},
        problem::Problem,
    },
    openapi::tag::Tag,
    types::{enum_string::EnumString, timestamp::Timestamp},
};
use domain::Mode;
use poem_openapi::{Object, OpenApi};
use store::usage::{self, Month, ceilings};

/// The usage operation.
pub struct Account;

#[OpenApi(tag = "Tag::Usage")]
impl Account {
    /// Get usage
    ///
    /// Returns the usage of the current calendar month (UTC): requests and posts (published targets), and what the
    /// plan limits at any time, such as accounts, endpoints and storage; of the key's mode. Each mode has the whole
    /// plan. This call does not count as a request and works
    /// when the quota is used up. Scope `usage:read`.
    #[oai(path = "/account/usage", method = "get", operation_id = "getUsage")]
    async fn usage(&self, caller: Caller<UsageRead>) -> Result<Json<Report>, Problem> {
        Ok(Json(read(&caller.call()).await?))
    }
}

/// Returns the usage of the caller's plan.
pub async fn read(call: &Call<'_>) -> Result<Report, Problem> {
    let month = Month::of(call.now());
    let used = usage::read(call.db(), call.owner, month).await?;
    let used = used.ok_or_else(|| Problem::not_found("organization"))?;
    let counts = ceilings::counts(call.db(), call.owner, call.now()).await?;
    let plan = call.app.config.plans.of(&used.plan);
    let usage = Usage {
        mode: EnumString::of(call.owner.mode.as_str()),
        plan: PlanName { key: plan.key.clone(), name: plan.name.clone() },
        api_requests: Metered { current: used.requests, limit: plan.api_requests },
        posts: Included {
            current: used.posts,
            included: plan.posts,
            overage: plan.posts.map_or(0, |included| used.posts.saturating_sub(included)),
        },
        social_accounts: Metered { current: used.accounts, limit: plan.social_accounts },
        webhook_endpoints: Metered { current: counts.webhook_endpoints, limit: plan.webhook_endpoints },
        api_keys: Metered { current: counts.api_keys, limit: plan.api_keys },
        profiles: Metered { current: counts.profiles, limit: plan.profiles },
        team_members: Metered { current: counts.team_members, limit: plan.team_members },
        slots: Metered { current: counts.slots, limit: plan.slots },
        storage_bytes: Metered { current: counts.storage_bytes, limit: plan.storage_bytes },
        billing_period: Period { start: month.start.into(), end: month.end.into() },
    };
    Ok(Report { usage })
}

/// The response to a usage request.
#[derive(Debug, Object)]
pub struct Report {
    /// Usage of the plan.
    pub usage: Usage,
}

/// Usage of a plan.
#[derive(Debug, Object)]
pub struct Usage {
    /// The mode whose usage this is: that of the key.
    pub mode: EnumString<Mode>,
    /// The plan.
    pub plan: PlanName,
    /// API requests in the period.
    pub api_requests: Metered,
    /// Published targets in the period.
    pub posts: Included,
    /// Accounts connected now.
    pub social_accounts: Metered,
    /// Webhook endpoints now.
    pub webhook_endpoints: Metered,
    /// Valid API keys now.
    pub api_keys: Metered,
    /// Profiles now.
    pub profiles: Metered,
    /// Team members now, invited ones included. They belong to both modes.
    pub team_members: Metered,
    /// Posting slots now, of the organization and all its accounts.
    pub slots: Metered,
    /// Size of all media files now, in bytes, announced and running uploads included.
    pub storage_bytes: Metered,
    /// The calendar month.
    pub billing_period: Period,
}

/// Key and name of a plan.
#[derive(Debug, Object)]
#[oai(rename = "Plan")]
pub struct PlanName {
    /// The plan's key.
    pub key: String,
    /// Display name.
    pub name: String,
}

/// Usage of a limited resource.
#[derive(Debug, Object)]
pub struct Metered {
    /// Amount used.
    pub current: u64,
    /// Limit; null if unlimited.
    #[oai(nullable)]
    pub limit: Option<u64>,
}

/// Usage of a resource that is billed above an included amount.
#[derive(Debug, Object)]
pub struct Included {
    /// Amount used.
    pub current: u64,
    /// Included amount; null if unlimited.
    #[oai(nullable)]
    pub included: Option<u64>,
    /// Amount used above the included amount.
    pub overage: u64,
}

/// A period of time.
#[derive(Debug, Object)]
pub struct Period {
    /// Start (inclusive).
    pub start: Timestamp,
    /// End (exclusive).
    pub end: Timestamp,
}
