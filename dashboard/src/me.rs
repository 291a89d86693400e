//! The own page of the one who is signed in: passkeys, sessions and organizations.

use crate::{
    choice::Choice,
    context::{PageContext, done, see},
    labels::{AbsoluteTime, Done},
    layout::{self, Layout, PageError, render_leading},
    passkeys::{self, Offer},
    people::{
        openid::{self, Link},
        passkeys::Registered,
    },
    session, zone,
};
use api::http::problem::{Code, Problem};
use askama::Template;
use chrono_tz::{TZ_VARIANTS, Tz};
use domain::{Mode, OrgId, Owner};
use poem::{
    Response,
    http::{StatusCode, header},
};
use store::people::{
    self,
    identities::{self, Unlinking},
    passkeys::Removal,
    sessions::{self, Ended, Holder, SessionMember},
};

/// Maximum length of a passkey's name, in characters.
const MAX_NAME_LENGTH: usize = 100;

#[derive(Template)]
#[template(path = "me.html")]
struct Me {
    layout: Layout,
    member: Option<SessionMember>,
    key: Option<String>,
    scopes: String,
    offer: Offer,
    passkeys: Vec<Row>,
    identities: Vec<IdentityRow>,
    /// Name of the provider, if there is one.
    provider: Option<String>,
    sessions: Vec<SessionRow>,
    organizations: Vec<Organization>,
    zones: Vec<Choice>,
    /// The browser's time zone, if it is known.
    browser_zone: Option<&'static str>,
}

struct Row {
    id: String,
    name: String,
    created: AbsoluteTime,
    used: Option<AbsoluteTime>,
}

struct IdentityRow {
    issuer: String,
    subject: String,
    created: AbsoluteTime,
}

struct SessionRow {
    id: String,
    organization: String,
    mode: Mode,
    created: AbsoluteTime,
    used: AbsoluteTime,
    address: Option<String>,
    agent: Option<String>,
    is_own: bool,
}

struct Organization {
    id: String,
    name: String,
    role: String,
    /// The modes, and whether the session is in them.
    modes: Vec<(Mode, bool)>,
}

/// Shows the page.
pub(crate) async fn show(context: &PageContext<'_>, error: Option<PageError>) -> Result<Response, Problem> {
    let session = &context.session;
    let member = context.member().cloned();
    let (mut passkeys, mut identities, mut organizations) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(member) = &member {
        passkeys = people::passkeys::list(context.db(), member.person).await?;
        identities = identities::list(context.db(), member.person).await?;
        organizations = people::memberships(context.db(), member.person).await?;
    }
    let page = Me {
        layout: Layout { uses_passkeys: true, ..context.layout_with_error("You", "/me", error) },
        key: match &session.holder {
            Holder::Key(key) => Some(key.name.clone()),
            Holder::Member(_) => None,
        },
        scopes: session.scopes().iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "),
        offer: Offer::of(context.app, context.request),
        passkeys: passkeys
            .into_iter()
            .map(|passkey| Row {
                id: passkey.id.to_string(),
                name: passkey.name,
                created: AbsoluteTime(passkey.created_at),
                used: passkey.last_used_at.map(AbsoluteTime),
            })
            .collect(),
        identities: identities
            .into_iter()
            .map(|linked| IdentityRow {
                issuer: linked.issuer,
                subject: linked.subject,
                created: AbsoluteTime(linked.created_at),
            })
            .collect(),
        provider: context.app.config.openid.clone(),
        sessions: sessions::list(context.db(), session, context.now())
            .await?
            .into_iter()
            .map(|listed| SessionRow {
                is_own: listed.id == session.id,
                id: listed.id,
                organization: listed.organization,
                mode: listed.mode,
                created: AbsoluteTime(listed.created_at),
                used: AbsoluteTime(listed.last_used_at),
                address: listed.address,
                agent: listed.user_agent,
            })
            .collect(),
        organizations: organizations
            .into_iter()
            .map(|one| Organization {
                id: one.org.to_string(),
                modes: [Mode::Live, Mode::Test]
                    .into_iter()
                    .filter(|mode| !one.is_test_only || *mode == Mode::Test)
                    .map(|mode| (mode, session.owner == Owner { org: one.org, mode }))
                    .collect(),
                name: one.organization,
                role: one.role.to_string(),
            })
            .collect(),
        member,
        zones: zones(zone::chosen(context.request)),
        browser_zone: zone::of_browser(context.request).map(Tz::name),
    };
    // The form leads to the provider's page.
    let places = if page.provider.is_some() { " https:" } else { "" };
    Ok(render_leading(page.layout.status(), &page, places))
}

/// Answers the page's script with a challenge for another passkey.
pub(crate) async fn challenge(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (party, member) = (passkeys::party(context.app)?, person(context)?);
    let known = people::passkeys::list(context.db(), member.person).await?;
    let (key, further, person) = (&context.app.config.seal, Registered::Further, member.person);
    passkeys::challenge(party.begin_registration(key, further, person, &member.email, &known, context.now()))
}

/// Adds a passkey.
pub(crate) async fn add(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (party, member) = (passkeys::party(context.app)?, person(context)?);
    let form = &context.form;
    let name = form.given("name").unwrap_or("Passkey").chars().filter(|c| *c != '\0');
    let name: String = name.take(MAX_NAME_LENGTH).collect();
    let (key, now) = (&context.app.config.seal, context.now());
    let (db, answer) = (context.db(), passkeys::answer(form));
    let answer = party.finish_registration(db, key, Registered::Further, answer, &name, now);
    let refusal = match answer.await.map_err(passkeys::fault)? {
        // The challenge was for this person and no other.
        Ok((owner, passkey)) if owner == member.person => {
            if people::passkeys::add(context.db(), owner, passkey, context.actor(), now).await?.is_some() {
                return Ok(done("/me", Done::PasskeyAdded));
            }
            "This passkey is known already, or there are too many: remove one first."
        }
        Ok(_) => "This passkey was created for somebody else. Try again.",
        Err(refusal) => passkeys::message(&refusal),
    };
    show(context, Some(PageError::new("passkeys", StatusCode::BAD_REQUEST, refusal))).await
}

/// Removes a passkey.
pub(crate) async fn remove(context: &PageContext<'_>, id: &str) -> Result<Response, Problem> {
    let missing = || Problem::not_found("passkey");
    let member = person(context)?;
    let id = id.parse().map_err(|_| missing())?;
    let (db, own, by) = (context.db(), &context.session.id, context.actor());
    match people::passkeys::remove(db, member.person, id, own, by, context.now()).await? {
        Removal::Removed => Ok(done("/me", Done::PasskeyRemoved)),
        Removal::NotFound => Err(missing()),
        Removal::Last => {
            let message =
                "This is your only passkey: without it you could not sign in. Add another one first.";
            show(context, Some(PageError::new("passkeys", StatusCode::CONFLICT, message))).await
        }
    }
}

/// Leads to the OpenID provider, to link the identity there to the person.
pub(crate) async fn link(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (app, member) = (context.app, person(context)?);
    if app.config.openid.is_none() {
        return Err(Problem::not_found("page"));
    }
    let link = Link { session: context.session.id.clone(), person: member.person };
    match openid::begin(app, context.actor(), "", Some(link), None, context.now()).await {
        Ok(begun) => Ok(session::lead_to_provider(app, context.request, begun)),
        Err(problem) => show(context, Some(PageError::of("identities", problem))).await,
    }
}

/// Unlinks an identity at an OpenID provider.
pub(crate) async fn unlink(context: &PageContext<'_>) -> Result<Response, Problem> {
    let (member, form) = (person(context)?, &context.form);
    let (issuer, subject) = (form.get("issuer"), form.get("subject"));
    let unlinked =
        identities::unlink(context.db(), member.person, issuer, subject, context.actor(), context.now());
    match unlinked.await? {
        Unlinking::Unlinked => Ok(done("/me", Done::IdentityUnlinked)),
        Unlinking::NotFound => Err(Problem::not_found("identity")),
        Unlinking::Last => {
            let message = "This is your only way to sign in: without it you could not. Add a passkey first.";
            show(context, Some(PageError::new("identities", StatusCode::CONFLICT, message))).await
        }
    }
}

/// Ends a session, or all but this one.
pub(crate) async fn end(context: &PageContext<'_>, ended: Ended<'_>) -> Result<Response, Problem> {
    sessions::end(context.db(), &context.session, ended, context.actor(), context.now()).await?;
    Ok(done("/me", Done::SessionsEnded))
}

/// Leads the session to another organization or mode.
pub(crate) async fn switch(context: &PageContext<'_>) -> Result<Response, Problem> {
    let missing = || Problem::not_found("organization");
    let org: OrgId = context.form.get("organization").parse().map_err(|_| missing())?;
    let mode: Mode = context.form.get("mode").parse().map_err(|_| missing())?;
    let to = Owner { org, mode };
    if !sessions::switch(context.db(), &context.session, to, context.actor(), context.now()).await? {
        return Err(missing());
    }
    Ok(see(""))
}

/// Sets the time zone of the pages in this browser.
pub(crate) fn set_zone(context: &PageContext<'_>) -> Result<Response, Problem> {
    let named = context.form.given("zone");
    let choice = named.map(str::parse::<Tz>).transpose();
    let choice = choice.map_err(|_| Problem::new(Code::InvalidRequest, "this time zone is unknown"))?;
    let mut response = done("/me", Done::ZoneSet);
    layout::put(&mut response, header::SET_COOKIE, &zone::cookie(choice));
    Ok(response)
}

/// Time zones to choose from.
fn zones(chosen: Option<Tz>) -> Vec<Choice> {
    let zones = TZ_VARIANTS.iter();
    zones.map(|zone| Choice::new(zone.name(), zone.name().replace('_', " "), chosen == Some(*zone))).collect()
}

fn person<'a>(context: &'a PageContext<'_>) -> Result<&'a SessionMember, Problem> {
    let detail = "you are signed in with an API key, which has neither passkeys nor identities";
    context.member().ok_or_else(|| Problem::new(Code::Forbidden, detail))
}
