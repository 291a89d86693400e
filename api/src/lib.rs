//! Placeholder
pub mod relay;
