//! Addresses, prefixes, and a cluster that is not there.

use std::time::{Duration, Instant};

use keyloom::{AnyStore, Error, FoundationDb, KeyRange, Reader, Store, Writer};

use crate::cluster::fresh;
use crate::servers::stores::foundationdb::address;
use crate::servers::stores::fresh_name;

#[test]
fn an_address_without_a_file_or_with_another_is_refused() {
    for wrong in ["fdb:/nowhere/fdb.cluster", "fdb:?name=a/b", "etcd://a/b", "fdb:x?table=y"] {
        let error = FoundationDb::open(wrong).unwrap_err();
        assert!(matches!(error, Error::BadOption { .. }), "{wrong}: {error}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_told_in_time() {
    if address().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fdb.cluster");
    std::fs::write(&file, "nobody:here@127.0.0.1:9\n").unwrap();
    let begun = Instant::now();
    let options = FoundationDb::options().timeout(Duration::from_millis(500));
    let error = options.open(&format!("fdb:{}", file.display())).unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    assert!(error.to_string().contains("fdb.cluster") && error.is_retryable(), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn two_names_are_two_stores_and_one_name_is_one() {
    let Some(address) = address() else { return };
    let (one, other) = (fresh_name(), fresh_name());
    let open = |name: &str| AnyStore::open(&format!("{address}?name={name}")).unwrap();
    let (store, again, other) = (open(&one), open(&one), open(&other));
    store.transact(|txn| txn.put(b"\xFF\xFF", b"here")).unwrap();
    assert_eq!(again.snapshot().unwrap().get(b"\xFF\xFF").unwrap().as_deref(), Some(&b"here"[..]));
    assert_eq!(other.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    assert!(store.to_string().starts_with("fdb:/"), "{store}");
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

#[test]
fn without_a_prefix_the_keys_of_the_cluster_itself_are_refused() {
    let Some(address) = address() else { return };
    let store = FoundationDb::options().prefix("").open(&address).unwrap();
    let key = fresh_name();
    store.transact(|txn| txn.put(key.as_bytes(), b"bare")).unwrap();
    assert!(store.snapshot().unwrap().get(key.as_bytes()).unwrap().is_some());
    store.transact(|txn| txn.delete(key.as_bytes())).unwrap();
    let error = store.transact(|txn| txn.put(b"\xFF/x", b"")).unwrap_err();
    assert!(!error.is_retryable() && !error.maybe_committed(), "{error:?}");
}

#[test]
fn handles_go_to_other_threads_and_outlive_each_other() {
    let store = fresh!();
    let clone = store.clone();
    let snapshot = std::thread::spawn(move || {
        clone.transact(|txn| txn.put(b"a", b"1")).unwrap();
        clone.snapshot().unwrap()
    });
    let snapshot = snapshot.join().unwrap();
    assert_eq!(snapshot.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}
