//! Derived data whose updates are deferred.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, EntryPage, Error, KeyBuf, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::derived::{
    LostRecords, RecordChange, SortedWrites, is_undecodable, unless_undecodable,
};
use keyloom_kit::{BatchSize, Progress, get_many, page_behind};

use super::Schema;
use super::attached::Attached;
use super::batches::BATCH;
#[cfg(doc)]
use super::error::SchemaError;
use super::owned::stage_of;
use super::queued::{read_queued, record_key};
use super::state::State;
use super::stored::{StoredDerived, space_of};
use crate::derived::Maintained;
use crate::table::{Stage, Table, queue_key};

impl<S: Store> Schema<'_, S> {
    /// Declares derived data whose updates are deferred; see [`derive`](Schema::derive).
    ///
    /// When a record changes, the writer queues its old value and does not update the data;
    /// [`drain`](Attached::drain) updates the data later. A record that changes several times
    /// between two drains is queued once, and updated once. Queries see the records as of the last
    /// drain.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Index, Schema};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "blog")?;
    /// let posts = schema.table::<u32, String>("posts")?;
    /// let by_word = schema.derive_deferred(&posts, "by_word", 1, |space| {
    ///     let words = |_: &u32, text: &String| text.split_whitespace().collect();
    ///     Ok(Index::<u32, String, String>::new(space, words))
    /// })?;
    /// for text in ["a b c", "a b d", "a b e"] {
    ///     store.transact(|txn| posts.put(txn, &1, &text.into()))?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_word.pending(&snapshot)?, 1);
    /// assert_eq!(by_word.at(&snapshot)?.count(&snapshot, ..)?, 0);
    /// # drop(snapshot);
    /// assert_eq!(by_word.drain(&store)?.records, 1);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_word.at(&snapshot)?.count(&snapshot, "e")?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`derive`](Schema::derive); [`Error::InvalidArgument`] for a kind that [cannot
    /// be deferred](Maintained::can_be_deferred), such as a unique index.
    pub fn derive_deferred<D: Maintained, C: Codec<D::Value>>(
        &self,
        table: &Table<D::Key, D::Value, C>,
        name: &str,
        version: u32,
        make: impl Fn(&Subspace) -> Result<D>,
    ) -> Result<Attached<D, C>> {
        self.declare(table, name, version, true, make)
    }
}

impl<D: Maintained, C> Attached<D, C> {
    /// Whether the data is declared as [deferred](Schema::derive_deferred).
    pub fn is_deferred(&self) -> bool {
        self.declared.definition.is_deferred
    }
}

impl<D: Maintained, C: Codec<D::Value>> Attached<D, C> {
    /// Updates [deferred](Schema::derive_deferred) data for the queued records, in one pass over
    /// the queue. Uses bounded transactions, and runs concurrently with readers and writers.
    /// Several programs may drain at once. Does nothing for data that is not deferred.
    ///
    /// A record that does not decode counts as absent.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`] for disabled data; [`SchemaError::Changed`];
    /// [`SchemaError::Gone`]; errors of the kind; [`Error::At`] for a queued value that does not
    /// decode, if the kind cannot [forget](crate::Derived::forget) the record;
    /// [`SchemaError::Damaged`] in an [`Error::At`] for a damaged entry of the queue, which a
    /// [repair](Attached::repair) removes; any error of the store.
    pub fn drain(&self, store: &impl Store) -> Result<Progress> {
        self.drain_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`drain`](Attached::drain), with at most `batch` records in a transaction. Calls
    /// `progress` after each transaction and stops if `progress` breaks. The remaining records stay
    /// in the queue.
    ///
    /// # Errors
    /// See [`drain`](Attached::drain).
    pub fn drain_with<S: Store>(
        &self,
        store: &S,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        // The next transaction begins after the key `after`. A record that is queued again before
        // that key waits for the next pass. `after` is set only after a commit.
        let (mut after, mut reached) = (None::<KeyBuf>, None);
        let mut progress = progress;
        let mut done = Progress::default();
        let mut size = BatchSize::new(batch);
        while !done.finished {
            let step = size.transact(store, |txn, batch| {
                txn.guarded(|txn| {
                    let mut txn = DynWriter::new(txn);
                    let (step, last) = self.drain_after(&mut txn, after.as_deref(), batch)?;
                    reached = last;
                    Ok(step)
                })
            })?;
            after = reached.take();
            done = done.followed_by(&step);
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// One transaction of [`drain`](Attached::drain): the first `batch` records of the queue. The
    /// progress is finished when the queue is empty.
    ///
    /// # Errors
    /// See [`drain`](Attached::drain).
    pub fn drain_batch(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        txn.guarded(|txn| Ok(self.drain_after(&mut DynWriter::new(txn), None, batch.max(1))?.0))
    }

    /// The number of queued records. Costs one get and one range over the whole queue.
    ///
    /// # Errors
    /// [`SchemaError::Changed`], [`SchemaError::Gone`]; any error of the store.
    pub fn pending(&self, reader: &impl Reader) -> Result<u64> {
        match self.queue(reader)? {
            Some((_, queue)) => reader.count(queue.self_and_children()),
            None => Ok(0),
        }
    }

    /// Whether the record is queued, so that the data still reflects its earlier value. Costs two
    /// gets.
    ///
    /// # Errors
    /// [`SchemaError::Changed`], [`SchemaError::Gone`]; any error of the store.
    pub fn is_pending(&self, reader: &impl Reader, key: &D::Key) -> Result<bool> {
        let Some((_, queue)) = self.queue(reader)? else { return Ok(false) };
        let space = self.table.space();
        Ok(reader.get(&queue_key(&queue, space, &space.pack(key)))?.is_some())
    }

    /// The state and the queue of deferred data. Costs one get.
    pub(super) fn queue(&self, reader: &impl Reader) -> Result<Option<(State, Subspace)>> {
        let one = self.stored(reader)?;
        Ok(one.queue.map(|queue| (one.state, space_of(queue))))
    }

    /// The entry of the data in the schema. Costs one get.
    fn stored(&self, reader: &impl Reader) -> Result<StoredDerived> {
        let owned = self.owned()?;
        let mut stored = owned.read(reader)?;
        let one = owned.find(&mut stored, &self.declared)?;
        owned.refuse_change(&self.declared, one)?;
        Ok(one.clone())
    }

    // The transaction is a trait object, so that this function is compiled once for each kind of
    // data.
    fn drain_after(
        &self,
        txn: &mut DynWriter<'_>,
        after: Option<&[u8]>,
        batch: usize,
    ) -> Result<(Progress, Option<KeyBuf>)> {
        let one = self.stored(txn)?;
        let Some(queue) = one.queue.map(space_of) else {
            return Ok((Progress::complete(), None));
        };
        if one.state == State::Disabled {
            return Err(self.not_readable(one.state)?);
        }
        let EntryPage { entries, last } = page_behind(after, txn, &queue, batch)?;
        let mut queued = Vec::with_capacity(entries.len());
        let mut lost = None;
        for (key, value) in entries {
            let at = KeyBuf::from_slice(&key);
            let read = || Ok((self.key_of(&queue, &at)?, read_queued(&value)?));
            let (key, old) = read().map_err(|error: Error| error.at(&at))?;
            let old = match self.decode(old) {
                Err(error) if is_undecodable(&error) => {
                    lost.get_or_insert((Vec::new(), error.at(&at))).0.push(queued.len());
                    None
                }
                old => old.map_err(|error| error.at(&at))?,
            };
            queued.push((key, record_key(&queue, self.table.space(), &at), old, at));
        }
        if let Some((places, error)) = lost {
            // A queued value does not decode: remove its derived data by its record key.
            let keys = places.iter().filter_map(|place| queued.get(*place)).map(|(key, ..)| key);
            let keys = LostRecords::new(keys);
            if !self.declared.derived().forget(txn, &keys)? {
                return Err(error);
            }
        }
        let mut new = Vec::with_capacity(queued.len());
        let keys: Vec<&KeyBuf> = queued.iter().map(|(_, stored_key, ..)| stored_key).collect();
        for (bytes, key) in get_many(txn, &keys)?.into_iter().zip(keys) {
            let record = self.decode(bytes.as_deref()).map_err(|error| error.at(key));
            new.push(unless_undecodable(record)?.flatten());
        }
        let changes =
            queued.iter().zip(&new).filter(|((_, _, old, _), new)| old.is_some() || new.is_some());
        let changes = changes.map(|((key, stored_key, old, _), new)| RecordChange {
            key,
            stored_key,
            old: old.as_ref(),
            new: new.as_ref(),
        });
        let changes: Vec<_> = changes.collect();
        let mut writes = SortedWrites::default();
        // While a build has not visited any record, the queue is empty.
        let stage = stage_of(&one).unwrap_or(Stage::Readable);
        stage.update(self.declared.derived(), txn, &changes, &mut writes)?;
        queued.iter().try_for_each(|(.., at)| writes.delete(at))?;
        writes.apply(txn)?;
        let records = queued.len() as u64;
        let finished = last.is_none();
        Ok((Progress { records, finished, ..Progress::default() }, last))
    }

    fn key_of(&self, queue: &Subspace, queued: &[u8]) -> Result<D::Key> {
        Ok(queue.unpack(queued)?)
    }

    fn decode(&self, record: Option<&[u8]>) -> Result<Option<D::Value>> {
        record.map(C::decode).transpose()
    }
}
