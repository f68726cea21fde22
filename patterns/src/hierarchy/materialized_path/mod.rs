//! Materialized path: what lies below a node, when its key says where it is?

mod change;
mod check;
mod in_steps;
mod layout;
mod path;
mod place;
mod steps;
mod walk;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};

use keyloom::value::{Codec, Postcard};
use keyloom::{Order, Reader, Result, Store, Subspace, Writer};

use super::tree::{NodeOf, VisitOf};
use super::{
    MoveProgress, Nested, NodeId, Orphans, Place, Tree, TreeInconsistency, TreeNode,
};
use layout::Layout;
use path::{Path, Segments, by_name, is_below};
use steps::Steps;
use walk::{BoundedWalk, Origin, WholeWalk};

/// A tree whose keys are the paths of its nodes.
pub struct MaterializedPath<V, C = Postcard> {
    layout: Layout,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V> MaterializedPath<V> {
    /// A tree in `space`, whose paths are of ids. Values are stored by [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> MaterializedPath<V, C> {
    /// [`new`](MaterializedPath::new) with values stored by another codec.
    pub fn with_codec(space: &Subspace) -> Self {
        Self { layout: Layout::new(space), types: PhantomData }
    }

    /// The same with paths of names.
    #[must_use]
    pub fn of_names(mut self) -> Self {
        self.layout.segments = Segments::Names;
        self
    }
}

impl<V, C> Clone for MaterializedPath<V, C> {
    fn clone(&self) -> Self {
        Self { layout: self.layout.clone(), types: PhantomData }
    }
}

impl<V, C> fmt::Debug for MaterializedPath<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaterializedPath")
            .field("space", &self.layout.space)
            .field("segments", &self.layout.segments)
            .finish()
    }
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    /// The id of the node above a path; `None` above a root.
    fn parent_id(&self, reader: &impl Reader, path: &Path) -> Result<Option<NodeId>> {
        let layout = &self.layout;
        let above = layout.segments.parent(path);
        if above.is_empty() {
            return Ok(None);
        }
        self.id_of(reader, above).map(Some)
    }

    /// The id of the node at a path: a part of a path of ids, and of the record where the path is of names.
    fn id_of(&self, reader: &impl Reader, path: &[u8]) -> Result<NodeId> {
        let key = self.layout.key(path);
        match self.layout.segments {
            Segments::Ids => self.layout.id_at(&key, &[]),
            Segments::Names => {
                let record = reader.get(&key)?.ok_or_else(|| layout::foreign(&key))?;
                self.layout.id_at(&key, &record)
            }
        }
    }

    /// The paths of two nodes: one round trip.
    fn two_paths(&self, reader: &impl Reader, one: NodeId, other: NodeId) -> Result<[Path; 2]> {
        let located = self.layout.locate(reader, &[one, other])?;
        let path = |n, id| self.layout.there(&located, n, id);
        Ok([path(0, one)?, path(1, other)?])
    }
}

impl<V: 'static, C: Codec<V>> Tree for MaterializedPath<V, C> {
    type Value = V;
    type Codec = C;
    type Bytes<'r, R: Reader + 'r> = R::Bytes<'r>;

    fn space(&self) -> &Subspace {
        &self.layout.space
    }

    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>> {
        let Some(path) = self.layout.locate(reader, &[id])?.path(0) else { return Ok(None) };
        let record = reader.get(&self.layout.key(&path))?;
        Ok(record.map(|record| TreeNode::new(id, record, self.layout.header())))
    }

    fn expect(&self, reader: &impl Reader, id: NodeId) -> Result<()> {
        self.layout.expect(reader, id).map(drop)
    }

    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>> {
        let (path, _) = self.layout.expect(reader, id)?;
        self.parent_id(reader, &path)
    }

    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<Option<NodeId>>,
        order: Order,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let parent = parent.into();
        let (path, steps) = self.layout.expect_parent(reader, parent)?;
        let origin = Origin::new(&self.layout, (parent, &path), &(1..=1));
        let range = origin.range();
        let hidden = steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        let mut walk = BoundedWalk::open(reader, origin, range, order, hidden)?;
        Ok(std::iter::from_fn(move || Some(walk.next()?.map(|visit| visit.node))))
    }

    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let from = from.into();
        let (path, steps) = self.layout.expect_parent(reader, from)?;
        let origin = Origin::new(&self.layout, (from, &path), &depths);
        let hidden = steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        Descendants::<R, V, C>::open(reader, origin, hidden)
    }

    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>> {
        let layout = &self.layout;
        let (path, _) = layout.expect(reader, id)?;
        let keys = layout.segments.ancestors(&path).into_iter().rev().map(|path| layout.key(path));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut ancestors = Vec::with_capacity(keys.len());
        for (key, record) in keys.iter().zip(reader.get_many(&keys)?) {
            let record = record.ok_or_else(|| layout::foreign(key))?;
            let id = layout.id_at(key, &record)?;
            ancestors.push(TreeNode::new(id, record, layout.header()));
        }
        Ok(ancestors)
    }

    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>> {
        let (path, steps) = self.layout.expect(reader, id)?;
        let parent = self.layout.segments.parent(&path);
        let origin = Origin::new(&self.layout, (None, parent), &(1..=1));
        let range = self.layout.rest(parent, Some(&path), order);
        let hidden = steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        let mut walk = BoundedWalk::open(reader, origin, range, order, hidden)?;
        Ok(walk.next().transpose()?.map(|visit| visit.node))
    }

    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        let (path, steps) = self.layout.expect_parent(reader, from.into())?;
        let all = reader.count(self.layout.below(&path))?;
        match steps.as_ref().and_then(Steps::hidden).filter(|hidden| is_below(hidden, &path)) {
            Some(hidden) => Ok(all - reader.count(self.layout.subtree(hidden))?),
            None => Ok(all),
        }
    }

    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        let (path, _) = self.layout.expect(reader, id)?;
        Ok(self.layout.segments.ancestors(&path).len() as u32)
    }

    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        let [ancestor, node] = self.two_paths(reader, ancestor, node)?;
        Ok(is_below(&node, &ancestor))
    }

    fn lowest_common_ancestor(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<Option<NodeId>> {
        let [one, other] = self.two_paths(reader, one, other)?;
        let segments = self.layout.segments;
        let cut = |path, depth| segments.cut(path, depth);
        let depth = segments.measure(&one).map_or(0, |measured| measured.depth);
        let common = (1..=depth).take_while(|depth| {
            let cut_one = cut(&one, *depth);
            cut_one == cut(&other, *depth) && cut_one.is_some_and(|path| path.len() <= other.len())
        });
        match common.last().and_then(|depth| cut(&one, depth)) {
            Some(path) => self.id_of(reader, path).map(Some),
            None => Ok(None),
        }
    }

    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        let parent = parent.into();
        if self.layout.names() {
            let (path, steps) = self.layout.expect_parent(reader, parent)?;
            return self.at_path(reader, &by_name(&path, name), steps.as_ref());
        }
        for child in self.children(reader, parent, Order::Ascending)? {
            let child = child?;
            if child.name()? == name {
                return Ok(Some(child.id()));
            }
        }
        Ok(None)
    }

    fn node_at<'n>(
        &self,
        reader: &impl Reader,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<NodeId>> {
        if self.layout.names() {
            let path = names.into_iter().fold(Path::new(), |path, name| by_name(&path, name));
            let steps = self.layout.locate(reader, &[])?.steps;
            return self.at_path(reader, &path, steps.as_ref());
        }
        let mut node = None;
        for name in names {
            node = self.child_named(reader, node, name)?;
            if node.is_none() {
                break;
            }
        }
        Ok(node)
    }

    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: Place,
    ) -> Result<()> {
        self.insert_at(txn, (id, name, value), place)
    }

    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        self.rename_to(txn, id, name)
    }

    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        self.put_value(txn, id, value)
    }

    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: Place) -> Result<()> {
        self.move_at_once(txn, id, place)
    }

    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        self.delete_at_once(txn, id)
    }

    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: Orphans) -> Result<()> {
        self.delete_alone(txn, id, orphans)
    }

    fn load(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[Nested<V>],
    ) -> Result<()> {
        self.load_below(txn, parent.into(), trees)
    }

    fn move_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: Place,
        progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        self.move_step_by_step(store, id, place, progress)
    }

    fn delete_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        self.delete_step_by_step(store, id, progress)
    }

    fn finish_steps<S: Store>(
        &self,
        store: &S,
        progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        self.finish(store, progress)
    }

    fn check(
        &self,
        reader: &impl Reader,
        found: impl FnMut(TreeInconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        self.check_all(reader, found)
    }

    fn repair<S: Store>(&self, store: &S) -> Result<u64> {
        self.repair_all(store)
    }
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    /// The node at a path of names, if it can be seen.
    fn at_path(
        &self,
        reader: &impl Reader,
        path: &Path,
        steps: Option<&Steps>,
    ) -> Result<Option<NodeId>> {
        let key = self.layout.key(path);
        let hidden = steps.and_then(Steps::hidden);
        if path.is_empty()
            || hidden.is_some_and(|hidden| path::is_within(path, hidden))
            || keyloom::check_key(&key).is_err()
        {
            return Ok(None);
        }
        reader.get(&key)?.map(|record| self.layout.id_at(&key, &record)).transpose()
    }
}

/// A walk over a subtree, or over the upper part of one.
enum Descendants<'r, R: Reader, V, C> {
    Whole(WholeWalk<'r, R>, PhantomData<fn() -> (V, C)>),
    Bounded(Box<BoundedWalk<'r, R>>),
}

impl<'r, R: Reader, V, C> Descendants<'r, R, V, C> {
    fn open(reader: &'r R, origin: Origin, hidden: Option<&[u8]>) -> Result<Self> {
        if !origin.is_bounded() {
            return Ok(Self::Whole(WholeWalk::open(reader, origin, hidden)?, PhantomData));
        }
        let range = origin.range();
        let walk = BoundedWalk::open(reader, origin, range, Order::Ascending, hidden)?;
        Ok(Self::Bounded(Box::new(walk)))
    }
}

impl<'r, R: Reader, V, C> Iterator for Descendants<'r, R, V, C> {
    type Item = Result<super::Visit<R::Bytes<'r>, V, C>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Whole(walk, _) => walk.next(),
            Self::Bounded(walk) => walk.next(),
        }
    }
}
