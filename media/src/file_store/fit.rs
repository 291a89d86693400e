//! Renditions of pictures, which are made in a process of their own and kept.

use super::{FileStore, FitError, FittedFile, PROBE_BYTES, StoredFile};
use crate::{
    buffered::Buffered,
    patience::{self, ANSWER_TIMEOUT, within},
    turns::Work,
    window::Window,
    worker::{Answer, Bounds, Death, Fault, Job},
};
use domain::{Fit, MediaKind};
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use tokio::sync::watch;

/// Memory of a process that decodes a picture, beside that of the picture.
const PROCESS_BYTES: u64 = 128 << 20;
/// Extensions of renditions.
const EXTENSIONS: [&str; 3] = ["gif", "jpg", "png"];
/// Number of processes that convert a picture before it is refused, if each was killed.
const LIVES: u32 = 2;

/// A rendition that is not in the store yet.
struct Made {
    name: String,
    bytes: Vec<u8>,
}

impl FileStore {
    /// Returns a rendition of a promoted file of `size` bytes, which is made and kept if there is none yet.
    ///
    /// Making one takes a [turn](crate::turns) of the file's owner. The [process](crate::worker) that does it ends when its
    /// CPU time is used up, when this future is dropped, or when `stop` becomes true.
    ///
    /// # Errors
    ///
    /// [`FitError::Undecodable`] or [`FitError::Unfit`] if the picture can't be made to fit.
    pub async fn fit(
        &self,
        original: &StoredFile,
        size: u64,
        fit: &Fit,
        stop: &watch::Receiver<bool>,
    ) -> Result<FittedFile, FitError> {
        if let Some(kept) = self.fitted(original, fit).await? {
            return Ok(kept);
        }
        let mut stop = stop.clone();
        let made = tokio::select! {
            made = self.render(original, size, fit) => made?,
            // Its sender is gone only when the process ends.
            _ = stop.wait_for(|stop| *stop) => return Err(FitError::NotNow("the worker stops")),
        };
        let Made { name, bytes } = made;
        let size = bytes.len() as u64;
        let rendition = StoredFile { rendition: Some(name.clone()), ..original.clone() };
        within(patience::limit(size), self.store.put(&self.promoted(&rendition), bytes.into())).await?;
        Ok(FittedFile::read(&name, size).expect("the name is of the form that is read"))
    }

    async fn render(&self, original: &StoredFile, size: u64, fit: &Fit) -> Result<Made, FitError> {
        let busy = || FitError::NotNow("the worker is busy with other pictures");
        let work = if fit.kind == MediaKind::Gif { Work::Animation } else { Work::Still };
        let mut turn = self.turns.take(original.owner, work).await.ok_or_else(busy)?;
        let memory = turn.hold(self.pixels(original, size).await?).await.ok_or_else(busy)?;
        let bounds = Bounds {
            memory_bytes: memory + size + PROCESS_BYTES,
            cpu_seconds: self.decoders.cpu_limit.as_secs(),
            seconds: u32::try_from(self.decoders.time_limit.as_secs()).unwrap_or(u32::MAX),
            input_bytes: size,
            output_bytes: fit.max_bytes,
        };
        let mut lives = LIVES;
        loop {
            lives -= 1;
            let bytes = self.stream(original, 0..size);
            return match self.decoders.run(Job::Render(*fit), bounds, bytes).await {
                Ok((Answer::Made { extension, width, height }, bytes))
                    if EXTENSIONS.contains(&&*extension) =>
                {
                    Ok(Made { name: format!("{}/{width}x{height}.{extension}", fit.name()), bytes })
                }
                Ok((Answer::Undecodable(reason), _)) => Err(FitError::Undecodable(reason)),
                Ok((Answer::Unfit(reason), _)) => Err(FitError::Unfit(reason)),
                Ok((Answer::Made { .. } | Answer::Confined(_), _)) => {
                    Err(FitError::Undecodable(Death::Garbled.to_string()))
                }
                // Perhaps not the file's fault: something else may have taken the machine's memory.
                Err(Fault::Died(Death::Killed)) if lives > 0 => continue,
                Err(Fault::Died(death @ (Death::Spent(_) | Death::Late(_) | Death::Killed))) => {
                    Err(FitError::Unfit(death.to_string()))
                }
                Err(Fault::Died(death)) => Err(FitError::Undecodable(death.to_string())),
                Err(Fault::Input(error)) => Err(error.into()),
                Err(Fault::Unstarted(_)) => Err(FitError::NotNow("the worker can't start a process")),
            };
        }
    }

    /// Reads the number of pixels from a picture's header, which may be wrong.
    async fn pixels(&self, original: &StoredFile, size: u64) -> Result<u64, FitError> {
        let budget = PROBE_BYTES + size.min(PROBE_BYTES);
        let mut window = Window::new(self.store.clone(), self.promoted(original), size, budget);
        let reading = tokio::task::spawn_blocking(move || {
            let sides = imagesize::reader_size(Buffered::new(&mut window));
            match (window.failure, sides) {
                (Some(failure), _) => Err(failure.into()),
                (None, Ok(sides)) => Ok((sides.width as u64).saturating_mul(sides.height as u64)),
                // The decoder may read headers that this does not, such as one with a 64-bit size before the properties.
                (None, Err(_)) => Ok(Fit::MAX_PIXELS),
            }
        });
        reading.await.unwrap_or_else(|_| Err(FitError::Undecodable(Death::Garbled.to_string())))
    }

    /// Returns the rendition of a promoted file that [`FileStore::fit`] made; `None` if it made none.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub async fn fitted(&self, original: &StoredFile, fit: &Fit) -> object_store::Result<Option<FittedFile>> {
        let spec = fit.name();
        let dir = self.renditions(original).join(spec.as_str());
        let kept = within(ANSWER_TIMEOUT, self.store.list(Some(&dir)).try_next()).await?;
        Ok(kept
            .and_then(|kept| FittedFile::read(&format!("{spec}/{}", kept.location.filename()?), kept.size)))
    }
}
