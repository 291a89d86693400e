//! Errors of connecting an account.

crate::string_enum! {
    /// Reason why no account was connected: the `error` parameter of the redirect.
    LoginError, "login error" {
        /// The user refused access.
        AccessDenied = "access_denied",
        /// The user returned more than 15 minutes after the start.
        StateExpired = "state_expired",
        /// The authorization's `state` was already used.
        StateUsed = "state_used",
        /// The platform did not exchange the code for a grant.
        ExchangeFailed = "exchange_failed",
        /// The user granted fewer scopes than publishing needs.
        InsufficientScope = "insufficient_scope",
        /// The login covers no account that can be posted to.
        NoPages = "no_pages",
        /// The login is for another account than the one to be reconnected.
        WrongAccount = "wrong_account",
        /// The organization has as many accounts as its plan allows.
        QuotaExceeded = "quota_exceeded",
    }
}

impl LoginError {
    /// Maps the `error` parameter of an OAuth callback: the standard codes (RFC 6749 section 4.1.2.1,
    /// OpenID Connect Core section 3.1.2.6) and LinkedIn's own.
    pub fn from_oauth_error(code: &str) -> Self {
        match code {
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
    fn oauth_error_codes_map_to_login_errors() {
        for (code, expected) in [
            ("access_denied", LoginError::AccessDenied),
            ("user_cancelled_authorize", LoginError::AccessDenied),
            ("unauthorized_scope_error", LoginError::InsufficientScope),
            ("server_error", LoginError::ExchangeFailed),
            ("", LoginError::ExchangeFailed),
        ] {
            assert_eq!(LoginError::from_oauth_error(code), expected, "{code}");
        }
    }
}
