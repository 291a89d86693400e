//! Access to a sandbox, as its operator configures it.
//!
//! A sandbox that listens on loopback is open to its machine. One that others reach has a token: control
//! requests have to present it, and each organization has its own accounts, posts, settings and journal below
//! an address that is signed with it. So no organization finds another's accounts or guesses an address. A
//! request is answered only under a host name of the sandbox, so that a foreign DNS entry that points here
//! (DNS rebinding) reaches nothing. [`super::gate`] applies this to requests.

use base64::{Engine, prelude::BASE64_STANDARD};
use domain::{ip_ranges::AllowedRanges, sandbox};
use poem::{Request, http::header};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use url::{Host, Url};

/// Access control of a sandbox. The default suits one that listens on loopback.
#[derive(Clone, Default)]
pub struct Access {
    /// Secret that control requests have to present and that signs organizations' addresses. Without one,
    /// only this machine controls the sandbox, and all organizations share their accounts.
    pub token: Option<String>,
    /// Address that clients use; its host name is accepted in the `Host` header.
    pub url: Option<Url>,
    /// Prefixes of media addresses that are fetched although they are not public: the API's, the bucket's.
    /// `None` for addresses of this machine.
    pub media: Option<Vec<Url>>,
}

impl Access {
    /// Returns whether a `Host` header names this sandbox. A foreign DNS entry can't have
    /// an IP address, `localhost` or a name without a dot.
    pub(super) fn is_own_name(&self, host: &str) -> bool {
        let Ok(url) = Url::parse(&format!("http://{host}/")) else { return false };
        match url.host() {
            Some(Host::Domain(name)) => {
                let is_own = self.url.as_ref().is_some_and(|own| own.host_str() == Some(name));
                is_own || name.ends_with(".localhost") || !name.contains('.')
            }
            address => address.is_some(),
        }
    }

    /// Returns whether a request may control the sandbox.
    pub(super) fn admits(&self, request: &Request) -> bool {
        let is_loopback = |ip: Option<IpAddr>| ip.is_some_and(|ip| ip.is_loopback());
        if is_loopback(request.local_addr().as_socket_addr().map(|address| address.ip())) {
            return true;
        }
        let Some(token) = &self.token else {
            let is_proxied =
                ["forwarded", "x-forwarded-for"].iter().any(|name| request.header(name).is_some());
            let peer = request.remote_addr().as_socket_addr().map(|address| address.ip());
            return !is_proxied && is_loopback(peer);
        };
        // Digests are compared, so that the time taken reveals nothing about the token.
        presented_token(request).is_some_and(|given| Sha256::digest(given) == Sha256::digest(token))
    }

    /// Returns the organization of a signed name.
    pub(super) fn org(&self, name: &str) -> Option<String> {
        sandbox::verify(self.token.as_ref()?, name).map(|org| org.0.to_string())
    }

    /// Returns the addresses that a medium may be fetched from.
    pub(super) fn media(&self, url: &Url) -> FetchPolicy {
        match &self.media {
            None => FetchPolicy::Restricted(AllowedRanges::loopback()),
            Some(places) if places.iter().any(|place| url.as_str().starts_with(place.as_str())) => {
                FetchPolicy::Unrestricted
            }
            Some(_) => FetchPolicy::Restricted(AllowedRanges::default()),
        }
    }
}

/// Addresses that a fetch may connect to.
pub(super) enum FetchPolicy {
    /// Any address: the URL was configured.
    Unrestricted,
    /// Public addresses and these.
    Restricted(AllowedRanges),
}

/// Returns the token of a request: a bearer token, or the password of basic authorization.
fn presented_token(request: &Request) -> Option<String> {
    let (scheme, value) = request.header(header::AUTHORIZATION)?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let credentials = String::from_utf8(BASE64_STANDARD.decode(value.trim()).ok()?).ok()?;
    let (_, password) = credentials.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_configured_host_names_reach_a_sandbox() {
        let access = Access { url: Url::parse("https://sandbox.example.com").ok(), ..Access::default() };
        for host in [
            "127.0.0.1:8090",
            "[::1]:8090",
            "192.0.2.7",
            "localhost",
            "localhost:8090",
            "a.localhost",
            "sandbox:8090",
            "sandbox.example.com",
        ] {
            assert!(access.is_own_name(host), "{host}");
        }
        for host in ["evil.example", "evil.example:8090", "sandbox.example.com.evil.example", "a b", ""] {
            assert!(!access.is_own_name(host), "{host}");
        }
        assert!(!Access::default().is_own_name("sandbox.example.com"));
    }
}
