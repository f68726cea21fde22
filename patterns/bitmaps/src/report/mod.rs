//! Reports: how many of each kind are there in an audience?
//!
//! An audience is a [`BitmapExpr`]; a report breaks it down by the values of a field, with exact
//! counts. There are two ways to do that, and a report takes the one that it expects to be cheaper
//! ([`ReportExplain`] tells):
//!
//! * **Intersect**: the audience is evaluated once and held in memory. Then one scan goes over the
//!   containers of the field and counts in each how many of its ids are held. What is read does not
//!   depend on the audience, but for chunks in which it has nothing, and these are skipped.
//! * **Walk**: the ids of the audience are looked up in the columns of the field, and what they
//!   have is counted. What is read is the blocks of ids that the audience is in.
//!
//! What walking costs is known. What intersecting costs is estimated as if every container of the
//! field had to be stepped to, since nobody knows whether they are of a few common values, so that
//! most could be left out, or of many rare ones: so a report intersects where that is cheaper for
//! sure, as for half of all records and a field of a few values, and else walks.
//!
//! Many audiences at once are computed by a [`Batch`] in one pass over the forward index.
//!
//! # Cost
//!
//! Of an audience in c chunks, of an index with C chunks and a field with f containers:
//!
//! | operation | reads | round trips |
//! |---|---|---|
//! | any report | the audience: what the expression costs, with all records as one more operand if it may have ids without a record; a count of the C chunks, 1 get per field | what the expression costs, and 1 for each of these |
//! | [`breakdown`](Report::breakdown), intersecting | 1 range over f containers; where c is less than C, the f c / C that are wanted, and steps or seeks over the others | 1, and as many as there are seeks |
//! | the same, walking | of b blocks of 1,016 ids that the audience is in, 1 get each; where there are several, and more than one in 4 between the first and the last is wanted, 1 range over all of these | b / 1,024, rounded up |
//! | [`breakdown_by`](Report::breakdown_by) k fields, intersecting | the same for the first field, and for each of its values the report of the others over what is left of the audience | of each |
//! | the same, walking | the same for each field | of each |
//! | [`sums`](Report::sums), intersecting | the breakdown, and for each value its containers in the c chunks and all slices of the integers there: with v values and s slices v c s containers, so that many values are better walked | of each |
//! | the same, walking | the same for the field and the integers | of each |
//! | [`Batch`] | 1 range over the chunks of all ids, and 1 over the columns of each field that is asked for | 1 each |
//!
//! Memory: 4,096 chunks of the audience at a time, at most 4 KiB each; an audience that has more is
//! reported in several passes. `sums` and `breakdown_by`, intersecting, hold all of it, compressed
//! as in the store. Walking, 2 bytes for each id of up to 1,024 blocks, and for each field the
//! columns of these: where they lie in the store on LMDB, copies of them on a store behind a
//! network, with ten values for each id some tens of megabytes. The result: a row for each value
//! that the audience has.

mod batch;
mod intersect;
mod plan;
mod rows;
mod run;
mod tally;
mod walk;
mod window;

use std::fmt;

use keyloom::{Reader, Result, Unpack};

pub use batch::{Batch, BatchError};
pub use plan::{ReportExplain, ReportWay};
pub use rows::{Breakdown, ValueSum};

use super::{BitmapExpr, InvertedIndex};
use keyloom_tables::table::RecordKey;
use rows::{Gathered, Rows, in_order};
use run::Run;
use tally::Tally;

/// Reports of an audience: what [`InvertedIndex::report`] returns.
pub struct Report<'i, K, V> {
    index: &'i InvertedIndex<K, V>,
    audience: BitmapExpr,
    way: Option<ReportWay>,
}

impl<K, V> fmt::Debug for Report<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Report");
        out.field("audience", &self.audience).field("way", &self.way).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Reports of an audience; see [`report`](self). Reads nothing before it is asked.
    ///
    /// Ids without a record, which a [range](BitmapExpr::range) or a bitmap in memory may have, are
    /// left out: such an audience is intersected with [all](InvertedIndex::all) records.
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
    /// let user = |city: &str, categories: &[&str]| (city.to_owned(), categories.iter().map(|c| c.to_string()).collect());
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
        let audience = audience.into();
        let audience = match audience.is_within(&|space| self.owns(space)) {
            true => audience,
            // A range may have chunks without end where there are no records.
            false => audience & self.all(),
        };
        Report { index: self, audience, way: None }
    }
}

impl<K: RecordKey, V> Report<'_, K, V> {
    /// The same report, computed in this way, whatever it is expected to cost: for tests and
    /// measurements.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, ReportWay, one};
    /// let index = InvertedIndex::new(&Subspace::new("index")).field("even", |_id, n: &u64| one(n % 2 == 0));
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..).zip([1, 2, 3])))?;
    /// let snapshot = store.snapshot()?;
    /// for way in [ReportWay::Walk, ReportWay::Intersect] {
    ///     let report = index.report(index.all()).by(way);
    ///     let breakdown = report.breakdown::<bool>(&snapshot, "even")?;
    ///     assert_eq!((breakdown.rows, breakdown.explain.way), (vec![(false, 2), (true, 1)], way));
    /// }
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn by(self, way: ReportWay) -> Self {
        Self { way: Some(way), ..self }
    }

    /// How many ids of the audience have each value of a field. An id with several values counts
    /// for each of them; one without any for none.
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](super::InvertedIndexError::UnknownField),
    /// [`InvertedIndexError::OtherKind`](super::InvertedIndexError::OtherKind); a value that is no
    /// `P`; where stored bytes are damaged, naming the key; what the store says.
    pub fn breakdown<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
    ) -> Result<Breakdown<P>> {
        let (counts, explain) = self.counts(reader, &[field])?;
        let rows = in_order::<(P,), u64>(counts)?;
        let rows = rows.into_iter().map(|((value,), count)| (value, count)).collect();
        Ok(Breakdown { rows, explain })
    }

    /// How many ids of the audience have each combination of the values of several fields; `P` is
    /// the tuple of these.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("even", |_id, n: &u64| one(n % 2 == 0))
    ///     .field("digits", |_, n| one(n.to_string().len()));
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..).zip([1, 2, 3, 10, 12])))?;
    /// let all = index.report(index.all());
    /// let both = all.breakdown_by::<(bool, u64)>(&store.snapshot()?, &["even", "digits"])?;
    /// assert_eq!(both.rows, [((false, 1), 2), ((true, 1), 1), ((true, 2), 2)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) without fields; as
    /// [`breakdown`](Report::breakdown).
    pub fn breakdown_by<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        fields: &[&str],
    ) -> Result<Breakdown<P>> {
        let (counts, explain) = self.counts(reader, fields)?;
        Ok(Breakdown { rows: in_order(counts)?, explain })
    }

    /// Of the ids of the audience that have each value of a field, the sum of a field of integers
    /// and how many have one. A value of which none has one is left out.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, ValueSum, one};
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("shop", |_id, (shop, _): &(String, i64)| one(shop))
    ///     .integers("cents", |_, (_, cents)| Some(*cents));
    /// let sales = Table::<u32, (String, i64)>::new(&Subspace::new("sales")).with(&index);
    /// let store = Memory::new();
    /// let three = [("a".to_owned(), 250), ("a".to_owned(), -50), ("b".to_owned(), 90)];
    /// store.transact(|txn| sales.put_many(txn, (0..).zip(three.clone())))?;
    /// let sums = index.report(index.all()).sums::<String>(&store.snapshot()?, "shop", "cents")?;
    /// assert_eq!(sums.rows, [("a".into(), ValueSum { sum: 200, count: 2 }), ("b".into(), ValueSum { sum: 90, count: 1 })]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`breakdown`](Report::breakdown), and when `integers` is no field of integers.
    pub fn sums<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
        integers: &str,
    ) -> Result<Breakdown<P, ValueSum>> {
        let (mut sums, mut tally) = (Gathered::default(), Tally::new(1));
        let mut run = Run::open(self, reader, &[field], Some(integers))?;
        while let Some(window) = run.next_window()? {
            match run.way() {
                ReportWay::Intersect => {
                    run.intersect_sums(&window, field, integers, &mut sums)?;
                }
                ReportWay::Walk => run.walk_sums(&window, &mut tally)?,
            }
        }
        let sums = sums.into_iter().chain(tally.rows());
        let sums: Rows<ValueSum> = sums.filter(|(_, sum)| sum.count > 0).collect();
        let explain = run.finish(sums.len());
        let rows = in_order::<(P,), ValueSum>(sums)?;
        let rows = rows.into_iter().map(|((value,), sum)| (value, sum)).collect();
        Ok(Breakdown { rows, explain })
    }

    fn counts(&self, reader: &impl Reader, fields: &[&str]) -> Result<(Rows<u64>, ReportExplain)> {
        let (mut counts, mut tally) = (Gathered::default(), Tally::new(fields.len()));
        let mut run = Run::open(self, reader, fields, None)?;
        while let Some(window) = run.next_window()? {
            match run.way() {
                ReportWay::Intersect => run.intersect(&window, &mut counts)?,
                ReportWay::Walk => run.walk(&window, &mut tally)?,
            }
        }
        let counts: Rows<u64> = counts.into_iter().chain(tally.rows()).collect();
        let explain = run.finish(counts.len());
        Ok((counts, explain))
    }
}
