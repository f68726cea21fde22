//! Errors in the definition of an analyzer.

/// Why the definition of an analyzer is invalid. In a [`keyloom::Error`], get it with
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
        /// The maximum length.
        limit: usize,
    },
    /// The maximum length of terms is too small, or too large for a key.
    #[error("terms of at most {bytes} bytes are not possible; choose {least} to {most} bytes")]
    TermBytes {
        /// The chosen limit.
        bytes: usize,
        /// The smallest valid limit.
        least: usize,
        /// The largest valid limit.
        most: usize,
    },
    /// A phrase of a synonym rule has no terms or too many terms.
    #[error(
        "the synonym {phrase:?} has {terms} terms after analysis; it needs 1 to {limit}, so change \
         the phrase or the filters before the synonyms"
    )]
    Synonym {
        /// The phrase.
        phrase: String,
        /// The number of terms of the phrase.
        terms: usize,
        /// The maximum number of terms.
        limit: usize,
    },
}

impl From<AnalysisError> for keyloom::Error {
    fn from(error: AnalysisError) -> Self {
        Self::other(error)
    }
}
