//! The ranking function BM25.

use keyloom::{Error, Result};

use crate::index::FieldStatistics;

/// The parameters of [BM25](https://en.wikipedia.org/wiki/Okapi_BM25).
///
/// The score of a document is the sum over the terms of the query of `idf · f · (k1 + 1) / (f + k1
/// · (1 - b + b · l / a))`, where `f` is the frequency of the term in the field, and `l` is the
/// length of the field. `a` is the average length of the field in the documents that have the
/// field. The length is the number of positions with a token: synonyms and n-grams of one word
/// count once, as in Lucene. `idf` is `ln(1 + (n - d + 0.5) / (d + 0.5))`, where `d` of the `n`
/// documents with the field contain the term. All of these statistics are exact.
///
/// ```
/// use keyloom_text::Bm25;
/// assert_eq!(Bm25::default(), Bm25 { k1: 1.2, b: 0.75 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// How slowly the score saturates with the frequency, at least 0: 1.2 by default.
    pub k1: f64,
    /// How much a long field lowers the score, from 0 to 1: 0.75 by default.
    pub b: f64,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

impl Bm25 {
    /// Returns an error for parameters with which scores would be negative or not finite.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn check(&self) -> Result<()> {
        let Self { k1, b } = *self;
        // With a greater `k1`, products with frequencies can be infinite.
        match (0.0..=f64::from(f32::MAX)).contains(&k1) && (0.0..=1.0).contains(&b) {
            true => Ok(()),
            false => Err(Error::InvalidArgument {
                what: "the ranking function",
                value: format!("BM25 with k1 = {k1}, b = {b}"),
                why: "k1 must be finite and at least 0, and b from 0 to 1",
            }),
        }
    }
}

/// BM25 of one term, or of one phrase, of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Weight {
    /// The inverse document frequency, times the boosts.
    pub(crate) factor: f64,
    pub(crate) k1: f64,
    /// `k1 · (1 - b)`.
    fixed: f64,
    /// `k1 · b / average`.
    per_token: f64,
    /// The factor of frequencies and lengths in bounds: the weight of a field of a combined query,
    /// 1 for other fields.
    scale: f64,
}

impl Weight {
    pub(crate) fn new(bm25: Bm25, field: FieldStatistics, factor: f64) -> Self {
        Self::with_average(bm25, field.average(), factor)
    }

    pub(crate) fn with_average(bm25: Bm25, average: f64, factor: f64) -> Self {
        let Bm25 { k1, b } = bm25;
        let average = average.max(f64::MIN_POSITIVE);
        Self { factor, k1, fixed: k1 * (1.0 - b), per_token: k1 * b / average, scale: 1.0 }
    }

    /// The same weight, for the bounds of a field whose frequencies and lengths are multiplied by
    /// `weight`.
    pub(crate) fn of_field(self, weight: f64) -> Self {
        Self { scale: weight, ..self }
    }

    /// The part of the score that depends on the document.
    #[inline]
    pub(crate) fn saturation(&self, frequency: f64, length: f64) -> f64 {
        let norm = self.fixed + self.per_token * length;
        frequency * (self.k1 + 1.0) / (frequency + norm)
    }

    #[inline]
    pub(crate) fn score(&self, frequency: f64, length: u32) -> f64 {
        self.score_of(frequency, f64::from(length))
    }

    /// The score for a length that need not be an integer.
    #[inline]
    pub(crate) fn score_of(&self, frequency: f64, length: f64) -> f64 {
        self.factor * self.saturation(frequency, length)
    }

    /// An upper bound of the score for any frequency.
    pub(crate) fn limit(&self) -> f64 {
        self.factor * (self.k1 + 1.0) * ROUNDING
    }

    /// A bound of the scores of the postings that are bounded by these pairs of frequency and
    /// length.
    pub(crate) fn bound(&self, bounds: impl Iterator<Item = (u32, u32)>) -> f64 {
        // Frequency and length are scaled before the formula, as in a score. With another order of
        // multiplications, a search for a common word in 12,000 texts read 103 keys instead of
        // fewer than 90.
        let scaled = |number: u32| self.scale * f64::from(number);
        let of_each = bounds.map(|(freq, length)| self.score_of(scaled(freq), scaled(length)));
        // The bound is computed in the same way as a score, so the best score of a block can equal
        // it exactly. No allowance for rounding is added, so that blocks that can only tie with the
        // results are skipped.
        of_each.fold(0.0, f64::max)
    }
}

/// A factor that covers the rounding errors of sums whose terms are added in another order.
pub(crate) const ROUNDING: f64 = 1.0 + 1e-12;
