//! Errors of queries.

/// Why a query cannot be evaluated. In a [`keyloom::Error`], get it with
/// [`downcast_ref`](keyloom::Error::downcast_ref).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A boost or a constant score is negative or not finite.
    #[error("the query {query} has the score {score}; choose a finite number of at least 0")]
    Score {
        /// The beginning of the query.
        query: String,
        /// The score.
        score: f32,
    },
    /// A combined query without fields.
    #[error("the query {query} has no fields; give at least one")]
    NoFields {
        /// The beginning of the query.
        query: String,
    },
    /// The weight of a field is not finite, or not greater than 0.
    #[error("the field {field} has the weight {weight}; choose a finite number greater than 0")]
    FieldWeight {
        /// The beginning of the name.
        field: String,
        /// The weight.
        weight: f32,
    },
    /// The product of the boosts of nested queries exceeds the range of an [`f32`].
    #[error(
        "the boosts of the query {query} and of those around it have the product {product:e}, the limit is 3.4e38; choose smaller boosts"
    )]
    Boosts {
        /// The beginning of the query.
        query: String,
        /// The product.
        product: f64,
    },
    /// The distance of a fuzzy term is greater than 2.
    #[error(
        "the query {query} has the distance {distance}, the limit is 2; choose 0 to 2, or n-grams"
    )]
    Distance {
        /// The beginning of the query.
        query: String,
        /// The distance.
        distance: u8,
    },
    /// Queries are nested too deeply.
    #[error("the query is nested more than {limit} levels deep; combine queries in fewer levels")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// A near-query has too few spans.
    #[error("the query {query} has {count} spans; give at least {least}")]
    TooFewSpans {
        /// The beginning of the query.
        query: String,
        /// The number of spans.
        count: usize,
        /// The minimum number of spans.
        least: usize,
    },
    /// The automata of a query have more states than [`max_states`](crate::Search::max_states)
    /// allows.
    #[error(
        "the automata of the query have more than {limit} states with that of {pattern}; use fewer or simpler patterns, or raise max_states"
    )]
    TooManyStates {
        /// The beginning of the pattern that exceeds the limit.
        pattern: String,
        /// The maximum number of states.
        limit: usize,
    },
    /// A pattern cannot be compiled.
    #[error("the pattern {pattern:?} cannot be used: {why}")]
    Pattern {
        /// The beginning of the pattern.
        pattern: String,
        /// The reason, and a remedy.
        why: String,
    },
}

impl From<QueryError> for keyloom::Error {
    fn from(error: QueryError) -> Self {
        Self::other(error)
    }
}
