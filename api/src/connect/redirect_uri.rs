//! Redirect URIs.
//!
//! The redirect carries the connected account, so it must use https. In test mode http to loopback addresses
//! is allowed.

use crate::http::problem::Issue;
use domain::Mode;
use url::{Host, Url};

/// Returns the error of the redirect URI in `field`, or `None`.
pub fn check(field: &str, url: &Url, mode: Mode) -> Option<Issue> {
    let message = match url.scheme() {
        "https" => None,
        "http" if mode == Mode::Test && is_loopback(url) => None,
        "http" if mode == Mode::Test => Some("Must be https, or http to localhost"),
        _ => Some("Must be https"),
    };
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
            let is_fine = |mode| check("redirect_uri", &url, mode).is_none();
            assert_eq!((is_fine(Mode::Live), is_fine(Mode::Test)), (live, test), "{url}");
        }
    }
}
