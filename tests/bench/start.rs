//! Row 11: start of `fanfare dev`, and its restart after SIGKILL.

use crate::{
    Bench, TURNS,
    report::{Goal, Line, Report},
};
use anyhow::Context;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};
use tests::{directory, wait_within};
use tokio::process::{Child, Command};

/// Time limit of a start.
const LIMIT: Duration = Duration::from_secs(60);

/// A data directory, which is deleted with all that is in it.
struct Data(PathBuf);

impl Drop for Data {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Row 11: time from the start of the process to the first 201.
pub(crate) async fn of_dev(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        let data = Data(directory().join(format!("dev-{turn}")));
        let (mut child, seconds) = start(bench.program, &data.0).await?;
        first.push(seconds);
        child.kill().await?;
        let (mut child, seconds) = start(bench.program, &data.0).await?;
        again.push(seconds);
        stop(&mut child).await?;
    }
    report.add(Line::limit(
        "11",
        "start of `fanfare dev` in an empty directory to the first 201",
        Goal::AtMost(4.0),
        first,
        "s",
    ));
    report.add(Line::limit("11", "restart after SIGKILL to the first 201", Goal::AtMost(6.0), again, "s"));
    Ok(())
}

/// Starts the program, creates a post, and returns the process and the seconds that it took.
async fn start(program: &str, data: &Path) -> anyhow::Result<(Child, f64)> {
    // Of the process before.
    let _ = fs::remove_file(data.join("dev.json"));
    let began = Instant::now();
    let child = Command::new(program)
        .args(["dev", "--port", "0", "--data-dir"])
        .arg(data)
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let http = tests::login::browser();
    let created = wait_within(LIMIT, "a post to be created", async || {
        let manifest = fs::read(data.join("dev.json")).map_err(|error| error.to_string())?;
        let manifest: Value = serde_json::from_slice(&manifest).map_err(|error| error.to_string())?;
        let text = |name: &str| manifest[name].as_str().unwrap_or_default().to_owned();
        let body = json!({ "content": "Benchmark", "accounts": ["fanfare"] });
        let answer = http
            .post(format!("{}/posts", text("base_url")))
            .bearer_auth(text("test_key"))
            .json(&body)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        match answer.status() {
            StatusCode::CREATED => Ok(began.elapsed()),
            status => Err(format!("{status}: {}", answer.text().await.unwrap_or_default())),
        }
    });
    let took = created.await;
    Ok((child, took.as_secs_f64()))
}

/// Stops the program with its children.
async fn stop(child: &mut Child) -> anyhow::Result<()> {
    let pid = i32::try_from(child.id().context("it runs")?)?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM)?;
    tokio::time::timeout(LIMIT, child.wait()).await.context("it does not stop")??;
    Ok(())
}
