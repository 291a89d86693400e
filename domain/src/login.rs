//! How connecting an account can fail.

crate::string_enum! {
    /// Why no account was connected, as whoever began it is told.
    LoginError, "login error" {
        /// The account's owner said no.
        AccessDenied = "access_denied",
        /// He took longer than a quarter of an hour.
        StateExpired = "state_expired",
        /// Somebody came back from this authorization before.
        StateUsed = "state_used",
        /// The platform did not give what it had announced.
        ExchangeFailed = "exchange_failed",
        /// He allowed less than publishing needs.
        InsufficientScope = "insufficient_scope",
        /// The login covers nothing that can be posted to.
        NoPages = "no_pages",
        /// Somebody else logged in than was to be connected.
        WrongAccount = "wrong_account",
        /// The organization's plan has room for no more accounts.
        QuotaExceeded = "quota_exceeded",
    }
}

impl LoginError {
    /// What a platform means that sends its user back with an error word. The standard's words (RFC 6749
    /// section 4.1.2.1, OpenID Connect Core section 3.1.2.6), and LinkedIn's own.
    pub fn of_word(word: &str) -> Self {
        match word {
            "access_denied"
            | "user_denied"
            | "user_cancelled_login"
            | "user_cancelled_authorize"
            | "consent_required"
            | "interaction_required"
            | "login_required"
            | "account_selection_required" => Self::AccessDenied,
            "invalid_scope" | "unauthorized_scope_error" | "insufficient_scope" => Self::InsufficientScope,
            _ => Self::ExchangeFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platforms_word_is_one_of_ours() {
        for (word, expected) in [
            ("access_denied", LoginError::AccessDenied),
            ("user_cancelled_authorize", LoginError::AccessDenied),
            ("unauthorized_scope_error", LoginError::InsufficientScope),
            ("server_error", LoginError::ExchangeFailed),
            ("", LoginError::ExchangeFailed),
        ] {
            assert_eq!(LoginError::of_word(word), expected, "{word}");
        }
    }
}
