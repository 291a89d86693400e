//! API keys.

use super::{
    fields::Fields,
    frame::{Fault, Frame, render},
    visit::{Visit, done},
    words::{Clock, Done},
};
use crate::{
    http::{body, problem::Problem},
    keys,
};
use askama::Template;
use domain::scope::Scope;
use poem::Response;
use serde_json::json;

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct Keys<'a> {
    frame: Frame,
    keys: Vec<Line>,
    scopes: Vec<&'static str>,
    made: Option<Made>,
    form: &'a Fields,
}

struct Line {
    id: String,
    name: String,
    last_four: String,
    scopes: String,
    expires: Option<Clock>,
    used: Option<Clock>,
    created: Clock,
    is_own: bool,
}

/// A key that was just made, with its text.
struct Made {
    name: String,
    mode: String,
    key: String,
}

impl From<keys::Key> for Made {
    fn from(key: keys::Key) -> Self {
        let mode = key.mode.as_str().to_owned();
        Self { name: key.name, mode, key: key.key.unwrap_or_default() }
    }
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>, fault: Option<Fault>) -> Result<Response, Problem> {
    draw(visit, fault, None).await
}

async fn draw(visit: &Visit<'_>, fault: Option<Fault>, made: Option<Made>) -> Result<Response, Problem> {
    let own = visit.key();
    let page = Keys {
        frame: visit.faulty("API keys", "/keys", fault),
        keys: keys::list(&visit.call())
            .await?
            .data
            .into_iter()
            .map(|key| Line {
                id: key.id.to_string(),
                name: key.name,
                last_four: key.last_four,
                scopes: key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
                expires: key.expires_at.map(|at| Clock(at.0)),
                used: key.last_used_at.map(|at| Clock(at.0)),
                created: Clock(key.created_at.0),
                is_own: key.id == own,
            })
            .collect(),
        scopes: Scope::ALL.iter().map(|scope| scope.as_str()).collect(),
        made,
        form: &visit.form,
    };
    Ok(render(page.frame.status(), &page))
}

/// Creates a key, and shows its text.
pub(crate) async fn create(visit: &Visit<'_>) -> Result<Response, Problem> {
    let form = &visit.form;
    let wish = json!({
        "name": form.get("name").trim(),
        "scopes": form.all("scope").collect::<Vec<_>>(),
        // A day's end is the beginning of the next; the field has no time of day.
        "expires_at": form.given("expires").map(|day| format!("{day}T24:00:00Z")),
    });
    let created = match body::read(wish) {
        Ok(new) => keys::create(&visit.call(), visit.scopes(), new).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(key) => draw(visit, None, Some(key.into())).await,
        Err(problem) => draw(visit, Some(Fault::of("new", problem)), None).await,
    }
}

/// Gives a key another text, and shows it. The old one ends at once.
pub(crate) async fn rotate(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match keys::rotate(&visit.call(), visit.scopes(), id, body::read(json!({}))?).await {
        Ok(key) => draw(visit, None, Some(key.into())).await,
        Err(problem) => draw(visit, Some(Fault::of(id, problem)), None).await,
    }
}

/// Revokes a key.
pub(crate) async fn revoke(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match keys::delete(&visit.call(), id).await {
        Ok(_) => Ok(done("/keys", Done::Revoked)),
        Err(problem) => draw(visit, Some(Fault::of(id, problem)), None).await,
    }
}

impl Keys<'_> {
    fn is_chosen(&self, scope: &str) -> bool {
        self.form.all("scope").any(|chosen| chosen == scope)
    }
}
