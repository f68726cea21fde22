//! N-grams and edge n-grams of a text.

use std::fmt;
use std::ops::RangeInclusive;

use super::error::AnalysisError;

/// The maximum length of an n-gram, in characters. At four bytes per character, this is about the
/// maximum length of a term.
const MAX_GRAM_CHARS: usize = 64;

/// The lengths of n-grams, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GramLengths {
    min: usize,
    max: usize,
}

impl GramLengths {
    pub(super) fn new(lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        let (min, max) = lengths.into_inner();
        match 1 <= min && min <= max && max <= MAX_GRAM_CHARS {
            true => Ok(Self { min, max }),
            false => Err(AnalysisError::GramLengths { min, max, limit: MAX_GRAM_CHARS }),
        }
    }
}

impl fmt::Display for GramLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max)
    }
}

/// Passes the prefixes of `text` with these lengths to `visit`, the shortest first.
pub(super) fn each_edge_gram<'t>(text: &'t str, lengths: GramLengths, visit: impl FnMut(&'t str)) {
    let ends = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]);
    // The end of the first n characters has the index n - 1 in `ends`.
    let ends = ends.skip(lengths.min - 1).take(lengths.max + 1 - lengths.min);
    ends.filter_map(|end| text.get(..end)).filter(|gram| !gram.is_empty()).for_each(visit);
}

/// Passes the substrings with these lengths to `visit`, with the number and offset of their first
/// character.
pub(super) fn each_gram<'t>(
    text: &'t str,
    lengths: GramLengths,
    mut visit: impl FnMut(usize, usize, &'t str),
) {
    for (number, (start, _)) in text.char_indices().enumerate() {
        let rest = text.get(start..).unwrap_or_default();
        each_edge_gram(rest, lengths, |gram| visit(number, start, gram));
    }
}
