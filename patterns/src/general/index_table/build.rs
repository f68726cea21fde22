//! Indexes that come: built in bounded transactions while writers go on.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Page, Reader, Result, Store, Writer, pack, unpack};

use super::states::{Definition, FORMAT, IndexInfo, IndexState, States, without_format};
use super::{Declared, DrainProgress, IndexCatalog};
use crate::batch::BatchSize;
use crate::derived::{SortedWrites, page_behind};
use crate::general::composite_key_index::pack_one;
use crate::table::{RecordKey, Table, record};

/// How [`build`](IndexCatalog::build) works.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// How many records one transaction visits at the most. Default: 1,000. Where a store finds that too
    /// much, a batch is halved until it fits.
    pub batch: usize,
    /// How long to rest between two batches. Default: none. Within a process nobody needs it: whoever
    /// waits to write comes before the next batch. Where other processes write to one LMDB file,
    /// whose lock knows no order, a millisecond lets them in; elsewhere it bounds the load on a server.
    pub rest: Duration,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { batch: 1_000, rest: Duration::ZERO }
    }
}

/// What a [`build`](IndexCatalog::build) is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildPhase {
    /// Removing what there is of an index by another definition, or of a disabled one.
    Clearing,
    /// Going through the records.
    Records,
    /// Unique: looking again at records that another one stood in the way of. Deferred: draining the queue
    /// once.
    Settling,
    /// All is done but for violations of uniqueness, which somebody must mend; see
    /// [`violations`](IndexCatalog::violations). The next call settles again.
    Blocked,
    /// Done: the index can be asked.
    Readable,
}

/// How far a [`build`](IndexCatalog::build) has come, all calls of it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// What it is doing.
    pub phase: BuildPhase,
    /// Records visited.
    pub records: u64,
    /// Entries written. Those that writers brought are not among them.
    pub written: u64,
    /// Keys removed while clearing.
    pub removed: u64,
    /// Records found that another one stands in the way of: while going through the records, and again
    /// in each round of settling.
    pub violations: u64,
    /// The last key that it visited in this phase.
    pub(super) position: Option<KeyBuf>,
}

impl BuildProgress {
    pub(super) fn beginning(phase: BuildPhase) -> Self {
        Self { phase, records: 0, written: 0, removed: 0, violations: 0, position: None }
    }

    /// Whether the index can be asked.
    pub fn is_finished(&self) -> bool {
        self.phase == BuildPhase::Readable
    }

    fn encode(&self) -> Vec<u8> {
        let phase: u8 = match self.phase {
            BuildPhase::Clearing => 0,
            BuildPhase::Records => 1,
            // The others are not stored.
            _ => 2,
        };
        let position = self.position.as_deref();
        let Self { records, written, removed, violations, .. } = self;
        let stored = (phase, position, records, written, removed, violations);
        [&[FORMAT], &pack(&stored)[..]].concat()
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let (phase, position, records, written, removed, violations) =
            unpack::<(u8, Option<Vec<u8>>, u64, u64, u64, u64)>(bytes)?;
        let phase = match phase {
            0 => BuildPhase::Clearing,
            1 => BuildPhase::Records,
            _ => BuildPhase::Settling,
        };
        let position = position.map(KeyBuf::from_vec);
        Ok(Self { phase, records, written, removed, violations, position })
    }
}

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// Builds the index `name` over the records that are there, in bounded transactions, while others read
    /// and write; from its first transaction on writers maintain it, and in its last one it becomes
    /// readable. An index that is readable already, by the definition that is declared, costs one get.
    ///
    /// An index that is stored by another definition, or disabled, is cleared first; it cannot be asked
    /// meanwhile.
    ///
    /// `progress` is told after each transaction how far it is; with `ControlFlow::Break` it stops the build.
    /// The position is in the store: one that was stopped, or died, goes on when somebody calls this again,
    /// in whichever process. Several may build at the same time; they take turns.
    ///
    /// Returns [`BuildPhase::Blocked`] when records of a unique index are in each other's way.
    ///
    /// # Errors
    /// [`IndexError::Changed`](super::IndexError::Changed) when the store has a newer version of the index;
    /// [`IndexError::EntryTooLong`](super::IndexError::EntryTooLong) for a record whose entry does not fit,
    /// which must be mended first; as [`open`](IndexCatalog::open); what the store says, and records
    /// that do not decode.
    pub fn build<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        name: &str,
        options: &BuildOptions,
        mut progress: impl FnMut(&BuildProgress) -> ControlFlow<()>,
    ) -> Result<BuildProgress> {
        let mut size = BatchSize::new(options.batch);
        loop {
            let done =
                size.transact(store, |txn, batch| self.build_batch(txn, table, name, batch))?;
            let is_over = matches!(done.phase, BuildPhase::Blocked | BuildPhase::Readable);
            if progress(&done).is_break() || is_over {
                return Ok(done);
            }
            if !options.rest.is_zero() {
                thread::sleep(options.rest);
            }
        }
    }

    /// One batch of [`build`](IndexCatalog::build), in a transaction of the caller: what the stored states
    /// say comes next.
    ///
    /// # Errors
    /// As [`build`](IndexCatalog::build).
    pub fn build_batch<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        name: &str,
        batch: usize,
    ) -> Result<BuildProgress> {
        txn.guarded(|txn| {
            let declared = self.declared(name)?;
            let states = States(self.states(txn)?);
            match states.get(name) {
                Some(info) if info.definition.version > declared.definition.version => {
                    declared.refuse_change(info)?;
                }
                Some(info) if info.definition == declared.definition => match info.state {
                    IndexState::Readable => {
                        return Ok(BuildProgress::beginning(BuildPhase::Readable));
                    }
                    IndexState::WriteOnly => {
                        return self.advance(declared, txn, table, states, batch);
                    }
                    IndexState::Disabled => {}
                },
                _ => {}
            }
            self.validate(table.space())?;
            states.refuse_overlap(declared)?;
            self.claim(txn, table.space())?;
            self.start(declared, txn, states, batch)
        })
    }

    /// Clears what there is, and makes the index write-only in the transaction that finds it empty.
    fn start(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        mut states: States,
        batch: usize,
    ) -> Result<BuildProgress> {
        let name = declared.name.as_str();
        let stored = states.get(name).cloned();
        let is_disabled = stored.as_ref().is_some_and(|info| info.state == IndexState::Disabled);
        let mut done = match self.progress(txn, name)? {
            Some(done) if is_disabled => done,
            _ => BuildProgress::beginning(BuildPhase::Clearing),
        };
        let stored = stored.unwrap_or_else(|| declared.info(IndexState::Disabled));
        let entries = [&stored.definition.space, &declared.definition.space];
        let entries = if entries[0] == entries[1] { &entries[..1] } else { &entries[..] };
        let (removed, is_empty) = self.clear(txn, name, entries, batch)?;
        done.removed += removed;
        if is_empty {
            states.set(declared.info(IndexState::WriteOnly));
            self.write_states(txn, &states)?;
            done.phase = BuildPhase::Records;
        } else if !is_disabled {
            states.set(IndexInfo { state: IndexState::Disabled, ..stored });
            self.write_states(txn, &states)?;
        }
        txn.put(&self.build_key(name), &done.encode())?;
        Ok(done)
    }

    /// Goes on with a write-only index.
    fn advance<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        states: States,
        batch: usize,
    ) -> Result<BuildProgress> {
        // Several tables may have records of the same types.
        self.claim(txn, table.space())?;
        let beginning = || BuildProgress::beginning(BuildPhase::Records);
        let mut done = self.progress(txn, &declared.name)?.unwrap_or_else(beginning);
        let is_whole = match done.phase {
            BuildPhase::Settling if declared.definition.is_deferred => {
                self.settle_queue(declared, txn, table, batch, &mut done)?
            }
            BuildPhase::Settling => self.settle(declared, txn, table, batch, &mut done)?,
            _ => self.index_records(declared, txn, table, batch, &mut done)?,
        };
        if !is_whole {
            txn.put(&self.build_key(&declared.name), &done.encode())?;
            return Ok(done);
        }
        self.publish(declared, txn, states)?;
        Ok(BuildProgress { phase: BuildPhase::Readable, ..done })
    }

    fn publish(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        mut states: States,
    ) -> Result<()> {
        states.set(declared.info(IndexState::Readable));
        txn.delete(&self.build_key(&declared.name))?;
        self.write_states(txn, &states)
    }

    /// Writes the entries of the records behind the position. Tells whether the index is whole.
    fn index_records<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        done: &mut BuildProgress,
    ) -> Result<bool> {
        let Page { entries, last } =
            page_behind(done.position.as_deref(), txn, table.space(), batch)?;
        let records = entries.into_iter().map(|entry| record::<_, K, V, C>(table.space(), entry));
        let records = records.collect::<Result<Vec<_>>>()?;
        done.records += records.len() as u64;
        if declared.definition.is_unique {
            let records = records.iter().map(|(key, value)| (key, Some(value)));
            self.settle_records(declared, txn, records, done)?;
        } else {
            self.bring_in(declared, txn, &records, done)?;
        }
        let Definition { is_unique, is_deferred, .. } = declared.definition;
        let is_end = last.is_none();
        done.position = last;
        if is_end && (is_unique || is_deferred) {
            done.phase = BuildPhase::Settling;
            return Ok(false);
        }
        Ok(is_end)
    }

    /// One pass over what was queued while the records were gone through: those that were not there
    /// when their turn came. What is queued from then on is right.
    fn settle_queue<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        done: &mut BuildProgress,
    ) -> Result<bool> {
        let position = done.position.take();
        let mut drained = DrainProgress { position, ..DrainProgress::default() };
        self.drain_some(declared, txn, table, batch, false, &mut drained)?;
        done.position = drained.position;
        Ok(drained.finished)
    }

    /// Brings an index that is not unique in step with some records. Entries that are there already are
    /// written again: that is cheaper than to look.
    fn bring_in(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        records: &[(K, V)],
        done: &mut BuildProgress,
    ) -> Result<()> {
        let mut writes = SortedWrites::default();
        for (key, value) in records {
            let (entries, record_key) =
                (declared.index.entries_of(key, Some(value)), pack_one(key));
            declared.index.check_lengths(&entries, &record_key)?;
            for entry in entries.iter() {
                let (key, value) = declared.index.stored(entry, &record_key);
                writes.put(&key, &value)?;
                done.written += 1;
            }
        }
        if declared.definition.is_deferred {
            self.unqueue(declared, txn, records, &mut writes)?;
        }
        writes.apply(txn)
    }

    pub(super) fn build_key(&self, name: &str) -> KeyBuf {
        self.space.pack(&("build", name))
    }

    fn progress(&self, reader: &impl Reader, name: &str) -> Result<Option<BuildProgress>> {
        let key = self.build_key(name);
        let Some(bytes) = reader.get(&key)? else { return Ok(None) };
        let decode = || BuildProgress::decode(without_format(&self.space, &bytes)?);
        decode().map(Some).map_err(|error| error.at(&key))
    }
}
