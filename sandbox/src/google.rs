//! Google's OAuth 2.0, which all of Google's platforms share, as at
//! <https://developers.google.com/identity/protocols/oauth2/web-server>.
//!
//! All logins share one address; the requested scopes decide the platform. Access tokens are valid for an
//! hour. A refresh token never changes, and is issued with the first consent, or when the app asks for
//! consent again.

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Outcome, Request, Response},
    page,
    simulator::{Grants, Simulator, get_or_create_account},
    store::Record,
    tokens::random,
};
use crate::exchange::Cause::State;
use crate::{App, AppAccess, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const CLIENT_ID: &str = "fanfare-sandbox.apps.googleusercontent.com";
const CLIENT_SECRET: &str = "GOCSPX-fanfare-sandbox";

const CODE_SECONDS: i64 = 600;
const ACCESS_SECONDS: i64 = 3_599;

/// An authorization code that was not redeemed yet.
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
    const TABLE: &'static str = "google.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// A user's grant to an app, identified by its refresh token.
#[derive(Clone, Serialize, Deserialize)]
struct AppGrant {
    refresh: String,
    platform: String,
    user: String,
    scopes: Vec<String>,
    is_revoked: bool,
    /// Expiry of the refresh token, for an app in *Testing*.
    #[serde(default)]
    refresh_expires_at: Option<DateTime<Utc>>,
}

impl Record for AppGrant {
    const TABLE: &'static str = "google.grant";

    fn key(&self) -> String {
        self.refresh.clone()
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Token {
    token: String,
    grant: String,
    platform: String,
    /// The platform's id of the account.
    pub(super) user: String,
    scopes: Vec<String>,
    expires_at: DateTime<Utc>,
}

impl Record for Token {
    const TABLE: &'static str = "google.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// Returns whether a request is part of a login, which all of Google's platforms share.
pub(super) fn is_login(request: &Request) -> bool {
    matches!(request.host.as_str(), "accounts.google.com" | "oauth2.googleapis.com")
        || (request.host == "www.googleapis.com" && request.path.starts_with("/oauth2/"))
}

/// Returns the platform that a login is for.
pub(super) fn platform(tx: &Transaction, request: &Request) -> Option<String> {
    let scopes = request.query("scope").or_else(|| request.field("scope")).filter(|scope| !scope.is_empty());
    if request.host == "accounts.google.com" {
        return Some(platform_of_scopes(scopes.unwrap_or_default().split_whitespace()).to_owned());
    }
    if let Some(code) = request.field("code") {
        return tx.store.get::<Code>(code).map(|code| code.platform);
    }
    let presented = presented(request)?;
    let token: Option<Token> = tx.store.get(presented);
    token
        .map(|token| token.platform)
        .or_else(|| tx.store.get::<AppGrant>(presented).map(|grant| grant.platform))
}

/// Returns the username behind a request, by its token or by what it exchanges.
pub(super) fn account(tx: &Transaction, request: &Request, platform: &str) -> Option<String> {
    let user = match request.field("code").filter(|_| is_login(request)) {
        Some(code) => tx.store.get::<Code>(code)?.user,
        None => {
            let presented = presented(request)?;
            let token: Option<Token> = tx.store.get(presented);
            token
                .map(|token| token.user)
                .or_else(|| tx.store.get::<AppGrant>(presented).map(|grant| grant.user))?
        }
    };
    account::by_id(tx.store, platform, &user).map(|account| account.username)
}

fn presented(request: &Request) -> Option<&str> {
    let field = request.field("refresh_token").or_else(|| request.field("token"));
    field
        .or_else(|| request.bearer())
        .or_else(|| request.query("access_token"))
        .or_else(|| request.query("token"))
}

/// Returns how the body of a login's request is read.
pub(super) fn body_mode(request: &Request) -> BodyMode {
    match request.mime() {
        Some("application/json") => BodyMode::JsonFields(1 << 16),
        _ => BodyMode::Buffered(1 << 16),
    }
}

/// Responds to a request of a login.
pub(super) fn respond(tx: &mut Transaction, request: &Request, simulator: &dyn Simulator) -> Response {
    let response =
        match (request.host.as_str(), request.method.as_str(), request.path.trim_end_matches('/')) {
            ("accounts.google.com", "GET", "/o/oauth2/v2/auth" | "/o/oauth2/auth") => consent_page(request),
            ("accounts.google.com", "POST", "/o/oauth2/v2/auth" | "/o/oauth2/auth") => {
                decide(tx, request, simulator)
            }
            ("oauth2.googleapis.com", "POST", "/token")
            | ("accounts.google.com", "POST", "/o/oauth2/token") => token(tx, request),
            ("oauth2.googleapis.com", "POST" | "GET", "/revoke") => revoke(tx, request),
            ("oauth2.googleapis.com", "GET" | "POST", "/tokeninfo") => token_info(tx, request),
            ("www.googleapis.com", "GET", "/oauth2/v2/userinfo") => user_info(tx, request),
            _ => Err(Response::json(404, &json!({ "error": "not_found" })).because(State)),
        };
    response.unwrap_or_else(|refusal| refusal)
}

/// Returns the token of a request, if it is valid and this platform's.
pub(super) fn find(tx: &Transaction, request: &Request, platform: &str) -> Option<Token> {
    let presented = request.bearer().or_else(|| request.query("access_token"))?;
    tx.store.get(presented).filter(|token: &Token| token.platform == platform && token.expires_at > tx.now)
}

impl Token {
    /// Returns whether it has one of these scopes, which are named without Google's common prefix.
    pub(super) fn has_any_scope(&self, scopes: &[&str]) -> bool {
        let has = |wanted: &&str| self.scopes.iter().any(|scope| short(scope) == *wanted);
        scopes.is_empty() || scopes.iter().any(has)
    }
}

fn short(scope: &str) -> &str {
    scope.strip_prefix("https://www.googleapis.com/auth/").unwrap_or(scope)
}

/// Returns the platform that these scopes belong to.
fn platform_of_scopes<'a>(mut scopes: impl Iterator<Item = &'a str>) -> &'static str {
    let is_business = scopes.any(|scope| short(scope).ends_with("business.manage"));
    if is_business { "google_business" } else { "youtube" }
}

fn consent_page(request: &Request) -> Outcome {
    let authorization = AuthorizationRequest::read(&request.query)?;
    let scopes = authorization.scopes.iter().map(String::as_str).collect();
    let suggested = request.query("login_hint").unwrap_or("sandbox");
    let platform = platform_of_scopes(authorization.scopes.iter().map(String::as_str));
    Ok(page::consent(platform, "Fanfare's sandbox app", scopes, suggested, &request.query))
}

fn decide(tx: &mut Transaction, request: &Request, simulator: &dyn Simulator) -> Outcome {
    let authorization = AuthorizationRequest::read(&request.fields)?;
    if request.field("decision") != Some("allow") {
        return Ok(authorization.back(&[("error", "access_denied")]));
    }
    let username = request.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = get_or_create_account(tx, simulator, username)
        .map_err(|error| Response::page(400, page::notice("No such account", &error)))?;
    let code = format!("4/0A{}", random());
    tx.store.put(&Code {
        code: code.clone(),
        platform: account.platform,
        user: account.id,
        redirect_uri: authorization.redirect_uri.clone(),
        scopes: authorization.scopes.clone(),
        challenge: authorization.challenge.clone(),
        is_offline: authorization.is_offline,
        is_prompted: authorization.is_prompted,
        expires_at: tx.now + TimeDelta::seconds(CODE_SECONDS),
    });
    Ok(authorization.back(&[("code", &code), ("scope", &authorization.scopes.join(" "))]))
}

/// Parameters of an authorization request.
struct AuthorizationRequest {
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: Option<(String, String)>,
    is_offline: bool,
    is_prompted: bool,
}

impl AuthorizationRequest {
    fn read(fields: &[(String, String)]) -> Result<Self, Response> {
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let refuse = |what: &str| {
            Err(Response::page(400, page::notice("Access blocked: the request is invalid", what)))
        };
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

    fn back(&self, pairs: &[(&str, &str)]) -> Response {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        if !self.state.is_empty() {
            url.query_pairs_mut().append_pair("state", &self.state);
        }
        url.query_pairs_mut().extend_pairs(pairs);
        Response::redirect(url.as_str())
    }
}

fn token(tx: &mut Transaction, request: &Request) -> Outcome {
    client(request)?;
    let missing =
        |name: &str| refusal(400, "invalid_request", &format!("Missing required parameter: {name}"));
    match request.field("grant_type") {
        Some("authorization_code") => {
            let presented = request.field("code").ok_or_else(|| missing("code"))?;
            let redirect_uri = request.field("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
            let code: Code = tx
                .store
                .get(presented)
                .ok_or_else(|| refusal(400, "invalid_grant", "Malformed auth code."))?;
            // A code is used up even when the exchange fails.
            tx.store.remove::<Code>(presented);
            if code.expires_at <= tx.now {
                return Err(refusal(400, "invalid_grant", "Bad Request"));
            }
            if code.redirect_uri != redirect_uri {
                return Err(refusal(400, "redirect_uri_mismatch", "Bad Request"));
            }
            if let Some((method, challenge)) = &code.challenge {
                let verifier = request
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
            let is_first = !tx
                .store
                .with_prefix::<AppGrant>("")
                .any(|grant| grant.platform == code.platform && grant.user == code.user && !grant.is_revoked);
            let grant = AppGrant {
                refresh: format!("1//0{}", random()),
                platform: code.platform,
                user: code.user,
                scopes: code.scopes,
                is_revoked: false,
                refresh_expires_at: refresh_expiry(tx),
            };
            let gives_refresh = code.is_offline && (code.is_prompted || is_first);
            let (_, mut body) = issue(tx, &grant);
            tx.store.put(&grant);
            if gives_refresh {
                body["refresh_token"] = json!(grant.refresh);
            }
            Ok(Response::json(200, &body))
        }
        Some("refresh_token") => {
            let presented = request.field("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let grant = tx
                .store
                .get::<AppGrant>(presented)
                .filter(|grant| !grant.is_revoked && grant.refresh_expires_at.is_none_or(|at| at > tx.now))
                .ok_or_else(|| refusal(400, "invalid_grant", "Token has been expired or revoked."))?;
            Ok(Response::json(200, &issue(tx, &grant).1))
        }
        Some(other) => Err(refusal(400, "unsupported_grant_type", &format!("Invalid grant_type: {other}"))),
        None => Err(missing("grant_type")),
    }
}

fn revoke(tx: &mut Transaction, request: &Request) -> Outcome {
    let presented = request.field("token").or_else(|| request.query("token")).unwrap_or_default();
    let grant = match tx.store.get::<Token>(presented).filter(|token| token.expires_at > tx.now) {
        Some(token) => Some(token.grant),
        None => tx.store.get::<AppGrant>(presented).filter(|grant| !grant.is_revoked).map(|g| g.refresh),
    };
    let Some(grant) = grant else {
        return Err(refusal(400, "invalid_token", "Token expired or revoked"));
    };
    revoke_grants(tx, |other| other.refresh == grant);
    Ok(Response::json(200, &json!({})))
}

/// `tokeninfo`: the properties of a token.
fn token_info(tx: &mut Transaction, request: &Request) -> Outcome {
    let token = presented(request)
        .and_then(|presented| tx.store.get::<Token>(presented))
        .filter(|token| token.expires_at > tx.now)
        .ok_or_else(|| refusal(400, "invalid_token", "Invalid Value"))?;
    Ok(Response::json(
        200,
        &json!({
            "azp": CLIENT_ID,
            "aud": CLIENT_ID,
            "sub": subject(&token.platform, &token.user),
            "scope": token.scopes.join(" "),
            "exp": token.expires_at.timestamp().to_string(),
            "expires_in": (token.expires_at - tx.now).num_seconds().to_string(),
            "access_type": "offline",
        }),
    ))
}

fn user_info(tx: &mut Transaction, request: &Request) -> Outcome {
    let token = presented(request)
        .and_then(|presented| tx.store.get::<Token>(presented))
        .filter(|token| token.expires_at > tx.now)
        .ok_or_else(unauthenticated)?;
    let account = account::by_id(tx.store, &token.platform, &token.user).ok_or_else(unauthenticated)?;
    Ok(Response::json(
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
    /// Scopes of the grants that the sandbox creates by itself.
    pub(super) granted: &'static [&'static str],
}

impl Grants for Google {
    fn app(&self) -> Option<App> {
        Some(App {
            client_id: CLIENT_ID.into(),
            client_secret: Some(CLIENT_SECRET.into()),
            access: AppAccess::Full,
        })
    }

    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        let grant = AppGrant {
            refresh: format!("1//0{}", random()),
            platform: account.platform.clone(),
            user: account.id.clone(),
            scopes: self.granted.iter().map(|scope| (*scope).to_owned()).collect(),
            is_revoked: false,
            refresh_expires_at: refresh_expiry(tx),
        };
        let (access_token, _) = issue(tx, &grant);
        tx.store.put(&grant);
        Grant {
            access_token,
            refresh_token: Some(grant.refresh),
            ends_at: grant.refresh_expires_at,
            expires_at: Some(tx.now + tx.settings.token_life(ACCESS_SECONDS)),
            scopes: grant.scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        expire_tokens(tx, |token| token.platform == account.platform && token.user == account.id);
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        revoke_grants(tx, |grant| grant.platform == account.platform && grant.user == account.id);
    }
}

fn revoke_grants(tx: &mut Transaction, is_meant: impl Fn(&AppGrant) -> bool) {
    let grants: Vec<AppGrant> = tx.store.with_prefix("").filter(is_meant).collect();
    for grant in grants {
        expire_tokens(tx, |token| token.grant == grant.refresh);
        tx.store.put(&AppGrant { is_revoked: true, ..grant });
    }
}

fn expire_tokens(tx: &mut Transaction, is_meant: impl Fn(&Token) -> bool) {
    let tokens: Vec<Token> = tx.store.with_prefix("").filter(is_meant).collect();
    for token in tokens {
        tx.store.put(&Token { expires_at: tx.now, ..token });
    }
}

fn refresh_expiry(tx: &Transaction) -> Option<DateTime<Utc>> {
    tx.settings.refresh_seconds.map(|seconds| tx.now + TimeDelta::seconds(seconds.into()))
}

/// Issues an access token, and returns it with the response's body.
fn issue(tx: &mut Transaction, grant: &AppGrant) -> (String, Value) {
    let token = format!("ya29.{}", random());
    tx.store.put(&Token {
        token: token.clone(),
        grant: grant.refresh.clone(),
        platform: grant.platform.clone(),
        user: grant.user.clone(),
        scopes: grant.scopes.clone(),
        expires_at: tx.now + tx.settings.token_life(ACCESS_SECONDS),
    });
    let mut body = json!({
        "access_token": token,
        "expires_in": tx.settings.token_seconds(ACCESS_SECONDS),
        "scope": grant.scopes.join(" "),
        "token_type": "Bearer",
    });
    if let Some(at) = grant.refresh_expires_at {
        body["refresh_token_expires_in"] = json!((at - tx.now).num_seconds());
    }
    (token, body)
}

/// Authenticates the client by fields in the body or by the header.
fn client(request: &Request) -> Result<(), Response> {
    let fields =
        || Some((request.field("client_id")?.to_owned(), request.field("client_secret")?.to_owned()));
    match request.basic().or_else(fields) {
        Some((id, secret)) if id == CLIENT_ID && secret == CLIENT_SECRET => Ok(()),
        Some((id, _)) if id == CLIENT_ID => Err(refusal(401, "invalid_client", "Unauthorized")),
        Some(_) => Err(refusal(401, "invalid_client", "The OAuth client was not found.")),
        None => Err(refusal(400, "invalid_request", "Could not determine client ID from request.")),
    }
}

fn refusal(status: u16, word: &str, description: &str) -> Response {
    Response::json(status, &json!({ "error": word, "error_description": description })).because(State)
}

/// Creates the refusal of a missing or invalid token, which all of Google's APIs share.
pub(super) fn unauthenticated() -> Response {
    let message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.";
    Response::json(
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
    .because(State)
    .with("www-authenticate", "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"")
}

/// Returns the id of a Google account, of 21 digits.
fn subject(platform: &str, user: &str) -> String {
    let draw = account::digest_number(platform, user);
    format!("1{:020}", draw)
}
