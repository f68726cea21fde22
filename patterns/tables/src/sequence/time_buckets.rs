//! Time-ordered records in buckets of a day or of another length.

use std::fmt;
use std::ops::Bound;
use std::time::Duration;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyRange, Reader, Result, Subspace, Writer};
use keyloom_kit::{InOrder, OrderedRange, RecordKey, in_order};

use crate::table::{Records, Table};

#[cfg(feature = "time-ordered-ids")]
use super::time_ordered::time_ordered_id;
use super::time_ordered::{Uuid, id_time_ms};
use super::walk::ids;

/// The records of each container under time-ordered ids, divided into time buckets; see the
/// [module](super).
///
/// In the key, the bucket precedes the id. The bucket is computed from the time of the id, so the
/// records are in the order of the ids. With buckets, a day is one range, which can be listed and
/// dropped without reading its records.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::descending;
/// use keyloom_tables::sequence::{TimeBuckets, first_id_at, ids_between};
/// const HOUR_MS: u64 = 3_600_000;
/// let readings = TimeBuckets::<u32, f64>::daily(&Subspace::new("readings"));
/// let store = Memory::new();
/// store.transact(|txn| {
///     (0..72).try_for_each(|hour| readings.put(txn, &7, first_id_at(hour * HOUR_MS), &(hour as f64)))
/// })?;
/// let snapshot = store.snapshot()?;
/// // 1970-01-02, and the last two hours before 30 hours had gone.
/// assert_eq!(readings.bucket(&snapshot, &7, 1)?.count(), 24);
/// let back = readings.range(&snapshot, &7, descending(ids_between(..30 * HOUR_MS)))?;
/// let two = back.take(2).map(|record| record.map(|(_, value)| value)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(two, [29.0, 28.0]);
/// drop(snapshot);
///
/// store.transact(|txn| readings.delete_before(txn, &7, 2))?;
/// assert_eq!(readings.buckets(&store.snapshot()?, &7)?, [2]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct TimeBuckets<C, V, K = Postcard> {
    records: Table<(C, u64, Uuid), V, K>,
    width_ms: u64,
}

impl<C, V, K> Clone for TimeBuckets<C, V, K> {
    fn clone(&self) -> Self {
        Self { records: self.records.clone(), width_ms: self.width_ms }
    }
}

impl<C, V, K> fmt::Debug for TimeBuckets<C, V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeBuckets")
            .field("records", &self.records)
            .field("width_ms", &self.width_ms)
            .finish()
    }
}

impl<C: RecordKey + Clone, V> TimeBuckets<C, V> {
    /// Daily buckets (UTC) in `space`. The records are encoded with [`Postcard`].
    pub fn daily(space: &Subspace) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self::with_codec(space, DAY)
    }
}

impl<C: RecordKey + Clone, V, K> TimeBuckets<C, V, K> {
    /// Buckets of `width` in `space`, counted from 1970. The width is a whole number of
    /// milliseconds, at least one. The records are encoded with the codec `K`. The width is part of
    /// the format: to change it, write all records again.
    pub fn with_codec(space: &Subspace, width: Duration) -> Self {
        let width_ms = u64::try_from(width.as_millis()).unwrap_or(u64::MAX).max(1);
        Self { records: Table::with_codec(space), width_ms }
    }

    /// The bucket of a time in milliseconds since 1970. A daily bucket is the number of days since
    /// 1970-01-01.
    pub fn bucket_of(&self, time_ms: u64) -> u64 {
        time_ms / self.width_ms
    }

    /// The records as a table, with keys `(container, bucket, id)`.
    pub fn records(&self) -> &Table<(C, u64, Uuid), V, K> {
        &self.records
    }

    fn key(&self, container: &C, id: Uuid) -> Result<(C, u64, Uuid)> {
        let (bucket, id) = self.place(id)?;
        Ok((container.clone(), bucket, id))
    }

    fn place(&self, id: Uuid) -> Result<(u64, Uuid)> {
        let time_ms = id_time_ms(&id).ok_or_else(|| Error::InvalidArgument {
            what: "the id",
            value: id.to_string(),
            why: "it contains no time; use a UUID of version 7, as `time_ordered_id` returns",
        })?;
        Ok((self.bucket_of(time_ms), id))
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> TimeBuckets<C, V, K> {
    /// Adds a record at the current time and returns its id. Costs one key written.
    ///
    /// # Errors
    /// The errors of [`Table::put`].
    #[cfg(feature = "time-ordered-ids")]
    pub fn append(&self, txn: &mut impl Writer, container: &C, value: &V) -> Result<Uuid> {
        txn.guarded(|txn| {
            let id = time_ordered_id();
            self.put(txn, container, id, value).map(|()| id)
        })
    }

    /// Puts the record of an existing id, for example one that a client generated. The operation is
    /// idempotent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is not of version 7; the errors of [`Table::put`].
    pub fn put(&self, txn: &mut impl Writer, container: &C, id: Uuid, value: &V) -> Result<()> {
        txn.guarded(|txn| self.records.put(txn, &self.key(container, id)?, value))
    }

    /// A record by its id. Costs one get.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is not of version 7; the errors of [`Table::get`].
    pub fn get(&self, reader: &impl Reader, container: &C, id: Uuid) -> Result<Option<V>> {
        self.records.get(reader, &self.key(container, id)?)
    }

    /// Removes a record and returns whether it existed.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is not of version 7; the errors of
    /// [`Table::delete`].
    pub fn delete(&self, txn: &mut impl Writer, container: &C, id: Uuid) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &self.key(container, id)?))
    }

    /// The records of a container with ids in `between`. For a range of times, use
    /// [`ids_between`](super::ids_between). The bounds need not be ids of records.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a bound that is not of version 7; the errors of
    /// [`Table::range`].
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        between: impl OrderedRange<Uuid>,
    ) -> Result<Records<R::Entries<'r>, (C, u64, Uuid), V, K>> {
        let place = |bound: Bound<&Uuid>| {
            Ok::<_, Error>(match bound {
                Bound::Included(id) => Bound::Included(self.place(*id)?),
                Bound::Excluded(id) => Bound::Excluded(self.place(*id)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        let (order, (start, end)) = (between.order(), between.bounds());
        let between = in_order((place(start)?, place(end)?), order);
        self.records.range(reader, ids(container, between))
    }

    /// The records of one bucket of a container.
    ///
    /// # Errors
    /// The errors of [`Table::range`].
    pub fn bucket<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        bucket: impl Into<InOrder<u64>>,
    ) -> Result<Records<R::Entries<'r>, (C, u64, Uuid), V, K>> {
        let InOrder { of: bucket, order } = bucket.into();
        self.records.range(reader, ids(container, in_order(bucket..=bucket, order)))
    }

    /// The non-empty buckets of a container. For each bucket, costs one range that reads one key,
    /// whatever the size of the bucket; one more range finds the end.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`] for a key that is not the key of a record.
    pub fn buckets(&self, reader: &impl Reader, container: &C) -> Result<Vec<u64>> {
        let space = self.records.space().child(&(container,));
        let mut found = Vec::new();
        let mut rest = space.range();
        while let Some((key, _)) = reader.first(rest)? {
            let unpacked = space.unpack::<(u64, Uuid)>(&key);
            let (bucket, _) = unpacked.map_err(|error| Error::from(error).at(&key))?;
            rest = space.range().intersect(KeyRange::behind(&space.pack(&bucket)));
            found.push(bucket);
        }
        Ok(found)
    }

    /// Removes all buckets of a container before `bucket`. Costs one key written and reads nothing.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete_before(&self, txn: &mut impl Writer, container: &C, bucket: u64) -> Result<()> {
        txn.guarded(|txn| {
            let space = self.records.space().child(&(container,));
            txn.delete_range(space.range().before(&space.pack(&bucket)))
        })
    }
}
