//! Login of accounts, as data: OAuth 2.0 with each platform's deviations, or an app password.

use crate::scopes::{Feature, Preset, ScopeSet, least_lacking};
use domain::Grant;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Login of an account.
#[expect(clippy::large_enum_variant, reason = "one for each platform, in a static")]
#[derive(Debug)]
pub enum Auth {
    /// OAuth 2.0 authorization code (RFC 6749).
    OAuth2(OAuth2),
    /// An identifier and a password created for this app.
    AppPassword {
        /// Service that creates the session when the account names no other.
        service: &'static str,
    },
}

impl Auth {
    /// Returns the platform's OAuth; `None` if accounts are connected with an app password.
    pub fn oauth(&self) -> Option<&OAuth2> {
        match self {
            Self::OAuth2(oauth) => Some(oauth),
            Self::AppPassword { .. } => None,
        }
    }

    /// Returns the least age at which a grant is renewed ahead of need; `None` if it never is.
    pub fn renewal_age(&self) -> Option<Duration> {
        let idle = self.oauth().map_or(Duration::ZERO, |oauth| oauth.idle_renewal);
        match self.refresh() {
            Refresh::Anytime => Some(idle),
            Refresh::BeforeExpiry { min_age } => Some(min_age),
            Refresh::Never => None,
        }
    }

    /// Returns when a grant can be refreshed.
    pub fn refresh(&self) -> Refresh {
        self.oauth().map_or(Refresh::Anytime, |oauth| oauth.refresh)
    }
}

/// Request parameters by name.
pub type Parameters = &'static [(&'static str, &'static str)];

/// A platform's OAuth 2.0: its endpoints, and its deviations from [`OAuth2::STANDARD`].
#[derive(Debug)]
pub struct OAuth2 {
    /// Authorization endpoint.
    pub authorize: &'static str,
    /// Token endpoint.
    pub token: &'static str,
    /// Token endpoint for an app with trial access ([`domain::AppAccess::Trial`]), if it is another one.
    pub trial_token: Option<&'static str>,
    /// Revocation endpoint (RFC 7009), if the platform follows the standard.
    pub revoke: Option<&'static str>,
    /// Scopes that a login asks for by default: those that most apps have.
    pub scopes: ScopeSet,
    /// Sets of scopes that each open a feature. A feature that isn't listed needs no scope.
    pub features: &'static [(Feature, &'static [ScopeSet])],
    /// Scopes for apps that may not ask for the default ones, or for more.
    pub presets: &'static [Preset],
    /// Parameter of the authorization request that takes the scopes' place, if the platform has one.
    pub configuration: Option<&'static str>,
    /// Separator between scopes in a request.
    pub separator: &'static str,
    /// Name of the parameter that identifies the app.
    pub client_id: &'static str,
    /// Authentication of the app at the token endpoint.
    pub client_auth: ClientAuth,
    /// Additional parameters of the authorization request.
    pub authorize_parameters: Parameters,
    /// Parameters that force a new login, although the platform knows the user; they replace those of the
    /// same name. Empty if that is not possible.
    pub force_login: Parameters,
    /// Additional parameters of the code exchange.
    pub exchange_parameters: Parameters,
    /// True when PKCE (RFC 7636) is used.
    pub pkce: bool,
    /// When a grant can be refreshed.
    pub refresh: Refresh,
    /// Minimum age at which a grant is renewed ahead of need; zero to keep the access token valid at all times. Needed
    /// where each renewal is a risk: an access token that has expired is then renewed when it is needed.
    pub idle_renewal: Duration,
    /// User agent of token requests for an account with this username, on platforms that refuse ours.
    pub user_agent: Option<fn(&str) -> String>,
    /// Errors of the token endpoint that mean that the grant was revoked; one without a code is identified by its number.
    /// No other refusal ends a grant.
    pub revoked_errors: &'static [&'static str],
}

impl OAuth2 {
    /// OAuth 2.0 as the RFC specifies it.
    pub const STANDARD: Self = Self {
        authorize: "",
        token: "",
        trial_token: None,
        revoke: None,
        scopes: &[],
        features: &[],
        presets: &[],
        configuration: None,
        separator: " ",
        client_id: "client_id",
        client_auth: ClientAuth::Header,
        authorize_parameters: &[],
        force_login: &[],
        exchange_parameters: &[],
        pkce: false,
        refresh: Refresh::Anytime,
        idle_renewal: Duration::ZERO,
        user_agent: None,
        revoked_errors: &["invalid_grant"],
    };

    /// Returns the scopes that a feature lacks, of the set that lacks the fewest; none if the feature is open.
    pub fn missing(&self, feature: Feature, granted: &[String]) -> Vec<&'static str> {
        let sets =
            self.features.iter().find(|(known, _)| *known == feature).map_or(&[][..], |(_, sets)| sets);
        least_lacking(sets, granted)
    }

    /// Returns the preset with this name.
    pub fn preset(&self, name: &str) -> Option<&'static Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }
}

/// When a grant can be exchanged for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// At any time: a refresh token outlives the access token.
    Anytime,
    /// Only before the access token expires; an expired one needs a new login.
    BeforeExpiry {
        /// Minimum age of a token that can be refreshed.
        min_age: Duration,
    },
    /// Never: the token does not expire. A refresh only checks that it still works.
    Never,
}

/// Authentication of an app at the token endpoint (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the `Authorization` header, if the app has a secret.
    Header,
    /// In the body: its id under [`OAuth2::client_id`], and `client_secret`.
    Body,
}

/// An authorization code with the parameters of its request. It travels sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// The code: valid once and for a short time.
    pub code: String,
    /// The redirect URI, exactly as in the authorization request.
    pub redirect_uri: String,
    /// The PKCE verifier, if one was sent.
    pub verifier: Option<String>,
}

/// A password created for an app, with its login. It travels sealed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppPassword {
    /// The login: a handle, an e-mail address, an id.
    pub identifier: String,
    /// The password.
    pub app_password: String,
    /// The service, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl AppPassword {
    /// Returns the grant from which [`crate::Publisher::refresh`] creates the first session: only the
    /// login.
    pub fn grant(&self) -> Grant {
        Grant { extra: serde_json::to_value(self).expect("a password is plain data"), ..Grant::default() }
    }
}
