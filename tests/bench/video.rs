//! Row 12: a large video through API, file store and a platform that takes it in parts.

use crate::{
    Bench, TURNS,
    load::{each, in_turns, next},
    processes::resident_mib,
    report::{Compared, Goal, Line, Report},
};
use anyhow::Context;
use bytes::Bytes;
use futures::stream;
use reqwest::Body;
use serde_json::json;
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tests::{World, directory, lifted_limits, samples, wait_within};

/// Size of the video: large enough that starting costs nothing, and small enough for all turns.
const MIB: usize = 1024;
/// Piece of the file.
const PIECE: usize = 1 << 20;
/// Time limit of publishing.
const LIMIT: Duration = Duration::from_secs(120);

/// A file that is deleted at the end.
struct Video(PathBuf);

impl Drop for Video {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Measurements of one passage of the video.
struct Passage {
    mib_per_second: f64,
    /// Growth of the resident memory of API and worker, at its largest.
    grown_mib: f64,
}

/// Row 12: upload, inspection and publishing of a video on YouTube, against two copies of the file, each through a
/// connection on loopback.
pub(crate) async fn through(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut world = World::of(bench.program).pace(1.0).platforms(&["youtube"]).own().approved().start().await;
    world.leave("", "the benchmark looks at what it measures");
    world.connect("youtube", "ada").await;
    world.set_sandbox(json!({ "limits": lifted_limits(), "processing_ms": 0 })).await;
    let video = Video(directory().join("video.mp4"));
    write(&video.0)?;
    let (ours, copies) = in_turns(
        TURNS,
        async || passage(&world, &video.0).await,
        async || {
            let (from, to) = (video.0.clone(), directory().join("copy.mp4"));
            let took = tokio::task::spawn_blocking(move || copied_twice(&from, &to)).await??;
            Ok(Passage { mib_per_second: MIB as f64 / took.as_secs_f64(), grown_mib: 0.0 })
        },
    )
    .await?;
    let rates = (each(&ours, |one| one.mib_per_second), each(&copies, |one| one.mib_per_second));
    let of = Compared { ours: &rates.0, theirs: &rates.1, unit: "MiB/s" };
    let work =
        format!("{MIB} MiB of video through API, store and YouTube's parts, against two copies over TCP");
    report.add(Line::ratio("12", work, Goal::AtLeast(0.5), of));
    let grown = each(&ours, |one| one.grown_mib);
    report.add(Line::limit("12", "… growth of API and worker", Goal::AtMost(64.0), grown, "MiB"));
    Ok(())
}

/// Writes the video: a head that is inspected, and media data that can't be compressed.
fn write(path: &Path) -> anyhow::Result<()> {
    let head = samples::film_head(640, 360, 60_000);
    let mut file = File::create(path)?;
    file.write_all(&head)?;
    let length = u32::try_from(MIB * PIECE)?;
    file.write_all(&length.to_be_bytes())?;
    file.write_all(b"mdat")?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let piece: Vec<u8> = (0..PIECE)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect();
    let mut left = length as usize - 8;
    while left > 0 {
        let count = left.min(PIECE);
        file.write_all(&piece[..count])?;
        left -= count;
    }
    Ok(file.sync_all()?)
}

/// Uploads and publishes the video once, and deletes it.
async fn passage(world: &World, path: &Path) -> anyhow::Result<Passage> {
    let pids = world.pids();
    let before = resident_mib(&pids);
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = thread::spawn({
        let is_over = is_over.clone();
        move || {
            let mut most = before;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(resident_mib(&pids));
                thread::sleep(Duration::from_millis(50));
            }
            most
        }
    });
    let began = Instant::now();
    let published = publish(world, path).await;
    let took = began.elapsed();
    is_over.store(true, Ordering::Relaxed);
    let most = watching.join().map_err(|_| anyhow::anyhow!("the watch panicked"))?;
    let medium = published?;
    let url = format!("{}/media/{medium}", world.base);
    // A published asset may be kept; the directory goes with the world.
    let _ = world.http.delete(url).bearer_auth(&world.key).send().await?;
    Ok(Passage { mib_per_second: MIB as f64 / took.as_secs_f64(), grown_mib: most - before })
}

async fn publish(world: &World, path: &Path) -> anyhow::Result<String> {
    let medium = world.declare(json!({ "filename": format!("video-{}.mp4", next()) })).await;
    let id = medium["id"].as_str().context("an id")?.to_owned();
    let length = fs::metadata(path)?.len();
    let file = File::open(path)?;
    let pieces = stream::try_unfold(file, |mut file| async move {
        let (read, file) = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).map(|count| {
                piece.truncate(count);
                piece
            });
            (read, file)
        })
        .await
        .map_err(io::Error::other)?;
        let piece = read?;
        Ok::<_, io::Error>((!piece.is_empty()).then(|| (Bytes::from(piece), file)))
    });
    let answer = world
        .http
        .put(medium["upload_url"].as_str().context("a URL")?)
        .header("content-length", length)
        .body(Body::wrap_stream(pieces))
        .send()
        .await?;
    anyhow::ensure!(answer.status().is_success(), "the upload: {}", answer.text().await?);
    let (status, confirmed) = world.confirm(&medium).await;
    anyhow::ensure!(status.is_success(), "the confirmation: {confirmed}");
    let container = json!({ "content": format!("Video {}", next()), "media": [{ "id": id }] });
    let body = json!({ "containers": [container], "accounts": ["ada"] });
    let post = world.post(body).await;
    let path = format!("/posts/{}", post["id"].as_str().context("an id")?);
    wait_within(LIMIT, "the video to be live", async || {
        let post = world.get(&path).await;
        if post["status"] == "published" { Ok(()) } else { Err(post["targets"].to_string()) }
    })
    .await;
    Ok(id)
}

/// Sends the file through a connection to another one, twice: as often as a video that is uploaded and published.
fn copied_twice(from: &Path, to: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let mut source = File::open(from)?;
        let sending = thread::spawn(move || -> io::Result<()> {
            let mut out = TcpStream::connect(address)?;
            pump(&mut source, &mut out)
        });
        let (mut incoming, _) = listener.accept()?;
        let mut target = File::create(to)?;
        pump(&mut incoming, &mut target)?;
        sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))??;
    }
    let took = began.elapsed();
    fs::remove_file(to)?;
    Ok(took)
}

fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            count => to.write_all(&piece[..count])?,
        }
    }
}
