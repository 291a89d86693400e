//! Upkeep of the installation: its schema and roles, what may be deleted, and what a restore brings back.
//!
//! Tables: `restoring_posts`, `installation`, `installation_beats`.

pub mod durability;
pub mod lineage;
pub mod reach;
pub mod reseal;
pub mod restored;
pub mod retention;
pub mod roles;
pub mod schema;
pub mod vault;
