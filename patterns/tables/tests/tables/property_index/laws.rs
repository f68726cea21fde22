//! The laws on every store, with sequential updates.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use keyloom::{Cost, KeyRange, Metered, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::property_index::{PropertyIndex, Stamps};
use keyloom_tables::{Inconsistency, Rule};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

pub type Towns = PropertyIndex<(String, u8), String, String>;

pub fn towns() -> Towns {
    PropertyIndex::new(&Subspace::new("towns"))
}

pub fn container(n: u8) -> (String, u8) {
    ("org".to_owned(), n)
}

pub fn clear(store: &impl Store) {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

pub fn keys(store: &impl Store) -> u64 {
    store.snapshot().unwrap().count(KeyRange::all()).unwrap()
}

fn sorted(found: impl Iterator<Item = Result<(String, String)>>) -> Vec<(String, String)> {
    let mut found = found.collect::<Result<Vec<_>>>().unwrap();
    found.sort();
    found
}

pub fn every_query_finds_what_a_map_holds(store: &(impl Store + Clone)) {
    let item = prop::sample::select(vec!["", "a", "a\0", "b"]).prop_map(String::from);
    let value = prop::sample::select(vec!["", "Lyon", "Lyon\0", "Paris"]).prop_map(String::from);
    let change = (1..3u8, item, prop::option::weighted(0.8, value));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) };
    TestRunner::new(config)
        .run(&(prop::collection::vec(change, 1..25), 1..20usize), |(changes, width)| {
            clear(store);
            let index = towns().bucket_width(width);
            let mut stamps = Stamps::new(1);
            let mut model: BTreeMap<(u8, String), String> = BTreeMap::new();
            for (of, item, value) in changes {
                match value {
                    Some(value) => {
                        index.set(store, &mut stamps, &container(of), &item, &value).unwrap();
                        model.insert((of, item), value);
                    }
                    None => {
                        index.remove(store, &mut stamps, &container(of), &item).unwrap();
                        model.remove(&(of, item));
                    }
                }
            }
            let snapshot = store.snapshot().unwrap();
            for of in [1, 2] {
                let items = |holds: &dyn Fn(&String) -> bool| {
                    let found = model.iter().filter(|((c, _), value)| *c == of && holds(value));
                    let mut found: Vec<_> =
                        found.map(|((_, item), value)| (value.clone(), item.clone())).collect();
                    found.sort();
                    found
                };
                for value in ["", "Lyon", "Lyon\0", "Paris", "Rome"] {
                    let found = index.items_with(&snapshot, &container(of), value.into()).unwrap();
                    assert_eq!(sorted(found), items(&|v| v == value));
                }
                let behind = (Bound::Excluded("Lyon".to_owned()), Bound::Unbounded);
                let found = index.items_within(&snapshot, &container(of), behind).unwrap();
                assert_eq!(sorted(found), items(&|v| v.as_str() > "Lyon"));
                let before = .."Lyon\0".to_owned();
                let found = index.items_within(&snapshot, &container(of), before).unwrap();
                assert_eq!(sorted(found), items(&|v| v.as_str() < "Lyon\0"));
                let all = index.items(&snapshot, &container(of)).unwrap();
                let all: Vec<_> = all.map(|item| item.map(|(i, v)| (v, i))).collect();
                assert_eq!(sorted(all.into_iter()), items(&|_| true));
            }
            for item in ["", "a", "a\0", "b"] {
                let value = index.value(&snapshot, &container(1), &item.into()).unwrap();
                assert_eq!(value.as_ref(), model.get(&(1, item.into())));
            }
            assert_eq!(index.check(&snapshot).unwrap(), []);
            Ok(())
        })
        .unwrap();
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    // With buckets of this width, about one update in a thousand billion counts the entries.
    let index = towns().bucket_width(1 << 43);
    let metered = Metered::new(store.clone());
    let mut stamps = Stamps::with_clock(1, || 1_000);
    let counts =
        |cost: Cost| (cost.gets, cost.ranges, cost.keys_read, cost.keys_written, cost.commits);
    let cost_is = |cost: Cost, round_trips: u64, expected: (u64, u64, u64, u64, u64)| {
        assert_eq!(counts(cost), expected);
        if store.round_trips().is_none() {
            assert_eq!(cost.round_trips, round_trips);
        }
    };
    let (of, item) = (container(1), "a".to_owned());
    let mut set = |value: Option<&str>| {
        let (done, cost) = metered.measure(|store| match value {
            Some(value) => index.set(store, &mut stamps, &of, &item, &value.into()),
            None => index.remove(store, &mut stamps, &of, &item),
        });
        done.unwrap();
        cost
    };
    cost_is(set(None), 1, (0, 1, 0, 0, 0));
    cost_is(set(Some("Paris")), 5, (0, 2, 0, 3, 3));
    cost_is(set(Some("Paris")), 1, (0, 1, 1, 0, 0));
    cost_is(set(Some("Lyon")), 7, (0, 2, 1, 5, 5));
    cost_is(set(None), 6, (0, 2, 1, 4, 4));
    // A removed value has no entry to delete.
    cost_is(set(Some("Rome")), 6, (0, 2, 1, 4, 4));

    let snapshot = metered.snapshot().unwrap();
    let (value, cost) = metered.measure(|_| index.value(&snapshot, &of, &item).unwrap());
    assert_eq!(value.as_deref(), Some("Rome"));
    cost_is(cost, 1, (0, 1, 1, 0, 0));
    // The level is read twice, then one bucket and one value.
    let (found, cost) =
        metered.measure(|_| index.items_with(&snapshot, &of, "Rome".into()).unwrap().count());
    assert_eq!(found, 1);
    cost_is(cost, 4, (0, 4, 2, 0, 0));
    let (found, cost) = metered.measure(|_| index.items(&snapshot, &of).unwrap().count());
    assert_eq!(found, 1);
    cost_is(cost, 2, (0, 2, 2, 0, 0));
    let (found, cost) = metered.measure(|_| index.check(&snapshot).unwrap());
    assert_eq!(found, []);
    cost_is(cost, 5, (2, 3, 5, 0, 0));
    drop(snapshot);
    let stamps = Stamps::with_clock(1, || 1_000);
    let (_, cost) = metered.measure(|store| index.sweep(store, &stamps, &of, &item).unwrap());
    cost_is(cost, 1, (0, 1, 1, 0, 0));
}

pub fn buckets_that_become_too_wide_are_split(store: &(impl Store + Clone)) {
    clear(store);
    let space = Subspace::new("wide");
    let index = PropertyIndex::<u8, u16, u8>::new(&space).bucket_width(32);
    let mut stamps = Stamps::with_clock(1, || 1_000);
    let value = |item: u16| (item % 5) as u8;
    for item in 0..600 {
        index.set(store, &mut stamps, &1, &item, &value(item)).unwrap();
    }
    let widths = || {
        let snapshot = store.snapshot().unwrap();
        let entries = space.child(&1);
        let mut widths: BTreeMap<(u8, u64), usize> = BTreeMap::new();
        for entry in snapshot.range(entries.range(), Order::Ascending).unwrap() {
            let key = entry.unwrap().0.to_vec();
            let (_, level, bucket, ..) =
                entries.unpack::<(u8, u8, u64, u8, u16, u64, u64)>(&key).unwrap();
            *widths.entry((level, bucket)).or_default() += 1;
        }
        widths
    };
    let narrow = widths();
    assert_eq!(narrow.values().sum::<usize>(), 600);
    assert!(narrow.len() > 600 / 32, "{narrow:?}");
    assert!(*narrow.values().max().unwrap() <= 32 + 32 / 2, "{narrow:?}");
    let levels = narrow.keys().map(|(level, _)| level).collect::<BTreeSet<_>>();
    assert!(levels.len() > 2, "{narrow:?}");
    // All items are found, in any bucket.
    let snapshot = store.snapshot().unwrap();
    for wanted in 0..5 {
        let found = index.items_with(&snapshot, &1, wanted).unwrap();
        let found: BTreeSet<u16> = found.map(|found| found.unwrap().1).collect();
        assert_eq!(found, (0..600).filter(|item| value(*item) == wanted).collect());
    }
    // Another container is still at its first level.
    let other = Metered::new(store.clone());
    let reader = other.snapshot().unwrap();
    let (_, cost) = other.measure(|_| index.items_with(&reader, &2, 0).unwrap().count());
    assert_eq!(cost.ranges, 3);
    drop((snapshot, reader));
    // Changed items move to the newest level. Further changes open no other level.
    for round in 1..4u8 {
        for item in 0..600 {
            index.set(store, &mut stamps, &1, &item, &(10 * round)).unwrap();
        }
    }
    let moved = widths();
    assert_eq!(moved.values().sum::<usize>(), 600);
    let newest = moved.keys().map(|(level, _)| *level).max().unwrap();
    assert!(newest <= levels.into_iter().max().unwrap() + 1, "{moved:?}");
    assert!(moved.keys().all(|(level, _)| *level + 1 >= newest), "{moved:?}");
    assert!(*moved.values().max().unwrap() <= 32 + 32 / 2, "{moved:?}");
}

pub fn check_finds_and_repair_repairs_what_should_never_be(store: &(impl Store + Clone)) {
    clear(store);
    let space = Subspace::new("towns");
    let index = towns();
    let mut stamps = Stamps::with_clock(1, || 1_000);
    let of = container(1);
    for item in ["a", "b", "c"] {
        index.set(store, &mut stamps, &of, &item.into(), &"Paris".into()).unwrap();
    }
    let before = keys(store);
    let entry = |item: &str, time_us: u64| {
        space.child(&1).pack(&(&of, 0u8, 0u64, "Paris", item, time_us, 1u64))
    };
    let (missing, dangling) = (entry("b", 1_001), entry("b", 77));
    let foreign = space.child(&1).pack("what?");
    store
        .transact(|txn| {
            assert!(txn.get(&missing)?.is_some());
            txn.delete(&missing)?;
            txn.put(&dangling, &[1])?;
            txn.put(&foreign, &[1])
        })
        .unwrap();
    let found = index.check(&store.snapshot().unwrap()).unwrap();
    let expected = [
        Inconsistency::new(missing, Rule::Missing),
        Inconsistency::new(dangling, Rule::Dangling),
        Inconsistency::new(foreign, Rule::Foreign),
    ];
    assert!(found.len() == 3 && expected.iter().all(|one| found.contains(one)), "{found:?}");
    // A query does not find missing entries; it filters dangling ones.
    let items = || {
        let snapshot = store.snapshot().unwrap();
        index.items_with(&snapshot, &of, "Paris".into()).unwrap().count()
    };

    let mut options = RepairOptions { batch: 2, resume: None };
    let (mut written, mut removed, mut batches) = (0, 0, 0);
    loop {
        let done = index.repair_with(store, &stamps, &options, |_| ControlFlow::Break(())).unwrap();
        (written, removed, batches) = (written + done.written, removed + done.removed, batches + 1);
        if done.finished {
            break;
        }
        options.resume = Some(done.position);
    }
    assert_eq!((written, removed), (1, 2));
    assert!(batches >= 4);
    assert_eq!(index.check(&store.snapshot().unwrap()).unwrap(), []);
    assert_eq!((items(), keys(store)), (3, before));
}
