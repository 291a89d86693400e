//! Logins by OAuth 2.0 as most platforms serve them: a page that asks, codes, access and refresh tokens.
//!
//! What tells one platform's from another's is data; how a refusal reads is the platform's own affair.
//! RFC 6749 sections 4.1 and 6: <https://www.rfc-editor.org/rfc/rfc6749>

use super::{
    Turn,
    account::{self, Account},
    call::{Answer, Call},
    host::Host,
    page,
    shelf::Record,
};
use crate::Grant;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The secret of the sandbox's apps.
pub(crate) const SECRET: &str = "fanfare-sandbox-secret";

/// One platform's login.
pub(crate) struct Login {
    /// The platform.
    pub(crate) host: &'static dyn Host,
    /// The app's public identifier.
    pub(crate) client: &'static str,
    /// What can be asked for.
    pub(crate) scopes: &'static [&'static str],
    /// How long a code lives, in seconds.
    pub(crate) code_seconds: i64,
    /// What an access token begins with, and how long it lives.
    pub(crate) access: (&'static str, i64),
    /// What a refresh token begins with, and how long it lives; 0 for one without an end.
    pub(crate) refresh: (&'static str, i64),
    /// Whether a refresh brings another refresh token with a life of its own, and the old one ends.
    pub(crate) rotates: bool,
    /// Whether a login of these parameters brings a refresh token.
    pub(crate) lasts: fn(&[(String, String)]) -> bool,
    /// The word for an owner who says no.
    pub(crate) denied: &'static str,
    /// What stands behind the parameters that a browser brings back.
    pub(crate) fragment: &'static str,
}

/// Why a token request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The code is none, is used up, too old, or another app's or address's.
    Code,
    /// The refresh token is none, was taken back, has run out, or was replaced.
    Refresh,
    /// There is no such way to get a token.
    Kind,
}

/// Tokens that were given.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// The access token.
    pub(crate) access: String,
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
    user: String,
    redirect_uri: String,
    scopes: Vec<String>,
    lasts: bool,
    expires_at: DateTime<Utc>,
}

impl Record for Code {
    const SHELF: &'static str = "login.code";

    fn key(&self) -> String {
        self.code.clone()
    }
}

/// What a user allowed the app; its refresh token is the latest one only.
#[derive(Clone, Serialize, Deserialize)]
struct Allowed {
    id: String,
    platform: String,
    user: String,
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
    let code = || Some(turn.shelf.get::<Code>(call.field("code")?)?.user);
    let token = || {
        let text = call.field("refresh_token").or_else(|| call.field("token"))?;
        find(turn, platform, text).map(|token| token.user).or_else(|| Some(named(turn, platform, text)?.user))
    };
    let user = carried.or_else(code).or_else(token)?;
    account::numbered(turn.shelf, platform, &user).map(|account| account.username)
}

impl Login {
    /// Where the account's owner is asked (GET), and where the page sends the decision (POST).
    pub(crate) fn dialog(&self, turn: &mut Turn<'_>, call: &Call) -> Answer {
        self.decide(turn, call).unwrap_or_else(|refusal| refusal)
    }

    fn decide(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Answer, Answer> {
        let is_decision = call.method == poem::http::Method::POST;
        let fields = if is_decision { &call.fields } else { &call.query };
        let field = |name: &str| {
            fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let refuse = |what: &str| Err(Answer::page(400, page::notice("Something went wrong", what)));
        if field("response_type") != "code" {
            return refuse("response_type has to be `code`.");
        }
        if field("client_id") != self.client {
            return refuse("No app has this client_id.");
        }
        let back = url::Url::parse(field("redirect_uri")).ok().filter(url::Url::has_host);
        let Some(mut back) = back else { return refuse("redirect_uri has to be an absolute address.") };
        let scopes: Vec<String> =
            field("scope").split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if let Some(unknown) = scopes.iter().find(|scope| !self.scopes.contains(&scope.as_str())) {
            return refuse(&format!("There is no scope `{unknown}`."));
        }
        if scopes.is_empty() {
            return refuse("scope is missing.");
        }
        if !is_decision {
            let scopes = scopes.iter().map(String::as_str).collect();
            return Ok(Answer::page(200, page::consent("Fanfare's sandbox app", scopes, "sandbox", fields)));
        }
        if field("decision") == "allow" {
            let username = field("username").trim().trim_start_matches('@');
            let account = account::open(turn, self.host, username)
                .map_err(|error| Answer::page(400, page::notice("No such account", &error)))?;
            let code = Code {
                code: random(),
                platform: self.host.id().into(),
                user: account.id,
                redirect_uri: field("redirect_uri").into(),
                scopes,
                lasts: (self.lasts)(fields),
                expires_at: turn.now + TimeDelta::seconds(self.code_seconds),
            };
            turn.shelf.put(&code);
            back.query_pairs_mut().append_pair("code", &code.code);
        } else {
            back.query_pairs_mut()
                .append_pair("error", self.denied)
                .append_pair("error_description", "The user denied the request");
        }
        if !field("state").is_empty() {
            back.query_pairs_mut().append_pair("state", field("state"));
        }
        Ok(Answer::redirect(&format!("{back}{}", self.fragment)))
    }

    /// Whether a call names the app and its secret in the header.
    pub(crate) fn is_signed(&self, call: &Call) -> bool {
        call.basic().is_some_and(|(id, secret)| id == self.client && secret == SECRET)
    }

    /// Tokens for a code or a refresh token.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub(crate) fn token(&self, turn: &mut Turn<'_>, call: &Call) -> Result<Issued, Refusal> {
        let platform = self.host.id();
        match call.field("grant_type") {
            Some("authorization_code") => {
                let presented = call.field("code").ok_or(Refusal::Code)?;
                let code: Code = turn.shelf.get(presented).ok_or(Refusal::Code)?;
                // Good for one use, whatever comes of it.
                turn.shelf.remove::<Code>(presented);
                let is_theirs = code.platform == platform
                    && call.field("redirect_uri") == Some(code.redirect_uri.as_str());
                if !is_theirs || code.expires_at <= turn.now {
                    return Err(Refusal::Code);
                }
                Ok(self.allow(turn, &code.user, code.scopes, code.lasts))
            }
            Some("refresh_token") => {
                let presented = call.field("refresh_token").ok_or(Refusal::Refresh)?;
                let allowed = named(turn, platform, presented)
                    .filter(|allowed| allowed.refresh.as_deref() == Some(presented))
                    .filter(|allowed| allowed.refresh_expires_at.is_none_or(|at| at > turn.now))
                    .ok_or(Refusal::Refresh)?;
                Ok(self.issue(turn, allowed))
            }
            _ => Err(Refusal::Kind),
        }
    }

    /// A grant as after a login.
    pub(crate) fn grant(&self, turn: &mut Turn<'_>, account: &Account) -> Grant {
        let scopes = self.scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let issued = self.allow(turn, &account.id, scopes, true);
        Grant {
            access_token: issued.access,
            refresh_token: issued.refresh,
            expires_at: Some(turn.now + TimeDelta::seconds(self.access.1)),
            scopes: issued.scopes,
            extra: Value::Null,
        }
    }

    fn allow(&self, turn: &mut Turn<'_>, user: &str, scopes: Vec<String>, lasts: bool) -> Issued {
        let id = random();
        let allowed = Allowed {
            refresh: lasts.then(|| self.refresh_token(&id)),
            refresh_expires_at: self.refresh_end(turn.now),
            id,
            platform: self.host.id().into(),
            user: user.into(),
            scopes,
        };
        self.give(turn, &allowed)
    }

    /// New tokens for a grant that is there.
    fn issue(&self, turn: &mut Turn<'_>, mut allowed: Allowed) -> Issued {
        if self.rotates {
            allowed.refresh = Some(self.refresh_token(&allowed.id));
            allowed.refresh_expires_at = self.refresh_end(turn.now);
        }
        self.give(turn, &allowed)
    }

    fn give(&self, turn: &mut Turn<'_>, allowed: &Allowed) -> Issued {
        let token = Token {
            token: format!("{}{}", self.access.0, random()),
            grant: allowed.id.clone(),
            platform: allowed.platform.clone(),
            user: allowed.user.clone(),
            scopes: allowed.scopes.clone(),
            expires_at: turn.now + TimeDelta::seconds(self.access.1),
            is_revoked: false,
        };
        turn.shelf.put(&token);
        turn.shelf.put(allowed);
        Issued {
            access: token.token,
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

/// Lets the access tokens of an account run out.
pub(crate) fn expire(turn: &mut Turn<'_>, account: &Account) {
    let tokens: Vec<Token> = turn
        .shelf
        .under("")
        .filter(|token: &Token| token.platform == account.platform && token.user == account.id)
        .collect();
    for token in tokens {
        turn.shelf.put(&Token { expires_at: turn.now, ..token });
    }
}

/// Ends what a token stands for: itself, or the whole grant where it is a refresh token.
pub(crate) fn revoke(turn: &mut Turn<'_>, platform: &str, token: &str) {
    if let Some(token) = find(turn, platform, token) {
        turn.shelf.put(&Token { is_revoked: true, ..token });
    } else if let Some(grant) = named(turn, platform, token) {
        kill(turn, |allowed| allowed.id == grant.id);
    }
}

/// Ends all grants of an account.
pub(crate) fn revoke_all(turn: &mut Turn<'_>, account: &Account) {
    kill(turn, |allowed| allowed.platform == account.platform && allowed.user == account.id);
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
