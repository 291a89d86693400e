//! The way to every address that a user gave us.
//!
//! A name is resolved and its addresses are judged at the moment of connecting, so that a name that
//! changes its answer (DNS rebinding) gains nothing. No redirects, no proxy from the environment, and
//! limits on time and size.

use domain::{Mode, ip_ranges::AllowedRanges};
use futures::{FutureExt, future::BoxFuture};
use reqwest::{
    Client, ClientBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use url::{Host, Url};

/// Clients for users' addresses, one per mode.
pub struct Egress {
    live: Gate,
    test: Gate,
}

struct Gate {
    client: Client,
    /// For what is not encrypted: it reaches opened ranges only.
    plain: Client,
    opened: Arc<AllowedRanges>,
}

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

impl Egress {
    /// Lets requests through to public addresses, and in each mode to what was opened for it.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn new(live: AllowedRanges, test: AllowedRanges) -> reqwest::Result<Self> {
        Ok(Self { live: Gate::new(live, Arc::new(look_up))?, test: Gate::new(test, Arc::new(look_up))? })
    }

    /// A client that may be used for `url`, or why not.
    ///
    /// # Errors
    ///
    /// A sentence for the owner of the address.
    pub fn client(&self, mode: Mode, url: &Url) -> Result<&Client, String> {
        let gate = match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        };
        gate.judge(url)?;
        Ok(gate.client(url))
    }
}

impl Gate {
    fn new(opened: AllowedRanges, names: Arc<Names>) -> reqwest::Result<Self> {
        let opened = Arc::new(opened);
        let client = |allows: fn(&AllowedRanges, IpAddr) -> bool| {
            unfiltered()
                .dns_resolver(Judge { opened: opened.clone(), allows, names: names.clone() })
                .user_agent("Fanfare-Webhooks/1.0")
                .build()
        };
        Ok(Self { client: client(AllowedRanges::allows)?, plain: client(AllowedRanges::contains)?, opened })
    }

    fn client(&self, url: &Url) -> &Client {
        if url.scheme() == "https" { &self.client } else { &self.plain }
    }

    /// What can be judged without resolving a name. An address written out never reaches the resolver.
    fn judge(&self, url: &Url) -> Result<(), String> {
        let literal = match url.host() {
            None => return Err("the URL has no host".to_owned()),
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        if let Some(address) = literal
            && !self.opened.allows(address)
        {
            return Err(format!("{address} is not a public address"));
        }
        match url.scheme() {
            "https" => Ok(()),
            // Within the operator's own walls; a name is judged when it is resolved.
            "http" if literal.is_none_or(|address| self.opened.contains(address)) => Ok(()),
            _ => Err("only https is sent to".to_owned()),
        }
    }
}

/// Builds a client that connects to public addresses and to `opened` only.
pub fn filtered(opened: AllowedRanges) -> ClientBuilder {
    let opened = Arc::new(opened);
    unfiltered().dns_resolver(Judge { opened, allows: AllowedRanges::allows, names: Arc::new(look_up) })
}

/// Builds a client that connects to any address: for addresses that the operator configured.
#[expect(clippy::disallowed_methods, reason = "this is the client that the lint points to")]
pub fn unfiltered() -> ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT)
        // A proxy from the environment would resolve names itself, past the filter.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("Fanfare/", env!("CARGO_PKG_VERSION")))
}

/// What tells the addresses of a name.
type Names = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Asks the operating system.
fn look_up(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed()
}

/// Resolves names, and forgets the addresses that may not be connected to.
struct Judge {
    opened: Arc<AllowedRanges>,
    allows: fn(&AllowedRanges, IpAddr) -> bool,
    names: Arc<Names>,
}

impl Resolve for Judge {
    fn resolve(&self, name: Name) -> Resolving {
        let (opened, allows, names) = (self.opened.clone(), self.allows, self.names.clone());
        Box::pin(async move {
            let found = names(name.as_str().to_owned()).await?;
            let allowed: Vec<_> = found.into_iter().filter(|address| allows(&opened, address.ip())).collect();
            if allowed.is_empty() {
                return Err(Closed(name.as_str().to_owned()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// A name that leads to no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no address that may be connected to")]
struct Closed(String);

/// Whether a request failed because its name leads to no address that may be connected to: another try
/// would gain nothing.
pub fn is_closed(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        if inner.is::<Closed>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    fn gate(opened: &str, names: Arc<Names>) -> Gate {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Gate::new(AllowedRanges::parse(opened).unwrap(), names).unwrap()
    }

    /// Counts who connects, and tells each that all is well.
    async fn listen(address: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let mut asked = [0; 1024];
                let _ = socket.read(&mut asked).await;
                let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
                socket.write_all(answer).await.unwrap();
            }
        });
        (address, count)
    }

    #[tokio::test]
    async fn a_name_that_changes_its_answer_reaches_nothing_more() {
        let (open, reached) = listen("127.0.0.2:0".parse().unwrap()).await;
        let inner = SocketAddr::new("127.0.0.1".parse().unwrap(), open.port());
        let (_, spared) = listen(inner).await;
        // First as when the endpoint was registered, then the inner network, then both, and at last a public
        // address, which only what is encrypted may go to.
        let public = SocketAddr::new("8.8.8.8".parse().unwrap(), 80);
        let answers = [vec![open], vec![inner], vec![inner, open], vec![public]];
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let names: Arc<Names> = Arc::new(move |_| {
            let answer = answers[count.fetch_add(1, Ordering::SeqCst)].clone();
            async { Ok(answer) }.boxed()
        });
        let gate = gate("127.0.0.2/32", names);
        let url = Url::parse(&format!("http://rebinding.example:{}/hook", open.port())).unwrap();
        gate.judge(&url).unwrap();
        for is_reached in [true, false, true, false] {
            let answer = gate.client(&url).post(url.clone()).send().await;
            assert_eq!(answer.is_ok(), is_reached, "{answer:?}");
        }
        let counts = [asked, reached, spared].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [4, 2, 0], "resolved, reached, and reached within the walls");
    }

    #[test]
    fn addresses_written_out_are_judged_without_a_resolver() {
        let gate = |opened: &str| gate(opened, Arc::new(look_up));
        let url = |text: &str| Url::parse(text).unwrap();
        let closed = gate("");
        for refused in [
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://169.254.169.254/",
            "http://8.8.8.8/",
            "ftp://8.8.8.8/",
        ] {
            assert!(closed.judge(&url(refused)).is_err(), "{refused}");
        }
        assert!(closed.judge(&url("https://8.8.8.8/")).is_ok());
        assert!(gate("127.0.0.0/8").judge(&url("http://127.0.0.1:9000/hook")).is_ok());
        assert!(gate("127.0.0.0/8").judge(&url("http://8.8.8.8/")).is_err());
    }
}
