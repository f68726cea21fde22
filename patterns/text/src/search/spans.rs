//! Spans within spans: near-queries whose parts are phrases, alternatives or near-queries.

use std::collections::BTreeMap;

use keyloom::{Reader, Result};

use super::bm25::Weight;
use super::common::common;
use super::slot::Slot;
use super::window::{END, Window};
use crate::index::TextError;

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
    /// Terms at fixed distances from the first term, which has the offset 0.
    Phrase(Vec<(u32, T)>),
    /// The spans of each part.
    AnyOf(Vec<SpanShape<T>>),
    /// One span of each part, without overlaps and with at most `slop` other positions between the
    /// spans.
    Near { parts: Vec<SpanShape<T>>, slop: u32, is_ordered: bool },
}

/// The maximum number of parts of an unordered near-query that is nested in another near-query, or
/// has parts that are not terms. The cost grows with the number of subsets of the parts.
pub(crate) const MAX_UNORDERED: usize = 8;

/// The maximum number of combinations that are tried in a document. A combination takes at most one
/// entry of 16 bytes, so the limit also bounds the memory.
// 200,000 repeated words of three parts take 1.8 million steps with any slop.
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

    /// Combines the numbers of all terms: the sum for parts that must all match, the maximum for
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

/// The documents with a span of the shape.
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

/// The spans of a part in a document, each with its gaps: the smallest number of positions that
/// none of its own parts covers.
type Matches = BTreeMap<Span, u32>;

impl<R: Reader> SpanShape<Slot<'_, R>> {
    /// The first document at or after `target` that contains the terms.
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

    /// The length of the field in a document that contains the terms.
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

    /// The spans in a document. For the outermost part, only the best span with each end is needed.
    /// For an inner part, all spans are needed, because the length of an inner span does not count
    /// towards the gaps of the outer span.
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
                let rule = NearRule { slop: *slop, is_ordered: *is_ordered };
                let found = match is_outermost {
                    true => near_last_starts(&of_parts, rule, steps),
                    false => near(&of_parts, rule, steps),
                };
                found.ok_or(TextError::TooManySpans { id: doc, limit: MAX_STEPS })?
            }
        })
    }
}

fn positions<R: Reader>(slot: &mut Slot<'_, R>, doc: u32) -> Result<Vec<u32>> {
    let mut positions = Vec::new();
    // If the slot is one of several alternatives, it may be at a later document.
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
}

impl NearRule {
    /// Whether a part can be taken next, after the parts in the bit set `taken`.
    fn allows(self, taken: u32, part: usize) -> bool {
        taken & 1 << part == 0 && (!self.is_ordered || part == taken.trailing_ones() as usize)
    }
}

/// A partial combination: the bit set of its parts, its end, and its start.
type State = (u32, u32, u32);

/// All combinations of one span of each part, from left to right; `None` if there are more than
/// `steps` steps.
fn near(parts: &[Vec<Span>], rule: NearRule, steps: &mut usize) -> Option<Matches> {
    let whole = all_of(parts);
    let mut states: BTreeMap<State, u32> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate().filter(|(n, _)| rule.allows(0, *n)) {
        states.extend(part.iter().map(|span| ((1 << n, span.end, span.start), 0)));
    }
    for _ in 1..parts.len() {
        let mut longer: BTreeMap<State, u32> = BTreeMap::new();
        for ((taken, end, start), gaps) in states {
            for (n, part) in parts.iter().enumerate().filter(|(n, _)| rule.allows(taken, *n)) {
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

/// The bit set of all parts.
fn all_of(parts: &[Vec<Span>]) -> u32 {
    u32::MAX >> (u32::BITS - parts.len().clamp(1, 32) as u32)
}

/// Combinations of the same parts that cover equally many positions: each end, with the last start
/// of the combinations that end there. Both ends and starts ascend. A combination that ends later
/// than another and does not start later is worse, both for [`frequency`] and as the beginning of a
/// longer combination.
type Chain = Vec<(u32, u32)>;

/// The combinations of [`near`] that [`frequency`] can choose. The gaps of a combination follow
/// from its start, its end and the number of positions that it covers. So before each span, only
/// the last start of each chain is needed, and the number of steps does not grow with the slop. A
/// document of a million repeated words takes a few million steps.
fn near_last_starts(parts: &[Vec<Span>], rule: NearRule, steps: &mut usize) -> Option<Matches> {
    let covers = |span: &Span| span.end - span.start + 1;
    let mut chains: BTreeMap<(u32, u32), Chain> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate().filter(|(n, _)| rule.allows(0, *n)) {
        for span in part {
            chains.entry((1 << n, covers(span))).or_default().push((span.end, span.start));
        }
    }
    for _ in 1..parts.len() {
        let mut longer: BTreeMap<(u32, u32), Chain> = BTreeMap::new();
        for ((taken, covered), chain) in &mut chains {
            ascending(chain);
            for (n, part) in parts.iter().enumerate().filter(|(n, _)| rule.allows(*taken, *n)) {
                let (mut before, mut start) = (chain.iter().peekable(), None);
                for span in part {
                    *steps = steps.checked_sub(1)?;
                    while let Some((_, last)) = before.next_if(|(end, _)| *end < span.start) {
                        start = Some(*last);
                    }
                    let Some(start) = start else { continue };
                    let covered = *covered + covers(span);
                    if span.end - start + 1 - covered <= rule.slop {
                        longer
                            .entry((*taken | 1 << n, covered))
                            .or_default()
                            .push((span.end, start));
                    }
                }
            }
        }
        chains = longer;
    }
    let mut all = Matches::new();
    for ((taken, covered), chain) in chains {
        for (end, start) in chain.into_iter().filter(|_| taken == all_of(parts)) {
            let gaps = all.entry(Span { start, end }).or_insert(u32::MAX);
            *gaps = (end - start + 1 - covered).min(*gaps);
        }
    }
    Some(all)
}

/// Sorts a chain, and removes each combination that ends later than another and does not start
/// later.
fn ascending(chain: &mut Chain) {
    chain.sort_unstable_by_key(|(end, start)| (*end, std::cmp::Reverse(*start)));
    let mut last = None;
    chain.retain(|(_, start)| {
        let is_later = last.is_none_or(|last| last < *start);
        last = if is_later { Some(*start) } else { last };
        is_later
    });
}

/// The sum over spans of 1 / (1 + gaps). Spans do not overlap. After the end of a span, the next
/// one is the span that ends first, and among those the shortest.
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
        for case in 0..4_000 {
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
            let rule = NearRule { slop: random.u32(0..8), is_ordered: random.bool() };
            let (slop, is_ordered) = (rule.slop, rule.is_ordered);
            let all = near(&parts, rule, &mut MAX_STEPS.clone()).map(frequency);
            let chosen = near_last_starts(&parts, rule, &mut MAX_STEPS.clone()).map(frequency);
            assert_eq!(chosen, all, "{parts:?} {slop} {is_ordered}");
        }
    }

    #[test]
    fn repeated_words_of_a_long_text_take_bounded_steps() {
        // The number of steps grows with the length of the text, but not with the slop.
        for (words, slop) in [(2_000, 20), (20_000, 20), (20_000, u32::MAX), (200_000, 200)] {
            let rule = NearRule { slop, is_ordered: false };
            let parts = [singles(0..words), singles(0..words), singles(0..words)];
            let mut steps = MAX_STEPS;
            let found = near_last_starts(&parts, rule, &mut steps);
            assert!(found.is_some_and(|found| !found.is_empty()));
            assert!(MAX_STEPS - steps <= 9 * words as usize, "{steps}");
        }
        // Negative control: computing all combinations, as for a nested near-query, takes too many
        // steps.
        let rule = NearRule { slop: u32::MAX, is_ordered: false };
        let parts = [singles(0..2_000), singles(0..2_000), singles(0..2_000)];
        assert!(near(&parts, rule, &mut 100_000).is_none());
    }
}
