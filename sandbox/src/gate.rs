//! The gate of a sandbox: access control before everything that it serves, and the way to the organizations' own
//! sandboxes.

use super::{
    Options, Sandbox,
    actions::{internal, problem},
    control,
};
use anyhow::Context;
use domain::sandbox::ORGS;
use poem::{
    Body, Endpoint, EndpointExt, IntoResponse, Request, Response,
    endpoint::BoxEndpoint,
    http::{HeaderName, HeaderValue, StatusCode, Uri, header},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

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
            return Ok(problem(StatusCode::MISDIRECTED_REQUEST, detail));
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
            return Ok(problem(StatusCode::NOT_FOUND, "there is no such organization"));
        };
        let prefix = format!("{ORGS}{name}");
        if is_control(&path[prefix.len()..]) && !access.admits(&request) {
            return Ok(refusal());
        }
        let inner = self.sandbox.of_org(org).map_err(internal)?;
        // Addresses built from the `Host` header lead back to this organization.
        let (uri, host) = strip_prefix(request.uri(), &prefix, &host).map_err(internal)?;
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
    problem(StatusCode::UNAUTHORIZED, "this takes the sandbox's token")
        .with_header(name, "Basic realm=\"sandbox\"")
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

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
