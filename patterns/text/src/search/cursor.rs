//! A cursor over the postings of one term.

use std::collections::VecDeque;

use keyloom::{Entry, EntryPage, Error, KeyRange, Order, Reader, Result};
use keyloom_kit::Walk;

use super::bm25::Weight;
use super::skips::Skips;
use super::window::{END, Window};
use crate::index::ListKeys;
use crate::postings::{BLOCK_POSTINGS, Block, IdRange, Layout, Occurrences};

/// The summaries of a list with fewer documents are not read, since the list has only a few blocks.
const SHORT_LIST: u64 = 1_024;

/// If a block has this many times more postings than are needed, the needed ones are read one by
/// one.
// Integers are unpacked in batches of 32, so reading them one by one only pays off for a few.
const FEW_NUMBERS: usize = 8;

/// Blocks that were read before the cursor began.
struct FirstBlocks<B> {
    blocks: VecDeque<Entry<B>>,
    /// The last id of the last block, if more blocks follow.
    more_after: Option<u32>,
}

/// A cursor over the postings of one term, in the order of their ids.
///
/// A block is decoded when one of its documents is needed. The bound of a block is read from its
/// header.
pub(crate) struct Cursor<'r, R: Reader> {
    reader: &'r R,
    keys: ListKeys,
    pub(crate) weight: Weight,
    walk: Walk<'r, R>,
    /// The first blocks, if they were read together with those of other terms.
    first: Option<FirstBlocks<R::Bytes<'r>>>,
    /// The summaries of the list; `None` before they are read.
    skips: Option<Skips>,
    /// The current block. The range of the block ends at `last`.
    bytes: Option<R::Bytes<'r>>,
    /// The occurrences of the current block, once they are read.
    separate: Option<R::Bytes<'r>>,
    last: u32,
    /// `None` if the block ends before the documents that are needed.
    layout: Option<Layout>,
    ids: Box<[[u32; BLOCK_POSTINGS]; 3]>,
    count: usize,
    at: usize,
    /// Which columns of the current block are decoded: ids, frequencies, lengths.
    is_decoded: [bool; 3],
    doc: u32,
    is_begun: bool,
    /// The number of documents of the list, which determines whether summaries are read.
    documents: u64,
    /// Whether [`window`](Cursor::window) returns one bound for the whole list.
    is_looked_up: bool,
    places: Places,
}

/// Where the occurrences of the current document are among the occurrences of its block.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// The index of a posting in the block. `before` is the number of occurrences before this
    /// posting.
    at: usize,
    before: u64,
    /// The number of occurrences of all postings of the block.
    total: u64,
    /// The number of bytes of the block that are occurrences.
    inline: usize,
}

impl Places {
    fn of(block: &Block<'_>, frequencies: &[u32]) -> Self {
        let total = frequencies.iter().map(|frequency| u64::from(*frequency)).sum();
        Self { at: 0, before: 0, total, inline: block.inline().map_or(0, <[u8]>::len) }
    }

    /// Advances to a posting that is not before the current one.
    fn advance(&mut self, at: usize, frequencies: &[u32]) {
        let skipped = frequencies.get(self.at..at).unwrap_or_default();
        self.before += skipped.iter().map(|frequency| u64::from(*frequency)).sum::<u64>();
        self.at = at;
    }
}

impl<'r, R: Reader> Cursor<'r, R> {
    /// A cursor before the first posting.
    pub(crate) fn new(reader: &'r R, keys: ListKeys, weight: Weight) -> Self {
        Self {
            reader,
            keys,
            weight,
            walk: Walk::new(reader, Order::Ascending, 1),
            first: None,
            skips: None,
            bytes: None,
            separate: None,
            last: 0,
            layout: None,
            ids: Box::new([[0; BLOCK_POSTINGS]; 3]),
            count: 0,
            at: 0,
            is_decoded: [false; 3],
            doc: 0,
            is_begun: false,
            documents: 0,
            is_looked_up: false,
            places: Places::default(),
        }
    }

    /// Sets the approximate number of documents of the list. Only long lists may have summaries.
    pub(crate) fn of_documents(self, documents: u64) -> Self {
        Self { documents, ..self }
    }

    /// The approximate number of documents with the term.
    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// Whether the summaries of the list are read: it is long, and its bounds are needed.
    pub(crate) fn may_have_summaries(&self) -> bool {
        self.documents >= SHORT_LIST && !self.is_looked_up
    }

    /// Declares that only single documents will be looked up, so the bounds of the blocks are not
    /// worth their reads.
    pub(crate) fn look_up(&mut self) {
        self.is_looked_up = true;
    }

    /// Whether a read costs no round trip.
    pub(crate) fn is_local(&self) -> bool {
        self.reader.prefetched() == 0
    }

    pub(crate) fn is_looked_up(&self) -> bool {
        self.is_looked_up
    }

    /// The keys of the list.
    pub(crate) fn list(&self) -> &ListKeys {
        &self.keys
    }

    /// The ranges to read before the first seek: the blocks and the summaries.
    pub(crate) fn first_ranges(&self) -> [KeyRange<'static>; 2] {
        [self.keys.from(0), KeyRange::children(&self.keys.summaries).into_owned()]
    }

    /// Sets the first pages of [`first_ranges`](Cursor::first_ranges). The page of the summaries
    /// must contain the whole highest layer.
    ///
    /// # Errors
    /// An error with the key if stored bytes are damaged.
    pub(crate) fn begin_with(
        &mut self,
        blocks: EntryPage<R::Bytes<'r>>,
        summaries: EntryPage<R::Bytes<'r>>,
    ) -> Result<()> {
        let keys = &self.keys;
        let more_after = blocks.last.map(|key| keys.last_id(&key)).transpose()?;
        self.first = Some(FirstBlocks { blocks: blocks.entries.into(), more_after });
        let entries = summaries.entries.into_iter().map(Ok);
        self.skips = Some(Skips::of(entries, keys, &self.weight)?);
        Ok(())
    }

    /// The current document. Call [`seek`](Cursor::seek) first.
    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    /// Advances to the first document at or after `target`.
    ///
    /// # Errors
    /// Any error of the store; an error with the key if stored bytes are damaged.
    #[inline]
    pub(crate) fn seek(&mut self, target: u32) -> Result<u32> {
        if self.is_begun && self.doc >= target && self.is_decoded[0] {
            return Ok(self.doc);
        }
        let mut target = target;
        loop {
            if !self.seek_block(target)? {
                self.doc = END;
                return Ok(END);
            }
            self.decode_ids()?;
            let [ids, ..] = &*self.ids;
            let rest = ids.get(self.at..self.count).unwrap_or_default();
            let found = match rest.get(..4) {
                // Most targets are near the current document.
                Some(near) if near.last().is_some_and(|id| *id >= target) => {
                    near.iter().take_while(|id| **id < target).count()
                }
                _ => rest.partition_point(|id| *id < target),
            };
            self.at += found;
            if let Some(id) = ids.get(self.at).filter(|_| self.at < self.count) {
                self.doc = *id;
                return Ok(*id);
            }
            let Some(next) = self.last.checked_add(1) else {
                self.bytes = None;
                self.walk.end();
                self.last = END;
                continue;
            };
            target = next;
        }
    }

    /// Reads the highest layer of summaries, if the list may have summaries. Returns the number of
    /// layers.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn layers(&mut self) -> Result<usize> {
        if !self.may_have_summaries() {
            return Ok(0);
        }
        if self.skips.is_none() {
            self.skips = Some(Skips::read(self.reader, &self.keys, &self.weight)?);
        }
        Ok(self.skips.as_ref().map_or(0, Skips::layers))
    }

    /// A bound of the scores from `target` to the end of the block that may contain `target`, or to
    /// the end of the summary of layer `depth`.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        if self.is_looked_up {
            return Ok(Window { last: END, score: self.weight.limit() });
        }
        if let Some(skips) = &mut self.skips
            && skips.layers() > 0
        {
            let keys = &self.keys;
            return skips.window(self.reader, keys, &self.weight, target, depth);
        }
        self.block_window(target)
    }

    /// A bound of the scores from `target` to the end of the block that may contain `target`. Reads
    /// this block.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn block_window(&mut self, target: u32) -> Result<Window> {
        match self.seek_block(target)? {
            true => {
                let score = self.block().map_or(0.0, |block| self.weight.bound(block.bounds()));
                Ok(Window { last: self.last, score })
            }
            false => Ok(Window::NONE),
        }
    }

    /// The frequency of the term and the length of the field in the current document.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    #[inline]
    pub(crate) fn frequency_and_length(&mut self) -> Result<(u32, u32)> {
        if !self.is_decoded[1] {
            self.decode_numbers();
        }
        let [_, frequencies, lengths] = &*self.ids;
        let of = |column: &[u32; BLOCK_POSTINGS]| column.get(self.at).copied().unwrap_or(0);
        Ok((of(frequencies), of(lengths)))
    }

    /// The score of the current document, for a block with only a few documents to score.
    pub(crate) fn score_alone(&mut self) -> f64 {
        let (mut score, weight) = (0.0, self.weight);
        self.each_number(std::iter::once(self.at as u8), |frequency, length| {
            score = weight.score(f64::from(frequency), length);
        });
        score
    }

    /// The score of the current document.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    #[inline]
    pub(crate) fn score(&mut self) -> Result<f64> {
        let (frequency, length) = self.frequency_and_length()?;
        Ok(self.weight.score(f64::from(frequency), length))
    }

    /// Sets `positions` to the positions of the term in the current document.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn positions(&mut self, positions: &mut Vec<u32>) -> Result<()> {
        positions.clear();
        let (frequency, _) = self.frequency_and_length()?;
        let [_, frequencies, _] = &*self.ids;
        self.places.advance(self.at, frequencies);
        let Places { before, total, inline, .. } = self.places;
        let Some(bytes) = &self.bytes else { return Ok(()) };
        if inline == 0 && self.separate.is_none() {
            self.separate = self.reader.get(&self.keys.of_occurrences(self.last))?;
        }
        let inline = bytes.len().checked_sub(inline).and_then(|from| bytes.get(from..));
        let inline = inline.filter(|inline| !inline.is_empty());
        let at = |error: Error| error.at(&self.keys.of_occurrences(self.last));
        let Some(stored) = inline.or(self.separate.as_deref()) else {
            return Err(at(Error::other("the positions of a block are missing; repair the index")));
        };
        let occurrences = Occurrences::parse(stored, total);
        let occurrences = occurrences.map_err(|why| at(why.into()))?;
        occurrences.positions(before as usize, frequency, positions);
        Ok(())
    }

    /// Advances to the first block that ends at `target` or later. Returns whether there is one.
    fn seek_block(&mut self, target: u32) -> Result<bool> {
        if self.is_begun && (self.last >= target || self.bytes.is_none()) {
            return Ok(self.bytes.is_some());
        }
        if let Some(first) = &mut self.first {
            self.is_begun = true;
            while let Some((key, bytes)) = first.blocks.pop_front() {
                if self.keys.last_id(&key)? >= target {
                    return self.enter(Some((key, bytes)), target);
                }
            }
            let more_after = first.more_after;
            self.first = None;
            let Some(last) = more_after else { return self.enter(None, target) };
            self.walk.seek(self.keys.from(target.max(last.saturating_add(1))))?;
            let next = self.walk.step()?;
            return self.enter(next, target);
        }
        // If the next block ends before `target`, seek instead of stepping. Without summaries, the
        // next block is assumed to be as long as this one.
        let after = match (&self.skips, self.layout) {
            (None, Some(Layout { range, .. })) if self.is_looked_up => {
                let next = self.last.checked_add(1);
                next.map(|next| IdRange::of(next, range.level()).last())
            }
            (skips, _) => skips.as_ref().and_then(|skips| skips.after(self.last)),
        };
        if !self.is_begun || after.is_some_and(|after| after < target) {
            self.is_begun = true;
            self.walk.seek(self.keys.from(target))?;
        }
        let next = self.walk.step()?;
        let next = match next {
            Some((key, _)) if self.keys.last_id(&key)? < target => {
                self.walk.leave(self.keys.from(target))?
            }
            next => next,
        };
        self.enter(next, target)
    }

    /// Makes an entry the current block. The header is parsed only if the block may contain
    /// `target`.
    fn enter(&mut self, entry: Option<(R::Bytes<'r>, R::Bytes<'r>)>, target: u32) -> Result<bool> {
        self.is_decoded = [false; 3];
        (self.separate, self.layout) = (None, None);
        self.at = 0;
        let Some((key, bytes)) = entry else {
            self.bytes = None;
            self.last = END;
            return Ok(false);
        };
        self.last = self.keys.last_id(&key)?;
        if self.last >= target {
            let block = Block::parse(&bytes, self.last);
            let block = block.map_err(|why| Error::from(why).at(&key))?;
            (self.layout, self.count) = (Some(block.layout), block.count());
        }
        self.bytes = Some(bytes);
        Ok(true)
    }

    /// The current block.
    fn block(&self) -> Option<Block<'_>> {
        Some(Block::of(self.bytes.as_ref()?, self.layout?))
    }

    fn decode_ids(&mut self) -> Result<()> {
        if self.is_decoded[0] {
            return Ok(());
        }
        if let Some((bytes, layout)) = self.bytes.as_ref().zip(self.layout) {
            let [ids, ..] = &mut *self.ids;
            let decoded = Block::of(bytes, layout).docs(ids);
            decoded.map_err(|why| Error::from(why).at(&self.keys.block(self.last)))?;
        }
        self.is_decoded[0] = true;
        Ok(())
    }

    fn decode_numbers(&mut self) {
        if let Some((bytes, layout)) = self.bytes.as_ref().zip(self.layout) {
            let block = Block::of(bytes, layout);
            let [_, frequencies, lengths] = &mut *self.ids;
            block.freqs(frequencies);
            block.lens(lengths);
            let all = frequencies.get(..self.count).unwrap_or_default();
            self.places = Places::of(&block, all);
        }
        self.is_decoded = [self.is_decoded[0], true, true];
    }

    /// The documents of the block that may contain `target`; empty after the last block.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn docs(&mut self, target: u32) -> Result<&[u32]> {
        if !self.seek_block(target)? {
            return Ok(&[]);
        }
        self.decode_ids()?;
        let [ids, ..] = &*self.ids;
        Ok(ids.get(..self.count).unwrap_or_default())
    }

    /// The end of the range of the current block; `END` after the last one.
    pub(crate) fn block_end(&self) -> u32 {
        self.last
    }

    /// The frequencies and lengths of the current block.
    pub(crate) fn numbers(&mut self) -> [&[u32]; 2] {
        if !self.is_decoded[1] {
            self.decode_numbers();
        }
        let [_, frequencies, lengths] = &*self.ids;
        [frequencies, lengths].map(|column| column.get(..self.count).unwrap_or_default())
    }

    /// Passes the frequency and the length of some postings of the current block to `visit`.
    pub(crate) fn each_number(
        &mut self,
        places: impl ExactSizeIterator<Item = u8>,
        mut visit: impl FnMut(u32, u32),
    ) {
        if self.is_decoded[1] || places.len() * FEW_NUMBERS >= self.count {
            let [freqs, lens] = self.numbers();
            let of = |column: &[u32], place: u8| column.get(usize::from(place)).copied();
            for place in places {
                visit(of(freqs, place).unwrap_or(0), of(lens, place).unwrap_or(0));
            }
            return;
        }
        let Some(block) = self.block() else { return };
        for place in places {
            let (freq, len) = block.numbers_at(place.into());
            visit(freq, len);
        }
    }

    /// The documents, frequencies and lengths of the block that may contain `target`; empty after
    /// the last block.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn columns(&mut self, target: u32) -> Result<[&[u32]; 3]> {
        if self.docs(target)?.is_empty() {
            return Ok([&[]; 3]);
        }
        self.numbers();
        let columns = self.ids.each_ref();
        Ok(columns.map(|column| column.get(..self.count).unwrap_or_default()))
    }
}
