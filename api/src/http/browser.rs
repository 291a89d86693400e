//! Facts that a browser tells about itself: the site that sent a request, and cookies.

use crate::{app::App, http::headers};
use poem::Request;
use std::str;
use url::{Host, Url};

/// The header in which browsers report which site a request came from.
const SEC_FETCH_SITE: &str = "Sec-Fetch-Site";
/// How a browser made the request: by navigation, or by a script. <https://www.w3.org/TR/fetch-metadata/>
const SEC_FETCH_MODE: &str = "Sec-Fetch-Mode";

/// Maximum length of a `User-Agent`, in characters.
const MAX_AGENT_LENGTH: usize = 200;

/// True if a form of a page of this origin sent the request, by its `Origin` and, if present, `Sec-Fetch-Site` and
/// `Sec-Fetch-Mode`. All current browsers send `Origin` with a form; a request without it is refused. So is one that
/// a script sent: of our scripts only the one that uploads files does that, but foreign code in a page could.
pub fn is_ours(request: &Request) -> bool {
    is_of_our_pages(request) && is_navigation(request)
}

/// True if a form or a script of a page of this origin sent the request.
pub fn is_of_our_pages(request: &Request) -> bool {
    let headers = request.headers();
    if headers::lines(headers, SEC_FETCH_SITE).any(|site| site != "same-origin") {
        return false;
    }
    let (Ok(Some(origin)), Ok(Some(host))) =
        (headers::text(headers, "Origin"), headers::text(headers, "Host"))
    else {
        return false;
    };
    // Only a proxy in front knows the scheme, so host and port are compared.
    let Ok(origin) = Url::parse(origin) else { return false };
    let same = |scheme: &str| {
        Url::parse(&format!("{scheme}://{host}")).is_ok_and(|ours| ours.origin() == origin.origin())
    };
    same("http") || same("https")
}

/// True if the request was navigated to from another origin.
pub fn is_cross_site(request: &Request) -> bool {
    headers::lines(request.headers(), SEC_FETCH_SITE).any(|site| site != "same-origin" && site != "none")
}

/// True if a cookie may be sent over http, on loopback only. Otherwise its name has the prefix `__Host-`, by which
/// browsers bind it to this host.
pub fn is_plain(app: &App, request: &Request) -> bool {
    let is_https = Url::parse(&app.config.base_url).is_ok_and(|base| base.scheme() == "https");
    let host = headers::text(request.headers(), "Host").ok().flatten();
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
    let text = headers::lines(request.headers(), "User-Agent").next()?;
    Some(text.chars().take(MAX_AGENT_LENGTH).collect()).filter(|text: &String| !text.is_empty())
}

/// True unless a script sent the request: `live.js`, which asks for changes while nobody does anything.
pub fn is_navigation(request: &Request) -> bool {
    headers::lines(request.headers(), SEC_FETCH_MODE).all(|mode| mode == "navigate")
}

/// The value of a cookie.
pub fn cookie<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    // Other software on the host may have set cookies that are not UTF-8, in the same line.
    let pairs = headers::bytes(request.headers(), "Cookie").flat_map(|line| line.split(|byte| *byte == b';'));
    let mut texts = pairs.filter_map(|pair| {
        let text = pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        str::from_utf8(text).ok()
    });
    texts.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem::http::HeaderValue;

    #[test]
    fn a_cookie_is_found_beside_others_that_cannot_be_read() {
        let line = HeaderValue::from_bytes(b"theme=d\xe9j\xe0; zone=Europe/Paris;other=1").unwrap();
        let request = Request::builder().header("cookie", line).header("cookie", "zone=UTC; late=1").finish();
        for (name, expected) in
            [("zone", Some("Europe/Paris")), ("late", Some("1")), ("theme", None), ("zon", None)]
        {
            assert_eq!(cookie(&request, name), expected, "{name}");
        }
    }

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
