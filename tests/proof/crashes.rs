//! Crash matrix: the worker is killed at each call that publishing makes, at three moments of the call.
//!
//! An undisturbed publish of each kind of post on each platform shows the calls ([`posts`]). Each call is then a
//! case for each moment ([`kill`]): the same post from a new account, interrupted by a SIGKILL at exactly that
//! call. Another worker continues. Each container is then on the platform once, or the target says that nobody
//! can tell ([`verdict`]).

mod kill;
mod posts;
mod verdict;

use kill::{Case, Crash, Moment, Place};
use platforms::Adapter;
use posts::{Kind, Posts, Sequence};
use tests::{
    Receiver,
    proof::{self, Section},
};
use verdict::Verdict;

/// Fewest and most cases that share a kill.
const CASES_PER_KILL: (usize, usize) = (6, 60);
/// Kills in a row of which none hit its case, after which the test fails.
const MAX_MISSES: usize = 3;

#[tokio::test]
async fn a_worker_killed_at_any_call_leaves_one_post_or_a_warning() {
    let mut section = Section::new("3-crashes", "Crash matrix");
    // A slow machine needs more than the 8 s that a faster pace leaves a publishing call: here 18 s.
    let mut posts = Posts::start(if proof::is_full() { 0.3 } else { 0.1 }).await;
    let receiver = Receiver::start().await;
    posts.world.subscribe(&receiver.url).await;
    let (chosen, unsupported) = chosen(&posts).await;
    let sequences = posts.undisturbed(&chosen).await;
    let cases = cases(&sequences);
    let (crashes, kills, left_out) = killed(&mut posts, &cases).await;
    let mut verdicts = Vec::new();
    let mut faults = Vec::new();
    for crash in &crashes {
        match verdict::of(&posts.world, crash).await {
            Ok(verdict) => verdicts.push((crash, verdict)),
            Err(fault) => faults.push(fault),
        }
    }
    assert!(faults.is_empty(), "{} of {} posts:\n{}", faults.len(), crashes.len(), faults.join("\n"));
    let deliveries = verdict::events(&receiver, &crashes).await;
    report(&mut section, &sequences, &unsupported, &verdicts);
    section.figure("Further polls that no publish made again", left_out);
    section.figure("Kills of the worker", kills);
    section.figure("Targets with exactly one `post.target.*` event", crashes.len());
    section.figure("Deliveries of these events, repetitions included", deliveries);
    section.write();
}

/// Returns the kinds of posts that this form covers, by platform, and why a platform doesn't have one. The short
/// form covers one kind per platform; none with a video, whose processing takes long.
async fn chosen(posts: &Posts) -> (Vec<(&'static Adapter, Kind)>, Vec<String>) {
    let (mut chosen, mut unsupported) = (Vec::new(), Vec::new());
    for (index, platform) in platforms::all().iter().copied().enumerate() {
        let kinds = if proof::is_full() {
            Kind::ALL.to_vec()
        } else {
            // So that Reddit, which processes images for up to half an hour, has another kind.
            [Kind::Thread, Kind::Image, Kind::Text].into_iter().cycle().skip(index + 2).take(3).collect()
        };
        let mut has_one = false;
        for kind in kinds {
            match posts.unsupported(platform, kind).await {
                _ if has_one && !proof::is_full() => {}
                Some(reason) => unsupported.push(format!("{} {kind}: {reason}", platform.id)),
                None => {
                    chosen.push((platform, kind));
                    has_one = true;
                }
            }
        }
    }
    (chosen, unsupported)
}

/// Returns the cases of this form: each moment of each call; of each publishing call in the short form.
fn cases(sequences: &[Sequence]) -> Vec<Case<'_>> {
    let calls = sequences.iter().flat_map(|sequence| {
        let calls = sequence.calls.iter().enumerate();
        calls
            .filter(|(_, call)| call.has_published || proof::is_full())
            .map(move |(index, _)| (sequence, index))
    });
    calls.flat_map(|(sequence, call)| Moment::ALL.map(|moment| Case { sequence, call, moment })).collect()
}

/// Interrupts each case at its moment, and returns all interrupted posts, the number of kills, and the number of
/// cases left out. A case that was interrupted at another moment is repeated. How often a platform is polled depends
/// on its pace, so a further poll may not come again.
async fn killed<'a>(posts: &mut Posts, cases: &[Case<'a>]) -> (Vec<Crash<'a>>, usize, usize) {
    let (fewest, most) = CASES_PER_KILL;
    let (mut crashes, mut kills, mut misses, mut size) = (Vec::new(), 0, 0, most);
    let mut queue = cases.to_vec();
    while !queue.is_empty() {
        // Calls that come equally late share a kill, so that the first is not held for long.
        queue.sort_by_key(|case| (case.sequence.kind == Kind::ExpiredToken, case.at()));
        let wave: Vec<_> = queue.drain(..queue.len().min(size)).collect();
        let wave = posts.kill_during(&wave).await;
        kills += 1;
        let missed = wave.iter().filter(|crash| crash.place.is_none()).map(|crash| crash.case);
        queue.extend(missed);
        let hits = wave.iter().filter(|crash| crash.place.is_some()).count();
        println!("kill {kills}: {hits} of {} cases at their moment, {} left", wave.len(), queue.len());
        for crash in &wave {
            match verdict::of(&posts.world, crash).await {
                Ok(Verdict::Once) => {}
                other => println!("{} {:?} {other:?}", crash.case, crash.place),
            }
        }
        misses = if hits == 0 { misses + 1 } else { 0 };
        if misses == MAX_MISSES && queue.iter().all(Case::is_further_poll) {
            crashes.extend(wave);
            return (crashes, kills, queue.len());
        }
        assert!(misses < MAX_MISSES, "{} cases can't be hit, among them {}", queue.len(), queue[0]);
        // A slow machine makes fewer calls within the time limit of the first.
        size = (2 * hits).clamp(fewest, most);
        crashes.extend(wave);
    }
    (crashes, kills, 0)
}

/// Adds the figures of the cases.
fn report(
    section: &mut Section,
    sequences: &[Sequence],
    unsupported: &[String],
    verdicts: &[(&Crash<'_>, Verdict)],
) {
    let calls = |sequence: &Sequence| sequence.calls.len();
    let mut table =
        "| Calls of a publish | text | image | video | thread | expired token |\n|---|---|---|---|---|---|"
            .to_owned();
    for platform in platforms::all() {
        let counts = Kind::ALL.map(|kind| {
            let mut of_kind =
                sequences.iter().filter(|one| one.platform.id == platform.id && one.kind == kind);
            of_kind.next().map_or("–".to_owned(), |sequence| calls(sequence).to_string())
        });
        table.push_str(&format!("\n| {} | {} |", platform.id, counts.join(" | ")));
    }
    section.text(
        "Each call of an undisturbed publish is a case for each of three moments: the worker is killed with \
         SIGKILL before the platform gets the request, after it processed the request, and after the answer \
         arrived but before it is stored. Another worker ends the post. A thread has three containers; two \
         where the platform takes one comment. With an expired token, the first call is refused and the token \
         refreshed.",
    );
    section.text(table);
    if !unsupported.is_empty() {
        section.text(format!("Not covered, since the platform doesn't have it: {}.", unsupported.join("; ")));
    }
    let count = |right: &dyn Fn(&Crash<'_>, &Verdict) -> bool| {
        verdicts.iter().filter(|(crash, verdict)| right(crash, verdict)).count()
    };
    section.figure("Posts published undisturbed", sequences.len());
    section.figure("Their calls", sequences.iter().map(calls).sum::<usize>());
    section.figure("Cases: a call and a moment", count(&|crash, _| crash.place.is_some()));
    for moment in Moment::ALL {
        let cases = count(&|crash, _| crash.place.is_some() && crash.case.moment == moment);
        section.figure(format!("… {moment}"), cases);
    }
    section.figure("… of these waiting to write it", count(&|crash, _| crash.place == Some(Place::Write)));
    let next = count(&|crash, _| crash.place == Some(Place::NextCall));
    section.figure("… of these in the next call, nothing being written between the two", next);
    section
        .figure("Posts interrupted at another moment than planned", count(&|crash, _| crash.place.is_none()));
    section.figure(
        "Interrupted posts with each container live once",
        count(&|_, verdict| *verdict == Verdict::Once),
    );
    for (verdict, name) in [
        (Verdict::Warning, "… that say \"it may be live: look before posting again\""),
        (Verdict::TokenLost, "… whose replaced refresh token was lost, nothing being live"),
    ] {
        let crashes: Vec<_> =
            verdicts.iter().filter(|(_, found)| *found == verdict).map(|(crash, _)| crash).collect();
        section.figure(name, crashes.len());
        if !crashes.is_empty() {
            let cases: Vec<_> = crashes.iter().map(|crash| crash.case.to_string()).collect();
            section.text(format!("{}: {}.", name.trim_start_matches("… "), cases.join("; ")));
        }
    }
}
