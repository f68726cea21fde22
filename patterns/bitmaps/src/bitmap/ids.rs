//! Single ids and pages of ids, from any source of chunks.

use std::iter::FusedIterator;
use std::ops::{Bound, RangeInclusive};

use keyloom::{KeyRange, Order, Result, Subspace};
use keyloom_kit::{Continuation, InOrder, OrderedRange, Page, in_order};

use crate::{CHUNK_IDS, Words};

/// Chunks in ascending or descending order.
pub(crate) trait Chunks {
    /// Writes the ids of the next chunk that has any into `words`, and returns its number.
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>>;
}

/// The chunk of an id, and the offset of the id in this chunk.
pub(crate) fn place_of(id: u64) -> (u64, u16) {
    (id / CHUNK_IDS, (id % CHUNK_IDS) as u16)
}

/// The id at an offset of a chunk; `None` if it would exceed [`u64::MAX`].
pub(crate) fn id_at(chunk: u64, offset: u16) -> Option<u64> {
    chunk.checked_mul(CHUNK_IDS)?.checked_add(offset.into())
}

/// The ids between two bounds; `None` if there are none.
pub(crate) fn id_range((start, end): (Bound<&u64>, Bound<&u64>)) -> Option<RangeInclusive<u64>> {
    let first = match start {
        Bound::Included(first) => *first,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let last = match end {
        Bound::Included(last) => *last,
        Bound::Excluded(behind) => behind.checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (first <= last).then_some(first..=last)
}

/// The ids in a range, read from chunks that may extend beyond it.
#[derive(Debug)]
pub(crate) struct IdWalk<C> {
    /// `None` once the walk has ended or failed.
    chunks: Option<C>,
    order: Order,
    range: RangeInclusive<u64>,
    words: Box<Words>,
    chunk: u64,
    /// The index of the current word in the chunk, and the bits of this word that are not returned
    /// yet.
    at: u16,
    left: u64,
}

impl<C: Chunks> IdWalk<C> {
    /// Creates a walk over the ids in `range`. `chunks` must be in `order`.
    pub(crate) fn new(chunks: C, range: RangeInclusive<u64>, order: Order) -> Self {
        let words = Box::new(Words::new());
        let at = last_word(order);
        Self { chunks: Some(chunks), order, range, words, chunk: 0, at, left: 0 }
    }

    /// Creates a walk without ids.
    pub(crate) fn empty() -> Self {
        let (words, range, order) = (Box::new(Words::new()), 0..=0, Order::Ascending);
        Self { chunks: None, order, range, words, chunk: 0, at: last_word(order), left: 0 }
    }

    /// The next id.
    pub(crate) fn next_id(&mut self) -> Result<Option<u64>> {
        loop {
            if let Some(offset) = self.next_offset() {
                return Ok(id_at(self.chunk, offset));
            }
            if !self.next_chunk()? {
                return Ok(None);
            }
        }
    }

    fn next_offset(&mut self) -> Option<u16> {
        while self.left == 0 {
            if self.at == last_word(self.order) {
                return None;
            }
            match self.order {
                Order::Ascending => self.at += 1,
                Order::Descending => self.at -= 1,
            }
            self.left = self.words.word(self.at);
        }
        let bit = match self.order {
            Order::Ascending => self.left.trailing_zeros(),
            Order::Descending => 63 - self.left.leading_zeros(),
        };
        self.left ^= 1 << bit;
        Some(self.at * 64 + bit as u16)
    }

    fn next_chunk(&mut self) -> Result<bool> {
        let Some(chunks) = &mut self.chunks else { return Ok(false) };
        let next = chunks.next_chunk(&mut self.words);
        let Ok(Some(chunk)) = next else {
            self.chunks = None;
            return next.map(|_| false);
        };
        self.chunk = chunk;
        match offsets_in(chunk, &self.range) {
            Some(offsets) if offsets == WHOLE => (),
            Some(offsets) => self.words.keep(offsets),
            None => self.words.clear(),
        }
        self.at = first_word(self.order);
        self.left = self.words.word(self.at);
        Ok(true)
    }
}

impl<C: Chunks> Iterator for IdWalk<C> {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_id().transpose()
    }
}

impl<C: Chunks> FusedIterator for IdWalk<C> {}

/// All offsets of a chunk.
const WHOLE: RangeInclusive<u16> = 0..=(CHUNK_IDS - 1) as u16;

/// The first word of a chunk in walk order.
fn first_word(order: Order) -> u16 {
    match order {
        Order::Ascending => 0,
        Order::Descending => *WHOLE.end() / 64,
    }
}

/// The last word of a chunk in walk order.
fn last_word(order: Order) -> u16 {
    match order {
        Order::Ascending => *WHOLE.end() / 64,
        Order::Descending => 0,
    }
}

/// The offsets of a chunk that are in a range of ids.
fn offsets_in(chunk: u64, range: &RangeInclusive<u64>) -> Option<RangeInclusive<u16>> {
    let first = id_at(chunk, 0)?;
    let last = first.saturating_add(CHUNK_IDS - 1);
    let (from, to) = (first.max(*range.start()), last.min(*range.end()));
    (from <= to).then(|| place_of(from).1..=place_of(to).1)
}

/// Returns a page of at most `limit` ids of `range`, starting after the continuation `after`. A
/// limit of 0 counts as 1. `query` identifies the query, so that a continuation of another query is
/// refused. `open` returns the ids of the remaining range.
pub(crate) fn page<I: Iterator<Item = Result<u64>>>(
    query: &Subspace,
    range: &impl OrderedRange<u64>,
    limit: usize,
    after: Option<&Continuation>,
    open: impl FnOnce(InOrder<RangeInclusive<u64>>) -> Result<I>,
) -> Result<Page<u64>> {
    let order = range.order();
    let Some(range) = id_range(range.bounds()) else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let answers = query.child(&(*range.start(), *range.end()));
    let whole = answers.range();
    let last = match after {
        Some(_) => last_id(&answers, &Continuation::resume(after, whole.clone(), order)?, order)?,
        None => None,
    };
    let Some(rest) = behind(range, last, order) else {
        return Ok(Page { items: Vec::new(), next: None });
    };
    let mut walk = open(in_order(rest, order))?;
    // A continuation refers to the last id of its page, so a page has at least one id.
    let items = walk.by_ref().take(limit.max(1)).collect::<Result<Vec<_>>>()?;
    let more = walk.next().transpose()?;
    let last = items.last().filter(|_| more.is_some());
    let next = last.map(|id| Continuation::behind(&answers.pack(id), &whole, order));
    Ok(Page { items, next })
}

/// The last id of the previous page: the bound at which `rest` begins.
fn last_id(answers: &Subspace, rest: &KeyRange<'_>, order: Order) -> Result<Option<u64>> {
    let bounds = rest.normalized().map(|(start, end)| match order {
        Order::Ascending => start,
        Order::Descending => end,
    });
    match bounds {
        Some(Bound::Included(key) | Bound::Excluded(key)) => Ok(Some(answers.unpack(key)?)),
        _ => Ok(None),
    }
}

/// The rest of a range after the id `last`; the whole range if `last` is `None`.
fn behind(
    range: RangeInclusive<u64>,
    last: Option<u64>,
    order: Order,
) -> Option<RangeInclusive<u64>> {
    match (last, order) {
        (None, _) => Some(range),
        (Some(last), Order::Ascending) => {
            id_range((Bound::Excluded(&last), Bound::Included(range.end())))
        }
        (Some(last), Order::Descending) => {
            id_range((Bound::Included(range.start()), Bound::Excluded(&last)))
        }
    }
}
