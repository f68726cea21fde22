//! The labels of the current key of a walk, and the next possible keys.

use std::borrow::Cow;

use keyloom::key::{DecodeError, Unpack, Unpacker};
use keyloom::{KeyRange, Order, Result, Subspace};

use super::next::NextLabel;
use super::pattern::{PathPattern, State, Verdict};

/// The type code of a string, the first byte of every label; see [`keyloom::key`].
const STRING: u8 = 0x02;

/// The byte that follows an escaped NUL: the element does not end there.
const ESCAPE: u8 = 0xFF;

/// Whether a key matches the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Match,
    /// The key does not match; `Trail::rest` returns the range in which the walk continues.
    NoMatch,
}

/// A node on the path of the key.
#[derive(Debug)]
struct Level {
    /// The end of the node's path in the key.
    end: usize,
    state: State,
    verdict: Verdict,
}

/// The ancestors of a key, each with the state of the pattern there. The prefix shared with the
/// previous key is not processed again.
#[derive(Debug)]
pub(super) struct Trail {
    pattern: PathPattern,
    key: Vec<u8>,
    levels: Vec<Level>,
}

impl Trail {
    pub(super) fn new(pattern: &PathPattern, space: &Subspace) -> Self {
        let state = pattern.start();
        let verdict = pattern.verdict(&state);
        let root = Level { end: space.prefix().len(), state, verdict };
        Self { pattern: pattern.clone(), key: space.prefix().to_vec(), levels: vec![root] }
    }

    /// Advances to a key of the subspace.
    ///
    /// # Errors
    /// An error that contains the key, if a label is not valid text.
    #[inline]
    pub(super) fn go_to(&mut self, key: &[u8]) -> Result<Outcome> {
        if let [.., Level { end, verdict: Verdict::Whole, .. }] = self.levels.as_slice()
            && is_below(self.key.get(..*end), key)
        {
            return Ok(Outcome::Match);
        }
        let common = self.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        let stays = |level: &Level| level.end <= common && key.get(level.end) != Some(&ESCAPE);
        while self.levels.len() > 1 && self.levels.last().is_some_and(|level| !stays(level)) {
            self.levels.pop();
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.descend().map_err(|error| error.at(key))
    }

    /// Processes the labels from the last level shared with the previous key, until the outcome is
    /// decided.
    fn descend(&mut self) -> Result<Outcome> {
        while let Some(level) = self.levels.last() {
            match level.verdict {
                Verdict::Dead => return Ok(Outcome::NoMatch),
                Verdict::Whole => return Ok(Outcome::Match),
                Verdict::Match | Verdict::Open => {}
            }
            let rest = self.key.get(level.end..).unwrap_or_default();
            if rest.first() != Some(&STRING) {
                let is_match = level.verdict == Verdict::Match;
                return Ok(if is_match { Outcome::Match } else { Outcome::NoMatch });
            }
            let mut input = Unpacker::new(rest);
            let label =
                Cow::<str>::unpack(&mut input).map_err(|error| self.no_label(level, error))?;
            let state = self.pattern.step(&level.state, &label);
            let verdict = self.pattern.verdict(&state);
            let end = level.end + input.offset();
            self.levels.push(Level { end, state, verdict });
        }
        Ok(Outcome::NoMatch)
    }

    /// The error for an element that is not a label, with its position in the whole key.
    #[cold]
    fn no_label(&self, above: &Level, error: DecodeError) -> DecodeError {
        self.node(above).unpack::<String>(&self.key).err().unwrap_or(error)
    }

    /// The range that can still match after a key that does not match, in `order`, up to the end of
    /// the walk. `None` if no key can match.
    pub(super) fn rest(&self, order: Order) -> Option<KeyRange<'static>> {
        let depth = self.levels.len() - 1;
        let level = self.levels.last()?;
        if level.verdict == Verdict::Dead {
            return self.beside(depth, order);
        }
        let parent = self.node(level);
        // The node's own keys are on both sides of its children. Keys that end with the node, or
        // continue with an element that sorts before strings, precede the children. Keys that
        // continue with any other element follow the children.
        let is_before_children = self.key.get(level.end).is_none_or(|code| *code < STRING);
        let is_behind_key = is_before_children == (order == Order::Ascending);
        let child = if is_behind_key { self.child(level, None, order) } else { None };
        match child {
            Some(next) => Some(bound(&parent, &next, order)),
            None => self.beside(depth, order),
        }
    }

    /// The range that can match after the subtree of the node at `depth`, in `order`, wherever in
    /// that subtree the key is.
    fn beside(&self, depth: usize, order: Order) -> Option<KeyRange<'static>> {
        for depth in (1..=depth).rev() {
            let [above, level] = self.levels.get(depth - 1..=depth)? else { return None };
            let parent = self.node(above);
            let label = self.key.get(above.end..level.end)?;
            let label = Cow::<str>::unpack(&mut Unpacker::new(label)).ok()?;
            match self.child(above, Some(&label), order) {
                Some(NextLabel::Any) => {
                    let node = self.key.get(..level.end)?;
                    return Some(match order {
                        Order::Ascending => KeyRange::behind(node),
                        Order::Descending => KeyRange::all().before(node).into_owned(),
                    });
                }
                Some(next) => return Some(bound(&parent, &next, order)),
                None if above.verdict == Verdict::Match => {
                    return Some(beside_children(&parent, order));
                }
                None => {}
            }
        }
        None
    }

    fn child(&self, level: &Level, beside: Option<&str>, order: Order) -> Option<NextLabel<'_>> {
        match order {
            Order::Ascending => self.pattern.least_behind(&level.state, beside),
            Order::Descending => self.pattern.greatest_before(&level.state, beside),
        }
    }

    fn node(&self, level: &Level) -> Subspace {
        Subspace::from_bytes(self.key.get(..level.end).unwrap_or_default())
    }
}

/// Reads the labels at the start of packed elements, up to the first element that is not a string.
pub(super) fn labels(input: &mut Unpacker<'_>, packed: &[u8]) -> Result<Vec<String>, DecodeError> {
    let mut labels = Vec::new();
    while packed.get(input.offset()) == Some(&STRING) {
        labels.push(String::unpack(input)?);
    }
    Ok(labels)
}

/// Whether `key` is the packed tuple `parent` or continues it.
fn is_below(parent: Option<&[u8]>, key: &[u8]) -> bool {
    let rest = parent.and_then(|parent| key.strip_prefix(parent));
    rest.is_some_and(|rest| rest.first() != Some(&ESCAPE))
}

/// The range from the next child of a node to the end of the walk in `order`.
fn bound(parent: &Subspace, next: &NextLabel<'_>, order: Order) -> KeyRange<'static> {
    let range = match next {
        NextLabel::Any => parent.string_prefix(""),
        NextLabel::Exactly(label) => parent.child(&**label).self_and_children(),
        NextLabel::Prefix(prefix) => parent.string_prefix(&**prefix),
    };
    match order {
        Order::Ascending => range.and_behind(),
        Order::Descending => range.and_before(),
    }
}

/// The range after all children of a node in `order`.
fn beside_children(parent: &Subspace, order: Order) -> KeyRange<'static> {
    match order {
        // The empty tuple is the least element after the strings.
        Order::Ascending => KeyRange::starting_at(&parent.pack(&((),))).into_owned(),
        Order::Descending => KeyRange::all().before(&parent.pack("")).into_owned(),
    }
}

/// The smallest single range of `space` that contains all possible matches: the range of the
/// literal prefix of the pattern.
pub(super) fn literal_range(pattern: &PathPattern, space: &Subspace) -> KeyRange<'static> {
    let (mut node, mut state) = (space.clone(), pattern.start());
    while pattern.verdict(&state) == Verdict::Open {
        let least = pattern.least_behind(&state, None);
        let (Some(least), Some(greatest)) = (least, pattern.greatest_before(&state, None)) else {
            break;
        };
        match (&least, &greatest) {
            (NextLabel::Exactly(label), NextLabel::Exactly(other)) if label == other => {
                node = node.child(&**label);
                state = pattern.step(&state, label);
            }
            _ => {
                let from = bound(&node, &least, Order::Ascending);
                return from.intersect(bound(&node, &greatest, Order::Descending));
            }
        }
    }
    node.self_and_children()
}

#[cfg(test)]
mod tests {
    use keyloom::pack;

    use super::STRING;

    #[test]
    fn a_label_begins_with_the_code_of_strings() {
        assert_eq!(pack("label").first(), Some(&STRING));
    }
}
