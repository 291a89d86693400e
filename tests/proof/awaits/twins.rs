//! Posts with the same text and picture on one account: lost answers, delays, and predecessors that ended in doubt.

use super::{
    Driver, Next, RUNNERS, Runner, STEPS, Step,
    platform::{self, Answer, Script, Shape, WINDOW},
};
use domain::TargetStatus;
use futures::future::join_all;
use sqlx::Row;
use std::{
    collections::{BTreeMap, HashSet},
    sync::Mutex,
    time::Duration,
};
use tests::proof::{Section, is_full};

/// Answers to the first call of a post; further calls are heard.
const ANSWERS: [Answer; 7] = [
    Answer::Heard,
    Answer::Lost,
    Answer::Late,
    Answer::ServerError,
    Answer::Processing,
    Answer::Unnamed,
    Answer::ProcessingForever,
];

/// Answers after which each of any posts with the same text is published, whatever the others' are.
const RECOVERED: [Answer; 5] =
    [Answer::Heard, Answer::Lost, Answer::Late, Answer::ServerError, Answer::Processing];

/// Times between two posts: at once, within the read lag, and after the first has ended in doubt.
const DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), WINDOW.saturating_mul(2)];

/// Posts with the same text, in order.
#[derive(Clone, Debug)]
struct Case {
    answers: Vec<Answer>,
    delay: Duration,
    /// An attempt of this post is dropped at this await point.
    drop: Option<(usize, usize)>,
}

/// Await points of a post at which an attempt is dropped: in full those of its attempt, of the look-up after it and of
/// several looks. Those of the looks after these are the same, and a call that is never published has hundreds.
fn points() -> usize {
    if is_full() { 120 } else { 40 }
}

struct Turn<'a> {
    driver: Driver<'a>,
    next: Next,
    due: Duration,
    ended: Option<TargetStatus>,
}

struct Outcome {
    was_reached: bool,
    ended: String,
}

/// Publishes the posts of a case side by side. The one whose step is due first makes it.
async fn run(runner: &Runner, case: &Case) -> Outcome {
    let (id, account) = runner.connect().await;
    let script = platform::register(&account, Script::new(Shape::Image, &[]));
    let mut turns = Vec::new();
    for (index, answer) in case.answers.iter().enumerate() {
        let key = runner.create_for(id, Shape::Image).await;
        script.lock().unwrap().answer(key.target, *answer);
        let drops =
            case.drop.iter().filter(|(target, _)| *target == index).map(|(_, point)| *point).collect();
        let driver = Driver { runner, key, points: 0, drops };
        let due = case.delay * u32::try_from(index).unwrap();
        turns.push(Turn { driver, next: Next::Attempt, due, ended: None });
    }
    let mut now = Duration::ZERO;
    for step in 0.. {
        let Some(turn) = turns.iter_mut().filter(|turn| turn.ended.is_none()).min_by_key(|turn| turn.due)
        else {
            break;
        };
        assert!(step < STEPS * case.answers.len(), "{case:?} did not end: {:?}", turn.driver.key);
        let pause = turn.due.saturating_sub(now);
        runner.advance(turn.driver.key, &script, pause).await;
        now += pause;
        match turn.driver.step(turn.next).await {
            Some(Step::Ended(status)) => turn.ended = Some(status),
            Some(Step::Next(next, pause)) => (turn.next, turn.due) = (next, now + pause),
            // The worker is gone; the next attempt comes at once.
            None => {
                runner.is_idle().await;
                turn.next = Next::Attempt;
            }
        }
    }
    runner.advance(turns[0].driver.key, &script, Duration::from_secs(3600)).await;
    let was_reached = turns.iter().all(|turn| turn.driver.drops.is_empty());
    let calls = script.lock().unwrap().count(0);
    let outcome = verify(runner, case, &turns, calls).await;
    platform::unregister(&account);
    Outcome { was_reached, ended: outcome }
}

/// Checks that no post was published twice, none is reported that is not there, and none is there that is not reported.
async fn verify(runner: &Runner, case: &Case, turns: &[Turn<'_>], live: usize) -> String {
    let mut ids = HashSet::new();
    let (mut published, mut doubtful) = (0, 0);
    let mut report = format!("{case:?}, {live} live:");
    for turn in turns {
        let row = sqlx::query(
            "select status, platform_post_id, error_code, error_message, attempts - free_attempts as attempts,
               (select count(*) from timeline l where l.target_id = t.id) as entries
             from targets t where id = $1",
        )
        .bind(turn.driver.key.target.0)
        .fetch_one(&runner.db)
        .await
        .unwrap();
        let (status, id): (String, Option<String>) = (row.get("status"), row.get("platform_post_id"));
        let message: Option<String> = row.get("error_message");
        let (attempts, entries): (i32, i64) = (row.get("attempts"), row.get("entries"));
        report.push_str(&format!(" [{status} {id:?} {message:?} {attempts} attempts, {entries} entries]"));
        match status.as_str() {
            "published" => {
                published += 1;
                assert!(ids.insert(id.unwrap()), "one post for two targets: {report}");
            }
            "dead" => doubtful += usize::from(message.unwrap().contains("it may be live")),
            other => panic!("{other}: {report}"),
        }
        assert!(entries <= 40, "the timeline grows with each look: {report}");
    }
    assert!(published <= live, "reported, and not there: {report}");
    assert!(live <= published + doubtful, "published twice, or not reported: {report}");
    assert!(live <= turns.len(), "published twice: {report}");
    if case.answers.iter().all(|answer| RECOVERED.contains(answer)) {
        assert_eq!(published, turns.len(), "{report}");
    }
    format!("{published} of {} published, {doubtful} dead and may be live", turns.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_with_the_same_text_are_published_once_each_or_end_with_the_reason() {
    let mut section = Section::new("2b-twins", "Posts with the same text");
    section.text(
        "Two, three and ten posts with the same text and picture on one account, published side by side. The first \
         call of each gets each answer in turn: heard, lost, late, refused with a server error, accepted with and \
         without a handle, accepted and never published. They begin at once, within the read lag, or after the one \
         before has ended in doubt; an attempt of either is dropped at each of its first await points. None is \
         published twice, none is reported that is not there, and none is there that is not reported, or said to be \
         possible.",
    );
    let mut cases = Vec::new();
    for first in ANSWERS {
        for second in ANSWERS {
            for delay in DELAYS {
                cases.push(Case { answers: vec![first, second], delay, drop: None });
            }
        }
    }
    // In short those with a lost answer between two others.
    for first in ANSWERS {
        for third in ANSWERS {
            let seconds = if is_full() { &ANSWERS[..] } else { &[Answer::Lost] };
            for second in seconds {
                for delay in if is_full() { &DELAYS[..] } else { &DELAYS[1..2] } {
                    cases.push(Case { answers: vec![first, *second, third], delay: *delay, drop: None });
                }
            }
        }
    }
    for delay in DELAYS {
        let ten = |answers: &[Answer]| answers.iter().copied().cycle().take(10).collect();
        cases.push(Case { answers: ten(&ANSWERS), delay, drop: None });
        cases.push(Case { answers: ten(&[Answer::Lost]), delay, drop: None });
        cases.push(Case { answers: ten(&[Answer::ProcessingForever, Answer::Lost]), delay, drop: None });
    }
    let dropped = [
        [Answer::Lost, Answer::Lost],
        [Answer::ProcessingForever, Answer::Lost],
        [Answer::Unnamed, Answer::ServerError],
        [Answer::Processing, Answer::Late],
    ];
    let dropped = dropped.iter().flat_map(|answers| {
        let delays = if is_full() { &DELAYS[..] } else { &DELAYS[1..2] };
        delays.iter().flat_map(|delay| {
            (0..2).map(|target| Case { answers: answers.to_vec(), delay: *delay, drop: Some((target, 0)) })
        })
    });
    cases.extend(dropped);
    let jobs = Mutex::new(cases);
    let ended = Mutex::new(BTreeMap::<String, usize>::new());
    join_all((0..RUNNERS).map(async |number| {
        let runner = Runner::start(100 + number).await;
        loop {
            let job = jobs.lock().unwrap().pop();
            let Some(mut case) = job else { break };
            loop {
                let outcome = run(&runner, &case).await;
                *ended.lock().unwrap().entry(outcome.ended).or_default() += 1;
                match &mut case.drop {
                    Some((_, point)) if outcome.was_reached && *point < points() => *point += 1,
                    _ => break,
                }
            }
        }
    }))
    .await;
    for (ended, cases) in ended.into_inner().unwrap() {
        section.figure(format!("Cases, {ended}"), cases);
    }
    section.write();
}
