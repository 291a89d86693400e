//! Shares of a worker's slots per organization.
//!
//! Slots are few, and some work uses one for a minute or more: a platform that does not answer, a slow download.
//! So an organization may take another slot only while it uses fewer than are free. Alone it gets half of them;
//! each of `n` greedy ones gets `1 / (n + 1)`, and as many are left for the next one (dynamic thresholds,
//! <https://doi.org/10.1109/90.664262>).
//!
//! An activity whose organization has used its share releases its slot at once and waits in its workflow. The
//! wait depends on how fast the organization's slots become free and on how many wait already, so that thousands
//! of them cost no more wake-ups than slots become free. No attempt is counted for it. Calls with a waiting client
//! are refused instead, with 503. So a tenant whose platform, endpoint or address does not answer delays only
//! itself.

use domain::{Failure, OrgId};
use std::{collections::HashMap, sync::Mutex, time::Duration};
use temporalio_common::error::{ApplicationErrorCategory, ApplicationFailure};
use temporalio_sdk::activities::ActivityError;
use tokio::time::Instant;
use workflows::activities::CROWDED;

/// Shortest wait.
pub(crate) const MIN_WAIT: Duration = Duration::from_secs(2);
/// Longest wait.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The slots of one queue in this process.
pub(crate) struct Shares {
    slots: usize,
    /// The shortest wait.
    least: Duration,
    epoch: Instant,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// By all organizations.
    slots: usize,
    by: HashMap<OrgId, Holding>,
}

/// The slots of one organization.
#[derive(Default)]
struct Holding {
    slots: usize,
    /// When they were taken, summed up: seconds since the epoch.
    since: f64,
    /// When the last of those that wait is to try again.
    last_turn: Option<Instant>,
}

impl Shares {
    /// Creates shares of `slots` slots with a shortest wait of `least`.
    pub(crate) fn new(slots: usize, least: Duration) -> Self {
        Self { slots, least, epoch: Instant::now(), taken: Mutex::default() }
    }

    /// Takes a slot for the organization. `jitter` is a random number from 0..1.
    ///
    /// # Errors
    ///
    /// The time to wait, when the share is used up.
    pub(crate) fn take(&self, org: OrgId, jitter: f64) -> Result<Share<'_>, Duration> {
        self.take_at(org, jitter, Instant::now())
    }

    /// Returns true while at least half of the slots are free.
    pub(crate) fn are_roomy(&self) -> bool {
        self.taken.lock().expect("nobody panics with it").slots * 2 <= self.slots
    }

    /// Takes a slot for the organization if its share is not used up, and doesn't wait for one.
    pub(crate) fn try_take(&self, org: OrgId) -> Option<Share<'_>> {
        let mut taken = self.taken.lock().expect("nobody panics with it");
        self.take_free(&mut taken, org, Instant::now())
    }

    fn take_free(&self, taken: &mut Taken, org: OrgId, now: Instant) -> Option<Share<'_>> {
        let since = (now - self.epoch).as_secs_f64();
        let free = self.slots.saturating_sub(taken.slots);
        let holding = taken.by.get(&org).map_or(0, |holding| holding.slots);
        (holding < free).then(|| {
            taken.slots += 1;
            let holding = taken.by.entry(org).or_default();
            holding.slots += 1;
            holding.since += since;
            Share { shares: self, org, since }
        })
    }

    fn take_at(&self, org: OrgId, jitter: f64, now: Instant) -> Result<Share<'_>, Duration> {
        let mut taken = self.taken.lock().expect("nobody panics with it");
        if let Some(share) = self.take_free(&mut taken, org, now) {
            return Ok(share);
        }
        let since = (now - self.epoch).as_secs_f64();
        let turn = match taken.by.get_mut(&org) {
            Some(holding) => {
                // In the long run a slot is held for twice its present age, on average.
                let slots = holding.slots as f64;
                let held_for = 2.0 * (since - holding.since / slots).max(0.0);
                let next = holding.last_turn.unwrap_or(now).max(now + self.least);
                let turn = (next + Duration::from_secs_f64(held_for / slots)).min(now + MAX_WAIT);
                *holding.last_turn.insert(turn)
            }
            // Others use every slot.
            None => now + self.least,
        };
        Err((turn - now).mul_f64(0.75 + jitter / 2.0))
    }
}

/// A slot of an organization; dropping it releases it.
pub(crate) struct Share<'a> {
    shares: &'a Shares,
    org: OrgId,
    since: f64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock().expect("nobody panics with it");
        taken.slots -= 1;
        if let Some(holding) = taken.by.get_mut(&self.org) {
            holding.slots -= 1;
            holding.since -= self.since;
            if holding.slots == 0 {
                taken.by.remove(&self.org);
            }
        }
    }
}

impl Shares {
    /// Takes a slot for a call with a waiting client.
    ///
    /// # Errors
    ///
    /// When the share is used up.
    pub(crate) fn admit(&self, org: OrgId) -> anyhow::Result<Share<'_>> {
        self.take(org, 0.5).map_err(|_| anyhow::anyhow!("the organization asks too much at once"))
    }

    /// Works in such a slot until `limit`: when its client has given up, nobody waits for the result any more, and who
    /// asks again needs the slot.
    ///
    /// # Errors
    ///
    /// When the share is used up, when the work fails, and when it does not end in time.
    pub(crate) async fn serve<T>(
        &self,
        org: OrgId,
        limit: Duration,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let _share = self.admit(org)?;
        let late = |_| Err(anyhow::anyhow!("it took more than {} s", limit.as_secs()));
        tokio::time::timeout(limit, work).await.unwrap_or_else(late)
    }
}

/// The failure of an activity that Temporal repeats until it gets a share.
pub(crate) fn used_up() -> Failure {
    Failure::network("the organization uses its share of this worker", false)
}

/// The failure that makes a workflow wait and then repeat the activity.
pub(crate) fn crowded(wait: Duration) -> ActivityError {
    let error = anyhow::anyhow!("the organization uses its share of this worker");
    ActivityError::application(
        ApplicationFailure::builder(error)
            .type_name(CROWDED.to_owned())
            .details(wait)
            .category(ApplicationErrorCategory::Benign)
            // Not by Temporal's count of tries.
            .non_retryable(true)
            .build(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };
    use uuid::Uuid;

    fn org(number: u128) -> OrgId {
        OrgId(Uuid::from_u128(number))
    }

    /// Slots for the organization until it gets no more.
    fn all<'a>(shares: &'a Shares, number: u128) -> Vec<Share<'a>> {
        std::iter::from_fn(|| shares.take(org(number), 0.5).ok()).collect()
    }

    #[test]
    fn one_organization_gets_half_and_leaves_room_for_the_next() {
        let shares = Shares::new(100, MIN_WAIT);
        let first = all(&shares, 1);
        assert_eq!(first.len(), 50);
        let second = all(&shares, 2);
        assert_eq!(second.len(), 25);
        assert!(shares.take(org(3), 0.5).is_ok());
    }

    #[test]
    fn greedy_organizations_come_to_equal_shares_and_there_is_room_for_one_more() {
        let shares = Shares::new(100, MIN_WAIT);
        let mut held: Vec<Vec<Share<'_>>> = (0..9).map(|number| all(&shares, number)).collect();
        // An organization that gives a slot back asks for another at once, as do all the others.
        for round in 0..1000 {
            held[round % 9].pop();
            for (number, slots) in (0..).zip(&mut held) {
                slots.extend(shares.take(org(number), 0.5).ok());
            }
        }
        for slots in &held {
            assert!((9..=11).contains(&slots.len()), "{:?}", held.iter().map(Vec::len).collect::<Vec<_>>());
        }
        assert!(all(&shares, 99).len() >= 4);
    }

    #[test]
    fn even_the_only_slot_can_be_had_and_nothing_is_kept_of_who_holds_none() {
        let shares = Shares::new(1, MIN_WAIT);
        let only = shares.take(org(1), 0.5).unwrap_or_else(|_| panic!("it is free"));
        assert!(shares.take(org(1), 0.5).is_err());
        assert_eq!(shares.take(org(2), 0.5).err(), Some(MIN_WAIT));
        drop(only);
        assert!(shares.take(org(2), 0.5).is_ok());
        assert!(shares.taken.lock().unwrap().by.is_empty());
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_gives_its_slot_back() {
        let shares = Shares::new(1, MIN_WAIT);
        let never = std::future::pending::<anyhow::Result<()>>();
        let error = shares.serve(org(1), Duration::ZERO, never).await.unwrap_err();
        assert_eq!(error.to_string(), "it took more than 0 s");
        let work = async { shares.take(org(2), 0.5).map(drop).map_err(|_| anyhow::anyhow!("no slot")) };
        let in_it = shares.serve(org(1), MIN_WAIT, work).await.unwrap_err();
        assert_eq!(in_it.to_string(), "no slot");
        assert!(shares.take(org(2), 0.5).is_ok());
    }

    #[test]
    fn the_more_wait_and_the_longer_slots_are_held_the_longer_is_the_wait() {
        let shares = Shares::new(100, MIN_WAIT);
        let held = all(&shares, 1);
        let waits = |at: Duration, number: usize| -> Vec<f64> {
            let now = shares.epoch + at;
            (0..number).map(|_| shares.take_at(org(1), 0.5, now).err().unwrap().as_secs_f64()).collect()
        };
        // Fifty slots that have been held for a second become free at 25 a second.
        let early = waits(Duration::from_secs(1), 100);
        assert!((2.0..2.1).contains(&early[0]) && (5.9..6.1).contains(&early[99]), "{early:?}");
        // Held for 30 s, they do so at less than one a second; the next come after those.
        let late = waits(Duration::from_secs(30), 50);
        assert!(late.windows(2).all(|pair| pair[1] - pair[0] > 1.1), "{late:?}");
        assert!(waits(Duration::from_secs(30), 1000)[999] <= MAX_WAIT.as_secs_f64());
        drop(held);
        let _again = all(&shares, 1);
        assert!(shares.take(org(1), 0.5).err().unwrap() < MIN_WAIT * 2, "nobody waits any more");
    }

    /// Activities that take no share, each with the reason.
    const WITHOUT: [(&str, &str); 13] = [
        ("abandon_import", "a statement"),
        ("begin_open_id", "of a person who belongs to no organization yet; counted by address"),
        ("clean_up_media", "of all organizations"),
        ("erase_grant", "a statement"),
        (
            "exchange_code",
            "a code can be exchanged once, and a person waits; logins are limited by their rate",
        ),
        ("fail_media", "a statement"),
        ("finalize_login", "a transaction"),
        ("finish_open_id", "as begin_open_id"),
        ("prune_metrics", "of all organizations"),
        ("refresh_token", "between two attempts of a target that have a share, and its tries are few"),
        ("reveal_secret", "a statement"),
        ("revoke_grant", "its tries are few, and disconnecting is limited by its rate"),
        ("settle", "a transaction"),
    ];

    /// Returns the sources of a folder.
    fn sources(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let source = |path: PathBuf| {
            if path.is_dir() { sources(&path) } else { vec![fs::read_to_string(path).unwrap()] }
        };
        entries.flat_map(source).collect()
    }

    /// Reads what is registered, since an activity can't be asked whether it takes a share: workers register all the
    /// activities of a type, and the macro makes one of each function with a definition.
    #[test]
    fn every_activity_takes_a_share_or_has_a_reason_not_to() {
        let mut without = Vec::new();
        let mut defined = BTreeSet::new();
        for source in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            for activity in source.split("\n    #[activity(definition = definition::").skip(1) {
                defined.insert(activity.split_once(')').unwrap().0.to_owned());
                let name = activity.split_once("async fn ").unwrap().1.split_once('(').unwrap().0;
                if !activity.split_once("\n    }\n").unwrap().0.contains("shares") {
                    without.push(name.to_owned());
                }
            }
        }
        without.sort_unstable();
        assert_eq!(without, WITHOUT.map(|(name, _)| name));

        // Those that workflows can call.
        let declarations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflows/src/activities/mod.rs");
        let declarations = fs::read_to_string(declarations).unwrap();
        let definitions = declarations.split_once("pub mod definition {").unwrap().1;
        let markers = definitions.split("pub use super::").skip(1).flat_map(|names| {
            let names = names.split_once("::").unwrap().1.split_once(';').unwrap().0;
            names.split(['{', ',', '}']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
        });
        assert_eq!(defined, markers.collect(), "each definition has one activity");
    }

    #[test]
    fn waits_are_spread() {
        let shares = Shares::new(2, MIN_WAIT);
        let _held = all(&shares, 1);
        let now = Instant::now();
        let [soon, late] = [0.0, 1.0].map(|jitter| shares.take_at(org(1), jitter, now).err().unwrap());
        assert!(soon < MIN_WAIT && late > MIN_WAIT, "{soon:?}, {late:?}");
    }
}
