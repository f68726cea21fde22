//! Errors of paths and patterns.

use keyloom::Error;

/// An error of a path, of a function on paths, or of a pattern. It converts to a [`keyloom::Error`]
/// as [`Error::Other`]; get it back with [`Error::downcast_ref`].
///
/// ```
/// use keyloom_trees::path::{LabelPath, PathError};
/// let path: LabelPath = "Top.Science".parse()?;
/// let error = keyloom::Error::from(path.subltree(2, 3).unwrap_err());
/// assert!(matches!(error.downcast_ref(), Some(PathError::InvalidPositions { labels: 2, .. })));
/// assert!(error.to_string().contains("begin inside the path (0 to 2 - 1)"));
/// # Ok::<(), PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A text does not follow the grammar of its notation. Fix the text at the given character.
    #[error("the {notation} {text:?} is invalid at character {position}: {problem}")]
    Syntax {
        /// The notation of the text: `path`, `lquery` or `ltxtquery`.
        notation: &'static str,
        /// The beginning of the text.
        text: String,
        /// The number of the character, counted from 1. At the end of the text, this is the number
        /// of characters plus one.
        position: usize,
        /// The problem at this position.
        problem: SyntaxProblem,
    },
    /// A path would exceed the maximum number of labels. Shorten the path.
    #[error("the path has {labels} labels, the limit is {limit}; make it shorter")]
    TooManyLabels {
        /// The number of labels that the path would have.
        labels: usize,
        /// The maximum number of labels.
        limit: usize,
    },
    /// A label is too long. Shorten the label.
    #[error("the label {label:?} has {chars} characters, the limit is {limit}; shorten it")]
    LabelTooLong {
        /// The beginning of the label.
        label: String,
        /// The length of the label, in characters.
        chars: usize,
        /// The maximum number of characters.
        limit: usize,
    },
    /// A requested part of a path does not begin inside the path, or ends before it begins.
    #[error(
        "the path {path} has {labels} labels, a part of it from {start} to {end} does not exist: begin inside the path (0 to {labels} - 1) and do not end before the beginning"
    )]
    InvalidPositions {
        /// The path.
        path: String,
        /// The number of labels in the path.
        labels: usize,
        /// The position of the first requested label, counted from 0.
        start: i64,
        /// The position after the last requested label.
        end: i64,
    },
    /// A regular expression cannot be compiled.
    #[error("the regular expression {expression:?} cannot be used: {why}")]
    Regex {
        /// The beginning of the expression.
        expression: String,
        /// The reason.
        why: String,
    },
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::other(error)
    }
}

/// The problem at a character of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxProblem {
    /// This character is not allowed here. A label with characters other than letters, digits, `_`
    /// and `-` is written in double quotes.
    #[error(
        "{0:?} is not allowed there; a label of other characters than letters, digits, _ and - needs double quotes"
    )]
    Unexpected(char),
    /// The text ends too early.
    #[error("it ends too early")]
    UnexpectedEnd,
    /// A label is missing. An empty label is written `""`.
    #[error("a label is missing; an empty one is written \"\"")]
    EmptyLabel,
    /// A label is too long.
    #[error("the label before has {chars} characters, the limit is {limit}; shorten it")]
    LabelTooLong {
        /// The length of the label, in characters.
        chars: usize,
        /// The maximum number of characters.
        limit: usize,
    },
    /// There are too many labels in a path, or too many items in a pattern.
    #[error(
        "there are more than {limit} labels or items; make the path shorter, or split the pattern and use any_of"
    )]
    TooManyItems {
        /// The maximum number.
        limit: usize,
    },
    /// Too many items of a pattern match a variable number of labels. Matching tracks a position
    /// for each such item.
    #[error(
        "there are more than {limit} items with a range of repetitions; join neighbours (a{{0,1}}.a{{0,1}} is a{{0,2}}), or split the pattern and use any_of"
    )]
    TooManyRanges {
        /// The maximum number of such items.
        limit: usize,
    },
    /// A number of repetitions is larger than the maximum length of a path.
    #[error(
        "the number of repetitions is above the limit of {limit}; write {{n,}} without an upper number"
    )]
    CountTooLarge {
        /// The maximum number.
        limit: usize,
    },
    /// The minimum number of repetitions is larger than the maximum.
    #[error("the lower bound {low} is above the upper bound {high}")]
    LowAboveHigh {
        /// The minimum.
        low: usize,
        /// The maximum.
        high: usize,
    },
    /// A backslash in double quotes does not begin a valid escape.
    #[error(
        "a backslash must be followed by another one, a double quote, 0, or u{{..}} with a code point"
    )]
    BadEscape,
    /// Parentheses and negations are nested too deeply.
    #[error("parentheses and negations are nested deeper than {limit}; remove unnecessary ones")]
    NestedTooDeep {
        /// The maximum depth.
        limit: usize,
    },
}
