//! Failures by HTTP status, for replies whose body is no more specific.
//!
//! The code of a failure says what a refusal is about, and so who has to act:
//!
//! | A refusal of | is | and |
//! |---|---|---|
//! | the content | `rejected_4xx` | ends the target, with the platform's words |
//! | the grant | `token_expired` | alone touches the account: a 401, or words that an adapter lists |
//! | the app: what its owner may spend, its access, its suspension, the version of the API that it names | `app_refused` | holds the posts with the app, or the refused one alone ([`domain::Holds`]); words that an adapter lists |
//! | something in between: the page of an edge, a proxy, a moved endpoint | `network_error` | is repeated |
//! | a call that carried no grant ([`crate::Call::without_grant`]) | `rejected_4xx`, `upstream_502` | never says anything of the grant |
//!
//! A refresh ends a grant only by words that are listed ([`crate::OAuth2::revoked_errors`]).
//!
//! A body's own code goes before the status, except that of a 5xx, which says nothing for certain unless the adapter knows
//! better ([`crate::Publisher::is_definite`]).

use crate::session::Reply;
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Failure,
    failure::{MAX_MESSAGE_CHARS, MAX_RETRY_AFTER},
};
use serde_json::Value;
use std::{borrow::Cow, time::Duration};

/// Returns the failure for a reply's status.
pub fn by_status(reply: &Reply) -> Failure {
    let message = message(reply);
    let status = reply.status.as_u16();
    match status {
        // A refresh shows whether it is the grant. A 403 that no adapter knows says nothing of it.
        401 => without_grant(reply, Failure::token_expired(message)),
        429 => Failure::rate_limited(message, retry_after(reply)),
        408 | 425 => Failure::upstream(504, message),
        400..=499 => Failure::rejected(status, message),
        500..=599 => Failure::upstream(status, message).after(retry_after(reply)),
        // A redirect or an undocumented status: the call may or may not have had an effect.
        _ => Failure::new(ErrorCode::Upstream(502), format!("answered {status}: {message}")),
    }
}

/// Returns the failure of a refusal, which concerns the grant only if the call had it: else the platform's words about the
/// call, or an address whose time is over.
pub(crate) fn without_grant(reply: &Reply, failure: Failure) -> Failure {
    match failure.code {
        ErrorCode::TokenExpired if !reply.has_grant => match reply.body.is_object() {
            true => Failure::rejected(reply.status.as_u16(), failure.message),
            false => Failure::upstream(502, failure.message).certain(),
        },
        _ => failure,
    }
}

/// Returns the platform's error message, from the members that most platforms use.
pub fn message(reply: &Reply) -> String {
    let body = &reply.body;
    let message = [
        "/error_description",
        "/message",
        "/detail",
        "/error/message",
        "/errors/0/message",
        "/error",
        "/title",
    ]
    .iter()
    .find_map(|place| body.pointer(place).and_then(Value::as_str).filter(|text| !text.is_empty()));
    match message {
        Some(message) => clip(message),
        None if reply.text.is_empty() => format!("HTTP {}", reply.status),
        None => format!("HTTP {}: {}", reply.status, clip(&reply.text)),
    }
}

/// Returns the wait in `Retry-After`, seconds or a date (RFC 9110, section 10.2.3), at most
/// [`MAX_RETRY_AFTER`].
pub fn retry_after(reply: &Reply) -> Option<Duration> {
    let value = reply.header("retry-after")?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    }
    until(http_date(value)?, reply)
}

/// Returns the wait until a header's Unix time in seconds, at most [`MAX_RETRY_AFTER`]. Measured by the
/// platform's clock if the reply has a date, because a skewed local clock could reduce a minute to nothing.
pub fn until_epoch(reply: &Reply, header: &str) -> Option<Duration> {
    let at = DateTime::from_timestamp(reply.header(header)?.parse().ok()?, 0)?;
    until(at, reply)
}

/// Returns the time of a reply by the platform's clock, if it has a date.
pub(crate) fn date(reply: &Reply) -> Option<DateTime<Utc>> {
    http_date(reply.header("date")?)
}

fn until(at: DateTime<Utc>, reply: &Reply) -> Option<Duration> {
    let now = date(reply).unwrap_or(reply.at);
    Some((at - now).to_std().unwrap_or(Duration::ZERO).min(MAX_RETRY_AFTER))
}

/// Returns the time of a header. X writes `UTC` where HTTP demands `GMT` (RFC 9110, section 5.6.7).
fn http_date(value: &str) -> Option<DateTime<Utc>> {
    let value = match value.strip_suffix("UTC") {
        Some(time) => Cow::Owned(format!("{time}GMT")),
        None => Cow::Borrowed(value),
    };
    Some(DateTime::parse_from_rfc2822(&value).ok()?.to_utc())
}

fn clip(text: &str) -> String {
    text.chars().filter(|c| *c != '\0').take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_from_a_header_is_at_most_a_day() {
        for (value, expected) in [
            ("290", Some(290)),
            ("99999999999999", Some(86_400)),
            ("18446744073709551615", Some(86_400)),
            ("18446744073709551616", None),
            ("-1", None),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("soon", None),
        ] {
            let reply = Reply::of(503, &[("retry-after", value)], "");
            let expected = expected.map(Duration::from_secs);
            assert_eq!(by_status(&reply).retry_after, expected, "{value}");
        }
        for (value, expected) in
            [("9223372036854775807", None), ("8000000000000", Some(86_400)), ("0", Some(0))]
        {
            let reply = Reply::of(429, &[("ratelimit-reset", value)], "");
            assert_eq!(until_epoch(&reply, "ratelimit-reset"), expected.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn a_wait_is_measured_by_the_platforms_clock() {
        let reset = ("x-rate-limit-reset", "1651930251");
        for (date, expected) in [
            ("Sat, 07 May 2022 13:20:51 GMT", 600),
            ("Sat, 07 May 2022 13:20:51 UTC", 600),
            ("Sat, 07 May 2022 15:20:51 +0200", 600),
            // By the local clock the reset has passed.
            ("yesterday", 0),
        ] {
            let reply = Reply::of(429, &[("date", date), reset], "");
            let wait = until_epoch(&reply, "x-rate-limit-reset");
            assert_eq!(wait, Some(Duration::from_secs(expected)), "{date}");
        }
    }
}
