//! The dashboard: what is stuck and why, and what can be done about it, for people.
//!
//! Pages are made here, on the server, and do everything that matters without a script; the one script
//! there is looks again every few seconds. What a page does it does through the functions of the API's
//! operations, so that neither can do what the other could not. Nothing is loaded from anywhere else.

mod accounts;
mod assets;
mod compose;
mod fields;
mod frame;
mod invitation;
mod keys;
mod media;
mod overview;
mod post;
mod posts;
mod session;
mod team;
mod usage;
mod visit;
mod webhook;
mod webhooks;
mod words;

use crate::{
    app::App,
    http::problem::{Code, Problem},
};
use poem::{Body, Request, Response, handler, http::Method, web::Data};
use session::Arrival;
use visit::Visit;

pub(crate) use crate::app::DASHBOARD_PATH as PATH;

/// Answers whatever is asked of the dashboard.
#[handler]
pub(crate) async fn door(request: &Request, body: Body, app: Data<&App>) -> Response {
    let answered = answer(&app, request, body).await;
    answered.unwrap_or_else(|problem| frame::failure(None, problem))
}

async fn answer(app: &App, request: &Request, body: Body) -> Result<Response, Problem> {
    let path = request.original_uri().path();
    let path = path.strip_prefix(PATH).unwrap_or_default().trim_end_matches('/');
    let segments: Vec<_> = path.split('/').skip(1).collect();
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    if let (true, ["assets", name]) = (is_read, &segments[..]) {
        return assets::serve(name);
    }
    if !is_read && request.method() != Method::POST {
        return Err(Problem::method_not_allowed("GET, HEAD, POST"));
    }
    let form = if is_read { fields::Fields::default() } else { fields::of_form(request, body).await? };
    match &segments[..] {
        ["sign-in"] if !is_read => return session::begin(app, request, &form).await,
        ["sign-out"] if !is_read => return session::end(app, request).await,
        ["invite", token] if is_read => return invitation::show(app, request, token).await,
        ["invite", token] => return invitation::accept(app, request, token, &form).await,
        _ => {}
    }
    let session = match session::arrive(app, request).await? {
        Arrival::Known(session) => session,
        Arrival::Stranger if is_read => return Ok(session::ask(request, None)),
        Arrival::Stranger => return Ok(session::ask(request, Some(session::over()))),
        Arrival::FromElsewhere => return Ok(frame::onward(request)),
    };
    let visit = Visit::new(app, session, request, form);
    let answered = if is_read { read(&visit, &segments).await } else { act(&visit, &segments).await };
    Ok(answered.unwrap_or_else(|problem| frame::failure(Some(&visit), problem)))
}

/// Pages.
async fn read(visit: &Visit<'_>, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        [] => overview::show(visit).await,
        ["sign-in"] => Ok(visit::see("")),
        ["posts"] => posts::show(visit).await,
        ["posts", id] => post::show(visit, id, None).await,
        ["compose"] => compose::show(visit).await,
        ["accounts"] => accounts::show(visit).await,
        ["webhooks"] => webhooks::show(visit, None).await,
        ["webhooks", id] => webhook::show(visit, id, None).await,
        ["media"] => media::show(visit, None).await,
        ["keys"] => keys::show(visit, None).await,
        ["team"] => team::show(visit, None).await,
        ["usage"] => usage::show(visit).await,
        _ => Err(nothing()),
    }
}

/// What buttons do. A page that was refused something is shown again, with the reason beside the button.
async fn act(visit: &Visit<'_>, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        ["posts", id, "cancel"] => post::cancel(visit, id).await,
        ["posts", id, "release"] => post::release(visit, id).await,
        ["posts", id, "targets", target, "retry"] => post::retry(visit, id, target).await,
        ["compose"] => compose::act(visit).await,
        ["accounts", "connect"] => accounts::connect(visit).await,
        ["accounts", "bluesky"] => accounts::sign_in(visit).await,
        ["accounts", id, "check"] => accounts::check(visit, id).await,
        ["accounts", id, "reconnect"] => accounts::reconnect(visit, id).await,
        ["accounts", id, "disconnect"] => accounts::disconnect(visit, id).await,
        ["webhooks"] => webhooks::create(visit).await,
        ["webhooks", id, "test"] => webhook::test(visit, id).await,
        ["webhooks", id, "pause"] => webhook::set_active(visit, id, false).await,
        ["webhooks", id, "resume"] => webhook::set_active(visit, id, true).await,
        ["webhooks", id, "reveal"] => webhook::reveal(visit, id).await,
        ["webhooks", id, "rotate"] => webhook::rotate(visit, id).await,
        ["webhooks", id, "delete"] => webhook::delete(visit, id).await,
        ["webhooks", id, "deliveries", delivery, "redeliver"] => {
            webhook::redeliver(visit, id, delivery).await
        }
        ["media"] => media::import(visit).await,
        ["media", id, "delete"] => media::delete(visit, id).await,
        ["keys"] => keys::create(visit).await,
        ["keys", id, "rotate"] => keys::rotate(visit, id).await,
        ["keys", id, "revoke"] => keys::revoke(visit, id).await,
        ["team"] => team::invite(visit).await,
        ["team", id, "remove"] => team::remove(visit, id).await,
        _ => Err(nothing()),
    }
}

fn nothing() -> Problem {
    Problem::new(Code::NotFound, "there is no such page")
}
