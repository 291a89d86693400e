//! The routes of the dashboard's pages and actions: what each asks for, the operation of the API that it counts as, and
//! the function that answers it.
//!
//! A page asks for the scopes of the operations that it shows, an action for that of the operation that it calls, and
//! for those of the page that it draws. Everything behind the session of a member stands here; signing in
//! and out, invitations and assets are in the [root](crate), operators' pages in [`crate::operators`].

use crate::{
    accounts, analytics, audit, calendar,
    context::{PageContext, see},
    delivery, events, home, keys, me, media, overview, part, post, post_form,
    posts::{self, Bulk},
    requests,
    route::{self, Answer, Names},
    search, team, usage, webhook, webhooks,
};
use Handler::{File, Files, One, Plain, Three, Two};
use api::http::problem::Problem;
use domain::scope::Scope::{self, *};
use futures::{FutureExt, future::ready};
use poem::{Body, Response, http::Method};
use store::people::sessions::Ended;

/// An operation of the API: method and path.
type Operation = (&'static str, &'static str);

/// A page or an action.
pub(crate) struct Route {
    /// Path below the dashboard's; a segment in braces stands for any.
    path: &'static str,
    /// How an action is sent; `None` for a page.
    pub(crate) sent: Option<Sent>,
    /// Scopes of the operations.
    scopes: &'static [Scope],
    /// Operations that a page shows, or the one that an action stands for.
    operations: &'static [Operation],
    /// The page that an action draws when it fails, or to show its result; `None` for what counts as a page.
    page: Option<&'static str>,
    handler: Handler,
}

/// How an action is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// By a form.
    Form,
    /// By a script, which takes a page.
    Script,
    /// By the script that uploads files, which takes the text of an error.
    Upload,
}

/// The function that answers, by the number of names in the path, whose values it takes.
enum Handler {
    Plain(for<'a> fn(&'a PageContext<'a>) -> Answer<'a>),
    One(for<'a> fn(&'a PageContext<'a>, &'a str) -> Answer<'a>),
    Two(for<'a> fn(&'a PageContext<'a>, &'a str, &'a str) -> Answer<'a>),
    Three(for<'a> fn(&'a PageContext<'a>, &'a str, &'a str, &'a str) -> Answer<'a>),
    /// Reads a form with files.
    Files(for<'a> fn(&'a PageContext<'a>, Body) -> Answer<'a>),
    /// Reads a file, whose name in the path it takes.
    File(for<'a> fn(&'a PageContext<'a>, Body, &'a str) -> Answer<'a>),
}

const fn page(
    path: &'static str,
    scopes: &'static [Scope],
    shows: &'static [Operation],
    handler: Handler,
) -> Route {
    assert!(route::count(path) == handler.names(), "a handler takes the names in its path");
    Route { path, sent: None, scopes, operations: shows, page: None, handler }
}

const fn action(
    path: &'static str,
    draws: &'static str,
    scope: &'static [Scope; 1],
    operation: &'static [Operation; 1],
    handler: Handler,
) -> Route {
    Route { page: Some(draws), ..page(path, scope, operation, handler).by(Sent::Form) }
}

/// An action on what is one's own, which needs no scope.
const fn own(path: &'static str, handler: Handler) -> Route {
    page(path, &[], &[], handler).by(Sent::Form)
}

/// The pages and the actions. Of two that fit an address, the first answers.
static ROUTES: &[Route] = &[
    // Pages.
    page("/search", &[], &[], Plain(|context| search::show(context).boxed())),
    page(
        "/analytics",
        &[AnalyticsRead, AccountsRead, PostsRead],
        &[("GET", "/posts/{id}/analytics"), ("GET", "/social-accounts"), ("GET", "/posts")],
        Plain(|context| analytics::show(context).boxed()),
    ),
    page(
        "/analytics/posts/{id}",
        &[AnalyticsRead, PostsRead],
        &[("GET", "/posts/{id}/analytics"), ("GET", "/posts/{id}")],
        One(|context, id| analytics::post(context, id, None).boxed()),
    ),
    page(
        "/calendar",
        &[PostsRead, AccountsRead],
        &[("GET", "/posts"), ("GET", "/social-accounts")],
        Plain(|context| calendar::show(context).boxed()),
    ),
    page("/events", &[WebhooksRead], &[("GET", "/events")], Plain(|context| events::list(context).boxed())),
    page(
        "/events/{id}",
        &[WebhooksRead],
        &[("GET", "/events"), ("GET", "/webhooks/{id}/deliveries")],
        One(|context, id| events::show(context, id).boxed()),
    ),
    page(
        "/requests",
        &[UsageRead],
        &[("GET", "/account/requests")],
        Plain(|context| requests::show(context).boxed()),
    ),
    page(
        "",
        &[PostsRead, AccountsRead],
        &[("GET", "/posts"), ("GET", "/social-accounts")],
        Plain(|context| overview::show(context).boxed()),
    ),
    page("/sign-in", &[], &[], Plain(|_| ready(Ok(see(""))).boxed())),
    page("/me", &[], &[], Plain(|context| me::show(context, None).boxed())),
    page("/me/passkeys/options", &[], &[], Plain(|context| me::challenge(context).boxed())),
    page(
        "/posts",
        &[PostsRead, AccountsRead],
        &[("GET", "/posts"), ("GET", "/social-accounts")],
        Plain(|context| posts::show(context).boxed()),
    ),
    page(
        "/posts/{id}",
        &[PostsRead, AccountsRead],
        &[("GET", "/posts/{id}"), ("GET", "/posts/{id}/timeline"), ("GET", "/social-accounts")],
        One(|context, id| post::show(context, id, None).boxed()),
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
        Three(|context, id, target, position| part::show(context, id, target, position).boxed()),
    ),
    page(
        "/compose",
        &[PostsWrite, AccountsRead, MediaRead],
        &[("POST", "/posts/validate"), ("GET", "/social-accounts"), ("GET", "/media")],
        Plain(|context| post_form::show(context).boxed()),
    ),
    page(
        "/accounts",
        &[AccountsRead],
        &[("GET", "/social-accounts")],
        Plain(|context| accounts::show(context).boxed()),
    ),
    page(
        "/webhooks",
        &[WebhooksRead],
        &[("GET", "/webhooks")],
        Plain(|context| webhooks::show(context, None).boxed()),
    ),
    page(
        "/webhooks/{id}",
        &[WebhooksRead],
        &[("GET", "/webhooks/{id}"), ("GET", "/webhooks/{id}/deliveries")],
        One(|context, id| webhook::show(context, id, None).boxed()),
    ),
    page(
        "/webhooks/{id}/deliveries/{delivery}",
        &[WebhooksRead],
        &[("GET", "/webhooks/{id}"), ("GET", "/webhooks/{id}/deliveries/{delivery_id}")],
        Two(|context, id, delivery| delivery::show(context, id, delivery, None).boxed()),
    ),
    page("/media", &[MediaRead], &[("GET", "/media")], Plain(|context| media::show(context, None).boxed())),
    page(
        "/media/{id}/thumbnail",
        &[MediaRead],
        &[("GET", "/media/{id}")],
        One(|context, id| media::thumbnail(context, id).boxed()),
    ),
    page(
        "/media/{id}/file",
        &[MediaRead],
        &[("GET", "/media/{id}")],
        One(|context, id| media::file(context, id).boxed()),
    ),
    page("/keys", &[KeysWrite], &[("GET", "/api-keys")], Plain(|context| keys::show(context, None).boxed())),
    page("/team", &[TeamRead], &[("GET", "/team")], Plain(|context| team::show(context, None).boxed())),
    page("/audit", &[TeamRead], &[("GET", "/account/audit")], Plain(|context| audit::show(context).boxed())),
    page("/usage", &[UsageRead], &[("GET", "/account/usage")], Plain(|context| usage::show(context).boxed())),
    // Actions.
    action(
        "/posts/retry",
        "/posts",
        &[PostsWrite],
        &[("POST", "/posts/{id}/retry")],
        Plain(|context| posts::act(context, Bulk::Retry).boxed()),
    ),
    action(
        "/posts/cancel",
        "/posts",
        &[PostsWrite],
        &[("DELETE", "/posts/{id}")],
        Plain(|context| posts::act(context, Bulk::Cancel).boxed()),
    ),
    own("/checklist/dismiss", Plain(|context| ready(Ok(home::dismiss(context))).boxed())),
    action(
        "/analytics/posts/{id}/refresh",
        "/analytics/posts/{id}",
        &[AnalyticsRead],
        &[("GET", "/posts/{id}/analytics")],
        One(|context, id| analytics::refresh(context, id).boxed()),
    ),
    action(
        "/posts/{id}/reschedule",
        "/calendar",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}")],
        One(|context, id| calendar::reschedule(context, id).boxed()),
    ),
    action(
        "/retry",
        "",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/retry")],
        Plain(|context| overview::retry(context).boxed()),
    ),
    action(
        "/posts/{id}/cancel",
        "/posts/{id}",
        &[PostsWrite],
        &[("DELETE", "/posts/{id}")],
        One(|context, id| post::cancel(context, id).boxed()),
    ),
    action(
        "/posts/{id}/release",
        "/posts/{id}",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}")],
        One(|context, id| post::release(context, id).boxed()),
    ),
    action(
        "/posts/{id}/targets/{target}/retry",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/retry")],
        Two(|context, id, target| post::retry(context, id, target).boxed()),
    ),
    action(
        "/posts/{id}/targets/{target}/revive",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/retry")],
        Two(|context, id, target| post::revive(context, id, target).boxed()),
    ),
    action(
        "/posts/{id}/targets/{target}/unpublish",
        "/posts/{id}",
        &[PostsWrite],
        &[("POST", "/posts/{id}/targets/{target_id}/unpublish")],
        Two(|context, id, target| post::unpublish(context, id, target).boxed()),
    ),
    action(
        "/posts/{id}/targets/{target}/edit",
        "/posts/{id}",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}/targets/{target_id}")],
        Two(|context, id, target| post::edit(context, id, target).boxed()),
    ),
    action(
        "/posts/{id}/targets/{target}/parts/{position}",
        "/posts/{id}/targets/{target}/parts/{position}",
        &[PostsWrite],
        &[("PATCH", "/posts/{id}/targets/{target_id}")],
        Three(|context, id, target, position| part::act(context, id, target, position).boxed()),
    ),
    action(
        "/compose",
        "/compose",
        &[PostsWrite],
        &[("POST", "/posts")],
        Plain(|context| post_form::act(context).boxed()),
    ),
    // It stands for no operation: it is asked for while one types.
    page(
        "/compose/preview",
        &[PostsWrite, AccountsRead, MediaRead],
        &[("POST", "/posts/validate"), ("GET", "/social-accounts"), ("GET", "/media")],
        Plain(|context| post_form::show_live(context).boxed()),
    )
    .by(Sent::Script),
    action(
        "/accounts/connect",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-networks/{platform}/auth-url")],
        Plain(|context| accounts::connect(context).boxed()),
    ),
    action(
        "/accounts/bluesky",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-accounts/bluesky/connect")],
        Plain(|context| accounts::sign_in(context).boxed()),
    ),
    action(
        "/accounts/{id}/check",
        "/accounts",
        &[AccountsRead],
        &[("GET", "/social-accounts/{id}/health")],
        One(|context, id| accounts::check(context, id).boxed()),
    ),
    action(
        "/accounts/{id}/retry",
        "/accounts",
        &[PostsWrite],
        &[("POST", "/social-accounts/{id}/retry-failed")],
        One(|context, id| accounts::retry(context, id).boxed()),
    ),
    action(
        "/accounts/{id}/reconnect",
        "/accounts",
        &[AccountsWrite],
        &[("POST", "/social-networks/{platform}/auth-url")],
        One(|context, id| accounts::reconnect(context, id).boxed()),
    ),
    action(
        "/accounts/{id}/disconnect",
        "/accounts",
        &[AccountsWrite],
        &[("DELETE", "/social-accounts/{id}")],
        One(|context, id| accounts::disconnect(context, id).boxed()),
    ),
    action(
        "/webhooks",
        "/webhooks",
        &[WebhooksWrite],
        &[("POST", "/webhooks")],
        Plain(|context| webhooks::create(context).boxed()),
    ),
    action(
        "/webhooks/{id}/test",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("POST", "/webhooks/{id}/test")],
        One(|context, id| webhook::test(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/pause",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("PATCH", "/webhooks/{id}")],
        One(|context, id| webhook::set_active(context, id, false).boxed()),
    ),
    action(
        "/webhooks/{id}/resume",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("PATCH", "/webhooks/{id}")],
        One(|context, id| webhook::set_active(context, id, true).boxed()),
    ),
    action(
        "/webhooks/{id}/reveal",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("PATCH", "/webhooks/{id}")],
        One(|context, id| webhook::reveal(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/prepare",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("PATCH", "/webhooks/{id}")],
        One(|context, id| webhook::prepare(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/rotate",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("PATCH", "/webhooks/{id}")],
        One(|context, id| webhook::rotate(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/replay",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("POST", "/webhooks/{id}/replay")],
        One(|context, id| webhook::replay(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/delete",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("DELETE", "/webhooks/{id}")],
        One(|context, id| webhook::delete(context, id).boxed()),
    ),
    action(
        "/webhooks/{id}/deliveries/{delivery}/redeliver",
        "/webhooks/{id}",
        &[WebhooksWrite],
        &[("POST", "/webhooks/{id}/deliveries/{delivery_id}/redeliver")],
        Two(|context, id, delivery| webhook::redeliver(context, id, delivery).boxed()),
    ),
    action(
        "/media",
        "/media",
        &[MediaWrite],
        &[("POST", "/media/import")],
        Plain(|context| media::import(context).boxed()),
    ),
    action(
        "/media/files",
        "/media",
        &[MediaWrite],
        &[("POST", "/media/upload")],
        Files(|context, body| media::receive(context, body).boxed()),
    ),
    action(
        "/media/uploads",
        "/media",
        &[MediaWrite],
        &[("POST", "/media/upload")],
        Plain(|context| media::announce(context).map(Ok).boxed()),
    )
    .by(Sent::Upload),
    action(
        "/media/{id}/content",
        "/media",
        &[MediaWrite],
        &[("POST", "/media/upload")],
        File(|context, body, id| media::store(context, body, id).map(Ok).boxed()),
    )
    .by(Sent::Upload),
    action(
        "/media/{id}/abandon",
        "/media",
        &[MediaWrite],
        &[("DELETE", "/media/{id}")],
        One(|context, id| media::abandon(context, id).map(Ok).boxed()),
    )
    .by(Sent::Upload),
    action(
        "/media/{id}/confirm",
        "/media",
        &[MediaWrite],
        &[("POST", "/media/{id}/confirm")],
        One(|context, id| media::confirm(context, id).map(Ok).boxed()),
    )
    .by(Sent::Upload),
    action(
        "/media/{id}/alt",
        "/media",
        &[MediaWrite],
        &[("PATCH", "/media/{id}")],
        One(|context, id| media::describe(context, id).boxed()),
    ),
    action(
        "/media/{id}/delete",
        "/media",
        &[MediaWrite],
        &[("DELETE", "/media/{id}")],
        One(|context, id| media::delete(context, id).boxed()),
    ),
    action(
        "/keys",
        "/keys",
        &[KeysWrite],
        &[("POST", "/api-keys")],
        Plain(|context| keys::create(context).boxed()),
    ),
    action(
        "/keys/{id}/rotate",
        "/keys",
        &[KeysWrite],
        &[("POST", "/api-keys/{id}/rotate")],
        One(|context, id| keys::rotate(context, id).boxed()),
    ),
    action(
        "/keys/{id}/revoke",
        "/keys",
        &[KeysWrite],
        &[("DELETE", "/api-keys/{id}")],
        One(|context, id| keys::revoke(context, id).boxed()),
    ),
    action(
        "/team",
        "/team",
        &[TeamWrite],
        &[("POST", "/team")],
        Plain(|context| team::invite(context).boxed()),
    ),
    action(
        "/team/{id}/role",
        "/team",
        &[TeamWrite],
        &[("PATCH", "/team/{id}")],
        One(|context, id| team::set_role(context, id).boxed()),
    ),
    action(
        "/team/{id}/remove",
        "/team",
        &[TeamWrite],
        &[("DELETE", "/team/{id}")],
        One(|context, id| team::remove(context, id).boxed()),
    ),
    own("/me/passkeys", Plain(|context| me::add(context).boxed())),
    own("/me/passkeys/{id}/remove", One(|context, id| me::remove(context, id).boxed())),
    own("/me/identities", Plain(|context| me::link(context).boxed())),
    own("/me/identities/unlink", Plain(|context| me::unlink(context).boxed())),
    own("/me/sessions/others/end", Plain(|context| me::end(context, Ended::Others).boxed())),
    own("/me/sessions/{id}/end", One(|context, id| me::end(context, Ended::One(id)).boxed())),
    own("/me/switch", Plain(|context| me::switch(context).boxed())),
    own("/me/zone", Plain(|context| ready(me::set_zone(context)).boxed())),
];

impl Handler {
    const fn names(&self) -> usize {
        match self {
            Plain(_) | Files(_) => 0,
            One(_) | File(_) => 1,
            Two(_) => 2,
            Three(_) => 3,
        }
    }
}

/// A route at an address.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The route.
    pub(crate) route: &'static Route,
    names: Names<'a>,
}

impl<'a> Found<'a> {
    /// Answers a request. The body is empty, except where the route reads it.
    pub(crate) fn answer(self, context: &'a PageContext<'a>, body: Body) -> Answer<'a> {
        let [first, second, third] = self.names;
        match self.route.handler {
            Plain(answer) => answer(context),
            One(answer) => answer(context, first),
            Two(answer) => answer(context, first, second),
            Three(answer) => answer(context, first, second, third),
            Files(answer) => answer(context, body),
            File(answer) => answer(context, body, first),
        }
    }
}

impl Route {
    const fn by(self, sent: Sent) -> Self {
        Self { sent: Some(sent), ..self }
    }

    /// Returns the page or action at a path below the dashboard's.
    pub(crate) fn find<'a>(is_read: bool, segments: &[&'a str]) -> Option<Found<'a>> {
        let mut routes = ROUTES.iter().filter(|route| route.sent.is_none() == is_read);
        routes.find_map(|route| Some(Found { route, names: route::names(route.path, segments)? }))
    }

    /// True if it reads the body of its request, which nothing else may read before it is known who sends it.
    pub(crate) fn reads_body(&self) -> bool {
        matches!(self.handler, Files(_) | File(_))
    }

    /// Returns the scopes that it asks for, all of them.
    pub(crate) fn needed(&self) -> impl Iterator<Item = Scope> {
        let page =
            self.page.and_then(|page| ROUTES.iter().find(|known| known.sent.is_none() && known.path == page));
        self.scopes.iter().chain(page.into_iter().flat_map(|page| page.scopes)).copied()
    }

    /// Fails unless the one who is signed in has the scopes that it asks for.
    ///
    /// # Errors
    ///
    /// `insufficient_scope`, with the reason.
    pub(crate) fn check(&self, context: &PageContext<'_>) -> Result<(), Problem> {
        self.needed().try_for_each(|scope| context.may(scope))
    }

    /// Tells why it was not done, as its sender takes it.
    pub(crate) fn refuse(&self, context: &PageContext<'_>, problem: Problem) -> Response {
        match self.sent {
            Some(Sent::Upload) => media::refuse(&problem),
            Some(Sent::Form | Sent::Script) | None => context.failure(problem),
        }
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
    ROUTES.iter().map(|route| {
        let method = if route.sent.is_none() { Method::GET } else { Method::POST };
        (method, route.path, route.needed().collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::{collections::HashSet, ptr};

    fn find(is_read: bool, path: &'static str) -> Option<Found<'static>> {
        Route::find(is_read, &path.split('/').skip(1).collect::<Vec<_>>())
    }

    #[test]
    fn a_path_is_found_by_its_segments() {
        let found = |is_read, path| {
            let found = find(is_read, path).unwrap_or_else(|| panic!("{path}"));
            (found.route.path, found.names[0])
        };
        assert_eq!(found(true, ""), ("", ""));
        assert_eq!(found(true, "/posts/7"), ("/posts/{id}", "7"));
        assert_eq!(found(false, "/me/sessions/others/end"), ("/me/sessions/others/end", ""));
        assert_eq!(found(false, "/me/sessions/7/end"), ("/me/sessions/{id}/end", "7"));
        for (is_read, path) in
            [(true, "/posts/7/8"), (true, "/postscript"), (false, "/posts"), (true, "/media/")]
        {
            assert!(find(is_read, path).is_none(), "{path}");
        }
    }

    #[test]
    fn every_route_is_found_at_an_address_of_its_own() {
        for route in ROUTES {
            let found = find(route.sent.is_none(), route.path).unwrap();
            assert!(ptr::eq(found.route, route), "{} hides {}", found.route.path, route.path);
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
        for route in ROUTES {
            let documented = |operation| documented(&document, operation);
            let expected: HashSet<_> = route.operations.iter().map(documented).collect();
            let found: HashSet<_> = route.scopes.iter().copied().collect();
            assert_eq!(found, expected, "{}", route.path);
        }
    }

    #[test]
    fn an_action_asks_for_the_scopes_of_the_page_that_it_draws() {
        for action in ROUTES {
            let Some(page) = action.page else { continue };
            let page = ROUTES.iter().find(|known| known.sent.is_none() && known.path == page);
            let page = page.unwrap_or_else(|| panic!("{} draws no page", action.path));
            let needed: Vec<_> = action.needed().collect();
            assert!(
                page.scopes.iter().chain(action.scopes).all(|scope| needed.contains(scope)),
                "{}",
                action.path
            );
        }
    }
}
