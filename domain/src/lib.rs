//! Types and rules shared by all crates: posts, failures, retries, events, outbox messages.
//!
//! Nothing here performs I/O, awaits, reads a clock or draws a random number; callers pass time and
//! randomness in. The same rules therefore serve the API, the activities and the deterministic
//! workflows, and are tested without any of these.

pub mod appearance;
pub mod audit;
pub mod bound;
pub mod choice;
pub mod client;
pub mod edit;
pub mod email;
pub mod event;
pub mod failure;
pub mod grant;
pub mod id;
pub mod ip_ranges;
mod issue;
pub mod json;
mod limit;
pub mod login;
pub mod media;
pub mod member;
pub mod metrics;
pub mod missing;
pub mod outbox;
pub mod overrides;
pub mod owner;
pub mod post;
pub mod publish;
pub mod publishing;
pub mod renewal;
pub mod request_proof;
pub mod retry;
pub mod sandbox;
pub mod scope;
pub mod signature;
pub mod slot;
pub mod string_enum;
pub mod time_scale;

pub use bound::Bound;
pub use choice::SelectOption;
pub use edit::Edit;
pub use email::Email;
pub use failure::{Effect, ErrorCode, ErrorSource, Failure, GrantState, Holds, MAY_BE_LIVE};
pub use grant::{AccountProfile, App, AppAccess, AppConfig, Grant, Identity};
pub use id::{
    AccountId, ContainerId, DeliveryId, EditId, EventId, ImportId, KeyId, MediaId, MemberId, NetworkId,
    OrgId, PersonId, PostId, ProfileId, StateId, TargetId, WebhookId,
};
pub use issue::{Issue, Severity, Subject};
pub use limit::{LimitSource, LimitUsage};
pub use login::LoginError;
pub use media::{Fit, Media, MediaKind, MediaStatus, Shaping};
pub use metrics::Metrics;
pub use missing::{Missing, Part};
pub use owner::{Mode, Owner};
pub use post::{CancelReason, PostStatus, Role, TargetStatus};
pub use publishing::wait::{Then, Wait, WaitReason};
pub use time_scale::TimeScale;
