//! Access of keys with a bound: one line per operation.
//!
//! A key can be limited to an end tenant, a profile or some accounts ([`domain::bound`]). This table says for every
//! operation what that means. An operation that concerns one resource is refused here, before its function runs,
//! unless the resource is within the bound; one that lists or creates applies the bound itself. An operation without a line is refused, and a test compares the
//! table with the document.

use crate::http::problem::{Code, Problem};
use domain::client::Client;
use poem::http::Method;
use store::bounds::Resource;

/// Access of a key with a bound to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing: it concerns the whole organization.
    Organization,
    /// Call it for a resource within the bound, which the first parameter of the path names.
    Of(Resource),
    /// Call it: its function lists and creates only what is within the bound.
    Within,
    /// Call it: a token in the path authorizes it, and no key.
    Token,
}

use Reach::{Of, Organization, Token, Within};
use Resource::{Account, Media, Post, Profile};

/// Access of a key with a bound to each operation.
pub const TABLE: &[(&str, &str, Reach)] = &[
    ("GET", "/account/audit", Organization),
    ("GET", "/account/requests", Organization),
    ("GET", "/account/usage", Organization),
    ("GET", "/api-keys", Organization),
    ("POST", "/api-keys", Organization),
    ("DELETE", "/api-keys/{id}", Organization),
    ("POST", "/api-keys/{id}/rotate", Organization),
    ("POST", "/client-tokens", Within),
    ("DELETE", "/client-tokens/{id}", Within),
    ("GET", "/connect/branding", Organization),
    ("PUT", "/connect/branding", Organization),
    ("GET", "/connect/platforms", Within),
    ("GET", "/events", Within),
    ("GET", "/media", Within),
    ("POST", "/media/import", Within),
    ("GET", "/media/settings", Organization),
    ("PATCH", "/media/settings", Organization),
    ("POST", "/media/upload", Within),
    ("DELETE", "/media/{id}", Of(Media)),
    ("GET", "/media/{id}", Of(Media)),
    ("PATCH", "/media/{id}", Of(Media)),
    ("POST", "/media/{id}/confirm", Of(Media)),
    ("GET", "/posts", Within),
    ("POST", "/posts", Within),
    ("POST", "/posts/batch", Within),
    ("POST", "/posts/validate", Within),
    ("DELETE", "/posts/{id}", Of(Post)),
    ("GET", "/posts/{id}", Of(Post)),
    ("PATCH", "/posts/{id}", Of(Post)),
    ("GET", "/posts/{id}/analytics", Of(Post)),
    ("POST", "/posts/{id}/retry", Of(Post)),
    ("PATCH", "/posts/{id}/targets/{target_id}", Of(Post)),
    ("POST", "/posts/{id}/targets/{target_id}/retry", Of(Post)),
    ("POST", "/posts/{id}/targets/{target_id}/unpublish", Of(Post)),
    ("GET", "/posts/{id}/timeline", Of(Post)),
    ("GET", "/profiles", Within),
    ("POST", "/profiles", Within),
    ("DELETE", "/profiles/{id}", Of(Profile)),
    ("GET", "/profiles/{id}", Of(Profile)),
    ("PATCH", "/profiles/{id}", Of(Profile)),
    ("GET", "/scheduling/find-slot", Within),
    ("GET", "/scheduling/slots", Within),
    ("PUT", "/scheduling/slots", Within),
    ("GET", "/social-accounts", Within),
    ("POST", "/social-accounts/bluesky/connect", Within),
    ("GET", "/social-accounts/pending/{token}", Token),
    ("POST", "/social-accounts/pending/{token}/finalize", Token),
    ("DELETE", "/social-accounts/{id}", Of(Account)),
    ("GET", "/social-accounts/{id}", Of(Account)),
    ("PATCH", "/social-accounts/{id}", Of(Account)),
    ("GET", "/social-accounts/{id}/capabilities", Of(Account)),
    ("GET", "/social-accounts/{id}/health", Of(Account)),
    ("GET", "/social-accounts/{id}/imported-posts", Of(Account)),
    ("GET", "/social-accounts/{id}/imports", Of(Account)),
    ("POST", "/social-accounts/{id}/imports", Of(Account)),
    ("GET", "/social-accounts/{id}/imports/{import_id}", Of(Account)),
    ("GET", "/social-accounts/{id}/limits", Of(Account)),
    ("GET", "/social-accounts/{id}/options/{kind}", Of(Account)),
    ("POST", "/social-accounts/{id}/retry-failed", Of(Account)),
    ("GET", "/social-networks", Organization),
    ("POST", "/social-networks", Organization),
    ("DELETE", "/social-networks/{id}", Organization),
    ("GET", "/social-networks/{id}", Organization),
    ("PATCH", "/social-networks/{id}", Organization),
    ("POST", "/social-networks/{platform}/auth-url", Within),
    ("GET", "/team", Organization),
    ("POST", "/team", Organization),
    ("DELETE", "/team/{id}", Organization),
    ("PATCH", "/team/{id}", Organization),
    ("GET", "/webhooks", Organization),
    ("POST", "/webhooks", Organization),
    ("DELETE", "/webhooks/{id}", Organization),
    ("GET", "/webhooks/{id}", Organization),
    ("PATCH", "/webhooks/{id}", Organization),
    ("GET", "/webhooks/{id}/deliveries", Organization),
    ("GET", "/webhooks/{id}/deliveries/{delivery_id}", Organization),
    ("POST", "/webhooks/{id}/deliveries/{delivery_id}/redeliver", Organization),
    ("POST", "/webhooks/{id}/replay", Organization),
    ("POST", "/webhooks/{id}/test", Organization),
];

/// The operations that a client token can call, on a page of any origin.
const FOR_CLIENTS: [(&str, &str); 6] = [
    ("GET", "/connect/platforms"),
    ("GET", "/social-accounts"),
    ("POST", "/social-accounts/bluesky/connect"),
    ("GET", "/social-accounts/pending/{token}"),
    ("POST", "/social-accounts/pending/{token}/finalize"),
    ("POST", "/social-networks/{platform}/auth-url"),
];

/// Returns true if a client token can call the operation at a path, relative to the API's prefix.
pub(crate) fn is_for_clients(method: &Method, path: &str) -> bool {
    line(method, path).is_some_and(|(method, path, _)| FOR_CLIENTS.contains(&(*method, *path)))
}

/// Returns the line of an operation.
fn line(method: &Method, path: &str) -> Option<&'static (&'static str, &'static str, Reach)> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let path: Vec<_> = path.split('/').collect();
    let is_parameter = |segment: &&str| segment.starts_with('{');
    let lines = TABLE.iter().filter(|(known, _, _)| *known == method.as_str());
    let fitting = lines.filter_map(|line| {
        let pattern: Vec<_> = line.1.split('/').collect();
        let mut segments = pattern.iter().zip(&path);
        let fits = pattern.len() == path.len()
            && segments.all(|(known, found)| is_parameter(known) || known == found);
        fits.then(|| (pattern.iter().map(is_parameter).collect::<Vec<_>>(), line))
    });
    // As in the router, a literal takes precedence over a parameter.
    fitting.min_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, line)| line)
}

impl Reach {
    /// Returns the reach of the operation at a path, relative to the API's prefix: of one that is called, or the
    /// path of a document. HEAD is GET.
    pub fn of(method: &Method, path: &str) -> Self {
        line(method, path).map_or(Organization, |(_, _, reach)| *reach)
    }
}

/// 403: the request would leave the bound of the caller's key.
pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
    Problem::new(Code::Forbidden, detail)
}

/// The resource, as its own module names it in problems.
pub(crate) fn name(resource: Resource) -> &'static str {
    match resource {
        Account => "social account",
        Post => "post",
        Media => "media asset",
        Profile => "profile",
    }
}

/// Checks that the caller's client token, if it is one, connects accounts of a platform.
///
/// # Errors
///
/// `forbidden` if it does not.
pub(crate) fn check_platform(client: Option<&Client>, platform: &str) -> Result<(), Problem> {
    if client.is_none_or(|client| client.may_connect(platform)) {
        return Ok(());
    }
    Err(forbidden(format!("this client token was not created for {platform}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reach_of_a_path_is_its_operations() {
        for (method, path, reach) in [
            (Method::GET, "/posts/7", Of(Post)),
            (Method::HEAD, "/posts/7", Of(Post)),
            (Method::POST, "/posts/batch", Within),
            (Method::POST, "/posts/7/targets/8/retry", Of(Post)),
            (Method::POST, "/media/import", Within),
            (Method::GET, "/media/import", Of(Media)),
            (Method::GET, "/media/{id}", Of(Media)),
            (Method::GET, "/social-accounts/pending/token", Token),
            (Method::GET, "/social-accounts/pending/health", Token),
            (Method::GET, "/social-accounts/7/health", Of(Account)),
            (Method::PUT, "/posts/7", Organization),
            (Method::GET, "/posts/7/", Organization),
            (Method::GET, "/unknown", Organization),
            (Method::GET, "", Organization),
        ] {
            assert_eq!(Reach::of(&method, path), reach, "{method} {path}");
        }
    }
}
