//! Nested sets.

mod change;
mod check;
mod contract;
mod descend;
mod labels;
mod layout;
mod place;
mod room;
mod steps;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
mod view;

use std::fmt;
use std::marker::PhantomData;

use keyloom::value::{Codec, Postcard};
use keyloom::{Reader, Result, Subspace, Writer};

use change::Change;
use descend::Descend;
use labels::Span;
use layout::{HEADER, Keys, Position};
use place::Placed;
use view::{View, between};

use super::{NodeId, Place, TreeNode};

/// A tree in which each node is an interval; see the [module](self).
pub struct NestedSets<V, C = Postcard> {
    keys: Keys,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V, C> Clone for NestedSets<V, C> {
    fn clone(&self) -> Self {
        Self { keys: self.keys.clone(), types: PhantomData }
    }
}

impl<V, C> fmt::Debug for NestedSets<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NestedSets").field("space", &self.keys.space).finish_non_exhaustive()
    }
}

impl<V> NestedSets<V> {
    /// A tree in `space`, whose values are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> NestedSets<V, C> {
    /// A tree in `space`, whose values are written with the codec `C`.
    pub fn with_codec(space: &Subspace) -> Self {
        Self { keys: Keys::new(space), types: PhantomData }
    }
}

impl<V: 'static, C: Codec<V>> NestedSets<V, C> {
    /// Gives a node another name, another value, or both.
    fn change_node(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        encode: impl FnOnce(&TreeNode<&[u8], V, C>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (left, bytes) = {
            let (view, row) = View::of_row(&self.keys, &*txn, id)?;
            view.refuse_in_steps(Span { first: row.left, last: row.left })?;
            let mut bytes = row.bytes.get(..HEADER).unwrap_or_default().to_vec();
            encode(&TreeNode::new(id, row.node(), 0), &mut bytes)?;
            (row.left, bytes)
        };
        txn.put(&self.keys.left(left), &bytes)
    }

    /// What deletes a node and gives its children to its parent.
    fn adopt(&self, view: &View<'_, '_, impl Reader>, id: NodeId, span: Span, at: Position) -> Result<Change> {
        let mut change = Change::default();
        change.writes.delete(&self.keys.left(span.first))?;
        change.writes.delete(&self.keys.node(id))?;
        let mut children =
            Descend::open(view, between(span.first, span.last), 1, Some((1, 1)))?;
        while let Some(child) = children.next_row()? {
            let now = Position { left: child.left, parent: at.parent };
            change.put_position(&self.keys, child.id, now.into())?;
        }
        Ok(change)
    }

    /// What deletes a node and makes its children the last roots.
    fn uproot(&self, view: &View<'_, '_, impl Reader>, id: NodeId, span: Span) -> Result<Change> {
        let placed = Placed { id, name: "", span: Some(span) };
        let gap = view.gap(placed, Place::Last(None))?;
        let below = match between(span.first, span.last) {
            Some(below) => view.going(below)?,
            None => Vec::new(),
        };
        let mut change = view.without(span).place(&gap, &below)?;
        change.cleared.push(span);
        change.writes.delete(&self.keys.node(id))?;
        Ok(change)
    }
}
