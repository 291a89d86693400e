//! Results of logins: codes, grants, and their access and refresh tokens.
//!
//! The differences between platforms are data. A grant has an id that its refresh tokens contain, so that a
//! replaced token can be told from an unknown one. RFC 6749 sections 4.1.2, 5.1 and 6:
//! <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Transaction,
    account::{self, Account},
    exchange::Request,
    simulator::{Grants, Simulator},
    store::Record,
};
use crate::{App, AppAccess, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Secret of the sandbox's apps.
pub(crate) const CLIENT_SECRET: &str = "fanfare-sandbox-secret";

/// Token formats and lifetimes of a platform.
pub(crate) struct TokenPolicy {
    pub(crate) simulator: &'static dyn Simulator,
    /// Client id of the sandbox's app.
    pub(crate) client: &'static str,
    /// Scopes of the grants that the sandbox creates by itself.
    pub(crate) granted: &'static [&'static str],
    /// Lifetime of a code, in seconds.
    pub(crate) code_seconds: i64,
    /// Prefix and lifetime, in seconds, of an access token.
    pub(crate) access: (&'static str, i64),
    /// Prefix and lifetime, in seconds, of a refresh token; 0 for one that does not expire.
    pub(crate) refresh: (&'static str, i64),
    /// Effect of a refresh on the refresh token.
    pub(crate) rotation: Rotation,
}

/// Effect of a refresh on the refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// It stays the same.
    Never,
    /// It is replaced by one with a full lifetime.
    Renewed,
    /// It is replaced by one that keeps the first one's expiry.
    Inherited,
}

/// Consent given in a browser, until its code is redeemed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// Id of the account.
    pub(crate) user: String,
    pub(crate) client: String,
    /// Redirect address.
    pub(crate) redirect_uri: String,
    /// Granted scopes.
    pub(crate) scopes: Vec<String>,
    /// True when a refresh token will be issued.
    pub(crate) has_refresh_token: bool,
    /// PKCE challenge and method (RFC 7636), if any.
    pub(crate) challenge: Option<(String, String)>,
}

/// Issued tokens.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// Id of the account.
    pub(crate) user: String,
    pub(crate) access: String,
    /// Lifetime of the access token, in seconds.
    pub(crate) access_seconds: i64,
    /// Refresh token, if one was issued.
    pub(crate) refresh: Option<String>,
    /// Remaining lifetime of the refresh token, in seconds.
    pub(crate) refresh_seconds: i64,
    /// Granted scopes.
    pub(crate) scopes: Vec<String>,
}

/// An authorization code that was not redeemed yet.
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

/// A user's grant to an app, with its latest refresh token.
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

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Token {
    token: String,
    grant: String,
    platform: String,
    /// Id of the owner.
    pub(crate) user: String,
    /// Granted scopes.
    pub(crate) scopes: Vec<String>,
    /// Expiry.
    pub(crate) expires_at: DateTime<Utc>,
    /// True once revoked.
    pub(crate) is_revoked: bool,
}

impl Record for Token {
    const TABLE: &'static str = "login.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

impl Token {
    /// Returns whether it is neither revoked nor expired.
    pub(crate) fn is_valid(&self, now: DateTime<Utc>) -> bool {
        !self.is_revoked && self.expires_at > now
    }

    /// Returns the first of these scopes that it lacks.
    pub(crate) fn missing_scope<'a>(&self, scopes: &[&'a str]) -> Option<&'a str> {
        scopes.iter().copied().find(|scope| !self.scopes.iter().any(|granted| granted == scope))
    }
}

/// Returns an access token of the platform, valid or not.
pub(crate) fn find(tx: &Transaction, platform: &str, token: &str) -> Option<Token> {
    tx.store.get(token).filter(|token: &Token| token.platform == platform)
}

/// Returns the client id of the app that an access token was issued to.
pub(crate) fn client(tx: &Transaction, token: &Token) -> Option<String> {
    Some(tx.store.get::<AppGrant>(&token.grant)?.client)
}

/// Returns the username behind a request, by its token or by what it exchanges.
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
    /// Creates a code for a consent.
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

    /// Redeems a code, which is used up even when the exchange fails.
    pub(crate) fn redeem(&self, tx: &mut Transaction, code: &str) -> Option<Consent> {
        let found: Code = tx.store.get(code)?;
        tx.store.remove::<Code>(code);
        (found.platform == self.simulator.id() && found.expires_at > tx.now).then_some(found.consent)
    }

    /// Issues the first tokens of a consent.
    pub(crate) fn issue(&self, tx: &mut Transaction, consent: Consent) -> Issued {
        let id = random();
        let grant = AppGrant {
            refresh: consent.has_refresh_token.then(|| self.refresh_token(&id)),
            refresh_expires_at: self.refresh_expiry(tx),
            id,
            platform: self.simulator.id().into(),
            user: consent.user,
            client: consent.client,
            scopes: consent.scopes,
        };
        self.issue_tokens(tx, &grant)
    }

    /// Issues new tokens for the latest refresh token of an app's grant, if it is valid.
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
            grant.refresh_expires_at = self.refresh_expiry(tx);
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

    fn refresh_expiry(&self, tx: &Transaction) -> Option<DateTime<Utc>> {
        let seconds = tx.settings.refresh_seconds.map_or(self.refresh.1, i64::from);
        (seconds > 0).then(|| tx.now + TimeDelta::seconds(seconds))
    }
}

impl Grants for TokenPolicy {
    fn app(&self) -> Option<App> {
        Some(App {
            client_id: self.client.into(),
            client_secret: Some(CLIENT_SECRET.into()),
            access: AppAccess::Full,
        })
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
            ends_at: (issued.refresh_seconds > 0)
                .then(|| tx.now + TimeDelta::seconds(issued.refresh_seconds)),
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

/// Revokes an access token, or the whole grant of a refresh token.
pub(crate) fn revoke(tx: &mut Transaction, platform: &str, token: &str) {
    match find(tx, platform, token) {
        Some(token) => tx.store.put(&Token { is_revoked: true, ..token }),
        None => revoke_grant(tx, platform, token),
    }
}

/// Revokes the grant that a token of either kind belongs to.
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

/// Returns the grant of a refresh token.
fn grant_of(tx: &Transaction, platform: &str, refresh: &str) -> Option<AppGrant> {
    let tail = refresh.rsplit('.').next()?;
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(tail).ok()?).ok()?;
    tx.store.get(text.split_once(':')?.0).filter(|grant: &AppGrant| grant.platform == platform)
}

/// Returns a random text.
pub(crate) fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
