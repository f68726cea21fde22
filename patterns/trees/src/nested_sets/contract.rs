//! Implements [`Tree`] for nested sets.

use std::collections::HashSet;
use std::ops::{ControlFlow, RangeBounds};

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{InOrder, Inconsistency, Progress, RepairOptions, get_many};
use smallvec::SmallVec;

use super::NestedSets;
use super::change::Going;
use super::descend::{Descend, NestedNodes, Visits};
use super::labels::{Label, Span};
use super::layout::{Header, Keys, Position, disagreement, header, row_node};
use super::place::Placed;
use super::relabel::{Wanted, lacks_room, make_room};
use super::view::{View, between};
use super::{check, in_steps, repair};
use crate::tree::{
    NodeOf, NodeRecords, VisitOf, depth_bounds, encode_node, exists, in_stages, not_below,
    stoppable, unknown,
};
use crate::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeNode};

/// The key of the row of a node.
struct RowKey {
    id: NodeId,
    left: Label,
    key: KeyBuf,
}

impl AsRef<[u8]> for RowKey {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// Reads the headers and the bytes of rows that must exist, in one round trip.
fn rows<'r, R: Reader>(reader: &'r R, keys: &[RowKey]) -> Result<Vec<(Header, R::Bytes<'r>)>> {
    let stored = get_many(reader, keys)?.into_iter().zip(keys);
    let row = |(bytes, row): (Option<R::Bytes<'r>>, &RowKey)| {
        let bytes = bytes.ok_or_else(|| disagreement(&row.key))?;
        let header = header(row.left, &bytes).map_err(|error| error.at(&row.key))?;
        Ok((header, bytes))
    };
    stored.map(row).collect()
}

impl<V: 'static, C: Codec<V>> Tree for NestedSets<V, C> {
    type Value = V;
    type Codec = C;
    type Bytes<'r, R: Reader + 'r> = R::Bytes<'r>;

    fn space(&self) -> &Subspace {
        &self.keys.space
    }

    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>> {
        let (view, Some(position)) = View::of(&self.keys, reader, id)? else { return Ok(None) };
        let row = view.row_at(id, position.left)?;
        Ok(Some(row_node(row)))
    }

    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>> {
        Ok(View::of_node(&self.keys, reader, id)?.1.parent)
    }

    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let InOrder { of: parent, order } = parent.into();
        let (view, span) = self.span_of(reader, parent)?;
        let inside = match parent {
            None => span,
            Some(_) => span.and_then(|span| between(span.first, span.last)),
        };
        let mut children = NestedNodes::open(view, parent, inside, order)?;
        Ok(std::iter::from_fn(move || children.next()))
    }

    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let InOrder { of: parent, order } = parent.into();
        let (view, at) = View::of_node(&self.keys, reader, last)?;
        if at.parent != parent {
            return Err(not_below(last, parent));
        }
        let (lo, hi) = view.inside(parent)?;
        let rest = match order {
            Order::Ascending => between(view.row_at(last, at.left)?.right, hi),
            Order::Descending => between(lo, at.left),
        };
        let mut children = NestedNodes::open(view, parent, rest, order)?;
        Ok(std::iter::from_fn(move || children.next()))
    }

    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let from = from.into();
        let (view, span) = self.span_of(reader, from)?;
        let base = u32::from(from.is_none());
        let mut visits = Visits::new(Descend::open(&view, span, base, depth_bounds(&depths))?);
        Ok(std::iter::from_fn(move || visits.next()))
    }

    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let from = from.into();
        let (view, at) = View::of_node(&self.keys, reader, last)?;
        // The rows that enclose the rest of the walk: `last` and the nodes above it, up to `from`.
        let mut way = SmallVec::<[RowKey; 4]>::new();
        let mut next = Some((last, at));
        while let Some((id, position)) = next {
            way.push(self.row_key(id, position));
            next = match Some(id) == from {
                true => None,
                false => view.above((id, position))?,
            };
        }
        if from.is_some() && way.last().map(|row| row.id) != from {
            return Err(not_below(last, from));
        }
        way.reverse();
        let open: Vec<Label> = rows(reader, &way)?.iter().map(|(header, _)| header.right).collect();
        let end = match from {
            Some(_) => open.first().copied().unwrap_or(at.left),
            None => self.keys.labels.end(),
        };
        let (rest, base) = (between(at.left, end), u32::from(from.is_none()));
        let mut descend = Descend::open(&view, rest, base, depth_bounds(&depths))?;
        descend.enter(open);
        let mut visits = Visits::new(descend);
        Ok(std::iter::from_fn(move || visits.next()))
    }

    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>> {
        let (view, position) = View::of_node(&self.keys, reader, id)?;
        let mut above = SmallVec::<[RowKey; 4]>::new();
        let mut at = (id, position);
        while let Some(next) = view.above(at)? {
            above.push(self.row_key(next.0, next.1));
            at = next;
        }
        let ids = above.iter().map(|row| row.id);
        let ancestors = ids.zip(rows(reader, &above)?);
        Ok(ancestors.map(|(id, (header, bytes))| TreeNode::new(id, bytes, header.bytes)).collect())
    }

    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>> {
        let (view, at) = View::of_node(&self.keys, reader, id)?;
        let sibling = match order {
            Order::Ascending => view.next_sibling(id, at)?,
            Order::Descending => view.previous_sibling(at)?,
        };
        Ok(sibling.map(row_node))
    }

    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        let from = from.into();
        let (view, span) = self.span_of(reader, from)?;
        let itself = u64::from(from.is_some());
        Ok(view.count(span)?.saturating_sub(itself))
    }

    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        let (view, position) = View::of_node(&self.keys, reader, id)?;
        let mut at = (id, position);
        let mut depth = 0;
        while let Some(above) = view.above(at)? {
            depth += 1;
            at = above;
        }
        Ok(depth)
    }

    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        let (view, [above, at]) = self.both(reader, ancestor, node)?;
        let span = view.row_at(ancestor, above)?.span();
        Ok(ancestor != node && span.contains(at))
    }

    fn lowest_common_ancestor(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<Option<NodeId>> {
        let (view, [mut left, at]) = self.both(reader, one, other)?;
        let mut id = one;
        loop {
            // An interval that starts after `at` cannot contain `at`: do not read its row.
            if left <= at && view.row_at(id, left)?.span().contains(at) {
                return Ok(Some(id));
            }
            let Some((parent, above)) = view.above((id, view.named(id)?))? else { return Ok(None) };
            (id, left) = (parent, above.left);
        }
    }

    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let mut node = Vec::new();
            encode_node::<V, C>(name, value, &mut node)?;
            let stored = node.clone();
            let change = {
                let (view, found) = View::open(&self.keys, &*txn, &[id])?;
                self.refuse_known(&[id], &found)?;
                view.refuse_leaving()?;
                let gap = view.gap(Placed { id, name, span: None }, place)?;
                view.place(&gap, &[Going { depth: 0, id, node }], &txn.limits())?
            };
            change.make(&self.keys, txn)?;
            self.records.put(txn, id, &stored)
        })
    }

    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        txn.guarded(|txn| {
            self.change_node(txn, id, |node, bytes| {
                bytes.extend_from_slice(&node.renamed(name)?);
                Ok(())
            })
        })
    }

    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            self.change_node(txn, id, |node, bytes| encode_node::<V, C>(node.name()?, value, bytes))
        })
    }

    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()> {
        txn.guarded(|txn| {
            self.records.expect_writable(txn)?;
            let change = {
                let (view, row) = View::of_row(&self.keys, &*txn, id)?;
                let span = row.span();
                let node = TreeNode::<_, V, C>::new(id, row.node(), 0);
                let gap = view.gap(Placed { id, name: node.name()?, span: Some(span) }, place)?;
                if gap.lo < span.first && span.last < gap.hi {
                    return Ok(());
                }
                view.refuse_in_steps(span)?;
                let mut change =
                    view.without(span).place(&gap, &view.going(span)?, &txn.limits())?;
                change.cleared.push(span);
                change
            };
            change.make(&self.keys, txn).map(drop)
        })
    }

    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        txn.guarded(|txn| {
            let (span, ids) = {
                let (view, row) = View::of_row(&self.keys, &*txn, id)?;
                view.refuse_in_steps(row.span())?;
                let rows = view.rows(row.span())?;
                (row.span(), rows.iter().map(|row| row.id).collect::<Vec<_>>())
            };
            txn.delete_range(self.keys.lefts(span))?;
            for id in &ids {
                txn.delete(&self.keys.node(*id))?;
            }
            self.records.delete(txn, &ids)?;
            Ok(ids.len() as u64)
        })
    }

    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()> {
        txn.guarded(|txn| {
            let change = {
                let (view, at) = View::of_node(&self.keys, &*txn, id)?;
                let span = view.row_at(id, at.left)?.span();
                view.refuse_in_steps(span)?;
                let is_leaf = view.first(span.first, span.last)?.is_none();
                match orphans {
                    OnDelete::Promote if !is_leaf => self.uproot(&view, id, span, &txn.limits())?,
                    _ => self.adopt(&view, id, span, at)?,
                }
            };
            change.make(&self.keys, txn)?;
            self.records.delete(txn, &[id])
        })
    }

    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        txn.guarded(|txn| {
            let parent = parent.into();
            let nodes = || trees.iter().flat_map(NestedNode::preorder);
            let ids: Vec<NodeId> = nodes().map(|(_, node)| node.id).collect();
            let Some((first, _)) = ids.split_first_chunk::<1>() else { return Ok(()) };
            let mut going = Vec::with_capacity(ids.len());
            for (depth, node) in nodes() {
                let mut bytes = Vec::new();
                encode_node::<V, C>(&node.name, &node.value, &mut bytes)?;
                going.push(Going { depth, id: node.id, node: bytes });
            }
            let change = {
                let (view, found) = View::open(&self.keys, &*txn, &ids)?;
                // Check in the order of single inserts.
                self.refuse_known(first, &found)?;
                view.refuse_leaving()?;
                let placed = Placed { id: 0, name: "", span: None };
                let gap = view.gap(placed, InsertAt::Last(parent))?;
                self.refuse_known(&ids, &found)?;
                view.place(&gap, &going, &txn.limits())?
            };
            change.make(&self.keys, txn)?;
            self.records.put_all(txn, trees)
        })
    }

    fn move_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut done = Progress::default();
        loop {
            let begun = store.transact(|txn| {
                self.records.expect_writable(txn)?;
                in_steps::begin_move(&self.keys, txn, id, place)
            });
            match begun {
                Err(error) if lacks_room(&error) => {
                    let wanted = Wanted::Move { id, place };
                    done = make_room(&self.keys, store, wanted, done, &mut progress)?;
                    if !done.finished {
                        return Ok(done);
                    }
                }
                begun => {
                    let done = done.followed_by(&begun?);
                    return in_steps::resume_from(self.nodes_in_steps(), store, done, progress);
                }
            }
        }
    }

    fn delete_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| {
            self.records.expect_writable(txn)?;
            in_steps::begin_deletion(&self.keys, txn, id)
        })?;
        let done = Progress { written: 1, ..Progress::default() };
        in_steps::resume_from(self.nodes_in_steps(), store, done, progress)
    }

    fn make_room<S: Store>(
        &self,
        store: &S,
        name: &str,
        place: InsertAt,
        nodes: u64,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let wanted = Wanted::New { name, place, nodes };
        make_room(&self.keys, store, wanted, Progress::default(), progress)
    }

    fn resume<S: Store>(
        &self,
        store: &S,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_steps::resume(self.nodes_in_steps(), store, Progress::default(), progress)
    }

    fn check_each(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut found = stoppable(found);
        let outside = self.records.outside(&mut found);
        let keys = check::check::<_, V, C>(&self.keys, reader, outside)?;
        Ok(keys + self.records.check(self, self.keys.positions(), reader, found)?)
    }

    fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_stages(options, progress, |stages| {
            stages.run(|_, report| in_steps::end(self.nodes_in_steps(), store, report))?;
            repair::repair(&self.keys, store, stages)?;
            self.records.repair(self, self.keys.positions(), store, stages)
        })
    }
}

impl<V: 'static, C: Codec<V>> NestedSets<V, C> {
    fn nodes_in_steps(&self) -> (&Keys, &NodeRecords<V, C>) {
        (&self.keys, &self.records)
    }

    /// The key of the row of a node at this position.
    fn row_key(&self, id: NodeId, Position { left, .. }: Position) -> RowKey {
        RowKey { id, left, key: self.keys.left(left) }
    }

    /// The span of a node, or of the whole forest.
    fn span_of<'r, R: Reader>(
        &self,
        reader: &'r R,
        node: Option<NodeId>,
    ) -> Result<(View<'_, 'r, R>, Option<Span>)> {
        match node {
            None => {
                let (view, _) = View::open(&self.keys, reader, &[])?;
                Ok((view, between(0, self.keys.labels.end())))
            }
            Some(node) => {
                let (view, row) = View::of_row(&self.keys, reader, node)?;
                let span = row.span();
                Ok((view, Some(span)))
            }
        }
    }

    /// The left labels of two nodes.
    fn both<'r, R: Reader>(
        &self,
        reader: &'r R,
        one: NodeId,
        other: NodeId,
    ) -> Result<(View<'_, 'r, R>, [Label; 2])> {
        let (view, found) = View::open(&self.keys, reader, &[one, other])?;
        let mut found = found
            .into_iter()
            .zip([one, other])
            .map(|(at, id)| at.map(|at| at.left).ok_or_else(|| unknown(&self.keys.space, id)));
        let mut next = || found.next().unwrap_or_else(|| Err(unknown(&self.keys.space, other)));
        let both = [next()?, next()?];
        Ok((view, both))
    }

    /// Refuses ids that exist or occur twice.
    fn refuse_known<P>(&self, ids: &[NodeId], found: &[Option<P>]) -> Result<()> {
        let mut seen = HashSet::with_capacity(ids.len());
        for (id, found) in ids.iter().zip(found) {
            if found.is_some() || !seen.insert(*id) {
                return Err(exists(&self.keys.space, *id));
            }
        }
        Ok(())
    }
}
