//! A program on a graph: declaration, options, results.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use keyloom::value::shape::{Shape, type_name};
use keyloom::value::{Codec, Postcard};
use keyloom::{
    EntryPage, Error, KeyRange, Order, Pack, Reader, Result, Store, Subspace, Writer, pack,
};
use keyloom_kit::{BatchSize, Progress};
use keyloom_tables::{Schema, Table};

use super::checkpoint::{Checkpoint, Header, Layout, Pass};
use super::program::VertexProgram;
use super::stored_state::StoredState;
use super::stream::joined;
use crate::graph::Graph;
use crate::keys::shown;
use crate::{GraphError, VertexId};

/// The largest number of keys that a transaction of [`Computation::clear`] deletes.
// `BatchSize` halves it if the store refuses so many. Fewer add commits; more keep other writers
// out for longer.
const CLEARED: usize = 1_000;

/// The codec of the table whose subspace holds a run. It has no records, and its name in the schema
/// keeps other tables out of the subspace.
pub(super) struct Supersteps;

impl<P> Codec<P> for Supersteps {
    fn encode(_: &P, _: &mut Vec<u8>) -> Result<()> {
        Err(Error::other(NoRecords))
    }

    fn decode(_: &[u8]) -> Result<P> {
        Err(Error::other(NoRecords))
    }

    fn shape() -> Result<Shape> {
        Ok(Shape::named(type_name::<P>(), 1))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the subspace holds a run of a vertex program, which has no records")]
struct NoRecords;

/// A [`VertexProgram`] on a [`Graph`], with its states, messages and checkpoint in the same store.
/// See the [module](super).
pub struct Computation<P, I: VertexId, V = (), E: 'static = (), C: Codec<E> + 'static = Postcard> {
    pub(super) program: P,
    pub(super) graph: Graph<I, V, E, C>,
    /// It has no records; its subspace holds the run.
    pub(super) table: Table<I, P, Supersteps>,
    pub(super) layout: Layout,
    version: u32,
    pub(super) threads: usize,
    pub(super) max_supersteps: u64,
    pub(super) batch_vertices: usize,
    pub(super) batch_bytes: usize,
    pub(super) vertex_bytes: usize,
}

impl<P, I: VertexId, V, E, C: Codec<E>> fmt::Debug for Computation<P, I, V, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computation")
            .field("graph", &self.graph)
            .field("space", &self.layout.space)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl<P, I, V, E, C> Computation<P, I, V, E, C>
where
    P: VertexProgram<I, E>,
    I: VertexId,
    V: 'static,
    E: Send + 'static,
    C: Codec<V> + Codec<E> + 'static,
{
    /// Declares a run of `program` on `graph`, which takes the name of a table in `schema`. Runs
    /// nothing yet. [`Schema::drop_table`] drops the run and its results.
    ///
    /// Raise `version` when the program changes: a stored run of another version is not resumed,
    /// and its results are not read.
    ///
    /// # Errors
    /// Errors of [`Schema::table_with`]: if the name belongs to another program,
    /// [`SchemaError::Contradiction`](keyloom_tables::SchemaError).
    pub fn declare<S: Store>(
        schema: &Schema<'_, S>,
        graph: &Graph<I, V, E, C>,
        name: &str,
        version: u32,
        program: P,
    ) -> Result<Self> {
        let table = schema.table_with(name, 1)?;
        Ok(Self {
            program,
            graph: graph.clone(),
            layout: Layout::new(table.space()),
            table,
            version,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            max_supersteps: 10_000,
            batch_vertices: 2_000,
            batch_bytes: 16 << 20,
            vertex_bytes: 64 << 20,
        })
    }

    /// The subspace of the run; see the [key layout](super#key-layout).
    pub fn space(&self) -> &Subspace {
        &self.layout.space
    }

    /// Computes on so many threads. Default: one per core. The results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Ends a run after so many supersteps with [`GraphError::NeverHalts`]. Default: 10,000. A
    /// later run with a larger bound continues.
    #[must_use]
    pub fn max_supersteps(mut self, supersteps: u64) -> Self {
        self.max_supersteps = supersteps;
        self
    }

    /// Computes at most so many vertices in one batch. Default: 2,000. It is stored with the run.
    #[must_use]
    pub fn max_batch_vertices(mut self, vertices: usize) -> Self {
        self.batch_vertices = vertices.max(1);
        self
    }

    /// Ends a batch once the states, edges and messages that it has read or sent take so many
    /// bytes. They are estimated as the stored bytes and 64 for each entry read, 384 for each
    /// message sent. Default: 16 MiB. It is stored with the run.
    ///
    /// Values that are much larger in memory than in Postcard need a smaller bound.
    #[must_use]
    pub fn max_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Refuses a vertex whose state, edges and messages take more bytes, counted as for
    /// [`max_batch_bytes`](Computation::max_batch_bytes). Default: 64 MiB. All of a vertex is in
    /// memory while it is computed; with a combiner, its messages count as one.
    #[must_use]
    pub fn max_vertex_bytes(mut self, bytes: usize) -> Self {
        self.vertex_bytes = bytes;
        self
    }

    /// What a stored run must have been begun with.
    pub(super) fn header(&self) -> Header {
        let program = self.program.options();
        let (edges, vertices, bytes) =
            (self.graph.edges().space(), self.batch_vertices, self.batch_bytes);
        let separator = if program.is_empty() { "" } else { ", " };
        let options = format!(
            "{program}{separator}edges in {edges}, batches of {vertices} vertices and {bytes} bytes"
        );
        Header { version: self.version, options }
    }

    /// The states of all vertices, in the order of their keys, after the run has finished. Costs 2
    /// gets and 1 range.
    ///
    /// # Errors
    /// [`GraphError::NotFinished`], [`GraphError::OtherRun`], [`GraphError::NoCheckpoint`]; the
    /// iterator, also if a state does not decode.
    pub fn results<'r, R: Reader>(
        &self,
        reader: &'r R,
    ) -> Result<impl Iterator<Item = Result<(I, P::State)>> + use<'r, P, I, V, E, C, R>> {
        self.require_finished(reader)?;
        let states = self.layout.states.clone();
        let entries = reader.range(states.self_and_children(), Order::Ascending)?;
        Ok(entries.map(move |entry| {
            let (key, value) = entry?;
            let id = states.unpack::<(I,)>(&key).map_err(|error| Error::from(error).at(&key));
            Ok((id?.0, decode(&key, &value)?))
        }))
    }

    /// The state of a vertex after the run has finished, `None` if the graph did not have the
    /// vertex. Costs 3 gets.
    ///
    /// # Errors
    /// Errors of [`results`](Computation::results).
    pub fn result<Q>(&self, reader: &impl Reader, id: &Q) -> Result<Option<P::State>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        self.require_finished(reader)?;
        let key = joined(self.layout.states.prefix(), &pack(&(id,)));
        let value = reader.get(&key)?;
        value.map(|value| decode(&key, &value)).transpose()
    }

    /// # Errors
    /// [`GraphError::NotFinished`], [`GraphError::OtherRun`], [`GraphError::NoCheckpoint`].
    fn require_finished(&self, reader: &impl Reader) -> Result<()> {
        let not_finished =
            || Error::from(GraphError::NotFinished { key: shown(&self.layout.checkpoint) });
        let header = reader.get(&self.layout.header)?.ok_or_else(not_finished)?;
        self.header().require(&header)?;
        let (checkpoint, _) = Checkpoint::<P::Aggregate>::read(reader, &self.layout)?;
        if checkpoint.pass == Pass::Finished { Ok(()) } else { Err(not_finished()) }
    }

    /// Deletes the run and its results, whatever program stored them, in as many transactions as it
    /// takes. Then [`run`](Computation::run) begins again.
    ///
    /// If it was stopped or killed, call it again; until then, runs are refused with
    /// [`GraphError::NoCheckpoint`].
    ///
    /// # Errors
    /// [`SchemaError::Gone`](keyloom_tables::SchemaError) if the table was dropped; errors of
    /// [`Store::transact`].
    pub fn clear(&self, store: &impl Store) -> Result<Progress> {
        self.clear_with(store, |_| ControlFlow::Continue(()))
    }

    /// [`clear`](Computation::clear), which calls `progress` after each commit and stops if that
    /// breaks. [`Progress::removed`] counts keys.
    ///
    /// # Errors
    /// Errors of [`clear`](Computation::clear).
    pub fn clear_with(
        &self,
        store: &impl Store,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (mut size, mut done) = (BatchSize::new(CLEARED), Progress::default());
        while !done.finished {
            let (removed, finished) =
                size.transact(store, |txn, most| txn.guarded(|txn| self.clear_some(txn, most)))?;
            done.removed += removed;
            done.finished = finished;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// Deletes the first keys after the header, which is deleted last: without a checkpoint, it
    /// says that the run is being cleared.
    fn clear_some(&self, txn: &mut impl Writer, most: usize) -> Result<(u64, bool)> {
        self.table.expect_writable(txn)?;
        let header = &self.layout.header;
        let all = self.layout.space.self_and_children();
        let EntryPage { entries, last } =
            txn.page(all.clone().after(header), Order::Ascending, most)?;
        let removed = entries.len() as u64;
        drop(entries);
        match &last {
            Some(last) => {
                let first = KeyRange::behind(header).into_owned();
                txn.delete_range(all.up_to(Order::Ascending, last).intersect(first))?;
            }
            None => txn.delete_range(all)?,
        }
        Ok((removed, last.is_none()))
    }
}

/// The state in the value of an entry.
fn decode<S>(key: &[u8], value: &[u8]) -> Result<S>
where
    Postcard: Codec<S>,
{
    let state = StoredState::split(value).and_then(|stored| Postcard::decode(stored.state));
    state.map_err(|error| error.at(key))
}
