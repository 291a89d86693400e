//! Rules of an attempt that need neither a database nor a platform.

use super::*;
use domain::Owner;
use serde_json::{Value, json};
use store::{accounts::grants::AccountGrant, posts::Container, publishing::Parent};

const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn platform(id: &str) -> &'static Adapter {
    platforms::get(id).unwrap()
}

fn entry(position: u16) -> Entry {
    Entry {
        container: Container::new(position, "text".to_owned(), Vec::new()),
        checkpoint: Value::Null,
        commit_begun_at: None,
        commit_deadline: None,
        doubted_since: None,
        commit_ended_at: None,
        ambiguous_error_code: None,
        accepted: false,
        is_restored: false,
        platform_id: None,
    }
}

/// Returns an attempt at a post with this number of containers.
fn attempt(place: Place, containers: u16, scopes: &[&str]) -> Attempt {
    let account = AccountGrant {
        id: NIL.parse().unwrap(),
        platform: "x".to_owned(),
        network_unique_id: String::new(),
        username: String::new(),
        account_type: String::new(),
        network: None,
        grant_sealed: None,
        grant_version: 1,
    };
    let (post, target) = (NIL.parse().unwrap(), NIL.parse().unwrap());
    Attempt {
        key: TargetKey { owner: Owner::NOBODY, post, target, version: 1 },
        fence: 1,
        status: TargetStatus::Queued,
        attempts: 1,
        free_attempts: 0,
        unanswered: 0,
        is_counted: true,
        token_attempts: 0,
        throttled_since: None,
        processing_since: None,
        begun_at: at(0),
        created_at: at(0),
        due_at: at(0),
        settings: json!({}),
        account,
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        place,
        barred: None,
        stop_reason: None,
        last_failure: None,
        waiting: None,
        waited_in_vain: None,
        url: None,
        is_account_active: true,
        is_app_held: false,
        entries: (0..containers).map(entry).collect(),
    }
}

fn below() -> Place {
    Place::Below(Parent { root: "1".to_owned(), last: "2".to_owned() })
}

#[test]
fn the_last_look_comes_when_the_window_closes() {
    let window = Duration::from_secs(600);
    let next =
        |pause: u64, now| left(at(0), window, at(now)).map(|left| Duration::from_secs(pause).min(left));
    // Neither a platform's poll interval nor its Retry-After ends a window early, or reaches beyond it.
    assert_eq!(next(5, 0), Some(Duration::from_secs(5)));
    assert_eq!(next(900, 10), Some(Duration::from_secs(590)));
    assert_eq!(next(5, 598), Some(Duration::from_secs(2)));
    assert_eq!(next(5, 600), None);
    assert_eq!(next(5, 5000), None);
}

#[test]
fn an_attempt_has_the_databases_clock_and_knows_of_its_call() {
    let run = Run {
        attempt: attempt(Place::Own, 1, &[]),
        began: Instant::now() - Duration::from_secs(60),
        left_out: None,
        has_called: AtomicBool::new(false),
    };
    assert!((at(60)..at(120)).contains(&run.now()), "{}", run.now());
    assert!(!run.has_called.load(Ordering::Relaxed));
    run.call();
    assert!(run.has_called.load(Ordering::Relaxed));
}

#[test]
fn a_failure_has_the_number_of_its_attempt_but_not_before_the_first() {
    let failure = Failure::rate_limited("too fast", Some(Duration::from_secs(7)));
    assert_eq!(numbered(0, failure.clone()), failure);
    let message = "attempt 3 of 10: too fast".to_owned();
    assert_eq!(numbered(3, failure.clone()), Failure { message, ..failure });
}

#[test]
fn containers_without_a_place_are_left_out_unless_they_may_be_live() {
    let [none, begun, live]: [fn(&mut Attempt); 3] = [
        |_| {},
        |attempt| attempt.entries[1].commit_begun_at = Some(at(0)),
        |attempt| attempt.entries[1].platform_id = Some("7".to_owned()),
    ];
    let lacking = &["instagram_business_basic"][..];
    for (id, place, scopes, change, kept, told) in [
        ("x", Place::Own, &[][..], none, 3, None),
        (
            "instagram",
            Place::Own,
            &[],
            none,
            2,
            Some((2, "instagram takes one reply; 1 container is left out")),
        ),
        ("tiktok", Place::Own, &[], none, 1, Some((1, "tiktok takes no replies; 2 containers are left out"))),
        ("instagram", Place::Own, lacking, begun, 2, Some((2, "instagram takes replies of an account"))),
        ("instagram", Place::Own, lacking, live, 2, Some((2, "instagram takes replies of an account"))),
        ("instagram", Place::Own, lacking, none, 1, Some((1, "instagram takes replies of an account"))),
        ("instagram", below(), lacking, none, 3, None),
    ] {
        let mut attempt = attempt(place, 3, scopes);
        change(&mut attempt);
        let left_out = leave_out(platform(id), &mut attempt);
        assert_eq!(attempt.entries.len(), kept, "{id} {scopes:?} {left_out:?}");
        assert_eq!(left_out.as_ref().map(|left_out| left_out.from), told.map(|(from, _)| from), "{id}");
        if let Some((left_out, (_, message))) = left_out.zip(told) {
            assert!(left_out.message.starts_with(message), "{}", left_out.message);
        }
    }
}

#[test]
fn a_reply_that_its_account_may_not_make_is_refused_unless_it_may_be_live() {
    let lacking = &["instagram_business_basic"][..];
    for (id, place, scopes, is_begun, refused) in [
        ("tiktok", Place::Own, &[][..], false, None),
        ("tiktok", below(), &[], false, Some("tiktok takes no replies")),
        ("tiktok", Place::Nowhere, &[], false, Some("tiktok takes no replies")),
        ("tiktok", below(), &[], true, None),
        ("x", below(), &[], false, None),
        ("instagram", below(), &[], false, None),
        ("instagram", below(), lacking, false, Some("instagram takes replies of an account")),
        ("instagram", below(), lacking, true, None),
    ] {
        let mut attempt = attempt(place, 1, scopes);
        attempt.entries[0].commit_begun_at = is_begun.then(|| at(0));
        match (check_reply(&attempt, platform(id)), refused) {
            (Ok(()), None) => {}
            (Err(failure), Some(refused)) => {
                assert_eq!(failure.code, ErrorCode::Rejected(403));
                assert!(failure.message.starts_with(refused), "{failure}");
            }
            (found, expected) => panic!("{id} {scopes:?}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn each_container_replies_to_the_one_before_or_to_the_main_one() {
    let known = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    for (id, place, ids, expected) in [
        ("x", Place::Own, &[][..], None),
        ("x", Place::Own, &["a"], Some(("a", "a"))),
        ("x", Place::Own, &["a", "b"], Some(("a", "b"))),
        ("x", below(), &[], Some(("1", "2"))),
        ("x", below(), &["a"], Some(("1", "a"))),
        ("x", Place::Nowhere, &[], None),
        // A platform that takes one comment takes it below the main post.
        ("instagram", Place::Own, &["a"], Some(("a", "a"))),
        ("instagram", below(), &[], Some(("1", "1"))),
    ] {
        let attempt = attempt(place, 1, &[]);
        let found = reply_to(&attempt, Some(platform(id)), &known(ids));
        let found = found.as_ref().map(|to| (&*to.root, &*to.parent));
        assert_eq!(found, expected, "{id} {:?} {ids:?}", attempt.place);
    }
}
