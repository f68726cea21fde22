//! A query with its options.

use std::fmt;

use keyloom::value::Codec;
use keyloom::{Error, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_tables::table::{RecordKey, Table};

use super::bm25::Bm25;
use super::continuation::SearchContinuation;
use super::counting::SearchExplain;
use super::error::SearchError;
use super::explain::Explanation;
use super::request::{Request, Top};
use super::results::{Hit, RecordHit, SearchPage};
use crate::{Query, TextIndex};

/// A query with its options; returned by [`TextIndex::search`]. Nothing is read until one of its
/// last methods is called.
///
/// Every one of them returns:
///
/// * a [`QueryError`](crate::QueryError) if the query is invalid;
/// * [`TextError::UnknownField`](crate::TextError::UnknownField);
/// * [`SearchError::TooManyTerms`];
/// * [`Error::InvalidArgument`] for a phrase in a field without positions, and for a continuation
///   of another search;
/// * an error with the key if stored bytes are damaged.
///
/// The first three are in an [`Error::Other`]; get them with [`Error::downcast_ref`].
pub struct Search<'i, K, V> {
    index: &'i TextIndex<K, V>,
    request: Request,
}

impl<K, V> Clone for Search<'_, K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index, request: self.request.clone() }
    }
}

impl<K, V> fmt::Debug for Search<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Search").field(&self.request).finish()
    }
}

impl<K: RecordKey, V> TextIndex<K, V> {
    /// A search for the records that match a query. See [`search`](crate::search).
    pub fn search(&self, query: impl Into<Query>) -> Search<'_, K, V> {
        Search { index: self, request: Request::new(query.into()) }
    }
}

/// Options.
impl<K, V> Search<'_, K, V> {
    /// Sets the greatest number of results of a page: 10 by default.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.request.limit = limit;
        self
    }

    /// Continues after the page that returned `after`; from the beginning with `None`.
    #[must_use]
    pub fn after(mut self, after: impl Into<Option<SearchContinuation>>) -> Self {
        self.request.after = after.into();
        self
    }

    /// Leaves out records whose ids are not in `filter`. Scores stay as they are. Several filters
    /// must all hold.
    ///
    /// Expressions of [`TextIndex::records`] are filters, and also those of other indexes if the
    /// keys of the records are the ids in both.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<BitmapExpr>) -> Self {
        self.request.filters.push(filter.into());
        self
    }

    /// Sets the parameters of the ranking function.
    #[must_use]
    pub fn bm25(mut self, bm25: Bm25) -> Self {
        self.request.bm25 = bm25;
        self
    }

    /// Sets the greatest number of terms that a prefix or another pattern may stand for: 1,024 by
    /// default.
    #[must_use]
    pub fn max_terms(mut self, terms: usize) -> Self {
        self.request.expansion.max_terms = terms;
        self
    }
}

/// Results.
impl<K: RecordKey, V> Search<'_, K, V> {
    /// The keys of the best records, with their scores.
    ///
    /// # Errors
    /// See [`Search`]; [`SearchError::NoRecord`].
    pub fn hits(&self, reader: &impl Reader) -> Result<SearchPage<Hit<K>>> {
        self.page(reader, self.request.top(self.index, reader)?)
    }

    /// The best records. Their values are read in one round trip.
    ///
    /// `table` is that of the index.
    ///
    /// # Errors
    /// See [`Search`]; [`SearchError::NoRecord`]; [`Error::InvalidArgument`] if `table` does not
    /// maintain the index; if a record does not decode, an error with its key.
    pub fn records<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<SearchPage<RecordHit<K, V>>> {
        table.refuse_unless_attached(self.index.space())?;
        let (found, next) = self.request.top(self.index, reader)?;
        let ids: Vec<u32> = found.iter().map(|found| found.doc).collect();
        let SearchPage { items, next } = self.page(reader, (found, next))?;
        let values = match items.is_empty() {
            true => Vec::new(),
            false => table.get_many(reader, items.iter().map(|hit| &hit.key))?,
        };
        let all =
            items.into_iter().zip(values).zip(ids).map(|((Hit { key, score }, value), id)| {
                Ok(RecordHit { key, value: value.ok_or_else(|| self.no_record(id))?, score })
            });
        Ok(SearchPage { items: all.collect::<Result<_>>()?, next })
    }

    /// The number of records that match. For a single term it is a counter; otherwise all matches
    /// are visited.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        self.request.count(self.index, reader)
    }

    /// The ids of all records that match, ascending: those of [`TextIndex::records`].
    ///
    /// # Errors
    /// See [`Search`].
    pub fn ids(&self, reader: &impl Reader) -> Result<Vec<u64>> {
        Ok(self.request.ids(self.index, reader)?.into_iter().map(u64::from).collect())
    }

    /// The ids of all records that match, as an expression in memory: a filter of other searches,
    /// or the audience of a [report](keyloom_bitmaps::InvertedIndex::report).
    ///
    /// # Errors
    /// See [`Search`].
    pub fn matches(&self, reader: &impl Reader) -> Result<BitmapExpr> {
        Ok(self.index.records().of_sorted_ids(self.ids(reader)?))
    }

    /// How the score of a record is computed; `None` if the index does not have the record. Filters
    /// are left out. Costs about as much as a search for each part of the query.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn explain_score(&self, reader: &impl Reader, key: &K) -> Result<Option<Explanation>> {
        let id = self.index.records().id_of(reader, key)?;
        let id = id.and_then(|id| u32::try_from(id).ok());
        id.map(|id| self.request.explain(self.index, reader, id)).transpose()
    }

    /// What this search reads to find its [`hits`](Search::hits), not counting their keys.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn explain(&self, reader: &impl Reader) -> Result<SearchExplain> {
        self.request.reads(self.index, reader)
    }

    /// Replaces ids by keys. Costs one round trip; nothing if keys are ids.
    fn page(&self, reader: &impl Reader, (found, next): Top) -> Result<SearchPage<Hit<K>>> {
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
        Ok(SearchPage { items: items.collect::<Result<_>>()?, next })
    }

    #[cold]
    fn no_record(&self, id: u32) -> Error {
        SearchError::NoRecord { index: self.index.space().to_string(), id }.into()
    }
}
