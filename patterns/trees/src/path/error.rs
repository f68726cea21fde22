//! What paths and patterns refuse.

use std::fmt;

use keyloom::Error;

/// What a path, a function on paths or a pattern refuses. As a [`keyloom::Error`] it comes as an
/// [`Error::Other`]; get it back with [`Error::downcast_ref`].
///
/// ```
/// use keyloom_trees::path::{LabelPath, PathError};
/// let path: LabelPath = "Top.Science".parse()?;
/// let error = keyloom::Error::from(path.subltree(2, 3).unwrap_err());
/// assert!(matches!(error.downcast_ref(), Some(PathError::InvalidPositions { labels: 2, .. })));
/// assert!(error.to_string().contains("begin inside the path (0 to 2 - 1) and do not end before that"));
/// # Ok::<(), PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A text is not what it should be. Mend it at the character that is named.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// A path would have more labels than a path may have. Make it shorter.
    #[error("the path has {labels} labels, the limit is {limit}; make it shorter")]
    TooManyLabels {
        /// How many it would have.
        labels: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A label is longer than a label may be. Shorten it.
    #[error("the label {label:?} has {chars} characters, the limit is {limit}; shorten it")]
    LabelTooLong {
        /// The beginning of the label.
        label: String,
        /// How many characters it has.
        chars: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A part of a path was asked for that does not begin inside it, or ends before it begins.
    #[error(
        "the path {path} has {labels} labels, a part of it from {start} to {end} cannot be taken: begin inside the path (0 to {labels} - 1) and do not end before that"
    )]
    InvalidPositions {
        /// The path.
        path: String,
        /// How many labels it has.
        labels: usize,
        /// The first label asked for, from 0.
        start: i64,
        /// The label behind the last one asked for.
        end: i64,
    },
    /// A regular expression cannot be compiled.
    #[error("the regular expression {expression:?} cannot be used: {why}")]
    Regex {
        /// The beginning of the expression.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::other(error)
    }
}

/// Which notation a text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notation {
    /// A path: [`LabelPath`](super::LabelPath).
    Ltree,
    /// A pattern: [`Lquery`](super::Lquery).
    Lquery,
    /// A condition on words: [`Ltxtquery`](super::Ltxtquery).
    Ltxtquery,
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ltree => "path",
            Self::Lquery => "lquery",
            Self::Ltxtquery => "ltxtquery",
        })
    }
}

/// Where a text breaks the rules of its notation, and which one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {notation} {text:?} breaks off at character {position}: {problem}")]
pub struct SyntaxError {
    /// What the text should be.
    pub notation: Notation,
    /// The beginning of the text.
    pub text: String,
    /// The character, from 1; one more than there are at the end of the text.
    pub position: usize,
    /// What is wrong there.
    pub problem: SyntaxProblem,
}

/// What is wrong with a text at one of its characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxProblem {
    /// This character cannot stand here. A label of other characters than letters, digits, `_` and
    /// `-` is written in double quotes.
    #[error(
        "{0:?} cannot stand there; a label of other characters than letters, digits, _ and - needs double quotes"
    )]
    Unexpected(char),
    /// The text ends where it should go on.
    #[error("it ends where it should go on")]
    UnexpectedEnd,
    /// There is no label where one should be. An empty label is written `""`.
    #[error("a label is missing; an empty one is written \"\"")]
    EmptyLabel,
    /// A label is longer than a label may be.
    #[error("the label before has {chars} characters, the limit is {limit}; shorten it")]
    LabelTooLong {
        /// How many characters it has.
        chars: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There are more labels, or items of a pattern, than there may be.
    #[error(
        "there are more than {limit} labels or items; make the path shorter, or split the pattern and use any_of"
    )]
    TooManyItems {
        /// How many there may be.
        limit: usize,
    },
    /// More items of a pattern may match different numbers of labels than can be kept track of.
    #[error(
        "there are more than {limit} items with a range of repetitions; join neighbours (a{{0,1}}.a{{0,1}} is a{{0,2}}), or split the pattern and use any_of"
    )]
    TooManyRanges {
        /// How many there may be.
        limit: usize,
    },
    /// A number of repetitions is larger than a path is long.
    #[error(
        "the number of repetitions is above the limit of {limit}; write {{n,}} without an upper number"
    )]
    CountTooLarge {
        /// The largest one.
        limit: usize,
    },
    /// The least number of repetitions is larger than the largest one.
    #[error("at least {low} and at most {high} cannot be")]
    LowAboveHigh {
        /// The least number.
        low: usize,
        /// The largest one.
        high: usize,
    },
    /// A backslash in double quotes is followed by something that it has no meaning for.
    #[error(
        "a backslash stands before another one, a double quote, 0, or u{{..}} with a code point"
    )]
    BadEscape,
    /// Parentheses and negations are nested deeper than they may be.
    #[error("parentheses and negations are nested deeper than {limit}; leave out needless ones")]
    NestedTooDeep {
        /// How deep they may be.
        limit: usize,
    },
}
