//! Rows 0a and 9: what a webhook subscriber costs, and how fast deliveries are.

use crate::{
    Bench, TURNS, bare,
    load::{Counter, closed, each, in_turns, next, post, subscribe, unsubscribe, world},
    processes::Part,
    report::{Compared, Goal, Line, Report, number},
};
use domain::event::EventName;
use serde_json::json;
use std::{net::TcpListener, time::Instant};
use store::webhooks::events::{self, NewEvent};
use tests::World;

/// Deliveries of one measurement of row 9, and events of a transaction.
const DELIVERIES: (usize, usize) = (2000, 50);

/// Row 0a: posts with a subscriber of every event against posts without one. The clock stops when all deliveries
/// have arrived.
pub(crate) async fn subscriber(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let world = world(World::of(bench.program)).await;
    bench.warm(&world).await?;
    let counter = Counter::start().await;
    for (targets, rounds) in [(1, 100), (3, 60)] {
        let (told, untold) = in_turns(
            TURNS,
            async || {
                let webhook = subscribe(&world, &counter.url).await?;
                let (before, began) = (counter.count(), Instant::now());
                let mut run = closed(20, rounds, || post(&world, &bench.client, targets)).await?;
                // An event for each target, and one for the post.
                counter.until(before + rounds * (targets + 1)).await?;
                run.per_second = rounds as f64 / began.elapsed().as_secs_f64();
                unsubscribe(&world, &webhook).await?;
                Ok(run)
            },
            async || closed(20, rounds, || post(&world, &bench.client, targets)).await,
        )
        .await?;
        let (told_rate, untold_rate) =
            (each(&told, |run| run.per_second), each(&untold, |run| run.per_second));
        let of = Compared { ours: &told_rate, theirs: &untold_rate, unit: "posts/s" };
        let name = if targets == 1 { "1 target".to_owned() } else { format!("{targets} targets") };
        let work = format!("posts with a webhook for every event against without, {name}, 20 in flight");
        report.add(Line::ratio("0a", work, Goal::AtLeast(0.85), of));
        if let (Some(told), Some(untold)) = (told.last(), untold.last()) {
            let count = rounds * targets;
            report.note(format!(
                "Row 0a, {name}: CPU per target in ms with a webhook: {}; without: {}; Temporal alone {} times as much.",
                told.cpu.profile(count),
                untold.cpu.profile(count),
                number(told.cpu.ms_per(Part::Temporal, count) / untold.cpu.ms_per(Part::Temporal, count)),
            ));
        }
    }
    Ok(())
}

/// Row 9: deliveries of many events at once against an empty activity for each, and beside a dead endpoint.
pub(crate) async fn deliveries(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let world = world(World::of(bench.program)).await;
    let counter = Counter::start().await;
    subscribe(&world, &counter.url).await?;
    deliver(&world, &counter).await?;
    let (ours, theirs) = in_turns(
        TURNS,
        async || deliver(&world, &counter).await,
        async || {
            let began = Instant::now();
            let id = format!("bare-batch-{}", next());
            bare::batch(&bench.client, &id, u32::try_from(DELIVERIES.0)?).await?;
            Ok(DELIVERIES.0 as f64 / began.elapsed().as_secs_f64())
        },
    )
    .await?;
    let of = Compared { ours: &ours, theirs: &theirs, unit: "per s" };
    let work = format!("{} webhook deliveries against an empty activity each", DELIVERIES.0);
    report.add(Line::ratio("9", work, Goal::AtLeast(0.85), of));
    // It accepts connections, and never answers.
    let dead = TcpListener::bind("127.0.0.1:0")?;
    let dead = (format!("http://{}/hook", dead.local_addr()?), dead);
    let second = Counter::start().await;
    let beside = async |url: &str| {
        let webhook = subscribe(&world, url).await?;
        let rate = deliver(&world, &counter).await?;
        unsubscribe(&world, &webhook).await?;
        anyhow::Ok(rate)
    };
    let (dead, alive) =
        in_turns(TURNS, async || beside(&dead.0).await, async || beside(&second.url).await).await?;
    // Two endpoints have twice the deliveries, whether or not these arrive.
    let of = Compared { ours: &dead, theirs: &alive, unit: "per s" };
    report.add(Line::ratio(
        "9",
        "… with a dead endpoint beside, against one that answers",
        Goal::AtLeast(0.95),
        of,
    ));
    Ok(())
}

/// Appends events, and returns their deliveries per second to the endpoint that counts.
async fn deliver(world: &World, counter: &Counter) -> anyhow::Result<f64> {
    let (before, began) = (counter.count(), Instant::now());
    let new = NewEvent {
        name: EventName::AccountConnected,
        post: None,
        target: None,
        account: None,
        data: json!({ "benchmark": next() }),
    };
    for _ in 0..DELIVERIES.0 / DELIVERIES.1 {
        let mut tx = store::begin(&world.db).await?;
        for _ in 0..DELIVERIES.1 {
            events::append(&mut tx, world.owner, tests::now(), &new).await?;
        }
        tx.commit().await?;
    }
    counter.until(before + DELIVERIES.0).await?;
    Ok(DELIVERIES.0 as f64 / began.elapsed().as_secs_f64())
}
