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

/// Number of leading bytes that are inspected; a JPEG may have a long EXIF block before its size.
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
    /// Width and height of an image, in pixels.
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
        Ok(describe(id, hash, size_bytes, &head))
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
        let upload = describe(id, hash, bytes.len() as u64, &bytes[..bytes.len().min(HEAD_BYTES)]);
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
        is_stuck: contains(head, b"sandbox-stuck"),
        is_failing: contains(head, b"sandbox-failed"),
    }
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
}
