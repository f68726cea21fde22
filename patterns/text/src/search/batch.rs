//! The documents of a window, by whole blocks: an operator tree takes some 20 ns per posting, a
//! loop over decoded columns two.

use std::ops::Range;

use keyloom::{Reader, Result};

use super::cursor::{Cursor, END, Window};
use super::node::Node;
use super::top_k::{ScoredDoc, TopK};
use crate::postings::BLOCK_POSTINGS;

/// A list of candidates that is so many times shorter than a block is searched for in the block;
/// otherwise both are merged.
const SEARCHED: usize = 16;

/// Adds the documents of a window from `target` on. Returns a document before which there are no
/// more matches.
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

/// The documents that all terms have, within one block of each.
fn all<R: Reader>(
    terms: &mut [&mut Cursor<'_, R>],
    target: u32,
    last: u32,
    common: &mut Common,
    top: &mut TopK,
) -> Result<u32> {
    let rarest = (0..terms.len()).min_by_key(|n| terms.get(*n).map(|term| term.documents()));
    let Some(rarest) = rarest else { return Ok(END) };
    let Some(lead) = terms.get_mut(rarest) else { return Ok(END) };
    let docs = lead.docs(target)?;
    let from = docs.partition_point(|doc| *doc < target);
    let to = docs.partition_point(|doc| *doc <= last);
    // The first document of the rarest term after the window; its block ends there or later.
    let (next, range) = (docs.get(to).copied(), from..to);
    common.begin(rarest, docs, range.clone());
    let after = next.unwrap_or(lead.block_end().saturating_add(1));
    if range.is_empty() {
        return Ok(after);
    }
    for (number, term) in terms.iter_mut().enumerate().filter(|(number, _)| *number != rarest) {
        common.intersect(number, term.docs(common.first())?);
        if common.many == 0 {
            return Ok(after);
        }
    }
    let mut scores = [0.0; BLOCK_POSTINGS];
    // In the order of the operands, as any operator adds them.
    for (number, term) in terms.iter_mut().enumerate() {
        let (weight, mut sums) = (term.weight, scores.iter_mut());
        term.each_number(common.places_of(number), |freq, len| {
            if let Some(sum) = sums.next() {
                *sum += weight.score(f64::from(freq), len);
            }
        })?;
    }
    for (doc, score) in common.docs.iter().zip(scores).take(common.many) {
        top.push(ScoredDoc { doc: *doc, score });
    }
    Ok(after)
}

/// Documents that some terms have, with their places in the blocks of these terms.
pub(crate) struct Common {
    docs: [u32; BLOCK_POSTINGS],
    many: usize,
    /// The number of a term, and the places in its block.
    places: Vec<(usize, [u8; BLOCK_POSTINGS])>,
}

impl Common {
    pub(crate) fn new() -> Self {
        Self { docs: [0; BLOCK_POSTINGS], many: 0, places: Vec::new() }
    }

    /// Begins with the documents of one term.
    fn begin(&mut self, number: usize, docs: &[u32], range: Range<usize>) {
        self.places.clear();
        let mut places = [0; BLOCK_POSTINGS];
        places.iter_mut().zip(range.clone()).for_each(|(to, place)| *to = place as u8);
        self.places.push((number, places));
        self.many = range.len();
        let docs = docs.get(range).unwrap_or_default();
        self.docs.iter_mut().zip(docs).for_each(|(to, doc)| *to = *doc);
    }

    fn docs(&self) -> &[u32] {
        self.docs.get(..self.many).unwrap_or_default()
    }

    fn first(&self) -> u32 {
        self.docs().first().copied().unwrap_or(END)
    }

    /// Keeps the documents that another term has too.
    fn intersect(&mut self, number: usize, others: &[u32]) {
        let mut pairs = [(0, 0); BLOCK_POSTINGS];
        let many = match self.many * SEARCHED < others.len() {
            true => searched(self.docs(), others, &mut pairs),
            false => merged(self.docs(), others, &mut pairs),
        };
        for (n, (from, _)) in pairs.iter().take(many).enumerate() {
            keep(&mut self.docs, n, *from);
            self.places.iter_mut().for_each(|(_, places)| keep(places, n, *from));
        }
        self.many = many;
        self.places.push((number, pairs.map(|(_, place)| place)));
    }

    fn places_of(&self, number: usize) -> &[u8] {
        let places = self.places.iter().find(|(other, _)| *other == number);
        places.and_then(|(_, places)| places.get(..self.many)).unwrap_or_default()
    }
}

/// Moves an element to the front.
fn keep<T: Copy>(all: &mut [T; BLOCK_POSTINGS], to: usize, from: u8) {
    let element = all.get(usize::from(from)).copied();
    if let (Some(to), Some(element)) = (all.get_mut(to), element) {
        *to = element;
    }
}

/// The places of equal documents, by a search for each.
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

/// The places of equal documents, by a merge without branches that depend on the documents.
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
