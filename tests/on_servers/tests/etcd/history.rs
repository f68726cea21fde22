//! Snapshots, and the history that the cluster keeps.

use keyloom::{Error, KeyRange, Order, Reader, ServerError, Store, Transaction, Writer};

use crate::server::{Server, fresh, key, plant};

#[test]
fn a_snapshot_does_not_change_through_a_thousand_commits() {
    let (store, _cleanup) = fresh!();
    plant(&store, 100);
    let snapshot = store.snapshot().unwrap();
    for n in 0..1_000 {
        store
            .transact(|txn| {
                txn.put(&key(n % 200), b"new")?;
                txn.delete(&key((n + 50) % 100))
            })
            .unwrap();
    }
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    let entries: Vec<_> = entries.map(Result::unwrap).collect();
    assert_eq!(entries.len(), 100);
    assert!(entries.iter().all(|(_, value)| *value == b"planted"[..]));
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 100);
}

#[test]
fn a_snapshot_may_outlive_its_store_and_move_to_another_thread() {
    let (store, _cleanup) = fresh!();
    plant(&store, 10);
    let snapshot = store.snapshot().unwrap();
    drop(store.clone());
    std::thread::spawn(move || assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 10))
        .join()
        .unwrap();
}

#[test]
fn what_is_compacted_away_is_a_clear_error() {
    let Some(server) = Server::alone() else { return };
    let (store, _cleanup) = server.fresh(keyloom_etcd::Etcd::options());
    plant(&store, 200);
    let snapshot = store.snapshot().unwrap();
    let mut txn = store.begin().unwrap();
    txn.get(&key(0)).unwrap();
    plant(&store, 10);
    server.directly(async |mut client| {
        let revision = client.get("newest", None).await?.header().unwrap().revision();
        client.compact(revision, None).await
    });
    let errors = [
        snapshot.get(&key(0)).unwrap_err(),
        snapshot.get_many(&[key(0), key(1)]).unwrap_err(),
        snapshot.count(KeyRange::all()).unwrap_err(),
        snapshot.range(KeyRange::all(), Order::Ascending).unwrap().next().unwrap().unwrap_err(),
        txn.get(&key(1)).unwrap_err(),
    ];
    for error in errors {
        assert!(
            matches!(error, Error::Server(ServerError::Compacted { revision: 1.., .. })),
            "{error:?}"
        );
        assert!(!error.is_retryable() && !error.maybe_committed());
        assert!(error.to_string().contains("--auto-compaction-retention"), "{error}");
    }
    // The commit can still be validated, because it does not need the history.
    txn.put(b"a", b"").unwrap();
    assert!(matches!(txn.commit(), Err(Error::Conflict { .. })));
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 200);
}
