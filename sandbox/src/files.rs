//! Storage of uploaded bytes.
//!
//! They are read once as a stream: hashed, counted, sniffed and stored as a file. Of an upload above
//! [`MAX_KEPT_BYTES`] only hash and size are kept, so that neither memory nor disk grow with what clients
//! send.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Maximum size of an upload whose bytes are stored.
pub(crate) const MAX_KEPT_BYTES: u64 = 32 << 20;

/// Maximum number of bytes that a sandbox without a folder stores.
const MEMORY_BYTES: usize = 256 << 20;

/// Number of leading bytes that are inspected of an upload that is not stored; a JPEG may have a long EXIF block before
/// its size.
const HEAD_BYTES: usize = 256 << 10;

/// Metadata of uploaded bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Upload {
    /// Id of the stored bytes.
    pub(crate) id: String,
    /// SHA-256, in hex.
    pub(crate) sha256: String,
    /// Size in bytes.
    pub(crate) size_bytes: u64,
    /// Detected content type.
    pub(crate) mime: Option<String>,
    /// Width and height of an image as it is displayed, in pixels.
    pub(crate) pixels: Option<(u32, u32)>,
    /// File name given by the client.
    pub(crate) name: Option<String>,
    /// Content type declared by the client.
    pub(crate) declared: Option<String>,
    /// True when its first bytes ask for processing that never ends.
    #[serde(default)]
    pub(crate) is_stuck: bool,
    /// True when its first bytes ask for processing that fails.
    #[serde(default)]
    pub(crate) is_failing: bool,
}

/// Storage of uploaded bytes.
pub(crate) enum Files {
    /// In a folder.
    Folder(PathBuf),
    /// In memory, up to [`MEMORY_BYTES`].
    Memory(Mutex<HashMap<String, Bytes>>),
}

impl Files {
    /// Opens a storage in memory or in this folder.
    ///
    /// # Errors
    ///
    /// When the folder can't be created.
    pub(crate) fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        match folder {
            None => Ok(Self::Memory(Mutex::default())),
            Some(folder) => {
                std::fs::create_dir_all(&folder)?;
                Ok(Self::Folder(folder))
            }
        }
    }

    /// Reads to the end, and stores the bytes unless there are too many.
    ///
    /// # Errors
    ///
    /// When reading fails or the file can't be written.
    pub(crate) async fn store(&self, mut reader: impl AsyncRead + Unpin + Send) -> io::Result<Upload> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let mut writer = match self {
            Self::Folder(folder) => Writer::File(tokio::fs::File::create(folder.join(&id)).await?),
            Self::Memory(_) => Writer::Memory(Vec::new()),
        };
        let (mut hash, mut size_bytes, mut head) = (Sha256::new(), 0_u64, Vec::new());
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = reader.read(&mut piece).await?;
            if read == 0 {
                break;
            }
            let piece = &piece[..read];
            hash.update(piece);
            head.extend_from_slice(&piece[..read.min(HEAD_BYTES - head.len())]);
            size_bytes += read as u64;
            if size_bytes > MAX_KEPT_BYTES {
                if !matches!(writer, Writer::Nothing) {
                    writer = Writer::Nothing;
                    self.discard(&id);
                }
                continue;
            }
            match &mut writer {
                Writer::File(file) => file.write_all(piece).await?,
                Writer::Memory(bytes) => bytes.extend_from_slice(piece),
                Writer::Nothing => {}
            }
        }
        match writer {
            Writer::File(mut file) => file.flush().await?,
            Writer::Memory(bytes) => self.keep_in_memory(&id, bytes.into()),
            Writer::Nothing => {}
        }
        let kept = self.read(&id);
        Ok(describe(id, hash, size_bytes, kept.as_deref().unwrap_or(&head)))
    }

    /// Stores bytes that are in memory.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub(crate) fn store_bytes(&self, bytes: Bytes) -> io::Result<Upload> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let mut hash = Sha256::new();
        hash.update(&bytes);
        let upload = describe(id, hash, bytes.len() as u64, &bytes);
        if upload.size_bytes <= MAX_KEPT_BYTES {
            match self {
                Self::Folder(folder) => std::fs::write(folder.join(&upload.id), &bytes)?,
                Self::Memory(_) => self.keep_in_memory(&upload.id, bytes),
            }
        }
        Ok(upload)
    }

    /// Returns the bytes, if they were stored.
    pub(crate) fn read(&self, id: &str) -> Option<Bytes> {
        match self {
            // The id came from a client's address; only a well-formed one is used as a file name.
            Self::Folder(_) if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) => None,
            Self::Folder(folder) => std::fs::read(folder.join(id)).ok().map(Bytes::from),
            Self::Memory(files) => files.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned(),
        }
    }

    /// Deletes the bytes.
    pub(crate) fn discard(&self, id: &str) {
        match self {
            Self::Folder(folder) => match std::fs::remove_file(folder.join(id)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, "Left an upload behind");
                }
                _ => {}
            },
            Self::Memory(files) => {
                files.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            }
        }
    }

    fn keep_in_memory(&self, id: &str, bytes: Bytes) {
        if let Self::Memory(files) = self {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            if files.values().map(Bytes::len).sum::<usize>() + bytes.len() <= MEMORY_BYTES {
                files.insert(id.to_owned(), bytes);
            }
        }
    }
}

enum Writer {
    File(tokio::fs::File),
    Memory(Vec<u8>),
    Nothing,
}

fn describe(id: String, hash: Sha256, size_bytes: u64, bytes: &[u8]) -> Upload {
    Upload {
        id,
        sha256: hex::encode(hash.finalize()),
        size_bytes,
        mime: infer::get(bytes).map(|kind| kind.mime_type().to_owned()),
        pixels: displayed_size(bytes),
        name: None,
        declared: None,
        is_stuck: contains(bytes, b"sandbox-stuck"),
        is_failing: contains(bytes, b"sandbox-failed"),
    }
}

/// Returns the width and height of a picture as a viewer shows it: turned as its EXIF data say. HEIF and AVIF have
/// transformations of their own instead, which `imagesize` applies.
fn displayed_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = imagesize::blob_size(bytes).ok()?;
    let sides = (u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?);
    let has_own = matches!(imagesize::image_type(bytes), Ok(imagesize::ImageType::Heif(_)));
    // 5 to 8: the first row of the file is a side of the picture.
    let lies_on_its_side = !has_own && matches!(orientation(bytes), Some(5..=8));
    Some(if lies_on_its_side { (sides.1, sides.0) } else { sides })
}

/// Returns the orientation of EXIF data.
fn orientation(bytes: &[u8]) -> Option<u32> {
    let exif = exif::Reader::new().read_from_container(&mut io::Cursor::new(bytes)).ok()?;
    exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY)?.value.get_uint(0)
}

/// Returns whether the first bytes contain a word, for platforms that get no file name.
fn contains(head: &[u8], word: &[u8]) -> bool {
    head[..head.len().min(4 << 10)].windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_hash_and_size_are_kept_of_a_large_upload() {
        let folder = std::env::temp_dir().join(format!("fanfare-files-{}", uuid::Uuid::now_v7()));
        for files in [Files::open(None).unwrap(), Files::open(Some(folder.clone())).unwrap()] {
            let small = files.store(&b"\x89PNG\r\n\x1a\n-"[..]).await.unwrap();
            assert_eq!(small.mime.as_deref(), Some("image/png"));
            assert!(files.read(&small.id).is_some());
            let large = files.store(tokio::io::repeat(7).take(MAX_KEPT_BYTES + 1)).await.unwrap();
            assert_eq!(large.size_bytes, MAX_KEPT_BYTES + 1);
            assert!(files.read(&large.id).is_none());
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    }

    /// EXIF data with an orientation.
    fn exif(orientation: u8) -> Vec<u8> {
        let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
        [&b"MM\0*\0\0\0\x08\0\x01"[..], &entry, &[0; 4]].concat()
    }

    /// Files of 400 by 300 stored pixels, without pixels.
    fn pictures(exif: &[u8]) -> [Vec<u8>; 3] {
        let chunk = |kind: &[u8], data: &[u8]| {
            [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], kind, data, &[0; 4]].concat()
        };
        let header = [&400_u32.to_be_bytes()[..], &300_u32.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        let png = [
            b"\x89PNG\r\n\x1a\n".to_vec(),
            chunk(b"IHDR", &header),
            chunk(b"eXIf", exif),
            chunk(b"IDAT", &[0; 8]),
            chunk(b"IEND", &[]),
        ];
        let app1 = [b"Exif\0\0", exif].concat();
        let length = u16::try_from(app1.len() + 2).unwrap().to_be_bytes();
        let jpeg = [
            &b"\xff\xd8\xff\xe1"[..],
            &length,
            &app1,
            b"\xff\xc0\0\x11\x08\x01\x2c\x01\x90\x03\x01\x22\0\x02\x11\x01\x03\x11\x01",
            b"\xff\xda\0\x0c\x03\x01\0\x02\x11\x03\x11\0\x3f\0\x55\xff\xd9",
        ];
        let part = |kind: &[u8], data: &[u8]| {
            [kind, &u32::try_from(data.len()).unwrap().to_le_bytes(), data, &vec![0; data.len() % 2]].concat()
        };
        let extended = [&[8, 0, 0, 0][..], &399_u32.to_le_bytes()[..3], &299_u32.to_le_bytes()[..3]].concat();
        let parts =
            [part(b"VP8X", &extended), part(b"VP8L", &vec![0; HEAD_BYTES]), part(b"EXIF", exif)].concat();
        let webp = part(b"RIFF", &[b"WEBP", &parts[..]].concat());
        [png.concat(), jpeg.concat(), webp]
    }

    #[tokio::test]
    async fn a_picture_has_the_size_in_which_it_is_displayed() {
        let files = Files::open(None).unwrap();
        for orientation in 0..=9 {
            for bytes in pictures(&exif(orientation)) {
                let sides = if (5..=8).contains(&orientation) { (300, 400) } else { (400, 300) };
                let stored = files.store(&bytes[..]).await.unwrap();
                assert_eq!(stored.pixels, Some(sides), "{orientation}: {:?}", stored.mime);
                assert_eq!(files.store_bytes(bytes.into()).unwrap().pixels, Some(sides));
            }
        }
    }
}
