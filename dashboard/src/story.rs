//! Explanation of a target that is not live: the cause, the next step and its time, and the remedy.

use crate::{
    labels::{self, RelativeTime},
    zone,
};
use chrono::{DateTime, Utc};
use domain::{ErrorCode, MAY_BE_LIVE, TargetStatus, retry::ATTEMPTS};

/// The facts of a target that a story is told from.
pub(crate) struct Facts<'a> {
    /// Platform id, for example `google_business`.
    pub(crate) platform: &'a str,
    /// Target status.
    pub(crate) status: TargetStatus,
    /// Code of the last failure.
    pub(crate) code: Option<&'a str>,
    /// Message of the last failure.
    pub(crate) message: Option<&'a str>,
    /// Publish attempts begun.
    pub(crate) attempts: i32,
    /// When the next attempt is due.
    pub(crate) next: Option<DateTime<Utc>>,
    /// When the platform began to process the post.
    pub(crate) processing_since: Option<DateTime<Utc>>,
}

/// Three lines on a target, in this order.
pub(crate) struct Story {
    /// True if a call without a known result may have published the post.
    pub(crate) may_be_live: bool,
    /// The cause, in a sentence.
    pub(crate) happened: String,
    /// The message of the platform, or of the part that failed.
    pub(crate) message: Option<String>,
    /// The next step, without a full stop.
    pub(crate) next: String,
    /// When it happens.
    pub(crate) at: Option<RelativeTime>,
    /// The remedy, if there is one.
    pub(crate) remedy: Option<String>,
}

impl Story {
    /// Tells of a target; `None` if it is published or canceled, or waits for its time.
    pub(crate) fn of(facts: &Facts<'_>, now: DateTime<Utc>) -> Option<Self> {
        let name = platforms::display_name(facts.platform);
        let happened = match (facts.code, facts.status) {
            (_, TargetStatus::Published | TargetStatus::Canceled) => return None,
            (Some(code), _) => happened(code, name),
            (None, _) => match facts.processing_since {
                Some(since) => {
                    format!(
                        "{name} has been processing it since {}.",
                        since.with_timezone(&zone::current()).format("%H:%M:%S %Z")
                    )
                }
                None => return None,
            },
        };
        let code = facts.code.and_then(|code| code.parse().ok());
        let message = facts.message.filter(|_| facts.code.is_some());
        let may_be_live = message.is_some_and(|message| message.ends_with(MAY_BE_LIVE));
        let message = message.map(|message| message.strip_suffix(MAY_BE_LIVE).unwrap_or(message).to_owned());
        let (next, at) = next(facts, code, now);
        let remedy = match (may_be_live, facts.status) {
            (true, TargetStatus::Dead) => Some(format!(
                "Starting over looks for it on {name} first, and publishes only what is not there."
            )),
            (_, status) => remedy(code, name, status == TargetStatus::Dead),
        };
        Some(Self { may_be_live, happened, message, next, at, remedy })
    }
}

impl Story {
    /// Tells of a target that is late for no reason of its own.
    pub(crate) fn waiting(happened: &str) -> Self {
        Self {
            may_be_live: false,
            happened: happened.to_owned(),
            message: None,
            next: "It is published as soon as that changes".to_owned(),
            at: None,
            remedy: None,
        }
    }
}

/// Says what an error code means.
pub(crate) fn happened(code: &str, name: &str) -> String {
    match code.parse() {
        Ok(ErrorCode::RateLimited) => format!("{name} is limiting how often it may be called."),
        Ok(ErrorCode::TokenExpired) => format!("{name} rejected the account's access."),
        Ok(ErrorCode::Upstream(status)) => format!("{name} had a server error ({status})."),
        Ok(ErrorCode::Rejected(status)) => format!("{name} rejected the post ({status})."),
        Ok(ErrorCode::PollTimeout) => format!("{name} took too long to process the post."),
        Ok(ErrorCode::NetworkError) => format!("The connection to {name} failed."),
        Ok(ErrorCode::Stopped) => "An operator of this service stopped it.".to_owned(),
        Ok(ErrorCode::Frozen) => format!("An operator of this service paused publishing to {name}."),
        Ok(ErrorCode::AppRefused) => {
            format!(
                "{name} refuses the app that this service publishes with, and not the post or the account."
            )
        }
        Err(_) => format!("{code}."),
    }
}

/// Says an entry of a timeline as the rest of the page does: with the failure in words, and times in the page's zone.
/// `platform` is the name of its target's platform.
pub(crate) fn told(message: &str, platform: &str) -> String {
    match message.split_once(": ") {
        Some((code, said)) if code.parse::<ErrorCode>().is_ok() => {
            format!("{} {said}", happened(code, platform))
        }
        Some((start, live)) if start.starts_with("Published on ") => {
            format!("Published on {platform}: {live}")
        }
        // As the engine begins the last failure of a target.
        Some((end @ ("Failed for good" | "The rest of the thread failed for good"), failure)) => {
            format!("{end}. {}", told(failure, platform))
        }
        _ => {
            let word = |word: &str| match DateTime::parse_from_rfc3339(word) {
                Ok(at) => labels::local(at.to_utc()),
                Err(_) => word.to_owned(),
            };
            message.split(' ').map(word).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Says what happens next, and when.
fn next(facts: &Facts<'_>, code: Option<ErrorCode>, now: DateTime<Utc>) -> (String, Option<RelativeTime>) {
    let attempt = facts.attempts.unsigned_abs() + 1;
    // Attempts that a platform throttles cost nothing of the budget.
    let is_free = matches!(code, Some(ErrorCode::RateLimited | ErrorCode::AppRefused));
    let is_counted = !is_free && (2..=ATTEMPTS).contains(&attempt);
    let what = match facts.status {
        TargetStatus::Dead => return ("No further attempt follows".to_owned(), None),
        _ if code == Some(ErrorCode::Frozen) => {
            return ("It continues when the operator releases it".to_owned(), None);
        }
        _ if facts.processing_since.is_some() && code.is_none() => "The next look is due".to_owned(),
        _ if is_counted => format!("Attempt {attempt} of {ATTEMPTS} begins"),
        _ => "The next attempt begins".to_owned(),
    };
    match facts.next {
        Some(at) if at > now => (what, Some(RelativeTime::of(at, now))),
        _ => (format!("{what} now"), None),
    }
}

/// Says what can be done, if anything.
fn remedy(code: Option<ErrorCode>, name: &str, is_dead: bool) -> Option<String> {
    let remedy = match (code?, is_dead) {
        (ErrorCode::Rejected(_), _) => "Change the post and publish it again.".to_owned(),
        (ErrorCode::TokenExpired, _) => "Reconnect the account.".to_owned(),
        (ErrorCode::Stopped, _) => "Ask the operator why, or start over.".to_owned(),
        (ErrorCode::PollTimeout, true) => "Start over, or publish a smaller file.".to_owned(),
        (ErrorCode::RateLimited | ErrorCode::Upstream(_) | ErrorCode::NetworkError, true) => {
            format!("Start over when {name} works again.")
        }
        _ => "You need not do anything.".to_owned(),
    };
    Some(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn entries_of_timelines_have_no_codes_and_local_times() {
        for (message, expected) in [
            ("Attempt 1 begins", "Attempt 1 begins"),
            ("Scheduled for 2026-11-25T14:40:16Z", "Scheduled for 25 Nov 2026, 14:40:16 UTC"),
            ("upstream_503: Service: away", "X had a server error (503). Service: away"),
            ("Failed for good: rejected_400: No", "Failed for good. X rejected the post (400). No"),
            ("Failed for good: no account", "Failed for good. no account"),
            ("Edited: 2 texts", "Edited: 2 texts"),
            ("Published on x: https://x.com/1", "Published on X: https://x.com/1"),
        ] {
            assert_eq!(told(message, "X"), expected);
        }
    }

    fn facts(status: TargetStatus, code: Option<&'static str>, attempts: i32) -> Facts<'static> {
        Facts { platform: "x", status, code, message: None, attempts, next: None, processing_since: None }
    }

    #[test]
    fn a_retry_names_its_attempt_and_time() {
        let now = DateTime::UNIX_EPOCH;
        let next = Some(now + TimeDelta::minutes(5));
        let failed = Facts { next, ..facts(TargetStatus::Failed, Some("upstream_503"), 3) };
        let story = Story::of(&failed, now).unwrap();
        assert_eq!(story.happened, "X had a server error (503).");
        assert_eq!(story.next, "Attempt 4 of 10 begins");
        assert!(story.at.unwrap().to_string().contains("in 5 minutes"));
        assert_eq!(story.remedy.unwrap(), "You need not do anything.");
        // A throttled attempt costs nothing, so that no number is given.
        let throttled = Facts { next, ..facts(TargetStatus::Failed, Some("rate_limited"), 12) };
        assert_eq!(Story::of(&throttled, now).unwrap().next, "The next attempt begins");
        let due = Story::of(&facts(TargetStatus::Failed, Some("network_error"), 10), now).unwrap();
        assert_eq!((due.next.as_str(), due.at.is_some()), ("The next attempt begins now", false));
    }

    #[test]
    fn what_may_be_live_is_said_first() {
        let message = format!("the connection closed{MAY_BE_LIVE}");
        let dead = facts(TargetStatus::Dead, Some("network_error"), 10);
        let story = Story::of(&Facts { message: Some(&message), ..dead }, DateTime::UNIX_EPOCH).unwrap();
        assert!(story.may_be_live);
        assert_eq!(story.message.as_deref(), Some("the connection closed"));
        assert_eq!(story.next, "No further attempt follows");
        assert!(story.remedy.unwrap().contains("looks for it on X first"));
    }

    #[test]
    fn every_code_of_the_contract_has_words() {
        for code in
            ["rate_limited", "token_expired", "upstream_502", "rejected_400", "poll_timeout", "network_error"]
        {
            let words = happened(code, "Google Business Profile");
            assert!(words.contains("Google Business Profile") && words.ends_with('.'), "{words}");
        }
        assert_eq!(happened("account_gone", "X"), "account_gone.");
        assert!(
            platforms::IDS.iter().all(|id| platforms::display_name(id) != *id),
            "every platform has a name"
        );
    }

    #[test]
    fn what_is_live_or_not_due_has_no_story() {
        let now = DateTime::UNIX_EPOCH;
        assert!(Story::of(&facts(TargetStatus::Published, None, 1), now).is_none());
        assert!(Story::of(&facts(TargetStatus::Pending, None, 0), now).is_none());
    }
}
