//! Marks of changed vertices, which the writers of edges and vertices set.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Order, Reader, Result, Snapshots, Store, Subspace, Writer, pack};
use keyloom_kit::derived::{Derived, LostRecords, RecordChange, SortedWrites, is_undecodable};
use keyloom_kit::{Inconsistency, Progress, RepairOptions, Rule, repair_each};
use keyloom_tables::{Maintained, Table};

use super::keys::{Keys, Side, Stored};
use crate::csr::{Adjacency, Bytes, Source};
use crate::{EdgeKey, VertexId};

/// The blocks as derived data of the table of edges: an update marks the ends of the edge.
pub(crate) struct EdgeChanges<I, E, C> {
    pub(super) keys: Keys,
    pub(super) source: Source,
    pub(super) weight: Option<fn(&E) -> f64>,
    types: PhantomData<fn() -> (I, C)>,
}

impl<I, E, C> EdgeChanges<I, E, C> {
    pub(super) fn new(space: &Subspace, source: Source, weight: Option<fn(&E) -> f64>) -> Self {
        Self { keys: Keys::new(space), source, weight, types: PhantomData }
    }

    /// The blocks in a snapshot, even if the graph has changed since they were written. Checks
    /// every list.
    pub(super) fn load<'r, R: Reader>(
        &self,
        reader: &'r R,
        stored: &Stored,
    ) -> Result<Adjacency<'r>> {
        let blocks = |side: Side| -> Result<Vec<Bytes<'r>>> {
            let entries = reader.range(self.keys.side(side), Order::Ascending)?;
            entries.map(|entry| Ok(Box::new(entry?.1) as Bytes<'r>)).collect()
        };
        let adjacency = Adjacency {
            vertices: stored.vertices,
            edges: 0,
            incoming_edges: 0,
            is_directed: self.source.is_directed,
            is_weighted: self.weight.is_some(),
            sorted: stored.sorted,
            ids: blocks(Side::Ids)?,
            out: blocks(Side::Out)?,
            incoming: blocks(Side::Incoming)?,
        };
        adjacency.check()
    }
}

impl<I, E, C> Clone for EdgeChanges<I, E, C> {
    fn clone(&self) -> Self {
        Self::new(self.keys.space(), self.source.clone(), self.weight)
    }
}

impl<I, E, C> fmt::Debug for EdgeChanges<I, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeChanges").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl<I: VertexId, E, C> EdgeChanges<I, E, C> {
    /// Marks the ends of an edge, if the blocks include edges with its label.
    fn mark(&self, (source, label, target): &EdgeKey<I>, writes: &mut SortedWrites) -> Result<()> {
        if !self.source.labels.has(label) {
            return Ok(());
        }
        writes.put(&self.keys.mark(&pack(&(source,))), &[])?;
        writes.put(&self.keys.mark(&pack(&(target,))), &[])
    }
}

impl<I: VertexId, E: 'static, C: 'static> Derived<EdgeKey<I>, E> for EdgeChanges<I, E, C> {
    fn update(
        &self,
        _: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, EdgeKey<I>, E>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        changes.iter().try_for_each(|change| self.mark(change.key, writes))
    }

    /// Deletes the state, because existing blocks may not match the records that the build visits.
    fn update_in_build(
        &self,
        _: Option<&[u8]>,
        _: &mut DynWriter<'_>,
        _: &[RecordChange<'_, EdgeKey<I>, E>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        writes.delete(&self.keys.state())
    }

    fn subspace(&self) -> Option<&Subspace> {
        Some(self.keys.space())
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, EdgeKey<I>>) -> Result<bool> {
        let mut writes = SortedWrites::default();
        lost.keys().try_for_each(|key| self.mark(key, &mut writes))?;
        writes.apply(txn)?;
        Ok(true)
    }
}

impl<I: VertexId, E: 'static, C: Codec<E> + 'static> Maintained for EdgeChanges<I, E, C> {
    type Key = EdgeKey<I>;
    type Value = E;

    fn kind(&self) -> &'static str {
        "blocks of a graph"
    }

    fn options(&self) -> String {
        let weights = if self.weight.is_some() { "weighted" } else { "unweighted" };
        let edges = if self.source.is_directed { "directed" } else { "undirected" };
        format!("{edges}, {weights}{}", self.source.labels.definition())
    }

    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        self.keys.space()
    }

    fn derived(&self) -> Arc<dyn Derived<EdgeKey<I>, E>> {
        Arc::new(self.clone())
    }

    /// For every unmarked vertex, compares its lists in the blocks with those of the graph. Builds
    /// the rows of the graph in memory. Reports each edge that cannot be read; the lists of its
    /// ends are unknown and are not compared.
    fn check<D: Codec<E>>(
        &self,
        reader: &impl Reader,
        edges: &Table<EdgeKey<I>, E, D>,
    ) -> Result<Vec<Inconsistency>> {
        let Some(stored) = self.keys.stored(reader)?.filter(|stored| stored.is_complete) else {
            return Ok(Vec::new());
        };
        let fault = |key: &[u8], rule| vec![Inconsistency::new(key.into(), rule)];
        let Ok(rows) = self.load(reader, &stored) else {
            return Ok(fault(&self.keys.state(), Rule::Wrong));
        };
        let (mut faults, mut unknown) = (Vec::new(), BTreeSet::new());
        let graph = self.source.rows::<I, E, D>(reader, self.weight, |key, error| {
            if let Ok((source, _, target)) = edges.space().unpack::<EdgeKey<I>>(key) {
                unknown.extend([pack(&(source,)), pack(&(target,))]);
            }
            let fault = Inconsistency::new(key.into(), Rule::Undecodable);
            faults.push(match is_undecodable(&error) {
                true => fault,
                false => {
                    fault.with_text(format!("is refused; put it with another weight: {error}"))
                }
            });
            Ok(())
        })?;
        let (one, two) = (Named::new(&graph), Named::new(&rows));
        for (id, numbers) in one.pairs(&two) {
            if unknown.contains(id) {
                continue;
            }
            let mark = self.keys.mark(id);
            let is_same = match numbers {
                (Some(own), Some(other)) => one.lists(own) == two.lists(other),
                _ => false,
            };
            if is_same || reader.get(&mark)?.is_some() {
                continue;
            }
            // An id that is not in the graph may be damaged, and a mark for this id would not help.
            let fault = match numbers {
                (None, _) => Inconsistency::new(self.keys.state(), Rule::Wrong)
                    .with_text("has blocks with a vertex that is not in the graph"),
                _ => Inconsistency::new(mark, Rule::Missing)
                    .with_text("is missing: the blocks of this vertex are not those of the graph"),
            };
            faults.push(fault);
        }
        Ok(faults)
    }

    /// Marks the vertices whose lists are wrong; the next refresh writes them. Deletes the state if
    /// the blocks cannot be read or contain a vertex that is not in the graph; then the next
    /// refresh builds all blocks.
    fn repair_with<S: Store, D: Codec<E>>(
        &self,
        store: &S,
        edges: &Table<EdgeKey<I>, E, D>,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (state, faults) = {
            let snapshot = Snapshots::lasting(store);
            (self.keys.stored(&snapshot)?, self.check(&snapshot, edges)?)
        };
        let (unreadable, wrong): (Vec<_>, Vec<_>) =
            faults.into_iter().partition(|fault| fault.rule == Rule::Undecodable);
        let first = Progress { undecodable: unreadable.len() as u64, ..Progress::complete() };
        let report = |done: &Progress| progress(&first.followed_by(done));
        let done = repair_each(store, options, report, &wrong, |txn, fault| {
            txn.guarded(|txn| match fault.rule {
                // A mark for a vertex that was rewritten meanwhile only costs another rewrite.
                Rule::Missing => txn.put(&fault.key, &[]).map(|()| 1),
                // Blocks that were built meanwhile are not those that were checked.
                _ if self.keys.stored(txn)? != state => Ok(0),
                _ => txn.delete(&fault.key).map(|()| 1),
            })
        })?;
        Ok(first.followed_by(&done))
    }
}

/// Rows whose lists are compared by the ids of the neighbours.
struct Named<'c> {
    ids: Vec<&'c [u8]>,
    rows: &'c Adjacency<'c>,
    sides: Vec<crate::csr::Rows<'c>>,
}

type Numbers = (Option<u32>, Option<u32>);

impl<'c> Named<'c> {
    fn new(rows: &'c Adjacency<'c>) -> Self {
        Self { ids: rows.packed_ids(), rows, sides: rows.sides() }
    }

    /// Each id with its numbers in `self` and in `other`.
    fn pairs(&self, other: &Self) -> std::collections::BTreeMap<&'c [u8], Numbers>
    where
        Self: 'c,
    {
        let mut pairs = std::collections::BTreeMap::<&[u8], Numbers>::new();
        for (number, id) in (0..).zip(&self.ids) {
            pairs.entry(id).or_default().0 = Some(number);
        }
        for (number, id) in (0..).zip(&other.ids) {
            pairs.entry(id).or_default().1 = Some(number);
        }
        pairs
    }

    /// The ids of the neighbours in each direction. If the rows have weights, the outgoing list
    /// also has the weights of the edges.
    fn lists(&self, vertex: u32) -> Vec<Vec<(&'c [u8], u64)>> {
        let id = |number: u32| self.ids.get(number as usize).copied().unwrap_or_default();
        let list = |(n, side): (usize, &crate::csr::Rows<'c>)| {
            let mut list: Vec<_> = match n == 0 && self.rows.is_weighted {
                true => {
                    side.weighted(vertex).map(|(to, weight)| (id(to), weight.to_bits())).collect()
                }
                false => side.neighbours(vertex).map(|to| (id(to), 0)).collect(),
            };
            list.sort_unstable();
            list
        };
        self.sides.iter().enumerate().map(list).collect()
    }
}

/// Marks changes of the table of vertices, in the same subspace as changes of the edges.
pub(crate) struct VertexChanges<I, V> {
    space: Subspace,
    keys: Keys,
    types: PhantomData<fn() -> (I, V)>,
}

impl<I, V> VertexChanges<I, V> {
    pub(super) fn new(space: &Subspace, keys: Keys) -> Self {
        Self { space: space.clone(), keys, types: PhantomData }
    }
}

impl<I, V> Clone for VertexChanges<I, V> {
    fn clone(&self) -> Self {
        Self::new(&self.space, self.keys.clone())
    }
}

impl<I, V> fmt::Debug for VertexChanges<I, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VertexChanges").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I: VertexId, V: 'static> Derived<I, V> for VertexChanges<I, V> {
    fn update(
        &self,
        _: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, I, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        // The blocks do not contain properties, so only new and deleted vertices are marked.
        let mut changes =
            changes.iter().filter(|change| change.old.is_some() != change.new.is_some());
        changes.try_for_each(|change| writes.put(&self.keys.mark(&pack(&(change.key,))), &[]))
    }

    fn update_in_build(
        &self,
        _: Option<&[u8]>,
        _: &mut DynWriter<'_>,
        _: &[RecordChange<'_, I, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        writes.delete(&self.keys.state())
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, I>) -> Result<bool> {
        let mut writes = SortedWrites::default();
        lost.keys().try_for_each(|id| writes.put(&self.keys.mark(&pack(&(id,))), &[]))?;
        writes.apply(txn)?;
        Ok(true)
    }
}

impl<I: VertexId, V: 'static> Maintained for VertexChanges<I, V> {
    type Key = I;
    type Value = V;

    fn kind(&self) -> &'static str {
        "vertices of blocks"
    }

    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn derived(&self) -> Arc<dyn Derived<I, V>> {
        Arc::new(self.clone())
    }

    /// Reports keys in the subspace, which must stay empty. The marks are stored with the blocks,
    /// and the check of the blocks also compares the vertices.
    fn check<D: Codec<V>>(
        &self,
        reader: &impl Reader,
        _: &Table<I, V, D>,
    ) -> Result<Vec<Inconsistency>> {
        let strays = reader.range(self.space.self_and_children(), Order::Ascending)?;
        strays.map(|entry| Ok(Inconsistency::new((&*entry?.0).into(), Rule::Foreign))).collect()
    }

    fn repair_with<S: Store, D: Codec<V>>(
        &self,
        store: &S,
        _: &Table<I, V, D>,
        _: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| txn.delete_range(self.space.self_and_children()))?;
        let done = Progress { finished: true, ..Progress::default() };
        let _ = progress(&done);
        Ok(done)
    }
}
