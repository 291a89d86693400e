//! Operations at each await point of an attempt, and attempts at each await point of an operation.

use super::{
    RUNNERS, Runner, SHAPES, STRIDE,
    operations::Operation,
    platform::{Answer, Shape},
    points,
    world::{Case, Meeting, Outcome, Pace, play},
};
use futures::future::join_all;
use std::{collections::BTreeMap, sync::Mutex};
use strum::IntoEnumIterator;
use tests::proof::{Section, is_full};

/// Steps before an operation in short, and in full: what comes after these looks is the same.
const STEPS_BEFORE: (usize, usize) = (3, 5);

/// Kind of post and answers that an operation meets.
#[derive(Clone, Debug)]
struct Job {
    shape: Shape,
    answers: Vec<Answer>,
    operation: Operation,
    /// True if the operation comes at await points of the attempts, false if those come at the operation's.
    is_during: bool,
}

impl Job {
    fn all() -> Vec<Self> {
        let shapes = if is_full() { &SHAPES[..] } else { &[Shape::Text, Shape::FirstComment] };
        let mut jobs = Vec::new();
        for operation in Operation::iter() {
            for shape in shapes {
                let mut answers = operation.answers(*shape);
                if !is_full() {
                    answers.drain(..answers.len() - 1);
                }
                for answers in answers {
                    for is_during in [true, false] {
                        jobs.push(Self { shape: *shape, answers: answers.clone(), operation, is_during });
                    }
                }
            }
        }
        jobs
    }

    fn case(&self, meeting: Meeting) -> Case {
        Case { shape: self.shape, answers: self.answers.clone(), operation: self.operation, meeting }
    }

    /// Returns the await points, in short others for each operation.
    fn points(&self) -> impl Iterator<Item = usize> + use<> {
        points(self.operation as usize)
    }

    async fn run(&self, runner: &Runner, tally: &Tally) {
        match self.is_during {
            true => self.run_during(runner, tally).await,
            false => self.run_around(runner, tally).await,
        }
    }

    /// Runs the operation at each await point of the attempts, and after them.
    async fn run_during(&self, runner: &Runner, tally: &Tally) {
        for point in self.points() {
            let case = self.case(Meeting::During { point, is_late: point % 2 == 1 });
            let outcome = play(runner, &case).await;
            tally.count(&case, &outcome);
            if outcome.was_last {
                break;
            }
        }
    }

    /// Makes each of the first steps at each await point of the operation, and another worker's after them.
    async fn run_around(&self, runner: &Runner, tally: &Tally) {
        let (short, full) = STEPS_BEFORE;
        for steps in 0..(if is_full() { full } else { short }) {
            let mut was_last = false;
            for point in self.points() {
                let paces = [Pace::Whole, Pace::Begun, Pace::Called];
                let paces = if is_full() { &paces[..] } else { &paces[point / STRIDE % 3..][..1] };
                let mut was_reached = false;
                for pace in paces {
                    let case = self.case(Meeting::Around { steps, point, pace: *pace });
                    let outcome = play(runner, &case).await;
                    tally.count(&case, &outcome);
                    (was_reached, was_last) = (outcome.was_reached, outcome.was_last);
                }
                if !was_reached {
                    break;
                }
            }
            if was_last {
                break;
            }
        }
    }
}

/// Results of the cases of an operation in a direction.
#[derive(Clone, Debug, Default)]
struct Count {
    cases: usize,
    accepted: usize,
    ended: BTreeMap<String, usize>,
}

/// Results of all cases.
#[derive(Default)]
struct Tally {
    counts: Mutex<BTreeMap<(Operation, bool), Count>>,
    complaints: Mutex<Vec<String>>,
}

impl Tally {
    fn count(&self, case: &Case, outcome: &Outcome) {
        let is_during = matches!(case.meeting, Meeting::During { .. });
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry((case.operation, is_during)).or_default();
        count.cases += 1;
        count.accepted += usize::from(outcome.is_accepted);
        *count.ended.entry(outcome.ended.clone()).or_default() += 1;
        if !outcome.complaints.is_empty() {
            let complaint = format!("{case:?}: {outcome:?}");
            eprintln!("{complaint}");
            self.complaints.lock().unwrap().push(complaint);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_may_meet_an_attempt_at_every_await_point() {
    let mut section = Section::new("2c-operations", "Operations at every await point");
    section.text(
        "The engine and the operations of users and operators in process, on a real Postgres, with a scripted \
         platform. An operation runs while an attempt is held at each of its await points in turn, and after the \
         last; and an attempt runs whole, or begins, or makes its call, while the operation is held at each of its \
         own. The messages that it writes arrive before the attempt goes on, or after it has ended. Then the \
         workflows go on until nothing is left to do, without a sweep. Each container is live at most once, the \
         target's end and its reason are what the platform shows, each end is told by one event, and nothing of \
         another organization has changed. An operation that is refused, as the API does with 409 or 422, is one that \
         changes nothing.",
    );
    let (jobs, tally) = (Mutex::new(Job::all()), Tally::default());
    join_all((0..RUNNERS).map(async |number| {
        let runner = Runner::start(300 + number).await;
        loop {
            let job = jobs.lock().unwrap().pop();
            let Some(job) = job else { break };
            job.run(&runner, &tally).await;
        }
    }))
    .await;
    let counts = tally.counts.into_inner().unwrap();
    let mut ended = BTreeMap::<_, usize>::new();
    for ((operation, is_during), count) in &counts {
        let name = match is_during {
            true => format!("Cases, {operation} at an await point of an attempt"),
            false => format!("Cases, an attempt at an await point of: {operation}"),
        };
        let Count { cases, accepted, .. } = count;
        section.figure(name, format!("{cases}: {accepted} accepted, {} refused", cases - accepted));
        for (end, cases) in &count.ended {
            *ended.entry(end.clone()).or_default() += cases;
        }
    }
    for (end, cases) in ended {
        section.figure(format!("Cases, {end}"), cases);
    }
    section.write();
    let complaints = tally.complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{} cases: {}", complaints.len(), complaints[0]);
    // Each operation meets states in which it is possible.
    for ((operation, is_during), count) in counts {
        let is_possible = operation != Operation::UnpublishInVain;
        assert_eq!(count.accepted > 0, is_possible, "{operation}, {is_during}: {count:?}");
    }
}
