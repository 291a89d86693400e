//! Clean copies: a picture or video without its position and other metadata, byte for byte the same otherwise.

use super::{FileStore, FitError, FittedFile, PROBE_BYTES, StoredFile};
use crate::{
    format::format,
    metadata::{self, Edit, Found, Piece},
    patience::{self, ANSWER_TIMEOUT, within},
    window::Window,
};
use bytes::Bytes;
use domain::{Media, media::Metadata};
use futures::TryStreamExt;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use std::io;

/// Name of the folder of clean copies; a later way of cleaning has another one.
const FOLDER: &str = "clean-1";

impl FileStore {
    /// Returns what a promoted file holds besides its content; `None` for a kind whose metadata are left alone.
    ///
    /// # Errors
    ///
    /// [`FitError::Unfit`] if the file can't be cleaned.
    pub async fn metadata(
        &self,
        file: &StoredFile,
        size: u64,
        content_type: &str,
    ) -> Result<Option<Metadata>, FitError> {
        Ok(self.find_metadata(file, size, content_type).await?.map(|found| found.metadata()))
    }

    /// Returns the clean copy of a promoted file, which is made and kept if there is none yet; `None` if the file is
    /// clean itself.
    ///
    /// # Errors
    ///
    /// [`FitError::Unfit`] if the file can't be cleaned.
    pub async fn clean(&self, original: &StoredFile, medium: &Media) -> Result<Option<FittedFile>, FitError> {
        let (width, height) = (medium.width.unwrap_or_default(), medium.height.unwrap_or_default());
        let Some(extension) = format(&medium.mime).and_then(|format| format.extension()) else {
            return Ok(None);
        };
        let name = format!("{FOLDER}/{width}x{height}.{extension}");
        let copy = StoredFile { rendition: Some(name.clone()), ..original.clone() };
        if let Some(kept) = self.rendition(&copy).await? {
            return Ok(Some(kept));
        }
        let found = self.find_metadata(original, medium.size_bytes, &medium.mime).await?;
        let Some(found) = found.filter(|found| !found.edits.is_empty()) else { return Ok(None) };
        let copy = self.promoted(&copy);
        let mut upload = within(ANSWER_TIMEOUT, self.store.put_multipart(&copy)).await?;
        match self.write_clean(upload.as_mut(), original, medium.size_bytes, &found.edits).await {
            Ok(size) => {
                within(patience::limit(size), upload.complete()).await?;
                Ok(FittedFile::read(&name, size))
            }
            Err(error) => {
                // The first error is returned; a bucket's lifecycle rule removes the parts.
                let _ = within(ANSWER_TIMEOUT, upload.abort()).await;
                Err(error.into())
            }
        }
    }

    async fn find_metadata(
        &self,
        file: &StoredFile,
        size: u64,
        content_type: &str,
    ) -> Result<Option<Found>, FitError> {
        let budget = PROBE_BYTES + size.min(PROBE_BYTES);
        let mut window = Window::new(self.store.clone(), self.promoted(file), size, budget);
        let content_type = content_type.to_owned();
        let search = tokio::task::spawn_blocking(move || {
            let found = metadata::find(&mut window, size, &content_type);
            match window.failure {
                Some(failure) => Err(failure.into()),
                None => found.map_err(|error| unclean(&error)),
            }
        });
        search.await.unwrap_or_else(|_| Err(unclean(&io::Error::other("it can't be read"))))
    }

    async fn write_clean(
        &self,
        upload: &mut dyn MultipartUpload,
        original: &StoredFile,
        size: u64,
        edits: &[Edit],
    ) -> object_store::Result<u64> {
        let mut part = Part { bytes: Vec::new(), written: 0, limit: self.part };
        for piece in metadata::pieces(edits, size) {
            match piece {
                Piece::Bytes(bytes) => part.add(upload, bytes).await?,
                Piece::Zeros(mut left) => {
                    while left > 0 {
                        let length = left.min(ZEROS.len() as u64);
                        part.add(upload, Bytes::from_static(&ZEROS[..length as usize])).await?;
                        left -= length;
                    }
                }
                Piece::Original(range) => {
                    let mut bytes = std::pin::pin!(self.stream(original, range));
                    while let Some(bytes) = bytes.try_next().await? {
                        part.add(upload, bytes).await?;
                    }
                }
            }
        }
        part.end(upload).await
    }
}

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The part of a multipart upload that is being filled. The parts of a bucket have equal sizes, except for the last.
struct Part {
    bytes: Vec<u8>,
    written: u64,
    limit: u64,
}

impl Part {
    async fn add(&mut self, upload: &mut dyn MultipartUpload, mut bytes: Bytes) -> object_store::Result<()> {
        while !bytes.is_empty() {
            let room = (self.limit - self.bytes.len() as u64).min(bytes.len() as u64);
            self.bytes.extend_from_slice(&bytes.split_to(room as usize));
            if self.bytes.len() as u64 == self.limit {
                self.put(upload).await?;
            }
        }
        Ok(())
    }

    async fn put(&mut self, upload: &mut dyn MultipartUpload) -> object_store::Result<()> {
        let size = self.bytes.len() as u64;
        self.written += size;
        let part = upload.put_part(PutPayload::from(std::mem::take(&mut self.bytes)));
        within(patience::limit(size), part).await
    }

    /// Writes the rest, and returns the size of the whole.
    async fn end(mut self, upload: &mut dyn MultipartUpload) -> object_store::Result<u64> {
        if !self.bytes.is_empty() {
            self.put(upload).await?;
        }
        Ok(self.written)
    }
}

fn unclean(error: &io::Error) -> FitError {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it is truncated or damaged".to_owned(),
        _ => error.to_string(),
    };
    FitError::Unfit(format!("its position and metadata can't be removed: {why}"))
}
