//! The team.

use crate::{
    context::{PageContext, done},
    fields::Fields,
    labels::{self, Done, ShortTime},
    layout::{Layout, PageError, render},
};
use api::{
    http::{body, problem::Problem},
    team,
};
use askama::Template;
use domain::member::Role;
use poem::Response;
use serde_json::json;
use store::people::team::Status;

#[derive(Template)]
#[template(path = "team.html")]
struct Team<'a> {
    layout: Layout,
    members: Vec<Row>,
    later: Option<String>,
    /// The least first: what is chosen unless somebody means more.
    roles: Vec<RoleRow>,
    invited: Option<(String, String)>,
    form: &'a Fields,
}

/// A role and what its members may do.
struct RoleRow {
    name: &'static str,
    meaning: &'static str,
    scopes: String,
}

impl RoleRow {
    fn of(role: Role) -> Self {
        Self {
            name: role.as_str(),
            meaning: match role {
                Role::Viewer => "read posts, accounts, media and webhooks",
                Role::Publisher => "also write, schedule, retry and delete posts, and upload media",
                Role::Admin => "also connect accounts, and register webhooks",
                Role::Owner => "do everything, also invite people and issue API keys",
            },
            scopes: role.scopes().iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
        }
    }
}

struct Row {
    id: String,
    initial: String,
    email: String,
    name: Option<String>,
    role: String,
    is_active: bool,
    is_test_only: bool,
    invited: ShortTime,
    joined: Option<ShortTime>,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    draw(context, error, None).await
}

async fn draw(
    context: &PageContext<'_>,
    error: Option<PageError>,
    invited: Option<(String, String)>,
) -> Result<Response, Problem> {
    let found = team::list(&context.call(), &context.paging()).await?;
    let page = Team {
        layout: context.layout_with_error("Team", "/team", error),
        later: found.next_cursor,
        members: found
            .data
            .into_iter()
            .map(|member| Row {
                id: member.id.to_string(),
                initial: labels::initial(member.name.as_deref().unwrap_or(&member.email)),
                email: member.email,
                name: member.name,
                role: member.role.as_str().to_owned(),
                is_test_only: member.is_test_only,
                is_active: member.status.value() == Status::Active,
                invited: ShortTime(member.invited_at.0),
                joined: member.joined_at.map(|at| ShortTime(at.0)),
            })
            .collect(),
        roles: Role::ALL.iter().rev().map(|role| RoleRow::of(*role)).collect(),
        invited,
        form: &context.form,
    };
    Ok(render(page.layout.status(), &page))
}

/// Invites a person and shows the invitation's URL.
pub(crate) async fn invite(context: &PageContext<'_>) -> Result<Response, Problem> {
    let wish = json!({ "email": context.form.get("email").trim(), "role": context.form.get("role") });
    let invited = match body::read(wish) {
        Ok(new) => team::invite(&context.call(), context.scopes(), new).await,
        Err(problem) => Err(problem),
    };
    match invited {
        Ok(member) => draw(context, None, Some((member.email, member.invite_url.unwrap_or_default()))).await,
        Err(problem) => draw(context, Some(PageError::of("new", problem)), None).await,
    }
}

/// Changes the role of a person.
pub(crate) async fn set_role(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let changed = match body::read(json!({ "role": context.form.get("role") })) {
        Ok(patch) => team::set_role(&context.call(), context.scopes(), id, patch).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(done("/team", Done::RoleChanged)),
        Err(problem) => draw(context, Some(PageError::of(id, problem)), None).await,
    }
}

/// Removes a person.
pub(crate) async fn remove(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    match team::remove(&context.call(), context.scopes(), id).await {
        Ok(_) => Ok(done("/team", Done::Removed)),
        Err(problem) => draw(context, Some(PageError::of(id, problem)), None).await,
    }
}

impl Team<'_> {
    fn is_chosen(&self, role: &str) -> bool {
        self.form.get("role") == role
    }
}
