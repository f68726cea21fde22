//! The best documents of the terms of a pattern.
//!
//! All documents of a term have the same score, so the best ones are those with the smallest ids. A
//! page needs only the beginning of each list. Once the page is full, it needs no list of a worse
//! term. In 100,000 documents, a prefix with 2,850 terms takes 1.0 ms in this way, and 1.9 ms if
//! the documents of all terms are collected first.

use std::collections::HashSet;

use keyloom::{Error, Reader, Result};

use super::build::Builder;
use super::expand::MatchedTerm;
use super::plan::Plan;
use super::top_k::{ScoredDoc, TopK};
use crate::index::{Catalog, FieldInfo};
use crate::postings::{BLOCK_POSTINGS, Block, Malformed};

/// The maximum number of results of a page that is collected in this way.
// For a longer page, a hash set of its documents costs more than bitmaps of all documents.
pub(super) const MOST: usize = 1_024;

/// The terms of a pattern that is a whole query.
pub(super) struct LoneTerms<'p> {
    field: FieldInfo,
    terms: &'p [MatchedTerm],
    /// The score of a document of a term with the distance 0.
    score: f64,
}

impl<'p> LoneTerms<'p> {
    /// The terms of a plan whose scores are multiplied by `boost`; `None` if the plan has other
    /// parts.
    pub(super) fn of(plan: &'p Plan, boost: f64) -> Option<Self> {
        match plan {
            Plan::Terms { field, terms } => Some(Self { field: *field, terms, score: boost }),
            Plan::Boost(plan, factor) => Self::of(plan, boost * factor),
            _ => None,
        }
    }
}

/// The results so far.
struct Best<'t> {
    top: &'t mut TopK,
    /// The documents that were passed to `top`, since a document may have several of the terms.
    seen: HashSet<u32>,
    ids: [u32; BLOCK_POSTINGS],
}

impl Best<'_> {
    /// Adds documents of a block. Returns whether the documents after the block may be needed.
    fn extend(&mut self, block: &Block<'_>, score: f64) -> Result<bool, Malformed> {
        if !self.top.has_room(ScoredDoc { doc: block.first_doc(), score }) {
            return Ok(false);
        }
        block.docs(&mut self.ids)?;
        for doc in self.ids.iter().take(block.count()) {
            let found = ScoredDoc { doc: *doc, score };
            if !self.top.has_room(found) {
                return Ok(false);
            }
            if self.seen.insert(*doc) {
                self.top.push(found);
            }
        }
        Ok(true)
    }
}

impl<C: Catalog, R: Reader> Builder<'_, '_, C, R> {
    /// Collects the best documents of any of the terms.
    ///
    /// # Errors
    /// Any error of the store; an error with the key if stored bytes are damaged.
    pub(super) fn best_of_terms(&self, lone: &LoneTerms<'_>, top: &mut TopK) -> Result<()> {
        let mut terms = lone.terms.to_vec();
        // The best terms come first, so a document gets its score from the first list that has it.
        terms.sort_by_key(|term| term.distance);
        let score = |distance: u8| lone.score / (1.0 + f64::from(distance));
        let mut best = Best { top, seen: HashSet::new(), ids: [0; BLOCK_POSTINGS] };
        // A remote store returns the beginnings of all lists in one round trip.
        let is_remote = self.reader.prefetched() > 0;
        for group in terms.chunk_by(|a, b| is_remote || a.distance == b.distance) {
            let first = group.first().map_or(0.0, |term| score(term.distance));
            if !best.top.has_room(ScoredDoc { doc: 0, score: first }) {
                break;
            }
            self.each_block(lone.field, group, |list, distance, key, bytes| {
                let block = Block::parse(bytes, list.last_id(key)?);
                let needs_more = block.and_then(|block| best.extend(&block, score(distance)));
                needs_more.map_err(|why| Error::from(why).at(key))
            })?;
        }
        Ok(())
    }
}
