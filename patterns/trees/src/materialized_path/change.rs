//! The writes of changes, after all checks have passed.

use keyloom::value::Codec;
use keyloom::{KeyRange, Limits, Order, Reader, Result, Writer};
use keyloom_kit::Progress;
use keyloom_kit::derived::SortedWrites;

use super::super::rank;
use super::super::tree::{encode_node, exists};
use super::super::{InsertAt, NodeId, OnDelete, TreeNode};
use super::MaterializedPath;
use super::layout::{Layout, Located, foreign};
use super::path::{Path, by_rank, replanted};
use super::place::{Placed, Placing};
use super::steps::Steps;

/// Subtrees to remove, and the writes that follow.
#[derive(Default)]
pub(super) struct Rewrite {
    removed: Vec<KeyRange<'static>>,
    writes: SortedWrites,
}

impl Rewrite {
    /// Applies the changes, and returns the number of keys written and removed; a removed range
    /// counts as one key.
    pub(super) fn apply(&mut self, txn: &mut impl Writer) -> Result<Progress> {
        let mut done = self.writes.progress();
        done.removed += self.removed.len() as u64;
        self.removed.drain(..).try_for_each(|range| txn.delete_range(range))?;
        self.writes.apply(txn)?;
        Ok(done)
    }

    /// Writes a node at a new path.
    pub(super) fn put(
        &mut self,
        layout: &Layout,
        id: NodeId,
        path: &[u8],
        record: &[u8],
    ) -> Result<()> {
        self.writes.put(&layout.checked_key(id, path)?, record)?;
        self.writes.put(&layout.node(id), path)
    }

    /// Copies the subtree that is stored at `from` to `to`.
    fn copy(
        &mut self,
        layout: &Layout,
        reader: &impl Reader,
        from: &Path,
        to: &Path,
    ) -> Result<()> {
        for entry in reader.range(layout.subtree(from), Order::Ascending)? {
            let (key, record) = entry?;
            let id = layout.id_at(&key, &record)?;
            self.put(layout, id, &replanted(layout.path(&key), from, to), &record)?;
        }
        Ok(())
    }

    /// Moves a subtree from `from` to `to`.
    pub(super) fn replant(
        &mut self,
        layout: &Layout,
        reader: &impl Reader,
        from: &Path,
        to: &Path,
    ) -> Result<()> {
        self.removed.push(layout.subtree(from));
        self.copy(layout, reader, from, to)
    }

    pub(super) fn spread(
        &mut self,
        layout: &Layout,
        reader: &impl Reader,
        placed: &Placed,
    ) -> Result<()> {
        let mut siblings = placed.spread.iter();
        siblings.try_for_each(|(from, to)| self.replant(layout, reader, from, to))
    }
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn record(&self, id: NodeId, name: &str, value: &V) -> Result<Vec<u8>> {
        let mut record = Vec::with_capacity(name.len() + 32);
        self.layout.put_header(id, &mut record);
        encode_node::<V, C>(name, value, &mut record)?;
        Ok(record)
    }

    /// Updates the derived data of a node from its record.
    pub(super) fn put_record(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        record: &[u8],
    ) -> Result<()> {
        self.records.put(txn, id, record.get(self.layout.header()..).unwrap_or_default())
    }

    pub(super) fn insert_at(
        &self,
        txn: &mut impl Writer,
        (id, name, value): (NodeId, &str, &V),
        place: InsertAt,
    ) -> Result<()> {
        let layout = &self.layout;
        let ids: Vec<NodeId> = std::iter::once(id).chain(place.named()).collect();
        let located = layout.locate(txn, &ids)?;
        self.refuse_existing(&located, 0, id)?;
        let named = layout.named(&located, 1, place)?;
        let placing = Placing { id, name, place, moved: None };
        let placed = layout.placed(txn, &placing, &named, located.steps.as_ref(), &txn.limits())?;
        let Some(path) = &placed.path else { return Ok(()) };
        let mut rewrite = Rewrite::default();
        rewrite.spread(layout, txn, &placed)?;
        let record = self.record(id, name, value)?;
        rewrite.put(layout, id, path, &record)?;
        rewrite.apply(txn)?;
        self.put_record(txn, id, &record)
    }

    pub(super) fn refuse_existing(&self, located: &Located, n: usize, id: NodeId) -> Result<()> {
        if located.path(n).is_some() {
            return Err(exists(&self.layout.space, id));
        }
        // A node that is being deleted may still be stored.
        let is_stored = located.stored(n).is_some();
        self.layout.refuse_in_steps(located.steps.as_ref(), |_| is_stored)
    }

    /// The path and the record of a node, if its record may be changed while work in steps is
    /// pending.
    fn changeable(&self, reader: &impl Reader, id: NodeId) -> Result<(Path, Vec<u8>)> {
        let (path, steps) = self.layout.expect(reader, id)?;
        self.layout.refuse_in_steps(steps.as_ref(), |steps| steps.holds(&path))?;
        let record = self.layout.record(reader, id, &path)?.to_vec();
        Ok((path, record))
    }

    pub(super) fn rename_to(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        let layout = &self.layout;
        if layout.names() {
            let Some((from, to)) = self.rename_path(txn, id, name)? else { return Ok(()) };
            let renamed = layout.renamed::<V, C>(id, &layout.record(txn, id, &from)?, name)?;
            let mut rewrite = Rewrite::default();
            rewrite.replant(layout, txn, &from, &to)?;
            rewrite.put(layout, id, &to, &renamed)?;
            rewrite.apply(txn)?;
            return self.put_record(txn, id, &renamed);
        }
        let (path, record) = self.changeable(txn, id)?;
        let renamed = layout.renamed::<V, C>(id, &record, name)?;
        txn.put(&layout.key(&path), &renamed)?;
        self.put_record(txn, id, &renamed)
    }

    /// In a tree of names, the old and the new path of a renamed node; `None` if the node already
    /// has that name.
    pub(super) fn rename_path(
        &self,
        reader: &impl Reader,
        id: NodeId,
        name: &str,
    ) -> Result<Option<(Path, Path)>> {
        let layout = &self.layout;
        let (from, steps) = layout.expect(reader, id)?;
        layout.refuse_in_steps(steps.as_ref(), |steps| steps.stands_on(&from))?;
        let above = layout.segments.parent(&from);
        let parent = self.parent_id(reader, &from)?;
        let placing = Placing { id, name, place: InsertAt::Sorted(parent), moved: Some(&from) };
        let to = layout.free_name(reader, (parent, above), &placing, steps.as_ref())?;
        Ok(Some((from, to)).filter(|(from, to)| from != to))
    }

    pub(super) fn put_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        let (path, record) = self.changeable(txn, id)?;
        let node = TreeNode::<&[u8], V, C>::new(id, &record, self.layout.header());
        let record = self.record(id, node.name()?, value)?;
        txn.put(&self.layout.key(&path), &record)?;
        self.put_record(txn, id, &record)
    }

    /// The old path of a moved node, its new path if that differs, and the siblings that get new
    /// ranks.
    pub(super) fn move_path(
        &self,
        reader: &impl Reader,
        id: NodeId,
        new_name: Option<&str>,
        place: InsertAt,
        limits: &Limits,
    ) -> Result<(Path, Placed)> {
        let layout = &self.layout;
        let ids: Vec<NodeId> = std::iter::once(id).chain(place.named()).collect();
        let located = layout.locate(reader, &ids)?;
        let from = layout.there(&located, 0, id)?;
        let named = layout.named(&located, 1, place)?;
        let steps = located.steps.as_ref();
        layout.refuse_in_steps(steps, |steps| steps.stands_on(&from))?;
        let name = match (place, new_name) {
            (_, Some(name)) => name.to_owned(),
            (InsertAt::Sorted(_), None) => {
                let record = layout.record(reader, id, &from)?;
                TreeNode::<_, V, C>::new(id, record, layout.header()).name()?.to_owned()
            }
            (_, None) => String::new(),
        };
        let placing = Placing { id, name: &name, place, moved: Some(&from) };
        let placed = layout.placed(reader, &placing, &named, steps, limits)?;
        Ok((from, placed))
    }

    pub(super) fn move_at_once(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        new_name: Option<&str>,
        place: InsertAt,
    ) -> Result<()> {
        self.records.expect_writable(txn)?;
        let layout = &self.layout;
        let (from, placed) = self.move_path(txn, id, new_name, place, &txn.limits())?;
        let Some(to) = &placed.path else {
            return new_name.map_or(Ok(()), |name| self.rename_to(txn, id, name));
        };
        let renamed = match new_name {
            Some(name) => {
                Some(layout.renamed::<V, C>(id, &layout.record(txn, id, &from)?, name)?)
            }
            None => None,
        };
        let mut rewrite = Rewrite::default();
        rewrite.replant(layout, txn, &from, to)?;
        if let Some(renamed) = &renamed {
            rewrite.put(layout, id, to, renamed)?;
        }
        rewrite.spread(layout, txn, &placed)?;
        rewrite.apply(txn)?;
        renamed.map_or(Ok(()), |renamed| self.put_record(txn, id, &renamed))
    }

    /// The path of a node that may be deleted.
    pub(super) fn deletable(
        &self,
        reader: &impl Reader,
        id: NodeId,
    ) -> Result<(Path, Option<Steps>)> {
        let (path, steps) = self.layout.expect(reader, id)?;
        self.layout.refuse_in_steps(steps.as_ref(), |steps| steps.stands_on(&path))?;
        Ok((path, steps))
    }

    pub(super) fn delete_at_once(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        let layout = &self.layout;
        let (path, _) = self.deletable(txn, id)?;
        let (mut rewrite, mut gone) = (Rewrite::default(), Vec::new());
        for entry in txn.range(layout.subtree(&path), Order::Ascending)? {
            let (key, record) = entry?;
            let id = layout.id_at(&key, &record)?;
            rewrite.writes.delete(&layout.node(id))?;
            gone.push(id);
        }
        let nodes = rewrite.writes.len() as u64;
        rewrite.removed.push(layout.subtree(&path));
        rewrite.apply(txn)?;
        self.records.delete(txn, &gone)?;
        Ok(nodes)
    }

    pub(super) fn delete_alone(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        orphans: OnDelete,
    ) -> Result<()> {
        let layout = &self.layout;
        let (path, steps) = self.deletable(txn, id)?;
        let children = self.child_paths(txn, &path)?;
        let above = match orphans {
            OnDelete::Reparent => layout.segments.parent(&path),
            OnDelete::Promote => &[],
        };
        let targets = match layout.names() {
            true => self.names_below(txn, (id, &path), above, &children, steps.as_ref())?,
            false => self.ranks_below(txn, &path, above, &children, orphans)?,
        };
        let mut rewrite = Rewrite::default();
        rewrite.removed.push(layout.subtree(&path));
        rewrite.writes.delete(&layout.node(id))?;
        for ((_, from), to) in children.iter().zip(&targets) {
            rewrite.copy(layout, txn, from, to)?;
        }
        rewrite.apply(txn)?;
        self.records.delete(txn, &[id])
    }

    /// The children of a deleted node, in order, with their paths.
    fn child_paths(&self, reader: &impl Reader, path: &Path) -> Result<Vec<(NodeId, Path)>> {
        let layout = &self.layout;
        let mut children = Vec::new();
        let mut last: Option<Path> = None;
        while let Some(child) =
            layout.beside(reader, path, last.as_ref(), Order::Ascending, None)?
        {
            let key = layout.key(&child);
            let record = reader.get(&key)?.ok_or_else(|| foreign(&key))?;
            children.push((layout.id_at(&key, &record)?, child.clone()));
            last = Some(child);
        }
        Ok(children)
    }

    fn ranks_below(
        &self,
        reader: &impl Reader,
        path: &Path,
        above: &[u8],
        children: &[(NodeId, Path)],
        orphans: OnDelete,
    ) -> Result<Vec<Path>> {
        let layout = &self.layout;
        let beside = |from, order| layout.beside(reader, above, from, order, Some(path));
        let (low, high) = match orphans {
            OnDelete::Reparent => {
                (beside(Some(path), Order::Descending)?, beside(Some(path), Order::Ascending)?)
            }
            OnDelete::Promote => (beside(None, Order::Descending)?, None),
        };
        let rank = |path: Option<Path>| path.and_then(|path| layout.segments.rank(&path));
        let ranks = rank::spread(rank(low).as_deref(), rank(high).as_deref(), children.len());
        let ranks = ranks.ok_or_else(|| foreign(&layout.key(path)))?;
        Ok(children.iter().zip(ranks).map(|((id, _), rank)| by_rank(above, &rank, *id)).collect())
    }

    fn names_below(
        &self,
        reader: &impl Reader,
        (id, path): (NodeId, &Path),
        above: &[u8],
        children: &[(NodeId, Path)],
        steps: Option<&Steps>,
    ) -> Result<Vec<Path>> {
        let layout = &self.layout;
        let parent = match above.is_empty() {
            true => None,
            false => self.parent_id(reader, path)?,
        };
        let mut paths = Vec::with_capacity(children.len());
        for (child, from) in children {
            let name = layout.segments.name(from).ok_or_else(|| foreign(&layout.key(from)))?;
            // The name of the deleted node is free.
            let placing = Placing {
                id: *child,
                name: &name,
                place: InsertAt::Sorted(Some(id)),
                moved: Some(path),
            };
            paths.push(layout.free_name(reader, (parent, above), &placing, steps)?);
        }
        Ok(paths)
    }
}
