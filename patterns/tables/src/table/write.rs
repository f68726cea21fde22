//! Writes of records, with the data derived from them.

use std::borrow::Borrow;

use keyloom::key::display;
use keyloom::value::Codec;
use keyloom::{DynWriter, Error, Result, Writer};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::{RecordChange, SortedWrites};
use smallvec::SmallVec;

use super::Table;
use super::before::Met;
use super::changes::{Change, PackedKeys, last_of_each};
use super::followed::Follow;
use super::queue::Queued;
#[cfg(doc)]
use crate::Undecodable;

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// Sets the record of `key` and updates the derived data.
    ///
    /// Costs one key written. With derived data attached, also costs one get and the writes of the
    /// changed derived data.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a record that contains [another key](Table::keyed_by);
    /// [`Error::At`] with an [`Error::Value`] if the codec cannot encode the record; [`Error::At`]
    /// with [`Undecodable`] in an [`Error::Other`] if the old record [does not
    /// decode](crate::table#records-that-do-not-decode) and the derived data depends on it; any
    /// error of the derived data; any error of the store.
    pub fn put(&self, txn: &mut impl Writer, key: &K, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            self.make_all(txn, &[Change::setting(key, &packed, value)?]).map(drop)
        })
    }

    /// Sets many records and updates the derived data. The effect is the same as one
    /// [`put`](Table::put) after another. But all old records are read in one round trip, and all
    /// writes are made in the order of their keys. So `put_many` also suits bulk loads.
    ///
    /// Takes pairs or references to pairs. If a key occurs twice, its last record is written.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// let by_price = Index::new(&Subspace::new("by_price"), |_, price: &u32| entry(price));
    /// let prices = Table::<String, u32>::new(&Subspace::new("prices")).with(&by_price);
    /// let store = Memory::new();
    /// let list = vec![("tea".to_owned(), 250), ("milk".to_owned(), 120)];
    /// store.transact(|txn| prices.put_many(txn, &list))?;
    /// assert_eq!(prices.get(&store.snapshot()?, "milk")?, Some(120));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// Costs one key written per record. With derived data attached, also costs one get per record,
    /// all in one round trip, and the writes of the changed derived data. Holds in memory the new
    /// and old records, and the encoded bytes of the keys, the new records and their derived
    /// entries.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put). A key that is too long, a record that the codec cannot
    /// encode, and an old record that the codec cannot decode are reported before anything is
    /// written.
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        records: impl IntoIterator<Item: Borrow<(K, V)>>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let records: Vec<_> = records.into_iter().collect();
            let records = || records.iter().map(Borrow::borrow);
            let packed = PackedKeys::of(&self.space, records().map(|(key, _)| key));
            let changes = records()
                .zip(packed.iter())
                .map(|((key, value), packed)| Change::setting(key, packed, value));
            let changes = changes.collect::<Result<Vec<_>>>()?;
            self.make_all(txn, &last_of_each(changes)).map(drop)
        })
    }

    /// Removes the record of `key` and the data derived from it, and returns whether there was a
    /// record.
    ///
    /// Also removes a record that does not decode, if the [derived
    /// data](crate::table#records-that-do-not-decode) allows it.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put).
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            Ok(self.make_all(txn, &[Change::removing(key, &packed)])? > 0)
        })
    }

    /// Removes the record of `key` without reading it, and leaves the derived data unchanged.
    ///
    /// Use it to remove a record that does not decode if [`delete`](Table::delete) depends on the
    /// old record. Afterwards the derived data is inconsistent until it is
    /// [repaired](crate::Maintained::repair). Costs one key written.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete_without_derived(&self, txn: &mut impl Writer, key: &K) -> Result<()> {
        txn.guarded(|txn| txn.delete(&self.space.pack(key)))
    }

    /// Removes the records of many keys and the data derived from them, and returns how many
    /// records there were. The effect is the same as one [`delete`](Table::delete) after another,
    /// but the records are read in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let squares = Table::<u32, u32>::new(&Subspace::new("squares"));
    /// let store = Memory::new();
    /// store.transact(|txn| squares.put_many(txn, (0..5).map(|n| (n, n * n))))?;
    /// let there = store.transact(|txn| squares.delete_many(txn, &[3, 4, 5, 4]))?;
    /// assert_eq!(there, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put_many`](Table::put_many).
    pub fn delete_many<'k>(
        &self,
        txn: &mut impl Writer,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<usize> {
        txn.guarded(|txn| {
            let keys: Vec<&K> = keys.into_iter().collect();
            let packed = PackedKeys::of(&self.space, keys.iter().copied());
            let changes =
                keys.iter().zip(packed.iter()).map(|(key, packed)| Change::removing(*key, packed));
            self.make_all(txn, &last_of_each(changes.collect()))
        })
    }

    /// Changes the record of `key` from `old`, which the caller has read in this transaction, to
    /// `new`; `None` means no record. Saves the get of [`put`](Table::put) and
    /// [`delete`](Table::delete). If `old` is not the stored record, derived data becomes wrong.
    ///
    /// # Errors
    /// The errors of [`put`](Table::put), except those for the old record.
    pub fn replace(
        &self,
        txn: &mut impl Writer,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            let change = match new {
                Some(value) => Change::setting(key, &packed, value)?,
                None => Change::removing(key, &packed),
            };
            let followed = self.follow(txn)?;
            self.make(txn, &[change], &[Met::of(old)], &followed, &Queued::new())
        })
    }

    /// Changes many records, each as [`replace`](Table::replace) does: from the first value, which
    /// the caller has read in this transaction, to the second; `None` means no record. With
    /// [`get_many`](Table::get_many) before it, any number of records is read and changed in two
    /// round trips. Reads only what the derived data needs. If a first value is
    /// not the stored record, derived data becomes wrong, and a stored record that was given as
    /// `None` is not deleted.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// let by_count = Index::new(&Subspace::new("by_count"), |_, count: &u32| entry(count));
    /// let stock = Table::<String, u32>::new(&Subspace::new("stock")).with(&by_count);
    /// let store = Memory::new();
    /// store.transact(|txn| stock.put_many(txn, [("tea".to_owned(), 9), ("cup".to_owned(), 1)]))?;
    /// let order = ["tea".to_owned(), "cup".to_owned()];
    /// store.transact(|txn| {
    ///     let old = stock.get_many(txn, &order)?;
    ///     let new: Vec<_> = old.iter().map(|count| count.filter(|n| *n > 1).map(|n| n - 1)).collect();
    ///     let old_and_new = old.iter().zip(&new);
    ///     let changes = order.iter().zip(old_and_new).map(|(key, (old, new))| {
    ///         (key, old.as_ref(), new.as_ref())
    ///     });
    ///     stock.replace_many(txn, changes)
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(stock.get_many(&snapshot, &order)?, [Some(8), None]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`replace`](Table::replace); [`Error::InvalidArgument`] if a key occurs twice.
    pub fn replace_many<'c>(
        &self,
        txn: &mut impl Writer,
        changes: impl IntoIterator<Item = (&'c K, Option<&'c V>, Option<&'c V>)>,
    ) -> Result<()>
    where
        V: 'c,
    {
        txn.guarded(|txn| {
            let records: Vec<_> = changes.into_iter().collect();
            let packed = PackedKeys::of(&self.space, records.iter().map(|(key, ..)| *key));
            self.refuse_twice(&packed)?;
            let (mut changes, mut before) = (Vec::new(), Vec::new());
            for ((key, old, new), packed) in records.into_iter().zip(packed.iter()) {
                changes.push(match new {
                    Some(value) => Change::setting(key, packed, value)?,
                    None => Change::removing(key, packed),
                });
                before.push(Met::of(old));
            }
            let followed = self.follow(txn)?;
            self.make(txn, &changes, &before, &followed, &Queued::new())
        })
    }

    fn refuse_twice(&self, packed: &PackedKeys) -> Result<()> {
        let mut keys: Vec<&[u8]> = packed.iter().collect();
        keys.sort_unstable();
        let twice =
            keys.windows(2).find_map(|pair| pair.first().filter(|key| pair.last() == Some(key)));
        twice.map_or(Ok(()), |key| {
            Err(Error::InvalidArgument {
                what: "the records to replace",
                value: display(key).to_string(),
                why: "each key can be changed once; combine the changes of a key",
            })
        })
    }

    /// Makes changes of distinct records, and returns how many of them had an old record. Reads all
    /// old records at once.
    fn make_all(&self, txn: &mut impl Writer, changes: &[Change<'_, K, V>]) -> Result<usize> {
        let (met, followed, queued) = self.replaced_by(txn, changes)?;
        let before: SmallVec<[Met<&V>; 1]> = met.iter().map(Met::as_ref).collect();
        self.make(txn, changes, &before, &followed, &queued)?;
        Ok(met.iter().filter(|met| !matches!(met, Met::Nothing)).count())
    }

    /// Makes changes of distinct records. `met` holds the old records; if `met` is empty, there are
    /// no old records. Writes the records and the derived data together in the order of their keys.
    fn make(
        &self,
        txn: &mut impl Writer,
        changes: &[Change<'_, K, V>],
        met: &[Met<&V>],
        followed: &[Follow<K, V>],
        queued: &Queued,
    ) -> Result<()> {
        let mut records = SortedWrites::default();
        let mut changed = SmallVec::<[_; 1]>::with_capacity(changes.len());
        for (n, change) in changes.iter().enumerate() {
            let met = met.get(n).copied().unwrap_or(Met::Nothing);
            match change.new {
                Some(value) => {
                    let key = change.packed;
                    self.refuse_other_key(key, value)?;
                    records.put_with(key, |bytes| Self::encode(key, value, bytes))?;
                }
                None if matches!(met, Met::Nothing) => continue,
                None => records.delete(change.packed)?,
            }
            let old = met.record();
            if old.is_some() || change.new.is_some() {
                let Change { key, packed: stored_key, new } = *change;
                changed.push(RecordChange { key, stored_key, old, new });
            }
        }
        // Derived data is updated before the records: an update may write immediately, and may
        // refuse the change.
        let mut writes = SortedWrites::default();
        for follow in followed {
            let visited: SmallVec<[_; 1]>;
            let changed = match follow.visited() {
                None => &changed,
                Some(last) => {
                    visited = changed.iter().filter(|c| c.stored_key <= &**last).copied().collect();
                    &visited
                }
            };
            match &follow.queue {
                _ if changed.is_empty() => {}
                None => follow.update(&mut DynWriter::new(txn), changed, &mut writes)?,
                Some(queue) => {
                    follow.derived.validate(changed)?;
                    self.queue(txn, queue, changed, queued, &mut writes)?;
                }
            }
        }
        writes.apply_with(&mut records, txn)
    }

    pub(super) fn encode(key: &[u8], value: &V, bytes: &mut Vec<u8>) -> Result<()> {
        C::encode(value, bytes).map_err(|error| error.at(key))
    }
}
