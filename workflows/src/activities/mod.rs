//! Declarations of the activities that workflows call, by area. The bodies are in crate `activities`, in files of the
//! same names; the compiler checks each against its declaration here.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

mod accounts;
mod connecting;
mod imports;
mod media;
mod metrics;
mod openid;
mod publishing;
mod webhooks;

pub use accounts::{
    AccountRef, Accounts, EditOutcome, EditRequest, HealthReport, LookUpReport, LookUpRequest,
    OptionsRequest, UnpublishRequest, UnpublishResult,
};
pub use connecting::{
    AccountQuota, CallbackResult, ConnectedAccount, Connecting, LoginResult, LoginSelection, OAuthCallback,
    PasswordLogin, SelectionResult,
};
pub use imports::{ImportPageInput, ImportProgress, Imports};
pub use media::{ConfirmResult, Media, MediaFailure, MediaRef};
pub use metrics::{CollectionSummary, Metrics, MetricsRequest};
pub use openid::{OpenId, OpenIdCallback, OpenIdLogin, OpenIdResult, OpenIdStart};
pub use publishing::{GRANT_LOST, Publishing, RefreshInput, SettleInput, TargetInput};
pub use webhooks::{DrainResult, RevealSecretInput, TestEventInput, TestEventResult, Webhooks};

/// Type of the failure of an activity that did nothing because its organization uses its share of the worker's
/// slots. Its details are the time to wait.
pub const CROWDED: &str = "crowded";

/// The declarations, as `#[activity(definition = …)]` names them.
pub mod definition {
    pub use super::accounts::{
        CancelTargets, CheckHealth, EditTarget, EraseGrant, ListOptions, LookUp, ReadUsage, RenewGrant,
        RevokeGrant, Unpublish,
    };
    pub use super::connecting::{ExchangeCode, FinalizeLogin, SignIn};
    pub use super::imports::{AbandonImport, ImportPage};
    pub use super::media::{CleanUpMedia, ConfirmMedia, FailMedia, ProcessMedia};
    pub use super::metrics::{CollectMetrics, FetchMetrics, PruneMetrics};
    pub use super::openid::{BeginOpenId, FinishOpenId};
    pub use super::publishing::{MakeFirstAttempt, Poll, Publish, RefreshToken, Settle};
    pub use super::webhooks::{Drain, RevealSecret, SendTestEvent};
}
