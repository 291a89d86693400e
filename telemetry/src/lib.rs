//! Telemetry of a process: probes, metrics and traces.
//!
//! Crates that do the work record here; `server` decides where it is shown. Nothing in here does any input or
//! output, and nothing depends on a database, Temporal or HTTP.

pub mod health;
pub mod metrics;
pub mod trace;
