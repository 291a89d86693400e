//! TIFF files: size and orientation of the first picture.
//!
//! Raw photos of cameras are TIFF files too, whose first picture is a small preview: they are refused, so that nobody
//! publishes the preview. <https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf>

use super::{Dimensions, malformed, take, take_at};
use crate::{
    file::{Refusal, broken, unfit},
    format::Format,
};
use pictures::Structure;
use std::io::{self, Read, Seek};

/// Maximum number of fields of a picture; a file has some twenty.
const MAX_FIELDS: u64 = 4096;

/// Fields of the first picture.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tiff {
    width: u64,
    height: u64,
    orientation: u8,
    is_preview: bool,
}

impl Tiff {
    pub(super) fn structure(&self) -> Structure {
        Structure::PLAIN.with_orientation(self.orientation)
    }
}

/// Reads the first picture's size.
pub(super) fn probe(file: &mut (impl Read + Seek), format: &'static Format) -> Result<Dimensions, Refusal> {
    let found = read(file).map_err(|error| broken(&error))?;
    if found.is_preview {
        return Err(unfit("this is a raw photo, which no platform takes; export it as JPEG"));
    }
    let side = |side: u64| u32::try_from(side).unwrap_or(u32::MAX);
    let sides = found.structure().displayed((side(found.width), side(found.height)));
    Ok(Dimensions { pixels: Some(sides), ..Dimensions::none(format.kind, format.mime) })
}

/// Reads the fields of the first picture.
pub(super) fn read(file: &mut (impl Read + Seek)) -> io::Result<Tiff> {
    let head: [u8; 8] = take_at(file, 0)?;
    let is_big_endian = head.starts_with(b"MM");
    let number = |bytes: &[u8]| {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    };
    let count = number(&take_at::<2>(file, number(&head[4..]))?);
    if count > MAX_FIELDS {
        return Err(malformed("the list of fields"));
    }
    let mut found = Tiff { orientation: 1, ..Tiff::default() };
    for _ in 0..count {
        let field: [u8; 12] = take(file)?;
        let length = match number(&field[2..4]) {
            1 => 1,
            3 => 2,
            _ => 4,
        };
        let value = number(&field[8..8 + length]);
        match number(&field[..2]) {
            // A smaller copy of another picture in the file.
            254 => found.is_preview |= value & 1 == 1,
            256 => found.width = value,
            257 => found.height = value,
            274 => found.orientation = u8::try_from(value).unwrap_or(1),
            // The version of DNG.
            50706 => found.is_preview = true,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file with these fields of 16 bits, in either order of bytes.
    fn tiff(is_big_endian: bool, fields: &[(u16, u16)]) -> Vec<u8> {
        let two = |number: u16| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        let four = |number: u32| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        let head = [if is_big_endian { b"MM" } else { b"II" }, &two(42)[..], &four(8)].concat();
        let field =
            |(tag, value): &(u16, u16)| [&two(*tag)[..], &two(3), &four(1), &two(*value), &[0; 2]].concat();
        let fields: Vec<_> = fields.iter().map(field).collect();
        [head, two(fields.len() as u16).to_vec(), fields.concat(), vec![0; 4]].concat()
    }

    #[test]
    fn a_tiff_is_measured_as_it_is_displayed() {
        for is_big_endian in [false, true] {
            let bytes = tiff(is_big_endian, &[(256, 40), (257, 30), (274, 6)]);
            let found = read(&mut Cursor::new(&bytes)).unwrap();
            assert_eq!((found.width, found.height, found.orientation), (40, 30, 6));
            assert_eq!(found.structure().displayed((40, 30)), (30, 40));
            for length in 0..bytes.len() - 4 {
                assert!(read(&mut Cursor::new(&bytes[..length])).is_err(), "{length} bytes");
            }
        }
    }

    #[test]
    fn a_raw_photo_is_refused_as_that() {
        let format = crate::format::format("image/tiff").unwrap();
        for field in [(254, 1), (50706, 1)] {
            let bytes = tiff(false, &[field, (256, 160), (257, 120)]);
            let refused = probe(&mut Cursor::new(&bytes), format).unwrap_err().to_string();
            assert!(refused.contains("raw photo") && refused.contains("JPEG"), "{refused}");
        }
    }
}
