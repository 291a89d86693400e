//! OAuth 2.0 with PKCE
//! (<https://docs.x.com/resources/fundamentals/authentication/oauth-2-0/authorization-code>): a code is valid
//! for 30 seconds, an access token for two hours, and a refresh token for one use.

use super::{Outcome, Request, Response, Transaction};
use crate::exchange::Cause::State;
use crate::{
    page,
    simulator::get_or_create_account,
    tokens::{self, CLIENT_SECRET, Consent, Issued, Rotation, TokenPolicy},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The sandbox's confidential app.
const CLIENT_ID: &str = "fanfare-sandbox";
/// The sandbox's public app, which has no secret.
const PUBLIC_CLIENT_ID: &str = "fanfare-sandbox-public";

/// The scopes of X's description, version 2.167.
const SCOPES: [&str; 24] = [
    "block.read",
    "block.write",
    "bookmark.read",
    "bookmark.write",
    "broadcast.read",
    "broadcast.write",
    "dm.read",
    "dm.write",
    "follows.read",
    "follows.write",
    "like.read",
    "like.write",
    "list.read",
    "list.write",
    "media.write",
    "mute.read",
    "mute.write",
    "offline.access",
    "space.read",
    "timeline.read",
    "tweet.moderate.write",
    "tweet.read",
    "tweet.write",
    "users.read",
];

/// The tokens of X.
pub(super) const TOKENS: TokenPolicy = TokenPolicy {
    simulator: &super::X,
    client: CLIENT_ID,
    granted: &["tweet.read", "tweet.write", "users.read", "media.write", "offline.access"],
    code_seconds: 30,
    access: ("", 7_200),
    // 180 days.
    refresh: ("", 15_552_000),
    rotation: Rotation::Renewed,
};

/// `GET /i/oauth2/authorize`: asks the account's owner.
pub(super) fn consent_page(request: &Request) -> Outcome {
    let authorization = AuthorizationRequest::read(&request.query)?;
    let client = if authorization.client == CLIENT_ID {
        "Fanfare's sandbox app"
    } else {
        "Fanfare's public sandbox app"
    };
    let scopes = authorization.scopes.iter().map(String::as_str).collect();
    Ok(page::consent(super::ID, client, scopes, "sandbox", &request.query))
}

/// `POST /i/oauth2/authorize`: the owner's decision, sent by the page's form.
pub(super) fn decide(tx: &mut Transaction, request: &Request) -> Outcome {
    let authorization = AuthorizationRequest::read(&request.fields)?;
    if request.field("decision") != Some("allow") {
        return Ok(authorization.back(&[("error", "access_denied"), ("state", &authorization.state)]));
    }
    let username = request.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = get_or_create_account(tx, &super::X, username)
        .map_err(|error| Response::page(400, page::notice("No such account", &error)))?;
    let consent = Consent {
        user: account.id,
        client: authorization.client.clone(),
        redirect_uri: authorization.redirect_uri.clone(),
        has_refresh_token: authorization.scopes.iter().any(|scope| scope == "offline.access"),
        scopes: authorization.scopes.clone(),
        challenge: Some((authorization.challenge.clone(), authorization.method.clone())),
    };
    let code = TOKENS.code(tx, consent);
    Ok(authorization.back(&[("state", &authorization.state), ("code", &code)]))
}

/// Parameters of an authorization request.
struct AuthorizationRequest {
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: String,
    method: String,
}

impl AuthorizationRequest {
    fn read(fields: &[(String, String)]) -> Result<Self, Response> {
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let refuse = |what: &str| Err(Response::page(400, page::notice("Something went wrong", what)));
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
        if let Some(unknown) = scopes.iter().find(|scope| !SCOPES.contains(&scope.as_str())) {
            return refuse(&format!("There is no scope `{unknown}`."));
        }
        // In any case: twitter-api-v2 writes `s256`, so X presumably accepts that.
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

    fn back(&self, pairs: &[(&str, &str)]) -> Response {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        url.query_pairs_mut().extend_pairs(pairs);
        Response::redirect(url.as_str())
    }
}

/// `POST /2/oauth2/token`.
pub(super) fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    let client = client(request)?;
    let missing = |name: &str| refusal(&format!("Missing required parameter [{name}]."));
    match request.field("grant_type") {
        Some("authorization_code") => {
            let presented = request.field("code").ok_or_else(|| missing("code"))?;
            let redirect_uri = request.field("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
            let verifier = request.field("code_verifier").ok_or_else(|| missing("code_verifier"))?;
            let invalid = || refusal("Value passed for the authorization code was invalid.");
            let consent = TOKENS.redeem(tx, presented).ok_or_else(invalid)?;
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
            Ok(token_response(TOKENS.issue(tx, consent)))
        }
        Some("refresh_token") => {
            let presented = request.field("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let issued = TOKENS
                .refresh(tx, presented, &client)
                .ok_or_else(|| refusal("Value passed for the token was invalid."))?;
            Ok(token_response(issued))
        }
        Some(_) => Err(Response::json(
            400,
            &json!({
                "error": "unsupported_grant_type",
                "error_description": "Value passed for the grant type was invalid.",
            }),
        )
        .because(State)),
        None => Err(missing("grant_type")),
    }
}

/// `POST /2/oauth2/revoke`.
pub(super) fn revoke(tx: &mut Transaction, request: &Request) -> Outcome {
    client(request)?;
    let token = request.field("token").ok_or_else(|| refusal("Missing required parameter [token]."))?;
    tokens::revoke_grant(tx, super::ID, token);
    Ok(Response::json(200, &json!({ "revoked": true })))
}

fn token_response(issued: Issued) -> Response {
    let mut body = json!({
        "token_type": "bearer",
        "expires_in": issued.access_seconds,
        "access_token": issued.access,
        "scope": issued.scopes.join(" "),
    });
    if let Some(refresh) = issued.refresh {
        body["refresh_token"] = json!(refresh);
    }
    Response::json(200, &body)
}

/// Authenticates the client: the confidential app by its header, the public app by a field.
fn client(request: &Request) -> Result<String, Response> {
    let unauthorized = |text: &str| {
        Response::json(401, &json!({ "error": "unauthorized_client", "error_description": text }))
            .because(State)
    };
    match (request.basic(), request.field("client_id")) {
        (Some((id, secret)), _) if id == CLIENT_ID && secret == CLIENT_SECRET => Ok(id),
        (Some(_), _) => Err(unauthorized("Missing valid authorization header")),
        (None, Some(PUBLIC_CLIENT_ID)) => Ok(PUBLIC_CLIENT_ID.into()),
        (None, Some(CLIENT_ID)) => Err(unauthorized("Missing valid authorization header")),
        (None, _) => Err(refusal("Missing required parameter [client_id].")),
    }
}

fn refusal(description: &str) -> Response {
    Response::json(400, &json!({ "error": "invalid_request", "error_description": description }))
        .because(State)
}
