//! Fanfare's own parts fail under load: each 201 ends, each post exactly once, and publishing resumes by itself.
//!
//! Each scenario has a stack of its own. A load creates posts before, during and after the fault. Time to
//! recover is measured from the beginning of the healing, restarts included.

use crate::{
    load::{self, Caller, Kind, Load, Outcome, Post},
    machine::{Clocks, Volume},
    parts::{Pair, Part},
    stack::{Stack, StackOptions},
};
use chrono::TimeDelta;
use futures::{FutureExt, StreamExt, stream};
use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};
use tests::{Receiver, directory, network::State, now, proof, wait_until};
use uuid::Uuid;

/// Kinds of posts of the load.
const KINDS: &[Kind] = &[
    Kind::Text,
    Kind::Thread,
    Kind::Image,
    Kind::Scheduled,
    Kind::Text,
    Kind::LostReply,
    Kind::Text,
    Kind::Scheduled,
    Kind::Thread,
    Kind::Text,
];
/// Interval of the load.
const EVERY: Duration = Duration::from_millis(200);
/// Factor on every wait of publishing, so that the scenarios take an hour and not ten.
const PACE: f64 = 0.1;

/// Scenarios that run at a time: they mostly wait.
const LANES: usize = 2;

/// The fault from which Fanfare recovers only when TCP gives the connections up, or an attempt's two hours are over:
/// sqlx neither probes a connection nor limits the time of a statement.
const UNBOUNDED: Fault = Fault::Forgotten(Pair::WorkerPostgres);

/// Number of posts before, during and after a fault.
#[derive(Clone, Copy)]
struct Counts {
    before: usize,
    during: usize,
    after: usize,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Parts are killed with SIGKILL, and started again.
    Killed(&'static [Part]),
    /// Temporal is killed, and started again without its data.
    Emptied,
    /// A disk has no space left: that of `postgres`, `temporal` or `media`.
    Full(&'static str),
    /// The clocks of parts are set by this number of hours while they run, and back.
    Clock(&'static [Part], i64),
    /// Nothing gets through between two parts, and connections continue afterwards.
    Frozen(Pair),
    /// The same, and only new connections get through afterwards.
    Forgotten(Pair),
    /// Connections between two parts are reset and refused.
    Refused(Pair),
}

impl Fault {
    fn all() -> Vec<Self> {
        use Part::{Api, Postgres, Temporal, Worker};
        let mut all = vec![
            Self::Killed(&[Postgres]),
            Self::Killed(&[Temporal]),
            Self::Killed(&[Api]),
            Self::Killed(&[Worker]),
            Self::Killed(&[Postgres, Temporal]),
            Self::Killed(&[Postgres, Api]),
            Self::Killed(&[Postgres, Worker]),
            Self::Killed(&[Temporal, Api]),
            Self::Killed(&[Temporal, Worker]),
            Self::Killed(&[Api, Worker]),
            Self::Killed(&[Postgres, Temporal, Api, Worker]),
            Self::Emptied,
            Self::Full("postgres"),
            Self::Full("temporal"),
            Self::Full("media"),
        ];
        for hours in [1, -1] {
            all.extend(
                [&[Worker][..], &[Api], &[Postgres], &[Postgres, Api, Worker]]
                    .map(|parts| Self::Clock(parts, hours)),
            );
        }
        for pair in Pair::ALL {
            all.extend([Self::Frozen(pair), Self::Forgotten(pair), Self::Refused(pair)]);
        }
        all.retain(|fault| *fault != UNBOUNDED);
        all
    }

    /// The faults of the short form.
    fn short() -> Vec<Self> {
        vec![Self::Killed(&[Part::Worker]), Self::Killed(&[Part::Postgres]), Self::Emptied]
    }

    fn name(self) -> String {
        let list = |parts: &[Part]| parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ");
        match self {
            Self::Killed(parts) => format!("{} killed", list(parts)),
            Self::Emptied => "Temporal emptied".to_owned(),
            Self::Full(disk) => format!("disk of {disk} full"),
            Self::Clock(parts, hours) => format!("clock of {} {hours:+} h", list(parts)),
            Self::Frozen(pair) => format!("{} frozen", pair.name()),
            Self::Forgotten(pair) => format!("{} frozen, connections lost", pair.name()),
            Self::Refused(pair) => format!("{} refused", pair.name()),
        }
    }

    /// Returns the reason why this machine can't have the fault.
    fn obstacle(self) -> Option<String> {
        match self {
            Self::Full(_) => Volume::obstacle(&directory().join("volume")),
            Self::Clock(..) if Clocks::library().is_none() => Some("libfaketime is not installed".to_owned()),
            _ => None,
        }
    }

    fn options(self) -> StackOptions {
        StackOptions {
            pace: PACE,
            has_volumes: matches!(self, Self::Full(_)),
            has_clocks: matches!(self, Self::Clock(..)),
            ..StackOptions::default()
        }
    }

    async fn begin(self, stack: &mut Stack) {
        match self {
            Self::Killed(parts) => {
                for part in parts {
                    stack.kill(*part).await;
                }
            }
            Self::Emptied => {
                stack.kill(Part::Temporal).await;
                stack.empty_temporal();
            }
            Self::Full(disk) => stack.volume(disk).fill(),
            Self::Clock(parts, hours) => {
                for part in parts {
                    stack.set_clock(*part, hours);
                }
                differ(stack, parts, hours).await;
            }
            Self::Frozen(pair) | Self::Forgotten(pair) => stack.proxies[&pair].set(State::Frozen),
            Self::Refused(pair) => stack.proxies[&pair].set(State::Refused),
        }
    }

    async fn end(self, stack: &mut Stack) {
        match self {
            Self::Killed(parts) => {
                for part in parts {
                    stack.run(*part).await;
                }
            }
            Self::Emptied => stack.run(Part::Temporal).await,
            Self::Full(disk) => stack.volume(disk).free(),
            Self::Clock(parts, _) => parts.iter().for_each(|part| stack.set_clock(*part, 0)),
            Self::Frozen(pair) | Self::Refused(pair) => stack.proxies[&pair].set(State::Open),
            Self::Forgotten(pair) => stack.proxies[&pair].forget(),
        }
    }
}

/// Restores Postgres from a backup: posts that were acknowledged since then are gone, and what was published since
/// then is not published again. Temporal keeps its data, or loses it too.
async fn restore(counts: Counts, is_emptied: bool) -> Recovery {
    let options = StackOptions { pace: PACE, ..StackOptions::default() };
    let mut stack = Stack::start(if is_emptied { "restore-emptied" } else { "restore" }, &options).await;
    let accounts = load::connect(&stack).await;
    let caller = Caller::new(&stack, vec![stack.world.base.clone()]);
    let load = Load::start(&caller, "load", accounts.clone(), KINDS, EVERY);
    load.acknowledged(counts.before).await;

    // A backup of the disk at one moment, with posts at every step.
    let since = now();
    stack.kill(Part::Postgres).await;
    stack.back_up();
    stack.run(Part::Postgres).await;
    load.acknowledged(counts.during).await;
    let posts = load.end().await;
    load::until_ended(&stack.world.db, &posts.iter().map(|post| post.id).collect::<Vec<_>>()).await;

    for part in [Part::Api, Part::Worker, Part::Postgres] {
        stack.kill(part).await;
    }
    stack.restore();
    if is_emptied {
        stack.kill(Part::Temporal).await;
        stack.empty_temporal();
    }
    let healing = Instant::now();
    stack.run(Part::Postgres).await;
    if is_emptied {
        stack.run(Part::Temporal).await;
    }
    let since = since.to_rfc3339();
    let prepared = stack.command(&["ops", "restored", "--since", &since], &[]).await;
    assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
    stack.run(Part::Api).await;
    stack.run(Part::Worker).await;

    let probe = load::create(&caller, "probe", 0, Kind::Text, &accounts[..1]).await;
    load::until_ended(&stack.world.db, &[probe.id]).await;
    let new = healing.elapsed();
    let known: Vec<Uuid> =
        sqlx::query_scalar("select id from posts").fetch_all(&stack.world.db).await.unwrap();
    let (mut kept, gone): (Vec<Post>, _) = posts.into_iter().partition(|post| known.contains(&post.id.0));
    load::until_ended(&stack.world.db, &kept.iter().map(|post| post.id).collect::<Vec<_>>()).await;
    let all = healing.elapsed();
    kept.push(probe);
    load::until_settled(&stack.world.db).await;
    let outcome = load::check(&stack, &caller, &kept, &gone, None).await;
    let (exits, repeated) = (*stack.exits.borrow(), caller.repeated());
    stack.stop().await;
    let remark = format!("; {} posts acknowledged after the backup are gone", gone.len());
    Recovery { new, all, remark, outcome, exits, repeated }
}

/// Waits until the clocks of parts differ. A worker whose clock differs from the database's does not start.
async fn differ(stack: &Stack, parts: &[Part], hours: i64) {
    let off = now() + TimeDelta::hours(hours);
    let [is_postgres, is_api, is_worker] =
        [Part::Postgres, Part::Api, Part::Worker].map(|part| parts.contains(&part));
    let seen = "select (not $2 or abs(extract(epoch from now() - $1)) < 60)
        and (not $3 or exists (select from posts where abs(extract(epoch from created_at - $1)) < 60))";
    wait_until("the clocks to differ", async || {
        let seen = sqlx::query_scalar(seen).bind(off).bind(is_postgres).bind(is_api);
        if seen.fetch_one(&stack.world.db).await.unwrap() { Ok(()) } else { Err("they do not") }
    })
    .await;
    if is_worker && !is_postgres {
        let refused = stack.command(&["worker"], &[]).await;
        let reason = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && reason.contains("clock and the database's differ"), "{reason}");
    }
}

/// The result of a scenario.
struct Recovery {
    /// Until a post that was created after the healing began was published.
    new: Duration,
    /// Until every post that had been acknowledged before the healing began had ended.
    all: Duration,
    /// A remark for the report.
    remark: String,
    outcome: Outcome,
    /// Number of times that a process exited by itself.
    exits: usize,
    repeated: String,
}

/// Runs a scenario.
async fn recover(number: usize, fault: Fault, counts: Counts) -> Recovery {
    let mut stack = Stack::start(&format!("fault-{number}"), &fault.options()).await;
    let accounts = load::connect(&stack).await;
    let receiver = Receiver::start().await;
    stack.world.subscribe(&stack.receive_at(&receiver.url)).await;
    let caller = Caller::new(&stack, vec![stack.world.base.clone()]);
    let load = Load::start(&caller, "load", accounts.clone(), KINDS, EVERY);
    load.acknowledged(counts.before).await;

    fault.begin(&mut stack).await;
    load.begun(counts.during).await;
    let healing = Instant::now();
    fault.end(&mut stack).await;

    let probe = async {
        let post = load::create(&caller, "probe", 0, Kind::Text, &accounts[..1]).await;
        load::until_ended(&stack.world.db, &[post.id]).await;
        (post, healing.elapsed())
    };
    let loaded = async {
        load.begun(counts.after).await;
        let posts = load.end().await;
        // Their times were written by a clock that was an hour ahead.
        let late = load::retry_late(&stack.world.db, &caller).await;
        let earlier = posts.iter().filter(|post| post.acknowledged < healing).map(|post| post.id);
        load::until_ended(&stack.world.db, &earlier.collect::<Vec<_>>()).await;
        (posts, healing.elapsed(), late)
    };
    let ((probe, new), (mut posts, all, late)) = tokio::join!(probe, loaded);
    let remark = match late {
        0 => String::new(),
        _ => format!("; {late} targets would have waited an hour, and were retried on request"),
    };
    posts.push(probe);
    load::until_ended(&stack.world.db, &posts.iter().map(|post| post.id).collect::<Vec<_>>()).await;
    load::until_settled(&stack.world.db).await;
    let outcome = load::check(&stack, &caller, &posts, &[], Some(&receiver)).await;
    let (exits, repeated) = (*stack.exits.borrow(), caller.repeated());
    stack.stop().await;
    Recovery { new, all, remark, outcome, exits, repeated }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A scenario.
#[derive(Clone, Copy)]
enum Scenario {
    /// A fault under load.
    Fault(Fault),
    /// Postgres is restored from a backup; Temporal keeps its data, or loses it too.
    Restored { is_emptied: bool },
}

impl Scenario {
    /// Returns the scenarios of this form.
    fn chosen() -> Vec<Self> {
        let faults = if proof::is_full() { Fault::all() } else { Fault::short() };
        let mut all: Vec<_> = faults.into_iter().map(Self::Fault).collect();
        if proof::is_full() {
            all.extend([false, true].map(|is_emptied| Self::Restored { is_emptied }));
        }
        // Selects some by their names, for work on one.
        let only = std::env::var("FANFARE_FAULT").unwrap_or_default();
        all.retain(|scenario| scenario.name().contains(&only));
        all
    }

    fn name(self) -> String {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::Restored { is_emptied: false } => "Postgres restored from a backup".to_owned(),
            Self::Restored { is_emptied: true } => {
                "Postgres restored from a backup, Temporal emptied".to_owned()
            }
        }
    }

    /// Runs it, and returns the row of the report. A failure does not keep others from running.
    async fn run(self, number: usize, counts: Counts) -> Row {
        let name = self.name();
        if let Self::Fault(fault) = self
            && let Some(obstacle) = fault.obstacle()
        {
            return Row::Skipped(format!("| {name} | skipped: {obstacle} | | | | | | | |\n"));
        }
        eprintln!("{} {name}", now().format("%T"));
        let recovery = async {
            match self {
                Self::Fault(fault) => recover(number, fault, counts).await,
                Self::Restored { is_emptied } => restore(counts, is_emptied).await,
            }
        };
        let Ok(recovery) = AssertUnwindSafe(recovery).catch_unwind().await else { return Row::Failed(name) };
        let Recovery { new, all, remark, outcome, exits, repeated } = recovery;
        let dead: usize = outcome.dead.values().sum();
        let cells = [
            format!("{name}{remark}"),
            outcome.posts.to_string(),
            outcome.published.to_string(),
            dead.to_string(),
            repeated,
            format!("{} ({})", outcome.events, outcome.repeated),
            exits.to_string(),
            seconds(new),
            seconds(all),
        ];
        let row = format!("| {} |\n", cells.join(" | "));
        eprint!("{row}");
        for (reason, count) in &outcome.dead {
            eprintln!("{count} dead: {reason}");
        }
        Row::Recovered(row, outcome.posts, outcome.targets)
    }
}

/// Result of a scenario.
enum Row {
    /// Its row of the table, and the numbers of posts and targets.
    Recovered(String, usize, usize),
    /// This machine can't run it.
    Skipped(String),
    /// The name of one that failed.
    Failed(String),
}

#[tokio::test(flavor = "multi_thread")]
async fn every_post_ends_once_when_parts_of_fanfare_fail() {
    let mut section = proof::Section::new("5-faults", "Our own parts failing under load");
    let counts = if proof::is_full() {
        Counts { before: 20, during: 60, after: 20 }
    } else {
        Counts { before: 5, during: 15, after: 5 }
    };
    let scenarios = stream::iter(Scenario::chosen().into_iter().enumerate());
    let rows = scenarios.map(|(number, scenario)| scenario.run(number, counts)).buffered(LANES);
    let (mut table, mut posts, mut targets, mut skipped) = (String::new(), 0, 0, 0);
    let mut failed = Vec::new();
    for row in rows.collect::<Vec<_>>().await {
        match row {
            Row::Recovered(row, of_posts, of_targets) => {
                table.push_str(&row);
                (posts, targets) = (posts + of_posts, targets + of_targets);
            }
            Row::Skipped(row) => {
                table.push_str(&row);
                skipped += 1;
            }
            Row::Failed(name) => failed.push(name),
        }
    }
    let head = [
        "Fault",
        "Posts",
        "Targets published",
        "Targets dead",
        "Requests that failed and were repeated",
        "Events (deliveries repeated)",
        "Processes that exited by themselves",
        "New post published after",
        "All earlier posts ended after",
    ];
    section.text(format!("| {} |\n|{}\n{table}", head.join(" | "), "---|".repeat(head.len())));
    section.text(format!(
        "Every wait of publishing is scaled by {PACE}, so that a first retry comes after 3 s and not 30. Times are \
         measured from the beginning of the healing, restarts included, with {LANES} scenarios at a time and other \
         parts of the proof beside them. Not part of the suite: \"{}\", from which the attempts under way recover only when TCP gives their connections up.",
        UNBOUNDED.name()
    ));
    section.figure("Posts acknowledged", posts);
    section.figure("Targets that ended, each exactly once", targets);
    section.figure("Scenarios that this machine can't run", skipped);
    assert!(failed.is_empty(), "{failed:?} failed");
    section.write();
}
