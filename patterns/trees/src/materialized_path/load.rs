//! Imports whole trees: every key is computed before the first write, and the keys are written in
//! order.

use std::collections::{HashMap, HashSet};

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Writer};

use super::super::rank::{Rank, spread};
use super::super::tree::{TreeError, exists};
use super::super::{NestedNode, NodeId};
use super::MaterializedPath;
use super::change::Rewrite;
use super::layout::{Located, foreign};
use super::path::{Path, by_name, by_rank};

/// The remaining children of a node.
struct Siblings<'t, V> {
    parent: Option<NodeId>,
    path: Path,
    trees: std::slice::Iter<'t, NestedNode<V>>,
    /// Empty for paths of names.
    ranks: std::vec::IntoIter<Rank>,
}

/// The nodes being imported, and the nodes that exist or were already imported.
struct Coming {
    located: Located,
    seen: HashSet<NodeId>,
    paths: HashMap<Path, NodeId>,
    /// For paths of names: the existing records at the paths of the imported roots.
    taken: HashMap<Path, Vec<u8>>,
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn load_below(
        &self,
        txn: &mut impl Writer,
        parent: Option<NodeId>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        let layout = &self.layout;
        let nodes = trees.iter().flat_map(NestedNode::preorder).map(|(_, node)| node.id);
        let mut ids: Vec<NodeId> = nodes.collect();
        let Some(first) = ids.first().copied() else { return Ok(()) };
        let count = ids.len();
        ids.extend(parent);
        let located = layout.locate(txn, &ids)?;
        self.refuse_existing(&located, 0, first)?;
        let path = parent.map_or(Ok(Path::new()), |id| layout.there(&located, count, id))?;
        layout.refuse_in_steps(located.steps.as_ref(), |steps| steps.holds(&path))?;
        let ranks = match layout.names() {
            true => Vec::new(),
            false => {
                let last = layout.beside(txn, &path, None, Order::Descending, None)?;
                let low = last.and_then(|last| layout.segments.rank(&last));
                let ranks = spread(low.as_deref(), None, trees.len());
                ranks.ok_or_else(|| foreign(&layout.key(&path)))?
            }
        };
        let taken = self.taken_paths(txn, &path, trees)?;
        let (seen, paths) = (HashSet::with_capacity(count), HashMap::new());
        let mut coming = Coming { located, seen, paths, taken };
        let roots = Siblings { parent, path, trees: trees.iter(), ranks: ranks.into_iter() };
        let mut rewrite = Rewrite::default();
        let mut open = vec![roots];
        while let Some(siblings) = open.last_mut() {
            let Some(node) = siblings.trees.next() else {
                open.pop();
                continue;
            };
            self.refuse_seen(&mut coming, node.id)?;
            let path = match siblings.ranks.next() {
                Some(rank) => by_rank(&siblings.path, &rank, node.id),
                None => self.free_path(siblings, node, &mut coming)?,
            };
            rewrite.put(layout, node.id, &path, &self.record(node.id, &node.name, &node.value)?)?;
            let ranks = match layout.names() {
                true => Vec::new(),
                false => spread(None, None, node.children.len()).unwrap_or_default(),
            };
            let (trees, ranks) = (node.children.iter(), ranks.into_iter());
            open.push(Siblings { parent: Some(node.id), path, trees, ranks });
        }
        rewrite.apply(txn)?;
        self.records.put_all(txn, trees)
    }

    /// Refuses a node that exists already, or occurs twice.
    fn refuse_seen(&self, coming: &mut Coming, id: NodeId) -> Result<()> {
        let n = coming.seen.len();
        if coming.seen.insert(id) {
            return self.refuse_existing(&coming.located, n, id);
        }
        Err(exists(&self.layout.space, id))
    }

    /// Returns the path of names of a node, or an error if the path is taken.
    fn free_path(
        &self,
        siblings: &Siblings<'_, V>,
        node: &NestedNode<V>,
        coming: &mut Coming,
    ) -> Result<Path> {
        let (parent, name) = (siblings.parent, &node.name);
        let path = by_name(&siblings.path, name);
        if let Some(taken_by) = coming.paths.insert(path.clone(), node.id) {
            return Err(TreeError::NameTaken { parent, name: name.clone(), taken_by }.into());
        }
        // A node imported just now has no other children.
        let is_new = parent.is_some_and(|parent| coming.seen.contains(&parent));
        if is_new {
            return Ok(path);
        }
        let steps = coming.located.steps.as_ref();
        self.layout.refuse_in_steps(steps, |steps| steps.hidden() == Some(&path))?;
        let key = self.layout.checked_key(node.id, &path)?;
        self.layout.refuse_taken(parent, name, &key, coming.taken.get(&path).map(Vec::as_slice))?;
        Ok(path)
    }

    /// The records at the paths of names for some trees, read in one round trip.
    fn taken_paths(
        &self,
        reader: &impl Reader,
        parent: &Path,
        trees: &[NestedNode<V>],
    ) -> Result<HashMap<Path, Vec<u8>>> {
        if !self.layout.names() {
            return Ok(HashMap::new());
        }
        let paths = trees.iter().map(|tree| by_name(parent, &tree.name));
        let fits = |path: &Path| keyloom::check_key(&self.layout.key(path)).is_ok();
        let paths: Vec<Path> = paths.filter(fits).collect();
        let keys: Vec<KeyBuf> = paths.iter().map(|path| self.layout.key(path)).collect();
        let records = reader.get_many(&keys)?.into_iter();
        let taken = paths.into_iter().zip(records);
        Ok(taken.filter_map(|(path, record)| Some((path, record?.to_vec()))).collect())
    }
}
