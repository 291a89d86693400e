//! Roles of the members of an organization.
//!
//! A role is a set of the scopes that API keys have as well, so that a page of the dashboard asks for what its
//! operation asks for. Each role includes the one below it.

use crate::scope::Scope::{self, *};
use chrono::TimeDelta;

/// Time for which an invitation to become a member can be accepted.
pub const INVITATION_TTL: TimeDelta = TimeDelta::days(7);

crate::string_enum! {
    /// Rights of a member.
    Role, "role" {
        /// One who may do everything: also the team, API keys and the plan.
        Owner = "owner",
        /// One who connects accounts and administers OAuth apps, webhook endpoints and profiles.
        Admin = "admin",
        /// One who writes and publishes posts.
        Publisher = "publisher",
        /// One who reads.
        Viewer = "viewer",
    }
}

/// Scopes of a viewer.
const VIEWER: &[Scope] = &[PostsRead, AccountsRead, MediaRead, SchedulingRead, AnalyticsRead, ProfilesRead];

/// Scopes of a publisher.
const PUBLISHER: &[Scope] = &[
    PostsRead,
    AccountsRead,
    MediaRead,
    SchedulingRead,
    AnalyticsRead,
    ProfilesRead,
    PostsWrite,
    MediaWrite,
    SchedulingWrite,
];

/// Scopes of an admin.
const ADMIN: &[Scope] = &[
    PostsRead,
    AccountsRead,
    MediaRead,
    SchedulingRead,
    AnalyticsRead,
    ProfilesRead,
    PostsWrite,
    MediaWrite,
    SchedulingWrite,
    AccountsWrite,
    NetworksRead,
    NetworksWrite,
    WebhooksRead,
    WebhooksWrite,
    ProfilesWrite,
    TeamRead,
    UsageRead,
];

impl Role {
    /// Returns the scopes of the role.
    pub fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Owner => &[All],
            Self::Admin => ADMIN,
            Self::Publisher => PUBLISHER,
            Self::Viewer => VIEWER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::allows;

    #[test]
    fn each_role_includes_the_one_below_it() {
        for roles in [Role::Owner, Role::Admin, Role::Publisher, Role::Viewer].windows(2) {
            let [above, below] = roles else { panic!("two roles") };
            assert!(below.scopes().iter().all(|scope| allows(above.scopes(), *scope)), "{above} {below}");
            assert!(!above.scopes().iter().all(|scope| allows(below.scopes(), *scope)), "{above} {below}");
        }
    }

    #[test]
    fn a_viewer_changes_nothing_and_only_an_owner_the_team_and_keys() {
        let writes = |role: Role| {
            Scope::ALL
                .iter()
                .filter(move |scope| scope.as_str().ends_with(":write") && allows(role.scopes(), **scope))
        };
        assert_eq!(writes(Role::Viewer).count(), 0);
        assert_eq!(writes(Role::Publisher).collect::<Vec<_>>(), [&PostsWrite, &MediaWrite, &SchedulingWrite]);
        for scope in [TeamWrite, KeysWrite, All] {
            assert!(!allows(Role::Admin.scopes(), scope) && allows(Role::Owner.scopes(), scope), "{scope}");
        }
    }
}
