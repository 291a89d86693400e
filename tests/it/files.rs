//! Inspection of uploaded files: no truncated or corrupt file is accepted as whole or makes a parser panic.

use ::media::{
    Decoders, Fault, FileProperties, FileStore, Key, Location, MinRate, Refusal, SizeLimits, StoredFile,
    UploadError,
};
use domain::{MediaId, Mode, OrgId, Owner, media::DeclaredFile};
use futures::stream;
use std::{path::Path, time::Duration};
use tests::samples::{avi, bmp, docx, encoded_film, film, gif, jpeg, pdf, png, wav, webm};
use uuid::Uuid;

/// Opens a file store in a directory, without a service.
pub(crate) fn shelf(directory: &Path) -> FileStore {
    let place = Location::Directory(directory.to_owned());
    let store = FileStore::open(&place, Key::derive(&[0; 32]), None, SizeLimits::default()).unwrap();
    store.decoded_by(Decoders {
        program: env!("CARGO_BIN_EXE_fanfare-under-test").into(),
        ..Decoders::default()
    })
}

fn asset() -> StoredFile {
    let owner = Owner { org: OrgId(Uuid::from_u128(1)), mode: Mode::Test };
    StoredFile { media: MediaId(Uuid::from_u128(2)), owner, filename: "a".to_owned(), rendition: None }
}

/// Stores and inspects a file.
async fn look(shelf: &FileStore, bytes: &[u8]) -> Result<FileProperties, Refusal> {
    let asset = asset();
    let pieces = stream::iter([Ok(bytes.to_vec().into())]);
    let tempo = MinRate { idle_timeout: Duration::from_secs(30), bytes_per_second: 1 };
    shelf.receive(&asset, pieces, u64::MAX, &DeclaredFile::default(), tempo).await.unwrap();
    match shelf.inspect(&asset, bytes.len() as u64, &DeclaredFile::default()).await {
        Ok(facts) => Ok(facts),
        Err(Fault::Refused(refusal)) => Err(refusal),
        Err(Fault::Store(error)) => panic!("{error}"),
    }
}

fn samples() -> [(&'static str, Vec<u8>); 12] {
    [
        ("png", png(8, 8)),
        ("jpeg", jpeg(8, 8)),
        ("gif", gif(2)),
        ("film", film(1000, 64)),
        ("encoded film", encoded_film(64)),
        ("webm", webm()),
        ("avi", avi(8, 8, 2)),
        ("bmp", bmp(8, 8)),
        ("wav", wav(1600)),
        ("pdf", pdf()),
        ("docx", docx(100)),
        // The declared size may be false, but no entry is decompressed.
        ("bomb", docx(u32::MAX - 1)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_rejected() {
    let directory = tests::directory().join(Uuid::now_v7().to_string());
    let shelf = shelf(&directory);
    for (name, bytes) in samples() {
        look(&shelf, &bytes).await.unwrap();
        for length in (0..bytes.len()).rev().take(600) {
            match look(&shelf, &bytes[..length]).await {
                Err(Refusal::Unfit(_)) => {}
                // A GIF has the frames that are whole.
                Ok(found) if name == "gif" => {
                    assert!(found.frames.is_none_or(|frames| frames <= 2), "{found:?}")
                }
                looked => panic!("{length} bytes of the {name}: {looked:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_changed_byte_makes_a_parser_panic() {
    let directory = tests::directory().join(Uuid::now_v7().to_string());
    let shelf = shelf(&directory);
    for (name, bytes) in samples() {
        for index in 0..bytes.len().min(if name == "encoded film" { 1000 } else { 300 }) {
            for value in [0, 0xff, bytes[index].wrapping_add(1)] {
                let mut changed = bytes.clone();
                changed[index] = value;
                // A changed file may be valid. Only a panic of the parser is reported with this message.
                if let Err(refusal) = look(&shelf, &changed).await {
                    assert_ne!(
                        refusal.to_string(),
                        "the file can't be read",
                        "{name} with {value} at {index}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn an_upload_below_the_minimum_rate_is_not_stored() {
    let directory = tests::directory().join(Uuid::now_v7().to_string());
    let shelf = shelf(&directory);
    // An endless stream that is never idle for long.
    let pace = tokio::time::interval(Duration::from_millis(10));
    let dripping = stream::unfold(pace, async |mut pace| {
        pace.tick().await;
        Some((Ok(vec![0].into()), pace))
    });
    let tempo = MinRate { idle_timeout: Duration::from_millis(100), bytes_per_second: 1 << 20 };
    let received = shelf.receive(&asset(), dripping, u64::MAX, &DeclaredFile::default(), tempo).await;
    assert!(matches!(received, Err(UploadError::Slow { .. })), "{received:?}");
    assert_eq!(shelf.uploaded_size(&asset()).await.unwrap(), None);
}
