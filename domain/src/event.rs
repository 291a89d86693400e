//! Webhook events: their names and bodies.
//!
//! Post, account and media events use camelCase fields, import events snake_case. The contract itself is
//! inconsistent here; receivers depend on it.

use crate::{
    AccountId, EventId, ImportId, MediaId, MediaKind, Missing, OrgId, PostId, PostStatus, TargetId, WebhookId,
};
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
        /// A post of which dead targets were retried has ended again.
        PostRetried = "post.retried",
        /// One account of a post is live.
        TargetPublished = "post.target.published",
        /// One account of a post failed for good.
        TargetFailed = "post.target.failed",
        /// Parts of a post that is live on one account will not follow.
        TargetIncomplete = "post.target.incomplete",
        /// A token could not be refreshed.
        AccountTokenExpired = "account.token_expired",
        /// A grant ends within a week, and no refresh extends it.
        AccountTokenExpiring = "account.token_expiring",
        /// A grant was revoked.
        AccountReauthRequired = "account.reauth_required",
        /// An account was connected, or connected again.
        AccountConnected = "account.connected",
        /// An account was removed.
        AccountDisconnected = "account.disconnected",
        /// An import finished.
        ImportCompleted = "import.completed",
        /// An import finished with errors.
        ImportFailed = "import.failed",
        /// A media asset was inspected and can be published.
        MediaReady = "media.ready",
        /// A media asset was rejected, or could not be fetched.
        MediaFailed = "media.failed",
        /// A webhook endpoint accepts nothing. Sent to the others.
        WebhookFailing = "webhook.failing",
    }
}

/// Subscribes a webhook to every event.
pub const EVERY_EVENT: &str = "*";

/// Name of the test event. It is sent on request only; no subscription includes it.
pub const TEST_EVENT: &str = "webhook.test";

/// The account fields of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAccount {
    /// Account id.
    pub account: AccountId,
    /// Platform id.
    pub network: String,
    /// Handle on the platform, without `@`.
    pub username: String,
}

/// The state of one account of a post in `post.published`, `post.error` and `post.retried`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Live, with the platform's id of the post.
    Live(String),
    /// Failed or canceled, with the reason.
    Failed(String),
    /// Not terminal yet.
    Open,
}

/// Formats a timestamp as the API and the webhooks do: UTC, milliseconds, `Z`.
pub fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns the body of an event's deliveries. It is the same in every attempt. The id is there to be signed: the header
/// with it is not.
pub fn body(id: EventId, event: &str, at: DateTime<Utc>, data: &Value) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        id: EventId,
        event: &'a str,
        timestamp: String,
        data: &'a Value,
    }
    serde_json::to_string(&Body { id, event, timestamp: timestamp(at), data })
        .expect("an event is plain data")
}

/// Returns the `data` of `post.published` and `post.error`.
pub fn post(post: PostId, org: OrgId, accounts: &[(EventAccount, Outcome)]) -> Value {
    let accounts: Vec<_> = accounts
        .iter()
        .map(|(account, outcome)| {
            let mut entry = json!({
                "accountId": account.account,
                "network": account.network,
                "username": account.username,
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

/// Returns the `data` of `post.retried`: how a post ended in a round of retries.
pub fn retried(
    post: PostId,
    org: OrgId,
    round: u32,
    outcome: PostStatus,
    accounts: &[(EventAccount, Outcome)],
) -> Value {
    let mut data = in_round(round, self::post(post, org, accounts));
    data["outcome"] = json!(outcome);
    data
}

/// Adds the round of retries to the `data` of an event. The first publication is no round of retries, and its events
/// have no such member.
pub fn in_round(round: u32, mut data: Value) -> Value {
    if round > 0 {
        data["round"] = json!(round);
    }
    data
}

/// Returns the `data` of `post.target.published`, and of `post.target.incomplete`. It names the parts of the post that are
/// missing; where none is known to be, it has no such member.
pub fn target_published(
    post: PostId,
    target: TargetId,
    org: OrgId,
    account: &EventAccount,
    (id, url): (&str, Option<&str>),
    missing: &[Missing],
) -> Value {
    let mut data = target_data(post, target, org, account);
    data["platformPostId"] = json!(id);
    data["platformPostUrl"] = json!(url);
    if !missing.is_empty() {
        let parts = missing.iter().map(|part| {
            json!({
                "position": part.position, "error_code": part.error_code, "error_message": part.error_message,
            })
        });
        data["missing"] = parts.collect();
    }
    data
}

/// Returns the `data` of `post.target.failed`.
pub fn target_failed(
    post: PostId,
    target: TargetId,
    org: OrgId,
    account: &EventAccount,
    code: &str,
    error: &str,
) -> Value {
    let mut data = target_data(post, target, org, account);
    data["errorCode"] = json!(code);
    data["error"] = json!(error);
    data
}

/// Returns the `data` of an `account.*` event.
pub fn account(org: OrgId, account: &EventAccount, tenant: Option<&str>, error: Option<&str>) -> Value {
    let mut data = json!({
        "orgId": org,
        "accountId": account.account,
        "network": account.network,
        "username": account.username,
        "tenantId": tenant,
    });
    if let Some(error) = error {
        data["error"] = json!(error);
    }
    data
}

/// Returns the `data` of `account.token_expiring`: an `account.*` event with the time at which the grant ends.
pub fn token_expiring(
    org: OrgId,
    account: &EventAccount,
    tenant: Option<&str>,
    ends_at: DateTime<Utc>,
) -> Value {
    let mut data = self::account(org, account, tenant, None);
    data["grantExpiresAt"] = json!(timestamp(ends_at));
    data
}

/// Returns the `data` of `media.ready`, or of `media.failed` if there is an error.
pub fn media(org: OrgId, media: MediaId, kind: MediaKind, filename: &str, error: Option<&str>) -> Value {
    let mut data = json!({ "orgId": org, "mediaId": media, "kind": kind.as_str(), "filename": filename });
    if let Some(error) = error {
        data["error"] = json!(error);
    }
    data
}

/// Returns the `data` of `import.completed`, or of `import.failed` if there is an error.
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

/// Returns the `data` of `webhook.failing`.
pub fn webhook_failing(org: OrgId, webhook: WebhookId, since: DateTime<Utc>, error: &str) -> Value {
    json!({ "orgId": org, "webhookId": webhook, "failingSince": timestamp(since), "error": error })
}

/// Returns the `data` of the test event.
pub fn test_event(org: OrgId, webhook: WebhookId) -> Value {
    json!({ "orgId": org, "webhookId": webhook })
}

fn target_data(post: PostId, target: TargetId, org: OrgId, account: &EventAccount) -> Value {
    json!({
        "postId": post,
        "targetId": target,
        "orgId": org,
        "accountId": account.account,
        "network": account.network,
        "username": account.username,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_body_names_id_event_time_and_data() {
        let at = DateTime::from_timestamp(1_700_000_000, 5_000_000).unwrap();
        assert_eq!(
            body(EventId(Uuid::from_u128(7)), "webhook.test", at, &json!({ "a": 1 })),
            r#"{"id":"00000000-0000-0000-0000-000000000007","event":"webhook.test","timestamp":"2023-11-14T22:13:20.005Z","data":{"a":1}}"#
        );
    }

    #[test]
    fn a_target_that_is_not_terminal_has_neither_id_nor_error() {
        let account = |name: &str| EventAccount {
            account: AccountId(Uuid::nil()),
            network: "x".into(),
            username: name.into(),
        };
        let data = post(
            PostId(Uuid::nil()),
            OrgId(Uuid::nil()),
            &[
                (account("a"), Outcome::Live("1".into())),
                (account("b"), Outcome::Failed("no".into())),
                (account("c"), Outcome::Open),
            ],
        );
        let keys =
            |i: usize| data["socialAccounts"][i].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(0), ["accountId", "network", "platformPostId", "username"]);
        assert_eq!(keys(1), ["accountId", "error", "network", "username"]);
        assert_eq!(keys(2), ["accountId", "network", "username"]);
    }
}
