//! Spans of a text: where terms are close to each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::Chain;
use std::ops::Range;
use std::rc::Rc;

use super::occurrences::{Occurrences, Place};
use super::plan::{Arrangement, NearPlan, SpanPlan};

/// The maximum number of steps per token of a text.
// Without a limit, backtracking over twelve common words with a slop of 1,000 takes practically
// forever.
const STEPS_PER_TOKEN: usize = 256;

/// The number of steps that are allowed in addition, whatever the length of the text.
// A short text would have too few steps for a nested query.
const MIN_STEPS: usize = 65_536;

/// The number of steps for each stored span. This bounds the memory.
const STEPS_PER_SPAN: usize = 16;

/// The maximum number of spans of a nested part.
// This bounds the memory. The tokens of further matches are not marked.
const MAX_NESTED: usize = 16_384;

/// A span of the positions `start..end`, with its tokens.
#[derive(Clone, Debug)]
struct Span {
    start: u32,
    end: u32,
    places: Vec<Place>,
}

/// Marks the tokens that take part in any match of `parts`.
pub(super) fn mark(parts: &[SpanPlan], occurrences: &mut Occurrences) {
    let mut steps = MIN_STEPS + STEPS_PER_TOKEN * occurrences.tokens;
    for part in parts {
        mark_part(part, occurrences, &mut steps);
    }
}

fn mark_part(part: &SpanPlan, occurrences: &mut Occurrences, steps: &mut usize) {
    match part {
        SpanPlan::Terms(terms) => {
            for term in terms {
                let places: Vec<Place> =
                    occurrences.of_term(*term).map(|(_, place)| place).collect();
                places.into_iter().for_each(|place| occurrences.mark(place));
            }
        }
        SpanPlan::AnyOf(parts) => {
            parts.iter().for_each(|part| mark_part(part, occurrences, steps));
        }
        SpanPlan::Near(near) => mark_near(near, occurrences, steps),
    }
}

/// Marks one match for each span that still has an unmarked token.
fn mark_near(near: &NearPlan, occurrences: &mut Occurrences, steps: &mut usize) {
    if near.is_exact_phrase() {
        let first = near.children.first().map(|first| spans_of(first, occurrences, steps));
        for start in first.unwrap_or_default() {
            let span = phrase_at(near, &start, occurrences, steps);
            let places = span.map(|span| span.places).unwrap_or_default();
            places.into_iter().for_each(|place| occurrences.mark(place));
        }
        return;
    }
    let children = Children::of(near, occurrences, steps);
    for (child, spans) in children.spans.iter().enumerate() {
        for (index, span) in spans.iter().enumerate() {
            if span.places.iter().all(|place| occurrences.is_marked(*place)) {
                continue;
            }
            if !spend(steps, near.children.len()) {
                return;
            }
            Search::new(near, &children, steps).pinned(child, index).run(|chosen| {
                for place in chosen.iter().flat_map(|span| &span.places) {
                    occurrences.mark(*place);
                }
                false
            });
        }
    }
}

/// Subtracts from the remaining steps; false if they are used up.
fn spend(steps: &mut usize, many: usize) -> bool {
    *steps = steps.saturating_sub(many);
    *steps > 0
}

/// The spans of a part, by ascending start. Spans with equal positions are merged.
fn spans_of(part: &SpanPlan, occurrences: &Occurrences, steps: &mut usize) -> Vec<Span> {
    let mut all: BTreeMap<(u32, u32), BTreeSet<Place>> = BTreeMap::new();
    match part {
        SpanPlan::Terms(terms) => {
            for (position, place) in terms.iter().flat_map(|term| occurrences.of_term(*term)) {
                if !spend(steps, STEPS_PER_SPAN) {
                    break;
                }
                all.entry((position, position.saturating_add(1))).or_default().insert(place);
            }
        }
        SpanPlan::AnyOf(parts) => {
            for span in parts.iter().flat_map(|part| spans_of(part, occurrences, steps)) {
                all.entry((span.start, span.end)).or_default().extend(span.places);
            }
        }
        SpanPlan::Near(near) if near.is_exact_phrase() => {
            let first = near.children.first().map(|first| spans_of(first, occurrences, steps));
            for start in first.unwrap_or_default() {
                if let Some(span) = phrase_at(near, &start, occurrences, steps)
                    && spend(steps, STEPS_PER_SPAN)
                {
                    all.entry((span.start, span.end)).or_default().extend(span.places);
                }
            }
        }
        SpanPlan::Near(near) => {
            let children = Children::of(near, occurrences, steps);
            Search::new(near, &children, steps).run(|chosen| {
                let start = chosen.iter().map(|span| span.start).min().unwrap_or(0);
                let end = chosen.iter().map(|span| span.end).max().unwrap_or(0);
                let places = all.entry((start, end)).or_default();
                places.extend(chosen.iter().flat_map(|span| &span.places));
                all.len() < MAX_NESTED
            });
        }
    }
    let span = |((start, end), places): ((u32, u32), BTreeSet<Place>)| Span {
        start,
        end,
        places: places.into_iter().collect(),
    };
    all.into_iter().map(span).collect()
}

/// The match of a phrase without slop that begins with the span `first`.
fn phrase_at(
    near: &NearPlan,
    first: &Span,
    occurrences: &Occurrences,
    steps: &mut usize,
) -> Option<Span> {
    let Arrangement::Phrase(offsets) = &near.arrangement else { return None };
    let base = offsets.first().copied()?;
    let mut span = first.clone();
    for (child, offset) in near.children.iter().zip(offsets).skip(1) {
        let SpanPlan::Terms(terms) = child else { return None };
        let position = first.start.saturating_add(offset.saturating_sub(base));
        let before = span.places.len();
        for term in terms.iter().take_while(|_| spend(steps, 1)) {
            span.places.extend(occurrences.at_position(*term, position));
        }
        if span.places.len() == before {
            return None;
        }
        span.end = position.saturating_add(1);
    }
    Some(span)
}

/// The positions that a span covers for the computation of the distance: see [`Search::extent`].
#[derive(Clone, Copy, Debug)]
struct Extent {
    low: i64,
    high: i64,
    len: i64,
}

/// The spans of each part of a near-query.
struct Children {
    spans: Vec<Rc<Vec<Span>>>,
    /// The maximum length of the spans of each child.
    longest: Vec<i64>,
}

impl Children {
    fn of(near: &NearPlan, occurrences: &Occurrences, steps: &mut usize) -> Self {
        // Repeated words share their spans.
        let mut known: HashMap<&SpanPlan, Rc<Vec<Span>>> = HashMap::new();
        let mut all: Vec<Rc<Vec<Span>>> = Vec::with_capacity(near.children.len());
        for child in &near.children {
            let spans = known.entry(child);
            all.push(Rc::clone(
                spans.or_insert_with(|| Rc::new(spans_of(child, occurrences, steps))),
            ));
        }
        let is_phrase = matches!(near.arrangement, Arrangement::Phrase(_));
        let longest = |spans: &Rc<Vec<Span>>| {
            let lengths = spans.iter().map(|span| i64::from(span.end) - i64::from(span.start));
            if is_phrase { 0 } else { lengths.max().unwrap_or(0) }
        };
        let longest = all.iter().map(longest).collect();
        Self { spans: all, longest }
    }
}

/// The indexes of the spans of a child that may be chosen.
type Candidates = Chain<Range<usize>, Range<usize>>;

/// A backtracking search for one span of each child such that the spans are close to each other.
struct Search<'s> {
    near: &'s NearPlan,
    children: &'s Children,
    /// The chosen span of each child.
    chosen: Vec<Option<usize>>,
    /// The children that are not pinned, in the order in which their spans are chosen.
    order: Vec<usize>,
    steps: &'s mut usize,
}

impl<'s> Search<'s> {
    fn new(near: &'s NearPlan, children: &'s Children, steps: &'s mut usize) -> Self {
        let many = children.spans.len();
        Self { near, children, chosen: vec![None; many], order: (0..many).collect(), steps }
    }

    /// Restricts the search to matches with this span.
    fn pinned(mut self, child: usize, index: usize) -> Self {
        self.order.retain(|other| *other != child);
        if let Some(chosen) = self.chosen.get_mut(child) {
            *chosen = Some(index);
        }
        self
    }

    fn span(&self, child: usize, index: usize) -> Option<&'s Span> {
        self.children.spans.get(child)?.get(index)
    }

    /// The positions of a span, and its length, which does not count towards the distance. For a
    /// phrase, positions are reduced by the place of the child, and lengths are 0.
    fn extent(&self, child: usize, span: &Span) -> Extent {
        let (low, high) = (i64::from(span.start), i64::from(span.end));
        match &self.near.arrangement {
            Arrangement::Phrase(places) => {
                let low = low - places.get(child).map_or(0, |place| i64::from(*place));
                Extent { low, high: low, len: 0 }
            }
            Arrangement::Ordered | Arrangement::Unordered => Extent { low, high, len: high - low },
        }
    }

    fn all_chosen(&self) -> impl Iterator<Item = (usize, &'s Span)> {
        let chosen = self.chosen.iter().enumerate();
        chosen.filter_map(|(child, index)| Some((child, self.span(child, (*index)?)?)))
    }

    /// The extent of all chosen spans.
    fn reached(&self) -> Option<Extent> {
        let extents = self.all_chosen().map(|(child, span)| self.extent(child, span));
        extents.reduce(|a, b| Extent {
            low: a.low.min(b.low),
            high: a.high.max(b.high),
            len: a.len + b.len,
        })
    }

    /// The maximum extent of a match that contains the chosen spans.
    fn room(&self, reached: Extent) -> i64 {
        let free =
            self.chosen.iter().zip(&self.children.longest).filter(|(chosen, _)| chosen.is_none());
        i64::from(self.near.slop) + reached.len + free.map(|(_, longest)| longest).sum::<i64>()
    }

    /// The spans of a child that are close enough to the chosen spans. Spans after the chosen ones
    /// come first, since earlier tokens are more often marked already.
    fn candidates(&self, child: usize) -> Candidates {
        let Some(spans) = self.children.spans.get(child) else { return (0..0).chain(0..0) };
        let Some(reached) = self.reached() else { return (0..spans.len()).chain(0..0) };
        let room = self.room(reached);
        let least = |low: i64| spans.partition_point(|span| self.extent(child, span).low < low);
        let [from, middle, until] =
            [reached.high - room, reached.low, reached.low + room + 1].map(least);
        (middle..until).chain(from..middle)
    }

    /// Whether a span can be chosen in addition to the chosen spans.
    fn fits(&self, child: usize, span: &Span) -> bool {
        let is_apart = |(other, chosen): (usize, &Span)| {
            let (is_before, is_after) = (span.end <= chosen.start, chosen.end <= span.start);
            match self.near.arrangement {
                Arrangement::Ordered if child < other => is_before,
                Arrangement::Ordered => is_after,
                Arrangement::Unordered | Arrangement::Phrase(_) => is_before || is_after,
            }
        };
        let Extent { low, high, len } = self.extent(child, span);
        let is_near = self.reached().is_none_or(|reached| {
            let others =
                self.room(reached) - self.children.longest.get(child).copied().unwrap_or(0);
            reached.high.max(high) - reached.low.min(low) <= others + len
        });
        is_near && self.all_chosen().all(is_apart)
    }

    /// Passes matches to `visit` until it returns false or the steps are used up.
    fn run(mut self, mut visit: impl FnMut(&[&Span]) -> bool) {
        let mut candidates: Vec<Candidates> = Vec::new();
        loop {
            let level = candidates.len();
            let Some(child) = self.order.get(level).copied() else {
                let chosen: Vec<&Span> = self.all_chosen().map(|(_, span)| span).collect();
                if !visit(&chosen) {
                    return;
                }
                self.clear_last(level);
                if !self.advance(&mut candidates) {
                    return;
                }
                continue;
            };
            candidates.push(self.candidates(child));
            if !self.advance(&mut candidates) {
                return;
            }
        }
    }

    /// Chooses the next span of the last level, or of an earlier level if the last has none left;
    /// false if none is left at any level.
    fn advance(&mut self, candidates: &mut Vec<Candidates>) -> bool {
        loop {
            let Some(level) = candidates.len().checked_sub(1) else { return false };
            let (Some(child), Some(rest)) =
                (self.order.get(level).copied(), candidates.get_mut(level))
            else {
                return false;
            };
            let mut next = None;
            while next.is_none()
                && let Some(index) = rest.next()
            {
                // Each comparison with a chosen span counts as a step.
                if !spend(self.steps, self.near.children.len()) {
                    return false;
                }
                next = self.span(child, index).filter(|span| self.fits(child, span)).map(|_| index);
            }
            if let Some(chosen) = self.chosen.get_mut(child) {
                *chosen = next;
            }
            if next.is_some() {
                return true;
            }
            candidates.pop();
            self.clear_last(candidates.len());
        }
    }

    /// If `levels` is not 0, clears the choice of the last of the first `levels` children in the
    /// order.
    fn clear_last(&mut self, levels: usize) {
        let child = levels.checked_sub(1).and_then(|last| self.order.get(last).copied());
        if let Some(chosen) = child.and_then(|child| self.chosen.get_mut(child)) {
            *chosen = None;
        }
    }
}
