//! HTTP clients for URLs that users provide.
//!
//! The resolver filters a name's addresses when the connection is made, so that DNS rebinding gains
//! nothing. Names below `localhost` are this machine on every machine. No redirects, no proxy from the environment,
//! and a connect timeout.

use domain::{
    Mode,
    ip_ranges::{AllowedRanges, is_below_localhost},
};
use futures::{FutureExt, future::BoxFuture};
pub use reqwest::Client;
use reqwest::{
    ClientBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
};
use rustls::{ClientConfig, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};
use url::{Host, Url};

/// Clients for URLs that users provide, one per mode.
pub struct Egress {
    live: FilteredClients,
    test: FilteredClients,
}

struct FilteredClients {
    client: Client,
    /// For `http`: it connects to added ranges only.
    plain: Client,
    allowed: Arc<AllowedRanges>,
}

/// Time limit for establishing a connection.
const CONNECT: Duration = Duration::from_secs(10);

impl Egress {
    /// Creates clients that connect to public addresses and to the ranges added for each mode.
    ///
    /// # Errors
    ///
    /// If no TLS provider is installed in this process.
    pub fn new(live: AllowedRanges, test: AllowedRanges) -> reqwest::Result<Self> {
        Ok(Self {
            live: FilteredClients::new(live, Arc::new(look_up))?,
            test: FilteredClients::new(test, Arc::new(look_up))?,
        })
    }

    /// Returns the client to use for `url`.
    ///
    /// # Errors
    ///
    /// If the URL is not allowed, with a message for the user who provided it.
    pub fn client(&self, mode: Mode, url: &Url) -> Result<&Client, String> {
        let gate = match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        };
        gate.check_url(url)?;
        Ok(gate.client(url))
    }
}

impl FilteredClients {
    fn new(allowed: AllowedRanges, names: Arc<Names>) -> reqwest::Result<Self> {
        let allowed = Arc::new(allowed);
        let client = |allows: fn(&AllowedRanges, IpAddr) -> bool| {
            unfiltered()
                .dns_resolver(FilteringResolver { allowed: allowed.clone(), allows, names: names.clone() })
                .user_agent("Fanfare-Webhooks/1.0")
                .build()
        };
        Ok(Self { client: client(AllowedRanges::allows)?, plain: client(AllowedRanges::contains)?, allowed })
    }

    fn client(&self, url: &Url) -> &Client {
        if url.scheme() == "https" { &self.client } else { &self.plain }
    }

    /// Checks the scheme and an IP address in the URL, which never reaches the resolver.
    fn check_url(&self, url: &Url) -> Result<(), String> {
        let literal = match url.host() {
            None => return Err("the URL has no host".to_owned()),
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        if let Some(address) = literal
            && !self.allowed.allows(address)
        {
            return Err(format!("{address} is not a public address"));
        }
        match url.scheme() {
            "https" => Ok(()),
            // Only in ranges that the operator added; the resolver checks the addresses of a name.
            "http" if literal.is_none_or(|address| self.allowed.contains(address)) => Ok(()),
            _ => Err("only https is sent to".to_owned()),
        }
    }
}

/// Builds a client that connects to public addresses and to `allowed` only.
pub fn filtered(allowed: AllowedRanges) -> ClientBuilder {
    let allowed = Arc::new(allowed);
    unfiltered().dns_resolver(FilteringResolver {
        allowed,
        allows: AllowedRanges::allows,
        names: Arc::new(look_up),
    })
}

/// Builds a client that connects to any address: for URLs that the operator configured.
#[expect(clippy::disallowed_methods, reason = "this is the client that the lint points to")]
pub fn unfiltered() -> ClientBuilder {
    with_shared_tls(Client::builder(), &["h2", "http/1.1"])
        .connect_timeout(CONNECT)
        // A proxy from the environment would resolve names itself, past the filter.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("Fanfare/", env!("CARGO_PKG_VERSION")))
}

/// Limits a client to HTTP/1.1, for connections that are upgraded.
pub fn http1_only(builder: ClientBuilder) -> ClientBuilder {
    with_shared_tls(builder.http1_only(), &["http/1.1"])
}

/// Gives a client the shared TLS settings, and the protocols that it offers to servers. Without the settings, building
/// the client fails with the reason.
fn with_shared_tls(builder: ClientBuilder, protocols: &[&str]) -> ClientBuilder {
    let Some(mut tls) = tls() else { return builder };
    tls.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    builder.tls_backend_preconfigured(tls)
}

/// Returns the TLS settings of all clients, which are reqwest's own: this machine's root certificates. Clients share
/// them, because most of the time of building a client is reading and parsing the certificates. `None` without a TLS
/// provider in this process or without certificates.
fn tls() -> Option<ClientConfig> {
    static SHARED: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(shared) = SHARED.get() {
        return Some(shared.clone());
    }
    let provider = CryptoProvider::get_default()?.clone();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let config = builder.with_platform_verifier().ok()?.with_no_client_auth();
    Some(SHARED.get_or_init(|| config).clone())
}

/// Looks up the addresses of a name.
type Names = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Looks a name up with the operating system's resolver. Names below `localhost` are loopback addresses without it.
fn look_up(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move {
        if is_below_localhost(&name) {
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(loopback.map(|address: IpAddr| SocketAddr::new(address, 0)).to_vec());
        }
        Ok(tokio::net::lookup_host((name, 0)).await?.collect())
    }
    .boxed()
}

/// A DNS resolver that returns only addresses that may be connected to.
struct FilteringResolver {
    allowed: Arc<AllowedRanges>,
    allows: fn(&AllowedRanges, IpAddr) -> bool,
    names: Arc<Names>,
}

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (allowed, allows, names) = (self.allowed.clone(), self.allows, self.names.clone());
        Box::pin(async move {
            let found = names(name.as_str().to_owned()).await?;
            let allowed: Vec<_> =
                found.into_iter().filter(|address| allows(&allowed, address.ip())).collect();
            if allowed.is_empty() {
                return Err(NoAllowedAddress(name.as_str().to_owned()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The error of a name that resolves to no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no address that may be connected to")]
struct NoAllowedAddress(String);

/// Returns true if a request failed because its name resolves to no address that may be connected to, so that
/// a retry is pointless.
pub fn is_blocked(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        if inner.is::<NoAllowedAddress>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::Acceptor;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    fn gate(allowed: &str, names: Arc<Names>) -> FilteredClients {
        let _ = rustls::crypto::ring::default_provider().install_default();
        FilteredClients::new(AllowedRanges::parse(allowed).unwrap(), names).unwrap()
    }

    /// Starts a server that counts connections and responds with 204.
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
    async fn dns_rebinding_reaches_no_private_address() {
        let (open, reached) = listen("127.0.0.2:0".parse().unwrap()).await;
        let inner = SocketAddr::new("127.0.0.1".parse().unwrap(), open.port());
        let (_, spared) = listen(inner).await;
        // An allowed address, as at registration; then an internal address; then both; then a public address,
        // which `http` may not connect to.
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
        gate.check_url(&url).unwrap();
        for is_reached in [true, false, true, false] {
            let answer = gate.client(&url).post(url.clone()).send().await;
            assert_eq!(answer.is_ok(), is_reached, "{answer:?}");
        }
        let counts = [asked, reached, spared].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [4, 2, 0], "resolved, connected, and connected to the internal address");
    }

    #[tokio::test]
    async fn a_client_for_upgrades_offers_only_http_1() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for (client, offered) in
            [(unfiltered(), &["h2", "http/1.1"][..]), (http1_only(unfiltered()), &["http/1.1"])]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("https://{}/", listener.local_addr().unwrap());
            let hello = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (mut acceptor, mut bytes) = (Acceptor::default(), [0; 4096]);
                loop {
                    let count = socket.read(&mut bytes).await.unwrap();
                    acceptor.read_tls(&mut &bytes[..count]).unwrap();
                    if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error).unwrap() {
                        let protocols = accepted.client_hello().alpn().unwrap().map(<[u8]>::to_vec);
                        return protocols.map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>();
                    }
                }
            };
            let (seen, answer) = tokio::join!(hello, client.build().unwrap().get(url).send());
            assert_eq!(seen, offered);
            assert!(answer.is_err(), "the server hung up");
        }
    }

    #[tokio::test]
    async fn names_below_localhost_lead_to_this_machine_where_it_is_allowed() {
        let (address, count) = listen("127.0.0.1:0".parse().unwrap()).await;
        for (name, allowed, is_reached) in [
            ("pds.localhost", "127.0.0.0/8", true),
            ("PDS.Localhost.", "127.0.0.0/8", true),
            ("pds.localhost", "", false),
        ] {
            let before = count.load(Ordering::SeqCst);
            let url = Url::parse(&format!("http://{name}:{}/", address.port())).unwrap();
            let answer = gate(allowed, Arc::new(look_up)).client(&url).get(url).send().await;
            assert_eq!(answer.as_ref().is_err_and(is_blocked), !is_reached, "{name}: {answer:?}");
            assert_eq!(count.load(Ordering::SeqCst) - before, usize::from(is_reached), "{name}");
        }
        assert!(!is_below_localhost("localhost.example.com") && !is_below_localhost("notlocalhost"));
    }

    #[test]
    fn ip_addresses_in_urls_are_checked_without_a_resolver() {
        let gate = |allowed: &str| gate(allowed, Arc::new(look_up));
        let url = |text: &str| Url::parse(text).unwrap();
        let closed = gate("");
        for refused in [
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://169.254.169.254/",
            "http://8.8.8.8/",
            "ftp://8.8.8.8/",
        ] {
            assert!(closed.check_url(&url(refused)).is_err(), "{refused}");
        }
        assert!(closed.check_url(&url("https://8.8.8.8/")).is_ok());
        assert!(gate("127.0.0.0/8").check_url(&url("http://127.0.0.1:9000/hook")).is_ok());
        assert!(gate("127.0.0.0/8").check_url(&url("http://8.8.8.8/")).is_err());
    }
}
