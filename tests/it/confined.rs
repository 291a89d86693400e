//! The processes that decode: what they can't reach, and what becomes of a file that makes one end.

use crate::{
    files::shelf,
    media::peak,
    pictures::{MODERN, asset, kept, stored},
    world,
};
use ::media::{Decoders, FileStore, FitError, FittedFile};
use domain::{Fit, MediaKind};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;
use std::{fs, time::Duration};
use tests::{
    photos::{ImageFormat, Photo},
    samples::{blank_webp, flicker, gif, hollow_png},
    wait_until,
};
use tokio::sync::watch;
use uuid::Uuid;

/// Memory that a picture may take in the process that has it decoded: some pieces of its file.
const MARGIN: u64 = 48 << 20;

fn new_shelf() -> FileStore {
    shelf(&tests::directory().join(Uuid::now_v7().to_string()))
}

/// A fit of this width, by which its process is told from others.
fn to(width: u32) -> Fit {
    let kind = MediaKind::Image;
    Fit { kind, width, height: width, shaping: None, max_bytes: 1 << 20, keeps_transparency: true }
}

async fn fit(shelf: &FileStore, number: u128, size: u64, fit: &Fit) -> Result<FittedFile, FitError> {
    let stop = watch::Sender::new(false);
    shelf.fit(&asset(number), size, fit, &stop.subscribe()).await
}

/// Returns the reason why a picture is refused for good.
fn reason(made: Result<FittedFile, FitError>) -> String {
    match made {
        Err(FitError::Undecodable(reason) | FitError::Unfit(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// Returns the process that makes a rendition of this width, if there is one.
fn decoder(width: u32) -> Option<Pid> {
    let sought = format!("\"width\":{width},");
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let name = entry.ok()?.file_name();
        let pid = name.to_str()?.parse().ok()?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line);
        (line.contains("media-worker") && line.contains(&sought)).then(|| Pid::from_raw(pid))
    })
}

#[tokio::test]
async fn a_process_that_decodes_reaches_no_file_network_or_program() {
    let found = new_shelf().decoders().confinement().await.unwrap();
    assert_eq!(found.reached, [""; 0], "{found}");
    assert!(found.has_seccomp, "{found}");
}

/// Its descriptors are its pipes, its environment is empty, and it can get no rights.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_decodes_has_nothing_of_the_one_that_started_it() {
    let shelf = new_shelf();
    let medium = stored(&shelf, 1, &blank_webp(10_000, 10_000)).await;
    let decoding = tokio::spawn(async move { fit(&shelf, 1, medium.size_bytes, &to(1001)).await });
    let is_confined = |pid: Pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.contains("Seccomp:\t2").then_some((pid, status))
    };
    let (pid, status) =
        wait_until("a process", async || decoder(1001).and_then(is_confined).ok_or("none")).await;
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"");
    assert_eq!(fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), 3);
    decoding.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_that_is_killed_gets_one_more_chance() {
    let shelf = new_shelf();
    let medium = stored(&shelf, 1, &blank_webp(10_000, 10_000)).await;
    for (width, kills) in [(1002, 1), (1003, 2)] {
        let (shelf, size) = (shelf.clone(), medium.size_bytes);
        let decoding = tokio::spawn(async move { fit(&shelf, 1, size, &to(width)).await });
        let mut last = None;
        for _ in 0..kills {
            let is_new = |pid: &Pid| Some(*pid) != last;
            let pid = wait_until("a process", async || decoder(width).filter(is_new).ok_or("none")).await;
            kill(pid, Signal::SIGKILL).unwrap();
            last = Some(pid);
        }
        let made = decoding.await.unwrap();
        match kills {
            1 => assert_eq!(made.unwrap().width, 1002),
            _ => assert_eq!(reason(made), "the process that converted it was killed"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_that_computes_without_end_is_ended() {
    let shelf = new_shelf();
    let limited = Decoders { cpu_limit: Duration::from_secs(1), ..shelf.decoders().clone() };
    let shelf = shelf.decoded_by(limited);
    let animation = flicker(1000, 1000, 99);
    let medium = stored(&shelf, 1, &animation).await;
    let all = Fit { kind: MediaKind::Gif, max_bytes: 100 << 20, ..to(1000) };
    let made = fit(&shelf, 1, medium.size_bytes, &all).await;
    assert_eq!(reason(made), "converting it takes more than 1 s of computing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_that_hangs_is_ended_at_its_deadline() {
    let shelf = new_shelf();
    let limited = Decoders { time_limit: Duration::from_secs(3), ..shelf.decoders().clone() };
    let shelf = shelf.decoded_by(limited);
    let medium = stored(&shelf, 1, &blank_webp(10_000, 10_000)).await;
    let decoding = tokio::spawn(async move { fit(&shelf, 1, medium.size_bytes, &to(1004)).await });
    let pid = wait_until("a process", async || decoder(1004).ok_or("none")).await;
    // It uses no more CPU time, and no alarm reaches it.
    kill(pid, Signal::SIGSTOP).unwrap();
    assert_eq!(reason(decoding.await.unwrap()), "it was not converted within 3 s");
    assert_eq!(decoder(1004), None, "it was killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_are_refused_with_the_reason() {
    let shelf = new_shelf();
    for (number, (bytes, kind, expected)) in [
        (blank_webp(16_000, 16_000), MediaKind::Image, "more than 100 million pixels"),
        (hollow_png(9_000, 9_000), MediaKind::Image, "it can't be read"),
        (flicker(2000, 2000, 249), MediaKind::Gif, "more than 100 million pixels together"),
    ]
    .into_iter()
    .enumerate()
    {
        let size = bytes.len() as u64;
        kept(&shelf, number as u128, &bytes).await;
        let told = reason(fit(&shelf, number as u128, size, &Fit { kind, ..to(100) }).await);
        assert!(told.contains(expected), "{told}");
    }
}

/// Cut or with changed bytes, a file of each format is converted or refused for good, and no process is left.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_converted_or_refused() {
    let shelf = new_shelf();
    let photo = |format| Photo { width: 60, height: 80, orientation: 1, format }.bytes();
    let files = [
        photo(ImageFormat::Jpeg),
        photo(ImageFormat::Png),
        photo(ImageFormat::WebP),
        photo(ImageFormat::Tiff),
        gif(3),
        MODERN[4].2.to_vec(),
        MODERN[7].2.to_vec(),
        MODERN[9].2.to_vec(),
        MODERN[10].2.to_vec(),
    ];
    let (mut state, mut refused, mut number) = (7_u32, 0, 0);
    for file in files {
        for round in 0..12 {
            let mut bytes = file.clone();
            for _ in 0..=round {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let at = (state >> 8) as usize % bytes.len();
                bytes[at] = state.to_be_bytes()[0];
            }
            if round % 4 == 3 {
                bytes.truncate(bytes.len() / 4 * 3);
            }
            number += 1;
            kept(&shelf, number, &bytes).await;
            match fit(&shelf, number, bytes.len() as u64, &to(50)).await {
                Ok(_) => {}
                Err(FitError::Undecodable(reason) | FitError::Unfit(reason)) => {
                    assert!(!reason.is_empty());
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(refused > 20, "{refused} of {number}");
}

/// The process that has pictures decoded reads their files in pieces, and nothing else of them.
#[tokio::test]
async fn the_memory_of_a_worker_does_not_grow_with_a_picture() {
    let world = world().own().platforms(&["instagram"]).start().await;
    let account = world.connect("instagram", "ada").await;
    let post = |id: &serde_json::Value| json!({ "containers": [{ "content": "Look", "media": [{ "id": id }] }], "accounts": [account] });
    let small = world.medium("a.webp", None, blank_webp(400, 400)).await;
    world.ended(&world.post(post(&small["id"])).await).await;
    let before = peak(&world);
    let large = world.medium("b.webp", None, blank_webp(10_000, 9_000)).await;
    let ended = world.ended(&world.post(post(&large["id"])).await).await;
    assert_eq!(ended["status"], "published", "{ended:#}");
    let grown = peak(&world).saturating_sub(before);
    assert!(grown <= MARGIN, "a picture of 90 million pixels took {} MiB", grown >> 20);
}
