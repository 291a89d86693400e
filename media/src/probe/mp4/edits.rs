//! Edit lists: which parts of a track are shown, and when.
//!
//! Most programs write one that only says that the track begins with its first picture, which is decoded some frames before
//! it is shown. Such a list changes nothing, and platforms whose documentation wants none take these files.
//! ISO/IEC 14496-12, 8.6.6

use super::{Box, Track, number, read_range};
use std::{
    io::{self, Read, Seek},
    time::Duration,
};

/// Entries that are read: more than one say enough.
const MAX_ENTRIES: u64 = 16;
/// Time that an edit has to leave out or add to count. Times are rounded to frames, and sound may begin a little earlier
/// than the pictures.
const LEAST: Duration = Duration::from_millis(100);
/// Rate of a part that is shown as it is: 1.0.
const PLAIN_RATE: u32 = 1 << 16;

/// A part of the presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// Length in units of the movie; 0 for all that is left.
    length: u64,
    /// Beginning in units of the track; `None` for a pause.
    start: Option<u64>,
    rate: u32,
}

/// Reads an edit list.
pub(super) fn read(file: &mut (impl Read + Seek), list: &Box) -> io::Result<Vec<Edit>> {
    let bytes = read_range(file, list.start, list.end.min(list.start + 8 + MAX_ENTRIES * 20))?;
    let is_wide = bytes.first().is_some_and(|version| *version == 1);
    let width = if is_wide { 20 } else { 12 };
    let count = usize::try_from(number(&bytes, 4)).unwrap_or(usize::MAX);
    let entries = bytes.get(8..).unwrap_or_default().chunks_exact(width).take(count);
    let wide =
        |entry: &[u8], at: usize| u64::from(number(entry, at)) << 32 | u64::from(number(entry, at + 4));
    Ok(entries
        .map(|entry| match is_wide {
            true => Edit {
                length: wide(entry, 0),
                start: u64::try_from(wide(entry, 8).cast_signed()).ok(),
                rate: number(entry, 16),
            },
            false => Edit {
                length: number(entry, 0).into(),
                start: u64::try_from(number(entry, 4).cast_signed()).ok(),
                rate: number(entry, 8),
            },
        })
        .collect())
}

/// Returns true if the edit list of a track leaves out, repeats or delays some of it. `scale` are the units of the movie in
/// a second.
pub(super) fn edit(scale: u32, track: &Track) -> bool {
    let seconds = |units: u64, scale: u32| super::duration(units, scale).unwrap_or_default();
    let pause: u64 = track.edits.iter().filter(|edit| edit.start.is_none()).map(|edit| edit.length).sum();
    let mut parts = track.edits.iter().filter_map(|edit| Some((edit, edit.start?)));
    let Some((part, start)) = parts.next() else { return false };
    let shown = seconds(part.length, scale);
    let begin = seconds(start.saturating_sub(u64::try_from(track.first_offset).unwrap_or(0)), track.scale);
    let left_out = track.duration.unwrap_or_default().saturating_sub(begin + shown);
    parts.next().is_some()
        || part.rate != PLAIN_RATE
        || seconds(pause, scale) > LEAST
        || begin > LEAST
        || (part.length > 0 && left_out > LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns a track of 4 s in 24,000 units a second, whose first picture is shown 2000 units late.
    fn track(edits: &[(u64, i64, u32)], is_wide: bool) -> Track {
        let entry = |(length, start, rate): &(u64, i64, u32)| match is_wide {
            true => [&length.to_be_bytes()[..], &start.to_be_bytes(), &rate.to_be_bytes()].concat(),
            false => [*length as u32, *start as u32, *rate].map(u32::to_be_bytes).concat(),
        };
        let entries: Vec<_> = edits.iter().flat_map(entry).collect();
        let content = [&[u8::from(is_wide), 0, 0, 0, 0, 0, 0, edits.len() as u8][..], &entries].concat();
        let list = Box { kind: *b"elst", kind_at: 0, start: 0, end: content.len() as u64 };
        let edits = read(&mut Cursor::new(content), &list).unwrap();
        let duration = Some(Duration::from_secs(4));
        Track { scale: 24_000, first_offset: 2000, duration, edits, ..Track::default() }
    }

    #[test]
    fn a_list_that_changes_nothing_does_not_count() {
        const PLAIN: u32 = PLAIN_RATE;
        for (edits, expected) in [
            (&[][..], false),
            (&[(4000, 2000, PLAIN)], false),
            (&[(4000, 0, PLAIN)], false),
            // To the end; rounded; after a moment in which only sound is heard.
            (&[(0, 2000, PLAIN)], false),
            (&[(3960, 3000, PLAIN)], false),
            (&[(50, -1, PLAIN), (4000, 2000, PLAIN)], false),
            // Of its beginning or its end something is left out.
            (&[(3000, 26_000, PLAIN)], true),
            (&[(3000, 2000, PLAIN)], true),
            // Delayed, in two parts, a still picture.
            (&[(1000, -1, PLAIN), (4000, 2000, PLAIN)], true),
            (&[(2000, 2000, PLAIN), (2000, 50_000, PLAIN)], true),
            (&[(4000, 2000, 0)], true),
        ] {
            for is_wide in [false, true] {
                assert_eq!(edit(1000, &track(edits, is_wide)), expected, "{edits:?} {is_wide}");
            }
        }
    }
}
