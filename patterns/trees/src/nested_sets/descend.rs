//! Walks down the tree: one range, and a stack of right labels for the depth of each row.

use keyloom::{Entry, Error, Order, Reader, Result};
use keyloom_kit::Walk;
use smallvec::SmallVec;

use super::labels::{Label, Span};
use super::layout::{Header, Keys, no_row, row_node, split_header};
use super::view::{RowOf, View, between};
use crate::{NodeId, TreeNode, VisitedNode};

/// A stored row, with its depth and its header.
type Found<'r, R> = (u32, Header, Entry<<R as Reader>::Bytes<'r>>);

/// The rows of a span, each with its depth.
pub(super) struct Descend<'r, R: Reader> {
    keys: Keys,
    walk: Walk<'r, R>,
    /// The current part of the span. `to_come` holds the remaining parts, the next part last.
    now: Span,
    to_come: SmallVec<[Span; 2]>,
    /// The right labels of the last row and of the nodes that enclose it.
    open: Vec<Label>,
    /// The depth of rows that no row of the span encloses.
    base: u32,
    least: u32,
    most: u32,
}

impl<'r, R: Reader> Descend<'r, R> {
    /// Opens a walk over the rows of a span within `depths`; `base` is the depth of rows that no
    /// row of the span encloses.
    pub(super) fn open(
        view: &View<'_, 'r, R>,
        span: Option<Span>,
        base: u32,
        depths: Option<(u32, u32)>,
    ) -> Result<Self> {
        let depths = depths.filter(|(_, most)| *most >= base);
        let mut to_come =
            span.filter(|_| depths.is_some()).map_or_else(SmallVec::new, |span| view.visible(span));
        to_come.reverse();
        let (least, most) = depths.unwrap_or((0, 0));
        let walk = Walk::new(view.reader, Order::Ascending, 0);
        let now = Span { first: 0, last: 0 };
        let mut descend = Self {
            keys: view.keys.clone(),
            walk,
            now,
            to_come,
            open: Vec::new(),
            base,
            least,
            most,
        };
        descend.open_next()?;
        Ok(descend)
    }

    /// Sets the right labels of the nodes that enclose the span, the outermost first.
    pub(super) fn enter(&mut self, open: Vec<Label>) {
        self.open = open;
    }

    /// Continues with the next part of the span, if there is one.
    fn open_next(&mut self) -> Result<bool> {
        let Some(next) = self.to_come.pop() else { return Ok(false) };
        self.now = next;
        self.walk.seek(self.keys.lefts(next))?;
        Ok(true)
    }

    /// The depth of the next row, from its right label.
    #[inline(always)]
    fn depth_of(&mut self, right: Label) -> u32 {
        // Intervals are nested or disjoint. So an open interval that ends before this interval does
        // not enclose it.
        while self.open.last().is_some_and(|open| *open < right) {
            self.open.pop();
        }
        self.base + self.open.len() as u32
    }

    /// Whether the walk returns all rows.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.least <= self.base && self.most == u32::MAX
    }

    /// The next row, with its depth and its header.
    fn advance(&mut self) -> Result<Option<Found<'r, R>>> {
        let mut entry = self.walk.step()?;
        loop {
            let Some((key, bytes)) = entry else {
                if !self.open_next()? {
                    return Ok(None);
                }
                entry = self.walk.step()?;
                continue;
            };
            let is_wide = self.keys.is_wide(&key);
            let header = split_header(is_wide, &bytes).ok_or_else(|| no_row().at(&key))?;
            let depth = self.depth_of(header.right);
            if depth > self.most {
                entry = self.leave()?;
                continue;
            }
            self.open.push(header.right);
            if depth >= self.least {
                return Ok(Some((depth, header, (key, bytes))));
            }
            entry = self.walk.step()?;
        }
    }

    /// Skips the descendants of the last node at the greatest depth of the walk.
    fn leave(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let end = self.open.last().copied().unwrap_or(self.now.last);
        match between(end, self.now.last.saturating_add(1)) {
            Some(rest) => self.walk.leave(self.keys.lefts(rest)),
            None => {
                self.walk.end();
                Ok(None)
            }
        }
    }

    /// Ends the walk after an error.
    #[cold]
    fn end(&mut self, error: Error) -> Error {
        self.walk.end();
        self.to_come.clear();
        error
    }

    /// Ends the walk with the error of a row that does not decode.
    #[cold]
    fn refuse(&mut self, key: &[u8]) -> Error {
        self.end(no_row().at(key))
    }

    /// The next row, decoded.
    pub(super) fn next_row(&mut self) -> Result<Option<RowOf<'r, R>>> {
        self.advance()?.map(|(_, _, entry)| self.keys.row(entry)).transpose()
    }
}

/// A walk that ends with the first error.
pub(super) struct Visits<'r, R: Reader> {
    descend: Descend<'r, R>,
    /// The row found by [`advance`](Self::advance).
    found: Option<Found<'r, R>>,
}

impl<'r, R: Reader> Visits<'r, R> {
    pub(super) fn new(descend: Descend<'r, R>) -> Self {
        Self { descend, found: None }
    }

    // Inline this function into the caller's loop, and return each visit where it is made.
    // Otherwise every visit would be passed through memory, which costs a third of the time of a
    // scan.
    #[inline(always)]
    pub(super) fn next<V, C>(&mut self) -> Option<Result<VisitedNode<R::Bytes<'r>, V, C>>> {
        if self.descend.is_plain() {
            match self.descend.walk.entries()?.next() {
                Some(Ok((key, bytes))) => {
                    let is_wide = self.descend.keys.is_wide(&key);
                    let Some(Header { right, id, bytes: header }) = split_header(is_wide, &bytes)
                    else {
                        return Some(Err(self.descend.refuse(&key)));
                    };
                    let depth = self.descend.depth_of(right);
                    self.descend.open.push(right);
                    let node = TreeNode::new(id, bytes, header);
                    return Some(Ok(VisitedNode { depth, node }));
                }
                Some(Err(error)) => return Some(Err(self.descend.end(error))),
                None => {}
            }
        }
        if let Err(error) = self.advance() {
            return Some(Err(error));
        }
        let (depth, header, (_, bytes)) = self.found.take()?;
        Some(Ok(VisitedNode { depth, node: TreeNode::new(header.id, bytes, header.bytes) }))
    }

    /// The general case: the end of a part, and walks over some depths only.
    #[inline(never)]
    fn advance(&mut self) -> Result<()> {
        match self.descend.advance() {
            Ok(found) => self.found = found,
            Err(error) => return Err(self.descend.end(error)),
        }
        Ok(())
    }
}

/// The children of a node, in ascending or descending order.
#[allow(clippy::large_enum_variant, reason = "there is one per walk, and it stays where it is")]
pub(super) enum NestedNodes<'k, 'r, R: Reader> {
    Forwards(Visits<'r, R>),
    Backwards {
        view: View<'k, 'r, R>,
        parent: Option<NodeId>,
        /// The remaining labels are strictly between `lo` and `hi`.
        lo: Label,
        hi: Label,
    },
}

impl<'k, 'r, R: Reader> NestedNodes<'k, 'r, R> {
    /// Opens a walk over the children of `parent`, whose labels are in `inside`.
    pub(super) fn open(
        view: View<'k, 'r, R>,
        parent: Option<NodeId>,
        inside: Option<Span>,
        order: Order,
    ) -> Result<Self> {
        if order == Order::Ascending {
            let descend = Descend::open(&view, inside, 1, Some((1, 1)))?;
            return Ok(Self::Forwards(Visits::new(descend)));
        }
        let (lo, hi) = inside.map_or((0, 0), |inside| (inside.first - 1, inside.last + 1));
        Ok(Self::Backwards { view, parent, lo, hi })
    }

    pub(super) fn next<V, C>(&mut self) -> Option<Result<TreeNode<R::Bytes<'r>, V, C>>> {
        match self {
            Self::Forwards(visits) => Some(visits.next()?.map(|visit| visit.node)),
            Self::Backwards { view, parent, lo, hi } => {
                let last = view.last(*lo, *hi).transpose()?;
                let child = last.and_then(|row| view.child_over(row, *parent));
                // After an error the walk ends.
                *hi = child.as_ref().map_or(*lo, |child| child.left);
                Some(child.map(row_node))
            }
        }
    }
}
