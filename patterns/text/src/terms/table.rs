//! A byte automaton (DFA) as a transition table.

use std::collections::HashMap;
use std::hash::Hash;

/// The number of a state.
pub(super) type StateId = u16;

/// The dead state: no continuation matches.
pub(super) const DEAD: StateId = 0;

/// The maximum number of states of a table. At the limit, a table takes 4 MiB.
// A higher limit takes more memory and time per query. With a lower limit, more expressions are
// rejected.
pub(super) const MAX_STATES: usize = 8_192;

const BYTES: usize = 256;

/// An automaton whose states are computed on demand.
pub(super) trait Automaton {
    type State: Copy + Eq + Hash;

    fn start(&self) -> Self::State;

    /// The state after a byte; `None` if no continuation matches.
    fn next(&self, state: Self::State, byte: u8) -> Option<Self::State>;

    /// The distance of a match that ends here.
    fn distance(&self, state: Self::State) -> Option<u8>;
}

/// An automaton has more than [`MAX_STATES`] states.
#[derive(Debug)]
pub(super) struct TooManyStates;

/// The next state for each state and byte; [`DEAD`] if no match can follow.
pub(super) struct Table {
    next: Vec<[StateId; BYTES]>,
    distances: Vec<Option<u8>>,
    start: StateId,
}

impl Table {
    /// Builds the table of all states that are on the path of a match.
    pub(super) fn of<A: Automaton>(automaton: &A) -> Result<Self, TooManyStates> {
        let start = automaton.start();
        let mut table = Self { next: vec![[DEAD; BYTES]], distances: vec![None], start: 1 };
        let mut numbers = HashMap::from([(start, table.start)]);
        let mut found = vec![start];
        while let Some(&from) = found.get(table.next.len() - 1) {
            let mut row = [DEAD; BYTES];
            // Most bytes lead to the same state as the byte before.
            let mut last = (None, DEAD);
            for (byte, next) in (0..=u8::MAX).zip(&mut row) {
                let to = automaton.next(from, byte);
                if to != last.0 {
                    let number = to.map_or(DEAD, |to| {
                        *numbers.entry(to).or_insert_with(|| {
                            found.push(to);
                            StateId::try_from(found.len()).unwrap_or(StateId::MAX)
                        })
                    });
                    last = (to, number);
                }
                *next = last.1;
            }
            if found.len() >= MAX_STATES {
                return Err(TooManyStates);
            }
            table.next.push(row);
            table.distances.push(automaton.distance(from));
        }
        Ok(table.without_hopeless_states())
    }

    /// Redirects transitions to [`DEAD`] if no match can follow.
    fn without_hopeless_states(mut self) -> Self {
        let mut before = vec![vec![]; self.next.len()];
        for (from, row) in (0..).zip(&self.next) {
            for to in row.chunk_by(PartialEq::eq).filter_map(<[_]>::first) {
                if let Some(before) = before.get_mut(usize::from(*to)) {
                    before.push(from);
                }
            }
        }
        let mut has_hope: Vec<bool> = self.distances.iter().map(Option::is_some).collect();
        let mut open: Vec<usize> =
            (0..has_hope.len()).filter(|at| has_hope.get(*at) == Some(&true)).collect();
        while let Some(state) = open.pop() {
            for &from in before.get(state).into_iter().flatten() {
                if let Some(has_hope @ false) = has_hope.get_mut(from) {
                    *has_hope = true;
                    open.push(from);
                }
            }
        }
        let is_hopeless = |state: StateId| has_hope.get(usize::from(state)) != Some(&true);
        for next in self.next.iter_mut().flatten().filter(|next| is_hopeless(**next)) {
            *next = DEAD;
        }
        if is_hopeless(self.start) {
            self.start = DEAD;
        }
        self
    }

    pub(super) fn states(&self) -> usize {
        self.next.len()
    }

    pub(super) fn start(&self) -> StateId {
        self.start
    }

    #[inline]
    pub(super) fn next(&self, state: StateId, byte: u8) -> StateId {
        let row = self.next.get(usize::from(state));
        row.and_then(|row| row.get(usize::from(byte))).copied().unwrap_or(DEAD)
    }

    /// The distance of a match that ends in `state`.
    pub(super) fn distance(&self, state: StateId) -> Option<u8> {
        self.distances.get(usize::from(state)).copied().flatten()
    }

    /// The smallest byte, at least `least`, after which a match can follow, and the state after
    /// this byte.
    pub(super) fn least(&self, state: StateId, least: u8) -> Option<(u8, StateId)> {
        let row = self.next.get(usize::from(state))?;
        let found = (least..=u8::MAX).zip(row.get(usize::from(least)..)?);
        found.map(|(byte, next)| (byte, *next)).find(|(_, next)| *next != DEAD)
    }
}
