//! The best postings of a term among the ids of several groups.

use std::collections::BinaryHeap;
use std::ops::Range;

use keyloom::{Reader, Result};

use super::bm25::Weight;
use super::by_score::{List, Part, Unit, What};
use super::top_k::{ScoredDoc, TopK};
use crate::postings::{BLOCK_POSTINGS, Block, Malformed};

/// A read of one block takes about as long as this many steps of a scan.
const STEPS_PER_READ: u64 = 8;

/// A list has about one block per this many postings.
const POSTINGS_PER_BLOCK: u64 = 80;

/// If one of two lists is this many times longer, the ids of the shorter list are searched for in
/// the longer one. Otherwise both are merged.
// A binary search in a block takes seven steps, so with a lower ratio the searches take more steps
// than a merge.
const SEARCHED: usize = 8;

/// A group of ids, and its best postings so far.
pub(super) struct Group {
    /// The place of the group among all groups.
    pub(super) number: usize,
    /// The ids, ascending.
    pub(super) ids: Vec<u32>,
    pub(super) best: TopK,
    /// How many of the ids the scan has passed.
    passed: usize,
}

/// Whether a scan of the list takes less time than reads of the blocks that may have one of the
/// `limit` best postings of a group.
pub(super) fn is_scan_best<R: Reader>(list: &List<'_, R>, groups: &[Group], limit: usize) -> bool {
    let last = groups.iter().filter_map(|group| group.ids.last()).max().copied().unwrap_or(0);
    let reads: u64 = groups.iter().map(|group| group.reads(limit, last.into())).sum();
    reads.saturating_mul(STEPS_PER_READ) > list.documents() / POSTINGS_PER_BLOCK
}

/// Collects the best postings of each group by a scan of the list.
///
/// # Errors
/// As [`ByScore::take`](super::by_score::ByScore::take).
pub(super) fn scan<R: Reader>(list: &List<'_, R>, groups: &mut [Group]) -> Result<()> {
    list.visit_blocks(|block| {
        let last = block.layout.range.last();
        match groups.iter().any(|group| group.next().is_some_and(|id| *id <= last)) {
            true => add(groups, &list.weight, &block, |group| group.pass(last)),
            false => Ok(()),
        }
    })
}

/// Adds the postings of a block to the groups; `places` returns the places of the ids of a group
/// that are in the range of the block.
fn add(
    groups: &mut [Group],
    weight: &Weight,
    block: &Block<'_>,
    places: impl Fn(&mut Group) -> Range<usize>,
) -> Result<(), Malformed> {
    let best = ScoredDoc { doc: block.layout.range.first(), score: weight.bound(block.bounds()) };
    let (mut docs, mut is_decoded) = ([0; BLOCK_POSTINGS], false);
    for group in groups {
        let places = places(group);
        if places.is_empty() || !group.best.has_room(best) {
            continue;
        }
        if !is_decoded {
            block.docs(&mut docs)?;
            is_decoded = true;
        }
        group.add(places, docs.get(..block.count()).unwrap_or_default(), |place| {
            let (freq, len) = block.numbers_at(place);
            weight.score(f64::from(freq), len)
        });
    }
    Ok(())
}

/// Collects the best postings of each group. Reads the parts of the list in the order of their
/// bounds.
///
/// # Errors
/// As [`ByScore::take`](super::by_score::ByScore::take).
pub(super) fn by_bounds<R: Reader>(list: &List<'_, R>, groups: &mut [Group]) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let mut heap: BinaryHeap<Part> = list.top()?.into();
    if heap.is_empty() {
        return scan(list, groups);
    }
    while let Some(Part { bound, first, what }) = heap.pop() {
        let best = ScoredDoc { doc: first, score: bound };
        if !groups.iter().any(|group| group.best.has_room(best)) {
            // All other parts have lower or equal bounds.
            return Ok(());
        }
        match what {
            What::Summary(layer, last) => {
                let mut first = first;
                for unit in list.summary(layer, last)? {
                    if is_wanted(groups, first, &unit) {
                        heap.push(unit.part(layer, first));
                    }
                    first = unit.last.saturating_add(1);
                }
            }
            What::Block(last) if is_wanted(groups, first, &Unit { last, bound }) => {
                list.visit_block(last, |block| {
                    add(groups, &list.weight, &block, |group| group.between(first, last))
                })?;
            }
            What::Block(_) | What::Postings(_) => {}
        }
    }
    Ok(())
}

/// Whether a unit may have one of the best postings of a group. No id of the unit is smaller than
/// `first`.
fn is_wanted(groups: &[Group], first: u32, unit: &Unit) -> bool {
    let best = ScoredDoc { doc: first, score: unit.bound };
    let has_ids = |group: &Group| !group.between(first, unit.last).is_empty();
    groups.iter().any(|group| group.best.has_room(best) && has_ids(group))
}

impl Group {
    pub(super) fn new(number: usize, ids: Vec<u32>, limit: usize) -> Self {
        Self { number, ids, best: TopK::new(limit, None), passed: 0 }
    }

    /// Estimates how many blocks have an id of the group and a sufficient score, if the scores and
    /// the ids up to `last` are evenly distributed. A share of `limit / ids` of the postings has a
    /// sufficient score.
    fn reads(&self, limit: usize, last: u64) -> u64 {
        let ids = self.ids.len() as u64;
        ids.min((limit as u64).saturating_mul(last) / ids.max(1))
    }

    /// The first id that the scan has not passed.
    fn next(&self) -> Option<&u32> {
        self.ids.get(self.passed)
    }

    /// Passes the ids up to `last`, and returns their places.
    fn pass(&mut self, last: u32) -> Range<usize> {
        let from = self.passed;
        let rest = self.ids.get(from..).unwrap_or_default();
        self.passed += rest.iter().take_while(|id| **id <= last).count();
        from..self.passed
    }

    /// The places of the ids of a range.
    fn between(&self, first: u32, last: u32) -> Range<usize> {
        let from = self.ids.partition_point(|id| *id < first);
        let rest = self.ids.get(from..).unwrap_or_default();
        from..from + rest.partition_point(|id| *id <= last)
    }

    /// Adds the ids at some places of the group that are documents of a block.
    fn add(&mut self, places: Range<usize>, docs: &[u32], score: impl Fn(usize) -> f64) {
        let Self { ids, best, .. } = self;
        let ids = ids.get(places).unwrap_or_default();
        let mut add = |doc, place| best.push(ScoredDoc { doc, score: score(place) });
        if ids.len() * SEARCHED < docs.len() {
            let shared = ids.iter().filter_map(|id| Some((*id, docs.binary_search(id).ok()?)));
            shared.for_each(|(doc, place)| add(doc, place));
        } else if docs.len() * SEARCHED < ids.len() {
            let shared = docs.iter().enumerate().filter(|(_, doc)| ids.binary_search(doc).is_ok());
            shared.for_each(|(place, doc)| add(*doc, place));
        } else {
            let (mut at, mut place) = (0, 0);
            while let (Some(id), Some(doc)) = (ids.get(at), docs.get(place)) {
                if id == doc {
                    add(*doc, place);
                }
                at += usize::from(id <= doc);
                place += usize::from(doc <= id);
            }
        }
    }
}
