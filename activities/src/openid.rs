//! Signing in people at the operator's OpenID provider: <https://openid.net/specs/openid-connect-core-1_0.html>.
//!
//! The code flow with PKCE and a nonce. Discovery, exchange and verification happen here, because the API makes no
//! outgoing call and does not have the client's secret. The provider's keys are fetched for each login, so that a
//! replaced key is never trusted any longer; logins are rare.
//!
//! Tokens are verified by `jsonwebtoken`; why not the rest by `openidconnect` stands in `docs/decisions.md`.

#![expect(
    dead_code,
    reason = "the macro makes a marker per activity; workflows use those of the declarations"
)]

use crate::Deps;
use anyhow::{Context, bail, ensure};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{AlgorithmParameters, Jwk, JwkSet},
};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};
use store::upkeep::vault;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use url::{Host, Url};
use workflows::activities::{OpenIdCallback, OpenIdLogin, OpenIdResult, OpenIdStart, definition};

/// Largest answer of a provider.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Time limit of one call to the provider.
const CALL_TIMEOUT: Duration = Duration::from_secs(7);
/// Least length of an RSA key: <https://www.rfc-editor.org/rfc/rfc7518#section-3.3>.
const MIN_RSA_BYTES: usize = 2048 / 8;
/// Signatures that are accepted: asymmetric ones only, because the client's secret signs nothing.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The OpenID provider that the operator configured.
#[derive(Clone)]
pub struct Provider {
    /// The issuer: https, or http to loopback.
    pub issuer: Url,
    /// This service's id there.
    pub client_id: String,
    /// This service's secret there.
    pub client_secret: String,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.issuer.as_str()).finish_non_exhaustive()
    }
}

/// Code, verifier and nonce of a login, as the API seals them.
#[derive(Serialize, Deserialize)]
pub struct SealedCode {
    /// The code.
    pub code: String,
    /// The PKCE verifier.
    pub verifier: String,
    /// The nonce that the identity token must contain.
    pub nonce: String,
}

/// Metadata of the provider: <https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata>.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    #[serde(deserialize_with = "address")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "address")]
    token_endpoint: Url,
    #[serde(deserialize_with = "address")]
    jwks_uri: Url,
    userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// Parses an address.
fn address<'de, D: Deserializer<'de>>(text: D) -> Result<Url, D::Error> {
    Url::parse(&String::deserialize(text)?).map_err(D::Error::custom)
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    nonce: Option<String>,
    azp: Option<String>,
    aud: Value,
    #[serde(flatten)]
    profile: Profile,
}

#[derive(Default, Deserialize)]
struct Profile {
    email: Option<String>,
    email_verified: Option<Value>,
    name: Option<String>,
}

impl Profile {
    /// The address, if the provider has verified it. Some providers write the flag as a string.
    fn verified_email(&self) -> Option<String> {
        let is_verified = matches!(&self.email_verified, Some(Value::Bool(true)))
            || self.email_verified.as_ref().and_then(Value::as_str) == Some("true");
        self.email.clone().filter(|_| is_verified)
    }
}

/// The activities that sign in people.
pub(crate) struct OpenId {
    pub(crate) deps: Arc<Deps>,
}

#[activities]
impl OpenId {
    #[activity(definition = definition::BeginOpenId)]
    pub(crate) async fn begin_open_id(
        self: Arc<Self>,
        _cx: ActivityContext,
        login: OpenIdLogin,
    ) -> Result<OpenIdStart, ActivityError> {
        Ok(match self.begin(&login).await {
            Ok(url) => OpenIdStart::At { url },
            Err(error) => OpenIdStart::Refused { detail: report(&error) },
        })
    }

    #[activity(definition = definition::FinishOpenId)]
    pub(crate) async fn finish_open_id(
        self: Arc<Self>,
        _cx: ActivityContext,
        callback: OpenIdCallback,
    ) -> Result<OpenIdResult, ActivityError> {
        Ok(match self.finish(&callback).await {
            Ok(person) => person,
            Err(error) if error.is::<Away>() => OpenIdResult::Away { detail: report(&error) },
            Err(error) => OpenIdResult::Refused { detail: report(&error) },
        })
    }
}

impl OpenId {
    fn provider(&self) -> anyhow::Result<&Provider> {
        self.deps.openid.as_ref().context("the workers have no FANFARE_OIDC_CLIENT_SECRET")
    }

    async fn begin(&self, login: &OpenIdLogin) -> anyhow::Result<String> {
        let provider = self.provider()?;
        let found = discover(&client()?, provider).await?;
        let mut url = found.authorization_endpoint;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &provider.client_id)
            .append_pair("redirect_uri", &login.redirect_uri)
            .append_pair("scope", "openid email profile")
            .append_pair("state", &login.state)
            .append_pair("nonce", &login.nonce)
            .append_pair("code_challenge", &login.challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    async fn finish(&self, callback: &OpenIdCallback) -> anyhow::Result<OpenIdResult> {
        let provider = self.provider()?;
        let login: SealedCode = self.deps.unseal(&callback.sealed, vault::AAD_OPENID)?;
        let client = client()?;
        let found = discover(&client, provider).await?;
        let tokens = exchange(&client, provider, &found, &login, &callback.redirect_uri).await?;
        let keys: JwkSet = ask(client.get(found.jwks_uri.clone())).await.context("the provider's keys")?;
        let claims = verify(&tokens.id_token, &keys, provider, &found.issuer, &login.nonce)?;
        let mut profile = claims.profile;
        if profile.email.is_none()
            && let (Some(endpoint), Some(token)) = (&found.userinfo_endpoint, &tokens.access_token)
        {
            #[derive(Deserialize)]
            struct UserInfo {
                sub: String,
                #[serde(flatten)]
                profile: Profile,
            }
            let endpoint = Url::parse(endpoint)?;
            check_address(&endpoint)?;
            let info: UserInfo = ask(client.get(endpoint).bearer_auth(token)).await.context("userinfo")?;
            ensure!(info.sub == claims.sub, "userinfo is about somebody else");
            profile = info.profile;
        }
        Ok(OpenIdResult::Person {
            issuer: found.issuer,
            subject: claims.sub,
            email: profile.verified_email(),
            name: profile.name.map(|name| name.chars().take(100).filter(|c| !c.is_control()).collect()),
        })
    }
}

/// Returns in one line why a login is refused. The API logs it.
fn report(error: &anyhow::Error) -> String {
    format!("{error:#}").chars().take(500).collect()
}

fn client() -> anyhow::Result<Client> {
    Ok(egress::unfiltered().timeout(CALL_TIMEOUT).build()?)
}

async fn discover(client: &Client, provider: &Provider) -> anyhow::Result<Discovery> {
    let issuer = provider.issuer.as_str().trim_end_matches('/');
    let url = format!("{issuer}/.well-known/openid-configuration");
    let found: Discovery = ask(client.get(url)).await.context("the provider's discovery document")?;
    ensure!(
        found.issuer.trim_end_matches('/') == issuer,
        "the discovery document is of the issuer {}, not {issuer}",
        found.issuer
    );
    for address in [&found.authorization_endpoint, &found.token_endpoint, &found.jwks_uri] {
        check_address(address)?;
    }
    Ok(found)
}

/// Fails unless an address is https, or http to loopback.
fn check_address(url: &Url) -> anyhow::Result<()> {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    ensure!(url.scheme() == "https" || (url.scheme() == "http" && is_loopback), "{url} is not https");
    Ok(())
}

async fn exchange(
    client: &Client,
    provider: &Provider,
    found: &Discovery,
    login: &SealedCode,
    redirect_uri: &str,
) -> anyhow::Result<Tokens> {
    let mut form = vec![
        ("grant_type", "authorization_code"),
        ("code", &login.code),
        ("redirect_uri", redirect_uri),
        ("code_verifier", &login.verifier),
    ];
    let methods = found.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    let takes = |method: &str| methods.iter().any(|known| known == method);
    let request = client.post(found.token_endpoint.clone());
    // The default is basic authentication.
    let request = if takes("client_secret_post") && !takes("client_secret_basic") {
        form.push(("client_id", &provider.client_id));
        form.push(("client_secret", &provider.client_secret));
        request
    } else {
        // https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        request.basic_auth(encode(&provider.client_id), Some(encode(&provider.client_secret)))
    };
    ask(request.form(&form)).await.context("the exchange of the code")
}

/// Verifies an identity token: <https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation>.
fn verify(
    token: &str,
    keys: &JwkSet,
    provider: &Provider,
    issuer: &str,
    nonce: &str,
) -> anyhow::Result<Claims> {
    let header = decode_header(token).context("the identity token's header")?;
    ensure!(ALGORITHMS.contains(&header.alg), "the identity token is signed with {:?}", header.alg);
    let key: &Jwk = match (&header.kid, &keys.keys[..]) {
        (Some(id), _) => keys.find(id).context("the identity token's key is not the provider's")?,
        (None, [only]) => only,
        (None, _) => bail!("the identity token does not name its key"),
    };
    ensure!(!is_short(key), "the provider's RSA key has fewer than {MIN_RSA_BYTES} bytes");
    let mut validation = Validation::new(header.alg);
    validation.set_audience(&[&provider.client_id]);
    validation.set_issuer(&[issuer]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let claims = decode::<Claims>(token, &DecodingKey::from_jwk(key)?, &validation)
        .context("the identity token is not valid")?
        .claims;
    ensure!(claims.nonce.as_deref() == Some(nonce), "the identity token is of another login");
    let is_for_others = claims.aud.as_array().is_some_and(|all| all.len() > 1);
    ensure!(
        claims.azp.as_ref().map_or(!is_for_others, |azp| *azp == provider.client_id),
        "the identity token was issued for another client"
    );
    Ok(claims)
}

/// Returns whether a key is of RSA and too short to count: `jsonwebtoken` bounds its length from above only.
fn is_short(key: &Jwk) -> bool {
    let AlgorithmParameters::RSA(rsa) = &key.algorithm else { return false };
    let modulus = URL_SAFE_NO_PAD.decode(&rsa.n).unwrap_or_default();
    modulus.iter().skip_while(|byte| **byte == 0).count() < MIN_RSA_BYTES
}

/// Why a provider said nothing of a login.
#[derive(Debug)]
struct Away(String);

impl fmt::Display for Away {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Away {}

/// Sends a request and reads the answer, up to a limit. Fails with [`Away`] if another try may be answered.
async fn ask<T: DeserializeOwned>(request: RequestBuilder) -> anyhow::Result<T> {
    let away = |error: reqwest::Error| Away(format!("{:#}", anyhow::Error::from(error)));
    let mut response = request.header("accept", "application/json").send().await.map_err(away)?;
    let status = response.status();
    let mut answer = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(away)? {
        ensure!(answer.len() + piece.len() <= MAX_ANSWER_BYTES, "the answer is too long");
        answer.extend(piece);
    }
    if !status.is_success() {
        let text: String = String::from_utf8_lossy(&answer).chars().take(200).collect();
        let message = format!("the provider answered {status}: {text}");
        ensure!(!status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS, Away(message));
        bail!(message);
    }
    serde_json::from_slice(&answer).context("the answer is not as expected")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use jsonwebtoken::{EncodingKey, Header, encode, get_current_timestamp};
    use serde_json::json;

    /// Coordinates and private value of a key: <https://www.rfc-editor.org/rfc/rfc7515#appendix-A.3>.
    const KEY: [&str; 3] = [
        "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
    ];

    /// Signs claims with the key, which is encoded as <https://www.rfc-editor.org/rfc/rfc5915> says.
    fn signed(key_id: &str, claims: &Value) -> String {
        let [x, y, private] = KEY.map(|part| BASE64_URL_SAFE_NO_PAD.decode(part).unwrap());
        let head = b"\x30\x81\x87\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\
            \x04\x6d\x30\x6b\x02\x01\x01\x04\x20";
        let der = [&head[..], &private, b"\xa1\x44\x03\x42\x00\x04", &x, &y].concat();
        let header = Header { kid: Some(key_id.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &EncodingKey::from_ec_der(&der)).unwrap()
    }

    #[test]
    fn a_token_counts_with_each_claim_and_the_key_that_it_names() {
        let issuer = "https://id.example";
        let provider = Provider {
            issuer: Url::parse(issuer).unwrap(),
            client_id: "fanfare".to_owned(),
            client_secret: "secret".to_owned(),
        };
        // One key of a kind that nobody here knows hides no other.
        let keys = json!({ "keys": [
            { "kty": "AKP", "kid": "another", "alg": "ML-DSA-65", "pub": "AAAA" },
            { "kty": "EC", "kid": "one", "alg": "ES256", "use": "sig", "crv": "P-256", "x": KEY[0], "y": KEY[1] },
        ] });
        let keys: JwkSet = serde_json::from_value(keys).unwrap();
        let now = get_current_timestamp();
        let claims = json!({
            "iss": issuer, "aud": "fanfare", "sub": "7", "nonce": "n", "exp": now + 300, "iat": now,
        });
        let verified = |key_id: &str, claims: &Value| {
            verify(&signed(key_id, claims), &keys, &provider, issuer, "n").map(|claims| claims.sub)
        };
        assert_eq!(verified("one", &claims).unwrap(), "7");
        for key_id in ["another", "two"] {
            assert!(verified(key_id, &claims).is_err(), "{key_id}");
        }
        for (name, value) in [
            ("exp", json!(now - 300)),
            // https://github.com/Keats/jsonwebtoken/security/advisories/GHSA-h395-gr6q-cpjc
            ("exp", json!((now + 300).to_string())),
            ("exp", Value::Null),
            ("iss", json!("https://other.example")),
            ("iss", Value::Null),
            ("aud", json!("other")),
            ("aud", json!(["fanfare", "other"])),
            ("aud", Value::Null),
            ("azp", json!("other")),
            ("nonce", json!("o")),
            ("nonce", Value::Null),
            ("sub", Value::Null),
        ] {
            let mut wrong = claims.clone();
            wrong[name] = value.clone();
            assert!(verified("one", &wrong).is_err(), "{name}: {value}");
        }
    }

    /// A key of 1,024 bits, encoded as <https://www.rfc-editor.org/rfc/rfc8017#appendix-A.1.2> says, and its modulus.
    const SHORT_KEY: &str = "MIICXwIBAAKBgQDoYjlP0douY0FDiGQYeEr85676OPQmIsaMeoiAVGzIJMnPjPCpk4qa3yC2Usp5vvpN8z048hLW7FyJ9Uv_G674\
        JduHuWURMEBGu3Rt_c3l9MFB6k2k_5i9AxVNKInp-_na642eml4sLH88x41PaYfzSPHzi4glmZGZAW5pUGdIQwIDAQABAoGBAMTE\
        7yyEUA-5YbjSU5dYvH5bm5ErCqkEB0VKOC0Zz6bFZ9ED0YB1ewbaanOXtPTT3lSE41FFwOgV6eGzQC96fHLrXOUr8s0wKU4vWnlL\
        ApfLe_6nXM7zKQC3Z_yRx4FiJMvQIsapB_GuOpZX_DlZp2Deb9DXTjtFWBCwGCOwZQ1ZAkEA9t2aPhcxYlTM6mR8ntTTg9KIQ30O\
        yMLnZMpmJ1eHSsryq5CxiG-Omo3Mv5iL2_qeObfHONQ4XXSvGQ-h_4XDtQJBAPD7cXv8sMvM0v3EBUGYvX5Q_X8IeDXK_UkJmkr-\
        Zg-2HGXXVYXb35kS6bXuTvgGnrXBe0EW3ipcHUQB7NndxxcCQQCrSNbcffsl3vDPMSnGiqS3sjwZl4vKgHFM3aJDadfVbTszDxIf\
        OEgZtIl75rwjxaBDK-Bu7dCuB2f2W4JraMSBAkEAp74vQaIkoshhuhkfm4ippurTegC4RKGW66dOipNJEfivDcj1lCb4HwKGQoiu\
        2YEqKtSSaj1zykKycGtypjj1YwJBAMDTxrhTOq90jRVuwWaOUyuZ21RJ3r2RNFFHwFn-z6b7HGlWmmeXf8LAWgG5Q-5nSvPYIifw\
        Y3OrEBHh4ebpXvk";
    const SHORT_MODULUS: &str = "6GI5T9HaLmNBQ4hkGHhK_Oeu-jj0JiLGjHqIgFRsyCTJz4zwqZOKmt8gtlLKeb76TfM9OPIS1uxcifVL_xuu-CXbh7llETBARrt0\
        bf3N5fTBQepNpP-YvQMVTSiJ6fv52uuNnppeLCx_PMeNT2mH80jx84uIJZmRmQFuaVBnSEM";

    #[test]
    fn a_token_of_a_short_rsa_key_does_not_count() {
        let rsa = |modulus: &str| json!({ "kty": "RSA", "kid": "short", "alg": "RS256", "use": "sig", "n": modulus, "e": "AQAB" });
        let key = |modulus: &[u8]| {
            let key = serde_json::from_value::<Jwk>(rsa(&BASE64_URL_SAFE_NO_PAD.encode(modulus)));
            key.unwrap()
        };
        assert!(!is_short(&key(&[1; MIN_RSA_BYTES])));
        assert!(is_short(&key(&[1; MIN_RSA_BYTES - 1])));
        // Zeros in front make no key longer.
        assert!(is_short(&key(&[&[0; 9][..], &[1; MIN_RSA_BYTES - 1]].concat())));

        let provider = Provider {
            issuer: Url::parse("https://id.example").unwrap(),
            client_id: "fanfare".to_owned(),
            client_secret: "secret".to_owned(),
        };
        let keys: JwkSet = serde_json::from_value(json!({ "keys": [rsa(SHORT_MODULUS)] })).unwrap();
        let der = BASE64_URL_SAFE_NO_PAD.decode(SHORT_KEY).unwrap();
        let header = Header { kid: Some("short".to_owned()), ..Header::new(Algorithm::RS256) };
        let claims = json!({
            "iss": "https://id.example", "aud": "fanfare", "sub": "7", "nonce": "n",
            "exp": get_current_timestamp() + 300,
        });
        let token = encode(&header, &claims, &EncodingKey::from_rsa_der(&der)).unwrap();
        let refused = verify(&token, &keys, &provider, "https://id.example", "n").err().unwrap();
        assert!(refused.to_string().contains("RSA key"), "{refused:#}");
    }
}
