//! Reads many entities in one range.

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::key::{Pack, Unpacker};
use keyloom::{Entry, Error, Order, Reader, Result, Subspace};
use keyloom_kit::{RecordKey, Select};
use serde::de::DeserializeOwned;

use super::collection::Aggregates;
use super::path::path_of;
use super::tree::{Node, from_value};

impl<K: RecordKey> Aggregates<K> {
    /// The entities with selected keys, in key order, or in [`descending`](crate::descending)
    /// order. Costs one range.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Aggregates;
    /// use std::collections::BTreeMap;
    /// let orders = Aggregates::<(u32, u32)>::new(&Subspace::new("orders"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     orders.set(txn, &(7, 1), "total", &250)?;
    ///     orders.set(txn, &(7, 2), "total", &120)?;
    ///     orders.set(txn, &(8, 1), "note", "urgent")
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let mut total = 0;
    /// for entity in orders.range(&snapshot, 7)? {
    ///     let (_key, order) = entity?;
    ///     total += order.field::<u32>("total")?.unwrap_or(0);
    /// }
    /// assert_eq!(total, 370);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns [`Error::At`] for a key or a value that
    /// does not decode.
    pub fn range<'r, R: Reader, S: Select>(
        &self,
        reader: &'r R,
        select: S,
    ) -> Result<impl Iterator<Item = Result<(K, Entity)>> + use<'r, R, S, K>> {
        let order = select.order();
        let entries = reader.range(select.key_range(self.space()), order)?;
        Ok(Entities { entries, order, next: None, space: self.space().clone(), key: PhantomData })
    }
}

/// An entity of any shape, as read from the store.
#[derive(Clone, Debug)]
pub struct Entity(Node);

impl Entity {
    /// Decodes the entity as a `T`.
    ///
    /// # Errors
    /// [`Error::Value`] if the entity is not a `T`.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T> {
        from_value(&self.0.join())
    }

    /// Decodes a part of the entity; `None` if there is no such part.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `path` is not a path; [`Error::Value`] if the part is not a
    /// `T`.
    pub fn field<T: DeserializeOwned>(&self, path: impl Pack) -> Result<Option<T>> {
        let mut node = &self.0;
        for step in path_of(&path)? {
            let Some(child) = node.children.get(&step) else { return Ok(None) };
            node = child;
        }
        from_value(&node.clone().join()).map(Some)
    }
}

struct Entities<I, B, K> {
    entries: I,
    order: Order,
    /// The first entry of the next entity.
    next: Option<Entry<B>>,
    space: Subspace,
    key: PhantomData<fn() -> K>,
}

impl<I, B, K: RecordKey> Entities<I, B, K>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    /// Reads the entity whose first entry is `first`.
    fn entity(&mut self, first: Entry<B>) -> Result<(K, Entity)> {
        let (key, space) = entity_of(&self.space, &first.0)?;
        let mut parts = vec![Ok(first)];
        for entry in self.entries.by_ref() {
            match entry {
                Ok(entry) if !space.contains(&entry.0) => {
                    self.next = Some(entry);
                    break;
                }
                entry => parts.push(entry),
            }
        }
        if self.order == Order::Descending {
            // `Node::collect` needs a list or map before its items.
            parts.reverse();
        }
        match Node::collect(&space, parts.into_iter())? {
            Some(node) => Ok((key, Entity(node))),
            None => Err(Error::other("it has no parts").at(space.prefix())),
        }
    }
}

/// The key of the entity that an entry belongs to, and the subspace of the entity.
pub(super) fn entity_of<K: RecordKey>(space: &Subspace, entry_key: &[u8]) -> Result<(K, Subspace)> {
    let own = entry_key.get(space.prefix().len()..).unwrap_or_default();
    let key =
        K::unpack(&mut Unpacker::new(own)).map_err(|error| Error::from(error).at(entry_key))?;
    let entity = space.child(&key);
    Ok((key, entity))
}

impl<I, B, K: RecordKey> Iterator for Entities<I, B, K>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<(K, Entity)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next.take() {
            Some(first) => Some(self.entity(first)),
            None => Some(self.entries.next()?.and_then(|first| self.entity(first))),
        }
    }
}
