//! The author of a change, as the audit trail names them. A request to a worker carries them along, because the worker
//! writes the entry in the transaction of the change.

use crate::{KeyId, MemberId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

crate::string_enum! {
    /// How the one who made a change was authorized.
    ActorKind, "actor kind" {
        /// By an API key or a client token.
        ApiKey = "api_key",
        /// By a session of the dashboard.
        Session = "session",
        /// By the link of an invitation.
        Invitation = "invitation",
        /// By the link of a login at a platform.
        Login = "login",
        /// By access to the server: a command of `fanfare`.
        Operator = "operator",
    }
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// How they are authorized.
    pub kind: ActorKind,
    /// The key of a call, or the one that the session was started with, and its last four characters.
    pub key: Option<(KeyId, String)>,
    /// The member of a session, and their e-mail address.
    pub member: Option<(MemberId, String)>,
    /// The client's IP address, if known.
    pub address: Option<IpAddr>,
    /// Id of the request.
    pub request: Option<String>,
    /// Name of an operator, which organizations don't see.
    pub operator: Option<String>,
    /// `User-Agent` of the request, shortened.
    pub agent: Option<String>,
}

impl Actor {
    /// One with access to the server.
    pub const OPERATOR: Self = Self {
        kind: ActorKind::Operator,
        key: None,
        member: None,
        address: None,
        request: None,
        operator: None,
        agent: None,
    };
    /// One who was sent to connect accounts.
    pub const LOGIN: Self = Self { kind: ActorKind::Login, ..Self::OPERATOR };

    /// Returns the actor as the organization of another member of the same person knows them. One who is not signed in
    /// stays unknown.
    #[must_use]
    pub fn known_as(&self, member: MemberId, email: String) -> Self {
        Self { member: self.member.as_ref().map(|_| (member, email)), ..self.clone() }
    }
}
