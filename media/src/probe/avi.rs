//! AVI: chunks of a RIFF container, with the description before the samples.
//! <https://learn.microsoft.com/windows/win32/directshow/avi-riff-file-reference>

use super::{Dimensions, codec, malformed, riff, take_at, truncated};
use crate::file::{Refusal, broken, unfit};
use domain::{MediaKind, media::Facts};
use std::{
    io::{self, Read, Seek},
    time::Duration,
};

/// Maximum number of chunks read per level.
const MAX_CHUNKS: usize = 4096;

/// A chunk: its id, or the type of a list, where it begins, and start and end of its content.
pub(crate) struct Chunk {
    pub(crate) id: [u8; 4],
    pub(crate) is_list: bool,
    pub(crate) at: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

#[derive(Default)]
struct Movie {
    pixels: Option<(u32, u32)>,
    duration: Option<Duration>,
    facts: Facts,
    has_samples: bool,
}

/// Reads an AVI video.
pub(super) fn probe(file: &mut (impl Read + Seek), size: u64) -> Result<Dimensions, Refusal> {
    let movie = read(file, size).map_err(|error| broken(&error))?;
    let pixels = movie.pixels.ok_or_else(|| unfit("the file has no video track"))?;
    if !movie.has_samples {
        return Err(broken(&truncated()));
    }
    let Movie { duration, facts, .. } = movie;
    let pixels = Some(pixels);
    Ok(Dimensions { pixels, duration, facts, ..Dimensions::none(MediaKind::Video, "video/x-msvideo") })
}

fn read(file: &mut (impl Read + Seek), size: u64) -> io::Result<Movie> {
    riff(file, size)?;
    let mut movie = Movie::default();
    each(file, 0, size, &mut |file, part| {
        if part.is_list && &part.id == b"AVI " {
            each(file, part.start, part.end, &mut |file, part| {
                match (&part.id, part.is_list) {
                    (b"hdrl", true) => header(file, &part, &mut movie)?,
                    (b"movi", true) => movie.has_samples = true,
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok(movie)
}

fn header(file: &mut (impl Read + Seek), header: &Chunk, movie: &mut Movie) -> io::Result<()> {
    each(file, header.start, header.end, &mut |file, part| {
        if !part.is_list || &part.id != b"strl" {
            return Ok(());
        }
        let (mut is_video, mut is_audio) = (false, false);
        each(file, part.start, part.end, &mut |file, part| {
            match &part.id {
                b"strh" => {
                    let kind: [u8; 4] = take_at(file, part.start)?;
                    (is_video, is_audio) = (kind == *b"vids", kind == *b"auds");
                    let mut number = |at| take_at(file, part.start + at).map(u32::from_le_bytes);
                    let (scale, rate, length) = (number(20)?, number(24)?, number(32)?);
                    if is_video && rate > 0 {
                        let millis = u128::from(length) * u128::from(scale) * 1000 / u128::from(rate);
                        let length = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
                        movie.duration = movie.duration.or(Some(length).filter(|length| !length.is_zero()));
                        let rate = codec::frame_rate(rate.into(), scale.into());
                        movie.facts.frame_rate = movie.facts.frame_rate.or(rate);
                    }
                }
                b"strf" if is_video && movie.pixels.is_none() => {
                    let mut side = |at| take_at(file, part.start + at).map(i32::from_le_bytes);
                    // The height is negative if the first row is the upper one.
                    let (width, height) = (side(4)?.unsigned_abs(), side(8)?.unsigned_abs());
                    movie.pixels = (width > 0 && height > 0).then_some((width, height));
                    movie.facts.video_codec = codec::of_fourcc(take_at(file, part.start + 16)?);
                }
                b"strf" if is_audio && movie.facts.audio_codec.is_none() => {
                    let format = u16::from_le_bytes(take_at(file, part.start)?);
                    movie.facts.audio_codec = Some(codec::of_wave(format));
                }
                _ => {}
            }
            Ok(())
        })
    })
}

/// Visits a chunk.
pub(crate) type Visitor<'a, F> = dyn FnMut(&mut F, Chunk) -> io::Result<()> + 'a;

/// Calls `visit` for each chunk between two offsets.
pub(crate) fn each<F: Read + Seek>(
    file: &mut F,
    start: u64,
    end: u64,
    visit: &mut Visitor<'_, F>,
) -> io::Result<()> {
    let mut at = start;
    for _ in 0..MAX_CHUNKS {
        // A list may end with a byte that fills up a word.
        if end.saturating_sub(at) < 8 {
            return if end.saturating_sub(at) < 2 { Ok(()) } else { Err(truncated()) };
        }
        let id: [u8; 4] = take_at(file, at)?;
        let length = u64::from(u32::from_le_bytes(take_at(file, at + 4)?));
        if !id.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            return Err(malformed("a chunk"));
        }
        let past = at + 8 + length;
        if past > end {
            return Err(truncated());
        }
        let is_list = matches!(&id, b"RIFF" | b"LIST");
        if is_list && length < 4 {
            return Err(malformed("a list"));
        }
        let (id, start) = if is_list { (take_at(file, at + 8)?, at + 12) } else { (id, at + 8) };
        visit(file, Chunk { id, is_list, at, start, end: past })?;
        at = past + length % 2;
    }
    Err(malformed("a list of very many chunks"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Cursor;

    pub(crate) fn chunk(id: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        [id, &length[..], content, &vec![0; content.len() % 2]].concat()
    }

    pub(crate) fn list(id: &[u8; 4], kind: &[u8; 4], content: &[Vec<u8>]) -> Vec<u8> {
        chunk(id, &[&kind[..], &content.concat()].concat())
    }

    /// A video of 25 frames per second, with these chunks behind the samples.
    pub(crate) fn movie(width: i32, height: i32, frames: u32, last: &[Vec<u8>]) -> Vec<u8> {
        let numbers = [1, 25, 0, frames].map(u32::to_le_bytes).concat();
        let strh = chunk(b"strh", &[&b"vidsH264"[..], &[0; 12], &numbers, &[0; 20]].concat());
        let sides = [40, width, height].map(i32::to_le_bytes).concat();
        let strf = chunk(b"strf", &[&sides[..], b"\x01\0\x18\0H264", &[0; 20]].concat());
        let hdrl = list(b"LIST", b"hdrl", &[chunk(b"avih", &[0; 56]), list(b"LIST", b"strl", &[strh, strf])]);
        let movi = list(b"LIST", b"movi", &[chunk(b"00dc", b"samples")]);
        list(b"RIFF", b"AVI ", &[vec![hdrl, movi], last.to_vec()].concat())
    }

    #[test]
    fn a_video_is_measured_and_has_to_be_whole() {
        let bytes = movie(640, -360, 50, &[]);
        let looked = probe(&mut Cursor::new(&bytes), bytes.len() as u64).unwrap();
        assert_eq!((looked.pixels, looked.duration), (Some((640, 360)), Some(Duration::from_secs(2))));
        let facts = looked.facts;
        assert_eq!((facts.video_codec.as_deref(), facts.frame_rate), (Some("h264"), Some(25_000)));
        for length in 0..bytes.len() {
            assert!(probe(&mut Cursor::new(&bytes[..length]), length as u64).is_err(), "{length} bytes");
        }
    }
}
