//! Reading a graph.

use std::borrow::Borrow;
use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, KeyRange, Order, Pack, Reader, Result, Subspace, pack};
use keyloom_kit::untyped;

use crate::direction::Direction;
use crate::graph::Graph;
use crate::keys::{EdgeKey, VertexId};
use crate::neighbours::Neighbour;

/// A graph in a snapshot or a transaction, returned by [`Graph::at`].
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
    /// A view of the graph in a snapshot or a transaction. Costs one get, to check that the
    /// incoming edges are readable.
    ///
    /// # Errors
    /// The errors of [`Attached::at`](keyloom_tables::Attached::at).
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
    /// The properties of a vertex; `None` if the vertex is not in the table of vertices. Costs one
    /// get.
    ///
    /// # Errors
    /// The errors of [`Table::get`](keyloom_tables::Table::get).
    pub fn vertex<Q: Pack + ?Sized>(&self, id: &Q) -> Result<Option<V>>
    where
        I: Borrow<Q>,
    {
        self.graph.vertices.get(self.reader, id)
    }

    /// The properties of an edge; `None` if there is no such edge. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`](keyloom_tables::Table::get).
    pub fn edge<Q>(&self, source: &Q, label: &str, target: &Q) -> Result<Option<E>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let mut key = (source.to_owned(), label.to_owned(), target.to_owned());
        self.graph.order_ends(&mut key);
        self.graph.edges.get(self.reader, &key)
    }

    /// The edges of a vertex, with one label or with any, ordered by label and other end. The edges
    /// are streamed: a vertex may have millions. In an undirected graph, a loop is returned once.
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns an error if a key does not decode as an
    /// edge.
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
                    // The table returned the same edge already.
                    Ok(found) if !directed && *is_mirror && is_loop(&found, &own) => None,
                    found => Some(found),
                }
            }));
        }
        Ok(both.into_iter().flatten().flatten())
    }

    /// The number of edges of a vertex, with one label or with any. A loop counts twice in an
    /// undirected graph, and if both directions are counted. Costs one get for the state of the
    /// counters. Each direction costs one get with a label, or one range over the labels without;
    /// an undirected graph always reads both directions.
    ///
    /// # Errors
    /// The errors of [`Attached::at`](keyloom_tables::Attached::at) and of
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
                    let labels = degrees.range(self.reader, untyped((side, id)))?;
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
    /// Any error of the store; an error if an edge does not decode.
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

/// Whether the other end is the vertex with the packed id `own`. Compares the whole packed id: the
/// encoding of one id may be a suffix of another, as with 0 and 20.
pub(crate) fn is_loop<B, I: VertexId, E>(found: &Neighbour<B, I, E>, own: &KeyBuf) -> bool
where
    B: std::ops::Deref<Target = [u8]>,
{
    pack(&(found.vertex(),)) == *own
}
