//! Authentication and counting of a request, in one statement (`store::usage`).
//!
//! A text that is no key is refused without a look-up. Unknown keys count by IP address and only they are refused
//! when there are too many, so that nobody can shut out callers with a key who share their address.

use crate::{
    app::App,
    http::{
        problem::{Code, Problem},
        rate_limits::{DASHBOARD, LOGIN, MCP, RateLimitHeaders, SIGN_IN, UNKNOWN_KEYS},
        request_log,
    },
};
use chrono::{DateTime, Utc};
use domain::Owner;
use poem::{Addr, Request, http::Method};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Once,
};
use store::{
    keys::{self, EndedClient, Key},
    usage::{self, Bucket, Level},
};
use tracing::warn;

/// The header in which proxies list the addresses that a request came through.
const FORWARDED: &str = "x-forwarded-for";
/// Operations that need no quota, as methods and paths: reading the usage, and ending an access that was lost. Who has a
/// leaked key can use up the quota, and must not keep the key by that.
const UNMETERED: [(Method, &str); 4] = [
    (Method::GET, "/account/usage"),
    (Method::DELETE, "/api-keys/{id}"),
    (Method::DELETE, "/client-tokens/{id}"),
    (Method::DELETE, "/team/{id}"),
];

/// Returns whether an operation needs quota. `path` is relative to the API's prefix; it may be the pattern.
pub(crate) fn is_metered(method: &Method, path: &str) -> bool {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let fits = |pattern: &str| match pattern.strip_suffix("{id}") {
        Some(parent) => path.strip_prefix(parent).is_some_and(|id| !id.is_empty() && !id.contains('/')),
        None => path == pattern,
    };
    !UNMETERED.iter().any(|(known, pattern)| known == method && fits(pattern))
}

/// Authenticates a request and counts the call, in one database round trip. `path` is relative to the
/// API's prefix.
///
/// # Errors
///
/// `unauthorized`, `rate_limited` or `quota_exceeded`.
pub(crate) async fn authenticate(
    app: &App,
    request: &Request,
    token: &str,
    method: &Method,
    path: &str,
) -> Result<Key, Problem> {
    if !keys::is_well_formed(token) {
        return Err(Problem::invalid_key());
    }
    let now = (app.now)();
    let buckets = app.config.limits.of(method, path);
    let quotas = is_metered(method, path).then(|| app.config.plans.quotas());
    let admission = usage::authenticate_and_count(&app.db, token, &buckets, quotas, now).await?;
    let Some(admission) = admission else {
        let detail = match keys::ended_client(&app.db, token).await? {
            Some(EndedClient::Expired) => "the client token has expired; create another one",
            Some(EndedClient::Revoked) => "the client token was revoked",
            None => {
                let level = level(app, request, UNKNOWN_KEYS).await?;
                refuse(&[level], now)?;
                return Err(Problem::invalid_key());
            }
        };
        return Err(Problem::unauthorized(detail));
    };
    request_log::note(request, &admission.key);
    check(request, &admission.levels, now)?;
    if admission.is_over_quota {
        return Err(app.config.plans.of(&admission.plan).refuse(admission.requests));
    }
    Ok(admission.key)
}

/// Counts a request of the dashboard by organization and mode: one that acts like the operation that it stands for,
/// one that only shows a page in a bucket of its own and in no quota, because pages update themselves.
///
/// # Errors
///
/// `rate_limited` or `quota_exceeded`.
pub(crate) async fn count_session(
    app: &App,
    request: &Request,
    owner: Owner,
    operation: Option<(&Method, &str)>,
) -> Result<(), Problem> {
    let now = (app.now)();
    let buckets = match operation {
        Some((method, path)) => app.config.limits.of(method, path),
        None => vec![app.config.limits.in_force(DASHBOARD)],
    };
    let quotas =
        operation.is_some_and(|(method, path)| is_metered(method, path)).then(|| app.config.plans.quotas());
    let admission = usage::count_owner(&app.db, owner, &buckets, quotas, now).await?;
    let admission = admission.ok_or_else(|| Problem::not_found("organization"))?;
    check(request, &admission.levels, now)?;
    if admission.is_over_quota {
        return Err(app.config.plans.of(&admission.plan).refuse(admission.requests));
    }
    Ok(())
}

/// Counts an MCP request by IP address, before its key is read.
///
/// # Errors
///
/// `rate_limited`.
pub(crate) async fn count_mcp(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, MCP).await
}

/// Counts a request of the connect flow, which needs no API key, by IP address.
///
/// # Errors
///
/// `rate_limited`.
pub(crate) async fn count_login(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, LOGIN).await
}

/// Counts an attempt to sign in to the dashboard by IP address.
///
/// # Errors
///
/// `rate_limited`.
pub(crate) async fn count_sign_in(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, SIGN_IN).await
}

async fn count(app: &App, request: &Request, bucket: Bucket) -> Result<(), Problem> {
    let level = level(app, request, bucket).await?;
    check(request, &[level], (app.now)())
}

/// Counts a request by IP address.
async fn level(app: &App, request: &Request, bucket: Bucket) -> Result<Level, Problem> {
    // Only in-process tests have no address; all their requests share one bucket.
    let address = address(request, app.config.trusted_hops).unwrap_or(IpAddr::from([0; 4]));
    Ok(usage::count(&app.db, app.config.limits.in_force(bucket), address, (app.now)()).await?)
}

fn check(request: &Request, levels: &[Level], now: DateTime<Utc>) -> Result<(), Problem> {
    if let Some(headers) = request.data::<RateLimitHeaders>() {
        headers.note(levels);
    }
    refuse(levels, now)
}

fn refuse(levels: &[Level], now: DateTime<Utc>) -> Result<(), Problem> {
    let wait = levels.iter().filter(|level| level.is_exceeded()).map(|level| level.ends_at - now).max();
    let Some(wait) = wait else { return Ok(()) };
    let seconds = u32::try_from((wait.num_milliseconds() + 999).div_euclid(1000)).unwrap_or_default().max(1);
    Err(Problem::new(Code::RateLimited, "rate limit exceeded").retry_after(seconds))
}

/// The IP address of the client. Each proxy appends the address of its peer to `X-Forwarded-For`, so
/// behind `hops` proxies the client is the entry `hops` from the end; earlier entries can be forged.
pub(crate) fn address(request: &Request, hops: usize) -> Option<IpAddr> {
    let peer = match &request.remote_addr().0 {
        Addr::SocketAddr(address) => Some(address.ip()),
        _ => None,
    };
    let forwarded = || {
        let lines = request.headers().get_all(FORWARDED).iter();
        let all: Vec<_> =
            lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).collect();
        let found = all.get(all.len().checked_sub(hops)?)?.trim();
        found.parse().ok().or_else(|| Some(found.parse::<SocketAddr>().ok()?.ip()))
    };
    if hops == 0 && request.headers().contains_key(FORWARDED) {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            warn!(
                "A request has the header X-Forwarded-For, which is ignored: behind a proxy all clients count as one \
                 address until FANFARE_TRUSTED_HOPS is set"
            );
        });
    }
    if hops == 0 { peer } else { forwarded().or(peer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem::http::StatusCode;
    use serde_json::Value;
    use store::usage::Bucket;

    #[test]
    fn what_ends_an_access_needs_no_quota() {
        let document: Value = serde_json::from_str(&crate::document()).unwrap();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                // The other operations are authorized by a link.
                if operation.get("security").is_none() {
                    continue;
                }
                let method: Method = method.to_uppercase().parse().unwrap();
                let is_documented = operation["responses"].get("402").is_some();
                assert_eq!(is_metered(&method, path), is_documented, "{method} {path}");
            }
        }
        for (method, path, expected) in [
            (Method::GET, "/account/usage", false),
            (Method::HEAD, "/account/usage", false),
            (Method::DELETE, "/api-keys/7", false),
            (Method::DELETE, "/api-keys/{id}", false),
            (Method::DELETE, "/team/7", false),
            (Method::DELETE, "/client-tokens/7", false),
            (Method::GET, "/account/requests", true),
            (Method::POST, "/account/usage", true),
            (Method::POST, "/api-keys/7/rotate", true),
            (Method::DELETE, "/api-keys/", true),
            (Method::DELETE, "/api-keys/7/8", true),
            (Method::PATCH, "/team/7", true),
            (Method::DELETE, "/posts/7", true),
        ] {
            assert_eq!(is_metered(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn a_rate_limited_response_has_retry_after() {
        let now = DateTime::from_timestamp_millis(1_800_000_000_001).unwrap();
        let level = |calls, seconds: i64| Level {
            bucket: Bucket { name: "posts", ceiling: 3, seconds: 60 },
            calls,
            ends_at: DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap(),
        };
        let request = Request::default();
        assert!(check(&request, &[level(3, 60)], now).is_ok());
        for (levels, expected) in [
            (vec![level(4, 60)], "60"),
            (vec![level(4, 1)], "1"),
            (vec![level(4, 0)], "1"),
            (vec![level(4, -5)], "1"),
            (vec![level(4, 2), level(4, 50), level(3, 60)], "50"),
        ] {
            use poem::IntoResponse;
            let response = check(&request, &levels, now).unwrap_err().into_response();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()["retry-after"], expected);
        }
    }

    #[test]
    fn only_addresses_appended_by_trusted_proxies_count() {
        let request = |lines: &[&str]| {
            let mut request = Request::builder();
            for line in lines {
                request = request.header(FORWARDED, *line);
            }
            request.finish()
        };
        for (lines, hops, expected) in [
            (&["6.6.6.6"][..], 0, None),
            (&["6.6.6.6, 1.2.3.4"], 1, Some("1.2.3.4")),
            (&["6.6.6.6", "1.2.3.4, 10.0.0.1"], 2, Some("1.2.3.4")),
            (&["6.6.6.6,1.2.3.4:5678"], 1, Some("1.2.3.4")),
            (&["[2001:db8::1]:443"], 1, Some("2001:db8::1")),
            (&["2001:db8::1"], 1, Some("2001:db8::1")),
            // Fewer entries than hops, or no address: falls back to the peer, which is missing here.
            (&["6.6.6.6"], 2, None),
            (&["unknown"], 1, None),
            (&[], 1, None),
        ] {
            let expected = expected.map(|text: &str| text.parse().unwrap());
            assert_eq!(address(&request(lines), hops), expected, "{lines:?} {hops}");
        }
    }
}
