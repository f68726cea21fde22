//! A search that is evaluated in several steps with the same statistics, such as pages of subsets
//! of its matches.

use std::cmp::Ordering as Comparison;
use std::fmt;
use std::sync::Arc;

use keyloom::{Order, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::{Continuation, RecordKey};

use super::continuation::{After, continuation};
use super::ordering::{Ordering, of_rank};
use super::searches::Search;
use super::top_k::ScoredDoc;

/// A match with its place in the order of a search; see [`Ranking`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The id of the record in [`TextIndex::records`](crate::TextIndex::records).
    pub id: u64,
    /// The score: greater is better.
    pub score: f64,
    pub(super) after: AfterDoc,
}

/// A place in the order of a search, as stored in continuations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AfterDoc {
    doc: u32,
    rank: f64,
    is_missing: bool,
}

impl AfterDoc {
    fn of(After { last, is_missing }: After) -> Self {
        Self { doc: last.doc, rank: last.score, is_missing }
    }

    fn after(self) -> After {
        let last = ScoredDoc { doc: self.doc, score: self.rank };
        After { last, is_missing: self.is_missing }
    }

    fn compare(&self, other: &Self) -> Comparison {
        let by_value = self.is_missing.cmp(&other.is_missing);
        by_value.then(other.rank.total_cmp(&self.rank)).then(self.doc.cmp(&other.doc))
    }
}

impl Ranked {
    /// A match of a search in the order of scores.
    pub(super) fn by_score(ScoredDoc { doc, score }: ScoredDoc) -> Self {
        let after = AfterDoc { doc, rank: score, is_missing: false };
        Self { id: doc.into(), score, after }
    }

    /// Compares the places of two matches of one ranking: the better match is less.
    pub fn compare(&self, other: &Self) -> Comparison {
        self.after.compare(&other.after)
    }
}

/// A search whose statistics have been read, for evaluation in several steps. Returned by
/// [`Search::ranking`].
///
/// All pages use the same statistics for scores, whichever subset of the matches they contain. Use
/// a ranking to collect groups of results.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_bitmaps::one;
/// use keyloom_tables::Table;
/// use keyloom_text::{Analyzer, Query, TextIndex};
/// let texts = TextIndex::with_keys_as_ids(&Subspace::new("text"))
///     .field("body", Analyzer::simple(), |_id: &u32, body: &String, add| add(body))
///     .values("length", |_, body: &String| one(body.len()));
/// let posts = Table::<u32, String>::new(&Subspace::new("posts")).with(&texts);
/// let store = Memory::new();
/// let three = ["rabbit", "a rabbit", "a rabbit"].map(String::from);
/// store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
/// let snapshot = store.snapshot()?;
/// let ranking = texts.search(Query::term("body", "rabbit")).ranking(&snapshot)?;
/// let best = ranking.best(&snapshot, 1, None, None)?;
/// assert_eq!(best[0].id, 1);
/// let long = texts.records().term("length", 8)?;
/// let among = ranking.best(&snapshot, 1, Some(&best[0]), Some(&long))?;
/// assert_eq!(among[0].id, 2);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Ranking<'s, K, V> {
    pub(super) search: Search<'s, K, V>,
    pub(super) after: Option<AfterDoc>,
}

impl<K, V> Clone for Ranking<'_, K, V> {
    fn clone(&self) -> Self {
        Self { search: self.search.clone(), after: self.after }
    }
}

impl<K, V> fmt::Debug for Ranking<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranking").field("search", &self.search).finish_non_exhaustive()
    }
}

impl<'s, K: RecordKey, V> Search<'s, K, V> {
    /// Reads the statistics of this search, or takes them from its continuation. Reading the
    /// statistics costs one round trip. Each pattern of the query costs at least one more.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn ranking(&self, reader: &impl Reader) -> Result<Ranking<'s, K, V>> {
        let prepared = self.request.prepare(self.index, reader)?;
        let mut search = self.clone();
        search.request.after = None;
        search.request.statistics = Some(Arc::clone(&prepared.statistics));
        Ok(Ranking { search, after: prepared.after.map(AfterDoc::of) })
    }
}

impl<K: RecordKey, V> Ranking<'_, K, V> {
    /// Whether a match is on this page or later: it comes after the continuation, or the search has
    /// no continuation.
    pub fn is_on_this_page(&self, found: &Ranked) -> bool {
        self.after.is_none_or(|after| after.compare(&found.after).is_lt())
    }

    /// Whether the search has a continuation, so that it does not begin with the best match.
    pub fn is_continued(&self) -> bool {
        self.after.is_some()
    }

    /// The same ranking, ordered by a field as with [`sort_by`](Search::sort_by). Begins with the
    /// first match.
    #[must_use]
    pub fn sort_by(&self, field: &str, order: Order) -> Self {
        let search = self.search.clone().ordered(Ordering::Sorted(field.to_owned(), order));
        Self { search, after: None }
    }

    /// The `limit` best matches in `among` that come after `after`, the best first. If `after` is
    /// `None`, begins after the continuation of the search, if there is one.
    ///
    /// Costs as much as a page of the search with this filter.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn best(
        &self,
        reader: &impl Reader,
        limit: usize,
        after: Option<&Ranked>,
        among: Option<&BitmapExpr>,
    ) -> Result<Vec<Ranked>> {
        self.page(reader, limit, after.map(|after| after.after).or(self.after), among)
    }

    /// The `limit` best of all matches in `among`, including those before the continuation.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn best_of_all(
        &self,
        reader: &impl Reader,
        limit: usize,
        among: Option<&BitmapExpr>,
    ) -> Result<Vec<Ranked>> {
        self.page(reader, limit, None, among)
    }

    /// The number of matches in `among`. Costs as much as [`count`](Search::count) with this
    /// filter.
    ///
    /// # Errors
    /// See [`Search`].
    pub fn count(&self, reader: &impl Reader, among: Option<&BitmapExpr>) -> Result<u64> {
        self.narrowed(among).count(reader)
    }

    /// The continuation of the search after a match.
    ///
    /// # Errors
    /// An error if the statistics cannot be encoded.
    pub fn continue_after(&self, last: &Ranked) -> Result<Continuation> {
        self.continuation(&self.search, last.after)
    }

    fn narrowed(&self, among: Option<&BitmapExpr>) -> Search<'_, K, V> {
        let search = self.search.clone();
        match among {
            Some(among) => search.filter(among),
            None => search,
        }
    }

    fn continuation(&self, search: &Search<'_, K, V>, after: AfterDoc) -> Result<Continuation> {
        let statistics = self.search.request.statistics.as_deref();
        let statistics = statistics.cloned().unwrap_or_default();
        let fingerprint = search.request.fingerprint(search.index);
        continuation(fingerprint, after.after(), &statistics)
    }

    /// The position of the continuation, if the search is in the order of scores.
    pub(super) fn after_doc(&self) -> Option<ScoredDoc> {
        self.after.map(|after| after.after().last)
    }

    pub(super) fn page(
        &self,
        reader: &impl Reader,
        limit: usize,
        after: Option<AfterDoc>,
        among: Option<&BitmapExpr>,
    ) -> Result<Vec<Ranked>> {
        let mut search = self.narrowed(among).limit(limit);
        let after = after.map(|after| self.continuation(&search, after)).transpose()?;
        search.request.after = after;
        let (found, _) = search.request.ordered(search.index, reader, &search.ordering)?;
        let ranked = |found: &ScoredDoc, rank: f64, is_missing: bool| Ranked {
            id: found.doc.into(),
            score: found.score,
            after: AfterDoc { doc: found.doc, rank, is_missing },
        };
        let Ordering::Sorted(field, order) = &search.ordering else {
            return Ok(found.iter().map(|one| ranked(one, one.score, false)).collect());
        };
        let ids: Vec<u64> = found.iter().map(|found| found.doc.into()).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let values = search.index.records().integers_of(field)?.get_many(reader, &ids)?;
        let all = found.iter().zip(values).map(|(found, value)| match value {
            Some(value) if *order == Order::Descending => ranked(found, of_rank(value), false),
            Some(value) => ranked(found, of_rank(!value), false),
            None => ranked(found, 0.0, true),
        });
        Ok(all.collect())
    }
}
