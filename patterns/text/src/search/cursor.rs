//! A cursor over the postings of one term.

use keyloom::{Error, Order, Reader, Result};
use keyloom_tables::kit::Walk;

use super::bm25::Weight;
use super::skips::Skips;
use crate::index::ListKeys;
use crate::postings::{BLOCK_POSTINGS, Block, Detail, Occurrences};

/// The document of a cursor after its end. No document has this id.
pub(crate) const END: u32 = u32::MAX;

/// A list with fewer documents has so few blocks that its summaries are not read.
const SHORT_LIST: u64 = 1_024;

/// The place of the stored blocks of a term.
#[derive(Clone, Debug)]
pub(crate) struct TermKeys {
    pub(crate) list: ListKeys,
    pub(crate) detail: Detail,
}

/// A bound of the scores of the documents up to `last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) last: u32,
    pub(crate) score: f64,
}

impl Window {
    /// No document follows.
    pub(crate) const NONE: Self = Self { last: END, score: 0.0 };
}

/// A cursor over the postings of one term, in the order of their ids.
///
/// A block is decoded when a document in it is needed. Its bound is read from its header.
pub(crate) struct Cursor<'r, R: Reader> {
    reader: &'r R,
    keys: TermKeys,
    pub(crate) weight: Weight,
    walk: Walk<'r, R>,
    /// The summaries of the list; `None` before they are read.
    skips: Option<Skips>,
    /// The current block; its range ends at `last`.
    bytes: Option<R::Bytes<'r>>,
    /// The occurrences of the current block, once they are read.
    separate: Option<R::Bytes<'r>>,
    last: u32,
    bound: f64,
    ids: Box<[[u32; BLOCK_POSTINGS]; 3]>,
    count: usize,
    at: usize,
    /// Which columns of the current block are decoded: ids, frequencies, lengths.
    is_decoded: [bool; 3],
    doc: u32,
    is_begun: bool,
    /// The documents of the list, for the choice whether to read its summaries.
    documents: u64,
}

impl<'r, R: Reader> Cursor<'r, R> {
    /// A cursor before the first posting.
    pub(crate) fn new(reader: &'r R, keys: TermKeys, weight: Weight) -> Self {
        Self {
            reader,
            keys,
            weight,
            walk: Walk::new(reader, Order::Ascending, 1),
            skips: None,
            bytes: None,
            separate: None,
            last: 0,
            bound: 0.0,
            ids: Box::new([[0; BLOCK_POSTINGS]; 3]),
            count: 0,
            at: 0,
            is_decoded: [false; 3],
            doc: 0,
            is_begun: false,
            documents: 0,
        }
    }

    /// The same cursor over a list of about so many documents: long lists may have summaries.
    pub(crate) fn of_documents(self, documents: u64) -> Self {
        Self { documents, ..self }
    }

    /// The current document. Call [`seek`](Cursor::seek) first.
    #[inline]
    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    /// Advances to the first document that is not before `target`.
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
                // Nearby documents are the common case.
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

    /// Reads the highest layer of the summaries, if the list may have some, and returns the number
    /// of layers.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn layers(&mut self) -> Result<usize> {
        if self.documents < SHORT_LIST {
            return Ok(0);
        }
        if self.skips.is_none() {
            self.skips = Some(Skips::read(self.reader, &self.keys.list, &self.weight)?);
        }
        Ok(self.skips.as_ref().map_or(0, Skips::layers))
    }

    /// A bound of the scores from `target` to the end of the block that may contain it, or of the
    /// summary of the layer `depth`.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        if let Some(skips) = &mut self.skips
            && skips.layers() > 0
        {
            let keys = &self.keys.list;
            return skips.window(self.reader, keys, &self.weight, target, depth);
        }
        match self.seek_block(target)? {
            true => Ok(Window { last: self.last, score: self.bound }),
            false => Ok(Window::NONE),
        }
    }

    /// The frequency of the term in the current document, and the length of the field there.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    #[inline]
    pub(crate) fn frequency_and_length(&mut self) -> Result<(u32, u32)> {
        if !self.is_decoded[1] {
            self.decode_numbers()?;
        }
        let [_, frequencies, lengths] = &*self.ids;
        let of = |column: &[u32; BLOCK_POSTINGS]| column.get(self.at).copied().unwrap_or(0);
        Ok((of(frequencies), of(lengths)))
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

    /// Sets `positions` to those of the term in the current document.
    ///
    /// # Errors
    /// As [`seek`](Cursor::seek).
    pub(crate) fn positions(&mut self, positions: &mut Vec<u32>) -> Result<()> {
        positions.clear();
        let (frequency, _) = self.frequency_and_length()?;
        let [_, frequencies, _] = &*self.ids;
        let sum =
            |some: Option<&[u32]>| some.unwrap_or_default().iter().map(|f| u64::from(*f)).sum();
        let (before, total): (u64, u64) =
            (sum(frequencies.get(..self.at)), sum(frequencies.get(..self.count)));
        let Some(bytes) = &self.bytes else { return Ok(()) };
        let block = Block::parse(bytes, self.last);
        let block = block.map_err(|why| Error::from(why).at(&self.keys.list.block(self.last)))?;
        if block.inline().is_none() && self.separate.is_none() {
            self.separate = self.reader.get(&self.keys.list.of_occurrences(self.last))?;
        }
        let at = |error: Error| error.at(&self.keys.list.of_occurrences(self.last));
        let Some(stored) = block.inline().or(self.separate.as_deref()) else {
            return Err(at(Error::other("the positions of a block are missing; repair the index")));
        };
        let occurrences = Occurrences::parse(stored, total, self.keys.detail);
        let occurrences = occurrences.map_err(|why| at(why.into()))?;
        occurrences.positions(before as usize, frequency, positions);
        Ok(())
    }

    /// Advances to the first block that ends at `target` or later. Returns whether there is one.
    fn seek_block(&mut self, target: u32) -> Result<bool> {
        if self.is_begun && (self.last >= target || self.bytes.is_none()) {
            return Ok(self.bytes.is_some());
        }
        // The summaries tell where stepping does not help.
        let after = self.skips.as_ref().and_then(|skips| skips.after(self.last));
        if !self.is_begun || after.is_some_and(|after| after < target) {
            self.is_begun = true;
            self.walk.seek(self.keys.list.from(target))?;
        }
        let next = self.walk.step()?;
        let next = match next {
            Some((key, _)) if self.keys.list.last_id(&key)? < target => {
                self.walk.leave(self.keys.list.from(target))?.next
            }
            next => next,
        };
        self.enter(next, target)
    }

    /// Makes an entry the current block. Its header is read only if it may contain `target`.
    fn enter(&mut self, entry: Option<(R::Bytes<'r>, R::Bytes<'r>)>, target: u32) -> Result<bool> {
        self.is_decoded = [false; 3];
        self.separate = None;
        self.at = 0;
        let Some((key, bytes)) = entry else {
            self.bytes = None;
            self.last = END;
            return Ok(false);
        };
        self.last = self.keys.list.last_id(&key)?;
        if self.last >= target {
            let block = Block::parse(&bytes, self.last);
            let block = block.map_err(|why| Error::from(why).at(&key))?;
            self.bound = self.weight.bound(block.bounds());
            self.count = block.count();
        }
        self.bytes = Some(bytes);
        Ok(true)
    }

    fn decode_ids(&mut self) -> Result<()> {
        if self.is_decoded[0] {
            return Ok(());
        }
        if let Some(bytes) = &self.bytes {
            let [ids, ..] = &mut *self.ids;
            let decoded = Block::parse(bytes, self.last).and_then(|block| block.docs(ids));
            decoded.map_err(|why| Error::from(why).at(&self.keys.list.block(self.last)))?;
        }
        self.is_decoded[0] = true;
        Ok(())
    }

    fn decode_numbers(&mut self) -> Result<()> {
        if let Some(bytes) = &self.bytes {
            let block = Block::parse(bytes, self.last);
            let block =
                block.map_err(|why| Error::from(why).at(&self.keys.list.block(self.last)))?;
            let [_, frequencies, lengths] = &mut *self.ids;
            block.freqs(frequencies);
            block.lens(lengths);
        }
        self.is_decoded = [true; 3];
        Ok(())
    }
}
