//! The dashboard: HTML pages that show what is stuck and why, and let people act on it.
//!
//! Pages are rendered on the server and work without scripts, which poll for changes, reach passkeys, and make what is
//! there quicker to use (a dialog instead of a fold, a button that copies). Pages
//! call the functions of the API's operations and ask for their scopes ([`routes`]), so the dashboard can do exactly
//! what the API can. No external resources are loaded.

mod accounts;
mod analytics;
mod assets;
mod audit;
mod calendar;
mod chart;
mod choice;
mod context;
mod delivery;
mod events;
mod fields;
mod home;
mod invitation;
mod keys;
mod labels;
mod layout;
mod me;
mod media;
mod mock;
mod operators;
mod overview;
mod part;
mod passkeys;
mod people;
mod post;
mod post_form;
mod posts;
mod requests;
mod routes;
mod search;
mod session;
mod settings_form;
mod story;
mod team;
mod usage;
mod webhook;
mod webhooks;
mod zone;

use api::{
    app::{App, DASHBOARD_PATH as PATH},
    http::{
        admission,
        body::{DRAIN_LIMIT, drain},
        problem::{Code, Problem},
    },
};
use context::PageContext;
use fields::Fields;
use layout::Layout;
use poem::{Body, Request, Response, handler, http::Method, web::Data};
use routes::Route;
pub use routes::routes;
use session::{Entry, Kept, SessionState};
use store::sessions::Ended;

/// Returns the routes of the dashboard, for the router of the API, whose state and middleware they need.
pub fn endpoint() -> poem::Route {
    poem::Route::new().at(PATH, handle).at(format!("{PATH}/*"), handle)
}

/// Handles all requests of the dashboard.
#[handler]
async fn handle(request: &Request, body: Body, app: Data<&App>) -> Response {
    zone::scope(request, async {
        let answered = answer(&app, request, body).await;
        answered.unwrap_or_else(|problem| layout::failure(Layout::signed_out(""), problem))
    })
    .await
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
    let form = match &segments[..] {
        _ if is_read => Fields::default(),
        ["media", "files"] | ["media", _, "content"] => {
            return receive_files(app, request, body, &segments).await;
        }
        // Scripts send these.
        ["compose", "preview"] => fields::of_script(request, body).await?,
        segments if is_of_uploads(segments) => fields::of_script(request, body).await?,
        _ => fields::of_form(request, body).await?,
    };
    match &segments[..] {
        ["sign-in"] if !is_read => {
            return go_on(app, request, session::begin(app, request, &form).await?).await;
        }
        ["sign-in", "passkey"] if is_read => return session::challenge(app, request).await,
        ["sign-in", "passkey"] => {
            return go_on(app, request, session::begin_with_passkey(app, request, &form).await?).await;
        }
        ["sign-out"] if !is_read => return session::end(app, request).await,
        ["sign-in", "openid"] if is_read => return session::begin_at_provider(app, request).await,
        ["sign-in", "openid", "callback"] if is_read => {
            return session::return_from_provider(app, request).await;
        }
        ["sign-in", "openid", "join"] if !is_read => return session::join(app, request, &form).await,
        ["operators", rest @ ..] => return operators::answer(app, request, rest, &form, is_read).await,
        ["invite", token] if is_read => return invitation::show(app, request, token).await,
        ["invite", token] => return invitation::accept(app, request, token, &form).await,
        ["invite", token, "passkey"] if is_read => return invitation::challenge(app, request, token).await,
        _ => {}
    }
    let session = match session::state_of(app, request).await? {
        SessionState::Active(session) => session,
        SessionState::Missing if is_read => return Ok(session::require_sign_in(app, request)),
        SessionState::Missing => return Ok(session::expired(app, request, &segments, &form)),
        SessionState::CrossSite => return Ok(layout::reload(request)),
    };
    let context = PageContext::new(app, session, request, form);
    let answered = answer_to(&context, request, is_read, &segments).await;
    Ok(answered.unwrap_or_else(|problem| match &segments[..] {
        segments if is_of_uploads(segments) && !is_read => media::refuse(&problem),
        _ => context.failure(problem),
    }))
}

/// Goes on after an attempt to sign in: with the post that was being written when the earlier session ended, if one was.
async fn go_on(app: &App, request: &Request, entry: Entry) -> Result<Response, Problem> {
    let Kept { session, token, form } = match entry {
        Entry::Page(page) => return Ok(page),
        Entry::Kept(kept) => kept,
    };
    let context = PageContext::new(app, session, request, form);
    let mut page = post_form::show_kept(&context).await.unwrap_or_else(|problem| context.failure(problem));
    session::keep(&mut page, app, request, &token);
    Ok(page)
}

/// True for the actions of the script that uploads files.
fn is_of_uploads(segments: &[&str]) -> bool {
    matches!(segments, ["media", "uploads"] | ["media", _, "confirm" | "abandon"])
}

/// Receives a form with files, or a file that the script sends. They are not read before it is known who sends them.
async fn receive_files(
    app: &App,
    request: &Request,
    body: Body,
    segments: &[&str],
) -> Result<Response, Problem> {
    let file = if let ["media", id, "content"] = segments { Some(*id) } else { None };
    let origin = if file.is_some() { fields::check_script(request) } else { fields::check_origin(request) };
    let session = match origin {
        Ok(()) => session::state_of(app, request).await,
        Err(problem) => Err(problem),
    };
    let refused = match session {
        Ok(SessionState::Active(session)) => {
            let context = PageContext::new(app, session, request, Fields::default());
            match admit(&context, request, false, segments).await {
                Ok(()) => {
                    let received = match file {
                        Some(id) => Ok(media::store(&context, request, body, id).await),
                        None => media::receive(&context, request, body).await,
                    };
                    return Ok(received.unwrap_or_else(|problem| context.failure(problem)));
                }
                Err(problem) if file.is_some() => Ok(media::refuse(&problem)),
                Err(problem) => Ok(context.failure(problem)),
            }
        }
        Ok(SessionState::Missing) => Ok(session::expired(app, request, segments, &Fields::default())),
        Ok(SessionState::CrossSite) => Ok(layout::reload(request)),
        Err(problem) => Err(problem),
    };
    // Browsers show no response while they are still sending.
    drain(body.into_async_read(), DRAIN_LIMIT).await;
    refused
}

/// Answers one who is signed in, if they may and have not asked too often.
async fn answer_to(
    context: &PageContext<'_>,
    request: &Request,
    is_read: bool,
    segments: &[&str],
) -> Result<Response, Problem> {
    admit(context, request, is_read, segments).await?;
    if is_read { read(context, request, segments).await } else { act(context, request, segments).await }
}

/// Fails unless the one who is signed in may open a page or do something, and has not asked too often.
async fn admit(
    context: &PageContext<'_>,
    request: &Request,
    is_read: bool,
    segments: &[&str],
) -> Result<(), Problem> {
    let route = Route::of(is_read, segments).ok_or_else(nothing)?;
    for scope in route.needed() {
        context.may(scope)?;
    }
    let operation = route.operation();
    let operation = operation.as_ref().map(|(method, path)| (method, *path));
    admission::count_session(context.app, request, context.call().owner, context.caller(), operation).await
}

/// Routes GET requests to pages.
async fn read(context: &PageContext<'_>, request: &Request, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        [] => overview::show(context, request).await,
        ["sign-in"] => Ok(context::see("")),
        ["me"] => me::show(context, request, None).await,
        ["me", "passkeys", "options"] => me::challenge(context).await,
        ["posts"] => posts::show(context).await,
        ["posts", id] => post::show(context, id, None).await,
        ["posts", id, "targets", target, "parts", position] => {
            part::show(context, id, target, position).await
        }
        ["analytics"] => analytics::show(context).await,
        ["analytics", "posts", id] => analytics::post(context, id, None).await,
        ["search"] => search::show(context).await,
        ["calendar"] => calendar::show(context).await,
        ["requests"] => requests::show(context).await,
        ["events"] => events::list(context).await,
        ["events", id] => events::show(context, id).await,
        ["compose"] => post_form::show(context).await,
        ["accounts"] => accounts::show(context).await,
        ["webhooks"] => webhooks::show(context, None).await,
        ["webhooks", id] => webhook::show(context, id, None).await,
        ["webhooks", id, "deliveries", delivery] => delivery::show(context, id, delivery, None).await,
        ["media"] => media::show(context, None).await,
        ["media", id, "thumbnail"] => media::thumbnail(context, request, id).await,
        ["media", id, "file"] => media::file(context, request, id).await,
        ["keys"] => keys::show(context, None).await,
        ["team"] => team::show(context, None).await,
        ["audit"] => audit::show(context).await,
        ["usage"] => usage::show(context).await,
        _ => Err(nothing()),
    }
}

/// Routes POST requests to actions. A failed action shows the page again with the error beside the button.
async fn act(context: &PageContext<'_>, request: &Request, segments: &[&str]) -> Result<Response, Problem> {
    match segments {
        ["retry"] => overview::retry(context, request).await,
        ["checklist", "dismiss"] => Ok(home::dismiss(context, request)),
        ["posts", "retry"] => posts::act(context, posts::Bulk::Retry).await,
        ["posts", "cancel"] => posts::act(context, posts::Bulk::Cancel).await,
        ["posts", id, "cancel"] => post::cancel(context, id).await,
        ["posts", id, "reschedule"] => calendar::reschedule(context, id).await,
        ["posts", id, "release"] => post::release(context, id).await,
        ["posts", id, "targets", target, "retry"] => post::retry(context, id, target).await,
        ["posts", id, "targets", target, "revive"] => post::revive(context, id, target).await,
        ["posts", id, "targets", target, "unpublish"] => post::unpublish(context, id, target).await,
        ["posts", id, "targets", target, "edit"] => post::edit(context, id, target).await,
        ["posts", id, "targets", target, "parts", position] => part::act(context, id, target, position).await,
        ["analytics", "posts", id, "refresh"] => analytics::refresh(context, id).await,
        ["compose"] => post_form::act(context).await,
        ["compose", "preview"] => post_form::show_live(context).await,
        ["accounts", "connect"] => accounts::connect(context).await,
        ["accounts", "bluesky"] => accounts::sign_in(context).await,
        ["accounts", id, "check"] => accounts::check(context, id).await,
        ["accounts", id, "retry"] => accounts::retry(context, id).await,
        ["accounts", id, "reconnect"] => accounts::reconnect(context, id).await,
        ["accounts", id, "disconnect"] => accounts::disconnect(context, id).await,
        ["webhooks"] => webhooks::create(context).await,
        ["webhooks", id, "test"] => webhook::test(context, id).await,
        ["webhooks", id, "pause"] => webhook::set_active(context, id, false).await,
        ["webhooks", id, "resume"] => webhook::set_active(context, id, true).await,
        ["webhooks", id, "reveal"] => webhook::reveal(context, id).await,
        ["webhooks", id, "prepare"] => webhook::prepare(context, id).await,
        ["webhooks", id, "rotate"] => webhook::rotate(context, id).await,
        ["webhooks", id, "replay"] => webhook::replay(context, id).await,
        ["webhooks", id, "delete"] => webhook::delete(context, id).await,
        ["webhooks", id, "deliveries", delivery, "redeliver"] => {
            webhook::redeliver(context, id, delivery).await
        }
        ["media"] => media::import(context).await,
        ["media", "uploads"] => Ok(media::announce(context).await),
        ["media", id, "confirm"] => Ok(media::confirm(context, id).await),
        ["media", id, "abandon"] => Ok(media::abandon(context, id).await),
        ["media", id, "alt"] => media::describe(context, id).await,
        ["media", id, "delete"] => media::delete(context, id).await,
        ["keys"] => keys::create(context).await,
        ["keys", id, "rotate"] => keys::rotate(context, id).await,
        ["keys", id, "revoke"] => keys::revoke(context, id).await,
        ["team"] => team::invite(context).await,
        ["team", id, "role"] => team::set_role(context, id).await,
        ["team", id, "remove"] => team::remove(context, id).await,
        ["me", "passkeys"] => me::add(context, request).await,
        ["me", "passkeys", id, "remove"] => me::remove(context, request, id).await,
        ["me", "identities"] => me::link(context, request).await,
        ["me", "identities", "unlink"] => me::unlink(context, request).await,
        ["me", "sessions", "others", "end"] => me::end(context, Ended::Others).await,
        ["me", "sessions", id, "end"] => me::end(context, Ended::One(id)).await,
        ["me", "switch"] => me::switch(context).await,
        ["me", "zone"] => me::set_zone(context),
        _ => Err(nothing()),
    }
}

fn nothing() -> Problem {
    Problem::new(Code::NotFound, "there is no such page")
}
