//! A bitmap, compared with a set and with the bitmaps of `roaring`.

use std::ops::Bound;

use keyloom::{Metered, Order, Reader, Store, Subspace, Writer};
use keyloom_bitmaps::Bitmap;
use keyloom_tables::{descending, in_order};
use proptest::collection::vec;
use proptest::prelude::*;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::sets::{Set, all, bitmap, ids, put, random_set, set};
use keyloom_testing::laws::{clear, dump, long_property};

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u64>),
    Remove(Vec<u64>),
    /// Removes every n-th id of the set.
    RemoveEach(usize),
    InsertOne(u64),
    RemoveOne(u64),
    Replace(Set),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => ids().prop_map(Step::Insert),
        2 => ids().prop_map(Step::Remove),
        2 => (1..5_usize).prop_map(Step::RemoveEach),
        1 => ids().prop_map(|ids| Step::InsertOne(ids.first().copied().unwrap_or(7))),
        1 => ids().prop_map(|ids| Step::RemoveOne(ids.first().copied().unwrap_or(7))),
        1 => set().prop_map(Step::Replace),
        1 => Just(Step::Clear),
    ]
}

/// Applies the same step to both.
fn take(store: &impl Store, bitmap: &Bitmap, model: &mut Set, step: Step) {
    let insert = |model: &mut Set, ids: &[u64]| ids.iter().filter(|id| model.insert(**id)).count();
    let remove = |model: &mut Set, ids: &[u64]| ids.iter().filter(|id| model.remove(id)).count();
    match step {
        Step::Insert(ids) => {
            let new = store.transact(|txn| bitmap.insert_many(txn, ids.iter().copied())).unwrap();
            assert_eq!(new, insert(model, &ids) as u64);
        }
        Step::Remove(ids) => {
            let gone = store.transact(|txn| bitmap.remove_many(txn, ids.iter().copied())).unwrap();
            assert_eq!(gone, remove(model, &ids) as u64);
        }
        Step::RemoveEach(step) => {
            let ids: Vec<u64> = model.iter().copied().step_by(step).collect();
            take(store, bitmap, model, Step::Remove(ids));
        }
        Step::InsertOne(id) => {
            let is_new = store.transact(|txn| bitmap.insert(txn, id)).unwrap();
            assert_eq!(is_new, model.insert(id));
        }
        Step::RemoveOne(id) => {
            let was_there = store.transact(|txn| bitmap.remove(txn, id)).unwrap();
            assert_eq!(was_there, model.remove(&id));
        }
        Step::Replace(set) => {
            put(store, bitmap, &set);
            *model = set;
        }
        Step::Clear => {
            store.transact(|txn| bitmap.clear(txn)).unwrap();
            model.clear();
        }
    }
}

pub fn a_bitmap_is_a_set_whatever_is_done_with_it(store: &(impl Store + Clone)) {
    let (bitmap, neighbour) = (bitmap(), Bitmap::new(&Subspace::new(&("bitmaps", "b"))));
    let strategy = (vec(step(), 1..6), vec(ids(), 2));
    long_property(strategy, |(steps, probes)| {
        clear(store);
        store.transact(|txn| txn.put(&neighbour.space().pack(&0), b"of somebody else")).unwrap();
        let mut model = Set::new();
        for step in steps {
            take(store, &bitmap, &mut model, step);
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(bitmap.check(&snapshot).unwrap().len(), 0);
        holds_what_the_model_holds(&snapshot, &bitmap, &model);
        probes
            .concat()
            .into_iter()
            .take(30)
            .for_each(|id| agrees_at(&snapshot, &bitmap, &model, id));
        drop(snapshot);
        rebuilt_equals_maintained(store, &bitmap, &model);
        let others =
            store.snapshot().unwrap().get(&neighbour.space().pack(&0)).unwrap().map(|b| b.to_vec());
        assert_eq!(others.unwrap(), b"of somebody else");
    });
}

fn holds_what_the_model_holds(reader: &impl Reader, bitmap: &Bitmap, model: &Set) {
    assert_eq!(bitmap.len(reader).unwrap(), model.len() as u64);
    assert_eq!(bitmap.is_empty(reader).unwrap(), model.is_empty());
    assert_eq!(bitmap.first(reader).unwrap(), model.first().copied());
    assert_eq!(bitmap.last(reader).unwrap(), model.last().copied());
    let ascending = all(reader, bitmap, Order::Ascending).unwrap();
    assert!(ascending.iter().eq(model));
    let mut descending = all(reader, bitmap, Order::Descending).unwrap();
    descending.reverse();
    assert_eq!(ascending, descending);
    let past_the_end = bitmap.select(reader, model.len() as u64).unwrap();
    assert_eq!(past_the_end, None);
}

fn agrees_at(reader: &impl Reader, bitmap: &Bitmap, model: &Set, id: u64) {
    for id in [id.saturating_sub(1), id, id.saturating_add(1)] {
        assert_eq!(bitmap.contains(reader, id).unwrap(), model.contains(&id));
        assert_eq!(bitmap.rank(reader, id).unwrap(), model.range(..id).count() as u64);
    }
    let n = (id % (model.len() as u64 + 2)) as usize;
    assert_eq!(bitmap.select(reader, n as u64).unwrap(), model.iter().nth(n).copied());
    let width = id % 70_000;
    let ranges = [
        (Bound::Included(id.saturating_sub(width)), Bound::Included(id)),
        (Bound::Excluded(id), Bound::Unbounded),
        (Bound::Unbounded, Bound::Excluded(id)),
        (Bound::Included(id), Bound::Excluded(id)),
        (Bound::Excluded(id), Bound::Excluded(id.saturating_add(width))),
    ];
    for range in ranges {
        // `BTreeSet::range` panics on a reversed or empty range of this kind.
        let expected =
            model.iter().copied().filter(|id| std::ops::RangeBounds::contains(&range, id));
        let expected: Vec<u64> = expected.collect();
        let found = bitmap.ids(reader, range).unwrap();
        assert_eq!(found.collect::<Result<Vec<_>, _>>().unwrap(), expected);
        let found = bitmap.ids(reader, descending(range)).unwrap();
        let found = found.collect::<Result<Vec<_>, _>>().unwrap();
        assert!(found.iter().eq(expected.iter().rev()));
    }
}

/// The bytes after all steps are equal to those of a load of the remaining ids.
fn rebuilt_equals_maintained(store: &impl Store, bitmap: &Bitmap, model: &Set) {
    let range = bitmap.space().range();
    let maintained = dump(&store.snapshot().unwrap(), range.clone());
    put(store, bitmap, model);
    assert_eq!(dump(&store.snapshot().unwrap(), range), maintained);
}

pub fn pages_join_to_the_whole_whatever_is_written(store: &(impl Store + Clone)) {
    let bitmap = bitmap();
    let strategy = (set(), 1..9_usize, ids(), any::<bool>());
    long_property(strategy, |(set, pages, written, is_ascending)| {
        clear(store);
        put(store, &bitmap, &set);
        let order = if is_ascending { Order::Ascending } else { Order::Descending };
        let from = set.iter().nth(set.len() / 7).copied().unwrap_or_default();
        let limit = set.len() / pages + 1;
        let (mut seen, mut next) = (Vec::new(), None);
        loop {
            let snapshot = store.snapshot().unwrap();
            let page =
                bitmap.page(&snapshot, in_order(from.., order), limit, next.as_ref()).unwrap();
            assert!(
                page.items.len() <= limit && (page.next.is_none() || page.items.len() == limit)
            );
            seen.extend(page.items);
            drop(snapshot);
            next = page.next;
            if next.is_none() {
                break;
            }
            // Concurrent writes cause no id to be skipped or repeated.
            let new = written.iter().copied().take(20);
            store.transact(|txn| bitmap.insert_many(txn, new.clone())).unwrap();
        }
        let written: Set = written.into_iter().take(20).collect();
        let (is_sorted, expected): (_, Vec<u64>) = match order {
            Order::Ascending => {
                (seen.is_sorted_by(|a, b| a < b), set.range(from..).copied().collect())
            }
            Order::Descending => {
                (seen.is_sorted_by(|a, b| a > b), set.range(from..).rev().copied().collect())
            }
        };
        assert!(is_sorted);
        seen.retain(|id| set.contains(id) || !written.contains(id));
        assert_eq!(seen, expected);
    });
}

pub fn roaring_bitmaps_come_out_and_go_in(store: &(impl Store + Clone)) {
    let bitmap = bitmap();
    long_property(set(), |set| {
        clear(store);
        put(store, &bitmap, &set);
        let snapshot = store.snapshot().unwrap();
        let treemap: RoaringTreemap = set.iter().collect();
        assert_eq!(bitmap.to_treemap(&snapshot).unwrap(), treemap);
        let small = set.range(..=u64::from(u32::MAX)).map(|id| *id as u32);
        let small: RoaringBitmap = small.collect();
        match set.range(u64::from(u32::MAX) + 1..).next() {
            None => assert_eq!(bitmap.to_roaring(&snapshot).unwrap(), small),
            Some(first) => {
                let error = bitmap.to_roaring(&snapshot).unwrap_err().to_string();
                assert!(error.contains(&format!("the id \"{first}\"")), "{error}");
                assert!(error.contains("RoaringTreemap"), "{error}");
            }
        }
        drop(snapshot);
        let range = bitmap.space().range();
        let before = dump(&store.snapshot().unwrap(), range.clone());
        store.transact(|txn| bitmap.replace_with_treemap(txn, &treemap)).unwrap();
        assert_eq!(dump(&store.snapshot().unwrap(), range), before);
        let ids = store.transact(|txn| bitmap.replace_with_roaring(txn, &small)).unwrap();
        assert_eq!(
            (ids, bitmap.len(&store.snapshot().unwrap()).unwrap()),
            (small.len(), small.len())
        );
        assert_eq!(bitmap.to_roaring(&store.snapshot().unwrap()).unwrap(), small);
    });
}

/// The formats of a container, by their first bytes, and their sizes.
#[test]
fn every_form_is_stored_and_none_is_larger_than_it_need_be() {
    let store = keyloom::Memory::new();
    let bitmap = bitmap();
    let stored = |set: &Set| {
        put(&store, &bitmap, set);
        let there = dump(&store.snapshot().unwrap(), bitmap.space().range());
        there.into_values().map(|value| (value[0], value.len())).collect::<Vec<_>>()
    };
    let whole = keyloom_bitmaps::CHUNK_IDS;
    assert_eq!(stored(&[3].into()), [(0x11, 3)]);
    assert_eq!(stored(&(0..whole).collect()), [(0x12, 5)]);
    assert_eq!(stored(&(100..2 * whole).collect()), [(0x12, 5), (0x12, 5)]);
    let [(form, bytes)] = stored(&random_set(1, 0..whole, 100))[..] else { panic!() };
    assert_eq!((form, bytes < 500), (0x13, true));
    assert_eq!(stored(&random_set(2, 0..whole, 3)), [(0x14, 4_080)]);
    assert_eq!(stored(&Set::new()), []);
}

/// Changes of ids in one chunk write only this chunk.
#[test]
fn insert_of_an_id_writes_one_chunk_or_nothing_if_present() {
    let store = Metered::new(keyloom::Memory::new());
    let bitmap = bitmap();
    put(&store, &bitmap, &random_set(3, 0..200_000, 4));
    let written = |id: u64| {
        let work = || store.transact(|txn| bitmap.insert(txn, id)).unwrap();
        store.measure(|_| work()).1.keys_written
    };
    let absent =
        (0..).find(|id| !bitmap.contains(&store.snapshot().unwrap(), *id).unwrap()).unwrap();
    assert_eq!([written(absent), written(absent)], [1, 0]);
}
