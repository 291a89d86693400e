//! What workflows may ask for: the declarations of the activities, without their bodies.
//!
//! The bodies are in crate `activities`; the compiler checks each against its declaration here.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use chrono::{DateTime, Utc};
use domain::{
    AccountId, DeliveryId, ErrorCode, Failure, LoginError, MediaId, Owner, PostId, SelectOption, StateId,
    TargetId, TargetStatus, WebhookId,
    outbox::{Disconnection, ExpiringGrant, ImportRef, MediaJob},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// A target to be worked on, as one version of its post's row said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetInput {
    /// The target.
    pub target: TargetId,
    /// Its post.
    pub post: PostId,
    /// Whose it is.
    pub owner: Owner,
    /// Its account.
    pub account: AccountId,
    /// The account's platform.
    pub platform: String,
    /// The version of the post's row that the work was started for.
    pub version: i32,
}

/// How a publish attempt ended that is not to be repeated as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PublishResult {
    /// The target is terminal.
    Ended {
        /// How.
        status: TargetStatus,
    },
    /// The post was edited before its first attempt: other work is on its way.
    Stale,
    /// It is too early for an attempt, or the organization holds its share of the worker's slots: none was
    /// made, and nothing was counted.
    Wait {
        /// How long to wait.
        pause: Duration,
    },
    /// The platform is busy with it.
    Processing {
        /// How long it wants to be left alone.
        pause: Duration,
    },
    /// The platform refused the token.
    TokenRefused {
        /// Which grant it was.
        grant_version: i64,
    },
}

/// What a look at a busy platform found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PollResult {
    /// It is done; publishing can go on.
    Ready,
    /// The target is terminal.
    Ended {
        /// How.
        status: TargetStatus,
    },
    /// The platform refused the token.
    TokenRefused {
        /// Which grant it was.
        grant_version: i64,
    },
}

/// A grant that a platform refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshInput {
    /// The work that met the refusal.
    pub target: TargetInput,
    /// Which grant it was: a later one need not be refreshed again.
    pub grant_version: i64,
}

/// Why a target has to be settled from outside an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum SettleReason {
    /// The attempts ended without an answer: their worker died, or Fanfare failed.
    Unanswered {
        /// What Temporal knows of it.
        message: String,
    },
    /// The grant can't be refreshed.
    GrantLost {
        /// The platform's words.
        message: String,
    },
    /// The platform could not be asked for a fresh token.
    RefreshFailed {
        /// What was in the way.
        message: String,
        /// Its code.
        code: ErrorCode,
    },
    /// An operator ended the workflow.
    Stopped,
}

/// A target to be settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleInput {
    /// The target.
    pub target: TargetInput,
    /// Why.
    pub why: SettleReason,
}

/// What a settlement came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SettleResult {
    /// The target is terminal.
    Ended {
        /// How.
        status: TargetStatus,
    },
    /// There is budget left: try again after the pause.
    RetryAfter {
        /// How long to wait.
        pause: Duration,
    },
}

/// A refresh that cannot succeed ends with a failure of this type.
pub const GRANT_LOST: &str = "grant_lost";

/// Type of the failure of an activity that did nothing because its organization holds its share of the
/// worker's slots. Its details are the time to wait.
pub const CROWDED: &str = "crowded";

/// The name of a target that publishes.
pub struct Publishing;

#[activity_definitions]
impl Publishing {
    /// One attempt to publish a target.
    #[activity(name = "publish")]
    pub fn publish(_task: TargetInput) -> Result<PublishResult, ActivityError> {
        unimplemented!()
    }

    /// One look at a platform that is still processing.
    #[activity(name = "poll")]
    pub fn poll(_task: TargetInput) -> Result<PollResult, ActivityError> {
        unimplemented!()
    }

    /// A fresh grant for the account, unless somebody got one meanwhile.
    #[activity(name = "refresh_token")]
    pub fn refresh_token(_refusal: RefreshInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Decides what becomes of a target whose attempts gave no answer.
    #[activity(name = "settle")]
    pub fn settle(_settlement: SettleInput) -> Result<SettleResult, ActivityError> {
        unimplemented!()
    }
}

/// A delivery to be attempted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryInput {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Whose it is.
    pub owner: Owner,
    /// Which of its rounds: a delivery can be asked for again.
    #[serde(default)]
    pub round: u32,
    /// How often it had to wait for its turn in this round.
    #[serde(default)]
    pub waits: u32,
}

/// A sample to be sent to an endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestEventInput {
    /// The endpoint.
    pub webhook: WebhookId,
    /// Whose it is.
    pub owner: Owner,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestEventResult {
    /// The endpoint's answer; `None` when none came.
    pub status: Option<u16>,
    /// Whether that counts as delivered.
    pub delivered: bool,
}

/// A signing secret that somebody wants to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevealSecretInput {
    /// The endpoint.
    pub webhook: WebhookId,
    /// Whose it is.
    pub owner: Owner,
    /// The public key that the answer is sealed to, made for this one question: whoever reads a history
    /// reads nothing.
    pub recipient: String,
}

/// Webhook deliveries.
pub struct Webhooks;

#[activity_definitions]
impl Webhooks {
    /// One attempt to deliver an event to one endpoint. `None` when the delivery is over; else none was
    /// made, for the endpoint or its organization has all it may have at a time, and this is how long to
    /// wait.
    #[activity(name = "deliver")]
    pub fn deliver(_parcel: DeliveryInput) -> Result<Option<Duration>, ActivityError> {
        unimplemented!()
    }

    /// Sends a signed sample to one endpoint, once; `None` when the endpoint is gone.
    #[activity(name = "send_test_event")]
    pub fn send_test_event(_sample: TestEventInput) -> Result<Option<TestEventResult>, ActivityError> {
        unimplemented!()
    }

    /// Seals the signing secret of one endpoint to whoever asks; `None` when the endpoint is gone.
    #[activity(name = "reveal_secret")]
    pub fn reveal_secret(_reveal: RevealSecretInput) -> Result<Option<Vec<u8>>, ActivityError> {
        unimplemented!()
    }
}

/// An account that is to be spoken for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountRef {
    /// The account.
    pub account: AccountId,
    /// Whose it is.
    pub owner: Owner,
    /// Its platform.
    pub platform: String,
}

/// How an account's platform answered for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthReport {
    /// What it said against it; `None` when the account can be spoken for.
    pub failure: Option<Failure>,
    /// When.
    pub at: DateTime<Utc>,
}

/// A list of what a setting can be for an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptionsRequest {
    /// The account.
    pub account_ref: AccountRef,
    /// Which list.
    pub kind: String,
    /// What it belongs to, where the account has several.
    pub parent: Option<String>,
}

/// What is asked of platforms about accounts.
pub struct Accounts;

#[activity_definitions]
impl Accounts {
    /// One real call that tells whether an account can be spoken for; its status follows.
    #[activity(name = "check_health")]
    pub fn check_health(_voice: AccountRef) -> Result<HealthReport, ActivityError> {
        unimplemented!()
    }

    /// Tells the platform that a grant is no longer wanted.
    #[activity(name = "revoke_grant")]
    pub fn revoke_grant(_parting: Disconnection) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Erases the grant of a disconnected account.
    #[activity(name = "erase_grant")]
    pub fn erase_grant(_parting: Disconnection) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// A fresh grant in place of one that will end, unless somebody got one meanwhile. Gives the grant
    /// that is there then; `None` when there is none to keep.
    #[activity(name = "renew_grant")]
    pub fn renew_grant(_keeping: ExpiringGrant) -> Result<Option<ExpiringGrant>, ActivityError> {
        unimplemented!()
    }

    /// What a setting can be.
    #[activity(name = "list_options")]
    pub fn list_options(_menu: OptionsRequest) -> Result<Result<Vec<SelectOption>, Failure>, ActivityError> {
        unimplemented!()
    }
}

/// Somebody who came back from an authorization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OAuthCallback {
    /// From which.
    pub authorization: StateId,
    /// Whose it is.
    pub owner: Owner,
    /// The platform that he comes from.
    pub platform: String,
    /// What he brings, sealed to the workers, in base64.
    pub sealed: String,
    /// The digest of the token that leads to the choice, should there be one.
    pub token_digest: String,
    /// How many accounts the owner may have; as many as he likes without it.
    pub limit: Option<u64>,
}

/// What came of a return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CallbackResult {
    /// An account is connected.
    Connected {
        /// Which.
        account: AccountId,
    },
    /// The login covers several: somebody has to choose.
    Choice,
    /// Nothing is connected.
    Refused {
        /// Why.
        error: LoginError,
        /// Why, for people.
        detail: String,
    },
}

/// Somebody who logs in with a password made for this purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PasswordLogin {
    /// Whose the account will be.
    pub owner: Owner,
    /// Where he logs in.
    pub platform: String,
    /// The password and what belongs to it, sealed to the workers, in base64.
    pub sealed: String,
    /// The end tenant that the account is to belong to.
    pub tenant_id: Option<String>,
    /// How many accounts the owner may have; as many as he likes without it.
    pub limit: Option<u64>,
}

/// What came of a login with a password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LoginResult {
    /// Its account is connected.
    Connected(ConnectedAccount),
    /// The platform would not.
    Refused(Failure),
    /// Its account belongs to another end tenant than the one that was named.
    OtherTenant,
    /// The owner has all the accounts that he may.
    Full(AccountQuota),
}

/// How many accounts an owner has, where that leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountQuota {
    /// How many he may have.
    pub limit: u64,
    /// How many he has.
    pub used: u64,
}

/// An account that was connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedAccount {
    /// The account.
    pub account: AccountId,
    /// Whether its owner had never connected it before.
    pub is_new: bool,
}

/// A choice among what a login covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginSelection {
    /// The digest of the token that leads to it.
    pub token_digest: String,
    /// Whose the accounts will be.
    pub owner: Owner,
    /// The platform.
    pub platform: String,
    /// The platform's ids of what is chosen, each once.
    pub ids: Vec<String>,
    /// How many accounts the owner may have; as many as he likes without it.
    pub limit: Option<u64>,
}

/// What came of a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SelectionResult {
    /// These accounts are connected, in the order of the choice.
    Connected {
        /// Which.
        accounts: Vec<AccountId>,
    },
    /// The same choice was made before, and these are its accounts.
    Repeated {
        /// Which.
        accounts: Vec<AccountId>,
    },
    /// Another choice was made before.
    Other,
    /// One of them belongs to another end tenant than the login's.
    OtherTenant {
        /// The platform's id of it.
        id: String,
    },
    /// The owner may not have so many accounts.
    Full(AccountQuota),
    /// There is no such login any more, or it does not cover that.
    Gone,
}

/// How accounts are connected.
pub struct Connecting;

#[activity_definitions]
impl Connecting {
    /// Exchanges what an authorization brought, once, and connects what the login covers.
    #[activity(name = "exchange_code")]
    pub fn exchange_code(_back: OAuthCallback) -> Result<CallbackResult, ActivityError> {
        unimplemented!()
    }

    /// Logs in with a password, once, and connects its account.
    #[activity(name = "sign_in")]
    pub fn sign_in(_sign_in: PasswordLogin) -> Result<LoginResult, ActivityError> {
        unimplemented!()
    }

    /// Connects what was chosen.
    #[activity(name = "finalize_login")]
    pub fn finalize_login(_selection: LoginSelection) -> Result<SelectionResult, ActivityError> {
        unimplemented!()
    }
}

/// A published target whose engagement is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsRequest {
    /// The target.
    pub target: TargetId,
    /// Its account.
    pub account_ref: AccountRef,
    /// The platform's id of what was published.
    pub platform_post_id: String,
}

/// What a round of collecting figures came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionSummary {
    /// Targets whose figures are kept.
    pub read: u32,
    /// Targets whose platform told none.
    pub failed: u32,
    /// Targets that were left to a later round.
    pub left: u32,
}

impl std::iter::Sum for CollectionSummary {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| Self {
            read: one.read + other.read,
            failed: one.failed + other.failed,
            left: one.left + other.left,
        })
    }
}

/// Engagement.
pub struct Metrics;

#[activity_definitions]
impl Metrics {
    /// Reads a target's figures and keeps them; or why there are none.
    #[activity(name = "fetch_metrics")]
    pub fn fetch_metrics(_reading: MetricsRequest) -> Result<Result<(), Failure>, ActivityError> {
        unimplemented!()
    }

    /// Reads and keeps the figures of a platform's targets whose turn it is.
    #[activity(name = "collect_metrics")]
    pub fn collect_metrics(_platform: String) -> Result<CollectionSummary, ActivityError> {
        unimplemented!()
    }

    /// Forgets figures that are too old.
    #[activity(name = "prune_metrics")]
    pub fn prune_metrics() -> Result<u64, ActivityError> {
        unimplemented!()
    }
}

/// The next page of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportPageInput {
    /// The import.
    pub import: ImportRef,
    /// How often the platform was asked for it in vain.
    pub tries: u32,
}

/// What a page of an import came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ImportProgress {
    /// It is kept, and another follows.
    More,
    /// The import is over.
    Over,
    /// The platform wants to be asked later.
    Later {
        /// How long to wait.
        wait: Duration,
    },
}

/// What accounts published earlier.
pub struct Imports;

#[activity_definitions]
impl Imports {
    /// Brings the next page of an import, and ends the import where nothing follows.
    #[activity(name = "import_page")]
    pub fn import_page(_turn: ImportPageInput) -> Result<ImportProgress, ActivityError> {
        unimplemented!()
    }

    /// Ends an import that got no further.
    #[activity(name = "abandon_import")]
    pub fn abandon_import(_ingest: ImportRef) -> Result<(), ActivityError> {
        unimplemented!()
    }
}

/// The bytes of media.
pub struct Media;

#[activity_definitions]
impl Media {
    /// Looks at what arrived of an asset, and decides whether it is taken.
    #[activity(name = "confirm_media")]
    pub fn confirm_media(_asset: MediaRef) -> Result<ConfirmResult, ActivityError> {
        unimplemented!()
    }

    /// Fetches, looks at or discards the bytes of an asset. Fails with [`CROWDED`] when nothing was tried.
    #[activity(name = "process_media")]
    pub fn process_media(_chore: MediaJob) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Writes down that an asset can't be used, after its bytes could not be had.
    #[activity(name = "fail_media")]
    pub fn fail_media(_lost: MediaFailure) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Deletes what nobody waits for any more; true when there may be more of it.
    #[activity(name = "clean_up_media")]
    pub fn clean_up_media() -> Result<bool, ActivityError> {
        unimplemented!()
    }
}

/// A media asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaRef {
    /// The asset.
    pub media: MediaId,
    /// Whose it is.
    pub owner: Owner,
}

/// What looking at an asset's bytes came to; what was found out is in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmResult {
    /// The row tells.
    Settled,
    /// No bytes have arrived.
    Missing,
}

/// An asset whose bytes could not be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaFailure {
    /// The chore that failed.
    pub job: MediaJob,
    /// Why, for people.
    pub message: String,
}

/// The declarations, as `#[activity(definition = …)]` names them.
pub mod definition {
    pub use super::accounts::{CheckHealth, EraseGrant, ListOptions, RenewGrant, RevokeGrant};
    pub use super::connecting::{ExchangeCode, FinalizeLogin, SignIn};
    pub use super::imports::{AbandonImport, ImportPage};
    pub use super::media::{CleanUpMedia, ConfirmMedia, FailMedia, ProcessMedia};
    pub use super::metrics::{CollectMetrics, FetchMetrics, PruneMetrics};
    pub use super::publishing::{Poll, Publish, RefreshToken, Settle};
    pub use super::webhooks::{Deliver, RevealSecret, SendTestEvent};
}
