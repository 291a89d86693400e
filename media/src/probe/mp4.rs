//! ISO base media (MP4, QuickTime, M4A, HEIF): nested boxes, of which `moov` may stand anywhere. Reads a
//! bounded number of box headers.
//! <https://mp4ra.org/registered-types/boxes>, ISO/IEC 14496-12

mod edits;
mod fragments;

use super::{Dimensions, codec, malformed, take_at, truncated};
use crate::{
    file::{Refusal, broken, read_range, unfit},
    format::Format,
};
use domain::{MediaKind, media::Facts};
use edits::Edit;
use fragments::Fragments;
use std::{
    io::{self, Read, Seek},
    time::Duration,
};

/// Maximum number of boxes read per level.
const MAX_BOXES: usize = 4096;
/// Maximum number of fragments that are visited one by one; each may be a request to the file store.
const MAX_FRAGMENTS: usize = 200;
/// Bytes that are read of the description of a track's samples, of its first codec.
const MAX_ENTRY: u64 = 64 << 10;
/// Bytes that are read of the table of a track's times: the average of so many entries is near enough to the whole.
const MAX_TIMES: u64 = 64 << 10;

/// A box: type and where it stands, and start and end of its content.
pub(crate) struct Box {
    pub(crate) kind: [u8; 4],
    pub(crate) kind_at: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Properties of a movie and of its tracks.
#[derive(Default)]
struct Movie {
    /// Units of its times in a second.
    scale: u32,
    duration: Option<Duration>,
    tracks: Vec<Track>,
    is_fragmented: bool,
    /// True if the index precedes the samples.
    index_first: bool,
}

#[derive(Default)]
struct Track {
    id: u32,
    handler: [u8; 4],
    /// Units of its times in a second.
    scale: u32,
    duration: Option<Duration>,
    pixels: Option<(u32, u32)>,
    codec: Option<String>,
    bit_depth: Option<u8>,
    chroma: Option<&'static str>,
    frame_rate: Option<u32>,
    /// Entries of its edit list.
    edits: Vec<Edit>,
    /// Units by which the first sample is shown later than it is decoded.
    first_offset: i32,
    /// Units that a sample of a fragment lasts, if the fragment does not say it.
    sample_length: u32,
}

impl Movie {
    fn track(&self, handler: [u8; 4]) -> Option<&Track> {
        self.tracks.iter().find(|track| track.handler == handler)
    }

    fn facts(&self) -> Facts {
        let video = self.tracks.iter().find(|track| track.handler == *b"vide" && track.pixels.is_some());
        Facts {
            video_codec: video.and_then(|track| track.codec.clone()),
            audio_codec: self.track(*b"soun").and_then(|track| track.codec.clone()),
            frame_rate: video.and_then(|track| track.frame_rate),
            bit_depth: video.and_then(|track| track.bit_depth),
            chroma: video.and_then(|track| track.chroma).map(str::to_owned),
            index_first: Some(self.index_first),
            is_fragmented: Some(self.is_fragmented),
            // The index of a movie in fragments says neither how long a track is nor when its first sample is shown.
            has_edits: video.filter(|_| !self.is_fragmented).map(|track| edits::edit(self.scale, track)),
            ..Facts::default()
        }
    }
}

/// Reads a video, or audio in the same container.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    let (movie, has_content) = find(file, size).map_err(|error| broken(&error))?;
    let movie = movie.ok_or_else(|| unfit("the file describes neither video nor audio"))?;
    if !has_content {
        return Err(broken(&truncated()));
    }
    let longest = movie.tracks.iter().filter_map(|track| track.duration).max();
    let duration = movie.duration.or(longest).filter(|duration| !duration.is_zero());
    let facts = movie.facts();
    let of_video = movie.tracks.iter().filter(|track| track.handler == *b"vide");
    if let Some(pixels) = of_video.filter_map(|track| track.pixels).next() {
        let mime = if format.kind == MediaKind::Video { format.mime } else { "video/mp4" };
        let pixels = Some(pixels);
        return Ok(Dimensions { pixels, duration, facts, ..Dimensions::none(MediaKind::Video, mime) });
    }
    if movie.track(*b"soun").is_some() {
        return Ok(Dimensions { duration, facts, ..Dimensions::none(MediaKind::Audio, "audio/mp4") });
    }
    Err(unfit("the file has neither a video nor an audio track"))
}

/// Returns the movie's description, and true if the file also has media data.
fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<(Option<Movie>, bool)> {
    let (mut found, mut has_content): (Option<Movie>, bool) = (None, false);
    let mut fragments = Fragments::default();
    let is_whole = each_while(file, 0, size, |file, part| {
        match &part.kind {
            b"moov" if found.is_none() => {
                found = Some(Movie { index_first: !has_content, ..movie(file, &part)? });
            }
            b"mdat" => has_content = true,
            b"moof" => fragments.push(part),
            _ => {}
        }
        Ok(fragments.count < MAX_FRAGMENTS)
    })?;
    if let Some(movie) = &mut found
        && fragments.count > 0
    {
        movie.is_fragmented = true;
        fragments.measure(file, size, is_whole, movie)?;
    }
    Ok((found, has_content))
}

fn movie(file: &mut (impl Read + Seek), moov: &Box) -> io::Result<Movie> {
    let mut movie = Movie::default();
    // A fragmented movie states its duration in `mehd`.
    let mut whole = 0;
    let mut defaults = Vec::new();
    each(file, moov.start, moov.end, |file, part| {
        match &part.kind {
            b"mvhd" => {
                let (timescale, length) = times(file, &part)?;
                (movie.scale, movie.duration) = (timescale, duration(length, timescale));
            }
            b"trak" => movie.tracks.push(track(file, &part)?),
            b"mvex" => each(file, part.start, part.end, |file, part| {
                match &part.kind {
                    b"mehd" => {
                        whole = match take_at::<1>(file, part.start)? {
                            [0] => u32::from_be_bytes(take_at(file, part.start + 4)?).into(),
                            _ => u64::from_be_bytes(take_at(file, part.start + 4)?),
                        };
                    }
                    b"trex" => defaults.push([
                        u32::from_be_bytes(take_at(file, part.start + 4)?),
                        u32::from_be_bytes(take_at(file, part.start + 12)?),
                    ]),
                    _ => {}
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    movie.duration = movie.duration.or(duration(whole, movie.scale));
    for [id, length] in defaults {
        for track in movie.tracks.iter_mut().filter(|track| track.id == id) {
            track.sample_length = length;
        }
    }
    Ok(movie)
}

fn track(file: &mut (impl Read + Seek), trak: &Box) -> io::Result<Track> {
    let mut track = Track::default();
    each(file, trak.start, trak.end, |file, part| {
        match &part.kind {
            b"tkhd" => {
                let at = if take_at(file, part.start)? == [0] { 12 } else { 20 };
                track.id = u32::from_be_bytes(take_at(file, part.start + at)?);
                track.pixels = pixels(file, &part)?;
            }
            b"edts" => each(file, part.start, part.end, |file, part| {
                if &part.kind == b"elst" {
                    track.edits = edits::read(file, &part)?;
                }
                Ok(())
            })?,
            b"mdia" => each(file, part.start, part.end, |file, part| {
                match &part.kind {
                    b"mdhd" => {
                        let (timescale, length) = times(file, &part)?;
                        (track.scale, track.duration) = (timescale, duration(length, timescale));
                    }
                    b"hdlr" => track.handler = take_at(file, part.start + 8)?,
                    b"minf" => each(file, part.start, part.end, |file, part| match &part.kind {
                        b"stbl" => samples(file, &part, &mut track),
                        _ => Ok(()),
                    })?,
                    _ => {}
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(track)
}

/// Reads the codec and the times of a track's samples. What is not as it should be is no fact, and no reason to refuse.
fn samples(file: &mut (impl Read + Seek), table: &Box, track: &mut Track) -> io::Result<()> {
    each(file, table.start, table.end, |file, part| {
        let rest = part.end - part.start;
        match &part.kind {
            b"stsd" => {
                let bytes = read_range(file, part.start, part.start + rest.min(MAX_ENTRY))?;
                if let Some((name, entry)) = boxes(bytes.get(8..).unwrap_or_default()).next() {
                    describe(name, entry, track);
                }
            }
            b"stts" => {
                let bytes = read_range(file, part.start, part.start + rest.min(MAX_TIMES))?;
                let entries = bytes.get(8..).unwrap_or_default().chunks_exact(8);
                let (mut frames, mut units) = (0_u128, 0_u128);
                for entry in entries {
                    let count = u128::from(number(entry, 0));
                    frames += count;
                    units += count * u128::from(number(entry, 4));
                }
                track.frame_rate = codec::frame_rate(frames * u128::from(track.scale), units);
            }
            b"ctts" => {
                let bytes = read_range(file, part.start, part.start + rest.min(16))?;
                track.first_offset = number(&bytes, 12).cast_signed();
            }
            _ => {}
        }
        Ok(())
    })
}

/// Reads the description of a codec, which boxes follow at a place of its kind.
fn describe(name: [u8; 4], entry: &[u8], track: &mut Track) {
    track.codec = codec::of_fourcc(name);
    let children = match &track.handler {
        b"vide" => 78,
        // QuickTime has longer ones.
        b"soun" => match entry.get(8..10) {
            Some([0, 1]) => 44,
            Some([0, 2]) => 64,
            _ => 28,
        },
        _ => return,
    };
    let configurations = [*b"avcC", *b"hvcC", *b"vpcC", *b"av1C"];
    for (kind, content) in boxes(entry.get(children..).unwrap_or_default()) {
        if configurations.contains(&kind) {
            let name = track.codec.as_deref().unwrap_or_default();
            track.bit_depth = codec::bit_depth(name, content);
            track.chroma = codec::chroma(name, content);
        }
        if &kind == b"esds" && object_type(content).is_some_and(|kind| matches!(kind, 0x69 | 0x6b)) {
            track.codec = Some("mp3".to_owned());
        }
    }
}

/// Returns the type of a stream in the descriptors of MPEG-4. ISO/IEC 14496-1, 7.2.6
fn object_type(descriptors: &[u8]) -> Option<u8> {
    let mut rest = descriptors.get(4..)?;
    loop {
        let (tag, mut length) = (*rest.first()?, 1);
        // Up to four bytes of a length, of which all but the last have the upper bit.
        while length < 4 && rest.get(length)? & 0x80 != 0 {
            length += 1;
        }
        rest = rest.get(length + 1..)?;
        match tag {
            // The number of the stream and flags.
            3 => rest = rest.get(3..)?,
            4 => return rest.first().copied(),
            _ => return None,
        }
    }
}

/// Returns the number at a place of a box that is long enough, else 0.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
}

/// Returns the boxes in these bytes, as far as they are whole.
fn boxes(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let kind = rest.get(4..8)?.try_into().expect("four bytes");
        let size = usize::try_from(number(rest, 0)).ok()?;
        let content = rest.get(8..size)?;
        rest = &rest[size..];
        Some((kind, content))
    })
}

/// Returns the time scale and duration in the header of a movie or track.
fn times(file: &mut (impl Read + Seek), header: &Box) -> io::Result<(u32, u64)> {
    let (scale, length) = match take_at::<1>(file, header.start)? {
        [0] => {
            let [scale, length]: [[u8; 4]; 2] = halves(take_at::<8>(file, header.start + 12)?);
            // All ones: unknown.
            let length = u32::from_be_bytes(length);
            (scale, if length == u32::MAX { 0 } else { length.into() })
        }
        _ => {
            let scale = take_at(file, header.start + 20)?;
            let length = u64::from_be_bytes(take_at(file, header.start + 24)?);
            (scale, if length == u64::MAX { 0 } else { length })
        }
    };
    Ok((u32::from_be_bytes(scale), length))
}

fn halves(bytes: [u8; 8]) -> [[u8; 4]; 2] {
    let [a, b, c, d, e, f, g, h] = bytes;
    [[a, b, c, d], [e, f, g, h]]
}

fn duration(length: u64, scale: u32) -> Option<Duration> {
    let millis = u128::from(length) * 1000 / u128::from((scale > 0).then_some(scale)?);
    Some(Duration::from_millis(u64::try_from(millis).ok()?)).filter(|duration| !duration.is_zero())
}

/// Returns width and height as displayed: a portrait video may be stored in landscape with a rotation.
fn pixels(file: &mut (impl Read + Seek), header: &Box) -> io::Result<Option<(u32, u32)>> {
    let [version] = take_at(file, header.start)?;
    let matrix = header.start + if version == 0 { 40 } else { 52 };
    let [a, b]: [[u8; 4]; 2] = halves(take_at::<8>(file, matrix)?);
    let [width, height] = halves(take_at::<8>(file, matrix + 36)?).map(|side| u32::from_be_bytes(side) >> 16);
    let is_rotated = a == [0; 4] && b != [0; 4];
    let pixels = if is_rotated { (height, width) } else { (width, height) };
    Ok((width > 0 && height > 0).then_some(pixels))
}

/// Calls `visit` for each box between two offsets.
pub(crate) fn each<F: Read + Seek>(
    file: &mut F,
    start: u64,
    end: u64,
    mut visit: impl FnMut(&mut F, Box) -> io::Result<()>,
) -> io::Result<()> {
    each_while(file, start, end, |file, part| visit(file, part).map(|()| true)).map(drop)
}

/// Calls `visit` for each box between two offsets, until it returns false. Returns true if all were visited.
fn each_while<F: Read + Seek>(
    file: &mut F,
    start: u64,
    end: u64,
    mut visit: impl FnMut(&mut F, Box) -> io::Result<bool>,
) -> io::Result<bool> {
    let mut at = start;
    for _ in 0..MAX_BOXES {
        // QuickTime may end a list with four zero bytes.
        if end - at < 8 {
            return if end - at == 0 || end - at == 4 { Ok(true) } else { Err(truncated()) };
        }
        let [size, kind] = halves(take_at(file, at)?);
        let (head, size) = match u32::from_be_bytes(size) {
            0 => (8, end - at),
            1 => (16, u64::from_be_bytes(take_at(file, at + 8)?)),
            size => (8, size.into()),
        };
        if size < head || !kind.iter().all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | 0xa9)) {
            return Err(malformed("a box"));
        }
        if size > end - at {
            return Err(truncated());
        }
        let goes_on = visit(file, Box { kind, kind_at: at + 4, start: at + head, end: at + size })?;
        at += size;
        if at == end {
            return Ok(true);
        }
        if !goes_on {
            break;
        }
    }
    Ok(false)
}
