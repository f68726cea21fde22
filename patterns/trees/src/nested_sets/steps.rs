//! The record of a move or a deletion in steps, which every operation reads with its first read.

use keyloom::{Error, Result};

use super::labels::{Label, Span};
use super::layout::{Input, Keys, refused};
use crate::NodeId;
use crate::tree::unless_newer;

/// The first byte of the record: the format. In the first format labels had 8 bytes.
const FORMAT: u8 = 2;

/// The work in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// The root of the subtree that is moved or deleted.
    pub(super) node: NodeId,
    /// The old place of the subtree.
    pub(super) from: Span,
    /// The new place of the subtree; `None` for a deletion.
    pub(super) to: Option<Going>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Going {
    pub(super) span: Span,
    pub(super) parent: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The rows that begin up to this label have been copied.
    Copying(Option<Label>),
    Clearing,
}

impl Steps {
    /// The rows that no reader sees.
    pub(super) fn hidden(&self) -> Option<Span> {
        match self.stage {
            Stage::Copying(_) => self.to.map(|to| to.span),
            Stage::Clearing => Some(self.from),
        }
    }

    /// The spans that must not change until the work ends.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        std::iter::once(self.from).chain(self.to.map(|to| to.span))
    }

    /// Whether the new place is visible. If there is no new place, `Clearing` removes a deleted
    /// subtree or the copy of a cancelled move.
    pub(super) fn has_switched(&self) -> bool {
        self.stage == Stage::Clearing && self.to.is_some()
    }

    /// The record that cancels a move and removes its copies.
    pub(super) fn cancelled(&self) -> Option<Self> {
        let Stage::Copying(_) = self.stage else { return None };
        self.to.map(|to| Self { from: to.span, to: None, stage: Stage::Clearing, ..*self })
    }

    /// Encodes the format, the stage and its progress, the node, both spans and the new parent.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (stage, copied) = match self.stage {
            Stage::Copying(None) => (0, 0),
            Stage::Copying(Some(copied)) => (1, copied),
            Stage::Clearing => (2, 0),
        };
        let mut bytes = vec![FORMAT, stage];
        bytes.extend_from_slice(&copied.to_be_bytes());
        bytes.extend_from_slice(&self.node.to_be_bytes());
        bytes.extend_from_slice(&self.from.first.to_be_bytes());
        bytes.extend_from_slice(&self.from.last.to_be_bytes());
        bytes.push(u8::from(self.to.is_some()));
        if let Some(Going { span, parent }) = self.to {
            bytes.extend_from_slice(&span.first.to_be_bytes());
            bytes.extend_from_slice(&span.last.to_be_bytes());
            bytes.push(u8::from(parent.is_some()));
            bytes.extend(parent.into_iter().flat_map(u64::to_be_bytes));
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::of("a move in steps of nested sets", bytes, FORMAT)?;
        let stage = input.byte()?;
        let copied = input.label()?;
        let stage = match stage {
            0 => Stage::Copying(None),
            1 => Stage::Copying(Some(copied)),
            2 => Stage::Clearing,
            _ => return Err(refused("it has no known stage")),
        };
        let node = input.number()?;
        let from = input.span()?;
        let to = match input.byte()? {
            0 => None,
            _ => Some(Going { span: input.span()?, parent: input.parent()? }),
        };
        input.end()?;
        if to.is_none() && stage != Stage::Clearing {
            return Err(refused("it lacks the destination of the subtree"));
        }
        Ok(Self { node, from, to, stage })
    }
}

/// Decodes the stored record of work in progress.
pub(super) fn under_way(keys: &Keys, stored: Option<&[u8]>) -> Result<Option<Steps>> {
    let Some(bytes) = stored else { return Ok(None) };
    match unless_newer(Steps::decode(bytes)).map_err(|error| error.at(&keys.steps))? {
        Some(steps) => Ok(Some(steps)),
        None => Err(no_record().at(&keys.steps)),
    }
}

#[cold]
fn no_record() -> Error {
    let why = "the tree cannot be read as long as it is there; run repair, which deletes this key \
               (nodes that were copied already are there twice then, the second with another id)";
    Error::Value { codec: "a move in steps of nested sets", action: "decode", source: why.into() }
}
