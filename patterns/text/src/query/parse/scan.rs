//! The characters of a query: words, quoted texts, numbers.

use std::str::FromStr;

use super::error::{ParseError, ParseErrorKind, place};

/// The maximum number of characters of a word in an error.
const SHOWN_CHARS: usize = 20;

/// A text, and the position up to which it has been read.
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

/// A word without its backslashes.
pub(super) struct Word {
    pub(super) text: String,
    /// The word as a pattern: literal `*`, `?` and `\` have a backslash.
    pub(super) pattern: String,
    pub(super) has_wildcards: bool,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The number of bytes that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Continues at an earlier place.
    pub(super) fn reset(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += next.map_or(0, char::len_utf8);
        next
    }

    /// Skips `text` if it comes next. Returns whether `text` came next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    pub(super) fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Whether an operator comes next, as a separate word.
    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        let after = self.rest().strip_prefix(keyword).map(|after| after.chars().next());
        after.is_some_and(|next| next.is_none_or(|c| c.is_whitespace() || "()[{\"".contains(c)))
    }

    pub(super) fn eat_keyword(&mut self, keyword: &str) -> bool {
        self.is_keyword(keyword) && self.eat(keyword)
    }

    /// Whether a word comes next. A word does not begin with the character of a sign or suffix.
    pub(super) fn is_word(&self) -> bool {
        let begins = |c: char| !c.is_whitespace() && !"+-#|&!(){}[]^\"~:/<>=,".contains(c);
        self.peek().is_some_and(begins)
    }

    /// Reads a word, up to a space, parenthesis, bracket, quotation mark, `^`, `~` or `:`.
    pub(super) fn word(&mut self) -> Result<Word, ParseError> {
        self.word_until(|c| c.is_whitespace() || "(){}[]^\"~:".contains(c))
    }

    /// Reads a word, up to a character that `ends` it. A backslash removes the special meaning of
    /// the next character.
    pub(super) fn word_until(&mut self, ends: impl Fn(char) -> bool) -> Result<Word, ParseError> {
        let mut word = Word { text: String::new(), pattern: String::new(), has_wildcards: false };
        while let Some(c) = self.peek().filter(|c| !ends(*c)) {
            self.next();
            let literal = if c == '\\' { self.escaped()? } else { c };
            word.text.push(literal);
            if c == '*' || c == '?' {
                word.has_wildcards = true;
            } else if matches!(literal, '*' | '?' | '\\') {
                word.pattern.push('\\');
            }
            word.pattern.push(literal);
        }
        Ok(word)
    }

    fn escaped(&mut self) -> Result<char, ParseError> {
        match self.next() {
            Some(c) => Ok(c),
            None => Err(self.expected("a character after `\\`")),
        }
    }

    /// Reads a text in quotation marks.
    pub(super) fn quoted(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        let mut text = String::new();
        self.next();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(c) => text.push(c),
                None => return Err(self.unclosed("`\"`", start)),
            }
        }
    }

    /// Reads a regular expression between slashes. Removes only the backslashes before slashes.
    pub(super) fn regex(&mut self) -> Result<String, ParseError> {
        let start = self.at;
        let mut pattern = String::new();
        self.next();
        loop {
            match self.next() {
                Some('/') => return Ok(pattern),
                Some('\\') => match self.escaped()? {
                    '/' => pattern.push('/'),
                    c => pattern.extend(['\\', c]),
                },
                Some(c) => pattern.push(c),
                None => return Err(self.unclosed("`/`", start)),
            }
        }
    }

    /// Reads decimal digits.
    pub(super) fn integer<N: FromStr>(&mut self, expected: &str) -> Result<N, ParseError> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| self.expected_at(start, expected))
    }

    /// Reads a boost or a score.
    pub(super) fn score(&mut self) -> Result<f32, ParseError> {
        let start = self.at;
        let mut before = 'e';
        let digits = self.take_while(|c| {
            let is_sign = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
            before = c;
            c.is_alphanumeric() || c == '.' || is_sign
        });
        let score = digits.parse().ok().filter(|score: &f32| score.is_finite() && *score >= 0.0);
        score.ok_or_else(|| self.expected_at(start, "a finite number of at least 0"))
    }

    /// An error at the next character.
    pub(super) fn expected(&self, expected: &str) -> ParseError {
        self.expected_at(self.at, expected)
    }

    pub(super) fn expected_at(&self, at: usize, expected: &str) -> ParseError {
        let (found, expected) = (self.found(at), expected.to_owned());
        self.error_at(at, ParseErrorKind::Syntax { found, expected })
    }

    pub(super) fn error_at(&self, at: usize, kind: impl Into<ParseErrorKind>) -> ParseError {
        ParseError::new(self.text, at, kind)
    }

    /// An error at the next character: `closing` is missing for the syntax that began at `start`.
    pub(super) fn unclosed(&self, closing: &str, start: usize) -> ParseError {
        let place = match place(self.text, start) {
            (1, column) => format!("column {column}"),
            (line, column) => format!("line {line}, column {column}"),
        };
        self.expected(&format!("{closing} for {} in {place}", self.found_char(start)))
    }

    fn found_char(&self, at: usize) -> String {
        let c = self.text.get(at..).and_then(|rest| rest.chars().next());
        match c {
            Some(c) if c.is_control() => format!("`{}`", c.escape_default()),
            Some(c) => format!("`{c}`"),
            None => "the end of the query".to_owned(),
        }
    }

    /// The word or character at a place.
    fn found(&self, at: usize) -> String {
        let rest = self.text.get(at..).unwrap_or_default();
        let word: String =
            rest.chars().take_while(|c| c.is_alphanumeric()).take(SHOWN_CHARS).collect();
        if word.is_empty() { self.found_char(at) } else { format!("`{word}`") }
    }
}
