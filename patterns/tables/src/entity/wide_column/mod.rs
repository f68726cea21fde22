//! Wide columns: how does a row have any number of columns, and each column a history?
//!
//! The data model of BigTable, HBase and the first versions of Cassandra: a cell is identified by
//! row, family, column and timestamp. Rows need not have the same columns. A column of a row exists
//! once a value was written to it. Every write adds a version, so the row can be read *as of* any
//! time, until [`sweep`](WideColumns::sweep) removes old versions.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, row, family, column, timestamp (descending) | `11` and the value; or `12` for a deletion (tombstone), which is valid from this timestamp on |
//!
//! ```text
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1700))  ->  11 "the patterns"
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1600))  ->  12
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1500))  ->  11 "patterns"
//! ```
//!
//! The upper half of the first byte is the format (1). A timestamp is any growing number, such as
//! milliseconds or a version. The newest version of a column is its first key.
//!
//! # Invariants
//!
//! * As of time t, a column has the value of its newest version with a timestamp of at most t. It
//!   has no value if this version is a deletion or does not exist.
//! * The timestamp identifies a version of a column, so a write with the same timestamp replaces
//!   the version. A write with an *older* timestamp than a deletion is hidden from reads as of the
//!   deletion's time or later, until a sweep removes the deletion.
//! * A sweep does not change reads as of now. A sweep by age ([`Keep::Since`]) does not change
//!   reads as of the given time or later.
//!
//! # Cost
//!
//! If an operation writes, the commit of the transaction adds one round trip.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`put`](WideColumns::put), [`delete`](WideColumns::delete) | | | 1 | 0 |
//! | [`get`](WideColumns::get), now or as of a time | | 1, reads 1 | | 1 |
//! | [`versions`](WideColumns::versions) | | 1, reads what it returns | | 1 |
//! | [`columns`](WideColumns::columns), [`row`](WideColumns::row) | | 1, reads all versions | | 1 |
//! | [`delete_row`](WideColumns::delete_row) | | | 1 | 0 |
//! | [`sweep`](WideColumns::sweep), per transaction | | 1, reads a batch | 1 per removed version | 1 |
//! | plus, per deletion that may be removed | 1 | 1 | | 2 |
//! | plus, when resuming | | 1, reads the kept versions of a column | | 1 |
//!
//! # When not to use it
//!
//! If old values are never read, use [`Aggregates`](super::Aggregates), which keep one value per
//! field. If a column keeps thousands of versions, do not read whole rows, because a read of the
//! row steps over all versions.
//!
//! # Source
//!
//! F. Chang and others, *Bigtable: A Distributed Storage System for Structured Data* (2006). Unlike
//! garbage collection by age in Bigtable, a sweep by age always keeps the current value.

mod cells;
mod sweep;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use keyloom::{Desc, KeyBuf, KeyRange, Order, Reader, Result, Subspace, Writer};
use keyloom_kit::{RecordKey, within};

use cells::{DELETED, Found, value_of};

pub use cells::{Cell, Version};
pub use sweep::Keep;

/// The largest timestamp, for reads of the newest version.
pub const NOW: u64 = u64::MAX;

/// Rows of families and columns with versions; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::entity::wide_column::{NOW, WideColumns};
/// let web = WideColumns::<String>::new(&Subspace::new("web"));
/// let page = "keyloom.org".to_owned();
/// let store = Memory::new();
/// store.transact(|txn| {
///     web.put(txn, &page, "contents", "html", 1_500, b"<p>old")?;
///     web.put(txn, &page, "contents", "html", 1_700, b"<p>new")?;
///     web.put(txn, &page, "anchor", "lib.rs", 1_600, b"patterns")?;
///     web.delete(txn, &page, "anchor", "lib.rs", 1_800)
/// })?;
/// let snapshot = store.snapshot()?;
/// let html = |as_of| web.get(&snapshot, &page, "contents", "html", as_of);
/// assert_eq!(html(NOW)?.expect("there").value, b"<p>new");
/// assert_eq!(html(1_699)?.expect("there").value, b"<p>old");
/// assert_eq!(html(1_499)?, None);
/// assert_eq!(web.row(&snapshot, &page, NOW)?.len(), 1);
/// assert_eq!(web.row(&snapshot, &page, 1_650)?.len(), 2);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// A row key must have a fixed number of elements: any number, string or tuple, but not a
/// [`List`](keyloom::List).
pub struct WideColumns<R> {
    space: Subspace,
    row: PhantomData<fn() -> R>,
}

impl<R> Clone for WideColumns<R> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), row: PhantomData }
    }
}

impl<R> fmt::Debug for WideColumns<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WideColumns").field("space", &self.space).finish()
    }
}

impl<R: RecordKey> WideColumns<R> {
    /// Wide columns in `space`. Nothing else may be in `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), row: PhantomData }
    }

    /// The subspace of the rows.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Sets the value of a column from `timestamp` on. Costs one key written.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::KeyTooLong`](keyloom::Error::KeyTooLong).
    pub fn put(
        &self,
        txn: &mut impl Writer,
        row: &R,
        family: &str,
        column: &str,
        timestamp: u64,
        value: &[u8],
    ) -> Result<()> {
        txn.guarded(|txn| txn.put(&self.key(row, family, column, timestamp), &value_of(value)))
    }

    /// Deletes a column from `timestamp` on. Reads as of that time or later find nothing, until a
    /// value with a later timestamp is put. Costs one key written.
    ///
    /// # Errors
    /// The errors of [`put`](WideColumns::put).
    pub fn delete(
        &self,
        txn: &mut impl Writer,
        row: &R,
        family: &str,
        column: &str,
        timestamp: u64,
    ) -> Result<()> {
        txn.guarded(|txn| txn.put(&self.key(row, family, column, timestamp), DELETED))
    }

    /// Removes a row with its whole history.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete_row(&self, txn: &mut impl Writer, row: &R) -> Result<()> {
        txn.guarded(|txn| txn.delete_range(self.space.range_of(row)))
    }

    /// The value of a column as of a time; use [`NOW`] for the newest value. Costs one range that
    /// reads one key.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) for an entry that is not a cell;
    /// [`Error::NewerFormat`](keyloom::Error::NewerFormat) for a cell of a newer program.
    pub fn get(
        &self,
        reader: &impl Reader,
        row: &R,
        family: &str,
        column: &str,
        as_of: u64,
    ) -> Result<Option<Cell>> {
        let versions = self.column(row, family, column);
        let range = within(Desc(as_of)..).key_range(&versions);
        let Some(entry) = reader.first(range)? else { return Ok(None) };
        Ok(Found::<R, _>::new(&self.space, entry)?.into_cell())
    }

    /// The versions of a column with a timestamp in `timestamps`, the newest first, including
    /// deletions.
    ///
    /// # Errors
    /// The errors of [`get`](WideColumns::get).
    pub fn versions(
        &self,
        reader: &impl Reader,
        row: &R,
        family: &str,
        column: &str,
        timestamps: impl RangeBounds<u64>,
    ) -> Result<Vec<Version>> {
        // Keys are in descending order of the timestamps.
        let desc = |bound: Bound<&u64>| bound.map(|timestamp| Desc(*timestamp));
        let newest_first = (desc(timestamps.end_bound()), desc(timestamps.start_bound()));
        let range = within(newest_first).key_range(&self.column(row, family, column));
        let entries = reader.range(range, Order::Ascending)?;
        entries.map(|entry| Ok(Found::<R, _>::new(&self.space, entry?)?.into_version())).collect()
    }

    /// The columns of a family with a name in `names`, as of a time.
    ///
    /// # Errors
    /// The errors of [`get`](WideColumns::get).
    pub fn columns<'n>(
        &self,
        reader: &impl Reader,
        row: &R,
        family: &str,
        names: impl RangeBounds<&'n str>,
        as_of: u64,
    ) -> Result<Vec<Cell>> {
        let names = (names.start_bound().cloned(), names.end_bound().cloned());
        let family = self.space.child(row).child(family);
        self.cells(reader, within::<&str>(names).key_range(&family), as_of)
    }

    /// All columns of a row as of a time, sorted by family and name.
    ///
    /// # Errors
    /// The errors of [`get`](WideColumns::get).
    pub fn row(&self, reader: &impl Reader, row: &R, as_of: u64) -> Result<Vec<Cell>> {
        self.cells(reader, self.space.range_of(row), as_of)
    }

    fn cells(&self, reader: &impl Reader, range: KeyRange<'_>, as_of: u64) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        // The column whose value was found last. Its remaining versions are older.
        let mut settled: Option<Subspace> = None;
        for entry in reader.range(range, Order::Ascending)? {
            let entry = entry?;
            if settled.as_ref().is_some_and(|column| column.contains(&entry.0)) {
                continue;
            }
            let found = Found::<R, _>::new(&self.space, entry)?;
            if found.timestamp <= as_of {
                settled = Some(Subspace::from_bytes(found.column_prefix()));
                cells.extend(found.into_cell());
            }
        }
        Ok(cells)
    }

    fn column(&self, row: &R, family: &str, column: &str) -> Subspace {
        self.space.child(row).child(&(family, column))
    }

    fn key(&self, row: &R, family: &str, column: &str, timestamp: u64) -> KeyBuf {
        self.column(row, family, column).pack(&Desc(timestamp))
    }
}
