//! Authentication and counting of a request, in one statement (`store::usage`).
//!
//! A text that is no key is refused without a look-up. Unknown keys count by IP address and only they are refused
//! when there are too many, so that nobody can shut out callers with a key who share their address. Keys with a bound and
//! client tokens count apart from the organization's keys, which can't be shut out by them either.

use crate::{
    app::App,
    http::{
        headers,
        problem::{Code, Problem},
        rate_limits::{
            BOUND_KEY, CLIENT_TOKEN, DASHBOARD, LOGIN, MCP, RateLimitHeaders, SIGN_IN, UNKNOWN_KEYS,
        },
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
    people::keys::{self, EndedClient, Key},
    usage::{self, Admission, Authenticated, Bucket, Level},
};
use tracing::warn;
use uuid::Uuid;

/// The header in which proxies list the addresses that a request came through.
const FORWARDED: &str = "x-forwarded-for";
/// Operations that no bucket and no quota refuses, as methods and paths: reading the usage, and ending an access that was
/// lost. Who has a leaked key can use up both, and must not keep the key by that.
const ESSENTIAL: [(Method, &str); 5] = [
    (Method::GET, "/account/usage"),
    (Method::DELETE, "/api-keys/{id}"),
    (Method::POST, "/api-keys/{id}/rotate"),
    (Method::DELETE, "/client-tokens/{id}"),
    (Method::DELETE, "/team/{id}"),
];

/// Returns whether an operation is refused for no bucket and no quota. `path` is relative to the API's prefix; it may be
/// the pattern.
pub(crate) fn is_essential(method: &Method, path: &str) -> bool {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let segments = |path| str::split(path, '/');
    let fits = |pattern: &'static str| {
        segments(pattern).count() == segments(path).count()
            && segments(pattern).zip(segments(path)).all(|(known, found)| match known {
                "{id}" => !found.is_empty(),
                _ => known == found,
            })
    };
    ESSENTIAL.iter().any(|(known, pattern)| known == method && fits(pattern))
}

/// Authenticates a request and counts the call, for a key of the organization in one database round trip. `path` is
/// relative to the API's prefix.
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
    let is_essential = is_essential(method, path);
    let quotas = (!is_essential).then(|| app.config.plans.quotas());
    let admission = match usage::authenticate_and_count(&app.db, token, &buckets, quotas, now).await? {
        Some(Authenticated::Counted(admission)) => Some(admission),
        Some(Authenticated::Limited(key)) => {
            request_log::note(request, &key);
            let bucket = if key.client.is_some() { CLIENT_TOKEN } else { BOUND_KEY };
            let own = usage::count_one(&app.db, app.config.limits.in_force(bucket), key.id.0, now).await?;
            note(request, &[own]);
            if !is_essential {
                refuse(&[own], now)?;
            }
            usage::count_limited(&app.db, token, &buckets, quotas, now).await?
        }
        None => None,
    };
    let Some(admission) = admission else {
        // Also a token that has ended: a page of somebody else may go on with it.
        let level = level(app, request, UNKNOWN_KEYS).await?;
        note(request, &[level]);
        refuse(&[level], now)?;
        return Err(match keys::ended_client(&app.db, token).await? {
            Some(EndedClient::Expired) => {
                Problem::unauthorized("the client token has expired; create another one")
            }
            Some(EndedClient::Revoked) => Problem::unauthorized("the client token was revoked"),
            None => Problem::invalid_key(),
        });
    };
    request_log::note(request, &admission.key);
    admit(app, request, &admission, is_essential, now)?;
    Ok(admission.key)
}

/// Fails if a bucket or the quota refuses a counted request.
fn admit(
    app: &App,
    request: &Request,
    admission: &Admission,
    is_essential: bool,
    now: DateTime<Utc>,
) -> Result<(), Problem> {
    note(request, &admission.levels);
    if is_essential {
        return Ok(());
    }
    refuse(&admission.levels, now)?;
    if admission.is_over_quota {
        return Err(app.config.plans.of(&admission.plan).refuse(admission.requests));
    }
    Ok(())
}

/// Counts a request of the dashboard: one that acts like the operation that it stands for, one that only shows a page
/// for its caller alone and in no quota, because pages update themselves.
///
/// # Errors
///
/// `rate_limited` or `quota_exceeded`.
pub async fn count_session(
    app: &App,
    request: &Request,
    owner: Owner,
    caller: Uuid,
    operation: Option<(&Method, &str)>,
) -> Result<(), Problem> {
    let now = (app.now)();
    let Some((method, path)) = operation else {
        let level = usage::count_one(&app.db, app.config.limits.in_force(DASHBOARD), caller, now).await?;
        return check(request, &[level], now);
    };
    let is_essential = is_essential(method, path);
    let quotas = (!is_essential).then(|| app.config.plans.quotas());
    let buckets = app.config.limits.of(method, path);
    let admission = usage::count_owner(&app.db, owner, &buckets, quotas, now).await?;
    let admission = admission.ok_or_else(|| Problem::not_found("organization"))?;
    admit(app, request, &admission, is_essential, now)
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
pub async fn count_sign_in(app: &App, request: &Request) -> Result<(), Problem> {
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
    note(request, levels);
    refuse(levels, now)
}

/// Keeps the levels for the response's headers.
fn note(request: &Request, levels: &[Level]) {
    if let Some(headers) = request.data::<RateLimitHeaders>() {
        headers.note(levels);
    }
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
        // A line that can't be read as a whole still ends with what the proxy appended.
        let lines: Vec<_> = headers::lines(request.headers(), FORWARDED).collect();
        let all: Vec<_> = lines.iter().flat_map(|line| line.split(',')).collect();
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
    use poem::http::{HeaderValue, StatusCode};
    use serde_json::Value;
    use store::usage::Bucket;

    #[test]
    fn what_ends_an_access_is_refused_for_no_quota_and_no_bucket() {
        let document: Value = serde_json::from_str(&crate::document()).unwrap();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                // The other operations are authorized by a link.
                if operation.get("security").is_none() {
                    continue;
                }
                let method: Method = method.to_uppercase().parse().unwrap();
                let is_documented = |status| operation["responses"].get(status).is_some();
                assert_eq!(is_essential(&method, path), !is_documented("402"), "{method} {path}");
                // Unknown keys are counted and refused everywhere.
                assert!(is_documented("401") && is_documented("429"), "{method} {path}");
            }
        }
        for (method, path, expected) in [
            (Method::GET, "/account/usage", true),
            (Method::HEAD, "/account/usage", true),
            (Method::DELETE, "/api-keys/7", true),
            (Method::DELETE, "/api-keys/{id}", true),
            (Method::POST, "/api-keys/7/rotate", true),
            (Method::DELETE, "/team/7", true),
            (Method::DELETE, "/client-tokens/7", true),
            (Method::GET, "/account/requests", false),
            (Method::POST, "/account/usage", false),
            (Method::POST, "/api-keys//rotate", false),
            (Method::DELETE, "/api-keys/", false),
            (Method::DELETE, "/api-keys/7/8", false),
            (Method::PATCH, "/team/7", false),
            (Method::DELETE, "/posts/7", false),
        ] {
            assert_eq!(is_essential(&method, path), expected, "{method} {path}");
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
        let request = |lines: &[&[u8]]| {
            let mut request = Request::builder();
            for line in lines {
                request = request.header(FORWARDED, HeaderValue::from_bytes(line).unwrap());
            }
            request.finish()
        };
        for (lines, hops, expected) in [
            (&[&b"6.6.6.6"[..]][..], 0, None),
            (&[b"6.6.6.6, 1.2.3.4"], 1, Some("1.2.3.4")),
            (&[b"6.6.6.6", b"1.2.3.4, 10.0.0.1"], 2, Some("1.2.3.4")),
            (&[b"6.6.6.6,1.2.3.4:5678"], 1, Some("1.2.3.4")),
            (&[b"[2001:db8::1]:443"], 1, Some("2001:db8::1")),
            (&[b"2001:db8::1"], 1, Some("2001:db8::1")),
            // An address that a client wrote before it can't hide it.
            (&[b"\xe9, 1.2.3.4"], 1, Some("1.2.3.4")),
            (&[b"\xe9", b"1.2.3.4, 10.0.0.1"], 2, Some("1.2.3.4")),
            // Fewer entries than hops, or no address: falls back to the peer, which is missing here.
            (&[b"6.6.6.6"], 2, None),
            (&[b"unknown"], 1, None),
            (&[], 1, None),
        ] {
            let expected = expected.map(|text: &str| text.parse().unwrap());
            assert_eq!(address(&request(lines), hops), expected, "{lines:?} {hops}");
        }
    }
}
