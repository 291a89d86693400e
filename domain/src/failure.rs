//! Failed platform calls, with error codes that determine what happens next.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr, time::Duration};

/// Maximum length of a stored message, in characters: some servers answer with a page of HTML.
pub const MAX_MESSAGE_CHARS: usize = 500;

/// Maximum wait that a platform can request; its `Retry-After` header may hold any number.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Stable reason of a failed attempt: `error_code` in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The platform throttles.
    RateLimited,
    /// The platform refused the access token.
    TokenExpired,
    /// The platform answered with this 5xx status.
    Upstream(u16),
    /// The platform refused the content, with this 4xx status.
    Rejected(u16),
    /// The platform did not finish processing within its time limit.
    PollTimeout,
    /// No HTTP response was received.
    NetworkError,
    /// An operator ended it.
    Stopped,
    /// An operator froze publishing; no attempt was made.
    Frozen,
    /// The platform refuses the app, whose owner has to act: the limit of what it may spend is reached, its project
    /// has no access, it is suspended. Says nothing of the content or of the account.
    AppRefused,
}

crate::string_enum! {
    /// Who can fix a failure.
    ErrorSource, "error source" {
        /// The author, who can change the content or reconnect the account.
        User = "user",
        /// The platform, which failed, throttled or took too long.
        Platform = "platform",
        /// The operator of Fanfare, or of the network between it and the platform.
        Service = "service",
    }
}

impl ErrorCode {
    /// Returns true if another attempt would fail as well.
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Rejected(_) | Self::PollTimeout | Self::Stopped)
    }

    /// Returns true if the call may have had its effect although it failed.
    pub fn leaves_doubt(self) -> bool {
        matches!(self, Self::Upstream(_) | Self::NetworkError)
    }

    /// Returns who can fix a failure with this code.
    pub fn source(self) -> ErrorSource {
        match self {
            Self::TokenExpired | Self::Rejected(_) => ErrorSource::User,
            Self::RateLimited | Self::Upstream(_) | Self::PollTimeout => ErrorSource::Platform,
            Self::NetworkError | Self::Stopped | Self::Frozen | Self::AppRefused => ErrorSource::Service,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimited => f.write_str("rate_limited"),
            Self::TokenExpired => f.write_str("token_expired"),
            Self::Upstream(status) => write!(f, "upstream_{status}"),
            Self::Rejected(status) => write!(f, "rejected_{status}"),
            Self::PollTimeout => f.write_str("poll_timeout"),
            Self::NetworkError => f.write_str("network_error"),
            Self::Stopped => f.write_str("stopped"),
            Self::Frozen => f.write_str("frozen"),
            Self::AppRefused => f.write_str("app_refused"),
        }
    }
}

impl FromStr for ErrorCode {
    type Err = crate::string_enum::UnknownValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || crate::string_enum::UnknownValue { what: "error code", found: text.to_owned() };
        match text {
            "rate_limited" => Ok(Self::RateLimited),
            "token_expired" => Ok(Self::TokenExpired),
            "poll_timeout" => Ok(Self::PollTimeout),
            "network_error" => Ok(Self::NetworkError),
            "stopped" => Ok(Self::Stopped),
            "frozen" => Ok(Self::Frozen),
            "app_refused" => Ok(Self::AppRefused),
            _ => {
                let (word, status) = text.split_once('_').ok_or_else(unknown)?;
                let status = status.parse().map_err(|_| unknown())?;
                match word {
                    "upstream" => Ok(Self::Upstream(status)),
                    "rejected" => Ok(Self::Rejected(status)),
                    _ => Err(unknown()),
                }
            }
        }
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// End of the message of a target that ended while a call of it had no known result.
pub const MAY_BE_LIVE: &str = "; it may be live: look before posting again";

/// A failed call to a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Decides on its own what happens next.
    pub code: ErrorCode,
    /// Error message of the platform or of the HTTP client. Human-readable, not stable.
    pub message: String,
    /// Wait that the platform requests before the next call.
    pub retry_after: Option<Duration>,
    /// Effect of the failed call on the platform.
    #[serde(rename = "doubt")]
    pub effect: Effect,
    /// State of the grant that follows from the failure.
    #[serde(rename = "revoked")]
    pub grant: GrantState,
    /// Posts that wait with the refused one, if the platform refuses the app or throttles the account.
    #[serde(default, skip_serializing_if = "Holds::is_app")]
    pub holds: Holds,
}

/// Posts that wait after a platform refused their app, or throttled their account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// All posts with the app; after throttling, all of the account.
    #[default]
    App,
    /// The refused post alone: the platform takes others, such as those of another kind.
    Post,
}

impl Holds {
    /// Returns true for all posts with the app.
    pub fn is_app(&self) -> bool {
        *self == Self::App
    }
}

/// Effect of a failed call on the platform. Serialized as a boolean, true for [`Effect::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Effect {
    /// The call had no effect and can be repeated.
    None,
    /// The call may have had its effect; only a look-up can find out.
    Unknown,
}

impl From<bool> for Effect {
    fn from(is_unknown: bool) -> Self {
        if is_unknown { Self::Unknown } else { Self::None }
    }
}

impl From<Effect> for bool {
    fn from(effect: Effect) -> Self {
        effect == Effect::Unknown
    }
}

/// State of a grant after a failure. Serialized as a boolean, true for [`GrantState::Revoked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum GrantState {
    /// The failure does not concern the grant, or a refresh may help.
    Unchanged,
    /// The grant no longer exists, so no refresh can help.
    Revoked,
}

impl From<bool> for GrantState {
    fn from(is_revoked: bool) -> Self {
        if is_revoked { Self::Revoked } else { Self::Unchanged }
    }
}

impl From<GrantState> for bool {
    fn from(state: GrantState) -> Self {
        state == GrantState::Revoked
    }
}

impl Failure {
    /// Creates a failure with the effect that its code implies. The message is cut to
    /// [`MAX_MESSAGE_CHARS`] and loses U+0000, which Postgres does not store.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.retain(|c| c != '\0');
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
            message.truncate(end);
        }
        let effect = Effect::from(code.leaves_doubt());
        Self { code, message, retry_after: None, effect, grant: GrantState::Unchanged, holds: Holds::App }
    }

    /// Creates the failure of rejected content: by the platform with a 4xx status, or by Fanfare, which counts
    /// as 400.
    pub fn rejected(status: u16, message: impl Into<String>) -> Self {
        let status = if (400..500).contains(&status) { status } else { 400 };
        Self::new(ErrorCode::Rejected(status), message)
    }

    /// Creates the failure of an access token that was refused; a refresh may help.
    pub fn token_expired(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::TokenExpired, message)
    }

    /// Creates the failure of a revoked grant; only the account's owner can grant access again.
    pub fn revoked(message: impl Into<String>) -> Self {
        Self { grant: GrantState::Revoked, ..Self::token_expired(message) }
    }

    /// Creates the failure of a throttled call. The wait is at most [`MAX_RETRY_AFTER`].
    pub fn rate_limited(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        let retry_after = retry_after.map(|wait| wait.min(MAX_RETRY_AFTER));
        Self { retry_after, ..Self::new(ErrorCode::RateLimited, message) }
    }

    /// Creates the failure of a call that is throttled for some posts only, such as this one.
    pub fn rate_limited_for_post(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { holds: Holds::Post, ..Self::rate_limited(message, retry_after) }
    }

    /// Creates the failure of an app that the platform refuses. The wait is at most [`MAX_RETRY_AFTER`]: its owner may
    /// act at any time.
    pub fn app_refused(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        let retry_after = retry_after.map(|wait| wait.min(MAX_RETRY_AFTER));
        Self { retry_after, ..Self::new(ErrorCode::AppRefused, message) }
    }

    /// Creates the failure of an app that the platform refuses for some posts only, such as this one.
    pub fn app_refused_for_post(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { holds: Holds::Post, ..Self::app_refused(message, retry_after) }
    }

    /// Creates the failure of a 5xx answer; any other status counts as 502.
    pub fn upstream(status: u16, message: impl Into<String>) -> Self {
        let status = if (500..600).contains(&status) { status } else { 502 };
        Self::new(ErrorCode::Upstream(status), message)
    }

    /// Creates the failure of a call without a response. `sent` is true if the request may have arrived.
    pub fn network(message: impl Into<String>, sent: bool) -> Self {
        Self::new(ErrorCode::NetworkError, message).with_effect(Effect::from(sent))
    }

    /// Returns the failure with [`Effect::None`].
    pub fn certain(self) -> Self {
        self.with_effect(Effect::None)
    }

    /// Returns the failure with [`Effect::Unknown`].
    pub fn ambiguous(self) -> Self {
        self.with_effect(Effect::Unknown)
    }

    /// Returns the failure with this effect.
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Returns the failure with the wait that the platform requests.
    pub fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// Returns true if the call may have had its effect, so that a look-up is needed.
    pub fn is_ambiguous(&self) -> bool {
        self.effect == Effect::Unknown
    }

    /// Returns true if the grant no longer exists, so that no refresh can help.
    pub fn is_revoked(&self) -> bool {
        self.grant == GrantState::Revoked
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_parsed_back() {
        for (code, word) in [
            (ErrorCode::RateLimited, "rate_limited"),
            (ErrorCode::TokenExpired, "token_expired"),
            (ErrorCode::Upstream(502), "upstream_502"),
            (ErrorCode::Rejected(400), "rejected_400"),
            (ErrorCode::PollTimeout, "poll_timeout"),
            (ErrorCode::NetworkError, "network_error"),
            (ErrorCode::Stopped, "stopped"),
            (ErrorCode::Frozen, "frozen"),
            (ErrorCode::AppRefused, "app_refused"),
        ] {
            assert_eq!(code.to_string(), word);
            assert_eq!(word.parse(), Ok(code));
        }
        assert!("rejected_".parse::<ErrorCode>().is_err());
        assert!("upstream".parse::<ErrorCode>().is_err());
    }

    #[test]
    fn a_code_has_a_status_of_its_kind() {
        for status in 0..=999 {
            let rejected = Failure::rejected(status, "m").code.to_string();
            let digits = rejected.strip_prefix("rejected_4").expect("a status of 4xx");
            assert!(digits.len() == 2 && digits.parse::<u8>().is_ok(), "{status}: {rejected}");
            let upstream = Failure::upstream(status, "m").code.to_string();
            let digits = upstream.strip_prefix("upstream_5").expect("a status of 5xx");
            assert!(digits.len() == 2 && digits.parse::<u8>().is_ok(), "{status}: {upstream}");
        }
        assert_eq!(Failure::rejected(413, "m").code, ErrorCode::Rejected(413));
        assert_eq!(Failure::upstream(503, "m").code, ErrorCode::Upstream(503));
    }

    #[test]
    fn messages_and_waits_are_bounded() {
        let failure = Failure::rejected(400, "é\0".repeat(1_000_000));
        assert_eq!(failure.message, "é".repeat(MAX_MESSAGE_CHARS));
        assert_eq!(Failure::network("short", true).message, "short");
        let wait = |seconds| Failure::rate_limited("", Some(Duration::from_secs(seconds))).retry_after;
        assert_eq!((wait(u64::MAX), wait(60)), (Some(MAX_RETRY_AFTER), Some(Duration::from_secs(60))));
    }

    #[test]
    fn the_serialized_form_is_stable() {
        for (failure, doubt, revoked) in [
            (Failure::upstream(500, "m"), true, false),
            (Failure::rejected(400, "m"), false, false),
            (Failure::revoked("m"), false, true),
            (Failure::revoked("m").ambiguous(), true, true),
        ] {
            let form = serde_json::to_value(&failure).unwrap();
            let expected = serde_json::json!({
                "code": failure.code, "message": "m", "retry_after": null, "doubt": doubt, "revoked": revoked,
            });
            assert_eq!(form, expected);
            assert_eq!(serde_json::from_value::<Failure>(form).unwrap(), failure);
        }
        let form = serde_json::to_value(Failure::app_refused_for_post("m", None)).unwrap();
        assert_eq!(form["holds"], "post");
        assert_eq!(serde_json::from_value::<Failure>(form).unwrap().holds, Holds::Post);
    }

    #[test]
    fn only_a_lost_or_broken_reply_leaves_doubt() {
        assert!(Failure::upstream(500, "").is_ambiguous());
        assert!(Failure::network("reset", true).is_ambiguous());
        assert!(!Failure::network("refused", false).is_ambiguous());
        assert!(!Failure::rejected(400, "").is_ambiguous());
        assert!(!Failure::rate_limited("", None).is_ambiguous());
        assert!(!Failure::revoked("").is_ambiguous());
    }
}
