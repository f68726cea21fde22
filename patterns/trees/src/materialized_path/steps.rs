//! The record of a move or deletion in steps, which every operation reads.

use keyloom::{Error, Result, pack, unpack};

use super::super::NodeId;
use super::path::{Path, is_within, replanted};

/// The first byte of the record: its format.
const FORMAT: u8 = 1;

/// The remedy for a damaged record.
const REMEDY: &str = "run repair, which deletes this key: nodes that were copied already are there twice then, the second with another id";

/// The record of a move or deletion in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// The root of the subtree.
    pub(super) root: NodeId,
    pub(super) phase: Phase,
    /// The old path of the subtree.
    pub(super) from: Path,
    /// The new path of the subtree; `None` for a deletion.
    pub(super) to: Option<Path>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Readers see the old place; nodes at the new place are hidden.
    Copying,
    /// Readers see the new place; nodes at the old place are hidden.
    Clearing,
}

impl Steps {
    pub(super) fn encode(&self) -> Vec<u8> {
        let clearing = self.phase == Phase::Clearing;
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&pack(&(self.root, clearing, &self.from[..], self.to.as_deref())));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let what = "a subtree that is moved in steps";
        let refused = |why: String| Error::Value {
            codec: what,
            action: "decode",
            source: format!("{why}; {REMEDY}").into(),
        };
        match bytes.split_first() {
            Some((&FORMAT, rest)) => {
                let (root, clearing, from, to) =
                    unpack::<(NodeId, bool, Vec<u8>, Option<Vec<u8>>)>(rest)
                        .map_err(|error| refused(error.to_string()))?;
                let phase = if clearing { Phase::Clearing } else { Phase::Copying };
                Ok(Self { root, phase, from: from.into(), to: to.map(Path::from) })
            }
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: what.into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            _ => Err(refused("it does not begin with its format".into())),
        }
    }

    /// The place hidden from readers.
    pub(super) fn hidden(&self) -> Option<&Path> {
        match self.phase {
            Phase::Copying => self.to.as_ref(),
            Phase::Clearing => Some(&self.from),
        }
    }

    /// The visible path of a node with this stored path.
    pub(super) fn resolve(&self, stored: Path) -> Option<Path> {
        match self.phase {
            Phase::Clearing if is_within(&stored, &self.from) => {
                self.to.as_ref().map(|to| replanted(&stored, &self.from, to))
            }
            _ => Some(stored),
        }
    }

    /// Whether a path is in the subtree being moved or deleted.
    pub(super) fn holds(&self, path: &[u8]) -> bool {
        self.places().any(|place| is_within(path, place))
    }

    /// Whether a path is in the subtree being moved or deleted, or is an ancestor of it.
    pub(super) fn stands_on(&self, path: &[u8]) -> bool {
        self.holds(path) || self.places().any(|place| is_within(place, path))
    }

    fn places(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.from).chain(&self.to)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::Error;
    use keyloom::pack;

    use super::{Phase, Steps};

    #[test]
    fn the_record_comes_back_and_what_is_none_is_refused() {
        let [from, to] = [pack(&("a",)), pack(&("b", "a"))];
        let moved = Steps { root: 7, phase: Phase::Copying, from: from.clone(), to: Some(to) };
        let deleted = Steps { phase: Phase::Clearing, to: None, ..moved.clone() };
        for steps in [moved, deleted] {
            let bytes = steps.encode();
            assert_eq!(Steps::decode(&bytes).unwrap(), steps);
            let cut_off = |n: usize| Steps::decode(&bytes[..n]).ok();
            assert!((0..bytes.len()).all(|n| cut_off(n).as_ref() != Some(&steps)));
        }
        assert!(matches!(Steps::decode(&[2]), Err(Error::NewerFormat { .. })));
    }
}
