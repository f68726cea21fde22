//! Texts of users in error messages.

use std::fmt::Display;

/// The maximum number of characters that an error shows of a query, a pattern or a word.
const SHOWN_CHARS: usize = 80;

/// The beginning of a text, for an error. The depth of a query must have been checked.
pub(crate) fn shown(text: impl Display) -> String {
    text.to_string().chars().take(SHOWN_CHARS).collect()
}
