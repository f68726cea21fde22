//! Finds the gap between labels for a place among siblings.

use keyloom::{Reader, Result};

use super::descend::Descend;
use super::labels::{Gap, Side, Span};
use super::layout::{Position, disagreement};
use super::view::{RowOf, View, between};
use crate::{InsertAt, NodeId, TreeError, TreeNode};

/// A node to be placed.
#[derive(Clone, Copy)]
pub(super) struct Placed<'n> {
    pub(super) id: NodeId,
    pub(super) name: &'n str,
    /// The current span of the node, with all descendants, if the node is moved.
    pub(super) span: Option<Span>,
}

impl<'k, 'r, R: Reader> View<'k, 'r, R> {
    /// The gap for a place, in the tree without the node being placed.
    pub(super) fn gap(&self, what: Placed<'_>, place: InsertAt) -> Result<Gap> {
        if let Some(span) = what.span.filter(|_| place.is_beside(what.id)) {
            // A node placed beside itself keeps its place: the gap lies between the labels directly
            // before and after the node's own labels.
            let parent = self.named(what.id)?.parent;
            return Ok(Gap { parent, lo: span.first - 1, hi: span.last + 1, side: Side::Inside });
        }
        let target = self.target(what, place)?;
        let without;
        let view = match what.span {
            Some(span) => {
                without = self.without(span);
                &without
            }
            None => self,
        };
        let gap = match (place, target) {
            (InsertAt::First(parent), _) => view.at_front(parent)?,
            (InsertAt::Last(parent), _) => view.at_back(parent)?,
            (InsertAt::At(parent, position), _) => view.at_position(parent, position)?,
            (InsertAt::Sorted(parent), _) => view.sorted(parent, what.name)?,
            (InsertAt::Before(_), at) => view.before(at)?,
            (InsertAt::After(sibling), at) => view.after(sibling, at)?,
        };
        if gap.lo >= gap.hi {
            // The ends of a row contradict its neighbours.
            return Err(disagreement(&self.keys.left(gap.lo)));
        }
        view.refuse_gap_in_steps(&gap)?;
        Ok(gap)
    }

    /// Refuses a gap in a subtree that is moved or deleted in steps, or among hidden rows.
    fn refuse_gap_in_steps(&self, gap: &Gap) -> Result<()> {
        let Some(steps) = self.steps else { return Ok(()) };
        if let Some(parent) = gap.parent {
            let left = self.named(parent)?.left;
            self.refuse_in_steps(Span { first: left, last: left })?;
        }
        let taken = between(gap.lo, gap.hi);
        match taken.is_some_and(|taken| steps.hidden().is_some_and(|h| h.overlaps(taken))) {
            false => Ok(()),
            true => Err(self.in_steps(steps.node)),
        }
    }

    /// The position of the parent or sibling that a place names; label 0 if the place names no
    /// node.
    fn target(&self, what: Placed<'_>, place: InsertAt) -> Result<Position> {
        let Some(target) = place.named() else { return Ok(Position { left: 0, parent: None }) };
        let position = self.named(target)?;
        if what.span.is_some_and(|span| span.contains(position.left)) {
            return Err(TreeError::BelowItself { node: what.id, target }.into());
        }
        Ok(position)
    }

    fn at_front(&self, parent: Option<NodeId>) -> Result<Gap> {
        let (lo, end) = self.inside(parent)?;
        Ok(match self.first(lo, end)? {
            Some(next) => Gap { parent, lo, hi: next.left, side: Side::Front },
            None => Gap { parent, lo, hi: end, side: Side::Inside },
        })
    }

    fn at_back(&self, parent: Option<NodeId>) -> Result<Gap> {
        let (begin, hi) = self.inside(parent)?;
        Ok(match self.last(begin, hi)? {
            Some(row) => {
                let lo = self.child_over(row, parent)?.right;
                Gap { parent, lo, hi, side: Side::Back }
            }
            None => Gap { parent, lo: begin, hi, side: Side::Inside },
        })
    }

    fn at_position(&self, parent: Option<NodeId>, position: u64) -> Result<Gap> {
        let mut children = 0;
        let found = self.before_child(parent, |_| {
            children += 1;
            Ok(children > position)
        })?;
        if children < position {
            return Err(TreeError::NoSuchPosition { parent, position, children }.into());
        }
        Ok(found)
    }

    fn sorted(&self, parent: Option<NodeId>, name: &str) -> Result<Gap> {
        self.before_child(parent, |row| {
            let node = TreeNode::<_, (), ()>::new(row.id, row.node(), 0);
            Ok(node.name()? > name)
        })
    }

    /// The gap before the first child for which `found` returns true, or after all children.
    fn before_child(
        &self,
        parent: Option<NodeId>,
        mut found: impl FnMut(&RowOf<'r, R>) -> Result<bool>,
    ) -> Result<Gap> {
        let (begin, end) = self.inside(parent)?;
        let mut children = Descend::open(self, between(begin, end), 1, Some((1, 1)))?;
        let mut lo = begin;
        while let Some(child) = children.next_row()? {
            if found(&child)? {
                let side = if lo == begin { Side::Front } else { Side::Inside };
                return Ok(Gap { parent, lo, hi: child.left, side });
            }
            lo = child.right;
        }
        let side = if lo == begin { Side::Inside } else { Side::Back };
        Ok(Gap { parent, lo, hi: end, side })
    }

    fn before(&self, sibling: Position) -> Result<Gap> {
        let Position { left: hi, parent } = sibling;
        let begin = match parent {
            None => 0,
            Some(parent) => self.named(parent)?.left,
        };
        Ok(match self.last(begin, hi)? {
            Some(row) => {
                let lo = self.child_over(row, parent)?.right;
                Gap { parent, lo, hi, side: Side::Inside }
            }
            None => Gap { parent, lo: begin, hi, side: Side::Front },
        })
    }

    fn after(&self, sibling: NodeId, at: Position) -> Result<Gap> {
        let lo = self.row_at(sibling, at.left)?.right;
        let (_, end) = self.inside(at.parent)?;
        Ok(match self.first(lo, end)? {
            Some(next) => Gap { parent: at.parent, lo, hi: next.left, side: Side::Inside },
            None => Gap { parent: at.parent, lo, hi: end, side: Side::Back },
        })
    }
}
