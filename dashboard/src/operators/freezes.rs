//! Freezes that are in force.

use super::{Operator, outcome::Outcome};
use crate::{
    fields::Fields,
    labels::AbsoluteTime,
    layout::{Layout, PageError, render},
};
use api::http::problem::{Code, Problem};
use askama::Template;
use domain::Mode;
use poem::Response;
use std::time::Duration;
use store::publishing::freezes::{self, Freeze, FreezeResult, Scope};
use uuid::Uuid;

#[derive(Template)]
#[template(path = "operators/freezes.html")]
struct Freezes<'a> {
    layout: Layout,
    frozen: Vec<Frozen>,
    kinds: [&'static str; 3],
    form: &'a Fields,
}

struct Frozen {
    freeze: Freeze,
    name: String,
    since: AbsoluteTime,
}

/// Shows the page. The query may name what to freeze.
pub(super) async fn show(operator: &Operator<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let form = if error.is_some() { operator.form } else { &operator.query };
    let frozen = freezes::list(operator.db()).await?.into_iter().map(|freeze| Frozen {
        name: match freeze.kind.as_str() {
            "platform" => platforms::display_name(&freeze.subject).to_owned(),
            kind => format!("{kind} {}", freeze.subject),
        },
        since: AbsoluteTime(freeze.created_at),
        freeze,
    });
    let page = Freezes {
        frozen: frozen.collect(),
        layout: operator.layout("Freezes", "/freezes", error),
        kinds: ["platform", "account", "organization"],
        form,
    };
    Ok(render(page.layout.status(), &page))
}

async fn refuse(operator: &Operator<'_>, at: &str, problem: Problem) -> Result<Response, Problem> {
    show(operator, Some(PageError::of(at, problem))).await
}

/// Freezes a platform, an account or an organization.
pub(super) async fn freeze(operator: &Operator<'_>) -> Result<Response, Problem> {
    let wish = scope(operator.form).and_then(|scope| Ok((scope, operator.reason()?)));
    let ((scope, mode), reason) = match wish {
        Ok(wish) => wish,
        Err(problem) => return refuse(operator, "freeze", problem).await,
    };
    let problem =
        match freezes::freeze(operator.db(), &scope, mode, reason, &operator.by, operator.now()).await? {
            FreezeResult::Frozen => return Ok(Outcome::of("frozen", 1).see(back(operator.form), [])),
            FreezeResult::Already => Problem::new(Code::Conflict, format!("{scope} is frozen already")),
            FreezeResult::Missing => Problem::not_found(&scope.to_string()),
        };
    refuse(operator, "freeze", problem).await
}

/// Releases what was frozen, at a rate.
pub(super) async fn release(operator: &Operator<'_>) -> Result<Response, Problem> {
    let form = operator.form;
    let at = form.get("freeze");
    let rate = match form.given("rate").map(str::parse::<u32>) {
        None => None,
        Some(Ok(rate @ 1..)) => Some(rate),
        Some(_) => {
            let problem = Problem::new(Code::InvalidRequest, "the rate is a number of attempts per minute");
            return refuse(operator, at, problem).await;
        }
    };
    let (scope, mode) = match scope(form) {
        Ok(wish) => wish,
        Err(problem) => return refuse(operator, at, problem).await,
    };
    let pause = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(60) / rate);
    match freezes::release(operator.db(), &scope, mode, pause, &operator.by, operator.now()).await? {
        Some(targets) => Ok(Outcome::of("released", targets).see(back(form), [])),
        None => {
            let problem = Problem::new(Code::Conflict, format!("{scope} is not frozen"));
            refuse(operator, "freeze", problem).await
        }
    }
}

/// The page that a form was sent from.
fn back(form: &Fields) -> &'static str {
    if form.get("back") == "overview" { "" } else { "/freezes" }
}

/// Returns what a form names, and in which mode; both without one.
fn scope(form: &Fields) -> Result<(Scope, Option<Mode>), Problem> {
    let subject = form.get("subject").trim();
    let wrong = |what: &str| Problem::new(Code::InvalidRequest, format!("“{subject}” is not {what}"));
    let id = |what| subject.parse::<Uuid>().map_err(|_| wrong(what));
    let scope = match form.get("kind") {
        "platform" => {
            let platform = platforms::get(subject).ok_or_else(|| wrong("the id of a platform"))?;
            Scope::Platform(platform.id.to_owned())
        }
        "account" => Scope::Account(id("the id of an account")?.into()),
        "organization" => Scope::Organization(id("the id of an organization")?.into()),
        _ => {
            return Err(Problem::new(
                Code::InvalidRequest,
                "choose a platform, an account or an organization",
            ));
        }
    };
    let mode = form.given("mode").map(str::parse).transpose();
    Ok((scope, mode.map_err(|_| Problem::new(Code::InvalidRequest, "there is no such mode"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_what_to_freeze() {
        let read = |text: &str| scope(&Fields::parse(text.as_bytes()));
        let id = "01900000-0000-7000-8000-000000000001";
        assert_eq!(read("kind=platform&subject=x&mode=").unwrap(), (Scope::Platform("x".into()), None));
        let (account, mode) = read(&format!("kind=account&subject=+{id}+&mode=test")).unwrap();
        assert_eq!((account.to_string(), mode), (format!("account {id}"), Some(Mode::Test)));
        for wrong in
            ["", "kind=platform&subject=myspace", "kind=account&subject=x", "kind=platform&subject=x&mode=a"]
        {
            assert_eq!(read(wrong).unwrap_err().code, Code::InvalidRequest, "{wrong}");
        }
    }
}
