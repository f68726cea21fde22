//! A vertex program on a graph: declaration, options, results.

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
// `BatchSize` halves this number if the store refuses the transaction. A lower number adds commits;
// a higher one blocks other writers for longer.
const CLEARED: usize = 1_000;

/// The codec of the table whose subspace holds a run. The table has no records. Its name in the
/// schema reserves the subspace.
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
    /// A table without records; its subspace holds the run.
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
    /// Declares a run of `program` on `graph`, but does not start it. The run is stored in a table
    /// of `schema` with the name `name`. [`Schema::drop_table`] deletes the run and its results.
    ///
    /// Raise `version` when the program changes: a stored run with another version is not resumed,
    /// and its results cannot be read.
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`], such as
    /// [`SchemaError::Contradiction`](keyloom_tables::SchemaError) if the name belongs to another
    /// program.
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

    /// Sets the number of threads. Default: one per core. The results do not depend on this number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets the largest number of supersteps; a longer run ends with [`GraphError::NeverHalts`].
    /// Default: 10,000. A later call with a larger bound continues the run.
    #[must_use]
    pub fn max_supersteps(mut self, supersteps: u64) -> Self {
        self.max_supersteps = supersteps;
        self
    }

    /// Sets the largest number of vertices in one batch. Default: 2,000. Stored with the run.
    #[must_use]
    pub fn max_batch_vertices(mut self, vertices: usize) -> Self {
        self.batch_vertices = vertices.max(1);
        self
    }

    /// Sets the size in bytes at which a batch ends, for the states, edges and messages that it
    /// reads or sends. The size is estimated as the stored bytes, plus 64 for each entry read and
    /// 384 for each message sent. Default: 16 MiB. Stored with the run.
    ///
    /// Values that are much larger in memory than in Postcard need a smaller bound.
    #[must_use]
    pub fn max_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// Sets the largest size of a vertex with its state, edges and messages, estimated as for
    /// [`max_batch_bytes`](Computation::max_batch_bytes). Larger vertices are refused. Default: 64
    /// MiB. All data of a vertex are in memory while it is computed; with a combiner, its messages
    /// count as one.
    #[must_use]
    pub fn max_vertex_bytes(mut self, bytes: usize) -> Self {
        self.vertex_bytes = bytes;
        self
    }

    /// The header that a stored run must match.
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

    /// The states of all vertices of a finished run, in the order of their keys. Costs 2 gets and 1
    /// range.
    ///
    /// # Errors
    /// [`GraphError::NotFinished`], [`GraphError::OtherRun`], [`GraphError::NoCheckpoint`]. The
    /// iterator also returns an error if a state does not decode.
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

    /// The state of a vertex of a finished run; `None` if the graph did not have the vertex. Costs
    /// 3 gets.
    ///
    /// # Errors
    /// The errors of [`results`](Computation::results).
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

    /// Deletes the run and its results, even if another program stored them, in as many
    /// transactions as needed. The next [`run`](Computation::run) starts from the beginning.
    ///
    /// If `clear` was stopped or killed, call it again; until then, runs are refused with
    /// [`GraphError::NoCheckpoint`].
    ///
    /// # Errors
    /// [`SchemaError::Gone`](keyloom_tables::SchemaError) if the table was dropped; the errors of
    /// [`Store::transact`].
    pub fn clear(&self, store: &impl Store) -> Result<Progress> {
        self.clear_with(store, |_| ControlFlow::Continue(()))
    }

    /// [`clear`](Computation::clear) with a callback: calls `progress` after each commit and stops
    /// if it breaks. [`Progress::removed`] counts keys.
    ///
    /// # Errors
    /// The errors of [`clear`](Computation::clear).
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

    /// Deletes the first keys after the header. The header is deleted last: a header without a
    /// checkpoint shows that the run is being cleared.
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
