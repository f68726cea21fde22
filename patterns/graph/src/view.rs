//! Reading a graph.

use std::borrow::Borrow;
use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, KeyRange, Order, Pack, Reader, Result, Subspace, pack};
use keyloom_kit::Untyped;

use crate::direction::Direction;
use crate::graph::Graph;
use crate::keys::{EdgeKey, VertexId};
use crate::neighbours::Neighbour;

/// A graph in a snapshot or a transaction: what [`Graph::at`] returns.
pub struct GraphView<'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
    pub(crate) graph: &'g Graph<I, V, E, C>,
    pub(crate) reader: &'r R,
}

impl<I: VertexId, V, E, C: Codec<E>, R> Clone for GraphView<'_, '_, I, V, E, C, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: VertexId, V, E, C: Codec<E>, R> Copy for GraphView<'_, '_, I, V, E, C, R> {}

impl<I: VertexId, V, E, C: Codec<E>, R> fmt::Debug for GraphView<'_, '_, I, V, E, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphView").field("graph", self.graph).finish_non_exhaustive()
    }
}

impl<I: VertexId, V: 'static, E: 'static, C: Codec<V> + Codec<E> + 'static> Graph<I, V, E, C> {
    /// The graph in a snapshot or a transaction, for reading. Costs one get, and checks that the
    /// incoming edges are readable.
    ///
    /// # Errors
    /// Errors of [`Attached::at`](keyloom_tables::Attached::at).
    pub fn at<'g, 'r, R: Reader>(
        &'g self,
        reader: &'r R,
    ) -> Result<GraphView<'g, 'r, I, V, E, C, R>> {
        self.incoming.at(reader)?;
        Ok(GraphView { graph: self, reader })
    }
}

impl<'g, 'r, I, V, E, C, R> GraphView<'g, 'r, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// The properties of a vertex, `None` if the table of vertices does not have it. Costs one get.
    ///
    /// # Errors
    /// Errors of [`Table::get`](keyloom_tables::Table::get).
    pub fn vertex<Q: Pack + ?Sized>(&self, id: &Q) -> Result<Option<V>>
    where
        I: Borrow<Q>,
    {
        self.graph.vertices.get(self.reader, id)
    }

    /// The properties of an edge. Costs one get.
    ///
    /// # Errors
    /// Errors of [`Table::get`](keyloom_tables::Table::get).
    pub fn edge<Q>(&self, source: &Q, label: &str, target: &Q) -> Result<Option<E>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let mut key = (source.to_owned(), label.to_owned(), target.to_owned());
        self.graph.order_ends(&mut key);
        self.graph.edges.get(self.reader, &key)
    }

    /// The edges of a vertex, of one label or of all, in the order of label and other end. Streams:
    /// a vertex may have millions. In an undirected graph, a loop comes once.
    ///
    /// # Errors
    /// Any error of the store; the iterator, also if a key is not that of an edge.
    pub fn neighbours<Q: Pack + ?Sized>(
        &self,
        id: &Q,
        direction: Direction,
        label: Option<&str>,
    ) -> Result<
        impl Iterator<Item = Result<Neighbour<R::Bytes<'r>, I, E>>> + use<'r, I, V, E, C, R, Q>,
    >
    where
        I: Borrow<Q>,
    {
        let mut both = [None, None];
        let directed = self.graph.is_directed();
        let sides = self.graph.sides(direction);
        for (entries, is_mirror) in both.iter_mut().zip(sides) {
            let space = self.graph.side(*is_mirror);
            let (own, prefix) = (pack(&(id,)), space.pack(&(id,)).len());
            let entries_of_side = self.reader.range(range(space, id, label), Order::Ascending)?;
            *entries = Some(entries_of_side.filter_map(move |entry| {
                let neighbour =
                    entry.and_then(|entry| Neighbour::decode::<C>(entry, prefix, *is_mirror));
                match neighbour {
                    // The same edge stands in the table.
                    Ok(found) if !directed && *is_mirror && is_loop(&found, &own) => None,
                    found => Some(found),
                }
            }));
        }
        Ok(both.into_iter().flatten().flatten())
    }

    /// The number of edges of a vertex, of one label or of all. A loop counts twice in an
    /// undirected graph, and if both directions are counted. Costs one get per direction with a
    /// label, else one range over the labels, after one get for the state of the counters.
    ///
    /// # Errors
    /// Errors of [`Attached::at`](keyloom_tables::Attached::at) and of
    /// [`Totals::get`](keyloom_tables::Totals::get).
    pub fn degree<Q: Pack + ?Sized>(
        &self,
        id: &Q,
        direction: Direction,
        label: Option<&str>,
    ) -> Result<u64>
    where
        I: Borrow<Q>,
    {
        let degrees = self.graph.degrees.at(self.reader)?;
        let mut sum = 0;
        for is_mirror in self.graph.sides(direction) {
            let side = u8::from(*is_mirror);
            sum += match label {
                Some(label) => self.reader.counter(&degrees.space().pack(&(side, id, label)))?,
                None => {
                    let labels = degrees.range(self.reader, Untyped((side, id)))?;
                    labels.map(|total| total.map(|(_, count)| count)).sum::<Result<i64>>()?
                }
            };
        }
        Ok(u64::try_from(sum).unwrap_or(0))
    }

    /// Calls `visit` with every edge and its properties, in the order of the keys, until it breaks.
    /// Costs one range over all edges.
    ///
    /// # Errors
    /// Any error of the store; if an edge does not decode.
    pub fn each_edge(&self, mut visit: impl FnMut(EdgeKey<I>, E) -> ControlFlow<()>) -> Result<()> {
        for edge in self.graph.edges.range(self.reader, ..)? {
            let (key, properties) = edge?;
            if visit(key, properties).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The keys of the edges of a vertex.
pub(crate) fn range<Q: Pack + ?Sized>(
    space: &Subspace,
    id: &Q,
    label: Option<&str>,
) -> KeyRange<'static> {
    match label {
        Some(label) => space.range_of(&(id, label)),
        None => space.range_of(&(id,)),
    }
}

/// Whether the other end is the vertex that `own` stands for. All of the packed id counts: the form
/// of one id may end like that of another, as 20 and 0 do.
pub(crate) fn is_loop<B, I: VertexId, E>(found: &Neighbour<B, I, E>, own: &KeyBuf) -> bool
where
    B: std::ops::Deref<Target = [u8]>,
{
    pack(&(found.vertex(),)) == *own
}
