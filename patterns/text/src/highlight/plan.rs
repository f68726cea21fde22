//! The parts of a query that can be marked in a text of one field.

use std::collections::BTreeMap;

use crate::analysis::{Analyzer, TokenBuf};
use crate::query::{Near, Query, QueryError, Spans};
use crate::terms::{StateBudget, TermMatcher};

/// The number of a term or pattern of a plan.
pub(super) type TermId = usize;

/// The parts of a query that are marked in the texts of a field.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The terms of the index, and their numbers.
    pub(super) terms: BTreeMap<String, TermId>,
    /// The patterns that tokens are compared with, and their numbers.
    pub(super) patterns: Vec<(TermMatcher, TermId)>,
    pub(super) parts: Vec<SpanPlan>,
}

/// A set of spans in a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SpanPlan {
    /// The tokens of any of these terms.
    Terms(Vec<TermId>),
    /// The spans of any of these parts.
    AnyOf(Vec<SpanPlan>),
    /// One span of each child, close to each other.
    Near(NearPlan),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NearPlan {
    pub(super) children: Vec<SpanPlan>,
    /// The maximum distance: the number of positions between the spans, or, for a phrase, how far
    /// its terms are out of place.
    pub(super) slop: u32,
    pub(super) arrangement: Arrangement,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arrangement {
    Ordered,
    Unordered,
    /// A phrase: the place of each child.
    Phrase(Vec<u32>),
}

impl NearPlan {
    /// Whether this is a phrase without slop. Its matches are found without backtracking.
    pub(super) fn is_exact_phrase(&self) -> bool {
        self.slop == 0 && matches!(self.arrangement, Arrangement::Phrase(_))
    }
}

impl Plan {
    /// Adds the parts of a query that search in a field. Parts that must not match are left out.
    ///
    /// The query must have been checked, so that its depth is bounded.
    pub(super) fn add(
        &mut self,
        query: &Query,
        field: &str,
        analyzer: &Analyzer,
        states: &StateBudget,
    ) -> Result<(), QueryError> {
        match query {
            Query::Boost { query, .. } | Query::ConstantScore { query, .. } => {
                self.add(query, field, analyzer, states)?;
            }
            Query::Boolean(boolean) => {
                let clauses = boolean.must.iter().chain(&boolean.filter).chain(&boolean.should);
                for clause in clauses {
                    self.add(clause, field, analyzer, states)?;
                }
            }
            Query::Term { field: of, text } if of == field => {
                let spans = self.phrase(analyzer.tokens(text), 0);
                self.parts.extend(spans);
            }
            Query::Phrase { field: of, text, slop } if of == field => {
                let spans = self.phrase(analyzer.tokens(text), *slop);
                self.parts.extend(spans);
            }
            Query::Combined { fields, text } if fields.iter().any(|(of, _)| of == field) => {
                self.words(analyzer.tokens(text));
            }
            Query::Near { field: of, near } if of == field => {
                let spans = self.near(near, analyzer);
                self.parts.extend(spans);
            }
            // An empty prefix only tests that the field exists, so it marks no words.
            Query::Prefix { prefix, .. } if prefix.is_empty() => {}
            Query::Prefix { field: of, .. }
            | Query::Wildcard { field: of, .. }
            | Query::Regex { field: of, .. }
            | Query::Fuzzy { field: of, .. }
            | Query::Range { field: of, .. }
                if of == field =>
            {
                if let Some(matcher) = TermMatcher::of(query, analyzer)? {
                    states.add(&matcher, query)?;
                    let id = self.next_id();
                    self.patterns.push((matcher, id));
                    self.parts.push(SpanPlan::Terms(vec![id]));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn next_id(&self) -> TermId {
        self.terms.len() + self.patterns.len()
    }

    /// The number of terms and patterns.
    pub(super) fn ids(&self) -> usize {
        self.next_id()
    }

    fn id(&mut self, term: String) -> TermId {
        let next = self.next_id();
        *self.terms.entry(term).or_insert(next)
    }

    /// The spans of some tokens; `None` if there are no tokens. Tokens at the same position are
    /// alternatives.
    fn phrase(&mut self, tokens: Vec<TokenBuf>, slop: u32) -> Option<SpanPlan> {
        let mut slots: BTreeMap<u32, Vec<TermId>> = BTreeMap::new();
        for token in tokens {
            let id = self.id(token.term);
            slots.entry(token.position).or_default().push(id);
        }
        if slots.len() < 2 {
            return slots.into_values().next().map(SpanPlan::Terms);
        }
        let (places, slots): (_, Vec<_>) = slots.into_iter().unzip();
        let children = slots.into_iter().map(SpanPlan::Terms).collect();
        Some(SpanPlan::Near(NearPlan { children, slop, arrangement: Arrangement::Phrase(places) }))
    }

    /// Adds each token as a separate part.
    fn words(&mut self, tokens: Vec<TokenBuf>) {
        for token in tokens {
            let id = self.id(token.term);
            self.parts.push(SpanPlan::Terms(vec![id]));
        }
    }

    fn near(&mut self, near: &Near, analyzer: &Analyzer) -> Option<SpanPlan> {
        let mut children = Vec::with_capacity(near.spans.len());
        for spans in &near.spans {
            children.extend(self.spans(spans, analyzer));
        }
        if children.len() < 2 {
            return children.pop();
        }
        let arrangement = match near.is_ordered {
            true => Arrangement::Ordered,
            false => Arrangement::Unordered,
        };
        Some(SpanPlan::Near(NearPlan { children, slop: near.slop, arrangement }))
    }

    fn spans(&mut self, spans: &Spans, analyzer: &Analyzer) -> Option<SpanPlan> {
        match spans {
            Spans::Term(text) | Spans::Phrase(text) => self.phrase(analyzer.tokens(text), 0),
            Spans::Near(near) => self.near(near, analyzer),
            Spans::AnyOf(all) => {
                let mut any_of = Vec::with_capacity(all.len());
                for spans in all {
                    any_of.extend(self.spans(spans, analyzer));
                }
                (!any_of.is_empty()).then_some(SpanPlan::AnyOf(any_of))
            }
        }
    }
}
