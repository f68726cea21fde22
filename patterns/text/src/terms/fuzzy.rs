//! Levenshtein automata for fuzzy terms.

use std::sync::{Arc, LazyLock};

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};

use super::table::{Automaton, Table};
use super::utf8::Utf8;

/// The maximum number of characters of a fuzzy term. An automaton has up to 70 states per
/// character.
pub(crate) const MAX_FUZZY_CHARS: usize = 64;

/// The builders for the distances 1 and 2. Creating the builder for the distance 2 takes some
/// milliseconds.
static BUILDERS: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
    LazyLock::new(|| [1, 2].map(|distance| LevenshteinAutomatonBuilder::new(distance, true)));

/// Terms that begin with `prefix`, followed by a text that `dfa` accepts.
struct Similar {
    prefix: Vec<u8>,
    dfa: DFA,
}

/// The number of bytes of the prefix that were read, or a state of the automaton after the prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    InPrefix(usize),
    /// The automaton of the crate also accepts bytes that are not UTF-8, so a UTF-8 automaton runs
    /// in parallel.
    After(u32, Utf8),
}

impl Similar {
    fn after(&self, read: usize) -> State {
        match read < self.prefix.len() {
            true => State::InPrefix(read),
            false => State::After(self.dfa.initial_state(), Utf8::default()),
        }
    }
}

impl Automaton for Similar {
    type State = State;

    fn start(&self) -> State {
        self.after(0)
    }

    fn next(&self, state: State, byte: u8) -> Option<State> {
        match state {
            State::InPrefix(read) => {
                (self.prefix.get(read) == Some(&byte)).then(|| self.after(read + 1))
            }
            State::After(state, utf8) => {
                let next = self.dfa.transition(state, byte);
                let utf8 = utf8.next(byte)?;
                (next != SINK_STATE).then_some(State::After(next, utf8))
            }
        }
    }

    fn distance(&self, state: State) -> Option<u8> {
        match state {
            State::After(state, Utf8::First) => match self.dfa.distance(state) {
                Distance::Exact(distance) => Some(distance),
                Distance::AtLeast(_) => None,
            },
            _ => None,
        }
    }
}

/// Compiles an automaton of the terms within `distance` (1 or 2) of `text` whose first
/// `prefix_chars` characters are equal. Returns the reason if this is not possible.
pub(super) fn compile(text: &str, distance: u8, prefix_chars: usize) -> Result<Arc<Table>, String> {
    let chars = text.chars().count();
    if chars > MAX_FUZZY_CHARS {
        return Err(format!(
            "it has {chars} characters, the limit of a fuzzy term is {MAX_FUZZY_CHARS}; shorten it"
        ));
    }
    let builder = distance.checked_sub(1).and_then(|at| BUILDERS.get(usize::from(at)));
    let builder = builder.ok_or_else(|| {
        format!("the distance {distance} is greater than 2; choose 0 to 2, or n-grams")
    })?;
    let end = text.char_indices().nth(prefix_chars).map_or(text.len(), |(at, _)| at);
    let (prefix, rest) = text.split_at(end);
    let similar = Similar { prefix: prefix.into(), dfa: builder.build_dfa(rest) };
    let table = Table::of(&similar);
    table.map(Arc::new).map_err(|_| "its automaton is too large; shorten it".to_owned())
}
