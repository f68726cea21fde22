//! A byte automaton (DFA) as a transition table.

use std::collections::HashMap;
use std::hash::Hash;

/// The number of a state.
pub(super) type StateId = u16;

/// The dead state: no continuation matches.
pub(super) const DEAD: StateId = 0;

/// The maximum number of states of a table. At the limit, a table takes at most 4 MiB.
// A higher limit takes more memory and time per query. With a lower limit, more expressions are
// rejected.
pub(super) const MAX_STATES: usize = 8_192;

/// The number of bytes.
const BYTES: usize = 256;

/// Ranges of bytes that every state treats in the same way. Two bytes of a range lead to the same
/// state.
// An automaton of a fuzzy term has some 25 ranges. With a column for each byte, compiling such an
// automaton took five times as long, and its table did not fit into the cache of the processor.
pub(super) struct ByteRanges {
    /// The number of the range of each byte.
    of: [u8; BYTES],
    /// The first byte of each range.
    first: Vec<u8>,
}

impl ByteRanges {
    /// The ranges that begin at 0 and at each byte for which `is_first` holds.
    pub(super) fn beginning_at(is_first: impl Fn(u8) -> bool) -> Self {
        let (mut of, mut first) = ([0; BYTES], Vec::new());
        for (byte, of) in (0..=u8::MAX).zip(&mut of) {
            if byte == 0 || is_first(byte) {
                first.push(byte);
            }
            *of = (first.len() - 1) as u8;
        }
        Self { of, first }
    }

    /// A range for each byte.
    fn single_bytes() -> Self {
        Self::beginning_at(|_| true)
    }

    /// The number of the range of a byte.
    #[inline]
    pub(super) fn of(&self, byte: u8) -> usize {
        self.of.get(usize::from(byte)).copied().unwrap_or(0).into()
    }
}

/// An automaton whose states are computed on demand.
pub(super) trait Automaton {
    type State: Copy + Eq + Hash;

    fn start(&self) -> Self::State;

    /// The state after a byte; `None` if no continuation matches.
    fn next(&self, state: Self::State, byte: u8) -> Option<Self::State>;

    /// The distance of a match that ends here.
    fn distance(&self, state: Self::State) -> Option<u8>;

    /// The bytes that need not be distinguished.
    fn byte_ranges(&self) -> ByteRanges {
        ByteRanges::single_bytes()
    }
}

/// An automaton has more than [`MAX_STATES`] states.
#[derive(Debug)]
pub(super) struct TooManyStates;

/// The next state for each state and byte; [`DEAD`] if no match can follow.
pub(super) struct Table {
    ranges: ByteRanges,
    /// The next state for each range of bytes, state by state.
    next: Vec<StateId>,
    distances: Vec<Option<u8>>,
    start: StateId,
}

impl Table {
    /// Builds the table of all states that can be reached. A transition to a state from which no
    /// match can be reached leads to [`DEAD`].
    pub(super) fn of<A: Automaton>(automaton: &A) -> Result<Self, TooManyStates> {
        let (start, ranges) = (automaton.start(), automaton.byte_ranges());
        let next = vec![DEAD; ranges.first.len()];
        let mut table = Self { ranges, next, distances: vec![None], start: 1 };
        let mut numbers = HashMap::from([(start, table.start)]);
        let mut found = vec![start];
        while let Some(&from) = found.get(table.states() - 1) {
            // Most ranges lead to the same state as the range before.
            let mut last = (None, DEAD);
            for byte in &table.ranges.first {
                let to = automaton.next(from, *byte);
                if to != last.0 {
                    let number = to.map_or(DEAD, |to| {
                        *numbers.entry(to).or_insert_with(|| {
                            found.push(to);
                            StateId::try_from(found.len()).unwrap_or(StateId::MAX)
                        })
                    });
                    last = (to, number);
                }
                table.next.push(last.1);
            }
            if found.len() >= MAX_STATES {
                return Err(TooManyStates);
            }
            table.distances.push(automaton.distance(from));
        }
        Ok(table.without_hopeless_states())
    }

    /// Redirects transitions to [`DEAD`] if no match can follow.
    fn without_hopeless_states(mut self) -> Self {
        let mut before = vec![vec![]; self.states()];
        for (from, row) in (0..).zip(self.next.chunks(self.ranges.first.len())) {
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
        for next in self.next.iter_mut().filter(|next| is_hopeless(**next)) {
            *next = DEAD;
        }
        if is_hopeless(self.start) {
            self.start = DEAD;
        }
        self
    }

    pub(super) fn states(&self) -> usize {
        self.distances.len()
    }

    pub(super) fn start(&self) -> StateId {
        self.start
    }

    /// The next state for each range of bytes.
    #[inline]
    fn row(&self, state: StateId) -> &[StateId] {
        let many = self.ranges.first.len();
        self.next.get(usize::from(state) * many..).and_then(|row| row.get(..many)).unwrap_or(&[])
    }

    #[inline]
    pub(super) fn next(&self, state: StateId, byte: u8) -> StateId {
        self.row(state).get(self.ranges.of(byte)).copied().unwrap_or(DEAD)
    }

    /// The distance of a match that ends in `state`.
    pub(super) fn distance(&self, state: StateId) -> Option<u8> {
        self.distances.get(usize::from(state)).copied().flatten()
    }

    /// The smallest byte, at least `least`, after which a match can follow, and the state after
    /// this byte.
    #[inline]
    pub(super) fn least(&self, state: StateId, least: u8) -> Option<(u8, StateId)> {
        let from = self.ranges.of(least);
        let rest = self.row(state).get(from..)?;
        let at = rest.iter().position(|next| *next != DEAD)?;
        let first = self.ranges.first.get(from + at)?;
        Some((least.max(*first), *rest.get(at)?))
    }
}
