//! The operator's listener.
//!
//! It has an address of its own, so that it is not reachable where the API is, and so that workers have one too.

use crate::{
    http,
    metrics::{self, Exporter},
    readiness::Probes,
};
use anyhow::Context;
use api::http::probes;
use clap::Args;
use poem::{EndpointExt, Response, Route, endpoint::make, get};
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

/// The operator's listener.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Admin {
    /// Address of the operator's listener, such as 127.0.0.1:9464, with /metrics, /healthz and /readyz. It needs
    /// no key: keep it away from the internet. None by default
    #[arg(long, env = "FANFARE_ADMIN_LISTEN")]
    pub(crate) admin_listen: Option<SocketAddr>,
}

impl Admin {
    /// Serves until the process ends, also while it starts and stops.
    pub(crate) fn serve(&self, probes: &Probes) -> anyhow::Result<()> {
        let Some(address) = self.admin_listen else { return Ok(()) };
        let listener = TcpListener::bind(address)
            .with_context(|| format!("the operator's listener can't listen on {address}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let exporter = Arc::new(Exporter::install(probes)?);
        let shown = make(move |_| {
            let exporter = exporter.clone();
            async move { Response::builder().content_type(metrics::CONTENT_TYPE).body(exporter.render().await) }
        });
        let endpoint =
            probes::routes(Route::new(), &probes.health).at("/metrics", get(shown)).map_to_response();
        let limits = http::Limits {
            connections: 64,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            unread: Duration::from_secs(30),
            grace: Duration::ZERO,
        };
        info!(%address, "The operator's listener is on {address}");
        tokio::spawn(async move {
            if let Err(error) = http::serve(listener, endpoint, limits, CancellationToken::new()).await {
                error!(%error, "The operator's listener ended");
            }
        });
        Ok(())
    }
}
