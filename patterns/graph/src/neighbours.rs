//! The edges of one vertex, as entries of a range.

use std::borrow::Cow;
use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::{Entry, Error, Result, unpack};

use crate::incoming::decode_properties;
use crate::keys::VertexId;

/// An edge from the view of one of its ends: its label, the vertex at the other end, and its
/// properties. Keeps the bytes of the entry, and copies only the id of the vertex.
pub struct Neighbour<B, I, E> {
    key: B,
    value: B,
    /// The offset of the label in the key.
    label: usize,
    vertex: I,
    is_incoming: bool,
    decode: fn(&[u8]) -> Result<E>,
}

impl<B: Deref<Target = [u8]>, I: VertexId, E> Neighbour<B, I, E> {
    /// Decodes an entry of the edges of one vertex. The first `prefix` bytes of the key identify
    /// the vertex.
    pub(crate) fn decode<C: Codec<E>>(
        (key, value): Entry<B>,
        prefix: usize,
        is_incoming: bool,
    ) -> Result<Self> {
        let (label, decode) = (prefix, C::decode);
        match unpack::<(Cow<'_, str>, I)>(key.get(prefix..).unwrap_or_default()) {
            Ok((_, vertex)) => Ok(Self { key, value, label, vertex, is_incoming, decode }),
            Err(error) => Err(Error::from(error).at(&key)),
        }
    }

    /// The label of the edge.
    ///
    /// Borrowed from the entry. Copied if the label contains a NUL, which the key encodes as two
    /// bytes.
    pub fn label(&self) -> Cow<'_, str> {
        // This cannot fail: the key was decoded before.
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

    /// The properties of the edge, decoded from the entry. Reads nothing from the store.
    ///
    /// # Errors
    /// An error if the properties do not decode.
    pub fn properties(&self) -> Result<E> {
        decode_properties(self.is_incoming, &self.value, self.decode)
            .map_err(|error| error.at(&self.key))
    }

    /// Whether the entry is an incoming edge: the other end is the source. Has no meaning in an
    /// undirected graph.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Direction, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "social")?;
    /// let follows = Graph::<String, (), ()>::directed(&schema, "follows")?;
    /// let [ada, bob] = ["ada", "bob"].map(String::from);
    /// store.transact(|txn| follows.put_edge(txn, &ada, "follows", &bob, &()))?;
    /// let snapshot = store.snapshot()?;
    /// let view = follows.at(&snapshot)?;
    /// for (vertex, is_incoming) in [(&ada, false), (&bob, true)] {
    ///     let mut edges = view.neighbours(vertex, Direction::Both, None)?;
    ///     assert_eq!(edges.next().expect("an edge")?.is_incoming(), is_incoming);
    /// }
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn is_incoming(&self) -> bool {
        self.is_incoming
    }
}
