//! Orders of results other than by the score of the query.

use std::sync::Arc;

use keyloom::{Error, Order, Reader, Result};
use keyloom_kit::RecordKey;

use super::continuation::After;
use super::request::{Prepared, Request, Scores, Top};
use super::top_k::{ScoredDoc, TopK};
use crate::TextIndex;

/// The number of matches whose values are read together.
// A smaller batch adds round trips; a larger one takes more memory.
const BATCH: usize = 1_024;

/// A function of a score and an integer.
type IntegerFunction = dyn Fn(f64, Option<i64>) -> f64 + Send + Sync;

/// A function of a key and a score.
type KeyFunction<K> = dyn Fn(&K, f64) -> f64 + Send + Sync;

/// How results are ordered.
pub(crate) enum Ordering<K> {
    /// By the score of the query.
    Score,
    /// By an integer field; records without a value come last.
    Sorted(String, Order),
    /// By a function of the score and of an integer field.
    ByInteger(String, Arc<IntegerFunction>),
    /// By a function of the key and the score.
    ByKey(Arc<KeyFunction<K>>),
}

impl<K> Clone for Ordering<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Score => Self::Score,
            Self::Sorted(field, order) => Self::Sorted(field.clone(), *order),
            Self::ByInteger(field, function) => {
                Self::ByInteger(field.clone(), Arc::clone(function))
            }
            Self::ByKey(function) => Self::ByKey(Arc::clone(function)),
        }
    }
}

impl<K> Ordering<K> {
    /// A text that must be equal for a continuation. Functions cannot be compared.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Score => String::new(),
            Self::Sorted(field, order) => format!("by {field:?}, {order:?}"),
            Self::ByInteger(field, _) => format!("by a function of {field:?}"),
            Self::ByKey(_) => "by a function of the key".to_owned(),
        }
    }
}

/// A factor that decreases exponentially with the distance of a value from an origin, for
/// [`score_by`](crate::Search::score_by). The factor is `decay` at the distance `scale`, the square
/// of `decay` at twice this distance, and so on.
///
/// ```
/// use keyloom_text::Decay;
/// let recent = Decay { origin: 2_000, scale: 10.0, decay: 0.5 };
/// let factors = [2_000, 1_990, 2_020].map(|year| recent.factor(year));
/// assert_eq!(factors, [1.0, 0.5, 0.25]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decay {
    /// The value with the factor 1.
    pub origin: i64,
    /// The distance at which the factor is `decay`: finite and greater than 0.
    pub scale: f64,
    /// The factor at the distance `scale`, between 0 and 1.
    pub decay: f64,
}

impl Decay {
    /// The factor of a value. The factor is NaN if `scale` is not finite and greater than 0, or if
    /// `decay` is not between 0 and 1. A search returns an error for a score that is NaN.
    pub fn factor(&self, value: i64) -> f64 {
        let has_scale = self.scale.is_finite() && self.scale > 0.0;
        if !has_scale || !(0.0..=1.0).contains(&self.decay) {
            return f64::NAN;
        }
        self.decay.powf(self.origin.abs_diff(value) as f64 / self.scale)
    }
}

impl Request {
    /// The best documents in the order `ordering`.
    pub(crate) fn ordered<K: RecordKey, V>(
        &self,
        index: &TextIndex<K, V>,
        reader: &impl Reader,
        ordering: &Ordering<K>,
    ) -> Result<Top> {
        match ordering {
            Ordering::Score => self.top(index, reader),
            Ordering::Sorted(field, order) => {
                let prepared = self.prepare(index, reader)?;
                let (mut found, next) = self.sorted(index, reader, field, *order, &prepared)?;
                self.set_scores(index, reader, &prepared, &mut found)?;
                Ok((found, next))
            }
            Ordering::ByInteger(field, function) => {
                let integers = index.records().integers_of(field)?;
                self.top_by(index, reader, |matches, ids| {
                    let values = integers.get_many(reader, ids)?;
                    let all = matches.iter().zip(values);
                    all.map(|(found, value)| number(function(found.score, value))).collect()
                })
            }
            Ordering::ByKey(function) => self.top_by(index, reader, |matches, ids| {
                let keys = index.records().keys(reader, ids.iter().copied())?;
                let all = matches.iter().zip(keys);
                // A document without a record keeps its score. If such a document is among the
                // results, the search returns an error.
                let score = |found: &ScoredDoc, key: Option<K>| {
                    key.map_or(found.score, |key| function(&key, found.score))
                };
                all.map(|(found, key)| number(score(found, key))).collect()
            }),
        }
    }

    /// Like [`top`](Request::top), but by the scores that `score` computes for a batch of matches
    /// and their ids. Visits all matches.
    fn top_by<K: RecordKey, V>(
        &self,
        index: &TextIndex<K, V>,
        reader: &impl Reader,
        mut score: impl FnMut(&[ScoredDoc], &[u64]) -> Result<Vec<f64>>,
    ) -> Result<Top> {
        let prepared = self.prepare(index, reader)?;
        let mut top = TopK::new(self.limit, prepared.last());
        self.for_each_batch(index, reader, &prepared, Scores::Computed, |some, ids| {
            for (found, score) in some.iter().zip(score(some, ids)?) {
                top.push(ScoredDoc { score, ..*found });
            }
            Ok(())
        })?;
        self.page(index, top.into_hits(), false, &prepared)
    }

    /// The first documents by the values of a field, with ranks as scores. Every integer can be a
    /// value, so documents without a value are collected separately. They come last.
    fn sorted<K: RecordKey, V>(
        &self,
        index: &TextIndex<K, V>,
        reader: &impl Reader,
        field: &str,
        order: Order,
        prepared: &Prepared,
    ) -> Result<Top> {
        let integers = index.records().integers_of(field)?;
        let (mut with_value, mut missing) = match prepared.after {
            Some(After { last, is_missing: true }) => {
                (TopK::new(0, None), TopK::new(self.limit, Some(last)))
            }
            _ => (TopK::new(self.limit, prepared.last()), TopK::new(self.limit, None)),
        };
        // Scores are computed only for the results.
        self.for_each_batch(index, reader, prepared, Scores::LeftOut, |some, ids| {
            for (found, value) in some.iter().zip(integers.get_many(reader, ids)?) {
                match value {
                    Some(value) => {
                        let rank = if order == Order::Descending { value } else { !value };
                        with_value.push(ScoredDoc { score: of_rank(rank), ..*found });
                    }
                    None => missing.push(ScoredDoc { score: 0.0, ..*found }),
                }
            }
            Ok(())
        })?;
        let mut found = with_value.into_hits();
        let is_missing = found.len() < self.limit;
        let rest = self.limit.saturating_sub(found.len());
        found.extend(missing.into_hits().into_iter().take(rest));
        self.page(index, found, is_missing, prepared)
    }

    /// Visits all matches with their ids, in batches.
    pub(super) fn for_each_batch<K: RecordKey, V>(
        &self,
        index: &TextIndex<K, V>,
        reader: &impl Reader,
        prepared: &Prepared,
        scores: Scores,
        mut visit: impl FnMut(&[ScoredDoc], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut some = Vec::with_capacity(BATCH);
        let mut flush = |some: &mut Vec<ScoredDoc>| -> Result<()> {
            let ids: Vec<u64> = some.iter().map(|found| u64::from(found.doc)).collect();
            if !ids.is_empty() {
                visit(some, &ids)?;
            }
            some.clear();
            Ok(())
        };
        self.for_each(index, reader, prepared, scores, |found| {
            some.push(found);
            if some.len() == BATCH { flush(&mut some) } else { Ok(()) }
        })?;
        flush(&mut some)
    }

    /// Replaces ranks by scores of the query.
    fn set_scores<K: RecordKey, V>(
        &self,
        index: &TextIndex<K, V>,
        reader: &impl Reader,
        prepared: &Prepared,
        found: &mut [ScoredDoc],
    ) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let mut root = self.root(index, reader, prepared)?;
        let mut by_id: Vec<&mut ScoredDoc> = found.iter_mut().collect();
        by_id.sort_unstable_by_key(|found| found.doc);
        for found in by_id {
            found.score = match root.seek(found.doc)? == found.doc {
                true => root.score()?,
                false => 0.0,
            };
        }
        Ok(())
    }
}

/// The score that a function returned.
///
/// # Errors
/// [`Error::InvalidArgument`] if the score is NaN, which has no place in an order.
fn number(score: f64) -> Result<f64> {
    if score.is_nan() {
        return Err(Error::InvalidArgument {
            what: "the score",
            value: score.to_string(),
            why: "the function of the search must return numbers; check its divisors, and the scale of a decay",
        });
    }
    Ok(score)
}

/// Converts an integer to a float with the same order under [`f64::total_cmp`]. Unlike a cast, this
/// is exact.
pub(super) fn of_rank(rank: i64) -> f64 {
    let bits = rank ^ ((rank >> 63) as u64 >> 1) as i64;
    f64::from_bits(bits as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::of_rank;

    proptest! {
        #[test]
        fn ranks_are_ordered_like_their_integers(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(of_rank(a).total_cmp(&of_rank(b)), a.cmp(&b));
        }
    }
}
