//! The most expensive file of each format: few bytes that cost much, and many small parts.
//!
//! The work on a file has a deadline: a picture is decoded for at most [`PICTURE`], and the properties of any file
//! are read within [`PROBE`]. The search repeats and enlarges what a parser walks through.

use crate::PROGRAM;
use serde_json::{Value, json};
use std::time::Duration;
use tests::{
    World, if_right, login,
    meter::{Cost, Meter},
    proof::{Section, is_full},
    samples, wait_until,
};

/// CPU time in which a picture is decoded and scaled, or refused.
const PICTURE: Duration = Duration::from_secs(30);
/// Time in which the properties of a file are read, or it is refused.
const PROBE: Duration = Duration::from_secs(10);

/// Name of a variant of a format, and its bytes for a size.
type Maker = (&'static str, &'static str, fn(usize) -> Vec<u8>);

/// Files by the name of their format and of what is large about them. Pictures come last: their thumbnails are made beside
/// what follows.
const MAKERS: [Maker; 34] = [
    ("mp4", "many boxes", |size| {
        let head = samples::film_head(640, 360, 8_000);
        parts(&head, &samples::boxed(b"free", b""), size, &samples::boxed(b"mdat", b"*"))
    }),
    ("mp4", "many fragments", |size| {
        let head = samples::film_head(640, 360, 8_000);
        let traf = samples::boxed(b"traf", &samples::boxed(b"tfhd", &[0; 8]));
        parts(&head, &samples::boxed(b"moof", &traf), size, b"")
    }),
    ("mp4", "many tracks", |size| {
        let track = samples::boxed(b"trak", &samples::boxed(b"tkhd", &[0; 84]));
        let moov = parts(&samples::boxed(b"mvhd", &[0; 100]), &track, size, b"");
        [samples::boxed(b"ftyp", b"isom\0\0\x02\0isommp42"), samples::boxed(b"moov", &moov)].concat()
    }),
    ("mov", "many boxes", |size| {
        let ftyp = samples::boxed(b"ftyp", b"qt  \0\0\x02\0qt  ");
        parts(&ftyp, &samples::boxed(b"wide", b""), size, &samples::film_head(640, 360, 8_000)[24..])
    }),
    ("m4a", "many boxes", |size| {
        let ftyp = samples::boxed(b"ftyp", b"M4A \0\0\x02\0M4A ");
        parts(&ftyp, &samples::boxed(b"free", b""), size, b"")
    }),
    ("webm", "many elements", |size| parts(&samples::webm(), b"\xec\x80", size, b"")),
    ("mkv", "many elements", |size| {
        let webm = samples::webm();
        let head: Vec<u8> = webm[..12].to_vec();
        parts(&head, b"\xec\x80", size, &webm[12..])
    }),
    ("avi", "many chunks", |size| parts(&samples::avi(640, 360, 50), b"JUNK\0\0\0\0", size, b"")),
    ("mp3", "many frames", |size| parts(b"", &[&b"\xff\xfb\x90\0"[..], &[0; 413]].concat(), size, b"")),
    ("mp3", "no frame", |size| parts(b"ID3\x03\0\0\0\0\0\0", b"\xff\xfb\xf0", size, b"")),
    ("aac", "many frames", |size| parts(b"", b"\xff\xf1\x50\x80\x00\xe0\xfc", size, b"")),
    ("wav", "many chunks", |size| {
        let wav = samples::wav(16_000);
        parts(&wav[..12], b"junk\0\0\0\0", size, &wav[12..])
    }),
    ("ogg", "many pages", |size| parts(b"", &page(), size, b"")),
    ("flac", "many blocks", |size| {
        parts(&[&b"fLaC\0\0\0\x22"[..], &[0; 34]].concat(), b"\x01\0\0\0", size, b"")
    }),
    ("pdf", "many objects", |size| {
        parts(b"%PDF-1.7\n", b"1 0 obj\n<<>>\nendobj\n", size, &samples::pdf()[9..])
    }),
    ("pdf", "many tables", |size| {
        parts(b"%PDF-1.7\n", b"xref\n0 0\ntrailer\n<</Prev 9>>\nstartxref\n9\n%%EOF\n", size, b"")
    }),
    ("doc", "a long stream", samples::ppt),
    ("xls", "a long stream", samples::ppt),
    ("ppt", "a long stream", samples::ppt),
    ("docx", "many entries", |size| entries(b"word/document.xml", size)),
    ("xlsx", "many entries", |size| entries(b"xl/workbook.xml", size)),
    ("odt", "many entries", |size| entries(b"mimetype", size)),
    ("jpg", "many pixels", |_| samples::jpeg(10_000, 10_000)),
    ("jpg", "arithmetic coding", |_| samples::arithmetic_jpeg(10_000, 10_000)),
    ("jpg", "many segments", |size| {
        parts(b"\xff\xd8", b"\xff\xe1\0\x04\0\0", size, &samples::jpeg(8, 8)[2..])
    }),
    ("png", "many pixels", |_| bits(10_000, 10_000)),
    ("png", "many chunks", |size| {
        let png = samples::png(8, 8);
        parts(&png[..33], b"\0\0\0\0tEXt\xbe\x78\xde\xe5", size, &png[33..])
    }),
    ("webp", "many pixels", |_| samples::blank_webp(10_000, 10_000)),
    ("webp", "long sides", |_| samples::blank_webp(16_383, 6_100)),
    ("gif", "many frames", |size| samples::gif(size / 24)),
    ("gif", "many pixels in frames", |_| samples::flicker(1_000, 1_000, 99)),
    ("bmp", "many pixels", |_| samples::bmp(3_000, 3_000)),
    ("avif", "many boxes", |size| still(b"avif", size)),
    ("heic", "many boxes", |size| still(b"heic", size)),
];

/// Returns a part again and again, in about `size` bytes, between a head and a tail.
fn parts(head: &[u8], part: &[u8], size: usize, tail: &[u8]) -> Vec<u8> {
    [head, &part.repeat(size / part.len()), tail].concat()
}

/// Returns the container of a still image whose index has many boxes.
fn still(brand: &[u8; 4], size: usize) -> Vec<u8> {
    let ftyp = samples::boxed(b"ftyp", &[&brand[..], b"\0\0\0\0mif1", brand].concat());
    let meta = parts(&[0; 4], &samples::boxed(b"free", b""), size, b"");
    [ftyp, samples::boxed(b"meta", &meta)].concat()
}

/// Returns a page of an Ogg stream.
fn page() -> Vec<u8> {
    [&b"OggS\0\0"[..], &[0; 20], b"\x01\x13OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0"].concat()
}

/// Returns an archive with many empty entries.
fn entries(name: &[u8], size: usize) -> Vec<u8> {
    let count = size / (2 * (38 + name.len()));
    let common = |name: &[u8]| {
        let length = u16::try_from(name.len()).expect("short").to_le_bytes();
        [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x58, 0, 0, 0, 0][..], &[0; 8], &length, &[0, 0]].concat()
    };
    let local = [b"PK\x03\x04", &common(name)[..], name].concat();
    let central = [b"PK\x01\x02\x14\0", &common(name)[..], &[0; 14], name].concat();
    let files = local.repeat(count);
    let directory = central.repeat(count);
    let number = |number: usize| u32::try_from(number).expect("short").to_le_bytes();
    let shown = u16::try_from(count.min(65_535)).expect("a number").to_le_bytes();
    let end =
        [&b"PK\x05\x06\0\0\0\0"[..], &shown, &shown, &number(directory.len()), &number(files.len()), &[0, 0]];
    [files, directory, end.concat()].concat()
}

/// Returns a black PNG with a bit per pixel, which is stored without compression.
fn bits(width: u32, height: u32) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let content = [&kind[..], data].concat();
        let length = u32::try_from(data.len()).expect("short").to_be_bytes();
        [&length[..], &content, &checksum(&content).to_be_bytes()].concat()
    };
    let raw = (width.div_ceil(8) + 1) as usize * height as usize;
    let mut data = vec![0x78, 1];
    for from in (0..raw).step_by(65_535) {
        let length = u16::try_from((raw - from).min(65_535)).expect("short");
        data.push(u8::from(from + usize::from(length) == raw));
        data.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        data.resize(data.len() + usize::from(length), 0);
    }
    // Adler-32 of zeros.
    data.extend((u32::try_from(raw % 65_521).expect("short") << 16 | 1).to_be_bytes());
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 0, 0, 0, 0]].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &header), &chunk(b"IDAT", &data), &chunk(b"IEND", b"")]
        .concat()
}

/// Returns the CRC-32 of bytes.
fn checksum(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256)
        .map(|byte| {
            (0..8).fold(byte, |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        })
        .collect();
    !bytes.iter().fold(!0_u32, |crc, byte| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)])
}

/// The most expensive file that was found for a format.
pub(super) struct File {
    format: &'static str,
    variant: &'static str,
    size: usize,
    status: String,
    cost: Cost,
}

impl File {
    /// Adds it to a section.
    pub(super) fn write(&self, section: &mut Section) {
        let Self { format, variant, size, status, cost } = self;
        let value = format!(
            "{:.2} s, {} MiB: {variant}, {} KiB, {status}",
            cost.cpu().as_secs_f64(),
            cost.mebibytes(),
            size >> 10
        );
        section.figure(format!("File `{format}`"), value);
    }

    /// Returns the time that its format has.
    fn deadline(&self) -> Duration {
        let is_picture = ["jpg", "png", "webp", "gif", "bmp", "avif", "heic"].contains(&self.format);
        if is_picture { PICTURE + PROBE } else { PROBE }
    }
}

/// Uploads the files of each format in growing sizes, and returns the most expensive one of each.
pub(super) async fn sweep() -> Vec<File> {
    let world = World::of(&PROGRAM).own().platforms(&["instagram"]).start().await;
    let cookie = login::sign_in(&world).await;
    let meter = Meter::of(&world).await;
    let mut worst: Vec<File> = Vec::new();
    let sizes: &[usize] = if is_full() { &[1 << 20, 8 << 20, 48 << 20] } else { &[4 << 20] };
    for (format, variant, make) in MAKERS {
        let mut before = 0;
        for size in sizes {
            let bytes = make(*size);
            // A size that changes nothing.
            if bytes.len() == before {
                break;
            }
            before = bytes.len();
            let file = examine(&world, &meter, &cookie, (format, variant), bytes).await;
            let (took, limit) = (file.cost.cpu(), file.deadline());
            assert!(took <= limit, "{format}, {variant}: {} bytes took {took:?}, of {limit:?}", file.size);
            println!("{format}, {variant}: {} bytes, {:?}, {}", file.size, file.cost, file.status);
            match worst.iter_mut().find(|known| known.format == format) {
                Some(known) if known.cost.cpu() < took => *known = file,
                Some(_) => {}
                None => worst.push(file),
            }
        }
    }
    worst
}

/// Uploads a file, and waits until it was inspected and its thumbnail was made, or refused.
async fn examine(
    world: &World,
    meter: &Meter,
    cookie: &str,
    (format, variant): (&'static str, &'static str),
    bytes: Vec<u8>,
) -> File {
    let size = bytes.len();
    let uploaded = world.declare(json!({ "filename": format!("a.{format}") })).await;
    let id = uploaded["id"].as_str().unwrap().to_owned();
    let work = async {
        let sent = world.http.put(uploaded["upload_url"].as_str().unwrap()).body(bytes).send().await.unwrap();
        if !sent.status().is_success() {
            return format!("refused with {}", sent.status());
        }
        let (status, confirmed) = world.confirm(&uploaded).await;
        if !status.is_success() {
            return format!("refused: {}", confirmed["code"].as_str().unwrap_or_default());
        }
        let path = format!("/media/{id}");
        let is_done = |medium: &Value| medium["status"] == "ready" || medium["status"] == "failed";
        let medium =
            wait_until("the file to be inspected", async || if_right(world.get(&path).await, is_done));
        let status = medium.await["status"].as_str().unwrap().to_owned();
        let origin = world.base.trim_end_matches("/api/v1");
        let thumbnail = format!("{origin}/dashboard/media/{id}/thumbnail");
        let answer = world.http.get(thumbnail).header("cookie", cookie).send().await.unwrap();
        format!("{status}, thumbnail {}", answer.status().as_u16())
    };
    let (status, cost) = meter.measure(work).await;
    File { format, variant, size, status, cost }
}
