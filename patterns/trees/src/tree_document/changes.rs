//! Changes of a document in memory.

use std::collections::HashSet;
use std::ops::Range;

use keyloom::Result;
use keyloom::value::Codec;

use super::document::Document;
use super::preorder::{Preorder, Row};
use crate::tree::{encode_node, exists};
use crate::{InsertAt, NestedNode, NodeId, OnDelete, TreeError};

/// An insert position among the rows.
struct Spot {
    position: usize,
    depth: u32,
}

impl<V, C: Codec<V>> Document<V, C> {
    /// Adds a node.
    ///
    /// # Errors
    /// [`TreeError::NodeExists`]; [`TreeError::UnknownNode`] or [`TreeError::NoSuchPosition`] for
    /// the place; an error if the value cannot be encoded.
    pub fn insert(&mut self, id: NodeId, name: &str, value: &V, place: InsertAt) -> Result<()> {
        self.expect_absent(id)?;
        let spot = self.spot(&self.rows, place, name)?;
        let at = self.rows.append(|out| encode_node::<V, C>(name, value, out))?;
        self.rows.insert(spot.position, [Row::new(id, at, spot.depth)]);
        Ok(())
    }

    /// Renames a node. The node keeps its place.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    pub fn rename(&mut self, id: NodeId, name: &str) -> Result<()> {
        let position = self.position(id)?;
        let renamed = self.rows.node::<V, C>(position).renamed(name)?;
        let at = self.rows.append(|out| {
            out.extend_from_slice(&renamed);
            Ok(())
        })?;
        self.rows.set(position, at);
        Ok(())
    }

    /// Sets the value of a node.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; an error if the value cannot be encoded.
    pub fn set_value(&mut self, id: NodeId, value: &V) -> Result<()> {
        let position = self.position(id)?;
        let node = self.rows.node::<V, C>(position);
        let name = node.name()?.to_owned();
        drop(node);
        let at = self.rows.append(|out| encode_node::<V, C>(&name, value, out))?;
        self.rows.set(position, at);
        Ok(())
    }

    /// Moves a node with all its descendants.
    ///
    /// # Errors
    /// [`TreeError::BelowItself`]; [`TreeError::UnknownNode`]; [`TreeError::NoSuchPosition`].
    pub fn move_to(&mut self, id: NodeId, place: InsertAt) -> Result<()> {
        let position = self.position(id)?;
        if place.is_beside(id) {
            return Ok(());
        }
        let subtree = self.rows.subtree(position);
        self.expect_outside(id, &subtree, place)?;
        let node = self.rows.node::<V, C>(position);
        // Find the place among the other rows first, and change the document only after that.
        let mut others = self.rows.clone();
        let mut moved = others.remove(subtree);
        let spot = self.spot(&others, place, node.name()?)?;
        let top = moved.first().map_or(0, |row| row.depth);
        moved.iter_mut().for_each(|row| row.depth = row.depth - top + spot.depth);
        others.insert(spot.position, moved);
        self.rows = others;
        Ok(())
    }

    /// Deletes a node and all its descendants, and returns the number of deleted nodes.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    pub fn delete_subtree(&mut self, id: NodeId) -> Result<u64> {
        let subtree = self.rows.subtree(self.position(id)?);
        Ok(self.rows.remove(subtree).len() as u64)
    }

    /// Deletes a single node. Its children take its place, or become roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    pub fn delete_node(&mut self, id: NodeId, orphans: OnDelete) -> Result<()> {
        let position = self.position(id)?;
        let depth = self.rows.depth(position);
        let mut removed = self.rows.remove(self.rows.subtree(position)).split_off(1);
        let (back_at, rise) = match orphans {
            OnDelete::Reparent => (position, 1),
            OnDelete::Promote => (self.len(), depth + 1),
        };
        removed.iter_mut().for_each(|row| row.depth -= rise);
        self.rows.insert(back_at, removed);
        Ok(())
    }

    /// Adds whole trees as the last children of `parent`.
    ///
    /// # Errors
    /// The errors of [`insert`](Document::insert). After an error, no tree has been added.
    pub fn import(
        &mut self,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        let Some(first) = trees.first() else { return Ok(()) };
        self.expect_absent(first.id)?;
        let spot = self.spot(&self.rows, InsertAt::Last(parent.into()), "")?;
        let mut ids: HashSet<NodeId> = self.rows.rows().iter().map(|row| row.id).collect();
        let nodes = || trees.iter().flat_map(NestedNode::preorder);
        if let Some((_, node)) = nodes().find(|(_, node)| !ids.insert(node.id)) {
            return Err(self.exists(node.id));
        }
        let mut rows = Vec::new();
        self.rows.append(|out| {
            for (depth, node) in nodes() {
                let start = out.len();
                encode_node::<V, C>(&node.name, &node.value, out)?;
                rows.push(Row::new(node.id, start..out.len(), spot.depth + depth));
            }
            Ok(())
        })?;
        self.rows.insert(spot.position, rows);
        Ok(())
    }

    /// The position of a place among `rows`.
    fn spot(&self, rows: &Preorder, place: InsertAt, name: &str) -> Result<Spot> {
        let known = |id| rows.position(id).ok_or_else(|| self.unknown(id));
        match place {
            InsertAt::Before(sibling) => {
                let position = known(sibling)?;
                Ok(Spot { position, depth: rows.depth(position) })
            }
            InsertAt::After(sibling) => {
                let position = known(sibling)?;
                let depth = rows.depth(position);
                Ok(Spot { position: rows.subtree(position).end, depth })
            }
            InsertAt::First(parent)
            | InsertAt::Last(parent)
            | InsertAt::At(parent, _)
            | InsertAt::Sorted(parent) => {
                let parent = parent.map(known).transpose()?;
                let position = self.position_below(rows, parent, place, name)?;
                Ok(Spot { position, depth: parent.map_or(0, |parent| rows.depth(parent) + 1) })
            }
        }
    }

    /// The position of a place among the children of a node.
    fn position_below(
        &self,
        rows: &Preorder,
        parent: Option<usize>,
        place: InsertAt,
        name: &str,
    ) -> Result<usize> {
        let Range { start, end } = rows.below(parent);
        match place {
            InsertAt::First(_) => Ok(start),
            InsertAt::At(id, position) => {
                let children: Vec<usize> = rows.children(parent).chain([end]).collect();
                let before = usize::try_from(position).ok().and_then(|at| children.get(at));
                before.copied().ok_or_else(|| {
                    let children = children.len() as u64 - 1;
                    TreeError::NoSuchPosition { parent: id, position, children }.into()
                })
            }
            InsertAt::Sorted(_) => {
                for child in rows.children(parent) {
                    if rows.node::<V, C>(child).name()? > name {
                        return Ok(child);
                    }
                }
                Ok(end)
            }
            _ => Ok(end),
        }
    }

    /// Returns an error if the target of a move does not exist, or is inside the moved subtree.
    fn expect_outside(&self, id: NodeId, subtree: &Range<usize>, place: InsertAt) -> Result<()> {
        let Some(target) = place.named() else { return Ok(()) };
        if subtree.contains(&self.position(target)?) {
            return Err(TreeError::BelowItself { node: id, target }.into());
        }
        Ok(())
    }

    fn expect_absent(&self, id: NodeId) -> Result<()> {
        self.rows.position(id).map_or(Ok(()), |_| Err(self.exists(id)))
    }

    #[cold]
    fn exists(&self, node: NodeId) -> keyloom::Error {
        exists(&self.tree.space, node)
    }
}
