//! Reads a node, its children, its siblings.

use keyloom::key::{Unpack, Unpacker};
use keyloom::{Error, KeyRange, Order, Reader, Result};
use keyloom_kit::InOrder;

use super::AdjacencyList;
use super::link::{Link, TOMBSTONE};
use crate::tree::unknown;
use crate::{NodeId, TreeNode};

/// A node and its link.
pub(super) type Linked<'r, R, V, C> = (Link, TreeNode<<R as Reader>::Bytes<'r>, V, C>);

impl<V, C> AdjacencyList<V, C> {
    /// Returns a node and its link, if it exists.
    pub(super) fn find<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Option<Linked<'r, R, V, C>>> {
        let key = self.node_key(id);
        let record = reader.get(&key)?.filter(|record| record[..] != TOMBSTONE);
        record.map(|record| self.linked(id, record)).transpose()
    }

    /// Decodes a record into a node and its link.
    pub(super) fn linked<B: std::ops::Deref<Target = [u8]>>(
        &self,
        id: NodeId,
        record: B,
    ) -> Result<(Link, TreeNode<B, V, C>)> {
        let (link, from) = Link::decode(&record).map_err(|error| error.at(&self.node_key(id)))?;
        Ok((link, TreeNode::new(id, record, from)))
    }

    /// Returns a node, or an error if it does not exist.
    pub(super) fn known<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Linked<'r, R, V, C>> {
        self.find(reader, id)?.ok_or_else(|| unknown(&self.space, id))
    }

    fn expect_parent(&self, reader: &impl Reader, parent: Option<NodeId>) -> Result<()> {
        match parent {
            Some(parent) => self.known(reader, parent).map(drop),
            None => Ok(()),
        }
    }

    /// All child entries of a parent.
    pub(super) fn entries_of(&self, parent: Option<NodeId>) -> KeyRange<'static> {
        self.children.range_of(&(parent,))
    }

    /// The id at the end of the key of a child entry.
    pub(super) fn child_id(&self, key: &[u8]) -> Result<NodeId> {
        let behind = key.get(self.children.prefix().len()..).unwrap_or_default();
        let mut input = Unpacker::new(behind);
        let mut id = || {
            input.skip()?;
            input.skip()?;
            NodeId::unpack(&mut input)
        };
        id().map_err(|error| Error::from(error).at(key))
    }

    pub(super) fn children_of<'r, R: Reader>(
        &self,
        reader: &'r R,
        InOrder { of: parent, order }: InOrder<Option<NodeId>>,
    ) -> Result<impl Iterator<Item = Result<TreeNode<R::Bytes<'r>, V, C>>> + use<'r, V, C, R>> {
        self.expect_parent(reader, parent)?;
        self.children_in(reader, self.entries_of(parent), order)
    }

    /// The child entries of the siblings that follow a node in `order`.
    pub(super) fn entries_after(&self, link: &Link, id: NodeId, order: Order) -> KeyRange<'static> {
        self.entries_of(link.parent).resume(order, &self.child_key(link, id)).into_owned()
    }

    /// The children in a range of child entries.
    pub(super) fn children_in<'r, R: Reader>(
        &self,
        reader: &'r R,
        entries: KeyRange<'_>,
        order: Order,
    ) -> Result<impl Iterator<Item = Result<TreeNode<R::Bytes<'r>, V, C>>> + use<'r, V, C, R>> {
        let entries = reader.range(entries, order)?;
        let tree = self.clone();
        Ok(entries.map(move |entry| {
            let (key, stored) = entry?;
            Ok(TreeNode::new(tree.child_id(&key)?, stored, 0))
        }))
    }

    /// Decodes the counter of children.
    pub(super) fn decode_count(&self, key: &[u8], value: &[u8]) -> Result<u64> {
        match value.try_into() {
            Ok(bytes) => Ok(u64::from_le_bytes(bytes)),
            Err(_) => Err(Error::NotACounter {
                key: keyloom::key::display_named(key).to_string().into(),
                bytes: value.len(),
            }),
        }
    }

    /// The id in a name entry.
    pub(super) fn named(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<NodeId>> {
        // No child has a name whose key exceeds the maximum length.
        if key.len() > keyloom::MAX_KEY_BYTES {
            return Ok(None);
        }
        reader.get(key)?.map(|value| self.decode_name(key, &value)).transpose()
    }

    pub(super) fn decode_name(&self, key: &[u8], value: &[u8]) -> Result<NodeId> {
        keyloom::unpack(value).map_err(|error| Error::from(error).at(key))
    }
}
