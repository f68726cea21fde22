//! A log of records in commit order, under versionstamps.

use std::fmt;
use std::ops::Bound;

use keyloom::key::Versionstamp;
use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Reader, Result, Subspace, VersionstampedKey, Writer};
use keyloom_kit::{OrderedRange, RecordKey};

use super::walk::ids;
use crate::table::{Records, Table};

/// A log per container, whose records have the versionstamps of their commits as keys; see the
/// [module](super).
///
/// Some stores, such as FoundationDB, number their commits. Such a store writes the number into the
/// key at commit. So writers write no common key and do not conflict, and the records are still in
/// commit order. Dense sequences, shards and clocks do not offer both. On other stores, the stamps
/// come from a counter, as in [`AppendLog`](super::AppendLog), at the same cost.
///
/// # Order
///
/// Guaranteed: after a reader has seen a stamp of a container, the record of every smaller stamp is
/// present or deleted, and no record is added below this stamp. The records of one transaction are
/// in the order of their appends.
///
/// **Not** guaranteed: that stamps are dense. The writer does not get the stamp of its record. If
/// it must find the record again, store an id in the record. **Read a log before you append to
/// it**: until the commit, a transaction cannot read its own appends. On FoundationDB, after an
/// append the transaction also cannot read the range of keys into which the append may fall.
///
/// If the outcome of a commit is unknown, running the transaction again may append twice, and the
/// writer cannot find the first record. To prevent this, let the transaction also put a key that
/// identifies the request (an idempotency key), and check first whether this key exists.
///
/// Stamps belong to one cluster. If records are copied or restored to a cluster with lower
/// versions, new stamps sort before old stamps. In this case, continue in another container, or
/// advance the version of the cluster (`fdbcli`: `advanceversion`).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::sequence::VersionstampedLog;
/// let events = VersionstampedLog::<String, String>::new(&Subspace::new("events"));
/// let (store, shop) = (Memory::new(), "shop".to_owned());
/// for event in ["opened", "sold", "closed"] {
///     store.transact(|txn| events.append(txn, &shop, &event.into()))?;
/// }
/// let first = events.read_new(&store.snapshot()?, &shop, None, 2)?;
/// let seen = first.last().map(|(stamp, _)| *stamp);
/// let rest = events.read_new(&store.snapshot()?, &shop, seen, 10)?;
/// assert_eq!((&first[0].1[..], &rest[0].1[..]), ("opened", "closed"));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct VersionstampedLog<C, V, K = Postcard> {
    clocks: Subspace,
    records: Table<(C, Versionstamp), V, K>,
}

impl<C, V, K> Clone for VersionstampedLog<C, V, K> {
    fn clone(&self) -> Self {
        Self { clocks: self.clocks.clone(), records: self.records.clone() }
    }
}

impl<C, V, K> fmt::Debug for VersionstampedLog<C, V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionstampedLog").field("records", &self.records).finish_non_exhaustive()
    }
}

impl<C: RecordKey + Clone, V> VersionstampedLog<C, V> {
    /// Containers in `space`. The records are encoded with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<C: RecordKey + Clone, V, K> VersionstampedLog<C, V, K> {
    /// Containers in `space`. The records are encoded with the codec `K`.
    pub fn with_codec(space: &Subspace) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { clocks: space.child("clock"), records }
    }

    /// The records as a table, with keys `(container, versionstamp)`. Derived data cannot be
    /// attached to this table, because it needs the key of a record before the store has created
    /// the key.
    pub fn records(&self) -> &Table<(C, Versionstamp), V, K> {
        &self.records
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> VersionstampedLog<C, V, K> {
    /// Adds a record to `container`, after all records that exist when the transaction commits.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) if the codec cannot encode the
    /// record; [`Error::NotACounter`](keyloom::Error::NotACounter) for a malformed clock.
    pub fn append(&self, txn: &mut impl Writer, container: &C, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            let mut prefix = KeyBuf::from_slice(self.records.space().child(&(container,)).prefix());
            prefix.push(Versionstamp::TYPE_CODE);
            let mut bytes = Vec::new();
            K::encode(value, &mut bytes).map_err(|error| error.at(&prefix))?;
            let clock = self.clocks.pack(&(container,));
            txn.put_versionstamped(
                &VersionstampedKey { prefix: &prefix, suffix: b"", clock: &clock },
                &bytes,
            )
        })
    }

    /// A record by its stamp. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get(
        &self,
        reader: &impl Reader,
        container: &C,
        stamp: Versionstamp,
    ) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), stamp))
    }

    /// Removes a record and returns whether it existed.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn delete(
        &self,
        txn: &mut impl Writer,
        container: &C,
        stamp: Versionstamp,
    ) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), stamp)))
    }

    /// The records of a container with stamps in `stamps`, the oldest first, or the newest first
    /// with [`descending`](crate::descending).
    ///
    /// # Errors
    /// The errors of [`Table::range`].
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        stamps: impl OrderedRange<Versionstamp>,
    ) -> Result<Records<R::Entries<'r>, (C, Versionstamp), V, K>> {
        self.records.range(reader, ids(container, stamps))
    }

    /// The records of a container after the stamp `seen`, or from the first record if `seen` is
    /// `None`. Returns at most `limit` records, but at least one if there are any. Store the last
    /// stamp in the same transaction as the results of processing the records.
    ///
    /// # Errors
    /// The errors of [`Table::page`].
    pub fn read_new(
        &self,
        reader: &impl Reader,
        container: &C,
        seen: Option<Versionstamp>,
        limit: usize,
    ) -> Result<Vec<(Versionstamp, V)>> {
        let behind = (seen.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let page = self.records.page(reader, ids(container, behind), limit, None)?;
        Ok(page.items.into_iter().map(|((_, stamp), value)| (stamp, value)).collect())
    }
}
