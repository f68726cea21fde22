//! The matches of a search, which can be combined with the matches of related records.

use std::cmp::Ordering;
use std::fmt;

use keyloom::{Error, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::RecordKey;
use keyloom_text::{Hit, Search, TextIndex};

use crate::error::DocumentError;

/// All records of a table that match, each with its score.
///
/// The result of a search, or of a step from parents to children or back; see
/// [`Relation`](crate::Relation). Two sets of matches of one index are combined by
/// [`and`](Self::and), [`or`](Self::or) and [`without`](Self::without).
///
/// Takes 16 bytes of memory per match. Use it only in the snapshot that it was read from: the ids
/// of deleted records are assigned again.
pub struct Matches<K, V> {
    index: TextIndex<K, V>,
    /// The ids and scores, in ascending order of the ids.
    all: Vec<(u64, f64)>,
}

impl<K, V> Clone for Matches<K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), all: self.all.clone() }
    }
}

impl<K, V> fmt::Debug for Matches<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matches").field("index", &self.index).field("all", &self.all).finish()
    }
}

impl<K: RecordKey, V> Matches<K, V> {
    /// All matches of a search, with the scores of its query.
    ///
    /// # Errors
    /// The errors of [`Search`].
    pub fn of(
        index: &TextIndex<K, V>,
        search: &Search<'_, K, V>,
        reader: &impl Reader,
    ) -> Result<Self> {
        Ok(Self::new(index, search.scores(reader)?))
    }

    /// The records with these ids, all with the score `score`.
    ///
    /// `ids` is an expression of [`TextIndex::records`], such as a comparison of integers, or
    /// `index.records().all()` for all records.
    ///
    /// # Errors
    /// The errors of [`BitmapExpr::count`].
    pub fn of_ids(
        index: &TextIndex<K, V>,
        ids: &BitmapExpr,
        score: f64,
        reader: &impl Reader,
    ) -> Result<Self> {
        let ids = ids & index.records().all();
        let ids = ids.ids(reader, ..)?;
        let all = ids.map(|id| Ok((id?, score))).collect::<Result<_>>()?;
        Ok(Self::new(index, all))
    }

    /// `all` must be in ascending order of the ids.
    pub(crate) fn new(index: &TextIndex<K, V>, all: Vec<(u64, f64)>) -> Self {
        Self { index: index.clone(), all }
    }

    /// The number of matches.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing matches.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The ids of the matches with their scores, by ascending id.
    pub fn scores(&self) -> &[(u64, f64)] {
        &self.all
    }

    /// The ids of the matches.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.all.iter().map(|(id, _)| *id).collect()
    }

    /// The ids of the matches as an expression: a filter for searches in the same index, or the
    /// audience of a [report](keyloom_bitmaps::InvertedIndex::report).
    pub fn filter(&self) -> BitmapExpr {
        self.index.records().of_sorted_ids(self.all.iter().map(|(id, _)| *id))
    }

    /// The same matches, with `function` applied to each score.
    #[must_use]
    pub fn map_scores(mut self, function: impl Fn(f64) -> f64) -> Self {
        self.all.iter_mut().for_each(|(_, score)| *score = function(*score));
        self
    }

    /// The records that are in both sets, with the sums of their scores.
    ///
    /// # Errors
    /// [`DocumentError::OtherIndex`].
    pub fn and(&self, other: &Self) -> Result<Self> {
        self.merged(other, |a, b| Some(a? + b?))
    }

    /// The records that are in at least one of the sets, with the sums of their scores.
    ///
    /// # Errors
    /// [`DocumentError::OtherIndex`].
    pub fn or(&self, other: &Self) -> Result<Self> {
        self.merged(other, |a, b| Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)))
    }

    /// The records of this set that are not in `other`.
    ///
    /// # Errors
    /// [`DocumentError::OtherIndex`].
    pub fn without(&self, other: &Self) -> Result<Self> {
        self.merged(other, |a, b| if b.is_none() { a } else { None })
    }

    /// The same records with the scores of `values`, or with `missing` if `values` does not have
    /// the record. Use it with [values of children](crate::Relation::values_of_children) to sort by
    /// a field of the children.
    ///
    /// # Errors
    /// [`DocumentError::OtherIndex`].
    pub fn scored_by(&self, values: &Self, missing: f64) -> Result<Self> {
        self.merged(values, |a, b| a.map(|_| b.unwrap_or(missing)))
    }

    fn merged(
        &self,
        other: &Self,
        combine: impl Fn(Option<f64>, Option<f64>) -> Option<f64>,
    ) -> Result<Self> {
        self.refuse_other(&other.index)?;
        let (mut left, mut right) = (self.all.iter().peekable(), other.all.iter().peekable());
        let mut all = Vec::new();
        while let Some(id) = left.peek().into_iter().chain(right.peek()).map(|(id, _)| *id).min() {
            let a = left.next_if(|(of, _)| *of == id).map(|(_, score)| *score);
            let b = right.next_if(|(of, _)| *of == id).map(|(_, score)| *score);
            all.extend(combine(a, b).map(|score| (id, score)));
        }
        Ok(Self::new(&self.index, all))
    }

    /// # Errors
    /// [`DocumentError::OtherIndex`] if the matches are not from `index`.
    pub(crate) fn refuse_other(&self, index: &TextIndex<K, V>) -> Result<()> {
        if self.index.space() == index.space() {
            return Ok(());
        }
        let [given, expected] = [&self.index, index].map(|index| index.space().named());
        Err(DocumentError::OtherIndex { given, expected }.into())
    }

    /// The records with the greatest scores: at most `limit` of them, after the first `offset`.
    /// Records with equal scores are in the order of their ids.
    ///
    /// In one snapshot, pages at consecutive offsets return each match once. Costs one get per
    /// returned record, in one round trip, or nothing if the keys are the ids.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a score is not a number; any error of the store.
    pub fn top(&self, reader: &impl Reader, offset: usize, limit: usize) -> Result<Vec<Hit<K>>> {
        if let Some((id, score)) = self.all.iter().find(|(_, score)| score.is_nan()) {
            return Err(Error::InvalidArgument {
                what: "the score of a match",
                value: format!("{score} of the id {id}"),
                why: "matches are ordered by numbers; let the function of the scores return one",
            });
        }
        let order = |a: &(u64, f64), b: &(u64, f64)| match b.1.total_cmp(&a.1) {
            Ordering::Equal => a.0.cmp(&b.0),
            other => other,
        };
        let (mut best, end) = (self.all.clone(), offset.saturating_add(limit));
        if end < best.len() {
            best.select_nth_unstable_by(end, order);
            best.truncate(end);
        }
        best.sort_unstable_by(order);
        let best = best.get(offset..).unwrap_or_default();
        let keys = match best.is_empty() {
            true => Vec::new(),
            false => self.index.records().keys(reader, best.iter().map(|(id, _)| *id))?,
        };
        let hits = best.iter().zip(keys);
        Ok(hits.filter_map(|((_, score), key)| Some(Hit { key: key?, score: *score })).collect())
    }

    /// The keys of all matches, by ascending id. Costs one get per match, in one round trip, or
    /// nothing if the keys are the ids.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn keys(&self, reader: &impl Reader) -> Result<Vec<K>> {
        if self.all.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.index.records().keys(reader, self.all.iter().map(|(id, _)| *id))?;
        Ok(keys.into_iter().flatten().collect())
    }
}
