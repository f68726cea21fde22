//! Wide columns: how does a row have any number of columns, each with its history?
//!
//! The data model of BigTable, HBase and Cassandra's first years: a cell is found by row, family,
//! column and time. Rows need not have the same columns; a column is there when somebody has
//! written to it. Every write adds a version, so the row can be read *as of* any moment, until
//! [`collect`](WideColumns::collect) removes what is no longer wanted.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, row, family, column, timestamp (descending) | `11` and the value; or `12`: deleted as of that time |
//!
//! ```text
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1700))  ->  11 "the patterns"
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1600))  ->  12
//! ("web", "keyloom.org", "anchor", "lib.rs", desc(1500))  ->  11 "patterns"
//! ```
//!
//! The first half of the leading byte is the format (1). A timestamp is any number that grows:
//! milliseconds, versions. The newest version of a column is its first key.
//!
//! # Invariants
//!
//! * As of time t a column has the value of its newest version that is not newer than t; none, if
//!   that is a deletion or there is none.
//! * A version is its timestamp: to write the same one again replaces it. A write that is *older*
//!   than a deletion stays hidden by it for all reads behind the deletion, until the deletion is
//!   collected.
//! * Collecting changes no read as of now; by age ([`Keep::Since`]), no read as of that moment or
//!   later.
//!
//! # Cost
//!
//! Where an operation writes, the commit of the transaction adds one round trip.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`put`](WideColumns::put), [`delete`](WideColumns::delete) | | | 1 | 0 |
//! | [`get`](WideColumns::get), now or as of a time | | 1, reads 1 | | 1 |
//! | [`versions`](WideColumns::versions) | | 1, reads what it returns | | 1 |
//! | [`columns`](WideColumns::columns), [`row`](WideColumns::row) | | 1, reads all versions | | 1 |
//! | [`delete_row`](WideColumns::delete_row) | | | 1 | 0 |
//! | [`collect`](WideColumns::collect), per transaction | | 1, reads a batch | 1 per version that goes | 1 |
//! | for each deletion that may go | 1 | 1 | | 2 |
//!
//! # When not to use it
//!
//! When nobody asks for the past: [`Aggregates`](super::Aggregates) keep one value per field. When
//! a column has thousands of versions that are kept: a read of the row steps over all of them.
//!
//! # Source
//!
//! F. Chang and others, *Bigtable: A Distributed Storage System for Structured Data* (2006). Unlike
//! there, keeping by age keeps the value that is current, however old it is.

mod cells;
mod collect;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use keyloom::{Desc, KeyBuf, KeyRange, Order, Reader, Result, Subspace, Writer};

use crate::select::within;
use crate::table::RecordKey;
use cells::{DELETED, Found, value_of};

pub use cells::{Cell, Version};
pub use collect::{CollectOptions, CollectPosition, CollectProgress, CollectedColumn, Keep};

/// As of now: behind every timestamp.
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
/// A row key must have a fixed number of elements: any number, string or tuple, but no
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
    /// Rows in `space`. Nothing else may be there.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), row: PhantomData }
    }

    /// Where the rows are.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Sets the value of a column as of a time. Costs one key written.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong), what the store says.
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

    /// Deletes a column as of a time: reads of that time and later find nothing, until it is put
    /// again with a later one. Costs one key written.
    ///
    /// # Errors
    /// As [`put`](WideColumns::put).
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

    /// Removes a row with its whole history, as if it had never been.
    ///
    /// # Errors
    /// What the store says.
    pub fn delete_row(&self, txn: &mut impl Writer, row: &R) -> Result<()> {
        txn.guarded(|txn| txn.delete_range(self.space.range_of(row)))
    }

    /// The value of a column as of a time, [`NOW`] for the newest. Costs one range of one key.
    ///
    /// # Errors
    /// What the store says; [`Error::At`](keyloom::Error::At) for what is no cell.
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

    /// The versions of a column whose timestamps lie in `timestamps`, the newest first, deletions
    /// among them.
    ///
    /// # Errors
    /// As [`get`](WideColumns::get).
    pub fn versions(
        &self,
        reader: &impl Reader,
        row: &R,
        family: &str,
        column: &str,
        timestamps: impl RangeBounds<u64>,
    ) -> Result<Vec<Version>> {
        // The order of the keys is the other way round.
        let desc = |bound: Bound<&u64>| bound.map(|timestamp| Desc(*timestamp));
        let newest_first = (desc(timestamps.end_bound()), desc(timestamps.start_bound()));
        let range = within(newest_first).key_range(&self.column(row, family, column));
        let entries = reader.range(range, Order::Ascending)?;
        entries.map(|entry| Ok(Found::<R, _>::new(&self.space, entry?)?.into_version())).collect()
    }

    /// The columns of a family whose names lie in `names`, as of a time.
    ///
    /// # Errors
    /// As [`get`](WideColumns::get).
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

    /// All columns of a row, by family and name, as of a time.
    ///
    /// # Errors
    /// As [`get`](WideColumns::get).
    pub fn row(&self, reader: &impl Reader, row: &R, as_of: u64) -> Result<Vec<Cell>> {
        self.cells(reader, self.space.range_of(row), as_of)
    }

    fn cells(&self, reader: &impl Reader, range: KeyRange<'_>, as_of: u64) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        // The column whose version of that time was met: what follows in it is older.
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
