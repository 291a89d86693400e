//! Rows 1 to 4 and 10: posts end to end, against the barest Temporal program of the same shape.

use crate::{
    Bench, TURNS,
    load::{bare_post, closed, each, flat_post, in_turns, post, world},
    processes::{Part, resident_mib},
    report::{Compared, Goal, Line, Report, median, number},
};
use std::{sync::Mutex, time::Duration};
use tests::World;

/// Rows 1 to 4: rate, latency, events and processor time of a post; row 10: memory.
pub(crate) async fn rows(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let world = world(World::of(bench.program)).await;
    // Background work has started after a few seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = resident_mib(&world.pids());
    bench.warm(&world).await?;
    let largest = Mutex::new(0.0_f64);
    for in_flight in [20, 1] {
        for targets in [1, 3] {
            of_shape(bench, report, &world, (in_flight, targets)).await?;
            let mut largest = largest.lock().expect("not poisoned");
            *largest = largest.max(resident_mib(&world.pids()));
        }
    }
    let loaded = largest.into_inner().expect("not poisoned");
    report.add(Line::limit("10", "memory of API and worker, idle", Goal::AtMost(60.0), vec![idle], "MiB"));
    report.add(Line::limit(
        "10",
        "memory of API and worker after the load of rows 1 to 4",
        Goal::AtMost(200.0),
        vec![loaded],
        "MiB",
    ));
    Ok(())
}

async fn of_shape(
    bench: &Bench,
    report: &mut Report,
    world: &World,
    (in_flight, targets): (usize, usize),
) -> anyhow::Result<()> {
    let client = &bench.client;
    let rounds = match (in_flight, targets) {
        (1, _) => 30,
        (_, 1) => 120,
        _ => 60,
    };
    let flat = Mutex::new(Vec::new());
    let (ours, theirs) = in_turns(
        TURNS,
        async || closed(in_flight, rounds, || post(world, client, targets)).await,
        async || {
            let run = closed(in_flight, rounds, || flat_post(client, targets)).await?;
            flat.lock().expect("not poisoned").push(run);
            closed(in_flight, rounds, || bare_post(client, targets)).await
        },
    )
    .await?;
    let flat = flat.into_inner().expect("not poisoned");
    let row = if in_flight == 1 { "2" } else { "1" };
    let name = |what: &str| match targets {
        1 => format!("{what}, 1 target, {in_flight} in flight"),
        _ => format!("{what}, {targets} targets, {in_flight} in flight"),
    };
    let rates = (each(&ours, |run| run.per_second), each(&theirs, |run| run.per_second));
    let of = Compared { ours: &rates.0, theirs: &rates.1, unit: "posts/s" };
    report.add(Line::ratio(row, name("posts end to end"), Goal::AtLeast(0.95), of));
    let count = rounds * targets;
    let (mut our_events, mut their_events) = (Vec::new(), Vec::new());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        our_events.push(ours.events(client).await? / targets as f64);
        their_events.push(theirs.events(client).await? / targets as f64);
    }
    let of = Compared { ours: &our_events, theirs: &their_events, unit: "events" };
    report.add(Line::ratio("3", name("history events per target"), Goal::AtMost(1.0), of));
    let temporal = |run: &crate::load::Loop| run.cpu.ms_per(Part::Temporal, count);
    let (our_cpu, their_cpu) = (each(&ours, temporal), each(&theirs, temporal));
    let of = Compared { ours: &our_cpu, theirs: &their_cpu, unit: "ms" };
    report.add(Line::ratio("3", name("Temporal's CPU per target"), Goal::AtMost(1.05), of));
    let own = each(&ours, |run| run.cpu.ms_per(Part::Fanfare, count) + run.cpu.ms_per(Part::Postgres, count));
    report.add(Line::limit(
        "4",
        name("CPU of Fanfare and Postgres per target"),
        Goal::AtMost(8.0),
        own,
        "ms",
    ));
    let (Some(last), Some(bare)) = (ours.last(), theirs.last()) else { return Ok(()) };
    let all = (
        median(&each(&ours, |run| run.cpu.all_ms_per(count))),
        median(&each(&theirs, |run| run.cpu.all_ms_per(count))),
    );
    let p50 = [&ours, &theirs].map(|runs| number(median(&each(runs, |run| median(&run.latencies)))));
    report.note(format!(
        "Rows 1 to 4, {}: created to all live, p50, {} ms against {} ms. CPU per target in ms: {}; of the bare program: {}. \
         In all {} against {} ms: with every core busy, {} of the bare rate. A program without children, one workflow \
         with an activity for each target, makes {} per s, with {} ms of Temporal per target.",
        name("posts"),
        p50[0],
        p50[1],
        last.cpu.profile(count),
        bare.cpu.profile(count),
        number(all.0),
        number(all.1),
        number(all.1 / all.0),
        number(median(&each(&flat, |run| run.per_second))),
        number(median(&each(&flat, temporal))),
    ));
    Ok(())
}
