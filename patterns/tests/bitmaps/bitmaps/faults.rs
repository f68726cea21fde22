//! Costs, faults, conflicts and bad input.

use keyloom::{DynWriter, Error, Fault, Faulty, Metered, Order, Result, Store, Subspace};
use keyloom_bitmaps::{Bitmap, CHUNK_IDS};
use keyloom_tables::{Continuation, in_order};
use roaring::RoaringBitmap;

use super::sets::{LAST_CHUNK, Set, bitmap, put};
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, counts, faults_leave_nothing_half_done, refused,
    waits, writing,
};
use keyloom_testing::waits_for_the_version;

/// Some ids in each of ten chunks.
fn in_ten_chunks() -> Set {
    (0..10).flat_map(|chunk| (0..300).map(move |id| chunk * CHUNK_IDS + id * 100)).collect()
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let bitmap = bitmap();
    put(store, &bitmap, &in_ten_chunks());
    let store = Metered::new(store.clone());
    // Gets, ranges, keys read, keys written.
    let change = |id| writing(&store, |txn| bitmap.insert(txn, id).map(drop));
    assert_eq!(change(1), [1, 0, 1, 1]);
    assert_eq!(change(1), [1, 0, 1, 0], "it is there");
    assert_eq!(change(20 * CHUNK_IDS), [1, 0, 0, 1], "a chunk that is not there");
    let change = |id| writing(&store, |txn| bitmap.remove(txn, id).map(drop));
    assert_eq!(change(1), [1, 0, 1, 1]);
    assert_eq!(change(1), [1, 0, 1, 0]);
    assert_eq!(change(20 * CHUNK_IDS), [1, 0, 1, 1]);
    assert_eq!(change(20 * CHUNK_IDS), [1, 0, 0, 0]);
    let many = || in_ten_chunks().into_iter().map(|id| id + 1).rev();
    assert_eq!(writing(&store, |txn| bitmap.insert_many(txn, many()).map(drop)), [10, 0, 10, 10]);
    assert_eq!(writing(&store, |txn| bitmap.insert_many(txn, many()).map(drop)), [10, 0, 10, 0]);
    assert_eq!(writing(&store, |txn| bitmap.remove_many(txn, many()).map(drop)), [10, 0, 10, 10]);
    assert_eq!(writing(&store, |txn| bitmap.insert_many(txn, []).map(drop)), [0; 4]);
    // The chunks are read in one round trip; the commit is another.
    let waited = waits(&store, |txn| bitmap.insert_many(txn, many()).map(drop));
    assert_eq!(waited, 2 + waits_for_the_version(&store));
    store.transact(|txn| bitmap.remove_many(txn, many())).unwrap();

    let all = in_ten_chunks();
    let replace = |txn: &mut DynWriter<'_>| bitmap.replace(txn, all.iter().copied()).map(drop);
    assert_eq!(writing(&store, replace), [0, 0, 0, 11]);
    let roaring: RoaringBitmap = all.iter().map(|id| *id as u32).collect();
    let replace = |txn: &mut DynWriter<'_>| bitmap.replace_with_roaring(txn, &roaring).map(drop);
    assert_eq!(writing(&store, replace), [0, 0, 0, 11]);
    reads_cost_what_the_documentation_says(&store, &bitmap);
    assert_eq!(writing(&store, |txn| bitmap.clear(txn)), [0, 0, 0, 1]);
}

fn reads_cost_what_the_documentation_says<S: Store>(store: &Metered<S>, bitmap: &Bitmap) {
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn() -> Result<()>| counts(store.measure(|_| work().unwrap()).1);
    let third = 2 * CHUNK_IDS + 50;
    assert_eq!(reading(&|| bitmap.contains(&snapshot, third).map(drop)), [1, 0, 1, 0]);
    assert_eq!(reading(&|| bitmap.contains(&snapshot, u64::MAX).map(drop)), [1, 0, 0, 0]);
    assert_eq!(reading(&|| bitmap.len(&snapshot).map(drop)), [0, 1, 10, 0]);
    assert_eq!(reading(&|| bitmap.is_empty(&snapshot).map(drop)), [0, 1, 1, 0]);
    assert_eq!(reading(&|| bitmap.rank(&snapshot, third).map(drop)), [0, 1, 3, 0]);
    assert_eq!(reading(&|| bitmap.select(&snapshot, 700).map(drop)), [0, 1, 3, 0]);
    assert_eq!(reading(&|| bitmap.first(&snapshot).map(drop)), [0, 1, 1, 0]);
    assert_eq!(reading(&|| bitmap.last(&snapshot).map(drop)), [0, 1, 1, 0]);
    let two = CHUNK_IDS + 7..3 * CHUNK_IDS;
    let ids = |order| {
        bitmap.ids(&snapshot, in_order(two.clone(), order)).map(|ids| assert_eq!(ids.count(), 599))
    };
    assert_eq!(reading(&|| ids(Order::Ascending)), [0, 1, 2, 0]);
    assert_eq!(reading(&|| ids(Order::Descending)), [0, 1, 2, 0]);
    let none = || bitmap.ids(&snapshot, 5..5).map(|ids| assert_eq!(ids.count(), 0));
    assert_eq!(reading(&none), [0; 4]);
    let page = |after: Option<&Continuation>| bitmap.page(&snapshot, .., 150, after);
    let first = page(None).unwrap();
    assert_eq!(reading(&|| page(None).map(drop)), [0, 1, 1, 0]);
    let second = page(first.next.as_ref()).unwrap();
    assert_eq!(second.items.last(), Some(&29_900));
    // The page ends with the first chunk, and checks whether another chunk exists.
    assert_eq!(reading(&|| page(first.next.as_ref()).map(drop)), [0, 1, 2, 0]);
    assert_eq!(reading(&|| page(second.next.as_ref()).map(drop)), [0, 1, 2, 0]);
    assert_eq!(reading(&|| bitmap.to_roaring(&snapshot).map(drop)), [0, 1, 10, 0]);
    assert_eq!(reading(&|| bitmap.to_treemap(&snapshot).map(drop)), [0, 1, 10, 0]);
    assert_eq!(reading(&|| bitmap.check(&snapshot).map(drop)), [0, 1, 10, 0]);
}

type Change = fn(&mut DynWriter<'_>) -> Result<()>;

/// Inserts and deletes ids in chunks that remain, are created or are deleted; or replaces one load
/// by another.
const CHANGES: [Change; 2] = [one_after_the_other, at_once];

fn one_after_the_other(txn: &mut DynWriter<'_>) -> Result<()> {
    bitmap().insert(txn, 7)?;
    bitmap().insert(txn, 40 * CHUNK_IDS)?;
    bitmap().remove(txn, CHUNK_IDS)?;
    bitmap().insert_many(txn, (0..4).map(|chunk| chunk * CHUNK_IDS + 9))?;
    bitmap().remove_many(txn, [0, 100, 2 * CHUNK_IDS]).map(drop)
}

fn at_once(txn: &mut DynWriter<'_>) -> Result<()> {
    let ids = (0..3_u64).map(|n| n * 2 * CHUNK_IDS);
    bitmap().replace(txn, ids.clone())?;
    Bitmap::new(&Subspace::new("copy")).replace(txn, ids)?;
    bitmap().clear(txn)?;
    bitmap().insert_many(txn, [1, 2, u64::MAX]).map(drop)
}

fn faults_of(store: &impl Store) -> Vec<String> {
    let faults = bitmap().check(&store.snapshot().unwrap()).unwrap();
    faults.iter().map(ToString::to_string).collect()
}

fn prepare(store: &impl Store) {
    put(store, &bitmap(), &[0, 100, 200, CHUNK_IDS, 2 * CHUNK_IDS, 2 * CHUNK_IDS + 5].into());
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    CHANGES.iter().for_each(|change| {
        faults_leave_nothing_half_done(store, prepare, change, |store| faults_of(store));
    });
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    CHANGES.iter().for_each(|change| conflicts_are_retried_to_the_same_end(store, prepare, change));
}

pub fn a_fault_while_reading_ends_a_walk(store: &(impl Store + Clone)) {
    clear(store);
    let bitmap = bitmap();
    put(store, &bitmap, &in_ten_chunks());
    let faulty = Faulty::new(store.clone());
    let mut failures = 0;
    for n in 0..14 {
        for order in [Order::Ascending, Order::Descending] {
            let snapshot = faulty.snapshot().unwrap();
            faulty.fail_at(n, Fault::Error);
            let ids = bitmap.ids(&snapshot, in_order(.., order));
            let ends: Vec<bool> = ids.map_or(vec![false], |ids| ids.map(|id| id.is_ok()).collect());
            faulty.clear_fault();
            let failed = ends.iter().filter(|is_ok| !**is_ok).count();
            assert!(failed == 0 || failed == 1 && ends.last() == Some(&false));
            assert!(failed == 1 || ends.len() == 3_000);
            failures += failed;
        }
        for read in [
            |bitmap: &Bitmap, reader: &_| bitmap.len(reader).map(drop),
            |bitmap: &Bitmap, reader: &_| bitmap.rank(reader, u64::MAX).map(drop),
            |bitmap: &Bitmap, reader: &_| bitmap.to_treemap(reader).map(drop),
        ] {
            let snapshot = faulty.snapshot().unwrap();
            faulty.fail_at(n, Fault::Error);
            failures += usize::from(read(&bitmap, &snapshot).is_err());
            faulty.clear_fault();
        }
    }
    assert!(failures >= 5 * 11, "{failures} could fail");
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    let seats = Bitmap::new(&Subspace::new("seats")).within_universe(400);
    put(store, &seats, &[3, 399].into());
    let beyond = |error: Error| {
        let text = error.to_string();
        assert!(text.contains(r#"at key ("seats",): the id "400, not below 400""#), "{text}");
        assert!(text.contains("make the universe larger"), "{text}");
        let Error::At { source, .. } = error else { panic!("{error}") };
        assert!(matches!(*source, Error::InvalidArgument { .. }));
    };
    beyond(refused(store, |txn| seats.insert(txn, 400).map(drop)));
    beyond(refused(store, |txn| seats.remove(txn, 400).map(drop)));
    beyond(refused(store, |txn| seats.insert_many(txn, [1, 400, 2]).map(drop)));
    beyond(refused(store, |txn| seats.replace(txn, [1, 2, 400]).map(drop)));
    let roaring = RoaringBitmap::from([1, 400]);
    beyond(refused(store, |txn| seats.replace_with_roaring(txn, &roaring).map(drop)));
    let empty = seats.clone().within_universe(0);
    refused(store, |txn| empty.insert(txn, 0).map(drop));

    // The order is also checked in the very last chunk.
    let unsorted = |ids: [u64; 3]| refused(store, |txn| bitmap().replace(txn, ids).map(drop));
    for ids in [[1, 9, 5], [5, CHUNK_IDS, 9], [0, LAST_CHUNK * CHUNK_IDS, 9]] {
        let error = unsorted(ids).to_string();
        assert!(error.contains(&format!("the id \"{}\"", ids[2])), "{error}");
        assert!(error.contains("sort the ids"), "{error}");
    }
    let long = Bitmap::new(&Subspace::new(&"x".repeat(509)));
    let error = refused(store, |txn| long.insert(txn, 1 << 40).map(drop));
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    refused(store, |txn| long.replace(txn, [1 << 40]).map(drop));
    continuations_of_other_queries_are_refused(store, &seats);
}

fn continuations_of_other_queries_are_refused(store: &impl Store, seats: &Bitmap) {
    let snapshot = store.snapshot().unwrap();
    let next = seats.page(&snapshot, .., 1, None).unwrap().next.unwrap();
    let refused = |bitmap: &Bitmap, order| {
        let error = bitmap.page(&snapshot, in_order(.., order), 1, Some(&next)).unwrap_err();
        assert!(error.to_string().contains("begin"), "{error}");
    };
    refused(seats, Order::Descending);
    refused(&bitmap(), Order::Ascending);
    let error = seats.page(&snapshot, 1.., 1, Some(&next)).unwrap_err();
    assert!(error.to_string().contains("another query"), "{error}");
    let cut = Continuation::from_bytes(&next.as_bytes()[..next.as_bytes().len() - 1]);
    seats.page(&snapshot, .., 1, Some(&cut)).unwrap_err();
    let stored = Continuation::from_bytes(next.as_bytes());
    let rest = seats.page(&snapshot, .., 1, Some(&stored)).unwrap();
    assert_eq!((rest.items, rest.next), (vec![399], None));
}
