//! GIF: reads all blocks and counts the frames. A GIF with one frame is an image.
//! <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>

use super::{Dimensions, malformed, take, take_at};
use crate::inspect::{Refusal, broken, unfit};
use domain::MediaKind;
use std::{
    io::{self, BufReader, Read, Seek},
    time::Duration,
};

/// Time for which browsers show a frame that names none, in hundredths of a second.
/// <https://searchfox.org/mozilla-central/source/image/FrameTimeout.h>
const DEFAULT_DELAY: u64 = 10;

/// Reads a GIF.
pub(super) fn probe(file: &mut (impl Read + Seek)) -> Result<Dimensions, Refusal> {
    let Animation { pixels, frames, hundredths, .. } =
        Animation::read(&mut BufReader::new(file)).map_err(|error| broken(&error))?;
    if frames == 0 {
        return Err(unfit("the GIF has no frames"));
    }
    let is_animated = frames > 1;
    let kind = if is_animated { MediaKind::Gif } else { MediaKind::Image };
    Ok(Dimensions {
        pixels: Some(pixels),
        frames: is_animated.then_some(frames),
        duration: is_animated.then(|| Duration::from_millis(hundredths * 10)),
        ..Dimensions::none(kind, "image/gif")
    })
}

/// Contents of a GIF.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Animation {
    /// Width and height.
    pub(crate) pixels: (u32, u32),
    /// Number of frames.
    pub(crate) frames: u32,
    /// Pixels that are decoded for all frames together: of each the canvas, or the frame if that is larger.
    pub(crate) frame_pixels: u64,
    /// Play time as browsers show it, in hundredths of a second.
    hundredths: u64,
}

impl Animation {
    /// Reads all blocks.
    ///
    /// # Errors
    ///
    /// If the file is malformed or ends too early.
    pub(crate) fn read(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        let [w0, w1, h0, h1, flags, _, _] = take_at(file, 6)?;
        let sides = |[w0, w1, h0, h1]: [u8; 4]| {
            (u32::from(u16::from_le_bytes([w0, w1])), u32::from(u16::from_le_bytes([h0, h1])))
        };
        let area = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
        let mut found = Self { pixels: sides([w0, w1, h0, h1]), ..Self::default() };
        skip_colors(file, flags)?;
        let mut delay = 0;
        loop {
            match take::<1>(file)? {
                [0x3b] => return Ok(found),
                [0x2c] => {
                    let [_, _, _, _, w0, w1, h0, h1, flags] = take(file)?;
                    skip_colors(file, flags)?;
                    // LZW minimum code size.
                    take::<1>(file)?;
                    skip_blocks(file)?;
                    found.frames = found.frames.saturating_add(1);
                    // Browsers show a frame without a delay, or with the shortest one, for longer.
                    found.hundredths += if delay < 2 { DEFAULT_DELAY } else { delay };
                    delay = 0;
                    found.frame_pixels += area(found.pixels).max(area(sides([w0, w1, h0, h1])));
                }
                [0x21] => {
                    let [label] = take(file)?;
                    if label == 0xf9 {
                        let [length, _, low, high, ..] = take::<6>(file)?;
                        if length != 4 {
                            return Err(malformed("a control block"));
                        }
                        delay = u64::from(u16::from_le_bytes([low, high]));
                        // This read included the block terminator.
                    } else {
                        skip_blocks(file)?;
                    }
                }
                _ => return Err(malformed("a block")),
            }
        }
    }
}

fn skip_colors(file: &mut impl Seek, flags: u8) -> io::Result<()> {
    if flags & 0x80 == 0 { Ok(()) } else { file.seek_relative(3 << ((flags & 7) + 1)) }
}

fn skip_blocks(file: &mut (impl Read + Seek)) -> io::Result<()> {
    loop {
        match take::<1>(file)? {
            [0] => return Ok(()),
            [length] => file.seek_relative(length.into())?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_frame_without_a_delay_is_shown_as_browsers_show_it() {
        let length = |delays: &[Option<u8>]| {
            let frames = delays.iter().map(|delay| {
                let control = delay.map(|delay| [&b"\x21\xf9\x04\0"[..], &[delay, 0, 0, 0]].concat());
                [&control.unwrap_or_default()[..], b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0"].concat()
            });
            let head = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff";
            let file = [&head[..], &frames.collect::<Vec<_>>().concat(), b";"].concat();
            probe(&mut Cursor::new(file)).unwrap().duration.map(|length| length.as_millis())
        };
        assert_eq!(length(&[Some(20), Some(20)]), Some(400));
        assert_eq!(length(&[Some(0), Some(1), Some(2)]), Some(220));
        assert_eq!(length(&[None, Some(0)]), Some(200));
        assert_eq!(length(&[Some(0)]), None);
    }
}
