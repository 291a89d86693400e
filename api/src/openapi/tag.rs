//! The groups of operations in the OpenAPI document.

use poem_openapi::Tags;

/// The groups of operations.
#[derive(Tags)]
pub enum Tag {
    /// Content, and the accounts it goes to
    Posts,
    /// Times of the week at which queued posts go out
    Scheduling,
    /// Images, films and other files that posts show
    Media,
    /// Connected social accounts
    #[oai(rename = "Social accounts")]
    Accounts,
    /// An organization's own OAuth apps
    #[oai(rename = "Social networks")]
    Networks,
    /// Receivers of signed events
    Webhooks,
    /// Groups of accounts: a brand, a client
    Profiles,
    /// People
    Team,
    /// What calls are made with
    #[oai(rename = "API keys")]
    Keys,
    /// What is used of a plan
    Usage,
}
