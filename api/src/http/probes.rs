//! The probes `/healthz` and `/readyz`, on the API's port and on the operator's.

use poem::{
    Endpoint, Response, Route,
    endpoint::{make, make_sync},
    get,
    http::{StatusCode, header},
};
use telemetry::health::{Health, Report};

/// Path of the liveness probe.
pub const LIVE: &str = "/healthz";
/// Path of the readiness probe.
pub const READY: &str = "/readyz";

/// Adds the probes to routes.
pub fn routes(routes: Route, health: &Health) -> Route {
    routes.at(LIVE, get(live(health.clone()))).at(READY, get(ready(health.clone())))
}

fn live(health: Health) -> impl Endpoint<Output = Response> {
    make_sync(move |_| response(&health.live()))
}

fn ready(health: Health) -> impl Endpoint<Output = Response> {
    make(move |_| {
        let health = health.clone();
        async move { response(&health.ready().await) }
    })
}

fn response(report: &Report) -> Response {
    let status = if report.is_success() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Response::builder()
        .status(status)
        .content_type("application/json")
        .header(header::CACHE_CONTROL, "no-store")
        .body(serde_json::to_string(report).expect("a report is plain data"))
}
