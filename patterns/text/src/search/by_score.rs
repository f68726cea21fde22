//! The postings of one term, by descending score.
//!
//! A best-first search over the bounds of the list: a summary or a block is read only if its bound
//! is better than every known posting. A scan in the order of the ids reads more, because its first
//! blocks are scored before a good score is known.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use keyloom::{Error, KeyRange, Order, Reader, Result};

use super::bm25::Weight;
use super::cursor::Cursor;
use super::ranking::Ranked;
use super::top_k::ScoredDoc;
use crate::index::{ListKeys, with_id};
use crate::postings::{BLOCK_POSTINGS, Block, Malformed, SUMMARY_UNITS, each_unit};

/// The posting list of a term.
pub(super) struct List<'r, R> {
    reader: &'r R,
    keys: ListKeys,
    pub(super) weight: Weight,
    documents: u64,
    may_have_summaries: bool,
}

/// A block, or a summary of the layer below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) last: u32,
    pub(super) bound: f64,
}

/// A part of the list that may have the next posting.
pub(super) struct Part {
    /// A bound of the scores.
    pub(super) bound: f64,
    /// No id of the part is smaller.
    pub(super) first: u32,
    pub(super) what: What,
}

pub(super) enum What {
    Summary(u8, u32),
    Block(u32),
    /// Postings, with the best one last.
    Postings(Vec<ScoredDoc>),
}

impl Unit {
    /// The part of the list that a unit of a summary of layer `layer` describes. `first` is its
    /// first id.
    pub(super) fn part(self, layer: u8, first: u32) -> Part {
        let what = match layer.saturating_sub(1) {
            0 => What::Block(self.last),
            below => What::Summary(below, self.last),
        };
        Part { bound: self.bound, first, what }
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap keeps the greatest element on top.
        self.bound.total_cmp(&other.bound).then(other.first.cmp(&self.first))
    }
}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Part {}

/// The postings of a list after a given posting, by descending score. If scores are equal, the
/// smaller id comes first.
pub(super) struct ByScore {
    after: Option<ScoredDoc>,
    heap: BinaryHeap<Part>,
}

impl ByScore {
    /// # Errors
    /// As [`next`](ByScore::next).
    pub(super) fn new<R: Reader>(list: &List<'_, R>, after: Option<ScoredDoc>) -> Result<Self> {
        let mut all = Self { after, heap: list.top()?.into() };
        if all.heap.is_empty() {
            all.push_all(list)?;
        }
        Ok(all)
    }

    /// The next postings, at most `limit`.
    ///
    /// # Errors
    /// As [`next`](ByScore::next).
    pub(super) fn take<R: Reader>(
        &mut self,
        list: &List<'_, R>,
        limit: usize,
    ) -> Result<Vec<Ranked>> {
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(next) = self.next(list)?
        {
            found.push(Ranked::by_score(next));
        }
        Ok(found)
    }

    /// The next posting.
    ///
    /// # Errors
    /// Any error of the store; an error with the key if stored bytes are damaged.
    fn next<R: Reader>(&mut self, list: &List<'_, R>) -> Result<Option<ScoredDoc>> {
        while let Some(Part { first, what, .. }) = self.heap.pop() {
            match what {
                What::Summary(layer, last) => {
                    let mut first = first;
                    for unit in list.summary(layer, last)? {
                        self.heap.push(unit.part(layer, first));
                        first = unit.last.saturating_add(1);
                    }
                }
                What::Block(last) => self.push_block(list.block(last)?),
                What::Postings(mut postings) => {
                    let next = postings.pop();
                    self.push(postings);
                    return Ok(next);
                }
            }
        }
        Ok(None)
    }

    /// Pushes all blocks of the list. A list without summaries has at most 16 blocks; a short list,
    /// whose summaries are not read, may have more.
    fn push_all<R: Reader>(&mut self, list: &List<'_, R>) -> Result<()> {
        let weight = &list.weight;
        list.visit_blocks(|block| scored(&block, weight).map(|postings| self.push_block(postings)))
    }

    fn push_block(&mut self, mut postings: Vec<ScoredDoc>) {
        if let Some(after) = self.after {
            postings.retain(|posting| posting.is_after(&after));
        }
        self.push(postings);
    }

    fn push(&mut self, mut postings: Vec<ScoredDoc>) {
        let ranked = |a: &(usize, &ScoredDoc), b: &(usize, &ScoredDoc)| a.1.rank(b.1);
        let best = postings.iter().enumerate().min_by(ranked).map(|(place, best)| (place, *best));
        let Some((place, best)) = best else { return };
        let last = postings.len() - 1;
        postings.swap(place, last);
        let what = What::Postings(postings);
        self.heap.push(Part { bound: best.score, first: best.doc, what });
    }
}

impl<'r, R: Reader> List<'r, R> {
    /// The list of a cursor that has not read anything yet.
    pub(super) fn of(cursor: &Cursor<'r, R>, reader: &'r R) -> Self {
        Self {
            reader,
            keys: cursor.list().clone(),
            weight: cursor.weight,
            documents: cursor.documents(),
            may_have_summaries: cursor.may_have_summaries(),
        }
    }

    /// The approximate number of postings.
    pub(super) fn documents(&self) -> u64 {
        self.documents
    }

    /// Whether the list has only a few blocks.
    pub(super) fn is_short(&self) -> bool {
        !self.may_have_summaries
    }

    /// All postings, by ascending id.
    ///
    /// # Errors
    /// As [`ByScore::take`].
    pub(super) fn all(&self) -> Result<Vec<ScoredDoc>> {
        let mut all = Vec::new();
        self.visit_blocks(|block| {
            scored(&block, &self.weight).map(|postings| all.extend(postings))
        })?;
        Ok(all)
    }

    /// The summaries of the highest layer; empty if the list has none.
    ///
    /// # Errors
    /// As [`ByScore::take`].
    pub(super) fn top(&self) -> Result<Vec<Part>> {
        let (mut all, mut first) = (Vec::new(), 0);
        if self.may_have_summaries {
            let range = KeyRange::children(&self.keys.summaries).into_owned();
            let mut highest = None;
            for entry in self.reader.range(range, Order::Ascending)? {
                let (key, value) = entry?;
                let (layer, last) = self.keys.summary_of(&key)?;
                if layer != *highest.get_or_insert(layer) {
                    break;
                }
                let units = self.units(&key, &value, last)?;
                let bound = units.iter().map(|unit| unit.bound).fold(0.0, f64::max);
                all.push(Part { bound, first, what: What::Summary(layer, last) });
                first = last.saturating_add(1);
            }
        }
        Ok(all)
    }

    /// The units of a summary.
    ///
    /// # Errors
    /// As [`ByScore::take`].
    pub(super) fn summary(&self, layer: u8, last: u32) -> Result<Vec<Unit>> {
        let key = with_id(&self.keys.layer(layer), last);
        let value = self.reader.get(&key)?.ok_or_else(|| missing("a summary", &key))?;
        self.units(&key, &value, last)
    }

    fn units(&self, key: &[u8], value: &[u8], last: u32) -> Result<Vec<Unit>> {
        let mut units = Vec::with_capacity(SUMMARY_UNITS);
        let read = each_unit(value, last, |last, bounds| {
            units.push(Unit { last, bound: self.weight.bound(bounds.iter().copied()) });
        });
        read.map_err(|why| Error::from(why).at(key))?;
        Ok(units)
    }

    /// The postings of a block, by ascending id.
    fn block(&self, last: u32) -> Result<Vec<ScoredDoc>> {
        let mut postings = Vec::new();
        self.visit_block(last, |block| {
            postings = scored(&block, &self.weight)?;
            Ok(())
        })?;
        Ok(postings)
    }

    /// Passes the block that ends with an id to `visit`.
    ///
    /// # Errors
    /// As [`ByScore::take`].
    pub(super) fn visit_block(
        &self,
        last: u32,
        visit: impl FnOnce(Block<'_>) -> Result<(), Malformed>,
    ) -> Result<()> {
        let key = self.keys.block(last);
        let value = self.reader.get(&key)?.ok_or_else(|| missing("a block", &key))?;
        let visited = Block::parse(&value, last).and_then(visit);
        visited.map_err(|why| Error::from(why).at(&key))
    }

    /// Passes the blocks to `visit`, in the order of their ids.
    ///
    /// # Errors
    /// As [`ByScore::take`].
    pub(super) fn visit_blocks(
        &self,
        mut visit: impl FnMut(Block<'_>) -> Result<(), Malformed>,
    ) -> Result<()> {
        for entry in self.reader.range(self.keys.from(0), Order::Ascending)? {
            let (key, value) = entry?;
            let visited = Block::parse(&value, self.keys.last_id(&key)?).and_then(&mut visit);
            visited.map_err(|why| Error::from(why).at(&key))?;
        }
        Ok(())
    }
}

/// The postings of a block with their scores.
fn scored(block: &Block<'_>, weight: &Weight) -> Result<Vec<ScoredDoc>, Malformed> {
    let [mut docs, mut freqs, mut lens] = [[0; BLOCK_POSTINGS]; 3];
    block.docs(&mut docs)?;
    block.freqs(&mut freqs);
    block.lens(&mut lens);
    let all = docs.iter().zip(freqs).zip(lens).take(block.count());
    let score = |((doc, freq), len): ((&u32, u32), u32)| ScoredDoc {
        doc: *doc,
        score: weight.score(f64::from(freq), len),
    };
    Ok(all.map(score).collect())
}

#[cold]
fn missing(what: &str, key: &[u8]) -> Error {
    Error::other(format!("{what} of a posting list is missing; repair the index")).at(key)
}
