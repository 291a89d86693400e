//! The groups of operations in the OpenAPI document.

use poem_openapi::Tags;

/// The groups of operations.
#[derive(Tags)]
pub enum Tag {
    /// Posts and their targets
    Posts,
    /// Weekly times for queued posts
    Scheduling,
    /// Images, videos and other files
    Media,
    /// Connected social accounts
    #[oai(rename = "Social accounts")]
    Accounts,
    /// An organization's own OAuth apps
    #[oai(rename = "Social networks")]
    Networks,
    /// Endpoints for signed events
    Webhooks,
    /// Groups of accounts, such as a brand or client
    Profiles,
    /// Team members
    Team,
    /// Keys that authenticate API calls
    #[oai(rename = "API keys")]
    Keys,
    /// Usage of the plan
    Usage,
}
