//! Signing in to the operators' pages, and out.
//!
//! The token is shared, so that an operator also gives a name, which is kept with everything that they change. The
//! cookie contains only a random token; the session is stored ([`store::operators::sessions`]).

use super::{MAX_CHARS, PATH, outcome::see};
use crate::{
    PATH as DASHBOARD,
    fields::Fields,
    layout::{self, Layout, PageError, render},
    session::cookie_name,
};
use api::{
    OperatorToken,
    app::App,
    http::{admission, browser, caller, problem::Problem},
};
use askama::Template;
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use store::{
    operators::sessions,
    people::audit::{Actor, ActorKind},
};
use tracing::warn;

/// Place of errors on the sign-in page.
const PLACE: &str = "token";

/// Describes an operator, for the audit trail.
pub(super) fn actor(app: &App, request: &Request, name: &str) -> Actor {
    Actor { operator: Some(name.to_owned()), ..caller::actor(app, request, ActorKind::Operator, None) }
}

/// Returns the name of the operator who is signed in.
pub(super) async fn find(
    app: &App,
    token: &OperatorToken,
    request: &Request,
) -> Result<Option<String>, Problem> {
    let Some(cookie) = browser::cookie(request, &name_of_cookie(app, request)) else { return Ok(None) };
    Ok(sessions::find(&app.db, cookie, &token.credential(), browser::is_navigation(request), (app.now)())
        .await?)
}

/// The sign-in page, in place of the requested one.
pub(super) fn require(request: &Request, is_read: bool) -> Response {
    if is_read && browser::is_cross_site(request) {
        return layout::reload(request);
    }
    let error = (!is_read).then(|| {
        let message = "Your session has ended and nothing was changed. Sign in and try again.";
        PageError::new(PLACE, StatusCode::UNAUTHORIZED, message)
    });
    page(error, "")
}

#[derive(Template)]
#[template(path = "operators/sign_in.html")]
struct SignIn<'a> {
    layout: Layout,
    name: &'a str,
}

fn page(error: Option<PageError>, name: &str) -> Response {
    let status = error.as_ref().map_or(StatusCode::UNAUTHORIZED, |error| error.status);
    let layout = Layout { error, ..Layout::signed_out("Operators") };
    render(status, &SignIn { layout, name })
}

/// Signs in.
pub(super) async fn begin(
    app: &App,
    token: &OperatorToken,
    request: &Request,
    form: &Fields,
) -> Result<Response, Problem> {
    let name = form.get("name").trim();
    if let Err(problem) = admission::count_sign_in(app, request).await {
        return Ok(page(Some(PageError::of(PLACE, problem)), name));
    }
    let by = actor(app, request, name);
    let refusal = match form.given("token") {
        _ if name.is_empty() || name.chars().count() > MAX_CHARS => {
            "Give your name: it is kept with everything that you change."
        }
        Some(presented) if token.is(presented) => {
            // A browser has one session.
            if let Some(earlier) = browser::cookie(request, &name_of_cookie(app, request)) {
                sessions::end(&app.db, earlier).await?;
            }
            let cookie = sessions::begin(&app.db, &token.credential(), &by, (app.now)()).await?;
            let mut response = see("");
            set(&mut response, app, request, &cookie, sessions::TTL.num_seconds());
            return Ok(response);
        }
        _ => {
            warn!(address = ?by.address, "Signing in to the operators' pages was refused");
            "This is not the operators’ token."
        }
    };
    Ok(page(Some(PageError::new(PLACE, StatusCode::UNAUTHORIZED, refusal)), name))
}

/// Signs out.
pub(super) async fn end(app: &App, request: &Request) -> Result<Response, Problem> {
    if let Some(cookie) = browser::cookie(request, &name_of_cookie(app, request)) {
        sessions::end(&app.db, cookie).await?;
    }
    let mut response = see("");
    set(&mut response, app, request, "", 0);
    Ok(response)
}

fn name_of_cookie(app: &App, request: &Request) -> String {
    format!("{}-operator", cookie_name(app, request))
}

fn set(response: &mut Response, app: &App, request: &Request, text: &str, seconds: i64) {
    let name = name_of_cookie(app, request);
    let place = if browser::is_plain(app, request) {
        format!("Path={DASHBOARD}{PATH}")
    } else {
        "Path=/; Secure".to_owned()
    };
    let cookie = format!("{name}={text}; Max-Age={seconds}; HttpOnly; SameSite=Strict; {place}");
    layout::put(response, header::SET_COOKIE, &cookie);
}
