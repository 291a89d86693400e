//! OAuth 2.0 with PKCE, as at
//! <https://docs.x.com/resources/fundamentals/authentication/oauth-2-0/authorization-code>: a code lives
//! for 30 seconds, an access token for two hours, and a refresh token for one use.

use super::{Answer, Call, Turn, account};
use crate::{
    page,
    tokens::{self, Consent, Issued, Rotation, SECRET, Terms},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The sandbox's confidential app.
const CLIENT_ID: &str = "fanfare-sandbox";
/// The sandbox's public app, which has no secret.
const PUBLIC_CLIENT_ID: &str = "fanfare-sandbox-public";

/// The tokens of X.
pub(super) const TERMS: Terms = Terms {
    host: &super::X,
    client: CLIENT_ID,
    granted: &["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"],
    code_seconds: 30,
    access: ("", 7_200),
    // 180 days.
    refresh: ("", 15_552_000),
    rotation: Rotation::Renewed,
};

/// `GET /i/oauth2/authorize`: asks the account's owner.
pub(super) fn ask(call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.query)?;
    let client =
        if wish.client == CLIENT_ID { "Fanfare's sandbox app" } else { "Fanfare's public sandbox app" };
    let scopes = wish.scopes.iter().map(String::as_str).collect();
    Ok(Answer::page(200, page::consent(client, scopes, "sandbox", &call.query)))
}

/// `POST /i/oauth2/authorize`: the owner's decision, sent by the page's form.
pub(super) fn consent(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.fields)?;
    if call.field("decision") != Some("allow") {
        return Ok(wish.back(&[("error", "access_denied"), ("state", &wish.state)]));
    }
    let username = call.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = account::open(turn, &super::X, username)
        .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
    let consent = Consent {
        user: account.id,
        client: wish.client.clone(),
        redirect_uri: wish.redirect_uri.clone(),
        lasts: wish.scopes.iter().any(|scope| scope == "offline.access"),
        scopes: wish.scopes.clone(),
        challenge: Some((wish.challenge.clone(), wish.method.clone())),
    };
    let code = TERMS.code(turn, consent);
    Ok(wish.back(&[("state", &wish.state), ("code", &code)]))
}

/// What an app asks an account's owner for.
struct Wish {
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: String,
    method: String,
}

impl Wish {
    fn read(fields: &[(String, String)]) -> Result<Self, Answer> {
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| Err(Answer::page(400, page::notice("Something went wrong", what)));
        if field("response_type") != "code" {
            return refuse("response_type has to be `code`.");
        }
        if ![CLIENT_ID, PUBLIC_CLIENT_ID].contains(&field("client_id")) {
            return refuse("No app has this client_id.");
        }
        if !url::Url::parse(field("redirect_uri")).is_ok_and(|url| url.has_host()) {
            return refuse("redirect_uri has to be an absolute address.");
        }
        let state = field("state");
        if state.is_empty() || state.chars().count() > 500 {
            return refuse("state has to have 1 to 500 characters.");
        }
        let scopes: Vec<_> = field("scope").split_whitespace().map(str::to_owned).collect();
        if scopes.is_empty() {
            return refuse("scope is missing.");
        }
        // In whatever case: twitter-api-v2 writes `s256`, so X presumably does not mind.
        let is_method =
            ["S256", "plain"].iter().any(|m| m.eq_ignore_ascii_case(field("code_challenge_method")));
        if field("code_challenge").is_empty() || !is_method {
            return refuse("PKCE is required: code_challenge, and code_challenge_method S256 or plain.");
        }
        Ok(Self {
            client: field("client_id").into(),
            redirect_uri: field("redirect_uri").into(),
            scopes,
            state: state.into(),
            challenge: field("code_challenge").into(),
            method: field("code_challenge_method").into(),
        })
    }

    fn back(&self, pairs: &[(&str, &str)]) -> Answer {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        url.query_pairs_mut().extend_pairs(pairs);
        Answer::redirect(url.as_str())
    }
}

/// `POST /2/oauth2/token`.
pub(super) fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let client = client(call)?;
    let missing = |name: &str| refusal(&format!("Missing required parameter [{name}]."));
    match call.field("grant_type") {
        Some("authorization_code") => {
            let presented = call.field("code").ok_or_else(|| missing("code"))?;
            let redirect_uri = call.field("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
            let verifier = call.field("code_verifier").ok_or_else(|| missing("code_verifier"))?;
            let invalid = || refusal("Value passed for the authorization code was invalid.");
            let consent = TERMS.redeem(turn, presented).ok_or_else(invalid)?;
            if consent.client != client || consent.redirect_uri != redirect_uri {
                return Err(invalid());
            }
            let is_proven = consent.challenge.as_ref().is_some_and(|(challenge, method)| {
                let derived = match method.eq_ignore_ascii_case("plain") {
                    true => verifier.to_owned(),
                    false => BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
                };
                derived == *challenge
            });
            if !is_proven {
                return Err(refusal("Value passed for code verifier did not match code challenge."));
            }
            Ok(given(TERMS.allow(turn, consent)))
        }
        Some("refresh_token") => {
            let presented = call.field("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let issued = TERMS
                .renew(turn, presented, &client)
                .ok_or_else(|| refusal("Value passed for the token was invalid."))?;
            Ok(given(issued))
        }
        Some(_) => Err(Answer::json(
            400,
            &json!({
                "error": "unsupported_grant_type",
                "error_description": "Value passed for the grant type was invalid.",
            }),
        )),
        None => Err(missing("grant_type")),
    }
}

/// `POST /2/oauth2/revoke`.
pub(super) fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let token = call.field("token").ok_or_else(|| refusal("Missing required parameter [token]."))?;
    tokens::end(turn, super::ID, token);
    Ok(Answer::json(200, &json!({ "revoked": true })))
}

fn given(issued: Issued) -> Answer {
    let mut body = json!({
        "token_type": "bearer",
        "expires_in": issued.access_seconds,
        "access_token": issued.access,
        "scope": issued.scopes.join(" "),
    });
    if let Some(refresh) = issued.refresh {
        body["refresh_token"] = json!(refresh);
    }
    Answer::json(200, &body)
}

/// Who calls: the confidential app by its header, the public one by a field.
fn client(call: &Call) -> Result<String, Answer> {
    let unauthorized =
        |text: &str| Answer::json(401, &json!({ "error": "unauthorized_client", "error_description": text }));
    match (call.basic(), call.field("client_id")) {
        (Some((id, secret)), _) if id == CLIENT_ID && secret == SECRET => Ok(id),
        (Some(_), _) => Err(unauthorized("Missing valid authorization header")),
        (None, Some(PUBLIC_CLIENT_ID)) => Ok(PUBLIC_CLIENT_ID.into()),
        (None, Some(CLIENT_ID)) => Err(unauthorized("Missing valid authorization header")),
        (None, _) => Err(refusal("Missing required parameter [client_id].")),
    }
}

fn refusal(description: &str) -> Answer {
    Answer::json(400, &json!({ "error": "invalid_request", "error_description": description }))
}
