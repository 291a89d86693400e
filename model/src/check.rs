//! Exploration by hashes of the states, which finds out whether one breaks an invariant.
//!
//! Here and not where it is asked for, so that it is compiled with this crate, which is optimized in every profile.

use crate::{ClaimInvariant, Claims, Invariant, Protocol};
use stateright::{Checker, HasDiscoveries, Model};
use std::{fmt::Debug, hash::Hash};

fn explore<M>(model: M, threads: usize, until: HasDiscoveries) -> impl Checker<M>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    model.checker().threads(threads).finish_when(until).spawn_bfs().join()
}

/// Explores all states, and returns their number.
fn check<M>(model: M, threads: usize) -> usize
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = explore(model, threads, HasDiscoveries::All);
    assert!(checker.is_done(), "all states were explored");
    checker.assert_properties();
    checker.unique_state_count()
}

/// Returns whether a state breaks an invariant.
fn breaks<M>(model: M, invariant: &'static str, threads: usize) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let found = HasDiscoveries::AnyOf([invariant].into());
    explore(model, threads, found).discovery(invariant).is_some()
}

impl Protocol {
    /// Explores all states on so many threads, and returns their number.
    ///
    /// # Panics
    ///
    /// If a state breaks an invariant, or an end is not reached: with the steps to it.
    pub fn check(self, threads: usize) -> usize {
        check(self, threads)
    }

    /// Returns whether a state breaks an invariant.
    pub fn breaks(self, invariant: Invariant, threads: usize) -> bool {
        breaks(self, invariant.into(), threads)
    }

    /// Returns the name of an invariant that a state breaks, or of an end that is not reached.
    pub fn failing(self, threads: usize) -> Option<&'static str> {
        let properties = self.properties();
        let checker = explore(self, threads, HasDiscoveries::AnyFailures);
        let mut failing = properties.iter().filter(|property| {
            checker.discovery(property.name).is_some() == property.expectation.discovery_is_failure()
        });
        failing.next().map(|property| property.name)
    }
}

impl Claims {
    /// Explores all states on so many threads, and returns their number.
    ///
    /// # Panics
    ///
    /// If a state breaks an invariant, or an end is not reached: with the steps to it.
    pub fn check(self, threads: usize) -> usize {
        check(self, threads)
    }

    /// Returns whether a state breaks an invariant.
    pub fn breaks(self, invariant: ClaimInvariant, threads: usize) -> bool {
        breaks(self, invariant.into(), threads)
    }
}
