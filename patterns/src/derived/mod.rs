//! Derived data: how is what follows from records maintained, checked and repaired, whatever it is?
//!
//! An index entry, a counter, a spatial cell, a copied field: all of them are *derived*. They follow
//! from records, and are kept beside them because a query needs them in another order. keyloom has
//! one mechanism for all of it:
//!
//! * [`Derived`]: told of every change of a record (its old and its new value, either may be
//!   absent), it brings its data in step within the same transaction.
//! * [`DerivedEntries`]: where the derived data are plain entries, a function from a record to its
//!   entries is enough. The shared code here computes the difference between the entries of the old
//!   and the new value and writes only that; and since it knows what *should* be there it also
//!   [checks](check()) and [repairs](repair()).
//!
//! What is no plain entry, such as a count that many records add to, brings a check and a repair of its
//! own, in the same words: see [`Totals`](crate::general::aggregation::Totals::repair).
//!
//! One law holds for all derived data, and one property test per pattern holds it:
//! **rebuilt from scratch equals maintained step by step**.
//!
//! # Cost
//!
//! Maintenance reads nothing for plain entries, and writes one key per entry that appears,
//! disappears or changes. Over n records and m entries, in chunks of c (1,000 each, unless a repair is
//! told otherwise):
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | [`check`](check()) | each record and each entry, and the other side of each by one get | 2 (n/c + m/c), rounded up |
//! | [`repair`](repair()) | the same | 3 (n/c + m/c), rounded up: one commit per chunk more |

mod check;
mod repair;

use keyloom::{DynWriter, Error, KeyBuf, Result, Subspace, Writer, check_key};
use smallvec::SmallVec;

pub use crate::sorted_writes::SortedWrites;
pub(crate) use check::refuse_foreign;
pub use check::{Inconsistency, check};
pub use repair::{RepairOptions, RepairPhase, RepairPosition, RepairProgress, repair};

/// Data that follows from the records of a table and is maintained with them.
///
/// ```
/// use keyloom::{DynWriter, Memory, Reader, Result, Store, Subspace, Writer};
/// use keyloom_patterns::{Derived, Table};
///
/// /// How many records there are of each value.
/// #[derive(Clone)]
/// struct Counts(Subspace);
///
/// impl Derived<u32, String> for Counts {
///     fn update(&self, txn: &mut DynWriter<'_>, _: &u32, old: Option<&String>, new: Option<&String>) -> Result<()> {
///         if let Some(old) = old {
///             txn.add(&self.0.pack(old), -1)?;
///         }
///         if let Some(new) = new {
///             txn.add(&self.0.pack(new), 1)?;
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
    /// Brings the data in step with a record that changes from `old` to `new`. `None` stands for a
    /// record that is not there.
    ///
    /// The record itself is written by the caller, before or after: do not read it here.
    ///
    /// # Errors
    /// Whatever makes the change impossible; the transaction is then given up.
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<()>;

    /// Adds to `writes` what [`update`](Derived::update) would do, and tells whether it could: where
    /// that is known without a look at the store, and consists of puts and deletes.
    ///
    /// [`Table::put_many`](crate::Table::put_many) asks this first: the writes of many records are
    /// quicker in the order of their keys. The default says no, and is asked to update.
    ///
    /// # Errors
    /// As [`update`](Derived::update).
    fn plan(
        &self,
        writes: &mut SortedWrites,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<bool> {
        let _ = (writes, key, old, new);
        Ok(false)
    }
}

/// A derived entry: its whole key, and its value.
pub type DerivedEntry = (KeyBuf, EntryValue);

type EntryValue = SmallVec<[u8; 16]>;

/// Derived data that are plain entries in a subspace of their own, each made by one record. To attach
/// them to a table, implement [`Derived`] by [`update_entries`] and [`plan_entries`].
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
    /// When the bytes are no entry of this kind.
    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K>;
}

/// Writes the difference between the entries of `old` and those of `new`: what [`Derived::update`] does
/// where the data are plain entries.
///
/// Not done for every [`DerivedEntries`] by itself, since Rust would then let no other generic type be
/// [`Derived`].
///
/// # Errors
/// [`Error::KeyTooLong`] before anything is written, or what the store says.
pub fn update_entries<K, V>(
    derived: &impl DerivedEntries<K, V>,
    txn: &mut impl Writer,
    key: &K,
    old: Option<&V>,
    new: Option<&V>,
) -> Result<()> {
    let [old, new] = [old, new].map(|value| entries_if(derived, key, value));
    // An entry that the store would refuse is refused before the first of them is written.
    new.iter().try_for_each(|(key, _)| check_key(key))?;
    difference(&old, &new, |key, value| match value {
        Some(value) => txn.put(key, value),
        None => txn.delete(key),
    })
}

/// Plans the same: what [`Derived::plan`] does where the data are plain entries.
///
/// # Errors
/// As [`update_entries`].
pub fn plan_entries<K, V>(
    derived: &impl DerivedEntries<K, V>,
    writes: &mut SortedWrites,
    key: &K,
    old: Option<&V>,
    new: Option<&V>,
) -> Result<bool> {
    let [old, new] = [old, new].map(|value| entries_if(derived, key, value));
    difference(&old, &new, |key, value| match value {
        Some(value) => writes.put(key, value),
        None => {
            writes.delete(key);
            Ok(())
        }
    })?;
    Ok(true)
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

/// Refuses derived data and records that do not lie apart from each other: what belongs to the one
/// would be taken for the other.
pub(crate) fn refuse_overlap(derived: &Subspace, records: &Subspace) -> Result<()> {
    if !derived.contains(records.prefix()) && !records.contains(derived.prefix()) {
        return Ok(());
    }
    Err(Error::BadOption {
        what: "the subspace",
        value: derived.to_string(),
        why: "the table and what is derived from it lie inside each other; give each its own",
    })
}

/// An error of an entry that must stop the work, rather than count as an entry that is wrong.
fn newer_format<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error @ Error::NewerFormat { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Tells `write` what turns the entries `old` into the entries `new`, and nothing else: keys to be
/// deleted, and those to be put with their values.
fn difference(
    old: &[DerivedEntry],
    new: &[DerivedEntry],
    mut write: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
) -> Result<()> {
    let has_key = |entries: &[DerivedEntry], key: &KeyBuf| {
        entries.binary_search_by(|(other, _)| other.cmp(key)).is_ok()
    };
    for (key, _) in old.iter().filter(|(key, _)| !has_key(new, key)) {
        write(key, None)?;
    }
    for (key, value) in new.iter().filter(|entry| old.binary_search(entry).is_err()) {
        write(key, Some(value))?;
    }
    Ok(())
}
