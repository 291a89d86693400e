//! Starts and signals workflows.
//!
//! The outbox [`relay`], [`requests`] of the API, [`schedules`], and the [`sweeper`] for rows whose workflow
//! is gone. Nothing else in Fanfare starts a workflow. [`inspect`] tells operators what Temporal knows of one.

pub mod housekeeper;
pub mod inspect;
pub mod relay;
pub mod requests;
pub mod schedules;
pub mod status;
pub mod sweeper;
