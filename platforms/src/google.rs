//! OAuth 2.0 and errors of Google's platforms.
//!
//! Refresh tokens do not rotate. The reason in an error is more specific than its status; for unknown reasons
//! the status decides.
//! <https://developers.google.com/identity/protocols/oauth2/web-server>,
//! <https://cloud.google.com/apis/design/errors>

use crate::{Call, Reply, Result, Session, classify};
use chrono::{DateTime, TimeDelta, Utc};
use domain::Failure;
use serde_json::Value;
use std::time::Duration;

/// Authorization endpoint.
pub(crate) const AUTHORIZE: &str = "https://accounts.google.com/o/oauth2/v2/auth";
/// Token endpoint.
pub(crate) const TOKEN: &str = "https://oauth2.googleapis.com/token";
/// A refresh token is issued for offline access, and for each login only with a new consent.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[("access_type", "offline"), ("prompt", "consent")];
/// Lets the user choose another Google account.
pub(crate) const FORCE_LOGIN: &[(&str, &str)] = &[("prompt", "select_account consent")];

/// Wait after a rate limit, whose window is a minute.
const RATE_BACKOFF: Duration = Duration::from_secs(60);
/// Wait after a channel's upload limit, whose size and reset Google does not document.
const UPLOAD_CAP_BACKOFF: Duration = Duration::from_secs(6 * 3600);

/// Revokes the whole grant. The rejection of one that is already revoked counts as success.
pub(crate) async fn revoke(cx: &Session<'_>) -> Result<()> {
    let token = cx.grant.refresh_token().unwrap_or(&cx.grant.access_token);
    let reply = cx
        .post("https://oauth2.googleapis.com/revoke")
        .authorized_otherwise()
        .form(&[("token", token)])
        .send_raw()
        .await?;
    match reply.status.as_u16() {
        400 if !reply.is_block() => Ok(()),
        _ => reply.into_result(cx.platform).map(drop),
    }
}

/// Adds the page parameters to the call of a list.
pub(crate) fn paged(call: Call, page: Option<&str>) -> Call {
    match page {
        Some(page) => call.query(&[("pageToken", page)]),
        None => call,
    }
}

/// Returns the cursor of the next page; `None` for an empty one, with which some lists end.
pub(crate) fn next(token: Option<String>) -> Option<String> {
    token.filter(|token| !token.is_empty())
}

/// Returns the failure for an error of any Google API; `None` if the status decides.
pub(crate) fn classify(reply: &Reply) -> Option<Failure> {
    let status = reply.status.as_u16();
    if status < 400 {
        return None;
    }
    let (reason, message) = (reason(reply), error_message(reply));
    let is_denied = reply.body.pointer("/error/status").and_then(Value::as_str) == Some("PERMISSION_DENIED");
    Some(match (status, reason) {
        (_, "quotaExceeded" | "dailyLimitExceeded") => {
            Failure::rate_limited(message, Some(until_midnight(reply.at)))
        }
        (_, "uploadLimitExceeded") => Failure::rate_limited(message, Some(UPLOAD_CAP_BACKOFF)),
        (429, _)
        | (
            403,
            "rateLimitExceeded"
            | "userRateLimitExceeded"
            | "servingLimitExceeded"
            | "uploadRateLimitExceeded",
        ) => match quota(reply) {
            Quota::None => {
                let message = format!("{message}: Google has not granted the project access to this API");
                Failure::app_refused(message, None)
            }
            Quota::PerDay => Failure::rate_limited(message, Some(until_midnight(reply.at))),
            Quota::Other => {
                Failure::rate_limited(message, classify::retry_after(reply).or(Some(RATE_BACKOFF)))
            }
        },
        // The login has no channel: a new token does not help.
        (401, "youtubeSignupRequired") => Failure::rejected(401, message),
        (401, _) => Failure::token_expired(message),
        // Observed with this status although it is transient. With the word of a missing permission it is not.
        (403, "SERVICE_UNAVAILABLE" | "backendError" | "internalError") if !is_denied => {
            Failure::upstream(503, message).after(classify::retry_after(reply))
        }
        // Of the project, whose owner has to act.
        (403, "accessNotConfigured" | "SERVICE_DISABLED" | "CONSUMER_SUSPENDED" | "BILLING_DISABLED") => {
            Failure::app_refused(message, None)
        }
        // A missing scope, role or permission, which a new token would lack as well.
        (403, _) => Failure::rejected(403, message),
        // A conflict of concurrent writes; the call may be repeated.
        (409, _) if reply.body.pointer("/error/status").and_then(Value::as_str) == Some("ABORTED") => {
            Failure::upstream(503, message).certain()
        }
        (408 | 425 | 500.., _) => return None,
        _ => Failure::rejected(status, message),
    })
}

/// The quota that a throttled call exceeded.
#[derive(Debug, PartialEq)]
enum Quota {
    /// One of zero: Google opens some APIs to a project only on request.
    None,
    /// One of a day, which is reset at midnight in California.
    PerDay,
    /// One of a minute, or one that the error does not name.
    Other,
}

/// Returns the quota that a throttled call exceeded. Google names it in the message, and in the details of newer
/// APIs.
fn quota(reply: &Reply) -> Quota {
    let error = &reply.body["error"];
    let details = || error["details"].as_array().into_iter().flatten().map(|detail| &detail["metadata"]);
    let is_zero = |value: &Value| value.as_str().map_or(value.as_u64() == Some(0), |text| text == "0");
    let message = error["message"].as_str().unwrap_or_default().to_lowercase();
    let names_day = |name: &str| name.to_lowercase().contains("perday");
    match () {
        () if details().any(|metadata| is_zero(&metadata["quota_limit_value"])) => Quota::None,
        () if message.contains("per day") => Quota::PerDay,
        () if details().filter_map(|metadata| metadata["quota_limit"].as_str()).any(names_day) => {
            Quota::PerDay
        }
        () => Quota::Other,
    }
}

/// Returns the reason in an error response: of the first error, or in the details of newer APIs.
pub(crate) fn reason(reply: &Reply) -> &str {
    let error = &reply.body["error"];
    let first = error.pointer("/errors/0/reason").and_then(Value::as_str);
    let detail = || error["details"].as_array()?.iter().find_map(|detail| detail["reason"].as_str());
    first.or_else(detail).unwrap_or_default()
}

/// Returns Google's error message with its details.
fn error_message(reply: &Reply) -> String {
    let message = classify::message(reply);
    let mut more: Vec<&str> = Vec::new();
    for detail in reply.body.pointer("/error/details").and_then(Value::as_array).into_iter().flatten() {
        let errors = detail["errorDetails"].as_array().into_iter().flatten();
        let fields = detail["fieldViolations"].as_array().into_iter().flatten();
        more.extend(errors.filter_map(|error| error["message"].as_str()));
        more.extend(fields.filter_map(|field| field["description"].as_str()));
    }
    more.retain(|text| !message.contains(text));
    more.dedup();
    match reason(reply) {
        _ if !more.is_empty() => format!("{message} {}", more.join(" ")),
        "" => message,
        reason => format!("{message} ({reason})"),
    }
}

/// Returns the wait until a day's quota is there again: midnight in California, in its winter time so that it
/// is never too early.
fn until_midnight(now: DateTime<Utc>) -> Duration {
    const WINTER: TimeDelta = TimeDelta::hours(8);
    let there = now - WINTER;
    let next = (there.date_naive() + chrono::Days::new(1)).and_time(chrono::NaiveTime::MIN).and_utc();
    (next - there).to_std().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ErrorCode;
    use serde_json::json;

    fn of(status: u16, reason: &str) -> Option<Failure> {
        let error = json!({ "code": status, "message": "No.", "errors": [{ "reason": reason }] });
        // Half an hour before midnight in California.
        let at = DateTime::parse_from_rfc3339("2026-11-21T07:30:00Z").unwrap().to_utc();
        classify(&Reply { at, ..Reply::of(status, &[], &json!({ "error": error }).to_string()) })
    }

    #[test]
    fn the_reason_takes_precedence_over_the_status() {
        for (status, reason, code) in [
            (401, "authError", ErrorCode::TokenExpired),
            (401, "youtubeSignupRequired", ErrorCode::Rejected(401)),
            (403, "quotaExceeded", ErrorCode::RateLimited),
            (403, "rateLimitExceeded", ErrorCode::RateLimited),
            (400, "uploadLimitExceeded", ErrorCode::RateLimited),
            (429, "", ErrorCode::RateLimited),
            (403, "commentsDisabled", ErrorCode::Rejected(403)),
            (403, "insufficientPermissions", ErrorCode::Rejected(403)),
            (400, "invalidTitle", ErrorCode::Rejected(400)),
            (403, "SERVICE_UNAVAILABLE", ErrorCode::Upstream(503)),
            (403, "accessNotConfigured", ErrorCode::AppRefused),
            (403, "SERVICE_DISABLED", ErrorCode::AppRefused),
        ] {
            assert_eq!(of(status, reason).map(|failure| failure.code), Some(code), "{status} {reason}");
        }
        assert_eq!(of(500, "backendError"), None);
        assert_eq!(of(308, ""), None);
    }

    #[test]
    fn the_daily_quota_resets_at_midnight_in_california() {
        let failure = of(403, "quotaExceeded").unwrap();
        assert_eq!(failure.retry_after, Some(Duration::from_secs(30 * 60)));
        assert_eq!(failure.message, "No. (quotaExceeded)");
    }

    /// Returns the failure for an exceeded quota with this message and these details.
    fn exceeded(message: &str, metadata: &Value) -> Failure {
        let error = json!({
            "code": 429, "message": message, "status": "RESOURCE_EXHAUSTED",
            "errors": [{ "reason": "rateLimitExceeded" }],
            "details": [{ "reason": "RATE_LIMIT_EXCEEDED", "metadata": metadata }],
        });
        let at = DateTime::parse_from_rfc3339("2026-11-21T07:30:00Z").unwrap().to_utc();
        classify(&Reply { at, ..Reply::of(429, &[], &json!({ "error": error }).to_string()) }).unwrap()
    }

    #[test]
    fn a_429_is_judged_by_the_quota_that_it_names() {
        let message = "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day'";
        for failure in [
            exceeded(message, &json!({ "quota_limit_value": "100" })),
            exceeded("Quota exceeded", &json!({ "quota_limit": "VideoUploadsPerDayPerProject" })),
        ] {
            assert_eq!(
                (failure.code, failure.retry_after),
                (ErrorCode::RateLimited, Some(Duration::from_secs(1800)))
            );
        }
        let message = "Quota exceeded for quota metric 'Requests' and limit 'Requests per minute'";
        let failure = exceeded(message, &json!({ "quota_limit_value": "300" }));
        assert_eq!((failure.code, failure.retry_after), (ErrorCode::RateLimited, Some(RATE_BACKOFF)));
        for none in [json!("0"), json!(0)] {
            let failure = exceeded(message, &json!({ "quota_limit_value": none }));
            assert_eq!(failure.code, ErrorCode::AppRefused);
            assert!(failure.message.contains("has not granted"), "{failure}");
        }
    }

    #[test]
    fn a_denied_permission_is_permanent_whatever_its_reason() {
        // As recorded: a reason that sounds transient.
        let error = json!({
            "code": 403, "message": "The caller does not have permission", "status": "PERMISSION_DENIED",
            "errors": [{ "domain": "youtube.CoreErrorDomain", "reason": "SERVICE_UNAVAILABLE" }],
        });
        let failure = classify(&Reply::of(403, &[], &json!({ "error": error }).to_string())).unwrap();
        assert_eq!((failure.code, failure.is_ambiguous()), (ErrorCode::Rejected(403), false));
    }

    #[test]
    fn error_details_are_in_the_message() {
        let error = json!({ "error": {
            "code": 400, "message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT",
            "details": [{ "errorDetails": [{ "code": 1000, "message": "Fetching image failed." }] }],
        } });
        let said = error_message(&Reply::of(400, &[], &error.to_string()));
        assert_eq!(said, "Request contains an invalid argument. Fetching image failed.");
    }
}
