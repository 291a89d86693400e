//! One request of somebody who is signed in.

use super::{
    PATH,
    fields::Fields,
    labels::Done,
    layout::{Layout, PageError, Who},
};
use crate::{app::App, http::caller::Call};
use chrono::{DateTime, Utc};
use domain::scope::Scope;
use poem::{
    Request, Response,
    http::{StatusCode, header},
};
use store::{Pool, sessions::Session};

/// What pages and actions are functions of.
pub(crate) struct PageContext<'a> {
    /// What the service is made of.
    pub(crate) app: &'a App,
    /// What the address says.
    pub(crate) query: Fields,
    /// What the form says; empty where a page is asked for.
    pub(crate) form: Fields,
    session: Box<Session>,
}

impl<'a> PageContext<'a> {
    pub(crate) fn new(app: &'a App, session: Box<Session>, request: &Request, form: Fields) -> Self {
        Self { app, session, query: Fields::of_query(request), form }
    }

    /// The call that the API's functions are given.
    pub(crate) fn call(&self) -> Call<'a> {
        Call { app: self.app, owner: self.session.key.owner }
    }

    /// All that the key may do.
    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.session.key.scopes
    }

    /// The key that this visitor came in with.
    pub(crate) fn key(&self) -> uuid::Uuid {
        self.session.key.id.0
    }

    /// The database.
    pub(crate) fn db(&self) -> &'a Pool {
        &self.app.db
    }

    /// The time.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }

    /// What is around a page.
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

    /// The same, with what went wrong.
    pub(crate) fn layout_with_error(
        &self,
        title: impl Into<String>,
        section: &'static str,
        error: Option<PageError>,
    ) -> Layout {
        Layout { error, ..self.layout(title, section) }
    }
}

/// Leads to another page of the dashboard.
pub(crate) fn see(path: &str) -> Response {
    Response::builder()
        .status(StatusCode::SEE_OTHER)
        .header(header::LOCATION, format!("{PATH}{path}"))
        .header(header::CACHE_CONTROL, "no-store")
        .finish()
}

/// Leads to another page of the dashboard, which says what was done.
pub(crate) fn done(path: &str, done: Done) -> Response {
    see(&format!("{path}?done={done}"))
}
