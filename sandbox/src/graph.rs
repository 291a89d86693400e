//! What Meta's platforms have in common on their side of the wire: parameters wherever they stand,
//! errors, logins and tokens, fields that are asked for, and lists.
//!
//! <https://developers.facebook.com/docs/graph-api/overview> and, for errors,
//! <https://developers.facebook.com/docs/graph-api/guides/error-handling>.

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call},
    host::{Grants, Host},
    page,
    shelf::{Record, Shelf},
    tokens::SECRET,
    window::{Allowance, Rule},
};
use crate::{App, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A day, the window of all caps.
pub(crate) const DAY: i64 = 86_400;

const CODE_SECONDS: i64 = 3_600;
const SHORT_SECONDS: i64 = 3_600;
const LONG_SECONDS: i64 = 60 * DAY;

/// The path's segments without a version in front.
pub(crate) fn path(call: &Call) -> Vec<&str> {
    let segments = call.segments();
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

/// A parameter, wherever it stands: in the query, a form, or a body of JSON.
pub(crate) fn param(call: &Call, name: &str) -> Option<String> {
    if let Some(value) = call.query(name).or_else(|| call.field(name)) {
        return Some(value.to_owned());
    }
    match call.json().ok()?.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// All parameters that may be kept, the token not among them.
pub(crate) fn params(call: &Call) -> Map<String, Value> {
    let body: Map<String, Value> =
        call.json().ok().and_then(|body| body.as_object().cloned()).unwrap_or_default();
    let texts = call.query.iter().chain(&call.fields);
    body.into_iter()
        .chain(texts.map(|(name, value)| (name.clone(), json!(value))))
        .filter(|(name, _)| !matches!(name.as_str(), "access_token" | "appsecret_proof" | "client_secret"))
        .collect()
}

/// A parameter that holds several values: with commas between them, or as a list in JSON.
pub(crate) fn list(call: &Call, name: &str) -> Vec<String> {
    let Some(text) = param(call, name) else { return Vec::new() };
    if let Ok(Value::Array(items)) = serde_json::from_str(&text) {
        return items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
    }
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether a parameter says yes.
pub(crate) fn is_on(call: &Call, name: &str) -> bool {
    matches!(param(call, name).as_deref(), Some("true" | "1"))
}

/// An error as the Graph API writes it.
pub(crate) fn error(status: u16, code: impl Into<Value>, subcode: u64, message: &str) -> Answer {
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
    let answer = Answer::json(status, &json!({ "error": body }));
    if body["code"] == 190 {
        let told = format!("OAuth \"Facebook Platform\" \"invalid_token\" \"{message}\"");
        return answer.with("www-authenticate", told);
    }
    answer
}

/// A parameter that is wrong.
pub(crate) fn invalid(message: &str) -> Answer {
    error(400, 100, 0, &format!("(#100) {message}"))
}

/// An object that is not there, or not for this token.
pub(crate) fn missing(method: &str, id: &str) -> Answer {
    let message = format!(
        "Unsupported {} request. Object with ID '{id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation.",
        method.to_lowercase()
    );
    error(400, 100, 33, &message)
}

/// What all of Meta answers with a status that was asked for by a fault.
pub(crate) fn refuse(status: u16, kind: &str, id: &str, now: DateTime<Utc>) -> Answer {
    match status {
        400 => invalid("The content was refused on purpose."),
        401 => expired(now, now),
        403 => error(403, 10, 0, "(#10) Application does not have permission for this action"),
        429 => throttled("There have been too many calls. Wait a bit and try again.", kind, id),
        503 => error(503, 2, 0, "Service temporarily unavailable"),
        _ => error(500, 1, 0, "An unknown error has occurred."),
    }
}

/// Too many calls, by the code of the platform and with the header that tells when there may be more.
pub(crate) fn throttled(message: &str, kind: &str, id: &str) -> Answer {
    let usage = json!({ id: [{
        "type": kind, "call_count": 100, "total_cputime": 25, "total_time": 25,
        "estimated_time_to_regain_access": 1,
    }] });
    let code = match kind {
        "pages" => 80_001,
        "instagram" => 80_002,
        _ => 4,
    };
    error(400, code, 0, message)
        .with("x-app-usage", json!({ "call_count": 100, "total_time": 25, "total_cputime": 25 }))
        .with("x-business-use-case-usage", usage)
}

fn expired(at: DateTime<Utc>, now: DateTime<Utc>) -> Answer {
    let told = |at: DateTime<Utc>| at.format("%A, %d-%b-%y %H:%M:%S PST").to_string();
    let message = format!(
        "Error validating access token: Session has expired on {}. The current time is {}.",
        told(at),
        told(now)
    );
    error(400, 190, 463, &message)
}

/// A code on its way through a browser.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    platform: String,
    user: String,
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    /// All that the owner ticked, by id; the first is `user`.
    #[serde(default)]
    pages: Vec<String>,
    expires_at: DateTime<Utc>,
    is_used: bool,
}

impl Record for Code {
    const SHELF: &'static str = "graph.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// An access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    /// Itself.
    pub(crate) token: String,
    platform: String,
    /// Whose it is.
    pub(crate) user: String,
    /// The page that it speaks for, where it is a page's.
    pub(crate) page: Option<String>,
    /// The pages that its owner ticked.
    #[serde(default)]
    pub(crate) pages: Vec<String>,
    /// What it may do.
    pub(crate) scopes: Vec<String>,
    is_long: bool,
    issued_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    is_revoked: bool,
}

impl Record for Token {
    const SHELF: &'static str = "graph.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// The token that a request carries, dead or alive.
pub(crate) fn carried(turn: &Turn<'_>, call: &Call) -> Option<Token> {
    turn.shelf.get(&bearer(call)?)
}

fn bearer(call: &Call) -> Option<String> {
    let header = call.header("authorization").and_then(|header| {
        let (scheme, token) = header.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("oauth"))
            .then(|| token.trim().to_owned())
    });
    header.filter(|token| !token.is_empty()).or_else(|| param(call, "access_token"))
}

/// Whose request it is: by its token, or by the code it brings.
pub(crate) fn owner(turn: &Turn<'_>, platform: &str, call: &Call) -> Option<String> {
    let user = match carried(turn, call) {
        Some(token) => token.page.unwrap_or(token.user),
        None => {
            let other = ["fb_exchange_token", "input_token"]
                .iter()
                .find_map(|name| turn.shelf.get::<Token>(&param(call, name)?))
                .map(|token| token.user);
            other.or_else(|| Some(turn.shelf.get::<Code>(&param(call, "code")?)?.user))?
        }
    };
    account::numbered(turn.shelf, platform, &user).map(|account| account.username)
}

/// Lets a token in that lives and has the scopes.
///
/// # Errors
///
/// The refusal.
pub(crate) fn admit(turn: &Turn<'_>, platform: &str, call: &Call, scopes: &[&str]) -> Result<Token, Answer> {
    let Some(presented) = bearer(call) else {
        let message = "An active access token must be used to query information about the current user.";
        return Err(error(400, 2500, 0, message));
    };
    let token = alive(turn, platform, &presented)?;
    match scopes.iter().find(|scope| !token.scopes.iter().any(|granted| granted == *scope)) {
        None => Ok(token),
        Some(scope) => {
            let message =
                format!("(#10) Application does not have permission for this action: it requires {scope}");
            Err(error(403, 10, 0, &message))
        }
    }
}

/// A token that lives.
///
/// # Errors
///
/// Why it does not.
pub(crate) fn alive(turn: &Turn<'_>, platform: &str, token: &str) -> Result<Token, Answer> {
    let found: Option<Token> = turn.shelf.get(token).filter(|token: &Token| token.platform == platform);
    let token =
        found.ok_or_else(|| error(400, 190, 0, "Invalid OAuth access token - Cannot parse access token"))?;
    token.live(turn.now)?;
    Ok(token)
}

impl Token {
    fn live(&self, now: DateTime<Utc>) -> Result<(), Answer> {
        if self.is_revoked {
            let message =
                "Error validating access token: The user has not authorized application 1000000000000001.";
            return Err(error(400, 190, 458, message));
        }
        match self.expires_at.filter(|at| *at <= now) {
            Some(at) => Err(expired(at, now)),
            None => Ok(()),
        }
    }
}

/// A new token.
pub(crate) fn issue(
    turn: &mut Turn<'_>,
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
        is_long: kind != Kind::Short,
        issued_at: turn.now,
        expires_at: life.map(|life| turn.now + turn.settings.token_life(life)),
        is_revoked: false,
    };
    turn.shelf.put(&token);
    token
}

/// How long a token lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An hour.
    Short,
    /// Sixty days.
    Long,
    /// A page's: as long as its owner's grant.
    Page,
}

fn of(turn: &Turn<'_>, user: &str) -> Vec<Token> {
    let is_theirs = |token: &Token| token.user == user || token.page.as_deref() == Some(user);
    turn.shelf.under("").filter(is_theirs).collect()
}

/// What tells the login of one platform from another's.
pub(crate) struct Login {
    /// The platform.
    pub(crate) host: &'static dyn Host,
    /// The app's public identifier.
    pub(crate) client: &'static str,
    /// What can be asked for.
    pub(crate) scopes: &'static [&'static str],
    /// What an account that the sandbox connects by itself granted.
    pub(crate) granted: &'static [&'static str],
    /// What kind of token such an account gets.
    pub(crate) kind: Kind,
    /// What stands behind the parameters that a browser brings back.
    pub(crate) fragment: &'static str,
}

impl Grants for Login {
    fn app(&self) -> Option<App> {
        Some(App { client_id: self.client.into(), client_secret: Some(SECRET.into()) })
    }

    /// It is a day old, as the refresh of a long-lived token wants it.
    fn grant(&self, turn: &mut Turn<'_>, account: &mut Account) -> Grant {
        let scopes: Vec<String> = self.granted.iter().map(|scope| (*scope).to_owned()).collect();
        let page = (self.kind == Kind::Page).then(|| account.id.clone());
        let mut token = issue(turn, self.host.id(), &account.id, scopes.clone(), self.kind, page);
        token.issued_at -= TimeDelta::days(1);
        turn.shelf.put(&token);
        Grant {
            access_token: token.token,
            refresh_token: None,
            expires_at: token.expires_at,
            scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, turn: &mut Turn<'_>, account: &mut Account) {
        for token in of(turn, &account.id) {
            turn.shelf.put(&Token { expires_at: Some(turn.now), ..token });
        }
    }

    fn revoke(&self, turn: &mut Turn<'_>, account: &mut Account) {
        revoke(turn, &account.id);
    }
}

/// Takes back what a user or a page granted.
pub(crate) fn revoke(turn: &mut Turn<'_>, user: &str) {
    for token in of(turn, user) {
        turn.shelf.put(&Token { is_revoked: true, ..token });
    }
}

impl Login {
    /// Where the account's owner is asked, and where the decision goes.
    pub(crate) fn dialog(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        self.decide(turn, call).unwrap_or_else(|refusal| refusal)
    }

    fn decide(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
        let is_decision = call.method == poem::http::Method::POST;
        let fields = if is_decision { &call.fields } else { &call.query };
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| Err(Answer::page(400, page::notice("Sorry, something went wrong.", what)));
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
            return Ok(Answer::page(200, page::consent("Fanfare's sandbox app", scopes, "sandbox", fields)));
        }
        let state = field("state");
        if field("decision") == "allow" {
            // Several names, with commas between them, are the pages that were ticked.
            let mut pages = Vec::new();
            for name in field("username").split(',') {
                let account = account::open(turn, self.host, name.trim().trim_start_matches('@'))
                    .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
                pages.push(account.id);
            }
            let code = Code {
                code: format!("AQB{}", random()),
                platform: self.host.id().into(),
                user: pages[0].clone(),
                pages,
                client: self.client.into(),
                redirect_uri: field("redirect_uri").into(),
                scopes,
                expires_at: turn.now + TimeDelta::seconds(CODE_SECONDS),
                is_used: false,
            };
            turn.shelf.put(&code);
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
        Ok(Answer::redirect(&format!("{back}{}", self.fragment)))
    }

    /// The code that a request brings, which is used up by it.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub(crate) fn redeem(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Redeemed, Unredeemed> {
        let get = |name: &str| param(call, name).unwrap_or_default();
        if get("client_id") != self.client {
            return Err(Unredeemed::App);
        }
        if get("client_secret") != SECRET {
            return Err(Unredeemed::Secret);
        }
        let presented = get("code");
        let code = turn.shelf.get::<Code>(presented.trim_end_matches("#_"));
        let Some(code) = code.filter(|code| code.platform == self.host.id()) else {
            return Err(Unredeemed::Unknown);
        };
        if code.redirect_uri != get("redirect_uri") {
            return Err(Unredeemed::Redirect);
        }
        if code.is_used {
            return Err(Unredeemed::Used);
        }
        if code.expires_at <= turn.now {
            return Err(Unredeemed::Expired);
        }
        turn.shelf.put(&Code { is_used: true, ..code.clone() });
        Ok(Redeemed { user: code.user, pages: code.pages, scopes: code.scopes })
    }

    /// `GET /access_token`: a short-lived token for a long-lived one.
    pub(crate) fn lengthen(&self, turn: &mut Turn<'_>, call: &Call, kind: &str) -> Result<Answer, Answer> {
        if param(call, "grant_type").as_deref() != Some(kind) {
            return Err(invalid(&format!("Param grant_type must be one of {{{kind}}}")));
        }
        if param(call, "client_secret").as_deref() != Some(SECRET) {
            return Err(error(400, 1, 0, "Error validating client secret."));
        }
        let token = admit(turn, self.host.id(), call, &[])?;
        let long = issue(turn, self.host.id(), &token.user, token.scopes, Kind::Long, None);
        Ok(told(&long, turn.now))
    }

    /// `GET /refresh_access_token`: a long-lived token that is a day old for another.
    pub(crate) fn renew(&self, turn: &mut Turn<'_>, call: &Call, kind: &str) -> Result<Answer, Answer> {
        if param(call, "grant_type").as_deref() != Some(kind) {
            return Err(invalid(&format!("Param grant_type must be one of {{{kind}}}")));
        }
        let token = admit(turn, self.host.id(), call, &[])?;
        let age = u64::try_from((turn.now - token.issued_at).num_milliseconds()).unwrap_or(0);
        if !token.is_long || age < turn.settings.renew_after_ms {
            return Err(error(400, 10, 0, "(#10) The access token must be at least 24 hours old"));
        }
        let fresh = issue(turn, self.host.id(), &token.user, token.scopes, Kind::Long, None);
        Ok(told(&fresh, turn.now))
    }

    /// `GET /debug_token`.
    pub(crate) fn inspect(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
        let is_app = bearer(call).is_some_and(|token| token == format!("{}|{SECRET}", self.client));
        if !is_app {
            admit(turn, self.host.id(), call, &[])?;
        }
        let presented = param(call, "input_token").unwrap_or_default();
        let found = turn.shelf.get::<Token>(&presented).filter(|token| token.platform == self.host.id());
        let Some(token) = found else {
            return Ok(Answer::json(
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
            "is_valid": token.live(turn.now).is_ok(),
            "issued_at": token.issued_at.timestamp(),
            "scopes": token.scopes,
            "user_id": token.user,
        });
        if let Some(page) = &token.page {
            data["profile_id"] = json!(page);
        }
        if let Err(refusal) = token.live(turn.now) {
            let body: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
            data["error"] = json!({
                "code": body["error"]["code"],
                "subcode": body["error"]["error_subcode"],
                "message": body["error"]["message"],
            });
        }
        Ok(Answer::json(200, &json!({ "data": data })))
    }
}

/// What a code stands for.
pub(crate) struct Redeemed {
    /// Whose login it was.
    pub(crate) user: String,
    /// The pages that were ticked.
    pub(crate) pages: Vec<String>,
    /// What was allowed.
    pub(crate) scopes: Vec<String>,
}

/// Why a code is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unredeemed {
    /// No such app.
    App,
    /// The app's secret is wrong.
    Secret,
    /// No such code.
    Unknown,
    /// Another address than the dialog's.
    Redirect,
    /// It was used.
    Used,
    /// It is too old.
    Expired,
}

impl Unredeemed {
    /// In the form of the token endpoints of Threads and Instagram.
    pub(crate) fn flat(self) -> Answer {
        let message = match self {
            Self::App => "Invalid platform app",
            Self::Secret => "Error validating client secret.",
            Self::Redirect => {
                "Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request"
            }
            Self::Unknown | Self::Used => "Matching code was not found or was already used",
            Self::Expired => "This authorization code has expired.",
        };
        Answer::json(400, &json!({ "error_type": "OAuthException", "code": 400, "error_message": message }))
    }

    /// In the form of the Graph API.
    pub(crate) fn graph(self) -> Answer {
        match self {
            Self::App => error(
                400,
                101,
                0,
                "Error validating application. Cannot get application info due to a system error.",
            ),
            Self::Secret => error(400, 1, 0, "Error validating client secret."),
            Self::Redirect => error(
                400,
                100,
                36_008,
                "Error validating verification code. Please make sure your redirect_uri is identical to the one you used in the OAuth dialog request",
            ),
            Self::Unknown => error(400, 100, 0, "Invalid verification code format."),
            Self::Used => error(400, 100, 36_009, "This authorization code has been used."),
            Self::Expired => error(400, 100, 36_007, "This authorization code has expired."),
        }
    }
}

/// A token endpoint's answer about a token that lives for long.
pub(crate) fn told(token: &Token, now: DateTime<Utc>) -> Answer {
    let mut body = json!({ "access_token": token.token, "token_type": "bearer" });
    if let Some(at) = token.expires_at {
        body["expires_in"] = json!((at - now).num_seconds());
    }
    Answer::json(200, &body)
}

/// The next id, of 17 digits and more than a float can hold.
pub(crate) fn id(turn: &mut Turn<'_>) -> String {
    let last = turn.shelf.get::<Last>("").map_or(17_900_000_000_000_000, |last| last.id);
    let id = last + 7 + u64::from(rand::random::<u8>());
    turn.shelf.put(&Last { id });
    id.to_string()
}

/// The last id that was given.
#[derive(Serialize, Deserialize)]
struct Last {
    id: u64,
}

impl Record for Last {
    const SHELF: &'static str = "graph.last";

    fn key(&self) -> String {
        String::new()
    }
}

/// That a post belongs to an author, a parent or a code, so that lists need not look at all posts.
#[derive(Serialize, Deserialize)]
struct Tie {
    kind: String,
    of: String,
    id: String,
}

impl Record for Tie {
    const SHELF: &'static str = "graph.tie";

    fn key(&self) -> String {
        format!("{}/{}/{}", self.kind, self.of, self.id)
    }
}

/// Keeps that `id` belongs to `of`.
pub(crate) fn tie(turn: &mut Turn<'_>, kind: &str, of: &str, id: &str) {
    turn.shelf.put(&Tie { kind: kind.into(), of: of.into(), id: id.into() });
}

/// What belongs to `of` and is still there, oldest first: ids only grow.
pub(crate) fn tied<'a, T: Record>(
    shelf: &'a Shelf,
    kind: &str,
    of: &str,
) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
    shelf.under::<Tie>(&format!("{kind}/{of}/")).filter_map(|tie| shelf.get(&tie.id))
}

/// An account's id, the same in every sandbox.
pub(crate) fn number(platform: &str, username: &str, first: u64) -> String {
    let digest = account::digest(platform, username);
    let draw = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes of a digest"));
    (first + draw % 90_000_000_000_000).to_string()
}

/// The short code of a post's address.
pub(crate) fn shortcode(id: &str) -> String {
    let number: u64 = id.parse().unwrap_or(0);
    format!("D{}", BASE64_URL_SAFE_NO_PAD.encode(&number.to_be_bytes()[1..]))
}

/// A time as the Graph API writes it.
pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%S+0000").to_string()
}

/// A field that is asked for, with what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    name: String,
    inner: Vec<Field>,
}

/// The fields that a request asks for: `id,children{media_url},picture.type(large)`.
pub(crate) fn fields(call: &Call) -> Vec<Field> {
    parse(&param(call, "fields").unwrap_or_default())
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
                // What stands behind a point changes how the field is told and not which it is.
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

/// What is asked for of a node; its id is always told. A member that is null is known and left out.
///
/// # Errors
///
/// When something is asked for that the node has not.
pub(crate) fn select(node: &Value, fields: &[Field], kind: &str, names: &[&str]) -> Result<Value, Answer> {
    let default: Vec<Field>;
    let fields = if fields.is_empty() {
        default = names.iter().map(|name| Field { name: (*name).to_owned(), inner: Vec::new() }).collect();
        &default
    } else {
        fields
    };
    let mut told = Map::new();
    for field in fields {
        let Some(value) = node.get(&field.name) else {
            let message = format!("Tried accessing nonexisting field ({}) on node type ({kind})", field.name);
            return Err(invalid(&message));
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
        told.insert(field.name.clone(), value);
    }
    if let Some(id) = node.get("id") {
        told.insert("id".into(), id.clone());
    }
    Ok(Value::Object(told))
}

/// One page of a list, newest first: items after or before a cursor, no more than asked for.
pub(crate) fn paged<T>(
    call: &Call,
    items: Vec<T>,
    key: impl Fn(&T) -> &str,
    view: impl Fn(&T) -> Result<Value, Answer>,
) -> Result<Answer, Answer> {
    let limit = match param(call, "limit") {
        None => 25,
        Some(text) => match text.parse::<usize>() {
            Ok(limit @ 1..=100) => limit,
            _ => return Err(invalid("Param limit must be a number between 1 and 100")),
        },
    };
    let cursor = |text: &str| {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        String::from_utf8(bytes).ok()
    };
    let place = |name: &str| -> Result<Option<usize>, Answer> {
        let Some(text) = param(call, name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let found = cursor(&text).and_then(|id| items.iter().position(|item| key(item) == id));
        found.map(Some).ok_or_else(|| invalid(&format!("Invalid cursor: {name}")))
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
        // Threads tells no address of the next page, the others do.
        if !is_last
            && !call.host.contains("threads")
            && let Some(host) = call.header("host")
        {
            let rest = call.query.iter().filter(|(name, _)| name != "after" && name != "before");
            let query = url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(rest)
                .append_pair("after", &token(last))
                .finish();
            body["paging"]["next"] = json!(format!("http://{host}/{}{}?{query}", call.host, call.path));
        }
    }
    Ok(Answer::json(200, &body))
}

/// Whether a moment lies between `since` and `until`, which are Unix times or dates.
pub(crate) fn is_within(call: &Call, at: DateTime<Utc>) -> bool {
    let bound = |name: &str| {
        let text = param(call, name)?;
        let date =
            || Some(text.get(..10)?.parse::<chrono::NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
        text.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0)).or_else(date)
    };
    bound("since").is_none_or(|since| at >= since) && bound("until").is_none_or(|until| at <= until)
}

/// An insights answer: each metric that is asked for, with its figure.
///
/// # Errors
///
/// When one of them is none: that fails the whole request.
pub(crate) fn insights(
    call: &Call,
    id: &str,
    figure: impl Fn(&str) -> Option<Value>,
    names: &[&str],
) -> Result<Answer, Answer> {
    let asked = list(call, "metric");
    if asked.is_empty() {
        return Err(error(400, 3001, 1_504_028, "(#3001) No metric was specified to be fetched."));
    }
    let mut data = Vec::new();
    for name in &asked {
        let Some(value) = figure(name) else {
            let message = format!("metric[0] must be one of the following values: {}", names.join(", "));
            return Err(invalid(&message));
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
    Ok(Answer::json(200, &json!({ "data": data })))
}

/// Takes units of a cap that a platform refuses to be exceeded in its own words.
pub(crate) fn capped(turn: &mut Turn<'_>, rule: Rule, user: &str) -> Result<Allowance, Answer> {
    turn.spend(rule, user, 1).map_err(|_| {
        error(400, 9, 2_207_042, "(#9) Application request limit reached: you reached the maximum number of posts that is allowed to be published by API")
    })
}

/// How much of a cap is used up, as the limits' edges tell it.
pub(crate) fn used(turn: &mut Turn<'_>, rule: Rule, user: &str) -> Value {
    let stands = turn.spend(rule, user, 0).unwrap_or_else(|allowance| allowance);
    json!({
        "usage": stands.limit - stands.remaining.min(stands.limit),
        "config": { "quota_total": stands.limit, "quota_duration": rule.seconds },
    })
}

/// The bytes of a medium.
pub(crate) fn serve(turn: &Turn<'_>, file: &str) -> Answer {
    match turn.files.read(file) {
        Some(bytes) => {
            let mime = infer::get(&bytes).map_or("application/octet-stream", |kind| kind.mime_type());
            Answer { is_page: true, ..Answer::bytes(200, mime, bytes) }
        }
        None => Answer::page(404, page::missing()),
    }
}

/// The account of a token.
pub(crate) fn account(turn: &Turn<'_>, platform: &str, token: &Token) -> Result<Account, Answer> {
    let id = token.page.as_ref().unwrap_or(&token.user);
    account::numbered(turn.shelf, platform, id)
        .ok_or_else(|| error(400, 190, 460, "Error validating access token: The session has been invalidated because the user changed their password or Facebook has changed the session for security reasons."))
}

/// Something unguessable, in letters and digits.
pub(crate) fn random() -> String {
    hex::encode(rand::random::<[u8; 24]>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_what_is_asked_of_them() {
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
    fn only_what_is_asked_for_is_told() {
        let node = json!({
            "id": "1", "text": "a", "link": null,
            "children": { "data": [{ "id": "2", "media_url": "u" }] }, "owner": { "id": "3", "name": "n" },
        });
        let told = |fields: &str| select(&node, &parse(fields), "Post", &["id"]).ok();
        assert_eq!(told(""), Some(json!({ "id": "1" })));
        assert_eq!(told("text,link"), Some(json!({ "id": "1", "text": "a" })));
        assert_eq!(told("children"), Some(json!({ "id": "1", "children": { "data": [{ "id": "2" }] } })));
        assert_eq!(
            told("children{media_url},owner"),
            Some(json!({
                "id": "1", "children": { "data": [{ "id": "2", "media_url": "u" }] }, "owner": { "id": "3" },
            }))
        );
        assert_eq!(told("nonsense"), None);
    }

    #[test]
    fn shortcodes_differ() {
        assert_ne!(shortcode("17900000000000001"), shortcode("17900000000000002"));
    }
}
