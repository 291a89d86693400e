//! A request with a valid session.

use super::{
    PATH,
    fields::Fields,
    labels::Done,
    layout::{Layout, PageError, Who},
};
use crate::{
    app::App,
    http::caller::{self, Call},
};
use chrono::{DateTime, Utc};
use domain::scope::Scope;
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use store::{
    Pool,
    audit::{Actor, ActorKind},
    sessions::Session,
};

/// Context of a page or an action.
pub(crate) struct PageContext<'a> {
    /// State shared by all request handlers.
    pub(crate) app: &'a App,
    /// Query parameters.
    pub(crate) query: Fields,
    /// Form fields; empty for a GET request.
    pub(crate) form: Fields,
    session: Box<Session>,
    actor: Actor,
}

impl<'a> PageContext<'a> {
    pub(crate) fn new(app: &'a App, session: Box<Session>, request: &Request, form: Fields) -> Self {
        let actor = caller::actor(app, request, ActorKind::Session, Some(&session.key));
        Self { app, session, actor, query: Fields::of_query(request), form }
    }

    /// The call for functions of the API.
    pub(crate) fn call(&self) -> Call<'_> {
        Call::new(self.app, self.session.key.owner, &self.actor)
    }

    /// Scopes of the session's key.
    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.session.key.scopes
    }

    /// Id of the session's key.
    pub(crate) fn key(&self) -> uuid::Uuid {
        self.session.key.id.0
    }

    /// The database.
    pub(crate) fn db(&self) -> &'a Pool {
        &self.app.db
    }

    /// The current time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }

    /// The layout around a page.
    pub(crate) fn layout(&self, title: impl Into<String>, section: &'static str) -> Layout {
        Layout {
            title: title.into(),
            section,
            who: Some(Who {
                organization: self.session.organization.clone(),
                key: self.session.key.name.clone(),
                is_live: self.session.key.owner.mode == domain::Mode::Live,
            }),
            notice: self.query.get("done").parse::<Done>().ok().map(Done::text),
            error: None,
            live: None,
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
    see(&format!("{path}?done={done}"))
}
