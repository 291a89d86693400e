//! Rate limits: fixed windows, stacked, and shared by all API processes.
//!
//! Path and method alone decide in which buckets a call counts, so that a new operation needs no line
//! here. Counting is `http::admission`.

use anyhow::{Context, ensure};
use poem::http::{HeaderMap, HeaderName, Method};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};
use store::usage::{Bucket, Level};

/// Header with the limit of the tightest bucket.
pub const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// Header with the remaining calls of the tightest bucket.
pub const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// The longest window, in seconds: a day.
const MAX_WINDOW: u32 = 86_400;

/// A bucket counts calls with one of the methods at or below the path.
struct Rule {
    bucket: Bucket,
    path: &'static str,
    methods: &'static [Method],
}

const fn rule(name: &'static str, path: &'static str, methods: &'static [Method], ceiling: u32) -> Rule {
    Rule { bucket: Bucket { name, ceiling, seconds: 60 }, path, methods }
}

/// The default buckets of an organization in a mode; its limited callers together have the same ones again. Without
/// methods, a bucket counts all.
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

/// Bucket per IP address at the MCP endpoint, counted before authentication.
pub(super) const MCP: Bucket = Bucket { name: "mcp", ceiling: 120, seconds: 60 };
/// Bucket per IP address in the connect flow, which needs no API key: the callback, the selection page and
/// pending logins. A login makes a few calls, and many people may share an address.
pub(super) const LOGIN: Bucket = Bucket { name: "connect", ceiling: 300, seconds: 60 };
/// Bucket per IP address for signing in and invitations, against guessing of keys and tokens.
pub(super) const SIGN_IN: Bucket = Bucket { name: "sign-in", ceiling: 20, seconds: 60 };

/// Bucket per IP address for API calls with a key that is unknown, revoked or expired.
pub(super) const UNKNOWN_KEYS: Bucket = Bucket { name: "unknown-keys", ceiling: 300, seconds: 60 };

/// Bucket per key with a bound, counted before those of all such keys and client tokens together.
pub(super) const BOUND_KEY: Bucket = Bucket { name: "bound-key", ceiling: 300, seconds: 60 };
/// Bucket per client token, counted like that of a key with a bound. One is in one browser.
pub(super) const CLIENT_TOKEN: Bucket = Bucket { name: "client-token", ceiling: 60, seconds: 60 };

/// Bucket per account for look-ups of posts to validate, which cost calls that publishing needs too. YouTube, as the
/// scarcest, has 10 000 units a day for all channels of an app, and a look-up takes two.
pub(crate) const LOOK_UPS: Bucket = Bucket { name: "look-ups", ceiling: 120, seconds: 3600 };

/// Bucket per member, or key that opened a session, for the dashboard's pages; an open tab shows thirty a minute.
pub(super) const DASHBOARD: Bucket = Bucket { name: "dashboard", ceiling: 1200, seconds: 60 };

impl Rule {
    fn covers(&self, method: &Method, path: &str) -> bool {
        let is_below =
            path.strip_prefix(self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_below && (self.methods.is_empty() || self.methods.contains(method))
    }
}

/// The limits in force: the defaults, or those the operator configured.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    set: BTreeMap<String, Setting>,
}

/// Configuration of a bucket.
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

    /// Parses `{"posts": {"limit": 240, "window": 60}}`; other buckets keep their defaults.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let set: BTreeMap<String, Setting> =
            serde_json::from_str(text).context("not of the form {\"posts\": {\"limit\": 120}}")?;
        for (name, setting) in &set {
            ensure!(
                Self::names().any(|known| known == name),
                "there is no bucket {name}, only {}",
                Self::names().collect::<Vec<_>>().join(", ")
            );
            ensure!(setting.limit > 0, "the limit of {name} must be at least 1");
            ensure!(
                (1..=MAX_WINDOW).contains(&setting.window),
                "the window of {name} must be from 1 to {MAX_WINDOW} seconds"
            );
        }
        Ok(Self { set })
    }
}

impl Limits {
    /// The names of all buckets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|rule| rule.bucket.name).chain([
            BOUND_KEY.name,
            CLIENT_TOKEN.name,
            LOOK_UPS.name,
            DASHBOARD.name,
            MCP.name,
            LOGIN.name,
            SIGN_IN.name,
            UNKNOWN_KEYS.name,
        ])
    }

    /// The buckets that count a call. `path` is relative to the API's prefix.
    pub(super) fn of(&self, method: &Method, path: &str) -> Vec<Bucket> {
        let covering = TABLE.iter().filter(|rule| rule.covers(method, path));
        covering.map(|rule| self.in_force(rule.bucket)).collect()
    }

    pub(crate) fn in_force(&self, bucket: Bucket) -> Bucket {
        match self.set.get(bucket.name) {
            Some(Setting { limit, window }) => Bucket { ceiling: *limit, seconds: *window, ..bucket },
            None => bucket,
        }
    }
}

/// The tightest bucket of a request, kept from admission until the response's headers are written.
#[derive(Clone, Debug, Default)]
pub struct RateLimitHeaders(Arc<Mutex<Option<Level>>>);

impl RateLimitHeaders {
    /// Keeps the tightest bucket.
    pub(super) fn note(&self, levels: &[Level]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept
            .iter()
            .chain(levels)
            .min_by_key(|level| (level.remaining(), !level.is_exceeded(), level.bucket.ceiling))
            .copied();
    }

    /// Writes the headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        let Some(level) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        headers.insert(LIMIT, level.bucket.ceiling.into());
        headers.insert(REMAINING, level.remaining().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

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
            (Method::PATCH, "/team/7", &["global"]),
            (Method::PATCH, "/profiles/7", &["global", "profiles"]),
            (Method::PATCH, "/webhooks/7", &["global", "webhooks"]),
            (Method::POST, "/social-networks", &["global"]),
            (Method::POST, "", &["global"]),
        ] {
            assert_eq!(names(method.clone(), path), expected, "{method} {path}");
        }
    }

    #[test]
    fn only_known_buckets_can_be_configured() {
        let limits: Limits = r#"{"posts": {"limit": 5, "window": 2}, "mcp": {"limit": 7}}"#.parse().unwrap();
        let [global, posts] = limits.of(&Method::POST, "/posts")[..] else { panic!("two buckets") };
        assert_eq!((global.ceiling, global.seconds), (600, 60));
        assert_eq!((posts.ceiling, posts.seconds), (5, 2));
        let mcp = limits.in_force(MCP);
        assert_eq!((mcp.ceiling, mcp.seconds), (7, 60));
        assert_eq!(" ".parse::<Limits>().unwrap().in_force(MCP), MCP);
        let longest: Limits = r#"{"posts": {"limit": 1, "window": 86400}}"#.parse().unwrap();
        assert_eq!(longest.of(&Method::POST, "/posts")[1].seconds, 86_400);
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
    fn headers_show_the_tightest_bucket() {
        let level = |name, ceiling, calls| Level {
            bucket: Bucket { name, ceiling, seconds: 60 },
            calls,
            ends_at: DateTime::UNIX_EPOCH,
        };
        for (levels, limit, remaining) in [
            (vec![level("global", 600, 1), level("posts", 120, 1)], "120", "119"),
            (vec![level("global", 600, 590), level("posts", 120, 1)], "600", "10"),
            // Both are full, and one is exceeded.
            (vec![level("posts", 120, 120), level("global", 600, 601)], "600", "0"),
        ] {
            let (limits, mut headers) = (RateLimitHeaders::default(), HeaderMap::new());
            for level in levels {
                limits.note(&[level]);
            }
            limits.write(&mut headers);
            assert_eq!(
                (headers[LIMIT].to_str().unwrap(), headers[REMAINING].to_str().unwrap()),
                (limit, remaining)
            );
        }
        let mut headers = HeaderMap::new();
        RateLimitHeaders::default().write(&mut headers);
        assert!(headers.is_empty());
    }
}
