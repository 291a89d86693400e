//! Validation of URLs that this service will call: webhooks and media imports.
//!
//! URLs are checked here for early feedback and again at each request, since a host can resolve differently
//! later. Only `https` to the public internet is allowed; in private ranges that the operator allowed, `http`
//! is allowed too. A host that does not resolve at the moment is accepted: an endpoint may be registered before
//! its DNS records, and a resolver's fault is not the caller's.

use crate::http::problem::Issue;
use domain::ip_ranges::{AllowedRanges, is_below_localhost};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};
use tokio::{net::lookup_host, time::timeout};
use url::{Host, Url};

/// Time limit for resolving a host.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the error of a well-formed URL, or `None`.
pub async fn check(url: &Url, opened: &AllowedRanges) -> Option<Issue> {
    let message = match url.scheme() {
        "https" | "http" if url.host().is_none() => "Must name a host".to_owned(),
        "https" | "http" => refusal(url.scheme(), &addresses(url).await, opened)?,
        scheme => format!("Must be an https URL, not {scheme}"),
    };
    Some(Issue::new(["url"], "invalid_string", message).with("validation", "url"))
}

/// Returns an error message if an IP address is not allowed, or `None`. All must be allowed, since any of them
/// may be connected to. There are none if the host does not resolve.
fn refusal(scheme: &str, addresses: &[IpAddr], opened: &AllowedRanges) -> Option<String> {
    if addresses.iter().any(|address| !opened.allows(*address)) {
        // Without the address, or names of the installation's own network could be resolved here.
        let message =
            "Must lead to the public internet; operators allow further ranges with FANFARE_EGRESS_ALLOW";
        return Some(message.to_owned());
    }
    let is_opened = !addresses.is_empty() && addresses.iter().all(|address| opened.contains(*address));
    (scheme != "https" && !is_opened).then(|| "Must be an https URL".to_owned())
}

/// Resolves the host; nothing if it does not resolve, or not in time.
async fn addresses(url: &Url) -> Vec<IpAddr> {
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return vec![address.into()],
        Some(Host::Ipv6(address)) => return vec![address.into()],
        Some(Host::Domain(name)) if is_below_localhost(name) => {
            return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        }
        Some(Host::Domain(name)) => name,
        None => return Vec::new(),
    };
    let port = url.port_or_known_default().unwrap_or(443);
    match timeout(LOOKUP_TIMEOUT, lookup_host((name, port))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_public_internet_and_opened_ranges_are_reached() {
        let (closed, opened) = (AllowedRanges::default(), AllowedRanges::loopback());
        for (url, when_closed, when_opened) in [
            ("https://8.8.8.8/hook", true, true),
            ("http://8.8.8.8/hook", false, false),
            ("ftp://8.8.8.8/hook", false, false),
            ("https://127.0.0.1/hook", false, true),
            ("http://127.0.0.1:9000/hook", false, true),
            ("http://localhost:9000/hook", false, true),
            ("https://[::1]/hook", false, true),
            ("https://[::ffff:127.0.0.1]/hook", false, true),
            ("https://2130706433/hook", false, true),
            ("https://0x7f.1/hook", false, true),
            ("https://10.0.0.1/hook", false, false),
            ("https://169.254.169.254/latest", false, false),
            ("https://hooks.localhost/hook", false, true),
            ("https://no-such-host.invalid/hook", true, true),
            ("http://no-such-host.invalid/hook", false, false),
        ] {
            let parsed = Url::parse(url).unwrap();
            for (opened, expected) in [(&closed, when_closed), (&opened, when_opened)] {
                let issue = check(&parsed, opened).await;
                assert_eq!(issue.is_none(), expected, "{url}: {issue:?}");
            }
        }
        let refused = refusal("https", &[Ipv4Addr::LOCALHOST.into()], &closed).unwrap();
        assert!(refused.contains("FANFARE_EGRESS_ALLOW"), "{refused}");
    }

    #[test]
    fn one_bad_address_of_several_is_enough() {
        let opened = AllowedRanges::loopback();
        let [public, own, private]: [IpAddr; 3] =
            ["8.8.8.8", "127.0.0.1", "10.0.0.1"].map(|text| text.parse().unwrap());
        assert!(refusal("https", &[public, own], &opened).is_none());
        assert!(refusal("http", &[public, own], &opened).is_some());
        assert!(refusal("http", &[own], &opened).is_none());
        let refused = refusal("https", &[public, private], &opened).unwrap();
        assert!(!refused.contains("10.0.0.1"), "the error contains the resolved address: {refused}");
    }
}
