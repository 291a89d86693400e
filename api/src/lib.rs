//! HTTP in: what clients call, and the document that describes it.
//!
//! One file per resource holds its wire types, its operations and the functions that they share with
//! whatever else calls them. This crate writes down what is to be done and reads what came of it; it
//! makes no outgoing request and opens no sealed secret. The relay carries what was written to Temporal.

pub mod accounts;
pub mod ask;
pub mod connect;
pub mod dashboard;
pub mod http;
pub mod keys;
pub mod mcp;
pub mod media;
pub mod networks;
pub mod openapi;
pub mod plans;
pub mod posts;
pub mod profiles;
pub mod relay;
pub mod slots;
pub mod sweeper;
pub mod team;
pub mod types;
pub mod usage;
pub mod webhooks;

pub use openapi::document::document;

use crate::{
    ask::Workers,
    connect::{
        callback::{self, CALLBACK, CHOICE},
        oauth_state,
    },
    http::{
        body_timeout::Arrival,
        error_middleware::{self, Envelope, Routes},
        limits::Limits,
        problem::Problem,
    },
    media::content,
    openapi::document::{self, Operations, PREFIX},
    plans::Plans,
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::sandbox::Address;
use domain::{Mode, address};
use poem::{
    Endpoint, EndpointExt, IntoResponse, Response, Route, get, handler,
    http::{Method, header},
    middleware::CatchPanic,
    web::Data,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Pool, vault::Sealer};

/// What the API's page may load: what it carries itself, and this service's answers.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
    style-src 'unsafe-inline'; img-src data: blob: 'self'; font-src data:; connect-src 'self'; worker-src blob:";

/// What the API is made of. Cloning shares it.
#[derive(Clone)]
pub struct App {
    /// The database; it may be away for a while.
    pub db: Pool,
    /// The way to the workers, for what only they can answer.
    pub workers: Workers,
    /// What the operator set.
    pub config: Arc<Config>,
    /// The time.
    pub now: fn() -> DateTime<Utc>,
}

/// What an operator sets.
pub struct Config {
    /// The address that clients use, which ends with `/api/v1`.
    pub base_url: String,
    /// What cursors are signed with; the same in every API process.
    pub cursor_key: [u8; 32],
    /// Where the bytes of media are kept.
    pub media: ::media::Shelf,
    /// Seals what only workers may read.
    pub sealer: Sealer,
    /// The ranges that webhooks may reach although they are not public.
    pub opened: Opened,
    /// What the states of authorizations are sealed with; the same in every API process.
    pub states: oauth_state::Key,
    /// The public identifiers of the OAuth apps that the installation shares, by platform.
    pub shared_clients: BTreeMap<String, String>,
    /// Client ids of the sandbox's apps, by platform.
    pub sandbox_clients: BTreeMap<String, String>,
    /// The sandbox, as a browser reaches it; without it test mode connects no accounts.
    pub sandbox: Option<Address>,
    /// How much may be called.
    pub limits: Limits,
    /// What organizations pay for.
    pub plans: Plans,
    /// Where Temporal's own pages are, for the dashboard to lead to.
    pub temporal_ui: Option<dashboard::TemporalUi>,
    /// How many proxies a request comes through, each of which appends to `X-Forwarded-For`.
    pub trusted_hops: usize,
    /// How long a body may take to arrive; of a file, how long nothing of it may come.
    pub body_timeout: Duration,
}

impl Config {
    /// The address that the API's path and the dashboard's follow.
    pub(crate) fn root(&self) -> &str {
        let base = self.base_url.trim_end_matches('/');
        base.strip_suffix(PREFIX).unwrap_or(base)
    }
}

/// The opened ranges of each mode.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// For live data.
    pub live: address::Opened,
    /// For test data.
    pub test: address::Opened,
}

impl Opened {
    /// Those of a mode.
    pub fn of(&self, mode: Mode) -> &address::Opened {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }
}

/// Everything that is served over HTTP.
pub fn endpoint(app: App) -> impl Endpoint<Output = Response> + 'static {
    let specification = document::at(app.config.base_url.trim_end_matches('/'));
    let page = document::page(&specification);
    let specification_path = format!("{PREFIX}/openapi.json");
    let arrival = Arrival { limit: app.config.body_timeout, prefix: PREFIX };
    let [taking, giving] = content::PATHS.map(|path| format!("{PREFIX}{path}"));
    let routes = Routes::of::<Operations>(PREFIX)
        .with(&taking, Method::PUT)
        .with(&giving, Method::GET)
        .with(&specification_path, Method::GET)
        .with(&format!("{PREFIX}{CALLBACK}"), Method::GET)
        .with(&format!("{PREFIX}{CHOICE}/{{token}}"), Method::GET)
        .with(&format!("{PREFIX}{CHOICE}/{{token}}"), Method::POST)
        .with("/docs", Method::GET)
        .with("/healthz", Method::GET);
    content::routes(Route::new(), PREFIX)
        .at(&specification_path, get(fixed("application/json", None, specification)))
        .nest(
            PREFIX,
            Route::new()
                .at(CALLBACK, get(callback::callback))
                .at(format!("{CHOICE}/:token"), get(callback::offer).post(callback::choose))
                .nest("/", document::service()),
        )
        .at(mcp::PATH, mcp::endpoint(&app.config.base_url))
        .at(dashboard::PATH, dashboard::door)
        .at(format!("{}/*", dashboard::PATH), dashboard::door)
        .at("/docs", get(fixed("text/html; charset=utf-8", Some(PAGE_POLICY), page)))
        .at("/healthz", get(health))
        .data(app)
        .with(CatchPanic::new().with_handler(error_middleware::panicked))
        .with(arrival)
        .with(Envelope::new(routes))
}

/// A text that does not change while the process lives.
fn fixed(
    content_type: &'static str,
    policy: Option<&'static str>,
    text: String,
) -> impl Endpoint<Output = Response> {
    let text = Bytes::from(text);
    poem::endpoint::make_sync(move |_| {
        let response = Response::builder().content_type(content_type);
        let response = match policy {
            Some(policy) => response.header(header::CONTENT_SECURITY_POLICY, policy),
            None => response,
        };
        response.body(text.clone())
    })
}

/// Whether this process can serve, for load balancers and orchestrators.
#[handler]
async fn health(app: Data<&App>) -> Response {
    if store::ready(&app.db).await {
        return Response::builder().content_type("application/json").body(r#"{"status":"ok"}"#);
    }
    Problem::unavailable().into_response()
}
