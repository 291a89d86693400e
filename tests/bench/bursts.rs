//! Rows 0b and 7: many posts at once, and many that are due in the same second.

use crate::{
    Bench, TURNS,
    load::{Burst, Counter, Probe, bare_post, body, closed, each, in_turns, post, subscribe, world},
    report::{Compared, Goal, Line, Report, median, number},
};
use serde_json::json;
use std::time::Duration;
use tests::World;

/// Posts of the burst, and of the same work in a closed loop, whose rate is steady.
const POSTS: (usize, usize) = (300, 90);
/// Targets of each post.
const TARGETS: usize = 3;
/// Posts that are due in the same second, and runs of the minimal program whose rate predicts their lateness.
const DUE: (usize, usize) = (600, 150);
/// Time until they are due: long enough to create them.
const LEAD: i64 = 15;
/// Time limit of a burst.
const LIMIT: Duration = Duration::from_secs(150);

/// Measurements of one kind of work.
struct Turn {
    per_second: f64,
    /// For a burst: the time of the last target, p99 of the API, and the longest wait after a lost dispatch.
    burst: Option<(f64, f64, f64)>,
}

/// Row 0b: 300 posts at once, with a webhook.
pub(crate) async fn at_once(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let world = world(World::of(bench.program)).await;
    bench.warm(&world).await?;
    let counter = Counter::start().await;
    subscribe(&world, &counter.url).await?;
    let idle = Probe::idle(&world).await?;
    let profile = std::sync::Mutex::new(String::new());
    let (bursts, steady) = in_turns(
        TURNS,
        async || {
            let (probe, before) = (Probe::start(&world), counter.count());
            let burst = Burst::run(&world, POSTS.0, || body(TARGETS), LIMIT).await?;
            let p99 = probe.p99().await?;
            counter.until(before + POSTS.0 * (TARGETS + 1)).await?;
            let lost = burst.lost_dispatch(&bench.client).await?;
            *profile.lock().expect("not poisoned") = format!(
                "created in {} s; created to live p50 {} s; {} attempts more than targets; CPU per target in ms: {}",
                number(burst.creation.as_secs_f64()),
                number(median(&burst.latencies)),
                burst.wasted,
                burst.cpu.profile(POSTS.0 * TARGETS)
            );
            let took = burst.took.as_secs_f64();
            Ok(Turn { per_second: POSTS.0 as f64 / took, burst: Some((took, p99, lost)) })
        },
        async || {
            let before = counter.count();
            let run = closed(5, POSTS.1, || post(&world, &bench.client, TARGETS)).await?;
            counter.until(before + POSTS.1 * (TARGETS + 1)).await?;
            Ok(Turn { per_second: run.per_second, burst: None })
        },
    )
    .await?;
    let (at_once, in_turn) = (each(&bursts, |turn| turn.per_second), each(&steady, |turn| turn.per_second));
    let work = format!("{} posts of {TARGETS} targets at once, with a webhook, against 5 in flight", POSTS.0);
    let of = Compared { ours: &at_once, theirs: &in_turn, unit: "posts/s" };
    report.add(Line::ratio("0b", work, Goal::AtLeast(1.0), of));
    let measured: Vec<_> = bursts.iter().filter_map(|turn| turn.burst).collect();
    let (last, ideal) =
        (each(&measured, |(took, ..)| *took), each(&steady, |turn| POSTS.0 as f64 / turn.per_second));
    let of = Compared { ours: &last, theirs: &ideal, unit: "s" };
    report.add(Line::ratio("0b", "… until the last target, against the ideal", Goal::AtMost(1.3), of));
    let (p99, idle) = (each(&measured, |(_, p99, _)| *p99), vec![idle; measured.len()]);
    let of = Compared { ours: &p99, theirs: &idle, unit: "ms" };
    report.add(Line::ratio("0b", "… p99 of `GET /posts` meanwhile, against idle", Goal::AtMost(3.0), of));
    let lost = each(&measured, |(.., lost)| *lost);
    report.add(Line::limit("0b", "… longest wait after a lost dispatch", Goal::AtMost(15.0), lost, "s"));
    report.note(format!("Row 0b: {}", profile.into_inner().expect("not poisoned")));
    Ok(())
}

/// Row 7: posts that are due in the same second. Fewer than the goal's 10,000, which at the bare rate take longer than
/// the whole run; their lateness is compared with what the bare rate predicts for as many.
pub(crate) async fn due(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let world = world(World::of(bench.program)).await;
    bench.warm(&world).await?;
    let idle = Probe::idle(&world).await?;
    let (bursts, bare) = in_turns(
        TURNS,
        async || {
            let at = tests::now() + chrono::TimeDelta::seconds(LEAD);
            let at = at.format("%Y-%m-%dT%H:%M:%S.000Z").to_string();
            let body = || {
                let mut body = body(1);
                body["scheduled_at"] = json!(at);
                body
            };
            let probe = Probe::start(&world);
            let burst = Burst::run(&world, DUE.0, body, LIMIT).await?;
            let p99 = probe.p99().await?;
            Ok((burst.took.as_secs_f64(), p99, burst.wasted as f64))
        },
        async || {
            let run = closed(20, DUE.1, || bare_post(&bench.client, 1)).await?;
            Ok((DUE.0 as f64 / run.per_second, 0.0, 0.0))
        },
    )
    .await?;
    let (last, predicted) = (each(&bursts, |turn| turn.0), each(&bare, |turn| turn.0));
    let work =
        format!("{} posts due in the same second, lateness of the last, against the bare rate's", DUE.0);
    let of = Compared { ours: &last, theirs: &predicted, unit: "s" };
    report.add(Line::ratio("7", work, Goal::AtMost(1.0), of));
    let (p99, idle) = (each(&bursts, |turn| turn.1), vec![idle; bursts.len()]);
    let of = Compared { ours: &p99, theirs: &idle, unit: "ms" };
    report.add(Line::ratio("7", "… p99 of `GET /posts` meanwhile, against idle", Goal::AtMost(3.0), of));
    let wasted = each(&bursts, |turn| turn.2);
    report.add(Line::limit("7", "… attempts more than targets", Goal::AtMost(0.0), wasted, ""));
    Ok(())
}
