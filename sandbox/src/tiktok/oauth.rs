//! Login Kit: <https://developers.tiktok.com/doc/oauth-user-access-token-management>.
//!
//! The app is a `client_key`, scopes are separated by commas, and responses are flat. An access token is
//! valid for a day, a refresh token for a year from the first one, and is replaced with each use. The
//! statuses of refusals are not documented: here they are 400, and 401 for an unknown app.

use super::{Outcome, Request, Response, Transaction};
use crate::exchange::Cause::State;
use crate::{
    page,
    simulator::get_or_create_account,
    tokens::{self, CLIENT_SECRET, Consent, Issued, Rotation, TokenPolicy},
};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The tokens of TikTok.
pub(super) const TOKENS: TokenPolicy = TokenPolicy {
    simulator: &super::TikTok,
    client: "awfanfaresandbox",
    granted: &["user.info.basic", "user.info.profile", "video.list", "video.publish", "video.upload"],
    code_seconds: 600,
    access: ("act.", 86_400),
    // A year.
    refresh: ("rft.", 31_536_000),
    rotation: Rotation::Inherited,
};

const SCOPES: [&str; 6] = [
    "user.info.basic",
    "user.info.profile",
    "user.info.stats",
    "video.list",
    "video.publish",
    "video.upload",
];
/// Those of the products Login Kit and Content Posting API, which every app can add. The others are of the Display API.
const OF_NEW_APPS: [&str; 3] = ["user.info.basic", "video.publish", "video.upload"];

/// `GET /v2/auth/authorize/`: asks the account's owner.
pub(super) fn consent_page(tx: &Transaction, request: &Request) -> Outcome {
    let authorization = AuthorizationRequest::read(tx, &request.query)?;
    let scopes = authorization.scopes.iter().map(String::as_str).collect();
    Ok(page::consent(super::ID, "Fanfare's sandbox app", scopes, "sandbox", &request.query))
}

/// `POST /v2/auth/authorize/`: the owner's decision, sent by the page's form.
pub(super) fn decide(tx: &mut Transaction, request: &Request) -> Outcome {
    let authorization = AuthorizationRequest::read(tx, &request.fields)?;
    if request.field("decision") != Some("allow") {
        return Ok(authorization
            .back(&[("error", "access_denied"), ("error_description", "User denied the request")]));
    }
    let username = request.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = get_or_create_account(tx, &super::TikTok, username)
        .map_err(|error| Response::page(400, page::notice("No such account", &error)))?;
    let consent = Consent {
        user: account.id,
        client: TOKENS.client.into(),
        redirect_uri: authorization.redirect_uri.clone(),
        scopes: authorization.scopes.clone(),
        has_refresh_token: true,
        challenge: authorization.challenge.clone().map(|challenge| (challenge, "S256".into())),
    };
    let code = TOKENS.code(tx, consent);
    Ok(authorization.back(&[("code", &code), ("scopes", &authorization.scopes.join(","))]))
}

/// Parameters of an authorization request.
struct AuthorizationRequest {
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: Option<String>,
}

impl AuthorizationRequest {
    fn read(tx: &Transaction, fields: &[(String, String)]) -> Result<Self, Response> {
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let refuse = |what: &str| {
            Err(Response::page(
                400,
                page::notice("Something went wrong", &format!("We couldn't log in with TikTok: {what}")),
            ))
        };
        if field("client_key") != TOKENS.client {
            return refuse("client_key.");
        }
        if field("response_type") != "code" {
            return refuse("response_type.");
        }
        let redirect = url::Url::parse(field("redirect_uri")).ok().filter(url::Url::has_host);
        // Redirect addresses are registered without query and fragment.
        if !redirect.is_some_and(|url| url.query().is_none() && url.fragment().is_none())
            || field("redirect_uri").len() >= 512
        {
            return refuse("redirect_uri.");
        }
        let scopes: Vec<String> =
            field("scope").split(',').filter(|scope| !scope.is_empty()).map(str::to_owned).collect();
        // The whole request is refused for one scope that the app does not have.
        let open = if tx.settings.is_approved() { &SCOPES[..] } else { &OF_NEW_APPS };
        if scopes.is_empty() || scopes.iter().any(|scope| !open.contains(&scope.as_str())) {
            return refuse("scope.");
        }
        let challenge = field("code_challenge");
        if !challenge.is_empty() && field("code_challenge_method") != "S256" {
            return refuse("code_challenge_method.");
        }
        Ok(Self {
            redirect_uri: field("redirect_uri").into(),
            scopes,
            state: field("state").into(),
            challenge: (!challenge.is_empty()).then(|| challenge.to_owned()),
        })
    }

    fn back(&self, pairs: &[(&str, &str)]) -> Response {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        url.query_pairs_mut().extend_pairs(pairs).append_pair("state", &self.state);
        Response::redirect(url.as_str())
    }
}

/// `POST /v2/oauth/token/`.
pub(super) fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    client(request)?;
    let field = |name: &str| {
        request.field(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            refusal(400, "invalid_request", &format!("The request parameters are malformed: {name}."))
        })
    };
    match field("grant_type")? {
        "authorization_code" => {
            let (presented, redirect_uri) = (field("code")?, field("redirect_uri")?);
            let invalid = || refusal(400, "invalid_grant", "Authorization code is invalid or expired.");
            let consent = TOKENS.redeem(tx, presented).ok_or_else(invalid)?;
            if consent.redirect_uri != redirect_uri {
                return Err(refusal(
                    400,
                    "invalid_request",
                    "Redirect_uri is not matched with the uri when requesting code.",
                ));
            }
            // TikTok writes the digest in hex, unlike RFC 7636.
            if let Some((challenge, _)) = &consent.challenge
                && hex::encode(Sha256::digest(field("code_verifier")?)) != challenge.to_lowercase()
            {
                return Err(refusal(400, "invalid_grant", "Code verifier or code challenge is invalid."));
            }
            Ok(token_response(&TOKENS.issue(tx, consent)))
        }
        "refresh_token" => TOKENS
            .refresh(tx, field("refresh_token")?, TOKENS.client)
            .map(|issued| token_response(&issued))
            .ok_or_else(|| refusal(400, "invalid_grant", "Refresh token is invalid or expired.")),
        _ => Err(refusal(400, "unsupported_grant_type", "The grant type is not supported.")),
    }
}

/// `POST /v2/oauth/revoke/`.
pub(super) fn revoke(tx: &mut Transaction, request: &Request) -> Outcome {
    client(request)?;
    let Some(token) = request.field("token").filter(|token| tokens::find(tx, super::ID, token).is_some())
    else {
        return Err(refusal(400, "invalid_request", "The access token is invalid."));
    };
    tokens::revoke_grant(tx, super::ID, token);
    Ok(Response::empty(200))
}

fn token_response(issued: &Issued) -> Response {
    Response::json(
        200,
        &json!({
            "open_id": issued.user,
            "scope": issued.scopes.join(","),
            "access_token": issued.access,
            "expires_in": issued.access_seconds,
            "refresh_token": issued.refresh,
            "refresh_expires_in": issued.refresh_seconds,
            "token_type": "Bearer",
        }),
    )
}

fn client(request: &Request) -> Result<(), Response> {
    match (request.field("client_key"), request.field("client_secret")) {
        (Some(key), Some(CLIENT_SECRET)) if key == TOKENS.client => Ok(()),
        (Some(_), Some(_)) => Err(refusal(401, "invalid_client", "Client key or secret is incorrect.")),
        _ => Err(refusal(400, "invalid_request", "The request parameters are malformed: client_key.")),
    }
}

fn refusal(status: u16, word: &str, description: &str) -> Response {
    let body = json!({ "error": word, "error_description": description, "log_id": super::log() });
    Response::json(status, &body).because(State).with("cache-control", "no-store")
}
