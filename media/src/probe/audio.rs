//! Audio: reads the play time with crate `lofty`, without tags and cover art.

use super::{Dimensions, riff};
use crate::{
    format::{Format, Shape},
    inspect::{Refusal, broken, unfit, unsupported},
};
use lofty::{
    config::ParseOptions,
    file::{AudioFile, FileType},
    probe::Probe,
};
use std::io::{Read, Seek, SeekFrom};

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
    let audio = probe.read().map_err(|error| unfit(format!("the audio can't be read: {error}")))?;
    let duration = audio.properties().duration();
    if duration.is_zero() {
        return Err(unfit("the file has no audio"));
    }
    Ok(Dimensions { duration: Some(duration), ..Dimensions::none(format.kind, mime) })
}
