//! Deadline of work whose length a file decides: CPU time of the thread that does it, and a flag that ends it sooner.
//!
//! Not time of the clock: on a busy machine a picture would be refused that is fitted on an idle one. Decoders do not
//! ask whether they may go on, so [`Source`] asks while they read, and [`Output`] while they write.

use nix::time::{ClockId, clock_gettime};
use std::{
    io::{self, BufRead, Cursor, Read, Seek, SeekFrom, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Bytes between two looks at the deadline. Compressed a thousand times, they are a few million pixels.
const STEP_BYTES: usize = 4 << 10;

/// Why work ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It took more CPU time than it may.
    Late,
    /// Nobody waits for it any more.
    Stopped,
}

/// A flag that ends work; dropping it ends the work too.
#[derive(Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns the flag that the work asks.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A deadline of the thread that made it.
#[derive(Debug)]
pub struct Deadline {
    at: Duration,
    stop: Arc<AtomicBool>,
}

impl Deadline {
    /// Creates a deadline after `limit` of this thread's CPU time, or when `stop` becomes true.
    pub fn after(limit: Duration, stop: Arc<AtomicBool>) -> Self {
        Self { at: cpu_time() + limit, stop }
    }

    /// Fails when the work is to end.
    pub(crate) fn check(&self) -> Result<(), Ended> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Ended::Stopped)
        } else if cpu_time() >= self.at {
            Err(Ended::Late)
        } else {
            Ok(())
        }
    }

    fn step(&self) -> io::Result<()> {
        self.check().map_err(|ended| io::Error::other(format!("{ended:?}")))
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("each thread has this clock").into()
}

/// Bytes for a decoder, which gets no more of them after the deadline.
pub(crate) struct Source<'a> {
    bytes: Cursor<&'a [u8]>,
    /// Bytes until the next look at the deadline.
    left: usize,
    deadline: &'a Deadline,
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8], deadline: &'a Deadline) -> Self {
        Self { bytes: Cursor::new(bytes), left: 0, deadline }
    }

    /// Returns how many bytes may be read now.
    fn admit(&mut self) -> io::Result<usize> {
        if self.left == 0 {
            self.deadline.step()?;
            self.left = STEP_BYTES;
        }
        Ok(self.left)
    }
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len().min(self.admit()?);
        let read = self.bytes.read(&mut into[..length])?;
        self.left -= read;
        Ok(read)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let length = self.admit()?;
        let bytes = self.bytes.fill_buf()?;
        Ok(&bytes[..bytes.len().min(length)])
    }

    fn consume(&mut self, length: usize) {
        self.bytes.consume(length);
        self.left = self.left.saturating_sub(length);
    }
}

impl Seek for Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

/// Bytes of an encoder, which may write no more of them after the deadline or beyond a maximum.
pub(crate) struct Output<'a> {
    bytes: Vec<u8>,
    /// Length at the next look at the deadline.
    next: usize,
    max: u64,
    is_full: bool,
    deadline: &'a Deadline,
}

impl<'a> Output<'a> {
    /// Creates an output of `max` bytes at most.
    pub(crate) fn new(max: u64, deadline: &'a Deadline) -> Self {
        Self { bytes: Vec::new(), next: 0, max, is_full: false, deadline }
    }

    /// Returns true if more than the maximum was written.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the number of bytes that were written.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns what was written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() >= self.next {
            self.deadline.step()?;
            self.next = self.bytes.len() + STEP_BYTES;
        }
        if (self.bytes.len() + bytes.len()) as u64 > self.max {
            self.is_full = true;
            return Err(io::Error::other("the file is full"));
        }
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_its_cpu_time_is_used_up_or_when_it_is_stopped() {
        let stop = Stop::default();
        let deadline = Deadline::after(Duration::from_secs(3600), stop.flag());
        let late = Deadline::after(Duration::ZERO, stop.flag());
        assert_eq!((deadline.check(), late.check()), (Ok(()), Err(Ended::Late)));
        let mut bytes = Vec::new();
        assert!(Source::new(&[1; 9000], &late).read_to_end(&mut bytes).is_err() && bytes.is_empty());
        Source::new(&[1; 9000], &deadline).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 9000);
        drop(stop);
        assert_eq!(deadline.check(), Err(Ended::Stopped));
        assert!(Source::new(&[1; 9000], &deadline).fill_buf().is_err());
    }

    #[test]
    fn nothing_is_written_beyond_the_maximum() {
        let stop = Stop::default();
        let deadline = Deadline::after(Duration::from_secs(3600), stop.flag());
        let mut output = Output::new(10, &deadline);
        output.write_all(&[1; 10]).unwrap();
        assert!(!output.is_full());
        assert!(output.write_all(&[1]).is_err() && output.is_full());
        assert_eq!(output.into_bytes().len(), 10);
    }
}
