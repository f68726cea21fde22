//! Changes: all reads come first, then all writes at once.

use std::ops::Deref;

use keyloom::{KeyBuf, Limits, Reader, Result, Writer};
use keyloom_kit::Progress;
use keyloom_kit::derived::SortedWrites;

use super::labels::{Gap, Label, Span};
use super::layout::{Keys, Position, Positions, Row, disagreement, row_bytes};
use super::view::View;
use crate::NodeId;

/// A node to be placed; its descendants follow it.
pub(super) struct Going<B> {
    /// The depth of the node below the first node.
    pub(super) depth: u32,
    pub(super) id: NodeId,
    /// The part of the node that all models store.
    pub(super) node: B,
}

/// Adds the depths to rows in preorder.
pub(super) fn with_depths<B>(rows: Vec<Row<B>>) -> impl Iterator<Item = (u32, Row<B>)> {
    let mut open: Vec<Label> = Vec::new();
    rows.into_iter().map(move |row| {
        while open.last().is_some_and(|open| *open < row.right) {
            open.pop();
        }
        let depth = open.len() as u32;
        open.push(row.right);
        (depth, row)
    })
}

/// Returns, for each node in preorder, the indexes of its left and right labels in a run of labels,
/// and its parent. A node that is not below another of these nodes gets the parent `parent`.
pub(super) fn intervals(
    nodes: impl Iterator<Item = (u32, NodeId)>,
    parent: Option<NodeId>,
) -> Vec<(usize, usize, Option<NodeId>)> {
    let mut intervals: Vec<(usize, usize, Option<NodeId>)> = Vec::new();
    // The open nodes with their indexes in `intervals`, and the number of labels assigned.
    let mut open: Vec<(usize, NodeId)> = Vec::new();
    let mut given = 0;
    for (depth, id) in nodes {
        close(&mut intervals, &mut open, depth, &mut given);
        let parent = open.last().map_or(parent, |(_, id)| Some(*id));
        open.push((intervals.len(), id));
        intervals.push((given, given, parent));
        given += 1;
    }
    close(&mut intervals, &mut open, 0, &mut given);
    intervals
}

/// Closes all open nodes at this depth or deeper.
fn close(
    intervals: &mut [(usize, usize, Option<NodeId>)],
    open: &mut Vec<(usize, NodeId)>,
    depth: u32,
    given: &mut usize,
) {
    while open.len() > depth as usize {
        let Some((at, _)) = open.pop() else { return };
        if let Some((_, right, _)) = intervals.get_mut(at) {
            *right = *given;
        }
        *given += 1;
    }
}

/// The writes of a change.
#[derive(Default)]
pub(super) struct Change {
    /// Spans whose rows are all moved or deleted: one range deletion each, before all other writes.
    pub(super) cleared: Vec<Span>,
    pub(super) writes: SortedWrites,
}

impl Change {
    pub(super) fn put_row(
        &mut self,
        keys: &Keys,
        span: Span,
        id: NodeId,
        node: &[u8],
    ) -> Result<()> {
        self.writes.put(&keys.left(span.first), &row_bytes(span, id, node))
    }

    pub(super) fn put_position(&mut self, keys: &Keys, id: NodeId, at: Positions) -> Result<()> {
        self.writes.put(&keys.node(id), &at.encode())
    }

    /// Writes the change, and returns the number of keys written and removed; a deleted range
    /// counts as one key.
    pub(super) fn make(mut self, keys: &Keys, txn: &mut impl Writer) -> Result<Progress> {
        let mut done = self.writes.progress();
        done.removed += self.cleared.len() as u64;
        for span in self.cleared {
            txn.delete_range(keys.lefts(span))?;
        }
        self.writes.apply(txn)?;
        Ok(done)
    }
}

impl<R: Reader> View<'_, '_, R> {
    /// The nodes of a span, to be placed elsewhere.
    pub(super) fn going(&self, span: Span) -> Result<Vec<Going<Vec<u8>>>> {
        let rows = with_depths(self.rows(span)?);
        Ok(rows
            .map(|(depth, row)| Going { depth, id: row.id, node: row.node().to_vec() })
            .collect())
    }

    /// The change that places nodes in a gap.
    pub(super) fn place<B: Deref<Target = [u8]>>(
        &self,
        gap: &Gap,
        nodes: &[Going<B>],
        limits: &Limits,
    ) -> Result<Change> {
        let room = self.room(gap, 2 * nodes.len() as u64, limits)?;
        let mut change = self.give_way(room.window, &room.moved)?;
        let intervals = intervals(nodes.iter().map(|node| (node.depth, node.id)), gap.parent);
        for (node, (left, right, parent)) in nodes.iter().zip(intervals) {
            let (Some(&left), Some(&right)) = (room.labels.get(left), room.labels.get(right))
            else {
                continue;
            };
            let span = Span { first: left, last: right };
            change.put_row(self.keys, span, node.id, &node.node)?;
            change.put_position(self.keys, node.id, Position { left, parent }.into())?;
        }
        Ok(change)
    }

    /// The change that gives rows new labels.
    pub(super) fn give_way(
        &self,
        window: Option<Span>,
        moved: &[(Label, Row<Vec<u8>>)],
    ) -> Result<Change> {
        let mut change = Change { cleared: window.into_iter().collect(), ..Change::default() };
        for (_, row) in moved {
            change.put_row(self.keys, row.span(), row.id, row.node())?;
        }
        let elsewhere: Vec<_> = moved.iter().filter(|(old, row)| *old != row.left).collect();
        let keys: Vec<KeyBuf> = elsewhere.iter().map(|(_, row)| self.keys.node(row.id)).collect();
        let found = self.reader.get_many(&keys)?;
        for (((old, row), key), found) in elsewhere.into_iter().zip(&keys).zip(found) {
            let Some(bytes) = found else { return Err(disagreement(key)) };
            let Position { left, parent } = Positions::decode(&bytes)?.now;
            if left != *old {
                return Err(disagreement(key));
            }
            change.put_position(self.keys, row.id, Position { left: row.left, parent }.into())?;
        }
        Ok(change)
    }
}
