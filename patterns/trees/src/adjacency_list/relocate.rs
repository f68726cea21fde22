//! Moves a node, and renames it if a new name is given.

use keyloom::value::Codec;
use keyloom::{Result, Writer, check_key};

use super::AdjacencyList;
use super::change::Node;
use super::link::Link;
use super::place;
use crate::tree::{TreeError, unknown};
use crate::{InsertAt, NodeId, Tree, TreeNode};

impl<V: 'static, C: Codec<V>> AdjacencyList<V, C> {
    /// Moves a node. The place must not be directly beside the node itself.
    pub(super) fn relocate(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        new_name: Option<&str>,
        place: InsertAt,
    ) -> Result<()> {
        self.records.expect_writable(txn)?;
        let target = place.named();
        let (node, target_link) = self.with_target(txn, id, target)?;
        let Node { link: old, mut stored } = node.ok_or_else(|| unknown(&self.space, id))?;
        let target_link = self.expect_target(target, target_link)?;
        let parent = place::parent(place, target_link.as_ref());
        if let (Some(target), Some(link)) = (target, &target_link) {
            let above = || self.is_at_or_above(txn, id, link.parent);
            // A move among siblings does not change the ancestors of the node.
            if target == id || (parent != old.parent && above()?) {
                return Err(TreeError::BelowItself { node: id, target }.into());
            }
        }
        let old_name = self.name_in(id, &stored)?;
        let name = new_name.unwrap_or(&old_name);
        let gap = self.gap(txn, Some(id), name, place, target_link.as_ref())?;
        if gap.holds(&old, id) {
            return new_name.map_or(Ok(()), |name| self.rename(txn, id, name));
        }
        let moves_out = parent != old.parent;
        let name_key = match moves_out || name != old_name {
            true => self.free_name(txn, parent, name, id, &[])?,
            false => None,
        };
        if new_name.is_some() {
            stored = TreeNode::<&[u8], V, C>::new(id, &stored, 0).renamed(name)?;
        }
        let mut room = self.room(txn, &gap, 1, Some(id), &txn.limits())?;
        let link = Link { parent, rank: room.ranks.pop().unwrap_or_default() };
        check_key(&self.child_key(&link, id))?;
        txn.delete(&self.child_key(&old, id))?;
        self.write(txn, id, &link, &stored)?;
        if new_name.is_some() {
            self.records.put(txn, id, &stored)?;
        }
        self.write_again(txn, parent, &room)?;
        if moves_out {
            txn.add(&self.count_key(old.parent), -1)?;
            txn.add(&self.count_key(parent), 1)?;
        }
        if name_key.is_some() {
            txn.delete(&self.name_key(old.parent, &old_name))?;
            self.put_name(txn, name_key, id)?;
        }
        Ok(())
    }
}
