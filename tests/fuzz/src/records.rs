//! The table and the indexes that the targets use, and an independent model of them.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::{Desc, KeyRange, Memory, Order, Reader, Store, Subspace};
use keyloom_patterns::{AnyParts, Inconsistency, Index, IndexEntries, Maintained, Table, entry};
use serde::{Deserialize, Serialize};

pub(crate) type Id = (u8, i8);
pub(crate) type Dump = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug, PartialEq, Arbitrary, Serialize, Deserialize)]
pub(crate) struct Town {
    #[arbitrary(with = few)]
    pub(crate) country: u8,
    pub(crate) name: String,
    pub(crate) size: u16,
    #[arbitrary(with = tags)]
    pub(crate) tags: Vec<u8>,
}

/// A small number, so that equal values are frequent.
pub(crate) fn few(input: &mut Unstructured<'_>) -> Result<u8> {
    input.int_in_range(0..=3)
}

pub(crate) fn id(input: &mut Unstructured<'_>) -> Result<Id> {
    Ok((few(input)?, input.int_in_range(-1..=1)?))
}

fn tags(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let count = few(input)?;
    (0..count).map(|_| few(input)).collect()
}

/// A table with three kinds of index: plain, descending and partial, multi-valued.
pub(crate) struct Towns {
    pub(crate) table: Table<Id, Town>,
    pub(crate) by_name: Index<Id, Town, (u8, String)>,
    pub(crate) by_size: Index<Id, Town, Desc<u16>>,
    pub(crate) by_tag: Index<Id, Town, u8>,
}

impl Towns {
    /// The table without its indexes; the caller attaches them.
    pub(crate) fn bare() -> Self {
        let by_name =
            Index::new(&Subspace::new("by_name"), |_, t: &Town| entry((t.country, &t.name)));
        let by_size = Index::new(&Subspace::new("by_size"), |_, t: &Town| match t.size {
            0 => IndexEntries::none(),
            size => entry(Desc(size)),
        });
        let by_tag = Index::new(&Subspace::new("by_tag"), |_, t: &Town| t.tags.iter().collect());
        Self { table: Table::new(&Subspace::new("towns")), by_name, by_size, by_tag }
    }

    pub(crate) fn new() -> Self {
        let towns = Self::bare();
        let table = towns.table.with(&towns.by_name).with(&towns.by_size).with(&towns.by_tag);
        Self { table, ..towns }
    }

    pub(crate) fn indexes(&self) -> [Index<Id, Town, AnyParts>; 3] {
        [self.by_name.untyped(), self.by_size.untyped(), self.by_tag.untyped()]
    }

    pub(crate) fn faults(&self, store: &Memory) -> Vec<Inconsistency> {
        let snapshot = store.snapshot().unwrap();
        let check =
            |index: &Index<Id, Town, AnyParts>| index.check(&snapshot, &self.table).unwrap();
        self.indexes().iter().flat_map(check).collect()
    }
}

/// All entries of the store.
pub(crate) fn dump(store: &Memory) -> Dump {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// The order for a flag.
pub(crate) fn order(descending: bool) -> Order {
    if descending { Order::Descending } else { Order::Ascending }
}

/// Sorts the items in this order.
pub(crate) fn sorted<T: Ord>(mut items: Vec<T>, order: Order) -> Vec<T> {
    items.sort();
    if order == Order::Descending {
        items.reverse();
    }
    items
}
