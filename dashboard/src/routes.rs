//! What each page and action asks for, and the operation of the API that it counts as.
//!
//! A page asks for the scopes of the operations that it shows, an action for that of the operation that it calls, and
//! for those of the page that it draws. What is not in this table is not there.

use domain::scope::Scope::{self, *};
use poem::http::Method;

/// An operation of the API: method and path.
type Operation = (&'static str, &'static str);

/// A page or an action.
#[derive(Debug)]
pub(crate) struct Route {
    /// Path below the dashboard's; a segment in braces stands for any.
    path: &'static str,
    /// Scopes of the operations.
    scopes: &'static [Scope],
    /// Operations that a page shows, or the one that an action stands for.
    operations: &'static [Operation],
    /// The page that an action draws when it fails, or to show its result; `None` for a page.
    page: Option<&'static str>,
}

const fn page(path: &'static str, scopes: &'static [Scope], shows: &'static [Operation]) -> Route {
    Route { path, scopes, operations: shows, page: None }
}

const fn action(
    path: &'static str,
    page: &'static str,
    scope: &'static [Scope; 1],
    operation: &'static [Operation; 1],
) -> Route {
    Route { path, scopes: scope, operations: operation, page: Some(page) }
}

/// The pages.
const PAGES: [Route; 26] = [
    page("/search", &[], &[]),
    page(
        "/analytics",
        &[AnalyticsRead, AccountsRead, PostsRead],
        &[("GET", "/posts/{id}/analytics"), ("GET", "/social-accounts"), ("GET", "/posts")],
    ),
    page(
        "/analytics/posts/{id}",
        &[AnalyticsRead, PostsRead],
        &[("GET", "/posts/{id}/analytics"), ("GET", "/posts/{id}")],
    ),
    page("/calendar", &[PostsRead, AccountsRead], &[("GET", "/posts"), ("GET", "/social-accounts")]),
    page("/events", &[WebhooksRead], &[("GET", "/events")]),
    page("/events/{id}", &[WebhooksRead], &[("GET", "/events"), ("GET", "/webhooks/{id}/deliveries")]),
    page("/requests", &[UsageRead], &[("GET", "/account/requests")]),
    page("", &[PostsRead, AccountsRead], &[("GET", "/posts"), ("GET", "/social-accounts")]),
    page("/sign-in", &[], &[]),
    page("/me", &[], &[]),
    page("/me/passkeys/options", &[], &[]),
    page("/posts", &[PostsRead, AccountsRead], &[("GET", "/posts"), ("GET", "/social-accounts")]),
    page(
        "/posts/{id}",
        &[PostsRead, AccountsRead],
        &[("GET", "/posts/{id}"), ("GET", "/posts/{id}/timeline"), ("GET", "/social-accounts")],
    ),
    page(
        "/posts/{id}/targets/{target}/parts/{position}",
        &[PostsRead, PostsWrite, AccountsRead, MediaRead],
        &[
            ("GET", "/posts/{id}"),
            ("PATCH", "/posts/{id}/targets/{target_id}"),
            ("GET", "/social-accounts"),
            ("GET", "/media"),
        ],
    ),
    page(
        "/compose",
        &[PostsWrite, AccountsRead, MediaRead],
        &[("POST", "/posts/validate"), ("GET", "/social-accounts"), ("GET", "/media")],
    ),
    page("/accounts", &[AccountsRead], &[("GET", "/social-accounts")]),
    page("/webhooks", &[WebhooksRead], &[("GET", "/webhooks")]),
    page(
        "/webhooks/{id}",
        &[WebhooksRead],
        &[("GET", "/webhooks/{id}"), ("GET", "/webhooks/{id}/deliveries")],
    ),
    page(
        "/webhooks/{id}/deliveries/{delivery}",
        &[WebhooksRead],
        &[("GET", "/webhooks/{id}"), ("GET", "/webhooks/{id}/deliveries/{delivery_id}")],
    ),
    page("/media", &[MediaRead], &[("GET", "/media")]),
    page("/media/{id}/thumbnail", &[MediaRead], &[("GET", "/media/{id}")]),
    page("/media/{id}/file", &[MediaRead], &[("GET", "/media/{id}")]),
    page("/keys", &[KeysWrite], &[("GET", "/api-keys")]),
    page("/team", &[TeamRead], &[("GET", "/team")]),
    page("/audit", &[TeamRead], &[("GET", "/account/audit")]),
    page("/usage", &[UsageRead], &[("GET", "/account/usage")]),
];

/// The actions.
const ACTIONS: [Route; 53] = [
    action("/posts/retry", "/posts", &[PostsWrite], &[("POST", "/posts/{id}/retry")]),
    action("/posts/cancel", "/posts", &[PostsWrite], &[("DELETE", "/posts/{id}")]),
    page("/checklist/dismiss", &[], &[]),
    action(
        "/analytics/posts/{id}/refresh",
        "/analytics/posts/{id}",
        &[AnalyticsRead],
        &[("GET", "/posts/{id}/analytics")],
    ),
    action("/posts/{id}/reschedule", "/calendar", &[PostsWrite], &[("PATCH", "/posts/{id}")]),
    action("/retry", "", &[PostsWrite], &[("POST", "/posts/{id}/targets/{target_id}/retry")]),
    action("/posts/{id}/cancel", "/posts/{id}", &[PostsWrite], &[("DELETE", "/posts/{id}")]),
    action("/posts/{id}/release", "/posts/{id}", &[PostsWrite], &[("PATCH", "/posts/{id}")]),
    action(
        "/posts/{id}/targets/{target}/retry",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/retry")],
    ),
    action(
        "/posts/{id}/targets/{target}/revive",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/retry")],
    ),
    action(
        "/posts/{id}/targets/{target}/unpublish",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/unpublish")],
    ),
    action(
        "/posts/{id}/targets/{target}/edit",
        "/posts/{id}",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}/targets/{target_id}")],
    ),
    action(
        "/posts/{id}/targets/{target}/parts/{position}",
        "/posts/{id}/targets/{target}/parts/{position}",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}/targets/{target_id}")],
    ),
    action("/compose", "/compose", &[PostsWrite], &[("POST", "/posts")]),
    // It stands for no operation: it is asked for while one types.
    page(
        "/compose/preview",
        &[PostsWrite, AccountsRead, MediaRead],
        &[("POST", "/posts/validate"), ("GET", "/social-accounts"), ("GET", "/media")],
    ),
    action(
        "/accounts/connect",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-networks/{platform}/auth-url")],
    ),
    action(
        "/accounts/bluesky",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-accounts/bluesky/connect")],
    ),
    action("/accounts/{id}/check", "/accounts", &[AccountsRead], &[("GET", "/social-accounts/{id}/health")]),
    action(
        "/accounts/{id}/retry",
        "/accounts",
        &[PostsWrite],
        &[("POST", "/social-accounts/{id}/retry-failed")],
    ),
    action(
        "/accounts/{id}/reconnect",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-networks/{platform}/auth-url")],
    ),
    action(
        "/accounts/{id}/disconnect",
        "/accounts",
        &[AccountsWrite],
        &[("DELETE", "/social-accounts/{id}")],
    ),
    action("/webhooks", "/webhooks", &[WebhooksWrite], &[("POST", "/webhooks")]),
    action("/webhooks/{id}/test", "/webhooks/{id}", &[WebhooksWrite], &[("POST", "/webhooks/{id}/test")]),
    action("/webhooks/{id}/pause", "/webhooks/{id}", &[WebhooksWrite], &[("PATCH", "/webhooks/{id}")]),
    action("/webhooks/{id}/resume", "/webhooks/{id}", &[WebhooksWrite], &[("PATCH", "/webhooks/{id}")]),
    action("/webhooks/{id}/reveal", "/webhooks/{id}", &[WebhooksWrite], &[("PATCH", "/webhooks/{id}")]),
    action("/webhooks/{id}/prepare", "/webhooks/{id}", &[WebhooksWrite], &[("PATCH", "/webhooks/{id}")]),
    action("/webhooks/{id}/rotate", "/webhooks/{id}", &[WebhooksWrite], &[("PATCH", "/webhooks/{id}")]),
    action("/webhooks/{id}/replay", "/webhooks/{id}", &[WebhooksWrite], &[("POST", "/webhooks/{id}/replay")]),
    action("/webhooks/{id}/delete", "/webhooks/{id}", &[WebhooksWrite], &[("DELETE", "/webhooks/{id}")]),
    action(
        "/webhooks/{id}/deliveries/{delivery}/redeliver",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("POST", "/webhooks/{id}/deliveries/{delivery_id}/redeliver")],
    ),
    action("/media", "/media", &[MediaWrite], &[("POST", "/media/import")]),
    action("/media/files", "/media", &[MediaWrite], &[("POST", "/media/upload")]),
    action("/media/uploads", "/media", &[MediaWrite], &[("POST", "/media/upload")]),
    action("/media/{id}/content", "/media", &[MediaWrite], &[("POST", "/media/upload")]),
    action("/media/{id}/abandon", "/media", &[MediaWrite], &[("DELETE", "/media/{id}")]),
    action("/media/{id}/confirm", "/media", &[MediaWrite], &[("POST", "/media/{id}/confirm")]),
    action("/media/{id}/alt", "/media", &[MediaWrite], &[("PATCH", "/media/{id}")]),
    action("/media/{id}/delete", "/media", &[MediaWrite], &[("DELETE", "/media/{id}")]),
    action("/keys", "/keys", &[KeysWrite], &[("POST", "/api-keys")]),
    action("/keys/{id}/rotate", "/keys", &[KeysWrite], &[("POST", "/api-keys/{id}/rotate")]),
    action("/keys/{id}/revoke", "/keys", &[KeysWrite], &[("DELETE", "/api-keys/{id}")]),
    action("/team", "/team", &[TeamWrite], &[("POST", "/team")]),
    action("/team/{id}/role", "/team", &[TeamWrite], &[("PATCH", "/team/{id}")]),
    action("/team/{id}/remove", "/team", &[TeamWrite], &[("DELETE", "/team/{id}")]),
    page("/me/passkeys", &[], &[]),
    page("/me/passkeys/{id}/remove", &[], &[]),
    page("/me/identities", &[], &[]),
    page("/me/identities/unlink", &[], &[]),
    page("/me/sessions/others/end", &[], &[]),
    page("/me/sessions/{id}/end", &[], &[]),
    page("/me/switch", &[], &[]),
    page("/me/zone", &[], &[]),
];

/// The operators' pages, below theirs. They ask for no scope: an operator may do everything there.
const OPERATOR_PAGES: [Route; 10] = [
    page("/stuck/export", &[], &[]),
    page("", &[], &[]),
    page("/sign-in", &[], &[]),
    page("/open", &[], &[]),
    page("/stuck", &[], &[]),
    page("/posts/{id}", &[], &[]),
    page("/freezes", &[], &[]),
    page("/deliveries", &[], &[]),
    page("/organizations", &[], &[]),
    page("/organizations/{id}", &[], &[]),
];

/// The operators' actions.
const OPERATOR_ACTIONS: [Route; 12] = [
    page("/sign-in", &[], &[]),
    page("/sign-out", &[], &[]),
    page("/stuck", &[], &[]),
    page("/reconcile", &[], &[]),
    page("/posts/{id}", &[], &[]),
    page("/freezes", &[], &[]),
    page("/freezes/release", &[], &[]),
    page("/deliveries", &[], &[]),
    page("/organizations/sessions/end", &[], &[]),
    page("/organizations/{id}/keys", &[], &[]),
    page("/organizations/{id}/keys/{key}/revoke", &[], &[]),
    page("/organizations/{id}/sessions/end", &[], &[]),
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

    /// Returns the scopes that it asks for, all of them.
    pub(crate) fn needed(&self) -> impl Iterator<Item = Scope> {
        let page = self.page.and_then(|page| PAGES.iter().find(|known| known.path == page));
        self.scopes.iter().chain(page.into_iter().flat_map(|page| page.scopes)).copied()
    }

    /// The operation that an action counts as; `None` for a page.
    pub(crate) fn operation(&self) -> Option<(Method, &'static str)> {
        self.page?;
        let &(method, path) = self.operations.first()?;
        Some((method.parse().expect("the table has methods"), path))
    }
}

/// The pages and actions of people's dashboard: method, path below the dashboard's, and the scopes that it asks for. For
/// tests that try all of them.
pub fn routes() -> impl Iterator<Item = (Method, &'static str, Vec<Scope>)> {
    let of = |method: Method| {
        move |route: &'static Route| (method.clone(), route.path, route.needed().collect::<Vec<_>>())
    };
    PAGES.iter().map(of(Method::GET)).chain(ACTIONS.iter().map(of(Method::POST)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::HashSet;

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

    /// Returns the scope that the document says an operation asks for.
    fn documented(document: &Value, (method, path): &Operation) -> Scope {
        let text = document["paths"][path][method.to_lowercase()]["description"].as_str();
        let text = text.unwrap_or_else(|| panic!("{method} {path} is no operation"));
        let (_, rest) = text.split_once("Scope").unwrap_or_else(|| panic!("{method} {path}: {text}"));
        let scope = rest.trim_start().strip_prefix('`').and_then(|rest| rest.split_once('`'));
        scope.unwrap_or_else(|| panic!("{method} {path}: {text}")).0.parse().unwrap()
    }

    #[test]
    fn pages_and_actions_ask_for_the_scopes_of_their_operations() {
        let document: Value = serde_json::from_str(&api::document()).unwrap();
        for route in PAGES.iter().chain(&ACTIONS) {
            let documented = |operation| documented(&document, operation);
            let expected: HashSet<_> = route.operations.iter().map(documented).collect();
            let found: HashSet<_> = route.scopes.iter().copied().collect();
            assert_eq!(found, expected, "{}", route.path);
        }
    }

    #[test]
    fn an_action_asks_for_the_scopes_of_the_page_that_it_draws() {
        for action in &ACTIONS {
            let Some(page) = action.page else { continue };
            let page = PAGES.iter().find(|known| known.path == page).unwrap_or_else(|| panic!("{action:?}"));
            let needed: Vec<_> = action.needed().collect();
            assert!(
                page.scopes.iter().chain(action.scopes).all(|scope| needed.contains(scope)),
                "{action:?}"
            );
        }
    }
}
