//! The keys and values of nested sets.

use std::ops::Deref;

use keyloom::key::display_named;
use keyloom::{Entry, Error, KeyBuf, KeyRange, Result, Subspace};
use keyloom_kit::within;

use super::labels::{Label, LabelSpace, Span, WIDE};
use crate::{NodeId, TreeNode};

/// The first byte of a position: the format. Labels have 8 bytes in the first format, 16 in the
/// second.
const FORMAT: u8 = 1;
const WIDE_FORMAT: u8 = 2;

/// The longest key of a row in the first format, without the prefix: a type code and 8 bytes.
const NARROW_KEY: usize = 9;

/// In a row of the first format, this value means that a right label of 16 bytes follows. No node
/// ever had this value as its label.
const WIDE_RIGHT: u64 = u64::MAX;

/// Whether a row with this left label has 16-byte labels.
pub(super) fn is_wide(left: Label) -> bool {
    left >= WIDE
}

/// The subspaces and keys of a tree.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) space: Subspace,
    pub(super) labels: LabelSpace,
    lefts: Subspace,
    /// The longest key of a row in the first format.
    narrow_key_bytes: usize,
    nodes: Subspace,
    /// The key of the record of a move or a deletion in steps.
    pub(super) steps: KeyBuf,
}

impl Keys {
    pub(super) fn new(space: &Subspace) -> Self {
        let (lefts, nodes) = (space.child("left"), space.child("node"));
        Self {
            space: space.clone(),
            labels: LabelSpace::WHOLE,
            narrow_key_bytes: lefts.prefix().len() + NARROW_KEY,
            lefts,
            nodes,
            steps: space.pack("move"),
        }
    }

    /// The subspace of positions, by node id.
    pub(super) fn positions(&self) -> &Subspace {
        &self.nodes
    }

    pub(super) fn left(&self, left: Label) -> KeyBuf {
        self.lefts.pack(&left)
    }

    pub(super) fn node(&self, id: NodeId) -> KeyBuf {
        self.nodes.pack(&id)
    }

    /// Whether the row of a key has 16-byte labels; the length of the key determines it.
    #[inline(always)]
    pub(super) fn is_wide(&self, key: &[u8]) -> bool {
        key.len() > self.narrow_key_bytes
    }

    /// The rows whose left label is in a span.
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

    /// Whether the labels of a row are in the valid range.
    pub(super) fn is_within<B>(&self, row: &Row<B>) -> bool {
        row.left > 0 && row.left < row.right && row.right < self.labels.end()
    }

    /// The kind of a key of the tree.
    pub(super) fn kind(&self, key: &[u8]) -> Option<Kind> {
        if self.lefts.unpack::<Label>(key).is_ok() {
            return Some(Kind::Left);
        }
        if let Ok(id) = self.nodes.unpack(key) {
            return Some(Kind::Node(id));
        }
        (key == self.steps.as_slice()).then_some(Kind::Steps)
    }

    /// Decodes a stored row.
    pub(super) fn row<B: Deref<Target = [u8]>>(&self, (key, bytes): Entry<B>) -> Result<Row<B>> {
        let left = self.lefts.unpack(&key)?;
        let header = header(left, &bytes).map_err(|error| error.at(&key))?;
        Ok(Row::new(left, header, bytes))
    }
}

/// The kind of a key.
pub(super) enum Kind {
    Left,
    Node(NodeId),
    Steps,
}

/// A stored node: `bytes` are its right label, its id, and the part that all models store.
pub(super) struct Row<B> {
    pub(super) left: Label,
    pub(super) right: Label,
    pub(super) id: NodeId,
    header_bytes: usize,
    pub(super) bytes: B,
}

impl<B> Row<B> {
    pub(super) fn new(left: Label, header: Header, bytes: B) -> Self {
        let Header { right, id, bytes: header_bytes } = header;
        Self { left, right, id, header_bytes, bytes }
    }

    /// The same row without its bytes.
    pub(super) fn labels(&self) -> Row<()> {
        let Self { left, right, id, header_bytes, .. } = *self;
        Row { left, right, id, header_bytes, bytes: () }
    }

    pub(super) fn span(&self) -> Span {
        Span { first: self.left, last: self.right }
    }
}

impl<B: Deref<Target = [u8]>> Row<B> {
    /// The first bytes: the right label and the id.
    pub(super) fn header(&self) -> &[u8] {
        self.bytes.get(..self.header_bytes).unwrap_or_default()
    }

    /// The part of a node that all models store.
    pub(super) fn node(&self) -> &[u8] {
        self.bytes.get(self.header_bytes..).unwrap_or_default()
    }

    pub(super) fn to_owned(&self) -> Row<Vec<u8>> {
        Row {
            left: self.left,
            right: self.right,
            id: self.id,
            header_bytes: self.header_bytes,
            bytes: self.bytes.to_vec(),
        }
    }
}

/// The node of a row.
pub(super) fn row_node<B: Deref<Target = [u8]>, V, C>(row: Row<B>) -> TreeNode<B, V, C> {
    TreeNode::new(row.id, row.bytes, row.header_bytes)
}

/// The part of a row before the part that all models store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) right: Label,
    pub(super) id: NodeId,
    pub(super) bytes: usize,
}

/// The header of the row whose left label is `left`.
pub(super) fn header(left: Label, bytes: &[u8]) -> Result<Header> {
    split_header(is_wide(left), bytes).ok_or_else(no_row)
}

/// Like [`header`], but without the error, which is too large to return for every row of a walk.
#[inline(always)]
pub(super) fn split_header(is_wide: bool, bytes: &[u8]) -> Option<Header> {
    if is_wide {
        let (right, id) = bytes.first_chunk::<24>()?.split_first_chunk::<16>()?;
        let id = NodeId::from_be_bytes(*id.first_chunk()?);
        return Some(Header { right: Label::from_be_bytes(*right), id, bytes: 24 });
    }
    let (right, id) = bytes.first_chunk::<16>()?.split_first_chunk::<8>()?;
    let (right, id) = (u64::from_be_bytes(*right), NodeId::from_be_bytes(*id.first_chunk()?));
    match right {
        WIDE_RIGHT => {
            let wide = split_header(true, bytes.get(8..)?)?;
            Some(Header { bytes: 32, ..wide })
        }
        right => Some(Header { right: right.into(), id, bytes: 16 }),
    }
}

/// Encodes a row.
pub(super) fn row_bytes(span: Span, id: NodeId, node: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(32 + node.len());
    match (is_wide(span.first), u64::try_from(span.last)) {
        (false, Ok(right)) => bytes.extend_from_slice(&right.to_be_bytes()),
        (false, Err(_)) => {
            bytes.extend_from_slice(&WIDE_RIGHT.to_be_bytes());
            bytes.extend_from_slice(&span.last.to_be_bytes());
        }
        (true, _) => bytes.extend_from_slice(&span.last.to_be_bytes()),
    }
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(node);
    bytes
}

/// The left label of a node, and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) left: Label,
    pub(super) parent: Option<NodeId>,
}

impl Position {
    /// Decodes a position; `None` if the bytes are not exactly one position.
    #[inline]
    fn of(is_wide: bool, bytes: &[u8]) -> Option<Self> {
        let (left, parent) = if is_wide {
            let (left, parent) = bytes.split_first_chunk()?;
            (Label::from_be_bytes(*left), parent)
        } else {
            let (left, parent) = bytes.split_first_chunk()?;
            (Label::from(u64::from_be_bytes(*left)), parent)
        };
        let parent = match parent.split_first()? {
            (0, []) => None,
            (1, id) => Some(NodeId::from_be_bytes(id.try_into().ok()?)),
            _ => return None,
        };
        Some(Self { left, parent })
    }
}

/// The stored positions of a node. During a move in steps, a node has two positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positions {
    pub(super) now: Position,
    /// The position of the node after the move has switched to the new place.
    pub(super) next: Option<Position>,
}

impl From<Position> for Positions {
    fn from(now: Position) -> Self {
        Self { now, next: None }
    }
}

impl Positions {
    /// Encodes the format and the number of positions, and for each position the left label,
    /// whether there is a parent, and the parent.
    pub(super) fn encode(&self) -> Vec<u8> {
        let places = || std::iter::once(self.now).chain(self.next);
        let is_wide = places().any(|at| is_wide(at.left));
        let format = if is_wide { WIDE_FORMAT } else { FORMAT };
        let mut bytes = vec![format, 1 + u8::from(self.next.is_some())];
        for position in places() {
            match u64::try_from(position.left) {
                Ok(left) if !is_wide => bytes.extend_from_slice(&left.to_be_bytes()),
                _ => bytes.extend_from_slice(&position.left.to_be_bytes()),
            }
            bytes.push(u8::from(position.parent.is_some()));
            if let Some(parent) = position.parent {
                bytes.extend_from_slice(&parent.to_be_bytes());
            }
        }
        bytes
    }

    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        // Fast path: all positions except those of a move in steps have this form.
        match bytes {
            [WIDE_FORMAT, 1, only @ ..] => Position::of(true, only).map(Self::from),
            [FORMAT, 1, only @ ..] => Position::of(false, only).map(Self::from),
            _ => None,
        }
        .map_or_else(|| Self::decode_any(bytes), Ok)
    }

    #[cold]
    fn decode_any(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::of("a position of nested sets", bytes, WIDE_FORMAT)?;
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

/// A value that begins with its format, decoded field by field.
pub(super) struct Input<'b> {
    format: u8,
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    /// Reads a value of a format from 1 to `newest`.
    pub(super) fn of(what: &str, bytes: &'b [u8], newest: u8) -> Result<Self> {
        match bytes.split_first() {
            Some((&format, _)) if format > newest => Err(Error::NewerFormat {
                what: what.into(),
                found: format.into(),
                supported: newest.into(),
            }),
            Some((&format, rest)) if format > 0 => Ok(Self { format, rest }),
            _ => Err(refused("it does not begin with its format")),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*bytes))
    }

    /// A label: 8 bytes in the first format, 16 in the second.
    pub(super) fn label(&mut self) -> Result<Label> {
        if self.format == FORMAT {
            return self.number().map(Label::from);
        }
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(Label::from_be_bytes(*bytes))
    }

    fn position(&mut self) -> Result<Position> {
        let left = self.label()?;
        Ok(Position { left, parent: self.parent()? })
    }

    pub(super) fn span(&mut self) -> Result<Span> {
        let (first, last) = (self.label()?, self.label()?);
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
            _ => Err(refused("it lacks the flag that shows whether there is a parent")),
        }
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(refused("bytes are left")) }
    }
}

fn cut_off() -> Error {
    refused("it is cut off")
}

/// The error for a row with a truncated header.
#[cold]
pub(super) fn no_row() -> Error {
    let why = "its header is cut off; run check, and restore this key: nothing else holds the node";
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}

/// The error for bytes that do not decode.
#[cold]
pub(super) fn refused(why: &'static str) -> Error {
    let why = format!("{why}; run check, then repair or restore this key");
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}

/// The error for keys that contradict each other.
#[cold]
pub(super) fn disagreement(key: &[u8]) -> Error {
    let why = format!("the key {} has a wrong value; run check and repair", display_named(key));
    Error::Value { codec: "nested sets", action: "decode", source: why.into() }
}
