//! Row 0c: a worker that is killed with calls in flight.

use crate::{
    Bench, TURNS,
    load::{next, world},
    report::{Goal, Line, Report},
};
use anyhow::Context;
use serde_json::json;
use std::time::{Duration, Instant};
use tests::{World, wait_within};

/// Calls in flight.
const CALLS: usize = 8;
/// Time limit of one turn.
const LIMIT: Duration = Duration::from_secs(120);

/// Row 0c: time until the targets of a killed worker are live. The platform accepted the posts, and its answers,
/// which it delays, were lost with the worker; another one looks them up.
pub(crate) async fn worker(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut world = world(World::of(bench.program).running(&["api", "worker"])).await;
    let mut seconds = Vec::new();
    for _ in 0..TURNS {
        let before = world.accepted("x", "ada").await;
        let mut ids = Vec::new();
        for _ in 0..CALLS {
            let content = format!("Killed {} #sandbox-slow", next());
            let post = world.post(json!({ "content": content, "accounts": ["ada"] })).await;
            ids.push(post["id"].as_str().context("an id")?.to_owned());
        }
        wait_within(LIMIT, "calls in flight", async || {
            let accepted = world.accepted("x", "ada").await - before;
            if accepted >= CALLS { Ok(()) } else { Err(format!("{accepted} calls")) }
        })
        .await;
        world.kill("worker").await;
        let killed = Instant::now();
        world.run("worker").await;
        for id in &ids {
            let path = format!("/posts/{id}");
            wait_within(LIMIT, "the target to be live", async || {
                let post = world.get(&path).await;
                if post["status"] == "published" { Ok(()) } else { Err(post["status"].to_string()) }
            })
            .await;
        }
        seconds.push(killed.elapsed().as_secs_f64());
        anyhow::ensure!(world.accepted("x", "ada").await == before + CALLS, "a post was published twice");
    }
    let work = format!("a worker killed with {CALLS} calls in flight, until their targets are live");
    report.add(Line::limit("0c", work, Goal::AtMost(15.0), seconds, "s"));
    Ok(())
}
