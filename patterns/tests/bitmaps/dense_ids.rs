//! Dense ids, compared with a map and a set of free ids.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::key::Subspace;
use keyloom::{DynWriter, Metered, Result, Store, Writer};
use keyloom_bitmaps::{Bitmap, DenseIds, InvertedIndexError};
use proptest::prelude::*;

use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::{clear, counts, dump_all, property, refused, waits, writing};
use keyloom_testing::waits_for_the_version;
use keyloom_testing::{laws, on_every_store_and_foundationdb};

on_every_store_and_foundationdb! {
    ids_are_those_of_a_map_and_a_set_of_free_ones,
    operations_cost_what_the_documentation_says,
    a_fault_at_any_operation_leaves_nothing_half_done,
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    bad_input_is_refused_and_nothing_is_written,
    a_universe_that_was_made_smaller_only_refuses_ids_beyond_it,
}

fn ids() -> DenseIds<String> {
    DenseIds::new(&Subspace::new("ids"))
}

/// The oracle.
#[derive(Default)]
struct Model {
    ids: BTreeMap<String, u64>,
    free: BTreeSet<u64>,
    next: u64,
}

impl Model {
    fn assign(&mut self, key: &str) -> u64 {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        let id = self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.ids.insert(key.into(), id);
        id
    }

    fn release(&mut self, key: &str) -> Option<u64> {
        let id = self.ids.remove(key)?;
        self.free.insert(id);
        Some(id)
    }
}

fn keys() -> impl Strategy<Value = Vec<String>> {
    let key = prop::sample::select(&TEXTS[..]);
    prop::collection::vec(key.prop_map(String::from), 0..6)
}

pub fn ids_are_those_of_a_map_and_a_set_of_free_ones(store: &(impl Store + Clone)) {
    let ids = ids();
    let history = prop::collection::vec((any::<bool>(), keys()), 0..12);
    property(history, |history| {
        clear(store);
        let mut model = Model::default();
        for (assigns, keys) in &history {
            if *assigns {
                let given = store.transact(|txn| ids.assign(txn, keys)).unwrap();
                assert_eq!(given, keys.iter().map(|key| model.assign(key)).collect::<Vec<_>>());
            } else {
                let taken = store.transact(|txn| ids.release(txn, keys)).unwrap();
                let first = |n: usize| !keys[..n].contains(&keys[n]);
                let each: Vec<_> = (0..keys.len())
                    .map(|n| {
                        model.release(&keys[n]).or_else(|| match first(n) {
                            true => None,
                            false => taken[keys.iter().position(|key| *key == keys[n]).unwrap()],
                        })
                    })
                    .collect();
                assert_eq!(taken, each);
            }
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(ids.len(&snapshot).unwrap(), model.ids.len() as u64);
        assert_eq!(ids.is_empty(&snapshot).unwrap(), model.ids.is_empty());
        let of_all = ids.of_many(&snapshot, model.ids.keys()).unwrap();
        assert_eq!(of_all, model.ids.values().map(|id| Some(*id)).collect::<Vec<_>>());
        let holders: BTreeMap<u64, &String> =
            model.ids.iter().map(|(key, id)| (*id, key)).collect();
        for id in 0..model.next + 2 {
            let holder = holders.get(&id).map(|key| (*key).clone());
            assert_eq!(ids.key_of(&snapshot, id).unwrap(), holder);
        }
        assert_eq!(ids.of(&snapshot, &"never".into()).unwrap(), None);
        let free = Bitmap::new(&ids.space().child("free"));
        let free = free.ids(&snapshot, ..).unwrap();
        assert_eq!(free.collect::<Result<BTreeSet<u64>>>().unwrap(), model.free);
    });
}

fn names(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("key {n}")).collect()
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let (ids, metered) = (ids(), Metered::new(store.clone()));
    let assign = |keys: &[String]| {
        let keys = keys.to_vec();
        let ids = ids.clone();
        move |txn: &mut DynWriter<'_>| ids.assign(txn, &keys).map(drop)
    };
    // Gets, ranges, keys read, keys written.
    assert_eq!(writing(&metered, assign(&names(0..10))), [11, 0, 0, 21]);
    assert_eq!(waits(&metered, assign(&names(0..10))), 2, "one look, and the commit");
    assert_eq!(writing(&metered, assign(&names(5..12))), [8, 0, 6, 5], "two of them are new");
    let release = names(3..6);
    let cost = writing(&metered, |txn| ids.release(txn, &release).map(drop));
    assert_eq!(cost, [4 + 1, 0, 4, 8], "the chunk of free ids, and how many there are");
    // Free ids are read and removed from their chunk; no new ids are allocated.
    let (_, cost) = metered.measure(|s| s.transact(|txn| ids.assign(txn, &names(20..22))).unwrap());
    assert_eq!(counts(cost), [3 + 1, 1, 1 + 1 + 1, 4 + 1 + 1]);
    assert!(cost.round_trips <= 4 + waits_for_the_version(store), "{cost}");
    let snapshot = metered.snapshot().unwrap();
    let (_, cost) = metered.measure(|_| ids.keys_of(&snapshot, 0..7).unwrap());
    assert_eq!((counts(cost), cost.round_trips), ([7, 0, 6, 0], cost.round_trips));
    let (_, cost) = metered.measure(|_| ids.of(&snapshot, &"key 1".into()).unwrap());
    assert_eq!(counts(cost), [1, 0, 1, 0]);
    let (_, cost) = metered.measure(|_| ids.len(&snapshot).unwrap());
    assert_eq!(counts(cost), [1, 0, 1, 0]);
}

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let ids = ids();
    ids.release(txn, &names(1..3))?;
    ids.assign(txn, &names(7..11)).map(drop)
}

fn prepare<S: Store>(store: &S) {
    store.transact(|txn| ids().assign(txn, &names(0..5))).unwrap();
}

/// The differences between the two directions.
fn disagreements<S: Store>(store: &S) -> Vec<String> {
    let (ids, snapshot) = (ids(), store.snapshot().unwrap());
    let all: Vec<Option<String>> = ids.keys_of(&snapshot, 0..20).unwrap();
    let of = |(id, key): (u64, &Option<String>)| {
        let key = key.as_ref()?;
        let back = ids.of(&snapshot, key).unwrap();
        (back != Some(id)).then(|| format!("{key} has {back:?} and not {id}"))
    };
    let mut wrong: Vec<String> = (0..).zip(&all).filter_map(of).collect();
    if ids.len(&snapshot).unwrap() != all.iter().flatten().count() as u64 {
        wrong.push("the number of ids".into());
    }
    wrong
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    laws::faults_leave_nothing_half_done(store, prepare, change, disagreements);
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    laws::conflicts_are_retried_to_the_same_end(store, prepare, change);
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    let few = ids().within_universe(3);
    store.transact(|txn| few.assign(txn, &names(0..2))).unwrap();
    let error = refused(store, |txn| few.assign(txn, &names(2..4)).map(drop));
    let says = r#"the ids ("ids",) are used up: the universe has 3; enlarge it, or delete records"#;
    assert_eq!(error.to_string(), says);
    let wanted = InvertedIndexError::NoIdLeft { ids: r#"("ids",)"#.into(), universe: 3 };
    assert_eq!(error.downcast_ref(), Some(&wanted));
    store.transact(|txn| few.release(txn, &names(0..1))).unwrap();
    assert_eq!(store.transact(|txn| few.assign(txn, &names(2..4))).unwrap(), [0, 2]);

    let error = refused(store, |txn| ids().assign(txn, [&"k".repeat(600)]).map(drop));
    assert!(error.to_string().contains("the limit is 511"), "{error}");

    // Each wrong entry is reported by its key.
    let ids = ids();
    for (key, read) in [
        (ids.space().pack(&("id", "key 1")), "of"),
        (ids.space().pack(&("key", 1)), "key_of"),
        (ids.space().pack("next"), "len"),
    ] {
        let before = dump_all(store);
        store.transact(|txn| txn.put(&key, b"\xF0junk")).unwrap();
        let snapshot = store.snapshot().unwrap();
        let error = match read {
            "of" => ids.of(&snapshot, &"key 1".into()).unwrap_err(),
            "key_of" => ids.key_of(&snapshot, 1).unwrap_err(),
            _ => ids.len(&snapshot).unwrap_err(),
        };
        drop(snapshot);
        assert!(error.to_string().starts_with(r#"at key ("ids", "#), "{error}");
        let value = before.get(&key[..]).unwrap();
        store.transact(|txn| txn.put(&key, value)).unwrap();
    }
}

pub fn a_universe_that_was_made_smaller_only_refuses_ids_beyond_it(store: &(impl Store + Clone)) {
    clear(store);
    let few = ids().within_universe(3);
    store.transact(|txn| ids().assign(txn, &names(0..6))).unwrap();
    // A key with an id beyond the universe keeps the id until it is released.
    assert_eq!(store.transact(|txn| few.assign(txn, &names(5..6))).unwrap(), [5]);
    let gone = store.transact(|txn| few.release(txn, &names(4..6))).unwrap();
    assert_eq!(gone, [Some(4), Some(5)]);
    // Ids 4 and 5 are free but outside the universe, so they are not assigned.
    let error = refused(store, |txn| few.assign(txn, &names(7..8)).map(drop));
    assert!(matches!(error.downcast_ref(), Some(InvertedIndexError::NoIdLeft { universe: 3, .. })));
    store.transact(|txn| few.release(txn, &names(1..2))).unwrap();
    assert_eq!(store.transact(|txn| few.assign(txn, &names(7..8))).unwrap(), [1]);
    refused(store, |txn| few.assign(txn, &names(8..9)).map(drop));
    assert_eq!(store.transact(|txn| ids().assign(txn, &names(8..11))).unwrap(), [4, 5, 6]);
}
