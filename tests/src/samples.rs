//! Small media files of each kind, with a valid structure and no real content.

/// Returns a black PNG.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::new(width, height);
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("memory is writable");
    bytes.into_inner()
}

/// Returns a PNG that declares these dimensions, without pixel data for them.
pub fn hollow_png(width: u32, height: u32) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    let chunk = |kind: &[u8], data: &[u8]| {
        [&u32::try_from(data.len()).expect("short").to_be_bytes()[..], kind, data, &[0; 4]].concat()
    };
    let chunks =
        [chunk(b"IHDR", &header), chunk(b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]), chunk(b"IEND", &[])];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

/// Returns a PNG with pixels, which compress badly.
pub fn painting(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let picture = image::RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        image::Rgb([a, b, c])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("memory is writable");
    bytes.into_inner()
}

/// Returns a GIF with this number of frames.
pub fn gif(pictures: usize) -> Vec<u8> {
    let picture = b"\x21\xf9\x04\0\x0a\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0";
    [&b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff"[..], &picture.repeat(pictures), b"\x3b"].concat()
}

/// Returns a GIF of this size whose frames change a pixel each: a few bytes cost a decoder all its pixels again.
pub fn flicker(width: u16, height: u16, frames: usize) -> Vec<u8> {
    let sides = [width, height].map(u16::to_le_bytes).concat();
    [&b"GIF89a"[..], &sides, &gif(frames)[10..]].concat()
}

/// Returns a lossless WebP of one color: some thirty bytes for any size.
/// <https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification>
pub fn blank_webp(width: u32, height: u32) -> Vec<u8> {
    // No alpha, version 0, no transformation, no color cache, no further codes; then five codes of a single symbol, which
    // take no bits of the data.
    let code = 0b0001;
    let codes = (0..5).fold(0_u64, |codes, at| codes | code << (4 * at));
    let bits = u64::from(width - 1) | u64::from(height - 1) << 14 | codes << 35;
    let stream = [&[0x2f][..], &bits.to_le_bytes(), &[0]].concat();
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_le_bytes();
    [&b"RIFF"[..], &length(stream.len() + 12), b"WEBPVP8L", &length(stream.len()), &stream].concat()
}

/// Returns an ISO base media box.
pub fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&u32::try_from(content.len() + 8).expect("short").to_be_bytes()[..], kind, content].concat()
}

/// Returns the boxes before the media data of an MP4 video: `ftyp` and `moov`.
pub fn film_head(width: u32, height: u32, milliseconds: u32) -> Vec<u8> {
    let times = |head: usize, tail: usize| {
        let scale = [1000u32.to_be_bytes(), milliseconds.to_be_bytes()].concat();
        [vec![0; head], scale, vec![0; tail]].concat()
    };
    let unity = [0x10000u32, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000].map(u32::to_be_bytes).concat();
    let sides = [width << 16, height << 16].map(u32::to_be_bytes).concat();
    let tkhd = boxed(b"tkhd", &[vec![0; 40], unity, sides].concat());
    let hdlr = boxed(b"hdlr", &[&[0; 8][..], b"vide", &[0; 13]].concat());
    let mdia = boxed(b"mdia", &[boxed(b"mdhd", &times(12, 4)), hdlr].concat());
    let moov = [boxed(b"mvhd", &times(12, 80)), boxed(b"trak", &[tkhd, mdia].concat())].concat();
    [boxed(b"ftyp", b"isom\0\0\x02\0isommp42"), boxed(b"moov", &moov)].concat()
}

/// Returns an MP4 video with `length` bytes of media data.
pub fn film(milliseconds: u32, length: usize) -> Vec<u8> {
    [film_head(640, 360, milliseconds), boxed(b"mdat", &vec![0x2a; length])].concat()
}

/// Returns a gray JPEG, of which each block of 64 pixels takes two bits.
/// <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>
pub fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let [h, w] = [height, width].map(u16::to_be_bytes);
    let factors = [&b"\xff\xdb\0\x43\0"[..], &[1; 64]].concat();
    let frame = [&b"\xff\xc0\0\x0b\x08"[..], &h, &w, b"\x01\x01\x11\0"].concat();
    // Of both tables the only code is a zero: no difference of brightness, and the end of a block.
    let codes = [0, 0x10].map(|table| [&[0xff, 0xc4, 0, 20, table, 1][..], &[0; 16]].concat()).concat();
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let scan = [&b"\xff\xda\0\x08\x01\x01\0\0\x3f\0"[..], &vec![0; blocks.div_ceil(4)]].concat();
    let start = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0";
    [&start[..], &factors, &frame, &codes, &scan, b"\xff\xd9"].concat()
}

/// Returns a JPEG with arithmetic coding, which few programs decode.
/// <https://www.w3.org/Graphics/JPEG/itu-t81.pdf>, B.2.4.3
pub fn arithmetic_jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = jpeg(width, height);
    // The frame's marker says the coding, and its conditions precede it.
    let frame = bytes.windows(2).position(|marker| marker == b"\xff\xc0").expect("a frame");
    bytes[frame + 1] = 0xc9;
    bytes.splice(frame..frame, *b"\xff\xcc\0\x06\0\x10\x10\x05");
    bytes
}

/// Returns a WAV file with `length` bytes of audio, 16,000 for each second.
pub fn wav(length: u32) -> Vec<u8> {
    let head = [
        &b"RIFF"[..],
        &(length + 36).to_le_bytes(),
        b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data",
        &length.to_le_bytes(),
    ];
    [head.concat(), vec![0; length as usize]].concat()
}

/// Returns a WebM video of two seconds with placeholder media data.
pub fn webm() -> Vec<u8> {
    let element = |id: &[u8], content: &[u8]| {
        let length = u16::try_from(content.len()).expect("short") | 0x4000;
        [id, &length.to_be_bytes(), content].concat()
    };
    let header = element(b"\x1a\x45\xdf\xa3", &element(b"\x42\x82", b"webm"));
    let duration = element(b"\x44\x89", &2000f64.to_be_bytes());
    let info =
        element(b"\x15\x49\xa9\x66", &[element(b"\x2a\xd7\xb1", &[0x0f, 0x42, 0x40]), duration].concat());
    let video = element(b"\xe0", &[element(b"\xb0", &[2, 0x80]), element(b"\xba", &[1, 0x68])].concat());
    let tracks = element(b"\x16\x54\xae\x6b", &element(b"\xae", &video));
    let cluster = element(b"\x1f\x43\xb6\x75", &[0x2a; 64]);
    [header, element(b"\x18\x53\x80\x67", &[info, tracks, cluster].concat())].concat()
}

/// Returns a PDF without pages.
pub fn pdf() -> Vec<u8> {
    b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF".to_vec()
}

/// Returns a DOCX archive whose entries each declare `unpacked` bytes of uncompressed content.
pub fn docx(unpacked: u32) -> Vec<u8> {
    let names: [&[u8]; 4] =
        [b"[Content_Types].xml", b"_rels/.rels", b"word/document.xml", b"word/styles.xml"];
    // The content is never unpacked, regardless of the declared size.
    let content = [0x4b; 64];
    let sizes = [u32::try_from(content.len()).expect("short"), unpacked].map(u32::to_le_bytes).concat();
    let common = |name: &[u8]| {
        let length = u16::try_from(name.len()).expect("short").to_le_bytes();
        [&[20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0x58, 0, 0, 0, 0][..], &sizes, &length, &[0, 0]].concat()
    };
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for name in names {
        let at = u32::try_from(bytes.len()).expect("short").to_le_bytes();
        directory.push([b"PK\x01\x02\x14\0", &common(name)[..], &[0; 10], &at, name].concat());
        bytes.extend([b"PK\x03\x04", &common(name)[..], name, &content].concat());
    }
    let at = u32::try_from(bytes.len()).expect("short").to_le_bytes();
    let directory = directory.concat();
    let length = u32::try_from(directory.len()).expect("short").to_le_bytes();
    let end = [&b"PK\x05\x06\0\0\0\0\x04\0\x04\0"[..], &length, &at, &[0, 0]].concat();
    [bytes, directory, end].concat()
}

/// Returns an AVI video of 25 frames per second with placeholder media data.
pub fn avi(width: u32, height: u32, frames: u32) -> Vec<u8> {
    let chunk = |id: &[u8; 4], content: &[u8]| {
        [id, &u32::try_from(content.len()).expect("short").to_le_bytes()[..], content].concat()
    };
    let list = |id, kind: &[u8; 4], content: &[u8]| chunk(id, &[&kind[..], content].concat());
    let numbers = [1, 25, 0, frames].map(u32::to_le_bytes).concat();
    let strh = chunk(b"strh", &[&b"vidsH264"[..], &[0; 12], &numbers, &[0; 20]].concat());
    let strf = chunk(b"strf", &[&[40, width, height].map(u32::to_le_bytes).concat()[..], &[0; 28]].concat());
    let header = [chunk(b"avih", &[0; 56]), list(b"LIST", b"strl", &[strh, strf].concat())].concat();
    let parts = [list(b"LIST", b"hdrl", &header), list(b"LIST", b"movi", &chunk(b"00dc", &[0x2a; 64]))];
    list(b"RIFF", b"AVI ", &parts.concat())
}

/// Returns a black BMP.
pub fn bmp(width: u32, height: u32) -> Vec<u8> {
    let pixels = (width * 3).next_multiple_of(4) * height;
    let numbers = [54, 40, width, height, 24 << 16 | 1, 0, 0, 0, 0, 0, 0].map(u32::to_le_bytes).concat();
    let size = (54 + pixels).to_le_bytes();
    [&b"BM"[..], &size, &[0; 4], &numbers, &vec![0; pixels as usize]].concat()
}

/// Returns a compound file with a stream of PowerPoint of `length` bytes, and its directory behind it.
/// <https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb>
pub fn ppt(length: usize) -> Vec<u8> {
    const SECTOR: usize = 512;
    let [end, none] = [0xffff_fffe_u32, u32::MAX];
    let number = |number: usize| u32::try_from(number).expect("short");
    let sectors = length.div_ceil(SECTOR);
    let tables = (sectors + 1).div_ceil(SECTOR / 4 - 1);
    // The allocation table, the stream and the directory, in this order.
    let mut next: Vec<_> = (1..=number(tables + sectors)).collect();
    next[..tables].fill(0xffff_fffd);
    next[tables + sectors - 1] = end;
    next.push(end);
    next.resize(tables * SECTOR / 4, none);
    let places: Vec<_> = (0..109).map(|index| if index < tables { number(index) } else { none }).collect();
    let numbers =
        [&[number(tables), number(tables + sectors), 0, 4096, end, 0, end, 0][..], &places].concat();
    let bytes = |numbers: Vec<u32>| numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    let head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
    let version = [0x3e_u16, 3, 0xfffe, 9, 6].map(u16::to_le_bytes).concat();
    let header = [&head[..], &[0; 16], &version, &[0; 10], &bytes(numbers)].concat();
    let entry = |name: &str, kind: u8, child: u32, start: usize, length: usize| {
        let mut letters: Vec<_> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let width = u16::try_from(letters.len() + 2).expect("short").to_le_bytes();
        letters.resize(64, 0);
        let links = bytes(vec![none, none, child]);
        let tail = bytes(vec![number(start), number(length), 0]);
        [&letters[..], &width, &[kind, 1], &links, &[0; 36], &tail].concat()
    };
    let directory = [
        entry("Root Entry", 5, 1, 0, 0),
        entry("PowerPoint Document", 2, none, tables, length),
        vec![0; SECTOR / 2],
    ];
    [header, bytes(next), vec![0x2a; sectors * SECTOR], directory.concat()].concat()
}

/// Returns an MP4 video of 4 s of High 10 H.264 and AAC at 24 frames per second, with its index behind `length` bytes of
/// media data.
pub fn encoded_film(length: usize) -> Vec<u8> {
    film_with(length, 1, &[])
}

/// Returns such a video with a chroma subsampling of 4:2:2, of which an edit list leaves out the first second.
pub fn edited_film(length: usize) -> Vec<u8> {
    let entry = [0, 1, 3000, 24_000, 1 << 16].iter().flat_map(|number: &u32| number.to_be_bytes());
    film_with(length, 2, &boxed(b"edts", &boxed(b"elst", &entry.collect::<Vec<_>>())))
}

fn film_with(length: usize, chroma: u8, edits: &[u8]) -> Vec<u8> {
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let track = |handler: &[u8; 4], sides: [u32; 2], entry: Vec<u8>| {
        let tkhd = boxed(b"tkhd", &[vec![0; 76], numbers(&sides.map(|side| side << 16))].concat());
        let mdhd = boxed(b"mdhd", &[vec![0; 12], numbers(&[24_000, 96_000, 0])].concat());
        let hdlr = boxed(b"hdlr", &[&[0; 8][..], handler, &[0; 13]].concat());
        let stsd = boxed(b"stsd", &[numbers(&[0, 1]), entry].concat());
        let stts = boxed(b"stts", &numbers(&[0, 1, 96, 1000]));
        let minf = boxed(b"minf", &boxed(b"stbl", &[stsd, stts].concat()));
        let edits = if handler == b"vide" { edits.to_vec() } else { Vec::new() };
        boxed(b"trak", &[tkhd, edits, boxed(b"mdia", &[mdhd, hdlr, minf].concat())].concat())
    };
    let avc = [1, 110, 0, 40, 0xff, 0xe1, 0, 1, 7, 1, 0, 1, 8, 0xfc | chroma, 0xfa, 0xfa, 0];
    let video = boxed(b"avc1", &[vec![0; 78], boxed(b"avcC", &avc)].concat());
    let audio = boxed(b"mp4a", &[0; 28]);
    let mvhd = boxed(b"mvhd", &[vec![0; 12], numbers(&[1000, 4000]), vec![0; 80]].concat());
    let moov = [mvhd, track(b"vide", [640, 360], video), track(b"soun", [0, 0], audio)].concat();
    let ftyp = boxed(b"ftyp", b"isom\0\0\x02\0isommp42");
    [ftyp, boxed(b"mdat", &vec![0x2a; length]), boxed(b"moov", &moov)].concat()
}

/// Returns a PDF without pages that is encrypted.
pub fn locked_pdf() -> Vec<u8> {
    let head = "%PDF-1.7\n1 0 obj\n<<>>\nendobj\n";
    let trailer = "xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Encrypt 5 0 R>>\n";
    format!("{head}{trailer}startxref\n{}\n%%EOF\n", head.len()).into_bytes()
}
