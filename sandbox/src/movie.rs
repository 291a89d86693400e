//! Properties that an MP4 states: the length of the movie, and the size of its pictures.
//! <https://developer.apple.com/documentation/quicktime-file-format>

/// Length and size of a movie, where the file says them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Movie {
    /// Length in seconds.
    pub(crate) seconds: Option<f64>,
    /// Width and height of the largest track, in pixels.
    pub(crate) pixels: Option<(u32, u32)>,
}

impl Movie {
    /// Reads the boxes of a file.
    pub(crate) fn read(file: &[u8]) -> Self {
        let mut movie = Self::default();
        for (kind, content) in
            boxes(file).filter(|(kind, _)| kind == b"moov").flat_map(|(_, content)| boxes(content))
        {
            match kind {
                b"mvhd" => movie.seconds = length(content),
                b"trak" => {
                    let header = boxes(content).find(|(kind, _)| kind == b"tkhd");
                    let size = header.and_then(|(_, content)| size(content));
                    movie.pixels = movie.pixels.max(size);
                }
                _ => {}
            }
        }
        movie
    }
}

/// Returns the boxes that follow each other, with their contents. A malformed one ends them.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (number(bytes, 0)?, bytes.get(4..8)?);
        let (start, length) = match length {
            // To the end of the file.
            0 => (8, bytes.len()),
            1 => (
                16,
                usize::try_from((u64::from(number(bytes, 8)?) << 32) | u64::from(number(bytes, 12)?)).ok()?,
            ),
            length => (8, usize::try_from(length).ok()?),
        };
        let content = bytes.get(start..length)?;
        bytes = &bytes[length..];
        Some((kind, content))
    })
}

/// Returns the seconds of a movie header.
fn length(header: &[u8]) -> Option<f64> {
    let (scale, duration) = match header.first()? {
        1 => (number(header, 20)?, (u64::from(number(header, 24)?) << 32) | u64::from(number(header, 28)?)),
        _ => (number(header, 12)?, u64::from(number(header, 16)?)),
    };
    (scale > 0).then(|| duration as f64 / f64::from(scale))
}

/// Returns width and height at the end of a track header, which are fixed-point numbers; `None` for sound.
fn size(header: &[u8]) -> Option<(u32, u32)> {
    let at = header.len().checked_sub(8)?;
    let (width, height) = (number(header, at)? >> 16, number(header, at + 4)? >> 16);
    (width > 0 && height > 0).then_some((width, height))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(digits.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8], content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 8).expect("a small box").to_be_bytes();
        [&length[..], kind, content].concat()
    }

    #[test]
    fn length_and_size_of_a_movie_are_read() {
        let movie = |seconds: u32| {
            let header =
                [&[0; 12][..], &600_u32.to_be_bytes(), &(600 * seconds).to_be_bytes(), &[0; 80]].concat();
            let track = |width: u32, height: u32| {
                let header =
                    [&[0; 76][..], &(width << 16).to_be_bytes(), &(height << 16).to_be_bytes()].concat();
                boxed(b"trak", &boxed(b"tkhd", &header))
            };
            let content = [boxed(b"mvhd", &header), track(0, 0), track(720, 1280)].concat();
            [boxed(b"ftyp", b"isom"), boxed(b"mdat", b"data"), boxed(b"moov", &content)].concat()
        };
        let read = Movie { seconds: Some(31.0), pixels: Some((720, 1280)) };
        assert_eq!(Movie::read(&movie(31)), read);
        let whole = movie(31);
        for end in 0..whole.len() {
            assert_eq!(Movie::read(&whole[..end]), Movie::default(), "{end}");
        }
        let newer =
            [&[1][..], &[0; 19], &1_000_u32.to_be_bytes(), &0_u32.to_be_bytes(), &5_500_u32.to_be_bytes()];
        let newer = boxed(b"moov", &boxed(b"mvhd", &newer.concat()));
        assert_eq!(Movie::read(&newer).seconds, Some(5.5));
        assert_eq!(Movie::read(b"no movie at all"), Movie::default());
    }
}
