//! Versions of what is started beside Fanfare, named once.
//!
//! The compose file, the manifests and the documents repeat them; a test compares.

/// Temporal's CLI, which has the development server.
pub const TEMPORAL_CLI: &str = "1.5.1";
/// Temporal's server: the one in that CLI, so that what the tests run on is what production runs.
pub const TEMPORAL_SERVER: &str = "1.29.1";
/// Temporal's UI in that CLI.
pub const TEMPORAL_UI: &str = "2.42.1";
