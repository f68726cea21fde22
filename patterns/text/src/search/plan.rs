//! The plan of a query: a query whose texts and patterns are replaced by terms of the index.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::{Error, Reader, Result};

use super::expand::{Expanding, Expansion, MatchedTerm};
use super::proximity::{Arrangement, Proximity};
use super::spans::{MAX_UNORDERED, SpanShape};
use crate::index::TextError;
use crate::index::{Catalog, FieldInfo, LENGTHS, PlacedTerm};
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
    /// The documents in which terms occur near each other. Each place has alternative terms.
    Near { field: FieldInfo, slots: Vec<Vec<String>>, proximity: Proximity },
    /// The documents that contain a match of nested spans.
    Spans { field: FieldInfo, shape: SpanShape<Vec<String>> },
    /// The documents of a word in any of several fields, scored as if they were one field.
    Combined { word: String, fields: Arc<[CombinedField]> },
    /// The documents of any of these terms, with the score 1 / (1 + distance).
    Terms { field: FieldInfo, terms: Arc<[MatchedTerm]> },
    /// The documents that match at least `least` of the operands.
    AtLeast { least: usize, operands: Vec<Plan> },
    /// The documents that match all of `must` and `filter`, none of `must_not`, and at least
    /// `least` of `should`.
    Boolean(BooleanPlan),
    /// The documents of a plan, with their scores multiplied by a factor.
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

/// A field of a combined query, and the terms of the word in this field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CombinedField {
    pub(crate) field: FieldInfo,
    pub(crate) weight: f64,
    /// Alternatives, whose frequencies are added. Empty if the analyzer drops the word.
    pub(crate) terms: Vec<String>,
}

/// The maximum number of parts of a near-query, and of positions of a phrase with slop.
// The time of a search grows with the combinations of the positions of all parts.
const MAX_PARTS: usize = 32;

/// Turns queries into plans.
pub(crate) struct Planner<'p, C, R> {
    pub(crate) catalog: &'p C,
    pub(crate) reader: &'p R,
    pub(crate) expansion: Expansion,
    whole: &'p Query,
    /// The number of terms of the whole query so far.
    terms: Cell<usize>,
    /// The states and the terms of the dictionary that its patterns have used so far.
    patterns: Expanding,
}

impl<'p, C: Catalog, R: Reader> Planner<'p, C, R> {
    pub(crate) fn new(
        catalog: &'p C,
        reader: &'p R,
        expansion: Expansion,
        whole: &'p Query,
    ) -> Self {
        Self { catalog, reader, expansion, whole, terms: Cell::new(0), patterns: expansion.begin() }
    }

    /// The plan of the query; `None` if its texts have no terms, for example only stop words.
    ///
    /// # Errors
    /// [`TextError::UnknownField`](crate::TextError::UnknownField); [`Error::InvalidArgument`] for
    /// a phrase in a field without positions or a query with too many parts; the errors of
    /// [`Expansion::terms`].
    pub(crate) fn plan_all(&self) -> Result<Option<Plan>> {
        self.plan(self.whole)
    }

    fn plan(&self, query: &Query) -> Result<Option<Plan>> {
        let plan = self.plan_of(query)?;
        if let Some(plan) = &plan
            && !matches!(
                query,
                Query::Boolean(_) | Query::Boost { .. } | Query::ConstantScore { .. }
            )
        {
            // A clause without terms, such as `*:*`, costs as much as one with a term.
            self.count(plan.lists().max(1))?;
        }
        Ok(plan)
    }

    /// Adds the terms of a clause to the number of terms of the whole query. All terms are counted
    /// before the first list is opened.
    fn count(&self, terms: usize) -> Result<()> {
        self.terms.set(self.terms.get().saturating_add(terms));
        match self.terms.get() > self.expansion.max_terms {
            true => Err(TextError::too_many(self.whole, self.expansion.max_terms)),
            false => Ok(()),
        }
    }

    fn plan_of(&self, query: &Query) -> Result<Option<Plan>> {
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
            Query::Combined { fields, text } => self.combined(fields, text)?,
            // Every document with the field is in the list of lengths.
            Query::Prefix { field, prefix } if prefix.is_empty() => {
                let (field, term) = (self.catalog.field(field)?, LENGTHS.to_owned());
                Some(Plan::Constant(Plan::Term { field, term }.into(), 1.0))
            }
            Query::Boolean(boolean) => self.boolean(boolean)?,
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

    /// The words of a text, each in any of the fields. Tokens at the same position of the text are
    /// one word, even if the analyzers of the fields emit different tokens.
    fn combined(&self, fields: &[(String, f32)], text: &str) -> Result<Option<Plan>> {
        let mut words: BTreeMap<u32, Vec<CombinedField>> = BTreeMap::new();
        let mut all = Vec::with_capacity(fields.len());
        for (name, weight) in fields {
            let field = self.catalog.field(name)?;
            let slots = slots(self.catalog.analyze(field.number, text));
            words.extend(slots.keys().map(|position| (*position, Vec::new())));
            all.push((field, f64::from(*weight), slots));
        }
        for (position, word) in &mut words {
            word.extend(all.iter_mut().map(|(field, weight, slots)| {
                let terms = slots.remove(position).unwrap_or_default();
                CombinedField { field: *field, weight: *weight, terms }
            }));
        }
        let mut operands = words.into_values().map(|fields| {
            let word = fields.iter().flat_map(|field| &field.terms).next().cloned();
            Plan::Combined { word: word.unwrap_or_default(), fields: fields.into() }
        });
        Ok(match operands.len() {
            0 | 1 => operands.next(),
            _ => Some(Plan::AtLeast { least: 1, operands: operands.collect() }),
        })
    }

    /// The documents of any term that a pattern matches.
    fn pattern(&self, pattern: &Query) -> Result<Plan> {
        let (field, terms) =
            self.expansion.terms(&self.patterns, self.catalog, self.reader, pattern)?;
        Ok(match terms.is_empty() {
            true => Plan::None,
            false => Plan::Terms { field, terms: terms.into() },
        })
    }

    /// A single term, or terms at their positions.
    fn phrase(&self, field: FieldInfo, terms: Vec<PlacedTerm>, slop: u32) -> Result<Option<Plan>> {
        let slots = slots(terms);
        if slots.len() < 2 {
            return Ok(slots.into_values().next().map(|terms| any_of(field, terms)));
        }
        self.check_positions(field)?;
        if slop > 0 && slots.len() > MAX_PARTS {
            return Err(Error::InvalidArgument {
                what: "the number of terms of a phrase with slop",
                value: slots.len().to_string(),
                why: "it can be at most 32; use fewer terms, or no slop",
            });
        }
        let arrangement = if slop == 0 { Arrangement::Ordered } else { Arrangement::Shifted };
        let (offsets, slots) = slots.into_iter().unzip();
        let proximity = Proximity { offsets, slop, arrangement };
        Ok(Some(Plan::Near { field, slots, proximity }))
    }

    fn near(&self, field: FieldInfo, near: &Near) -> Result<Option<Plan>> {
        let Some(shape) = self.near_shape(field, near, false)? else { return Ok(None) };
        let flat = |parts: &[SpanShape<Vec<String>>]| {
            let terms = parts.iter().map(|part| match part {
                SpanShape::Terms(terms) => Some(terms.clone()),
                _ => None,
            });
            terms.collect::<Option<Vec<_>>>()
        };
        if let SpanShape::Terms(terms) = shape {
            return Ok(Some(any_of(field, terms)));
        }
        self.check_positions(field)?;
        if let SpanShape::Near { parts, slop, is_ordered } = &shape
            && let Some(slots) = flat(parts)
        {
            let arrangement =
                if *is_ordered { Arrangement::Ordered } else { Arrangement::Unordered };
            let offsets = (0..slots.len() as u32).collect();
            let proximity = Proximity { offsets, slop: *slop, arrangement };
            return Ok(Some(Plan::Near { field, slots, proximity }));
        }
        Ok(Some(Plan::Spans { field, shape }))
    }

    /// The parts that have terms; `None` if no part has terms.
    fn near_shape(
        &self,
        field: FieldInfo,
        near: &Near,
        is_inner: bool,
    ) -> Result<Option<SpanShape<Vec<String>>>> {
        let (slop, is_ordered) = (near.slop, near.is_ordered);
        let mut parts = self.shapes(field, &near.spans)?;
        let has_spans = parts.iter().any(|part| !matches!(part, SpanShape::Terms(_)));
        let (most, why) = match (is_inner || has_spans) && !is_ordered {
            true => (
                MAX_UNORDERED,
                "within another one, or with phrases or near-queries in it, it can have at most 8 unordered spans; use fewer",
            ),
            false => (MAX_PARTS, "it can have at most 32 spans; use fewer"),
        };
        if parts.len() > most {
            let (what, value) = ("the near-query", near.to_string());
            return Err(Error::InvalidArgument { what, value, why });
        }
        Ok(match parts.len() {
            0 | 1 => parts.pop(),
            _ => Some(SpanShape::Near { parts, slop, is_ordered }),
        })
    }

    fn shapes(&self, field: FieldInfo, all: &[Spans]) -> Result<Vec<SpanShape<Vec<String>>>> {
        all.iter().filter_map(|spans| self.shape(field, spans).transpose()).collect()
    }

    /// The shape of some spans; `None` if their texts have no terms.
    fn shape(&self, field: FieldInfo, spans: &Spans) -> Result<Option<SpanShape<Vec<String>>>> {
        Ok(match spans {
            Spans::Term(text) | Spans::Phrase(text) => {
                let slots = slots(self.catalog.analyze(field.number, text));
                let first = slots.keys().next().copied().unwrap_or(0);
                let mut slots: Vec<(u32, Vec<String>)> =
                    slots.into_iter().map(|(at, terms)| (at - first, terms)).collect();
                match slots.len() {
                    0 | 1 => slots.pop().map(|(_, terms)| SpanShape::Terms(terms)),
                    _ => Some(SpanShape::Phrase(slots)),
                }
            }
            Spans::AnyOf(all) => {
                let mut parts = self.shapes(field, all)?;
                let mut terms = Vec::new();
                for part in &parts {
                    match part {
                        SpanShape::Terms(some) => terms.extend(some.iter().cloned()),
                        _ => return Ok(Some(SpanShape::AnyOf(parts))),
                    }
                }
                terms.dedup();
                match parts.len() {
                    0 | 1 => parts.pop(),
                    _ => Some(SpanShape::Terms(terms)),
                }
            }
            Spans::Near(near) => self.near_shape(field, near, true)?,
        })
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

    /// The clauses that have terms; `None` if all clauses are left out.
    ///
    /// A combination whose positive clauses are all left out matches no document. Otherwise it
    /// would match all documents except the excluded ones.
    fn boolean(&self, boolean: &BooleanQuery) -> Result<Option<Plan>> {
        let [must, filter, should, must_not] =
            [&boolean.must, &boolean.filter, &boolean.should, &boolean.must_not];
        let mut plan = BooleanPlan {
            must: self.all(must)?,
            filter: self.all(filter)?,
            should: self.all(should)?,
            must_not: self.all(must_not)?,
            least: 0,
        };
        let is_optional = !plan.must.is_empty() || !plan.filter.is_empty();
        let default = u32::from(!is_optional && !plan.should.is_empty());
        plan.least = boolean.minimum_should_match.unwrap_or(default) as usize;
        if plan.should.len() < should.len() {
            // No more clauses than are left can be required.
            plan.least = plan.least.min(plan.should.len());
        }
        if is_optional || !plan.should.is_empty() {
            return Ok(Some(Plan::Boolean(plan)));
        }
        let had_positive = !must.is_empty() || !filter.is_empty() || !should.is_empty();
        if plan.must_not.is_empty() {
            let is_left_out = had_positive || !must_not.is_empty();
            return Ok((!is_left_out).then_some(Plan::None));
        }
        if had_positive {
            return Ok(Some(Plan::None));
        }
        plan.filter.push(Plan::All);
        Ok(Some(Plan::Boolean(plan)))
    }

    fn all(&self, queries: &[Query]) -> Result<Vec<Plan>> {
        queries.iter().filter_map(|query| self.plan(query).transpose()).collect()
    }
}

/// The terms at each position.
fn slots(terms: Vec<PlacedTerm>) -> BTreeMap<u32, Vec<String>> {
    let mut slots: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (position, term) in terms {
        let slot = slots.entry(position).or_default();
        if !slot.contains(&term) {
            slot.push(term);
        }
    }
    slots
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
            Self::Spans { shape, .. } => {
                let mut lists = 0;
                shape.for_each(&mut |terms| lists += terms.len());
                lists
            }
            // The lists of the terms, and the list of the lengths.
            Self::Combined { fields, .. } => fields.iter().map(|of| of.terms.len() + 1).sum(),
            Self::Terms { terms, .. } => terms.len(),
            Self::AtLeast { operands, .. } => all(operands),
            Self::Boolean(BooleanPlan { must, filter, should, must_not, .. }) => {
                [must, filter, should, must_not].into_iter().map(|plans| all(plans)).sum()
            }
            Self::Boost(plan, _) | Self::Constant(plan, _) => plan.lists(),
        }
    }

    /// Visits the terms whose document counts are needed for scores.
    pub(crate) fn scored_terms(&self, visit: &mut dyn FnMut(FieldInfo, &str)) {
        match self {
            Self::None | Self::All | Self::Terms { .. } => {}
            Self::Term { field, term } => visit(*field, term),
            Self::Near { field, slots, .. } => {
                slots.iter().flatten().for_each(|term| visit(*field, term));
            }
            Self::Spans { field, shape } => {
                shape.for_each(&mut |terms| terms.iter().for_each(|term| visit(*field, term)));
            }
            Self::Combined { fields, .. } => fields.iter().for_each(|of| {
                visit(of.field, LENGTHS);
                of.terms.iter().for_each(|term| visit(of.field, term));
            }),
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
