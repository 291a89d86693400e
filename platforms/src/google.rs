//! OAuth 2.0 and errors of Google's platforms.
//!
//! Refresh tokens do not rotate. The reason in an error is more specific than its status; for unknown reasons
//! the status decides.
//! <https://developers.google.com/identity/protocols/oauth2/web-server>,
//! <https://cloud.google.com/apis/design/errors>

use crate::*;
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
        .anonymous()
        .form(&[("token", token)])
        .send_raw()
        .await?;
    match reply.status.as_u16() {
        200..=299 | 400 => Ok(()),
        _ => Err(classify::by_status(&reply)),
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
        ) => Failure::rate_limited(message, classify::retry_after(reply).or(Some(RATE_BACKOFF))),
        // The login has no channel: a new token does not help.
        (401, "youtubeSignupRequired") => Failure::rejected(401, message),
        (401, _) => Failure::token_expired(message),
        // Observed with this status although it is transient.
        (403, "SERVICE_UNAVAILABLE" | "backendError" | "internalError") => {
            Failure::upstream(503, message).after(classify::retry_after(reply))
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
