//! What logins leave behind: codes, grants, and their access and refresh tokens.
//!
//! What tells one platform's tokens from another's is data. A grant is kept by an id that its refresh
//! tokens carry, so that a token which was replaced is told from one that never was.
//! RFC 6749 sections 4.1.2, 5.1 and 6: <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Transaction,
    account::{self, Account},
    exchange::Request,
    simulator::{Grants, Simulator},
    store::Record,
};
use crate::{App, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The secret of the sandbox's apps.
pub(crate) const CLIENT_SECRET: &str = "fanfare-sandbox-secret";

/// How one platform's tokens are.
pub(crate) struct TokenPolicy {
    /// The platform.
    pub(crate) simulator: &'static dyn Simulator,
    /// The public identifier of the sandbox's app.
    pub(crate) client: &'static str,
    /// What an account that the sandbox connects by itself granted.
    pub(crate) granted: &'static [&'static str],
    /// How long a code lives, in seconds.
    pub(crate) code_seconds: i64,
    /// What an access token begins with, and how long it lives, in seconds.
    pub(crate) access: (&'static str, i64),
    /// What a refresh token begins with, and how long it lives, in seconds; 0 for one without an end.
    pub(crate) refresh: (&'static str, i64),
    /// What a refresh does to the refresh token.
    pub(crate) rotation: Rotation,
}

/// What becomes of a refresh token when it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// It stays.
    Never,
    /// Another takes its place, with a life of its own.
    Renewed,
    /// Another takes its place, and ends when the first would have.
    Inherited,
}

/// What an account's owner grant in a browser, until its code is redeemed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// Whose account it is.
    pub(crate) user: String,
    /// The app.
    pub(crate) client: String,
    /// Where the browser went back to.
    pub(crate) redirect_uri: String,
    /// What was granted.
    pub(crate) scopes: Vec<String>,
    /// Whether there will be a refresh token.
    pub(crate) has_refresh_token: bool,
    /// The challenge of RFC 7636 and how it was derived, where there was one.
    pub(crate) challenge: Option<(String, String)>,
}

/// Tokens that were given.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// Whose they are.
    pub(crate) user: String,
    /// The access token.
    pub(crate) access: String,
    /// How long it lives, in seconds.
    pub(crate) access_seconds: i64,
    /// The refresh token, where there is one.
    pub(crate) refresh: Option<String>,
    /// How long the refresh token lives from now, in seconds.
    pub(crate) refresh_seconds: i64,
    /// What was granted.
    pub(crate) scopes: Vec<String>,
}

/// A code on its way through a browser.
#[derive(Clone, Serialize, Deserialize)]
struct Code {
    code: String,
    platform: String,
    consent: Consent,
    expires_at: DateTime<Utc>,
}

impl Record for Code {
    const TABLE: &'static str = "login.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user grant an app; its refresh token is the latest one only.
#[derive(Clone, Serialize, Deserialize)]
struct AppGrant {
    id: String,
    platform: String,
    user: String,
    client: String,
    scopes: Vec<String>,
    refresh: Option<String>,
    refresh_expires_at: Option<DateTime<Utc>>,
}

impl Record for AppGrant {
    const TABLE: &'static str = "login.grant";

    fn key(&self) -> String {
        self.id.clone()
    }
}

/// An access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    token: String,
    grant: String,
    platform: String,
    /// Whose it is.
    pub(crate) user: String,
    /// What it may do.
    pub(crate) scopes: Vec<String>,
    /// When it dies.
    pub(crate) expires_at: DateTime<Utc>,
    /// Whether it was taken back.
    pub(crate) is_revoked: bool,
}

impl Record for Token {
    const TABLE: &'static str = "login.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

impl Token {
    /// Whether it opens anything now.
    pub(crate) fn is_valid(&self, now: DateTime<Utc>) -> bool {
        !self.is_revoked && self.expires_at > now
    }

    /// The first of these scopes that it lacks.
    pub(crate) fn missing_scope<'a>(&self, scopes: &[&'a str]) -> Option<&'a str> {
        scopes.iter().copied().find(|scope| !self.scopes.iter().any(|granted| granted == scope))
    }
}

/// The platform's access token of this text, dead or alive.
pub(crate) fn find(tx: &Transaction, platform: &str, token: &str) -> Option<Token> {
    tx.store.get(token).filter(|token: &Token| token.platform == platform)
}

/// Whose request it is: by its token, or by what it brings to a token endpoint.
pub(crate) fn owner(tx: &Transaction, platform: &str, request: &Request) -> Option<String> {
    let carried = request.bearer().and_then(|token| find(tx, platform, token)).map(|token| token.user);
    let code = || Some(tx.store.get::<Code>(request.field("code")?)?.consent.user);
    let token = || {
        let text = request.field("refresh_token").or_else(|| request.field("token"))?;
        find(tx, platform, text).map(|token| token.user).or_else(|| Some(grant_of(tx, platform, text)?.user))
    };
    let user = carried.or_else(code).or_else(token)?;
    account::by_id(tx.store, platform, &user).map(|account| account.username)
}

impl TokenPolicy {
    /// A code for what was grant.
    pub(crate) fn code(&self, tx: &mut Transaction, consent: Consent) -> String {
        let code = random();
        tx.store.put(&Code {
            code: code.clone(),
            platform: self.simulator.id().into(),
            consent,
            expires_at: tx.now + TimeDelta::seconds(self.code_seconds),
        });
        code
    }

    /// What a code stands for. It is good for one use, whatever comes of it.
    pub(crate) fn redeem(&self, tx: &mut Transaction, code: &str) -> Option<Consent> {
        let found: Code = tx.store.get(code)?;
        tx.store.remove::<Code>(code);
        (found.platform == self.simulator.id() && found.expires_at > tx.now).then_some(found.consent)
    }

    /// The first tokens for what was grant.
    pub(crate) fn issue(&self, tx: &mut Transaction, consent: Consent) -> Issued {
        let id = random();
        let grant = AppGrant {
            refresh: consent.has_refresh_token.then(|| self.refresh_token(&id)),
            refresh_expires_at: self.refresh_expiry(tx.now),
            id,
            platform: self.simulator.id().into(),
            user: consent.user,
            client: consent.client,
            scopes: consent.scopes,
        };
        self.issue_tokens(tx, &grant)
    }

    /// New tokens for the latest refresh token of an app's grant, if it lives.
    pub(crate) fn refresh(&self, tx: &mut Transaction, refresh: &str, client: &str) -> Option<Issued> {
        let mut grant = grant_of(tx, self.simulator.id(), refresh)
            .filter(|grant| grant.refresh.as_deref() == Some(refresh) && grant.client == client)
            .filter(|grant| grant.refresh_expires_at.is_none_or(|at| at > tx.now))?;
        if tx.settings.empty_refresh {
            return Some(Issued { refresh: Some(String::new()), ..self.issue_tokens(tx, &grant) });
        }
        if self.rotation != Rotation::Never {
            grant.refresh = Some(self.refresh_token(&grant.id));
        }
        if self.rotation == Rotation::Renewed {
            grant.refresh_expires_at = self.refresh_expiry(tx.now);
        }
        Some(self.issue_tokens(tx, &grant))
    }

    fn issue_tokens(&self, tx: &mut Transaction, grant: &AppGrant) -> Issued {
        let token = Token {
            token: format!("{}{}", self.access.0, random()),
            grant: grant.id.clone(),
            platform: grant.platform.clone(),
            user: grant.user.clone(),
            scopes: grant.scopes.clone(),
            expires_at: tx.now + tx.settings.token_life(self.access.1),
            is_revoked: false,
        };
        tx.store.put(&token);
        tx.store.put(grant);
        Issued {
            user: token.user,
            access: token.token,
            access_seconds: tx.settings.token_seconds(self.access.1),
            refresh: grant.refresh.clone(),
            refresh_seconds: grant.refresh_expires_at.map_or(0, |at| (at - tx.now).num_seconds()),
            scopes: grant.scopes.clone(),
        }
    }

    fn refresh_token(&self, grant: &str) -> String {
        let tail = BASE64_URL_SAFE_NO_PAD.encode(format!("{grant}:{}", random()));
        format!("{}{tail}", self.refresh.0)
    }

    fn refresh_expiry(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        (self.refresh.1 > 0).then(|| now + TimeDelta::seconds(self.refresh.1))
    }
}

impl Grants for TokenPolicy {
    fn app(&self) -> Option<App> {
        Some(App { client_id: self.client.into(), client_secret: Some(CLIENT_SECRET.into()) })
    }

    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        let issued = self.issue(
            tx,
            Consent {
                user: account.id.clone(),
                client: self.client.into(),
                redirect_uri: String::new(),
                scopes: self.granted.iter().map(|scope| (*scope).to_owned()).collect(),
                has_refresh_token: true,
                challenge: None,
            },
        );
        Grant {
            access_token: issued.access,
            refresh_token: issued.refresh,
            expires_at: Some(tx.now + tx.settings.token_life(self.access.1)),
            scopes: issued.scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        let tokens: Vec<Token> = tx
            .store
            .with_prefix("")
            .filter(|token: &Token| token.platform == account.platform && token.user == account.id)
            .collect();
        for token in tokens {
            tx.store.put(&Token { expires_at: tx.now, ..token });
        }
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        revoke_grants(tx, |grant| grant.platform == account.platform && grant.user == account.id);
    }
}

/// Ends an access token alone, or the whole grant where it is a refresh token.
pub(crate) fn revoke(tx: &mut Transaction, platform: &str, token: &str) {
    match find(tx, platform, token) {
        Some(token) => tx.store.put(&Token { is_revoked: true, ..token }),
        None => revoke_grant(tx, platform, token),
    }
}

/// Ends the grant that a token of either kind belongs to.
pub(crate) fn revoke_grant(tx: &mut Transaction, platform: &str, token: &str) {
    let grant = find(tx, platform, token).map(|token| token.grant);
    let grant = grant.or_else(|| Some(grant_of(tx, platform, token)?.id));
    if let Some(grant) = grant {
        revoke_grants(tx, |other| other.id == grant);
    }
}

fn revoke_grants(tx: &mut Transaction, is_meant: impl Fn(&AppGrant) -> bool) {
    let grants: Vec<AppGrant> = tx.store.with_prefix("").filter(is_meant).collect();
    for grant in grants {
        let tokens: Vec<Token> =
            tx.store.with_prefix("").filter(|token: &Token| token.grant == grant.id).collect();
        for token in tokens {
            tx.store.put(&Token { is_revoked: true, ..token });
        }
        tx.store.put(&AppGrant { refresh: None, ..grant });
    }
}

/// The grant that a refresh token was made for.
fn grant_of(tx: &Transaction, platform: &str, refresh: &str) -> Option<AppGrant> {
    let tail = refresh.rsplit('.').next()?;
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(tail).ok()?).ok()?;
    tx.store.get(text.split_once(':')?.0).filter(|grant: &AppGrant| grant.platform == platform)
}

/// A text that nobody guesses.
pub(crate) fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
