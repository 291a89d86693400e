//! GIF: block by block to its trailer, counting pictures. One that does not move is an image.
//! <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>

use super::{Dimensions, malformed, take, take_at};
use crate::inspect::{Refusal, broken, unfit};
use domain::MediaKind;
use std::{
    io::{self, BufReader, Read, Seek},
    time::Duration,
};

/// Walks through a GIF.
pub(super) fn probe(file: &mut (impl Read + Seek)) -> Result<Dimensions, Refusal> {
    let (pixels, pictures, hundredths) = walk(&mut BufReader::new(file)).map_err(|error| broken(&error))?;
    if pictures == 0 {
        return Err(unfit("the GIF holds no picture"));
    }
    let moves = pictures > 1;
    Ok(Dimensions {
        kind: if moves { MediaKind::Gif } else { MediaKind::Image },
        mime: "image/gif",
        pixels: Some(pixels),
        duration: moves.then(|| Duration::from_millis(hundredths * 10)),
    })
}

/// Width and height, how many pictures, and for how long they are shown.
fn walk(file: &mut (impl Read + Seek)) -> io::Result<((u32, u32), u64, u64)> {
    let [w0, w1, h0, h1, flags, _, _] = take_at(file, 6)?;
    let pixels = (u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into());
    skip_colors(file, flags)?;
    let (mut pictures, mut hundredths) = (0, 0);
    loop {
        match take::<1>(file)? {
            [0x3b] => return Ok((pixels, pictures, hundredths)),
            [0x2c] => {
                let description: [u8; 9] = take(file)?;
                skip_colors(file, description[8])?;
                // The size of the codes.
                take::<1>(file)?;
                skip_blocks(file)?;
                pictures += 1;
            }
            [0x21] => {
                let [label] = take(file)?;
                if label == 0xf9 {
                    let [length, _, low, high, ..] = take::<6>(file)?;
                    if length != 4 {
                        return Err(malformed("a control block"));
                    }
                    hundredths += u64::from(u16::from_le_bytes([low, high]));
                    // The byte that ends the block was read with it.
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
