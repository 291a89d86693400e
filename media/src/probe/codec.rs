//! Names of codecs in containers, and what a codec's own header says.
//! <https://mp4ra.org/registered-types/sampleentries>, <https://www.matroska.org/technical/codec_specs.html>

/// Maximum length of a name that is kept, in characters.
const MAX_NAME: usize = 16;

/// Returns the frames in 1000 seconds of `frames` frames in `seconds`.
pub(super) fn frame_rate(frames: u128, seconds: u128) -> Option<u32> {
    let rate = (frames * 1000).checked_div(seconds)?;
    u32::try_from(rate).ok().filter(|rate| *rate > 0)
}

/// Returns the codec with this name in an MP4, QuickTime or AVI file; `None` for a name of zeros.
pub(super) fn of_fourcc(name: [u8; 4]) -> Option<String> {
    let lower = name.map(|byte| byte.to_ascii_lowercase());
    let name = match &lower {
        b"avc1" | b"avc2" | b"avc3" | b"avc4" | b"h264" | b"x264" => "h264",
        b"hvc1" | b"hev1" | b"dvh1" | b"dvhe" | b"hevc" | b"h265" => "hevc",
        b"vp08" | b"vp80" => "vp8",
        b"vp09" | b"vp90" => "vp9",
        b"av01" => "av1",
        b"mp4v" | b"xvid" | b"divx" | b"dx50" | b"fmp4" => "mpeg4",
        b"s263" | b"h263" => "h263",
        b"jpeg" | b"mjpa" | b"mjpb" | b"mjpg" => "mjpeg",
        b"apch" | b"apcn" | b"apcs" | b"apco" | b"ap4h" | b"ap4x" => "prores",
        b"mp4a" => "aac",
        b".mp3" => "mp3",
        b"opus" => "opus",
        b"flac" => "flac",
        b"ac-3" => "ac-3",
        b"ec-3" => "e-ac-3",
        b"alac" => "alac",
        b"samr" | b"sawb" => "amr",
        b"sowt" | b"twos" | b"lpcm" | b"in24" | b"in32" | b"fl32" | b"raw " | b"ipcm" => "pcm",
        // Encrypted, which hides the name.
        _ => return plain(&lower),
    };
    Some(name.to_owned())
}

/// Returns the codec of sound with this number in a WAVE header.
/// <https://learn.microsoft.com/windows/win32/api/mmeapi/ns-mmeapi-waveformatex>
pub(super) fn of_wave(format: u16) -> String {
    match format {
        1 | 3 | 0xfffe => "pcm".to_owned(),
        0x55 => "mp3".to_owned(),
        0xff | 0x1610 => "aac".to_owned(),
        0x2000 => "ac-3".to_owned(),
        other => format!("0x{other:04x}"),
    }
}

/// Returns the codec with this name in a WebM or Matroska file.
pub(super) fn of_matroska(name: &[u8]) -> Option<String> {
    let known = [
        ("V_MPEG4/ISO/AVC", "h264"),
        ("V_MPEGH/ISO/HEVC", "hevc"),
        ("V_VP8", "vp8"),
        ("V_VP9", "vp9"),
        ("V_AV1", "av1"),
        ("V_MPEG4", "mpeg4"),
        ("V_MJPEG", "mjpeg"),
        ("V_PRORES", "prores"),
        ("A_AAC", "aac"),
        ("A_MPEG/L3", "mp3"),
        ("A_OPUS", "opus"),
        ("A_VORBIS", "vorbis"),
        ("A_FLAC", "flac"),
        ("A_AC3", "ac-3"),
        ("A_EAC3", "e-ac-3"),
        ("A_ALAC", "alac"),
        ("A_PCM", "pcm"),
    ];
    let found = known.iter().find(|(prefix, _)| name.starts_with(prefix.as_bytes()));
    found.map(|(_, codec)| (*codec).to_owned()).or_else(|| plain(name))
}

/// Returns a name that no platform knows, as far as it can be shown.
fn plain(name: &[u8]) -> Option<String> {
    let letters = name.iter().filter(|byte| byte.is_ascii_graphic()).take(MAX_NAME);
    let name: String = letters.map(|byte| char::from(*byte)).collect();
    Some(name).filter(|name| !name.is_empty())
}

/// Returns the bits per color that the configuration of a codec says.
pub(super) fn bit_depth(codec: &str, configuration: &[u8]) -> Option<u8> {
    let byte = |at: usize| configuration.get(at).copied();
    match codec {
        "h264" => avc_depth(configuration),
        // ISO/IEC 14496-15, 8.3.3.1
        "hevc" => Some(8 + (byte(17)? & 7)),
        // <https://www.webmproject.org/vp9/mp4/#vp-codec-configuration-box>, behind version and flags
        "vp9" | "vp8" => Some(byte(6)? >> 4),
        // <https://aomediacodec.github.io/av1-isobmff/#av1codecconfigurationbox-syntax>
        "av1" => Some(match (byte(2)? & 0x40, byte(2)? & 0x20) {
            (0, _) => 8,
            (_, 0) => 10,
            _ => 12,
        }),
        _ => None,
    }
    .filter(|depth| (1..=16).contains(depth))
}

/// Returns the bits per color of H.264.
fn avc_depth(configuration: &[u8]) -> Option<u8> {
    // Baseline, main, extended and high are of 8 bits.
    if matches!(configuration.get(1)?, 66 | 77 | 88 | 100) {
        return Some(8);
    }
    Some(8 + (*avc_extension(configuration)?.get(1)? & 7))
}

/// Returns what the higher profiles of H.264 say behind the parameter sets. ISO/IEC 14496-15, 5.3.3.1.2
fn avc_extension(configuration: &[u8]) -> Option<&[u8]> {
    let mut rest = configuration.get(5..)?;
    for mask in [0x1f, 0xff] {
        let count = *rest.first()? & mask;
        rest = &rest[1..];
        for _ in 0..count {
            let length = usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]));
            rest = rest.get(2 + length..)?;
        }
    }
    Some(rest)
}

/// Returns the chroma subsampling that the configuration of a codec says; sources as for [`bit_depth`].
pub(super) fn chroma(codec: &str, configuration: &[u8]) -> Option<&'static str> {
    const FORMATS: [&str; 4] = ["4:0:0", "4:2:0", "4:2:2", "4:4:4"];
    let byte = |at: usize| configuration.get(at).copied();
    let index = match codec {
        // Baseline, main and extended have one.
        "h264" if matches!(byte(1)?, 66 | 77 | 88) => 1,
        "h264" => avc_extension(configuration)?.first()? & 3,
        "hevc" => byte(16)? & 3,
        "vp9" | "vp8" => match byte(6)? >> 1 & 7 {
            // Two places of the color in four pixels.
            0 | 1 => 1,
            other => other,
        },
        "av1" => match (byte(2)? & 0x10, byte(2)? & 0x08, byte(2)? & 0x04) {
            (0, 0, _) => 3,
            (0, _, 0) => 2,
            (0, _, _) => 1,
            _ => 0,
        },
        _ => return None,
    };
    FORMATS.get(usize::from(index)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_has_one_name_in_all_containers() {
        for (name, codec) in [
            (b"avc1", Some("h264")),
            (b"H264", Some("h264")),
            (b"hev1", Some("hevc")),
            (b"vp09", Some("vp9")),
            (b"Opus", Some("opus")),
            (b"sowt", Some("pcm")),
            (b"XYZ1", Some("xyz1")),
            (b"\0\0\0\0", None),
        ] {
            assert_eq!(of_fourcc(*name).as_deref(), codec, "{name:?}");
        }
        for (name, codec) in [
            ("V_MPEG4/ISO/AVC", "h264"),
            ("V_MPEG4/ISO/ASP", "mpeg4"),
            ("A_AAC/MPEG4/LC", "aac"),
            ("A_PCM/INT/LIT", "pcm"),
            ("V_OF/TOMORROW/AND/LATER", "V_OF/TOMORROW/AN"),
        ] {
            assert_eq!(of_matroska(name.as_bytes()).as_deref(), Some(codec), "{name}");
        }
        assert_eq!((of_wave(0x55), of_wave(0x1234)), ("mp3".to_owned(), "0x1234".to_owned()));
    }

    #[test]
    fn the_depth_of_colors_is_read_from_the_configuration() {
        let hevc = |luma: u8| [[0; 17].to_vec(), vec![0xf8 | luma, 0xf8]].concat();
        let high10 =
            [&[1, 110, 0, 40, 0xff, 0xe1, 0, 2, 7, 7, 1, 0, 1, 8][..], &[0xfd, 0xfa, 0xfa, 0]].concat();
        for (codec, configuration, depth) in [
            ("h264", vec![1, 100, 0, 40], Some(8)),
            ("h264", high10.clone(), Some(10)),
            ("h264", high10[..14].to_vec(), None),
            ("hevc", hevc(0), Some(8)),
            ("hevc", hevc(2), Some(10)),
            ("hevc", vec![1], None),
            ("vp9", vec![1, 0, 0, 0, 2, 31, 0xa0], Some(10)),
            ("av1", vec![0x81, 0, 0x0c], Some(8)),
            ("av1", vec![0x81, 0, 0x4c], Some(10)),
            ("mjpeg", vec![0; 20], None),
        ] {
            assert_eq!(bit_depth(codec, &configuration), depth, "{codec} {configuration:?}");
            for length in 0..configuration.len() {
                // However short it is, it is no panic.
                let _ = bit_depth(codec, &configuration[..length]);
                let _ = chroma(codec, &configuration[..length]);
            }
        }
    }

    #[test]
    fn the_chroma_subsampling_is_read_from_the_configuration() {
        let avc = |profile: u8, chroma: u8| {
            [&[1, profile, 0, 40, 0xff, 0xe1, 0, 2, 7, 7, 1, 0, 1, 8][..], &[chroma, 0xf8, 0xf8, 0]].concat()
        };
        let hevc = |chroma: u8| [[0; 16].to_vec(), vec![0xfc | chroma, 0xf8]].concat();
        for (codec, configuration, expected) in [
            ("h264", vec![1, 66, 0, 40], Some("4:2:0")),
            ("h264", avc(100, 0xfd), Some("4:2:0")),
            ("h264", avc(122, 0xfe), Some("4:2:2")),
            ("h264", avc(244, 0xff), Some("4:4:4")),
            // Without what would say it.
            ("h264", avc(100, 0xfd)[..14].to_vec(), None),
            ("hevc", hevc(0), Some("4:0:0")),
            ("hevc", hevc(1), Some("4:2:0")),
            ("hevc", hevc(2), Some("4:2:2")),
            ("vp9", vec![1, 0, 0, 0, 0, 31, 0x82], Some("4:2:0")),
            ("vp9", vec![1, 0, 0, 0, 1, 31, 0x84], Some("4:2:2")),
            ("vp9", vec![1, 0, 0, 0, 1, 31, 0x8e], None),
            ("av1", vec![0x81, 0, 0x0c], Some("4:2:0")),
            ("av1", vec![0x81, 0x20, 0x08], Some("4:2:2")),
            ("av1", vec![0x81, 0x20, 0], Some("4:4:4")),
            ("av1", vec![0x81, 0, 0x1c], Some("4:0:0")),
            ("prores", vec![0; 20], None),
        ] {
            assert_eq!(chroma(codec, &configuration), expected, "{codec} {configuration:?}");
        }
    }
}
