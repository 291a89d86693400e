//! GIF: reads all blocks and counts the frames. A GIF with one frame is an image. One that ends early consists of the
//! frames that are whole, as browsers show it; some programs leave out the last byte.
//! <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>

use super::{Dimensions, malformed, take, take_at, truncated};
use crate::file::{Refusal, broken, unfit};
use domain::{MediaKind, media::Facts};
use std::{
    io::{self, Read, Seek},
    time::Duration,
};

/// Time for which browsers show a frame that names none, in hundredths of a second.
/// <https://searchfox.org/mozilla-central/source/image/FrameTimeout.h>
const DEFAULT_DELAY: u64 = 10;

/// Reads a GIF.
pub(super) fn probe(file: &mut (impl Read + Seek)) -> Result<Dimensions, Refusal> {
    let Animation { pixels, frames, hundredths, is_truncated, .. } =
        Animation::read(file).map_err(|error| broken(&error))?;
    if frames == 0 {
        return Err(unfit("the GIF has no frames"));
    }
    let is_animated = frames > 1;
    let kind = if is_animated { MediaKind::Gif } else { MediaKind::Image };
    Ok(Dimensions {
        pixels: Some(pixels),
        frames: is_animated.then_some(frames),
        duration: is_animated.then(|| Duration::from_millis(hundredths * 10)),
        facts: Facts { is_truncated: is_truncated.then_some(true), ..Facts::default() },
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
    /// True if the file ends within a block.
    is_truncated: bool,
}

impl Animation {
    /// Reads all blocks.
    ///
    /// # Errors
    ///
    /// If the file is malformed, or ends before its first frame does.
    pub(crate) fn read(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        let [w0, w1, h0, h1, flags, _, _] = take_at(file, 6)?;
        let mut found = Self { pixels: sides([w0, w1, h0, h1]), ..Self::default() };
        skip_colors(file, flags)?;
        let mut delay = 0;
        loop {
            match found.block(file, &mut delay) {
                Ok(true) => {}
                Ok(false) => return Ok(found),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && found.frames > 0 => {
                    return Ok(Self { is_truncated: true, ..found });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a block, and returns false at the end. `delay` is that of the next frame.
    fn block(&mut self, file: &mut (impl Read + Seek), delay: &mut u64) -> io::Result<bool> {
        let mut kind = [0];
        if file.read(&mut kind)? == 0 {
            return if self.frames > 0 { Ok(false) } else { Err(truncated()) };
        }
        match kind {
            [0x3b] => return Ok(false),
            [0x2c] => {
                let [_, _, _, _, w0, w1, h0, h1, flags] = take(file)?;
                skip_colors(file, flags)?;
                // LZW minimum code size.
                take::<1>(file)?;
                skip_blocks(file)?;
                self.frames = self.frames.saturating_add(1);
                // Browsers show a frame without a delay, or with the shortest one, for longer.
                self.hundredths += if *delay < 2 { DEFAULT_DELAY } else { *delay };
                *delay = 0;
                self.frame_pixels += area(self.pixels).max(area(sides([w0, w1, h0, h1])));
            }
            [0x21] => {
                let [label] = take(file)?;
                if label == 0xf9 {
                    let [length, _, low, high, ..] = take::<6>(file)?;
                    if length != 4 {
                        return Err(malformed("a control block"));
                    }
                    *delay = u64::from(u16::from_le_bytes([low, high]));
                    // This read included the block terminator.
                } else {
                    skip_blocks(file)?;
                }
            }
            _ => return Err(malformed("a block")),
        }
        Ok(true)
    }
}

fn sides([w0, w1, h0, h1]: [u8; 4]) -> (u32, u32) {
    (u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into())
}

fn area((width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height)
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

    #[test]
    fn a_file_that_ends_early_has_the_frames_that_are_whole() {
        let frame = b"\x21\xf9\x04\0\x0a\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0";
        let head = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff";
        let file = [&head[..], frame, frame, frame, b";"].concat();
        for length in 0..=file.len() {
            let found = probe(&mut Cursor::new(&file[..length]));
            let whole = length.saturating_sub(head.len()) / frame.len();
            // A control block of eight bytes precedes each frame.
            let rest = length.saturating_sub(head.len()) % frame.len();
            let ends_between = matches!(rest, 0 | 8) || length == file.len();
            let found = found.map(|found| (found.frames.unwrap_or(1) as usize, found.facts.is_truncated));
            match whole {
                0 => assert!(found.is_err(), "{length}"),
                _ => assert_eq!(found, Ok((whole, (!ends_between).then_some(true))), "{length}"),
            }
        }
    }
}
