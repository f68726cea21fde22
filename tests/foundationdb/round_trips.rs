//! What each operation costs, in waits for the cluster: exactly.

use keyloom::{Desc, KeyRange, Metered, Order, Reader, Store, Subspace, Transaction, Writer};
use keyloom_patterns::{Index, Table, entry};

use crate::cluster::{fresh, key, plant, waits};

#[test]
fn a_snapshot_costs_one_and_each_read_one() {
    let store = fresh!();
    plant(&store, 100);
    let (snapshot, cost) = waits(&store, || store.snapshot().unwrap());
    assert_eq!(cost, 1);
    assert_eq!(waits(&store, || snapshot.get(&key(7)).unwrap().unwrap()).1, 1);
    assert_eq!(waits(&store, || snapshot.count(KeyRange::all()).unwrap()), (100, 1));
    assert_eq!(waits(&store, || snapshot.first(KeyRange::all()).unwrap().unwrap()).1, 1);
    assert_eq!(waits(&store, || snapshot.last(KeyRange::all()).unwrap().unwrap()).1, 1);
    for order in [Order::Ascending, Order::Descending] {
        let (page, cost) = waits(&store, || snapshot.page(KeyRange::all(), order, 50).unwrap());
        assert_eq!((page.entries.len(), page.last.is_some(), cost), (50, true, 1));
    }
}

#[test]
fn a_thousand_keys_cost_one() {
    let store = fresh!();
    plant(&store, 1_000);
    let keys: Vec<Vec<u8>> = (0..1_100).rev().map(key).collect();
    let snapshot = store.snapshot().unwrap();
    let (values, cost) = waits(&store, || snapshot.get_many(&keys).unwrap());
    assert_eq!(cost, 1);
    assert!(values.iter().enumerate().all(|(n, value)| value.is_some() == (n >= 100)));
    let txn = store.begin().unwrap();
    let (in_transaction, cost) = waits(&store, || txn.get_many(&keys).unwrap());
    assert_eq!((in_transaction, cost), (values, 2), "the version that it reads, and the values");
    assert_eq!(waits(&store, || txn.get_many(&keys).unwrap()).1, 1);
}

#[test]
fn a_range_costs_one_for_each_page() {
    let store = fresh!();
    // Few enough that no page comes to what a server sends at once.
    plant(&store, 1_500);
    let snapshot = store.snapshot().unwrap();
    let txn = store.begin().unwrap();
    txn.get(b"the version that it reads").unwrap();
    for order in [Order::Ascending, Order::Descending] {
        // 1,024 and the rest.
        let (count, cost) =
            waits(&store, || snapshot.range(KeyRange::all(), order).unwrap().count());
        assert_eq!((count, cost), (1_500, 2));
        let (_, cost) = waits(&store, || {
            snapshot.range(KeyRange::all(), order).unwrap().take(1_000).for_each(drop);
        });
        assert_eq!(cost, 1);
        // 128, 512 and the rest.
        let (count, cost) = waits(&store, || txn.range(KeyRange::all(), order).unwrap().count());
        assert_eq!((count, cost), (1_500, 3));
    }
}

/// A server sends some 80 kB at once, whatever is asked for.
#[test]
fn a_range_of_long_values_costs_one_for_each_eighty_kilobytes() {
    let store = fresh!();
    let value = vec![b'x'; 10_000];
    store.transact(|txn| (0..80).try_for_each(|n| txn.put(&key(n), &value))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let (count, cost) = waits(&store, || {
        snapshot.range(KeyRange::all(), Order::Ascending).unwrap().map(Result::unwrap).count()
    });
    assert_eq!(count, 80);
    assert!((8..=12).contains(&cost), "{cost} waits for 800 kB");
}

#[test]
fn a_transaction_that_only_writes_costs_two() {
    let store = fresh!();
    let write = || {
        store.transact(|txn| {
            txn.put(b"a", b"")?;
            txn.delete(b"b")?;
            txn.add(b"n", 1)?;
            txn.append_if_fits(b"log", b"line")?;
            txn.compare_and_clear(b"c", b"")?;
            txn.delete_range(KeyRange::prefix(b"c"))
        })
    };
    // The version, for which the client asks at the commit, and the commit.
    assert_eq!(waits(&store, || write().unwrap()).1, 2);
    assert_eq!(waits(&store, || plant(&store, 4_096)).1, 2);
}

#[test]
fn a_transaction_costs_one_for_its_version_one_for_each_read_and_one_for_the_commit() {
    let store = fresh!();
    let (mut txn, cost) = waits(&store, || store.begin().unwrap());
    assert_eq!(cost, 0);
    assert_eq!(waits(&store, || txn.get(b"a").unwrap()).1, 2);
    assert_eq!(waits(&store, || txn.count(KeyRange::prefix(b"b")).unwrap()).1, 1);
    txn.put(b"a", b"1").unwrap();
    assert_eq!(txn.get(b"a").unwrap().as_deref(), Some(&b"1"[..]), "its own write");
    assert_eq!(waits(&store, || txn.commit().unwrap()).1, 1);
}

#[test]
fn a_commit_without_writes_costs_nothing() {
    let store = fresh!();
    assert_eq!(waits(&store, || store.begin().unwrap().commit().unwrap()).1, 0);
    let txn = store.begin().unwrap();
    txn.get(b"a").unwrap();
    assert_eq!(waits(&store, || txn.commit().unwrap()).1, 0);
}

#[test]
fn a_thousand_records_of_an_index_cost_two() {
    let store = fresh!();
    let store = Metered::new(store.clone());
    let space = Subspace::new("scores");
    let by_score = Index::new(&space.child("by_score"), |_: &u32, score: &u32| entry(Desc(*score)));
    let scores = Table::<u32, u32>::new(&space.child("scores")).with(&by_score);
    store
        .transact(|txn| (0..1_200).try_for_each(|n| scores.put(txn, &n, &(n * 7 % 1_000))))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let (best, cost) = store.measure(|_| {
        by_score.records(&snapshot, &scores, (), Order::Ascending, 1_000, None).unwrap()
    });
    assert_eq!((best.records.len(), cost.round_trips), (1_000, 2));
}
