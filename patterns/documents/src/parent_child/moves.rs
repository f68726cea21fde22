//! Changes of children whose parent is deleted, moved or replaced.

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, Reader, Result};
use keyloom_kit::RecordKey;

use super::{Children, OnParentDelete, shown};
use crate::documents::Part;
use crate::error::DocumentError;

impl<P, D, K, V, C> Children<P, D, K, V, C>
where
    P: RecordKey + Clone + Send + Sync,
    K: RecordKey + Clone,
    V: Clone,
    C: Codec<D> + Codec<V> + 'static,
{
    /// Moves a record to another parent, unless there is a record at its new key. Returns whether
    /// the record was moved.
    pub(super) fn reparent(&self, txn: &mut DynWriter<'_>, key: &K, parent: &P) -> Result<bool> {
        let moved = self.moved_to(txn, key, parent)?;
        let [old, new] = [key, &moved.0].map(|key| self.records.table().space().pack(key));
        if old != new && txn.get(&new)?.is_some() {
            return Ok(false);
        }
        self.move_at(txn, key, moved, 0)?;
        Ok(true)
    }

    /// The key and the value of a record as a child of another parent.
    pub(super) fn moved_to(&self, txn: &impl Reader, key: &K, parent: &P) -> Result<(K, V)> {
        let value = self.records.table().get(txn, key)?;
        let value = value.ok_or_else(|| self.records.no_record(key))?;
        let (new, value) = (self.link.with_parent)(key, value, parent);
        let is_of = (self.link.parent_of)(&new, &value).map(|of| keyloom::pack(&of));
        if is_of != Some(keyloom::pack(parent)) {
            return Err(Error::InvalidArgument {
                what: "the link of a relation",
                value: self.records.shown(&new),
                why: "its second function must return a record of the given parent; correct the functions of the link",
            });
        }
        Ok((new, value))
    }

    pub(super) fn move_at(
        &self,
        txn: &mut DynWriter<'_>,
        key: &K,
        (new, value): (K, V),
        depth: usize,
    ) -> Result<K> {
        self.check_parent(txn, key, &new, &value)?;
        self.records.move_at(txn, key, &new, &value, depth)?;
        Ok(new)
    }

    /// Applies a rule to the children of a parent that was deleted.
    pub(super) fn resolve(
        &self,
        txn: &mut DynWriter<'_>,
        parent: &P,
        rule: &OnParentDelete<P>,
        depth: usize,
    ) -> Result<()> {
        let keys = match rule {
            OnParentDelete::Keep => return Ok(()),
            OnParentDelete::Refuse => self.some_keys_of(txn, parent, 1)?,
            OnParentDelete::Delete | OnParentDelete::Reparent(_) => self.keys_of(txn, parent)?,
        };
        match rule {
            _ if keys.is_empty() => Ok(()),
            OnParentDelete::Keep => Ok(()),
            OnParentDelete::Refuse => Err(DocumentError::HasChildren {
                key: shown(&self.packed(parent)),
                children: self.records.name().to_owned(),
            }
            .into()),
            OnParentDelete::Delete => self.records.delete_at(txn, &keys, depth).map(drop),
            OnParentDelete::Reparent(other) => keys.iter().try_for_each(|key| {
                let moved = self.moved_to(txn, key, other)?;
                self.move_at(txn, key, moved, depth).map(drop)
            }),
        }
    }
}

impl<P, D, K, V, C> Part<P, D> for Children<P, D, K, V, C>
where
    P: RecordKey + Clone + Send + Sync,
    K: RecordKey + Clone,
    V: Clone,
    C: Codec<D> + Codec<V> + 'static,
{
    fn removed(&self, txn: &mut DynWriter<'_>, keys: &[P], depth: usize) -> Result<()> {
        keys.iter().try_for_each(|key| self.resolve(txn, key, &self.on_delete, depth))
    }

    fn moved(&self, txn: &mut DynWriter<'_>, from: &P, to: &P, depth: usize) -> Result<()> {
        let keys = self.keys_of(txn, from)?;
        keys.iter().try_for_each(|key| {
            // No check is needed: the parent was just written at its new key, and its ancestors and
            // the height of its descendants are either unchanged or were checked before the move.
            let (new, value) = self.moved_to(txn, key, to)?;
            self.records.move_at(txn, key, &new, &value, depth)
        })
    }
}
