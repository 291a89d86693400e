//! Documents: checks only that they are complete and whether they are encrypted, without opening them.

use super::{Dimensions, truncated};
use crate::{
    file::{Refusal, broken, read_range},
    format::{Format, Shape},
};
use domain::media::Facts;
use std::io::{self, Read, Seek};

/// Length of the file's end in which a PDF's end marker is searched.
const TAIL: u64 = 64 << 10;

/// Length of a PDF's index that is read.
const INDEX: u64 = 4 << 20;

/// Checks that a PDF has its end marker. [Archives](crate::container) were read already.
pub(super) fn probe(
    file: &mut (impl Read + Seek),
    size: u64,
    format: &'static Format,
) -> Result<Dimensions, Refusal> {
    let mut facts = Facts::default();
    if format.shape == Shape::Pdf {
        facts.is_locked = pdf(file, size).map_err(|error| broken(&error))?;
    }
    Ok(Dimensions { facts, ..Dimensions::none(format.kind, format.mime) })
}

/// Returns whether a PDF is encrypted, which its trailer says: a dictionary of its own, or that of a stream with the index.
/// `None` if there is no trailer where the end says. ISO 32000-2, 7.5.5 and 7.5.8
fn pdf(file: &mut (impl Read + Seek), size: u64) -> io::Result<Option<bool>> {
    let tail = read_range(file, size.saturating_sub(TAIL), size)?;
    let end = find_last(&tail, b"%%EOF").ok_or_else(truncated)?;
    let Some(at) = find_last(&tail[..end], b"startxref") else { return Ok(None) };
    let digits = tail[at + 9..end].iter().skip_while(|byte| byte.is_ascii_whitespace());
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).take(12);
    let place = digits.fold(0_u64, |place, digit| place * 10 + u64::from(digit - b'0'));
    if place == 0 || place >= size {
        return Ok(None);
    }
    let index = read_range(file, place, size.min(place + INDEX))?;
    let trailer = match index.starts_with(b"xref") {
        true => find(&index, b"trailer").map(|at| &index[at..]),
        false => Some(&index[..]),
    };
    let trailer = trailer.map(|rest| {
        let ends = [&b"stream"[..], b"startxref"].iter().filter_map(|end| find(rest, end)).min();
        &rest[..ends.unwrap_or(rest.len())]
    });
    Ok(trailer.map(|trailer| {
        let key = b"/Encrypt";
        let mut starts = trailer.windows(key.len() + 1).filter(|window| window.starts_with(key));
        starts.any(|window| !window[key.len()].is_ascii_alphanumeric())
    }))
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

fn find_last(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).rposition(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn an_encrypted_pdf_is_known_by_its_trailer() {
        let file = |index: &str| format!("%PDF-1.7\n1 0 obj\n<<>>\nendobj\n{index}startxref\n29\n%%EOF\n");
        let locked = |file: &str| pdf(&mut Cursor::new(file), file.len() as u64).unwrap();
        assert_eq!(file("").find("startxref"), Some(29));
        for (index, expected) in [
            ("xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Encrypt 5 0 R>>\n", Some(true)),
            ("xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1>>\n", Some(false)),
            ("7 0 obj <</Type /XRef /Encrypt<</V 5>> >> stream x endstream\n", Some(true)),
            ("7 0 obj <</Type /XRef /EncryptMetadata false >> stream /Encrypt 5 endstream\n", Some(false)),
            ("xref\n0 1\n", None),
        ] {
            assert_eq!(locked(&file(index)), expected, "{index}");
        }
        assert_eq!(locked("%PDF-1.7\n%%EOF"), None);
        assert_eq!(locked("%PDF-1.7\nstartxref\n99999999999999999999\n%%EOF"), None);
        assert!(pdf(&mut Cursor::new(b"%PDF-1.7\n"), 9).is_err());
    }
}
