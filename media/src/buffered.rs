//! A buffered reader that keeps its buffer when it is moved within it.
//!
//! [`BufReader`] drops its buffer at each `seek`. Parsers here look at blocks by their offsets, and a file may have a
//! million blocks of a few bytes: for each of them a buffer would be filled again.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Size of the buffer.
const CAPACITY: usize = 64 << 10;

/// A buffered reader.
#[derive(Debug)]
pub(crate) struct Buffered<R> {
    reader: BufReader<R>,
    /// Offset of the next byte; `None` before the first move to an offset.
    position: Option<u64>,
}

impl<R: Read> Buffered<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(CAPACITY, reader), position: None }
    }
}

impl<R: Read> Read for Buffered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(into)?;
        self.position = self.position.map(|position| position + length as u64);
        Ok(length)
    }
}

impl<R: Read> BufRead for Buffered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.position = self.position.map(|position| position + length as u64);
        self.reader.consume(length);
    }
}

impl<R: Read + Seek> Seek for Buffered<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // After an error it is not known.
        let position = self.position.take();
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(offset) => position.and_then(|position| position.checked_add_signed(offset)),
            SeekFrom::End(_) => None,
        };
        let by = position.zip(target).and_then(|(position, target)| {
            i64::try_from(i128::from(target) - i128::from(position)).ok().map(|by| (target, by))
        });
        let reached = match by {
            Some((target, by)) => self.reader.seek_relative(by).map(|()| target)?,
            None => self.reader.seek(to)?,
        };
        self.position = Some(reached);
        Ok(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inspect, metadata, size_limits::SizeLimits};
    use std::io::Cursor;

    /// A file that counts what is read of it.
    struct Counting {
        file: Cursor<Vec<u8>>,
        read: u64,
    }

    impl Read for Counting {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.file.read(into)?;
            self.read += length as u64;
            Ok(length)
        }
    }

    impl Seek for Counting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn a_move_leads_where_it_would_without_a_buffer() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * CAPACITY).collect();
        let (mut plain, mut buffered) = (Cursor::new(&bytes), Buffered::new(Cursor::new(&bytes)));
        let far = CAPACITY as u64;
        for to in [
            SeekFrom::Current(7),
            SeekFrom::Start(10),
            SeekFrom::Current(-3),
            SeekFrom::Start(2 * far),
            SeekFrom::Start(5),
            SeekFrom::End(-1),
            SeekFrom::Current(-2),
            SeekFrom::Start(4 * far),
            SeekFrom::Start(1),
        ] {
            assert_eq!(buffered.seek(to).unwrap(), plain.seek(to).unwrap(), "{to:?}");
            let [mut one, mut other] = [[0; 2]; 2];
            assert_eq!(buffered.read(&mut one).unwrap(), plain.read(&mut other).unwrap(), "{to:?}");
            assert_eq!(one, other, "{to:?}");
            assert_eq!(buffered.stream_position().unwrap(), plain.stream_position().unwrap());
        }
        assert!(buffered.seek(SeekFrom::Current(-100)).is_err());
    }

    /// Files of very many blocks, which are whole and small.
    fn crumbs(count: usize) -> [(&'static str, Vec<u8>); 3] {
        let chunk = |parts: &[u8]| [&(parts.len() as u32 - 4).to_be_bytes()[..], parts, &[0; 4]].concat();
        let header = chunk(b"IHDR\0\0\0\x07\0\0\0\x05\x08\x02\0\0\0");
        let png = [&b"\x89PNG\r\n\x1a\n"[..], &header, &chunk(b"teXt").repeat(count), &chunk(b"IDAT\0")];
        let frame = b"\xff\xc0\0\x0b\x08\0\x05\0\x07\x01\x01\x11\0";
        let scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\0\xff\xd9";
        let jpeg = [&b"\xff\xd8"[..], frame, &vec![0xff; count], scan].concat();
        let gif = [
            &b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff"[..],
            &b"\x21\xfe\0".repeat(count),
            b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0;",
        ];
        let end = chunk(b"IEND");
        [("image/png", [png.concat(), end].concat()), ("image/jpeg", jpeg), ("image/gif", gif.concat())]
    }

    #[test]
    fn a_file_of_very_many_small_blocks_is_read_a_few_times() {
        for (kind, bytes) in crumbs(150_000) {
            let size = bytes.len() as u64;
            let mut file = Counting { file: Cursor::new(bytes), read: 0 };
            let found = inspect::inspect(&mut file, size, &Default::default(), &SizeLimits::default());
            assert_eq!(found.unwrap().content_type, kind);
            metadata::find(&mut file, size, kind).unwrap();
            // The beginning and the end are looked at, and each pass begins with a full buffer.
            assert!(file.read < 8 * size + (1 << 20), "{kind}: {} bytes of {size} were read", file.read);
        }
    }
}
