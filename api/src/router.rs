//! The routes of everything that is served over HTTP, and the middleware around them.

use crate::{
    app::{App, DASHBOARD_PATH, PREFIX},
    connect::{
        begin::begin,
        callback::{self, BEGIN, CALLBACK, CHOOSE},
    },
    http::{
        body_timeout::BodyTimeout,
        cors::{ClientCors, Preflight},
        error_middleware::{self, Envelope, Routes},
        probes,
        request_log::RequestLog,
    },
    mcp,
    media::content,
    operations::{self, Operations},
};
use bytes::Bytes;
use poem::{
    Endpoint, EndpointExt, Response, Route,
    endpoint::BoxEndpoint,
    get,
    http::{Method, header},
    middleware::{CatchPanic, SetHeader},
    web::Redirect,
};
use std::sync::LazyLock;

/// Content security policy of the API's documentation page.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
    style-src 'unsafe-inline'; img-src data: blob: 'self'; font-src data:; connect-src 'self'; worker-src blob:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Tells browsers to use https only, for two years. <https://www.rfc-editor.org/rfc/rfc6797>
const HTTPS_ONLY: &str = "max-age=63072000";

/// Everything that is served over HTTP: the API, and `pages` with their paths, below the dashboard's. Boxed, so that
/// callers do not compile the middleware stack again.
pub fn endpoint(app: App, pages: Route) -> BoxEndpoint<'static, Response> {
    let base_url = app.config.base_url.trim_end_matches('/').to_owned();
    let page = {
        let base_url = base_url.clone();
        move || operations::page(&operations::document_at(&base_url))
    };
    let specification = move || operations::document_at(&base_url);
    let is_https = app.config.base_url.starts_with("https://");
    let specification_path = format!("{PREFIX}/openapi.json");
    let body_timeout = BodyTimeout { limit: app.config.body_timeout, is_exempt: content::is_upload };
    let [taking, giving, fitted] = content::PATHS.map(|path| format!("{PREFIX}{path}"));
    let log = RequestLog::start(app.db.clone(), app.now);
    let routes = Routes::of::<Operations>(PREFIX)
        .with(&taking, Method::PUT)
        .with(&giving, Method::GET)
        .with(&fitted, Method::GET)
        .with(&specification_path, Method::GET)
        .with(&format!("{PREFIX}{CALLBACK}"), Method::GET)
        .with(&format!("{PREFIX}{BEGIN}/{{state}}"), Method::GET)
        .with(&format!("{PREFIX}{BEGIN}/{{state}}"), Method::POST)
        .with(&format!("{PREFIX}{CHOOSE}/{{token}}"), Method::GET)
        .with(&format!("{PREFIX}{CHOOSE}/{{token}}"), Method::POST)
        .with(mcp::PATH, Method::POST)
        .with("/docs", Method::GET)
        .with("/", Method::GET)
        .with(probes::LIVE, Method::GET)
        .with(probes::READY, Method::GET);
    content::routes(probes::routes(pages, &app.health), PREFIX)
        .at(&specification_path, get(fixed("application/json", None, specification)))
        .nest(
            PREFIX,
            Route::new()
                .at(CALLBACK, get(callback::callback))
                .at(format!("{BEGIN}/:state"), get(begin).post(begin))
                .at(format!("{CHOOSE}/:token"), get(callback::choice).post(callback::choose))
                .nest("/", operations::service()),
        )
        .at(mcp::PATH, mcp::endpoint(&app.config.base_url))
        // Who opens the bare address is a person.
        .at("/", get(poem::endpoint::make_sync(|_| Redirect::see_other(DASHBOARD_PATH))))
        .at("/docs", get(fixed("text/html; charset=utf-8", Some(PAGE_POLICY), page)))
        .data(app)
        .with(CatchPanic::new().with_handler(error_middleware::panicked))
        .with(body_timeout)
        .with(Preflight)
        .with(Envelope::new(routes).with_log(log))
        .with(ClientCors)
        .with(SetHeader::new().overriding(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .with_if(is_https, SetHeader::new().overriding(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY))
        .boxed()
}

/// An endpoint that always serves the same text, which is made for the first request: making the document takes longer
/// than all else at the start, and most processes are never asked for it.
fn fixed(
    content_type: &'static str,
    policy: Option<&'static str>,
    text: impl FnOnce() -> String + Send + 'static,
) -> impl Endpoint<Output = Response> {
    let text = LazyLock::new(|| Bytes::from(text()));
    poem::endpoint::make_sync(move |_| {
        let response = Response::builder().content_type(content_type);
        let response = match policy {
            Some(policy) => response.header(header::CONTENT_SECURITY_POLICY, policy),
            None => response,
        };
        response.body(Bytes::clone(&text))
    })
}
