//! Runs a program, batch by batch.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Store, Writer, pack};
use keyloom_kit::{BatchSize, Progress};

use super::batch::{Batch, Bounds, Job};
use super::checkpoint::{Checkpoint, Pass, Until};
use super::computation::Computation;
use super::program::VertexProgram;
use super::source::Source;
use crate::keys::shown;
use crate::{GraphError, VertexId};

impl<P, I, V, E, C> Computation<P, I, V, E, C>
where
    P: VertexProgram<I, E>,
    I: VertexId,
    V: 'static,
    E: Send + 'static,
    C: Codec<V> + Codec<E> + 'static,
{
    /// Runs the program until all vertices have halted and no messages are left. For a run that has
    /// already finished, costs 1 get in a transaction and 1 get in a snapshot. To begin a run costs
    /// 1 get for each [start vertex](VertexProgram::begins_at) of the program, and up to 2 ranges
    /// if the vertex is not in the table.
    ///
    /// If the run was stopped or killed, call this method again: the run continues after the last
    /// committed batch, and stores the same bytes as an uninterrupted run. Concurrent runs in
    /// several processes are safe, but repeat the same work.
    ///
    /// # Errors
    /// [`GraphError::OtherRun`], [`GraphError::NoCheckpoint`], [`GraphError::MissingStart`],
    /// [`GraphError::NeverHalts`], [`GraphError::UnknownTarget`], [`GraphError::ChangedGraph`],
    /// [`GraphError::VertexTooLarge`]; the errors of the program, of
    /// [`Graph::at`](crate::Graph::at) and of [`Store::transact`];
    /// [`SchemaError::Gone`](keyloom_tables::SchemaError) if the table was dropped.
    pub fn run(&self, store: &impl Store) -> Result<Progress> {
        self.run_with(store, |_| ControlFlow::Continue(()))
    }

    /// [`run`](Computation::run) with a callback: calls `progress` after each commit and stops if
    /// it breaks. [`Progress::records`] counts the vertices computed in all supersteps,
    /// [`Progress::written`] the states and messages written.
    ///
    /// # Errors
    /// The errors of [`run`](Computation::run).
    pub fn run_with<S: Store>(
        &self,
        store: &S,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.begin(store)?;
        let source = Source::new(&self.graph, &self.program);
        let mut done = Progress::default();
        let mut size = BatchSize::new(limits(store).most_writes);
        loop {
            let Some((at, mut stored, batch)) = self.compute(store, &source)? else {
                done.finished = true;
                return Ok(done);
            };
            let mut written = at.until.as_ref().map_or(0, |until| until.written);
            // Each transaction compares the checkpoint: another process may have committed the same
            // batch.
            while let Some(step) = self.write(store, &mut size, &batch, &at, written, &stored)? {
                done.written += (step.written - written) as u64;
                if step.is_last {
                    done.records += batch.vertices;
                    done.written += batch.states.len() as u64;
                }
                if progress(&done).is_break() {
                    return Ok(done);
                }
                if step.is_last {
                    break;
                }
                (written, stored) = (step.written, step.checkpoint);
            }
        }
    }

    /// Stores the header of a new run, or checks that the stored header is the same.
    fn begin(&self, store: &impl Store) -> Result<()> {
        let header = self.header();
        store.transact(|txn| {
            if let Some(stored) = txn.get(&self.layout.header)? {
                return header.require(&stored);
            }
            self.program.check()?;
            self.check_begin(txn)?;
            txn.guarded(|txn| {
                self.table.expect_writable(txn)?;
                if txn.first(self.layout.space.self_and_children())?.is_some() {
                    let key = shown(&self.layout.header);
                    return Err(GraphError::NoCheckpoint { key }.into());
                }
                txn.put(&self.layout.header, &header.encode()?)?;
                let checkpoint = Checkpoint::<P::Aggregate>::new(&header)?;
                txn.put(&self.layout.checkpoint, &checkpoint.encode()?)
            })
        })
    }

    /// Checks that the start vertices of the program are in the table of vertices, or have edges.
    fn check_begin(&self, reader: &impl Reader) -> Result<()> {
        for id in self.program.begins_at() {
            let mut has = reader.get(&self.graph.vertices.space().pack(&id))?.is_some();
            for side in [false, true] {
                has = has || reader.first(self.graph.side(side).range_of(&(&id,)))?.is_some();
            }
            if !has {
                return Err(GraphError::MissingStart { vertex: shown(&pack(&(&id,))) }.into());
            }
        }
        Ok(())
    }

    /// Computes the next batch. Returns the checkpoint that the batch continues, the bytes of this
    /// checkpoint, and the batch; `None` if the run has finished.
    fn compute<S: Store>(
        &self,
        store: &S,
        source: &Source<I, E>,
    ) -> Result<Option<(Checkpoint<P::Aggregate>, Vec<u8>, Batch)>> {
        let most = limits(store);
        let mut bounds = Bounds {
            vertices: self.batch_vertices.min(most.most_writes),
            bytes: self.batch_bytes,
            vertex_bytes: self.vertex_bytes,
            state_bytes: most.state_bytes,
        };
        loop {
            let snapshot = store.snapshot()?;
            let (at, stored) = Checkpoint::read(&snapshot, &self.layout)?;
            match at.pass {
                Pass::Finished => return Ok(None),
                Pass::Superstep(n) if n >= self.max_supersteps => {
                    return Err(GraphError::NeverHalts { bound: n }.into());
                }
                Pass::Init | Pass::Superstep(_) => {}
            }
            if at.until.is_some() {
                (bounds.vertices, bounds.bytes) = (usize::MAX, usize::MAX);
            }
            self.graph.at(&snapshot)?;
            let Self { program, layout, threads, .. } = self;
            let job = Job { source, layout, program, at: &at, bounds, threads: *threads };
            match job.run(&snapshot) {
                // The snapshot became too old before the batch was read.
                Err(error) if error.is_batch_too_large() && at.until.is_none() => {
                    if bounds.vertices == 1 {
                        return Err(error);
                    }
                    bounds.vertices /= 2;
                }
                batch => {
                    let batch = batch?;
                    return Ok(Some((at, stored, batch)));
                }
            }
        }
    }

    /// Writes the messages of a batch from number `written`. The transaction of the last messages
    /// also writes all other data of the batch. Returns `None` if the stored checkpoint is not
    /// `stored`.
    fn write<S: Store>(
        &self,
        store: &S,
        size: &mut BatchSize,
        batch: &Batch,
        at: &Checkpoint<P::Aggregate>,
        written: usize,
        stored: &[u8],
    ) -> Result<Option<Written>> {
        let key = &self.layout.checkpoint;
        let messages = batch.messages.get(written..).unwrap_or_default();
        size.transact(store, |txn, most| {
            txn.guarded(|txn| {
                self.table.expect_writable(txn)?;
                if txn.get(key)?.as_deref() != Some(stored) {
                    return Ok(None);
                }
                let part = messages.get(..most).unwrap_or(messages);
                let is_last = part.len() == messages.len();
                let written = written + part.len();
                put_all(txn, part)?;
                let checkpoint = if is_last {
                    put_all(txn, &batch.states)?;
                    batch.consumed.iter().try_for_each(|read| txn.delete_range(read.clone()))?;
                    batch.done.clone()
                } else {
                    at.until(Until { written, ..batch.until.clone() }).encode()?
                };
                txn.put(key, &checkpoint)?;
                Ok(Some(Written { written, is_last, checkpoint }))
            })
        })
    }
}

/// The writes of one transaction.
struct Written {
    /// The number of messages of the batch that are written so far.
    written: usize,
    is_last: bool,
    checkpoint: Vec<u8>,
}

fn put_all<V: AsRef<[u8]>>(txn: &mut impl Writer, entries: &[(KeyBuf, V)]) -> Result<()> {
    let entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, value.as_ref())).collect();
    txn.put_sorted(&entries)
}

/// The part of a batch that fits into one transaction.
struct Limits {
    most_writes: usize,
    state_bytes: usize,
}

/// The states of a batch are written in one transaction with the last of its messages, so they may
/// take at most half of the writes. They may take at most a quarter of the bytes, since
/// FoundationDB counts keys several times.
fn limits(store: &impl Store) -> Limits {
    let limits = store.limits();
    let most_writes = limits.max_transaction_operations.map_or(usize::MAX, |most| most / 2 - 1);
    let state_bytes = limits.max_transaction_bytes.map_or(usize::MAX, |most| most / 4);
    Limits { most_writes, state_bytes }
}
