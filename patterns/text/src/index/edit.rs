//! Computes the new blocks of a posting list from the stored blocks and the changes.
//!
//! 1. Each change goes to the block whose range contains the document. If there is no such block, a
//!    new block takes the largest range that contains the document but no postings.
//! 2. A block that has become too large is split into halves.
//! 3. A block that has lost postings is joined with its sibling while both fit into one block.
//!
//! Then the summaries of changed blocks are written.
//!
//! Only one division of the postings follows the rule of [`postings`](crate::postings), so the
//! result does not depend on the order of changes.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::{Reader, Result};
use keyloom_kit::derived::SortedWrites;

use super::fetch::{StoredBlock, end_before, few_in};
use super::lists::{ListChanges, PostingChange};
use super::summaries::{self, UnitChanges};
use crate::postings::{BLOCK_POSTINGS, Encoded, IdRange, Posting, Postings, PostingsSlice, encode};

/// A change of a posting list: the stored blocks that it replaces, and the new blocks.
pub(super) struct Edit<'e, R: Reader> {
    reader: &'e R,
    list: &'e ListChanges<'e, 'e>,
    /// The stored blocks that are replaced, by last id.
    replaced: BTreeMap<u32, StoredBlock<R::Bytes<'e>>>,
    /// The new blocks, by last id. Before the division, a block may be empty or too large.
    blocks: BTreeMap<u32, NewBlock>,
}

struct NewBlock {
    range: IdRange,
    postings: Postings,
    /// Whether the block has fewer postings than the stored one.
    is_smaller: bool,
}

/// The field length in the stored posting before a change; `None` if there was no posting.
pub(super) type Before = Option<u32>;

impl<'e, R: Reader> Edit<'e, R> {
    /// Makes the changes of a list, given its [stored blocks](super::fetch::blocks), and collects
    /// the writes. Returns the [`Before`] of each change.
    pub(super) fn make(
        reader: &'e R,
        list: &'e ListChanges<'e, 'e>,
        stored: Vec<StoredBlock<R::Bytes<'e>>>,
        writes: &mut SortedWrites,
    ) -> Result<Vec<Before>> {
        let (replaced, blocks) = (BTreeMap::new(), BTreeMap::new());
        let mut edit = Self { reader, list, replaced, blocks };
        let before = edit.change(stored)?;
        edit.join()?;
        edit.write(writes)?;
        Ok(before)
    }

    /// Applies the changes, block by block.
    fn change(&mut self, stored: Vec<StoredBlock<R::Bytes<'e>>>) -> Result<Vec<Before>> {
        let mut before = Vec::with_capacity(self.list.changes.len());
        let mut stored = stored.into_iter().peekable();
        let mut rest = self.list.changes;
        while let Some(first) = rest.first() {
            while stored.next_if(|block| block.range.last() < first.doc).is_some() {}
            let next = stored.peek().map(|block| block.range);
            let block = stored.next_if(|block| block.range.contains(first.doc));
            let range = match &block {
                Some(block) => block.range,
                None => self.free_range(first, next)?,
            };
            let mine = rest.partition_point(|change| change.doc <= range.last());
            let (changes, others) = rest.split_at_checked(mine).unwrap_or((rest, &[]));
            rest = others;
            let old = match &block {
                Some(block) => block.decode(&self.list.keys, self.list.detail)?,
                None => Postings::default(),
            };
            let postings = merged(&old, changes, &mut before);
            let is_smaller = postings.len() < old.len();
            self.blocks.insert(range.last(), NewBlock { range, postings, is_smaller });
            if let Some(block) = block {
                self.replaced.insert(range.last(), block);
            }
        }
        Ok(before)
    }

    /// The largest range that contains a document but no postings.
    fn free_range(&self, change: &PostingChange<'_>, next: Option<IdRange>) -> Result<IdRange> {
        // The change removes a posting that does not exist, so any range will do.
        if change.new.is_none() {
            return Ok(IdRange::of(change.doc, 0));
        }
        let before = end_before(self.reader, &self.list.keys, change.doc)?;
        Ok(IdRange::between(before, change.doc, next.map(IdRange::first)))
    }

    /// Joins blocks that have lost postings with their siblings.
    fn join(&mut self) -> Result<()> {
        let smaller = self.blocks.values().filter(|block| block.is_smaller);
        let smaller: Vec<IdRange> = smaller.map(|block| block.range).collect();
        for range in smaller {
            let mut range = range;
            while let Some(parent) = self.join_with_sibling(range)? {
                range = parent;
            }
        }
        Ok(())
    }

    /// Joins the blocks of a range and of its sibling; `None` if they have too many postings.
    fn join_with_sibling(&mut self, range: IdRange) -> Result<Option<IdRange>> {
        let (Some(parent), Some(sibling)) = (range.parent(), range.sibling()) else {
            return Ok(None);
        };
        // An earlier step may have joined the block already.
        if !self.blocks.get(&range.last()).is_some_and(|block| block.range == range) {
            return Ok(None);
        }
        let known: usize = self.within(parent).map(|(_, block)| block.postings.len()).sum();
        let Some(most) = BLOCK_POSTINGS.checked_sub(known) else { return Ok(None) };
        let is_replaced = |last| self.replaced.contains_key(&last);
        let Some(stored) = few_in(self.reader, self.list, sibling, most, is_replaced)? else {
            return Ok(None);
        };
        for block in stored {
            let (range, is_smaller) = (block.range, false);
            let postings = block.decode(&self.list.keys, self.list.detail)?;
            self.blocks.insert(range.last(), NewBlock { range, postings, is_smaller });
            self.replaced.insert(range.last(), block);
        }
        let parts: Vec<u32> = self.within(parent).map(|(last, _)| *last).collect();
        let mut postings = Postings::default();
        for block in parts.iter().filter_map(|last| self.blocks.remove(last)) {
            postings.append(&block.postings.as_slice());
        }
        let joined = NewBlock { range: parent, postings, is_smaller: true };
        self.blocks.insert(parent.last(), joined);
        Ok(Some(parent))
    }

    fn within(&self, range: IdRange) -> impl Iterator<Item = (&u32, &NewBlock)> {
        self.blocks.range(range.first()..=range.last())
    }

    /// Collects the writes that differ from the stored bytes.
    fn write(&self, writes: &mut SortedWrites) -> Result<()> {
        let (keys, mut kept, mut units) = (&self.list.keys, Vec::new(), UnitChanges::new());
        let mut is_alone = self.replaced.values().all(|block| block.range == IdRange::ALL);
        for block in self.blocks.values() {
            divide(block.range, block.postings.as_slice(), &mut |range, postings| {
                kept.push(range.last());
                is_alone &= range == IdRange::ALL;
                let encoded = encode(range, &postings, self.list.detail);
                self.put(range.last(), &encoded, writes)?;
                let stored = self.replaced.get(&range.last());
                let before = stored.map(|stored| stored.bounds(keys)).transpose()?;
                if before.as_ref() != Some(&encoded.bounds) {
                    units.insert(range.last(), Some(encoded.bounds));
                }
                Ok(())
            })?;
        }
        for (last, block) in &self.replaced {
            if !kept.contains(last) {
                writes.delete(&keys.block(*last))?;
                if block.bytes().1.is_some() {
                    writes.delete(&keys.of_occurrences(*last))?;
                }
                units.insert(*last, None);
            }
        }
        if is_alone {
            return Ok(());
        }
        summaries::update(self.reader, keys, units, kept.len() > self.replaced.len(), writes)
    }

    fn put(&self, last: u32, encoded: &Encoded, writes: &mut SortedWrites) -> Result<()> {
        let stored = self.replaced.get(&last).map(StoredBlock::bytes);
        let (block, separate) = stored.map_or((None, None), |(block, other)| (Some(block), other));
        if block != Some(&encoded.block) {
            writes.put(&self.list.keys.block(last), &encoded.block)?;
        }
        let occurrences = encoded.occurrences.deref();
        match (occurrences.is_empty(), separate) {
            (true, Some(_)) => writes.delete(&self.list.keys.of_occurrences(last)),
            (false, separate) if separate != Some(occurrences) => {
                writes.put(&self.list.keys.of_occurrences(last), occurrences)
            }
            _ => Ok(()),
        }
    }
}

/// Visits the blocks of the postings of a range.
pub(super) fn divide<'p>(
    range: IdRange,
    postings: PostingsSlice<'p>,
    visit: &mut impl FnMut(IdRange, PostingsSlice<'p>) -> Result<()>,
) -> Result<()> {
    // The recursion depth is at most 32, the number of levels.
    match range.halves().filter(|_| postings.len() > BLOCK_POSTINGS) {
        _ if postings.is_empty() => Ok(()),
        None => visit(range, postings),
        Some([low, high]) => {
            let (before, after) = postings.split_after(low.last());
            divide(low, before, visit)?;
            divide(high, after, visit)
        }
    }
}

/// Applies changes to postings, and appends the [`Before`] of each change to `before`.
fn merged(old: &Postings, changes: &[PostingChange<'_>], before: &mut Vec<Before>) -> Postings {
    let mut postings = Postings::default();
    let mut olds = old.as_slice().iter().peekable();
    for change in changes {
        while let Some(kept) = olds.next_if(|posting| posting.doc < change.doc) {
            postings.push(kept);
        }
        let old = olds.next_if(|posting| posting.doc == change.doc);
        before.push(old.map(|posting| posting.len));
        if let Some((freq, positions)) = change.new {
            postings.push(Posting { doc: change.doc, freq, len: change.len, positions });
        }
    }
    olds.for_each(|posting| postings.push(posting));
    postings
}
