//! OAuth 2.0 with PKCE, as at
//! <https://docs.x.com/resources/fundamentals/authentication/oauth-2-0/authorization-code>: a code lives
//! for 30 seconds, an access token for two hours, and a refresh token for one use.

use super::{Account, Answer, Call, Record, Turn, account};
use crate::{Grant, sandbox::page};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The sandbox's confidential app.
pub(super) const CLIENT_ID: &str = "fanfare-sandbox";
/// Its secret.
pub(super) const CLIENT_SECRET: &str = "fanfare-sandbox-secret";
/// The sandbox's public app, which has no secret.
pub(super) const PUBLIC_CLIENT_ID: &str = "fanfare-sandbox-public";

const CODE_SECONDS: i64 = 30;
const ACCESS_SECONDS: i64 = 7_200;
const REFRESH_DAYS: i64 = 180;

/// What a connected account granted.
const SCOPES: &str = "tweet.read tweet.write users.read media.write offline.access";

/// A code on its way through a browser.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    user: String,
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    challenge: String,
    method: String,
    expires_at: DateTime<Utc>,
}

impl Record for Code {
    const SHELF: &'static str = "x.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user allowed an app; its refresh token is the latest one only.
#[derive(Clone, Serialize, Deserialize)]
struct Allowed {
    id: String,
    user: String,
    client: String,
    scopes: Vec<String>,
    refresh: Option<String>,
    refresh_expires_at: DateTime<Utc>,
}

impl Record for Allowed {
    const SHELF: &'static str = "x.grant";

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
    const SHELF: &'static str = "x.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

/// The access token, dead or alive.
pub(super) fn find(turn: &Turn<'_>, token: &str) -> Option<Token> {
    turn.shelf.get(token)
}

/// Whose grant a call to the token endpoints is about.
pub(super) fn owner(turn: &Turn<'_>, call: &Call) -> Option<String> {
    let path = call.path.as_str();
    if !path.ends_with("/oauth2/token") && !path.ends_with("/oauth2/revoke") {
        return None;
    }
    if let Some(code) = call.field("code") {
        return turn.shelf.get::<Code>(code).map(|code| code.user);
    }
    let token = call.field("refresh_token").or_else(|| call.field("token"))?;
    find(turn, token).map(|token| token.user).or_else(|| named(turn, token).map(|grant| grant.user))
}

/// `GET /i/oauth2/authorize`: asks the account's owner.
pub(super) fn ask(call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.query)?;
    let client =
        if wish.client == CLIENT_ID { "Fanfare's sandbox app" } else { "Fanfare's public sandbox app" };
    let scopes = wish.scopes.iter().map(String::as_str).collect();
    Ok(Answer::page(200, page::consent(client, scopes, "sandbox", &call.query)))
}

/// `POST /i/oauth2/authorize`: the owner's decision, sent by the page's form.
pub(super) fn consent(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let wish = Wish::read(&call.fields)?;
    if call.field("decision") != Some("allow") {
        return Ok(wish.back(&[("error", "access_denied"), ("state", &wish.state)]));
    }
    let username = call.field("username").unwrap_or_default().trim().trim_start_matches('@');
    let account = account::open(turn, &super::X, username)
        .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
    let code = random();
    turn.shelf.put(&Code {
        code: code.clone(),
        user: account.id,
        client: wish.client.clone(),
        redirect_uri: wish.redirect_uri.clone(),
        scopes: wish.scopes.clone(),
        challenge: wish.challenge.clone(),
        method: wish.method.clone(),
        expires_at: turn.now + TimeDelta::seconds(CODE_SECONDS),
    });
    Ok(wish.back(&[("state", &wish.state), ("code", &code)]))
}

/// What an app asks an account's owner for.
struct Wish {
    client: String,
    redirect_uri: String,
    scopes: Vec<String>,
    state: String,
    challenge: String,
    method: String,
}

impl Wish {
    fn read(fields: &[(String, String)]) -> Result<Self, Answer> {
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| Err(Answer::page(400, page::notice("Something went wrong", what)));
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
        // In whatever case: twitter-api-v2 writes `s256`, so X presumably does not mind.
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

    fn back(&self, pairs: &[(&str, &str)]) -> Answer {
        let mut url = url::Url::parse(&self.redirect_uri).expect("checked when it was read");
        url.query_pairs_mut().extend_pairs(pairs);
        Answer::redirect(url.as_str())
    }
}

/// `POST /2/oauth2/token`.
pub(super) fn token(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    let client = client(call)?;
    let missing = |name: &str| refusal(&format!("Missing required parameter [{name}]."));
    match call.field("grant_type") {
        Some("authorization_code") => {
            let presented = call.field("code").ok_or_else(|| missing("code"))?;
            let redirect_uri = call.field("redirect_uri").ok_or_else(|| missing("redirect_uri"))?;
            let verifier = call.field("code_verifier").ok_or_else(|| missing("code_verifier"))?;
            let invalid = || refusal("Value passed for the authorization code was invalid.");
            let code: Code = turn.shelf.get(presented).ok_or_else(invalid)?;
            // Good for one use, whatever comes of it.
            turn.shelf.remove::<Code>(presented);
            if code.expires_at <= turn.now || code.client != client || code.redirect_uri != redirect_uri {
                return Err(invalid());
            }
            let derived = match code.method.eq_ignore_ascii_case("plain") {
                true => verifier.to_owned(),
                false => BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
            };
            if derived != code.challenge {
                return Err(refusal("Value passed for code verifier did not match code challenge."));
            }
            let allowed = Allowed {
                id: random(),
                user: code.user,
                client,
                scopes: code.scopes,
                refresh: None,
                refresh_expires_at: turn.now,
            };
            Ok(Answer::json(200, &issue(turn, allowed).body))
        }
        Some("refresh_token") => {
            let presented = call.field("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let allowed = named(turn, presented)
                .filter(|grant| grant.refresh.as_deref() == Some(presented))
                .filter(|grant| grant.refresh_expires_at > turn.now && grant.client == client)
                .ok_or_else(|| refusal("Value passed for the token was invalid."))?;
            Ok(Answer::json(200, &issue(turn, allowed).body))
        }
        Some(_) => Err(Answer::json(
            400,
            &json!({
                "error": "unsupported_grant_type",
                "error_description": "Value passed for the grant type was invalid.",
            }),
        )),
        None => Err(missing("grant_type")),
    }
}

/// `POST /2/oauth2/revoke`.
pub(super) fn revoke(turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
    client(call)?;
    let token = call.field("token").ok_or_else(|| refusal("Missing required parameter [token]."))?;
    let grant = match find(turn, token) {
        Some(token) => Some(token.grant),
        None => named(turn, token).map(|grant| grant.id),
    };
    if let Some(grant) = grant {
        kill(turn, |allowed| allowed.id == grant);
    }
    Ok(Answer::json(200, &json!({ "revoked": true })))
}

/// A fresh grant, as if the owner had consented.
pub(super) fn grant(turn: &mut Turn<'_>, account: &Account) -> Grant {
    let scopes: Vec<String> = SCOPES.split(' ').map(str::to_owned).collect();
    let issued = issue(
        turn,
        Allowed {
            id: random(),
            user: account.id.clone(),
            client: CLIENT_ID.into(),
            scopes: scopes.clone(),
            refresh: None,
            refresh_expires_at: turn.now,
        },
    );
    Grant {
        access_token: issued.access,
        refresh_token: issued.refresh,
        expires_at: Some(turn.now + TimeDelta::seconds(ACCESS_SECONDS)),
        scopes,
        extra: Value::Null,
    }
}

/// Lets the access tokens of an account run out.
pub(super) fn expire(turn: &mut Turn<'_>, account: &Account) {
    let tokens: Vec<Token> = turn.shelf.under("").filter(|token: &Token| token.user == account.id).collect();
    for token in tokens {
        turn.shelf.put(&Token { expires_at: turn.now, ..token });
    }
}

/// Ends all grants of an account.
pub(super) fn revoke_all(turn: &mut Turn<'_>, account: &Account) {
    kill(turn, |allowed| allowed.user == account.id);
}

fn kill(turn: &mut Turn<'_>, is_meant: impl Fn(&Allowed) -> bool) {
    let grants: Vec<Allowed> = turn.shelf.under("").filter(is_meant).collect();
    for grant in grants {
        let tokens: Vec<Token> =
            turn.shelf.under("").filter(|token: &Token| token.grant == grant.id).collect();
        for token in tokens {
            turn.shelf.put(&Token { expires_at: turn.now, ..token });
        }
        turn.shelf.put(&Allowed { refresh: None, ..grant });
    }
}

struct Issued {
    access: String,
    refresh: Option<String>,
    body: Value,
}

/// New tokens for a grant. The refresh token that was there dies at once.
fn issue(turn: &mut Turn<'_>, mut allowed: Allowed) -> Issued {
    let access = random();
    let refresh = allowed
        .scopes
        .iter()
        .any(|scope| scope == "offline.access")
        .then(|| BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{}", allowed.id, random())));
    turn.shelf.put(&Token {
        token: access.clone(),
        grant: allowed.id.clone(),
        user: allowed.user.clone(),
        scopes: allowed.scopes.clone(),
        expires_at: turn.now + TimeDelta::seconds(ACCESS_SECONDS),
    });
    allowed.refresh.clone_from(&refresh);
    allowed.refresh_expires_at = turn.now + TimeDelta::days(REFRESH_DAYS);
    turn.shelf.put(&allowed);
    let mut body = json!({
        "token_type": "bearer",
        "expires_in": ACCESS_SECONDS,
        "access_token": access,
        "scope": allowed.scopes.join(" "),
    });
    if let Some(refresh) = &refresh {
        body["refresh_token"] = json!(refresh);
    }
    Issued { access, refresh, body }
}

/// The grant that a refresh token was made for.
fn named(turn: &Turn<'_>, refresh: &str) -> Option<Allowed> {
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(refresh).ok()?).ok()?;
    turn.shelf.get(text.split_once(':')?.0)
}

/// Who calls: the confidential app by its header, the public one by a field.
fn client(call: &Call) -> Result<String, Answer> {
    let unauthorized =
        |text: &str| Answer::json(401, &json!({ "error": "unauthorized_client", "error_description": text }));
    match (call.basic(), call.field("client_id")) {
        (Some((id, secret)), _) if id == CLIENT_ID && secret == CLIENT_SECRET => Ok(id),
        (Some(_), _) => Err(unauthorized("Missing valid authorization header")),
        (None, Some(PUBLIC_CLIENT_ID)) => Ok(PUBLIC_CLIENT_ID.into()),
        (None, Some(CLIENT_ID)) => Err(unauthorized("Missing valid authorization header")),
        (None, _) => Err(refusal("Missing required parameter [client_id].")),
    }
}

fn refusal(description: &str) -> Answer {
    Answer::json(400, &json!({ "error": "invalid_request", "error_description": description }))
}

fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
