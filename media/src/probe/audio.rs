//! Audio: reads the play time with crate `lofty`, without tags and cover art. Of AAC it has an estimate only, so that the
//! frames are counted here.

use super::{Dimensions, riff, take, take_at};
use crate::{
    file::{Refusal, broken, unfit, unsupported},
    format::{Format, Shape},
};
use lofty::{
    config::ParseOptions,
    file::{AudioFile, FileType},
    probe::Probe,
};
use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

/// Length of AAC frames that are counted, in bytes; the rest of a longer file is taken to be like them.
const MAX_COUNTED: u64 = 16 << 20;
/// Samples of a block of AAC.
const BLOCK_SAMPLES: u64 = 1024;
/// Sample rates by their index. ISO/IEC 14496-3, 1.6.3.4
const SAMPLE_RATES: [u64; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// Reads the play time of an audio file.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    if format.shape == Shape::Wave {
        riff(file, size).map_err(|error| broken(&error))?;
    }
    file.seek(SeekFrom::Start(0)).map_err(|error| broken(&error))?;
    let options = ParseOptions::new().read_tags(false).read_cover_art(false);
    let probe = Probe::new(file).options(options).guess_file_type().map_err(|error| broken(&error))?;
    let mime = match probe.file_type() {
        Some(FileType::Mpeg) => "audio/mpeg",
        Some(FileType::Aac) => "audio/aac",
        Some(FileType::Wav) => "audio/wav",
        Some(FileType::Flac) => "audio/flac",
        Some(FileType::Opus | FileType::Vorbis | FileType::Speex) => "audio/ogg",
        _ => return Err(unsupported()),
    };
    let unreadable = |error| unfit(format!("the audio can't be read: {error}"));
    let duration = match mime {
        "audio/aac" => adts(probe.into_inner(), size).map_err(|error| broken(&error))?,
        _ => probe.read().map_err(unreadable)?.properties().duration(),
    };
    if duration.is_zero() {
        return Err(unfit("the file has no audio"));
    }
    Ok(Dimensions { duration: Some(duration), ..Dimensions::none(format.kind, mime) })
}

/// Returns the play time of the frames of AAC that follow a tag, if there is one.
/// <https://wiki.multimedia.cx/index.php/ADTS>
fn adts(file: &mut (impl Read + Seek), size: u64) -> io::Result<Duration> {
    let mut start = 0;
    // <https://id3.org/id3v2.4.0-structure>: seven bits of each byte count.
    while let [b'I', b'D', b'3', _, _, flags, length @ ..] = take_at::<10>(file, start)? {
        let length = length.iter().fold(0, |length, byte| length << 7 | u64::from(byte & 0x7f));
        start += 10 + length + if flags & 0x10 == 0 { 0 } else { 10 };
    }
    file.seek(SeekFrom::Start(start))?;
    let (mut counted, mut played) = (0, Duration::ZERO);
    while start + counted + 7 <= size && counted < MAX_COUNTED {
        let head: [u8; 7] = take(file)?;
        let length = u64::from(head[3] & 3) << 11 | u64::from(head[4]) << 3 | u64::from(head[5] >> 5);
        let rate = SAMPLE_RATES.get(usize::from(head[2] >> 2 & 15));
        let (true, Some(rate), 7..) = (head[0] == 0xff && head[1] & 0xf6 == 0xf0, rate, length) else {
            break;
        };
        let blocks = u64::from(head[6] & 3) + 1;
        played += Duration::from_nanos(blocks * BLOCK_SAMPLES * 1_000_000_000 / rate);
        counted += length;
        file.seek_relative(i64::try_from(length - 7).unwrap_or(i64::MAX))?;
    }
    let is_part = counted >= MAX_COUNTED;
    Ok(if is_part { played.mul_f64((size - start) as f64 / counted as f64) } else { played })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::format;
    use domain::MediaKind;
    use std::io::Cursor;

    fn look(file: &[u8], mime: &str) -> Result<(MediaKind, &'static str, u128), Refusal> {
        let found = probe(&mut Cursor::new(file), file.len() as u64, format(mime).unwrap())?;
        Ok((found.kind, found.mime, found.duration.unwrap().as_millis()))
    }

    /// Frames of AAC at 44,100 Hz, of lengths that vary as those of speech do.
    fn aac(frames: usize) -> Vec<u8> {
        let frame = |index: usize| {
            let length = if index < 10 { 40 } else { 400 };
            let [high, low] = u16::try_from(length).unwrap().to_be_bytes();
            let bits = u16::from_be_bytes([high, low]) << 5;
            let [middle, last] = bits.to_be_bytes();
            let head = [0xff, 0xf1, 0x50, 0x80 | high >> 3, middle, last | 0x1f, 0xfc];
            [&head[..], &vec![0x2a; length - 7]].concat()
        };
        (0..frames).flat_map(frame).collect()
    }

    #[test]
    fn the_frames_of_aac_are_counted() {
        let tag = b"ID3\x04\0\0\0\0\x01\0".iter().copied().chain([0; 128]).collect::<Vec<_>>();
        // Frames of 1024 samples.
        let expected = Ok((MediaKind::Audio, "audio/aac", 431 * 1024 * 1000 / 44_100));
        assert_eq!(look(&aac(431), "audio/aac"), expected);
        assert_eq!(look(&[tag, aac(431), b"TAG".repeat(42)].concat(), "audio/aac"), expected);
        assert!(look(&aac(431)[..6], "audio/aac").is_err());
    }

    /// Of Opus the last page says the length, with what is played before the first sample (RFC 7845, 4).
    #[test]
    fn the_length_of_opus_has_nothing_that_is_skipped() {
        let page = |kind: u8, position: u64, number: u32, packet: &[u8]| {
            let mut page = [&b"OggS\0"[..], &[kind], &position.to_le_bytes(), &[7, 0, 0, 0]].concat();
            page.extend(number.to_le_bytes());
            page.extend([0, 0, 0, 0, 1, u8::try_from(packet.len()).unwrap()]);
            [&page, packet].concat()
        };
        let head = [&b"OpusHead\x01\x02"[..], &312_u16.to_le_bytes(), &48_000_u32.to_le_bytes(), &[0; 3]];
        let file = [
            page(2, 0, 0, &head.concat()),
            page(0, 0, 1, b"OpusTags\x04\0\0\0test\0\0\0\0"),
            page(4, 48_312, 2, &[0x2a; 200]),
        ];
        assert_eq!(look(&file.concat(), "audio/ogg"), Ok((MediaKind::Audio, "audio/ogg", 1000)));
    }

    #[test]
    fn audio_of_mpeg_needs_no_tag() {
        // MPEG 2.5, layer III, 8 kbit/s, 11,025 Hz: frames of 52 bytes and 576 samples.
        let frame = [&b"\xff\xe3\x10\xc4"[..], &[0; 48]].concat();
        let (_, mime, length) = look(&frame.repeat(100), "audio/mpeg").unwrap();
        assert!(mime == "audio/mpeg" && (5100..5300).contains(&length), "{length}");
    }
}
