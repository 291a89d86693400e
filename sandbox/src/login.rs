//! Logins by OAuth 2.0 as most platforms serve them: a page that asks, and an endpoint that gives tokens.
//!
//! What tells one platform's from another's is data; how a refusal reads is the platform's own affair.
//! RFC 6749 sections 4.1 and 6: <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Turn, account,
    call::{Answer, Call},
    page,
    tokens::{Consent, Issued, SECRET, Terms},
};

/// One platform's login.
pub(crate) struct Login {
    /// Its tokens.
    pub(crate) terms: Terms,
    /// What can be asked for.
    pub(crate) scopes: &'static [&'static str],
    /// Whether a login of these parameters brings a refresh token.
    pub(crate) lasts: fn(&[(String, String)]) -> bool,
    /// The word for an owner who says no.
    pub(crate) denied: &'static str,
    /// What stands behind the parameters that a browser brings back.
    pub(crate) fragment: &'static str,
}

/// Why a token request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The code is none, is used up, too old, or another app's or address's.
    Code,
    /// The refresh token is none, was taken back, has run out, or was replaced.
    Refresh,
    /// There is no such way to get a token.
    Kind,
}

impl Login {
    /// Where the account's owner is asked (GET), and where the page sends the decision (POST).
    pub(crate) fn dialog(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        self.decide(turn, call).unwrap_or_else(|refusal| refusal)
    }

    fn decide(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
        let is_decision = call.method == poem::http::Method::POST;
        let fields = if is_decision { &call.fields } else { &call.query };
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| Err(Answer::page(400, page::notice("Something went wrong", what)));
        if field("response_type") != "code" {
            return refuse("response_type has to be `code`.");
        }
        if field("client_id") != self.terms.client {
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
            return Ok(Answer::page(200, page::consent("Fanfare's sandbox app", scopes, "sandbox", fields)));
        }
        if field("decision") == "allow" {
            let username = field("username").trim().trim_start_matches('@');
            let account = account::open(turn, self.terms.host, username)
                .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
            let consent = Consent {
                user: account.id,
                client: self.terms.client.into(),
                redirect_uri: field("redirect_uri").into(),
                scopes,
                lasts: (self.lasts)(fields),
                challenge: None,
            };
            let code = self.terms.code(turn, consent);
            back.query_pairs_mut().append_pair("code", &code);
        } else {
            back.query_pairs_mut()
                .append_pair("error", self.denied)
                .append_pair("error_description", "The user denied the request");
        }
        if !field("state").is_empty() {
            back.query_pairs_mut().append_pair("state", field("state"));
        }
        Ok(Answer::redirect(&format!("{back}{}", self.fragment)))
    }

    /// Whether a call names the app and its secret in the header.
    pub(crate) fn is_signed(&self, call: &Call) -> bool {
        call.basic().is_some_and(|(id, secret)| id == self.terms.client && secret == SECRET)
    }

    /// Tokens for a code or a refresh token.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub(crate) fn token(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Issued, Refusal> {
        match call.field("grant_type") {
            Some("authorization_code") => {
                let consent = call
                    .field("code")
                    .and_then(|code| self.terms.redeem(turn, code))
                    .filter(|consent| call.field("redirect_uri") == Some(consent.redirect_uri.as_str()))
                    .ok_or(Refusal::Code)?;
                Ok(self.terms.allow(turn, consent))
            }
            Some("refresh_token") => call
                .field("refresh_token")
                .and_then(|token| self.terms.renew(turn, token, self.terms.client))
                .ok_or(Refusal::Refresh),
            _ => Err(Refusal::Kind),
        }
    }
}
