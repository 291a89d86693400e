//! Sessions by app password: <https://docs.bsky.app/docs/api/com-atproto-server-create-session>.
//!
//! Access tokens live two hours and are good on their own; refresh tokens are named one by one, so
//! that each can be used once, and again for two hours after, to the same successor.

use super::{
    Account, Answer, Call, ID, SERVICE_DID, Turn, account, document, input, member, refusal, required,
    server, throttled,
};
use crate::{Grant, shelf::Record, window::Rule};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

const ACCESS_SECONDS: i64 = 120 * 60;
const REFRESH_DAYS: i64 = 90;
const GRACE_HOURS: i64 = 2;

const LOGINS: Rule = Rule { name: "bluesky.logins", limit: 30, seconds: 300 };
const LOGINS_DAY: Rule = Rule { name: "bluesky.logins_day", limit: 300, seconds: 86_400 };

/// A refresh token.
#[derive(Clone, Serialize, Deserialize)]
struct Ticket {
    jti: String,
    did: String,
    successor: Option<String>,
    rotated_at: Option<DateTime<Utc>>,
    is_revoked: bool,
}

impl Record for Ticket {
    const SHELF: &'static str = "bluesky.ticket";

    fn key(&self) -> String {
        format!("{}/{}", self.did, self.jti)
    }
}

/// What tokens are signed with.
#[derive(Serialize, Deserialize)]
struct Secret {
    key: String,
}

impl Record for Secret {
    const SHELF: &'static str = "bluesky.secret";

    fn key(&self) -> String {
        String::new()
    }
}

/// What a token says.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    aud: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lxm: Option<String>,
    iat: i64,
    exp: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
    /// The account's era when it was made, so that a test can end all tokens at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    era: Option<u64>,
}

/// Whose request it is, by a token of any kind, or by the name in a login.
pub(super) fn owner(turn: &Turn<'_>, call: &Call) -> Option<Account> {
    let named = || {
        let is_login = call.path.ends_with("com.atproto.server.createSession");
        let body = is_login.then(|| call.json().ok()).flatten()?;
        find(turn, body["identifier"].as_str()?)
    };
    let Some(token) = call.bearer() else { return named() };
    let (_, claims) = open(turn, token)?;
    account::numbered(turn.shelf, ID, &claims.sub.or(claims.iss)?)
}

/// Lets a request in by its access token.
pub(super) fn admit(turn: &Turn<'_>, call: &Call) -> Result<Account, Answer> {
    let Some(token) = call.bearer() else {
        return Err(match call.header("authorization") {
            Some(_) => refusal(400, "InvalidToken", "Malformed token"),
            None => refusal(401, "AuthMissing", "Authentication Required"),
        });
    };
    let unverified = || refusal(400, "InvalidToken", "Token could not be verified");
    let (typ, claims) = open(turn, token).ok_or_else(unverified)?;
    let is_access =
        typ == "at+jwt" && claims.scope.as_deref().is_some_and(|scope| scope != "com.atproto.refresh");
    let account = claims.sub.and_then(|did| account::numbered(turn.shelf, ID, &did));
    let account = account.filter(|_| is_access).ok_or_else(unverified)?;
    if claims.exp <= turn.now.timestamp() || claims.era != Some(account.era) {
        return Err(refusal(400, "ExpiredToken", "Token has expired"));
    }
    Ok(account)
}

/// Lets a request in by a token that the account's server made for another service.
pub(super) fn admit_service(
    turn: &Turn<'_>,
    call: &Call,
    audiences: &[&str],
    methods: &[&str],
) -> Result<Account, Answer> {
    let token = call.bearer().ok_or_else(|| refusal(401, "AuthMissing", "Authentication Required"))?;
    let (_, claims) = open(turn, token)
        .ok_or_else(|| refusal(401, "BadJwtSignature", "jwt signature does not match jwt issuer"))?;
    if claims.exp <= turn.now.timestamp() {
        return Err(refusal(401, "JwtExpired", "jwt expired"));
    }
    if !audiences.contains(&claims.aud.as_str()) {
        return Err(refusal(401, "BadJwtAudience", "jwt audience does not match service did"));
    }
    if !claims.lxm.as_deref().is_some_and(|lxm| methods.contains(&lxm)) {
        let message = format!("bad jwt lexicon method (\"lxm\"). must match: {}", methods.join(", "));
        return Err(refusal(401, "BadJwtLexiconMethod", &message));
    }
    claims
        .iss
        .and_then(|did| account::numbered(turn.shelf, ID, &did))
        .ok_or_else(|| refusal(401, "BadJwtIss", "jwt issuer is unknown"))
}

/// `createSession`.
pub(super) fn create(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let body = input(call)?;
    let (identifier, password) = (member(&body, "identifier")?, member(&body, "password")?);
    let who = identifier.to_lowercase();
    let allowance = turn.spend(LOGINS, &who, 1).map_err(|allowance| throttled(turn, allowance))?;
    turn.spend(LOGINS_DAY, &who, 1).map_err(|allowance| throttled(turn, allowance))?;
    let account = find(turn, identifier)
        .filter(|account| account.password.as_deref() == Some(password))
        .ok_or_else(|| refusal(401, "AuthenticationRequired", "Invalid identifier or password"))?;
    let jti = ticket(turn, &account.id);
    let tokens = issue(turn, &account, &jti);
    Ok(super::metered(Answer::json(200, &session(&account, call, Some(&tokens))), allowance))
}

/// `refreshSession`.
pub(super) fn refresh(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let (account, mut old) = refreshing(turn, call)?;
    let is_over = old.rotated_at.is_some_and(|at| turn.now - at > TimeDelta::hours(GRACE_HOURS));
    if old.is_revoked || is_over {
        return Err(refusal(400, "ExpiredToken", "Token has been revoked"));
    }
    let jti = match &old.successor {
        Some(successor) => {
            let key = format!("{}/{successor}", account.id);
            if turn.shelf.get::<Ticket>(&key).is_none_or(|ticket| ticket.is_revoked) {
                return Err(refusal(400, "ExpiredToken", "Token has been revoked"));
            }
            successor.clone()
        }
        None => {
            let jti = ticket(turn, &account.id);
            old.successor = Some(jti.clone());
            old.rotated_at = Some(turn.now);
            turn.shelf.put(&old);
            jti
        }
    };
    let tokens = issue(turn, &account, &jti);
    Ok(Answer::json(200, &session(&account, call, Some(&tokens))))
}

/// `getSession`.
pub(super) fn show(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    Ok(Answer::json(200, &session(&account, call, None)))
}

/// `deleteSession`: ends the session and what it was rotated into.
pub(super) fn delete(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let (account, ticket) = refreshing(turn, call)?;
    let mut next = Some(ticket);
    while let Some(ticket) = next {
        next = ticket
            .successor
            .as_ref()
            .and_then(|jti| turn.shelf.get::<Ticket>(&format!("{}/{jti}", account.id)));
        turn.shelf.put(&Ticket { is_revoked: true, ..ticket });
    }
    Ok(Answer::empty(200))
}

/// `getServiceAuth`: a token for another service, signed here with the sandbox's key.
pub(super) fn service_auth(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let account = admit(turn, call)?;
    let aud = required(call, "aud")?.to_owned();
    if !aud.starts_with("did:") {
        return Err(refusal(400, "InvalidRequest", "Error: aud must be a valid did"));
    }
    let lxm = call.query("lxm").map(str::to_owned);
    let now = turn.now.timestamp();
    let exp = match call.query("exp").map(str::parse::<i64>) {
        None => now + 60,
        Some(Ok(exp)) => exp,
        Some(Err(_)) => return Err(refusal(400, "InvalidRequest", "Error: exp must be an integer")),
    };
    let bad = |message: &str| Err(refusal(400, "BadExpiration", message));
    match exp - now {
        ..0 => return bad("expiration is in past"),
        3_601.. => return bad("cannot request a token with an expiration more than an hour in the future"),
        61.. if lxm.is_none() => {
            return bad(
                "cannot request a method-less token with an expiration more than a minute in the future",
            );
        }
        _ => {}
    }
    let claims = Claims {
        scope: None,
        sub: None,
        iss: Some(account.id),
        aud,
        lxm,
        iat: now,
        exp,
        jti: Some(random()),
        era: None,
    };
    let token = seal(turn, "JWT", &claims);
    Ok(Answer::json(200, &json!({ "token": token })))
}

/// A fresh grant, as if the owner had entered the app password.
pub(super) fn grant(turn: &mut Turn<'_>, account: &mut Account) -> Grant {
    if account.password.is_none() {
        account.password = Some(password());
        turn.shelf.put(account);
    }
    let jti = ticket(turn, &account.id);
    let (access_token, refresh_token) = issue(turn, account, &jti);
    Grant {
        access_token,
        refresh_token: Some(refresh_token),
        expires_at: Some(turn.now + turn.settings.token_life(ACCESS_SECONDS)),
        scopes: Vec::new(),
        extra: json!({
            "service": server(account),
            "identifier": account.username,
            "app_password": account.password,
        }),
    }
}

/// Takes the app password away. Access tokens stay good until they run out.
pub(super) fn revoke_all(turn: &mut Turn<'_>, account: &mut Account) {
    account.password = None;
    turn.shelf.put(account);
    let tickets: Vec<Ticket> = turn.shelf.under(&format!("{}/", account.id)).collect();
    for ticket in tickets {
        turn.shelf.put(&Ticket { is_revoked: true, ..ticket });
    }
}

fn session(account: &Account, call: &Call, tokens: Option<&(String, String)>) -> Value {
    let mut session = json!({
        "did": account.id,
        "handle": account.username,
        "email": format!("{}@sandbox.invalid", account.username.split('.').next().unwrap_or_default()),
        "emailConfirmed": true,
        "emailAuthFactor": false,
        "active": true,
    });
    if let Some((access, refresh)) = tokens {
        session["accessJwt"] = json!(access);
        session["refreshJwt"] = json!(refresh);
    }
    // A client that took the sandbox for its server would leave for the one that this names.
    if !call.host.is_empty() {
        session["didDoc"] = document(account);
    }
    session
}

/// The account and the refresh token that a request came with.
fn refreshing(turn: &Turn<'_>, call: &Call) -> Result<(Account, Ticket), Answer> {
    let token = call.bearer().ok_or_else(|| refusal(401, "AuthMissing", "Authentication Required"))?;
    let unverified = || refusal(400, "InvalidToken", "Token could not be verified");
    let (typ, claims) = open(turn, token).ok_or_else(unverified)?;
    if typ != "refresh+jwt" || claims.scope.as_deref() != Some("com.atproto.refresh") {
        return Err(unverified());
    }
    if claims.exp <= turn.now.timestamp() {
        return Err(refusal(400, "ExpiredToken", "Token has expired"));
    }
    let (did, jti) = (claims.sub.ok_or_else(unverified)?, claims.jti.ok_or_else(unverified)?);
    let account = account::numbered(turn.shelf, ID, &did).ok_or_else(unverified)?;
    let ticket = turn
        .shelf
        .get(&format!("{did}/{jti}"))
        .ok_or_else(|| refusal(400, "ExpiredToken", "Token has been revoked"))?;
    Ok((account, ticket))
}

/// A new refresh token's name.
fn ticket(turn: &mut Turn<'_>, did: &str) -> String {
    let jti = random();
    turn.shelf.put(&Ticket {
        jti: jti.clone(),
        did: did.to_owned(),
        successor: None,
        rotated_at: None,
        is_revoked: false,
    });
    jti
}

/// Access and refresh token.
fn issue(turn: &mut Turn<'_>, account: &Account, jti: &str) -> (String, String) {
    let now = turn.now;
    let claims = |scope: &str, lifetime: TimeDelta| Claims {
        scope: Some(scope.to_owned()),
        sub: Some(account.id.clone()),
        iss: None,
        aud: SERVICE_DID.to_owned(),
        lxm: None,
        iat: now.timestamp(),
        exp: (now + lifetime).timestamp(),
        jti: None,
        era: None,
    };
    let access = Claims {
        era: Some(account.era),
        // Two tokens of the same second differ, as anyone would expect.
        jti: Some(random()),
        ..claims("com.atproto.appPass", turn.settings.token_life(ACCESS_SECONDS))
    };
    let refresh =
        Claims { jti: Some(jti.to_owned()), ..claims("com.atproto.refresh", TimeDelta::days(REFRESH_DAYS)) };
    (seal(turn, "at+jwt", &access), seal(turn, "refresh+jwt", &refresh))
}

/// Signs a token (RFC 7519) with HMAC-SHA-256.
fn seal(turn: &mut Turn<'_>, typ: &str, claims: &Claims) -> String {
    let secret = turn.shelf.get::<Secret>("").unwrap_or_else(|| {
        let secret = Secret { key: hex::encode(rand::random::<[u8; 32]>()) };
        turn.shelf.put(&secret);
        secret
    });
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = serde_json::to_value(claims).expect("claims are plain data");
    let signed = format!("{}.{}", encode(json!({ "typ": typ, "alg": "HS256" })), encode(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(mac(&secret, &signed).finalize().into_bytes());
    format!("{signed}.{signature}")
}

/// The type and the claims of a token that was signed here.
fn open(turn: &Turn<'_>, token: &str) -> Option<(String, Claims)> {
    let secret = turn.shelf.get::<Secret>("")?;
    let (signed, signature) = token.rsplit_once('.')?;
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
    mac(&secret, signed).verify_slice(&signature).ok()?;
    let (header, claims) = signed.split_once('.')?;
    let header: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    let claims = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    Some((header["typ"].as_str()?.to_owned(), claims))
}

fn mac(secret: &Secret, signed: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.key.as_bytes()).expect("any length is a key");
    mac.update(signed.as_bytes());
    mac
}

/// The account that a login names: by handle, DID or e-mail address.
fn find(turn: &Turn<'_>, identifier: &str) -> Option<Account> {
    if let Some(name) = identifier.strip_suffix("@sandbox.invalid") {
        return turn
            .shelf
            .under::<Account>("bluesky/")
            .find(|account| account.username.split('.').next() == Some(name));
    }
    super::actor_account(turn, identifier)
}

fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>())
}

/// Four groups of four, as the app shows them.
fn password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let draw = rand::random::<[u8; 16]>();
    let letters: Vec<char> = draw.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}
