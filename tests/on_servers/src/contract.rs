//! The exact costs of every remote store, in round trips. They are equal for all stores, except for
//! the differences in [`Contract`].

use keyloom::{Desc, KeyRange, Metered, Order, Reader, Store, Subspace, Transaction, Writer};
use keyloom_tables::{Grouping, Index, Table, entry};

/// The differences between engines.
pub struct Contract {
    /// Round trips of the first read of a transaction for its read version, before the read itself.
    pub for_the_version: u64,
    /// Round trips of a write-only transaction.
    pub of_writes: u64,
    /// Round trips of a read of the transaction's own write.
    pub of_own_write: u64,
}

/// Four digits, so that key order is numeric order.
pub fn key(n: usize) -> Vec<u8> {
    format!("key {n:04}").into_bytes()
}

/// Puts `key(0)` to `key(count - 1)`.
pub fn plant(store: &impl Store, count: usize) {
    store.transact(|txn| (0..count).try_for_each(|n| txn.put(&key(n), b"planted"))).unwrap();
}

/// The number of round trips of `work`.
pub fn waits<T>(store: &impl Store, work: impl FnOnce() -> T) -> (T, u64) {
    let before = store.round_trips().unwrap();
    let done = work();
    (done, store.round_trips().unwrap() - before)
}

pub fn a_snapshot_costs_one_and_each_read_one(store: &impl Store) {
    plant(store, 100);
    let (snapshot, cost) = waits(store, || store.snapshot().unwrap());
    assert_eq!(cost, 1);
    assert_eq!(waits(store, || assert!(snapshot.get(&key(7)).unwrap().is_some())).1, 1);
    assert_eq!(waits(store, || snapshot.count(KeyRange::all()).unwrap()), (100, 1));
    assert_eq!(waits(store, || assert!(snapshot.first(KeyRange::all()).unwrap().is_some())).1, 1);
    assert_eq!(waits(store, || assert!(snapshot.last(KeyRange::all()).unwrap().is_some())).1, 1);
    for order in [Order::Ascending, Order::Descending] {
        let (page, cost) = waits(store, || snapshot.page(KeyRange::all(), order, 50).unwrap());
        assert_eq!((page.entries.len(), page.last.is_some(), cost), (50, true, 1));
    }
}

pub fn a_thousand_keys_cost_one(store: &impl Store, contract: &Contract) {
    plant(store, 1_000);
    let keys: Vec<Vec<u8>> = (0..1_100).rev().map(key).collect();
    let found = |reader: &dyn Fn() -> Vec<bool>| waits(store, reader);
    let snapshot = store.snapshot().unwrap();
    let are_there = || snapshot.get_many(&keys).unwrap().iter().map(Option::is_some).collect();
    let (values, cost) = found(&are_there);
    assert_eq!(cost, 1);
    assert!(values.iter().enumerate().all(|(n, is_there)| *is_there == (n >= 100)));
    let txn = store.begin().unwrap();
    let are_there = || txn.get_many(&keys).unwrap().iter().map(Option::is_some).collect();
    assert_eq!(found(&are_there), (values, 1 + contract.for_the_version), "the first read too");
    assert_eq!(found(&are_there).1, 0, "a transaction reads a key once");
}

/// `count` ranges with ten keys each, from the last to the first.
fn ranges_of_ten(count: usize) -> Vec<KeyRange<'static>> {
    let range = |n: usize| KeyRange::half_open(&key(10 * n), &key(10 * n + 10)).into_owned();
    (0..count).rev().map(range).collect()
}

/// The number of entries that `range_many` returns. Checks that they are in their ranges.
fn entries_of_many(reader: &impl Reader, ranges: &[KeyRange<'_>], limit: usize) -> usize {
    let pages = reader.range_many(ranges, limit).unwrap();
    assert_eq!(pages.len(), ranges.len());
    for (range, page) in ranges.iter().zip(&pages) {
        assert!(page.entries.iter().all(|(key, _)| range.contains(key)));
    }
    pages.iter().map(|page| page.entries.len()).sum()
}

pub fn a_hundred_ranges_cost_one(store: &impl Store, contract: &Contract) {
    plant(store, 1_000);
    let ranges = ranges_of_ten(100);
    let snapshot = store.snapshot().unwrap();
    for limit in [3, 10, 50] {
        let read = waits(store, || entries_of_many(&snapshot, &ranges, limit));
        assert_eq!(read, (100 * limit.min(10), 1));
    }
    assert_eq!(waits(store, || entries_of_many(&snapshot, &[], 3)), (0, 0));
    let txn = store.begin().unwrap();
    let first = waits(store, || entries_of_many(&txn, &ranges, 3));
    assert_eq!(first, (300, 1 + contract.for_the_version));
    assert_eq!(waits(store, || entries_of_many(&txn, &ranges, 3)), (300, 1));
}

/// If the transaction itself hides entries that the server sent, all ranges with too few entries
/// are continued together.
pub fn own_deletes_cost_one_more_for_all_ranges(store: &impl Store) {
    plant(store, 1_000);
    let mut txn = store.begin().unwrap();
    (0..100).for_each(|n| txn.delete(&key(10 * n + 1)).unwrap());
    assert_eq!(waits(store, || entries_of_many(&txn, &ranges_of_ten(100), 3)), (300, 2));
    txn.delete_range(KeyRange::half_open(&key(0), &key(500))).unwrap();
    assert_eq!(waits(store, || entries_of_many(&txn, &ranges_of_ten(50), 3)), (0, 0));
}

pub fn more_ranges_than_go_together_cost_two(store: &impl Store, most: usize) {
    plant(store, 100);
    let snapshot = store.snapshot().unwrap();
    let single = |n: usize| KeyRange::single(&key(n)).into_owned();
    let ranges: Vec<KeyRange<'static>> = (0..=most).map(single).collect();
    assert_eq!(waits(store, || entries_of_many(&snapshot, &ranges[1..], 3)), (99, 1));
    assert_eq!(waits(store, || entries_of_many(&snapshot, &ranges, 3)), (100, 2));
}

/// The round trips of this many entries, in the pages of a snapshot and of a transaction: 1,024 and
/// the rest; 128, 512, 2,048 and the rest.
pub fn a_range_costs_one_for_each_page(
    store: &impl Store,
    entries: usize,
    [of_snapshot, of_transaction]: [u64; 2],
) {
    plant(store, entries);
    let snapshot = store.snapshot().unwrap();
    let txn = store.begin().unwrap();
    txn.get(b"so that it has a version").unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let whole = waits(store, || snapshot.range(KeyRange::all(), order).unwrap().count());
        assert_eq!(whole, (entries, of_snapshot));
        let part = || snapshot.range(KeyRange::all(), order).unwrap().take(1_000).count();
        assert_eq!(waits(store, part), (1_000, 1));
        let whole = waits(store, || txn.range(KeyRange::all(), order).unwrap().count());
        assert_eq!(whole, (entries, of_transaction));
    }
    let nowhere = || snapshot.range(KeyRange::half_open(b"b", b"a"), Order::Ascending).unwrap();
    assert_eq!(waits(store, || nowhere().count()), (0, 0));
}

/// 900 groups of ten entries are read in three growing pages: no group is sought.
pub fn a_scan_of_short_groups_costs_three_pages(store: &impl Store) {
    let space = Subspace::new("groups");
    let all: Vec<u32> = (0..9_000).collect();
    for some in all.chunks(3_000) {
        let keys = some.iter().map(|n| space.pack(&(n / 10, n % 10)));
        store.transact(|txn| keys.clone().try_for_each(|key| txn.put(&key, b""))).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    snapshot.get(b"so that it has a version").unwrap();
    let by = Grouping::new(&space, 1);
    let groups = || by.values::<_, u32, _>(&snapshot, ..).unwrap().count();
    assert_eq!(waits(store, groups), (900, 3));
}

pub fn a_transaction_costs_one_for_each_read_and_one_for_the_commit(
    store: &impl Store,
    contract: &Contract,
) {
    let (mut txn, cost) = waits(store, || store.begin().unwrap());
    assert_eq!(cost, 0);
    let first = waits(store, || assert!(txn.get(b"a").unwrap().is_none())).1;
    assert_eq!(first, 1 + contract.for_the_version);
    assert_eq!(waits(store, || txn.count(KeyRange::prefix(b"b")).unwrap()), (0, 1));
    txn.put(b"a", b"1").unwrap();
    let own = waits(store, || assert_eq!(txn.get(b"a").unwrap().as_deref(), Some(&b"1"[..]))).1;
    assert_eq!(own, contract.of_own_write);
    assert_eq!(waits(store, || txn.commit().unwrap()).1, 1);
}

pub fn a_transaction_that_only_writes_costs_what_its_engine_calls_for(
    store: &impl Store,
    contract: &Contract,
) {
    let write = || {
        store.transact(|txn| {
            txn.put(b"a", b"")?;
            txn.delete(b"b")?;
            txn.delete_range(KeyRange::prefix(b"c"))
        })
    };
    assert_eq!(waits(store, || write().unwrap()).1, contract.of_writes);
    assert_eq!(waits(store, || plant(store, 4_096)).1, contract.of_writes);
}

pub fn a_commit_without_writes_costs(store: &impl Store, after_a_read: u64) {
    assert_eq!(waits(store, || store.begin().unwrap().commit().unwrap()).1, 0);
    let txn = store.begin().unwrap();
    txn.get(b"a").unwrap();
    assert_eq!(waits(store, || txn.commit().unwrap()).1, after_a_read);
}

pub fn a_thousand_records_of_an_index_cost_two(store: &(impl Store + Clone)) {
    let store = Metered::new(store.clone());
    let space = Subspace::new("scores");
    let by_score = Index::new(&space.child("by_score"), |_: &u32, score: &u32| entry(Desc(*score)));
    let scores = Table::<u32, u32>::new(&space.child("scores")).with(&by_score);
    store
        .transact(|txn| (0..1_200).try_for_each(|n| scores.put(txn, &n, &(n * 7 % 1_000))))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let (best, cost) =
        store.measure(|_| by_score.query().limit(1_000).records(&snapshot, &scores).unwrap());
    assert_eq!((best.items.len(), cost.round_trips), (1_000, 2));
}
