//! Failures of replies: by the body, as the platform's adapter reads it, or else by the HTTP status.
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

use crate::{Result, platform::Platform, reply::Reply, text};
use chrono::{DateTime, Utc};
use domain::{
    ErrorCode, Failure,
    failure::{MAX_MESSAGE_CHARS, MAX_RETRY_AFTER},
};
use serde_json::Value;
use std::{borrow::Cow, time::Duration};

impl Reply {
    /// Returns the reply of a success.
    ///
    /// # Errors
    ///
    /// Any reply that is no success, classified.
    pub fn into_result(self, platform: &dyn Platform) -> Result<Self> {
        let failure = platform.classify(&self);
        let is_of_transport = |failure: &Failure| failure.code == ErrorCode::NetworkError;
        if self.is_block() && !failure.as_ref().is_some_and(is_of_transport) {
            return Err(self.blocked(platform));
        }
        match failure.map(|failure| without_grant(&self, failure)) {
            Some(failure) if self.status.is_server_error() && !platform.is_definite(&self) => {
                Err(self.without_certainty(failure))
            }
            Some(failure) => Err(failure),
            None if self.status.is_success() => Ok(self),
            None => Err(by_status(&self)),
        }
    }

    /// Returns the failure of a call that was blocked, and so had no effect.
    fn blocked(&self, platform: &dyn Platform) -> Failure {
        let (_, rest) = self.text.split_once("<title>").unwrap_or_default();
        let title = text::clip(rest.split('<').next().unwrap_or_default().trim(), 100);
        let status = self.status.as_u16();
        let message = format!(
            "something before {}'s API blocked the call with a page ({status} {title})",
            platform.name()
        );
        Failure::network(message, false)
    }

    /// Returns the failure of a 5xx: whatever its body says of content or tokens, the platform failed, and the
    /// call may have had its effect.
    fn without_certainty(&self, failure: Failure) -> Failure {
        match failure.code {
            ErrorCode::RateLimited | ErrorCode::Upstream(_) => failure.ambiguous(),
            _ => Failure::upstream(self.status.as_u16(), failure.message).after(failure.retry_after),
        }
    }
}

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
    use serde_json::json;

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

    #[test]
    fn a_5xx_says_nothing_of_content_or_tokens() {
        let platform = crate::get("facebook").expect("a platform");
        for code in [10, 190, 4] {
            let body = json!({ "error": { "message": "m", "code": code, "error_subcode": 460 } }).to_string();
            let refused = Reply::of(400, &[], &body).into_result(platform).unwrap_err();
            assert!(!refused.is_ambiguous(), "{refused}");
            let failed = Reply::of(500, &[], &body).into_result(platform).unwrap_err();
            assert!(failed.is_ambiguous() && !failed.is_revoked() && !failed.code.is_permanent(), "{failed}");
        }
    }

    #[test]
    fn a_5xx_of_meta_that_names_an_invalid_parameter_is_a_refusal() {
        for id in ["facebook", "instagram", "threads"] {
            let platform = crate::get(id).expect("a platform");
            let failure = |error: Value| {
                let body = json!({ "error": error }).to_string();
                Reply::of(500, &[], &body).into_result(platform).unwrap_err()
            };
            let message = "Param text must be at most 500 characters long";
            let refused = failure(json!({ "message": message, "code": 100 }));
            assert_eq!((refused.code, refused.is_ambiguous()), (ErrorCode::Rejected(400), false), "{id}");
            assert!(refused.message.contains(message), "{refused}");
            let transient = failure(json!({ "message": message, "code": 100, "is_transient": true }));
            assert!(transient.is_ambiguous() && !transient.code.is_permanent(), "{id}: {transient}");
        }
    }

    #[test]
    fn a_403_that_no_adapter_knows_says_nothing_of_the_grant() {
        for platform in crate::all() {
            let failure = Reply::of(403, &[], r#"{"unknown":"words"}"#).into_result(*platform).unwrap_err();
            assert_ne!(failure.code, ErrorCode::TokenExpired, "{}: {failure}", platform.id);
        }
    }

    #[test]
    fn a_call_without_the_grant_says_nothing_of_it() {
        for platform in crate::all() {
            for (status, text, code) in [
                (401, r#"{"error":"unconfirmed_email","message":"no"}"#, ErrorCode::Rejected(401)),
                (401, "<Error>expired</Error>", ErrorCode::Upstream(502)),
            ] {
                let reply = Reply { has_grant: false, ..Reply::of(status, &[], text) };
                let by_status = by_status(&reply);
                assert_eq!((by_status.code, by_status.is_ambiguous()), (code, false));
                let failure = reply.into_result(*platform).unwrap_err();
                assert_ne!(failure.code, ErrorCode::TokenExpired, "{}: {failure}", platform.id);
            }
        }
    }

    #[test]
    fn a_page_of_something_in_between_is_no_refusal() {
        let page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>";
        for platform in crate::all() {
            for status in [400, 401, 402, 403, 404, 405, 406, 409, 410, 416, 422, 426, 451] {
                let failure = Reply::of(status, &[], page).into_result(*platform).unwrap_err();
                assert_eq!(
                    (failure.code, failure.is_ambiguous()),
                    (ErrorCode::NetworkError, false),
                    "{failure}"
                );
            }
        }
        let x = crate::get("x").unwrap();
        let failure = Reply::of(403, &[], page).into_result(x).unwrap_err();
        assert!(failure.message.ends_with("(403 Just a moment...)"), "{failure}");
        let html = ("content-type", "text/html; charset=UTF-8");
        for (headers, text, is_page) in [
            (&[][..], "\u{feff}\r\n<!DOCTYPE html><html>", true),
            (&[][..], "<!-- ray 8f --><!-- 2 -->\n<HTML>", true),
            (&[html][..], "<?xml version=\"1.0\"?><!DOCTYPE html><html>", true),
            (&[html][..], "Not Found", false),
            (&[][..], r#"{"detail":"no"}"#, false),
            (&[html][..], r#"{"detail":"no"}"#, false),
            (&[html][..], "", false),
            (&[("content-type", "application/xml")][..], "<?xml version=\"1.0\"?><Error>", false),
            (&[][..], "<Error><Code>AccessDenied</Code></Error>", false),
            (&[][..], "<!-- never closed", false),
        ] {
            let failure = Reply::of(404, headers, text).into_result(x).unwrap_err();
            let expected = if is_page { ErrorCode::NetworkError } else { ErrorCode::Rejected(404) };
            assert_eq!(failure.code, expected, "{text}");
        }
        for (status, code) in
            [(408, ErrorCode::Upstream(504)), (413, ErrorCode::Rejected(413)), (429, ErrorCode::RateLimited)]
        {
            assert_eq!(Reply::of(status, &[], page).into_result(x).unwrap_err().code, code);
        }
    }
}
