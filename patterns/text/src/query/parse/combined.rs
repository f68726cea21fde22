//! Words in several fields.

use super::clauses::Parsing;
use super::error::ParseError;
use crate::query::Query;

impl Parsing<'_> {
    /// Parses `COMBINED(…)` with its text, if it comes next.
    pub(super) fn combined(&mut self) -> Result<Option<Query>, ParseError> {
        let start = self.scan.at();
        if !self.scan.eat("COMBINED(") {
            return Ok(None);
        }
        let mut fields = Vec::new();
        loop {
            self.scan.skip_space();
            if self.scan.eat(")") {
                break;
            }
            if self.scan.peek().is_none() {
                return Err(self.scan.unclosed("`)`", start));
            }
            fields.push(self.weighted_field()?);
        }
        if fields.is_empty() {
            return Err(self.scan.expected_at(start, "at least one field in it"));
        }
        if !self.scan.eat(":") {
            return Err(self.scan.expected("`:` and a text after the fields"));
        }
        self.scan.skip_space();
        match self.scan.peek() {
            Some('"') => Ok(Some(Query::combined(fields, self.scan.quoted()?))),
            _ => Err(self.scan.expected("a text in quotation marks")),
        }
    }

    /// The name of a field, and its weight.
    fn weighted_field(&mut self) -> Result<(String, f32), ParseError> {
        let start = self.scan.at();
        let (name, has_wildcards) = match self.scan.peek() {
            Some('"') => (self.scan.quoted()?, false),
            _ if self.scan.is_word() => {
                let word = self.scan.word()?;
                (word.text, word.has_wildcards)
            }
            _ => return Err(self.scan.expected("a field or `)`")),
        };
        self.check_field(start, &name, has_wildcards)?;
        if !self.scan.eat("^") {
            return Ok((name, 1.0));
        }
        let at = self.scan.at();
        let weight = self.scan.score()?;
        match weight > 0.0 {
            true => Ok((name, weight)),
            false => Err(self.scan.expected_at(at, "a weight greater than 0")),
        }
    }
}
