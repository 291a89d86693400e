//! An organization: its keys and sessions.

use super::{Operator, outcome::Outcome};
use crate::{
    fields::Fields,
    labels::AbsoluteTime,
    layout::{Layout, PageError, render},
};
use api::http::problem::{Code, Problem};
use askama::Template;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::{Bound, Mode, OrgId, Owner, scope::Scope};
use poem::Response;
use store::{
    operators,
    page::Request,
    people::{keys, organizations},
};
use uuid::Uuid;

/// Maximum length of a key's name, in characters.
const MAX_NAME: usize = 100;
/// Number of keys of a mode that are shown, the latest.
const MAX_KEYS: u32 = 100;

#[derive(Template)]
#[template(path = "operators/organization.html")]
struct Organization<'a> {
    layout: Layout,
    id: String,
    name: String,
    keys: Vec<Row>,
    /// True if there are more keys.
    is_partial: bool,
    scopes: Vec<&'static str>,
    made: Option<Made>,
    form: &'a Fields,
}

struct Row {
    id: String,
    mode: Mode,
    name: String,
    last_four: String,
    scopes: String,
    bound: Option<String>,
    used: Option<AbsoluteTime>,
    expires: Option<AbsoluteTime>,
}

/// A new key with its text.
pub(super) struct Made {
    name: String,
    mode: Mode,
    key: String,
}

/// Shows the page; with the text of a key that was just issued.
pub(super) async fn show(
    operator: &Operator<'_>,
    id: &str,
    error: Option<PageError>,
    made: Option<Made>,
) -> Result<Response, Problem> {
    let org = org(id)?;
    let name = organizations::name(operator.db(), org).await?;
    let name = name.ok_or_else(|| Problem::not_found("organization"))?;
    let (mut found, mut is_partial) = (Vec::new(), false);
    for mode in Mode::ALL {
        let latest = Request { after: None, limit: MAX_KEYS };
        let page = keys::list(operator.db(), Owner { org, mode: *mode }, operator.now(), latest).await?;
        is_partial |= page.next.is_some();
        found.extend(page.items);
    }
    let rows = found.into_iter().map(|key| Row {
        id: key.id.to_string(),
        mode: key.owner.mode,
        name: key.name,
        last_four: key.last_four,
        scopes: key.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
        bound: key.bound.is_limited().then(|| key.bound.to_string()),
        used: key.last_used_at.map(AbsoluteTime),
        expires: key.expires_at.map(AbsoluteTime),
    });
    let page = Organization {
        layout: operator.layout(&name, "/organizations", error),
        id: org.to_string(),
        keys: rows.collect(),
        is_partial,
        scopes: Scope::ALL.iter().map(|scope| scope.as_str()).collect(),
        made,
        form: operator.form,
        name,
    };
    Ok(render(page.layout.status(), &page))
}

fn org(id: &str) -> Result<OrgId, Problem> {
    let id: Uuid = id.parse().map_err(|_| Problem::not_found("organization"))?;
    Ok(id.into())
}

/// Issues a key and shows its text.
pub(super) async fn issue_key(operator: &Operator<'_>, id: &str) -> Result<Response, Problem> {
    let new = match wish(operator, org(id)?) {
        Ok(new) => new,
        Err(problem) => return show(operator, id, Some(PageError::of("new", problem)), None).await,
    };
    let mode = new.owner.mode;
    if organizations::name(operator.db(), new.owner.org).await?.is_none() {
        return Err(Problem::not_found("organization"));
    }
    let created =
        keys::create_within(operator.db(), new, Bound::Organization, None, &operator.by, operator.now());
    // An operator is not bound by the plan.
    let (key, text) = created.await?.map_err(|_| Problem::internal())?;
    show(operator, id, None, Some(Made { name: key.name, mode, key: text })).await
}

/// Returns the key that the form asks for.
fn wish(operator: &Operator<'_>, org: OrgId) -> Result<keys::NewKey, Problem> {
    let form = operator.form;
    let wrong = |detail: &str| Problem::new(Code::InvalidRequest, detail);
    let name = form.given("name").filter(|name| name.chars().count() <= MAX_NAME);
    let scopes: Result<Vec<Scope>, _> = form.all("scope").map(str::parse).collect();
    let expires_at = form.given("expires").map(|day| {
        // The field is a date; the key expires at the end of that day.
        let end = day.parse::<NaiveDate>().ok()?.checked_add_signed(TimeDelta::days(1))?;
        Some(DateTime::<Utc>::from_naive_utc_and_offset(end.into(), Utc)).filter(|at| *at > operator.now())
    });
    Ok(keys::NewKey {
        owner: Owner { org, mode: form.get("mode").parse().map_err(|_| wrong("choose a mode"))? },
        name: name.ok_or_else(|| wrong("give a name of at most 100 characters"))?.to_owned(),
        scopes: scopes
            .ok()
            .filter(|scopes| !scopes.is_empty())
            .ok_or_else(|| wrong("choose at least one scope"))?,
        expires_at: match expires_at {
            Some(None) => return Err(wrong("the last day is a date that is not over")),
            given => given.flatten(),
        },
    })
}

/// Revokes a key.
pub(super) async fn revoke_key(operator: &Operator<'_>, id: &str, key: &str) -> Result<Response, Problem> {
    let missing = || Problem::not_found("key");
    let found: Uuid = key.parse().map_err(|_| missing())?;
    let owner = operators::owner_of_key(operator.db(), found.into()).await?.ok_or_else(missing)?;
    if owner.org != org(id)? {
        return Err(missing());
    }
    if keys::revoke(operator.db(), owner, found.into(), &operator.by, operator.now()).await? {
        return Ok(Outcome::of("revoked", 1).see(&format!("/organizations/{}", owner.org), []));
    }
    let problem = Problem::new(Code::Conflict, "the key was revoked before");
    show(operator, id, Some(PageError::of("keys", problem)), None).await
}

/// Ends the sessions of the organization.
pub(super) async fn end_sessions(operator: &Operator<'_>, id: &str) -> Result<Response, Problem> {
    let org = org(id)?;
    if organizations::name(operator.db(), org).await?.is_none() {
        return Err(Problem::not_found("organization"));
    }
    let ended = operators::end_sessions(operator.db(), Some(org), &operator.by, operator.now()).await?;
    Ok(Outcome::of("sessions", ended).see(&format!("/organizations/{org}"), []))
}

impl Organization<'_> {
    fn is_chosen(&self, scope: &str) -> bool {
        // A key for everything, as the command issues it, unless the form says otherwise.
        let mut chosen = self.form.all("scope").peekable();
        match chosen.peek() {
            None => scope == Scope::All.as_str(),
            Some(_) => chosen.any(|chosen| chosen == scope),
        }
    }
}
