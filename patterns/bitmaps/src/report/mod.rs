//! Reports: counts and sums of an audience by the values of fields.
//!
//! An audience is a [`BitmapExpr`]; a report breaks it down by the values of a field, with exact
//! counts. A report chooses the cheaper of two methods ([`Breakdown::walked`] says which):
//!
//! * **Intersect**: the audience is evaluated once and kept in memory. Then one scan reads the
//!   containers of the field, and counts, for each container, how many of its ids are in the
//!   audience. The reads do not depend on the audience, except that chunks without ids of the
//!   audience are skipped.
//! * **Walk**: the ids of the audience are looked up in the columns of the field, and their values
//!   are counted. This reads only the blocks that contain ids of the audience.
//!
//! A report on a field of integers has no values to break the audience down by. To intersect, it
//! reads the slices of the integers instead of containers.
//!
//! The cost of walking is known. The cost of intersecting is estimated as if every container of the
//! field were read. A scan skips most containers if the field has a few common values, but not if
//! it has many rare values. Which case applies is not known, because the number of values is not
//! stored. So a report intersects only if intersecting is cheaper even by this estimate, for
//! example for half of all records and a field with a few values. Otherwise it walks.
//!
//! A [`Batch`] computes many audiences in one pass over the forward index.
//!
//! # Cost
//!
//! For an audience in c chunks, an index with C chunks, and a field with f containers:
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | any report | the audience: the cost of the expression, with all records as one more operand if it may have ids without a record; a count of the C chunks, 1 get per field | those of the expression, and 1 for each of the others |
//! | [`breakdown`](Report::breakdown), intersecting | 1 range over f containers; if c is less than C, about f c / C of them, and steps or seeks over the others | 1, and 1 per seek |
//! | the same, walking | 1 get for each of the b blocks of 1,016 ids with ids of the audience; instead 1 range over all blocks between the first and the last, if there are several and more than one in 4 is needed | b / 1,024, rounded up |
//! | [`top`](Report::top) | as [`breakdown`](Report::breakdown) | the same |
//! | [`breakdown_of`](Report::breakdown_of) some values | the same; intersecting, only over their containers. Also 1 read for the type of the selection, or 3 if no value is selected, and a count of the selected containers | 2 to 4 more |
//! | [`breakdown_by`](Report::breakdown_by) k fields, intersecting | the same for the field with the fewest containers, and for each of its values the report by the other fields over the ids of the audience with this value | the sum of these |
//! | the same, walking | the same for each field | the sum of these |
//! | [`sums`](Report::sums), intersecting | the breakdown, and for each value its containers in the c chunks and all slices of the integers there: v c s containers for v values and s slices, so walking is better for many values | the sum of these |
//! | the same, walking | the same for the field and the integers | the sum of these |
//! | [`sum`](Report::sum), [`min_max`](Report::min_max), [`percentiles`](Report::percentiles), [`rank`](Report::rank), [`ranked`](Report::ranked), intersecting | 1 range over the slices of the integers, twice for `min_max`; percentiles of many values more, see [`BitSliced::percentiles`] | 1 each, and 1 per seek |
//! | the same, walking | as a breakdown, of the columns of the integers | b / 1,024, rounded up |
//! | [`Batch`] | 1 range over the chunks of all ids, and 1 over the columns of each field used | 1 each |
//!
//! Memory: 4,096 chunks of the audience at a time, at most 4 KiB each; a larger audience is
//! processed in several passes. `sums` and `breakdown_by`, when intersecting, keep the whole
//! audience, compressed as in the store. Walking keeps 2 bytes for each id of up to 1,024 blocks,
//! and the columns of these blocks for each field. LMDB lends these columns; a store behind a
//! network copies them, some tens of megabytes with ten values per id. Reports on integers keep 16
//! bytes for each id when walking. The result has one row for each value in the audience, or
//! for each combination of values, of which `breakdown_by` refuses more than
//! [`max_groups`](Report::max_groups).

mod batch;
mod breakdown;
mod integers;
mod intersect;
mod met;
mod plan;
mod rows;
mod run;
mod tally;
mod walk;
mod window;

use std::fmt;

use keyloom_kit::RecordKey;

pub use batch::Batch;
pub use rows::{Breakdown, ValueSum};

use super::{BitmapExpr, InvertedIndex};
#[cfg(doc)]
use crate::BitSliced;
use plan::Way;

/// The maximum number of groups by default.
// A group of two short values takes about 100 bytes while it is counted.
const GROUPS: usize = 1_000_000;

/// A report of an audience; returned by [`InvertedIndex::report`].
pub struct Report<'i, K, V> {
    index: &'i InvertedIndex<K, V>,
    audience: BitmapExpr,
    way: Option<Way>,
    max_groups: usize,
}

impl<K, V> fmt::Debug for Report<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Report");
        out.field("audience", &self.audience).field("way", &self.way).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Returns a report of an audience; see [`report`](self). Reads nothing until one of its
    /// methods is called.
    ///
    /// A [range](BitmapExpr::range) or a bitmap in memory may have ids without a record. These ids
    /// are left out: such an audience is intersected with [all](InvertedIndex::all) records.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("city", |_id, (city, _): &(String, Vec<String>)| one(city))
    ///     .field("category", |_, (_, categories)| categories.iter().collect());
    /// let users = Table::<u32, (String, Vec<String>)>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// let user = |city: &str, categories: &[&str]| {
    ///     (city.to_owned(), categories.iter().map(|c| c.to_string()).collect())
    /// };
    /// store.transact(|txn| users.put_many(txn, [
    ///     (1, user("Oslo", &["chess", "news"])),
    ///     (2, user("Lyon", &["news"])),
    ///     (3, user("Oslo", &["chess"])),
    ///     (4, user("Oslo", &["music", "news"])),
    /// ]))?;
    /// let snapshot = store.snapshot()?;
    /// let audience = index.term("city", "Oslo")? - index.term("category", "music")?;
    /// let breakdown = index.report(&audience).breakdown::<String>(&snapshot, "category")?;
    /// assert_eq!(breakdown.rows, [("chess".into(), 2), ("news".into(), 1)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn report(&self, audience: impl Into<BitmapExpr>) -> Report<'_, K, V> {
        let audience = self.own(audience);
        let audience = match audience.is_within(&|space| self.owns(space)) {
            true => audience,
            // A range may have an unbounded number of chunks without records.
            false => audience & self.all(),
        };
        Report { index: self, audience, way: None, max_groups: GROUPS }
    }
}

impl<K: RecordKey, V> Report<'_, K, V> {
    /// Sets the maximum number of groups of a [breakdown by several fields](Self::breakdown_by):
    /// 1,000,000 by default. This bounds the memory of the groups; a report that walks the forward
    /// index also keeps each distinct value that it encounters. If the limit is exceeded, the
    /// report returns
    /// [`InvertedIndexError::TooManyGroups`](crate::InvertedIndexError::TooManyGroups).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("last digit", |_id, n: &u64| one(n % 10))
    ///     .field("rest of 7", |_, n| one(n % 7));
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..100).map(|n| (n, u64::from(n)))))?;
    /// let (snapshot, fields) = (store.snapshot()?, ["last digit", "rest of 7"]);
    /// let report = index.report(index.all()).max_groups(50);
    /// let error = report.breakdown_by::<(u64, u64)>(&snapshot, &fields).unwrap_err();
    /// assert!(error.to_string().contains("more than 50 groups"), "{error}");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn max_groups(self, groups: usize) -> Self {
        Self { max_groups: groups, ..self }
    }

    /// Returns the same report, which always reads the forward index, whatever the cost. Use it in
    /// tests and measurements.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("even", |_id, n: &u64| one(n % 2 == 0));
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..).zip([1, 2, 3])))?;
    /// let snapshot = store.snapshot()?;
    /// let walked = index.report(index.all()).walk().breakdown::<bool>(&snapshot, "even")?;
    /// let intersected =
    ///     index.report(index.all()).intersect().breakdown::<bool>(&snapshot, "even")?;
    /// assert_eq!(walked.rows, [(false, 2), (true, 1)]);
    /// assert_eq!(walked.rows, intersected.rows);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn walk(self) -> Self {
        Self { way: Some(Way::Walk), ..self }
    }

    /// Returns the same report, which always reads the inverted index, whatever the cost. Use it in
    /// tests and measurements. See [`walk`](Self::walk).
    #[must_use]
    pub fn intersect(self) -> Self {
        Self { way: Some(Way::Intersect), ..self }
    }
}
