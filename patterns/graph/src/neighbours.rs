//! The edges of one vertex, as entries of a range.

use std::borrow::Cow;
use std::ops::Deref;

use keyloom::{Entry, Error, Result, unpack};

use crate::VertexId;

/// An edge as one of its ends sees it: its label and the vertex at the other end. It keeps the
/// bytes of the entry, and copies nothing but the id of the vertex.
pub struct Neighbour<B, I> {
    key: B,
    /// Where the label begins in the key.
    label: usize,
    vertex: I,
    is_incoming: bool,
}

impl<B: Deref<Target = [u8]>, I: VertexId> Neighbour<B, I> {
    /// From an entry of the edges of one vertex, whose keys begin with `prefix` bytes that stand
    /// for the vertex.
    pub(crate) fn decode((key, _): Entry<B>, prefix: usize, is_incoming: bool) -> Result<Self> {
        let rest = key.get(prefix..).unwrap_or_default();
        match unpack::<(Cow<'_, str>, I)>(rest) {
            Ok((_, vertex)) => Ok(Self { key, label: prefix, vertex, is_incoming }),
            Err(error) => Err(Error::from(error).at(&key)),
        }
    }

    /// The label of the edge.
    ///
    /// Borrowed from the entry unless the label has a NUL, which the key encodes as two bytes.
    pub fn label(&self) -> Cow<'_, str> {
        // It was decoded before.
        unpack::<(Cow<'_, str>, I)>(self.key.get(self.label..).unwrap_or_default())
            .map_or_else(|_| Cow::Borrowed(""), |(label, _)| label)
    }

    /// The vertex at the other end.
    pub fn vertex(&self) -> &I {
        &self.vertex
    }

    /// The vertex at the other end.
    pub fn into_vertex(self) -> I {
        self.vertex
    }

    /// Whether the entry is of the incoming edges: the other end is the source. In an undirected
    /// graph this says nothing.
    pub fn is_incoming(&self) -> bool {
        self.is_incoming
    }
}
