//! Functions shared by the reads.

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result};

use super::super::NodeId;
use super::MaterializedPath;
use super::layout::foreign;
use super::path::{Path, Segments, is_within};
use super::steps::Steps;
use super::walk::{BoundedWalk, Origin};

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    /// The id of the parent of a path; `None` for a root.
    pub(super) fn parent_id(&self, reader: &impl Reader, path: &Path) -> Result<Option<NodeId>> {
        let layout = &self.layout;
        let above = layout.segments.parent(path);
        if above.is_empty() {
            return Ok(None);
        }
        self.id_of(reader, above).map(Some)
    }

    /// The id of the node at a path. A path of ids contains the id; in a tree of names, the record
    /// contains the id.
    pub(super) fn id_of(&self, reader: &impl Reader, path: &[u8]) -> Result<NodeId> {
        let key = self.layout.key(path);
        match self.layout.segments {
            Segments::Ids => self.layout.id_at(&key, &[]),
            Segments::Names => {
                let record = reader.get(&key)?.ok_or_else(|| foreign(&key))?;
                self.layout.id_at(&key, &record)
            }
        }
    }

    /// A walk over the siblings that follow the node at a path.
    pub(super) fn siblings_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        path: &Path,
        steps: Option<&Steps>,
        order: Order,
    ) -> Result<BoundedWalk<'r, R>> {
        let parent = self.layout.segments.parent(path);
        let origin = Origin::new(&self.layout, (None, parent), &(1..=1));
        let range = self.layout.rest(parent, Some(path), order);
        let hidden = steps.and_then(Steps::hidden).map(|path| &path[..]);
        BoundedWalk::open(reader, origin, range, order, hidden)
    }

    /// The paths of two nodes, in one round trip.
    pub(super) fn two_paths(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<[Path; 2]> {
        let located = self.layout.locate(reader, &[one, other])?;
        let path = |n, id| self.layout.there(&located, n, id);
        Ok([path(0, one)?, path(1, other)?])
    }

    /// The node at a path of names, if it is visible.
    pub(super) fn at_path(
        &self,
        reader: &impl Reader,
        path: &Path,
        steps: Option<&Steps>,
    ) -> Result<Option<NodeId>> {
        let key = self.layout.key(path);
        let hidden = steps.and_then(Steps::hidden);
        if path.is_empty()
            || hidden.is_some_and(|hidden| is_within(path, hidden))
            || keyloom::check_key(&key).is_err()
        {
            return Ok(None);
        }
        reader.get(&key)?.map(|record| self.layout.id_at(&key, &record)).transpose()
    }
}
