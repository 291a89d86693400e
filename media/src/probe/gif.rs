//! GIF: reads all blocks and counts the frames. A GIF with one frame is an image.
//! <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>

use super::{Dimensions, malformed, take, take_at};
use crate::inspect::{Refusal, broken, unfit};
use domain::MediaKind;
use std::{
    io::{self, BufReader, Read, Seek},
    time::Duration,
};

/// Reads a GIF.
pub(super) fn probe(file: &mut (impl Read + Seek)) -> Result<Dimensions, Refusal> {
    let (pixels, frames, hundredths) = walk(&mut BufReader::new(file)).map_err(|error| broken(&error))?;
    if frames == 0 {
        return Err(unfit("the GIF has no frames"));
    }
    let is_animated = frames > 1;
    Ok(Dimensions {
        kind: if is_animated { MediaKind::Gif } else { MediaKind::Image },
        mime: "image/gif",
        pixels: Some(pixels),
        duration: is_animated.then(|| Duration::from_millis(hundredths * 10)),
    })
}

/// Returns width and height, number of frames, and their total duration in hundredths of a second.
fn walk(file: &mut (impl Read + Seek)) -> io::Result<((u32, u32), u64, u64)> {
    let [w0, w1, h0, h1, flags, _, _] = take_at(file, 6)?;
    let pixels = (u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into());
    skip_colors(file, flags)?;
    let (mut frames, mut hundredths) = (0, 0);
    loop {
        match take::<1>(file)? {
            [0x3b] => return Ok((pixels, frames, hundredths)),
            [0x2c] => {
                let description: [u8; 9] = take(file)?;
                skip_colors(file, description[8])?;
                // LZW minimum code size.
                take::<1>(file)?;
                skip_blocks(file)?;
                frames += 1;
            }
            [0x21] => {
                let [label] = take(file)?;
                if label == 0xf9 {
                    let [length, _, low, high, ..] = take::<6>(file)?;
                    if length != 4 {
                        return Err(malformed("a control block"));
                    }
                    hundredths += u64::from(u16::from_le_bytes([low, high]));
                    // This read included the block terminator.
                } else {
                    skip_blocks(file)?;
                }
            }
            _ => return Err(malformed("a block")),
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
