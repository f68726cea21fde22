//! Walks from a node up to its root.

use keyloom::{Reader, Result};

use super::AdjacencyList;
use super::read::Linked;
use crate::tree::TreeError;
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
        let broken = || TreeError::Broken { tree: self.space.to_string(), node: id }.into();
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
