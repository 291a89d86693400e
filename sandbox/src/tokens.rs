//! What logins leave behind: codes, grants, and their access and refresh tokens.
//!
//! What tells one platform's tokens from another's is data. A grant is kept by an id that its refresh
//! tokens carry, so that a token which was replaced is told from one that never was.
//! RFC 6749 sections 4.1.2, 5.1 and 6: <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Turn,
    account::{self, Account},
    call::Call,
    host::{Grants, Host},
    shelf::Record,
};
use crate::{App, Grant};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The secret of the sandbox's apps.
pub(crate) const SECRET: &str = "fanfare-sandbox-secret";

/// How one platform's tokens are.
pub(crate) struct Terms {
    /// The platform.
    pub(crate) host: &'static dyn Host,
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

/// What an account's owner allowed in a browser, until its code is redeemed.
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
    pub(crate) lasts: bool,
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
    const SHELF: &'static str = "login.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user allowed an app; its refresh token is the latest one only.
#[derive(Clone, Serialize, Deserialize)]
struct Allowed {
    id: String,
    platform: String,
    user: String,
    client: String,
    scopes: Vec<String>,
    refresh: Option<String>,
    refresh_expires_at: Option<DateTime<Utc>>,
}

impl Record for Allowed {
    const SHELF: &'static str = "login.grant";

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
    const SHELF: &'static str = "login.token";

    fn key(&self) -> String {
        self.token.clone()
    }
}

impl Token {
    /// Whether it opens anything now.
    pub(crate) fn lives(&self, now: DateTime<Utc>) -> bool {
        !self.is_revoked && self.expires_at > now
    }

    /// The first of these scopes that it lacks.
    pub(crate) fn lacks<'a>(&self, scopes: &[&'a str]) -> Option<&'a str> {
        scopes.iter().copied().find(|scope| !self.scopes.iter().any(|granted| granted == scope))
    }
}

/// The platform's access token of this text, dead or alive.
pub(crate) fn find(turn: &Turn<'_>, platform: &str, token: &str) -> Option<Token> {
    turn.shelf.get(token).filter(|token: &Token| token.platform == platform)
}

/// Whose request it is: by its token, or by what it brings to a token endpoint.
pub(crate) fn owner(turn: &Turn<'_>, platform: &str, call: &Call) -> Option<String> {
    let carried = call.bearer().and_then(|token| find(turn, platform, token)).map(|token| token.user);
    let code = || Some(turn.shelf.get::<Code>(call.field("code")?)?.consent.user);
    let token = || {
        let text = call.field("refresh_token").or_else(|| call.field("token"))?;
        find(turn, platform, text).map(|token| token.user).or_else(|| Some(named(turn, platform, text)?.user))
    };
    let user = carried.or_else(code).or_else(token)?;
    account::numbered(turn.shelf, platform, &user).map(|account| account.username)
}

impl Terms {
    /// A code for what was allowed.
    pub(crate) fn code(&self, turn: &mut Turn<'_>, consent: Consent) -> String {
        let code = random();
        turn.shelf.put(&Code {
            code: code.clone(),
            platform: self.host.id().into(),
            consent,
            expires_at: turn.now + TimeDelta::seconds(self.code_seconds),
        });
        code
    }

    /// What a code stands for. It is good for one use, whatever comes of it.
    pub(crate) fn redeem(&self, turn: &mut Turn<'_>, code: &str) -> Option<Consent> {
        let found: Code = turn.shelf.get(code)?;
        turn.shelf.remove::<Code>(code);
        (found.platform == self.host.id() && found.expires_at > turn.now).then_some(found.consent)
    }

    /// The first tokens for what was allowed.
    pub(crate) fn allow(&self, turn: &mut Turn<'_>, consent: Consent) -> Issued {
        let id = random();
        let allowed = Allowed {
            refresh: consent.lasts.then(|| self.refresh_token(&id)),
            refresh_expires_at: self.refresh_end(turn.now),
            id,
            platform: self.host.id().into(),
            user: consent.user,
            client: consent.client,
            scopes: consent.scopes,
        };
        self.give(turn, &allowed)
    }

    /// New tokens for the latest refresh token of an app's grant, if it lives.
    pub(crate) fn renew(&self, turn: &mut Turn<'_>, refresh: &str, client: &str) -> Option<Issued> {
        let mut allowed = named(turn, self.host.id(), refresh)
            .filter(|allowed| allowed.refresh.as_deref() == Some(refresh) && allowed.client == client)
            .filter(|allowed| allowed.refresh_expires_at.is_none_or(|at| at > turn.now))?;
        if turn.settings.empty_refresh {
            return Some(Issued { refresh: Some(String::new()), ..self.give(turn, &allowed) });
        }
        if self.rotation != Rotation::Never {
            allowed.refresh = Some(self.refresh_token(&allowed.id));
        }
        if self.rotation == Rotation::Renewed {
            allowed.refresh_expires_at = self.refresh_end(turn.now);
        }
        Some(self.give(turn, &allowed))
    }

    fn give(&self, turn: &mut Turn<'_>, allowed: &Allowed) -> Issued {
        let token = Token {
            token: format!("{}{}", self.access.0, random()),
            grant: allowed.id.clone(),
            platform: allowed.platform.clone(),
            user: allowed.user.clone(),
            scopes: allowed.scopes.clone(),
            expires_at: turn.now + turn.settings.token_life(self.access.1),
            is_revoked: false,
        };
        turn.shelf.put(&token);
        turn.shelf.put(allowed);
        Issued {
            user: token.user,
            access: token.token,
            access_seconds: turn.settings.token_seconds(self.access.1),
            refresh: allowed.refresh.clone(),
            refresh_seconds: allowed.refresh_expires_at.map_or(0, |at| (at - turn.now).num_seconds()),
            scopes: allowed.scopes.clone(),
        }
    }

    fn refresh_token(&self, grant: &str) -> String {
        let tail = BASE64_URL_SAFE_NO_PAD.encode(format!("{grant}:{}", random()));
        format!("{}{tail}", self.refresh.0)
    }

    fn refresh_end(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        (self.refresh.1 > 0).then(|| now + TimeDelta::seconds(self.refresh.1))
    }
}

impl Grants for Terms {
    fn app(&self) -> Option<App> {
        Some(App { client_id: self.client.into(), client_secret: Some(SECRET.into()) })
    }

    fn grant(&self, turn: &mut Turn<'_>, account: &mut Account) -> Grant {
        let issued = self.allow(
            turn,
            Consent {
                user: account.id.clone(),
                client: self.client.into(),
                redirect_uri: String::new(),
                scopes: self.granted.iter().map(|scope| (*scope).to_owned()).collect(),
                lasts: true,
                challenge: None,
            },
        );
        Grant {
            access_token: issued.access,
            refresh_token: issued.refresh,
            expires_at: Some(turn.now + turn.settings.token_life(self.access.1)),
            scopes: issued.scopes,
            extra: Value::Null,
        }
    }

    fn expire(&self, turn: &mut Turn<'_>, account: &mut Account) {
        let tokens: Vec<Token> = turn
            .shelf
            .under("")
            .filter(|token: &Token| token.platform == account.platform && token.user == account.id)
            .collect();
        for token in tokens {
            turn.shelf.put(&Token { expires_at: turn.now, ..token });
        }
    }

    fn revoke(&self, turn: &mut Turn<'_>, account: &mut Account) {
        kill(turn, |allowed| allowed.platform == account.platform && allowed.user == account.id);
    }
}

/// Ends an access token alone, or the whole grant where it is a refresh token.
pub(crate) fn revoke(turn: &mut Turn<'_>, platform: &str, token: &str) {
    match find(turn, platform, token) {
        Some(token) => turn.shelf.put(&Token { is_revoked: true, ..token }),
        None => end(turn, platform, token),
    }
}

/// Ends the grant that a token of either kind belongs to.
pub(crate) fn end(turn: &mut Turn<'_>, platform: &str, token: &str) {
    let grant = find(turn, platform, token).map(|token| token.grant);
    let grant = grant.or_else(|| Some(named(turn, platform, token)?.id));
    if let Some(grant) = grant {
        kill(turn, |allowed| allowed.id == grant);
    }
}

fn kill(turn: &mut Turn<'_>, is_meant: impl Fn(&Allowed) -> bool) {
    let grants: Vec<Allowed> = turn.shelf.under("").filter(is_meant).collect();
    for grant in grants {
        let tokens: Vec<Token> =
            turn.shelf.under("").filter(|token: &Token| token.grant == grant.id).collect();
        for token in tokens {
            turn.shelf.put(&Token { is_revoked: true, ..token });
        }
        turn.shelf.put(&Allowed { refresh: None, ..grant });
    }
}

/// The grant that a refresh token was made for.
fn named(turn: &Turn<'_>, platform: &str, refresh: &str) -> Option<Allowed> {
    let tail = refresh.rsplit('.').next()?;
    let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(tail).ok()?).ok()?;
    turn.shelf.get(text.split_once(':')?.0).filter(|allowed: &Allowed| allowed.platform == platform)
}

/// A text that nobody guesses.
pub(crate) fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}
