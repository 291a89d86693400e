//! The people of the organization.

use super::{
    fields::Fields,
    frame::{Fault, Frame, render},
    visit::{Visit, done},
    words::{Clock, Done},
};
use crate::{
    http::{body, problem::Problem},
    team,
};
use askama::Template;
use poem::Response;
use serde_json::json;
use store::team::{Role, Status};

#[derive(Template)]
#[template(path = "dashboard/team.html")]
struct Team<'a> {
    frame: Frame,
    members: Vec<Line>,
    roles: Vec<&'static str>,
    invited: Option<(String, String)>,
    form: &'a Fields,
}

struct Line {
    id: String,
    email: String,
    name: Option<String>,
    role: String,
    is_active: bool,
    invited: Clock,
    joined: Option<Clock>,
}

/// Shows the page.
pub(crate) async fn show(visit: &Visit<'_>, fault: Option<Fault>) -> Result<Response, Problem> {
    draw(visit, fault, None).await
}

async fn draw(
    visit: &Visit<'_>,
    fault: Option<Fault>,
    invited: Option<(String, String)>,
) -> Result<Response, Problem> {
    let page = Team {
        frame: visit.faulty("Team", "/team", fault),
        members: team::list(&visit.call())
            .await?
            .data
            .into_iter()
            .map(|member| Line {
                id: member.id.to_string(),
                email: member.email,
                name: member.name,
                role: member.role.as_str().to_owned(),
                is_active: member.status.value() == Status::Active,
                invited: Clock(member.invited_at.0),
                joined: member.joined_at.map(|at| Clock(at.0)),
            })
            .collect(),
        roles: Role::ALL.iter().map(|role| role.as_str()).collect(),
        invited,
        form: &visit.form,
    };
    Ok(render(page.frame.status(), &page))
}

/// Invites a person, and shows where the invitation is accepted.
pub(crate) async fn invite(visit: &Visit<'_>) -> Result<Response, Problem> {
    let wish = json!({ "email": visit.form.get("email").trim(), "role": visit.form.get("role") });
    let invited = match body::read(wish) {
        Ok(new) => team::invite(&visit.call(), new).await,
        Err(problem) => Err(problem),
    };
    match invited {
        Ok(member) => draw(visit, None, Some((member.email, member.invite_url.unwrap_or_default()))).await,
        Err(problem) => draw(visit, Some(Fault::of("new", problem)), None).await,
    }
}

/// Removes a person.
pub(crate) async fn remove(visit: &Visit<'_>, id: &str) -> Result<Response, Problem> {
    match team::remove(&visit.call(), id).await {
        Ok(_) => Ok(done("/team", Done::Removed)),
        Err(problem) => draw(visit, Some(Fault::of(id, problem)), None).await,
    }
}

impl Team<'_> {
    fn is_chosen(&self, role: &str) -> bool {
        self.form.get("role") == role
    }
}
