//! Turns at decoding pictures, which takes a core and hundreds of MiB.
//!
//! A process decodes for one organization at a time per mode and kind of work, so that neither test mode nor an animation
//! delays live pictures. An organization stands in the line once, however many pictures it has: who has many waits for
//! themselves, and for each other organization one picture at most. Memory is shared by all lines. A turn ends, because
//! the [process](crate::worker) that does its work does, and so does the wait for one.

use domain::{Mode, OrgId, Owner};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest wait for a turn.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Memory that pictures take together, in MiB. The largest picture takes all of it.
const MEMORY: u32 = 768;
/// Memory that a pixel takes while its picture is decoded and converted, in bytes: four channels of 16 bits, and four of 8.
const PIXEL_BYTES: u64 = 12;

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A still picture, with all its sizes.
    Still,
    /// All frames of an animation.
    Animation,
}

/// The turns of a process.
#[derive(Debug)]
pub(crate) struct Turns {
    /// By mode and kind of work.
    lines: [[Line; 2]; 2],
    memory: Arc<Semaphore>,
    max_wait: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        let memory = Arc::new(Semaphore::new(MEMORY as usize));
        Self { lines: Default::default(), memory, max_wait: MAX_WAIT }
    }
}

/// The organizations that wait for a turn.
#[derive(Debug)]
struct Line {
    turn: Arc<Semaphore>,
    /// The place of each organization that has a turn or waits for one.
    places: Arc<Mutex<HashMap<OrgId, Arc<Semaphore>>>>,
}

impl Default for Line {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), places: Arc::default() }
    }
}

/// A turn; dropping it lets the next one begin.
#[derive(Debug)]
pub(crate) struct Turn {
    _place: Place,
    _turn: OwnedSemaphorePermit,
    memory: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    max_wait: Duration,
}

impl Turn {
    /// Waits for the memory that a picture of this many pixels takes, and returns how many bytes it is; `None` when there
    /// is none in time.
    pub(crate) async fn hold(&mut self, pixels: u64) -> Option<u64> {
        let weight =
            u32::try_from((pixels.saturating_mul(PIXEL_BYTES)) >> 20).unwrap_or(MEMORY).clamp(1, MEMORY);
        let memory = self.memory.clone().acquire_many_owned(weight);
        self.held =
            Some(tokio::time::timeout(self.max_wait, memory).await.ok()?.expect("it is never closed"));
        Some(u64::from(weight) << 20)
    }
}

/// The place of an organization in a line.
#[derive(Debug)]
struct Place {
    line: Arc<Mutex<HashMap<OrgId, Arc<Semaphore>>>>,
    org: OrgId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    fn of(line: &Line, org: OrgId) -> (Self, Arc<Semaphore>) {
        let mut places = line.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(org).or_insert_with(|| Arc::new(Semaphore::new(1))).clone();
        (Self { line: line.places.clone(), org, permit: None }, place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.permit = None;
        let mut places = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        // Each call that waits for the place has a copy of it.
        if places.get(&self.org).is_some_and(|place| Arc::strong_count(place) == 1) {
            places.remove(&self.org);
        }
    }
}

impl Turns {
    /// Waits for a turn; `None` when none comes in time.
    pub(crate) async fn take(&self, owner: Owner, work: Work) -> Option<Turn> {
        let line = &self.lines[usize::from(owner.mode == Mode::Live)][usize::from(work == Work::Animation)];
        let turn = async {
            let (mut place, gate) = Place::of(line, owner.org);
            place.permit = Some(gate.acquire_owned().await.expect("it is never closed"));
            let turn = line.turn.clone().acquire_owned().await.expect("it is never closed");
            Turn {
                _place: place,
                _turn: turn,
                memory: self.memory.clone(),
                held: None,
                max_wait: self.max_wait,
            }
        };
        tokio::time::timeout(self.max_wait, turn).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, future::BoxFuture};
    use uuid::Uuid;

    fn owner(org: u128, mode: Mode) -> Owner {
        Owner { org: OrgId(Uuid::from_u128(org)), mode }
    }

    /// Waits for a turn, which was asked for at once.
    fn asked(turns: &Turns, owner: Owner) -> BoxFuture<'_, Option<Turn>> {
        let mut turn = turns.take(owner, Work::Still).boxed();
        assert!((&mut turn).now_or_never().is_none(), "the line is free");
        turn
    }

    #[tokio::test]
    async fn an_organization_waits_for_one_picture_of_each_other_organization() {
        let turns = Turns::default();
        let [greedy, other] = [1, 2].map(|org| owner(org, Mode::Test));
        let first = turns.take(greedy, Work::Still).await.unwrap();
        let mut more = [greedy; 5].map(|owner| asked(&turns, owner));
        let late = asked(&turns, other);
        drop(first);
        let _its = late.await.unwrap();
        assert!(more.iter_mut().all(|turn| turn.now_or_never().is_none()));
    }

    #[tokio::test]
    async fn modes_and_animations_have_lines_of_their_own() {
        let turns = Turns::default();
        let mut held = Vec::new();
        for mode in Mode::ALL {
            for work in [Work::Still, Work::Animation] {
                held.push(turns.take(owner(1, *mode), work).now_or_never().expect("its line is free"));
            }
        }
        assert_eq!(held.len(), 4);
        drop(held);
        let is_empty = |line: &Line| line.places.lock().unwrap().is_empty();
        assert!(turns.lines.iter().flatten().all(is_empty), "nothing is kept of who has no turn");
    }

    #[tokio::test]
    async fn nobody_waits_without_end() {
        let turns = Turns { max_wait: Duration::ZERO, ..Turns::default() };
        let mut first = turns.take(owner(1, Mode::Live), Work::Still).await.unwrap();
        assert!(turns.take(owner(2, Mode::Live), Work::Still).await.is_none());
        // The largest picture takes all the memory that there is.
        first.hold(u64::MAX).await.unwrap();
        let mut other = turns.take(owner(2, Mode::Test), Work::Still).await.unwrap();
        assert!(other.hold(1).await.is_none());
        drop(first);
        other.hold(1).await.unwrap();
    }
}
