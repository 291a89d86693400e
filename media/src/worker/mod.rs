//! Decoding in a confined process.
//!
//! Whatever reads pixels or samples of a user's file runs in a process of its own, the hidden command
//! `fanfare media-worker` of the same program: it is given the file on its standard input and answers on its standard
//! output, and reaches nothing else ([`confine`]). A file that makes a decoder crash, loop or take memory without end
//! ends that process, and is refused with a sentence; no other file, tenant or request notices.
//!
//! Each job has a process of its own, so that no state passes from one file to the next, and there is none to be
//! restarted. Starting it takes milliseconds, a picture tens to hundreds of them.
//!
//! **A new kind of work** is a variant of [`Job`], what it answers a variant of [`Answer`], and how it is done an arm
//! of [`child`]. The parent calls [`Decoders::run`] with [`Bounds`], in a [turn](crate::turns) of the file's owner. One
//! that runs another program confines itself as far as that program allows, and then replaces itself by `exec`: limits,
//! landlock's rules and the filter of system calls stay.

mod child;
mod confine;
mod death;

pub use child::serve;
pub use confine::Confinement;
pub(crate) use death::Death;

use bytes::Bytes;
use domain::Fit;
use futures::{Stream, StreamExt};
use pictures::{CPU_LIMIT, Halt};
use serde::{Deserialize, Serialize};
use std::{io, path::PathBuf, pin::pin, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};

/// Name of the hidden command.
const COMMAND: &str = "media-worker";
/// Time of the clock in which a picture is converted, on a machine that is busy with other things.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Bytes that a process may tell beside its answer: a panic's message.
const MAX_COMPLAINT: u64 = 4 << 10;
/// Bytes of an answer, without the file that follows.
const MAX_HEAD: u64 = 4 << 10;

/// The processes that decode.
#[derive(Clone, Debug)]
pub struct Decoders {
    /// Program that has the command `media-worker`.
    pub program: PathBuf,
    /// CPU time of a picture, in whole seconds.
    pub cpu_limit: Duration,
    /// Time of the clock of a picture.
    pub time_limit: Duration,
}

impl Default for Decoders {
    /// Processes of the running program, also if its file was replaced since.
    fn default() -> Self {
        let program = match cfg!(target_os = "linux") {
            true => "/proc/self/exe".into(),
            false => std::env::current_exe().unwrap_or_else(|_| "fanfare".into()),
        };
        Self { program, cpu_limit: CPU_LIMIT, time_limit: TIME_LIMIT }
    }
}

/// Work of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Tries what the process must not reach, and tells how it is confined.
    Try,
    /// Makes a rendition of the picture on standard input.
    Render(Fit),
}

/// Limits of a process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Memory that it may have beside its program, in bytes.
    pub(crate) memory_bytes: u64,
    /// CPU time, in seconds.
    pub(crate) cpu_seconds: u64,
    /// Time of the clock, in seconds.
    pub(crate) seconds: u32,
    /// Maximum size of its input, in bytes.
    pub(crate) input_bytes: u64,
    /// Maximum size of the file that it answers, in bytes.
    pub(crate) output_bytes: u64,
}

/// The argument of the command.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    job: Job,
    bounds: Bounds,
}

/// First line of what a process answers; the file, if it made one, follows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// How the process is confined.
    Confined(Confinement),
    /// The rendition that follows.
    Made { extension: String, width: u32, height: u32 },
    /// The file can't be decoded, for this reason.
    Undecodable(String),
    /// The file can't become what is asked for, for this reason.
    Unfit(String),
}

/// Why a process did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It could not be started.
    #[error("a process can't be started: {0}")]
    Unstarted(io::Error),
    /// The file could not be read from the store.
    #[error(transparent)]
    Input(#[from] object_store::Error),
    /// It ended early.
    #[error(transparent)]
    Died(#[from] Death),
}

impl Decoders {
    /// Returns how a process of this machine is confined, found by trying.
    ///
    /// # Errors
    ///
    /// If no process can be started, or it ends without an answer.
    pub async fn confinement(&self) -> anyhow::Result<Confinement> {
        let bounds =
            Bounds { memory_bytes: 64 << 20, cpu_seconds: 10, seconds: 60, input_bytes: 0, output_bytes: 0 };
        let nothing = futures::stream::empty::<object_store::Result<Bytes>>();
        match self.run(Job::Try, bounds, nothing).await?.0 {
            Answer::Confined(found) => Ok(found),
            other => anyhow::bail!("unexpected answer: {other:?}"),
        }
    }

    /// Runs a job in a process of its own, and returns its answer and the file that follows it. The process ends when
    /// this future is dropped.
    pub(crate) async fn run(
        &self,
        job: Job,
        bounds: Bounds,
        input: impl Stream<Item = object_store::Result<Bytes>>,
    ) -> Result<(Answer, Vec<u8>), Fault> {
        let order = serde_json::to_string(&Order { job, bounds }).expect("an order is plain data");
        let mut child = Command::new(&self.program)
            .args([COMMAND, &order])
            // It needs none, and some are secrets.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Fault::Unstarted)?;
        let served = async {
            let heard = attend(&mut child, input, MAX_HEAD + bounds.output_bytes).await?;
            Ok::<_, Fault>((heard, child.wait().await.map_err(Fault::Unstarted)?))
        };
        let served = tokio::time::timeout(Duration::from_secs(bounds.seconds.into()), served).await;
        let Ok(served) = served else {
            child.kill().await.map_err(Fault::Unstarted)?;
            return Err(Death::Late(bounds.seconds).into());
        };
        let ((said, complaint), status) = served?;
        if !status.success() {
            return Err(Death::of(status, &complaint, &bounds).into());
        }
        let end = said.iter().position(|byte| *byte == b'\n').ok_or(Death::Garbled)?;
        let answer = serde_json::from_slice(&said[..end]).map_err(|_| Death::Garbled)?;
        let mut file = said;
        file.drain(..=end);
        if file.len() as u64 > bounds.output_bytes {
            return Err(Death::Garbled.into());
        }
        Ok((answer, file))
    }
}

/// Gives a process its input, and returns what it says and what it complains.
async fn attend(
    child: &mut Child,
    input: impl Stream<Item = object_store::Result<Bytes>>,
    max: u64,
) -> Result<(Vec<u8>, Vec<u8>), Fault> {
    let mut stdin = child.stdin.take().expect("piped");
    let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let feed = async {
        let mut input = pin!(input);
        while let Some(piece) = input.next().await {
            // One that has died, or does not need the rest, reads no more.
            if stdin.write_all(&piece?).await.is_err() {
                break;
            }
        }
        drop(stdin);
        Ok::<_, Fault>(())
    };
    let heard = async { tokio::join!(hear(stdout, max), hear(stderr, MAX_COMPLAINT)) };
    let (fed, (said, complaint)) = tokio::join!(feed, heard);
    fed?;
    Ok((said.map_err(Fault::Unstarted)?, complaint.map_err(Fault::Unstarted)?))
}

/// Reads at most `max` bytes, and then closes the pipe: who writes more ends by that.
async fn hear(pipe: impl AsyncRead + Unpin, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(max).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

impl From<Result<pictures::Rendition, Halt>> for Answer {
    fn from(made: Result<pictures::Rendition, Halt>) -> Self {
        match made {
            Ok(made) => {
                Self::Made { extension: made.extension.to_owned(), width: made.width, height: made.height }
            }
            Err(Halt::Undecodable(reason)) => Self::Undecodable(reason),
            Err(Halt::Unfit(reason)) => Self::Unfit(reason),
        }
    }
}
