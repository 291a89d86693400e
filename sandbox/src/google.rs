//! Google's OAuth 2.0, which all of Google's platforms share, as at
//! <https://developers.google.com/identity/protocols/oauth2/web-server>.
//!
//! A login is asked for at one address whatever it is for; what it asks for tells the platform. Access
//! tokens live for an hour. A refresh token stays the same for ever, and is given with the first
//! consent, or where the app wants its user to be asked again.

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call, Intake},
    host::{Grants, Host},
    page,
    shelf::Record,
};
use crate::{App, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const CLIENT_ID: &str = "fanfare-sandbox.apps.googleusercontent.com";
const CLIENT_SECRET: &str = "GOCSPX-fanfare-sandbox";

const CODE_SECONDS: i64 = 600;
const ACCESS_SECONDS: i64 = 3_599;

/// A code on its way through a browser.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    platform: String,
    user: String,
    redirect_uri: String,
    scopes: Vec<String>,
    challenge: Option<(String, String)>,
    is_offline: bool,
    is_prompted: bool,
    expires_at: DateTime<Utc>,
}

impl Record for Code {
    const SHELF: &'static str = "google.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user allowed an app, found by its refresh token.
#[derive(Clone, Serialize, Deserialize)]
struct Allowed {
    refresh: String,
    platform: String,
    user: String,
    scopes: Vec<String>,
    is_revoked: bool,
}

impl Record for Allowed {
    const SHELF: &'static str = "google.grant";

    fn key(&self) -> String {
        self.refresh.clone()
    }
}

/// An access token.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Token {
    token: String,
    grant: String,
    platform: String,
    /// Whose it is: the platform's id of the account.
    pub(super) user: String,
    scopes: Vec<String>,
    expires_at: DateTime<Utc>,
}

impl Record for Token {
    const SHELF: &'static str = "google.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// Whether a request is about logins, and so any Google platform's business.
pub(super) fn is_login(call: &Call) -> bool {
    matches!(call.host.as_str(), "accounts.google.com" | "oauth2.googleapis.com")
        || (call.host == "www.googleapis.com" && call.path.starts_with("/oauth2/"))
}

/// The platform that a request about logins is for.
pub(super) fn platform(turn: &Turn<'_>, call: &Call) -> Option<String> {
    let scopes = call.query("scope").or_else(|| call.field("scope")).filter(|scope| !scope.is_empty());
    if call.host == "accounts.google.com" {
        return Some(purpose(scopes.unwrap_or_default().split_whitespace()).to_owned());
    }
    if let Some(code) = call.field("code") {
        return turn.shelf.get::<Code>(code).map(|code| code.platform);
    }
    let presented = presented(call)?;
    let token: Option<Token> = turn.shelf.get(presented);
    token
        .map(|token| token.platform)
        .or_else(|| turn.shelf.get::<Allowed>(presented).map(|grant| grant.platform))
}

/// The username behind a request, by its token or by what it wants to exchange.
pub(super) fn account(turn: &Turn<'_>, call: &Call, platform: &str) -> Option<String> {
    let user = match call.field("code").filter(|_| is_login(call)) {
        Some(code) => turn.shelf.get::<Code>(code)?.user,
        None => {
            let presented = presented(call)?;
            let token: Option<Token> = turn.shelf.get(presented);
            token
                .map(|token| token.user)
                .or_else(|| turn.shelf.get::<Allowed>(presented).map(|grant| grant.user))?
        }
    };
    account::numbered(turn.shelf, platform, &user).map(|account| account.username)
}

fn presented(call: &Call) -> Option<&str> {
    let field = call.field("refresh_token").or_else(|| call.field("token"));
    field.or_else(|| call.bearer()).or_else(|| call.query("access_token")).or_else(|| call.query("token"))
}

/// How the bodies of requests about logins are read.
pub(super) fn intake(call: &Call) -> Intake {
    match call.mime() {
        Some("application/json") => Intake::Members(1 << 16),
        _ => Intake::Whole(1 << 16),
    }
}

/// Answers a request about logins.
pub(super) fn answer(turn: &mut Turn<'_>, call: &Call, host: &dyn Host) -> Answer {
    let answer = match (call.host.as_str(), call.method.as_str(), call.path.trim_end_matches('/')) {
        ("accounts.google.com", "GET", "/o/oauth2/v2/auth" | "/o/oauth2/auth") => ask(call),
        ("accounts.google.com", "POST", "/o/oauth2/v2/auth" | "/o/oauth2/auth") => consent(turn, call, host),
        ("oauth2.googleapis.com", "POST", "/token") | ("accounts.google.com", "POST", "/o/oauth2/token") => {
            token(turn, call)
        }
        ("oauth2.googleapis.com", "POST" | "GET", "/revoke") => revoke(turn, call),
        ("oauth2.googleapis.com", "GET" | "POST", "/tokeninfo") => describe(turn, call),
        ("www.googleapis.com", "GET", "/oauth2/v2/userinfo") => profile(turn, call),
        _ => Err(Answer::json(404, &json!({ "error": "not_found" }))),
    };
    answer.unwrap_or_else(|refusal| refusal)
}

/// The token that a request comes with, if it lives and is this platform's.
pub(super) fn find(turn: &Turn<'_>, call: &Call, platform: &str) -> Option<Token> {
    let presented = call.bearer().or_else(|| call.query("access_token"))?;
    turn.shelf
        .get(presented)
        .filter(|token: &Token| token.platform == platform && token.expires_at > turn.now)
}

impl Token {
    /// Whether it has one of these scopes, each named without what all of Google's begin with.
    pub(super) fn covers(&self, scopes: &[&str]) -> bool {
        let has = |wanted: &&str| self.scopes.iter().any(|scope| short(scope) == *wanted);
        scopes.is_empty() || scopes.iter().any(has)
    }
}

fn short(scope: &str) -> &str {
    scope.strip_prefix("https://www.googleapis.com/auth/").unwrap_or(scope)
}

/// Which platform's accounts these scopes are about.
fn purpose<'a>(mut scopes: impl Iterator<Item = &'a str>) -> &'static str {
    let is_business = scopes.any(|scope| short(scope).ends_with("business.manage"));
    if is_business { "google_business" } else { "youtube" }
}

fn ask(call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.query)?;
    let scopes = wish.scopes.iter().map(String::as_str).collect();
    let suggested = call.query("login_hint").unwrap_or("sandbox");
    Ok(Answer::page(200, page::consent("Fanfare's sandbox app", scopes, suggested, &call.query)))
}

fn consent(turn: &mut Turn<'_>, call: &Call, host: &dyn Host) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.fields)?;
    if call.field("decision") != Some("allow") {
        return Ok(wish.back(&[("error", "access_denied")]));
    }
    let username = call.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = account::open(turn, host, username)
        .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
    let code = format!("4/0A{}", random());
    turn.shelf.put(&Code {
        code: code.clone(),
        platform: account.platform,
        user: account.id,
        redirect_uri: wish.redirect_uri.clone(),
        scopes: wish.scopes.clone(),
        challenge: wish.challenge.clone(),
        is_offline: wish.is_offline,
        is_prompted: wish.is_prompted,
        expires_at: turn.now + TimeDelta::seconds(CODE_SECONDS),
    });
    Ok(wish.back(&[("code", &code), ("scope", &wish.scopes.join(" "))]))
}

/// What an app asks a user for.
struct Wish {
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: Option<(String, String)>,
    is_offline: bool,
    is_prompted: bool,
}

impl Wish {
    fn read(fields: &[(String, String)]) -> Result<Self, Answer> {
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse =
            |what: &str| Err(Answer::page(400, page::notice("Access blocked: the request is invalid", what)));
        if field("client_id") != CLIENT_ID {
            return refuse("Error 401: invalid_client. The OAuth client was not found.");
        }
        if field("response_type") != "code" {
            return refuse("Error 400: invalid_request. response_type has to be `code`.");
        }
        if !url::Url::parse(field("redirect_uri")).is_ok_and(|url| url.has_host()) {
            return refuse("Error 400: redirect_uri_mismatch. It has to be an absolute address.");
        }
        let scopes: Vec<_> = field("scope").split_whitespace().map(str::to_owned).collect();
        if scopes.is_empty() {
            return refuse("Error 400: invalid_request. Missing required parameter: scope.");
        }
        let is_known = |scope: &String| {
            ["openid", "email", "profile"].contains(&scope.as_str())
                || scope.starts_with("https://www.googleapis.com/auth/")
        };
        if let Some(scope) = scopes.iter().find(|scope| !is_known(scope)) {
            return refuse(&format!("Error 400: invalid_scope. {scope} is none."));
        }
        let method = match field("code_challenge_method") {
            "" => "plain",
            method => method,
        };
        if !["plain", "S256"].contains(&method) {
            return refuse("Error 400: invalid_request. code_challenge_method has to be S256 or plain.");
        }
        let challenge = field("code_challenge");
        Ok(Self {
            redirect_uri: field("redirect_uri").into(),
            scopes,
            state: field("state").into(),
            challenge: (!challenge.is_empty()).then(|| (method.to_owned(), challenge.to_owned())),
            is_offline: field("access_type") == "offline",
            is_prompted: field("prompt").split_whitespace().any(|word| word == "consent"),
        })
    }

    fn back(&self, pairs: &[(&str, &str)]) -> Answer {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        if !self.state.is_empty() {
            url.query_pairs_mut().append_pair("state", &self.state);
        }
        url.query_pairs_mut().extend_pairs(pairs);
        Answer::redirect(url.as_str())
    }
}

fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let missing =
        |name: &str| refusal(400, "invalid_request", &format!("Missing required parameter: {name}"));
    match call.field("grant_type") {
        Some("authorization_code") => {
            let presented = call.field("code").ok_or_else(|| missing("code"))?;
            let redirect_uri = call.field("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
            let code: Code = turn
                .shelf
                .get(presented)
                .ok_or_else(|| refusal(400, "invalid_grant", "Malformed auth code."))?;
            // Good for one use, whatever comes of it.
            turn.shelf.remove::<Code>(presented);
            if code.expires_at <= turn.now {
                return Err(refusal(400, "invalid_grant", "Bad Request"));
            }
            if code.redirect_uri != redirect_uri {
                return Err(refusal(400, "redirect_uri_mismatch", "Bad Request"));
            }
            if let Some((method, challenge)) = &code.challenge {
                let verifier = call
                    .field("code_verifier")
                    .ok_or_else(|| refusal(400, "invalid_grant", "Missing code verifier."))?;
                let derived = match method.as_str() {
                    "plain" => verifier.to_owned(),
                    _ => BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
                };
                if derived != *challenge {
                    return Err(refusal(400, "invalid_grant", "Invalid code verifier."));
                }
            }
            let is_first = !turn
                .shelf
                .under::<Allowed>("")
                .any(|grant| grant.platform == code.platform && grant.user == code.user && !grant.is_revoked);
            let allowed = Allowed {
                refresh: format!("1//0{}", random()),
                platform: code.platform,
                user: code.user,
                scopes: code.scopes,
                is_revoked: false,
            };
            let gives_refresh = code.is_offline && (code.is_prompted || is_first);
            let (_, mut body) = issue(turn, &allowed);
            turn.shelf.put(&allowed);
            if gives_refresh {
                body["refresh_token"] = json!(allowed.refresh);
            }
            Ok(Answer::json(200, &body))
        }
        Some("refresh_token") => {
            let presented = call.field("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let allowed = turn
                .shelf
                .get::<Allowed>(presented)
                .filter(|grant| !grant.is_revoked)
                .ok_or_else(|| refusal(400, "invalid_grant", "Token has been expired or revoked."))?;
            Ok(Answer::json(200, &issue(turn, &allowed).1))
        }
        Some(other) => Err(refusal(400, "unsupported_grant_type", &format!("Invalid grant_type: {other}"))),
        None => Err(missing("grant_type")),
    }
}

fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let presented = call.field("token").or_else(|| call.query("token")).unwrap_or_default();
    let grant = match turn.shelf.get::<Token>(presented).filter(|token| token.expires_at > turn.now) {
        Some(token) => Some(token.grant),
        None => turn.shelf.get::<Allowed>(presented).filter(|grant| !grant.is_revoked).map(|g| g.refresh),
    };
    let Some(grant) = grant else {
        return Err(refusal(400, "invalid_token", "Token expired or revoked"));
    };
    kill(turn, |allowed| allowed.refresh == grant);
    Ok(Answer::json(200, &json!({})))
}

/// `tokeninfo`: what a token is good for.
fn describe(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let token = presented(call)
        .and_then(|presented| turn.shelf.get::<Token>(presented))
        .filter(|token| token.expires_at > turn.now)
        .ok_or_else(|| refusal(400, "invalid_token", "Invalid Value"))?;
    Ok(Answer::json(
        200,
        &json!({
            "azp": CLIENT_ID,
            "aud": CLIENT_ID,
            "sub": subject(&token.platform, &token.user),
            "scope": token.scopes.join(" "),
            "exp": token.expires_at.timestamp().to_string(),
            "expires_in": (token.expires_at - turn.now).num_seconds().to_string(),
            "access_type": "offline",
        }),
    ))
}

fn profile(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let token = presented(call)
        .and_then(|presented| turn.shelf.get::<Token>(presented))
        .filter(|token| token.expires_at > turn.now)
        .ok_or_else(unauthenticated)?;
    let account = account::numbered(turn.shelf, &token.platform, &token.user).ok_or_else(unauthenticated)?;
    Ok(Answer::json(
        200,
        &json!({
            "id": subject(&token.platform, &token.user),
            "email": format!("{}@example.com", account.username),
            "verified_email": true,
            "name": account.username,
            "given_name": account.username,
            "picture": format!("https://lh3.googleusercontent.com/a/{}", account.id.replace('/', "-")),
        }),
    ))
}

/// The grants of one of Google's platforms.
pub(super) struct Google {
    /// What an account that the sandbox connects by itself granted.
    pub(super) granted: &'static [&'static str],
}

impl Grants for Google {
    fn app(&self) -> Option<App> {
        Some(App { client_id: CLIENT_ID.into(), client_secret: Some(CLIENT_SECRET.into()) })
    }

    fn grant(&self, turn: &mut Turn<'_>, account: &mut Account) -> Grant {
        let allowed = Allowed {
            refresh: format!("1//0{}", random()),
            platform: account.platform.clone(),
            user: account.id.clone(),
            scopes: self.granted.iter().map(|scope| (*scope).to_owned()).collect(),
            is_revoked: false,
        };
        let (access_token, _) = issue(turn, &allowed);
        turn.shelf.put(&allowed);
        Grant {
            access_token,
            refresh_token: Some(allowed.refresh),
            expires_at: Some(turn.now + turn.settings.token_life(ACCESS_SECONDS)),
            scopes: allowed.scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, turn: &mut Turn<'_>, account: &mut Account) {
        end(turn, |token| token.platform == account.platform && token.user == account.id);
    }

    fn revoke(&self, turn: &mut Turn<'_>, account: &mut Account) {
        kill(turn, |allowed| allowed.platform == account.platform && allowed.user == account.id);
    }
}

fn kill(turn: &mut Turn<'_>, is_meant: impl Fn(&Allowed) -> bool) {
    let grants: Vec<Allowed> = turn.shelf.under("").filter(is_meant).collect();
    for grant in grants {
        end(turn, |token| token.grant == grant.refresh);
        turn.shelf.put(&Allowed { is_revoked: true, ..grant });
    }
}

fn end(turn: &mut Turn<'_>, is_meant: impl Fn(&Token) -> bool) {
    let tokens: Vec<Token> = turn.shelf.under("").filter(is_meant).collect();
    for token in tokens {
        turn.shelf.put(&Token { expires_at: turn.now, ..token });
    }
}

/// A new access token, and the answer that tells it.
fn issue(turn: &mut Turn<'_>, allowed: &Allowed) -> (String, Value) {
    let token = format!("ya29.{}", random());
    turn.shelf.put(&Token {
        token: token.clone(),
        grant: allowed.refresh.clone(),
        platform: allowed.platform.clone(),
        user: allowed.user.clone(),
        scopes: allowed.scopes.clone(),
        expires_at: turn.now + turn.settings.token_life(ACCESS_SECONDS),
    });
    let body = json!({
        "access_token": token,
        "expires_in": turn.settings.token_seconds(ACCESS_SECONDS),
        "scope": allowed.scopes.join(" "),
        "token_type": "Bearer",
    });
    (token, body)
}

/// Who calls: by fields in the body, or by the header.
fn client(call: &Call) -> Result<(), Answer> {
    let fields = || Some((call.field("client_id")?.to_owned(), call.field("client_secret")?.to_owned()));
    match call.basic().or_else(fields) {
        Some((id, secret)) if id == CLIENT_ID && secret == CLIENT_SECRET => Ok(()),
        Some((id, _)) if id == CLIENT_ID => Err(refusal(401, "invalid_client", "Unauthorized")),
        Some(_) => Err(refusal(401, "invalid_client", "The OAuth client was not found.")),
        None => Err(refusal(400, "invalid_request", "Could not determine client ID from request.")),
    }
}

fn refusal(status: u16, word: &str, description: &str) -> Answer {
    Answer::json(status, &json!({ "error": word, "error_description": description }))
}

/// A token that is missing, made up or dead, in the words of all of Google's APIs.
pub(super) fn unauthenticated() -> Answer {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.";
    Answer::json(
        401,
        &json!({ "error": {
            "code": 401,
            "message": message,
            "errors": [{
                "message": "Invalid Credentials",
                "domain": "global",
                "reason": "authError",
                "location": "Authorization",
                "locationType": "header",
            }],
            "status": "UNAUTHENTICATED",
        } }),
    )
    .with("www-authenticate", "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"")
}

/// The login's own number, of 21 digits.
fn subject(platform: &str, user: &str) -> String {
    let digest = account::digest(platform, user);
    let draw = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"));
    format!("1{:020}", draw)
}

pub(super) fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
