//! Messages of the transactional outbox: work for Temporal.
//!
//! A row and the message for the follow-up work that it requires are written in one transaction; the
//! relay sends the message to Temporal. A message holds ids and small values only: it becomes a
//! workflow's input, and so part of a history that operators read.

use crate::{AccountId, ImportId, MediaId, Owner, PostId, TargetId, WebhookId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A request for follow-up work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Publish a post at its scheduled time.
    PublishPost(PostJob),
    /// Go on with targets of a post whose publishing has begun: their workflows may be gone. One that runs is left alone.
    ResumePost(PostJob),
    /// Update the workflow of an edited post: its time or its targets changed.
    PostChanged(PostJob),
    /// Cancel the workflow of a post.
    PostCanceled {
        /// Post id.
        post: PostId,
        /// Owner of the post.
        owner: Owner,
    },
    /// Retry a failed target now, without waiting for its backoff.
    RetryTarget {
        /// Target id.
        target: TargetId,
        /// Id of the target's post.
        post: PostId,
        /// Owner of the post.
        owner: Owner,
    },
    /// Publish a target that was dead and is retried.
    ReviveTarget {
        /// The target.
        target: TargetRef,
        /// Id of the target's post.
        post: PostId,
        /// Owner of the post.
        owner: Owner,
        /// Version of the post's row.
        version: i32,
    },
    /// Send what is due to a webhook endpoint.
    DrainEndpoint(EndpointRef),
    /// Revoke and erase the grant of a disconnected account.
    DisconnectAccount(Disconnection),
    /// Import the posts that an account published earlier.
    ImportPosts(ImportRef),
    /// Renew an account's grant before it expires.
    RenewGrant(ExpiringGrant),
    /// Fetch, inspect or delete the file of a media asset.
    ProcessMedia(MediaJob),
}

impl Message {
    /// Returns the owner of the rows that the work concerns.
    pub fn owner(&self) -> Owner {
        match self {
            Self::PublishPost(job) | Self::ResumePost(job) | Self::PostChanged(job) => job.owner,
            Self::PostCanceled { owner, .. }
            | Self::RetryTarget { owner, .. }
            | Self::ReviveTarget { owner, .. } => *owner,
            Self::DrainEndpoint(endpoint) => endpoint.owner,
            Self::DisconnectAccount(disconnection) => disconnection.owner,
            Self::ImportPosts(import) => import.owner,
            Self::RenewGrant(grant) => grant.owner,
            Self::ProcessMedia(job) => job.owner,
        }
    }
}

/// One version of a post that is to be published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostJob {
    /// Post id.
    pub post: PostId,
    /// Owner of the post.
    pub owner: Owner,
    /// Version of the row: an attempt with an older version finds that it is stale.
    pub version: i32,
    /// Earliest time to publish; `None` publishes immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DateTime<Utc>>,
    /// True if the post was moved beyond the scheduling horizon: its workflow ends, and another one is started when its
    /// time is near.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_far_off: bool,
    /// Targets, one per account.
    pub targets: Vec<TargetRef>,
}

/// A target of a post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRef {
    /// Target id.
    pub target: TargetId,
    /// Account that the target publishes to.
    pub account: AccountId,
    /// Platform id.
    pub platform: String,
    /// Earliest time to publish, if it is later than the post's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DateTime<Utc>>,
}

/// A disconnected account and its grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnection {
    /// Account id.
    pub account: AccountId,
    /// Owner of the row.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
    /// Version of the grant to revoke: a grant from a later connection is kept.
    pub grant_version: i64,
}

/// An import of the posts that an account published earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRef {
    /// Import id.
    pub import: ImportId,
    /// Owner of the row.
    pub owner: Owner,
    /// Account id.
    pub account: AccountId,
    /// Platform id.
    pub platform: String,
}

/// A grant that is to be renewed before it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiringGrant {
    /// Account id.
    pub account: AccountId,
    /// Owner of the row.
    pub owner: Owner,
    /// Platform id.
    pub platform: String,
    /// Version of the grant: it grows with each grant of the account.
    pub grant_version: i64,
    /// Time at which the platform issued the grant.
    pub granted_at: DateTime<Utc>,
    /// Expiry of the access token.
    pub expires_at: DateTime<Utc>,
}

/// An action on the file of a media asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaJob {
    /// The action.
    pub what: MediaAction,
    /// Asset id.
    pub media: MediaId,
    /// Owner of the row.
    pub owner: Owner,
}

crate::string_enum! {
    /// Action on the file of a media asset.
    MediaAction, "media action" {
        /// Download it from the URL that the asset was created with.
        Fetch = "fetch",
        /// Inspect its bytes.
        Probe = "probe",
        /// Delete it, after the asset was deleted.
        Discard = "discard",
    }
}

/// A webhook endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointRef {
    /// Endpoint id.
    pub webhook: WebhookId,
    /// Owner of the row.
    pub owner: Owner,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
