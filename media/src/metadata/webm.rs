//! WebM: tags and attachments become void elements of the same length. Those behind the clusters are found by the index at
//! the beginning, as players find them.
//! <https://www.rfc-editor.org/rfc/rfc9559#name-tags>, <https://www.matroska.org/technical/tagging.html>

use super::{Edit, Found};
use crate::probe::{
    ebml::{CLUSTER, Element, SEGMENT, each, whole},
    malformed,
};
use std::io::{self, Read, Seek};

const SEEK_HEAD: u32 = 0x114d_9b74;
const SEEK: u32 = 0x4dbb;
const SEEK_ID: u32 = 0x53ab;
const SEEK_POSITION: u32 = 0x53ac;
const TAGS: u32 = 0x1254_c367;
const TAG: u32 = 0x7373;
const SIMPLE_TAG: u32 = 0x67c8;
const TAG_NAME: u32 = 0x45a3;
const ATTACHMENTS: u32 = 0x1941_a469;
/// Maximum length of a tag's name, in bytes.
const MAX_NAME: u64 = 256;

/// Tags that muxers write about the stream.
const HARMLESS: [&str; 6] =
    ["ENCODER", "DURATION", "BPS", "NUMBER_OF_FRAMES", "NUMBER_OF_BYTES", "HANDLER_NAME"];

/// Finds the metadata.
pub(super) fn find(file: &mut (impl Read + Seek), size: u64) -> io::Result<Found> {
    let mut found = Found::default();
    each(file, 0, size, &mut |file, element| {
        if element.id != SEGMENT {
            return Ok(true);
        }
        let mut places = Vec::new();
        each(file, element.start, element.end, &mut |file, part| {
            match part.id {
                SEEK_HEAD => places.extend(indexed(file, &part)?),
                TAGS | ATTACHMENTS => void(file, &part, &mut found)?,
                _ => {}
            }
            Ok(part.id != CLUSTER)
        })?;
        for place in places {
            let at = element.start.checked_add(place).filter(|at| *at < element.end);
            let at = at.ok_or_else(|| malformed("the index"))?;
            each(file, at, element.end, &mut |file, part| {
                if matches!(part.id, TAGS | ATTACHMENTS) {
                    void(file, &part, &mut found)?;
                }
                Ok(false)
            })?;
        }
        Ok(false)
    })?;
    Ok(found)
}

/// Returns where the index says that tags and attachments are, from the beginning of the segment's content.
fn indexed(file: &mut (impl Read + Seek), head: &Element) -> io::Result<Vec<u64>> {
    let mut places = Vec::new();
    each(file, head.start, head.end, &mut |file, seek| {
        if seek.id == SEEK {
            let (mut id, mut place) = (None, None);
            each(file, seek.start, seek.end, &mut |file, part| {
                match part.id {
                    SEEK_ID => id = Some(whole(file, &part)?),
                    SEEK_POSITION => place = Some(whole(file, &part)?),
                    _ => {}
                }
                Ok(true)
            })?;
            if id.is_some_and(|id| [TAGS, ATTACHMENTS].map(u64::from).contains(&id)) {
                places.extend(place);
            }
        }
        Ok(true)
    })?;
    Ok(places)
}

/// Turns an element into a void one, unless its tags are harmless.
fn void(file: &mut (impl Read + Seek), part: &Element, found: &mut Found) -> io::Result<()> {
    let mut is_harmless = part.id == TAGS;
    if part.id == TAGS {
        each(file, part.start, part.end, &mut |file, tag| {
            if tag.id == TAG {
                each(file, tag.start, tag.end, &mut |file, simple| {
                    if simple.id == SIMPLE_TAG {
                        let name = name(file, &simple)?.to_ascii_uppercase();
                        is_harmless &= HARMLESS.contains(&name.as_str()) || name.starts_with("_STATISTICS");
                        found.has_location |= ["LOCATION", "GPS"].iter().any(|word| name.contains(word));
                    }
                    Ok(true)
                })?;
            }
            Ok(true)
        })?;
    }
    if is_harmless {
        return Ok(());
    }
    // The id of a void element and its length, in as many bytes as there are room for.
    let length = part.end - part.at;
    let (head, width) = match u8::try_from(length - 2) {
        Ok(rest) if rest < 127 => (vec![0xec, 0x80 | rest], 2),
        _ => ([&[0xec, 0x01][..], &(length - 9).to_be_bytes()[1..]].concat(), 9),
    };
    found.push(Edit::replace(part.at..part.at + width, head))?;
    found.push(Edit::zero(part.at + width..part.end))
}

fn name(file: &mut (impl Read + Seek), tag: &Element) -> io::Result<String> {
    let mut name = String::new();
    each(file, tag.start, tag.end, &mut |file, part| {
        if part.id == TAG_NAME {
            let end = part.end.min(part.start + MAX_NAME);
            name = String::from_utf8_lossy(&super::read_range(file, part.start..end)?).into_owned();
        }
        Ok(true)
    })?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use domain::media::Metadata;

    const TYPE: &str = "video/webm";

    fn element(id: &[u8], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [id, &[0x40 | (content.len() >> 8) as u8, content.len() as u8], &content].concat()
    }

    fn tags(name: &str, value: &str) -> Vec<u8> {
        let simple = element(
            &[0x67, 0xc8],
            &[&element(&[0x45, 0xa3], &[name.as_bytes()]), &element(&[0x44, 0x87], &[value.as_bytes()])],
        );
        element(&[0x12, 0x54, 0xc3, 0x67], &[&element(&[0x73, 0x73], &[&simple])])
    }

    /// A file with a cluster and these elements behind it, to which the index leads.
    fn file(last: &[u8]) -> Vec<u8> {
        let cluster = element(&[0x1f, 0x43, 0xb6, 0x75], &[b"samples"]);
        let seek = |position: u16| {
            let id = element(&[0x53, 0xab], &[&[0x12, 0x54, 0xc3, 0x67]]);
            let place = element(&[0x53, 0xac], &[&position.to_be_bytes()]);
            element(&[0x11, 0x4d, 0x9b, 0x74], &[&element(&[0x4d, 0xbb], &[&id, &place])])
        };
        let place = (seek(0).len() + cluster.len()) as u16;
        let segment = element(&[0x18, 0x53, 0x80, 0x67], &[&seek(place), &cluster, last]);
        [element(&[0x1a, 0x45, 0xdf, 0xa3], &[&element(&[0x42, 0x82], &[b"webm"])]), segment].concat()
    }

    #[test]
    fn tags_become_void() {
        let long = "x".repeat(300);
        for (name, value, expected) in [
            ("LOCATION", "+48.8584+002.2945/", Metadata::Location),
            ("com.apple.quicktime.make", "Cam", Metadata::Other),
            ("COMMENT", &long, Metadata::Other),
            ("ENCODER", "Lavf60", Metadata::Bare),
        ] {
            let before = file(&tags(name, value));
            assert_eq!(metadata(&before, TYPE), expected, "{name}");
            let after = clean(&before, TYPE);
            assert_eq!(after.len(), before.len());
            let holds = |word: &str| after.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(holds("samples"));
            assert_eq!(holds(value), expected == Metadata::Bare, "{name}");
            assert_eq!(metadata(&after, TYPE), Metadata::Bare, "{name}");
        }
    }
}
