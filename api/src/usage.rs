//! What is used of a plan.
//!
//! Calls are the organization's, of both its modes. Posts and accounts are those of the caller's mode:
//! what is published to the sandbox costs nobody anything, and a test key sees no live data.

use crate::{
    http::{
        body::Json,
        caller::{Call, Caller, UsageRead},
        problem::Problem,
    },
    openapi::tag::Tag,
    types::timestamp::Timestamp,
};
use poem_openapi::{Object, OpenApi};
use store::meters::{self, Month};

/// The operation on what is used.
pub struct Account;

#[OpenApi(tag = "Tag::Usage")]
impl Account {
    /// Get the use of the plan
    ///
    /// Of the calendar month, UTC. Requests are those of both modes; posts are published targets, and
    /// with the accounts those of the key's mode. This call does not count as a request, and is still
    /// answered when none is left. Scope `usage:read`.
    #[oai(path = "/account/usage", method = "get", operation_id = "getUsage")]
    async fn usage(&self, caller: Caller<UsageRead>) -> Result<Json<Report>, Problem> {
        Ok(Json(read(&caller.call()).await?))
    }
}

/// What is used of the caller's plan.
pub async fn read(call: &Call<'_>) -> Result<Report, Problem> {
    let month = Month::of(call.now());
    let used = meters::usage(call.db(), call.owner, month).await?;
    let used = used.ok_or_else(|| Problem::not_found("organization"))?;
    let plan = call.app.config.plans.of(&used.plan);
    let usage = Usage {
        plan: PlanName { key: plan.key.clone(), name: plan.name.clone() },
        api_requests: Metered { current: used.requests, limit: plan.api_requests },
        posts: Included {
            current: used.posts,
            included: plan.posts,
            overage: plan.posts.map_or(0, |included| used.posts.saturating_sub(included)),
        },
        social_accounts: Metered { current: used.accounts, limit: plan.social_accounts },
        billing_period: Period { start: month.start.into(), end: month.end.into() },
    };
    Ok(Report { usage })
}

/// The answer about what is used.
#[derive(Debug, Object)]
pub struct Report {
    /// What is used.
    pub usage: Usage,
}

/// What is used of a plan.
#[derive(Debug, Object)]
pub struct Usage {
    /// The plan.
    pub plan: PlanName,
    /// Calls in the period.
    pub api_requests: Metered,
    /// Published targets in the period.
    pub posts: Included,
    /// Accounts that are connected now.
    pub social_accounts: Metered,
    /// The calendar month.
    pub billing_period: Period,
}

/// A plan, by name.
#[derive(Debug, Object)]
#[oai(rename = "Plan")]
pub struct PlanName {
    /// What organizations name it by.
    pub key: String,
    /// Its name, for people.
    pub name: String,
}

/// What is used of something that is limited.
#[derive(Debug, Object)]
pub struct Metered {
    /// How much is used.
    pub current: u64,
    /// How much may be used; null: as much as one likes.
    #[oai(nullable)]
    pub limit: Option<u64>,
}

/// What is used of something that is included up to a number and billed beyond it.
#[derive(Debug, Object)]
pub struct Included {
    /// How much is used.
    pub current: u64,
    /// How much is included; null: as much as one likes.
    #[oai(nullable)]
    pub included: Option<u64>,
    /// How much is used beyond that.
    pub overage: u64,
}

/// A stretch of time.
#[derive(Debug, Object)]
pub struct Period {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
}
