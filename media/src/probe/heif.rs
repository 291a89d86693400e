//! HEIF files: the size in which the primary picture is displayed, by its own boxes.

use super::{Dimensions, mp4};
use crate::{
    file::{Refusal, broken, unfit},
    format::Format,
};
use std::io::{self, Read, Seek, SeekFrom};

/// Maximum size of the boxes that describe the pictures of a file.
const MAX_DESCRIPTION: u64 = 4 << 20;

/// Reads the description of a complete file.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    let described = description(file, size).map_err(|error| broken(&error))?;
    let sides = described.and_then(|boxes| pictures::heif::displayed(&boxes).ok()).ok_or_else(|| {
        unfit(
            "no still picture is found in this file, which may have a sequence of pictures or another variant of its \
             format; save it as JPEG, or as MP4 if it moves",
        )
    })?;
    Ok(Dimensions { pixels: Some(sides), ..Dimensions::none(format.kind, format.mime) })
}

/// Returns the boxes that describe the pictures; `None` if they are too large.
fn description(file: &mut (impl Read + Seek), size: u64) -> io::Result<Option<Vec<u8>>> {
    let (mut boxes, mut is_small) = (Vec::new(), true);
    mp4::each(file, 0, size, |file, part| {
        if matches!(&part.kind, b"ftyp" | b"meta") {
            let start = part.kind_at - 4;
            is_small &= part.end - start + boxes.len() as u64 <= MAX_DESCRIPTION;
            if is_small {
                file.seek(SeekFrom::Start(start))?;
                file.take(part.end - start).read_to_end(&mut boxes)?;
            }
        }
        Ok(())
    })?;
    Ok(is_small.then_some(boxes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_sequence_without_a_still_picture_is_refused_as_that() {
        let file = b"\0\0\0\x10ftypmsf1\0\0\0\0\0\0\0\x0cmoov\0\0\0\0\0\0\0\x08mdat";
        let refusal = |file: &[u8]| {
            let format = crate::format::format("image/heif").unwrap();
            probe(&mut Cursor::new(file), file.len() as u64, format).unwrap_err().to_string()
        };
        let refused = refusal(file);
        assert!(refused.starts_with("no still picture is found") && refused.contains("JPEG"), "{refused}");
        assert_eq!(refusal(&file[..file.len() - 1]), "the file is truncated or damaged");
    }
}
