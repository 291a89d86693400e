//! Authorization URLs.
//!
//! OAuth 2.0 section 4.1.1 with PKCE; [`crate::OAuth2`] has each platform's deviations. Building the URL
//! makes no request.
//! <https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1>, <https://www.rfc-editor.org/rfc/rfc7636>

use crate::{Adapter, Auth, OAuth2};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::AppConfig;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use url::Url;

/// An authorization request.
#[derive(Clone, Copy)]
pub struct Authorization<'a> {
    /// The app's public identifier.
    pub client_id: &'a str,
    /// Redirect URI.
    pub redirect_uri: &'a str,
    /// Requested scopes; empty for the platform's default.
    pub scopes: &'a [String],
    /// Further parameters of the app, which replace the platform's own of the same name.
    pub parameters: &'a BTreeMap<String, String>,
    /// Opaque value that the platform returns unchanged.
    pub state: &'a str,
    /// The PKCE verifier. Only its digest is sent, and only to platforms that use PKCE.
    pub verifier: &'a str,
    /// True to force a new login even if the user has a session with the platform.
    pub is_forced: bool,
}

/// Parameters that an app can't set: they belong to the request.
pub const RESERVED: [&str; 8] = [
    "response_type",
    "client_id",
    "client_key",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// Returns the scopes to request: those given, or else the app's preset or the platform's default. None if the
/// app names a configuration that takes the scopes' place.
pub fn scopes(auth: &Auth, given: &[String], app: &AppConfig) -> Vec<String> {
    let Some(oauth) = auth.oauth().filter(|_| given.is_empty()) else { return given.to_vec() };
    if is_configured(oauth, &app.authorize_parameters) {
        return Vec::new();
    }
    let preset = app.preset.as_deref().and_then(|name| oauth.preset(name));
    let scopes = preset.map_or(oauth.scopes, |preset| preset.scopes);
    scopes.iter().map(|scope| (*scope).to_owned()).collect()
}

/// Returns true if a parameter of the app takes the scopes' place.
fn is_configured(oauth: &OAuth2, parameters: &BTreeMap<String, String>) -> bool {
    oauth.configuration.is_some_and(|name| parameters.contains_key(name))
}

/// Returns the URL to redirect the user to; `None` if the platform has no OAuth.
pub fn address(platform: &Adapter, asked: &Authorization<'_>) -> Option<String> {
    let oauth = platform.auth.oauth()?;
    let app = AppConfig { authorize_parameters: asked.parameters.clone(), ..AppConfig::default() };
    let scopes = scopes(&platform.auth, asked.scopes, &app);
    let scope = scopes.join(oauth.separator);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(asked.verifier));
    let mut query = vec![
        ("response_type", "code"),
        (oauth.client_id, asked.client_id),
        ("redirect_uri", asked.redirect_uri),
        ("state", asked.state),
    ];
    if !scopes.is_empty() {
        query.push(("scope", &scope));
    }
    if oauth.pkce {
        query.extend([("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")]);
    }
    let forced = if asked.is_forced { oauth.force_login } else { &[] };
    let own = asked.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = own.filter(|(name, _)| !RESERVED.contains(name));
    // Of two parameters of one name, the last applies.
    let others = oauth.authorize_parameters.iter().chain(forced).copied().chain(own);
    let others: BTreeMap<&str, &str> = others.collect();
    query.extend(others);
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
        parameters: &BTreeMap::new(),
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
    fn parameters_of_the_app_are_added_and_replace_the_platforms_own() {
        let words = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let parameters = words(&[("duration", "temporary"), ("state", "theirs"), ("brand", "a b")]);
        let found = query("reddit", &Authorization { parameters: &parameters, ..ASKED });
        assert_eq!((found["duration"].as_str(), found["brand"].as_str()), ("temporary", "a b"));
        assert_eq!(found["state"], ASKED.state);
        // A configuration of Facebook Login for Business holds the scopes.
        let parameters = words(&[("config_id", "1")]);
        let found = query("facebook", &Authorization { parameters: &parameters, ..ASKED });
        assert_eq!((found["config_id"].as_str(), found.get("scope")), ("1", None));
        let found = query("x", &Authorization { parameters: &parameters, ..ASKED });
        assert!(found.contains_key("scope"), "{found:?}");
    }

    #[test]
    fn an_app_requests_its_scopes_or_its_preset() {
        let linkedin = &crate::get("linkedin").unwrap().auth;
        let preset = |name: &str| AppConfig { preset: Some(name.to_owned()), ..AppConfig::default() };
        assert_eq!(scopes(linkedin, &[], &AppConfig::default()), ["openid", "profile", "w_member_social"]);
        assert!(!scopes(linkedin, &[], &preset("community_management")).contains(&"openid".to_owned()));
        assert_eq!(scopes(linkedin, &["email".to_owned()], &preset("community_management")), ["email"]);
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
