//! The confined process: reads an order, gives up its rights, and does the job.

use super::{Answer, Bounds, Job, Order, confine};
use crate::rendition;
use anyhow::Context;
use domain::Fit;
use pictures::Halt;
use std::{
    io::{Read, Write, stdin, stdout},
    panic::catch_unwind,
    process::ExitCode,
};

/// Runs the command `media-worker` with its argument.
pub fn serve(order: &str) -> ExitCode {
    match obey(order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(order: &str) -> anyhow::Result<()> {
    let Order { job, bounds } = serde_json::from_str(order).context("the order")?;
    let confinement = confine::confine(&bounds)?;
    let (answer, file) = match job {
        Job::Try => (Answer::Confined(confinement.tried()), Vec::new()),
        Job::Render(fit) => render(&input(&bounds)?, &fit),
    };
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.write_all(b"\n")?;
    out.write_all(&file)?;
    Ok(out.flush()?)
}

/// Reads the whole input.
fn input(bounds: &Bounds) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stdin().lock().take(bounds.input_bytes).read_to_end(&mut bytes).context("the input")?;
    Ok(bytes)
}

fn render(original: &[u8], fit: &Fit) -> (Answer, Vec<u8>) {
    // A file that makes a decoder panic fits nowhere.
    let mut made = catch_unwind(|| rendition::render(original, fit))
        .unwrap_or_else(|_| Err(Halt::Undecodable("it can't be read".to_owned())));
    let bytes = made.as_mut().map(|made| std::mem::take(&mut made.bytes)).unwrap_or_default();
    (made.into(), bytes)
}
