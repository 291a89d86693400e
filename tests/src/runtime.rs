//! What serves tests and outlives each of them.

use poem::{
    Endpoint, Server,
    listener::{Acceptor, Listener, TcpListener},
};
use std::{net::SocketAddr, sync::LazyLock};
use tokio::runtime::{Builder, Runtime};

/// Serves sandboxes and receivers, and looks at what a test leaves behind. The runtime of a test ends with the
/// test, and stands still while the test blocks.
pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"));

/// Serves an endpoint on a port of its own until the run ends, and gives its address. Also while a test is
/// blocked, as it is where its world is dropped: the listener belongs to this runtime too.
pub async fn serve(endpoint: impl Endpoint + 'static) -> SocketAddr {
    let listening = RUNTIME.spawn(async {
        let acceptor = TcpListener::bind("127.0.0.1:0").into_acceptor().await.expect("a free port");
        let address = acceptor.local_addr()[0].as_socket_addr().copied().expect("a TCP listener");
        tokio::spawn(async {
            Server::new_with_acceptor(acceptor).run(endpoint).await.expect("it serves");
        });
        address
    });
    listening.await.expect("it starts")
}
