//! Expiry (time to live): how do records disappear at their deadline?
//!
//! A function computes the deadline of each record, in milliseconds since 1970. From its deadline
//! on, reads through [`Expiry`] do not return a record. A sweep removes expired records later, in
//! bounded transactions, from any process.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_locking::Expiry;
//! use keyloom_tables::Schema;
//! use serde::{Deserialize, Serialize};
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Login { user: String, until: u64 }
//!
//! let store = Memory::new();
//! let schema = Schema::open(&store, "web")?;
//! let logins = schema.table::<u32, Login>("logins")?;
//! let expiry = Expiry::new(&schema, &logins, "by_deadline", 1, |_, login| Some(login.until))?;
//! store.transact(|txn| logins.put(txn, &7, &Login { user: "Ada".into(), until: 60_000 }))?;
//!
//! assert!(expiry.get(&store.snapshot()?, &7, 59_999)?.is_some());
//! assert!(expiry.get(&store.snapshot()?, &7, 60_000)?.is_none());
//! assert_eq!(expiry.sweep(&store, 60_000)?.removed, 1);
//! assert!(logins.get(&store.snapshot()?, &7)?.is_none());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | data | key | value |
//! |---|---|---|
//! | table | record key | the record |
//! | [`Index`] on the deadline | deadline, record key | header of the index |
//!
//! A record without a deadline has no entry and does not expire.
//!
//! # Invariants
//!
//! * The index has exactly one entry for each record with a deadline.
//! * A sweep removes a record only if the record itself, read in the same transaction, is expired.
//!   So a record whose deadline was moved concurrently stays, and a damaged index entry does not
//!   cause a live record to be removed.
//! * Expiry only hides and removes records: the clock never decides which of two writers wins. For
//!   ownership with a time limit, use a lease with a fencing token.
//!
//! # Between the deadline and the sweep
//!
//! | read | an expired record that is not swept yet |
//! |---|---|
//! | [`Expiry::get`], [`get_many`](Expiry::get_many), [`live`](Expiry::live), [`touch`](Expiry::touch) | is absent |
//! | [`Expiry::count_live`], [`count_expired`](Expiry::count_expired) | is counted as expired |
//! | [`Table::get`], [`Table::range`], indexes, totals and other derived data | is present |
//!
//! Readers on several machines compare deadlines with their own clocks. So a record can be absent
//! for one reader and still present for another, for as long as the difference of their clocks.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put, delete of a record | as for a table with one index |
//! | [`get`](Expiry::get), [`get_many`](Expiry::get_many) | as for the table, nothing more |
//! | [`live`](Expiry::live) | 1 range; reads live and expired records |
//! | [`touch`](Expiry::touch) | 3 gets, and at most 3 keys written: the record, its old and its new entry |
//! | [`count_expired`](Expiry::count_expired) | 1 get and 1 range; reads the expired entries, or the store counts |
//! | [`next_deadline`](Expiry::next_deadline) | 1 get and 1 range; reads 1 entry |
//! | a batch of [`sweep`](Expiry::sweep) over n expired records | 2 gets, 1 range, which reads n entries, and 2 gets and 2 keys removed for each record, and the changes of other derived data |
//!
//! A sweep reads no live record: its cost depends only on the number of expired records.
//!
//! # When not to use it
//!
//! When the data arrives in order of time and whole periods expire together:
//! [`TimeBuckets`](keyloom_tables::TimeBuckets) remove a period with one range delete. When a
//! record must not be readable after its deadline through any path, such as a backup: encrypt it
//! and drop the key.
//!
//! # Source
//!
//! Redis `EXPIRE`: reads hide expired keys, and a background cycle samples and removes them. The
//! sweep here reads the index instead of samples, so it removes all expired records. TTL of
//! DynamoDB: expired items are removed within days and returned until then, so queries must filter
//! them out, as [`live`](Expiry::live) does here. TTL indexes of MongoDB: an index on a date, and a
//! background thread that runs every 60 seconds. Reads do not filter there either.

mod sweep;

use std::fmt;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Reader, Result, Store, Writer};
use keyloom_kit::{RecordKey, Select, within};
use keyloom_tables::{Attached, Index, IndexEntries, Schema, Table, entry};

type Deadline<K, V> = dyn Fn(&K, &V) -> Option<u64> + Send + Sync;

/// A table whose records expire; see the [module](self).
///
/// Times are in milliseconds since 1970, as a [`Clock`](crate::Clock) returns them. A record is
/// expired if its deadline is at or before the given time. Cheap to clone.
pub struct Expiry<K: RecordKey, V: 'static, C = Postcard> {
    by_deadline: Attached<Index<K, V, u64>, C>,
    deadline: Arc<Deadline<K, V>>,
}

impl<K: RecordKey, V: 'static, C> Clone for Expiry<K, V, C> {
    fn clone(&self) -> Self {
        Self { by_deadline: self.by_deadline.clone(), deadline: Arc::clone(&self.deadline) }
    }
}

impl<K: RecordKey, V: 'static, C> fmt::Debug for Expiry<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiry").field("by_deadline", &self.by_deadline).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V: 'static, C: Codec<V>> Expiry<K, V, C> {
    /// Declares an index on the deadlines of the records of `table`, in the schema that owns the
    /// table. `deadline` returns the time from which a record is expired, or `None` if it never
    /// expires.
    ///
    /// `version` is the version of the function, as in [`Schema::derive`]. If the table already has
    /// records, [build](Attached::build) the [index](Expiry::index).
    ///
    /// # Errors
    /// The errors of [`Schema::index`].
    pub fn new<S: Store>(
        schema: &Schema<'_, S>,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        deadline: impl Fn(&K, &V) -> Option<u64> + Send + Sync + 'static,
    ) -> Result<Self> {
        let deadline: Arc<Deadline<K, V>> = Arc::new(deadline);
        let of = Arc::clone(&deadline);
        let by_deadline = schema.index(table, name, version, move |key, value| {
            of(key, value).map_or_else(IndexEntries::none, entry)
        })?;
        Ok(Self { by_deadline, deadline })
    }

    /// The index on the deadlines, for its check, repair and build.
    pub fn index(&self) -> &Attached<Index<K, V, u64>, C> {
        &self.by_deadline
    }

    /// Whether the record is expired at `now`.
    pub fn is_expired(&self, key: &K, value: &V, now: u64) -> bool {
        (self.deadline)(key, value).is_some_and(|deadline| deadline <= now)
    }

    /// The table of the records, for writes. Its reads also return expired records.
    pub fn table(&self) -> &Table<K, V, C> {
        self.by_deadline.table()
    }

    /// The record of `key`, unless it is expired at `now`. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get(&self, reader: &impl Reader, key: &K, now: u64) -> Result<Option<V>> {
        let found = self.table().get(reader, key)?;
        Ok(found.filter(|value| !self.is_expired(key, value, now)))
    }

    /// The records of many keys, in the order of `keys`; `None` for a record that is absent or
    /// expired at `now`. Costs one round trip.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get_many(&self, reader: &impl Reader, keys: &[K], now: u64) -> Result<Vec<Option<V>>> {
        let found = self.table().get_many(reader, keys)?;
        let live =
            |(key, value): (&K, Option<V>)| value.filter(|value| !self.is_expired(key, value, now));
        Ok(keys.iter().zip(found).map(live).collect())
    }

    /// The records whose keys match `select`, except records that are expired at `now`.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::Expiry;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "cache")?;
    /// let pages = schema.table::<String, u64>("pages")?;
    /// let expiry = Expiry::new(&schema, &pages, "by_deadline", 1, |_, until| Some(*until))?;
    /// store.transact(|txn| pages.put_many(txn, [("a".to_owned(), 10), ("b".to_owned(), 20)]))?;
    /// let snapshot = store.snapshot()?;
    /// let live = expiry.live(&snapshot, .., 15)?;
    /// assert_eq!(live.collect::<Result<Vec<_>, _>>()?, [("b".to_owned(), 20)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also reports records that do not decode.
    pub fn live<'r, R: Reader>(
        &'r self,
        reader: &'r R,
        select: impl Select<K>,
        now: u64,
    ) -> Result<impl Iterator<Item = Result<(K, V)>> + 'r> {
        let records = self.table().range(reader, select)?;
        Ok(records.filter(move |record| match record {
            Ok((key, value)) => !self.is_expired(key, value, now),
            Err(_) => true,
        }))
    }

    /// Changes the record of `key`, usually its deadline, and returns whether the record was
    /// changed. An expired record counts as absent and is not changed: a record that readers have
    /// seen as gone must not reappear.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::Expiry;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "cache")?;
    /// let pages = schema.table::<u32, u64>("pages")?;
    /// let expiry = Expiry::new(&schema, &pages, "by_deadline", 1, |_, until| Some(*until))?;
    /// store.transact(|txn| pages.put(txn, &1, &10))?;
    /// assert!(store.transact(|txn| expiry.touch(txn, &1, 9, |until| *until = 30))?);
    /// assert!(!store.transact(|txn| expiry.touch(txn, &1, 30, |until| *until = 99))?);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::get`] and [`Table::put`].
    pub fn touch(
        &self,
        txn: &mut impl Writer,
        key: &K,
        now: u64,
        change: impl FnOnce(&mut V),
    ) -> Result<bool> {
        txn.guarded(|txn| {
            let Some(mut value) = self.get(txn, key, now)? else { return Ok(false) };
            change(&mut value);
            self.table().put(txn, key, &value)?;
            Ok(true)
        })
    }

    /// The number of records that are expired at `now` and not swept yet.
    ///
    /// # Errors
    /// The errors of [`Attached::at`].
    pub fn count_expired(&self, reader: &impl Reader, now: u64) -> Result<u64> {
        self.by_deadline.at(reader)?.count(reader, within(..=now))
    }

    /// The number of records that are not expired at `now`. Reads or counts all records.
    ///
    /// # Errors
    /// The errors of [`Attached::at`].
    pub fn count_live(&self, reader: &impl Reader, now: u64) -> Result<u64> {
        let expired = self.count_expired(reader, now)?;
        Ok(self.table().count(reader, ..)?.saturating_sub(expired))
    }

    /// The earliest deadline. A sweep before this time removes nothing. `None` if no record
    /// expires.
    ///
    /// # Errors
    /// The errors of [`Attached::at`]; [`Error::At`](keyloom::Error::At) for a damaged entry.
    pub fn next_deadline(&self, reader: &impl Reader) -> Result<Option<u64>> {
        let index = self.by_deadline.at(reader)?;
        let first = index.range(reader, ..)?.next().transpose()?;
        first.map(|found| found.owned_parts()).transpose()
    }
}
