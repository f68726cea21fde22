//! Queries of an index, built clause by clause.

use std::fmt;
use std::iter::Take;
use std::ops::{Bound, RangeBounds};

use keyloom::key::display_named;
use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result};
use keyloom_kit::parts::PrefixOf;
use keyloom_kit::{
    Continuation, Explain, Page, RecordKey, Select, answers, key_range_between, starting_with,
};

use super::found::Dangling;
use super::{Found, FoundEntries, Index};
use crate::table::Table;

/// A query of an [`Index`]. Its clauses set the entries, their order, the limit, and the position
/// to resume at.
///
/// [`Index::query`] begins a query. [`Attached::query`](crate::Attached::query) begins a query that
/// can also read the table, and that checks whether the index is readable. Several selecting
/// clauses select the intersection.
///
/// Every clause begins at the first part, even after a [`prefix`](IndexQuery::prefix). To select a
/// range of the part after a prefix, repeat the prefix in the bounds; see
/// [`range`](IndexQuery::range).
///
/// ```
/// use keyloom::{Desc, Memory, Store};
/// use keyloom_tables::{Schema, entry};
/// let store = Memory::new();
/// let schema = Schema::open(&store, "geo")?;
/// let cities = schema.table::<u32, (String, u64)>("cities")?;
/// let by_size = schema.index(&cities, "by_size", 1, |_, (country, people)| entry((country, Desc(*people))))?;
/// let all = [
///     (1, ("FR", 2_138_551)),
///     (2, ("FR", 1_041_000)),
///     (3, ("CH", 341_730)),
///     (4, ("FR", 472_317)),
/// ];
/// store.transact(|txn| cities.put_many(txn, all.map(|(id, (country, n))| (id, (country.to_owned(), n)))))?;
///
/// let snapshot = store.snapshot()?;
/// let of_france = by_size.query().prefix("FR");
/// assert_eq!(of_france.count(&snapshot)?, 3);
/// let largest = of_france.clone().limit(2).keys(&snapshot)?;
/// assert_eq!(largest.items, [1, 2]);
/// let next = of_france.limit(2).after(largest.next.as_ref()).records(&snapshot)?;
/// assert_eq!(next.items, [(4, ("FR".into(), 472_317))]);
/// let smallest = by_size.query().range(("FR", Desc(500_000))..).keys(&snapshot)?;
/// assert_eq!(smallest.items, [4]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Cost
///
/// | operation | cost | round trips |
/// |---|---|---|
/// | [`entries`](IndexQuery::entries), [`page`](IndexQuery::page), [`keys`](IndexQuery::keys) | 1 range; reads the entries that it returns | 1 |
/// | [`records`](IndexQuery::records), [`first`](IndexQuery::first) | the same, and 1 get per entry | 2 |
/// | [`count`](IndexQuery::count) | 1 range; reads all selected entries, unless the store can count | 1 |
/// | each of these, for an [`Attached`](crate::Attached) index | 1 more get | 1 more |
#[must_use = "a query does nothing before it is run"]
pub struct IndexQuery<'q, K, V, P, T = &'q Index<K, V, P>> {
    pub(crate) index: &'q Index<K, V, P>,
    /// The index that runs the query: an [`Index`], or an index in a schema.
    pub(crate) source: T,
    pub(crate) range: KeyRange<'static>,
    pub(crate) order: Order,
    pub(crate) limit: usize,
    pub(crate) after: Option<&'q Continuation>,
    pub(crate) clauses: Clauses,
}

/// The prefix and the bounds that were given last, as keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clauses {
    prefix: Option<KeyBuf>,
    bounds: [Option<KeyBuf>; 2],
}

impl Clauses {
    /// Refuses a bound that does not begin with the prefix. Otherwise `prefix(1).range(..50)` would
    /// silently compare the first part with 50, and not the second.
    fn check(&self) -> Result<()> {
        let Some(prefix) = &self.prefix else { return Ok(()) };
        match self.bounds.iter().flatten().find(|bound| !bound.starts_with(prefix)) {
            None => Ok(()),
            Some(bound) => Err(Error::InvalidArgument {
                what: "the range of the query",
                value: display_named(bound).to_string(),
                why: "it does not begin with the prefix of the query; bounds begin at the first part too, as in prefix(1).range(..(1, 50))",
            }),
        }
    }
}

impl<K, V, P, T: Copy> Clone for IndexQuery<'_, K, V, P, T> {
    fn clone(&self) -> Self {
        Self { range: self.range.clone(), clauses: self.clauses.clone(), ..*self }
    }
}

impl<K, V, P, T> fmt::Debug for IndexQuery<'_, K, V, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexQuery")
            .field("range", &self.range)
            .field("order", &self.order)
            .field("limit", &self.limit)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl<'q, K: RecordKey, V, P, T> IndexQuery<'q, K, V, P, T> {
    pub(crate) fn new(index: &'q Index<K, V, P>, source: T) -> Self {
        let range = index.space.self_and_children();
        let (order, limit, clauses) = (Order::Ascending, usize::MAX, Clauses::default());
        Self { index, source, range, order, limit, after: None, clauses }
    }

    /// Selects the entries that begin with these parts.
    pub fn prefix(mut self, parts: impl PrefixOf<P>) -> Self {
        self.clauses.prefix = Some(self.index.space.pack(&parts));
        self.select(parts)
    }

    /// Selects the entries that begin with these parts, where the last part is a prefix of a
    /// string; see [`starting_with`](crate::starting_with()).
    pub fn starting_with(self, parts: impl PrefixOf<P>) -> Self {
        self.select(starting_with(parts))
    }

    /// Selects the entries in a range of leading parts; see [`within`](crate::within).
    ///
    /// The bounds begin at the first part. After a [`prefix`](IndexQuery::prefix), each bound must
    /// begin with the same prefix; otherwise the query returns an error when it runs.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "library")?;
    /// let loans = schema.table::<u32, (u32, u32)>("loans")?; // member, day
    /// let by_member = schema.index(&loans, "by_member", 1, |_, loan| entry(*loan))?;
    /// store.transact(|txn| loans.put_many(txn, [(7, (1, 20)), (8, (1, 80)), (9, (2, 10))]))?;
    /// let snapshot = store.snapshot()?;
    /// // Member 1, before day 50.
    /// let early = by_member.query().prefix(1).range(..(1, 50)).keys(&snapshot)?;
    /// assert_eq!(early.items, [7]);
    /// assert!(by_member.query().prefix(1).range(..50).keys(&snapshot).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn range<Q: PrefixOf<P>>(mut self, parts: impl RangeBounds<Q>) -> Self {
        let (start, end): (Bound<&Q>, _) = (parts.start_bound(), parts.end_bound());
        self.clauses.bounds = [start, end].map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(self.index.space.pack(key)),
            Bound::Unbounded => None,
        });
        self.range = self.range.intersect(key_range_between(&self.index.space, start, end));
        self
    }

    /// Selects entries with a [`Select`], for example from a variable. If `select` is
    /// [`descending`](crate::descending), the query becomes descending; a later
    /// [`order`](Self::order) or [`reverse`](Self::reverse) changes the order again.
    pub fn select(mut self, select: impl Select<P>) -> Self {
        if select.order() == Order::Descending {
            self.order = Order::Descending;
        }
        self.range = self.range.intersect(select.key_range(&self.index.space));
        self
    }

    /// Reverses the order of the entries.
    pub fn reverse(self) -> Self {
        let order = match self.order {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        };
        self.order(order)
    }

    /// Returns the entries in this order.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Returns at most `limit` entries. Without a limit, a page contains all selected entries. A
    /// `limit` of 0 counts as 1.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }

    /// Resumes after a page of the same query in the same order: `after(&token)`, or
    /// `after(page.next.as_ref())`.
    pub fn after(mut self, token: impl Into<Option<&'q Continuation>>) -> Self {
        self.after = token.into();
        self
    }

    /// The range of the remaining keys.
    fn rest(&self) -> Result<KeyRange<'static>> {
        let rest = Continuation::resume(self.after, self.range.clone(), self.order)?;
        Ok(rest.into_owned())
    }
}

/// An index that can run a query through `reader`.
///
/// The trait cannot be named outside of this crate. It is implemented for an index, and for an
/// index in a schema together with its table.
pub trait QuerySource: Copy {
    /// Refuses an index that is not readable.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`](crate::SchemaError::NotReadable), and the other errors of
    /// [`Attached::at`](crate::Attached::at).
    fn require_readable(&self, reader: &impl Reader) -> Result<()>;
}

impl<K, V, P> QuerySource for &Index<K, V, P> {
    fn require_readable(&self, _: &impl Reader) -> Result<()> {
        Ok(())
    }
}

impl<K: RecordKey, V, P, T: QuerySource> IndexQuery<'_, K, V, P, T> {
    /// Refuses an index that is not readable, and clauses that contradict each other.
    pub(crate) fn require_runnable(&self, reader: &impl Reader) -> Result<()> {
        self.clauses.check()?;
        self.source.require_readable(reader)
    }

    /// Iterates over the entries.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a token of another query;
    /// the errors of [`Attached::at`](crate::Attached::at); any error of the store. The iterator
    /// also returns an error for each entry that cannot be read.
    pub fn entries<'r, R: Reader>(
        &self,
        reader: &'r R,
    ) -> Result<Take<FoundEntries<R::Entries<'r>, K, P>>> {
        self.require_runnable(reader)?;
        let entries = reader.range(self.rest()?, self.order)?;
        Ok(FoundEntries::new(entries, &self.index.space).take(self.limit))
    }

    /// The entries, and a continuation for the next page.
    ///
    /// The page ends before an entry that cannot be read.
    ///
    /// # Errors
    /// The errors of [`entries`](IndexQuery::entries), and
    /// [`UnreadableEntry`](crate::UnreadableEntry) if the first entry cannot be read.
    pub fn page<'r, R: Reader>(&self, reader: &'r R) -> Result<Page<Found<R::Bytes<'r>, K, P>>> {
        self.require_runnable(reader)?;
        self.index.page_of(reader, &self.range, self.order, self.limit, self.after)
    }

    /// The keys of the records, and a continuation for the next page.
    ///
    /// # Errors
    /// The errors of [`page`](IndexQuery::page).
    pub fn keys(&self, reader: &impl Reader) -> Result<Page<K>> {
        let Page { items, next } = self.page(reader)?;
        let keys = items.iter().map(|found| (found.entry_key(), found.record_key().map(Some)));
        answers(keys, next, |last| Continuation::behind(last, &self.range, self.order))
    }

    /// The number of entries that the query selects. Counts only the entries after the token, and
    /// at most the limit.
    ///
    /// # Errors
    /// The errors of [`entries`](IndexQuery::entries).
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        self.require_runnable(reader)?;
        let limit = u64::try_from(self.limit).unwrap_or(u64::MAX);
        Ok(reader.count(self.rest()?)?.min(limit))
    }

    /// The cost of reading the entries, measured by reading them.
    ///
    /// # Errors
    /// The errors of [`entries`](IndexQuery::entries).
    pub fn explain(&self, reader: &impl Reader) -> Result<Explain> {
        self.require_runnable(reader)?;
        let mut explain = Explain { planned: 1, ranges: 1, ..Explain::default() };
        for entry in reader.range(self.rest()?, self.order)?.take(self.limit) {
            entry?;
            explain.keys_scanned += 1;
            explain.keys_returned += 1;
        }
        Ok(explain)
    }
}

impl<'q, K: RecordKey, V, P> IndexQuery<'q, K, V, P> {
    /// The records of `table`, in the order of the index, and a continuation for the next page.
    ///
    /// # Errors
    /// The errors of [`page`](IndexQuery::page). An [`UnreadableEntry`](crate::UnreadableEntry) is
    /// also returned for an entry whose record does not decode or does not exist.
    pub fn records<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Page<(K, V)>> {
        self.require_runnable(reader)?;
        let Self { index, range, order, limit, after, .. } = self;
        index.records_of(reader, table, range, *order, *limit, *after, nothing, record_of)
    }
}

/// The record of an entry, or an error if the record does not exist.
pub(crate) fn existing<K, V>(key: K, value: Option<V>, entry: &[u8]) -> Result<(K, V)> {
    let value = value.ok_or_else(|| Error::other(Dangling).at(entry))?;
    Ok((key, value))
}

fn record_of<K, V>(key: K, value: Option<V>, _: (), entry: &[u8]) -> Result<Option<(K, V)>> {
    existing(key, value, entry).map(Some)
}

/// Reads nothing in addition to the records.
pub(crate) fn nothing<K>(keys: &[&K]) -> Result<Vec<()>> {
    Ok(vec![(); keys.len()])
}
