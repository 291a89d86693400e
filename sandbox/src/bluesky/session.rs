//! Sessions by app password: <https://docs.bsky.app/docs/api/com-atproto-server-create-session>.
//!
//! Access tokens are valid for two hours without a lookup. Refresh tokens are stored: each can be used once,
//! and again within two hours for the same successor.

use super::{
    Account, ID, Outcome, Request, Response, SERVICE_DID, Transaction, account, document, input, member,
    refusal, required, server, throttled,
};
use crate::exchange::Cause::{Protocol, State};
use crate::{Grant, rate_limit::RateLimit, store::Record};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

const ACCESS_SECONDS: i64 = 120 * 60;
const REFRESH_DAYS: i64 = 90;
const GRACE_HOURS: i64 = 2;

const LOGINS: RateLimit = RateLimit { name: "bluesky.logins", limit: 30, seconds: 300 };
const LOGINS_DAY: RateLimit = RateLimit { name: "bluesky.logins_day", limit: 300, seconds: 86_400 };

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
    const TABLE: &'static str = "bluesky.ticket";

    fn key(&self) -> String {
        format!("{}/{}", self.did, self.jti)
    }
}

/// Key that signs tokens.
#[derive(Serialize, Deserialize)]
struct Secret {
    key: String,
}

impl Record for Secret {
    const TABLE: &'static str = "bluesky.secret";

    fn key(&self) -> String {
        String::new()
    }
}

/// Claims of a token.
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
    /// The account's era at issue, so that a test can expire all tokens at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    era: Option<u64>,
}

/// Returns the account behind a request, by a token of any kind or by the identifier in a login.
pub(super) fn owner(tx: &Transaction, request: &Request) -> Option<Account> {
    let named = || {
        let is_login = request.path.ends_with("com.atproto.server.createSession");
        let body = is_login.then(|| request.json().ok()).flatten()?;
        find(tx, body["identifier"].as_str()?)
    };
    let Some(token) = request.bearer() else { return named() };
    let (_, claims) = open(tx, token)?;
    account::by_id(tx.store, ID, &claims.sub.or(claims.iss)?)
}

/// Returns whether the service that a request came to knows an account: the entryway knows those of Bluesky's own
/// servers. Any other host may claim any account.
fn is_known(account: &Account, request: &Request) -> bool {
    let server = server(account);
    request.host != "bsky.social" || server == super::SERVICE || server.ends_with(".host.bsky.network")
}

/// Returns whether the account's owner has deactivated it.
fn is_deactivated(account: &Account) -> bool {
    account.username.starts_with("deactivated")
}

/// Admits a request by its access token. A deactivated account may only ask for its session.
pub(super) fn admit(tx: &Transaction, request: &Request) -> Result<Account, Response> {
    let account = admit_inactive(tx, request)?;
    if is_deactivated(&account) {
        return Err(refusal(State, 401, "AccountDeactivated", "Account is deactivated"));
    }
    Ok(account)
}

fn admit_inactive(tx: &Transaction, request: &Request) -> Result<Account, Response> {
    let Some(token) = request.bearer() else {
        return Err(match request.header("authorization") {
            Some(_) => refusal(State, 400, "InvalidToken", "Malformed token"),
            None => refusal(State, 401, "AuthMissing", "Authentication Required"),
        });
    };
    let unverified = || refusal(State, 400, "InvalidToken", "Token could not be verified");
    let (typ, claims) = open(tx, token).ok_or_else(unverified)?;
    let is_access =
        typ == "at+jwt" && claims.scope.as_deref().is_some_and(|scope| scope != "com.atproto.refresh");
    let account = claims.sub.and_then(|did| account::by_id(tx.store, ID, &did));
    let account = account.filter(|_| is_access).ok_or_else(unverified)?;
    if claims.exp <= tx.now.timestamp() || claims.era != Some(account.era) {
        return Err(refusal(State, 400, "ExpiredToken", "Token has expired"));
    }
    Ok(account)
}

/// Admits a request by a token that the account's server issued for another service.
pub(super) fn admit_service(
    tx: &Transaction,
    request: &Request,
    audiences: &[&str],
    methods: &[&str],
) -> Result<Account, Response> {
    let token =
        request.bearer().ok_or_else(|| refusal(State, 401, "AuthMissing", "Authentication Required"))?;
    let (_, claims) = open(tx, token)
        .ok_or_else(|| refusal(State, 401, "BadJwtSignature", "jwt signature does not match jwt issuer"))?;
    if claims.exp <= tx.now.timestamp() {
        return Err(refusal(State, 401, "JwtExpired", "jwt expired"));
    }
    if !audiences.contains(&claims.aud.as_str()) {
        return Err(refusal(State, 401, "BadJwtAudience", "jwt audience does not match service did"));
    }
    if !claims.lxm.as_deref().is_some_and(|lxm| methods.contains(&lxm)) {
        let message = format!("bad jwt lexicon method (\"lxm\"). must match: {}", methods.join(", "));
        return Err(refusal(State, 401, "BadJwtLexiconMethod", &message));
    }
    claims
        .iss
        .and_then(|did| account::by_id(tx.store, ID, &did))
        .ok_or_else(|| refusal(State, 401, "BadJwtIss", "jwt issuer is unknown"))
}

/// `createSession`.
pub(super) fn create(tx: &mut Transaction, request: &Request) -> Outcome {
    let body = input(request)?;
    let (identifier, password) = (member(&body, "identifier")?, member(&body, "password")?);
    let who = identifier.to_lowercase();
    let quota = tx.spend(LOGINS, &who, 1).map_err(|quota| throttled(tx, quota))?;
    tx.spend(LOGINS_DAY, &who, 1).map_err(|quota| throttled(tx, quota))?;
    let account = find(tx, identifier)
        .filter(|account| account.password.as_deref() == Some(password) && is_known(account, request))
        .ok_or_else(|| refusal(State, 401, "AuthenticationRequired", "Invalid identifier or password"))?;
    let jti = ticket(tx, &account.id);
    let tokens = issue(tx, &account, &jti);
    Ok(super::metered(Response::json(200, &session(&account, request, Some(&tokens))), quota))
}

/// `refreshSession`.
pub(super) fn refresh(tx: &mut Transaction, request: &Request) -> Outcome {
    let (account, mut old) = refreshing(tx, request)?;
    let is_over = old.rotated_at.is_some_and(|at| tx.now - at > TimeDelta::hours(GRACE_HOURS));
    if old.is_revoked || is_over {
        return Err(refusal(State, 400, "ExpiredToken", "Token has been revoked"));
    }
    let jti = match &old.successor {
        Some(successor) => {
            let key = format!("{}/{successor}", account.id);
            if tx.store.get::<Ticket>(&key).is_none_or(|ticket| ticket.is_revoked) {
                return Err(refusal(State, 400, "ExpiredToken", "Token has been revoked"));
            }
            successor.clone()
        }
        None => {
            let jti = ticket(tx, &account.id);
            old.successor = Some(jti.clone());
            old.rotated_at = Some(tx.now);
            tx.store.put(&old);
            jti
        }
    };
    let tokens = issue(tx, &account, &jti);
    Ok(Response::json(200, &session(&account, request, Some(&tokens))))
}

/// `getSession`.
pub(super) fn show(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit_inactive(tx, request)?;
    Ok(Response::json(200, &session(&account, request, None)))
}

/// `deleteSession`: ends the session and its successors.
pub(super) fn delete(tx: &mut Transaction, request: &Request) -> Outcome {
    let (account, ticket) = refreshing(tx, request)?;
    let mut next = Some(ticket);
    while let Some(ticket) = next {
        next = ticket
            .successor
            .as_ref()
            .and_then(|jti| tx.store.get::<Ticket>(&format!("{}/{jti}", account.id)));
        tx.store.put(&Ticket { is_revoked: true, ..ticket });
    }
    Ok(Response::empty(200))
}

/// `getServiceAuth`: a token for another service, signed here with the sandbox's key.
pub(super) fn service_auth(tx: &mut Transaction, request: &Request) -> Outcome {
    let account = admit(tx, request)?;
    let aud = required(request, "aud")?.to_owned();
    if !aud.starts_with("did:") {
        return Err(refusal(Protocol, 400, "InvalidRequest", "Error: aud must be a valid did"));
    }
    let lxm = request.query("lxm").map(str::to_owned);
    let now = tx.now.timestamp();
    let exp = match request.query("exp").map(str::parse::<i64>) {
        None => now + 60,
        Some(Ok(exp)) => exp,
        Some(Err(_)) => {
            return Err(refusal(Protocol, 400, "InvalidRequest", "Error: exp must be an integer"));
        }
    };
    let bad = |message: &str| Err(refusal(State, 400, "BadExpiration", message));
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
    let token = seal(tx, "JWT", &claims);
    Ok(Response::json(200, &json!({ "token": token })))
}

/// Returns a fresh grant, as if the owner had entered the app password.
pub(super) fn grant(tx: &mut Transaction, account: &mut Account) -> Grant {
    if account.password.is_none() {
        account.password = Some(password());
        tx.store.put(account);
    }
    let jti = ticket(tx, &account.id);
    let (access_token, refresh_token) = issue(tx, account, &jti);
    Grant {
        access_token,
        refresh_token: Some(refresh_token),
        ends_at: None,
        expires_at: Some(tx.now + tx.settings.token_life(ACCESS_SECONDS)),
        scopes: Vec::new(),
        extra: json!({
            "service": server(account),
            "identifier": account.username,
            "app_password": account.password,
        }),
    }
}

/// Removes the app password. Access tokens stay valid until they expire.
pub(super) fn revoke_all(tx: &mut Transaction, account: &mut Account) {
    account.password = None;
    tx.store.put(account);
    let tickets: Vec<Ticket> = tx.store.with_prefix(&format!("{}/", account.id)).collect();
    for ticket in tickets {
        tx.store.put(&Ticket { is_revoked: true, ..ticket });
    }
}

fn session(account: &Account, request: &Request, tokens: Option<&(String, String)>) -> Value {
    let mut session = json!({
        "did": account.id,
        "handle": account.username,
        "email": format!("{}@sandbox.invalid", account.username.split('.').next().unwrap_or_default()),
        "emailConfirmed": true,
        "emailAuthFactor": false,
        "active": !is_deactivated(account),
    });
    if is_deactivated(account) {
        session["status"] = json!("deactivated");
    }
    if let Some((access, refresh)) = tokens {
        session["accessJwt"] = json!(access);
        session["refreshJwt"] = json!(refresh);
    }
    // A client that uses the sandbox as its server would switch to the server named here.
    if !request.host.is_empty() {
        session["didDoc"] = document(account);
    }
    session
}

/// Returns the account and the refresh token that a request came with.
fn refreshing(tx: &Transaction, request: &Request) -> Result<(Account, Ticket), Response> {
    let token =
        request.bearer().ok_or_else(|| refusal(State, 401, "AuthMissing", "Authentication Required"))?;
    let unverified = || refusal(State, 400, "InvalidToken", "Token could not be verified");
    let (typ, claims) = open(tx, token).ok_or_else(unverified)?;
    if typ != "refresh+jwt" || claims.scope.as_deref() != Some("com.atproto.refresh") {
        return Err(unverified());
    }
    if claims.exp <= tx.now.timestamp() {
        return Err(refusal(State, 400, "ExpiredToken", "Token has expired"));
    }
    let (did, jti) = (claims.sub.ok_or_else(unverified)?, claims.jti.ok_or_else(unverified)?);
    let account = account::by_id(tx.store, ID, &did).ok_or_else(unverified)?;
    let ticket = tx
        .store
        .get(&format!("{did}/{jti}"))
        .ok_or_else(|| refusal(State, 400, "ExpiredToken", "Token has been revoked"))?;
    Ok((account, ticket))
}

/// Stores a new refresh token and returns its id.
fn ticket(tx: &mut Transaction, did: &str) -> String {
    let jti = random();
    tx.store.put(&Ticket {
        jti: jti.clone(),
        did: did.to_owned(),
        successor: None,
        rotated_at: None,
        is_revoked: false,
    });
    jti
}

/// Returns access and refresh token.
fn issue(tx: &mut Transaction, account: &Account, jti: &str) -> (String, String) {
    let now = tx.now;
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
        // Two tokens of the same second have to differ.
        jti: Some(random()),
        ..claims("com.atproto.appPass", tx.settings.token_life(ACCESS_SECONDS))
    };
    let refresh =
        Claims { jti: Some(jti.to_owned()), ..claims("com.atproto.refresh", TimeDelta::days(REFRESH_DAYS)) };
    (seal(tx, "at+jwt", &access), seal(tx, "refresh+jwt", &refresh))
}

/// Signs a token (RFC 7519) with HMAC-SHA-256.
fn seal(tx: &mut Transaction, typ: &str, claims: &Claims) -> String {
    let secret = tx.store.get::<Secret>("").unwrap_or_else(|| {
        let secret = Secret { key: hex::encode(rand::random::<[u8; 32]>()) };
        tx.store.put(&secret);
        secret
    });
    let encode = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = serde_json::to_value(claims).expect("claims are plain data");
    let signed = format!("{}.{}", encode(json!({ "typ": typ, "alg": "HS256" })), encode(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(mac(&secret, &signed).finalize().into_bytes());
    format!("{signed}.{signature}")
}

/// Returns the type and the claims of a token that was signed here.
fn open(tx: &Transaction, token: &str) -> Option<(String, Claims)> {
    let secret = tx.store.get::<Secret>("")?;
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

/// Returns the account that a login names: by handle, DID or e-mail address.
fn find(tx: &Transaction, identifier: &str) -> Option<Account> {
    if let Some(name) = identifier.strip_suffix("@sandbox.invalid") {
        return tx
            .store
            .with_prefix::<Account>("bluesky/")
            .find(|account| account.username.split('.').next() == Some(name));
    }
    super::actor_account(tx, identifier)
}

fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 24]>())
}

/// Returns a password of four groups of four characters, as the app shows them.
fn password() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let draw = rand::random::<[u8; 16]>();
    let letters: Vec<char> = draw.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}
