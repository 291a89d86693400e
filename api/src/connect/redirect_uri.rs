//! Redirect URIs.
//!
//! The redirect carries the connected account, so it must use https. A program on the user's own machine is reached
//! at a loopback address (<https://www.rfc-editor.org/rfc/rfc8252#section-7.3>), and an app on a phone by a scheme of
//! its own (section 7.1), which any other app may claim as well: it must be listed by the organization.

use crate::{connect::policy, http::problem::Issue};
use domain::Mode;
use url::{Host, Url};

/// Schemes that a browser handles itself, which are no app's own.
const BROWSERS: [&str; 9] =
    ["about", "blob", "data", "file", "ftp", "javascript", "view-source", "ws", "wss"];

/// Returns the error of a platform's callback in `field`, or `None`. In test mode http to loopback addresses is
/// allowed.
pub fn check_callback(field: &str, url: &Url, mode: Mode) -> Option<Issue> {
    let message = match url.scheme() {
        "https" => None,
        "http" if mode == Mode::Test && is_loopback(url) => None,
        "http" if mode == Mode::Test => Some("Must be https, or http to localhost"),
        _ => Some("Must be https"),
    };
    judge(field, url, message)
}

/// Returns the error of an address in `field` that users land on after a login, or `None`. An app's own scheme is
/// allowed if the organization listed the address.
pub fn check_landing(field: &str, url: &Url, is_listed: bool) -> Option<Issue> {
    let message = match url.scheme() {
        // The page on which accounts are selected leads there, which its policy must allow.
        "https" if !url.host().is_some_and(|host| policy::can_name(&host)) => {
            Some("Must contain the name of a host")
        }
        "https" => None,
        "http" if is_loopback(url) => None,
        "http" => Some("Must be https, or http to localhost"),
        scheme if BROWSERS.contains(&scheme) => Some("Must be https, or the own scheme of an app"),
        _ if is_listed => None,
        _ => Some("Must be https, or listed under redirect_uris in the extra_config of the social network"),
    };
    judge(field, url, message)
}

fn judge(field: &str, url: &Url, message: Option<&str>) -> Option<Issue> {
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    let message = message
        .or(has_credentials.then_some("Must not contain credentials"))
        .or(url.fragment().map(|_| "Must not contain a fragment"))?;
    Some(Issue::new([field], "invalid_string", message).with("validation", "url"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_goes_anywhere_and_http_stays_on_the_machine() {
        for (url, live, test) in [
            ("https://example.com/back?a=b", true, true),
            ("https://127.0.0.1/", true, true),
            ("http://localhost:3000/back", false, true),
            ("http://app.localhost/back", false, true),
            ("http://127.0.0.1:3000/", false, true),
            ("http://[::1]/", false, true),
            ("http://example.com/", false, false),
            ("http://localhost.example.com/", false, false),
            ("http://10.0.0.1/", false, false),
            ("ftp://localhost/", false, false),
            ("https://ada@example.com/", false, false),
            ("https://:secret@example.com/", false, false),
            ("https://example.com/#top", false, false),
            ("https://example.com/#", false, false),
        ] {
            let url = Url::parse(url).unwrap();
            let is_fine = |mode| check_callback("redirect_uri", &url, mode).is_none();
            assert_eq!((is_fine(Mode::Live), is_fine(Mode::Test)), (live, test), "{url}");
        }
    }

    #[test]
    fn users_land_on_https_their_own_machine_or_a_listed_app() {
        for (url, unlisted, listed) in [
            ("https://example.com/back", true, true),
            ("http://localhost:3000/back", true, true),
            ("http://[::1]:3000/", true, true),
            ("http://example.com/", false, false),
            ("https://127.0.0.1/back", true, true),
            ("https://a;script-src/", false, false),
            ("https://a,b/", false, false),
            ("https://*/", false, false),
            ("https://*.example.com/", false, false),
            ("https://[::1]/", false, false),
            ("myapp://connected", false, true),
            ("com.example.app:/connected", false, true),
            ("myapp://ada@connected", false, false),
            ("myapp://connected#top", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
        ] {
            let url = Url::parse(url).unwrap();
            let is_fine = |is_listed| check_landing("redirect_uri", &url, is_listed).is_none();
            assert_eq!((is_fine(false), is_fine(true)), (unlisted, listed), "{url}");
        }
    }
}
