//! Accepting an invitation to a team. The invited person has no key yet: the token in the URL authorizes
//! them, once.

use super::{
    fields::Fields,
    layout::{Layout, PageError, render},
};
use crate::{
    app::App,
    http::{admission, caller, problem::Problem},
};
use askama::Template;
use poem::{Request, Response, http::StatusCode};
use store::{
    audit::ActorKind,
    team::{self, Invitation},
};

/// Maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 100;

#[derive(Template)]
#[template(path = "dashboard/invitation.html")]
struct Page {
    layout: Layout,
    token: String,
    invitation: Option<Invitation>,
    has_joined: bool,
}

/// Shows the invitation.
pub(crate) async fn show(app: &App, request: &Request, token: &str) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let invitation = team::invitation(&app.db, token, (app.now)()).await?;
    Ok(draw(token, invitation, None))
}

/// Accepts the invitation.
pub(crate) async fn accept(
    app: &App,
    request: &Request,
    token: &str,
    form: &Fields,
) -> Result<Response, Problem> {
    admission::count_sign_in(app, request).await?;
    let Some(invitation) = team::invitation(&app.db, token, (app.now)()).await? else {
        return Ok(draw(token, None, None));
    };
    let name =
        form.given("name").filter(|name| !name.contains('\0') && name.chars().count() <= MAX_NAME_LENGTH);
    let Some(name) = name else {
        let message = format!("Write your name, in at most {MAX_NAME_LENGTH} characters.");
        let error = PageError::new("name", StatusCode::BAD_REQUEST, message);
        return Ok(draw(token, Some(invitation), Some(error)));
    };
    let by = caller::actor(app, request, ActorKind::Invitation, None);
    // Of two concurrent clicks, only one accepts.
    let has_joined = team::accept(&app.db, token, name, &by, (app.now)()).await?;
    let layout = Layout::signed_out("Invitation");
    let invitation = has_joined.then_some(invitation);
    Ok(render(StatusCode::OK, &Page { layout, token: token.to_owned(), invitation, has_joined }))
}

fn draw(token: &str, invitation: Option<Invitation>, error: Option<PageError>) -> Response {
    let layout = Layout { error, ..Layout::signed_out("Invitation") };
    let status = if invitation.is_some() { layout.status() } else { StatusCode::NOT_FOUND };
    render(status, &Page { layout, token: token.to_owned(), invitation, has_joined: false })
}
