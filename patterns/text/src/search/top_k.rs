//! The documents with the best scores.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A document with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoredDoc {
    pub(crate) doc: u32,
    pub(crate) score: f64,
}

impl ScoredDoc {
    /// Compares the places of two documents: the better document is less.
    pub(crate) fn rank(&self, other: &Self) -> Ordering {
        Ranked(*self).cmp(&Ranked(*other))
    }

    pub(crate) fn is_after(&self, other: &Self) -> bool {
        self.rank(other).is_gt()
    }
}

/// Orders hits from the worst to the best: by ascending score, then by descending id.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranked(ScoredDoc);

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap keeps the greatest element on top: the worst hit.
        other.0.score.total_cmp(&self.0.score).then(self.0.doc.cmp(&other.0.doc))
    }
}

/// Collects the best hits that come after a given hit.
#[derive(Debug)]
pub(crate) struct TopK {
    limit: usize,
    after: Option<ScoredDoc>,
    heap: BinaryHeap<Ranked>,
}

impl TopK {
    pub(crate) fn new(limit: usize, after: Option<ScoredDoc>) -> Self {
        Self { limit, after, heap: BinaryHeap::with_capacity(limit.min(1_024) + 1) }
    }

    /// The score that documents with greater ids must exceed to be collected.
    #[inline]
    pub(crate) fn least(&self) -> f64 {
        match self.heap.peek() {
            _ if self.limit == 0 => f64::INFINITY,
            Some(worst) if self.heap.len() >= self.limit => worst.0.score,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Whether a document would be one of the best so far.
    #[inline]
    pub(crate) fn has_room(&self, hit: ScoredDoc) -> bool {
        let is_better = |worst: &Ranked| Ranked(hit) < *worst;
        self.heap.len() < self.limit || self.limit > 0 && self.heap.peek().is_some_and(is_better)
    }

    /// Adds a document.
    #[inline]
    pub(crate) fn push(&mut self, hit: ScoredDoc) {
        let is_later = |after: ScoredDoc| Ranked(hit) > Ranked(after);
        if !self.has_room(hit) || !self.after.is_none_or(is_later) {
            return;
        }
        self.heap.push(Ranked(hit));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// The hits, the best first.
    pub(crate) fn into_hits(self) -> Vec<ScoredDoc> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| ranked.0).collect()
    }
}
