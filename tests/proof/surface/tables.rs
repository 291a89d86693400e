//! Subjects of operations, tools, resource templates and prompts, and of pages by the first part of their paths.
//!
//! An entrance without a line here fails the parts that read the tables, and so does a line of nothing.

use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Subject of an operation.
#[derive(Clone, Copy)]
pub(crate) enum About {
    /// The resource that its path names, of this kind.
    One(&'static str),
    /// Access of the caller.
    Reached,
    /// Resources that its body or query names, made of an account's id, and the codes with which limited callers and strangers are
    /// refused; none if they are not, since the names mean nothing to them.
    Named(fn(&str) -> Value, &'static [&'static str], &'static [&'static str]),
    /// The organization: no limited caller may call it.
    Organization,
    /// A resource of the organization, which its path names.
    OneOfOrganization(&'static str),
    /// A login, by the token in its path.
    Login,
}

use About::{Login, Named, One, OneOfOrganization, Organization, Reached};

/// The code of an account, or another thing in a body, that is not there.
const UNKNOWN: &[&str] = &["account_not_found"];
/// The code of what concerns the whole organization.
pub(crate) const FORBIDDEN: &[&str] = &["forbidden"];

/// A post to an account.
fn post(account: &str) -> Value {
    json!({ "content": "Hello", "accounts": [account] })
}

/// A profile with an account.
fn profile(account: &str) -> Value {
    json!({ "name": "Taken", "social_account_ids": [account] })
}

/// The operations.
pub(crate) const OPERATIONS: &[(&str, About)] = &[
    ("GET /account/audit", Organization),
    ("GET /account/requests", Organization),
    ("GET /account/usage", Organization),
    ("GET /api-keys", Organization),
    ("POST /api-keys", Organization),
    ("DELETE /api-keys/{id}", OneOfOrganization("api-keys")),
    ("POST /api-keys/{id}/rotate", OneOfOrganization("api-keys")),
    ("POST /client-tokens", Named(|_| json!({ "tenant_id": "theirs" }), FORBIDDEN, &[])),
    ("DELETE /client-tokens/{id}", One("client-tokens")),
    ("GET /connect/branding", Organization),
    ("PUT /connect/branding", Organization),
    ("GET /connect/platforms", Reached),
    ("GET /events", Reached),
    ("GET /media", Reached),
    (
        "POST /media/import",
        Named(|_| json!({ "url": "https://10.0.0.1/a" }), &["invalid_request"], &["invalid_request"]),
    ),
    ("GET /media/settings", Organization),
    ("PATCH /media/settings", Organization),
    ("POST /media/upload", Named(|_| json!({}), &["invalid_request"], &["invalid_request"])),
    ("DELETE /media/{id}", One("media")),
    ("GET /media/{id}", One("media")),
    ("PATCH /media/{id}", One("media")),
    ("POST /media/{id}/confirm", One("media")),
    ("GET /posts", Reached),
    ("POST /posts", Named(post, UNKNOWN, UNKNOWN)),
    ("POST /posts/batch", Named(|account| json!({ "posts": [post(account)] }), UNKNOWN, UNKNOWN)),
    ("POST /posts/validate", Named(post, UNKNOWN, UNKNOWN)),
    ("DELETE /posts/{id}", One("posts")),
    ("GET /posts/{id}", One("posts")),
    ("PATCH /posts/{id}", One("posts")),
    ("GET /posts/{id}/analytics", One("posts")),
    ("POST /posts/{id}/retry", One("posts")),
    ("PATCH /posts/{id}/targets/{target_id}", One("posts")),
    ("POST /posts/{id}/targets/{target_id}/retry", One("posts")),
    ("POST /posts/{id}/targets/{target_id}/unpublish", One("posts")),
    ("GET /posts/{id}/timeline", One("posts")),
    ("GET /profiles", Reached),
    ("POST /profiles", Named(profile, &["forbidden", "account_not_found"], UNKNOWN)),
    ("DELETE /profiles/{id}", One("profiles")),
    ("GET /profiles/{id}", One("profiles")),
    ("PATCH /profiles/{id}", One("profiles")),
    ("GET /scheduling/find-slot", Named(|account| json!({ "account": account }), UNKNOWN, UNKNOWN)),
    ("GET /scheduling/slots", Reached),
    (
        "PUT /scheduling/slots",
        Named(|account| json!({ "social_account_id": account, "slots": [] }), UNKNOWN, UNKNOWN),
    ),
    ("GET /social-accounts", Reached),
    (
        "POST /social-accounts/bluesky/connect",
        Named(
            |_| json!({ "identifier": "a", "tenant_id": "theirs" }),
            &["invalid_request"],
            &["invalid_request"],
        ),
    ),
    ("GET /social-accounts/pending/{token}", Login),
    ("POST /social-accounts/pending/{token}/finalize", Login),
    ("DELETE /social-accounts/{id}", One("social-accounts")),
    ("GET /social-accounts/{id}", One("social-accounts")),
    ("PATCH /social-accounts/{id}", One("social-accounts")),
    ("GET /social-accounts/{id}/capabilities", One("social-accounts")),
    ("GET /social-accounts/{id}/health", One("social-accounts")),
    ("GET /social-accounts/{id}/imported-posts", One("social-accounts")),
    ("GET /social-accounts/{id}/imports", One("social-accounts")),
    ("POST /social-accounts/{id}/imports", One("social-accounts")),
    ("GET /social-accounts/{id}/imports/{import_id}", One("social-accounts")),
    ("GET /social-accounts/{id}/limits", One("social-accounts")),
    ("GET /social-accounts/{id}/options/{kind}", One("social-accounts")),
    ("POST /social-accounts/{id}/retry-failed", One("social-accounts")),
    ("GET /social-networks", Organization),
    ("POST /social-networks", Organization),
    ("DELETE /social-networks/{id}", OneOfOrganization("social-networks")),
    ("GET /social-networks/{id}", OneOfOrganization("social-networks")),
    ("PATCH /social-networks/{id}", OneOfOrganization("social-networks")),
    (
        "POST /social-networks/{platform}/auth-url",
        Named(|account| json!({ "reconnect_account_id": account }), UNKNOWN, UNKNOWN),
    ),
    ("GET /team", Organization),
    ("POST /team", Organization),
    ("DELETE /team/{id}", OneOfOrganization("team")),
    ("PATCH /team/{id}", OneOfOrganization("team")),
    ("GET /webhooks", Organization),
    ("POST /webhooks", Organization),
    ("DELETE /webhooks/{id}", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}", OneOfOrganization("webhooks")),
    ("PATCH /webhooks/{id}", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}/deliveries", OneOfOrganization("webhooks")),
    ("GET /webhooks/{id}/deliveries/{delivery_id}", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/deliveries/{delivery_id}/redeliver", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/replay", OneOfOrganization("webhooks")),
    ("POST /webhooks/{id}/test", OneOfOrganization("webhooks")),
];

/// The operations of the MCP tools.
pub(crate) const TOOLS: [(&str, &str); 25] = [
    ("create_auth_url", "POST /social-networks/{platform}/auth-url"),
    ("create_post", "POST /posts"),
    ("create_webhook", "POST /webhooks"),
    ("delete_post", "DELETE /posts/{id}"),
    ("edit_published_post", "PATCH /posts/{id}/targets/{target_id}"),
    ("find_slot", "GET /scheduling/find-slot"),
    ("get_account_capabilities", "GET /social-accounts/{id}/capabilities"),
    ("get_account_limits", "GET /social-accounts/{id}/limits"),
    ("get_media", "GET /media/{id}"),
    ("get_post", "GET /posts/{id}"),
    ("get_post_analytics", "GET /posts/{id}/analytics"),
    ("get_post_timeline", "GET /posts/{id}/timeline"),
    ("get_usage", "GET /account/usage"),
    ("import_media", "POST /media/import"),
    ("list_account_options", "GET /social-accounts/{id}/options/{kind}"),
    ("list_accounts", "GET /social-accounts"),
    ("list_events", "GET /events"),
    ("list_posts", "GET /posts"),
    ("list_requests", "GET /account/requests"),
    ("list_webhooks", "GET /webhooks"),
    ("retry_post", "POST /posts/{id}/retry"),
    ("unpublish_post", "POST /posts/{id}/targets/{target_id}/unpublish"),
    ("update_media", "PATCH /media/{id}"),
    ("update_post", "PATCH /posts/{id}"),
    ("validate_post", "POST /posts/validate"),
];

/// The tools whose answers the resource templates give.
pub(crate) const TEMPLATES: [(&str, &str); 4] = [
    ("fanfare://accounts/{id}/capabilities", "get_account_capabilities"),
    ("fanfare://accounts/{id}/limits", "get_account_limits"),
    ("fanfare://posts/{id}", "get_post"),
    ("fanfare://posts/{id}/timeline", "get_post_timeline"),
];

/// The prompts, which are texts without data.
pub(crate) const PROMPTS: [&str; 2] = ["explain_stuck_post", "publish_picture"];

/// The operations that a client token can call.
pub(crate) const FOR_CLIENTS: [&str; 6] = [
    "GET /connect/platforms",
    "GET /social-accounts",
    "POST /social-accounts/bluesky/connect",
    "GET /social-accounts/pending/{token}",
    "POST /social-accounts/pending/{token}/finalize",
    "POST /social-networks/{platform}/auth-url",
];

/// The kinds of the resources that the pages of the dashboard name, by the first part of their paths.
const SECTIONS: [(&str, &str); 13] = [
    ("accounts", "social-accounts"),
    ("analytics", "posts"),
    ("audit", ""),
    ("calendar", ""),
    ("checklist", ""),
    ("compose", ""),
    ("events", "events"),
    ("keys", "api-keys"),
    ("me", "sessions"),
    ("media", "media"),
    ("posts", "posts"),
    ("team", "team"),
    ("webhooks", "webhooks"),
];
/// The other parts of the dashboard, whose pages name nothing.
const PLAIN_SECTIONS: [&str; 6] = ["", "requests", "retry", "search", "sign-in", "usage"];

/// Checks that the table has a line for each operation, and no other.
pub(crate) fn cover(operations: &[(Method, String, Value)]) {
    let known: HashSet<_> = OPERATIONS.iter().map(|(operation, _)| *operation).collect();
    let named: Vec<_> = operations.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let unknown: Vec<_> = named.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "these operations have no line in the table: {unknown:?}");
    assert_eq!(named.len(), OPERATIONS.len(), "a line of the table is of no operation");
}

/// Returns what an operation is about.
pub(crate) fn about(operation: &str) -> About {
    let found = OPERATIONS.iter().find(|(known, _)| *known == operation);
    found.unwrap_or_else(|| panic!("{operation} has no line in the table")).1
}

/// Returns the kind of the resource that a page or an action of the dashboard names; empty if it names none.
pub(crate) fn kind_of(path: &str) -> &'static str {
    let section = path.split('/').nth(1).unwrap_or_default();
    let kind = SECTIONS.iter().find(|(known, _)| *known == section).map(|(_, kind)| *kind);
    let kind = kind.or(PLAIN_SECTIONS.contains(&section).then_some(""));
    kind.unwrap_or_else(|| panic!("the dashboard's {path} is in no section of the table"))
}
