//! Deletes and puts of one transaction on the same keys, which etcd itself refuses.

use keyloom::{KeyRange, Order, Reader, Store, Writer};
use keyloom_etcd::Etcd;

use crate::server::{Server, fresh, key, plant};

fn keys(store: &Etcd) -> Vec<Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.unwrap().0.to_vec()).collect()
}

#[test]
fn a_range_is_deleted_around_what_is_put_into_it() {
    let (store, _cleanup) = fresh!();
    plant(&store, 100);
    store
        .transact(|txn| {
            txn.put(&key(20), b"gone again")?;
            txn.delete_range(KeyRange::half_open(&key(10), &key(90)))?;
            for n in [10, 11, 50, 89] {
                txn.put(&key(n), b"new")?;
            }
            txn.delete(&key(60))?;
            txn.delete(&key(5))?;
            txn.put(&key(5), b"back")?;
            txn.put(&key(6), b"")?;
            txn.delete(&key(6))
        })
        .unwrap();
    let expected = (0..10).filter(|n| *n != 6).chain([10, 11, 50, 89]).chain(90..100).map(key);
    assert_eq!(keys(&store), expected.collect::<Vec<_>>());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(&key(50)).unwrap().unwrap(), &b"new"[..]);
    assert_eq!(snapshot.get(&key(5)).unwrap().unwrap(), &b"back"[..]);
}

#[test]
fn everything_is_replaced_in_one_transaction() {
    let (store, _cleanup) = fresh!();
    plant(&store, 4_096);
    store
        .transact(|txn| {
            txn.delete_range(KeyRange::all())?;
            (0..4_095).try_for_each(|n| txn.put(&key(2 * n), b"new"))
        })
        .unwrap();
    assert_eq!(keys(&store), (0..4_095).map(|n| key(2 * n)).collect::<Vec<_>>());
}

#[test]
fn deleted_ranges_leave_other_stores_alone() {
    let Some(server) = Server::from_environment() else { return };
    let (store, _cleanup) = server.fresh(Etcd::options());
    let (other, _other_cleanup) = server.fresh(Etcd::options());
    plant(&other, 10);
    plant(&store, 10);
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    assert_eq!((keys(&store).len(), keys(&other).len()), (0, 10));
    store.transact(|txn| txn.delete_range(KeyRange::starting_at(b"\xFF"))).unwrap();
    assert_eq!(keys(&other).len(), 10);
}
