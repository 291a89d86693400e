//! Authentication and authorization of API calls.
//!
//! An operation declares its permission in its signature and reaches data only through it, so that no
//! operation can omit its scope check and a call without the scope is refused before its body is read. Of a key
//! with a bound it is also checked here that the path leads to a resource within it ([`reach`]).

use crate::{
    app::{App, PREFIX},
    http::{
        admission, browser, headers,
        problem::{Code, Problem},
        reach::{self, Reach},
        request_id::RequestId,
    },
};
use chrono::{DateTime, Utc};
use domain::{
    Bound, Owner,
    client::Client,
    scope::{self, Scope},
};
use poem::{Request, RequestBody, http::Method};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions, SecurityScheme, auth::Bearer, registry::Registry,
};
use std::marker::PhantomData;
use store::{
    Pool,
    bounds::{Access, Whole},
    people::{
        audit::{Actor, ActorKind},
        keys::Key,
    },
};

/// An API key: `Authorization: Bearer sk_live_…` or `sk_test_…`. A test key sees the test data of its
/// organization and publishes to the sandbox.
#[derive(SecurityScheme)]
#[oai(rename = "ApiKey", ty = "bearer", bearer_format = "API key", checker = "authenticate")]
pub struct ApiKey(pub Identity);

/// An authenticated API key.
pub struct Identity {
    app: App,
    key: Key,
    actor: Actor,
    request: Option<RequestId>,
}

/// An authorized call: the argument of every operation, over HTTP or MCP.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// State shared by all request handlers.
    pub app: &'a App,
    /// Organization and mode of the data.
    pub owner: Owner,
    /// The data that the caller's key is limited to.
    pub bound: &'a Bound,
    /// Scopes of the caller.
    pub scopes: &'a [Scope],
    /// Limits of the caller's client token; `None` for an API key.
    pub client: Option<&'a Client>,
    /// Who calls, for the audit trail.
    pub by: &'a Actor,
    /// Id of the request; `None` outside of a request.
    pub request: Option<RequestId>,
}

/// Name that `poem-openapi` gives the first path parameter.
pub(crate) const FIRST_PARAMETER: &str = "param0";

/// A caller with the permission `P`.
pub struct Caller<P>(Identity, PhantomData<fn() -> P>);

/// A permission that an operation requires.
pub trait Permission: 'static {
    /// The required scope.
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
    /// Read posts.
    PostsRead,
    /// Create, update and cancel posts.
    PostsWrite,
    /// Read accounts.
    AccountsRead,
    /// Connect, update and disconnect accounts.
    AccountsWrite,
    /// Read OAuth apps and the branding of the connect pages.
    NetworksRead,
    /// Register, update and remove OAuth apps, and set the branding of the connect pages.
    NetworksWrite,
    /// Read media.
    MediaRead,
    /// Upload, import and delete media.
    MediaWrite,
    /// Read webhook endpoints and deliveries.
    WebhooksRead,
    /// Register, update and delete webhook endpoints.
    WebhooksWrite,
    /// Read posting slots.
    SchedulingRead,
    /// Set posting slots.
    SchedulingWrite,
    /// Read engagement.
    AnalyticsRead,
    /// Read the team.
    TeamRead,
    /// Invite and remove team members, and change their roles.
    TeamWrite,
    /// Read profiles.
    ProfilesRead,
    /// Create, update and delete profiles.
    ProfilesWrite,
    /// Read usage.
    UsageRead,
    /// List, create, rotate and revoke API keys.
    KeysWrite,
}

impl<P: Permission> Caller<P> {
    /// The authorized call.
    pub fn call(&self) -> Call<'_> {
        self.0.call()
    }

    /// Scopes of the caller's key.
    pub fn scopes(&self) -> &[Scope] {
        &self.0.key.scopes
    }
}

impl Identity {
    /// Id of the request. A library's task that handles a part of it has no current id.
    pub(crate) fn request(&self) -> Option<RequestId> {
        self.request
    }

    /// Returns the call of an operation, if the key has the scope and may call the operation, and `id`, the first
    /// parameter of its path, is of a resource within the key's bound. Nothing else makes a [`Call`] of a key, so that
    /// every entrance asks all three.
    ///
    /// # Errors
    ///
    /// `insufficient_scope`, `forbidden` or `not_found`.
    pub async fn authorize(
        &self,
        needed: Scope,
        method: &Method,
        path: &str,
        id: Option<&str>,
    ) -> Result<Call<'_>, Problem> {
        if !scope::allows(&self.key.scopes, needed) {
            let detail = format!("the API key lacks the scope {needed}");
            return Err(Problem::new(Code::InsufficientScope, detail));
        }
        if self.key.client.is_some() && !reach::is_for_clients(method, path) {
            let detail = "a client token connects accounts and lists them; this takes an API key";
            return Err(reach::forbidden(detail));
        }
        let call = self.call();
        call.check(Reach::of(method, path), id).await?;
        Ok(call)
    }

    fn call(&self) -> Call<'_> {
        let Key { owner, bound, scopes, client, .. } = &self.key;
        let (client, by) = (client.as_ref(), &self.actor);
        Call { app: &self.app, owner: *owner, bound, scopes, client, by, request: self.request }
    }
}

impl<'a> Call<'a> {
    /// The call of a request that was authorized by other means than an API key, for the whole organization.
    /// `tests/it/walls.rs` lists the modules that may make one.
    pub fn new(app: &'a App, owner: Owner, scopes: &'a [Scope], by: &'a Actor) -> Self {
        let request = RequestId::current();
        Self { app, owner, bound: Bound::ORGANIZATION, scopes, client: None, by, request }
    }

    /// Access of the caller.
    pub fn access(&self) -> Access<'a> {
        Access::new(self.owner, self.bound)
    }

    /// The proof that the caller reaches the whole organization.
    ///
    /// # Errors
    ///
    /// `forbidden` for a key with a bound.
    pub fn whole(&self) -> Result<Whole, Problem> {
        self.access().whole().ok_or_else(|| self.organization_only())
    }

    /// Fails if the caller may not call an operation with this reach, or not for the resource `id`.
    ///
    /// # Errors
    ///
    /// `forbidden`, or `not_found` as for a resource of another organization.
    async fn check(&self, reach: Reach, id: Option<&str>) -> Result<(), Problem> {
        if !self.bound.is_limited() {
            return Ok(());
        }
        match reach {
            Reach::Within | Reach::Token => Ok(()),
            Reach::Organization => Err(self.organization_only()),
            Reach::Of(resource) => {
                let is_within = match id.and_then(|id| id.parse().ok()) {
                    Some(id) => self.access().contains(self.db(), resource, id).await?,
                    None => false,
                };
                if is_within { Ok(()) } else { Err(Problem::not_found(reach::name(resource))) }
            }
        }
    }

    fn organization_only(&self) -> Problem {
        let bound = self.bound;
        let detail =
            format!("this API key is limited to {bound}; the operation concerns the whole organization");
        reach::forbidden(detail)
    }

    /// The tenant of what is created: the bound's, or else the one that is asked for.
    ///
    /// # Errors
    ///
    /// `forbidden` if another tenant than the bound's is asked for.
    pub(crate) fn tenant(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        match (self.bound.tenant(), asked) {
            (Some(own), Some(asked)) if own != asked => Err(reach::forbidden(format!(
                "this API key is limited to {}, so tenant_id can't be another",
                self.bound
            ))),
            (Some(own), _) => Ok(Some(own.to_owned())),
            (None, asked) => Ok(asked),
        }
    }

    /// The proof that the caller may see the organization's webhooks; `None` if it may not.
    pub fn webhooks(&self) -> Option<Whole> {
        self.access().whole().filter(|_| scope::allows(self.scopes, Scope::WebhooksRead))
    }

    /// The database.
    pub fn db(&self) -> &'a Pool {
        &self.app.db
    }

    /// Id of the request, as timelines store it.
    pub fn request_id(&self) -> Option<String> {
        self.request.map(|id| id.to_string())
    }

    /// The current time.
    pub fn now(&self) -> DateTime<Utc> {
        (self.app.now)()
    }
}

async fn authenticate(request: &Request, bearer: Bearer) -> poem::Result<Identity> {
    identify(request, &bearer, request.method(), path_of(request)).await
}

/// The path of a request, relative to the API's prefix.
pub(crate) fn path_of(request: &Request) -> &str {
    // Below a nested route the path of the request itself begins after the prefix.
    request.original_uri().path().strip_prefix(PREFIX).unwrap_or_default()
}

/// Authenticates a request and counts it as a call of this method and path, relative to the API's prefix.
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
    let app: &App = request.data().expect("the router adds the state to every request");
    // The library reads the first of several.
    headers::text(request.headers(), "Authorization").map_err(|_| Problem::no_bearer())?;
    let key = admission::authenticate(app, request, &bearer.token, method, path).await?;
    let actor = actor(app, request, ActorKind::ApiKey, Some(&key));
    Ok(Identity { app: app.clone(), key, actor, request: RequestId::current() })
}

/// Describes the one who makes a request, for the audit trail.
pub fn actor(app: &App, request: &Request, kind: ActorKind, key: Option<&Key>) -> Actor {
    Actor {
        kind,
        key: key.map(|key| (key.id, key.last_four.clone())),
        member: None,
        address: admission::address(request, app.config.trusted_hops),
        request: RequestId::current().map(|id| id.to_string()),
        operator: None,
        agent: browser::agent(request),
    }
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
        let id = request.raw_path_param(FIRST_PARAMETER);
        identity.authorize(P::SCOPE, request.method(), path_of(request), id).await?;
        Ok(Self(identity, PhantomData))
    }
}
