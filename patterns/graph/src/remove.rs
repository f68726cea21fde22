//! Deletes a vertex with its edges.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Order, Pack, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use crate::GraphError;
use crate::direction::Direction;
use crate::graph::Graph;
use crate::keys::{EdgeKey, VertexId, shown};
use crate::neighbours::Neighbour;
use crate::view::range;

/// The largest number of edges that a transaction deletes.
// `BatchSize` halves this number if the store refuses the transaction. A lower number adds commits;
// a higher one blocks other writers for longer.
const BATCH: usize = 1_000;

impl<I: VertexId, V: 'static, E: 'static, C: Codec<V> + Codec<E> + 'static> Graph<I, V, E, C> {
    /// Sets the properties of a vertex.
    ///
    /// # Errors
    /// The errors of [`Table::put`](keyloom_tables::Table::put).
    pub fn put_vertex<Q>(&self, txn: &mut impl Writer, id: &Q, properties: &V) -> Result<()>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        txn.guarded(|txn| self.vertices.put(txn, &id.to_owned(), properties))
    }

    /// Deletes a vertex and all of its edges, in as many transactions as needed. The vertex is
    /// deleted with its last edges. Edges that other writers add in the meantime are deleted, too.
    ///
    /// If the deletion was stopped or killed, call it again: it continues with the remaining edges.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::Graph;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let follows = Graph::<u32>::directed(&Schema::open(&store, "social")?, "follows")?;
    /// store.transact(|txn| follows.put_edges(txn, (0..2_500).map(|n| ((n, "follows".to_owned(), 9), ()))))?;
    /// let done = follows.delete_vertex(&store, &9)?;
    /// assert_eq!(done.removed, 2_500);
    /// assert!(follows.check(&store.snapshot()?)?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::delete_many`](keyloom_tables::Table::delete_many) and
    /// [`Store::transact`].
    pub fn delete_vertex<Q>(&self, store: &impl Store, id: &Q) -> Result<Progress>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        self.delete_vertex_with(store, id, |_| ControlFlow::Continue(()))
    }

    /// [`delete_vertex`](Graph::delete_vertex) with a callback: calls `progress` after each commit
    /// and stops if it breaks. [`Progress::removed`] counts edges.
    ///
    /// # Errors
    /// The errors of [`delete_vertex`](Graph::delete_vertex).
    pub fn delete_vertex_with<Q>(
        &self,
        store: &impl Store,
        id: &Q,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let (mut size, mut done) = (BatchSize::new(BATCH), Progress::default());
        while !done.finished {
            let (removed, finished) =
                size.transact(store, |txn, most| self.delete_some(txn, id, most))?;
            done.removed += removed as u64;
            done.finished = finished;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// Deletes a vertex that has no edges, in the given transaction. Returns whether the vertex was
    /// in the table of vertices.
    ///
    /// # Errors
    /// [`GraphError::HasEdges`]; the errors of [`Table::delete`](keyloom_tables::Table::delete).
    pub fn delete_lone_vertex<Q>(&self, txn: &mut impl Writer, id: &Q) -> Result<bool>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        txn.guarded(|txn| {
            if !self.some_edges(txn, id, 1)?.is_empty() {
                let vertex = shown(&self.vertices.space().pack(id));
                return Err(GraphError::HasEdges { vertex }.into());
            }
            self.vertices.delete(txn, &id.to_owned())
        })
    }

    /// Deletes at most `most` edges of a vertex, and the vertex if no edges are left. Returns the
    /// number of deleted edges, and whether the vertex was deleted.
    fn delete_some<Q>(&self, txn: &mut impl Writer, id: &Q, most: usize) -> Result<(usize, bool)>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        txn.guarded(|txn| {
            let edges = self.some_edges(txn, id, most)?;
            let removed = self.edges.delete_many(txn, &edges)?;
            let finished = edges.len() < most;
            if finished {
                self.vertices.delete(txn, &id.to_owned())?;
            }
            Ok((removed, finished))
        })
    }

    /// At most `most` edges of a vertex; fewer only if it has no more edges. A loop is found from
    /// both sides, but returned once.
    fn some_edges<Q>(&self, reader: &impl Reader, id: &Q, most: usize) -> Result<Vec<EdgeKey<I>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        self.incoming.at(reader)?;
        let mut edges = Vec::new();
        for is_mirror in self.sides(Direction::Both) {
            let space = self.side(*is_mirror);
            let own = space.pack(&(id,)).len();
            for entry in reader.range(range(space, id, None), Order::Ascending)? {
                if edges.len() == most {
                    return Ok(edges);
                }
                let found = Neighbour::<_, I, E>::decode::<C>(entry?, own, *is_mirror)?;
                let (label, other) = (found.label().into_owned(), found.into_vertex());
                let vertex = id.to_owned();
                match is_mirror {
                    false => edges.push((vertex, label, other)),
                    // A loop: the table returned it already.
                    true if other == vertex => {}
                    true => edges.push((other, label, vertex)),
                }
            }
        }
        Ok(edges)
    }
}
