//! Queries of the dashboard's pages for what no operation of the API returns.

pub mod analytics;
pub mod overview;
pub mod search;
