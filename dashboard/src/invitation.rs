//! Accepting an invitation to a team: with a new passkey, which makes a new person, or as the person who is signed in.
//! The token in the URL authorizes it, once.

use crate::{
    PATH,
    fields::Fields,
    layout::{Layout, PageError, render},
    passkeys::{self, Offer},
    people::passkeys::Registered,
    session::{self, SessionState},
};
use api::{
    app::App,
    http::{
        admission, caller,
        problem::{Code, Problem},
    },
};
use askama::Template;
use domain::PersonId;
use poem::{Request, Response, http::StatusCode};
use store::people::{
    self, Acceptance, Invitee,
    audit::ActorKind,
    sessions::Holder,
    team::{self, Invitation},
};
use uuid::Uuid;

/// Maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 100;

#[derive(Template)]
#[template(path = "invitation.html")]
struct Page {
    layout: Layout,
    token: String,
    invitation: Option<Invitation>,
    offer: Offer,
    /// The person who is signed in, and their name.
    known: Option<String>,
    name: String,
}

/// Shows the invitation.
pub(crate) async fn show(app: &App, request: &Request, token: &str) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let invitation = team::invitation(&app.db, token, (app.now)()).await?;
    draw(app, request, token, invitation, "", None).await
}

/// Answers the page's script with a challenge for the first passkey of a new person.
pub(crate) async fn challenge(app: &App, request: &Request, token: &str) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let party = passkeys::party(app)?;
    let now = (app.now)();
    let invitation = team::invitation(&app.db, token, now).await?;
    let invitation = invitation.ok_or_else(|| Problem::not_found("invitation"))?;
    let person = PersonId(Uuid::now_v7());
    let key = &app.config.seal;
    passkeys::challenge(party.begin_registration(key, Registered::First, person, &invitation.email, &[], now))
}

/// Accepts the invitation and signs in.
pub(crate) async fn accept(
    app: &App,
    request: &Request,
    token: &str,
    form: &Fields,
) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let now = (app.now)();
    let Some(invitation) = team::invitation(&app.db, token, now).await? else {
        return draw(app, request, token, None, "", None).await;
    };
    let refuse = async |at, status, message: &str| {
        let error = PageError::new(at, status, message);
        draw(app, request, token, Some(invitation.clone()), form.get("name"), Some(error)).await
    };
    let name =
        form.given("name").filter(|name| !name.contains('\0') && name.chars().count() <= MAX_NAME_LENGTH);
    let Some(name) = name else {
        let message = format!("Write your name, in at most {MAX_NAME_LENGTH} characters.");
        return refuse("name", StatusCode::BAD_REQUEST, &message).await;
    };
    let invitee = if form.get("as") == "me" {
        match person(app, request).await? {
            Some((person, _)) => Invitee::Known(person),
            None => {
                return refuse("name", StatusCode::UNAUTHORIZED, "Your session has ended. Sign in again.")
                    .await;
            }
        }
    } else {
        if form.given("credential").is_none() {
            let message = "Joining takes a passkey, and creating one takes scripts.";
            return refuse("name", StatusCode::BAD_REQUEST, message).await;
        }
        let party = passkeys::party(app)?;
        let key = &app.config.seal;
        let (answer, name) = (passkeys::answer(form), "First passkey");
        match party
            .finish_registration(&app.db, key, Registered::First, answer, name, now)
            .await
            .map_err(passkeys::fault)?
        {
            Ok((person, passkey)) => Invitee::New(person, passkey),
            Err(refusal) => {
                return refuse("name", StatusCode::BAD_REQUEST, passkeys::message(&refusal)).await;
            }
        }
    };
    let by = caller::actor(app, request, ActorKind::Invitation, None);
    // Of two concurrent clicks, only one accepts.
    match people::accept(&app.db, token, invitee, name, &by, now).await? {
        Acceptance::Joined(session) => {
            session::enter(app, request, &Fields::of([("next", PATH)]), &session).await
        }
        Acceptance::Gone => draw(app, request, token, None, "", None).await,
        Acceptance::IsMember => {
            refuse("name", StatusCode::CONFLICT, "You are a member of this organization already.").await
        }
        Acceptance::KnownPasskey => {
            refuse("name", StatusCode::CONFLICT, "This passkey is in use. Sign in with it first.").await
        }
    }
}

/// The person who is signed in, with their name; `None` for an API key or nobody.
async fn person(app: &App, request: &Request) -> Result<Option<(PersonId, String)>, Problem> {
    let SessionState::Active(session) = session::state_of(app, request).await? else { return Ok(None) };
    Ok(match session.holder {
        Holder::Member(member) => Some((member.person, member.name.unwrap_or(member.email))),
        Holder::Key(_) => None,
    })
}

async fn draw(
    app: &App,
    request: &Request,
    token: &str,
    invitation: Option<Invitation>,
    name: &str,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let layout = Layout { error, uses_passkeys: true, ..Layout::signed_out("Invitation") };
    let status = if invitation.is_some() { layout.status() } else { Code::NotFound.status() };
    let known = match &invitation {
        Some(_) => person(app, request).await?.map(|(_, name)| name),
        None => None,
    };
    let name = if name.is_empty() { known.clone().unwrap_or_default() } else { name.to_owned() };
    let offer = Offer::of(app, request);
    Ok(render(status, &Page { layout, token: token.to_owned(), invitation, offer, known, name }))
}
