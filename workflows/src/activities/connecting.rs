//! Connecting accounts.

use domain::{AccountId, Failure, LoginError, Owner, StateId, audit::Actor};
use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use connecting::{ExchangeCode, FinalizeLogin, SignIn};

/// The callback of an authorization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OAuthCallback {
    /// Authorization that was begun.
    pub authorization: StateId,
    /// Owner of the rows.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
    /// Code and verifier, sealed to the workers, in base64.
    pub sealed: String,
    /// Digest of the token for choosing accounts, should the login cover several.
    pub token_digest: String,
    /// Who came back with it, for the audit trail.
    pub by: Actor,
    /// Maximum number of accounts of the owner; `None` is unlimited.
    pub limit: Option<u64>,
}

/// Result of a callback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CallbackResult {
    /// An account is connected.
    Connected {
        /// Account id.
        account: AccountId,
    },
    /// The login covers several accounts: the user has to choose.
    Choice,
    /// Nothing is connected.
    Refused {
        /// Error code.
        error: LoginError,
        /// Human-readable reason.
        detail: String,
    },
}

/// A login with an app password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PasswordLogin {
    /// Owner of the account.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
    /// Password, identifier and server, sealed to the workers, in base64.
    pub sealed: String,
    /// End tenant of the account.
    pub tenant_id: Option<String>,
    /// True if the caller is limited to a part of the organization's data.
    pub is_limited: bool,
    /// Who logs in, for the audit trail.
    pub by: Actor,
    /// Maximum number of accounts of the owner; `None` is unlimited.
    pub limit: Option<u64>,
}

/// Result of a login with an app password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LoginResult {
    /// The account is connected.
    Connected(ConnectedAccount),
    /// The platform refused.
    Refused(Failure),
    /// The account belongs to another end tenant.
    OtherTenant,
    /// The owner's plan has no room for another account.
    Full(AccountQuota),
}

/// An exhausted quota of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountQuota {
    /// Maximum number of accounts.
    pub limit: u64,
    /// Current number of accounts.
    pub used: u64,
}

/// A connected account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedAccount {
    /// Account id.
    pub account: AccountId,
    /// True when the owner had never connected it before.
    pub is_new: bool,
}

/// The accounts chosen among those that a login covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginSelection {
    /// Digest of the token for choosing.
    pub token_digest: String,
    /// Owner of the accounts.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
    /// The platform's ids of the chosen accounts, without duplicates.
    pub ids: Vec<String>,
    /// Who chose them, for the audit trail.
    pub by: Actor,
    /// Maximum number of accounts of the owner; `None` is unlimited.
    pub limit: Option<u64>,
}

/// Result of a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SelectionResult {
    /// These accounts are connected, in the order of the choice.
    Connected {
        /// Account ids.
        accounts: Vec<AccountId>,
    },
    /// The same choice was made before.
    Repeated {
        /// Account ids.
        accounts: Vec<AccountId>,
    },
    /// Another choice was made before.
    Other,
    /// One of the accounts belongs to another end tenant.
    OtherTenant {
        /// The platform's id of it.
        id: String,
    },
    /// The owner's plan has no room for them.
    Full(AccountQuota),
    /// The login expired, or doesn't cover one of the accounts.
    Gone,
}

/// Activities that connect accounts.
pub struct Connecting;

#[activity_definitions]
impl Connecting {
    /// Exchanges an authorization code, once, and connects the account that it covers.
    #[activity(name = "exchange_code")]
    pub fn exchange_code(_callback: OAuthCallback) -> Result<CallbackResult, ActivityError> {
        unimplemented!()
    }

    /// Logs in with an app password, once, and connects the account.
    #[activity(name = "sign_in")]
    pub fn sign_in(_login: PasswordLogin) -> Result<LoginResult, ActivityError> {
        unimplemented!()
    }

    /// Connects the chosen accounts.
    #[activity(name = "finalize_login")]
    pub fn finalize_login(_selection: LoginSelection) -> Result<SelectionResult, ActivityError> {
        unimplemented!()
    }
}
