//! Users with properties and visited sites.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::ControlFlow;

use keyloom::key::Subspace;
use keyloom::{DynWriter, KeyRange, Reader, Result, Store, Writer};
use keyloom_bitmaps::{BitmapExpr, InvertedIndex, one};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::table::RecordKey;
use keyloom_tables::{Inconsistency, Maintained, Table};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::{Dump, dump};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub city: Option<String>,
    pub sites: Vec<String>,
    pub is_member: bool,
    pub cents: Option<i64>,
    /// A field that is not indexed.
    pub visits: u8,
}

/// A table and its index.
#[derive(Clone)]
pub struct Audience<K: RecordKey> {
    pub table: Table<K, User>,
    pub index: InvertedIndex<K, User>,
}

pub const FIELDS: [&str; 3] = ["city", "member", "site"];

fn declare<K: RecordKey>(index: InvertedIndex<K, User>) -> Audience<K> {
    let index = index
        .field("city", |_, user: &User| one(user.city.as_ref()))
        .field("site", |_, user| user.sites.iter().collect())
        .integers("cents", |_, user| user.cents)
        .field("member", |_, user| one(user.is_member));
    let table = Table::new(&Subspace::new("users")).with(&index);
    Audience { table, index }
}

/// Records with assigned ids.
pub fn audience() -> Audience<String> {
    declare(InvertedIndex::new(&Subspace::new("index")))
}

/// Records whose keys are ids.
pub fn by_number() -> Audience<u32> {
    declare(InvertedIndex::with_keys_as_ids(&Subspace::new("index")))
}

impl<K: RecordKey + Ord + Clone + Debug> Audience<K> {
    pub fn bare(&self) -> Table<K, User> {
        Table::new(self.table.space())
    }

    pub fn faults<S: Store>(&self, store: &S) -> Vec<Inconsistency> {
        self.index.check(&store.snapshot().unwrap(), &self.table).unwrap()
    }

    pub fn repair(&self, store: &impl Store, batch: usize) {
        let options = RepairOptions { batch, resume: None };
        let done =
            self.index.repair_with(store, &self.table, &options, |_| ControlFlow::Continue(()));
        assert!(done.unwrap().finished);
    }

    /// The stored entries of the index, except counters of 0.
    pub fn stored(&self, store: &impl Store) -> Dump {
        let mut all = dump(&store.snapshot().unwrap(), self.index.space().range());
        let counters = self.index.space().child("containers");
        all.retain(|key, value| !counters.contains(key) || value[..] != [0; 8]);
        all
    }

    pub fn records(&self, reader: &impl Reader) -> BTreeMap<K, User> {
        let records = self.table.range(reader, ..).unwrap();
        records.collect::<Result<_>>().unwrap()
    }

    /// The keys of the records that an expression finds.
    pub fn found(&self, reader: &impl Reader, expr: &BitmapExpr) -> BTreeSet<K> {
        let ids = expr.ids(reader, ..).unwrap();
        let ids = ids.collect::<Result<Vec<u64>>>().unwrap();
        let keys = self.index.keys(reader, ids).unwrap();
        keys.into_iter().map(Option::unwrap).collect()
    }
}

pub fn clear_index<K: RecordKey>(of: &Audience<K>, store: &impl Store, part: KeyRange<'_>) {
    let range = of.index.space().range().intersect(part).into_owned();
    store.transact(|txn| txn.delete_range(range.clone())).unwrap();
}

pub fn user() -> impl Strategy<Value = User> {
    let name = || prop::sample::select(&TEXTS[..]).prop_map(String::from);
    let city = prop::option::of(name());
    let sites = prop::collection::vec(name(), 0..4);
    let cents =
        prop::option::of(prop_oneof![-3..9_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()]);
    (city, sites, any::<bool>(), cents, 0..3_u8).prop_map(
        |(city, sites, is_member, cents, visits)| User { city, sites, is_member, cents, visits },
    )
}

#[derive(Clone, Debug)]
pub enum Step<K> {
    Put(K, User),
    Delete(K),
    PutMany(Vec<(K, User)>),
    DeleteMany(Vec<K>),
}

/// A list of transactions, each a list of steps.
pub fn history<K: Clone + Debug + 'static>(
    key: impl Strategy<Value = K> + Clone + 'static,
) -> impl Strategy<Value = Vec<Vec<Step<K>>>> {
    let many = prop::collection::vec((key.clone(), user()), 0..6);
    let step = prop_oneof![
        4 => (key.clone(), user()).prop_map(|(key, user)| Step::Put(key, user)),
        3 => key.clone().prop_map(Step::Delete),
        2 => many.prop_map(Step::PutMany),
        1 => prop::collection::vec(key, 0..6).prop_map(Step::DeleteMany),
    ];
    prop::collection::vec(prop::collection::vec(step, 1..4), 1..10)
}

pub fn perform<K: RecordKey>(
    of: &Audience<K>,
    txn: &mut DynWriter<'_>,
    step: &Step<K>,
) -> Result<()> {
    match step {
        Step::Put(key, user) => of.table.put(txn, key, user),
        Step::Delete(key) => of.table.delete(txn, key).map(drop),
        Step::PutMany(users) => of.table.put_many(txn, users),
        Step::DeleteMany(keys) => of.table.delete_many(txn, keys).map(drop),
    }
}

pub fn imitate<K: Ord + Clone>(step: &Step<K>, model: &mut BTreeMap<K, User>) {
    match step {
        Step::Put(key, user) => drop(model.insert(key.clone(), user.clone())),
        Step::Delete(key) => drop(model.remove(key)),
        Step::PutMany(users) => model.extend(users.iter().cloned()),
        Step::DeleteMany(keys) => keys.iter().for_each(|key| drop(model.remove(key))),
    }
}

/// A user that differs from its neighbours.
pub fn sample(n: u32) -> User {
    let spread = n.wrapping_mul(0x9E37_79B9) >> 8;
    User {
        city: (!n.is_multiple_of(5)).then(|| format!("city {}", spread % 7)),
        sites: (0..n % 3).map(|m| format!("site {}", (spread + m) % 11)).collect(),
        is_member: spread.is_multiple_of(2),
        cents: (n % 4 != 1).then(|| i64::from(spread % 2_000) - 500),
        visits: 0,
    }
}

pub fn name(n: u32) -> String {
    format!("user {n:05}")
}
