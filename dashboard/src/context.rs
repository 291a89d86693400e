//! A request with a valid session.

use crate::{
    PATH,
    fields::Fields,
    labels::Done,
    layout::{self, Group, Layout, PageError, Who},
    zone,
};
use api::{
    app::App,
    http::{
        caller::{self, Call},
        page::Paging,
        problem::{Code, Problem},
    },
};
use chrono::{DateTime, Utc};
use domain::scope::{self, Scope};
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use store::{
    Pool,
    bounds::Whole,
    people::{
        audit::{Actor, ActorKind},
        sessions::{Holder, Session, SessionMember},
    },
};

/// Entries of a list on one page.
const PAGE_SIZE: i64 = 100;

/// Context of a page or an action.
pub(crate) struct PageContext<'a> {
    /// State shared by all request handlers.
    pub(crate) app: &'a App,
    /// The request.
    pub(crate) request: &'a Request,
    /// Query parameters.
    pub(crate) query: Fields,
    /// Form fields; empty for a GET request.
    pub(crate) form: Fields,
    /// The session.
    pub(crate) session: Box<Session>,
    navigation: Vec<Group>,
    actor: Actor,
}

impl<'a> PageContext<'a> {
    /// Creates the context of a request. `navigation` is what the one who is signed in may open.
    pub(crate) fn new(
        app: &'a App,
        session: Box<Session>,
        request: &'a Request,
        form: Fields,
        navigation: Vec<Group>,
    ) -> Self {
        let actor = actor(app, request, &session);
        Self { app, request, query: Fields::of_query(request), form, session, navigation, actor }
    }

    /// The call for functions of the API.
    pub(crate) fn call(&self) -> Call<'_> {
        Call::new(self.app, self.session.owner, self.scopes(), &self.actor)
    }

    /// The proof that the one who is signed in reaches the whole organization: a limited key opens no session.
    ///
    /// # Errors
    ///
    /// As [`Call::whole`].
    pub(crate) fn whole(&self) -> Result<Whole, Problem> {
        self.call().whole()
    }

    /// Scopes of the one who is signed in.
    pub(crate) fn scopes(&self) -> &[Scope] {
        self.session.scopes()
    }

    /// Fails unless the one who is signed in has a scope.
    ///
    /// # Errors
    ///
    /// `insufficient_scope`, with the reason.
    pub(crate) fn may(&self, needed: Scope) -> Result<(), Problem> {
        if scope::allows(self.scopes(), needed) {
            return Ok(());
        }
        let who = match &self.session.holder {
            Holder::Key(key) => format!("the API key {}", key.name),
            Holder::Member(member) => format!("your role, {},", member.role),
        };
        Err(Problem::new(Code::InsufficientScope, format!("{who} does not include the scope {needed}")))
    }

    /// The one who is signed in, for the audit trail.
    pub(crate) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The member who is signed in; `None` for an API key.
    pub(crate) fn member(&self) -> Option<&SessionMember> {
        match &self.session.holder {
            Holder::Member(member) => Some(member),
            Holder::Key(_) => None,
        }
    }

    /// Id of the member or the key that is signed in.
    pub(crate) fn caller(&self) -> uuid::Uuid {
        match &self.session.holder {
            Holder::Member(member) => member.id.0,
            Holder::Key(key) => key.id.0,
        }
    }

    /// Id of the session's key.
    pub(crate) fn key(&self) -> Option<uuid::Uuid> {
        match &self.session.holder {
            Holder::Key(key) => Some(key.id.0),
            Holder::Member(_) => None,
        }
    }

    /// The page of a list that the address asks for.
    pub(crate) fn paging(&self) -> Paging {
        Paging { limit: Some(PAGE_SIZE), cursor: self.query.given("cursor").map(str::to_owned) }
    }

    /// The database.
    pub(crate) fn db(&self) -> &'a Pool {
        &self.app.db
    }

    /// The current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }

    /// Reads a local time of the form, in the zone that the form was drawn in.
    ///
    /// # Errors
    ///
    /// If it is no time, or the clocks of the zone skip or repeat it.
    pub(crate) fn time(&self, field: &str) -> Result<DateTime<Utc>, Problem> {
        let zone = self.form.get("zone").parse().unwrap_or_else(|_| zone::current());
        zone::read(self.form.get(field).trim(), zone)
    }

    /// The layout around a page.
    pub(crate) fn layout(&self, title: impl Into<String>, section: &'static str) -> Layout {
        Layout {
            title: title.into(),
            section,
            operator: None,
            who: Some(Who {
                organization: self.session.organization.clone(),
                name: match &self.session.holder {
                    Holder::Key(key) => format!("key {}", key.name),
                    Holder::Member(member) => {
                        format!("{}, {}", member.name.as_deref().unwrap_or(&member.email), member.role)
                    }
                },
                is_live: self.session.owner.mode == domain::Mode::Live,
                scopes: self.scopes().to_vec(),
                navigation: self.navigation.clone(),
            }),
            notice: self.query.get("done").parse::<Done>().ok().map(|done| done.text().into()),
            error: None,
            live: None,
            uses_passkeys: false,
            takes_files: false,
            composes: false,
        }
    }

    /// The layout around a page that shows an error.
    pub(crate) fn layout_with_error(
        &self,
        title: impl Into<String>,
        section: &'static str,
        error: Option<PageError>,
    ) -> Layout {
        Layout { error, ..self.layout(title, section) }
    }

    /// An error page.
    pub(crate) fn failure(&self, problem: Problem) -> Response {
        layout::failure(self.layout("", "nowhere"), problem)
    }
}

/// Describes the one who is signed in, for the audit trail.
pub(crate) fn actor(app: &App, request: &Request, session: &Session) -> Actor {
    match &session.holder {
        Holder::Key(key) => caller::actor(app, request, ActorKind::Session, Some(key)),
        Holder::Member(member) => Actor {
            member: Some((member.id, member.email.clone())),
            ..caller::actor(app, request, ActorKind::Session, None)
        },
    }
}

/// Redirects to another page of the dashboard.
pub(crate) fn see(path: &str) -> Response {
    Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, format!("{PATH}{path}"))
        .header(header::CACHE_CONTROL, "no-store")
        .finish()
}

/// Redirects to another page of the dashboard, which shows a notice.
pub(crate) fn done(path: &str, done: Done) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    see(&format!("{path}{separator}done={done}"))
}
