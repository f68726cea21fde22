//! Edits of the lists of an entity.

use keyloom::key::Pack;
use keyloom::{Error, Reader, Result, Subspace, Writer};
use keyloom_kit::RecordKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::collection::{Aggregates, write_markers};
use super::merge::NoRoom;
use super::path::{Step, path_of, steps};
use super::position::ListPosition;
use super::tree::{Kind, Node, from_value, to_value};

/// The place in a list where an item is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPlace<'p> {
    /// Before all other items.
    First,
    /// After all other items.
    Last,
    /// Directly before this position. The item of the position may have been removed.
    Before(&'p ListPosition),
    /// Directly after this position. The item of the position may have been removed.
    After(&'p ListPosition),
}

impl<K: RecordKey> Aggregates<K> {
    /// Appends an item to a list and returns its position. Creates the list and the entity if they
    /// are missing.
    ///
    /// # Errors
    /// The errors of [`insert`](Aggregates::insert).
    pub fn push<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        list: impl Pack,
        item: &T,
    ) -> Result<ListPosition> {
        txn.guarded(|txn| self.insert(txn, key, list, ListPlace::Last, item))
    }

    /// Inserts an item into a list and returns its position. Other items are not written.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Aggregates;
    /// use keyloom_tables::entity::ListPlace;
    /// let lists = Aggregates::<u32>::new(&Subspace::new("lists"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     let milk = lists.push(txn, &1, "items", "milk")?;
    ///     lists.push(txn, &1, "items", "bread")?;
    ///     lists.insert(txn, &1, "items", ListPlace::After(&milk), "tea").map(drop)
    /// })?;
    /// let items = lists.field::<Vec<String>>(&store.snapshot()?, &1, "items")?;
    /// assert_eq!(items.expect("it is there"), ["milk", "tea", "bread"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`] with the key of a value that is not a list; [`Error::At`] with an
    /// [`Error::Other`] if there is no room between two positions; [`Error::KeyTooLong`], also for
    /// a position that has grown after many insertions at one place
    /// ([`renumber`](Aggregates::renumber) makes positions short again); the errors of
    /// [`set`](Aggregates::set).
    pub fn insert<T: Serialize + ?Sized>(
        &self,
        txn: &mut impl Writer,
        key: &K,
        list: impl Pack,
        place: ListPlace<'_>,
        item: &T,
    ) -> Result<ListPosition> {
        txn.guarded(|txn| {
            let path = path_of(&list)?;
            let (entity, list) = (self.entity(key), self.entity(key).child(&list));
            let wanted: Vec<Kind> = path.iter().map(Kind::before).chain([Kind::List]).collect();
            let missing = self.missing_along(txn, &entity, &path, &wanted)?;
            let (low, high) = neighbours(txn, &list, place)?;
            let position = ListPosition::between(low.as_ref(), high.as_ref())
                .ok_or_else(|| Error::other(NoRoom).at(list.prefix()))?;
            let here = list.child(&(&position,));
            let node =
                to_value(item).and_then(Node::divide).map_err(|error| error.at(here.prefix()))?;
            self.write(txn, &here, None, &node)?;
            write_markers(txn, &missing)?;
            Ok(position)
        })
    }

    /// The items of a list with their positions. If there is no list, returns no items. Costs one
    /// range.
    ///
    /// # Errors
    /// The errors of [`get`](Aggregates::get).
    pub fn items<T: DeserializeOwned>(
        &self,
        reader: &impl Reader,
        key: &K,
        list: impl Pack,
    ) -> Result<Vec<(ListPosition, T)>> {
        path_of(&list)?;
        let list = self.entity(key).child(&list);
        let children = self.node(reader, &list)?.map(|node| node.children).unwrap_or_default();
        let item = |(step, node): (Step, Node)| match step {
            Step::Item(position) => {
                let here = list.child(&(&position,));
                let item = from_value(&node.join()).map_err(|error| error.at(here.prefix()));
                Some(item.map(|item| (position, item)))
            }
            _ => None,
        };
        children.into_iter().filter_map(item).collect()
    }

    /// Assigns new positions to the items of a list, as if the list were written as a whole. A
    /// position that the program has kept then belongs to another item or to no item.
    ///
    /// # Errors
    /// The errors of [`get`](Aggregates::get).
    pub fn renumber(&self, txn: &mut impl Writer, key: &K, list: impl Pack) -> Result<()> {
        txn.guarded(|txn| {
            path_of(&list)?;
            let list = self.entity(key).child(&list);
            let Some(old) = self.node(txn, &list)? else { return Ok(()) };
            if Kind::of(&old.value) != Some(Kind::List) {
                return Ok(());
            }
            let numbered =
                (1..).map(|n| Step::Item(ListPosition::nth(n))).zip(old.children.values());
            let children = numbered.map(|(step, child)| (step, child.clone())).collect();
            let new = Node { value: old.value.clone(), children };
            self.write(txn, &list, Some(&old), &new)
        })
    }
}

type Neighbours = (Option<ListPosition>, Option<ListPosition>);

/// The positions between which a new item is inserted.
fn neighbours(reader: &impl Reader, list: &Subspace, place: ListPlace<'_>) -> Result<Neighbours> {
    let items = list.range();
    let position = |found: Option<keyloom::Entry<_>>| match found {
        Some((key, _)) => position_in(list, &key).map(Some),
        None => Ok(None),
    };
    match place {
        ListPlace::First => Ok((None, position(reader.first(items)?)?)),
        ListPlace::Last => Ok((position(reader.last(items)?)?, None)),
        ListPlace::Before(high) => {
            let high_key = list.pack(&(high,));
            let low = position(reader.last(items.before(&high_key))?)?;
            Ok((low, Some(high.clone())))
        }
        ListPlace::After(low) => {
            let behind = keyloom::KeyRange::behind(&list.pack(&(low,)));
            let high = position(reader.first(items.intersect(behind))?)?;
            Ok((Some(low.clone()), high))
        }
    }
}

/// The position of the item of `list` that `key` belongs to.
fn position_in<B: std::ops::Deref<Target = [u8]>>(
    list: &Subspace,
    key: &B,
) -> Result<ListPosition> {
    let path = key.get(list.prefix().len()..).and_then(steps);
    match path.and_then(|path| path.into_iter().next()) {
        Some(Step::Item(position)) => Ok(position),
        _ => Err(Error::other("it is not an item of a list; `check` the aggregates").at(key)),
    }
}
