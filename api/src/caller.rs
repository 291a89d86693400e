//! Who calls, and what the key allows.
//!
//! The checker runs before anything else of a request is read. An operation gets to the data only
//! through [`Caller::may`], so that none can forget its scope.

use crate::{
    App,
    problem::{Code, Problem},
};
use chrono::{DateTime, Utc};
use domain::{
    Owner,
    scope::{self, Scope},
};
use poem::Request;
use poem_openapi::{SecurityScheme, auth::Bearer};
use store::{
    Pool,
    keys::{self, Key},
};

/// An API key: `Authorization: Bearer sk_live_…` or `sk_test_…`. A test key sees the test data of its
/// organization and publishes to the sandbox.
#[derive(SecurityScheme)]
#[oai(rename = "ApiKey", ty = "bearer", bearer_format = "API key", checker = "authenticate")]
pub struct Caller(Identity);

/// A key that was recognized, and what it was presented to.
pub struct Identity {
    app: App,
    key: Key,
}

/// One permitted call: what the operations of the API, over HTTP or MCP, are functions of.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// What the service is made of.
    pub app: &'a App,
    /// Whose data the call is about.
    pub owner: Owner,
}

impl Caller {
    /// The call, if the key has the scope for it.
    ///
    /// # Errors
    ///
    /// `insufficient_scope` if not.
    pub fn may(&self, needed: Scope) -> Result<Call<'_>, Problem> {
        let Identity { app, key } = &self.0;
        if !scope::allows(&key.scopes, needed) {
            let detail = format!("the API key lacks the scope {needed}");
            return Err(Problem::new(Code::InsufficientScope, detail));
        }
        Ok(Call { app, owner: key.owner })
    }
}

impl Call<'_> {
    /// The database.
    pub fn db(&self) -> &Pool {
        &self.app.db
    }

    /// The time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }
}

async fn authenticate(request: &Request, bearer: Bearer) -> poem::Result<Identity> {
    let app: &App = request.data().expect("the endpoint hands its parts to every request");
    let key = keys::authenticate(&app.db, &bearer.token, (app.now)()).await.map_err(Problem::from)?;
    let Some(key) = key else { return Err(Problem::invalid_key().into()) };
    // The place for what bounds a known caller: rate limits, then the monthly quota.
    Ok(Identity { app: app.clone(), key })
}
