//! Counts and sums by the values of fields.

use keyloom::{Order, Reader, Result, Unpack};
use keyloom_kit::RecordKey;

use super::Report;
use super::plan::Way;
use super::rows::{Breakdown, Gathered, Rows, ValueSum, largest, sorted};
use super::run::Run;
use super::tally::Tally;
use crate::{SelectValues, SelectedValues};

impl<K: RecordKey, V> Report<'_, K, V> {
    /// Returns how many ids of the audience have each value of a field. An id with several values
    /// counts for each of them; an id without values is not counted.
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](crate::InvertedIndexError::UnknownField);
    /// [`InvertedIndexError::OtherKind`](crate::InvertedIndexError::OtherKind);
    /// [`Error::At`](keyloom::Error::At) if a value is not a `P`; [`Error::At`](keyloom::Error::At)
    /// with the key if stored bytes are damaged; any error of the store.
    pub fn breakdown<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
    ) -> Result<Breakdown<P>> {
        let (counts, run) = self.counts(reader, &[(field, SelectedValues::All)])?;
        let rows = sorted::<(P,), u64>(counts)?;
        Ok(run.finish(rows.into_iter().map(|((value,), count)| (value, count)).collect()))
    }

    /// Returns the `n` values of a field that most ids of the audience have, in descending order of
    /// their numbers of ids; values with equal numbers are ascending. Reads what
    /// [`breakdown`](Report::breakdown) reads, but decodes and sorts only these rows: with
    /// thousands of values, that takes as long as counting a small audience.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::InvertedIndex;
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("site", |_: &u32, sites: &Vec<String>| sites.iter().collect());
    /// let users = Table::<u32, Vec<String>>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// let sites = [vec!["a.org", "b.org"], vec!["b.org"], vec!["c.org"]];
    /// let sites = sites.map(|sites| sites.into_iter().map(String::from).collect());
    /// store.transact(|txn| users.put_many(txn, (0..).zip(sites.clone())))?;
    /// let snapshot = store.snapshot()?;
    /// let found = index.report(index.all()).top::<String>(&snapshot, "site", 2)?;
    /// assert_eq!(found.rows, [("b.org".into(), 2), ("a.org".into(), 1)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`breakdown`](Report::breakdown).
    pub fn top<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
        n: usize,
    ) -> Result<Breakdown<P>> {
        let (counts, run) = self.counts(reader, &[(field, SelectedValues::All)])?;
        let rows = largest::<(P,), u64>(counts, n)?;
        Ok(run.finish(rows.into_iter().map(|((value,), count)| (value, count)).collect()))
    }

    /// Returns how many ids of the audience have each of the selected values of a field, such as
    /// the facet values that begin with a prefix, or the values in a range. See [`SelectValues`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Table, starting_with};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("town", |_: &u32, town: &String| one(town));
    /// let users = Table::<u32, String>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// let towns = ["Oslo", "Paris", "Parma", "Paris"].map(String::from);
    /// store.transact(|txn| users.put_many(txn, (0..).zip(towns.clone())))?;
    /// let snapshot = store.snapshot()?;
    /// let report = index.report(index.all());
    /// let found = report.breakdown_of::<String>(&snapshot, "town", starting_with("Par"))?;
    /// assert_eq!(found.rows, [("Paris".into(), 2), ("Parma".into(), 1)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvertedIndexError::OtherType`](crate::InvertedIndexError::OtherType) if the selection is
    /// of another type than the values; otherwise the errors of [`breakdown`](Report::breakdown).
    pub fn breakdown_of<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
        select: impl SelectValues,
    ) -> Result<Breakdown<P>> {
        let (counts, run) = self.counts(reader, &[(field, select.selected())])?;
        let mut rows = sorted::<(P,), u64>(counts)?;
        if select.order() == Order::Descending {
            rows.reverse();
        }
        Ok(run.finish(rows.into_iter().map(|((value,), count)| (value, count)).collect()))
    }

    /// Returns how many ids of the audience have each combination of the values of several fields,
    /// like `GROUP BY` of several columns in SQL. `P` is the tuple of these values.
    ///
    /// An id with several values counts once for each combination of them: an id with two tags and
    /// three cities is in six groups. An id without a value in one of the fields is in no group; to
    /// count these ids, intersect the audience with [`absent`](crate::InvertedIndex::absent). The
    /// report has at most [`max_groups`](Report::max_groups) groups.
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
    /// [`InvertedIndexError::TooManyGroups`](crate::InvertedIndexError::TooManyGroups);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) without fields; otherwise the
    /// errors of [`breakdown`](Report::breakdown).
    pub fn breakdown_by<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        fields: &[&str],
    ) -> Result<Breakdown<P>> {
        let fields: Vec<_> = fields.iter().map(|field| (*field, SelectedValues::All)).collect();
        self.breakdown_by_selected(reader, &fields)
    }

    /// Like [`breakdown_by`](Report::breakdown_by), but counts only the selected values of each
    /// field; `().selected()` selects all. See [`SelectValues`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{SelectValues, Table, starting_with};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("town", |_: &u32, (town, _): &(String, u32)| one(town))
    ///     .field("year", |_, (_, year)| one(*year));
    /// let users = Table::<u32, (String, u32)>::new(&Subspace::new("users")).with(&index);
    /// let store = Memory::new();
    /// let rows = [("Oslo", 2024), ("Paris", 2024), ("Parma", 2025), ("Paris", 2024)];
    /// let rows = rows.map(|(town, year)| (town.to_owned(), year));
    /// store.transact(|txn| users.put_many(txn, (0..).zip(rows.clone())))?;
    /// let report = index.report(index.all());
    /// let fields = [("town", starting_with("Par").selected()), ("year", ().selected())];
    /// let found = report.breakdown_by_selected::<(String, u32)>(&store.snapshot()?, &fields)?;
    /// assert_eq!(found.rows, [(("Paris".into(), 2024), 2), (("Parma".into(), 2025), 1)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvertedIndexError::OtherType`](crate::InvertedIndexError::OtherType) if a selection is of
    /// another type than the values; otherwise the errors of [`breakdown_by`](Report::breakdown_by).
    pub fn breakdown_by_selected<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        fields: &[(&str, SelectedValues)],
    ) -> Result<Breakdown<P>> {
        let (counts, run) = self.counts(reader, fields)?;
        Ok(run.finish(sorted(counts)?))
    }

    /// Returns, for each value of a field, the sum of a field of integers over the ids of the
    /// audience with this value, and how many of these ids have an integer. Values without any
    /// integer are left out.
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
    /// assert_eq!(
    ///     sums.rows,
    ///     [
    ///         ("a".into(), ValueSum { sum: 200, count: 2 }),
    ///         ("b".into(), ValueSum { sum: 90, count: 1 })
    ///     ]
    /// );
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`breakdown`](Report::breakdown), and
    /// [`InvertedIndexError::OtherKind`](crate::InvertedIndexError::OtherKind) if `integers` is not
    /// a field of integers.
    pub fn sums<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
        integers: &str,
    ) -> Result<Breakdown<P, ValueSum>> {
        let all = [(field, SelectedValues::All)];
        let mut run = Run::open(self, reader, &all, Some(integers))?;
        let (mut sums, mut tally) = (Gathered::default(), Tally::new(run.fields()));
        while let Some(window) = run.next_window()? {
            match run.way() {
                Way::Intersect => {
                    run.intersect_sums(&window, field, integers, &mut sums)?;
                }
                Way::Walk => run.walk_sums(&window, &mut tally)?,
            }
        }
        let sums = sums.into_iter().chain(tally.rows());
        let sums: Rows<ValueSum> = sums.filter(|(_, sum)| sum.count > 0).collect();
        let rows = sorted::<(P,), ValueSum>(sums)?;
        Ok(run.finish(rows.into_iter().map(|((value,), sum)| (value, sum)).collect()))
    }

    fn counts<'r, R: Reader>(
        &'r self,
        reader: &'r R,
        fields: &[(&str, SelectedValues)],
    ) -> Result<(Rows<u64>, Run<'r, R, K, V>)> {
        let mut run = Run::open(self, reader, fields, None)?;
        let (mut counts, mut tally) = (Gathered::default(), Tally::new(run.fields()));
        while let Some(window) = run.next_window()? {
            match run.way() {
                Way::Intersect => run.intersect(&window, &mut counts)?,
                Way::Walk => run.walk(&window, &mut tally)?,
            }
        }
        Ok((counts.into_iter().chain(tally.rows()).collect(), run))
    }
}
