//! Collections of entities that are divided into their fields.

use std::fmt;
use std::marker::PhantomData;

use ciborium::Value;
use keyloom::key::Pack;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Subspace, Writer};
use keyloom_kit::derived::write_difference;
use keyloom_kit::{RecordKey, get_many};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::merge::merge;
use super::path::{Step, keys_along, path_of};
use super::tree::{Kind, Node, decode, encode, from_value, to_value};

/// A collection of entities. Each entity is stored as a set of records under one key; see the
/// [module](super).
///
/// `Aggregates` has no type parameter for the entities, because each entity may have a different
/// shape. An internally tagged serde enum can decode all of them:
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Aggregates;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(tag = "kind", rename_all = "lowercase")]
/// enum Product {
///     Book { title: String, pages: u32 },
///     Jeans { length: u8, width: u8, colors: Vec<String> },
/// }
///
/// let shop = Aggregates::<u32>::new(&Subspace::new("shop"));
/// let jeans = Product::Jeans { length: 32, width: 34, colors: vec!["blue".into()] };
/// let store = Memory::new();
/// store.transact(|txn| {
///     shop.put(txn, &1, &Product::Book { title: "Momo".into(), pages: 304 })?;
///     shop.put(txn, &2, &jeans)?;
///     shop.set(txn, &2, "width", &33)?; // one key
///     shop.push(txn, &2, "colors", "black").map(drop)
/// })?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(shop.field::<String>(&snapshot, &1, "title")?.as_deref(), Some("Momo")); // one get
/// let colors = vec!["blue".into(), "black".into()];
/// assert_eq!(shop.get(&snapshot, &2)?, Some(Product::Jeans { length: 32, width: 33, colors }));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// An entity key must have a fixed number of elements: any number, string or tuple, but not a
/// [`List`](keyloom::List). A path is one step (`"title"`) or a tuple of steps
/// (`("tracks", &position, "title")`). The path `()` is the entity itself.
pub struct Aggregates<K> {
    space: Subspace,
    key: PhantomData<fn() -> K>,
}

impl<K> Clone for Aggregates<K> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), key: PhantomData }
    }
}

impl<K> fmt::Debug for Aggregates<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aggregates").field("space", &self.space).finish()
    }
}

impl<K: RecordKey> Aggregates<K> {
    /// A collection of entities in `space`. Nothing else may be in `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), key: PhantomData }
    }

    /// The subspace of the entities.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Reads an entity. Costs one range.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`] with an [`Error::Value`] if the entity is not a
    /// `T`.
    pub fn get<T: DeserializeOwned>(&self, reader: &impl Reader, key: &K) -> Result<Option<T>> {
        let entity = self.entity(key);
        let node = self.node(reader, &entity)?;
        node.map(|node| from_value(&node.join()))
            .transpose()
            .map_err(|error| error.at(entity.prefix()))
    }

    /// Reads a part of an entity. Costs one get, and one more range if the part is a list or a map.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `path` is not a path; the errors of [`get`](Aggregates::get).
    pub fn field<T: DeserializeOwned>(
        &self,
        reader: &impl Reader,
        key: &K,
        path: impl Pack,
    ) -> Result<Option<T>> {
        path_of(&path)?;
        let part = self.entity(key).child(&path);
        let Some(bytes) = reader.get(part.prefix())? else { return Ok(None) };
        let at = |error: Error| error.at(part.prefix());
        let value = decode(&bytes).map_err(at)?;
        if Kind::of(&value).is_none() {
            return from_value(&value).map(Some).map_err(at);
        }
        drop(bytes);
        let node = self.node(reader, &part)?;
        node.map(|node| from_value(&node.join())).transpose().map_err(at)
    }

    /// Replaces an entity. Removes all other stored fields, including fields that `T` does not
    /// have. Writes only the keys that differ.
    ///
    /// # Errors
    /// Any error of the store; [`Error::Value`] if serde cannot serialize the entity;
    /// [`Error::InvalidArgument`] if the entity is not a struct or map, or has maps with keys other
    /// than text and integers; [`Error::KeyTooLong`] if the names of a path are too long together.
    /// After the last three errors, nothing was written.
    pub fn put<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        entity: &T,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let here = self.entity(key);
            let at = |error: Error| error.at(here.prefix());
            let old = self.node(txn, &here)?;
            let value = to_value(entity).map_err(at)?;
            self.refuse_scalar(&here, &value)?;
            let new = replaced(old.as_ref(), value).map_err(at)?;
            self.write(txn, &here, old.as_ref(), &new)
        })
    }

    /// Decodes an entity as a `T`, changes it and writes the difference. Fields that `T` does not
    /// have stay as they are. Returns whether the entity exists.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Aggregates;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize)]
    /// struct Newer { name: String, rating: u8 }
    /// #[derive(Serialize, Deserialize)]
    /// struct Older { name: String }
    ///
    /// let towns = Aggregates::<u32>::new(&Subspace::new("towns"));
    /// let store = Memory::new();
    /// store.transact(|txn| towns.put(txn, &1, &Newer { name: "Pari".into(), rating: 5 }))?;
    /// store.transact(|txn| {
    ///     towns.update(txn, &1, |town: &mut Older| {
    ///         town.name.push('s');
    ///         Ok(())
    ///     })
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(towns.field::<String>(&snapshot, &1, "name")?.as_deref(), Some("Paris"));
    /// assert_eq!(towns.field::<u8>(&snapshot, &1, "rating")?, Some(5));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// A field that `T` reads under another name (`alias`) counts as a field that `T` does not
    /// have. To rename such a field, use [`put`](Aggregates::put).
    ///
    /// # Errors
    /// The errors of `change`, [`get`](Aggregates::get) and [`put`](Aggregates::put).
    pub fn update<T: Serialize + DeserializeOwned>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        change: impl FnOnce(&mut T) -> Result<()>,
    ) -> Result<bool> {
        txn.guarded(|txn| {
            let here = self.entity(key);
            let at = |error: Error| error.at(here.prefix());
            let Some(old) = self.node(txn, &here)? else { return Ok(false) };
            let mut entity: T = from_value(&old.clone().join()).map_err(at)?;
            let before = to_value(&entity).map_err(at)?;
            change(&mut entity)?;
            let after = to_value(&entity).map_err(at)?;
            self.refuse_scalar(&here, &after)?;
            let new = merge(&old, &before, &after).map_err(at)?;
            self.write(txn, &here, Some(&old), &new)?;
            Ok(true)
        })
    }

    /// Replaces a part of an entity and leaves the rest unchanged. Creates missing maps along the
    /// path, including the entity. An item of a list must exist.
    ///
    /// # Errors
    /// [`Error::At`] with the key of a part along the path that is not a divided list or map, or of
    /// a missing item of a list; [`Error::InvalidArgument`] if `path` is not a path; the errors of
    /// [`put`](Aggregates::put).
    pub fn set<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        path: impl Pack,
        value: &T,
    ) -> Result<()> {
        txn.guarded(|txn| self.set_node(txn, key, &path, value, replaced))
    }

    /// Like [`set`](Aggregates::set), but stores a list or a map undivided: it takes one key, and
    /// is read and written as a whole. Maps in it may have keys of any type.
    ///
    /// # Errors
    /// The errors of [`set`](Aggregates::set).
    pub fn set_undivided<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        path: impl Pack,
        value: &T,
    ) -> Result<()> {
        txn.guarded(|txn| self.set_node(txn, key, &path, value, |_, value| Ok(Node::leaf(value))))
    }

    fn set_node<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        path: &impl Pack,
        value: &T,
        make: impl FnOnce(Option<&Node>, Value) -> Result<Node>,
    ) -> Result<()> {
        let steps = path_of(path)?;
        let (entity, part) = (self.entity(key), self.entity(key).child(path));
        let value = to_value(value).map_err(|error| error.at(part.prefix()))?;
        if steps.is_empty() {
            self.refuse_scalar(&entity, &value)?;
        }
        let wanted: Vec<Kind> = steps.iter().map(Kind::before).collect();
        let missing = self.missing_along(txn, &entity, &steps, &wanted)?;
        let old = self.node(txn, &part)?;
        if let (None, Some(Step::Item(_))) = (&old, steps.last()) {
            return Err(Error::other(NoItem).at(part.prefix()));
        }
        let new = make(old.as_ref(), value).map_err(|error| error.at(part.prefix()))?;
        // `write` checks the lengths of all keys before the first write. The maps along the path
        // have shorter keys than the part.
        self.write(txn, &part, old.as_ref(), &new)?;
        write_markers(txn, &missing)
    }

    /// Removes a part of an entity with all its children. Returns whether the part existed.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if `path` is not a path.
    pub fn remove(&self, txn: &mut impl Writer, key: &K, path: impl Pack) -> Result<bool> {
        txn.guarded(|txn| {
            path_of(&path)?;
            let part = self.entity(key).child(&path).self_and_children();
            let was_there = txn.first(part.clone())?.is_some();
            if was_there {
                txn.delete_range(part)?;
            }
            Ok(was_there)
        })
    }

    /// Removes an entity. Returns whether it existed.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        txn.guarded(|txn| self.remove(txn, key, ()))
    }

    pub(super) fn entity(&self, key: &K) -> Subspace {
        self.space.child(key)
    }

    /// Reads the node at `part` with its children.
    pub(super) fn node(&self, reader: &impl Reader, part: &Subspace) -> Result<Option<Node>> {
        keyloom::check_key(part.prefix())?;
        Node::collect(part, reader.range(part.self_and_children(), Order::Ascending)?)
    }

    /// Writes the difference between the old and the new form of a part.
    pub(super) fn write(
        &self,
        txn: &mut impl Writer,
        part: &Subspace,
        old: Option<&Node>,
        new: &Node,
    ) -> Result<()> {
        let old = old.map_or_else(|| Ok(Vec::new()), |old| old.entries(part))?;
        write_difference(txn, &old, &new.entries(part)?)
    }

    /// The lists and maps that are missing along `path`. `wanted` holds the required kinds of the
    /// entity and of each part along the path. Returns an error if an existing part is of another
    /// kind. Costs one round trip.
    pub(super) fn missing_along(
        &self,
        reader: &impl Reader,
        entity: &Subspace,
        path: &[Step],
        wanted: &[Kind],
    ) -> Result<Vec<(KeyBuf, Kind)>> {
        let keys = keys_along(entity, path);
        let keys = keys.get(..wanted.len()).unwrap_or_default();
        let is_item = |step: Option<&Step>| matches!(step, Some(Step::Item(_)));
        let mut missing = Vec::new();
        for (at, ((key, there), &kind)) in
            keys.iter().zip(get_many(reader, keys)?).zip(wanted).enumerate()
        {
            let comes_from_item = at.checked_sub(1).is_some_and(|before| is_item(path.get(before)));
            match there {
                Some(bytes) => expect(kind, &bytes).map_err(|error| error.at(key))?,
                // A missing item is not created, because it may have been removed. A missing list
                // has no items.
                None if comes_from_item || is_item(path.get(at)) => {
                    return Err(Error::other(NoItem).at(key));
                }
                None if at == 0 && kind == Kind::List => {
                    return Err(Error::other(NotA(kind.name())).at(key));
                }
                None => missing.push((key.clone(), kind)),
            }
        }
        Ok(missing)
    }

    fn refuse_scalar(&self, entity: &Subspace, value: &Value) -> Result<()> {
        match value {
            Value::Map(_) => Ok(()),
            _ => Err(Error::InvalidArgument {
                what: "the entity",
                value: entity.named(),
                why: "it is neither a struct nor a map; use a table for values of other kinds",
            }),
        }
    }
}

/// The new node of a part that is replaced as a whole. Unchanged items of lists keep their
/// positions.
fn replaced(old: Option<&Node>, value: Value) -> Result<Node> {
    match old {
        Some(old) => merge(old, &old.clone().join(), &value).and_then(|new| divided(new, value)),
        None => Node::divide(value),
    }
}

/// Divides the value if its node is a single undivided value.
fn divided(node: Node, value: Value) -> Result<Node> {
    let whole = node.children.is_empty() && Kind::of(&node.value).is_none();
    if whole { Node::divide(value) } else { Ok(node) }
}

/// Returns an error if the stored value is not the marker of a divided list or map of the wanted
/// kind.
fn expect(wanted: Kind, bytes: &[u8]) -> Result<()> {
    match Kind::of(&decode(bytes)?) {
        Some(kind) if kind == wanted => Ok(()),
        _ => Err(Error::other(NotA(wanted.name()))),
    }
}

/// Writes the markers of empty lists and maps.
pub(super) fn write_markers(txn: &mut impl Writer, missing: &[(KeyBuf, Kind)]) -> Result<()> {
    missing.iter().try_for_each(|(key, kind)| txn.put(key, &encode(&kind.marker())?))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the path leads through it, but it is not a {0} that is stored in parts; set it as a whole"
)]
struct NotA(&'static str);

#[derive(Debug, thiserror::Error)]
#[error("there is no such item; push or insert one")]
struct NoItem;
