//! Where the bytes are kept: a directory or a bucket (crate `object_store`).
//!
//! What arrives lies apart until it was looked at: who may send bytes can't reach those that are
//! published. With a directory, bytes come and go through our own HTTP, opened by a [`SignedToken`]; with a
//! bucket, through addresses that the store signs.

use crate::{
    caps::SizeLimits,
    format,
    inspect::{self, DeclaredFile, Fault, FileProperties},
    pass::{Key, Permission, SignedToken},
    window::Window,
};
use anyhow::{Context, bail};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{MediaId, Owner};
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

/// How much of a file is in memory at once while it passes through.
pub const HELD: u64 = 1 << 20;
/// The parts in which a bucket takes a file: it takes no smaller ones.
const PART: u64 = 8 << 20;
/// How much a probe may read of a file beside the file itself where that is small.
const PROBED: u64 = 32 << 20;
/// The longest file name that is kept.
const NAME: usize = 100;

/// Where files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a directory of this machine, which all processes share.
    Directory(PathBuf),
    /// In a bucket, under a prefix. The variables `AWS_*` say where it is and who we are there.
    Bucket {
        /// Its name.
        bucket: String,
        /// What all keys begin with; may be empty.
        prefix: String,
    },
}

impl FromStr for Location {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let url = Url::parse(text).context("neither file:///path nor s3://bucket/prefix")?;
        match (url.scheme(), url.host_str()) {
            ("file", None) => url
                .to_file_path()
                .map(Self::Directory)
                .map_err(|()| anyhow::anyhow!("{url} names no directory")),
            ("s3", Some(bucket)) => {
                let prefix = url.path().trim_matches('/').to_owned();
                Ok(Self::Bucket { bucket: bucket.to_owned(), prefix })
            }
            _ => bail!("neither file:///path nor s3://bucket/prefix"),
        }
    }
}

/// Which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The asset.
    pub media: MediaId,
    /// Whose it is.
    pub owner: Owner,
    /// Its name, as its owner gave it.
    pub filename: String,
}

/// A file's name as it stands in addresses and paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Letters, digits and a few marks of a file's name; its end, where its type shows, stays.
    pub fn of(filename: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain: String = filename.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let plain = plain[plain.len().saturating_sub(NAME)..].trim_start_matches('.');
        Self(if plain.is_empty() { "file".to_owned() } else { plain.to_owned() })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The SHA-256 of a file, in lower-case hex.
pub type Digest = String;

/// A piece of a file on its way.
pub type Piece = io::Result<Bytes>;

/// How fast bytes have to come.
#[derive(Clone, Copy, Debug)]
pub struct Tempo {
    /// How long none may come, and how long the average does not count at first.
    pub silence: Duration,
    /// The slowest average, in bytes per second. Only the time that bytes are waited for counts.
    pub least: u64,
}

impl Tempo {
    /// How long to wait for the next of the bytes, of which `size` have come after waiting for `waited`;
    /// zero when they come too slowly.
    fn patience(&self, size: u64, waited: Duration) -> Duration {
        let allowed = Duration::from_secs_f64(size as f64 / self.least as f64).max(self.silence);
        allowed.saturating_sub(waited).min(self.silence)
    }
}

/// Why bytes that were sent are not kept.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// There are more than may be.
    #[error("more than {0} bytes were sent")]
    TooLarge(u64),
    /// They are not what was announced.
    #[error("{0}")]
    Other(String),
    /// They stopped coming.
    #[error("the bytes stopped coming: {0}")]
    Broken(io::Error),
    /// They come too slowly.
    #[error("the bytes came too slowly: {size} in {} s", waited.as_secs())]
    Slow {
        /// How many came.
        size: u64,
        /// How long they were waited for.
        waited: Duration,
    },
    /// The store took none.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// The files of an installation. Cloning shares it.
#[derive(Clone, Debug)]
pub struct FileStore {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    part: u64,
    door: Door,
    caps: SizeLimits,
}

/// Who lets bytes in and out.
#[derive(Clone, Debug)]
enum Door {
    /// We do, at this address; a process that does not know it can open no door.
    Ours { key: Key, base_url: Option<Url>, directory: PathBuf },
    /// The bucket does.
    Theirs(Arc<object_store::aws::AmazonS3>),
}

impl FileStore {
    /// Opens the place. `base_url` is the API's, as clients and platforms reach it.
    ///
    /// # Errors
    ///
    /// When the directory can't be made, or the bucket's variables are incomplete.
    pub fn open(place: &Location, key: Key, base_url: Option<Url>, caps: SizeLimits) -> anyhow::Result<Self> {
        match place {
            Location::Directory(directory) => {
                std::fs::create_dir_all(directory)
                    .with_context(|| format!("the directory {} can't be made", directory.display()))?;
                let store = LocalFileSystem::new_with_prefix(directory)?.with_automatic_cleanup(true);
                let directory = std::fs::canonicalize(directory)?;
                let door = Door::Ours { key, base_url, directory };
                Ok(Self { store: Arc::new(store), prefix: Path::default(), part: HELD, door, caps })
            }
            Location::Bucket { bucket, prefix } => {
                // Between its places the bucket copies by itself, and answers when it is done.
                let patience = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
                let bucket =
                    AmazonS3Builder::from_env().with_bucket_name(bucket).with_config(patience, "10m");
                let bucket = bucket.build().context("the bucket's variables (AWS_*) are incomplete")?;
                let bucket = Arc::new(bucket);
                let prefix = Path::parse(prefix).context("the bucket's prefix")?;
                Ok(Self { store: bucket.clone(), prefix, part: PART, door: Door::Theirs(bucket), caps })
            }
        }
    }

    /// How large files may be.
    pub fn caps(&self) -> &SizeLimits {
        &self.caps
    }

    /// What passes are signed with, where bytes come and go through us.
    pub fn passes(&self) -> Option<&Key> {
        match &self.door {
            Door::Ours { key, .. } => Some(key),
            Door::Theirs(_) => None,
        }
    }

    /// Where a file's bytes are to be sent by PUT.
    ///
    /// # Errors
    ///
    /// When no address can be made: a fault of the configuration.
    pub async fn upload_address(
        &self,
        asset: &StoredFile,
        expires_at: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Url> {
        match &self.door {
            Door::Ours { key, base_url, .. } => {
                let pass = SignedToken { media: asset.media, owner: asset.owner, expires_at };
                let mut url = below(base_url, &format!("media/{}/content", asset.media))?;
                url.query_pairs_mut().append_pair("pass", &key.write(Permission::Put, &pass));
                Ok(url)
            }
            Door::Theirs(bucket) => {
                let life = (expires_at - now).to_std().unwrap_or_default();
                Ok(bucket.signed_url(Method::PUT, &self.incoming(asset), life).await?)
            }
        }
    }

    /// Where a file can be fetched for a while; ends with its name.
    ///
    /// # Errors
    ///
    /// When no address can be made: a fault of the configuration.
    pub async fn address(
        &self,
        asset: &StoredFile,
        mime: &str,
        life: Duration,
        now: DateTime<Utc>,
    ) -> anyhow::Result<Url> {
        match &self.door {
            Door::Ours { key, base_url, .. } => {
                let pass = SignedToken { media: asset.media, owner: asset.owner, expires_at: now + life };
                let (pass, name) = (key.write(Permission::Get, &pass), Name::of(&asset.filename));
                below(base_url, &format!("media/{}/content/{pass}/{}", asset.media, name.as_str()))
            }
            Door::Theirs(bucket) => {
                // Its sender may have named another type, or none.
                let options = SignedUrlOptions::new().with_query([("response-content-type", mime)]);
                Ok(bucket.signed_url_opts(Method::GET, &self.kept(asset), life, &options).await?)
            }
        }
    }

    /// Lays bytes down as they come, instead of those that came before. Nothing is kept of what is
    /// refused.
    ///
    /// # Errors
    ///
    /// When there are more than `most`, or others than announced, or not all of them came, or too slowly.
    pub async fn receive(
        &self,
        asset: &StoredFile,
        bytes: impl Stream<Item = Piece>,
        most: u64,
        claim: &DeclaredFile,
        tempo: Tempo,
    ) -> Result<u64, UploadError> {
        let mut upload = self.store.put_multipart(&self.incoming(asset)).await?;
        match self.pour(upload.as_mut(), bytes, most, claim, tempo).await {
            Ok(size) => {
                upload.complete().await?;
                Ok(size)
            }
            Err(error) => {
                // What it is, is told; that some bytes stay behind for a while is not worth another word.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    async fn pour(
        &self,
        upload: &mut dyn MultipartUpload,
        bytes: impl Stream<Item = Piece>,
        mut most: u64,
        claim: &DeclaredFile,
        tempo: Tempo,
    ) -> Result<u64, UploadError> {
        let mut bytes = pin!(bytes);
        let (mut size, mut hasher) = (0, Sha256::new());
        let (mut part, mut length) = (Vec::new(), 0);
        let mut waited = Duration::ZERO;
        loop {
            let began = Instant::now();
            let next = tokio::time::timeout(tempo.patience(size, waited), bytes.next()).await;
            waited += began.elapsed();
            let next = next.map_err(|_| UploadError::Slow { size, waited })?;
            let piece = next.transpose().map_err(UploadError::Broken)?;
            let is_last = piece.is_none();
            if let Some(piece) = piece {
                if size == 0 {
                    let kind = format::of_bytes(&piece).map(|format| format.kind);
                    most = most.min(self.caps.of_claim(kind));
                }
                size += piece.len() as u64;
                if size > most {
                    return Err(UploadError::TooLarge(most));
                }
                length += piece.len() as u64;
                part.push(piece);
            }
            if length >= self.part || is_last && (length > 0 || size == 0) {
                let pieces = std::mem::take(&mut part);
                length = 0;
                if claim.sha256.is_some() {
                    hasher = hash(hasher, pieces.clone()).await?;
                }
                upload.put_part(PutPayload::from_iter(pieces)).await?;
            }
            if is_last {
                break;
            }
        }
        if let Some(claimed) = claim.size.filter(|claimed| *claimed != size) {
            return Err(UploadError::Other(format!("{size} bytes were sent, and {claimed} were announced")));
        }
        let found = hex(hasher);
        if let Some(claimed) = claim.sha256.as_ref().filter(|claimed| **claimed != found) {
            return Err(UploadError::Other(format!(
                "the bytes have the SHA-256 {found}, and {claimed} was announced"
            )));
        }
        Ok(size)
    }

    /// How much arrived of a file, or `None` when nothing did.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn arrived(&self, asset: &StoredFile) -> object_store::Result<Option<u64>> {
        match self.size(&self.kept(asset)).await? {
            Some(size) => Ok(Some(size)),
            None => self.size(&self.incoming(asset)).await,
        }
    }

    /// Whether a file was taken in.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn has(&self, asset: &StoredFile) -> object_store::Result<bool> {
        Ok(self.size(&self.kept(asset)).await?.is_some())
    }

    /// Takes what arrived to where nobody can change it any more. To be done by one at a time.
    ///
    /// # Errors
    ///
    /// When the store can't do it.
    pub async fn take_in(&self, asset: &StoredFile) -> object_store::Result<()> {
        self.store.rename(&self.incoming(asset), &self.kept(asset)).await
    }

    /// What a file is: one that was taken in, or else what arrived.
    ///
    /// # Errors
    ///
    /// [`Fault::Refused`] when it is not what it must be.
    pub async fn inspect(
        &self,
        asset: &StoredFile,
        size: u64,
        claim: &DeclaredFile,
    ) -> Result<FileProperties, Fault> {
        let path = if self.has(asset).await? { self.kept(asset) } else { self.incoming(asset) };
        let budget = PROBED + size.min(PROBED);
        let mut window = Window::new(self.store.clone(), path, size, budget);
        let (claim, caps) = (claim.clone(), self.caps.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let facts = inspect::inspect(&mut window, size, &claim, &caps);
            match window.failure {
                Some(failure) => Err(failure.into()),
                None => facts.map_err(Fault::from),
            }
        });
        // A parser that stumbles has met a file that no other should be given.
        looked.await.unwrap_or_else(|_| Err(inspect::unfit("the file can't be read").into()))
    }

    /// The SHA-256 of a file that was taken in.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn digest(&self, asset: &StoredFile, size: u64) -> object_store::Result<Digest> {
        let pieces = self.pieces(asset, 0..size, self.part);
        let hasher = pieces.try_fold(Sha256::new(), |hasher, piece| hash(hasher, vec![piece]));
        Ok(hex(hasher.await?))
    }

    /// A range of a file that was taken in.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn read(&self, asset: &StoredFile, range: Range<u64>) -> object_store::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.store.get_range(&self.kept(asset), range).await
    }

    /// A range of a file that was taken in, piece by piece.
    pub fn stream(
        &self,
        asset: &StoredFile,
        range: Range<u64>,
    ) -> impl Stream<Item = object_store::Result<Bytes>> + Send + 'static {
        self.pieces(asset, range, HELD)
    }

    /// Forgets a file, wherever it lies. May be repeated.
    ///
    /// # Errors
    ///
    /// When the store can't do it.
    pub async fn discard(&self, asset: &StoredFile) -> object_store::Result<()> {
        for path in [self.kept(asset), self.incoming(asset)] {
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes what uploads left behind that never came to an end, where nobody else does.
    ///
    /// # Errors
    ///
    /// When the directory can't be read.
    pub async fn sweep(&self, before: DateTime<Utc>) -> anyhow::Result<usize> {
        let Door::Ours { directory, .. } = &self.door else { return Ok(0) };
        let arriving = directory.join(ARRIVING);
        tokio::task::spawn_blocking(move || sweep(&arriving, before.into()))
            .await?
            .context("sweep the directory")
    }

    fn pieces(
        &self,
        asset: &StoredFile,
        range: Range<u64>,
        length: u64,
    ) -> impl Stream<Item = object_store::Result<Bytes>> + Send + 'static {
        let (store, path, end) = (self.store.clone(), self.kept(asset), range.end);
        stream::iter(range.step_by(usize::try_from(length).expect("a piece fits in memory"))).then(
            move |start| {
                let (store, path) = (store.clone(), path.clone());
                async move { store.get_range(&path, start..(start + length).min(end)).await }
            },
        )
    }

    async fn size(&self, path: &Path) -> object_store::Result<Option<u64>> {
        match self.store.head(path).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn incoming(&self, asset: &StoredFile) -> Path {
        self.path(asset, Some(ARRIVING)).join(asset.media.to_string())
    }

    fn kept(&self, asset: &StoredFile) -> Path {
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

/// What arrives lies below this.
const ARRIVING: &str = "arriving";

fn sweep(directory: &std::path::Path, before: std::time::SystemTime) -> io::Result<usize> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // It has just been taken in.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if meta.is_dir() {
            swept += sweep(&path, before)?;
        } else if meta.modified()? < before {
            std::fs::remove_file(&path)?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// Hashing is work: done where it keeps nobody waiting.
async fn hash(mut hasher: Sha256, pieces: Vec<Bytes>) -> object_store::Result<Sha256> {
    let work = tokio::task::spawn_blocking(move || {
        pieces.iter().for_each(|piece| hasher.update(piece));
        hasher
    });
    work.await.map_err(|source| object_store::Error::JoinError { source })
}

fn hex(hasher: Sha256) -> Digest {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn below(base_url: &Option<Url>, path: &str) -> anyhow::Result<Url> {
    let base = base_url.as_ref().context("the API's address is not known here: set FANFARE_BASE_URL")?;
    Ok(Url::parse(&format!("{}/{path}", base.as_str().trim_end_matches('/')))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let bucket =
            |bucket: &str, prefix: &str| Location::Bucket { bucket: bucket.into(), prefix: prefix.into() };
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
    fn bytes_may_be_late_for_a_while_and_not_slow_for_ever() {
        let tempo = Tempo { silence: Duration::from_secs(30), least: 100 };
        for (size, waited, patience) in [
            (0, 0, 30),
            (1, 29, 1),
            (1, 30, 0),
            (3000, 30, 0),
            (3500, 30, 5),
            // Enough came to be patient again, but not with silence.
            (100_000, 30, 30),
            (100_000, 1000, 0),
        ] {
            let found = tempo.patience(size, Duration::from_secs(waited));
            assert_eq!(found, Duration::from_secs(patience), "{size} bytes in {waited} s");
        }
    }

    #[test]
    fn a_name_leads_nowhere_and_keeps_its_end() {
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
        assert!(long.as_str().len() == NAME && long.as_str().ends_with("a.mp4"));
    }
}
