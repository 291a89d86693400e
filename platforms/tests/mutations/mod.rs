//! Hostile answers: each call of each adapter, with each of its real answers changed.
//!
//! A call is made once against the sandbox, which records the answers. It is then made again and again against a
//! server that gives the same answers but one, which was changed: another status or header, a body that is cut,
//! empty, a page, huge or not text, members that are missing or of another type, arbitrary JSON, an error that
//! repeats the request's secrets. Whatever arrives, the call ends without a panic, after a bounded number of
//! requests, with a valid result or a classified failure that shows no secret. Two rules keep the promise that a
//! post is published at most once: only an answer that says so means that nothing was published, and only an id
//! that the platform sent is one.
//!
//! `cargo test` makes the changes of publishing calls that could lead to a second post, and a random sample of
//! the others, whose seed is printed; `FANFARE_PROOF=full` makes all of them.

mod calls;
mod changes;
mod judge;
mod stage;

use crate::{
    fixtures::{Actor, World},
    proof::{Section, is_full},
    trials::{Case, cases},
};
use calls::{Call, Outcome, Recorded, Recorder};
use changes::Change;
use futures::FutureExt;
use platforms::Adapter;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::seq::IndexedRandom;
use stage::Stage;
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{LazyLock, Mutex},
    time::Duration,
};

/// Time after which a call counts as hanging. The server answers at once.
const PATIENCE: Duration = Duration::from_secs(120);
/// Random changes for each platform in the short form.
const SAMPLE: usize = 250;
/// Arbitrary answers for each recorded one in the full form.
const ARBITRARY: usize = 60;
/// Objections that a failed test lists.
const MAX_LISTED: usize = 50;

/// The case of the suite.
pub(crate) const CASES: [Case; 1] = cases![changed_answers_are_classified];

/// Figures of a platform.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    calls: usize,
    answers: usize,
    changed: usize,
    failed: usize,
}

static FIGURES: Mutex<BTreeMap<&str, Figures>> = Mutex::new(BTreeMap::new());

/// The seed of the run.
static SEED: LazyLock<u64> = LazyLock::new(|| {
    let given = std::env::var("FANFARE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(rand::random);
    eprintln!("hostile answers: FANFARE_SEED={seed}");
    seed
});

async fn changed_answers_are_classified(platform: &'static Adapter) {
    let stage = Stage::default();
    let shared = stage.clone();
    let world = World::behind(move |sandbox, request| shared.clone().serve(sandbox, request)).await;
    let actor = world.actor(platform);
    let mut recorder = Recorder::new(&actor, &stage);
    recorder.record_all().await;
    let all = recorder.all;
    for recorded in &all {
        let outcome = make(&actor, &stage, recorded, None).await;
        let is_same = matches!(&outcome, Ok(outcome) if outcome.is_ok() == recorded.has_succeeded);
        assert!(is_same, "{} {:?} with its own answers: {outcome:?}", actor.name(), recorded.call);
    }

    let answers: usize = all.iter().map(|recorded| recorded.exchanges.len()).sum();
    let mut figures = Figures { calls: all.len(), answers, ..Figures::default() };
    let mut wrong = Vec::new();
    for (recorded, index, change) in chosen(platform, &all) {
        let exchange = &recorded.exchanges[index];
        let answer = change.apply(&exchange.answer, &judge::secrets(&actor, &recorded.call));
        let ended = make(&actor, &stage, recorded, Some((index, &answer))).await;
        figures.changed += 1;
        figures.failed += usize::from(matches!(ended, Ok(Err(_))));
        let case = judge::Case { actor: &actor, recorded, index, change: &change, answer: &answer };
        wrong.extend(case.objection(stage.requests(), &ended).map(|objection| {
            let (method, path, status) = (&exchange.method, &exchange.path, exchange.answer.status);
            let body = changes::excerpt(&answer.body);
            let call = recorded.call.name();
            format!("{call}, {method} {path}: {status}, changed: {}\n  {objection}\n  {body}", change.name())
        }));
    }
    FIGURES.lock().expect("nobody panicked with it").insert(platform.id, figures);
    let count = wrong.len();
    wrong.truncate(MAX_LISTED);
    assert!(
        wrong.is_empty(),
        "{}: {count} of {} are wrong\n{}",
        platform.id,
        figures.changed,
        wrong.join("\n")
    );
}

/// Returns the changes to make: each with the call and the index of the answer.
fn chosen<'a>(platform: &Adapter, all: &'a [Recorded]) -> Vec<(&'a Recorded, usize, Change)> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&SEED.to_le_bytes());
    for (place, byte) in seed[8..].iter_mut().zip(platform.id.bytes()) {
        *place = byte;
    }
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let answers = all.iter().flat_map(|recorded| (0..recorded.exchanges.len()).map(move |at| (recorded, at)));
    let answers: Vec<_> = answers.collect();
    let answer = |recorded: &'a Recorded, index: usize| &recorded.exchanges[index].answer;
    let mut chosen = Vec::new();
    let mut others = Vec::new();
    for (recorded, index) in &answers {
        for change in changes::all(answer(recorded, *index)) {
            let is_publishing = matches!(recorded.call, Call::Commit(..)) && recorded.has_succeeded;
            let is_chosen = is_full() || is_publishing && change.is_vital();
            if is_chosen { &mut chosen } else { &mut others }.push((*recorded, *index, change));
        }
    }
    chosen.extend(others.sample(runner.rng(), SAMPLE).cloned());
    let arbitrary = if is_full() { ARBITRARY } else { 1 };
    for (recorded, index) in answers {
        chosen.extend(
            (0..arbitrary)
                .map(|_| (recorded, index, changes::arbitrary(answer(recorded, index), &mut runner))),
        );
    }
    chosen
}

/// The end of a call: its result, or why it has none.
type Ended = Result<platforms::Result<Outcome>, String>;

/// Makes a call with the recorded answers, one of them changed.
async fn make(
    actor: &Actor,
    stage: &Stage,
    recorded: &Recorded,
    changed: Option<(usize, &stage::Answer)>,
) -> Ended {
    let mut exchanges = recorded.exchanges.clone();
    if let Some((index, answer)) = changed {
        exchanges[index].answer = answer.clone();
    }
    stage.replay(exchanges);
    let call = AssertUnwindSafe(recorded.call.run(actor)).catch_unwind();
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(_)) => Err("it panicked".to_owned()),
        Err(_) => Err(format!("it did not end within {} s", PATIENCE.as_secs())),
    }
}

/// Writes the figures into a section of the report if `FANFARE_PROOF` is set.
pub(crate) fn report(mut section: Section) {
    let all = FIGURES.lock().expect("nobody panicked with it");
    if all.is_empty() || std::env::var_os("FANFARE_PROOF").is_none() {
        return;
    }
    section.text(
        "Every call of every adapter was recorded against the sandbox and repeated with each of its answers \
         changed: status, headers, `Retry-After`, cut, empty, huge and unreadable bodies, members missing or of \
         another type, arbitrary JSON and bytes, and errors that repeat the tokens of the request. Each call \
         ended with a valid result or a classified failure that shows no secret; no publishing call was taken \
         for refused after a 5xx or an unreadable answer, and no id was accepted that the platform did not send.",
    );
    let sum = |figure: fn(&Figures) -> usize| all.values().map(figure).sum::<usize>();
    section.figure("Adapters", all.len());
    section.figure("Calls recorded", sum(|figures| figures.calls));
    section.figure("Answers recorded", sum(|figures| figures.answers));
    section.figure("Calls with a changed answer", sum(|figures| figures.changed));
    section.figure("… that failed, with a classified failure", sum(|figures| figures.failed));
    section.figure("Seed", *SEED);
    section.write();
}
