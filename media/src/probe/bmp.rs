//! BMP: a header and pixels.
//! <https://learn.microsoft.com/windows/win32/gdi/bitmap-storage>

use super::{Dimensions, malformed, take_at, truncated};
use crate::file::{Refusal, broken};
use domain::MediaKind;
use std::io::{self, Read, Seek};

/// Length of the file's header, which the picture's header follows.
const FILE_HEADER: u64 = 14;
/// Length of the shortest header with sides of 32 bits, `BITMAPINFOHEADER`.
const INFO_HEADER: u32 = 40;

/// Reads a BMP, and checks that all pixels are there.
pub(super) fn probe(file: &mut (impl Read + Seek), size: u64) -> Result<Dimensions, Refusal> {
    let pixels = read(file, size).map_err(|error| broken(&error))?;
    Ok(Dimensions { pixels: Some(pixels), ..Dimensions::none(MediaKind::Image, "image/bmp") })
}

fn read(file: &mut (impl Read + Seek), size: u64) -> io::Result<(u32, u32)> {
    let offset = u64::from(u32::from_le_bytes(take_at(file, 10)?));
    let length = u32::from_le_bytes(take_at(file, FILE_HEADER)?);
    if !(INFO_HEADER..=1024).contains(&length) {
        return Err(malformed("the header"));
    }
    let width = i32::from_le_bytes(take_at(file, FILE_HEADER + 4)?);
    // Negative if the first row is the upper one.
    let height = i32::from_le_bytes(take_at(file, FILE_HEADER + 8)?).unsigned_abs();
    let bits = u16::from_le_bytes(take_at(file, FILE_HEADER + 14)?);
    let compression = u32::from_le_bytes(take_at(file, FILE_HEADER + 16)?);
    let width = u32::try_from(width).ok().filter(|width| *width > 0);
    let width = width.filter(|_| height > 0).ok_or_else(|| malformed("the size of the picture"))?;
    let pixels = match compression {
        // Rows of whole 32-bit words; 3 and 6 only tell which bits are which color.
        0 | 3 | 6 if [1, 4, 8, 16, 24, 32].contains(&bits) => {
            (u64::from(width) * u64::from(bits)).div_ceil(32) * 4 * u64::from(height)
        }
        // Runs of equal pixels.
        1 | 2 => u32::from_le_bytes(take_at(file, FILE_HEADER + 20)?).into(),
        _ => return Err(malformed("the kind of pixels")),
    };
    if offset < FILE_HEADER + u64::from(length) {
        return Err(malformed("the header"));
    }
    if offset + pixels > size { Err(truncated()) } else { Ok((width, height)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_bmp_is_measured_and_has_to_be_whole() {
        // Rows of 7 pixels of three bytes, and three that fill up a word.
        let numbers = [40, 7, 5, 24 << 16 | 1, 0, 0, 0, 0, 0, 0].map(i32::to_le_bytes).concat();
        let mut bytes = [&b"BM\0\0\0\0\0\0\0\0\x36\0\0\0"[..], &numbers, &[0; 5 * 24]].concat();
        let read = |bytes: &[u8]| read(&mut Cursor::new(bytes), bytes.len() as u64).ok();
        assert_eq!(read(&bytes), Some((7, 5)));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "{length} bytes");
        }
        bytes[22..26].copy_from_slice(&(-5_i32).to_le_bytes());
        assert_eq!(read(&bytes), Some((7, 5)), "the first row is the upper one");
        bytes[18..22].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(read(&bytes), None);
    }
}
