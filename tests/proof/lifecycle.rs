//! Random sequences of calls, faults and operators' actions, compared with a reference model.
//!
//! Each case is an organization of its own on the shared service. It takes a random sequence of steps
//! ([`steps`]) while posts are being published ([`system`]). Each answer, each change of a status ([`observed`])
//! and, at the end, what was published and delivered ([`outcome`]) must be what the contract allows ([`model`]).
//! A sequence that fails is shortened to the steps that matter.
//!
//! Every operation ([`walk`]), page and action ([`visits`]) is a step, by one of several callers ([`who`]), and a
//! second model ([`tenancy`]) says what each of them reaches.
//!
//! `PROPTEST_RNG_SEED` repeats a run, `PROPTEST_CASES` sets the number of cases. No file keeps sequences that
//! failed: they become tests with a name.

mod callers;
mod model;
mod observed;
mod outcome;
mod places;
mod steps;
mod system;
mod tenancy;
mod visits;
mod walk;
mod who;
mod wishes;

use crate::surface::tables::OPERATIONS;
use outcome::Tally;
use places::{Ask, Place, ROUTES, Visit, named};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex},
    thread,
};
use steps::{Call, Step, Steps};
use system::System;
use tests::proof::{Section, is_full};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;
use walk::WALKED;
use who::{By, Guest};
use wishes::draft;

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

/// Returns the names of all operations, and of all pages and actions.
fn places() -> [Vec<String>; 2] {
    let operations = OPERATIONS.iter().map(|(operation, _)| (*operation).to_owned()).collect();
    [operations, ROUTES.iter().map(|(method, path, _)| named(method, path)).collect()]
}

/// Returns the numbers of operations, and of pages and actions, that were steps, and those that were none.
fn walked() -> ([usize; 2], Vec<String>) {
    let walked = WALKED.lock().unwrap();
    let all = places();
    let counts = [0, 1].map(|kind: usize| all[kind].iter().filter(|name| walked.contains_key(*name)).count());
    (counts, all.into_iter().flatten().filter(|name| !walked.contains_key(name)).collect())
}

/// Takes the operations, pages and actions that no random sequence had, in a case of their own.
fn walk_the_rest() -> Result<(), String> {
    let (_, rest) = walked();
    if rest.is_empty() {
        return Ok(());
    }
    let mut system = RUNTIME.block_on(System::start());
    let walked = RUNTIME.block_on(async {
        for number in 0..2 {
            system.take(&Step::One(By::Owner, Call::Create(draft(number, number)))).await?;
        }
        let operations = walk::all(&system.world).await;
        let mut places = Vec::new();
        for (number, name) in rest.iter().enumerate() {
            let (subject, detail) = (number, number);
            let operation =
                operations.iter().position(|(method, path, _)| format!("{method} {path}") == *name);
            let route = ROUTES.iter().position(|(method, path, _)| named(method, path) == *name);
            let (by, guest) = (By::Owner, Guest::Owner);
            places
                .extend(operation.map(|operation| Place::Operation(Ask { operation, by, subject, detail })));
            places.extend(route.map(|route| Place::Page(Visit { route, guest, subject, detail })));
        }
        system.walk(&places).await?;
        system.finish().await
    });
    let transcript = system.transcript();
    let checked = walked.and_then(|()| RUNTIME.block_on(system.drain().check()));
    let tally = checked.map_err(|error| format!("{error}\nTranscript:\n{transcript}"))?;
    PASSED.lock().unwrap().push(tally);
    Ok(())
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

    let random = walked().0;
    walk_the_rest().unwrap_or_else(|error| panic!("PROPTEST_RNG_SEED={seed}: {error}"));
    let ([operations, pages], missing) = walked();
    assert!(missing.is_empty(), "in no step of the walk: {missing:?}");

    let (taken, passed) = (TAKEN.lock().unwrap(), PASSED.lock().unwrap());
    let sum = |of: fn(&Tally) -> usize| passed.iter().map(of).sum::<usize>();
    section.text(
        "Random sequences of calls, faults, disconnects, pauses and operators' actions, each in an organization of \
         its own, against a reference model of the contract. Each answer and each change of a status, as \
         committed, must be allowed; every post must end, with a reason; each event must be delivered once, each \
         text be published at most once, no slot and no idempotency key be held by two posts.",
    );
    section.text(
        "Every operation of the OpenAPI document and every page and action of the dashboard is a step, by an owner, by one \
         with fewer scopes, by keys of a tenant, a profile and some accounts, by a client token and by another organization, \
         with keys and in sessions; accounts move between tenants and profiles meanwhile. A second model says what each \
         caller reaches: an answer has the status that it says, a list the rows that it says, a page their texts, and \
         none an id or a text of others; at the end, what each caller finds is what it says.",
    );
    let all = places().map(|all| all.len());
    section.figure(
        "Operations walked",
        format!("{operations} of {}, pages and actions {pages} of {}", all[0], all[1]),
    );
    section.figure(
        "Of these at random, the others in a last case",
        format!("{} operations, {} pages and actions", random[0], random[1]),
    );
    for by in By::ALL {
        let count = walk::ASKED.lock().unwrap().get(&format!("{by:?}")).copied().unwrap_or_default();
        section.figure(format!("Operations asked by: {}", by.name()), count);
    }
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
