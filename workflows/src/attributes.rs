//! Search attributes: how operators find workflows in Temporal's UI.
//!
//! `FanfarePlatform = 'x' and FanfareError = 'rate_limited' and ExecutionStatus = 'Running'` lists
//! every publish that is stuck on X for its rate limit. All are keywords and must be registered with
//! the namespace before the first workflow starts.

use temporalio_common::search_attributes::SearchAttributeKey;

/// The organization.
pub const ORG: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareOrg");
/// The post.
pub const POST: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfarePost");
/// The platform.
pub const PLATFORM: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfarePlatform");
/// The account.
pub const ACCOUNT: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareAccount");
/// How it failed or ended, in the contract's words. Without it, a completed workflow published: telling
/// that too would cost each post a tenth of what it costs Temporal.
pub const STATUS: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareStatus");
/// Why the last attempt failed: the contract's `error_code`.
pub const ERROR: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareError");
/// The event that is being delivered.
pub const EVENT: SearchAttributeKey<String> = SearchAttributeKey::keyword("FanfareEvent");

/// Name and type of each, for those who register them.
pub const ALL: [(&str, &str); 7] = [
    ("FanfareOrg", "Keyword"),
    ("FanfarePost", "Keyword"),
    ("FanfarePlatform", "Keyword"),
    ("FanfareAccount", "Keyword"),
    ("FanfareStatus", "Keyword"),
    ("FanfareError", "Keyword"),
    ("FanfareEvent", "Keyword"),
];
