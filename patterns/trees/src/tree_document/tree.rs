//! Implements [`Tree`] for a document: each operation reads the document, and writes its changes.

use std::ops::{ControlFlow, RangeBounds};

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{InOrder, Inconsistency, Progress, RepairOptions};

use super::TreeDocument;
use super::document::Document;
use super::preorder::{DocumentBytes, owned, visits};
use crate::tree::{NodeOf, VisitOf, in_stages, not_below};
use crate::{InsertAt, NestedNode, NodeId, OnDelete, Tree};

impl<V, C: Codec<V>> TreeDocument<V, C> {
    /// Reads the document, applies `change`, and writes it.
    fn update<W: Writer, T>(
        &self,
        txn: &mut W,
        change: impl FnOnce(&mut Document<V, C>) -> Result<T>,
    ) -> Result<T> {
        let mut document = self.read(txn)?;
        let changed = change(&mut document)?;
        self.replace(txn, &document, document.head.next)?;
        Ok(changed)
    }
}

impl<V: 'static, C: Codec<V>> Tree for TreeDocument<V, C> {
    type Value = V;
    type Codec = C;
    /// A slice of the document, which stays in memory as long as one of its nodes.
    type Bytes<'r, R: Reader + 'r> = DocumentBytes;

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>> {
        Ok(self.read(reader)?.get(id))
    }

    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>> {
        self.read(reader)?.parent(id)
    }

    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let document = self.read(reader)?;
        let children = document.positions_of_children(parent.into())?;
        Ok(children.into_iter().map(move |child| Ok(document.rows.node(child))))
    }

    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let (document, parent) = (self.read(reader)?, parent.into());
        if document.parent(last)? != parent.of {
            return Err(not_below(last, parent.of));
        }
        let at = document.position(last)?;
        let children = document.positions_of_children(parent)?.into_iter();
        let rest = children.skip_while(move |child| *child != at).skip(1);
        Ok(rest.map(move |child| Ok(document.rows.node(child))))
    }

    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let document = self.read(reader)?;
        let from = document.position_of_parent(from.into())?;
        Ok(visits(document.rows, from, owned(&depths)).map(Ok))
    }

    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let (document, from) = (self.read(reader)?, from.into());
        document.position(last)?;
        if let Some(start) = from.filter(|start| *start != last)
            && !document.ancestors(last)?.iter().any(|above| above.id() == start)
        {
            return Err(not_below(last, from));
        }
        let (from, depths) = (document.position_of_parent(from)?, owned(&depths));
        let all = visits(document.rows, from, owned(&..));
        let rest = all.skip_while(move |visit| visit.node.id() != last).skip(1);
        Ok(rest.filter(move |visit| depths.contains(&visit.depth)).map(Ok))
    }

    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>> {
        self.read(reader)?.ancestors(id)
    }

    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>> {
        self.read(reader)?.sibling(id, order)
    }

    fn child_count(&self, reader: &impl Reader, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        self.read(reader)?.child_count(parent)
    }

    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        self.read(reader)?.descendant_count(from)
    }

    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        self.read(reader)?.depth(id)
    }

    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        self.read(reader)?.is_ancestor(ancestor, node)
    }

    fn lowest_common_ancestor(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<Option<NodeId>> {
        self.read(reader)?.lowest_common_ancestor(one, other)
    }

    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        self.read(reader)?.child_named(parent, name)
    }

    fn node_at<'n>(
        &self,
        reader: &impl Reader,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<NodeId>> {
        self.read(reader)?.node_at(names)
    }

    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.insert(id, name, value, place)))
    }

    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.rename(id, name)))
    }

    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.set_value(id, value)))
    }

    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.move_to(id, place)))
    }

    fn move_as(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| {
            self.update(txn, |document| {
                document.rename(id, name)?;
                document.move_to(id, place)
            })
        })
    }

    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        txn.guarded(|txn| self.update(txn, |document| document.delete_subtree(id)))
    }

    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.delete_node(id, orphans)))
    }

    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        txn.guarded(|txn| self.update(txn, |document| document.import(parent, trees)))
    }

    fn check_each(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        self.find_wrong(reader, found)
    }

    /// A document contains no derived data. The repair removes pieces that the head does not list,
    /// such as those of an unfinished [write in steps](TreeDocument::write_in_steps). Removing
    /// pieces increments the version. A document that cannot be read is rewritten from its readable
    /// rows: see the [module](super).
    fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_stages(options, progress, |stages| self.repair_all(store, stages))
    }
}
