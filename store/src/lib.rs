//! Postgres: every fact a client can read, and the only crate that speaks SQL.
//!
//! Plain functions, one statement each where one will do, one file per table family. Follow-up work
//! is written in the transaction that made it necessary ([`outbox`]).

pub mod deliveries;
pub mod events;
pub mod outbox;
pub mod publishing;
