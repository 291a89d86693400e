//! Subjects of operations, tools, resource templates and prompts, and of pages by the first part of their paths.
//!
//! An entrance without a line here fails, and so does a line of nothing.

use super::scene::{Kind, Scene};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Subject of an operation.
#[derive(Clone, Copy)]
pub(super) enum About {
    /// The resource that its path names, of this kind.
    One(&'static str),
    /// Access of the caller.
    Reached,
    /// Resources that its body or query names, and the codes with which limited callers and strangers are refused; none
    /// if they are not, since the names mean nothing to them.
    Named(fn(&Scene) -> Value, &'static [&'static str], &'static [&'static str]),
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
const FORBIDDEN: &[&str] = &["forbidden"];

/// The operations.
pub(super) const OPERATIONS: &[(&str, About)] = &[
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
    ("POST /posts", Named(Scene::post, UNKNOWN, UNKNOWN)),
    ("POST /posts/batch", Named(|scene| json!({ "posts": [scene.post()] }), UNKNOWN, UNKNOWN)),
    ("POST /posts/validate", Named(Scene::post, UNKNOWN, UNKNOWN)),
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
    ("POST /profiles", Named(Scene::profile, &["forbidden", "account_not_found"], UNKNOWN)),
    ("DELETE /profiles/{id}", One("profiles")),
    ("GET /profiles/{id}", One("profiles")),
    ("PATCH /profiles/{id}", One("profiles")),
    (
        "GET /scheduling/find-slot",
        Named(|scene| json!({ "account": scene.id("social-accounts") }), UNKNOWN, UNKNOWN),
    ),
    ("GET /scheduling/slots", Reached),
    (
        "PUT /scheduling/slots",
        Named(
            |scene| json!({ "social_account_id": scene.id("social-accounts"), "slots": [] }),
            UNKNOWN,
            UNKNOWN,
        ),
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
        Named(|scene| json!({ "reconnect_account_id": scene.id("social-accounts") }), UNKNOWN, UNKNOWN),
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
pub(super) const TOOLS: [(&str, &str); 25] = [
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
pub(super) const TEMPLATES: [(&str, &str); 4] = [
    ("fanfare://accounts/{id}/capabilities", "get_account_capabilities"),
    ("fanfare://accounts/{id}/limits", "get_account_limits"),
    ("fanfare://posts/{id}", "get_post"),
    ("fanfare://posts/{id}/timeline", "get_post_timeline"),
];

/// The prompts, which are texts without data.
pub(super) const PROMPTS: [&str; 2] = ["explain_stuck_post", "publish_picture"];

/// The operations that a client token can call.
const FOR_CLIENTS: [&str; 6] = [
    "GET /connect/platforms",
    "GET /social-accounts",
    "POST /social-accounts/bluesky/connect",
    "GET /social-accounts/pending/{token}",
    "POST /social-accounts/pending/{token}/finalize",
    "POST /social-networks/{platform}/auth-url",
];

/// The kinds of the resources that the pages of the dashboard name, by the first part of their paths.
pub(super) const SECTIONS: [(&str, &str); 13] = [
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
pub(super) const PLAIN_SECTIONS: [&str; 6] = ["", "requests", "retry", "search", "sign-in", "usage"];

/// Answer that a caller is to get.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Expected {
    /// One of these codes.
    Refused(&'static [&'static str]),
    /// An answer without what they must not see.
    Nothing,
    /// Not tried: it creates something of the caller's own.
    Untried,
}

/// Checks that the table has a line for each operation, and no other.
pub(super) fn cover(operations: &[(Method, String, Value)]) {
    let known: HashSet<_> = OPERATIONS.iter().map(|(operation, _)| *operation).collect();
    let named: Vec<_> = operations.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let unknown: Vec<_> = named.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(unknown.is_empty(), "these operations have no line in the table: {unknown:?}");
    assert_eq!(named.len(), OPERATIONS.len(), "a line of the table is of no operation");
}

/// Returns what a kind of callers is to get.
pub(super) fn expected(operation: &str, about: About, kind: Kind) -> Expected {
    use Expected::{Nothing, Refused, Untried};
    let is_read = operation.starts_with("GET ");
    match (about, kind) {
        // The token in the path authorizes, and there is no such login.
        (Login, _) => Refused(&["not_found"]),
        (_, Kind::Ended) => Refused(&["unauthorized"]),
        (_, Kind::Client) if !FOR_CLIENTS.contains(&operation) => {
            Refused(&["forbidden", "insufficient_scope"])
        }
        (One(_), _) => Refused(&["not_found"]),
        (Reached, _) => Nothing,
        (Named(..), Kind::Client) if operation.ends_with("/auth-url") => {
            Refused(&["forbidden", "account_not_found"])
        }
        // Live mode has no app of the platform.
        (Named(..), Kind::Mode) if operation.ends_with("/auth-url") => {
            Refused(&["account_not_found", "no_app_available"])
        }
        (Named(_, limited, _), Kind::Bound | Kind::Client) if !limited.is_empty() => Refused(limited),
        (Named(_, _, strangers), Kind::Organization | Kind::Mode) if !strangers.is_empty() => {
            Refused(strangers)
        }
        (Named(..), _) => Untried,
        (Organization | OneOfOrganization(_), Kind::Bound | Kind::Client) => Refused(FORBIDDEN),
        (Organization, _) if is_read => Nothing,
        (Organization, _) => Untried,
        // Both modes share the team.
        (OneOfOrganization("team"), Kind::Mode) => Untried,
        (OneOfOrganization(_), _) => Refused(&["not_found"]),
    }
}
