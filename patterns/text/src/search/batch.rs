//! Collects the documents of a window by whole blocks. An operator tree takes some 20 ns per
//! posting, a loop over decoded columns 2 ns.

use keyloom::{Reader, Result};

use super::bm25::{ROUNDING, Weight};
use super::cursor::Cursor;
use super::node::Node;
use super::top_k::{ScoredDoc, TopK};
use super::window::{END, Window};
use crate::postings::BLOCK_POSTINGS;

/// If a list of candidates is this many times shorter than a block, each candidate is searched for
/// in the block. Otherwise the list and the block are merged.
// A binary search in a block of 128 postings takes seven steps, a merge one step per posting. With
// a lower ratio, the searches take more steps than the merge.
const SEARCHED: usize = 16;

/// Adds the documents of a window from `target` on. Returns the next document to visit: there are
/// no other matches before it.
///
/// # Errors
/// As [`rank`](super::rank::rank).
pub(crate) fn collect<R: Reader>(
    root: &mut Node<'_, R>,
    target: u32,
    window: Window,
    common: &mut Common,
    top: &mut TopK,
) -> Result<u32> {
    match root {
        Node::Term(cursor) => one(cursor, target, window.last, top),
        Node::Boolean(boolean) => match boolean.terms() {
            Some(mut terms) => all(&mut terms, target, window.last, common, top),
            None => each(root, target, window, top),
        },
        _ => each(root, target, window, top),
    }
}

/// Any operator, document by document.
fn each<R: Reader>(
    root: &mut Node<'_, R>,
    target: u32,
    window: Window,
    top: &mut TopK,
) -> Result<u32> {
    let mut doc = root.seek(target)?;
    while doc <= window.last && doc != END {
        let score = root.score()?;
        top.push(ScoredDoc { doc, score });
        if window.score <= top.least() {
            return Ok(window.last.saturating_add(1));
        }
        doc = root.seek(doc + 1)?;
    }
    Ok(doc)
}

/// The documents of a term, within one block.
fn one<R: Reader>(
    cursor: &mut Cursor<'_, R>,
    target: u32,
    last: u32,
    top: &mut TopK,
) -> Result<u32> {
    let weight = cursor.weight;
    let [docs, freqs, lens] = cursor.columns(target)?;
    let mut scores = [0.0; BLOCK_POSTINGS];
    for ((score, freq), len) in scores.iter_mut().zip(freqs).zip(lens) {
        *score = weight.score(f64::from(*freq), *len);
    }
    let from = docs.partition_point(|doc| *doc < target);
    for (doc, score) in docs.iter().zip(scores).skip(from) {
        if score > top.least() && *doc <= last {
            top.push(ScoredDoc { doc: *doc, score });
        }
    }
    Ok(last.saturating_add(1))
}

/// The documents that contain all terms, within one block of each term that is not looked up.
///
/// The postings of the rarest term are scored first. A posting is searched for in the blocks of the
/// other terms only if it can be among the best, given the bounds of these terms. Later in a
/// search, few postings can, so most of these blocks are neither read nor decoded.
fn all<R: Reader>(
    terms: &mut [&mut Cursor<'_, R>],
    target: u32,
    last: u32,
    common: &mut Common,
    top: &mut TopK,
) -> Result<u32> {
    // For a common and a less common term in 100,000 documents, intersecting all blocks before
    // scoring took twice as long as scoring the rarest term first.
    let rarest = (0..terms.len()).min_by_key(|n| terms.get(*n).map(|term| term.documents()));
    let Some(rarest) = rarest else { return Ok(END) };
    common.bounds.clear();
    for (number, term) in terms.iter_mut().enumerate() {
        let bound = if number == rarest { 0.0 } else { term.window(target, 0)?.score };
        common.bounds.push(bound);
    }
    let Some(lead) = terms.get_mut(rarest) else { return Ok(END) };
    let weight = lead.weight;
    let columns = lead.columns(target)?;
    let [docs, ..] = columns;
    let from = docs.partition_point(|doc| *doc < target);
    let to = docs.partition_point(|doc| *doc <= last);
    let next = docs.get(to).copied();
    let columns = columns.map(|column| column.get(from..to).unwrap_or_default());
    common.begin(rarest, columns, &weight, top.least());
    // The next document of the rarest term in its block after the window. If there is none, the id
    // after the block.
    let after = next.unwrap_or(lead.block_end().saturating_add(1));
    // Lookups come last, when the fewest documents are left.
    for is_looked_up in [false, true] {
        for (number, term) in terms.iter_mut().enumerate() {
            if number == rarest || term.is_looked_up() != is_looked_up {
                continue;
            }
            if common.many == 0 {
                return Ok(after);
            }
            match is_looked_up {
                true => common.look_up(number, term, top.least())?,
                false => common.intersect(number, term)?,
            }
            common.prune(top.least());
        }
    }
    common.each(|doc, score| top.push(ScoredDoc { doc, score }));
    Ok(after)
}

/// The documents that contain all terms intersected so far, with the scores of these terms.
pub(crate) struct Common {
    docs: [u32; BLOCK_POSTINGS],
    /// The sum of the scores of each document so far, added in any order.
    sums: [f64; BLOCK_POSTINGS],
    many: usize,
    /// The scores of each term that was intersected.
    scores: Vec<[f64; BLOCK_POSTINGS]>,
    /// A bound of the scores of each term that is not intersected yet, 0 for the others.
    bounds: Vec<f64>,
}

impl Common {
    pub(crate) fn new() -> Self {
        let (docs, sums) = ([0; BLOCK_POSTINGS], [0.0; BLOCK_POSTINGS]);
        Self { docs, sums, many: 0, scores: Vec::new(), bounds: Vec::new() }
    }

    /// Begins with documents, frequencies and lengths of one term.
    fn begin(
        &mut self,
        number: usize,
        [docs, freqs, lens]: [&[u32]; 3],
        weight: &Weight,
        least: f64,
    ) {
        self.many = docs.len();
        self.docs.iter_mut().zip(docs).for_each(|(to, doc)| *to = *doc);
        for ((sum, freq), len) in self.sums.iter_mut().zip(freqs).zip(lens) {
            *sum = weight.score(f64::from(*freq), *len);
        }
        self.prune(least);
        self.scores.resize(self.bounds.len(), [0.0; BLOCK_POSTINGS]);
        if let Some(scores) = self.scores.get_mut(number) {
            let sums = self.sums.iter().take(self.many);
            scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = *sum);
        }
    }

    fn docs(&self) -> &[u32] {
        self.docs.get(..self.many).unwrap_or_default()
    }

    /// Passes each document and its score to `visit`. The scores are added in the order of the
    /// operands, as in every operator.
    fn each(&self, mut visit: impl FnMut(u32, f64)) {
        for (n, doc) in self.docs().iter().enumerate() {
            visit(*doc, self.scores.iter().filter_map(|scores| scores.get(n)).sum());
        }
    }

    /// Removes documents that cannot have a better score than `least`.
    fn prune(&mut self, least: f64) {
        let rest: f64 = self.bounds.iter().sum();
        let (mut places, mut many) = ([0; BLOCK_POSTINGS], 0);
        for (n, sum) in (0..).zip(self.sums.iter().take(self.many)) {
            if let Some(place) = places.get_mut(many) {
                *place = n;
            }
            many += usize::from((sum + rest) * ROUNDING > least);
        }
        if many < self.many {
            self.retain(places.iter().take(many).copied());
        }
    }

    /// Keeps the documents at the given places, which must be in ascending order.
    fn retain(&mut self, places: impl Iterator<Item = u8>) {
        self.many = 0;
        for from in places {
            let from = usize::from(from);
            move_to(&mut self.docs, self.many, from);
            move_to(&mut self.sums, self.many, from);
            self.scores.iter_mut().for_each(|scores| move_to(scores, self.many, from));
            self.many += 1;
        }
    }

    /// Keeps the documents that contain another term too, which may be in several of its blocks. A
    /// block is decoded only if a document can have a better score than `least`, given the bound of
    /// the block.
    fn look_up<R: Reader>(
        &mut self,
        number: usize,
        term: &mut Cursor<'_, R>,
        least: f64,
    ) -> Result<()> {
        if let Some(bound) = self.bounds.get_mut(number) {
            *bound = 0.0;
        }
        let rest: f64 = self.bounds.iter().sum();
        let (mut places, mut found, mut many) = ([0; BLOCK_POSTINGS], [0.0; BLOCK_POSTINGS], 0);
        let mut block: Option<Window> = None;
        for (n, (doc, sum)) in (0..).zip(self.docs.iter().zip(&self.sums).take(self.many)) {
            let window = match block.filter(|window| window.last >= *doc) {
                Some(window) => window,
                None => *block.insert(term.block_window(*doc)?),
            };
            if (sum + rest + window.score) * ROUNDING > least
                && term.seek(*doc)? == *doc
                && let (Some(place), Some(score)) = (places.get_mut(many), found.get_mut(many))
            {
                (*place, *score) = (n, term.score_alone());
                many += 1;
            }
        }
        self.retain(places.iter().take(many).copied());
        let scores = self.scores.get_mut(number).into_iter().flatten();
        for ((to, sum), score) in scores.zip(&mut self.sums).zip(found).take(many) {
            *to = score;
            *sum += score;
        }
        Ok(())
    }

    /// Keeps the documents that contain another term too.
    fn intersect<R: Reader>(&mut self, number: usize, term: &mut Cursor<'_, R>) -> Result<()> {
        let Some(first) = self.docs().first() else { return Ok(()) };
        let others = term.docs(*first)?;
        let mut pairs = [(0, 0); BLOCK_POSTINGS];
        let many = match self.many * SEARCHED < others.len() {
            true => searched(self.docs(), others, &mut pairs),
            false => merged(self.docs(), others, &mut pairs),
        };
        let pairs = pairs.get(..many).unwrap_or_default();
        self.retain(pairs.iter().map(|(place, _)| *place));
        if let Some(bound) = self.bounds.get_mut(number) {
            *bound = 0.0;
        }
        let weight = term.weight;
        let scores = self.scores.get_mut(number).into_iter().flatten();
        let mut scores = scores.zip(&mut self.sums);
        term.each_number(pairs.iter().map(|(_, place)| *place), |freq, len| {
            if let Some((score, sum)) = scores.next() {
                *score = weight.score(f64::from(freq), len);
                *sum += *score;
            }
        });
        Ok(())
    }
}

/// Copies the element at `from` to the place `to`.
fn move_to<T: Copy>(all: &mut [T; BLOCK_POSTINGS], to: usize, from: usize) {
    let element = all.get(from).copied();
    if let (Some(to), Some(element)) = (all.get_mut(to), element) {
        *to = element;
    }
}

/// The places of equal documents, found by a binary search for each.
fn searched(docs: &[u32], others: &[u32], pairs: &mut [(u8, u8); BLOCK_POSTINGS]) -> usize {
    let mut many = 0;
    for (n, doc) in docs.iter().enumerate() {
        if let Ok(place) = others.binary_search(doc)
            && let Some(pair) = pairs.get_mut(many)
        {
            *pair = (n as u8, place as u8);
            many += 1;
        }
    }
    many
}

/// The places of equal documents, found by a merge without data-dependent branches.
fn merged(docs: &[u32], others: &[u32], pairs: &mut [(u8, u8); BLOCK_POSTINGS]) -> usize {
    let (mut n, mut place, mut many) = (0, 0, 0);
    while let (Some(doc), Some(other)) = (docs.get(n), others.get(place)) {
        if let Some(pair) = pairs.get_mut(many) {
            *pair = (n as u8, place as u8);
        }
        many += usize::from(doc == other);
        n += usize::from(doc <= other);
        place += usize::from(other <= doc);
    }
    many
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merges_and_searches_find_the_common_documents(
            docs in btree_set(0..400_u32, 0..=BLOCK_POSTINGS),
            others in btree_set(0..400_u32, 0..=BLOCK_POSTINGS),
        ) {
            let [docs, others] = [docs, others].map(|set| set.into_iter().collect::<Vec<_>>());
            let expected: Vec<(u8, u8)> = (0..)
                .zip(&docs)
                .filter_map(|(n, doc)| Some((n, others.binary_search(doc).ok()? as u8)))
                .collect();
            for find in [merged, searched] {
                let mut pairs = [(0, 0); BLOCK_POSTINGS];
                let many = find(&docs, &others, &mut pairs);
                prop_assert_eq!(pairs.get(..many), Some(&expected[..]));
            }
        }
    }
}
