//! The search API: options and result methods.

use std::fmt;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Error, Order, Reader, Result, Unpack};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::{Continuation, Page, RecordKey};
use keyloom_tables::table::Table;

use super::bm25::Bm25;
use super::counting::SearchExplain;
use super::explain::Explanation;
use super::ordering::Ordering;
use super::request::{Filter, Request, Scores, Top};
use super::results::{Hit, RecordHit};
use crate::index::TextError;
use crate::{Query, TextIndex};

/// A query with its options; returned by [`TextIndex::search`]. Nothing is read until a method that
/// returns results is called.
///
/// Each of these methods can return:
///
/// * a [`QueryError`](crate::QueryError) if the query is invalid;
/// * [`TextError::UnknownField`](crate::TextError::UnknownField);
/// * [`TextError::TooManyTerms`]; [`TextError::TooManyScannedTerms`];
///   [`TextError::TooManySpans`];
/// * [`Error::InvalidArgument`] for a phrase in a field without positions, for a continuation of
///   another search or index, for a [`Bm25`] with parameters out of bounds, and for a near-query or
///   a phrase with slop that has too many parts (see [`Near`](crate::Near#limits));
/// * an error with the key if stored bytes are damaged.
///
/// The errors of the first three items are returned as an [`Error::Other`]; get them with
/// [`Error::downcast_ref`].
pub struct Search<'i, K, V> {
    pub(super) index: &'i TextIndex<K, V>,
    pub(super) request: Request,
    pub(super) ordering: Ordering<K>,
}

impl<K, V> Clone for Search<'_, K, V> {
    fn clone(&self) -> Self {
        let (request, ordering) = (self.request.clone(), self.ordering.clone());
        Self { index: self.index, request, ordering }
    }
}

impl<K, V> fmt::Debug for Search<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Search").field(&self.request).finish()
    }
}

impl<K: RecordKey, V> TextIndex<K, V> {
    /// Returns a search for the records that match a query. See [`search`](crate::search).
    pub fn search(&self, query: impl Into<Query>) -> Search<'_, K, V> {
        let request = Request::new(query.into());
        Search { index: self, request, ordering: Ordering::Score }
    }
}

/// Options.
impl<K, V> Search<'_, K, V> {
    /// The index.
    pub fn index(&self) -> &TextIndex<K, V> {
        self.index
    }

    /// Sets the maximum number of results of a page: 10 by default.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.request.limit = limit;
        self
    }

    /// Continues after the page that returned `after`. With `None`, begins at the first page.
    ///
    /// A continuation contains the statistics of the first page, so unchanged documents have the
    /// same scores on all pages. No page skips or repeats an unchanged document, whatever is
    /// written between the pages. A document that is changed, added or deleted between two pages
    /// may be on neither or on both. Searches with another query, filter, order or parameter return
    /// an error for the continuation.
    #[must_use]
    pub fn after(mut self, after: impl Into<Option<Continuation>>) -> Self {
        self.request.after = after.into();
        self
    }

    /// Leaves out records whose ids are not in `filter`. Scores do not change. If there are several
    /// filters, a record must be in all of them.
    ///
    /// Filters are expressions of [`TextIndex::records`]. Expressions of other indexes can be used
    /// if keys are ids in both indexes; otherwise the search fails with
    /// [`MixedIds`](keyloom_bitmaps::InvertedIndexError::MixedIds).
    #[must_use]
    pub fn filter(self, filter: impl Into<BitmapExpr>) -> Self {
        self.filtered(filter, None)
    }

    /// Like [`filter`](Search::filter), for ids that may change between two pages, such as those of
    /// the members of a group. A continuation contains `name` instead of the ids, so it stays valid
    /// when the ids change. Each page uses the ids of its own search: a record that has entered the
    /// filter is on a later page if its score is low enough.
    ///
    /// Two filters of the same name must have the same meaning. A continuation of a search with
    /// another name is refused.
    ///
    /// ```
    /// # use keyloom::{Memory, Store, Subspace};
    /// # use keyloom_bitmaps::one;
    /// # use keyloom_tables::Table;
    /// # use keyloom_text::{Analyzer, Query, TextIndex};
    /// let texts = TextIndex::new(&Subspace::new("text"))
    ///     .field("body", Analyzer::simple(), |_id: &u32, post: &(String, String), add| add(&post.1))
    ///     .values("author", |_, post| one(post.0.as_str()));
    /// let posts = Table::<u32, (String, String)>::new(&Subspace::new("posts")).with(&texts);
    /// let store = Memory::new();
    /// let three = ["Ada", "Ben", "Eve"].map(|name| (name.to_owned(), "a rabbit".to_owned()));
    /// store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let of_friends = |names: &[&str]| {
    ///     let ids = texts.records().any_of_terms(&snapshot, "author", names.iter().copied())?;
    ///     let search = texts.search(Query::term("body", "rabbit"));
    ///     Ok::<_, keyloom::Error>(search.changing_filter("my friends", ids).limit(1))
    /// };
    /// let first = of_friends(&["Ada", "Ben"])?.hits(&snapshot)?;
    /// // Between the pages, Eve becomes a friend.
    /// let others = of_friends(&["Ada", "Ben", "Eve"])?.after(first.next).limit(10);
    /// assert_eq!(others.hits(&snapshot)?.items.len(), 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn changing_filter(self, name: &str, filter: impl Into<BitmapExpr>) -> Self {
        self.filtered(filter, Some(name.to_owned()))
    }

    fn filtered(mut self, filter: impl Into<BitmapExpr>, name: Option<String>) -> Self {
        let ids = self.index.records.own(filter);
        self.request.filters.push(Filter { ids, name });
        self
    }

    /// Sets the parameters of the ranking function.
    #[must_use]
    pub fn bm25(mut self, bm25: Bm25) -> Self {
        self.request.bm25 = bm25;
        self
    }

    /// Sets the maximum number of terms of the query: 1,024 by default. A clause counts as the
    /// number of its terms after analysis. A prefix or another pattern counts as the number of
    /// terms of the dictionary that it matches. A word of a combined query also counts once for
    /// each field. Every clause counts as at least one term.
    #[must_use]
    pub fn max_terms(mut self, terms: usize) -> Self {
        self.request.expansion.max_terms = terms;
        self
    }

    /// Sets the maximum number of states of the automata of all wildcards, regular expressions and
    /// fuzzy terms of the query together: 32,768 by default. An automaton counts as its number of
    /// states plus 64. A state takes up to 512 bytes; a fuzzy term of ten letters has a few hundred
    /// states.
    ///
    /// If the limit is exceeded, the search returns
    /// [`QueryError::TooManyStates`](crate::QueryError::TooManyStates).
    #[must_use]
    pub fn max_states(mut self, states: usize) -> Self {
        self.request.expansion.max_states = states;
        self
    }

    /// Sets the maximum number of terms of the dictionary that all patterns of the query read
    /// together: 1,000,000 by default. A pattern such as `*ing` reads the whole dictionary.
    ///
    /// If the limit is exceeded, the search returns [`TextError::TooManyScannedTerms`].
    #[must_use]
    pub fn max_scanned_terms(mut self, terms: usize) -> Self {
        self.request.expansion.max_scanned_terms = terms;
        self
    }
}

/// Orders other than by score. All matches are visited, and the values that the order needs are
/// read in batches. If the score is replaced, all matches are scored; if the results are sorted by
/// a field, only the results are scored.
impl<K, V> Search<'_, K, V> {
    /// Orders the results by a [field of integers](TextIndex::integers). Records without a value
    /// come last. If values are equal, the smaller id comes first. Hits still have the score of the
    /// query.
    #[must_use]
    pub fn sort_by(self, field: &str, order: Order) -> Self {
        self.ordered(Ordering::Sorted(field.to_owned(), order))
    }

    /// Replaces the score by a function of the score and a [field of
    /// integers](TextIndex::integers), for example with a [`Decay`](crate::Decay).
    ///
    /// The function must be pure, and the same for all pages. If it returns NaN, the search returns
    /// an [`Error::InvalidArgument`].
    ///
    /// ```
    /// # use keyloom::{Memory, Store, Subspace};
    /// # use keyloom_tables::Table;
    /// # use keyloom_text::{Analyzer, Decay, Query, TextIndex};
    /// let texts = TextIndex::new(&Subspace::new("text"))
    ///     .field("body", Analyzer::simple(), |_id: &u32, post: &(String, i64), add| add(&post.0))
    ///     .integers("year", |_, post| Some(post.1));
    /// let posts = Table::<u32, (String, i64)>::new(&Subspace::new("posts")).with(&texts);
    /// let store = Memory::new();
    /// let two = [("a rabbit".to_owned(), 1_990), ("a rabbit too".to_owned(), 2_020)];
    /// store.transact(|txn| posts.put_many(txn, (1..).zip(two.clone())))?;
    /// let recent = Decay { origin: 2_020, scale: 10.0, decay: 0.5 };
    /// let page = texts
    ///     .search(Query::term("body", "rabbit"))
    ///     .score_by("year", move |score, year| score * year.map_or(0.0, |year| recent.factor(year)))
    ///     .hits(&store.snapshot()?)?;
    /// assert_eq!(page.items[0].key, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn score_by(
        self,
        field: &str,
        function: impl Fn(f64, Option<i64>) -> f64 + Send + Sync + 'static,
    ) -> Self {
        self.ordered(Ordering::ByInteger(field.to_owned(), Arc::new(function)))
    }

    /// Replaces the score by a function of the key and the score. The function must be pure, and
    /// the same for all pages. If it returns NaN, the search returns an [`Error::InvalidArgument`].
    #[must_use]
    pub fn rescore(self, function: impl Fn(&K, f64) -> f64 + Send + Sync + 'static) -> Self {
        self.ordered(Ordering::ByKey(Arc::new(function)))
    }

    pub(super) fn ordered(mut self, ordering: Ordering<K>) -> Self {
        self.request.order = ordering.description();
        self.ordering = ordering;
        self
    }
}

/// Results.
impl<K: RecordKey, V> Search<'_, K, V> {
    /// The keys of the best records with their scores, the best first. If scores are equal, the
    /// smaller id comes first.
    ///
    /// # Errors
    /// See [`Search`]; [`TextError::NoRecord`].
    pub fn hits(&self, reader: &impl Reader) -> Result<Page<Hit<K>>> {
        self.page(reader, self.request.ordered(self.index, reader, &self.ordering)?)
    }

    /// The best records. Their values are read in one round trip.
    ///
    /// `table` is the table of the index.
    ///
    /// # Errors
    /// See [`Search`]; [`TextError::NoRecord`]; [`Error::InvalidArgument`] if `table` does not
    /// maintain the index; if a record does not decode, an error with its key.
    pub fn records<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Page<RecordHit<K, V>>> {
        table.refuse_unless_attached(self.index.space())?;
        let (found, next) = self.request.ordered(self.index, reader, &self.ordering)?;
        let ids: Vec<u32> = found.iter().map(|found| found.doc).collect();
        let Page { items, next } = self.page(reader, (found, next))?;
        let values = match items.is_empty() {
            true => Vec::new(),
            false => table.get_many(reader, items.iter().map(|hit| &hit.key))?,
        };
        let all =
            items.into_iter().zip(values).zip(ids).map(|((Hit { key, score }, value), id)| {
                Ok(RecordHit { key, value: value.ok_or_else(|| self.no_record(id))?, score })
            });
        Ok(Page { items: all.collect::<Result<_>>()?, next })
    }

    /// The number of records that match. For a single term without filters, reads counters;
    /// otherwise visits all matches.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        self.request.count(self.index, reader)
    }

    /// The ids of all records that match, ascending. Ids are those of [`TextIndex::records`].
    ///
    /// # Errors
    /// See [`Search`].
    pub fn ids(&self, reader: &impl Reader) -> Result<Vec<u64>> {
        Ok(self.request.ids(self.index, reader)?.into_iter().map(u64::from).collect())
    }

    /// The ids of all records that match, ascending, each with its score. This is the score of the
    /// query, regardless of the order of the results.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn scores(&self, reader: &impl Reader) -> Result<Vec<(u64, f64)>> {
        let prepared = self.request.prepare(self.index, reader)?;
        let mut scores = Vec::new();
        self.request.for_each(self.index, reader, &prepared, Scores::Computed, |found| {
            scores.push((u64::from(found.doc), found.score));
            Ok(())
        })?;
        Ok(scores)
    }

    /// The ids of all records that match, as an expression in memory. Use it as a filter of other
    /// searches, or as the audience of a [report](keyloom_bitmaps::InvertedIndex::report).
    ///
    /// # Errors
    /// See [`Search`].
    pub fn matches(&self, reader: &impl Reader) -> Result<BitmapExpr> {
        Ok(self.index.records().of_sorted_ids(self.ids(reader)?))
    }

    /// Counts the matches by their value of a [field](TextIndex::values). Returns at most `limit`
    /// values, the most frequent first. If counts are equal, the smaller value comes first.
    ///
    /// ```
    /// # use keyloom::{Memory, Store, Subspace};
    /// # use keyloom_bitmaps::one;
    /// # use keyloom_tables::Table;
    /// # use keyloom_text::{Analyzer, Query, TextIndex};
    /// let texts = TextIndex::new(&Subspace::new("text"))
    ///     .field("body", Analyzer::simple(), |_id: &u32, body: &String, add| add(body))
    ///     .values("first", |_, body| one(body.split(' ').next()));
    /// let posts = Table::<u32, String>::new(&Subspace::new("posts")).with(&texts);
    /// let store = Memory::new();
    /// let three = ["a rabbit", "the rabbit", "a rabbit too"].map(String::from);
    /// store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
    /// let search = texts.search(Query::term("body", "rabbit"));
    /// let facets = search.facets::<String>(&store.snapshot()?, "first", 10)?;
    /// assert_eq!(facets, [("a".to_owned(), 2), ("the".to_owned(), 1)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`Search`], and [`breakdown`](keyloom_bitmaps::Report::breakdown).
    pub fn facets<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        field: &str,
        limit: usize,
    ) -> Result<Vec<(P, u64)>> {
        let matches = self.matches(reader)?;
        let mut rows = self.index.records().report(matches).breakdown::<P>(reader, field)?.rows;
        // Rows are in the order of their values, and the sort is stable.
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rows.truncate(limit);
        Ok(rows)
    }

    /// Explains how the score of a record is computed; `None` if the record has no id. If keys are
    /// ids, every key that fits into 32 bits has an id. Filters are left out. Costs about as much
    /// as one search per part of the query.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn explain_score(&self, reader: &impl Reader, key: &K) -> Result<Option<Explanation>> {
        let id = self.index.records().id_of(reader, key)?;
        let id = id.and_then(|id| u32::try_from(id).ok());
        id.map(|id| self.request.explain(self.index, reader, id)).transpose()
    }

    /// Runs this search in its order and returns the cost of finding its [`hits`](Search::hits),
    /// without the reads of their keys. If the order is a [function of the key](Search::rescore),
    /// the reads of all keys are part of it.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn explain(&self, reader: &impl Reader) -> Result<SearchExplain> {
        self.request.reads(self.index, reader, |counting| {
            let (hits, _) = self.request.ordered(self.index, counting, &self.ordering)?;
            Ok(hits.len())
        })
    }

    /// Replaces ids by keys. Costs one round trip, or none if keys are ids.
    fn page(&self, reader: &impl Reader, (found, next): Top) -> Result<Page<Hit<K>>> {
        let keys = match found.is_empty() {
            true => Vec::new(),
            false => {
                let ids = found.iter().map(|found| u64::from(found.doc));
                self.index.records().keys(reader, ids)?
            }
        };
        let items = found.iter().zip(keys).map(|(found, key)| {
            let key = key.ok_or_else(|| self.no_record(found.doc))?;
            Ok(Hit { key, score: found.score })
        });
        Ok(Page { items: items.collect::<Result<_>>()?, next })
    }

    #[cold]
    pub(super) fn no_record(&self, id: u32) -> Error {
        TextError::NoRecord { index: self.index.space().named(), id }.into()
    }
}
