//! WebM and Matroska: EBML elements up to the first cluster, which the description precedes in a streamable file.
//! <https://www.rfc-editor.org/rfc/rfc8794>, <https://www.rfc-editor.org/rfc/rfc9559>

use super::{Dimensions, codec, malformed, take, truncated};
use crate::file::{Refusal, broken, read_range, unfit, unsupported};
use domain::{MediaKind, media::Facts};
use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

const HEADER: u32 = 0x1a45_dfa3;
const DOC_TYPE: u32 = 0x4282;
pub(crate) const SEGMENT: u32 = 0x1853_8067;
pub(crate) const CLUSTER: u32 = 0x1f43_b675;
const INFO: u32 = 0x1549_a966;
const SCALE: u32 = 0x2a_d7b1;
const DURATION: u32 = 0x4489;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const VIDEO: u32 = 0xe0;
const WIDTH: u32 = 0xb0;
const HEIGHT: u32 = 0xba;
const COLOR: u32 = 0x55b0;
const COLOR_BITS: u32 = 0x55b2;
const TRACK_TYPE: u32 = 0x83;
const AUDIO_TRACK: u64 = 2;
const CODEC: u32 = 0x86;
const CODEC_PRIVATE: u32 = 0x63a2;
/// Nanoseconds that a frame is shown.
const FRAME_LENGTH: u32 = 0x23_e383;

/// Maximum number of elements read per level.
const MAX_ELEMENTS: usize = 1024;
/// Maximum length of a value in bytes.
const MAX_VALUE_BYTES: u64 = 16;
/// Bytes that are read of a name or of a codec's configuration.
const MAX_BEGINNING: u64 = 4096;

/// An element: id and where it begins, and start and end of its content.
pub(crate) struct Element {
    pub(crate) id: u32,
    pub(crate) at: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

#[derive(Default)]
struct Movie {
    doc_type: Vec<u8>,
    scale: Option<u64>,
    duration: Option<f64>,
    pixels: Option<(u32, u32)>,
    facts: Facts,
}

/// Reads a WebM or Matroska video.
pub(super) fn probe(file: &mut (impl Read + Seek), size: u64) -> Result<Dimensions, Refusal> {
    let mut movie = Movie::default();
    read(file, size, &mut movie).map_err(|error| broken(&error))?;
    let mime = match &movie.doc_type[..] {
        b"webm" => "video/webm",
        b"matroska" => "video/x-matroska",
        _ => return Err(unsupported()),
    };
    let pixels = movie.pixels.ok_or_else(|| unfit("the file has no video track"))?;
    let nanoseconds = movie.duration.map(|length| length * movie.scale.unwrap_or(1_000_000) as f64);
    let duration = nanoseconds.filter(|length| length.is_finite() && *length > 0.0);
    let duration = duration.map(|length| Duration::from_nanos(length as u64));
    let pixels = Some(pixels);
    Ok(Dimensions { pixels, duration, facts: movie.facts, ..Dimensions::none(MediaKind::Video, mime) })
}

fn read(file: &mut (impl Read + Seek), size: u64, movie: &mut Movie) -> io::Result<()> {
    each(file, 0, size, &mut |file, element| {
        match element.id {
            HEADER => each(file, element.start, element.end, &mut |file, element| {
                if element.id == DOC_TYPE {
                    movie.doc_type = value(file, &element)?;
                }
                Ok(true)
            })?,
            SEGMENT => {
                each(file, element.start, element.end, &mut |file, element| segment(file, &element, movie))?;
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    })
}

fn segment(file: &mut (impl Read + Seek), element: &Element, movie: &mut Movie) -> io::Result<bool> {
    match element.id {
        INFO => each(file, element.start, element.end, &mut |file, element| {
            match element.id {
                SCALE => movie.scale = Some(whole(file, &element)?),
                DURATION => movie.duration = Some(number(file, &element)?),
                _ => {}
            }
            Ok(true)
        })?,
        TRACKS => each(file, element.start, element.end, &mut |file, element| {
            if element.id == TRACK {
                track(file, &element, movie)?;
            }
            Ok(true)
        })?,
        _ => {}
    }
    Ok(element.id != CLUSTER)
}

fn track(file: &mut (impl Read + Seek), track: &Element, movie: &mut Movie) -> io::Result<()> {
    let (mut width, mut height, mut kind) = (None, None, None);
    let (mut name, mut configuration, mut frame, mut depth) = (None, Vec::new(), None, None);
    each(file, track.start, track.end, &mut |file, element| {
        match element.id {
            TRACK_TYPE => kind = Some(whole(file, &element)?),
            CODEC => name = codec::of_matroska(&beginning(file, &element)?),
            CODEC_PRIVATE => configuration = beginning(file, &element)?,
            FRAME_LENGTH => frame = Some(whole(file, &element)?),
            VIDEO => each(file, element.start, element.end, &mut |file, element| {
                match element.id {
                    WIDTH => width = u32::try_from(whole(file, &element)?).ok(),
                    HEIGHT => height = u32::try_from(whole(file, &element)?).ok(),
                    COLOR => each(file, element.start, element.end, &mut |file, element| {
                        if element.id == COLOR_BITS {
                            depth = u8::try_from(whole(file, &element)?).ok().filter(|depth| *depth > 0);
                        }
                        Ok(true)
                    })?,
                    _ => {}
                }
                Ok(true)
            })?,
            _ => {}
        }
        Ok(true)
    })?;
    let facts = &mut movie.facts;
    if let Some(pixels) = width.zip(height) {
        if movie.pixels.is_none() {
            movie.pixels = Some(pixels);
            // Of VP8 and VP9 there is no configuration in these files.
            let has_configuration = name.as_deref().filter(|name| matches!(*name, "h264" | "hevc" | "av1"));
            let configured = has_configuration.and_then(|name| codec::bit_depth(name, &configuration));
            facts.bit_depth = depth.or(configured);
            let chroma = has_configuration.and_then(|name| codec::chroma(name, &configuration));
            facts.chroma = chroma.map(str::to_owned);
            facts.frame_rate = frame.and_then(|length| codec::frame_rate(1_000_000_000, length.into()));
            facts.video_codec = name;
        }
    } else if kind == Some(AUDIO_TRACK) && facts.audio_codec.is_none() {
        facts.audio_codec = name;
    }
    Ok(())
}

/// Visits an element; returns false to stop.
pub(crate) type Visitor<'a, F> = dyn FnMut(&mut F, Element) -> io::Result<bool> + 'a;

/// Calls `visit` for each element between two offsets.
pub(crate) fn each<F: Read + Seek>(
    file: &mut F,
    start: u64,
    end: u64,
    visit: &mut Visitor<'_, F>,
) -> io::Result<()> {
    let mut at = start;
    for _ in 0..MAX_ELEMENTS {
        if at >= end {
            return Ok(());
        }
        file.seek(SeekFrom::Start(at))?;
        let (id, id_length) = vint(file, 4)?;
        let (length, length_length) = vint(file, 8)?;
        let head = id_length + length_length;
        // The length excludes its marker bit; all ones mean an unknown length, to the end.
        let ones = (1 << (7 * length_length)) - 1;
        let unknown = length & ones == ones;
        let length = length & ones;
        let start = at + head;
        let past = if unknown { end } else { start.saturating_add(length) };
        if past > end {
            return Err(truncated());
        }
        let id = u32::try_from(id).map_err(|_| malformed("an element"))?;
        if !visit(file, Element { id, at, start, end: past })? {
            return Ok(());
        }
        at = past;
    }
    Ok(())
}

/// Reads a variable-length integer including its marker bit, and returns it with its length in bytes.
fn vint(file: &mut impl Read, max_length: u64) -> io::Result<(u64, u64)> {
    let [first] = take(file)?;
    let length = u64::from(first.leading_zeros()) + 1;
    if length > max_length {
        return Err(malformed("an element"));
    }
    let mut number = u64::from(first);
    for _ in 1..length {
        number = number << 8 | u64::from(take::<1>(file)?[0]);
    }
    Ok((number, length))
}

fn value(file: &mut (impl Read + Seek), element: &Element) -> io::Result<Vec<u8>> {
    let length = element.end - element.start;
    if length > MAX_VALUE_BYTES {
        return Err(malformed("a value"));
    }
    file.seek(SeekFrom::Start(element.start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the beginning of a value that may be long.
fn beginning(file: &mut (impl Read + Seek), element: &Element) -> io::Result<Vec<u8>> {
    read_range(file, element.start, element.end.min(element.start + MAX_BEGINNING))
}

/// Reads an unsigned integer.
pub(crate) fn whole(file: &mut (impl Read + Seek), element: &Element) -> io::Result<u64> {
    let bytes = value(file, element)?;
    if bytes.len() > 8 {
        return Err(malformed("a number"));
    }
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn number(file: &mut (impl Read + Seek), element: &Element) -> io::Result<f64> {
    let bytes = value(file, element)?;
    match <[u8; 8]>::try_from(&bytes[..]) {
        Ok(double) => Ok(f64::from_be_bytes(double)),
        Err(_) => match <[u8; 4]>::try_from(&bytes[..]) {
            Ok(single) => Ok(f32::from_be_bytes(single).into()),
            Err(_) => Err(malformed("a number")),
        },
    }
}
