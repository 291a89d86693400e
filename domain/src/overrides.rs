//! Members of a platform's block in a post's `config` that are not settings: they override the content and the
//! time of the platform's targets, or of one account.

use crate::AccountId;
use serde_json::{Map, Value};

/// Names of the members of a block that are not settings of the platform.
pub const MEMBERS: [&str; 5] = ["content", "containers", "media", "scheduled_at", ACCOUNTS];

/// Names of those that the overrides of an account can have.
pub const MEMBERS_OF_ACCOUNT: [&str; 4] = ["content", "containers", "media", "scheduled_at"];

/// The member with the overrides of single accounts, by the account's id.
pub const ACCOUNTS: &str = "accounts";

/// Returns the platform's settings for an account: those of the block, replaced member by member by the account's.
pub fn settings(block: &Value, account: AccountId) -> Value {
    let own = &block[ACCOUNTS][account.to_string()];
    let members = [block, own].into_iter().filter_map(Value::as_object).flatten();
    let is_setting = |(name, _): &(&String, &Value)| !MEMBERS.contains(&name.as_str());
    let settings: Map<_, _> =
        members.filter(is_setting).map(|(name, value)| (name.clone(), value.clone())).collect();
    Value::Object(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn an_accounts_settings_replace_those_of_its_platform() {
        let (one, other) = (AccountId(Uuid::from_u128(1)), AccountId(Uuid::from_u128(2)));
        let block = json!({
            "title": "a", "tags": ["b"], "content": "c", "scheduled_at": "2026-01-01T00:00:00Z",
            "accounts": { one.to_string(): { "title": "d", "media": [] } },
        });
        assert_eq!(settings(&block, one), json!({ "title": "d", "tags": ["b"] }));
        assert_eq!(settings(&block, other), json!({ "title": "a", "tags": ["b"] }));
        assert_eq!(settings(&Value::Null, one), json!({}));
    }
}
