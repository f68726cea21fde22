//! Spans within spans: near-queries whose parts are phrases, alternatives or near-queries.

use std::collections::BTreeMap;

use keyloom::{Reader, Result};

use super::bm25::Weight;
use super::cursor::{END, Window};
use super::node::{Slot, common};

/// The positions `start` to `end` of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The spans of a part of a query, without its terms.
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

/// The greatest number of parts of an unordered near-query with parts that are not terms. Its cost
/// grows with their subsets.
pub(crate) const MAX_UNORDERED: usize = 8;

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
            self.frequency = frequency(self.shape.matches(self.doc)?);
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

    fn matches(&mut self, doc: u32) -> Result<Matches> {
        Ok(match self {
            Self::Terms(slot) => {
                let single = |at: u32| (Span { start: at, end: at }, 0);
                positions(slot, doc)?.into_iter().map(single).collect()
            }
            Self::Phrase(slots) => phrase(slots, doc)?,
            Self::AnyOf(parts) => {
                let mut all = Matches::new();
                for part in parts {
                    for (span, gaps) in part.matches(doc)? {
                        let least = all.entry(span).or_insert(gaps);
                        *least = gaps.min(*least);
                    }
                }
                all
            }
            Self::Near { parts, slop, is_ordered } => {
                let of_part = |part: &mut Self| Ok(part.matches(doc)?.into_keys().collect());
                let of_parts = parts.iter_mut().map(of_part).collect::<Result<Vec<Vec<Span>>>>()?;
                near(&of_parts, *slop, *is_ordered)
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

/// All combinations of one span of each part: from left to right, with the parts that a
/// combination has so far as a set of bits.
fn near(parts: &[Vec<Span>], slop: u32, is_ordered: bool) -> Matches {
    let whole = u32::MAX >> (u32::BITS - parts.len().clamp(1, 32) as u32);
    let mut states: BTreeMap<(u32, Span), u32> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate().filter(|(n, _)| !is_ordered || *n == 0) {
        states.extend(part.iter().map(|span| ((1 << n, *span), 0)));
    }
    for _ in 1..parts.len() {
        let mut longer: BTreeMap<(u32, Span), u32> = BTreeMap::new();
        for ((taken, span), gaps) in states {
            let next = taken.trailing_ones() as usize;
            for (n, part) in parts.iter().enumerate() {
                if taken & 1 << n != 0 || is_ordered && n != next {
                    continue;
                }
                let from = part.partition_point(|other| other.start <= span.end);
                for other in part.iter().skip(from) {
                    let gaps = gaps.saturating_add(other.start - span.end - 1);
                    if gaps > slop {
                        break;
                    }
                    let joined = Span { start: span.start, end: other.end };
                    let least = longer.entry((taken | 1 << n, joined)).or_insert(gaps);
                    *least = gaps.min(*least);
                }
            }
        }
        states = longer;
    }
    states
        .into_iter()
        .filter(|((taken, _), _)| *taken == whole)
        .map(|((_, span), gaps)| (span, gaps))
        .collect()
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
