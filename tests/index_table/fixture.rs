//! People, and an index of every kind.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Desc, KeyRange, Order, Reader, Store, Subspace, Writer};
use keyloom_patterns::general::index_table::{BuildOptions, BuildProgress};
use keyloom_patterns::{Index, IndexCatalog, IndexEntries, Table, entry};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Person {
    pub name: String,
    pub city: String,
    pub age: u8,
    pub email: Option<String>,
    pub tags: Vec<String>,
}

pub type Oracle = BTreeMap<u16, Person>;

/// A table, and indexes that are covering and descending, unique and partial, multi-valued, deferred.
#[derive(Clone)]
pub struct People {
    pub space: Subspace,
    pub table: Table<u16, Person>,
    /// The same table with nothing attached.
    pub bare: Table<u16, Person>,
    pub catalog: IndexCatalog<u16, Person>,
    pub by_city: Index<u16, Person>,
    pub by_email: Index<u16, Person>,
    pub by_tag: Index<u16, Person>,
    pub by_age: Index<u16, Person>,
}

pub const NAMES: [&str; 4] = ["by_age", "by_city", "by_email", "by_tag"];

impl People {
    pub fn new() -> Self {
        let space = Subspace::new("people");
        let by_city = Index::new(&space.child("by_city"), |_, p: &Person| {
            entry((&p.city, Desc(p.age))).covering((&p.name, p.tags.len()))
        });
        let by_email = Index::new(&space.child("by_email"), |_, p: &Person| match &p.email {
            Some(email) => entry(email).covering(&p.name),
            None => IndexEntries::none(),
        });
        let by_email = by_email.unique();
        let by_tag = Index::new(&space.child("by_tag"), |_, p: &Person| {
            p.tags.iter().map(|tag| entry(tag).covering(tag.len() + usize::from(p.age))).collect()
        });
        let by_age = Index::new(&space.child("by_age"), |_, p: &Person| match p.age {
            0 => IndexEntries::none(),
            age => entry(age).covering(&p.city),
        });
        let catalog = IndexCatalog::new(&space.child("indexes"))
            .with("by_city", 1, &by_city)
            .with("by_email", 1, &by_email)
            .with("by_tag", 1, &by_tag)
            .with_deferred("by_age", 1, &by_age);
        let bare = Table::new(&space.child("records"));
        let table = bare.clone().with(&catalog);
        Self { space, table, bare, catalog, by_city, by_email, by_tag, by_age }
    }

    pub fn indexes(&self) -> [(&'static str, &Index<u16, Person>); 4] {
        [
            ("by_age", &self.by_age),
            ("by_city", &self.by_city),
            ("by_email", &self.by_email),
            ("by_tag", &self.by_tag),
        ]
    }

    /// With an empty store and all indexes readable.
    pub fn opened(store: &impl Store) -> Self {
        let people = Self::new();
        clear(store);
        store.transact(|txn| people.catalog.open(txn, &people.table)).unwrap();
        people
    }

    pub fn build(&self, store: &impl Store, name: &str, batch: usize) -> BuildProgress {
        let options = BuildOptions { batch, ..BuildOptions::default() };
        self.catalog.build(store, &self.table, name, &options, going_on).unwrap()
    }

    pub fn drain(&self, store: &impl Store) {
        self.catalog.drain(store, &self.table, "by_age", 5, going_on).unwrap();
        assert_eq!(self.catalog.pending(&store.snapshot().unwrap(), "by_age").unwrap(), 0);
    }

    /// What `check` says about each index, all of which must be readable.
    #[track_caller]
    pub fn is_clean(&self, store: &impl Store) {
        let snapshot = store.snapshot().unwrap();
        for name in NAMES {
            assert_eq!(self.catalog.check(&snapshot, &self.table, name).unwrap(), [], "{name}");
        }
    }

    /// All entries of all indexes.
    pub fn entries(&self, store: &impl Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let snapshot = store.snapshot().unwrap();
        let spaces = NAMES.map(|name| self.space.child(name));
        spaces.iter().flat_map(|space| dump(&snapshot, space.self_and_children())).collect()
    }
}

pub fn going_on<T>(_: &T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub fn clear(store: &impl Store) {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

pub fn dump(reader: &impl Reader, range: KeyRange<'_>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = reader.range(range, Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

pub fn dump_all(store: &impl Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    dump(&store.snapshot().unwrap(), KeyRange::all())
}

pub fn person() -> impl Strategy<Value = Person> {
    let some = |of: &'static [&'static str]| prop::sample::select(of).prop_map(String::from);
    let email = prop::option::of(some(&["", "a", "a\0", "b", "c", "d", "e", "f"]));
    let tags = prop::collection::vec(some(&["x", "y", "z"]), 0..4);
    (some(&["n", "m\0"]), some(&["Oslo", "Rome", ""]), 0..3u8, email, tags)
        .prop_map(|(name, city, age, email, tags)| Person { name, city, age, email, tags })
}

/// A put (`Some`) or a delete of one record.
pub type Change = (u16, Option<Person>);

pub fn change() -> impl Strategy<Value = Change> {
    (0..10u16, prop::option::weighted(0.75, person()))
}

pub fn history() -> impl Strategy<Value = Vec<Vec<Change>>> {
    prop::collection::vec(prop::collection::vec(change(), 1..4), 1..16)
}

/// The changes as they leave the records, or `None` when one of them takes what another record has.
pub fn imitate(oracle: &Oracle, changes: &[Change]) -> Option<Oracle> {
    let mut after = oracle.clone();
    for (id, person) in changes {
        match person {
            Some(person) if holder(&after, *id, person).is_some() => return None,
            Some(person) => drop(after.insert(*id, person.clone())),
            None => drop(after.remove(id)),
        }
    }
    Some(after)
}

/// The other record that has the e-mail address of this one.
pub fn holder(oracle: &Oracle, id: u16, person: &Person) -> Option<u16> {
    let email = person.email.as_ref()?;
    oracle
        .iter()
        .find(|(other, p)| **other != id && p.email.as_ref() == Some(email))
        .map(|(o, _)| *o)
}

pub fn make(
    table: &Table<u16, Person>,
    txn: &mut impl Writer,
    changes: &[Change],
) -> keyloom::Result<()> {
    changes.iter().try_for_each(|(id, person)| match person {
        Some(person) => table.put(txn, id, person),
        None => table.delete(txn, id).map(drop),
    })
}

/// Applies a history to an open store; changes that break uniqueness must be refused.
pub fn apply(people: &People, store: &impl Store, history: &[Vec<Change>]) -> Oracle {
    let mut oracle = Oracle::new();
    for changes in history {
        let outcome = store.transact(|txn| make(&people.table, txn, changes));
        match imitate(&oracle, changes) {
            Some(after) => {
                outcome.unwrap();
                oracle = after;
            }
            None => is_not_unique(&outcome.unwrap_err()),
        }
    }
    oracle
}

#[track_caller]
pub fn is_not_unique(error: &keyloom::Error) {
    let error: Option<&keyloom_patterns::IndexError> = error.downcast_ref();
    assert!(matches!(error, Some(keyloom_patterns::IndexError::NotUnique(_))), "{error:?}");
}

/// Runs a property with some cases, or as many as the environment asks for.
pub fn property<T: std::fmt::Debug>(
    cases: u32,
    strategy: impl Strategy<Value = T>,
    law: impl Fn(T),
) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases = if config.cases == 256 { cases } else { config.cases };
    let mut runner = TestRunner::new(ProptestConfig { cases, ..config });
    runner
        .run(&strategy, |case| {
            law(case);
            Ok(())
        })
        .unwrap();
}

pub fn sample(id: u16) -> Person {
    Person {
        name: format!("person {id}"),
        city: if id.is_multiple_of(2) { "Oslo" } else { "Rome" }.into(),
        age: (id % 90) as u8 + 1,
        email: Some(format!("{id}@example.org")),
        tags: vec!["x".into(), format!("t{}", id % 3)],
    }
}

pub fn samples(ids: impl IntoIterator<Item = u16>) -> Vec<(u16, Person)> {
    ids.into_iter().map(|id| (id, sample(id))).collect()
}
