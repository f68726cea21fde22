//! Indexes that are maintained later: a queue of changed records, and what drains it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use keyloom::key::List;
use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Page, Reader, Result, Store, Subspace, Writer, pack, unpack};

use super::states::{FORMAT, IndexState, without_format};
use super::{Declared, IndexCatalog};
use crate::batch::BatchSize;
use crate::derived::{
    self, DerivedEntries, DerivedEntry, Inconsistency, RecordChange, RepairOptions, RepairPhase,
    RepairPosition, RepairProgress, SortedWrites, page_behind, superfluous,
};
use crate::general::composite_key_index::{Index, IndexEntries, IndexEntry, IndexError, pack_one};
use crate::table::{RecordKey, Table, get_many, record};

/// How far a [`drain`](IndexCatalog::drain) has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainProgress {
    /// Records brought in step.
    pub drained: u64,
    /// Entries written or removed.
    pub written: u64,
    /// Whether the end of the queue was reached.
    pub finished: bool,
    /// The last place of the queue that was done.
    pub(super) position: Option<KeyBuf>,
}

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// Brings a deferred index in step with the records that changed, `batch` of them to a transaction: one
    /// pass over the queue, in the order of the record keys. What changes meanwhile behind it waits for the next pass.
    ///
    /// Any number of processes may drain. One that stops, or dies, leaves the rest in the queue.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
    /// use std::ops::ControlFlow;
    /// let space = Subspace::new("shop");
    /// let by_price = Index::new(&space.child("by_price"), |_id, cents: &u32| entry(cents));
    /// let catalog = IndexCatalog::new(&space.child("indexes")).with_deferred("by_price", 1, &by_price);
    /// let prices = Table::<u32, u32>::new(&space.child("prices")).with(&catalog);
    /// let store = Memory::new();
    /// store.transact(|txn| catalog.open(txn, &prices))?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    /// assert_eq!(catalog.pending(&store.snapshot()?, "by_price")?, 1);
    /// let done = catalog.drain(&store, &prices, "by_price", 100, |_| ControlFlow::Continue(()))?;
    /// assert_eq!((done.drained, done.written), (1, 1));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`IndexError::NotReadable`] for an index that is absent or disabled;
    /// [`Error::BadOption`](keyloom::Error::BadOption) when the catalog belongs to another table; what the store says, and records
    /// that do not decode.
    pub fn drain<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        name: &str,
        batch: usize,
        mut progress: impl FnMut(&DrainProgress) -> ControlFlow<()>,
    ) -> Result<DrainProgress> {
        let mut size = BatchSize::new(batch);
        let mut done = DrainProgress::default();
        while !done.finished {
            done = size.transact(store, |txn, batch| {
                self.drain_batch(txn, table, name, batch, done.clone())
            })?;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// One batch of [`drain`](IndexCatalog::drain), in a transaction of the caller, which goes on where
    /// `done` is; a new pass begins with the default.
    ///
    /// # Errors
    /// As [`drain`](IndexCatalog::drain).
    pub fn drain_batch<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        name: &str,
        batch: usize,
        mut done: DrainProgress,
    ) -> Result<DrainProgress> {
        txn.guarded(|txn| {
            let declared = self.declared(name)?;
            let stored = self.states(txn)?.into_iter().find(|info| info.name == name);
            let is_whole = match stored {
                Some(info) if info.state != IndexState::Disabled => {
                    declared.refuse_change(&info)?;
                    info.state == IndexState::Readable
                }
                _ => {
                    let state =
                        stored.map_or("not built yet".into(), |info| info.state.to_string());
                    return Err(IndexError::NotReadable { index: name.into(), state }.into());
                }
            };
            self.refuse_other_table(txn, table.space())?;
            self.drain_some(declared, txn, table, batch, is_whole, &mut done)?;
            Ok(done)
        })
    }

    /// Brings the index in step with some of the queue. While it is not whole, what was noted may never have
    /// been written, as of a record that was deleted before the build came to it; so all that should
    /// be there is written, and not the difference to that.
    pub(super) fn drain_some<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        is_whole: bool,
        done: &mut DrainProgress,
    ) -> Result<()> {
        let queue = self.room("queue", &declared.name);
        let Page { entries, last } = page_behind(done.position.as_deref(), txn, &queue, batch)?;
        let mut queued = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let read = || Ok((queue.unpack::<(K,)>(&key)?.0, self.stored_entries(&value)?));
            queued.push(read().map_err(|error: keyloom::Error| error.at(&key))?);
        }
        let values = table.get_many(txn, queued.iter().map(|(key, _)| key))?;
        let mut writes = SortedWrites::default();
        for ((key, old), value) in queued.iter().zip(&values) {
            let new = declared.index.entries_of(key, value.as_ref());
            let record_key = pack_one(key);
            let mut write = |key: &[u8], value: Option<&[u8]>| writes.push(key, value);
            declared.index.difference(&record_key, old, &new, &mut write)?;
            if !is_whole {
                declared.index.difference(&record_key, &IndexEntries::none(), &new, &mut write)?;
            }
        }
        done.drained += queued.len() as u64;
        done.written += writes.len() as u64;
        for (key, _) in &queued {
            writes.delete(&place(&queue, key))?;
        }
        writes.apply(txn)?;
        done.finished = last.is_none();
        done.position = last;
        Ok(())
    }

    /// How many records a deferred index is behind by. Reads all of the queue.
    ///
    /// # Errors
    /// What the store says.
    pub fn pending(&self, reader: &impl Reader, name: &str) -> Result<u64> {
        reader.count(self.room("queue", name).range())
    }

    /// Whether the entries of this record are those of an earlier version of it. Costs one get.
    ///
    /// # Errors
    /// What the store says.
    pub fn is_pending(&self, reader: &impl Reader, name: &str, key: &K) -> Result<bool> {
        Ok(reader.get(&place(&self.room("queue", name), key))?.is_some())
    }

    /// Notes, for records whose entries change, what the index has of them, unless that is noted already.
    pub(super) fn queue(
        &self,
        declared: &Declared<K, V>,
        txn: &impl Reader,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let (index, queue) = (&declared.index, self.room("queue", &declared.name));
        let mut changed = BTreeMap::new();
        for change in changes {
            let old = index.entries_of(change.key, change.old);
            // Now, and not when it is drained, is the time to refuse it.
            let new = index.new_entries(change)?;
            if old != new {
                index.check_lengths(&new, &pack_one(change.key))?;
                changed.entry(place(&queue, change.key)).or_insert(old);
            }
        }
        let keys: Vec<&KeyBuf> = changed.keys().collect();
        let noted: Vec<bool> = get_many(txn, &keys)?.iter().map(Option::is_some).collect();
        for ((key, old), _) in changed.iter().zip(noted).filter(|(_, noted)| !noted) {
            writes.put(key, &encode(old))?;
        }
        Ok(())
    }

    /// Takes records out of the queue that are brought in step anyway, and removes what the index has of
    /// them and should not.
    pub(super) fn unqueue(
        &self,
        declared: &Declared<K, V>,
        txn: &impl Reader,
        records: &[(K, V)],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let queue = self.room("queue", &declared.name);
        let places: Vec<KeyBuf> = records.iter().map(|(key, _)| place(&queue, key)).collect();
        let noted = get_many(txn, &places)?;
        for (((key, value), place), noted) in records.iter().zip(&places).zip(noted) {
            let Some(noted) = noted else { continue };
            let old = self.stored_entries(&noted).map_err(|error| error.at(place))?;
            let new = declared.index.entries_of(key, Some(value));
            declared
                .index
                .difference(&pack_one(key), &old, &new, |key, value| writes.push(key, value))?;
            writes.delete(place)?;
        }
        Ok(())
    }

    pub(super) fn check_deferred<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let queue = self.room("queue", &declared.name);
        let mut view = AsQueued { index: &declared.index, noted: HashMap::new() };
        let mut excused = HashSet::new();
        for entry in reader.range(queue.range(), Order::Ascending)? {
            let (key, value) = entry?;
            let read = || Ok((queue.unpack::<(K,)>(&key)?.0, self.stored_entries(&value)?));
            let (key, entries) = read().map_err(|error: keyloom::Error| error.at(&key))?;
            let record_key = pack_one(&key);
            let stored = entries.iter().map(|entry| declared.index.stored(entry, &record_key));
            let stored: Vec<DerivedEntry> = stored.collect();
            excused.extend(stored.iter().map(|(key, _)| key.clone()));
            view.noted.insert(record_key, stored);
        }
        let mut found = Vec::new();
        derived::check(&view, table, reader, |fault| found.push(fault))?;
        // Where the record is gone, nobody can be asked what its entries are.
        let is_excused = |fault: &Inconsistency| matches!(fault, Inconsistency::Dangling { entry } if excused.contains(entry));
        found.retain(|fault| !is_excused(fault));
        Ok(found)
    }

    pub(super) fn repair_deferred<S: Store, C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        derived::repair_in_batches(store, options, progress, |txn, batch, next| {
            match next.position.phase {
                RepairPhase::Records => self.repair_records(declared, txn, table, batch, next),
                RepairPhase::Entries => self.repair_entries(declared, txn, table, batch, next),
            }
        })
    }

    fn repair_records<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        done: &mut RepairProgress,
    ) -> Result<()> {
        let position = done.position.last.as_deref();
        let Page { entries, last } = page_behind(position, txn, table.space(), batch)?;
        let records = entries.into_iter().map(|entry| record::<_, K, V, C>(table.space(), entry));
        let records = records.collect::<Result<Vec<_>>>()?;
        let mut writes = SortedWrites::default();
        missing_or_wrong(&declared.index, txn, &records, &mut writes)?;
        done.records += records.len() as u64;
        done.written += writes.len() as u64;
        self.unqueue(declared, txn, &records, &mut writes)?;
        writes.apply(txn)?;
        let phase = if last.is_some() { RepairPhase::Records } else { RepairPhase::Entries };
        done.position = RepairPosition { phase, last };
        Ok(())
    }

    fn repair_entries<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        done: &mut RepairProgress,
    ) -> Result<()> {
        let index = &declared.index;
        let position = done.position.last.as_deref();
        let Page { entries, last } = page_behind(position, txn, index.space(), batch)?;
        done.entries += entries.len() as u64;
        let queue = self.room("queue", &declared.name);
        let makers = entries.iter().map(|(key, value)| {
            (
                KeyBuf::from_slice(key),
                index.record_key(key, value).ok().map(|key| place(&queue, &key)),
            )
        });
        let makers: HashMap<KeyBuf, Option<KeyBuf>> = makers.collect();
        let mut doomed = Vec::new();
        for fault in superfluous(index, table, txn, entries)? {
            // The queue counts on the entries of a record that waits there.
            let is_noted = match makers.get(fault.entry()) {
                Some(Some(place)) => txn.get(place)?.is_some(),
                _ => false,
            };
            if !is_noted {
                doomed.push(fault);
            }
        }
        doomed.iter().try_for_each(|fault| txn.delete(fault.entry()))?;
        done.removed += doomed.len() as u64;
        done.finished = last.is_none();
        done.position.last = last.or_else(|| done.position.last.take());
        Ok(())
    }

    fn stored_entries(&self, bytes: &[u8]) -> Result<IndexEntries> {
        let stored: List<Vec<(Vec<u8>, Vec<u8>)>> = unpack(without_format(&self.space, bytes)?)?;
        let entry = |(parts, covered)| IndexEntry {
            parts: KeyBuf::from_vec(parts),
            covered: KeyBuf::from_vec(covered),
        };
        Ok(IndexEntries::from_stored(stored.0.into_iter().map(entry)))
    }
}

/// Collects the entries of records that are not there as they should be. Costs one round trip.
fn missing_or_wrong<K: RecordKey, V>(
    index: &Index<K, V>,
    txn: &impl Reader,
    records: &[(K, V)],
    writes: &mut SortedWrites,
) -> Result<()> {
    let mut asked_for: Vec<DerivedEntry> = Vec::new();
    for (key, value) in records {
        let (entries, record_key) = (index.entries_of(key, Some(value)), pack_one(key));
        index.check_lengths(&entries, &record_key)?;
        asked_for.extend(entries.iter().map(|entry| index.stored(entry, &record_key)));
    }
    let keys: Vec<&KeyBuf> = asked_for.iter().map(|(key, _)| key).collect();
    let there = get_many(txn, &keys)?;
    for ((key, value), there) in asked_for.iter().zip(there) {
        if there.as_deref() != Some(&value[..]) {
            writes.put(key, value)?;
        }
    }
    Ok(())
}

fn encode(entries: &IndexEntries) -> Vec<u8> {
    let entries: Vec<(&[u8], &[u8])> =
        entries.iter().map(|entry| (&entry.parts[..], &entry.covered[..])).collect();
    [&[FORMAT], &pack(&List(entries))[..]].concat()
}

/// Where a record stands in a queue, or in a list.
fn place<K: RecordKey>(room: &Subspace, key: &K) -> KeyBuf {
    let mut place = KeyBuf::from_slice(room.prefix());
    place.extend_from_slice(&pack_one(key));
    place
}

/// A deferred index as it should be now: where a record is queued, with the entries that were noted.
struct AsQueued<'i, K, V> {
    index: &'i Index<K, V>,
    noted: HashMap<KeyBuf, Vec<DerivedEntry>>,
}

impl<K: RecordKey, V> DerivedEntries<K, V> for AsQueued<'_, K, V> {
    fn space(&self) -> &Subspace {
        self.index.space()
    }

    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry> {
        let noted = self.noted.get(&pack_one(key)).cloned();
        noted.unwrap_or_else(|| self.index.entries(key, value))
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K> {
        self.index.record_key(key, value)
    }
}
