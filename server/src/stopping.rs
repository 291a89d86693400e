//! Longest times that processes take to stop after SIGTERM: an orchestrator has to grant more, and kills what exceeds
//! them. The deployment files are compared with them.

use std::time::Duration;

/// Time for open requests to finish.
pub(crate) const OPEN_REQUESTS: Duration = Duration::from_secs(5);
/// Time that the relay has for its claimed messages.
pub(crate) const HANDOVER: Duration = Duration::from_secs(10);
/// Longest time that the API takes, after its drain.
pub const API: Duration = OPEN_REQUESTS.saturating_add(HANDOVER);
/// Longest time that workers take.
pub const WORKER: Duration = activities::worker::STOP_LIMIT;
