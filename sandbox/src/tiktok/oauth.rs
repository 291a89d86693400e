//! Login Kit: <https://developers.tiktok.com/doc/oauth-user-access-token-management>.
//!
//! The app is a `client_key`, scopes stand between commas, and answers are flat. An access token lives
//! for a day; a refresh token for a year from the first, and another comes with each use. What a
//! refusal's status is, TikTok does not say: here it is 400, and 401 where the app is unknown.

use super::{Answer, Call, Turn, account};
use crate::{
    page,
    tokens::{self, Consent, Issued, Rotation, SECRET, Terms},
};
use serde_json::json;
use sha2::{Digest, Sha256};

/// The tokens of TikTok.
pub(super) const TERMS: Terms = Terms {
    host: &super::TikTok,
    client: "awfanfaresandbox",
    granted: &["user.info.basic", "user.info.profile", "video.list", "video.publish"],
    code_seconds: 600,
    access: ("act.", 86_400),
    // A year.
    refresh: ("rft.", 31_536_000),
    rotation: Rotation::Inherited,
};

const SCOPES: [&str; 6] =
    ["user.info.basic", "user.info.profile", "user.info.stats", "video.list", "video.publish", "video.upload"];
/// `GET /v2/auth/authorize/`: asks the account's owner.
pub(super) fn ask(call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.query)?;
    let scopes = wish.scopes.iter().map(String::as_str).collect();
    Ok(Answer::page(200, page::consent("Fanfare's sandbox app", scopes, "sandbox", &call.query)))
}

/// `POST /v2/auth/authorize/`: the owner's decision, sent by the page's form.
pub(super) fn consent(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.fields)?;
    if call.field("decision") != Some("allow") {
        return Ok(wish.back(&[("error", "access_denied"), ("error_description", "User denied the request")]));
    }
    let username = call.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = account::open(turn, &super::TikTok, username)
        .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
    let consent = Consent {
        user: account.id,
        client: TERMS.client.into(),
        redirect_uri: wish.redirect_uri.clone(),
        scopes: wish.scopes.clone(),
        lasts: true,
        challenge: wish.challenge.clone().map(|challenge| (challenge, "S256".into())),
    };
    let code = TERMS.code(turn, consent);
    Ok(wish.back(&[("code", &code), ("scopes", &wish.scopes.join(","))]))
}

/// What an app asks an account's owner for.
struct Wish {
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: Option<String>,
}

impl Wish {
    fn read(fields: &[(String, String)]) -> Result<Self, Answer> {
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| {
            Err(Answer::page(400, page::notice("Something went wrong", &format!("We couldn't log in with TikTok: {what}"))))
        };
        if field("client_key") != TERMS.client {
            return refuse("client_key.");
        }
        if field("response_type") != "code" {
            return refuse("response_type.");
        }
        let redirect = url::Url::parse(field("redirect_uri")).ok().filter(url::Url::has_host);
        // Registered without either; a port of one's own machine is for desktop apps.
        if !redirect.is_some_and(|url| url.query().is_none() && url.fragment().is_none())
            || field("redirect_uri").len() >= 512
        {
            return refuse("redirect_uri.");
        }
        let scopes: Vec<String> =
            field("scope").split(',').filter(|scope| !scope.is_empty()).map(str::to_owned).collect();
        if scopes.is_empty() || scopes.iter().any(|scope| !SCOPES.contains(&scope.as_str())) {
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

    fn back(&self, pairs: &[(&str, &str)]) -> Answer {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        url.query_pairs_mut().extend_pairs(pairs).append_pair("state", &self.state);
        Answer::redirect(url.as_str())
    }
}

/// `POST /v2/oauth/token/`.
pub(super) fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let field = |name: &str| {
        call.field(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| refusal(400, "invalid_request", &format!("The request parameters are malformed: {name}.")))
    };
    match field("grant_type")? {
        "authorization_code" => {
            let (presented, redirect_uri) = (field("code")?, field("redirect_uri")?);
            let invalid = || refusal(400, "invalid_grant", "Authorization code is invalid or expired.");
            let consent = TERMS.redeem(turn, presented).ok_or_else(invalid)?;
            if consent.redirect_uri != redirect_uri {
                return Err(refusal(
                    400,
                    "invalid_request",
                    "Redirect_uri is not matched with the uri when requesting code.",
                ));
            }
            // The digest is written in hex, which no standard has.
            if let Some((challenge, _)) = &consent.challenge
                && hex::encode(Sha256::digest(field("code_verifier")?)) != challenge.to_lowercase()
            {
                return Err(refusal(400, "invalid_grant", "Code verifier or code challenge is invalid."));
            }
            Ok(given(&TERMS.allow(turn, consent)))
        }
        "refresh_token" => TERMS
            .renew(turn, field("refresh_token")?, TERMS.client)
            .map(|issued| given(&issued))
            .ok_or_else(|| refusal(400, "invalid_grant", "Refresh token is invalid or expired.")),
        _ => Err(refusal(400, "unsupported_grant_type", "The grant type is not supported.")),
    }
}

/// `POST /v2/oauth/revoke/`.
pub(super) fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let Some(token) = call.field("token").filter(|token| tokens::find(turn, super::ID, token).is_some()) else {
        return Err(refusal(400, "invalid_request", "The access token is invalid."));
    };
    tokens::end(turn, super::ID, token);
    Ok(Answer::empty(200))
}

fn given(issued: &Issued) -> Answer {
    Answer::json(
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

fn client(call: &Call) -> Result<(), Answer> {
    match (call.field("client_key"), call.field("client_secret")) {
        (Some(key), Some(SECRET)) if key == TERMS.client => Ok(()),
        (Some(_), Some(_)) => Err(refusal(401, "invalid_client", "Client key or secret is incorrect.")),
        _ => Err(refusal(400, "invalid_request", "The request parameters are malformed: client_key.")),
    }
}

fn refusal(status: u16, word: &str, description: &str) -> Answer {
    let body = json!({ "error": word, "error_description": description, "log_id": super::log() });
    Answer::json(status, &body).with("cache-control", "no-store")
}
