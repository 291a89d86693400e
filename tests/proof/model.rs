//! The publishing protocol, explored exhaustively.

use domain::{
    ErrorCode,
    publishing::{Condition, Rules},
};
use model::{
    Broken, ClaimFlaw, ClaimInvariant, Claims, EditFlaw, EditInvariant, Edits, Explored, Flaw, Invariant,
    MessageFlaw, MessageInvariant, Messages, Progress, Protocol, Replies, ReplyFlaw, ReplyInvariant,
    TenantFlaw, TenantInvariant, Tenants, WaitFlaw, WaitInvariant, Waits, Will,
};
use regex::Regex;
use std::{collections::BTreeSet, fs, path::Path, time::Instant};
use strum::IntoEnumIterator;
use tests::proof::{Section, is_full};

/// Cores that the exploration uses.
const THREADS: usize = 2;

/// A throttled call, a refused token, a server error and a refused post.
const ERRORS: &[ErrorCode] =
    &[ErrorCode::RateLimited, ErrorCode::TokenExpired, ErrorCode::Upstream(503), ErrorCode::Rejected(400)];
/// Errors that several posts of an account meet together.
const SHARED_ERRORS: &[ErrorCode] =
    &[ErrorCode::RateLimited, ErrorCode::AppRefused, ErrorCode::Upstream(503)];
/// An error that says nothing.
const ERROR: &[ErrorCode] = &[ErrorCode::Upstream(503)];

/// Adds the figures of an exploration.
fn explored(section: &mut Section, name: &str, explore: impl FnOnce() -> Result<Explored, Broken>) {
    let begun = Instant::now();
    let found = explore().unwrap_or_else(|broken| {
        panic!("{name}: {}\n{}", broken.invariant, broken.trace.join("\n"));
    });
    let took = begun.elapsed().as_secs();
    let longest = match found.longest {
        0 => String::new(),
        steps => format!("; an end comes after at most {steps} steps"),
    };
    section.figure(format!("States, {name}"), format!("{} in {took} s{longest}", found.states));
}

/// Returns the explorations of what one target waits for, those with few states first.
fn waits() -> Vec<(&'static str, Waits)> {
    let most_wills = if is_full() { 3 } else { 2 };
    vec![
        ("the account rests", Waits { has_others: true, ..Waits::new(12, &[ErrorCode::RateLimited]) }),
        (
            "the account rests and the app is refused",
            Waits { has_others: true, ..Waits::new(96, SHARED_ERRORS) },
        ),
        (
            "a dead target is retried, also after its file was deleted, and a live one is deleted",
            Waits {
                has_file: true,
                containers: 2,
                wills: &[
                    Will::Revive,
                    Will::RetryNow,
                    Will::DeleteFile,
                    Will::Withdraw,
                    Will::Stop,
                    Will::Delete,
                    Will::Disconnect,
                    Will::Connect,
                ],
                most_wills,
                ..Waits::new(12, ERROR)
            },
        ),
        (
            "what is published or looked up kills its workers",
            Waits { kills: true, processes: true, containers: 2, ..Waits::new(12, ERROR) },
        ),
        (
            "the app is refused, and Postgres is restored from a backup",
            Waits {
                wills: &[Will::Restored, Will::Freeze, Will::RetryNow, Will::Revive],
                most_wills,
                ..Waits::new(96, SHARED_ERRORS)
            },
        ),
        (
            "a target has a time of its own, and is edited, frozen and released",
            Waits {
                has_file: true,
                has_others: true,
                wills: &[
                    Will::Edit,
                    Will::EditFile,
                    Will::Freeze,
                    Will::Release,
                    Will::Disconnect,
                    Will::Connect,
                    Will::Stop,
                    Will::RetryNow,
                ],
                most_wills: most_wills + 1,
                ..Waits::new(8, &[ErrorCode::RateLimited])
            },
        ),
        ("a platform answers with any error", Waits { crashes: 2, containers: 2, ..Waits::new(12, ERRORS) }),
        (
            "a platform processes posts",
            Waits { processes: true, contests: true, falters: true, ..Waits::new(12, ERRORS) },
        ),
        (
            "a reply waits for its file and for the post above",
            Waits {
                has_file: true,
                is_reply: true,
                containers: 2,
                crashes: 1,
                wills: &[Will::WithdrawParent, Will::LengthenParent, Will::Restored, Will::Delete],
                most_wills,
                ..Waits::new(12, ERROR)
            },
        ),
    ]
}

#[test]
fn every_interleaving_keeps_every_invariant() {
    let mut section = Section::new("1-model", "The protocol, explored exhaustively");
    section.text(
        "Crate `model` describes the publishing protocol for a main container and a reply. Every interleaving \
         of two attempts at a time is explored, with crashes at every step. \"Attempts\" and \"calls\" are how \
         many begin in all.",
    );
    // Attempts, and calls.
    let (crashes, users, backups) =
        if is_full() { ((4, 3), (3, 3), (3, 3)) } else { ((3, 2), (2, 2), (2, 2)) };
    let of = |(begins, calls)| Protocol::new(begins, calls);
    for (name, protocol) in [
        ("Temporal may lose its data", Protocol { empties: true, ..of(crashes) }),
        ("users retry what is dead or missing", Protocol { revives: true, ..of(crashes) }),
        ("users edit, delete and disconnect", Protocol { users: true, ..of(users) }),
        ("users disconnect and connect again", Protocol { reconnects: true, revives: true, ..of(users) }),
        ("users delete what is live", Protocol { withdrawals: 2, ..of(crashes) }),
        (
            "users delete what is live, and retry what is missing",
            Protocol { withdrawals: 2, revives: true, ..of(users) },
        ),
        ("operators freeze, release and stop", Protocol { operators: true, revives: true, ..of(users) }),
        ("Postgres is restored from a backup", Protocol { restores: true, ..of(backups) }),
    ] {
        let begun = Instant::now();
        let states = protocol.check(THREADS);
        section.figure(
            format!("States, {name} ({} attempts, {} calls)", protocol.begins, protocol.calls),
            format!("{states} in {} s", begun.elapsed().as_secs()),
        );
    }
    // Targets, and calls.
    for (targets, calls) in if is_full() { [(2, 5), (3, 5)] } else { [(2, 4), (3, 4)] } {
        let claims = Claims::new(targets, calls);
        // Targets that are not alike have more states.
        let few = Claims::new(targets, 4);
        for (name, claims) in [
            ("with the same text", claims),
            ("with the same text, which are retried", Claims { retries: true, ..few }),
            ("with the same text, of two end tenants", Claims { rows: 2, ..few }),
            ("of two end tenants, which are retried", Claims { rows: 2, retries: true, ..few }),
            ("of which one has another text", Claims { differs: true, ..few }),
        ] {
            let begun = Instant::now();
            let states = claims.check(THREADS);
            section.figure(
                format!("States, {targets} posts {name} ({} calls)", claims.calls),
                format!("{states} in {} s", begun.elapsed().as_secs()),
            );
        }
    }
    section.write();
}

#[test]
fn every_wait_ends_and_every_row_is_bound() {
    let mut section =
        Section::new("1b-model-waits", "Waits, replies, edits, tenants and messages, explored exhaustively");
    section.text(
        "Further models of crate `model`. For one target over days, with every answer of its platform and what \
         it meets together with others of its account: no way through what follows by itself is endless or \
         stops before an end, so that every wait ends, and the steps of the longest way are its bound. A step is \
         an attempt, a look or some hours. The others are explored for what must never be.",
    );
    for (name, waits) in waits() {
        explored(&mut section, name, || waits.explore());
    }
    let (begins, deletions) = if is_full() { (6, 3) } else { (4, 2) };
    let replies = Replies { begins, deletions, flaw: None };
    explored(&mut section, "a reply, and the deletion of the post above", || replies.explore());
    explored(&mut section, "edits of a live post", || Edits::default().explore());
    explored(&mut section, "an account of several end tenants", || Tenants::default().explore());
    for accounts in 1..=3 {
        let wills = if is_full() || accounts < 3 { 2 } else { 1 };
        let messages = Messages { accounts, files: 2, wills, flaw: None };
        explored(&mut section, &format!("messages of posts on {accounts} accounts"), || messages.explore());
    }
    let invariants = names::<Invariant>()
        .chain(names::<ClaimInvariant>())
        .chain(names::<WaitInvariant>())
        .chain(names::<Progress>())
        .chain(names::<ReplyInvariant>())
        .chain(names::<EditInvariant>())
        .chain(names::<TenantInvariant>())
        .chain(names::<MessageInvariant>());
    section.figure("Invariants of all models", invariants.collect::<BTreeSet<_>>().len());
    let rules = [
        Flaw::iter().count(),
        ClaimFlaw::iter().count(),
        WaitFlaw::iter().count(),
        ReplyFlaw::iter().count(),
        EditFlaw::iter().count(),
        TenantFlaw::iter().count(),
        MessageFlaw::iter().count(),
    ];
    section.figure("Rules that can't be left out", rules.iter().sum::<usize>());
    let negated = Condition::ALL.iter().filter(|condition| !is_only_told(**condition));
    section.figure("Conditions that can't be negated", negated.count());
    section.write();
}

/// Returns the names of invariants.
fn names<T: IntoEnumIterator + Into<&'static str>>() -> impl Iterator<Item = &'static str> {
    T::iter().map(T::into)
}

/// Without any one of the rules an invariant is violated: each is needed, and the model notices.
#[test]
fn no_rule_can_be_left_out() {
    for flaw in Flaw::iter() {
        let protocol = Protocol { flaw: Some(flaw), ..Protocol::new(3, 3) };
        let (protocol, violated) = match flaw {
            Flaw::IntendsWithoutFence
            | Flaw::SkipsLookup
            | Flaw::BelievesBeforeDeadline
            | Flaw::IgnoresSkew
            | Flaw::SendsLate => (protocol, Invariant::PublishedOnce),
            Flaw::RevivesWithoutIntent => (Protocol { revives: true, ..protocol }, Invariant::PublishedOnce),
            Flaw::RewritesInDoubt => (Protocol { revives: true, ..protocol }, Invariant::LatestVersion),
            Flaw::TrustsBackup => (Protocol { restores: true, ..protocol }, Invariant::PublishedOnce),
            Flaw::CancelsInDoubt => (Protocol { users: true, ..protocol }, Invariant::CanceledIsNotLive),
            Flaw::EditsBegun => (Protocol { users: true, ..protocol }, Invariant::LatestVersion),
            Flaw::HidesDoubt => (protocol, Invariant::DeadIsHonest),
            Flaw::EndsWithoutReason => (protocol, Invariant::EndHasReason),
            Flaw::IntendsFrozen | Flaw::IntendsStopped => {
                (Protocol { operators: true, ..protocol }, Invariant::HeldPublishesNothing)
            }
            Flaw::WithdrawsWithoutFence => {
                (Protocol { withdrawals: 1, ..protocol }, Invariant::HeldPublishesNothing)
            }
            Flaw::ReleasesAnother => {
                (Protocol { withdrawals: 2, ..protocol }, Invariant::HeldPublishesNothing)
            }
            Flaw::ForgetsReply => (Protocol { empties: true, ..protocol }, Invariant::OpenHasNextStep),
        };
        assert!(protocol.breaks(violated, THREADS), "{flaw:?} does not violate {violated:?}");
    }
}

/// Fails unless an exploration breaks an invariant.
fn breaks(explored: Result<Explored, Broken>, flaw: &dyn std::fmt::Debug, violated: &'static str) {
    let found = explored.err().map(|broken| broken.invariant);
    assert_eq!(found, Some(violated), "{flaw:?}");
}

/// Without any one of the rules of waiting, a target never ends, or ends too early or with the wrong words.
#[test]
fn no_rule_of_waiting_can_be_left_out() {
    let waits = |errors| Waits::new(12, errors);
    let forever: &str = Progress::EveryWaitEnds.into();
    for flaw in WaitFlaw::iter() {
        let (waits, violated) = match flaw {
            WaitFlaw::RestartsWait => (Waits { falters: true, ..waits(&[]) }, forever),
            WaitFlaw::RestartsRest => {
                (Waits { has_others: true, ..waits(&[ErrorCode::RateLimited]) }, forever)
            }
            WaitFlaw::RestartsPolling => (Waits { processes: true, ..waits(&[]) }, forever),
            WaitFlaw::ThrottlesForFree => (waits(&[ErrorCode::RateLimited]), forever),
            WaitFlaw::RefreshesForFree => {
                (waits(&[ErrorCode::TokenExpired, ErrorCode::RateLimited]), forever)
            }
            WaitFlaw::RefusesForFree => (waits(&[ErrorCode::TokenExpired]), Progress::NothingRepeats.into()),
            WaitFlaw::ContinuesFailed => (Waits { processes: true, ..waits(ERROR) }, forever),
            WaitFlaw::LooksWithoutEnd => (waits(ERROR), forever),
            WaitFlaw::KillsWithoutEnd => {
                (Waits { kills: true, processes: true, ..waits(ERROR) }, Progress::NothingRepeats.into())
            }
            WaitFlaw::ForgetsIntent => (waits(ERROR), WaitInvariant::PublishedOnce.into()),
            WaitFlaw::CancelsInDoubt => {
                let deleted = Waits { wills: &[Will::Delete], most_wills: 1, ..waits(ERROR) };
                (deleted, WaitInvariant::CanceledIsNotLive.into())
            }
            WaitFlaw::HidesDoubtOfLook => (
                Waits { processes: true, ..waits(&[ErrorCode::Rejected(403)]) },
                WaitInvariant::DeadIsHonest.into(),
            ),
            WaitFlaw::HidesDoubtOfApp => (Waits::new(96, SHARED_ERRORS), WaitInvariant::DeadIsHonest.into()),
            WaitFlaw::HidesDoubtOfWait => {
                let restored = Waits { wills: &[Will::Restored], most_wills: 1, ..waits(&[]) };
                (Waits { is_reply: true, ..restored }, WaitInvariant::DeadIsHonest.into())
            }
            WaitFlaw::IgnoresOwnTime => {
                let edited = Waits { wills: &[Will::Edit], most_wills: 1, ..waits(&[]) };
                (edited, WaitInvariant::NotBeforeTime.into())
            }
            WaitFlaw::IgnoresLease => {
                let withdrawn =
                    Waits { wills: &[Will::Withdraw, Will::RetryNow], most_wills: 2, ..waits(ERROR) };
                (Waits { containers: 2, ..withdrawn }, WaitInvariant::WithdrawnAttemptsNothing.into())
            }
            WaitFlaw::ForgetsPlace => {
                let longer = Waits { wills: &[Will::LengthenParent], most_wills: 1, ..waits(ERROR) };
                (Waits { is_reply: true, ..longer }, WaitInvariant::PlaceIsKept.into())
            }
            WaitFlaw::KeepsWaitOfEdited => {
                let edited = Waits { wills: &[Will::Edit], most_wills: 1, ..Waits::new(8, &[]) };
                (Waits { has_file: true, ..edited }, WaitInvariant::WaitsItsTime.into())
            }
            WaitFlaw::KeepsRestOfReleased => {
                let frozen =
                    Waits { wills: &[Will::Freeze], most_wills: 1, ..waits(&[ErrorCode::RateLimited]) };
                (Waits { has_others: true, ..frozen }, WaitInvariant::WaitsItsTime.into())
            }
        };
        breaks(Waits { flaw: Some(flaw), ..waits }.explore(), &flaw, violated);
    }
}

/// Each invariant of waiting that no left-out rule breaks is broken by a negated condition.
#[test]
fn each_invariant_of_waiting_can_be_broken() {
    let waits = Waits::new(12, &[]);
    for (condition, waits, violated) in [
        (Condition::AwaitsFile, Waits { has_file: true, ..waits }, WaitInvariant::FilesAreAwaited),
        (Condition::IsReply, Waits { is_reply: true, ..waits }, WaitInvariant::ReplyFollows),
        (
            Condition::IsResting,
            Waits { has_others: true, errors: &[ErrorCode::RateLimited], ..waits },
            WaitInvariant::RestingPublishesNothing,
        ),
    ] {
        breaks(Waits { rules: Rules::negating(condition), ..waits }.explore(), &condition, violated.into());
    }
}

/// Without any one of the rules of replies, edits, tenants and messages an invariant is violated.
#[test]
fn no_rule_of_the_other_models_can_be_left_out() {
    for flaw in ReplyFlaw::iter() {
        let violated = match flaw {
            ReplyFlaw::IntendsBelowHeld | ReplyFlaw::IntendsBelowUnpublished | ReplyFlaw::ReleasesEarly => {
                ReplyInvariant::NothingBelowDeleted
            }
            ReplyFlaw::WithdrawsUnderCall => ReplyInvariant::NothingDeletedAbove,
            ReplyFlaw::SkipsLookup => ReplyInvariant::PublishedOnce,
        };
        let replies = Replies { begins: 3, deletions: 1, flaw: Some(flaw) };
        breaks(replies.explore(), &flaw, violated.into());
    }
    for flaw in EditFlaw::iter() {
        let violated = match flaw {
            EditFlaw::Overlaps
            | EditFlaw::TakesFormer
            | EditFlaw::ForgetsDoubt
            | EditFlaw::ReleasesEarly
            | EditFlaw::RecordsFormer => EditInvariant::RecordedIsMade,
            EditFlaw::TellsDoubtAsRefused => EditInvariant::RefusedIsNotMade,
        };
        breaks(Edits { flaw: Some(flaw) }.explore(), &flaw, violated.into());
    }
    for flaw in TenantFlaw::iter() {
        let violated = match flaw {
            TenantFlaw::ReusesRow | TenantFlaw::KeepsKeys | TenantFlaw::KeepsProfile => {
                TenantInvariant::AccountsAreBound
            }
            TenantFlaw::ReachesAny => TenantInvariant::PostsAreBound,
            TenantFlaw::ConnectsConnected => TenantInvariant::ConnectedOnce,
        };
        breaks(Tenants { flaw: Some(flaw) }.explore(), &flaw, violated.into());
    }
    for flaw in MessageFlaw::iter() {
        let messages = Messages { accounts: 3, files: 0, wills: 0, flaw: Some(flaw) };
        breaks(messages.explore(), &flaw, MessageInvariant::MessagesAreLinear.into());
    }
}

/// Returns true for a condition that decides only what is told of a target, and how it is numbered. The tables of
/// `domain::publishing` have each of them.
fn is_only_told(condition: Condition) -> bool {
    matches!(condition, Condition::HasFailed | Condition::WasFree | Condition::IsUntold | Condition::IsFirst)
}

/// The models make the decisions of the product: with any condition of them negated, an invariant is violated, a wait does
/// not end, or an end is not reached any more.
#[test]
fn no_condition_of_a_decision_can_be_negated() {
    let protocol = Protocol { operators: true, ..Protocol::new(2, 2) };
    assert_eq!(protocol.failing(THREADS), None);
    for condition in Condition::ALL.iter().copied().filter(|condition| !is_only_told(*condition)) {
        let rules = Rules::negating(condition);
        // In the order of their numbers of states.
        let is_needed = waits().into_iter().any(|(_, waits)| Waits { rules, ..waits }.explore().is_err())
            || Protocol { rules, ..protocol }.failing(THREADS).is_some();
        assert!(is_needed, "{condition} can be negated");
    }
}

/// Which post of several with the same text a look-up may claim: each rule is needed.
#[test]
fn no_rule_of_claiming_can_be_left_out() {
    for flaw in ClaimFlaw::iter() {
        let claims = Claims { flaw: Some(flaw), ..Claims::new(2, 4) };
        let (claims, violated) = match flaw {
            ClaimFlaw::ClaimsUnderWay | ClaimFlaw::ClaimsBesideAccepted | ClaimFlaw::ClaimsTaken => {
                (claims, ClaimInvariant::OnePostEach)
            }
            ClaimFlaw::AcceptedClaims | ClaimFlaw::ClaimsUnsettled => {
                (claims, ClaimInvariant::LiveIsAccountedFor)
            }
            ClaimFlaw::RetriesWithoutIntent | ClaimFlaw::ClaimsBesideEnded => {
                (Claims { retries: true, ..claims }, ClaimInvariant::LiveIsAccountedFor)
            }
            ClaimFlaw::ClaimsOtherText => {
                (Claims { differs: true, ..claims }, ClaimInvariant::PublishedForIt)
            }
            ClaimFlaw::ClaimsAcrossRows => (Claims { rows: 2, ..claims }, ClaimInvariant::PublishedForIt),
        };
        assert!(claims.breaks(violated, THREADS), "{flaw:?} does not violate {violated:?}");
    }
}

/// Collects the names in `Model: …` comments of a directory.
fn named(dir: &Path, names: &mut Vec<String>) {
    let comment = Regex::new(r"// Model: (\w+)\.").unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            named(&path, names);
        } else {
            let source = fs::read_to_string(&path).unwrap();
            names.extend(comment.captures_iter(&source).map(|found| found[1].to_owned()));
        }
    }
}

#[test]
fn each_transition_is_named_at_the_function_that_makes_it() {
    let mut names = Vec::new();
    for crate_name in ["publishing", "store"] {
        named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_name).join("src"), &mut names);
    }
    names.sort();
    assert_eq!(names, model::transitions());
}
