//! Who calls, and what the key allows.
//!
//! An operation names its permission in its signature and gets to the data through nothing else, so
//! that none can forget its scope, and a refused call is refused before its body is read.

use crate::{
    app::{App, PREFIX},
    http::{
        admission,
        problem::{Code, Problem},
    },
};
use chrono::{DateTime, Utc};
use domain::{
    Owner,
    scope::{self, Scope},
};
use poem::{Request, RequestBody, http::Method};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions, SecurityScheme, auth::Bearer, registry::Registry,
};
use std::marker::PhantomData;
use store::{Pool, keys::Key};

/// An API key: `Authorization: Bearer sk_live_…` or `sk_test_…`. A test key sees the test data of its
/// organization and publishes to the sandbox.
#[derive(SecurityScheme)]
#[oai(rename = "ApiKey", ty = "bearer", bearer_format = "API key", checker = "authenticate")]
pub struct ApiKey(pub Identity);

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

/// A caller who has the permission `P`.
pub struct Caller<P>(Identity, PhantomData<fn() -> P>);

/// What an operation asks of its caller.
pub trait Permission: 'static {
    /// The scope that the key must have.
    const SCOPE: Scope;
}

macro_rules! permissions {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$meta])*
        pub enum $name {}

        impl Permission for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )+};
}

permissions! {
    /// To read posts.
    PostsRead,
    /// To create, change and cancel posts.
    PostsWrite,
    /// To read accounts.
    AccountsRead,
    /// To connect, change and disconnect accounts.
    AccountsWrite,
    /// To read OAuth apps.
    NetworksRead,
    /// To register and change OAuth apps.
    NetworksWrite,
    /// To read media.
    MediaRead,
    /// To upload, import and delete media.
    MediaWrite,
    /// To read webhook endpoints and deliveries.
    WebhooksRead,
    /// To register, change and remove webhook endpoints.
    WebhooksWrite,
    /// To read posting slots.
    SchedulingRead,
    /// To set posting slots.
    SchedulingWrite,
    /// To read engagement.
    AnalyticsRead,
    /// To read the team.
    TeamRead,
    /// To change the team.
    TeamWrite,
    /// To read profiles.
    ProfilesRead,
    /// To change profiles.
    ProfilesWrite,
    /// To read usage.
    UsageRead,
    /// To list, create and revoke keys.
    KeysWrite,
}

impl<P: Permission> Caller<P> {
    /// The call that the caller may make.
    pub fn call(&self) -> Call<'_> {
        Call { app: &self.0.app, owner: self.0.key.owner }
    }

    /// All that the caller's key may do.
    pub fn scopes(&self) -> &[Scope] {
        &self.0.key.scopes
    }
}

impl Identity {
    /// The call, if the key has the scope for it.
    ///
    /// # Errors
    ///
    /// `insufficient_scope` if not.
    pub fn may(&self, needed: Scope) -> Result<Call<'_>, Problem> {
        if !scope::allows(&self.key.scopes, needed) {
            let detail = format!("the API key lacks the scope {needed}");
            return Err(Problem::new(Code::InsufficientScope, detail));
        }
        Ok(Call { app: &self.app, owner: self.key.owner })
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
    // Below a nested route the path of the request itself begins after the prefix.
    let path = request.original_uri().path().strip_prefix(PREFIX).unwrap_or_default();
    identify(request, &bearer, request.method(), path).await
}

/// Who makes a request, recognized and counted as a call of this method and path below the API's prefix.
///
/// # Errors
///
/// `unauthorized`, `rate_limited` or `quota_exceeded`.
pub async fn identify(
    request: &Request,
    bearer: &Bearer,
    method: &Method,
    path: &str,
) -> poem::Result<Identity> {
    let app: &App = request.data().expect("the endpoint hands its parts to every request");
    let key = admission::authenticate(app, request, &bearer.token, method, path).await?;
    Ok(Identity { app: app.clone(), key })
}

impl<'a, P: Permission> ApiExtractor<'a> for Caller<P> {
    const TYPES: &'static [ApiExtractorType] = ApiKey::TYPES;
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        ApiKey::register(registry);
    }

    fn security_schemes() -> Vec<&'static str> {
        ApiKey::security_schemes()
    }

    async fn from_request(
        request: &'a Request,
        body: &mut RequestBody,
        options: ExtractParamOptions<()>,
    ) -> poem::Result<Self> {
        let ApiKey(identity) = ApiKey::from_request(request, body, options).await?;
        identity.may(P::SCOPE)?;
        Ok(Self(identity, PhantomData))
    }
}
