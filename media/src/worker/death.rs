//! Reasons for the refusal of a file, by the end of the process that decoded it.

use super::Bounds;
use nix::sys::signal::Signal;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// How a process ended without an answer. Its text completes "the file can't be used: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Death {
    /// It used up its CPU time, in seconds.
    #[error("converting it takes more than {0} s of computing")]
    Spent(u64),
    /// It did not end in time, in seconds.
    #[error("it was not converted within {0} s")]
    Late(u32),
    /// It asked for more memory than it may have.
    #[error("converting it takes more memory than a file may")]
    Memory,
    /// It was killed from outside: by the system when memory is short, or by a person.
    #[error("the process that converted it was killed")]
    Killed,
    /// Its decoder crashed, with this signal.
    #[error("it makes the decoder crash ({0})")]
    Crashed(Signal),
    /// It ended, or wrote something else than an answer.
    #[error("it can't be read")]
    Garbled,
}

impl Death {
    pub(super) fn of(status: ExitStatus, complaint: &[u8], bounds: &Bounds) -> Self {
        let signal = status.signal().and_then(|signal| Signal::try_from(signal).ok());
        let is_out_of_memory = || String::from_utf8_lossy(complaint).contains("memory allocation of");
        match signal {
            Some(Signal::SIGXCPU) => Self::Spent(bounds.cpu_seconds),
            Some(Signal::SIGALRM) => Self::Late(bounds.seconds),
            Some(Signal::SIGKILL) => Self::Killed,
            Some(Signal::SIGABRT) if is_out_of_memory() => Self::Memory,
            Some(signal) => Self::Crashed(signal),
            None => Self::Garbled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_process_is_a_reason_that_people_can_read() {
        let bounds =
            Bounds { memory_bytes: 0, cpu_seconds: 30, seconds: 120, input_bytes: 0, output_bytes: 0 };
        for (status, complaint, reason) in [
            (24, "", "converting it takes more than 30 s of computing"),
            (14, "", "it was not converted within 120 s"),
            (9, "", "the process that converted it was killed"),
            (6, "memory allocation of 9 bytes failed", "converting it takes more memory than a file may"),
            (6, "", "it makes the decoder crash (SIGABRT)"),
            (11, "", "it makes the decoder crash (SIGSEGV)"),
            (1 << 8, "", "it can't be read"),
        ] {
            let death = Death::of(ExitStatus::from_raw(status), complaint.as_bytes(), &bounds);
            assert_eq!(death.to_string(), reason);
        }
    }
}
