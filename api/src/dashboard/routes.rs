//! What each page and action asks for, and the operation of the API that it counts as.
//!
//! A page asks for the scopes of the operations that it shows, an action for that of the operation that it calls. What
//! is not in this table is not there.

use domain::scope::Scope::{self, *};
use poem::http::Method;

/// A page or an action.
#[derive(Debug)]
pub(crate) struct Route {
    /// Path below the dashboard's; a segment in braces stands for any.
    path: &'static str,
    /// Scopes that it asks for, all of them.
    pub(crate) scopes: &'static [Scope],
    /// The operation that an action stands for: method and path.
    operation: Option<(&'static str, &'static str)>,
}

const fn page(path: &'static str, scopes: &'static [Scope]) -> Route {
    Route { path, scopes, operation: None }
}

const fn action(
    path: &'static str,
    scopes: &'static [Scope],
    method: &'static str,
    operation: &'static str,
) -> Route {
    Route { path, scopes, operation: Some((method, operation)) }
}

/// The pages.
const PAGES: [Route; 17] = [
    page("/calendar", &[PostsRead, AccountsRead]),
    page("/requests", &[UsageRead]),
    page("", &[PostsRead, AccountsRead]),
    page("/sign-in", &[]),
    page("/me", &[]),
    page("/me/passkeys/options", &[]),
    page("/posts", &[PostsRead, AccountsRead]),
    page("/posts/{id}", &[PostsRead, AccountsRead]),
    page("/compose", &[PostsWrite, AccountsRead, MediaRead]),
    page("/accounts", &[AccountsRead]),
    page("/webhooks", &[WebhooksRead]),
    page("/webhooks/{id}", &[WebhooksRead]),
    page("/media", &[MediaRead]),
    page("/keys", &[KeysWrite]),
    page("/team", &[TeamRead]),
    page("/audit", &[TeamRead]),
    page("/usage", &[UsageRead]),
];

/// The actions.
const ACTIONS: [Route; 38] = [
    action("/posts/{id}/reschedule", &[PostsWrite, PostsRead, AccountsRead], "PATCH", "/posts/{id}"),
    action("/retry", &[PostsWrite, PostsRead, AccountsRead], "POST", "/posts/{id}/targets/{target_id}/retry"),
    action("/posts/{id}/cancel", &[PostsWrite], "DELETE", "/posts/{id}"),
    action("/posts/{id}/release", &[PostsWrite], "PATCH", "/posts/{id}"),
    action(
        "/posts/{id}/targets/{target}/retry",
        &[PostsWrite],
        "POST",
        "/posts/{id}/targets/{target_id}/retry",
    ),
    action(
        "/posts/{id}/targets/{target}/revive",
        &[PostsWrite],
        "POST",
        "/posts/{id}/targets/{target_id}/retry",
    ),
    action(
        "/posts/{id}/targets/{target}/unpublish",
        &[PostsWrite],
        "POST",
        "/posts/{id}/targets/{target_id}/unpublish",
    ),
    action("/posts/{id}/targets/{target}/edit", &[PostsWrite], "PATCH", "/posts/{id}/targets/{target_id}"),
    action("/compose", &[PostsWrite, AccountsRead, MediaRead], "POST", "/posts"),
    action("/accounts/connect", &[AccountsWrite], "POST", "/social-networks/{platform}/auth-url"),
    action("/accounts/bluesky", &[AccountsWrite], "POST", "/social-accounts/bluesky/connect"),
    action("/accounts/{id}/check", &[AccountsRead], "GET", "/social-accounts/{id}/health"),
    action("/accounts/{id}/retry", &[PostsWrite, AccountsRead], "POST", "/social-accounts/{id}/retry-failed"),
    action("/accounts/{id}/reconnect", &[AccountsWrite], "POST", "/social-networks/{platform}/auth-url"),
    action("/accounts/{id}/disconnect", &[AccountsWrite], "DELETE", "/social-accounts/{id}"),
    action("/webhooks", &[WebhooksWrite], "POST", "/webhooks"),
    action("/webhooks/{id}/test", &[WebhooksWrite], "POST", "/webhooks/{id}/test"),
    action("/webhooks/{id}/pause", &[WebhooksWrite], "PATCH", "/webhooks/{id}"),
    action("/webhooks/{id}/resume", &[WebhooksWrite], "PATCH", "/webhooks/{id}"),
    action("/webhooks/{id}/reveal", &[WebhooksWrite], "PATCH", "/webhooks/{id}"),
    action("/webhooks/{id}/prepare", &[WebhooksWrite], "PATCH", "/webhooks/{id}"),
    action("/webhooks/{id}/rotate", &[WebhooksWrite], "PATCH", "/webhooks/{id}"),
    action("/webhooks/{id}/replay", &[WebhooksWrite], "POST", "/webhooks/{id}/replay"),
    action("/webhooks/{id}/delete", &[WebhooksWrite], "DELETE", "/webhooks/{id}"),
    action(
        "/webhooks/{id}/deliveries/{delivery}/redeliver",
        &[WebhooksWrite],
        "POST",
        "/webhooks/{id}/deliveries/{delivery_id}/redeliver",
    ),
    action("/media", &[MediaWrite], "POST", "/media/import"),
    action("/media/{id}/delete", &[MediaWrite], "DELETE", "/media/{id}"),
    action("/keys", &[KeysWrite], "POST", "/api-keys"),
    action("/keys/{id}/rotate", &[KeysWrite], "POST", "/api-keys/{id}/rotate"),
    action("/keys/{id}/revoke", &[KeysWrite], "DELETE", "/api-keys/{id}"),
    action("/team", &[TeamWrite], "POST", "/team"),
    action("/team/{id}/role", &[TeamWrite], "PATCH", "/team/{id}"),
    action("/team/{id}/remove", &[TeamWrite], "DELETE", "/team/{id}"),
    page("/me/passkeys", &[]),
    page("/me/passkeys/{id}/remove", &[]),
    page("/me/identities", &[]),
    page("/me/identities/unlink", &[]),
    page("/me/sessions/others/end", &[]),
    page("/me/sessions/{id}/end", &[]),
    page("/me/switch", &[]),
];

/// The operators' pages, below theirs. They ask for no scope: an operator may do everything there.
const OPERATOR_PAGES: [Route; 9] = [
    page("", &[]),
    page("/sign-in", &[]),
    page("/open", &[]),
    page("/stuck", &[]),
    page("/posts/{id}", &[]),
    page("/freezes", &[]),
    page("/deliveries", &[]),
    page("/organizations", &[]),
    page("/organizations/{id}", &[]),
];

/// The operators' actions.
const OPERATOR_ACTIONS: [Route; 12] = [
    page("/sign-in", &[]),
    page("/sign-out", &[]),
    page("/stuck", &[]),
    page("/reconcile", &[]),
    page("/posts/{id}", &[]),
    page("/freezes", &[]),
    page("/freezes/release", &[]),
    page("/deliveries", &[]),
    page("/organizations/sessions/end", &[]),
    page("/organizations/{id}/keys", &[]),
    page("/organizations/{id}/keys/{key}/revoke", &[]),
    page("/organizations/{id}/sessions/end", &[]),
];

impl Route {
    /// Returns the page or action at a path below the dashboard's.
    pub(crate) fn of(is_read: bool, segments: &[&str]) -> Option<&'static Self> {
        Self::among(if is_read { &PAGES } else { &ACTIONS }, segments)
    }

    /// Returns the page or action at a path below the operators'.
    pub(crate) fn of_operators(is_read: bool, segments: &[&str]) -> Option<&'static Self> {
        Self::among(if is_read { &OPERATOR_PAGES } else { &OPERATOR_ACTIONS }, segments)
    }

    fn among(routes: &'static [Self], segments: &[&str]) -> Option<&'static Self> {
        routes.iter().find(|route| {
            let mut pattern = route.path.split('/').skip(1);
            let fits = segments.iter().all(|segment| {
                pattern.next().is_some_and(|known| known.starts_with('{') || known == *segment)
            });
            fits && pattern.next().is_none()
        })
    }

    /// The operation that an action counts as; `None` for a page.
    pub(crate) fn operation(&self) -> Option<(Method, &'static str)> {
        let (method, path) = self.operation?;
        Some((method.parse().expect("the table has methods"), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn find(is_read: bool, path: &str) -> Option<&'static Route> {
        Route::of(is_read, &path.split('/').skip(1).collect::<Vec<_>>())
    }

    #[test]
    fn a_path_is_found_by_its_segments() {
        assert_eq!(find(true, "").unwrap().path, "");
        assert_eq!(find(true, "/posts/7").unwrap().path, "/posts/{id}");
        assert_eq!(find(false, "/me/sessions/others/end").unwrap().path, "/me/sessions/others/end");
        for (is_read, path) in
            [(true, "/posts/7/8"), (true, "/postscript"), (false, "/posts"), (true, "/media/")]
        {
            assert!(find(is_read, path).is_none(), "{path}");
        }
    }

    #[test]
    fn an_action_asks_for_the_scope_of_its_operation() {
        let document: Value = serde_json::from_str(&crate::document()).unwrap();
        for route in &ACTIONS {
            let Some((method, path)) = route.operation else { continue };
            let operation = &document["paths"][path][method.to_lowercase()];
            let text = operation["description"].as_str().unwrap_or_else(|| panic!("{method} {path}"));
            let scope = format!("Scope `{}`", route.scopes[0]);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&scope), "{}: {text}", route.path);
        }
    }
}
