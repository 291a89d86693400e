//! What a transaction owes Temporal.
//!
//! The row that made follow-up work necessary and the message that asks for it are written together;
//! the relay carries the message to Temporal when it can. A message is ids and small values only: it
//! becomes a workflow's input and so part of a history that operators read.

use crate::{AccountId, DeliveryId, EventId, ImportId, MediaId, Owner, PostId, TargetId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One piece of follow-up work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// Publish a post, at its time.
    PublishPost(PostJob),
    /// The row of a post that was to be published changed: another time, other targets.
    PostChanged(PostJob),
    /// A post that was to be published was withdrawn.
    PostCanceled {
        /// The post.
        post: PostId,
        /// The post's owner.
        owner: Owner,
    },
    /// Somebody wants the next attempt of a failed target now.
    RetryTarget {
        /// The target.
        target: TargetId,
        /// Its post.
        post: PostId,
        /// The post's owner.
        owner: Owner,
    },
    /// Tell the endpoints that subscribed.
    DeliverEvent(EventDispatch),
    /// Revoke and erase the grant of an account that was disconnected.
    DisconnectAccount(Disconnection),
    /// Bring here what an account published earlier.
    ImportPosts(ImportRef),
    /// Renew the grant of an account before it ends.
    RenewGrant(ExpiringGrant),
    /// Fetch, look at or discard the bytes of a media asset.
    ProcessMedia(MediaJob),
}

impl Message {
    /// The owner of the rows that the work is about.
    pub fn owner(&self) -> Owner {
        match self {
            Self::PublishPost(job) | Self::PostChanged(job) => job.owner,
            Self::PostCanceled { owner, .. } | Self::RetryTarget { owner, .. } => *owner,
            Self::DeliverEvent(dispatch) => dispatch.owner,
            Self::DisconnectAccount(parting) => parting.owner,
            Self::ImportPosts(ingest) => ingest.owner,
            Self::RenewGrant(keeping) => keeping.owner,
            Self::ProcessMedia(chore) => chore.owner,
        }
    }
}

/// A post to be published, as one version of its row says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostJob {
    /// The post.
    pub post: PostId,
    /// Whose it is.
    pub owner: Owner,
    /// The row's version: an attempt for an older one finds that it is stale.
    pub version: i32,
    /// Not before; `None` at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DateTime<Utc>>,
    /// One per account.
    pub targets: Vec<TargetRef>,
}

/// One account of a post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRef {
    /// The target.
    pub target: TargetId,
    /// The account.
    pub account: AccountId,
    /// The account's platform.
    pub platform: String,
}

/// An account that was disconnected, and the grant it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnection {
    /// The account.
    pub account: AccountId,
    /// Whose it is.
    pub owner: Owner,
    /// Its platform.
    pub platform: String,
    /// Which grant: one that a later connection brought is not meant.
    pub grant_version: i64,
}

/// An import of what an account published earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRef {
    /// The import.
    pub import: ImportId,
    /// Whose it is.
    pub owner: Owner,
    /// The account.
    pub account: AccountId,
    /// Its platform.
    pub platform: String,
}

/// A grant that ends, and is to be renewed before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiringGrant {
    /// The account.
    pub account: AccountId,
    /// Whose it is.
    pub owner: Owner,
    /// Its platform.
    pub platform: String,
    /// Which grant: of two, the one with the higher number is the later.
    pub grant_version: i64,
    /// When it was got.
    pub granted_at: DateTime<Utc>,
    /// When its access token ends.
    pub expires_at: DateTime<Utc>,
}

/// Something to be done with the bytes of a media asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaJob {
    /// What.
    pub what: MediaAction,
    /// The asset.
    pub media: MediaId,
    /// Whose it is.
    pub owner: Owner,
}

crate::string_enum! {
    /// What is done with the bytes of a media asset.
    MediaAction, "care" {
        /// They are fetched from the address that its owner named.
        Fetch = "fetch",
        /// They are looked at.
        Probe = "probe",
        /// They are discarded, after the asset.
        Discard = "discard",
    }
}

/// An event and the deliveries it owes, one per subscribed endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventDispatch {
    /// The event.
    pub event: EventId,
    /// Whose it is.
    pub owner: Owner,
    /// Its name.
    pub name: String,
    /// The post it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<PostId>,
    /// One per endpoint.
    pub deliveries: Vec<DeliveryId>,
    /// 0 when the event happened; then counted up each time one of them is asked for again, alone.
    #[serde(default, skip_serializing_if = "is_first")]
    pub round: u32,
}

fn is_first(round: &u32) -> bool {
    *round == 0
}
