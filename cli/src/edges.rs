//! The edges of a graph, read without the types of the program.

use keyloom::key::{Element, List, elements};
use keyloom::{KeyRange, Subspace};

use crate::catalog::{Catalog, Part};

/// The kind of the mirrored edges, as the schema stores it.
pub const KIND: &str = "incoming edges";
/// The first byte of a mirrored edge.
const FORMAT: u8 = 1;

/// The table of edges, and its mirror.
#[derive(Clone, Copy)]
pub struct Edges<'e> {
    pub table: &'e Part,
    pub mirror: &'e Part,
}

/// An end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The vertex that the edge leaves.
    Source,
    /// The vertex that the edge enters.
    Target,
}

/// An edge of a vertex.
pub struct Edge {
    pub label: Element,
    /// The vertex at the other end.
    pub other: Element,
    /// The key of the edge's record.
    pub key: Vec<u8>,
    /// The edge's record.
    pub value: Vec<u8>,
}

impl<'e> Edges<'e> {
    /// The edges of a graph, from the table of edges or its mirror.
    pub fn of(catalog: &'e Catalog, part: &'e Part) -> Option<Self> {
        if part.kind == KIND {
            return Some(Self { table: catalog.table_of(part)?, mirror: part });
        }
        let is_mirror =
            |one: &&Part| one.kind == KIND && one.schema == part.schema && one.table == part.name;
        let mirror = catalog.parts.iter().find(is_mirror).filter(|_| part.kind == "table")?;
        Some(Self { table: part, mirror })
    }

    /// Whether an edge has a direction.
    pub fn is_directed(&self) -> bool {
        self.mirror.options != "undirected"
    }

    fn space(&self, end: End) -> &'e Subspace {
        match end {
            End::Source => &self.table.space,
            End::Target => &self.mirror.space,
        }
    }

    /// The entries of the edges with `vertex` at this end.
    pub fn range(&self, end: End, vertex: &Element) -> KeyRange<'static> {
        self.space(end).range_of(vertex)
    }

    /// The entries of the edges with `vertex` at this end and with this label.
    pub fn labelled(&self, end: End, vertex: &Element, label: &Element) -> KeyRange<'static> {
        self.space(end).child(vertex).range_of(label)
    }

    /// The edge of an entry with `vertex` at this end. `None` if the bytes are not an edge, and for
    /// the mirror of an undirected loop, which is an edge of the table already.
    pub fn read(&self, end: End, vertex: &Element, key: &[u8], value: &[u8]) -> Option<Edge> {
        let [_, label, other] = ends(self.space(end), key)?;
        if end == End::Source {
            return Some(Edge { label, other, key: key.to_vec(), value: value.to_vec() });
        }
        if !self.is_directed() && other == *vertex {
            return None;
        }
        let own = [&other, &label, vertex].map(Clone::clone);
        let key = self.table.space.pack(&List(&own[..])).to_vec();
        // The mirror stores a format byte before the properties of the edge.
        Some(Edge { label, other, key, value: value.strip_prefix(&[FORMAT])?.to_vec() })
    }
}

/// The three elements after the subspace: one end, the label, the other end.
pub fn ends(space: &Subspace, key: &[u8]) -> Option<[Element; 3]> {
    elements(key.strip_prefix(space.prefix())?).ok()?.try_into().ok()
}
