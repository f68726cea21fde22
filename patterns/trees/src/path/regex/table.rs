//! A regular expression as a table of states.

use std::collections::HashMap;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};

/// The number of a state.
pub(super) type StateId = u16;

/// No continuation matches from this state.
pub(super) const DEAD: StateId = 0;

/// The maximum number of states in a table, which then takes 4 MiB.
// More states need more memory and time per query; with fewer states, more expressions are refused.
const MAX_STATES: usize = 8_192;

/// The memory limit of each step of the compilation.
// This is twice the 4 MiB of the largest table. A larger expression is refused before it takes more
// time and memory.
const MAX_COMPILE_BYTES: usize = 8 << 20;
const MAX_NFA_BYTES: usize = 2 << 20;

const BYTES: usize = 256;

/// The next state for each state and byte; [`DEAD`] if no match can follow.
///
/// The automaton of `regex_automata` is not kept. It recognizes a state as dead only if no
/// transition leaves the state, and it reports a match one byte late.
pub(super) struct Table {
    next: Vec<[StateId; BYTES]>,
    is_match: Vec<bool>,
    start: StateId,
}

impl Table {
    /// Compiles an expression that must match the whole text, or returns why it cannot be compiled.
    pub(super) fn compile(expression: &str) -> Result<Self, String> {
        let limits = dense::Config::new()
            // Find all matches, not only the leftmost-first match: an earlier end must not hide a
            // longer match.
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(MAX_COMPILE_BYTES))
            .determinize_size_limit(Some(MAX_COMPILE_BYTES));
        let dfa = dense::Builder::new()
            .configure(limits)
            .syntax(syntax::Config::new().utf8(true))
            .thompson(thompson::Config::new().nfa_size_limit(Some(MAX_NFA_BYTES)))
            .build(expression)
            .map_err(|error| refusal(&error))?;
        let anchored = start::Config::new().anchored(Anchored::Yes);
        let start = dfa.start_state(&anchored).map_err(|error| with_sources(&error))?;
        Self::of(&dfa, start).map(Self::without_the_hopeless)
    }

    /// Builds the table of all reachable states.
    fn of(dfa: &dense::DFA<Vec<u32>>, start: StateID) -> Result<Self, String> {
        let mut table = Self { next: vec![[DEAD; BYTES]], is_match: vec![false], start: 1 };
        let mut numbers = HashMap::from([(start, table.start)]);
        let mut found = vec![start];
        while let Some(&from) = found.get(table.next.len() - 1) {
            let mut row = [DEAD; BYTES];
            for (byte, next) in (0..=u8::MAX).zip(&mut row) {
                let to = dfa.next_state(from, byte);
                if dfa.is_dead_state(to) || dfa.is_quit_state(to) {
                    continue;
                }
                *next = *numbers.entry(to).or_insert_with(|| {
                    found.push(to);
                    StateId::try_from(found.len()).unwrap_or(StateId::MAX)
                });
            }
            if found.len() >= MAX_STATES {
                return Err(format!("it takes more than {MAX_STATES} states; {SMALLER}"));
            }
            table.next.push(row);
            table.is_match.push(dfa.is_match_state(dfa.next_eoi_state(from)));
        }
        Ok(table)
    }

    /// Redirects transitions to [`DEAD`] if no match can follow.
    fn without_the_hopeless(mut self) -> Self {
        let mut before = vec![vec![]; self.next.len()];
        for (from, row) in self.next.iter().enumerate() {
            for (at, to) in row.iter().enumerate() {
                // Many consecutive bytes lead to the same state.
                if at.checked_sub(1).and_then(|at| row.get(at)) != Some(to)
                    && let Some(before) = before.get_mut(usize::from(*to))
                {
                    before.push(from);
                }
            }
        }
        let mut has_hope = self.is_match.clone();
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

    pub(super) fn start(&self) -> StateId {
        self.start
    }

    #[inline]
    pub(super) fn next(&self, state: StateId, byte: u8) -> StateId {
        let row = self.next.get(usize::from(state));
        row.and_then(|row| row.get(usize::from(byte))).copied().unwrap_or(DEAD)
    }

    pub(super) fn is_match(&self, state: StateId) -> bool {
        self.is_match.get(usize::from(state)) == Some(&true)
    }
}

/// Advice for an expression that takes too much memory.
const SMALLER: &str = "let it count less, or match fewer characters";

/// Why an expression cannot be compiled, and how to change it.
fn refusal(error: &dense::BuildError) -> String {
    let text = with_sources(error);
    if error.is_size_limit_exceeded() || text.contains("exceeded limit") {
        return format!("{text}; {SMALLER}");
    }
    match text.contains("word boundar") {
        true => format!(r"{text}; write (?-u:\b) for \b"),
        false => text,
    }
}

/// The messages of an error and its sources.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
