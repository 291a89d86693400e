//! Authorization URLs.
//!
//! OAuth 2.0 section 4.1.1 with PKCE; [`crate::OAuth2`] has each platform's deviations. Building the URL
//! makes no request.
//! <https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1>, <https://www.rfc-editor.org/rfc/rfc7636>

use crate::{Adapter, Auth};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};
use url::Url;

/// An authorization request.
#[derive(Clone, Copy)]
pub struct Authorization<'a> {
    /// The app's public identifier.
    pub client_id: &'a str,
    /// Redirect URI.
    pub redirect_uri: &'a str,
    /// Requested scopes; empty for those that publishing needs.
    pub scopes: &'a [String],
    /// Opaque value that the platform returns unchanged.
    pub state: &'a str,
    /// The PKCE verifier. Only its digest is sent, and only to platforms that use PKCE.
    pub verifier: &'a str,
    /// True to force a new login even if the user has a session with the platform.
    pub is_forced: bool,
}

/// Returns the scopes to request: those given, or those that publishing needs.
pub fn scopes(auth: &Auth, given: &[String]) -> Vec<String> {
    match auth.oauth() {
        Some(oauth) if given.is_empty() => oauth.scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        _ => given.to_vec(),
    }
}

/// Returns the URL to redirect the user to; `None` if the platform has no OAuth.
pub fn address(platform: &Adapter, asked: &Authorization<'_>) -> Option<String> {
    let oauth = platform.auth.oauth()?;
    let scope = scopes(&platform.auth, asked.scopes).join(oauth.separator);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(asked.verifier));
    let mut query = vec![
        ("response_type", "code"),
        (oauth.client_id, asked.client_id),
        ("redirect_uri", asked.redirect_uri),
        ("scope", &scope),
        ("state", asked.state),
    ];
    if oauth.pkce {
        query.extend([("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")]);
    }
    let forced = if asked.is_forced { oauth.force_login } else { &[] };
    let is_replaced = |name: &str| forced.iter().any(|(other, _)| *other == name);
    query.extend(oauth.authorize_parameters.iter().filter(|(name, _)| !is_replaced(name)).chain(forced));
    let mut url = Url::parse(oauth.authorize).expect("a platform's address is a URL");
    url.query_pairs_mut().extend_pairs(query);
    // Plus signs in values are already encoded as %2B. Not every platform decodes a plus as a space.
    let query = url.query().unwrap_or_default().replace('+', "%20");
    url.set_query(Some(&query));
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const ASKED: Authorization<'static> = Authorization {
        client_id: "our app",
        redirect_uri: "https://example.com/back?a=b&c=d",
        scopes: &[],
        state: "s+t&u=v",
        // Verifier and challenge of RFC 7636, appendix B.
        verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        is_forced: false,
    };

    fn query(platform: &str, asked: &Authorization<'_>) -> HashMap<String, String> {
        let text = address(crate::get(platform).unwrap(), asked).unwrap();
        assert!(!text.contains('+') && !text.contains(asked.verifier), "{text}");
        Url::parse(&text).unwrap().query_pairs().into_owned().collect()
    }

    #[test]
    fn every_parameter_is_in_the_url() {
        let found = query("x", &ASKED);
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", ASKED.client_id),
            ("redirect_uri", ASKED.redirect_uri),
            ("scope", "tweet.read tweet.write users.read media.write offline.access"),
            ("state", ASKED.state),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
        ] {
            assert_eq!(found[name], value, "{name}");
        }
        let scopes = ["tweet.read".to_owned(), "a&b".to_owned()];
        let found = query("x", &Authorization { scopes: &scopes, ..ASKED });
        assert_eq!(found["scope"], "tweet.read a&b");
    }

    #[test]
    fn every_oauth_platform_has_an_authorization_url() {
        for platform in crate::all() {
            let address = address(platform, &ASKED);
            match platform.auth.oauth() {
                Some(oauth) => assert!(address.unwrap().starts_with(oauth.authorize), "{}", platform.id),
                None => assert_eq!(address, None),
            }
        }
    }
}
