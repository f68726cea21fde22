//! Derived data: data that is computed from the records of a table and changes with them.
//!
//! [`Derived`] is the trait that a table calls at each change of a record. If the derived data
//! consists of plain entries, implement [`DerivedEntries`] instead: a function returns the entries
//! of a record, and the difference between old and new entries is written. The checks and repairs,
//! which read tables, are in `keyloom_tables::derived`.

mod writes;

use std::fmt;
use std::sync::Arc;

use keyloom::{
    DynWriter, Error, KeyBuf, Order, Pack, Reader, Result, Subspace, Writer, check_key, pack,
};
use smallvec::SmallVec;

pub use writes::{SortedWrites, word};

/// The change of one record from `old` to `new`; `None` means that there is no record.
pub struct RecordChange<'c, K, V> {
    /// The key of the record.
    pub key: &'c K,
    /// The whole key under which the table stores the record, for error messages.
    pub stored_key: &'c [u8],
    /// The record before the change.
    pub old: Option<&'c V>,
    /// The record after the change.
    pub new: Option<&'c V>,
}

impl<K, V> Clone for RecordChange<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for RecordChange<'_, K, V> {}

impl<K: fmt::Debug, V> fmt::Debug for RecordChange<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = [self.old.is_some(), self.new.is_some()];
        f.debug_struct("RecordChange")
            .field("key", self.key)
            .field("is_there", &is_there)
            .finish_non_exhaustive()
    }
}

/// Data that is computed from the records of a table and maintained with them.
///
/// ```
/// use keyloom::{DynWriter, Memory, Reader, Result, Store, Subspace, Writer};
/// use keyloom_tables::derived::{RecordChange, SortedWrites};
/// use keyloom_tables::{Derived, Table};
///
/// /// How many records there are of each value.
/// #[derive(Clone)]
/// struct Counts(Subspace);
///
/// impl Derived<u32, String> for Counts {
///     fn update(
///         &self,
///         txn: &mut DynWriter<'_>,
///         changes: &[RecordChange<'_, u32, String>],
///         _: &mut SortedWrites,
///     ) -> Result<()> {
///         for change in changes {
///             if let Some(old) = change.old {
///                 txn.add(&self.0.pack(old), -1)?;
///             }
///             if let Some(new) = change.new {
///                 txn.add(&self.0.pack(new), 1)?;
///             }
///         }
///         Ok(())
///     }
/// }
///
/// let counts = Counts(Subspace::new("counts"));
/// let towns = Table::<u32, String>::new(&Subspace::new("towns")).with(&counts);
/// let store = Memory::new();
/// store.transact(|txn| {
///     towns.put(txn, &1, &"FR".into())?;
///     towns.put(txn, &2, &"FR".into())?;
///     towns.put(txn, &1, &"US".into())
/// })?;
/// assert_eq!(store.snapshot()?.counter(&counts.0.pack("FR"))?, 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait Derived<K, V>: Send + Sync {
    /// Updates the data for changes of distinct records. The changes are passed together because a
    /// batch is cheaper: its reads share one round trip, and its writes are made in key order.
    ///
    /// The entries of `writes` are written after all derived data of the table has been updated.
    /// Entries that other derived data has added to `writes` are not visible in `txn` before
    /// `writes.apply(txn)`.
    ///
    /// The caller writes the records, before or after this call. So do not read the records here.
    ///
    /// # Errors
    /// Any error that makes a change impossible. The transaction then [does not
    /// commit](keyloom::Writer#a-failed-write).
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()>;

    /// Refuses changes that [`update`](Derived::update) would refuse regardless of the contents of
    /// the store, such as an entry that is too long for a key.
    ///
    /// Called instead of `update` if a schema defers the update. So an invalid change fails when
    /// the record is written, and not in the later update. The default refuses nothing.
    ///
    /// # Errors
    /// The errors of `update` that do not depend on the contents of the store.
    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        let _ = changes;
        Ok(())
    }

    /// Like [`update`](Derived::update), but called while a schema builds this data. `changes` are
    /// the changes of a writer, or records that the build visits. `reached` is the last result of
    /// [`finish_build`](Derived::finish_build), or `None` while the build still visits records. An
    /// implementation may leave out the data that `finish_build` computes. The default calls
    /// `update`.
    ///
    /// # Errors
    /// The errors of `update`.
    fn update_in_build(
        &self,
        reached: Option<&[u8]>,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let _ = reached;
        self.update(txn, changes, writes)
    }

    /// Continues a build that has visited all records, in one transaction that visits about `batch`
    /// keys. Returns the position for the next transaction, or `None` if the data is complete.
    /// First called with `None`, in the transaction that visits the last record. The default
    /// returns `None`.
    ///
    /// # Errors
    /// Any error of the store.
    fn finish_build(
        &self,
        txn: &mut DynWriter<'_>,
        reached: Option<&[u8]>,
        batch: usize,
    ) -> Result<Option<KeyBuf>> {
        let _ = (txn, reached, batch);
        Ok(None)
    }

    /// The subspace of the data, if all data is in one subspace. `Table::with` refuses derived data
    /// that overlaps with other data.
    fn subspace(&self) -> Option<&Subspace> {
        None
    }

    /// The positions in `records` of the records whose derived data is not in the store. A schema
    /// calls this with records of earlier versions, because an upgrade of a record must not change
    /// its derived data. [`DerivedEntries`] read their entries in one round trip.
    ///
    /// The default returns none. It is for derived data that cannot be checked for a single record,
    /// such as totals.
    ///
    /// # Errors
    /// Any error of the store.
    fn missing(&self, txn: &mut DynWriter<'_>, records: &[(K, V)]) -> Result<Vec<usize>> {
        let _ = (txn, records);
        Ok(Vec::new())
    }

    /// Removes all derived data of records that do not decode, and whose values are therefore
    /// unknown. Returns whether this was possible.
    ///
    /// If so, the table deletes or replaces the records, and passes each new record to
    /// [`update`](Derived::update) without an old value. If not, the table refuses the change. The
    /// default returns `false`.
    ///
    /// # Errors
    /// Any error of the store.
    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        let _ = (txn, lost);
        Ok(false)
    }
}

/// The keys of stored records that do not decode.
pub struct LostRecords<'c, K> {
    /// In the order of the packed keys.
    keys: Vec<(KeyBuf, &'c K)>,
    pack: fn(&K) -> KeyBuf,
}

impl<'c, K: Pack> LostRecords<'c, K> {
    /// The lost records with these keys, in any order.
    pub fn new(keys: impl Iterator<Item = &'c K>) -> Self {
        let mut keys: Vec<_> = keys.map(|key| (pack(key), key)).collect();
        keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { keys, pack }
    }
}

impl<'c, K> LostRecords<'c, K> {
    /// The keys, in packed order.
    pub fn keys(&self) -> impl Iterator<Item = &'c K> {
        self.keys.iter().map(|(_, key)| *key)
    }

    /// Whether `key` is among the keys.
    pub fn contains(&self, key: &K) -> bool {
        let packed = (self.pack)(key);
        self.keys.binary_search_by(|(other, _)| other.cmp(&packed)).is_ok()
    }
}

impl<K> fmt::Debug for LostRecords<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LostRecords").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

/// A derived entry: its whole key, and its value.
pub type DerivedEntry = (KeyBuf, EntryValue);

/// The value of a derived entry.
pub type EntryValue = SmallVec<[u8; 16]>;

/// Derived data that consists of plain entries in its own subspace, each made by one record.
pub trait DerivedEntries<K, V>: Send + Sync {
    /// The subspace of the entries. It must contain nothing else.
    fn space(&self) -> &Subspace;

    /// The entries of a record.
    ///
    /// Must be a pure function: the same record always gives the same entries. If the result
    /// varies, some entries are never removed; a check finds them. If several entries have the same
    /// key, the one with the smallest value is used.
    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry>;

    /// The key of the record that makes the entry.
    ///
    /// # Errors
    /// Any error if the bytes are not an entry of this kind. A check then reports the entry as a
    /// fault and continues. A repair writes the entry again from its record, or removes it.
    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K>;

    /// Collects the writes that update the entries when records change. The default collects the
    /// difference between the old and the new entries. An implementation may compute the difference
    /// at a lower cost, or read the store and refuse a change. The resulting entries must be those
    /// that [`entries`](DerivedEntries::entries) returns.
    ///
    /// # Errors
    /// Any error that makes a change impossible, such as an entry that is too long for a key.
    fn maintain(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let _ = txn;
        for change in changes {
            let [old, new] = [change.old, change.new].map(|v| entries_if(self, change.key, v));
            writes.difference(&old, &new)?;
        }
        Ok(())
    }

    /// Refuses changes that [`maintain`](DerivedEntries::maintain) would refuse regardless of the
    /// contents of the store; see [`Derived::validate`]. The default checks the lengths of the
    /// keys.
    ///
    /// # Errors
    /// The errors of `maintain` that do not depend on the contents of the store.
    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        changes.iter().try_for_each(|change| {
            let entries = entries_if(self, change.key, change.new);
            entries.iter().try_for_each(|(key, _)| check_key(key))
        })
    }
}

/// The argument of `Table::with`: every [`Derived`] type and every [`DerivedEntries`] type. For the
/// latter, this module writes the difference between old and new entries.
///
/// `HOW` distinguishes the two and is always inferred. (A blanket implementation of `Derived` for
/// all `DerivedEntries` would prevent generic patterns from implementing [`Derived`]: another crate
/// could implement `DerivedEntries` for them as well.)
pub trait Attach<K, V, const HOW: u8> {
    /// The derived data that the table updates at each change.
    fn attached(&self) -> Arc<dyn Derived<K, V>>;
}

/// `HOW` for [`Derived`] data.
const AS_DERIVED: u8 = 0;

/// `HOW` for [`DerivedEntries`]. They are maintained by writing the difference of their entries.
pub const AS_ENTRIES: u8 = 1;

/// `HOW` for an `Index`, whatever the types of its parts are.
pub const AS_INDEX: u8 = 2;

impl<K, V, D: Derived<K, V> + Clone + 'static> Attach<K, V, AS_DERIVED> for D {
    fn attached(&self) -> Arc<dyn Derived<K, V>> {
        Arc::new(self.clone())
    }
}

impl<K, V, D: DerivedEntries<K, V> + Clone + 'static> Attach<K, V, AS_ENTRIES> for D {
    fn attached(&self) -> Arc<dyn Derived<K, V>> {
        Arc::new(Difference(self.clone()))
    }
}

/// Maintains entries by writing the difference between the entries of the old and the new value.
struct Difference<D>(D);

impl<K, V, D: DerivedEntries<K, V>> Derived<K, V> for Difference<D> {
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        self.0.maintain(txn, changes, writes)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        self.0.validate(changes)
    }

    fn subspace(&self) -> Option<&Subspace> {
        Some(self.0.space())
    }

    fn missing(&self, txn: &mut DynWriter<'_>, records: &[(K, V)]) -> Result<Vec<usize>> {
        let made = records.iter().map(|(key, record)| entries_of(&self.0, key, record));
        let made: Vec<_> = made.collect();
        let keys: Vec<&[u8]> = made.iter().flatten().map(|(key, _)| &**key).collect();
        let mut stored = txn.get_many(&keys)?.into_iter();
        let lacks = |entries: &Vec<DerivedEntry>| {
            let stored = stored.by_ref().take(entries.len());
            // Consume all stored values of this record, even after one that differs.
            let differ = stored.zip(entries).filter(|(stored, (_, value))| {
                stored.as_deref().is_none_or(|stored| *stored != **value)
            });
            differ.count() > 0
        };
        let places = made.iter().map(lacks).enumerate();
        Ok(places.filter_map(|(place, lacks)| lacks.then_some(place)).collect())
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        for entry in entries_made_by(&self.0, txn, lost)? {
            txn.delete(&entry)?;
        }
        Ok(true)
    }
}

/// The keys of the entries made by records that do not decode. Reads all entries in one range.
///
/// Skips keys that are not entries; a check reports them.
pub fn entries_made_by<K, V, D: DerivedEntries<K, V> + ?Sized>(
    derived: &D,
    reader: &impl Reader,
    lost: &LostRecords<'_, K>,
) -> Result<Vec<KeyBuf>> {
    let mut entries = Vec::new();
    for entry in reader.range(derived.space().self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        let maker = derived.record_key(&key, &value).ok();
        if maker.is_some_and(|maker| lost.contains(&maker)) {
            entries.push(KeyBuf::from_slice(&key));
        }
    }
    Ok(entries)
}

/// The entries of a record, or none if there is no record.
pub fn entries_if<K, V, D: DerivedEntries<K, V> + ?Sized>(
    derived: &D,
    key: &K,
    value: Option<&V>,
) -> Vec<DerivedEntry> {
    value.map_or(Vec::new(), |value| entries_of(derived, key, value))
}

/// The entries of a record in the order of their keys, each key once.
pub fn entries_of<K, V, D: DerivedEntries<K, V> + ?Sized>(
    derived: &D,
    key: &K,
    value: &V,
) -> Vec<DerivedEntry> {
    let mut entries = derived.entries(key, value);
    entries.sort();
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

/// `None` if a record does not decode; all other errors are returned.
pub fn unless_undecodable<T>(outcome: Result<T>) -> Result<Option<T>> {
    outcome.map(Some).or_else(|error| if is_undecodable(&error) { Ok(None) } else { Err(error) })
}

/// Whether a record, or its key, does not decode.
pub fn is_undecodable(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_undecodable(source),
        Error::Value { .. } | Error::Key(_) => true,
        _ => false,
    }
}

/// Writes the difference between the entries `old` and the entries `new`, which must both be in the
/// order of their keys.
pub fn write_difference(
    txn: &mut impl Writer,
    old: &[DerivedEntry],
    new: &[DerivedEntry],
) -> Result<()> {
    let mut writes = SortedWrites::default();
    writes.difference(old, new)?;
    writes.apply(txn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_records_are_found_whatever_order_they_come_in() {
        let lost = LostRecords::new([7, 300, -4, 0].iter());
        assert!(lost.keys().eq(&[-4, 0, 7, 300]));
        assert!([-4, 0, 7, 300].iter().all(|key| lost.contains(key)));
        assert!(![-5, 1, 301].iter().any(|key| lost.contains(key)));
    }
}
