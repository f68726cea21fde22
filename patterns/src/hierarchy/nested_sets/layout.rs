//! The keys and values of nested sets.

use std::ops::Deref;

use keyloom::key::display;
use keyloom::{Entry, Error, KeyBuf, KeyRange, Result, Subspace};

use super::labels::{Label, LabelSpace, Span};
use crate::hierarchy::NodeId;
use crate::select::{Select, within};

/// How many bytes of a row stand before what all models store of a node: its right label and its id.
pub(super) const HEADER: usize = 16;

/// The first byte of a position: the format.
const FORMAT: u8 = 1;

/// Where everything is.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) space: Subspace,
    pub(super) labels: LabelSpace,
    lefts: Subspace,
    nodes: Subspace,
    /// What is known of a move or a deletion in steps.
    pub(super) steps: KeyBuf,
}

impl Keys {
    pub(super) fn new(space: &Subspace) -> Self {
        let (lefts, nodes) = (space.child("left"), space.child("node"));
        Self {
            space: space.clone(),
            labels: LabelSpace::WHOLE,
            lefts,
            nodes,
            steps: space.pack("move"),
        }
    }

    pub(super) fn left(&self, left: Label) -> KeyBuf {
        self.lefts.pack(&left)
    }

    pub(super) fn node(&self, id: NodeId) -> KeyBuf {
        self.nodes.pack(&id)
    }

    /// The rows that begin in a span.
    pub(super) fn lefts(&self, span: Span) -> KeyRange<'static> {
        within(span.first..=span.last).key_range(&self.lefts)
    }

    /// The positions of all nodes.
    pub(super) fn nodes(&self) -> KeyRange<'static> {
        self.nodes.range()
    }

    /// The left label in the key of a row.
    pub(super) fn left_of(&self, key: &[u8]) -> Option<Label> {
        self.lefts.unpack(key).ok()
    }

    /// Whether the labels of a row are such as are given out.
    pub(super) fn is_within<B>(&self, row: &Row<B>) -> bool {
        row.left > 0 && row.left < row.right && row.right < self.labels.end()
    }

    /// What a key of the tree is of.
    pub(super) fn kind(&self, key: &[u8]) -> Option<Kind> {
        if self.lefts.unpack::<Label>(key).is_ok() {
            return Some(Kind::Left);
        }
        if let Ok(id) = self.nodes.unpack(key) {
            return Some(Kind::Node(id));
        }
        (key == self.steps.as_slice()).then_some(Kind::Steps)
    }

    /// A row as it lies in the store.
    pub(super) fn row<B: Deref<Target = [u8]>>(&self, (key, bytes): Entry<B>) -> Result<Row<B>> {
        let left = self.lefts.unpack(&key)?;
        let (right, id) = header(&bytes).map_err(|error| error.at(&key))?;
        Ok(Row { left, right, id, bytes })
    }
}

/// What a key is of.
pub(super) enum Kind {
    Left,
    Node(NodeId),
    Steps,
}

/// A node as it lies in the store: `bytes` are its right label, its id and what all models store.
pub(super) struct Row<B> {
    pub(super) left: Label,
    pub(super) right: Label,
    pub(super) id: NodeId,
    pub(super) bytes: B,
}

impl<B: Deref<Target = [u8]>> Row<B> {
    pub(super) fn span(&self) -> Span {
        Span { first: self.left, last: self.right }
    }

    /// What all models store of a node.
    pub(super) fn node(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }

    pub(super) fn to_owned(&self) -> Row<Vec<u8>> {
        Row { left: self.left, right: self.right, id: self.id, bytes: self.bytes.to_vec() }
    }
}

/// The right label and the id of a row.
pub(super) fn header(bytes: &[u8]) -> Result<(Label, NodeId)> {
    split_header(bytes).ok_or_else(no_row)
}

/// The same without an error, which is a large thing to carry past every row of a walk.
#[inline(always)]
pub(super) fn split_header(bytes: &[u8]) -> Option<(Label, NodeId)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let (right, id) = header.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*right), u64::from_be_bytes(*id.first_chunk::<8>()?)))
}

/// The bytes of a row.
pub(super) fn row_bytes(right: Label, id: NodeId, node: &[u8]) -> Vec<u8> {
    [&right.to_be_bytes()[..], &id.to_be_bytes(), node].concat()
}

/// Where a node begins, and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) left: Label,
    pub(super) parent: Option<NodeId>,
}

impl Position {
    /// `None` where the bytes are no position and nothing else.
    #[inline]
    fn of(bytes: &[u8]) -> Option<Self> {
        let (left, parent) = bytes.split_first_chunk()?;
        let parent = match parent.split_first()? {
            (0, []) => None,
            (1, id) => Some(NodeId::from_be_bytes(id.try_into().ok()?)),
            _ => return None,
        };
        Some(Self { left: Label::from_be_bytes(*left), parent })
    }
}

/// What is stored of where a node is. While its subtree is moved in steps it has two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positions {
    pub(super) now: Position,
    /// Where it is once the move has switched.
    pub(super) next: Option<Position>,
}

impl From<Position> for Positions {
    fn from(now: Position) -> Self {
        Self { now, next: None }
    }
}

impl Positions {
    /// The format, how many places, and of each the left label, whether there is a parent, and which.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT, 1 + u8::from(self.next.is_some())];
        for position in std::iter::once(self.now).chain(self.next) {
            bytes.extend_from_slice(&position.left.to_be_bytes());
            bytes.push(u8::from(position.parent.is_some()));
            if let Some(parent) = position.parent {
                bytes.extend_from_slice(&parent.to_be_bytes());
            }
        }
        bytes
    }

    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        // As all are but those in a move in steps, and read without a result for each piece.
        match bytes {
            [FORMAT, 1, only @ ..] => Position::of(only).map(Self::from),
            _ => None,
        }
        .map_or_else(|| Self::decode_any(bytes), Ok)
    }

    #[cold]
    fn decode_any(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::of("a position of nested sets", bytes)?;
        let count = input.byte()?;
        let now = input.position()?;
        let next = match count {
            1 => None,
            2 => Some(input.position()?),
            _ => return Err(refused("it has no known number of places")),
        };
        input.end()?;
        Ok(Self { now, next })
    }
}

/// A value that begins with its format, read piece by piece.
pub(super) struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    pub(super) fn of(what: &str, bytes: &'b [u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&FORMAT, rest)) => Ok(Self(rest)),
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: what.into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            _ => Err(refused("it does not begin with its format")),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(u64::from_be_bytes(*bytes))
    }

    fn position(&mut self) -> Result<Position> {
        let left = self.number()?;
        Ok(Position { left, parent: self.parent()? })
    }

    pub(super) fn span(&mut self) -> Result<Span> {
        let (first, last) = (self.number()?, self.number()?);
        if first < last {
            Ok(Span { first, last })
        } else {
            Err(refused("a span ends before it begins"))
        }
    }

    pub(super) fn parent(&mut self) -> Result<Option<NodeId>> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.number().map(Some),
            _ => Err(refused("it does not say whether there is a parent")),
        }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(refused("bytes are left over")) }
    }
}

fn cut_off() -> Error {
    refused("it is cut off")
}

/// A row whose labels and id are cut off.
#[cold]
pub(super) fn no_row() -> Error {
    let why = "its header is cut off; run check, and restore this key: nothing else holds the node";
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}

/// Stored bytes that are nothing of nested sets.
#[cold]
pub(super) fn refused(why: &'static str) -> Error {
    let why =
        format!("{why}; run check, then repair or restore this key (leaf ranges: build them anew)");
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}

/// Keys that do not agree with each other.
#[cold]
pub(super) fn disagreement(key: &[u8]) -> Error {
    let why = format!(
        "what the key {} says does not agree with the rest of the tree; see check and repair",
        display(key)
    );
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}
