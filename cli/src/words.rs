//! Words of a query: separated by spaces, or in quotes.

use keyloom::key::{Element, elements};

use crate::failure::{Failure, Result};
use crate::selection::one_key;

/// The first word of a text, up to a space or one of `ends`, and the rest. Quotes and parentheses
/// belong to a word, with the characters between them.
pub fn word<'t>(text: &'t str, ends: &[char]) -> (&'t str, &'t str) {
    let (mut is_quoted, mut is_escaped, mut depth) = (false, false, 0_usize);
    let end = text.find(|one: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match one {
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if depth == 0 && (one.is_whitespace() || ends.contains(&one)) => return true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// The text of a word: the word itself, or the text in its quotes.
pub fn unquoted(word: &str) -> Result<String> {
    if !word.starts_with('"') {
        return Ok(word.to_owned());
    }
    let parsed = one_key(word)?;
    match elements(&parsed).unwrap_or_default().as_slice() {
        [Element::Str(text)] => Ok(text.clone()),
        _ => Err(Failure::new(format!("{word} is not one text in quotes"))),
    }
}
