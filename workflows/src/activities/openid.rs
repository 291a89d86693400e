//! Signing in people at the operator's OpenID provider.

use serde::{Deserialize, Serialize};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Markers of the declarations below.
pub use open_id::{BeginOpenId, FinishOpenId};

/// A login to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenIdLogin {
    /// Address to which the provider sends the browser back.
    pub redirect_uri: String,
    /// The `state` that comes back with the browser.
    pub state: String,
    /// Nonce that the identity token must contain.
    pub nonce: String,
    /// Digest of the verifier: <https://www.rfc-editor.org/rfc/rfc7636>.
    pub challenge: String,
}

/// Start of a login.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OpenIdStart {
    /// At this address.
    At {
        /// The address.
        url: String,
    },
    /// The provider can't be used.
    Refused {
        /// The reason, for operators.
        detail: String,
    },
}

/// A login whose browser came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenIdCallback {
    /// Code, verifier and nonce, sealed to the workers, in base64.
    pub sealed: String,
    /// Address to which the provider sent the browser back.
    pub redirect_uri: String,
}

/// The person, as the provider vouches for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OpenIdResult {
    /// A person.
    Person {
        /// The provider.
        issuer: String,
        /// The provider's id of the person.
        subject: String,
        /// E-mail address, if the provider has verified one.
        email: Option<String>,
        /// Name.
        name: Option<String>,
    },
    /// Nobody.
    Refused {
        /// The reason, for operators.
        detail: String,
    },
    /// The provider did not answer, or not as one that works: who it is can be asked again.
    Away {
        /// The reason, for operators.
        detail: String,
    },
}

/// Activities that sign in people.
pub struct OpenId;

#[activity_definitions]
impl OpenId {
    /// Finds out where a login begins.
    #[activity(name = "begin_open_id")]
    pub fn begin_open_id(_login: OpenIdLogin) -> Result<OpenIdStart, ActivityError> {
        unimplemented!()
    }

    /// Exchanges a code, once, and verifies the identity token.
    #[activity(name = "finish_open_id")]
    pub fn finish_open_id(_callback: OpenIdCallback) -> Result<OpenIdResult, ActivityError> {
        unimplemented!()
    }
}
