//! Addresses in the content security policy of the connect pages.
//!
//! A parsed host may mean something else in a policy, as `*.example.com` and `a;sandbox` do. Only letters, digits,
//! hyphens and dots can be written there: <https://www.w3.org/TR/CSP3/#grammardef-host-part>.

use url::{Host, Url};

/// Returns true if a policy can name the host of a URL: a name of plain labels, or an IPv4 address.
pub(crate) fn can_name(host: &Host<&str>) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    match host {
        Host::Domain(name) => name.split('.').all(is_label),
        Host::Ipv4(_) => true,
        Host::Ipv6(_) => false,
    }
}

/// Returns the narrowest source that covers a URL: its origin, or else its scheme. An app's own scheme has no origin.
pub(crate) fn source(url: &Url) -> String {
    let has_origin = matches!(url.scheme(), "http" | "https");
    match url.host() {
        Some(host) if has_origin && can_name(&host) => url.origin().ascii_serialization(),
        _ => format!("{}:", url.scheme()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_origin_or_a_scheme() {
        for (url, expected) in [
            ("https://app.example.com:8443/done?a=b", "https://app.example.com:8443"),
            ("http://localhost:3000/done", "http://localhost:3000"),
            ("http://127.0.0.1/", "http://127.0.0.1"),
            ("http://[::1]:3000/", "http:"),
            ("https://*/", "https:"),
            ("https://a;script-src/", "https:"),
            ("https://a,b/", "https:"),
            ("myapp://connected/a", "myapp:"),
            ("com.example.app:/connected", "com.example.app:"),
        ] {
            assert_eq!(source(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
