//! Spans that are close to each other.

use super::clauses::Parsing;
use super::error::ParseError;
use crate::query::{Near, Spans};

impl Parsing<'_> {
    /// Parses `NEAR(…)` or `ORDERED(…)` with its slop, if it comes next.
    pub(super) fn near(&mut self) -> Result<Option<Near>, ParseError> {
        let at = self.scan.at();
        let spans = match () {
            () if self.scan.eat("NEAR(") => Near::unordered(self.spans(at)?),
            () if self.scan.eat("ORDERED(") => Near::ordered(self.spans(at)?),
            () => return Ok(None),
        };
        match spans.spans.len() {
            0 | 1 => Err(self.scan.expected_at(at, "at least two words or phrases in it")),
            _ => Ok(Some(spans.slop(self.slop()?))),
        }
    }

    /// The spans of a list that began at `start`, and its closing parenthesis.
    fn spans(&mut self, start: usize) -> Result<Vec<Spans>, ParseError> {
        self.enter(start)?;
        let mut spans = Vec::new();
        loop {
            self.scan.skip_space();
            if self.scan.eat(")") {
                self.leave();
                return Ok(spans);
            }
            if self.scan.peek().is_none() {
                return Err(self.scan.expected("a word, a phrase or `)`"));
            }
            spans.push(self.span()?);
        }
    }

    fn span(&mut self) -> Result<Spans, ParseError> {
        let at = self.scan.at();
        let expected = "a word, a phrase, `ANY(…)`, `NEAR(…)` or `ORDERED(…)`";
        if self.scan.peek() == Some('"') {
            return Ok(Spans::Phrase(self.scan.quoted()?));
        }
        if self.scan.eat("ANY(") {
            let spans = self.spans(at)?;
            return match spans.is_empty() {
                true => Err(self.scan.expected_at(at, "at least one word or phrase in it")),
                false => Ok(Spans::AnyOf(spans)),
            };
        }
        if let Some(near) = self.near()? {
            return Ok(near.into());
        }
        if !self.scan.is_word() {
            return Err(self.scan.expected(expected));
        }
        let word = self.scan.word()?;
        if word.has_wildcards {
            return Err(self.scan.expected_at(at, "a word without `*` and `?`"));
        }
        match self.scan.peek() {
            Some(c) if !c.is_whitespace() && !")\"".contains(c) => {
                Err(self.scan.expected("the end of the word"))
            }
            _ => Ok(Spans::Term(word.text)),
        }
    }
}
