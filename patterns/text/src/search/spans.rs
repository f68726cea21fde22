//! Spans within spans: near-queries whose parts are phrases, alternatives or near-queries.

use std::collections::BTreeMap;

use keyloom::{Reader, Result};

use super::bm25::Weight;
use super::cursor::{END, Window};
use super::error::SearchError;
use super::node::{Slot, common};

/// The positions `start` to `end` of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The structure of a span query; `T` holds the terms of a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SpanShape<T> {
    /// The positions of alternative terms.
    Terms(T),
    /// Terms at fixed distances from the first one, which has the offset 0.
    Phrase(Vec<(u32, T)>),
    /// The spans of each part.
    AnyOf(Vec<SpanShape<T>>),
    /// One span of each part without overlaps, and at most `slop` other positions between them.
    Near { parts: Vec<SpanShape<T>>, slop: u32, is_ordered: bool },
}

/// The greatest number of parts of an unordered near-query that is part of another one, or has
/// parts that are not terms. Its cost grows with their subsets.
pub(crate) const MAX_UNORDERED: usize = 8;

/// The greatest number of combinations that are tried in a document. Each of them is at most one
/// entry of 16 bytes, so this also bounds the memory.
const MAX_STEPS: usize = 1 << 22;

impl<T> SpanShape<T> {
    /// The same shape with other terms.
    pub(crate) fn map<U>(&self, make: &mut impl FnMut(&T) -> U) -> SpanShape<U> {
        match self {
            Self::Terms(terms) => SpanShape::Terms(make(terms)),
            Self::Phrase(slots) => SpanShape::Phrase(
                slots.iter().map(|(offset, terms)| (*offset, make(terms))).collect(),
            ),
            Self::AnyOf(parts) => {
                SpanShape::AnyOf(parts.iter().map(|part| part.map(make)).collect())
            }
            Self::Near { parts, slop, is_ordered } => SpanShape::Near {
                parts: parts.iter().map(|part| part.map(make)).collect(),
                slop: *slop,
                is_ordered: *is_ordered,
            },
        }
    }

    /// Visits the terms of all parts.
    pub(crate) fn for_each(&self, visit: &mut impl FnMut(&T)) {
        self.map(&mut |terms| visit(terms));
    }

    /// A number of each part: the sum over parts that must all match, the greatest one of
    /// alternatives.
    pub(crate) fn sum(&self, of_terms: &impl Fn(&T) -> f64) -> f64 {
        match self {
            Self::Terms(terms) => of_terms(terms),
            Self::Phrase(slots) => slots.iter().map(|(_, terms)| of_terms(terms)).sum(),
            Self::AnyOf(parts) => parts.iter().map(|part| part.sum(of_terms)).fold(0.0, f64::max),
            Self::Near { parts, .. } => parts.iter().map(|part| part.sum(of_terms)).sum(),
        }
    }
}

/// The documents with a span.
pub(crate) struct SpansNode<'r, R: Reader> {
    shape: SpanShape<Slot<'r, R>>,
    weight: Weight,
    doc: u32,
    frequency: f64,
}

impl<'r, R: Reader> SpansNode<'r, R> {
    pub(crate) fn new(shape: SpanShape<Slot<'r, R>>, weight: Weight) -> Self {
        Self { shape, weight, doc: 0, frequency: 0.0 }
    }

    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    pub(crate) fn seek(&mut self, target: u32) -> Result<u32> {
        if self.doc >= target && self.frequency > 0.0 {
            return Ok(self.doc);
        }
        let mut target = target;
        loop {
            self.doc = self.shape.seek(target)?;
            self.frequency = 0.0;
            if self.doc == END {
                return Ok(END);
            }
            let mut steps = MAX_STEPS;
            self.frequency = frequency(self.shape.matches(self.doc, true, &mut steps)?);
            if self.frequency > 0.0 {
                return Ok(self.doc);
            }
            target = self.doc + 1;
        }
    }

    pub(crate) fn score(&mut self) -> Result<f64> {
        let length = self.shape.length(self.doc)?;
        Ok(self.weight.score(self.frequency, length))
    }

    pub(crate) fn window(&self) -> Window {
        match self.doc == END {
            true => Window::NONE,
            false => Window { last: END, score: self.weight.limit() },
        }
    }
}

/// The spans of a part in a document, each with the smallest number of positions that none of its
/// own parts covers.
type Matches = BTreeMap<Span, u32>;

impl<R: Reader> SpanShape<Slot<'_, R>> {
    /// The first document at or after `target` that has the terms.
    fn seek(&mut self, target: u32) -> Result<u32> {
        match self {
            Self::Terms(slot) => slot.seek(target),
            Self::Phrase(slots) => common(slots, target, |(_, slot), target| slot.seek(target)),
            Self::AnyOf(parts) => {
                let mut doc = END;
                for part in parts {
                    doc = doc.min(part.seek(target)?);
                }
                Ok(doc)
            }
            Self::Near { parts, .. } => common(parts, target, Self::seek),
        }
    }

    /// The length of the field in a document that has the terms.
    fn length(&mut self, doc: u32) -> Result<u32> {
        match self {
            Self::Terms(slot) => slot.length(doc),
            Self::Phrase(slots) => slots.first_mut().map_or(Ok(0), |(_, slot)| slot.length(doc)),
            Self::AnyOf(parts) | Self::Near { parts, .. } => {
                for part in parts {
                    let length = part.length(doc)?;
                    if length > 0 {
                        return Ok(length);
                    }
                }
                Ok(0)
            }
        }
    }

    /// The spans in a document. Of the outermost part only the best span with each end is needed;
    /// of an inner part all of them are, because its length is not part of the gaps around it.
    fn matches(&mut self, doc: u32, is_outermost: bool, steps: &mut usize) -> Result<Matches> {
        Ok(match self {
            Self::Terms(slot) => {
                let single = |at: u32| (Span { start: at, end: at }, 0);
                positions(slot, doc)?.into_iter().map(single).collect()
            }
            Self::Phrase(slots) => phrase(slots, doc)?,
            Self::AnyOf(parts) => {
                let mut all = Matches::new();
                for part in parts {
                    for (span, gaps) in part.matches(doc, is_outermost, steps)? {
                        let least = all.entry(span).or_insert(gaps);
                        *least = gaps.min(*least);
                    }
                }
                all
            }
            Self::Near { parts, slop, is_ordered } => {
                let mut of_part =
                    |part: &mut Self| Ok(part.matches(doc, false, steps)?.into_keys().collect());
                let of_parts = parts.iter_mut().map(&mut of_part);
                let of_parts = of_parts.collect::<Result<Vec<Vec<Span>>>>()?;
                let rule = NearRule { slop: *slop, is_ordered: *is_ordered, is_outermost };
                let found = near(&of_parts, rule, steps);
                found.ok_or(SearchError::TooManySpans { id: doc, limit: MAX_STEPS })?
            }
        })
    }
}

fn positions<R: Reader>(slot: &mut Slot<'_, R>, doc: u32) -> Result<Vec<u32>> {
    let mut positions = Vec::new();
    // The slot may be at a later document, if it is one of several alternatives.
    if slot.seek(doc)? == doc {
        slot.positions(doc, &mut positions)?;
    }
    Ok(positions)
}

fn phrase<R: Reader>(slots: &mut [(u32, Slot<'_, R>)], doc: u32) -> Result<Matches> {
    let length = slots.last().map_or(0, |(offset, _)| *offset);
    let mut starts: Option<Vec<u32>> = None;
    for (offset, slot) in slots {
        let at: Vec<u32> = positions(slot, doc)?;
        let begins = |start: &u32| {
            start.checked_add(*offset).is_some_and(|position| at.binary_search(&position).is_ok())
        };
        starts = Some(match starts {
            None => at,
            Some(starts) => starts.into_iter().filter(begins).collect(),
        });
    }
    let span = |start: u32| Some((Span { start, end: start.checked_add(length)? }, 0));
    Ok(starts.unwrap_or_default().into_iter().filter_map(span).collect())
}

/// How the parts of a near-query may be placed.
#[derive(Clone, Copy)]
struct NearRule {
    slop: u32,
    is_ordered: bool,
    is_outermost: bool,
}

/// The parts that a combination has so far as a set of bits, its end, and its start.
type State = (u32, u32, u32);

/// All combinations of one span of each part, from left to right; of the outermost near-query only
/// those that [`frequency`] can choose. `None` if it takes more than `steps`.
fn near(parts: &[Vec<Span>], rule: NearRule, steps: &mut usize) -> Option<Matches> {
    let whole = u32::MAX >> (u32::BITS - parts.len().clamp(1, 32) as u32);
    let mut states: BTreeMap<State, u32> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate().filter(|(n, _)| !rule.is_ordered || *n == 0) {
        states.extend(part.iter().map(|span| ((1 << n, span.end, span.start), 0)));
    }
    for _ in 1..parts.len() {
        if rule.is_outermost {
            states = undominated(states);
        }
        let mut longer: BTreeMap<State, u32> = BTreeMap::new();
        for ((taken, end, start), gaps) in states {
            let next = taken.trailing_ones() as usize;
            for (n, part) in parts.iter().enumerate() {
                if taken & 1 << n != 0 || rule.is_ordered && n != next {
                    continue;
                }
                let from = part.partition_point(|other| other.start <= end);
                for other in part.iter().skip(from) {
                    let gaps = gaps.saturating_add(other.start - end - 1);
                    if gaps > rule.slop {
                        break;
                    }
                    *steps = steps.checked_sub(1)?;
                    let least = longer.entry((taken | 1 << n, other.end, start)).or_insert(gaps);
                    *least = gaps.min(*least);
                }
            }
        }
        states = longer;
    }
    let all = states.into_iter().filter(|((taken, ..), _)| *taken == whole);
    Some(all.map(|((_, end, start), gaps)| (Span { start, end }, gaps)).collect())
}

/// Of the states with equal parts and ends, those without another one that starts later and has as
/// few gaps. Whatever extends a state extends that other one to a better span with the same end.
fn undominated(states: BTreeMap<State, u32>) -> BTreeMap<State, u32> {
    let mut last: Option<(u32, u32, u32)> = None;
    let mut is_kept = |((taken, end, _), gaps): &(State, u32)| {
        let is_dominated =
            last.is_some_and(|(of, at, least)| (of, at) == (*taken, *end) && least <= *gaps);
        if !is_dominated {
            last = Some((*taken, *end, *gaps));
        }
        !is_dominated
    };
    states.into_iter().rev().filter(|state| is_kept(state)).collect()
}

/// The sum over spans of 1 / (1 + gaps). Spans do not overlap: each is the one that ends first, and
/// then the shortest one, after the end of the one before.
fn frequency(matches: Matches) -> f64 {
    let mut all: Vec<(Span, u32)> = matches.into_iter().collect();
    all.sort_unstable_by_key(|(span, gaps)| (span.end, std::cmp::Reverse(span.start), *gaps));
    let (mut from, mut sum) = (0, 0.0);
    for (span, gaps) in all {
        if span.start >= from {
            sum += 1.0 / (1.0 + f64::from(gaps));
            from = span.end.saturating_add(1);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singles(positions: impl IntoIterator<Item = u32>) -> Vec<Span> {
        positions.into_iter().map(|at| Span { start: at, end: at }).collect()
    }

    #[test]
    fn outermost_spans_have_the_frequency_of_all_spans() {
        let mut random = fastrand::Rng::with_seed(3);
        for case in 0..400 {
            let mut part = |_| {
                let mut all: Vec<Span> = (0..random.u32(1..7))
                    .map(|_| (random.u32(0..24), random.u32(0..3)))
                    .map(|(start, more)| Span { start, end: start + more })
                    .collect();
                all.sort_unstable();
                all.dedup();
                all
            };
            let parts: Vec<Vec<Span>> = (0..2 + case % 3).map(&mut part).collect();
            let (slop, is_ordered) = (random.u32(0..8), random.bool());
            let of = |is_outermost| {
                let mut steps = MAX_STEPS;
                near(&parts, NearRule { slop, is_ordered, is_outermost }, &mut steps).map(frequency)
            };
            assert_eq!(of(true), of(false), "{parts:?} {slop} {is_ordered}");
        }
    }

    #[test]
    fn repeated_words_of_a_long_text_take_bounded_steps() {
        let rule = NearRule { slop: 20, is_ordered: false, is_outermost: true };
        // Only one of the states with an end is kept: their number does not grow with the slop.
        let parts = [singles(0..2_000), singles(0..2_000), singles(0..2_000)];
        let mut steps = MAX_STEPS;
        assert!(near(&parts, rule, &mut steps).is_some());
        assert!(MAX_STEPS - steps < 1_000_000, "{steps}");
        // With a large slop the limit is reached.
        let rule = NearRule { slop: u32::MAX, ..rule };
        assert!(near(&parts, rule, &mut 100_000).is_none());
    }
}
