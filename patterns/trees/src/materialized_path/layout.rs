//! The key layout of a materialized path.

use keyloom::{Error, KeyBuf, KeyRange, MAX_KEY_BYTES, Reader, Result, Subspace};
use smallvec::{SmallVec, smallvec};

use super::super::tree::{TreeError, unknown};
use super::super::{NodeId, TreeNode};
use super::path::{Measured, Path, Segments, joined};
use super::steps::Steps;

/// The number of bytes in a record before the part that all models store: the id, if the path does
/// not contain it.
const ID_BYTES: usize = size_of::<NodeId>();

/// The subspaces and the kind of segments.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) space: Subspace,
    pub(super) paths: Subspace,
    pub(super) nodes: Subspace,
    pub(super) steps: KeyBuf,
    pub(super) segments: Segments,
}

/// The stored paths of some nodes, and the record of work in steps.
pub(super) struct Located {
    pub(super) steps: Option<Steps>,
    stored: SmallVec<[Option<Path>; 2]>,
}

impl Layout {
    pub(super) fn new(space: &Subspace) -> Self {
        Self {
            space: space.clone(),
            paths: space.child("path"),
            nodes: space.child("node"),
            steps: space.pack("move"),
            segments: Segments::Ids,
        }
    }

    pub(super) fn names(&self) -> bool {
        self.segments == Segments::Names
    }

    /// The key of the record at a path.
    pub(super) fn key(&self, path: &[u8]) -> KeyBuf {
        joined(self.paths.prefix(), path)
    }

    /// The key of the entry that maps an id to its path.
    pub(super) fn node(&self, id: NodeId) -> KeyBuf {
        self.nodes.pack(&id)
    }

    /// The range of a node and its descendants.
    pub(super) fn subtree(&self, path: &[u8]) -> KeyRange<'static> {
        KeyRange::self_and_children(&self.key(path)).into_owned()
    }

    /// The range of a node's descendants.
    pub(super) fn below(&self, path: &[u8]) -> KeyRange<'static> {
        KeyRange::children(&self.key(path))
    }

    /// The range after a node and all its descendants.
    pub(super) fn behind(&self, path: &[u8]) -> KeyRange<'static> {
        KeyRange::behind(&self.key(path))
    }

    /// The path in the key of a record.
    #[inline(always)]
    pub(super) fn path<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(self.paths.prefix().len()..).unwrap_or_default()
    }

    /// The offset in a record of the part that all models store.
    #[inline(always)]
    pub(super) fn header(&self) -> usize {
        match self.segments {
            Segments::Ids => 0,
            Segments::Names => ID_BYTES,
        }
    }

    /// The id of a node, from its path or key and from its record.
    #[inline(always)]
    pub(super) fn id(&self, measured: Measured, path: &[u8], record: &[u8]) -> Option<NodeId> {
        match self.segments {
            Segments::Ids => measured.id(path),
            Segments::Names => record.first_chunk().map(|bytes| NodeId::from_be_bytes(*bytes)),
        }
    }

    /// The id of the node at a path.
    pub(super) fn id_at(&self, key: &[u8], record: &[u8]) -> Result<NodeId> {
        let path = self.path(key);
        let measured = self.segments.measure(path).filter(|found| found.depth > 0);
        measured.and_then(|found| self.id(found, path, record)).ok_or_else(|| foreign(key))
    }

    /// Whether the bytes are a valid path of at least one segment.
    pub(super) fn is_path(&self, path: &[u8]) -> bool {
        self.segments.measure(path).is_some_and(|found| found.depth > 0)
    }

    /// Appends the bytes before the part that all models store.
    pub(super) fn put_header(&self, id: NodeId, out: &mut Vec<u8>) {
        if self.names() {
            out.extend_from_slice(&id.to_be_bytes());
        }
    }

    /// The record of a node with another name.
    pub(super) fn renamed<V, C>(&self, id: NodeId, record: &[u8], name: &str) -> Result<Vec<u8>> {
        let node = TreeNode::<&[u8], V, C>::new(id, record, self.header());
        let mut renamed = Vec::with_capacity(record.len() + name.len());
        self.put_header(id, &mut renamed);
        renamed.extend_from_slice(&node.renamed(name)?);
        Ok(renamed)
    }

    /// The record at the path of a node that must exist.
    pub(super) fn record<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        path: &[u8],
    ) -> Result<R::Bytes<'r>> {
        reader.get(&self.key(path))?.ok_or_else(|| unknown(&self.space, id))
    }

    /// Reads the paths of nodes and the record of work in steps, in one round trip.
    pub(super) fn locate(&self, reader: &impl Reader, ids: &[NodeId]) -> Result<Located> {
        let mut keys: SmallVec<[KeyBuf; 3]> = smallvec![self.steps.clone()];
        keys.extend(ids.iter().map(|id| self.node(*id)));
        let mut values = reader.get_many(&keys)?.into_iter();
        let steps = values.next().flatten().map(|bytes| Steps::decode(&bytes));
        let steps = steps.transpose().map_err(|error| error.at(&self.steps))?;
        let stored = values.map(|value| value.map(|path| Path::from_slice(&path))).collect();
        Ok(Located { steps, stored })
    }

    /// Reads the path of a node that must exist.
    pub(super) fn expect(&self, reader: &impl Reader, id: NodeId) -> Result<(Path, Option<Steps>)> {
        let located = self.locate(reader, &[id])?;
        Ok((self.there(&located, 0, id)?, located.steps))
    }

    /// The path of the `n`-th requested node, which must exist.
    pub(super) fn there(&self, located: &Located, n: usize, id: NodeId) -> Result<Path> {
        located.path(n).ok_or_else(|| unknown(&self.space, id))
    }

    /// The path of a parent that must exist; empty for the parent of the roots.
    pub(super) fn expect_parent(
        &self,
        reader: &impl Reader,
        parent: Option<NodeId>,
    ) -> Result<(Path, Option<Steps>)> {
        match parent {
            Some(parent) => self.expect(reader, parent),
            None => Ok((Path::new(), self.locate(reader, &[])?.steps)),
        }
    }

    /// The key of a path, or an error if it is too long.
    pub(super) fn checked_key(&self, node: NodeId, path: &[u8]) -> Result<KeyBuf> {
        let key = self.key(path);
        if key.len() > MAX_KEY_BYTES {
            let (bytes, limit) = (key.len(), MAX_KEY_BYTES);
            return Err(TreeError::PathTooLong { node, bytes, limit }.into());
        }
        Ok(key)
    }

    pub(super) fn in_steps(&self, steps: &Steps) -> Error {
        TreeError::InSteps { tree: self.space.named(), node: steps.root }.into()
    }

    pub(super) fn ordered_by_name(&self) -> Error {
        TreeError::OrderedByName { tree: self.space.named() }.into()
    }

    /// The id in the key of an id entry.
    pub(super) fn id_of_node(&self, key: &[u8]) -> Option<NodeId> {
        self.nodes.unpack::<(NodeId,)>(key).ok().map(|(id,)| id)
    }
}

impl Located {
    /// The path of the `n`-th requested node, as readers should see it.
    pub(super) fn path(&self, n: usize) -> Option<Path> {
        let stored = self.stored(n)?.clone();
        match &self.steps {
            Some(steps) => steps.resolve(stored),
            None => Some(stored),
        }
    }

    /// The stored path of the `n`-th requested node.
    pub(super) fn stored(&self, n: usize) -> Option<&Path> {
        self.stored.get(n)?.as_ref()
    }
}

/// The error for a key that is not a path.
#[cold]
pub(super) fn foreign(key: &[u8]) -> Error {
    let source = "it is not a path of a node; is another kind of data in this subspace?";
    Error::Value { codec: "the key of a node", action: "decode", source: source.into() }.at(key)
}
