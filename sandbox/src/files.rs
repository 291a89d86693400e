//! Uploaded bytes.
//!
//! They are read once, as they come: hashed, measured, sniffed, and kept as a file of their own. Of
//! what is larger than [`KEPT_BYTES`] only hash and size remain, since nobody looks at a gigabyte in
//! a sandbox; neither memory nor disk grow with what a client sends.

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

/// The most bytes of one upload that are kept.
pub(crate) const KEPT_BYTES: u64 = 32 << 20;

/// The most bytes that a sandbox without a folder keeps in all.
const MEMORY_BYTES: usize = 256 << 20;

/// How much of the beginning tells what it is; a JPEG may carry a long EXIF block before its size.
const HEAD_BYTES: usize = 256 << 10;

/// What is known of uploaded bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Upload {
    /// Under which the bytes are kept.
    pub(crate) id: String,
    /// SHA-256, in hex.
    pub(crate) sha256: String,
    /// How many bytes.
    pub(crate) size_bytes: u64,
    /// What the bytes are, where they tell.
    pub(crate) mime: Option<String>,
    /// Pixels, where they are an image.
    pub(crate) pixels: Option<(u32, u32)>,
    /// The name the client gave.
    pub(crate) name: Option<String>,
    /// The content type the client declared.
    pub(crate) declared: Option<String>,
    /// Whether its beginning says that it is processed for ever.
    #[serde(default)]
    pub(crate) is_stuck: bool,
    /// Whether its beginning says that it can't be processed.
    #[serde(default)]
    pub(crate) is_failing: bool,
}

/// The place where bytes are kept.
pub(crate) enum Files {
    /// In a folder.
    Folder(PathBuf),
    /// In memory, up to [`MEMORY_BYTES`].
    Memory(Mutex<HashMap<String, Bytes>>),
}

impl Files {
    /// A place in memory, or in this folder.
    ///
    /// # Errors
    ///
    /// When the folder can't be made.
    pub(crate) fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        match folder {
            None => Ok(Self::Memory(Mutex::default())),
            Some(folder) => {
                std::fs::create_dir_all(&folder)?;
                Ok(Self::Folder(folder))
            }
        }
    }

    /// Reads to the end, and keeps what is not too large to keep.
    ///
    /// # Errors
    ///
    /// When the reader breaks off or the file can't be written.
    pub(crate) async fn take(&self, mut reader: impl AsyncRead + Unpin + Send) -> io::Result<Upload> {
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
            if size_bytes > KEPT_BYTES {
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
            Writer::Memory(bytes) => self.remember(&id, bytes.into()),
            Writer::Nothing => {}
        }
        Ok(describe(id, hash, size_bytes, &head))
    }

    /// Keeps bytes that are in memory already.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub(crate) fn keep(&self, bytes: Bytes) -> io::Result<Upload> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let mut hash = Sha256::new();
        hash.update(&bytes);
        let upload = describe(id, hash, bytes.len() as u64, &bytes[..bytes.len().min(HEAD_BYTES)]);
        if upload.size_bytes <= KEPT_BYTES {
            match self {
                Self::Folder(folder) => std::fs::write(folder.join(&upload.id), &bytes)?,
                Self::Memory(_) => self.remember(&upload.id, bytes),
            }
        }
        Ok(upload)
    }

    /// The bytes, where they were kept.
    pub(crate) fn read(&self, id: &str) -> Option<Bytes> {
        match self {
            // The id came from a client's address; only what looks like one of ours is a file name.
            Self::Folder(_) if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) => None,
            Self::Folder(folder) => std::fs::read(folder.join(id)).ok().map(Bytes::from),
            Self::Memory(files) => files.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned(),
        }
    }

    /// Forgets the bytes.
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

    fn remember(&self, id: &str, bytes: Bytes) {
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

fn describe(id: String, hash: Sha256, size_bytes: u64, head: &[u8]) -> Upload {
    let pixels = imagesize::blob_size(head)
        .ok()
        .and_then(|size| Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?)));
    Upload {
        id,
        sha256: hex::encode(hash.finalize()),
        size_bytes,
        mime: infer::get(head).map(|kind| kind.mime_type().to_owned()),
        pixels,
        name: None,
        declared: None,
        is_stuck: says(head, b"sandbox-stuck"),
        is_failing: says(head, b"sandbox-failed"),
    }
}

/// Whether the first of the bytes hold a word, for platforms that are told no name of a file.
fn says(head: &[u8], word: &[u8]) -> bool {
    head[..head.len().min(4 << 10)].windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_large_upload_leaves_hash_and_size_only() {
        let folder = std::env::temp_dir().join(format!("fanfare-files-{}", uuid::Uuid::now_v7()));
        for files in [Files::open(None).unwrap(), Files::open(Some(folder.clone())).unwrap()] {
            let small = files.take(&b"\x89PNG\r\n\x1a\n-"[..]).await.unwrap();
            assert_eq!(small.mime.as_deref(), Some("image/png"));
            assert!(files.read(&small.id).is_some());
            let large = files.take(tokio::io::repeat(7).take(KEPT_BYTES + 1)).await.unwrap();
            assert_eq!(large.size_bytes, KEPT_BYTES + 1);
            assert!(files.read(&large.id).is_none());
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    }
}
