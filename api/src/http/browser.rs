//! What a browser tells about itself: which site sent a request, and cookies.

use crate::app::App;
use poem::{
    Request,
    http::{HeaderName, header},
};
use url::{Host, Url};

/// The header in which browsers report which site a request came from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How a browser made the request: by navigation, or by a script. <https://www.w3.org/TR/fetch-metadata/>
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Maximum length of a `User-Agent`, in characters.
const MAX_AGENT_LENGTH: usize = 200;

/// True if a form of a page of this origin sent the request, by its `Origin` and, if present, `Sec-Fetch-Site` and
/// `Sec-Fetch-Mode`. All current browsers send `Origin` with a form; a request without it is refused. So is one that
/// a script sent: of our scripts only the one that uploads files does that, but foreign code in a page could.
pub(crate) fn is_ours(request: &Request) -> bool {
    let mode = request.headers().get(SEC_FETCH_MODE).and_then(|value| value.to_str().ok());
    is_of_our_pages(request) && mode.is_none_or(|mode| mode == "navigate")
}

/// True if a form or a script of a page of this origin sent the request.
pub(crate) fn is_of_our_pages(request: &Request) -> bool {
    let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    if text(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin") {
        return false;
    }
    let (Some(origin), Some(host)) = (text(header::ORIGIN), text(header::HOST)) else { return false };
    // Only a proxy in front knows the scheme, so host and port are compared.
    let Ok(origin) = Url::parse(origin) else { return false };
    let same = |scheme: &str| {
        Url::parse(&format!("{scheme}://{host}")).is_ok_and(|ours| ours.origin() == origin.origin())
    };
    same("http") || same("https")
}

/// True if the request was navigated to from another origin.
pub(crate) fn is_cross_site(request: &Request) -> bool {
    let site = request.headers().get(SEC_FETCH_SITE).and_then(|value| value.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
}

/// True if a cookie may be sent over http, on loopback only. Otherwise its name has the prefix `__Host-`, by which
/// browsers bind it to this host.
pub(crate) fn is_plain(app: &App, request: &Request) -> bool {
    let is_https = Url::parse(&app.config.base_url).is_ok_and(|base| base.scheme() == "https");
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| Url::parse(&format!("http://{host}")).ok());
    !is_https
        && match host.as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

/// `User-Agent` of a request, shortened; `None` without the header.
pub(crate) fn agent(request: &Request) -> Option<String> {
    let text = request.headers().get(header::USER_AGENT)?.to_str().ok()?;
    Some(text.chars().take(MAX_AGENT_LENGTH).collect()).filter(|text: &String| !text.is_empty())
}

/// True unless a script sent the request: `live.js`, which asks for changes while nobody does anything.
pub(crate) fn is_navigation(request: &Request) -> bool {
    let mode = request.headers().get(SEC_FETCH_MODE).and_then(|mode| mode.to_str().ok());
    mode.is_none_or(|mode| mode == "navigate")
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let lines = request.headers().get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_origin_send_forms() {
        for (origin, site, is_fine) in [
            (Some("http://localhost:8080"), Some("same-origin"), true),
            (Some("http://localhost:8080"), None, true),
            (Some("https://localhost:8080"), Some("same-origin"), true),
            (Some("http://localhost:8090"), None, false),
            (Some("http://localhost:8080"), Some("same-site"), false),
            (Some("http://localhost:8080"), Some("cross-site"), false),
            (Some("http://localhost:8080"), Some("none"), false),
            (Some("null"), Some("same-origin"), false),
            (Some("http://localhost.evil.example:8080"), None, false),
            (None, Some("same-origin"), false),
            (None, None, false),
        ] {
            let mut request = Request::builder().header("host", "localhost:8080");
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            if let Some(site) = site {
                request = request.header("sec-fetch-site", site);
            }
            assert_eq!(is_ours(&request.finish()), is_fine, "{origin:?} {site:?}");
        }
        for (mode, is_fine) in
            [("navigate", true), ("cors", false), ("same-origin", false), ("no-cors", false)]
        {
            let request =
                Request::builder().header("host", "localhost:8080").header("origin", "http://localhost:8080");
            let request = request.header("sec-fetch-site", "same-origin").header("sec-fetch-mode", mode);
            assert_eq!(is_ours(&request.finish()), is_fine, "{mode}");
        }
    }
}
