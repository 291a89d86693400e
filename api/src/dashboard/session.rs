//! Signing in with an API key that has all scopes, and signing out.
//!
//! The cookie contains only a random token; the session is stored with its key and ends when the key does.
//! The cookie is `HttpOnly`, `SameSite=Strict` and, except on loopback, `Secure`.

use super::{
    PATH,
    context::see,
    fields::Fields,
    layout::{self, Layout, PageError, render},
};
use crate::{
    app::App,
    http::{admission, browser, caller, problem::Problem},
};
use askama::Template;
use domain::scope::{self, Scope};
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use store::{
    audit::ActorKind,
    keys,
    sessions::{self, Session},
};

/// Name of the cookie over https; browsers bind the prefix `__Host-` to this host.
const SECURE_COOKIE: &str = "__Host-fanfare";
/// Name of the cookie on loopback, without https.
const LOOPBACK_COOKIE: &str = "fanfare";

/// Maximum length of the path to return to after signing in, in bytes.
const MAX_NEXT_BYTES: usize = 2048;

/// Session state of a request.
pub(crate) enum SessionState {
    /// Signed in.
    Active(Box<Session>),
    /// Not signed in.
    Missing,
    /// Navigated from another site: the browser may have a session and withholds its cookie.
    CrossSite,
}

/// Looks up the session of a request.
pub(crate) async fn state_of(app: &App, request: &Request) -> Result<SessionState, Problem> {
    let session = match cookie(app, request) {
        Some(text) => sessions::find(&app.db, text, (app.now)()).await?,
        None => None,
    };
    Ok(match session.filter(|session| scope::allows(&session.key.scopes, Scope::All)) {
        Some(session) => SessionState::Active(session.into()),
        None if browser::is_cross_site(request) => SessionState::CrossSite,
        None => SessionState::Missing,
    })
}

/// Signs in.
pub(crate) async fn begin(app: &App, request: &Request, form: &Fields) -> Result<Response, Problem> {
    if let Err(problem) = admission::count_sign_in(app, request).await {
        return Ok(sign_in_page(form.get("next"), Some(PageError::of("key", problem))));
    }
    let now = (app.now)();
    let key = match form.given("key") {
        Some(text) => keys::authenticate(&app.db, text, now).await?,
        None => None,
    };
    let refusal = match key {
        Some(key) if key.bound.is_limited() => {
            "This key is limited to a part of the organization's data: signing in requires one that is not."
        }
        Some(key) if scope::allows(&key.scopes, Scope::All) => {
            let by = caller::actor(app, request, ActorKind::Session, Some(&key));
            let text = sessions::begin(&app.db, &key, &by, now).await?;
            let next = form.given("next").filter(|next| is_dashboard_path(next)).unwrap_or(PATH);
            let mut response = see(next.strip_prefix(PATH).unwrap_or_default());
            set(&mut response, app, request, &text, sessions::TTL.num_seconds());
            return Ok(response);
        }
        Some(_) => "This key does not have all scopes: signing in requires a key with the scope *.",
        None => "This key is unknown, was revoked, or has expired.",
    };
    Ok(sign_in_page(form.get("next"), Some(PageError::new("key", StatusCode::UNAUTHORIZED, refusal))))
}

/// Signs out.
pub(crate) async fn end(app: &App, request: &Request) -> Result<Response, Problem> {
    if let (Some(text), SessionState::Active(session)) = (cookie(app, request), state_of(app, request).await?)
    {
        let by = caller::actor(app, request, ActorKind::Session, Some(&session.key));
        sessions::end(&app.db, text, &session.key, &by, (app.now)()).await?;
    }
    let mut response = see("");
    set(&mut response, app, request, "", 0);
    Ok(response)
}

/// The sign-in page, in place of the requested one.
pub(crate) fn require_sign_in(request: &Request, error: Option<PageError>) -> Response {
    let uri = request.original_uri();
    // After a POST the page to return to is unknown.
    let next = if error.is_none() { uri.path_and_query().map_or(PATH, |path| path.as_str()) } else { PATH };
    sign_in_page(next, error)
}

/// The error of a form that was sent after the session ended.
pub(crate) fn expired() -> PageError {
    let message = "Your session has ended and nothing was changed. Sign in and try again.";
    PageError::new("key", StatusCode::UNAUTHORIZED, message)
}

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignIn<'a> {
    layout: Layout,
    next: &'a str,
}

fn sign_in_page(next: &str, error: Option<PageError>) -> Response {
    let next = if next.len() > MAX_NEXT_BYTES { PATH } else { next };
    let status = error.as_ref().map_or(StatusCode::UNAUTHORIZED, |error| error.status);
    let layout = Layout { error, ..Layout::signed_out("Sign in") };
    render(status, &SignIn { layout, next: if is_dashboard_path(next) { next } else { PATH } })
}

/// True for a path of the dashboard, so that signing in can't redirect elsewhere.
fn is_dashboard_path(next: &str) -> bool {
    let rest = next.strip_prefix(PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

fn cookie<'a>(app: &App, request: &'a Request) -> Option<&'a str> {
    let name = if browser::is_plain(app, request) { LOOPBACK_COOKIE } else { SECURE_COOKIE };
    browser::cookie(request, name)
}

fn set(response: &mut Response, app: &App, request: &Request, text: &str, seconds: i64) {
    let (name, path, secure) = if browser::is_plain(app, request) {
        (LOOPBACK_COOKIE, PATH, "")
    } else {
        (SECURE_COOKIE, "/", "; Secure")
    };
    let cookie = format!("{name}={text}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    layout::put(response, header::SET_COOKIE, &cookie);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_the_dashboard_only() {
        for (next, is_fine) in [
            ("/dashboard", true),
            ("/dashboard/posts?status=dead", true),
            ("/dashboard?a", true),
            ("/dashboardish", false),
            ("//example.com/dashboard", false),
            ("https://example.com/dashboard", false),
            ("/dashboard/\\example.com", false),
            ("/dashboard/\r\nx: y", false),
            ("/api/v1/posts", false),
            ("", false),
        ] {
            assert_eq!(is_dashboard_path(next), is_fine, "{next}");
        }
    }
}
