//! Depth-first walks down the tree.

use std::collections::HashSet;
use std::ops::RangeBounds;
use std::vec::IntoIter;

use keyloom::key::{Unpack, Unpacker};
use keyloom::{Error, KeyRange, Order, Reader, Result};

use super::AdjacencyList;
use crate::tree::{TreeError, depth_bounds};
use crate::{NodeId, TreeNode, VisitedNode};

/// The number of siblings per read: initial and maximum.
// Each read is four times as large as the previous one. So a walk that ends early reads few
// unneeded siblings, and a walk over a wide level needs few round trips.
const SIBLINGS: (usize, usize) = (16, 1_024);

impl<V, C> AdjacencyList<V, C> {
    pub(super) fn walk_down<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: Option<NodeId>,
        depths: &impl RangeBounds<u32>,
    ) -> Result<Descendants<'r, R, V, C>> {
        let mut walk = self.walk_from(reader, from, depths);
        if let Some(id) = from {
            let (_, node) = self.known(reader, id)?;
            walk.itself = (walk.first == 0 && walk.end > 0).then_some(node);
        }
        // The roots have depth 1, like the children of a node.
        walk.open_level(1, from)?;
        Ok(walk)
    }

    /// A walk that continues after the node `last`. Opens the levels above `last`, each after the
    /// node on the path to `last`.
    pub(super) fn walk_on<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: Option<NodeId>,
        last: NodeId,
        depths: &impl RangeBounds<u32>,
    ) -> Result<Descendants<'r, R, V, C>> {
        let mut walk = self.walk_from(reader, from, depths);
        let way = self.way(reader, from, last)?;
        let mut depth = 1;
        for (id, link) in way.iter().rev() {
            walk.open_rest(depth, link.parent, self.entries_after(link, *id, Order::Ascending))?;
            depth += 1;
        }
        walk.open_level(depth, Some(last))?;
        Ok(walk)
    }

    /// A walk without open levels.
    fn walk_from<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: Option<NodeId>,
        depths: &impl RangeBounds<u32>,
    ) -> Descendants<'r, R, V, C> {
        let (first, end) = match depth_bounds(depths) {
            Some((least, most)) => (u64::from(least), u64::from(most) + 1),
            None => (0, 0),
        };
        Descendants {
            tree: self.clone(),
            reader,
            from,
            first,
            end,
            itself: None,
            open: Vec::new(),
            path: HashSet::new(),
        }
    }
}

/// A walk through the descendants of a node.
pub(super) struct Descendants<'r, R: Reader, V, C> {
    tree: AdjacencyList<V, C>,
    reader: &'r R,
    from: Option<NodeId>,
    /// The requested depths: `first..end`.
    first: u64,
    end: u64,
    /// The start node, if it is requested.
    itself: Option<TreeNode<R::Bytes<'r>, V, C>>,
    /// The siblings at each open depth, from depth 1 down.
    open: Vec<Level<'r, R>>,
    /// The parents of the open levels. If the walk reaches one of these nodes again, there is a
    /// cycle.
    path: HashSet<NodeId>,
}

struct Level<'r, R: Reader + 'r> {
    depth: u32,
    parent: Option<NodeId>,
    entries: R::Entries<'r>,
    /// Siblings already read.
    ready: IntoIter<Sibling<R::Bytes<'r>>>,
    /// The number of entries to read next.
    batch: usize,
}

pub(super) struct Sibling<B> {
    pub(super) id: NodeId,
    pub(super) stored: B,
    /// Whether the node may have children.
    pub(super) is_inner: bool,
}

impl<'r, R: Reader, V, C> Descendants<'r, R, V, C> {
    fn open_level(&mut self, depth: u32, parent: Option<NodeId>) -> Result<()> {
        self.open_rest(depth, parent, self.tree.entries_of(parent))
    }

    /// Opens a level with only the child entries in `entries`.
    fn open_rest(
        &mut self,
        depth: u32,
        parent: Option<NodeId>,
        entries: KeyRange<'_>,
    ) -> Result<()> {
        if u64::from(depth) >= self.end {
            return Ok(());
        }
        let entries = self.reader.range(entries, Order::Ascending)?;
        let ready = Vec::new().into_iter();
        self.open.push(Level { depth, parent, entries, ready, batch: SIBLINGS.0 });
        self.path.extend(parent);
        Ok(())
    }

    fn step(&mut self) -> Result<Option<VisitedNode<R::Bytes<'r>, V, C>>> {
        if let Some(node) = self.itself.take() {
            return Ok(Some(VisitedNode { depth: 0, node }));
        }
        while let Some(level) = self.open.last_mut() {
            let Some(sibling) = level.ready.next() else {
                if !self.read_siblings()? {
                    self.close_level();
                }
                continue;
            };
            let (depth, id) = (level.depth, sibling.id);
            if Some(id) == self.from || (sibling.is_inner && self.path.contains(&id)) {
                let tree = self.tree.space.named();
                return Err(TreeError::Broken { tree, node: id }.into());
            }
            if sibling.is_inner {
                self.open_level(depth + 1, Some(id))?;
            }
            if u64::from(depth) >= self.first {
                return Ok(Some(VisitedNode { depth, node: TreeNode::new(id, sibling.stored, 0) }));
            }
        }
        Ok(None)
    }

    fn close_level(&mut self) {
        if let Some(Level { parent: Some(parent), .. }) = self.open.pop() {
            self.path.remove(&parent);
        }
    }

    /// Reads more siblings of the deepest level; returns whether any were left.
    fn read_siblings(&mut self) -> Result<bool> {
        let Some(level) = self.open.last_mut() else { return Ok(false) };
        let mut siblings = Vec::new();
        for entry in level.entries.by_ref().take(level.batch) {
            let (key, stored) = entry?;
            siblings.push(Sibling { id: self.tree.child_id(&key)?, stored, is_inner: true });
        }
        level.batch = (4 * level.batch).min(SIBLINGS.1);
        let children_wanted = u64::from(level.depth) + 1 < self.end;
        if children_wanted {
            find_leaves(&self.tree, self.reader, &mut siblings)?;
        } else {
            siblings.iter_mut().for_each(|sibling| sibling.is_inner = false);
        }
        let any = !siblings.is_empty();
        level.ready = siblings.into_iter();
        Ok(any)
    }
}

/// Determines which siblings have children.
///
/// Child entries are ordered by parent. If the first entry at or after an id belongs to a greater
/// id, no id between the two has children. So one range read skips all siblings between two
/// siblings that have children.
pub(super) fn find_leaves<R: Reader, B, V, C>(
    tree: &AdjacencyList<V, C>,
    reader: &R,
    siblings: &mut [Sibling<B>],
) -> Result<()> {
    // For fewer than three siblings, opening a range for each costs no more.
    if siblings.len() < 3 {
        return Ok(());
    }
    let mut by_id: Vec<(NodeId, usize)> =
        siblings.iter().enumerate().map(|(at, sibling)| (sibling.id, at)).collect();
    by_id.sort_unstable();
    siblings.iter_mut().for_each(|sibling| sibling.is_inner = false);
    let Some((last, _)) = by_id.last() else { return Ok(()) };
    let last = tree.children.pack(&(Some(*last),));
    let mut rest = by_id.as_slice();
    while let Some((id, _)) = rest.first() {
        let from = tree.children.pack(&(Some(*id),));
        let range = KeyRange::starting_at(&from).intersect(KeyRange::through(&last));
        let Some((key, _)) = reader.first(range)? else { break };
        let behind = key.get(tree.children.prefix().len()..).unwrap_or_default();
        let parent = NodeId::unpack(&mut Unpacker::new(behind))
            .map_err(|error| Error::from(error).at(&key))?;
        let leaves = rest.partition_point(|(id, _)| *id < parent);
        rest = rest.get(leaves..).unwrap_or_default();
        if let Some((id, at)) = rest.first()
            && *id == parent
        {
            if let Some(sibling) = siblings.get_mut(*at) {
                sibling.is_inner = true;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    Ok(())
}

impl<'r, R: Reader, V, C> Iterator for Descendants<'r, R, V, C> {
    type Item = Result<VisitedNode<R::Bytes<'r>, V, C>>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.open.clear();
        }
        step.transpose()
    }
}
