//! Tokens: the terms of a text with their positions and offsets.

/// A term of a text, as an [`Analyzer`](super::Analyzer) passes it to a visitor.
///
/// The term is borrowed from a buffer that the next token overwrites. [`TokenBuf`] owns its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// The term.
    pub term: &'t str,
    /// The number of the token in the text, from 0. A removed token leaves a gap. Tokens at the
    /// same position are alternatives.
    pub position: u32,
    /// The offset of the first byte in the text.
    pub start: usize,
    /// The offset after the last byte in the text.
    pub end: usize,
}

/// A [`Token`] that owns its term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBuf {
    /// The term.
    pub term: String,
    /// The number of the token in the text: see [`Token::position`].
    pub position: u32,
    /// The offset of the first byte in the text.
    pub start: usize,
    /// The offset after the last byte in the text.
    pub end: usize,
}

impl TokenBuf {
    /// The same token, with a borrowed term.
    pub fn as_token(&self) -> Token<'_> {
        Token { term: &self.term, position: self.position, start: self.start, end: self.end }
    }
}

impl From<Token<'_>> for TokenBuf {
    fn from(token: Token<'_>) -> Self {
        let Token { term, position, start, end } = token;
        Self { term: term.to_owned(), position, start, end }
    }
}
