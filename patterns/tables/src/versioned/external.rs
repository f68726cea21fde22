//! Versions that another system assigns.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{EntryPage, Error, Result, Store, Writer};
use keyloom_kit::{Progress, RecordKey, RepairOptions, in_batches, page_behind};

use super::{Expected, RecordConflict, VersionedRecord, VersionedTable};
use crate::table::record;

/// The largest external version. Greater versions would leave no versions for later changes.
/// Negative numbers of other systems would also become such versions.
const LARGEST: u64 = i64::MAX.cast_unsigned();

/// A version assigned by another system, such as a time, a position in a log or the version of a
/// row in another database. At most 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalVersion {
    /// The change is applied if its version is greater than the current version. A change that
    /// arrives twice is refused the second time.
    Greater(u64),
    /// The change is applied if its version is greater than or equal to the current version, so
    /// that the same change can be written again. Changes with the same version must be equal.
    GreaterOrEqual(u64),
}

impl ExternalVersion {
    /// The version number.
    pub fn number(self) -> u64 {
        match self {
            Self::Greater(number) | Self::GreaterOrEqual(number) => number,
        }
    }

    fn accepts(self, current: u64) -> bool {
        match self {
            Self::Greater(number) => number > current,
            Self::GreaterOrEqual(number) => number >= current,
        }
    }

    fn validate(self) -> Result<()> {
        let value = self.number();
        if value <= LARGEST {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "an external version",
            value: value.to_string(),
            why: "it is at most 2^63 - 1; was it negative in the other system?",
        })
    }
}

impl fmt::Display for ExternalVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greater(number) => write!(f, "a version less than {number}"),
            Self::GreaterOrEqual(number) => write!(f, "a version of at most {number}"),
        }
    }
}

/// The current record, or the version of its tombstone.
type Current<V> = (Option<VersionedRecord<V>>, Option<u64>);

impl<K: RecordKey, V: Send + Sync + 'static, C: Codec<V>> VersionedTable<K, V, C> {
    /// Puts a record with a version assigned by another system, if the current version is smaller.
    /// With [`ExternalVersion::GreaterOrEqual`], the current version may also be equal. Changes may
    /// arrive in any order, and the newest change wins.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::VersionedTable;
    /// use keyloom_tables::versioned::ExternalVersion::Greater;
    /// let prices = VersionedTable::<String, u32>::new(&Subspace::new("prices"));
    /// let tea = "tea".to_owned();
    /// let store = Memory::new();
    /// store.transact(|txn| prices.put_external(txn, &tea, Greater(20), 250))?;
    /// // An older change arrives late.
    /// let late = store.transact(|txn| prices.put_external(txn, &tea, Greater(10), 199));
    /// assert!(late.unwrap_err().to_string().contains("has version 20"));
    /// // So does one that is older than a deletion.
    /// store.transact(|txn| prices.delete_external(txn, &tea, Greater(40)))?;
    /// let late = store.transact(|txn| prices.put_external(txn, &tea, Greater(30), 300));
    /// assert!(late.unwrap_err().to_string().contains("was deleted at version 40"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`RecordConflict`] with the current record, or with the version of its deletion, in an
    /// [`Error::Other`]; [`Error::InvalidArgument`] for a version of more than 2^63 - 1; the errors
    /// of [`Table::put`](crate::Table::put). After an error, the transaction [does not
    /// commit](super#after-a-refusal), although the first two errors have written nothing.
    pub fn put_external(
        &self,
        txn: &mut impl Writer,
        key: &K,
        version: ExternalVersion,
        value: V,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let (old, deleted) = self.accepting(txn, key, version)?;
            let new = VersionedRecord { version: version.number(), value };
            self.records.replace(txn, key, old.as_ref(), Some(&new))?;
            match deleted {
                Some(_) => self.tombstones.replace(txn, key, deleted.as_ref(), None),
                None => Ok(()),
            }
        })
    }

    /// Removes a record at a version assigned by another system, if the current version is smaller.
    /// With [`ExternalVersion::GreaterOrEqual`], the current version may also be equal. Keeps a
    /// tombstone, which refuses older changes. The record may be absent, because its older changes
    /// may arrive later. Returns whether there was a record.
    ///
    /// A tombstone stays until a newer record is put, or until
    /// [`sweep`](VersionedTable::sweep) removes it.
    ///
    /// # Errors
    /// The errors of [`put_external`](VersionedTable::put_external), with the same effect on the
    /// transaction.
    pub fn delete_external(
        &self,
        txn: &mut impl Writer,
        key: &K,
        version: ExternalVersion,
    ) -> Result<bool> {
        txn.guarded(|txn| {
            let (old, deleted) = self.accepting(txn, key, version)?;
            if old.is_some() {
                self.records.replace(txn, key, old.as_ref(), None)?;
            }
            txn.max(&self.deleted, version.number())?;
            self.tombstones.replace(txn, key, deleted.as_ref(), Some(&version.number()))?;
            Ok(old.is_some())
        })
    }

    /// Removes the tombstones of external deletions with versions smaller than `before`, in bounded
    /// transactions. Set `before` to the version of the oldest change that may still arrive, since
    /// changes older than a removed tombstone are no longer refused.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`] for a tombstone that does not decode. Tombstones
    /// removed by earlier transactions stay removed.
    pub fn sweep(&self, store: &impl Store, before: u64) -> Result<Progress> {
        self.sweep_with(store, before, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](VersionedTable::sweep) with options. Calls `progress` after each transaction and
    /// stops if `progress` breaks. The next sweep removes the rest, whether it resumes at the
    /// position or not.
    ///
    /// # Errors
    /// The errors of [`sweep`](VersionedTable::sweep); [`Error::InvalidArgument`] for a position of
    /// other data.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        before: u64,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let space = self.tombstones.space();
        in_batches(store, options, progress, |txn, batch, done| {
            let EntryPage { entries, last } =
                page_behind(done.position.last.as_deref(), txn, space, batch)?;
            (done.finished, done.position.last) = (last.is_none(), last);
            done.entries += entries.len() as u64;
            let tombstones = entries.into_iter();
            let tombstones = tombstones.map(|entry| record::<_, K, u64, Postcard>(space, entry));
            let tombstones = tombstones.collect::<Result<Vec<_>>>()?;
            for (key, version) in tombstones.iter().filter(|(_, version)| *version < before) {
                self.tombstones.replace(txn, key, Some(version), None)?;
                done.removed += 1;
            }
            Ok(())
        })
    }

    /// The record, or the version of the tombstone, that the change replaces. Returns a conflict if
    /// `version` does not accept the current version.
    fn accepting(
        &self,
        txn: &impl Writer,
        key: &K,
        version: ExternalVersion,
    ) -> Result<Current<V>> {
        version.validate()?;
        let current = self.get(txn, key)?;
        let conflict = |current, deleted, deleted_here| {
            let (key, expected) = (self.shown(key), Expected::External(version));
            Err(Error::other(RecordConflict { key, expected, current, deleted, deleted_here }))
        };
        if let Some(record) = &current {
            return match version.accepts(record.version) {
                true => Ok((current, None)),
                false => conflict(current, None, None),
            };
        }
        let tombstone = self.tombstones.space().pack(key);
        let found = txn.get_many(&[&tombstone, &self.own_deleted])?;
        let (deleted, own) = match found.as_slice() {
            [deleted, own] => (deleted.as_deref(), own.is_some()),
            _ => (None, false),
        };
        let deleted = deleted.map(Postcard::decode).transpose();
        let deleted: Option<u64> = deleted.map_err(|error| error.at(&tombstone))?;
        if deleted.is_some_and(|deleted| !version.accepts(deleted)) {
            return conflict(None, deleted, None);
        }
        // The table stores only the largest of these versions, and not the key that had it: a
        // tombstone per deleted key could never be removed.
        if own {
            // The counter may be 0, which another system may have assigned.
            let own = txn.counter(&self.own_deleted)?.cast_unsigned();
            if version.number() <= own {
                return conflict(None, None, Some(own));
            }
        }
        Ok((None, deleted))
    }
}
