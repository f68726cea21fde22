//! Derived data: how is what follows from records maintained, checked and repaired, whatever it is?
//!
//! An index entry, a counter, a spatial cell, a copied field: all of them are *derived*. They
//! follow from records, and are kept beside them because a query needs them in another order.
//! keyloom has one mechanism for all of it:
//!
//! * [`Derived`]: receives every change of a record (its old and its new value, either may be
//!   absent), and updates its data within the same transaction.
//! * [`DerivedEntries`]: where the derived data are plain entries, a function from a record to its
//!   entries is enough. The shared code here computes the difference between the entries of the old
//!   and the new value and writes only that; and since it knows what *should* be there it also
//!   [checks](check()) and [repairs](repair()).
//!
//! What is no plain entry, such as a count that many records add to, brings a check and a repair of
//! its own, in the same words: see [`Totals`](crate::Maintained::repair).
//!
//! One law holds for all derived data, and one property test per pattern holds it:
//! **rebuilt from scratch equals maintained step by step**.
//!
//! # Cost
//!
//! Maintenance reads nothing for plain entries, and writes one key per entry that appears,
//! disappears or changes; the entries of many records are written in the order of their keys. Over
//! n records and m entries, in chunks of c (1,000 each, unless a repair is told otherwise):
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | [`check`](check()) | each record and each entry, and the other side of each by one get | 2 (n/c + m/c), rounded up |
//! | [`repair`](repair()) | the same | 3 (n/c + m/c), rounded up: one commit per chunk more |

mod check;
mod repair;
mod writes;

use std::fmt;
use std::sync::Arc;

use keyloom::{
    DynWriter, Error, KeyBuf, Order, Pack, Reader, Result, Subspace, Writer, check_key, pack,
};
use smallvec::SmallVec;

pub use crate::progress::{RepairOptions, RepairPhase, RepairPosition};
pub use check::check;
#[doc(hidden)]
pub use check::page_behind;
#[doc(hidden)]
pub use check::refuse_foreign;
pub use repair::repair;
#[doc(hidden)]
pub use repair::repair_in_batches;
pub use writes::SortedWrites;

/// What happens to one record: `old` becomes `new`, and `None` stands for a record that is not
/// there.
pub struct RecordChange<'c, K, V> {
    /// The key of the record.
    pub key: &'c K,
    /// The whole key under which the table stores the record, for errors that name it.
    pub stored_key: &'c [u8],
    /// The record until now.
    pub old: Option<&'c V>,
    /// The record from now on.
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

/// Data that follows from the records of a table and is maintained with them.
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
///     fn update(&self, txn: &mut DynWriter<'_>, changes: &[RecordChange<'_, u32, String>], _: &mut SortedWrites) -> Result<()> {
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
    /// Brings the data in step with changes, each of another record. They come together, since many
    /// are cheaper so: read in one round trip, and written with everything else in the order of the
    /// keys.
    ///
    /// What is put into `writes` is written when all that is attached has been asked. What others
    /// have put there is not seen in `txn` before `writes.apply(txn)`.
    ///
    /// The records themselves are written by the caller, before or after: do not read them here.
    ///
    /// # Errors
    /// What makes a change impossible. The transaction then [does not
    /// commit](keyloom::Writer#a-failed-write).
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()>;

    /// Refuses changes that [`update`](Derived::update) would refuse whatever the store holds, such
    /// as an entry that is too long for a key.
    ///
    /// Called instead of `update` when a schema [defers](crate::Schema::derive_deferred) that, so
    /// that the write of the record fails and not the later update. Provided: refuses nothing.
    ///
    /// # Errors
    /// Errors of `update`.
    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        let _ = changes;
        Ok(())
    }

    /// [`update`](Derived::update) during a build of a schema. `reached` is what
    /// [`finish_build`](Derived::finish_build) returned last, `None` while the build visits
    /// records, which it passes here too. It may leave out what `finish_build` computes. Provided:
    /// `update`.
    ///
    /// # Errors
    /// Errors of `update`.
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
    /// keys. Returns where it is, for the next transaction; `None` when the data are whole. Called
    /// with `None` first, in the transaction that visits the last record. Provided: the data are
    /// whole.
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

    /// Where the data are, if all lie in one subspace. [`Table::with`](crate::Table::with) refuses
    /// what would lie among other data.
    fn subspace(&self) -> Option<&Subspace> {
        None
    }

    /// Removes all that follows from records whose values are not known, since they do not decode,
    /// and returns whether it could.
    ///
    /// The table then deletes or replaces them; a record that replaces one comes to
    /// [`update`](Derived::update) without an old value. Provided: `false`, after which the table
    /// refuses the change.
    ///
    /// # Errors
    /// Any error of the store.
    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        let _ = (txn, lost);
        Ok(false)
    }
}

/// The keys of records that are there and do not decode.
pub struct LostRecords<'c, K> {
    /// In the order of the packed keys.
    keys: Vec<(KeyBuf, &'c K)>,
    pack: fn(&K) -> KeyBuf,
}

impl<'c, K: Pack> LostRecords<'c, K> {
    pub(crate) fn new(keys: impl Iterator<Item = &'c K>) -> Self {
        let mut keys: Vec<_> = keys.map(|key| (pack(key), key)).collect();
        keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { keys, pack }
    }
}

impl<'c, K> LostRecords<'c, K> {
    /// The keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &'c K> {
        self.keys.iter().map(|(_, key)| *key)
    }

    /// Whether `key` is one of them.
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

pub(crate) type EntryValue = SmallVec<[u8; 16]>;

/// Derived data that are plain entries in a subspace of their own, each made by one record.
pub trait DerivedEntries<K, V>: Send + Sync {
    /// Where the entries are. Nothing else may be there.
    fn space(&self) -> &Subspace;

    /// The entries of a record.
    ///
    /// A pure function: the same record gives the same entries, whenever and wherever it is asked.
    /// An answer that changes leaves entries behind that nothing removes; [`check`](check()) finds
    /// them. Of several entries with one key the smallest counts.
    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry>;

    /// The key of the record that made an entry.
    ///
    /// # Errors
    /// When the bytes are not an entry of this kind. Whatever the error is, a check reports the
    /// entry as a fault and goes on, and a repair writes it again from its record or removes it.
    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K>;

    /// Collects what brings the entries in step with records that change. Provided: the difference.
    /// Another implementation may do that more cheaply, or look into the store and refuse a change;
    /// what it leaves must be what [`entries`](DerivedEntries::entries) says.
    ///
    /// # Errors
    /// What makes a change impossible, such as an entry that is too long for a key.
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

    /// Refuses changes that [`maintain`](DerivedEntries::maintain) would refuse whatever the store
    /// holds; see [`Derived::validate`]. Provided: the lengths of the keys.
    ///
    /// # Errors
    /// Errors of `maintain`.
    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        changes.iter().try_for_each(|change| {
            let entries = entries_if(self, change.key, change.new);
            entries.iter().try_for_each(|(key, _)| check_key(key))
        })
    }
}

/// What [`Table::with`](crate::Table::with) takes: everything that is [`Derived`], and everything
/// that is [`DerivedEntries`], for which the difference is written here.
///
/// `HOW` keeps the two apart and is always inferred. (One trait for all of the other would keep
/// every generic pattern from being [`Derived`] itself: some crate could make it `DerivedEntries`
/// as well.)
pub trait Attach<K, V, const HOW: u8> {
    /// What the table calls at each change.
    fn attached(&self) -> Arc<dyn Derived<K, V>>;
}

/// How [`Derived`] data are attached: as they are.
const AS_DERIVED: u8 = 0;

/// How [`DerivedEntries`] are attached: by their difference.
pub(crate) const AS_ENTRIES: u8 = 1;

/// How an [`Index`](crate::Index) is attached, whatever the types of its parts are.
pub(crate) const AS_INDEX: u8 = 2;

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

/// Maintains entries by the difference between those of the old and of the new value.
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

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        for entry in entries_made_by(&self.0, txn, lost)? {
            txn.delete(&entry)?;
        }
        Ok(true)
    }
}

/// The keys of the entries that lost records made. Reads all entries: one range.
///
/// What is no entry belongs to no record, and is left to a [check](check()).
pub(crate) fn entries_made_by<K, V, D: DerivedEntries<K, V> + ?Sized>(
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

/// The entries of a record that may not be there.
pub(crate) fn entries_if<K, V, D: DerivedEntries<K, V> + ?Sized>(
    derived: &D,
    key: &K,
    value: Option<&V>,
) -> Vec<DerivedEntry> {
    value.map_or(Vec::new(), |value| entries_of(derived, key, value))
}

/// The entries of a record in the order of their keys, each key once.
fn entries_of<K, V, D: DerivedEntries<K, V> + ?Sized>(
    derived: &D,
    key: &K,
    value: &V,
) -> Vec<DerivedEntry> {
    let mut entries = derived.entries(key, value);
    entries.sort();
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

/// Nothing in the place of a record that does not decode; all other errors stay errors.
#[doc(hidden)]
pub fn unless_undecodable<T>(outcome: Result<T>) -> Result<Option<T>> {
    outcome.map(Some).or_else(|error| if is_undecodable(&error) { Ok(None) } else { Err(error) })
}

/// Whether a record, or its key, does not decode.
#[doc(hidden)]
pub fn is_undecodable(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_undecodable(source),
        Error::Value { .. } | Error::Key(_) => true,
        _ => false,
    }
}

/// Writes what turns the entries `old` into the entries `new`, both in the order of their keys, and
/// nothing else.
#[cfg(feature = "entities")]
pub(crate) fn write_difference(
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
