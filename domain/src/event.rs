//! What happened, as webhooks tell it.
//!
//! Post and account events use camelCase fields, import events snake_case: the contract's own
//! inconsistency, kept because receivers depend on it.

use crate::{AccountId, ImportId, OrgId, PostId, TargetId, WebhookId};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Value, json};

crate::string_enum! {
    /// The name of an event.
    EventName, "event" {
        /// A post reached its first account.
        PostPublished = "post.published",
        /// A post failed on every account.
        PostError = "post.error",
        /// One account of a post is live.
        TargetPublished = "post.target.published",
        /// One account of a post failed for good.
        TargetFailed = "post.target.failed",
        /// A token could not be refreshed.
        AccountTokenExpired = "account.token_expired",
        /// A grant was revoked.
        AccountReauthRequired = "account.reauth_required",
        /// An account finished the connect flow.
        AccountConnected = "account.connected",
        /// An account was removed.
        AccountDisconnected = "account.disconnected",
        /// An import finished.
        ImportCompleted = "import.completed",
        /// An import finished with errors.
        ImportFailed = "import.failed",
    }
}

/// The subscription to every event.
pub const EVERY_EVENT: &str = "*";

/// The name of the sample that a test call sends; nobody subscribes to it.
pub const SAMPLE: &str = "webhook.test";

/// An account, as events name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAccount {
    /// The account.
    pub account: AccountId,
    /// Its platform.
    pub network: String,
    /// Its name there.
    pub username: String,
}

/// How far one account of a post has come, as `post.published` and `post.error` list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Live, with the platform's id of the post.
    Live(String),
    /// Not live and not going to be, with the reason.
    Failed(String),
    /// Still under way.
    Open,
}

/// A timestamp as the whole interface writes it: UTC, milliseconds, `Z`.
pub fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The body of a delivery, fixed once and for all its attempts.
pub fn body(event: &str, at: DateTime<Utc>, data: &Value) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        event: &'a str,
        timestamp: String,
        data: &'a Value,
    }
    serde_json::to_string(&Body { event, timestamp: timestamp(at), data }).expect("an event is plain data")
}

/// The data of `post.published` and `post.error`.
pub fn post(post: PostId, org: OrgId, accounts: &[(EventAccount, Outcome)]) -> Value {
    let accounts: Vec<_> = accounts
        .iter()
        .map(|(subject, outcome)| {
            let mut entry = json!({
                "accountId": subject.account,
                "network": subject.network,
                "username": subject.username,
            });
            match outcome {
                Outcome::Live(id) => entry["platformPostId"] = json!(id),
                Outcome::Failed(error) => entry["error"] = json!(error),
                Outcome::Open => {}
            }
            entry
        })
        .collect();
    json!({ "postId": post, "orgId": org, "socialAccounts": accounts })
}

/// The data of `post.target.published`.
pub fn target_published(
    post: PostId,
    target: TargetId,
    org: OrgId,
    subject: &EventAccount,
    id: &str,
    url: Option<&str>,
) -> Value {
    let mut data = target_data(post, target, org, subject);
    data["platformPostId"] = json!(id);
    data["platformPostUrl"] = json!(url);
    data
}

/// The data of `post.target.failed`.
pub fn target_failed(
    post: PostId,
    target: TargetId,
    org: OrgId,
    subject: &EventAccount,
    code: &str,
    error: &str,
) -> Value {
    let mut data = target_data(post, target, org, subject);
    data["errorCode"] = json!(code);
    data["error"] = json!(error);
    data
}

/// The data of every `account.*` event.
pub fn account(org: OrgId, subject: &EventAccount, tenant: Option<&str>, error: Option<&str>) -> Value {
    let mut data = json!({
        "orgId": org,
        "accountId": subject.account,
        "network": subject.network,
        "username": subject.username,
        "tenantId": tenant,
    });
    if let Some(error) = error {
        data["error"] = json!(error);
    }
    data
}

/// The data of `import.completed`, or with an error that of `import.failed`.
pub fn import(org: OrgId, import: ImportId, account: AccountId, imported: i32, error: Option<&str>) -> Value {
    let mut data = json!({
        "orgId": org,
        "import_id": import,
        "social_account_id": account,
        "status": "completed",
        "imported": imported,
    });
    if let Some(error) = error {
        data["status"] = json!("failed");
        data["error"] = json!(error);
    }
    data
}

/// The data of the sample that a test call sends.
pub fn sample(org: OrgId, webhook: WebhookId) -> Value {
    json!({ "orgId": org, "webhookId": webhook })
}

fn target_data(post: PostId, target: TargetId, org: OrgId, subject: &EventAccount) -> Value {
    json!({
        "postId": post,
        "targetId": target,
        "orgId": org,
        "accountId": subject.account,
        "network": subject.network,
        "username": subject.username,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_body_names_event_time_and_data() {
        let at = DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap();
        assert_eq!(
            body("webhook.test", at, &json!({ "a": 1 })),
            r#"{"event":"webhook.test","timestamp":"2023-11-14T22:13:20.005Z","data":{"a":1}}"#
        );
    }

    #[test]
    fn a_target_still_under_way_has_neither_id_nor_error() {
        let subject = |name: &str| EventAccount {
            account: AccountId(Uuid::nil()),
            network: "x".into(),
            username: name.into(),
        };
        let data = post(
            PostId(Uuid::nil()),
            OrgId(Uuid::nil()),
            &[
                (subject("a"), Outcome::Live("1".into())),
                (subject("b"), Outcome::Failed("no".into())),
                (subject("c"), Outcome::Open),
            ],
        );
        let keys =
            |i: usize| data["socialAccounts"][i].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(0), ["accountId", "network", "platformPostId", "username"]);
        assert_eq!(keys(1), ["accountId", "error", "network", "username"]);
        assert_eq!(keys(2), ["accountId", "network", "username"]);
    }
}
