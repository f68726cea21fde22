//! Regular expressions over whole paths.

mod table;

use std::fmt;
use std::sync::Arc;

use super::error::PathError;
use super::label_path::LabelPath;
use super::next::NextLabel;
use super::syntax::SHOWN_CHARS;
use table::{DEAD, StateId, Table};

/// The maximum length of an expression. A longer expression does not fit into a table, and
/// compiling it would take memory proportional to its length.
const MAX_EXPRESSION_BYTES: usize = 65_536;

/// The maximum length, in bytes, of a label computed for a seek.
// The least match may be long or infinite. With a truncated label, the seek only ends a little
// before the match.
const SOUGHT_BYTES: usize = 64;

/// A regular expression over the text of a whole path: its labels, joined by a separator.
///
/// The expression has the syntax of the crate
/// [`regex`](https://docs.rs/regex/latest/regex/#syntax). It must match the whole text, as if it
/// were between `^` and `$`; to match a part of the text, put `.*` on both sides. A path with a
/// label that contains the separator never matches, because its text would be the text of another
/// path.
///
/// ```
/// use keyloom_trees::path::{LabelPath, PathRegex};
/// let logs = PathRegex::new(r"var/log/[^/]+/.*\.(gz|old)", '/')?;
/// assert!(logs.matches(&LabelPath::new(["var", "log", "nginx", "access.gz"])?));
/// assert!(!logs.matches(&LabelPath::new(["var", "log", "syslog.gz"])?));
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
///
/// The expression is compiled once to a table of states (a DFA). Matching takes one step per byte,
/// whatever the expression. Some expressions do not fit into such a table: expressions with a `\b`
/// (use `(?-u:\b)`), and expressions with large repetition counts. An expression has at most 65,536
/// bytes, and its groups nest up to 250 levels.
#[derive(Clone)]
pub struct PathRegex {
    expression: String,
    separator: u8,
    table: Arc<Table>,
}

/// The state of an expression after some labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegexState {
    id: StateId,
    /// Whether no label has been read yet.
    is_root: bool,
}

impl PathRegex {
    /// Compiles an expression for paths whose labels are joined by `separator`.
    ///
    /// # Errors
    /// [`PathError::Regex`] if the expression is invalid, if it or its table would be too large, or
    /// if the separator is not an ASCII character.
    pub fn new(expression: &str, separator: char) -> Result<Self, PathError> {
        let shown = || expression.chars().take(SHOWN_CHARS).collect();
        let refused = |why: String| PathError::Regex { expression: shown(), why };
        if expression.len() > MAX_EXPRESSION_BYTES {
            let bytes = expression.len();
            let limit = MAX_EXPRESSION_BYTES;
            return Err(refused(format!("it has {bytes} bytes, the limit is {limit}; split it")));
        }
        let separator = u8::try_from(separator).ok().filter(u8::is_ascii).ok_or_else(|| {
            refused(format!("the separator {separator:?} is not an ASCII character"))
        })?;
        let table = Arc::new(Table::compile(expression).map_err(refused)?);
        Ok(Self { expression: expression.to_owned(), separator, table })
    }

    /// The expression.
    pub fn as_str(&self) -> &str {
        &self.expression
    }

    /// The separator between the labels.
    pub fn separator(&self) -> char {
        self.separator.into()
    }

    /// Whether `path` matches.
    pub fn matches(&self, path: &LabelPath) -> bool {
        self.is_match(path.labels().fold(self.start(), |state, label| self.step(state, label)))
    }

    pub(super) fn start(&self) -> RegexState {
        RegexState { id: self.table.start(), is_root: true }
    }

    pub(super) fn step(&self, state: RegexState, label: &str) -> RegexState {
        let is_readable = !label.as_bytes().contains(&self.separator);
        let step = |id, byte: &u8| self.table.next(id, *byte);
        let before = if is_readable { self.before_label(state) } else { DEAD };
        RegexState { id: label.as_bytes().iter().fold(before, step), is_root: false }
    }

    pub(super) fn is_match(&self, state: RegexState) -> bool {
        self.table.is_match(state.id)
    }

    /// Whether this path, or a continuation of it, can match.
    pub(super) fn is_alive(&self, state: RegexState) -> bool {
        self.is_match(state) || self.before_label(state) != DEAD
    }

    /// The state at the start of the next label.
    fn before_label(&self, state: RegexState) -> StateId {
        match state.is_root {
            true => state.id,
            false => self.table.next(state.id, self.separator),
        }
    }

    /// Whether a label may end here.
    fn may_end(&self, id: StateId) -> bool {
        self.table.is_match(id) || self.table.next(id, self.separator) != DEAD
    }

    /// The bytes with which a label can continue, each with the next state.
    fn bytes(&self, id: StateId) -> impl DoubleEndedIterator<Item = (u8, StateId)> {
        let bytes = (0..=u8::MAX).filter(|byte| *byte != self.separator);
        bytes.map(move |byte| (byte, self.table.next(id, byte))).filter(|(_, next)| *next != DEAD)
    }

    /// The states before each byte of a label and after the last byte, up to the first dead state.
    fn states(&self, state: RegexState, label: &str) -> Vec<StateId> {
        let mut id = self.before_label(state);
        let mut states = vec![];
        for byte in label.bytes().map(Some).chain([None]) {
            if id == DEAD {
                break;
            }
            states.push(id);
            id = match byte {
                Some(byte) if byte != self.separator => self.table.next(id, byte),
                _ => DEAD,
            };
        }
        states
    }

    /// The least label after `after` with which a path can continue.
    pub(super) fn least_behind(
        &self,
        state: RegexState,
        after: Option<&str>,
    ) -> Option<NextLabel<'static>> {
        let Some(after) = after else { return self.least_from(self.before_label(state), vec![]) };
        let bytes = after.as_bytes();
        let states = self.states(state, after).into_iter().enumerate().rev();
        let mut least = states.filter_map(|(at, id)| {
            let behind = |byte: u8| bytes.get(at).is_none_or(|there| byte > *there);
            let (byte, next) = self.bytes(id).find(|(byte, _)| behind(*byte))?;
            self.least_from(next, [bytes.get(..at)?, &[byte]].concat())
        });
        least.next()
    }

    /// The greatest label before `before` with which a path can continue.
    pub(super) fn greatest_before(
        &self,
        state: RegexState,
        before: Option<&str>,
    ) -> Option<NextLabel<'static>> {
        let Some(before) = before else {
            return self.greatest_from(self.before_label(state), vec![]);
        };
        let states = self.states(state, before).into_iter().enumerate().rev();
        let bytes = before.as_bytes();
        let mut greatest = states.filter_map(|(at, id)| {
            let there = bytes.get(at)?;
            let kept = bytes.get(..at)?;
            match self.bytes(id).rfind(|(byte, _)| byte < there) {
                Some((byte, next)) => self.greatest_from(next, [kept, &[byte]].concat()),
                None if self.may_end(id) => Some(exactly(kept.to_vec())),
                None => None,
            }
        });
        greatest.next()
    }

    /// The least label that begins with `label`. The bytes of `label` lead to the state `id`.
    fn least_from(&self, mut id: StateId, mut label: Vec<u8>) -> Option<NextLabel<'static>> {
        while !self.may_end(id) {
            if let Some(prefix) = long_enough(&label) {
                return Some(prefix);
            }
            let (byte, next) = self.bytes(id).next()?;
            label.push(byte);
            id = next;
        }
        Some(exactly(label))
    }

    /// The greatest label that begins with `label`. The bytes of `label` lead to the state `id`.
    fn greatest_from(&self, mut id: StateId, mut label: Vec<u8>) -> Option<NextLabel<'static>> {
        while let Some((byte, next)) = self.bytes(id).next_back() {
            if let Some(prefix) = long_enough(&label) {
                return Some(prefix);
            }
            label.push(byte);
            id = next;
        }
        self.may_end(id).then(|| exactly(label))
    }
}

/// The labels with this prefix, if it is long enough and ends at a character boundary.
fn long_enough(bytes: &[u8]) -> Option<NextLabel<'static>> {
    let text = (bytes.len() >= SOUGHT_BYTES).then(|| std::str::from_utf8(bytes).ok()).flatten()?;
    Some(NextLabel::Prefix(text.to_owned().into()))
}

fn exactly(bytes: Vec<u8>) -> NextLabel<'static> {
    // Every expression matches whole characters only.
    String::from_utf8(bytes).map_or(NextLabel::Any, |label| NextLabel::Exactly(label.into()))
}

impl fmt::Debug for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathRegex({:?}, {:?})", self.expression, self.separator())
    }
}

impl fmt::Display for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression)
    }
}
