//! The way to every address that a user gave us.
//!
//! A name is resolved and its addresses are judged at the moment of connecting, so that a name that
//! changes its answer (DNS rebinding) gains nothing. No redirects, no proxy from the environment, and
//! limits on time and size.

use domain::{Mode, address::Opened};
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{net::IpAddr, sync::Arc, time::Duration};
use url::{Host, Url};

/// Clients for users' addresses, one per mode.
pub struct Egress {
    live: Gate,
    test: Gate,
}

struct Gate {
    client: Client,
    opened: Arc<Opened>,
}

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

impl Egress {
    /// Lets requests through to public addresses, and in each mode to what was opened for it.
    ///
    /// # Errors
    ///
    /// When no TLS provider is installed in this process.
    pub fn new(live: Opened, test: Opened) -> reqwest::Result<Self> {
        Ok(Self { live: Gate::new(live)?, test: Gate::new(test)? })
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
        Ok(&gate.client)
    }
}

impl Gate {
    #[expect(clippy::disallowed_methods, reason = "this is the client that the lint points to")]
    fn new(opened: Opened) -> reqwest::Result<Self> {
        let opened = Arc::new(opened);
        let client = Client::builder()
            .dns_resolver(Judge(opened.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .user_agent("Fanfare-Webhooks/1.0")
            .build()?;
        Ok(Self { client, opened })
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
            "http" if literal.is_none_or(|address| self.opened.holds(address)) => Ok(()),
            _ => Err("only https is sent to".to_owned()),
        }
    }
}

/// Resolves names, and forgets the addresses that may not be connected to.
struct Judge(Arc<Opened>);

impl Resolve for Judge {
    fn resolve(&self, name: Name) -> Resolving {
        let opened = self.0.clone();
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<_> = found.into_iter().filter(|address| opened.allows(address.ip())).collect();
            if allowed.is_empty() {
                return Err(format!("{} has no public address", name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_written_out_are_judged_without_a_resolver() {
        let gate = |opened: &str| Gate::new(Opened::parse(opened).unwrap()).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
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
