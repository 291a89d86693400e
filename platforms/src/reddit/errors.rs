//! Failures in responses, most of which have a status of success:
//! <https://github.com/reddit-archive/reddit/blob/master/r2/r2/lib/errors.py>.

use crate::{Reply, classify};
use domain::Failure;
use regex::Regex;
use serde_json::Value;
use std::{sync::LazyLock, time::Duration};

/// Wait after a quota without a reset time.
const QUOTA_BACKOFF: Duration = Duration::from_secs(3600);

/// Returns the failure in a response with a status of success.
pub(super) fn refusal(body: &Value) -> Option<Failure> {
    let errors = body["json"]["errors"].as_array().filter(|errors| !errors.is_empty())?;
    let code = errors[0][0].as_str().unwrap_or_default();
    let messages: Vec<_> = errors
        .iter()
        .map(|error| {
            let word = error[0].as_str().unwrap_or("an error without a name");
            error[1].as_str().map_or_else(|| word.to_owned(), |text| format!("{text} ({word})"))
        })
        .collect();
    let message = messages.join("; ");
    Some(match code {
        "RATELIMIT" => {
            let exact =
                body["json"]["ratelimit"].as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            // Rounded up: half a second too early is rejected.
            let exact = exact.map(|seconds| Duration::from_secs(seconds.ceil() as u64));
            Failure::rate_limited(message.clone(), exact.or_else(|| pause(&message)))
        }
        "QUOTA_FILLED" | "SUBREDDIT_RATELIMIT" => {
            Failure::rate_limited(message.clone(), pause(&message).or(Some(QUOTA_BACKOFF)))
        }
        "USER_REQUIRED" => Failure::token_expired(message),
        // It may be ours, from a call with a lost response.
        "ALREADY_SUB" => Failure::rejected(409, message).ambiguous(),
        "SUBREDDIT_NOEXIST" | "DELETED_LINK" | "DELETED_COMMENT" | "NO_THING_ID" => {
            Failure::rejected(404, message)
        }
        "SUBREDDIT_NOTALLOWED"
        | "SUBREDDIT_NO_ACCESS"
        | "BANNED_FROM_SUBREDDIT"
        | "IN_TIMEOUT"
        | "THREAD_LOCKED"
        | "DOMAIN_BANNED"
        | "USER_BLOCKED"
        | "GALLERIES_DISABLED"
        | "NO_CROSSPOSTS"
        | "NO_IMAGES"
        | "NO_VIDEOS" => Failure::rejected(403, message),
        _ => Failure::rejected(400, message),
    })
}

/// Returns the wait in a message: "Take a break for 4 minutes".
fn pause(message: &str) -> Option<Duration> {
    static WAIT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(\d+) (millisecond|second|minute|hour)s?").expect("the pattern is well-formed")
    });
    let found = WAIT.captures(message)?;
    let count: u64 = found[1].parse().ok()?;
    Some(match &found[2] {
        "millisecond" => Duration::from_millis(count),
        "second" => Duration::from_secs(count),
        "minute" => Duration::from_secs(count.saturating_mul(60)),
        _ => Duration::from_secs(count.saturating_mul(3600)),
    })
}

/// Returns the wait in the headers: `x-ratelimit-reset` counts seconds until the window ends.
pub(super) fn wait(reply: &Reply) -> Option<Duration> {
    let reset = || reply.header("x-ratelimit-reset")?.parse().ok().map(Duration::from_secs);
    classify::retry_after(reply).or_else(reset)
}

#[cfg(test)]
mod tests {
    use super::super::ADAPTER;
    use super::*;
    use domain::ErrorCode;
    use serde_json::json;

    fn failure(status: u16, headers: &[(&'static str, &str)], text: &str) -> Failure {
        Reply::of(status, headers, text).into_result(&ADAPTER).unwrap_err()
    }

    #[test]
    fn each_documented_error_has_its_error_code() {
        let within = |code: &str| json!({ "json": { "errors": [[code, "in words", "field"]] } }).to_string();
        for (status, body, code, doubt) in [
            (200, within("ALREADY_SUB"), "rejected_409", true),
            (200, within("SUBREDDIT_NOEXIST"), "rejected_404", false),
            (200, within("SUBREDDIT_NOTALLOWED"), "rejected_403", false),
            (200, within("THREAD_LOCKED"), "rejected_403", false),
            (200, within("NO_CROSSPOSTS"), "rejected_403", false),
            (200, within("INVALID_CROSSPOST_THING"), "rejected_400", false),
            (200, within("DELETED_COMMENT"), "rejected_404", false),
            (200, within("TOO_LONG"), "rejected_400", false),
            (200, within("SUBMIT_VALIDATION_FLAIR_REQUIRED"), "rejected_400", false),
            (200, within("USER_REQUIRED"), "token_expired", false),
            (200, within("QUOTA_FILLED"), "rate_limited", false),
            (
                400,
                r#"{"explanation":"no such words","reason":"SUBMIT_VALIDATION_TITLE"}"#.into(),
                "rejected_400",
                false,
            ),
            (400, r#"{"message":"Bad Request","error":400}"#.into(), "rejected_400", false),
            (401, r#"{"message":"Unauthorized","error":401}"#.into(), "token_expired", false),
            (403, r#"{"message":"Forbidden","error":403,"reason":"private"}"#.into(), "rejected_403", false),
            (404, r#"{"message":"Not Found","error":404}"#.into(), "rejected_404", false),
            (403, "<html>blocked by network security".into(), "network_error", false),
            (413, "<html>".into(), "rejected_413", false),
            (429, "<html>".into(), "rate_limited", false),
            (500, "<html>".into(), "upstream_500", true),
            (520, "<html>".into(), "upstream_520", true),
        ] {
            let failure = failure(status, &[], &body);
            assert_eq!(
                (failure.code.to_string().as_str(), failure.is_ambiguous()),
                (code, doubt),
                "{status} {body}"
            );
            assert!(!failure.is_revoked() && !failure.message.is_empty());
        }
        let search = [("location", "https://www.reddit.com/subreddits/search?q=nothing")];
        assert_eq!(failure(302, &search, "").code, ErrorCode::Rejected(404));
        assert_eq!(failure(302, &[], "").code, ErrorCode::Upstream(502));
        let both = json!({ "json": { "errors": [["NO_TEXT", "we need something here", "title"], ["BAD_URL", null]] } });
        assert_eq!(failure(200, &[], &both.to_string()).message, "we need something here (NO_TEXT); BAD_URL");
    }

    #[test]
    fn a_rate_limit_returns_the_wait_from_the_response() {
        let wait_of = |text: &str, more: Value| {
            let mut body = json!({ "json": { "errors": [["RATELIMIT", text, "ratelimit"]] } });
            body["json"]["ratelimit"] = more;
            failure(200, &[], &body.to_string()).retry_after
        };
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(wait_of("Take a break for 4 minutes before trying again.", Value::Null), seconds(240));
        assert_eq!(
            wait_of("you are doing that too much. try again in 9 minutes.", json!(530.2)),
            seconds(531)
        );
        assert_eq!(wait_of("Take a break for 1 second", Value::Null), seconds(1));
        assert_eq!(
            wait_of("Take a break for 900 milliseconds", Value::Null),
            Some(Duration::from_millis(900))
        );
        assert_eq!(wait_of("Take a break for 2 hours", Value::Null), seconds(7200));
        assert_eq!(wait_of("Take a break", Value::Null), None);
        assert_eq!(failure(429, &[("x-ratelimit-reset", "17")], "").retry_after, seconds(17));
        let both = [("retry-after", "4"), ("x-ratelimit-reset", "17")];
        assert_eq!(failure(429, &both, "").retry_after, seconds(4));
    }
}
