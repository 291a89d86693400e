//! ISO base media (MP4, QuickTime, M4A, HEIF): nested boxes, of which `moov` may stand anywhere. Reads a
//! bounded number of box headers.
//! <https://mp4ra.org/registered-types/boxes>, ISO/IEC 14496-12

use super::{Dimensions, malformed, take_at, truncated};
use crate::{
    format::Format,
    inspect::{Refusal, broken, unfit},
};
use domain::MediaKind;
use std::{
    io::{self, Read, Seek},
    time::Duration,
};

/// Maximum number of boxes read per level: a fragmented movie has thousands, and the first suffice.
const MAX_BOXES: usize = 4096;

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
    duration: Option<Duration>,
    tracks: Vec<Track>,
}

#[derive(Default)]
struct Track {
    handler: [u8; 4],
    duration: Option<Duration>,
    pixels: Option<(u32, u32)>,
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
    let is = |handler: &'static [u8; 4]| move |track: &&Track| track.handler == *handler;
    let longest = movie.tracks.iter().filter_map(|track| track.duration).max();
    let duration = movie.duration.or(longest).filter(|duration| !duration.is_zero());
    if let Some(pixels) = movie.tracks.iter().filter(is(b"vide")).find_map(|track| track.pixels) {
        let mime = if format.kind == MediaKind::Video { format.mime } else { "video/mp4" };
        return Ok(Dimensions { kind: MediaKind::Video, mime, pixels: Some(pixels), frames: None, duration });
    }
    if movie.tracks.iter().any(|track| is(b"soun")(&track)) {
        return Ok(Dimensions {
            kind: MediaKind::Audio,
            mime: "audio/mp4",
            pixels: None,
            frames: None,
            duration,
        });
    }
    Err(unfit("the file has neither a video nor an audio track"))
}

/// Checks that the boxes fill the file to its end.
pub(super) fn check_boxes(file: &mut (impl Read + Seek), size: u64) -> io::Result<()> {
    each(file, 0, size, |_, _| Ok(()))
}

/// Returns the movie's description, and true if the file also has media data.
fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<(Option<Movie>, bool)> {
    let (mut found, mut has_content) = (None, false);
    each(file, 0, size, |file, part| {
        if &part.kind == b"moov" && found.is_none() {
            found = Some(movie(file, &part)?);
        }
        has_content |= &part.kind == b"mdat";
        Ok(())
    })?;
    Ok((found, has_content))
}

fn movie(file: &mut (impl Read + Seek), moov: &Box) -> io::Result<Movie> {
    let mut movie = Movie::default();
    // A fragmented movie states its duration in `mehd`.
    let (mut scale, mut whole) = (0, 0);
    each(file, moov.start, moov.end, |file, part| {
        match &part.kind {
            b"mvhd" => {
                let (timescale, length) = times(file, &part)?;
                (scale, movie.duration) = (timescale, duration(length, timescale));
            }
            b"trak" => movie.tracks.push(track(file, &part)?),
            b"mvex" => each(file, part.start, part.end, |file, part| {
                if &part.kind == b"mehd" {
                    whole = match take_at::<1>(file, part.start)? {
                        [0] => u32::from_be_bytes(take_at(file, part.start + 4)?).into(),
                        _ => u64::from_be_bytes(take_at(file, part.start + 4)?),
                    };
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    movie.duration = movie.duration.or(duration(whole, scale));
    Ok(movie)
}

fn track(file: &mut (impl Read + Seek), trak: &Box) -> io::Result<Track> {
    let mut track = Track::default();
    each(file, trak.start, trak.end, |file, part| {
        match &part.kind {
            b"tkhd" => track.pixels = pixels(file, &part)?,
            b"mdia" => each(file, part.start, part.end, |file, part| {
                match &part.kind {
                    b"mdhd" => {
                        let (timescale, length) = times(file, &part)?;
                        track.duration = duration(length, timescale);
                    }
                    b"hdlr" => track.handler = take_at(file, part.start + 8)?,
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
    let mut at = start;
    for _ in 0..MAX_BOXES {
        // QuickTime may end a list with four zero bytes.
        if end - at < 8 {
            return if end - at == 0 || end - at == 4 { Ok(()) } else { Err(truncated()) };
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
        visit(file, Box { kind, kind_at: at + 4, start: at + head, end: at + size })?;
        at += size;
        if at == end {
            return Ok(());
        }
    }
    Ok(())
}
