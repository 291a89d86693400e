//! How a workflow that belongs to a row is started, which each declares beside its code.
//!
//! The process that starts it knows the client and the name of the queue of posts, and nothing of the kind of work.

use domain::Owner;
use temporalio_common::search_attributes::SearchAttributes;

/// Input of a workflow that belongs to a row, with what it is started with.
pub trait Start {
    /// Returns the row's owner: tasks wait in turns of organizations.
    fn owner(&self) -> Owner;

    /// Returns the id of the workflow: fixed, so that starting it twice does nothing.
    fn id(&self) -> String;

    /// Returns the task queue. `base` is that of posts.
    fn queue(&self, base: &str) -> String;

    /// Returns the search attributes.
    fn search_attributes(&self) -> SearchAttributes;

    /// Returns one line for operators.
    fn summary(&self) -> String;
}
