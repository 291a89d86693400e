//! Plans: monthly quotas, and ceilings on what an organization has at a time. The operator configures them; an
//! organization refers to one by its key.
//!
//! A quota that a plan omits is unlimited. So are ceilings, except those on what multiplies work or has no pages:
//! each endpoint gets a copy of every event in up to eight attempts. Null lifts these too.

use crate::http::problem::{Code, Problem};
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::{collections::BTreeMap, str::FromStr, sync::LazyLock};
use store::usage::{Quotas, ceilings::Exceeded};
use url::Url;
use workflows::activities::AccountQuota;

/// Key of the plan that applies unless another is assigned.
pub const DEFAULT_KEY: &str = "default";

/// Ceilings of a plan that does not mention them.
mod default {
    pub(super) fn webhook_endpoints() -> Option<u64> {
        Some(20)
    }

    pub(super) fn api_keys() -> Option<u64> {
        Some(100)
    }

    pub(super) fn profiles() -> Option<u64> {
        Some(1000)
    }

    pub(super) fn team_members() -> Option<u64> {
        Some(1000)
    }
}

/// Quotas per calendar month and ceilings at any time, for each mode; `None` is unlimited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Key that organizations refer to the plan by.
    pub key: String,
    /// Display name.
    pub name: String,
    /// API requests; further requests are refused.
    pub api_requests: Option<u64>,
    /// Published targets included; further ones count as overage.
    pub posts: Option<u64>,
    /// Maximum number of connected accounts.
    pub social_accounts: Option<u64>,
    /// Maximum number of webhook endpoints.
    #[serde(default = "default::webhook_endpoints")]
    pub webhook_endpoints: Option<u64>,
    /// Maximum number of valid API keys.
    #[serde(default = "default::api_keys")]
    pub api_keys: Option<u64>,
    /// Maximum number of profiles.
    #[serde(default = "default::profiles")]
    pub profiles: Option<u64>,
    /// Maximum number of members of the team, invited ones included; for both modes.
    #[serde(default = "default::team_members")]
    pub team_members: Option<u64>,
    /// Maximum number of posting slots, of the organization and all its accounts.
    pub slots: Option<u64>,
    /// Maximum size of all media files in bytes.
    pub storage_bytes: Option<u64>,
    /// URL for upgrading.
    pub upgrade_url: Option<String>,
}

impl Plan {
    /// 402: the quota of API requests is used up.
    pub(crate) fn refuse(&self, used: u64) -> Problem {
        let limit = self.api_requests.unwrap_or(used);
        let detail = format!("the {limit} API requests per month of the plan {} are used up", self.name);
        self.exceeded(detail, limit, used)
    }

    /// 402: the limit of connected accounts is reached.
    pub(crate) fn refuse_accounts(&self, AccountQuota { limit, used }: AccountQuota) -> Problem {
        let detail =
            format!("the plan {} has room for {limit} social accounts, and {used} are connected", self.name);
        self.exceeded(detail, limit, used)
    }

    /// 402: there may be no more of `things`.
    pub(crate) fn refuse_more(&self, things: &str, Exceeded { limit, used }: Exceeded) -> Problem {
        let detail = format!("the plan {} has room for {limit} {things}, and {used} are in use", self.name);
        self.exceeded(detail, limit, used)
    }

    fn exceeded(&self, mut detail: String, limit: u64, used: u64) -> Problem {
        if self.upgrade_url.is_none() {
            detail.push_str("; ask the operator of this service for more");
        }
        Problem::new(Code::QuotaExceeded, detail).with_quota(limit, used, self.upgrade_url.clone())
    }
}

/// The built-in plan, which has no quotas and the default ceilings.
static BUILT_IN: LazyLock<Plan> = LazyLock::new(|| Plan {
    key: DEFAULT_KEY.to_owned(),
    name: DEFAULT_KEY.to_owned(),
    api_requests: None,
    posts: None,
    social_accounts: None,
    webhook_endpoints: default::webhook_endpoints(),
    api_keys: default::api_keys(),
    profiles: default::profiles(),
    team_members: default::team_members(),
    slots: None,
    storage_bytes: None,
    upgrade_url: None,
});

/// The configured plans.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    plans: BTreeMap<String, Plan>,
    quotas: Quotas,
}

impl FromStr for Plans {
    type Err = anyhow::Error;

    /// Parses `[{"key": "free", "name": "Free", "api_requests": 1000}]`. A plan with the key `default`
    /// replaces the built-in one.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let all: Vec<Plan> = serde_json::from_str(text)
            .context("not of the form [{\"key\": \"free\", \"name\": \"Free\", \"api_requests\": 1000}]")?;
        let quotas = all.iter().filter_map(|plan| Some((plan.key.clone(), plan.api_requests?))).collect();
        let mut plans = BTreeMap::new();
        for plan in all {
            ensure!(!plan.key.is_empty(), "a plan needs a key");
            ensure!(
                plan.api_requests != Some(0),
                "the plan {} must allow at least one API request",
                plan.key
            );
            let is_url = plan.upgrade_url.as_deref().is_none_or(|url| Url::parse(url).is_ok());
            ensure!(is_url, "the upgrade_url of the plan {} is not a URL", plan.key);
            let key = plan.key.clone();
            ensure!(plans.insert(key.clone(), plan).is_none(), "there are two plans {key}");
        }
        Ok(Self { plans, quotas })
    }
}

impl Plans {
    /// Returns the plan with this key, or the built-in one if it is not configured: a configuration mistake
    /// must not lock customers out.
    pub fn of(&self, key: &str) -> &Plan {
        self.plans.get(key).unwrap_or(&BUILT_IN)
    }

    /// True if there is a plan with this key.
    pub fn has(&self, key: &str) -> bool {
        key == DEFAULT_KEY || self.plans.contains_key(key)
    }

    /// The quota of API requests of each plan.
    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_what_the_operator_says() {
        let plans: Plans = r#"[
            {"key": "free", "name": "Free", "api_requests": 1000, "posts": 30, "upgrade_url": "https://e.test/up"},
            {"key": "default", "name": "Basic", "social_accounts": 3}
        ]"#
        .parse()
        .unwrap();
        assert_eq!(plans.of("free").api_requests, Some(1000));
        assert_eq!(plans.of(DEFAULT_KEY).name, "Basic");
        assert_eq!(plans.of("gone").name, "default");
        let details = ["free", "gone"].map(|key| plans.of(key).refuse(1000).detail);
        assert_eq!(
            details,
            [
                "the 1000 API requests per month of the plan Free are used up",
                "the 1000 API requests per month of the plan default are used up; ask the operator of this service for \
                 more",
            ]
        );
        let ceilings = |plan: &Plan| (plan.webhook_endpoints, plan.api_keys, plan.storage_bytes);
        for plan in [plans.of("free"), plans.of("gone")] {
            assert_eq!(ceilings(plan), (Some(20), Some(100), None), "{}", plan.name);
        }
        let large = r#"[{"key": "large", "name": "Large", "webhook_endpoints": null, "api_keys": 7, "storage_bytes": 9}]"#;
        assert_eq!(ceilings(large.parse::<Plans>().unwrap().of("large")), (None, Some(7), Some(9)));
        assert!(plans.has("free") && plans.has(DEFAULT_KEY) && !plans.has("gone"));
        assert!(Plans::default().has(DEFAULT_KEY));
        for wrong in [
            "free",
            "{}",
            r#"[{"key": "free"}]"#,
            r#"[{"key": "", "name": "Free"}]"#,
            r#"[{"key": "free", "name": "Free", "api_requests": 0}]"#,
            r#"[{"key": "free", "name": "Free", "api_requests": -1}]"#,
            r#"[{"key": "free", "name": "Free", "upgrade_url": "up"}]"#,
            r#"[{"key": "free", "name": "Free", "posts_included": 1}]"#,
            r#"[{"key": "free", "name": "Free"}, {"key": "free", "name": "Free"}]"#,
        ] {
            assert!(wrong.parse::<Plans>().is_err(), "{wrong}");
        }
    }
}
