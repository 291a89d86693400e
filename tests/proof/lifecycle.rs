//! Random sequences of calls, faults and operators' actions, compared with a reference model.
//!
//! Each case is an organization of its own on the shared service. It takes a random sequence of steps
//! ([`steps`]) while posts are being published ([`system`]). Each answer, each change of a status ([`observed`])
//! and, at the end, what was published and delivered ([`outcome`]) must be what the contract allows ([`model`]).
//! A sequence that fails is shortened to the steps that matter.
//!
//! `PROPTEST_RNG_SEED` repeats a run, `PROPTEST_CASES` sets the number of cases. No file keeps sequences that
//! failed: they become tests with a name.

mod model;
mod observed;
mod outcome;
mod steps;
mod system;

use outcome::Tally;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex},
    thread,
};
use steps::{Step, Steps};
use system::System;
use tests::proof::{Section, is_full};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

/// Cases that run at the same time: their waits overlap.
const LANES: u32 = 8;
/// Cases of a run.
const CASES: (u32, u32) = (32, 480);
/// Seed of the short form.
const SHORT_SEED: u64 = 14;
/// Most steps of a sequence.
const STEPS: usize = 24;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
/// Number of steps taken, by kind.
static TAKEN: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());
/// Numbers of the cases that passed.
static PASSED: Mutex<Vec<Tally>> = Mutex::new(Vec::new());

/// The service, compared with the model.
struct Lifecycle;

impl StateMachineTest for Lifecycle {
    type SystemUnderTest = System;
    type Reference = Steps;

    fn init_test(_: &bool) -> System {
        RUNTIME.block_on(System::start())
    }

    fn apply(mut system: System, _: &bool, step: Step) -> System {
        let taken = RUNTIME.block_on(async {
            system.take(&step).await?;
            system.check().await
        });
        taken.unwrap_or_else(|error| panic!("{error}\nTranscript:\n{}", system.transcript()));
        let mut counts = TAKEN.lock().unwrap();
        step.kinds().into_iter().for_each(|kind| *counts.entry(kind).or_default() += 1);
        system
    }

    fn teardown(mut system: System, _: bool) {
        let transcript = system.transcript();
        let finished = RUNTIME.block_on(system.finish());
        let checked = finished.and_then(|()| RUNTIME.block_on(system.drain().check()));
        let tally = checked.unwrap_or_else(|error| panic!("at the end: {error}\nTranscript:\n{transcript}"));
        PASSED.lock().unwrap().push(tally);
    }
}

/// Runs a part of the cases, and returns the shortest sequence that fails.
fn run(seed: u64, cases: u32) -> Result<(), String> {
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        // Each try is a case against the service.
        max_shrink_iters: 200,
        max_shrink_time: 180_000,
        ..Config::default()
    };
    let strategy = Steps::sequential_strategy(1..=STEPS);
    let outcome = TestRunner::new(config.clone()).run(&strategy, |(state, steps, seen)| {
        Lifecycle::test_sequential(config.clone(), state, steps, seen);
        Ok(())
    });
    outcome.map_err(|error| match error {
        TestError::Fail(reason, (_, steps, _)) => {
            let steps: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
            format!("{reason}\nThe steps:\n{}", steps.join("\n"))
        }
        TestError::Abort(reason) => format!("not run: {reason}"),
    })
}

#[test]
fn every_sequence_of_actions_leads_where_the_contract_says() {
    let mut section = Section::new("4-lifecycle", "Life cycle against a reference model");
    // The seed and the number of cases may be set in the environment.
    let config = Config::default();
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random if is_full() => Uuid::new_v4().as_u64_pair().0,
        // CI is to fail for a change, not for a draw.
        RngSeed::Random => SHORT_SEED,
    };
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_set {
        config.cases
    } else if is_full() {
        CASES.1
    } else {
        CASES.0
    };
    println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}");
    let lanes = (0..LANES).map(|lane| {
        let share = cases / LANES + u32::from(lane < cases % LANES);
        thread::spawn(move || if share == 0 { Ok(()) } else { run(seed.wrapping_add(lane.into()), share) })
    });
    let lanes: Vec<_> = lanes.collect();
    let failures: Vec<_> = lanes.into_iter().filter_map(|lane| lane.join().unwrap().err()).collect();
    assert!(
        failures.is_empty(),
        "PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}\n{}",
        failures.join("\n\n")
    );

    let (taken, passed) = (TAKEN.lock().unwrap(), PASSED.lock().unwrap());
    let sum = |of: fn(&Tally) -> usize| passed.iter().map(of).sum::<usize>();
    section.text(
        "Random sequences of calls, faults, disconnects, pauses and operators' actions, each in an organization of \
         its own, against a reference model of the contract. Each answer and each change of a status, as \
         committed, must be allowed; every post must end, with a reason; each event must be delivered once, each \
         text be published at most once, no slot and no idempotency key be held by two posts.",
    );
    section.figure("Sequences", passed.len());
    for (kind, count) in &*taken {
        section.figure(format!("Steps: {kind}"), count);
    }
    section.figure("Posts created", sum(|tally| tally.posts));
    section.figure("Targets that ended", sum(|tally| tally.ends));
    section.figure("Changes of a status, each checked", sum(|tally| tally.changes));
    section.figure("Publications, each once", sum(|tally| tally.publications));
    section.figure("Events, each once", sum(|tally| tally.events));
    section.figure("Seed", seed);
    section.write();
}
