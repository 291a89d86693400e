//! Ids. Each kind is a type of its own, so that a target id can't be passed for a post id.
//!
//! All are UUIDs of version 7 (RFC 9562): they sort by creation time, which keeps the indexes of growing
//! tables compact. `store` creates them together with their rows.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

ids! {
    /// An organization: the tenant that owns everything else.
    OrgId,
    /// An API key.
    KeyId,
    /// A connected social account.
    AccountId,
    /// A post: one publish intent.
    PostId,
    /// A container of a post.
    ContainerId,
    /// A target: one account of a post.
    TargetId,
    /// An event, the same on each of its deliveries.
    EventId,
    /// The delivery of one event to one webhook endpoint.
    DeliveryId,
    /// A webhook endpoint.
    WebhookId,
    /// An organization's own OAuth app at a platform.
    NetworkId,
    /// An OAuth authorization that has not returned yet.
    StateId,
    /// A group of accounts.
    ProfileId,
    /// A media asset.
    MediaId,
    /// A member of an organization.
    MemberId,
    /// A person, who may be a member of several organizations.
    PersonId,
    /// An import of an account's earlier posts.
    ImportId,
    /// An edit of a live target's posts.
    EditId,
}
