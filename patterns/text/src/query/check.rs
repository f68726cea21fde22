//! Checks of a query that do not depend on an index.

use std::fmt::Display;

use super::error::QueryError;
use super::tree::{Near, Query, Spans};
use crate::shown::shown;

/// The maximum depth of a query. The depth is limited because functions that traverse a tree are
/// recursive.
pub(super) const MAX_DEPTH: usize = 100;

/// The maximum distance of a fuzzy term.
// As in Lucene. With each further edit, an automaton has several times as many states, and more
// unrelated terms match.
pub(super) const MAX_DISTANCE: u8 = 2;

impl Query {
    /// Checks everything that does not depend on an index. Every search calls this first. A query
    /// from the parser always passes.
    ///
    /// Cost: linear in the size of the tree, down to the maximum depth.
    ///
    /// # Errors
    /// * [`QueryError::TooDeep`] if the tree has more than 100 levels.
    /// * [`QueryError::Score`] if a boost or constant score is negative or not finite.
    /// * [`QueryError::NoFields`] if a [`Query::Combined`] has no fields.
    /// * [`QueryError::FieldWeight`] if the weight of a field of a [`Query::Combined`] is not
    ///   finite, or not greater than 0.
    /// * [`QueryError::Boosts`] if the product of nested boosts is too large for an [`f32`].
    /// * [`QueryError::Distance`] if the distance of a fuzzy term is more than 2.
    /// * [`QueryError::TooFewSpans`] if a [`Near`] has fewer than two spans, or a [`Spans::AnyOf`]
    ///   is empty.
    pub fn check(&self) -> Result<(), QueryError> {
        check(self, MAX_DEPTH, 1.0)
    }
}

/// Whether a query, including its spans, has more than `levels` levels.
pub(super) fn is_too_deep(query: &Query, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    match query {
        Query::Boost { query, .. } | Query::ConstantScore { query, .. } => {
            is_too_deep(query, levels)
        }
        Query::Boolean(boolean) => boolean.clauses().any(|clause| is_too_deep(clause, levels)),
        Query::Near { near, .. } => are_too_deep(&near.spans, levels),
        _ => false,
    }
}

pub(super) fn are_too_deep(spans: &[Spans], levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return true };
    spans.iter().any(|inner| match inner {
        Spans::Near(near) => are_too_deep(&near.spans, levels),
        Spans::AnyOf(spans) => are_too_deep(spans, levels),
        Spans::Term(_) | Spans::Phrase(_) => false,
    })
}

/// Checks a part whose scores are multiplied by `boost`.
fn check(query: &Query, levels: usize, boost: f64) -> Result<(), QueryError> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(QueryError::TooDeep { limit: MAX_DEPTH });
    };
    match query {
        Query::Boost { query: inner, factor: score }
        | Query::ConstantScore { query: inner, score } => {
            let product = boost * f64::from(*score);
            // Scores inside a constant score are not used.
            let is_constant = matches!(query, Query::ConstantScore { .. });
            let inside = if is_constant || !product.is_finite() { 0.0 } else { product };
            check(inner, levels, inside)?;
            if !score.is_finite() || *score < 0.0 {
                return Err(QueryError::Score { query: shown(inner), score: *score });
            }
            match product <= f64::from(f32::MAX) {
                true => Ok(()),
                false => Err(QueryError::Boosts { query: shown(query), product }),
            }
        }
        Query::Fuzzy { distance, .. } if *distance > MAX_DISTANCE => {
            Err(QueryError::Distance { query: shown(query), distance: *distance })
        }
        Query::Combined { fields, .. } => check_fields(query, fields),
        Query::Boolean(boolean) => {
            boolean.clauses().try_for_each(|clause| check(clause, levels, boost))
        }
        Query::Near { near, .. } => check_near(near, levels),
        _ => Ok(()),
    }
}

fn check_fields(query: &Query, fields: &[(String, f32)]) -> Result<(), QueryError> {
    if fields.is_empty() {
        return Err(QueryError::NoFields { query: shown(query) });
    }
    let wrong = fields.iter().find(|(_, weight)| !weight.is_finite() || *weight <= 0.0);
    wrong.map_or(Ok(()), |(field, weight)| {
        Err(QueryError::FieldWeight { field: shown(field), weight: *weight })
    })
}

fn check_near(near: &Near, levels: usize) -> Result<(), QueryError> {
    check_list(near, &near.spans, 2, levels)
}

fn check_list(
    list: &impl Display,
    spans: &[Spans],
    least: usize,
    levels: usize,
) -> Result<(), QueryError> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(QueryError::TooDeep { limit: MAX_DEPTH });
    };
    for inner in spans {
        match inner {
            Spans::Near(near) => check_near(near, levels)?,
            Spans::AnyOf(spans) => check_list(inner, spans, 1, levels)?,
            Spans::Term(_) | Spans::Phrase(_) => {}
        }
    }
    match spans.len() >= least {
        true => Ok(()),
        false => Err(QueryError::TooFewSpans { query: shown(list), count: spans.len(), least }),
    }
}
