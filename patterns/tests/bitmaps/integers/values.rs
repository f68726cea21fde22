//! Setting, removing and getting, compared with a map.

use std::collections::BTreeMap;

use keyloom::{KeyRange, Reader, Store, Subspace};
use keyloom_bitmaps::BitSliced;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bitmaps::sets::ids;
use keyloom_testing::laws::{clear, dump_all, very_long_property};

pub type Values = BTreeMap<u64, i64>;

pub fn integers() -> BitSliced {
    BitSliced::new(&Subspace::new("integers"))
}

/// The extreme values, the powers of two, the neighbours of both, and small values.
pub fn value() -> impl Strategy<Value = i64> {
    let near_power = (0..63_u32, -2..2_i64, any::<bool>()).prop_map(|(bit, by, is_negative)| {
        let near = (1_i64 << bit).saturating_add(by);
        if is_negative { -near } else { near }
    });
    let ends = prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX, 0, -1]);
    prop_oneof![3 => -20..20_i64, 1 => near_power, 1 => ends, 1 => any::<i64>()]
}

/// Many ids with the same values.
pub fn values() -> impl Strategy<Value = Values> {
    (ids(), vec(value(), 1..12))
        .prop_map(|(ids, values)| ids.into_iter().zip(values.into_iter().cycle()).collect())
}

pub fn store_values(store: &impl Store, values: &Values) {
    clear(store);
    let all = || values.iter().map(|(id, value)| (*id, *value)).rev();
    store.transact(|txn| integers().set_many(txn, all())).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, i64),
    Remove(u64),
    SetMany(Vec<(u64, i64)>),
    RemoveMany(Vec<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let some = (ids(), vec(value(), 1..12)).prop_map(|(ids, values)| {
        ids.into_iter().zip(values.into_iter().cycle()).collect::<Vec<_>>()
    });
    let one = || prop_oneof![0..40_u64, (0..4_u64).prop_map(|n| u64::MAX - n)];
    let step = prop_oneof![
        4 => (one(), value()).prop_map(|(id, value)| Step::Set(id, value)),
        2 => one().prop_map(Step::Remove),
        1 => some.prop_map(Step::SetMany),
        1 => ids().prop_map(Step::RemoveMany),
    ];
    vec(step, 1..8)
}

pub fn integers_are_a_map_whatever_is_done_with_them(store: &impl Store) {
    very_long_property((steps(), ids()), |(steps, others)| {
        clear(store);
        let mut model = Values::new();
        for step in &steps {
            let (told, before) = store.transact(|txn| take(step, txn, &model)).unwrap();
            assert_eq!(told, before);
            follow(step, &mut model);
        }
        let snapshot = store.snapshot().unwrap();
        let asked: Vec<u64> = model.keys().rev().chain(&others).copied().collect();
        let there = integers().get_many(&snapshot, &asked).unwrap();
        assert!(there.into_iter().eq(asked.iter().map(|id| model.get(id).copied())));
        for id in asked.iter().take(20) {
            assert_eq!(integers().get(&snapshot, *id).unwrap(), model.get(id).copied());
        }
        // Replaced values leave no entries.
        let maintained = dump_all(store);
        store_values(store, &model);
        assert_eq!(dump_all(store), maintained);
        store.transact(|txn| integers().clear(txn)).unwrap();
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    });
}

/// Few and many ids together, of chunks with lists and bitsets, which are searched or decoded.
pub fn values_of_few_and_of_many_ids_are_those_of_the_map(store: &impl Store) {
    const CHUNK: u64 = 1 << 16;
    let sparse = (0..CHUNK).step_by(400);
    let lists = (CHUNK..2 * CHUNK).step_by(20);
    let all = (2 * CHUNK..3 * CHUNK).filter(|id| id % 7 != 0);
    let value = |id: u64| (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44) as i64 - 500_000;
    let ids = sparse.chain(lists).chain(all);
    let model: Values = ids.map(|id| (id, value(id))).collect();
    store_values(store, &model);
    let snapshot = store.snapshot().unwrap();
    for step in [1, 3, 20, 600, 1_500, 30_000] {
        let asked: Vec<u64> = (0..3 * CHUNK + 10).step_by(step).collect();
        let there = integers().get_many(&snapshot, &asked).unwrap();
        assert!(there.into_iter().eq(asked.iter().map(|id| model.get(id).copied())), "{step}");
    }
}

type Told = Option<i64>;

fn take(
    step: &Step,
    txn: &mut impl keyloom::Writer,
    model: &Values,
) -> keyloom::Result<(Told, Told)> {
    let integers = integers();
    match step {
        Step::Set(id, value) => Ok((integers.set(txn, *id, *value)?, model.get(id).copied())),
        Step::Remove(id) => Ok((integers.remove(txn, *id)?, model.get(id).copied())),
        Step::SetMany(values) => {
            integers.set_many(txn, values.iter().copied()).map(|()| (None, None))
        }
        Step::RemoveMany(ids) => {
            integers.remove_many(txn, ids.iter().copied()).map(|()| (None, None))
        }
    }
}

fn follow(step: &Step, model: &mut Values) {
    match step {
        Step::Set(id, value) => model.extend([(*id, *value)]),
        Step::Remove(id) => model.retain(|other, _| other != id),
        Step::SetMany(values) => model.extend(values.iter().copied()),
        Step::RemoveMany(ids) => model.retain(|id, _| !ids.contains(id)),
    }
}
