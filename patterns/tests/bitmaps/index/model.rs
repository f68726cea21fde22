//! An index, compared with its records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use keyloom::{DynWriter, KeyRange, Order, Reader, Result, Store};
use keyloom_tables::table::RecordKey;
use keyloom_tables::{descending, in_order, starting_with, within};
use proptest::prelude::*;

use super::fixture::{
    Audience, FIELDS, User, audience, by_number, clear_index, history, imitate, perform,
};
use keyloom_testing::ids::{TEXTS, text};
use keyloom_testing::laws::{clear, very_long_property};

/// The values of a user in a field, as text.
fn values(field: &str, user: &User) -> BTreeSet<String> {
    match field {
        "city" => user.city.iter().cloned().collect(),
        "site" => user.sites.iter().cloned().collect(),
        _ => [user.is_member.to_string()].into(),
    }
}

fn whose<K: Ord + Clone>(model: &BTreeMap<K, User>, is_so: impl Fn(&User) -> bool) -> BTreeSet<K> {
    model.iter().filter(|(_, user)| is_so(user)).map(|(key, _)| key.clone()).collect()
}

/// Compares every query of an index with the model.
pub fn compare<K: RecordKey + Ord + Clone + Debug>(
    of: &Audience<K>,
    reader: &impl Reader,
    model: &BTreeMap<K, User>,
) {
    let Audience { index, .. } = of;
    let texts = [&TEXTS[..], &["never"]].concat();
    assert_eq!(&of.records(reader), model);
    assert_eq!(of.found(reader, &index.all()), model.keys().cloned().collect());
    for field in ["city", "site"] {
        let holds = |user: &User, is_so: &dyn Fn(&str) -> bool| {
            values(field, user).iter().any(|value| is_so(value))
        };
        for text in texts.iter().copied() {
            let term = index.term(field, text).unwrap();
            assert_eq!(of.found(reader, &term), whose(model, |user| holds(user, &|v| v == text)));
            let any = index.any_term(reader, field, starting_with(text)).unwrap();
            let wanted = whose(model, |user| holds(user, &|v| v.starts_with(text)));
            assert_eq!(of.found(reader, &any), wanted, "{field} beginning with {text:?}");
            let any = index.any_term(reader, field, within(..text)).unwrap();
            assert_eq!(of.found(reader, &any), whose(model, |user| holds(user, &|v| v < text)));
            let any = index.any_term(reader, field, text).unwrap();
            assert_eq!(of.found(reader, &any), whose(model, |user| holds(user, &|v| v == text)));
        }
        for list in [&texts[..0], &texts[1..3], &["\0", "never", "\0"], &texts[..]] {
            let any = index.any_of_terms(reader, field, list.iter().copied()).unwrap();
            let wanted = whose(model, |user| holds(user, &|v| list.contains(&v)));
            assert_eq!(of.found(reader, &any), wanted, "{field} in {list:?}");
        }
        let all = index.any_term(reader, field, ()).unwrap();
        assert_eq!(of.found(reader, &all), whose(model, |user| holds(user, &|_| true)));
        // Distinct values, with the number of records for each.
        let mut counts = BTreeMap::<String, u64>::new();
        for value in model.values().flat_map(|user| values(field, user)) {
            *counts.entry(value).or_default() += 1;
        }
        let found = index.value_counts::<_, String, _>(reader, field, ()).unwrap();
        assert_eq!(found.collect::<Result<BTreeMap<_, _>>>().unwrap(), counts);
        let found = index.values::<_, String, _>(reader, field, descending(..)).unwrap();
        let wanted: Vec<String> = counts.keys().rev().cloned().collect();
        assert_eq!(found.collect::<Result<Vec<_>>>().unwrap(), wanted);
        assert_eq!(index.distinct(reader, field, ()).unwrap(), counts.len() as u64);
        let few = counts.keys().filter(|value| value.starts_with('a')).count() as u64;
        assert_eq!(index.distinct(reader, field, starting_with("a")).unwrap(), few);
    }
    for is_member in [true, false] {
        let term = index.term("member", is_member).unwrap();
        assert_eq!(of.found(reader, &term), whose(model, |user| user.is_member == is_member));
    }
    for field in FIELDS {
        let has = |user: &User| !values(field, user).is_empty();
        assert_eq!(of.found(reader, &index.has(field).unwrap()), whose(model, has), "{field}");
        let absent = index.absent(field).unwrap();
        assert_eq!(of.found(reader, &absent), whose(model, |user| !has(user)), "{field}");
        let stored = index.space().child(&("terms", field)).range();
        assert_eq!(index.containers(reader, field).unwrap(), reader.count(stored).unwrap());
    }
    let cents = index.integers_of("cents").unwrap();
    let all: Vec<i64> = model.values().filter_map(|user| user.cents).collect();
    let sum: i128 = all.iter().map(|cents| i128::from(*cents)).sum();
    assert_eq!(cents.sum(reader, None).unwrap(), sum);
    assert_eq!(cents.min(reader, None).unwrap(), all.iter().min().copied());
    assert_eq!(of.found(reader, &cents.gt(2)), whose(model, |user| user.cents > Some(2)));
    assert_eq!(of.found(reader, &index.has("cents").unwrap()), whose(model, |u| u.cents.is_some()));
    let absent = index.absent("cents").unwrap();
    assert_eq!(of.found(reader, &absent), whose(model, |user| user.cents.is_none()));
    compare_direct(of, reader, model);
}

fn compare_direct<K: RecordKey + Ord + Clone + Debug>(
    of: &Audience<K>,
    reader: &impl Reader,
    model: &BTreeMap<K, User>,
) {
    let mut ids = Vec::new();
    let by_id = model.iter().map(|(key, user)| (of.index.id_of(reader, key).unwrap(), user));
    let by_id: BTreeMap<u64, &User> = by_id.map(|(id, user)| (id.unwrap(), user)).collect();
    let asked: Vec<u64> = by_id.keys().copied().collect();
    for field in ["city", "site"] {
        let mut found = BTreeSet::new();
        let visit = |id, value: &[u8]| {
            assert!(found.insert((id, keyloom::unpack::<String>(value).unwrap())));
            Ok(())
        };
        of.index.visit_values(reader, field, &asked, visit).unwrap();
        let mut wanted = BTreeSet::new();
        for (id, user) in &by_id {
            wanted.extend(values(field, user).into_iter().map(|value| (*id, value)));
        }
        assert_eq!(found, wanted);
    }
    for no_values in ["ctiy", "cents"] {
        assert!(of.index.visit_values(reader, no_values, &asked, |_, _| Ok(())).is_err());
    }
    for (key, user) in model {
        let id = of.index.id_of(reader, key).unwrap().unwrap();
        let entry = of.index.forward(reader, id).unwrap().unwrap();
        for field in ["city", "site"] {
            let found = entry.values::<String>(field).unwrap();
            assert_eq!(found, Vec::from_iter(values(field, user)));
        }
        assert_eq!(entry.values::<bool>("member").unwrap(), [user.is_member]);
        assert_eq!(entry.values::<i64>("cents").unwrap(), Vec::from_iter(user.cents));
        let names: Vec<String> = entry.fields().map(|field| field.0.into()).collect();
        let mut wanted = vec!["city", "site", "cents", "member"];
        wanted.retain(|name| match *name {
            "cents" => user.cents.is_some(),
            name => !values(name, user).is_empty(),
        });
        assert_eq!(names, wanted);
        ids.push(id);
    }
    ids.sort_unstable();
    let forward_range = |order| {
        let all = of.index.forward_range(reader, in_order(.., order)).unwrap();
        all.map(|entry| entry.unwrap().0).collect::<Vec<u64>>()
    };
    assert_eq!(forward_range(Order::Ascending), ids);
    assert!(forward_range(Order::Descending).into_iter().rev().eq(ids.iter().copied()));
    if let [first, .., last] = ids[..] {
        let inner = of.index.forward_range(reader, first + 1..last).unwrap();
        assert_eq!(inner.count(), ids.len() - 2);
    }
}

/// Runs a history. Returns its final state.
fn run<K: RecordKey + Ord + Clone + Debug>(
    of: &Audience<K>,
    store: &impl Store,
    history: &[Vec<super::fixture::Step<K>>],
) -> BTreeMap<K, User> {
    clear(store);
    let mut model = BTreeMap::new();
    for steps in history {
        let run =
            |txn: &mut DynWriter<'_>| steps.iter().try_for_each(|step| perform(of, txn, step));
        store.transact(|txn| run(&mut DynWriter::new(txn))).unwrap();
        steps.iter().for_each(|step| imitate(step, &mut model));
    }
    model
}

fn hold<K: RecordKey + Ord + Clone + Debug>(
    of: &Audience<K>,
    store: &(impl Store + Clone),
    history: &[Vec<super::fixture::Step<K>>],
) -> BTreeMap<K, User> {
    let model = run(of, store, history);
    assert_eq!(of.faults(store), []);
    compare(of, &store.snapshot().unwrap(), &model);
    model
}

pub fn an_index_answers_as_a_filter_over_the_records(store: &(impl Store + Clone)) {
    let of = audience();
    let key = (0..9_usize).prop_map(text);
    very_long_property(history(key), |history| {
        let model = hold(&of, store, &history);
        let maintained = of.stored(store);
        // Everything is rebuilt except the ids, which are kept.
        for part in ["all", "containers", "direct", "integers", "terms"] {
            let part = of.index.space().child(part);
            clear_index(&of, store, part.self_and_children());
        }
        of.repair(store, 1);
        assert_eq!(of.stored(store), maintained);
        // Everything is rebuilt.
        clear_index(&of, store, KeyRange::all());
        of.index.build(store, &of.table, |_| std::ops::ControlFlow::Continue(())).unwrap();
        assert_eq!(of.faults(store), []);
        compare(&of, &store.snapshot().unwrap(), &model);
        let snapshot = store.snapshot().unwrap();
        let ids = of.index.all().ids(&snapshot, ..).unwrap();
        assert!(ids.map(Result::unwrap).eq(0..model.len() as u64), "ids are dense again");
    });
}

pub fn where_keys_are_ids_rebuilt_equals_maintained_byte_for_byte(store: &(impl Store + Clone)) {
    let of = by_number();
    // Some ids are at the ends of chunks and blocks.
    let near = |n: u32| n.saturating_sub(2)..n + 2;
    let key = prop_oneof![
        3 => 0..4_u32,
        3 => near(256),
        4 => near(32_512),
        2 => near(32_512 * 5),
        1 => Just(u32::MAX)
    ];
    let key = key.boxed();
    very_long_property(history(key), |history| {
        let model = hold(&of, store, &history);
        let maintained = of.stored(store);
        for batch in [1, 1_000, 40_000] {
            clear_index(&of, store, KeyRange::all());
            of.repair(store, batch);
            assert_eq!(of.stored(store), maintained, "in batches of {batch}");
        }
        clear(store);
        store.transact(|txn| of.table.put_many(txn, model.clone())).unwrap();
        assert_eq!(of.stored(store), maintained);
        store.transact(|txn| of.table.delete_many(txn, model.keys())).unwrap();
        assert_eq!(of.stored(store).len(), 0);
    });
}
