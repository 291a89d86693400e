//! Blocking `Read` and `Seek` over a file in an object store, as header parsers expect.
//!
//! Reads in windows and up to a budget in total, so that no file can make a probe read without end. To be
//! used on a thread that may block.

use crate::patience::{ANSWER_TIMEOUT, within};
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use std::{
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};
use tokio::runtime::Handle;

/// Bytes per request to the store, where reading goes on.
const WINDOW_BYTES: u64 = 256 << 10;
/// Bytes of a request for another place: often only the header of a block that is passed over.
const JUMP_BYTES: u64 = 32 << 10;

/// Calls of `read` and `seek` for one file. Parsers of 32 MiB of headers make some hundred thousand.
const MAX_CALLS: u32 = 10_000_000;

/// A reader of a stored file.
pub(crate) struct Window {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    pub(crate) size: u64,
    runtime: Handle,
    position: u64,
    /// Offset and content of the last window.
    held: (u64, Bytes),
    /// Bytes that may still be read.
    budget: u64,
    /// Calls that may still be made: a parser that loops reads nothing new and would never end.
    calls: u32,
    /// Error of the store, which `io::Error` would hide.
    pub(crate) failure: Option<object_store::Error>,
}

impl Window {
    /// Creates a reader of a file of `size` bytes that reads at most `budget` bytes in total.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, path: Path, size: u64, budget: u64) -> Self {
        let held = (0, Bytes::new());
        Self {
            store,
            path,
            size,
            runtime: Handle::current(),
            position: 0,
            held,
            budget,
            calls: MAX_CALLS,
            failure: None,
        }
    }

    fn count(&mut self) -> io::Result<()> {
        let left = self.calls.checked_sub(1);
        self.calls = left.ok_or_else(|| io::Error::other("the file's headers do not end"))?;
        Ok(())
    }
}

impl Read for Window {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.count()?;
        if self.position >= self.size || into.is_empty() {
            return Ok(0);
        }
        let (start, held) = &self.held;
        if self.position < *start || self.position >= start + held.len() as u64 {
            let length = if self.position == start + held.len() as u64 { WINDOW_BYTES } else { JUMP_BYTES };
            let end = (self.position + length).min(self.size);
            self.budget = self
                .budget
                .checked_sub(end - self.position)
                .ok_or_else(|| io::Error::other("the file's headers are too far apart"))?;
            let read = self.store.get_range(&self.path, self.position..end);
            let read = self.runtime.block_on(within(ANSWER_TIMEOUT, read));
            let bytes = read.map_err(|error| {
                let message = io::Error::other(error.to_string());
                self.failure = Some(error);
                message
            })?;
            self.held = (self.position, bytes);
        }
        let (start, held) = &self.held;
        let rest = &held[(self.position - start) as usize..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Window {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.count()?;
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[tokio::test]
    async fn a_parser_that_goes_round_in_circles_ends() {
        let mut window = Window::new(Arc::new(InMemory::new()), Path::from("empty"), 0, 0);
        window.calls = 100;
        let mut rounds = 0;
        // Nothing is read, so no budget of bytes ends it.
        while window.read(&mut [0; 4]).is_ok() && window.seek(SeekFrom::Start(0)).is_ok() {
            rounds += 1;
            assert!(rounds <= 100, "the parser would never end");
        }
        assert_eq!(rounds, 50);
    }
}
