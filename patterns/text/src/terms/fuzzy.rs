//! Levenshtein automata for fuzzy terms.

use std::sync::{Arc, LazyLock};

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};

use super::table::{Automaton, ByteRanges, Table};
use super::utf8::{self, Utf8};

/// The maximum number of characters of a fuzzy term. An automaton has up to 70 states per
/// character.
pub(crate) const MAX_FUZZY_CHARS: usize = 64;

/// The builders for the distances 1 and 2. Creating the builder for the distance 2 takes some
/// milliseconds.
static BUILDERS: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
    LazyLock::new(|| [1, 2].map(|distance| LevenshteinAutomatonBuilder::new(distance, true)));

/// Terms that begin with `prefix`, followed by a text that `dfa` accepts.
struct Similar<'t> {
    text: &'t str,
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

impl<'t> Similar<'t> {
    fn new(text: &'t str, builder: &LevenshteinAutomatonBuilder, prefix_chars: usize) -> Self {
        let end = text.char_indices().nth(prefix_chars).map_or(text.len(), |(at, _)| at);
        let (prefix, rest) = text.split_at(end);
        Self { text, prefix: prefix.into(), dfa: builder.build_dfa(rest) }
    }

    fn after(&self, read: usize) -> State {
        match read < self.prefix.len() {
            true => State::InPrefix(read),
            false => State::After(self.dfa.initial_state(), Utf8::default()),
        }
    }
}

impl Automaton for Similar<'_> {
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

    /// Only the bytes of the text are distinguished from the other bytes at the same place of a
    /// character.
    fn byte_ranges(&self) -> ByteRanges {
        let mut is_first = [false; 256];
        for byte in self.text.bytes().map(usize::from) {
            is_first.iter_mut().skip(byte).take(2).for_each(|is_first| *is_first = true);
        }
        ByteRanges::beginning_at(|byte| {
            utf8::is_first_of_range(byte) || is_first.get(usize::from(byte)) == Some(&true)
        })
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
    let table = Table::of(&Similar::new(text, builder, prefix_chars));
    table.map(Arc::new).map_err(|_| "its automaton is too large; shorten it".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn bytes_of_a_range_lead_to_the_same_state() {
        for text in ["", "abc", "naïve", "\u{0}\u{7F}\u{80}", "中\u{D7FF}\u{E000}", "🦀\u{10FFFF}z"]
        {
            for prefix_chars in 0..=3 {
                for builder in &*BUILDERS {
                    assert_same_states(&Similar::new(text, builder, prefix_chars));
                }
            }
        }
    }

    fn assert_same_states(similar: &Similar<'_>) {
        let ranges = similar.byte_ranges();
        let mut open = vec![similar.start()];
        let mut known: HashSet<State> = open.iter().copied().collect();
        while let Some(state) = open.pop() {
            let mut before = None;
            for byte in 0..=u8::MAX {
                let (range, next) = (ranges.of(byte), similar.next(state, byte));
                if let Some((_, next_before)) = before.filter(|(before, _)| *before == range) {
                    assert!(next == next_before, "{:?} and {byte}", similar.text);
                }
                before = Some((range, next));
                open.extend(next.filter(|next| known.insert(*next)));
            }
        }
        assert!(known.len() > 2 && ranges.of(u8::MAX) < 32);
    }
}
