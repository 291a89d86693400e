//! The publishing protocol, explored exhaustively.

use domain::publishing::{Condition, Rules};
use model::{ClaimFlaw, ClaimInvariant, Claims, Flaw, Invariant, Protocol, Transition};
use regex::Regex;
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::{fs, path::Path, time::Instant};
use strum::{IntoEnumIterator, VariantNames};
use tests::proof::{Section, is_full};

/// Cores that the exploration uses.
const THREADS: usize = 2;

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
        ("operators freeze, release and stop", Protocol { operators: true, revives: true, ..of(users) }),
        ("Postgres is restored from a backup", Protocol { restores: true, ..of(backups) }),
    ] {
        let begun = Instant::now();
        let checker = protocol.checker().threads(THREADS).spawn_bfs().join();
        assert!(checker.is_done(), "{name}");
        checker.assert_properties();
        section.figure(
            format!("States, {name} ({} attempts, {} calls)", protocol.begins, protocol.calls),
            format!("{} in {} s", checker.unique_state_count(), begun.elapsed().as_secs()),
        );
    }
    // Targets, and calls.
    for (targets, calls) in if is_full() { [(2, 5), (3, 5)] } else { [(2, 4), (3, 4)] } {
        let begun = Instant::now();
        let checker = Claims { targets, calls, flaw: None }.checker().threads(THREADS).spawn_bfs().join();
        assert!(checker.is_done(), "{targets} targets with the same text");
        checker.assert_properties();
        section.figure(
            format!("States, {targets} posts with the same text ({calls} calls)"),
            format!("{} in {} s", checker.unique_state_count(), begun.elapsed().as_secs()),
        );
    }
    section.figure("Invariants", Invariant::iter().count() + ClaimInvariant::iter().count());
    section.figure("Rules that can't be left out", Flaw::iter().count() + ClaimFlaw::iter().count());
    let negated = Condition::ALL.iter().filter(|condition| decides_whether(**condition));
    section.figure("Conditions that can't be negated", negated.count());
    section.write();
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
            Flaw::ForgetsReply => (Protocol { empties: true, ..protocol }, Invariant::OpenHasNextStep),
        };
        let found = HasDiscoveries::AnyOf([violated.into()].into());
        let checker = protocol.checker().threads(THREADS).finish_when(found).spawn_bfs().join();
        assert!(checker.discovery(violated.into()).is_some(), "{flaw:?} does not violate {violated:?}");
    }
}

/// Returns whether a condition decides whether an attempt begins or a target ends, which the model explores. The others
/// decide when, where and what is told; the tables of `domain::publishing` have each of them.
fn decides_whether(condition: Condition) -> bool {
    !matches!(
        condition,
        Condition::HasFailed
            | Condition::WasFree
            | Condition::NeedsFiles
            | Condition::HasPlace
            | Condition::NeedsNoPlace
            | Condition::LooksUpBelow
            | Condition::KeepsPlace
            | Condition::IsCounted
            | Condition::HasRested
            | Condition::HasWaitedForApp
            | Condition::IsOver
            | Condition::IsUntold
            | Condition::HasRest
            | Condition::IsFirst
    )
}

/// Returns the name of a property that a protocol does not have.
fn failing(protocol: Protocol) -> Option<&'static str> {
    let properties = protocol.properties();
    let found = HasDiscoveries::AnyFailures;
    let checker = protocol.checker().threads(THREADS).finish_when(found).spawn_bfs().join();
    let fails = |name, expectation: &Expectation| {
        checker.discovery(name).is_some() == expectation.discovery_is_failure()
    };
    properties.iter().find(|property| fails(property.name, &property.expectation)).map(|found| found.name)
}

/// The model makes the decisions of the product: with any condition of them negated, an invariant is violated, or an end is
/// not reached any more.
#[test]
fn no_condition_of_a_decision_can_be_negated() {
    let protocol = Protocol { operators: true, ..Protocol::new(2, 2) };
    assert_eq!(failing(protocol), None);
    for condition in Condition::ALL.iter().copied().filter(|condition| decides_whether(*condition)) {
        let negated = Protocol { rules: Rules::negating(condition), ..protocol };
        assert!(failing(negated).is_some(), "{condition} can be negated");
    }
}

/// Which post of several with the same text a look-up may claim: each rule is needed.
#[test]
fn no_rule_of_claiming_can_be_left_out() {
    for flaw in ClaimFlaw::iter() {
        let violated = match flaw {
            ClaimFlaw::ClaimsUnderWay | ClaimFlaw::ClaimsBesideAccepted | ClaimFlaw::ClaimsTaken => {
                ClaimInvariant::OnePostEach
            }
            ClaimFlaw::AcceptedClaims | ClaimFlaw::ClaimsUnsettled => ClaimInvariant::LiveIsAccountedFor,
        };
        let found = HasDiscoveries::AnyOf([violated.into()].into());
        let claims = Claims { targets: 2, calls: 4, flaw: Some(flaw) };
        let checker = claims.checker().threads(THREADS).finish_when(found).spawn_bfs().join();
        assert!(checker.discovery(violated.into()).is_some(), "{flaw:?} does not violate {violated:?}");
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
    let mut transitions = Transition::VARIANTS.to_vec();
    transitions.sort_unstable();
    assert_eq!(names, transitions);
}
