//! OAuth scopes: which features they open, and named sets for apps that may not ask for the default ones.
//!
//! An app may have fewer scopes than Fanfare can use, because each one may need a review, and a user may decline
//! one. A login that was granted what publishing needs connects; the other features are off until the account is
//! connected again with their scopes.

use domain::string_enum;

string_enum! {
    /// A feature of an account that depends on the scopes of its grant.
    Feature, "feature" {
        /// Publishing posts.
        Publishing = "publishing",
        /// Publishing first comments and threads.
        Replies = "replies",
        /// Reading figures of posts.
        Analytics = "analytics",
        /// Importing earlier posts.
        Import = "import",
        /// Deleting published posts.
        Deletion = "deletion",
        /// Changing published posts.
        Editing = "editing",
    }
}

/// Scopes that together open a feature.
pub type ScopeSet = &'static [&'static str];

/// A named set of scopes to request, for apps with certain products.
#[derive(Debug)]
pub struct Preset {
    /// Name, the value of an app's `extra_config.preset`.
    pub name: &'static str,
    /// The scopes.
    pub scopes: ScopeSet,
}

/// Returns the scopes that were not granted, of the set that lacks the fewest; none if one is complete.
pub(crate) fn least_lacking(sets: &[ScopeSet], granted: &[String]) -> Vec<&'static str> {
    sets.iter().map(|set| lacking(set, granted)).min_by_key(Vec::len).unwrap_or_default()
}

/// Returns the scopes of a set that were not granted.
fn lacking(set: ScopeSet, granted: &[String]) -> Vec<&'static str> {
    set.iter().filter(|scope| !granted.iter().any(|granted| granted == **scope)).copied().collect()
}
