//! The runtime that serves all tests and outlives each of them.

use poem::{
    Endpoint, Server,
    listener::{Acceptor, Listener, TcpListener},
};
use std::{net::SocketAddr, sync::LazyLock};
use tokio::runtime::{Builder, Runtime};

/// Runs sandboxes, receivers and the check for unfinished work. A test's own runtime ends with the test and
/// makes no progress while the test blocks.
pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"));

/// Runs a task until it or the run ends, also while a test blocks to drop its world.
pub fn outlive(task: impl Future<Output = ()> + Send + 'static) {
    RUNTIME.spawn(task);
}

/// Serves an endpoint on a free port until the run ends, and returns its address. The listener runs on this
/// runtime too, so that it also serves while a test blocks to drop its world.
pub async fn serve(endpoint: impl Endpoint + 'static) -> SocketAddr {
    let listening = RUNTIME.spawn(async {
        let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await.expect("a free port");
        let address = acceptor.local_addr()[0].as_socket_addr().copied().expect("a TCP listener");
        tokio::spawn(async {
            Server::new_with_acceptor(acceptor).run(endpoint).await.expect("the server runs");
        });
        address
    });
    listening.await.expect("the server starts")
}
