//! Records under versionstamps.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use keyloom::key::Versionstamp;
use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Order, Reader, Result, Subspace, VersionstampedKey, Writer};

use super::walk::ids;
use crate::table::{RecordKey, Records, Table};

/// Records of a container under the versionstamps of their commits; see the [module](super).
///
/// A store that numbers its commits writes the number into the key when it commits, so writers
/// touch no common key and do not conflict, and yet the records are in the order of the commits:
/// what neither a dense sequence nor shards nor clocks give together. FoundationDB is such a store.
/// Elsewhere the stamps are taken from a counter, as in [`AppendLog`](super::AppendLog), and cost
/// as much.
///
/// # Order
///
/// Promised: who has seen a stamp of a container finds every smaller one there or deleted, and
/// never meets a new one below it. Records of one transaction are in the order in which they were
/// appended.
///
/// **Not** promised: that stamps are dense, or that the writer learns its stamp. A record that must
/// be found again by its writer carries an id of its own. **Read a log before you append to it**:
/// what a transaction has appended it cannot read before it is committed, nor, on FoundationDB, the
/// records among which that may come to stand.
///
/// After a commit of unknown outcome an append that runs again may append twice, and the writer
/// does not know where to look: let the transaction put, and look for, a key of the request's own.
///
/// Stamps are those of one cluster. Where records are copied or restored to one whose versions are
/// lower, new stamps would lie before old ones: go on in another container there, or let the
/// operator advance the version (`fdbcli`: `advanceversion`).
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
    /// Containers in `space`, whose records are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<C: RecordKey + Clone, V, K> VersionstampedLog<C, V, K> {
    /// Containers in `space`, whose records are written with the codec `K`.
    pub fn with_codec(space: &Subspace) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { clocks: space.child("clock"), records }
    }

    /// The records as a table, with keys of container and stamp. Nothing can be attached to it:
    /// what is derived from a record would need its key before the store has made it.
    pub fn records(&self) -> &Table<(C, Versionstamp), V, K> {
        &self.records
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> VersionstampedLog<C, V, K> {
    /// Adds a record to `container`, behind all that are there when the transaction commits.
    ///
    /// # Errors
    /// What the codec and the store say.
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
    /// As [`Table::get`].
    pub fn get(
        &self,
        reader: &impl Reader,
        container: &C,
        stamp: Versionstamp,
    ) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), stamp))
    }

    /// Removes a record, and tells whether it was there.
    ///
    /// # Errors
    /// As [`Table::delete`].
    pub fn delete(
        &self,
        txn: &mut impl Writer,
        container: &C,
        stamp: Versionstamp,
    ) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), stamp)))
    }

    /// The records of a container whose stamps lie in `stamps`, from the newest back with
    /// [`Order::Descending`].
    ///
    /// # Errors
    /// As [`Table::range`].
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        stamps: impl RangeBounds<Versionstamp>,
        order: Order,
    ) -> Result<Records<R::Entries<'r>, (C, Versionstamp), V, K>> {
        self.records.range(reader, ids(container, stamps), order)
    }

    /// At most `limit` records, but at least one, that were appended to a container behind the one
    /// stamped `seen`; from the first with `None`. Keep the last stamp where the work is done that
    /// was read for, in the same transaction.
    ///
    /// # Errors
    /// As [`Table::page`].
    pub fn read_new(
        &self,
        reader: &impl Reader,
        container: &C,
        seen: Option<Versionstamp>,
        limit: usize,
    ) -> Result<Vec<(Versionstamp, V)>> {
        let behind = (seen.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let page =
            self.records.page(reader, ids(container, behind), Order::Ascending, limit, None)?;
        Ok(page.items.into_iter().map(|((_, stamp), value)| (stamp, value)).collect())
    }
}
