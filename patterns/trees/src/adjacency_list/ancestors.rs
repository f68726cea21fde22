//! Walks from a node up to its root.

use keyloom::{Reader, Result};

use super::AdjacencyList;
use super::link::Link;
use super::read::Linked;
use crate::tree::{TreeError, not_below};
use crate::{NodeId, TreeNode};

impl<V, C> AdjacencyList<V, C> {
    pub(super) fn walk_up<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<TreeNode<R::Bytes<'r>, V, C>>> {
        let (link, _) = self.known(reader, id)?;
        let mut ancestors: Vec<TreeNode<R::Bytes<'r>, V, C>> = Vec::new();
        let (mut next, mut steps) = (link.parent, Steps::new(id));
        while let Some(parent) = next {
            let (link, node) = self.step_up(reader, parent, &mut steps)?;
            next = link.parent;
            ancestors.push(node);
        }
        Ok(ancestors)
    }

    /// The nodes from `last` up to the child of `from`; empty if both are the same.
    pub(super) fn way(
        &self,
        reader: &impl Reader,
        from: Option<NodeId>,
        last: NodeId,
    ) -> Result<Vec<(NodeId, Link)>> {
        let (mut link, _) = self.known(reader, last)?;
        let (mut way, mut steps) = (Vec::new(), Steps::new(last));
        if from == Some(last) {
            return Ok(way);
        }
        let mut id = last;
        loop {
            let parent = link.parent;
            way.push((id, link));
            match parent {
                _ if parent == from => return Ok(way),
                None => return Err(not_below(last, from)),
                Some(parent) => {
                    (link, id) = (self.step_up(reader, parent, &mut steps)?.0, parent);
                }
            }
        }
    }

    /// Whether `id` is `from` or one of its ancestors. `from` must exist.
    pub(super) fn is_at_or_above(
        &self,
        reader: &impl Reader,
        id: NodeId,
        from: Option<NodeId>,
    ) -> Result<bool> {
        let Some(mut at) = from else { return Ok(false) };
        let mut steps = Steps::new(at);
        let mut first = true;
        while at != id {
            let (link, _) = match std::mem::take(&mut first) {
                true => self.known(reader, at)?,
                false => self.step_up(reader, at, &mut steps)?,
            };
            match link.parent {
                Some(parent) => at = parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn step_up<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        steps: &mut Steps,
    ) -> Result<Linked<'r, R, V, C>> {
        let broken = || TreeError::Broken { tree: self.space.named(), node: id }.into();
        match self.find(reader, id)? {
            Some(found) if !steps.come_back_to(id) => Ok(found),
            _ => Err(broken()),
        }
    }
}

/// Detects cycles on a walk to the root (Brent's algorithm), so that a walk in a broken tree ends.
struct Steps {
    mark: NodeId,
    taken: u32,
    until: u32,
}

impl Steps {
    fn new(from: NodeId) -> Self {
        Self { mark: from, taken: 0, until: 16 }
    }

    fn come_back_to(&mut self, id: NodeId) -> bool {
        if id == self.mark {
            return true;
        }
        self.taken += 1;
        if self.taken == self.until {
            self.until = self.until.saturating_mul(2);
            self.mark = id;
        }
        false
    }
}
