//! Fragments of a movie, as OBS and browsers record them: how long they are together, and their frames. Their index says
//! when each begins, so that the first and the last tell the length.
//! ISO/IEC 14496-12, 8.8

use super::{Box, Movie, Track, boxes, codec, number, read_range};
use std::{
    collections::BTreeMap,
    io::{self, Read, Seek},
    time::Duration,
};

/// Bytes that are read of a fragment's index, and of the list of fragments at the end.
const MAX_INDEX: u64 = 1 << 20;

/// Fewer frames say nothing of the frame rate: the first one is often longer.
const MIN_FRAMES: u64 = 10;

/// The fragments of a movie that were visited.
#[derive(Default)]
pub(super) struct Fragments {
    pub(super) count: usize,
    first: Option<Box>,
    /// The last ones: tracks may have fragments of their own.
    last: [Option<Box>; 2],
}

impl Fragments {
    pub(super) fn push(&mut self, fragment: Box) {
        self.count += 1;
        let fragment = Some(fragment);
        if self.first.is_none() {
            self.first = fragment;
        } else {
            self.last = [fragment, self.last[0].take()];
        }
    }

    /// Measures the length of a movie of these fragments, and its frame rate, unless it states them itself. Of a movie with
    /// more than were visited the list at its end leads to the last one; without that list its length is not known.
    pub(super) fn measure(
        &self,
        file: &mut (impl Read + Seek),
        size: u64,
        is_whole: bool,
        movie: &mut Movie,
    ) -> io::Result<()> {
        let mut visited: Vec<_> = self.first.iter().chain(self.last.iter().flatten()).map(range).collect();
        let mut ends = is_whole;
        if !is_whole && let Some(last) = listed(file, size)? {
            visited.push(last);
            ends = true;
        }
        let (mut begin, mut end) = (None::<Duration>, None::<Duration>);
        let mut frames = BTreeMap::<u32, (u64, u64)>::new();
        for (index, (start, past)) in visited.into_iter().enumerate() {
            let bytes = read_range(file, start, past.min(start + MAX_INDEX))?;
            for (_, run) in boxes(&bytes).filter(|(kind, _)| kind == b"traf") {
                let Some((track, run)) = Run::read(run, &movie.tracks) else { continue };
                if index == 0 {
                    begin = Some(begin.map_or(run.start, |begin| begin.min(run.start)));
                }
                end = end.max(Some(run.end));
                let (samples, units) = frames.entry(track.id).or_default();
                *samples = samples.saturating_add(run.samples);
                *units = units.saturating_add(run.units);
            }
        }
        for track in movie.tracks.iter_mut().filter(|track| track.frame_rate.is_none()) {
            let seen = frames.get(&track.id).filter(|(samples, _)| *samples >= MIN_FRAMES);
            track.frame_rate = seen.and_then(|(samples, units)| {
                codec::frame_rate(u128::from(*samples) * u128::from(track.scale), (*units).into())
            });
        }
        let length = begin.zip(end).and_then(|(begin, end)| end.checked_sub(begin));
        let length = length.filter(|length| !length.is_zero());
        let states_length = movie.duration.is_some_and(|length| !length.is_zero());
        if ends && !states_length {
            movie.duration = length;
        }
        Ok(())
    }
}

fn range(part: &Box) -> (u64, u64) {
    (part.start, part.end)
}

/// Returns where the last fragment is by the list at the end of the file, if it has one.
fn listed(file: &mut (impl Read + Seek), size: u64) -> io::Result<Option<(u64, u64)>> {
    let end = read_range(file, size.saturating_sub(16), size)?;
    if end.get(4..8) != Some(b"mfro") {
        return Ok(None);
    }
    let length = u64::from(number(&end, 12)).min(MAX_INDEX);
    let bytes = read_range(file, size.saturating_sub(length), size)?;
    let Some((_, lists)) = boxes(&bytes).find(|(kind, _)| kind == b"mfra") else { return Ok(None) };
    let places = boxes(lists).filter(|(kind, _)| kind == b"tfra").filter_map(|(_, list)| {
        let width = if list.first()? == &0 { 4 } else { 8 };
        // Three numbers of one to four bytes each follow the time and the place.
        let lengths = number(list, 8);
        let numbers = [4, 2, 0].map(|shift| (lengths >> shift & 3) as usize + 1).iter().sum::<usize>();
        let entry = 2 * width + numbers;
        let last = usize::try_from(number(list, 12)).ok()?.checked_sub(1)?;
        let at = last.checked_mul(entry)?.checked_add(16 + width)?;
        let place = list.get(at..at.checked_add(width)?)?;
        Some(place.iter().fold(0_u64, |place, byte| place << 8 | u64::from(*byte)))
    });
    let Some(place) = places.max().filter(|place| *place < size) else { return Ok(None) };
    let head = read_range(file, place, size.min(place + 8))?;
    let past = place + u64::from(number(&head, 0));
    let is_fragment = head.get(4..8) == Some(b"moof") && past <= size && past >= place + 8;
    Ok(is_fragment.then_some((place + 8, past)))
}

/// Samples of one track in a fragment.
struct Run {
    start: Duration,
    end: Duration,
    samples: u64,
    /// Their length in units of the track.
    units: u64,
}

impl Run {
    /// Reads the samples of a track in a fragment, and returns them with the track.
    fn read<'a>(bytes: &[u8], tracks: &'a [Track]) -> Option<(&'a Track, Self)> {
        let (_, header) = boxes(bytes).find(|(kind, _)| kind == b"tfhd")?;
        let id = number(header, 4);
        let track = tracks.iter().find(|track| track.id == id && track.scale > 0)?;
        // Fields that the flags announce, in this order.
        let flags = number(header, 0);
        let before =
            [(0x1, 8), (0x2, 4)].iter().filter(|(flag, _)| flags & flag != 0).map(|(_, width)| width);
        let at = 8 + before.sum::<usize>();
        let sample_length = if flags & 0x8 != 0 { number(header, at) } else { track.sample_length };
        let (_, time) = boxes(bytes).find(|(kind, _)| kind == b"tfdt")?;
        let begin = match time.first()? {
            0 => u64::from(number(time, 4)),
            _ => u64::from(number(time, 4)) << 32 | u64::from(number(time, 8)),
        };
        let (mut samples, mut units) = (0_u64, 0_u64);
        for (_, run) in boxes(bytes).filter(|(kind, _)| kind == b"trun") {
            let (flags, count) = (number(run, 0), number(run, 4));
            samples = samples.saturating_add(count.into());
            if flags & 0x100 == 0 {
                units = units.saturating_add(u64::from(count) * u64::from(sample_length));
                continue;
            }
            let width = 4 * (flags >> 8 & 0xf).count_ones() as usize;
            let start = 8 + 4 * ((flags & 1) + (flags >> 2 & 1)) as usize;
            let listed = run.get(start..).unwrap_or_default().chunks_exact(width);
            for sample in listed.take(usize::try_from(count).unwrap_or(usize::MAX)) {
                units = units.saturating_add(number(sample, 0).into());
            }
        }
        let scale = track.scale;
        let at = |units: u64| super::duration(units, scale).unwrap_or_default();
        let run = Self { start: at(begin), end: at(begin.saturating_add(units)), samples, units };
        Some((track, run))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_FRAGMENTS, find};
    use std::{io::Cursor, time::Duration};

    fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        [&(content.len() as u32 + 8).to_be_bytes()[..], kind, &content].concat()
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    /// A movie without a length, whose track 7 has 1000 units a second, in samples of 40 units if nothing else is said.
    fn movie() -> Vec<u8> {
        let mvhd = boxed(b"mvhd", &[&[0; 12], &numbers(&[1000, 0]), &[0; 80]]);
        let tkhd = boxed(b"tkhd", &[&[0; 12], &numbers(&[7]), &[0; 60], &numbers(&[640 << 16, 360 << 16])]);
        let mdhd = boxed(b"mdhd", &[&[0; 12], &numbers(&[1000, 0, 0])]);
        let hdlr = boxed(b"hdlr", &[&[0; 8], b"vide", &[0; 13]]);
        let trak = boxed(b"trak", &[&tkhd, &boxed(b"mdia", &[&mdhd, &hdlr])]);
        let mvex = boxed(b"mvex", &[&boxed(b"trex", &[&numbers(&[0, 7, 1, 40, 0, 0])])]);
        [boxed(b"ftyp", &[b"isom\0\0\0\0"]), boxed(b"moov", &[&mvhd, &trak, &mvex])].concat()
    }

    /// A fragment of 25 samples that begins at this time.
    fn fragment(begin: u32, run: &[u8]) -> Vec<u8> {
        let tfhd = boxed(b"tfhd", &[&numbers(&[0, 7])]);
        let tfdt = boxed(b"tfdt", &[&numbers(&[0, begin])]);
        let traf = boxed(b"traf", &[&tfhd, &tfdt, &boxed(b"trun", &[run])]);
        [boxed(b"moof", &[&traf]), boxed(b"mdat", &[b"samples"])].concat()
    }

    fn look(file: &[u8]) -> (Option<Duration>, Option<u32>, bool) {
        let movie = find(&mut Cursor::new(file), file.len() as u64).unwrap().0.unwrap();
        (movie.duration, movie.tracks[0].frame_rate, movie.is_fragmented)
    }

    #[test]
    fn the_first_and_the_last_fragment_tell_the_length() {
        let plain = numbers(&[0, 25]);
        let run = |begin: u32| fragment(begin, &plain);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(look(&[movie(), run(0)].concat()), (seconds(1), Some(25_000), true));
        assert_eq!(
            look(&[movie(), run(5000), run(6000), run(7000)].concat()),
            (seconds(3), Some(25_000), true)
        );
        // With a length for each of the samples, behind an offset.
        let listed = [numbers(&[0x301, 25, 0]), numbers(&[80, 1000]).repeat(25)].concat();
        assert_eq!(look(&[movie(), fragment(0, &listed)].concat()), (seconds(2), Some(12_500), true));
        // Cut off, and of another track.
        assert_eq!(look(&[movie(), fragment(0, &listed[..13])].concat()).0, None);
        assert_eq!(look(&[movie(), boxed(b"moof", &[]), boxed(b"mdat", &[])].concat()), (None, None, true));
        let endless = numbers(&[0, u32::MAX]);
        assert!(look(&[movie(), fragment(u32::MAX, &endless)].concat()).0.is_some());
    }

    #[test]
    fn the_list_at_the_end_leads_to_the_last_of_many_fragments() {
        let count = MAX_FRAGMENTS as u32 + 100;
        let fragments: Vec<_> =
            (0..count).map(|second| fragment(second * 1000, &numbers(&[0, 25]))).collect();
        let file = [movie(), fragments.concat()].concat();
        assert_eq!(look(&file), (None, Some(25_000), true));
        let list = |place: u32| {
            let tfra = boxed(b"tfra", &[&numbers(&[0, 7, 0, 1, 0, place]), &[1, 1, 1]]);
            let length = tfra.len() as u32 + 8 + 16;
            boxed(b"mfra", &[&tfra, &boxed(b"mfro", &[&numbers(&[0, length])])])
        };
        let last = (file.len() - fragments[0].len()) as u32;
        let seconds = Some(Duration::from_secs(count.into()));
        assert_eq!(look(&[&file[..], &list(last)].concat()), (seconds, Some(25_000), true));
        for wrong in [0, last + 1, u32::MAX] {
            assert_eq!(look(&[&file[..], &list(wrong)].concat()).0, None, "{wrong}");
        }
    }
}
