//! Bytes of an encoder, which may write no more of them beyond a maximum.

use std::io::{self, Write};

/// The bytes that an encoder writes.
pub(crate) struct Output {
    bytes: Vec<u8>,
    max: u64,
    is_full: bool,
}

impl Output {
    /// Creates an output of `max` bytes at most.
    pub(crate) fn new(max: u64) -> Self {
        Self { bytes: Vec::new(), max, is_full: false }
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

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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
    fn nothing_is_written_beyond_the_maximum() {
        let mut output = Output::new(10);
        output.write_all(&[1; 10]).unwrap();
        assert!(!output.is_full());
        assert!(output.write_all(&[1]).is_err() && output.is_full());
        assert_eq!(output.into_bytes().len(), 10);
    }
}
