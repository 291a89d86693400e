//! Tables of the decision, in the order of its conditions.

use super::*;
use crate::publishing::NoParent;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: TimeDelta = TimeDelta::hours(1);

const IDLE: Publication = Publication { has_intent: false, is_live: false };
const OPEN: Publication = Publication { has_intent: true, is_live: false };
const LIVE: Publication = Publication { has_intent: true, is_live: true };

/// The place that a reply has had before.
static KNOWN: Parent = Parent { root: String::new(), last: String::new() };

/// A row of the tables.
struct Case {
    name: &'static str,
    at: Snapshot<'static>,
    answers: Answers,
    expected: Decision,
}

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

/// Returns a target that is due, with a change.
fn due(change: impl FnOnce(&mut Snapshot<'static>)) -> Snapshot<'static> {
    let mut at = Snapshot::due(now(), &[IDLE, IDLE]);
    change(&mut at);
    at
}

/// Returns the answer that no file is awaited, with others.
fn answers(change: impl FnOnce(&mut Answers)) -> Answers {
    let mut answers = Answers { awaits_file: Some(false), ..Answers::default() };
    change(&mut answers);
    answers
}

/// Returns an attempt that publishes, with a change.
fn starts(change: impl FnOnce(&mut Start)) -> Decision {
    let mut start = Start {
        place: Place::Own,
        barred: None,
        is_counted: true,
        waited_in_vain: None,
        waiting: None,
        is_first: false,
        was_frozen: false,
        needs_no_grant: false,
    };
    change(&mut start);
    Decision::Begin(start)
}

fn waiting(reason: WaitReason, age: TimeDelta) -> Waiting {
    Waiting { reason, since: now() - age, until: None, is_retried: false }
}

fn case(
    name: &'static str,
    change: impl FnOnce(&mut Snapshot<'static>),
    answers: Answers,
    expected: Decision,
) -> Case {
    Case { name, at: due(change), answers, expected }
}

fn none() -> Answers {
    Answers::default()
}

fn no_file() -> Answers {
    answers(|_| {})
}

fn ends() -> Vec<Case> {
    let published = |at: &mut Snapshot<'static>| {
        (at.status, at.publications) = (TargetStatus::Published, &[LIVE, IDLE]);
    };
    vec![
        case("due", |_| {}, no_file(), starts(|_| {})),
        case(
            "dead, and edited",
            |at| (at.status, at.post, at.version) = (TargetStatus::Dead, PostStatus::Queued, 2),
            none(),
            Decision::Ended(TargetStatus::Dead),
        ),
        case(
            "canceled",
            |at| at.status = TargetStatus::Canceled,
            none(),
            Decision::Ended(TargetStatus::Canceled),
        ),
        case(
            "edited",
            |at| (at.post, at.version, at.is_deleted) = (PostStatus::Queued, 2, true),
            none(),
            Decision::Stale,
        ),
        case("edited while it publishes", |at| at.version = 2, no_file(), starts(|_| {})),
        case(
            "the first attempt",
            |at| at.post = PostStatus::Scheduled,
            no_file(),
            starts(|start| start.is_first = true),
        ),
        case("complete", published, none(), Decision::Ended(TargetStatus::Published)),
        case(
            "a reply is missing",
            |at| {
                published(at);
                at.next_attempt_at = Some(now());
            },
            none(),
            starts(|_| {}),
        ),
    ]
}

fn times() -> Vec<Case> {
    let failed = |at: &mut Snapshot<'static>| {
        (at.status, at.error_code) = (TargetStatus::Failed, Some(ErrorCode::RateLimited));
        (at.next_attempt_at, at.attempts, at.free_attempts) = (Some(now() + MINUTE), 3, 1);
    };
    let told = |number| Decision::Failed { pause: MINUTE, code: ErrorCode::RateLimited, number };
    vec![
        case(
            "its posts are being deleted",
            |at| at.unpublish_until = Some(now() + MINUTE),
            none(),
            Decision::Early(MINUTE + TOLERANCE),
        ),
        case(
            "its posts were being deleted, and may be gone",
            |at| at.unpublish_until = Some(now() - HOUR),
            no_file(),
            starts(|start| start.barred = Some(Barred::MayBeUnpublished)),
        ),
        case("early", |at| at.next_attempt_at = Some(now() + MINUTE), none(), Decision::Early(MINUTE)),
        case(
            "early, within the tolerance",
            |at| at.next_attempt_at = Some(now() + TOLERANCE),
            no_file(),
            starts(|_| {}),
        ),
        case(
            "early by more than a poll waits",
            |at| at.next_attempt_at = Some(now() + 11 * MINUTE),
            none(),
            Decision::Early(11 * MINUTE),
        ),
        case(
            "early by a clock that was set back",
            |at| (at.next_attempt_at, at.is_set_back) = (Some(now() + MINUTE), true),
            no_file(),
            starts(|_| {}),
        ),
        case(
            "a look is never early",
            |at| (at.next_attempt_at, at.purpose) = (Some(now() + MINUTE), Purpose::Look),
            no_file(),
            starts(|start| start.is_counted = false),
        ),
        case(
            "an early poll",
            |at| (at.next_attempt_at, at.is_continuation) = (Some(now() + MINUTE), true),
            none(),
            Decision::Early(MINUTE),
        ),
        case(
            "a poll that waits as long as any",
            |at| (at.next_attempt_at, at.is_continuation) = (Some(now() + MAX_POLL_WAIT), true),
            none(),
            Decision::Early(MAX_POLL_WAIT),
        ),
        case(
            "a poll of the future",
            |at| (at.next_attempt_at, at.is_continuation) = (Some(now() + 11 * MINUTE), true),
            no_file(),
            starts(|start| start.is_counted = false),
        ),
        case(
            "a poll that was frozen",
            |at| {
                (at.next_attempt_at, at.is_continuation) = (Some(now() + 11 * MINUTE), true);
                at.error_code = Some(ErrorCode::Frozen);
            },
            none(),
            Decision::Early(11 * MINUTE),
        ),
        case("failed", failed, none(), told(2)),
        case(
            "failed at no cost",
            |at| {
                failed(at);
                at.throttled_since = Some(now() - HOUR);
            },
            none(),
            told(3),
        ),
        case(
            "failed at no cost for a whole day",
            |at| {
                failed(at);
                at.throttled_since = Some(now() - TimeDelta::days(1));
            },
            none(),
            told(2),
        ),
    ]
}

fn schedules() -> Vec<Case> {
    vec![
        case("scheduled", |at| at.scheduled_at = Some(now() + MINUTE), none(), Decision::Early(MINUTE)),
        case(
            "scheduled, within the tolerance",
            |at| at.scheduled_at = Some(now() + TOLERANCE),
            no_file(),
            starts(|_| {}),
        ),
        case(
            "scheduled, and deleted",
            |at| (at.scheduled_at, at.is_deleted) = (Some(now() + MINUTE), true),
            none(),
            starts(|start| start.barred = Some(Barred::Deleted)),
        ),
        case(
            "scheduled, and disconnected",
            |at| (at.scheduled_at, at.is_disconnected) = (Some(now() + MINUTE), true),
            no_file(),
            starts(|start| {
                (start.barred, start.needs_no_grant) = (Some(Barred::Disconnected), true);
            }),
        ),
        case(
            "scheduled, and stopped",
            |at| (at.scheduled_at, at.is_stopped) = (Some(now() + MINUTE), true),
            no_file(),
            starts(|start| start.barred = Some(Barred::Stopped)),
        ),
        case(
            "scheduled, and begun",
            |at| (at.scheduled_at, at.publications) = (Some(now() + MINUTE), &[OPEN, IDLE]),
            none(),
            starts(|_| {}),
        ),
    ]
}

fn files() -> Vec<Case> {
    let awaited = || answers(|answers| answers.awaits_file = Some(true));
    let waits = |age: TimeDelta, is_new| {
        Decision::Wait(RowWait {
            reason: WaitReason::File,
            since: now() - age,
            look_after: MINUTE,
            until: now() - age + wait::FILE_LIMIT,
            is_new,
        })
    };
    vec![
        case("a file may be awaited", |_| {}, none(), Decision::Ask(Question::File)),
        case("a file is awaited", |_| {}, awaited(), waits(TimeDelta::zero(), true)),
        case(
            "a file is awaited again",
            |at| at.waiting = Some(waiting(WaitReason::File, HOUR)),
            awaited(),
            waits(HOUR, false),
        ),
        case(
            "a file is awaited after a retry",
            |at| at.waiting = Some(Waiting { is_retried: true, ..waiting(WaitReason::File, HOUR) }),
            awaited(),
            waits(HOUR, true),
        ),
        case(
            "a file is awaited after another wait",
            |at| at.waiting = Some(waiting(WaitReason::Slot, HOUR)),
            awaited(),
            waits(TimeDelta::zero(), true),
        ),
        case(
            "a file was awaited in vain",
            |at| at.waiting = Some(waiting(WaitReason::File, TimeDelta::days(1))),
            awaited(),
            starts(|start| (start.waited_in_vain, start.is_counted) = (Some(WaitReason::File), false)),
        ),
        case(
            "deleted, without a file",
            |at| at.is_deleted = true,
            none(),
            starts(|start| start.barred = Some(Barred::Deleted)),
        ),
    ]
}

fn bars() -> Vec<Case> {
    vec![
        case(
            "stopped, disconnected and deleted",
            |at| (at.is_stopped, at.is_disconnected, at.is_deleted) = (true, true, true),
            none(),
            starts(|start| start.barred = Some(Barred::Stopped)),
        ),
        case(
            "disconnected and deleted",
            |at| (at.is_disconnected, at.is_deleted) = (true, true),
            none(),
            starts(|start| {
                (start.barred, start.needs_no_grant) = (Some(Barred::Disconnected), true);
            }),
        ),
        case(
            "disconnected in doubt",
            |at| (at.is_disconnected, at.publications) = (true, &[OPEN, IDLE]),
            none(),
            starts(|start| start.barred = Some(Barred::Disconnected)),
        ),
    ]
}

fn live_parent() -> Parent {
    Parent { root: "1".to_owned(), last: "2".to_owned() }
}

fn found(parent: Found) -> Answers {
    answers(|answers| answers.parent = Some(parent))
}

fn places() -> Vec<Case> {
    let reply = |at: &mut Snapshot<'static>| at.is_reply = true;
    let known = |at: &mut Snapshot<'static>| (at.is_reply, at.parent) = (true, Some(&KNOWN));
    let below = |parent: &Parent| {
        let place = Place::Below(parent.clone());
        starts(|start| start.place = place)
    };
    let gone = Some(Barred::NoParent(NoParent::Dead));
    vec![
        case("a reply", reply, no_file(), Decision::Ask(Question::Parent)),
        case("a reply below", reply, found(Found::Live(live_parent())), below(&live_parent())),
        case("a reply again", known, no_file(), Decision::Ask(Question::Parent)),
        case("a reply again below", known, found(Found::Live(live_parent())), below(&KNOWN)),
        case(
            "a live reply",
            |at| {
                known(at);
                at.publications = &[LIVE, IDLE];
            },
            none(),
            below(&KNOWN),
        ),
        case(
            "a reply that is deleted",
            |at| {
                known(at);
                at.is_deleted = true;
            },
            none(),
            starts(|start| {
                (start.place, start.barred) = (Place::Below(KNOWN.clone()), Some(Barred::Deleted));
            }),
        ),
        case(
            "a reply that is deleted before it has a place",
            |at| {
                reply(at);
                at.is_deleted = true;
            },
            none(),
            starts(|start| (start.place, start.barred) = (Place::Nowhere, Some(Barred::Deleted))),
        ),
        case(
            "a reply that awaited its file in vain",
            |at| {
                reply(at);
                at.waiting = Some(waiting(WaitReason::File, TimeDelta::days(1)));
            },
            answers(|answers| answers.awaits_file = Some(true)),
            starts(|start| {
                (start.place, start.is_counted) = (Place::Nowhere, false);
                start.waited_in_vain = Some(WaitReason::File);
            }),
        ),
        case(
            "nothing to reply to",
            reply,
            found(Found::Gone(NoParent::Dead)),
            starts(|start| (start.place, start.barred) = (Place::Nowhere, gone)),
        ),
        case(
            "nothing to reply to any more",
            known,
            found(Found::Gone(NoParent::Dead)),
            starts(|start| (start.place, start.barred) = (Place::Below(KNOWN.clone()), gone)),
        ),
    ]
}

fn parents() -> Vec<Case> {
    let reply = |at: &mut Snapshot<'static>| at.is_reply = true;
    let known = |at: &mut Snapshot<'static>| (at.is_reply, at.parent) = (true, Some(&KNOWN));
    let below_known = || starts(|start| start.place = Place::Below(KNOWN.clone()));
    let waits = |next: DateTime<Utc>| {
        Decision::Wait(RowWait {
            reason: WaitReason::Parent,
            since: now(),
            look_after: MINUTE,
            until: next + wait::PARENT_LIMIT,
            is_new: true,
        })
    };
    let not_live = |next| found(Found::Waiting { pause: MINUTE, next });
    let held = || found(Found::Held { pause: MINUTE, next: Some(now() + MINUTE) });
    vec![
        case("not live", reply, not_live(None), waits(now())),
        case("not live before a time", reply, not_live(Some(now() + HOUR)), waits(now() + HOUR)),
        case("not live since a time", reply, not_live(Some(now() - HOUR)), waits(now())),
        case("not live again", known, not_live(None), below_known()),
        case(
            "not live in vain",
            |at| {
                reply(at);
                at.waiting = Some(waiting(WaitReason::Parent, TimeDelta::days(7)));
            },
            not_live(None),
            starts(|start| {
                (start.place, start.is_counted) = (Place::Nowhere, false);
                start.waited_in_vain = Some(WaitReason::Parent);
            }),
        ),
        case("held", known, held(), waits(now() + MINUTE)),
        case(
            "held in doubt",
            |at| {
                known(at);
                at.publications = &[OPEN, IDLE];
            },
            held(),
            below_known(),
        ),
    ]
}

fn freezes() -> Vec<Case> {
    let frozen = |at: &mut Snapshot<'static>| at.is_frozen = true;
    let open = |is_open| answers(|answers| answers.is_freeze_open = Some(is_open));
    vec![
        case("frozen", frozen, no_file(), Decision::Ask(Question::Freeze)),
        case("frozen still", frozen, open(true), Decision::Freeze { is_new: true }),
        case(
            "frozen as before",
            |at| (at.is_frozen, at.knows_freeze) = (true, true),
            open(true),
            Decision::Freeze { is_new: false },
        ),
        case("released meanwhile", frozen, open(false), starts(|_| {})),
        case(
            "released",
            |at| at.error_code = Some(ErrorCode::Frozen),
            no_file(),
            starts(|start| start.was_frozen = true),
        ),
        case(
            "frozen in doubt",
            |at| (at.is_frozen, at.publications) = (true, &[OPEN, IDLE]),
            none(),
            starts(|_| {}),
        ),
        case(
            "frozen and stopped",
            |at| (at.is_frozen, at.is_stopped) = (true, true),
            no_file(),
            starts(|start| start.barred = Some(Barred::Stopped)),
        ),
        case(
            "frozen without a URL",
            |at| {
                (at.is_frozen, at.publications) = (true, &[LIVE, LIVE]);
                (at.status, at.next_attempt_at) = (TargetStatus::Published, Some(now()));
            },
            none(),
            starts(|_| {}),
        ),
    ]
}

fn rests() -> Vec<Case> {
    let resting = |at: &mut Snapshot<'static>| at.rests_until = Some(now() + MINUTE);
    let rest = |age: TimeDelta, is_new| {
        Decision::Rest(Rest {
            reason: WaitReason::Rest,
            code: ErrorCode::RateLimited,
            until: now() + MINUTE,
            since: now() - age,
            ends_at: now() - age + wait::REST_LIMIT,
            is_untold: true,
            is_new,
        })
    };
    vec![
        case("rests", resting, no_file(), rest(TimeDelta::zero(), true)),
        case(
            "rests on",
            |at| {
                resting(at);
                (at.throttled_since, at.error_code) = (Some(now() - HOUR), Some(ErrorCode::RateLimited));
            },
            no_file(),
            rest(HOUR, false),
        ),
        case("has rested", |at| at.rests_until = Some(now() + TOLERANCE), no_file(), starts(|_| {})),
        case(
            "rests while the platform processes it",
            |at| {
                resting(at);
                at.is_continuation = true;
            },
            no_file(),
            starts(|start| start.is_counted = false),
        ),
        case(
            "rests in doubt",
            |at| {
                resting(at);
                at.publications = &[OPEN, IDLE];
            },
            none(),
            starts(|_| {}),
        ),
        case(
            "rests in vain, with an app that is held",
            |at| {
                resting(at);
                (at.throttled_since, at.is_app_held) = (Some(now() - TimeDelta::days(2)), true);
            },
            no_file(),
            starts(|start| (start.waited_in_vain, start.is_counted) = (Some(WaitReason::Rest), false)),
        ),
    ]
}

fn apps() -> Vec<Case> {
    let held = |at: &mut Snapshot<'static>| at.is_app_held = true;
    let until = |until| answers(|answers| answers.app_until = Some(until));
    let old = waiting(WaitReason::App, TimeDelta::days(32));
    vec![
        case("the app is held", held, no_file(), Decision::Ask(Question::App)),
        case(
            "the app is held for a time",
            held,
            until(Some(now() + MINUTE)),
            Decision::Rest(Rest {
                reason: WaitReason::App,
                code: ErrorCode::AppRefused,
                until: now() + MINUTE,
                since: now(),
                ends_at: now() + wait::APP_LIMIT,
                is_untold: true,
                is_new: true,
            }),
        ),
        case("it looks whether the app is held", held, until(None), starts(|_| {})),
        case(
            "the app is held in vain",
            |at| {
                held(at);
                at.waiting = Some(old);
            },
            no_file(),
            starts(|start| {
                (start.waited_in_vain, start.is_counted) = (Some(WaitReason::App), false);
                start.waiting = Some(old);
            }),
        ),
    ]
}

fn cases() -> Vec<Case> {
    let tables =
        [ends(), times(), schedules(), files(), bars(), places(), parents(), freezes(), rests(), apps()];
    tables.into_iter().flatten().collect()
}

/// Returns true if a row of the tables fails when a condition is negated.
pub(in crate::publishing) fn needs(condition: Condition) -> bool {
    let rules = Rules::negating(condition);
    cases().iter().any(|case| begin(rules, &case.at, &case.answers) != case.expected)
}

#[test]
fn an_attempt_begins_if_nothing_keeps_it_from_it() {
    for Case { name, at, answers, expected } in cases() {
        assert_eq!(begin(Rules::PROTOCOL, &at, &answers), expected, "{name}");
    }
}

#[test]
fn an_intent_of_the_future_is_set_back_by_a_day() {
    let times = |begun_at| CallTimes {
        begun_at,
        deadline: Some(begun_at + MINUTE),
        ended_at: Some(begun_at),
        doubted_since: Some(begun_at - TimeDelta::days(3)),
    };
    assert_eq!(times(now() + TOLERANCE).set_back(now()), None);
    let earliest = now() - TimeDelta::days(1);
    let corrected = CallTimes {
        begun_at: earliest,
        deadline: Some(now() + MINUTE),
        ended_at: Some(now()),
        doubted_since: Some(earliest),
    };
    assert_eq!(times(now() + TimeDelta::days(4)).set_back(now()), Some(corrected));
    for (ahead, doubted) in [(1, now() - TimeDelta::days(2)), (3, now())] {
        let doubted = CallTimes { doubted_since: Some(doubted), ..corrected };
        assert_eq!(times(now() + TimeDelta::days(ahead)).set_back(now()), Some(doubted));
    }
}
