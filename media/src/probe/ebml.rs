//! WebM: EBML elements up to the first cluster, before which a file that is played as it comes says
//! what it is. <https://www.rfc-editor.org/rfc/rfc8794>, <https://www.rfc-editor.org/rfc/rfc9559>

use super::{Dimensions, malformed, take, truncated};
use crate::inspect::{Refusal, broken, unfit};
use domain::MediaKind;
use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

const HEADER: u32 = 0x1a45_dfa3;
const DOC_TYPE: u32 = 0x4282;
const SEGMENT: u32 = 0x1853_8067;
const CLUSTER: u32 = 0x1f43_b675;
const INFO: u32 = 0x1549_a966;
const SCALE: u32 = 0x2a_d7b1;
const DURATION: u32 = 0x4489;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const VIDEO: u32 = 0xe0;
const WIDTH: u32 = 0xb0;
const HEIGHT: u32 = 0xba;

/// Elements that are looked at on one level.
const MOST: usize = 1024;
/// The longest value that is read.
const VALUE: u64 = 16;

/// An element: its id, and where its content is.
struct Element {
    id: u32,
    start: u64,
    end: u64,
}

#[derive(Default)]
struct Film {
    is_webm: bool,
    scale: Option<u64>,
    duration: Option<f64>,
    pixels: Option<(u32, u32)>,
}

/// Reads a film.
pub(super) fn probe(file: &mut (impl Read + Seek), size: u64) -> Result<Dimensions, Refusal> {
    let mut film = Film::default();
    read(file, size, &mut film).map_err(|error| broken(&error))?;
    if !film.is_webm {
        return Err(unfit("the file is of no type that is taken"));
    }
    let pixels = film.pixels.ok_or_else(|| unfit("the file has no picture"))?;
    let nanoseconds = film.duration.map(|length| length * film.scale.unwrap_or(1_000_000) as f64);
    let duration = nanoseconds.filter(|length| length.is_finite() && *length > 0.0);
    let duration = duration.map(|length| Duration::from_nanos(length as u64));
    Ok(Dimensions { kind: MediaKind::Video, mime: "video/webm", pixels: Some(pixels), duration })
}

fn read(file: &mut (impl Read + Seek), size: u64, film: &mut Film) -> io::Result<()> {
    each(file, 0, size, &mut |file, element| {
        match element.id {
            HEADER => each(file, element.start, element.end, &mut |file, element| {
                if element.id == DOC_TYPE {
                    film.is_webm = value(file, &element)? == b"webm";
                }
                Ok(true)
            })?,
            SEGMENT => {
                each(file, element.start, element.end, &mut |file, element| segment(file, &element, film))?;
                return Ok(false);
            }
            _ => {}
        }
        Ok(true)
    })
}

fn segment(file: &mut (impl Read + Seek), element: &Element, film: &mut Film) -> io::Result<bool> {
    match element.id {
        INFO => each(file, element.start, element.end, &mut |file, element| {
            match element.id {
                SCALE => film.scale = Some(whole(file, &element)?),
                DURATION => film.duration = Some(number(file, &element)?),
                _ => {}
            }
            Ok(true)
        })?,
        TRACKS => each(file, element.start, element.end, &mut |file, element| {
            if element.id == TRACK {
                track(file, &element, film)?;
            }
            Ok(true)
        })?,
        _ => {}
    }
    Ok(element.id != CLUSTER)
}

fn track(file: &mut (impl Read + Seek), track: &Element, film: &mut Film) -> io::Result<()> {
    let (mut width, mut height) = (None, None);
    each(file, track.start, track.end, &mut |file, element| {
        if element.id == VIDEO {
            each(file, element.start, element.end, &mut |file, element| {
                match element.id {
                    WIDTH => width = u32::try_from(whole(file, &element)?).ok(),
                    HEIGHT => height = u32::try_from(whole(file, &element)?).ok(),
                    _ => {}
                }
                Ok(true)
            })?;
        }
        Ok(true)
    })?;
    film.pixels = film.pixels.or(width.zip(height));
    Ok(())
}

/// What looks at an element, and says whether to go on.
type Look<'a, F> = dyn FnMut(&mut F, Element) -> io::Result<bool> + 'a;

/// Hands over each element between two places.
fn each<F: Read + Seek>(file: &mut F, start: u64, end: u64, look: &mut Look<'_, F>) -> io::Result<()> {
    let mut at = start;
    for _ in 0..MOST {
        if at >= end {
            return Ok(());
        }
        file.seek(SeekFrom::Start(at))?;
        let (id, id_length) = vint(file, 4)?;
        let (length, length_length) = vint(file, 8)?;
        let head = id_length + length_length;
        // The marker is no part of a length; all ones beside it: it goes on to the end.
        let ones = (1 << (7 * length_length)) - 1;
        let unknown = length & ones == ones;
        let length = length & ones;
        let start = at + head;
        let past = if unknown { end } else { start.saturating_add(length) };
        if past > end {
            return Err(truncated());
        }
        let id = u32::try_from(id).map_err(|_| malformed("an element"))?;
        if !look(file, Element { id, start, end: past })? {
            return Ok(());
        }
        at = past;
    }
    Ok(())
}

/// A number of variable length with its marker, and that length.
fn vint(file: &mut impl Read, most: u64) -> io::Result<(u64, u64)> {
    let [first] = take(file)?;
    let length = u64::from(first.leading_zeros()) + 1;
    if length > most {
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
    if length > VALUE {
        return Err(malformed("a value"));
    }
    file.seek(SeekFrom::Start(element.start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn whole(file: &mut (impl Read + Seek), element: &Element) -> io::Result<u64> {
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
