//! The dashboard: HTML pages that show what is stuck and why, and let people act on it.
//!
//! Pages are rendered on the server and work without scripts, which poll for changes, reach passkeys, and make what is
//! there quicker to use (a dialog instead of a fold, a button that copies). No external resources are loaded.
//!
//! Pages call the functions of the API's operations and ask for their scopes ([`mod@routes`]), so that they can do
//! nothing that the API can't; only signing in is theirs ([`people`], [`session`]). What no operation returns is a query
//! of [`store::dashboard`], or stands with the reason in `tests/it/walls/pages.rs`.

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
mod route;
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
use domain::scope;
use fields::Fields;
use layout::Layout;
use poem::{Body, Request, Response, handler, http::Method, web::Data};
pub use routes::routes;
use routes::{Found, Route, Sent};
use session::{Entry, Kept, SessionState};
use store::people::sessions::Session;

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
    let found = Route::find(is_read, &segments);
    if let Some(found) = found.filter(|found| found.route.reads_body()) {
        return receive_files(app, request, body, found).await;
    }
    let form = match found.and_then(|found| found.route.sent) {
        _ if is_read => Fields::default(),
        Some(Sent::Script | Sent::Upload) => fields::of_script(request, body).await?,
        Some(Sent::Form) | None => fields::of_form(request, body).await?,
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
    let context = context_of(app, session, request, form);
    let Some(found) = found else {
        return Ok(context.failure(Problem::new(Code::NotFound, "there is no such page")));
    };
    let answered = match admit(&context, found.route).await {
        Ok(()) => found.answer(&context, Body::empty()).await,
        Err(problem) => Err(problem),
    };
    Ok(answered.unwrap_or_else(|problem| found.route.refuse(&context, problem)))
}

/// Returns the context of a request, with the pages that the one who is signed in may open.
fn context_of<'a>(
    app: &'a App,
    session: Box<Session>,
    request: &'a Request,
    form: Fields,
) -> PageContext<'a> {
    let may_open = |path: &str| {
        let page = Route::find(true, &path.split('/').skip(1).collect::<Vec<_>>());
        page.is_some_and(|page| page.route.needed().all(|needed| scope::allows(session.scopes(), needed)))
    };
    let navigation = layout::navigation(may_open);
    PageContext::new(app, session, request, form, navigation)
}

/// Goes on after an attempt to sign in: with the post that was being written when the earlier session ended, if one was.
async fn go_on(app: &App, request: &Request, entry: Entry) -> Result<Response, Problem> {
    let Kept { session, token, form } = match entry {
        Entry::Page(page) => return Ok(page),
        Entry::Kept(kept) => kept,
    };
    let context = context_of(app, session, request, form);
    let page = Route::find(true, &["compose"]).expect("there is this page").route;
    let shown = match page.check(&context) {
        Ok(()) => post_form::show_kept(&context).await,
        Err(problem) => Err(problem),
    };
    let mut page = shown.unwrap_or_else(|problem| context.failure(problem));
    session::keep(&mut page, app, request, &token);
    Ok(page)
}

/// Receives a form with files, or a file that the script sends. They are not read before it is known who sends them.
async fn receive_files(
    app: &App,
    request: &Request,
    body: Body,
    found: Found<'_>,
) -> Result<Response, Problem> {
    let origin = match found.route.sent {
        Some(Sent::Script | Sent::Upload) => fields::check_script(request),
        Some(Sent::Form) | None => fields::check_origin(request),
    };
    let session = match origin {
        Ok(()) => session::state_of(app, request).await,
        Err(problem) => Err(problem),
    };
    let refused = match session {
        Ok(SessionState::Active(session)) => {
            let context = context_of(app, session, request, Fields::default());
            match admit(&context, found.route).await {
                Ok(()) => {
                    let received = found.answer(&context, body).await;
                    return Ok(received.unwrap_or_else(|problem| context.failure(problem)));
                }
                Err(problem) => Ok(found.route.refuse(&context, problem)),
            }
        }
        Ok(SessionState::Missing) => Ok(session::expired(app, request, &[], &Fields::default())),
        Ok(SessionState::CrossSite) => Ok(layout::reload(request)),
        Err(problem) => Err(problem),
    };
    // Browsers show no response while they are still sending.
    drain(body.into_async_read(), DRAIN_LIMIT).await;
    refused
}

/// Fails unless the one who is signed in may open a page or do something, and has not asked too often.
async fn admit(context: &PageContext<'_>, route: &Route) -> Result<(), Problem> {
    route.check(context)?;
    let operation = route.operation();
    let operation = operation.as_ref().map(|(method, path)| (method, *path));
    let owner = context.call().owner;
    admission::count_session(context.app, context.request, owner, context.caller(), operation).await
}
