//! The nodes of a document in memory: one row each, in preorder.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ops::{Bound, Deref, Range, RangeBounds};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use keyloom::Result;

use crate::{NodeId, TreeNode, VisitedNode};

/// The bytes of a node: a slice of the document. The document stays in memory as long as one of its
/// nodes does.
#[derive(Clone, Debug)]
pub struct DocumentBytes {
    text: Arc<Vec<u8>>,
    at: Range<usize>,
}

impl Deref for DocumentBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.text.get(self.at.clone()).unwrap_or_default()
    }
}

/// A node of the document. Its index among the rows is its *position*.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: NodeId,
    /// The range of the node's bytes in the text.
    pub(super) at: Range<usize>,
    /// 0 for a root.
    pub(super) depth: u32,
    /// The position of the parent; [`NO_PARENT`] for a root.
    parent: u32,
    /// The number of rows in the subtree, including this row.
    span: u32,
}

const NO_PARENT: u32 = u32::MAX;

impl Row {
    /// A row that is not yet in a [`Preorder`].
    pub(super) fn new(id: NodeId, at: Range<usize>, depth: u32) -> Self {
        Self { id, at, depth, parent: NO_PARENT, span: 1 }
    }
}

/// Rows, and the text with the bytes of their nodes. The text only grows: the bytes of a changed
/// node are appended.
#[derive(Clone, Debug, Default)]
pub(super) struct Preorder {
    text: Arc<Vec<u8>>,
    rows: Vec<Row>,
    index: Index,
}

impl Preorder {
    pub(super) fn new(text: Vec<u8>, rows: Vec<Row>) -> Self {
        Self { text: Arc::new(text), ..Self::default() }.with_rows(rows)
    }

    /// Returns a preorder with other rows over the same text.
    pub(super) fn with_rows(&self, rows: Vec<Row>) -> Self {
        let mut this = Self { text: Arc::clone(&self.text), rows, index: Index::default() };
        this.link();
        this
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Sets the parent and the span of each row.
    fn link(&mut self) {
        let mut open: Vec<u32> = Vec::new();
        for position in 0..self.rows.len() {
            let Some(row) = self.rows.get_mut(position) else { break };
            let depth = row.depth as usize;
            row.parent = depth
                .checked_sub(1)
                .and_then(|above| open.get(above))
                .copied()
                .unwrap_or(NO_PARENT);
            while open.len() > depth {
                self.close(&mut open, position);
            }
            open.push(position as u32);
        }
        while !open.is_empty() {
            self.close(&mut open, self.rows.len());
        }
    }

    fn close(&mut self, open: &mut Vec<u32>, end: usize) {
        let Some(position) = open.pop() else { return };
        if let Some(row) = self.rows.get_mut(position as usize) {
            row.span = end as u32 - position;
        }
    }

    // ---- positions of nodes

    pub(super) fn position(&self, id: NodeId) -> Option<usize> {
        self.index.position(&self.rows, id)
    }

    /// The rows of the node and its descendants.
    pub(super) fn subtree(&self, position: usize) -> Range<usize> {
        position..position + self.rows.get(position).map_or(1, |row| row.span as usize)
    }

    /// The rows below a node, or all rows.
    pub(super) fn below(&self, parent: Option<usize>) -> Range<usize> {
        match parent {
            Some(parent) => parent + 1..self.subtree(parent).end,
            None => 0..self.rows.len(),
        }
    }

    pub(super) fn children(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        let Range { start: mut next, end } = self.below(parent);
        std::iter::from_fn(move || {
            let child = next;
            next = self.subtree(child).end;
            (child < end).then_some(child)
        })
    }

    pub(super) fn parent(&self, position: usize) -> Option<usize> {
        self.rows
            .get(position)
            .map(|row| row.parent)
            .filter(|&parent| parent != NO_PARENT)
            .map(|parent| parent as usize)
    }

    /// The parent, the parent's parent, and so on.
    pub(super) fn ancestors(&self, position: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parent(position), |&above| self.parent(above))
    }

    pub(super) fn depth(&self, position: usize) -> u32 {
        self.rows.get(position).map_or(0, |row| row.depth)
    }

    pub(super) fn id(&self, position: usize) -> NodeId {
        self.rows.get(position).map_or(0, |row| row.id)
    }

    // ---- nodes

    pub(super) fn node<V, C>(&self, position: usize) -> TreeNode<DocumentBytes, V, C> {
        let (id, at) = self.rows.get(position).map_or((0, 0..0), |row| (row.id, row.at.clone()));
        TreeNode::new(id, DocumentBytes { text: Arc::clone(&self.text), at }, 0)
    }

    // ---- changes

    /// Calls `write` to append the bytes of a node to the text; returns their range.
    pub(super) fn append(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Range<usize>> {
        let text = Arc::make_mut(&mut self.text);
        let start = text.len();
        if let Err(error) = write(text) {
            text.truncate(start);
            return Err(error);
        }
        Ok(start..text.len())
    }

    /// Sets the bytes of the node at a position.
    pub(super) fn set(&mut self, position: usize, at: Range<usize>) {
        if let Some(row) = self.rows.get_mut(position) {
            row.at = at;
        }
    }

    /// Inserts rows before the position.
    pub(super) fn insert(&mut self, position: usize, rows: impl IntoIterator<Item = Row>) {
        self.rows.splice(position..position, rows);
        self.changed();
    }

    /// Removes rows, and returns them.
    pub(super) fn remove(&mut self, rows: Range<usize>) -> Vec<Row> {
        let removed = self.rows.splice(rows, []).collect();
        self.changed();
        removed
    }

    fn changed(&mut self) {
        self.index = Index::default();
        self.link();
    }
}

/// A walk in preorder, over a borrowed document or over rows that the walk owns.
pub(super) fn visits<V, C, B: Borrow<Preorder>>(
    rows: B,
    from: Option<usize>,
    depths: (Bound<u32>, Bound<u32>),
) -> impl Iterator<Item = VisitedNode<DocumentBytes, V, C>> {
    let tree: &Preorder = rows.borrow();
    // In a walk over the whole forest the roots have depth 1.
    let (mut walk, top, first) = match from {
        Some(from) => (tree.subtree(from), tree.depth(from), 0),
        None => (tree.below(None), 0, 1),
    };
    std::iter::from_fn(move || {
        let tree: &Preorder = rows.borrow();
        walk.by_ref()
            .map(|position| (position, tree.depth(position) - top + first))
            .find(|(_, depth)| depths.contains(depth))
            .map(|(position, depth)| VisitedNode { depth, node: tree.node(position) })
    })
}

/// Copies the bounds, so that the result borrows nothing.
pub(super) fn owned(depths: &impl RangeBounds<u32>) -> (Bound<u32>, Bound<u32>) {
    (depths.start_bound().cloned(), depths.end_bound().cloned())
}

/// Finds the position of an id. The first few lookups scan the rows, which is faster than building
/// a map; the next lookup builds the map.
#[derive(Debug, Default)]
struct Index {
    asked: AtomicU32,
    positions: OnceLock<HashMap<NodeId, usize>>,
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Index {
    // Building the map takes longer than a scan of the rows, and the map takes memory. A lower
    // limit builds the map even for documents of which only a few nodes are read. A higher limit
    // makes more lookups scan the rows.
    const FEW: u32 = 8;

    fn position(&self, rows: &[Row], id: NodeId) -> Option<usize> {
        if self.asked.load(Ordering::Relaxed) < Self::FEW {
            self.asked.fetch_add(1, Ordering::Relaxed);
            return rows.iter().position(|row| row.id == id);
        }
        let made = || rows.iter().enumerate().map(|(position, row)| (row.id, position)).collect();
        self.positions.get_or_init(made).get(&id).copied()
    }
}
