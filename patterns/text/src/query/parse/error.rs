//! Errors of the parser, with their position in the text.

use std::fmt::{self, Display, Formatter};

use super::refused::ClauseKind;
use crate::query::QueryError;

/// The maximum number of characters that are shown before and after the place of an error.
const SHOWN_CHARS: usize = 60;

/// Why a text is not a valid query, and where. In a [`keyloom::Error`], get it with
/// [`downcast_ref`](keyloom::Error::downcast_ref).
///
/// [`Display`] prints the line of the error with a caret under its place:
///
/// ```
/// use keyloom_text::QueryParser;
/// let error = QueryParser::new(["body"]).parse("alice AND )").unwrap_err();
/// let shown = "\
/// line 1, column 11: found `)`, expected a clause
///   alice AND )
///             ^";
/// assert_eq!(error.to_string(), shown);
/// assert_eq!(error.offset(), 10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParseError {
    offset: usize,
    line: usize,
    column: usize,
    kind: ParseErrorKind,
    /// The line of the error, or the part of the line around the error.
    shown: String,
    /// The number of characters in `shown` before the place.
    caret: usize,
}

/// The reason for a [`ParseError`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text does not follow the grammar.
    #[error("found {found}, expected {expected}")]
    Syntax {
        /// The text at the place, in backticks, or `the end of the query`.
        found: String,
        /// The syntax that the grammar allows at this place.
        expected: String,
    },
    /// The parser does not [allow](crate::QueryParser::fields) this field.
    #[error("there is no field {field:?}; the fields are {known}")]
    UnknownField {
        /// The name in the query.
        field: String,
        /// The known fields.
        known: String,
    },
    /// The parser [refuses](crate::QueryParser::refuse) clauses of this kind.
    #[error("the clause {clause} is refused: {kind} are not allowed here; use terms or prefixes")]
    RefusedClause {
        /// The kind.
        kind: ClauseKind,
        /// The beginning of the clause.
        clause: String,
    },
    /// The query does not pass [`Query::check`](crate::Query::check).
    #[error(transparent)]
    Refused(#[from] QueryError),
}

impl ParseError {
    pub(super) fn new(text: &str, offset: usize, kind: impl Into<ParseErrorKind>) -> Self {
        let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
        let (line, column) = place(text, offset);
        let of_line = before.rsplit('\n').next().unwrap_or_default();
        let skipped = (column - 1).saturating_sub(SHOWN_CHARS);
        let rest = after.lines().next().unwrap_or_default();
        let marks = |is_cut: bool| if is_cut { "…" } else { "" };
        let near = of_line.chars().skip(skipped).chain(rest.chars().take(SHOWN_CHARS));
        // A tab or another control character would move the caret.
        let near: String = near.map(|c| if c.is_control() { ' ' } else { c }).collect();
        let is_long = rest.chars().nth(SHOWN_CHARS).is_some();
        Self {
            offset,
            line,
            column,
            kind: kind.into(),
            shown: format!("{}{near}{}", marks(skipped > 0), marks(is_long)),
            caret: column - 1 - skipped + usize::from(skipped > 0),
        }
    }

    /// The number of bytes before the place of the error.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of the line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The number of the character in its line, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The reason for the error.
    pub fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }
}

/// The line and the column of an offset, both from 1.
pub(super) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let of_line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, of_line.chars().count() + 1)
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { line, column, kind, shown, caret, .. } = self;
        writeln!(f, "line {line}, column {column}: {kind}")?;
        writeln!(f, "  {shown}")?;
        write!(f, "  {:caret$}^", "")
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for keyloom::Error {
    fn from(error: ParseError) -> Self {
        Self::other(error)
    }
}
