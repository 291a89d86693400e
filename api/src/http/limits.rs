//! How much a caller may call: fixed windows, stacked, shared by all API processes.
//!
//! The table is data. Which buckets a call fills is told by its path and method alone, so that an
//! operation that comes later needs no line of its own. The counting is the store's (`store::meters`),
//! together with recognizing the key; what is left goes out as headers with whatever answer there is.

use crate::{
    App,
    http::problem::{Code, Problem},
};
use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use poem::{
    Addr, Request,
    http::{HeaderMap, HeaderName, Method},
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};
use store::{
    keys::Key,
    meters::{self, Bucket, Level},
};

/// The ceiling of the tightest bucket.
pub const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// What it still takes.
pub const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// Where the callers that came through proxies are named.
const FORWARDED: &str = "x-forwarded-for";
/// Reading what is used stays possible when all of it is used.
const USAGE: &str = "/account/usage";
/// The longest window: a day.
const LONGEST: u32 = 86_400;

/// Which calls a bucket counts: those with one of the methods, at the path or below it.
struct Rule {
    bucket: Bucket,
    path: &'static str,
    methods: &'static [Method],
}

const fn rule(name: &'static str, path: &'static str, methods: &'static [Method], ceiling: u32) -> Rule {
    Rule { bucket: Bucket { name, ceiling, seconds: 60 }, path, methods }
}

/// The buckets of the contract. Without methods, a bucket counts any.
const TABLE: [Rule; 9] = [
    rule("global", "", &[], 600),
    rule("posts", "/posts", &[Method::POST, Method::PATCH, Method::DELETE], 120),
    rule("media", "/media", &[Method::POST, Method::DELETE], 60),
    rule("social-accounts", "/social-accounts", &[Method::POST, Method::DELETE], 20),
    rule("scheduling", "/scheduling", &[Method::PUT], 60),
    rule("team", "/team", &[Method::POST, Method::DELETE], 30),
    rule("profiles", "/profiles", &[Method::POST, Method::PATCH, Method::DELETE], 30),
    rule("webhooks", "/webhooks", &[Method::POST, Method::PATCH, Method::DELETE], 60),
    rule("bluesky-connect", "/social-accounts/bluesky/connect", &[Method::POST], 10),
];

/// The bucket of each address at the MCP endpoint, counted before anything is known of the caller.
const ADDRESS: Bucket = Bucket { name: "mcp", ceiling: 120, seconds: 60 };
/// The bucket of each address that connects accounts without a key: the way back from a platform, the page
/// to choose on, and logins that wait for a choice. A login makes a few calls, and many people may share
/// an address.
const LOGIN: Bucket = Bucket { name: "connect", ceiling: 300, seconds: 60 };
/// The bucket of each address at the dashboard's doors: whoever guesses keys or invitations is slow at it.
const DOOR: Bucket = Bucket { name: "sign-in", ceiling: 20, seconds: 60 };

impl Rule {
    fn covers(&self, method: &Method, path: &str) -> bool {
        let is_below =
            path.strip_prefix(self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below && (self.methods.is_empty() || self.methods.contains(method))
    }
}

/// The ceilings in force: the contract's, or what the operator set.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    set: BTreeMap<String, Setting>,
}

/// What an operator can set of a bucket.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    limit: u32,
    #[serde(default = "minute")]
    window: u32,
}

fn minute() -> u32 {
    60
}

impl FromStr for Limits {
    type Err = anyhow::Error;

    /// Reads `{"posts": {"limit": 240, "window": 60}}`; what is not named stays as it is.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let set: BTreeMap<String, Setting> =
            serde_json::from_str(text).context("not of the form {\"posts\": {\"limit\": 120}}")?;
        for (name, setting) in &set {
            ensure!(Self::names().any(|known| known == name), "there is no bucket {name}");
            ensure!(setting.limit > 0, "the limit of {name} must be at least 1");
            ensure!(
                (1..=LONGEST).contains(&setting.window),
                "the window of {name} must be from 1 to {LONGEST} seconds"
            );
        }
        Ok(Self { set })
    }
}

impl Limits {
    /// The names of all buckets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|rule| rule.bucket.name).chain([ADDRESS.name, LOGIN.name, DOOR.name])
    }

    /// The buckets that a call fills. The path is what follows the API's prefix.
    fn of(&self, method: &Method, path: &str) -> Vec<Bucket> {
        let covering = TABLE.iter().filter(|rule| rule.covers(method, path));
        covering.map(|rule| self.in_force(rule.bucket)).collect()
    }

    fn in_force(&self, bucket: Bucket) -> Bucket {
        match self.set.get(bucket.name) {
            Some(Setting { limit, window }) => Bucket { ceiling: *limit, seconds: *window, ..bucket },
            None => bucket,
        }
    }
}

/// What the limiters found about one request, from where it is found to where the answer leaves.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<Option<Level>>>);

impl Tally {
    /// Keeps the tightest.
    fn note(&self, levels: &[Level]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept
            .iter()
            .chain(levels)
            .min_by_key(|level| (level.remaining(), !level.is_exceeded(), level.bucket.ceiling))
            .copied();
    }

    /// Tells it in an answer's headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        let Some(level) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        headers.insert(LIMIT, level.bucket.ceiling.into());
        headers.insert(REMAINING, level.remaining().into());
    }
}

/// Recognizes the caller of a request and counts the call: the one round trip that all calls make. The
/// path is what follows the API's prefix.
///
/// # Errors
///
/// `unauthorized`, `rate_limited` or `quota_exceeded`.
pub async fn admit(
    app: &App,
    request: &Request,
    token: &str,
    method: &Method,
    path: &str,
) -> Result<Key, Problem> {
    let now = (app.now)();
    let buckets = app.config.limits.of(method, path);
    let is_usage = path == USAGE && [Method::GET, Method::HEAD].contains(method);
    let quotas = (!is_usage).then(|| app.config.plans.quotas());
    let admission = meters::admit(&app.db, token, &buckets, quotas, now).await?;
    let admission = admission.ok_or_else(Problem::invalid_key)?;
    check(request, &admission.levels, now)?;
    if admission.is_over_quota {
        return Err(app.config.plans.of(&admission.plan).refuse(admission.requests));
    }
    Ok(admission.key)
}

/// Counts a call by the address that it comes from, before anything is known of its caller.
///
/// # Errors
///
/// `rate_limited`.
pub async fn greet(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, ADDRESS).await
}

/// Counts a call of somebody who connects accounts and needs no key for it, by the address that it comes
/// from.
///
/// # Errors
///
/// `rate_limited`.
pub async fn meet(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, LOGIN).await
}

/// Counts an attempt to get into the dashboard by the address that it comes from.
///
/// # Errors
///
/// `rate_limited`.
pub async fn knock(app: &App, request: &Request) -> Result<(), Problem> {
    count(app, request, DOOR).await
}

async fn count(app: &App, request: &Request, bucket: Bucket) -> Result<(), Problem> {
    // Without an address, which only happens in a process of tests, all callers are one.
    let address = address(request, app.config.trusted_hops).unwrap_or(IpAddr::from([0; 4]));
    let (bucket, now) = (app.config.limits.in_force(bucket), (app.now)());
    let level = meters::count(&app.db, bucket, address, now).await?;
    check(request, &[level], now)
}

fn check(request: &Request, levels: &[Level], now: DateTime<Utc>) -> Result<(), Problem> {
    if let Some(tally) = request.data::<Tally>() {
        tally.note(levels);
    }
    let wait = levels.iter().filter(|level| level.is_exceeded()).map(|level| level.ends_at - now).max();
    let Some(wait) = wait else { return Ok(()) };
    let seconds = u32::try_from((wait.num_milliseconds() + 999).div_euclid(1000)).unwrap_or_default().max(1);
    let detail = format!("rate limit exceeded, try again in {seconds} s");
    Err(Problem::new(Code::RateLimited, detail).retry_after(seconds))
}

/// Where a request comes from. Each proxy appends the address that it was called from, so that behind
/// `hops` of them the caller is the one so many places from the end: what stands before it, anybody
/// can write.
fn address(request: &Request, hops: usize) -> Option<IpAddr> {
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
    if hops == 0 { peer } else { forwarded().or(peer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poem::http::StatusCode;

    fn names(method: Method, path: &str) -> Vec<&'static str> {
        Limits::default().of(&method, path).iter().map(|bucket| bucket.name).collect()
    }

    #[test]
    fn buckets_stack_by_path_and_method() {
        for (method, path, expected) in [
            (Method::GET, "/posts", &["global"][..]),
            (Method::HEAD, "/posts", &["global"]),
            (Method::POST, "/posts", &["global", "posts"]),
            (Method::POST, "/posts/batch", &["global", "posts"]),
            (Method::DELETE, "/posts/7", &["global", "posts"]),
            (Method::PUT, "/posts/7", &["global"]),
            (Method::POST, "/postscript", &["global"]),
            (Method::POST, "/media/upload", &["global", "media"]),
            (Method::PATCH, "/media/7", &["global"]),
            (Method::POST, "/social-accounts/7/imports", &["global", "social-accounts"]),
            (
                Method::POST,
                "/social-accounts/bluesky/connect",
                &["global", "social-accounts", "bluesky-connect"],
            ),
            (Method::PATCH, "/social-accounts/7", &["global"]),
            (Method::PUT, "/scheduling/slots", &["global", "scheduling"]),
            (Method::POST, "/scheduling/slots", &["global"]),
            (Method::DELETE, "/team/7", &["global", "team"]),
            (Method::PATCH, "/profiles/7", &["global", "profiles"]),
            (Method::PATCH, "/webhooks/7", &["global", "webhooks"]),
            (Method::POST, "/social-networks", &["global"]),
            (Method::POST, "", &["global"]),
        ] {
            assert_eq!(names(method.clone(), path), expected, "{method} {path}");
        }
    }

    #[test]
    fn an_operator_can_set_what_there_is() {
        let limits: Limits = r#"{"posts": {"limit": 5, "window": 2}, "mcp": {"limit": 7}}"#.parse().unwrap();
        let [global, posts] = limits.of(&Method::POST, "/posts")[..] else { panic!("two buckets") };
        assert_eq!((global.ceiling, global.seconds), (600, 60));
        assert_eq!((posts.ceiling, posts.seconds), (5, 2));
        assert_eq!(limits.in_force(ADDRESS).ceiling, 7);
        for wrong in [
            "posts",
            "[]",
            r#"{"post": {"limit": 5}}"#,
            r#"{"posts": 5}"#,
            r#"{"posts": {"limit": 0}}"#,
            r#"{"posts": {"limit": -1}}"#,
            r#"{"posts": {"limit": 5, "window": 0}}"#,
            r#"{"posts": {"limit": 5, "window": 86401}}"#,
            r#"{"posts": {"limit": 5, "seconds": 2}}"#,
        ] {
            assert!(wrong.parse::<Limits>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_tightest_bucket_is_told() {
        let level = |name, ceiling, calls| Level {
            bucket: Bucket { name, ceiling, seconds: 60 },
            calls,
            ends_at: DateTime::UNIX_EPOCH,
        };
        for (levels, limit, remaining) in [
            (vec![level("global", 600, 1), level("posts", 120, 1)], "120", "119"),
            (vec![level("global", 600, 590), level("posts", 120, 1)], "600", "10"),
            // Both are full, and one of them refused.
            (vec![level("posts", 120, 120), level("global", 600, 601)], "600", "0"),
        ] {
            let (tally, mut headers) = (Tally::default(), HeaderMap::new());
            for level in levels {
                tally.note(&[level]);
            }
            tally.write(&mut headers);
            assert_eq!(
                (headers[LIMIT].to_str().unwrap(), headers[REMAINING].to_str().unwrap()),
                (limit, remaining)
            );
        }
        let mut headers = HeaderMap::new();
        Tally::default().write(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
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
    fn only_what_trusted_proxies_wrote_is_believed() {
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
            // Fewer than there should be, or no address: the peer, of which there is none here.
            (&["6.6.6.6"], 2, None),
            (&["unknown"], 1, None),
            (&[], 1, None),
        ] {
            let expected = expected.map(|text: &str| text.parse().unwrap());
            assert_eq!(address(&request(lines), hops), expected, "{lines:?} {hops}");
        }
    }
}
