//! Access control of a sandbox.
//!
//! A sandbox that listens on loopback is open to its machine. One that others reach has a token: control
//! requests have to present it, and each organization has its own accounts, posts, settings and journal below
//! an address that is signed with it. So no organization finds another's accounts or guesses an address. A
//! request is answered only under a host name of the sandbox, so that a foreign DNS entry that points here
//! (DNS rebinding) reaches nothing.

use crate::{Options, Sandbox, control};
use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::{
    ip_ranges::AllowedRanges,
    sandbox::{self, ORGS},
};
use poem::{
    Body, Endpoint, EndpointExt, IntoResponse, Request, Response,
    endpoint::BoxEndpoint,
    http::{HeaderName, HeaderValue, StatusCode, Uri, header},
};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};
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
    fn is_own_name(&self, host: &str) -> bool {
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
    fn admits(&self, request: &Request) -> bool {
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
    fn org(&self, name: &str) -> Option<String> {
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

/// The organizations' own sandboxes, opened at first use.
#[derive(Default)]
pub(super) struct Orgs(Mutex<HashMap<String, Arc<BoxEndpoint<'static, Response>>>>);

/// Endpoint that checks access before everything that a sandbox serves.
pub(super) struct AccessControl<E> {
    pub(super) sandbox: Sandbox,
    pub(super) inner: E,
}

impl<E: Endpoint> Endpoint for AccessControl<E> {
    type Output = Response;

    async fn call(&self, mut request: Request) -> poem::Result<Response> {
        let access = &self.sandbox.0.access;
        let host = request.header(header::HOST).unwrap_or("localhost").to_owned();
        if !access.is_own_name(&host) {
            let detail = format!("the sandbox is not known as {host}");
            return Ok(control::problem(StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let path = request.uri().path().to_owned();
        if path == "/_health" {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let Some(rest) = path.strip_prefix(ORGS) else {
            let needs_token = access.token.is_some() || is_control(&path);
            if needs_token && !access.admits(&request) {
                return Ok(refusal());
            }
            return Ok(self.inner.get_response(request).await);
        };
        let (name, _) = rest.split_once('/').unwrap_or((rest, ""));
        let Some(org) = access.org(name) else {
            return Ok(control::problem(StatusCode::NOT_FOUND, "there is no such organization"));
        };
        let prefix = format!("{ORGS}{name}");
        if is_control(&path[prefix.len()..]) && !access.admits(&request) {
            return Ok(refusal());
        }
        let inner = self.sandbox.of_org(org).map_err(control::internal)?;
        // Addresses built from the `Host` header lead back to this organization.
        let (uri, host) = strip_prefix(request.uri(), &prefix, &host).map_err(control::internal)?;
        *request.uri_mut() = uri;
        request.headers_mut().insert(header::HOST, host);
        Ok(prefix_links(inner.get_response(request).await, &prefix).await)
    }
}

impl Sandbox {
    /// Returns the endpoint of an organization's own sandbox.
    fn of_org(&self, org: String) -> anyhow::Result<Arc<BoxEndpoint<'static, Response>>> {
        let mut orgs = self.0.orgs.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = orgs.get(&org) {
            return Ok(open.clone());
        }
        let data = self.0.data.as_ref().map(|folder| folder.join("orgs").join(&org));
        let own =
            Self::open_with(Options { data, clock: self.0.clock, app: self.0.app }, self.0.access.clone())?;
        let open = Arc::new(control::routes(own).map_to_response().boxed());
        orgs.insert(org, open.clone());
        Ok(open)
    }
}

/// Returns whether a path controls the sandbox or shows all of it, instead of being a platform's.
fn is_control(path: &str) -> bool {
    let path = control::decode(path);
    let path = path.trim_start_matches('/');
    path.is_empty()
        || (path.starts_with('_') && !["_media/", "_assets/"].iter().any(|open| path.starts_with(open)))
}

/// Returns a request's address without the prefix, and the `Host` header with it.
fn strip_prefix(uri: &Uri, prefix: &str, host: &str) -> anyhow::Result<(Uri, HeaderValue)> {
    let all = uri.path_and_query().map_or("/", |all| all.as_str());
    let rest = all.strip_prefix(prefix).unwrap_or(all);
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    Ok((rest.parse().context("an address")?, HeaderValue::from_str(&format!("{host}{prefix}"))?))
}

/// Prepends the prefix to a response's links that begin at the root.
async fn prefix_links(mut response: Response, prefix: &str) -> Response {
    let headers = response.headers_mut();
    let within = |place: &HeaderValue| {
        let place = place.to_str().ok().filter(|place| place.starts_with('/'))?;
        HeaderValue::from_str(&format!("{prefix}{place}")).ok()
    };
    if let Some(place) = headers.get(header::LOCATION).and_then(within) {
        headers.insert(header::LOCATION, place);
    }
    if !response.content_type().is_some_and(|mime| mime.starts_with("text/html")) {
        return response;
    }
    let Ok(mut page) = response.take_body().into_string().await else { return response };
    for attribute in ["href", "src", "action"] {
        page = page.replace(&format!("{attribute}=\"/"), &format!("{attribute}=\"{prefix}/"));
    }
    response.set_body(Body::from(page));
    response
}

fn refusal() -> Response {
    let name: HeaderName = header::WWW_AUTHENTICATE;
    control::problem(StatusCode::UNAUTHORIZED, "this takes the sandbox's token")
        .with_header(name, "Basic realm=\"sandbox\"")
        .into_response()
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

    #[test]
    fn paths_outside_the_platforms_are_control_paths() {
        for path in ["", "/", "//", "/%2F", "/_journal", "/%5Fjournal", "//_settings", "/_orgs/a/_media/b"] {
            assert!(is_control(path), "{path}");
        }
        for path in
            ["/x/ada", "/api.x.com/2/tweets", "/_media/1", "/_assets/style.css", "/xrpc/_", "/bsky.app/_"]
        {
            assert!(!is_control(path), "{path}");
        }
    }
}
