//! What a key may do.

crate::string_enum! {
    /// One permission of an API key.
    Scope, "scope" {
        /// Read posts.
        PostsRead = "posts:read",
        /// Create, change and cancel posts.
        PostsWrite = "posts:write",
        /// Read connected accounts.
        AccountsRead = "accounts:read",
        /// Connect, change and disconnect accounts.
        AccountsWrite = "accounts:write",
        /// Read OAuth apps.
        NetworksRead = "networks:read",
        /// Register and change OAuth apps.
        NetworksWrite = "networks:write",
        /// Read media.
        MediaRead = "media:read",
        /// Upload and delete media.
        MediaWrite = "media:write",
        /// Read webhook endpoints and deliveries.
        WebhooksRead = "webhooks:read",
        /// Register and change webhook endpoints.
        WebhooksWrite = "webhooks:write",
        /// Read posting slots.
        SchedulingRead = "scheduling:read",
        /// Set posting slots.
        SchedulingWrite = "scheduling:write",
        /// Read engagement.
        AnalyticsRead = "analytics:read",
        /// Read the team.
        TeamRead = "team:read",
        /// Change the team.
        TeamWrite = "team:write",
        /// Read profiles.
        ProfilesRead = "profiles:read",
        /// Change profiles.
        ProfilesWrite = "profiles:write",
        /// Read usage.
        UsageRead = "usage:read",
        /// Create and revoke keys.
        KeysWrite = "keys:write",
        /// Everything.
        All = "*",
    }
}

/// Whether a key with these scopes may do what `needed` stands for.
pub fn allows(granted: &[Scope], needed: Scope) -> bool {
    granted.contains(&Scope::All) || granted.contains(&needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_star_allows_everything_and_a_scope_only_itself() {
        assert!(allows(&[Scope::All], Scope::KeysWrite));
        assert!(allows(&[Scope::PostsRead], Scope::PostsRead));
        assert!(!allows(&[Scope::PostsRead], Scope::PostsWrite));
        assert!(!allows(&[Scope::PostsRead], Scope::All));
        assert!(!allows(&[], Scope::PostsRead));
    }
}
