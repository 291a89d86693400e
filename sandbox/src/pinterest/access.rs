//! Access tiers, and the two realms that the API has: production and the API sandbox.
//! <https://developers.pinterest.com/docs/key-concepts/access-tiers/>
//!
//! A token is of the realm whose token endpoint issued it, and the other refuses it.

use super::{Account, Pinterest, Request, Transaction, error};
use crate::exchange::Cause::State;
use crate::{
    App, Grant,
    exchange::Response,
    login::Login,
    simulator::Grants,
    tokens::{Rotation, TokenPolicy},
};
use serde::{Deserialize, Serialize};

const SCOPES: &[&str] = &["user_accounts:read", "boards:read", "boards:write", "pins:read", "pins:write"];

/// Beginning of an access token of the API sandbox.
const SANDBOX_TOKEN: &str = "pina_sandbox_";

/// Tokens, boards and pins that know nothing of the other realm's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Realm {
    /// `api.pinterest.com`.
    #[default]
    Production,
    /// `api-sandbox.pinterest.com`.
    Sandbox,
}

impl Realm {
    /// Returns the realm of a request.
    pub(super) fn of(request: &Request) -> Self {
        if request.host == "api-sandbox.pinterest.com" { Self::Sandbox } else { Self::Production }
    }

    /// Returns the login with the tokens of this realm.
    pub(super) fn login(self) -> Login {
        let (access, refresh) = match self {
            Self::Production => ("pina_", "pinr."),
            Self::Sandbox => (SANDBOX_TOKEN, "pinr.sandbox."),
        };
        Login {
            tokens: TokenPolicy {
                simulator: &Pinterest,
                client: "1480001",
                granted: SCOPES,
                code_seconds: 600,
                access: (access, 2_592_000),
                refresh: (refresh, 5_184_000),
                rotation: Rotation::Renewed,
            },
            scopes: SCOPES,
            has_refresh_token: |_| true,
            denied_error: "access_denied",
            fragment: "",
        }
    }

    /// Returns whether an access token is of this realm.
    pub(super) fn has_issued(self, token: &str) -> bool {
        token.starts_with(SANDBOX_TOKEN) == (self == Self::Sandbox)
    }

    /// Checks that an app may create a pin here.
    pub(super) fn check_pins(self, tx: &Transaction) -> Result<(), Response> {
        if self == Self::Sandbox || tx.settings.is_approved() {
            return Ok(());
        }
        Err(error(
            State,
            403,
            29,
            "Apps with Trial access may not create Pins in production https://api.pinterest.com - use API Sandbox https://api-sandbox.pinterest.com instead.",
        ))
    }
}

/// The grants of the sandbox's app, each of the realm in which the app may create pins.
pub(super) struct Granting;

impl Grants for Granting {
    fn app(&self) -> Option<App> {
        Realm::Production.login().tokens.app()
    }

    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant {
        let realm = if tx.settings.is_approved() { Realm::Production } else { Realm::Sandbox };
        realm.login().tokens.grant(tx, account)
    }

    fn expire(&self, tx: &mut Transaction, account: &mut Account) {
        Realm::Production.login().tokens.expire(tx, account);
    }

    fn revoke(&self, tx: &mut Transaction, account: &mut Account) {
        Realm::Production.login().tokens.revoke(tx, account);
    }
}
