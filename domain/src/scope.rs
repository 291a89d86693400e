//! Permissions of API keys.

crate::string_enum! {
    /// One permission of an API key.
    Scope, "scope" {
        /// Read posts.
        PostsRead = "posts:read",
        /// Create, update and cancel posts.
        PostsWrite = "posts:write",
        /// Read connected accounts.
        AccountsRead = "accounts:read",
        /// Connect, update and disconnect accounts.
        AccountsWrite = "accounts:write",
        /// Read OAuth apps and the branding of the connect pages.
        NetworksRead = "networks:read",
        /// Create, update and delete OAuth apps, and set the branding of the connect pages.
        NetworksWrite = "networks:write",
        /// Read media.
        MediaRead = "media:read",
        /// Upload and delete media.
        MediaWrite = "media:write",
        /// Read webhook endpoints and deliveries.
        WebhooksRead = "webhooks:read",
        /// Create, update and delete webhook endpoints.
        WebhooksWrite = "webhooks:write",
        /// Read posting slots.
        SchedulingRead = "scheduling:read",
        /// Replace posting slots.
        SchedulingWrite = "scheduling:write",
        /// Read engagement metrics.
        AnalyticsRead = "analytics:read",
        /// Read the team.
        TeamRead = "team:read",
        /// Invite, update and remove members.
        TeamWrite = "team:write",
        /// Read profiles.
        ProfilesRead = "profiles:read",
        /// Create, update and delete profiles.
        ProfilesWrite = "profiles:write",
        /// Read usage.
        UsageRead = "usage:read",
        /// Create and revoke keys.
        KeysWrite = "keys:write",
        /// Every permission.
        All = "*",
    }
}

/// Returns true if the granted scopes include `needed`.
pub fn allows(granted: &[Scope], needed: Scope) -> bool {
    granted.contains(&Scope::All) || granted.contains(&needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wildcard_allows_everything_and_a_scope_only_itself() {
        assert!(allows(&[Scope::All], Scope::KeysWrite));
        assert!(allows(&[Scope::PostsRead], Scope::PostsRead));
        assert!(!allows(&[Scope::PostsRead], Scope::PostsWrite));
        assert!(!allows(&[Scope::PostsRead], Scope::All));
        assert!(!allows(&[], Scope::PostsRead));
    }
}
