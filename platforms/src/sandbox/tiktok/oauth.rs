//! Login Kit: <https://developers.tiktok.com/doc/oauth-user-access-token-management>.
//!
//! The app is a `client_key`, scopes stand between commas, and answers are flat. An access token lives
//! for a day; a refresh token for a year from the first, and another comes with each use. What a
//! refusal's status is, TikTok does not say: here it is 400, and 401 where the app is unknown.

use super::{Account, Answer, Call, Turn, account};
use crate::{
    Grant,
    sandbox::{page, shelf::Record},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The sandbox's app.
pub(super) const CLIENT_KEY: &str = "awfanfaresandbox";
/// Its secret.
pub(super) const CLIENT_SECRET: &str = "fanfare-sandbox-secret";

const CODE_SECONDS: i64 = 600;
const ACCESS_SECONDS: i64 = 86_400;
const REFRESH_SECONDS: i64 = 31_536_000;

const SCOPES: [&str; 6] =
    ["user.info.basic", "user.info.profile", "user.info.stats", "video.list", "video.publish", "video.upload"];
/// What a connected account granted.
const GRANTED: [&str; 4] = ["user.info.basic", "user.info.profile", "video.list", "video.publish"];

/// A code on its way through a browser.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    user: String,
    redirect_uri: String,
    scopes: Vec<String>,
    challenge: String,
    expires_at: DateTime<Utc>,
}

impl Record for Code {
    const SHELF: &'static str = "tiktok.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user allowed the app; its refresh token is the latest one only.
#[derive(Clone, Serialize, Deserialize)]
struct Allowed {
    id: String,
    user: String,
    scopes: Vec<String>,
    refresh: Option<String>,
    ends_at: DateTime<Utc>,
}

impl Record for Allowed {
    const SHELF: &'static str = "tiktok.grant";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// An access token.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Token {
    token: String,
    grant: String,
    /// Whose it is.
    pub(super) user: String,
    /// What it may do.
    pub(super) scopes: Vec<String>,
    /// When it dies.
    pub(super) expires_at: DateTime<Utc>,
}

impl Record for Token {
    const SHELF: &'static str = "tiktok.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// The access token, dead or alive.
pub(super) fn find(turn: &Turn<'_>, token: &str) -> Option<Token> {
    turn.shelf.get(token)
}

/// Whose request it is, by its token or by what it wants to exchange.
pub(super) fn owner(turn: &Turn<'_>, call: &Call) -> Option<String> {
    if let Some(token) = call.bearer().and_then(|token| find(turn, token)) {
        return Some(token.user);
    }
    if let Some(code) = call.field("code") {
        return turn.shelf.get::<Code>(code).map(|code| code.user);
    }
    let presented = call.field("refresh_token").or_else(|| call.field("token"))?;
    find(turn, presented).map(|token| token.user).or_else(|| named(turn, presented).map(|grant| grant.user))
}

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
    let code = random();
    turn.shelf.put(&Code {
        code: code.clone(),
        user: account.id,
        redirect_uri: wish.redirect_uri.clone(),
        scopes: wish.scopes.clone(),
        challenge: wish.challenge.clone(),
        expires_at: turn.now + TimeDelta::seconds(CODE_SECONDS),
    });
    Ok(wish.back(&[("code", &code), ("scopes", &wish.scopes.join(","))]))
}

/// What an app asks an account's owner for.
struct Wish {
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: String,
}

impl Wish {
    fn read(fields: &[(String, String)]) -> Result<Self, Answer> {
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| {
            Err(Answer::page(400, page::notice("Something went wrong", &format!("We couldn't log in with TikTok: {what}"))))
        };
        if field("client_key") != CLIENT_KEY {
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
            challenge: challenge.into(),
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
            let code: Code = turn.shelf.get(presented).ok_or_else(invalid)?;
            // Good for one use, whatever comes of it.
            turn.shelf.remove::<Code>(presented);
            if code.expires_at <= turn.now {
                return Err(invalid());
            }
            if code.redirect_uri != redirect_uri {
                return Err(refusal(
                    400,
                    "invalid_request",
                    "Redirect_uri is not matched with the uri when requesting code.",
                ));
            }
            // The digest is written in hex, which no standard has.
            if !code.challenge.is_empty()
                && hex::encode(Sha256::digest(field("code_verifier")?)) != code.challenge.to_lowercase()
            {
                return Err(refusal(400, "invalid_grant", "Code verifier or code challenge is invalid."));
            }
            let allowed = Allowed {
                id: random(),
                user: code.user,
                scopes: code.scopes,
                refresh: None,
                ends_at: turn.now + TimeDelta::seconds(REFRESH_SECONDS),
            };
            Ok(Answer::json(200, &issue(turn, allowed)))
        }
        "refresh_token" => {
            let presented = field("refresh_token")?;
            let allowed = named(turn, presented)
                .filter(|grant| grant.refresh.as_deref() == Some(presented) && grant.ends_at > turn.now)
                .ok_or_else(|| refusal(400, "invalid_grant", "Refresh token is invalid or expired."))?;
            Ok(Answer::json(200, &issue(turn, allowed)))
        }
        _ => Err(refusal(400, "unsupported_grant_type", "The grant type is not supported.")),
    }
}

/// `POST /v2/oauth/revoke/`.
pub(super) fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let Some(token) = call.field("token").and_then(|token| find(turn, token)) else {
        return Err(refusal(400, "invalid_request", "The access token is invalid."));
    };
    kill(turn, |allowed| allowed.id == token.grant);
    Ok(Answer::empty(200))
}

/// A fresh grant, as if the owner had consented.
pub(super) fn grant(turn: &mut Turn<'_>, account: &Account) -> Grant {
    let allowed = Allowed {
        id: random(),
        user: account.id.clone(),
        scopes: GRANTED.map(str::to_owned).to_vec(),
        refresh: None,
        ends_at: turn.now + TimeDelta::seconds(REFRESH_SECONDS),
    };
    let scopes = allowed.scopes.clone();
    let issued = issue(turn, allowed);
    let text = |name: &str| issued[name].as_str().unwrap_or_default().to_owned();
    Grant {
        access_token: text("access_token"),
        refresh_token: Some(text("refresh_token")),
        expires_at: Some(turn.now + TimeDelta::seconds(ACCESS_SECONDS)),
        scopes,
        extra: Value::Null,
    }
}

/// Lets the access tokens of an account run out.
pub(super) fn expire(turn: &mut Turn<'_>, account: &Account) {
    end(turn, |token| token.user == account.id);
}

/// Ends all grants of an account.
pub(super) fn revoke_all(turn: &mut Turn<'_>, account: &Account) {
    kill(turn, |allowed| allowed.user == account.id);
}

fn kill(turn: &mut Turn<'_>, is_meant: impl Fn(&Allowed) -> bool) {
    let grants: Vec<Allowed> = turn.shelf.under("").filter(is_meant).collect();
    for grant in grants {
        end(turn, |token| token.grant == grant.id);
        turn.shelf.put(&Allowed { refresh: None, ..grant });
    }
}

fn end(turn: &mut Turn<'_>, is_meant: impl Fn(&Token) -> bool) {
    let tokens: Vec<Token> = turn.shelf.under("").filter(is_meant).collect();
    for token in tokens {
        turn.shelf.put(&Token { expires_at: turn.now, ..token });
    }
}

/// New tokens for a grant, as the answer tells them. The refresh token that was there dies at once.
fn issue(turn: &mut Turn<'_>, mut allowed: Allowed) -> Value {
    let access = format!("act.{}", random());
    let refresh = format!("rft.{}.{}", allowed.id, random());
    turn.shelf.put(&Token {
        token: access.clone(),
        grant: allowed.id.clone(),
        user: allowed.user.clone(),
        scopes: allowed.scopes.clone(),
        expires_at: turn.now + TimeDelta::seconds(ACCESS_SECONDS),
    });
    allowed.refresh = Some(refresh.clone());
    turn.shelf.put(&allowed);
    json!({
        "open_id": allowed.user,
        "scope": allowed.scopes.join(","),
        "access_token": access,
        "expires_in": ACCESS_SECONDS,
        "refresh_token": refresh,
        "refresh_expires_in": (allowed.ends_at - turn.now).num_seconds(),
        "token_type": "Bearer",
    })
}

/// The grant that a refresh token was made for.
fn named(turn: &Turn<'_>, refresh: &str) -> Option<Allowed> {
    turn.shelf.get(refresh.strip_prefix("rft.")?.split_once('.')?.0)
}

fn client(call: &Call) -> Result<(), Answer> {
    match (call.field("client_key"), call.field("client_secret")) {
        (Some(CLIENT_KEY), Some(CLIENT_SECRET)) => Ok(()),
        (Some(_), Some(_)) => Err(refusal(401, "invalid_client", "Client key or secret is incorrect.")),
        _ => Err(refusal(400, "invalid_request", "The request parameters are malformed: client_key.")),
    }
}

fn refusal(status: u16, word: &str, description: &str) -> Answer {
    let body = json!({ "error": word, "error_description": description, "log_id": super::log() });
    Answer::json(status, &body).with("cache-control", "no-store")
}

pub(super) fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>())
}

