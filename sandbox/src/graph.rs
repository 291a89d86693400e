//! Common code of Meta's simulated platforms: parameters, errors, logins and tokens, field selection, and
//! lists.
//!
//! A login page takes, as if they were unticked, the scopes in the form field `declined`. An account whose name
//! begins with `stranger` has no role on the app, and can log in only once the app is reviewed; the containers of one
//! that begins with `unreadable` can be published and not be read.
//!
//! <https://developers.facebook.com/docs/graph-api/overview> and, for errors,
//! <https://developers.facebook.com/docs/graph-api/guides/error-handling>.

use super::{
    Transaction,
    account::{self, Account},
    exchange::{Outcome, Request, Response},
    page,
    rate_limit::{Quota, RateLimit},
    simulator::{Grants, Simulator, get_or_create_account},
    store::Record,
    tokens::CLIENT_SECRET,
};
use crate::exchange::Cause::{self, Protocol, State};
use crate::{App, AppAccess, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One day, the window of all caps.
pub(crate) const DAY: i64 = 86_400;

/// Beginning of the names of people who have no role on the app.
const STRANGER: &str = "stranger";

const CODE_SECONDS: i64 = 3_600;
const SHORT_SECONDS: i64 = 3_600;
const LONG_SECONDS: i64 = 60 * DAY;

/// Returns the path's segments without the version.
pub(crate) fn path(request: &Request) -> Vec<&str> {
    let segments = request.segments();
    let is_version = |text: &str| {
        text.strip_prefix('v').and_then(|rest| rest.split_once('.')).is_some_and(|(a, b)| {
            [a, b].iter().all(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
        })
    };
    match segments.split_first() {
        Some((first, rest)) if is_version(first) => rest.to_vec(),
        _ => segments,
    }
}

/// Returns a parameter of the query, a form or a JSON body.
pub(crate) fn param(request: &Request, name: &str) -> Option<String> {
    if let Some(value) = request.query(name).or_else(|| request.field(name)) {
        return Some(value.to_owned());
    }
    match request.json().ok()?.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns all parameters but the credentials.
pub(crate) fn params(request: &Request) -> Map<String, Value> {
    let body: Map<String, Value> =
        request.json().ok().and_then(|body| body.as_object().cloned()).unwrap_or_default();
    let texts = request.query.iter().chain(&request.fields);
    body.into_iter()
        .chain(texts.map(|(name, value)| (name.clone(), json!(value))))
        .filter(|(name, _)| !matches!(name.as_str(), "access_token" | "appsecret_proof" | "client_secret"))
        .collect()
}

/// Returns a parameter of several values, separated by commas or as a JSON list.
pub(crate) fn list(request: &Request, name: &str) -> Vec<String> {
    let Some(text) = param(request, name) else { return Vec::new() };
    if let Ok(Value::Array(items)) = serde_json::from_str(&text) {
        return items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
    }
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns whether a boolean parameter is true.
pub(crate) fn is_true(request: &Request, name: &str) -> bool {
    matches!(param(request, name).as_deref(), Some("true" | "1"))
}

/// Creates an error in the Graph API's form.
pub(crate) fn error(
    cause: Cause,
    status: u16,
    code: impl Into<Value>,
    subcode: u64,
    message: &str,
) -> Response {
    let code = code.into();
    let mut body = json!({
        "message": message,
        "type": if code == 100 && subcode == 33 { "GraphMethodException" } else { "OAuthException" },
        "code": code,
        "fbtrace_id": format!("A{}", BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 12]>())),
    });
    if subcode > 0 {
        body["error_subcode"] = json!(subcode);
    }
    if matches!(body["code"].as_u64(), Some(1 | 2)) {
        body["is_transient"] = json!(true);
    }
    let response = Response::json(status, &json!({ "error": body })).because(cause);
    if body["code"] == 190 {
        let challenge = format!("OAuth \"Facebook Platform\" \"invalid_token\" \"{message}\"");
        return response.with("www-authenticate", challenge);
    }
    response
}

/// Creates the refusal of an invalid parameter.
pub(crate) fn invalid(cause: Cause, message: &str) -> Response {
    error(cause, 400, 100, 0, &format!("(#100) {message}"))
}

/// Creates the refusal of an object that does not exist for this token.
pub(crate) fn missing(method: &str, id: &str) -> Response {
    let message = format!(
        "Unsupported {} request. Object with ID '{id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation.",
        method.to_lowercase()
    );
    error(State, 400, 100, 33, &message)
}

/// Creates the response of a fault with this status, on any of Meta's platforms.
pub(crate) fn refuse(status: u16, kind: &str, id: &str, now: DateTime<Utc>) -> Response {
    match status {
        400 => invalid(State, "The content was refused on purpose."),
        401 => expired(now, now),
        403 => error(State, 403, 10, 0, "(#10) Application does not have permission for this action"),
        429 => throttled("There have been too many calls. Wait a bit and try again.", kind, id),
        503 => error(State, 503, 2, 0, "Service temporarily unavailable"),
        _ => error(Protocol, 500, 1, 0, "An unknown error has occurred."),
    }
}

/// Creates the refusal of too many calls for an account, with the platform's code and the header that says when
/// to retry.
pub(crate) fn throttled(message: &str, kind: &str, id: &str) -> Response {
    let code = match kind {
        "pages" => 80_001,
        "instagram" => 80_002,
        _ => 4,
    };
    error(State, 400, code, 0, message)
        .with(APP_USAGE, app_usage(100))
        .with(ACCOUNT_USAGE, account_usage(kind, id, 100, 1))
}

/// Header with the app's share of its limits, without a time.
const APP_USAGE: &str = "x-app-usage";
/// Header with an account's share of its limits, and the minutes until calls are admitted again.
const ACCOUNT_USAGE: &str = "x-business-use-case-usage";

fn app_usage(percent: u64) -> Value {
    json!({ "call_count": percent, "total_time": percent / 4, "total_cputime": percent / 4 })
}

fn account_usage(kind: &str, id: &str, percent: u64, minutes: u64) -> Value {
    json!({ id: [{
        "type": kind, "call_count": percent, "total_cputime": percent / 4, "total_time": percent / 4,
        "estimated_time_to_regain_access": minutes,
    }] })
}

/// Adds the usage of the window that the request counted against, once there is any worth telling. Threads
/// documents only the app's.
pub(crate) fn with_usage(
    tx: &Transaction,
    request: &Request,
    mut response: Response,
    kind: &str,
) -> Response {
    // By the body's own code it is a refusal of the content, whatever the status says.
    if response.status.as_u16() == 400 && is_about_content(&response) {
        response.status =
            hyper::StatusCode::from_u16(tx.settings.meta_refusal_status).unwrap_or(response.status);
    }
    let Some(quota) = tx.quota else { return response };
    let percent = (quota.limit - quota.remaining.min(quota.limit)) * 100 / quota.limit.max(1);
    let is_told = response.headers.iter().any(|(name, _)| *name == APP_USAGE);
    let owner = presented_token(tx, request).map(|token| token.page.unwrap_or(token.user));
    match owner {
        Some(id) if percent > 0 && !is_told && kind != "threads" => {
            response.with(ACCOUNT_USAGE, account_usage(kind, &id, percent, 0))
        }
        Some(_) if percent > 0 && !is_told => response.with(APP_USAGE, app_usage(percent)),
        _ => response,
    }
}

fn is_about_content(response: &Response) -> bool {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    body["error"]["code"] == 100 && body["error"]["is_transient"] != true
}

fn expired(at: DateTime<Utc>, now: DateTime<Utc>) -> Response {
    let format = |at: DateTime<Utc>| at.format("%A, %d-%b-%y %H:%M:%S PST").to_string();
    let message = format!(
        "Error validating access token: Session has expired on {}. The current time is {}.",
        format(at),
        format(now)
    );
    error(State, 400, 190, 463, &message)
}

/// An authorization code that was not redeemed yet.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    platform: String,
    user: String,
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    /// Ids of all Pages that the owner granted; the first is `user`.
    #[serde(default)]
    pages: Vec<String>,
    /// Scopes that were requested and not granted.
    #[serde(default)]
    declined: Vec<String>,
    expires_at: DateTime<Utc>,
    is_used: bool,
}

impl Record for Code {
    const TABLE: &'static str = "graph.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// The scopes that a person declined in their last login.
#[derive(Serialize, Deserialize)]
struct Declined {
    user: String,
    scopes: Vec<String>,
}

impl Record for Declined {
    const TABLE: &'static str = "graph.declined";

    fn key(&self) -> String {
        self.user.clone()
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) token: String,
    platform: String,
    /// Id of the owner.
    pub(crate) user: String,
    /// Page that it belongs to, for a Page's token.
    pub(crate) page: Option<String>,
    /// Pages that its owner granted.
    #[serde(default)]
    pub(crate) pages: Vec<String>,
    /// Granted scopes.
    pub(crate) scopes: Vec<String>,
    /// Scopes that were requested and not granted.
    #[serde(default)]
    pub(crate) declined: Vec<String>,
    is_long: bool,
    issued_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    is_revoked: bool,
}

impl Record for Token {
    const TABLE: &'static str = "graph.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// Returns the token of a request, valid or not.
pub(crate) fn presented_token(tx: &Transaction, request: &Request) -> Option<Token> {
    tx.store.get(&bearer(request)?)
}

fn bearer(request: &Request) -> Option<String> {
    let header = request.header("authorization").and_then(|header| {
        let (scheme, token) = header.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("oauth"))
            .then(|| token.trim().to_owned())
    });
    header.filter(|token| !token.is_empty()).or_else(|| param(request, "access_token"))
}

/// Returns the username behind a request, by its token or its code.
pub(crate) fn owner(tx: &Transaction, platform: &str, request: &Request) -> Option<String> {
    let user = match presented_token(tx, request) {
        Some(token) => token.page.unwrap_or(token.user),
        None => {
            let other = ["fb_exchange_token", "input_token"]
                .iter()
                .find_map(|name| tx.store.get::<Token>(&param(request, name)?))
                .map(|token| token.user);
            other.or_else(|| Some(tx.store.get::<Code>(&param(request, "code")?)?.user))?
        }
    };
    account::by_id(tx.store, platform, &user).map(|account| account.username)
}

/// Admits a request whose token is valid and has the scopes.
///
/// # Errors
///
/// The refusal.
pub(crate) fn admit(
    tx: &Transaction,
    platform: &str,
    request: &Request,
    scopes: &[&str],
) -> Result<Token, Response> {
    let Some(presented) = bearer(request) else {
        let message = "An active access token must be used to query information about the current user.";
        return Err(error(State, 400, 2500, 0, message));
    };
    let token = valid_token(tx, platform, &presented)?;
    match scopes.iter().find(|scope| !token.scopes.iter().any(|granted| granted == *scope)) {
        None => Ok(token),
        Some(scope) => {
            let message =
                format!("(#10) Application does not have permission for this action: it requires {scope}");
            Err(error(State, 403, 10, 0, &message))
        }
    }
}

/// Admits a request to an API: its token lives, has the scope that every call needs, and is within the limit
/// of calls.
///
/// # Errors
///
/// The refusal.
pub(crate) fn admit_call(
    tx: &mut Transaction,
    platform: &'static str,
    request: &Request,
    scope: &str,
    limit: RateLimit,
) -> Result<Account, Response> {
    let token = admit(tx, platform, request, &[scope])?;
    let me = account(tx, platform, &token)?;
    match tx.spend(limit, &me.id, 1) {
        Ok(quota) => {
            tx.quota = Some(quota);
            Ok(me)
        }
        // A limit of the app, whose header has no time.
        Err(_) => {
            Err(error(State, 400, 4, 0, "(#4) Application request limit reached")
                .with(APP_USAGE, app_usage(100)))
        }
    }
}

/// Returns the refusal of a request without a route.
pub(crate) fn not_routed(method: &str, path: &[&str]) -> Outcome {
    Err(match path {
        [id, ..] => missing(method, id),
        [] => error(Protocol, 404, 2500, 0, "Unknown path components"),
    })
}

/// Returns the address of an account's picture.
pub(crate) fn avatar(account: &Account) -> String {
    format!("https://media.{}.sandbox/avatars/{}.jpg", account.platform, account.id)
}

/// Returns a token that is valid.
///
/// # Errors
///
/// The refusal.
pub(crate) fn valid_token(tx: &Transaction, platform: &str, token: &str) -> Result<Token, Response> {
    let found: Option<Token> = tx.store.get(token).filter(|token: &Token| token.platform == platform);
    let token = found
        .ok_or_else(|| error(State, 400, 190, 0, "Invalid OAuth access token - Cannot parse access token"))?;
    token.check(tx.now)?;
    Ok(token)
}

impl Token {
    fn check(&self, now: DateTime<Utc>) -> Result<(), Response> {
        if self.is_revoked {
            let message =
                "Error validating access token: The user has not authorized application 1000000000000001.";
            return Err(error(State, 400, 190, 458, message));
        }
        match self.expires_at.filter(|at| *at <= now) {
            Some(at) => Err(expired(at, now)),
            None => Ok(()),
        }
    }
}

pub(crate) fn issue(
    tx: &mut Transaction,
    platform: &str,
    user: &str,
    scopes: Vec<String>,
    kind: Kind,
    page: Option<String>,
) -> Token {
    let prefix = match platform {
        "threads" => "THAA",
        "instagram" => "IGAA",
        _ => "EAAG",
    };
    let life = match kind {
        Kind::Short => Some(SHORT_SECONDS),
        Kind::Long => Some(LONG_SECONDS),
        Kind::Page => None,
    };
    let token = Token {
        token: format!("{prefix}{}", random()),
        platform: platform.into(),
        user: user.into(),
        page,
        pages: Vec::new(),
        scopes,
        declined: Vec::new(),
        is_long: kind != Kind::Short,
        issued_at: tx.now,
        expires_at: life.map(|life| tx.now + tx.settings.token_life(life)),
        is_revoked: false,
    };
    tx.store.put(&token);
    token
}

/// Lifetime of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One hour.
    Short,
    /// Sixty days.
    Long,
    /// A Page's: no expiry.
    Page,
}

fn tokens_of(tx: &Transaction, user: &str) -> Vec<Token> {
    let is_theirs = |token: &Token| token.user == user || token.page.as_deref() == Some(user);
    tx.store.with_prefix("").filter(is_theirs).collect()
}

/// A platform's login.
pub(crate) struct Login {
    pub(crate) simulator: &'static dyn Simulator,
    /// The app's public identifier.
    pub(crate) client: &'static str,
    /// Scopes that may be requested.
    pub(crate) scopes: &'static [&'static str],
    /// Scopes of the grants that the sandbox creates by itself.
    pub(crate) granted: &'static [&'static str],
    /// Kind of token of such a grant.
    pub(crate) kind: Kind,
    /// Fragment of the redirect address.
    pub(crate) fragment: &'static str,
    /// Refusal of a person without a role on an app that was not reviewed.
    pub(crate) no_role: &'static str,
    /// True when the dialog asks for a declined scope again only with `auth_type=rerequest`.
    pub(crate) remembers_declined: bool,
}

impl Grants for Login {
    fn app(&self) -> Option<App> {
        Some(App {
            client_id: self.client.into(),
            client_secret: Some(CLIENT_SECRET.into()),
            access: AppAccess::Full,
        })
    }

    /// Issues a token that is a day old, so that it can be refreshed at once.
    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        let scopes: Vec<String> = self.granted.iter().map(|scope| (*scope).to_owned()).collect();
        let page = (self.kind == Kind::Page).then(|| account.id.clone());
        let mut token = issue(tx, self.simulator.id(), &account.id, scopes.clone(), self.kind, page);
        token.issued_at -= TimeDelta::days(1);
        tx.store.put(&token);
        Grant {
            access_token: token.token,
            refresh_token: None,
            ends_at: None,
            expires_at: token.expires_at,
            scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        for token in tokens_of(tx, &account.id) {
            tx.store.put(&Token { expires_at: Some(tx.now), ..token });
        }
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        revoke(tx, &account.id);
    }
}

/// Revokes all tokens of a user or a Page.
pub(crate) fn revoke(tx: &mut Transaction, user: &str) {
    for token in tokens_of(tx, user) {
        tx.store.put(&Token { is_revoked: true, ..token });
    }
}

impl Login {
    /// Serves the consent page and takes the owner's decision.
    pub(crate) fn dialog(&self, tx: &mut Transaction, request: &Request) -> Response {
        self.decide(tx, request).unwrap_or_else(|refusal| refusal)
    }

    fn decide(&self, tx: &mut Transaction, request: &Request) -> Outcome {
        let is_decision = request.method == poem::http::Method::POST;
        let fields = if is_decision { &request.fields } else { &request.query };
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let refuse =
            |what: &str| Err(Response::page(400, page::notice("Sorry, something went wrong.", what)));
        if field("client_id") != self.client {
            return refuse("Invalid App ID: The provided app ID does not look like a valid app ID.");
        }
        let Ok(mut back) = url::Url::parse(field("redirect_uri")) else {
            return refuse("The redirect_uri URL must be absolute.");
        };
        if !["", "code"].contains(&field("response_type")) {
            return refuse("Invalid response_type.");
        }
        let scopes: Vec<String> =
            field("scope").split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let unknown: Vec<_> = scopes.iter().filter(|scope| !self.scopes.contains(&scope.as_str())).collect();
        if !unknown.is_empty() || scopes.is_empty() {
            return refuse(&format!("Invalid Scopes: {unknown:?}."));
        }
        if !is_decision {
            let scopes = scopes.iter().map(String::as_str).collect();
            let platform = self.simulator.id();
            return Ok(page::consent(platform, "Fanfare's sandbox app", scopes, "sandbox", fields));
        }
        let state = field("state");
        if field("decision") == "allow" {
            // Several names, separated by commas, are the Pages that were granted.
            let mut pages = Vec::new();
            for name in field("username").split(',') {
                let account = get_or_create_account(tx, self.simulator, name.trim().trim_start_matches('@'))
                    .map_err(|error| Response::page(400, page::notice("No such account", &error)))?;
                if account.username.starts_with(STRANGER) && !tx.settings.is_approved() {
                    return refuse(self.no_role);
                }
                pages.push(account.id);
            }
            let (scopes, declined) = self.choose(tx, fields, &pages[0], scopes);
            let code = Code {
                code: format!("AQB{}", random()),
                platform: self.simulator.id().into(),
                user: pages[0].clone(),
                pages,
                client: self.client.into(),
                redirect_uri: field("redirect_uri").into(),
                scopes,
                declined,
                expires_at: tx.now + TimeDelta::seconds(CODE_SECONDS),
                is_used: false,
            };
            tx.store.put(&code);
            back.query_pairs_mut().append_pair("code", &code.code);
        } else {
            back.query_pairs_mut().extend_pairs([
                ("error", "access_denied"),
                ("error_reason", "user_denied"),
                ("error_description", "The user denied your request"),
            ]);
        }
        if !state.is_empty() {
            back.query_pairs_mut().append_pair("state", state);
        }
        Ok(Response::redirect(&format!("{back}{}", self.fragment)))
    }

    /// Splits the requested scopes into those that the owner grants and those that they decline: the scopes in
    /// the field `declined`, and those declined before for which the dialog does not ask again.
    fn choose(
        &self,
        tx: &mut Transaction,
        fields: &[(String, String)],
        user: &str,
        scopes: Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        let field = |name: &str| crate::exchange::first(fields, name).unwrap_or_default();
        let earlier = tx.store.get::<Declined>(user).map(|declined| declined.scopes).unwrap_or_default();
        let is_asked = |scope: &String| {
            !self.remembers_declined || field("auth_type") == "rerequest" || !earlier.contains(scope)
        };
        let is_unticked = |scope: &String| field("declined").split(',').any(|one| one.trim() == scope);
        let (granted, declined): (Vec<_>, Vec<_>) =
            scopes.into_iter().partition(|scope| is_asked(scope) && !is_unticked(scope));
        tx.store.put(&Declined { user: user.to_owned(), scopes: declined.clone() });
        (granted, declined)
    }

    /// Redeems the code of a request.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub(crate) fn redeem(&self, tx: &mut Transaction, request: &Request) -> Result<RedeemedCode, CodeError> {
        let get = |name: &str| param(request, name).unwrap_or_default();
        if get("client_id") != self.client {
            return Err(CodeError::App);
        }
        if get("client_secret") != CLIENT_SECRET {
            return Err(CodeError::Secret);
        }
        let presented = get("code");
        let code = tx.store.get::<Code>(presented.trim_end_matches("#_"));
        let Some(code) = code.filter(|code| code.platform == self.simulator.id()) else {
            return Err(CodeError::Unknown);
        };
        if code.redirect_uri != get("redirect_uri") {
            return Err(CodeError::Redirect);
        }
        if code.is_used {
            return Err(CodeError::Used);
        }
        if code.expires_at <= tx.now {
            return Err(CodeError::Expired);
        }
        tx.store.put(&Code { is_used: true, ..code.clone() });
        Ok(RedeemedCode { user: code.user, pages: code.pages, scopes: code.scopes, declined: code.declined })
    }

    /// `GET /access_token`: exchanges a short-lived token for a long-lived one.
    pub(crate) fn exchange_token(&self, tx: &mut Transaction, request: &Request, kind: &str) -> Outcome {
        if param(request, "grant_type").as_deref() != Some(kind) {
            return Err(invalid(Protocol, &format!("Param grant_type must be one of {{{kind}}}")));
        }
        if param(request, "client_secret").as_deref() != Some(CLIENT_SECRET) {
            return Err(error(State, 400, 1, 0, "Error validating client secret."));
        }
        let token = admit(tx, self.simulator.id(), request, &[])?;
        let long = issue(tx, self.simulator.id(), &token.user, token.scopes, Kind::Long, None);
        Ok(token_response(&long, tx.now))
    }

    /// `GET /refresh_access_token`: exchanges a long-lived token that is a day old for a new one.
    pub(crate) fn refresh_token(&self, tx: &mut Transaction, request: &Request, kind: &str) -> Outcome {
        if param(request, "grant_type").as_deref() != Some(kind) {
            return Err(invalid(Protocol, &format!("Param grant_type must be one of {{{kind}}}")));
        }
        let token = admit(tx, self.simulator.id(), request, &[])?;
        let age = u64::try_from((tx.now - token.issued_at).num_milliseconds()).unwrap_or(0);
        if !token.is_long || age < tx.settings.renew_after_ms {
            return Err(error(Protocol, 400, 10, 0, "(#10) The access token must be at least 24 hours old"));
        }
        let fresh = issue(tx, self.simulator.id(), &token.user, token.scopes, Kind::Long, None);
        Ok(token_response(&fresh, tx.now))
    }

    /// `GET /debug_token`.
    pub(crate) fn inspect(&self, tx: &mut Transaction, request: &Request) -> Outcome {
        let is_app = bearer(request).is_some_and(|token| token == format!("{}|{CLIENT_SECRET}", self.client));
        if !is_app {
            admit(tx, self.simulator.id(), request, &[])?;
        }
        let presented = param(request, "input_token").unwrap_or_default();
        let found = tx.store.get::<Token>(&presented).filter(|token| token.platform == self.simulator.id());
        let Some(token) = found else {
            return Ok(Response::json(
                200,
                &json!({ "data": {
                    "error": { "code": 190, "message": "Invalid OAuth access token - Cannot parse access token" },
                    "is_valid": false, "scopes": [],
                } }),
            ));
        };
        let mut data = json!({
            "app_id": self.client,
            "type": if token.page.is_some() { "PAGE" } else { "USER" },
            "application": "Fanfare's sandbox app",
            "data_access_expires_at": (token.issued_at + TimeDelta::days(90)).timestamp(),
            "expires_at": token.expires_at.map_or(0, |at| at.timestamp()),
            "is_valid": token.check(tx.now).is_ok(),
            "issued_at": token.issued_at.timestamp(),
            "scopes": token.scopes,
            "user_id": token.user,
        });
        if let Some(page) = &token.page {
            data["profile_id"] = json!(page);
        }
        // A scope for chosen objects names them.
        if !token.pages.is_empty() {
            let granular = |scope: &String| match scope.starts_with("pages_") || scope == "read_insights" {
                true => json!({ "scope": scope, "target_ids": token.pages }),
                false => json!({ "scope": scope }),
            };
            data["granular_scopes"] = token.scopes.iter().map(granular).collect();
        }
        if let Err(refusal) = token.check(tx.now) {
            let body: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
            data["error"] = json!({
                "code": body["error"]["code"],
                "subcode": body["error"]["error_subcode"],
                "message": body["error"]["message"],
            });
        }
        Ok(Response::json(200, &json!({ "data": data })))
    }
}

/// The grant behind a code.
pub(crate) struct RedeemedCode {
    /// Id of the account.
    pub(crate) user: String,
    /// Pages that were granted.
    pub(crate) pages: Vec<String>,
    /// Granted scopes.
    pub(crate) scopes: Vec<String>,
    /// Scopes that were requested and not granted.
    pub(crate) declined: Vec<String>,
}

/// Why a code is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeError {
    /// No such app.
    App,
    /// The app's secret is wrong.
    Secret,
    /// No such code.
    Unknown,
    /// Its redirect address is not the dialog's.
    Redirect,
    /// It was redeemed before.
    Used,
    /// It has expired.
    Expired,
}

impl CodeError {
    /// Creates the refusal in the form of the token endpoints of Threads and Instagram.
    pub(crate) fn flat(self) -> Response {
        let message = match self {
            Self::App => "Invalid platform app",
            Self::Secret => "Error validating client secret.",
            Self::Redirect => {
                "Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request"
            }
            Self::Unknown | Self::Used => "Matching code was not found or was already used",
            Self::Expired => "This authorization code has expired.",
        };
        Response::json(400, &json!({ "error_type": "OAuthException", "code": 400, "error_message": message }))
            .because(State)
    }

    /// Creates the refusal in the form of the Graph API.
    pub(crate) fn graph(self) -> Response {
        match self {
            Self::App => error(
                State,
                400,
                101,
                0,
                "Error validating application. Cannot get application info due to a system error.",
            ),
            Self::Secret => error(State, 400, 1, 0, "Error validating client secret."),
            Self::Redirect => error(
                State,
                400,
                100,
                36_008,
                "Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request",
            ),
            Self::Unknown => error(Protocol, 400, 100, 0, "Invalid verification code format."),
            Self::Used => error(State, 400, 100, 36_009, "This authorization code has been used."),
            Self::Expired => error(State, 400, 100, 36_007, "This authorization code has expired."),
        }
    }
}

/// Creates the response with a token and its lifetime.
pub(crate) fn token_response(token: &Token, now: DateTime<Utc>) -> Response {
    let mut body = json!({ "access_token": token.token, "token_type": "bearer" });
    if let Some(at) = token.expires_at {
        body["expires_in"] = json!((at - now).num_seconds());
    }
    Response::json(200, &body)
}

/// Returns the next id, of 17 digits, which a float can't hold.
pub(crate) fn next_id(tx: &mut Transaction) -> String {
    let next = |last: u64| last.max(17_900_000_000_000_000) + 7 + u64::from(rand::random::<u8>());
    tx.store.advance("graph", next).to_string()
}

/// Returns an account's id, the same in every sandbox.
pub(crate) fn account_id(platform: &str, username: &str, first: u64) -> String {
    let draw = account::digest_number(platform, username);
    (first + draw % 90_000_000_000_000).to_string()
}

/// Returns the short code of a post's address.
pub(crate) fn shortcode(id: &str) -> String {
    let number: u64 = id.parse().unwrap_or(0);
    format!("D{}", BASE64_URL_SAFE_NO_PAD.encode(&number.to_be_bytes()[1..]))
}

/// Formats a time as the Graph API does.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S+0000").to_string()
}

/// A requested field with its nested fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: String,
    inner: Vec<Field>,
}

/// Returns the requested fields: `id,children{media_url},picture.type(large)`.
pub(crate) fn fields(request: &Request) -> Vec<Field> {
    parse(&param(request, "fields").unwrap_or_default())
}

fn parse(text: &str) -> Vec<Field> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let word = text[start..at].trim();
                let (name, inner) = match word.split_once('{') {
                    Some((name, inner)) => (name, parse(inner.strip_suffix('}').unwrap_or(inner))),
                    None => (word, Vec::new()),
                };
                // Modifiers after a point don't change which field it is.
                let name = name.split(['.', '(']).next().unwrap_or_default().trim();
                if !name.is_empty() {
                    found.push(Field { name: name.to_owned(), inner });
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Selects the requested fields of a node; its id is always included. A null member is known but left out.
///
/// # Errors
///
/// When a requested field does not exist.
pub(crate) fn select(node: &Value, fields: &[Field], kind: &str, names: &[&str]) -> Result<Value, Response> {
    let default: Vec<Field>;
    let fields = if fields.is_empty() {
        default = names.iter().map(|name| Field { name: (*name).to_owned(), inner: Vec::new() }).collect();
        &default
    } else {
        fields
    };
    let mut selected = Map::new();
    for field in fields {
        let Some(value) = node.get(&field.name) else {
            let message = format!("Tried accessing nonexisting field ({}) on node type ({kind})", field.name);
            return Err(invalid(State, &message));
        };
        let value = match value {
            Value::Null => continue,
            Value::Object(members) => match members.get("data") {
                Some(Value::Array(items)) => {
                    let items = items
                        .iter()
                        .map(|item| match field.inner.is_empty() && item.get("id").is_none() {
                            true => Ok(item.clone()),
                            false => select(item, &field.inner, kind, &["id"]),
                        })
                        .collect::<Result<Vec<_>, _>>()?;
                    let mut list = json!({ "data": items });
                    if let Some(summary) = members.get("summary") {
                        list["summary"] = summary.clone();
                    }
                    list
                }
                _ if !field.inner.is_empty() || members.contains_key("id") => {
                    select(value, &field.inner, kind, &["id"])?
                }
                _ => value.clone(),
            },
            other => other.clone(),
        };
        selected.insert(field.name.clone(), value);
    }
    if let Some(id) = node.get("id") {
        selected.insert("id".into(), id.clone());
    }
    Ok(Value::Object(selected))
}

/// Returns one page of a list, newest first, after or before a cursor.
pub(crate) fn paged<T>(
    request: &Request,
    items: Vec<T>,
    key: impl Fn(&T) -> &str,
    view: impl Fn(&T) -> Result<Value, Response>,
) -> Outcome {
    let limit = match param(request, "limit") {
        None => 25,
        Some(text) => match text.parse::<usize>() {
            Ok(limit @ 1..=100) => limit,
            _ => return Err(invalid(Protocol, "Param limit must be a number between 1 and 100")),
        },
    };
    let cursor = |text: &str| {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        String::from_utf8(bytes).ok()
    };
    let place = |name: &str| -> Result<Option<usize>, Response> {
        let Some(text) = param(request, name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let found = cursor(&text).and_then(|id| items.iter().position(|item| key(item) == id));
        found.map(Some).ok_or_else(|| invalid(State, &format!("Invalid cursor: {name}")))
    };
    let (start, end) = match (place("after")?, place("before")?) {
        (Some(after), _) => (after + 1, items.len()),
        (None, Some(before)) => (before.saturating_sub(limit), before),
        (None, None) => (0, items.len()),
    };
    let shown: Vec<&T> = items[start.min(end)..end].iter().take(limit).collect();
    let data = shown.iter().map(|item| view(item)).collect::<Result<Vec<_>, _>>()?;
    let mut body = json!({ "data": data });
    if let (Some(first), Some(last)) = (shown.first(), shown.last()) {
        let token = |item: &T| BASE64_URL_SAFE_NO_PAD.encode(key(item));
        body["paging"] = json!({ "cursors": { "before": token(first), "after": token(last) } });
        let is_last = items.last().is_none_or(|end| key(end) == key(last));
        // Threads does not send the address of the next page.
        if !is_last
            && !request.host.contains("threads")
            && let Some(host) = request.header("host")
        {
            let rest = request.query.iter().filter(|(name, _)| name != "after" && name != "before");
            let query = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(rest)
                .append_pair("after", &token(last))
                .finish();
            body["paging"]["next"] = json!(format!("http://{host}/{}{}?{query}", request.host, request.path));
        }
    }
    Ok(Response::json(200, &body))
}

/// Returns whether a time lies between `since` and `until`, which are Unix times or dates.
pub(crate) fn is_within(request: &Request, at: DateTime<Utc>) -> bool {
    let bound = |name: &str| {
        let text = param(request, name)?;
        let date =
            || Some(text.get(..10)?.parse::<chrono::NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
        text.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0)).or_else(date)
    };
    bound("since").is_none_or(|since| at >= since) && bound("until").is_none_or(|until| at <= until)
}

/// Creates an insights response with the requested metrics.
///
/// # Errors
///
/// When one of the metrics does not exist, which fails the request.
pub(crate) fn insights(
    request: &Request,
    id: &str,
    figure: impl Fn(&str) -> Option<Value>,
    names: &[&str],
) -> Outcome {
    let asked = list(request, "metric");
    if asked.is_empty() {
        return Err(error(State, 400, 3001, 1_504_028, "(#3001) No metric was specified to be fetched."));
    }
    let mut data = Vec::new();
    for name in &asked {
        let Some(value) = figure(name) else {
            let message = format!("metric[0] must be one of the following values: {}", names.join(", "));
            return Err(invalid(State, &message));
        };
        data.push(json!({
            "name": name,
            "period": "lifetime",
            "values": [{ "value": value }],
            "title": name,
            "description": format!("The number of {name}."),
            "id": format!("{id}/insights/{name}/lifetime"),
        }));
    }
    Ok(Response::json(200, &json!({ "data": data })))
}

/// Spends one unit of a publishing cap.
pub(crate) fn spend_cap(tx: &mut Transaction, rule: RateLimit, user: &str) -> Result<Quota, Response> {
    tx.spend(rule, user, 1).map_err(|_| {
        error(State, 400, 9, 2_207_042, "(#9) Application request limit reached: you reached the maximum number of posts that is allowed to be published by API")
    })
}

/// Returns the usage of a cap, as the limits' edges show it.
pub(crate) fn quota_usage(tx: &mut Transaction, rule: RateLimit, user: &str) -> Value {
    let status = tx.spend(rule, user, 0).unwrap_or_else(|quota| quota);
    json!({
        "usage": status.limit - status.remaining.min(status.limit),
        "config": { "quota_total": status.limit, "quota_duration": rule.seconds },
    })
}

/// Returns the bytes of a medium.
pub(crate) fn serve_media(tx: &Transaction, file: &str) -> Response {
    match tx.files.read(file) {
        Some(bytes) => {
            let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
            Response { is_page: true, ..Response::bytes(200, mime, bytes) }
        }
        None => page::serve(None),
    }
}

/// Returns the account of a token.
pub(crate) fn account(tx: &Transaction, platform: &str, token: &Token) -> Result<Account, Response> {
    let id = token.page.as_ref().unwrap_or(&token.user);
    account::by_id(tx.store, platform, id)
        .ok_or_else(|| error(State, 400, 190, 460, "Error validating access token: The session has been invalidated because the user changed their password or Facebook has changed the session for security reasons."))
}

/// Returns a random text of letters and digits.
pub(crate) fn random() -> String {
    hex::encode(rand::random::<[u8; 24]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_fields_are_parsed_with_their_subfields() {
        let field = |name: &str, inner: Vec<Field>| Field { name: name.into(), inner };
        assert_eq!(
            parse("id, children{media_url,owner{id}},picture.type(large){url},shares"),
            [
                field("id", vec![]),
                field(
                    "children",
                    vec![field("media_url", vec![]), field("owner", vec![field("id", vec![])])]
                ),
                field("picture", vec![field("url", vec![])]),
                field("shares", vec![]),
            ]
        );
    }

    #[test]
    fn only_requested_fields_are_returned() {
        let node = json!({
            "id": "1", "text": "a", "link": null,
            "children": { "data": [{ "id": "2", "media_url": "u" }] }, "owner": { "id": "3", "name": "n" },
        });
        let selected = |fields: &str| select(&node, &parse(fields), "Post", &["id"]).ok();
        assert_eq!(selected(""), Some(json!({ "id": "1" })));
        assert_eq!(selected("text,link"), Some(json!({ "id": "1", "text": "a" })));
        assert_eq!(selected("children"), Some(json!({ "id": "1", "children": { "data": [{ "id": "2" }] } })));
        assert_eq!(
            selected("children{media_url},owner"),
            Some(json!({
                "id": "1", "children": { "data": [{ "id": "2", "media_url": "u" }] }, "owner": { "id": "3" },
            }))
        );
        assert_eq!(selected("nonsense"), None);
    }

    #[test]
    fn shortcodes_differ() {
        assert_ne!(shortcode("17900000000000001"), shortcode("17900000000000002"));
    }
}
