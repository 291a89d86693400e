//! OAuth 2.0 logins as most platforms have them: a consent page and a token endpoint.
//!
//! The differences between platforms are data; each platform words its refusals itself. RFC 6749 sections 4.1
//! and 6: <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Transaction,
    exchange::{Outcome, Request, Response},
    page,
    simulator::get_or_create_account,
    tokens::{CLIENT_SECRET, Consent, Issued, TokenPolicy},
};

/// Login of a platform.
pub(crate) struct Login {
    pub(crate) tokens: TokenPolicy,
    /// Scopes that may be requested.
    pub(crate) scopes: &'static [&'static str],
    /// Returns whether a login with these parameters gets a refresh token.
    pub(crate) has_refresh_token: fn(&[(String, String)]) -> bool,
    /// Error code when the owner denies the request.
    pub(crate) denied_error: &'static str,
    /// Fragment of the redirect address.
    pub(crate) fragment: &'static str,
}

/// Reason to refuse a token request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// The code is unknown, used, expired, or another app's or redirect address's.
    InvalidCode,
    /// The refresh token is unknown, revoked, expired or replaced.
    InvalidRefreshToken,
    /// The grant type is not supported.
    UnsupportedGrantType,
}

impl Login {
    /// Serves the consent page (GET), and takes the owner's decision (POST).
    pub(crate) fn dialog(&self, tx: &mut Transaction, request: &Request) -> Response {
        self.decide(tx, request).unwrap_or_else(|refusal| refusal)
    }

    fn decide(&self, tx: &mut Transaction, request: &Request) -> Outcome {
        let is_decision = request.method == poem::http::Method::POST;
        let fields = if is_decision { &request.fields } else { &request.query };
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let refuse = |what: &str| Err(Response::page(400, page::notice("Something went wrong", what)));
        if field("response_type") != "code" {
            return refuse("response_type has to be `code`.");
        }
        if field("client_id") != self.tokens.client {
            return refuse("No app has this client_id.");
        }
        let back = url::Url::parse(field("redirect_uri")).ok().filter(url::Url::has_host);
        let Some(mut back) = back else { return refuse("redirect_uri has to be an absolute address.") };
        let scopes: Vec<String> =
            field("scope").split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if let Some(unknown) = scopes.iter().find(|scope| !self.scopes.contains(&scope.as_str())) {
            return refuse(&format!("There is no scope `{unknown}`."));
        }
        if scopes.is_empty() {
            return refuse("scope is missing.");
        }
        if !is_decision {
            let scopes = scopes.iter().map(String::as_str).collect();
            let platform = self.tokens.simulator.id();
            return Ok(page::consent(platform, "Fanfare's sandbox app", scopes, "sandbox", fields));
        }
        if field("decision") == "allow" {
            let username = field("username").trim().trim_start_matches('@');
            let account = get_or_create_account(tx, self.tokens.simulator, username)
                .map_err(|error| Response::page(400, page::notice("No such account", &error)))?;
            let consent = Consent {
                user: account.id,
                client: self.tokens.client.into(),
                redirect_uri: field("redirect_uri").into(),
                scopes,
                has_refresh_token: (self.has_refresh_token)(fields),
                challenge: None,
            };
            let code = self.tokens.code(tx, consent);
            back.query_pairs_mut().append_pair("code", &code);
        } else {
            back.query_pairs_mut()
                .append_pair("error", self.denied_error)
                .append_pair("error_description", "The user denied the request");
        }
        if !field("state").is_empty() {
            back.query_pairs_mut().append_pair("state", field("state"));
        }
        Ok(Response::redirect(&format!("{back}{}", self.fragment)))
    }

    /// Returns whether a request has the app's credentials in its header.
    pub(crate) fn has_client_credentials(&self, request: &Request) -> bool {
        request.basic().is_some_and(|(id, secret)| id == self.tokens.client && secret == CLIENT_SECRET)
    }

    /// Issues tokens for a code or a refresh token.
    ///
    /// # Errors
    ///
    /// The reason of the refusal.
    pub(crate) fn token(&self, tx: &mut Transaction, request: &Request) -> Result<Issued, TokenError> {
        match request.field("grant_type") {
            Some("authorization_code") => {
                let consent = request
                    .field("code")
                    .and_then(|code| self.tokens.redeem(tx, code))
                    .filter(|consent| request.field("redirect_uri") == Some(consent.redirect_uri.as_str()))
                    .ok_or(TokenError::InvalidCode)?;
                Ok(self.tokens.issue(tx, consent))
            }
            Some("refresh_token") => request
                .field("refresh_token")
                .and_then(|token| self.tokens.refresh(tx, token, self.tokens.client))
                .ok_or(TokenError::InvalidRefreshToken),
            _ => Err(TokenError::UnsupportedGrantType),
        }
    }
}
