//! Media assets of a post, as adapters read them.

use crate::Engine;
use ::media::{FileStore, FitError, StoreError, StoredFile};
use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{Failure, Fit, Media, MediaStatus, Owner, media::Metadata};
use platforms::MediaStore;
use serde_json::Value;
use std::{ops::Range, sync::Arc, time::Duration};
use store::{
    bounds::unbounded,
    media,
    people::organizations,
    posts::{Attachment, Container},
};
use tokio::time::Instant;
use tracing::warn;
use url::Url;

/// Longest wait of an attempt for an asset that is still being inspected.
const READY_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two looks at such an asset.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Lifetime of an address that a platform fetches an asset from.
const ADDRESS_TTL: Duration = Duration::from_secs(6 * 3600);

/// Why a container's media can't be published.
pub(crate) enum MediaError {
    /// An asset is still being inspected.
    NotReady(Failure),
    /// An asset was deleted, or is unusable.
    Unusable(Failure),
    /// The file store did not return an asset.
    Unread(Failure),
    /// Fanfare failed.
    Fault(anyhow::Error),
}

impl From<store::Error> for MediaError {
    fn from(error: store::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl Engine {
    /// Returns the assets that a container refers to, pictures fitted to the platform. `position` is that in its thread,
    /// and 0 for a post of its own. Waits a little for one that is still being inspected.
    pub(crate) async fn resolve_media(
        &self,
        owner: Owner,
        platform: &str,
        container: &Container,
        position: u16,
        settings: &Value,
    ) -> Result<Vec<Media>, MediaError> {
        let mut found = self.find_media(owner, &container.media).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let platform = (self.adapters)(platform);
        let strips_metadata = organizations::strips_metadata(&self.db, owner.org).await?;
        let originals: Vec<_> = found.iter().map(|(medium, _)| medium.clone()).collect();
        let fits = platform.map(|platform| platform.fits(position.into(), settings, &originals));
        let fits = fits.unwrap_or_default().into_iter().chain(std::iter::repeat(None));
        for ((medium, metadata), fit) in found.iter_mut().zip(fits) {
            match fit {
                // A rendition has no metadata.
                Some(fit) => self.fit_medium(owner, medium, &fit).await?,
                None if strips_metadata && *metadata != Some(Metadata::Bare) => {
                    self.clean_medium(owner, medium).await?;
                }
                None => {}
            }
        }
        Ok(found.into_iter().map(|(medium, _)| medium).collect())
    }

    /// Replaces a medium by its clean copy, if it is not clean itself.
    async fn clean_medium(&self, owner: Owner, medium: &mut Media) -> Result<(), MediaError> {
        let files = OwnerMedia::of(self, owner);
        let clean = self.media.clean(&files.file(medium), medium).await;
        if let Some(clean) = clean.map_err(|error| unfit(medium, error))? {
            medium.size_bytes = clean.size;
            medium.rendition = Some(clean.name);
        }
        Ok(())
    }

    /// Replaces a medium by its rendition.
    async fn fit_medium(&self, owner: Owner, medium: &mut Media, fit: &Fit) -> Result<(), MediaError> {
        let files = OwnerMedia::of(self, owner);
        let fitted = self.media.fit(&files.file(medium), medium.size_bytes, fit, &self.stop).await;
        let fitted = fitted.map_err(|error| unfit(medium, error))?;
        let stem = medium.filename.rsplit_once('.').map_or(medium.filename.as_str(), |(stem, _)| stem);
        let extension = fitted.name.rsplit('.').next().unwrap_or_default();
        *medium = Media {
            filename: format!("{stem}.{extension}"),
            rendition: Some(fitted.name),
            ..medium.fitted(fit, fitted.content_type, fitted.size, fitted.width, fitted.height)
        };
        Ok(())
    }

    /// Returns the media of each container, as they are stored.
    pub(crate) async fn attached_media(
        &self,
        owner: Owner,
        attached: &[&[Attachment]],
    ) -> Result<Vec<Vec<Media>>, MediaError> {
        let mut media = Vec::with_capacity(attached.len());
        for references in attached {
            let found = self.find_media(owner, references).await?;
            media.push(found.into_iter().map(|(medium, _)| medium).collect());
        }
        Ok(media)
    }

    /// Returns the assets, with what their files hold besides their content.
    async fn find_media(
        &self,
        owner: Owner,
        references: &[Attachment],
    ) -> Result<Vec<(Media, Option<Metadata>)>, MediaError> {
        let ids: Vec<_> = references.iter().map(|reference| reference.id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let found = media::find(&self.db, unbounded(owner), &ids).await?;
            let mut media = Vec::with_capacity(references.len());
            let mut unready = None;
            for reference in references {
                let unusable = |why: &str| {
                    let message = format!("medium {} {why}", reference.id);
                    MediaError::Unusable(Failure::rejected(422, message))
                };
                let Some(row) = found.iter().find(|row| row.id.0 == reference.id) else {
                    return Err(unusable("is not there any more"));
                };
                match (row.status, &row.fault) {
                    (MediaStatus::Ready, _) => {
                        media.push((row.medium(reference.alt_text.clone()), row.metadata));
                    }
                    (MediaStatus::Failed, fault) => {
                        let why = fault.as_ref().map_or("", |fault| &fault.message);
                        return Err(unusable(&format!("can't be used: {why}")));
                    }
                    (MediaStatus::Uploaded | MediaStatus::PendingUpload, _) => unready = Some(reference.id),
                }
            }
            match unready {
                None => return Ok(media),
                Some(id) if Instant::now() >= deadline => {
                    let message = format!("medium {id} is still being inspected");
                    return Err(MediaError::NotReady(Failure::network(message, false)));
                }
                Some(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

/// Returns why a medium can't be published as the platform, or the privacy of its author, asks for.
fn unfit(medium: &Media, error: FitError) -> MediaError {
    match error {
        FitError::Undecodable(why) | FitError::Unfit(why) => {
            let message = format!("medium {} can't be fitted to the platform: {why}", medium.id);
            MediaError::Unusable(Failure::rejected(422, message))
        }
        FitError::NotNow(why) => {
            let message = format!("medium {} can't be fitted now: {why}", medium.id);
            MediaError::NotReady(Failure::network(message, false))
        }
        FitError::Store(error) => {
            let failure = unread(medium, &error);
            match failure.code.is_permanent() {
                true => MediaError::Unusable(failure),
                false => MediaError::Unread(failure),
            }
        }
    }
}

/// The media assets of one owner.
pub(crate) struct OwnerMedia {
    files: FileStore,
    owner: Owner,
    now: fn() -> DateTime<Utc>,
}

impl OwnerMedia {
    pub(crate) fn of(engine: &Engine, owner: Owner) -> Arc<Self> {
        Arc::new(Self { files: engine.media.clone(), owner, now: engine.now })
    }

    fn file(&self, medium: &Media) -> StoredFile {
        StoredFile {
            media: medium.id.into(),
            owner: self.owner,
            filename: medium.filename.clone(),
            rendition: medium.rendition.clone(),
        }
    }
}

#[async_trait]
impl MediaStore for OwnerMedia {
    async fn read(&self, medium: &Media, range: Range<u64>) -> Result<Bytes, Failure> {
        self.files.read(&self.file(medium), range).await.map_err(|error| unread(medium, &error))
    }

    async fn address(&self, medium: &Media) -> Result<Url, Failure> {
        let file = self.file(medium);
        let address = self.files.address(&file, &medium.mime, ADDRESS_TTL, (self.now)());
        address.await.map_err(|error| {
            warn!(media.id = %medium.id, error = format!("{error:#}"), "Medium {} has no address", medium.id);
            Failure::network(format!("medium {} can't be given an address", medium.id), false)
        })
    }
}

/// The failure of a file that the store did not return. The store's message names its paths, and goes to the log.
fn unread(medium: &Media, error: &StoreError) -> Failure {
    warn!(media.id = %medium.id, %error, "Medium {} was not read", medium.id);
    match error {
        StoreError::NotFound { .. } => {
            Failure::rejected(422, format!("medium {} can't be used: its file is gone", medium.id))
        }
        _ => Failure::network(format!("medium {} could not be read from the file store", medium.id), false),
    }
}

/// No media: for calls that publish nothing.
pub struct NoMedia;

#[async_trait]
impl MediaStore for NoMedia {
    async fn read(&self, medium: &Media, _range: Range<u64>) -> Result<Bytes, Failure> {
        Err(Failure::rejected(500, format!("medium {} is not here", medium.id)))
    }

    async fn address(&self, medium: &Media) -> Result<Url, Failure> {
        Err(Failure::rejected(500, format!("medium {} is not here", medium.id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_waits_only_briefly_for_media() {
        assert!(READY_TIMEOUT <= Duration::from_secs(5), "it occupies one of the worker's slots");
    }
}
