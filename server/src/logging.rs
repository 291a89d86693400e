//! The log: lines on standard error, for people or as JSON.

use std::io::{self, IsTerminal};
use tracing::warn;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// Filter of the logs, unless RUST_LOG sets another one.
const FILTER: &str = "info,\
    temporalio_sdk_core=warn,temporalio_sdk=warn,temporalio_client=error,\
    sqlx=warn,sqlx_postgres::options=error,poem=warn";

/// Starts the log. Failures of Temporal's SDK are part of it: a workflow task that fails is retried without end, and
/// nothing else tells.
pub(crate) fn start(json: bool) {
    // sqlx would log an unknown parameter of DATABASE_URL with its value, so its options are below `warn`.
    let chosen = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|chosen| !chosen.is_empty());
    let chosen = chosen.map(EnvFilter::try_new).transpose();
    let (chosen, malformed) = chosen.map_or_else(|error| (None, Some(error)), |chosen| (chosen, None));
    let filter = chosen.unwrap_or_else(|| EnvFilter::new(FILTER));
    // At `debug` it logs the arguments and results of tools, of which some are secrets.
    let filter = filter.add_directive("rmcp=info".parse().expect("a directive"));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if json {
        // The span that an event is in comes first among its spans, so it is not repeated.
        registry.with(layer.json().with_current_span(false)).init();
    } else {
        // Escape sequences are noise in a file or a log collector. <https://no-color.org>
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        registry.with(layer.compact().with_ansi(io::stderr().is_terminal() && !is_plain)).init();
    }
    if let Some(error) = malformed {
        warn!(%error, "RUST_LOG is malformed and has no effect");
    }
}
