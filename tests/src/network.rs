//! An interruptible TCP proxy between two parts of Fanfare, and ports that no other program gets.
//!
//! Each pair of parts has a proxy of its own, since every address is a setting. A proxy forwards bytes and knows
//! nothing of them.

use crate::runtime::outlive;
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpSocket, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
};

/// Pending connections of a listener.
const BACKLOG: u32 = 1024;

/// State of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Bytes are forwarded.
    Open,
    /// Nothing is forwarded, and no connection is closed: packets are lost.
    Frozen,
    /// Connections are reset and new ones are refused.
    Refused,
}

/// The state of a proxy, which applies to its connections: one that the proxy has forgotten stays silent.
#[derive(Clone, Copy, Debug)]
struct Rule {
    state: State,
    /// Number of times that the proxy has forgotten its connections.
    forgotten: u32,
}

/// A TCP proxy from a local port to a server, which a test can interrupt.
pub struct Proxy {
    address: SocketAddr,
    rule: watch::Sender<Rule>,
    upstream: watch::Sender<SocketAddr>,
}

impl Proxy {
    /// Opens a proxy to a server.
    pub fn to(upstream: SocketAddr) -> Self {
        let port = Port::reserve();
        let proxy = Self {
            address: port.address,
            rule: watch::Sender::new(Rule { state: State::Open, forgotten: 0 }),
            upstream: watch::Sender::new(upstream),
        };
        outlive(listen(port, proxy.rule.subscribe(), proxy.upstream.subscribe()));
        proxy
    }

    /// Returns the address to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the state. Connections that were frozen continue when it is open again.
    pub fn set(&self, state: State) {
        self.rule.send_modify(|rule| rule.state = state);
    }

    /// Opens the proxy for new connections. Those that exist stay silent, as behind a firewall that has
    /// forgotten them.
    pub fn forget(&self) {
        self.rule.send_modify(|rule| *rule = Rule { state: State::Open, forgotten: rule.forgotten + 1 });
    }

    /// Makes new connections lead to another server.
    pub fn lead_to(&self, upstream: SocketAddr) {
        self.upstream.send_replace(upstream);
    }
}

/// A port that no other program gets, whether somebody listens on it or not.
pub struct Port {
    /// The address.
    pub address: SocketAddr,
    _socket: TcpSocket,
}

impl Port {
    /// Reserves any free port.
    pub fn reserve() -> Self {
        Self::of(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Reserves the port of an address.
    pub fn of(address: SocketAddr) -> Self {
        let socket = bound(address);
        Self { address: socket.local_addr().expect("a bound socket has an address"), _socket: socket }
    }
}

/// Several sockets may be bound to one port as long as at most one listens.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket option");
    socket.bind(address).expect("a free port");
    socket
}

async fn listen(port: Port, mut rule: watch::Receiver<Rule>, upstream: watch::Receiver<SocketAddr>) {
    // Ends with an error when the proxy is dropped.
    while rule.wait_for(|rule| rule.state != State::Refused).await.is_ok() {
        let listener = bound(port.address).listen(BACKLOG).expect("a listener");
        loop {
            let state = rule.borrow_and_update().state;
            if state == State::Refused {
                break;
            }
            tokio::select! {
                accepted = listener.accept(), if state == State::Open => {
                    let (client, _) = accepted.expect("a connection");
                    tokio::spawn(forward(client, *upstream.borrow(), rule.clone()));
                }
                changed = rule.changed() => if changed.is_err() { return },
            }
        }
    }
}

/// Forwards a connection until both sides have closed it. It is reset if one of them fails, or the proxy is cut.
async fn forward(mut client: TcpStream, upstream: SocketAddr, mut rule: watch::Receiver<Rule>) {
    let forgotten = rule.borrow().forgotten;
    let Ok(mut server) = TcpStream::connect(upstream).await else {
        reset(&client);
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("a socket option");
    }
    let ((client_in, client_out), (server_in, server_out)) = (client.split(), server.split());
    let (there, back) = (rule.clone(), rule.clone());
    let is_closed = tokio::select! {
        copied = async {
            tokio::try_join!(
                copy(client_in, server_out, there, forgotten),
                copy(server_in, client_out, back, forgotten),
            )
        } => copied.is_ok(),
        _ = rule.wait_for(|rule| rule.state == State::Refused) => false,
    };
    if !is_closed {
        reset(&client);
        reset(&server);
    }
}

/// Makes a connection be reset when it is dropped.
fn reset(stream: &TcpStream) {
    stream.set_zero_linger().expect("a socket option");
}

/// Forwards one direction until its end.
async fn copy(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut rule: watch::Receiver<Rule>,
    forgotten: u32,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = from.read(&mut buffer).await;
        // Bytes that arrive at a frozen proxy wait here, and so does the end of the connection.
        let is_open = |rule: &Rule| rule.state == State::Open && rule.forgotten == forgotten;
        rule.wait_for(is_open).await.map_err(io::Error::other)?;
        match read? {
            0 => return to.shutdown().await,
            count => to.write_all(&buffer[..count]).await?,
        }
    }
}
