//! Exploration of a model whose states are kept, to find out what becomes of each of them.
//!
//! That something never happens can be told of each state by itself. That something ends needs the graph: no way through
//! the steps that nobody has to ask for may be endless, or stop before an end. So the states are kept, and not only their
//! hashes, which bounds their number to some millions.

use foldhash::{HashMap, HashMapExt};
use std::{collections::hash_map::Entry, fmt::Debug, hash::Hash};
use strum::{EnumIter, IntoStaticStr};

/// The cause of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The product, or what is around it.
    Course,
    /// Time that passes.
    Time,
    /// A user or an operator, who may also leave it.
    Will,
}

/// A step, and the state after it.
pub(crate) struct Next<S> {
    pub(crate) name: &'static str,
    pub(crate) cause: Cause,
    pub(crate) state: S,
}

/// A model whose states are kept.
pub(crate) trait Kept {
    type State: Copy + Debug + Eq + Hash;

    /// Returns the first states.
    fn begin(&self) -> Vec<Self::State>;

    /// Appends each step that may follow a state.
    fn follow(&self, state: &Self::State, next: &mut Vec<Next<Self::State>>);

    /// Returns the name of an invariant that a state breaks.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;

    /// Returns true if nothing has to follow a state. Models that are about something else say so of every state.
    fn has_ended(&self, state: &Self::State) -> bool;
}

/// A statement about the ways through the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
pub enum Progress {
    /// Each target ends within a bounded time, whatever the platform answers, and though no user does anything.
    EveryWaitEnds,
    /// No state comes again before time has passed.
    NothingRepeats,
}

/// The result of an exploration in which every invariant holds.
#[derive(Clone, Copy, Debug)]
pub struct Explored {
    /// Number of states.
    pub states: usize,
    /// Steps of the longest way to an end that nobody hastens.
    pub longest: u32,
}

/// An invariant that does not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Steps that lead to the state that breaks it, each with the state after it.
    pub trace: Vec<String>,
}

/// Explores all states of a model.
///
/// # Errors
///
/// With the first invariant that does not hold.
pub(crate) fn explore<M: Kept>(model: &M) -> Result<Explored, Broken> {
    let mut graph = Graph { states: Vec::new(), index: HashMap::new(), first: vec![0], steps: Vec::new() };
    for state in model.begin() {
        graph.insert(state, None);
    }
    let mut next = Vec::new();
    let mut at = 0;
    while at < graph.states.len() {
        let state = graph.states[at].state;
        if let Some(invariant) = model.broken(&state) {
            return Err(Broken { invariant, trace: graph.trace(at) });
        }
        model.follow(&state, &mut next);
        let has_ended = model.has_ended(&state);
        for step in next.drain(..) {
            let to = graph.insert(step.state, Some((number(at), step.name)));
            if step.cause != Cause::Will && !has_ended {
                graph.steps.push(Step { to, takes_time: step.cause == Cause::Time });
            }
        }
        graph.first.push(graph.steps.len());
        at += 1;
    }
    let longest = graph.longest(|state| model.has_ended(state))?;
    Ok(Explored { states: graph.states.len(), longest })
}

/// A state that was found, and the step that found it.
struct Found<S> {
    state: S,
    from: Option<(u32, &'static str)>,
}

/// A step that nobody has to ask for.
#[derive(Clone, Copy)]
struct Step {
    to: u32,
    takes_time: bool,
}

struct Graph<S> {
    states: Vec<Found<S>>,
    index: HashMap<S, u32>,
    /// Of each state, the index of its first step.
    first: Vec<usize>,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    /// On the way that is followed.
    Open,
    Done,
}

impl<S: Copy + Debug + Eq + Hash> Graph<S> {
    /// Returns the number of a state.
    fn insert(&mut self, state: S, from: Option<(u32, &'static str)>) -> u32 {
        match self.index.entry(state) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let at = number(self.states.len());
                self.states.push(Found { state, from });
                *new.insert(at)
            }
        }
    }

    /// Returns the steps to a state.
    fn trace(&self, at: usize) -> Vec<String> {
        let mut trace = Vec::new();
        let mut at = Some(at);
        while let Some(index) = at {
            let Found { state, from } = &self.states[index];
            trace.push(format!("{}: {state:?}", from.map_or("Begin", |(_, name)| name)));
            at = from.map(|(before, _)| before as usize);
        }
        trace.reverse();
        trace
    }

    /// Returns the length of the longest way that nobody has to ask for.
    fn longest(&self, has_ended: impl Fn(&S) -> bool) -> Result<u32, Broken> {
        let mut marks = vec![Mark::New; self.states.len()];
        let mut lengths = vec![0_u32; self.states.len()];
        // The states of a way, each with the next of its steps.
        let mut way: Vec<(usize, usize)> = Vec::new();
        for begin in 0..self.states.len() {
            if marks[begin] == Mark::New {
                way.push((begin, self.first[begin]));
                marks[begin] = Mark::Open;
            }
            while let Some((at, step)) = way.last_mut() {
                let at = *at;
                if *step == self.first[at + 1] {
                    if self.first[at] == self.first[at + 1] && !has_ended(&self.states[at].state) {
                        return Err(Broken {
                            invariant: Progress::EveryWaitEnds.into(),
                            trace: self.trace(at),
                        });
                    }
                    marks[at] = Mark::Done;
                    way.pop();
                    if let Some((before, _)) = way.last() {
                        lengths[*before] = lengths[*before].max(lengths[at] + 1);
                    }
                    continue;
                }
                let to = self.steps[*step].to as usize;
                *step += 1;
                match marks[to] {
                    Mark::New => {
                        marks[to] = Mark::Open;
                        way.push((to, self.first[to]));
                    }
                    Mark::Open => return Err(self.circle(&way, to)),
                    Mark::Done => lengths[at] = lengths[at].max(lengths[to] + 1),
                }
            }
        }
        Ok(lengths.into_iter().max().unwrap_or_default())
    }

    /// Returns what a way breaks that comes to one of its states again.
    fn circle(&self, way: &[(usize, usize)], to: usize) -> Broken {
        let begin = way.iter().position(|(at, _)| *at == to).expect("the state is on the way");
        let circle = &way[begin..];
        let takes_time = circle.iter().any(|(_, next)| self.steps[next - 1].takes_time);
        let progress = if takes_time { Progress::EveryWaitEnds } else { Progress::NothingRepeats };
        let mut trace = self.trace(to);
        trace.extend(circle[1..].iter().map(|(at, _)| format!("And: {:?}", self.states[*at].state)));
        trace.push("And the state before again".to_owned());
        Broken { invariant: progress.into(), trace }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("the number of states is bounded")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to 3, or as a flaw makes it.
    struct Count {
        after: [Vec<(Cause, u8)>; 4],
    }

    impl Kept for Count {
        type State = u8;

        fn begin(&self) -> Vec<u8> {
            vec![0]
        }

        fn follow(&self, state: &u8, next: &mut Vec<Next<u8>>) {
            let after = self.after[usize::from(*state)].iter();
            next.extend(after.map(|(cause, state)| Next { name: "Count", cause: *cause, state: *state }));
        }

        fn broken(&self, state: &u8) -> Option<&'static str> {
            (*state == 2).then_some("NeverTwo")
        }

        fn has_ended(&self, state: &u8) -> bool {
            *state == 3
        }
    }

    #[test]
    fn ways_without_an_end_are_found() {
        use Cause::{Course, Time, Will};
        for (after, expected) in [
            ([vec![(Course, 1), (Time, 3)], vec![(Course, 3)], vec![], vec![]], Ok(2)),
            // A step that somebody may want is no way to an end, and none without one.
            ([vec![(Course, 3), (Will, 1)], vec![(Course, 3), (Will, 0)], vec![], vec![(Will, 0)]], Ok(1)),
            ([vec![(Course, 1)], vec![(Will, 3)], vec![], vec![]], Err("EveryWaitEnds")),
            ([vec![(Course, 1)], vec![(Time, 0), (Course, 3)], vec![], vec![]], Err("EveryWaitEnds")),
            ([vec![(Course, 1)], vec![(Course, 0), (Course, 3)], vec![], vec![]], Err("NothingRepeats")),
            ([vec![(Course, 0), (Course, 3)], vec![], vec![], vec![]], Err("NothingRepeats")),
            ([vec![(Course, 2)], vec![], vec![(Course, 3)], vec![]], Err("NeverTwo")),
        ] {
            let explored = explore(&Count { after: after.clone() });
            let found = explored.map(|explored| explored.longest).map_err(|broken| broken.invariant);
            assert_eq!(found, expected, "{after:?}");
        }
    }
}
