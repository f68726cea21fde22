//! Regular expressions and wildcards.

use std::sync::Arc;

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};

use super::table::{Automaton, MAX_STATES, Table};
use crate::query::wildcard::{WildcardPart, parts};

/// The maximum length of an expression. Detecting that an expression needs too many states takes
/// memory in proportion to its length.
const MAX_EXPRESSION_BYTES: usize = 65_536;

/// The memory limits of the steps of a compilation.
// Twice the 4 MiB of the largest table. A larger expression is rejected before it takes more time
// and memory.
const MAX_COMPILE_BYTES: usize = 8 << 20;
const MAX_NFA_BYTES: usize = 2 << 20;

/// Advice for an expression that takes too much memory.
const SMALLER: &str = "let it count less, or match fewer characters";

/// The automaton of `regex-automata`. This automaton reports a match one byte late, which
/// [`distance`](Automaton::distance) corrects. It does not mark all of its dead states as dead,
/// which [`Table`] corrects.
struct Expression {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Automaton for Expression {
    type State = StateID;

    fn start(&self) -> StateID {
        self.start
    }

    fn next(&self, state: StateID, byte: u8) -> Option<StateID> {
        let next = self.dfa.next_state(state, byte);
        let is_over = self.dfa.is_dead_state(next) || self.dfa.is_quit_state(next);
        (!is_over).then_some(next)
    }

    fn distance(&self, state: StateID) -> Option<u8> {
        self.dfa.is_match_state(self.dfa.next_eoi_state(state)).then_some(0)
    }
}

/// Compiles an expression that must match the whole term. Returns the reason if this is not
/// possible.
pub(super) fn compile(expression: &str) -> Result<Arc<Table>, String> {
    let bytes = expression.len();
    if bytes > MAX_EXPRESSION_BYTES {
        return Err(format!("it has {bytes} bytes, the limit is {MAX_EXPRESSION_BYTES}; split it"));
    }
    let limits = dense::Config::new()
        // Find all matches, not only the leftmost-first one: a match that ends earlier must not
        // hide a longer match.
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
    let too_many = |_| format!("it takes more than {MAX_STATES} states; {SMALLER}");
    Table::of(&Expression { dfa, start }).map(Arc::new).map_err(too_many)
}

/// Translates a wildcard pattern to a regular expression.
pub(super) fn of_wildcard(pattern: &str) -> String {
    let mut expression = String::from("(?s)");
    for part in parts(pattern) {
        match part {
            WildcardPart::Any => expression.push_str(".*"),
            WildcardPart::One => expression.push('.'),
            WildcardPart::Text(text) => {
                for c in text.chars() {
                    if c.is_ascii_punctuation() {
                        expression.push('\\');
                    }
                    expression.push(c);
                }
            }
        }
    }
    expression
}

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
