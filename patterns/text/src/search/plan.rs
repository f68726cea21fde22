//! The plan of a query: its terms in the form of the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::{Error, Reader, Result};

use super::catalog::{Catalog, FieldInfo, PlacedTerm};
use super::expand::{Expansion, MatchedTerm};
use super::proximity::{Arrangement, Proximity};
use crate::postings::Detail;
use crate::{BooleanQuery, Near, Query, Spans};

/// A query whose texts are analyzed and whose patterns are expanded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// No document.
    None,
    /// All documents, with the score 1.
    All,
    /// The documents of a term.
    Term { field: FieldInfo, term: String },
    /// The documents where terms are near each other. Each place has alternatives.
    Near { field: FieldInfo, slots: Vec<Vec<String>>, proximity: Proximity },
    /// The documents of any of these terms, with the score 1 / (1 + distance).
    Terms { field: FieldInfo, terms: Arc<[MatchedTerm]> },
    /// At least `least` of the operands.
    AtLeast { least: usize, operands: Vec<Plan> },
    /// All of `must` and `filter`, none of `must_not`, and at least `least` of `should`.
    Boolean(BooleanPlan),
    /// Scores multiplied by a factor.
    Boost(Box<Plan>, f64),
    /// All documents of a plan, with one score.
    Constant(Box<Plan>, f64),
}

/// A Boolean combination of plans.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BooleanPlan {
    pub(crate) must: Vec<Plan>,
    pub(crate) filter: Vec<Plan>,
    pub(crate) should: Vec<Plan>,
    pub(crate) must_not: Vec<Plan>,
    pub(crate) least: usize,
}

/// Turns queries into plans.
pub(crate) struct Planner<'p, C, R> {
    pub(crate) catalog: &'p C,
    pub(crate) reader: &'p R,
    pub(crate) expansion: Expansion,
}

impl<C: Catalog, R: Reader> Planner<'_, C, R> {
    /// The plan of a query; `None` if its texts have no terms, such as a stop word.
    ///
    /// # Errors
    /// An unknown field; a phrase in a field without positions; a pattern with more terms than the
    /// limit; any error of the store.
    pub(crate) fn plan(&self, query: &Query) -> Result<Option<Plan>> {
        Ok(match query {
            Query::All => Some(Plan::All),
            Query::Term { field, text } => {
                let field = self.catalog.field(field)?;
                self.phrase(field, self.catalog.analyze(field.number, text), 0)?
            }
            Query::Phrase { field, text, slop } => {
                let field = self.catalog.field(field)?;
                self.phrase(field, self.catalog.analyze(field.number, text), *slop)?
            }
            Query::Near { field, near } => self.near(self.catalog.field(field)?, near)?,
            Query::Boolean(boolean) => Some(self.boolean(boolean)?),
            Query::Boost { query, factor } => {
                let plan = self.plan(query)?;
                plan.map(|plan| Plan::Boost(plan.into(), f64::from(*factor)))
            }
            Query::ConstantScore { query, score } => {
                let plan = self.plan(query)?;
                plan.map(|plan| Plan::Constant(plan.into(), f64::from(*score)))
            }
            pattern => Some(self.pattern(pattern)?),
        })
    }

    /// The documents of any term that a pattern matches.
    fn pattern(&self, pattern: &Query) -> Result<Plan> {
        let (field, terms) = self.expansion.terms(self.catalog, self.reader, pattern)?;
        Ok(match terms.is_empty() {
            true => Plan::None,
            false => Plan::Terms { field, terms: terms.into() },
        })
    }

    /// One term, or terms at their positions.
    fn phrase(&self, field: FieldInfo, terms: Vec<PlacedTerm>, slop: u32) -> Result<Option<Plan>> {
        let mut slots: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (position, term) in terms {
            let slot = slots.entry(position).or_default();
            if !slot.contains(&term) {
                slot.push(term);
            }
        }
        if slots.len() < 2 {
            return Ok(slots.into_values().next().map(|terms| any_of(field, terms)));
        }
        self.check_positions(field)?;
        let arrangement = if slop == 0 { Arrangement::Ordered } else { Arrangement::Shifted };
        let (offsets, slots) = slots.into_iter().unzip();
        let proximity = Proximity { offsets, slop, arrangement };
        Ok(Some(Plan::Near { field, slots, proximity }))
    }

    fn near(&self, field: FieldInfo, near: &Near) -> Result<Option<Plan>> {
        let mut slots = Vec::with_capacity(near.spans.len());
        for spans in &near.spans {
            slots.extend(self.slot(field, spans)?);
        }
        if slots.len() < 2 {
            return Ok(slots.pop().map(|terms| any_of(field, terms)));
        }
        self.check_positions(field)?;
        let arrangement =
            if near.is_ordered { Arrangement::Ordered } else { Arrangement::Unordered };
        let offsets = (0..slots.len() as u32).collect();
        let proximity = Proximity { offsets, slop: near.slop, arrangement };
        Ok(Some(Plan::Near { field, slots, proximity }))
    }

    /// The alternatives of one place; `None` if the text has no terms.
    fn slot(&self, field: FieldInfo, spans: &Spans) -> Result<Option<Vec<String>>> {
        let terms = match spans {
            Spans::Term(text) | Spans::Phrase(text) => {
                let terms = self.catalog.analyze(field.number, text);
                let mut positions = terms.iter().map(|(position, _)| position);
                let first = positions.next();
                if positions.any(|position| Some(position) != first) {
                    return Err(self.nested(field));
                }
                terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>()
            }
            Spans::AnyOf(all) => {
                let mut terms = Vec::new();
                for spans in all {
                    terms.extend(self.slot(field, spans)?.unwrap_or_default());
                }
                terms
            }
            Spans::Near(_) => return Err(self.nested(field)),
        };
        Ok((!terms.is_empty()).then_some(terms))
    }

    #[cold]
    fn nested(&self, field: FieldInfo) -> Error {
        Error::InvalidArgument {
            what: "the near-query",
            value: self.catalog.field_name(field.number).to_owned(),
            why: "its spans must be single terms or alternatives of them; combine phrases and near-queries with `Query::all_of`",
        }
    }

    fn check_positions(&self, field: FieldInfo) -> Result<()> {
        if field.detail != Detail::Frequencies {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "the field of a phrase",
            value: self.catalog.field_name(field.number).to_owned(),
            why: "it stores frequencies only; declare it with positions and raise the version of the index",
        })
    }

    fn boolean(&self, boolean: &BooleanQuery) -> Result<Plan> {
        let has_positive =
            !boolean.must.is_empty() || !boolean.filter.is_empty() || !boolean.should.is_empty();
        let [must, filter, should, must_not] =
            [&boolean.must, &boolean.filter, &boolean.should, &boolean.must_not];
        let mut plan = BooleanPlan {
            must: self.all(must)?,
            filter: self.all(filter)?,
            should: self.all(should)?,
            must_not: self.all(must_not)?,
            least: boolean.required_should() as usize,
        };
        if !has_positive {
            if plan.must_not.is_empty() {
                return Ok(Plan::None);
            }
            plan.filter.push(Plan::All);
        }
        // A query without terms is left out, so fewer can be required.
        let is_optional = !plan.must.is_empty() || !plan.filter.is_empty();
        if plan.should.len() < should.len() {
            plan.least = plan.least.min(plan.should.len().max(usize::from(!is_optional)));
        }
        Ok(Plan::Boolean(plan))
    }

    fn all(&self, queries: &[Query]) -> Result<Vec<Plan>> {
        queries.iter().filter_map(|query| self.plan(query).transpose()).collect()
    }
}

/// The documents of any of these terms, each with its score.
fn any_of(field: FieldInfo, terms: Vec<String>) -> Plan {
    let mut operands: Vec<Plan> =
        terms.into_iter().map(|term| Plan::Term { field, term }).collect();
    match operands.len() {
        1 => operands.pop().unwrap_or(Plan::None),
        _ => Plan::AtLeast { least: 1, operands },
    }
}

impl Plan {
    /// The number of posting lists.
    pub(crate) fn lists(&self) -> usize {
        let all = |plans: &[Self]| plans.iter().map(Self::lists).sum::<usize>();
        match self {
            Self::None | Self::All => 0,
            Self::Term { .. } => 1,
            Self::Near { slots, .. } => slots.iter().map(Vec::len).sum(),
            Self::Terms { terms, .. } => terms.len(),
            Self::AtLeast { operands, .. } => all(operands),
            Self::Boolean(BooleanPlan { must, filter, should, must_not, .. }) => {
                [must, filter, should, must_not].into_iter().map(|plans| all(plans)).sum()
            }
            Self::Boost(plan, _) | Self::Constant(plan, _) => plan.lists(),
        }
    }

    /// Visits the terms whose documents are counted.
    pub(crate) fn scored_terms(&self, visit: &mut dyn FnMut(FieldInfo, &str)) {
        match self {
            Self::None | Self::All | Self::Terms { .. } => {}
            Self::Term { field, term } => visit(*field, term),
            Self::Near { field, slots, .. } => {
                slots.iter().flatten().for_each(|term| visit(*field, term));
            }
            Self::AtLeast { operands, .. } => {
                operands.iter().for_each(|operand| operand.scored_terms(visit));
            }
            Self::Boolean(BooleanPlan { must, filter, should, must_not, .. }) => {
                for plan in [must, filter, should, must_not].into_iter().flatten() {
                    plan.scored_terms(visit);
                }
            }
            Self::Boost(plan, _) | Self::Constant(plan, _) => plan.scored_terms(visit),
        }
    }
}
