//! Apostrophes: normalizes their forms, and removes the parts of words before or after them.

use std::borrow::Cow;

use super::token::Token;

/// The articles and other short words that French elides, as in Lucene's analyzer.
#[cfg(feature = "languages")]
pub(super) const FRENCH_ARTICLES: [&str; 13] =
    ["c", "d", "j", "jusqu", "l", "lorsqu", "m", "n", "puisqu", "qu", "quoiqu", "s", "t"];

/// The articles and other short words that Italian elides, as in Lucene's analyzer, and *quell'*.
#[cfg(feature = "languages")]
pub(super) const ITALIAN_ARTICLES: [&str; 22] = [
    "agl", "all", "c", "coll", "d", "dagl", "dall", "degl", "dell", "gl", "l", "m", "negl", "nell",
    "pell", "quell", "s", "sugl", "sull", "t", "un", "v",
];

/// Whether `c` is used as an apostrophe, except `'` itself: the quotation marks U+2018, U+2019 and
/// U+201B, the letters U+02BB and U+02BC, and the full-width form.
fn is_other_apostrophe(c: char) -> bool {
    matches!(c, '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{2BB}' | '\u{2BC}' | '\u{FF07}')
}

fn is_apostrophe(c: char) -> bool {
    c == '\'' || is_other_apostrophe(c)
}

/// Replaces any apostrophe by `'`.
pub(super) fn with_one_form(c: char) -> char {
    if is_other_apostrophe(c) { '\'' } else { c }
}

/// Replaces every apostrophe in the text by `'`. Copies the text only if it has another form of
/// apostrophe.
pub(super) fn normalized(text: &str) -> Cow<'_, str> {
    match !text.is_ascii() && text.contains(is_other_apostrophe) {
        true => text.chars().map(with_one_form).collect::<String>().into(),
        false => text.into(),
    }
}

/// Converts offsets in the [`normalized`] form of a text to offsets in the text. The offsets must
/// be passed in ascending order.
pub(super) struct Offsets<'t> {
    rest: std::str::Chars<'t>,
    normalized: usize,
    original: usize,
}

impl<'t> Offsets<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text.chars(), normalized: 0, original: 0 }
    }

    pub(super) fn original(&mut self, normalized: usize) -> usize {
        while self.normalized < normalized {
            let Some(c) = self.rest.next() else { break };
            self.normalized += with_one_form(c).len_utf8();
            self.original += c.len_utf8();
        }
        self.original
    }
}

/// The token without the article before its first apostrophe; `None` if there is no such article.
/// `articles` is sorted.
pub(super) fn without_article<'t>(
    token: Token<'t>,
    text: &str,
    articles: &[String],
) -> Option<Token<'t>> {
    let (article, term) = token.term.split_once(is_apostrophe)?;
    articles.binary_search_by(|other| other.as_str().cmp(article)).ok()?;
    let start = first_apostrophe(token, text).map_or(token.start, |(_, after)| after);
    (!term.is_empty()).then_some(Token { term, start, ..token })
}

/// The token without its first apostrophe and everything after it; `None` if nothing can be
/// removed.
pub(super) fn without_suffix<'t>(token: Token<'t>, text: &str) -> Option<Token<'t>> {
    let (term, _) = token.term.split_once(is_apostrophe)?;
    let end = first_apostrophe(token, text).map_or(token.end, |(at, _)| at);
    (!term.is_empty()).then_some(Token { term, end, ..token })
}

/// The offsets before and after the first apostrophe in the text of a token.
fn first_apostrophe(token: Token<'_>, text: &str) -> Option<(usize, usize)> {
    let word = text.get(token.start..token.end)?;
    let (at, c) = word.char_indices().find(|(_, c)| is_apostrophe(*c))?;
    // The text has no apostrophe if folding converted another character to an apostrophe. The
    // offsets of a token must enclose at least one character.
    let (before, after) = (token.start + at, token.start + at + c.len_utf8());
    (before > token.start && after < token.end).then_some((before, after))
}
