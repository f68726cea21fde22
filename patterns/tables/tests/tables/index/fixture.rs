//! The table and the indexes of the tests of laws.

use std::collections::BTreeMap;

use keyloom::key::Subspace;
use keyloom::{Desc, Store};
use keyloom_tables::{AnyParts, Inconsistency, Index, IndexEntries, Maintained, Table, entry};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use keyloom_testing::ids::{TEXTS, number};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct City {
    pub country: String,
    pub name: String,
    pub population: u64,
    pub tags: Vec<String>,
}

/// A table with three kinds of index: plain, descending and partial, multi-valued.
#[derive(Clone)]
pub struct Cities {
    pub table: Table<u16, City>,
    pub by_name: Index<u16, City, (String, String)>,
    pub by_size: Index<u16, City, (String, Desc<u64>)>,
    pub by_tag: Index<u16, City, String>,
    pub space: Subspace,
}

impl Cities {
    pub fn new() -> Self {
        Self::at(&Subspace::new("test"))
    }

    pub fn at(space: &Subspace) -> Self {
        let by_name =
            Index::new(&space.child("by_name"), |_, c: &City| entry((&c.country, &c.name)));
        let by_size = Index::new(&space.child("by_size"), |_, c: &City| match c.population {
            0 => IndexEntries::none(),
            some => entry((&c.country, Desc(some))),
        });
        let by_tag = Index::new(&space.child("by_tag"), |_, c: &City| c.tags.iter().collect());
        let table = Table::new(&space.child("cities")).with(&by_name).with(&by_size).with(&by_tag);
        Self { table, by_name, by_size, by_tag, space: space.clone() }
    }

    pub fn indexes(&self) -> [Index<u16, City, AnyParts>; 3] {
        [self.by_name.untyped(), self.by_size.untyped(), self.by_tag.untyped()]
    }

    pub fn faults(&self, store: &impl Store) -> Vec<Inconsistency> {
        let snapshot = store.snapshot().unwrap();
        let check =
            |index: &Index<u16, City, AnyParts>| index.check(&snapshot, &self.table).unwrap();
        self.indexes().iter().flat_map(check).collect()
    }
}

pub fn city() -> impl Strategy<Value = City> {
    let name = prop::sample::select([&TEXTS[..], &["San José"]].concat());
    let tags = prop::collection::vec(prop::sample::select(vec!["", "x", "x\0", "xx"]), 0..4);
    (prop::sample::select(vec!["FR", "FR\0", "US"]), name, 0..4u64, tags).prop_map(
        |(country, name, population, tags)| City {
            country: country.into(),
            name: name.into(),
            population,
            tags: tags.into_iter().map(String::from).collect(),
        },
    )
}

/// Transactions of puts (`Some`) and deletes (`None`).
pub fn history() -> impl Strategy<Value = Vec<Vec<(u16, Option<City>)>>> {
    let id = (0..12u64).prop_map(|n| number(n) as u16);
    let step = (id, prop::option::weighted(0.7, city()));
    prop::collection::vec(prop::collection::vec(step, 1..6), 1..20)
}

pub fn apply(
    cities: &Cities,
    store: &impl Store,
    history: Vec<Vec<(u16, Option<City>)>>,
) -> BTreeMap<u16, City> {
    let mut oracle = BTreeMap::new();
    for steps in history {
        store
            .transact(|txn| {
                for (id, city) in &steps {
                    match city {
                        Some(city) => cities.table.put(txn, id, city)?,
                        None => drop(cities.table.delete(txn, id)?),
                    }
                }
                Ok(())
            })
            .unwrap();
        for (id, city) in steps {
            match city {
                Some(city) => oracle.insert(id, city),
                None => oracle.remove(&id),
            };
        }
    }
    oracle
}

pub fn sample(id: u16) -> City {
    City {
        country: if id.is_multiple_of(2) { "FR" } else { "US" }.into(),
        name: format!("city {id}"),
        population: u64::from(id),
        tags: vec!["x".into()],
    }
}

pub fn fill(cities: &Cities, store: &impl Store, ids: impl IntoIterator<Item = u16>) {
    let ids: Vec<u16> = ids.into_iter().collect();
    store
        .transact(|txn| ids.iter().try_for_each(|id| cities.table.put(txn, id, &sample(*id))))
        .unwrap();
}
