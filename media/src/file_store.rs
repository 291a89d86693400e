//! Storage of media files: a directory or a bucket (crate `object_store`).
//!
//! Uploads are staged under a separate prefix until they are promoted, so that an upload URL can't overwrite
//! a published file. A directory's files are transferred through the API, authorized by a [`SignedToken`]; a
//! bucket's through presigned URLs.

mod clean;
mod fit;

use crate::{
    file::{FileProperties, unfit},
    format,
    inspect::{self, Fault},
    patience::{self, ANSWER_TIMEOUT, within},
    presign,
    signed_token::{Key, Permission, SignedToken},
    size_limits::SizeLimits,
    turns::Turns,
    window::Window,
    worker::Decoders,
};
use anyhow::{Context, bail};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{MediaId, Mode, Owner, media::DeclaredFile};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use object_store::{
    ClientConfigKey, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
    signer::{Method, SignedUrlOptions, Signer},
};
use sha2::{Digest as _, Sha256};
use std::{io, ops::Range, path::PathBuf, pin::pin, str::FromStr, sync::Arc, time::Duration};
use tokio::time::Instant;
use url::Url;

/// Bytes of a file that are in memory at once while it is streamed.
pub const BUFFER_BYTES: u64 = 1 << 20;
/// Part size of multipart uploads to a bucket; S3 requires at least 5 MiB.
const PART_BYTES: u64 = 8 << 20;
/// Bytes that a probe may read of a file, in addition to a file of up to this size.
const PROBE_BYTES: u64 = 32 << 20;
/// Time limit of a probe, for which a process that starts waits.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a stored file name.
const MAX_NAME_BYTES: usize = 100;

/// Location of the file store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A local directory, shared by all processes.
    Directory(PathBuf),
    /// A bucket. The variables `AWS_*` hold its endpoint and other settings.
    Bucket {
        /// Name of the bucket.
        bucket: String,
        /// Prefix of all keys, without slashes at its ends; may be empty.
        prefix: String,
        /// Credentials. Those that are missing are read from the variables `AWS_*`.
        credentials: Credentials,
    },
}

impl Location {
    /// Sets the credentials of a bucket.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        match self {
            Self::Bucket { bucket, prefix, .. } => Self::Bucket { bucket, prefix, credentials },
            Self::Directory(_) => self,
        }
    }
}

/// Credentials of a bucket. Print as `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Id of the access key.
    pub access_key_id: Option<String>,
    /// Secret of the access key.
    pub secret_access_key: Option<String>,
    /// Token of temporary credentials.
    pub session_token: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl FromStr for Location {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let url = Url::parse(text).context("expected file:///path or s3://bucket/prefix")?;
        match (url.scheme(), url.host_str()) {
            ("file", None) => url
                .to_file_path()
                .map(Self::Directory)
                .map_err(|()| anyhow::anyhow!("{url} is not a directory path")),
            ("s3", Some(bucket)) => {
                let prefix = url.path().trim_matches('/').to_owned();
                let credentials = Credentials::default();
                Ok(Self::Bucket { bucket: bucket.to_owned(), prefix, credentials })
            }
            _ => bail!("expected file:///path or s3://bucket/prefix"),
        }
    }
}

/// A reference to a stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Asset id.
    pub media: MediaId,
    /// Owner of the asset.
    pub owner: Owner,
    /// File name, as the client provided it.
    pub filename: String,
    /// Name of a rendition of the file, which is meant instead.
    pub rendition: Option<String>,
}

/// A rendition of a picture in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedFile {
    /// Name, for [`StoredFile::rendition`].
    pub name: String,
    /// Content type.
    pub content_type: &'static str,
    /// Size in bytes.
    pub size: u64,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl FittedFile {
    /// Reads the properties from the path of a rendition below its asset: `{fit}/{width}x{height}.{extension}`.
    fn read(name: &str, size: u64) -> Option<Self> {
        let (sides, extension) = name.rsplit_once('/')?.1.split_once('.')?;
        let (width, height) = sides.split_once('x')?;
        let content_type = format::of_extension(extension).filter(|format| format.kind.is_visual())?.mime;
        let (width, height) = (width.parse().ok()?, height.parse().ok()?);
        Some(Self { name: name.to_owned(), content_type, size, width, height })
    }
}

/// Why a rendition can't be made.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The original can't be decoded. Final.
    #[error("{0}")]
    Undecodable(String),
    /// The original can't be made small enough, or costs too much. Final.
    #[error("{0}")]
    Unfit(String),
    /// Not now: this worker is busy, or stops.
    #[error("{0}")]
    NotNow(&'static str),
    /// The file store failed.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// Returns whether a failure of the file store lasts until an operator changes something: rights, credentials, or what
/// the directory is.
pub fn needs_operator(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let is_refused = matches!(
            cause.downcast_ref(),
            Some(object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. })
        );
        let kind = cause.downcast_ref().map(io::Error::kind);
        is_refused
            || matches!(
                kind,
                Some(
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ReadOnlyFilesystem
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::IsADirectory
                )
            )
    })
}

/// A file name that is safe in URLs and paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Replaces all but ASCII letters, digits and `.-_`, and keeps the end, which has the extension.
    pub fn of(filename: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain: String = filename.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let plain = plain[plain.len().saturating_sub(MAX_NAME_BYTES)..].trim_start_matches('.');
        Self(if plain.is_empty() { "file".to_owned() } else { plain.to_owned() })
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// SHA-256 of a file in lower-case hex.
pub type Digest = String;

/// A chunk of an upload.
pub type Piece = io::Result<Bytes>;

/// Minimum speed of an upload.
#[derive(Clone, Copy, Debug)]
pub struct MinRate {
    /// Maximum time without data, and the initial time in which the average does not count.
    pub idle_timeout: Duration,
    /// Minimum average, in bytes per second. Only time spent waiting for data counts.
    pub bytes_per_second: u64,
}

impl MinRate {
    /// Returns how long to wait for more data after `size` bytes and a total wait of `waited`; zero if the
    /// upload is too slow.
    fn next_timeout(&self, size: u64, waited: Duration) -> Duration {
        let allowed =
            Duration::from_secs_f64(size as f64 / self.bytes_per_second as f64).max(self.idle_timeout);
        allowed.saturating_sub(waited).min(self.idle_timeout)
    }
}

/// Error of an upload. Its data is not kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The upload exceeds the size limit, in bytes.
    #[error("more than {0} bytes were sent")]
    TooLarge(u64),
    /// The data does not match the declared size or SHA-256.
    #[error("{0}")]
    Other(String),
    /// The connection broke.
    #[error("the upload was interrupted: {0}")]
    Broken(io::Error),
    /// The upload is slower than [`MinRate`].
    #[error("the upload was too slow: {size} bytes in {} s", waited.as_secs())]
    Slow {
        /// Bytes received.
        size: u64,
        /// Time spent waiting for them.
        waited: Duration,
    },
    /// The file store failed.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// The file store of an installation. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    part: u64,
    access: Access,
    limits: SizeLimits,
    turns: Arc<Turns>,
    decoders: Decoders,
}

/// How clients and platforms transfer files.
#[derive(Clone, Debug)]
enum Access {
    /// Through the API at `base_url`. A process without it can't issue URLs.
    Proxied { key: Key, base_url: Option<Url>, directory: PathBuf },
    /// Directly with the bucket, through presigned URLs.
    Presigned(Arc<object_store::aws::AmazonS3>),
}

impl FileStore {
    /// Opens the file store. `base_url` is the API's public URL.
    ///
    /// # Errors
    ///
    /// If the directory can't be created, or the bucket's variables are incomplete.
    pub fn open(
        place: &Location,
        key: Key,
        base_url: Option<Url>,
        limits: SizeLimits,
    ) -> anyhow::Result<Self> {
        match place {
            Location::Directory(directory) => {
                std::fs::create_dir_all(directory)
                    .with_context(|| format!("the directory {} can't be created", directory.display()))?;
                let store = LocalFileSystem::new_with_prefix(directory)?.with_automatic_cleanup(true);
                let directory = std::fs::canonicalize(directory)?;
                let access = Access::Proxied { key, base_url, directory };
                Ok(Self {
                    store: Arc::new(store),
                    prefix: Path::default(),
                    part: BUFFER_BYTES,
                    access,
                    limits,
                    turns: Arc::default(),
                    decoders: Decoders::default(),
                })
            }
            Location::Bucket { bucket, prefix, credentials } => {
                // The response to a copy within the bucket is sent when it is complete, for a file of any size.
                let patience = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
                let mut bucket =
                    AmazonS3Builder::from_env().with_bucket_name(bucket).with_config(patience, "10m");
                for (setting, value) in [
                    (AmazonS3ConfigKey::AccessKeyId, &credentials.access_key_id),
                    (AmazonS3ConfigKey::SecretAccessKey, &credentials.secret_access_key),
                    (AmazonS3ConfigKey::Token, &credentials.session_token),
                ] {
                    if let Some(value) = value {
                        bucket = bucket.with_config(setting, value);
                    }
                }
                let bucket = bucket.build().context("the bucket's variables (AWS_*) are incomplete")?;
                let bucket = Arc::new(bucket);
                let prefix = Path::parse(prefix).context("the bucket's prefix")?;
                Ok(Self {
                    store: bucket.clone(),
                    prefix,
                    part: PART_BYTES,
                    access: Access::Presigned(bucket),
                    limits,
                    turns: Arc::default(),
                    decoders: Decoders::default(),
                })
            }
        }
    }

    /// Sets the processes that decode.
    #[must_use]
    pub fn decoded_by(self, decoders: Decoders) -> Self {
        Self { decoders, ..self }
    }

    /// Returns the processes that decode.
    pub fn decoders(&self) -> &Decoders {
        &self.decoders
    }

    /// Writes and deletes a small file wherever files are written: below the directory in each of its folders, which may
    /// have other owners, or in the bucket.
    ///
    /// # Errors
    ///
    /// If files can't be written or deleted; [`needs_operator`] tells whether that lasts.
    pub async fn probe(&self) -> object_store::Result<()> {
        within(PROBE_TIMEOUT, self.write_probes()).await
    }

    async fn write_probes(&self) -> object_store::Result<()> {
        let folders: &[&str] = match self.access {
            Access::Proxied { .. } => &[STAGING, RENDITIONS, Mode::Live.as_str(), Mode::Test.as_str()],
            Access::Presigned(_) => &[STAGING],
        };
        for path in folders.iter().map(|folder| self.prefix.clone().join(*folder).join(PROBE)) {
            self.store.put(&path, PutPayload::new()).await?;
            match self.store.delete(&path).await {
                // Another process has deleted the same file.
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns true if clients upload to a bucket, past the API.
    pub fn is_in_bucket(&self) -> bool {
        matches!(self.access, Access::Presigned(_))
    }

    /// Returns the maximum file sizes.
    pub fn size_limits(&self) -> &SizeLimits {
        &self.limits
    }

    /// Returns the key that signs tokens; `None` with a bucket.
    pub fn token_key(&self) -> Option<&Key> {
        match &self.access {
            Access::Proxied { key, .. } => Some(key),
            Access::Presigned(_) => None,
        }
    }

    /// Returns the URL to which the file is to be uploaded with PUT. A bucket accepts it only with the declared `size`.
    ///
    /// # Errors
    ///
    /// If no URL can be created because of the configuration.
    pub async fn upload_address(
        &self,
        asset: &StoredFile,
        size: Option<u64>,
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Url> {
        match &self.access {
            Access::Proxied { key, base_url, .. } => {
                let pass = SignedToken { media: asset.media, owner: asset.owner, expires_at };
                let mut url = api_url(base_url, &format!("media/{}/content", asset.media))?;
                url.query_pairs_mut().append_pair("pass", &key.write(Permission::Put, &pass));
                Ok(url)
            }
            Access::Presigned(bucket) => {
                let lifetime = (expires_at - now).to_std().unwrap_or_default();
                let url = bucket.signed_url(Method::PUT, &self.staged(asset), lifetime).await?;
                let Some(size) = size else { return Ok(url) };
                let credential = bucket.credentials().get_credential().await?;
                presign::with_length(&url, size, &credential.secret_key)
                    .context("sign the length of an upload")
            }
        }
    }

    /// Returns a URL from which the file can be downloaded for `lifetime`; it ends with the file name.
    ///
    /// # Errors
    ///
    /// If no URL can be created because of the configuration.
    pub async fn address(
        &self,
        asset: &StoredFile,
        mime: &str,
        lifetime: Duration,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Url> {
        match &self.access {
            Access::Proxied { key, base_url, .. } => {
                let pass = SignedToken { media: asset.media, owner: asset.owner, expires_at: now + lifetime };
                let pass = key.write(Permission::Get, &pass);
                let path = match &asset.rendition {
                    Some(rendition) => format!("renditions/{pass}/{rendition}"),
                    None => format!("content/{pass}/{}", Name::of(&asset.filename).as_str()),
                };
                api_url(base_url, &format!("media/{}/{path}", asset.media))
            }
            Access::Presigned(bucket) => {
                // The uploader may have sent another type, or none.
                let options = SignedUrlOptions::new().with_query([("response-content-type", mime)]);
                Ok(bucket.signed_url_opts(Method::GET, &self.promoted(asset), lifetime, &options).await?)
            }
        }
    }

    /// Stages an upload as it is received, replacing an earlier one. Nothing is kept of a failed upload.
    ///
    /// # Errors
    ///
    /// If the upload exceeds `max_bytes`, does not match `declared`, is interrupted or is too slow.
    pub async fn receive(
        &self,
        asset: &StoredFile,
        bytes: impl Stream<Item = Piece>,
        max_bytes: u64,
        declared: &DeclaredFile,
        min_rate: MinRate,
    ) -> Result<u64, UploadError> {
        let staged = self.staged(asset);
        let mut upload = within(ANSWER_TIMEOUT, self.store.put_multipart(&staged)).await?;
        match self.write_stream(upload.as_mut(), bytes, max_bytes, declared, min_rate).await {
            Ok(size) => {
                within(patience::limit(size), upload.complete()).await?;
                Ok(size)
            }
            Err(error) => {
                // The first error is returned; parts left behind are removed by `remove_orphans`.
                let _ = within(ANSWER_TIMEOUT, upload.abort()).await;
                Err(error)
            }
        }
    }

    async fn write_stream(
        &self,
        upload: &mut dyn MultipartUpload,
        bytes: impl Stream<Item = Piece>,
        mut max_bytes: u64,
        declared: &DeclaredFile,
        min_rate: MinRate,
    ) -> Result<u64, UploadError> {
        let mut bytes = pin!(bytes);
        let (mut size, mut hasher) = (0, Sha256::new());
        let (mut part, mut length) = (Vec::new(), 0);
        let mut waited = Duration::ZERO;
        loop {
            let began = Instant::now();
            let next = tokio::time::timeout(min_rate.next_timeout(size, waited), bytes.next()).await;
            waited += began.elapsed();
            let next = next.map_err(|_| UploadError::Slow { size, waited })?;
            let piece = next.transpose().map_err(UploadError::Broken)?;
            let is_last = piece.is_none();
            if let Some(piece) = piece {
                if size == 0 {
                    let kind = format::kind_of_bytes(&piece);
                    max_bytes = max_bytes.min(self.limits.for_declared(kind));
                }
                size += piece.len() as u64;
                if size > max_bytes {
                    return Err(UploadError::TooLarge(max_bytes));
                }
                length += piece.len() as u64;
                part.push(piece);
            }
            if length >= self.part || is_last && (length > 0 || size == 0) {
                let pieces = std::mem::take(&mut part);
                let patience = patience::limit(std::mem::take(&mut length));
                if declared.sha256.is_some() {
                    hasher = hash(hasher, pieces.clone()).await?;
                }
                within(patience, upload.put_part(PutPayload::from_iter(pieces))).await?;
            }
            if is_last {
                break;
            }
        }
        if let Some(declared) = declared.size.filter(|declared| *declared != size) {
            return Err(UploadError::Other(format!("{size} bytes were sent, but {declared} were declared")));
        }
        let found = hex(hasher);
        if let Some(declared) = declared.sha256.as_ref().filter(|declared| **declared != found) {
            return Err(UploadError::Other(format!(
                "the SHA-256 of the upload is {found}, but {declared} was declared"
            )));
        }
        Ok(size)
    }

    /// Returns the size of the promoted file, else of the staged one; `None` if there is neither.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn uploaded_size(&self, asset: &StoredFile) -> object_store::Result<Option<u64>> {
        match self.size(&self.promoted(asset)).await? {
            Some(size) => Ok(Some(size)),
            None => self.size(&self.staged(asset)).await,
        }
    }

    /// Returns true if the file was promoted.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn has(&self, asset: &StoredFile) -> object_store::Result<bool> {
        Ok(self.size(&self.promoted(asset)).await?.is_some())
    }

    /// Moves a staged file to where no upload URL can overwrite it. Must not run concurrently for one file.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn promote(&self, asset: &StoredFile) -> object_store::Result<()> {
        let (staged, promoted) = (self.staged(asset), self.promoted(asset));
        match self.access {
            Access::Proxied { .. } => self.store.rename(&staged, &promoted).await,
            // Nothing in a bucket is moved in one step.
            Access::Presigned(_) => {
                self.store.copy(&staged, &promoted).await?;
                self.unstage(asset).await
            }
        }
    }

    /// Deletes what the upload of a promoted file may have left. Idempotent.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn unstage(&self, asset: &StoredFile) -> object_store::Result<()> {
        match within(ANSWER_TIMEOUT, self.store.delete(&self.staged(asset))).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Inspects the promoted file, else the staged one.
    ///
    /// # Errors
    ///
    /// [`Fault::Refused`] if the file can't be accepted.
    pub async fn inspect(
        &self,
        asset: &StoredFile,
        size: u64,
        declared: &DeclaredFile,
    ) -> Result<FileProperties, Fault> {
        let path = if self.has(asset).await? { self.promoted(asset) } else { self.staged(asset) };
        let budget = PROBE_BYTES + size.min(PROBE_BYTES);
        let mut window = Window::new(self.store.clone(), path, size, budget);
        let (declared, limits) = (declared.clone(), self.limits.clone());
        let inspection = tokio::task::spawn_blocking(move || {
            let properties = inspect::inspect(&mut window, size, &declared, &limits);
            match window.failure {
                Some(failure) => Err(failure.into()),
                None => properties.map_err(Fault::from),
            }
        });
        // A file that makes our parser panic is not passed on to other parsers.
        inspection.await.unwrap_or_else(|_| Err(unfit("the file can't be read").into()))
    }

    /// Computes the SHA-256 of a promoted file.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn digest(&self, asset: &StoredFile, size: u64) -> object_store::Result<Digest> {
        let pieces = self.pieces(asset, 0..size, self.part);
        let hasher = pieces.try_fold(Sha256::new(), |hasher, piece| hash(hasher, vec![piece]));
        Ok(hex(hasher.await?))
    }

    /// Reads a range of a promoted file.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn read(&self, asset: &StoredFile, range: Range<u64>) -> object_store::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let limit = patience::limit(range.end - range.start);
        within(limit, self.store.get_range(&self.promoted(asset), range)).await
    }

    /// Streams a range of a promoted file.
    pub fn stream(
        &self,
        asset: &StoredFile,
        range: Range<u64>,
    ) -> impl Stream<Item = object_store::Result<Bytes>> + Send + 'static {
        self.pieces(asset, range, BUFFER_BYTES)
    }

    /// Returns a rendition that was made; `None` if there is none of this name.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn rendition(&self, rendition: &StoredFile) -> object_store::Result<Option<FittedFile>> {
        let Some(name) = &rendition.rendition else { return Ok(None) };
        let size = self.size(&self.promoted(rendition)).await?;
        Ok(size.and_then(|size| FittedFile::read(name, size)))
    }

    /// Deletes a file, staged or promoted, with its renditions. Idempotent.
    ///
    /// # Errors
    ///
    /// If the store fails.
    pub async fn discard(&self, asset: &StoredFile) -> object_store::Result<()> {
        for path in [self.promoted(asset), self.staged(asset)] {
            match within(ANSWER_TIMEOUT, self.store.delete(&path)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let mut renditions = self.store.list(Some(&self.renditions(asset)));
        while let Some(rendition) = within(ANSWER_TIMEOUT, renditions.try_next()).await? {
            within(ANSWER_TIMEOUT, self.store.delete(&rendition.location)).await?;
        }
        Ok(())
    }

    /// Removes files of interrupted uploads that are older than `before` from a directory, and returns their
    /// number. Does nothing for a bucket, which has lifecycle rules for this.
    ///
    /// # Errors
    ///
    /// If the directory can't be read.
    pub async fn remove_orphans(&self, before: DateTime<Utc>) -> anyhow::Result<usize> {
        let Access::Proxied { directory, .. } = &self.access else { return Ok(0) };
        let staging = directory.join(STAGING);
        tokio::task::spawn_blocking(move || remove_older(&staging, before.into()))
            .await?
            .context("remove interrupted uploads")
    }

    fn pieces(
        &self,
        asset: &StoredFile,
        range: Range<u64>,
        length: u64,
    ) -> impl Stream<Item = object_store::Result<Bytes>> + Send + 'static {
        let (store, path, end) = (self.store.clone(), self.promoted(asset), range.end);
        stream::iter(range.step_by(usize::try_from(length).expect("a piece fits in memory"))).then(
            move |start| {
                let (store, path) = (store.clone(), path.clone());
                async move {
                    let piece = store.get_range(&path, start..(start + length).min(end));
                    within(patience::limit(length), piece).await
                }
            },
        )
    }

    async fn size(&self, path: &Path) -> object_store::Result<Option<u64>> {
        match within(ANSWER_TIMEOUT, self.store.head(path)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn staged(&self, asset: &StoredFile) -> Path {
        self.path(asset, Some(STAGING)).join(asset.media.to_string())
    }

    /// The folder of a file's renditions.
    fn renditions(&self, asset: &StoredFile) -> Path {
        self.path(asset, Some(RENDITIONS)).join(asset.media.to_string())
    }

    fn promoted(&self, asset: &StoredFile) -> Path {
        if let Some(name) = &asset.rendition {
            return name.split('/').fold(self.renditions(asset), |path, part| path.join(part));
        }
        self.path(asset, None).join(asset.media.to_string()).join(Name::of(&asset.filename).0)
    }

    fn path(&self, asset: &StoredFile, first: Option<&str>) -> Path {
        let Owner { org, mode } = asset.owner;
        let (org, mode) = (org.to_string(), mode.to_string());
        first
            .into_iter()
            .chain([mode.as_str(), org.as_str()])
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }
}

/// Prefix of uploads that were not promoted yet.
const STAGING: &str = "staging";
/// Prefix of renditions.
const RENDITIONS: &str = "renditions";
/// Name of the file that a probe writes.
const PROBE: &str = "probe";

fn remove_older(directory: &std::path::Path, before: std::time::SystemTime) -> io::Result<usize> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // It has just been promoted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if meta.is_dir() {
            removed += remove_older(&path, before)?;
        } else if meta.modified()? < before {
            std::fs::remove_file(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Hashes on a blocking thread, so that the runtime is not delayed.
async fn hash(mut hasher: Sha256, pieces: Vec<Bytes>) -> object_store::Result<Sha256> {
    let work = tokio::task::spawn_blocking(move || {
        pieces.iter().for_each(|piece| hasher.update(piece));
        hasher
    });
    work.await.map_err(|source| object_store::Error::JoinError { source })
}

fn hex(hasher: Sha256) -> Digest {
    hex::encode(hasher.finalize())
}

fn api_url(base_url: &Option<Url>, path: &str) -> anyhow::Result<Url> {
    let base = base_url.as_ref().context("the API's URL is not configured: set FANFARE_BASE_URL")?;
    Ok(Url::parse(&format!("{}/{path}", base.as_str().trim_end_matches('/')))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_directory_or_a_bucket() {
        let bucket = |bucket: &str, prefix: &str| Location::Bucket {
            bucket: bucket.into(),
            prefix: prefix.into(),
            credentials: Credentials::default(),
        };
        for (text, place) in [
            ("file:///var/lib/media", Location::Directory("/var/lib/media".into())),
            ("s3://media", bucket("media", "")),
            ("s3://media/a/b/", bucket("media", "a/b")),
        ] {
            assert_eq!(text.parse::<Location>().unwrap(), place, "{text}");
        }
        for text in ["", "/var/lib", "file://host/path", "s3:///prefix", "http://example.com/"] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_only_an_operator_can_repair_is_told_from_what_passes() {
        let of = |kind: io::ErrorKind| object_store::Error::Generic {
            store: "local",
            source: Box::new(io::Error::from(kind)),
        };
        for (kind, expected) in [
            (io::ErrorKind::PermissionDenied, true),
            (io::ErrorKind::ReadOnlyFilesystem, true),
            (io::ErrorKind::NotADirectory, true),
            (io::ErrorKind::StorageFull, false),
            (io::ErrorKind::TimedOut, false),
            (io::ErrorKind::NotFound, false),
        ] {
            assert_eq!(needs_operator(&of(kind)), expected, "{kind}");
            assert_eq!(needs_operator(&UploadError::Store(of(kind))), expected, "{kind} of an upload");
        }
        let source = || Box::new(io::Error::other("403 Forbidden"));
        let refused = object_store::Error::PermissionDenied { path: "staging".into(), source: source() };
        assert!(needs_operator(&refused), "a bucket that refuses the credentials");
        assert!(!needs_operator(&object_store::Error::Generic { store: "s3", source: source() }));
    }

    #[test]
    fn an_upload_may_pause_but_not_stay_slow() {
        let min_rate = MinRate { idle_timeout: Duration::from_secs(30), bytes_per_second: 100 };
        for (size, waited, patience) in [
            (0, 0, 30),
            (1, 29, 1),
            (1, 30, 0),
            (3000, 30, 0),
            (3500, 30, 5),
            // The average is high enough again; a pause is still limited.
            (100_000, 30, 30),
            (100_000, 1000, 0),
        ] {
            let found = min_rate.next_timeout(size, Duration::from_secs(waited));
            assert_eq!(found, Duration::from_secs(patience), "{size} bytes in {waited} s");
        }
    }

    #[test]
    fn a_name_has_no_path_and_keeps_its_extension() {
        for (filename, name) in [
            ("a b.png", "a_b.png"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("..", "file"),
            ("", "file"),
            ("dawn\u{e9}.jpg", "dawn_.jpg"),
            ("a/b\\c?d#e%2f.mp4", "a_b_c_d_e_2f.mp4"),
        ] {
            assert_eq!(Name::of(filename).as_str(), name, "{filename}");
        }
        let long = Name::of(&format!("{}.mp4", "a".repeat(300)));
        assert!(long.as_str().len() == MAX_NAME_BYTES && long.as_str().ends_with("a.mp4"));
    }
}
