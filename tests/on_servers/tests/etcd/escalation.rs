//! If there are too many reads to check individually, they still conflict with every relevant
//! change.

use keyloom::{KeyRange, Order, Reader, Store, Transaction, Writer};
use keyloom_etcd::Etcd;

use crate::server::{fresh, is_conflict, key, plant};

type Body = fn(&mut <Etcd as Store>::Transaction<'_>) -> keyloom::Result<()>;

/// Reads 1,000 of the keys that [`plant`] creates: every second key, and a range.
fn read_much(txn: &<Etcd as Store>::Transaction<'_>) {
    let keys: Vec<Vec<u8>> = (0..1_000).map(|n| key(2 * n)).collect();
    assert!(txn.get_many(&keys).unwrap().iter().all(Option::is_some));
    let range = KeyRange::half_open(b"key 3000", b"key 3100");
    assert!(txn.range(range, Order::Ascending).unwrap().count() >= 100);
}

fn outcome(store: &Etcd, writes: usize, meanwhile: Option<Body>) -> keyloom::Result<()> {
    let mut txn = store.begin().unwrap();
    read_much(&txn);
    if let Some(body) = meanwhile {
        store.transact(body).unwrap();
    }
    (0..writes).for_each(|n| txn.put(format!("written {n}").as_bytes(), b"").unwrap());
    txn.commit()
}

fn check(writes: usize) {
    let (store, _cleanup) = fresh!();
    plant(&store, 4_000);
    let put: Body = |txn| txn.put(b"mark", b"");
    let changes: [(&str, Body); 6] = [
        ("a key that was read", |txn| txn.put(&key(1_000), b"new")),
        ("the last key", |txn| txn.put(&key(1_998), b"new")),
        ("a key of the range", |txn| txn.put(&key(3_050), b"new")),
        ("a new key in the range", |txn| txn.put(b"key 3050 and more", b"")),
        ("a key that was read is deleted", |txn| txn.delete(&key(500))),
        ("a key of the range is deleted", |txn| {
            txn.delete_range(KeyRange::half_open(b"key 3010", b"key 3011"))
        }),
    ];
    for (what, change) in changes {
        assert!(is_conflict(&outcome(&store, writes, Some(change))), "{what}");
        plant(&store, 4_000);
        outcome(&store, writes, None).unwrap();
        outcome(&store, writes, Some(put)).unwrap();
        outcome(&store, writes, Some(|txn| txn.put(&key(3_500), b"elsewhere"))).unwrap();
    }
}

#[test]
fn with_few_writes() {
    check(1);
}

#[test]
fn with_nested_writes() {
    check(1_000);
}

#[test]
fn with_writes_nested_twice() {
    check(4_096);
}

/// The price of this: unnecessary conflicts.
#[test]
fn a_delete_elsewhere_conflicts_for_nothing() {
    let (store, _cleanup) = fresh!();
    plant(&store, 4_000);
    assert!(is_conflict(&outcome(&store, 1, Some(|txn| txn.delete(b"elsewhere")))));
}

/// Absent keys within an empty range that was read need no separate checks: the check of the range
/// covers them.
#[test]
fn absent_keys_of_a_range_that_was_read_cost_no_check() {
    let (store, _cleanup) = fresh!();
    let mut txn = store.begin().unwrap();
    assert_eq!(txn.count(KeyRange::all()).unwrap(), 0);
    let keys: Vec<Vec<u8>> = (0..1_000).map(key).collect();
    txn.get_many(&keys).unwrap();
    txn.put(b"a", b"").unwrap();
    // The checks are not escalated, so a delete elsewhere does not conflict.
    store.transact(|txn| txn.delete(b"elsewhere")).unwrap();
    txn.commit().unwrap();
}
