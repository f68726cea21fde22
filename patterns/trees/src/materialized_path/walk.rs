//! Walks over the records of a subtree.

use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result};
use keyloom_kit::Walk;

use super::super::tree::depth_bounds;
use super::super::{NodeId, TreeNode, VisitedNode};
use super::layout::{Layout, foreign};
use super::path::{ESCAPE, Measured, Segments, is_within};

/// The start of a walk and the depths that it returns.
pub(super) struct Origin {
    pub(super) layout: Layout,
    /// The key of the start node.
    key: KeyBuf,
    /// The length of `key`.
    skip: usize,
    /// The start node; `None` for the whole forest.
    start: Option<NodeId>,
    min: u32,
    max: u32,
}

impl Origin {
    pub(super) fn new(
        layout: &Layout,
        (start, path): (Option<NodeId>, &[u8]),
        depths: &impl RangeBounds<u32>,
    ) -> Self {
        // An empty range of depths becomes a range that ends before it starts.
        let (min, max) = depth_bounds(depths).unwrap_or((1, 0));
        let key = layout.key(path);
        let skip = key.len();
        Self { layout: layout.clone(), key, skip, start, min, max }
    }

    /// The keys of the walk after the key `after`.
    fn range_after(&self, after: Option<&[u8]>) -> KeyRange<'static> {
        match after {
            Some(after) => self.range().resume(Order::Ascending, after).into_owned(),
            None => self.range(),
        }
    }

    /// All keys of the walk.
    pub(super) fn range(&self) -> KeyRange<'static> {
        match self.min {
            _ if self.min > self.max => KeyRange::all().before(b"").into_owned(),
            0 if self.start.is_some() => KeyRange::self_and_children(&self.key).into_owned(),
            _ => KeyRange::children(&self.key),
        }
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.max != u32::MAX
    }

    /// The depth and the node id of an entry.
    fn find(&self, key: &[u8], record: &[u8]) -> Option<(u32, NodeId)> {
        let measured = self.layout.segments.measure_from(key, self.skip)?;
        Some((measured.depth, self.id(measured, key, record)?))
    }

    #[inline(always)]
    fn id(&self, measured: Measured, key: &[u8], record: &[u8]) -> Option<NodeId> {
        match self.start {
            Some(start) if measured.depth == 0 => Some(start),
            _ => self.layout.id(measured, key, record),
        }
    }

    /// The key of the ancestor (or self) at a depth below the origin.
    fn ancestor<'k>(&self, key: &'k [u8], depth: u32) -> Result<&'k [u8]> {
        let path = key.get(self.key.len()..).unwrap_or_default();
        let cut = self.layout.segments.cut(path, depth).ok_or_else(|| foreign(key))?;
        Ok(key.get(..self.key.len() + cut.len()).unwrap_or(key))
    }
}

/// A walk over a whole subtree: one range, or two if a hidden subtree is inside.
pub(super) struct WholeWalk<'r, R: Reader> {
    reader: &'r R,
    origin: Origin,
    /// `None` once the walk has ended or failed.
    entries: Option<R::Entries<'r>>,
    /// The range after the hidden subtree.
    rest: Option<KeyRange<'static>>,
    /// The last key, and the shape of its last segment. Most nodes are siblings of the previous
    /// node: only the last segment of the key is new, and it usually has the same shape.
    last: Option<R::Bytes<'r>>,
    measured: Measured,
}

impl<'r, R: Reader> WholeWalk<'r, R> {
    fn open(
        reader: &'r R,
        origin: Origin,
        mut range: KeyRange<'static>,
        hidden: Option<&[u8]>,
    ) -> Result<Self> {
        let mut rest = None;
        if let Some(hidden) = hidden {
            let key = origin.layout.key(hidden);
            if range.contains(&key) {
                rest = Some(range.clone().intersect(origin.layout.behind(hidden)));
                range = range.before(&key).into_owned();
            }
        }
        let entries = Some(reader.range(range, Order::Ascending)?);
        Ok(Self { reader, origin, entries, rest, last: None, measured: Measured::default() })
    }

    /// Whether the last segment of a key has the same shape as the last segment of the last key, so
    /// that `measured` stays valid. Not rewriting `measured` avoids store-forwarding stalls: a read
    /// with another width right after a write must wait for the write.
    #[inline(always)]
    fn is_like_last(&self, key: &[u8]) -> bool {
        let (layout, measured) = (&self.origin.layout, &self.measured);
        match &self.last {
            Some(last) if layout.segments == Segments::Ids => {
                begins_alike(key, last, self.origin.skip..measured.last_at)
                    && measured.has_shape_of(key, last)
            }
            _ => false,
        }
    }

    /// Measures a key of another shape; returns false if it is not a path.
    #[inline(always)]
    fn measure(&mut self, key: &[u8]) -> bool {
        let (segments, skip) = (self.origin.layout.segments, self.origin.skip);
        let measured = match &self.last {
            Some(last) if begins_alike(key, last, skip..self.measured.last_at) => {
                segments.measure_last(key, self.measured)
            }
            _ => segments.measure_from(key, skip),
        };
        self.measured = measured.unwrap_or(self.measured);
        measured.is_some()
    }

    #[cold]
    fn advance(&mut self) -> Option<Result<()>> {
        self.entries = None;
        let entries = self.reader.range(self.rest.take()?, Order::Ascending);
        Some(entries.map(|entries| self.entries = Some(entries)))
    }

    fn end(&mut self) {
        (self.entries, self.rest) = (None, None);
    }

    // Return each result where it is made. Joining the branches first would pass every visit
    // through memory.
    #[inline(always)]
    pub(super) fn next<V, C>(&mut self) -> Option<Result<VisitedNode<R::Bytes<'r>, V, C>>> {
        loop {
            match self.entries.as_mut()?.next() {
                Some(Ok((key, record))) => {
                    let id = match self.is_like_last(&key) || self.measure(&key) {
                        true => self.origin.id(self.measured, &key, &record),
                        false => None,
                    };
                    let Some(id) = id else {
                        self.end();
                        return Some(Err(foreign(&key)));
                    };
                    let depth = self.measured.depth;
                    self.last = Some(key);
                    if depth >= self.origin.min {
                        let node = TreeNode::new(id, record, self.origin.layout.header());
                        return Some(Ok(VisitedNode { depth, node }));
                    }
                }
                Some(Err(error)) => {
                    self.end();
                    return Some(Err(error));
                }
                None => {
                    if let Err(error) = self.advance()? {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

/// Whether two keys are equal in `range`, and a segment of both keys ends at the end of `range`.
/// The bytes before `range` must be equal.
///
/// Compares eight bytes at a time. The last chunk may overlap bytes already compared, or bytes
/// before the range: that is faster than a function call.
#[inline(always)]
fn begins_alike(one: &[u8], other: &[u8], range: Range<usize>) -> bool {
    let ends = one.get(range.end) != Some(&ESCAPE);
    let (Some(one), Some(other)) = (one.get(..range.end), other.get(..range.end)) else {
        return false;
    };
    let (Some(one_end), Some(other_end)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else {
        return ends && one == other;
    };
    let behind = |key| <[u8]>::get(key, range.start..).unwrap_or_default().chunks_exact(8);
    let word = |bytes: &[u8]| bytes.first_chunk::<8>().copied().map(u64::from_ne_bytes);
    ends && u64::from_ne_bytes(*one_end) == u64::from_ne_bytes(*other_end)
        && behind(one).zip(behind(other)).rev().all(|(one, other)| word(one) == word(other))
}

/// A walk down to some depth: reads past deeper subtrees, or starts a new range after them.
pub(super) struct BoundedWalk<'r, R: Reader> {
    origin: Origin,
    range: KeyRange<'static>,
    walk: Walk<'r, R>,
    hidden: Option<KeyBuf>,
    /// An entry that is already read.
    pending: Option<Entry<R::Bytes<'r>>>,
}

impl<'r, R: Reader> BoundedWalk<'r, R> {
    /// Opens the walk in this order; descending order only for walks over children.
    pub(super) fn open(
        reader: &'r R,
        origin: Origin,
        range: KeyRange<'static>,
        order: Order,
        hidden: Option<&[u8]>,
    ) -> Result<Self> {
        let walk = Walk::open(reader, range.clone(), order)?;
        let hidden = hidden.map(|path| origin.layout.key(path));
        Ok(Self { origin, range, walk, hidden, pending: None })
    }

    pub(super) fn next<V, C>(&mut self) -> Option<Result<VisitedNode<R::Bytes<'r>, V, C>>> {
        let next = self.visit().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.walk.end();
            self.pending = None;
        }
        next
    }

    fn visit<V, C>(&mut self) -> Result<Option<VisitedNode<R::Bytes<'r>, V, C>>> {
        while let Some((key, record)) = self.entry()? {
            let (depth, id) = self.origin.find(&key, &record).ok_or_else(|| foreign(&key))?;
            if depth >= self.origin.min {
                let node = TreeNode::new(id, record, self.origin.layout.header());
                return Ok(Some(VisitedNode { depth, node }));
            }
        }
        Ok(None)
    }

    /// The next entry that is not too deep.
    pub(super) fn entry(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        loop {
            let entry = match self.pending.take() {
                Some(entry) => entry,
                None => match self.walk.step()? {
                    Some(entry) => entry,
                    None => return Ok(None),
                },
            };
            match self.leave(&entry.0)? {
                // Leaving a subtree already reads the entry after it.
                Some(range) => match self.walk.leave(range)? {
                    Some(next) => self.pending = Some(next),
                    None => return Ok(None),
                },
                None => return Ok(Some(entry)),
            }
        }
    }

    /// The remaining range if this key must be skipped.
    fn leave(&self, key: &[u8]) -> Result<Option<KeyRange<'static>>> {
        let hidden = self.hidden.as_deref().filter(|hidden| is_within(key, hidden));
        let ancestor = self.origin.ancestor(key, self.origin.max)?;
        let is_deeper = ancestor.len() < key.len();
        let range = self.range.clone();
        Ok(match (self.walk.order(), hidden) {
            (Order::Ascending, Some(hidden)) => Some(range.intersect(KeyRange::behind(hidden))),
            (Order::Descending, Some(hidden)) => Some(range.before(hidden).into_owned()),
            (Order::Ascending, None) if is_deeper => {
                Some(range.intersect(KeyRange::behind(ancestor)))
            }
            // In descending order, a child comes after its descendants.
            (Order::Descending, None) if is_deeper => {
                Some(range.up_to(Order::Ascending, ancestor).into_owned())
            }
            _ => None,
        })
    }
}

/// A walk over a subtree, whole or limited in depth.
#[allow(
    clippy::large_enum_variant,
    reason = "the longer a walk, the less it should go through a pointer"
)]
pub(super) enum Descendants<'r, R: Reader, V, C> {
    Whole(WholeWalk<'r, R>, PhantomData<fn() -> (V, C)>),
    /// The walk, and the visit that it returns next.
    Bounded(Box<BoundedWalk<'r, R>>, Option<Result<VisitedNode<R::Bytes<'r>, V, C>>>),
}

impl<'r, R: Reader, V, C> Descendants<'r, R, V, C> {
    /// Opens the walk, or the rest of the walk after the key `after`.
    pub(super) fn open(
        reader: &'r R,
        origin: Origin,
        after: Option<&[u8]>,
        hidden: Option<&[u8]>,
    ) -> Result<Self> {
        let range = origin.range_after(after);
        if !origin.is_bounded() {
            return Ok(Self::Whole(WholeWalk::open(reader, origin, range, hidden)?, PhantomData));
        }
        let walk = BoundedWalk::open(reader, origin, range, Order::Ascending, hidden)?;
        Ok(Self::Bounded(Box::new(walk), None))
    }
}

impl<'r, R: Reader, V, C> Iterator for Descendants<'r, R, V, C> {
    type Item = Result<VisitedNode<R::Bytes<'r>, V, C>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Whole(walk, _) => walk.next(),
            Self::Bounded(walk, next) => {
                advance(walk, next);
                next.take()
            }
        }
    }
}

/// Not inlined: inlined into the caller's loop, this function would write each visit to memory.
#[inline(never)]
fn advance<'r, R: Reader, V, C>(
    walk: &mut BoundedWalk<'r, R>,
    next: &mut Option<Result<VisitedNode<R::Bytes<'r>, V, C>>>,
) {
    *next = walk.next();
}
