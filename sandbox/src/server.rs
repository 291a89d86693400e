//! The sandbox's own server, because poem's can't close a connection without a response, or drop a request at
//! once when its client hangs up.
//!
//! hyper does both (<https://docs.rs/hyper/1/hyper/service/trait.Service.html>): an error of the service
//! closes the connection, and a connection that ends drops its request.

use super::Sandbox;
use anyhow::{Context, Result};
use futures::{FutureExt, future::BoxFuture};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use poem::{
    Endpoint, Request,
    http::uri::Scheme,
    web::{LocalAddr, RemoteAddr},
};
use std::{future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// Time that requests in progress get after shutdown begins.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// Delay after a failed accept, as when no file descriptor is left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Marks a response that is not sent: the connection is closed instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropped;

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("dropped on purpose")
    }
}

impl std::error::Error for Dropped {}

/// Serves a sandbox until `shutdown` resolves.
///
/// # Errors
///
/// When the listener can't be used.
pub async fn serve(
    sandbox: Sandbox,
    listener: std::net::TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    boxed(sandbox, listener, shutdown.boxed()).await
}

/// Keeps the server's code in this crate: a future that is not boxed is compiled again by every crate that
/// awaits it.
fn boxed(
    sandbox: Sandbox,
    listener: std::net::TcpListener,
    shutdown: BoxFuture<'static, ()>,
) -> BoxFuture<'static, Result<()>> {
    run(sandbox, listener, shutdown).boxed()
}

async fn run(
    sandbox: Sandbox,
    listener: std::net::TcpListener,
    mut shutdown: BoxFuture<'static, ()>,
) -> Result<()> {
    listener.set_nonblocking(true).context("preparing the sandbox's listener")?;
    let listener = TcpListener::from_std(listener).context("listening for the sandbox")?;
    let local = listener.local_addr().context("listening for the sandbox")?;
    let endpoint = Arc::new(sandbox.endpoint());
    let (stop, stopping) = watch::channel(());
    let mut connections = JoinSet::new();
    tracing::info!(address = %local, "The sandbox listens on {local}");
    if !local.ip().is_loopback() && sandbox.0.access.token.is_none() {
        tracing::warn!(
            "The sandbox has no token: organizations share its accounts, and only this machine controls it"
        );
    }
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(endpoint.clone(), stream, local, peer, stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "The sandbox could not accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            // Removes finished connections.
            Some(_) = connections.join_next() => {}
        }
    }
    drop((listener, stop));
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_GRACE, all).await.is_err() {
        // Held and stuck requests end here.
        connections.shutdown().await;
    }
    Ok(())
}

async fn connection(
    endpoint: Arc<impl Endpoint + 'static>,
    stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    mut stopping: watch::Receiver<()>,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let endpoint = endpoint.clone();
        let request =
            Request::from((request, LocalAddr(local.into()), RemoteAddr(peer.into()), Scheme::HTTP));
        async move {
            let response = endpoint.get_response(request).await;
            match response.extensions().get::<Dropped>() {
                Some(dropped) => Err(*dropped),
                None => Ok(hyper::Response::from(response)),
            }
        }
    });
    let mut connection =
        pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // The sender is dropped at shutdown.
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "A connection to the sandbox ended early");
    }
}
