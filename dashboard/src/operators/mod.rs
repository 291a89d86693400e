//! The operators' pages: what `fanfare ops` does, for all organizations.
//!
//! They exist only where FANFARE_OPERATOR_TOKEN is set, and have sessions of their own ([`session`]). Each action calls
//! the function that the command calls, which writes the entry of the audit trail in the same transaction.

mod deliveries;
mod freezes;
mod organization;
mod organizations;
mod outcome;
mod overview;
mod session;
mod story;
mod stuck;

use crate::{
    fields::Fields,
    layout::{Layout, PageError},
    route::{self, Answer},
};
use Handler::{One, Plain, Two};
use api::{
    app::App,
    http::problem::{Code, Problem},
};
use chrono::{DateTime, Utc};
use futures::{FutureExt, future::ready};
use poem::{Request, Response};
use store::{Pool, people::audit::Actor};

/// Path of the pages, below the dashboard's.
const PATH: &str = "/operators";
/// Maximum length of an operator's name and of a reason, in characters.
const MAX_CHARS: usize = 200;

/// A request of an operator who is signed in.
struct Operator<'a> {
    app: &'a App,
    request: &'a Request,
    /// Query parameters.
    query: Fields,
    /// Form fields; empty for a GET request.
    form: &'a Fields,
    /// Name of the operator.
    name: String,
    /// The operator, for the audit trail.
    by: Actor,
}

/// A page or an action. It asks for no scope: an operator may do everything there.
struct Route {
    /// True for a page.
    is_read: bool,
    /// Path below the operators'; a segment in braces stands for any.
    path: &'static str,
    handler: Handler,
}

/// The function that answers, by the number of names in the path, whose values it takes.
enum Handler {
    Plain(for<'a> fn(&'a Operator<'a>) -> Answer<'a>),
    One(for<'a> fn(&'a Operator<'a>, &'a str) -> Answer<'a>),
    Two(for<'a> fn(&'a Operator<'a>, &'a str, &'a str) -> Answer<'a>),
}

const fn page(path: &'static str, handler: Handler) -> Route {
    let names = match &handler {
        Plain(_) => 0,
        One(_) => 1,
        Two(_) => 2,
    };
    assert!(route::count(path) == names, "a handler takes the names in its path");
    Route { is_read: true, path, handler }
}

const fn action(path: &'static str, handler: Handler) -> Route {
    Route { is_read: false, ..page(path, handler) }
}

/// The pages and the actions of those who are signed in. A failed action shows the page again with the error beside the
/// button.
static ROUTES: &[Route] = &[
    page("", Plain(|operator| overview::show(operator, None).boxed())),
    page("/sign-in", Plain(|_| ready(Ok(outcome::see(""))).boxed())),
    page("/open", Plain(|operator| overview::open(operator).boxed())),
    page("/stuck", Plain(|operator| stuck::show(operator, None).boxed())),
    page("/stuck/export", Plain(|operator| stuck::export(operator).boxed())),
    page("/posts/{id}", One(|operator, id| story::show(operator, id, None).boxed())),
    page("/freezes", Plain(|operator| freezes::show(operator, None).boxed())),
    page("/deliveries", Plain(|operator| deliveries::show(operator, None).boxed())),
    page("/organizations", Plain(|operator| organizations::show(operator, None).boxed())),
    page("/organizations/{id}", One(|operator, id| organization::show(operator, id, None, None).boxed())),
    action("/sign-out", Plain(|operator| session::end(operator.app, operator.request).boxed())),
    action("/stuck", Plain(|operator| stuck::act(operator).boxed())),
    action("/reconcile", Plain(|operator| stuck::reconcile(operator).boxed())),
    action("/posts/{id}", One(|operator, id| story::act(operator, id).boxed())),
    action("/freezes", Plain(|operator| freezes::freeze(operator).boxed())),
    action("/freezes/release", Plain(|operator| freezes::release(operator).boxed())),
    action("/deliveries", Plain(|operator| deliveries::redeliver(operator).boxed())),
    action("/organizations/sessions/end", Plain(|operator| organizations::end_sessions(operator).boxed())),
    action("/organizations/{id}/keys", One(|operator, id| organization::issue_key(operator, id).boxed())),
    action(
        "/organizations/{id}/keys/{key}/revoke",
        Two(|operator, id, key| organization::revoke_key(operator, id, key).boxed()),
    ),
    action(
        "/organizations/{id}/sessions/end",
        One(|operator, id| organization::end_sessions(operator, id).boxed()),
    ),
];

/// Answers a request below `/dashboard/operators`.
pub(super) async fn answer(
    app: &App,
    request: &Request,
    segments: &[&str],
    form: &Fields,
    is_read: bool,
) -> Result<Response, Problem> {
    let token = app.config.operator_token.as_ref().ok_or_else(nothing)?;
    if let (["sign-in"], false) = (segments, is_read) {
        return session::begin(app, token, request, form).await;
    }
    let mut routes = ROUTES.iter().filter(|route| route.is_read == is_read);
    let found = routes.find_map(|route| Some((&route.handler, route::names(route.path, segments)?)));
    let (handler, [first, second, _]) = found.ok_or_else(nothing)?;
    let Some(name) = session::find(app, token, request).await? else {
        return Ok(session::require(request, is_read));
    };
    let by = session::actor(app, request, &name);
    let operator = Operator { app, request, query: Fields::of_query(request), form, name, by };
    match handler {
        Plain(answer) => answer(&operator).await,
        One(answer) => answer(&operator, first).await,
        Two(answer) => answer(&operator, first, second).await,
    }
}

fn nothing() -> Problem {
    Problem::new(Code::NotFound, "there is no such page")
}

impl Operator<'_> {
    fn db(&self) -> &Pool {
        &self.app.db
    }

    fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }

    /// The layout around a page, with the notice of what was done and the error of what was not.
    fn layout(&self, title: &str, section: &'static str, error: Option<PageError>) -> Layout {
        Layout {
            section,
            operator: Some(self.name.clone()),
            notice: outcome::notice(&self.query).map(Into::into),
            error,
            ..Layout::signed_out(title)
        }
    }

    /// URL of a workflow in Temporal's UI, if its address is configured.
    fn workflow(&self, id: &str) -> Option<String> {
        self.app.config.temporal_ui.as_ref().map(|ui| ui.workflow(id))
    }

    /// The reason in the form.
    fn reason(&self) -> Result<&str, Problem> {
        let reason = self.form.given("reason").filter(|reason| reason.chars().count() <= MAX_CHARS);
        reason.ok_or_else(|| {
            Problem::new(Code::InvalidRequest, format!("give a reason of at most {MAX_CHARS} characters"))
        })
    }
}
