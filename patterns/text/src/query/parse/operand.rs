//! Parts of a query that are not combinations: terms, phrases, patterns, ranges.

use std::ops::Bound;

use super::clauses::Parsing;
use super::error::{ParseError, ParseErrorKind};
use crate::query::Query;
use crate::query::check::MAX_DISTANCE;

/// The distance of a fuzzy term without a number, as in Lucene.
const DEFAULT_DISTANCE: u8 = 2;

impl Parsing<'_> {
    /// A group, term, phrase or pattern with its field and its score.
    pub(super) fn operand(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let query = match self.scan.eat("*:") {
            true if self.scan.eat("*") => Query::All,
            true => return Err(self.scan.expected("`*`, since `*:*` are all documents")),
            false => match self.combined()? {
                Some(query) => query,
                None => self.in_field(field)?,
            },
        };
        if !self.scan.eat("^") {
            return Ok(query);
        }
        match self.scan.eat("=") {
            true => Ok(query.constant_score(self.scan.score()?)),
            false => Ok(query.boost(self.scan.score()?)),
        }
    }

    /// A value, with its field if it has one.
    fn in_field(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        match self.field()? {
            Some(field) => self.value(Some(&field)),
            None => self.value(field),
        }
    }

    /// The name of a field and its colon, if they come next.
    fn field(&mut self) -> Result<Option<String>, ParseError> {
        let start = self.scan.at();
        let (name, has_wildcards) = match self.scan.peek() {
            Some('"') => (self.scan.quoted()?, false),
            _ if self.scan.is_word() => {
                let word = self.scan.word()?;
                (word.text, word.has_wildcards)
            }
            _ => return Ok(None),
        };
        if !self.scan.eat(":") {
            self.scan.reset(start);
            return Ok(None);
        }
        self.check_field(start, &name, has_wildcards)?;
        self.scan.skip_space();
        Ok(Some(name))
    }

    /// Returns an error if a field name is a pattern or unknown.
    pub(super) fn check_field(
        &self,
        start: usize,
        name: &str,
        has_wildcards: bool,
    ) -> Result<(), ParseError> {
        if has_wildcards {
            return Err(self.scan.expected_at(start, "a field without `*` and `?`"));
        }
        self.parser.unknown(name).map_or(Ok(()), |known| {
            let kind = ParseErrorKind::UnknownField { field: name.to_owned(), known };
            Err(self.scan.error_at(start, kind))
        })
    }

    fn value(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let at = self.scan.at();
        match self.scan.peek() {
            Some('(') => self.group(field),
            Some('"') => self.phrase(field),
            Some('/') => {
                let pattern = self.scan.regex()?;
                self.in_fields(at, field, |field| Query::regex(field, &pattern))
            }
            Some('[' | '{') => self.range(field),
            Some('<' | '>') => self.comparison(field),
            // An empty fuzzy term.
            Some('~') if field.is_some() => self.fuzzy(at, field, ""),
            _ if ["AND", "OR", "NOT"].iter().any(|word| self.scan.is_keyword(word)) => {
                Err(self.scan.expected("a clause; escape an operator as in `\\AND`"))
            }
            _ if self.scan.is_word() => match self.near()? {
                Some(near) => self.in_fields(at, field, |field| Query::near(field, near.clone())),
                None => self.word(field),
            },
            _ => Err(self.scan.expected("a clause")),
        }
    }

    /// A query in a field, or in any of the default fields.
    fn in_fields(
        &self,
        at: usize,
        field: Option<&str>,
        query: impl Fn(&str) -> Query,
    ) -> Result<Query, ParseError> {
        let query = |field: &str| self.allowed(at, query(field));
        if let Some(field) = field {
            return query(field);
        }
        let boosted = |(field, boost): &(String, f32)| match *boost {
            1.0 => query(field),
            boost => Ok(query(field)?.boost(boost)),
        };
        match &self.parser.default_fields[..] {
            [] => Err(self.scan.expected_at(at, "a field, since there is no default field")),
            [field] => boosted(field),
            fields => {
                let of_fields: Result<Vec<Query>, ParseError> =
                    fields.iter().map(boosted).collect();
                Ok(Query::any_of(of_fields?))
            }
        }
    }

    fn phrase(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let at = self.scan.at();
        let text = self.scan.quoted()?;
        let slop = self.slop()?;
        self.in_fields(at, field, |field| Query::phrase(field, &text).slop(slop))
    }

    /// The slop after `~`, or 0 if no `~` comes next.
    pub(super) fn slop(&mut self) -> Result<u32, ParseError> {
        match self.scan.eat("~") {
            true => self.scan.integer("the slop: a number of positions"),
            false => Ok(0),
        }
    }

    /// A term, fuzzy term or wildcard.
    fn word(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let at = self.scan.at();
        let word = self.scan.word()?;
        match self.scan.peek() {
            Some(':') => Err(self.scan.expected("the end of the word; escape a colon as `\\:`")),
            Some('~') if word.has_wildcards => {
                Err(self.scan.expected("the end of the pattern, which cannot be fuzzy"))
            }
            Some('~') => self.fuzzy(at, field, &word.text),
            _ if word.pattern == "*" && field.is_none() => Ok(Query::All),
            _ if word.has_wildcards => {
                self.in_fields(at, field, |field| Query::wildcard(field, &word.pattern))
            }
            _ => self.in_fields(at, field, |field| Query::term(field, &word.text)),
        }
    }

    /// The rest of a fuzzy term, beginning with its `~`.
    fn fuzzy(&mut self, at: usize, field: Option<&str>, text: &str) -> Result<Query, ParseError> {
        self.scan.eat("~");
        let start = self.scan.at();
        let expected = "a distance of 0, 1 or 2";
        let mut distance = DEFAULT_DISTANCE;
        let mut prefix_chars = 0;
        if self.scan.peek().is_some_and(|c| c.is_ascii_digit()) {
            distance = self.scan.integer(expected)?;
            if distance > MAX_DISTANCE || self.scan.rest().starts_with('.') {
                return Err(self.scan.expected_at(start, expected));
            }
            if self.scan.eat("/") {
                prefix_chars = self.scan.integer("the number of equal characters")?;
            }
        }
        self.in_fields(at, field, |field| {
            Query::fuzzy(field, text, distance).fuzzy_prefix(prefix_chars)
        })
    }

    /// A range in brackets.
    fn range(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let start = self.scan.at();
        let is_exclusive = self.scan.eat("{");
        if !is_exclusive {
            self.scan.eat("[");
        }
        let from = self.bound(is_exclusive)?;
        self.scan.skip_space();
        if !self.scan.eat_keyword("TO") {
            return Err(self.scan.expected("`TO` between the bounds of a range"));
        }
        let to = self.bound(false)?;
        self.scan.skip_space();
        let to = match (self.scan.eat("}"), to) {
            (true, Bound::Included(text)) => Bound::Excluded(text),
            (true, to) => to,
            (false, to) if self.scan.eat("]") => to,
            (false, _) if self.scan.peek().is_none() => {
                return Err(self.scan.unclosed("`]` or `}`", start));
            }
            (false, _) => return Err(self.scan.expected("`]` or `}`")),
        };
        self.in_fields(start, field, |field| Query::range(field, (from.clone(), to.clone())))
    }

    fn bound(&mut self, is_exclusive: bool) -> Result<Bound<String>, ParseError> {
        self.scan.skip_space();
        let start = self.scan.at();
        let text = match self.scan.peek() {
            Some('"') => self.scan.quoted()?,
            _ if self.scan.is_keyword("TO") => String::new(),
            _ => {
                let word = self.scan.word_until(|c| c.is_whitespace() || "[]{}\"".contains(c))?;
                if word.pattern == "*" {
                    return Ok(Bound::Unbounded);
                }
                word.text
            }
        };
        match is_exclusive {
            _ if self.scan.at() == start => Err(self.scan.expected("a bound, or `*` for none")),
            true => Ok(Bound::Excluded(text)),
            false => Ok(Bound::Included(text)),
        }
    }

    /// A range with one bound: `<`, `<=`, `>` or `>=`.
    fn comparison(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let start = self.scan.at();
        let is_less = self.scan.eat("<");
        if !is_less {
            self.scan.eat(">");
        }
        let is_exclusive = !self.scan.eat("=");
        self.scan.skip_space();
        let at = self.scan.at();
        let text = match self.scan.peek() {
            Some('"') => self.scan.quoted()?,
            _ => self.scan.word_until(|c| c.is_whitespace() || "(){}[]^\"~".contains(c))?.text,
        };
        if self.scan.at() == at {
            return Err(self.scan.expected("a bound"));
        }
        let bound = if is_exclusive { Bound::Excluded(text) } else { Bound::Included(text) };
        let range = if is_less { (Bound::Unbounded, bound) } else { (bound, Bound::Unbounded) };
        self.in_fields(start, field, |field| Query::range(field, range.clone()))
    }
}
