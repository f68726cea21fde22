//! The operators of a query, as cursors over documents in the order of their ids.

use std::sync::Arc;

use keyloom::{Reader, Result};
use keyloom_bitmaps::expression::IdCursor;

use super::bm25::Weight;
use super::combined::Combined;
use super::common::common;
use super::cursor::Cursor;
use super::proximity::Proximity;
use super::slot::Slot;
use super::spans::SpansNode;
use super::window::{END, Window};
use crate::postings::SUMMARY_UNITS;

/// If a list is this many times longer than the shortest list of a conjunction, documents of the
/// shortest list are looked up in it.
// A block of the shortest list then spans many blocks of the long list. The summaries of these
// blocks took more time than the lookups that they saved: 240 instead of 90 µs for a common and a
// middle term in 100,000 documents. On a remote store, each lookup may cost a round trip, and the
// summaries are read in the first one.
const LOOKED_UP: u64 = 8;

/// An operator over the documents that match it.
pub(crate) enum Node<'r, R: Reader> {
    /// The documents of a term.
    Term(Box<Cursor<'r, R>>),
    /// The documents in which terms occur near each other.
    Near(Box<Near<'r, R>>),
    /// The documents that contain a match of nested spans.
    Spans(Box<SpansNode<'r, R>>),
    /// The documents of a word in any of several fields.
    Combined(Box<Combined<'r, R>>),
    /// A given list of documents.
    Ids(Ids),
    /// The documents of an expression, all with one score.
    Expression(Box<Expression<'r, R>>),
    /// A Boolean combination.
    Boolean(Box<Boolean<'r, R>>),
    /// The documents of at least `least` of the operands.
    AtLeast(Box<AtLeast<'r, R>>),
    /// The documents of an operand, all with one score.
    Constant(Box<Node<'r, R>>, f64),
}

/// Documents in ascending order.
pub(crate) struct Ids {
    ids: Arc<[u32]>,
    /// The edit distance of the term of each document; `None` if all are 0.
    distances: Option<Arc<[u8]>>,
    at: usize,
    score: f64,
}

/// The documents of an expression of bitmaps. One chunk is in memory at a time.
pub(crate) struct Expression<'r, R: Reader> {
    ids: IdCursor<'r, R>,
    doc: u32,
    is_begun: bool,
    score: f64,
}

/// Terms that occur near each other.
pub(crate) struct Near<'r, R: Reader> {
    terms: Vec<Slot<'r, R>>,
    proximity: Proximity,
    weight: Weight,
    doc: u32,
    frequency: f64,
    positions: Vec<Vec<u32>>,
}

/// Documents that match all of `required` and none of `excluded`; `optional` adds to the score.
pub(crate) struct Boolean<'r, R: Reader> {
    /// Not empty. The search is fastest if the rarest operand comes first.
    required: Vec<Node<'r, R>>,
    optional: Vec<Node<'r, R>>,
    excluded: Vec<Node<'r, R>>,
    doc: u32,
}

/// Documents that match at least `least` of the operands.
pub(crate) struct AtLeast<'r, R: Reader> {
    pub(crate) operands: Vec<Node<'r, R>>,
    /// At least 1.
    pub(crate) least: usize,
    doc: u32,
}

impl<'r, R: Reader> Node<'r, R> {
    /// The current document; `END` after the last one. Call [`seek`](Node::seek) first.
    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        match self {
            Self::Term(cursor) => cursor.doc(),
            Self::Near(near) => near.doc,
            Self::Spans(spans) => spans.doc(),
            Self::Combined(combined) => combined.doc(),
            Self::Ids(ids) => ids.doc(),
            Self::Expression(expression) => expression.doc,
            Self::Boolean(boolean) => boolean.doc,
            Self::AtLeast(at_least) => at_least.doc,
            Self::Constant(node, _) => node.doc(),
        }
    }

    /// Advances to the first document at or after `target`.
    ///
    /// # Errors
    /// Any error of the store; an error with the key if stored bytes are damaged.
    #[inline]
    pub(crate) fn seek(&mut self, target: u32) -> Result<u32> {
        match self {
            Self::Term(cursor) => cursor.seek(target),
            Self::Near(near) => near.seek(target),
            Self::Spans(spans) => spans.seek(target),
            Self::Combined(combined) => combined.seek(target),
            Self::Ids(ids) => Ok(ids.seek(target)),
            Self::Expression(expression) => expression.seek(target),
            Self::Boolean(boolean) => boolean.seek(target),
            Self::AtLeast(at_least) => at_least.seek(target),
            Self::Constant(node, _) => node.seek(target),
        }
    }

    /// The score of the current document.
    ///
    /// # Errors
    /// As [`seek`](Node::seek).
    #[inline]
    pub(crate) fn score(&mut self) -> Result<f64> {
        match self {
            Self::Term(cursor) => cursor.score(),
            Self::Near(near) => near.score(),
            Self::Spans(spans) => spans.score(),
            Self::Combined(combined) => combined.score(),
            Self::Ids(ids) => Ok(ids.score()),
            Self::Expression(expression) => Ok(expression.score),
            Self::Boolean(boolean) => boolean.score(),
            Self::AtLeast(at_least) => at_least.score(),
            Self::Constant(_, score) => Ok(*score),
        }
    }

    /// The maximum number of layers of summaries of the terms. Reads the highest layer of each
    /// list.
    ///
    /// # Errors
    /// As [`seek`](Node::seek).
    pub(crate) fn layers(&mut self) -> Result<usize> {
        let mut most = 0;
        self.for_each_cursor(&mut |cursor| {
            most = most.max(cursor.layers()?);
            Ok(())
        })?;
        Ok(most)
    }

    /// Reads the first blocks and summaries of all terms in one round trip, if the store is remote.
    ///
    /// # Errors
    /// As [`seek`](Node::seek).
    pub(crate) fn prefetch(&mut self, reader: &'r R) -> Result<()> {
        if reader.prefetched() == 0 {
            return Ok(());
        }
        let mut ranges = Vec::new();
        self.for_each_cursor(&mut |cursor| {
            ranges.extend(cursor.first_ranges());
            Ok(())
        })?;
        if ranges.is_empty() {
            return Ok(());
        }
        let mut pages = reader.range_many(&ranges, SUMMARY_UNITS)?.into_iter();
        self.for_each_cursor(&mut |cursor| match (pages.next(), pages.next()) {
            (Some(blocks), Some(summaries)) => cursor.begin_with(blocks, summaries),
            _ => Ok(()),
        })
    }

    /// Visits the cursors that the bounds of this operator are computed from.
    fn for_each_cursor(
        &mut self,
        visit: &mut dyn FnMut(&mut Cursor<'r, R>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Term(cursor) => visit(cursor),
            Self::Near(near) => {
                near.terms.iter_mut().flat_map(|slot| &mut slot.terms).try_for_each(visit)
            }
            Self::Combined(combined) => combined.terms().try_for_each(visit),
            Self::Boolean(boolean) => {
                let all = boolean.required.iter_mut().chain(&mut boolean.optional);
                all.into_iter().try_for_each(|node| node.for_each_cursor(visit))
            }
            Self::AtLeast(at_least) => {
                at_least.operands.iter_mut().try_for_each(|node| node.for_each_cursor(visit))
            }
            Self::Spans(_) | Self::Ids(_) | Self::Expression(_) | Self::Constant(..) => Ok(()),
        }
    }

    /// A bound of the scores from `target` to the end of a block, or of a summary of layer `depth`.
    ///
    /// # Errors
    /// As [`seek`](Node::seek).
    pub(crate) fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        match self {
            Self::Term(cursor) => cursor.window(target, depth),
            Self::Near(near) => near.window(target, depth),
            Self::Spans(spans) => Ok(spans.window()),
            Self::Combined(combined) => combined.window(target, depth),
            Self::Ids(ids) => Ok(Window { last: END, score: ids.score }),
            Self::Expression(expression) => Ok(Window { last: END, score: expression.score }),
            Self::Boolean(boolean) => boolean.window(target, depth),
            Self::AtLeast(at_least) => sum_of_windows(&mut at_least.operands, target, depth),
            Self::Constant(_, score) => Ok(Window { last: END, score: *score }),
        }
    }
}

/// A bound of the sum of the scores of all operands. The bounds are added in the same order as the
/// scores, so that rounding never makes the bound smaller than a score.
fn sum_of_windows<'n, 'r: 'n, R: Reader + 'r>(
    operands: impl IntoIterator<Item = &'n mut Node<'r, R>>,
    target: u32,
    depth: usize,
) -> Result<Window> {
    let mut sum = Window::NONE;
    for operand in operands {
        let window = operand.window(target, depth)?;
        sum.last = sum.last.min(window.last);
        sum.score += window.score;
    }
    Ok(sum)
}

impl Ids {
    pub(crate) fn new(ids: Arc<[u32]>, score: f64) -> Self {
        Self { ids, distances: None, at: 0, score }
    }

    /// Documents with the score `score` / (1 + distance).
    pub(crate) fn with_distances(
        ids: Arc<[u32]>,
        distances: Option<Arc<[u8]>>,
        score: f64,
    ) -> Self {
        Self { distances, ..Self::new(ids, score) }
    }

    fn score(&self) -> f64 {
        let distances = self.distances.as_ref();
        let distance = distances.and_then(|all| all.get(self.at)).copied().unwrap_or(0);
        self.score / (1.0 + f64::from(distance))
    }

    fn doc(&self) -> u32 {
        self.ids.get(self.at).copied().unwrap_or(END)
    }

    fn seek(&mut self, target: u32) -> u32 {
        let rest = self.ids.get(self.at..).unwrap_or_default();
        // Galloping search: the number of comparisons is logarithmic in the distance of the target.
        let mut step = 1;
        while rest.get(step).is_some_and(|id| *id < target) {
            step *= 2;
        }
        let near = rest.get(..rest.len().min(step + 1)).unwrap_or_default();
        self.at += near.partition_point(|id| *id < target);
        self.doc()
    }
}

impl<'r, R: Reader> Expression<'r, R> {
    pub(crate) fn new(ids: IdCursor<'r, R>, score: f64) -> Self {
        Self { ids, doc: 0, is_begun: false, score }
    }

    fn seek(&mut self, target: u32) -> Result<u32> {
        if !self.is_begun || self.doc < target {
            self.is_begun = true;
            // An expression may contain ids of no document.
            let next = self.ids.seek(target.into())?;
            self.doc = next.and_then(|id| u32::try_from(id).ok()).unwrap_or(END);
        }
        Ok(self.doc)
    }
}

impl<'r, R: Reader> Near<'r, R> {
    /// The cursors must have the weight of the phrase.
    pub(crate) fn new(terms: Vec<Slot<'r, R>>, proximity: Proximity, weight: Weight) -> Self {
        Self { terms, proximity, weight, doc: 0, frequency: 0.0, positions: Vec::new() }
    }

    fn seek(&mut self, target: u32) -> Result<u32> {
        let mut target = target;
        if self.doc >= target && self.frequency > 0.0 {
            return Ok(self.doc);
        }
        self.frequency = 0.0;
        loop {
            self.doc = common(&mut self.terms, target, Slot::seek)?;
            if self.doc == END || self.is_near()? {
                return Ok(self.doc);
            }
            target = self.doc + 1;
        }
    }

    /// Whether the terms are near each other in the current document.
    fn is_near(&mut self) -> Result<bool> {
        self.positions.resize_with(self.terms.len(), Vec::new);
        for (term, positions) in self.terms.iter_mut().zip(&mut self.positions) {
            term.positions(self.doc, positions)?;
        }
        self.frequency = self.proximity.frequency(&mut self.positions);
        Ok(self.frequency > 0.0)
    }

    fn score(&mut self) -> Result<f64> {
        let Some(slot) = self.terms.first_mut() else { return Ok(0.0) };
        let length = slot.length(self.doc)?;
        Ok(self.weight.score(self.frequency, length))
    }

    /// The terms occur near each other at most as often as the rarest of them occurs.
    fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        let mut least = Window { last: END, score: f64::INFINITY };
        for term in &mut self.terms {
            let window = term.window(target, depth)?;
            least.last = least.last.min(window.last);
            least.score = least.score.min(window.score);
            if window == Window::NONE {
                return Ok(window);
            }
        }
        Ok(least)
    }
}

impl<'r, R: Reader> Boolean<'r, R> {
    pub(crate) fn new(
        required: Vec<Node<'r, R>>,
        optional: Vec<Node<'r, R>>,
        excluded: Vec<Node<'r, R>>,
    ) -> Self {
        Self { required, optional, excluded, doc: 0 }
    }

    /// The cursors, if this is a pure conjunction of terms.
    pub(crate) fn terms(&mut self) -> Option<Vec<&mut Cursor<'r, R>>> {
        if !self.optional.is_empty() || !self.excluded.is_empty() {
            return None;
        }
        let terms = self.required.iter_mut().map(|node| match node {
            Node::Term(cursor) => Some(&mut **cursor),
            _ => None,
        });
        terms.collect()
    }

    /// In a pure conjunction of terms, chooses the lists in which only single documents of the
    /// rarest term are looked up.
    pub(crate) fn look_up_long_lists(&mut self) {
        let mut terms = self.terms().unwrap_or_default();
        let rarest = terms.iter().map(|term| term.documents()).min().unwrap_or(0).max(1);
        for term in &mut terms {
            if term.is_local() && term.documents() >= rarest.saturating_mul(LOOKED_UP) {
                term.look_up();
            }
        }
    }

    fn seek(&mut self, target: u32) -> Result<u32> {
        let mut target = target;
        loop {
            self.doc = common(&mut self.required, target, Node::seek)?;
            if self.doc == END || !self.is_excluded()? {
                return Ok(self.doc);
            }
            target = self.doc + 1;
        }
    }

    fn is_excluded(&mut self) -> Result<bool> {
        for excluded in &mut self.excluded {
            if excluded.seek(self.doc)? == self.doc {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn score(&mut self) -> Result<f64> {
        let mut sum = 0.0;
        for required in &mut self.required {
            sum += required.score()?;
        }
        for optional in &mut self.optional {
            if optional.seek(self.doc)? == self.doc {
                sum += optional.score()?;
            }
        }
        Ok(sum)
    }

    fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        sum_of_windows(self.required.iter_mut().chain(&mut self.optional), target, depth)
    }
}

impl<'r, R: Reader> AtLeast<'r, R> {
    pub(crate) fn new(operands: Vec<Node<'r, R>>, least: usize) -> Self {
        Self { operands, least: least.max(1), doc: 0 }
    }

    fn seek(&mut self, target: u32) -> Result<u32> {
        let mut target = target;
        loop {
            let (mut first, mut docs) = (END, Vec::with_capacity(self.operands.len()));
            for operand in &mut self.operands {
                let doc = operand.seek(target)?;
                first = first.min(doc);
                docs.push(doc);
            }
            self.doc = first;
            let many = docs.iter().filter(|doc| **doc == first).count();
            if first == END || many >= self.least {
                return Ok(first);
            }
            // No document before the document at this rank can be in enough operands.
            docs.sort_unstable();
            target = docs.get(self.least - 1).copied().unwrap_or(END);
        }
    }

    fn score(&mut self) -> Result<f64> {
        let mut sum = 0.0;
        for operand in &mut self.operands {
            if operand.doc() == self.doc {
                sum += operand.score()?;
            }
        }
        Ok(sum)
    }
}
