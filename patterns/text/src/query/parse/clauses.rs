//! Clauses: signs, operators and groups.

use super::error::{ParseError, ParseErrorKind};
use super::parser::{Operator, QueryParser};
use super::refused::ClauseKind;
use super::scan::Scanner;
use crate::query::check::MAX_DEPTH;
use crate::query::{BooleanQuery, Query, QueryError};
use crate::shown::shown;

/// The state of parsing a text.
pub(super) struct Parsing<'p> {
    pub(super) parser: &'p QueryParser,
    pub(super) scan: Scanner<'p>,
    /// The number of groups and negations around the next character.
    depth: usize,
    /// The maximum depth so far, and the offset where it begins.
    deepest: (usize, usize),
}

/// The sign before a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    None,
    Must,
    Filter,
    Should,
    MustNot,
}

/// A clause of a group.
struct Clause {
    at: usize,
    sign: Sign,
    query: Query,
}

impl Clause {
    fn unsigned(at: usize, query: impl Into<Query>) -> Self {
        Self { at, sign: Sign::None, query: query.into() }
    }
}

impl<'p> Parsing<'p> {
    pub(super) fn new(parser: &'p QueryParser, text: &'p str) -> Self {
        Self { parser, scan: Scanner::new(text), depth: 0, deepest: (0, 0) }
    }

    /// The query of the whole text.
    pub(super) fn query(&mut self) -> Result<Query, ParseError> {
        let mut clauses = self.clauses(None)?;
        if clauses.is_empty() || self.scan.peek().is_some() {
            return Err(self.scan.expected("a clause"));
        }
        let query = match clauses.pop() {
            Some(Clause { sign: Sign::None, query, .. }) if clauses.is_empty() => query,
            last => {
                clauses.extend(last);
                self.boolean(clauses, self.parser.operator).into()
            }
        };
        query.check().map_err(|error| self.scan.error_at(self.deepest.1, error))?;
        Ok(query)
    }

    /// Begins a group or a negation at a place.
    pub(super) fn enter(&mut self, at: usize) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > self.deepest.0 {
            self.deepest = (self.depth, at);
        }
        match self.depth > MAX_DEPTH {
            true => Err(self.scan.error_at(at, QueryError::TooDeep { limit: MAX_DEPTH })),
            false => Ok(()),
        }
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Parses a group in parentheses, and its minimum number of matches. The opening parenthesis
    /// comes next.
    pub(super) fn group(&mut self, field: Option<&str>) -> Result<Query, ParseError> {
        let start = self.scan.at();
        self.enter(start)?;
        self.scan.eat("(");
        let mut clauses = self.clauses(field)?;
        if !self.scan.eat(")") {
            return Err(match self.scan.peek() {
                None => self.scan.unclosed("`)`", start),
                Some(_) => self.scan.expected("a clause or `)`"),
            });
        }
        self.leave();
        let minimum = match self.scan.eat("~") {
            true => Some(self.scan.integer("the number of clauses that must match")?),
            false => None,
        };
        match (clauses.pop(), minimum) {
            (Some(Clause { sign: Sign::None, query, .. }), None) if clauses.is_empty() => Ok(query),
            (last, minimum) => {
                clauses.extend(last);
                // Only `should` clauses are counted.
                let operator = if minimum.is_some() { Operator::Or } else { self.parser.operator };
                let mut boolean = self.boolean(clauses, operator);
                boolean.minimum_should_match = minimum;
                Ok(boolean.into())
            }
        }
    }

    fn boolean(&self, clauses: Vec<Clause>, operator: Operator) -> BooleanQuery {
        let mut boolean = BooleanQuery::new();
        for Clause { sign, query, .. } in clauses {
            let of_sign = match (sign, operator) {
                (Sign::Must, _) | (Sign::None, Operator::And) => &mut boolean.must,
                (Sign::Should, _) | (Sign::None, Operator::Or) => &mut boolean.should,
                (Sign::Filter, _) => &mut boolean.filter,
                (Sign::MustNot, _) => &mut boolean.must_not,
            };
            of_sign.push(query);
        }
        boolean
    }

    /// The clauses up to the end of the text, or up to a closing parenthesis.
    fn clauses(&mut self, field: Option<&str>) -> Result<Vec<Clause>, ParseError> {
        let mut clauses = Vec::new();
        loop {
            self.scan.skip_space();
            if matches!(self.scan.peek(), None | Some(')')) {
                return Ok(clauses);
            }
            clauses.push(self.any_of(field)?);
        }
    }

    /// One clause, or several with `OR` between them.
    fn any_of(&mut self, field: Option<&str>) -> Result<Clause, ParseError> {
        let first = self.all_of(field)?;
        if !self.is_operator("OR", "||") {
            return Ok(first);
        }
        let (at, mut clauses) = (first.at, vec![first]);
        while self.eat_operator("OR", "||") {
            clauses.push(self.all_of(field)?);
        }
        let mut boolean = BooleanQuery::new();
        for Clause { at, sign, query } in clauses {
            boolean.should.push(match sign {
                Sign::None | Sign::Should => query,
                Sign::MustNot => Query::none_of([query]),
                Sign::Must | Sign::Filter => return Err(self.misplaced(at, "OR")),
            });
        }
        Ok(Clause::unsigned(at, boolean))
    }

    /// One clause, or several with `AND` between them.
    fn all_of(&mut self, field: Option<&str>) -> Result<Clause, ParseError> {
        let first = self.signed(field)?;
        if !self.is_operator("AND", "&&") {
            return Ok(first);
        }
        let (at, mut clauses) = (first.at, vec![first]);
        while self.eat_operator("AND", "&&") {
            clauses.push(self.signed(field)?);
        }
        match clauses.iter().find(|clause| clause.sign == Sign::Should) {
            Some(clause) => Err(self.misplaced(clause.at, "AND")),
            None => Ok(Clause::unsigned(at, self.boolean(clauses, Operator::And))),
        }
    }

    fn misplaced(&self, at: usize, operator: &str) -> ParseError {
        let expected = format!(
            "a clause without a sign, as one of `{operator}`; put the clause in parentheses"
        );
        self.scan.expected_at(at, &expected)
    }

    fn is_operator(&mut self, word: &str, symbol: &str) -> bool {
        self.scan.skip_space();
        self.scan.is_keyword(word) || self.scan.rest().starts_with(symbol)
    }

    fn eat_operator(&mut self, word: &str, symbol: &str) -> bool {
        self.scan.skip_space();
        self.scan.eat_keyword(word) || self.scan.eat(symbol)
    }

    /// A clause with its sign.
    fn signed(&mut self, field: Option<&str>) -> Result<Clause, ParseError> {
        self.scan.skip_space();
        let at = self.scan.at();
        if self.scan.eat_keyword("NOT") || self.scan.eat("!") {
            return Ok(Clause { at, sign: Sign::MustNot, query: self.negated(at, field)? });
        }
        let sign = match self.scan.peek() {
            Some('+') => Sign::Must,
            Some('#') => Sign::Filter,
            Some('|') => Sign::Should,
            Some('-') => Sign::MustNot,
            _ => Sign::None,
        };
        if sign != Sign::None {
            let signs = ["+", "#", "|", "-"];
            let sign = signs.into_iter().find(|sign| self.scan.eat(sign)).unwrap_or_default();
            if self.scan.peek().is_none_or(|c| c.is_whitespace() || "+#|-!".contains(c)) {
                let expected =
                    format!("a clause directly after `{sign}`, or `\\{sign}` for the character");
                return Err(self.scan.expected(&expected));
            }
        }
        Ok(Clause { at, sign, query: self.operand(field)? })
    }

    /// The clause after `NOT`. This clause may be negated itself.
    fn negated(&mut self, at: usize, field: Option<&str>) -> Result<Query, ParseError> {
        self.enter(at)?;
        let Clause { sign, query, .. } = self.signed(field)?;
        self.leave();
        match sign {
            Sign::None => Ok(query),
            Sign::MustNot => Ok(Query::none_of([query])),
            _ => Err(self.scan.expected_at(at, "a clause without a sign after `NOT`")),
        }
    }

    /// Returns `query`, or an error if the parser refuses clauses of its kind. `at` is the offset
    /// of the clause.
    pub(super) fn allowed(&self, at: usize, query: Query) -> Result<Query, ParseError> {
        match ClauseKind::of(&query).filter(|kind| self.parser.refused.contains(kind)) {
            None => Ok(query),
            Some(clause_kind) => {
                let clause = shown(&query);
                let kind = ParseErrorKind::RefusedClause { kind: clause_kind, clause };
                Err(self.scan.error_at(at, kind))
            }
        }
    }
}
