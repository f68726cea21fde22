//! Records with optimistic locking.

use std::borrow::Borrow;
use std::fmt;

use keyloom::key::display_named;
use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, Pack, Reader, Result, Subspace, Writer};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::Attach;

use super::{Expected, Full, RecordConflict, VersionedRecord, WithVersion};
use crate::table::Table;

/// Records with versions; see the [module](super).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::VersionedTable;
/// let seats = VersionedTable::<u32, String>::new(&Subspace::new("seats"));
/// let store = Memory::new();
/// store.transact(|txn| seats.create(txn, &7, "free".into()))?;
///
/// // A person reads the record and decides.
/// let seen = seats.get(&store.snapshot()?, &7)?.expect("it was created");
/// assert_eq!(*seen, "free");
/// store.transact(|txn| seats.update(txn, &7, seen.version, "Ada".into()))?;
///
/// // Another person read the same version, and is too late.
/// assert!(store.transact(|txn| seats.update(txn, &7, seen.version, "Bob".into())).is_err());
/// assert_eq!(*seats.get(&store.snapshot()?, &7)?.expect("it is there"), "Ada");
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Clones are cheap and share the attached derived data.
pub struct VersionedTable<K, V, C = Postcard> {
    pub(super) records: Table<K, VersionedRecord<V>, WithVersion<C>>,
    pub(super) deleted: KeyBuf,
    /// The largest version of the records that were deleted without an external version.
    pub(super) own_deleted: KeyBuf,
    /// The versions of external deletions.
    pub(super) tombstones: Table<K, u64>,
}

impl<K, V, C> Clone for VersionedTable<K, V, C> {
    fn clone(&self) -> Self {
        let Self { records, deleted, own_deleted, tombstones } = self;
        let (records, deleted) = (records.clone(), deleted.clone());
        Self { records, deleted, own_deleted: own_deleted.clone(), tombstones: tombstones.clone() }
    }
}

impl<K, V, C> fmt::Debug for VersionedTable<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionedTable").field("records", &self.records).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> VersionedTable<K, V> {
    /// A table in `space`. The records are encoded with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<K: RecordKey, V, C> VersionedTable<K, V, C> {
    /// A table in `space`. The records are encoded with the codec `C`.
    pub fn with_codec(space: &Subspace) -> Self {
        Self {
            records: Table::with_codec(&space.child("record")),
            deleted: space.pack("deleted"),
            own_deleted: space.pack("deleted here"),
            tombstones: Table::new(&space.child("tombstone")),
        }
    }

    /// The same table with `derived` attached; see [`Table::with`].
    #[must_use]
    pub fn with<const HOW: u8>(self, derived: &impl Attach<K, VersionedRecord<V>, HOW>) -> Self {
        Self { records: self.records.with(derived), ..self }
    }

    /// The records as a table, for reads of ranges and pages, and for checks and repairs of
    /// indexes.
    ///
    /// Do not write through this table, because such writes bypass the versions.
    pub fn records(&self) -> &Table<K, VersionedRecord<V>, WithVersion<C>> {
        &self.records
    }
}

impl<K: RecordKey, V, C: Codec<V>> VersionedTable<K, V, C> {
    /// The record of `key` with its version. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get<Q>(&self, reader: &impl Reader, key: &Q) -> Result<Option<VersionedRecord<V>>>
    where
        K: Borrow<Q>,
        Q: Pack + ?Sized,
    {
        self.records.get(reader, key)
    }

    /// Replaces the record of `key` with the result of `change`, and returns the new version.
    /// `None` means no record, in arguments and in results.
    ///
    /// Reads and writes in the same transaction, so the change is atomic and never fails with a
    /// [`RecordConflict`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::VersionedTable;
    /// let scores = VersionedTable::<String, Vec<u32>>::new(&Subspace::new("scores"));
    /// let store = Memory::new();
    /// let double = |old: Option<&Vec<u32>>| Ok(old.map(|all| all.iter().map(|n| n * 2).collect()));
    /// store.transact(|txn| scores.create(txn, &"Ada".into(), vec![1, 2]))?;
    /// let version = store.transact(|txn| scores.modify(txn, &"Ada".into(), double))?;
    /// assert_eq!(version, Some(2));
    /// assert_eq!(*scores.get(&store.snapshot()?, "Ada")?.expect("there"), [2, 4]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `change`, which runs before anything is written; the errors of [`Table::put`].
    /// After an error, the transaction [does not commit](super#after-a-refusal).
    pub fn modify(
        &self,
        txn: &mut impl Writer,
        key: &K,
        change: impl FnOnce(Option<&V>) -> Result<Option<V>>,
    ) -> Result<Option<u64>> {
        txn.guarded(|txn| {
            let old = self.get(txn, key)?;
            let new = change(old.as_deref())?;
            self.replace(txn, key, old.as_ref(), new)
        })
    }

    fn replace(
        &self,
        txn: &mut impl Writer,
        key: &K,
        old: Option<&VersionedRecord<V>>,
        new: Option<V>,
    ) -> Result<Option<u64>> {
        let Some(value) = new else {
            self.records.replace(txn, key, old, None)?;
            if let Some(old) = old {
                txn.max(&self.deleted, old.version)?;
                txn.max(&self.own_deleted, old.version)?;
            }
            return Ok(None);
        };
        let before = match old {
            Some(old) => old.version,
            None => txn.counter(&self.deleted)?.cast_unsigned(),
        };
        let version = before.checked_add(1).ok_or_else(|| self.out_of_versions(key))?;
        self.records.replace(txn, key, old, Some(&VersionedRecord { version, value }))?;
        Ok(Some(version))
    }

    #[cold]
    fn out_of_versions(&self, key: &K) -> Error {
        Error::other("it has had all 2^64 versions").at(&self.records.space().pack(key))
    }
}

impl<K: RecordKey, V: Send + Sync + 'static, C: Codec<V>> VersionedTable<K, V, C> {
    /// Creates a record if there is none, and returns its version.
    ///
    /// # Errors
    /// [`RecordConflict`] with the existing record, in an [`Error::Other`]; the errors of
    /// [`Table::put`]. After an error, the transaction [does not commit](super#after-a-refusal),
    /// although a [`RecordConflict`] has written nothing.
    pub fn create(&self, txn: &mut impl Writer, key: &K, value: V) -> Result<u64> {
        txn.guarded(|txn| {
            let old = self.get(txn, key)?;
            match old {
                None => Ok(self.replace(txn, key, None, Some(value))?.unwrap_or_default()),
                Some(_) => Err(self.refused(key, Expected::Absent, old)),
            }
        })
    }

    /// Replaces the record if it still has this version, and returns the new version.
    ///
    /// # Errors
    /// [`RecordConflict`] with the current record, in an [`Error::Other`]; the errors of
    /// [`Table::put`]. After an error, the transaction [does not commit](super#after-a-refusal),
    /// although a [`RecordConflict`] has written nothing.
    pub fn update(&self, txn: &mut impl Writer, key: &K, version: u64, value: V) -> Result<u64> {
        txn.guarded(|txn| {
            let old = self.get(txn, key)?;
            match &old {
                Some(record) if record.version == version => {
                    Ok(self.replace(txn, key, old.as_ref(), Some(value))?.unwrap_or_default())
                }
                _ => Err(self.refused(key, Expected::Version(version), old)),
            }
        })
    }

    /// Removes the record if it still has this version.
    ///
    /// # Errors
    /// The errors of [`update`](VersionedTable::update), with the same effect on the transaction.
    pub fn delete(&self, txn: &mut impl Writer, key: &K, version: u64) -> Result<()> {
        txn.guarded(|txn| {
            let old = self.get(txn, key)?;
            match &old {
                Some(record) if record.version == version => {
                    self.replace(txn, key, old.as_ref(), None).map(drop)
                }
                _ => Err(self.refused(key, Expected::Version(version), old)),
            }
        })
    }

    /// Replaces the record if it equals `expected`, and returns the new version. `None` means no
    /// record, in arguments and in results.
    ///
    /// A record may have changed and changed back to the expected value. If this matters, compare
    /// versions with [`update`](VersionedTable::update) instead.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::VersionedTable;
    /// let seats = VersionedTable::<u32, String>::new(&Subspace::new("seats"));
    /// let (free, ada) = ("free".to_owned(), "Ada".to_owned());
    /// let store = Memory::new();
    /// store.transact(|txn| seats.compare_and_swap(txn, &7, None, Some(free.clone())))?;
    /// store.transact(|txn| seats.compare_and_swap(txn, &7, Some(&free), Some(ada.clone())))?;
    /// assert!(store.transact(|txn| seats.compare_and_swap(txn, &7, Some(&free), None)).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`RecordConflict`] with the current record, in an [`Error::Other`]; the errors of
    /// [`Table::put`]. After an error, the transaction [does not commit](super#after-a-refusal),
    /// although a [`RecordConflict`] has written nothing.
    pub fn compare_and_swap(
        &self,
        txn: &mut impl Writer,
        key: &K,
        expected: Option<&V>,
        new: Option<V>,
    ) -> Result<Option<u64>>
    where
        V: PartialEq,
    {
        txn.guarded(|txn| {
            let old = self.get(txn, key)?;
            if old.as_deref() == expected {
                return self.replace(txn, key, old.as_ref(), new);
            }
            let expected = if expected.is_some() { Expected::Value } else { Expected::Absent };
            Err(self.refused(key, expected, old))
        })
    }

    #[cold]
    fn refused(&self, key: &K, expected: Expected, current: Option<VersionedRecord<V>>) -> Error {
        Error::other(RecordConflict {
            key: self.shown(key),
            expected,
            current,
            deleted: None,
            deleted_here: None,
        })
    }
}

impl<K: RecordKey, V, C> VersionedTable<K, V, C> {
    #[cold]
    pub(super) fn shown(&self, key: &K) -> Box<str> {
        display_named(&self.records.space().pack(key)).to_string().into()
    }
}

impl<K: RecordKey, T: Clone, C: Codec<Vec<T>>> VersionedTable<K, Vec<T>, C> {
    /// Appends an item to the list of `key` if the list has fewer than `most` items. Returns the
    /// new version of the list. A missing list counts as empty.
    ///
    /// The list is one record and is written as a whole, so keep it short. For long lists see
    /// [`sequence`](crate::sequence).
    ///
    /// # Errors
    /// [`Full`] in an [`Error::Other`]; [`Error::InvalidArgument`] for `most` of 0; the errors of
    /// [`Table::put`]. After an error, the transaction [does not commit](super#after-a-refusal),
    /// although the first two errors have written nothing.
    pub fn append(&self, txn: &mut impl Writer, key: &K, item: T, most: usize) -> Result<u64> {
        txn.guarded(|txn| self.append_at_most(txn, key, item, most, false))
    }

    /// Appends an item to the list of `key`, and drops the oldest items if the list then has more
    /// than `most`. Otherwise like [`append`](VersionedTable::append).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::VersionedTable;
    /// let seen = VersionedTable::<u32, Vec<String>>::new(&Subspace::new("last seen"));
    /// let store = Memory::new();
    /// for page in ["a", "b", "c"] {
    ///     store.transact(|txn| seen.append_dropping_oldest(txn, &7, page.into(), 2))?;
    /// }
    /// assert_eq!(*seen.get(&store.snapshot()?, &7)?.expect("there"), ["b", "c"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`append`](VersionedTable::append), except [`Full`].
    pub fn append_dropping_oldest(
        &self,
        txn: &mut impl Writer,
        key: &K,
        item: T,
        most: usize,
    ) -> Result<u64> {
        txn.guarded(|txn| self.append_at_most(txn, key, item, most, true))
    }

    fn append_at_most(
        &self,
        txn: &mut impl Writer,
        key: &K,
        item: T,
        most: usize,
        drops: bool,
    ) -> Result<u64> {
        if most == 0 {
            return Err(Error::InvalidArgument {
                what: "the limit of a list",
                value: "0".into(),
                why: "it takes at least 1 item",
            });
        }
        let grown = |old: Option<&Vec<T>>| {
            let old = old.map_or(&[][..], Vec::as_slice);
            if !drops && old.len() >= most {
                let full = Full { key: self.shown(key), items: old.len(), limit: most };
                return Err(Error::other(full));
            }
            let kept = old.get((old.len() + 1).saturating_sub(most)..).unwrap_or_default();
            Ok(Some(kept.iter().cloned().chain([item]).collect()))
        };
        Ok(self.modify(txn, key, grown)?.unwrap_or_default())
    }
}
