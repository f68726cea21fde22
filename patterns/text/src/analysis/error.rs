//! Errors of declaring an analyzer.

/// Why an analyzer cannot be declared. In a [`keyloom::Error`] it is found by
/// [`downcast_ref`](keyloom::Error::downcast_ref).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The lengths of n-grams are not a range between 1 and the limit.
    #[error(
        "n-grams of {min} to {max} characters are not possible; choose 1 <= min <= max <= {limit}"
    )]
    GramLengths {
        /// The shortest length.
        min: usize,
        /// The longest length.
        max: usize,
        /// The greatest possible length.
        limit: usize,
    },
    /// A term would be cut to too few bytes, or to more than a key has room for.
    #[error("terms of at most {bytes} bytes are not possible; choose {least} to {most} bytes")]
    TermBytes {
        /// The chosen limit.
        bytes: usize,
        /// The least limit.
        least: usize,
        /// The greatest limit.
        most: usize,
    },
    /// A rule of synonyms has no terms, or too many of them.
    #[error(
        "the synonym {phrase:?} has {terms} terms after analysis; it needs 1 to {limit}, so change \
         the phrase or the filters before the synonyms"
    )]
    Synonym {
        /// The phrase.
        phrase: String,
        /// The number of its terms.
        terms: usize,
        /// The greatest number of terms.
        limit: usize,
    },
}

impl From<AnalysisError> for keyloom::Error {
    fn from(error: AnalysisError) -> Self {
        Self::other(error)
    }
}
