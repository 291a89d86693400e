//! Signing in with a passkey or an API key, and signing out.
//!
//! The cookie contains only a random token; the session is stored with its key or member and ends when they do. The
//! cookie is `HttpOnly`, `SameSite=Strict` and, except on loopback, `Secure`, and has a name of its own for each
//! installation, because browsers send cookies to all ports of a host. A post that was being written
//! when a session ended is kept in the sign-in form.

use crate::{
    PATH,
    context::{actor, done, see},
    fields::{self, Fields},
    labels::Done,
    layout::{self, Layout, PageError, render},
    passkeys,
    people::{openid, passkeys::Refusal},
};
use api::{
    app::App,
    http::{admission, browser, caller, problem::Problem},
};
use askama::Template;
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use sha2::{Digest, Sha256};
use store::people::{
    self,
    audit::{Actor, ActorKind},
    identities::{self, Linking},
    keys,
    sessions::{self, Ended, Session},
};
use tracing::warn;

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

/// Outcome of an attempt to sign in.
pub(crate) enum Entry {
    /// A page.
    Page(Response),
    /// The post that was being written when the earlier session ended.
    Kept(Kept),
}

/// A post that was being written when a session ended, and the session that follows.
pub(crate) struct Kept {
    /// The session.
    pub(crate) session: Box<Session>,
    /// Token of the session, for [`keep`].
    pub(crate) token: String,
    /// Form of the post.
    pub(crate) form: Fields,
}

/// Looks up the session of a request.
pub(crate) async fn state_of(app: &App, request: &Request) -> Result<SessionState, Problem> {
    let session = match cookie(app, request) {
        Some(text) => sessions::find(&app.db, text, browser::is_navigation(request), (app.now)()).await?,
        None => None,
    };
    Ok(match session {
        Some(session) => SessionState::Active(session.into()),
        None if browser::is_cross_site(request) => SessionState::CrossSite,
        None => SessionState::Missing,
    })
}

/// Signs in with an API key.
pub(crate) async fn begin(app: &App, request: &Request, form: &Fields) -> Result<Entry, Problem> {
    let refuse = |error| Ok(Entry::Page(sign_in_page(app, request, form, Some(error))));
    if let Err(problem) = admission::count_sign_in(app, request).await {
        return refuse(PageError::of("key", problem));
    }
    let now = (app.now)();
    let key = match form.given("key") {
        Some(text) => keys::authenticate(&app.db, text, now).await?,
        None => None,
    };
    let refusal = match key {
        Some(key) if !key.bound.is_limited() => {
            let by = caller::actor(app, request, ActorKind::Session, Some(&key));
            let token = sessions::begin(&app.db, &key, &by, now).await?;
            return go_on(app, request, form, token).await;
        }
        Some(_) => {
            "This key is limited to a part of the organization's data: signing in requires one that is not."
        }
        None => "This key is unknown, was revoked, or has expired.",
    };
    let by = caller::actor(app, request, ActorKind::Session, None);
    warn!(address = ?by.address, "Signing in with an API key was refused");
    if let Some((owner, id)) = keys::refused(&app.db, form.get("key").trim(), now).await? {
        sessions::refuse(&app.db, owner, id.0, "the key has ended or is limited", &by, now).await?;
    }
    refuse(PageError::new("key", StatusCode::UNAUTHORIZED, refusal))
}

/// Answers with a challenge for a passkey.
pub(crate) async fn challenge(app: &App, request: &Request) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let party = passkeys::party(app)?;
    passkeys::challenge(party.begin_sign_in(&app.config.seal, (app.now)()))
}

/// Signs in with a passkey.
pub(crate) async fn begin_with_passkey(
    app: &App,
    request: &Request,
    form: &Fields,
) -> Result<Entry, Problem> {
    let refuse = |error| Ok(Entry::Page(sign_in_page(app, request, form, Some(error))));
    if let Err(problem) = admission::count_sign_in(app, request).await {
        return refuse(PageError::of("passkey", problem));
    }
    let party = match passkeys::party(app) {
        Ok(party) => party,
        Err(problem) => return refuse(PageError::of("passkey", problem)),
    };
    let now = (app.now)();
    let answer = party.finish_sign_in(&app.db, &app.config.seal, passkeys::answer(form), now);
    let by = caller::actor(app, request, ActorKind::Session, None);
    let message = match answer.await.map_err(passkeys::fault)? {
        Ok(passkey) => match people::sign_in(&app.db, &passkey, &by, now).await? {
            Some(token) => return go_on(app, request, form, token).await,
            None => "You are a member of no organization. Ask for an invitation.",
        },
        Err(refusal) => {
            warn!(address = ?by.address, ?refusal, "Signing in with a passkey was refused");
            if let Refusal::Invalid(Some(person), reason) = &refusal {
                sessions::refuse_person(&app.db, *person, reason, &by, now).await?;
            }
            passkeys::message(&refusal)
        }
    };
    refuse(PageError::new("passkey", StatusCode::UNAUTHORIZED, message))
}

/// Leads to the OpenID provider.
pub(crate) async fn begin_at_provider(app: &App, request: &Request) -> Result<Response, Problem> {
    let query = Fields::of_query(request);
    let refuse = |problem| Ok(sign_in_page(app, request, &query, Some(PageError::of("openid", problem))));
    if let Err(problem) = admission::count_sign_in(app, request).await {
        return refuse(problem);
    }
    if app.config.openid.is_none() {
        return Err(Problem::not_found("page"));
    }
    let by = caller::actor(app, request, ActorKind::Session, None);
    let next = query.given("next").filter(|next| next.len() <= MAX_NEXT_BYTES && is_dashboard_path(next));
    let earlier = match state_of(app, request).await? {
        SessionState::Active(session) => Some(session.id),
        _ => None,
    };
    match openid::begin(app, &by, next.unwrap_or(PATH), None, earlier, (app.now)()).await {
        Ok(begun) => Ok(lead_to_provider(app, request, begun)),
        Err(problem) => refuse(problem),
    }
}

/// Leads to the provider's page; the browser keeps the login until it comes back.
pub(crate) fn lead_to_provider(app: &App, request: &Request, begun: openid::Begun) -> Response {
    let mut response = Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, begun.url)
        .header(header::CACHE_CONTROL, "no-store")
        .finish();
    keep_login(&mut response, app, request, &begun.cookie, openid::TTL.num_seconds());
    response
}

/// Signs in who comes back from the OpenID provider, or links their identity.
pub(crate) async fn return_from_provider(app: &App, request: &Request) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let (query, now) = (Fields::of_query(request), (app.now)());
    let kept = browser::cookie(request, &login_cookie_name(app, request)).map(str::to_owned);
    let by = caller::actor(app, request, ActorKind::Session, None);
    let message = match openid::open(&app.config.seal, kept.as_deref(), query.get("state"), now) {
        None => "This login was begun in another browser, or took more than ten minutes. Sign in again.",
        Some(login) => match query.given("code") {
            None if login.link.is_some() => return Ok(done("/me", Done::IdentityRefused)),
            None => "The provider did not sign you in. Try again.",
            Some(code) => match (openid::finish(app, &by, &login, code, now).await, &login.link) {
                // The page on which one signs in again says why.
                (Err(problem), None) => {
                    let error = PageError::of("openid", problem);
                    return Ok(sign_in_page(app, request, &Fields::default(), Some(error)));
                }
                (Err(problem), Some(_)) => return Err(problem),
                (Ok(None), Some(_)) => return Ok(done("/me", Done::IdentityRefused)),
                (Ok(None), None) => "The provider’s answer was not accepted. Sign in again.",
                (Ok(Some(identity)), Some(link)) => {
                    let mut response = link_identity(app, link, &identity, &by).await?;
                    keep_login(&mut response, app, request, "", 0);
                    return Ok(response);
                }
                (Ok(Some(identity)), None) => match arrive(app, request, &login, &identity, &by).await? {
                    Some(response) => return Ok(response),
                    None if identity.email.is_none() => {
                        "The provider has not verified an e-mail address of yours, so that no invitation can be found."
                    }
                    None => "Nobody has invited your e-mail address. Ask for an invitation.",
                },
            },
        },
    };
    warn!(address = ?by.address, "Signing in at the OpenID provider was refused: {message}");
    let error = PageError::new("openid", StatusCode::UNAUTHORIZED, message);
    Ok(sign_in_page(app, request, &Fields::default(), Some(error)))
}

/// Links the identity of a person who comes back from the OpenID provider.
async fn link_identity(
    app: &App,
    link: &openid::Link,
    identity: &people::Identity,
    by: &Actor,
) -> Result<Response, Problem> {
    let now = (app.now)();
    Ok(match identities::link(&app.db, &link.session, link.person, identity, by, now).await? {
        Linking::Linked => done("/me", Done::IdentityLinked),
        Linking::Taken => done("/me", Done::IdentityTaken),
        Linking::TooMany => done("/me", Done::IdentityTooMany),
        // Leads to the page that asks to sign in.
        Linking::SignedOut => see("/me"),
    })
}

/// Signs in one who came back from the provider, and lists the invitations of their address: which of them to accept is
/// for them to say. Returns `None` for one who is a member of nothing and invited to nothing.
async fn arrive(
    app: &App,
    request: &Request,
    login: &openid::Login,
    identity: &people::Identity,
    by: &Actor,
) -> Result<Option<Response>, Problem> {
    let now = (app.now)();
    let token = people::sign_in_with(&app.db, identity, by, now).await?;
    let invitations = people::invitations(&app.db, identity, now).await?;
    if token.is_none() && invitations.is_empty() {
        return Ok(None);
    }
    if let Some(earlier) = &login.earlier
        && let Some(earlier) = sessions::get(&app.db, earlier, now).await?
    {
        end_session(app, request, &earlier).await?;
    }
    let entered = match &token {
        Some(token) => Some(enter(app, request, &Fields::of([("next", login.next.as_str())]), token).await?),
        None => None,
    };
    let (mut response, kept) = match entered {
        Some(response) if invitations.is_empty() => (response, None),
        entered => {
            let choice = openid::Choice { identity: identity.clone(), next: login.next.clone() };
            let next = entered.is_some().then_some(login.next.as_str());
            let layout = Layout::signed_out("Invitations");
            let mut page = render(StatusCode::OK, &Invitations { layout, invitations: &invitations, next });
            if let Some(token) = &token {
                keep(&mut page, app, request, token);
            }
            (page, Some(choice.seal(&app.config.seal, now)))
        }
    };
    let seconds = if kept.is_some() { openid::TTL.num_seconds() } else { 0 };
    keep_login(&mut response, app, request, kept.as_deref().unwrap_or_default(), seconds);
    Ok(Some(response))
}

/// Accepts the invitation that one who came back from the provider has chosen, and signs them in there.
pub(crate) async fn join(app: &App, request: &Request, form: &Fields) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let now = (app.now)();
    let kept = browser::cookie(request, &login_cookie_name(app, request)).map(str::to_owned);
    let by = caller::actor(app, request, ActorKind::Session, None);
    let member = form.get("member").parse().ok();
    let message = match (openid::Choice::open(&app.config.seal, kept.as_deref(), now), member) {
        (Some(choice), Some(member)) => {
            match people::join_with(&app.db, &choice.identity, member, &by, now).await? {
                Some(token) => {
                    let form = Fields::of([("next", choice.next.as_str())]);
                    let mut response = enter(app, request, &form, &token).await?;
                    keep_login(&mut response, app, request, "", 0);
                    return Ok(response);
                }
                None => "The invitation was accepted or withdrawn before, or has expired. Sign in again.",
            }
        }
        _ => "Choosing took more than ten minutes. Sign in again.",
    };
    let error = PageError::new("openid", StatusCode::UNAUTHORIZED, message);
    Ok(sign_in_page(app, request, &Fields::default(), Some(error)))
}

#[derive(Template)]
#[template(path = "invitations.html")]
struct Invitations<'a> {
    layout: Layout,
    invitations: &'a [people::Invited],
    /// Address of the page for a person who accepts none; `None` for one who is a member of no organization yet.
    next: Option<&'a str>,
}

/// The name of the cookie that keeps a login until the browser comes back.
fn login_cookie_name(app: &App, request: &Request) -> String {
    format!("{}-login", cookie_name(app, request))
}

/// Sets that cookie. It is not `SameSite=Strict`, because the provider's page leads back.
fn keep_login(response: &mut Response, app: &App, request: &Request, text: &str, seconds: i64) {
    let name = login_cookie_name(app, request);
    let (path, secure) = if browser::is_plain(app, request) { (PATH, "") } else { ("/", "; Secure") };
    let cookie = format!("{name}={text}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    let value = header::HeaderValue::from_str(&cookie).expect("what we say of ourselves is plain text");
    response.headers_mut().append(header::SET_COOKIE, value);
}

/// Ends the browser's earlier session, sets the cookie of the new one, and goes on where the person was.
pub(crate) async fn enter(
    app: &App,
    request: &Request,
    form: &Fields,
    token: &str,
) -> Result<Response, Problem> {
    end_earlier(app, request).await?;
    let next = form.given("next").filter(|next| is_dashboard_path(next)).unwrap_or(PATH);
    let mut response = see(next.strip_prefix(PATH).unwrap_or_default());
    keep(&mut response, app, request, token);
    Ok(response)
}

/// Enters, or returns the post that was being written if the sign-in form has kept one.
async fn go_on(app: &App, request: &Request, form: &Fields, token: String) -> Result<Entry, Problem> {
    let session = match form.given("kept") {
        Some(_) => sessions::find(&app.db, &token, true, (app.now)()).await?,
        None => None,
    };
    let Some(session) = session else {
        return Ok(Entry::Page(enter(app, request, form, &token).await?));
    };
    end_earlier(app, request).await?;
    let form = Fields::parse(form.get("kept").as_bytes());
    Ok(Entry::Kept(Kept { session: session.into(), token, form }))
}

/// Ends the browser's earlier session, if it has one.
async fn end_earlier(app: &App, request: &Request) -> Result<(), Problem> {
    match state_of(app, request).await? {
        SessionState::Active(session) => end_session(app, request, &session).await,
        SessionState::Missing | SessionState::CrossSite => Ok(()),
    }
}

/// Ends the session of the browser.
async fn end_session(app: &App, request: &Request, session: &Session) -> Result<(), Problem> {
    let by = actor(app, request, session);
    sessions::end(&app.db, session, Ended::One(&session.id), &by, (app.now)()).await?;
    Ok(())
}

/// Signs out.
pub(crate) async fn end(app: &App, request: &Request) -> Result<Response, Problem> {
    end_earlier(app, request).await?;
    let mut response = see("");
    set(&mut response, app, request, "", 0);
    Ok(response)
}

/// The sign-in page, in place of the requested one.
pub(crate) fn require_sign_in(app: &App, request: &Request) -> Response {
    let uri = request.original_uri();
    let next = uri.path_and_query().map_or(PATH, |path| path.as_str());
    sign_in_page(app, request, &Fields::of([("next", next)]), None)
}

/// The sign-in page after a form that was sent when the session had ended. A post that was being written is kept.
pub(crate) fn expired(app: &App, request: &Request, segments: &[&str], form: &Fields) -> Response {
    let (kept, message) = match segments {
        ["compose"] => (
            fields::write(form.without(&[])),
            "Your session has ended and nothing was published. Sign in: what you have written is kept.",
        ),
        _ => (String::new(), "Your session has ended and nothing was changed. Sign in and try again."),
    };
    let error = PageError::new("key", StatusCode::UNAUTHORIZED, message);
    // After a POST the page to return to is unknown.
    sign_in_page(app, request, &Fields::of([("kept", kept.as_str())]), Some(error))
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn<'a> {
    layout: Layout,
    next: &'a str,
    kept: &'a str,
    passkeys: passkeys::Offer,
    openid: Option<&'a str>,
    query: String,
}

pub(crate) fn sign_in_page(
    app: &App,
    request: &Request,
    form: &Fields,
    error: Option<PageError>,
) -> Response {
    let next = Some(form.get("next")).filter(|next| next.len() <= MAX_NEXT_BYTES && is_dashboard_path(next));
    let status = error.as_ref().map_or(StatusCode::UNAUTHORIZED, |error| error.status);
    let layout = Layout { error, uses_passkeys: true, ..Layout::signed_out("Sign in") };
    let page = SignIn {
        layout,
        next: next.unwrap_or(PATH),
        kept: form.get("kept"),
        passkeys: passkeys::Offer::of(app, request),
        openid: app.config.openid.as_deref(),
        query: fields::write([("next", next.unwrap_or(PATH))]),
    };
    render(status, &page)
}

/// True for a path of the dashboard, so that signing in can't redirect elsewhere.
fn is_dashboard_path(next: &str) -> bool {
    let rest = next.strip_prefix(PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

fn cookie<'a>(app: &App, request: &'a Request) -> Option<&'a str> {
    browser::cookie(request, &cookie_name(app, request))
}

/// The cookie's name. Over https it has the prefix `__Host-`, by which browsers bind it to this host.
pub(super) fn cookie_name(app: &App, request: &Request) -> String {
    let instance = Sha256::digest(&app.config.base_url);
    let instance = hex::encode(&instance[..4]);
    let prefix = if browser::is_plain(app, request) { "" } else { "__Host-" };
    format!("{prefix}fanfare-{instance}")
}

/// Sets the cookie of a new session.
pub(crate) fn keep(response: &mut Response, app: &App, request: &Request, token: &str) {
    set(response, app, request, token, sessions::TTL.num_seconds());
}

fn set(response: &mut Response, app: &App, request: &Request, text: &str, seconds: i64) {
    let name = cookie_name(app, request);
    let (path, secure) = if browser::is_plain(app, request) { (PATH, "") } else { ("/", "; Secure") };
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
