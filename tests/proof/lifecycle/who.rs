//! Those who take the steps of a case, and what they are allowed to.

use domain::{member::Role, scope::Scope};

/// One who calls the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum By {
    /// A key of the whole organization.
    Owner,
    /// A key that reads posts, accounts and media.
    Reader,
    /// A key of an end tenant.
    Tenant,
    /// A key of a profile.
    Profile,
    /// A key of some accounts.
    Accounts,
    /// A client token of the tenant.
    Client,
    /// A key of another organization.
    Stranger,
}

impl By {
    pub(super) const ALL: [Self; 7] = [
        Self::Owner,
        Self::Reader,
        Self::Tenant,
        Self::Profile,
        Self::Accounts,
        Self::Client,
        Self::Stranger,
    ];

    /// Returns the caller in words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Owner => "a key of the organization",
            Self::Reader => "a key that reads",
            Self::Tenant => "a tenant's key",
            Self::Profile => "a profile's key",
            Self::Accounts => "a key of some accounts",
            Self::Client => "a client token",
            Self::Stranger => "another organization",
        }
    }

    /// Returns the scopes of the key.
    pub(super) fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Reader => Role::Viewer.scopes(),
            Self::Client => &[Scope::AccountsRead, Scope::AccountsWrite],
            _ => &[Scope::All],
        }
    }

    /// Returns whether a bound limits what the caller reaches of the organization.
    pub(super) fn is_limited(self) -> bool {
        matches!(self, Self::Tenant | Self::Profile | Self::Accounts | Self::Client)
    }
}

/// One who opens the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Guest {
    /// A member who may do everything.
    Owner,
    /// A member who reads.
    Viewer,
    /// Somebody of another organization.
    Stranger,
    /// Somebody without a session.
    Nobody,
}

impl Guest {
    pub(super) const ALL: [Self; 4] = [Self::Owner, Self::Viewer, Self::Stranger, Self::Nobody];

    /// Returns the scopes of the session.
    pub(super) fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Viewer => Role::Viewer.scopes(),
            _ => &[Scope::All],
        }
    }
}
