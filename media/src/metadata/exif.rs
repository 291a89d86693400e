//! EXIF data: the orientation, which is kept, and whether there is a position. Read by crate `kamadak-exif`.
//! <https://www.cipa.jp/std/documents/download_e.html?DC-008-Translation-2023-E>

use exif::{In, Reader, Tag};

/// The members of EXIF data that are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exif {
    /// From 1, upright, to 8.
    pub(super) orientation: u8,
    /// True if they name a position.
    pub(super) has_location: bool,
}

/// Reads EXIF data that begin with their TIFF header. Unreadable ones say nothing.
pub(super) fn read(tiff: &[u8]) -> Exif {
    let mut reader = Reader::new();
    reader.continue_on_error(true);
    let read = reader.read_raw(tiff.to_vec()).or_else(|error| error.distill_partial_result(|_| {}));
    let Ok(exif) = read else { return Exif { orientation: 1, has_location: false } };
    let orientation = exif.get_field(Tag::Orientation, In::PRIMARY).and_then(|field| field.value.get_uint(0));
    let has_location =
        [Tag::GPSLatitude, Tag::GPSLongitude].iter().any(|tag| exif.get_field(*tag, In::PRIMARY).is_some());
    Exif { orientation: orientation.and_then(|side| u8::try_from(side).ok()).unwrap_or(1), has_location }
}

/// Returns EXIF data with nothing but an orientation; `None` if it is the usual one.
pub(super) fn of_orientation(orientation: u8) -> Option<Vec<u8>> {
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
    (2..=8).contains(&orientation).then(|| [&b"MM\0*\0\0\0\x08\0\x01"[..], &entry, &[0; 4]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orientation_outlives_the_rest() {
        for orientation in 1..=8 {
            let before = read(&super::super::tests::exif(orientation));
            assert_eq!(before, Exif { orientation, has_location: true });
            let kept = of_orientation(orientation);
            assert_eq!(kept.is_some(), orientation != 1);
            if let Some(kept) = kept {
                assert_eq!(read(&kept), Exif { orientation, has_location: false });
            }
        }
        assert_eq!(read(b"nothing of this kind"), Exif { orientation: 1, has_location: false });
    }
}
