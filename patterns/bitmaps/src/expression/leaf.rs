//! The sources of chunks for an expression: the store, or a range of ids.

use std::fmt;
use std::ops::RangeInclusive;

use keyloom::{Entry, Error, KeyRange, Order, Reader, Result, Subspace, Unpack};
use keyloom_kit::{Explain, Walk, within};

use crate::bitmap::place_of;
use crate::container::{most_ids, run};
use crate::{CHUNK_IDS, Container};

/// The chunk of the largest possible id, [`u64::MAX`].
pub(crate) const LAST_CHUNK: u64 = u64::MAX / CHUNK_IDS;

/// The chunks to evaluate, and their order.
///
/// All code below this level counts *positions*, which ascend in both orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    first: u64,
    last: u64,
    order: Order,
}

impl Span {
    /// The chunks that overlap this range of ids.
    pub(crate) fn of(ids: &RangeInclusive<u64>, order: Order) -> Self {
        Self { first: place_of(*ids.start()).0, last: place_of(*ids.end()).0, order }
    }

    pub(crate) fn order(self) -> Order {
        self.order
    }

    pub(crate) fn first(self) -> u64 {
        self.first
    }

    pub(crate) fn last(self) -> u64 {
        self.last
    }

    /// Converts a chunk to its position, or a position to its chunk.
    #[inline]
    pub(crate) fn turned(self, chunk: u64) -> u64 {
        match self.order {
            Order::Ascending => chunk,
            Order::Descending => LAST_CHUNK.saturating_sub(chunk),
        }
    }

    /// The first position of the walk.
    pub(crate) fn start(self) -> u64 {
        match self.order {
            Order::Ascending => self.first,
            Order::Descending => self.turned(self.last),
        }
    }

    /// The position after another position; `None` at the end.
    pub(crate) fn behind(self, position: u64) -> Option<u64> {
        let last = match self.order {
            Order::Ascending => self.last,
            Order::Descending => self.turned(self.first),
        };
        (position < last).then(|| position + 1)
    }

    /// The keys from a position to the end.
    fn rest(self, space: &Subspace, position: u64) -> KeyRange<'static> {
        let chunk = self.turned(position);
        match self.order {
            Order::Ascending => within(chunk..=self.last).key_range(space),
            Order::Descending => within(self.first..=chunk).key_range(space),
        }
    }
}

/// A key that begins with a chunk number.
pub(crate) trait ChunkKey: for<'k> Unpack<'k> {
    fn chunk(&self) -> u64;
}

impl ChunkKey for (u64,) {
    fn chunk(&self) -> u64 {
        self.0
    }
}

impl ChunkKey for (u64, u8) {
    fn chunk(&self) -> u64 {
        self.0
    }
}

/// A walk over the entries of a subspace whose keys begin with a chunk number. Reads nothing until
/// the first seek.
pub(crate) struct ChunkWalk<'r, R: Reader, K> {
    walk: Walk<'r, R>,
    space: Subspace,
    span: Span,
    begun: bool,
    at: Option<At<R::Bytes<'r>, K>>,
}

struct At<B, K> {
    position: u64,
    key: K,
    entry: Entry<B>,
}

impl<'r, R: Reader, K: ChunkKey> ChunkWalk<'r, R, K> {
    pub(crate) fn new(reader: &'r R, space: &Subspace, span: Span) -> Self {
        let walk = Walk::new(reader, span.order, 1);
        Self { walk, space: space.clone(), span, begun: false, at: None }
    }

    /// Advances to the first entry at or after a position, and returns its position.
    #[inline]
    pub(crate) fn seek(&mut self, to: u64) -> Result<Option<u64>> {
        match &self.at {
            Some(at) if at.position >= to => return Ok(Some(at.position)),
            None if self.begun => return Ok(None),
            _ => {}
        }
        if !self.begun {
            self.begun = true;
            self.walk.seek(self.span.rest(&self.space, to))?;
        }
        // In most cases, the next entry is the entry to seek.
        match self.step()? {
            Some(at) if at < to => {
                self.at = None;
                let next = self.walk.leave(self.span.rest(&self.space, to))?;
                self.set(next)
            }
            at => Ok(at),
        }
    }

    /// Advances to the next entry, and returns its position.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<u64>> {
        self.at = None;
        let next = self.walk.step()?;
        self.set(next)
    }

    fn set(&mut self, entry: Option<Entry<R::Bytes<'r>>>) -> Result<Option<u64>> {
        self.at = match entry {
            Some(entry) => {
                let key = self.space.unpack::<K>(&entry.0);
                let key = key.map_err(|error| Error::from(error).at(&entry.0))?;
                Some(At { position: self.span.turned(key.chunk()), key, entry })
            }
            None => None,
        };
        Ok(self.at.as_ref().map(|at| at.position))
    }

    /// The value of the current entry.
    pub(crate) fn value(&self) -> &[u8] {
        self.at.as_ref().map_or(&[], |at| &at.entry.1)
    }

    /// The container of the current entry.
    #[inline]
    pub(crate) fn container(&self) -> Result<Option<Container<'_>>> {
        let Some(At { entry: (key, value), .. }) = &self.at else { return Ok(None) };
        Container::parse(value).map(Some).map_err(|error| error.at(key))
    }

    /// Takes the key and the entry at the current position.
    pub(crate) fn take(&mut self) -> Option<(K, Entry<R::Bytes<'r>>)> {
        self.at.take().map(|at| (at.key, at.entry))
    }

    pub(crate) fn explain(&self) -> Explain {
        self.walk.explain
    }
}

impl<R: Reader, K> fmt::Debug for ChunkWalk<'_, R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkWalk").field("space", &self.space).finish_non_exhaustive()
    }
}

/// A walk over the chunks of a range of ids.
#[derive(Debug)]
pub(super) struct RangeWalk {
    /// The first and the last position; `None` if the range is empty.
    ends: Option<(u64, u64)>,
    /// The first and the last position of full chunks.
    full: Option<(u64, u64)>,
    /// The containers of the first and the last chunk of the range, and of the chunks between them.
    first: (u64, [u8; 5]),
    last: (u64, [u8; 5]),
    between: [u8; 5],
}

impl RangeWalk {
    pub(super) fn new(ids: RangeInclusive<u64>, span: Span) -> Self {
        let (first, last) = (place_of(*ids.start()), place_of(*ids.end()));
        let end = (CHUNK_IDS - 1) as u16;
        let to = if first.0 == last.0 { last.1 } else { end };
        let from = if first.0 == last.0 { first.1 } else { 0 };
        let first_full = if first.1 == 0 { first.0 } else { first.0 + 1 };
        let behind_full = if last.1 == end { last.0 + 1 } else { last.0 };
        let is_empty = ids.is_empty();
        let positions = |first: u64, behind: u64| {
            let last = behind.checked_sub(1)?.min(span.last);
            let first = first.max(span.first);
            let (a, b) = (span.turned(first), span.turned(last));
            (first <= last && !is_empty).then_some((a.min(b), a.max(b)))
        };
        Self {
            ends: positions(first.0, last.0 + 1),
            full: positions(first_full, behind_full),
            first: (span.turned(first.0), run(first.1, to.max(first.1))),
            last: (span.turned(last.0), run(from, last.1.max(from))),
            between: run(0, end),
        }
    }

    /// The first position at or after `to`. If its chunk is full, also the end of the run of full
    /// chunks; otherwise the position after it.
    pub(super) fn seek(&self, to: u64) -> Option<(u64, u64)> {
        let (first, last) = self.ends?;
        let at = to.max(first);
        let until = match self.full {
            Some((from, to)) if (from..=to).contains(&at) => to + 1,
            _ => at + 1,
        };
        (at <= last).then_some((at, until))
    }

    /// Whether all ids of a chunk are in the range.
    pub(super) fn is_full(&self, at: u64) -> bool {
        self.full.is_some_and(|(first, last)| (first..=last).contains(&at))
    }

    /// The container at a position.
    pub(super) fn value(&self, at: u64) -> &[u8] {
        [&self.first, &self.last]
            .into_iter()
            .find(|end| end.0 == at)
            .map_or(&self.between, |end| &end.1)
    }

    /// The approximate number of ids in a chunk.
    pub(super) fn weight(&self) -> usize {
        match self.ends {
            Some((first, last)) if first == last => most_ids(self.value(first)),
            _ => CHUNK_IDS as usize,
        }
    }
}
