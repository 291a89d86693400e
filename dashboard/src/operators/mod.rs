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
    routes::Route,
};
use api::{
    app::App,
    http::problem::{Code, Problem},
};
use chrono::{DateTime, Utc};
use poem::{Request, Response};
use std::time::Duration;
use store::{Pool, audit::Actor};

/// Path of the pages, below the dashboard's.
const PATH: &str = "/operators";
/// Maximum length of an operator's name and of a reason, in characters.
const MAX_CHARS: usize = 200;

/// A request of an operator who is signed in.
struct Operator<'a> {
    app: &'a App,
    /// Query parameters.
    query: Fields,
    /// Form fields; empty for a GET request.
    form: &'a Fields,
    /// Name of the operator.
    name: String,
    /// The operator, for the audit trail.
    by: Actor,
}

/// Answers a request below `/dashboard/operators`.
pub(super) async fn answer(
    app: &App,
    request: &Request,
    segments: &[&str],
    form: &Fields,
    is_read: bool,
) -> Result<Response, Problem> {
    let token = app.config.operator_token.as_ref().ok_or_else(nothing)?;
    if Route::of_operators(is_read, segments).is_none() {
        return Err(nothing());
    }
    if let (["sign-in"], false) = (segments, is_read) {
        return session::begin(app, token, request, form).await;
    }
    let Some(name) = session::find(app, token, request).await? else {
        return Ok(session::require(request, is_read));
    };
    if let (["sign-out"], false) = (segments, is_read) {
        return session::end(app, request).await;
    }
    let by = session::actor(app, request, &name);
    let operator = Operator { app, query: Fields::of_query(request), form, name, by };
    if is_read { read(&operator, segments).await } else { act(&operator, segments).await }
}

/// Routes GET requests to pages.
async fn read(operator: &Operator<'_>, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        [] => overview::show(operator, None).await,
        ["sign-in"] => Ok(outcome::see("")),
        ["open"] => overview::open(operator).await,
        ["stuck"] => stuck::show(operator, None).await,
        ["stuck", "export"] => stuck::export(operator).await,
        ["posts", id] => story::show(operator, id, None).await,
        ["freezes"] => freezes::show(operator, None).await,
        ["deliveries"] => deliveries::show(operator, None).await,
        ["organizations"] => organizations::show(operator, None).await,
        ["organizations", id] => organization::show(operator, id, None, None).await,
        _ => Err(nothing()),
    }
}

/// Routes POST requests to actions. A failed action shows the page again with the error beside the button.
async fn act(operator: &Operator<'_>, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        ["stuck"] => stuck::act(operator).await,
        ["reconcile"] => stuck::reconcile(operator).await,
        ["posts", id] => story::act(operator, id).await,
        ["freezes"] => freezes::freeze(operator).await,
        ["freezes", "release"] => freezes::release(operator).await,
        ["deliveries"] => deliveries::redeliver(operator).await,
        ["organizations", "sessions", "end"] => organizations::end_sessions(operator).await,
        ["organizations", id, "keys"] => organization::issue_key(operator, id).await,
        ["organizations", id, "keys", key, "revoke"] => organization::revoke_key(operator, id, key).await,
        ["organizations", id, "sessions", "end"] => organization::end_sessions(operator, id).await,
        _ => Err(nothing()),
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

/// The platforms whose grants are renewed ahead, each with their least age.
fn renewals() -> Vec<(&'static str, Duration)> {
    platforms::all().iter().filter_map(|platform| Some((platform.id, platform.auth.renewal_age()?))).collect()
}
