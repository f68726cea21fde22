//! The subjects of the race tests: the pattern, and the naive algorithm, which is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::{KeyRange, Memory, Order, Reader, Result, Store, Subspace, Writer, unpack};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::property_index::{PropertyIndex, Stamps};

use crate::property_index::per_key::PerKey;

pub trait Subject: Sync {
    /// Sets the value of an item, or removes it.
    fn set(&self, store: &PerKey, stamps: &mut Stamps, item: u8, value: Option<u8>) -> Result<()>;

    /// The items with a value.
    fn find(&self, store: &PerKey, value: u8) -> Result<BTreeSet<u8>>;

    /// The values of all items, from the bytes in the store.
    fn current(&self, store: &Memory) -> BTreeMap<u8, u8>;

    /// The number of keys in the store that the current values do not need.
    fn left_over(&self, store: &Memory) -> usize;

    /// The number of faults that the check of the subject finds.
    fn faults(&self, store: &PerKey) -> usize;

    /// Removes the remains by every means except updates.
    fn settle(&self, store: &PerKey, stamps: &Stamps);
}

fn entries(store: &Memory, space: &Subspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(space.range(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// The pattern. All items are in container 1.
pub struct Pattern {
    pub index: PropertyIndex<u8, u8, u8>,
    pub space: Subspace,
}

impl Pattern {
    /// With a width of 1, nearly every update opens a level.
    pub fn new(bucket_width: usize) -> Self {
        let space = Subspace::new("property");
        Self { index: PropertyIndex::new(&space).bucket_width(bucket_width), space }
    }
}

impl Subject for Pattern {
    fn set(&self, store: &PerKey, stamps: &mut Stamps, item: u8, value: Option<u8>) -> Result<()> {
        match value {
            Some(value) => self.index.set(store, stamps, &1, &item, &value),
            None => self.index.remove(store, stamps, &1, &item),
        }
    }

    fn find(&self, store: &PerKey, value: u8) -> Result<BTreeSet<u8>> {
        let snapshot = store.snapshot()?;
        self.index.items_with(&snapshot, &1, value)?.map(|found| Ok(found?.1)).collect()
    }

    fn current(&self, store: &Memory) -> BTreeMap<u8, u8> {
        let mut newest: BTreeMap<u8, Option<u8>> = BTreeMap::new();
        let space = self.space.child(&0);
        // Key order is the order of the stamps, so later values overwrite earlier ones.
        for (key, value) in entries(store, &space) {
            let (_, item, _, _): (u8, u8, u64, u64) = space.unpack(&key).unwrap();
            if value[0] & 0x0F == 1 {
                let number = (value.len() > 2).then(|| unpack::<u8>(&value[2..]).unwrap());
                newest.insert(item, number);
            }
        }
        newest.into_iter().filter_map(|(item, value)| Some((item, value?))).collect()
    }

    fn left_over(&self, store: &Memory) -> usize {
        let needed = self.current(store).len();
        let updates = entries(store, &self.space.child(&0)).len();
        let entries = entries(store, &self.space.child(&1)).len();
        updates - needed + entries - needed
    }

    fn faults(&self, store: &PerKey) -> usize {
        self.index.check(&store.snapshot().unwrap()).unwrap().len()
    }

    fn settle(&self, store: &PerKey, stamps: &Stamps) {
        let options = RepairOptions { batch: 3, resume: None };
        let done = self.index.repair_with(store, stamps, &options, |_| ControlFlow::Continue(()));
        assert!(done.unwrap().finished);
        assert_eq!(self.index.check(&store.snapshot().unwrap()).unwrap(), []);
    }
}

/// The negative control. A record holds the value of an item, and an entry is a value and an item.
/// An update removes the entry of the value that it has read.
pub struct Careless(pub Subspace);

impl Careless {
    fn item(&self, item: u8) -> keyloom::KeyBuf {
        self.0.pack(&("item", item))
    }

    fn entry(&self, value: u8, item: u8) -> keyloom::KeyBuf {
        self.0.pack(&("index", value, item))
    }

    fn value(&self, reader: &impl Reader, item: u8) -> Result<Option<u8>> {
        Ok(reader.get(&self.item(item))?.map(|value| value[0]))
    }
}

impl Subject for Careless {
    fn set(&self, store: &PerKey, _: &mut Stamps, item: u8, value: Option<u8>) -> Result<()> {
        let old = self.value(&store.snapshot()?, item)?;
        if old == value {
            return Ok(());
        }
        let key = self.item(item);
        match value {
            Some(value) => {
                store.transact(|txn| txn.put(&self.entry(value, item), b""))?;
                store.transact(|txn| txn.put(&key, &[value]))?;
            }
            None => store.transact(|txn| txn.delete(&key))?,
        }
        match old {
            Some(old) => store.transact(|txn| txn.delete(&self.entry(old, item))),
            None => Ok(()),
        }
    }

    fn find(&self, store: &PerKey, value: u8) -> Result<BTreeSet<u8>> {
        let snapshot = store.snapshot()?;
        let mut found = BTreeSet::new();
        for entry in snapshot.range(self.0.range_of(&("index", value)), Order::Ascending)? {
            let (_, _, item): (String, u8, u8) = self.0.unpack(&entry?.0)?;
            if self.value(&snapshot, item)? == Some(value) {
                found.insert(item);
            }
        }
        Ok(found)
    }

    fn current(&self, store: &Memory) -> BTreeMap<u8, u8> {
        let items = entries(store, &self.0.child("item"));
        let item = |(key, value): &(Vec<u8>, Vec<u8>)| {
            (self.0.child("item").unpack::<u8>(key).unwrap(), value[0])
        };
        items.iter().map(item).collect()
    }

    fn left_over(&self, store: &Memory) -> usize {
        let needed = self.current(store).len();
        entries(store, &self.0.child("index")).len().abs_diff(needed)
    }

    fn faults(&self, _: &PerKey) -> usize {
        0
    }

    fn settle(&self, _: &PerKey, _: &Stamps) {}
}

#[test]
fn both_do_what_they_should_while_nothing_races() {
    let subjects: [&dyn Subject; 2] = [&Pattern::new(1), &Careless(Subspace::new("careless"))];
    for subject in subjects {
        let store = PerKey::new();
        let mut stamps = Stamps::with_clock(1, || 5);
        let changes =
            [(1, Some(7)), (2, Some(7)), (1, Some(8)), (1, Some(7)), (2, None), (3, Some(9))];
        for (item, value) in changes {
            subject.set(&store, &mut stamps, item, value).unwrap();
        }
        assert_eq!(subject.current(&store.inner), BTreeMap::from([(1, 7), (3, 9)]));
        assert_eq!(subject.find(&store, 7).unwrap(), BTreeSet::from([1]));
        assert!(store.inner.snapshot().unwrap().count(KeyRange::all()).unwrap() > 0);
    }
}
